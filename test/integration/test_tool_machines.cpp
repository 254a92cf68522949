// SPDX-License-Identifier: MIT
//
// Machines that boot a systemd, with services under a lock.
#include "tool_service.hpp"

namespace redlock::test {
namespace {

// A systemd of its own is PID 1 of namespaces, with an empty /run, the units of the site's etc/ and a cgroup: NAME
// --unit=WHAT_IT_STARTS.
constexpr char boots[] = R"sh(set -e
name=$1
cd @dir@
mkdir -p etc cgroups-$name
mount -t cgroup -o none,name=systemd cgroup cgroups-$name || mount -t cgroup2 cgroup2 cgroups-$name
mkdir -p cgroups-$name/$name
echo $$ >cgroups-$name/$name/cgroup.procs
cat >inside-$name <<END
set -e
mount -o bind,ro /proc/sys /proc/sys
mount -t tmpfs tmpfs /run
mkdir /run/lock
printf '%s\n' NAME=$name REDLOCK_CONFIG=$PWD/$name.json PATH=/usr/bin:/bin 'COMMAND=sleep infinity' >/run/gateway.env
mount --bind etc /etc/systemd/system
mount -t tmpfs tmpfs /sys/fs/cgroup
mkdir /sys/fs/cgroup/systemd
mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd || mount -t cgroup2 cgroup2 /sys/fs/cgroup
export container=other SYSTEMD_UNIT_PATH=/etc/systemd/system
exec /lib/systemd/systemd --system $2 --log-target=null --show-status=no
END
status=0
unshare --pid --mount --mount-proc --uts --ipc --cgroup --fork --kill-child bash inside-$name || status=$?
find cgroups-$name/$name -depth -type d -exec rmdir {} + || :
exit $status
)sh";

// The service takes longer to start than its watchdog would wait. With a file `hang` it hangs.
constexpr char works[] = R"sh(#!/bin/bash
cd @dir@
echo "$NAME begins" >>work
sleep 7
systemd-notify --ready --status="at work"
echo "$NAME works" >>work
until [ -e hang ]; do systemd-notify WATCHDOG=1 && sleep 0.5; done
echo "$NAME hangs" >>work
exec sleep infinity
)sh";

class Machines : public ToolService {
 protected:
  Machines() : ToolService(6'000, 2'000) {}

  // A site's folder has what systemd and redlock-service look for elsewhere.
  void SetUp() override {
    if (geteuid() != 0 || !std::filesystem::exists("/lib/systemd/systemd") ||
        std::system("unshare --pid --mount --uts --ipc --cgroup --fork true") != 0) {
      GTEST_SKIP() << "no systemd, or no namespaces";
    }
    std::string script = text_of_file(bin_ + "/redlock-service");
    script = replace_all(script, "drop_ins=" + etc_, "drop_ins=/etc/systemd/system");
    script = replace_all(script, "patience_s=1 ", "patience_s=30 ");
    write_program("redlock-service", replace_all(script, "states=" + states_, "states=/run/redlock"));
    std::filesystem::remove(bin_ + "/systemctl");
    write_program("boots", "#!/bin/bash\n" + replace_all(boots, "@dir@", site_.dir));
    write_program("works", replace_all(works, "@dir@", site_.dir));
    std::filesystem::create_directories(etc_ + "/multi-user.target.wants");
    for (const char* target : {"sysinit", "basic", "multi-user", "shutdown", "network-online", "time-sync"}) {
      std::filesystem::copy("/lib/systemd/system/" + std::string(target) + ".target", etc_);
    }
    configure("gw-1", "gw-1");
    configure("gw-2", "gw-2");
  }
  void configure(const std::string& machine, const std::string& client_name) {
    std::ofstream(site_.dir + "/" + machine + ".json")
        << replace_all(text_of_file(site_.config), "\"gw-1\"", "\"" + client_name + "\"");
  }
  void write_file(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(etc_ + "/" + name).parent_path());
    std::ofstream(etc_ + "/" + name) << text;
  }
  void enable(const std::string& unit, const std::string& file) {
    std::filesystem::create_symlink(etc_ + "/" + file, etc_ + "/multi-user.target.wants/" + unit);
  }
  void write_unit_of_commands() {
    std::string unit = text_of_file(std::string(REDLOCK_SOURCE_DIR) + "/src/tool/service/redlock@.service.in");
    unit = replace_all(unit, "@redlock_bindir@", bin_);
    write_file("redlock@.service", replace_all(unit, "/etc/redlock/%i.env", "/run/gateway.env"));
  }
  // A package that restarts its unit behind an upgrade, and a place for dpkg to note that.
  void package_restarts(const std::string& unit) {
    const std::string folder = site_.dir + "/package", control = folder + "/DEBIAN";
    const std::string notes = site_.dir + "/packages/var/lib/dpkg";
    std::filesystem::create_directories(control);
    std::filesystem::create_directories(notes + "/info");
    std::filesystem::create_directories(notes + "/updates");
    std::ofstream(notes + "/status") << "";
    std::ofstream(control + "/control") << "Package: " << unit << "\nVersion: 1\nArchitecture: all\n"
                                           "Maintainer: nobody <nobody@example.org>\nDescription: a service\n";
    std::ofstream(control + "/postinst") << "#!/bin/sh\nsystemctl restart " << unit << " && echo restarted\n";
    std::filesystem::permissions(control + "/postinst", std::filesystem::perms(0755));
    EXPECT_EQ(shell("dpkg-deb -b " + folder + " " + site_.dir + "/" + unit + ".deb").status, 0);
  }
  std::string work() const { return text_of_file(site_.dir + "/work"); }
  bool shows(const std::string& text) const {
    return eventually([&] { return work().find(text) != std::string::npos; });
  }

  // A machine, from its power on to its power off.
  struct Machine {
    Machine(Machines& machines, const std::string& name, const std::string& options = "--unit=multi-user.target")
        : test(machines), program({"unshare", "--mount", machines.bin_ + "/boots", name, options}, machines.site_.dir) {
      EXPECT_TRUE(eventually([&] { return at("systemctl show -p Version").status == 0; })) << program.err();
    }
    ~Machine() { cut_power(); }
    void cut_power() {
      const pid_t first = init();
      if (first != 0) ::kill(first, SIGKILL);
      program.exit_status();
    }
    // PID 1 of the machine: the script, unshare, and systemd.
    pid_t init() const {
      pid_t pid = program.pid();
      for (int i = 0; i < 2; ++i) {
        const std::vector<pid_t> children = children_of(pid);
        if (children.size() != 1) return 0;
        pid = children[0];
      }
      return pid;
    }
    Ended at(const std::string& line) {
      const std::string pid = std::to_string(init());
      return test.shell("[ " + pid + " != 0 ] && exec nsenter -t " + pid + " -p -m -u -i -C bash -c '" + line + "'");
    }
    std::string tells(const std::string& line) {
      std::string out = at(line).out;
      while (!out.empty() && out.back() == '\n') out.pop_back();
      return out;
    }
    bool comes_to(const std::string& line, const std::string& said) {
      return eventually([&] { return tells(line) == said || at("sleep 0.2").status != 0; });
    }
    Machines& test;
    Program program;
  };
};

TEST_F(Machines, ASystemdRefusesTheStartAndTriesAgain) {
  write_file("idle.target", "[Unit]\nDefaultDependencies=no\n");
  write_file("bus.service", "[Unit]\nDefaultDependencies=no\n[Service]\nEnvironmentFile=/run/gateway.env\n"
             "ExecStart=/bin/sh -c 'echo held=$$REDLOCK_HELD >>" + site_.dir + "/work; exec sleep 1000'\n"
             "StandardError=append:" + site_.dir + "/journal\n");
  Machine machine(*this, "gw-1", "--unit=idle.target");
  EXPECT_EQ(machine.at("redlock-service bus bus").status, 0);
  EXPECT_EQ(machine.at("systemctl start bus").status, 0);
  EXPECT_TRUE(shows("held=1\n"));
  write_file("bus.service.d/zzzzz.conf", "[Service]\nExecStart=\nExecStart=/bin/sh -c \"echo without >>" + site_.dir +
             "/work; exec sleep 1000\"\n");
  EXPECT_EQ(machine.at("systemctl daemon-reload").status, 0);
  EXPECT_NE(machine.at("systemctl restart bus").status, 0);
  EXPECT_EQ(work(), "held=1\n");
  std::filesystem::remove(etc_ + "/bus.service.d/zzzzz.conf");
  EXPECT_EQ(machine.at("systemctl daemon-reload").status, 0);
  EXPECT_TRUE(shows("held=1\nheld=1\n"));
  EXPECT_EQ(work(), "held=1\nheld=1\n");
  const std::string journal = text_of_file(site_.dir + "/journal");
  EXPECT_NE(journal.find("bus.service is not started without its lock: /etc/systemd/system/bus.service.d/zzzzz.conf "
                         "sets ExecStart=/bin/sh -c echo without"), std::string::npos) << journal;
}

// Two machines boot at once with a service under one lock, whose unit has Type=notify and a watchdog.
TEST_F(Machines, AStandbyBootsAndTakesOver) {
  write_file("bus.service", "[Service]\nType=notify\nWatchdogSec=5\nEnvironmentFile=/run/gateway.env\nExecStart=" +
             bin_ + "/works\nExecReload=/bin/kill -HUP $MAINPID\n");
  {
    Machine typed(*this, "gw-1", "--unit=basic.target");
    const Ended ended = typed.at("redlock-service bus bus");
    ASSERT_EQ(ended.status, 0) << ended.err;
  }
  enable("bus.service", "bus.service");
  Machine first(*this, "gw-1"), second(*this, "gw-2");
  ASSERT_TRUE(shows(" works\n"));
  const bool is_first = work() == "gw-1 begins\ngw-1 works\n";
  EXPECT_TRUE(is_first || work() == "gw-2 begins\ngw-2 works\n") << work();
  Machine& owner = is_first ? first : second;
  Machine& standby = is_first ? second : first;
  const std::string here = is_first ? "gw-1" : "gw-2", there = is_first ? "gw-2" : "gw-1";
  EXPECT_TRUE(owner.comes_to("systemctl is-system-running", "running"));
  EXPECT_TRUE(standby.comes_to("systemctl is-system-running", "running")) << standby.tells("systemctl list-jobs");
  EXPECT_EQ(standby.tells("systemctl is-active bus multi-user.target"), "active\nactive");
  EXPECT_TRUE(standby.comes_to("systemctl show -P StatusText bus | grep -o \"bus.*held by gw-.\" | tail -c 13",
                               "held by " + here)) << standby.tells("systemctl show -P StatusText bus");
  EXPECT_EQ(owner.tells("systemctl show -P StatusText bus"), "at work");

  // What an administrator and dpkg do while it stands by.
  EXPECT_EQ(standby.at("systemctl reload bus").status, 0);
  EXPECT_EQ(standby.tells("systemctl is-active bus"), "active");
  for (const char* line : {"stop", "start", "restart"}) {
    EXPECT_EQ(standby.at(std::string("systemctl ") + line + " bus").status, 0) << line;
  }
  EXPECT_EQ(standby.tells("systemctl show -P Result bus"), "success");
  package_restarts("bus");
  const Ended installed = standby.at("cd " + site_.dir + " && dpkg --root=$PWD/packages --force-script-chrootless -i "
                                     "bus.deb");
  EXPECT_EQ(installed.status, 0) << installed.err;
  EXPECT_NE(installed.out.find("restarted\n"), std::string::npos) << installed.out;
  EXPECT_EQ(work(), here + " begins\n" + here + " works\n") << "it stood by all the time";

  owner.cut_power();
  EXPECT_TRUE(shows(there + " works\n"));
  EXPECT_EQ(standby.tells("systemctl show -P NRestarts bus"), "0") << "its start is longer than its watchdog";
  std::ofstream(site_.dir + "/hang") << "\n";
  EXPECT_TRUE(shows(there + " hangs\n"));
  EXPECT_TRUE(standby.comes_to("systemctl show -P NRestarts bus", "1")) << "the watchdog counts again";
  std::filesystem::remove(site_.dir + "/hang");
}

// There and back. The disk of one gateway may be a copy of the other one's, with the same client_name.
TEST_F(Machines, HandOverTheLock) {
  write_file("bus.service", "[Service]\nEnvironmentFile=/run/gateway.env\nExecStart=/bin/sh -c 'echo $NAME >>" +
             site_.dir + "/work; exec sleep 1000'\n");
  for (const std::string name : {"gw-2", "gw-1"}) {
    configure("gw-2", name);
    std::ofstream(site_.dir + "/work") << "";
    Machine first(*this, "gw-1", "--unit=basic.target"), second(*this, "gw-2", "--unit=basic.target");
    EXPECT_EQ(first.at("redlock-service bus bus").status, 0);
    EXPECT_EQ(first.at("systemctl start bus").status, 0);
    ASSERT_TRUE(eventually([&] { return work() == "gw-1\n"; }));
    EXPECT_EQ(second.at("systemctl daemon-reload && systemctl start bus").status, 0);
    const std::string other = name == "gw-1" ? "another gateway with the client_name gw-1" : "gw-2";
    Ended ended = first.at("redlock-service --hand-over bus");
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_EQ(ended.out, "redlock-service: " + other + " holds bus; this gateway stands by\n");
    EXPECT_TRUE(eventually([&] { return work() == "gw-1\ngw-2\n"; })) << work();
    ended = second.at("redlock-service --hand-over bus");
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_TRUE(eventually([&] { return work() == "gw-1\ngw-2\ngw-1\n"; })) << work();
  }
}

// Of a wrong configuration a unit makes less and less, and it takes the one that replaces it.
TEST_F(Machines, AWrongConfigurationIsTriedLessAndLessAndANewOneSoon) {
  write_file("idle.target", "[Unit]\nDefaultDependencies=no\n");
  write_unit_of_commands();
  write_file("redlock@bus.service.d/log.conf", "[Service]\nStandardOutput=append:" + site_.dir + "/work\n");
  const std::string config = site_.dir + "/gw-1.json", right = text_of_file(config);
  std::ofstream(config) << "{";
  Machine machine(*this, "gw-1", "--unit=idle.target");
  EXPECT_EQ(machine.at("systemctl start --no-block redlock@bus").status, 0);
  EXPECT_TRUE(shows("it waits 2 s ")) << machine.tells("systemctl status redlock@bus");
  EXPECT_TRUE(shows("it waits 4 s "));
  EXPECT_EQ(machine.at("systemctl stop redlock@bus").status, 0);
  EXPECT_EQ(machine.at("systemctl start --no-block redlock@bus").status, 0);
  std::ofstream(config) << right;
  EXPECT_TRUE(machine.comes_to("systemctl is-active redlock@bus", "active"));
  for (const char* line : {"active\n1", "active\n2"}) {
    EXPECT_EQ(machine.at("pkill -x sleep").status, 0);
    EXPECT_TRUE(machine.comes_to("systemctl is-active redlock@bus; systemctl show -P NRestarts redlock@bus", line));
  }
  EXPECT_EQ(work().rfind("it waits "), work().find("it waits 4 s ")) << "a command that had the lock: " << work();
}

// The recipe of redlock-service(1) for a unit that lets another process work.
TEST_F(Machines, WhatIsBoundToALockIsInactiveOnAStandbyWhichBoots) {
  write_unit_of_commands();
  write_file("redlock@bus.service.d/bound.conf", "[Unit]\nWants=bound.service\n");
  write_file("bound.service", "[Unit]\nBindsTo=redlock@bus.service\nAfter=redlock@bus.service\n[Service]\n"
             "ExecStart=/bin/sleep infinity\nTimeoutStopSec=2\n");
  enable("redlock@bus.service", "redlock@.service");
  Machine first(*this, "gw-1"), second(*this, "gw-2");
  const std::string ask = "systemctl is-active redlock@bus bound multi-user.target";
  const std::string holds = "active\nactive\nactive", stands_by = "activating\ninactive\nactive";
  ASSERT_TRUE(eventually([&] { return first.tells(ask) == holds || second.tells(ask) == holds; }));
  const bool is_first = first.tells(ask) == holds;
  Machine& owner = is_first ? first : second;
  Machine& standby = is_first ? second : first;
  EXPECT_TRUE(standby.comes_to(ask, stands_by)) << standby.tells(ask);
  for (const char* line : {"systemctl daemon-reload", "systemctl daemon-reexec"}) {  // an upgrade of packages
    EXPECT_EQ(standby.at(line).status, 0);
    EXPECT_TRUE(standby.comes_to(ask, stands_by)) << standby.tells(ask);
  }
  owner.cut_power();
  EXPECT_TRUE(standby.comes_to(ask, holds)) << standby.tells(ask);
  EXPECT_EQ(standby.at("systemctl stop redlock@bus").status, 0);
  EXPECT_TRUE(standby.comes_to("systemctl is-active bound", "inactive"));
}

}  // namespace
}  // namespace redlock::test
