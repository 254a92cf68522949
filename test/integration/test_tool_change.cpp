// SPDX-License-Identifier: MIT
//
// The operator's statements through `redlock`: commission and reconfigure; interrupted, and repeated; and the line that
// deletes a record.
#include <gtest/gtest.h>

#include "tool_masters.hpp"
#include "tool_terminal.hpp"

namespace redlock::test {
namespace {

// Does every master of this file vote for its clients?
testing::AssertionResult all_vote(ToolMasters& site, const std::string& config, unsigned n) {
  const std::string all = std::to_string(n) + " of " + std::to_string(n) + " masters vote";
  const Ended ended = site.run({"status"}, config);
  if (has(ended.out, all)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << ended.out << ended.err;
}

// redlock on a terminal, whose operator answers `answer` when he is asked.
struct Typed {
  Typed(const Words& words, const std::string& answer)
      : terminal(words), status(terminal.read_all("Type yes to go on: ", answer)), text(terminal.shown()) {}
  Terminal terminal;
  int status;
  std::string text;
};

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

  site[2].kill_hard();
  const Ended two = site.run({"commission", "--yes", "--nobody-holds"}, config);
  EXPECT_EQ(two.status, 69);
  EXPECT_TRUE(has(two.out, "m0: votes\nm1: votes\nm2: the connection was refused")) << two.out;
  EXPECT_TRUE(has(two.err, "repeat it when nothing is held")) << two.err;
  site[2].restart();
  const Ended again = site.run({"commission", "--yes"}, config);
  EXPECT_EQ(again.status, 64) << again.err;
  EXPECT_TRUE(has(again.err, "; m0 has been in use; m1 has been in use. Let the guard watch them")) << again.err;
  EXPECT_EQ(site.run({"commission", "--yes", "--nobody-holds"}, config).status, 0);
  EXPECT_TRUE(all_vote(site, config, 3));
  EXPECT_EQ(site.run({"commission", "--yes"}, site.file({0}, R"(, "guard": "off")")).status, 78);
  const Ended other = site.run({"commission", "--yes"}, site.file({0, 1}, R"(, "key_prefix": "plant1/")"));
  EXPECT_EQ(other.status, 78) << other.err;
  EXPECT_TRUE(has(other.err, "redlock doctor says what to do")) << other.err;
}

TEST(ToolCommission, AsksAgainWhereSomebodyMayHoldALock) {
  ToolMasters site(2);
  const std::string config = site.file({0, 1}, R"(, "key_prefix": "plant1/")");
  site.set(1, "elsewhere", "x");
  site.set(1, "plant1/bus", value_of("gw-2"));
  const Ended key = site.run({"commission", "--yes"}, config);
  EXPECT_EQ(key.status, 64) << key.err;
  EXPECT_TRUE(has(key.err, "a lock; m1 has a key of bus. Let the guard")) << key.err;
  EXPECT_FALSE(site[0].exists("redlock:plant1/:meta"));
  site[1].command({"DEL", "plant1/bus"});
  for (const Words& words : {Words{"commission"}, Words{"commission", "--yes"}}) {
    const Typed no(site.words(words, config), "no\n");
    EXPECT_EQ(no.status, 64) << no.text;
    EXPECT_TRUE(has(no.text, words.size() == 1 ? "nothing was done" : "m0 has been in use")) << no.text;
    EXPECT_EQ(site[0].exists("redlock:plant1/:meta"), words.size() == 2);
    const Typed yes(site.words(words, config), "yes\n");
    EXPECT_EQ(yes.status, 0) << yes.text;
  }
}

// It might answer while the statement counts, and may have been in use: the statement is not made for it.
TEST(ToolCommission, LeavesOutAMasterThatWasNotLookedAt) {
  ToolMasters site(3);
  const std::string config = site.file({0, 1, 2});
  commission(site, config);
  site[2].freeze();
  const Ended silent = site.run({"commission", "--yes", "--master", "m2"}, config);
  EXPECT_EQ(silent.status, 69) << silent.err;
  EXPECT_FALSE(has(silent.err, "asking")) << silent.err;
  const Ended stated = site.run({"commission", "--yes", "--nobody-holds", "--master", "m2"}, config);
  EXPECT_TRUE(has(stated.err, "asking 1 master, ")) << stated.err;
  site[2].thaw();
}

TEST(ToolCommission, WaitsForAServerThatJustStarts) {
  ToolMasters site(3);
  const std::string config = site.file({0, 1, 2});
  std::string text = text_of_file(config);
  text.insert(text.rfind("300"), "9");
  std::ofstream(config) << text;
  site[2].kill_hard();
  Program program(site.words({"commission", "--yes"}, config), site.dir);
  site[2].restart();
  EXPECT_EQ(program.exit_status(), 0) << program.err();
  EXPECT_TRUE(has(program.out(), "m2: votes")) << program.out();
}

// ---- reconfigure ----------------------------------------------------------------------------------------------------

Ended reconfigure(ToolMasters& site, const Words& words) { return run_redlock(Words{"reconfigure"} + words, site.dir); }

// The line that the doctor prints to delete a record; "": none.
std::string deletion_in(const std::string& text) {
  const size_t at = text.find("redis-cli ");
  return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}
int type(const std::string& line) { return std::system((line + " >/dev/null 2>&1").c_str()); }
// The operator types the line for this master; then the change is made, and gateways of its new file lock.
void delete_and_go_on(ToolMasters& site, unsigned master, const std::string& told, const std::string& from,
                      const std::string& to) {
  const std::string line = deletion_in(told);
  ASSERT_NE(line, "") << told;
  EXPECT_EQ(type(line), 0) << line;
  EXPECT_FALSE(site[master].exists("redlock::meta"));
  const Ended done = reconfigure(site, {"--yes", from, to});
  EXPECT_EQ(done.status, 0) << done.out << done.err;
  const Ended ran = site.run({"run", "-w", "20", "-t", "2400", "bus", "--", "true"}, to);
  EXPECT_EQ(ran.status, 0) << ran.err;
}

// The plan's times are the library's.
TEST(ToolReconfigure, ThePlanCountsTheDriftOfTheFiles) {
  ToolMasters site(1);
  const auto with_drift = [&](unsigned max_ttl_ms) {
    const std::string path = site.file({0}, "", max_ttl_ms);
    std::string text = text_of_file(path);
    text.insert(text.find("\"node_timeout_ms\""), "\"drift_ppm\": 200000, ");
    std::ofstream(path) << text;
    return path;
  };
  const std::string before = with_drift(600'000), after = with_drift(900'000);
  commission(site, before);
  const Ended plan = reconfigure(site, {"--dry-run", before, after});
  EXPECT_TRUE(has(plan.out, "; about 240 s of waiting; then clients of the new file watch for 1080 s")) << plan.out;
}

TEST(ToolReconfigure, PlannedInterruptedAndRepeated) {
  ToolMasters site(4);
  const std::string before = site.file({0, 1, 2}, "", 2'400), after = site.file({1, 2, 3}, "", 2'400);
  commission(site, before);
  const Ended plan = reconfigure(site, {"--dry-run", before, after});
  EXPECT_EQ(plan.status, 0) << plan.err;
  EXPECT_TRUE(has(plan.out, "m0: leaves\nm1: stays\nm2: stays\nm3: joins\n")) << plan.out;
  EXPECT_TRUE(has(plan.out, "new m3: has no record yet\nnothing was written\n")) << plan.out;
  EXPECT_TRUE(has(plan.out, "new m1: has the record of the other file\n")) << plan.out;
  EXPECT_TRUE(has(reconfigure(site, {before, after}).err, "say --yes"));
  EXPECT_FALSE(site.marked(0) || site.marked(3));
  {
    Program program(redlock_words({"reconfigure", "--yes", before, after}), site.dir);
    EXPECT_TRUE(eventually([&] { return site.marked(0) && site.marked(1); }));
    program.signal(SIGTERM);
    EXPECT_EQ(program.exit_status(), 128 + SIGTERM);
    const std::string said = program.err();
    EXPECT_TRUE(has(said, "interrupted: the site may be without a lock until you repeat the call, or undo it")) << said;
    EXPECT_TRUE(has(said, "repeat: redlock reconfigure " + before + " " + after + "\n")) << said;
    EXPECT_TRUE(has(said, "undo:   redlock reconfigure " + after + " " + before + "\n")) << said;
  }
  // Whose change stands there?
  const std::string mark = " UTC, m0,m1,m2 > m1,m2,m3)";
  const Ended again_planned = reconfigure(site, {"--dry-run", before, after});
  EXPECT_TRUE(has(again_planned.out, "bears the mark of a change, which would begin anew (by gw-1, begun 20"));
  EXPECT_TRUE(has(again_planned.out, mark)) << again_planned.out;
  const Ended status = site.run({"status"}, before);
  EXPECT_TRUE(has(status.out, "was given up, or has left this configuration behind (by gw-1, begun 20")) << status.out;
  EXPECT_TRUE(has(site.run({"status"}, after).out, "is under way, or was given up (by gw-1")) << "the new set";
  const Ended ran = site.run({"run", "-n", "-t", "2400", "bus", "--", "true"}, before);
  EXPECT_EQ(ran.status, 76) << ran.err;
  EXPECT_TRUE(has(ran.err, "or has left this client behind; redlock status says whose\n")) << ran.err;
  const Ended doctor = site.run({"doctor", "-v"}, before);
  EXPECT_TRUE(has(doctor.out, "is under way, was given up, or has left this one behind: nobody may be able to lock (by "
                              "gw-1"))
      << doctor.out;
  EXPECT_TRUE(has(doctor.out, "-> compare the files of all gateways; wait for its end;")) << doctor.out;
  const Ended again = reconfigure(site, {"--yes", before, after});
  EXPECT_EQ(again.status, 0) << again.out << again.err;
  EXPECT_TRUE(has(again.err, "marks, waits, and enters the new masters")) << again.err;
  EXPECT_TRUE(has(again.err, "until the last gateway with OLD has ended, restart and replace no master")) << again.err;
  EXPECT_TRUE(has(again.err, "If gateways of both files run now, restart and replace no master of either file until "
                             "those with OLD have ended"))
      << again.err;
  EXPECT_TRUE(has(again.out, "new m3: done\n")) << again.out;
  EXPECT_TRUE(has(again.out, "done: give every gateway the new file. Until the last one with the old file has ended, "
                             "restart and replace no old master. If gateways of both files ran before this call, that "
                             "holds for the masters of both files\n"))
      << again.out;
  EXPECT_FALSE(site.marked(1) || site.marked(3));
  commission(site, after);
  EXPECT_TRUE(all_vote(site, after, 3));
}

TEST(ToolReconfigure, WhatCannotBeDone) {
  ToolMasters site(4);
  const std::string before = site.file({0, 1, 2}), after = site.file({1, 2, 3});
  // A try, and the same for real: one answer.
  const auto refused = [&](const std::string& from, const std::string& to, int status, const std::string& sentence) {
    for (const char* how : {"--dry-run", "--yes"}) {
      const Ended ended = reconfigure(site, {how, from, to});
      EXPECT_EQ(ended.status, status) << how << ended.out << ended.err;
      EXPECT_TRUE(has(ended.err, sentence)) << how << ended.out << ended.err;
    }
  };
  refused(before, site.file({2, 1, 0}), 78, "names and timing.max_ttl_ms are those of the old configuration");
  refused(before, site.file({0, 1}, R"(, "key_prefix": "p/")"), 78, "key_prefix: is not that of the old configuration");
  refused(before, site.file({0, 1}, R"(, "guard": "off")"), 78, "guard: with \"off\" no client sees");
  commission(site, site.file({3}));
  const std::string others = "redlock: m3: was retired, or belonged to others: if no change is under way, ";
  const std::string deletion = " -p " + std::to_string(site[3].port()) + " DEL 'redlock::meta'\n";
  refused(before, after, 78, others);
  const Ended third = reconfigure(site, {"--yes", before, after});
  EXPECT_TRUE(has(third.out, "new m3: bears the record of neither file: v1 n=1 ")) << third.out;
  EXPECT_FALSE(has(third.out, "m0: no") || has(third.out, "m1: no") || has(third.out, "answer")) << third.out;
  EXPECT_TRUE(has(third.err, deletion)) << third.err;
  site[0].kill_hard();
  site[1].kill_hard();
  refused(before, after, 78, "1 master(s) of the old file can be written, and 2 are needed");
  site[3].command({"DEL", "redlock::meta"});
  refused(before, after, 69, "nothing was written: the old gateways go on. Repeat the call");
}

// The master that is of others does not answer until the call itself looks.
TEST(ToolReconfigure, AMasterOfOthersThatIsSeenLate) {
  ToolMasters site(4);
  const std::string before = site.file({0, 1, 2}), after = site.file({1, 2, 3});
  commission(site, before);
  commission(site, site.file({3}));
  site[3].freeze();
  Program program(redlock_words({"reconfigure", "--yes", before, after}), site.dir);
  EXPECT_TRUE(eventually([&] { return has(program.err(), "from its last look"); }));
  site[3].thaw();
  EXPECT_EQ(program.exit_status(), 78) << program.out();
  EXPECT_TRUE(has(program.err(), "nothing was written. Are these the right files?\nredlock: m3: was retired, or "))
      << program.out() << program.err();
  EXPECT_FALSE(has(program.err(), "the old gateways go on")) << program.err();
}

// Before anything is written: a user who may read and not write, and masters that take no writes.
TEST(ToolReconfigure, ATryFindsAMasterThatTakesNoWrites) {
  for (const char* less : {"-eval", "-hset", "-hdel", "-del", "-time"}) {
    ToolMasters site(2);
    const std::string before = site.file({0}), after = site.file({1});
    commission(site, before);
    site[1].command({"ACL", "SETUSER", "default", less});
    for (const char* how : {"--dry-run", "--yes"}) {
      const Ended ended = reconfigure(site, {how, before, after});
      EXPECT_EQ(ended.status, 77) << less << how << ended.out << ended.err;
      EXPECT_TRUE(has(ended.out, "new m1: the user lacks a permission\n")) << less << how << ended.out;
      EXPECT_TRUE(has(ended.err, "nothing was written: the old gateways go on")) << less << how << ended.err;
    }
    EXPECT_FALSE(site.marked(0)) << less;
  }
  ToolMasters site(3);
  const std::string before = site.file({0}), after = site.file({1});
  commission(site, before);
  site[1].command({"REPLICAOF", "127.0.0.1", std::to_string(site[2].port())});
  const Ended replica = reconfigure(site, {"--dry-run", before, after});
  EXPECT_EQ(replica.status, 69) << replica.out;
  EXPECT_EQ(reconfigure(site, {"--yes", before, after}).status, 69);
  EXPECT_FALSE(site.marked(0)) << replica.out;
}

// An OLD whose masters no gateway has ever used: both sites would live.
TEST(ToolReconfigure, AnOldFileWithoutARecordIsAskedAbout) {
  ToolMasters site(2);
  const std::string before = site.file({0}), after = site.file({1});
  for (const char* how : {"--yes", "--dry-run"}) {
    const Ended asked = reconfigure(site, {how, before, after});
    EXPECT_EQ(asked.status, 64) << how << asked.err;
    EXPECT_TRUE(has(asked.err, "1 of 1 masters of OLD have no record")) << how << asked.err;
    EXPECT_TRUE(has(asked.err, ". If you mean it, say --old-is-new\n")) << how << asked.err;
  }
  const Typed tried(redlock_words({"reconfigure", "--dry-run", before, after}), "yes\n");
  EXPECT_EQ(tried.status, 64) << "a try does not ask: " << tried.text;
  EXPECT_FALSE(site[0].exists("redlock::meta"));
  EXPECT_EQ(reconfigure(site, {"--dry-run", "--old-is-new", before, after}).status, 0);
  EXPECT_EQ(reconfigure(site, {"--yes", "--old-is-new", before, after}).status, 0);
}

// Waits for a lock, with a file that is replaced behind its back as soon as its client is there.
struct Waiter {
  Waiter(ToolMasters& site, const std::string& config, const std::string& replacement, const std::string& name,
         const Words& how = {})
      : done(site.dir + "/" + name) {
    std::string text = text_of_file(config);
    std::ofstream(path) << text.replace(text.find("gw-1"), 4, name);
    ::chmod(path.c_str(), 0600);
    const Words words = Words{"run", "-t", "2400"} + how + Words{"bus", "--", "touch", done};
    program = std::make_unique<Program>(site.words(words, path), site.dir);
    EXPECT_TRUE(eventually([&] { return has(site[0].command({"CLIENT", "LIST"}), "name=" + name); })) << name;
    replace(replacement);
  }
  void replace(const std::string& replacement) const {
    std::filesystem::copy_file(replacement, path + ".new");
    std::filesystem::rename(path + ".new", path);
  }
  bool has_run() const { return std::filesystem::exists(done); }

  std::string done, path = done + ".json";
  std::unique_ptr<Program> program;
};

// In every direction of a change. A client that is left behind ends, and says what the site was changed to. A waiter
// whose file is the new one by then, although it was copied too early, goes on with it; not so with a third file. In a
// unit it waits for the right one.
// Without the field "left", as 0.3 writes a record, a file that all old masters contradict may be mistyped.
TEST(ToolReconfigure, AGatewayThatWasLeftBehindEndsOrFollows) {
  const struct {
    std::vector<unsigned> before, after;
    unsigned max_ttl_ms;
    const char* to;
    int of_earlier;  // the exit status behind a change by 0.3
  } cases[] = {{{0, 1, 2}, {0, 1, 3}, 2'400, "other masters", 80},
               {{0, 1, 2}, {0, 1, 2, 3, 4}, 2'400, "5 masters", 78},
               {{0, 1, 2}, {0}, 2'400, "1 master", 80},
               {{0, 1, 2}, {3, 4, 5}, 2'400, "other masters", 80},
               {{0, 1, 2}, {0, 1, 2}, 3'000, "max_ttl_ms 3000", 78}};
  for (const auto& c : cases) {
    SCOPED_TRACE(testing::Message() << "to " << c.to << ", m" << c.after.back());
    ToolMasters site(6);
    const std::string before = site.file(c.before, "", 2'400), after = site.file(c.after, "", c.max_ttl_ms);
    const std::string third = site.file({5}, "", 2'400);
    commission(site, before);
    for (unsigned i = 0; i < 6; ++i) site.set(i, "bus", "somebody", 600'000);
    const Waiter stays(site, before, before, "stays"), strays(site, before, third, "strays");
    const Waiter follows(site, before, after, "follows"), unit(site, before, third, "unit", {"--sd-notify"});
    ASSERT_EQ(reconfigure(site, {"--yes", before, after}).status, 0);
    const std::string said = std::string("the site was changed to ") + c.to + " at 20";
    const std::string what = " UTC: copy its redlock.json here";
    for (const Waiter* left : {&stays, &strays}) {
      EXPECT_EQ(left->program->exit_status(), 80) << left->done;
      EXPECT_TRUE(has(left->program->err(), "bus: " + said) && has(left->program->err(), what + "\n"))
          << left->program->err();
      EXPECT_FALSE(left->has_run());
    }
    for (unsigned i = 0; i < 6; ++i) site[i].command({"DEL", "bus"});
    EXPECT_EQ(follows.program->exit_status(), 0) << follows.program->err();
    EXPECT_TRUE(follows.has_run());
    EXPECT_TRUE(eventually([&] { return has(unit.program->err(), "bus: " + said); })) << unit.program->err();
    unit.replace(after);
    EXPECT_EQ(unit.program->exit_status(), 0) << "systemd would have started it with the third file";
    EXPECT_TRUE(unit.has_run());
    const Ended doctor = site.run({"doctor"}, before);
    EXPECT_EQ(doctor.status, 80);
    EXPECT_TRUE(has(doctor.out, said) && has(doctor.out, what) && has(doctor.out, "give this one the new file"))
        << doctor.out;
    EXPECT_FALSE(has(doctor.out, " DEL ")) << doctor.out;
    EXPECT_TRUE(has(site.run({"status"}, before).out, said));
    for (unsigned i = 0; i < 6; ++i) site[i].command({"HDEL", "redlock::meta", "left"});
    const Ended earlier = site.run({"run", "-t", "2400", "bus", "--", "true"}, before);
    EXPECT_EQ(earlier.status, c.of_earlier) << earlier.err;
    const char* const both = ": it has 5 masters, ours has 3 masters; make the files alike, unless a change has left "
                             "this client behind\n";
    EXPECT_EQ(has(earlier.err, both), c.after.size() == 5) << earlier.err;
  }
}

// Python until a change of masters has left it behind, as firmware.c is.
constexpr char python_gateway[] = R"(
import libredlock, sys
try:
    with libredlock.Client(sys.argv[1]) as client:
        while True:
            with client.lock("bus", wait=None):
                print("worked", flush=True)
except libredlock.Left:
    sys.exit(80)
)";

// A program that ends, or is started, while a change is under way reads whatever file is there by then. The masters
// protect: those of the new file bear the mark of the change before the old ones do, and give no lock until it is done.
// Here the sets are disjoint, the new file is there first, and the wait of the change is longer than the guard time.
TEST(ToolReconfigure, AFileThatIsThereTooEarlyGivesNoLockBeforeTheChangeIsDone) {
  constexpr unsigned longer = 15'000, shorter = 5'000;  // firmware.c wants 5 s
  ToolMasters site(6);
  const std::string before = site.file({0, 1, 2}, "", longer), after = site.file({3, 4, 5}, "", shorter);
  const std::string file = site.dir + "/redlock.json", script = site.dir + "/gateway.py";
  std::filesystem::copy(before, file);
  std::ofstream(script) << python_gateway;
  const std::string firmware = REDLOCK_BINARY_DIR "/examples/firmware";
  if (!std::filesystem::exists(firmware)) GTEST_SKIP() << "the examples are not built";
  std::vector<Words> programs = {{firmware, "/dev/zero", file}};
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const bool has_python = type("command -v python3") == 0 && has(REDLOCK_LIBRARY, ".so");
  if (has_python) programs.push_back({"python3", script, file});
#endif
  const Program::Setting setting = {
      {std::string("LIBREDLOCK=") + REDLOCK_LIBRARY, "PYTHONPATH=" REDLOCK_SOURCE_DIR "/src/python"}, false};
  std::vector<std::unique_ptr<Program>> started;
  const auto start_all = [&] {
    for (const Words& words : programs) started.push_back(std::make_unique<Program>(words, site.dir, setting));
  };
  const auto was_locked = [&](unsigned i) { return has(site[i].command({"INFO", "commandstats"}), "cmdstat_set:"); };
  const auto work_at = [&](unsigned i) {
    return eventually([&] { return site[i].exists("plant1/rs485-a"); }) &&
           (programs.size() == 1 || eventually([&] { return site[i].exists("bus"); }));
  };
  commission(site, before);
  start_all();
  ASSERT_TRUE(work_at(0)) << started[0]->err();
  std::filesystem::copy(after, file, std::filesystem::copy_options::overwrite_existing);
  Program change(redlock_words({"reconfigure", "--yes", before, after}), site.dir);
  ASSERT_TRUE(eventually([&] { return site.marked(0) && site.marked(1); }));
  start_all();
  const Ended waits = site.run({"run", "-w", "8", "-t", "2400", "bus", "--", "true"}, after);
  EXPECT_EQ(waits.status, 76) << "longer than the guard time: " << waits.err;
  EXPECT_TRUE(site.marked(0)) << "the change is not done: " << change.err();
  ASSERT_EQ(change.exit_status(), 0) << change.err();
  for (const unsigned i : {3u, 4u, 5u}) EXPECT_FALSE(was_locked(i)) << "before the call returned";
  for (size_t i = 0; i < programs.size(); ++i) {
    EXPECT_EQ(started[i]->exit_status(), 80) << started[i]->out() << started[i]->err();
  }
  EXPECT_TRUE(work_at(3)) << "those that were started meanwhile";
  started.clear();
  start_all();
  EXPECT_TRUE(work_at(3) && was_locked(3));
}

// The masters disagree on what the site was changed to, so the waiter asks them again, for a second.
TEST(ToolReconfigure, ASignalEndsAWaiterThatAsksWhatTheSiteWasChangedTo) {
  ToolMasters site(5);
  const std::string before = site.file({0, 1, 2}, "", 2'400), after = site.file({3}, "", 2'400);
  const auto questions = [&] {
    const std::string all = site[0].command({"INFO", "commandstats"});
    const size_t at = all.find("cmdstat_hmget:calls=");
    return at == std::string::npos ? 0 : std::stoi(all.substr(at + 20));
  };
  commission(site, before);
  commission(site, after);
  site.set(0, "bus", "somebody", 600'000);
  site.set(1, "bus", "somebody", 600'000);
  const Waiter waits(site, before, after, "waits");
  const std::string left = "left " + site.desc(0) + " > ", to = site.desc(3);
  for (const unsigned m : {0u, 1u, 2u}) {
    site[m].command({"HSET", "redlock::meta", "desc", left + (m == 0 ? to : "v1 n=7")});
  }
  const int asked = questions();
  ASSERT_TRUE(eventually([&] { return questions() >= asked + 2; })) << waits.program->err();
  waits.program->signal(SIGTERM);
  EXPECT_EQ(waits.program->exit_status(), 128 + SIGTERM) << waits.program->err();
}

// {a, b, c} to {a, b, d}, then c, which is repaired, in the place of d: its mark is over, and a person deletes it.
TEST(ToolReconfigure, ARetiredMasterComesBack) {
  ToolMasters site(4);
  const std::string abc = site.file({0, 1, 2}, "", 2'400), abd = site.file({0, 1, 3}, "", 2'400);
  const std::string adc = site.file({0, 3, 2}, "", 2'400);
  commission(site, abc);
  ASSERT_EQ(reconfigure(site, {"--yes", abc, abd}).status, 0);
  commission(site, abd);
  const Ended refused = reconfigure(site, {"--yes", abd, adc});
  EXPECT_EQ(refused.status, 78);
  EXPECT_TRUE(has(refused.out, "new m2: bears the record of neither file: left v1 n=3 ")) << refused.out;
  const Ended doctor = site.run({"doctor", "-v"}, adc);
  EXPECT_TRUE(has(doctor.out, "m2: was left by a change between two other configurations")) << doctor.out;
  const std::string line = deletion_in(doctor.out);  // of this master alone: the others are of the site that runs
  EXPECT_TRUE(has(line, "-p " + std::to_string(site[2].port()) + " ")) << doctor.out;
  EXPECT_EQ(doctor.out.find(" DEL ", doctor.out.find(line) + line.size()), std::string::npos) << doctor.out;
  EXPECT_EQ(deletion_in(refused.err), line) << refused.err;
  delete_and_go_on(site, 2, refused.err, abd, adc);
}

// A master of strangers: the condition, the time, and a line that works as it is pasted, also through a socket and as a
// user.
TEST(ToolDoctor, TheLineThatDeletesARecordWorks) {
  for (const bool socket : {false, true}) {
    RedisServer::Options options;
    options.unix_socket = socket;
    RedisServer server(options);
    server.command({"ACL", "SETUSER", "o'per", "on", ">se'cret", "~*", "+@all"});
    const std::string path = server.dir() + "/config.json";
    const auto write = [&](unsigned max_ttl_ms) {
      const std::string url = socket ? "unix://" + server.socket_path() : server.url();
      std::ofstream(path) << R"({"client_name": "gw-1", "key_prefix": "it's/", "masters": [{"name": "m", )"
                          << R"("url": ")" << url << R"(", "username": "o'per", "password": "se'cret"}], )"
                          << R"("defaults": {"ttl_ms": 900}, )"
                          << R"("timing": {"max_ttl_ms": )" << max_ttl_ms << "}}";
      ::chmod(path.c_str(), 0600);
    };
    const auto run = [&](const Words& words) {
      return run_redlock(Words{words[0], "-C", path} + Words(words.begin() + 1, words.end()), server.dir());
    };
    write(4'000);
    ASSERT_EQ(run({"commission", "--yes"}).status, 0);
    write(2'400);
    const Ended doctor = run({"doctor", "-v"});
    EXPECT_TRUE(has(doctor.out, "-> set timing.max_ttl_ms to 4000, as the other gateways have it; if")) << doctor.out;
    EXPECT_TRUE(has(doctor.out, "has run for 4 s (a stopped process or a sleeping machine counts")) << doctor.out;
    EXPECT_TRUE(has(doctor.out, "its password in REDISCLI_AUTH")) << doctor.out;
    EXPECT_FALSE(has(doctor.out, "se'cret"));
    const std::string line = deletion_in(doctor.out);
    ASSERT_NE(line, "") << doctor.out;
    EXPECT_EQ(type("REDISCLI_AUTH=\"se'cret\" " + line), 0) << line;
    EXPECT_FALSE(server.exists("redlock:it's/:meta")) << line;
    const Ended ran = run({"run", "-w", "20", "-t", "2400", "bus", "--", "true"});
    EXPECT_EQ(ran.status, 0) << "a guard time later it locks: " << ran.err;
  }
}

}  // namespace
}  // namespace redlock::test
