// SPDX-License-Identifier: MIT
//
// What `redlock` brings along for its place: a systemd unit, a procd script, a cron line, completion, pages, and a
// program in another language. Each is run as it stands, but for paths.
#include <gtest/gtest.h>

#include <regex>

#include "notify_socket.hpp"
#include "tool_site.hpp"

namespace redlock::test {
namespace {

std::string source(const std::string& path) { return std::string(REDLOCK_SOURCE_DIR) + "/" + path; }
bool has(const std::string& program) { return std::system(("command -v " + program + " >/dev/null").c_str()) == 0; }

std::string replace_all(std::string text, const std::string& old, const std::string& now) {
  for (size_t at = 0; (at = text.find(old, at)) != std::string::npos; at += now.size()) {
    text.replace(at, old.size(), now);
  }
  return text;
}

class ToolPlace : public ::testing::Test {
 protected:
  Ended shell(const std::string& script, const Words& environment = {}) {
    Program program({"bash", "-c", script}, site_.dir, {environment, false});
    const int status = program.exit_status();
    return {status, program.out(), program.err()};
  }

  ToolSite site_;
  const std::string with_config_ = std::string(REDLOCK_TOOL) + " run -C " + site_.config;
};

TEST_F(ToolPlace, TheUnitIsWellFormed) {
  const std::string unit = text_of_file(source("src/tool/service/redlock@.service"));
  for (const char* line : {"KillMode=control-group\n", "KillSignal=SIGKILL\n", "SuccessExitStatus=79\n"}) {
    EXPECT_NE(unit.find(line), std::string::npos) << line;
  }
  if (!has("systemd-analyze")) GTEST_SKIP() << "systemd-analyze is not here";
  const std::string file = site_.dir + "/redlock@.service";
  std::ofstream(file) << replace_all(replace_all(unit, "/usr/bin/redlock", REDLOCK_TOOL), "Documentation=", "#");
  const Ended ended = shell("systemd-analyze verify " + file);
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.err.find("redlock@"), std::string::npos) << ended.err;
}

TEST_F(ToolPlace, TheUnitsCommandTellsSystemd) {
  const std::string unit = text_of_file(source("src/tool/service/redlock@.service"));
  std::smatch found;
  ASSERT_TRUE(std::regex_search(unit, found, std::regex("\nExecStart=/usr/bin/redlock run (.*)\n")));
  const std::string arguments = replace_all(replace_all(found[1], "${COMMAND}", "'echo at work'"), "%I", "a/b");
  const std::string line = with_config_ + " " + arguments;
  NotifySocket systemd(site_.dir + "/notify");
  const Ended ended = shell("exec " + line, {"NOTIFY_SOCKET=" + systemd.path()});
  EXPECT_EQ(systemd.heard(MSG_DONTWAIT), "READY=1\nSTATUS=holding a/b");
  EXPECT_EQ(ended.out, "at work\n") << ended.err;
  EXPECT_EQ(ended.status, 0);
}

// procd's functions are replaced by one that runs the command.
TEST_F(ToolPlace, TheProcdScriptStartsTheCommand) {
  std::string script = text_of_file(source("src/tool/service/redlock-job.init"));
  script = replace_all(script, "/usr/bin/redlock run", with_config_);
  script = replace_all(script, "/usr/bin/poll-meters", "echo polled");
  const Ended ended = shell("procd_open_instance() { :; }; procd_close_instance() { :; }\n"
                            "procd_set_param() { if [ $1 = command ]; then shift; \"$@\"; fi; }\n" +
                            script + "\nstart_service");
  EXPECT_EQ(ended.out, "polled\n") << ended.err;
}

TEST_F(ToolPlace, TheCronLineIsQuietWhereOthersDoTheWork) {
  std::smatch found;
  const std::string text = text_of_file(source("src/tool/service/redlock.cron"));
  ASSERT_TRUE(std::regex_search(text, found, std::regex("\n\\*/5 \\* \\* \\* \\* root /usr/bin/redlock run (.*)\n")));
  const std::string line = with_config_ + " " + replace_all(found[1], "/usr/bin/read-meters", "echo read");
  EXPECT_EQ(shell(line).out, "read\n");
  site_.hold_by_other("plant1/rs485-a");
  const Ended ended = shell(line);
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(ended.out, "");
}

TEST_F(ToolPlace, Completion) {
  const std::string path = "PATH=" + std::filesystem::path(REDLOCK_TOOL).parent_path().string() + ":$PATH; ";
  const auto complete = [&](const std::string& words, int at) {
    return shell(path + ". " + source("src/tool/completion/redlock") + "; COMP_WORDS=(" + words + "); COMP_CWORD=" +
                 std::to_string(at) + "; _redlock; echo ${COMPREPLY[*]}").out;
  };
  EXPECT_EQ(complete("redlock ho", 1), "hold\n");
  EXPECT_EQ(complete("redlock run --max", 2), "--max-hold\n");
  EXPECT_EQ(complete("redlock run --pi", 2), "--pidns\n");
  EXPECT_EQ(complete("redlock run --on-lost k", 3), "kill\n");
  EXPECT_EQ(complete("redlock config t", 2), "template\n");
}

TEST_F(ToolPlace, ThePageNamesEveryCommandAndOption) {
  const std::string page = replace_all(text_of_file(source("src/tool/man/redlock.1")), "\\-", "-");
  const Ended commands = run_redlock({"--help"}, site_.dir);
  std::stringstream lines(commands.out);
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (!std::regex_search(line, found, std::regex("^  ([a-z]+) "))) continue;
    EXPECT_NE(page.find(found[1].str()), std::string::npos) << found[1];
    std::string help = run_redlock({found[1], "--help"}, site_.dir).out;
    for (const std::regex option("--[a-z-]+"); std::regex_search(help, found, option); help = found.suffix()) {
      if (found[0] == "--help") continue;
      EXPECT_NE(page.find(found[0].str()), std::string::npos) << found[0];
    }
  }
}

TEST_F(ToolPlace, APythonProgramNeedsNoBinding) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "Python is not built with the sanitizer";
#endif
  if (!has("python3") || std::string(REDLOCK_LIBRARY).find(".so") == std::string::npos) GTEST_SKIP();
  const std::string line = "python3 " + source("examples/lock.py") + " " + site_.config + " bus";
  const Words library = {std::string("LIBREDLOCK=") + REDLOCK_LIBRARY};
  const Ended ended = shell(line, library);
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(ended.out.find("ours for 2"), 0u) << ended.out;
  EXPECT_EQ(site_.masters.holders("bus"), 0u);
}

}  // namespace
}  // namespace redlock::test
