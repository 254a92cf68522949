// SPDX-License-Identifier: MIT
#include "tool/lock_options.hpp"

#include <redlock/site.h>
#include <string.h>

#include "tool/say.hpp"

namespace redlock::tool {
namespace {

constexpr long longest_wait_s = 86'400;

uint32_t default_ttl_ms(const redlock_config_t* cfg) {
  redlock_setting_t setting;
  read_setting(cfg, "defaults.ttl_ms", setting);
  return setting.number;
}

}  // namespace

const char lock_help[] =
    "  -n, --nonblock          try once; the default is to wait for as long as it takes\n"
    "  -w, --wait SECS         wait for so long at most; fractions are allowed\n"
    "  -t, --ttl MS            lifetime of the lock when nothing renews it\n"
    "      --max-hold SECS     renew the lock for so long at most\n"
    "      --fencing           with a fencing token\n"
    "      --on-lost term|kill before the lock ends: TERM, then KILL (default); or KILL alone\n"
    "  -E, --conflict-exit-code CODE   instead of 75, if others hold it\n";

void take_lock_option(const Options& options, int c, LockOptions& out) {
  switch (c) {
    case 'n':
      out.wait_ms = REDLOCK_TRY_ONCE;
      return;
    case 'w':
      out.wait_ms = options.milliseconds(longest_wait_s);
      return;
    case 't':
      out.ttl_ms = static_cast<uint32_t>(options.number(REDLOCK_TTL_MS_MIN, REDLOCK_MAX_TTL_MS_MAX));
      return;
    case max_hold_option:
      out.max_hold_ms = static_cast<uint32_t>(options.milliseconds(longest_wait_s));
      if (out.max_hold_ms == 0) options.usage("--max-hold 0 leaves no time");
      return;
    case fencing_option:
      out.fencing = true;
      return;
    case on_lost_option:
      out.term_first = strcmp(options.value(), "term") == 0;
      if (!out.term_first && strcmp(options.value(), "kill") != 0) options.usage("--on-lost takes term or kill");
      return;
  }
}

void add_resource(const Options& options, const char* name, Wish& wish) {
  if (*name == '\0') options.usage("the name of a resource is empty");
  if (wish.count == REDLOCK_RESOURCES_PER_LOCK_MAX) {
    options.usage("more than %d resources", REDLOCK_RESOURCES_PER_LOCK_MAX);
  }
  if (!wish.add(name)) options.usage("the name of a resource has more than %d bytes", REDLOCK_RESOURCE_MAX);
}

void apply_lock_options(const Options& options, const LockOptions& lock, const redlock_config_t* cfg, Wish& wish,
                        Schedule& schedule) {
  wish.ttl_ms = lock.ttl_ms != 0 ? lock.ttl_ms : default_ttl_ms(cfg);
  wish.wait_ms = lock.wait_ms;
  wish.max_hold_ms = lock.max_hold_ms;
  if (lock.fencing) wish.flags |= REDLOCK_F_FENCING;
  schedule.grace_ms = grace_ms_of(wish.ttl_ms);
  schedule.term_first = lock.term_first;
  wish.min_validity_ms = static_cast<uint32_t>(schedule.grace_ms + margin_ms);
  if (wish.ttl_ms < least_ttl_ms_of(wish.ttl_ms)) {
    options.usage("a ttl of %u ms is too short: a command must be ended before others can hold the lock; 2400 ms are "
                  "enough", wish.ttl_ms);
  }
}

}  // namespace redlock::tool
