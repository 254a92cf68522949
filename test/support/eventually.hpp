// SPDX-License-Identifier: MIT
//
// What another process or thread does is awaited by looking again and again.
#pragma once
#include <chrono>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>

namespace redlock::test {

inline std::string text_of_file(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Waits for what another process or thread does, and says whether that came in time.
inline bool eventually(const std::function<bool()>& is_so, std::chrono::seconds at_most = std::chrono::seconds(60)) {
  const auto until = std::chrono::steady_clock::now() + at_most;
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace redlock::test
