// SPDX-License-Identifier: MIT
//
// Move: can a lock of one set of masters overlap with a lock of another, while operators take the site from set to set,
// and masters come back as they were?
//
// What it shows. Up to two calls of redlock_reconfigure() at a time: equal, opposite, or to a third set. A call may
// stop for ever at any step, and a new one takes its place, any number of times. Each write and each look of each call
// on each master is one step here, so two calls overlap in every order. The sets have one to four masters, may have
// masters in common, and one of them may have a longer longest ttl (LONG). Masters come back as they were, REVERTS
// times in all: the record is gone, or is one that the master had before: a set's, a dead call's mark, a living call's
// own mark. Gateways of a set begin when a call has led there, and the others end some time later. No order leads to
// two locks of different sets at one instant.
//
// What it leaves out. Progress: CAN_MOVE, CAN_UNDO and CAN_RETURN find only that calls can succeed. That a key on a
// master of both sets stands in the way of the other set's clients.
//
// What it allows beyond the code. Whatever is not needed for exclusion is not asked for, so that fewer states show
// more. The first look decides nothing: a call marks any record but a third configuration's, old and new masters in any
// order, also long after it has looked, and waits when it likes. It enters as few new masters as it likes, and the
// third look asks old masters alone. Clients do not watch a master that came back before they use it. Without REVERTS
// the gateways of all sets run all the time.
//
// The rules that are left. Every mark bears the id of its call, and counts as long as it stands unbroken: nobody has
// written since, and the master has not come back, not even with this mark. When the call has waited, it looks again.
// When a quorum of each set still bears marks from before the wait, it enters new masters that it has looked at again,
// where its mark still stands. The third look asks master by master: a quorum of old masters must bear what the call
// wrote last, a mark or, where a master is in both sets, the new record, and unbroken. Then the gateways of the new set
// begin. Whoever operates the site keeps two rules: running gateways have the old or the new set of each call, from its
// beginning to its end; and no master comes back that is `kept`.
//
// Time. Clients go on using a master that was marked or came back, as if nothing had told them, until the time of a
// wait has passed. Clients of a set take their first lock there no sooner than a longest ttl after the master was
// entered, by the guard. So two locks of sets with equal longest ttls can meet only if both sets have, at one instant,
// a quorum of masters that are theirs or still used. That is what is searched for, and no lock, ttl or guard time is
// needed to say it. The longer ttl of set LONG makes its clients' locks last beyond that. So what they used stays used
// until the time of a longer wait has passed, and a call that leaves this set waits for as long.
//
// Each flag below is one weakened rule or a named hole; run.sh wants every one of them found out.

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
#ifndef REVERTS
#define REVERTS 0
#endif
#ifndef LONG
#define LONG 0
#endif
#define LONG_BIT (LONG -> 1 << LONG : 0)
#define BLANK 0
#if SET3 || defined(ID_OF_CHANGE)
#define mark_of(s, t) ((s) * 4 + (t))  // above all sets
#else
#define mark_of(s, t) 4  // of which change is the same to all
#endif

// The stages of a call.
#define IDLE 0
#define MARK 1
#define WAIT 2
#define AGAIN 3
#define ENTER 4
#define CHECK 5

// What a call knows of a master.
#define UNKNOWN 0    // nothing that is of any use to it
#define MARKED 1     // its mark stands there unbroken, and was written in time
#define SEEN 2       // ... and the second look has seen it
#define SEEN_GONE 3  // ... and it does not stand there any more
#define BACK 4       // ... and it stands there again, because the master came back
#define ENTERED 5    // it has entered this master, and what it wrote stands there unbroken

byte record[NM];  // BLANK, a set, or a mark
byte used[NM];    // a bit for each set whose clients use the master, although its record does not say so
#if REVERTS
byte reverts;
short had[NM];    // a bit for each record that the master had
byte runs = 2;    // a bit for each set whose gateways run
byte now_at = 1;  // the set that the last call has led to
#else
#define runs 14
#endif
byte stage[CALLS], old[CALLS], new[CALLS];
byte counted[CALLS];  // by the third look: a bit for each master
byte at[CALLS * NM];
bit moved;
byte i, j;

#define knows(c, m) at[(c) * NM + (m)]
#define mask(s) (s == 1 -> SET1 : (s == 2 -> SET2 : (s == 3 -> SET3 : 0)))
#define has(s, m) ((mask(s) >> (m)) & 1)
#define bits(k) (((k) & 1) + ((k) >> 1 & 1) + ((k) >> 2 & 1) + ((k) >> 3 & 1) + ((k) >> 4 & 1))
#define quorum(s) (bits(mask(s)) / 2 + 1)
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
#define says_new(c, m) (record[m] == new[c])
#define was_seen(c, m) (knows(c, m) == SEEN || knows(c, m) == SEEN_GONE || knows(c, m) == BACK)

// ---- writes -------------------------------------------------------------------------------------------------------

#ifdef BROKEN_MARKS
#define useless(c, m) 0
#else
#define useless(c, m) (stage[c] >= ENTER && !has(new[c], m))  // it cannot enter where its mark was
#endif

// The master has another record. What stood there is gone, and running clients who used it have not heard of that.
inline write(m, r) {
  used[m] = (used[m] | (is_mark(m) -> 0 : 1 << record[m]) & runs) & ~(1 << r);
  record[m] = r;
#if REVERTS
  had[m] = had[m] | 1 << r & ~1;
#endif
  for (j : 0 .. CALLS - 1) {
    if
    :: knows(j, m) == MARKED || knows(j, m) == SEEN && useless(j, m) -> knows(j, m) = UNKNOWN
    :: knows(j, m) == SEEN && !useless(j, m) || knows(j, m) >= BACK -> knows(j, m) = SEEN_GONE
    :: else
    fi
  };
  j = 0
}

inline mark(c, m, known) {
#ifdef ONE_STEP
  write(m, new[c]);
#else
  write(m, own_mark(c));
#endif
  knows(c, m) = known;
  printf("call %d: marks master %d\n", c, m)
}

// A new master that was entered over a mark that had come back is of no use to the third look.
inline enter(c, m) {
  i = knows(c, m);
  write(m, new[c]);
#ifdef ENTERED_AFRESH
  knows(c, m) = ENTERED;
#else
  knows(c, m) = (i == SEEN && has(old[c], m) -> ENTERED : SEEN_GONE);
#endif
  i = 0;
  printf("call %d: enters master %d\n", c, m)
}

// ---- calls --------------------------------------------------------------------------------------------------------

inline begin(c, s, t) {
  forget(c);
  stage[c] = MARK;
  old[c] = s;
  new[c] = t;
  printf("call %d: from set %d to set %d\n", c, s, t)
}

inline forget(c) {
  stage[c] = IDLE;
  old[c] = 0;
  new[c] = 0;
  counted[c] = 0;
  for (i : 0 .. NM - 1) {
    knows(c, i) = UNKNOWN
  };
  i = 0
}

// Running gateways have the old or the new set. Nothing more can be got from another call to the same sets that has not
// done anything yet.
#if REVERTS && !defined(OTHER_OLD)
#define right_sets(s, t) ((runs & ~(1 << s | 1 << t)) == 0)
#else
#define right_sets(s, t) 1
#endif
#define may_begin(c, s, t) (right_sets(s, t) && (stage[c] != MARK || old[c] != s || new[c] != t))

#ifdef NO_SECOND_LOOK
#define not_looked_at SEEN
#else
#define not_looked_at UNKNOWN
#endif
inline go_on(c) {
  stage[c] = ENTER;
  for (i : 0 .. NM - 1) {
    if
    :: knows(c, i) == MARKED -> knows(c, i) = not_looked_at
    :: knows(c, i) == SEEN_GONE && useless(c, i) -> knows(c, i) = UNKNOWN
    :: else
    fi
  };
  i = 0;
  printf("call %d: has looked again\n", c)
}

#ifdef NO_SECOND_LOOK
#define may_go_on(c) (stage[c] == AGAIN)
#else
#define may_go_on(c) (stage[c] == AGAIN && total(was_seen, old[c], c) >= quorum_of_old(old[c]) && \
  total(was_seen, new[c], c) >= quorum(new[c]))
#endif

#ifdef NO_THIRD_LOOK
#define may_end(c) (stage[c] == ENTER)
#elif defined(NEW_ALONE)
#define counts(c, m) (has(new[c], m) && says_new(c, m))
#define may_end(c) (bits(counted[c]) >= quorum(new[c]))
#elif defined(SHORTCUT)
#define may_end(c) (stage[c] == MARK && total(says_new, new[c], c) >= quorum(new[c]) || third_look(c))
#else
#define may_end(c) third_look(c)
#endif
#define third_look(c) (stage[c] == CHECK && bits(counted[c]) >= quorum(old[c]))
#ifdef TWIN_SAYS_NEW
#define counts(c, m) (has(old[c], m) && (knows(c, m) == SEEN || says_new(c, m)))
#elif !defined(NEW_ALONE)
#define counts(c, m) (has(old[c], m) && (knows(c, m) == SEEN || knows(c, m) == ENTERED))
#endif

#if REVERTS
// Before the gateways begin, the operator ends another call between other sets.
inline end_well(c) {
  now_at = new[c];
  runs = runs | 1 << now_at;
  forget(c);
  printf("call %d: is done; the gateways of set %d begin\n", c, now_at);
  for (j : 0 .. CALLS - 1) {
    if
    :: stage[j] != IDLE && !right_sets(old[j], new[j]) -> forget(j)
    :: else
    fi
  };
  j = 0
}
#endif

proctype call(byte c) {
  do
  :: d_step { may_begin(c, 1, 2) -> begin(c, 1, 2) }
  :: d_step { may_begin(c, 2, 1) -> begin(c, 2, 1) }
#if SET3
  :: d_step { may_begin(c, 1, 3) -> begin(c, 1, 3) }
  :: d_step { may_begin(c, 3, 1) -> begin(c, 3, 1) }
#endif
  :: d_step { stage[c] == MARK -> stage[c] = WAIT; printf("call %d: waits\n", c) }
#ifdef NO_WAIT
  :: d_step { stage[c] == WAIT -> stage[c] = AGAIN }
#endif
  :: d_step { may_go_on(c) -> go_on(c) }
#if REVERTS
  :: d_step { stage[c] == ENTER -> stage[c] = CHECK; printf("call %d: checks\n", c) }
  :: d_step { may_end(c) -> end_well(c) }
#endif
  od
}

#ifdef LATE_SEEN
#define in_time(c) (stage[c] == MARK || stage[c] == ENTER)
#else
#define in_time(c) (stage[c] == MARK)
#endif
#define of_its(c, m) (has(new[c], m) || has(old[c], m))

#ifdef ENTER_OVER_MARKS
#define own_id(c, m) (knows(c, m) == SEEN || was_seen(c, m) && is_mark(m))
#elif defined(ID_OF_CHANGE)
#define own_id(c, m) (was_seen(c, m) && record[m] == own_mark(c))
#elif defined(ABSENT_ID)
#define own_id(c, m) (knows(c, m) == SEEN || record[m] == BLANK)
#elif defined(LATE_SEEN)
#define own_id(c, m) (knows(c, m) == SEEN || knows(c, m) == MARKED)
#elif defined(TWIN_ID_OF_LOOK)
#define own_id(c, m) (knows(c, m) == SEEN && !has(old[c], m))  // the mark has changed what the look read
#else
#define own_id(c, m) (knows(c, m) == SEEN || knows(c, m) == BACK)
#endif
#ifdef ID_OF_CHANGE
#define sees_mark(c, m) (record[m] == own_mark(c))
#else
#define sees_mark(c, m) (knows(c, m) == MARKED)
#endif

proctype link(byte c; byte m) {
  do
  :: d_step { in_time(c) && of_its(c, m) && knows(c, m) == UNKNOWN && !third(c, m) -> mark(c, m, MARKED) }
  // What was sent in time arrives late, also when the call is dead.
  :: d_step { stage[c] > MARK && !in_time(c) && of_its(c, m) && knows(c, m) == UNKNOWN && !third(c, m) && !is_mark(m) ->
       mark(c, m, UNKNOWN) }
  :: d_step { stage[c] == AGAIN && sees_mark(c, m) && !was_seen(c, m) -> knows(c, m) = SEEN }
  :: d_step { stage[c] >= ENTER && has(new[c], m) && own_id(c, m) -> enter(c, m) }
#if REVERTS
  :: d_step { stage[c] == CHECK && !(counted[c] >> m & 1) && counts(c, m) -> counted[c] = counted[c] | 1 << m;
       printf("call %d: counts master %d\n", c, m) }
#endif
  od
}

// ---- clients ------------------------------------------------------------------------------------------------------

#define use(s, m) (record[m] == s || (used[m] >> s & 1))
#define can_lock(s) ((runs >> s & 1) && mask(s) != 0 && total(use, s, s) >= quorum(s))
bit a_lock;

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
#if defined(CAN_UNDO) || defined(CAN_RETURN)
  :: d_step { can_lock(2) -> moved = 1 }
#endif
#ifdef CAN_UNDO
  :: d_step { moved && can_lock(1) -> assert(!(moved)) }
#endif
#ifdef CAN_RETURN
  :: d_step { moved && can_lock(1) && runs == 2 && reverts == REVERTS -> assert(!(moved)) }
#endif
  od
}

// ---- masters that come back, and gateways -------------------------------------------------------------------------

#if REVERTS
#define one_runs (runs == 2 || runs == 4 || runs == 8)
// From a call's third look until the last gateway with its old set has ended, its old masters are kept. When another
// call has begun before that end, all masters are. With three sets all are kept while gateways of two run: which
// set the last call has left does not tell then which ones are left.
#define checked(c, m) (stage[c] == CHECK && has(old[c], m))
#if SET3
#define left(s, m) 1
#else
#define left(s, m) (s != now_at && (runs >> s & 1) && has(s, m))
#endif
#ifdef BOTH_RUN
#define kept(m) (checked(0, m) || checked(CALLS - 1, m))
#else
#ifdef OLD_KEPT_ALONE
#define no_call 1
#else
#define no_call (stage[0] == IDLE && stage[CALLS - 1] == IDLE)
#endif
#define kept(m) (checked(0, m) || checked(CALLS - 1, m) || \
  !one_runs && (!no_call || left(1, m) || left(2, m) || left(3, m)))
#endif

inline come_back(m, r) {
  reverts++;
  write(m, r);
  printf("master %d: comes back with record %d\n", m, r)
}

inline fill(m, s) {
  write(m, s);
  printf("clients of set %d write the record of master %d\n", s, m)
}

#define may_come_back(m) (reverts < REVERTS && !kept(m))
#define with(m, r) (may_come_back(m) && (had[m] >> r & 1))

proctype master(byte m) {
  do
  :: d_step { may_come_back(m) && record[m] != BLANK -> come_back(m, BLANK) }
  :: d_step { with(m, 1) && record[m] != 1 -> come_back(m, 1) }
  :: d_step { with(m, 2) && record[m] != 2 -> come_back(m, 2) }
#if SET3
  :: d_step { with(m, 3) && record[m] != 3 -> come_back(m, 3) }
  :: d_step { with(m, mark_of(1, 2)) -> come_back(m, mark_of(1, 2)) }
  :: d_step { with(m, mark_of(2, 1)) -> come_back(m, mark_of(2, 1)) }
  :: d_step { with(m, mark_of(1, 3)) -> come_back(m, mark_of(1, 3)) }
  :: d_step { with(m, mark_of(3, 1)) -> come_back(m, mark_of(3, 1)) }
#else
  :: d_step { with(m, 4) -> come_back(m, 4) }
#endif
  :: d_step { record[m] == BLANK && has(1, m) && (runs >> 1 & 1) -> fill(m, 1) }
  :: d_step { record[m] == BLANK && has(2, m) && (runs >> 2 & 1) -> fill(m, 2) }
  :: d_step { record[m] == BLANK && has(3, m) && (runs >> 3 & 1) -> fill(m, 3) }
  od
}

#ifdef BROKEN_MARKS
#define back SEEN
#else
#define back BACK
#endif
// The living call's own mark comes back.
proctype own(byte c; byte m) {
  do
  :: d_step { may_come_back(m) && knows(c, m) == SEEN_GONE -> come_back(m, own_mark(c)); knows(c, m) = back }
  od
}

inline end_others() {
  runs = 1 << now_at;
  for (i : 0 .. NM - 1) {
    used[i] = used[i] & runs
  };
  i = 0
}

proctype site() {
  do
  :: d_step { runs != 1 << now_at -> end_others(); printf("only the gateways of set %d run\n", now_at) }
  od
}
#endif

// ---- time ---------------------------------------------------------------------------------------------------------

// A call that has stood still in its third look looks again.
inline wait_over(c) {
  if
  :: stage[c] == WAIT -> stage[c] = AGAIN
#ifndef LOOKS_ONCE
  :: stage[c] == CHECK -> stage[c] = ENTER; counted[c] = 0
#endif
  :: else
  fi
}

#ifdef SHORT_WAIT
#define waits_longer(c) 0
#else
#define waits_longer(c) (stage[c] == WAIT && old[c] == LONG)
#endif

proctype clock() {
  do
  :: d_step {
    true ->
    for (i : 0 .. NM - 1) {
      used[i] = used[i] & LONG_BIT
    };
    for (i : 0 .. CALLS - 1) {
      if
      :: !waits_longer(i) -> wait_over(i)
      :: else
      fi
    };
    i = 0;
    printf("the time of a wait passes\n")
  }
#if LONG
  :: d_step {
    true ->
    for (i : 0 .. NM - 1) {
      used[i] = 0
    };
    for (i : 0 .. CALLS - 1) {
      wait_over(i)
    };
    i = 0;
    printf("the time of a longer wait passes\n")
  }
#endif
  od
}

init {
  atomic {
    for (i : 0 .. NM - 1) {
      record[i] = (has(1, i) -> 1 : BLANK);
#if REVERTS
      had[i] = 1 << record[i] & ~1;
#endif
      if
      :: has(1, i) || has(2, i) || has(3, i) ->
#if REVERTS
        run master(i);
#endif
        for (j : 0 .. CALLS - 1) {
#if REVERTS
          run own(j, i);
#endif
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
#if REVERTS
    run site();
#endif
    run clock()
  }
}
