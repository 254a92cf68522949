// SPDX-License-Identifier: MIT
//
// The session's part of the guard: what the client tells the guard of a master, and which changes of the guard's reason
// the client hears of. The guard itself is master/guard; master/record sends what the guard asks and writes.
#include "master/session.hpp"

namespace redlock {

void Session::withdraw(const Instant& now) {
  record_.guard().withdraw(now);
  guard_changed();
}

void Session::guard_changed() {
  if (guard_told_ == guard().reason()) return;
  out_.tell();
  if (state_ == State::up) note_change();
}

News Session::take_news() {
  News out = out_.take_news();
  const Guard& g = guard();
  out.withdrawn = (guard_told_ == 0 && !g.admitted()) || (guard_told_ != g.reason() && g.forgot());
  out.wants_boot_time = g.wants_boot_time();
  guard_told_ = static_cast<int16_t>(g.reason());
  return out;
}

Sealed Session::sealed() const { return {settings_.meta_key, guard().on() ? guard().seal() : Bytes()}; }

// A server that tells its mode in the greeting is connected to again and again. The reason stands until an attempt ends
// with another one.
Guard::Outlook Session::outlook() const {
  if (guarded()) return guard().outlook();
  return reason_ == REDLOCK_E_MODE ? Guard::Outlook::never : Guard::Outlook::open;
}

void Session::set_duplicate(bool duplicate) {
  record_.guard().set_duplicate(duplicate);
  guard_changed();
}

bool Session::look_ahead(const Instant& now) { return votes() && record_.look_ahead(now); }

void Session::begin_state(bool allowed, const Instant& now) {
  if (wish_ == Wish::close || !record_.wants_state()) return;
  if (allowed) record_.begin_state(now);
  if (state_ != State::greeting || !out_.fifo.empty()) return;
  REDLOCK_ASSERT(greeting_.is_done());
  set_state(State::up);
  greeting_.came_up();
}

void Session::quarantine(const Instant& now) {
  if (state_ == State::up) record_.quarantine(now);
  check();
}

void Session::commission(Instant until, const Instant& now) {
  record_.guard().commission(until);
  if (state_ == State::up) read_now(now);
}

void Session::clock_jumped(const Instant& now) {
  record_.clock().forget();
  record_.guard().clock_jumped(now);
  guard_changed();
}

}  // namespace redlock
