// SPDX-License-Identifier: MIT
//
// What changes while a client over TLS runs: files are rotated, connections end and are made again.
#include <malloc.h>

#include <cstdlib>
#include <fstream>

#include "tls_site.hpp"

namespace redlock::test {
namespace {

void end_connections(RedisServer& server) { server.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}); }

// ---- files -------------------------------------------------------------------------------------------------------

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

// A file that is no PEM, or is gone, changes nothing, and the log says so once.
TEST(Rotation, ABrokenFileChangesNothing) {
  TlsSite site(1);
  Loop loop;
  UpClient client(loop, site.settings());
  const auto reconnect = [&] {
    const uint32_t before = client.master(0).connects;
    end_connections(site[0]);
    return loop.run_until([&] {
      return client.master(0).connects > before && client.master(0).state == REDLOCK_MASTER_UP;
    });
  };
  const auto told = [&](const std::string& text) {
    size_t lines = 0;
    for (const std::string& line : client.log()) lines += line.find(text) != std::string::npos ? 1 : 0;
    return lines;
  };
  site.folder.write("ca.pem", "half a file");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(reconnect()) << i;
  EXPECT_EQ(told("tls.ca_file"), 1u);
  site.folder.write("ca.pem", site.authority.pem());
  EXPECT_TRUE(reconnect());
  ::unlink(site.folder.path("ca.pem").c_str());
  EXPECT_TRUE(reconnect());
  EXPECT_TRUE(reconnect());
  EXPECT_GE(told("tls.ca_file"), 2u);
  EXPECT_LE(told("tls.ca_file"), 3u);
}

// ---- connections -------------------------------------------------------------------------------------------------

size_t bytes_in_use() { return mallinfo2().uordblks; }

// REDLOCK_MANY: a thousand. What the process has allocated is the same behind the first and behind the last.
TEST(Reconnect, OverAndOverWithFlatMemory) {
  const unsigned times = std::getenv("REDLOCK_MANY") != nullptr ? 1'000 : 200;
  TlsSite site(1);
  Settings settings = site.settings();
  settings.numbers = {{"timing.reconnect_min_ms", 10}, {"timing.reconnect_max_ms", 10}};
  redlock_config_t* cfg = configure(settings);
  redlock_t* rl = nullptr;
  Loop loop;
  ASSERT_EQ(redlock_create_on_loop(&rl, cfg, loop.get()), 0);
  redlock_config_free(cfg);
  const auto connects = [rl] {
    redlock_master_status_t status{};
    status.size = sizeof status;
    return redlock_master_status(rl, 0, &status) == 0 && status.state == REDLOCK_MASTER_UP ? status.connects : 0u;
  };
  size_t first = 0;
  for (unsigned n = 1; n <= times; ++n) {
    ASSERT_TRUE(loop.run_until([&] { return connects() >= n; })) << n;
    if (n == 20) first = bytes_in_use();
    if (n == times) break;
    end_connections(site[0]);
    ASSERT_TRUE(loop.run_until([&] { return connects() == 0; })) << n;
  }
  const size_t last = bytes_in_use();
  RecordProperty("bytes", std::to_string(last));
  EXPECT_LE(last, first + 65'536) << "after 20 and after " << times;
  ASSERT_EQ(redlock_close_async(rl, 0), 0);
  while (uv_loop_alive(loop.get()) != 0 && uv_run(loop.get(), UV_RUN_ONCE) != 0) {
  }
}

TEST(Reconnect, ClientsLeaveNothing) {
  TlsSite site(1);
  size_t first = 0;
  for (int n = 1; n <= 40; ++n) {
    redlock_config_t* cfg = configure(site.settings());
    redlock_t* rl = nullptr;
    Loop loop;
    ASSERT_EQ(redlock_create_on_loop(&rl, cfg, loop.get()), 0);
    redlock_config_free(cfg);
    redlock_status_t status{};
    status.size = sizeof status;
    ASSERT_TRUE(loop.run_until([&] { return redlock_status(rl, &status) == 0 && status.masters_up == 1; }));
    ASSERT_EQ(redlock_close_async(rl, 0), 0);
    loop.run_for(1);
    if (n == 10) first = bytes_in_use();
  }
  EXPECT_LE(bytes_in_use(), first + 65'536) << "after 10 and after 40";
}

// Five of nine masters are a quorum. The other four are cut off all together, again and again, and their handshakes
// compute while the five are asked for renewals.
TEST(Reconnect, RenewalsAreKeptWhileFourMastersHandshake) {
  TlsSite site(9);
  Settings settings = site.settings();
  settings.numbers = {{"timing.reconnect_min_ms", 10}, {"timing.reconnect_max_ms", 10}};
  Loop loop;
  UpClient client(loop, settings);
  Lock& lock = client.hold("bus", options(1'500, 20'000));
  uint32_t connects = 0;
  const int64_t until = boot_ns() + 3'000'000'000;  // twice the ttl
  while ((lock.count(REDLOCK_EV_RENEWED) < 6 || boot_ns() < until) && !lock.ended()) {
    for (size_t m = 0; m < 4; ++m) end_connections(site[m]);
    EXPECT_TRUE(loop.run_until([&] { return client.status().masters_up < 9; }));
    EXPECT_TRUE(loop.run_until([&] { return client.status().masters_up == 9 || lock.ended(); }));
  }
  for (uint32_t m = 0; m < 4; ++m) connects += client.master(m).connects;
  EXPECT_FALSE(lock.has(REDLOCK_EV_LOST)) << connects << " connections";
  EXPECT_GE(connects, 8u);
  EXPECT_EQ(client.check(lock, 1), 0);
}

// ---- secrets -----------------------------------------------------------------------------------------------------

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
  end_connections(site[0]);
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
