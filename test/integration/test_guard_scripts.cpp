// SPDX-License-Identifier: MIT
//
// The guard's scripts on a real server and on the double (twins.hpp): reading, record, visit and move. After each one
// the record and the visits are compared too.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "site/move_script.hpp"
#include "twins.hpp"

namespace redlock::test {
namespace {

const std::string desc = "v1 n=3 q=2 max_ttl_ms=60000 ids=0123456789abcdef";
const std::string machine = "0a0b0c0d-1111-2222-3333-444455556666",
                  other_machine = "ffffffff-1111-2222-3333-444455556666";
const std::string weak_id = "0000000000000000";

class GuardScripts : public Twins {
 protected:
  std::string read(const std::string& boot_id = "") { return run(reading_script, {boot_id}); }
  std::string write(const std::string& found_desc, const std::string& found_q, const std::string& replid,
                    const std::string& new_q, const std::string& seal) {
    return run(record_script, {found_desc, found_q, replid, desc, new_q, seal});
  }
  std::string visit(const std::string& boot_id, const std::string& seal, const std::string& ms) {
    return run(visit_script, {boot_id, seal, ms});
  }
  std::string move(const std::string& from, const std::string& to, const std::string& ids, const std::string& step) {
    return run(move_script, {from, to, ids, step});
  }
  std::string field(const std::string& name) { return real.command({"HGET", meta, name}); }
  std::string visit_of(const std::string& boot_id) { return real.command({"HGET", seen, boot_id}); }
  void new_state(const std::string& q) {
    EXPECT_EQ(write(field("desc") == desc ? desc : "", "*", replid(), q, ""), "1");
  }
  // "replication id:quarantine id"
  static std::string state_in(const std::string& seal) { return seal.substr(17); }

  const std::string q5 = quarantine_of("5"), q7 = quarantine_of("7");
  const std::string s5 = seal_of("5"), s7 = seal_of("7");

 private:
  std::string run(const Script& script, const Args& argv) {
    const std::string reply = Twins::run(script, {meta, seen}, argv);
    const std::string reads = resp_command({"HMGET", meta, "desc", "q", "seal", "from"}) +
                              resp_command({"HLEN", meta}) + resp_command({"HMGET", seen, machine, other_machine}) +
                              resp_command({"HLEN", seen}) + resp_command({"PTTL", meta}) +
                              resp_command({"EXISTS", meta, seen});
    const auto [real_state, twin_state] = answers(reads, 6);
    EXPECT_EQ(comparable(real_state), comparable(twin_state));
    return reply;
  }
};

TEST_F(GuardScripts, ALife) {
  const std::string info =
      "INFO,role=master,connected_slaves=0,master_replid=" + redis.replid() + ",repl_backlog_active=0";
  EXPECT_EQ(read(), info + " (nil) (nil) (nil) (nil)");
  EXPECT_EQ(write("", "*", replid(), q5, ""), "1");
  EXPECT_EQ(read(), info + " " + desc + " " + q5 + " (nil) (nil)");
  EXPECT_EQ(visit(machine, s5, "1000"), "1");
  EXPECT_EQ(read(machine), info + " " + desc + " " + q5 + " (nil) " + state_in(s5) + " 1000");
  EXPECT_EQ(read(other_machine), info + " " + desc + " " + q5 + " (nil) (nil)");
  EXPECT_EQ(read(), info + " " + desc + " " + q5 + " (nil) (nil)") << "no machine, no visit";
  EXPECT_EQ(write(desc, q5, replid(), q5, s5), "1");
  EXPECT_EQ(read(machine), info + " " + desc + " " + q5 + " " + s5 + " (nil)") << "a seal makes visits void";
  EXPECT_EQ(write(desc, q5, replid(), q7, ""), "1");
  EXPECT_EQ(read(), info + " " + desc + " " + q7 + " (nil) (nil)") << "and a new state the seal";
}

// An adoption tells servers apart by it (site/adoption.cpp).
TEST_F(GuardScripts, AnOwnersTextBeginsWithTheRunId) {
  const std::string info = real.command({"INFO", "server"});
  const std::string run_id = info.substr(info.find("run_id:") + 7, 16);
  EXPECT_EQ(real.command({"EVAL", text_of(owner_script), "1", meta, desc, "0"}), "n" + run_id);
}

// Both protocols, since a null and a string look different in them, and INFO is a string in Lua whatever the connection
// speaks.
TEST_F(GuardScripts, TheSameInResp3) {
  new_state(q5);
  speak_resp3();
  read(machine);
  EXPECT_EQ(write(desc, q5, replid(), q5, s5), "1");
  read(machine);
  EXPECT_EQ(write(desc, q5, replid(), q5, s7), "1");
  EXPECT_EQ(write(desc, q7, replid(), q5, s5), "0");
}

TEST_F(GuardScripts, ARecordIsWrittenOnlyOverWhatWasRead) {
  EXPECT_EQ(write(desc, "*", replid(), q5, ""), "0") << "it is gone meanwhile";
  EXPECT_EQ(write("", q5, replid(), q5, ""), "0");
  EXPECT_EQ(write("", "", replid(), q5, ""), "1") << "both absent, as they were read";
  EXPECT_EQ(write("", "*", replid(), q7, ""), "0") << "somebody was first";
  EXPECT_EQ(write("another", q5, replid(), q5, s5), "0");
  EXPECT_EQ(write(desc, q7, replid(), q7, s7), "0");
  EXPECT_EQ(field("q"), q5);
  EXPECT_EQ(field("seal"), "(nil)");
  EXPECT_EQ(write(desc, q5, replid(), q5, s5), "1");
  EXPECT_EQ(field("seal"), s5);
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
  real.command({"REPLICAOF", "127.0.0.1", "1"});
  redis.become_replica();
  same_identity();
  EXPECT_EQ(write(desc, q5, replid(), q7, ""), "0") << "a replica, whatever its id";
  EXPECT_EQ(visit(machine, seal_of("5"), "1000"), "0");
  read(machine);
}

TEST_F(GuardScripts, WhereInfoIsNotToBeHadTheRecordIsCompared) {
  new_state(q5);
  const std::string weak = seal_of("5", weak_id);
  deny("INFO");
  EXPECT_EQ(read(), "-ERR " + desc + " " + q5 + " (nil) (nil)") << "an error among the elements";
  EXPECT_EQ(write(desc, q5, replid(), q5, s5), "-ERR");
  EXPECT_EQ(field("seal"), "(nil)");
  EXPECT_EQ(visit(machine, s5, "1000"), "-ERR");
  EXPECT_EQ(write(desc, q5, weak_id, q5, weak), "1");
  EXPECT_EQ(field("seal"), weak);
  speak_resp3();
  read(machine);
}

TEST_F(GuardScripts, AVisit) {
  EXPECT_EQ(visit(machine, s5, "1000"), "0") << "there is no record";
  new_state(q5);
  EXPECT_EQ(visit(machine, s7, "1000"), "0") << "another state";
  EXPECT_EQ(visit(machine, s5, "1000"), "1");
  EXPECT_EQ(visit(machine, s5, "2000"), "0") << "the first one counts";
  EXPECT_EQ(visit(other_machine, s5, "7"), "1");
  EXPECT_EQ(visit_of(machine), state_in(s5) + " 1000");
  new_state(q7);
  EXPECT_EQ(real.exists(seen), false);
  both({"HSET", seen, machine, state_in(s5) + " 1000"});
  EXPECT_EQ(visit(machine, s7, "3000"), "1") << "over one of another state";
  EXPECT_EQ(visit_of(machine), state_in(s7) + " 3000");
  both({"HSET", seen, machine, "nonsense"});
  EXPECT_EQ(visit(machine, s7, "4000"), "1");
  EXPECT_EQ(write(desc, q7, replid(), q7, s7), "1");
  EXPECT_EQ(visit(machine, s7, "5000"), "0") << "sealed meanwhile";
  both({"HSET", meta, "seal", s5});
  EXPECT_EQ(visit(machine, s7, "5000"), "1") << "another state's seal";
}

TEST_F(GuardScripts, SixteenMachinesLeaveWord) {
  new_state(q5);
  for (int i = 0; i < 15; ++i) EXPECT_EQ(visit("machine " + std::to_string(i), s5, "1"), "1");
  EXPECT_EQ(visit(machine, s5, "1000"), "1");
  EXPECT_EQ(visit(other_machine, s5, "1000"), "0");
  both({"HSET", seen, machine, state_in(s7) + " 1"});
  EXPECT_EQ(visit(machine, s5, "1000"), "1") << "a place of its own is written over";
}

TEST_F(GuardScripts, KeysOfAnotherKind) {
  both({"SET", meta, "no hash"});
  EXPECT_EQ(read(), "-WRONGTYPE");
  EXPECT_EQ(write("", "*", replid(), q5, ""), "-WRONGTYPE");
  EXPECT_EQ(visit(machine, s5, "1"), "-WRONGTYPE");
  EXPECT_EQ(move(desc, "new", q7, "mark"), "-WRONGTYPE");
  both({"DEL", meta});
  new_state(q5);
  both({"SET", seen, "no hash"});
  EXPECT_EQ(read(machine), "-WRONGTYPE");
  EXPECT_TRUE(read().starts_with("INFO")) << "who watches alone does not read it";
  EXPECT_EQ(visit(machine, s5, "1"), "-WRONGTYPE");
  EXPECT_EQ(write(desc, q5, replid(), q5, s5), "1") << "it is deleted whatever it is";
}

TEST_F(GuardScripts, AServerThatMayNotWrite) {
  new_state(q5);
  real.command({"CONFIG", "SET", "maxmemory", "1"});
  redis.knobs.oom = true;
  EXPECT_EQ(write(desc, q5, replid(), q5, s5), "-OOM");
  EXPECT_EQ(visit(machine, s5, "1"), "-OOM");
  EXPECT_EQ(move(desc, "new", q7 + q5, "mark"), "-OOM");
  EXPECT_TRUE(read(machine).starts_with("INFO"));
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
    while (info_field(real.command({"INFO", "replication"}), "connected_slaves") != "1") {
    }
    redis.attach_replica();
    same_identity();
    EXPECT_NE(replid(), before);
    read();
  }
  while (info_field(real.command({"INFO", "replication"}), "connected_slaves") != "0") {
  }
  redis.knobs.replicas = 0;
  EXPECT_NE(read().find("connected_slaves=0,master_replid=" + redis.replid() + ",repl_backlog_active=1"),
            std::string::npos);
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
  EXPECT_EQ(move(desc, "new", q5 + q7, "enter"), "e" + q5);
  EXPECT_EQ(field("desc"), "new");
  EXPECT_EQ(move(desc, "new", q7 + q5, "enter"), "e" + q5);
  EXPECT_EQ(move("third", "new", q7 + q5, "look"), "u" + q5);
}

// What nobody thought of, in any order.
TEST_F(GuardScripts, AnyOrder) {
  std::mt19937 random(1);
  const auto one_of = [&](const Args& words) { return words[random() % words.size()]; };
  const Args qs = {q5, q7}, replids = {replid(), replid(), "0123456789abcdef", weak_id},
             machines = {machine, other_machine};
  std::map<std::string, int> heard;
  for (int i = 0; i < 2'000 && !HasFailure(); ++i) {
    SCOPED_TRACE("step " + std::to_string(i));
    const std::string id = one_of(replids), q = one_of(qs);
    const std::string seal = seal_of(q == q5 ? "5" : "7", id);
    std::string reply;
    switch (random() % 8) {
      case 0:
        reply = "read " + read(one_of({"", machine, other_machine})).substr(0, 4);
        break;
      case 1:
      case 2:
        reply =
            "write " + write(one_of({"", desc, desc, "another"}), one_of({"*", "", q5, q7}), id, q, one_of({"", seal}));
        break;
      case 3:
      case 4:
        reply = "visit " + visit(one_of(machines), seal, std::to_string(random() % 10'000));
        break;
      case 5:
        reply =
            "move " + move(desc, "new", one_of(qs) + one_of({"", q5, q7}), one_of({"look", "mark", "mark", "enter"}))
                          .substr(0, 1);
        break;
      case 6:
        reply =
            "move " + move("new", desc, one_of(qs) + one_of({"", q5, q7}), one_of({"look", "mark", "mark", "enter"}))
                          .substr(0, 1);
        break;
      default:
        if (random() % 4 == 0) both({"DEL", one_of({meta, seen})});
        if (random() % 4 == 0) both({"HDEL", meta, one_of({"desc", "q", "seal"})});
        if (random() % 4 == 0) both({"HSET", meta, one_of({"desc", "q", "seal"}), one_of({"x", q5, seal, desc})});
    }
    ++heard[reply];
  }
  for (const char* each : {"read INFO", "write 1", "write 0", "visit 1", "visit 0", "move o", "move w", "move m",
                           "move b", "move e", "move n", "move t"}) {
    EXPECT_GT(heard[each], 0) << each;
  }
}

}  // namespace
}  // namespace redlock::test
