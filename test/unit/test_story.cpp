// SPDX-License-Identifier: MIT
//
// The log of a bad night, line by line, and which changes of a master are events.
#include "run/fault.cpp"
#include "run/story.cpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace redlock {
namespace {

class StoryTest : public ::testing::Test {
 protected:
  // "4 master ...": level and line; " EVENT" behind it, where the change is one.
  std::string change(int state, int err = 0, int64_t guard_ms = 0, uint32_t master = 0) {
    detail_.name = "pump";
    detail_.address = "10.0.0.11:6379";
    redlock_event_t event = {};
    event.type = REDLOCK_EV_MASTER;
    event.state = state;
    event.err = err;
    event.guard_ms = guard_ms;
    event.master = master;
    event.detail = &detail_;
    const std::string line = read([&](TextWriter& out) { return story_.master_changed(event, now_, out); });
    return line + (story_.is_event(event) ? " EVENT" : "");
  }

  redlock_event_t of_lock(int type, int err = 0) {
    detail_.masters = 3, detail_.quorum = 2, detail_.voting = 1, detail_.watched = 1;
    detail_.name = detail_.address = "10.0.0.11:6379";
    redlock_event_t event = {};
    event.type = type;
    event.err = err;
    event.granted = 1, event.refused = 0, event.failed = 2;
    event.master_err = REDLOCK_E_DISCONNECTED;
    event.detail = &detail_;
    return event;
  }
  std::string lock(const redlock_event_t& event, uint32_t waited_s = 0, int waited_for = 0) {
    const Names names(Bytes("plant1/\"bus\""));
    const Story::Acquire acquire = {names, waited_s, waited_for};
    return read([&](TextWriter& out) { return story_.lock_told(event, acquire, now_, out); });
  }

  template <class Write>
  std::string read(const Write& write) {
    char text[Story::line_max];
    TextWriter out(text, sizeof text);
    const int level = write(out);
    return level == Story::none ? "" : std::to_string(level) + " " + text;
  }

  redlock_detail_t detail_ = {sizeof(redlock_detail_t), 0, 0, 0, 0, 0, 0, 0, 0, "", "", "", "", "", ""};
  Story::Told told_[3];
  Story story_{told_};
  uint32_t now_ = 1'000'000;
};

const std::string pump = "master pump 10.0.0.11:6379: ";

// ---- masters --------------------------------------------------------------------------------------------------------

TEST_F(StoryTest, AFirstStartIsOneEventForEachMaster) {
  EXPECT_EQ(change(REDLOCK_MASTER_DOWN), "7 " + pump + "down");
  EXPECT_EQ(change(REDLOCK_MASTER_CONNECTING), "7 " + pump + "connecting");
  EXPECT_EQ(change(REDLOCK_MASTER_GREETING), "7 " + pump + "greeting");
  EXPECT_EQ(change(REDLOCK_MASTER_UP), "6 " + pump + "up EVENT");
}

TEST_F(StoryTest, ANewMasterIsWatchedAndAdmitted) {
  EXPECT_EQ(change(REDLOCK_MASTER_GUARDED, REDLOCK_E_UNREAD)[0], '7');
  EXPECT_EQ(change(REDLOCK_MASTER_GUARDED, REDLOCK_E_UNWATCHED, 30'302),
            "5 " + pump + "guarded: may have forgotten keys: not yet watched for the guard time; 30.4 s to go EVENT");
  EXPECT_EQ(change(REDLOCK_MASTER_UP), "5 " + pump + "up: the watch is over EVENT");
}

TEST_F(StoryTest, AnOutageIsOneEventAndALineForEachReason) {
  change(REDLOCK_MASTER_UP);
  EXPECT_EQ(change(REDLOCK_MASTER_DOWN, REDLOCK_E_DISCONNECTED), "4 " + pump + "down: the connection broke EVENT");
  for (const char* level : {"4 ", "7 ", "7 "}) {
    EXPECT_EQ(change(REDLOCK_MASTER_CONNECTING, REDLOCK_E_DISCONNECTED)[0], '7');
    EXPECT_EQ(change(REDLOCK_MASTER_DOWN, REDLOCK_E_REFUSED),
              level + pump + "down: the connection was refused: nothing listens there, or a firewall rejects it");
  }
  change(REDLOCK_MASTER_GREETING, REDLOCK_E_REFUSED);
  EXPECT_EQ(change(REDLOCK_MASTER_UP), "5 " + pump + "up again EVENT");
  EXPECT_EQ(change(REDLOCK_MASTER_DOWN, REDLOCK_E_DISCONNECTED), "4 " + pump + "down: the connection broke EVENT");
}

TEST_F(StoryTest, AReasonThatDoesNotPassIsAWarning) {
  EXPECT_EQ(change(REDLOCK_MASTER_GUARDED, REDLOCK_E_MAXMEMORY, REDLOCK_GUARD_UNKNOWN),
            "4 " + pump + "guarded: may evict keys: maxmemory is set without noeviction EVENT");
  EXPECT_EQ(change(REDLOCK_MASTER_GUARDED, REDLOCK_E_UNWATCHED, 1).substr(0, 2), "5 ") << "another reason is told";
}

TEST_F(StoryTest, ASilentMaster) {
  change(REDLOCK_MASTER_UP);
  EXPECT_EQ(change(REDLOCK_MASTER_SUSPECT), "4 " + pump + "suspect: no answer within node_timeout_ms EVENT");
  EXPECT_EQ(change(REDLOCK_MASTER_UP), "5 " + pump + "up again EVENT");
  EXPECT_EQ(change(REDLOCK_MASTER_UP, REDLOCK_E_NOPERM), "4 " + pump + "up: the user lacks a permission EVENT");
}

TEST_F(StoryTest, AnOrderlyEndIsNoWarningAndNoEvent) {
  change(REDLOCK_MASTER_UP);
  EXPECT_EQ(change(REDLOCK_MASTER_DOWN, REDLOCK_E_CLOSED), "7 " + pump + "down: the client is closing");
  redlock_event_t event = {};
  event.type = REDLOCK_EV_CLOSED;
  EXPECT_EQ(read([&](TextWriter& out) { return Story::closed(event, out); }), "6 closed");
  event.failed = 3;
  EXPECT_EQ(read([&](TextWriter& out) { return Story::closed(event, out); }), "5 closed; 3 deletes were not answered");
}

// Four lines at once, then one in ten seconds. What is left out is counted, and a master that is up is said to be.
TEST_F(StoryTest, AMasterThatFlapsDoesNotFillTheLog) {
  std::vector<std::string> lines;
  for (int i = 0; i < 200; ++i, ++now_) {
    for (const std::string& line : {change(REDLOCK_MASTER_UP), change(REDLOCK_MASTER_DOWN, REDLOCK_E_DISCONNECTED)}) {
      if (line[0] < '7') lines.push_back(line.substr(0, line.find(" EVENT")));
    }
  }
  EXPECT_LE(lines.size(), 2u * (4 + 20) + 1);
  EXPECT_GE(lines.size(), 2u * 20);
  unsigned counted = 0;
  for (const std::string& line : lines) {
    const size_t bracket = line.find(" (");
    if (bracket == std::string::npos) continue;
    EXPECT_NE(line.find(" left out)"), std::string::npos) << line;
    counted += static_cast<unsigned>(std::stoi(line.substr(bracket + 2)));
  }
  EXPECT_GE(counted, 150u);
  now_ += 100;
  EXPECT_EQ(change(REDLOCK_MASTER_DOWN, REDLOCK_E_DISCONNECTED)[0], '4') << "it is still down: the next attempt tells";
  EXPECT_EQ(change(REDLOCK_MASTER_UP)[0], '5');
  EXPECT_EQ(change(REDLOCK_MASTER_UP)[0], '7') << "said once";
  EXPECT_EQ(change(REDLOCK_MASTER_DOWN, REDLOCK_E_DISCONNECTED, 0, 2)[0], '4') << "each master has its own limit";
}

TEST_F(StoryTest, TheLastErrorNumberIsRepeatedAsAnyOther) {
  EXPECT_NE(change(REDLOCK_MASTER_GUARDED, REDLOCK_E_LAST_).find(" EVENT"), std::string::npos);
  const std::string again = change(REDLOCK_MASTER_GUARDED, REDLOCK_E_LAST_);
  EXPECT_EQ(again[0], '7') << again;
  EXPECT_EQ(again.find(" EVENT"), std::string::npos) << again;
  Limiter limit;
  unsigned lines = 0;
  for (unsigned i = 0; i < 2 * lines_at_once; ++i) lines += limit.allows(now_, REDLOCK_E_LAST_);
  EXPECT_EQ(lines, lines_at_once);
}

// ---- locks ----------------------------------------------------------------------------------------------------------

const std::string bus = "\"plant1/\\\"bus\\\"\" ";

TEST_F(StoryTest, LostIsAnErrorAndSaysWhy) {
  EXPECT_EQ(lock(of_lock(REDLOCK_EV_LOST, REDLOCK_E_LOST)),
            "3 " + bus + "lost: 2 of 3 masters could not extend it; 10.0.0.11:6379: the connection broke");
}

TEST_F(StoryTest, ALostTryIsNoWarning) {
  EXPECT_EQ(lock(of_lock(REDLOCK_EV_FAILED, REDLOCK_E_LOCKED), 4), "");
  EXPECT_EQ(lock(of_lock(REDLOCK_EV_FAILED, REDLOCK_E_TIMEOUT)), "");
  EXPECT_EQ(lock(of_lock(REDLOCK_EV_FAILED, REDLOCK_E_CANCELED), 60), "");
  EXPECT_EQ(lock(of_lock(REDLOCK_EV_ACQUIRED), 4, REDLOCK_E_LOCKED), "");
  EXPECT_EQ(lock(of_lock(REDLOCK_EV_FAILED, REDLOCK_E_NO_QUORUM)).find("waited"), std::string::npos) << "that is one";
}

TEST_F(StoryTest, ALongWaitSaysForWhat) {
  redlock_event_t event = of_lock(REDLOCK_EV_ACQUIRED);
  event.validity_ms = 9'898;
  EXPECT_EQ(lock(event, 12, REDLOCK_E_LOCKED),
            "4 " + bus + "waited 12 s, acquired, 9.8 s of validity: held by somebody else on too many masters");
  event = of_lock(REDLOCK_EV_FAILED, REDLOCK_E_LOCKED);
  event.refused = 3;
  detail_.holder = "gw-03";
  EXPECT_EQ(lock(event, 10), "4 " + bus + "waited 10 s, not acquired: held by gw-03 on 3 of 3 masters");
}

TEST_F(StoryTest, AFlooredTokenIsNoticed) {
  redlock_event_t event = of_lock(REDLOCK_EV_ACQUIRED);
  event.flags = REDLOCK_EV_F_FLOORED;
  event.token = 1'795'367'410'875;
  EXPECT_EQ(lock(event),
            "5 " + bus + "has token 1795367410875 from the masters' clocks: too few know the last token");
}

TEST_F(StoryTest, KindsOfLinesHaveLimitsOfTheirOwn) {
  const redlock_event_t at_risk = of_lock(REDLOCK_EV_AT_RISK, REDLOCK_E_NO_QUORUM);
  for (int i = 0; i < 4; ++i) EXPECT_NE(lock(at_risk), "");
  for (int i = 0; i < 12; ++i) EXPECT_EQ(lock(at_risk), "");
  EXPECT_NE(lock(of_lock(REDLOCK_EV_LOST, REDLOCK_E_LOST)), "");
  now_ += 10;
  const std::string line = lock(at_risk), count = " (12 left out)";
  ASSERT_GT(line.size(), count.size());
  EXPECT_EQ(line.substr(line.size() - count.size()), count);
  now_ += 1'000;
  EXPECT_EQ(lock(at_risk).find("left out"), std::string::npos) << "told once";
}

TEST_F(StoryTest, AClockThatJumpedIsToldOnce) {
  const auto jumps = [&](uint32_t n) { return read([&](TextWriter& out) { return story_.paused(n, 0, out); }); };
  EXPECT_EQ(jumps(0), "");
  EXPECT_EQ(jumps(1),
            "4 the machine slept, or its clocks jumped: held locks are lost");
  EXPECT_EQ(jumps(1), "");
  EXPECT_NE(jumps(3), "");
}

TEST_F(StoryTest, ALoopThatStoodStill) {
  const auto still = [&](uint32_t jumps, uint32_t s) {
    return read([&](TextWriter& out) { return story_.paused(jumps, s, out); });
  };
  EXPECT_EQ(still(0, 0), "");
  EXPECT_EQ(still(0, 12), "4 the loop did not run for at least 12 s");
  EXPECT_EQ(still(1, 12).find("4 the machine slept"), 0u) << "one line, with the cause";
}

// ---- calls ----------------------------------------------------------------------------------------------------------

TEST_F(StoryTest, ACallThatIsRefusedTooOftenIsForDebugging) {
  const auto refused = [&](Fault::Is what) {
    return read([&](TextWriter& out) { return story_.call_refused(what, now_, out.raw("a call")); });
  };
  for (int i = 0; i < 4; ++i) EXPECT_EQ(refused(Fault::Is::twice), "3 a call");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(refused(Fault::Is::twice), "7 a call");
  EXPECT_EQ(refused(Fault::Is::flags), "3 a call (3 left out)");
  EXPECT_EQ(refused(Fault::Is::flags), "7 a call");
}

TEST(Faults, HaveATextEach) {
  using Is = Fault::Is;
  const auto text = [](Is is, uint32_t value = 0, uint32_t limit = 0) {
    Fault fault;
    EXPECT_EQ(fault.set(is, value, limit), REDLOCK_E_INVAL);
    char buffer[fault_text_max];
    TextWriter out(buffer, sizeof buffer);
    explain(fault, out);
    EXPECT_TRUE(out.fits());
    return std::string(buffer);
  };
  EXPECT_EQ(text(Is::no_resources), "resources is NULL");
  EXPECT_EQ(text(Is::twice), "a name is given twice");
  EXPECT_EQ(text(Is::size, 0), "opts->size is 0: use REDLOCK_ACQUIRE_OPTS_INIT");
  EXPECT_EQ(text(Is::long_ttl, 40'000, 30'000), "ttl_ms 40000 is above timing.max_ttl_ms 30000");
  EXPECT_EQ(text(Is::delay, UINT32_MAX), "retry_delay_ms 4294967295 is above 5000") << "the last";
  EXPECT_EQ(text(Is::bytes, UINT32_MAX, UINT32_MAX).size(), 84u) << "the longest with numbers";
}

}  // namespace
}  // namespace redlock
