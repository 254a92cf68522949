// SPDX-License-Identifier: MIT
//
// A place for each command that a test encodes, as long as the test program runs.
#pragma once
#include <array>
#include <deque>

#include "base/types.hpp"

namespace redlock::test {

inline Space space() {
  static std::deque<std::array<char, 1024>> all;
  all.emplace_back();
  return {all.back().data(), all.back().size()};
}

}  // namespace redlock::test
