// SPDX-License-Identifier: MIT
//
// The exit codes where several causes meet, a system that refuses, and when there are colours.
#include <gtest/gtest.h>

#include "tool_masters.hpp"
#include "tool_terminal.hpp"

namespace redlock::test {
namespace {

// Three masters, admitted. The guard time is longer than the test.
class ToolCodes : public ::testing::Test {
 protected:
  void SetUp() override {
    config_ = site_.file({0, 1, 2}, "", 600'000);
    commission(site_, config_);
  }
  // redlock run, and with -E, which is about 75 alone. Each code comes with a line.
  void expect(int status, int with_e, const std::string& what) {
    SCOPED_TRACE(what);
    const Ended ended = site_.run({"run", "-n", "-t", "3000", "bus", "--", "true"}, config_);
    EXPECT_EQ(ended.status, status) << ended.err;
    EXPECT_EQ(ended.err.find("redlock: "), 0u) << ended.err;
    EXPECT_EQ(site_.run({"run", "-n", "-t", "3000", "-E", "5", "bus", "--", "true"}, config_).status, with_e);
  }

  ToolMasters site_{3};
  std::string config_;
};

TEST_F(ToolCodes, OfSeveralCausesThatWhichTellsMost) {
  for (unsigned i : {0u, 1u}) site_.set(i, "bus", "somebody");
  site_[2].kill_hard();
  expect(75, 5, "held, and one cannot be reached");
  site_[0].command({"CONFIG", "SET", "requirepass", "secret"});
  expect(77, 77, "one refuses the login, one cannot be reached");
  site_[1].command({"HSET", "redlock::meta", "desc", "v1 n=5 q=3 max_ttl_ms=7000 ids=0123456789abcdef"});
  expect(78, 78, "one is of another configuration, one refuses the login, one cannot be reached");
}

TEST_F(ToolCodes, WaitingAloneHelpsOnlyWhereEnoughAreWatched) {
  site_[0].restart();
  site_[1].kill_hard();
  expect(76, 76, "one is watched, one cannot be reached");
  site_[2].kill_hard();
  expect(69, 69, "one is watched, two cannot be reached");
}

TEST_F(ToolCodes, ASystemThatRefusesIs71) {
  // Whoever runs the test may have left descriptors open, which the loader of the program would miss.
  const Words few = {"sh", "-c", "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit -n 5; exec \"$@\"", "sh"};
  Program program(few + site_.words({"run", "-n", "-t", "3000", "bus", "--", "true"}, config_), site_.dir);
  EXPECT_EQ(program.exit_status(), 71) << program.err();
  EXPECT_EQ(program.err().find("redlock: "), 0u) << program.err();
}

// A user who may lock other names. -n, a bounded -w and a wait without end say the same, and at once.
TEST_F(ToolCodes, AKeyThatIsDeniedIs77AndIsToldAtOnce) {
  const auto keys = [this](unsigned i, const Words& patterns) {
    site_[i].command(Words{"ACL", "SETUSER", "default", "resetkeys", "~redlock:*"} + patterns);
  };
  keys(0, {"~tap"});
  site_[2].kill_hard();
  EXPECT_EQ(site_.run({"run", "-n", "-t", "3000", "bus", "--", "true"}, config_).status, 77);
  keys(1, {"~tap"});
  for (const Words& how : {Words{"-n"}, Words{"-w", "60"}}) {
    const Ended ended = site_.run(Words{"run"} + how + Words{"-t", "3000", "bus", "--", "true"}, config_);
    EXPECT_EQ(ended.status, 77) << ended.err;
    EXPECT_TRUE(has(ended.err, ": the user lacks a permission: its ACL needs ~bus;")) << ended.err;
  }
  Program forever(site_.words({"run", "-t", "3000", "bus", "--", "true"}, config_), site_.dir);
  EXPECT_TRUE(eventually([&] { return has(forever.err(), "its ACL needs ~bus"); })) << forever.err();
  keys(0, {"~*"});
  keys(1, {"~*"});
  EXPECT_EQ(forever.exit_status(), 0) << forever.err();
}

// A key and a command are two hints, and the line has what is missing.
TEST_F(ToolCodes, ACommandThatIsDeniedIsNotAKey) {
  struct {
    Words less;
    std::string name, hint;
  } const cases[] = {{{"-set"}, "bus", ": its ACL needs +set; "},
                     {{"-set", "resetkeys", "~redlock:*"}, "bus", ": its ACL needs +set ~bus; "},
                     {{"-evalsha", "-eval"}, "bus", ": its ACL needs +eval +evalsha; "},
                     {{"-info"}, "bus", ": its ACL needs +info; "},
                     {{"resetkeys", "~bus"}, "bus", ": its ACL needs ~redlock::meta ~redlock::seen; "},
                     {{"resetkeys", "~redlock:*"}, "bus", ": its ACL needs ~bus; "}};
  for (const auto& c : cases) {
    for (unsigned i : {0u, 1u, 2u}) {
      site_[i].command({"ACL", "SETUSER", "default", "allkeys", "+@all"});
      site_[i].command(Words{"ACL", "SETUSER", "default"} + c.less);
    }
    const Ended ended = site_.run({"run", "-w", "9", "-t", "3000", c.name, "--", "true"}, config_);
    EXPECT_EQ(ended.status, 77) << c.less[0] << ended.err;
    EXPECT_TRUE(has(ended.err, ": the user lacks a permission" + c.hint)) << c.less[0] << ended.err;
  }
  // No permission comes by itself: here also a wait without end is over, and no key is said to stay.
  const Ended ended = site_.run({"run", "-t", "3000", "bus", "--", "true"}, config_);
  EXPECT_EQ(ended.status, 77) << ended.err;
  EXPECT_TRUE(has(ended.err, "redlock: bus: ") && has(ended.err, "its ACL needs ~bus")) << ended.err;
  EXPECT_FALSE(has(ended.err, "may stay locked")) << ended.err;
}

// A key that stays is a line, without -v: refused and not answered are two things.
TEST_F(ToolCodes, AKeyThatStaysIsTold) {
  const auto ports = [this] {
    std::string out;
    for (unsigned i : {0u, 1u, 2u}) out += " " + std::to_string(site_[i].port());
    return out;
  };
  const std::string pause = "for p in" + ports() + "; do redis-cli -p $p client pause 60000 >/dev/null; done";
  const Ended silent = site_.run({"run", "-t", "600000", "tap", "--", "sh", "-c", pause}, config_);
  EXPECT_EQ(silent.status, 0) << silent.err;
  EXPECT_TRUE(has(silent.err, "redlock: tap: may stay locked for up to ")) << silent.err;
  EXPECT_TRUE(has(silent.err, " s: the delete was not answered\n")) << silent.err;
  ToolMasters other(3);
  for (unsigned i : {0u, 1u, 2u}) other[i].command({"ACL", "SETUSER", "default", "-del"});
  const Ended refused = other.run({"run", "-t", "600000", "bus", "--", "true"},
                                  other.file({0, 1, 2}, R"(, "guard": "off")", 600'000));
  EXPECT_EQ(refused.status, 0) << refused.err;
  EXPECT_TRUE(has(refused.err, "redlock: bus: may stay locked for up to ")) << refused.err;
  EXPECT_TRUE(has(refused.err, " s: the delete was refused: the user lacks a permission: its ACL needs +del\n"))
      << refused.err;
  EXPECT_TRUE(other[0].exists("bus") || other[1].exists("bus") || other[2].exists("bus"));
}

// A spare server in the place of two masters: the site's own clients must find it as it was.
TEST_F(ToolCodes, AWrongFileSpoilsNoSpare) {
  ToolMasters spares{2};
  const std::string path = site_.dir + "/wrong.json";
  std::ofstream(path) << R"({"masters": [")" << site_[0].url() << R"(", ")" << site_[1].url() << R"(", ")"
                      << spares[0].url() << R"("], "timing": {"max_ttl_ms": 600000}})";
  ::chmod(path.c_str(), 0600);
  const Ended ended = site_.run({"run", "-n", "bus", "--", "true"}, path);
  EXPECT_EQ(ended.status, 78) << ended.err;
  EXPECT_TRUE(has(ended.err, "clients of another configuration: its masters include m0, ours ")) << ended.err;
  EXPECT_TRUE(has(ended.err, "; make the files alike, unless a change has left this client behind\n")) << ended.err;
  EXPECT_FALSE(has(ended.err, "()")) << ended.err;
  EXPECT_EQ(spares[0].command({"DBSIZE"}), "0");
}

// A quorum of the wrong file's masters may be new, so that no master keeps its clients from the site's locks.
TEST(ToolCodesOfAMixture, AMasterOfAnotherSiteIsNamedBeforeAndBehindTheGuard) {
  ToolMasters site(5);
  commission(site, site.file({0, 1, 2}, "", 3'000));
  const std::string wrong = site.file({3, 0, 4}, "", 3'000);
  const std::string warning = "m0 belongs to clients of another configuration, which may hold this, too: compare ";
  const Ended once = site.run({"run", "-n", "-t", "2400", "bus", "--", "true"}, wrong);
  EXPECT_EQ(once.status, 78) << once.err;
  EXPECT_TRUE(has(once.err, "redlock: bus: " + warning)) << once.err;
  const Ended waits = site.run({"run", "-w", "20", "-t", "2400", "bus", "--", "true"}, wrong);
  EXPECT_EQ(waits.status, 0) << waits.err;
  EXPECT_TRUE(has(waits.err, "redlock: bus: " + warning)) << waits.err;
}

// The client of a new process may try before it has reached the master that would vote in the denying one's place.
// Without a second try about eight of these fail. On a busy machine a master may be late.
TEST_F(ToolCodes, ADenialOfOneMasterSpoilsNoOnlyTry) {
  int spoiled = 0;
  for (unsigned i : {0u, 1u, 2u}) {
    site_[i].command({"ACL", "SETUSER", "default", "-set"});
    for (int n = 0; n < 12; ++n) {
      const Ended once = site_.run({"run", "-n", "-t", "3000", "bus", "--", "true"}, config_);
      spoiled += once.status != 0;
      if (once.status != 0) std::cout << i << ": " << once.err;
    }
    site_[i].command({"ACL", "SETUSER", "default", "+set"});
  }
  EXPECT_LE(spoiled, 3);
}

TEST(ToolColours, OnTerminalsAlone) {
  ToolMasters site(1);
  const Words doctor = site.words({"doctor", "-v"}, site.file({0}));
  Program in_a_file(doctor, site.dir, {{"TERM=xterm"}, false});
  const auto on_terminal = [&](const Words& environment) {
    Terminal terminal(Words{"env", "-u", "NO_COLOR", "TERM=xterm"} + environment + doctor);
    terminal.read_all();
    return terminal.shown();
  };
  const std::string with = on_terminal({}), without = on_terminal({"NO_COLOR=1"});
  EXPECT_TRUE(has(with, "\x1b[32mok     \x1b[m reach ")) << with;
  EXPECT_TRUE(has(with, "\x1b[31mfail   \x1b[m guard ")) << with;
  EXPECT_TRUE(has(without, "ok      reach ")) << without;
  EXPECT_FALSE(has(without, "\x1b")) << without;
  EXPECT_EQ(in_a_file.exit_status(), 76);
  EXPECT_FALSE(has(in_a_file.out() + in_a_file.err(), "\x1b"));
}

}  // namespace
}  // namespace redlock::test
