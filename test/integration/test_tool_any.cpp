// SPDX-License-Identifier: MIT
//
// `redlock run` with --any, one of several equal devices, and with --at-least, a lock that outlives its command.
#include <gtest/gtest.h>

#include "notify_socket.hpp"
#include "tool_site.hpp"

namespace redlock::test {
namespace {

class ToolAny : public ::testing::Test {
 protected:
  ToolSite site_;
  const Words say_which_ = {"--", "sh", "-c", "echo $REDLOCK_RESOURCE"};

  bool is_held(const std::string& name) { return site_.masters.holders(name) >= 2; }
  Program& start(const Words& arguments) {
    programs_.push_back(std::make_unique<Program>(site_.words(arguments), site_.dir));
    return *programs_.back();
  }

 private:
  std::vector<std::unique_ptr<Program>> programs_;
};

TEST_F(ToolAny, RunsUnderTheOneThatIsFreeAndSaysWhich) {
  for (const char* name : {"a", "b"}) site_.hold_by_other(name);
  for (int i = 0; i < 6; ++i) {  // from each start
    const Ended ended = site_.run(Words{"run", "-v", "-n", "--any", "a", "b", "c"} + say_which_);
    EXPECT_EQ(ended.status, 0);
    EXPECT_EQ(ended.out, "c\n");
    EXPECT_NE(ended.err.find("redlock: c is held\n"), std::string::npos) << ended.err;
  }
  for (const char* name : {"a", "b"}) EXPECT_EQ(site_.masters[0].command({"GET", name}), "somebody");
  EXPECT_EQ(site_.masters.holders("c"), 0u);
  NotifySocket systemd(site_.dir + "/notify");
  Program told(site_.words(Words{"run", "--sd-notify", "--any", "a", "c"} + say_which_), site_.dir,
               {{"NOTIFY_SOCKET=" + systemd.path()}, false});
  EXPECT_EQ(systemd.heard(), "READY=1\nSTATUS=holding c");
  EXPECT_EQ(told.exit_status(), 0);
  EXPECT_EQ(site_.run(Words{"run", "--urgent", "--any", "a", "c"} + say_which_).out, "c\n");
  const Ended left = site_.run({"run", "--any", "a", "c", "--", "sh", "-c", "sleep 100 &"});
  EXPECT_EQ(left.err, "redlock: c: what the command has left behind is ended\n");
}

// The file was made for one lock.
TEST_F(ToolAny, EachNameHasAPlace) {
  const std::string text = text_of_file(site_.config);
  std::ofstream(site_.config) << text.substr(0, text.size() - 1) << R"(, "limits": {"locks": 1}})";
  for (const char* name : {"a", "b"}) site_.hold_by_other(name);
  for (int i = 0; i < 6; ++i) {  // from each start
    EXPECT_EQ(site_.run(Words{"run", "-n", "--any", "a", "b", "c"} + say_which_).out, "c\n");
    EXPECT_EQ(site_.run(Words{"run", "--any", "a", "b", "c"} + say_which_).out, "c\n");
  }
}

// Whether its turn comes or not.
TEST_F(ToolAny, AReservedNameIsRefusedFirst) {
  for (int i = 0; i < 6; ++i) {  // from each start
    if (i == 3) site_.hold_by_other("a");
    const Ended ended = site_.run(Words{"run", "-w", "2", "--any", "a", "redlock::meta"} + say_which_);
    EXPECT_EQ(ended.status, 64) << ended.out;
    EXPECT_EQ(ended.err, "redlock: redlock::meta: makes a key of the library's own: redlock:{key_prefix}:...\n");
  }
}

TEST_F(ToolAny, WhereOthersHoldAllItIs75) {
  for (const char* name : {"a", "b"}) site_.hold_by_other(name);
  for (const Words& how : {Words{"-n"}, Words{"-w", "0.3"}}) {
    const Ended ended = site_.run(Words{"run"} + how + Words{"--any", "a", "b"} + say_which_);
    EXPECT_EQ(ended.status, 75);
    EXPECT_EQ(ended.err.find("redlock: a b: not acquired: held by "), 0u) << ended.err;
    EXPECT_EQ(ended.out, "");
  }
  Words many = {"run", "--any"};
  for (int i = 0; i < 16; ++i) many.push_back("name " + std::to_string(i));
  EXPECT_EQ(site_.run(many + say_which_).status, 0);
  EXPECT_EQ(site_.run(many + Words{"one more"} + say_which_).status, 64);
}

TEST_F(ToolAny, TheExamplePrintersLeavesOutWhatIsBroken) {
  Program script({REDLOCK_SOURCE_DIR "/examples/printers.sh", REDLOCK_TOOL}, site_.dir,
                 {{"REDLOCK_CONFIG=" + site_.config}, false});
  EXPECT_EQ(script.exit_status(), 0) << script.err();
  const std::string out = script.out();
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 12) << out;
  EXPECT_NE(out.find("printer-1\n"), std::string::npos) << out;
  const size_t broken = out.find("gateway 4");
  ASSERT_NE(broken, std::string::npos);
  EXPECT_EQ(out.find("printer-1", broken), std::string::npos) << out;
}

// ---- at least -------------------------------------------------------------------------------------------------------

TEST_F(ToolAny, TheLockOutlivesItsCommand) {
  const int64_t begin = boot_ns();
  Program& winner = start({"run", "--at-least", "3", "bus", "--", "sh", "-c", "echo done; exit 3"});
  ASSERT_TRUE(eventually([&] { return winner.out() == "done\n" && children_of(winner.pid()).empty(); }));
  EXPECT_TRUE(is_held("bus"));
  EXPECT_EQ(winner.exit_status(), 3) << "the command's";
  EXPECT_GE(boot_ns() - begin, 3'000 * ns_per_ms);  // beyond the ttl: the lock was renewed
  EXPECT_EQ(winner.err(), "");
  EXPECT_EQ(site_.masters.holders("bus"), 0u);
  EXPECT_EQ(site_.run({"run", "--at-least", "0.1", "bus", "--", "sh", "-c", "kill -9 $$"}).status, 137);
  const Ended both = site_.run({"run", "--at-least", "3", "--max-hold", "3", "bus", "--", "true"});
  EXPECT_EQ(both.status, 0);
  EXPECT_EQ(both.err, "") << "the lock has ended by itself";
}

TEST_F(ToolAny, ASignalLetsGoOfWhatIsKept) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    Program& winner = start({"run", "--at-least", "1000", "bus", "--", "true"});
    ASSERT_TRUE(eventually([&] { return is_held("bus") && children_of(winner.pid()).empty(); }));
    winner.signal(number);
    EXPECT_EQ(winner.exit_status(), 0) << "the command's";
    EXPECT_EQ(site_.masters.holders("bus"), 0u);
  }
  const int64_t begin = boot_ns();
  Program& stopped = start({"run", "--at-least", "30", "bus", "--", "sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_TRUE(eventually([&] { return stopped.out() == "ready\n"; }));
  stopped.signal(SIGTERM);
  EXPECT_EQ(stopped.exit_status(), 128 + SIGTERM);
  EXPECT_LT(boot_ns() - begin, 30'000 * ns_per_ms) << "nothing is kept for a command that was stopped";
}

TEST_F(ToolAny, ALossBehindTheCommandIsToldAndNoError) {
  Program& winner = start({"run", "-q", "--at-least", "1000", "bus", "--", "true"});
  ASSERT_TRUE(eventually([&] { return is_held("bus") && children_of(winner.pid()).empty(); }));
  site_.let_go("bus");
  EXPECT_EQ(winner.exit_status(), 0);
  EXPECT_EQ(winner.err().find("redlock: bus: "), 0u) << winner.err();
}

}  // namespace
}  // namespace redlock::test
