// SPDX-License-Identifier: MIT
//
// EverySequence: makes every sequence of steps up to a length on objects that ship, and on a model beside them.
//
// The objects point to each other, so they cannot be copied. The walk keeps their bytes before a step, and puts the
// bytes back behind it, at the same place. The model is copied.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test {

// A near bound in the suite, a far one with REDLOCK_BOUNDS=far (test/bounds/run.sh).
inline unsigned bound(unsigned near, unsigned far) {
  const char* const wanted = std::getenv("REDLOCK_BOUNDS");
  return wanted != nullptr && std::string_view(wanted) == "far" ? far : near;
}

// Derived supplies `bool make(unsigned step)`, false where the step cannot be made now, and `void check()`.
template <class Derived, class World, class Model>
class EverySequence {
 public:
  explicit EverySequence(unsigned steps) : world(*new (memory_) World()), steps_(steps) {}
  EverySequence(const EverySequence&) = delete;
  EverySequence& operator=(const EverySequence&) = delete;

  void walk(unsigned length) {
    char kept[sizeof(World)];
    memcpy(kept, memory_, sizeof kept);
    const Model model_before = model;
    for (unsigned step = 0; step < steps_ && !testing::Test::HasFailure(); ++step) {
      trace_.push_back(step);
      if (derived().make(step)) {
        ++sequences_;
        derived().check();
        if (length > 1) walk(length - 1);
      }
      trace_.pop_back();
      memcpy(memory_, kept, sizeof kept);
      model = model_before;
    }
  }
  unsigned long sequences() const { return sequences_; }
  std::string trace() const {
    std::string text = "steps";
    for (const unsigned step : trace_) text += ' ' + std::to_string(step);
    return text;
  }

 private:
  Derived& derived() { return static_cast<Derived&>(*this); }

  alignas(World) char memory_[sizeof(World)] = {};

 protected:
  World& world;
  Model model;

 private:
  unsigned steps_;
  std::vector<unsigned> trace_;
  unsigned long sequences_ = 0;
};

}  // namespace redlock::test
