// SPDX-License-Identifier: MIT
//
// What the guard writes: records and seals, and the word that a short visit leaves.
#include "guard_fixture.hpp"

namespace redlock {
namespace {

using namespace guard_test;

// ---- writes -------------------------------------------------------------------------------------------------------

TEST_F(AnyGuard, a_refused_write_is_the_reason_and_is_tried_again_later_only) {
  EXPECT_EQ(f.read(), Next::create);
  f.guard.written(REDLOCK_E_OOM);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_OOM);
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_OOM);
  EXPECT_FALSE(f.guard.wants_reading(at(4'999)));
  for (const int64_t ms : {0, 1, 4'999}) {
    f.guard.on_time(at(ms));
    EXPECT_EQ(f.guard.reason(), REDLOCK_E_OOM) << ms;
  }
  EXPECT_EQ(f.until(5'000), Next::create);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_OOM) << "until a write is done";
  f.guard.written(0);
  f.create();
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED);
}

TEST_F(AnyGuard, a_refused_write_is_no_reason_where_somebody_else_has_written) {
  f.create();
  f.read();
  f.guard.written(REDLOCK_E_NOPERM);
  f.seal();
  f.read();
  EXPECT_TRUE(f.guard.admitted());
  f.until(5'000);
  f.create("bbbbbbbbbbbbbbbb");
  f.read();
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED) << "nothing was refused in this state";
  EXPECT_TRUE(f.guard.forgot());
}

TEST_F(AnyGuard, commissioning_is_for_what_is_read_before_its_end) {
  f.guard.commission(at(1'000));
  f.create();
  f.now = at(999);
  EXPECT_EQ(f.read(), Next::seal);
  f.now = at(1'000);
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED);
  EXPECT_EQ(f.guard.watched_at(), at(999 + guard_ms));
}

TEST_F(AnyGuard, commissioning_is_used_up_by_the_seal_that_it_writes) {
  f.guard.commission(at(1'000));
  f.create();
  EXPECT_EQ(f.read(), Next::seal);
  f.create("cccccccccccccccc");  // lost before the seal was written
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED);
}

// Also where the state had its seal already: nothing is left of it for a state that comes later.
TEST_F(AdmittedGuard, commissioning_a_sealed_master_says_nothing_of_its_next_state) {
  f.guard.commission(at(1'000));
  f.read();
  f.create("cccccccccccccccc");
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED);
}

// ---- short visits -------------------------------------------------------------------------------------------------

constexpr int64_t visit_ms = 34'091;  // 1.125 guard times, and a millisecond for what two clock readings lose
constexpr int64_t epoch_ms = 1'700'000'000'000;  // the server's TIME when the machine was started

struct Visited : Fixture {
  explicit Visited(const std::string& visit = "", GuardMode mode = GuardMode::strict) : Fixture(mode) {
    settings.has_boot_id = true;
    memset(settings.boot_id, 'b', sizeof settings.boot_id);
    create();
    record.visit = visit;
  }
  // A reading, TIME and CLOCK_BOOTTIME behind it.
  Next read_at(int64_t boot_ms) { return read_at(boot_ms, epoch_ms + boot_ms); }
  Next read_at(int64_t boot_ms, int64_t server_ms) {
    const Next next = read();
    guard.read_time(server_ms);
    if (next != Next::nothing || !guard.wants_boot_time()) return next;
    return guard.boot_time(boot_ms, now);
  }
};

const std::string state = "2222222222222222:aaaaaaaaaaaaaaaa";

std::string visit_at(int64_t boot_ms, int64_t server_ms) {
  return state + " " + std::to_string(boot_ms) + " " + std::to_string(server_ms);
}
std::string visit_at(int64_t boot_ms) { return visit_at(boot_ms, epoch_ms + boot_ms); }

TEST(GuardVisits, boot_time_is_asked_for_behind_each_reading_of_a_state_without_a_seal) {
  Visited f;
  EXPECT_FALSE(f.guard.wants_boot_time());
  for (int i = 0; i < 2; ++i) {
    f.read();
    EXPECT_FALSE(f.guard.wants_boot_time()) << "TIME is not answered yet, or it is that of the reading before";
    f.guard.read_time(epoch_ms);
    EXPECT_TRUE(f.guard.wants_boot_time());
    f.guard.boot_time(1'000, f.now);
    EXPECT_FALSE(f.guard.wants_boot_time()) << "once for each reading";
  }
  f.seal();
  f.read();
  f.guard.read_time(epoch_ms);
  EXPECT_FALSE(f.guard.wants_boot_time());
}

TEST(GuardVisits, boot_time_is_not_asked_for_in_vain) {
  Visited no_id, weak("", GuardMode::weak), foreign, blank, replica, refused, duplicate, commissioned, gone;
  no_id.settings.has_boot_id = false;
  weak.info_error = REDLOCK_E_NOPERM;
  foreign.record.desc = "v1 n=5";
  blank.record = {};
  replica.facts.master = false;
  refused.info_error = REDLOCK_E_NOPERM;
  duplicate.guard.set_duplicate(true);
  commissioned.guard.commission(at(1));
  for (Visited* f : {&no_id, &weak, &foreign, &blank, &replica, &refused, &duplicate, &commissioned}) {
    f->read();
    f->guard.read_time(epoch_ms);
    EXPECT_FALSE(f->guard.wants_boot_time());
  }
  gone.read();
  gone.guard.read_time(epoch_ms);
  gone.guard.connected();
  EXPECT_FALSE(gone.guard.wants_boot_time());
}

// The clock is slewed by up to a tenth, and both times were rounded to milliseconds.
TEST(GuardVisits, an_earlier_visit_is_believed_at_no_less_than_an_eighth_more) {
  for (const uint32_t max_ttl_ms : {20u, 27u, 30'000u, 30'007u, 86'399'999u}) {
    Visited f(visit_at(100'000));
    f.settings.max_ttl_ms = max_ttl_ms;
    const int64_t watch_ns = guard_time(max_ttl_ms, f.settings.drift_ppm, f.settings.drift_fixed_ms).ns();
    const int64_t least_ms = (watch_ns * 9 / 8 + 999'999) / 1'000'000;
    EXPECT_EQ(f.read_at(100'000 + least_ms), Next::nothing) << "the first was a millisecond younger, perhaps";
    EXPECT_EQ(f.read_at(100'000 + least_ms + 2), Next::seal) << max_ttl_ms;
  }
}

TEST(GuardVisits, the_own_watch_is_over_first_or_the_earlier_visit_is) {
  Visited f(visit_at(100'000));
  EXPECT_EQ(f.read_at(100'000), Next::nothing);
  EXPECT_EQ(f.guard.watched_at(), at(guard_ms)) << "both began just now";
  f.now = at(guard_ms);
  EXPECT_EQ(f.read(), Next::seal) << "the own watch needs no other clock";

  Visited g(visit_at(100'000));
  EXPECT_EQ(g.read_at(130'000), Next::nothing);
  const Instant due = g.guard.watched_at();
  EXPECT_EQ(g.guard.deadline(), due);
  EXPECT_EQ(due, at(visit_ms - 30'000));
  g.now = at(3'000);
  EXPECT_EQ(g.read_at(133'000), Next::nothing);
  EXPECT_EQ(g.guard.watched_at(), due) << "told anew by each reading";
  g.now = due;
  EXPECT_EQ(g.read_at(100'000 + visit_ms), Next::seal);
}

// Two machines with one boot id, one of them up for an hour longer, or less: the visit's age by the boot time is wrong.
// The visit stays until it would be old enough, for the clients of the machine that has left the visit.
TEST(GuardVisits, the_boot_time_of_a_machine_with_the_same_boot_id_ends_no_watch) {
  constexpr int64_t hour = 3'600'000;
  for (const int64_t up : {hour, hour + visit_ms, -hour, int64_t{900'000'000'000}}) {
    Visited f(visit_at(1'000'000'000'000, epoch_ms));
    for (const int64_t age : {0, 1'000, 30'000}) {
      const bool would_end = up > 0;  // by the boot time
      EXPECT_EQ(f.read_at(1'000'000'000'000 + up + age, epoch_ms + age), would_end ? Next::visit : Next::nothing) << up;
      EXPECT_EQ(f.guard.watched_at(), at(guard_ms));
    }
    EXPECT_EQ(f.read_at(1'000'000'000'000 + up + visit_ms, epoch_ms + visit_ms), Next::visit) << "never a seal";
  }
  Visited f(visit_at(1'000, epoch_ms));
  EXPECT_EQ(f.read_at(1'000 + 60'000, epoch_ms + 30'000), Next::visit) << "old enough by the boot time alone";
}

TEST(GuardVisits, a_visit_of_a_later_time_of_the_server_is_replaced) {
  Visited f(visit_at(100'000, epoch_ms));
  EXPECT_EQ(f.read_at(100'000 + 10, epoch_ms - 60'000), Next::visit);
  EXPECT_EQ(f.read_at(100'000 + visit_ms, epoch_ms - 60'000), Next::visit);
  EXPECT_EQ(f.read_at(90'000, epoch_ms - 60'000), Next::visit) << "of another machine's, too";
  EXPECT_EQ(f.read_at(100'000 + 10, epoch_ms - 1'000), Next::nothing) << "a little earlier is a slow answer";
}

// A slow answer, or a slewed clock, on the way to a visit that is old enough by both.
TEST(GuardVisits, ages_may_differ_by_an_eighth) {
  struct {
    int64_t boot, server;
    Next next;
  } const cases[] = {{visit_ms, visit_ms + visit_ms / 8, Next::seal},
                     {visit_ms + visit_ms / 8, visit_ms, Next::seal},
                     {visit_ms, visit_ms * 8 / 7 + 2, Next::visit},
                     {visit_ms * 8 / 7 + 2, visit_ms, Next::visit},
                     {visit_ms - 1, visit_ms + 1'000, Next::nothing},
                     {visit_ms + 1'000, visit_ms - 1, Next::nothing},
                     {0, visit_ms / 8, Next::nothing},
                     {0, visit_ms - 1, Next::nothing},
                     {86'400'000, 77'000'000, Next::seal}};
  for (const auto& c : cases) {
    Visited f(visit_at(100'000, epoch_ms));
    EXPECT_EQ(f.read_at(100'000 + c.boot, epoch_ms + c.server), c.next) << c.boot << " " << c.server;
  }
  Visited f(visit_at(100'000, epoch_ms));
  EXPECT_EQ(f.read_at(130'000, epoch_ms + 28'000), Next::nothing);
  EXPECT_EQ(f.guard.watched_at(), at(visit_ms - 28'000)) << "the younger age counts";
}

TEST(GuardVisits, what_is_no_visit_to_this_state_is_none) {
  const std::string long_ago = " 1 " + std::to_string(epoch_ms);
  for (const std::string& visit :
       {state, state + " ", state + " 1" /* as 0.2.0 left it */, state + "  1", state + " 1 ", state + " 1 1 ",
        state + " 1x 1", state + " 1 1x", state + " -1 1", state + " 1 -1", state + " +1 1", state + " 1.5 1",
        state + " 1 1 1", state + "x1 1", state + ":1 1", state + " 2305843009213693952 1",
        state + " 1 2305843009213693952", state + " 99999999999999999999 1", state.substr(1) + long_ago,
        "x" + state.substr(1) + long_ago, state.substr(0, 32) + "b" + long_ago,
        state.substr(0, 16) + " " + state.substr(17) + long_ago, std::string("1 1"), std::string(" "),
        std::string(60, ' '), std::string(52, '1')}) {
    Visited f(visit);
    EXPECT_EQ(f.read_at(900'000'000), Next::visit) << visit;
    EXPECT_EQ(f.guard.watched_at(), at(guard_ms)) << visit;
  }
}

TEST(GuardVisits, a_withdrawal_between_a_reading_and_its_boot_time_leaves_nothing_to_write) {
  for (const std::string& visit : {std::string(), visit_at(100'000)}) {
    Visited f(visit);
    f.read();
    f.guard.read_time(epoch_ms + 900'000);
    f.guard.withdraw(f.now);
    EXPECT_EQ(f.guard.boot_time(900'000, f.now), Next::nothing);
  }
}

// No word of the visit is ever found there: the script that leaves it is refused.
TEST(GuardVisits, a_refused_write_does_not_block_the_own_watch) {
  Visited f;
  Next next = f.read_at(70'000);
  while (next == Next::visit && f.now < at(40'000)) {
    f.now = later(f.guard.deadline(), f.now + Duration::ms(1));
    f.guard.on_time(f.now);
    if (f.guard.wants_reading(f.now)) next = f.read_at(70'000 + f.now.ns() / 1'000'000);
  }
  EXPECT_EQ(next, Next::seal);
  EXPECT_EQ(f.now, at(guard_ms));
}

TEST(GuardVisits, a_clock_that_cannot_be_read_leaves_no_word) {
  Visited f;
  EXPECT_EQ(f.read_at(-1), Next::nothing);
  EXPECT_EQ(f.read_at(0), Next::visit);
}

// Half of the next reading has come: what is known of the state is of two instants.
TEST(GuardVisits, boot_time_is_for_the_reading_that_asked_and_not_for_half_of_the_next_one) {
  Visited f(visit_at(100'000));
  const Asked first = f.ask(), second = f.ask();
  f.answer(first);
  f.guard.read_time(epoch_ms);
  EXPECT_TRUE(f.guard.wants_boot_time());
  f.resynchronize("4444444444444444");
  f.record.q = "bbbbbbbbbbbbbbbb";
  f.say_role();
  f.guard.read(Field::q, false, bytes(f.record.q));
  EXPECT_FALSE(f.guard.wants_boot_time()) << "the seal of a new state would be written, for the age of the old one";
  f.answer(second);
  f.guard.read_time(epoch_ms);
  EXPECT_TRUE(f.guard.wants_boot_time());
}

// ---- no busy loop ---------------------------------------------------------------------------------------------------

// Whatever happened: when a deadline has come, there is something to do, and when that is done the next one is later.
TEST(Guard, a_deadline_that_has_come_is_work_that_can_be_done) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 dice(seed);
    const auto roll = [&](unsigned n) { return static_cast<unsigned>(dice() % n); };
    Visited f("", seed % 3 == 0 ? GuardMode::weak : GuardMode::strict);
    std::deque<Asked> under_way;
    for (unsigned step = 0; step < 300; ++step) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", step " << step);
      switch (roll(13)) {
        case 0:
          f.guard.withdraw(f.now);
          break;
        case 1:
          f.guard.distrust(f.now + Duration::ms(roll(5'000)));
          break;
        case 2:
          f.guard.set_duplicate(roll(4) == 0);
          break;
        case 3:
          f.guard.clock_jumped(f.now);
          break;
        case 4:
          f.create(roll(2) ? "aaaaaaaaaaaaaaaa" : "bbbbbbbbbbbbbbbb");
          break;
        case 5:
          f.seal();
          break;
        case 6:
          f.record.visit = visit_at(roll(100'000), roll(100'000));
          break;
        case 7:
          f.guard.written(roll(2) ? int{REDLOCK_E_OOM} : 0);
          break;
        case 8:
          f.facts.master = roll(3) != 0;
          break;
        case 9:
          f.facts.standalone = roll(5) != 0, f.guard.identify(f.facts, f.now);
          break;
        case 10:
          f.guard.commission(f.now + Duration::ms(roll(2'000)));
          break;
        default:
          break;
      }
      if (roll(3) != 0 && !under_way.empty()) {
        if (roll(6) == 0) {
          f.guard.reading_failed(under_way.front().number, REDLOCK_E_LOADING, under_way.front().sent, f.now);
        } else if (f.answer(under_way.front()) != Next::nothing) {
          under_way.push_back(f.ask());  // what is written is read again
        }
        f.guard.read_time(f.now.ns() / 1'000'000);
        if (f.guard.wants_boot_time() && f.guard.boot_time(f.now.ns() / 1'000'000, f.now) == Next::seal) {
          under_way.push_back(f.ask());
        }
        under_way.pop_front();
      }
      f.guard.on_time(f.now);
      if (f.guard.wants_reading(f.now)) {
        if (roll(4) == 0) {
          f.guard.postpone_reading(f.now + Duration::ms(50));
        } else {
          under_way.push_back(f.ask());
        }
      }
      ASSERT_GT(f.guard.deadline(), f.now);
      ASSERT_LE(under_way.size(), 40u);
      const Instant due = earlier(f.guard.deadline(), f.now + Duration::ms(60'000));
      f.now = roll(3) == 0 ? due : f.now + Duration::ms(roll(2'000));
    }
  }
}

}  // namespace
}  // namespace redlock
