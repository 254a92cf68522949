// SPDX-License-Identifier: MIT
//
// What the double answers is what Redis answers, also where a script asks. The same requests go to a real server and to
// the double, step by step and over several connections, and the bytes that come back are compared; pushes included,
// because after each step every connection is asked for a PONG, which nothing of that step can follow. Only what must
// differ is masked: client ids, times, the text of INFO. Of another server than Redis 7.0 the outline is compared
// (support/server_kind.hpp): the same replies and pushes in the same order, whatever an error says behind its first
// word.
#include <gtest/gtest.h>

#include <filesystem>

#include "support/eventually.hpp"
#include "support/lua_scripts.hpp"
#include "support/redis_double.hpp"
#include "support/redis_server.hpp"
#include "support/server_kind.hpp"

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
  void start(RedisServer::Options options = {}) {
    real_ = std::make_unique<RedisServer>(std::move(options));
    kind = kind_of(*real_);
    if (!kind.is_seven()) speak_as(kind, redis);
  }

  void open_connections(size_t count) {
    while (real_conns_.size() < count) {
      real_conns_.push_back(real_->connect());
      double_conns_.push_back(redis.open(now));
    }
  }

  std::string comparable(const std::string& bytes) const {
    return readable(kind.is_seven() ? masked(bytes) : outline(masked(bytes)));
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
      std::vector<Args> commands = step.commands;
      std::erase_if(commands, [this](const Args& command) { return !knows(kind, command); });
      const std::string request = wire(commands);
      std::vector<std::string> real(real_conns_.size());
      real_conns_[step.conn].send(request);
      redis.receive(double_conns_[step.conn], request, now);
      real[step.conn] = real_conns_[step.conn].receive(commands.size());
      for (size_t conn = 0; conn < real.size(); ++conn) {
        real_conns_[conn].send(ping);
        redis.receive(double_conns_[conn], ping, now);
        real[conn] += real_conns_[conn].receive(1);
        EXPECT_EQ(comparable(real[conn]), comparable(from_double(conn)))
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
    EXPECT_EQ(comparable(conn.receive(replies)), comparable(redis.out(twin))) << readable(bytes);
    redis.close(twin);
  }

  RedisServer& real() { return *real_; }

  TrueTime now = 0;
  RedisDouble redis;
  ServerKind kind;

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
      {"HLEN", "h"},
      {"HLEN", "none"},
      {"HLEN"},
      {"SET", "h", "v", "NX"},
      {"SET", "k", "v"},
      {"HLEN", "k"},
      {"PTTL", "h"},
      {"INFO", "nosuch"},
      {"CLIENT"},
      {"CLIENT", "FOO"},
      {"CLIENT", "SETINFO", "LIB-NAME", "x"},
      {"CLIENT", "KILL"},
      {"CLIENT", "KILL", "ID"},
      {"CLIENT", "KILL", "ID", "0"},
      {"CLIENT", "KILL", "ID", "-1"},
      {"CLIENT", "KILL", "ID", "x"},
      {"CLIENT", "KILL", "ID", "9223372036854775808"},
      {"CLIENT", "KILL", "ID", "9223372036854775807"},
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
  // Valkey 9 tells a stranger nothing, not even that it does not know a command.
  if (!kind.valkey || kind.version < 90'000) compare({{0, {{"FOO"}}}, {0, {{"SET", "k"}}}});
  compare({
      {0, {{"PING"}}},
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

// An error that a script does not raise: among the elements of its answer, or as its answer.
const char* const kPcall = "return {redis.pcall('get',KEYS[1]),false,'behind it'}";
const char* const kReturnsError = "return redis.pcall('get',KEYS[1])";
const char* const kInfo =
    "local i=redis.pcall('info','replication') if type(i)=='table' then return i end "
    "local function has(t) return string.find(i,t,1,true) and 1 or 0 end "
    "return {has('role:master'),has('role:slave'),has('connected_slaves:0'),has('repl_backlog_active:0'),"
    "has('repl_backlog_active:1')}";

class ScriptConformance : public Conformance {
 protected:
  ScriptConformance() {
    for (const char* text : {kRelease, kPcall, kReturnsError, kInfo, "return redis.call('set',KEYS[1],'v')",
                             "return redis.call('pexpire',KEYS[1],'500000')", "return false"}) {
      register_script(redis, text);
    }
  }
};

TEST_F(ScriptConformance, LoadEvalFlush) {
  start();
  const std::string sha = register_script(redis, "return 1");
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

TEST_F(ScriptConformance, ErrorsThatAreNotRaised) {
  start();
  compare({{0, {{"HSET", "h", "f", "v"}, {"SET", "k", "mine"}}}, {1, {{"HELLO", "3"}}}});
  for (size_t conn = 0; conn < 2; ++conn) {
    for (const char* script : {kPcall, kReturnsError}) {
      for (const char* key : {"k", "none", "h"}) compare({{conn, {{"EVAL", script, "1", key}}}});
    }
  }
  real().command({"ACL", "SETUSER", "default", "-get", "-info"});
  redis.knobs.noperm = {"GET", "INFO"};
  for (size_t conn = 0; conn < 2; ++conn) {
    for (const char* script : {kPcall, kReturnsError, kInfo}) compare({{conn, {{"EVAL", script, "1", "k"}}}});
  }
}

// A replica that comes, and the backlog that it leaves.
TEST_F(ScriptConformance, InfoInScripts) {
  start();
  const std::vector<Step> ask = {{1, {{"HELLO", "3"}}}, {0, {{"EVAL", kInfo, "0"}}}, {1, {{"EVAL", kInfo, "0"}}}};
  const auto connected = [this](const char* replicas) {
    const std::string line = std::string("connected_slaves:") + replicas + "\r";
    EXPECT_TRUE(eventually([&] { return real().command({"INFO", "replication"}).find(line) != std::string::npos; }));
  };
  compare(ask);
  {
    RedisServer replica;
    replica.command({"REPLICAOF", "127.0.0.1", std::to_string(real().port())});
    connected("1");
    redis.attach_replica();
    compare(ask);
  }
  connected("0");
  redis.knobs.replicas = 0;
  compare(ask);
  real().command({"REPLICAOF", "127.0.0.1", "1"});
  redis.become_replica();
  compare(ask);
  real().command({"REPLICAOF", "NO", "ONE"});
  redis.become_master();
  compare(ask);
}

// What the interpreter makes of a reply, of a value that a script returns, and of an error: the double's is that of
// Redis. KEYS[1] is a string, KEYS[2] a hash, KEYS[3] nothing.
TEST_F(ScriptConformance, ValuesAndErrors) {
  start();
  Args values = {"return redis.call('get',KEYS[1])", "return redis.call('get',KEYS[3])",
                 "return redis.call('hmget',KEYS[2],'f','g')", "return redis.call('pttl',KEYS[3])",
                 "return redis.call('set',KEYS[1],'v')", "return redis.call('set',KEYS[1],'v','NX')",
                 "return type(redis.call('get',KEYS[3]))", "return redis.call('set',KEYS[1],'v').ok",
                 "return redis.pcall('get',KEYS[2]).err", "return type(redis.call('info','replication'))",
                 "return type(redis.call('time')[1])", "return #redis.call('hmget',KEYS[2],'f','g')",
                 // numbers
                 "return 1.9", "return -1.9", "return 2^53", "return '1'+1",
                 "redis.call('set',KEYS[1],9007199254740993) return redis.call('get',KEYS[1])",
                 // what a script returns
                 "return", "return nil", "return true", "return false", "return 'x'", "return {}",
                 "return {1,'x',true,false,nil,3}", "return {{1,{2}},{}}", "return {ok='fine'}",
                 "return {err='MY own'}", "return {ok=5}", "return {err=5}", "return {1,{err='MY own'},{ok='fine'}}",
                 "return {err='a\\r\\nb'}", "return {ok='a\\nb'}", "return redis.status_reply('OK')",
                 "return function() end", "return #KEYS..ARGV[1]", "return KEYS[4]", "return KEYS",
                 // errors
                 "return redis.call('get',KEYS[2])", "return redis.pcall('get',KEYS[2])",
                 "local one=redis.pcall('get',KEYS[2]) redis.call('set',KEYS[1],'behind it') return one",
                 "return pcall(redis.call,'get',KEYS[2])",
                 "redis.call('set',KEYS[1],'ahead of it') redis.call('get',KEYS[2]) return 1", "return redis.call()",
                 "return redis.call('get',KEYS[4])", "return redis.call('nosuch')", "return nil..'x'",
                 "return KEYS[4]..'x'", "error('boom')", "return local_that_is_none",
                 "global_that_is_none=1", "return io", "return string.format('%06d',12):sub(1,3)",
                 "return string.match('12 s','^(%d+) (.*)$')"};
  // Before 7.0 such an error stands behind other words.
  if (!kind.is_before_seven()) {
    values.insert(values.end(),
                  {"return redis.pcall('get',{})", "return redis.pcall('nosuch')", "error({err='MY own'})"});
  }
  std::vector<Step> steps = {{1, {{"HELLO", "3"}}}};
  for (const std::string& value : values) {
    register_script(redis, value);
    for (size_t conn = 0; conn < 2; ++conn) {
      steps.push_back({conn, {{"SET", "k", "mine"}, {"DEL", "h"}, {"HSET", "h", "f", "v"}}});
      steps.push_back({conn, {{"EVAL", value, "3", "k", "h", "none", "argument"}}});
      steps.push_back({conn, {{"GET", "k"}}});
    }
  }
  compare(steps);
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
  if (kind.is_before_seven())
    GTEST_SKIP() << "its PING is answered, and its SET with READONLY: neither is asked for a vote";
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
           {0, {{"PING"}}}});
  // Redis 6 lets scripts write all the same.
  if (!kind.is_before_seven()) compare({{0, {{"EVAL", "return redis.call('set',KEYS[1],'v')", "1", "k"}}}});
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
  EXPECT_EQ(set_user(real(), "default", {"-set", "-del", "-client|tracking", "-client|kill", "-hello"}), "OK");
  redis.knobs.noperm = {"SET", "DEL", "HELLO", "CLIENT|KILL"};
  compare({{0, {{"CLIENT", "KILL", "ID", "9999"}}}});
  compare({{0, {{"SET", "k", "v"}}},
           {0, {{"GET", "k"}}},
           {0, {{"EVAL", kRelease, "1", "k", "mine"}}},
           {0, {{"EVAL", "return redis.call('set',KEYS[1],'v')", "1", "k"}}}});
}

TEST_F(Conformance, HelloIsForbidden) {
  start();
  if (kind.is_before_seven()) GTEST_SKIP() << "no server of that age forbids HELLO";
  EXPECT_EQ(set_user(real(), "default", {"-hello"}), "OK");
  redis.knobs.noperm = {"HELLO"};
  compare({{0, {{"HELLO", "3"}}}});
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
  EXPECT_TRUE(eventually([&] {
    return real().command({"INFO", "persistence"}).find("rdb_last_bgsave_status:err") != std::string::npos;
  }));
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
      // There a command pushes to its own connection before or after its reply, as its code has it.
      if (kind.is_before_seven() && author == 1 && change[0][0] == "PEXPIRE") continue;
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
  EXPECT_TRUE(eventually([&] { return !real().exists("k"); }));
  now += 1'000'000'000;
  redis.tick(now);
  compare({{2, {{"GET", "k"}}}, {2, {{"SET", "k", "v"}}}});
}

// The killed connection reads its end, and nothing of what it had sent and nobody had read is executed; a connection
// does not kill itself so. The ids differ, so each is asked for its own.
TEST_F(Conformance, KillById) {
  start();
  RedisConnection victim = real().connect(), killer = real().connect();
  const int twin_victim = redis.open(now), twin_killer = redis.open(now);
  const auto twin_says = [this](int conn, const Args& command) {
    redis.receive(conn, resp_command(command), now);
    return std::exchange(redis.out(conn), {});
  };
  const auto number = [](const std::string& reply) { return reply.substr(1, reply.size() - 3); };
  const auto id_of = [&](RedisConnection& conn) { return conn.command({"CLIENT", "ID"}); };
  const auto twin_id_of = [&](int conn) { return number(twin_says(conn, {"CLIENT", "ID"})); };
  const std::string victims_id = id_of(victim), killers_id = id_of(killer);
  const std::string twin_victims_id = twin_id_of(twin_victim), twin_killers_id = twin_id_of(twin_killer);
  const auto kill = [&](const std::string& id, const std::string& twin_id) {
    killer.send(resp_command({"CLIENT", "KILL", "ID", id}));
    const std::string said = killer.receive(1);
    EXPECT_EQ(comparable(said), comparable(twin_says(twin_killer, {"CLIENT", "KILL", "ID", twin_id})));
    return said;
  };
  EXPECT_EQ(kill(killers_id, twin_killers_id), ":0\r\n") << "not itself";
  const std::string half = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\n";
  victim.send(half);
  redis.receive(twin_victim, half, now);
  EXPECT_EQ(kill(victims_id, twin_victims_id), ":1\r\n");
  EXPECT_EQ(victim.receive(1), "");
  EXPECT_TRUE(victim.closed());
  redis.receive(twin_victim, "v\r\n", now);
  EXPECT_TRUE(redis.closed_by_server(twin_victim));
  EXPECT_EQ(redis.out(twin_victim), "");
  EXPECT_EQ(kill(victims_id, twin_victims_id), ":0\r\n") << "it is gone";
  EXPECT_FALSE(real().exists("k"));
  EXPECT_EQ(redis.peek("k", now), nullptr);
}

TEST_F(Conformance, TooManyClients) {
  start();
  EXPECT_EQ(real().command({"CONFIG", "SET", "maxclients", "1"}), "OK");
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
  const bool is_redict = !info_field(real_info, "redict_version").empty();
  const char* const mode = kind.valkey ? "server_mode" : is_redict ? "redict_mode" : "redis_mode";
  EXPECT_EQ(info_field(real_info, mode), "standalone");
  for (const std::string field : {"redis_version:", "run_id:", "uptime_in_seconds:", "role:", "master_replid:",
                                  "connected_slaves:", "repl_backlog_active:", "maxmemory:", "maxmemory_policy:",
                                  "loading:", "evicted_keys:", "aof_enabled:", "rdb_last_bgsave_status:"}) {
    EXPECT_NE(real_info.find("\r\n" + field), std::string::npos) << field;
    EXPECT_NE(twin_info.find("\r\n" + field), std::string::npos) << field;
  }
}

}  // namespace
}  // namespace redlock::test
