// SPDX-License-Identifier: MIT
//
// Crowd: what a client remembers of a resource that others want, too. There is no queue on the servers, so no waiter
// knows its place. But a waiter counts how often the resource goes by while it watches, and those who wait longest have
// counted most. From the count a client learns how long its next waiter may sleep before watching pays:
//
//   more than `passes_wanted` went by    the watch began too early. The nap grows, half of the way to the right one
//   fewer                                the watch began too late, and nobody may have watched. The nap shrinks by the
//                                        passes that the waiter missed, and by a sixteenth
//
// All naps grow by as much and shrink by a part of themselves. So naps of waiters that began unlike become alike.
// Nothing relies on this: a nap ends at the latest when the plain timer would try, and the masters alone grant a lock.
#pragma once
#include "base/digits.hpp"
#include "base/names.hpp"
#include "base/time.hpp"

namespace redlock {

struct Crowd {
  static constexpr unsigned passes_wanted = 2;

  uint32_t name = 0;      // hash of the lock's first name
  uint32_t nap_us = 0;    // how long to sleep before watching
  uint32_t share_us = 0;  // from one grant to the next
  bool waited = false;    // the last acquire of this name had to wait

  Duration nap() const { return Duration::us(nap_us); }

  // An acquire was granted after `waited`. For `watched` it had watched, and `passed` grants went to others.
  void learn(unsigned passed, Duration watched, Duration waited_for) {
    const uint32_t share = us(Duration::ns(watched.ns() / (passed + 1)));
    if (passed > 0) share_us = share_us == 0 ? share : (share_us + share) / 2;
    const uint32_t watch_us = (passes_wanted + 1) * share_us, waited_us = us(waited_for);
    if (passed > passes_wanted) {
      const uint32_t right_us = waited_us > watch_us ? waited_us - watch_us : 0;
      if (right_us > nap_us) nap_us += (right_us - nap_us) / 2;
    } else {
      const uint32_t less_us = share_us * (passes_wanted + 1 - passed) / 2 + nap_us / 16;
      nap_us = nap_us > less_us ? nap_us - less_us : 0;
    }
  }

 private:
  static uint32_t us(Duration d) {
    constexpr int64_t most = 600'000'000;  // far beyond any nap
    const int64_t n = d.ns() / 1000;
    return static_cast<uint32_t>(n < most ? n : most);
  }
};

// The names that a client has waited for lately. A name that is not among them is like one that nobody else wants.
class Crowds {
 public:
  Crowd of(const Names& names) const {
    if (empty_) return {};
    const uint32_t name = key(names);
    return at_[name % size].name == name ? at_[name % size] : Crowd();
  }
  void keep(const Names& names, Crowd crowd) {
    crowd.name = key(names);
    at_[crowd.name % size] = crowd;
    empty_ = false;
  }

 private:
  static constexpr unsigned size = 4;
  static uint32_t key(const Names& names) { return hash_of<uint32_t>(names.first()); }

  Crowd at_[size];
  bool empty_ = true;  // a client that never waits pays for no hash
};

}  // namespace redlock
