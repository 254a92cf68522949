// SPDX-License-Identifier: MIT
//
// A user as each line of the guide makes it: nothing that a client sends is refused, and each permission is used. Keys,
// too, are only those that the line names.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "guard_site.hpp"

namespace redlock::test {
namespace {

using Words = std::vector<std::string>;

// The commands behind <!-- acl -->, in the words that a shell makes of them.
std::vector<Words> commands_of_the_guide() {
  std::ifstream file(REDLOCK_SOURCE_DIR "/examples/site/README.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}}, open = "<!-- acl -->\n```sh\n";
  const size_t begin = text.find(open) + open.size();
  const std::string script = text.substr(begin, text.find("```", begin) - begin);
  const std::string shown = std::regex_replace(script, std::regex("redis-cli"), "printf '%s\n' -");
  FILE* const shell = popen(shown.c_str(), "r");
  std::vector<Words> commands;
  for (char line[200]; std::fgets(line, sizeof line, shell) != nullptr;) {
    const std::string word = std::string(line).substr(0, std::strlen(line) - 1);
    if (word == "-") commands.emplace_back();
    if (word != "-") commands.back().push_back(word);
  }
  EXPECT_EQ(pclose(shell), 0);
  return commands;
}

// The gateways' user of users.acl.
Words words_of_the_file() {
  std::ifstream file(REDLOCK_SOURCE_DIR "/examples/site/users.acl");
  std::string line;
  while (std::getline(file, line) && line.rfind("user gateway ", 0) != 0) {
  }
  std::istringstream words(line);
  return {std::istream_iterator<std::string>(words), {}};
}

Words permissions_of(const Words& command) {
  return {std::find(command.begin(), command.end(), "-@all"), command.end()};
}

// Whether the server has executed it, by itself or in a script. Before Redis 7.0 subcommands are not counted apart.
bool executed(const std::string& stats, const std::string& permission) {
  const std::string command = permission.substr(1);
  return stats.find("cmdstat_" + command + ":") != std::string::npos ||
         stats.find("cmdstat_" + command.substr(0, command.find('|')) + ":") != std::string::npos;
}

// Waits in line behind another client, holds, extends, and lets go: one name and two, without a token and with one.
void use_locks(Site& site, Client& client, Client& other, const std::string& bus, const std::string& valve) {
  for (const Words& names : {Words{bus}, {bus, valve}}) {
    for (const uint32_t flags : {0u, REDLOCK_F_FENCING}) {
      Lock& first = other.acquire(names, site.longest(REDLOCK_WAIT_FOREVER));
      const uint64_t rounds = client.status().rounds, looks = site[0].calls("pttl");
      Lock& lock = client.start(names, site.longest(REDLOCK_WAIT_FOREVER, flags));
      EXPECT_TRUE(site.loop.run_until([&] { return client.status().rounds > rounds || site[0].calls("pttl") > looks; }))
          << "a client that had to wait before looks before it tries";
      EXPECT_EQ(redlock_extend_async(other.get(), first.handle, 0), 0);
      EXPECT_TRUE(site.loop.run_until([&] { return first.has(REDLOCK_EV_RENEWED); }));
      other.release(first);
      EXPECT_TRUE(site.loop.run_until([&] { return lock.has(REDLOCK_EV_ACQUIRED); }));
      client.release(lock);
    }
  }
}

// A connection breaks with a SET on its way, and the next one ends it.
void leave_a_stray(Site& site, Client& client, const std::string& bus) {
  site[0].freeze();
  EXPECT_TRUE(client.acquire(bus, site.longest()).has(REDLOCK_EV_FAILED));
  EXPECT_TRUE(site.loop.run_until([&] { return client.master(0).state == REDLOCK_MASTER_GREETING; }));
  site[0].thaw();
  EXPECT_TRUE(site.loop.run_until([&] { return client.status().masters_up == 1 && client.status().debts == 0; }));
}

TEST(Acl, TheLinesOfTheGuideAreEnoughAndAllOfThemIsUsed) {
  const std::vector<Words> commands = commands_of_the_guide();
  ASSERT_EQ(commands.size(), 2u);
  const Words permissions = permissions_of(commands[0]);
  ASSERT_GT(permissions.size(), 20u);
  EXPECT_EQ(permissions_of(commands[1]), permissions);
  EXPECT_EQ(permissions_of(words_of_the_file()), permissions) << "users.acl";
  std::string stats;
  for (const bool prefixed : {false, true}) {
    for (const bool resp3 : {true, false}) {
      SCOPED_TRACE(std::string(prefixed ? "key_prefix plant1/" : "no prefix") + (resp3 ? ", RESP3" : ", RESP2"));
      RedisServer::Options options;
      if (!resp3) options.args = {"--rename-command", "HELLO", ""};
      Site site(1, 1'000, options);
      ASSERT_EQ(site[0].command(commands[prefixed ? 1 : 0]), "OK");
      Settings settings = site.settings(false);
      settings.strings.insert(settings.strings.end(), {{"username", "gateway"}, {"password", "secret"}});
      if (prefixed) settings.strings.push_back({"key_prefix", "plant1/"});
      settings.numbers.insert(settings.numbers.end(), {{"timing.suspect_close_ms", 900}});
      Client other(site.loop, settings);
      Client client(site.loop, settings);
      other.wait_up(1);
      client.wait_up(1);
      EXPECT_EQ(client.master(0).tracked, resp3 ? 1u : 0u);
      const std::string names = prefixed ? "" : "plant1/";
      use_locks(site, client, other, names + "bus", names + "valve");
      leave_a_stray(site, client, names + "bus");
      EXPECT_EQ(site[0].command({"ACL", "LOG"}), "") << "a refused command, or key";
      stats += "\n" + site[0].command({"INFO", "commandstats"});
    }
  }
  for (const std::string& permission : permissions) {
    const bool is_no_clients = permission == "-@all" || permission == "+scan";  // SCAN is the doctor's
    EXPECT_TRUE(is_no_clients || executed(stats, permission)) << permission << " is not used";
  }
}

}  // namespace
}  // namespace redlock::test
