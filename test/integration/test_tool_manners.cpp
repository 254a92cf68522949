// SPDX-License-Identifier: MIT
//
// `redlock` as a program among others: closed descriptors, output that cannot be written, readers that are gone or do
// not read, the words of a command line, and what stands in it.
#include <gtest/gtest.h>

#include "notify_socket.hpp"
#include "support/pauses.hpp"
#include "support/tcp_peer.hpp"
#include "tool_site.hpp"

namespace redlock::test {
namespace {

class ToolManners : public ::testing::Test {
 protected:
  std::string line(const std::string& command, const std::string& rest) const {
    return std::string(REDLOCK_TOOL) + " " + command + " -C " + site_.config + " " + rest;
  }
  Ended shell(const std::string& line, const Words& environment = {}) const { return site_.shell(line, environment); }
  bool is_held(const std::string& resource) { return site_.masters.holders(resource) >= 2; }

  ToolSite site_;
};

constexpr const char* commissioned = "--yes --nobody-holds";  // once more

// libuv ends a program that gets one of these numbers for its loop.
TEST_F(ToolManners, ClosedDescriptorsEndNoCommand) {
  for (const std::string closed : {"<&-", ">&-", "2>&-", "<&- >&- 2>&-"}) {
    const bool is_out = closed.find(">&-") == 0 || closed.size() > 4;
    const std::pair<const char*, const char*> commands[] = {
        {"run", "bus -- true"}, {"status", ""}, {"doctor", ""}, {"commission", commissioned}, {"config", "check"}};
    for (const auto& [command, rest] : commands) {
      const bool writes = std::string(command) != "run";
      const Ended ended = shell(line(command, rest) + " " + closed);
      EXPECT_EQ(ended.status, is_out && writes ? 74 : 0) << command << " " << closed << ": " << ended.err;
    }
  }
}

// It would end behind the marks, and nobody could lock.
TEST_F(ToolManners, ClosedDescriptorsEndNoChange) {
  std::string from = site_.config, to = site_.dir + "/other.json";
  shell("sed 's/max_ttl_ms\": 2400/max_ttl_ms\": 2401/' " + from + " >" + to);
  for (const std::string closed : {"<&-", ">&-", "2>&-", "<&- >&- 2>&-"}) {
    const bool is_out = closed.find(">&-") == 0 || closed.size() > 4;
    const Ended change = shell(std::string(REDLOCK_TOOL) + " reconfigure --yes " + from + " " + to + " " + closed);
    EXPECT_EQ(change.status, is_out ? 74 : 0) << closed << ": " << change.err;
    EXPECT_EQ(site_.masters[0].command({"HGET", "redlock::meta", "desc"}).find("v1 "), 0u) << closed;
    std::swap(from, to);
  }
}

TEST_F(ToolManners, OutputThatCannotBeWrittenIs74) {
  for (const auto& [command, rest] : {std::pair("status", "--json"), std::pair("status", "--prometheus"),
                                      std::pair("status", ""), std::pair("doctor", "--json"),
                                      std::pair("doctor", ""), std::pair("config", "check -v"),
                                      std::pair("version", ""),
                                      std::pair("run", "--help"), std::pair("commission", commissioned)}) {
    const Ended ended = shell(line(command, rest) + " >/dev/full");
    EXPECT_EQ(ended.status, 74) << command << " " << rest;
    EXPECT_NE(ended.err.find("redlock: stdout cannot be written: No space left on device\n"), std::string::npos)
        << ended.err;
  }
  const std::string longer = site_.dir + "/longer.json";
  shell("sed 's/max_ttl_ms\": /&1/' " + site_.config + " >" + longer);
  EXPECT_EQ(shell(REDLOCK_TOOL + std::string(" config template >/dev/full")).status, 74);
  const std::string plan = "reconfigure --dry-run " + site_.config + " " + longer;
  EXPECT_EQ(shell(REDLOCK_TOOL + (" " + plan)).status, 0);
  EXPECT_EQ(shell(REDLOCK_TOOL + (" " + plan) + " >/dev/full").status, 74);
  EXPECT_EQ(shell(line("run", "bus -- sh -c 'exit 5'") + " >/dev/full").status, 5) << "stdout is the command's";
}

TEST_F(ToolManners, WithoutItsReadyLineNoCommandStarts) {
  const std::string trace = site_.dir + "/started";
  const Ended ended = shell(line("run", "--sd-notify bus -- touch " + trace), {"NOTIFY_SOCKET=" + site_.dir + "/none"});
  EXPECT_EQ(ended.status, 74);
  EXPECT_NE(ended.err.find("the command was not started: systemd cannot be told"), std::string::npos) << ended.err;
  EXPECT_FALSE(std::filesystem::exists(trace));
  EXPECT_FALSE(is_held("bus"));
}

TEST_F(ToolManners, AReaderOfStderrThatIsGoneEndsNothing) {
  const std::string file = site_.dir + "/done";
  shell("exec 3>&1; (" + line("run", "-vv bus -- sh -c 'sleep 0.3; echo done >" + file + "'") +
        "; echo $? >&3) 2>&1 >/dev/null | true");
  EXPECT_TRUE(eventually([&] { return text_of_file(file) == "done\n"; }));
  const Ended pipe = shell(line("run", "bus -- sh -c 'trap'"));
  EXPECT_EQ(pipe.out, "") << "the command ignores no signal that it did not ignore before";
  const Ended yes = shell("set -o pipefail; " + line("run", "bus -- yes") + " | head -1");
  EXPECT_EQ(yes.status, 128 + SIGPIPE);
}

TEST_F(ToolManners, StderrThatNobodyReadsDelaysNothing) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(::fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
  const std::string page(4096, 'x');
  while (::write(ends[1], page.data(), page.size()) > 0) continue;
  ASSERT_EQ(::fcntl(ends[1], F_SETFL, 0), 0);
  site_.hold_by_other("bus");
  const std::string descriptor = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(ends[1]);
  const int64_t begin = boot_ns();
  EXPECT_EQ(shell(line("run", "-vv -w 1 bus -- true") + " 2>" + descriptor).status, 75);
  EXPECT_LT(boot_ns() - begin, 10'000 * ns_per_ms);
  Program waiter({"bash", "-c", "exec " + line("run", "-vv bus -- true") + " 2>" + descriptor}, site_.dir);
  ASSERT_TRUE(eventually([&] { return children_of(waiter.pid()).size() == 1; }));
  waiter.signal(SIGTERM);
  EXPECT_EQ(waiter.exit_status(), 128 + SIGTERM);
  ::close(ends[0]);
  ::close(ends[1]);
}

// ---- words ----------------------------------------------------------------------------------------------------------

// A stderr that was redirected behind systemd's back is no journal.
TEST_F(ToolManners, LinesHavePrioritiesInAJournalAlone) {
  const std::string log = site_.dir + "/journal", file = site_.dir + "/file";
  const auto logged = [&](const std::string& rest, const std::string& behind = "") {
    shell("exec 2>" + log + "; export JOURNAL_STREAM=$(stat -Lc %d:%i /proc/self/fd/2); exec " + line("run", rest) +
          behind);
    return text_of_file(log);
  };
  site_.hold_by_other("bus");
  EXPECT_EQ(logged("--no-such bus -- true").find("<3>redlock: run: there is no option"), 0u);
  EXPECT_EQ(logged("-n bus -- true").find("<4>redlock: bus: not acquired: held by"), 0u);
  EXPECT_NE(logged("-v pump -- true").find("<6>redlock: pump is held\n"), std::string::npos);
  EXPECT_EQ(logged("-n bus -- true", " 2>" + file), "");
  EXPECT_EQ(text_of_file(file).find("redlock: bus: not acquired: held by"), 0u);
}

// Somebody follows a journal; cron mails every line.
TEST_F(ToolManners, TheFirstWordOfAWaitComesSoonerInAJournal) {
  site_.hold_by_other("bus");
  const std::string wait = "exec " + line("run", "bus -- true");
  Program plain({"bash", "-c", wait}, site_.dir);
  Program journal({"bash", "-c", "export JOURNAL_STREAM=$(stat -Lc %d:%i /proc/self/fd/2); " + wait}, site_.dir);
  const auto first_second = [](const Program& run, const std::string& before) {
    EXPECT_TRUE(eventually([&] { return run.err().find(" s: held by") != std::string::npos; })) << run.err();
    EXPECT_EQ(run.err().find(before + "redlock: waiting for bus for "), 0u) << run.err();
    return std::atoi(run.err().c_str() + run.err().find(" for bus for ") + 13);
  };
  const int in_journal = first_second(journal, "<6>"), elsewhere = first_second(plain, "");
  EXPECT_GE(in_journal, 2);
  EXPECT_GE(elsewhere, 10);
  EXPECT_LT(elsewhere, 30);
  EXPECT_LT(in_journal, elsewhere);
  for (Program* run : {&plain, &journal}) {
    run->signal(SIGTERM);
    run->exit_status();
  }
}

// It would wait for its own end. Whoever has only inherited the words, or takes another name, waits as ever.
TEST_F(ToolManners, ARunInsideOneThatHoldsItsNameEndsAtOnce) {
  const std::string again = line("run", "bus -- echo inner"), around = line("run", "bus -- ");
  for (const std::string& nested : {around + again, around + line("run", "pump -- ") + again}) {
    const Ended ended = shell(nested);
    EXPECT_EQ(ended.status, 75);
    EXPECT_EQ(ended.out, "");
    const std::string why = "this command runs under it already, by redlock run (process ";
    EXPECT_EQ(ended.err.find("redlock: bus: not acquired: " + why), 0u) << ended.err;
  }
  EXPECT_EQ(shell(around + line("run", "-E 6 bus -- true")).status, 6);
  EXPECT_EQ(shell(around + line("run", "--any bus pump -- sh -c 'echo $REDLOCK_RESOURCE'")).out, "pump\n");
  EXPECT_EQ(shell(around + line("run", "--any bus -- true")).status, 75);
  const std::string words = shell(around + "printenv REDLOCK_KEEPERS").out;
  EXPECT_NE(words.find("\tbus\n"), std::string::npos) << words;
  const Ended outside = shell(again, {"REDLOCK_KEEPERS=" + words});
  EXPECT_EQ(outside.out, "inner\n") << outside.err;
}

// As it is printed, and as a shell reads it.
TEST_F(ToolManners, TheLineToTypeIsTaken) {
  const std::string command = "sh -c 'echo \"$REDLOCK_RESOURCE:$1\"' sh 'two  words'";
  for (const char* late : {"bus -w 5 --", "bus -w 5 'room 7' -v --", "'it'\\''s' -n --ttl=2400 --",
                           "-w 5 bus -vt 2400 pump --"}) {
    const std::string given = std::string(late) + " " + command;
    const std::string err = shell(line("run", given)).err;
    const std::string before = "redlock: run: options stand before the names: redlock";
    ASSERT_EQ(err.find(before), 0u) << err;
    const std::string typed = err.substr(before.size(), err.find("; see redlock run --help") - before.size());
    const Ended ended = shell(REDLOCK_TOOL + typed);
    EXPECT_EQ(ended.status, 0) << typed << ended.err;
    const size_t colon = ended.out.find(':');
    ASSERT_NE(colon, std::string::npos) << typed;
    EXPECT_EQ(ended.out.substr(colon), ":two  words\n") << typed;
    EXPECT_NE(given.find(ended.out.substr(0, colon > 4 ? 4 : 3)), std::string::npos) << typed;
  }
}

TEST_F(ToolManners, ANameBehindDashesMayBeginWithOne) {
  EXPECT_EQ(shell(line("run", "-n -- bus -- true")).status, 0) << "the first -- may end the options";
  const Ended run = shell(line("run", "-n -- -x --no-such -- sh -c 'echo \"$REDLOCK_RESOURCE\"'"));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, "-x --no-such\n");
  site_.hold_by_other("-x");
  EXPECT_NE(shell(line("status", "-- -x")).out.find("\n-x: held by "), std::string::npos);
}

TEST_F(ToolManners, SecondsAndHelpAreAsElsewhere) {
  for (const char* wait : {".5", "5s", "0.5s", "5."}) {
    EXPECT_EQ(shell(line("run", std::string("-w ") + wait + " bus -- true")).status, 0) << wait;
  }
  const std::string tool = REDLOCK_TOOL;
  EXPECT_EQ(shell(tool + " help run").out, shell(tool + " run --help").out);
  EXPECT_EQ(shell(tool + " help").out, shell(tool + " --help").out);
  EXPECT_EQ(shell(tool + " -V").out, shell(tool + " --version").out);
}

// Nobody listens there, so the program waits.
TEST_F(ToolManners, APasswordIsNotInTheCommandLine) {
  const Words urls = {"redis://:sec:ret@127.0.0.1:1"};
  Program waiter(redlock_words(Words{"run"} + master_options(urls) + Words{"bus", "--", "true"}), site_.dir);
  ASSERT_TRUE(eventually([&] { return children_of(waiter.pid()).size() == 1; }));
  for (const pid_t pid : {waiter.pid(), children_of(waiter.pid())[0]}) {
    const std::string words = text_of_file("/proc/" + std::to_string(pid) + "/cmdline");
    EXPECT_EQ(words.find("sec"), std::string::npos) << words;
    EXPECT_NE(words.find("redis://:*******@127.0.0.1:"), std::string::npos) << words;
  }
  waiter.signal(SIGTERM);
  waiter.exit_status();
}

// U+009B begins an escape sequence, too. In UTF-8 no byte of it is below 0x20.
TEST_F(ToolManners, ControlCharactersOfAConfigurationAreEscaped) {
  const std::string file = site_.dir + "/names.json";
  std::ofstream(file) << R"({"key_prefix": "\u009b2J", "masters": [{"url": ")" << site_.masters.urls()[0]
                      << R"(", "name": "m\u009b2J"}]})";
  ::chmod(file.c_str(), 0600);
  for (const std::string& command : {"config check -v " + file, "status bus -C " + file, "doctor -C " + file,
                                     "status --json -C " + file, "doctor --json -C " + file}) {
    const Ended ended = shell(std::string(REDLOCK_TOOL) + " " + command);
    EXPECT_NE((ended.out + ended.err).find("m\\"), std::string::npos) << ended.out << ended.err;
    for (const char c : ended.out + ended.err) {
      ASSERT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << command << ": " << int{c};
    }
  }
}

// ---- the end of a command -------------------------------------------------------------------------------------------

TEST_F(ToolManners, TheCommandIsToldToEndByTheSignalThatWasAskedFor) {
  const std::string script = " bus -- sh -c 'trap \"echo told; exit 7\" INT; echo ready; while :; do sleep 0.05; done'";
  for (const std::string options : {"-s INT", "--signal=SIGINT -k 3s", "-s 2 --kill-after 3", "-s int", "-s KILL"}) {
    Program run({"sh", "-c", "exec " + line("run", options + script)}, site_.dir);
    ASSERT_TRUE(eventually([&] { return run.out() == "ready\n"; })) << run.err();
    run.signal(SIGTERM);
    const bool is_told = options != "-s KILL";
    EXPECT_EQ(run.exit_status(), is_told ? 7 : 128 + SIGKILL) << options;
    EXPECT_EQ(run.out(), is_told ? "ready\ntold\n" : "ready\n") << options;
  }
  for (const char* name : {"hup", "Sigquit", "abrt", "usr1", "USR2", "alrm", "winch", "15", "35"}) {
    EXPECT_EQ(shell(line("run", std::string("--signal ") + name + " bus -- true")).status, 0) << name;
  }
  EXPECT_EQ(shell(line("run", "-s KILL -k 0 bus -- true")).status, 0) << "both mean KILL alone";
}

TEST_F(ToolManners, KillComesWhenItWasAskedForOrInFourSeconds) {
  for (const Words& how : {Words{"-k", "0.2"}, Words{}}) {
    const Pauses pauses;
    const Board board(site_.dir + "/board-" + std::to_string(how.size()));
    Program run(site_.witness(board, "bus", {"deaf"}, "1", how), site_.dir);
    ASSERT_TRUE(board.acts());
    const int64_t begin = boot_ns(), least_ms = how.empty() ? 3'500 : 150;
    run.signal(SIGTERM);
    EXPECT_EQ(run.exit_status(), 128 + SIGKILL);
    const int64_t lived_ms = (board->last_act_ns - begin) / ns_per_ms;
    EXPECT_TRUE((lived_ms > least_ms && lived_ms < least_ms + 3'350) || pauses.were_too_long()) << lived_ms;
  }
}

// $? is the same in a shell, but a shell and systemd tell 143 from an end by TERM.
TEST_F(ToolManners, RedlockEndsByTheSignalThatItsCommandEndedBy) {
  for (const int number : {SIGTERM, SIGINT, SIGKILL, SIGSEGV}) {
    Words words = site_.words({"run", "bus", "--", "sh", "-c", "kill -" + std::to_string(number) + " $$"});
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t pid = 0;
    ASSERT_EQ(::posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << number << ": " << status;
  }
}

// ---- servers --------------------------------------------------------------------------------------------------------

// The words of the first command in `in`, which are taken away; none: it is not complete.
Words take_command(std::string& in) {
  size_t at = in.find("\r\n");
  if (at == std::string::npos) return {};
  Words words;
  int count = std::stoi(in.substr(1));
  for (at += 2; count > 0; --count) {
    const size_t end = in.find("\r\n", at);
    if (end == std::string::npos) return {};
    const size_t size = std::stoul(in.substr(at + 1));
    if (in.size() < end + 2 + size + 2) return {};
    words.push_back(in.substr(end + 2, size));
    at = end + 2 + size + 2;
  }
  in.erase(0, at);
  return words;
}

TEST_F(ToolManners, AScanOfAServerThatNeverEndsEnds) {
  TcpPeer endless([](int, std::string& in, std::string& out) {
    for (Words words = take_command(in); !words.empty(); words = take_command(in)) {
      out += words[0] == "SCAN"    ? "*2\r\n$2\r\n17\r\n*0\r\n"
             : words[0] == "HELLO" ? "-ERR unknown command\r\n"
             : words.size() == 1   ? "+PONG\r\n"
             : words[0] == "PING"  ? "$" + std::to_string(words[1].size()) + "\r\n" + words[1] + "\r\n"
             : words[0] == "HMGET" ? "*3\r\n$-1\r\n$-1\r\n$-1\r\n"
                                   : "$-1\r\n";
    }
    return TcpPeer::Then::keep;
  });
  Ended ended = run_redlock({"status", "--master", endless.url(), "--scan"}, site_.dir);
  // The machine may not have let our thread run.
  for (int i = 0; i < 20 && ended.err.find("no answer within") != std::string::npos; ++i) {
    ended = run_redlock({"status", "--master", endless.url(), "--scan"}, site_.dir);
  }
  EXPECT_EQ(ended.status, 69) << ended.out;
  EXPECT_NE(ended.err.find("comes to no end"), std::string::npos) << ended.err;
}

// A name in all that is written. JSON and Prometheus quote the one spelling once more.
TEST_F(ToolManners, EveryOutputSpellsANameInOneWay) {
  const std::string z(REDLOCK_RESOURCE_MAX - 8, 'z'), of_client(REDLOCK_CLIENT_NAME_MAX - 8, 'z');
  const std::string name = "n \"\\\x01\xc3\xbc'" + z;
  const std::string spelled = R"( "\x5c\x01\xc3\xbc')", quoted = R"( \"\\x5c\\x01\\xc3\\xbc')";
  const std::string text = "n" + spelled + z, in_quotes = "n" + quoted + z;
  const std::string owner = "g" + spelled + of_client, of_json = "g" + quoted + of_client;
  const std::string master = R"(m "\x5c\xc3\xbc')", quoted_master = R"(m \"\\x5c\\xc3\\xbc')";
  std::string config = text_of_file(site_.config);
  const std::string url = "\"" + site_.masters.urls()[0] + "\"";
  config.replace(config.find(url), url.size(), "{\"url\": " + url + ", \"name\": \"m \\\"\\\\\xc3\xbc'\"}");
  std::ofstream(site_.config) << config;
  for (size_t m = 0; m < 3; ++m) site_.masters[m].command({"FLUSHALL"});  // a record has the masters' names
  site_.admit();
  for (size_t m = 0; m < 3; ++m) {  // our clients have plain names; who writes a value may not
    const std::string value = std::string(2 * REDLOCK_VALUE_RANDOM, 'a') + ":g \"\\\x01\xc3\xbc'" + of_client;
    site_.masters[m].command({"SET", "of-another", value, "PX", "600000"});
  }
  const std::string file = site_.dir + "/odd.prom";
  NotifySocket systemd(site_.dir + "/notify");
  Program holder(site_.words({"run", "-v", "--sd-notify", "--metrics", file, name, "--", "sleep", "600"}), site_.dir,
                 {{"NOTIFY_SOCKET=" + systemd.path()}, false});
  std::string heard;
  EXPECT_TRUE(eventually([&] { return !(heard = systemd.heard(MSG_DONTWAIT)).empty(); })) << holder.err();
  EXPECT_EQ(heard, "READY=1\nSTATUS=holding " + text);
  EXPECT_TRUE(eventually([&] { return holder.err().find("redlock: " + text + " is held\n") != std::string::npos; }))
      << holder.err();
  struct {
    Words words;
    std::vector<std::string> lines;
  } const outputs[] = {
      {{"run", "-n", name, "--", "true"}, {"redlock: " + text + ": not acquired: held by gw-1"}},
      {{"run", "-n", name, "b", "--", "true"}, {"redlock: " + text + " b: not acquired: held by "}},
      {{"run", "-n", "--any", name, "--", "true"}, {"redlock: " + text + ": not acquired: held by gw-1"}},
      {{"run", "-n", "of-another", "--", "true"}, {"redlock: of-another: not acquired: held by " + owner}},
      {{"status", name, "of-another"},
       {"\n" + text + ": held by gw-1 on 3/3", "\n" + master + "  ", "\nof-another: held by " + owner + " on 3/3"}},
      {{"status", "--json", name, "of-another"},
       {"{\"resource\":\"" + in_quotes + "\",", "\"holder\":\"" + of_json + "\"", "\"name\":\"" + quoted_master + "\"",
        "\"master\":\"" + quoted_master + "\""}},
      {{"status", "--prometheus", name, "of-another"},
       {"redlock_resource_held{resource=\"" + in_quotes + "\"} 1",
        "redlock_master_up{master=\"" + quoted_master + "\"}",
        "redlock_resource_masters{resource=\"of-another\",holder=\"" + of_json + "\"} 3"}},
      {{"doctor", "-v"}, {master}},
      {{"doctor", "--json"}, {"\"master\":\"" + quoted_master + "\""}},
      {{"config", "check", "-v"}, {"(" + master + ")"}},
      {{"commission", "--master", "m\xc3\xbc\\"}, {R"('m\xc3\xbc\x5c')"}},
  };
  for (const auto& output : outputs) {
    const Ended ended = site_.run(output.words);
    for (const std::string& line : output.lines) {
      const std::string all = ended.out + ended.err;
      EXPECT_NE(all.find(line), std::string::npos) << line << " is not in:\n" << all;
    }
  }
  const Words command = {"sh", "-c", "printf %s \"$REDLOCK_RESOURCE\""};  // and the command gets it as it is
  Words one = {"run", name.substr(1), "--"}, all = {"run", name.substr(1), "b", "--"};
  for (Words* words : {&one, &all}) words->insert(words->end(), command.begin(), command.end());
  EXPECT_EQ(site_.run(one).out, name.substr(1));
  EXPECT_EQ(site_.run(all).out, name.substr(1) + " b");
  const std::string sample = "redlock_acquired_total{resource=\"" + in_quotes + "\"} 1\n";
  EXPECT_TRUE(eventually([&] { return text_of_file(file).find(sample) != std::string::npos; })) << text_of_file(file);
  holder.signal(SIGTERM);
  holder.exit_status();
  const std::string again = "exec " + line("run", "'n \"\\b' -- " + line("run", "-n 'n \"\\b' -- true"));
  const Ended nested = shell(again);
  EXPECT_NE(nested.err.find(R"(redlock: n "\x5cb: not acquired: )"), std::string::npos) << nested.err;
}

}  // namespace
}  // namespace redlock::test
