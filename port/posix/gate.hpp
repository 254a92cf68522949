// SPDX-License-Identifier: MIT
//
// Gate: lets one thread at a time to a client that many use. It is held for a turn of the client at the longest, never
// across a wait or a user's callback; so a thread that calls the client from under a lock of its own, which a callback
// takes too, cannot be caught in a deadlock. A thread that waits for the gate lends its priority to the one inside,
// where the system can do that. Bell: what a thread sleeps on, outside of the gate, until another one rings.
//
// Times are CLOCK_MONOTONIC. Nothing here uses the heap.
#pragma once
#include <pthread.h>
#include <stdint.h>
#include <time.h>

namespace redlock {

class Gate {
 public:
  bool open();  // false: the system has no mutex for us
  void close() { pthread_mutex_destroy(&mutex_); }
  void enter() { pthread_mutex_lock(&mutex_); }
  void leave() { pthread_mutex_unlock(&mutex_); }

 private:
  friend class Bell;
  pthread_mutex_t mutex_;
};

class Bell {
 public:
  bool open();
  void close() { pthread_cond_destroy(&condition_); }
  void ring() { pthread_cond_broadcast(&condition_); }
  // Inside the gate; outside of it while asleep. Ends also for no reason.
  void wait(Gate& gate) { pthread_cond_wait(&condition_, &gate.mutex_); }
  // The same until a time has come; false: it has.
  bool wait_until(Gate& gate, const timespec& time);
  static timespec from_now(int64_t ms);

 private:
  pthread_cond_t condition_;
};

}  // namespace redlock
