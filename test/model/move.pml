// SPDX-License-Identifier: MIT
//
// Move: can a lock of one set of masters overlap with a lock of another, while operators take the site from set to set?
//
// What it shows. Two calls of redlock_reconfigure() at a time, each between any two sets: equal, opposite, or to a
// third set. A call may stop for ever at any step, and a new one takes its place, any number of times. Each write and
// each second look of each call on each master is one step here, so two calls overlap in every order. The sets have one
// to four masters, even numbers too, and may have masters in common. A master may lose its record, and clients write a
// new one. No order leads to two locks of different sets at one instant.
//
// What it leaves out. Progress: CAN_MOVE, CAN_UNDO and CAN_MEND find only that calls can succeed. Sets with different
// longest ttls. That a key on a master of both sets stands in the way of the other set's clients. Copies that bring a
// record back: ids are random, and one that is gone never returns.
//
// What it allows beyond the code. Whatever is not needed for exclusion is not asked for, so that fewer states show
// more. The first look decides nothing: a call marks any record but a third configuration's, old and new masters in any
// order, also long after it has looked; it waits when it likes, and takes a change for one to be mended when it likes.
// The code compares what it looked at, marks new masters first, and ends at a foreign id: for progress, and so that a
// call that must fail does so while the old site serves.
//
// The rules that are left. Every mark bears the id of its call. WAIT ticks after the call has begun to wait, it looks
// again at the marks that it had written until then. When a quorum of each set still bears them, it enters new masters
// that it has looked at again, where its mark still stands. A call that mends marks new masters, finds then that a
// quorum of new masters was entered, and enters those where its own mark stands.
//
// Time. Clients go on using a marked master for a while, as if nothing had told them; the wait is as long as that.
// Clients of a set take their first lock there no sooner than a longest ttl after the master was entered, by the guard.
// So two locks of different sets can meet only if two sets have, at one instant, a quorum of masters that are theirs or
// still used. That is what is searched for, and no lock, ttl or guard time is needed to say it.
//
// A loss of an old master's mark that the second look has seen is a documented hole: LATE_LOSS. Each other flag below
// is one weakened rule; run.sh wants every one of them found out.

// The sets, as masks of masters: 1 is the one that serves at first.
#ifndef SET1
#define SET1 7
#endif
#ifndef SET2
#define SET2 11
#endif
#ifndef SET3
#define SET3 0
#endif
#define NM 5
#ifndef CALLS
#define CALLS 2
#endif
#ifndef LOSSES
#define LOSSES 0
#endif
#define BLANK 0
#if SET3 || defined(ID_OF_CHANGE)
#define mark_of(s, t) ((s) * 4 + (t))  // above all sets
#else
#define mark_of(s, t) 4  // of which change is the same to all
#endif

// The stages of a call.
#define IDLE 0
#define MARKS 1
#define WAITS 2  // looks again when it has waited
#define ENTERS 3
#define MEND_MARKS 4
#define MEND_LOOKS 5
#define MEND_ENTERS 6

// What a call knows of a master.
#define UNKNOWN 0      // nothing that is of any use to it
#define MARKED 1       // its mark stands there, and was written in time
#define SEEN 2         // ... and the second look has seen it
#define SEEN_GONE 3    // ... and somebody has written since
#define SEEN_ENTERED 4  // the second look of a call that mends

byte record[NM];    // BLANK, a set, or a mark
byte used[NM];      // a bit for each set whose clients have not heard of its mark
#ifdef MENDING
byte origin[NM];    // the set that it was entered from; 0: written by clients
#define set_origin(m, s) origin[m] = s
#define entered(c, m) (record[m] == new[c] && origin[m] == old[c])
#else
#define set_origin(m, s) skip
#endif
#if LOSSES
byte losses;
bit passed;  // some call's second look has succeeded
#endif
byte stage[CALLS], old[CALLS], new[CALLS];
bit waited[CALLS];
byte at[CALLS * NM];
#ifdef CAN_UNDO
bit moved;
#endif
#ifdef CAN_MEND
bit mended;
#endif
byte i, j;

#define knows(c, m) at[(c) * NM + (m)]
#define mask(s) (s == 1 -> SET1 : (s == 2 -> SET2 : SET3))
#define has(s, m) ((mask(s) >> (m)) & 1)
#define bits(k) (((k) & 1) + ((k) >> 1 & 1) + ((k) >> 2 & 1) + ((k) >> 3 & 1) + ((k) >> 4 & 1))
#define quorum(s) (s == 1 -> bits(SET1) / 2 + 1 : (s == 2 -> bits(SET2) / 2 + 1 : bits(SET3) / 2 + 1))
#ifdef BLOCKING_SET
#define quorum_of_old(s) (bits(mask(s)) - quorum(s) + 1)
#else
#define quorum_of_old(s) quorum(s)
#endif
#define total(f, s, c) ((has(s, 0) && f(c, 0)) + (has(s, 1) && f(c, 1)) + (has(s, 2) && f(c, 2)) + \
  (has(s, 3) && f(c, 3)) + (has(s, 4) && f(c, 4)))

// ---- what a record says to a call ---------------------------------------------------------------------------------

#define own_mark(c) mark_of(old[c], new[c])
#define is_mark(m) (record[m] >= 4)
#define third(c, m) (record[m] != BLANK && record[m] != old[c] && record[m] != new[c] && record[m] != own_mark(c) && \
  record[m] != mark_of(new[c], old[c]))

#define was_seen(c, m) (knows(c, m) == SEEN || knows(c, m) == SEEN_GONE)
#define was_entered(c, m) (knows(c, m) == SEEN_ENTERED)

// ---- writes -------------------------------------------------------------------------------------------------------

#ifdef ID_OF_CHANGE
#define sees_mark(c, m) (record[m] == own_mark(c))
#else
#define sees_mark(c, m) (knows(c, m) == MARKED)
#endif

// The marks that stood there are gone. The writer sets its own part afterwards.
inline written(m) {
  for (j : 0 .. CALLS - 1) {
    knows(j, m) = (knows(j, m) == MARKED -> UNKNOWN : (knows(j, m) == SEEN -> SEEN_GONE : knows(j, m)))
  };
  j = 0
}

#define leave(m) used[m] = used[m] | (record[m] == BLANK || is_mark(m) -> 0 : 1 << record[m])

inline mark(c, m) {
  leave(m);
#ifdef ONE_STEP
  record[m] = new[c];
#else
  record[m] = own_mark(c);
#endif
  set_origin(m, old[c]);
  written(m);
  printf("call %d: marks master %d\n", c, m)
}

inline enter(c, m) {
  leave(m);
  record[m] = new[c];
  set_origin(m, old[c]);
  written(m);
#ifdef CAN_MEND
  mended = (stage[c] == MEND_ENTERS);
#endif
  printf("call %d: enters master %d\n", c, m)
}

// ---- calls --------------------------------------------------------------------------------------------------------

inline begin(c, s, t, first) {
  stage[c] = first;
  old[c] = s;
  new[c] = t;
  waited[c] = 0;
  for (i : 0 .. NM - 1) {
    knows(c, i) = UNKNOWN
  };
  i = 0;
  if
  :: first == MARKS -> printf("call %d: from set %d to set %d\n", c, s, t)
  :: else -> printf("call %d: mends the change from set %d to set %d\n", c, s, t)
  fi
}

// Nothing more can be got from another call to the same sets that has not done anything yet.
#define may_begin(c, s, t) (stage[c] != MARKS || old[c] != s || new[c] != t)
#define may_mend(c, s, t) (stage[c] != MEND_MARKS || old[c] != s || new[c] != t)

inline go_on(c) {
#if LOSSES
  passed = 1;
#endif
#ifdef NO_SECOND_LOOK
  for (i : 0 .. NM - 1) {
    knows(c, i) = (knows(c, i) == MARKED -> SEEN : knows(c, i))
  };
  i = 0;
#endif
  stage[c]++;
  printf("call %d: has looked again\n", c)
}

#ifdef NO_WAIT
#define has_waited(c) (stage[c] == WAITS)
#else
#define has_waited(c) (stage[c] == WAITS && waited[c])
#endif
#ifdef NO_SECOND_LOOK
#define may_go_on(c) has_waited(c)
#else
#define may_go_on(c) (has_waited(c) && total(was_seen, old[c], c) >= quorum_of_old(old[c]) && \
  total(was_seen, new[c], c) >= quorum(new[c]))
#endif
#ifdef MEND_UNCHECKED
#define may_mend_on(c) (stage[c] == MEND_LOOKS)
#else
#define may_mend_on(c) (stage[c] == MEND_LOOKS && total(was_entered, new[c], c) >= quorum(new[c]))
#endif

proctype call(byte c) {
  do
  :: d_step { may_begin(c, 1, 2) -> begin(c, 1, 2, MARKS) }
  :: d_step { may_begin(c, 2, 1) -> begin(c, 2, 1, MARKS) }
#ifdef MENDING
  :: d_step { may_mend(c, 1, 2) -> begin(c, 1, 2, MEND_MARKS) }
  :: d_step { may_mend(c, 2, 1) -> begin(c, 2, 1, MEND_MARKS) }
#endif
#if SET3
  :: d_step { may_begin(c, 1, 3) -> begin(c, 1, 3, MARKS) }
  :: d_step { may_begin(c, 3, 1) -> begin(c, 3, 1, MARKS) }
#endif
  :: d_step { stage[c] == MARKS -> stage[c] = WAITS; printf("call %d: waits\n", c) }
  :: d_step { may_go_on(c) -> go_on(c) }
  :: d_step { stage[c] == MEND_MARKS -> stage[c] = MEND_LOOKS }
  :: d_step { may_mend_on(c) -> go_on(c) }
  od
}

#ifdef LATE_SEEN
#define in_time(c) (stage[c] == MARKS || stage[c] == MEND_MARKS || stage[c] == ENTERS)
#else
#define in_time(c) (stage[c] == MARKS || stage[c] == MEND_MARKS)
#endif
#define of_its(c, m) (has(new[c], m) || (stage[c] < MEND_MARKS && has(old[c], m)))

#ifdef ENTER_OVER_MARKS
#define own_id(c, m) (knows(c, m) == SEEN || (was_seen(c, m) && is_mark(m)))
#elif defined(ID_OF_CHANGE)
#define own_id(c, m) (was_seen(c, m) && record[m] == own_mark(c))
#elif defined(ABSENT_ID)
#define own_id(c, m) (knows(c, m) == SEEN || record[m] == BLANK)
#elif defined(LATE_SEEN)
#define own_id(c, m) (knows(c, m) == SEEN || knows(c, m) == MARKED)
#elif defined(TWIN_ID_OF_LOOK)
#define own_id(c, m) (knows(c, m) == SEEN && !has(old[c], m))  // the mark has changed what the look read
#else
#define own_id(c, m) (knows(c, m) == SEEN)
#endif
#define may_enter(c, m) (has(new[c], m) && (stage[c] == ENTERS && own_id(c, m) || \
  stage[c] == MEND_ENTERS && knows(c, m) == MARKED))

proctype link(byte c; byte m) {
  do
  :: d_step { stage[c] != IDLE && in_time(c) && of_its(c, m) && knows(c, m) == UNKNOWN && !third(c, m) -> mark(c, m);
       knows(c, m) = MARKED }
  // What was sent in time arrives late, also when the call is dead.
  :: d_step { stage[c] != IDLE && !in_time(c) && of_its(c, m) && knows(c, m) == UNKNOWN && !third(c, m) &&
       !is_mark(m) -> mark(c, m) }
  :: d_step { has_waited(c) && sees_mark(c, m) && !was_seen(c, m) -> knows(c, m) = SEEN }
#ifdef MENDING
  :: d_step { stage[c] == MEND_LOOKS && has(new[c], m) && knows(c, m) == UNKNOWN && entered(c, m) ->
       knows(c, m) = SEEN_ENTERED }
#endif
  :: d_step { may_enter(c, m) -> enter(c, m) }
  od
}

// ---- clients ------------------------------------------------------------------------------------------------------

#define use(s, m) (record[m] == s || (used[m] >> (s) & 1))
#define can_lock(s) (mask(s) != 0 && total(use, s, s) >= quorum(s))
bit a_lock;

// Clients that were started before their set is served write their record on masters that have none. Where they found a
// quorum of those, nothing could help.
#define new_alone(m) (has(2, m) && !has(1, m))
#ifdef EARLY
#define may_fill(m) new_alone(m)
#else
#define may_fill(m) 0
#endif

inline fill(m, s) {
  record[m] = s;
  set_origin(m, 0);
  written(m);
  printf("clients of set %d write the record of master %d\n", s, m)
}

#if LOSSES
inline lose(m) {
  losses++;
  leave(m);
  record[m] = BLANK;
  set_origin(m, 0);
  written(m);
  printf("master %d: loses its record\n", m)
}
#endif

#ifdef LATE_LOSS
#define may_lose(m) 1
#else
#define not_looked_at(m) (!passed && !was_seen(0, m) && !was_seen(CALLS - 1, m))
#define may_lose(m) (not_looked_at(m) || (!has(1, m) && !may_fill(m)))
#endif

proctype clients() {
  do
  :: d_step { can_lock(1) && can_lock(2) -> a_lock = 1; assert(a_lock == 0) }
#if SET3
  :: d_step { can_lock(1) && can_lock(3) -> a_lock = 1; assert(a_lock == 0) }
  :: d_step { can_lock(2) && can_lock(3) -> a_lock = 1; assert(a_lock == 0) }
#endif
#ifdef CAN_MOVE
  :: d_step { can_lock(2) -> a_lock = 1; assert(!(a_lock)) }
#endif
#ifdef CAN_UNDO
  :: d_step { can_lock(2) -> moved = 1 }
  :: d_step { moved && can_lock(1) -> assert(!(moved)) }
#endif
#ifdef CAN_MEND
  :: d_step { mended -> assert(!(mended)) }
#endif
  od
}

proctype master(byte m) {
  do
#if LOSSES
  :: d_step { losses < LOSSES && record[m] != BLANK && may_lose(m) -> lose(m) }
  :: d_step { record[m] == BLANK && has(1, m) && losses > 0 -> fill(m, 1) }
#endif
  :: d_step { record[m] == BLANK && may_fill(m) -> fill(m, 2) }
  od
}

proctype clock() {
  do
  :: d_step {
    true ->
    for (i : 0 .. NM - 1) {
      used[i] = 0
    };
    for (i : 0 .. CALLS - 1) {
      waited[i] = (stage[i] == WAITS)
    };
    i = 0;
    printf("the time of a wait passes\n")
  }
  od
}

init {
  atomic {
    for (i : 0 .. NM - 1) {
      record[i] = (has(1, i) -> 1 : BLANK);
      if
      :: has(1, i) || has(2, i) || has(3, i) ->
        run master(i);
        for (j : 0 .. CALLS - 1) {
          run link(j, i)
        };
        j = 0
      :: else
      fi
    };
    for (i : 0 .. CALLS - 1) {
      run call(i)
    };
    i = 0;
    run clients();
    run clock()
  }
}
