// SPDX-License-Identifier: MIT
//
// redlock.hpp on real masters: what a redlock::lock owns is released exactly once, however it goes.
#include <redlock/redlock.hpp>

#include <set>
#include <thread>
#include <type_traits>

#include "polled_harness.hpp"
#include "support/redis_server.hpp"
#include "thread_harness.hpp"

namespace redlock::test {
namespace {

using namespace std::chrono_literals;

static_assert(!std::is_copy_constructible_v<redlock::lock> && !std::is_copy_assignable_v<redlock::lock>);
static_assert(std::is_nothrow_move_constructible_v<redlock::lock> && std::is_nothrow_move_assignable_v<redlock::lock>);
static_assert(std::is_nothrow_destructible_v<redlock::lock> && std::is_nothrow_default_constructible_v<redlock::lock>);
static_assert(sizeof(redlock::lock) <= 2 * sizeof(uint64_t));

class Raii : public ::testing::Test {
 protected:
  bool gone(const char* name) {
    return ThreadClient::eventually([&] { return !master_.exists(name); });
  }
  RedisServer master_;
  ThreadClient client_{{master_.url()}};
};

TEST_F(Raii, ReleasesAtTheEndOfTheScope) {
  {
    redlock::lock bus;
    EXPECT_FALSE(bus.owns());
    ASSERT_EQ(redlock::acquire(client_.get(), "bus", redlock::options().ttl(20s), bus), 0);
    EXPECT_TRUE(bus.owns());
    EXPECT_TRUE(bus.valid_for(10s));
    EXPECT_FALSE(bus.valid_for(20s));
    EXPECT_EQ(bus.check(20s), REDLOCK_E_TOO_SLOW);
    EXPECT_GT(bus.validity(), 10s);
    EXPECT_LE(bus.validity(), 20s);
    EXPECT_EQ(bus.extend(30s), 0);
    EXPECT_GT(bus.validity(), 20s);
    EXPECT_EQ(bus.extend(0s), REDLOCK_E_INVAL);
    EXPECT_TRUE(master_.exists("bus"));
  }
  EXPECT_TRUE(client_.wait_for(REDLOCK_EV_RELEASED));
  EXPECT_TRUE(gone("bus"));
}

TEST_F(Raii, OwnsNothing) {
  redlock::lock none;
  EXPECT_EQ(none.check(0ms), REDLOCK_E_STALE);
  EXPECT_FALSE(none.valid_for(0ms));
  EXPECT_EQ(none.validity(), 0ms);
  EXPECT_EQ(none.extend(), REDLOCK_E_STALE);
  EXPECT_EQ(none.extend(1s), REDLOCK_E_STALE);
  EXPECT_EQ(none.release(), 0);
  EXPECT_EQ(none.detach().id, 0u);
}

TEST_F(Raii, FailsWithoutOwning) {
  ThreadClient impatient(Settings{{master_.url()}, "impatient", {{"defaults.wait_ms", 100}}, {}});
  master_.command({"SET", "bus", "somebody"});
  redlock::lock bus;
  ASSERT_EQ(redlock::acquire(impatient.get(), "pump", redlock::options().wait(10s), bus), 0);
  EXPECT_EQ(redlock::acquire(impatient.get(), "bus", bus), REDLOCK_E_LOCKED);
  EXPECT_FALSE(bus.owns()) << "the pump was let go first";
  EXPECT_TRUE(gone("pump"));
}

TEST_F(Raii, MovesWithoutReleasing) {
  redlock::lock first;
  ASSERT_EQ(redlock::acquire(client_.get(), "bus", first), 0);
  redlock::lock second(std::move(first));
  EXPECT_FALSE(first.owns());
  EXPECT_TRUE(second.valid_for(1s));
  redlock::lock third;
  third = std::move(second);
  EXPECT_TRUE(third.valid_for(1s));
  redlock::lock& same = third;
  third = std::move(same);
  EXPECT_TRUE(third.valid_for(1s)) << "moved to itself";
  EXPECT_EQ(client_.count(REDLOCK_EV_RELEASED), 0u);

  redlock::lock pump;
  ASSERT_EQ(redlock::acquire(client_.get(), "pump", pump), 0);
  const redlock_lock_t bus = third.handle();
  third = std::move(pump);
  EXPECT_TRUE(client_.wait_for(REDLOCK_EV_RELEASED, bus)) << "what it owned before";
  EXPECT_TRUE(third.valid_for(1s));
  EXPECT_EQ(third.release(), 0);
  EXPECT_FALSE(third.owns());
  EXPECT_EQ(third.release(), 0);
  EXPECT_TRUE(gone("bus"));
  EXPECT_TRUE(gone("pump"));
}

TEST_F(Raii, GivesTheHandleAway) {
  redlock_lock_t handle{0};
  {
    redlock::lock bus;
    ASSERT_EQ(redlock::acquire(client_.get(), "bus", bus), 0);
    handle = bus.detach();
    EXPECT_FALSE(bus.owns());
  }
  EXPECT_EQ(client_.check(handle), 0);
  EXPECT_EQ(client_.release(handle), 0);
}

TEST_F(Raii, CancelsWhatIsNotDecided) {
  master_.command({"SET", "bus", "somebody"});
  redlock_lock_t handle{0};
  ASSERT_EQ(client_.acquire_async("bus", handle, *redlock::options().wait_forever().get()), 0);
  { redlock::lock waiting(client_.get(), handle); }
  EXPECT_TRUE(client_.wait_for(REDLOCK_EV_FAILED, handle));
}

// ---- any of several -------------------------------------------------------------------------------------------------

class AnyOf : public Raii {
 protected:
  static constexpr uint32_t count = 3;
  const redlock_resource_t names_[count] = {redlock_resource("a"), redlock_resource("b"), redlock_resource("c")};

  int acquire(const redlock::options& how) {
    return redlock::acquire_any(client_.get(), names_, count, how, lock_, which_);
  }
  void hold_by_other(const std::vector<std::string>& names) {
    for (const std::string& name : names) master_.command({"SET", name, "somebody"});
  }
  bool is_pending(uint32_t acquires) {
    return ThreadClient::eventually([&] { return client_.status().locks_pending == acquires; });
  }

  redlock::lock lock_;
  uint32_t which_ = 99;
};

TEST_F(AnyOf, TakesTheOneThatIsFree) {
  hold_by_other({"a", "c"});
  for (int i = 0; i < 20; ++i) {  // from each start
    ASSERT_EQ(acquire(redlock::options().ttl(20s)), 0);
    EXPECT_EQ(which_, 1u);
    EXPECT_TRUE(lock_.valid_for(10s));
    EXPECT_TRUE(master_.exists("b"));
    EXPECT_EQ(lock_.release(), 0);
  }
  EXPECT_TRUE(gone("b"));
  EXPECT_TRUE(is_pending(0));
  master_.command({"DEL", "a", "c"});
  std::set<uint32_t> taken;
  for (int i = 0; i < 60; ++i) {  // a name that is left out by chance: once in 10^10
    ASSERT_EQ(acquire({}), 0);
    taken.insert(which_);
    lock_.release();
  }
  EXPECT_EQ(taken.size(), size_t{count}) << "it begins anywhere";
}

TEST_F(AnyOf, OfTwoThatAreWonAtOnceOneIsKept) {
  for (int i = 0; i < 20; ++i) {
    hold_by_other({"a", "b", "c"});
    std::thread other([&] {
      EXPECT_TRUE(is_pending(3));
      master_.command({"DEL", "a", "b", "c"});
    });
    ASSERT_EQ(acquire(redlock::options().wait_forever()), 0);
    other.join();
    EXPECT_TRUE(ThreadClient::eventually([&] { return master_.command({"EXISTS", "a", "b", "c"}) == "1"; }));
    EXPECT_TRUE(lock_.valid_for(1s));
    lock_.release();
    EXPECT_TRUE(ThreadClient::eventually([&] { return master_.command({"EXISTS", "a", "b", "c"}) == "0"; }));
  }
}

TEST_F(AnyOf, SaysWhyNoneIsWon) {
  hold_by_other({"a", "b", "c"});
  EXPECT_EQ(acquire(redlock::options().wait(0s)), REDLOCK_E_LOCKED);
  EXPECT_FALSE(lock_.owns());
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(acquire(redlock::options().wait(300ms)), REDLOCK_E_LOCKED);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  EXPECT_EQ(client_.status().locks_pending, 0u);
  EXPECT_EQ(acquire(redlock::options().ttl(1ms)), REDLOCK_E_INVAL);
  EXPECT_EQ(acquire(redlock::options().on_event([](redlock_t*, const redlock_event_t*, void*) {}, nullptr)),
            REDLOCK_E_INVAL) << "it would not be called";
  which_ = 42;
  EXPECT_EQ(redlock::acquire_any(client_.get(), names_, 0, redlock::options(), lock_, which_), REDLOCK_E_INVAL);
  EXPECT_EQ(which_, 0u);
  EXPECT_EQ(redlock::acquire_any(client_.get(), names_, 17, redlock::options(), lock_, which_), REDLOCK_E_INVAL);
  PolledClient polled({master_.url()});
  EXPECT_EQ(redlock::acquire_any(polled.get(), names_, count, redlock::options(), lock_, which_),
            REDLOCK_E_NO_BLOCKING);
}

// Else it would wait for the names that have a place, while another one is free.
TEST_F(AnyOf, WithoutAPlaceForEachNameItSaysSo) {
  ThreadClient narrow(Settings{{master_.url()}, "narrow", {{"limits.locks", 1}}, {}});
  hold_by_other({"a", "b", "c"});
  for (const redlock::options& how : {redlock::options().wait(0s), redlock::options().wait_forever()}) {
    EXPECT_EQ(redlock::acquire_any(narrow.get(), names_, count, how, lock_, which_), REDLOCK_E_TABLE_FULL);
    EXPECT_TRUE(ThreadClient::eventually([&] { return narrow.status().locks_pending == 0; }));
  }
}

TEST(AnyOfPolled, ItsCallbackSeesWhatBecomesOfTheOneThatIsKept) {
  RedisServer master;
  PolledClient client({master.url()});
  redlock::any_of race;
  const redlock_resource_t names[] = {redlock_resource("a"), redlock_resource("b")};
  std::vector<int> told;
  client.also = [&](redlock_t*, const redlock_event_t& event) {
    // WAITING comes once for each cause: "a" came first, or a machine that is busy was slow to begin.
    if (race.take(event) && event.type != REDLOCK_EV_WAITING) told.push_back(event.type);
  };
  master.command({"SET", "a", "somebody"});
  ASSERT_EQ(race.begin(client.get(), names, 2, *redlock::options().ttl(1500ms).no_renew().get()), 0);
  ASSERT_TRUE(client.run_until([&] { return !told.empty() && told.back() == REDLOCK_EV_LOST; }));
  EXPECT_EQ(told, (std::vector<int>{REDLOCK_EV_ACQUIRED, REDLOCK_EV_LOST}));
  EXPECT_TRUE(race.ended());
  EXPECT_EQ(race.err(), 0);
  EXPECT_EQ(race.which(), 1u);
}

TEST(Options, AreRoundedUpAndKeptInRange) {
  const redlock::options o = redlock::options()
                                 .ttl(1500us)
                                 .wait(std::chrono::hours(24 * 365))
                                 .min_validity(std::chrono::duration<double>(0.0101))
                                 .max_hold(std::chrono::minutes(2))
                                 .retry_delay(-5ms)
                                 .no_renew()
                                 .urgent();
  EXPECT_EQ(o.get()->size, sizeof(redlock_acquire_opts_t));
  EXPECT_EQ(o.get()->ttl_ms, 2u);
  EXPECT_EQ(o.get()->wait_ms, INT32_MAX);
  EXPECT_EQ(o.get()->min_validity_ms, 11u);
  EXPECT_EQ(o.get()->max_hold_ms, 120'000u);
  EXPECT_EQ(o.get()->retry_delay_ms, 0u);
  EXPECT_EQ(o.get()->flags, REDLOCK_F_NO_RENEW | REDLOCK_F_URGENT);
  EXPECT_EQ(redlock::options().wait(0ms).get()->wait_ms, REDLOCK_TRY_ONCE);
  EXPECT_EQ(redlock::options().wait(-1s).get()->wait_ms, REDLOCK_TRY_ONCE) << "never by accident for ever";
  EXPECT_EQ(redlock::options().wait_forever().get()->wait_ms, REDLOCK_WAIT_FOREVER);
}

}  // namespace
}  // namespace redlock::test
