// SPDX-License-Identifier: MIT
//
// Masters given by host name, with a resolver of the test's own in front of libc's: names with several addresses,
// answers that come late, and answers that come when nobody waits for them any more.
#include <arpa/inet.h>
#include <netdb.h>

#include <map>

#include "polled_harness.hpp"
#include "support/redis_server.hpp"
#include "thread_harness.hpp"

namespace redlock::test {
namespace {

// What the resolver says; `asked` counts. While a name is silent, its look-up waits.
class Resolver {
 public:
  void set(const std::string& name, std::vector<std::string> addresses) {
    const std::lock_guard guard(mutex_);
    names_[name] = std::move(addresses);
    asked_ = 0;
    silent_.clear();
  }
  // "*": all names.
  void silence_one(const std::string& name) {
    const std::lock_guard guard(mutex_);
    silent_ = name;
  }
  void silence(bool silent) {
    const std::lock_guard guard(mutex_);
    silent_ = silent ? "*" : "";
    changed_.notify_all();
  }
  int asked() {
    const std::lock_guard guard(mutex_);
    return asked_;
  }
  std::vector<std::string> ask(const std::string& name) {
    std::unique_lock guard(mutex_);
    ++asked_;
    changed_.wait(guard, [&] { return silent_ != "*" && silent_ != name; });
    return names_[name];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::vector<std::string>> names_;
  int asked_ = 0;
  std::string silent_;
};

Resolver& resolver = *new Resolver;  // never destroyed: a look-up that nobody waits for may end behind main()

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
constexpr const char* silent_there = "127.0.0.3";

Settings by_name(const RedisServer& master, uint32_t connect_timeout_ms = 5'000) {
  return Settings{{master.url_for_host("master.test")},
                  "test",
                  {{"timing.connect_timeout_ms", connect_timeout_ms}},
                  {}};
}

// Connections that fill a listener's queue: from then on an attempt is neither refused nor answered.
class Crowd {
 public:
  Crowd(const char* address, uint16_t port) {
    at_.sin_family = AF_INET;
    at_.sin_port = htons(port);
    EXPECT_EQ(::inet_pton(AF_INET, address, &at_.sin_addr), 1);
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  ~Crowd() {
    for (int fd : fds_) ::close(fd);
  }
  void listen() {
    const int fd = add();
    EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&at_), sizeof at_), 0);
    EXPECT_EQ(::listen(fd, 0), 0);
  }
  void fill() {
    pollfd last{};
    do {
      last = {add(), POLLOUT, 0};
      (void)::connect(last.fd, reinterpret_cast<sockaddr*>(&at_), sizeof at_);
    } while (::poll(&last, 1, 100) == 1 && fds_.size() < 20);
    EXPECT_LT(fds_.size(), 20u) << "the queue does not become full";
  }

 private:
  int add() {
    fds_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    return fds_.back();
  }
  sockaddr_in at_{};
  std::vector<int> fds_;
};

bool was_down(const Client& client) {
  for (const redlock_event_t& event : client.master_events()) {
    if (event.state == REDLOCK_MASTER_DOWN && event.err != 0) return true;
  }
  return false;
}

// In one attempt, of one look-up.
TEST(Name, EachOfItsAddressesIsTriedBeforeTheMasterIsDown) {
  struct {
    const char* what;
    std::vector<std::string> others;
  } const rows[] = {{"it has one", {}},
                    {"one is refused", {nobody_there}},
                    {"one is of the other family", {"::1"}},
                    {"three are refused", {"::1", nobody_there, "::1"}},
                    {"one is silent", {silent_there}},
                    {"one is refused and one is silent", {nobody_there, silent_there}}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    Loop loop;
    RedisServer master;
    Crowd silent(silent_there, master.port());
    silent.listen();
    silent.fill();
    std::vector<std::string> addresses = row.others;
    addresses.push_back("127.0.0.1");
    resolver.set("master.test", addresses);
    UpClient client(loop, by_name(master));
    EXPECT_EQ(client.master(0).err, 0);
    EXPECT_FALSE(was_down(client)) << "before all its addresses were tried";
    EXPECT_EQ(resolver.asked(), 1);
    resolver.set("master.test", {"127.0.0.1", nobody_there});
    master.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    EXPECT_TRUE(loop.run_until([&] { return client.master(0).connects == 2; }));
  }
}

// An address that needs longer than the pause before the next one is waited for, while others fail or are silent.
TEST(Name, WithASlowAddressWaitsForIt) {
  for (const char* other : {nobody_there, silent_there}) {
    Loop loop;
    RedisServer::Options options;
    options.args = {"--tcp-backlog", "1"};
    RedisServer master(options);
    Crowd silent(silent_there, master.port()), slow("127.0.0.1", master.port());
    silent.listen();
    silent.fill();
    master.freeze();
    slow.fill();
    resolver.set("master.test", {"127.0.0.1", other});
    Client client(loop, by_name(master, 20'000));
    loop.run_for(600);
    master.thaw();
    client.wait_up(1);
    EXPECT_FALSE(was_down(client)) << other;
    EXPECT_EQ(resolver.asked(), 1);
  }
}

// Its address is another master's, but only who is connected has it.
TEST(Name, ThatSharesADeadAddressWithOthersIsAnotherServer) {
  Loop loop;
  Cluster masters(3);
  std::vector<std::unique_ptr<Crowd>> silent;
  std::vector<std::string> urls;
  for (size_t m = 0; m < 3; ++m) {
    urls.push_back(masters[m].url_for_host("master.test"));
    silent.push_back(std::make_unique<Crowd>(silent_there, masters[m].port()));
    silent.back()->listen();
    silent.back()->fill();
  }
  resolver.set("master.test", {nobody_there, silent_there, "127.0.0.1"});
  UpClient client(loop, Settings{urls, "test", {{"timing.connect_timeout_ms", 5'000}}, {}});
  EXPECT_FALSE(was_down(client));
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

// The attempts that it was late for say so. A name is asked for once, however many attempts pass meanwhile.
TEST(LateAnswer, IsOfUseToALaterAttempt) {
  Loop loop;
  RedisServer master;
  resolver.set("master.test", {"127.0.0.1"});
  resolver.silence(true);
  Client client(loop, by_name(master, 50));
  client.wait_master_err(0, REDLOCK_E_RESOLVE);
  loop.run_for(500);
  EXPECT_EQ(resolver.asked(), 1);
  resolver.silence(false);
  client.wait_up(1);
  EXPECT_EQ(resolver.asked(), 1);
}

// A name that nobody answers for delays no other one, and not the client's end.
TEST(LateAnswer, DelaysNoOtherName) {
  Loop loop;
  Cluster masters(2);
  resolver.set("slow.test", {});
  resolver.set("master.test", {"127.0.0.1"});
  resolver.silence_one("slow.test");
  Client client(loop, {"redis://slow.test:6379", masters[0].url_for_host("master.test"),
                       masters[1].url_for_host("master.test")});
  client.hold("bus", options(10'000, 20'000));
  EXPECT_NE(client.master(0).state, REDLOCK_MASTER_UP);
  client.close(0);
  resolver.silence(false);
}

TEST(LateAnswer, IsNotWaitedForByTheEndOfAPolledClient) {
  RedisServer master;
  resolver.set("master.test", {});
  resolver.silence(true);
  PolledClient client({master.url(), "redis://master.test:6379"});
  ASSERT_TRUE(client.run_until([] { return resolver.asked() == 1; }));
  EXPECT_EQ(redlock_close_async(client.get(), 0), 0);
  EXPECT_TRUE(client.run_until([&] { return client.get() == nullptr; }));
  resolver.silence(false);
}

TEST(LateAnswer, IsNotWaitedForByDestroy) {
  RedisServer master;
  std::vector<max_align_t> memory(1 << 14);
  for (const bool is_callers : {false, true}) {
    resolver.set("master.test", {"127.0.0.1"});
    resolver.silence(true);
    Settings settings = by_name(master);
    settings.numbers.emplace_back("limits.locks", 4);
    ThreadClient client(settings, is_callers ? memory.data() : nullptr, memory.size() * sizeof(max_align_t));
    EXPECT_TRUE(ThreadClient::eventually([] { return resolver.asked() == 1; }));
    EXPECT_EQ(client.destroy(0), 0);
    EXPECT_EQ(client.count(REDLOCK_EV_CLOSED), 1u);
    resolver.silence(false);
  }
}

// Clients that come and go leave look-ups behind, up to a limit.
TEST(LateAnswer, ThreadsOfAProcessAreBounded) {
  Loop loop;
  resolver.set("master.test", {});
  resolver.silence(true);
  for (int n = 0; n < REDLOCK_LOOKUPS_MAX + 3; ++n) {
    Client client(loop, {"redis://master.test:6379"});
    const bool has_room = n < REDLOCK_LOOKUPS_MAX;
    EXPECT_TRUE(loop.run_until(
        [&] { return has_room ? resolver.asked() == n + 1 : client.master(0).err == REDLOCK_E_RESOLVE; }));
  }
  EXPECT_EQ(resolver.asked(), REDLOCK_LOOKUPS_MAX);
  resolver.silence(false);
  RedisServer master;
  resolver.set("master.test", {"127.0.0.1"});
  UpClient client(loop, by_name(master));  // the threads have ended
}

}  // namespace
}  // namespace redlock::test
