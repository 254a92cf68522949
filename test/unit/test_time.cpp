// SPDX-License-Identifier: MIT
#include "base/time.hpp"

#include <gtest/gtest.h>

namespace redlock {
namespace {

constexpr int64_t max = INT64_MAX;
constexpr int64_t min = INT64_MIN;

Instant at(int64_t ns) { return Instant::from_ns(ns); }

template <class A, class B>
concept Subtractable = requires(A a, B b) {
  a - b;
};
template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Comparable = requires(A a, B b) {
  a < b;
};

TEST(Time, a_point_is_not_a_length) {
  EXPECT_FALSE((Subtractable<Instant, Instant>));
  EXPECT_FALSE((Subtractable<Instant, Duration>));
  EXPECT_FALSE((Subtractable<Duration, Duration>));
  EXPECT_FALSE((Addable<Instant, Instant>));
  EXPECT_TRUE((Addable<Instant, Duration>));
  EXPECT_FALSE((Comparable<Instant, Duration>));
  EXPECT_FALSE((std::is_convertible_v<int64_t, Duration>));
  EXPECT_FALSE((std::is_convertible_v<int64_t, Instant>));
  EXPECT_FALSE((std::is_convertible_v<Duration, Instant>));
}

TEST(Time, units) {
  EXPECT_EQ(Duration().ns(), 0);
  EXPECT_EQ(Duration::ns(7).ns(), 7);
  EXPECT_EQ(Duration::us(7).ns(), 7'000);
  EXPECT_EQ(Duration::ms(7).ns(), 7'000'000);
  EXPECT_EQ(Duration::ms(int64_t{1} << 32).ns(), 4'294'967'296'000'000);
  EXPECT_EQ((Duration::ms(1) + Duration::us(2)).ns(), 1'002'000);
  EXPECT_EQ(Instant().ns(), 0);
  EXPECT_EQ(Instant::never().ns(), max);
}

template <class T, class Make>
void check_order(Make make) {
  const int64_t values[] = {min, -1, 0, 1, max};
  for (const int64_t a : values) {
    for (const int64_t b : values) {
      const T x = make(a), y = make(b);
      EXPECT_EQ(x == y, a == b);
      EXPECT_EQ(x < y, a < b);
      EXPECT_EQ(x > y, a > b);
      EXPECT_EQ(x <= y, a <= b);
      EXPECT_EQ(x >= y, a >= b);
    }
  }
}

TEST(Time, order) {
  check_order<Instant>(Instant::from_ns);
  check_order<Duration>([](int64_t n) { return Duration::ns(n); });
  EXPECT_TRUE(at(1) != at(2));
  EXPECT_FALSE(at(2) != at(2));
  EXPECT_EQ(earlier(at(1), at(2)), at(1));
  EXPECT_EQ(earlier(at(2), at(1)), at(1));
  EXPECT_EQ(later(at(1), at(2)), at(2));
  EXPECT_EQ(later(at(2), at(1)), at(2));
  EXPECT_EQ(earlier(Instant::never(), at(1)), at(1));
}

TEST(Time, a_part_may_be_any_part) {
  const Duration whole = Duration::ns(int64_t{1'000} << 32);
  EXPECT_EQ(part_of(whole, 0).ns(), 1'000);
  EXPECT_EQ(part_of(whole, 0x7FFFFFFF), Duration::ns(whole.ns() / 2));
  EXPECT_EQ(part_of(whole, UINT32_MAX), whole);
  EXPECT_GT(part_of(Duration(), 0), Duration()) << "a wait of nothing is still a wait";
  for (uint32_t i = 0; i < 65536; ++i) ASSERT_EQ(part_of(whole, i << 16).ns(), (int64_t{i} << 16) * 1'000 + 1'000);
}

// Where a round takes 10 us, windows are shorter than 65,536 ns.
TEST(Time, a_part_of_a_short_time_may_be_any_part) {
  const Duration whole = Duration::us(20);
  EXPECT_EQ(part_of(whole, UINT32_MAX), whole);
  EXPECT_EQ(part_of(whole, 0x7FFFFFFF), Duration::us(10));
  EXPECT_EQ(part_of(whole, 0x3FFFFFFF), Duration::us(5));
}

}  // namespace
}  // namespace redlock
