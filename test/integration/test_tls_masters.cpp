// SPDX-License-Identifier: MIT
//
// Masters over TLS: locks in each way to run a client, what a certificate may be wrong in, and connections that end at
// any point of a handshake.
#include "polled_harness.hpp"
#include "support/tcp_peer.hpp"
#include "thread_harness.hpp"
#include "tls_site.hpp"

namespace redlock::test {
namespace {

// ---- locks -------------------------------------------------------------------------------------------------------

TEST(Tls, ALockIsAcquiredExtendedAndReleased) {
  for (const size_t masters : {1u, 3u}) {
    TlsSite site(masters);
    Loop loop;
    Client client(loop, site.settings());
    client.wait_up(static_cast<uint32_t>(masters));
    Lock& lock = client.acquire("bus", options(10'000, 20'000, REDLOCK_F_NO_RENEW));
    ASSERT_TRUE(lock.has(REDLOCK_EV_ACQUIRED));
    EXPECT_EQ(client.check(lock, 1), 0);
    EXPECT_EQ(redlock_extend_async(client.get(), lock.handle, 20'000), 0);
    EXPECT_TRUE(loop.run_until([&] { return lock.has(REDLOCK_EV_RENEWED); }));
    client.release(lock);
    EXPECT_TRUE(lock.has(REDLOCK_EV_RELEASED));
    for (size_t m = 0; m < masters; ++m) {
      EXPECT_TRUE(loop.run_until([&] { return !site[m].exists("bus"); }));
      EXPECT_GE(site[m].calls("set"), 1u);
    }
  }
}

TEST(Tls, ByAThreadAndByADescriptor) {
  TlsSite site(3);
  {
    ThreadClient client(site.settings());
    redlock_lock_t lock{0};
    ASSERT_EQ(client.acquire("bus", lock, options(10'000, 20'000)), 0);
    EXPECT_EQ(client.extend(lock, 20'000), 0);
    EXPECT_EQ(client.release(lock), 0);
  }
  PolledClient client(site.settings());
  redlock_lock_t lock{0};
  ASSERT_EQ(client.acquire_async("bus", lock, options(10'000, 20'000)), 0);
  ASSERT_TRUE(client.run_until([&] { return client.count(REDLOCK_EV_ACQUIRED) == 1; }));
  EXPECT_EQ(redlock_release_async(client.get(), lock), 0);
  EXPECT_TRUE(client.run_until([&] { return client.count(REDLOCK_EV_RELEASED) == 1; }));
}

// Many locks at once: commands of more than one record, and records of more replies than the client has room for.
TEST(Tls, RecordsOfManyLocks) {
  TlsSite site(3);
  Settings settings = site.settings();
  settings.numbers = {{"limits.locks", 2'000},
                      {"limits.in_flight", 4'000},
                      {"limits.debts", 4'000},
                      {"limits.rx_bytes", REDLOCK_RX_BYTES_MIN}};
  Loop loop;
  UpClient client(loop, settings);
  std::vector<Lock*> locks;
  for (int i = 0; i < 2'000; ++i) {
    locks.push_back(&client.start("resource " + std::to_string(i) + std::string(40, '.'), options(30'000, 20'000)));
  }
  for (Lock* lock : locks) {
    ASSERT_TRUE(loop.run_until([&] { return lock->decided(); }));
    ASSERT_TRUE(lock->has(REDLOCK_EV_ACQUIRED));
  }
  for (Lock* lock : locks) EXPECT_EQ(redlock_release_async(client.get(), lock->handle), 0);
  EXPECT_TRUE(loop.run_until([&] { return client.status().locks_held == 0; }));
  for (size_t m = 0; m < 3; ++m) EXPECT_TRUE(loop.run_until([&] { return site[m].command({"DBSIZE"}) == "0"; }));
}

// ---- who is trusted ----------------------------------------------------------------------------------------------

// The client of these settings says `err`, in its status and in its log, and the server saw no command of it.
void expect_refused(TlsSite& site, const Settings& settings, int err) {
  Loop loop;
  Client client(loop, settings);
  client.wait_master_err(0, err);
  EXPECT_TRUE(loop.run_until([&] { return client.log_mentions(redlock_strerror(err)); })) << redlock_err_name(err);
  EXPECT_EQ(client.status().masters_up, 0u);
  EXPECT_EQ(site[0].calls("hello"), 0u) << "a server that is not trusted was told something";
}

TEST(Trust, ACertificateOfAnotherAuthority) {
  TlsSite site(1);
  const std::string other = site.folder.write("other.pem", Certificate::authority("another").pem());
  expect_refused(site, site.settings({{"tls.ca_file", other}}), REDLOCK_E_TLS_AUTHORITY);
}

// "2026-11-20 09:30 UTC"
std::string as_text(int64_t utc_s) {
  const time_t at = static_cast<time_t>(utc_s);
  char text[40];
  return std::string(text, strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", gmtime(&at)));
}

// The log, and the event of an acquire, say `text`.
void expect_told(TlsSite& site, const std::string& text) {
  Loop loop;
  Client client(loop, site.settings());
  EXPECT_TRUE(loop.run_until([&] { return client.log_mentions(text); })) << text;
  std::string said;
  Lock& lock = client.start("bus", options(3'000));
  lock.on_event = [&](const redlock_event_t& event) {
    char sentence[REDLOCK_TEXT_MAX + 1];
    redlock_describe(&event, sentence, sizeof sentence);
    said = sentence;
  };
  EXPECT_TRUE(loop.run_until([&] { return lock.has(REDLOCK_EV_FAILED); }));
  EXPECT_NE(said.find(text), std::string::npos) << said;
}

TEST(Trust, ACertificateOutOfItsDates) {
  const int64_t now = time(nullptr);
  TlsSite expired(1, "no", {.names = {"IP:127.0.0.1"}, .from_s = -7'200, .until_s = -3'600, .now_s = now});
  expect_refused(expired, expired.settings(), REDLOCK_E_TLS_EXPIRED);
  expect_told(expired, "a certificate of its chain has expired (the master's own ended " + as_text(now - 3'600) + ")");
  TlsSite early(1, "no", {.names = {"IP:127.0.0.1"}, .from_s = 3'600, .until_s = 7'200, .now_s = now});
  expect_refused(early, early.settings(), REDLOCK_E_TLS_EARLY);
  expect_told(early, "is this machine's clock set? (the master's own begins " + as_text(now + 3'600) + ")");
}

TEST(Trust, OneAboveOutOfItsDates) {
  using Use = Certificate::Use;
  const int64_t now = time(nullptr);
  const Certificate top = Certificate::authority("top");
  const Certificate middle =
      top.issue({.cn = "middle", .use = Use::authority, .from_s = -7'200, .until_s = -60, .now_s = now});
  TlsSite site(1, middle.issue({"IP:127.0.0.1"}), top);
  expect_told(site, "(an intermediate ended " + as_text(now - 60) + ")");
  const Certificate old =
      Certificate::self_signed({.cn = "old", .use = Use::authority, .from_s = -7'200, .until_s = -60, .now_s = now});
  TlsSite by_old(1, old.issue({"IP:127.0.0.1"}), old);
  expect_told(by_old, "(the authority in tls.ca_file ended " + as_text(now - 60) + ")");
}

TEST(Trust, ACertificateForAnotherName) {
  for (const char* name : {"IP:127.0.0.2", "DNS:127.0.0.1", "DNS:localhost", "IP:::1"}) {
    TlsSite site(1, "no", {.names = {name}});
    expect_refused(site, site.settings(), REDLOCK_E_TLS_NAME);
  }
  TlsSite site(1, "no", {.names = {"DNS:m1.example"}});
  Settings settings = site.settings();
  settings.strings.emplace_back("tls.server_name", "m1.example");
  Loop loop;
  UpClient client(loop, settings);
}

std::string pin_of(const Certificate& certificate) { return "sha256:" + certificate.pin_hex(); }

TEST(Trust, APin) {
  TlsSite site(1, "no", {.from_s = -7'200, .until_s = -3'600});  // neither name nor dates count
  const std::string other = pin_of(Certificate::self_signed({}));
  expect_refused(site, site.settings({{"tls.pin", other}}), REDLOCK_E_TLS_PIN);
  Loop loop;
  UpClient client(loop, site.settings({{"tls.pin", pin_of(site.certificate)}}));
}

TEST(Trust, ACertificateOfTheClient) {
  TlsSite site(1, "yes");
  const std::string ca = site.folder.path("ca.pem");
  expect_refused(site, site.settings(), REDLOCK_E_TLS_CLIENT_CERT);
  const Certificate strange = Certificate::authority("another").issue({.cn = "gateway"});
  const ServerTls bad = site.files("strange", strange);
  expect_refused(site,
                 site.settings({{"tls.ca_file", ca}, {"tls.cert_file", bad.cert_file}, {"tls.key_file", bad.key_file}}),
                 REDLOCK_E_TLS_CLIENT_REFUSED);
  const ServerTls good = site.files("gateway", site.authority.issue({.cn = "gateway"}));
  Loop loop;
  UpClient client(
      loop, site.settings({{"tls.ca_file", ca}, {"tls.cert_file", good.cert_file}, {"tls.key_file", good.key_file}}));
  EXPECT_TRUE(client.acquire("bus").has(REDLOCK_EV_ACQUIRED));
}

TEST(Trust, AServerThatSpeaksNoTlsAndOneThatSpeaksNothingElse) {
  TlsSite site(1);
  Settings settings = site.settings();
  settings.urls = {"rediss://127.0.0.1:" + std::to_string(site[0].port())};
  settings.numbers = {{"timing.connect_timeout_ms", 300}};  // a plain Redis waits for more
  expect_refused(site, settings, REDLOCK_E_TLS_NONE);

  settings.urls = {"redis://127.0.0.1:" + std::to_string(site[0].tls_port())};
  expect_refused(site, settings, REDLOCK_E_NO_GREETING);  // OpenSSL says nothing to what is no TLS

  TcpPeer alert([](int, std::string& in, std::string& out) {
    if (in.empty()) return TcpPeer::Then::keep;
    out = std::string("\x15\x03\x01\x00\x02\x02\x0a", 7);
    return TcpPeer::Then::close;
  });
  settings.urls = {alert.url()};
  expect_refused(site, settings, REDLOCK_E_TLS_ONLY);
}

TEST(Trust, AFileThatCannotBeReadMakesCreateFail) {
  TlsSite site(2);
  const std::pair<std::string, const char*> cases[] = {
      {site.folder.path("missing.pem"), "does not exist"},
      {site.folder.write("text.pem", "no PEM\n"), "is no PEM of what belongs here, or is cut short"}};
  for (const auto& [file, cause] : cases) {
    redlock_config_t* cfg = configure(site.settings({{"tls.ca_file", file}}));
    redlock_t* rl = nullptr;
    EXPECT_EQ(redlock_create(&rl, cfg), REDLOCK_E_TLS_FILE);
    EXPECT_EQ(rl, nullptr);
    EXPECT_EQ(redlock_config_error(cfg), "masters[0]: tls.ca_file: " + file + ": " + cause);
    redlock_config_free(cfg);
  }
}

// ---- a handshake that does not go on -----------------------------------------------------------------------------

TEST(Handshake, AFrozenMasterTimesOutAndDisturbsNoOther) {
  TlsSite site(3);
  Settings settings = site.settings();
  settings.numbers = {{"timing.connect_timeout_ms", 500}};
  Loop loop;
  UpClient client(loop, settings);
  Lock& lock = client.hold("bus", options(3'000, 20'000));
  site[0].command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  site[0].freeze();  // the kernel still accepts
  client.wait_master_err(0, REDLOCK_E_CONNECT_TIMEOUT);
  const size_t renewed = lock.count(REDLOCK_EV_RENEWED);
  EXPECT_TRUE(loop.run_until([&] { return lock.count(REDLOCK_EV_RENEWED) > renewed; }));
  EXPECT_FALSE(lock.has(REDLOCK_EV_LOST));
  site[0].thaw();
  client.wait_up(3);
}

// The client has a loop of its own here, which nothing wakes but the client.
TEST(Handshake, AFrozenMasterIsNotWaitedFor) {
  TlsSite site(3);
  Settings settings = site.settings();
  settings.numbers = {{"timing.connect_timeout_ms", 60'000}};
  site[0].freeze();
  site[1].freeze();
  ThreadClient client(settings);
  EXPECT_TRUE(ThreadClient::eventually([&] { return client.status().masters_up == 1; }));
  site[1].thaw();
  redlock_lock_t lock{0};
  EXPECT_EQ(client.acquire("bus", lock, options(10'000, 20'000)), 0);
}

// What a peer may answer to the first bytes of a handshake. Nothing of it stops the client, and all have their number.
TEST(Handshake, GarbageAndEnds) {
  using Then = TcpPeer::Then;
  const std::string server_hello("\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03", 11);
  const struct {
    const char* what;
    std::string bytes;
    Then then;
    std::vector<int> errs;
  } cases[] = {
      {"an end", "", Then::close, {REDLOCK_E_DISCONNECTED}},
      {"a reset", "", Then::reset, {REDLOCK_E_DISCONNECTED}},
      {"plain Redis", "-ERR unknown command\r\n", Then::keep, {REDLOCK_E_TLS_NONE}},
      {"zeros", std::string(100, '\0'), Then::keep, {REDLOCK_E_TLS_NONE, REDLOCK_E_TLS_BROKEN}},
      {"half a record and an end", server_hello, Then::close, {REDLOCK_E_DISCONNECTED}},
      {"half a record and a reset", server_hello, Then::reset, {REDLOCK_E_DISCONNECTED}},
      {"half a record", server_hello, Then::keep, {REDLOCK_E_CONNECT_TIMEOUT}},
      {"a whole record of nonsense", server_hello + std::string(0x7a - 6, '\x55'), Then::keep, {REDLOCK_E_TLS_BROKEN}},
      {"an endless record", std::string("\x16\x03\x03\xff\xff", 5), Then::keep, {REDLOCK_E_TLS_BROKEN}},
      {"an alert", std::string("\x15\x03\x03\x00\x02\x02\x28", 7), Then::keep, {REDLOCK_E_TLS_COMMON}},
  };
  TlsSite site(1);
  for (const auto& c : cases) {
    TcpPeer peer([&c](int, std::string& in, std::string& out) {
      if (in.empty()) return Then::keep;
      in.clear();
      out = c.bytes;
      return c.then;
    });
    Settings settings = site.settings();
    settings.urls = {site[0].url(), "rediss://127.0.0.1:" + std::to_string(peer.port())};
    settings.numbers = {{"timing.connect_timeout_ms", 300}};
    Loop loop;
    Client client(loop, settings);
    EXPECT_TRUE(loop.run_until([&] {
      const int err = client.master(1).err;
      return std::find(c.errs.begin(), c.errs.end(), err) != c.errs.end();
    })) << c.what
        << ": " << redlock_err_name(client.master(1).err);
    EXPECT_TRUE(loop.run_until([&] { return client.master(0).state == REDLOCK_MASTER_UP; })) << c.what;
  }
}

// A client may go in the middle of a handshake.
TEST(Handshake, TheClientEndsInIt) {
  TlsSite site(3);
  site[0].freeze();
  Loop loop;
  for (int rounds = 1; rounds < 40; ++rounds) {
    Client client(loop, site.settings());
    for (int i = 0; i < rounds; ++i) uv_run(loop.get(), UV_RUN_NOWAIT);
    client.close(0);
  }
}

// ---- one step in each round of the loop --------------------------------------------------------------------------

// All servers have answered before the loop goes on: it takes one step of one handshake in each of its rounds.
TEST(Steps, OneInEachRoundOfTheLoop) {
  constexpr size_t masters = 4;
  TlsSite site(masters);
  Settings settings = site.settings();
  settings.numbers = {{"timing.connect_timeout_ms", 30'000}};
  Loop loop;
  Client client(loop, settings);
  for (int i = 0; i < 10; ++i) uv_run(loop.get(), UV_RUN_NOWAIT);  // each has said its first words
  std::this_thread::sleep_for(std::chrono::milliseconds(300));     // and they are answered, unless the machine is slow
  int rounds = 0;
  while (client.status().masters_up < masters) {
    uv_run(loop.get(), UV_RUN_ONCE);
    ++rounds;
  }
  RecordProperty("rounds", rounds);
  EXPECT_GE(rounds, static_cast<int>(masters) * 4) << "a server's answer to the first words is four records at least";
}

}  // namespace
}  // namespace redlock::test
