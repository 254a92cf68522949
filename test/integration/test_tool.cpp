// SPDX-License-Identifier: MIT
//
// What all commands of `redlock` have in common: options, the configuration, exit codes, lines on stderr.
#include <gtest/gtest.h>
#include <redlock/redlock.h>

#include <filesystem>

#include "tool_program.hpp"

namespace redlock::test {
namespace {

class Tool : public ::testing::Test {
 protected:
  Tool() {
    char name[] = "/tmp/redlock-tool.XXXXXX";
    dir_ = mkdtemp(name);
  }
  ~Tool() override { std::filesystem::remove_all(dir_); }
  Ended run(const Words& arguments) { return run_redlock(arguments, dir_); }

  std::string dir_;
};

TEST_F(Tool, TellsItsVersion) {
  for (const char* word : {"version", "--version"}) {
    const Ended ended = run({word});
    EXPECT_EQ(ended.status, 0);
    EXPECT_EQ(ended.out, std::string("redlock ") + redlock_version_string() + "\n");
    EXPECT_EQ(ended.err, "");
  }
}

TEST_F(Tool, HelpListsTheCommandsOnStdout) {
  const Ended ended = run({"--help"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_NE(ended.out.find("\n  version "), std::string::npos) << ended.out;
  const Ended one = run({"version", "-h"});
  EXPECT_EQ(one.status, 0);
  EXPECT_NE(one.out.find("--config FILE"), std::string::npos) << one.out;
}

TEST_F(Tool, AMistakeIs64AndALine) {
  const struct {
    Words arguments;
    std::string line;
  } mistakes[] = {
      {{}, "redlock: which command? see redlock --help\n"},
      {{"lock"}, "redlock: there is no command 'lock'; see redlock --help\n"},
      {{"version", "-x"}, "redlock: version: there is no option -x; see redlock version --help\n"},
      {{"version", "--x"}, "redlock: version: there is no option --x; see redlock version --help\n"},
      {{"version", "-C"}, "redlock: version: a value is missing behind -C; see redlock version --help\n"},
      {{"version", "x"}, "redlock: version: it takes no argument; see redlock version --help\n"},
  };
  for (const auto& mistake : mistakes) {
    const Ended ended = run(mistake.arguments);
    EXPECT_EQ(ended.status, 64) << mistake.line;
    EXPECT_EQ(ended.err, mistake.line);
    EXPECT_EQ(ended.out, "");
  }
}

}  // namespace
}  // namespace redlock::test
