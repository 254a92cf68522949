// SPDX-License-Identifier: MIT
//
// Calls of redlock_reconfigure that overlap in time, on real servers: each in a process of its own, which is stopped,
// killed and begun again, while clients of all configurations try to lock all the time. No two of them ever hold the
// lock.
#include <gtest/gtest.h>
#include <redlock/site.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "change_servers.hpp"

namespace redlock::test {
namespace {

// ---- a call in a process of its own

// The same masters by the same names; to those of `away` there is no way from here: nobody listens on ports 1 and up.
redlock_config_t* config_of(Servers& servers, const Members& members, const Members& away) {
  std::string masters;
  for (const unsigned i : members) {
    const std::string host = "127.0.0.1:", name = host + std::to_string(servers[i].port());
    const bool reached = std::find(away.begin(), away.end(), i) == away.end();
    masters += std::string(masters.empty() ? "" : ", ") + "{\"url\": \"redis://" +
               (reached ? name : host + std::to_string(1 + i)) + "\", \"name\": \"" + name + "\"}";
  }
  const std::string text =
      "{\"masters\": [" + masters +
      "], \"guard\": \"strict\", \"defaults\": {\"ttl_ms\": 1000}, \"timing\": {\"max_ttl_ms\": 1000, "
      "\"suspect_close_ms\": 1000, \"connect_timeout_ms\": 250, \"reconnect_max_ms\": 100}}";
  redlock_config_t* cfg = nullptr;
  if (redlock_config_new(&cfg) != 0 || redlock_config_load_json(cfg, text.c_str(), text.size()) != 0) {
    throw std::runtime_error(cfg != nullptr ? redlock_config_error(cfg) : "no memory");
  }
  return cfg;
}

class Call {
 public:
  Call(Servers& servers, const Members& before, const Members& after, const Members& away = {}) {
    redlock_config_t* old_cfg = config_of(servers, before, away);
    redlock_config_t* new_cfg = config_of(servers, after, away);
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("pipe");
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("fork");  // a signal to process -1 would go to everybody
    if (pid_ == 0) {
      ::close(ends[0]);
      const int result = redlock_reconfigure(old_cfg, new_cfg, nullptr);
      ::_exit(::write(ends[1], &result, sizeof result) == sizeof result ? 0 : 1);
    }
    ::close(ends[1]);
    in_ = ends[0];
    redlock_config_free(old_cfg);
    redlock_config_free(new_cfg);
  }
  ~Call() {
    kill();
    ::close(in_);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void stop() { ::kill(pid_, SIGSTOP); }
  void go_on() { ::kill(pid_, SIGCONT); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  bool over() {
    if (pid_ <= 0 || ::waitpid(pid_, nullptr, WNOHANG) == 0) return pid_ <= 0;
    pid_ = 0;
    if (::read(in_, &result_, sizeof result_) != sizeof result_) ADD_FAILURE() << "the call has died";
    return true;
  }
  int result() const { return result_; }

 private:
  pid_t pid_ = 0;
  int in_ = -1;
  int result_ = -1000;
};

// ---- clients that try all the time

class Site {
 public:
  Site(Servers& servers, const Members& old_set) : servers_(servers) {
    Client first(loop, of(servers, old_set, true));
    first.wait_up(static_cast<uint32_t>(old_set.size()));
    add(old_set);
  }
  void add(const Members& set) { triers_.push_back(std::make_unique<Trier>(loop, of(servers_, set))); }

  // All of them try.
  bool until(const std::function<bool()>& condition) {
    return loop.run_until([&] {
      for (size_t i = 0; i < triers_.size(); ++i) turn(i);
      return condition();
    });
  }
  void expect_end(Call& call, int result) {
    EXPECT_TRUE(until([&] { return call.over(); }));
    EXPECT_EQ(call.result(), result);
  }
  // Another call has ended while this one stood still. Which error tells so depends on whether the call had read its
  // marks again when it was stopped.
  void expect_gives_way(Call& call) {
    call.go_on();
    EXPECT_TRUE(until([&] { return call.over(); }));
    EXPECT_TRUE(call.result() == REDLOCK_E_CHANGING || call.result() == REDLOCK_E_RECORD_LOST) << call.result();
  }
  void run_for(int ms) {
    const int64_t end = boot_ns() + int64_t{ms} * 1'000'000;
    until([&] { return boot_ns() >= end; });
  }
  // Clients of this set get the lock from now on, and no others; or nobody does.
  void expect_only(const std::set<size_t>& expected) {
    if (expected.empty()) run_for(max_ttl_ms);  // what is held now ends
    held_.clear();
    EXPECT_TRUE(until([&] { return std::includes(held_.begin(), held_.end(), expected.begin(), expected.end()); }));
    run_for(3 * max_ttl_ms / 2);
    EXPECT_EQ(held_, expected);
    EXPECT_FALSE(overlap_);
  }

  Loop loop;

 private:
  struct Trier {
    Trier(Loop& l, const Settings& settings) : client(l, settings) {}
    Client client;
    Lock* lock = nullptr;
    int64_t since = 0;
    bool left = false;
    bool holds() { return lock != nullptr && !left && lock->has(REDLOCK_EV_ACQUIRED) && client.check(*lock) == 0; }
  };

  void turn(size_t i) {
    Trier& t = *triers_[i];
    if (t.lock == nullptr || t.lock->ended()) {
      t.lock = &t.client.start("bus", options(1'000, REDLOCK_WAIT_FOREVER));
      t.left = false;
      t.since = 0;
    }
    if (!t.holds()) return;
    held_.insert(i);
    for (auto& other : triers_) {
      if (other.get() != &t && other->holds() && t.holds()) overlap_ = true;
    }
    if (t.since == 0) t.since = boot_ns();
    if (boot_ns() - t.since < 300'000'000) return;
    t.left = true;
    EXPECT_EQ(redlock_release_async(t.client.get(), t.lock->handle), 0);
  }

  Servers& servers_;
  std::vector<std::unique_ptr<Trier>> triers_;
  std::set<size_t> held_;
  bool overlap_ = false;
};

constexpr size_t old_set = 0, new_set = 1;  // as the tests add them

// A call waits: it has marked these, and is stopped before it looks again.
void stop_in_its_wait(Servers& servers, Site& site, Call& call, const Members& marked) {
  EXPECT_TRUE(site.until([&] {
    for (const unsigned i : marked) {
      if (!servers.marked(i)) return false;
    }
    return true;
  }));
  call.stop();
}

// ---- two calls

// Another call begins while the first one waits. A slow machine might let the first end before: it is stopped until the
// other has marked this master.
std::unique_ptr<Call> begin_in_the_wait(Servers& servers, Site& site, Call& first, const Members& from,
                                        const Members& to, unsigned master) {
  Members all(servers.all.size());
  std::iota(all.begin(), all.end(), 0u);
  stop_in_its_wait(servers, site, first, all);
  const std::string q = servers.field(master, "q");
  auto other = std::make_unique<Call>(servers, from, to);
  EXPECT_TRUE(site.until([&] { return servers.field(master, "q") != q; }));
  return other;
}

// The operator undoes the change while it waits, or says it again.
TEST(ReconfigureOverlap, OfTwoCallsTheLaterOneGoesOn) {
  const struct {
    unsigned servers;
    Members before, after;
    bool back;
  } cases[] = {{6, {0, 1, 2}, {3, 4, 5}, true}, {4, {0, 1, 2}, {1, 2, 3}, true}, {5, {0, 1, 2}, {2, 3, 4}, false}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.servers);
    Servers servers(c.servers);
    Site site(servers, c.before);
    const bool is_early = c.servers == 4;  // where the new masters alone are no quorum
    if (is_early) site.add(c.after);
    Call one(servers, c.before, c.after);
    const auto other = c.back ? begin_in_the_wait(servers, site, one, c.after, c.before, 0)
                              : begin_in_the_wait(servers, site, one, c.before, c.after, 3);
    site.expect_gives_way(one);
    site.expect_end(*other, 0);
    if (!is_early) site.add(c.after);
    site.expect_only({c.back ? old_set : new_set});
  }
}

// Both have failed, and nobody can lock. The call whose new set the gateways are to have is repeated.
TEST(ReconfigureOverlap, WhenBothHaveFailedOneIsRepeated) {
  for (const bool back : {false, true}) {
    Servers servers(4);
    const Members before = {0}, after = {1, 2, 3};
    Site site(servers, before);
    Call one(servers, before, after);
    stop_in_its_wait(servers, site, one, {0, 1, 2, 3});
    {
      Call other(servers, after, before);
      const std::string q = servers.field(0, "q");
      EXPECT_TRUE(site.until([&] { return servers.field(0, "q") != q && servers.field(2, "q") != q; }));
    }  // it is killed
    site.expect_gives_way(one);
    site.expect_only({});
    Call last(servers, back ? after : before, back ? before : after);
    site.expect_end(last, 0);
    site.add(after);
    site.expect_only({back ? old_set : new_set});
  }
}

// ---- schedules in which a call that only looked again at what it had found would go wrong

// The first call does not see the last new master, and the opposite one does not see the first.
TEST(ReconfigureOverlap, AMasterThatIsSeenLaterIsNotEntered) {
  Servers servers(4);
  const Members before = {0}, after = {1, 2, 3};
  Site site(servers, before);
  servers[3].kill_hard();
  Call one(servers, before, after);
  stop_in_its_wait(servers, site, one, {0, 1, 2});
  servers[3].restart();
  Call undo(servers, after, before, {1});
  site.expect_end(undo, 0);
  site.expect_gives_way(one);
  site.add(after);
  site.expect_only({old_set});
}

// The new masters had no record. The opposite call marks two of them, one loses its mark, and the first call goes on.
TEST(ReconfigureOverlap, WhereNothingStandsNothingIsEntered) {
  Servers servers(4);
  const Members before = {0}, after = {1, 2, 3};
  Site site(servers, before);
  Call one(servers, before, after);
  stop_in_its_wait(servers, site, one, {0, 1, 2, 3});
  Call undo(servers, after, before, {3});
  const std::string q = servers.field(2, "q");
  EXPECT_TRUE(site.until([&] { return servers.field(1, "q") != q && servers.field(2, "q") != q; }));
  servers[1].command({"FLUSHALL"});
  site.expect_end(undo, REDLOCK_E_RECORD_LOST);
  site.expect_gives_way(one);
  Call again(servers, after, before);
  site.expect_end(again, 0);
  site.add(after);
  site.expect_only({old_set});
}

}  // namespace
}  // namespace redlock::test
