// SPDX-License-Identifier: MIT
//
// The exit codes where several causes meet, a system that refuses, and when there are colours.
#include <gtest/gtest.h>
#include <pty.h>

#include "tool_doctor.hpp"

namespace redlock::test {
namespace {

// Three masters, admitted. The guard time is longer than the test.
class ToolCodes : public ::testing::Test {
 protected:
  void SetUp() override {
    config_ = site_.file({0, 1, 2}, "", 600'000);
    commission(site_, config_);
  }
  // redlock run and hold, with -E, which is about 75 alone. Each code comes with a line.
  void expect(int status, int with_e, const std::string& what) {
    SCOPED_TRACE(what);
    for (const Words& words : {Words{"run", "-n", "-t", "3000", "bus", "--", "true"},
                               Words{"hold", "-n", "-t", "3000", "bus"}}) {
      const Ended ended = site_.run(words, config_);
      EXPECT_EQ(ended.status, status) << words[0] << ended.err;
      EXPECT_EQ(ended.err.find("redlock: "), 0u) << words[0] << ended.err;
    }
    EXPECT_EQ(site_.run({"run", "-n", "-t", "3000", "-E", "5", "bus", "--", "true"}, config_).status, with_e);
  }

  ToolMasters site_{3};
  std::string config_;
};

TEST_F(ToolCodes, OfSeveralCausesThatWhichTellsMost) {
  for (unsigned i : {0u, 1u}) site_.set(i, "bus", "somebody");
  site_[2].kill_hard();
  expect(75, 5, "held, and one cannot be reached");
  site_[0].command({"CONFIG", "SET", "requirepass", "secret"});
  expect(77, 77, "one refuses the login, one cannot be reached");
  site_[1].command({"HSET", "redlock::meta", "desc", "v1 n=5 q=3 max_ttl_ms=7000 ids=0123456789abcdef"});
  expect(78, 78, "one is of another configuration, one refuses the login, one cannot be reached");
}

TEST_F(ToolCodes, WaitingAloneHelpsOnlyWhereEnoughAreWatched) {
  site_[0].restart();
  site_[1].kill_hard();
  expect(76, 76, "one is watched, one cannot be reached");
  site_[2].kill_hard();
  expect(69, 69, "one is watched, two cannot be reached");
}

TEST_F(ToolCodes, ASystemThatRefusesIs71) {
  // Whoever runs the test may have left descriptors open, which the loader of the program would miss.
  const Words few = {"sh", "-c", "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit -n 5; exec \"$@\"", "sh"};
  for (const Words& words : {Words{"run", "-n", "-t", "3000", "bus", "--", "true"},
                             Words{"hold", "-n", "-t", "3000", "bus"}}) {
    Program program(few + site_.words(words, config_), site_.dir);
    EXPECT_EQ(program.exit_status(), 71) << program.err();
    EXPECT_EQ(program.err().find("redlock: "), 0u) << program.err();
  }
}

// What a program writes on a terminal.
std::string on_terminal(Words words, bool no_color) {
  int terminal = -1;
  const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (pid == 0) {
    ::setenv("TERM", "xterm", 1);
    no_color ? ::setenv("NO_COLOR", "1", 1) : ::unsetenv("NO_COLOR");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(99);
  }
  std::string text;
  char piece[256];
  for (ssize_t n; (n = ::read(terminal, piece, sizeof piece)) > 0;) text.append(piece, static_cast<size_t>(n));
  int status = 0;
  ::waitpid(pid, &status, 0);
  ::close(terminal);
  return text;
}

TEST(ToolColours, OnTerminalsAlone) {
  ToolMasters site(1);
  const Words doctor = site.words({"doctor"}, site.file({0}));
  Program in_a_file(doctor, site.dir, {{"TERM=xterm"}, false});
  const std::string with = on_terminal(doctor, false), without = on_terminal(doctor, true);
  EXPECT_TRUE(has(with, "\x1b[32mok     \x1b[m reach ")) << with;
  EXPECT_TRUE(has(with, "\x1b[31mfail   \x1b[m guard ")) << with;
  EXPECT_TRUE(has(without, "ok      reach ")) << without;
  EXPECT_FALSE(has(without, "\x1b")) << without;
  EXPECT_EQ(in_a_file.exit_status(), 76);
  EXPECT_FALSE(has(in_a_file.out() + in_a_file.err(), "\x1b"));
}

}  // namespace
}  // namespace redlock::test
