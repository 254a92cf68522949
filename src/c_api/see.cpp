// SPDX-License-Identifier: MIT
//
// Status: of the client, of a master, and as JSON. Log lines on stderr.
#include <string.h>
#include <unistd.h>

#include "config/report.hpp"
#include "run/detail.hpp"
#include "run/instance.hpp"

using redlock::Entry;

namespace {

// Reads the clock as redlock_check() does, and changes nothing of the client.
redlock::Instant time_of(const redlock_t* rl) {
  redlock::Instant now;
  rl->driver.clock().check(now);
  return now;
}

template <class Status>
int copy_out(const Status& full, Status* out) {
  const uint32_t size = out->size;
  memcpy(out, &full, size < sizeof full ? size : sizeof full);
  out->size = size < sizeof full ? size : static_cast<uint32_t>(sizeof full);
  return 0;
}

void fill_master_status(const redlock_t* rl, uint32_t index, redlock_master_status_t& out, redlock::Instant now) {
  out = {};
  out.size = sizeof out;
  rl->client.notices().master_status(index, out, now);
  const redlock::MasterSettings& master = rl->client.session(index).master();
  redlock::TextWriter(out.name, sizeof out.name).raw(master.name);
  redlock::write_address(master, out.address);
}

}  // namespace

extern "C" {

int redlock_status(const redlock_t* rl, redlock_status_t* status) {
  const bool fits = redlock::clear_output(status, sizeof *status, offsetof(redlock_status_t, masters));
  const Entry entry(rl, Entry::For::reading);
  if (entry.err != 0) return entry.err;
  if (!fits) return REDLOCK_E_INVAL;
  redlock_status_t full = {};
  rl->client.notices().status(full, time_of(rl));
  return copy_out(full, status);
}

int redlock_master_status(const redlock_t* rl, uint32_t index, redlock_master_status_t* status) {
  const bool fits = redlock::clear_output(status, sizeof *status, offsetof(redlock_master_status_t, state));
  const Entry entry(rl, Entry::For::reading);
  if (entry.err != 0) return entry.err;
  if (!fits || index >= rl->client.settings().masters) return REDLOCK_E_INVAL;
  redlock_master_status_t full;
  fill_master_status(rl, index, full, time_of(rl));
  return copy_out(full, status);
}

int redlock_status_json(const redlock_t* rl, char* buf, size_t* size) {
  const size_t capacity = size != nullptr ? *size : 0;
  if (size != nullptr) *size = 0;
  if (buf != nullptr && capacity != 0) *buf = '\0';
  const Entry entry(rl, Entry::For::reading);
  if (entry.err != 0) return entry.err;
  if (size == nullptr || (buf == nullptr && capacity != 0)) return REDLOCK_E_INVAL;
  redlock_status_t status = {};
  const redlock::Instant now = time_of(rl);
  rl->client.notices().status(status, now);
  redlock_master_status_t masters[REDLOCK_MASTERS_MAX];
  for (uint32_t m = 0; m < status.masters; ++m) fill_master_status(rl, m, masters[m], now);
  *size = redlock::write_status_json(buf, capacity, status, masters, status.masters);
  return *size <= capacity ? 0 : REDLOCK_E_TOOSMALL;
}

// One write: the lines of threads and processes that share stderr do not mix. A line that cannot be written is dropped.
void redlock_log_stderr(int, const char* msg, void*) {
  char line[sizeof "redlock: " + redlock::Story::line_max];
  const size_t room = sizeof line - 1;  // for the newline
  redlock::TextWriter out(line, room);
  out.raw("redlock: ").raw(redlock::bytes_of(msg));
  const size_t size = out.fits() ? out.needed() - 1 : room - 1;
  line[size] = '\n';
  if (write(STDERR_FILENO, line, size + 1) < 0) return;
}

}  // extern "C"
