// SPDX-License-Identifier: MIT
//
// What all commands of `redlock` have in common: options, the configuration, exit codes, lines on stderr.
#include <gtest/gtest.h>
#include <redlock/site.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <regex>

#include "tool_program.hpp"

namespace redlock::test {
namespace {

class Tool : public ::testing::Test {
 protected:
  Tool() {
    char name[] = "/tmp/redlock-tool.XXXXXX";
    dir_ = mkdtemp(name);
  }
  ~Tool() override { std::filesystem::remove_all(dir_); }
  Ended run(const Words& arguments) { return run_redlock(arguments, dir_); }

  std::string dir_;
};

TEST_F(Tool, TellsItsVersion) {
  for (const char* word : {"version", "--version"}) {
    const Ended ended = run({word});
    EXPECT_EQ(ended.status, 0);
    EXPECT_EQ(ended.out, std::string("redlock ") + redlock_version_string() + "\n");
    EXPECT_EQ(ended.err, "");
  }
}

TEST_F(Tool, HelpListsTheCommandsOnStdout) {
  const Ended ended = run({"--help"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_NE(ended.out.find("\n  version "), std::string::npos) << ended.out;
  const Ended one = run({"version", "-h"});
  EXPECT_EQ(one.status, 0);
  EXPECT_NE(one.out.find("--config FILE"), std::string::npos) << one.out;
  EXPECT_EQ(run({"reconfigure", "-h"}).out.find("--config"), std::string::npos) << "its files are its arguments";
}

// The words of a command line. Nobody is at the address of the file's master.
TEST_F(Tool, AMistakeIs64AndALine) {
  const std::string file = dir_ + "/one.json", longest(65, 'x'), both = " exclude each other: give one of them";
  std::ofstream(file) << R"({"masters": ["redis://127.0.0.1:1"], "timing": {"max_ttl_ms": 2400},)"
                      << R"( "defaults": {"ttl_ms": 2400}})";
  const std::string no_command = "a command is missing: RES... -- COMMAND [ARG]...", url = "--master takes a URL, ";
  const std::string seconds = " is not a number of seconds in 0..86400", name = "a resource has 1 to 64 bytes";
  const std::string which =
      "--signal takes HUP, INT, QUIT, ABRT, KILL, USR1, USR2, ALRM, WINCH, TERM or the number of one";
  const struct {
    const char* command;
    std::string arguments, words;
  } mistakes[] = {
      {"version", "-x", "there is no option -x"},
      {"version", "--x", "there is no option --x"},
      {"version", "-C", "a value is missing behind -C"},
      {"version", "--config", "a value is missing behind --config"},
      {"version", "--quiet=1", "there is no option --quiet=1"},
      {"version", "-qvx", "there is no option -x"},
      {"version", "--ver -", "it takes no argument"},
      {"version", "x", "it takes no argument"},
      {"commission", "--y x", "it takes no argument"},
      {"commission", "--yes --master m7", "no master is called 'm7'"},
      {"config", "", "check [FILE], or template"},
      {"config", "check a b", "check [FILE], or template"},
      {"config", "check a -o a", "check [FILE], or template"},
      {"config", "-C a check b", "FILE and --config" + both},
      {"config", "-C a template", "template and --config" + both},
      {"doctor", "''", name},
      {"doctor", "-q -v", "--verbose and --quiet" + both},
      {"doctor", "--master 127.0.0.1:29999", url + "such as redis://127.0.0.1:29999"},
      {"reconfigure", "--yes a", "it takes two files, OLD and NEW"},
      {"reconfigure", "--yes -C a a b", "there is no option -C"},
      {"status", "''", name},
      {"status", longest, name},
      {"status", "-o a", "--output is for --prometheus"},
      {"status", "--json --prometheus", "--json and --prometheus" + both},
      {"status", "--scan --wait 1", "--wait and --scan" + both},
      {"status", "--watch --json", "--watch and --json, --prometheus, --scan, --wait" + both},
      {"status", "--master 127.0.0.1:29999", url + "such as redis://127.0.0.1:29999"},
      {"run", "--m 1", "there is no option --m"},
      {"run", "bus", no_command},
      {"run", "-- true", no_command},
      {"run", "bus pump --", no_command},
      {"run", "-n bus ls -l '/a b'", "-- is missing before the command: redlock run -n bus -- ls -l '/a b'"},
      {"run", "bus -w 0 -v -- true", "options stand before the names: redlock run -w 0 -v bus -- true"},
      {"run", "bus --no-such -- true", "there is no option --no-such"},
      {"run", longest + " -- true", name},
      {"run", "a b c d e -- true", "more than 4 resources"},
      {"run", "-t 2000 bus -- true",
       "a ttl of 2000 ms is too short: a command must be ended before others can hold the lock; 2400 ms are enough"},
      {"run", "-t 2400x bus -- true", "'2400x' is not a number in 20..86400000"},
      {"run", "-w 1,5 bus -- true", "'1,5'" + seconds},
      {"run", "-w . bus -- true", "'.'" + seconds},
      {"run", "-w s bus -- true", "'s'" + seconds},
      {"run", "--max-hold 2.3 bus -- true",
       "--max-hold is shorter than the ttl of 2400 ms, which the lock lives for without a renewal: give a shorter "
       "--ttl as well"},
      {"run", "--at-least 4 --max-hold 3 bus -- true", "--at-least is longer than --max-hold"},
      {"run", "--master 127.0.0.1:1 bus -- true", url + "such as redis://127.0.0.1:1"},
      {"run", "--signal hop bus -- true", which},
      {"run", "--signal STOP bus -- true", which},
      {"run", "--signal 15x bus -- true", which},
      {"run", "--signal 0 bus -- true", which},
      {"run", "--signal 19 bus -- true", which},
      {"run", "--signal 65 bus -- true", which},
      {"run", "-n -w 5 bus -- true", "--nonblock and --wait" + both},
      {"run", "-n -w 0 bus -- true", "--nonblock and --wait" + both},
      {"run", "-s KILL -k 3 bus -- true", "--kill-after and --signal KILL" + both},
      {"run", "-vq bus -- true", "--verbose and --quiet" + both},
  };
  const auto expect = [&](const std::string& arguments, const std::string& line) {
    const Words words = {"timeout", "20", "sh", "-c", REDLOCK_TOOL + (" " + arguments)};  // what is taken may wait
    Program program(words, dir_, {{"REDLOCK_CONFIG=" + file}, false});
    EXPECT_EQ(program.exit_status(), 64) << arguments;
    EXPECT_EQ(program.err(), "redlock: " + line + "\n") << arguments;
    EXPECT_EQ(program.out(), "");
  };
  for (const auto& [command, arguments, words] : mistakes) {
    const std::string of = command;
    expect(of + " " + arguments, of + ": " + words + "; see redlock " + of + " --help");
  }
  expect("", "which command? see redlock --help");
  expect("lock", "there is no command 'lock'; see redlock --help");
  expect("help lock", "there is no command 'lock'; see redlock --help");
  expect("run redlock::meta -- true", "a name makes a key of the library's own: redlock:{key_prefix}:...");
  expect("run -t 30000 bus -- true", "ttl_ms 30000 is above timing.max_ttl_ms 2400");
  for (const char* verbosity : {"", "-v ", "-vv "}) {
    expect(std::string("run ") + verbosity + "bus bus -- true", "a name is given twice");
  }
}

// Options stand before and behind other arguments, a value is attached or follows, names are cut, letters together.
TEST_F(Tool, OptionsAreReadAsGetoptDoes) {
  const std::string file = dir_ + "/one.json";
  std::ofstream(file) << R"({"masters": ["redis://10.0.0.11:6379"]})";
  const Words forms[] = {{"check", "-C", file},   {"-C", file, "check"},      {"check", "-C" + file},
                         {"check", "--conf", file}, {"--config=" + file, "check"}, {"-qC", file, "check"},
                         {"check", "--", file},   {"-qC" + file, "--", "check"}};
  for (const Words& form : forms) {
    Words words = {"config"};
    words.insert(words.end(), form.begin(), form.end());
    const Ended ended = run(words);
    EXPECT_EQ(ended.out, file + ": valid\n") << ::testing::PrintToString(form) << ended.err;
  }
  EXPECT_EQ(run({"version", "--"}).status, 0);
}

TEST_F(Tool, TheTemplateIsAValidFileOfDefaults) {
  const Ended ended = run({"config", "template"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  const std::string file = dir_ + "/redlock.json";
  std::ofstream(file) << ended.out;
  EXPECT_EQ(run({"config", "check", file}).out, file + ": valid\n") << run({"config", "check", file}).err;
  std::stringstream values(run({"config", "check", "-v", file}).out);
  const std::string plain = dir_ + "/plain.json";
  std::ofstream(plain) << R"({"masters": ["redis://10.0.0.11:6379",)"
                       << R"({ "url": "redis://10.0.0.12:6379", "name": "pump-house" }, "redis://10.0.0.13:6379"]})";
  std::stringstream defaults(run({"config", "check", "-v", "-C", plain}).out);
  int lines = 0;
  std::string set, by_default;
  for (; std::getline(values, set) && std::getline(defaults, by_default); ++lines) {
    EXPECT_EQ(by_default.find(set), 0u) << set << " is not what " << by_default;
  }
  EXPECT_TRUE(values.eof() && !std::getline(defaults, by_default));
  EXPECT_GE(lines, 28 + 3) << "keys, and masters";
}

// In the parser's order, with its ranges. The default of a text may be the host's, so those of numbers are compared.
TEST_F(Tool, TheTemplateTellsEachKeyOfTheParser) {
  const std::string all = run({"config", "template"}).out;
  redlock_config_t* cfg = nullptr;
  ASSERT_EQ(redlock_config_new(&cfg), 0);
  ASSERT_EQ(redlock_config_add_master(cfg, "redis://127.0.0.1"), 0);
  redlock_setting_t setting{};
  setting.size = sizeof setting;
  size_t at = 0;
  for (uint32_t i = 0; redlock_site_setting(cfg, i, &setting) == 0; ++i) {
    const std::string key = setting.key;
    const size_t dot = key.find('.');
    if (dot != std::string::npos) at = all.find("\n  \"" + key.substr(0, dot) + "\": {\n");
    const std::string value = setting.is_text != 0 ? "\"" : setting.value;
    at = all.find("\"" + key.substr(dot + 1) + "\": " + value, at);
    ASSERT_NE(at, std::string::npos) << key;
    const size_t line = all.rfind('\n', at);
    const std::string range = "// " + std::string(setting.range);
    const bool is_guards = key == "timing.guard_wait_ms";
    EXPECT_TRUE(!is_guards || value == "60604") << "two guard times, of 30 s, 1 % and 2 ms: " << value;
    EXPECT_EQ(all.compare(line - range.size(), range.size(), range), 0) << key << " is " << setting.range;
  }
  redlock_config_free(cfg);
}

// The masters of the command line, in a file that others cannot read, and whose group is the folder's.
TEST_F(Tool, TheTemplateMakesAWholeConfiguration) {
  const std::string folder = dir_ + "/my etc", file = folder + "/redlock.json";
  const Words words = {"config", "template", "--master", "redis://u:a%22@10.0.0.1:7001", "--master",
                       R"(unix:///r"\n)", "-o", file};
  const mode_t before = umask(022);
  const Ended ended = run(words);
  umask(before);
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.out, "");
  EXPECT_EQ(ended.err, "redlock: " + file + " is written; next: redlock doctor -C '" + file + "'\n");
  struct stat of_file{}, of_folder{};
  ASSERT_EQ(stat(file.c_str(), &of_file), 0);
  ASSERT_EQ(stat(folder.c_str(), &of_folder), 0);
  EXPECT_EQ(of_file.st_mode & 0777u, 0640u);
  EXPECT_EQ(of_file.st_gid, of_folder.st_gid);
  EXPECT_EQ(of_folder.st_mode & 0777u, 0755u);
  const Ended checked = run({"config", "check", "-v", file});
  EXPECT_EQ(checked.status, 0) << checked.err;
  const std::string masters = "masters                    10.0.0.1:7001 (10.0.0.1:7001)\n"
                              R"(masters                    /r\"\\n (/r\"\\n))";
  EXPECT_NE(checked.out.find(masters), std::string::npos) << checked.out;
  const std::string row = "\n" R"(/r\"\\n  /r\"\\n  -  )";
  const Ended status = run({"status", "--master", R"(unix:///r"\n)"});
  EXPECT_NE(status.out.find(row), std::string::npos) << "escaped once" << status.out;

  const Ended again = run(words);  // a file of yours is never written over
  EXPECT_EQ(again.status, 74);
  EXPECT_EQ(again.err, "redlock: " + file + " cannot be made: File exists\n");
  const Ended nowhere = run({"config", "template", "-o", dir_ + "/a/b/c.json"});
  EXPECT_EQ(nowhere.status, 74);
  EXPECT_EQ(nowhere.err, "redlock: " + dir_ + "/a/b/ cannot be made: No such file or directory\n");
  EXPECT_EQ(run({"config", "template", "--master", "redis://a:70000", "-o", file + "2"}).status, 78);
  EXPECT_FALSE(std::filesystem::exists(file + "2"));
}

// A program that is not root's reads the file by its group.
TEST_F(Tool, TheTemplateTakesTheGroupOfItsFolder) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives a file to any group";
  ASSERT_EQ(chown(dir_.c_str(), static_cast<uid_t>(-1), 20), 0);
  const std::string file = dir_ + "/redlock.json";
  EXPECT_EQ(run({"config", "template", "-qo", file}).err, "");
  struct stat about{};
  ASSERT_EQ(stat(file.c_str(), &about), 0);
  EXPECT_EQ(about.st_gid, 20u);
}

// Forty gateways differ at the end of their names.
TEST_F(Tool, TheClientNameIsTheEndOfTheHostName) {
  const std::string tool = REDLOCK_TOOL, out = dir_ + "/name";
  if (std::system("unshare --uts true 2>/dev/null") != 0) GTEST_SKIP() << "no namespace for a host name";
  const std::pair<const char*, const char*> names[] = {{"gateway-plant1-north-02", "plant1-north-02"},
                                                       {"gw-17.plant1.example.org", "gw-17"}};
  for (const auto& [host, name] : names) {
    const std::string script = std::string("hostname ") + host + " && " + tool +
                               " config check -v --master redis://10.0.0.1";
    ASSERT_EQ(std::system(("unshare --uts sh -c '" + script + "' >" + out).c_str()), 0);
    const std::string text = text_of_file(out);
    EXPECT_NE(text.find(std::string(name) + "  (default)\n"), std::string::npos) << text;
  }
}

TEST_F(Tool, TheSettingsOfTlsAreShownWhereThereIsTls) {
  const std::string file = dir_ + "/tls.json";
  std::ofstream(file) << R"({"masters": ["redis://10.0.0.1"], "tls": {"ca_file": "/etc/ca.pem", "pin": ["sha256:)"
                      << std::string(64, 'a') << "\", \"sha256:" << std::string(64, 'B') << "\"]}}";
  const Ended ended = run({"config", "check", "-v", file});
#ifdef REDLOCK_TLS
  EXPECT_NE(ended.out.find("tls.ca_file                /etc/ca.pem\n"), std::string::npos) << ended.out << ended.err;
  EXPECT_NE(ended.out.find("tls.server_name              (default)\n"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("tls.min_version            1.2  (default)\n"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("tls.pin                    sha256:aaaaaaaa...,sha256:bbbbbbbb...\n"), std::string::npos)
      << ended.out;
#else
  EXPECT_EQ(ended.status, 78);
  EXPECT_EQ(ended.err, "redlock: " + file + ": tls: this build has no TLS (REDLOCK_TLS=off)\n");
#endif
}

TEST_F(Tool, ThePageOfTheFileIsThatOfTheTable) {
  const std::string source = REDLOCK_SOURCE_DIR, page = dir_ + "/page.5";
  const std::string tool = REDLOCK_TOOL, script = source + "/toolchains/man_page.py >";
  const std::string command = "(" + tool + " version; " + tool + " config template) | " + script;
  ASSERT_EQ(std::system((command + page).c_str()), 0);
  EXPECT_EQ(text_of_file(page), text_of_file(source + "/src/tool/man/redlock.json.5"))
      << command << "src/tool/man/redlock.json.5";
}

TEST_F(Tool, TheExamplesOfThePageAreValid) {
  const std::string page = text_of_file(REDLOCK_SOURCE_DIR "/src/tool/man/redlock.json.5");
  const std::regex block("\n\\.nf\n([^]*?)\n\\.fi\n");
  std::vector<std::string> said;
  for (std::sregex_iterator at(page.begin(), page.end(), block), end; at != end; ++at) {
    const std::string file = dir_ + "/example.json";
    std::ofstream(file) << (*at)[1];
    std::filesystem::permissions(file, std::filesystem::perms(0600));
    const Ended ended = run({"config", "check", file});
    said.push_back(std::to_string(ended.status) + " " + ended.err);
  }
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[0], "0 ");
#ifdef REDLOCK_TLS
  EXPECT_TRUE(said[1] == "0 " || said[1].find("tls.ca_file") != std::string::npos) << said[1];  // there is no such file
#else
  EXPECT_NE(said[1].find("this build has no TLS"), std::string::npos) << said[1];
#endif
}

TEST_F(Tool, AWrongFileIs78WithFieldValueAndRange) {
  const std::string file = dir_ + "/wrong.json";
  std::ofstream(file) << "{\n  // a comment\n  \"masters\": [\"redis://10.0.0.1\"],\n"
                         "  \"timing\": {\"node_timeout_ms\": 4}}";
  for (const Words& arguments : std::vector<Words>{{"config", "check", file}, {"config", "check", "-C", file}}) {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.status, 78);
    EXPECT_EQ(ended.err, "redlock: " + file + ": timing.node_timeout_ms: 4 is not in 5..10000\n");
  }
  const Ended secret = run({"config", "check", "-v", "--master", "redis://locker:hush@10.0.0.1"});
  EXPECT_EQ(secret.status, 0);
  EXPECT_EQ(secret.out.find("hush"), std::string::npos);
  EXPECT_EQ(run({"config", "check", "--master", "redis://10.0.0.1", "--master", "redis://10.0.0.2"}).err,
            "redlock: 2 masters: an even number costs a master and buys nothing\n");
}

TEST_F(Tool, NoCommandTakesAPasswordThatOthersCanRead) {
  const std::string file = dir_ + "/open.json", good = dir_ + "/good.json";
  std::ofstream(file) << R"({"masters": ["redis://10.0.0.1"], "password": "hush"})";
  std::ofstream(good) << R"({"masters": ["redis://10.0.0.1"]})";
  ::chmod(file.c_str(), 0644);
  for (const Words& arguments : std::vector<Words>{{"run", "-n", "-C", file, "bus", "--", "true"},
                                                   {"status", "-C", file},
                                                   {"commission", "-C", file, "--yes"},
                                                   {"reconfigure", "--yes", good, file},
                                                   {"doctor", "-C", file},
                                                   {"config", "check", file}}) {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.status, 78) << arguments[0];
    EXPECT_EQ(ended.err, "redlock: " + file + ": others can read its password; type: chmod o-r " + file + "\n")
        << arguments[0];
  }
  ::chmod(file.c_str(), 0620);
  EXPECT_EQ(run({"config", "check", file}).err,
            "redlock: " + file + ": can be written by group or others; type: chmod go-w " + file + "\n");
  for (const mode_t enough : {0600u, 0640u}) {
    ::chmod(file.c_str(), enough);
    EXPECT_EQ(run({"config", "check", file}).out, file + ": valid\n");
  }
}

TEST_F(Tool, TheFileIsThatOfTheOptionOfTheEnvironmentOrOfEtc) {
  const std::string file = dir_ + "/one.json";
  std::ofstream(file) << R"({"masters": ["redis://10.0.0.1"]})";
  const Program::Setting with = {{"REDLOCK_CONFIG=" + file}, false};
  EXPECT_EQ(run_redlock({"config", "check"}, dir_, with).out, file + ": valid\n");
  EXPECT_EQ(run_redlock({"config", "check", "-C", "/no"}, dir_, with).status, 78);
  EXPECT_EQ(run_redlock({"config", "check", "--master", "redis://10.0.0.2"}, dir_, with).out, "--master: valid\n");
  if (std::filesystem::exists("/etc/redlock/redlock.json")) return;
  EXPECT_EQ(run({"config", "check"}).err.find("redlock: /etc/redlock/redlock.json: "), 0u);
}

}  // namespace
}  // namespace redlock::test
