// SPDX-License-Identifier: MIT
#include "port/uv/own_loop.hpp"

#include <redlock/redlock.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace redlock {

// libuv aborts when the first loop of a process gets what libuv opens first, but no descriptor for its signal pipe.
// What comes first differs from version to version. So create begins only where all that it takes is left: epoll,
// io_uring (since libuv 1.45), the signal pipe of the process, a pipe and an eventfd of the loop, the driver's timer.
static bool descriptors_left() {
  int last = 0;
  int fds[8];
  for (int& fd : fds) fd = last = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  for (int fd : fds) ::close(fd);
  return last >= 0;
}

// The run registers the handle. libuv tells the kernel what it watches only when the loop runs; before the first run
// the loop's descriptor would never become readable.
int OwnLoop::open() {
  if (!descriptors_left() || uv_loop_init(&loop_) != 0) return REDLOCK_E_SYSTEM;
  if (uv_async_init(&loop_, &wake_, [](uv_async_t*) {}) != 0) {
    uv_loop_close(&loop_);
    return REDLOCK_E_SYSTEM;
  }
  run_once();
  return 0;
}

int OwnLoop::open_for(Driver& driver) {
  int err = open();
  if (err != 0) return err;
  err = driver.open(&loop_);
  if (err != 0) {
    let_go();
    close();
  }
  return err;
}

void OwnLoop::let_go() { uv_close(reinterpret_cast<uv_handle_t*>(&wake_), nullptr); }

void OwnLoop::close() {
  run();
  uv_loop_close(&loop_);
}

// A C library refuses a stack below its own minimum, which is 128 KB in glibc on 64-bit ARM.
int start_thread(pthread_t& thread, size_t stack_bytes, void* (*main)(void*), void* argument) {
  const long least = sysconf(_SC_THREAD_STACK_MIN);
  if (least > 0 && stack_bytes < static_cast<size_t>(least)) stack_bytes = static_cast<size_t>(least);
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return REDLOCK_E_SYSTEM;
  sigset_t all, before;
  sigfillset(&all);
  bool started = pthread_attr_setstacksize(&attributes, stack_bytes) == 0 &&
                 pthread_sigmask(SIG_SETMASK, &all, &before) == 0;
  if (started) {
    started = pthread_create(&thread, &attributes, main, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  pthread_attr_destroy(&attributes);
  return started ? 0 : REDLOCK_E_SYSTEM;
}

void name_this_thread() { prctl(PR_SET_NAME, "redlock"); }

}  // namespace redlock
