// SPDX-License-Identifier: MIT
//
// Notices: what the owner of a client is told: events, the cause of each acquire that waits, the status. The client
// decides what happens to a lock and notes an event in the lock's slot; from there on the event belongs here.
//
// Events are delivered at the end of a turn, and LOST comes before all others. A slot holds one event at a time, so the
// next round of the lock waits until the event is taken. WAITING takes no such place: a bit of the lock says that a
// WAITING is due, and it comes after all others.
//
// Causes: what does an acquire wait for? Most causes follow from the masters' states alone, and are the same for every
// acquire of the client (client/fleet). Only while a quorum votes does the acquire's own last round tell.
//
// The holder: who holds what a lock waits for, or was refused? An acquire that wants to tell asks one master with each
// round that it lost to others: the first one that refused. The question leaves with the looks. A lost try-once keeps
// its FAILED back until the answer has come, or a node_timeout is over.
#pragma once
#include "client/post.hpp"
#include "lock/table.hpp"

namespace redlock {

// The name of who holds what one lock of this client waits for, or was refused. A client remembers one name, so that a
// lock needs no memory for it. While the place belongs to a lock that is not decided yet, other locks are told without
// a name.
struct Holder {
  uint64_t lock = 0;  // the handle of the lock that asked
  // A FAILED that waits for the answer is told then at the latest; never(): none waits.
  Instant until = Instant::never();
  bool wanted = false;   // the question has not left yet
  bool foreign = false;  // the value is not of this library
  uint8_t size = 0;      // of the name; 0: not known
  char name[REDLOCK_CLIENT_NAME_MAX];
};

class Notices {
 public:
  // An event, and where to deliver it. After delivered() the slot of an ended lock is free again.
  struct Event {
    redlock_event_t event;
    redlock_event_fn callback;  // nullptr: the client's own
    void* user;
    uint16_t slot;  // no_slot: not about a lock
  };
  // What a person needs to know about an event of a lock, beside its numbers.
  struct Detail {
    MasterIndex master;    // that master_err is about; Settings::masters: none
    const Holder* holder;  // the answer of a master; nullptr: none
    int64_t to_go_ms;      // as in redlock_detail_t
  };

  Notices(const CommonSettings& settings, Table& table, Post& post)
      : settings_(settings), table_(table), post_(post) {}

  int cause = REDLOCK_CAUSE_NONE;  // of every acquire. HELD: a quorum votes; NONE: not known yet
  redlock_status_t counters = {};  // those fields of the status that count

  // ---- from the client
  // The lock's slot has an event.
  void queue(Lock& lock);
  // An acquire waits, perhaps for another cause than before: tell WAITING. again: also if the cause is the same.
  void note_wait(Lock& lock, bool again);
  // Each WAITING is told again from time to time. Returns when something is due.
  Instant on_time(const Instant& now);
  Instant due() const { return earlier(tell_at_, holder_.until); }

  // Whose value is in the way of this lock, which has just lost a round? True: the question is to be sent.
  bool want_holder(const Lock& lock, const Instant& now);
  // The lock that asks, once for each question; nullptr: none, or its next round has begun.
  Lock* take_question();
  // False: the answer is not for the lock that asked last.
  bool hear_holder(const Reply& reply);
  // A master refused after its round was lost. Who asked is told of all masters that refused.
  void refused_late(MasterIndex m, uint32_t round);
  // The lock whose FAILED waits for the answer, once; nullptr: none.
  Lock* take_kept_back();
  bool is_overdue(const Instant& now) const { return now >= holder_.until; }

  // ---- for the port
  bool of_locks() const { return of_locks_ != 0; }
  unsigned count() const;
  bool tells_released() const {  // next
    return !told_.empty() && table_[told_.first()].tell.event == REDLOCK_EV_RELEASED;
  }
  // False: there is none.
  bool next(Event& out, const Instant& now);
  void delivered(const Event& event, const Instant& now);  // now: right before

  // ---- for run and c_api
  static bool is_detailed(int type) { return (detailed_types >> type & 1u) != 0; }
  Detail detail(const Event& event, const Instant& now) const;  // at the delivery, of an event about a lock
  void status(redlock_status_t& out, const Instant& now) const;
  void master_status(MasterIndex m, redlock_master_status_t& out, const Instant& now) const;

 private:
  static constexpr unsigned detailed_types = 1u << REDLOCK_EV_WAITING | 1u << REDLOCK_EV_FAILED |
                                             1u << REDLOCK_EV_LOST | 1u << REDLOCK_EV_AT_RISK | 1u << REDLOCK_EV_MASTER;

  bool take_master(Event& out, const Instant& now);
  [[gnu::always_inline]] inline Lock& take_told(Telling& tell, const Instant& now);
  Lock& take_waiting(Telling& tell, const Instant& now);
  void forget_waiting(Lock& lock) {
    lock.wait.untold = false;
    --of_locks_;
  }
  int cause_of(const Lock& lock) const;
  // The slot of the lock that asked.
  unsigned place_of_holder() const { return static_cast<uint16_t>(holder_.lock - 1); }
  int64_t guard_ms(const Instant& now) const;
  int64_t guard_ms_of(MasterIndex m, const Instant& now) const;
  int32_t shown_state(MasterIndex m) const;

  Queue<Lock, &Lock::told> told_;  // locks with an event; LOST enters at the front
  unsigned of_locks_ = 0;          // events of locks, with each WAITING that is due
  Instant tell_at_ = Instant::never();  // then each WAITING is told again
  Holder holder_;
  const CommonSettings& settings_;
  Table& table_;
  Post& post_;
};

}  // namespace redlock
