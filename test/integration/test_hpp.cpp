// SPDX-License-Identifier: MIT
//
// redlock.hpp on real masters: what a redlock::lock owns is released exactly once, however it goes.
#include <redlock/redlock.hpp>

#include <type_traits>

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
  master_.command({"SET", "bus", "somebody"});
  redlock::lock bus;
  ASSERT_EQ(redlock::acquire(client_.get(), "pump", bus), 0);
  EXPECT_EQ(redlock::acquire(client_.get(), "bus", bus), REDLOCK_E_LOCKED);
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

TEST(Options, AreRoundedUpAndKeptInRange) {
  const redlock::options o = redlock::options()
                                 .ttl(1500us)
                                 .wait(std::chrono::hours(24 * 365))
                                 .min_validity(std::chrono::duration<double>(0.0101))
                                 .max_hold(std::chrono::minutes(2))
                                 .retry_delay(-5ms)
                                 .no_renew();
  EXPECT_EQ(o.get()->size, sizeof(redlock_acquire_opts_t));
  EXPECT_EQ(o.get()->ttl_ms, 2u);
  EXPECT_EQ(o.get()->wait_ms, INT32_MAX);
  EXPECT_EQ(o.get()->min_validity_ms, 11u);
  EXPECT_EQ(o.get()->max_hold_ms, 120'000u);
  EXPECT_EQ(o.get()->retry_delay_ms, 0u);
  EXPECT_EQ(o.get()->flags, REDLOCK_F_NO_RENEW);
  EXPECT_EQ(redlock::options().wait(0ms).get()->wait_ms, REDLOCK_TRY_ONCE);
  EXPECT_EQ(redlock::options().wait(-1s).get()->wait_ms, REDLOCK_TRY_ONCE) << "never by accident for ever";
  EXPECT_EQ(redlock::options().wait_forever().get()->wait_ms, REDLOCK_WAIT_FOREVER);
}

}  // namespace
}  // namespace redlock::test
