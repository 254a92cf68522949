// SPDX-License-Identifier: MIT
//
// Gate: lets one thread at a time use a client that many threads share. A thread holds the gate for one turn of the
// client at the longest, and never across a wait or a user's callback. So a thread may call the client while it holds a
// lock that a callback takes too: there is no deadlock. A thread that waits for the gate lends its priority to the
// thread inside, where the system can do that.
// Bell: a thread sleeps on it, outside of the gate, until another thread rings.
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
  // Call with the gate held; the gate is released while waiting. Spurious wake-ups are possible.
  void wait(Gate& gate) { pthread_cond_wait(&condition_, &gate.mutex_); }
  // The same, at most until this time; false: the time has come.
  bool wait_until(Gate& gate, const timespec& time);
  static timespec from_now(int64_t ms);

 private:
  pthread_cond_t condition_;
};

}  // namespace redlock
