// SPDX-License-Identifier: MIT
//
// "What ends when" of redlock(1), cell by cell: a witness acts under `redlock run` in one of the ways in which programs
// begin processes, keeper or warden or both are stopped or killed at random instants, or the masters fall silent, and a
// rival waits for the same lock. Whatever the table promises, nobody acts after the rival has begun to act.
//
// 40 chains of processes that fork and end are reported, not judged: redlock must find them faster than they fork. The
// suite tries each cell once, but for the heavy kinds, of which it tries one cell each. A campaign says how often, and
// may repeat a seed:
//     REDLOCK_TRIALS=500 [REDLOCK_SEED=7] [REDLOCK_CROWD=10000] build/dev/test/integration_tool_ends
// REDLOCK_CROWD is how many other processes the machine has meanwhile. They sleep. REDLOCK_AT_ONCE is for a machine
// that is too slow for 10 trials at once.
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <filesystem>
#include <map>
#include <memory>
#include <random>

#include "tool_site.hpp"

namespace redlock::test {
namespace {

enum Whom { nobody, keeper, warden, both };
constexpr const char* whom_names[] = {"nobody", "keeper", "warden", "both"};

struct How {
  const char* name;
  Words words;         // for the witness
  bool leaves_group;
  bool is_heavy;       // keeps a processor busy: one at a time, and more rarely
  bool is_claimed = true;
};

const std::vector<How>& hows() {
  static const std::vector<How> all = {
      {"plain", {}, false, false},
      {"deaf", {"deaf"}, false, false},
      {"drops its rights", {"deaf", "drop"}, false, false},
      {"execs from a thread", {"deaf", "thread"}, false, false},
      {"sh -c 'a; b'", {}, false, false},
      {"setsid", {"deaf", "setsid"}, true, false},
      {"double fork", {"deaf", "away"}, true, false},
      {"150 nested sessions", {"deaf", "nested=150"}, true, false},
      {"10 chains", {"deaf", "chains=10"}, true, true},
      {"40 chains", {"deaf", "chains=40"}, true, true, false},
  };
  return all;
}

// What the table leaves unpromised.
bool is_promised(const How& how, Whom whom) {
  return how.is_claimed && !(how.leaves_group && whom == both);
}

class Trial {
 public:
  Trial(const ToolSite& site, const How& given, Whom hit, size_t number, std::mt19937& random)
      : how(given), whom(hit), board_(site.dir + "/trial-" + std::to_string(number)) {
    const std::string resource = "trial-" + std::to_string(number);
    words_ = site.witness(board_, resource, how.words);
    if (std::string(how.name).find("sh -c") == 0) {
      const std::string script = std::string(REDLOCK_WITNESS) + " " + board_.file() + " 1; :";
      words_ = site.words({"run", resource, "--", "sh", "-c", script});
    }
    rival_words_ = site.witness(board_, resource, {}, "2");
    dir_ = site.dir;
    for (Blow& blow : blows_) blow = {int64_t(random() % 2'000) * ns_per_ms, random() % 2 == 0 ? SIGSTOP : SIGKILL};
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  ~Trial() {
    board_->over = 1;
    if (warden_ >= 0) ::close(warden_);
  }

  void begin() { first_ = std::make_unique<Program>(words_, dir_); }
  bool has_begun() {
    if (!board_.acts()) return false;
    const std::vector<pid_t> children = children_of(first_->pid());
    if (children.size() == 1) warden_ = static_cast<int>(::syscall(SYS_pidfd_open, children[0], 0));
    rival_ = std::make_unique<Program>(rival_words_, dir_);
    return warden_ >= 0;
  }
  // Strikes when the time has come; true: nothing is left to do.
  bool strike(int64_t since_begin) {
    bool is_done = true;
    for (const Whom one : {keeper, warden}) {
      Blow& blow = blows_[one == warden];
      if (whom != one && whom != both) continue;
      if (blow.at > since_begin) is_done = false;
      if (blow.at > since_begin || blow.number == 0) continue;
      if (one == keeper) first_->signal(blow.number);
      if (one == warden) ::syscall(SYS_pidfd_send_signal, warden_, blow.number, nullptr, 0);
      if (one == keeper && blow.number == SIGKILL) status_ = 128 + SIGKILL;
      if (one == warden && whom == warden) status_ = 71;
      blow.number = 0;
    }
    return is_done;
  }
  // The rival has the lock now. Chains take the board back at once, so it need not be the owner when we look.
  bool is_over() const {
    return eventually([this] { return board_->seen[2] != 0 || board_->owner == 2; });
  }
  uint32_t overlaps() const { return board_->overlaps; }
  // What both runs have told so far.
  std::string story() const {
    return "first: " + first_->err() + "\nrival: " + (rival_ != nullptr ? rival_->err() : "");
  }
  void end() {
    board_->over = 1;
    first_->signal(SIGCONT);
    rival_->signal(SIGTERM);
    rival_->exit_status();
    const int status = first_->exit_status();
    // Where the machine does not let the warden run, the warden's own timer ends it with the command.
    const bool is_late = status == 71 && first_->err().find("the warden was killed") != std::string::npos;
    EXPECT_TRUE(whom == both || status == status_ || is_late)
        << status << ": " << how.name << ", " << whom_names[whom] << "\n" << story();
  }

  const How& how;
  const Whom whom;

 private:
  struct Blow {
    int64_t at;
    int number;
  };

  const Board board_;
  std::string dir_;
  Words words_, rival_words_;
  std::unique_ptr<Program> first_, rival_;
  int warden_ = -1;  // as a descriptor: its number may become another process's
  Blow blows_[2];
  int status_ = 79;  // of the first, but for both
};

class Crowd {
 public:
  explicit Crowd(int size) {
    for (pid_t one = 1; one > 0 && size > 0; --size) {
      one = ::fork();
      if (one == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) ::pause();
      }
      if (one > 0) all_.push_back(one);
    }
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  ~Crowd() {
    for (const pid_t one : all_) ::kill(one, SIGKILL);
    for (const pid_t one : all_) ::waitpid(one, nullptr, 0);
  }

  size_t size() const { return all_.size(); }

 private:
  std::vector<pid_t> all_;
};

// How many processes of witnesses were there at most? Whoever fills the table of processes harms the whole machine.
class Processes {
 public:
  explicit Processes(std::string name) : name_(std::move(name)) {}
  ~Processes() {
    is_over_ = true;
    watch_.join();
    std::cout << "most processes that acted at once, dead ones too: " << most_ << "\n";
    EXPECT_LT(most_, 350u) << "with the others of this test there are 400";
    EXPECT_GT(most_, 0u);
  }

 private:
  void watch() {
    for (; !is_over_; std::this_thread::sleep_for(std::chrono::milliseconds(200))) {
      size_t count = 0;
      for (const auto& one : std::filesystem::directory_iterator("/proc")) {
        std::string name;
        std::getline(std::ifstream(one.path() / "comm"), name);
        count += name == name_;
      }
      most_ = std::max(most_, count);
    }
  }

  const std::string name_;
  std::atomic<bool> is_over_ = false;
  size_t most_ = 0;
  std::thread watch_{[this] { watch(); }};
};

class ToolEnds : public ::testing::Test {
 protected:
  struct Count {
    unsigned trials, overlaps;
  };

  void run(std::vector<std::unique_ptr<Trial>>& trials, bool is_partition) {
    if (trials.empty()) return;
    for (auto& trial : trials) trial->begin();
    for (auto& trial : trials) ASSERT_TRUE(trial->has_begun()) << trial->how.name << "\n" << trial->story();
    if (is_partition) {
      for (size_t m = 0; m < 2; ++m) site_.masters[m].freeze();
      // Longer than the validity: who has been frozen for so long has lost the lock.
      pause_ns((ToolSite::ttl_ms + 500) * ns_per_ms);
      for (size_t m = 0; m < 2; ++m) site_.masters[m].thaw();
    }
    const int64_t begin = boot_ns();
    for (bool is_done = false; !is_done; pause_ns(ns_per_ms)) {
      is_done = true;
      for (auto& trial : trials) is_done = trial->strike(boot_ns() - begin) && is_done;
    }
    for (auto& trial : trials) {
      EXPECT_TRUE(trial->is_over()) << trial->how.name << ", " << whom_names[trial->whom] << "\n" << trial->story();
    }
    pause_ns(300 * ns_per_ms);
    for (auto& trial : trials) {
      Count& count = counts_[{trial->how.name, trial->whom}];
      ++count.trials;
      count.overlaps += trial->overlaps() != 0;
      if (is_promised(trial->how, trial->whom)) {
        EXPECT_EQ(trial->overlaps(), 0u) << trial->how.name << ", " << whom_names[trial->whom];
      }
      trial->end();
    }
    trials.clear();
  }
  void report() const {
    for (const How& how : hows()) {
      for (const Whom whom : {nobody, keeper, warden, both}) {
        const auto found = counts_.find({how.name, whom});
        if (found == counts_.end()) continue;
        std::cout << how.name << ", " << whom_names[whom] << ": " << found->second.trials << " trials, "
                  << found->second.overlaps << " overlaps" << (is_promised(how, whom) ? "" : " (not promised)") << "\n";
      }
    }
  }
  static void pause_ns(int64_t ns) {
    const timespec time = {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
    nanosleep(&time, nullptr);
  }
  static int number_of(const char* name, int otherwise) {
    const char* text = std::getenv(name);
    return text != nullptr ? std::atoi(text) : otherwise;
  }

  ToolSite site_;
  std::map<std::pair<std::string, Whom>, Count> counts_;
};

TEST_F(ToolEnds, NobodyActsAfterTheRival) {
  const auto at_once = static_cast<size_t>(number_of("REDLOCK_AT_ONCE", 10));
  const int once = 4 * 8 + 2;  // each cell of the light kinds, and the heavy ones of the second round
  const int wanted = number_of("REDLOCK_TRIALS", once);
  const unsigned seed = static_cast<unsigned>(number_of("REDLOCK_SEED", static_cast<int>(std::random_device{}() >> 1)));
  std::cout << "REDLOCK_SEED=" << seed << "\n";
  const int others = number_of("REDLOCK_CROWD", 0);
  const Crowd crowd(others);
  ASSERT_EQ(crowd.size(), static_cast<size_t>(others)) << "the system allows no more processes";
  const Processes processes(std::filesystem::path(site_.dir).filename());
  std::mt19937 random(seed);
  const size_t kinds = hows().size();
  std::vector<std::unique_ptr<Trial>> silence, blows, alone;
  for (size_t i = 0, begun = 0; begun < static_cast<size_t>(wanted); ++i) {
    const How& how = hows()[i % kinds];
    const auto whom = static_cast<Whom>((i / kinds + i % kinds) % 4);
    if (geteuid() != 0 && std::string(how.name).find("drops") == 0) continue;
    // Every kind of blow has its turn, but for "both": under a parent that is stopped nobody reaps what chains leave.
    if (how.is_heavy && ((i / kinds) % 5 != 1 || whom == both)) continue;
    ++begun;
    auto& batch = how.is_heavy ? alone : whom == nobody ? silence : blows;
    batch.push_back(std::make_unique<Trial>(site_, how, whom, begun, random));
    if (!how.is_heavy && batch.size() == at_once) run(batch, whom == nobody);
    if (HasFatalFailure()) return report();
  }
  run(silence, true);
  run(blows, false);
  // Last: what a chain leaves behind under a warden that is stopped fills /proc.
  for (auto& trial : alone) {
    std::vector<std::unique_ptr<Trial>> one;
    const bool is_partition = trial->whom == nobody;
    one.push_back(std::move(trial));
    run(one, is_partition);
  }
  report();
  for (const How& how : hows()) {
    if (how.is_heavy || wanted < once || (geteuid() != 0 && std::string(how.name).find("drops") == 0)) continue;
    for (const Whom whom : {nobody, keeper, warden, both}) {
      EXPECT_TRUE(counts_.contains({how.name, whom})) << how.name << ", " << whom_names[whom] << " was not tried";
    }
  }
}

// A control group that freezes stands for a machine that runs no process. The frozen are not ended by a KILL either.
TEST_F(ToolEnds, WhereNoProcessRunsTheKillIsThatMuchLate) {
  const std::string group = "/sys/fs/cgroup/freezer/redlock-ends-" + std::to_string(getpid());
  if (::mkdir(group.c_str(), 0700) != 0) GTEST_SKIP() << "no control groups that freeze";
  const auto become = [&group](const std::string& state) {
    std::ofstream(group + "/freezer.state") << state;
    EXPECT_TRUE(eventually([&] { return text_of_file(group + "/freezer.state") == state + "\n"; })) << state;
  };
  const Board board(site_.dir + "/frozen");
  Program run(site_.witness(board, "frozen", {"deaf"}), site_.dir);
  ASSERT_TRUE(board.acts());
  const std::vector<pid_t> warden = children_of(run.pid());
  ASSERT_EQ(warden.size(), 1u);
  for (const pid_t pid : {run.pid(), warden[0], children_of(warden[0]).at(0)}) {
    std::ofstream(group + "/cgroup.procs") << pid;
  }
  run.signal(SIGSTOP);  // the kernel alone ends the command
  ::kill(warden[0], SIGSTOP);
  become("FROZEN");
  const int64_t end = site_.validity_end_ns("frozen") + 500 * ns_per_ms;
  while (boot_ns() < end) pause_ns(10 * ns_per_ms);
  become("THAWED");
  const int64_t thawed = boot_ns();
  EXPECT_TRUE(eventually([&] { return board.is_abandoned(); }));
  board->over = 1;
  std::cout << "last act " << (board->last_act_ns - thawed) / ns_per_ms << " ms behind the thaw\n";
  EXPECT_LT(board->last_act_ns, thawed + 100 * ns_per_ms);
  run.signal(SIGCONT);
  EXPECT_EQ(run.exit_status(), 79) << run.err();
  ::rmdir(group.c_str());
}

}  // namespace
}  // namespace redlock::test
