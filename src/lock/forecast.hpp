// SPDX-License-Identifier: MIT
//
// Forecast: when is a quorum plausibly free? A forecast holds what one waiter knows of the masters. The instant of the
// waiter's next round follows from it.
//
// A waiter that lost to another holder sends a look to each master, behind its deletes: how long will the key live? The
// look also makes the server tell when the key changes (CLIENT TRACKING). So for every master there is an instant from
// which its key may be free:
//
//     what is known of the master                        the key may be free
//     the key is gone                                    now
//     the key lives for t                                now + t + 2 ms: Redis counts whole milliseconds, and a key
//                                                        expires after its last millisecond
//     no expiry; no answer yet; the master has no vote   never
//     the server does not track, or answers an error     when the plain timer would try again
//     the master was not sent the last SET, or failed    when the plain timer would try again, and pushes are ignored:
//                                                        a free key does not make this master vote, and waiters would
//                                                        keep waking each other
//
// A quorum is plausibly free from the Q-th smallest of these instants on. A round that begins before cannot be won, so
// none begins. When the holder renews, the waiter only looks again. At the forecast instant all waiters know the same,
// so each waiter adds a random part of a window. The window is twice as long as the last round took: the others must
// learn that the first waiter has won before the next one tries. A round that is lost although some master granted it
// has collided. Each collision in a row doubles the window, so the window grows with the number of waiters.
//
// Nothing relies on all this. A push may be late or lost, and a look may be refused; the local timer (net_at) tries
// again in any case. Looks have a ration for each second. A server whose tracking table is full drops one registration
// for each new one, so without a ration two waiters would wake each other for ever. Where a lock changes hands many
// times in a second, the ration of that second is soon used up. After that a push only brings the plain timer forward.
#pragma once
#include "base/masters.hpp"
#include "base/time.hpp"
#include "base/types.hpp"
#include "lock/quorum.hpp"

namespace redlock {

// The time to live that a look found, as PTTL answers: 0 or more in ms, or one of these.
constexpr int64_t ttl_none = -1;     // a key that does not expire
constexpr int64_t ttl_gone = -2;
constexpr int64_t ttl_unknown = -3;  // the look was answered by an error

// The instant from which `quorum` masters may be free.
[[gnu::noinline]] constexpr Instant quorum_free_at(const Instant* free_at, unsigned masters, unsigned quorum) {
  Instant at = Instant::never();
  for (unsigned i = 0; i < masters; ++i) {
    unsigned as_early = 0;
    for (unsigned j = 0; j < masters; ++j) as_early += free_at[j] <= free_at[i] ? 1u : 0u;
    if (as_early >= quorum) at = earlier(at, free_at[i]);
  }
  return at;
}

// How long after that instant a waiter tries at the latest. Each collision in a row doubles the window, up to the plain
// pause. A waiter that keeps colliding is usually fighting over the minority of masters that the current owner does not
// hold.
constexpr Duration race_window(Duration round_took, unsigned collisions, uint32_t retry_delay_ms) {
  const Duration least = Duration::us(100), most = Duration::ms(retry_delay_ms);
  const Duration took = round_took < least ? least : round_took;
  constexpr unsigned doublings_max = 20;
  const Duration wide = Duration::ns(took.ns() << (1 + (collisions < doublings_max ? collisions : doublings_max)));
  return wide < most ? wide : most;
}

class Forecast {
 public:
  // Looks in a second, for each master on average.
  static constexpr unsigned ration_per_master = 8;

  // free_at: an array with one instant for each master.
  void use(Instant* free_at, unsigned masters) { free_at_ = free_at, masters_ = static_cast<uint8_t>(masters); }
  void reset();         // a new acquire
  void round_begins();  // the round will change the keys, so the forecast forgets what it knew

  // The round was lost to others. look() names the masters to be read now. votes: masters that could take part in a
  // round now. tracked: masters that tell of changes and did not fail. refused: masters that answered the last SET with
  // "held by another". poll_at: when the plain timer would try again.
  void wait(Masters votes, Masters tracked, Masters refused, Instant poll_at);
  bool waits() const { return waits_; }

  void look_sent(MasterIndex m);
  void looked(MasterIndex m, int64_t ttl, Instant now, Instant poll_at);
  // The key has changed on this master, or may have, so another look is worthwhile. False: the ration of this second is
  // used up, and the caller treats the master like one that cannot be looked at.
  bool changed(MasterIndex m, Instant now);
  void left(MasterIndex m);  // the connection is gone, and the unanswered looks with it
  // The master votes again. poll_at: as above.
  void back(MasterIndex m, bool tracked, Instant poll_at);

  Masters look() const { return look_; }
  // This master cannot be looked at: no vote, no tracking, or no ration. The key counts as free from free_at on.
  void look_away(MasterIndex m, Instant free_at);
  Instant quorum_at() const { return quorum_free_at(free_at_, masters_, quorum_of(masters_)); }

 private:
  void forget(MasterIndex m);

  Instant ration_until_;
  Instant* free_at_ = nullptr;
  uint16_t ration_ = 0;
  Masters look_;
  Masters plain_;   // left to the plain timer until the next round; pushes of these masters do not count
  Masters looked_;  // masters that were read behind this round's SET, and whose key has not changed since
  bool waits_ = false;
  uint8_t masters_ = 0;
  uint8_t unanswered_[REDLOCK_MASTERS_MAX] = {};
};

}  // namespace redlock
