// SPDX-License-Identifier: MIT
//
// When a command is ended that must be gone before somebody else can hold its lock. Every instant is counted back from
// the end of the validity:
//
//     ... renewals ... | TERM          | KILL by a program | KILL by the kernel | end of the validity
//                      end-margin-grace  end-margin-lead     end-margin
#pragma once
#include <signal.h>

#include "tool/system/clock.hpp"

namespace redlock::tool {

// For a kernel that is slow to deliver a signal, and for what the command still has in the kernel.
constexpr int64_t margin_ms = 200;
constexpr int64_t lead_ms = 150;  // to find all descendants, on a machine that does much else
constexpr int again_ms = 5;  // while killing: descendants that were being forked turn up
constexpr int64_t longest_grace_ms = 2000;
// After a TERM from outside. An init system that waits 5 s before it kills has no reason to.
constexpr int64_t usual_stop_ms = 4000;

constexpr int64_t grace_ms_of(int64_t ttl_ms) { return ttl_ms / 4 < longest_grace_ms ? ttl_ms / 4 : longest_grace_ms; }
// A shorter ttl would leave too little time between a renewal that fails and the TERM.
constexpr int64_t least_ttl_ms_of(int64_t ttl_ms) { return 3 * (grace_ms_of(ttl_ms) + margin_ms); }

struct Schedule {
  int signal = SIGTERM;        // what the command is told to end with
  int64_t grace_ms = 0;        // between that and KILL, before the lock ends; 0: nothing but KILL
  int64_t stop_ms = 0;         // the same after a TERM from outside: the lock is renewed meanwhile

  Schedule() = default;
  // `kill_after_ms` below 0: not given.
  Schedule(int64_t ttl_ms, int signal_given, int64_t kill_after_ms) : signal(signal_given) {
    const bool is_given = kill_after_ms >= 0;
    stop_ms = signal == SIGKILL ? 0 : is_given ? kill_after_ms : usual_stop_ms;
    grace_ms = signal == SIGKILL || is_given ? earlier_of(stop_ms, grace_ms_of(ttl_ms)) : grace_ms_of(ttl_ms);
  }

  int64_t term_at(int64_t end_ns) const {
    return grace_ms > 0 ? end_ns - (margin_ms + grace_ms) * ns_per_ms : never;
  }
  int64_t kill_at(int64_t end_ns) const { return end_ns - (margin_ms + lead_ms) * ns_per_ms; }
  int64_t kernel_kills_at(int64_t end_ns) const { return end_ns - margin_ms * ns_per_ms; }
};

}  // namespace redlock::tool
