// SPDX-License-Identifier: MIT
//
// MachineClock: the three clocks of one client's machine as functions of true time. RAW runs at the crystal's own rate
// and stops in suspend, MONO is slewed as well, BOOT is MONO and the time spent in suspend, as the real-time clock
// counts it. Past times may be asked for, because a client that is busy lives a little ahead of the world.
//
// own() is what the machine's clock would say if it could be observed perfectly: RAW and the suspends. A client's
// deadline is judged by it.
#pragma once
#include <vector>

#include "heap.hpp"

namespace redlock::sim {

class MachineClock {
 public:
  struct Times {
    Ns raw, mono, boot;
  };

  void start(const Times& zero, int64_t rate_ppm, int64_t suspended_ppm) {
    rate_ppm_ = rate_ppm;
    suspended_ppm_ = suspended_ppm;
    pieces_.clear();
    pieces_.push_back({0, zero, rate_ppm, rate_ppm, rate_ppm, false});
  }
  void slew(Ns now, int64_t ppm) {
    slew_ppm_ = ppm;
    begin(now, false);
  }
  void suspend(Ns now, Ns length) {
    ++sleeps_;
    begin(now, true);
    begin(now + length, false);
  }

  Times at(Ns t) const {
    const Piece& p = piece(t);
    const Ns d = t - p.since;
    if (p.suspended) return {p.zero.raw, p.zero.mono, p.zero.boot + scaled(d, p.boot_ppm)};
    return {p.zero.raw + scaled(d, p.raw_ppm), p.zero.mono + scaled(d, p.mono_ppm),
            p.zero.boot + scaled(d, p.boot_ppm)};
  }
  Ns own(Ns t) const {
    const Times times = at(t);
    return times.raw + times.boot - times.mono;
  }
  unsigned sleeps() const { return sleeps_; }
  // The true time at or after `now` when BOOT will have reached `boot`, if nothing changes until then.
  Ns when_boot(Ns now, Ns boot) const {
    const Ns left = boot - at(now).boot;
    if (left <= 0) return now;
    return now + 1 + left / (1'000'000 + pieces_.back().boot_ppm) * 1'000'000 +
           left % (1'000'000 + pieces_.back().boot_ppm) * 1'000'000 / (1'000'000 + pieces_.back().boot_ppm);
  }

 private:
  struct Piece {
    Ns since;
    Times zero;
    int64_t raw_ppm, mono_ppm, boot_ppm;
    bool suspended;
  };
  static Ns scaled(Ns d, int64_t ppm) { return d + d / 1'000'000 * ppm + d % 1'000'000 * ppm / 1'000'000; }

  const Piece& piece(Ns t) const {
    size_t i = pieces_.size() - 1;
    while (i > 0 && pieces_[i].since > t) --i;
    return pieces_[i];
  }
  void begin(Ns now, bool suspended) {
    const Times zero = at(now);
    pieces_.push_back(
        {now, zero, rate_ppm_, rate_ppm_ + slew_ppm_, suspended ? suspended_ppm_ : rate_ppm_ + slew_ppm_, suspended});
  }

  std::vector<Piece> pieces_;
  unsigned sleeps_ = 0;
  int64_t rate_ppm_ = 0;
  int64_t suspended_ppm_ = 0;
  int64_t slew_ppm_ = 0;
};

}  // namespace redlock::sim
