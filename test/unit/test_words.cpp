// SPDX-License-Identifier: MIT
#include "resp/words.hpp"

#include <gtest/gtest.h>

#include <string>

#include "resp/writer.hpp"

namespace redlock::resp {
namespace {

std::string text(Bytes b) { return std::string(b.data, b.size); }

TEST(Words, are_what_the_writer_writes) {
  char room[400];
  Writer out(room, sizeof room);
  out.array(3).bulk("CLIENT").bulk("CACHING").bulk("yes");
  EXPECT_EQ(text(words("CLIENT", "CACHING", "yes")), text(out.written()));
  EXPECT_EQ(text(words("INFO")), "*1\r\n$4\r\nINFO\r\n");
}

TEST(Words, count_what_follows) {
  EXPECT_EQ(text(words<2>("HGET")), "*3\r\n$4\r\nHGET\r\n");
  EXPECT_EQ(text(words<9>("EVAL")), "*10\r\n$4\r\nEVAL\r\n");
}

// One, two and three digits of a length, and no word at all.
TEST(Words, of_any_length) {
  EXPECT_EQ(text(words("")), "*1\r\n$0\r\n\r\n");
  EXPECT_EQ(text(words("123456789")), "*1\r\n$9\r\n123456789\r\n");
  EXPECT_EQ(text(words("1234567890")), "*1\r\n$10\r\n1234567890\r\n");
  char hundred[101] = {};
  for (char& c : hundred) c = 'x';
  hundred[100] = '\0';
  EXPECT_EQ(text(words(hundred)), "*1\r\n$100\r\n" + std::string(100, 'x') + "\r\n");
}

}  // namespace
}  // namespace redlock::resp
