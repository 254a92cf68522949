// SPDX-License-Identifier: MIT
//
// Crowd: what a client remembers of a resource that others want, too. There is no queue on the servers, so no waiter
// knows its place. But a waiter counts how often the resource goes by while it looks, and those who wait longest have
// counted most. From the count a client learns how long its next waiter may sleep before looking pays:
//
//   more than `passes_wanted` went by    the look began too early. The nap grows, half of the way to the right one
//   fewer                                the waiter slept too long: perhaps nobody looked when the resource was free.
//                                        The nap shrinks by the passes that the waiter missed, and by a sixteenth
//
// A nap shrinks in proportion to its length, so a long nap shrinks faster than a short one, and the naps of all waiters
// approach each other.
//
// A client that acquires again as soon as it has released is always first, because its SET leaves right behind its
// delete. Such a client never waits, and would never learn that others do. So it gives way: after a few grants without
// a wait it leaves others the first try. If none of them takes the resource, it does so after twice as many grants. If
// one of them does, the client knows that it is not alone, and gives way after each grant without a wait. Long holds do
// not wait for the count: a client that has held the resource for 1,024 rounds gives way at the next release or the
// second. Giving way takes ten rounds, so a client that is alone pays 1 %.
//
// REDLOCK_F_URGENT is meant for rare acquires. No client can tell whether others are urgent, but each knows how often
// it is urgent itself. Its urgent acquire hurries (lock/machine_waiting) if the client has left the resource alone for
// four times as long as it held it last, and up to four times more without such a pause: an alarm may take several
// steps. Urgent acquires in a loop do not hurry.
//
// Nothing relies on this: a nap ends at the latest when the plain timer would try, and the masters alone grant a lock.
#pragma once
#include "base/digits.hpp"
#include "base/names.hpp"
#include "base/time.hpp"

namespace redlock {

struct Crowd {
  static constexpr unsigned passes_wanted = 2;
  static constexpr unsigned urgent_turns = 4;  // so many urgent grants in a row more, until others have the first try

  uint32_t name = 0;      // Crowds::name_of
  uint32_t nap_us = 0;    // how long to sleep before looking
  uint32_t share_us = 0;  // from one grant to the next
  uint32_t round_us = 0;  // what the last round took
  uint32_t held_us = 0;   // for how long the client has held the resource since that filled its row last
  uint32_t rested = 0;    // when the pause after the last release is one that urgent acquires hurry behind (tick)
  uint32_t row = 0;       // grants without a wait since the client gave way last
  uint16_t turns = 4;     // after so many of them it gives way
  bool waited = false;    // the last acquire of this name had to wait
  uint8_t spent = 0;      // of the urgent acquires that hurry without such a pause

  Duration nap() const { return Duration::us(nap_us); }
  Duration share() const { return Duration::us(share_us); }
  Duration round() const { return Duration::us(round_us); }
  bool gives() const { return row >= turns; }

  // A client that is alone gives way to nobody, so it does so ever more seldom.
  // turns_next: the first `turns` of a client that is not alone.
  void granted(bool at_once, Duration round_took, unsigned turns_next) {
    constexpr unsigned most = 1'024;
    constexpr uint32_t least_us = 100;  // the pause of giving way is not shorter for rounds that are (race_window)
    const uint32_t took_us = us(round_took);
    round_us = took_us < least_us ? least_us : took_us;
    if (gives()) {
      row = 0;
      if (turns < most) turns = static_cast<uint16_t>(turns * 2);
    }
    ++row;
    if (held_us / most >= round_us) held_us = 0, row = turns;
    if (!at_once) row = 0, turns = static_cast<uint16_t>(turns_next);
  }

  // The client let go after it had held the resource for so long.
  void let_go(Duration held, const Instant& now) {
    const uint32_t us_held = us(held);
    held_us += us_held;
    rested = tick(now) + us_held / 256;  // four times as long
  }

  // May an urgent acquire that began then hurry? The ticks wrap after 52 days: a pause of weeks may count as none.
  bool hurries(const Instant& since) const { return spent < urgent_turns || has_rested(since); }
  // An urgent acquire that began then is granted.
  void hurried(const Instant& since) {
    if (has_rested(since)) {
      spent = 0;
    } else if (spent < urgent_turns) {
      ++spent;
    }
  }

  // An acquire was granted after `waited`. For `looked` it had looked, and `passed` grants went to others.
  void learn(unsigned passed, Duration looked, Duration waited_for) {
    const uint32_t share = us(Duration::ns(quotient(looked.ns(), passed + 1)));
    if (passed > 0) share_us = share_us == 0 ? share : (share_us + share) / 2;
    const uint32_t look_us = (passes_wanted + 1) * share_us, waited_us = us(waited_for);
    if (passed > passes_wanted) {
      const uint32_t right_us = waited_us > look_us ? waited_us - look_us : 0;
      if (right_us > nap_us) nap_us += (right_us - nap_us) / 2;
    } else {
      const uint32_t less_us = share_us * (passes_wanted + 1 - passed) / 2 + nap_us / 16;
      nap_us = nap_us > less_us ? nap_us - less_us : 0;
    }
  }

 private:
  // 1.05 ms
  static uint32_t tick(const Instant& at) { return static_cast<uint32_t>(at.ns() >> 20); }
  REDLOCK_APART_FOR_SIZE bool has_rested(const Instant& since) const {
    return static_cast<int32_t>(tick(since) - rested) >= 0;
  }
  REDLOCK_APART_FOR_SIZE static uint32_t us(Duration d) {
    constexpr int64_t most = 600'000'000;  // far beyond any nap
    const int64_t n = quotient(d.ns(), 1000);
    return static_cast<uint32_t>(n < most ? n : most);
  }
};

// The names that a client has waited for lately. A name that is not among them is like one that nobody else wants.
class Crowds {
 public:
  // How a name is known here. The urgent acquires of a name are remembered apart: what its others have learned must not
  // delay them.
  static uint32_t name_of(const Names& names, bool urgent) { return hash_of(names.first()) + urgent; }
  // What is remembered of a name; nullptr: nothing.
  Crowd* find(uint32_t name) {
    Crowd& kept = at_[name % size];
    return kept.name == name ? &kept : nullptr;
  }
  REDLOCK_APART_FOR_SIZE const Crowd& of(uint32_t name) const {
    static constexpr Crowd unknown;
    const Crowd* const kept = const_cast<Crowds*>(this)->find(name);
    return kept != nullptr ? *kept : unknown;
  }
  // Where to remember a grant. Of two names with one place the one that others want stays for one grant of the other
  // name: nullptr.
  Crowd* note(uint32_t name, bool waited) {
    Crowd& old = at_[name % size];
    if (old.name != name) {
      if (old.waited && !waited) {
        old.waited = false;
        return nullptr;
      }
      old = Crowd();
      old.name = name;
    }
    old.waited = waited;
    return &old;
  }

 private:
  static constexpr unsigned size = 4;
  Crowd at_[size];
};

}  // namespace redlock
