// SPDX-License-Identifier: MIT
//
// Reconfiguration: from one set of masters to another while clients run, and one change at a time.
//
// Two quorums of different sets need not have a master in common, so nobody may win one of the new set while somebody
// may hold one of the old. What tells a client that a master is not his any more is the guard's record there
// (master/guard). A change writes it twice: a mark, which serves neither set, and later the new fingerprint.
//
//     look      what does every record say?      a third configuration ends the call, and nothing was written
//     mark_new  the masters of the new set alone        what ends the call here leaves the old site at work
//     mark_old  the old ones, and those of both sets    from here on nobody can lock
//     wait      until every admission that stands on an older reading has lapsed, and for as much as the longest
//               lock of the old clients outlives the new clients' guard time
//     again     do the marks still stand?        too few do: the call ends
//     enter     the new fingerprint, where the own mark stands, and nowhere else
//     check     do the new masters still say so?
//
// Each step but mark_new needs a quorum of each set. Every mark of a call bears the call's id, as quarantine id, and is
// written over the very record that the call has read. A call that finds a foreign mark ends. A later call marks over
// what it finds, waits the whole time again, and so takes the site over: a call that still lives then finds a foreign
// mark. Two calls that have both looked again with success would each have had a quorum of marks in a set that the
// other must enter with a quorum of its own marks; so only the later one can. Only what was marked when the wait began
// counts when the call looks again, and is entered: what is marked later was not waited for.
//
// Where the look finds that a quorum of new masters was entered already, the change is over, and only the rest is
// mended: marked, and entered without a wait, if a quorum of the new set is found entered still when the marks stand.
// What says `new` is not touched, so that clients of the new set keep their locks.
//
// All of it may be broken off anywhere and done again, or undone by the opposite change; what a call that was given up
// has sent does nothing when it arrives after another has written. test/model/move.pml searches that.
//
// It owns nothing and does no I/O: two clients without a guard of their own, one for each set, are moved by drivers,
// and step() is called after their turns.
#pragma once
#include <redlock/site.h>

#include "client/client.hpp"

namespace redlock {

class Reconfiguration {
 public:
  enum class Stage : uint8_t { look, mark_new, mark_old, wait, again, enter, check, over };

  // One set of masters, and what became of the step that was last asked of each.
  struct Side {
    explicit Side(Client& client_given);
    Client& client;
    unsigned needed;  // so many have to do each step
    Masters open;  // have not answered
    Masters asked;
    Masters done;
    int16_t err[REDLOCK_MASTERS_MAX] = {};  // of those that answered something else
  };

  // seed: random, for quarantine ids.
  Reconfiguration(Client& old_set, Client& new_set, uint64_t seed, Instant now);

  void step(Instant now);
  void clock_jumped(Instant now);  // what was waited before says nothing any more
  bool over() const { return stage_ == Stage::over; }
  Stage stage() const { return stage_; }
  // When over: 0, the number of new masters that are still to be written, or enum redlock_err.
  int result() const { return result_; }
  bool mends() const { return mends_; }  // the change was over when it looked
  uint32_t written() const { return written_; }  // how far it came: REDLOCK_WRITTEN_*
  const Side& old_side() const { return old_; }
  const Side& new_side() const { return new_; }

  // From the last mark that is needed until it looks again.
  static Duration wait_between(const Settings& old_set, const Settings& new_set);

 private:
  bool marks() const { return stage_ == Stage::mark_new || stage_ == Stage::mark_old; }
  void ask(Side& side, Instant now);
  void hear(Side& side, MasterIndex m);
  bool due(Instant now) const;
  void next(Instant now);
  void after_look(Instant now);
  void begin(Stage stage, Masters old_masters, Masters new_masters, Instant now);
  void finish(int result);
  void too_few();
  void draw_id(char* id);

  Side old_;
  Side new_;
  Random ids_;
  Duration patience_;  // for one step
  Duration between_;
  Instant until_;         // of the present step
  Masters twins_;  // new masters that are old ones, too
  Stage stage_ = Stage::look;
  bool mends_ = false;
  bool lost_ = false;   // a master has no mark any more
  uint8_t written_ = REDLOCK_WRITTEN_NOTHING;
  int result_ = 0;
  char id_[Guard::id_size];  // of its marks
};

}  // namespace redlock
