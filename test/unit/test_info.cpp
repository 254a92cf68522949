// SPDX-License-Identifier: MIT
#include "master/info.hpp"

#include <gtest/gtest.h>

#include <string>

#include "master/clock_watch.hpp"

namespace redlock {
namespace {

// As Redis 7.0 says it, of what is wanted.
const std::string redis7 =
    "redis_mode:standalone\nrun_id:b236baf9976a2bb9393b99dbf730ae58d09aa084\nmaxmemory:0\nmaxmemory_policy:noeviction\n"
    "evicted_keys:18446744073709551615\nrole:master\nconnected_slaves:0\n"
    "master_replid:f6e98a0f09967f6d2423cd5791992dc33d4b3bbb\nrepl_backlog_active:0\n";

// The values that the script finds in this text.
void read(InfoReader& reader, const std::string& text) {
  static constexpr const char* names[] = {"run_id",       "master_replid", "role",    "connected_slaves",
                                          "repl_backlog_active", "redis_mode", "server_mode", "maxmemory",
                                          "maxmemory_policy", "evicted_keys"};
  static_assert(std::size(names) == InfoReader::lines);
  reader.begin();
  for (unsigned i = 0; i < InfoReader::lines; ++i) {
    const std::string mark = std::string("\n") + names[i] + ":";
    const size_t at = ("\n" + text).find(mark);
    if (at == std::string::npos) continue;
    const std::string value = text.substr(at + mark.size() - 1, text.find('\n', at) - at - mark.size() + 1);
    reader.read(static_cast<InfoReader::Line>(i), Bytes(value.data(), value.size()));
  }
}
InfoFacts read(const std::string& text) {
  InfoReader reader;
  read(reader, text);
  return reader.end();
}
std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}
std::string id(const char (&id)[InfoFacts::id_size]) { return std::string(id, sizeof id); }

TEST(Info, the_facts_of_a_plain_master) {
  const InfoFacts facts = read(redis7);
  EXPECT_TRUE(facts.has_run_id && facts.has_replid);
  EXPECT_EQ(id(facts.run_id), "b236baf9976a2bb9");
  EXPECT_EQ(id(facts.replid), "f6e98a0f09967f6d");
  EXPECT_TRUE(facts.standalone && facts.master && facts.alone && !facts.evicts);
  EXPECT_EQ(facts.evicted_keys, UINT64_MAX);
  EXPECT_FALSE(read("").has_run_id);
}

TEST(Info, every_fact_that_refuses) {
  EXPECT_FALSE(read(with(redis7, "role:master", "role:slave")).master);
  EXPECT_FALSE(read(with(redis7, "role:master", "role:masters")).master);
  EXPECT_FALSE(read(with(redis7, "role:master", "no_role:master")).master) << "a server that tells no role is none";
  EXPECT_FALSE(read(with(redis7, "redis_mode:standalone", "redis_mode:cluster")).standalone);
  EXPECT_FALSE(read(with(redis7, "redis_mode:standalone", "server_mode:sentinel")).standalone);
  EXPECT_FALSE(read("redis_mode:standalone\nserver_mode:cluster\n").standalone);
  EXPECT_FALSE(read("redis_mode:cluster\nserver_mode:standalone\n").standalone);
  EXPECT_EQ(read("evicted_keys:12/\n").evicted_keys, 0u);
  EXPECT_EQ(read("evicted_keys:12:\n").evicted_keys, 0u);
  EXPECT_FALSE(read(with(redis7, "run_id:b2", "run_xx:b2")).has_run_id);
  EXPECT_FALSE(read(with(redis7, "run_id:b236baf9976a2bb9393b99dbf730ae58d09aa084", "run_id:b236")).has_run_id);
  EXPECT_FALSE(read(with(redis7, "master_replid:f6", "master_xxxxxx:f6")).has_replid);
}

// Zeros stand for "not known" in a seal.
TEST(Info, an_id_of_zeros_is_none) {
  const std::string zeros(40, '0');
  EXPECT_FALSE(read(with(redis7, "f6e98a0f09967f6d2423cd5791992dc33d4b3bbb", zeros)).has_replid);
  EXPECT_FALSE(read(with(redis7, "b236baf9976a2bb9393b99dbf730ae58d09aa084", zeros)).has_run_id);
  EXPECT_FALSE(read("run_id:0000000000000000b236\n").has_run_id) << "no more of it is compared";
  EXPECT_TRUE(read("run_id:0000000000000001\n").has_run_id);
}

// Both lines must be there: a server that does not tell has a replica, perhaps.
TEST(Info, alone_is_a_master_that_says_so_twice) {
  EXPECT_FALSE(read(with(redis7, "connected_slaves:0", "connected_slaves:1")).alone);
  EXPECT_FALSE(read(with(redis7, "connected_slaves:0", "connected_slaves:00")).alone);
  EXPECT_FALSE(read(with(redis7, "connected_slaves:0\n", "")).alone);
  EXPECT_FALSE(read(with(redis7, "repl_backlog_active:0", "repl_backlog_active:1")).alone);
  EXPECT_FALSE(read(with(redis7, "repl_backlog_active:0\n", "")).alone);
  EXPECT_FALSE(read(with(redis7, "repl_backlog_active:0", "repl_backlog_size:0")).alone);
  EXPECT_FALSE(read(with(redis7, "role:master", "role:slave")).alone) << "it has a master";
  EXPECT_FALSE(read(with(redis7, "connected_slaves:0", "repl_backlog_active:0")).alone) << "one of them twice";
  InfoReader reader;
  read(reader, redis7);
  EXPECT_TRUE(reader.end().alone);
  read(reader, "role:master\n");
  EXPECT_FALSE(reader.end().alone) << "the next text begins with nothing";
}

// volatile-* evicts just the lock keys, allkeys-* may; without a limit no policy evicts anything.
TEST(Info, evicts_only_with_a_limit_and_a_policy) {
  const std::string limited = with(redis7, "maxmemory:0", "maxmemory:1000000");
  EXPECT_FALSE(read(limited).evicts);
  for (const char* policy : {"volatile-ttl", "volatile-lru", "allkeys-lru", "allkeys-random", "something-new"}) {
    const std::string change = std::string("maxmemory_policy:") + policy;
    EXPECT_TRUE(read(with(limited, "maxmemory_policy:noeviction", change)).evicts) << policy;
    EXPECT_FALSE(read(with(redis7, "maxmemory_policy:noeviction", change)).evicts) << policy;
  }
}

using Verdict = ClockWatch::Verdict;

// A server whose clock is read halfway between sent and received.
struct Server {
  ClockWatch watch;
  int64_t wall_us = 1'700'000'000'000'000;
  int64_t ours_us = 1'000'000;
  Duration by;

  // Our clock goes on by `ours`, the server's by `theirs`, in ms; then one sample.
  Verdict after(double ours_ms, double theirs_ms, double round_trip_ms = 1) {
    ours_us += static_cast<int64_t>(ours_ms * 1'000);
    wall_us += static_cast<int64_t>(theirs_ms * 1'000);
    const auto half = static_cast<int64_t>(round_trip_ms * 500);
    return watch.sample(Instant::from_ns((ours_us - half) * 1'000), Instant::from_ns((ours_us + half) * 1'000), wall_us,
                        10'000, by);
  }
  double by_ms() const { return static_cast<double>(by.ns()) / 1e6; }
};

struct WatchedClock : ::testing::Test {
  Server s;
};

TEST(ClockWatch, a_clock_within_the_allowance_is_steady_for_ever) {
  for (const double rate : {0.99, 0.995, 1.0, 1.005, 1.01}) {
    Server s;
    s.after(0, 0);
    for (int i = 0; i < 10'000; ++i) ASSERT_EQ(s.after(5'000, 5'000 * rate), Verdict::steady) << rate << " " << i;
  }
}

TEST(ClockWatch, a_rate_beyond_it_is_told_at_the_next_sample) {
  for (const double rate : {0.92, 0.985, 1.012, 1.08}) {
    Server s;
    s.after(0, 0);
    EXPECT_EQ(s.after(5'000, 5'000 * rate), Verdict::stepped) << rate;
    EXPECT_EQ(s.by.ns() > 0, rate > 1) << rate;
    EXPECT_EQ(s.after(5'000, 5'000 * rate), Verdict::stepped) << rate << ": it still runs off";
  }
}

TEST(ClockWatch, a_step_is_told_once_with_its_size) {
  for (const double step : {3'600'000.0, 1'000.0, 60.0, -60.0, -3'600'000.0}) {
    Server s;
    s.after(0, 0);
    EXPECT_EQ(s.after(5'000, 5'000 + step), Verdict::stepped) << step;
    EXPECT_NEAR(s.by_ms(), step + (step > 0 ? -52 : 52), 2) << "less what the rates may have done";
    EXPECT_EQ(s.after(5'000, 5'000), Verdict::steady) << step << ": the new time is taken as it is";
  }
}

// A server that stood still, or a network that did, answers late: that is not a step.
TEST_F(WatchedClock, a_slow_answer_is_no_step) {
  s.after(0, 0);
  EXPECT_EQ(s.after(20'000, 20'000, 30'000), Verdict::steady);
  EXPECT_EQ(s.after(20'000, 20'000, 1), Verdict::steady);
  EXPECT_EQ(s.after(20'000, 20'000 + 300, 1), Verdict::stepped)
      << "and the wide sample has not made it forget the narrow one";
}

TEST_F(WatchedClock, small_steps_do_not_hide_between_frequent_samples) {
  s.after(0, 0);
  int told = 0;
  for (int i = 0; i < 100; ++i) told += s.after(500, 500 + 10) == Verdict::stepped;  // 2 % fast
  EXPECT_GT(told, 10);
}

}  // namespace
}  // namespace redlock
