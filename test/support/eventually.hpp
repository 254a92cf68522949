// SPDX-License-Identifier: MIT
//
// What another process or thread does is awaited by looking again and again.
#pragma once
#include <sys/types.h>
#include <sys/wait.h>

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

// Waits for a child, and tells its exit status as a shell does: 128 and the number of a signal. pid is -1 then. The
// result is -1 where there was no such child.
inline int take_exit_status(pid_t& pid) {
  int status = 0;
  if (pid <= 0 || ::waitpid(pid, &status, 0) != pid) return -1;
  pid = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace redlock::test
