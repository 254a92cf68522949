// SPDX-License-Identifier: MIT
//
// The scripts of fenced rounds on a real server. Scenarios and the simulator never run the Lua: they run what
// support/fence_scripts.cpp says in C++. Here both are told the same and compared: the bytes of each reply, and then
// the keys, their expiry and the counters. Only what must differ is masked: the server's time, which is held against
// TIME, and the script's line in an error. The last tests ask for tokens through the public header, on three real
// servers.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "client_harness.hpp"
#include "master/scripts.hpp"
#include "support/fence_scripts.hpp"
#include "support/redis_double.hpp"
#include "support/redis_server.hpp"

namespace redlock::test {
namespace {

const std::string meta = "redlock::meta";
const std::string counters = "redlock::fence";
const std::string once = "100000";  // a ttl that outlives the test
const std::string twice = "200000";

std::string readable(const std::string& bytes) {
  std::string text;
  for (const char c : bytes)
    text += c == '\r' ? std::string("\\r") : c == '\n' ? std::string("\\n") : std::string(1, c);
  return text;
}

// An error names the script's line, and the double has none.
std::string without_line(std::string bytes) {
  static const std::string mark = "@user_script:";
  const size_t at = bytes.find(mark);
  if (at == std::string::npos) return bytes;
  const size_t line = at + mark.size();
  return bytes.replace(line, bytes.find('.', line) - line, "1");
}

// A single reply as text: of an error its first word.
std::string said(const std::string& bytes) {
  const size_t line = bytes.find("\r\n");
  if (bytes[0] == ':') return bytes.substr(1, line - 1);
  if (bytes[0] == '-') return bytes.substr(0, bytes.find(' '));
  return bytes.substr(line + 2, bytes.size() - line - 4);
}

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

class FenceScripts : public ::testing::Test {
 protected:
  FenceScripts() : twin_(redis.open(0)) { register_fence_scripts(redis); }

  // The same request to both, answered by the same bytes; this is what they said.
  std::string both(const Args& request) {
    const std::string bytes = resp_command(request);
    const int64_t before = real_ms();
    conn_.send(bytes);
    const std::string reply = without_line(take_time(conn_.receive(1), before, [this] { return real_ms(); }));
    redis.receive(twin_, bytes, 0);
    const std::string twin = take_time(take(), redis.wall_ms(0), [this] { return redis.wall_ms(0); });
    EXPECT_EQ(readable(reply), readable(twin)) << readable(bytes);
    return said(reply);
  }

  std::string acquire(const Args& names, const std::string& value, const std::string& seal, const std::string& next) {
    return run(acquire_fenced_script, names, {meta, counters}, {value, once, seal, next});
  }
  std::string store(const Args& names, const std::string& value, const std::string& seal, const std::string& token) {
    return run(token_script, names, {meta, counters}, {value, seal, token});
  }
  std::string extend(const Args& names, const std::string& value, const std::string& ttl, const std::string& seal) {
    return run(extend_fenced_script, names, {meta}, {value, ttl, seal});
  }
  std::string release(const Args& names, const std::string& value) { return run(release_several_script, names, {}, {value}); }
  // How long until the last is gone, in words: time passes on one side only.
  std::string look(const Args& names) {
    Args request = {"EVAL", std::string(look_script.body.data, look_script.body.size), std::to_string(names.size())};
    request.insert(request.end(), names.begin(), names.end());
    const std::string bytes = resp_command(request);
    conn_.send(bytes);
    const std::string reply = whole_ttls(conn_.receive(1));
    redis.receive(twin_, bytes, 0);
    EXPECT_EQ(reply, whole_ttls(take()));
    return reply.substr(0, reply.size() - 1);
  }
  void seal_with(const std::string& seal) { both({"HSET", meta, "seal", seal}); }
  void count(const std::string& name, const std::string& field) { both({"HSET", counters, name, field}); }
  std::string counter(const std::string& name) { return real.command({"HGET", counters, name}); }
  std::string value(const std::string& name) { return real.command({"GET", name}); }
  // A counter of this size, known, and nobody holds the name: what does a proposal get?
  std::string proposed_to(const std::string& token, const std::string& proposal) {
    both({"FLUSHALL"});
    seal_with("s");
    count("a", token + " s");
    return acquire({"a"}, "v", "s", proposal);
  }
  // The same to the script that stores.
  std::string stored_above(const std::string& token, const std::string& next) {
    both({"FLUSHALL"});
    seal_with("s");
    count("a", token + " s");
    both({"SET", "a", "v"});
    return store({"a"}, "v", "s", next);
  }

  RedisServer real;
  RedisDouble redis{1, WallClock(1'700'000'000'012)};  // a time whose microseconds begin with a zero

 private:
  std::string run(const Script& script, const Args& names, const Args& records, const Args& argv) {
    Args request = {"EVAL", std::string(script.body.data, script.body.size),
                    std::to_string(names.size() + records.size())};
    for (const Args* part : {&names, &records, &argv}) request.insert(request.end(), part->begin(), part->end());
    const std::string reply = both(request);
    compare_state(names);
    return reply;
  }

  void compare_state(const Args& names) {
    std::string reads, ttls;
    for (const std::string& name : names) {
      reads += resp_command({"GET", name}) + resp_command({"HGET", counters, name});
      ttls += resp_command({"PTTL", name});
    }
    conn_.send(reads + ttls);
    redis.receive(twin_, reads, 0);
    EXPECT_EQ(readable(conn_.receive(2 * names.size())), readable(take()));
    redis.receive(twin_, ttls, 0);
    EXPECT_EQ(whole_ttls(conn_.receive(names.size())), whole_ttls(take()));
  }

  std::string take() { return std::exchange(redis.out(twin_), {}); }

  int64_t real_ms() {
    const std::string time = real.command({"TIME"});
    const size_t blank = time.find(' ');
    return std::stoll(time.substr(0, blank)) * 1'000 + std::stoll(time.substr(blank + 1)) / 1'000;
  }

  // "known 41 1700000000000" becomes "known 41 now", if it was.
  template <typename Clock>
  static std::string take_time(std::string bytes, int64_t before, Clock&& clock) {
    const std::string text = said(bytes);
    if (!text.starts_with("known ") && !text.starts_with("hint ")) return bytes;
    const size_t at = bytes.rfind(' ') + 1;
    const std::string ms = bytes.substr(at, bytes.size() - at - 2);
    EXPECT_EQ(ms.find_first_not_of("0123456789"), std::string::npos) << ms;
    EXPECT_GE(std::stoll(ms), before);
    EXPECT_LE(std::stoll(ms), clock());
    return bytes.replace(at, ms.size(), "now");
  }

  RedisConnection conn_ = real.connect();
  int twin_;
};

TEST_F(FenceScripts, ALife) {
  seal_with("s");
  EXPECT_EQ(acquire({"a"}, "v1", "s", "1"), "hint 0 now") << "no counter yet: granted, and the proposal is not stored";
  EXPECT_EQ(counter("a"), "(nil)");
  EXPECT_EQ(store({"a"}, "v1", "s", "5"), "1");
  EXPECT_EQ(store({"a"}, "v1", "s", "5"), "0") << "strict";
  EXPECT_EQ(store({"a"}, "v1", "s", "4"), "0");
  EXPECT_EQ(store({"a"}, "v1", "s", "6"), "1");
  EXPECT_EQ(store({"a"}, "v2", "s", "7"), "0") << "somebody else's";
  EXPECT_EQ(acquire({"a"}, "v2", "s", "7"), "held known 6");
  EXPECT_EQ(extend({"a"}, "v2", twice, "s"), "0");
  EXPECT_EQ(extend({"a"}, "v1", twice, "s"), "1");
  EXPECT_EQ(extend({"a"}, "v1", once, "s"), "1") << "and the expiry is not lowered";
  EXPECT_GT(std::stoll(real.command({"PTTL", "a"})), 100'000);
  both({"DEL", "a"});
  EXPECT_EQ(extend({"a"}, "v1", twice, "s"), "0");
  EXPECT_EQ(store({"a"}, "v1", "s", "9"), "0") << "stale: it is gone";
  EXPECT_EQ(counter("a"), "6 s");
  EXPECT_EQ(acquire({"a"}, "v2", "s", "7"), "ack 7");
  EXPECT_EQ(value("a"), "v2");
  EXPECT_EQ(counter("a"), "7 s");
}

TEST_F(FenceScripts, AnotherSealIsAskedForFirst) {
  seal_with("new");
  count("a", "5 old");
  EXPECT_EQ(acquire({"a"}, "v", "old", "6"), "-1");
  EXPECT_EQ(value("a"), "(nil)");
  both({"SET", "a", "v", "PX", once});
  EXPECT_EQ(acquire({"a"}, "w", "old", "6"), "-1") << "also where it is held";
  EXPECT_EQ(store({"a"}, "v", "old", "6"), "-1");
  EXPECT_EQ(store({"a"}, "w", "old", "6"), "0") << "a name that is not ours goes before the seal";
  EXPECT_EQ(extend({"a"}, "v", twice, "old"), "-1");
  EXPECT_EQ(extend({"a"}, "w", twice, "old"), "0");
  EXPECT_EQ(counter("a"), "5 old");
  both({"DEL", meta});
  EXPECT_EQ(acquire({"b"}, "v", "new", "6"), "-1") << "a record that is gone is another seal";
  EXPECT_EQ(store({"a"}, "v", "new", "6"), "-1");
  EXPECT_EQ(extend({"a"}, "v", twice, "new"), "-1");
}

TEST_F(FenceScripts, WithoutTheGuardThereIsNoSeal) {
  seal_with("of others");
  EXPECT_EQ(acquire({"a"}, "v", "", "3"), "hint 0 now");
  EXPECT_EQ(store({"a"}, "v", "", "3"), "1");
  EXPECT_EQ(counter("a"), "3 ");
  EXPECT_EQ(store({"a"}, "v", "", "3"), "0");
  EXPECT_EQ(extend({"a"}, "v", twice, ""), "1");
  both({"DEL", "a"});
  EXPECT_EQ(acquire({"a"}, "v", "", "4"), "ack 4");
}

// A counter that goes with another seal is no reason to say yes or no to a token, and its number is still told.
TEST_F(FenceScripts, AnUnknownCounterIsAHint) {
  seal_with("new");
  count("a", "41 old");
  EXPECT_EQ(acquire({"a"}, "v", "new", "50"), "hint 41 now");
  EXPECT_EQ(counter("a"), "41 old");
  EXPECT_EQ(acquire({"a"}, "w", "new", "50"), "held hint 41");
  EXPECT_EQ(store({"a"}, "v", "new", "7"), "1") << "it may be set back";
  EXPECT_EQ(counter("a"), "7 new");
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
    EXPECT_EQ(counter("a"), large + " s");
    EXPECT_EQ(proposed_to(small, small), "known " + small + " now") << "equal is not above";
    EXPECT_EQ(proposed_to(large, small), "known " + large + " now");
    EXPECT_EQ(counter("a"), large + " s");
    EXPECT_EQ(stored_above(small, large), "1");
    EXPECT_EQ(counter("a"), large + " s");
    EXPECT_EQ(stored_above(small, small), "0");
    EXPECT_EQ(stored_above(large, small), "0");
    EXPECT_EQ(counter("a"), large + " s");
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
  seal_with("s");
  count("a", "9 s");
  count("b", "9007199254740993 s");
  EXPECT_EQ(acquire(names, "v", "s", "9007199254740994"), "hint 9007199254740993 now") << "one unknown, none stored";
  EXPECT_EQ(counter("a"), "9 s");
  EXPECT_EQ(store(names, "v", "s", "9007199254740993"), "0") << "above two of three";
  EXPECT_EQ(counter("a"), "9 s");
  EXPECT_EQ(store(names, "v", "s", "9007199254740994"), "1");
  EXPECT_EQ(counter("c"), "9007199254740994 s");
  both({"DEL", "a", "b"});
  EXPECT_EQ(acquire(names, "w", "s", "9007199254740995"), "held known 9007199254740994");
  EXPECT_EQ(value("a"), "(nil)") << "none is set, also before the one that is held";
  EXPECT_EQ(extend(names, "v", twice, "s"), "0");
  EXPECT_EQ(store(names, "v", "s", "9007199254740995"), "0");
  both({"DEL", "c"});
  EXPECT_EQ(acquire(names, "w", "s", "9007199254740995"), "ack 9007199254740995");
  for (const std::string& name : names) EXPECT_EQ(counter(name), "9007199254740995 s");
  both({"SET", "b", "foreign", "PX", once});
  EXPECT_EQ(extend(names, "w", twice, "s"), "0");
  EXPECT_LE(std::stoll(real.command({"PTTL", "a"})), 100'000) << "none is extended";
  EXPECT_EQ(acquire({"d", "d"}, "v", "s", "1"), "hint 0 now");
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
  for (const Args& names : {Args{"c", "a", "b"}, Args{"a", "c", "b"}, Args{"a", "b", "c"}}) EXPECT_EQ(look(names), "-1");
}

TEST_F(FenceScripts, KeysOfAnotherKindChangeNothing) {
  seal_with("s");
  both({"HSET", "a", "f", "v"});
  EXPECT_EQ(acquire({"a"}, "v", "s", "1"), "held hint 0");
  EXPECT_EQ(store({"a"}, "v", "s", "1"), "-WRONGTYPE");
  EXPECT_EQ(extend({"a"}, "v", twice, "s"), "-WRONGTYPE");
  both({"FLUSHALL"});
  both({"SET", meta, "no hash"});
  EXPECT_EQ(acquire({"a"}, "v", "s", "1"), "-WRONGTYPE");
  EXPECT_EQ(acquire({"a"}, "v", "", "1"), "hint 0 now") << "without the guard nobody reads it";
  both({"FLUSHALL"});
  seal_with("s");
  both({"SET", counters, "no hash"});
  EXPECT_EQ(acquire({"a"}, "v", "s", "1"), "-WRONGTYPE");
  EXPECT_EQ(value("a"), "(nil)");
}

TEST_F(FenceScripts, AServerThatMayNotWrite) {
  seal_with("s");
  count("a", "5 s");
  both({"SET", "held", "v"});
  real.command({"CONFIG", "SET", "maxmemory", "1"});
  redis.knobs.oom = true;
  EXPECT_EQ(acquire({"held"}, "w", "s", "6"), "held hint 0") << "nothing to write";
  EXPECT_EQ(acquire({"a"}, "v", "s", "6"), "-OOM");
  EXPECT_EQ(store({"held"}, "v", "s", "6"), "-OOM");
  EXPECT_EQ(extend({"held"}, "v", twice, "s"), "1");
  real.command({"CONFIG", "SET", "maxmemory", "0"});
  redis.knobs.oom = false;
  real.command({"REPLICAOF", "127.0.0.1", "1"});
  redis.become_replica();
  EXPECT_EQ(acquire({"held"}, "w", "s", "6"), "held hint 0");
  EXPECT_EQ(acquire({"a"}, "v", "s", "6"), "-READONLY");
  EXPECT_EQ(store({"held"}, "v", "s", "6"), "-READONLY");
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
  Args seals = {"s", "s", "s", "t", ""};  // the first three: the record's
  const Args values = {"v", "v", "w"}, ttls = {once, twice};
  const std::vector<Args> lists = {{"a"}, {"b"}, {"a", "b"}, {"b", "a"}, {"a", "b", "c"}, {"c", "c"}};
  std::map<std::string, int> heard;
  seal_with("s");
  for (int i = 0; i < 2'000 && !HasFailure(); ++i) {
    const Args& names = lists[random() % lists.size()];
    const std::string value = one_of(values), seal = one_of(seals), token = one_of(tokens);
    SCOPED_TRACE("step " + std::to_string(i));
    std::string reply;
    switch (random() % 8) {
      case 0:
      case 1:
      case 2:
        reply = "acquire " + acquire(names, value, seal, token);
        break;
      case 3:
      case 4:
        reply = "store " + store(names, value, seal, token);
        break;
      case 5:
        reply = "extend " + extend(names, value, one_of(ttls), seal);
        break;
      case 6:
        both({"DEL", one_of({"a", "b", "c"}), one_of({"a", "b", "c"})});
        break;
      default:
        count(one_of({"a", "b", "c"}), token + " " + seal);
        if (random() % 8 == 0) both({"HDEL", counters, one_of({"a", "b", "c"})});
        if (random() % 8 == 0) {
          seals[0] = seals[1] = seals[2] = one_of({"s", "t"});
          seal_with(seals[0]);
        }
    }
    ++heard[reply.substr(0, reply.find(' ', reply.find(' ') + 1))];
  }
  for (const char* each : {"acquire ack", "acquire known", "acquire hint", "acquire held", "acquire -1", "store 1",
                           "store 0", "store -1", "extend 1", "extend 0", "extend -1"})
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
  settings.numbers.push_back({"commission", 1});
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
  Lock& refused = client.acquire("bus", options(max_ttl_ms, REDLOCK_WAIT_NONE, REDLOCK_F_FENCING));
  ASSERT_TRUE(refused.has(REDLOCK_EV_FAILED));
  EXPECT_EQ(refused.first(REDLOCK_EV_FAILED).err, REDLOCK_E_FENCE_RANGE);
}

// One master forgets, and when it has been told again, another one: never the floor, which "strict" does not allow.
TEST(FencingTokens, RiseOverLossesOneAfterTheOther) {
  Cluster masters(3);
  seal_new_site(masters);
  Loop loop;
  Turns turns(loop, masters, "strict", "strict");
  Lock& refused = turns.a().acquire("bus", options(max_ttl_ms, REDLOCK_WAIT_NONE, REDLOCK_F_FENCING));
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
