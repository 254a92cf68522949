// SPDX-License-Identifier: MIT
#include "master/tx.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>

namespace redlock {
namespace {

Bytes bytes(const std::string& s) { return Bytes(s.data(), s.size()); }

// A transmit queue over exactly as much memory as it was told of, so that a sanitizer sees a byte past it.
struct Fixture {
  explicit Fixture(size_t capacity) : buffer(new char[capacity]) { tx.init(buffer.get(), capacity); }

  std::string gathered(unsigned max = Tx::chunks_max) {
    Bytes chunk[Tx::chunks_max];
    const unsigned n = tx.gather(chunk, max);
    EXPECT_LE(n, max);
    std::string all;
    for (unsigned i = 0; i < n; ++i) {
      EXPECT_NE(chunk[i].size, 0u) << "an empty run";
      all.append(chunk[i].data, chunk[i].size);
    }
    return all;
  }

  std::unique_ptr<char[]> buffer;
  Tx tx;
};

const std::string body = "<a script's body>";
const std::string word = "<word>";

// Copied and referenced bytes in every order that matters: reference first, last, two in a row, copied in between.
std::string fill(Tx& tx) {
  tx.reference(bytes(word));
  tx.append("abc");
  tx.append("de");
  tx.reference(bytes(body));
  tx.reference(bytes(word));
  tx.append("fgh");
  tx.reference(bytes(body));
  return word + "abcde" + body + word + "fgh" + body;
}

// What is written in place is there when it is appended, with a reference in its midst too, and can be appended
// elsewhere.
TEST(Tx, bytes_in_place) {
  Fixture f(16), other(16);
  f.tx.append("abcdef");
  f.tx.consume(4);
  const Space space = f.tx.space();
  ASSERT_EQ(space.size, 14u) << "all that there is, whatever was sent";
  memcpy(space.data, "ghijklmnopqrst", 14);
  f.tx.take(Bytes(space.data, 5));
  f.tx.reference(bytes(body));
  f.tx.take(Bytes(space.data + 5, 9));
  EXPECT_FALSE(f.tx.fits(1));
  EXPECT_EQ(f.gathered(), "efghijk" + body + "lmnopqrst");
  other.tx.take(Bytes(space.data, 5));
  EXPECT_EQ(other.gathered(), "ghijk");
}

TEST(Tx, without_a_reference_it_is_one_run) {
  Fixture f(16);
  f.tx.append("abcde");
  ASSERT_TRUE(f.tx.one_run());
  f.tx.consume(2);
  EXPECT_EQ(std::string(f.tx.run().data, f.tx.run().size), "cde");
  f.tx.reference(bytes(body));
  EXPECT_FALSE(f.tx.one_run());
  f.tx.consume(3 + body.size());
  EXPECT_TRUE(f.tx.one_run());
  EXPECT_EQ(f.tx.run().size, 0u);
}

TEST(Tx, empty) {
  Fixture f(16);
  EXPECT_TRUE(f.tx.empty());
  EXPECT_EQ(f.gathered(), "");
  f.tx.append(Bytes());
  f.tx.reference(Bytes());
  EXPECT_TRUE(f.tx.empty()) << "nothing is nothing to send";
  f.tx.consume(0);
  EXPECT_TRUE(f.tx.empty());
}

TEST(Tx, weaves_references_in) {
  Fixture f(16);
  const std::string all = fill(f.tx);
  EXPECT_FALSE(f.tx.empty());
  EXPECT_EQ(f.gathered(), all);
  Bytes chunk[Tx::chunks_max];
  ASSERT_EQ(f.tx.gather(chunk, Tx::chunks_max), 6u);
  EXPECT_EQ(chunk[2].data, body.data()) << "by reference";
  f.tx.clear();
  EXPECT_TRUE(f.tx.empty());
  EXPECT_EQ(f.gathered(), "");
  EXPECT_TRUE(f.tx.fits(16, Tx::references_max));
}

TEST(Tx, consumed_at_every_two_splits) {
  Fixture whole(16);
  const std::string all = fill(whole.tx);
  for (size_t a = 0; a <= all.size(); ++a) {
    for (size_t b = a; b <= all.size(); ++b) {
      Fixture f(16);
      fill(f.tx);
      f.tx.consume(a);
      ASSERT_EQ(f.gathered(), all.substr(a));
      f.tx.consume(b - a);
      ASSERT_EQ(f.gathered(), all.substr(b));
      ASSERT_EQ(f.tx.empty(), b == all.size());
    }
  }
}

TEST(Tx, a_short_list_of_runs_is_a_beginning) {
  Fixture f(16);
  const std::string all = fill(f.tx);
  for (unsigned max = 0; max <= 6; ++max) {
    const std::string begin = f.gathered(max);
    EXPECT_EQ(all.compare(0, begin.size(), begin), 0) << max;
    EXPECT_EQ(begin.size() == all.size(), max == 6) << max;
  }
  std::string sent;
  while (!f.tx.empty()) {
    const std::string run = f.gathered(1);
    ASSERT_FALSE(run.empty());
    f.tx.consume(run.size());
    sent += run;
  }
  EXPECT_EQ(sent, all);
}

TEST(Tx, knows_what_it_refers_to_until_the_last_byte_is_sent) {
  Fixture f(16);
  EXPECT_FALSE(f.tx.refers_to(bytes(body)));
  fill(f.tx);
  EXPECT_TRUE(f.tx.refers_to(bytes(body)));
  EXPECT_TRUE(f.tx.refers_to(bytes(word)));
  EXPECT_FALSE(f.tx.refers_to("another"));
  f.tx.consume(f.gathered().size() - 1);
  EXPECT_TRUE(f.tx.refers_to(bytes(body)));
  f.tx.consume(1);
  EXPECT_FALSE(f.tx.refers_to(bytes(body)));
}

TEST(Tx, room) {
  Fixture f(8);
  EXPECT_TRUE(f.tx.fits(8));
  EXPECT_FALSE(f.tx.fits(9));
  f.tx.append("12345678");
  EXPECT_TRUE(f.tx.fits(0));
  EXPECT_FALSE(f.tx.fits(1));
  f.tx.consume(3);
  EXPECT_TRUE(f.tx.fits(3));
  EXPECT_FALSE(f.tx.fits(4));
  f.tx.append("abc");  // the room is in front
  EXPECT_EQ(f.gathered(), "45678abc");
  EXPECT_FALSE(f.tx.fits(1));
  for (unsigned i = 0; i < Tx::references_max; ++i) {
    EXPECT_TRUE(f.tx.fits(0, Tx::references_max - i));
    EXPECT_FALSE(f.tx.fits(0, Tx::references_max - i + 1));
    f.tx.reference(bytes(word));
  }
  EXPECT_TRUE(f.tx.fits(0)) << "references need no room for bytes";
  EXPECT_FALSE(f.tx.fits(0, 1));
  f.tx.consume(8 + word.size() - 1);
  EXPECT_FALSE(f.tx.fits(0, 1)) << "a reference of which something is left";
  f.tx.consume(1);
  EXPECT_TRUE(f.tx.fits(8, 1));
}

TEST(Tx, references_keep_their_places_when_the_gap_is_closed) {
  Fixture f(10);
  f.tx.append("0123456");
  f.tx.reference(bytes(word));
  f.tx.append("789");
  f.tx.consume(5);
  f.tx.append("abcd");
  EXPECT_EQ(f.gathered(), "56" + word + "789abcd");
}

TEST(Tx, against_a_string) {
  std::mt19937 random(13);
  const std::string texts = "the quick brown fox jumps over the lazy dog";
  for (const size_t capacity : {1u, 2u, 7u, 32u, 256u}) {
    Fixture f(capacity);
    std::string model;
    std::string copied_model;  // 'c' for a copied byte, 'r' for a referenced one
    for (int n = 0; n < 30'000; ++n) {
      const size_t at = random() % texts.size();
      const size_t size = random() % std::min<size_t>(texts.size() - at, capacity + 1);
      const Bytes some(texts.data() + at, size);
      const auto copied = static_cast<size_t>(std::count(copied_model.begin(), copied_model.end(), 'c'));
      switch (random() % 4) {
        case 0:
          ASSERT_EQ(f.tx.fits(size), copied + size <= capacity);
          if (!f.tx.fits(size)) break;
          f.tx.append(some);
          model.append(some.data, size);
          copied_model.append(size, 'c');
          break;
        case 1:
          if (!f.tx.fits(0, 1)) break;
          f.tx.reference(some);
          model.append(some.data, size);
          copied_model.append(size, 'r');
          break;
        default: {
          const std::string shown = f.gathered(static_cast<unsigned>(1 + random() % Tx::chunks_max));
          ASSERT_EQ(model.compare(0, shown.size(), shown), 0);
          const size_t taken = shown.empty() ? 0 : random() % (shown.size() + 1);
          f.tx.consume(taken);
          model.erase(0, taken);
          copied_model.erase(0, taken);
        }
      }
      ASSERT_EQ(f.tx.empty(), model.empty());
      ASSERT_EQ(f.gathered(), model);
    }
  }
}

}  // namespace
}  // namespace redlock
