// SPDX-License-Identifier: MIT
//
// The life of a lock on real masters while nothing is broken: acquire, hold, extend, renew, release, cancel, close, and
// the handles that are left behind.
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "client_of.hpp"
#include "support/wiped_page.hpp"

namespace redlock::test {
namespace {

using Hold1 = ClientOf<1>;
using Hold3 = ClientOf<3>;
using End3 = ClientOf<3>;
using End1 = ClientOf<1>;

class LifeCycle : public ::testing::TestWithParam<size_t> {};

TEST_P(LifeCycle, AcquireHoldRelease) {
  Loop loop;
  Cluster masters(GetParam());
  UpClient client(loop, Settings{masters.urls(), "gw-17", {}, {}});
  const uint32_t quorum = static_cast<uint32_t>(masters.size() / 2 + 1);
  EXPECT_EQ(client.status().quorum, quorum);

  Lock& lock = client.hold("bus", options(10'000));
  const redlock_event_t& acquired = lock.first(REDLOCK_EV_ACQUIRED);
  EXPECT_GE(acquired.granted, quorum);
  EXPECT_EQ(acquired.rounds, 1u);
  EXPECT_GT(acquired.validity_ms, 0);
  EXPECT_LE(acquired.validity_ms, 10'000 - 102) << "ttl - (ttl / 100 + 2 ms)";
  EXPECT_EQ(client.check(lock, 1), 0);
  EXPECT_EQ(client.check(lock, 10'001), REDLOCK_E_TOO_SLOW);
  EXPECT_TRUE(loop.run_until([&] { return masters.holders("bus") == masters.size(); }));
  const std::string value = masters[0].command({"GET", "bus"});
  EXPECT_EQ(value.size(), 40 + std::string(":gw-17").size());
  EXPECT_EQ(value.substr(40), ":gw-17");
  EXPECT_EQ(value.find_first_not_of("0123456789abcdef"), 40u);

  client.release(lock);
  EXPECT_TRUE(lock.has(REDLOCK_EV_RELEASED));
  EXPECT_TRUE(loop.run_until([&] { return masters.holders("bus") == 0; }));
  EXPECT_EQ(client.status().locks_held, 0u);
}

INSTANTIATE_TEST_SUITE_P(Masters, LifeCycle, ::testing::Values(1, 3, 5));

TEST(Lock, NamesAreBytes) {
  Loop loop;
  RedisServer master;
  Client client(loop, Settings{{master.url()}, "test", {}, {{"key_prefix", "site/7:"}}});
  const std::string name("a\0\r\n\xff $1", 8);
  Lock& lock = client.acquire(name);
  EXPECT_TRUE(master.exists("site/7:" + name));
  client.release(lock);
  EXPECT_TRUE(loop.run_until([&] { return !master.exists("site/7:" + name); }));
}

TEST(Lock, OverUnixSocket) {
  Loop loop;
  RedisServer::Options unix_socket;
  unix_socket.unix_socket = true;
  RedisServer master(unix_socket);
  Client client(loop, {master.url()});
  Lock& lock = client.hold("bus");
  EXPECT_EQ(client.master(0).address, master.socket_path());
  client.release(lock);
  EXPECT_TRUE(loop.run_until([&] { return !master.exists("bus"); }));
}

TEST(Lock, InTheCallersMemory) {
  Loop loop;
  RedisServer master;
  redlock_config_t* cfg = nullptr;
  ASSERT_EQ(redlock_config_new(&cfg), 0);
  ASSERT_EQ(redlock_config_add_master(cfg, master.url().c_str()), 0);
  ASSERT_EQ(redlock_config_set_str(cfg, "guard", "off"), 0);
  bool closed = false;
  redlock_config_set_event(
      cfg,
      [](redlock_t*, const redlock_event_t* event, void* user) {
        if (event->type == REDLOCK_EV_CLOSED) *static_cast<bool*>(user) = true;
      },
      &closed);
  const size_t size = redlock_memory_size(cfg);
  ASSERT_GT(size, 0u);
  void* memory = std::malloc(size);
  redlock_t* rl = nullptr;
  EXPECT_EQ(redlock_create_on_loop_in(memory, size - 1, &rl, cfg, loop.get()), REDLOCK_E_TOOSMALL);
  EXPECT_EQ(rl, nullptr);
  EXPECT_EQ(redlock_create_on_loop_in(nullptr, size, &rl, cfg, loop.get()), REDLOCK_E_INVAL);
  for (int again = 0; again < 3; ++again) {
    closed = false;
    ASSERT_EQ(redlock_create_on_loop_in(memory, size, &rl, cfg, loop.get()), 0);
    const redlock_resource_t bus = redlock_resource("bus");
    redlock_lock_t lock;
    EXPECT_EQ(redlock_acquire_async(rl, &bus, 1, nullptr, &lock), 0);
    EXPECT_TRUE(loop.run_until([&] { return redlock_check(rl, lock, 0) == 0; }));
    EXPECT_EQ(redlock_close_async(rl, 5'000), 0);
    EXPECT_TRUE(loop.run_until([&] { return closed; }));
    EXPECT_FALSE(master.exists("bus"));
  }
  redlock_config_free(cfg);
  std::free(memory);
}

// ---- holding --------------------------------------------------------------------------------------------------------

TEST_F(Hold1, DeadlineIsTheEndOfTheValidity) {
  Lock& lock = client.acquire("bus", options(10'000, 0, REDLOCK_F_NO_RENEW));
  const int64_t before = boot_ns();
  const int64_t deadline = redlock_deadline_ns(client.get(), lock.handle);
  const int64_t validity = redlock_validity_ms(client.get(), lock.handle);
  const int64_t after = boot_ns();
  EXPECT_GE(deadline - before, validity * 995'000 - 1'000'000) << "the clock may be slewed meanwhile";
  EXPECT_LE(deadline - after, (validity + 2) * 1'000'000);
}

TEST_F(Hold3, EndsByExpiryAndTheKeysAreGone) {
  Lock& lock = client.hold("bus", options(1'500, 0, REDLOCK_F_NO_RENEW));
  int check_in_callback = 1;
  lock.on_event = [&](const redlock_event_t&) { check_in_callback = client.check(lock); };
  const int64_t deadline = redlock_deadline_ns(client.get(), lock.handle);
  EXPECT_TRUE(loop.run_until([&] { return lock.has(REDLOCK_EV_LOST); }));
  EXPECT_GE(boot_ns() + 2'000'000, deadline) << "not before its time";
  EXPECT_LT(check_in_callback, 0);
  EXPECT_EQ(client.check(lock), REDLOCK_E_STALE);
  expect_gone("bus");
  EXPECT_EQ(client.status().lost, 1u);
}

TEST_F(Hold1, CheckFailsAtTheDeadlineEvenIfTheLoopStandsStill) {
  Lock& lock = client.hold("bus", options(1'500, 0, REDLOCK_F_NO_RENEW));
  const int64_t deadline = redlock_deadline_ns(client.get(), lock.handle);
  while (client.check(lock) == 0) {
  }
  EXPECT_EQ(client.check(lock), REDLOCK_E_LOST);
  EXPECT_EQ(redlock_validity_ms(client.get(), lock.handle), 0);
  EXPECT_GE(boot_ns() + 2'000'000, deadline);
  EXPECT_FALSE(lock.ended());
  EXPECT_TRUE(loop.run_until([&] { return lock.has(REDLOCK_EV_LOST); }));
}

TEST_F(Hold3, ExtendRenews) {
  const auto all_live_longer_than = [&](long ms) {
    for (size_t i = 0; i < 3; ++i) {
      if (std::stol(masters[i].command({"PTTL", "bus"})) <= ms) return false;
    }
    return true;
  };
  Lock& lock = client.acquire("bus", options(5'000, 0, REDLOCK_F_NO_RENEW));
  ASSERT_TRUE(loop.run_until([&] { return masters.holders("bus") == 3; }));
  ASSERT_EQ(redlock_extend_async(client.get(), lock.handle, 25'000), 0);
  EXPECT_EQ(redlock_extend_async(client.get(), lock.handle, 25'000), REDLOCK_E_BUSY);
  EXPECT_TRUE(loop.run_until([&] { return lock.has(REDLOCK_EV_RENEWED); }));
  EXPECT_GT(lock.first(REDLOCK_EV_RENEWED).validity_ms, 5'000);
  EXPECT_EQ(client.check(lock, 6'000), 0);
  EXPECT_TRUE(loop.run_until([&] { return all_live_longer_than(6'000); }));
  const int64_t deadline = redlock_deadline_ns(client.get(), lock.handle);
  ASSERT_EQ(redlock_extend_async(client.get(), lock.handle, 20), 0);
  EXPECT_TRUE(loop.run_until([&] { return lock.count(REDLOCK_EV_RENEWED) == 2 || lock.has(REDLOCK_EV_AT_RISK); }));
  EXPECT_GE(redlock_deadline_ns(client.get(), lock.handle) + 5'000'000, deadline) << "never shorter";
  EXPECT_TRUE(loop.run_until(
      [&] { return client.master(0).in_flight + client.master(1).in_flight + client.master(2).in_flight == 0; }));
  EXPECT_TRUE(all_live_longer_than(6'000)) << "an extend never lowers an expiry";
}

TEST_F(Hold1, ExtendAsksForReason) {
  Lock& pending = client.start("bus");
  EXPECT_EQ(redlock_extend_async(client.get(), pending.handle, 0), REDLOCK_E_NOT_HELD);
  EXPECT_EQ(client.check(pending), REDLOCK_E_NOT_HELD);
  EXPECT_TRUE(loop.run_until([&] { return pending.decided(); }));
  EXPECT_EQ(redlock_extend_async(client.get(), pending.handle, 19), REDLOCK_E_INVAL);
  EXPECT_EQ(redlock_extend_async(client.get(), pending.handle, 30'001), REDLOCK_E_INVAL);
  client.release(pending);
  EXPECT_EQ(redlock_extend_async(client.get(), pending.handle, 0), REDLOCK_E_STALE);
}

// Both are won in one turn, and the callback of the first takes longer than both are valid.
TEST_F(Hold1, EndsInTheCallbackBeforeItsAcquired) {
  Lock& bus = client.start("bus", options(1'500, 0, REDLOCK_F_NO_RENEW));
  Lock& tap = client.start("tap", options(1'500, 0, REDLOCK_F_NO_RENEW));
  std::vector<std::string> told;
  bus.on_event = [&](const redlock_event_t& event) {
    told.push_back("bus " + std::to_string(event.type));
    if (event.type != REDLOCK_EV_ACQUIRED) return;
    EXPECT_EQ(client.check(tap), 0) << "won in the same turn, or this test shows nothing";
    EXPECT_EQ(outlive(client.get(), tap.handle), REDLOCK_E_LOST);
    EXPECT_EQ(outlive(client.get(), bus.handle), REDLOCK_E_LOST);
  };
  tap.on_event = [&](const redlock_event_t& event) { told.push_back("tap " + std::to_string(event.type)); };
  EXPECT_TRUE(loop.run_until([&] { return tap.ended(); }));
  EXPECT_EQ(told, (std::vector<std::string>{"bus 1", "bus 5", "tap 2"})) << "ACQUIRED, LOST, FAILED";
  EXPECT_EQ(tap.events.back().err, REDLOCK_E_LOST);
}

// ---- ends -----------------------------------------------------------------------------------------------------------

TEST_F(End3, CancelOfAWaiter) {
  taken_by_somebody("bus");
  Lock& lock = client.start("bus", options(10'000, REDLOCK_WAIT_FOREVER));
  EXPECT_TRUE(loop.run_until([&] { return client.status().rounds >= 2; }));
  EXPECT_FALSE(lock.decided());
  EXPECT_EQ(redlock_cancel(client.get(), lock.handle), 0);
  EXPECT_TRUE(lock.events.empty()) << "not from inside the call";
  EXPECT_TRUE(loop.run_until([&] { return lock.ended(); }));
  EXPECT_EQ(lock.first(REDLOCK_EV_FAILED).err, REDLOCK_E_CANCELED);
  EXPECT_EQ(redlock_cancel(client.get(), lock.handle), 0) << "of a past acquire";
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(masters[i].command({"GET", "bus"}), "somebody");
}

TEST_F(End3, CancelBeforeTheVotesLeavesNoKey) {
  Lock& lock = client.start("bus", options(20'000));
  EXPECT_EQ(redlock_cancel(client.get(), lock.handle), 0);
  EXPECT_TRUE(loop.run_until([&] { return lock.ended(); }));
  EXPECT_EQ(lock.first(REDLOCK_EV_FAILED).err, REDLOCK_E_CANCELED);
  Lock& held = client.hold("bus", options(20'000, 10'000));
  EXPECT_EQ(redlock_cancel(client.get(), held.handle), REDLOCK_E_BUSY);
  client.release(held);
  expect_gone("bus");
}

TEST_F(End1, CloseInACallback) {
  Lock& lock = client.start("bus");
  lock.on_event = [&](const redlock_event_t& event) {
    if (event.type == REDLOCK_EV_ACQUIRED) {
      EXPECT_EQ(redlock_close_async(client.get(), 5'000), 0);
    }
  };
  EXPECT_TRUE(loop.run_until([&] { return client.closed(); }));
  EXPECT_TRUE(lock.has(REDLOCK_EV_RELEASED));
  EXPECT_FALSE(master.exists("bus"));
}

// Whoever closes relies on no earlier check; a release of what is LOST leaves other threads theirs.
TEST_F(End1, CloseDeletesWhatIsLost) {
  Lock& lock = client.hold("bus", options(20'000));
  EXPECT_EQ(redlock_suspended(client.get()), 0);
  EXPECT_TRUE(loop.run_until([&] { return lock.has(REDLOCK_EV_LOST); }));
  EXPECT_EQ(redlock_release_async(client.get(), lock.handle), 0);
  client.hold("pump");
  EXPECT_TRUE(master.exists("bus"));
  client.close(5'000);
  EXPECT_EQ(client.closed_event().failed, 0u);
  EXPECT_FALSE(master.exists("bus"));
}

// ---- handles --------------------------------------------------------------------------------------------------------

struct Handle : ClientOf<1> {
  Handle() : ClientOf(Settings{{}, "test", {{"limits.locks", 1}}, {}}) {}
};

TEST_F(Handle, OfThePast) {
  Lock& past = client.acquire("bus");
  client.release(past);
  Lock& present = client.hold("bus", options(20'000));  // in the same slot
  EXPECT_NE(past.handle.id, present.handle.id);
  EXPECT_EQ(client.check(past), REDLOCK_E_STALE);
  EXPECT_EQ(redlock_validity_ms(client.get(), past.handle), REDLOCK_E_STALE);
  EXPECT_EQ(redlock_deadline_ns(client.get(), past.handle), REDLOCK_E_STALE);
  EXPECT_EQ(redlock_extend_async(client.get(), past.handle, 0), REDLOCK_E_STALE);
  EXPECT_EQ(redlock_release_async(client.get(), past.handle), 0);
  EXPECT_EQ(redlock_cancel(client.get(), past.handle), 0);
  loop.run_for(20);
  EXPECT_EQ(client.check(present), 0) << "somebody else's lock";
  EXPECT_TRUE(master.exists("bus"));
}

// The guard's record and the tokens' counters lie beside the locks, and no lock may take their place.
TEST(Call, NamesOfTheLibrarysOwnKeys) {
  Loop loop;
  RedisServer master;
  struct Case {
    std::string prefix;
    std::vector<std::string> reserved, free;
  };
  const std::vector<Case> cases = {
      {"", {"redlock::", "redlock::meta", "redlock::x"}, {"redlock:", "redlock:site:meta", "Redlock::meta"}},
      {"red", {"lock:red:", "lock:red:meta"}, {"lock::meta", "redlock:red:meta", "lock:red", "lock:rest:meta"}},
      {"site/", {}, {"redlock::meta", "redlock:site/:meta"}},
      {"redlock:", {"redlock::meta"}, {":meta", "redlock:meta"}}};
  for (const Case& c : cases) {
    Client client(loop, Settings{{master.url()}, "test", {}, {{"key_prefix", c.prefix}, {"fence", "strict"}}});
    const auto acquire = [&](const std::vector<std::string>& names) {
      std::vector<redlock_resource_t> resources;
      for (const std::string& name : names) resources.push_back(redlock_resource(name.c_str()));
      redlock_lock_t lock{7};
      const uint32_t count = static_cast<uint32_t>(resources.size());
      const int err = redlock_acquire_async(client.get(), resources.data(), count, nullptr, &lock);
      EXPECT_EQ(lock.id, 0u);
      return err;
    };
    const auto init = [&](const std::string& name) {
      const redlock_resource_t resource = redlock_resource(name.c_str());
      return redlock_fence_init(client.get(), &resource);
    };
    for (const std::string& name : c.reserved) {
      EXPECT_EQ(acquire({name}), REDLOCK_E_RESERVED) << c.prefix << " " << name;
      EXPECT_EQ(acquire({"bus", name, "tap"}), REDLOCK_E_RESERVED) << c.prefix << " " << name;
      EXPECT_EQ(init(name), REDLOCK_E_RESERVED) << c.prefix << " " << name;
    }
    for (const std::string& name : c.free) {
      client.start(name);
      EXPECT_EQ(init(name), 0) << c.prefix << " " << name;
    }
  }
}

// A prepare of the program's that runs behind those of clients created after it.
class LastPrepare {
 public:
  explicit LastPrepare(Loop& loop) : handle_(new uv_prepare_t()) {
    uv_prepare_init(loop.get(), handle_);
    handle_->data = this;
    uv_prepare_start(handle_, [](uv_prepare_t* handle) {
      const std::function<void()> now = std::exchange(static_cast<LastPrepare*>(handle->data)->act, nullptr);
      if (now) now();
    });
  }
  ~LastPrepare() {
    uv_close(reinterpret_cast<uv_handle_t*>(handle_),
             [](uv_handle_t* handle) { delete reinterpret_cast<uv_prepare_t*>(handle); });
  }
  LastPrepare(const LastPrepare&) = delete;
  LastPrepare& operator=(const LastPrepare&) = delete;
  std::function<void()> act;  // once

 private:
  uv_prepare_t* handle_;
};

// The client's own prepare has been in this round of the loop: it must not wait now, for nothing may come that wakes
// it.
TEST(Call, FromAPrepareOfTheProgram) {
  Loop loop;
  LastPrepare last(loop);
  RedisServer master;
  UpClient client(loop, {master.url()});
  Lock* lock = nullptr;
  last.act = [&] {
    lock = &client.start("bus");
    EXPECT_EQ(uv_backend_timeout(loop.get()), 0);
  };
  EXPECT_TRUE(loop.run_until([&] { return lock != nullptr && lock->has(REDLOCK_EV_ACQUIRED); }));
  last.act = [&] {
    EXPECT_EQ(redlock_release_async(client.get(), lock->handle), 0);
    EXPECT_EQ(uv_backend_timeout(loop.get()), 0);
  };
  EXPECT_TRUE(loop.run_until([&] { return lock->ended(); }));
  EXPECT_TRUE(loop.run_until([&] { return uv_backend_timeout(loop.get()) != 0; })) << "and it rests again";
}

TEST(Call, FromACallbackOfAnotherClientOnTheLoop) {
  Loop loop;
  LastPrepare last(loop);
  RedisServer master;
  UpClient one(loop, {master.url()}), other(loop, {master.url()});
  for (const auto& [told, asked] : {std::pair(&one, &other), std::pair(&other, &one)}) {
    Lock* second = nullptr;
    Lock& first = told->start("bus");
    first.on_event = [&, asked = asked](const redlock_event_t&) {
      second = &asked->start("pump");
      last.act = [&] {
        EXPECT_TRUE(asked->status().rounds == 1 || uv_backend_timeout(loop.get()) == 0) << "neither asked nor about to";
      };
    };
    EXPECT_EQ(redlock_cancel(told->get(), first.handle), 0);
    EXPECT_TRUE(loop.run_until([&] { return second != nullptr && second->has(REDLOCK_EV_ACQUIRED); }));
    EXPECT_FALSE(last.act) << "it was looked at";
    asked->release(*second);
  }
}

// As _Fork() and a bare clone make one: without the handlers of fork().
TEST(Call, InAChildThatForkDoesNotKnow) {
  if (!pages_are_wiped()) GTEST_SKIP() << "this system does not wipe pages in children";
  Loop loop;
  RedisServer master;
  Client client(loop, {master.url()});
  Lock& lock = client.acquire("bus", options(20'000));
  const pid_t child = bare_clone();
  if (child == 0) {
    const bool forked = redlock_check(client.get(), lock.handle, 0) == REDLOCK_E_FORKED &&
                        redlock_release_async(client.get(), lock.handle) == REDLOCK_E_FORKED;
    ::_exit(forked ? 0 : 1);
  }
  EXPECT_TRUE(ended_well(child));
  EXPECT_EQ(client.check(lock), 0);
}

}  // namespace
}  // namespace redlock::test
