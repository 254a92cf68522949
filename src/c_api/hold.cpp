// SPDX-License-Identifier: MIT
//
// What any thread may ask about a lock. Nothing here takes a mutex or waits.
#include "lock/validity.hpp"
#include "run/instance.hpp"

using redlock::Duration;
using redlock::Instant;
using redlock::ValidityCell;

namespace {

// Compares the validity of a handle with the clock, which this thread reads itself. 0: at least need_ms are left.
int read_validity(const redlock_t* rl, redlock_lock_t lock, uint32_t need_ms, Instant& now, Instant& until) {
  if (rl == nullptr) return REDLOCK_E_INVAL;
  if (redlock::forked(rl)) return REDLOCK_E_FORKED;
  const ValidityCell* cell = rl->client.cell(lock.id);
  if (cell == nullptr) return REDLOCK_E_STALE;
  const bool agrees = rl->driver.clock().check(now);
  const redlock::Verdict verdict =
      redlock::judge(*cell, redlock::Table::generation(lock.id), agrees, now, Duration::ms(need_ms));
  until = verdict.valid_until;
  switch (verdict.held) {
    case redlock::Held::held:
      return 0;
    case redlock::Held::too_little:
      return REDLOCK_E_TOO_SLOW;
    case redlock::Held::not_held:
      return REDLOCK_E_NOT_HELD;
    case redlock::Held::lost:
      return REDLOCK_E_LOST;
    case redlock::Held::stale:
      return REDLOCK_E_STALE;
  }
  return REDLOCK_E_STALE;
}

}  // namespace

extern "C" {

int redlock_check(const redlock_t* rl, redlock_lock_t lock, uint32_t need_ms) {
  Instant now, until;
  return read_validity(rl, lock, need_ms, now, until);
}

int64_t redlock_validity_ms(const redlock_t* rl, redlock_lock_t lock) {
  Instant now, until;
  const int err = read_validity(rl, lock, 0, now, until);
  if (err != 0) return err == REDLOCK_E_LOST ? 0 : err;
  return redlock::remaining_ms(until, now);
}

int64_t redlock_deadline_ns(const redlock_t* rl, redlock_lock_t lock) {
  Instant now, until;
  const int err = read_validity(rl, lock, 0, now, until);
  if (err != 0) return err == REDLOCK_E_LOST ? 0 : err;
  return rl->driver.clock().boottime_ns(until);
}

uint64_t redlock_fencing_token(const redlock_t* rl, redlock_lock_t lock) {
  if (rl == nullptr || redlock::forked(rl)) return 0;
  const ValidityCell* cell = rl->client.cell(lock.id);
  return cell != nullptr ? cell->token(redlock::Table::generation(lock.id)) : 0;
}

}  // extern "C"
