// SPDX-License-Identifier: MIT
//
// What `redlock` brings along for its place: a systemd unit, a procd script with its configuration, a cron line,
// completion, pages, and a program in another language. Each is run as it stands, but for paths.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <thread>

#include "notify_socket.hpp"
#include "tool_site.hpp"

namespace redlock::test {
namespace {

std::string source(const std::string& path) { return std::string(REDLOCK_SOURCE_DIR) + "/" + path; }
std::string tool_folder() { return std::filesystem::path(REDLOCK_TOOL).parent_path(); }
bool is_here(const std::string& program) { return std::system(("command -v " + program + " >/dev/null").c_str()) == 0; }

class ToolPlace : public ::testing::Test {
 protected:
  Ended shell(const std::string& line, const Words& environment = {}) const { return site_.shell(line, environment); }

  ToolSite site_;
  const std::string with_config_ = std::string(REDLOCK_TOOL) + " run -C " + site_.config;
};

TEST_F(ToolPlace, TheUnitIsWellFormed) {
  const std::string unit = text_of_file(source("src/tool/service/redlock@.service.in"));
  for (const char* line : {"KillMode=control-group\n", "KillSignal=SIGKILL\n", "SuccessExitStatus=79\n",
                           "StartLimitIntervalSec=0\n", "Restart=always\n"}) {
    EXPECT_NE(unit.find(line), std::string::npos) << line;
  }
  EXPECT_EQ(unit.find("RestartPrevent"), std::string::npos) << "a new file mends a wrong one";
  if (!is_here("systemd-analyze")) GTEST_SKIP() << "systemd-analyze is not here";
  for (const char* name : {"redlock@.service", "redlock-metrics.service", "redlock-metrics.timer"}) {
    std::string text = text_of_file(source("src/tool/service/" + std::string(name) + ".in"));
    text = replace_all(text, "@redlock_bindir@/redlock-service", source("src/tool/service/redlock-service"));
    text = replace_all(text, "@redlock_bindir@/redlock", REDLOCK_TOOL);
    std::ofstream(site_.dir + "/" + name) << replace_all(text, "Documentation=", "#");
  }
  const Ended ended = shell("cd " + site_.dir + "; systemd-analyze verify ./redlock@.service ./redlock-metrics.timer");
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.err.find("redlock"), std::string::npos) << ended.err;
}

// The file is the one that the alarms of the guide look for.
TEST_F(ToolPlace, TheUnitOfMetricsWritesItsFile) {
  const std::string unit = text_of_file(source("src/tool/service/redlock-metrics.service.in"));
  std::smatch found;
  ASSERT_TRUE(std::regex_search(unit, found, std::regex("\nExecStart=@redlock_bindir@/redlock status (.*)\n")));
  const std::string line = std::string(REDLOCK_TOOL) + " status -C " + site_.config + " " + found[1].str();
  ASSERT_TRUE(std::regex_search(unit, found, std::regex("\nEnvironment=FILE=/[a-z/-]+(/redlock[.]prom)\n")));
  const std::string file = site_.dir + found[1].str();
  for (const std::string names : {"", "bus led"}) {
    const Ended ended = shell(line, {"FILE=" + file, "RESOURCES=" + names});
    EXPECT_EQ(ended.status, 0) << ended.err;
    const std::string text = text_of_file(file);
    EXPECT_NE(text.find("\nredlock_masters_up 3\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("\nredlock_resource_held{resource=\"led\"} 0\n") == std::string::npos, names.empty()) << text;
  }
}

TEST_F(ToolPlace, TheUnitsCommandTellsSystemd) {
  const std::string unit = text_of_file(source("src/tool/service/redlock@.service.in"));
  std::smatch found;
  ASSERT_TRUE(std::regex_search(unit, found, std::regex("\nExecStart=@redlock_bindir@/redlock(-service --run .*)\n")));
  const std::string arguments = replace_all(replace_all(found[1], "${COMMAND}", "'echo at work'"), "%I", "a/b");
  const std::string line = "env REDLOCK_CONFIG=" + site_.config + " PATH=" + tool_folder() + ":$PATH " +
                           source("src/tool/service/redlock") + replace_all(arguments, "%t/redlock/%n", site_.dir);
  NotifySocket systemd(site_.dir + "/notify");
  const Ended ended = shell("exec " + line, {"NOTIFY_SOCKET=" + systemd.path()});
  EXPECT_EQ(systemd.heard(MSG_DONTWAIT), "READY=1\nSTATUS=holding a/b");
  EXPECT_EQ(ended.out, "at work\n") << ended.err;
  EXPECT_EQ(ended.status, 0);
  const std::string file = site_.dir + "/job.prom";
  shell("exec " + line, {"NOTIFY_SOCKET=" + systemd.path(), "OPTIONS=--metrics " + file});
  EXPECT_TRUE(std::filesystem::exists(file));
}

// What OpenWrt has for an init script, as far as ours uses it. procd is told what stands in its lines; with RUNS set,
// it runs the command.
constexpr char openwrt[] = R"(
config_load() {
  while read -r word name value; do
    value=${value#\'} value=${value%\'}
    case $word in
      config) section=$value sections="$sections $value"; eval "type_$value=$name" ;;
      option) eval "value_${section}_$name=\$value" ;;
      list) eval "value_${section}_$name=\"\${value_${section}_$name:+\$value_${section}_$name }\$value\"" ;;
    esac
  done <"$1"
}
config_get() { eval "$1=\${value_$2_$3:-\$4}"; }
config_foreach() { for one in $sections; do eval "[ \$type_$one != $2 ] || $1 $one"; done; }
logger() { shift 3; echo "$*" >&2; }
procd_open_instance() { echo "instance $*"; }
procd_set_param() {
  if [ "$RUNS$1" = yescommand ]; then shift; "$@"; else echo "$*"; fi
}
procd_close_instance() { :; }
procd_add_reload_trigger() { echo "trigger $*"; }
)";

class ToolProcd : public ToolPlace {
 protected:
  // Calls a function of the script, with this /etc/config/redlock.
  Ended procd(const std::string& uci, const std::string& function = "start_service", bool runs = false) {
    std::ofstream(site_.dir + "/uci") << uci;
    std::string script = text_of_file(source("src/tool/service/redlock.init.in"));
    script = replace_all(script, "program=@redlock_bindir@/redlock\n", "program=" REDLOCK_TOOL "\n");
    script = replace_all(script, "runner=@redlock_bindir@/redlock-service ", "runner=" + runner_ + " ");
    script = replace_all(script, "=/var/", "=" + site_.dir + "/var/");
    script = replace_all(script, "config_load redlock", "config_load " + site_.dir + "/uci");
    std::ofstream(site_.dir + "/script") << openwrt << script << "\n" << function << "\n";
    const std::string path = "PATH=" + tool_folder() + ":$PATH ", ash = is_here("busybox") ? "busybox ash " : "sh ";
    return shell(path + (runs ? "RUNS=yes " : "") + ash + site_.dir + "/script");
  }
  std::string site_options() {
    std::string all = "config site 'site'\n";
    for (const std::string& url : site_.masters.urls()) all += " list master '" + url + "'\n";
    return all + " option ttl_ms '2400'\n option max_ttl_ms '2400'\n";
  }

  const std::string example_ = text_of_file(source("src/tool/service/redlock.config"));
  const std::string runner_ = source("src/tool/service/redlock-service");
  const std::string rendered_ = site_.dir + "/var/etc/redlock.json";
};

TEST_F(ToolProcd, TheExampleStartsNothingAndEachOptionOfItCounts) {
  EXPECT_EQ(procd(example_).out, "");
  EXPECT_EQ(procd(replace_all(example_, "\toption enabled '0'\n", "")).out, "");
  std::string enabled = replace_all(example_, "enabled '0'", "enabled '1'");
  const Ended few = procd(enabled);
  EXPECT_EQ(few.out.find("instance poller\ncommand " + runner_ + " --run " + site_.dir + "/var/run/redlock/poller -C " +
                         rendered_ + " plant1/rs485-a -- /bin/sh -c /usr/bin/poll-meters --fast\n"), 0u)
      << few.out << few.err;
  enabled = replace_all(enabled, "#\toption", "\toption");
  const std::string rendered = replace_all(enabled, "\toption config", "#");
  const Ended all = procd(replace_all(rendered, "'secret'", "'se\"c\\r*et'"));
  EXPECT_NE(all.out.find(" --urgent plant1/rs485-a -- "), std::string::npos) << all.out << all.err;
  EXPECT_EQ(text_of_file(rendered_),
            "{\n  \"masters\": [\"redis://10.0.0.11\", \"redis://10.0.0.12\", \"redis://10.0.0.13\"],\n"
            "  \"client_name\": \"gw-1\",\n  \"key_prefix\": \"plant1/\",\n  \"username\": \"gateway\",\n"
            "  \"password\": \"se\\\"c\\\\r*et\",\n  \"defaults\": { \"ttl_ms\": 10000 },\n"
            "  \"timing\": { \"max_ttl_ms\": 30000 }\n}\n");
  EXPECT_EQ(std::filesystem::status(rendered_).permissions(), std::filesystem::perms(0600));
  EXPECT_NE(procd(enabled).out.find(" -C /etc/redlock/redlock.json --urgent "), std::string::npos);
  EXPECT_EQ(procd(example_, "service_triggers").out, "trigger redlock\n");
}

TEST_F(ToolProcd, AServiceRunsUnderItsLock) {
  const Ended ended = procd(site_options() + "config service 'poller'\n option enabled '1'\n list resource 'a'\n"
                                             " list resource 'b'\n option command 'echo held: $REDLOCK_HELD'\n",
                            "start_service", true);
  EXPECT_NE(ended.out.find("held: 1\n"), std::string::npos) << ended.out << ended.err;
}

TEST_F(ToolProcd, WrongValuesAreNamedAndLeaveEverythingAsItIs) {
  const std::string service = "config service 'poller'\n";
  const std::string sound = service + " option enabled '1'\n list resource 'a'\n option command 'true'\n";
  ASSERT_NE(procd(site_options() + sound).out, "");
  const std::string before = text_of_file(rendered_);
  const struct {
    std::string uci;
    const char* said;
  } mistakes[] = {
      {sound, "site: there is no list master"},
      {site_options() + service + " option enabled 'maybe'\n", "service poller: option enabled is 'maybe'"},
      {site_options() + replace_all(sound, "list resource", "list resorce"), "poller: there is no list resource"},
      {site_options() + replace_all(sound, "option command", "option comand"), "poller: there is no option command"},
      {replace_all(site_options(), "max_ttl_ms '2400'", "max_ttl_ms '2.4s'") + sound, "option max_ttl_ms is '2.4s'"},
      {replace_all(site_options(), " ttl_ms '2400'", " ttl_ms '2401'") + sound, "site: .*ttl_ms"},
      {replace_all(site_options(), "redis:", "http:") + sound, "site: .*masters"},
      {site_options() + " option password 'a\tb'\n" + sound, "site: .*control"},
  };
  for (const auto& mistake : mistakes) {
    const Ended ended = procd(mistake.uci);
    EXPECT_EQ(ended.status, 1) << mistake.uci;
    EXPECT_EQ(ended.out, "") << mistake.uci;
    EXPECT_TRUE(std::regex_search(ended.err, std::regex(mistake.said))) << mistake.uci << ended.err;
    EXPECT_EQ(text_of_file(rendered_), before) << mistake.uci;
  }
}

// The cron line on three gateways whose clocks are 0.4 and 10 s apart. All times are a fifth of these, and of those in
// the line.
TEST_F(ToolPlace, OfThreeGatewaysOneDoesTheWorkOfTheCronLine) {
  std::smatch found;
  const std::string text = text_of_file(source("src/tool/service/redlock.cron.in"));
  const std::regex line_of_job("\n\\*/5 \\* \\* \\* \\* root @redlock_bindir@/redlock run (.*)\n");
  ASSERT_TRUE(std::regex_search(text, found, line_of_job));
  ToolSite site(true, 6'000);
  std::string arguments = replace_all(found[1], "/usr/bin/read-meters", "echo read");
  for (const auto& [slow, fast] : {std::pair("-t 30000 ", "-t 6000 "), std::pair("--at-least 30 ", "--at-least 6 ")}) {
    ASSERT_NE(arguments.find(slow), std::string::npos);
    arguments = replace_all(arguments, slow, fast);
  }
  const Words line = {"sh", "-c", "exec " REDLOCK_TOOL " run -C " + site.config + " " + arguments};
  const std::string resource = "plant1/rs485-a";
  const auto start = [&] { return std::make_unique<Program>(line, site.dir); };
  const auto expect_silence = [&] {
    const auto loser = start();
    EXPECT_EQ(loser->exit_status(), 0);
    EXPECT_EQ(loser->out() + loser->err(), "");
  };
  auto winner = start();
  ASSERT_TRUE(eventually([&] { return winner->out() == "read\n" && children_of(winner->pid()).empty(); }));
  for (const int skew_ms : {0, 80, 1'920}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(skew_ms));
    expect_silence();
  }
  winner->signal(SIGTERM);
  EXPECT_EQ(winner->exit_status(), 0) << winner->err();
  // The next time the winner dies behind its work: two thirds of the ttl are left at least.
  winner = start();
  ASSERT_TRUE(eventually([&] { return winner->out() == "read\n" && children_of(winner->pid()).empty(); }));
  winner->signal(SIGKILL);
  EXPECT_EQ(winner->exit_status(), 128 + SIGKILL);
  // A program begins with the first masters that vote, so one may have no key.
  int with_key = 0;
  for (unsigned m = 0; m < 3; ++m) {
    with_key += std::stoll(site.masters[m].command({"PTTL", resource})) >
                4'000 - 2'000;  // 2 s for a slow machine
  }
  EXPECT_GE(with_key, 2);
  expect_silence();
}

std::set<std::string> all_of(std::string text, const std::regex& what) {
  std::set<std::string> found;
  for (std::smatch one; std::regex_search(text, one, what); text = one.suffix()) found.insert(one[1]);
  return found;
}

// The options in the manual's list for a command, and for all commands.
std::set<std::string> options_of(const std::string& page, const std::string& command) {
  std::set<std::string> found;
  const std::regex option("(--[a-z]+(-[a-z]+)*)");
  std::string section = "of all";
  bool in_options = false, is_tag = false;
  std::stringstream lines(page);
  for (std::string line; std::getline(lines, line); is_tag = line == ".TP") {
    if (line.rfind(".SH", 0) == 0) in_options = line == ".SH OPTIONS";
    if (line.rfind(".SS Of ", 0) == 0) section = line;
    const bool is_ours = section == "of all" || section.find(" " + command) != std::string::npos;
    if (in_options && is_tag && is_ours) found.merge(all_of(line, option));
  }
  return found;
}

// What is typed is told in three places: by --help, by completion, which asks --help, and in the manual.
TEST_F(ToolPlace, HelpCompletionAndManualHaveTheSameOptions) {
  const std::string page = replace_all(text_of_file(source("src/tool/man/redlock.1")), "\\-", "-");
  const auto complete = [&](const std::string& words, int at) {
    return shell("PATH=" + tool_folder() + ":$PATH; . " + source("src/tool/completion/redlock") + "; COMP_WORDS=(" +
                 words + "); COMP_CWORD=" + std::to_string(at) + "; _redlock; printf '%s\\n' \"${COMPREPLY[@]}\"").out;
  };
  EXPECT_EQ(complete("redlock ru", 1) + complete("redlock run --pi", 2), "run\n--pidns\n");
  EXPECT_EQ(complete("redlock run --signal K", 3) + complete("redlock config t", 2), "KILL\ntemplate\n");
  const std::set<std::string> commands = all_of(run_redlock({"--help"}, site_.dir).out, std::regex("\n  ([a-z]+) "));
  EXPECT_EQ(commands.size(), 7u);
  for (const std::string& command : commands) {
    EXPECT_NE(page.find("\\fBredlock " + command), std::string::npos) << "the synopsis has no " << command;
    const std::string help = run_redlock({command, "--help"}, site_.dir).out;
    std::set<std::string> told = all_of(help, std::regex("\n  (?:-[a-zA-Z],|   ) (--[a-z-]+)"));
    const std::string completed = complete("redlock " + command + " --", 2);
    EXPECT_EQ(all_of(completed, std::regex("(--[a-z-]+)\n")), told) << command << " is completed";
    ASSERT_EQ(told.erase("--help"), 1u) << command;
    EXPECT_EQ(options_of(page, command), told) << command << " in the manual";
  }
}

// The lines that the pages teach, as they stand there.
TEST_F(ToolPlace, ThePagesTeachTheSameTwoLines) {
  const std::regex script(R"(\[ "\$REDLOCK_RESOURCE" = \S+ \] \|\| exec redlock run (-w \S+ )?\S+ -- sh "\$0" "\$@")");
  const std::regex leads(R"(redlock run \S+ -- sh -c 'echo held; exec cat')");
  EXPECT_NE(text_of_file(source("examples/site/README.md")).find("(../README.md)"), std::string::npos)
      << "the guide leads to the recipes";
  for (const char* name : {"README.md", "examples/README.md", "src/tool/man/redlock.1"}) {
    const std::string page = replace_all(text_of_file(source(name)), "\\-", "-");
    std::smatch line;
    ASSERT_TRUE(std::regex_search(page, line, script)) << name;
    const std::string file = site_.dir + "/script";
    std::ofstream(file) << replace_all(line[0], "redlock run", with_config_) << "\necho $REDLOCK_HELD $1\n";
    EXPECT_EQ(shell("sh " + file + " x").out, "1 x\n") << name;
    ASSERT_TRUE(std::regex_search(page, line, leads)) << name;
    EXPECT_EQ(shell("true | " + replace_all(line[0], "redlock run", with_config_)).out, "held\n") << name;
  }
}

// What each kind of new user types, on a terminal of 80 columns and 24 lines.
TEST_F(ToolPlace, TheExamplesOfTheManualAreOneScreen) {
  if (!is_here("man") || !is_here("nroff")) GTEST_SKIP() << "no manual reader";
  const std::string page = "LC_ALL=C MANPAGER=cat MANWIDTH=80 man -l " + source("src/tool/man/redlock.1") +
                           " 2>/dev/null | sed -n '/^EXAMPLES/,/^ENVIRONMENT/{/^ENVIRONMENT/!p}'";
  const Ended screen = shell(page);
  std::stringstream text(screen.out);
  int lines = 0, last = 0;
  for (std::string line; std::getline(text, line);) {
    ++lines;
    if (!line.empty()) last = lines;
    EXPECT_LE(line.size(), 80u) << line;
  }
  EXPECT_GE(last, 10) << screen.err;
  EXPECT_LE(last, 24) << screen.out;
  for (const char* who : {"sh \"$0\" \"$@\"", "redlock doctor", "redlock/redlock.h", "import libredlock"}) {
    EXPECT_NE(screen.out.find(who), std::string::npos) << who;
  }
}

TEST_F(ToolPlace, APythonProgramUsesTheModule) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "Python is not built with the sanitizer";
#endif
  if (!is_here("python3") || std::string(REDLOCK_LIBRARY).find(".so") == std::string::npos) GTEST_SKIP();
  const Ended ended = shell("python3 " + source("examples/lock.py") + " " + site_.config + " bus",
                            {std::string("LIBREDLOCK=") + REDLOCK_LIBRARY, "PYTHONPATH=" + source("src/python")});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(ended.out.find("ours for 2"), 0u) << ended.out;
}

}  // namespace
}  // namespace redlock::test
