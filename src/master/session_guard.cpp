// SPDX-License-Identifier: MIT
//
// What a session says and hears for the guard: INFO, readings, the server's time, and the scripts that write. The session
// decides nothing of it; master/guard does.
//
// A reading is CLIENT CACHING yes, the script, TIME, in one write. On a connection with tracking the next change of the
// record, or a null push, is told before the reply of anything that came after it.
#include "base/digits.hpp"
#include "master/session.hpp"
#include "resp/words.hpp"

namespace redlock {
namespace {

constexpr unsigned readings_per_info = 6;  // every 1.5 longest ttls or so
constexpr uint64_t seconds_max = 9'000'000'000;

}  // namespace

// ---- words ----------------------------------------------------------------------------------------------------

void Session::say_info(Instant now) {
  static constexpr auto info = resp::words("INFO");
  tx_.append(info);
  push_own(kind_info, now);
  readings_ = 0;
}

// The script is always sent as text: that is shorter than to repeat a reading whose script was not known.
void Session::say_reading(Instant now, bool track) {
  static constexpr auto time = resp::words("TIME");
  if (track) {
    tx_.append(Command::caching());
    push_own(kind_caching, now);
  }
  const Bytes machine = boot_id();
  say_script(reading_script, &machine, 1);
  push_request({now, guard_.begin_reading(), 0, kind_reading});
  ++own_in_flight_;
  tx_.append(time);
  push_own(kind_time, now);
}

// One of the guard's scripts, all of which have the record and the short visits for keys.
void Session::say_script(const Script& script, const Bytes* arguments, unsigned count) {
  char text[16];
  resp::Writer out(text, sizeof text);
  tx_.append(out.array(5 + count).written());
  put("EVAL");
  refer(script.common, script.body);
  put("2");
  put(settings_.meta_key);
  put(settings_.seen_key);
  for (unsigned i = 0; i < count; ++i) put(arguments[i]);
}

// Write the record if it and the server are still what was read, and read what came of it.
void Session::say_record(Bytes desc, Bytes q, Bytes new_q, Bytes seal, Instant now) {
  const Bytes arguments[] = {desc, q, guard_.replid(), settings_.fingerprint, new_q, seal};
  say_script(record_script, arguments, 6);
  push_own(kind_write, now);
  say_reading(now, tracked_);
}

// A state with a new quarantine id, which this process has never used and nobody else will.
void Session::begin_state(Bytes desc, Bytes q, Instant now) {
  if (!seeded_) return guard_.written(REDLOCK_E_SYSTEM);
  char fresh[Guard::id_size];
  for (unsigned i = 0; i < sizeof fresh; i += 8) write_hex(quarantines_.next(), fresh + i);
  say_record(desc, q, Bytes(fresh, sizeof fresh), Bytes(), now);
}

// For what the guard says at one time: a write, and a reading of what came of it.
bool Session::own_room() const { return tx_.fits(768, 2 * references_max) && own_in_flight_ + 5u <= own_requests; }

void Session::write_next(Guard::Next next, int64_t boot_ms, Instant now) {
  if (next == Guard::Next::nothing || !own_room()) return;
  if (next == Guard::Next::create) return begin_state(guard_.desc(), "*", now);
  if (next == Guard::Next::seal) {
    return say_record(guard_.desc(), guard_.quarantine(), guard_.quarantine(), guard_.seal(), now);
  }
  char digits[20];
  const Bytes arguments[] = {boot_id(), guard_.seal(), to_decimal(static_cast<uint64_t>(boot_ms), digits)};
  say_script(visit_script, arguments, 3);
  push_own(kind_visit, now);
}

void Session::read_when_due(Instant now) {
  guard_.on_time(now);
  if (guard_.wants_reading(now)) {
    if (own_room()) {
      if (++readings_ >= readings_per_info || guard_.wants_info()) say_info(now);
      say_reading(now, tracked_);
    } else {
      guard_.postpone_reading(now + settings_.node_timeout);
    }
  }
  guard_changed();
}

// ---- answers --------------------------------------------------------------------------------------------------

void Session::handle_info(const resp::Item& item, Instant now) {
  using resp::Type;
  if (item.type == Type::error) {
    guard_.unidentified(classify_error(item.text));
  } else if (item.type != Type::string) {
    fail(REDLOCK_E_PROTOCOL);
  } else {
    info_.read(item.text);
    if (!item.last) return;
    if (!guard_.identify(info_.end(), now)) return fail(REDLOCK_E_DISCONNECTED);
    news_.identified = *has_news_ = true;
  }
  info_.begin();
  end_old_connection(now);
  guard_changed();
}

// INFO replication, then the fields: strings or nulls.
void Session::handle_reading(const resp::Item& item, const Request& request, Instant now) {
  using resp::Type;
  if (item.depth == 0 && item.type == Type::error) {
    guard_.reading_failed(request.round, classify_error(item.text), request.sent, now);
    return guard_changed();
  }
  if (item.depth == 0) {
    field_ = 0;
    overlong_ = false;
    if (item.type != Type::array || item.integer != 5) fail(REDLOCK_E_PROTOCOL);
    return;
  }
  if (field_ == 0) return read_role(item);
  if (item.type != Type::string && item.type != Type::null) return fail(REDLOCK_E_PROTOCOL);
  // A string that comes in parts is longer than any of ours: neither a part nor what is left behind it is the field.
  overlong_ = overlong_ || item.part;
  if (item.part) return;
  guard_.read(static_cast<Guard::Field>(field_++ - 1), item.type != Type::string, overlong_ ? Bytes() : item.text);
  overlong_ = false;
  if (!item.last) return;
  write_next(guard_.end_reading(request.round, request.sent, now), 0, now);
  if (guard_.wants_boot_time()) *has_news_ = true;
  guard_changed();
}

void Session::read_role(const resp::Item& item) {
  if (item.type == resp::Type::error) {
    guard_.read_no_role(classify_error(item.text));
  } else if (item.type != resp::Type::string) {
    return fail(REDLOCK_E_PROTOCOL);
  } else {
    info_.read(item.text);
    if (item.part) return;
    guard_.read_role(info_.end());
  }
  info_.begin();
  ++field_;
}

// TIME answers seconds and microseconds, as strings.
void Session::handle_time(const resp::Item& item, Instant sent, Instant now) {
  if (item.depth == 0) {
    server_us_ = -1;
    guard_.read_clock(item.type == resp::Type::error ? classify_error(item.text) : 0);
    return guard_changed();
  }
  uint64_t n = 0;
  if (!parse_decimal(item.text, n) || n > seconds_max) return fail(REDLOCK_E_PROTOCOL);
  if (!item.last) {
    server_us_ = static_cast<int64_t>(n) * 1'000'000;
  } else if (server_us_ >= 0) {
    const ClockWatch::Verdict verdict = watch_.sample(sent, now, server_us_ + static_cast<int64_t>(n), settings_.drift_ppm, news_.by);
    if (verdict == ClockWatch::Verdict::stepped) news_.stepped = *has_news_ = true;
  }
}

void Session::handle_write(const resp::Item& item) {
  if (item.type == resp::Type::error) {
    guard_.written(classify_error(item.text));
  } else if (item.type == resp::Type::integer) {
    guard_.written(0);
  } else {
    fail(REDLOCK_E_PROTOCOL);
  }
}

void Session::handle_record(const resp::Item& item) {
  if (item.type == resp::Type::error) {
    said_ = static_cast<int16_t>(classify_error(item.text));
  } else if (item.type == resp::Type::string && item.text.size != 0) {
    said_ = static_cast<unsigned char>(item.text.data[0]);
    guard_.read(Guard::Field::q, false, Bytes(item.text.data + 1, item.text.size - 1));
  } else {
    fail(REDLOCK_E_PROTOCOL);
  }
}

void Session::guard_changed() {
  if (guard_told_ == guard_.reason()) return;
  *has_news_ = true;
  if (state_ == State::up) note_change();
}

// ---- the client's part ------------------------------------------------------------------------------------------

News Session::take_news() {
  News out = news_;
  out.withdrawn = (guard_told_ == 0 && !guard_.admitted()) || (guard_told_ != guard_.reason() && guard_.forgot());
  out.wants_boot_time = guard_.wants_boot_time();
  guard_told_ = static_cast<int16_t>(guard_.reason());
  news_ = {};
  return out;
}

void Session::boot_time(int64_t ms, Instant now) {
  if (guard_.wants_boot_time()) write_next(guard_.boot_time(ms, now), ms, now);
}

void Session::set_duplicate(bool duplicate) {
  guard_.set_duplicate(duplicate);
  guard_changed();
}

void Session::distrust(Instant until) {
  guard_.distrust(until);
  guard_changed();
}

void Session::quarantine(Instant now) {
  if (state_ == State::up && guard_.sealed() && guard_.desc().size != 0 && own_room()) {
    begin_state(guard_.desc(), guard_.quarantine(), now);
  }
}

bool Session::ask_record(const Script& script, const Bytes* arguments, unsigned count, Instant now) {
  if (said_ == not_answered || state_ != State::up || wish_ != Wish::none || !own_room()) return false;
  say_script(script, arguments, count);
  push_own(kind_record, now);
  said_ = not_answered;
  return true;
}

void Session::commission(Instant until, Instant now) {
  guard_.commission(until);
  if (state_ == State::up) read_now(now);
}

void Session::clock_jumped(Instant now) {
  watch_.forget();
  guard_.clock_jumped(now);
  guard_changed();
}

}  // namespace redlock
