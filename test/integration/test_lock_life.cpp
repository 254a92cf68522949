// SPDX-License-Identifier: MIT
//
// The life of a lock on real masters while nothing is broken, the names that are the library's own, and calls from
// where a loop, or a child, allows them hardly.
#include <unistd.h>

#include <utility>

#include "client_harness.hpp"
#include "support/redis_server.hpp"
#include "support/wiped_page.hpp"

namespace redlock::test {
namespace {

class LifeCycle : public ::testing::TestWithParam<size_t> {};

TEST_P(LifeCycle, AcquireHoldRelease) {
  Loop loop;
  Cluster masters(GetParam());
  UpClient client(loop, Settings{masters.urls(), "gw-17", {}, {{"key_prefix", "site/7:"}}});
  const std::string name("a\0\r\n\xff $1", 8), key = "site/7:" + name;  // names are bytes
  const uint32_t quorum = static_cast<uint32_t>(masters.size() / 2 + 1);
  EXPECT_EQ(client.status().quorum, quorum);

  Lock& lock = client.hold(name, options(10'000));
  const redlock_event_t& acquired = lock.first(REDLOCK_EV_ACQUIRED);
  EXPECT_GE(acquired.granted, quorum);
  EXPECT_EQ(acquired.rounds, 1u);
  EXPECT_GT(acquired.validity_ms, 0);
  EXPECT_LE(acquired.validity_ms, 10'000 - 102) << "ttl - (ttl / 100 + 2 ms)";
  EXPECT_EQ(client.check(lock, 1), 0);
  EXPECT_EQ(client.check(lock, 10'001), REDLOCK_E_TOO_SLOW);
  EXPECT_TRUE(loop.run_until([&] { return masters.holders(key) == masters.size(); }));
  const std::string value = masters[0].command({"GET", key});
  EXPECT_EQ(value.size(), 40 + std::string(":gw-17").size());
  EXPECT_EQ(value.substr(40), ":gw-17");
  EXPECT_EQ(value.find_first_not_of("0123456789abcdef"), 40u);

  client.release(lock);
  EXPECT_TRUE(lock.has(REDLOCK_EV_RELEASED));
  EXPECT_TRUE(loop.run_until([&] { return masters.holders(key) == 0; }));
  EXPECT_EQ(client.status().locks_held, 0u);
}

INSTANTIATE_TEST_SUITE_P(Masters, LifeCycle, ::testing::Values(1, 3, 5));

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
