// SPDX-License-Identifier: MIT
//
// `redlock` as a user without any rights: what other programs of this user can see of it.
#include <gtest/gtest.h>

#include "tool_user.hpp"

namespace redlock::test {
namespace {

class ToolAsUser : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!user_.is_possible) GTEST_SKIP() << "setpriv cannot make another user";
  }

  ToolSite site_;
  const ToolUser user_{site_, true};
  const std::string res_ = "plant1/rs485-a";
};

TEST_F(ToolAsUser, OtherProgramsOfTheUserCannotReadThePasswords) {
  Program run(user_.redlock({"run", res_, "--", "sh", "-c", "echo held; exec sleep 100"}), site_.dir, user_.setting());
  ASSERT_TRUE(eventually([&] { return run.out() == "held\n"; })) << run.err();
  EXPECT_FALSE(user_.is_readable(run.pid())) << "keeper";
  const std::vector<pid_t> warden = children_of(run.pid());
  ASSERT_EQ(warden.size(), 1u);
  EXPECT_FALSE(user_.is_readable(warden[0])) << "warden";
  const std::vector<pid_t> command = children_of(warden[0]);
  ASSERT_EQ(command.size(), 1u);
  EXPECT_TRUE(user_.is_readable(command[0])) << "the command is as it would be without us";
}

// Without a control group of its own, without stdin, and in one try.
TEST_F(ToolAsUser, OneTryWithoutStdinLeavesNothingBehind) {
  const std::string list = "for d in /proc/$$/fd/*; do echo ${d##*/}; done; ";
  const Ended alone = user_.ended(user_.words({"sh", "-c", list}), true);
  const LeftBehind left;
  const Words script = {"sh", "-c", list + "(sleep 100 &); exit 4"};
  const Ended under = user_.ended(user_.redlock(Words{"run", "-n", res_, "--"} + script), true);
  EXPECT_EQ(under.status, 4) << under.err;
  EXPECT_EQ(under.err, "redlock: " + res_ + ": what the command has left behind is ended\n");
  EXPECT_EQ(under.out, alone.out) << "descriptors of the command";
  EXPECT_EQ(left.count(), 0u);
  EXPECT_EQ(site_.masters.holders(res_), 0u);
}

}  // namespace
}  // namespace redlock::test
