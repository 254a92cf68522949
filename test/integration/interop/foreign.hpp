// SPDX-License-Identifier: MIT
//
// Somebody else's lock library in a process of its own. Each line that it reads is answered by one line, "yes" or
// "no: WHY":
//   acquire KEY TTL_MS     one try
//   extend TTL_MS          of the lock that was acquired last, also if it is over
//   release                likewise
//   contend KEY TTL_MS HOLD_MS PAUSE_MS MARKER TURNS STOP
//                          takes turns with the pauses that the library has by itself, until the file STOP is there. In
//                          each turn it makes the file MARKER, which must not be there, and appends its letter to the
//                          file TURNS: '!' if MARKER was there
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

extern char** environ;

namespace redlock::test {

class Foreign {
 public:
  explicit Foreign(std::vector<std::string> words) {
    int to[2], from[2];
    if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    const int err = ::posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(to[0]);
    ::close(from[1]);
    to_ = ::fdopen(to[1], "w");
    from_ = ::fdopen(from[0], "r");
    if (err != 0) throw std::runtime_error(words[0] + " cannot be started");
  }
  ~Foreign() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    std::fclose(to_);
    std::fclose(from_);
  }
  Foreign(const Foreign&) = delete;
  Foreign& operator=(const Foreign&) = delete;

  void freeze() { ::kill(pid_, SIGSTOP); }
  void say(const std::string& line) {
    std::fprintf(to_, "%s\n", line.c_str());
    std::fflush(to_);
  }
  std::string hear() {
    char line[4096];
    if (std::fgets(line, sizeof line, from_) == nullptr) throw std::runtime_error("the other library's program ended");
    return std::string(line).substr(0, std::string(line).find('\n'));
  }
  std::string ask(const std::string& line) {
    say(line);
    return hear();
  }

 private:
  pid_t pid_ = -1;
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
};

}  // namespace redlock::test
