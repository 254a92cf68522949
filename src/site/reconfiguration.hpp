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
//     check     reads what the new masters say, and whether the old ones still are not the old set's
//     leave     writes on the masters that the third look has counted that the change is done, so that gateways of the
//               old set can say so: on an old one "left", which counts as marked wherever this page says so, and on
//               each when. Nothing else says so, whatever a call that ends earlier has written
//
// Each step but mark_new needs a quorum of each set. No record lets a call skip a step: a record may be one that a
// restart has brought back.
//
// A mark counts only if the call has written it itself, has read it again by its id, and the mark stood unbroken since:
// on the same connection, with the same replication id, and without a push about the record. Else the master may have
// served its set meanwhile, and have come back to the mark. A master of both sets has to stand unbroken until the third
// look: it counts for both only if this call has entered it, over such a mark, and nothing has happened to it since.
//
// Success rests on the third look, so the look must not be old: a call that stood still behind it looks again.
//
// Every mark holds the id of its call, as the quarantine id, and is written only over the very record that the call has
// read. A call that finds a foreign mark ends. A later call writes its marks over those that it finds and waits the
// whole time again; an earlier call that still lives then finds a foreign mark. Only one of two calls can enter.
// Suppose both calls look again with success. Then each set has a quorum with marks of the one call and a quorum with
// marks of the other. The two quorums share a master, and a record has one mark. When a call looks again, it counts and
// enters only the masters that were marked when the wait began, because for the others it has not waited.
//
// A change may be broken off anywhere, and then be repeated, or be undone by the opposite change. A request that a call
// has sent before it gave up does nothing when it arrives after another call has written. test/nightly/model/move.pml
// searches for counterexamples.
//
// The class owns nothing and does no I/O. Drivers move its two clients, one for each set and both without a guard;
// step() is called after their turns, with the time by the clock of each: what one client is asked to send is no older
// than what it has sent before.
#pragma once
#include <redlock/site.h>

#include "client/client.hpp"

namespace redlock {

class Reconfiguration {
 public:
  enum class Stage : uint8_t { look, mark_new, mark_old, wait, again, enter, check, leave, over };

  // What a master has answered to the script.
  struct Heard : Listener {
    Heard() : Listener{take} {}
    static void take(Listener& self, const resp::Item& item);
    Bytes id() const { return Bytes(digits, id_size); }
    int said = 0;  // what its record says, as a letter; or enum redlock_err. 0: nothing yet
    uint8_t id_size = 0;
    char digits[Guard::id_size];  // of the quarantine id in its record
  };

  // One set of masters, and what each has answered to its last step.
  struct Side {
    Side(Client& client_given, Masters masters, unsigned needed_given);
    int why_not(MasterIndex m) const;  // 0: it did what it was last asked to do
    Client& client;
    Instant now;      // by the client's own clock
    unsigned needed;  // each step needs so many
    Masters members;
    Masters open;  // asked for the present step, and not done with it
    Masters asked;
    Masters done;
    Masters written;  // answered that it bears our mark: is read again
    Masters spared;  // the call ended for other reasons before they could answer
    int16_t err[REDLOCK_MASTERS_MAX] = {};  // why a master that answered is not done
    uint32_t changes[REDLOCK_MASTERS_MAX] = {};  // Session::record_changes() when it bore our mark, or our entry
    Masters whole;    // one connection since our mark
    Masters entered;  // answered that this call has entered it: is read again
    Masters says_new;
    char entry[REDLOCK_MASTERS_MAX][Guard::id_size];  // the quarantine id that enters it
    Heard heard[REDLOCK_MASTERS_MAX];
  };

  // seed: random bits, from which the quarantine ids are drawn.
  Reconfiguration(Client& old_set, Client& new_set, uint64_t seed, Instant now);

  void step(Instant now, Instant new_now);  // now is the old set's client's; everything is timed by it
  // With the next step() the wait begins anew. Nothing is asked here, because the new set's client has told no time.
  void clock_jumped(Instant) { jumped_ = true; }
  bool over() const { return stage_ == Stage::over; }
  Stage stage() const { return stage_; }
  Instant until() const { return until_; }  // the present step takes no longer
  // When over: how many new masters were not written, or enum redlock_err.
  int result() const { return result_; }
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
  void ask(Side& side);
  void hear(Side& side, MasterIndex m);
  void see_connections();
  bool stands_entered(MasterIndex m) const;
  void count_twins();
  bool due(Instant now) const;
  void next(Instant now);
  void after_look(Instant now);
  void after_jump(Instant now);
  void begin(Stage stage, Masters old_masters, Masters new_masters, Instant now);
  void finish(int result);
  void too_few(Instant now);
  void draw_id(char* id);
  void write_names();
  void give_up(int result);
  void look_again(Instant now);
  void leave(Instant now);
  bool stood_still(Instant now) const { return now > until_ + patience_; }

  Side old_;
  Side new_;
  const Bytes old_text_;  // the fingerprints
  const Bytes new_text_;
  Random ids_;
  Duration patience_;  // for one step
  Duration between_;
  Instant until_;         // of the present step
  Masters twins_;         // new masters that are old masters, too
  Masters marked_;        // old masters that bore our mark at the third look
  Stage stage_ = Stage::look;
  bool lost_ = false;     // a master has lost its mark
  bool jumped_ = false;   // and step() was not called since
  bool third_ = false;    // a master bears the record of a third configuration
  uint8_t written_ = REDLOCK_WRITTEN_NOTHING;
  int result_ = 0;
  char id_[Guard::id_size];  // of its marks
  char names_[2 * names_max + 3];  // of both sets: "a,b,c > a,b,d"
  size_t names_size_ = 0, new_names_at_ = 0;
};

}  // namespace redlock
