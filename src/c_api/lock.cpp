// SPDX-License-Identifier: MIT
//
// Acquires, extends and releases locks.
#include <string.h>

#include "run/instance.hpp"
#include "run/report.hpp"

namespace redlock {
namespace {

bool ttl_fits(const CommonSettings& settings, uint32_t ttl_ms) {
  return ttl_ms >= REDLOCK_TTL_MS_MIN && ttl_ms <= settings.max_ttl_ms;
}

int refuse_ttl(const CommonSettings& settings, uint32_t ttl_ms, Fault& fault) {
  if (ttl_ms < REDLOCK_TTL_MS_MIN) return fault.set(Fault::Is::short_ttl, ttl_ms);
  return fault.set(Fault::Is::long_ttl, ttl_ms, settings.max_ttl_ms);
}

int to_options(const redlock_t* rl, const redlock_acquire_opts_t* given, redlock_acquire_opts_t& opts, Options& out,
               Fault& fault) {
  using Is = Fault::Is;
  opts = REDLOCK_ACQUIRE_OPTS_INIT;
  if (given != nullptr) {
    if (given->size < sizeof given->size || given->size > 4096) return fault.set(Is::size, given->size);
    if (given->size == sizeof opts) {
      opts = *given;
    } else {
      memcpy(&opts, given, given->size < sizeof opts ? given->size : sizeof opts);
    }
  }
  const CommonSettings& settings = rl->client.settings();
  constexpr uint32_t flags = REDLOCK_F_NO_RENEW | REDLOCK_F_FENCING | REDLOCK_F_TELL_WAITING | REDLOCK_F_URGENT;
  if ((opts.flags & ~flags) != 0) return fault.set(Is::flags, opts.flags);
  if (opts.reserved != 0) return fault.set(Is::reserved, opts.reserved);
  out.ttl_ms = opts.ttl_ms != 0 ? opts.ttl_ms : settings.ttl_ms;
  out.wait_ms = opts.wait_ms;
  out.min_validity_ms = opts.min_validity_ms;
  out.max_hold_ms = opts.max_hold_ms;
  out.retry_delay_ms = opts.retry_delay_ms != 0 ? opts.retry_delay_ms : settings.retry_delay_ms;
  out.renew = (opts.flags & REDLOCK_F_NO_RENEW) == 0;
  out.fenced = (opts.flags & REDLOCK_F_FENCING) != 0;
  out.tell_waiting = (opts.flags & REDLOCK_F_TELL_WAITING) != 0;
  out.urgent = (opts.flags & REDLOCK_F_URGENT) != 0;
  out.wants_holder = out.tell_waiting;
  if (!ttl_fits(settings, out.ttl_ms)) return refuse_ttl(settings, out.ttl_ms, fault);
  if (out.wait_ms < REDLOCK_WAIT_DEFAULT) return fault.set(Is::wait, 0u - static_cast<uint32_t>(out.wait_ms));
  if (out.min_validity_ms >= out.ttl_ms) return fault.set(Is::validity, out.min_validity_ms, out.ttl_ms);
  if (out.retry_delay_ms <= REDLOCK_RETRY_DELAY_MS_MAX) return 0;
  return fault.set(Is::delay, out.retry_delay_ms);
}

// Does the key of this name begin with redlock:{key_prefix}:, as the library's own keys do?
bool is_reserved(const CommonSettings& settings, Bytes name) {
  constexpr size_t around = sizeof "redlock::" - 1;
  const Bytes prefix = settings.key_prefix;
  if (name.size < around) return false;
  for (size_t i = 0; i < prefix.size + around; ++i) {
    const char c = i < prefix.size ? prefix.data[i] : name.data[i - prefix.size];
    if (c != settings.meta_key.data[i]) return false;
  }
  return true;
}

int to_name(const redlock_t* rl, const redlock_resource_t& resource, Bytes& out, Fault& fault) {
  out = Bytes(static_cast<const char*>(resource.data), resource.size);
  if (out.data == nullptr) return fault.set(Fault::Is::no_name);
  if (out.size == 0) return fault.set(Fault::Is::empty_name);
  if (out.size > REDLOCK_RESOURCE_MAX) return fault.set(Fault::Is::long_name, resource.size);
  if (!is_reserved(rl->client.settings(), out)) return 0;
  fault.set(Fault::Is::own_key);
  return REDLOCK_E_RESERVED;
}

// Checks the names and puts them into order.
int to_names(const redlock_t* rl, const redlock_resource_t* resources, uint32_t count, Request& out) {
  if (resources == nullptr) return out.fault.set(Fault::Is::no_resources);
  if (count == 0 || count > Names::max) return out.fault.set(Fault::Is::count, count);
  Bytes names[Names::max];
  uint32_t bytes = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const int err = to_name(rl, resources[i], names[i], out.fault);
    if (err != 0) return err;
    bytes += resources[i].size;
  }
  const uint32_t most = rl->client.settings().resource_bytes;
  if (bytes > most) return out.fault.set(Fault::Is::bytes, bytes, most);
  if (!Names::sort(names, count)) return out.fault.set(Fault::Is::twice);
  if (count == 1) {
    out.names = names[0];
  } else {
    out.names.assign(out.packed, names, count);
  }
  REDLOCK_ASSERT(out.names.count() == count);
  return 0;
}

}  // namespace

int to_request(const redlock_t* rl, const redlock_resource_t* resources, uint32_t count,
               const redlock_acquire_opts_t* opts, Request& out) {
  int err = to_names(rl, resources, count, out);
  if (err != 0) return err;
  redlock_acquire_opts_t full;
  err = to_options(rl, opts, full, out.options, out.fault);
  out.callback = full.callback;
  out.user = full.user;
  return err;
}

int check_ttl(const redlock_t* rl, uint32_t ttl_ms, Fault& fault) {
  const CommonSettings& settings = rl->client.settings();
  return ttl_ms == 0 || ttl_fits(settings, ttl_ms) ? 0 : refuse_ttl(settings, ttl_ms, fault);
}

int refuse(redlock_t* rl, Entry& entry, const char* call, const Fault& fault, int err, redlock_report_t* report) {
  char text[fault_text_max + 40];
  TextWriter line(text, sizeof text);
  line.print("%s: ", call);
  const size_t at = line.needed() - 1;
  REDLOCK_ASSERT(at < sizeof text);
  explain(fault, line);
  report_error(report, err, text + at);
  const Story::Level level = rl->story.call_refused(fault.what, whole_seconds(rl->client.now().ns()), line);
  const Log log = rl->log;
  entry.leave();
  log.write(level, text);
  return err;
}

}  // namespace redlock

using namespace redlock;

extern "C" {

int redlock_acquire_async(redlock_t* rl, const redlock_resource_t* resources, uint32_t count,
                          const redlock_acquire_opts_t* opts, redlock_lock_t* lock) {
  if (lock == nullptr) return REDLOCK_E_INVAL;
  lock->id = 0;
  Entry entry(rl, Entry::For::asking);
  if (entry.err != 0) return entry.err;
  Request request;
  const int err = to_request(rl, resources, count, opts, request);
  if (err != 0) return refuse(rl, entry, "redlock_acquire_async", request.fault, err);
  return rl->client.acquire(request.names, request.options, request.callback, request.user, lock->id);
}

int redlock_cancel(redlock_t* rl, redlock_lock_t lock) {
  const Entry entry(rl, Entry::For::asking);
  return entry.err != 0 ? entry.err : rl->client.cancel(lock.id);
}

int redlock_extend_async(redlock_t* rl, redlock_lock_t lock, uint32_t ttl_ms) {
  Entry entry(rl, Entry::For::asking);
  if (entry.err != 0) return entry.err;
  Fault fault;
  const int err = check_ttl(rl, ttl_ms, fault);
  return err != 0 ? refuse(rl, entry, "redlock_extend_async", fault, err) : rl->client.extend(lock.id, ttl_ms);
}

int redlock_release_async(redlock_t* rl, redlock_lock_t lock) {
  const Entry entry(rl, Entry::For::asking);
  return entry.err != 0 ? entry.err : rl->client.release(lock.id);
}

int redlock_fence_init(redlock_t* rl, const redlock_resource_t* resource) {
  Entry entry(rl, Entry::For::asking);
  if (entry.err != 0) return entry.err;
  Bytes name;
  if (resource == nullptr) return REDLOCK_E_INVAL;
  Fault fault;
  const int err = to_name(rl, *resource, name, fault);
  return err != 0 ? refuse(rl, entry, "redlock_fence_init", fault, err) : rl->client.fence_init(name);
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
