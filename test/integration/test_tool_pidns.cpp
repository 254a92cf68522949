// SPDX-License-Identifier: MIT
//
// `redlock run --pidns`: all descendants of the command end with the lock, also those in sessions of their own, and
// whatever becomes of the keeper and the warden.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>

#include "support/pauses.hpp"
#include "tool_user.hpp"

namespace redlock::test {
namespace {

// A FIFO that the command's processes have open for writing, and its end for reading: the end of the file is the end of
// the last of them.
class Leash {
 public:
  explicit Leash(const std::string& file) : file_(file) {
    EXPECT_EQ(::mkfifo(file.c_str(), 0600), 0);
    EXPECT_EQ(::chmod(file.c_str(), 0622), 0);
    end_ = ::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  }
  Leash(const Leash&) = delete;
  Leash& operator=(const Leash&) = delete;
  ~Leash() { ::close(end_); }

  std::string take() const { return "exec 9>" + file_ + "; "; }
  bool is_loose(int patience_ms = 20'000) const {
    pollfd wanted = {end_, POLLIN, 0};
    return ::poll(&wanted, 1, patience_ms) == 1 && (wanted.revents & POLLHUP) != 0;
  }

 private:
  std::string file_;
  int end_;
};

// As whoever runs the tests, and as a user without rights, for whom the kernel wants a user namespace, too.
class ToolPidns : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!user_.is_possible) GTEST_SKIP() << "setpriv cannot make another user";
    if (!user_.has_pid_namespaces()) GTEST_SKIP() << "no PID namespaces here";
  }
  Words run(const std::string& script) const {
    return user_.redlock({"run", "--pidns", res_, "--", "sh", "-c", script});
  }
  Program::Setting setting() const { return user_.setting(); }

  ToolSite site_;
  const ToolUser user_{site_, GetParam()};
  const std::string res_ = "plant1/rs485-a";
  const Leash leash_{user_.dir + "/leash"};
  // Starts a process in a session of its own, which does nothing but this when it is told to end, and waits until it is
  // there.
  std::string away(const std::string& on_term) const {
    const std::string sign = user_.dir + "/away";
    return "rm -f " + sign + "; (setsid sh -c 'trap \"" + on_term + "\" TERM; : >" + sign +
           "; while [ -e " + sign + " ]; do sleep 0.1; done' &); until [ -e " + sign + " ]; do sleep 0.02; done; ";
  }
};

TEST_P(ToolPidns, TheCommandIsTheSameButForItsNumber) {
  const Ended ended = user_.ended(run("echo $$ $(id -u) $(id -g) $REDLOCK_HELD; exit 7"));
  EXPECT_EQ(ended.status, 7) << ended.err;
  const std::string id = std::to_string(user_.user);
  EXPECT_EQ(ended.out, "2 " + id + " " + (user_.user == geteuid() ? std::to_string(getegid()) : id) + " 1\n");
  EXPECT_EQ(user_.ended(run("kill -9 $$")).status, 128 + SIGKILL);
  EXPECT_EQ(user_.ended(run("kill -TERM 1; sleep 0.1; exit 8")).status, 8) << "the init obeys the warden alone";
  EXPECT_EQ(user_.ended(user_.redlock({"run", "--pidns", res_, "--", "/no/such/program"})).status, 127);
  EXPECT_EQ(site_.masters.holders(res_), 0u);
}

TEST_P(ToolPidns, SignalsReachTheGroupOfTheCommand) {
  for (const int number : {SIGINT, SIGUSR1, SIGTERM}) {
    Program run(this->run("sleep 100 & echo ready; wait; sleep 100"), site_.dir, setting());
    ASSERT_TRUE(eventually([&] { return run.out() == "ready\n"; })) << run.err();
    run.signal(number);
    EXPECT_EQ(run.exit_status(), 128 + number);
  }
}

TEST_P(ToolPidns, TheInitMayBeStoppedAndCannotBeRead) {
  const Pauses pauses;
  const std::string go = user_.dir + "/go";
  ASSERT_EQ(::mkfifo(go.c_str(), 0600), 0);
  ASSERT_EQ(::chmod(go.c_str(), 0644), 0);
  Program run(this->run(leash_.take() + away("") + "echo ready; read line <" + go + "; exit 6"), site_.dir, setting());
  ASSERT_TRUE(eventually([&] { return run.out() == "ready\n"; })) << run.err();
  const std::vector<pid_t> warden = children_of(run.pid());
  ASSERT_EQ(warden.size(), 1u);
  const std::vector<pid_t> inside = children_of(warden[0]);
  ASSERT_EQ(inside.size(), 2u) << "init and command";
  if (user_.user != 0) {
    EXPECT_FALSE(user_.is_readable(run.pid())) << "keeper";
    EXPECT_FALSE(user_.is_readable(warden[0])) << "warden";
    EXPECT_FALSE(user_.is_readable(inside[0])) << "init";
    EXPECT_TRUE(user_.is_readable(inside[1])) << "command";
  }
  ::kill(inside[0], SIGSTOP);
  std::ofstream(go) << "go\n";
  EXPECT_EQ(run.exit_status(), 6) << run.err();
  EXPECT_TRUE(leash_.is_loose(0));
}

TEST_P(ToolPidns, KeeperAndWardenKilledTogetherLeaveNothingBehind) {
  Program run(this->run(leash_.take() + away("") + "echo ready; sleep 100"), site_.dir, setting());
  ASSERT_TRUE(eventually([&] { return run.out() == "ready\n"; })) << run.err();
  EXPECT_FALSE(leash_.is_loose(0));
  const std::vector<pid_t> warden = children_of(run.pid());
  ASSERT_EQ(warden.size(), 1u);
  ::kill(run.pid(), SIGSTOP);  // it would notice
  ::kill(warden[0], SIGKILL);
  run.signal(SIGKILL);
  EXPECT_TRUE(leash_.is_loose());
}

TEST_P(ToolPidns, WhatTheCommandLeavesBehindIsToldToEndAndThenKilled) {
  for (const std::string on_term : {"echo told; exit", ""}) {
    const LeftBehind left;
    const Ended ended = user_.ended(run(leash_.take() + away(on_term) + "exit 3"));
    EXPECT_EQ(ended.status, 3) << ended.err;
    EXPECT_EQ(ended.out, on_term.empty() ? "" : "told\n");
    EXPECT_TRUE(leash_.is_loose(0));
    EXPECT_EQ(left.count(), 0u);
    EXPECT_EQ(site_.masters.holders(res_), 0u);
  }
}

// The kernel alone ends all of them: none of our programs runs.
TEST_P(ToolPidns, KeeperAndWardenStoppedAreInTime) {
  const Pauses pauses;
  const Board board(user_.dir + "/board");
  ASSERT_EQ(::chmod(board.file().c_str(), 0666), 0);
  Program run(this->run(leash_.take() + "exec " + user_.witness + " " + board.file() + " 1 deaf away"), site_.dir,
              setting());
  ASSERT_TRUE(board.acts()) << run.err();
  const std::vector<pid_t> warden = children_of(run.pid());
  ASSERT_EQ(warden.size(), 1u);
  run.signal(SIGSTOP);
  ::kill(warden[0], SIGSTOP);
  const int64_t end = site_.validity_end_ns(res_);
  EXPECT_TRUE(leash_.is_loose());
  std::cout << "last act " << (end - board->last_act_ns) / ns_per_ms << " ms before the end of the validity\n";
  EXPECT_TRUE(board->last_act_ns < end || pauses.were_too_long());
  run.signal(SIGCONT);
  EXPECT_EQ(run.exit_status(), 79) << run.err();
}

// A rootless container: where the command has another user, the kernel's KILL for a group asks for root of the initial
// user namespace, and does not come. Root maps the users, ours to root. The keeper alone is enough without --pidns.
TEST_P(ToolPidns, RootOfAUserNamespaceEndsACommandOfAnotherUser) {
  if (geteuid() != 0 || user_.user == 0) GTEST_SKIP() << "for root, about another user";
  if (user_.ended(user_.words({"unshare", "-U", "true"})).status != 0) GTEST_SKIP() << "no user namespaces here";
  const Board board(user_.dir + "/board");
  ASSERT_EQ(::chmod(board.file().c_str(), 0666), 0);
  const Pauses pauses;
  const std::string go = user_.dir + "/go";
  const std::string wait = "until [ -e " + go + " ]; do sleep 0.02; done; exec \"$@\"";
  const std::string command = leash_.take() + "exec " + user_.witness + " " + board.file() + " 1 deaf drop";
  for (const bool with_keeper : {false, true}) {
    std::filesystem::remove(go);
    board->owner = board->over = 0;
    Words words = {"unshare", "-U", "sh", "-c", wait, "sh", user_.tool, "run", "-C", user_.config};
    if (!with_keeper) words.push_back("--pidns");
    Program run(user_.words(words + Words{res_, "--", "sh", "-c", command}), site_.dir, setting());
    const std::string process = "/proc/" + std::to_string(run.pid());
    ASSERT_TRUE(eventually([&] {
      return std::filesystem::read_symlink(process + "/ns/user") != std::filesystem::read_symlink("/proc/self/ns/user");
    }));
    for (const char* map : {"/uid_map", "/gid_map"}) std::ofstream(process + map) << "0 65534 1\n1 100001 65535\n";
    std::ofstream(go) << "";
    ASSERT_TRUE(board.acts()) << run.err();
    const std::vector<pid_t> warden = children_of(run.pid());
    ASSERT_EQ(warden.size(), 1u);
    const int64_t end = site_.validity_end_ns(res_);
    if (!with_keeper) run.signal(SIGSTOP);  // it would notice
    ::kill(warden[0], SIGKILL);
    if (!with_keeper) run.signal(SIGKILL);
    EXPECT_TRUE(leash_.is_loose());
    board->over = 1;
    EXPECT_EQ(run.exit_status(), with_keeper ? 71 : 128 + SIGKILL) << run.err();
    EXPECT_TRUE(board->last_act_ns < end || pauses.were_too_long());
  }
}

TEST_P(ToolPidns, AWaitLeavesNoProcess) {
  const LeftBehind left;
  site_.hold_by_other(res_);
  for (unsigned i = 0; i < 20; ++i) {
    EXPECT_EQ(user_.ended(user_.redlock({"run", "--pidns", "-n", res_, "--", "true"})).status, 75);
    ASSERT_EQ(left.count(), 0u) << "an init that the warden did not reap";
  }
}

// The kernel sends HUP to the members of a process group that becomes an orphan while one of them is stopped. The
// caller's group must not become one by our end.
TEST_P(ToolPidns, TheCallersGroupGetsNoSignal) {
  const std::string script = "trap 'echo hup' HUP; sleep 100 & kill -STOP $!; \"$@\"; kill -KILL $!; echo end";
  for (const Words& options : {Words{"run", "--pidns"}, Words{"run"}}) {
    Words in_session = {"setsid", "-w", "sh", "-c", script, "sh"}, words = options;
    words.insert(words.end(), {res_, "--", "true"});
    for (const std::string& word : user_.redlock(words)) in_session.push_back(word);
    Program run(in_session, site_.dir, setting());
    EXPECT_EQ(run.exit_status(), 0) << run.err();
    EXPECT_EQ(run.out(), "end\n") << options.back() << run.err();
  }
}

// The numbers in /proc are not those of the namespace: descendants would not be found there.
TEST_P(ToolPidns, ARunInsideNeedsANamespaceToo) {
  const std::string inside = user_.tool + " run -C " + user_.config;
  const Ended refused = user_.ended(run(inside + " bus -- true"));
  EXPECT_EQ(refused.status, 71);
  EXPECT_EQ(refused.err.find("redlock: /proc is that of another PID namespace"), 0u) << refused.err;
  const Ended taken = user_.ended(run(inside + " --pidns bus -- sh -c 'exit 5'"));
  EXPECT_EQ(taken.status, 5) << taken.err;
}

TEST_P(ToolPidns, WhereNoneIsAllowedItIs71) {
  const std::string none = "echo 0 >/proc/sys/user/max_pid_namespaces && exec \"$@\"";
  const Ended ended = user_.ended(user_.words({"unshare", "-Ur", "sh", "-c", none, "sh", user_.tool, "run", "--pidns",
                                               "-C", user_.config, res_, "--", "true"}));
  if (ended.err.find("redlock: ") == std::string::npos) GTEST_SKIP() << "no user namespaces here: " << ended.err;
  EXPECT_EQ(ended.status, 71) << ended.err;
  EXPECT_EQ(ended.err.find("redlock: --pidns: the system allows this user no PID namespace: "), 0u) << ended.err;
}

INSTANTIATE_TEST_SUITE_P(As, ToolPidns, ::testing::Values(false, true), [](const auto& one) {
  return one.param ? "AnotherUser" : "OurUser";
});

}  // namespace
}  // namespace redlock::test
