// SPDX-License-Identifier: MIT
//
// Masters given by host name, with a resolver of the test's own in front of libc's: names with several addresses,
// answers that come late, and answers that come when nobody waits for them any more.
#include <arpa/inet.h>
#include <netdb.h>

#include <cstring>
#include <map>

#include "polled_harness.hpp"
#include "support/redis_server.hpp"
#include "thread_harness.hpp"

namespace redlock::test {
namespace {

// What the resolver says; `asked` counts. While `silent`, a look-up waits.
class Resolver {
 public:
  void set(const std::string& name, std::vector<std::string> addresses) {
    const std::lock_guard guard(mutex_);
    names_[name] = std::move(addresses);
    asked_ = 0;
    silent_ = false;
  }
  void silence(bool silent) {
    const std::lock_guard guard(mutex_);
    silent_ = silent;
    changed_.notify_all();
  }
  int asked() {
    const std::lock_guard guard(mutex_);
    return asked_;
  }
  std::vector<std::string> ask(const std::string& name) {
    std::unique_lock guard(mutex_);
    ++asked_;
    changed_.wait(guard, [this] { return !silent_; });
    return names_[name];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::vector<std::string>> names_;
  int asked_ = 0;
  bool silent_ = false;
};

Resolver resolver;

struct Entry {
  addrinfo info{};
  sockaddr_storage address{};
};

addrinfo* make_entry(const std::string& text, addrinfo* next) {
  Entry* const entry = new Entry();
  const bool v6 = text.find(':') != std::string::npos;
  entry->info.ai_family = v6 ? AF_INET6 : AF_INET;
  entry->info.ai_socktype = SOCK_STREAM;
  entry->info.ai_addrlen = v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  entry->info.ai_addr = reinterpret_cast<sockaddr*>(&entry->address);
  entry->info.ai_next = next;
  entry->address.ss_family = static_cast<sa_family_t>(entry->info.ai_family);
  void* const at = v6 ? static_cast<void*>(&reinterpret_cast<sockaddr_in6&>(entry->address).sin6_addr)
                      : static_cast<void*>(&reinterpret_cast<sockaddr_in&>(entry->address).sin_addr);
  EXPECT_EQ(::inet_pton(entry->info.ai_family, text.c_str(), at), 1) << text;
  return &entry->info;
}

}  // namespace
}  // namespace redlock::test

// ---- in front of libc ---------------------------------------------------------------------------------------------

extern "C" {

int getaddrinfo(const char* name, const char*, const addrinfo*, addrinfo** result) {
  using namespace redlock::test;
  const std::vector<std::string> addresses = resolver.ask(name);
  *result = nullptr;
  for (auto text = addresses.rbegin(); text != addresses.rend(); ++text) *result = make_entry(*text, *result);
  return *result != nullptr ? 0 : EAI_NONAME;
}

void freeaddrinfo(addrinfo* list) noexcept {
  while (list != nullptr) {
    addrinfo* const next = list->ai_next;
    delete reinterpret_cast<redlock::test::Entry*>(list);
    list = next;
  }
}

}  // extern "C"

namespace redlock::test {
namespace {

constexpr const char* nobody_there = "127.0.0.2";

Settings by_name(const RedisServer& master, uint32_t connect_timeout_ms = 5'000) {
  return Settings{{master.url_for_host("master.test")},
                  "test",
                  {{"timing.connect_timeout_ms", connect_timeout_ms}},
                  {}};
}

TEST(Name, EachOfItsAddressesIsTried) {
  for (const auto& others : {std::vector<std::string>{}, {nobody_there}, {"::1"}, {"::1", nobody_there, "::1"}}) {
    Loop loop;
    RedisServer master;
    std::vector<std::string> addresses = others;
    addresses.push_back("127.0.0.1");
    resolver.set("master.test", addresses);
    UpClient client(loop, by_name(master));
    EXPECT_EQ(resolver.asked(), static_cast<int>(addresses.size())) << "one at each attempt";
    master.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    EXPECT_TRUE(loop.run_until([&] { return client.master(0).connects == 2; }));
    EXPECT_EQ(resolver.asked(), static_cast<int>(addresses.size()) + 1) << "the one that was reached is kept";
  }
}

TEST(Name, ThatIsUnknownAndThenKnown) {
  Loop loop;
  RedisServer master;
  resolver.set("master.test", {});
  Client client(loop, by_name(master));
  client.wait_master_err(0, REDLOCK_E_RESOLVE);
  resolver.set("master.test", {"127.0.0.1"});
  client.wait_up(1);
}

TEST(Name, ThatIsUnknownLeavesTheOthersAlone) {
  Loop loop;
  Cluster masters(2);
  resolver.set("master.test", {});
  Client client(loop, {masters[0].url(), masters[1].url(), "redis://master.test:6379"});
  client.hold("bus", options(10'000, 20'000));
  client.wait_master_err(2, REDLOCK_E_RESOLVE);
}

// Of two names of one server only one votes, whichever is connected first: here it is the host name.
TEST(Name, OfAServerThatHasAVoteAlready) {
  Loop loop;
  RedisServer server;
  resolver.set("master.test", {"127.0.0.1"});
  resolver.silence(true);
  server.kill_hard();
  Client client(loop, Settings{{server.url_for_host("master.test"), server.url()},
                               "test",
                               {{"timing.connect_timeout_ms", 60'000},
                                {"timing.reconnect_min_ms", 2'000},
                                {"timing.reconnect_max_ms", 2'000}},
                               {}});
  client.wait_master_err(1, REDLOCK_E_REFUSED);
  server.restart();
  resolver.silence(false);
  uint32_t most = 0;
  EXPECT_TRUE(loop.run_until([&] {
    if (client.status().masters_up > most) most = client.status().masters_up;
    return client.master(0).err == REDLOCK_E_DUPLICATE || client.master(1).err == REDLOCK_E_DUPLICATE || most > 1;
  }));
  EXPECT_EQ(most, 1u) << "one server with two votes";
}

// ---- late answers ---------------------------------------------------------------------------------------------------

TEST(LateAnswer, IsOfNoUseAndTheNextOneIs) {
  Loop loop;
  RedisServer master;
  resolver.set("master.test", {"127.0.0.1"});
  resolver.silence(true);
  Client client(loop, by_name(master, 200));
  client.wait_master_err(0, REDLOCK_E_CONNECT_TIMEOUT);
  resolver.silence(false);
  client.wait_up(1);
  EXPECT_GE(resolver.asked(), 2);
}

TEST(LateAnswer, IsWaitedForByTheEndOfAClientOnALoop) {
  Loop loop;
  RedisServer master;
  resolver.set("master.test", {"127.0.0.1"});
  resolver.silence(true);
  Client client(loop, by_name(master));
  EXPECT_TRUE(loop.run_until([] { return resolver.asked() == 1; }));
  EXPECT_EQ(redlock_close_async(client.get(), 0), 0);
  loop.run_for(100);
  EXPECT_FALSE(client.closed()) << "the system's resolver still has our memory";
  resolver.silence(false);
  EXPECT_TRUE(loop.run_until([&] { return client.closed(); }));
}

// Its descriptor stays silent: a host that waits for it does not spin.
TEST(LateAnswer, IsWaitedForByTheEndOfAPolledClient) {
  RedisServer master;
  resolver.set("master.test", {});
  resolver.silence(true);
  PolledClient client({master.url(), "redis://master.test:6379"});
  redlock_master_status_t first = {};
  first.size = sizeof first;
  ASSERT_TRUE(client.run_until([&] {
    EXPECT_EQ(redlock_master_status(client.get(), 0, &first), 0);
    return first.connects == 1 && resolver.asked() == 1;
  }));
  EXPECT_EQ(redlock_close_async(client.get(), 0), 0);
  pollfd wait{redlock_fd(client.get()), POLLIN, 0};
  int turns = 0;
  for (; turns < 100 && ::poll(&wait, 1, 200) > 0; ++turns) EXPECT_EQ(client.process(), 0);
  EXPECT_LT(turns, 100);
  EXPECT_EQ(redlock_timeout_ms(client.get()), -1);
  resolver.silence(false);
  EXPECT_TRUE(client.run_until([&] { return client.get() == nullptr; }));
}

TEST(LateAnswer, IsNotWaitedForByDestroy) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP()
      << "ThreadSanitizer takes the second life of a descriptor's number for a race with a thread nobody joins";
#endif
  RedisServer master;
  resolver.set("master.test", {"127.0.0.1"});
  resolver.silence(true);
  ThreadClient client(by_name(master));
  EXPECT_TRUE(ThreadClient::eventually([] { return resolver.asked() == 1; }));
  EXPECT_EQ(client.destroy(0), REDLOCK_E_TIMEOUT);
  resolver.silence(false);  // the client's thread ends by itself and gives the memory back, which a sanitizer sees
  EXPECT_EQ(client.count(REDLOCK_EV_CLOSED), 0u);
}

TEST(LateAnswer, IsWaitedForByDestroyInTheCallersMemory) {
  RedisServer master;
  std::vector<max_align_t> memory(1 << 14);
  resolver.set("master.test", {"127.0.0.1"});
  resolver.silence(true);
  Settings settings = by_name(master);
  settings.numbers.emplace_back("limits.locks", 4);
  ThreadClient client(settings, memory.data(), memory.size() * sizeof(max_align_t));
  EXPECT_TRUE(ThreadClient::eventually([] { return resolver.asked() == 1; }));
  std::thread later([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2'500));  // longer than the others' patience
    resolver.silence(false);
  });
  EXPECT_EQ(client.destroy(0), 0);
  later.join();
  EXPECT_EQ(client.count(REDLOCK_EV_CLOSED), 1u);
}

}  // namespace
}  // namespace redlock::test
