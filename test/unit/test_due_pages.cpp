// SPDX-License-Identifier: MIT
#include "lock/due_pages.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace redlock {
namespace {

Instant at(int64_t ms) { return Instant::from_ns(ms * 1'000'000); }

struct Fixture {
  explicit Fixture(unsigned locks) : memory(DuePages::pages_of(locks)) { pages.init(memory.data(), locks); }
  std::vector<Instant> memory;
  DuePages pages;
};

TEST(DuePages, PagesHoldEachLockOnce) {
  for (unsigned locks : {1u, 63u, 64u, 65u, 128u, 4'096u, 65'534u}) {
    Fixture f(locks);
    unsigned next = 0;
    for (unsigned page = 0; page < f.pages.pages(); ++page) {
      EXPECT_EQ(f.pages.begin(page), next);
      EXPECT_GT(f.pages.end(page), next);
      EXPECT_LE(f.pages.end(page) - next, DuePages::page_locks);
      next = f.pages.end(page);
    }
    EXPECT_EQ(next, locks);
  }
}

TEST(DuePages, APageIsDueWithTheFirstOfItsLocks) {
  Fixture f(130);
  f.pages.note(64, at(30));
  f.pages.note(127, at(20));
  f.pages.note(100, at(40));
  EXPECT_EQ(f.pages.due(0), Instant::never());
  EXPECT_EQ(f.pages.due(1), at(20));
  EXPECT_EQ(f.pages.due(2), Instant::never());
}

TEST(DuePages, OnlyLookingThroughPutsAPageOff) {
  Fixture f(64);
  f.pages.note(5, at(10));
  f.pages.note(5, at(50));
  EXPECT_EQ(f.pages.due(0), at(10));
  f.pages.clear(0);
  EXPECT_EQ(f.pages.due(0), Instant::never());
  f.pages.note(5, at(50));
  EXPECT_EQ(f.pages.due(0), at(50));
}

}  // namespace
}  // namespace redlock
