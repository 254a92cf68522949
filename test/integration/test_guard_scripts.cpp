// SPDX-License-Identifier: MIT
//
// The guard's scripts on a real server (script_server.hpp): reading, record, visit and move.
#include <gtest/gtest.h>

#include "script_server.hpp"
#include "site/move_script.hpp"
#include "support/eventually.hpp"

namespace redlock::test {
namespace {

const std::string desc = "v1 n=3 q=2 max_ttl_ms=60000 ids=0123456789abcdef";
const std::string machine = "0a0b0c0d-1111-2222-3333-444455556666",
                  other_machine = "ffffffff-1111-2222-3333-444455556666";
const std::string weak_id = "0000000000000000";

class GuardScripts : public ScriptServer {
 protected:
  // Without the tag, which is the last element.
  std::string read(const std::string& boot_id = "") {
    const std::string all = run(reading_script, {boot_id});
    const size_t end = all.rfind(' ');
    tag = end != std::string::npos && all.size() - end == 17 ? all.substr(end + 1) : "";
    return tag.empty() ? all : all.substr(0, end);
  }
  // What a reading begins with: the values of INFO.
  std::string info() {
    const std::string all = "\n" + real.command({"INFO"});
    std::string values;
    for (const char* name :
         {"run_id", "master_replid", "role", "connected_slaves", "repl_backlog_active", "redis_mode", "server_mode",
          "maxmemory", "maxmemory_policy", "evicted_keys"}) {
      const bool there = all.find(std::string("\n") + name + ":") != std::string::npos;
      values += (there ? info_field(all, name) : "(nil)") + " ";
    }
    return values;
  }
  std::string recheck() { return ScriptServer::run(reading_script, {meta}, {tag}); }
  std::string write(const std::string& found_desc, const std::string& found_q, const std::string& replid,
                    const std::string& new_q, const std::string& seal) {
    return run(record_script, {found_desc, found_q, replid, desc, new_q, seal, "a,b,c"});
  }
  std::string visit(const std::string& boot_id, const std::string& seal, const std::string& ms) {
    return run(visit_script, {boot_id, seal, ms, "1700000000000"});
  }
  std::string move(const std::string& from, const std::string& to, const std::string& ids, const std::string& step) {
    return run(move_script, {from, to, ids, step, "gw-1", "a,b,c > a,b,d"});
  }
  std::string field(const std::string& name) { return real.command({"HGET", meta, name}); }
  void new_state(const std::string& q) {
    EXPECT_EQ(write(field("desc") == desc ? desc : "", "*", replid(), q, ""), "1");
  }
  std::string tag;

  // "replication id:quarantine id"
  static std::string state_in(const std::string& seal) { return seal.substr(17); }

  const std::string q5 = quarantine_of("5"), q7 = quarantine_of("7");
  const std::string s5 = seal_of("5"), s7 = seal_of("7");

 private:
  std::string run(const Script& script, const Args& argv) { return ScriptServer::run(script, {meta, seen}, argv); }
};

TEST_F(GuardScripts, ALife) {
  const std::string info = this->info();
  EXPECT_EQ(read(), info + "(nil) (nil) (nil) (nil) (nil) (nil)");
  EXPECT_EQ(visit(machine, s5, "1000"), "0") << "there is no record";
  EXPECT_EQ(write("", "*", replid(), q5, ""), "1");
  const std::string begun = info + desc + " " + q5;
  EXPECT_EQ(read(), begun + " (nil) a,b,c (nil) (nil)");
  EXPECT_EQ(visit(machine, s7, "1000"), "0") << "another state";
  EXPECT_EQ(visit(machine, s5, "1000"), "1");
  EXPECT_EQ(read(machine), begun + " (nil) a,b,c (nil) " + state_in(s5) + " 1000 1700000000000");
  EXPECT_EQ(read(other_machine), begun + " (nil) a,b,c (nil) (nil)");
  EXPECT_EQ(read(), begun + " (nil) a,b,c (nil) (nil)") << "no machine, no visit";
  EXPECT_EQ(write(desc, q5, replid(), q5, s5), "1");
  EXPECT_EQ(visit(machine, s5, "5000"), "0") << "sealed meanwhile";
  EXPECT_EQ(read(machine), begun + " " + s5 + " a,b,c (nil) (nil)") << "a seal makes visits void";
  EXPECT_EQ(write(desc, q5, replid(), q7, ""), "1");
  EXPECT_EQ(read(), info + desc + " " + q7 + " (nil) a,b,c (nil) (nil)") << "and a new state the seal";
  real.command({"HSET", meta, "left", q7 + "left v1 n=5"});
  EXPECT_EQ(read(), info + desc + " " + q7 + " (nil) a,b,c left v1 n=5 (nil)");
  real.command({"HSET", meta, "left", q5 + "left v1 n=5"});
  EXPECT_EQ(read(), info + desc + " " + q7 + " (nil) a,b,c (nil) (nil)") << "of a state that is over";
}

// Whatever the guard reads, visits apart, has the tag. What changes by itself has not.
TEST_F(GuardScripts, ATag) {
  new_state(q5);
  write(desc, q5, replid(), q5, s5);
  read();
  const std::string first = tag;
  ASSERT_EQ(first.size(), 16u);
  say({"SET", "k", "v"});
  say({"INCR", "n"});
  EXPECT_EQ(visit(machine, s7, "1000"), "0");
  EXPECT_EQ(recheck(), "1");
  const std::vector<std::pair<Args, Args>> changes = {
      {{"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"}, {"CONFIG", "SET", "maxmemory-policy", "noeviction"}},
      {{"CONFIG", "SET", "maxmemory", "1gb"}, {"CONFIG", "SET", "maxmemory", "0"}},
      {{"HSET", meta, "seal", s7}, {"HSET", meta, "seal", s5}},
      {{"HSET", meta, "q", q7}, {"HSET", meta, "q", q5}},
      {{"HSET", meta, "desc", "moving a b"}, {"HSET", meta, "desc", desc}},
      {{"HSET", meta, "names", "a,b"}, {"HSET", meta, "names", "a,b,c"}},
      {{"HSET", meta, "left", "x"}, {"HDEL", meta, "left"}},
  };
  for (const auto& [change, undo] : changes) {
    say(change);
    EXPECT_TRUE(recheck().starts_with(info())) << change[1] << " " << change[2] << ": a whole reading at once";
    say(undo);
    EXPECT_EQ(recheck(), "1") << change[1] << " " << change[2];
  }
  become_replica();
  EXPECT_TRUE(recheck().starts_with(info()));
  deny("INFO");
  EXPECT_TRUE(recheck().starts_with("-ERR "));
}

TEST_F(GuardScripts, ARecordIsWrittenOnlyOverWhatWasRead) {
  EXPECT_EQ(write(desc, "*", replid(), q5, ""), "0") << "it is gone meanwhile";
  EXPECT_EQ(write("", q5, replid(), q5, ""), "0");
  EXPECT_EQ(write("", "", replid(), q5, ""), "1") << "both absent, as they were read";
  EXPECT_EQ(write("", "*", replid(), q7, ""), "0") << "somebody was first";
  EXPECT_EQ(write("another", q5, replid(), q5, s5), "0");
  EXPECT_EQ(write(desc, q7, replid(), q7, s7), "0");
  EXPECT_EQ(field("q") + field("seal"), q5 + "(nil)");
  EXPECT_EQ(write(desc, q5, replid(), q5, s5), "1");
}

// The seal that was sent before the server took over a copy of its own data: the record fits, the server does not.
TEST_F(GuardScripts, NothingIsWrittenToAnotherServer) {
  new_state(q5);
  const std::string before = replid();
  cycle_roles();
  ASSERT_NE(replid(), before);
  EXPECT_EQ(write(desc, q5, before, q5, s5), "0");
  EXPECT_EQ(write(desc, "*", before, q7, ""), "0");
  EXPECT_EQ(visit(machine, s5, "1000"), "0");
  EXPECT_EQ(field("seal"), "(nil)");
  EXPECT_EQ(field("q"), q5);
  EXPECT_EQ(visit(machine, seal_of("5"), "1000"), "1");
  EXPECT_EQ(write(desc, q5, replid(), q5, seal_of("5")), "1");
  become_replica();
  EXPECT_EQ(write(desc, q5, replid(), q7, ""), "0") << "a replica, whatever its id";
  EXPECT_EQ(visit(machine, seal_of("5"), "1000"), "0");
  read(machine);
}

TEST_F(GuardScripts, WhereInfoIsNotToBeHadTheRecordIsCompared) {
  new_state(q5);
  const std::string weak = seal_of("5", weak_id);
  deny("INFO");
  std::string nothing;
  for (int i = 1; i < 10; ++i) nothing += " (nil)";
  EXPECT_EQ(read(), "-ERR" + nothing + " " + desc + " " + q5 + " (nil) a,b,c (nil) (nil)")
      << "an error among the elements";
  EXPECT_EQ(write(desc, q5, replid(), q5, s5), "-ERR");
  EXPECT_EQ(field("seal"), "(nil)");
  EXPECT_EQ(visit(machine, s5, "1000"), "-ERR");
  EXPECT_EQ(write(desc, q5, weak_id, q5, weak), "1");
  EXPECT_EQ(field("seal"), weak);
  speak_resp3();
  read(machine);
}

TEST_F(GuardScripts, KeysOfAnotherKind) {
  say({"SET", meta, "no hash"});
  EXPECT_EQ(read(), "-WRONGTYPE");
  EXPECT_EQ(write("", "*", replid(), q5, ""), "-WRONGTYPE");
  EXPECT_EQ(visit(machine, s5, "1"), "-WRONGTYPE");
  EXPECT_EQ(move(desc, "new", q7, "mark"), "-WRONGTYPE");
  say({"DEL", meta});
  new_state(q5);
  say({"SET", seen, "no hash"});
  EXPECT_EQ(read(machine), "-WRONGTYPE");
  EXPECT_TRUE(read().starts_with(info())) << "who watches alone does not read it";
  EXPECT_EQ(visit(machine, s5, "1"), "-WRONGTYPE");
  EXPECT_EQ(write(desc, q5, replid(), q5, s5), "1") << "it is deleted whatever it is";
}

TEST_F(GuardScripts, AServerThatMayNotWrite) {
  new_state(q5);
  real.command({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_EQ(write(desc, q5, replid(), q5, s5), "-OOM");
  EXPECT_EQ(visit(machine, s5, "1"), "-OOM");
  EXPECT_EQ(move(desc, "new", q7 + q5, "mark"), "-OOM");
  EXPECT_TRUE(read(machine).starts_with(info()));
}

// Redis 6 can replicate scripts as text, and then refuses each write behind INFO. Redis 7 takes the option and
// ignores it.
TEST_F(GuardScripts, AServerThatReplicatesScriptsAsText) {
  RedisServer::Options options;
  options.args = {"--lua-replicate-commands", "no"};
  RedisServer server(options);
  const bool is_so = server.command({"CONFIG", "GET", "lua-replicate-commands"}).find("no") != std::string::npos;
  const std::string id = info_field(server.command({"INFO", "replication"}), "master_replid").substr(0, 16);
  server.command({"EVAL", text_of(record_script), "2", meta, seen, "", "*", id, desc, q5, "", "a,b,c"});
  EXPECT_EQ(server.exists(meta), !is_so);
}

TEST_F(GuardScripts, AUserWithoutTheWords) {
  new_state(q5);
  deny("HLEN");
  EXPECT_EQ(visit(machine, s5, "1"), "-ERR");
  deny("HDEL");
  EXPECT_EQ(write(desc, q5, replid(), q7, ""), "-ERR");
  deny("HMGET");
  EXPECT_EQ(read(), "-ERR");
  EXPECT_EQ(visit(machine, s5, "1"), "-ERR");
  EXPECT_EQ(move(desc, "new", q7 + q5, "look"), "-ERR");
}

// What a replica does to these four fields: the first one that connects changes the id, and so does nothing else.
TEST_F(GuardScripts, ReplicasInInfo) {
  new_state(q5);
  EXPECT_EQ(write(desc, q5, replid(), q5, s5), "1");
  const std::string before = replid();
  {
    RedisServer replica;
    replica.command({"REPLICAOF", "127.0.0.1", std::to_string(real.port())});
    EXPECT_TRUE(eventually([&] {
      return info_field(real.command({"INFO", "replication"}), "connected_slaves") == "1";
    }));
    EXPECT_NE(replid(), before);
    read();
  }
  EXPECT_TRUE(eventually([&] { return info_field(real.command({"INFO", "replication"}), "connected_slaves") == "0"; }));
  EXPECT_NE(read().find(" " + long_replid() + " master 0 1 "), std::string::npos);
  EXPECT_EQ(write(desc, q5, before, q7, ""), "0");
}

TEST_F(GuardScripts, Moves) {
  new_state(q5);
  EXPECT_EQ(visit(machine, s5, "1"), "1");
  EXPECT_EQ(move(desc, "new", q7 + q7, "mark"), "o" + q5) << "another id is there";
  EXPECT_EQ(move(desc, "new", q7 + q5, "look"), "o" + q5);
  EXPECT_EQ(move(desc, "new", q7 + q5, "enter"), "o" + q5) << "not marked yet";
  EXPECT_TRUE(real.exists(seen)) << "nothing was written";
  EXPECT_EQ(move(desc, "new", q7 + q5, "mark"), "m" + q7);
  EXPECT_FALSE(real.exists(seen)) << "visits are void";
  EXPECT_EQ(field("desc"), "moving " + desc + " > new");
  EXPECT_EQ(move("third", "fourth", q5 + q7, "mark"), "t" + q7);
  EXPECT_EQ(move("new", desc, q5 + q7, "enter"), "b" + q7) << "marked by the opposite change";
  EXPECT_EQ(move(desc, "new", q5 + q7, "enter"), "w" + q5);
  EXPECT_EQ(field("desc"), "new");
  EXPECT_EQ(move(desc, "new", q7 + q5, "enter"), "w" + q5);
  EXPECT_EQ(move("third", "fourth", q7 + q5, "look"), "t" + q5);
  EXPECT_EQ(move("new", "next", q7 + q5, "mark"), "m" + q7);
  EXPECT_EQ(move("new", "next", q7, "look"), "m" + q7);
  cycle_roles();
  EXPECT_EQ(move("new", "next", q7, "look"), "x" + q7) << "the data came from elsewhere";
  EXPECT_EQ(move("new", "next", q5 + q7, "enter"), "x" + q7);
}

}  // namespace
}  // namespace redlock::test
