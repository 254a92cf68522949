// SPDX-License-Identifier: MIT
#include "run/story.hpp"

namespace redlock {
namespace {

constexpr uint32_t line_pause_s = 10;
constexpr uint32_t lines_at_once = 4;
constexpr uint32_t long_wait_s = 5;

void describe(TextWriter& line, const redlock_event_t& event) {
  char sentence[REDLOCK_TEXT_MAX + 1];
  redlock_describe(&event, sentence, sizeof sentence);
  line.raw(sentence);
}

TextWriter& say(TextWriter& line, int err) { return line.print(": %s", redlock_strerror(err)); }

bool is_passing(const redlock_event_t& event) {
  switch (event.state) {
    case REDLOCK_MASTER_DOWN:
      return event.err == 0 || event.err == REDLOCK_E_CLOSED;
    case REDLOCK_MASTER_GUARDED:
      return event.err == REDLOCK_E_UNREAD;
    default:
      return event.state == REDLOCK_MASTER_CONNECTING || event.state == REDLOCK_MASTER_GREETING;
  }
}

Story::Level level_of(const redlock_event_t& event, bool is_first) {
  const bool is_watched = event.err == REDLOCK_E_UNWATCHED || event.err == REDLOCK_E_REPLID;
  if (event.state == REDLOCK_MASTER_GUARDED && is_watched) return Story::notice;
  if (event.state != REDLOCK_MASTER_UP || event.err != 0) return Story::warning;
  return is_first ? Story::info : Story::notice;
}

// Which event of a lock is worth a line?
Story::Level level_of_lock(const redlock_event_t& event, bool long_wait) {
  switch (event.type) {
    case REDLOCK_EV_LOST:
      return Story::error;
    case REDLOCK_EV_AT_RISK:
      return Story::warning;
    case REDLOCK_EV_ACQUIRED:
      if ((event.flags & REDLOCK_EV_F_FLOORED) != 0) return Story::notice;
      return long_wait ? Story::warning : Story::none;
    default:
      if (event.cause == REDLOCK_CAUSE_NEVER) return Story::error;
      if (event.err == REDLOCK_E_CANCELED) return Story::none;
      return long_wait || (event.err != REDLOCK_E_LOCKED && event.err != REDLOCK_E_TIMEOUT) ? Story::warning
                                                                                             : Story::none;
  }
}

}  // namespace

// ---- how many lines ---------------------------------------------------------------------------------------------

bool Limiter::allows(uint32_t now_s, int what) {
  if (busy_until_s_ < now_s) busy_until_s_ = now_s;
  const uint32_t lines = what == last_ ? lines_at_once : 2 * lines_at_once;
  if (busy_until_s_ - now_s >= line_pause_s * lines) {
    if (left_out_ < UINT16_MAX) ++left_out_;
    return false;
  }
  busy_until_s_ += line_pause_s;
  last_ = static_cast<int16_t>(what);
  return true;
}

void Limiter::tell_left_out(TextWriter& line) {
  if (left_out_ != 0) line.print(" (%u left out)", left_out_);
  left_out_ = 0;
}

// ---- masters ----------------------------------------------------------------------------------------------------

bool Story::is_event(const redlock_event_t& event) {
  REDLOCK_ASSERT(event.type == REDLOCK_EV_MASTER);
  REDLOCK_ASSERT(event.master < REDLOCK_MASTERS_MAX);
  Told& told = masters_[event.master];
  const bool again = event.state == told.event && (event.err == told.event_err || event.state == REDLOCK_MASTER_DOWN);
  if (again || is_passing(event)) return false;
  told.event = static_cast<uint8_t>(event.state);
  told.event_err = static_cast<int16_t>(event.err);
  return true;
}

// A line that a master is up is written whatever the limit: the last line about a master must not stay wrong.
Story::Level Story::master_changed(const redlock_event_t& event, uint32_t now_s, TextWriter& line) {
  REDLOCK_ASSERT(event.type == REDLOCK_EV_MASTER);
  REDLOCK_ASSERT(event.master < REDLOCK_MASTERS_MAX);
  Told& told = masters_[event.master];
  const bool up = event.state == REDLOCK_MASTER_UP;
  const bool again = event.state == told.line && event.err == told.line_err;
  const bool passing = again || is_passing(event) || !(up || told.lines.allows(now_s, event.err));
  describe(line.raw("master "), event);
  if (event.state == REDLOCK_MASTER_SUSPECT) say(line, REDLOCK_E_NODE_TIMEOUT);
  if (passing) return debug;
  if (up && event.err == 0 && told.line == REDLOCK_MASTER_GUARDED) {
    line.raw(": the watch is over");
  } else if (up && event.err == 0 && told.voted) {
    line.raw(" again");
  }
  told.lines.tell_left_out(line);
  const Level level = level_of(event, told.line == 0);
  told.line = static_cast<uint8_t>(event.state);
  told.line_err = static_cast<int16_t>(event.err);
  told.voted = told.voted || up;
  return level;
}

// ---- locks ------------------------------------------------------------------------------------------------------

Story::Level Story::lock_told(const redlock_event_t& event, const Acquire& acquire, uint32_t now_s, TextWriter& line) {
  REDLOCK_ASSERT(event.type >= REDLOCK_EV_ACQUIRED);
  REDLOCK_ASSERT(event.type <= REDLOCK_EV_LOST);  // limits_ has no place for others
  const bool acquired = event.type == REDLOCK_EV_ACQUIRED;
  const bool long_wait = acquire.waited_s >= long_wait_s;
  const Level level = level_of_lock(event, long_wait);
  if (level == none || !limits_[event.type].allows(now_s, event.err ^ event.master_err)) return none;
  for (Bytes name : acquire.names) line.quoted(name).raw(" ");
  if (level == notice) {
    line.raw("has token ").number(event.token).raw(" from the masters' clocks: too few know the last token");
  } else {
    if (long_wait && (acquired || event.type == REDLOCK_EV_FAILED)) {
      line.print("waited %u s, ", acquire.waited_s);
    }
    describe(line, event);
    if (acquired && acquire.waited_for != 0) say(line, acquire.waited_for);
  }
  limits_[event.type].tell_left_out(line);
  return level;
}

// ---- the client -------------------------------------------------------------------------------------------------

Story::Level Story::paused(uint32_t jumps, uint32_t late_s, TextWriter& line) {
  if (jumps != jumps_) {
    jumps_ = jumps;
    line.raw("the machine slept, or its clocks jumped: held locks are lost");
    return warning;
  }
  if (late_s == 0) return none;
  line.print("the loop did not run for at least %u s", late_s);
  return warning;
}

// A line that is left out is still written for debugging: a wrapper of the C API takes its sentences from there.
Story::Level Story::call_refused(Fault::Is what, uint32_t now_s, TextWriter& line) {
  if (!limits_[0].allows(now_s, static_cast<int>(what))) return debug;
  limits_[0].tell_left_out(line);
  return error;
}

Story::Level Story::closed(const redlock_event_t& event, TextWriter& line) {
  describe(line, event);
  return event.failed == 0 ? info : notice;
}

}  // namespace redlock
