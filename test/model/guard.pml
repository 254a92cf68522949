// SPDX-License-Identifier: MIT
//
// Guard: does a master that may have forgotten a lock's key grant before that lock has ended?
//
// One master, and clients that come and go. The master loses keys: FLUSHALL takes the guard's record with them and
// leaves connections and identity; a restart changes the identity and breaks the connections, and leaves an old record
// or none (a role cycle and a failover behind one address are restarts, seen from here). Keys live for TTL ticks, so a
// grant is wrong while the last loss is younger than that. Nothing of the master's clock is used.
//
// The record is a quarantine id, written by whoever finds none, and a seal: identity and quarantine id of a state that
// somebody has watched for a guard time G by his own clock, which may gain one tick. The watch belongs to the state
// that a client saw, not to its connection. A seal under way is read at any later moment on the same connection; it
// compares the quarantine id. A request carries the seal under which its client was admitted, and is compared with the
// master's.
//
// Each flag below is one weakened rule; run.sh wants every one of them found out.

#ifndef NC
#define NC 2
#endif
#ifndef TTL
#define TTL 2
#endif
#ifndef LOSSES
#define LOSSES 2
#endif
#ifdef NO_DRIFT
#define G TTL
#else
#define G (TTL + 1)
#endif
#define NONE 0

// ---- the master
byte identity = 1;
byte quarantine = NONE;
byte seal_identity = NONE, seal_quarantine = NONE;
byte age = TTL;  // ticks since the last loss; no further than TTL
byte losses;
byte drawn;      // quarantine ids so far

// ---- the clients
bit connected[NC];
byte watched_identity[NC], watched_quarantine[NC];
byte watched[NC];  // ticks of the watch
bit gained[NC];    // its clock has been fast once in this watch
byte admitted_identity[NC], admitted_quarantine[NC];
byte sealing[NC];  // a seal of this quarantine id is under way
byte i;

inline watch(c) {
  watched_identity[c] = identity;
  watched_quarantine[c] = quarantine;
  watched[c] = 0;
  gained[c] = 0
}

inline leave(c) {
  connected[c] = 0;
  sealing[c] = NONE;
  admitted_identity[c] = NONE;
  admitted_quarantine[c] = NONE
}

inline begin_state() {
#ifdef NO_QUARANTINE_ID
  drawn = 1;
#else
  drawn++;
#endif
  quarantine = drawn;
  seal_identity = NONE;
  seal_quarantine = NONE;
  printf("a new state: %d\n", quarantine)
}

#ifdef NO_IDENTITY
#define same_identity(a, b) 1
#else
#define same_identity(a, b) (a == b)
#endif

#define sealed (seal_quarantine != NONE && same_identity(seal_identity, identity) && seal_quarantine == quarantine)
#define watches(c) (same_identity(watched_identity[c], identity) && watched_quarantine[c] == quarantine)

#ifdef SEAL_AT_CONNECT
#define fits(c) (admitted_quarantine[c] != NONE)
#else
#define fits(c) (admitted_quarantine[c] != NONE && admitted_quarantine[c] == seal_quarantine && \
  same_identity(admitted_identity[c], seal_identity))
#endif

#ifdef OWN_TTL
#define long_enough(c) (watched[c] + (c == 0) >= G)
#else
#define long_enough(c) (watched[c] >= G)
#endif

#ifdef QUARANTINE_NOT_COMPARED
#define seal_fits(c) 1
#else
#define seal_fits(c) (sealing[c] == quarantine)
#endif

proctype client(byte c) {
  do
  :: d_step { !connected[c] -> connected[c] = 1; printf("client %d: connects\n", c) }
  :: d_step { connected[c] -> leave(c); printf("client %d: leaves\n", c) }
  :: d_step { connected[c] && quarantine == NONE -> begin_state() }
  :: d_step { connected[c] && quarantine != NONE && !sealed && !watches(c) -> watch(c);
       printf("client %d: watches\n", c) }
#ifdef WATCH_ANY_STATE
  // The watch is that of the connection: whatever state is found at its end is sealed.
  :: d_step {
    connected[c] && quarantine != NONE && long_enough(c) && sealing[c] == NONE ->
    sealing[c] = quarantine
  }
#endif
  :: d_step {
    connected[c] && quarantine != NONE && !sealed && watches(c) && long_enough(c) && sealing[c] == NONE ->
    sealing[c] = quarantine;
    printf("client %d: the watch is over\n", c)
  }
  :: d_step {
    sealing[c] != NONE ->
    if
    :: seal_fits(c) && quarantine != NONE ->
      seal_identity = identity;
      seal_quarantine = quarantine;
      printf("client %d: sealed\n", c)
    :: else
    fi;
    sealing[c] = NONE
  }
  :: d_step {
    connected[c] && sealed && !fits(c) ->
    admitted_identity[c] = identity;
    admitted_quarantine[c] = quarantine;
    printf("client %d: reads the seal\n", c)
  }
#ifdef CAN_ADMIT
  :: d_step { connected[c] && fits(c) && losses == LOSSES -> assert(!(age == TTL)) }
#endif
  :: d_step { connected[c] && fits(c) -> assert(age >= TTL); printf("client %d: a grant\n", c) }
  od
}

inline lose() {
  losses++;
  age = 0
}

inline forget_record() {
  quarantine = NONE;
  seal_identity = NONE;
  seal_quarantine = NONE
}

inline restart() {
  identity++;
  for (i : 0 .. NC - 1) {
    leave(i)
  };
  i = 0
}

proctype master() {
  do
  :: d_step { losses < LOSSES -> lose(); forget_record(); printf("master: FLUSHALL\n") }
  :: d_step { losses < LOSSES -> lose(); restart(); forget_record(); printf("master: restarts empty\n") }
  :: d_step { losses < LOSSES -> lose(); restart(); printf("master: restarts with an old record\n") }
  od
}

inline pass(c, ticks) {
  watched[c] = (watched[c] + ticks >= G -> G : watched[c] + ticks)
}

proctype clock() {
  do
  :: d_step {
    true ->
    for (i : 0 .. NC - 1) {
      pass(i, 1)
    };
    i = 0;
    age = (age < TTL -> age + 1 : TTL);
    printf("tick\n")
  }
  od
}

// A fast clock gains a tick within a guard time.
proctype fast(byte c) {
  do
  :: d_step { !gained[c] -> gained[c] = 1; pass(c, 1); printf("client %d: its clock gains a tick\n", c) }
  od
}

init {
  atomic {
    for (i : 0 .. NC - 1) {
      run client(i);
      run fast(i)
    };
    run master();
    run clock();
    i = 0
  }
}
