// SPDX-License-Identifier: MIT
//
// Which event answers which blocked call, in whatever order callers come and go while it is told.
#include "run/blocked.cpp"

#include <gtest/gtest.h>

namespace redlock {
namespace {

redlock_event_t event_of(int type, int err, uint64_t lock = 1) {
  redlock_event_t event = {};
  event.type = type;
  event.err = err;
  event.lock.id = lock;
  return event;
}

class BlockedTest : public ::testing::Test {
 protected:
  void tell(int type, int err, bool extend_open = false, uint64_t lock = 1) {
    list_.mark(event_of(type, err, lock), extend_open);
    list_.wake(event_of(type, err, lock));
  }
  Blocked& block(Blocked& blocked) {
    EXPECT_TRUE(blocked.bell.open());
    list_.add(blocked);
    return blocked;
  }
  BlockedList list_;
};

TEST_F(BlockedTest, AnAcquireIsAnsweredByItsVerdict) {
  Blocked won = {1, Blocked::On::acquire}, lost = {2, Blocked::On::acquire};
  block(won), block(lost);
  tell(REDLOCK_EV_ACQUIRED, 0);
  EXPECT_TRUE(won.done && won.err == 0 && !lost.done);
  tell(REDLOCK_EV_FAILED, REDLOCK_E_LOCKED, false, 2);
  EXPECT_TRUE(lost.done && lost.err == REDLOCK_E_LOCKED);
}

// A renewal that was decided before the extend was asked for is told after it: not its answer.
TEST_F(BlockedTest, AnExtendIsAnsweredByItsOwnRound) {
  Blocked extend = {1, Blocked::On::extend};
  block(extend);
  tell(REDLOCK_EV_RENEWED, 0, true);
  tell(REDLOCK_EV_ACQUIRED, 0);
  EXPECT_FALSE(extend.done);
  tell(REDLOCK_EV_AT_RISK, REDLOCK_E_NO_QUORUM, false);
  EXPECT_TRUE(extend.done);
  EXPECT_EQ(extend.err, REDLOCK_E_NO_QUORUM);
}

TEST_F(BlockedTest, WhoComesDuringTheCallbackIsNotAnsweredByItsEvent) {
  Blocked extend = {1, Blocked::On::extend};
  list_.mark(event_of(REDLOCK_EV_RENEWED, 0), false);
  block(extend);
  list_.wake(event_of(REDLOCK_EV_RENEWED, 0));
  EXPECT_FALSE(extend.done);
  tell(REDLOCK_EV_RENEWED, 0);
  EXPECT_TRUE(extend.done && extend.err == 0);
}

TEST_F(BlockedTest, AnEndAnswersEverybodyWheneverTheyCame) {
  Blocked extend = {1, Blocked::On::extend}, early = {1, Blocked::On::release}, late = {1, Blocked::On::release};
  block(extend), block(early);
  list_.mark(event_of(REDLOCK_EV_RELEASED, 0), false);
  block(late);
  list_.wake(event_of(REDLOCK_EV_RELEASED, 0));
  EXPECT_TRUE(extend.done && early.done && late.done);
  EXPECT_EQ(extend.err, REDLOCK_E_CANCELED);
  EXPECT_TRUE(early.err == 0 && late.err == 0);
}

TEST_F(BlockedTest, AReleaseOfALostLockIsWell) {
  Blocked release = {1, Blocked::On::release}, extend = {1, Blocked::On::extend};
  block(release), block(extend);
  tell(REDLOCK_EV_LOST, REDLOCK_E_LOST);
  EXPECT_TRUE(release.done && release.err == 0);
  EXPECT_TRUE(extend.done && extend.err == REDLOCK_E_LOST);
}

TEST_F(BlockedTest, WhoGaveUpDuringTheCallbackIsGone) {
  Blocked first = {1, Blocked::On::acquire}, gone = {1, Blocked::On::acquire}, last = {1, Blocked::On::acquire};
  block(first), block(gone), block(last);
  list_.mark(event_of(REDLOCK_EV_ACQUIRED, 0), false);
  list_.remove(gone);
  list_.wake(event_of(REDLOCK_EV_ACQUIRED, 0));
  EXPECT_TRUE(first.done && last.done && !gone.done);
  list_.remove(last);
  EXPECT_FALSE(list_.empty());
  list_.remove(first);
  EXPECT_TRUE(list_.empty());
}

}  // namespace
}  // namespace redlock
