// SPDX-License-Identifier: MIT
#include "lock/agenda.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace redlock {
namespace {

Instant at(int64_t ms) { return Instant::from_ns(ms * 1'000'000); }

struct Fixture {
  explicit Fixture(unsigned locks) : memory(Agenda::pages_of(locks)) { agenda.init(memory.data(), locks); }
  std::vector<Instant> memory;
  Agenda agenda;
};

TEST(Agenda, NothingIsDueAtFirst) {
  Fixture f(65);
  ASSERT_EQ(f.agenda.pages(), 2u);
  EXPECT_EQ(f.agenda.due(0), Instant::never());
  EXPECT_EQ(f.agenda.due(1), Instant::never());
}

TEST(Agenda, PagesHoldEachLockOnce) {
  for (unsigned locks : {1u, 63u, 64u, 65u, 128u, 4'096u, 65'534u}) {
    Fixture f(locks);
    unsigned next = 0;
    for (unsigned page = 0; page < f.agenda.pages(); ++page) {
      EXPECT_EQ(f.agenda.begin(page), next);
      EXPECT_GT(f.agenda.end(page), next);
      EXPECT_LE(f.agenda.end(page) - next, Agenda::page_locks);
      next = f.agenda.end(page);
    }
    EXPECT_EQ(next, locks);
  }
}

TEST(Agenda, APageIsDueWithTheFirstOfItsLocks) {
  Fixture f(130);
  f.agenda.note(64, at(30));
  f.agenda.note(127, at(20));
  f.agenda.note(100, at(40));
  EXPECT_EQ(f.agenda.due(0), Instant::never());
  EXPECT_EQ(f.agenda.due(1), at(20));
  EXPECT_EQ(f.agenda.due(2), Instant::never());
}

TEST(Agenda, OnlyLookingThroughPutsAPageOff) {
  Fixture f(64);
  f.agenda.note(5, at(10));
  f.agenda.note(5, at(50));
  EXPECT_EQ(f.agenda.due(0), at(10));
  f.agenda.clear(0);
  EXPECT_EQ(f.agenda.due(0), Instant::never());
  f.agenda.note(5, at(50));
  EXPECT_EQ(f.agenda.due(0), at(50));
}

TEST(Agenda, AllCanBeMadeDue) {
  Fixture f(200);
  f.agenda.note(0, at(90));
  f.agenda.all_due(at(7));
  for (unsigned page = 0; page < f.agenda.pages(); ++page) EXPECT_EQ(f.agenda.due(page), at(7));
}

}  // namespace
}  // namespace redlock
