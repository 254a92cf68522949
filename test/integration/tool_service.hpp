// SPDX-License-Identifier: MIT
//
// A site with redlock-service. Here systemctl is a script that reads a unit and its drop-ins in the order of systemd,
// and the folders of systemd are those of the test.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include "tool_site.hpp"
#include "tool_user.hpp"

namespace redlock::test {

// @dir@ is the site's: units/ has the units, etc/ and vendor/ have drop-ins.
inline constexpr char systemctl[] = R"(#!/bin/sh
cd @dir@ || exit 1
for unit; do :; done
files() {
  ls -d "$PWD/units/$unit"
  ls -d "$PWD/etc/$unit.d/"*.conf "$PWD/vendor/$unit.d/"*.conf 2>/dev/null | awk -F/ '{ print $NF, $0 }' |
    LC_ALL=C sort | cut -d' ' -f2
}
case $1 in
  cat)
    [ -e "units/$unit" ] || exit 1
    for file in $(files); do echo "# $file" && cat "$file" && echo; done
    ;;
  show)
    [ ! -e mute ] || exit 1
    case $* in *NRestarts*) cat restarts 2>/dev/null || echo 1; exit ;; esac
    cat $(files) | awk 'sub(/^ExecStart=[-:+!]*/, "") { if ($0 == "") count = 0; else all[++count] = $0 }
      END { for (i = 1; i <= count; ++i) { split(all[i], words, " ")
        printf "ExecStart={ path=%s ; argv[]=%s ; ignore_errors=no ; pid=0 }\n", words[1], all[i] } }'
    ;;
  *) echo "$*" >>systemctl ;;
esac
)";

class ToolService : public ::testing::Test {
 protected:
  explicit ToolService(uint32_t max_ttl_ms = ToolSite::ttl_ms, uint32_t node_timeout_ms = 500)
      : site_(true, max_ttl_ms, node_timeout_ms) {
    std::filesystem::create_directories(bin_);
    std::filesystem::create_directories(states_ + "/bus.service");
    std::filesystem::create_symlink(REDLOCK_TOOL, bin_ + "/redlock");
    std::string script = text_of_file(std::string(REDLOCK_SOURCE_DIR) + "/src/tool/service/redlock-service");
    script = replace_all(script, "drop_ins=/etc/systemd/system\n", "drop_ins=" + etc_ + "\n");
    script = replace_all(script, "patience_s=30 ", "patience_s=1 ");
    write_program("redlock-service", replace_all(script, "states=/run/redlock ", "states=" + states_ + " "));
    write_program("systemctl", replace_all(systemctl, "@dir@", site_.dir));
  }

  void write_program(const std::string& name, const std::string& text) {
    std::ofstream(bin_ + "/" + name) << text;
    std::filesystem::permissions(bin_ + "/" + name, std::filesystem::perms(0755));
  }
  void write_unit(const std::string& text, const std::string& name = "bus.service") {
    std::filesystem::create_directories(site_.dir + "/units");
    std::ofstream(site_.dir + "/units/" + name) << text;
  }
  // Another drop-in of the unit, in etc/ or vendor/.
  void write_drop_in(const std::string& name, const std::string& service = "ExecStart=\nExecStart=/bin/other 2") {
    std::filesystem::create_directories(site_.dir + "/" + std::filesystem::path(name).parent_path().string());
    std::ofstream(site_.dir + "/" + name) << "[Service]\n" << service << "\n";
  }
  std::string what_counts() { return shell("systemctl show -p ExecStart -- bus.service").out; }
  Words words(const std::string& line) const {
    return {"bash", "-c", "export PATH=" + bin_ + ":$PATH REDLOCK_CONFIG=" + site_.config + "; " + line};
  }
  Ended shell(const std::string& line, const Words& environment = {}) {
    return run_program(words(line), site_.dir, {environment, false});
  }
  // What the drop-in starts, with `command` under the lock of `bus`.
  std::string run_line(const std::string& command) const {
    return "exec redlock-service --run " + states_ + "/bus.service bus -- " + command;
  }
  void hold_as(const std::string& gateway, int ms = 60'000) {
    const std::string value = std::string(40, 'a') + ":" + gateway;
    for (size_t m = 0; m < 2; ++m) site_.masters[m].command({"SET", "bus", value, "PX", std::to_string(ms)});
  }
  std::string drop_in() const { return text_of_file(ours_); }

  ToolSite site_;
  const std::string bin_ = site_.dir + "/bin", etc_ = site_.dir + "/etc", states_ = site_.dir + "/states";
  const std::string ours_ = etc_ + "/bus.service.d/zzzz-redlock.conf", old_ = etc_ + "/bus.service.d/redlock.conf";
};

}  // namespace redlock::test
