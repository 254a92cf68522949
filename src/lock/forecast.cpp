// SPDX-License-Identifier: MIT
#include "lock/forecast.hpp"

namespace redlock {
namespace {

constexpr Duration ration_of = Duration::ms(1000);
constexpr Duration server_rounding = Duration::ms(2);
constexpr int64_t ttl_believed_ms = int64_t{REDLOCK_MAX_TTL_MS_MAX} * 2;

}  // namespace

void Forecast::reset() {
  look_ = looked_ = plain_ = {};
  waits_ = false;
  ration_ = 0;
  ration_until_ = Instant();
  memset(unanswered_, 0, sizeof unanswered_);
}

void Forecast::round_begins() {
  waits_ = false;
  look_ = looked_ = plain_ = {};
}

void Forecast::wait(Masters votes, Masters tracked, Masters refused, Instant poll_at) {
  REDLOCK_ASSERT(((votes | tracked | refused) - Masters::all(masters_)).empty());
  waits_ = true;
  const Masters known = looked_ & refused;
  for (MasterIndex m = 0; m < masters_; ++m) {
    if ((known & tracked).has(m)) continue;
    free_at_[m] = (votes - tracked).has(m) ? poll_at : Instant::never();
  }
  look_ = (votes & tracked) - known;
  plain_ = votes - tracked;
}

void Forecast::look_sent(MasterIndex m) {
  if (unanswered_[m] < UINT8_MAX) ++unanswered_[m];
  free_at_[m] = Instant::never();
  look_.remove(m);
  if (!waits_) looked_.add(m);
}

void Forecast::looked(MasterIndex m, int64_t ttl, Instant now, Instant poll_at) {
  if (unanswered_[m] == 0 || --unanswered_[m] != 0 || plain_.has(m)) return;
  if (ttl == ttl_gone) {
    free_at_[m] = now;
  } else if (ttl >= 0) {
    free_at_[m] = now + Duration::ms(ttl < ttl_believed_ms ? ttl : ttl_believed_ms) + server_rounding;
  } else {
    free_at_[m] = ttl == ttl_none ? Instant::never() : poll_at;
  }
}

// While a look is in flight the push adds nothing: the answer to the look will be newer than the push.
bool Forecast::changed(MasterIndex m, Instant now) {
  if (unanswered_[m] != 0) return true;
  looked_.remove(m);
  if (!waits_ || (look_ | plain_).has(m)) return true;
  if (now >= ration_until_) {
    ration_until_ = now + ration_of;
    ration_ = static_cast<uint16_t>(ration_per_master * masters_);
  }
  if (ration_ == 0) return false;
  --ration_;
  free_at_[m] = Instant::never();
  look_.add(m);
  return true;
}

void Forecast::left(MasterIndex m) {
  forget(m);
  unanswered_[m] = 0;
}

void Forecast::back(MasterIndex m, bool tracked, Instant poll_at) {
  if (!waits_) return;
  if (tracked) {
    look_.add(m);
  } else {
    plain_.add(m);
    free_at_[m] = poll_at;
  }
}

void Forecast::look_away(MasterIndex m, Instant free_at) {
  forget(m);
  free_at_[m] = free_at;
}

void Forecast::forget(MasterIndex m) {
  looked_.remove(m);
  look_.remove(m);
  plain_.remove(m);
  free_at_[m] = Instant::never();
}

}  // namespace redlock
