// SPDX-License-Identifier: MIT
//
// Story: which lines the log callback gets, and which changes of a master become events. A line stands for a change,
// never for a repetition, and names what it is about. Levels are those of syslog. Lines of one kind that come too fast
// are counted instead, sooner if they repeat each other, and the next line of this kind tells the count. The sentences
// are those of redlock_describe().
//
//     3 error    LOST; an acquire that cannot be granted as things stand; a call with an argument out of range
//     4 warning  AT_RISK; other acquires that failed, or took long; a master that is down, silent or has no vote; a
//                clock that jumped; a loop that stood still
//     5 notice   the guard watches a master, and lets the master vote; a master is up again; a token was floored
//     6 info     a master is up for the first time; the client's end
//     7 debug    every other change of a master, or call with an argument out of range
//
// A master passes through CONNECTING, GREETING and GUARDED(UNREAD) within milliseconds, and through the same DOWN at
// each attempt to connect. Nobody can act on these, so they are no events.
#pragma once
#include "base/names.hpp"
#include "config/text.hpp"
#include "run/fault.hpp"

namespace redlock {

// Allows some lines at once, and then one every few seconds. A line that differs from the one before is allowed where a
// repetition is not, so that a flood of one mistake hides no other.
class Limiter {
 public:
  bool allows(uint32_t now_s, int what);  // what: the error or mistake
  void tell_left_out(TextWriter& line);   // " (12 left out)", once

 private:
  uint32_t busy_until_s_ = 0;
  uint16_t left_out_ = 0;
  int16_t last_ = 0;
};

class Story {
 public:
  enum Level : uint8_t { none = 0, error = 3, warning = 4, notice = 5, info = 6, debug = 7 };
  static constexpr size_t line_max = 480;  // with the NUL

  // What has been told of a master.
  struct Told {
    Limiter lines;
    int16_t line_err = 0;
    int16_t event_err = 0;
    uint8_t line = 0;   // the state of the last line; 0: none
    uint8_t event = 0;  // the state of the last event; 0: none
    bool voted = false;
  };

  // An acquire whose event is told.
  struct Acquire {
    const Names& names;
    uint32_t waited_s;
    int waited_for;  // why the last round was lost
  };

  explicit Story(Told* masters) : masters_(masters) {}

  // Is this change of a master an event?
  bool is_event(const redlock_event_t& event);
  // These write a line, and return its level; none: there is no line.
  Level master_changed(const redlock_event_t& event, uint32_t now_s, TextWriter& line);
  Level lock_told(const redlock_event_t& event, const Acquire& acquire, uint32_t now_s, TextWriter& line);
  // The clocks jumped so often since create; the loop did not run for so long at least.
  Level paused(uint32_t jumps, uint32_t late_s, TextWriter& line);
  Level call_refused(Fault::Is what, uint32_t now_s, TextWriter& line);  // the line is written already
  static Level closed(const redlock_event_t& event, TextWriter& line);

 private:
  Told* masters_;  // one for each
  Limiter limits_[REDLOCK_EV_LOST + 1];  // of each type of event; 0: calls that were refused
  uint32_t jumps_ = 0;
};

}  // namespace redlock
