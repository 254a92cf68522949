// SPDX-License-Identifier: MIT
//
// redlock-service: which units it refuses, what it writes, and what the drop-in's line then does.
#include <functional>
#include <regex>

#include "notify_socket.hpp"
#include "tool_service.hpp"

namespace redlock::test {
namespace {

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
      {"RestrictAddressFamilies=AF_INET\nExecStart=/bin/a", "has no AF_UNIX: systemd could not be asked"},
      {"RestrictAddressFamilies=~AF_UNIX\nExecStart=/bin/a", "=~AF_UNIX: systemd could not be asked"},
      {"RuntimeMaxSec=1h\nExecStart=/bin/a", "RuntimeMaxSec= would count while we wait"},
      {"Type=notify\nRuntimeMaxSec=1h\nExecStart=/bin/a", "RuntimeMaxSec= would count while we wait"},
      {"Type=dbus\nBusName=a.b\nExecStart=/bin/a", "Type=dbus: a boot would wait"},
      {"ExecStartPost=/bin/b\nExecStart=/bin/a", "ExecStartPost= would run on a gateway that stands by"},
      {"[Unit]\nJobTimeoutSec=60\n[Service]\nExecStart=/bin/a", "JobTimeoutSec= would count while we wait"},
      {"[Unit]\nJobRunningTimeoutSec=60\n[Service]\nExecStart=/bin/a", "JobRunningTimeoutSec= would count"},
      {"[Unit]\nFailureAction=reboot\n[Service]\nExecStart=/bin/a", "FailureAction=reboot might follow each hand-over"},
      {"[Unit]\nSuccessAction=exit\n[Service]\nExecStart=/bin/a", "SuccessAction=exit might follow each hand-over"},
      {"KillSignal=SIGHUP\nExecStart=/bin/a", "KillSignal=SIGHUP does not end a wait: .* --signal=NAME"},
      {"KillSignal=SIGUSR1\nExecStart=/bin/a", "KillSignal=SIGUSR1 does not end a wait"},
      {"RestartKillSignal=SIGWINCH\nExecStart=/bin/a", "RestartKillSignal=SIGWINCH does not end a wait"},
      {"Sockets=bus-in.socket\nExecStart=/bin/a", "hands it a socket"},
      {"ExecStart=/opt/x/bin/redlock-service --run /run/redlock/bus a -- b", "a copy of ours"},
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
  EXPECT_EQ(shell("redlock-service bus plant1/bus --sd-notify").status, 64) << "READY is the service's";
  write_unit("[Service]\nExecStart=/bin/a\n", std::string(80, 'a') + ".service");
  EXPECT_EQ(shell("redlock-service " + std::string(80, 'a') + " plant1/bus").status, 65) << "no address of a socket";
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
      {"Type=notify\nWatchdogSec=10", ""},
      {"ExecStartPost=/bin/b\nExecStartPost=", ""},
      {"RuntimeMaxSec=infinity\nKillSignal=SIGINT\nRestartKillSignal=15", ""},
      {"[Unit]\nFailureAction=none\nJobTimeoutSec=0", ""},
      {"ExecStopPost=/bin/b", "ExecStopPost= of bus.service runs without the lock"},
  };
  for (const auto& unit : units) {
    write_unit(std::string("[Service]\nExecStart=/bin/a\n") + unit.service + "\n");
    const Ended ended = shell("redlock-service bus plant1/bus");
    EXPECT_EQ(ended.status, 0) << unit.service << ": " << ended.err;
    EXPECT_NE(ended.out.find(unit.said), std::string::npos) << unit.service << ": " << ended.out;
    for (const char* line : {"RestartPreventExitStatus=", "RemainAfterExit=no", "SendSIGKILL=yes"}) {
      EXPECT_NE(drop_in().find("\n" + std::string(line) + "\n"), std::string::npos) << "it must stand by again";
    }
    EXPECT_EQ(shell("redlock-service --undo bus").status, 0);
  }
}

// All files of the configuration, and before anything is written.
TEST_F(ToolService, TestsTheFilesAsTheUnitsUser) {
  const ToolUser nobody(site_, true);
  if (geteuid() != 0 || !nobody.is_possible || nobody.user == 0) GTEST_SKIP() << "only root is another user";
  const gid_t daemon = 1;
  const std::string config = nobody.dir + "/site.json", password = nobody.dir + "/password";
  std::ofstream(config) << R"({"masters": [{"url": "redis://10.0.0.1", "password_file": ")" << password << "\"}]}";
  std::ofstream(password) << "hunter2\n";
  std::filesystem::copy(bin_ + "/redlock-service", nobody.dir);  // which starts the redlock beside it
  const std::string as_nobody = "PATH=" + nobody.dir + ":$PATH REDLOCK_CONFIG=" + config +
                                " LD_LIBRARY_PATH=" + nobody.dir + " redlock-service bus plant1/bus";
  const std::string denied = "may not be read by this user; type: chown root:GROUP FILE; chmod 640 FILE";
  const struct {
    const char* unit;
    gid_t group;
    mode_t of_config, of_password;
    std::string said;  // "": the unit is put under the lock
  } rows[] = {
      {"User=nobody", nobody.user, 0640, 0640, ""},
      {"User=nobody", nobody.user, 0600, 0640, replace_all(denied, "FILE", config)},
      {"User=nobody", nobody.user, 0640, 0600, replace_all(denied, "FILE", password)},
      {"User=nobody", daemon, 0644, 0640, replace_all(denied, "FILE", password)},
      {"User=nobody\nGroup=daemon", daemon, 0640, 0640, ""},
      {"User=nobody\nSupplementaryGroups=daemon", daemon, 0640, 0640, ""},
      {"User=nobody", nobody.user, 0644, 0644, "can be read by others; type: chmod o-r " + password},
      {"", 0, 0600, 0600, ""},
      {"", 0, 0600, 0620, "can be written by group or others; type: chmod go-w " + password},
  };
  for (const auto& row : rows) {
    for (const auto& [file, mode] : {std::pair{config, row.of_config}, std::pair{password, row.of_password}}) {
      ASSERT_EQ(::chown(file.c_str(), 0, row.group), 0);
      ASSERT_EQ(::chmod(file.c_str(), mode), 0);
    }
    write_unit(std::string("[Service]\nExecStart=/bin/a\n") + row.unit + "\n");
    const Ended ended = shell(as_nobody);
    EXPECT_EQ(ended.status, row.said.empty() ? 0 : 65) << row.unit << ended.err;
    EXPECT_NE(ended.err.find(row.said), std::string::npos) << row.unit << ": " << ended.err;
    EXPECT_EQ(std::filesystem::exists(ours_), row.said.empty()) << row.unit;
    if (!row.said.empty()) continue;
    EXPECT_EQ(shell("redlock-service --undo bus").status, 0);
  }
  // The credentials of a unit are there only while it runs.
  ::unlink(password.c_str());
  write_unit("[Service]\nExecStart=/bin/a\nUser=nobody\n");
  EXPECT_EQ(shell(as_nobody).status, 65);
  write_unit("[Service]\nExecStart=/bin/a\nUser=nobody\nLoadCredential=password:/etc/password\n");
  const Ended with_credentials = shell(as_nobody);
  EXPECT_EQ(with_credentials.status, 0) << with_credentials.err;
  EXPECT_NE(with_credentials.out.find("this was not tested: "), std::string::npos) << with_credentials.out;
}

TEST_F(ToolService, WritesADropInThatSystemdUnderstandsAndTakesItBack) {
  const std::string unit =
      "[Unit]\nDescription=a\n[Service]\nType=notify\nWatchdogSec=5\nExecStart=/bin/old\n# ExecStart=/bin/comment\n"
      "ExecStart=\nExecStart=-/bin/sleep \\\n  60\n[Install]\nWantedBy=multi-user.target\n";
  write_unit(unit);
  const Ended ended = shell("redlock-service bus plant1/bus --urgent -t 5000");
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_NE(drop_in().find("\nExecStart=\nExecStart=-" + bin_ + "/redlock-service --run " + states_ +
                           "/bus.service --sd-standby --urgent -t 5000 plant1/bus -- /bin/sleep    60\n"
                           "ExecStartPost=\n"), std::string::npos)
      << drop_in();
  EXPECT_NE(drop_in().find("\nTimeoutStartSec=infinity\n"), std::string::npos);
  EXPECT_EQ(text_of_file(site_.dir + "/systemctl"), "daemon-reload\n");
  EXPECT_EQ(shell("redlock-service bus plant1/bus").status, 0) << "twice";
  EXPECT_NE(drop_in().find(" plant1/bus -- /bin/sleep    60\n"), std::string::npos) << drop_in();
  if (std::system("command -v systemd-analyze >/dev/null") == 0) {
    std::ofstream(etc_ + "/bus.service") << unit;
    const Ended checked = shell("systemd-analyze verify " + etc_ + "/bus.service");
    EXPECT_EQ(checked.status, 0);
    EXPECT_EQ(checked.err.find("bus.service"), std::string::npos) << checked.err;
    std::ofstream(ours_, std::ios::app) << "TimeoutStartSec=nonsense\n";
    EXPECT_NE(shell("systemd-analyze verify " + etc_ + "/bus.service").err.find("zzzz-redlock.conf"), std::string::npos)
        << "the drop-in is not read";
  }
  EXPECT_EQ(shell("redlock-service --undo bus").status, 0);
  EXPECT_FALSE(std::filesystem::exists(etc_ + "/bus.service.d"));
  EXPECT_EQ(shell("redlock-service --undo bus").status, 66);
}

TEST_F(ToolService, OursCountsBesideOtherDropInsOrIsNotWritten) {
  write_unit("[Service]\nExecStart=/bin/a\n");
  for (const char* name : {"etc/bus.service.d/override.conf", "etc/bus.service.d/sandbox.conf",
                           "vendor/bus.service.d/site.conf", "vendor/bus.service.d/zz-local.conf"}) {
    write_drop_in(name);
    ASSERT_EQ(shell("redlock-service bus bus").status, 0) << name;
    EXPECT_NE(what_counts().find("argv[]=" + bin_ + "/redlock-service --run " + states_ +
                                 "/bus.service --sd-standby bus -- /bin/other 2 ;"), std::string::npos)
        << name << what_counts();
    ASSERT_EQ(shell("redlock-service --undo bus").status, 0);
  }
  const auto refuses = [&] {
    const Ended ended = shell("redlock-service bus bus");
    EXPECT_EQ(ended.status, 65);
    EXPECT_NE(ended.err.find("the lock would not count: " + site_.dir + "/vendor/bus.service.d/zzzzz.conf sets "
                             "ExecStart=/bin/other 2"), std::string::npos) << ended.err;
    EXPECT_EQ(shell("redlock-service --hand-over bus").status, std::filesystem::exists(ours_) ? 65 : 66) << "stops it";
  };
  write_drop_in("vendor/bus.service.d/zzzzz.conf");
  refuses();
  EXPECT_FALSE(std::filesystem::exists(ours_)) << "it looks as if it counted";
  const std::string earlier = "[Service]\nExecStart=\nExecStart=" + bin_ + "/redlock-service --run x bus -- /bin/a\n";
  std::filesystem::create_directories(etc_ + "/bus.service.d");
  std::ofstream(ours_) << earlier;
  refuses();
  EXPECT_EQ(drop_in(), earlier) << "its ExecCondition= refuses the start";
  const std::string calls = text_of_file(site_.dir + "/systemctl");
  EXPECT_EQ(calls.substr(calls.size() - 14), "daemon-reload\n");
  EXPECT_EQ(calls.find("stop"), std::string::npos) << "it would not start again";
}

TEST_F(ToolService, AStartWhoseExecStartIsNotOursIsRefused) {
  write_unit("[Service]\nExecStart=/bin/a b\n");
  ASSERT_EQ(shell("redlock-service bus bus").status, 0);
  EXPECT_NE(drop_in().find("\nExecCondition=" + bin_ + "/redlock-service --check bus.service\n"), std::string::npos);
  const auto check = [&] { return shell("redlock-service --check bus.service"); };
  EXPECT_EQ(check().status, 0);
  EXPECT_EQ(check().out, "");
  write_drop_in("etc/bus.service.d/zz-local.conf", "ExecStartPost=/bin/b");
  Ended ended = check();
  EXPECT_NE(ended.out.find("ExecStartPost= of bus.service is new, and is left out"), std::string::npos) << ended.out;
  write_drop_in("etc/bus.service.d/zz-local.conf");
  ended = check();
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.out, "redlock-service: ExecStart= of bus.service is now /bin/other 2, and /bin/a b is started: "
                       "redlock-service with the same RES adopts it\n");
  const struct {
    const char* service;
    const char* said;
  } rows[] = {
      {"ExecStart=\nExecStart=/bin/other 2", "/vendor/bus.service.d/zzzzz.conf sets ExecStart=/bin/other 2"},
      {"Type=oneshot\nExecStart=/bin/other 2", "/vendor/bus.service.d/zzzzz.conf sets ExecStart="},
      {"ExecStart=\nExecStart=/bin/sh -c '/bin/redlock-service --run x'", "sets ExecStart=/bin/sh"},
      {"ExecStart=\nExecStart=/bin/redlock-service --run /run/redlock/other.service bus -- /bin/a", "sets ExecStart="},
  };
  for (const auto& row : rows) {
    write_drop_in("vendor/bus.service.d/zzzzz.conf", row.service);
    std::filesystem::remove(states_ + "/bus.service/refused");
    ended = check();
    EXPECT_EQ(ended.status, 255) << row.service << ": 1 to 254 are no failure to systemd";
    EXPECT_EQ(ended.err.find("redlock-service: bus.service is not started without its lock: "), 0u) << ended.err;
    EXPECT_NE(ended.err.find(row.said), std::string::npos) << ended.err;
    EXPECT_EQ(ended.out, "") << "no pause at first";
  }
  EXPECT_NE(check().out.find("1 times in a row; it waits 2 s"), std::string::npos) << "systemd tries again for ever";
  std::filesystem::remove(site_.dir + "/vendor/bus.service.d/zzzzz.conf");
  std::ofstream(site_.dir + "/mute");
  std::filesystem::remove(states_ + "/bus.service/refused");
  ended = check();
  EXPECT_EQ(ended.status, 255);
  EXPECT_NE(ended.err.find("systemctl show -p ExecStart bus.service has no answer"), std::string::npos) << ended.err;
  std::filesystem::remove(site_.dir + "/mute");
  EXPECT_EQ(shell("PATH=/nowhere " + bin_ + "/redlock-service --check bus.service").status, 255) << "the unit's PATH";
  EXPECT_EQ(check().status, 0);
}

TEST_F(ToolService, TheDropInOf03IsKnownAndReplaced) {
  write_unit("[Service]\nExecStart=/bin/a\n");
  const std::string text = "# Written by redlock-service: bus.service runs\n[Service]\nExecStart=\nExecStart=" + bin_ +
                           "/redlock-service --run " + states_ + "/bus.service --urgent bus -- /bin/a\n";
  const auto write_old = [&] {
    std::filesystem::create_directories(etc_ + "/bus.service.d");
    std::ofstream(old_) << text;
  };
  write_old();
  EXPECT_NE(shell(run_line("true")).out.find("/redlock.conf is of 0.3"), std::string::npos);
  std::filesystem::remove(states_ + "/bus.service/began");
  const std::string line = "redlock-service --run " + states_ + "/bus.service --urgent bus -- true";
  EXPECT_NE(shell(line).out.find("; type redlock-service bus.service bus --urgent\n"), std::string::npos);
  hold_as("gw-2");
  EXPECT_EQ(shell("redlock-service --hand-over bus").status, 0);
  const Ended ended = shell("redlock-service bus bus --urgent");
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_NE(ended.out.find("removed " + old_ + ", which it replaces"), std::string::npos) << ended.out;
  EXPECT_FALSE(std::filesystem::exists(old_));
  EXPECT_NE(drop_in().find(" --urgent bus -- /bin/a\n"), std::string::npos) << drop_in();
  write_old();
  EXPECT_EQ(shell("redlock-service --undo bus").status, 0);
  EXPECT_FALSE(std::filesystem::exists(etc_ + "/bus.service.d"));
  write_drop_in("etc/bus.service.d/redlock.conf", "Nice=1");
  EXPECT_EQ(shell("redlock-service --undo bus").status, 66) << "not ours";
}

// ExecReload=, logrotate: a HUP is for the service, and neither its pause nor its wait ends by it.
TEST_F(ToolService, AHupReachesTheServiceAloneAndEndsNoWait) {
  site_.hold_by_other("bus");
  std::ofstream(states_ + "/bus.service/began") << boot_ns() / 1'000'000'000 << " 0\n";
  Program gateway(words(run_line("sh -c 'trap \"echo hup; exit 7\" HUP; echo ready; while :; do sleep 0.05; done'")),
                  site_.dir);
  ASSERT_TRUE(eventually([&] { return gateway.out().find("it waits 2 s") != std::string::npos; }));
  gateway.signal(SIGHUP);
  ASSERT_TRUE(eventually([&] {
    return text_of_file("/proc/" + std::to_string(gateway.pid()) + "/comm") == "redlock\n" &&
           !children_of(gateway.pid()).empty();
  })) << "the wait has begun: " << gateway.err();
  gateway.signal(SIGHUP);
  site_.let_go("bus");
  ASSERT_TRUE(eventually([&] { return gateway.out().find("ready\n") != std::string::npos; })) << gateway.err();
  gateway.signal(SIGHUP);
  EXPECT_EQ(gateway.exit_status(), 7);
  EXPECT_NE(gateway.out().find("hup\n"), std::string::npos);
}

// Of a unit that was ready while it stood by, systemd counts no watchdog until the service is ready. A process that is
// no descendant cannot speak for it, and by MAINPID= systemd would watch the service and not redlock.
TEST_F(ToolService, AStandbyIsReadyAndItsServicesMessagesGoThrough) {
  if (std::system("command -v systemd-notify >/dev/null") != 0) GTEST_SKIP() << "systemd-notify is not here";
  const struct {
    bool is_held;
    const char* watchdog;  // what the service says of its own
    std::string ready;     // what systemd has then
  } rows[] = {{false, "true", "READY=1\n"},
              {true, "true", "READY=1\nWATCHDOG_USEC=5000000\n"},
              {true, "systemd-notify WATCHDOG_USEC=7000000", "READY=1\nWATCHDOG_USEC=7000000\n"}};
  for (const auto& row : rows) {
    NotifySocket systemd(site_.dir + "/notify");
    if (row.is_held) hold_as("gw-2");
    const std::string line = std::string("sh -c 'until [ -e go ]; do sleep 0.05; done; ") + row.watchdog +
                             "; systemd-notify --pid=$$ --ready; echo ${WATCHDOG_PID-none} $WATCHDOG_USEC; "
                             "exec systemd-notify WATCHDOG=1'";
    Program gateway(words("cd " + site_.dir + "; exec redlock-service --run " + states_ + "/bus.service --sd-standby "
                          "bus -- " + line), site_.dir,
                    {{"NOTIFY_SOCKET=" + systemd.path(), "WATCHDOG_PID=1", "WATCHDOG_USEC=5000000"}, false});
    if (row.is_held) {
      std::string heard;
      while ((heard = systemd.heard()).find("STATUS=waiting for bus") == 0) {}
      EXPECT_EQ(heard.find("READY=1\nWATCHDOG_USEC=0\nSTATUS=standby for bus: held by "), 0u) << heard;
      gateway.signal(SIGHUP);
      while ((heard = systemd.heard()).find("STATUS=waiting for bus") == 0) {}
      EXPECT_EQ(heard.find("RELOADING=1\nMONOTONIC_USEC="), 0u) << heard;
      EXPECT_EQ(systemd.heard(), "READY=1") << "systemctl reload would wait for ever";
      site_.let_go("bus");
    }
    std::string heard;
    while ((heard = systemd.heard()).find("STATUS=waiting for bus") == 0) {}
    EXPECT_EQ(heard, "STATUS=holding bus");
    const std::string relay = states_ + "/bus.service/notify";
    EXPECT_EQ(shell("NOTIFY_SOCKET=" + relay + " systemd-notify STOPPING=1").status, 0) << "no descendant: left out";
    std::ofstream(site_.dir + "/go") << "\n";
    EXPECT_EQ(systemd.heard(), row.ready);
    EXPECT_EQ(systemd.heard(), "WATCHDOG=1\n");
    EXPECT_EQ(gateway.exit_status(), 0) << gateway.err();
    EXPECT_EQ(gateway.out(), "none 5000000\n");
    EXPECT_EQ(systemd.heard(MSG_DONTWAIT), "");
    for (const char* file : {"/go", "/notify", "/states/bus.service/began"}) std::filesystem::remove(site_.dir + file);
  }
  const Ended before = shell(run_line("sh -c 'echo $NOTIFY_SOCKET'"), {"NOTIFY_SOCKET=/systemd"});
  EXPECT_EQ(before.out, "/systemd\n") << "a drop-in of 0.3 may have an ExecStartPost=, which wants the lock";
}

// A boot does not wait for a gateway that a change of masters has left behind.
TEST_F(ToolService, AStandbyThatWasLeftBehindIsReadyAndStays) {
  const std::string left = "left " + site_.masters[0].command({"HGET", "redlock::meta", "desc"}) + " > v1 n=7";
  for (size_t m = 0; m < 3; ++m) site_.masters[m].command({"HSET", "redlock::meta", "desc", left});
  NotifySocket systemd(site_.dir + "/notify");
  Program gateway(words("exec redlock-service --run " + states_ + "/bus.service --sd-standby bus -- true"), site_.dir,
                  {{"NOTIFY_SOCKET=" + systemd.path()}, false});
  std::string heard;
  while ((heard = systemd.heard()).find("STATUS=waiting for bus") == 0) {}
  EXPECT_EQ(heard.find("READY=1\nWATCHDOG_USEC=0\nSTATUS=standby for bus: the site was changed"), 0u) << heard;
  gateway.signal(SIGTERM);
  EXPECT_EQ(gateway.exit_status(), 128 + SIGTERM) << gateway.err();
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

// Such as a mistake in the line: nothing but the pauses keeps systemd from starting it each second.
TEST_F(ToolService, ARunnerThatEndsBeforeItHasTheLockIsHeldOff) {
  for (const char* option : {"--no-such-option", "--sd-standby --no-such-option", "--sd-notify --no-such-option"}) {
    const std::string line = "exec redlock-service --run " + states_ + "/bus.service " + option + " bus -- true";
    EXPECT_EQ(shell(line).status, 64);
    const Ended again = shell(line);
    EXPECT_EQ(again.status, 64);
    EXPECT_NE(again.out.find("in a row; it waits 2 s"), std::string::npos) << again.out;
    std::ofstream(site_.dir + "/restarts") << "0\n";
    EXPECT_EQ(shell(line).out, "") << "an operator has started it";
    for (const char* file : {"/restarts", "/states/bus.service/began"}) std::filesystem::remove(site_.dir + file);
  }
}

// Each pause is the longest one, and would go on for a minute.
TEST_F(ToolService, ANewConfigurationEndsThePauseAndATermDoes) {
  const std::string began = std::to_string(boot_ns() / 1'000'000'000) + " 9\n", moved = site_.config + ".moved";
  const auto replace = [&] {
    std::filesystem::copy(site_.config, moved);
    std::filesystem::rename(moved, site_.config);
  };
  const auto mode = [&](mode_t bits) { EXPECT_EQ(::chmod(site_.config.c_str(), bits), 0); };
  const struct {
    const char* option;
    std::function<void()> before, meanwhile;
    int status;
  } rows[] = {
      {"", [] {}, replace, 0},
      {"--sd-notify ", [] {}, replace, 0},
      {"", [&] { std::filesystem::rename(site_.config, moved); },
       [&] { std::filesystem::rename(moved, site_.config); }, 0},
      {"", [&] { mode(0600); }, [&] { mode(0640); }, 0},
      {"", [] {}, nullptr, 128 + SIGTERM},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(&row - rows);
    const std::string begin = "redlock-service --run " + states_ + "/bus.service " + row.option;
    row.before();
    std::filesystem::remove(states_ + "/bus.service/began");
    shell(begin + "--no-such-option bus -- true");
    std::ofstream(states_ + "/bus.service/began") << began;
    const int64_t since = boot_ns();
    Program gateway(words("exec " + begin + "bus -- true"), site_.dir);
    ASSERT_TRUE(eventually([&] {
      return gateway.out().find("it waits 60 s at most, for a new " + site_.config) != std::string::npos;
    })) << gateway.out();
    row.meanwhile ? row.meanwhile() : gateway.signal(SIGTERM);
    EXPECT_EQ(gateway.exit_status(), row.status) << gateway.err();
    EXPECT_LT(boot_ns() - since, 30'000 * ns_per_ms);
  }
  replace();
  std::ofstream(states_ + "/bus.service/began") << began;
  EXPECT_EQ(shell(run_line("true")).out, "") << "it was replaced before the start";
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

}  // namespace
}  // namespace redlock::test
