// SPDX-License-Identifier: MIT
//
// Clock: now = CLOCK_MONOTONIC_RAW + the time spent in suspend. RAW is neither stepped nor slewed, but stops in
// suspend. CLOCK_BOOTTIME counts suspend, but is slewed together with CLOCK_MONOTONIC. The difference of these two,
// the offset, is constant except across a suspend.
//
// No two clocks can be read at once. On a loaded machine a preemption of many milliseconds falls between two reads. So
// a sample reads MONO1, BOOT, MONO2, and the offset lies within [BOOT - MONO2, BOOT - MONO1] for certain, however long
// the thread was away. The clock keeps one such interval, `known`, no wider than 1 ms, and compares each sample with
// it:
//   - The two overlap: nothing happened. The sum goes on with the very same number, so the time between two readings is
//     a difference of RAW alone, without the error of any sample.
//   - The two are disjoint: there was a suspend, or the clocks were changed under us (a restored process, a broken
//     kernel). No preemption has this effect. Everything that was measured across it is void: `jumped`.
// Two intervals are compared, because the upper end of a slow sample alone lies outside of most quick samples.
//
// RAW is read last, which bounds what an unlucky sample may hide. With known.high >= BOOT - MONO2 the sum can miss a
// suspend by no more than MONO2 - MONO(BOOT). That same stretch has passed in RAW by then, so the sum is never behind
// the true time at which BOOT was read. A suspend after BOOT counts as one after the reading; the next reading sees it.
//
// Sources (template, so that tests put a pause between any two reads): monotonic_raw_ns(), monotonic_ns() and
// boottime_ns(), const, callable from any thread, negative when the clock cannot be read.
#pragma once
#include <stdint.h>

#include "base/latch.hpp"
#include "base/time.hpp"
#include "base/types.hpp"

namespace redlock {

template <class Source>
class Clock {
 public:
  // How far the sum may be ahead of the true time; what `known` may be wide.
  static constexpr int64_t uncertainty_ns = 1'000'000;
  static constexpr int tries = 16;
  static constexpr uint32_t off_rate_part = 200;  // a clock is off rate by a 200th at most: half of the usual drift

  explicit Clock(Source source = Source()) : source_(source) {}

  // Call this first. False: the clocks cannot be read, or never closely enough together.
  bool start() {
    const Sample sample = narrow_sample(take());
    if (!sample.narrow()) return false;
    known_ = Known{0, 0, 0};
    learn(sample);
    return true;
  }

  // Driver's thread. Never goes back, and never stands still for more than 1 ms without saying `jumped`. A jump is
  // told once; a caller that drops the answer loses it. When the clock cannot get a narrow sample after a jump, `known`
  // stays as it is. The next readings and every check() then find the same contradiction again, so no lock can be held
  // until there is a narrow sample.
  Reading read() {
    const Sample sample = take();
    if (sample.excludes(known_) || sum(sample, known_) < last_) return doubtful(sample);
    last_ = sum(sample, known_);
    return {last_, false};
  }

  // Any thread, no lock, no wait. False: the clock has jumped, and `now` is void. Even a wide sample shows a jump,
  // so no sample is repeated.
  bool check(Instant& now) const {
    const Known known = shared_.read();
    const Sample sample = take();
    now = sum(sample, known);
    return !sample.excludes(known);
  }

  // Any thread: the CLOCK_BOOTTIME at which the sum will be `deadline`; 0 when the clocks cannot be read. Never late:
  //   BOOT - now = (MONO + offset) - (RAW + base), and the offset was known.low or more.
  // MONO is read before RAW, so a preemption in between makes the difference smaller and the result early. Neither
  // clock counts suspend, so a suspend before, between or after the reads changes nothing. MONO contains the slewing
  // up to this call. Slewing between this call and the deadline may make BOOT slower: so the result is earlier by as
  // much as clocks may be off rate. Under a faster slew a caller that waits long asks again.
  int64_t boottime_ns(Instant deadline) const {
    const Known known = shared_.read();
    const int64_t boot = boottime_ns(deadline, known.low - known.base), now = source_.boottime_ns();
    return now > 0 && boot > now ? boot - quotient(boot - now, off_rate_part) : boot;
  }

  // The same for the driver's timer, with the upper end of the offset: at that BOOT time `deadline` has come, no more
  // than `uncertainty` ago. With the lower end the timer would expire again and again too early.
  int64_t timer_ns(Instant deadline) const { return boottime_ns(deadline, known_.high - known_.base); }

  // CLOCK_BOOTTIME as it is now, in ms; negative when the clock cannot be read.
  int64_t boot_ms() const {
    const int64_t ns = source_.boottime_ns();
    return ns < 0 ? ns : quotient(ns, 1'000'000);
  }

 private:
  // The interval of the offset, and the number that is added to RAW. base is known.high at first and grows with it.
  // base does not follow known.high down, because then the sum would go back, or stand still while validity runs out.
  struct Known {
    int64_t low;
    int64_t high;
    int64_t base;
  };

  struct Sample {
    int64_t mono1;
    int64_t boot;
    int64_t mono2;
    int64_t raw;

    bool readable() const { return (mono1 | boot | mono2 | raw) >= 0; }
    bool narrow() const {
      return readable() && mono1 <= mono2 && mono2 - mono1 <= uncertainty_ns - 2 * margin_ns;
    }
    bool excludes(const Known& known) const {
      return !readable() || boot - mono2 > known.high || boot - mono1 < known.low;
    }
  };

  // Where one clock comes from the vDSO and another from a system call, the two may disagree by nanoseconds while the
  // kernel updates them, and on a coarse counter a sample is 0 wide. Neither must look like a suspend.
  static constexpr int64_t margin_ns = 20'000;

  // A reading that contradicts what is known, or seems to go back.
  [[gnu::noinline]] Reading doubtful(Sample sample) {
    bool jumped = sample.excludes(known_);
    if (jumped) {
      sample = narrow_sample(sample);
      if (sample.narrow()) learn(sample);
    }
    if (!sample.readable()) return {last_, true};
    const Instant now = sum(sample, known_);
    if (now + Duration::ns(uncertainty_ns) < last_) {  // RAW itself fell back: go on from where we were
      jumped = true;
      known_.base += last_.ns() - now.ns();
      shared_.write(known_);
    }
    last_ = later(last_, now);
    return {last_, jumped};
  }

  int64_t boottime_ns(Instant deadline, int64_t offset) const {
    const int64_t mono = source_.monotonic_ns();
    const int64_t raw = source_.monotonic_raw_ns();
    if ((mono | raw) < 0) return 0;
    return (deadline + Duration::ns(mono - raw + offset)).ns();
  }

  Sample take() const {
    Sample sample;
    sample.mono1 = source_.monotonic_ns();
    sample.boot = source_.boottime_ns();
    sample.mono2 = source_.monotonic_ns();
    sample.raw = source_.monotonic_raw_ns();
    return sample;
  }

  Sample narrow_sample(Sample sample) const {
    for (int i = 1; i < tries && !sample.narrow(); ++i) sample = take();
    return sample;
  }

  void learn(const Sample& sample) {
    REDLOCK_ASSERT(sample.narrow());
    const int64_t high = sample.boot - sample.mono1 + margin_ns;
    if (high > known_.high) known_.base += high - known_.high;
    known_.high = high;
    known_.low = sample.boot - sample.mono2 - margin_ns;
    REDLOCK_ASSERT(known_.low < known_.high);
    REDLOCK_ASSERT(known_.high <= known_.base);
    shared_.write(known_);
  }

  static Instant sum(const Sample& sample, const Known& known) { return Instant::from_ns(sample.raw + known.base); }

  Source source_;
  Known known_ = {0, 0, 0};
  Latch<Known> shared_;  // known_, for the other threads
  Instant last_ = Instant::from_ns(INT64_MIN);
};

}  // namespace redlock
