// SPDX-License-Identifier: MIT
//
// Acquires, extends and releases locks.
#include <string.h>

#include "run/instance.hpp"

namespace redlock {
namespace {

int to_options(const redlock_t* rl, const redlock_acquire_opts_t* given, redlock_acquire_opts_t& opts,
               Options& out) {
  opts = REDLOCK_ACQUIRE_OPTS_INIT;
  if (given != nullptr) {
    if (given->size < sizeof given->size || given->size > 4096) return REDLOCK_E_INVAL;
    if (given->size == sizeof opts) {
      opts = *given;
    } else {
      memcpy(&opts, given, given->size < sizeof opts ? given->size : sizeof opts);
    }
  }
  const Settings& settings = rl->client.settings();
  constexpr uint32_t flags = REDLOCK_F_NO_RENEW | REDLOCK_F_FENCING | REDLOCK_F_TELL_WAITING;
  if ((opts.flags & ~flags) != 0 || opts.reserved != 0) return REDLOCK_E_INVAL;
  out.ttl_ms = opts.ttl_ms != 0 ? opts.ttl_ms : settings.ttl_ms;
  out.wait_ms = opts.wait_ms == REDLOCK_WAIT_DEFAULT ? 0 : opts.wait_ms;
  out.min_validity_ms = opts.min_validity_ms;
  out.max_hold_ms = opts.max_hold_ms;
  out.retry_delay_ms = opts.retry_delay_ms != 0 ? opts.retry_delay_ms : settings.retry_delay_ms;
  out.renew = (opts.flags & REDLOCK_F_NO_RENEW) == 0;
  out.fenced = (opts.flags & REDLOCK_F_FENCING) != 0;
  out.wants_holder = (opts.flags & REDLOCK_F_TELL_WAITING) != 0;
  if (out.ttl_ms < REDLOCK_TTL_MS_MIN || out.ttl_ms > settings.max_ttl_ms) return REDLOCK_E_INVAL;
  if (out.wait_ms < REDLOCK_WAIT_FOREVER || out.min_validity_ms >= out.ttl_ms) return REDLOCK_E_INVAL;
  return out.retry_delay_ms > REDLOCK_RETRY_DELAY_MS_MAX ? REDLOCK_E_INVAL : 0;
}

// Does the key of this name begin with redlock:{key_prefix}:, as the library's own keys do?
bool is_reserved(const Settings& settings, Bytes name) {
  constexpr size_t around = sizeof "redlock::" - 1;
  const Bytes prefix = settings.key_prefix;
  if (name.size < around) return false;
  for (size_t i = 0; i < prefix.size + around; ++i) {
    const char c = i < prefix.size ? prefix.data[i] : name.data[i - prefix.size];
    if (c != settings.meta_key.data[i]) return false;
  }
  return true;
}

int to_name(const redlock_t* rl, const redlock_resource_t& resource, Bytes& out) {
  out = Bytes(static_cast<const char*>(resource.data), resource.size);
  if (out.data == nullptr || out.size == 0 || out.size > REDLOCK_RESOURCE_MAX) return REDLOCK_E_INVAL;
  return is_reserved(rl->client.settings(), out) ? REDLOCK_E_RESERVED : 0;
}

// Checks the names and puts them into order. INVAL also: a name is there twice.
int to_names(const redlock_t* rl, const redlock_resource_t* resources, uint32_t count, Request& out) {
  if (resources == nullptr || count == 0 || count > Names::max) return REDLOCK_E_INVAL;
  Bytes names[Names::max];
  size_t bytes = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const int err = to_name(rl, resources[i], names[i]);
    if (err != 0) return err;
    bytes += names[i].size;
  }
  if (bytes > rl->client.settings().resource_bytes || !Names::sort(names, count)) return REDLOCK_E_INVAL;
  if (count == 1) {
    out.names = names[0];
  } else {
    out.names.assign(out.packed, names, count);
  }
  return 0;
}

}  // namespace

int to_request(const redlock_t* rl, const redlock_resource_t* resources, uint32_t count,
               const redlock_acquire_opts_t* opts, Request& out) {
  int err = to_names(rl, resources, count, out);
  if (err != 0) return err;
  redlock_acquire_opts_t full;
  err = to_options(rl, opts, full, out.options);
  out.callback = full.callback;
  out.user = full.user;
  return err;
}

int check_ttl(const redlock_t* rl, uint32_t ttl_ms) {
  const bool in_range = ttl_ms >= REDLOCK_TTL_MS_MIN && ttl_ms <= rl->client.settings().max_ttl_ms;
  return ttl_ms == 0 || in_range ? 0 : REDLOCK_E_INVAL;
}

}  // namespace redlock

using namespace redlock;

extern "C" {

int redlock_acquire_async(redlock_t* rl, const redlock_resource_t* resources, uint32_t count,
                          const redlock_acquire_opts_t* opts, redlock_lock_t* lock) {
  if (lock == nullptr) return REDLOCK_E_INVAL;
  lock->id = 0;
  const Entry entry(rl, Entry::For::asking);
  if (entry.err != 0) return entry.err;
  Request request;
  const int err = to_request(rl, resources, count, opts, request);
  if (err != 0) return err;
  return rl->client.acquire(request.names, request.options, request.callback, request.user, lock->id);
}

int redlock_cancel(redlock_t* rl, redlock_lock_t lock) {
  const Entry entry(rl, Entry::For::asking);
  return entry.err != 0 ? entry.err : rl->client.cancel(lock.id);
}

int redlock_extend_async(redlock_t* rl, redlock_lock_t lock, uint32_t ttl_ms) {
  const Entry entry(rl, Entry::For::asking);
  if (entry.err != 0) return entry.err;
  const int err = check_ttl(rl, ttl_ms);
  return err != 0 ? err : rl->client.extend(lock.id, ttl_ms);
}

int redlock_release_async(redlock_t* rl, redlock_lock_t lock) {
  const Entry entry(rl, Entry::For::asking);
  return entry.err != 0 ? entry.err : rl->client.release(lock.id);
}

int redlock_fence_init(redlock_t* rl, const redlock_resource_t* resource) {
  const Entry entry(rl, Entry::For::asking);
  if (entry.err != 0) return entry.err;
  Bytes name;
  if (resource == nullptr) return REDLOCK_E_INVAL;
  const int err = to_name(rl, *resource, name);
  return err != 0 ? err : rl->client.fence_init(name);
}

int redlock_suspended(redlock_t* rl) {
  const Entry entry(rl, Entry::For::asking);
  return entry.err != 0 ? entry.err : rl->client.suspended(rl->driver.now());
}

int redlock_commission(redlock_t* rl) {
  const Entry entry(rl, Entry::For::asking);
  return entry.err != 0 ? entry.err : rl->client.commission(rl->client.settings().masters, rl->driver.now());
}

int redlock_commission_master(redlock_t* rl, uint32_t master) {
  const Entry entry(rl, Entry::For::asking);
  if (entry.err != 0) return entry.err;
  if (master >= rl->client.settings().masters) return REDLOCK_E_INVAL;
  return rl->client.commission(master, rl->driver.now());
}
}  // extern "C"
