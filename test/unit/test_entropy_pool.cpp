// SPDX-License-Identifier: MIT
#include "base/entropy_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"

namespace redlock {
namespace {

TEST(EntropyPool, wants_to_be_full_when_it_has_less_than_enough) {
  unsigned char bytes[16];
  EntropyPool pool;
  pool.init(bytes, sizeof bytes, sizeof bytes / 2);
  EXPECT_EQ(pool.wanted(), 16u);
  EXPECT_TRUE(pool.has(0));
  EXPECT_FALSE(pool.has(1));
  pool.add("0123456", 7);
  EXPECT_EQ(pool.wanted(), 9u);
  EXPECT_TRUE(pool.has(7));
  EXPECT_FALSE(pool.has(8));
  pool.add("7", 1);
  EXPECT_EQ(pool.wanted(), 0u);
  EXPECT_EQ(pool.room(), 8u);
  pool.add("89abcdef", 8);
  EXPECT_EQ(pool.wanted() + pool.room(), 0u);
  unsigned char out[8];
  pool.take(out, sizeof out);
  EXPECT_EQ(memcmp(out, "89abcdef", 8), 0);
  EXPECT_EQ(pool.wanted(), 0u);
  pool.take(out, 1);
  EXPECT_EQ(pool.wanted(), 9u);
}

TEST(EntropyPool, each_byte_is_used_once_and_wiped) {
  unsigned char bytes[200];
  EntropyPool pool;
  pool.init(bytes, sizeof bytes, sizeof bytes / 2);
  unsigned char fed[200];
  std::iota(std::begin(fed), std::end(fed), static_cast<unsigned char>(1));
  pool.add(fed, 120);
  std::vector<unsigned char> taken;
  const auto take = [&](size_t n) {
    std::vector<unsigned char> out(n);
    pool.take(out.data(), n);
    taken.insert(taken.end(), out.begin(), out.end());
    for (const unsigned char byte : out) {
      EXPECT_EQ(std::count(std::begin(bytes), std::begin(bytes) + 200 - static_cast<long>(pool.room()), byte), 0);
    }
    // What is not waiting any more is wiped.
    for (size_t i = sizeof bytes - pool.room(); i < taken.size() && i < 120; ++i) EXPECT_EQ(bytes[i], 0) << i;
  };
  take(20);
  take(1);
  take(99);
  EXPECT_FALSE(pool.has(1));
  for (size_t i = 0; i < 120; ++i) EXPECT_EQ(bytes[i], 0) << i;
  pool.add(fed + 120, 80);
  take(80);
  std::sort(taken.begin(), taken.end());
  EXPECT_EQ(taken, std::vector<unsigned char>(std::begin(fed), std::end(fed)));
}

#if defined(REDLOCK_ASSERTS)
TEST(EntropyPool, never_gives_more_than_it_was_given) {
  unsigned char bytes[4], out[4];
  EntropyPool pool;
  pool.init(bytes, sizeof bytes, sizeof bytes / 2);
  pool.add("abc", 3);
  EXPECT_DEATH(pool.take(out, 4), "");
  EXPECT_DEATH(pool.add("de", 2), "");
}
#endif

// splitmix64 of seed 0, upper halves of the published first outputs.
TEST(Random, known_values) {
  Random random;
  EXPECT_EQ(random.next(), 0xE220A839u);
  EXPECT_EQ(random.next(), 0x6E789E6Au);
  EXPECT_EQ(random.next(), 0x06C45D18u);
}

TEST(Random, seeds_differ_and_bits_are_even) {
  std::set<uint32_t> first;
  for (uint64_t seed = 0; seed < 1'000; ++seed) {
    Random random;
    random.seed(seed);
    first.insert(random.next());
  }
  EXPECT_GT(first.size(), 995u);

  Random random;
  random.seed(42);
  int ones[32] = {};
  constexpr int draws = 20'000;
  for (int i = 0; i < draws; ++i) {
    const uint32_t drawn = random.next();
    for (unsigned b = 0; b < 32; ++b) ones[b] += static_cast<int>(drawn >> b & 1);
  }
  for (const int n : ones) EXPECT_NEAR(n, draws / 2, 500);  // seven standard deviations
}

// A seed that comes late changes what follows, whatever was drawn before.
TEST(Random, a_late_seed_counts) {
  Random seeded, unseeded;
  EXPECT_EQ(seeded.next(), unseeded.next());
  seeded.seed(1);
  EXPECT_NE(seeded.next(), unseeded.next());
}

TEST(EntropyPool, a_value_shows_every_bit_of_its_bytes_in_small_hexadecimal_digits) {
  unsigned char bytes[REDLOCK_VALUE_RANDOM];
  std::set<std::string> values;
  for (size_t bit = 0; bit < 8 * sizeof bytes; ++bit) {
    EntropyPool pool;
    pool.init(bytes, sizeof bytes, sizeof bytes / 2);
    unsigned char one[sizeof bytes] = {};
    one[bit / 8] = static_cast<unsigned char>(1u << bit % 8);
    pool.add(one, sizeof one);
    ValueBytes drawn;
    pool.take(drawn.random, sizeof drawn.random);
    char hex[ValueBytes::hex_size];
    drawn.write_hex(hex);
    const std::string value(hex, sizeof hex);
    EXPECT_EQ(std::count(value.begin(), value.end(), '0'), static_cast<long>(sizeof hex - 1)) << value;
    values.insert(value);
  }
  EXPECT_EQ(values.size(), 8 * sizeof bytes);

  // All sixteen digits: each byte holds two of them.
  EntropyPool pool;
  pool.init(bytes, sizeof bytes, sizeof bytes / 2);
  unsigned char all[sizeof bytes];
  for (size_t i = 0; i < sizeof all; ++i) all[i] = static_cast<unsigned char>(0x11 * (i % 16));
  pool.add(all, sizeof all);
  ValueBytes drawn;
  pool.take(drawn.random, sizeof drawn.random);
  char hex[ValueBytes::hex_size];
  drawn.write_hex(hex);
  std::string value(hex, sizeof hex);
  std::sort(value.begin(), value.end());
  value.erase(std::unique(value.begin(), value.end()), value.end());
  EXPECT_EQ(value, std::string("0123456789abcdef"));
}

}  // namespace
}  // namespace redlock
