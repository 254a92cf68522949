// SPDX-License-Identifier: MIT
//
// Debts: does a dead value's key stay on a master while its client lives and owes nothing for it?
//
// One client, one master, and the rules of src/client/claims.hpp. The other masters are the moods of the client: a
// round is lost, won, extended, released at any moment. A connection is a FIFO of requests and one of replies. When it
// breaks, the replies are gone and each unread SET or extend becomes a stray, which the master may read at any later
// moment, or never (a frozen server executes what lies in its socket when it thaws).
//
// One assumption bounds a stray: a master that answers a command of a later connection has read what the earlier ones
// left it, in the same tick. Without it no debt could ever be written off.
//
// With PUT_BACK the master may forget the key of a held lock, or may not have been asked when the round began. A client
// that knows so, by the answer to an extend or because it sent no SET, writes the key while the lock is held, whatever
// became of the extend's round: a SET of the same value, as owed and as remembered as the first one.
//
// Here keys live for up to ttl + drift of the client's ticks. Values are numbers, used again only when nothing is left
// of them. Each flag is one weakened rule.

#ifndef NV
#define NV 2
#endif
#ifndef TTL
#define TTL 1
#endif
#define LIFETIME (TTL + 1)  // ttl + drift

#ifdef PUT_BACK_AFTER_END
#define PUT_BACK
#endif
#ifdef PUT_BACK_NOT_REMEMBERED
#define PUT_BACK
#endif
#ifdef PUT_BACK_UNASKED
#define PUT_BACK
#endif
#ifdef CAN_PAY_PUT_BACK
#define PUT_BACK
#endif
#ifdef CAN_PUT_FIRST
#define PUT_BACK
#endif

#define FREE 0
#define OTHERS (NV + 1)  // somebody else's key
#define NEVER 255
#define ROOM 4  // requests unanswered on one connection

mtype = { SET, EXTEND, DELETE, YES, NO, ERROR };

chan to_master = [ROOM] of { mtype, byte };
chan to_client = [ROOM] of { mtype, byte, mtype };
bit up;
byte key, life;
byte current;  // the value of the open round or the held lock; 0: none

bit used[NV + 1], ended[NV + 1], refused[NV + 1];
bit pending[NV + 1], stray[NV + 1], heard[NV + 1];
bit owed[NV + 1], deleting[NV + 1], resting[NV + 1];
byte void_in[NV + 1], stray_in[NV + 1];

bit stray_set[NV + 1];                        // on broken connections, unread
byte stray_extend[NV + 1];
bit due[NV + 1];                              // read in this tick, or lost
#ifdef CAN_PAY_STRAY
bit came;  // a stray, after the first answer to a delete
#endif

#ifdef PUT_BACK
bit held;     // a lock that was put back is held: its round is not lost any more
bit lacking;  // an extend was answered: the key is gone; or `unsent`
bit unsent;   // no SET of the current value was sent here
#define losable (current != 0 && !held)
#else
#define losable (current != 0)
#define unsent 0
#endif
#ifdef CAN_PAY_PUT_BACK
bit back;  // the key that lies there was put back
#endif

byte i;  // 0 between steps, like the next three
byte v;
mtype op = ERROR, how = ERROR;

#define unasked(x) (!pending[x] && !stray[x])
#define owes(x) (owed[x] || deleting[x] || resting[x])
#define in_flight (len(to_master) + len(to_client))

// ---- claims -------------------------------------------------------------------------------------------------------

inline settle(x) {
  if
  :: ended[x] && !pending[x] && !stray[x] && !owes(x) ->
    used[x] = 0; ended[x] = 0; refused[x] = 0; heard[x] = 0; void_in[x] = NEVER; stray_in[x] = NEVER
  :: else
  fi
}

inline forget(x) {
  owed[x] = 0;
  resting[x] = 0;
  stray[x] = 0;
  heard[x] = 0;
  stray_in[x] = NEVER
}

inline send_delete(x) {
  owed[x] = 0;
  deleting[x] = 1;
  to_master!DELETE, x;
  printf("client: delete of value %d\n", x)
}

inline end_current(release) {
  ended[current] = 1;
#ifdef VOID_AFTER_ONE_LIFETIME
  void_in[current] = LIFETIME;
#else
  void_in[current] = 2 * LIFETIME;
#endif
#ifdef SILENT_SKIPPED
  owed[current] = !pending[current] && !stray[current] && !refused[current] && !unsent;
#else
#ifdef LOST_ROUND_KEEPS
  owed[current] = release && !unsent;
#else
  owed[current] = (!refused[current] || release) && !unsent;
#endif
#endif
#ifdef STRAY_FROM_END
  if
  :: stray[current] -> heard[current] = 1; stray_in[current] = LIFETIME
  :: else
  fi;
#endif
  if
  :: owed[current] && pending[current] -> send_delete(current)  // behind its SET, in the room kept for it
  :: else
  fi;
  settle(current);
#ifdef PUT_BACK
  held = 0;
  lacking = 0;
  unsent = 0;
#endif
  current = 0
}

inline set_answered(x, answer) {
  pending[x] = 0;
  refused[x] = (answer == NO);
#ifndef VOID_FROM_END
  if
  :: ended[x] -> void_in[x] = 2 * LIFETIME  // a frozen master may have executed it only now
  :: else
  fi;
#endif
  settle(x)
}

inline delete_answered(x, answer) {
#ifdef CAN_PAY_STRAY
  assert(!(came && answer == YES));
#endif
  deleting[x] = 0;
  if
#ifdef ABSENT_PAYS
  :: answer == YES || answer == NO -> forget(x)
#else
  :: answer == YES || (answer == NO && !stray[x]) -> forget(x)
#endif
  :: else ->
    resting[x] = 1;
    if
    :: stray[x] && !heard[x] -> heard[x] = 1; stray_in[x] = LIFETIME
    :: else
    fi
  fi;
  settle(x)
}

// ---- the client ---------------------------------------------------------------------------------------------------

// A number is fresh when neither the client nor the world knows it.
#define unknown(x) (!used[x] && key != x && !stray_set[x] && stray_extend[x] == 0)
#define fresh (unknown(1) -> 1 : (NV > 1 && unknown(NV) -> NV : 0))

inline start() {
  v = fresh;
  used[v] = 1;
  pending[v] = 1;
  current = v;
  to_master!SET, v;
  printf("client: SET of value %d\n", v);
  v = 0
}

#ifdef PUT_BACK
#ifdef PUT_BACK_AFTER_END
#define may_put(x) (used[x] && unasked(x))
#else
#ifdef PUT_BACK_UNASKED
#define may_put(x) (current == x && unasked(x))
#else
#define may_put(x) (current == x && unasked(x) && lacking)
#endif
#endif

// A round of the other masters, while this one does not vote.
inline start_elsewhere() {
  v = fresh;
  used[v] = 1;
  current = v;
  lacking = 1;
  unsent = 1;
  printf("client: value %d is sent to the others\n", v);
  v = 0
}

inline put_back(x) {
#ifdef CAN_PUT_FIRST
  assert(!(unsent));
#endif
  held = (x == current);
  lacking = 0;
  unsent = 0;
#ifndef PUT_BACK_NOT_REMEMBERED
  pending[x] = 1;
#endif
  refused[x] = 0;
  to_master!SET, x;
  printf("client: value %d is put back\n", x)
}
#endif

#ifdef TWO_STRAY_EXTENDS
#define STRAYS 2
#else
#define STRAYS 1  // unread extends of one value on broken connections; see the README
#endif
#define extend_unanswered (to_master??[EXTEND, eval(current)] || to_client??[EXTEND, eval(current), YES] || \
                           to_client??[EXTEND, eval(current), NO] || stray_extend[current] == STRAYS)

inline answer() {
  to_client?op, v, how;
  printf("client: %e of value %d was answered %e\n", op, v, how);
  if
  :: op == SET -> set_answered(v, how)
  :: op == DELETE -> delete_answered(v, how)
#ifdef PUT_BACK
  :: op == EXTEND && v == current && how == NO && unasked(v) -> lacking = 1
#endif
  :: else
  fi;
  op = ERROR;
  how = ERROR;
  v = 0
}

inline break_connection() {
  up = 0;
  do
  :: len(to_client) > 0 -> to_client?op, v, how
  :: else -> break
  od;
  do
  :: len(to_master) > 0 ->
    to_master?op, v;
    if
    :: op == SET -> stray_set[v] = 1; due[v] = 0
    :: op == EXTEND -> stray_extend[v]++; due[v] = 0
    :: else
    fi
  :: else -> break
  od;
  for (i : 1 .. NV) {
    if
    :: pending[i] -> pending[i] = 0; stray[i] = 1
    :: else
    fi;
    if
    :: deleting[i] ->
      deleting[i] = 0;
#ifndef BREAK_FORGETS
      owed[i] = 1
#endif
    :: else
    fi;
#ifdef HELD_OWES
    if
    :: stray[i] -> owed[i] = 1
    :: else
    fi;
#endif
    settle(i)
  };
  i = 0;
  op = ERROR;
  how = ERROR;
  v = 0
}

inline extend() {
  to_master!EXTEND, current;
  printf("client: extend of value %d\n", current)
}

#define void(x) (void_in[x] == 0 && ended[x] && !stray[x] && !pending[x] && !deleting[x])

inline write_off(x) {
#ifdef CAN_WRITE_OFF_STRAY
  assert(!(stray[x] == 1));
#endif
#ifdef CAN_WRITE_OFF
  assert(!(stray[x] == 0));
#endif
  forget(x);
  settle(x);
  printf("client: debt of value %d written off\n", x)
}

proctype client() {
  do
  :: d_step { up && current == 0 && fresh != 0 && in_flight + 2 <= ROOM -> start() }
  :: d_step { up && current != 0 && !unsent && !extend_unanswered && in_flight + 2 <= ROOM -> extend() }
#ifdef PUT_BACK
  :: d_step { current == 0 && fresh != 0 -> start_elsewhere() }
  :: d_step { up && may_put(1) && in_flight + 2 <= ROOM -> put_back(1) }
  :: d_step { up && may_put(NV) && in_flight + 2 <= ROOM -> put_back(NV) }
#endif
  :: d_step { losable -> printf("client: round lost\n"); end_current(0) }
  :: d_step { current != 0 -> printf("client: lock over\n"); end_current(1) }
  :: d_step { up && owed[1] && in_flight + (current != 0) < ROOM -> send_delete(1) }
  :: d_step { up && owed[NV] && in_flight + (current != 0) < ROOM -> send_delete(NV) }
  :: d_step { resting[1] -> resting[1] = 0; owed[1] = 1 }
  :: d_step { resting[NV] -> resting[NV] = 0; owed[NV] = 1 }
  :: d_step { len(to_client) > 0 -> answer() }
  :: d_step { up -> break_connection(); printf("connection breaks\n") }
  :: d_step { !up -> up = 1; printf("connected\n") }
  // Claims::on_time, at some later turn.
  :: d_step { stray_in[1] == 0 -> write_off(1) }
  :: d_step { stray_in[NV] == 0 -> write_off(NV) }
  :: d_step { void(1) -> write_off(1) }
  :: d_step { void(NV) -> write_off(NV) }
  od
}

// ---- the master ---------------------------------------------------------------------------------------------------

inline set_key(x, ttl) {
  how = NO;
  if
  :: key == FREE ->
    key = x;
    life = ttl;
    how = YES;
#ifdef CAN_PAY_PUT_BACK
    back = held && x == current
#endif
  :: else
  fi
}

inline extend_key(x, ttl) {
  how = NO;
  if
  :: key == x -> life = (life < ttl -> ttl : life); how = YES
#ifdef EXTEND_RECREATES
  :: key == FREE -> key = x; life = ttl; how = YES
#endif
  :: else
  fi
}

inline delete_key(x) {
  how = NO;
  assert(x != current);  // what is held or wanted is never deleted
  if
  :: key == x ->
#ifdef CAN_PAY_PUT_BACK
    assert(!(back));
#endif
    key = FREE;
    life = 0;
    how = YES
  :: else
  fi
}

inline read_strays() {
  for (i : 1 .. NV) {
    due[i] = stray_set[i] || stray_extend[i] > 0
  };
  i = 0
}

inline execute(ttl) {
  to_master?op, v;
  if
  :: op == SET -> set_key(v, ttl)
  :: op == EXTEND -> extend_key(v, ttl)
  :: op == DELETE -> delete_key(v)
  fi;
  to_client!op, v, how;
  printf("master: %e of value %d: %e\n", op, v, how);
  op = ERROR;
  how = ERROR;
  v = 0;
  read_strays()
}

// An error reply to a delete: nothing is done, but the master has come to its sockets.
inline refuse_delete() {
  to_master?op, v;
  to_client!DELETE, v, ERROR;
  printf("master: DELETE of value %d: ERROR\n", v);
  op = ERROR;
  v = 0;
  read_strays()
}

proctype master() {
  do
  :: d_step { len(to_master) > 0 -> execute(LIFETIME) }
  :: d_step { len(to_master) > 0 -> execute(TTL) }
  :: d_step { to_master?[DELETE, _] -> refuse_delete() }
  :: d_step { key == FREE -> key = OTHERS; printf("master: a key of somebody else\n") }
#ifdef PUT_BACK
  :: d_step { key != FREE && key == current -> key = FREE; life = 0; printf("master: forgets the key\n") }
#endif
  :: d_step { key == OTHERS -> key = FREE; printf("master: the key of somebody else is gone\n") }
  od
}

inline stray_read(x) {
#ifdef CAN_PAY_STRAY
  came = came || (heard[x] && how == YES);
#endif
  printf("master: a stray of value %d is read: %e\n", x, how);
  how = ERROR
}

proctype strays(byte x) {
  do
  :: d_step { stray_set[x] -> stray_set[x] = 0; set_key(x, LIFETIME); stray_read(x) }
  :: d_step { stray_extend[x] > 0 -> stray_extend[x]--; extend_key(x, LIFETIME); stray_read(x) }
  :: d_step { stray_set[x] -> stray_set[x] = 0 }
  :: d_step { stray_extend[x] > 0 -> stray_extend[x]-- }
  od
}

// ---- time ---------------------------------------------------------------------------------------------------------

inline pass(timer) {
  timer = (timer > 0 && timer != NEVER -> timer - 1 : timer)
}

proctype clock() {
  do
  :: d_step {
    true ->
    pass(life);
    key = (life == 0 && key != OTHERS -> FREE : key);
    for (i : 1 .. NV) {
      if
      :: due[i] -> due[i] = 0; stray_set[i] = 0; stray_extend[i] = 0
      :: else
      fi;
      pass(void_in[i]);
      pass(stray_in[i])
    };
    i = 0;
    printf("tick\n")
  }
  od
}

// ---- what must hold at every instant ------------------------------------------------------------------------------

#define no_ghost(x) (key != (x) || current == (x) || owes(x))
// A claim outlives all that is under way of its value's SET.
#define remembered(x) (used[x] || !stray_set[x])

never {
  do
  :: assert(no_ghost(1) && no_ghost(NV))
  :: assert(remembered(1) && remembered(NV))
  od
}

init {
  atomic {
    for (i : 1 .. NV) {
      void_in[i] = NEVER;
      stray_in[i] = NEVER;
      run strays(i)
    };
    i = 0;
    run client();
    run master();
    run clock()
  }
}
