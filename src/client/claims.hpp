// SPDX-License-Identifier: MIT
//
// Claims: which values may lie on which masters, and the deletes that are owed for them.
//
// A claim is one value under the names of one lock. It is made when a round starts, before its first SET is handed to
// any session, and outlives the lock. A claim is freed once no master can still hold the value, or once only expiry can
// remove it. An ended claim with an unanswered delete is a *debt*. Requests in flight name their claim by
// its index, so the reply of one round can never be taken for that of another: the value is fresh, and so is the
// claim.
//
// What a claim knows of one master:
//
//     sent --> pending --answer--> nothing outstanding
//                 |
//                 +--connection broke--> stray: the server may still execute the SET
//
//     end: owed --delete sent--> deleting --answer, no stray--> paid
//           ^                       |
//           |                       +--answer, stray-----> resting, until a repeat is due
//           +---connection broke----+--error-------------> resting, until a repeat is due
//
// Strays. The next greeting usually ends the old connection on the server (master/session). Then no stray is left, and
// one delete after that is final, whatever the server answers. Where the server does not let us, or is not known to be
// the same process, a stray SET may be executed after any delete. So deletes are repeated with back-off until
// ttl + drift after the connection was up again, and one more follows. A SET that comes even later leaves a key that
// belongs to no client: others are refused there until the key expires, and no two hold the lock.
//
// A debt without a stray SET ends by itself: the master's key expires. It is kept for twice (ttl + drift) from the
// end, or from a grant that came later, because an unanswered extend may have raised the expiry once more. A stray SET
// has no such bound, so its number is bounded instead: no master is sent a SET while it owes answers about its share
// of the table (may_send). So a frozen master stops taking claims, and rounds go on without it; what can still fill
// the table are locks held when one master after another freezes, and those debts end by themselves.
#pragma once
#include "base/masters.hpp"
#include "base/names.hpp"
#include "base/queue.hpp"
#include "base/time.hpp"
#include "base/types.hpp"

namespace redlock {

struct Claim {
  Names names;
  char value_hex[2 * REDLOCK_VALUE_RANDOM];
  bool used;
  bool ended;        // the lock has ended or the round is lost: every delete is due
  uint8_t repeats;
  uint16_t slot;     // the lock it serves; no_slot once it ended or lingers
  Link place;        // free: among the free ones; ended: among those whose deletes go out next
  uint32_t ttl_ms;   // the longest ttl sent for it

  Masters sent;      // may have been given anything about this value
  Masters refused;   // answered the SET with "held by another"
  Masters pending;   // the SET is unanswered on the present connection
  Masters stray;     // the SET was unanswered when its connection broke
  Masters owed;      // a delete is to be queued as soon as there is room
  Masters deleting;  // a delete is unanswered on the present connection
  Masters resting;   // a delete is owed again after repeat_at
  Masters reserved;  // a place in the session's FIFO is kept for the delete

  Instant end_at;       // lingers until then (never: not lingering)
  Instant void_at;      // debts without a stray SET end then
  Instant repeat_at;
};

class Claims {
 public:
  struct Rules {
    unsigned masters;
    unsigned quorum;
    unsigned locks;
    uint32_t drift_ppm;
    uint32_t drift_fixed_ms;
    unsigned resource_bytes;  // of one claim, together
  };

  // names: room for those of each claim.
  void init(const Rules& rules, Claim* table, unsigned capacity, char* names);

  // A new claim for a lock's round, or no_slot when the table is full.
  uint16_t make(uint16_t slot, const Names& names, uint32_t ttl_ms);
  Claim& operator[](uint16_t index) { return table_[index]; }
  const Claim& operator[](uint16_t index) const { return table_[index]; }
  unsigned capacity() const { return capacity_; }
  bool full() const { return free_ == no_slot; }

  // May this master be sent another SET? False while it owes answers about its share of the table.
  bool may_send(MasterIndex m) const { return open_[m] < share_; }

  void sets_sent(uint16_t index, Masters masters) {
    Claim& c = table_[index];
    REDLOCK_ASSERT(c.used && !c.ended && ((c.pending | c.stray) & masters).empty());
    c.sent |= masters;
    c.pending |= masters;
    c.reserved |= masters;
    for (MasterIndex m : masters) {
      ++open_[m];
      ++reserved_[m];
    }
    check(c);
  }
  void set_sent(uint16_t index, MasterIndex m) { sets_sent(index, Masters::of(m)); }
  // The SET of a held lock's value again, for a master that lacks it. Not while the first one may still be executed: a
  // delete could find that and be taken for the delete of the second.
  bool may_put_back(uint16_t index, MasterIndex m, Instant now) {
    if (table_[index].stray.has(m) && now >= strays_until(table_[index], m)) drop_stray(table_[index], m, now);
    return may_send(m) && !((table_[index].pending | table_[index].stray).has(m));
  }
  void put_back_sent(uint16_t index, MasterIndex m) {
    Claim& c = table_[index];
    const bool reserved = c.reserved.has(m);
    set_sent(index, m);
    if (reserved) --reserved_[m];
    c.refused.remove(m);
    check(c);
  }
  void set_answered(uint16_t index, MasterIndex m, bool refused, Instant now) {
    Claim& c = table_[index];
    REDLOCK_ASSERT(c.used && c.pending.has(m));
    c.pending.remove(m);
    if (!open(c).has(m)) --open_[m];
    if (refused) c.refused.add(m);
    if (c.ended) answered_late(index, refused, now);
    check(c);
  }

  // End: a delete is due on each master of `targets`; frees the claim when there is none.
  void end(uint16_t index, Masters targets, Instant now);
  // The lock is over, but a check already answered may be relied on until then: end() is carried out at `at`.
  void linger(uint16_t index, Instant at);
  void deletes_queued(uint16_t index, Masters masters) {
    Claim& c = table_[index];
    REDLOCK_ASSERT((masters - c.owed).empty());
    c.owed -= masters;
    owed_in_all_ -= masters.count();
    for (MasterIndex m : masters) {
      --owed_[m];
      reserved_[m] = static_cast<uint16_t>(reserved_[m] - (c.reserved.has(m) ? 1u : 0u));
    }
    c.reserved -= masters;
    c.deleting |= masters;
    check(c);
  }
  enum class Deleted : uint8_t { yes, absent, error };
  void delete_answered(uint16_t index, MasterIndex m, Deleted how, Instant now) {
    Claim& c = table_[index];
    REDLOCK_ASSERT(c.used && c.ended && c.deleting.has(m));
    c.deleting.remove(m);
    if (how == Deleted::error || c.stray.has(m)) delete_counted(c, m, how, now);
    const Masters still_open = open(c);
    if (!still_open.has(m)) --open_[m];
    if (still_open.empty()) settle(index);
    check(c);
  }
  // The claim has left the queue that `place` links.
  void unqueued(uint16_t index) { settle(index); }
  // NOSCRIPT: the same delete is to go out again at once.
  void delete_unknown(uint16_t index, MasterIndex m);
  // The connection to m is gone, with all that was unanswered on it. Has it, or an older one, left strays?
  bool broke(MasterIndex m);
  // A connection to m is up again, and what older ones left unanswered was executed or never will be; or may still be.
  void strays_ended(MasterIndex m, Instant now);
  void strays_at_large(MasterIndex m, Instant now) { back_at_[m] = now; }

  // Places in m's FIFO that are kept for the deletes of values sent on its present connection.
  unsigned reserved(MasterIndex m) const { return reserved_[m]; }

  // Deletes that wait for room: has any, and the next one at or after `from` (no_slot: none).
  bool owes() const { return owed_in_all_ != 0; }
  bool owes(MasterIndex m) const { return owed_[m] != 0; }
  uint16_t next_owed(MasterIndex m, uint16_t from) const;

  // Everything that is due: lingering ends, repeats, debts that ended by themselves. Returns the next deadline.
  Instant on_time(Instant now);
  Instant deadline() const { return deadline_; }

  // With asserts on: every claim is sound, and all counters tell what the claims say.
#if defined(REDLOCK_ASSERTS)
  void check() const;
#else
  void check() const {}
#endif

  unsigned debts() const { return debts_; }
  unsigned debts_of(MasterIndex m) const;

 private:
  void check(const Claim& c) const {
    if (!c.used) return;
    REDLOCK_ASSERT(c.names.first().size >= 1 && c.names.bytes() <= rules_.resource_bytes);
    // A claim is about masters that were sent its value.
    REDLOCK_ASSERT((c.sent - Masters::all(rules_.masters)).empty());
    REDLOCK_ASSERT(((c.refused | open(c) | c.reserved) - c.sent).empty());
    // Of the states in which a SET, or a delete, can be, it is in one.
    REDLOCK_ASSERT((c.pending & c.stray).empty());
    REDLOCK_ASSERT((c.owed & c.deleting).empty() && (c.deleting & c.resting).empty() && (c.owed & c.resting).empty());
    // Only a value that has ended is deleted, and only what is to be repeated has a time for that.
    REDLOCK_ASSERT(c.ended || (c.owed | c.deleting | c.resting).empty());
    REDLOCK_ASSERT(c.ended || c.void_at == Instant::never() || !c.sent.empty());
    REDLOCK_ASSERT(c.resting.empty() || c.repeat_at != Instant::never());
    REDLOCK_ASSERT(!c.ended || (c.slot == no_slot && c.end_at == Instant::never()));
  }
  // The masters that owe an answer about the claim, or are owed a delete.
  static Masters open(const Claim& c) {
    return c.pending | c.stray | c.owed | c.deleting | c.resting;
  }
  void delete_counted(Claim& claim, MasterIndex m, Deleted how, Instant now);
  void answered_late(uint16_t index, bool refused, Instant now);
  Duration lifetime(uint32_t ttl_ms) const;  // ttl + drift
  // When no key that was written before now, and raised by an extend that was unanswered, can be left.
  Instant dead_by(const Claim& claim, Instant now) const {
    return now + lifetime(claim.ttl_ms) + lifetime(claim.ttl_ms);
  }
  void owe(Claim& claim, Masters masters);
  void owe_again(Claim& claim, MasterIndex m);
  void unreserve(Claim& c, Masters masters) {
    for (MasterIndex m : c.reserved & masters) --reserved_[m];
    c.reserved -= masters;
  }
  void forget(Claim& claim, Masters masters);
  // Strays that no greeting has ended are too late then.
  Instant strays_until(const Claim& claim, MasterIndex m) const { return back_at_[m] + lifetime(claim.ttl_ms); }
  void drop_stray(Claim& claim, MasterIndex m, Instant now);
  void recount(const Claim& claim, Masters before);
  void rest(Claim& claim, MasterIndex m, Instant now);
  void settle(uint16_t index);

  Rules rules_ = {};
  Claim* table_ = nullptr;
  char* names_ = nullptr;
  uint16_t capacity_ = 0;
  uint16_t free_ = no_slot;
  uint16_t share_ = 0;
  uint16_t debts_ = 0;
  uint16_t open_[REDLOCK_MASTERS_MAX] = {};  // claims about which something is unanswered or owed
  uint16_t owed_[REDLOCK_MASTERS_MAX] = {};
  uint32_t owed_in_all_ = 0;
  uint16_t reserved_[REDLOCK_MASTERS_MAX] = {};
  Instant back_at_[REDLOCK_MASTERS_MAX];  // a connection was up again, and strays were at large; never(): none has been
  Instant deadline_ = Instant::never();
};

}  // namespace redlock
