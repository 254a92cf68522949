// SPDX-License-Identifier: MIT
//
// Somebody else holds it: foreign keys, waiters, and clients that contend.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "client_of.hpp"

namespace redlock::test {
namespace {

using Foreign3 = ClientOf<3>;
using Holder3 = ClientOf<3>;

TEST_F(Foreign3, ReleaseDoesNotDeleteAnotherHoldersKey) {
  Lock& lock = client.acquire("bus", options(20'000, 0, REDLOCK_F_NO_RENEW));
  EXPECT_TRUE(loop.run_until([&] { return masters.holders("bus") == 3; }));
  masters[1].command({"SET", "bus", "somebody"});
  client.release(lock);
  EXPECT_TRUE(loop.run_until([&] { return masters.holders("bus") == 1; }));
  EXPECT_EQ(masters[1].command({"GET", "bus"}), "somebody");
}

TEST_F(Foreign3, ExtendOfAStolenLockIsLostAndMakesNoKey) {
  Lock& lock = client.acquire("bus", options(20'000, 0, REDLOCK_F_NO_RENEW));
  EXPECT_TRUE(loop.run_until([&] { return masters.holders("bus") == 3; }));
  masters[0].command({"DEL", "bus"});
  masters[1].command({"SET", "bus", "somebody"});
  ASSERT_EQ(redlock_extend_async(client.get(), lock.handle, 25'000), 0);
  EXPECT_TRUE(loop.run_until([&] { return lock.ended(); }));
  EXPECT_TRUE(lock.has(REDLOCK_EV_LOST));
  EXPECT_FALSE(lock.has(REDLOCK_EV_RENEWED));
  EXPECT_NE(client.check(lock), 0);
  EXPECT_FALSE(masters[0].exists("bus")) << "a key that is gone is never made again by an extend";
  EXPECT_EQ(masters[1].command({"GET", "bus"}), "somebody");
  EXPECT_TRUE(masters[2].exists("bus")) << "a check that was answered before may still be relied upon";
}

// ---- what a holder hears of its keys --------------------------------------------------------------------------------

// Renewed once, so that its keys are tracked.
Lock& renewed(Loop& loop, Client& client) {
  Lock& lock = client.acquire("bus", options(6'000));
  EXPECT_TRUE(loop.run_until([&] { return lock.has(REDLOCK_EV_RENEWED); }));
  EXPECT_TRUE(loop.run_until(
      [&] { return client.master(0).in_flight + client.master(1).in_flight + client.master(2).in_flight == 0; }));
  return lock;
}

TEST(Holder, LosesTheLockAtOnceWhenAQuorumForgetsIt) {
  for (const bool flush : {true, false}) {
    Loop loop;
    Cluster masters(3);
    UpClient client(loop, masters.urls());
    Lock& lock = renewed(loop, client);
    for (size_t m = 0; m < 2; ++m) {
      flush ? masters[m].command({"FLUSHALL"}) : masters[m].command({"DEL", "bus"});
    }
    int64_t lost_at = 0;
    lock.on_event = [&](const redlock_event_t& event) {
      if (event.type == REDLOCK_EV_LOST) lost_at = boot_ns();
    };
    const int64_t valid_until = redlock_deadline_ns(client.get(), lock.handle);
    EXPECT_TRUE(loop.run_until([&] { return lock.ended(); }));
    EXPECT_TRUE(lock.has(REDLOCK_EV_LOST));
    EXPECT_LT(lost_at, valid_until - 4'000'000'000) << "not at the end of the validity, nor by the next renewal";
    EXPECT_TRUE(masters[2].exists("bus"));
  }
}

TEST_F(Holder3, HasItsKeyPutBackOnAMinority) {
  Lock& lock = renewed(loop, client);
  const std::string value = masters[0].command({"GET", "bus"});
  masters[0].command({"DEL", "bus"});
  EXPECT_TRUE(loop.run_until([&] { return masters.holders("bus") == 3; }));
  EXPECT_EQ(masters[0].command({"GET", "bus"}), value);
  masters[1].kill_hard();
  masters[1].restart();
  EXPECT_TRUE(loop.run_until([&] { return masters.holders("bus") == 3; })) << "it came back empty";
  EXPECT_FALSE(lock.has(REDLOCK_EV_LOST));
  client.release(lock);
  expect_gone("bus");
}

// ---- two clients ----------------------------------------------------------------------------------------------------

struct Interval {
  int64_t from;
  int64_t to;
  int client;
};

// A gateway: takes the lock so many times and writes down when it believed to hold it.
std::vector<Interval> gateway(const std::vector<std::string>& urls, int number, int turns) {
  std::vector<Interval> held;
  Loop loop;
  Client client(loop, Settings{urls, "gw-" + std::to_string(number), {}, {}});
  while (static_cast<int>(held.size()) < turns) {
    redlock_acquire_opts_t opts = options(10'000, REDLOCK_WAIT_FOREVER);
    opts.retry_delay_ms = 10;
    Lock& lock = client.acquire("bus", opts);
    if (!lock.has(REDLOCK_EV_ACQUIRED) || client.check(lock) != 0) break;
    const int64_t from = boot_ns();
    loop.run_for(1);
    const bool still = client.check(lock) == 0;
    const int64_t to = boot_ns();
    if (still) held.push_back({from, to, number});
    client.release(lock);
  }
  client.close(5'000);
  return held;
}

void expect_exclusion(std::vector<Interval> all) {
  std::sort(all.begin(), all.end(), [](const Interval& a, const Interval& b) { return a.from < b.from; });
  for (size_t i = 1; i < all.size(); ++i) {
    EXPECT_LE(all[i - 1].to, all[i].from) << "clients " << all[i - 1].client << " and " << all[i].client;
  }
}

class Contention : public ::testing::TestWithParam<size_t> {};

TEST_P(Contention, OneAtATimeAndEverybodyGetsTurns) {
  constexpr int kTurns = 25;
  Cluster masters(GetParam());
  const std::vector<std::string> urls = masters.urls();
  std::vector<std::vector<Interval>> held(2);
  std::vector<std::thread> gateways;
  for (int number = 0; number < 2; ++number) {
    gateways.emplace_back([&, number] { held[static_cast<size_t>(number)] = gateway(urls, number, kTurns); });
  }
  for (std::thread& thread : gateways) thread.join();
  std::vector<Interval> all;
  for (const std::vector<Interval>& intervals : held) {
    EXPECT_EQ(intervals.size(), static_cast<size_t>(kTurns));
    all.insert(all.end(), intervals.begin(), intervals.end());
  }
  expect_exclusion(all);
  EXPECT_EQ(masters.holders("bus"), 0u);
}

INSTANTIATE_TEST_SUITE_P(Masters, Contention, ::testing::Values(1, 3));

// Eight gateways as they are on the field: processes, which share nothing but the masters.
TEST(Processes, EightOnOneResource) {
  constexpr int processes = 8, turns = 10;
  Cluster masters(3);
  const std::vector<std::string> urls = masters.urls();
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  std::vector<pid_t> children;
  for (int number = 0; number < processes; ++number) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const std::vector<Interval> held = gateway(urls, number, turns);
      const size_t size = held.size() * sizeof(Interval);  // below PIPE_BUF: in one piece
      ::_exit(::write(ends[1], held.data(), size) == static_cast<ssize_t>(size) && !::testing::Test::HasFailure() ? 0
                                                                                                                  : 1);
    }
    children.push_back(child);
  }
  ::close(ends[1]);
  std::vector<Interval> all;
  for (Interval interval{}; ::read(ends[0], &interval, sizeof interval) == static_cast<ssize_t>(sizeof interval);) {
    all.push_back(interval);
  }
  ::close(ends[0]);
  for (const pid_t child : children) {
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  EXPECT_EQ(all.size(), static_cast<size_t>(processes * turns)) << "everybody has had all turns";
  expect_exclusion(all);
  EXPECT_EQ(masters.holders("bus"), 0u);
}

}  // namespace
}  // namespace redlock::test
