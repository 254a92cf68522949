// SPDX-License-Identifier: MIT
//
// Fleet: what can be said of the masters only by comparing them all: which of them are one server, whose clock is
// wrong, and when the guard will have admitted a quorum. It is given what each session knows, and knows no session.
//
// Clocks. A master whose clock was stepped is told to every client, by a new quarantine id in the master's record, only
// when it is surely the master's clock that is wrong and not our own. That is sure when a quorum of other masters,
// asked after the step was seen, agrees with our clock. With one or two masters nobody can tell.
#pragma once
#include "base/masters.hpp"
#include "base/time.hpp"
#include "base/types.hpp"

namespace redlock {

class Fleet {
 public:
  explicit Fleet(unsigned masters) : masters_(masters) {}

  // ids: how each master's server names itself; empty: not known. Returns the masters whose server an earlier master of
  // the list is, too.
  Masters duplicates(const Bytes* ids) const;

  // admitted_at: for each master when the guard will have admitted it; from_ns(INT64_MIN): it has; never(): not known.
  Instant quorum_admitted_at(const Instant* admitted_at) const;

  void clock_stepped(MasterIndex m, Instant now) {
    stepped_.add(m);
    stepped_at_ = now;
  }
  bool doubts_clocks() const { return !stepped_.empty(); }
  Instant stepped_at() const { return stepped_at_; }  // when the last step was seen
  // agree: the masters that were asked since stepped_at() and whose clocks agree with ours. Returns, once, the masters
  // that are to be quarantined now. A step that no quorum has confirmed after so long is forgotten.
  Masters surely_stepped(Masters agree, Duration patience, Instant now);

 private:
  unsigned masters_;
  Masters stepped_;  // their clocks were stepped, and other clients may not know yet
  Instant stepped_at_;
};

}  // namespace redlock
