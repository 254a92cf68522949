// SPDX-License-Identifier: MIT
#include "lock/forecast.hpp"

namespace redlock {
namespace {

constexpr Duration server_rounding = Duration::ms(2);
constexpr int64_t ttl_believed_ms = int64_t{REDLOCK_MAX_TTL_MS_MAX} * 2;

}  // namespace

Instant quorum_free_at(const Instant* free_at, unsigned masters, unsigned quorum) {
  Instant at = Instant::never();
  for (unsigned i = 0; i < masters; ++i) {
    unsigned as_early = 0;
    for (unsigned j = 0; j < masters; ++j) as_early += free_at[j] <= free_at[i] ? 1u : 0u;
    if (as_early >= quorum) at = earlier(at, free_at[i]);
  }
  return at;
}

void Forecast::reset() {
  round_begins();
  memset(unanswered_, 0, sizeof unanswered_);
}

void Forecast::round_begins() {
  waits_ = false;
  look_ = looked_at_ = {};
}

void Forecast::wait(Masters votes, Masters tracked, Masters looked_at, Instant poll_at) {
  REDLOCK_ASSERT(((votes | tracked) - Masters::all(masters_)).empty());
  REDLOCK_ASSERT((looked_at - tracked).empty());
  waits_ = true;
  look_ = looked_at_ = looked_at;
  const Masters plain = votes - tracked;
  unsigned taken_as_free = quorum_of(masters_) - 1;
  for (MasterIndex m = 0; m < masters_; ++m) {
    free_at_[m] = plain.has(m) ? poll_at : Instant::never();
    if (taken_as_free == 0 || !((votes & tracked) - looked_at).has(m)) continue;
    free_at_[m] = Instant();
    --taken_as_free;
  }
}

void Forecast::look_more(Masters more) {
  looked_at_ |= more;
  look_ |= more;
  for (MasterIndex m : more) free_at_[m] = Instant::never();
}

void Forecast::look_sent(MasterIndex m) {
  if (unanswered_[m] < UINT8_MAX) ++unanswered_[m];
  look_.remove(m);
}

// An answer may come when another round has been lost, and another master is looked at.
void Forecast::looked(MasterIndex m, int64_t ttl, const Instant& now, Instant poll_at) {
  if (unanswered_[m] == 0 || --unanswered_[m] != 0 || !looked_at_.has(m)) return;
  if (ttl == ttl_gone) {
    free_at_[m] = now;
  } else if (ttl >= 0) {
    free_at_[m] = now + Duration::ms(ttl < ttl_believed_ms ? ttl : ttl_believed_ms) + server_rounding;
  } else {
    free_at_[m] = ttl == ttl_none ? Instant::never() : poll_at;
  }
}

// While a look is in flight the push adds nothing: the answer to the look will be newer than the push.
void Forecast::changed(MasterIndex m, bool look_again, const Instant& now) {
  if (unanswered_[m] != 0 || !(looked_at_ - look_).has(m)) return;
  if (free_at_[m] > now && !look_again) {
    free_at_[m] = now;
  } else {
    free_at_[m] = Instant::never();
    look_.add(m);
  }
}

bool Forecast::asks() const {
  for (MasterIndex m : looked_at_) {
    if (look_.has(m) || unanswered_[m] != 0) return true;
  }
  return false;
}

bool Forecast::sees_key(const Instant& now) const {
  for (MasterIndex m : looked_at_) {
    if (!look_.has(m) && unanswered_[m] == 0 && free_at_[m] > now) return true;
  }
  return false;
}

void Forecast::disconnected(MasterIndex m) {
  forget(m);
  unanswered_[m] = 0;
}

void Forecast::back(MasterIndex m, bool tracked, Instant poll_at) {
  if (!waits_) return;
  if (tracked) {
    look_more(Masters::of(m));
  } else {
    free_at_[m] = poll_at;
  }
}

void Forecast::look_away(MasterIndex m, Instant free_at) {
  forget(m);
  free_at_[m] = free_at;
}

void Forecast::forget(MasterIndex m) {
  looked_at_.remove(m);
  look_.remove(m);
  free_at_[m] = Instant::never();
}

}  // namespace redlock
