// SPDX-License-Identifier: MIT
//
// Six workers fight for one resource with fenced locks. Four are busy. Two are idle most of the time, and may not track
// keys, so nothing tells these two what happens to a master. Meanwhile real masters are killed (SIGKILL) and restarted,
// with and without what they had on disk; they are flushed; they become replicas of a copy of what they hold, record
// and counters included, and masters again: one at a time and a majority at once. Whatever happens: no two workers hold
// at one instant, no token is given twice, and each is larger than all that were given before its acquire began.
//
// A dozen seconds in ctest. REDLOCK_CAMPAIGN_SECONDS=600 makes it ten minutes, REDLOCK_CAMPAIGN_SEED chooses the
// masters' fate; what the workers do with it is up to the machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/redis_server.hpp"
#include "support/server_kind.hpp"
#include "thread_harness.hpp"

namespace redlock::test {
namespace {

constexpr unsigned busy_workers = 4, workers = 6;
constexpr const char* idle_user = "idle";
constexpr uint32_t max_ttl_ms = 1'000;  // so that a master that forgot is back within a second or so

uint32_t from_environment(const char* name, uint32_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? static_cast<uint32_t>(std::strtoul(text, nullptr, 10)) : otherwise;
}

uint32_t below(std::mt19937& random, uint32_t limit) {
  return std::uniform_int_distribution<uint32_t>(0, limit - 1)(random);
}

Settings settings(const std::vector<std::string>& urls, const std::string& name, const std::string& guard) {
  return {urls,
          name,
          {{"defaults.ttl_ms", max_ttl_ms}, {"timing.max_ttl_ms", max_ttl_ms}, {"timing.node_timeout_ms", 500}},
          {{"guard", guard}}};
}

// Who holds, and which tokens were given.
class Ledger {
 public:
  struct Counts {
    unsigned locks, overlaps, twice, backwards, floored, expired;
  };

  uint64_t largest() {
    const std::lock_guard guard(mutex_);
    return largest_;
  }
  // before: largest() before the acquire began.
  void given(uint64_t token, uint64_t before) {
    const std::lock_guard guard(mutex_);
    ++counts_.locks;
    counts_.twice += tokens_.insert(token).second ? 0 : 1;
    counts_.backwards += token > before ? 0 : 1;
    largest_ = std::max(largest_, token);
  }
  // Does another worker's check say 0, and then this one's too? Then both held when the first was asked, for this one
  // had acquired before. Nothing is missed by a pause, and nothing found where a validity had just ended.
  bool holds(unsigned worker, redlock_t* rl, redlock_lock_t lock) {
    const std::lock_guard guard(mutex_);
    held_[worker] = {rl, lock};
    bool other = false;
    for (unsigned w = 0; w < workers; ++w) {
      other = other || (w != worker && held_[w].rl != nullptr && redlock_check(held_[w].rl, held_[w].lock, 0) == 0);
    }
    const bool ours = redlock_check(rl, lock, 0) == 0;
    counts_.overlaps += ours && other ? 1 : 0;
    counts_.expired += ours ? 0 : 1;
    return ours;
  }
  void leaves(unsigned worker) {
    const std::lock_guard guard(mutex_);
    held_[worker].rl = nullptr;
  }
  void floored(unsigned n) {
    const std::lock_guard guard(mutex_);
    counts_.floored += n;
  }
  Counts counts() {
    const std::lock_guard guard(mutex_);
    return counts_;
  }

 private:
  struct Held {
    redlock_t* rl = nullptr;
    redlock_lock_t lock{0};
  };
  std::mutex mutex_;
  std::array<Held, workers> held_;
  std::set<uint64_t> tokens_;
  uint64_t largest_ = 0;
  Counts counts_{};
};

// One worker's life: short jobs, jobs that outlast the ttl with renewal, and jobs that go on until the lock has ended.
void work(unsigned worker, const std::vector<std::string>& urls, Ledger& ledger, const std::atomic<bool>& stop) {
  std::mt19937 random(worker);
  std::atomic<unsigned> floored = 0;
  Settings mine = settings(urls, "worker-" + std::to_string(worker), "strict");
  if (worker >= busy_workers) {
    mine.strings.push_back({"username", idle_user});
    mine.strings.push_back({"password", "any"});
  }
  ThreadClient client(mine);
  client.also = [&floored](redlock_t*, const redlock_event_t& event) {
    if (event.type == REDLOCK_EV_ACQUIRED && (event.flags & REDLOCK_EV_F_FLOORED) != 0) ++floored;
  };
  while (!stop) {
    if (worker >= busy_workers) std::this_thread::sleep_for(std::chrono::milliseconds(500 + below(random, 1'500)));
    const uint32_t kind = worker < busy_workers ? below(random, 8) : 1;  // 0: renewed, 1: until it ends, else short
    const uint32_t flags = REDLOCK_F_FENCING | (kind == 0 ? 0 : REDLOCK_F_NO_RENEW);
    const uint32_t ttl_ms = kind == 0 ? 300 : 300 + below(random, 700);
    const int hold_ms = kind == 0 ? 800 : kind == 1 ? 10'000 : static_cast<int>(below(random, 20));
    const uint64_t before = ledger.largest();
    redlock_lock_t lock{0};
    if (client.acquire("bus", lock, options(ttl_ms, 1'000, flags)) != 0) continue;
    ledger.given(redlock_fencing_token(client.get(), lock), before);
    const int64_t until = boot_ns() + int64_t{hold_ms} * 1'000'000;
    while (ledger.holds(worker, client.get(), lock) && boot_ns() < until && !stop) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ledger.leaves(worker);
    (void)client.release(lock);
  }
  ledger.floored(floored);
}

// All of them; they end with the object, also when the masters' fate throws.
class Workers {
 public:
  Workers(const std::vector<std::string>& urls, Ledger& ledger) {
    for (unsigned w = 0; w < workers; ++w) threads_.emplace_back([&, w] { work(w, urls, ledger, stop_); });
  }
  ~Workers() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

// What happens to the masters.
class Fate {
 public:
  explicit Fate(uint32_t seed) : random_(seed) {
    RedisServer any;
    const Args rules = user_rules(kind_of(any), {"on", "nopass", "~*", "&*", "+@all", "-client|tracking"});
    for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
             {}, {}, {"--appendonly", "yes"}, {"--appendonly", "yes"},
             {"--appendonly", "yes", "--appendfsync", "always"}}) {
      RedisServer::Options options;
      options.args = {"--user", idle_user};
      options.args.insert(options.args.end(), rules.begin(), rules.end());
      options.args.insert(options.args.end(), args.begin(), args.end());
      options.unix_socket = true;  // a port could be taken while its master is dead
      masters_.push_back(std::make_unique<RedisServer>(options));
    }
  }
  std::vector<std::string> urls() const {
    std::vector<std::string> all;
    for (const auto& master : masters_) all.push_back(master->url());
    return all;
  }
  // One blow, to one master, or each fourth time to three of the five at once, and some time for the workers.
  void strike() {
    enum Blow { kill, flush, role_cycle, blows };
    const bool majority = ++strikes_ % 4 == 0, late = below(random_, 2) == 0;
    const unsigned blow = (strikes_ + strikes_ / 4) % blows;
    std::shuffle(masters_.begin(), masters_.end(), random_);
    const size_t hit = majority ? 3 : 1;
    for (size_t m = 0; m < hit; ++m) {
      if (blow == flush) masters_[m]->command({"FLUSHALL"});
      if (blow == kill) masters_[m]->kill_hard();
    }
    if (blow == role_cycle) cycle_roles(hit);
    (blow == flush ? flushes : blow == kill ? kills : role_cycles) += static_cast<unsigned>(hit);
    if (late) pause(below(random_, 500));
    for (size_t m = 0; m < hit && blow == kill; ++m) masters_[m]->restart();
    pause((majority ? 1'500 : 300) + below(random_, 700));
  }
  unsigned kills = 0, flushes = 0, role_cycles = 0;

 private:
  // The first masters take over a copy of what each holds now, without the locks, and are masters again. Their
  // connections stay.
  void cycle_roles(size_t hit) {
    for (size_t m = 0; m < hit; ++m) {
      RedisServer &master = *masters_[m], &copy = copies_.at(m);
      copy.command({"FLUSHALL"});
      for (const char* key : {"redlock::meta", "redlock::fence"}) {
        const std::string held = master.command({"DUMP", key});
        if (held != "(nil)") copy.command({"RESTORE", key, "0", held});
      }
    }
    for (size_t m = 0; m < hit; ++m) {
      masters_[m]->command({"REPLICAOF", "127.0.0.1", std::to_string(copies_.at(m).port())});
    }
    for (size_t m = 0; m < hit; ++m) {
      while (masters_[m]->command({"INFO", "replication"}).find("link_status:up") == std::string::npos) pause(1);
      masters_[m]->command({"REPLICAOF", "NO", "ONE"});
    }
  }
  static RedisServer::Options sends_at_once() {
    RedisServer::Options options;
    options.args = {"--repl-diskless-sync-delay", "0"};
    return options;
  }
  static void pause(unsigned ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

  std::mt19937 random_;
  unsigned strikes_ = 0;
  std::array<RedisServer, 3> copies_{RedisServer(sends_at_once()), RedisServer(sends_at_once()),
                                     RedisServer(sends_at_once())};
  std::vector<std::unique_ptr<RedisServer>> masters_;
};

// The ledger is worth what it sees: without the guard a majority that forgets lets a second holder in.
TEST(Campaign, TheLedgerSeesTwoHoldersAndBadTokens) {
  Cluster masters(3);
  // Who is told of a flush is quick to know that his lock is lost.
  for (size_t m = 0; m < 3; ++m) set_user(masters[m], "default", {"-client|tracking"});
  ThreadClient a(settings(masters.urls(), "a", "off")), b(settings(masters.urls(), "b", "off"));
  Ledger ledger;
  redlock_lock_t first{0}, second{0};
  const auto opts = options(max_ttl_ms, 2'000, REDLOCK_F_FENCING | REDLOCK_F_NO_RENEW);
  for (int i = 0; i < 20 && ledger.counts().overlaps == 0; ++i) {  // a machine may stand still for a ttl
    ASSERT_EQ(a.acquire("bus", first, opts), 0);
    ledger.holds(0, a.get(), first);
    for (size_t m = 0; m < 3; ++m) masters[m].command({"FLUSHALL"});
    ASSERT_EQ(b.acquire("bus", second, opts), 0);
    ledger.holds(1, b.get(), second);
    ledger.leaves(0);
    ledger.leaves(1);
    (void)a.release(first);
    (void)b.release(second);
  }
  EXPECT_EQ(ledger.counts().overlaps, 1u);
  ledger.given(5, 0);
  ledger.given(5, 4);
  ledger.given(6, 6);
  EXPECT_EQ(ledger.counts().twice, 1u);
  EXPECT_EQ(ledger.counts().backwards, 1u);
}

TEST(Campaign, KillsFlushesAndRoleCycles) {
  const uint32_t seconds = from_environment("REDLOCK_CAMPAIGN_SECONDS", 12);
  Fate fate(from_environment("REDLOCK_CAMPAIGN_SEED", 1));
  const std::vector<std::string> urls = fate.urls();
  {
    Settings operators = settings(urls, "operator", "strict");
    operators.commission = true;
    ThreadClient commissioner(operators);
    ASSERT_TRUE(ThreadClient::eventually([&] { return commissioner.status().masters_up == urls.size(); }));
  }
  Ledger ledger;
  {
    const Workers running(urls, ledger);
    const int64_t until = boot_ns() + int64_t{seconds} * 1'000'000'000;
    while (boot_ns() < until) fate.strike();
  }

  const Ledger::Counts counts = ledger.counts();
  std::printf("%u s: %u kills, %u flushes, %u role cycles; %u locks, %u of them ended in use; tokens: %u floored, "
              "%u twice, %u backwards; %u overlaps\n",
              seconds, fate.kills, fate.flushes, fate.role_cycles, counts.locks, counts.expired, counts.floored,
              counts.twice, counts.backwards, counts.overlaps);
  EXPECT_GT(fate.kills, 0u);
  EXPECT_GT(fate.flushes, 0u);
  EXPECT_GT(fate.role_cycles, 0u);
  EXPECT_GT(counts.locks, 10u) << "the workers got nothing done";
  EXPECT_EQ(counts.twice, 0u);
  EXPECT_EQ(counts.backwards, 0u);
  EXPECT_EQ(counts.overlaps, 0u);
}

}  // namespace
}  // namespace redlock::test
