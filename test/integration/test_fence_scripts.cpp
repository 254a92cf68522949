// SPDX-License-Identifier: MIT
//
// The scripts of rounds on a real server: acquire, extend, token and release (script_server.hpp).
#include <gtest/gtest.h>

#include "script_server.hpp"

namespace redlock::test {
namespace {

const std::string once = "100000";  // a ttl that outlives the test
const std::string twice = "200000";

class FenceScripts : public ScriptServer {
 protected:
  // Without a proposal: no token is asked for.
  std::string take(const Args& names, const std::string& value, const std::string& seal) {
    return run(acquire_script, names, {meta}, {value, once, seal});
  }
  std::string acquire(const Args& names, const std::string& value, const std::string& seal, const std::string& next) {
    return run(acquire_script, names, {meta, counters}, {value, once, seal, next});
  }
  std::string store(const Args& names, const std::string& value, const std::string& seal, const std::string& token) {
    return run(token_script, names, {meta, counters}, {value, seal, token});
  }
  std::string extend(const Args& names, const std::string& value, const std::string& ttl, const std::string& seal) {
    return run(extend_script, names, {meta}, {value, ttl, seal});
  }
  // As it is sent where there is nothing to compare.
  std::string extend(const Args& names, const std::string& value, const std::string& ttl) {
    return run(extend_script, names, {}, {value, ttl});
  }
  std::string release(const Args& names, const std::string& value) { return run(release_script, names, {}, {value}); }
  void seal_with(const std::string& seal) { say({"HSET", meta, "seal", seal}); }
  void count(const std::string& name, const std::string& field) { say({"HSET", counters, name, field}); }
  std::string counter(const std::string& name) { return real.command({"HGET", counters, name}); }
  std::string value(const std::string& name) { return real.command({"GET", name}); }
  // A counter of this size, known, and nobody holds the name: what does a proposal get?
  std::string proposed_to(const std::string& token, const std::string& proposal) {
    say({"FLUSHALL"});
    seal_with(s);
    count("a", token + " " + s);
    return acquire({"a"}, "v", s, proposal);
  }
  // The same to the script that stores.
  std::string stored_above(const std::string& token, const std::string& next) {
    say({"FLUSHALL"});
    seal_with(s);
    count("a", token + " " + s);
    say({"SET", "a", "v"});
    return store({"a"}, "v", s, next);
  }

  const std::string s = seal_of("5"), t = seal_of("7");

 private:
  // "known 41 1700000000000" becomes "known 41 now", if it was.
  std::string run(const Script& script, const Args& names, const Args& records, const Args& argv) {
    Args keys = names;
    keys.insert(keys.end(), records.begin(), records.end());
    const int64_t before = real_ms();
    const std::string reply = ScriptServer::run(script, keys, argv);
    if (!reply.starts_with("known ") && !reply.starts_with("hint ")) return reply;
    const size_t at = reply.rfind(' ') + 1;
    EXPECT_EQ(reply.find_first_not_of("0123456789", at), std::string::npos) << reply;
    EXPECT_GE(std::stoll(reply.substr(at)), before);
    EXPECT_LE(std::stoll(reply.substr(at)), real_ms());
    return reply.substr(0, at) + "now";
  }
};

TEST_F(FenceScripts, ALife) {
  seal_with(s);
  EXPECT_EQ(acquire({"a"}, "v1", s, "1"), "hint 0 now") << "no counter yet: granted, and the proposal is not stored";
  EXPECT_EQ(counter("a"), "(nil)");
  EXPECT_EQ(store({"a"}, "v1", s, "5"), "1");
  EXPECT_EQ(store({"a"}, "v1", s, "5"), "0") << "strict";
  EXPECT_EQ(store({"a"}, "v1", s, "4"), "0");
  EXPECT_EQ(store({"a"}, "v1", s, "6"), "1");
  EXPECT_EQ(store({"a"}, "v2", s, "7"), "0") << "somebody else's";
  EXPECT_EQ(acquire({"a"}, "v2", s, "7"), "held known 6");
  EXPECT_EQ(extend({"a"}, "v2", twice, s), "0");
  EXPECT_EQ(extend({"a"}, "v1", twice, s), "1");
  EXPECT_EQ(extend({"a"}, "v1", once, s), "1") << "and the expiry is not lowered";
  EXPECT_GT(std::stoll(real.command({"PTTL", "a"})), 100'000);
  say({"DEL", "a"});
  EXPECT_EQ(extend({"a"}, "v1", twice, s), "0");
  EXPECT_EQ(store({"a"}, "v1", s, "9"), "0") << "stale: it is gone";
  EXPECT_EQ(counter("a"), "6 " + s);
  EXPECT_EQ(acquire({"a"}, "v2", s, "7"), "ack 7");
  EXPECT_EQ(value("a"), "v2");
  EXPECT_EQ(counter("a"), "7 " + s);
}

// The record is ordinary data: a copy of it fits the seal, and the server is another one all the same.
TEST_F(FenceScripts, ACopyOfTheRecordIsNoState) {
  seal_with(s);
  count("a", "5 " + s);
  say({"SET", "held", "v", "PX", once});
  EXPECT_EQ(take({"b"}, "v", s), "OK");
  say({"DEL", "b"});
  cycle_roles();
  ASSERT_NE(seal_of("5"), s) << "another replication id";
  const auto refused = [this] {
    EXPECT_EQ(take({"b"}, "v", s), "-1");
    EXPECT_EQ(take({"held"}, "w", s), "-1");
    EXPECT_EQ(acquire({"a"}, "v", s, "6"), "-1");
    EXPECT_EQ(store({"held"}, "v", s, "6"), "-1");
    EXPECT_EQ(extend({"held"}, "v", twice, s), "-1");
  };
  refused();
  seal_with(seal_of("5"));
  EXPECT_EQ(extend({"held"}, "v", twice, s), "-1") << "the right record, and we have admitted another state";
  EXPECT_EQ(extend({"held"}, "v", twice, seal_of("5")), "1");
  EXPECT_EQ(acquire({"a"}, "v", seal_of("5"), "6"), "hint 5 now") << "the counter goes with the state before";
  say({"DEL", "a"});
  seal_with(s);
  refused();
  EXPECT_EQ(counter("a"), "5 " + s);
  EXPECT_EQ(release({"held"}, "v"), "1") << "a delete is right in any state";
}

// guard: weak, of a user who may not ask for INFO: the record alone is compared.
TEST_F(FenceScripts, WithoutAReplicationIdTheRecordIsCompared) {
  const std::string weak = seal_of("5", "0000000000000000");
  seal_with(weak);
  cycle_roles();
  EXPECT_EQ(take({"a"}, "v", weak), "OK");
  EXPECT_EQ(extend({"a"}, "v", twice, weak), "1");
  EXPECT_EQ(store({"a"}, "v", weak, "3"), "1");
  EXPECT_EQ(extend({"a"}, "v", twice, seal_of("6", "0000000000000000")), "-1");
}

// An ACL that takes away what the scripts say: the error ends the script, and nothing was written.
TEST_F(FenceScripts, AUserWithoutTheWords) {
  seal_with(s);
  say({"SET", "held", "v", "PX", once});
  deny("INFO");
  EXPECT_EQ(take({"a"}, "v", s), "-ERR");
  EXPECT_EQ(acquire({"a"}, "v", s, "1"), "-ERR");
  EXPECT_EQ(store({"held"}, "v", s, "1"), "-ERR");
  EXPECT_EQ(extend({"held"}, "v", twice, s), "-ERR");
  EXPECT_EQ(take({"a"}, "v", seal_of("5", "0000000000000000")), "-1") << "the record comes first";
  EXPECT_EQ(value("a"), "(nil)");
  deny("HGET");
  EXPECT_EQ(take({"a"}, "v", s), "-ERR");
  deny("SET");
  EXPECT_EQ(take({"a"}, "v", ""), "-ERR");
  deny("DEL");
  EXPECT_EQ(release({"held"}, "v"), "-ERR");
}

// release.lua goes on behind an error, and answers with one that is not about the key's type.
TEST_F(FenceScripts, AReleaseThatMayNotRead) {
  say({"SET", "a", "v", "PX", once});
  deny("get");
  const Args request = {"EVAL", text_of(release_script), "1", "a", "v"};
  EXPECT_EQ(say(request), "-ERR");
  speak_resp3();
  EXPECT_EQ(say(request), "-ERR");
  EXPECT_TRUE(real.exists("a"));
}

TEST_F(FenceScripts, ProposalsAreComparedAsNumbersOfAnySize) {
  const std::vector<Args> rising = {
      {"0", "1"},
      {"1", "2"},
      {"9", "10"},
      {"99", "100"},
      {"199", "200"},
      {"9007199254740992", "9007199254740993"},  // 2^53: a double has the same for both
      {"9007199254740993", "9007199254740994"},
      {"9223372036854775806", "9223372036854775807"},
      {"9223372036854775807", "9223372036854775808"},  // 2^63
      {"9999999999999999999", "10000000000000000000"},
      {"18446744073709551614", "18446744073709551615"},  // 2^64 - 1
      {"18446744073709551615", "18446744073709551616"},
      {"1", "18446744073709551615"},
      {"9", "9223372036854775808"},
  };
  for (const Args& pair : rising) {
    const std::string &small = pair[0], &large = pair[1];
    EXPECT_EQ(proposed_to(small, large), "ack " + large);
    EXPECT_EQ(counter("a"), large + " " + s);
    EXPECT_EQ(proposed_to(small, small), "known " + small + " now") << "equal is not above";
    EXPECT_EQ(proposed_to(large, small), "known " + large + " now");
    EXPECT_EQ(counter("a"), large + " " + s);
    EXPECT_EQ(stored_above(small, large), "1");
    EXPECT_EQ(counter("a"), large + " " + s);
    EXPECT_EQ(stored_above(small, small), "0");
    EXPECT_EQ(stored_above(large, small), "0");
    EXPECT_EQ(counter("a"), large + " " + s);
  }
}

TEST_F(FenceScripts, SeveralNamesAllOrNone) {
  const Args names = {"a", "b", "c"};
  seal_with(s);
  count("a", "9 " + s);
  count("b", "9007199254740993 " + s);
  EXPECT_EQ(acquire(names, "v", s, "9007199254740994"), "hint 9007199254740993 now") << "one unknown, none stored";
  EXPECT_EQ(counter("a"), "9 " + s);
  EXPECT_EQ(store(names, "v", s, "9007199254740993"), "0") << "above two of three";
  EXPECT_EQ(counter("a"), "9 " + s);
  EXPECT_EQ(store(names, "v", s, "9007199254740994"), "1");
  EXPECT_EQ(counter("c"), "9007199254740994 " + s);
  say({"DEL", "a", "b"});
  EXPECT_EQ(acquire(names, "w", s, "9007199254740995"), "held known 9007199254740994");
  EXPECT_EQ(value("a"), "(nil)") << "none is set, also before the one that is held";
  EXPECT_EQ(extend(names, "v", twice, s), "0");
  EXPECT_EQ(store(names, "v", s, "9007199254740995"), "0");
  say({"DEL", "c"});
  EXPECT_EQ(acquire(names, "w", s, "9007199254740995"), "ack 9007199254740995");
  for (const std::string& name : names) EXPECT_EQ(counter(name), "9007199254740995 " + s);
  say({"SET", "b", "foreign", "PX", once});
  EXPECT_EQ(extend(names, "w", twice, s), "0");
  EXPECT_LE(std::stoll(real.command({"PTTL", "a"})), 100'000) << "none is extended";
  EXPECT_EQ(acquire({"d", "d"}, "v", s, "1"), "hint 0 now");
}

TEST_F(FenceScripts, KeysOfAnotherKindChangeNothing) {
  seal_with(s);
  say({"HSET", "a", "f", "v"});
  EXPECT_EQ(acquire({"a"}, "v", s, "1"), "held hint 0");
  EXPECT_EQ(store({"a"}, "v", s, "1"), "-WRONGTYPE");
  EXPECT_EQ(extend({"a"}, "v", twice, s), "-WRONGTYPE");
  say({"SET", "b", "v"});
  EXPECT_EQ(release({"a", "b"}, "v"), "1") << "a hash among the names hides none";
  EXPECT_FALSE(real.exists("b"));
  say({"FLUSHALL"});
  say({"SET", meta, "no hash"});
  EXPECT_EQ(acquire({"a"}, "v", s, "1"), "-WRONGTYPE");
  EXPECT_EQ(acquire({"a"}, "v", "", "1"), "hint 0 now") << "without the guard nobody reads it";
  say({"FLUSHALL"});
  seal_with(s);
  say({"SET", counters, "no hash"});
  EXPECT_EQ(acquire({"a"}, "v", s, "1"), "-WRONGTYPE");
  EXPECT_EQ(value("a"), "(nil)");
}

TEST_F(FenceScripts, AServerThatMayNotWrite) {
  seal_with(s);
  count("a", "5 " + s);
  say({"SET", "held", "v"});
  real.command({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_EQ(acquire({"held"}, "w", s, "6"), "held hint 0") << "nothing to write";
  EXPECT_EQ(acquire({"a"}, "v", s, "6"), "-OOM");
  EXPECT_EQ(store({"held"}, "v", s, "6"), "-OOM");
  EXPECT_EQ(extend({"held"}, "v", twice, s), "1");
  real.command({"CONFIG", "SET", "maxmemory", "0"});
  become_replica();
  EXPECT_EQ(acquire({"held"}, "w", s, "6"), "-1") << "a replica is another server";
  EXPECT_EQ(acquire({"held"}, "w", "", "6"), "held hint 0");
  EXPECT_EQ(acquire({"a"}, "v", "", "6"), "-READONLY");
  EXPECT_EQ(take({"a"}, "v", ""), "-READONLY");
  EXPECT_EQ(store({"held"}, "v", "", "6"), "-READONLY");
  EXPECT_EQ(extend({"held"}, "v", "100000000"), "-READONLY");
  EXPECT_EQ(release({"held"}, "v"), "-READONLY");
  EXPECT_EQ(value("a"), "(nil)");
}

TEST_F(FenceScripts, TheTimeIsWholeMilliseconds) {
  const auto micros = [this] {
    const std::string time = real.command({"TIME"});
    return std::stol(time.substr(time.find(' ') + 1));
  };
  while (micros() >= 90'000) {  // until a second begins: six digits, with zeros in front
  }
  EXPECT_EQ(acquire({"a"}, "v", "", "1"), "hint 0 now");
}

}  // namespace
}  // namespace redlock::test
