// SPDX-License-Identifier: MIT
//
// "The kill before the end" of `redlock run`: a witness sees that no command acts when somebody else can hold the lock,
// also when the keeper or the guard is stopped or killed. The margins are printed.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>

#include <memory>

#include "tool_site.hpp"

namespace redlock::test {
namespace {

// Which processes a signal hits.
enum Whom { keeper, guard, both };

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
    if (what.whom != guard) first.signal(what.number);
    if (what.whom == guard && !stops) return;
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
      {"guard stopped", guard, SIGSTOP, {}, 71},
      {"guard stopped, TERM ignored", guard, SIGSTOP, deaf, 71},
      {"guard stopped, double fork with setsid", guard, SIGSTOP, far_away, 71},
      {"guard killed", guard, SIGKILL, {}, 71},
      {"guard killed, TERM ignored", guard, SIGKILL, deaf, 71},
      {"guard killed, double fork with setsid", guard, SIGKILL, far_away, 71},
      {"both stopped", both, SIGSTOP, {}, 79},
      {"both stopped, TERM ignored", both, SIGSTOP, deaf, 79},
      {"both killed", both, SIGKILL, {}, 137},
      {"both killed, TERM ignored", both, SIGKILL, deaf, 137},
  };
  ToolSite site;
  std::vector<std::unique_ptr<Trial>> trials;
  for (const Case& one : cases) {
    trials.push_back(std::make_unique<Trial>(site, one, static_cast<int>(trials.size())));
  }
  for (auto& trial : trials) {
    ASSERT_TRUE(trial->board.acts()) << trial->what.name;
    trial->second = std::make_unique<Program>(site.witness(trial->board, trial->resource, {}, "2"), site.dir);
  }
  for (auto& trial : trials) {
    trial->disturb();
    trial->validity_end_ns = site.validity_end_ns(trial->resource);
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
      EXPECT_GT(margin, 0) << trial->what.name;
    }
    if (trial->what.number == SIGSTOP) trial->first.signal(SIGCONT);
    // Where the machine does not let the guard run, the guard's own timer ends it with the command.
    const int status = trial->first.exit_status();
    const bool is_late = trial->first.err().find("the guard was killed") != std::string::npos && status == 71;
    EXPECT_TRUE(status == trial->what.status || is_late) << trial->what.name << ": " << status << trial->first.err();
    EXPECT_TRUE(trial->board.acts(2)) << trial->what.name;
  }
  for (auto& trial : trials) {
    trial->second->signal(SIGTERM);
    EXPECT_EQ(trial->second->exit_status(), 128 + SIGTERM);
    EXPECT_EQ(trial->board->overlaps, 0u) << trial->what.name;
    EXPECT_EQ(site.masters.holders(trial->resource), 0u) << trial->what.name;
  }
}

class ToolKillMasters : public ::testing::TestWithParam<std::pair<bool, Words>> {};

// No renewal succeeds any more. The validity ends a ttl after the last one, at the latest.
TEST_P(ToolKillMasters, TheCommandIsGoneInTime) {
  const auto& [frozen, how] = GetParam();
  ToolSite site;
  const Board board(site.dir + "/board");
  Program run(site.witness(board, "bus", how, "1", frozen ? Words{} : Words{"--on-lost", "kill"}), site.dir);
  ASSERT_TRUE(board.acts());
  Program next(site.witness(board, "bus", {}, "2"), site.dir);
  for (size_t m = 0; m < 2; ++m) frozen ? site.masters[m].freeze() : site.masters[m].kill_hard();
  const int64_t end = boot_ns() + (ToolSite::ttl_ms - ToolSite::drift_ms) * ns_per_ms;
  EXPECT_EQ(run.exit_status(), 79);
  EXPECT_NE(run.err().find("the lock was lost"), std::string::npos) << run.err();
  EXPECT_TRUE(board.is_abandoned());
  std::cout << "last act " << (end - board->last_act_ns) / ns_per_ms << " ms before the end of the validity\n";
  EXPECT_LT(board->last_act_ns, end);
  for (size_t m = 0; m < 2; ++m) frozen ? site.masters[m].thaw() : site.masters[m].restart();
  EXPECT_TRUE(board.acts(2));
  EXPECT_EQ(board->overlaps, 0u);
}

INSTANTIATE_TEST_SUITE_P(Frozen, ToolKillMasters,
                         ::testing::Values(std::pair(true, Words{}), std::pair(true, Words{"deaf"}),
                                           std::pair(true, Words{"deaf", "away"}), std::pair(false, Words{"deaf"})));

TEST(ToolKill, KeysThatAreGoneEndTheCommand) {
  ToolSite site;
  const Board board(site.dir + "/board");
  Program run(site.witness(board, "bus"), site.dir);
  ASSERT_TRUE(board.acts());
  site.let_go("bus");
  EXPECT_EQ(run.exit_status(), 79);
  EXPECT_TRUE(board.is_abandoned());
}

// ---- a terminal --------------------------------------------------------------------------------------------------

// redlock run as an interactive shell starts it: in the foreground of a terminal of its own.
class Terminal {
 public:
  explicit Terminal(Words words) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = ::forkpty(&master_, nullptr, nullptr, nullptr);
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
  bool shows(const std::string& text) {
    return eventually([&] {
      pollfd wanted = {master_, POLLIN, 0};
      char buffer[512];
      if (::poll(&wanted, 1, 0) == 1) {
        const ssize_t size = ::read(master_, buffer, sizeof buffer);
        if (size > 0) shown_.append(buffer, static_cast<size_t>(size));
      }
      return shown_.find(text) != std::string::npos;
    });
  }
  const std::string& shown() const { return shown_; }
  pid_t pid() const { return pid_; }
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, WUNTRACED);
    return status;
  }

 private:
  int master_ = -1;
  pid_t pid_ = -1;
  std::string shown_;
};

TEST(ToolTerminal, TheCommandHasTheTerminal) {
  ToolSite site;
  for (const Words& options : {Words{}, Words{"--pidns"}}) {
    Terminal terminal(site.words(Words{"run"} + options + Words{"bus", "--", "cat"}));
    terminal.type("hello\n");
    const bool has_terminal = terminal.shows("hello\r\nhello");
    if (!options.empty() && terminal.shown().find("no PID namespace") != std::string::npos) GTEST_SKIP();
    ASSERT_TRUE(has_terminal) << terminal.shown();
    terminal.type("\x03");
    const int status = terminal.wait();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGINT) << status;
    EXPECT_EQ(site.masters.holders("bus"), 0u);
  }
}

// ^Z stops the whole job, as it stops a job without a lock. Nothing renews the lock meanwhile.
TEST(ToolTerminal, AStoppedJobLosesItsLock) {
  ToolSite site;
  const Board board(site.dir + "/board");
  std::string job;
  for (const std::string& word : site.witness(board, "bus")) job += word + " ";
  Terminal terminal({"bash", "-c", "set -m; " + job + "; echo stopped $?; read go; fg; echo ended $?"});
  ASSERT_TRUE(board.acts()) << terminal.shown();
  terminal.type("\x1a");
  ASSERT_TRUE(terminal.shows("stopped 148")) << terminal.shown();
  EXPECT_TRUE(eventually([&] { return board.is_abandoned(); }));
  terminal.type("\n");
  EXPECT_TRUE(terminal.shows("ended 79")) << terminal.shown();
  EXPECT_EQ(terminal.wait(), 0);
}

TEST(ToolTerminal, AWaitShowsItsCauseOnOneLine) {
  ToolSite site;
  site.hold_by_other("bus");
  Terminal terminal(site.words({"run", "bus", "--", "true"}));
  EXPECT_TRUE(terminal.shows("\rredlock: waiting for bus  1 s: held by a foreign value on "))
      << terminal.shown();
  EXPECT_TRUE(terminal.shows("waiting for bus  2 s")) << terminal.shown();
  EXPECT_EQ(terminal.shown().find('\n'), std::string::npos);
  site.let_go("bus");
  EXPECT_EQ(terminal.wait(), 0);
}

}  // namespace
}  // namespace redlock::test
