// SPDX-License-Identifier: MIT
#include "port/uv/driver.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <new>

#include "port/posix/fork_guard.hpp"

namespace redlock {

template Instant Turns<Driver>::now();
template void Turns<Driver>::flush_apart(MasterIndex m, const Instant& now);

constexpr int watcher_slots = 1000;  // descriptors below this never make libuv grow its table again

// ---- the life of a driver -------------------------------------------------------------------------------------

Driver::Driver(Client& client, const Owner& owner, void* memory)
    : client_(client),
      owner_(owner),
      connections_(static_cast<Connection*>(memory)),
      masters_(client.settings().masters) {
  for (MasterIndex m = 0; m < masters_; ++m) new (&connections_[m]) Connection(*this, client, m);
}

// Everything that can fail comes before the first handle is on the loop. A handle can only be closed by running the
// loop, and the caller of a failed create has no reason to run it.
int Driver::open(uv_loop_t* loop) {
  loop_ = loop;
  fork_generation_ = fork_generation();
  if (!clock_.start()) return REDLOCK_E_CLOCK;
  timer_fd_ = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
  if (timer_fd_ < 0) return REDLOCK_E_SYSTEM;
  if (uv_poll_init(loop_, &timer_, timer_fd_) != 0) {
    ::close(timer_fd_);
    return REDLOCK_E_SYSTEM;
  }
  timer_.data = this;
  uv_poll_start(&timer_, UV_READABLE, on_timer);
  uv_prepare_init(loop_, &prepare_);
  prepare_.data = this;
  uv_prepare_start(&prepare_, on_prepare);
  uv_idle_init(loop_, &idle_);
  idle_.data = this;
  grow_watchers();
  return 0;
}

// libuv keeps its watchers in an array indexed by descriptor, and reallocates the array for a descriptor that is higher
// than any before. The host program may cause that at any time. A high descriptor that libuv sees now keeps reconnects
// off the heap. Connection 0 lends its poll handle for that, and can connect only when the handle is closed again.
void Driver::grow_watchers() {
  rlimit limit = {};
  int wanted = watcher_slots;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur <= static_cast<rlim_t>(wanted)) {
    wanted = static_cast<int>(limit.rlim_cur) - 1;
  }
  const int high = fcntl(timer_fd_, F_DUPFD_CLOEXEC, wanted);
  if (high < 0) return;  // every descriptor up there is in use: the table has been that large already
  connections_[0].show(loop_, high);
  ::close(high);
}

void Driver::ended() {
  REDLOCK_ASSERT(!closing_);
  closing_ = true;
  uv_close(as_handle(&timer_), on_own_closed);
  ::close(timer_fd_);
  uv_close(as_handle(&prepare_), on_own_closed);
  uv_close(as_handle(&idle_), on_own_closed);
  for (MasterIndex m = 0; m < masters_; ++m) connections_[m].forget_names();
}

void Driver::on_own_closed(uv_handle_t* handle) {
  Driver& driver = *static_cast<Driver*>(handle->data);
  REDLOCK_ASSERT(driver.closing_);
  REDLOCK_ASSERT(driver.own_open_ != 0);
  --driver.own_open_;
  driver.handle_closed();
}

// After the last handle is closed the owner gets its memory back.
void Driver::handle_closed() {
  if (!closing_ || own_open_ != 0) return;
  for (MasterIndex m = 0; m < masters_; ++m) {
    if (!connections_[m].idle()) return;
  }
  owner_.closed(owner_.self);
}

// ---- the loop -------------------------------------------------------------------------------------------------

void Driver::on_prepare(uv_prepare_t* handle) {
  Driver& driver = *static_cast<Driver*>(handle->data);
  uv_idle_stop(&driver.idle_);
  if (driver.stepping() || driver.forked()) return;
  const Inside inside(driver);
  driver.before_wait();
  if constexpr (with_tls) driver.go_on_one();
}

bool Driver::arm(Instant deadline) {
  int64_t at = clock_.timer_ns(deadline);
  if (at < 1) at = 1;  // 0 would disarm it
  itimerspec spec = {};
  constexpr uint32_t second = 1'000'000'000;
  const int64_t seconds = quotient(at, second);
  spec.it_value.tv_sec = static_cast<time_t>(seconds);
  spec.it_value.tv_nsec = static_cast<long>(at - seconds * second);
  return timerfd_settime(timer_fd_, TFD_TIMER_ABSTIME, &spec, nullptr) == 0;
}

void Driver::on_timer(uv_poll_t* handle, int, int) {
  Driver& driver = *static_cast<Driver*>(handle->data);
  if (driver.closing_ || driver.forked()) return;
  uint64_t expirations;
  if (::read(driver.timer_fd_, &expirations, sizeof expirations) < 0) return;
  driver.timer_fired();
}

bool Driver::is_duplicate(const Address& address, const Connection& of) const {
  for (MasterIndex m = 0; m < masters_; ++m) {
    if (&connections_[m] != &of && connections_[m].is_at(address)) return true;
  }
  return false;
}

}  // namespace redlock
