// SPDX-License-Identifier: MIT
//
// Forecast: when is a quorum plausibly free? What one waiter knows of the masters, and what follows for its next round.
//
// A waiter that lost to another holder reads, behind its deletes, how long the key will live on each master, and is
// told when the key changes (CLIENT TRACKING). So for every master there is an instant from which its key may be
// free:
//
//     gone                     now
//     lives for t              now + t + 2 ms: the server's milliseconds, and "expired" is after, not at
//     without expiry, unanswered, or the master does not vote: never
//     the server does not track, or answers an error: when the plain timer would try again
//     it was not sent the last SET, or failed: when the plain timer would try again; pushes are ignored there, because
//     a free key does not make it vote and waiters would otherwise keep waking each other
//
// A quorum is plausibly free from the Q-th smallest of these. Before that a round could not be won and none is begun:
// a renewal by the holder is only another look at the key. At that instant every waiter knows as much as any other, so
// each adds a random part of a window. The window is twice what the last round took, since whoever is first must have
// been heard of by the rest before the next one tries; it doubles with each round in a row that collided, that is, was
// lost although some master granted it, and so fits itself to any number of waiters.
//
// Nothing of this is relied on. Pushes may come late, or never, and looks may be refused: the local timer (net_at)
// tries again in any case. Looks are rationed, because a server whose tracking table is full drops a registration for
// each new one, and two waiters would wake each other for ever. Where a lock goes from hand to hand many times in a
// second, the looks of that second are soon used up. Then a push only brings the plain timer forward.
#pragma once
#include "base/masters.hpp"
#include "base/time.hpp"
#include "base/types.hpp"
#include "lock/quorum.hpp"

namespace redlock {

// The time to live that a look found, as PTTL tells it: 0 or more in ms, or one of these.
constexpr int64_t ttl_none = -1;     // a key that does not expire
constexpr int64_t ttl_gone = -2;
constexpr int64_t ttl_unknown = -3;  // the look was answered by an error

// From when on so many masters may be free.
[[gnu::noinline]] constexpr Instant quorum_free_at(const Instant* free_at, unsigned masters, unsigned quorum) {
  Instant at = Instant::never();
  for (unsigned i = 0; i < masters; ++i) {
    unsigned as_early = 0;
    for (unsigned j = 0; j < masters; ++j) as_early += free_at[j] <= free_at[i] ? 1u : 0u;
    if (as_early >= quorum) at = earlier(at, free_at[i]);
  }
  return at;
}

// How long after that instant a waiter tries at the latest. Twice as long after each round in a row that was split with
// others, up to the plain pause. A waiter that keeps splitting rounds is usually fighting over the minority of masters
// that the current owner does not hold.
constexpr Duration race_window(Duration round_took, unsigned collisions, uint32_t retry_delay_ms) {
  const Duration least = Duration::us(100), most = Duration::ms(retry_delay_ms);
  const Duration took = round_took < least ? least : round_took;
  constexpr unsigned doublings_max = 20;
  const Duration wide = Duration::ns(took.ns() << (1 + (collisions < doublings_max ? collisions : doublings_max)));
  return wide < most ? wide : most;
}

class Forecast {
 public:
  // Looks at one master in a second, on average over all masters.
  static constexpr unsigned ration_per_master = 8;

  // free_at: one for each master.
  void use(Instant* free_at, unsigned masters) { free_at_ = free_at, masters_ = static_cast<uint8_t>(masters); }
  void reset();         // a new acquire
  void round_begins();  // what was known is about to change

  // The round was lost to others: `look` becomes the masters to read. votes: those that could take part in a round
  // now; tracked: those of them that tell of changes and did not fail; refused: that answered the last SET with "held
  // by another". poll_at: when the plain timer would try.
  void wait(Masters votes, Masters tracked, Masters refused, Instant poll_at);
  bool waits() const { return waits_; }

  void look_sent(MasterIndex m);
  void looked(MasterIndex m, int64_t ttl, Instant now, Instant poll_at);
  // The key has changed there, or may have: it is worth another look.
  // False: the looks of this second are used up, so it is as with a master that cannot be looked at.
  bool changed(MasterIndex m, Instant now);
  void left(MasterIndex m);  // its connection is gone, and with it what was asked
  // It votes again; poll_at as above.
  void back(MasterIndex m, bool tracked, Instant poll_at);

  Masters look() const { return look_; }
  // A look that is not to be: the master does not vote, or does not track.
  void look_away(MasterIndex m, Instant free_at);
  Instant quorum_at() const { return quorum_free_at(free_at_, masters_, quorum_of(masters_)); }

 private:
  void forget(MasterIndex m);

  Instant ration_until_;
  Instant* free_at_ = nullptr;
  uint16_t ration_ = 0;
  Masters look_;
  Masters plain_;   // left to the plain timer until the next round, whatever is heard of them
  Masters looked_;  // read behind this round's SET, and not changed since
  bool waits_ = false;
  uint8_t masters_ = 0;
  uint8_t unanswered_[REDLOCK_MASTERS_MAX] = {};
};

}  // namespace redlock
