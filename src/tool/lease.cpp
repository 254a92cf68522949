// SPDX-License-Identifier: MIT
#include "tool/lease.hpp"

#include <poll.h>
#include <string.h>

#include "tool/say.hpp"

namespace redlock::tool {
namespace {

constexpr uint32_t close_grace_ms = 1000;
constexpr int level_error = 3;
constexpr int level_info = 6;
constexpr int level_debug = 7;

}  // namespace

bool Wish::add(const char* resource) {
  if (count == REDLOCK_RESOURCES_PER_LOCK_MAX || strlen(resource) > REDLOCK_RESOURCE_MAX) return false;
  if (count != 0) strcat(names, " ");
  strcat(names, resource);
  resources[count++] = redlock_resource(resource);
  return true;
}

void Lease::open(redlock_config_t* cfg, const Wish& wish, const Common& common) {
  uint32_t bytes = 0;
  for (uint32_t i = 0; i < wish.count; ++i) bytes += wish.resources[i].size;
  int err = 0;
  // The room for names is this client's own affair: several names need more than a file that was made for one.
  if (bytes > REDLOCK_RESOURCE_BYTES_DEFAULT) err = redlock_config_set_u32(cfg, "limits.resource_bytes", bytes);
  log_level_ = common.verbose == 0 ? level_error : common.verbose == 1 ? level_info : level_debug;
  redlock_config_set_log(cfg, on_log, this, log_level_);
  if (err == 0) err = redlock_create_polled(&client_, cfg);
  const bool explained = err == REDLOCK_E_CONFIG || err == REDLOCK_E_TLS_FILE;
  if (explained) fail(exit_config, "%s", redlock_config_error(cfg));
  if (err != 0) fail(exit_code_of(err), "%s", redlock_strerror(err));
  redlock_config_free(cfg);
  redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
  opts.flags = wish.flags | REDLOCK_F_TELL_WAITING;
  opts.ttl_ms = wish.ttl_ms;
  opts.wait_ms = wish.wait_ms;
  opts.max_hold_ms = wish.max_hold_ms;
  opts.min_validity_ms = wish.min_validity_ms;
  opts.callback = on_event;
  opts.user = this;
  err = redlock_acquire_async(client_, wish.resources, wish.count, &opts, &lock_);
  if (err != 0) fail(exit_code_of(err), "%s", *last_error_ != '\0' ? last_error_ : redlock_strerror(err));
}

void Lease::process() {
  if (redlock_process(client_) == REDLOCK_E_CLOSED) state_ = closed;
}

void Lease::close() {
  if (client_ == nullptr || state_ == closed) return;
  redlock_release_async(client_, lock_);
  redlock_close_async(client_, close_grace_ms);
  while (state_ != closed) {
    pollfd wanted = {descriptor(), POLLIN, 0};
    poll(&wanted, 1, timeout_ms());
    process();
  }
}

// ---- what happens -----------------------------------------------------------------------------------------------

void Lease::on_event(redlock_t*, const redlock_event_t* event, void* self) { static_cast<Lease*>(self)->take(*event); }

void Lease::on_log(int level, const char* line, void* user) {
  Lease& self = *static_cast<Lease*>(user);
  if (level <= level_error) format_text(self.last_error_, sizeof self.last_error_, "%s", line);
  if (self.log_level_ > level_error) note("%s", line);
}

void Lease::take(const redlock_event_t& event) {
  if (state_ == closed) return;
  switch (event.type) {
    case REDLOCK_EV_ACQUIRED:
      state_ = held;
      token_ = event.token;
      return read_end();
    case REDLOCK_EV_RENEWED:
      ++renewals_;
      *sentence_ = '\0';
      return read_end();
    case REDLOCK_EV_LOST:
      state_ = lost;
      break;
    case REDLOCK_EV_FAILED:
      state_ = failed;
      exit_code_ = code_of_failure(event);
      break;
    case REDLOCK_EV_AT_RISK:
    case REDLOCK_EV_WAITING:
      break;
    default:
      return;
  }
  redlock_describe(&event, sentence_, sizeof sentence_);
}

void Lease::read_end() {
  const int64_t end = redlock_deadline_ns(client_, lock_);
  if (end > 0) end_ns_ = end;
}

// ---- exit codes -------------------------------------------------------------------------------------------------

ExitCode Lease::code_of_failure(const redlock_event_t& event) const {
  switch (event.cause) {
    case REDLOCK_CAUSE_HELD:
      return exit_held;
    case REDLOCK_CAUSE_GUARD:
    case REDLOCK_CAUSE_CHANGE:
      return exit_not_admitted;
    case REDLOCK_CAUSE_NEVER:
      return worse_of(exit_code_of(event.master_err), code_of_masters());
    case REDLOCK_CAUSE_TOO_FEW:
      return code_of_masters();
    default:
      break;
  }
  const ExitCode code = exit_code_of(event.err);
  return code == exit_too_few ? code_of_masters() : code;
}

// Too few masters vote. Of those that do not, the one with the cause that tells most.
ExitCode Lease::code_of_masters() const {
  ExitCode worst = exit_too_few;
  redlock_master_status_t master{};
  master.size = sizeof master;
  for (uint32_t i = 0; redlock_master_status(client_, i, &master) == 0; ++i) {
    if (master.state != REDLOCK_MASTER_UP && master.err != 0) worst = worse_of(worst, exit_code_of(master.err));
  }
  return worst;
}

}  // namespace redlock::tool
