// SPDX-License-Identifier: MIT
//
// Claims: which values may lie on which masters, and which deletes are owed for these values.
//
// A claim stands for one value under the names of one lock. The client makes a claim when a round starts, before the
// first SET is handed to any session. The claim outlives the lock. A claim is freed once no master can still hold the
// value, or once only expiry can remove the value. A claim that has ended and is not freed is a *debt*. A request in
// flight names its claim by index. Each acquire round has a new value and a new claim, so the reply of one round is
// never taken for a reply of another round.
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
// Strays. The next greeting usually ends the old connection on the server (master/greeting). After that no stray is
// left, and one delete is final, whatever the server answers. If the server refuses to end the connection, or may be
// another process, a stray SET may be executed after any delete. In this case the deletes are repeated with growing
// pauses until ttl + drift after the connection was up again, and then one more delete follows. A SET that comes even
// later leaves a key that belongs to no client. Others are refused on that master until the key expires, but no two
// clients hold the lock.
//
// A debt without a stray SET ends by itself, because the key expires. The claim is kept for twice (ttl + drift) after
// its end, or after a grant that came later: an unanswered extend may have raised the expiry once more. A stray SET has
// no such bound. So the number of strays is bounded instead: a master that owes answers about its share of the table is
// sent no SET (may_send). A frozen master therefore takes no more claims, and rounds go on without this master. The
// table can still fill in one way: locks stay held while one master after another freezes. These debts end by
// themselves.
#pragma once
#include "base/entropy_pool.hpp"
#include "base/masters.hpp"
#include "base/names.hpp"
#include "base/queue.hpp"
#include "base/time.hpp"
#include "base/types.hpp"

namespace redlock {

// What masters were sent of one value.
struct Sent {
  Masters sent;      // may have been sent a SET of this value; the others below are parts of it
  Masters refused;   // answered the SET with "held by another"
  Masters pending;   // the SET is unanswered on the present connection; apart from `stray`
  Masters stray;     // the SET was unanswered when its connection broke
  Masters owed;      // a delete has to be queued as soon as there is room; only of a claim that has ended, as the next
                     // two. A master is in one of the three at most
  Masters deleting;  // a delete is unanswered on the present connection
  Masters resting;   // a delete is owed again after repeat_at
  Masters reserved;  // a place in the session's FIFO is kept for the delete
};

// Small fields come first: on ARM their instructions are short where they lie near the beginning.
struct Claim : Sent {
  bool used;
  bool ended;        // the lock has ended, or the round was lost: every delete is due
  uint8_t repeats;
  uint16_t slot;     // the lock that has this value; no_slot once the claim has ended or lingers
  Link place;        // in the list of free claims; or in the client's queue of claims whose deletes leave next

  uint32_t ttl_ms;   // the longest ttl that was sent with this value

  Instant over_at;      // not ended: a lingering claim ends then (never: the claim does not linger). Ended: debts
                        // without a stray SET end then
  Instant repeat_at;    // the deletes of `resting` are repeated then
  Names names;
  ValueBytes value;
};

// In brackets: what a claim must be when a method is called for it. [open] was made, and has not ended; [ended].
class Claims {
 public:
  struct Rules {
    unsigned masters;
    unsigned quorum;
    unsigned locks;
    uint32_t drift_ppm;
    uint32_t drift_fixed_ms;
    unsigned resource_bytes;  // the longest names of one claim, together
  };

  // names: capacity * resource_bytes of memory for the names of the claims.
  void init(const Rules& rules, Claim* table, unsigned capacity, char* names);

  // A new claim for a lock's round; no_claim: the table is full.
  uint16_t make(uint16_t slot, const Names& names, uint32_t ttl_ms);
  Claim& operator[](uint16_t index) { return table_[index]; }
  const Claim& operator[](uint16_t index) const { return table_[index]; }
  unsigned capacity() const { return capacity_; }
  bool full() const { return free_ == no_claim; }
  bool in_use() const { return used_ != 0; }

  // The share of one master: what is left of the table beside the locks, for each of as many masters as may fail.
  static unsigned share_of(unsigned debts, unsigned minority);
  // May this master be sent another SET? False while the master owes answers about its share of the table.
  bool may_send(MasterIndex m) const { return unsettled_[m] < share_; }

  // [open]
  void sets_sent(uint16_t index, Masters masters) {
    Claim& c = table_[index];
    REDLOCK_ASSERT(c.used);
    REDLOCK_ASSERT(!c.ended);
    REDLOCK_ASSERT(((c.pending | c.stray) & masters).empty());
    c.sent |= masters;
    c.pending |= masters;
    c.reserved |= masters;
    for (MasterIndex m : masters) {
      ++unsettled_[m];
      ++reserved_[m];
    }
    check(c);
  }
  void set_sent(uint16_t index, MasterIndex m) { sets_sent(index, Masters::of(m)); }
  // [open] May the value of a held lock be SET again on a master that lacks the key? Not while the first SET may still
  // be executed: a delete that removes the key of the first SET would be taken for the delete of the second key.
  bool may_put_back(uint16_t index, MasterIndex m, const Instant& now) {
    if (table_[index].stray.has(m) && now >= strays_until(table_[index], m)) drop_stray(table_[index], m, now);
    return may_send(m) && !((table_[index].pending | table_[index].stray).has(m));
  }
  // [open] One more SET, where none is unanswered.
  REDLOCK_APART_FOR_SIZE void put_back_sent(uint16_t index, MasterIndex m) {
    Claim& c = table_[index];
    const bool reserved = c.reserved.has(m);
    set_sent(index, m);
    if (reserved) --reserved_[m];
    c.refused.remove(m);
    check(c);
  }
  // [open, ended] While the SET is `pending`.
  void set_answered(uint16_t index, MasterIndex m, bool refused, const Instant& now) {
    Claim& c = table_[index];
    REDLOCK_ASSERT(c.used);
    REDLOCK_ASSERT(c.pending.has(m));
    c.pending.remove(m);
    if (!unsettled(c).has(m)) --unsettled_[m];
    if (refused) c.refused.add(m);
    if (c.ended) answered_late(index, refused, now);
    check(c);
  }

  // [open] Ends a claim. A delete is due on each master of `targets`. The claim is freed if no master owes or is owed
  // anything.
  void end(uint16_t index, Masters targets, const Instant& now);
  // [open] The lock is over, but its owner may rely on an earlier check until `at`. The claim ends at `at`, and not
  // before.
  void linger(uint16_t index, Instant at);
  // Nobody relies on an earlier check any more, and no lock is left: claims that linger end now.
  void end_lingering(const Instant& now);
  // [ended] Where deletes are `owed`.
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
  // [ended] While the delete is unanswered, as delete_unknown().
  void delete_answered(uint16_t index, MasterIndex m, Deleted how, const Instant& now) {
    Claim& c = table_[index];
    REDLOCK_ASSERT(c.used);
    REDLOCK_ASSERT(c.ended);
    REDLOCK_ASSERT(c.deleting.has(m));
    c.deleting.remove(m);
    if (how == Deleted::error || c.stray.has(m)) delete_counted(c, m, how, now);
    const Masters still_unsettled = unsettled(c);
    if (!still_unsettled.has(m)) --unsettled_[m];
    if (still_unsettled.empty()) settle(index);
    check(c);
  }
  // [ended] The claim has left the queue that `place` links, and may be freed now.
  void unqueued(uint16_t index) { settle(index); }
  // [ended] The delete was answered by NOSCRIPT, and has to be sent again at once.
  void delete_unknown(uint16_t index, MasterIndex m);
  // The connection to m broke, with everything that was unanswered on it. Returns whether this connection, or an older
  // one, left strays.
  bool broke(MasterIndex m);
  // A connection to m is up again. strays_ended: what older connections left unanswered was executed, or never will be.
  // strays_at_large: it may still be executed.
  void strays_ended(MasterIndex m, const Instant& now);
  void strays_at_large(MasterIndex m, const Instant& now) { back_at_[m] = now; }

  // Places in m's FIFO that are kept for deletes of values that were sent on the present connection.
  unsigned reserved(MasterIndex m) const { return reserved_[m]; }

  // Deletes that wait for room. next_owed: the next claim at or after `from` that m is owed a delete of (no_claim:
  // none).
  bool owes() const { return owed_in_all_ != 0; }
  bool owes(MasterIndex m) const { return owed_[m] != 0; }
  uint16_t next_owed(MasterIndex m, uint16_t from) const;

  // Does everything that is due: ends lingering claims, repeats deletes, drops debts that ended by themselves. Returns
  // the next deadline.
  Instant on_time(const Instant& now);
  Instant deadline() const { return deadline_; }

  // Where asserts are on: every claim is sound, and all counters agree with the claims.
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
    REDLOCK_ASSERT(c.names.first().size >= 1);
    REDLOCK_ASSERT(c.names.bytes() <= rules_.resource_bytes);
    // A claim says nothing about masters that were not sent its value.
    REDLOCK_ASSERT((c.sent - Masters::all(rules_.masters)).empty());
    REDLOCK_ASSERT(((c.refused | unsettled(c) | c.reserved) - c.sent).empty());
    // A SET has one state at a time, and so has a delete.
    REDLOCK_ASSERT((c.pending & c.stray).empty());
    REDLOCK_ASSERT((c.owed & c.deleting).empty());
    REDLOCK_ASSERT((c.deleting & c.resting).empty());
    REDLOCK_ASSERT((c.owed & c.resting).empty());
    // Only an ended value is deleted, and a delete that rests has a time for its repetition.
    REDLOCK_ASSERT(c.ended || (c.owed | c.deleting | c.resting).empty());
    REDLOCK_ASSERT(c.resting.empty() || c.repeat_at != Instant::never());
    REDLOCK_ASSERT(!c.ended || c.slot == no_slot);
    REDLOCK_ASSERT(!c.ended || c.over_at != Instant::never());
  }
  // Masters that owe an answer about the claim, or are owed a delete.
  static Masters unsettled(const Claim& c) {
    return c.pending | c.stray | c.owed | c.deleting | c.resting;
  }
  void delete_counted(Claim& claim, MasterIndex m, Deleted how, const Instant& now);
  void answered_late(uint16_t index, bool refused, const Instant& now);
  Duration lifetime(uint32_t ttl_ms) const;  // ttl + drift
  // The instant when the key must have expired, even if it was written just now, and an unanswered extend raises its
  // expiry once.
  Instant dead_by(const Claim& claim, const Instant& now) const {
    const Duration once = lifetime(claim.ttl_ms);
    return now + once + once;
  }
  void owe(Claim& claim, Masters masters);
  void owe_again(Claim& claim, MasterIndex m);
  void unreserve(Claim& c, Masters masters) {
    for (MasterIndex m : c.reserved & masters) --reserved_[m];
    c.reserved -= masters;
  }
  void forget(Claim& claim, Masters masters);
  // From then on a stray that no greeting has ended is not waited for any more.
  Instant strays_until(const Claim& claim, MasterIndex m) const { return back_at_[m] + lifetime(claim.ttl_ms); }
  void drop_stray(Claim& claim, MasterIndex m, const Instant& now);
  void recount(const Claim& claim, Masters before);
  void rest(Claim& claim, MasterIndex m, const Instant& now);
  void settle(uint16_t index);

  Rules rules_ = {};
  Claim* table_ = nullptr;
  char* names_ = nullptr;
  uint16_t capacity_ = 0;
  uint16_t free_ = no_claim;
  uint16_t share_ = 0;
  uint16_t used_ = 0;
  uint16_t debts_ = 0;
  uint16_t unsettled_[REDLOCK_MASTERS_MAX] = {};  // claims that have something unanswered or owed, for each master
  uint16_t owed_[REDLOCK_MASTERS_MAX] = {};
  uint32_t owed_in_all_ = 0;
  uint16_t reserved_[REDLOCK_MASTERS_MAX] = {};
  Instant back_at_[REDLOCK_MASTERS_MAX];  // when a connection was last up again with strays at large; never(): not yet
  Instant deadline_ = Instant::never();
};

}  // namespace redlock
