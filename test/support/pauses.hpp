// SPDX-License-Identifier: MIT
//
// For how long did the machine let a thread of ours wait that wanted to run? A test that judges a margin of time asks
// this before it blames the program; test/README.md names these tests.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>
#include <thread>

namespace redlock::test {

class Pauses {
 public:
  Pauses() : thread_([this] { watch(); }) {}
  ~Pauses() {
    over_ = true;
    thread_.join();
  }
  Pauses(const Pauses&) = delete;
  Pauses& operator=(const Pauses&) = delete;

  // redlock(1) promises nothing where no program runs for longer than the margin of 200 ms. Where we waited for half of
  // it, others may have waited for all of it.
  bool were_too_long() const {
    const int64_t ms = std::chrono::duration_cast<std::chrono::milliseconds>(longest_.load()).count();
    if (ms >= 100) std::cout << "machine too busy: it let a thread wait for " << ms << " ms\n";
    return ms >= 100;
  }

 private:
  using Clock = std::chrono::steady_clock;
  void watch() {
    constexpr std::chrono::milliseconds nap{2};
    while (!over_) {
      const Clock::time_point begun = Clock::now();
      std::this_thread::sleep_for(nap);
      longest_ = std::max(longest_.load(), Clock::now() - begun - nap);
    }
  }

  std::atomic<bool> over_{false};
  std::atomic<Clock::duration> longest_{Clock::duration::zero()};
  std::thread thread_;
};

}  // namespace redlock::test
