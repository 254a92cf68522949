// SPDX-License-Identifier: MIT
//
// The operator's statements through `redlock`: commission, adopt and reconfigure; interrupted, and repeated.
#include <gtest/gtest.h>
#include <sys/ioctl.h>

#include "tool_masters.hpp"

namespace redlock::test {
namespace {

// Does every master of this file vote for its clients?
testing::AssertionResult all_vote(ToolMasters& site, const std::string& config, unsigned n) {
  const std::string all = std::to_string(n) + " of " + std::to_string(n) + " masters vote";
  const Ended ended = site.run({"status"}, config);
  if (has(ended.out, all)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << ended.out << ended.err;
}

void commission(ToolMasters& site, const std::string& config) {
  const Ended ended = site.run({"commission", "-y"}, config);
  ASSERT_EQ(ended.status, 0) << ended.out << ended.err;
}

// redlock on a terminal, whose operator answers `answer` when he is asked.
struct Typed {
  Typed(const Words& words, const std::string& answer) {
    const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
    EXPECT_EQ(::grantpt(terminal) | ::unlockpt(terminal), 0);
    const std::string name = ::ptsname(terminal);
    const pid_t pid = ::fork();
    if (pid == 0) {
      const int end = ::open(name.c_str(), O_RDWR | O_NOCTTY);
      for (int fd : {0, 1, 2}) ::dup2(end, fd);
      std::vector<char*> argv;
      Words copy = words;
      for (std::string& word : copy) argv.push_back(word.data());
      argv.push_back(nullptr);
      ::execv(argv[0], argv.data());
      ::_exit(99);
    }
    bool answered = false;
    char piece[256];
    for (ssize_t n; (n = ::read(terminal, piece, sizeof piece)) > 0;) {  // an error when the program has ended
      text.append(piece, static_cast<size_t>(n));
      if (answered || !has(text, "Type yes to go on: ")) continue;
      EXPECT_EQ(::write(terminal, answer.data(), answer.size()), static_cast<ssize_t>(answer.size()));
      answered = true;
    }
    int ended = 0;
    ::waitpid(pid, &ended, 0);
    status = WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
    ::close(terminal);
  }
  std::string text;
  int status = -1;
};

TEST(ToolCommission, AsksOnATerminal) {
  ToolMasters site(1);
  const std::string config = site.file({0});
  const Typed no(site.words({"commission"}, config), "no\n");
  EXPECT_EQ(no.status, 64) << no.text;
  EXPECT_TRUE(has(no.text, "nothing was done")) << no.text;
  EXPECT_FALSE(site[0].exists("redlock::meta"));
  const Typed yes(site.words({"commission"}, config), "yes\n");
  EXPECT_EQ(yes.status, 0) << yes.text;
  EXPECT_TRUE(has(yes.text, "m0: votes")) << yes.text;
}

TEST(ToolAdopt, ShowsItsProgressOnATerminal) {
  ToolMasters site(2);
  commission(site, site.file({1}));
  const Typed yes(site.words({"adopt"}, site.file({0, 1})), "yes\n");
  EXPECT_EQ(yes.status, 0) << yes.text;
  EXPECT_TRUE(has(yes.text, "waits until the other clients have noticed, 2 s to go\x1b[K")) << yes.text;
  EXPECT_TRUE(has(yes.text, "1 adopted")) << yes.text;
}

TEST(ToolCommission, NeedsTheOperatorsWord) {
  ToolMasters site(3);
  const std::string config = site.file({0, 1, 2}, R"(, "key_prefix": "plant1/")");
  const Ended asked = site.run({"commission"}, config);
  EXPECT_EQ(asked.status, 64);
  EXPECT_TRUE(has(asked.err, "no lock of the key_prefix \"plant1/\" is held, and that no client is")) << asked.err;
  EXPECT_TRUE(has(asked.err, "say --yes")) << asked.err;
  EXPECT_FALSE(site[0].exists("redlock:plant1/:meta"));

  const Ended one = site.run({"commission", "--yes", "--master", "m1"}, config);
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_EQ(one.out, "m1: votes\n");
  EXPECT_TRUE(has(site.run({"status"}, config).out, "1 of 3 masters vote"));
  EXPECT_EQ(site.run({"commission", "--yes", "--master", "m7"}, config).status, 64);

  site[2].kill_hard();
  const Ended two = site.run({"commission", "--yes"}, config);
  EXPECT_EQ(two.status, 69);
  EXPECT_TRUE(has(two.out, "m0: votes\nm1: votes\nm2: the connection was refused")) << two.out;
  EXPECT_TRUE(has(two.err, "repeat it when nothing is held")) << two.err;
  site[2].restart();
  commission(site, config);
  EXPECT_TRUE(all_vote(site, config, 3));
  EXPECT_EQ(site.run({"commission", "--yes"}, site.file({0}, R"(, "guard": "off")")).status, 78);
}

TEST(ToolAdopt, InterruptedAndRepeated) {
  ToolMasters site(3);
  const std::string theirs = site.file({2}), ours = site.file({0, 1, 2});
  commission(site, theirs);
  const Ended asked = site.run({"adopt"}, ours);
  EXPECT_EQ(asked.status, 64);
  EXPECT_TRUE(has(asked.out, "m2: belongs to clients of 1 master(s), max_ttl_ms 1000")) << asked.out;
  EXPECT_TRUE(has(asked.err, "say --yes")) << asked.err;
  EXPECT_FALSE(site.marked(2));
  {
    Program program(site.words({"adopt", "--yes"}, ours), site.dir);
    EXPECT_TRUE(eventually([&] { return site.marked(2); }));
    program.signal(SIGINT);
    EXPECT_EQ(program.exit_status(), 128 + SIGINT);
  }
  EXPECT_TRUE(site.marked(2));
  const Ended again = site.run({"adopt", "--yes"}, ours);
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_TRUE(has(again.out, "1 adopted\n")) << again.out;
  EXPECT_TRUE(has(again.err, "waits until the other clients have noticed")) << again.err;
  const Ended nothing = site.run({"adopt"}, ours);
  EXPECT_EQ(nothing.status, 0) << "nothing is to be done, so nothing is asked: " << nothing.err;
  EXPECT_TRUE(has(nothing.out, "0 adopted\n"));
  commission(site, ours);
  EXPECT_TRUE(all_vote(site, ours, 3));
}

TEST(ToolAdopt, TheRestMayBeGone) {
  ToolMasters site(3);
  commission(site, site.file({0, 1, 2}));
  const std::string ours = site.file({2});
  const Ended refused = site.run({"adopt", "--yes"}, ours);
  EXPECT_EQ(refused.status, 69);
  EXPECT_TRUE(has(refused.err, "1 of the other configuration's 3 masters are here, and 2 are needed")) << refused.err;
  EXPECT_FALSE(site.marked(2));
  EXPECT_TRUE(has(site.run({"adopt", "--rest-is-gone"}, ours).err, "gone for good"));
  EXPECT_EQ(site.run({"adopt", "--rest-is-gone", "--yes"}, ours).status, 0);
}

TEST(ToolReconfigure, PlannedInterruptedAndRepeated) {
  ToolMasters site(4);
  const std::string before = site.file({0, 1, 2}), after = site.file({1, 2, 3});
  commission(site, before);
  const auto reconfigure = [&](const Words& more) {
    return run_redlock(Words{"reconfigure"} + more + Words{before, after}, site.dir);
  };
  const Ended plan = reconfigure({"--dry-run"});
  EXPECT_EQ(plan.status, 0) << plan.err;
  EXPECT_TRUE(has(plan.out, "m0: leaves\nm1: stays\nm2: stays\nm3: joins\n")) << plan.out;
  EXPECT_TRUE(has(plan.out, "new m3: has no record yet\nnothing was written\n")) << plan.out;
  EXPECT_TRUE(has(plan.out, "new m1: has the record of the other file\n")) << plan.out;
  EXPECT_TRUE(has(reconfigure({}).err, "say --yes"));
  EXPECT_FALSE(site.marked(0) || site.marked(3));
  {
    Program program(redlock_words({"reconfigure", "--yes", before, after}), site.dir);
    EXPECT_TRUE(eventually([&] { return site.marked(0) && site.marked(1); }));
    program.signal(SIGTERM);
    EXPECT_EQ(program.exit_status(), 128 + SIGTERM);
  }
  EXPECT_TRUE(has(reconfigure({"--dry-run"}).out, "bears the mark of a change"));
  const Ended again = reconfigure({"--yes"});
  EXPECT_EQ(again.status, 0) << again.out << again.err;
  EXPECT_TRUE(has(again.err, "marks, waits, and enters the new masters")) << again.err;
  EXPECT_TRUE(has(again.out, "new m3: done\n")) << again.out;
  EXPECT_FALSE(site.marked(1) || site.marked(3));
  commission(site, after);
  EXPECT_TRUE(all_vote(site, after, 3));
}

TEST(ToolReconfigure, WhatCannotBeDone) {
  ToolMasters site(4);
  const std::string before = site.file({0, 1, 2}), after = site.file({1, 2, 3});
  const auto run = [&](const Words& words) { return run_redlock(Words{"reconfigure", "--yes"} + words, site.dir); };
  EXPECT_EQ(run({before}).status, 64);
  const Ended same = run({before, site.file({2, 1, 0})});
  EXPECT_EQ(same.status, 78);
  EXPECT_TRUE(has(same.err, "names and timing.max_ttl_ms are those of the old configuration")) << same.err;
  commission(site, site.file({3}));
  const Ended third = run({"--dry-run", before, after});
  EXPECT_EQ(third.status, 78);
  EXPECT_TRUE(has(third.out, "new m3: its record is of a third configuration: v1 n=1 ")) << third.out;
  EXPECT_EQ(run({before, after}).status, 78);
  site[0].kill_hard();
  site[1].kill_hard();
  const Ended few = run({"--dry-run", before, after});
  EXPECT_EQ(few.status, 78) << "78 comes before 69";
  EXPECT_TRUE(has(few.err, "1 master(s) of the old file can be written, and 2 are needed")) << few.err;
  site[3].command({"DEL", "redlock::meta"});
  EXPECT_EQ(run({"--dry-run", before, after}).status, 69);
  const Ended call = run({before, after});
  EXPECT_EQ(call.status, 69);
  EXPECT_TRUE(has(call.err, "nothing was written")) << call.err;
}

}  // namespace
}  // namespace redlock::test
