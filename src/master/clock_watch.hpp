// SPDX-License-Identifier: MIT
//
// ClockWatch: does a master's wall clock run as ours does? Redis expires keys by the wall clock, so a step forward ends
// locks early, and so does a clock that runs too fast.
//
// A sample is the server's TIME, with our clock before the request and after the reply. So the difference of the two
// clocks lies within known bounds; a faster answer gives narrower bounds. From one sample to the next the difference
// may move by the sum of both rate errors (drift_ppm) and a millisecond. A sample outside of that is a step, or a rate
// beyond the allowance. One sample does not tell these two apart, and a master whose keys may end early loses its vote
// before there is another one. The difference of two clocks is no length of time, so this file counts raw nanoseconds.
#pragma once
#include "base/time.hpp"

namespace redlock {

class ClockWatch {
 public:
  enum class Verdict : uint8_t { first, steady, stepped };

  // by: how far the server's clock is beyond what was allowed; negative: behind.
  Verdict sample(Instant sent, Instant received, int64_t server_us, uint32_t ppm, Duration& by);
  // Our own clock has jumped: the known bounds are worth nothing.
  void forget() { known_ = false; }
  bool known() const { return known_; }
  Instant asked() const { return sent_; }  // for the last sample

 private:
  bool known_ = false;
  Instant at_;
  Instant sent_;
  int64_t low_ = 0;   // server - ours, at least
  int64_t high_ = 0;  // and at most
};

}  // namespace redlock
