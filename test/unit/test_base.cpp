// SPDX-License-Identifier: MIT
//
// The words that all rooms share: digits, names, queues, sets of masters, times and random bytes.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/digits.hpp"
#include "base/entropy_pool.hpp"
#include "base/file_rule.hpp"
#include "base/masters.hpp"
#include "base/names.hpp"
#include "base/queue.hpp"
#include "base/quotient.hpp"
#include "base/random.hpp"
#include "base/time.hpp"

namespace redlock {
namespace {

Bytes bytes_of(const std::string& text) { return Bytes(text.data(), text.size()); }

std::string decimal_of(uint64_t number) {
  char digits[20];
  const Bytes text = to_decimal(number, digits);
  return std::string(text.data, text.size);
}

TEST(Digits, decimal_is_printed_as_the_standard_library_prints_it) {
  for (uint64_t n = 1; n != 0; n = n > UINT64_MAX / 10 ? 0 : n * 10) {
    for (const uint64_t number : {n - 1, n, n + 7}) EXPECT_EQ(decimal_of(number), std::to_string(number));
  }
  EXPECT_EQ(decimal_of(UINT64_MAX), std::to_string(UINT64_MAX));
}

TEST(Digits, a_word_of_known_size_is_printed_in_place) {
  for (size_t n : {size_t{0}, size_t{9}, size_t{10}, size_t{99}, size_t{100}, size_t{999}, size_t{1'000},
                   size_t{65'536}, size_t{UINT32_MAX}}) {
    const std::string expected = std::to_string(n);
    ASSERT_EQ(decimal_size(n), expected.size()) << n;
    char text[24] = {};
    EXPECT_EQ(write_decimal(text, n, decimal_size(n)), text + expected.size());
    EXPECT_EQ(text, expected);
  }
}

TEST(Digits, decimal_is_parsed_to_the_last_digit_or_not_at_all) {
  uint64_t n = 7;
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "1/", "1:", "0x1", "1.0"}) {
    EXPECT_FALSE(parse_decimal(bytes_of(text), n)) << text;
  }
  for (const char* text : {"0", "00", "7", "0000000000000000000000000000042", "9999999999999999999"}) {
    ASSERT_TRUE(parse_decimal(bytes_of(text), n)) << text;
    EXPECT_EQ(n, std::stoull(text)) << text;
  }
  for (const char* text : {"10000000000000000000", "18446744073709551615", "99999999999999999999999999"}) {
    ASSERT_TRUE(parse_decimal(bytes_of(text), n)) << text;
    EXPECT_EQ(n, UINT64_MAX) << text;
  }
}

TEST(Digits, hexadecimal_is_written_and_read) {
  char text[9] = {};
  write_hex(0x0189AbEf, text);
  EXPECT_STREQ(text, "0189abef");
  for (int c = 0; c < 256; ++c) {
    const char digit = static_cast<char>(c);
    const size_t place = std::string("0123456789abcdefABCDEF").find(digit);
    const int expected = place == std::string::npos ? -1 : static_cast<int>(place < 16 ? place : place - 6);
    EXPECT_EQ(hex_value(digit), expected) << c;
  }
}

TEST(Digits, random_bytes_give_each_digit_once_for_its_half) {
  const unsigned char random[8] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF};
  char text[17] = {};
  write_random_hex<uint64_t>(random, text);
  std::string digits(text);
  std::sort(digits.begin(), digits.end());
  EXPECT_EQ(digits, "0123456789abcdef");
}

// Values of the reference implementation of FNV-1a.
TEST(Digits, the_hash_that_masters_keep_is_fnv_1a) {
  EXPECT_EQ(fnv_of(bytes_of("")), 0xCBF29CE484222325u);
  EXPECT_EQ(fnv_of(bytes_of("foobar")), 0x85944171F73967E8u);
}

// Names that differ in one byte, or are a part of one another, at each length that the words of four bytes treat apart.
TEST(Digits, names_that_differ_anywhere_have_hashes_of_their_own) {
  std::set<uint32_t> hashes;
  size_t names = 0;
  std::string name = "_";
  for (size_t size = 1; size <= 13; name += static_cast<char>('a' + size++)) {
    hashes.insert(hash_of(bytes_of(name)));
    ++names;
    for (size_t at = 0; at < size; ++at) {
      std::string other = name;
      for (const char c : {'\0', '0', 'z', '\xff'}) {
        other[at] = c;
        hashes.insert(hash_of(bytes_of(other)));
        ++names;
      }
    }
  }
  EXPECT_EQ(hashes.size(), names);
}

std::string text(Bytes b) { return std::string(b.data, b.size); }

struct Kept {
  explicit Kept(const std::vector<std::string>& given) : texts(given) {
    std::vector<Bytes> bytes;
    for (const std::string& t : texts) bytes.emplace_back(t.data(), t.size());
    sorted = Names::sort(bytes.data(), static_cast<unsigned>(bytes.size()));
    if (sorted) names.assign(memory, bytes.data(), static_cast<unsigned>(bytes.size()));
  }
  std::vector<std::string> all() const {
    std::vector<std::string> out;
    for (Bytes name : names) out.push_back(text(name));
    return out;
  }
  std::vector<std::string> texts;
  char memory[REDLOCK_RESOURCE_BYTES_MAX];
  Names names;
  bool sorted;
};

TEST(Names, any_number_in_any_order_and_any_bytes) {
  const std::vector<std::string> sorted = {std::string("\0", 1), "bus", "bus1",
                                           std::string(REDLOCK_RESOURCE_MAX, '\xff')};
  for (size_t count = 1; count <= Names::max; ++count) {
    std::vector<std::string> expected(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(count)),
        given = expected;
    std::sort(given.begin(), given.end());
    do {
      const Kept kept(given);
      ASSERT_TRUE(kept.sorted);
      EXPECT_EQ(kept.names.count(), count);
      EXPECT_EQ(kept.all(), expected);
      EXPECT_EQ(text(kept.names.first()), expected[0]);
    } while (std::next_permutation(given.begin(), given.end()));
  }
}

struct Slot {
  Link one;
  Link two;
};
using One = Queue<Slot, &Slot::one>;
using Two = Queue<Slot, &Slot::two>;

template <class Q, Link Slot::*link>
std::vector<uint16_t> walk(const Q& queue, const std::vector<Slot>& slots) {
  std::vector<uint16_t> seen;
  uint16_t before = no_slot;
  for (uint16_t i = queue.first(); i != no_slot; i = Q::next(slots.data(), i)) {
    EXPECT_TRUE((slots[i].*link).queued);
    EXPECT_EQ((slots[i].*link).previous, before);
    before = i;
    seen.push_back(i);
    if (seen.size() > slots.size()) {
      ADD_FAILURE() << "a loop";
      break;
    }
  }
  return seen;
}

TEST(Queue, against_a_deque) {
  constexpr uint16_t size = 9;
  std::vector<Slot> slots(size);
  One one;
  Two two;  // a slot may stand in both
  std::deque<uint16_t> model_one, model_two;
  std::mt19937 random(7);
  const auto step = [&](auto& queue, std::deque<uint16_t>& model) {
    const uint16_t i = static_cast<uint16_t>(random() % size);
    const auto place = std::find(model.begin(), model.end(), i);
    const unsigned what = static_cast<unsigned>(random() % 4);
    if (what < 2) {
      queue.push(slots.data(), i);
      if (place == model.end()) model.push_back(i);
    } else if (what == 2) {
      queue.push_front(slots.data(), i);
      if (place != model.end()) model.erase(place);
      model.push_front(i);
    } else {
      queue.remove(slots.data(), i);
      if (place != model.end()) model.erase(place);
    }
  };
  for (int n = 0; n < 20'000; ++n) {
    step(one, model_one);
    step(two, model_two);
    ASSERT_EQ((walk<One, &Slot::one>(one, slots)), std::vector<uint16_t>(model_one.begin(), model_one.end()));
    ASSERT_EQ((walk<Two, &Slot::two>(two, slots)), std::vector<uint16_t>(model_two.begin(), model_two.end()));
    ASSERT_EQ(one.empty(), model_one.empty());
  }
}

std::vector<MasterIndex> listed(Masters masters) {
  std::vector<MasterIndex> out;
  for (MasterIndex m : masters) out.push_back(m);
  return out;
}

TEST(Masters, all_is_the_first_n) {
  for (unsigned n = 0; n <= REDLOCK_MASTERS_MAX; ++n) {
    const Masters all = Masters::all(n);
    EXPECT_EQ(all.count(), n);
    for (MasterIndex m = 0; m < REDLOCK_MASTERS_MAX; ++m) EXPECT_EQ(all.has(m), m < n);
  }
}

// Every pair of sets of seven, against std::set.
TEST(Masters, union_intersection_and_difference) {
  const auto set_of = [](unsigned bits) {
    std::set<MasterIndex> out;
    for (MasterIndex m = 0; m < 7; ++m) {
      if ((bits >> m & 1) != 0) out.insert(m);
    }
    return out;
  };
  const auto masters_of = [](const std::set<MasterIndex>& set) {
    Masters out;
    for (MasterIndex m : set) out.add(m);
    return out;
  };
  for (unsigned x = 0; x < 128; ++x) {
    for (unsigned y = 0; y < 128; ++y) {
      const Masters a = masters_of(set_of(x)), b = masters_of(set_of(y));
      ASSERT_EQ(a | b, masters_of(set_of(x | y)));
      ASSERT_EQ(a & b, masters_of(set_of(x & y)));
      ASSERT_EQ(a - b, masters_of(set_of(x & ~y)));
      ASSERT_EQ(a == b, x == y);
      ASSERT_EQ((a - b).count(), set_of(x & ~y).size());
    }
    const std::set<MasterIndex> in_order = set_of(x);
    ASSERT_EQ(listed(masters_of(in_order)), std::vector<MasterIndex>(in_order.begin(), in_order.end()));
  }
}

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

TEST(Time, units_and_order) {
  EXPECT_EQ(Duration::us(7).ns(), 7'000);
  EXPECT_EQ(Duration::ms(int64_t{1} << 32).ns(), 4'294'967'296'000'000);
  const Instant one = Instant::from_ns(1), two = Instant::from_ns(2);
  EXPECT_TRUE(one < two && two > one && one <= one && one >= one && one <= two && two >= one && one != two);
  EXPECT_FALSE(one < one || one > one || two < one || one > two || two <= one || one >= two || one == two);
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

TEST(Quotient, by_steps_is_what_the_processor_divides) {
  std::vector<int64_t> numbers = {0, 1, 999, INT64_MAX, -INT64_MAX, INT64_MIN};
  for (int64_t n = 3; n < INT64_MAX / 5; n *= 5) numbers.insert(numbers.end(), {n, -n, n - 1, 1 - n});
  for (const uint32_t by : {1u, 2u, 3u, 5u, 10u, 1'000u, 65'536u, 1'000'000u, 1'000'000'000u, uint32_t{INT32_MAX}}) {
    for (const int64_t n : numbers) {
      const auto bits = static_cast<uint64_t>(n);
      EXPECT_EQ(quotient_by_steps(n, by), n / int64_t{by}) << n << " / " << by;
      EXPECT_EQ(quotient_by_steps(bits, by), bits / by) << bits << " / " << by;
      EXPECT_EQ(quotient(n, by), n / int64_t{by});
    }
  }
}

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
  Random other;
  other.seed(0x100);
  EXPECT_NE(other.next(), 0xE220A839u);
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
}

// ---- files ----------------------------------------------------------------------------------------------------------

// The second piece meets a buffer that is partly full.
TEST(ReadFrom, what_does_not_fit_is_not_read) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
  for (const std::string piece : {"abc", "defghi"}) {
    ASSERT_EQ(write(pair[1], piece.data(), piece.size()), static_cast<ssize_t>(piece.size()));
  }
  close(pair[1]);
  char buffer[] = ".........";
  size_t size = 0;
  EXPECT_TRUE(read_from(pair[0], buffer, 5, size));
  EXPECT_EQ(size, 5u);
  EXPECT_STREQ(buffer, "abcde....");
  close(pair[0]);
}

}  // namespace
}  // namespace redlock
