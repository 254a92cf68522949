// SPDX-License-Identifier: MIT
//
// The loop stands still for longer than node_timeout_ms, as a callback or a slow disk makes it do. The masters have
// answered meanwhile: none of them was silent.
#include <regex>
#include <thread>

#include "client_harness.hpp"
#include "support/pauses.hpp"
#include "support/redis_server.hpp"

namespace redlock::test {
namespace {

struct OwnPause : ::testing::Test {
  OwnPause() {
    settings.urls = {servers[0].url(), servers[1].url(), servers[2].url()};
    settings.numbers = {{"timing.node_timeout_ms", 200},
                        {"timing.suspect_close_ms", 400},
                        {"timing.max_ttl_ms", 60'000}};
  }
  // What was asked for leaves; then nothing of the client's runs.
  void stand_still(int ms) {
    for (int i = 0; i < 2; ++i) uv_run(loop.get(), UV_RUN_NOWAIT);
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  }
  static size_t suspects(const Client& client) {
    size_t found = 0;
    for (const redlock_event_t& event : client.master_events()) found += event.state == REDLOCK_MASTER_SUSPECT ? 1 : 0;
    return found;
  }

  RedisServer servers[3];
  Settings settings;
  Loop loop;
};

TEST_F(OwnPause, IsNoSilenceOfTheMasters) {
  const Pauses pauses;  // the masters must not pause
  UpClient client(loop, settings);
  size_t blamed = 0;
  for (int i = 0; i < 10; ++i) {
    Lock& lock = client.start("bus", options(60'000, REDLOCK_WAIT_FOREVER));
    stand_still(i % 2 == 0 ? 250 : 700);
    ASSERT_TRUE(loop.run_until([&] { return lock.has(REDLOCK_EV_ACQUIRED); })) << i;
    blamed += lock.first(REDLOCK_EV_ACQUIRED).failed + lock.first(REDLOCK_EV_ACQUIRED).rounds - 1;
    EXPECT_EQ(redlock_release_async(client.get(), lock.handle), 0);
    stand_still(250);
    ASSERT_TRUE(loop.run_until([&] { return lock.ended(); }));
  }
  blamed += suspects(client);
  for (uint32_t m = 0; m < 3; ++m) blamed += client.master(m).connects - 1;
  EXPECT_TRUE(blamed == 0 || pauses.were_too_long()) << blamed;
}

// The log tells the cause before what came of it: a lock that is lost, and masters that are not to blame.
TEST_F(OwnPause, IsToldBeforeWhatCameOfIt) {
  for (const char* key : {"timing.node_timeout_ms", "timing.suspect_close_ms"}) {
    settings.numbers.emplace_back(key, 3'000);  // a busy machine's masters are silent for longer than 200 ms
  }
  UpClient client(loop, settings);
  for (const bool in_callback : {false, true}) {
    const size_t before = client.log().size();
    Lock& lock = client.start("bus", options(2'000));
    if (in_callback) {
      lock.on_event = [&](const redlock_event_t& event) {
        if (event.type == REDLOCK_EV_RENEWED) std::this_thread::sleep_for(std::chrono::milliseconds(3'500));
      };
    }
    ASSERT_TRUE(loop.run_until([&] { return lock.has(REDLOCK_EV_ACQUIRED); }));
    if (!in_callback) stand_still(3'500);
    ASSERT_TRUE(loop.run_until([&] { return lock.has(REDLOCK_EV_LOST); }));
    std::string all;
    for (size_t i = before; i < client.log().size(); ++i) {
      if (client.log()[i] < "5") all += client.log()[i] + "\n";  // warnings and errors
    }
    const std::regex told("4 the loop did not run for at least [1-9] s\n3 \"bus\" [^]*");
    EXPECT_TRUE(std::regex_match(all, told)) << all;
  }
  client.start("other", options(60'000));
  servers[2].kill_hard();
  client.wait_master_err(2, REDLOCK_E_REFUSED);
  EXPECT_FALSE(client.log_mentions("at least 0 s"));
  size_t told = 0;
  for (const std::string& line : client.log()) told += line.find("the loop did not run") != std::string::npos ? 1 : 0;
  EXPECT_EQ(told, 2u) << "each pause once, and none where there was none";
}

}  // namespace
}  // namespace redlock::test
