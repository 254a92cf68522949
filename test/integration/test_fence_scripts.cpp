// SPDX-License-Identifier: MIT
//
// The scripts of rounds on a real server: acquire, extend, token, release and look. Scenarios and the simulator never
// run the Lua: they run what support/lock_scripts.cpp says in C++. Here both are told the same and compared: the bytes
// of each reply, and then the keys, their expiry and the counters. The last tests ask for tokens through the public
// header, on three real servers.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "client_harness.hpp"
#include "twins.hpp"

namespace redlock::test {
namespace {

const std::string once = "100000";  // a ttl that outlives the test
const std::string twice = "200000";

// Time to live passes on one side only: rounded up to the ttl that was given.
std::string whole_ttls(const std::string& bytes) {
  std::string out;
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = bytes.find("\r\n", at);
    const int64_t ms = std::stoll(bytes.substr(at + 1, end - at - 1));
    out += std::to_string(ms < 0 ? ms : (ms + 99'999) / 100'000 * 100'000) + " ";
    at = end + 2;
  }
  return out;
}

class FenceScripts : public Twins {
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
  // How long until the last is gone, in words: time passes on one side only.
  std::string look(const Args& names) {
    Args request = {"EVAL", text_of(look_script), std::to_string(names.size())};
    request.insert(request.end(), names.begin(), names.end());
    const auto [real_reply, twin_reply] = answers(resp_command(request), 1);
    EXPECT_EQ(whole_ttls(real_reply), whole_ttls(twin_reply));
    const std::string ttls = whole_ttls(real_reply);
    return ttls.substr(0, ttls.size() - 1);
  }
  void seal_with(const std::string& seal) { both({"HSET", meta, "seal", seal}); }
  void count(const std::string& name, const std::string& field) { both({"HSET", counters, name, field}); }
  std::string counter(const std::string& name) { return real.command({"HGET", counters, name}); }
  std::string value(const std::string& name) { return real.command({"GET", name}); }
  // A counter of this size, known, and nobody holds the name: what does a proposal get?
  std::string proposed_to(const std::string& token, const std::string& proposal) {
    both({"FLUSHALL"});
    seal_with(s);
    count("a", token + " " + s);
    return acquire({"a"}, "v", s, proposal);
  }
  // The same to the script that stores.
  std::string stored_above(const std::string& token, const std::string& next) {
    both({"FLUSHALL"});
    seal_with(s);
    count("a", token + " " + s);
    both({"SET", "a", "v"});
    return store({"a"}, "v", s, next);
  }

  const std::string s = seal_of("5"), t = seal_of("7");

 private:
  std::string run(const Script& script, const Args& names, const Args& records, const Args& argv) {
    Args keys = names;
    keys.insert(keys.end(), records.begin(), records.end());
    const std::string reply = Twins::run(script, keys, argv);
    compare_state(names);
    return reply;
  }

  void compare_state(const Args& names) {
    std::string reads, ttls;
    for (const std::string& name : names) {
      reads += resp_command({"GET", name}) + resp_command({"HGET", counters, name});
      ttls += resp_command({"PTTL", name});
    }
    const auto [real_values, twin_values] = answers(reads, 2 * names.size());
    EXPECT_EQ(comparable(real_values), comparable(twin_values));
    const auto [real_ttls, twin_ttls] = answers(ttls, names.size());
    EXPECT_EQ(whole_ttls(real_ttls), whole_ttls(twin_ttls));
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
  both({"DEL", "a"});
  EXPECT_EQ(extend({"a"}, "v1", twice, s), "0");
  EXPECT_EQ(store({"a"}, "v1", s, "9"), "0") << "stale: it is gone";
  EXPECT_EQ(counter("a"), "6 " + s);
  EXPECT_EQ(acquire({"a"}, "v2", s, "7"), "ack 7");
  EXPECT_EQ(value("a"), "v2");
  EXPECT_EQ(counter("a"), "7 " + s);
}

TEST_F(FenceScripts, AnotherSealIsAskedForFirst) {
  seal_with(t);
  count("a", "5 " + s);
  EXPECT_EQ(acquire({"a"}, "v", s, "6"), "-1");
  EXPECT_EQ(value("a"), "(nil)");
  both({"SET", "a", "v", "PX", once});
  EXPECT_EQ(acquire({"a"}, "w", s, "6"), "-1") << "also where it is held";
  EXPECT_EQ(store({"a"}, "v", s, "6"), "-1");
  EXPECT_EQ(store({"a"}, "w", s, "6"), "-1") << "also where a name is not ours";
  EXPECT_EQ(extend({"a"}, "v", twice, s), "-1");
  EXPECT_EQ(extend({"a"}, "w", twice, s), "-1");
  EXPECT_EQ(take({"b"}, "v", s), "-1");
  EXPECT_EQ(take({"a"}, "w", s), "-1");
  EXPECT_EQ(counter("a"), "5 " + s);
  both({"DEL", meta});
  EXPECT_EQ(acquire({"b"}, "v", t, "6"), "-1") << "a record that is gone is another seal";
  EXPECT_EQ(store({"a"}, "v", t, "6"), "-1");
  EXPECT_EQ(extend({"a"}, "v", twice, t), "-1");
}

TEST_F(FenceScripts, WithoutTheGuardThereIsNoSeal) {
  seal_with("of others");
  EXPECT_EQ(acquire({"a"}, "v", "", "3"), "hint 0 now");
  EXPECT_EQ(store({"a"}, "v", "", "3"), "1");
  EXPECT_EQ(counter("a"), "3 ");
  EXPECT_EQ(store({"a"}, "v", "", "3"), "0");
  EXPECT_EQ(extend({"a"}, "v", twice), "1");
  both({"DEL", "a"});
  EXPECT_EQ(take({"a", "b"}, "v", ""), "OK");
  both({"DEL", "a", "b"});
  EXPECT_EQ(acquire({"a"}, "v", "", "4"), "ack 4");
}

// The record is ordinary data: a copy of it fits the seal, and the server is another one all the same.
TEST_F(FenceScripts, ACopyOfTheRecordIsNoState) {
  seal_with(s);
  count("a", "5 " + s);
  both({"SET", "held", "v", "PX", once});
  EXPECT_EQ(take({"b"}, "v", s), "OK");
  both({"DEL", "b"});
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
  both({"DEL", "a"});
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

TEST_F(FenceScripts, SeveralNamesWithoutAToken) {
  seal_with(s);
  EXPECT_EQ(take({"a", "b"}, "v", s), "OK");
  EXPECT_EQ(take({"c", "b"}, "w", s), "(nil)");
  EXPECT_EQ(value("c"), "(nil)");
  EXPECT_EQ(extend({"a", "b"}, "v", twice, s), "1");
  EXPECT_EQ(release({"a", "b"}, "v"), "1");
  EXPECT_EQ(take({"c", "b"}, "w", s), "OK");
}

// An ACL that takes away what the scripts say: the error ends the script, and nothing was written.
TEST_F(FenceScripts, AUserWithoutTheWords) {
  seal_with(s);
  both({"SET", "held", "v", "PX", once});
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
  both({"SET", "a", "v", "PX", once});
  redis.knobs.noperm = {"GET"};
  real.command({"ACL", "SETUSER", "default", "-get"});
  const Args request = {"EVAL", text_of(release_script), "1", "a", "v"};
  EXPECT_EQ(both(request), "-ERR");
  speak_resp3();
  EXPECT_EQ(both(request), "-ERR");
  EXPECT_TRUE(real.exists("a"));
}

// A counter that goes with another seal is no reason to say yes or no to a token, and its number is still told.
TEST_F(FenceScripts, AnUnknownCounterIsAHint) {
  seal_with(t);
  count("a", "41 " + s);
  EXPECT_EQ(acquire({"a"}, "v", t, "50"), "hint 41 now");
  EXPECT_EQ(counter("a"), "41 " + s);
  EXPECT_EQ(acquire({"a"}, "w", t, "50"), "held hint 41");
  EXPECT_EQ(store({"a"}, "v", t, "7"), "1") << "it may be set back";
  EXPECT_EQ(counter("a"), "7 " + t);
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

TEST_F(FenceScripts, NoProposalIsNeverStored) {
  EXPECT_EQ(proposed_to("5", "0"), "known 5 now");
  EXPECT_EQ(proposed_to("0", "0"), "known 0 now");
}

// What nobody of ours writes, but somebody may: all of it must mean the same to both.
TEST_F(FenceScripts, StrangeCounters) {
  for (const char* field : {"",
                            " ",
                            "5",
                            "5 ",
                            " 5 s",
                            "5  s",
                            "5 s ",
                            "5 s\n",
                            "-5 s",
                            "+5 s",
                            "5.0 s",
                            "5e3 s",
                            "0x5 s",
                            "x s",
                            "007 s",
                            "000 s",
                            "00000000000000000000000000000009 s",
                            "5\ts",
                            "5 S",
                            "5 s t"}) {
    for (const char* seal : {"s", "", " s", "s t"}) {
      both({"FLUSHALL"});
      seal_with(seal);
      count("a", field);
      acquire({"a"}, "v", seal, "6");
      acquire({"a"}, "w", seal, "6");
      count("a", field);
      store({"a"}, "v", seal, "6");
      store({"a"}, "v", seal, "10");
    }
  }
  EXPECT_EQ(proposed_to("007", "6"), "known 007 now");
  EXPECT_EQ(proposed_to("x", "6"), "hint 0 now");
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
  both({"DEL", "a", "b"});
  EXPECT_EQ(acquire(names, "w", s, "9007199254740995"), "held known 9007199254740994");
  EXPECT_EQ(value("a"), "(nil)") << "none is set, also before the one that is held";
  EXPECT_EQ(extend(names, "v", twice, s), "0");
  EXPECT_EQ(store(names, "v", s, "9007199254740995"), "0");
  both({"DEL", "c"});
  EXPECT_EQ(acquire(names, "w", s, "9007199254740995"), "ack 9007199254740995");
  for (const std::string& name : names) EXPECT_EQ(counter(name), "9007199254740995 " + s);
  both({"SET", "b", "foreign", "PX", once});
  EXPECT_EQ(extend(names, "w", twice, s), "0");
  EXPECT_LE(std::stoll(real.command({"PTTL", "a"})), 100'000) << "none is extended";
  EXPECT_EQ(acquire({"d", "d"}, "v", s, "1"), "hint 0 now");
}

TEST_F(FenceScripts, SeveralNamesAreReleasedWhereverTheValueIs) {
  const Args names = {"a", "b", "c"};
  EXPECT_EQ(release(names, "v"), "0") << "nothing there";
  acquire(names, "v", "", "0");
  EXPECT_EQ(release(names, "w"), "0") << "foreign";
  EXPECT_EQ(value("a"), "v");
  both({"SET", "b", "foreign"});
  EXPECT_EQ(release(names, "v"), "1");
  EXPECT_EQ(value("a") + value("b") + value("c"), "(nil)foreign(nil)");
  EXPECT_EQ(release(names, "v"), "0") << "once";
  both({"DEL", "b"});
  acquire(names, "v", "", "0");
  both({"DEL", "a"});
  both({"HSET", "a", "f", "v"});
  EXPECT_EQ(release({"b", "a", "c"}, "v"), "1") << "a hash among them hides none";
  EXPECT_EQ(value("b") + value("c"), "(nil)(nil)");
}

TEST_F(FenceScripts, ALookAtSeveralNamesIsAboutTheLast) {
  EXPECT_EQ(look({"a", "b"}), "-2");
  both({"SET", "b", "v", "PX", once});
  EXPECT_EQ(look({"a", "b"}), once);
  both({"SET", "a", "v", "PX", twice});
  EXPECT_EQ(look({"a", "b"}), twice);
  EXPECT_EQ(look({"b", "a"}), twice);
  both({"SET", "c", "v"});
  for (const Args& names : {Args{"c", "a", "b"}, Args{"a", "c", "b"}, Args{"a", "b", "c"}})
    EXPECT_EQ(look(names), "-1");
}

TEST_F(FenceScripts, KeysOfAnotherKindChangeNothing) {
  seal_with(s);
  both({"HSET", "a", "f", "v"});
  EXPECT_EQ(acquire({"a"}, "v", s, "1"), "held hint 0");
  EXPECT_EQ(store({"a"}, "v", s, "1"), "-WRONGTYPE");
  EXPECT_EQ(extend({"a"}, "v", twice, s), "-WRONGTYPE");
  both({"FLUSHALL"});
  both({"SET", meta, "no hash"});
  EXPECT_EQ(acquire({"a"}, "v", s, "1"), "-WRONGTYPE");
  EXPECT_EQ(acquire({"a"}, "v", "", "1"), "hint 0 now") << "without the guard nobody reads it";
  both({"FLUSHALL"});
  seal_with(s);
  both({"SET", counters, "no hash"});
  EXPECT_EQ(acquire({"a"}, "v", s, "1"), "-WRONGTYPE");
  EXPECT_EQ(value("a"), "(nil)");
}

TEST_F(FenceScripts, AServerThatMayNotWrite) {
  seal_with(s);
  count("a", "5 " + s);
  both({"SET", "held", "v"});
  real.command({"CONFIG", "SET", "maxmemory", "1"});
  redis.knobs.oom = true;
  EXPECT_EQ(acquire({"held"}, "w", s, "6"), "held hint 0") << "nothing to write";
  EXPECT_EQ(acquire({"a"}, "v", s, "6"), "-OOM");
  EXPECT_EQ(store({"held"}, "v", s, "6"), "-OOM");
  EXPECT_EQ(extend({"held"}, "v", twice, s), "1");
  real.command({"CONFIG", "SET", "maxmemory", "0"});
  redis.knobs.oom = false;
  real.command({"REPLICAOF", "127.0.0.1", "1"});
  redis.become_replica();
  EXPECT_EQ(acquire({"held"}, "w", s, "6"), "-1") << "a replica is another server";
  EXPECT_EQ(acquire({"held"}, "w", "", "6"), "held hint 0");
  EXPECT_EQ(acquire({"a"}, "v", "", "6"), "-READONLY");
  EXPECT_EQ(take({"a"}, "v", ""), "-READONLY");
  EXPECT_EQ(store({"held"}, "v", "", "6"), "-READONLY");
  EXPECT_EQ(extend({"held"}, "v", "100000000"), "-READONLY");
  EXPECT_EQ(release({"held"}, "v"), "-READONLY");
  EXPECT_EQ(value("a"), "(nil)");
}

// What nobody thought of: scripts, deletions, seals and counters in any order.
TEST_F(FenceScripts, AnyOrder) {
  std::mt19937 random(1);
  const auto one_of = [&](const Args& words) { return words[random() % words.size()]; };
  const Args tokens = {"0",
                       "1",
                       "2",
                       "9",
                       "10",
                       "11",
                       "9007199254740992",
                       "9007199254740993",
                       "9223372036854775807",
                       "9223372036854775808",
                       "18446744073709551614",
                       "18446744073709551615"};
  Args seals = {s, s, s, t, seal_of("5", "0123456789abcdef"), ""};  // the first three: the record's
  const Args values = {"v", "v", "w"}, ttls = {once, twice};
  const std::vector<Args> lists = {{"a"}, {"b"}, {"a", "b"}, {"b", "a"}, {"a", "b", "c"}, {"c", "c"}};
  std::map<std::string, int> heard;
  seal_with(s);
  for (int i = 0; i < 2'000 && !HasFailure(); ++i) {
    const Args& names = lists[random() % lists.size()];
    const std::string value = one_of(values), seal = one_of(seals), token = one_of(tokens);
    SCOPED_TRACE("step " + std::to_string(i));
    std::string reply;
    switch (random() % 8) {
      case 0:
      case 1:
      case 2:
        reply = "acquire " + (random() % 3 == 0 ? take(names, value, seal) : acquire(names, value, seal, token));
        break;
      case 3:
      case 4:
        reply = "store " + store(names, value, seal, token);
        break;
      case 5:
        reply =
            "extend " + (seal.empty() ? extend(names, value, one_of(ttls)) : extend(names, value, one_of(ttls), seal));
        break;
      case 6:
        both({"DEL", one_of({"a", "b", "c"}), one_of({"a", "b", "c"})});
        break;
      default:
        count(one_of({"a", "b", "c"}), token + " " + seal);
        if (random() % 8 == 0) both({"HDEL", counters, one_of({"a", "b", "c"})});
        if (random() % 8 == 0) {
          seals[0] = seals[1] = seals[2] = one_of({s, t, seals[4]});
          seal_with(seals[0]);
        }
    }
    ++heard[reply.substr(0, reply.find(' ', reply.find(' ') + 1))];
  }
  for (const char* each :
       {"acquire OK", "acquire (nil)", "acquire ack", "acquire known", "acquire hint", "acquire held", "acquire -1",
        "store 1", "store 0", "store -1", "extend 1", "extend 0", "extend -1"})
    EXPECT_GT(heard[each], 0) << each;
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

constexpr uint32_t max_ttl_ms = 1'000;

Settings fenced(const Cluster& masters, const std::string& name, const std::string& guard, const std::string& fence) {
  return {masters.urls(),
          name,
          {{"defaults.ttl_ms", max_ttl_ms},
           {"timing.max_ttl_ms", max_ttl_ms},
           {"timing.node_timeout_ms", 500},
           {"timing.suspect_close_ms", 5'000}},
          {{"guard", guard}, {"fence", fence}}};
}

// Sealed by an operator, for the max_ttl_ms of these tests.
void seal_new_site(const Cluster& masters) {
  Settings settings = fenced(masters, "operator", "strict", "floor");
  settings.commission = true;
  Loop loop;
  Client client(loop, settings);
  client.wait_up(static_cast<uint32_t>(masters.size()));
}

// The device: it sees every token, and two clients take turns.
class Turns {
 public:
  Turns(Loop& loop, const Cluster& masters, const std::string& guard, const std::string& fence)
      : loop_(loop), a_(loop, fenced(masters, "a", guard, fence)), b_(loop, fenced(masters, "b", guard, fence)) {
    wait_up(static_cast<uint32_t>(masters.size()));
  }

  // Acquires, shows the token, does what else is to be done while it holds, releases.
  void take(
      int turns, const std::function<void()>& while_held = [] {}) {
    for (int i = 0; i < turns && !::testing::Test::HasFailure(); ++i) {
      Client& client = turn_++ % 2 == 0 ? a_ : b_;
      Lock& lock = client.acquire("bus", patient());
      ASSERT_TRUE(lock.has(REDLOCK_EV_ACQUIRED)) << redlock_err_name(lock.first(REDLOCK_EV_FAILED).err);
      see(client, lock);
      while_held();
      client.release(lock);
    }
  }

  // Takes until all of them have the counter: a token is stored by a quorum, and told to the others while it is held.
  void take_until_all_know(Cluster& masters) {
    take(1, [&] {
      EXPECT_TRUE(loop_.run_until([&] {
        bool all = true;
        for (unsigned m = 0; m < masters.size(); ++m) all = all && masters[m].command({"HLEN", counters}) == "1";
        return all;
      }));
    });
  }

  void wait_up(uint32_t masters) {
    a_.wait_up(masters);
    b_.wait_up(masters);
  }
  void wait_away(uint32_t index) {
    EXPECT_TRUE(loop_.run_until([&] {
      return a_.master(index).state != REDLOCK_MASTER_UP && b_.master(index).state != REDLOCK_MASTER_UP;
    })) << "nobody noticed what became of master "
        << index;
  }
  static redlock_acquire_opts_t patient() {
    return options(max_ttl_ms, REDLOCK_WAIT_FOREVER, REDLOCK_F_FENCING | REDLOCK_F_NO_RENEW);
  }
  Client& a() { return a_; }
  int seen() const { return turn_; }
  int floored() const { return floored_; }

 private:
  void see(Client& client, const Lock& lock) {
    const redlock_event_t& acquired = lock.first(REDLOCK_EV_ACQUIRED);
    EXPECT_GT(acquired.token, last_) << "token " << turn_;
    EXPECT_EQ(redlock_fencing_token(client.get(), lock.handle), acquired.token);
    EXPECT_EQ(redlock_fence_check(&last_, acquired.token), 0);
    floored_ += (acquired.flags & REDLOCK_EV_F_FLOORED) != 0 ? 1 : 0;
  }

  Loop& loop_;
  Client a_;
  Client b_;
  int turn_ = 0;
  int floored_ = 0;
  uint64_t last_ = 0;
};

TEST(FencingTokens, RiseWithTheGuardOff) {
  Cluster masters(3);
  Loop loop;
  Turns turns(loop, masters, "off", "floor");
  turns.take(50);
  EXPECT_EQ(turns.seen(), 50);
  EXPECT_EQ(turns.floored(), 1) << "the first, since no master knows a counter, and no other";
}

TEST(FencingTokens, RiseWithTheGuard) {
  Cluster masters(3);
  seal_new_site(masters);
  Loop loop;
  Turns turns(loop, masters, "strict", "floor");
  turns.take(50);
  EXPECT_EQ(turns.seen(), 50);
  EXPECT_EQ(turns.floored(), 1);
}

// The last number is given and none after it, and no digit is lost on the way: 2^63 - 1 is above what a double holds.
TEST(FencingTokens, EndAtTheLargest) {
  Cluster masters(3);
  Loop loop;
  Client client(loop, fenced(masters, "a", "off", "floor"));
  client.wait_up(3);
  for (size_t m = 0; m < 3; ++m) masters[m].command({"HSET", counters, "bus", "9223372036854775805 "});
  for (const uint64_t expected : {uint64_t{INT64_MAX} - 1, uint64_t{INT64_MAX}}) {
    Lock& lock = client.acquire("bus", Turns::patient());
    ASSERT_TRUE(lock.has(REDLOCK_EV_ACQUIRED));
    EXPECT_EQ(lock.first(REDLOCK_EV_ACQUIRED).token, expected);
    client.release(lock);
  }
  Lock& refused = client.acquire("bus", options(max_ttl_ms, REDLOCK_TRY_ONCE, REDLOCK_F_FENCING));
  ASSERT_TRUE(refused.has(REDLOCK_EV_FAILED));
  EXPECT_EQ(refused.first(REDLOCK_EV_FAILED).err, REDLOCK_E_FENCE_RANGE);
}

// One master forgets, and when it has been told again, another one: never the floor, which "strict" does not allow.
TEST(FencingTokens, RiseOverLossesOneAfterTheOther) {
  Cluster masters(3);
  seal_new_site(masters);
  Loop loop;
  Turns turns(loop, masters, "strict", "strict");
  Lock& refused = turns.a().acquire("bus", options(max_ttl_ms, REDLOCK_TRY_ONCE, REDLOCK_F_FENCING));
  ASSERT_TRUE(refused.has(REDLOCK_EV_FAILED));
  EXPECT_EQ(refused.first(REDLOCK_EV_FAILED).err, REDLOCK_E_FENCE_UNKNOWN);
  const redlock_resource_t bus = {"bus", 3};
  ASSERT_EQ(redlock_fence_init(turns.a().get(), &bus), 0);
  turns.take(9);
  turns.take_until_all_know(masters);
  turns.take(1, [&] { masters[0].command({"FLUSHALL"}); });
  turns.wait_away(0);
  turns.take(10);
  EXPECT_EQ(masters[0].command({"HLEN", "redlock::fence"}), "0") << "it is not asked before it is admitted";
  turns.wait_up(3);
  turns.take(9);
  turns.take_until_all_know(masters);
  turns.take(1, [&] {
    masters[1].kill_hard();
    masters[1].restart();
  });
  turns.wait_away(1);
  turns.take(10);
  turns.wait_up(3);
  turns.take(10);
  EXPECT_EQ(turns.seen(), 52);
  EXPECT_EQ(turns.floored(), 1) << "what redlock_fence_init() allowed";
}

// Two of three forget and the third is gone: the next token is floored, once, and still above all that were given.
TEST(FencingTokens, ALostMajorityIsFlooredAndFlagged) {
  Cluster masters(3);
  seal_new_site(masters);
  Loop loop;
  Turns turns(loop, masters, "strict", "floor");
  turns.take(10);
  for (const unsigned m : {0u, 1u}) masters[m].command({"FLUSHALL"});
  for (const unsigned m : {0u, 1u}) turns.wait_away(m);
  turns.wait_up(3);
  masters[2].kill_hard();
  turns.wait_away(2);
  turns.take(10);
  EXPECT_EQ(turns.floored(), 2);
}

}  // namespace
}  // namespace redlock::test
