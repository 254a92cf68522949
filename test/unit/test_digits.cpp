// SPDX-License-Identifier: MIT
#include "base/digits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

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

}  // namespace
}  // namespace redlock
