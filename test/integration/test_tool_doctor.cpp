// SPDX-License-Identifier: MIT
//
// redlock doctor: a good site is fit, and each bad one fails in the check that is about it, with its exit code.
#include <gtest/gtest.h>

#include "support/proxy.hpp"
#include "support/server_kind.hpp"
#include "support/tcp_peer.hpp"
#include "tool_masters.hpp"

namespace redlock::test {
namespace {

TEST(ToolDoctor, AGoodSiteIsFit) {
  ToolMasters site(3);
  const std::string config = site.file({0, 1, 2});
  commission(site, config);
  const Ended ended = site.run({"doctor", "-v"}, config);
  EXPECT_EQ(ended.status, 0) << ended.out;
  EXPECT_EQ(ended.err, "");
  EXPECT_TRUE(has(ended.out, "\nfit for locks: 0 failed, ")) << ended.out;
  const char* const ids[] = {"reach", "version", "role", "replicas", "eviction", "persistence", "acl", "acl_keys",
                             "record", "guard", "prefix", "round_trip", "clock"};
  for (const char* id : ids) EXPECT_TELLS(ended, "ok", id, "m2: ");
  EXPECT_TELLS(ended, "ok", "duplicate", "3 different servers");
  EXPECT_TELLS(ended, "ok", "ttl", "ttl 900 ms");
  EXPECT_TELLS(ended, "ok", "gw_secrets", "others can read no password");
  EXPECT_TRUE(has(ended.out, "\nMASTER  ADDRESS ")) << ended.out;
  EXPECT_TRUE(has(ended.out, "  master  votes\nfit for locks: ")) << "a line for each master" << ended.out;
  EXPECT_EQ(site[0].command({"KEYS", "*doctor*"}), "") << "nothing is left behind";

  const Ended json = site.run({"doctor", "--json", "--ttl", "500"}, config);
  EXPECT_EQ(json.status, 0);
  EXPECT_TRUE(has(json.out, R"("schema":"redlock.doctor/1")")) << json.out;
  EXPECT_TRUE(has(json.out, R"({"id":"role","master":"m1","level":"ok","saw":"master, standalone","do":null})"))
      << json.out;
  EXPECT_TRUE(has(json.out, R"("fit":true,"failed":0)")) << json.out;
  std::ofstream(site.dir + "/doctor.json") << json.out;
  EXPECT_EQ(std::system(("python3 -m json.tool < " + site.dir + "/doctor.json > /dev/null").c_str()), 0);

  const Ended ttl = site.run({"doctor", "-v", "--ttl", "5000"}, config);
  EXPECT_EQ(ttl.status, 78);
  EXPECT_TELLS(ttl, "fail", "ttl", "ttl 5000 ms");
  EXPECT_EQ(ttl.err, "redlock: doctor: 1 check(s) failed\n");
}

// Without -v one cause is one line with the names of its masters, equal hints stand once, and what is well is a list.
TEST(ToolDoctor, OneCauseIsOneLine) {
  ToolMasters site(3);
  const std::string config = site.file({0, 1, 2});
  const auto lines = [](const Ended& ended, const std::string& with) {
    unsigned n = 0;
    for (size_t at = 0; (at = ended.out.find(with, at)) != std::string::npos; at += with.size()) ++n;
    return n;
  };
  const Ended fresh = site.run({"doctor"}, config);
  EXPECT_EQ(fresh.status, 76);
  EXPECT_TELLS(fresh, "fail", "guard", "m0, m1, m2: not watched yet: 1.0 s");
  EXPECT_EQ(lines(fresh, "fail "), 1u) << fresh.out;
  EXPECT_EQ(lines(fresh, "-> "), 1u) << fresh.out;
  EXPECT_LE(lines(fresh, "\nok "), 3u) << fresh.out;
  EXPECT_TELLS(fresh, "ok", "ttl,", "reach, ");
  commission(site, config);
  const auto with_desc = [&](const std::string& desc) {
    for (unsigned m = 0; m < 2; ++m) site[m].command({"HSET", "redlock::meta", "desc", desc});
    return site.run({"doctor"}, config);
  };
  const Ended other = with_desc("moving v1 n=5 > v1 n=7");
  EXPECT_TELLS(other, "fail", "record", "m0, m1: was left by a change");
  EXPECT_EQ(lines(other, "delete the record"), 1u) << other.out;
  for (unsigned m = 0; m < 2; ++m) {
    const std::string port = std::to_string(site[m].port());
    EXPECT_EQ(lines(other, "m" + std::to_string(m) + ": redis-cli -h 127.0.0.1 -p " + port + " DEL 'redlock::meta'\n"),
              1u)
        << other.out;
  }
  EXPECT_TRUE(has(other.out, "record (m2)")) << "what is well elsewhere" << other.out;
  // Where another file is the cure, only the full report says how to delete a record.
  const std::string ours = site.desc(2), ids = ours.substr(ours.find(" ids="));
  const Ended longer = with_desc("v1 n=3 q=2 max_ttl_ms=7000" + ids);
  EXPECT_TRUE(has(longer.out, "-> set timing.max_ttl_ms to 7000, as the other gateways have it; if ")) << longer.out;
  EXPECT_FALSE(has(longer.out, " DEL ")) << longer.out;
  const Ended five = with_desc("v1 n=5 q=3 max_ttl_ms=7000" + ids);
  EXPECT_TRUE(has(five.out, "-> compare the files of all gateways; if this file is to replace the other one: redlock "
                            "reconfigure OTHER THIS; else redlock doctor -v says when the record may be deleted\n"))
      << five.out;
  // INFO is denied: five checks of two masters follow from it.
  for (unsigned m = 0; m < 2; ++m) site[m].command({"ACL", "SETUSER", "default", "-info"});
  const Ended denied = site.run({"doctor"}, config);
  EXPECT_TRUE(has(denied.out, "-> an operator grants them: ACL SETUSER default +info, then ACL SAVE (without "
                              "an aclfile CONFIG REWRITE)\n")) << denied.out;
  EXPECT_TELLS(denied, "skipped", "version", "(m0, m1), role (m0, m1), ");
  EXPECT_TRUE(has(denied.out, "persistence (m0, m1)\nskipped duplicate\n")) << denied.out;
  EXPECT_TRUE(has(denied.out, "-> mend what is above: these follow from it\n")) << denied.out;
  EXPECT_TRUE(has(denied.out, ", 0 unknown, ")) << denied.out;
}

// A command that a server does not know is named, and a commission or a run leads to its name.
TEST(ToolDoctor, ACommandThatWasRenamedAway) {
  ToolMasters site(1);
  RedisServer::Options options;
  options.args = {"--rename-command", "EVAL", "hidden-eval", "--rename-command", "ROLE", "hidden-role"};
  site.servers.push_back(std::make_unique<RedisServer>(options));
  const std::string config = site.file({1});
  const Ended doctor = site.run({"doctor"}, config);
  EXPECT_EQ(doctor.status, 69) << doctor.out;
  EXPECT_TELLS(doctor, "fail", "commands", "m1: not known there: eval role (without it a replica is noticed later)");
  EXPECT_TRUE(has(doctor.out, "-> give the command its name back (rename-command)")) << doctor.out;
  EXPECT_TRUE(has(doctor.out, "\nskipped guard\n")) << doctor.out;
  EXPECT_FALSE(has(doctor.out, "wait with a client running")) << "no wait ends it" << doctor.out;
  EXPECT_EQ(site[1].command({"DBSIZE"}), "0") << "it writes nothing";
  const Ended status = site.run({"status"}, config);
  EXPECT_TRUE(has(status.out, "  no client can lock there: it does not know EVAL\n")) << status.out;
  const Ended stated = site.run({"commission", "-y"}, config);
  EXPECT_EQ(stated.status, 69) << stated.out;
  EXPECT_TRUE(has(stated.out, "m1: answered an error: ERR unknown command ")) << stated.out;
  EXPECT_TRUE(has(stated.err, "commission: not all of them; redlock doctor says what to do")) << stated.err;
  const Ended ran = site.run({"run", "-n", "-t", "2400", "bus", "--", "true"}, site.file({1}, "", 5'000));
  EXPECT_EQ(ran.status, 69) << ran.err;
  EXPECT_TRUE(has(ran.err, "answered an error: ERR unknown command ")) << ran.err;
  EXPECT_TRUE(has(ran.err, "EVAL")) << ran.err;
  EXPECT_FALSE(has(ran.err, "with args")) << ran.err;
}

// A port for TLS closes the connection at any plain text, and a proxy at a command that it does not know.
TEST(ToolDoctor, APortForTlsIsNoProxy) {
  ToolMasters site(1);
  for (const bool is_proxy : {true, false}) {
    TcpPeer peer([is_proxy](int, std::string& in, std::string& out) {
      if (has(in, "PING") && is_proxy) out = "+PONG\r\n";
      return in.empty() || !out.empty() ? TcpPeer::Then::keep : TcpPeer::Then::close;
    });
    const std::string config = site.dir + "/peer.json";
    std::ofstream(config) << R"({"masters": [{"url": ")" << peer.url() << R"(", "name": "m0"}]})";
    const std::string is = is_proxy ? ", and answers PING: a proxy" : " and at PING: is it for TLS only?";
    const Ended doctor = site.run({"doctor"}, config);
    EXPECT_TELLS(doctor, "fail", "reach", "m0: closes the connection at HELLO" + is);
    EXPECT_EQ(has(doctor.out, "-> list the server itself"), is_proxy) << doctor.out;
    EXPECT_EQ(has(doctor.out, "-> a port for TLS only wants rediss://"), !is_proxy) << doctor.out;
    const Ended status = site.run({"status", "bus"}, config);
    EXPECT_TRUE(has(status.out, "  closes the connection at HELLO" + is)) << status.out;
    EXPECT_TRUE(has(status.out, "bus: unknown: 1/1 cannot be asked (closes the connection at")) << status.out;
  }
}

// A sentinel's HELLO has a mode, and no role.
TEST(ToolDoctor, ASentinelIsNamed) {
  ToolMasters site(1);
  TcpPeer peer([](int, std::string& in, std::string& out) {
    if (!in.empty()) out = "*2\r\n$4\r\nmode\r\n$8\r\nsentinel\r\n";
    return TcpPeer::Then::keep;
  });
  const std::string config = site.dir + "/peer.json";
  std::ofstream(config) << R"({"masters": [{"url": ")" << peer.url() << R"(", "name": "m0"}]})";
  const Ended doctor = site.run({"doctor"}, config);
  EXPECT_TELLS(doctor, "fail", "reach", "m0: is a cluster node or a sentinel, not a standalone master");
  EXPECT_TRUE(has(doctor.out, "-> list standalone masters, no cluster nodes and no sentinels")) << doctor.out;
}

// INFO of Valkey and of Redict has another name for the mode; a client reads it from HELLO. Here Redis answers with
// their names, and one byte less at the end of the line.
TEST(ToolDoctor, TheModeIsThatOfHello) {
  ToolMasters site(1);
  commission(site, site.file({0}));
  for (const char* const line : {"redict_mode:standalone\n", "server_mode:standalone\n"}) {
    Proxy proxy(site[0].port());
    const std::string config = site.dir + "/proxy.json";
    std::ofstream(config) << R"({"masters": [{"url": ")" << proxy.url() << R"(", "name": "m0"}],)"
                          << R"( "defaults": {"ttl_ms": 900}, "timing": {"max_ttl_ms": 1000}})";
    proxy.answer_instead("redis_mode:standalone\r\n", line);
    const Ended ended = site.run({"doctor", "-v"}, config);
    EXPECT_EQ(ended.status, 0) << ended.out;
    EXPECT_TELLS(ended, "ok", "role", "m0: master, standalone");
    EXPECT_TRUE(has(site.run({"status"}, config).out, "1 of 1 masters vote"));
  }
}

TEST(ToolDoctor, AServerThatEndsIdleConnections) {
  ToolMasters site(1);
  const std::string config = site.file({0});
  commission(site, config);
  EXPECT_TELLS(site.run({"doctor", "-v"}, config), "ok", "timeout", "m0: timeout 0");
  site[0].command({"CONFIG", "SET", "timeout", "60"});
  const Ended ended = site.run({"doctor"}, config);
  EXPECT_EQ(ended.status, 0) << ended.out;
  EXPECT_TELLS(ended, "warn", "timeout", "m0: timeout 60");
  site[0].command({"ACL", "SETUSER", "default", "-config"});
  EXPECT_FALSE(has(site.run({"doctor"}, config).out, "timeout 60")) << "left out where it is denied";
}

// The guide's users.acl, and its configuration.
TEST(ToolDoctor, WithTheGuidesPermissionsNothingIsUnknown) {
  ToolMasters site(1);
  commission(site, site.file({0}));
  const std::string acl = text_of_file(REDLOCK_SOURCE_DIR "/examples/site/users.acl");
  const size_t begin = acl.find("user gateway "), end = acl.find('\n', begin);
  ASSERT_NE(begin, std::string::npos);
  Words words = {"ACL", "SETUSER"};
  std::stringstream rest(acl.substr(begin + 5, end - begin - 5));
  for (std::string word; rest >> word;) words.push_back(word);
  ASSERT_EQ(site[0].command(words), "OK");
  const std::string path = site.dir + "/gateway.json";
  std::ofstream(path) << R"({"masters": [{"url": "redis://gateway:change-me@127.0.0.1:)" << site[0].port()
                      << R"(", "name": "m0"}], "timing": {"max_ttl_ms": 1000}, "defaults": {"ttl_ms": 900}})";
  ::chmod(path.c_str(), 0600);
  const Ended ended = site.run({"doctor"}, path);
  EXPECT_EQ(ended.status, 0) << ended.out;
  EXPECT_TRUE(has(ended.out, " 0 unknown, ")) << ended.out;
  EXPECT_TRUE(has(ended.out, "(keys of resources were not tried: redlock doctor RES...)\n")) << ended.out;
  const Ended named = site.run({"doctor", "plant1/bus"}, path);
  EXPECT_TRUE(has(named.out, " 0 unknown, ")) << named.out;
  EXPECT_FALSE(has(named.out, "RES...")) << named.out;
  EXPECT_TELLS(site.run({"doctor", "kitchen"}, path), "fail", "acl_keys", "m0: denied: kitchen");
}

TEST(ToolDoctor, EvictionReplicaAndDuplicate) {
  ToolMasters site(4);
  const std::string config = site.file({0, 1, 2});
  commission(site, config);
  site[0].command({"CONFIG", "SET", "maxmemory", "100mb"});
  EXPECT_EQ(site.run({"doctor", "-v"}, config).status, 0) << "it refuses writes, and evicts nothing";
  site[0].command({"CONFIG", "SET", "maxmemory-policy", "volatile-lru"});
  const Ended evicts = site.run({"doctor", "-v"}, config);
  EXPECT_EQ(evicts.status, 78);
  EXPECT_TELLS(evicts, "fail", "eviction", "m0: maxmemory 104857600, policy volatile-lru");
  EXPECT_TRUE(has(evicts.out, "maxmemory-policy noeviction")) << evicts.out;
  site[0].command({"CONFIG", "SET", "maxmemory", "0"});

  site[3].command({"REPLICAOF", "127.0.0.1", std::to_string(site[1].port())});
  ASSERT_TRUE(eventually([&] { return has(site[1].command({"INFO", "replication"}), "connected_slaves:1"); }));
  EXPECT_TELLS(site.run({"doctor", "-v"}, config), "warn", "replicas", "m1: 1 replica(s)");
  site[2].command({"REPLICAOF", "127.0.0.1", std::to_string(site[1].port())});
  const Ended replica = site.run({"doctor", "-v"}, config);
  EXPECT_EQ(replica.status, 69);
  EXPECT_TELLS(replica, "fail", "role", "m2: slave of 127.0.0.1:" + std::to_string(site[1].port()) + " (m1), ");
  EXPECT_TELLS(replica, "fail", "guard", "m1: watched: at most");  // its replication id has changed
  EXPECT_FALSE(has(replica.out, "redlock commission")) << replica.out;

  Proxy proxy(site[0].port());
  const std::string twice = site.dir + "/twice.json";
  std::ofstream(twice) << R"({"masters": [")" << site[0].url() << R"(", ")" << proxy.url() << R"("]})";
  const Ended duplicate = site.run({"doctor", "-v"}, twice);
  EXPECT_EQ(duplicate.status, 78);
  EXPECT_TELLS(duplicate, "fail", "duplicate", "is the same server as 127.0.0.1:" + std::to_string(site[0].port()));
  EXPECT_TELLS(duplicate, "warn", "masters", "2 master(s)");
}

TEST(ToolDoctor, GuardRecordAndMastersThatAreDown) {
  ToolMasters site(3);
  const std::string config = site.file({0, 1, 2});
  const Ended fresh = site.run({"doctor", "-v"}, config);
  EXPECT_EQ(fresh.status, 76);
  EXPECT_TELLS(fresh, "fail", "guard", "m0: not watched yet: 1.0 s");
  EXPECT_TELLS(fresh, "ok", "record", "m0: none yet");
  EXPECT_FALSE(site[0].exists("redlock::meta")) << "it writes nothing";
  commission(site, config);

  site[0].restart();
  const Ended restarted = site.run({"doctor", "-v"}, config);
  EXPECT_EQ(restarted.status, 0) << "two vote";
  EXPECT_TELLS(restarted, "warn", "guard", "m0: not watched yet, and empty after its server's start: 1.0 s");
  EXPECT_FALSE(has(restarted.out, "redlock commission")) << "the site is not new: " << restarted.out;
  EXPECT_TRUE(has(site.run({"status"}, config).out, "  empty after its server's start: the guard has not begun; "));
  site[0].command({"HSET", "redlock::meta", "desc", site.desc(1), "q", "0123456789abcdef"});
  EXPECT_TELLS(site.run({"doctor", "-v"}, config), "warn", "guard",
               "m0: watched after its server's start: at most 1.0 s to go");

  site[0].command({"HSET", "redlock::meta", "desc", "v1 n=3 q=2 max_ttl_ms=1000 ids=0123456789abcdef"});
  EXPECT_TELLS(site.run({"doctor", "-v"}, config), "fail", "record", "3 master(s), max_ttl_ms 1000, with other names");

  site[0].kill_hard();
  const Ended down = site.run({"doctor", "-v"}, config);
  EXPECT_EQ(down.status, 0);
  EXPECT_TELLS(down, "warn", "reach", "m0: the connection was refused");
  EXPECT_TELLS(down, "skipped", "duplicate", "2 of 3 run ids are known");
  site[1].freeze();
  const Ended two_down = site.run({"doctor", "-v"}, config);
  EXPECT_EQ(two_down.status, 69);
  EXPECT_TELLS(two_down, "fail", "reach", "m1: ");
  EXPECT_TRUE(has(two_down.out, "-> start the server, correct address and port ")) << two_down.out;
  EXPECT_TRUE(has(two_down.out, "-> it is reached, and is silent: ")) << two_down.out;
}

// The doctor's row, and what to do, by the record and by whether the file's masters serve its clients.
TEST(ToolDoctor, WhoMayDeleteARecordAndWhen) {
  ToolMasters site(3);
  const std::string config = site.file({0, 1, 2});
  commission(site, config);
  const std::string ours = site.desc(0), other = "v1 n=5 q=3 max_ttl_ms=7000 ids=0123456789abcdef";
  const std::string line = ": redis-cli -h 127.0.0.1 -p " + std::to_string(site[0].port()) + " DEL 'redlock::meta'\n";
  const auto row = [&](unsigned masters, const std::string& desc) {
    for (unsigned m = 0; m < 3; ++m) site[m].command({"HSET", "redlock::meta", "desc", m < masters ? desc : ours});
    return site.run({"doctor", "-v"}, config);
  };
  const std::string seconds = " and no gateway of the other configuration has run for 7 s (a stopped process";

  const std::string third = "or, where the gateways have a third file: if no change is under way," + seconds;
  const std::string strangers = "moving v1 n=1 q=1 max_ttl_ms=2500 ids=00 > " + other;
  const struct {
    unsigned masters;
    std::string desc;
    int status;
    const char *level, *saw;
    std::string advice;
  } rows[] = {
      {1, other, 78, "fail",
       "of another configuration: 5 master(s), max_ttl_ms 7000; this one: 3 master(s), max_ttl_ms 1000",
       "-> compare the files of all gateways; if no change is under way," + seconds},
      {2, other, 78, "fail", "of another configuration",
       "-> compare the files of all gateways; if this file is to replace the other one: redlock reconfigure OTHER "
       "THIS. If the other file is lost: end its gateways, and then, if no"},
      {1, "moving " + ours + " > " + other, 0, "warn", "which has ended without it or has only begun",
       "-> repeat or undo the change (redlock reconfigure); or, if no change is under way," + seconds},
      {2, "moving " + other + " > " + ours, 76, "fail", "is under way, or was given up: nobody may be able to lock",
       "Start no gateway with NEW before; " + third},
      {2, "left " + ours + " > " + other, 80, "fail", "the site was changed to 5 masters: copy its redlock.json here (",
       "redlock reconfigure NEW OLD; " + third},
      // The longer of both ttls; a day where the record does not tell.
      {1, strangers, 78, "fail", "was left by a change between two other configurations",
       "-> if no change is under way," + seconds},
      // Somebody with a third file, while a change is under way.
      {3, strangers, 78, "fail", "", "-> compare the files of all gateways; if no change is under way," + seconds},
      {1, "v9 of later", 78, "fail", "", "has run for 86400 s"},
  };
  for (const auto& one : rows) {
    const Ended ended = row(one.masters, one.desc);
    EXPECT_EQ(ended.status, one.status) << one.desc;
    EXPECT_TELLS(ended, one.level, "record", one.saw);
    EXPECT_TRUE(has(ended.out, one.advice)) << one.desc << "\n" << ended.out;
    EXPECT_TRUE(has(ended.out, line)) << ended.out;
  }
}

// A command that has ended has left a visit: from it the countdown of this machine is known.
TEST(ToolDoctor, AVisitTellsTheCountdown) {
  ToolMasters site(1);
  const std::string config = site.file({0}, "", 25'000);  // watched for 28 s: between 20 and 30 s to go, below
  const Ended command = site.run({"run", "-n", "-t", "3000", "bus", "--", "true"}, config);
  EXPECT_EQ(command.status, 76) << command.err;
  const Ended ended = site.run({"doctor", "-v"}, config);
  EXPECT_EQ(ended.status, 76);
  EXPECT_TELLS(ended, "fail", "guard", "m0: watched after its server's start: 2");
  const Ended other = site.run({"doctor"}, site.file({0}, R"(, "key_prefix": "x")"));
  EXPECT_TELLS(other, "fail", "guard", "m0: not watched yet");
  EXPECT_TRUE(has(site.run({"status"}, config).out, "  the guard watches after its server's start; 2"));
}

// "plant1/" + "bus" and "" + "plant1/bus" are one key with two guards.
TEST(ToolDoctor, APrefixThatBeginsAnother) {
  ToolMasters site(1);
  const auto with = [&](const std::string& prefix) { return site.file({0}, R"(, "key_prefix": ")" + prefix + "\""); };
  const std::string none = site.file({0}), plant = with("plant1/"), other = with("plant2/");
  for (const std::string& config : {plant, other}) commission(site, config);
  EXPECT_TELLS(site.run({"doctor", "-v"}, plant), "ok", "prefix", "m0: no record of a prefix");
  const Ended line = site.run({"doctor", "-v"}, with("plant1/line*"));
  EXPECT_TELLS(line, "warn", "prefix", R"(m0: key_prefix "plant1/" has a record here, and begins this one)");
  EXPECT_TELLS(site.run({"doctor", "-v"}, none), "warn", "prefix", R"(/" has a record here, and this one begins it)");
  EXPECT_TELLS(site.run({"doctor", "-v"}, with("p")), "warn", "prefix", "and this one begins it");
  EXPECT_TELLS(site.run({"doctor", "-v"}, with("pl*")), "ok", "prefix", "m0: no record of a prefix");
  commission(site, none);
  const Ended ended = site.run({"doctor", "-v"}, plant);
  EXPECT_EQ(ended.status, 0) << "who uses no such resource has nothing to fear";
  EXPECT_TELLS(ended, "warn", "prefix", R"(key_prefix "" has a record here, and begins this)");
  site[0].command({"ACL", "SETUSER", "default", "-scan"});
  EXPECT_TELLS(site.run({"doctor", "-v"}, other), "warn", "prefix", "key_prefix");
  EXPECT_TELLS(site.run({"doctor", "-v"}, none), "unknown", "prefix", "not told");
}

// Users with everything but some patterns of keys. One master, so that each check that fails counts. A doctor takes a
// second, so all of them look at the same time.
class ToolDoctorKeys : public ::testing::Test {
 protected:
  // A doctor who looks with a user of his own.
  class Doctor {
   public:
    Doctor(ToolDoctorKeys& test, const Words& patterns, const Words& resources = {}, const std::string& more = "")
        : program_(start(test, patterns, resources, more)) {}
    const Ended& ended() {
      if (program_ != nullptr) ended_.status = program_->exit_status();
      if (program_ != nullptr) ended_ = {ended_.status, program_->out(), program_->err()};
      program_.reset();
      return ended_;
    }

   private:
    static std::unique_ptr<Program> start(ToolDoctorKeys& test, const Words& patterns, const Words& resources,
                                          const std::string& more) {
      const std::string name = "u" + std::to_string(++test.users_), path = test.site_.dir + "/" + name + ".json";
      EXPECT_EQ(test.site_[0].command(Words{"ACL", "SETUSER", name, "on", ">pw", "+@all"} + patterns), "OK");
      std::ofstream(path) << R"({"masters": [{"url": "redis://)" << name << ":pw@127.0.0.1:" << test.site_[0].port()
                          << R"(", "name": "m0"}], "timing": {"max_ttl_ms": 1000}, "defaults": {"ttl_ms": 900})" << more
                          << "}";
      ::chmod(path.c_str(), 0600);
      return std::make_unique<Program>(test.site_.words(Words{"doctor", "-v"} + resources, path), test.site_.dir);
    }
    std::unique_ptr<Program> program_;
    Ended ended_;
  };

  void SetUp() override {
    commission(site_, site_.file({0}));
    site_.set(0, "plant1/bus", value_of("gw-2"), 600'000);
  }
  void expect(Doctor& doctor, int status, const std::string& level, const std::string& saw) {
    EXPECT_EQ(doctor.ended().status, status) << doctor.ended().out;
    EXPECT_TELLS(doctor.ended(), level, "acl_keys", "m0: " + saw);
    EXPECT_TELLS(doctor.ended(), "ok", "acl", "m0: all 22 permissions");
  }

  ToolMasters site_{1};
  int users_ = 0;
};

TEST_F(ToolDoctorKeys, EachKindOfKeyThatIsMissing) {
  const std::string record = site_[0].command({"HGETALL", "redlock::meta"});
  const Words lock = {"~plant1/*"}, meta = {"~redlock::meta"}, seen = {"~redlock::seen"}, fence = {"~redlock::fence"};
  Doctor all(*this, lock + meta + seen + fence, {"plant1/bus", "plant1/valve"});
  Doctor no_meta(*this, lock + seen + fence, {"plant1/bus"});
  Doctor no_seen(*this, lock + meta + fence, {"plant1/bus"});
  Doctor no_fence(*this, lock + meta + seen, {"plant1/bus"});
  Doctor no_lock(*this, meta + seen + fence, {"plant1/bus", "b\x1bus"});
  Doctor no_guard(*this, lock, {"plant1/bus"}, R"(, "guard": "off")");
  expect(all, 0, "ok", "5 keys can be read and written");
  expect(no_meta, 77, "fail", "denied: redlock::meta");
  expect(no_seen, 77, "fail", "denied: redlock::seen");
  expect(no_fence, 0, "warn", "denied: redlock::fence (without it no fencing tokens)");
  expect(no_lock, 77, "fail", "denied: plant1/bus b\\x1bus");
  expect(no_guard, 0, "warn", "denied: redlock::fence (");
  const auto advises = [](Doctor& doctor, const std::string& what) {
    EXPECT_TRUE(has(doctor.ended().out, "-> " + what + ", then ACL SAVE (")) << doctor.ended().out;
  };
  advises(no_meta, R"(an operator grants them: ACL SETUSER u2 '~redlock::*')");
  advises(no_lock, R"(an operator grants them: ACL SETUSER u5 '~plant1/bus' $'~b\x1bus')");

  // What was tried has changed nothing.
  EXPECT_EQ(site_[0].command({"GET", "plant1/bus"}), value_of("gw-2"));
  EXPECT_GT(std::stoll(site_[0].command({"PTTL", "plant1/bus"})), 60'000);
  EXPECT_EQ(site_[0].command({"HGETALL", "redlock::meta"}), record);
  EXPECT_EQ(site_[0].command({"DBSIZE"}), "2");
}

TEST_F(ToolDoctorKeys, APatternForCertainResourcesNeedsTheirNames) {
  const std::string prefix = R"(, "guard": "off", "key_prefix": "plant1/")";
  Doctor guess(*this, {"~plant1/*", "~redlock::*"});
  Doctor prefixed(*this, {"~plant1/*", "~redlock:plant1/:*"}, {}, prefix);
  Doctor other_prefix(*this, {"~*bus", "~redlock::*"}, {"bus", "valve"}, prefix);
  expect(guess, 0, "ok", "3 keys can be read and written");
  EXPECT_TRUE(has(guess.ended().out, "(keys of resources were not tried: redlock doctor RES...)")) << guess.ended().out;
  expect(prefixed, 0, "ok", "4 keys");
  expect(other_prefix, 77, "fail", "denied: plant1/valve redlock:plant1/:fence (");
  // The file has another prefix than the user's patterns and the other clients.
  Doctor wrong(*this, {"~plant1/*", "~redlock::*"}, {"plant1/bus"}, R"(, "key_prefix": "plant1")");
  expect(wrong, 77, "fail", "denied: redlock:plant1:meta redlock:plant1:seen plant1plant1/bus redlock:plant1:fence (");
  EXPECT_TRUE(has(wrong.ended().out, "-> this user's patterns fit key_prefix \"\", of which clients were here, and not "
                                     "\"plant1\": correct key_prefix in the file; or, if"))
      << wrong.ended().out;
  EXPECT_FALSE(tells(wrong.ended(), "warn", "prefix", "")) << "the same again";
}

TEST_F(ToolDoctorKeys, ReadingAloneIsNotEnough) {
  if (site_[0].command({"ACL", "SETUSER", "v", "%R~redlock::*"}) != "OK") GTEST_SKIP() << "before Redis 7.0";
  Doctor reads(*this, {"%R~redlock::*", "~plant1/*"}, {"plant1/bus"});
  Doctor writes(*this, {"~redlock::*", "%W~plant1/*"}, {"plant1/bus"});
  expect(reads, 77, "fail", "denied: redlock::meta redlock::seen redlock::fence (without");
  expect(writes, 77, "fail", "denied: plant1/bus");
}

TEST(ToolDoctor, DeniedIsNeverOk) {
  ToolMasters site(1);
  const std::string port = std::to_string(site[0].port());
  site[0].command({"ACL", "SETUSER", "poor", "on", ">pw", "~*", "-@all", "+get", "+set"});
  const std::string poor = site.dir + "/poor.json";
  std::ofstream(poor) << R"({"masters": ["redis://poor:pw@127.0.0.1:)" << port << R"("]})";
  ::chmod(poor.c_str(), 0600);
  const Ended denied = site.run({"doctor", "-v"}, poor);
  EXPECT_EQ(denied.status, 77);
  EXPECT_TELLS(denied, "fail", "acl", "denied: +del +exists");
  for (const char* id :
       {"version", "role", "replicas", "eviction", "persistence", "record", "guard", "clock", "acl_keys"}) {
    EXPECT_TELLS(denied, "skipped", id, "");
    EXPECT_FALSE(tells(denied, "ok", id, "")) << id;
  }
  EXPECT_TELLS(denied, "unknown", "prefix", "not told");
  EXPECT_TELLS(denied, "skipped", "duplicate", "0 of 1");
  EXPECT_TELLS(denied, "ok", "gw_secrets", "others can read no password");
  ::chmod(poor.c_str(), 0644);
  const Ended open_to_all = site.run({"doctor", "-v"}, poor);
  EXPECT_EQ(open_to_all.status, 78);
  EXPECT_NE(open_to_all.err.find("others can read its password; type: chmod o-r " + poor), std::string::npos);

  set_user(site[0], "poor", {"+@all", "-client|kill", "-ping"});
  ::chmod(poor.c_str(), 0600);
  const Ended less = site.run({"doctor", "-v"}, poor);
  EXPECT_TELLS(less, "warn", "acl", "+client|kill (without it");
  EXPECT_TRUE(has(less.out, "ACL SETUSER poor +ping '+client|kill', then ACL SAVE (")) << less.out;
  EXPECT_EQ(less.status, 76) << "its guard alone is missing";

  const std::string wrong = site.dir + "/wrong.json";
  std::ofstream(wrong) << R"({"masters": ["redis://poor:no@127.0.0.1:)" << port << R"("]})";
  ::chmod(wrong.c_str(), 0600);
  const Ended refused = site.run({"doctor", "-v"}, wrong);
  EXPECT_EQ(refused.status, 77);
  EXPECT_TELLS(refused, "fail", "reach", "user name or password was refused");
}

}  // namespace
}  // namespace redlock::test
