// SPDX-License-Identifier: MIT
//
// OwnLoop: a libuv loop that belongs to the client, for programs without a loop or with a loop of another kind. Its
// descriptor is readable whenever there is something to do; wake() makes it readable from any thread. A thread of its
// own may run the loop. That thread has a small stack, a name, and all signals blocked, because signals are for the
// program's threads.
#pragma once
#include <pthread.h>
#include <uv.h>

#include "port/uv/driver.hpp"

namespace redlock {

class OwnLoop {
 public:
  int open();                  // 0 or enum redlock_err, and then there is nothing to close
  int open_for(Driver& driver);  // as open(), with the driver on the loop
  void let_go();       // on the loop. wake() must not follow; a run ends when the driver has let go too
  void close();        // after let_go(). Runs the loop until everything on it is closed
  void wake() { uv_async_send(&wake_); }

  uv_loop_t* get() { return &loop_; }
  void run() { uv_run(&loop_, UV_RUN_DEFAULT); }
  void run_once() { uv_run(&loop_, UV_RUN_NOWAIT); }
  int fd() const { return uv_backend_fd(&loop_); }
  bool idle() const { return uv_backend_timeout(&loop_) != 0; }

 private:
  uv_loop_t loop_;
  uv_async_t wake_;
};

// 0 or enum redlock_err. The stack is larger where the C library asks for more.
int start_thread(pthread_t& thread, size_t stack_bytes, void* (*main)(void*), void* argument);
void name_this_thread();

}  // namespace redlock
