// SPDX-License-Identifier: MIT
//
// "The kill before the end" of `redlock run`: a witness sees that no command acts when somebody else can hold the lock,
// also when the keeper or the warden is stopped or killed. The margins are printed.
#include <gtest/gtest.h>

#include <memory>

#include "support/pauses.hpp"
#include "tool_site.hpp"

namespace redlock::test {
namespace {

// Which processes a signal hits.
enum Whom { keeper, warden, both };

struct Case {
  const char* name;
  Whom whom;
  int number;
  Words how;
  int status;  // of `redlock run`; -1: any
};

// redlock run with a witness, and another one that waits for the same lock.
struct Trial {
  Trial(const ToolSite& site, const Case& one, int number)
      : what(one), resource("trial-" + std::to_string(number)), board(site.dir + "/" + resource),
        first(site.witness(board, resource, what.how), site.dir) {}

  void disturb() {
    const std::vector<pid_t> children = children_of(first.pid());
    ASSERT_EQ(children.size(), 1u) << what.name;
    const int stops = what.number == SIGSTOP;
    if (what.whom != keeper && !stops) ::kill(children[0], what.number);
    if (what.whom != warden) first.signal(what.number);
    if (what.whom == warden && !stops) return;
    if (what.whom != keeper) ::kill(children[0], what.number);
  }

  const Case& what;
  const std::string resource;
  const Board board;
  Program first;
  std::unique_ptr<Program> second;
  int64_t validity_end_ns = 0;
};

TEST(ToolKill, NoCommandActsWhenSomebodyElseCanHoldTheLock) {
  const Words deaf = {"deaf"}, far_away = {"deaf", "away"};
  const Case cases[] = {
      {"keeper stopped", keeper, SIGSTOP, {}, 79},
      {"keeper stopped, TERM ignored", keeper, SIGSTOP, deaf, 79},
      {"keeper stopped, double fork with setsid", keeper, SIGSTOP, far_away, 79},
      {"keeper killed", keeper, SIGKILL, {}, 137},
      {"keeper killed, TERM ignored", keeper, SIGKILL, deaf, 137},
      {"keeper killed, double fork with setsid", keeper, SIGKILL, far_away, 137},
      {"warden stopped", warden, SIGSTOP, {}, 71},
      {"warden stopped, TERM ignored", warden, SIGSTOP, deaf, 71},
      {"warden stopped, double fork with setsid", warden, SIGSTOP, far_away, 71},
      {"warden killed", warden, SIGKILL, {}, 71},
      {"warden killed, TERM ignored", warden, SIGKILL, deaf, 71},
      {"warden killed, double fork with setsid", warden, SIGKILL, far_away, 71},
      {"both stopped", both, SIGSTOP, {}, 79},
      {"both stopped, TERM ignored", both, SIGSTOP, deaf, 79},
      {"both killed", both, SIGKILL, {}, 137},
      {"both killed, TERM ignored", both, SIGKILL, deaf, 137},
  };
  const Pauses pauses;
  ToolSite site;
  std::vector<std::unique_ptr<Trial>> trials;
  for (const Case& one : cases) {  // each at once: a busy machine may let no lock be renewed for long
    trials.push_back(std::make_unique<Trial>(site, one, static_cast<int>(trials.size())));
    Trial& trial = *trials.back();
    ASSERT_TRUE(trial.board.acts()) << one.name;
    trial.second = std::make_unique<Program>(site.witness(trial.board, trial.resource, {}, "2"), site.dir);
    trial.disturb();
    trial.validity_end_ns = site.validity_end_ns(trial.resource);
  }
  for (auto& trial : trials) {
    // The first witness is gone, or has given way to the second: then its last act was before that.
    ASSERT_TRUE(eventually([&] { return trial->board->owner == 2 || trial->board.is_abandoned(); }));
    if (trial->board->owner != 2) {
      const int64_t margin = trial->validity_end_ns - trial->board->last_act_ns;
      const bool was_released = trial->validity_end_ns == INT64_MAX;
      std::cout << trial->what.name << ": last act "
                << (was_released ? "before the lock was released"
                                 : std::to_string(margin / ns_per_ms) + " ms before the end of the validity")
                << "\n";
      EXPECT_TRUE(margin > 0 || pauses.were_too_long()) << trial->what.name;
    }
    if (trial->what.number == SIGSTOP) trial->first.signal(SIGCONT);
    // Where the machine does not let the warden run, the warden's own timer ends it with the command.
    const int status = trial->first.exit_status();
    const bool is_late = trial->first.err().find("the warden was killed") != std::string::npos && status == 71;
    EXPECT_TRUE(status == trial->what.status || is_late) << trial->what.name << ": " << status << trial->first.err();
    EXPECT_TRUE(trial->board.acts(2)) << trial->what.name;
  }
  for (auto& trial : trials) {
    trial->second->signal(SIGTERM);
    const int status = trial->second->exit_status();
    EXPECT_TRUE(status == 128 + SIGTERM || (status == 79 && pauses.were_too_long())) << trial->what.name << status;
    EXPECT_TRUE(trial->board->overlaps == 0 || pauses.were_too_long()) << trial->what.name;
    // Long before the end of its ttl; the last master may answer later than we wait.
    const auto is_free = [&] { return site.masters.holders(trial->resource) == 0; };
    EXPECT_TRUE(eventually(is_free, std::chrono::seconds(1)) || pauses.were_too_long()) << trial->what.name;
  }
}

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
