// SPDX-License-Identifier: MIT
//
// Gateways of 0.1 and of this version on one site. 0.1 is the library of the commit in test/CMakeLists.txt, which
// library.sh builds; a clone without that commit skips these tests. CHANGELOG.md says what follows for an upgrade.
#include <redlock/site.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

#include "integration/change_servers.hpp"
#include "integration/guard_site.hpp"
#include "integration/interop/foreign.hpp"
#include "integration/thread_harness.hpp"

namespace redlock::test {
namespace {

constexpr const char* wait = " 30000";

// A gateway: the program, and the library that it runs with.
struct Kind {
  const char* name;
  char letter;
  const char* program;
  const char* library;
};
constexpr Kind older{"Older", 'o', OLDER "/worker", OLDER "/build"};
constexpr Kind upgraded{"OlderProgramWithThisLibrary", 'u', OLDER "/worker", REDLOCK_BINARY_DIR};
constexpr Kind present{"Present", 'p', WORKER, REDLOCK_BINARY_DIR};

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A configuration that both versions can read.
void write_config(const std::string& path, const std::vector<std::string>& urls, uint32_t max_ttl,
                  const std::string& extra = "") {
  std::string list;
  for (const std::string& url : urls) list += (list.empty() ? "\"" : ", \"") + url + "\"";
  std::ofstream(path) << "{\"masters\": [" << list << "], " << extra << "\"defaults\": {\"ttl_ms\": " << max_ttl
                      << "}, \"timing\": {\"max_ttl_ms\": " << max_ttl
                      << ", \"node_timeout_ms\": 500, \"suspect_close_ms\": 5000, \"reconnect_max_ms\": 100}}";
  ::chmod(path.c_str(), 0600);
}

class Gateway : public Foreign {
 public:
  Gateway(const Kind& kind, const std::string& config)
      : Foreign({"/usr/bin/env", std::string("LD_LIBRARY_PATH=") + kind.library, kind.program,
                 std::string(1, kind.letter), config}) {}
};

void skip_without_older() {
  if (::access(OLDER "/worker", X_OK) != 0) GTEST_SKIP() << "no library of 0.1: " << text_of(OLDER "/why");
}

class Older : public ::testing::Test {
 protected:
  void SetUp() override { skip_without_older(); }
};

// ---- one after the other ----------------------------------------------------------------------------------------

class OlderAnd : public ::testing::TestWithParam<std::pair<Kind, Kind>> {
 protected:
  void SetUp() override { skip_without_older(); }
};

void wait_sealed(Site& site) {
  EXPECT_TRUE(ThreadClient::eventually([&] {
    return site.record(0, "seal") != "(nil)" && site.record(1, "seal") != "(nil)" && site.record(2, "seal") != "(nil)";
  }));
}

// What one has admitted is admitted for the other, and a key of one is held for the other.
TEST_P(OlderAnd, ShareSealsAndKeys) {
  Site site(3, 20'000);
  const std::string config = site[0].dir() + "/gateway.json";
  write_config(config, site.urls(), site.max_ttl_ms);
  Gateway first(GetParam().first, config);
  ASSERT_EQ(first.ask("commission"), "yes");
  ASSERT_EQ(first.ask(std::string("hold bus 20000") + wait), "yes");
  wait_sealed(site);
  Gateway second(GetParam().second, config);
  EXPECT_EQ(second.ask("acquire valve 20000 10000"), "yes") << "a guard time is longer than this wait";
  EXPECT_NE(second.ask("acquire bus 20000 100"), "yes");
  EXPECT_EQ(first.ask("check"), "yes");
  EXPECT_EQ(first.ask("release"), "yes");
  EXPECT_EQ(second.ask("acquire bus 20000 10000"), "yes");
}

// A majority forgets a lock of one. The other gets the lock when it is over, and no earlier.
TEST_P(OlderAnd, GuardEachOthersLocks) {
  Site site(3);
  const std::string config = site[0].dir() + "/gateway.json";
  write_config(config, site.urls(), site.max_ttl_ms);
  Gateway first(GetParam().first, config), second(GetParam().second, config);
  ASSERT_EQ(first.ask("commission"), "yes");
  ASSERT_EQ(first.ask(std::string("acquire valve 1000") + wait), "yes");
  wait_sealed(site);
  ASSERT_EQ(second.ask(std::string("acquire pump 1000") + wait), "yes");
  ASSERT_EQ(first.ask(std::string("acquire bus 1000") + wait), "yes");
  site[0].restart();
  site[1].restart();
  EXPECT_EQ(second.ask(std::string("acquire bus 1000") + wait), "yes");
  EXPECT_NE(first.ask("check"), "yes") << "two hold the lock";
}

INSTANTIATE_TEST_SUITE_P(With, OlderAnd,
                         ::testing::Values(std::pair{older, present}, std::pair{present, older},
                                           std::pair{older, upgraded}),
                         [](const auto& i) {
                           return std::string(i.param.first.name) + "Then" + i.param.second.name;
                         });

// ---- a change of masters ----------------------------------------------------------------------------------------

// The change is made by this version. Gateways of 0.1 are shut out by it as ours are, and get in with the new file.
TEST_F(Older, AChangeOfMastersShutsOldGatewaysOut) {
  Servers servers(5);
  const std::string old_file = servers[0].dir() + "/old.json", new_file = servers[0].dir() + "/new.json";
  const Members old_set{0, 1, 2}, new_set{2, 3, 4};
  const auto urls = [&](const Members& members) { return of(servers, members).urls; };
  write_config(old_file, urls(old_set), max_ttl_ms);
  write_config(new_file, urls(new_set), max_ttl_ms);
  Gateway holder(older, old_file);
  ASSERT_EQ(holder.ask(std::string("hold bus 1000") + wait), "yes");

  redlock_config_t* const old_cfg = configure(of(servers, old_set));
  redlock_config_t* const new_cfg = configure(of(servers, new_set));
  redlock_reconfigure_report_t report{};
  report.size = sizeof report;
  EXPECT_EQ(redlock_reconfigure(old_cfg, new_cfg, &report), 0);
  redlock_config_free(old_cfg);
  redlock_config_free(new_cfg);

  Gateway late(older, new_file), ours(present, new_file);
  EXPECT_EQ(late.ask(std::string("hold bus 1000") + wait), "yes");
  EXPECT_NE(holder.ask("check"), "yes") << "two hold the lock";
  EXPECT_EQ(holder.ask("acquire bus 1000 0"), "no: REDLOCK_E_GUARD");
  EXPECT_NE(ours.ask("acquire bus 1000 500"), "yes");
}

// ---- the ACL user -----------------------------------------------------------------------------------------------

// The line of 0.1's page, with what it named for tokens and for several names. This version does without the rest.
TEST_F(Older, ItsUserIsEnough) {
  Site site(1);
  std::vector<std::string> words{"ACL", "SETUSER", "gateway", "on", ">secret", "~plant1/*", "~redlock::*", "-@all"};
  for (const char* name : {"set", "get", "del", "pttl", "pexpire", "evalsha", "eval", "script|load", "ping", "info",
                           "time", "hget", "hmget", "hset", "hdel", "client|tracking", "client|caching", "exists"}) {
    words.push_back(std::string("+") + name);
  }
  ASSERT_EQ(site[0].command(words), "OK");
  const std::string config = site[0].dir() + "/gateway.json";
  write_config(config, site.urls(), site.max_ttl_ms, R"("username": "gateway", "password": "secret", )");
  Gateway ours(present, config);
  EXPECT_EQ(ours.ask(std::string("acquire plant1/bus 1000") + wait), "yes");
  Gateway theirs(older, config);
  EXPECT_EQ(theirs.ask(std::string("acquire plant1/bus 1000") + wait), "yes");
  EXPECT_EQ(ours.ask(std::string("token plant1/bus 1000") + wait), "yes");

  // What was refused is what examples/site/README.md says may be left out.
  const std::string log = site[0].command({"ACL", "LOG"});
  for (size_t at = log.find(" object "); at != std::string::npos; at = log.find(" object ", at + 1)) {
    const std::string object = log.substr(at + 8, log.find(' ', at + 8) - at - 8);
    EXPECT_TRUE(object == "hlen" || object == "client|kill" || object == "client|id") << object;
  }
}

// ---- the status ------------------------------------------------------------------------------------------------

// Field and kind of value: '"' a string, '{', '[', 'b' a boolean, '0' a number. What is null now tells no kind.
std::set<std::string> fields_of(const std::string& json) {
  std::set<std::string> all;
  const std::regex field("\"([a-z0-9_]+)\":(.)");
  for (std::sregex_iterator i(json.begin(), json.end(), field), end; i != end; ++i) {
    const std::string name = (*i)[1], first = (*i)[2];
    all.insert(name);
    if (first != "n") all.insert(name + (first == "t" || first == "f" ? "b" : std::isdigit(first[0]) ? "0" : first));
  }
  return all;
}

// One schema: what a reader of 0.1's status looks for is still there.
TEST_F(Older, EachFieldOfItsStatusIsStillThere) {
  Site site(1);
  const std::string config = site[0].dir() + "/gateway.json";
  write_config(config, site.urls(), site.max_ttl_ms);
  Gateway theirs(older, config), ours(present, config);
  EXPECT_EQ(theirs.ask(std::string("hold bus 1000") + wait), "yes");
  EXPECT_EQ(ours.ask(std::string("hold valve 1000") + wait), "yes");
  const std::string then = theirs.ask("status"), now = ours.ask("status");
  const std::string schema = R"("schema":"redlock.status/1")";
  EXPECT_NE(then.find(schema), std::string::npos) << then;
  EXPECT_NE(now.find(schema), std::string::npos) << now;
  const std::set<std::string> old_fields = fields_of(then), fields = fields_of(now);
  EXPECT_GT(old_fields.size(), 20u) << then;
  for (const std::string& field : old_fields) EXPECT_TRUE(fields.contains(field)) << field;
}

// ---- all at once ------------------------------------------------------------------------------------------------

struct Turn {
  char who;
  uint64_t token;
};

std::vector<Turn> turns_in(const std::string& path) {
  std::ifstream file(path);
  std::vector<Turn> all;
  for (Turn turn{}; file >> turn.who >> turn.token;) all.push_back(turn);
  return all;
}

// Two of each kind take turns at one resource, and one master restarts meanwhile. The kernel is the witness: each makes
// one and the same file while it holds the lock, and the file must not be there.
TEST_F(Older, NobodyIsThereTogether) {
  Site site(3, 5'000);
  const std::string folder = site[0].dir(), config = folder + "/gateway.json", path = folder + "/turns";
  write_config(config, site.urls(), site.max_ttl_ms);
  const auto count = [&](char who) {
    const std::vector<Turn> all = turns_in(path);
    return std::count_if(all.begin(), all.end(), [who](const Turn& turn) { return turn.who == who; });
  };
  const auto wait_for_turns = [&](long more) {
    const long o = count('o') + more, u = count('u') + more, p = count('p') + more;
    EXPECT_TRUE(ThreadClient::eventually([&] { return count('o') >= o && count('u') >= u && count('p') >= p; }));
  };
  {
    std::vector<std::unique_ptr<Gateway>> gateways;
    for (const Kind* kind : {&older, &upgraded, &present, &older, &upgraded, &present}) {
      gateways.push_back(std::make_unique<Gateway>(*kind, config));
      if (gateways.size() == 1) {
        EXPECT_EQ(gateways[0]->ask("commission"), "yes");
      }
      gateways.back()->say("contend bus 5000 " + folder + "/marker " + path + " " + folder + "/stop");
    }
    wait_for_turns(50);
    site[1].restart();
    wait_for_turns(20);
    EXPECT_TRUE(ThreadClient::eventually([&] { return site.record(1, "seal") != "(nil)"; }));
    wait_for_turns(20);
    std::ofstream(folder + "/stop") << "now";
    for (size_t i = 0; i < gateways.size(); ++i) EXPECT_EQ(gateways[i]->hear(), "yes");
  }
  EXPECT_EQ(count('!'), 0) << "two held the lock at once";
  uint64_t last = 0;
  for (const Turn& turn : turns_in(path)) {
    if (turn.token == 0) continue;
    EXPECT_GT(turn.token, last) << "a token of " << turn.who;
    last = turn.token;
  }
  EXPECT_GT(last, 0u);
  std::cout << "turns: 0.1 " << count('o') << ", 0.1 with this library " << count('u') << ", this version "
            << count('p') << "\n";
}

}  // namespace
}  // namespace redlock::test
