// SPDX-License-Identifier: MIT
//
// Tokens: is a fencing token ever given twice, or smaller than one that was given before its acquire began?
//
// NA acquires of one resource on three masters, each begun at most once, by as many clients. There is no time at all: a
// lock key may vanish at any instant, so any number of acquires may believe in the lock at once, and nothing below
// leans on exclusion, clocks or delays. So a master may grant to anybody at any moment, as if the key had just
// vanished, and refuse anybody. A request is read at any moment after it was sent, or never, also long after its
// acquire has ended; a reply is lost or comes. (One that comes after the decision is lost.) Proposals of the fast path
// are arbitrary: none, a stale one, one that is ahead. An acquire gives up only where somebody waits for that; else
// giving up and saying nothing are the same.
//
// A master may lose its counter (restart, FLUSHALL). What is assumed of the guard, and shown in guard.pml, is
// one sentence: such a master votes again only when every acquire that used it before is over. An acquire uses the
// masters that vote when it begins, under the seals they have then (the pin); a request under an older seal does
// nothing.
//
// FLOOR adds the floor: with too few known counters the token comes from the server's clock, which here says anything.
// Such a token is flagged, and nothing is claimed for it. Of two acquires and no loss, the later one's token without
// the flag is above the earlier one's, flagged or not. For three acquires and a loss this does not hold: when the
// second one's flagged token is too small, the third one's has no flag and may be the first one's (LATER_THAN_FLOOR).
//
// Each other flag below is one weakened rule; run.sh wants every one of them found out.

#ifndef NA
#define NA 2
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#define NM 3
#define QUORUM (NM / 2 + 1)

#define FREE 0
#define VALUE(a) ((a) + 1)

#define IDLE 0
#define ASKING 1   // the names are asked for, with a proposal
#define STORING 2  // a quorum granted, a larger token is being stored
#define OVER 3

// A request: not there, or not yet read.
#define NONE 0
#define ASK 1
#define GRANTED 2
#define STORE 3

#define at(a, m) ((a) * NM + (m))
#define bit_of(t) (1 << (t))

byte key[NM];
byte counter[NM];
bit known[NM];  // the seal beside the counter is the present one
bit votes[NM];  // admitted by the guard
byte losses;

byte state[NA];
byte proposal[NA];
byte token[NA];
byte before[NA];   // the largest token given before this acquire began
bit pinned[NA * NM];
byte request[NA * NM];
byte grants[NA], acks[NA], knowns[NA], top[NA];
#ifdef FLOOR
bit floored[NA];
#endif

byte largest;
short given;  // one bit per token
byte i, j;

// ---- the client -------------------------------------------------------------------------------------------------

inline begin(a, p) {
  state[a] = ASKING;
  proposal[a] = p;
  before[a] = largest;
  for (i : 0 .. NM - 1) {
    if
    :: votes[i] -> pinned[at(a, i)] = 1; request[at(a, i)] = ASK
    :: else
    fi
  };
  i = 0;
  printf("client %d: begins, proposes %d\n", a, p)
}

#define asks(a) (request[at(a, 0)] == ASK || request[at(a, 1)] == ASK || request[at(a, 2)] == ASK)
#define stores(a) (request[at(a, 0)] == STORE || request[at(a, 1)] == STORE || request[at(a, 2)] == STORE)

// What is left of an acquire that is over are its unread requests; nobody reads what it has counted.
inline forget(a) {
  state[a] = OVER;
  before[a] = 0;
  grants[a] = 0;
  acks[a] = 0;
  knowns[a] = 0;
  top[a] = 0;
  for (i : 0 .. NM - 1) {
    if
    :: request[at(a, i)] == GRANTED -> request[at(a, i)] = NONE
    :: else
    fi;
    if
    :: key[i] == VALUE(a) && request[at(a, i)] != STORE -> key[i] = FREE
    :: else
    fi
  };
  i = 0;
  if
  :: !asks(a) -> proposal[a] = 0
  :: else
  fi;
  if
  :: !stores(a) -> token[a] = 0
  :: else
  fi
}

inline give(a, t) {
  printf("client %d: is given token %d\n", a, t);
#ifdef FLOOR
  assert(floored[a] || t > before[a]);
  assert(floored[a] || (given & bit_of(t)) == 0);
#else
  assert(t > before[a]);
  assert((given & bit_of(t)) == 0);
#endif
  given = given | bit_of(t);
  largest = (t > largest -> t : largest);
#ifdef CAN_FAST
  assert(!(state[a] == ASKING && given != bit_of(t)));
#endif
#ifdef CAN_SLOW
  assert(!(state[a] == STORING && given != bit_of(t)));
#endif
  forget(a)
}

inline store(a, t) {
  state[a] = STORING;
  token[a] = t;
  acks[a] = 0;
  for (i : 0 .. NM - 1) {
    if
    :: request[at(a, i)] == GRANTED -> request[at(a, i)] = STORE
    :: else -> request[at(a, i)] = (request[at(a, i)] == ASK -> ASK : NONE)
    fi
  };
  i = 0;
  printf("client %d: stores %d\n", a, t)
}


#define busy(a) (state[a] == ASKING || state[a] == STORING)
#define awaited(a) (busy(a) && ((pinned[at(a, 0)] && !votes[0]) || \
  (pinned[at(a, 1)] && !votes[1]) || (pinned[at(a, 2)] && !votes[2])))

// They begin in the order of their numbers, which loses nothing.
#ifdef LATER_THAN_FLOOR  // a small world is enough: only the second takes a floor
#define in_turn(a, p) (p == (a == 0 -> 2 : 0) && (a == 0 || state[a - 1] == OVER))
#define may_floor(a) (a == 1 && grants[a] >= QUORUM)
#else
#define in_turn(a, p) (a == 0 || state[a - 1] != IDLE)
#define may_floor(a) (grants[a] >= QUORUM)
#endif
#define may_begin(a, p) (state[a] == IDLE && in_turn(a, p) && votes[0] + votes[1] + votes[2] >= QUORUM)

proctype client(byte a) {
  do
  :: d_step { may_begin(a, 0) -> begin(a, 0) }
  :: d_step { may_begin(a, 1) -> begin(a, 1) }
  :: d_step { may_begin(a, 2) -> begin(a, 2) }
#ifdef INCR_ONLY
  :: d_step { state[a] == ASKING && grants[a] >= QUORUM -> give(a, top[a]) }
#else
  :: d_step { state[a] == ASKING && acks[a] >= QUORUM -> give(a, proposal[a]) }
#ifdef WITHOUT_QUORUM
  :: d_step { state[a] == ASKING && grants[a] >= QUORUM && knowns[a] >= 1 -> store(a, top[a] + 1) }
#else
  :: d_step { state[a] == ASKING && grants[a] >= QUORUM && knowns[a] >= QUORUM -> store(a, top[a] + 1) }
#endif
#ifdef FLOOR
  // The clock may say nothing new, or be ahead.
  :: d_step { state[a] == ASKING && may_floor(a) -> floored[a] = 1; store(a, top[a] + 1) }
  :: d_step { state[a] == ASKING && may_floor(a) -> floored[a] = 1; store(a, top[a] + 2) }
#endif
  :: d_step { state[a] == STORING && acks[a] >= QUORUM -> give(a, token[a]) }
#endif
  :: d_step { awaited(a) -> forget(a); printf("client %d: gives up\n", a) }
#ifdef INHERITED
  :: d_step { state[a] == IDLE && largest > 0 -> before[a] = largest; give(a, largest) }
#endif
  od
}

// ---- the master ---------------------------------------------------------------------------------------------------

#define mine(a, m) (key[m] == VALUE(a))
#ifdef SEAL_NOT_COMPARED
#define usable(a, m) (pinned[at(a, m)])  // whoever was admitted goes on
#else
#define usable(a, m) (votes[m] && pinned[at(a, m)])
#endif

// A reply counts while its acquire asks for the same thing; else only what was done to the master is left of it.
inline grant(a, m, heard) {
  request[at(a, m)] = NONE;
  key[m] = (state[a] == ASKING && heard -> VALUE(a) : FREE);
#ifdef INCR_ONLY
  counter[m]++;
  if
  :: state[a] == ASKING && heard -> grants[a]++; top[a] = (counter[m] > top[a] -> counter[m] : top[a])
  :: else
  fi;
#else
  if
  :: state[a] == ASKING && heard ->
    grants[a]++;
    request[at(a, m)] = GRANTED;
    learn(a, m, (known[m] && counter[m] < proposal[a]))
  :: else
  fi;
  if
  :: known[m] && counter[m] < proposal[a] -> counter[m] = proposal[a]
  :: else
  fi;
#endif
  printf("master %d: grants client %d, counter %d, known %d\n", m, a, counter[m], known[m])
}

inline learn(a, m, ack) {
  if
  :: known[m] -> knowns[a]++; top[a] = (counter[m] > top[a] -> counter[m] : top[a])
  :: else
  fi;
  if
  :: ack -> acks[a]++; top[a] = (proposal[a] > top[a] -> proposal[a] : top[a])
  :: else
  fi
}

// The counters of a master that refuses are as good as any.
inline refuse(a, m) {
  request[at(a, m)] = NONE;
  learn(a, m, 0);
  printf("master %d: refuses client %d, counter %d, known %d\n", m, a, counter[m], known[m])
}

inline write(a, m) {
  request[at(a, m)] = NONE;
#if defined(NOT_STRICT) || defined(VALUE_ONLY)
  counter[m] = (counter[m] > token[a] -> counter[m] : token[a]);
#else
  counter[m] = token[a];
#endif
  known[m] = 1;
  printf("master %d: stores %d for client %d\n", m, token[a], a);
  if
  :: state[a] == STORING -> acks[a]++
  :: else
  fi
}

// Two rules guard the same thing: the value is compared, and a counter only grows. Either is enough; both are kept.
#ifdef NOT_STRICT
#define writable(a, m) 1
#else
#ifdef EQUAL_WILL_DO
#define writable(a, m) (!(known[m] && counter[m] > token[a]))
#else
#ifdef VALUE_ONLY
#define writable(a, m) (mine(a, m))
#else
#ifdef STRICT_ONLY
#define writable(a, m) (!(known[m] && counter[m] >= token[a]))
#else
#define writable(a, m) (mine(a, m) && !(known[m] && counter[m] >= token[a]))
#endif
#endif
#endif
#endif

proctype link(byte a; byte m) {
  do
  :: d_step { request[at(a, m)] == ASK && usable(a, m) -> grant(a, m, 1) }
  :: d_step { request[at(a, m)] == ASK && usable(a, m) && key[m] != FREE -> grant(a, m, 0) }
  :: d_step { request[at(a, m)] == ASK && usable(a, m) && known[m] && counter[m] < proposal[a] -> grant(a, m, 0) }
#ifndef INCR_ONLY
  :: d_step { request[at(a, m)] == ASK && usable(a, m) && state[a] == ASKING -> refuse(a, m) }
#endif
  :: d_step { request[at(a, m)] == STORE && usable(a, m) && writable(a, m) -> write(a, m) }
#ifdef NO_PIN
  :: d_step { state[a] == ASKING && votes[m] && !pinned[at(a, m)] -> pinned[at(a, m)] = 1; request[at(a, m)] = ASK }
#endif
  od
}

// The seal goes with the counter: what was sent under it does nothing any more. SEAL_NOT_COMPARED: it is read as if.
inline lose(m) {
  losses++;
  key[m] = FREE;
  counter[m] = 0;
#ifndef FORGOTTEN_IS_ZERO
  known[m] = 0;
#endif
  votes[m] = 0;
#ifndef SEAL_NOT_COMPARED
  for (i : 0 .. NA - 1) {
    request[at(i, m)] = NONE;
#ifdef NO_PIN
    pinned[at(i, m)] = 0
#endif
  };
#endif
  i = 0;
  printf("master %d: loses its counter\n", m)
}

#define uses(a, m) (pinned[at(a, m)] && busy(a))
#ifdef NO_GUARD
#define in_use(m) 0
#else
#if NA == 2
#define in_use(m) (uses(0, m) || uses(1, m))
#else
#define in_use(m) (uses(0, m) || uses(1, m) || uses(2, m))
#endif
#endif

proctype master(byte m) {
  do
  :: d_step { losses < LOSSES && votes[m] -> lose(m) }
  :: d_step { !votes[m] && !in_use(m) -> votes[m] = 1; printf("master %d: votes again\n", m) }
  od
}

init {
  atomic {
    for (j : 0 .. NM - 1) {
      known[j] = 1;
      votes[j] = 1;
      run master(j)
    };
    for (i : 0 .. NA - 1) {
      run client(i);
      for (j : 0 .. NM - 1) {
        run link(i, j)
      }
    };
    i = 0;
    j = 0
  }
}
