// SPDX-License-Identifier: MIT
#include "config/report.hpp"

#include "config/text.hpp"

namespace redlock {

Bytes state_name(int32_t state) {
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

// Writes the members of an object, with commas between them.
class Members {
 public:
  explicit Members(TextWriter& out) : out_(out) {}

  TextWriter& key(const char* name) {
    if (!first_) out_.raw(",");
    first_ = false;
    return out_.quoted(bytes_of(name)).raw(":");
  }
  void number(const char* name, uint32_t value) { key(name).number(value); }
  void wait(const char* name, int64_t ms) {  // null: not known
    if (ms < 0) {
      key(name).raw("null");
    } else {
      key(name).number(static_cast<uint64_t>(ms));
    }
  }
  void big_number(const char* name, uint64_t value) { key(name).raw("\"").number(value).raw("\""); }
  void boolean(const char* name, bool value) { key(name).raw(value ? Bytes("true") : Bytes("false")); }
  void text(const char* name, Bytes value) { key(name).quoted(value); }
  void open(const char* name) {
    key(name).raw("{");
    first_ = true;
  }
  void close() {
    out_.raw("}");
    first_ = false;
  }

 private:
  TextWriter& out_;
  bool first_ = true;
};

void write_master(TextWriter& out, const redlock_master_status_t& master) {
  Members members(out.raw("{"));
  members.text("name", Bytes(master.name, strnlen(master.name, sizeof master.name)));
  members.text("address", Bytes(master.address, strnlen(master.address, sizeof master.address)));
  members.text("state", state_name(master.state));
  if (master.err == 0) {
    members.key("err").raw("null");
  } else {
    members.text("err", bytes_of(redlock_err_name(master.err)));
  }
  members.wait("guard_ms", master.guard_ms);
  members.number("in_flight", master.in_flight);
  members.number("owed", master.owed);
  members.number("connects", master.connects);
  members.boolean("resp3", master.resp3 != 0);
  members.boolean("tracked", master.tracked != 0);
  members.big_number("replies", master.replies);
  members.big_number("errors", master.errors);
  out.raw("}");
}

void write_counters(Members& members, const redlock_status_t& status) {
  members.open("counters");
  members.big_number("acquired", status.acquired);
  members.big_number("failed_locked", status.failed_locked);
  members.big_number("failed_no_quorum", status.failed_no_quorum);
  members.big_number("failed_other", status.failed_other);
  members.big_number("rounds", status.rounds);
  members.big_number("renewed", status.renewed);
  members.big_number("renew_failed", status.renew_failed);
  members.big_number("released", status.released);
  members.big_number("lost", status.lost);
  members.big_number("clock_jumps", status.clock_jumps);
  members.big_number("clock_steps", status.clock_steps);
  members.close();
}

}  // namespace

size_t write_status_json(char* buffer, size_t capacity, const redlock_status_t& status,
                         const redlock_master_status_t* masters, unsigned count) {
  TextWriter out(buffer, capacity);
  Members members(out.raw("{"));
  members.text("schema", "redlock.status/1");
  members.text("version", bytes_of(redlock_version_string()));
  members.number("quorum", status.quorum);
  members.boolean("even", status.even != 0);
  members.number("masters_up", status.masters_up);
  members.wait("guard_ms", status.guard_ms);
  members.key("masters").raw("[");
  for (unsigned i = 0; i < count; ++i) write_master(i == 0 ? out : out.raw(","), masters[i]);
  out.raw("]");
  members.open("locks");
  members.number("held", status.locks_held);
  members.number("pending", status.locks_pending);
  members.number("max", status.locks_max);
  members.close();
  members.open("debts");
  members.number("open", status.debts);
  members.number("max", status.debts_max);
  members.close();
  write_counters(members, status);
  members.close();
  if (!out.fits() && capacity > 0) buffer[0] = '\0';
  return out.needed();
}

}  // namespace redlock
