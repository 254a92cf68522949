// SPDX-License-Identifier: MIT
//
// scripts/move.lua, by which a change of masters marks and enters a record, with Redis's own Lua.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "change_servers.hpp"

namespace redlock::test {
namespace {

class MoveScript : public ::testing::Test {
 protected:
  MoveScript() : servers_(1) {
    std::ifstream file(REDLOCK_SOURCE_DIR "/src/site/scripts/move.lua");
    script_.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  std::string say(const char* from, const char* to, const std::string& ids, const char* step) {
    return servers_[0].command({"EVAL", script_, "2", "redlock::meta", "redlock::seen", from, to, ids, step, "op",
                                 std::string(from) + " > " + to});
  }
  std::string there(const std::string& ids, const char* step) { return say("old", "new", ids, step); }
  std::string back(const std::string& ids, const char* step) { return say("new", "old", ids, step); }
  std::string desc() { return servers_.field(0, "desc"); }

  Servers servers_;
  std::string script_;
  const std::string a = std::string(16, 'a'), b = std::string(16, 'b'), c = std::string(16, 'c'),
                    q = std::string(16, 'f');
};

TEST_F(MoveScript, MarksAndEnters) {
  EXPECT_EQ(there(a, "look"), "n");
  EXPECT_FALSE(servers_[0].exists("redlock::meta"));
  EXPECT_EQ(there(a, "mark"), "m" + a);
  EXPECT_EQ(desc(), "moving old > new");
  EXPECT_EQ(there(a, "mark"), "m" + a) << "asked again, since the answer was lost";
  EXPECT_EQ(there(q + a, "enter"), "w" + q);
  EXPECT_EQ(desc(), "new");
  EXPECT_EQ(there(c + a, "enter"), "w" + q) << "asked again";
  EXPECT_EQ(back(a, "look"), "o" + q);
}

// An entered record says which set the change leaves, and that it is not done: until "leave", and over the entry of
// this call alone.
TEST_F(MoveScript, SaysWhenTheChangeWasDone) {
  there(a, "mark");
  EXPECT_EQ(servers_.field(0, "left"), "(nil)");
  there(q + a, "enter");
  EXPECT_EQ(servers_.field(0, "left"), q + "left old");
  EXPECT_EQ(there(a + b, "leave"), "w" + q);
  EXPECT_EQ(servers_.field(0, "left"), q + "left old") << "the entry of another call";
  EXPECT_EQ(there(a + q, "leave"), "w" + q);
  EXPECT_EQ(desc(), "new");
  const std::string done = q + "left old > new ";
  EXPECT_EQ(servers_.field(0, "left").substr(0, done.size()), done);
  EXPECT_GT(std::stoll(servers_.field(0, "left").substr(done.size())), 1'600'000'000);
  EXPECT_EQ(back(b + q, "mark"), "m" + b);
  EXPECT_EQ(servers_.field(0, "left"), "(nil)");
  EXPECT_EQ(back(b + b, "leave"), "m" + b);
  EXPECT_EQ(desc(), "left new > old");
  EXPECT_EQ(servers_.field(0, "left").rfind(b + "left new > old ", 0), 0u);
}

// Who, when, and between which masters; and that the change is done, which only the call's own mark can say.
TEST_F(MoveScript, TellsWhoseMarkItIs) {
  servers_[0].command({"HSET", "redlock::meta", "desc", "old", "q", q, "seal", "x", "from", "older"});
  EXPECT_EQ(there(a + q, "mark"), "m" + a);
  EXPECT_EQ(servers_.field(0, "by"), "op");
  EXPECT_EQ(servers_.field(0, "names"), "old > new");
  EXPECT_GT(std::stoll(servers_.field(0, "begun")), 1'600'000'000);
  EXPECT_EQ(there(b + b, "leave"), "m" + a);
  EXPECT_EQ(desc(), "moving old > new");
  EXPECT_EQ(there(a + a, "leave"), "m" + a);
  EXPECT_EQ(desc(), "left old > new");
  EXPECT_EQ(back(b, "look"), "b" + a);
  EXPECT_EQ(back(b + a, "mark"), "m" + b);
  EXPECT_EQ(back(c + b, "enter"), "w" + c);
  for (const char* gone : {"from", "seal", "by", "begun", "at"}) EXPECT_EQ(servers_.field(0, gone), "(nil)") << gone;
}

// Another server's data, and then the mark again: that the replication id has changed is the only sign.
TEST_F(MoveScript, SeesThatTheDataCameFromElsewhere) {
  EXPECT_EQ(there(a, "mark"), "m" + a);
  const std::string at = servers_.field(0, "at");
  EXPECT_EQ(at.size(), 40u) << at;
  RedisServer other;
  const std::string to = std::to_string(other.port());
  servers_[0].command({"CONFIG", "SET", "repl-diskless-load", "disabled"});
  servers_[0].command({"REPLICAOF", "127.0.0.1", to});
  servers_[0].command({"REPLICAOF", "NO", "ONE"});
  EXPECT_EQ(there(a, "look"), "x" + a);
  EXPECT_EQ(there(q + a, "enter"), "x" + a);
  EXPECT_EQ(there(a + a, "leave"), "x" + a);
  EXPECT_EQ(there(b + a, "mark"), "m" + b) << "a mark is written over it";
  EXPECT_EQ(there(a, "look"), "m" + b);
}

// The plain overlap.
TEST_F(MoveScript, DoesNotPassOverAForeignMark) {
  EXPECT_EQ(there(a, "mark"), "m" + a);
  EXPECT_EQ(back(b + a, "mark"), "m" + b);
  EXPECT_EQ(there(q + a, "enter"), "b" + b);
  EXPECT_EQ(there(q + b, "enter"), "b" + b) << "nor with the id that it finds";
  EXPECT_EQ(there(c + a, "mark"), "b" + b) << "nor does it take the master back";
  EXPECT_EQ(desc(), "moving new > old");
}

// a. A call to another set.
TEST_F(MoveScript, DoesNotTouchAThirdChange) {
  EXPECT_EQ(say("old", "third", a, "mark"), "m" + a);
  for (const char* step : {"look", "mark", "enter"}) EXPECT_EQ(there(b + a, step), "t" + a);
  EXPECT_EQ(desc(), "moving old > third");
}

// b. A master that was not seen at first.
TEST_F(MoveScript, DoesNotEnterWhatWasNotMarked) {
  EXPECT_EQ(there(q, "enter"), "n");
  servers_[0].command({"HSET", "redlock::meta", "desc", "old", "q", b});
  EXPECT_EQ(there(q + b, "enter"), "o" + b);
  servers_[0].command({"HSET", "redlock::meta", "desc", "new"});
  EXPECT_EQ(there(q + b, "enter"), "w" + b);
}

// c. An id that is absent, or of no size.
TEST_F(MoveScript, DoesNotEnterWithoutAnId) {
  EXPECT_EQ(there(a, "mark"), "m" + a);
  servers_[0].command({"HSET", "redlock::meta", "q", "of no size"});
  EXPECT_EQ(there(q, "enter"), "m");
  servers_[0].command({"HDEL", "redlock::meta", "q"});
  EXPECT_EQ(there(q, "enter"), "m");
  EXPECT_EQ(there(b, "mark"), "m" + b);
  servers_[0].command({"DEL", "redlock::meta"});
  EXPECT_EQ(there(q + b, "enter"), "n");
}

// d. A master of both sets is marked over either way, with one id.
TEST_F(MoveScript, MarksAMasterOfBothSetsOnce) {
  servers_[0].command({"HSET", "redlock::meta", "desc", "old", "q", q, "seal", "x"});
  EXPECT_EQ(there(a + q, "mark"), "m" + a);
  EXPECT_EQ(servers_[0].command({"HEXISTS", "redlock::meta", "seal"}), "0");
  EXPECT_EQ(there(a + q, "mark"), "m" + a) << "by way of the other set";
  EXPECT_EQ(there(b + a, "enter"), "w" + b);
}

// What was sent over a record that clients have made anew since does nothing.
TEST_F(MoveScript, DoesNotMarkTwice) {
  servers_[0].command({"HSET", "redlock::meta", "desc", "old", "q", q});
  EXPECT_EQ(there(a + q, "mark"), "m" + a);
  servers_[0].command({"DEL", "redlock::meta"});
  servers_[0].command({"HSET", "redlock::meta", "desc", "old", "q", c});
  EXPECT_EQ(there(a + q, "mark"), "o" + c);
  EXPECT_EQ(desc(), "old");
}

}  // namespace
}  // namespace redlock::test
