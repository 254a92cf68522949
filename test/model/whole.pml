// SPDX-License-Identifier: MIT
//
// Whole: do guard, lock and token together keep two clients apart, and tokens in order, when a master comes back with a
// copy?
//
// What it shows. NA clients, one fenced acquire each, on three masters. The first master may lose what it has granted:
// it restarts from an old file, or becomes the replica of a server with an older copy of its data and is promoted
// again. The copy holds the guard's seal and the token's counter as they stood at some earlier moment. There are never
// two holders at one instant, each token is given once, and each is larger than all that were given before its acquire
// began.
//
// What it leaves out. What the single models show: plain commands, pushes, FLUSHALL and quarantine ids (guard.pml);
// the token's fast path and floor (token.pml). What the proof shows (../proof): extends, put-backs, drift. The other
// two masters lose nothing.
//
// The rules. An acquire asks the masters that vote when it begins, under the seal that the first one's reading has
// shown. The script compares that seal with the record, and the record with the server's identity. A counter is known
// while the seal beside it is the record's. When a quorum has granted and the counters of a quorum are known, one more
// than the largest is stored by a script that compares the same, the value, and that the counter grows. A quorum of
// those wins, and the lock is valid for TTL ticks from the beginning of the acquire. A master without a fitting seal is
// watched for G ticks. Requests are read at any later moment, or never.
//
// Each flag below is one weakened rule; run.sh wants every one of them found out.

#ifndef NA
#define NA 2
#endif
#ifndef TTL
#define TTL 2
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifdef NO_WATCH
#define G 0
#elif defined(WATCH_TOO_SHORT)
#define G (TTL - 1)
#else
#define G TTL
#endif
#define NM 3
#define QUORUM 2
#define FREE 0
#define VALUE(a) ((a) + 1)

#define IDLE 0
#define ASKING 1
#define STORING 2
#define HELD 3
#define OVER 4

#define NONE 0
#define ASK 1
#define GRANTED 2
#define STORE 3
#define STORED 4

byte key[NM], life[NM], counter[NM];
byte replid = 1;        // of the first master, as all that follows
byte seal = 1;          // the replication id in it; 0: none
byte counter_seal = 1;  // beside the counter
byte copied_seal = 1, copied_counter_seal = 1, copied_counter;
byte watched;  // ticks since its state was first read
byte losses;

byte state[NA], valid[NA], carried[NA], token[NA], before[NA], knowns[NA], top[NA];
byte request[NA * NM];
byte largest;
byte given;  // one bit per token
byte i, j;

#define req(a, m) request[(a) * NM + (m)]
#define sealed (seal == replid)
#define asked(a, m) (m != 0 || carried[a] != NONE)

#ifdef RECORD_ALONE
#define usable(a, m) (m != 0 || (carried[a] == seal && seal != NONE))
#else
#define usable(a, m) (m != 0 || (carried[a] == seal && sealed))
#endif
#ifdef FORGOTTEN_IS_KNOWN
#define known(m) 1
#else
#define known(m) (m != 0 || counter_seal == seal)
#endif
#define has(a, what) ((req(a, 0) == what) + (req(a, 1) == what) + (req(a, 2) == what))

// ---- clients ------------------------------------------------------------------------------------------------------

inline begin(a) {
  state[a] = ASKING;
  valid[a] = TTL;
  before[a] = largest;
  carried[a] = (sealed -> seal : NONE);
  for (i : 0 .. NM - 1) {
    req(a, i) = (asked(a, i) -> ASK : NONE)
  };
  i = 0;
  printf("client %d: begins, under seal %d\n", a, carried[a])
}

inline end(a) {
  state[a] = OVER;
  valid[a] = 0;
  knowns[a] = 0;
  top[a] = 0;
  before[a] = 0;
  for (i : 0 .. NM - 1) {
    req(a, i) = (req(a, i) == ASK || req(a, i) == STORE -> req(a, i) : NONE)
  };
  i = 0;
  carried[a] = (req(a, 0) == NONE -> NONE : carried[a]);
  token[a] = (has(a, STORE) > 0 -> token[a] : 0)
}

inline store(a) {
  state[a] = STORING;
  token[a] = top[a] + 1;
  for (i : 0 .. NM - 1) {
    req(a, i) = (req(a, i) == GRANTED -> STORE : req(a, i))
  };
  i = 0;
  printf("client %d: stores token %d\n", a, token[a])
}

inline hold(a) {
  state[a] = HELD;
  printf("client %d: holds with token %d, valid for %d\n", a, token[a], valid[a]);
#ifndef ONLY_TOKENS
  for (i : 0 .. NA - 1) {
    assert(i == a || state[i] != HELD || valid[i] == 0)
  };
  i = 0;
#endif
  assert(token[a] > before[a]);
  assert((given & (1 << token[a])) == 0);
  given = given | (1 << token[a]);
  largest = (token[a] > largest -> token[a] : largest);
#ifdef CAN_HOLD
  assert(!(losses > 0 && sealed && req(a, 0) == STORED && largest == 2));
#endif
  knowns[a] = 0;
  top[a] = 0;
  before[a] = 0
}

proctype client(byte a) {
  do
  :: d_step { state[a] == IDLE && (a == 0 || state[a - 1] != IDLE) -> begin(a) }
  :: d_step { state[a] == ASKING && has(a, GRANTED) >= QUORUM && knowns[a] >= QUORUM -> store(a) }
  :: d_step { state[a] == STORING && has(a, STORED) >= QUORUM -> hold(a) }
  :: d_step { state[a] != IDLE && state[a] != OVER -> end(a); printf("client %d: over\n", a) }
  od
}

// ---- masters ------------------------------------------------------------------------------------------------------

inline learn(a, m) {
  if
  :: known(m) ->
    knowns[a]++;
    top[a] = (counter[m] > top[a] -> counter[m] : top[a])
  :: else
  fi
}

inline grant(a, m) {
  key[m] = VALUE(a);
  life[m] = TTL;
  printf("master %d: grants client %d, counter %d, known %d\n", m, a, counter[m], known(m));
  if
  :: state[a] == ASKING -> req(a, m) = GRANTED; learn(a, m)
  :: else -> req(a, m) = NONE
  fi
}

inline refuse(a, m) {
  req(a, m) = NONE;
  if
  :: state[a] == ASKING -> learn(a, m)
  :: else
  fi
}

inline write(a, m) {
  counter[m] = token[a];
  counter_seal = (m == 0 -> seal : counter_seal);
  req(a, m) = (state[a] == STORING || state[a] == HELD -> STORED : NONE);
  printf("master %d: stores token %d of client %d\n", m, token[a], a)
}

#define grows(a, m) (!known(m) || counter[m] < token[a])

proctype link(byte a; byte m) {
  do
  :: d_step { req(a, m) == ASK && usable(a, m) && key[m] == FREE -> grant(a, m) }
  :: d_step { req(a, m) == ASK && usable(a, m) && key[m] != FREE -> refuse(a, m) }
  :: d_step { req(a, m) == STORE && usable(a, m) && key[m] == VALUE(a) && grows(a, m) -> write(a, m) }
  :: d_step { state[a] == OVER && key[m] == VALUE(a) -> key[m] = FREE; life[m] = 0;
       printf("master %d: key of client %d deleted\n", m, a) }
  od
}

// A restart from an old file is the same, for the file is a copy, too.
inline come_back() {
  losses++;
  replid++;
  watched = 0;
  key[0] = FREE;
  life[0] = 0;
  counter[0] = copied_counter;
  counter_seal = copied_counter_seal;
  seal = copied_seal;
  printf("master 0: comes back with an older copy, seal %d, counter %d\n", seal, counter[0])
}

proctype master() {
  do
  :: d_step {
    losses < LOSSES && (copied_seal != seal || copied_counter != counter[0] || copied_counter_seal != counter_seal) ->
    copied_seal = seal;
    copied_counter = counter[0];
    copied_counter_seal = counter_seal;
    printf("master 0: is copied\n")
  }
  :: d_step { losses < LOSSES -> come_back() }
  :: d_step { !sealed && watched >= G -> seal = replid; printf("master 0: has been watched, and is sealed\n") }
  od
}

proctype clock() {
  do
  :: d_step {
    true ->
    for (i : 0 .. NM - 1) {
      life[i] = (life[i] > 0 -> life[i] - 1 : 0);
      key[i] = (life[i] == 0 -> FREE : key[i])
    };
    watched = (!sealed && watched < G -> watched + 1 : 0);
    for (j : 0 .. NA - 1) {
      valid[j] = (valid[j] > 0 -> valid[j] - 1 : 0);
      if
      :: valid[j] == 0 && state[j] != IDLE -> end(j)
      :: else
      fi
    };
    i = 0;
    j = 0;
    printf("tick\n")
  }
  od
}

init {
  atomic {
    for (i : 0 .. NA - 1) {
      run client(i);
      for (j : 0 .. NM - 1) {
        run link(i, j)
      }
    };
    i = 0;
    j = 0;
    run master();
    run clock()
  }
}
