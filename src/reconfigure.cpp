// SPDX-License-Identifier: MIT
#include "reconfigure.hpp"

#include "lock/quorum.hpp"

namespace redlock {
namespace {

using Side = Reconfiguration::Side;
using Stage = Reconfiguration::Stage;
using Answer = Reconfiguration::Answer;

constexpr Duration longer(Duration a, Duration b) { return a < b ? b : a; }

unsigned count(const Side& side, Answer answer) {
  unsigned n = 0;
  for (MasterIndex m = 0; m < side.client.settings().masters; ++m) n += side.answer[m] == answer ? 1u : 0u;
  return n;
}

bool enough(const Side& side) { return count(side, Answer::yes) >= side.needed; }

// Has every master that could be reached answered?
bool settled(const Side& side) {
  for (MasterIndex m = 0; m < side.client.settings().masters; ++m) {
    const Session& session = side.client.session(m);
    if (side.answer[m] == Answer::none && (session.connected() || !session.tried())) return false;
  }
  return true;
}

bool complete(const Side& side) { return count(side, Answer::none) == 0; }

Bytes word(Stage step) {
  return step == Stage::look ? Bytes("look") : step == Stage::leave ? Bytes("leave") : Bytes("enter");
}

Answer answer_of(Session::Moved moved) {
  switch (moved) {
    case Session::Moved::yes: return Answer::yes;
    case Session::Moved::foreign: return Answer::foreign;
    case Session::Moved::failed: return Answer::failed;
    default: return Answer::none;
  }
}

Duration patience_of(const Settings& s) { return s.suspect_close + s.connect_timeout + s.connect_timeout; }

}  // namespace

Duration Reconfiguration::wait_between(const Settings& old_set, const Settings& new_set) {
  const uint32_t ppm = old_set.drift_ppm > new_set.drift_ppm ? old_set.drift_ppm : new_set.drift_ppm;
  const uint32_t fixed =
      old_set.drift_fixed_ms > new_set.drift_fixed_ms ? old_set.drift_fixed_ms : new_set.drift_fixed_ms;
  const Duration lapse = reading_lifetime(old_set.max_ttl_ms);
  const uint32_t longer_ms = old_set.max_ttl_ms > new_set.max_ttl_ms ? old_set.max_ttl_ms - new_set.max_ttl_ms : 0;
  return lapse + Duration::ns(lapse.ns() / 1'000'000 * ppm) + guard_time(longer_ms, ppm, fixed);
}

Reconfiguration::Reconfiguration(Client& old_set, Client& new_set, uint64_t seed, Instant now)
    : old_(old_set, old_set.settings().masters - quorum_of(old_set.settings().masters) + 1),
      new_(new_set, quorum_of(new_set.settings().masters)),
      patience_(longer(patience_of(old_set.settings()), patience_of(new_set.settings()))),
      between_(wait_between(old_set.settings(), new_set.settings())),
      until_(now + patience_) {
  ids_.seed(seed);
  begin(old_, Stage::look);
  begin(new_, Stage::look);
}

void Reconfiguration::begin(Side& side, Stage step) {
  side.step = step;
  for (MasterIndex m = 0; m < side.client.settings().masters; ++m) {
    side.asked[m] = Stage::over;
    side.answer[m] = Answer::none;
  }
}

void Reconfiguration::finish(int result) {
  stage_ = Stage::over;
  result_ = result;
}

// Hear what was answered to this step; ask those who have not been asked, whose connection broke before the answer, or
// whose record was not what it was taken for.
void Reconfiguration::ask(Side& side, Instant now) {
  for (MasterIndex m = 0; m < side.client.settings().masters; ++m) {
    if (side.answer[m] != Answer::none) continue;
    const Session::Moved moved = side.client.session(m).moved();
    if (moved == Session::Moved::asked) continue;
    if (side.asked[m] == side.step) side.answer[m] = answer_of(moved);
    if (side.answer[m] != Answer::none) continue;
    char ids[2 * Guard::id_size];
    for (unsigned i = 0; i < Guard::id_size; ++i) ids[i] = "0123456789abcdef"[ids_.next() & 0xF];
    const Bytes found = side.client.session(m).guard().quarantine();
    memcpy(ids + Guard::id_size, found.data, found.size);
    const Bytes from = old_.client.settings().fingerprint;
    const Bytes to = new_.client.settings().fingerprint;
    const Bytes quarantine(ids, Guard::id_size + found.size);
    if (side.client.move(m, from, to, quarantine, word(side.step), now)) side.asked[m] = side.step;
  }
}

void Reconfiguration::step(Instant now) {
  if (stage_ == Stage::over) return;
  ask(old_, now);
  if (stage_ == Stage::look || stage_ == Stage::enter) ask(new_, now);
  switch (stage_) {
    case Stage::look:
      return after_look(now);
    case Stage::leave:
      return after_leave(now);
    case Stage::wait:
      if (now < until_) return;
      stage_ = Stage::enter;
      until_ = now + patience_;
      begin(new_, Stage::enter);
      return ask(new_, now);
    case Stage::enter:
      return after_enter(now);
    case Stage::over:
      return;
  }
}

// Nothing is written unless it can be brought to its end.
void Reconfiguration::after_look(Instant now) {
  if (count(old_, Answer::foreign) + count(new_, Answer::foreign) != 0) return finish(REDLOCK_E_FINGERPRINT);
  const bool all = settled(old_) && settled(new_);
  if (now < until_ && !(all && enough(old_) && enough(new_))) return;
  if (!enough(old_) || !enough(new_)) return finish(REDLOCK_E_NO_QUORUM);
  stage_ = Stage::leave;
  until_ = now + patience_;
  begin(old_, Stage::leave);
  ask(old_, now);
}

void Reconfiguration::after_leave(Instant now) {
  if (enough(old_)) {
    stage_ = Stage::wait;
    until_ = now + between_;
  } else if (now >= until_ || complete(old_)) {
    finish(REDLOCK_E_NO_QUORUM);
  }
}

void Reconfiguration::after_enter(Instant now) {
  if (!complete(new_) && now < until_) return;
  const unsigned written = count(new_, Answer::yes);
  finish(enough(new_) ? static_cast<int>(new_.client.settings().masters - written) : int{REDLOCK_E_NO_QUORUM});
}

void Reconfiguration::clock_jumped(Instant now) {
  if (stage_ == Stage::wait) until_ = now + between_;
}

}  // namespace redlock
