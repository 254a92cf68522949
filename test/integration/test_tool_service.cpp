// SPDX-License-Identifier: MIT
//
// redlock-service: which units it refuses, what it writes, and what the drop-in's line then does. systemctl is a script
// here that prints a unit; the folders of systemd are those of the test.
#include <gtest/gtest.h>

#include <regex>

#include "notify_socket.hpp"
#include "tool_site.hpp"

namespace redlock::test {
namespace {

std::string replace_all(std::string text, const std::string& old, const std::string& now) {
  for (size_t at = 0; (at = text.find(old, at)) != std::string::npos; at += now.size()) {
    text.replace(at, old.size(), now);
  }
  return text;
}

class ToolService : public ::testing::Test {
 protected:
  ToolService() {
    std::filesystem::create_directories(bin_);
    std::filesystem::create_directories(states_ + "/bus.service");
    std::filesystem::create_symlink(REDLOCK_TOOL, bin_ + "/redlock");
    std::string script = text_of_file(std::string(REDLOCK_SOURCE_DIR) + "/src/tool/service/redlock-service");
    script = replace_all(script, "drop_ins=/etc/systemd/system\n", "drop_ins=" + etc_ + "\n");
    script = replace_all(script, "patience_s=30 ", "patience_s=1 ");
    write_program("redlock-service", replace_all(script, "states=/run/redlock ", "states=" + states_ + " "));
    write_program("systemctl", "#!/bin/sh\ncase $1 in cat) cat " + site_.dir + "/units/$3 ;; *) echo \"$*\" >>" +
                                   site_.dir + "/systemctl ;; esac\n");
  }

  void write_program(const std::string& name, const std::string& text) {
    std::ofstream(bin_ + "/" + name) << text;
    std::filesystem::permissions(bin_ + "/" + name, std::filesystem::perms(0755));
  }
  void write_unit(const std::string& text, const std::string& name = "bus.service") {
    std::filesystem::create_directories(site_.dir + "/units");
    std::ofstream(site_.dir + "/units/" + name) << text;
  }
  Words words(const std::string& line) const {
    return {"bash", "-c", "export PATH=" + bin_ + ":$PATH REDLOCK_CONFIG=" + site_.config + "; " + line};
  }
  Ended shell(const std::string& line, const Words& environment = {}) {
    Program program(words(line), site_.dir, {environment, false});
    const int status = program.exit_status();
    return {status, program.out(), program.err()};
  }
  // What the drop-in starts, with `command` under the lock of `bus`.
  std::string run_line(const std::string& command) const {
    return "exec redlock-service --run " + states_ + "/bus.service bus -- " + command;
  }
  void hold_as(const std::string& gateway) {
    const std::string value = std::string(40, 'a') + ":" + gateway;
    for (size_t m = 0; m < 2; ++m) site_.masters[m].command({"SET", "bus", value, "PX", "60000"});
  }
  std::string drop_in() const { return text_of_file(etc_ + "/bus.service.d/redlock.conf"); }

  ToolSite site_;
  const std::string bin_ = site_.dir + "/bin", etc_ = site_.dir + "/etc", states_ = site_.dir + "/states";
};

TEST_F(ToolService, RefusesWhatWouldRunWithoutTheLock) {
  const struct {
    const char* service;
    const char* said;
  } units[] = {
      {"Type=forking\nExecStart=/usr/sbin/ser2net -c /etc/ser2net.yaml", "its option -n keeps it in the foreground"},
      {"Type=forking\nExecStart=/opt/pollerd", "give it the option that keeps it in the foreground"},
      {"Type=oneshot\nExecStart=/bin/true", "redlock run in a timer or a cron line is for jobs"},
      {"ExecStart=/bin/a\nExecStart=/bin/b", "it has several lines ExecStart="},
      {"Type=exec", "it has no ExecStart="},
      {"ExecStart=/bin/a\nExecStart=", "it has no ExecStart="},
      {"ExecStart=-/usr/bin/docker run zigbee", "docker lets another process do the work"},
      {"ExecStart=@/bin/sh -sh", "another name"},
      {"WatchdogSec=3\nExecStart=/bin/a", "would count while we wait"},
      {"PrivateNetwork=yes\nExecStart=/bin/a", "no master can be reached"},
      {"PrivateNetwork=true\nExecStart=/bin/a", "no master can be reached"},
      {"PrivateNetwork=1\nExecStart=/bin/a", "no master can be reached"},
      {"PrivateNetwork=On\nExecStart=/bin/a", "no master can be reached"},
      {"RestrictAddressFamilies=AF_UNIX AF_NETLINK\nExecStart=/bin/a", "has no AF_INET: no master can be reached"},
      {"RestrictAddressFamilies=none\nExecStart=/bin/a", "has no AF_INET: no master can be reached"},
      {"RestrictAddressFamilies=~AF_PACKET AF_INET\nExecStart=/bin/a", "=~AF_INET: no master can be reached"},
      {"IPAddressDeny=any\nExecStart=/bin/a", "IPAddressDeny= without IPAddressAllow="},
      {"RootDirectory=/srv/a\nExecStart=/bin/a", "redlock is not in there"},
      {"RootImage=/srv/a.raw\nExecStart=/bin/a", "redlock is not in there"},
      {"DynamicUser=yes\nExecStart=/bin/a", "redlock.json cannot belong to a user that is new at each start"},
      {"NoExecPaths=/\nExecStart=/bin/a", "redlock could not be started"},
  };
  for (const auto& unit : units) {
    write_unit(std::string("[Service]\n") + unit.service + "\n");
    const Ended ended = shell("redlock-service bus plant1/bus");
    EXPECT_EQ(ended.status, 65) << unit.service;
    EXPECT_TRUE(std::regex_search(ended.err, std::regex(unit.said))) << unit.service << ": " << ended.err;
    EXPECT_FALSE(std::filesystem::exists(etc_)) << unit.service;
  }
  write_unit("[Service]\nExecStart=/bin/a\n");
  write_unit("", "bus.socket");
  EXPECT_EQ(shell("redlock-service bus plant1/bus").status, 65);
  EXPECT_EQ(shell("redlock-service other plant1/bus").status, 66);
  EXPECT_EQ(shell("redlock-service bus 'two words'").status, 64);
  EXPECT_EQ(shell("redlock-service bus").status, 64);
}

TEST_F(ToolService, TakesUnitsWhoseSandboxLetsRedlockWork) {
  const struct {
    const char* service;
    const char* said;
  } units[] = {
      {"PrivateNetwork=no\nDynamicUser=0", ""},
      {"PrivateNetwork=yes\nPrivateNetwork=off", ""},
      {"RestrictAddressFamilies=AF_UNIX\nRestrictAddressFamilies=AF_INET6 AF_NETLINK", ""},
      {"RestrictAddressFamilies=AF_UNIX\nRestrictAddressFamilies=", ""},
      {"RestrictAddressFamilies=~AF_PACKET AF_INET6", ""},
      {"IPAddressDeny=any\nIPAddressAllow=10.0.0.0/8", "IPAddressAllow= of bus.service must have the masters"},
  };
  for (const auto& unit : units) {
    write_unit(std::string("[Service]\nExecStart=/bin/a\n") + unit.service + "\n");
    const Ended ended = shell("redlock-service bus plant1/bus");
    EXPECT_EQ(ended.status, 0) << unit.service << ": " << ended.err;
    EXPECT_NE(ended.out.find(unit.said), std::string::npos) << unit.service << ": " << ended.out;
    EXPECT_EQ(drop_in().find("RestartPrevent"), std::string::npos) << "each exit status may be the service's own";
    EXPECT_EQ(shell("redlock-service --undo bus").status, 0);
  }
}

TEST_F(ToolService, WritesADropInThatSystemdUnderstandsAndTakesItBack) {
  const std::string unit =
      "[Unit]\nDescription=a\n[Service]\nType=notify\nWatchdogSec=5\nExecStart=/bin/old\n# ExecStart=/bin/comment\n"
      "ExecStart=\nExecStart=-/bin/sleep \\\n  60\n[Install]\nWantedBy=multi-user.target\n";
  write_unit(unit);
  const Ended ended = shell("redlock-service bus plant1/bus --urgent -t 5000");
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_NE(drop_in().find("\nExecStart=\nExecStart=-" + bin_ + "/redlock-service --run " + states_ +
                           "/bus.service --urgent -t 5000 plant1/bus -- /bin/sleep    60\n"), std::string::npos)
      << drop_in();
  EXPECT_NE(drop_in().find("\nNotifyAccess=all\n"), std::string::npos);
  EXPECT_NE(drop_in().find("\nTimeoutStartSec=infinity\n"), std::string::npos);
  EXPECT_EQ(text_of_file(site_.dir + "/systemctl"), "daemon-reload\n");
  EXPECT_EQ(shell("redlock-service bus plant1/bus").status, 65) << "twice";
  if (std::system("command -v systemd-analyze >/dev/null") == 0) {
    std::ofstream(etc_ + "/bus.service") << unit;
    const Ended checked = shell("systemd-analyze verify " + etc_ + "/bus.service");
    EXPECT_EQ(checked.status, 0);
    EXPECT_EQ(checked.err.find("bus.service"), std::string::npos) << checked.err;
    std::ofstream(etc_ + "/bus.service.d/redlock.conf", std::ios::app) << "TimeoutStartSec=nonsense\n";
    EXPECT_NE(shell("systemd-analyze verify " + etc_ + "/bus.service").err.find("redlock.conf"), std::string::npos)
        << "the drop-in is not read";
  }
  EXPECT_EQ(shell("redlock-service --undo bus").status, 0);
  EXPECT_FALSE(std::filesystem::exists(etc_ + "/bus.service.d"));
  EXPECT_EQ(shell("redlock-service --undo bus").status, 66);
}

TEST_F(ToolService, TheServicesOwnMessagesAndItsWatchdogGoThrough) {
  if (std::system("command -v systemd-notify >/dev/null") != 0) GTEST_SKIP() << "systemd-notify is not here";
  NotifySocket systemd(site_.dir + "/notify");
  const std::string service = "sh -c 'systemd-notify --no-block WATCHDOG=1; echo ${WATCHDOG_PID-none} $WATCHDOG_USEC'";
  const Ended ended = shell(run_line(service),
                            {"NOTIFY_SOCKET=" + systemd.path(), "WATCHDOG_PID=1", "WATCHDOG_USEC=5000000"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(ended.out, "none 5000000\n");
  EXPECT_EQ(systemd.heard(MSG_DONTWAIT).substr(0, 10), "WATCHDOG=1");
}

// Nobody waits beside it here: the pauses are counted by what is said and by the clock.
TEST_F(ToolService, AServiceThatFailsAtOnceIsHeldOffLongerEachTime) {
  const std::string line = run_line("sh -c 'exit 3'");
  const Ended first = shell(line);
  EXPECT_EQ(first.status, 3);
  EXPECT_EQ(first.out, "") << "it waits";
  for (const int64_t least_ms : {2'000, 4'000}) {
    const int64_t begin = boot_ns();
    EXPECT_EQ(shell(line).status, 3);
    EXPECT_GE(boot_ns() - begin, least_ms * ns_per_ms);
  }
  EXPECT_NE(text_of_file(states_ + "/bus.service/began").find(" 2\n"), std::string::npos);
  std::ofstream(states_ + "/bus.service/began") << boot_ns() / 1'000'000'000 - 61 << " 9\n";
  EXPECT_EQ(shell(run_line("sh -c 'exit 3'")).out, "") << "it ran for long";
}

// Such as a mistake in the drop-in's line: nothing but the pauses keeps systemd from starting it each second.
TEST_F(ToolService, ARunnerThatEndsBeforeItHasTheLockIsHeldOff) {
  const std::string line = "exec redlock-service --run " + states_ + "/bus.service --no-such-option bus -- true";
  EXPECT_EQ(shell(line).status, 64);
  const Ended again = shell(line);
  EXPECT_EQ(again.status, 64);
  EXPECT_NE(again.out.find("in a row; it waits 2 s"), std::string::npos) << again.out;
}

TEST_F(ToolService, HandsOverToWhoWaitsAndStartsAgainWhereNobodyDoes) {
  write_unit("[Service]\nExecStart=/bin/a\n");
  EXPECT_EQ(shell("redlock-service --hand-over bus").status, 66) << "under no lock";
  ASSERT_EQ(shell("redlock-service bus bus --urgent").status, 0);
  std::filesystem::remove(site_.dir + "/systemctl");
  hold_as("gw-2");
  const Ended ended = shell("redlock-service --hand-over bus");
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(ended.out, "redlock-service: gw-2 holds bus; this gateway stands by\n");
  EXPECT_EQ(text_of_file(site_.dir + "/systemctl"), "stop bus.service\n--no-block start bus.service\n");
  site_.let_go("bus");
  EXPECT_EQ(shell("redlock-service --hand-over bus").status, 75) << "nobody has it";
  hold_as("gw-1");
  EXPECT_EQ(shell("redlock-service --hand-over bus").status, 75) << "our own key is left of a runner that was killed";
  site_.hold_by_other("bus");
  EXPECT_EQ(shell("redlock-service --hand-over bus").status, 75) << "the value is none of a gateway";
  std::filesystem::remove(site_.dir + "/systemctl");
  std::ofstream(site_.config) << "{";
  EXPECT_EQ(shell("redlock-service --hand-over bus").status, 78);
  EXPECT_FALSE(std::filesystem::exists(site_.dir + "/systemctl")) << "the service runs on";
}

TEST_F(ToolService, AHandOverThatIsInterruptedStartsTheServiceAgain) {
  write_unit("[Service]\nExecStart=/bin/a\n");
  ASSERT_EQ(shell("redlock-service bus bus").status, 0);
  for (const int number : {SIGHUP, SIGINT, SIGTERM}) {
    const std::string told = site_.dir + "/systemctl";
    std::filesystem::remove(told);
    Program program(words("exec redlock-service --hand-over bus"), site_.dir);
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(told); }));
    program.signal(number);
    EXPECT_EQ(program.exit_status(), 75);
    EXPECT_EQ(text_of_file(told), "stop bus.service\n--no-block start bus.service\n");
  }
}

TEST_F(ToolService, TheConfigurationOfTheLineIsAsked) {
  write_unit("[Service]\nExecStart=/bin/a\n");
  for (const char* line : {"redlock-service bus --any bus", "redlock-service bus -C bus"}) {
    EXPECT_EQ(shell(line).status, 64) << line;
  }
  hold_as("gw-2");
  for (const char* option : {"-C ", "-C", "--config ", "--config="}) {
    ASSERT_EQ(shell("redlock-service bus bus --urgent " + (option + site_.config)).status, 0) << option;
    const Ended ended = shell("REDLOCK_CONFIG=/nowhere redlock-service --hand-over bus");
    EXPECT_EQ(ended.status, 0) << option << ended.err;
    ASSERT_EQ(shell("redlock-service --undo bus").status, 0);
  }
}

// Options of redlock run go through, a file of metrics among them.
TEST_F(ToolService, TheServiceKeepsMetricsAcrossItsRestarts) {
  const std::string file = site_.dir + "/bus.prom";
  write_unit("[Service]\nExecStart=/usr/bin/true\n");
  ASSERT_EQ(shell("redlock-service bus bus --metrics " + file).status, 0);
  EXPECT_NE(drop_in().find(" --metrics " + file + " bus -- /usr/bin/true\n"), std::string::npos) << drop_in();
  for (int i = 0; i < 2; ++i) {
    const std::string options = states_ + "/bus.service --metrics " + file;
    EXPECT_EQ(shell("exec redlock-service --run " + options + " bus -- true").status, 0);
    std::filesystem::remove(states_ + "/bus.service/began");  // no pause of a service that fails
  }
  EXPECT_NE(text_of_file(file).find("redlock_acquired_total{resource=\"bus\"} 2\n"), std::string::npos);
}

}  // namespace
}  // namespace redlock::test
