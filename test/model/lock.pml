// SPDX-License-Identifier: MIT
//
// Exclusion: can two clients believe in the same lock at one instant?
//
// NC clients want one resource on three masters. Time passes in ticks, and only what is left of something is counted
// (of a key's life, of a validity), so runs are unbounded and the states are finite. Nothing else has a duration: every
// step may happen at once or after any number of ticks, which covers each timeout, pause and slow network.
//
// The network is a bag: a message arrives at any moment, or never, and messages of one connection may overtake each
// other. TCP does less. A connection that breaks with the SET undelivered, delivered, or read late by a frozen server
// are three such runs; so are a refusal (a SET that never comes), and a reply that is lost.
//
// A value that is nobody's any more (round lost, lock over, client crashed) is a GHOST, whichever it was: its SET may
// still come, its delete may come at any moment, it may stay until it expires, and nobody compares equal to it. Hence a
// ghost key may appear on any free master and may vanish again at any moment, and fresh values need no numbers.
//
// Clock errors of up to one tick per ttl are all on the masters' side: a key lives for its ttl or one tick less. This
// is what the drift (one tick) has to cover.
//
// PUT_BACK is the world in which masters forget: one that does is guarded for as long as a lock that was granted before
// may be valid, and grants nothing, nor do the votes count that it gave to open rounds. A holder behind an extend round
// that was won puts its key back: a SET NX of the held value, with what is left of its validity or less, and no vote.
// It may come at any moment as long as the lock is held, or never; afterwards it is a ghost's.
//
// Each flag below is one weakened rule; run.sh wants every one of them found out.

#ifndef NC
#define NC 2
#endif
#ifndef TTL
#define TTL 3
#endif
#define NM 3

#ifdef QUORUM_HALF
#define QUORUM (NM / 2)
#else
#define QUORUM (NM / 2 + 1)
#endif

#ifdef NO_DRIFT
#define DRIFT 0
#else
#define DRIFT 1
#endif

#if defined(NO_COMPARE) || defined(VALUE_REUSED)
#define DELETES_COUNT  // a delete may hit a key that is somebody's, so where one is under way must be known
#endif

#ifdef PUT_BACK_WITHOUT_NX
#define PUT_BACK
#endif
#ifdef PUT_BACK_VOTES
#define PUT_BACK
#endif
#ifdef CAN_PUT_BACK
#define PUT_BACK
#endif
#ifdef GUARD_TOO_SHORT
#define PUT_BACK
#define GUARD (TTL - DRIFT - 1)
#else
#define GUARD (TTL - DRIFT)
#endif

#define FREE 0
#define VALUE(c) ((c) + 1)  // the value of client c's present round or lock
#define GHOST (NC + 1)

#define IDLE 0
#define ACQUIRING 1
#define HELD 2

// A request: not there, not yet read by the master, its grant counted or on its way (counting can always wait).
#define NONE 0
#define SENT 1
#define GRANTED 2

#define at(c, m) ((c) * NM + (m))

byte key[NM];
byte life[NM];         // ticks until the key expires; 0 for FREE and GHOST
byte state[NC];
byte valid[NC];        // ticks until the validity that the caller was told ends
byte round_valid[NC];  // ticks until t0 + ttl - drift of the open round
byte ext_ttl[NC];      // of the open extend round; 0: none
byte set[NC * NM];     // the SET of the present value
byte ext[NC * NM];     // the extend of the open round
#ifdef LATE_EXTEND
bit late[NC * NM];     // a grant of an earlier extend round is still on its way
#endif
#ifdef DELETES_COUNT
bit del[NC * NM];
#endif
#ifdef KEYS_LOST
bit lost;
#endif
#ifdef PUT_BACK
byte guard[NM];    // ticks until a master that forgot may grant again
bit may_put[NC];   // the last extend round was won, and no other has begun
bit put[NC * NM];  // a put-back on its way
#define votes_again(m) (guard[m] == 0)
#else
#define votes_again(m) true
#endif

byte i, j;  // 0 between steps

// ---- the client -------------------------------------------------------------------------------------------------

inline acquire(c) {
  state[c] = ACQUIRING;
  round_valid[c] = TTL - DRIFT;
  for (i : 0 .. NM - 1) {
    if
    :: set[at(c, i)] == NONE -> set[at(c, i)] = SENT
    :: else  // LATE_REPLY: the grant of the round before is taken for this round's
    fi
  };
  i = 0
}

inline end_extend(c) {
#ifdef PUT_BACK
  may_put[c] = 0;
#endif
  ext_ttl[c] = 0;
  round_valid[c] = 0;
  for (i : 0 .. NM - 1) {
#ifdef LATE_EXTEND
    if
    :: ext[at(c, i)] == GRANTED -> late[at(c, i)] = 1
    :: else
    fi;
#endif
    ext[at(c, i)] = NONE
  };
  i = 0
}

// Lost round, release, expiry, crash: the value is nobody's any more.
inline end(c) {
  end_extend(c);
  state[c] = IDLE;
  valid[c] = 0;
  for (i : 0 .. NM - 1) {
#ifdef LATE_REPLY
    if
    :: set[at(c, i)] == SENT -> set[at(c, i)] = NONE
    :: else
    fi;
#else
    set[at(c, i)] = NONE;
#endif
#ifdef LATE_EXTEND
    late[at(c, i)] = 0;
#endif
#ifdef DELETES_COUNT
    del[at(c, i)] = 1;
#endif
#ifdef PUT_BACK
    put[at(c, i)] = 0;
#endif
#ifndef VALUE_REUSED
    if
    :: key[i] == VALUE(c) -> key[i] = GHOST; life[i] = 0
    :: else
    fi
#endif
  };
  i = 0
}

#define yes(requests, c, m) (requests[at(c, m)] == GRANTED)
#define votes(requests, c) (yes(requests, c, 0) + yes(requests, c, 1) + yes(requests, c, 2))
#ifdef TIMEOUT_GRANTS
#define granted(requests, c) (votes(requests, c) + (requests[at(c, 0)] == SENT) >= QUORUM)
#else
#define granted(requests, c) (votes(requests, c) >= QUORUM)
#endif

inline won(c) {
  state[c] = HELD;
#ifdef VALID_FROM_DECISION
  valid[c] = TTL - DRIFT;
#else
  valid[c] = round_valid[c];
#endif
  round_valid[c] = 0;
  for (i : 0 .. NM - 1) {
    if
    :: set[at(c, i)] == GRANTED -> set[at(c, i)] = NONE
    :: else
    fi
  };
  i = 0
}

inline extend(c, ttl) {
#ifdef PUT_BACK
  may_put[c] = 0;
#endif
  ext_ttl[c] = ttl;
  round_valid[c] = ttl - DRIFT;
  for (i : 0 .. NM - 1) {
    ext[at(c, i)] = SENT
  };
  i = 0
}

inline extended(c) {
#ifdef EXTEND_FROM_DECISION
  round_valid[c] = ext_ttl[c] - DRIFT;
#endif
#ifdef CAN_RENEW
  assert(!(round_valid[c] > valid[c]));
#endif
  if
  :: round_valid[c] > valid[c] -> valid[c] = round_valid[c]
  :: else
  fi;
  end_extend(c);
#ifdef PUT_BACK
  may_put[c] = 1
#endif
}

#define extendable(c) (state[c] == HELD && valid[c] > 0 && ext_ttl[c] == 0)

proctype client(byte c) {
  do
  :: d_step { state[c] == IDLE -> acquire(c); printf("client %d: acquire\n", c) }
  :: d_step { state[c] == ACQUIRING && granted(set, c) -> won(c); printf("client %d: valid for %d\n", c, valid[c]) }
  :: d_step { state[c] == ACQUIRING -> end(c); printf("client %d: lost, or crashed\n", c) }
  :: d_step { state[c] == HELD -> end(c); printf("client %d: over (released, crashed)\n", c) }
  :: d_step { extendable(c) -> extend(c, TTL); printf("client %d: extend by %d\n", c, TTL) }
  :: d_step { extendable(c) -> extend(c, TTL - 1); printf("client %d: extend by %d\n", c, TTL - 1) }
  :: d_step { ext_ttl[c] != 0 && granted(ext, c) -> extended(c); printf("client %d: extended to %d\n", c, valid[c]) }
  :: d_step { ext_ttl[c] != 0 -> end_extend(c); printf("client %d: extend lost, as valid as before\n", c) }
  od
}

// ---- the master, and what is under way between the two ------------------------------------------------------------

inline execute_set(c, m, ttl) {
  key[m] = VALUE(c);
  life[m] = ttl;
  set[at(c, m)] = (state[c] == ACQUIRING -> GRANTED : NONE);
  printf("master %d: SET of client %d, lives for %d\n", m, c, ttl)
}

inline raise(c, m, ttl) {
#ifdef EXTEND_LOWERS
  life[m] = ttl;
#else
  life[m] = (life[m] < ttl -> ttl : life[m]);
#endif
  printf("master %d: extend of client %d, lives for %d\n", m, c, life[m])
}

inline delete(m) {
  key[m] = FREE;
  life[m] = 0;
  printf("master %d: key deleted\n", m)
}

#ifdef SET_WITHOUT_NX
#define settable(c, m) (key[m] != VALUE(c))
#else
#define settable(c, m) (key[m] == FREE)
#endif

#define ours(c, m) (key[m] == VALUE(c))

#ifdef PUT_BACK
// What it finds there is its own key, or nobody's.
#ifdef PUT_BACK_WITHOUT_NX
#define puttable(c, m) (put[at(c, m)] && key[m] != VALUE(c))
#else
#define puttable(c, m) (put[at(c, m)] && key[m] == FREE)
#endif

inline execute_put_back(c, m, ttl) {
#ifdef CAN_PUT_BACK
  assert(!(key[m] == FREE));
#endif
  put[at(c, m)] = 0;
  key[m] = VALUE(c);
  life[m] = ttl;
#ifdef PUT_BACK_VOTES
  ext[at(c, m)] = (ext[at(c, m)] == SENT -> GRANTED : ext[at(c, m)]);
#endif
  printf("master %d: put-back of client %d, lives for %d\n", m, c, ttl)
}

// A restart without keys, FLUSHALL: what was granted to open rounds is not counted any more.
inline forget(m) {
  delete(m);
  guard[m] = GUARD;
  for (i : 0 .. NC - 1) {
    set[at(i, m)] = (set[at(i, m)] == GRANTED -> NONE : set[at(i, m)]);
    ext[at(i, m)] = (ext[at(i, m)] == GRANTED -> NONE : ext[at(i, m)])
  };
  i = 0;
  printf("master %d: forgets\n", m)
}
#endif

proctype link(byte c; byte m) {
  do
  :: d_step { set[at(c, m)] == SENT && votes_again(m) && settable(c, m) -> execute_set(c, m, TTL) }
  :: d_step { set[at(c, m)] == SENT && votes_again(m) && settable(c, m) -> execute_set(c, m, TTL - 1) }
#ifdef PUT_BACK
  :: d_step {
    may_put[c] && votes_again(m) && !ours(c, m) && set[at(c, m)] == NONE && !put[at(c, m)] ->
    put[at(c, m)] = 1;
    printf("client %d: puts its key back on master %d\n", c, m)
  }
  :: d_step { puttable(c, m) -> execute_put_back(c, m, valid[c]) }
  :: d_step { puttable(c, m) -> execute_put_back(c, m, 1) }
#endif
  :: d_step { ext[at(c, m)] == SENT && ours(c, m) -> raise(c, m, ext_ttl[c]); ext[at(c, m)] = GRANTED }
  :: d_step { ext[at(c, m)] == SENT && ours(c, m) -> raise(c, m, ext_ttl[c] - 1); ext[at(c, m)] = GRANTED }
#ifndef EXTEND_LOWERS
  // An extend that nobody waits for any more; whether there was one is not recorded.
  :: d_step { state[c] == HELD && ours(c, m) -> raise(c, m, TTL) }
#endif
#ifdef LATE_EXTEND
  :: d_step {
    late[at(c, m)] && ext[at(c, m)] == SENT ->
    late[at(c, m)] = 0;
    ext[at(c, m)] = GRANTED;
    printf("client %d: an older extend's grant by master %d counts\n", c, m)
  }
#endif
#ifdef EXTEND_COUNTS_GONE
  :: d_step {
    ext[at(c, m)] == SENT && !ours(c, m) ->
    ext[at(c, m)] = GRANTED;
    printf("master %d: a vote for client %d without its key\n", m, c)
  }
#endif
#ifdef NO_COMPARE
  :: d_step { del[at(c, m)] && key[m] != FREE -> del[at(c, m)] = 0; delete(m) }
#endif
#ifdef VALUE_REUSED
  :: d_step { del[at(c, m)] && ours(c, m) -> del[at(c, m)] = 0; delete(m) }
#endif
#ifdef EXTEND_AFTER_EXPIRY
  // The deletes of the expired lock are under way, and yet a late vote would bring it back.
  :: d_step { state[c] == HELD && valid[c] == 0 && ours(c, m) -> delete(m) }
#endif
#ifdef LOSS_DELETES
  // The key watch or the clock says LOST before the time: deletes at once, while an answered check is still relied on.
  :: d_step { state[c] == HELD && valid[c] > 0 && ours(c, m) -> delete(m) }
#endif
  od
}

proctype master(byte m) {
  do
  :: d_step { key[m] == FREE -> key[m] = GHOST; printf("master %d: a stray SET of a dead value\n", m) }
  :: d_step { key[m] == GHOST -> key[m] = FREE; printf("master %d: the dead value is deleted or expires\n", m) }
#ifdef KEYS_LOST
  :: d_step { !lost && key[m] != FREE -> lost = 1; delete(m) }
#endif
#ifdef PUT_BACK
  :: d_step { key[m] != FREE && key[m] != GHOST -> forget(m) }
#endif
  od
}

// ---- time ---------------------------------------------------------------------------------------------------------

inline pass(timer) {
  timer = (timer > 0 -> timer - 1 : 0)
}

// Time comes first: whatever a client does next, it finds the lock over and the round too slow. So both end here.
inline expire(c) {
  if
#ifdef VALID_FROM_DECISION
  :: false
#else
  :: state[c] == ACQUIRING && round_valid[c] == 0 -> end(c)
#endif
#ifdef EXTEND_AFTER_EXPIRY
  :: state[c] == HELD && valid[c] == 0 && ext_ttl[c] == 0 -> end(c)
#else
  :: state[c] == HELD && valid[c] == 0 -> end(c)
#endif
  :: else
  fi
}

proctype clock() {
  do
  :: d_step {
    true ->
    for (j : 0 .. NM - 1) {
      pass(life[j]);
#ifdef PUT_BACK
      pass(guard[j]);
#endif
      if
      :: life[j] == 0 && key[j] != GHOST -> key[j] = FREE
      :: else
      fi
    };
    for (j : 0 .. NC - 1) {
      pass(valid[j]);
      pass(round_valid[j]);
      expire(j)
    };
    j = 0;
    printf("tick\n")
  }
  od
}

// ---- what must hold at every instant ------------------------------------------------------------------------------

#define believes(c) (valid[c] > 0)

// For as long as the lock is believed, a majority keeps its key: now, and for all of the validity that is left. A
// master that forgot it and grants nothing to anybody for so long is as good.
#ifdef PUT_BACK
#define keeps(c, m) ((ours(c, m) && life[m] >= valid[c]) || guard[m] >= valid[c])
#else
#define keeps(c, m) (ours(c, m) && life[m] >= valid[c])
#endif
#define covered(c) (!believes(c) || keeps(c, 0) + keeps(c, 1) + keeps(c, 2) >= NM / 2 + 1)

#if NC == 2
#define exclusive (believes(0) + believes(1) <= 1)
#define all_covered (covered(0) && covered(1))
#else
#define exclusive (believes(0) + believes(1) + believes(2) <= 1)
#define all_covered (covered(0) && covered(1) && covered(2))
#endif

never {
  do
  :: assert(exclusive)
#ifndef ONLY_EXCLUSION
  :: assert(all_covered)
#endif
  od
}

init {
  atomic {
    run clock();
    for (i : 0 .. NC - 1) {
      run client(i);
      for (j : 0 .. NM - 1) {
        run link(i, j)
      }
    };
    for (j : 0 .. NM - 1) {
      run master(j)
    };
    i = 0;
    j = 0
  }
}
