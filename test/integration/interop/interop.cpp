// SPDX-License-Identifier: MIT
//
// Our locks beside those of node-redlock (three masters) and of redis-py (one), on the same keys. README.md says what
// follows for a site.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "integration/guard_site.hpp"
#include "integration/thread_harness.hpp"

extern char** environ;

namespace redlock::test {
namespace {

// Somebody else's lock library in a process of its own. Each line that it reads is answered by one line, "yes" or
// "no: WHY":
//   acquire KEY TTL_MS     one try
//   extend TTL_MS          of the lock that was acquired last, also if it is over
//   release                likewise
//   contend KEY TTL_MS HOLD_MS PAUSE_MS MARKER TURNS STOP
//                          takes turns with the pauses that the library has by itself, until the file STOP is there. In
//                          each turn it makes the file MARKER, which must not be there, and appends its letter to the
//                          file TURNS: '!' if MARKER was there
class Foreign {
 public:
  explicit Foreign(std::vector<std::string> words) {
    int to[2], from[2];
    if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    const int err = ::posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(to[0]);
    ::close(from[1]);
    to_ = ::fdopen(to[1], "w");
    from_ = ::fdopen(from[0], "r");
    if (err != 0) throw std::runtime_error(words[0] + " cannot be started");
  }
  ~Foreign() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    std::fclose(to_);
    std::fclose(from_);
  }
  Foreign(const Foreign&) = delete;
  Foreign& operator=(const Foreign&) = delete;

  void freeze() { ::kill(pid_, SIGSTOP); }
  void say(const std::string& line) {
    std::fprintf(to_, "%s\n", line.c_str());
    std::fflush(to_);
  }
  std::string hear() {
    char line[4096];
    if (std::fgets(line, sizeof line, from_) == nullptr) throw std::runtime_error("the other library's program ended");
    return std::string(line).substr(0, std::string(line).find('\n'));
  }
  std::string ask(const std::string& line) {
    say(line);
    return hear();
  }

 private:
  pid_t pid_ = -1;
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
};

struct Library {
  const char* name;
  unsigned masters;
  std::vector<std::string> program;
};

void PrintTo(const Library& library, std::ostream* out) { *out << library.name; }

const Library kLibraries[] = {
    {"RedisPy", 1, {"/usr/bin/python3", REDLOCK_INTEROP "/worker.py"}},
    {"NodeRedlock4", 3, {"node", REDLOCK_INTEROP "/worker.js", "4"}},
    {"NodeRedlock5", 3, {"node", REDLOCK_INTEROP "/worker.js", "5"}},
};

std::vector<std::string> start_of(const Library& library, const Site& site) {
  std::vector<std::string> words = library.program;
  for (const auto& master : site.masters) words.push_back(std::to_string(master->port()));
  return words;
}

class Interop : public ::testing::TestWithParam<Library> {
 protected:
  Interop() : Interop(30'000) {}
  explicit Interop(uint32_t max_ttl_ms) : site_(GetParam().masters, max_ttl_ms) {}

  std::vector<std::string> program() const { return start_of(GetParam(), site_); }

  // The value of the key on each master, "(nil)" without one.
  std::vector<std::string> values(const std::string& key) {
    std::vector<std::string> all;
    for (const auto& master : site_.masters) all.push_back(master->command({"GET", key}));
    return all;
  }
  void delete_by_hand(const std::string& key) {
    for (const auto& master : site_.masters) master->command({"DEL", key});
  }
  // They are content with a quorum, and their last SET may come later.
  void wait_on_all_masters(const std::string& key) {
    EXPECT_TRUE(ThreadClient::eventually([&] {
      const std::vector<std::string> all = values(key);
      return std::count(all.begin(), all.end(), "(nil)") == 0;
    }));
  }
  // They hold it on all masters, and send no more: node-redlock repeats a SET whose master ended before the answer.
  void take_for_good(Foreign& holder, const std::string& key, unsigned ttl_ms) {
    ASSERT_EQ(holder.ask("acquire " + key + " " + std::to_string(ttl_ms)), "yes");
    wait_on_all_masters(key);
    holder.freeze();
  }
  // Too few masters remember anything.
  void restart_a_quorum() {
    for (unsigned m = 0; m < quorum(); ++m) site_[m].restart();
  }
  // Until the client knows that they were restarted, so that the guard judges what is tried then.
  void wait_watched(Client& client) {
    for (unsigned m = 0; m < quorum(); ++m) wait_guarded(site_.loop, client, m, REDLOCK_E_UNWATCHED);
  }
  unsigned quorum() const { return static_cast<unsigned>(site_.masters.size() / 2 + 1); }

  Site site_;
};

TEST_P(Interop, TheOtherWaitsForTheLock) {
  Client ours(site_.loop, site_.settings());
  Foreign theirs(program());
  ours.wait_up(GetParam().masters);

  Lock& lock = ours.acquire("bus", site_.longest());
  ASSERT_TRUE(lock.has(REDLOCK_EV_ACQUIRED));
  EXPECT_NE(theirs.ask("acquire bus 5000"), "yes");
  ours.release(lock);
  EXPECT_TRUE(site_.loop.run_until([&] { return ours.status().debts == 0; }));

  EXPECT_EQ(theirs.ask("acquire bus 5000"), "yes");
  EXPECT_EQ(ours.acquire("bus", site_.longest()).first(REDLOCK_EV_FAILED).err, REDLOCK_E_LOCKED);
  EXPECT_EQ(theirs.ask("release"), "yes");
  EXPECT_TRUE(ours.acquire("bus", site_.longest()).has(REDLOCK_EV_ACQUIRED));
}

// Somebody deletes their key by hand, and we take the lock. They do not notice.
TEST_P(Interop, TheyCannotReleaseOrExtendOurs) {
  Client ours(site_.loop, site_.settings());
  Foreign theirs(program());
  ours.wait_up(GetParam().masters);

  ASSERT_EQ(theirs.ask("acquire bus 20000"), "yes");
  wait_on_all_masters("bus");
  delete_by_hand("bus");
  Lock& lock = ours.acquire("bus", site_.longest());
  ASSERT_TRUE(lock.has(REDLOCK_EV_ACQUIRED));
  const std::vector<std::string> before = values("bus");
  const auto ttl_before = std::stol(site_[0].command({"PTTL", "bus"}));
  EXPECT_NE(theirs.ask("extend 300000"), "yes");
  EXPECT_NE(theirs.ask("release"), "yes");
  EXPECT_EQ(values("bus"), before);
  EXPECT_LE(std::stol(site_[0].command({"PTTL", "bus"})), ttl_before);
  EXPECT_EQ(ours.check(lock), 0);
}

// The same the other way round: their key is there before our client has heard of the loss.
TEST_P(Interop, OursCannotReleaseOrExtendTheirs) {
  Client ours(site_.loop, site_.settings());
  Foreign theirs(program());
  ours.wait_up(GetParam().masters);

  for (const bool extend : {true, false}) {
    Lock& lock = ours.acquire("bus", site_.longest(REDLOCK_WAIT_FOREVER));
    ASSERT_TRUE(lock.has(REDLOCK_EV_ACQUIRED));
    delete_by_hand("bus");
    ASSERT_EQ(theirs.ask("acquire bus 20000"), "yes");
    wait_on_all_masters("bus");
    const std::vector<std::string> before = values("bus");
    const int err =
        extend ? redlock_extend_async(ours.get(), lock.handle, 0) : redlock_release_async(ours.get(), lock.handle);
    EXPECT_EQ(err, 0);
    EXPECT_TRUE(site_.loop.run_until([&] { return lock.ended() && ours.status().debts == 0; }));
    EXPECT_FALSE(lock.has(REDLOCK_EV_RENEWED));
    EXPECT_EQ(values("bus"), before);
    EXPECT_EQ(theirs.ask("extend 20000"), "yes");
    EXPECT_EQ(theirs.ask("release"), "yes");
  }
}

// Their libraries have no guard: a second one enters while the first one still holds its lock. Ours wait.
TEST_P(Interop, TheyEnterAfterARestartAndOursDoNot) {
  Client ours(site_.loop, site_.settings());
  Foreign holder(program());
  ours.wait_up(GetParam().masters);

  take_for_good(holder, "bus", 30'000);
  restart_a_quorum();
  wait_watched(ours);
  EXPECT_EQ(ours.acquire("bus", site_.longest()).first(REDLOCK_EV_FAILED).err, REDLOCK_E_GUARD);
  Foreign second(program());
  EXPECT_EQ(second.ask("acquire bus 30000"), "yes") << "a guard of theirs: README.md is wrong then";
  EXPECT_FALSE(ours.acquire("bus", site_.longest()).has(REDLOCK_EV_ACQUIRED));
}

class ShortGuard : public Interop {
 protected:
  ShortGuard() : Interop(300) {}
};

// The guard waits for what our own clients can hold. Why no ttl of theirs may be above timing.max_ttl_ms.
TEST_P(ShortGuard, ATtlAboveOursOutlivesTheGuard) {
  Client ours(site_.loop, site_.settings());
  Foreign theirs(program());
  ours.wait_up(GetParam().masters);

  take_for_good(theirs, "bus", 60'000);
  restart_a_quorum();
  EXPECT_TRUE(ours.acquire("bus", site_.longest(REDLOCK_WAIT_FOREVER)).has(REDLOCK_EV_ACQUIRED));
}

INSTANTIATE_TEST_SUITE_P(With, Interop, ::testing::ValuesIn(kLibraries), [](const auto& i) { return i.param.name; });
INSTANTIATE_TEST_SUITE_P(With, ShortGuard, ::testing::ValuesIn(kLibraries), [](const auto& i) { return i.param.name; });

// Two of ours and two of theirs take turns at one resource. The kernel is the witness: each makes one and the same file
// while it holds the lock, and the file must not be there.
class Contention {
 public:
  Contention(const Library& library, size_t theirs) : site_(library.masters), folder_(site_[0].dir()) {
    for (size_t i = 0; i < 2; ++i) ours_.emplace_back(&Contention::contend, this);
    for (size_t i = 0; i < theirs; ++i) add(library);
  }
  ~Contention() {
    std::ofstream(folder_ + "/stop") << "now";
    for (std::thread& thread : ours_) thread.join();
    for (const auto& program : theirs_) EXPECT_EQ(program->hear(), "yes");
    const std::string all = turns();
    EXPECT_EQ(std::count(all.begin(), all.end(), '!'), 0) << "two held the lock at once: " << all;
  }

  void add(const Library& library) {
    theirs_.push_back(std::make_unique<Foreign>(start_of(library, site_)));
    theirs_.back()->say("contend bus 10000 5 10 " + folder_ + "/marker " + folder_ + "/turns " + folder_ + "/stop");
  }
  // One letter for each turn so far: 'o' is ours.
  std::string turns() const {
    std::stringstream text;
    text << std::ifstream(folder_ + "/turns").rdbuf();
    return text.str();
  }

 private:
  // In line again 10 ms after a turn of 5 ms, as the others.
  void contend() {
    Settings settings = site_.settings();
    settings.numbers.insert(settings.numbers.end(), {{"timing.max_ttl_ms", 30'000}, {"defaults.ttl_ms", 10'000}});
    ThreadClient client(settings);
    const std::string marker = folder_ + "/marker", turns = folder_ + "/turns", stop = folder_ + "/stop";
    while (::access(stop.c_str(), F_OK) != 0) {
      redlock_lock_t lock;
      if (client.acquire("bus", lock, options(0, 1'000)) != 0) continue;
      const int fd = ::open(marker.c_str(), O_CREAT | O_EXCL | O_CLOEXEC, 0600);
      std::ofstream(turns, std::ios::app) << (fd >= 0 ? 'o' : '!') << std::flush;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      if (fd >= 0) {
        ::unlink(marker.c_str());
        ::close(fd);
      }
      client.release(lock);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  Site site_;
  std::string folder_;
  std::vector<std::thread> ours_;
  std::vector<std::unique_ptr<Foreign>> theirs_;
};

// They have had some turns at least, or they have shown nothing; how many is printed, and no verdict.
void print_shares(const std::string& who, const std::string& turns) {
  const auto ours = std::count(turns.begin(), turns.end(), 'o');
  const auto all = static_cast<long>(turns.size());
  std::cout << who << ": " << all - ours << " of " << all << " turns, " << 100 * (all - ours) / all << " %\n";
}

TEST(Contention, NobodyIsThereTogether) {
  Contention python(kLibraries[0], 2);
  Contention node(kLibraries[1], 1);
  node.add(kLibraries[2]);
  const auto begin = std::chrono::steady_clock::now();
  const auto count = [](const std::string& turns, char who) { return std::count(turns.begin(), turns.end(), who); };
  EXPECT_TRUE(ThreadClient::eventually([&] {
    const std::string p = python.turns(), n = node.turns();
    return count(p, 'p') >= 5 && count(n, '4') >= 5 && count(n, '5') >= 5 && count(p, 'o') >= 5 && count(n, 'o') >= 5 &&
           std::chrono::steady_clock::now() - begin > std::chrono::seconds(4);
  })) << python.turns() << "\n" << node.turns();
  print_shares("redis-py, 2 of 4 clients", python.turns());
  print_shares("node-redlock, 2 of 4 clients", node.turns());
}

}  // namespace
}  // namespace redlock::test
