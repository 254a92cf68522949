// SPDX-License-Identifier: MIT
#include "master/record.hpp"

#include "base/digits.hpp"
#include "resp/words.hpp"
#include "resp/writer.hpp"

namespace redlock {
namespace {

constexpr uint64_t seconds_max = 9'000'000'000;
// Of a whole reading: lines of INFO, then those of Guard::Field.
constexpr unsigned fields = InfoReader::lines + static_cast<unsigned>(Guard::Field::tag) + 1;
static_assert(fields == 17, "the reading script returns the fields in the order of InfoReader::Line and Guard::Field");

}  // namespace

void Record::connected() {
  count_change();
  guard_.connected();
}

void Record::closed() {
  wants_state_ = false;
  guard_.connected();
}

// ---- requests -------------------------------------------------------------------------------------------------

Bytes Record::boot_id() const {
  const CommonSettings& settings = guard_.settings();
  return Bytes(settings.boot_id, settings.has_boot_id ? settings.boot_id_size : 0);
}

// A whole reading always sends the script as text: that is shorter than to repeat a reading whose script was not known.
// A reading with a tag neither begins nor ends the tracking of the record, which the whole one has begun.
void Record::send_reading(bool track, const Instant& now) {
  static constexpr auto time = resp::words("TIME");
  const Bytes tag = guard_.tag();
  const bool again = tag.size != 0;
  if (track && !again) out_.send(Command::caching(), Request::caching, now);
  const Bytes argument = again ? tag : boot_id();
  append_script(reading_script, &argument, 1, nullptr, again);
  out_.fifo.push_own(again ? Request::recheck : Request::reading, now, guard_.begin_reading());
  out_.send(time, Request::time, now);
}

// One of the guard's scripts. `last`: an argument that is not copied. `known`: the server was sent the text before, and
// the record is the only key; all others have the hash of short visits, too.
void Record::append_script(const Script& script, const Bytes* arguments, unsigned count, const Bytes* last,
                           bool known) {
  char text[16];
  resp::Writer header(text, sizeof text);
  out_.tx.append(header.array(5 - known + count + (last != nullptr)).written());
  out_.append_word(known ? Bytes("EVALSHA") : Bytes("EVAL"));
  if (known) {
    out_.append_word(script.sha);
  } else {
    out_.append_reference(script.common, script.body);
  }
  out_.append_word(known ? Bytes("1") : Bytes("2"));
  out_.append_word(guard_.settings().meta_key);
  if (!known) out_.append_word(guard_.settings().seen_key);
  for (unsigned i = 0; i < count; ++i) out_.append_word(arguments[i]);
  if (last != nullptr) out_.append_reference(*last);
}

// Write the record if it and the server are still what was read, and read what came of it.
void Record::send_record(Bytes desc, Bytes q, Bytes new_q, Bytes seal, const Instant& now) {
  const Bytes arguments[] = {desc, q, guard_.replid(), guard_.settings().fingerprint, new_q, seal};
  append_script(record_script, arguments, 6, &guard_.settings().names);
  out_.fifo.push_own(Request::write, now);
  send_reading(tracking_.on(), now);
}

// A state with a new quarantine id, which this process has never used and nobody else will.
void Record::begin_state(Bytes desc, Bytes q, const Instant& now) {
  if (!seeded_) return guard_.written(REDLOCK_E_SYSTEM);
  char fresh[Guard::id_size];
  for (unsigned i = 0; i < sizeof fresh; i += 8) write_hex(quarantines_.next(), fresh + i);
  send_record(desc, q, Bytes(fresh, sizeof fresh), Bytes(), now);
}

// For what the guard says at one time: a write, and a reading of what came of it.
bool Record::has_room() const {
  return out_.tx.fits(bytes_max(guard_.settings()), 2 * Outgoing::references_max + 1) && out_.fifo.has_own_room(4);
}

void Record::write_next(Guard::Next next, int64_t boot_ms, const Instant& now) {
  if (next == Guard::Next::nothing || !has_room()) return;
  if (next == Guard::Next::create) return begin_state(guard_.desc(), "*", now);
  if (next == Guard::Next::seal) {
    return send_record(guard_.desc(), guard_.quarantine(), guard_.quarantine(), guard_.seal(), now);
  }
  char boot[20], server[20];
  const Bytes arguments[] = {boot_id(), guard_.seal(), to_decimal(static_cast<uint64_t>(boot_ms), boot),
                             to_decimal(static_cast<uint64_t>(guard_.server_ms()), server)};
  append_script(visit_script, arguments, 4);
  out_.fifo.push_own(Request::visit, now);
}

void Record::begin_state(const Instant& now) {
  REDLOCK_ASSERT(wants_state_);
  write_next(Guard::Next::create, 0, now);
  wants_state_ = false;
}

void Record::read_when_due(const Instant& now) {
  guard_.on_time(now);
  if (!guard_.wants_reading(now)) return;
  if (!has_room()) return guard_.postpone_reading(now + guard_.settings().node_timeout);
  send_reading(tracking_.on(), now);
}

// Where there is no room, the commands behind it do not vote once the last reading has lapsed. So deletes that leave in
// the same write must not take the room.
bool Record::look_ahead(const Instant& now) {
  if (!guard_.looks_ahead(now) || !out_.fifo.has_own_room(3)) return false;
  if (!out_.tx.fits(reading_max(guard_.settings()), Outgoing::references_max + 1)) return false;
  send_reading(tracking_.on(), now);
  return true;
}

void Record::boot_time(int64_t ms, const Instant& now) {
  if (guard_.wants_boot_time()) write_next(guard_.boot_time(ms, now), ms, now);
}

void Record::quarantine(const Instant& now) {
  if (guard_.sealed() && has_room()) begin_state(guard_.desc(), guard_.quarantine(), now);
}

// ---- replies --------------------------------------------------------------------------------------------------

int Record::handle(const Request& request, const resp::Item& item, const Instant& now) {
  switch (request.kind) {
    case Request::recheck:
      if (handle_recheck(item, request, now)) return 0;
      [[fallthrough]];
    case Request::reading:
      return handle_reading(item, request, now);
    case Request::time:
      return handle_time(item, request.sent, now);
    case Request::write:
      return handle_write(item);
    default:
      REDLOCK_ASSERT(request.kind == Request::visit);
      return 0;  // a server that refuses visits makes each client of this machine watch by itself
  }
}

// True: the tag still fits, or the server has forgotten the script. Otherwise this is an item of a whole reading.
bool Record::handle_recheck(const resp::Item& item, const Request& request, const Instant& now) {
  if (item.depth != 0) return false;
  if (item.type == resp::Type::integer && item.integer == 1) {
    if (guard_.lapsed(now)) out_.tell();  // another master may wait for this one before a state begins
    guard_.confirm_reading(request.round, request.sent, now);
    return true;
  }
  if (error_of(item) != REDLOCK_E_NOSCRIPT) return false;
  guard_.repeat_reading(request.round, now);
  return true;
}

// Strings or nulls. An error that refuses INFO stands in the first place.
int Record::handle_reading(const resp::Item& item, const Request& request, const Instant& now) {
  using resp::Type;
  if (item.depth == 0) {
    if (const int error = error_of(item)) {
      guard_.reading_failed(request.round, error, request.sent, now);
      return 0;
    }
    field_ = 0;
    overlong_ = false;
    info_.begin();
    return item.type == Type::array && item.integer == fields ? 0 : REDLOCK_E_PROTOCOL;
  }
  const int error = error_of(item);
  if (field_ == 0) info_error_ = static_cast<int16_t>(error);
  if (item.type != Type::string && item.type != Type::null && (error == 0 || field_ != 0)) return REDLOCK_E_PROTOCOL;
  // A string that comes in parts is longer than any of ours: neither a part nor what is left behind it is the field.
  overlong_ = overlong_ || item.part;
  if (item.part) return 0;
  REDLOCK_ASSERT(field_ < fields);
  const unsigned field = field_++;
  const bool absent = item.type != Type::string;
  const Bytes text = overlong_ ? Bytes() : item.text;
  overlong_ = false;
  if (field >= InfoReader::lines) {
    guard_.read(static_cast<Guard::Field>(field - InfoReader::lines), absent, text);
  } else {
    if (!absent) info_.read(static_cast<InfoReader::Line>(field), text);
    if (field_ == InfoReader::lines) return end_info(now);
  }
  if (!item.last) return 0;
  const bool was_ours = guard_.is_ours();
  const Guard::Next next = guard_.end_reading(request.round, request.sent, now);
  wants_state_ = next == Guard::Next::create && now >= *begins_until_;
  if (wants_state_ || guard_.is_ours() != was_ours) out_.tell();  // other masters may be waiting for this one
  if (!wants_state_) write_next(next, 0, now);
  return 0;
}

int Record::end_info(const Instant& now) {
  wants_state_ = false;  // the ids that it needs are of this reading from here on
  if (info_error_ != 0) {
    guard_.read_no_role(info_error_);
    return 0;
  }
  const InfoFacts& facts = info_.end();
  if (!guard_.identify(facts, now)) return REDLOCK_E_DISCONNECTED;
  guard_.read_role(facts);
  out_.tell().identified = true;
  return 0;
}

// TIME answers seconds and microseconds, as strings.
int Record::handle_time(const resp::Item& item, Instant sent, const Instant& now) {
  if (item.depth == 0) {
    server_us_ = -1;
    guard_.read_clock(error_of(item));
    return 0;
  }
  uint64_t n = 0;
  if (!parse_decimal(item.text, n) || n > seconds_max) return REDLOCK_E_PROTOCOL;
  if (!item.last) {
    server_us_ = static_cast<int64_t>(n) * 1'000'000;
  } else if (server_us_ >= 0) {
    Duration by;
    const int64_t server_us = server_us_ + static_cast<int64_t>(n);
    guard_.read_time(quotient(server_us, 1'000));
    if (guard_.wants_boot_time()) out_.tell();
    if (clock_.sample(sent, now, server_us, guard_.settings().drift_ppm, by) == ClockWatch::Verdict::stepped) {
      guard_.step_clock(now);  // before the replies behind this one are votes
      News& news = out_.tell();
      news.stepped = true;
      news.by = by;
    }
  }
  return 0;
}

int Record::handle_write(const resp::Item& item) {
  if (item.type != resp::Type::error && item.type != resp::Type::integer) return REDLOCK_E_PROTOCOL;
  guard_.written(error_of(item));
  return 0;
}

}  // namespace redlock
