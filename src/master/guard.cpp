// SPDX-License-Identifier: MIT
#include "master/guard.hpp"

#include "resp/writer.hpp"

namespace redlock {
namespace {

constexpr Duration half(Duration d) { return Duration::ns(d.ns() / 2); }

// FNV-1a, and then so that a sum over several names depends on every bit of each.
uint64_t hash_of(Bytes text) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (size_t i = 0; i < text.size; ++i) hash = (hash ^ static_cast<unsigned char>(text.data[i])) * 0x100000001B3u;
  return (hash ^ (hash >> 29)) * 0xBF58476D1CE4E5B9u;
}

void write_digits(resp::Writer& out, uint64_t value, unsigned base, unsigned width) {
  char digits[20];
  unsigned n = 0;
  for (; n < width || value != 0; value /= base) digits[sizeof digits - ++n] = "0123456789abcdef"[value % base];
  out.raw(Bytes(digits + sizeof digits - n, n));
}

}  // namespace

Bytes write_meta_key(const Settings& settings, char (&text)[meta_key_max]) {
  resp::Writer out(text, sizeof text);
  return out.raw("redlock:").raw(settings.key_prefix).raw(":meta").written();
}

Bytes write_fingerprint(const Settings& settings, unsigned quorum, char (&text)[fingerprint_max]) {
  resp::Writer out(text, sizeof text);
  uint64_t ids = 0;
  for (MasterIndex m = 0; m < settings.masters; ++m) ids += hash_of(settings.master[m].name);
  write_digits(out.raw("v1 n="), settings.masters, 10, 1);
  write_digits(out.raw(" q="), quorum, 10, 1);
  write_digits(out.raw(" max_ttl_ms="), settings.max_ttl_ms, 10, 1);
  write_digits(out.raw(" ids="), ids, 16, 16);
  return out.written();
}

// ---- the connection -------------------------------------------------------------------------------------------

void Guard::connected() {
  if (!on()) return;
  memset(seal_, '0', seal_size);
  seal_[id_size] = seal_[2 * id_size + 1] = ':';
  identified_ = has_q_ = sealed_ = fresh_ = reading_ = false;
  fault_ = write_error_ = 0;
  read_at_ = lapses_at_ = Instant::never();
  reason_ = REDLOCK_E_UNREAD;
}

void Guard::identify(const InfoFacts& facts, Instant now) {
  const bool weak = settings_.guard == GuardMode::weak;
  fault_ = static_cast<int16_t>(facts.replica                                        ? REDLOCK_E_ROLE
                                : !facts.standalone                                  ? REDLOCK_E_MODE
                                : facts.loading                                      ? REDLOCK_E_LOADING
                                : facts.evicts                                       ? REDLOCK_E_MAXMEMORY
                                : !weak && !(facts.has_run_id && facts.has_replid) ? REDLOCK_E_IDENTITY
                                                                                     : 0);
  const bool other = (facts.has_run_id && memcmp(seal_, facts.run_id, id_size) != 0) ||
                     (facts.has_replid && memcmp(seal_ + id_size + 1, facts.replid, id_size) != 0);
  if (facts.has_run_id) memcpy(seal_, facts.run_id, id_size);
  if (facts.has_replid) memcpy(seal_ + id_size + 1, facts.replid, id_size);
  if (other && fresh_) withdraw(REDLOCK_E_UNREAD, now);
  const bool evicted = identified_ && facts.evicted_keys > evicted_keys_;
  evicted_keys_ = facts.evicted_keys;
  identified_ = facts.has_run_id;
  if (evicted) distrust(now + guard_time(settings_.max_ttl_ms, settings_.drift_ppm, settings_.drift_fixed_ms));
  judge(now);
}

void Guard::unidentified(int error) {
  if (settings_.guard == GuardMode::strict) fault_ = static_cast<int16_t>(error);
}

// ---- readings -------------------------------------------------------------------------------------------------

// Of two that are under way the answer that comes first is that of the older one.
void Guard::begin_reading(Instant sent) {
  if (!reading_) sent_ = sent;
  reading_ = true;
  read_at_ = Instant::never();
}

void Guard::read(unsigned field, bool absent, Bytes text) {
  if (field == 0) {
    desc_ = absent ? Found::absent : text == settings_.fingerprint ? Found::ours : Found::foreign;
  } else if (field == 1) {
    has_q_ = !absent && text.size == id_size;
    if (has_q_) memcpy(seal_ + 2 * (id_size + 1), text.data, id_size);
  } else {
    sealed_ = matches(absent, text);
  }
}

Guard::Next Guard::end_reading(Instant now) {
  const Duration lifetime = reading_lifetime(settings_.max_ttl_ms);
  reading_ = false;
  lapses_at_ = sent_ + lifetime;
  fresh_ = now < lapses_at_;  // a late answer is no longer true
  if (has_q_ && memcmp(watched_, seal_, seal_size) != 0) {
    memcpy(watched_, seal_, seal_size);
    since_ = now;
  }
  judge(now);
  read_at_ = fresh_ ? earlier(sent_ + half(lifetime), later(watched_at(), now)) : now;
  if (write_error_ != 0) {  // not at once again
    read_at_ = now + half(lifetime);
    write_error_ = 0;
    return Next::nothing;
  }
  if (fault_ != 0 || duplicate_ || !fresh_ || desc_ == Found::foreign) return Next::nothing;
  if (!has_q_ || desc_ == Found::absent) return Next::create;
  if (sealed_) {
    commission_until_ = now;  // it was for the state found then, and for no later one
    return Next::nothing;
  }
  return now < commission_until_ || now >= watched_at() ? Next::seal : Next::nothing;
}

void Guard::reading_failed(int error) {
  reading_ = fresh_ = false;
  read_at_ = sent_ + half(reading_lifetime(settings_.max_ttl_ms));
  write_error_ = 0;
  reason_ = static_cast<int16_t>(error);
}

// ---- the verdict ----------------------------------------------------------------------------------------------

void Guard::judge(Instant now) {
  if (!on()) return;
  const int reason = fault_ != 0                 ? int{fault_}
                     : duplicate_                ? REDLOCK_E_DUPLICATE
                     : now < distrust_until_     ? REDLOCK_E_WALL_CLOCK
                     : !fresh_                   ? REDLOCK_E_UNREAD
                     : desc_ == Found::foreign   ? REDLOCK_E_FINGERPRINT
                     : write_error_ != 0         ? int{write_error_}
                     : !(sealed_ && desc_ == Found::ours && has_q_) ? REDLOCK_E_UNWATCHED
                                                 : 0;
  reason_ = static_cast<int16_t>(reason);
}

Instant Guard::watched_at() const {
  if (reason_ == REDLOCK_E_WALL_CLOCK) return distrust_until_;
  if (reason_ != REDLOCK_E_UNWATCHED || !has_q_) return Instant::never();
  return since_ + guard_time(settings_.max_ttl_ms, settings_.drift_ppm, settings_.drift_fixed_ms);
}

void Guard::withdraw(int reason, Instant now) {
  if (!on()) return;
  fresh_ = sealed_ = false;
  reason_ = static_cast<int16_t>(reason);
  read_at_ = now;
}

void Guard::distrust(Instant until) {
  if (!on()) return;
  distrust_until_ = later(distrust_until_, until);
  reason_ = REDLOCK_E_WALL_CLOCK;
}

void Guard::set_duplicate(bool duplicate, Instant now) {
  if (duplicate == duplicate_) return;
  duplicate_ = duplicate;
  judge(now);
}

// Instants of before the jump say nothing any more: watches begin again, and readings are made anew.
void Guard::clock_jumped(Instant now) {
  if (since_ != Instant::never()) since_ = now;
  if (fresh_) withdraw(REDLOCK_E_UNREAD, now);
}

void Guard::on_time(Instant now) {
  if (!on()) return;
  if (fresh_ && now >= lapses_at_) {
    fresh_ = false;
    judge(now);
  }
  if (reason_ == REDLOCK_E_WALL_CLOCK && now >= distrust_until_) judge(now);
}

Instant Guard::deadline() const {
  if (!on()) return Instant::never();
  const Instant lapse = fresh_ ? lapses_at_ : Instant::never();
  const Instant trust = reason_ == REDLOCK_E_WALL_CLOCK ? distrust_until_ : Instant::never();
  return earlier(earlier(lapse, trust), reading_ ? Instant::never() : read_at_);
}

}  // namespace redlock
