// SPDX-License-Identifier: MIT
//
// Guard: does a master that may have forgotten a lock's key grant before that lock has ended?
//
// What it shows. One master, and clients that come and go on connections with and without tracking. The master loses
// keys by FLUSHALL, by restarts with and without an old record, and by taking over another server's data: a replica
// attaches, is promoted, and the master becomes its replica, by a full or a partial resync, and is promoted again. The
// replica's copy contains the guard's record as it stood when the two parted. Keys live for TTL ticks, so a grant is
// wrong while the last loss is younger than that. No order of these steps leads to such a grant.
//
// What it leaves out. The run id: every restart changes the replication id here, as it does in Redis, so the run id
// decides nothing. Replicas that accept writes. Several masters, configurations (move.pml), short visits,
// commissioning, the clock watch. Errors of the server's clock: nothing of its clock is used.
//
// The rules. The server's identity is its role and its replication id. The record is a quarantine id, which is written
// by whoever finds none, and a seal: replication id and quarantine id of a state that somebody has watched for a guard
// time G by his own clock, which may gain one tick. A reading returns record and identity of one instant. The watch
// belongs to the state that was read, not to the connection. A seal under way is executed at any later moment on the
// same connection, and compares quarantine id and identity. A command by script carries the seal that its client has
// read, and compares it with the record, and the record with the identity. A plain command compares nothing. It is sent
// only on a tracked connection, to a master whose last reading, LIFE ticks old at most, fitted the seal and showed
// neither a replica nor a backlog. A null push arrives ahead of every later reply, so it voids at once what plain
// commands stand on. A reading may also look ahead: it is sent in one write with the plain command behind it, which
// counts if that reading finds all this, and the answer comes within LIFE of the sending.
//
// One thing is assumed: a replica that attached is not promoted, made the master's master by a partial resync, and
// parted from it again within the lifetime of one reading. FAST_CYCLE is that hole, named. WEAK is another: where INFO
// is refused, the record alone is compared.
//
// Each other flag below is one weakened rule; run.sh wants every one of them found out.

#ifndef NC
#define NC 2
#endif
// Two clients that look ahead have more states than a short search can see: --long defines LOOKS for them.
#if NC == 1 || defined(LOOK_NOT_HEEDED) || defined(LOOK_NOT_DATED) || defined(CAN_LOOK)
#define LOOKS
#endif
#ifndef TTL
#define TTL 2
#endif
#define LIFE 1  // ticks
#ifdef NO_DRIFT
#define G TTL
#else
#define G (TTL + 1)
#endif
#define NONE 0

// A state of the master, in one byte. An id that nobody has any more is used again.
#define state_of(replication, quarantine_id) ((replication) * 8 + (quarantine_id))
#define replication_in(state) ((state) / 8)
#define quarantine_in(state) ((state) % 8)

// ---- the master
bit is_master = 1;
byte replid = 1;
byte quarantine = NONE;
byte seal = NONE;
byte age = TTL;  // ticks since the last loss; no further than TTL
#if defined(CAN_ADMIT) || defined(CAN_BE_PLAIN) || defined(CAN_LOOK)
bit lost;        // once at least
#endif

// ---- its replica
#define AWAY 0
#define FOLLOWS 1
#define PROMOTED 2
byte replica = AWAY;
bit backlog;    // the master keeps one for as long as a replica may come back
byte attached;  // ticks since the replica attached; no further than LIFE + 1
bit partial;    // it was promoted, and the replication id is still the one that both had: a partial resync is possible
byte copied_quarantine, copied_seal;

// ---- the clients
bit connected[NC];
byte watched_state[NC];
byte watched[NC];   // ticks of the watch
bit gained[NC];     // its clock has been fast once in this watch
byte carried[NC];   // the seal that its commands by script carry
byte sealing[NC];   // a seal of this state is under way
bit plain[NC];      // plain commands may go, by the last reading
byte read_age[NC];  // ticks since that reading
#ifdef LOOKS
byte look_age[NC];  // 0: none; else ticks since a look and a SET left in one write, plus one
byte look[NC];      // 0: it is not executed yet; 1: it fits; 2: it does not
#endif
#ifdef IDENTITY_REMEMBERED
byte greeted[NC];
#endif
byte i;
bit used;          // 0 between steps, like the next one
byte old_replid;

#define tracked(c) (c == 0)  // a tracked connection can do all that another one can

// ---- what is compared ---------------------------------------------------------------------------------------------

#ifdef IDENTITY_REMEMBERED
#define replid_read(c) greeted[c]
#else
#define replid_read(c) replid
#endif
#define state_read(c) state_of(replid_read(c), quarantine)

#ifdef WEAK
#define same_server(state) 1
#else
#define same_server(state) (is_master && replication_in(state) == replid)
#endif

// A reading finds that the seal fits.
#ifdef WEAK
#define sealed(c) (seal != NONE && quarantine_in(seal) == quarantine)
#define watches(c) (watched_state[c] != NONE && quarantine_in(watched_state[c]) == quarantine)
#else
#define sealed(c) (is_master && seal != NONE && seal == state_read(c))
#define watches(c) (watched_state[c] == state_read(c))
#endif

#ifdef RECORD_ALONE
#define fits(c) (carried[c] != NONE && carried[c] == seal)
#elif defined(SEAL_AT_CONNECT)
#define fits(c) (carried[c] != NONE)
#else
#define fits(c) (carried[c] != NONE && carried[c] == seal && same_server(seal))
#endif

#ifdef BACKLOG_NOT_ASKED
#define alone (replica != FOLLOWS)
#else
#ifdef PLAIN_ALWAYS
#define alone 1
#else
#define alone (replica != FOLLOWS && !backlog)
#endif
#endif

#ifdef PLAIN_UNTRACKED
#define may_be_plain(c) alone
#else
#define may_be_plain(c) (tracked(c) && alone)
#endif

#ifdef READING_NEVER_LAPSES
#define lapsed(c) 0
#else
#define lapsed(c) (read_age[c] > LIFE)
#endif

#ifdef LOOK_NOT_HEEDED
#define look_counts(c) (look_age[c] - 1 <= LIFE)
#elif defined(LOOK_NOT_DATED)
#define look_counts(c) (look[c] == 1)
#else
#define look_counts(c) (look[c] == 1 && look_age[c] - 1 <= LIFE)
#endif
#ifdef CAN_LOOK
#define look_is_right !(age == TTL && lost)
#else
#define look_is_right age >= TTL
#endif

#ifdef OWN_TTL
#define long_enough(c) (watched[c] + (c == 0) >= G)
#else
#define long_enough(c) (watched[c] >= G)
#endif

#ifdef QUARANTINE_NOT_COMPARED
#define same_quarantine(c) 1
#else
#define same_quarantine(c) (quarantine_in(sealing[c]) == quarantine)
#endif
#ifdef SEAL_WITHOUT_IDENTITY
#define same_server_still(c) 1
#else
#define same_server_still(c) (same_server(sealing[c]))
#endif

// ---- the clients --------------------------------------------------------------------------------------------------

// What belongs to a state that is over will never fit again.
inline drop_what_is_over() {
  for (i : 0 .. NC - 1) {
#if !defined(NO_QUARANTINE_ID) && !defined(WATCH_ANY_STATE) && !defined(WEAK)
    if
    :: !watches(i) -> watched_state[i] = NONE; watched[i] = 0; gained[i] = 0
    :: else
    fi;
    sealing[i] = (same_quarantine(i) && same_server_still(i) -> sealing[i] : NONE);
#endif
    carried[i] = (carried[i] == seal || carried[i] == copied_seal -> carried[i] : NONE)
  };
  i = 0
}

inline forget_connection(c) {
  connected[c] = 0;
  sealing[c] = NONE;
  carried[c] = NONE;
  plain[c] = 0;
  read_age[c] = 0
#ifdef LOOKS
  ; look_age[c] = 0;
  look[c] = 0
#endif
}

inline connect(c) {
  connected[c] = 1;
#ifdef IDENTITY_REMEMBERED
  greeted[c] = replid;
#endif
  printf("client %d: connects\n", c)
}

inline watch(c) {
  watched_state[c] = state_read(c);
  watched[c] = 0;
  gained[c] = 0;
  printf("client %d: watches replication id %d, quarantine id %d\n", c, replid_read(c), quarantine)
}

#define some_have_quarantine(id) (quarantine_in(seal) == id || quarantine_in(copied_seal) == id || \
  copied_quarantine == id)
#define has_quarantine(c, id) (quarantine_in(watched_state[c]) == id || quarantine_in(sealing[c]) == id || \
  quarantine_in(carried[c]) == id)

inline begin_state() {
  seal = NONE;
#ifdef NO_QUARANTINE_ID
  quarantine = 1;
#else
  do
  :: quarantine++;
    used = some_have_quarantine(quarantine);
    for (i : 0 .. NC - 1) {
      used = used || has_quarantine(i, quarantine)
    };
    if
    :: !used -> break
    :: else
    fi
  od;
  i = 0;
#endif
  drop_what_is_over();
  printf("a new state: quarantine id %d\n", quarantine)
}

inline read_seal(c) {
#ifdef WEAK
  carried[c] = seal;
#else
  carried[c] = state_read(c);
#endif
  plain[c] = may_be_plain(c);
  read_age[c] = 0;
  printf("client %d: reads a seal that fits, plain %d\n", c, plain[c])
}

inline execute_seal(c) {
  if
  :: is_master && same_quarantine(c) && quarantine != NONE && same_server_still(c) ->
#ifdef SEAL_WITHOUT_IDENTITY
    seal = sealing[c];
#else
    seal = state_of(replid_read(c), quarantine);
#endif
    printf("client %d: sealed\n", c)
  :: else
  fi;
  sealing[c] = NONE;
  drop_what_is_over()
}

// What a reading would change: else it is not worth a step.
#ifdef WEAK
#define unread(c) (carried[c] != seal || plain[c] != may_be_plain(c) || (plain[c] && read_age[c] != 0))
#else
#define unread(c) (carried[c] != state_read(c) || plain[c] != may_be_plain(c) || (plain[c] && read_age[c] != 0))
#endif

proctype client(byte c) {
  do
  :: d_step { !connected[c] -> connect(c) }
  :: d_step { connected[c] -> forget_connection(c); printf("client %d: leaves\n", c) }
  :: d_step { connected[c] && is_master && quarantine == NONE -> begin_state() }
  :: d_step { connected[c] && is_master && quarantine != NONE && !sealed(c) && !watches(c) -> watch(c) }
#ifdef WATCH_ANY_STATE
  // The watch is that of the connection: whatever state is found at its end is sealed.
  :: d_step {
    connected[c] && is_master && quarantine != NONE && long_enough(c) && sealing[c] == NONE ->
    sealing[c] = state_read(c)
  }
#endif
  :: d_step {
    connected[c] && is_master && quarantine != NONE && !sealed(c) && watches(c) && long_enough(c) &&
    sealing[c] == NONE ->
    sealing[c] = state_read(c);
    printf("client %d: the watch is over\n", c)
  }
  :: d_step { sealing[c] != NONE -> execute_seal(c) }
  :: d_step { connected[c] && sealed(c) && unread(c) -> read_seal(c) }
#ifdef LOOKS
  :: d_step {
    connected[c] && carried[c] != NONE && look_age[c] == 0 ->
    look_age[c] = 1;
    printf("client %d: sends a look and a SET\n", c)
  }
  :: d_step {
    connected[c] && look_age[c] != 0 && look[c] == 0 ->
    look[c] = (is_master && fits(c) && may_be_plain(c) -> 1 : 2);
    printf("client %d: the look %d\n", c, look[c])
  }
  :: d_step {
    connected[c] && look_age[c] != 0 && look[c] != 0 ->
    if
    :: is_master && look_counts(c) -> assert(look_is_right); printf("client %d: a grant behind a look\n", c)
    :: else
    fi;
    look_age[c] = 0;
    look[c] = 0
  }
#endif
#ifdef CAN_ADMIT
  :: d_step { connected[c] && is_master && fits(c) && lost -> assert(!(age == TTL)) }
#endif
#ifdef CAN_BE_PLAIN
  :: d_step { connected[c] && is_master && plain[c] && lost -> assert(!(age == TTL)) }
#endif
  :: d_step { connected[c] && is_master && fits(c) -> assert(age >= TTL); printf("client %d: a grant\n", c) }
  :: d_step { connected[c] && is_master && plain[c] -> assert(age >= TTL); printf("client %d: a plain grant\n", c) }
  od
}

// ---- the master ---------------------------------------------------------------------------------------------------

inline lose() {
#if defined(CAN_ADMIT) || defined(CAN_BE_PLAIN) || defined(CAN_LOOK)
  lost = 1;
#endif
  age = 0
}

inline forget_record() {
  quarantine = NONE;
  seal = NONE
}

#define some_have_replid(id) (replication_in(seal) == id || replication_in(copied_seal) == id)
#define has_replid(c, id) (replication_in(watched_state[c]) == id || replication_in(sealing[c]) == id || \
  replication_in(carried[c]) == id)

inline new_replid() {
  partial = 0;
  old_replid = replid;
  replid = 0;
  do
  :: replid++;
    used = replid == old_replid || some_have_replid(replid);
    for (i : 0 .. NC - 1) {
      used = used || has_replid(i, replid);
#ifdef IDENTITY_REMEMBERED
      used = used || greeted[i] == replid
#endif
    };
    if
    :: !used -> break
    :: else
    fi
  od;
  i = 0;
  old_replid = 0
}

// Null push: tracked clients hear of it ahead of every later reply.
inline push_all() {
#ifdef ADMISSION_SURVIVES_PUSH
  skip
#else
  for (i : 0 .. NC - 1) {
    plain[i] = (tracked(i) -> 0 : plain[i])
#ifdef LOOKS
    ; look[i] = (tracked(i) && look[i] == 1 -> 2 : look[i])
#endif
  };
  i = 0
#endif
}

inline restart() {
  new_replid();
  is_master = 1;
  backlog = 0;
  replica = (replica == FOLLOWS -> AWAY : replica);
  attached = 0;
  for (i : 0 .. NC - 1) {
    forget_connection(i)
  };
  i = 0
}

inline part(now) {
  replica = now;
  attached = 0;
  partial = (now == PROMOTED);
  copied_quarantine = (now == PROMOTED -> quarantine : NONE);
  copied_seal = (now == PROMOTED -> seal : NONE)
}

// It has the data, and the replication id, of its master from now on, which is this one's former replica.
inline become_replica() {
  lose();
  new_replid();
  is_master = 0;
  backlog = 1;
  quarantine = copied_quarantine;
  seal = copied_seal;
  drop_what_is_over()
}

#ifdef FAST_CYCLE
#define long_attached 1
#else
#define long_attached (attached > LIFE)
#endif

proctype master() {
  do
  :: d_step { is_master -> lose(); forget_record(); push_all(); drop_what_is_over(); printf("master: FLUSHALL\n") }
  :: d_step { true -> lose(); restart(); forget_record(); drop_what_is_over(); printf("master: restarts empty\n") }
  :: d_step { true -> lose(); restart(); drop_what_is_over(); printf("master: restarts with an old record\n") }
  // The first replica: a backlog begins, and with it another replication id. Nothing is lost.
  :: d_step {
    is_master && replica != FOLLOWS ->
    if
    :: !backlog -> new_replid(); backlog = 1
    :: else
    fi;
    part(FOLLOWS);
    drop_what_is_over();
    printf("master: a replica attaches\n")
  }
  :: d_step { replica == FOLLOWS && long_attached -> part(PROMOTED); printf("master: its replica is promoted\n") }
  :: d_step { replica == FOLLOWS -> part(AWAY); printf("master: its replica goes away\n") }
  :: d_step { is_master && replica != FOLLOWS && backlog -> backlog = 0; new_replid(); drop_what_is_over();
       printf("master: the backlog's time ends\n") }
  :: d_step {
    is_master && replica == PROMOTED && partial ->
    become_replica();
    printf("master: becomes a replica by a partial resync\n")
  }
  :: d_step {
    is_master && replica == PROMOTED ->
    become_replica();
    push_all();
    printf("master: becomes a replica by a full resync\n")
  }
  :: d_step { !is_master -> is_master = 1; new_replid(); drop_what_is_over(); printf("master: is promoted\n") }
  od
}

// ---- time ---------------------------------------------------------------------------------------------------------

inline pass(c, ticks) {
  watched[c] = (watched[c] + ticks >= G -> G : watched[c] + ticks)
}

inline pass_reading(c) {
  read_age[c] = (plain[c] -> read_age[c] + 1 : 0);
#ifdef LOOKS
  look_age[c] = (look_age[c] != 0 && look_age[c] <= LIFE + 1 -> look_age[c] + 1 : look_age[c]);
#endif
  if
  :: lapsed(c) -> plain[c] = 0; read_age[c] = 0
  :: else
  fi;
#ifdef READING_NEVER_LAPSES
  read_age[c] = 0
#endif
}

proctype clock() {
  do
  :: d_step {
    true ->
    for (i : 0 .. NC - 1) {
      pass(i, 1);
      pass_reading(i)
    };
    i = 0;
    age = (age < TTL -> age + 1 : TTL);
    attached = (replica == FOLLOWS && attached <= LIFE -> attached + 1 : attached);
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
