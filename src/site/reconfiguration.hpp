// SPDX-License-Identifier: MIT
//
// Reconfiguration takes a site from one set of masters to another while clients run, one change at a time.
//
// Two quorums of different sets need not share a master. So nobody may win a lock of the new set while somebody may
// hold one of the old set. A client learns from the guard's record on a master that the master serves its set no more
// (master/guard). A change writes each record twice: first a mark, with which the master serves neither set, and later
// the fingerprint of the new set.
//
//     look      reads every record. A third configuration ends the call, and nothing was written
//     mark_new  marks the masters of the new set alone. If the call ends here, the old site goes on
//     mark_old  marks the old masters, and those of both sets. From here on nobody can lock
//     wait      until every admission by an older reading has lapsed, and for as much as the longest lock of the old
//               clients is longer than the guard time of the new clients
//     again     reads the marks again. The call ends if too few are left
//     enter     writes the new fingerprint over the call's own marks, and over nothing else
//     check     reads what the new masters say
//
// Each step but mark_new needs a quorum of each set.
//
// Every mark holds the id of its call, as the quarantine id, and is written only over the very record that the call has
// read. A call that finds a foreign mark ends. A later call writes its marks over those that it finds and waits the
// whole time again; an earlier call that still lives then finds a foreign mark. Only one of two calls can enter: if
// both had looked again with success, each would have had a quorum of marks in a set that the other must enter with a
// quorum of its own marks. When a call looks again, it counts and enters only the masters that were marked when the
// wait began, because for the others it has not waited.
//
// If the first look finds a quorum of new masters entered, the change is over and the call completes it. It marks the
// rest, looks whether a quorum of the new set is still entered, and enters the rest without a wait. Masters whose
// record says `new` are not touched, so clients of the new set keep their locks.
//
// A change may be broken off anywhere, and then be repeated, or be undone by the opposite change. A request that a call
// has sent before it gave up does nothing when it arrives after another call has written. test/model/move.pml searches
// for counterexamples.
//
// A takeover (site/adoption) is the same change where the old set is known only by its masters' records: the masters
// that it takes over are in the new set, and count for the old one. They alone are asked and written, by one client.
// The ids of its marks begin with adopted_id. So a later takeover can tell masters that an earlier one has found to be
// of the old set from masters that a change has marked although they were of the new set alone.
//
// The class owns nothing and does no I/O. Drivers move its two clients, one for each set and both without a guard;
// step() is called after their turns.
#pragma once
#include <redlock/site.h>

#include "client/client.hpp"

namespace redlock {

class Reconfiguration {
 public:
  enum class Stage : uint8_t { look, mark_new, mark_old, wait, again, enter, check, over };

  // One set of masters, and what each has answered to its last step.
  struct Side {
    Side(Client& client_given, Masters masters, unsigned needed_given);
    int why_not(MasterIndex m) const;  // 0: it did what it was last asked to do
    Client& client;
    unsigned needed;  // each step needs so many
    Masters members;
    Masters open;  // asked for the present step, and not done with it
    Masters asked;
    Masters done;
    int16_t err[REDLOCK_MASTERS_MAX] = {};  // why a master that answered is not done
  };

  struct Takeover {
    Bytes from;       // the fingerprint that the masters' records name. It must outlive the change
    Masters masters;  // of the client, and each a server of its own
    unsigned needed;  // each step needs so many of them
    Duration wait;
  };
  // The first digit of a quarantine id that a takeover has drawn. The other ids have small letters.
  static constexpr char adopted_id = 'A';

  // seed: random bits, from which the quarantine ids are drawn.
  Reconfiguration(Client& old_set, Client& new_set, uint64_t seed, Instant now);
  Reconfiguration(Client& set, const Takeover& takeover, uint64_t seed, Instant now);

  void step(Instant now);
  void clock_jumped(Instant now);  // the wait begins anew
  bool over() const { return stage_ == Stage::over; }
  Stage stage() const { return stage_; }
  Instant until() const { return until_; }  // the present step takes no longer
  // When over: how many new masters were not written, or enum redlock_err.
  int result() const { return result_; }
  bool mends() const { return mends_; }  // the first look found the change over
  uint32_t written() const { return written_; }  // how far it came: REDLOCK_WRITTEN_*
  const Side& old_side() const { return old_; }
  const Side& new_side() const { return new_; }

  // Was each of these masters tried, and is none of them connected? Then they are not worth the wait.
  static bool settled(const Client& client, Masters open);
  // How long a step may take that masters must answer.
  static Duration patience_of(const CommonSettings& settings);
  // How long it waits between the last mark and the second look.
  static Duration wait_between(const CommonSettings& old_set, const CommonSettings& new_set);

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
  const Bytes old_text_;  // the fingerprints
  const Bytes new_text_;
  const bool takes_over_;
  Random ids_;
  Duration patience_;  // for one step
  Duration between_;
  Instant until_;         // of the present step
  Masters twins_;         // new masters that are old masters, too
  Stage stage_ = Stage::look;
  bool mends_ = false;
  bool lost_ = false;   // a master has lost its mark
  uint8_t written_ = REDLOCK_WRITTEN_NOTHING;
  int result_ = 0;
  char id_[Guard::id_size];  // of its marks
};

}  // namespace redlock
