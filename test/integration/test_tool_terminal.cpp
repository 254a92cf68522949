// SPDX-License-Identifier: MIT
//
// `redlock run` on a terminal is as flock(1): the command stays in the caller's process group, so pipelines, ^C, ^Z,
// readers of /dev/tty, traps and shells with job control work as they do without a lock, under each shell that is here.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tool_site.hpp"
#include "tool_terminal.hpp"

namespace redlock::test {
namespace {

// A live view on a terminal; elsewhere a line for each change, and none for times that run.
TEST(ToolWatch, ShowsWhatChanges) {
  ToolSite site;
  const Words words = site.words({"status", "--watch", "bus"});
  Program lines(words, site.dir);
  Terminal terminal(words);
  const auto says = [&](const std::string& text) {
    EXPECT_TRUE(eventually([&] { return lines.out().find(text) != std::string::npos; })) << text << lines.out();
    EXPECT_TRUE(terminal.shows(text.substr(0, text.size() - 1))) << text << terminal.shown();
  };
  says(" bus: free\n");
  site.hold_by_other("bus");
  says(" bus: held by a foreign value on 2/3\n");
  const size_t before = terminal.shown().size();
  EXPECT_TRUE(eventually([&] {  // two looks more, with other times
    terminal.shows_now("");
    const std::string& all = terminal.shown();
    return all.find("ends in", before) != all.rfind("ends in");
  })) << terminal.shown();
  const std::string held = lines.out(), line = "held by";
  EXPECT_EQ(held.find(line), held.rfind(line)) << held;
  site.let_go("bus");
  EXPECT_TRUE(eventually([&] {
    const std::string out = lines.out();
    return out.find(" bus: free\n") != out.rfind(" bus: free\n");
  })) << lines.out();
  site.masters[2].kill_hard();
  says(": the connection was refused: nothing listens there, or a firewall rejects it\n");
  EXPECT_TRUE(terminal.shows("\033[H\033[J")) << terminal.shown();
  EXPECT_TRUE(terminal.shows("MASTER ")) << terminal.shown();
  EXPECT_EQ(lines.out().find('\033'), std::string::npos);
  lines.signal(SIGINT);
  EXPECT_EQ(lines.exit_status(), 128 + SIGINT);
}

class ToolTerminal : public ::testing::TestWithParam<Words> {
 protected:
  void SetUp() override {
    if (std::system(("command -v " + GetParam()[0] + " >/dev/null").c_str()) != 0) GTEST_SKIP() << "not here";
  }
  // A script of this shell, in which `R` is `redlock run bus --`.
  Words script(std::string text) const {
    const std::string run = std::string(REDLOCK_TOOL) + " run -C " + site_.config + " bus --";
    for (size_t at = 0; (at = text.find("R ", at)) != std::string::npos; at += run.size()) {
      if (at == 0 || text[at - 1] == ' ') text.replace(at, 1, run);
    }
    return GetParam() + Words{"-c", text};
  }
  void expect_free() { EXPECT_TRUE(eventually([&] { return site_.masters.holders("bus") == 0; })); }

  ToolSite site_;
};

// less and others read what they show from a pipe, and keys from the terminal.
TEST_P(ToolTerminal, AReaderInThePipelineHasTheTerminal) {
  const std::string go = site_.dir + "/go";
  ASSERT_EQ(::mkfifo(go.c_str(), 0600), 0);
  Terminal terminal(script("set -m; R sh -c 'echo page; read go <" + go +
                           "' | sh -c 'read page; echo $page; read key </dev/tty; echo got $key'; echo status $?"));
  ASSERT_TRUE(terminal.shows("page")) << terminal.shown();
  terminal.type("q\n");
  ASSERT_TRUE(terminal.shows("got q")) << terminal.shown();
  std::ofstream(go) << "go\n";
  EXPECT_TRUE(terminal.shows("status 0")) << terminal.shown();
  expect_free();
}

TEST_P(ToolTerminal, InterruptEndsALoop) {
  Terminal terminal(script("for i in 1 2 3; do R sh -c 'echo round $1; exec sleep 100' sh $i; done; echo after"));
  ASSERT_TRUE(terminal.shows("round 1")) << terminal.shown();
  terminal.type("\x03");
  const int status = terminal.wait();
  EXPECT_TRUE(WIFSIGNALED(status) ? WTERMSIG(status) == SIGINT : WEXITSTATUS(status) == 128 + SIGINT) << status;
  EXPECT_FALSE(terminal.shows_now("round 2")) << terminal.shown();
  EXPECT_FALSE(terminal.shows_now("after")) << terminal.shown();
  expect_free();
}

TEST_P(ToolTerminal, ACommandAsksThePersonWhileItsInputIsNone) {
  Terminal terminal(script("R sh -c 'echo password?; read word </dev/tty; echo got $word' </dev/null; echo status $?"));
  ASSERT_TRUE(terminal.shows("password?")) << terminal.shown();
  terminal.type("secret\n");
  EXPECT_TRUE(terminal.shows("got secret")) << terminal.shown();
  EXPECT_TRUE(terminal.shows("status 0")) << terminal.shown();
  expect_free();
}

TEST_P(ToolTerminal, AJobInTheBackgroundComesToTheForeground) {
  Terminal terminal(script("set -m; R sh -c 'echo begun; read word </dev/tty; echo got $word' & read go; fg; "
                           "echo status $?"));
  ASSERT_TRUE(terminal.shows("begun")) << terminal.shown();
  // A job that is stopped while `fg` begins is stopped again for bash.
  ASSERT_TRUE(eventually([&] {
    const std::vector<pid_t> jobs = children_of(terminal.pid());
    if (jobs.empty()) return false;
    return text_of_file("/proc/" + std::to_string(jobs[0]) + "/stat").find(") T ") != std::string::npos;
  }));
  terminal.type("\n");
  terminal.type("word\n");
  EXPECT_TRUE(terminal.shows("got word")) << terminal.shown();
  EXPECT_TRUE(terminal.shows("status 0")) << terminal.shown();
  expect_free();
}

// The signal has gone to the command already, by the terminal.
TEST_P(ToolTerminal, ATrapRunsOnce) {
  Terminal terminal(script("trap : INT; R sh -c 'trap \"echo trap\" INT; echo ready; read word; read word; echo end'; "
                           "echo status $?"));
  ASSERT_TRUE(terminal.shows("ready")) << terminal.shown();
  terminal.type("\x03");
  ASSERT_TRUE(terminal.shows("trap")) << terminal.shown();
  terminal.type("\n");
  terminal.type("\n");
  ASSERT_TRUE(terminal.shows("status 0")) << terminal.shown();
  const size_t first = terminal.shown().find("trap\r");
  EXPECT_EQ(terminal.shown().find("trap\r", first + 1), std::string::npos) << terminal.shown();
}

TEST_P(ToolTerminal, AShellWithJobControlWorksInside) {
  Terminal terminal(script("R env ENV= PS1='> ' sh -i; echo status $?"));
  ASSERT_TRUE(terminal.shows("> ")) << terminal.shown();
  terminal.type("sh -c 'echo be\"\"gun; exec sleep 100'\n");  // a job, before it says so
  ASSERT_TRUE(terminal.shows("begun")) << terminal.shown();
  terminal.type("\x03");
  terminal.type("echo in''side\n");
  ASSERT_TRUE(terminal.shows("inside")) << terminal.shown();
  terminal.type("exit 5\n");
  EXPECT_TRUE(terminal.shows("status 5")) << terminal.shown();
  expect_free();
}

// ^Z stops the whole job, as it stops a job without a lock. Nothing renews the lock meanwhile.
TEST_P(ToolTerminal, AStoppedJobLosesItsLock) {
  const Board board(site_.dir + "/board");
  Terminal terminal(script("set -m; R " + std::string(REDLOCK_WITNESS) + " " + board.file() +
                           " 1; echo stopped $?; read go; fg; echo ended $?"));
  ASSERT_TRUE(board.acts()) << terminal.shown();
  terminal.type("\x1a");
  ASSERT_TRUE(terminal.shows("stopped 148")) << terminal.shown();
  EXPECT_TRUE(eventually([&] { return board.is_abandoned(); }));
  terminal.type("\n");
  EXPECT_TRUE(terminal.shows("ended 79")) << terminal.shown();
  EXPECT_EQ(terminal.wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(Under, ToolTerminal, ::testing::Values(Words{"bash"}, Words{"dash"}, Words{"busybox", "ash"}),
                         [](const auto& one) { return one.param[0]; });

TEST(ToolTerminalAlone, TheCommandHasTheTerminal) {
  ToolSite site;
  for (const Words& options : {Words{}, Words{"--pidns"}}) {
    Terminal terminal(site.words(Words{"run"} + options + Words{"bus", "--", "cat"}));
    terminal.type("hello\n");
    const bool has_terminal = terminal.shows("hello\r\nhello");
    if (!options.empty() && terminal.shown().find("no PID namespace") != std::string::npos) GTEST_SKIP();
    ASSERT_TRUE(has_terminal) << terminal.shown();
    terminal.type("\x03");
    const int status = terminal.wait();
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
    EXPECT_EQ(site.masters.holders("bus"), 0u);
  }
}

// As below `ssh -t HOST redlock run ...`: the kernel tells the leader of the session alone, which is redlock.
TEST(ToolTerminalAlone, AHangupEndsTheCommand) {
  ToolSite site;
  Terminal terminal(site.words({"run", "bus", "--", "sh", "-c", "echo ready; exec sleep 1000"}));
  ASSERT_TRUE(terminal.shows("ready")) << terminal.shown();
  terminal.hang_up();
  EXPECT_TRUE(eventually([&] { return site.masters.holders("bus") == 0; }));
}

TEST(ToolTerminalAlone, AWaitShowsItsCauseOnOneLine) {
  ToolSite site;
  site.hold_by_other("bus");
  Terminal terminal(site.words({"run", "bus", "--", "true"}));
  EXPECT_TRUE(terminal.shows("\rredlock: waiting for bus for 1 s: held by a foreign value")) << terminal.shown();
  EXPECT_TRUE(terminal.shows("waiting for bus for 2 s")) << terminal.shown();
  EXPECT_EQ(terminal.shown().find('\n'), std::string::npos);
  Terminal narrow(site.words({"run", "bus", "--", "true"}), 30);
  EXPECT_TRUE(narrow.shows("\rredlock: waiting for bus for \033[K")) << "29 columns, and no more: " << narrow.shown();
  site.let_go("bus");
  EXPECT_EQ(terminal.wait(), 0);
}

}  // namespace
}  // namespace redlock::test
