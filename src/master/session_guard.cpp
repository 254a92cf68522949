// SPDX-License-Identifier: MIT
//
// What a session says and hears for the guard: INFO, the record, the server's time, and the two scripts that write the
// record. It decides nothing; master/guard does.
//
// A reading is CLIENT CACHING yes, HMGET, TIME, in one write. On a tracked connection the next change of the record,
// or a null push, is told before the reply of anything that came after it, so nothing more is needed. Where tracking
// is not confirmed, each acquire and extend is followed in the same write by a reading of the seal; the two replies
// share one place in the FIFO, and the first is held until the second has come.
#include "master/session.hpp"
#include "resp/words.hpp"

namespace redlock {
namespace {

constexpr unsigned readings_per_info = 6;  // every 1.5 longest ttls or so
constexpr int64_t seconds_max = 9'000'000'000;

bool to_number(Bytes digits, int64_t& out) {
  out = 0;
  if (digits.size == 0 || digits.size > 11) return false;
  for (size_t i = 0; i < digits.size; ++i) {
    if (digits.data[i] < '0' || digits.data[i] > '9') return false;
    out = out * 10 + (digits.data[i] - '0');
  }
  return true;
}

}  // namespace

// ---- words ----------------------------------------------------------------------------------------------------

void Session::say_info(Instant now) {
  static constexpr auto info = resp::words("INFO");
  tx_.append(info);
  push_own(kind_info, now);
  readings_ = 0;
}

void Session::say_reading(Instant now, bool track) {
  static constexpr auto hmget = resp::words<4>("HMGET");
  static constexpr auto time = resp::words("TIME");
  static constexpr Bytes fields = "$4\r\ndesc\r\n$1\r\nq\r\n$4\r\nseal\r\n";
  if (track) {
    tx_.append(Command::caching());
    push_own(kind_caching, now);
  }
  tx_.append(hmget);
  put(settings_.meta_key);
  tx_.append(fields);
  push_own(kind_record, now);
  tx_.append(time);
  push_own(kind_time, now);
  guard_.begin_reading(now);
}

void Session::say_seal_read() {
  static constexpr auto hget = resp::words<2>("HGET");
  tx_.append(hget);
  put(settings_.meta_key);
  put("seal");
}

// One of the guard's scripts, with two or four arguments.
void Session::say_script(const Script& script, Bytes first, Bytes second, Bytes third, Bytes fourth) {
  static constexpr auto eval_two = resp::words<5>("EVAL");
  static constexpr auto eval_four = resp::words<7>("EVAL");
  const bool four = third.size != 0;
  tx_.append(four ? Bytes(eval_four) : Bytes(eval_two));
  refer(script.body);
  put("1");
  put(settings_.meta_key);
  put(first);
  put(second);
  if (!four) return;
  put(third);
  put(fourth);
}

// The same, and a reading of what came of it.
void Session::say_write(const Script& script, Bytes first, Bytes second, Bytes third, Bytes fourth, Instant now) {
  say_script(script, first, second, third, fourth);
  push_own(kind_write, now);
  say_reading(now, tracked_);
}

// A state with a new quarantine id, which this process has never used and nobody else will.
void Session::begin_state(Bytes desc, Bytes q, Instant now) {
  if (!seeded_) return guard_.write_failed(REDLOCK_E_SYSTEM);
  char fresh[Guard::id_size];
  for (unsigned i = 0; i < sizeof fresh; i += 8) {
    const uint32_t word = quarantines_.next();
    for (unsigned d = 0; d < 8; ++d) fresh[i + d] = "0123456789abcdef"[word >> (28 - 4 * d) & 0xF];
  }
  say_write(quarantine_script, desc, q, settings_.fingerprint, Bytes(fresh, sizeof fresh), now);
}

bool Session::own_room() const { return tx_.fits(768, 1); }

void Session::read_when_due(Instant now) {
  guard_.on_time(now);
  if (guard_.wants_reading(now)) {
    if (own_room()) {
      if (++readings_ >= readings_per_info) say_info(now);
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
    guard_.identify(info_.end(), now);
    identified_ = news_ = true;
  }
  info_.begin();
  guard_changed();
}

// HMGET answers three strings or nulls. A string that comes in parts is longer than any of ours.
void Session::handle_record(const resp::Item& item, Instant now) {
  using resp::Type;
  if (item.depth == 0 && item.type == Type::error) {
    guard_.reading_failed(classify_error(item.text));
    return guard_changed();
  }
  if (item.depth == 0) {
    field_ = 0;
    if (item.type != Type::array || item.integer != 3) fail(REDLOCK_E_PROTOCOL);
    return;
  }
  if (item.part) return guard_.read(field_, false, Bytes());
  guard_.read(field_++, item.type != Type::string, item.text);
  if (!item.last) return;
  switch (guard_.end_reading(now)) {
    case Guard::Next::nothing:
      break;
    case Guard::Next::create:
      if (own_room()) begin_state(guard_.desc(), "*", now);
      break;
    case Guard::Next::seal:
      if (own_room()) say_write(seal_script, guard_.quarantine(), guard_.seal(), Bytes(), Bytes(), now);
      break;
  }
  guard_changed();
}

// TIME answers seconds and microseconds, as strings.
void Session::handle_time(const resp::Item& item, Instant sent, Instant now) {
  if (item.depth == 0) {
    server_us_ = -1;
    return;
  }
  int64_t n = 0;
  if (!to_number(item.text, n) || n > seconds_max) return fail(REDLOCK_E_PROTOCOL);
  if (!item.last) {
    server_us_ = n * 1'000'000;
  } else if (server_us_ >= 0) {
    const ClockWatch::Verdict verdict = watch_.sample(sent, now, server_us_ + n, settings_.drift_ppm, clock_by_);
    if (verdict == ClockWatch::Verdict::stepped) stepped_ = news_ = true;
  }
}

void Session::handle_write(const resp::Item& item) {
  if (item.type == resp::Type::error) {
    guard_.write_failed(classify_error(item.text));
  } else if (item.type != resp::Type::integer) {
    fail(REDLOCK_E_PROTOCOL);
  }
}

void Session::handle_move(const resp::Item& item) {
  if (item.type == resp::Type::error) {
    moved_ = Moved::failed;
    move_error_ = static_cast<int16_t>(classify_error(item.text));
  } else if (item.type == resp::Type::integer) {
    moved_ = item.integer > 0 ? Moved::yes : Moved::foreign;
  } else if (item.type == resp::Type::string) {
    moved_ = Moved::no;
    guard_.read(1, false, item.text);
  } else {
    fail(REDLOCK_E_PROTOCOL);
  }
}

// The seal behind an acquire or extend on a connection without tracking: its vote counts only if it fits.
bool Session::handle_seal(const resp::Item& item, Instant now, Reply& out) {
  using resp::Type;
  if (item.type != Type::string && item.type != Type::null && item.type != Type::error) fail(REDLOCK_E_PROTOCOL);
  if (item.part) return false;
  holding_ = false;
  out = held_;
  const bool fits = guard_.admitted() && guard_.matches(item.type != Type::string, item.text);
  const int reason = item.type == Type::error ? classify_error(item.text) : int{REDLOCK_E_UNREAD};
  if (!fits && guard_.admitted()) guard_.withdraw(reason, now);
  if (!fits && out.meaning.answer == Answer::yes) out.meaning = {Answer::error, guard_.reason()};
  guard_changed();
  return true;
}

// What the client is to be told, one thing at a time.
bool Session::guard_says(Reply& out) {
  if (!news_) return false;
  out = {};
  if (identified_) {
    identified_ = false;
    out.kind = Reply::Kind::identified;
    return true;
  }
  if (stepped_) {
    stepped_ = false;
    out.kind = Reply::Kind::clock_stepped;
    out.by = clock_by_;
    return true;
  }
  const bool withdrawn =
      (guard_told_ == 0 && !guard_.admitted()) || (guard_told_ != guard_.reason() && guard_.forgot());
  guard_told_ = static_cast<int16_t>(guard_.reason());
  news_ = false;
  out.kind = Reply::Kind::withdrawn;
  return withdrawn;
}

void Session::guard_changed() {
  if (guard_told_ == guard_.reason()) return;
  news_ = true;
  if (state_ == State::up) note_change();
}

// ---- the client's part ------------------------------------------------------------------------------------------

void Session::set_duplicate(bool duplicate, Instant now) {
  guard_.set_duplicate(duplicate, now);
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

bool Session::move(Bytes from, Bytes to, Bytes quarantine, Bytes step, Instant now) {
  if (moved_ == Moved::asked || state_ != State::up || wish_ != Wish::none || !own_room()) return false;
  say_script(move_script, from, to, quarantine, step);
  push_own(kind_move, now);
  moved_ = Moved::asked;
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
