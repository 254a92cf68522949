// SPDX-License-Identifier: MIT
//
// redlock/redlock.hpp - a held lock as a C++ object: move-only, std::chrono durations, released at the end of its
// scope. Header-only, C++11; no exceptions, no RTTI, no allocation, no C++ runtime.
//
//     redlock::lock bus;
//     int err = redlock::acquire(rl, "plant1/rs485-a", redlock::options().wait(5s), bus);    // thread mode; blocks
//     if (err != 0) return err;
//     while (more_work() && bus.valid_for(300ms)) one_transaction();
//
// In loop and polled mode ask with redlock_acquire_async(), and let redlock::lock(rl, handle) take it over. For
// one of several equal devices: acquire_any() in thread mode, any_of in all.
#ifndef REDLOCK_REDLOCK_HPP
#define REDLOCK_REDLOCK_HPP

#include <redlock/any_of.hpp>
#include <redlock/redlock.h>

#include <semaphore.h>

#include <chrono>
#include <cstdint>

namespace redlock {

namespace detail {

// Rounded up. A negative time is 0, and one that does not fit is `most`.
template <class Rep, class Period>
std::uint32_t ceil_ms(std::chrono::duration<Rep, Period> time, std::uint32_t most) noexcept {
  typedef std::chrono::duration<Rep, Period> given;
  if (!(time > given::zero())) return 0;
  if (std::chrono::duration<double, std::milli>(time).count() >= static_cast<double>(most)) return most;
  const std::chrono::duration<std::uint32_t, std::milli> ms =
      std::chrono::duration_cast<std::chrono::duration<std::uint32_t, std::milli>>(time);
  return ms < time ? ms.count() + 1 : ms.count();
}

}  // namespace detail

// The fields of redlock_acquire_opts_t. Durations are rounded up to milliseconds.
class options {
 public:
  options() noexcept : raw_(REDLOCK_ACQUIRE_OPTS_INIT) {}

  template <class Rep, class Period>
  options& ttl(std::chrono::duration<Rep, Period> time) noexcept {
    raw_.ttl_ms = detail::ceil_ms(time, UINT32_MAX);
    return *this;
  }
  template <class Rep, class Period>
  options& wait(std::chrono::duration<Rep, Period> budget) noexcept {
    raw_.wait_ms = static_cast<std::int32_t>(detail::ceil_ms(budget, INT32_MAX));
    return *this;
  }
  options& wait_forever() noexcept {
    raw_.wait_ms = REDLOCK_WAIT_FOREVER;
    return *this;
  }
  template <class Rep, class Period>
  options& min_validity(std::chrono::duration<Rep, Period> time) noexcept {
    raw_.min_validity_ms = detail::ceil_ms(time, UINT32_MAX);
    return *this;
  }
  template <class Rep, class Period>
  options& max_hold(std::chrono::duration<Rep, Period> time) noexcept {
    raw_.max_hold_ms = detail::ceil_ms(time, UINT32_MAX);
    return *this;
  }
  template <class Rep, class Period>
  options& retry_delay(std::chrono::duration<Rep, Period> time) noexcept {
    raw_.retry_delay_ms = detail::ceil_ms(time, UINT32_MAX);
    return *this;
  }
  options& no_renew() noexcept {
    raw_.flags |= REDLOCK_F_NO_RENEW;
    return *this;
  }
  options& urgent() noexcept {
    raw_.flags |= REDLOCK_F_URGENT;
    return *this;
  }
  options& on_event(redlock_event_fn callback, void* user) noexcept {
    raw_.callback = callback;
    raw_.user = user;
    return *this;
  }

  const redlock_acquire_opts_t* get() const noexcept { return &raw_; }

 private:
  redlock_acquire_opts_t raw_;
};

// Owns one handle, or none. One thread at a time; check() and valid_for() from many while nobody changes the object.
// The client must outlive the object.
class lock {
 public:
  lock() noexcept : rl_(nullptr), handle_() {}
  // Takes over the handle of an acquire, decided or not.
  lock(redlock_t* rl, redlock_lock_t handle) noexcept : rl_(rl), handle_(handle) {}
  lock(lock&& other) noexcept : rl_(other.rl_), handle_(other.detach()) {}
  // Releases what it owned.
  lock& operator=(lock&& other) noexcept {
    if (this != &other) {
      release();
      rl_ = other.rl_;
      handle_ = other.detach();
    }
    return *this;
  }
  ~lock() { release(); }
  lock(const lock&) = delete;
  lock& operator=(const lock&) = delete;

  // redlock_check(), the time rounded up. STALE: owns nothing.
  template <class Rep, class Period>
  int check(std::chrono::duration<Rep, Period> need) const noexcept {
    return owns() ? redlock_check(rl_, handle_, detail::ceil_ms(need, UINT32_MAX)) : REDLOCK_E_STALE;
  }
  template <class Rep, class Period>
  bool valid_for(std::chrono::duration<Rep, Period> need) const noexcept {
    return check(need) == REDLOCK_OK;
  }
  // What is left of the validity, rounded down. 0: not held.
  std::chrono::milliseconds validity() const noexcept {
    const std::int64_t ms = owns() ? redlock_validity_ms(rl_, handle_) : 0;
    return std::chrono::milliseconds(ms > 0 ? ms : 0);
  }

  // redlock_extend(): thread mode, blocks. 0: the validity counts anew. Without a time: the ttl of the acquire.
  // INVAL: the time is not above 0. STALE: owns nothing.
  int extend() noexcept { return owns() ? redlock_extend(rl_, handle_, 0) : REDLOCK_E_STALE; }
  template <class Rep, class Period>
  int extend(std::chrono::duration<Rep, Period> ttl) noexcept {
    const std::uint32_t ms = detail::ceil_ms(ttl, UINT32_MAX);
    if (ms == 0) return REDLOCK_E_INVAL;
    return owns() ? redlock_extend(rl_, handle_, ms) : REDLOCK_E_STALE;
  }

  // redlock_release_async(): lets go, or cancels. Never blocks. 0 also when it owned nothing.
  int release() noexcept {
    const redlock_lock_t handle = detach();
    return handle.id != 0 ? redlock_release_async(rl_, handle) : REDLOCK_OK;
  }
  // Gives the handle away: somebody else must release the lock.
  redlock_lock_t detach() noexcept {
    const redlock_lock_t handle = handle_;
    handle_.id = 0;
    return handle;
  }

  // Says nothing about the validity: ask valid_for().
  bool owns() const noexcept { return handle_.id != 0; }
  redlock_lock_t handle() const noexcept { return handle_; }
  redlock_t* client() const noexcept { return rl_; }

 private:
  redlock_t* rl_;
  redlock_lock_t handle_;
};

// redlock_acquire(): thread mode, blocks. What `out` owned is released. On an error it owns nothing.
inline int acquire(redlock_t* rl, const redlock_resource_t* resources, std::uint32_t count, const options& how,
                   lock& out) noexcept {
  out.release();
  redlock_lock_t handle;
  const int err = redlock_acquire(rl, resources, count, how.get(), &handle);
  if (err == REDLOCK_OK) out = lock(rl, handle);
  return err;
}

inline int acquire(redlock_t* rl, const char* name, const options& how, lock& out) noexcept {
  const redlock_resource_t resource = redlock_resource(name);
  return acquire(rl, &resource, 1, how, out);
}

inline int acquire(redlock_t* rl, const char* name, lock& out) noexcept { return acquire(rl, name, options(), out); }

namespace detail {

struct race {
  any_of names;
  sem_t ended;
};

// Later events of the lock that is kept find no race any more.
inline void on_race(redlock_t*, const redlock_event_t* event, void* user) noexcept {
  const bool decides = event->type == REDLOCK_EV_ACQUIRED || event->type == REDLOCK_EV_FAILED;
  if (!decides && event->type != REDLOCK_EV_WAITING) return;
  race& all = *static_cast<race*>(user);
  all.names.take(*event);
  if (decides && all.names.ended()) sem_post(&all.ended);
}

}  // namespace detail

// Thread mode, blocks. 0: `out` owns the lock of names[which]. Else nothing; the error is that of the last name. INVAL:
// count is not in 1 .. any_of::most, or `how` has a callback. NO_BLOCKING, DEADLOCK: as redlock_acquire(). The client
// must not be destroyed meanwhile.
inline int acquire_any(redlock_t* rl, const redlock_resource_t* names, std::uint32_t count, const options& how,
                       lock& out, std::uint32_t& which) noexcept {
  out.release();
  which = 0;
  if (how.get()->callback != nullptr) return REDLOCK_E_INVAL;
  const int may_block = redlock_release(rl, redlock_lock_t());  // of nothing
  if (may_block != REDLOCK_E_STALE) return may_block;
  detail::race all;
  if (sem_init(&all.ended, 0, 0) != 0) return REDLOCK_E_SYSTEM;
  redlock_acquire_opts_t each = *how.get();
  each.callback = detail::on_race;
  each.user = &all;
  int err = all.names.begin(rl, names, count, each);
  if (err == REDLOCK_OK) {
    while (sem_wait(&all.ended) != 0) continue;  // a signal
    err = all.names.err();
  }
  if (err == REDLOCK_OK) {
    out = lock(rl, all.names.handle());
    which = all.names.which();
  }
  sem_destroy(&all.ended);
  return err;
}

}  // namespace redlock

#endif  // REDLOCK_REDLOCK_HPP
