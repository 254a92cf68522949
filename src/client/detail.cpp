// SPDX-License-Identifier: MIT
//
// What a person needs to know about an event of a lock, beside its numbers, at the instant of the delivery.
#include "client/client.hpp"
#include "lock/validity.hpp"

namespace redlock {

Client::Detail Client::detail(const Event& given) const {
  const Lock& lock = table_[given.slot];
  const redlock_event_t& event = given.event;
  Detail out = {settings_.masters, nullptr, REDLOCK_GUARD_UNKNOWN};
  if (event.master_err != 0) out.master = lock.round.first_failed;
  if (event.cause == REDLOCK_CAUSE_GUARD || event.err == REDLOCK_E_GUARD) out.to_go_ms = event.guard_ms;
  if (event.cause != REDLOCK_CAUSE_HELD && event.err != REDLOCK_E_LOCKED) return out;
  if (holder_.lock == event.lock.id) out.holder = &holder_;
  // What is farther away than the longest pause of the plain timer was told by masters.
  const Instant until = lock.forecast.waits() ? lock.forecast.quorum_at() : now_;
  const Duration away = left(until, now_);
  const bool told = until != Instant::never() && away > Duration::ms(lock.options.retry_delay_ms);
  if (told) out.to_go_ms = remaining_ms(until, now_);
  return out;
}

}  // namespace redlock
