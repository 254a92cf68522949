// SPDX-License-Identifier: MIT
#include "client/claims.hpp"

namespace redlock {
namespace {

constexpr Duration first_rest = Duration::ms(20);
constexpr unsigned rest_doublings_max = 6;  // up to 1.28 s

}  // namespace

void Claims::init(const Rules& rules, Claim* table, unsigned capacity, char* names) {
  REDLOCK_ASSERT(capacity > rules.locks);
  REDLOCK_ASSERT(capacity < no_claim);
  rules_ = rules;
  table_ = table;
  names_ = names;
  capacity_ = static_cast<uint16_t>(capacity);
  share_ = static_cast<uint16_t>(share_of(capacity - rules.locks, rules.masters - rules.quorum));
  for (Instant& at : back_at_) at = Instant::never();
  for (unsigned i = 0; i < capacity; ++i) {
    table_[i].used = false;
    table_[i].place.next = i + 1 < capacity ? static_cast<uint16_t>(i + 1) : no_claim;
  }
  free_ = 0;
}

unsigned Claims::share_of(unsigned debts, unsigned minority) {
  const unsigned shares = minority > 1 ? minority : 1;
  unsigned share = 1;  // the quotient, at least 1
  for (unsigned rest = debts; rest >= 2 * shares; rest -= shares) ++share;
  return share;
}

uint16_t Claims::make(uint16_t slot, const Names& names, uint32_t ttl_ms) {
  if (free_ == no_claim) return no_claim;
  const uint16_t index = free_;
  Claim& c = table_[index];
  free_ = c.place.next;
  REDLOCK_ASSERT(!c.used);
  REDLOCK_ASSERT(names.bytes() <= rules_.resource_bytes);
  c.names.assign(names_ + size_t{index} * rules_.resource_bytes, names);
  c.place = {};
  c.used = true;
  ++used_;
  c.ended = false;
  c.repeats = 0;
  c.slot = slot;
  c.ttl_ms = ttl_ms;
  static_cast<Sent&>(c) = {};
  c.over_at = c.repeat_at = Instant::never();
  return index;
}

void Claims::answered_late(uint16_t index, bool refused, const Instant& now) {
  Claim& c = table_[index];
  if (!refused) c.over_at = later(c.over_at, dead_by(c, now));  // the key may have been written just now
  // While the SET was unanswered on_time() did not write off the debt, and may have stopped planning the write-off.
  bring_forward(deadline_, c.over_at);
  settle(index);
}

void Claims::end(uint16_t index, Masters targets, const Instant& now) {
  Claim& c = table_[index];
  REDLOCK_ASSERT(c.used);
  REDLOCK_ASSERT(!c.ended);
  REDLOCK_ASSERT((targets - c.sent).empty());
  const Masters before = unsettled(c);
  c.ended = true;
  c.slot = no_slot;
  c.over_at = dead_by(c, now);
  bring_forward(deadline_, c.over_at);
  ++debts_;
  owe(c, targets);
  unreserve(c, c.sent - targets);
  recount(c, before);
  check(c);
  if (targets.empty()) settle(index);
}

void Claims::linger(uint16_t index, Instant at) {
  Claim& c = table_[index];
  REDLOCK_ASSERT(c.used);
  REDLOCK_ASSERT(!c.ended);
  c.slot = no_slot;
  c.over_at = at;
  bring_forward(deadline_, at);
}

void Claims::end_lingering(const Instant& now) {
  for (uint16_t i = 0; i < capacity_; ++i) {
    const Claim& c = table_[i];
    if (c.used && !c.ended) end(i, c.sent, now);
  }
}

// While a SET is a stray, no answer to a delete is final. Even a delete that found a key may have found another one: if
// the configuration names a server twice, the other connection may have put the key back. Once strays are not waited
// for any more, the next delete is the last.
void Claims::delete_counted(Claim& c, MasterIndex m, Deleted how, const Instant& now) {
  if (how == Deleted::error || now < strays_until(c, m)) return rest(c, m, now);
  owe(c, Masters::of(m));
  drop_stray(c, m, now);
}

void Claims::delete_unknown(uint16_t index, MasterIndex m) {
  Claim& c = table_[index];
  REDLOCK_ASSERT(c.used);
  REDLOCK_ASSERT(c.ended);
  REDLOCK_ASSERT(c.deleting.has(m));
  owe_again(c, m);
}

bool Claims::broke(MasterIndex m) {
  bool strays = false;
  for (uint16_t i = 0; i < capacity_; ++i) {
    Claim& c = table_[i];
    if (!c.used) continue;
    unreserve(c, Masters::of(m));
    if (c.pending.has(m)) {
      c.pending.remove(m);
      c.stray.add(m);
    }
    strays = strays || c.stray.has(m);
    if (c.deleting.has(m)) owe_again(c, m);
  }
  return strays;
}

uint16_t Claims::next_owed(MasterIndex m, uint16_t from) const {
  for (uint16_t i = from; i < capacity_; ++i) {
    if (table_[i].used && table_[i].owed.has(m)) return i;
  }
  return no_claim;
}

// Connections before the last one may have left strays at large. The greeting did not end those, so they keep their
// time.
void Claims::strays_ended(MasterIndex m, const Instant& now) {
  for (uint16_t i = 0; i < capacity_; ++i) {
    Claim& c = table_[i];
    const bool older = back_at_[m] != Instant::never() && now < strays_until(c, m);
    if (!c.used || !c.stray.has(m) || older) continue;
    drop_stray(c, m, now);
    if (c.ended) settle(i);
  }
}

// The stray SET may have been executed just now, so the key may live for a whole lifetime.
void Claims::drop_stray(Claim& c, MasterIndex m, const Instant& now) {
  const Masters before = unsettled(c);
  c.stray.remove(m);
  recount(c, before);
  if (!c.ended) return;
  c.over_at = later(c.over_at, dead_by(c, now));
  bring_forward(deadline_, c.over_at);
}

Instant Claims::on_time(const Instant& now) {
  if (now < deadline_) return deadline_;
  deadline_ = Instant::never();
  for (uint16_t i = 0; i < capacity_; ++i) {
    Claim& c = table_[i];
    if (!c.used) continue;
    if (!c.ended && now >= c.over_at) end(i, c.sent, now);
    if (c.ended) {
      const Masters before = unsettled(c);
      if (now >= c.over_at) forget(c, c.sent - (c.stray | c.pending | c.deleting));
      if (!c.resting.empty() && now >= c.repeat_at) {
        owe(c, c.resting);
        c.resting = {};
        c.repeat_at = Instant::never();
      }
      recount(c, before);
      settle(i);
    }
    if (!c.used) continue;
    if (now < c.over_at) bring_forward(deadline_, c.over_at);
    if (!c.resting.empty()) bring_forward(deadline_, c.repeat_at);
  }
  return deadline_;
}

unsigned Claims::debts_of(MasterIndex m) const {
  unsigned n = 0;
  for (uint16_t i = 0; i < capacity_; ++i) {
    const Claim& c = table_[i];
    if (c.used && c.ended && (c.owed | c.deleting | c.resting).has(m)) ++n;
  }
  return n;
}

Duration Claims::lifetime(uint32_t ttl_ms) const {
  return Duration::ms(ttl_ms) + Duration::ns(int64_t{ttl_ms} * rules_.drift_ppm) + Duration::ms(rules_.drift_fixed_ms);
}

void Claims::owe(Claim& c, Masters masters) {
  REDLOCK_ASSERT((c.owed & masters).empty());
  c.owed |= masters;
  owed_in_all_ += masters.count();
  for (MasterIndex m : masters) ++owed_[m];
}

// While the delete was unanswered on_time() did not write off the claim's debt. The write-off may be due now.
void Claims::owe_again(Claim& c, MasterIndex m) {
  c.deleting.remove(m);
  owe(c, Masters::of(m));
  bring_forward(deadline_, c.over_at);
}

void Claims::recount(const Claim& c, Masters before) {
  const Masters after = unsettled(c);
  for (MasterIndex m : after - before) ++unsettled_[m];
  for (MasterIndex m : before - after) --unsettled_[m];
}

// Writes off the deletes for these masters: the value is gone there, or only expiry can remove it.
void Claims::forget(Claim& c, Masters masters) {
  if (((c.owed | c.resting) & masters).empty()) return;
  owed_in_all_ -= (c.owed & masters).count();
  for (MasterIndex m : c.owed & masters) --owed_[m];
  unreserve(c, c.owed & masters);  // an ended claim keeps a place only for a delete that is owed
  c.owed -= masters;
  c.resting -= masters;
}

void Claims::rest(Claim& c, MasterIndex m, const Instant& now) {
  if (c.resting.empty()) {
    c.repeat_at = now + Duration::ns(first_rest.ns() << c.repeats);
    if (c.repeats < rest_doublings_max) ++c.repeats;
  }
  if (c.stray.has(m)) bring_forward(c.repeat_at, later(strays_until(c, m), now + first_rest));
  c.resting.add(m);
  bring_forward(deadline_, earlier(c.repeat_at, c.over_at));
}

void Claims::settle(uint16_t index) {
  Claim& c = table_[index];
  REDLOCK_ASSERT(c.ended);
  if (!c.used || c.place.queued || !unsettled(c).empty()) return;
  c.used = false;
  --used_;
  c.place.next = free_;
  free_ = index;
  --debts_;
}

#if defined(REDLOCK_ASSERTS)
void Claims::check() const {
  unsigned used = 0, debts = 0, owed_in_all = 0;
  unsigned reserved[REDLOCK_MASTERS_MAX] = {}, about[REDLOCK_MASTERS_MAX] = {}, owed[REDLOCK_MASTERS_MAX] = {};
  for (unsigned i = 0; i < capacity_; ++i) {
    const Claim& c = table_[i];
    if (!c.used) continue;
    check(c);
    ++used;
    debts += c.ended ? 1u : 0u;
    owed_in_all += c.owed.count();
    for (MasterIndex m : c.reserved) ++reserved[m];
    for (MasterIndex m : unsettled(c)) ++about[m];
    for (MasterIndex m : c.owed) ++owed[m];
  }
  REDLOCK_ASSERT(used == used_);
  REDLOCK_ASSERT(debts == debts_);
  REDLOCK_ASSERT(owed_in_all == owed_in_all_);
  REDLOCK_ASSERT((used == capacity_) == full());
  for (MasterIndex m = 0; m < rules_.masters; ++m) {
    REDLOCK_ASSERT(reserved[m] == reserved_[m]);
    REDLOCK_ASSERT(about[m] == unsettled_[m]);
    REDLOCK_ASSERT(owed[m] == owed_[m]);
  }
}
#endif

}  // namespace redlock
