// SPDX-License-Identifier: MIT
//
// Move: can a lock of an old set of masters overlap with one of a new set, while the site is taken from the one to the
// other?
//
// Three masters become five. An operator writes to any of the old ones that it serves neither set, may stop for ever or
// begin again at any moment, and enters the new set when two have left and LAPSE ticks have passed since. An old client
// uses a master for up to LAPSE ticks after it has left, as if nothing had told it; a new client may write the new
// record on a blank master before its time, and uses a master TTL ticks after the record was last written. A lock lasts
// TTL ticks. That a key on a master of both sets stands in the way of the others, too, is not counted on.
//
// Each flag below is one weakened rule; run.sh wants every one of them found out.

#define NO 3
#define NN 5
#define QO 2
#define QN 3
#ifndef TTL
#define TTL 2
#endif
#ifndef LAPSE
#define LAPSE 1
#endif

#ifdef ONE_IS_ENOUGH
#define NEEDED 1
#else
#define NEEDED (NO - QO + 1)
#endif
#ifdef NO_WAIT
#define WAIT 0
#else
#define WAIT LAPSE
#endif
#ifdef SHORT_GUARD
#define G (TTL - 1)
#else
#define G TTL
#endif

mtype = { old, between, new, blank };
mtype serves[NN];
bit moved[NN];   // entered by the operator, not by a client
byte age[NN];    // ticks since the new record was written
byte gone[NO];   // ticks since it left; LAPSE + 1: nobody uses it any more
byte waited;     // ticks for which this call has seen that enough have left
byte old_lock, new_lock;  // ticks that are left of it
byte i;

inline leave(m) {
#ifdef ONE_STEP
  serves[m] = new;
  moved[m] = 1;
  age[m] = 0;
#else
  serves[m] = between;
#endif
  gone[m] = 0;
  printf("master %d: leaves\n", m)
}

inline enter(m) {
  serves[m] = new;
  moved[m] = 1;
  age[m] = 0;
  printf("master %d: enters\n", m)
}

#define enough ((serves[0] != old) + (serves[1] != old) + (serves[2] != old) >= NEEDED)
#ifdef NEW_FIRST
#define may_enter(m) (!moved[m])
#else
#define may_enter(m) (!moved[m] && enough && waited >= WAIT && serves[m] != old)
#endif

proctype operator() {
  do
  :: d_step { waited > 0 -> waited = 0; printf("operator: begins again\n") }
  :: d_step { serves[0] == old -> leave(0) }
  :: d_step { serves[1] == old -> leave(1) }
  :: d_step { serves[2] == old -> leave(2) }
  :: d_step { may_enter(0) -> enter(0) }
  :: d_step { may_enter(1) -> enter(1) }
  :: d_step { may_enter(2) -> enter(2) }
  :: d_step { may_enter(3) -> enter(3) }
  :: d_step { may_enter(4) -> enter(4) }
  od
}

inline find_blank(m) {
  serves[m] = new;
  age[m] = 0;
  printf("master %d: is found blank\n", m)
}

#define old_vote(m) (serves[m] == old || gone[m] <= LAPSE)
#define new_vote(m) (serves[m] == new && age[m] >= G)
#define old_quorum (old_vote(0) + old_vote(1) + old_vote(2) >= QO)
#define new_quorum (new_vote(0) + new_vote(1) + new_vote(2) + new_vote(3) + new_vote(4) >= QN)

proctype clients() {
  do
  :: d_step { serves[3] == blank -> find_blank(3) }
  :: d_step { serves[4] == blank -> find_blank(4) }
  :: d_step { old_quorum -> old_lock = TTL; printf("an old lock\n"); assert(new_lock == 0) }
#ifdef CAN_MOVE
  :: d_step { new_quorum -> assert(!(new_lock == 0)) }
#endif
  :: d_step { new_quorum -> new_lock = TTL; printf("a new lock\n"); assert(old_lock == 0) }
  od
}

proctype clock() {
  do
  :: d_step {
    true ->
    for (i : 0 .. NN - 1) {
      age[i] = (age[i] < G -> age[i] + 1 : G)
    };
    for (i : 0 .. NO - 1) {
      gone[i] = (gone[i] <= LAPSE -> gone[i] + 1 : gone[i])
    };
    i = 0;
    waited = (enough && waited < WAIT -> waited + 1 : waited);
    old_lock = (old_lock > 0 -> old_lock - 1 : 0);
    new_lock = (new_lock > 0 -> new_lock - 1 : 0);
    printf("tick\n")
  }
  od
}

init {
  atomic {
    for (i : 0 .. NN - 1) {
      serves[i] = (i < NO -> old : blank)
    };
    for (i : 0 .. NO - 1) {
      gone[i] = LAPSE + 1
    };
    i = 0;
    run operator();
    run clients();
    run clock()
  }
}
