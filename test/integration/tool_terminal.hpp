// SPDX-License-Identifier: MIT
//
// A program on a terminal of its own.
#pragma once
#include <poll.h>
#include <pty.h>

#include "tool_program.hpp"

namespace redlock::test {

// As an interactive shell starts it: in the foreground.
class Terminal {
 public:
  explicit Terminal(Words words, uint16_t columns = 0) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const winsize window = {.ws_row = 25, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    pid_ = ::forkpty(&master_, nullptr, nullptr, columns != 0 ? &window : nullptr);
    if (pid_ < 0) throw std::runtime_error("forkpty");  // a signal to process -1 would go to everybody
    if (pid_ == 0) {
      ::execvp(argv[0], argv.data());
      _exit(127);
    }
  }
  ~Terminal() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::close(master_);
  }
  void type(const std::string& text) { EXPECT_EQ(::write(master_, text.data(), text.size()), ssize_t(text.size())); }
  bool shows_now(const std::string& text) {
    pollfd wanted = {master_, POLLIN, 0};
    char buffer[512];
    if (::poll(&wanted, 1, 0) == 1) {
      const ssize_t size = ::read(master_, buffer, sizeof buffer);
      if (size > 0) shown_.append(buffer, static_cast<size_t>(size));
    }
    return shown_.find(text) != std::string::npos;
  }
  bool shows(const std::string& text) {
    return eventually([&] { return shows_now(text); });
  }
  const std::string& shown() const { return shown_; }
  void hang_up() {
    ::close(master_);
    master_ = -1;
  }
  pid_t pid() const { return pid_; }
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, WUNTRACED);
    return status;
  }
  // Reads to the end, and answers the question once, if it is asked. The exit status, or -1.
  int read_all(const std::string& question = "", const std::string& answer = "") {
    bool answered = question.empty();
    char piece[256];
    for (ssize_t n; (n = ::read(master_, piece, sizeof piece)) > 0;) {  // an error when the program has ended
      shown_.append(piece, static_cast<size_t>(n));
      if (answered || shown_.find(question) == std::string::npos) continue;
      type(answer);
      answered = true;
    }
    const int status = wait();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  int master_ = -1;
  pid_t pid_ = -1;
  std::string shown_;
};

}  // namespace redlock::test
