// SPDX-License-Identifier: MIT
//
// Cell: can a check find a lock held after another check has found it over (lock/cell, base/latch)?
//
// What it shows. The driver's thread renews a lock once, as Latch::write, ValidityCell::publish and expired() do, with
// both copies of the latch, word by word. Two other threads check the lock, as Latch::read and judge() do. The old
// validity ends at any moment, before or while the renewal is written. Each thread has a store buffer: what it stores
// reaches memory later, in its order, and a fence or an exchange waits until the buffer is empty (x86's memory model).
// Then
//   - a check that reads the cell after another check has said LOST does not say HELD
//   - a renewal that begins after a check has said LOST fails
//   - no check sees words of two publications
//   - a check that begins after the renewal has returned sees the new validity
//
// What it leaves out. Processors that also reorder stores with stores, or loads with loads: there the release and
// acquire orders of the code stand for what a store buffer gives for nothing, and are not checked here. Slots that are
// used again: generations only grow (unit tests, ThreadSanitizer). More than one renewal.
//
// A word is a number of a publication: 1 the old validity, 2 the new one. A snapshot is two words.
//
// Each flag is one weakened rule; run.sh wants every one of them found out.
//
// The driver's stores are always the same, in this order. So its buffer is two numbers: how many it has stored, and how
// many have reached memory.
#ifdef WRONG_COPY_FIRST
#define SEQ (arrived == 0 -> 0 : (arrived < 6 -> 1 : 2))
#define WORD_00 (arrived < 4 -> 1 : 2)
#define WORD_01 (arrived < 5 -> 1 : 2)
#define WORD_10 (arrived < 2 -> 1 : 2)
#define WORD_11 (arrived < 3 -> 1 : 2)
#else
#define SEQ (arrived == 0 -> 0 : (arrived < 4 -> 1 : 2))
#define WORD_00 (arrived < 2 -> 1 : 2)
#define WORD_01 (arrived < 3 -> 1 : 2)
#define WORD_10 (arrived < 5 -> 1 : 2)
#define WORD_11 (arrived < 6 -> 1 : 2)
#endif

byte stored, arrived;
bool over;            // the mark, in memory
bool waiting[2];      // a mark that stands in the buffer of a check
bool ended;           // the old validity has ended
bool said_lost;       // a check has returned LOST
byte told;            // what the renewal has returned: 0 nothing yet, 1 true, 2 false

// Buffers reach memory, and time passes.
active proctype world() {
  end: do
  :: atomic { arrived < stored -> arrived++ }
  :: atomic { waiting[0] -> waiting[0] = false; over = true }
  :: atomic { waiting[1] -> waiting[1] = false; over = true }
  :: atomic { !ended -> ended = true }
  od
}

active proctype driver() {
  bool lost_before, seen;
  lost_before = said_lost;
  do
  :: stored < 6 -> stored++
  :: else -> break
  od;
#ifndef NO_FENCE
  arrived == stored;
#endif
#ifndef NO_LOOK_BACK
  seen = over;
#endif
  d_step {
    assert(seen >= lost_before);
    told = 1 + seen
  }
}

inline look_at_mark() { marked = over || waiting[t] }

proctype check(bit t) {
  byte seq, again, first, second;
  bool lost_before, renewed_before, was_ended, marked, held;
  renewed_before = (told == 1);
  was_ended = ended;  // the clock is read first
#ifdef MARK_FIRST
  look_at_mark();
#endif
  seq = SEQ;
  do
  :: d_step { first = (seq == 1 -> WORD_10 : WORD_00); lost_before = said_lost }
     second = (seq == 1 -> WORD_11 : WORD_01);
     again = SEQ;
#ifdef SEQUENCE_ONCE
     again = seq;
#endif
     if
     :: again == seq -> break
     :: else -> seq = again
     fi
  od;
  assert(first == second);
  assert(first > renewed_before);
#ifndef MARK_FIRST
  look_at_mark();
#endif
  if
  :: marked -> held = false
  :: !marked && first == 1 && was_ended ->
     held = false;
#ifdef MARK_BUFFERED
     waiting[t] = true
#elif !defined(NOT_MARKED)
     over = true  // an exchange
#endif
  :: else -> held = true
  fi;
  d_step {
#ifdef CAN_SEE_RENEWAL
    assert(!(held && first == 2));
#endif
#ifdef CAN_FAIL_RENEWAL
    assert(!(told == 2));
#endif
    assert(held + lost_before < 2);
    if :: !held -> said_lost = true :: else fi
  }
}

init { atomic { run check(0); run check(1) } }
