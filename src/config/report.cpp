// SPDX-License-Identifier: MIT
#include "config/report.hpp"

#include <cstddef>

#include "config/text.hpp"

namespace redlock {

const char* state_name(int32_t state) {
  static_assert(REDLOCK_MASTER_DOWN == 1 && REDLOCK_MASTER_CONNECTING == 2 && REDLOCK_MASTER_GREETING == 3 &&
                REDLOCK_MASTER_UP == 4 && REDLOCK_MASTER_SUSPECT == 5 && REDLOCK_MASTER_GUARDED == 6);
  const bool known = state >= REDLOCK_MASTER_DOWN && state <= REDLOCK_MASTER_GUARDED;
  return nth_text("unknown\0down\0connecting\0greeting\0up\0suspect\0guarded",
                  known ? static_cast<unsigned>(state) : 0);
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

#define REDLOCK_ADJACENT(type, first, last, n) \
  static_assert(offsetof(type, last) - offsetof(type, first) == ((n) - 1) * sizeof(uint64_t))
REDLOCK_ADJACENT(redlock_master_status_t, replies, errors, 2);
REDLOCK_ADJACENT(redlock_times_t, count, max_ms, 3);
REDLOCK_ADJACENT(redlock_status_t, acquired, clock_steps, 11);
#undef REDLOCK_ADJACENT

template <typename T>
const char* of(const T& object) {
  return reinterpret_cast<const char*>(&object);
}

// Adjacent numbers of 64 bits, in quotes: a reader of JSON may take numbers for doubles. names: each ends with a NUL,
// the list with two.
void write_numbers(TextWriter& out, const char* before, const char* names, const char* value) {
  for (; *names != '\0'; before = ",") {
    uint64_t number;
    memcpy(&number, value, sizeof number);
    out.print(R"(%s"%s":")", before, names).number(number).raw("\"");
    value += sizeof number;
    names += strlen(names) + 1;
  }
}

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
  out.print(R"(,"in_flight":%u,"owed":%u,"connects":%u,"resp3":%s,"tracked":%s)", master.in_flight, master.owed,
            master.connects, truth(master.resp3), truth(master.tracked));
  write_numbers(out, ",", "replies\0errors\0", of(master) + offsetof(redlock_master_status_t, replies));
  out.raw("}");
}

void write_times(TextWriter& out, const char* name, const redlock_times_t& times) {
  out.print(R"(,"%s":)", name);
  write_numbers(out, "{", "count\0sum_ms\0max_ms\0", of(times) + offsetof(redlock_times_t, count));
  const uint32_t* n = times.buckets;
  out.print(R"(,"buckets":[%u,%u,%u,%u,%u,%u,%u,%u]})", n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7]);
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
  write_numbers(out, "{",
                "acquired\0failed_locked\0failed_no_quorum\0failed_other\0rounds\0renewed\0renew_failed\0released\0"
                "lost\0clock_jumps\0clock_steps\0",
                of(status) + offsetof(redlock_status_t, acquired));
  out.raw("}");
  write_times(out, "wait", status.wait);
  write_times(out, "hold", status.hold);
  out.raw("}");
  if (!out.fits() && capacity > 0) buffer[0] = '\0';
  return out.needed();
}

}  // namespace redlock
