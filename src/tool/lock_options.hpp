// SPDX-License-Identifier: MIT
//
// The options about a lock, which `redlock run` and `redlock hold` share.
#pragma once
#include "tool/lease.hpp"
#include "tool/options.hpp"
#include "tool/schedule.hpp"

namespace redlock::tool {

struct LockOptions {
  int32_t wait_ms = REDLOCK_WAIT_FOREVER;
  uint32_t ttl_ms = 0;
  uint32_t max_hold_ms = 0;
  bool fencing = false;
  bool term_first = true;
};

constexpr int max_hold_option = Options::first_long + 100;
constexpr int fencing_option = Options::first_long + 101;
constexpr int on_lost_option = Options::first_long + 102;

#define LOCK_OPTIONS                                                                                                \
  {"nonblock", 'n'}, {"wait", 'w', true}, {"ttl", 't', true}, {"max-hold", max_hold_option, true},                  \
      {"fencing", fencing_option}, { "on-lost", on_lost_option, true }
extern const char lock_help[];

void take_lock_option(const Options& options, int c, LockOptions& out);
void add_resource(const Options& options, const char* name, Wish& wish);
// Completes the wish and the schedule from the options and the configuration. A ttl that is too short for the schedule
// is a mistake, which ends the program.
void apply_lock_options(const Options& options, const LockOptions& lock, const redlock_config_t* cfg, Wish& wish,
                        Schedule& schedule);

}  // namespace redlock::tool
