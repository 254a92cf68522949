// SPDX-License-Identifier: MIT
//
// "The kill before the end" of `redlock run`: a witness sees that no command acts when somebody else can hold the lock.
// The margins are printed. test_tool_ends.cpp stops and kills keeper and warden.
#include <gtest/gtest.h>

#include "support/pauses.hpp"
#include "tool_site.hpp"

namespace redlock::test {
namespace {

class ToolKillMasters : public ::testing::TestWithParam<std::pair<bool, Words>> {};

// No renewal succeeds any more. The validity ends a ttl after the last one, at the latest.
TEST_P(ToolKillMasters, TheCommandIsGoneInTime) {
  const auto& [frozen, how] = GetParam();
  const Pauses pauses;
  ToolSite site;
  const Board board(site.dir + "/board");
  Program run(site.witness(board, "bus", how, "1", frozen ? Words{} : Words{"--kill-after", "0"}), site.dir);
  ASSERT_TRUE(board.acts());
  Program next(site.witness(board, "bus", {}, "2"), site.dir);
  for (size_t m = 0; m < 2; ++m) frozen ? site.masters[m].freeze() : site.masters[m].kill_hard();
  const int64_t end = boot_ns() + (ToolSite::ttl_ms - ToolSite::drift_ms) * ns_per_ms;
  EXPECT_EQ(run.exit_status(), 79);
  EXPECT_NE(run.err().find("the lock was lost"), std::string::npos) << run.err();
  EXPECT_TRUE(board.is_abandoned());
  std::cout << "last act " << (end - board->last_act_ns) / ns_per_ms << " ms before the end of the validity\n";
  EXPECT_TRUE(board->last_act_ns < end || pauses.were_too_long());
  for (size_t m = 0; m < 2; ++m) frozen ? site.masters[m].thaw() : site.masters[m].restart();
  EXPECT_TRUE(board.acts(2));
  EXPECT_TRUE(board->overlaps == 0 || pauses.were_too_long());
}

INSTANTIATE_TEST_SUITE_P(Frozen, ToolKillMasters,
                         ::testing::Values(std::pair(true, Words{}), std::pair(true, Words{"deaf"}),
                                           std::pair(true, Words{"deaf", "away"}), std::pair(false, Words{"deaf"})));

// A kernel that lists no children: all of /proc is read.
TEST(ToolKill, WithoutListsOfChildrenTheCommandIsGoneInTime) {
  if (*REDLOCK_NO_LISTS_LIBRARY == '\0') GTEST_SKIP() << "a sanitizer wants to be the first library";
  const Pauses pauses;
  ToolSite site;
  const Board board(site.dir + "/board");
  const std::string asked = site.dir + "/asked";
  const Words without = {"LD_PRELOAD=" REDLOCK_NO_LISTS_LIBRARY, "REDLOCK_NO_LISTS=" + asked};
  Program run(site.witness(board, "bus", {"deaf", "nested=20"}), site.dir, {without, false});
  ASSERT_TRUE(board.acts());
  EXPECT_TRUE(std::filesystem::exists(asked));
  Program next(site.witness(board, "bus", {}, "2"), site.dir);
  for (size_t m = 0; m < 2; ++m) site.masters[m].freeze();
  EXPECT_EQ(run.exit_status(), 79);
  EXPECT_TRUE(board.is_abandoned());
  for (size_t m = 0; m < 2; ++m) site.masters[m].thaw();
  EXPECT_TRUE(board.acts(2));
  EXPECT_TRUE(board->overlaps == 0 || pauses.were_too_long());
}

// Its group and its session are redlock's, and /proc/PID/stat says that it has ended: only one of its threads has not.
TEST(ToolKill, AProcessWhoseFirstThreadHasEndedIsGoneInTime) {
  const Pauses pauses;
  ToolSite site;
  const Board board(site.dir + "/board");
  Program run(site.witness(board, "bus", {"deaf", "job", "rest"}), site.dir);
  ASSERT_TRUE(board.acts());
  Program next(site.witness(board, "bus", {}, "2"), site.dir);
  run.signal(SIGSTOP);
  EXPECT_TRUE(board.acts(2));
  EXPECT_TRUE(board->overlaps == 0 || pauses.were_too_long());
  board->over = 1;  // redlock would wait for whom it does not find
  run.signal(SIGCONT);
  EXPECT_EQ(run.exit_status(), 79);
}

// Nobody relies on the lock any more: the key that is left goes with the command.
TEST(ToolKill, KeysThatAreGoneEndTheCommand) {
  for (const bool restarted : {false, true}) {
    ToolSite site(true, 30'000);
    const Board board(site.dir + "/board");
    Program run(site.witness(board, "bus", {}, "1", {"--ttl", "3000"}), site.dir);
    ASSERT_TRUE(board.acts());
    ASSERT_TRUE(eventually([&] { return site.masters.holders("bus") == 3; }));
    site.masters[2].command({"PEXPIRE", "bus", "60000"});
    if (!restarted) site.let_go("bus");
    for (size_t m = 0; m < (restarted ? 2 : 0); ++m) site.masters[m].restart();
    EXPECT_EQ(run.exit_status(), 79);
    EXPECT_TRUE(board.is_abandoned());
    EXPECT_FALSE(site.masters[2].exists("bus"));
  }
}

}  // namespace
}  // namespace redlock::test
