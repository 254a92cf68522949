// SPDX-License-Identifier: MIT
//
// Reconfiguration: from one set of masters to another while clients run.
//
// Two quorums of different sets need not have a master in common, so nobody may win one of the new set while somebody
// may hold one of the old. What tells a client that a master is not his any more is the guard's record there
// (master/guard):
//
//     look    ask every master of both sets what its record says; a third configuration ends it, with nothing written
//     leave   write to the old masters that they serve neither set, until N_old - Q_old + 1 have answered: the others
//             are no quorum. Clients see it by push, by the seal that they read behind each request, or when they read
//             the record again
//     wait    until every admission that stands on an older reading has lapsed, and for as much as the longest lock of
//             the old clients outlives the new clients' guard time
//     enter   only now write the new fingerprint to the new masters, with a new quarantine id and without a seal: from
//             then on new clients watch a guard time, and within it every lock of the old set has ended
//
// A master serves neither set between the two writes. If it were written once, those that left early could be watched
// and sealed by new clients while the old ones still have a quorum. Each write is done once, whatever was there
// before, so all of it may be broken off anywhere and done again, or undone by the opposite change. Each names the
// quarantine id that it was meant for and leaves a new one: what a call that was given up has sent does nothing when it
// arrives after another has written. test/model/move.pml searches it, without such latecomers.
//
// It owns nothing and does no I/O: two clients without a guard of their own, one for each set, are moved by drivers,
// and step() is called after their turns.
#pragma once
#include "client.hpp"

namespace redlock {

class Reconfiguration {
 public:
  enum class Stage : uint8_t { look, leave, wait, enter, over };
  enum class Answer : uint8_t { none, yes, foreign, failed };

  // One set of masters, and what became of the step that was last asked of each.
  struct Side {
    Side(Client& client_given, unsigned needed_given) : client(client_given), needed(needed_given) {}
    Client& client;
    unsigned needed;  // so many have to say yes
    Stage step = Stage::look;
    Stage asked[REDLOCK_MASTERS_MAX] = {};  // over: nothing yet
    Answer answer[REDLOCK_MASTERS_MAX] = {};
  };

  // seed: random, for quarantine ids.
  Reconfiguration(Client& old_set, Client& new_set, uint64_t seed, Instant now);

  void step(Instant now);
  void clock_jumped(Instant now);  // what was waited before says nothing any more
  bool over() const { return stage_ == Stage::over; }
  Stage stage() const { return stage_; }
  // When over: 0, the number of new masters that are still to be written, or enum redlock_err.
  int result() const { return result_; }
  const Side& old_side() const { return old_; }
  const Side& new_side() const { return new_; }

  // From the last answer that is needed to the first write on a new master.
  static Duration wait_between(const Settings& old_set, const Settings& new_set);

 private:
  void begin(Side& side, Stage step);
  void ask(Side& side, Instant now);
  void finish(int result);
  void after_look(Instant now);
  void after_leave(Instant now);
  void after_enter(Instant now);

  Side old_;
  Side new_;
  Random ids_;
  Duration patience_;  // for one step
  Duration between_;
  Instant until_;      // of the present step
  Stage stage_ = Stage::look;
  int result_ = 0;
};

}  // namespace redlock
