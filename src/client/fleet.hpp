// SPDX-License-Identifier: MIT
//
// Fleet: what can be said only by comparing all masters. Which masters are one server? Whose clock is wrong? What
// does every acquire wait for? The client passes in what each session knows; the fleet knows no session.
//
// Clocks. If a master's clock was stepped, this client writes a new quarantine id into the master's record, and so
// warns every client. This client does so only when the master's clock is surely wrong, and not our own: a quorum of
// other masters, asked after the step was seen, agrees with our clock. With one or two masters nobody can know which
// clock is wrong.
#pragma once
#include "base/masters.hpp"
#include "base/time.hpp"
#include "base/types.hpp"
#include "master/guard.hpp"

namespace redlock {

class Fleet {
 public:
  explicit Fleet(unsigned masters) : masters_(masters) {}

  // ids: the run id of each master's server; empty: not known. Returns the masters whose server stands in the list
  // before, as another master.
  Masters duplicates(const Bytes* ids) const;

  bool is_quorum(Masters some) const;

  // outlooks: what may become of each master that does not vote.
  // What every acquire waits for, as far as the masters tell (enum redlock_cause). HELD: a quorum votes, so the
  // acquire's own last round tells. before: the cause so far.
  int cause(Masters voting, const Guard::Outlook* outlooks, int before) const;
  // When a quorum will vote, as far as watches tell: a time that has passed, if one votes; never(): it is not known.
  // watched_at: when the watch of each master will be over; never(): it votes, or it is not known.
  Instant guarded_until(Masters voting, const Instant* watched_at) const;
  // Masters that can never vote as things stand.
  Masters never(Masters voting, const Guard::Outlook* outlooks) const;

  void clock_stepped(MasterIndex m, const Instant& now) {
    stepped_.add(m);
    stepped_at_ = now;
  }
  bool doubts_clocks() const { return !stepped_.empty(); }
  Instant stepped_at() const { return stepped_at_; }  // when the last step was seen
  // agree: masters that were asked since stepped_at(), and whose clocks agree with ours. Returns, once, the masters to
  // be quarantined now. A step that no quorum has confirmed after `patience` is forgotten.
  Masters surely_stepped(Masters agree, Duration patience, const Instant& now);

 private:
  Masters of(Masters voting, const Guard::Outlook* outlooks, Guard::Outlook outlook) const;

  unsigned masters_;
  Masters stepped_;  // masters whose clock was stepped, which other clients may not know yet
  Instant stepped_at_;
};

}  // namespace redlock
