// SPDX-License-Identifier: MIT
//
// Masters over TLS: locks in each way to run a client, who is trusted, masters that stand still in a handshake, and
// files that are replaced while a lock is held. What a certificate may be wrong in is that of unit_tls_peers.
#include "polled_harness.hpp"
#include "support/tcp_peer.hpp"
#include "thread_harness.hpp"
#include "tls_site.hpp"

namespace redlock::test {
namespace {

// ---- locks -------------------------------------------------------------------------------------------------------

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
  expect_told(expired, "a certificate of its chain has expired (the master's own ended " + as_text(now - 3'600) + ")");
  TlsSite early(1, "no", {.names = {"IP:127.0.0.1"}, .from_s = 3'600, .until_s = 7'200, .now_s = now});
  expect_told(early, "is this machine's clock set? (the master's own begins " + as_text(now + 3'600) + ")");
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

// ---- files and secrets -------------------------------------------------------------------------------------------

// A new authority is put into the clients' file, then each server gets a certificate of it. The lock is held all along.
TEST(Rotation, OfTheAuthorityWhileALockIsHeld) {
  TlsSite site(3);
  Loop loop;
  UpClient client(loop, site.settings());
  Lock& lock = client.hold("bus", options(3'000, 20'000));
  const Certificate authority = Certificate::authority("the next");
  const ServerTls files = site.files("next", authority.issue({"IP:127.0.0.1"}));
  site.folder.write("ca.pem", site.authority.pem() + authority.pem());
  for (uint32_t m = 0; m < 3; ++m) {
    site[m].restart(files);
    EXPECT_TRUE(loop.run_until([&] { return client.master(m).state == REDLOCK_MASTER_UP; }));
    const size_t renewed = lock.count(REDLOCK_EV_RENEWED);
    EXPECT_TRUE(loop.run_until([&] { return lock.count(REDLOCK_EV_RENEWED) >= renewed + 2; }));
    EXPECT_TRUE(loop.run_until([&] { return site[m].exists("bus"); })) << "put back";
  }
  EXPECT_FALSE(lock.has(REDLOCK_EV_LOST));
  EXPECT_EQ(client.check(lock, 1), 0);

  // Without the old one, nobody is trusted who has a certificate of it.
  site.folder.write("ca.pem", authority.pem());
  site[0].restart(site.files("old", site.certificate));
  client.wait_master_err(0, REDLOCK_E_TLS_AUTHORITY);
  site[0].restart(files);
  client.wait_up(3);
}

// At any level the log has neither the password nor a line of a key.
TEST(Secrets, AreInNoLine) {
  TlsSite site(1, "yes");
  const Certificate gateway = site.authority.issue({.cn = "gateway"});
  const ServerTls files = site.files("gateway", gateway);
  site[0].command({"CONFIG", "SET", "requirepass", "open sesame"});
  Settings settings = site.settings({{"tls.ca_file", files.ca_file},
                                     {"tls.cert_file", files.cert_file},
                                     {"tls.key_file", files.key_file},
                                     {"password", "open sesame"}});
  Loop loop;
  UpClient client(loop, settings);
  site.folder.write("gateway.key", gateway.key_pem().substr(0, 100));
  site[0].command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  EXPECT_TRUE(loop.run_until([&] { return client.master(0).connects >= 2; }));
  client.wait_up(1);
  EXPECT_TRUE(client.log_mentions("tls.key_file"));
  std::string log;
  for (const std::string& line : client.log()) log += line + "\n";
  EXPECT_EQ(log.find("sesame"), std::string::npos);
  EXPECT_EQ(log.find("PRIVATE"), std::string::npos);
  EXPECT_EQ(log.find(gateway.key_pem().substr(40, 30)), std::string::npos);
}

}  // namespace
}  // namespace redlock::test
