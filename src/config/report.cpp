// SPDX-License-Identifier: MIT
#include "config/report.hpp"

#include "config/text.hpp"

namespace redlock {

const char* state_name(int32_t state) {
  switch (state) {
    case REDLOCK_MASTER_DOWN: return "down";
    case REDLOCK_MASTER_CONNECTING: return "connecting";
    case REDLOCK_MASTER_GREETING: return "greeting";
    case REDLOCK_MASTER_UP: return "up";
    case REDLOCK_MASTER_SUSPECT: return "suspect";
    case REDLOCK_MASTER_GUARDED: return "guarded";
    default: return "unknown";
  }
}

namespace {

const char* truth(uint32_t flag) { return flag != 0 ? "true" : "false"; }

void write_wait(TextWriter& out, int64_t ms) {
  if (ms < 0) {
    out.raw("null");  // not known
  } else {
    out.number(static_cast<uint64_t>(ms));
  }
}

// Numbers of 64 bits stand in quotes: a reader of JSON may take numbers for doubles.
void write_master(TextWriter& out, const redlock_master_status_t& master) {
  out.raw(R"({"name":)").quoted(Bytes(master.name, strnlen(master.name, sizeof master.name)));
  out.raw(R"(,"address":)").quoted(Bytes(master.address, strnlen(master.address, sizeof master.address)));
  out.print(R"(,"state":"%s","err":)", state_name(master.state));
  if (master.err == 0) {
    out.raw("null");
  } else {
    out.print(R"("%s")", redlock_err_name(master.err));
  }
  out.raw(R"(,"guard_ms":)");
  write_wait(out, master.guard_ms);
  out.print(R"(,"in_flight":%u,"owed":%u,"connects":%u,"resp3":%s,"tracked":%s,"replies":")", master.in_flight,
            master.owed, master.connects, truth(master.resp3), truth(master.tracked));
  out.number(master.replies).raw(R"(","errors":")").number(master.errors).raw(R"("})");
}

void write_counters(TextWriter& out, const redlock_status_t& status) {
  using Status = redlock_status_t;
  static constexpr uint64_t Status::*counters[] = {
      &Status::acquired,     &Status::failed_locked, &Status::failed_no_quorum, &Status::failed_other,
      &Status::rounds,       &Status::renewed,       &Status::renew_failed,     &Status::released,
      &Status::lost,         &Status::clock_jumps,   &Status::clock_steps,
  };
  const char* name =
      "acquired\0failed_locked\0failed_no_quorum\0failed_other\0rounds\0renewed\0renew_failed\0released\0lost\0"
      "clock_jumps\0clock_steps";
  const char* before = "{";
  for (uint64_t Status::*const counter : counters) {
    out.print(R"(%s"%s":")", before, name).number(status.*counter).raw("\"");
    before = ",";
    name += strlen(name) + 1;
  }
  out.raw("}");
}

}  // namespace

size_t write_status_json(char* buffer, size_t capacity, const redlock_status_t& status,
                         const redlock_master_status_t* masters, unsigned count) {
  TextWriter out(buffer, capacity);
  out.print(R"({"schema":"redlock.status/1","version":"%s","quorum":%u,"even":%s,"masters_up":%u,"guard_ms":)",
            redlock_version_string(), status.quorum, truth(status.even), status.masters_up);
  write_wait(out, status.guard_ms);
  out.raw(R"(,"masters":[)");
  for (unsigned i = 0; i < count; ++i) write_master(i == 0 ? out : out.raw(","), masters[i]);
  out.print(R"(],"locks":{"held":%u,"pending":%u,"max":%u},"debts":{"open":%u,"max":%u},"counters":)",
            status.locks_held, status.locks_pending, status.locks_max, status.debts, status.debts_max);
  write_counters(out, status);
  out.raw("}");
  if (!out.fits() && capacity > 0) buffer[0] = '\0';
  return out.needed();
}

}  // namespace redlock
