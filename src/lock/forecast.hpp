// SPDX-License-Identifier: MIT
//
// Forecast: when is a quorum plausibly free? A forecast holds what one waiter knows of the masters. The instant of the
// waiter's next round follows from it.
//
// A waiter looks at some masters: how long will the key live? The look also makes the server tell when the key changes
// (CLIENT TRACKING). A quorum cannot be free while N - Q + 1 masters that could vote are not, so nobody looks at more.
// For every master there is an instant from which its key may be free:
//
//     what is known of the master                        the key may be free
//     the key is gone, or has changed since the look     now
//     the key lives for t                                now + t + 2 ms: Redis counts whole milliseconds, and a key
//                                                        expires after its last millisecond
//     no expiry; no answer yet; the master has no vote   never
//     nobody looks at it                                 always, for Q - 1 of these masters; never, for the others. So
//                                                        the masters that are looked at decide
//     the server does not track, or answers an error     when the plain timer would try again
//     the master was not sent the last SET, or failed    when the plain timer would try again, and pushes are ignored:
//                                                        a free key does not make this master vote, and waiters would
//                                                        keep waking each other
//
// A quorum is plausibly free from the Q-th smallest of these instants on. A round that begins before cannot be won, so
// none begins. What the waiter does then stands in lock/machine_waiting.
//
// Nothing relies on all this. A push may be late or lost, and a look may be refused; the local timer (net_at) tries
// again in any case.
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
Instant quorum_free_at(const Instant* free_at, unsigned masters, unsigned quorum);

// Twice what a round takes, times `wide`, up to the plain pause. After one such time others know that a waiter has won.
constexpr Duration race_window(Duration round_took, unsigned wide, unsigned part, uint32_t retry_delay_ms) {
  const Duration least = Duration::us(100), most = Duration::ms(retry_delay_ms);
  const Duration took = round_took < least ? least : round_took;
  const Duration window = took < most ? Duration::ns(quotient(took.ns() * 2 * wide, part)) : most;
  return window < most ? window : most;
}

class Forecast {
 public:
  // free_at: an array with one instant for each master.
  void use(Instant* free_at, unsigned masters) {
    free_at_ = free_at;
    masters_ = static_cast<uint8_t>(masters);
  }
  void reset();         // a new acquire
  void round_begins();  // the round will change the keys, so the forecast forgets what it knew

  // Others hold the lock, or may hold it. look() names the masters to be read now. votes: masters that could take part
  // in a round now. tracked: masters that tell of changes and did not fail. looked_at: those that are read. poll_at:
  // when the plain timer would try again.
  void wait(Masters votes, Masters tracked, Masters looked_at, Instant poll_at);
  void look_more(Masters more);
  bool waits() const { return waits_; }

  void look_sent(MasterIndex m);
  void looked(MasterIndex m, int64_t ttl, const Instant& now, Instant poll_at);
  // The key has changed on this master, or may have. A key that was there may be gone; or look_again: look() names the
  // master again. So it does where a key was gone, which is somebody's now.
  void changed(MasterIndex m, bool look_again, const Instant& now);
  void disconnected(MasterIndex m);  // the connection is gone, and the unanswered looks with it
  // The master votes again. poll_at: as above.
  void back(MasterIndex m, bool tracked, Instant poll_at);

  Masters look() const { return look_; }
  bool looks() const { return !looked_at_.empty(); }
  bool looks_at(MasterIndex m) const { return looked_at_.has(m); }
  bool asks() const;  // is a look not answered yet?
  bool sees_key(const Instant& now) const;  // has a look found a key that has not expired yet?
  // This master cannot be looked at: no vote, or no tracking. The key counts as free from free_at on.
  void look_away(MasterIndex m, Instant free_at);
  Instant quorum_at() const { return quorum_free_at(free_at_, masters_, quorum_of(masters_)); }

 private:
  void forget(MasterIndex m);

  Instant* free_at_ = nullptr;
  Masters look_;
  Masters looked_at_;
  bool waits_ = false;
  uint8_t masters_ = 0;
  uint8_t unanswered_[REDLOCK_MASTERS_MAX] = {};
};

}  // namespace redlock
