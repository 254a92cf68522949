// SPDX-License-Identifier: MIT
//
// `redlock hold`: for shell scripts, as the manual shows it, under each shell that is here; and for programs.
#include <gtest/gtest.h>

#include "tool_site.hpp"

namespace redlock::test {
namespace {

class ToolHold : public ::testing::Test {
 protected:
  std::string hold(const std::string& options) const {
    return std::string(REDLOCK_TOOL) + " hold -C " + site_.config + " " + options;
  }
  bool is_free(const std::string& resource) { return site_.masters.holders(resource) == 0; }

  ToolSite site_;
};

bool is_here(const Words& shell) { return std::system(("command -v " + shell[0] + " >/dev/null").c_str()) == 0; }

TEST_F(ToolHold, AScriptHoldsALockUnderEveryShell) {
  for (const Words& shell : std::vector<Words>{{"sh"}, {"dash"}, {"bash"}, {"busybox", "ash"}}) {
    if (!is_here(shell)) continue;
    const std::string name = shell.back();
    const std::string script = "h=$(" + hold("--for $$ " + name) + ") || exit; echo $h; read go <" + site_.dir +
                               "/go; kill $h; while kill -0 $h 2>/dev/null; do sleep 0.05; done; echo ended";
    const std::string go = site_.dir + "/go";
    ASSERT_EQ(mkfifo(go.c_str(), 0600), 0);
    Program running(shell + Words{"-c", script}, site_.dir);
    ASSERT_TRUE(eventually([&] { return running.out().find('\n') != std::string::npos; })) << name << running.err();
    EXPECT_GE(site_.masters.holders(name), 2u) << "it returns when the lock is held";
    std::ofstream(go) << "go\n";
    EXPECT_EQ(running.exit_status(), 0) << running.err();
    EXPECT_NE(running.out().find("ended\n"), std::string::npos);
    EXPECT_TRUE(is_free(name)) << name;
    std::filesystem::remove(go);
  }
}

TEST_F(ToolHold, EndsWithItsProcess) {
  Program script({"sh", "-c", "h=$(" + hold("--for $$ bus") + ") || exit; echo $h; exec sleep 100"}, site_.dir);
  ASSERT_TRUE(eventually([&] { return script.out().find('\n') != std::string::npos; })) << script.err();
  EXPECT_FALSE(is_free("bus"));
  script.signal(SIGKILL);
  script.exit_status();
  EXPECT_TRUE(eventually([&] { return is_free("bus"); }));
}

TEST_F(ToolHold, SaysWhyThereIsNoLock) {
  site_.hold_by_other("bus");
  Program script({"sh", "-c", "h=$(" + hold("-n --for $$ bus") + ") || exit; echo never"}, site_.dir);
  EXPECT_EQ(script.exit_status(), 75);
  EXPECT_EQ(script.out(), "");
  EXPECT_EQ(script.err().find("redlock: bus: not acquired: held by a foreign value"), 0u) << script.err();
  EXPECT_EQ(site_.run({"hold", "-n", "-E", "3", "bus"}).status, 3);
  EXPECT_EQ(site_.run({"hold", "--for", "2147483647", "bus"}).status, 64);
  EXPECT_EQ(site_.run({"hold", "--ready-fd", "77", "bus"}).status, 64);
  EXPECT_EQ(site_.run({"hold"}).status, 64);
}

// The one in the background does not outlive the caller that waits for it.
TEST_F(ToolHold, AWaitThatIsGivenUpLeavesNobody) {
  site_.hold_by_other("bus");
  Program script({"sleep", "100"}, site_.dir);
  Program waiter(site_.words({"hold", "--for", std::to_string(script.pid()), "bus"}), site_.dir);
  ASSERT_TRUE(eventually([&] { return children_of(waiter.pid()).size() == 1; }));
  const pid_t background = children_of(waiter.pid())[0];
  waiter.signal(SIGINT);
  EXPECT_EQ(waiter.exit_status(), 128 + SIGINT);
  EXPECT_TRUE(eventually([&] { return ::kill(background, 0) != 0; }));
}

TEST_F(ToolHold, ALostLockEndsTheProcessInTime) {
  for (const bool is_deaf : {false, true}) {
    const Board board(site_.dir + "/board");
    Words words = {REDLOCK_WITNESS, board.file(), "1"};
    if (is_deaf) words.push_back("deaf");
    Program witness(words, site_.dir);
    ASSERT_TRUE(board.acts());
    const Ended held = site_.run({"hold", "--for", std::to_string(witness.pid()), "bus"});
    ASSERT_EQ(held.status, 0) << held.err;
    for (size_t m = 0; m < 2; ++m) site_.masters[m].freeze();
    const int64_t end = boot_ns() + (ToolSite::ttl_ms - ToolSite::drift_ms) * ns_per_ms;
    EXPECT_EQ(witness.exit_status(), 128 + (is_deaf ? SIGKILL : SIGTERM));
    std::cout << "last act " << (end - board->last_act_ns) / ns_per_ms << " ms before the end of the validity\n";
    EXPECT_LT(board->last_act_ns, end);
    for (size_t m = 0; m < 2; ++m) site_.masters[m].thaw();
    EXPECT_TRUE(eventually([&] { return is_free("bus"); }));
  }
}

TEST_F(ToolHold, TellsAProgramByADescriptor) {
  site_.hold_by_other("bus");
  const std::string ready = site_.dir + "/ready";
  Program program({"sh", "-c", "exec " + hold("--ready-fd 5 bus") + " 5>" + ready}, site_.dir);
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(ready); }));
  EXPECT_EQ(text_of_file(ready), "");
  site_.let_go("bus");
  EXPECT_TRUE(eventually([&] { return text_of_file(ready) == "held\n"; }));
  EXPECT_EQ(program.out(), "");
  program.signal(SIGTERM);
  EXPECT_EQ(program.exit_status(), 0);
  EXPECT_TRUE(is_free("bus"));
}

}  // namespace
}  // namespace redlock::test
