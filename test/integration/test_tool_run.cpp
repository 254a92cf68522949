// SPDX-License-Identifier: MIT
//
// `redlock run` with real masters: exit codes, signals, what the command sees, and what is left behind.
#include <gtest/gtest.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <cstddef>
#include <thread>

#include "notify_socket.hpp"
#include "tool_site.hpp"

namespace redlock::test {
namespace {

class ToolRun : public ::testing::Test {
 protected:
  ToolSite site_;
  const std::string res_ = "plant1/rs485-a";

  bool is_held() { return site_.masters.holders(res_) >= 2; }
  bool is_free() { return site_.masters.holders(res_) == 0; }
};

TEST_F(ToolRun, TheExitCodeIsTheCommands) {
  const struct {
    Words command;
    int status;
    std::string err;
  } ends[] = {
      {{"true"}, 0, ""},
      {{"sh", "-c", "exit 1"}, 1, ""},
      {{"sh", "-c", "exit 79"}, 79, ""},
      {{"sh", "-c", "kill -9 $$"}, 137, ""},
      {{"/no/such/program"}, 127, "redlock: /no/such/program: No such file or directory\n"},
      {{"/etc"}, 126, "redlock: /etc: Permission denied\n"},
  };
  for (const auto& one : ends) {
    const Ended ended = site_.run(Words{"run", res_, "--"} + one.command);
    EXPECT_EQ(ended.status, one.status) << one.command.back();
    EXPECT_EQ(ended.err, one.err);
    EXPECT_TRUE(is_free()) << one.command.back();
  }
}

TEST_F(ToolRun, ACommandSeesItsLock) {
  const Ended told = site_.run({"run", "--fencing", "b", "a", "--", "sh", "-c",
                                "echo $REDLOCK_HELD, $REDLOCK_RESOURCE, $REDLOCK_TTL_MS, $REDLOCK_FENCING_TOKEN"});
  EXPECT_EQ(told.out.find("1, b a, 2400, "), 0u) << told.out;
  EXPECT_GT(std::stoll(told.out.substr(14)), 0);
  const Ended without = site_.run({"run", res_, "--", "sh", "-c", "echo \"<$REDLOCK_FENCING_TOKEN>\""},
                                  {{"REDLOCK_FENCING_TOKEN=7"}, false});
  EXPECT_EQ(without.out, "<>\n");
}

TEST_F(ToolRun, ACommandGetsNoDescriptorOfOurs) {
  const Words list = {"sh", "-c", "for d in /proc/$$/fd/*; do echo ${d##*/}; done"};
  Program alone(list, site_.dir);
  EXPECT_EQ(alone.exit_status(), 0);
  EXPECT_EQ(site_.run(Words{"run", "-v", res_, "--"} + list).out, alone.out());
  const Ended closed = site_.run({"run", res_, "--", "sh", "-c", "test -e /proc/$$/fd/0 && echo open; exit 4"},
                                 {{}, true});
  EXPECT_EQ(closed.status, 4);
  EXPECT_EQ(closed.out, "") << "stdin was closed, and stays closed";
}

TEST_F(ToolRun, HeldByOthersIs75AndSaysByWhom) {
  Program holder(site_.words({"run", res_, "--", "sleep", "100"}), site_.dir);
  ASSERT_TRUE(eventually([&] { return is_held(); }));
  const Ended once = site_.run({"run", "-n", res_, "--", "true"});
  EXPECT_EQ(once.status, 75);
  EXPECT_NE(once.err.find("redlock: " + res_ + ": not acquired: held by gw-1"), std::string::npos) << once.err;
  EXPECT_NE(once.err.find("; the name is this gateway's own: another run has it, or was killed"), std::string::npos);
  EXPECT_EQ(site_.run({"run", "-n", "-E", "0", res_, "--", "false"}).status, 0);
  EXPECT_EQ(site_.run({"run", "-w", "0.3", res_, "--", "true"}).status, 75);
  holder.signal(SIGTERM);
  EXPECT_EQ(holder.exit_status(), 128 + SIGTERM);
  EXPECT_TRUE(is_free());
}

// From here on fcntl(F_SETSIG) is refused to this thread, and to what it starts.
void refuse_signals_of_files() {
  constexpr uint32_t number_at = offsetof(seccomp_data, nr), command_at = offsetof(seccomp_data, args[1]);
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number_at),        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, command_at),       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETSIG, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program = {sizeof filter / sizeof filter[0], filter};
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0), 0);
}

// Whoever holds the lock: 75 would come from the masters.
TEST_F(ToolRun, WhereTheKernelWouldNotEndTheCommandItIs71BeforeTheLock) {
  site_.hold_by_other(res_);
  std::thread([this] {
    refuse_signals_of_files();
    const Ended ended = site_.run({"run", "-n", res_, "--", "true"});
    EXPECT_EQ(ended.status, 71) << ended.err;
    EXPECT_EQ(ended.err, "redlock: the kernel does not end a command with its parent: Operation not permitted\n");
  }).join();
}

// One cause on this side looks alike on all masters.
TEST_F(ToolRun, EachMasterThatStandsInTheWayIsNamed) {
  const auto address = [&](size_t m) { return site_.masters.urls()[m].substr(strlen("redis://")); };
  for (size_t m = 0; m < 2; ++m) site_.masters[m].kill_hard();
  Ended ended = site_.run({"run", "-n", res_, "--", "true"});
  EXPECT_EQ(ended.status, 69) << ended.err;
  EXPECT_NE(ended.err.find("; " + address(1) + ": the same; redlock doctor says more\n"), std::string::npos)
      << ended.err;
  site_.masters[2].command({"CONFIG", "SET", "requirepass", "secret"});
  ended = site_.run({"run", "-n", res_, "--", "true"});
  EXPECT_EQ(ended.status, 77) << ended.err;
  EXPECT_NE(ended.err.find("; " + address(0) + ", " + address(1) + ": the connection was refused"), std::string::npos)
      << ended.err;
}

TEST_F(ToolRun, ASignalEndsAWait) {
  site_.hold_by_other(res_);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    const std::string trace = site_.dir + "/started";
    Program waiter(site_.words({"run", res_, "--", "touch", trace}), site_.dir);
    ASSERT_TRUE(eventually([&] { return !children_of(waiter.pid()).empty(); })) << "the warden";
    waiter.signal(number);
    EXPECT_EQ(waiter.exit_status(), 128 + number);
    EXPECT_EQ(waiter.err().find("redlock: " + res_ + ": the wait was ended by signal"), 0u) << waiter.err();
    EXPECT_FALSE(std::filesystem::exists(trace));
  }
  EXPECT_FALSE(site_.masters[2].exists(res_));
}

TEST_F(ToolRun, AWaitEndsWhereTheWardenIsStopped) {
  site_.hold_by_other(res_);
  Program waiter(site_.words({"run", "-w", "0.5", res_, "--", "true"}), site_.dir);
  const auto clients = [&] { return site_.masters[0].command({"CLIENT", "LIST"}); };
  ASSERT_TRUE(eventually([&] { return clients().find("flags=t") != std::string::npos; }))
      << "the warden is there before there is a client";
  ::kill(children_of(waiter.pid()).at(0), SIGSTOP);
  EXPECT_EQ(waiter.exit_status(), 75) << waiter.err();
}

TEST_F(ToolRun, SignalsReachTheCommand) {
  for (const int number : {SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) {
    Program run(site_.words({"run", res_, "--", "sh", "-c", "sleep 100 & echo ready; wait; sleep 100"}), site_.dir);
    ASSERT_TRUE(eventually([&] { return run.out() == "ready\n"; }));
    run.signal(number);
    EXPECT_EQ(run.exit_status(), 128 + number);
    EXPECT_TRUE(is_free());
  }
}

TEST_F(ToolRun, WhatACommandLeavesBehindEndsBeforeTheLockIsFree) {
  for (const Words& how : std::vector<Words>{{"orphan"}, {"orphan", "deaf"}}) {
    const Board board(site_.dir + "/board");
    Program run(site_.witness(board, res_, how), site_.dir);
    EXPECT_EQ(run.exit_status(), 0);
    EXPECT_EQ(run.err(), "redlock: " + res_ + ": what the command has left behind is ended\n");
    EXPECT_TRUE(board.is_abandoned());
    EXPECT_TRUE(is_free());
  }
}

// A shell's `exec > >(logger); exec redlock run` leaves redlock a child that is not the command's.
TEST_F(ToolRun, WhatWasThereBeforeIsLeftAlone) {
  const std::string log = site_.dir + "/log";
  const std::string run = std::string(REDLOCK_TOOL) + " run -C " + site_.config + " " + res_ + " -- ";
  for (const std::string command : {"seq 1 20", "sh -c \"seq 1 20; kill -9 \\$PPID\""}) {
    Program script({"bash", "-c", "exec > >(sleep 0.2; while read line; do echo $line; done >" + log +
                                      "; echo end >>" + log + "); exec " + run + command}, site_.dir);
    EXPECT_EQ(script.exit_status(), command[1] == 'e' ? 0 : 71) << script.err();
    EXPECT_TRUE(is_free());
    std::string all;
    for (int i = 1; i <= 20; ++i) all += std::to_string(i) + "\n";
    EXPECT_TRUE(eventually([&] { return text_of_file(log) == all + "end\n"; })) << text_of_file(log);
    std::filesystem::remove(log);
  }
}

// Not when redlock has let the lock go, which a descendant that is deaf delays.
TEST_F(ToolRun, AReaderSeesTheEndWhenTheCommandEnds) {
  const Board board(site_.dir + "/board");
  const std::string ended = site_.dir + "/ended";
  const std::string run = std::string(REDLOCK_TOOL) + " run -C " + site_.config + " " + res_ + " -- sh -c 'setsid " +
                          REDLOCK_WITNESS + " " + board.file() + " 1 deaf >&- & sleep 0.2; echo said'";
  Program script({"sh", "-c", run + " | { cat; : >" + ended + "; }"}, site_.dir);
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(ended); }));
  EXPECT_EQ(script.out(), "said\n");
  EXPECT_TRUE(is_held());
  script.exit_status();
}

// `pkill -9 redlock` does not end the warden, which ends everything.
TEST_F(ToolRun, TheWardenHasANameOfItsOwn) {
  Program run(site_.words({"run", res_, "--", "sh", "-c", "echo held; exec sleep 100"}), site_.dir);
  ASSERT_TRUE(eventually([&] { return run.out() == "held\n"; })) << run.err();
  const std::vector<pid_t> warden = children_of(run.pid());
  ASSERT_EQ(warden.size(), 1u);
  EXPECT_EQ(text_of_file("/proc/" + std::to_string(warden[0]) + "/comm"), "lock-warden\n");
}

TEST_F(ToolRun, TellsSystemd) {
  NotifySocket systemd(site_.dir + "/notify");
  site_.hold_by_other(res_);
  Program run(site_.words({"run", "--sd-notify", res_, "--", "sh", "-c", "echo \"<$NOTIFY_SOCKET>\""}), site_.dir,
              {{"NOTIFY_SOCKET=" + systemd.path()}, false});
  const std::string waiting = systemd.heard();
  EXPECT_EQ(waiting.find("STATUS=waiting for " + res_), 0u) << waiting;
  EXPECT_NE(waiting.find("\nEXTEND_TIMEOUT_USEC="), std::string::npos) << waiting;
  site_.let_go(res_);
  EXPECT_EQ(systemd.heard(), "READY=1\nSTATUS=holding " + res_);
  EXPECT_EQ(systemd.heard(), "STOPPING=1");
  EXPECT_EQ(run.exit_status(), 0);
  EXPECT_EQ(run.out(), "<>\n");
}

TEST_F(ToolRun, MaxHoldEndsTheCommand) {
  for (const char* longest : {"2.4", "3.9"}) {
    Program run(site_.words({"run", "--max-hold", longest, res_, "--", "sleep", "100"}), site_.dir);
    EXPECT_EQ(run.exit_status(), 79);
    EXPECT_NE(run.err().find("the command was ended: "), std::string::npos) << run.err();
    EXPECT_NE(run.err().find("max"), std::string::npos) << run.err();
  }
}

// Two masters stand still, and the renewal may wait for them for longer than the command may run.
TEST(ToolRunLost, NamesItsCauseBeforeTheLibraryHasOne) {
  for (const Words& how : {Words{"-t", "2400"}, Words{"-t", "2400", "--max-hold", "60"}}) {
    ToolSite site(true, 30'000, 2'000);
    const Words command = {"bus", "--", "sh", "-c", "echo held; exec sleep 100"};
    Program run(site.words(Words{"run"} + how + command), site.dir);
    ASSERT_TRUE(eventually([&] { return run.out() == "held\n"; })) << run.err();
    for (size_t m = 0; m < 2; ++m) site.masters[m].freeze();
    EXPECT_EQ(run.exit_status(), 79);
    EXPECT_NE(run.err().find("was ended: no renewal was answered in time\n"), std::string::npos) << run.err();
    for (size_t m = 0; m < 2; ++m) site.masters[m].thaw();
  }
}

// Each of many runs adds one to a number in a file, and fails if another one is at it. The times are such that a slow
// machine loses no lock.
TEST(ToolRunMany, ManyRunsCountExactly) {
  ToolSite site(true, 30'000, 5'000);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  const bool are_many = false;  // what a sanitizer costs at the start of a program, 200 times at once, tells nothing
#else
  const bool are_many = std::getenv("REDLOCK_MANY") != nullptr;
#endif
  const int runs = are_many ? 200 : 40;
  const std::string file = site.dir + "/counter";
  std::ofstream(file) << 0;
  std::vector<std::unique_ptr<Program>> all;
  for (int i = 0; i < runs; ++i) {
    const std::string add = "mkdir " + file + ".busy || exit; n=$(cat " + file + "); echo $((n + 1)) >" + file +
                            "; rmdir " + file + ".busy";
    all.push_back(std::make_unique<Program>(site.words({"run", "bus", "--", "sh", "-c", add}), site.dir));
  }
  for (auto& one : all) EXPECT_EQ(one->exit_status(), 0) << one->err();
  EXPECT_EQ(std::stoi(text_of_file(file)), runs);
  EXPECT_EQ(site.masters.holders("bus"), 0u);
}

}  // namespace
}  // namespace redlock::test
