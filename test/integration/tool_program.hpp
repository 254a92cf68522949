// SPDX-License-Identifier: MIT
//
// Runs the program `redlock` as it is built, with what it writes in files.
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "support/eventually.hpp"

extern char** environ;

namespace redlock::test {

using Words = std::vector<std::string>;

inline Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline Words master_options(const Words& urls) {
  Words options;
  for (const std::string& url : urls) options = options + Words{"--master", url};
  return options;
}

// A program with its stdin, if it is not closed, stdout and stderr in files of `dir`.
class Program {
 public:
  struct Setting {
    Words environment = {};     // besides ours: "NAME=value"
    bool stdin_closed = false;
    std::string input = {};
  };

  Program(Words words, const std::string& dir) : Program(std::move(words), dir, Setting{}) {}
  Program(Words words, const std::string& dir, const Setting& setting)
      : files_(dir + "/program." + std::to_string(++number_)) {
    std::vector<char*> argv, environment;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    Words added = setting.environment;
    for (std::string& one : added) environment.push_back(one.data());
    for (char** one = environ; *one != nullptr; ++one) environment.push_back(*one);
    environment.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (setting.stdin_closed) {
      posix_spawn_file_actions_addclose(&actions, 0);
    } else {
      std::ofstream(files_ + ".in") << setting.input;
      posix_spawn_file_actions_addopen(&actions, 0, (files_ + ".in").c_str(), O_RDONLY, 0);
    }
    posix_spawn_file_actions_addopen(&actions, 1, (files_ + ".out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, (files_ + ".err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    // Who runs the tests in the background has INT and QUIT ignored, and ignored signals stay ignored.
    sigset_t usual;
    sigfillset(&usual);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    const int err = ::posix_spawnp(&pid_, argv[0], &actions, &attributes, argv.data(), environment.data());
    EXPECT_EQ(err, 0) << words[0];
    if (err != 0) pid_ = -1;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    exit_status();
  }

  int exit_status() { return take_exit_status(pid_); }
  void signal(int number) const {
    if (pid_ > 0) ::kill(pid_, number);
  }
  pid_t pid() const { return pid_; }
  std::string out() const { return text_of_file(files_ + ".out"); }
  std::string err() const { return text_of_file(files_ + ".err"); }

 private:
  static inline int number_ = 0;
  std::string files_;
  pid_t pid_ = -1;
};

inline Words redlock_words(const Words& arguments) { return Words{REDLOCK_TOOL} + arguments; }
// The command, -C CONFIG, and its other arguments.
inline Words redlock_words(const Words& arguments, const std::string& config) {
  return redlock_words({arguments[0], "-C", config}) + Words(arguments.begin() + 1, arguments.end());
}

// A program that has ended.
struct Ended {
  int status;
  std::string out;
  std::string err;
};
inline Ended run_program(const Words& words, const std::string& dir, const Program::Setting& setting = {}) {
  Program program(words, dir, setting);
  const int status = program.exit_status();
  return {status, program.out(), program.err()};
}
inline Ended run_redlock(const Words& arguments, const std::string& dir, const Program::Setting& setting = {}) {
  return run_program(redlock_words(arguments), dir, setting);
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline std::string replace_all(std::string text, const std::string& old, const std::string& now) {
  for (size_t at = 0; (at = text.find(old, at)) != std::string::npos; at += now.size()) {
    text.replace(at, old.size(), now);
  }
  return text;
}

}  // namespace redlock::test
