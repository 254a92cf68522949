// SPDX-License-Identifier: MIT
//
// What `redlock doctor` tells.
#pragma once
#include <gtest/gtest.h>

#include "tool_masters.hpp"

namespace redlock::test {

// The lines of a check: "fail    role        m1: slave, standalone".
inline bool tells(const Ended& ended, const std::string& level, const std::string& id, const std::string& what) {
  const std::string begin = level + std::string(8 - level.size(), ' ') + id + " ";
  for (size_t at = ended.out.find(begin); at != std::string::npos; at = ended.out.find(begin, at + 1)) {
    if (at != 0 && ended.out[at - 1] != '\n') continue;
    if (has(ended.out.substr(at, ended.out.find('\n', at) - at), what)) return true;
  }
  return false;
}

#define EXPECT_TELLS(ended, level, id, what) EXPECT_TRUE(tells(ended, level, id, what)) << (ended).out << (ended).err

}  // namespace redlock::test
