// SPDX-License-Identifier: MIT
//
// redlock/any_of.hpp - the part of redlock.hpp that needs no C++ library. Header-only, C++11.
#ifndef REDLOCK_ANY_OF_HPP
#define REDLOCK_ANY_OF_HPP

#include <redlock/redlock.h>

#include <sys/random.h>
#include <time.h>

#include <cstdint>

namespace redlock {

// Any one of several equal devices, or a counting semaphore: an acquire for each name, from a random one on, of which
// one is kept. Any mode: the acquire's callback hands its events to take(). One thread at a time. It must live until
// ended(). Each of k names takes a place of limits.locks. Where others hold k - 1 of them it takes k rounds; where they
// hold all, k times the commands of one wait.
class any_of {
 public:
  enum : std::uint32_t { most = 16 };

  any_of() noexcept : rl_(nullptr), names_(nullptr), count_(0), how_(REDLOCK_ACQUIRE_OPTS_INIT) {}
  any_of(const any_of&) = delete;
  any_of& operator=(const any_of&) = delete;

  // Once. `names` must live until ended(). A wait in milliseconds is for all names together. INVAL: count is not in 1
  // .. most. Else as redlock_acquire_async(). On an error no event follows. If there is no place for a later name, all
  // are given up: FAILED follows, and err() is that error.
  int begin(redlock_t* rl, const redlock_resource_t* names, std::uint32_t count,
            const redlock_acquire_opts_t& how) noexcept {
    std::uint32_t random = 0;
    if (count == 0 || count > most) return REDLOCK_E_INVAL;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0) random = 0;  // an early boot: the names in their order
    rl_ = rl;
    names_ = names;
    count_ = count;
    first_ = random % count;
    how_ = how;
    how_.flags |= REDLOCK_F_TELL_WAITING;
    began_ms_ = now_ms();
    return ask();
  }

  // True: the event is about the outcome: WAITING, while no name is won; ACQUIRED, and what happens to that lock later;
  // FAILED of the last name. False: of a name that is not kept.
  bool take(const redlock_event_t& event) noexcept {
    if (is_won_ && event.lock.id == handle().id) return true;
    switch (event.type) {
      case REDLOCK_EV_ACQUIRED:
        return keep(event.lock);  // no other ACQUIRED follows, even of an acquire that is won already
      case REDLOCK_EV_FAILED:
        --open_;
        if (is_won_) return false;
        if (!is_given_up_) {
          err_ = event.err;
          ask_next();
        }
        return open_ == 0;
      case REDLOCK_EV_WAITING:
        if (!is_won_ && event.cause == REDLOCK_CAUSE_HELD && event.lock.id == handles_[asked_ - 1].id) ask_next();
        return !is_won_;
      default:
        return false;
    }
  }

  // Will no event follow of a name that is not kept? It is decided then, too.
  bool ended() const noexcept { return open_ == 0; }
  // 0: one is won. Else why the last name failed.
  int err() const noexcept { return is_won_ ? REDLOCK_OK : err_; }
  // Of the name that is won: its index in `names`, and its lock.
  std::uint32_t which() const noexcept { return (first_ + won_) % count_; }
  redlock_lock_t handle() const noexcept { return handles_[won_]; }

 private:
  static std::int64_t now_ms() noexcept {
    timespec now = timespec();
    clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
  }

  // Nothing is written behind a call that succeeds: take() may run in another thread already.
  int ask() noexcept {
    const std::uint32_t turn = asked_++;
    ++open_;
    const int err = redlock_acquire_async(rl_, names_ + (first_ + turn) % count_, 1, &how_, &handles_[turn]);
    if (err != REDLOCK_OK) --open_;
    return err;
  }
  void ask_next() noexcept {
    const std::int64_t now = now_ms();
    if (how_.wait_ms > 0) {
      if (now - began_ms_ >= how_.wait_ms) return;
      how_.wait_ms -= static_cast<std::int32_t>(now - began_ms_);
    }
    began_ms_ = now;
    if (is_given_up_ || asked_ == count_) return;
    const int err = ask();
    if (err == REDLOCK_OK) return;
    err_ = err;
    is_given_up_ = true;
    for (std::uint32_t i = 0; i < asked_; ++i) redlock_release_async(rl_, handles_[i]);
  }
  bool keep(redlock_lock_t won) noexcept {
    --open_;
    is_won_ = true;
    for (std::uint32_t i = 0; i < asked_; ++i) {
      if (handles_[i].id == won.id) {
        won_ = i;
      } else {
        redlock_release_async(rl_, handles_[i]);
      }
    }
    return true;
  }

  redlock_t* rl_;
  const redlock_resource_t* names_;
  std::uint32_t count_;
  redlock_acquire_opts_t how_;
  redlock_lock_t handles_[most] = {};  // by turns: the first is that of names_[first_]
  std::uint32_t first_ = 0;
  std::uint32_t asked_ = 0;
  std::uint32_t open_ = 0;  // acquires that are not decided
  std::uint32_t won_ = 0;
  std::int64_t began_ms_ = 0;
  int err_ = REDLOCK_OK;
  bool is_won_ = false;
  bool is_given_up_ = false;
};

}  // namespace redlock

#endif  // REDLOCK_ANY_OF_HPP
