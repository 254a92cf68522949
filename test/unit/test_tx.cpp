// SPDX-License-Identifier: MIT
//
// What waits to be sent, and which request an answer belongs to.
#include "master/tx.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>

#include "master/fifo.hpp"

namespace redlock {
namespace {

Bytes bytes(const std::string& s) { return Bytes(s.data(), s.size()); }

// A transmit queue over exactly as much memory as it was told of, so that a sanitizer sees a byte past it.
struct Fixture {
  explicit Fixture(size_t capacity) : buffer(new char[capacity]) { tx.init(buffer.get(), capacity, shared, 0); }

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
  Shared shared;
  Tx tx;
};

const std::string body = "<a script's body>";
const std::string word = "<word>";

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

// ---- shared commands --------------------------------------------------------------------------------------------

// Three connections that share what is written once.
struct Sharing {
  static constexpr size_t own = 16;

  explicit Sharing(size_t size = 256) : memory(new Shared::Command[size / sizeof(Shared::Command)]) {
    shared.init(reinterpret_cast<char*>(memory.get()), size);
    for (unsigned m = 0; m < 3; ++m) {
      buffers[m].reset(new char[own]);
      tx[m].init(buffers[m].get(), own, shared, m);
    }
  }

  void tell(const std::string& text, Masters to, size_t seal = 0) {
    ASSERT_TRUE(shared.has_room(Shared::size_of(text.size())));
    memcpy(shared.space().data, text.data(), text.size());
    shared.add(text.size(), seal, to);
    for (MasterIndex m : to) tx[m].share();
  }
  std::string gathered(MasterIndex m, unsigned max = Tx::chunks_max) const {
    Bytes chunk[Tx::chunks_max];
    const unsigned n = tx[m].gather(chunk, max);
    std::string all;
    for (unsigned i = 0; i < n; ++i) all.append(chunk[i].data, chunk[i].size);
    return all;
  }
  // Of the commands that were told to a master, how many were taken back, newest first.
  unsigned settle(MasterIndex m) {
    unsigned n = 0;
    while (tx[m].take_back()) ++n;
    tx[m].keep();
    return n;
  }

  std::unique_ptr<Shared::Command[]> memory;
  std::unique_ptr<char[]> buffers[3];
  Shared shared;
  Tx tx[3];
};

const Masters all_three = Masters::all(3);

struct ThreeSharing : ::testing::Test {
  Sharing f;
};

TEST_F(ThreeSharing, what_all_are_told_is_one_run_and_its_room_comes_back_with_the_last) {
  const size_t room = f.shared.space().size;
  f.tell("first", all_three);
  f.tell("second", all_three);
  const char* const written = f.tx[0].run().data;
  for (MasterIndex m = 0; m < 3; ++m) {
    ASSERT_TRUE(f.tx[m].one_run());
    EXPECT_EQ(std::string(f.tx[m].run().data, f.tx[m].run().size), "firstsecond");
    EXPECT_EQ(f.tx[m].run().data, written) << "once";
    EXPECT_LT(f.shared.space().size, room);
    f.tx[m].clear();
  }
  EXPECT_EQ(f.shared.space().size, room);
}

// Copied bytes, texts and shared commands leave in the order in which they were said, cut at every two offsets.
TEST(SharedTx, order_of_all_kinds_at_every_two_splits) {
  const auto say = [](Sharing& f) {
    f.tx[0].append("one");
    f.tell("two", all_three);
    f.tell("three", Masters::of(1, 2));
    f.tell("four", Masters::of(0, 1));
    f.tx[0].reference(bytes(word));
    f.tell("five", Masters::of(0));
    f.tx[0].append("six");
    f.tell("seven", all_three);
  };
  const std::string all = "onetwofour" + word + "fivesixseven";
  for (size_t a = 0; a <= all.size(); ++a) {
    for (size_t b = a; b <= all.size(); ++b) {
      Sharing f;
      say(f);
      f.tx[0].consume(a);
      ASSERT_EQ(f.gathered(0), all.substr(a));
      f.tx[0].consume(b - a);
      ASSERT_EQ(f.gathered(0), all.substr(b));
      ASSERT_EQ(f.tx[0].empty(), b == all.size());
      ASSERT_EQ(f.gathered(1), "twothreefourseven");
    }
  }
}

// Cut at every offset: the newest are taken back, the oldest that has not wholly left stays and leaves whole, and what
// only this master is told keeps its place.
TEST(SharedTx, a_slow_connection_keeps_the_oldest_and_gives_the_others_back) {
  const std::string commands[] = {"alpha", "be", "gamma", "delta"};
  const std::string own = "own", all = "alphabeown" + word + "gammadelta";
  for (size_t cut = 0; cut <= all.size(); ++cut) {
    Sharing f;
    const size_t room = f.shared.space().size;
    f.tell(commands[0], all_three);
    f.tell(commands[1], all_three);
    f.tx[0].append(bytes(own));
    f.tx[0].reference(bytes(word));
    f.tell(commands[2], all_three);
    f.tell(commands[3], all_three);
    f.tx[1].clear();
    f.tx[2].clear();
    f.tx[0].consume(cut);

    // By hand: what is left of each part, and which commands are whole.
    std::string left;
    unsigned whole = 0, kept = 0;
    size_t at = 0;
    for (const std::string& part : {commands[0], commands[1], own, word, commands[2], commands[3]}) {
      const size_t end = at + part.size();
      const bool command = part != own && part != word;
      if (end > cut) {
        const std::string rest = part.substr(cut > at ? cut - at : 0);
        if (!command || kept == 0) {
          left += rest;
        } else {
          ++whole;
        }
        if (command) kept = 1;
      }
      at = end;
    }
    ASSERT_EQ(f.settle(0), whole) << cut;
    ASSERT_EQ(f.gathered(0), left) << cut;
    ASSERT_EQ(f.shared.space().size, room) << "the others have it again: " << cut;
    ASSERT_EQ(f.tx[0].may_share(1), left.empty()) << cut;
    f.tell("again", Masters::of(1));
    ASSERT_EQ(f.gathered(0), left) << "no view of the shared memory: " << cut;
    f.tx[0].consume(left.size());
    ASSERT_TRUE(f.tx[0].empty() && f.tx[0].may_share(1)) << cut;
  }
}

TEST_F(ThreeSharing, there_is_always_room_to_keep_the_longest) {
  EXPECT_TRUE(f.tx[0].may_share(Sharing::own));
  f.tx[0].append("123");
  EXPECT_TRUE(f.tx[0].may_share(Sharing::own - 3));
  EXPECT_FALSE(f.tx[0].may_share(Sharing::own - 2));
  f.tell("0123456789", all_three);
  EXPECT_TRUE(f.tx[0].fits(3));
  EXPECT_FALSE(f.tx[0].fits(4));
  f.tx[0].append("456");
  EXPECT_EQ(f.settle(0), 0u);
  EXPECT_EQ(f.gathered(0), "1230123456789456");
}

TEST_F(ThreeSharing, shares_again_behind_what_it_has) {
  f.tx[0].append("1");
  f.tell("ab", all_three);
  EXPECT_TRUE(f.tx[0].may_share(2)) << "behind one that is shared";
  f.tx[0].append("2");
  EXPECT_TRUE(f.tx[0].may_share(1)) << "shorter than the longest";
  EXPECT_TRUE(f.tx[0].may_share(14)) << "longer";
  EXPECT_FALSE(f.tx[0].may_share(15));
  for (int i = 0; i < 3; ++i) f.tx[1].reference(bytes(word));
  EXPECT_TRUE(f.tx[1].may_share(2));
  for (int i = 0; i < 3; ++i) f.tx[1].reference(bytes(word));
  EXPECT_FALSE(f.tx[1].may_share(2)) << "no place for two more references";
  EXPECT_TRUE(f.tx[1].refers_to(bytes(word)));
  EXPECT_FALSE(f.tx[1].refers_to(bytes(body)));
}

// What others are told is left out, at the beginning of a list of runs too.
TEST_F(ThreeSharing, the_oldest_may_stand_behind_what_others_are_told) {
  f.tell("a", all_three);
  f.tx[0].append("own");
  f.tell("b", Masters::of(1));
  f.tell("c", all_three);
  f.tell("d", Masters::of(1));
  f.tell("e", all_three);
  f.tell("f", Masters::of(1));
  EXPECT_EQ(f.gathered(0, 3), "aownc");
  f.tx[0].consume(1);
  EXPECT_EQ(f.settle(0), 1u);
  EXPECT_EQ(f.gathered(0), "ownc");
  EXPECT_EQ(f.gathered(1), "abcdef");
}

TEST_F(ThreeSharing, each_master_finds_its_own_seal) {
  f.tell("<....>tail", all_three, 9);
  f.tell("no seal", all_three);
  f.tell("(....)", Masters::of(0, 2), 5);
  const std::string seals[] = {"aaaa", "bbbb", "cccc"};
  for (const MasterIndex m : {1u, 0u, 2u}) {
    f.tx[m].write_seals(bytes(seals[m]));
    EXPECT_EQ(f.gathered(m), "<" + seals[m] + ">tailno seal" + (m == 1 ? "" : "(" + seals[m] + ")"));
  }
  f.tx[0].consume(3);
  f.tx[0].write_seals(bytes(seals[0]));
  EXPECT_EQ(f.settle(0), 2u);
  f.tx[1].write_seals(bytes(seals[1]));
  EXPECT_EQ(f.gathered(0), "aa>tail") << "what is kept keeps its seal";
}

using Request = Fifo::Request;

Request of_claim(unsigned n, Request::Kind kind = Request::acquire) {
  return {Instant::from_ns(n), n, static_cast<uint16_t>(n), kind, false};
}

TEST(Fifo, an_answer_is_owed_for_each_claim_that_was_asked_about_deletes_apart) {
  Request places[Fifo::own_max + 8];
  Fifo fifo(places, Fifo::own_max + 8);
  fifo.push(of_claim(1, Request::release));
  fifo.push(of_claim(2, Request::look));
  fifo.push(of_claim(3, Request::extend));
  fifo.push_own(Request::time, Instant::from_ns(4));
  fifo.push(of_claim(5, Request::token));
  for (uint16_t claim = 0; claim < 7; ++claim) EXPECT_EQ(fifo.owes_answer(claim), claim == 3 || claim == 5) << claim;
  fifo.clear();
  EXPECT_FALSE(fifo.owes_answer(3));
  EXPECT_TRUE(fifo.empty());
}

// Requests that only this master was sent stay where they are, wherever the ring ends.
TEST(Fifo, takes_back_the_newest_shared_request) {
  constexpr unsigned capacity = Fifo::own_max + 4;
  for (unsigned begin = 0; begin < capacity; ++begin) {
    Request places[capacity];
    Fifo fifo(places, capacity);
    for (unsigned n = 0; n < begin; ++n) {
      fifo.push(of_claim(n));
      fifo.pop(false);
    }
    for (const unsigned n : {1u, 2u, 3u, 4u}) {
      Request request = of_claim(n);
      request.apart = n > 2;
      fifo.push(request);
    }
    EXPECT_EQ(fifo.take_back().claim, 2u);
    for (const unsigned n : {1u, 3u, 4u}) {
      EXPECT_EQ(fifo.oldest().claim, n) << begin;
      fifo.pop(false);
    }
  }
}

}  // namespace
}  // namespace redlock
