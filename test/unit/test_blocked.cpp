// SPDX-License-Identifier: MIT
//
// Which event answers which blocked call, in whatever order callers come and go while it is told; and what is written
// into a caller's report.
#include "run/blocked.cpp"
#include "run/report.cpp"

#include <gtest/gtest.h>

#include <string>

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

// ---- reports ------------------------------------------------------------------------------------------------------

redlock_report_t filled(uint32_t size) {
  redlock_report_t report;
  memset(static_cast<void*>(&report), '#', sizeof report);
  report.size = size;
  return report;
}

redlock_event_t refused_event(const redlock_detail_t* detail) {
  redlock_event_t event = event_of(REDLOCK_EV_FAILED, REDLOCK_E_LOCKED);
  event.master_err = REDLOCK_E_OOM;
  event.granted = 1, event.refused = 2, event.failed = 3, event.rounds = 4, event.guard_ms = 5;
  event.cause = REDLOCK_CAUSE_HELD;
  event.detail = detail;
  return event;
}

redlock_detail_t held_by(const char* name) {
  redlock_detail_t detail = {};
  detail.size = sizeof detail;
  detail.masters = 3, detail.quorum = 2, detail.to_go_ms = REDLOCK_GUARD_UNKNOWN;
  detail.name = detail.address = detail.their_name = detail.our_name = detail.denied = "";
  detail.holder = name;
  return detail;
}

TEST_F(BlockedTest, AReportIsWrittenWithItsEvent) {
  const redlock_detail_t detail = held_by("gw-03");
  redlock_report_t report = filled(sizeof report), other = filled(sizeof other);
  Blocked me = {1, Blocked::On::acquire, &report}, elsewhere = {2, Blocked::On::acquire, &other};
  block(me), block(elsewhere);
  const redlock_event_t event = refused_event(&detail);
  list_.mark(event, false);
  EXPECT_EQ(report.text[0], '#') << "the callback comes first";
  list_.wake(event);
  EXPECT_TRUE(me.done);
  EXPECT_EQ(report.err, REDLOCK_E_LOCKED);
  EXPECT_EQ(report.cause, REDLOCK_CAUSE_HELD);
  EXPECT_EQ(report.master_err, REDLOCK_E_OOM);
  EXPECT_EQ(report.granted + 10 * report.refused + 100 * report.failed + 1000 * report.rounds, 4321u);
  EXPECT_EQ(report.guard_ms, 5);
  EXPECT_STREQ(report.holder, "gw-03");
  EXPECT_STREQ(report.text, "not acquired: held by gw-03 on 2 of 3 masters");
  EXPECT_EQ(other.text[0], '#') << "of another lock";
  report = filled(sizeof report);
  list_.wake(event);
  EXPECT_EQ(report.text[0], '#') << "written once";
}

TEST(Report, NoMoreIsWrittenThanTheCallerHasRoomFor) {
  const redlock_detail_t detail = held_by("gw-03");
  const redlock_event_t event = refused_event(&detail);
  for (uint32_t size = offsetof(redlock_report_t, holder); size <= sizeof(redlock_report_t) + 8; ++size) {
    redlock_report_t report = filled(size);
    report_event(&report, event, REDLOCK_E_LOCKED);
    EXPECT_EQ(report.size, size < sizeof report ? size : sizeof report);
    const char* const bytes = reinterpret_cast<const char*>(&report);
    for (size_t i = size; i < sizeof report; ++i) ASSERT_EQ(bytes[i], '#') << size;
  }
  redlock_report_t part = filled(offsetof(redlock_report_t, text) + 12);
  report_error(&part, REDLOCK_E_TIMEOUT);
  EXPECT_STREQ(part.holder, "");
  EXPECT_EQ(std::string(part.text), std::string(redlock_strerror(REDLOCK_E_TIMEOUT)).substr(0, 11));
}

TEST(Report, OfAnErrorWithoutAnEvent) {
  redlock_report_t report = filled(sizeof report);
  EXPECT_EQ(report_error(&report, REDLOCK_E_INVAL, "the name is empty"), REDLOCK_E_INVAL);
  EXPECT_EQ(report.granted + report.refused + report.failed + report.rounds, 0u);
  EXPECT_STREQ(report.text, "the name is empty");
  EXPECT_EQ(report_error(nullptr, REDLOCK_E_CLOSED), REDLOCK_E_CLOSED);
}

TEST(Report, TheOptionsNameIt) {
  redlock_report_t report = REDLOCK_REPORT_INIT;
  redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
  redlock_report_t* found = &report;
  EXPECT_TRUE(find_report(nullptr, found));
  EXPECT_EQ(found, nullptr);
  EXPECT_TRUE(find_report(&opts, found));
  EXPECT_EQ(found, nullptr);
  opts.report = &report;
  EXPECT_TRUE(find_report(&opts, found));
  EXPECT_EQ(found, &report);
  opts.size = offsetof(redlock_acquire_opts_t, report);
  EXPECT_TRUE(find_report(&opts, found)) << "options of a program that does not know reports";
  EXPECT_EQ(found, nullptr);
  opts.size = sizeof opts;
  report.size = offsetof(redlock_report_t, holder) - 1;
  EXPECT_FALSE(find_report(&opts, found));
  EXPECT_EQ(found, nullptr);
}

}  // namespace
}  // namespace redlock
