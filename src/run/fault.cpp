// SPDX-License-Identifier: MIT
#include "run/fault.hpp"

namespace redlock {
namespace {

#define REDLOCK_DIGITS(number) #number
#define REDLOCK_DIGITS_OF(number) REDLOCK_DIGITS(number)

// The first %u is the value, the second one the limit.
constexpr char texts[] =
    "resources is NULL\0"
    "count %u is not in 1.." REDLOCK_DIGITS_OF(REDLOCK_RESOURCES_PER_LOCK_MAX) "\0"
    "a name is NULL\0"
    "a name is empty\0"
    "a name is longer than " REDLOCK_DIGITS_OF(REDLOCK_RESOURCE_MAX) " bytes\0"
    "a name makes a key of the library's own: redlock:{key_prefix}:...\0"
    "a name is given twice\0"
    "the names have %u bytes together, more than limits.resource_bytes %u\0"
    "opts->size is %u: use REDLOCK_ACQUIRE_OPTS_INIT\0"
    "flags %u has a bit that this version does not know\0"
    "opts->reserved is %u, not 0\0"
    "ttl_ms %u is below " REDLOCK_DIGITS_OF(REDLOCK_TTL_MS_MIN) "\0"
    "ttl_ms %u is above timing.max_ttl_ms %u\0"
    "wait_ms -%u is no time and no REDLOCK_WAIT_...\0"
    "min_validity_ms %u is not below ttl_ms %u\0"
    "retry_delay_ms %u is above " REDLOCK_DIGITS_OF(REDLOCK_RETRY_DELAY_MS_MAX);

}  // namespace

int Fault::set(Is is, uint32_t given, uint32_t against) {
  what = is;
  value = given;
  limit = against;
  return REDLOCK_E_INVAL;
}

void explain(const Fault& fault, TextWriter& out) {
  const char* const text = nth_text(texts, static_cast<unsigned>(fault.what));
  REDLOCK_ASSERT(text < texts + sizeof texts);
  out.print(text, fault.value, fault.limit);
}

}  // namespace redlock
