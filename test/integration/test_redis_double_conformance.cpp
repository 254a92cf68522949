// SPDX-License-Identifier: MIT
//
// What the double answers is what Redis answers. The same requests go to a real server and to the double, step by step
// and over several connections, and the bytes that come back are compared; pushes included, because after each step
// every connection is asked for a PONG, which nothing of that step can follow. Only what must differ is masked: client
// ids, times, the text of INFO.
#include <gtest/gtest.h>

#include <filesystem>

#include "support/redis_double.hpp"
#include "support/redis_server.hpp"

namespace redlock::test {
namespace {

struct Step {
  size_t conn;
  std::vector<Args> commands;  // one write
};

// Client ids differ: HELLO's "id" is read as 0.
std::string masked(std::string bytes) {
  static const std::string mark = "$2\r\nid\r\n:";
  for (size_t at = bytes.find(mark); at != std::string::npos; at = bytes.find(mark, at + 1)) {
    const size_t number = at + mark.size();
    bytes.replace(number, bytes.find('\r', number) - number, "0");
  }
  return bytes;
}

std::string wire(const std::vector<Args>& commands) {
  std::string bytes;
  for (const Args& command : commands) bytes += resp_command(command);
  return bytes;
}

std::string readable(const std::string& bytes) {
  std::string text;
  for (const char c : bytes)
    text += c == '\r' ? std::string("\\r") : c == '\n' ? std::string("\\n") : std::string(1, c);
  return text;
}

class Conformance : public ::testing::Test {
 protected:
  void start(RedisServer::Options options = {}) { real_ = std::make_unique<RedisServer>(std::move(options)); }

  void open_connections(size_t count) {
    while (real_conns_.size() < count) {
      real_conns_.push_back(real_->connect());
      double_conns_.push_back(redis.open(now));
    }
  }

  std::string from_double(size_t conn) {
    std::string bytes = redis.out(double_conns_[conn]);
    redis.out(double_conns_[conn]).clear();
    return bytes;
  }

  void compare(const std::vector<Step>& steps) {
    const std::string ping = resp_command({"PING"});
    for (const Step& step : steps) {
      open_connections(step.conn + 1);
      const std::string request = wire(step.commands);
      std::vector<std::string> real(real_conns_.size());
      real_conns_[step.conn].send(request);
      redis.receive(double_conns_[step.conn], request, now);
      real[step.conn] = real_conns_[step.conn].receive(step.commands.size());
      for (size_t conn = 0; conn < real.size(); ++conn) {
        real_conns_[conn].send(ping);
        redis.receive(double_conns_[conn], ping, now);
        real[conn] += real_conns_[conn].receive(1);
        EXPECT_EQ(readable(masked(real[conn])), readable(masked(from_double(conn))))
            << "conn " << conn << " after " << step.conn << " said " << readable(request);
      }
    }
  }

  // Bytes as they are, up to the reply of one request or the end of the connection.
  void compare_bytes(const std::string& bytes, size_t replies) {
    RedisConnection conn = real_->connect();
    const int twin = redis.open(now);
    conn.send(bytes);
    redis.receive(twin, bytes, now);
    EXPECT_EQ(readable(conn.receive(replies)), readable(redis.out(twin))) << readable(bytes);
    redis.close(twin);
  }

  RedisServer& real() { return *real_; }

  TrueTime now = 0;
  RedisDouble redis;

 private:
  std::unique_ptr<RedisServer> real_;
  std::vector<RedisConnection> real_conns_;
  std::vector<int> double_conns_;
};

// Two connections: 0 speaks RESP2, 1 speaks RESP3.
std::vector<Step> in_both_protocols(const std::vector<Args>& commands) {
  std::vector<Step> steps = {{1, {{"HELLO", "3"}}}};
  for (size_t conn = 0; conn < 2; ++conn) {
    for (const Args& command : commands) steps.push_back({conn, {command}});
    steps.push_back({conn, {{"FLUSHALL"}}});
  }
  return steps;
}

TEST_F(Conformance, Keys) {
  start();
  compare(in_both_protocols({
      {"SET", "k", "one", "NX", "PX", "100000"},
      {"SET", "k", "two", "NX", "PX", "100000"},
      {"SET", "k", "two", "XX"},
      {"SET", "none", "two", "XX"},
      {"set", "K", "", "px", "100000", "nx"},
      {"GET", "k"},
      {"GET", "K"},
      {"GET", "none"},
      {"PTTL", "k"},
      {"PTTL", "none"},
      {"PEXPIRE", "k", "500000"},
      {"PEXPIRE", "none", "500000"},
      {"PEXPIRE", "k", "400000", "GT"},
      {"PEXPIRE", "k", "600000", "GT"},
      {"PEXPIRE", "k", "700000", "LT"},
      {"PEXPIRE", "k", "700000", "NX"},
      {"PEXPIRE", "K", "600000", "XX"},
      {"EXISTS", "k", "k", "none"},
      {"DEL", "k", "none", "K"},
      {"SET", "k", "v"},
      {"PTTL", "k"},
      {"PEXPIRE", "k", "600000", "GT"},
      {"PEXPIRE", "k", "-1"},
      {"GET", "k"},
      {"SET", "k", "v", "EX", "100"},
      {"SET", "k", "w", "KEEPTTL"},
      {"SET", std::string("a\0b\r\n", 5), std::string("\xff\0\r\n", 4)},
      {"GET", std::string("a\0b\r\n", 5)},
  }));
}

TEST_F(Conformance, Errors) {
  start();
  compare(in_both_protocols({
      {"FOO", "a", "b"},
      {"foo"},
      {"SET", "k"},
      {"SET", "k", "v", "PX", "0"},
      {"SET", "k", "v", "PX", "-5"},
      {"SET", "k", "v", "PX", "x"},
      {"SET", "k", "v", "PX", "01"},
      {"SET", "k", "v", "PX", "9223372036854775807"},
      {"SET", "k", "v", "PX", "9223372036854775808"},
      {"SET", "k", "v", "NX", "XX"},
      {"SET", "k", "v", "PX"},
      {"SET", "k", "v", "PX", "5", "EX", "5"},
      {"SET", "k", "v", "FOO"},
      {"PEXPIRE", "k", "x"},
      {"PEXPIRE", "k", "100", "NX", "XX"},
      {"PEXPIRE", "k", "100", "GT", "LT"},
      {"PEXPIRE", "k", "100", "FOO"},
      {"GET", "k", "v"},
      {"DEL"},
      {"TIME", "x"},
      {"ROLE", "x"},
      {"PING", "a", "b"},
      {"PING", "nonce"},
      {"FLUSHALL", "x"},
      {"HSET", "h", "f", "v"},
      {"HSET", "h", "f"},
      {"GET", "h"},
      {"SET", "h", "v", "NX"},
      {"PTTL", "h"},
      {"INFO", "nosuch"},
      {"CLIENT"},
      {"CLIENT", "FOO"},
      {"CLIENT", "SETINFO", "LIB-NAME", "x"},
      {"CLIENT", "GETNAME"},
      {"CLIENT", "SETNAME", "gw-1:a"},
      {"CLIENT", "SETNAME", "a b"},
      {"CLIENT", "SETNAME"},
      {"CLIENT", "GETNAME"},
      {"CLIENT", "SETNAME", ""},
      {"CLIENT", "GETNAME"},
      {"ROLE"},
      {"HELLO"},
      {"HELLO", "4"},
      {"HELLO", "x"},
      {"HELLO", "3", "FOO"},
      {"HELLO", "3", "SETNAME"},
      {"AUTH", "x"},
      {"AUTH", "default", "x"},
      {"AUTH", "nobody", "x"},
      {"AUTH", "a", "b", "c"},
  }));
}

TEST_F(Conformance, HelloInOneGo) {
  start();
  compare({{0, {{"HELLO", "3", "AUTH", "default", "", "SETNAME", "gw"}, {"CLIENT", "GETNAME"}, {"GET", "none"}}},
           {0, {{"HELLO", "2"}, {"GET", "none"}}}});
}

TEST_F(Conformance, BrokenRequests) {
  start();
  for (const char* bytes : {"*1\r\n+PING\r\n", "*x\r\n", "*1\r\n$-1\r\n", "*1\r\n$x\r\n", "*3000000000\r\n",
                            "*1\r\n$600000000\r\n", "*0\r\n*-1\r\nPING\r\n", "\r\n PING  \r\n", "*1\r\n$0\r\n\r\n"}) {
    compare_bytes(bytes, 1);
  }
}

TEST_F(Conformance, Password) {
  RedisServer::Options options;
  options.password = "secret";
  start(options);
  redis.knobs.password = "secret";
  compare({
      {0, {{"PING"}}},
      {0, {{"FOO"}}},
      {0, {{"SET", "k"}}},
      {0, {{"CLIENT", "ID"}}},
      {0, {{"HELLO"}}},
      {0, {{"HELLO", "3"}}},
      {0, {{"HELLO", "4"}}},
      {0, {{"AUTH", "wrong"}}},
      {0, {{"AUTH", "nobody", "secret"}}},
      {0, {{"HELLO", "3", "AUTH", "default", "wrong"}}},
      {0, {{"GET", "k"}}},
      {0, {{"AUTH", "secret"}, {"GET", "k"}}},
      {1, {{"HELLO", "3", "AUTH", "default", "secret"}, {"GET", "k"}}},
      {1, {{"AUTH", "wrong"}, {"GET", "k"}}},
  });
  compare_bytes("*11\r\n", 1);
  compare_bytes("*2\r\n$20000\r\n", 1);
}

const char* const kRelease = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end return 0";

class ScriptConformance : public Conformance {
 protected:
  ScriptConformance() {
    redis.register_script(kRelease, [](ScriptCall& call) {
      const Reply held = call.call({"GET", call.keys.at(0)});
      if (held.kind != Reply::bulk || held.text != call.argv.at(0)) return Reply::make_integer(0);
      return call.call({"DEL", call.keys.at(0)});
    });
    redis.register_script("return redis.call('set',KEYS[1],'v')", [](ScriptCall& call) {
      return call.call({"SET", call.keys.at(0), "v"});
    });
    redis.register_script("return redis.call('pexpire',KEYS[1],'500000')", [](ScriptCall& call) {
      return call.call({"PEXPIRE", call.keys.at(0), "500000"});
    });
    redis.register_script("return false", [](ScriptCall&) { return Reply::make_nil(); });
  }
};

TEST_F(ScriptConformance, LoadEvalFlush) {
  start();
  const std::string sha = redis.register_script("return 1", [](ScriptCall&) { return Reply::make_integer(1); });
  compare(in_both_protocols({
      {"EVALSHA", sha, "0"},
      {"SCRIPT", "LOAD", "return 1"},
      {"SCRIPT", "LOAD", kRelease},
      {"EVALSHA", sha, "0"},
      {"EVALSHA", "E0E1F9FABFC9D4800C877A703B823AC0578FF8DB", "0"},
      {"EVALSHA", "abc", "0"},
      {"SCRIPT", "EXISTS", sha, "abc"},
      {"SCRIPT", "FLUSH", "x"},
      {"SCRIPT", "FLUSH"},
      {"EVALSHA", sha, "0"},
      {"EVAL", "return 1", "0"},
      {"EVALSHA", sha, "0"},
      {"EVAL", "return false", "0"},
      {"EVAL", "return 1", "2", "a"},
      {"EVAL", "return 1", "-1", "a"},
      {"EVAL", "return 1", "x"},
      {"EVAL", "return 1"},
      {"SCRIPT", "FOO"},
      {"SCRIPT", "LOAD"},
      {"SCRIPT"},
      {"SET", "k", "mine"},
      {"EVAL", kRelease, "1", "k", "other"},
      {"EVAL", kRelease, "1", "k", "mine"},
      {"EVAL", kRelease, "1", "k", "mine"},
      {"HSET", "k", "f", "v"},
      {"EVAL", kRelease, "1", "k", "mine"},
      {"SCRIPT", "FLUSH", "SYNC"},
  }));
}

TEST_F(ScriptConformance, Replica) {
  start();
  compare({{0, {{"SET", "k", "mine"}}}});
  real().command({"REPLICAOF", "127.0.0.1", "1"});
  redis.become_replica();
  compare(in_both_protocols({
      {"GET", "k"},
      {"SET", "k", "v", "NX"},
      {"DEL", "none"},
      {"PEXPIRE", "none", "5"},
      {"EVAL", kRelease, "1", "k", "other"},
      {"EVAL", kRelease, "1", "k", "mine"},
      {"EVAL", "return redis.call('set',KEYS[1],'v')", "1", "k"},
      {"ROLE"},
      {"HELLO"},
      {"PING"},
  }));
  real().command({"REPLICAOF", "NO", "ONE"});
  redis.become_master();
  compare({{0, {{"ROLE"}, {"SET", "k", "v"}}}});
}

TEST_F(ScriptConformance, ReplicaWithoutItsMaster) {
  RedisServer::Options options;
  options.args = {"--replica-serve-stale-data", "no"};
  start(options);
  compare({{0, {{"PING"}}}, {1, {{"HELLO", "3"}}}});
  real().command({"REPLICAOF", "127.0.0.1", "1"});
  redis.become_replica();
  redis.knobs.masterdown = true;
  compare({{0, {{"GET", "k"}}},
           {0, {{"SET", "k", "v", "NX"}}},
           {0, {{"EVAL", kRelease, "1", "k", "mine"}}},
           {0, {{"EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0"}}},
           {1, {{"SCRIPT", "LOAD", kRelease}}},
           {1, {{"CLIENT", "SETNAME", "x"}, {"HELLO"}}}});
}

TEST_F(ScriptConformance, FullMemory) {
  start();
  compare({{0, {{"SET", "k", "mine"}}}});
  real().command({"CONFIG", "SET", "maxmemory", "1"});
  redis.knobs.oom = true;
  compare(in_both_protocols({
      {"SET", "k", "v", "NX"},
      {"GET", "k"},
      {"PEXPIRE", "k", "100000"},
      {"HSET", "h", "f", "v"},
      {"EVAL", "return redis.call('set',KEYS[1],'v')", "1", "k"},
      {"EVAL", "return redis.call('pexpire',KEYS[1],'500000')", "1", "k"},
      {"EVAL", kRelease, "1", "k", "other"},
      {"EVAL", kRelease, "1", "k", "mine"},
      {"SCRIPT", "LOAD", kRelease},
      {"PING"},
  }));
}

TEST_F(ScriptConformance, TooFewReplicas) {
  RedisServer::Options options;
  options.args = {"--min-replicas-to-write", "1"};
  start(options);
  redis.knobs.noreplicas = true;
  compare({{0, {{"SET", "k", "v", "NX"}}},
           {0, {{"GET", "k"}}},
           {0, {{"EVAL", kRelease, "1", "k", "mine"}}},
           {0, {{"EVAL", "return redis.call('set',KEYS[1],'v')", "1", "k"}}},
           {0, {{"PING"}}}});
}

TEST_F(ScriptConformance, Cluster) {
  RedisServer::Options options;
  options.args = {"--cluster-enabled", "yes"};
  start(options);
  redis.knobs.cluster = true;
  compare({{0, {{"HELLO", "3"}}},
           {0, {{"SET", "k", "v", "NX"}}},
           {0, {{"GET", "k"}}},
           {0, {{"EVAL", kRelease, "1", "k", "mine"}}},
           {0, {{"PING"}}}});
}

TEST_F(ScriptConformance, Permissions) {
  start();
  real().command({"SET", "k", "mine"});
  redis.put("k", "mine", 0, now);
  real().command({"ACL", "SETUSER", "default", "-set", "-del", "-client|tracking", "-hello"});
  redis.knobs.noperm = {"SET", "DEL", "HELLO"};
  compare({{0, {{"SET", "k", "v"}}},
           {0, {{"GET", "k"}}},
           {0, {{"HELLO", "3"}}},
           {0, {{"EVAL", kRelease, "1", "k", "mine"}}},
           {0, {{"EVAL", "return redis.call('set',KEYS[1],'v')", "1", "k"}}}});
}

// A server that cannot save: the name of its snapshot is taken by a directory.
TEST_F(ScriptConformance, CannotPersist) {
  RedisServer::Options options;
  options.args = {"--dbfilename", "taken.rdb"};
  start(options);
  real().command({"SET", "k", "mine"});
  redis.put("k", "mine", 0, now);
  std::filesystem::create_directory(real().dir() + "/taken.rdb");
  EXPECT_EQ(real().command({"CONFIG", "SET", "save", "3600 1000000"}), "OK");
  real().command({"BGSAVE"});
  while (real().command({"INFO", "persistence"}).find("rdb_last_bgsave_status:err") == std::string::npos) {
  }
  redis.knobs.misconf = true;
  compare({{0, {{"SET", "k", "v", "NX"}}},
           {0, {{"GET", "k"}}},
           {0, {{"EVAL", kRelease, "1", "k", "mine"}}},
           {0, {{"EVAL", "return redis.call('set',KEYS[1],'v')", "1", "k"}}}});
}

std::vector<Step> trackers() {
  return {{0, {{"HELLO", "3"}, {"CLIENT", "TRACKING", "on", "OPTIN", "NOLOOP"}}},
          {1, {{"HELLO", "3"}, {"CLIENT", "TRACKING", "on", "OPTIN"}}},
          {2, {{"HELLO", "3"}}}};
}

TEST_F(ScriptConformance, TrackingPushes) {
  start();
  compare(trackers());
  const std::vector<std::vector<Args>> changes = {
      {{"DEL", "k"}},
      {{"SET", "k", "w", "PX", "100000"}},
      {{"SET", "k", "w", "NX"}},
      {{"PEXPIRE", "k", "200000"}},
      {{"PEXPIRE", "k", "100000", "GT"}},
      {{"EVAL", kRelease, "1", "k", "v"}},
      {{"EVAL", kRelease, "1", "k", "w"}},
      {{"FLUSHALL"}},
      {{"SET", "k", "1"}, {"SET", "k", "2"}, {"DEL", "k"}},
  };
  for (const std::vector<Args>& change : changes) {
    for (size_t author = 0; author < 3; ++author) {
      compare({{2, {{"SET", "k", "v"}}},
               {0, {{"CLIENT", "CACHING", "yes"}, {"PTTL", "k"}}},
               {1, {{"CLIENT", "CACHING", "yes"}, {"GET", "k"}}},
               {author, change},
               {2, {{"SET", "k", "after"}}},
               {2, {{"DEL", "k"}}}});
    }
  }
}

TEST_F(ScriptConformance, TrackingRegisters) {
  start();
  compare(trackers());
  const std::vector<std::vector<Args>> reads = {
      {{"CLIENT", "CACHING", "yes"}, {"PTTL", "k"}},
      {{"CLIENT", "CACHING", "yes"}, {"GET", "k"}},
      {{"CLIENT", "CACHING", "yes"}, {"EXISTS", "other", "k"}},
      {{"CLIENT", "CACHING", "yes"}, {"EVAL", kRelease, "1", "k", "none"}},
      {{"CLIENT", "CACHING", "yes"}, {"SET", "k", "w", "NX"}, {"GET", "k"}},
      {{"CLIENT", "CACHING", "yes"}, {"PING"}, {"GET", "k"}},
      {{"CLIENT", "CACHING", "yes"}, {"CLIENT", "SETNAME", "x"}, {"GET", "k"}},
      {{"CLIENT", "CACHING", "yes"}, {"GET", "other"}, {"GET", "k"}},
      {{"CLIENT", "CACHING", "yes"}, {"SET", "k", "w", "NX"}},
      {{"GET", "k"}},
      {{"CLIENT", "CACHING", "yes"}, {"HELLO", "3"}, {"GET", "k"}},
  };
  for (const std::vector<Args>& read : reads) {
    compare({{2, {{"SET", "k", "v"}}}, {0, read}, {2, {{"DEL", "k"}}}, {0, read}, {2, {{"SET", "k", "v"}}}});
  }
}

TEST_F(Conformance, TrackingErrors) {
  start();
  compare(in_both_protocols({
      {"CLIENT", "TRACKING"},
      {"CLIENT", "TRACKING", "maybe"},
      {"CLIENT", "TRACKING", "on", "FOO"},
      {"CLIENT", "TRACKING", "on", "OPTIN", "OPTOUT"},
      {"CLIENT", "CACHING"},
      {"CLIENT", "CACHING", "yes"},
      {"CLIENT", "TRACKING", "on"},
      {"CLIENT", "CACHING", "yes"},
      {"CLIENT", "CACHING", "no"},
      {"CLIENT", "CACHING", "maybe"},
      {"GET", "k"},
      {"SET", "k", "v"},
      {"CLIENT", "TRACKING", "off"},
      {"CLIENT", "TRACKING", "on", "OPTIN", "NOLOOP"},
      {"CLIENT", "CACHING", "no"},
      {"CLIENT", "TRACKING", "off"},
  }));
}

TEST_F(Conformance, ExpiryIsPushed) {
  start();
  compare(trackers());
  compare({{0, {{"SET", "k", "v", "PX", "200"}, {"CLIENT", "CACHING", "yes"}, {"EXISTS", "k"}}}});
  while (real().exists("k")) {
  }
  now += 1'000'000'000;
  redis.tick(now);
  compare({{2, {{"GET", "k"}}}, {2, {{"SET", "k", "v"}}}});
}

TEST_F(Conformance, TooManyClients) {
  RedisServer::Options options;
  options.args = {"--maxclients", "1"};
  start(options);
  real().command({"PING"});
  redis.knobs.max_clients = true;
  compare_bytes("", 1);
}

TEST_F(Conformance, InfoSaysWhatTheLibraryReads) {
  start();
  RedisConnection conn = real().connect();
  const std::string real_info = conn.command({"INFO"});
  const int twin = redis.open(now);
  redis.receive(twin, resp_command({"INFO"}), now);
  const std::string twin_info = redis.out(twin);
  for (const std::string field : {"redis_version:", "redis_mode:", "run_id:", "server_time_usec:", "uptime_in_seconds:",
                                  "role:", "master_replid:", "maxmemory:", "maxmemory_policy:", "loading:",
                                  "evicted_keys:", "aof_enabled:", "rdb_last_bgsave_status:"}) {
    EXPECT_NE(real_info.find("\r\n" + field), std::string::npos) << field;
    EXPECT_NE(twin_info.find("\r\n" + field), std::string::npos) << field;
  }
}

}  // namespace
}  // namespace redlock::test
