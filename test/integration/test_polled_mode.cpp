// SPDX-License-Identifier: MIT
//
// redlock_create_polled(): a client behind one descriptor, in a plain poll() loop.
#include "polled_harness.hpp"

#include <thread>

#include "support/redis_server.hpp"

namespace redlock::test {
namespace {

struct OnePolled : ::testing::Test {
  RedisServer master;
  PolledClient client{{master.url()}};
};

class Polled : public ::testing::TestWithParam<int> {};

TEST_P(Polled, AcquireExtendRelease) {
  Cluster masters(static_cast<size_t>(GetParam()));
  PolledClient client(masters.urls());
  EXPECT_TRUE(client.events.empty()) << "nothing is told by create";
  EXPECT_EQ(redlock_timeout_ms(client.get()), 0) << "there are connections to make";
  redlock_lock_t lock{0};
  EXPECT_EQ(client.acquire_async("redlock::meta", lock), REDLOCK_E_RESERVED);
  ASSERT_EQ(client.acquire_async("bus", lock, options(20'000)), 0);
  ASSERT_TRUE(client.run_until([&] { return client.count(REDLOCK_EV_ACQUIRED) == 1; }));
  EXPECT_EQ(redlock_check(client.get(), lock, 10'000), 0);
  EXPECT_EQ(redlock_extend_async(client.get(), lock, 30'000), 0);
  ASSERT_TRUE(client.run_until([&] { return client.count(REDLOCK_EV_RENEWED) == 1; }));
  EXPECT_EQ(redlock_release_async(client.get(), lock), 0);
  ASSERT_TRUE(client.run_until([&] { return client.count(REDLOCK_EV_RELEASED) == 1; }));
  ASSERT_TRUE(client.run_until([&] { return masters.holders("bus") == 0; }));
}
INSTANTIATE_TEST_SUITE_P(Masters, Polled, ::testing::Values(1, 3));

// Deadlines make the descriptor readable too: renewals come while nobody calls, and a waiter's budget ends.
TEST_F(OnePolled, TimeAloneWakesIt) {
  redlock_lock_t lock{0}, waiter{0};
  ASSERT_EQ(client.acquire_async("bus", lock, options(2'400)), 0);
  ASSERT_TRUE(client.run_until([&] { return client.count(REDLOCK_EV_RENEWED) == 2; }));
  ASSERT_EQ(client.acquire_async("bus", waiter, options(2'400, 300)), 0);
  ASSERT_TRUE(client.run_until([&] { return client.count(REDLOCK_EV_FAILED) == 1; }));
  EXPECT_EQ(redlock_check(client.get(), lock, 0), 0);
}

// An answer that tells nothing may bring the next deadline nearer than the one that the timer is set to.
TEST(PolledLoop, TheNextDeadlineIsSetWhenAnAnswerIsAllThatCame) {
  RedisServer master;
  PolledClient client({master.url()});  // node_timeout_ms: longer than a third of the ttl
  redlock_lock_t lock{0};
  ASSERT_EQ(client.acquire_async("bus", lock, options(3'000, 0, REDLOCK_F_NO_RENEW)), 0);
  const auto asked = [&] {
    return master.command({"INFO", "commandstats"}).find("cmdstat_evalsha:calls=2,") != std::string::npos;
  };
  ASSERT_TRUE(client.run_until([&] { return asked() || client.count(REDLOCK_EV_LOST) != 0; }));
  EXPECT_EQ(client.count(REDLOCK_EV_LOST), 0u) << "asked after a third of the ttl, and never again";
}

TEST_F(OnePolled, RestsWhenThereIsNothingToDo) {
  redlock_lock_t lock{0};
  ASSERT_EQ(client.acquire_async("bus", lock, options(30'000, 0, REDLOCK_F_NO_RENEW)), 0);
  ASSERT_TRUE(client.run_until([&] { return client.count(REDLOCK_EV_ACQUIRED) == 1; }));
  while (redlock_timeout_ms(client.get()) == 0) ASSERT_EQ(client.process(), 0);
  EXPECT_EQ(redlock_timeout_ms(client.get()), -1);
  pollfd wait{redlock_fd(client.get()), POLLIN, 0};
  EXPECT_EQ(::poll(&wait, 1, 0), 0) << "nothing to do";
  EXPECT_EQ(redlock_release_async(client.get(), lock), 0);
  EXPECT_EQ(redlock_timeout_ms(client.get()), 0);
  EXPECT_EQ(::poll(&wait, 1, 0), 1) << "a call makes it readable";
}

TEST_F(OnePolled, BelongsToTheThreadThatProcessesFirst) {
  redlock_lock_t lock{0};
  ASSERT_EQ(client.acquire_async("bus", lock), 0) << "the creator, before";
  std::thread([&] {
    EXPECT_EQ(client.acquire_async("pump", lock), REDLOCK_E_THREAD);
    ASSERT_TRUE(client.run_until([&] { return client.count(REDLOCK_EV_ACQUIRED) == 1; }));
    EXPECT_EQ(redlock_timeout_ms(client.get()) < -1, false);
  }).join();
  EXPECT_EQ(redlock_process(client.get()), REDLOCK_E_THREAD);
  EXPECT_EQ(redlock_timeout_ms(client.get()), REDLOCK_E_THREAD);
  EXPECT_EQ(redlock_close_async(client.get(), 0), REDLOCK_E_THREAD);
  std::thread([&] { client.close(); }).join();
}

TEST_F(OnePolled, ClosesInACallback) {
  client.also = [](redlock_t* rl, const redlock_event_t& event) {
    if (event.type != REDLOCK_EV_ACQUIRED) return;
    EXPECT_EQ(redlock_process(rl), REDLOCK_E_DEADLOCK);
    EXPECT_EQ(redlock_close_async(rl, 2'000), 0);
  };
  redlock_lock_t lock{0};
  ASSERT_EQ(client.acquire_async("bus", lock), 0);
  ASSERT_TRUE(client.run_until([&] { return client.get() == nullptr; }));
  EXPECT_EQ(client.count(REDLOCK_EV_RELEASED), 1u);
  EXPECT_EQ(client.count(REDLOCK_EV_CLOSED), 1u);
  EXPECT_FALSE(master.exists("bus"));
}

TEST_F(OnePolled, TheCallbackOfClosedIsACallbackToo) {
  client.also = [](redlock_t* rl, const redlock_event_t& event) {
    if (event.type != REDLOCK_EV_CLOSED) return;
    EXPECT_EQ(redlock_process(rl), REDLOCK_E_DEADLOCK);
    EXPECT_EQ(redlock_close_async(rl, 0), REDLOCK_E_CLOSED);
  };
  client.close();
}

// Nothing is owed: the end waits for no answer and no timer.
TEST_F(OnePolled, ClosesAtOnceWhileItWaits) {
  master.command({"SET", "bus", "somebody", "PX", "60000"});
  redlock_lock_t lock{0};
  auto how = options(0, REDLOCK_WAIT_FOREVER, REDLOCK_F_TELL_WAITING);
  ASSERT_EQ(client.acquire_async("bus", lock, how), 0);
  ASSERT_TRUE(client.run_until([&] { return client.count(REDLOCK_EV_WAITING) > 0; }));
  while (redlock_timeout_ms(client.get()) == 0) ASSERT_EQ(client.process(), 0);
  EXPECT_EQ(redlock_close_async(client.get(), 60'000), 0);
  EXPECT_EQ(client.process(), REDLOCK_E_CLOSED);
  EXPECT_EQ(client.count(REDLOCK_EV_FAILED), 1u);
}

}  // namespace
}  // namespace redlock::test
