// SPDX-License-Identifier: MIT
//
// What the end of strays rests on, asked of a server by hand and without the library: behind the answer to CLIENT KILL
// ID nothing of that connection is executed any more, also where threads of the server read ahead. A server that stood
// still finds all at once: commands of connections that were reset since, and on another one kills and a delete. In
// every second trial the kills came first.
//   REDLOCK_REDIS_ARGS="--io-threads 4" integration_stray_order
// In Redis 6 and 7 threads read only with --io-threads-do-reads yes.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/eventually.hpp"
#include "support/redis_server.hpp"
#include "support/server_kind.hpp"

namespace redlock::test {
namespace {

constexpr unsigned strays = 6;  // enough for a server to have its threads read them

std::string key(unsigned stray) { return "k" + std::to_string(stray); }

unsigned connected_clients(RedisServer& server) {
  const std::string clients = server.command({"INFO", "clients"}), mark = "connected_clients:";
  return static_cast<unsigned>(std::stoul(clients.substr(clients.find(mark) + mark.size())));
}

class StrayOrder : public ::testing::Test {
 protected:
  // How many keys are left by this trial, which ends when the server has read all there is.
  unsigned trial(bool kills, bool strays_first) {
    std::vector<RedisConnection> old;
    std::string requests;
    for (unsigned i = 0; i < strays; ++i) {
      old.push_back(server.connect());
      const std::string id = old.back().command({"CLIENT", "ID"});
      if (kills) requests += resp_command({"CLIENT", "KILL", "ID", id});
    }
    std::vector<std::string> deletes = {"DEL"};
    for (unsigned i = 0; i < strays; ++i) deletes.push_back(key(i));
    requests += resp_command(deletes);
    RedisConnection next = server.connect();
    next.command({"PING"});

    server.freeze();
    if (!strays_first) next.send(requests);
    for (unsigned i = 0; i < strays; ++i) {
      old[i].send(resp_command({"SET", key(i), "v"}));
      old[i].reset();
    }
    if (strays_first) next.send(requests);
    server.thaw();
    next.receive(kills ? strays + 1 : 1);
    EXPECT_TRUE(eventually([&] { return connected_clients(server) <= 2; }));
    unsigned left = 0;
    for (unsigned i = 0; i < strays; ++i) left += server.command({"DEL", key(i)}) == "1" ? 1 : 0;
    return left;
  }

  unsigned all_trials(bool kills) {
    constexpr unsigned trials = 100;
    unsigned left = 0;
    for (unsigned i = 0; i < trials; ++i) left += trial(kills, i % 2 == 0);
    const char* const args = std::getenv("REDLOCK_REDIS_ARGS");
    std::printf("%s %s %s: %s CLIENT KILL ID %u of %u late SETs leave a key\n", kind.valkey ? "Valkey" : "Redis",
                kind.text.c_str(), args == nullptr ? "" : args, kills ? "with" : "without", left, trials * strays);
    return left;
  }

  RedisServer server;
  const ServerKind kind = kind_of(server);
};

TEST_F(StrayOrder, NothingOfAKilledConnectionIsExecuted) { EXPECT_EQ(all_trials(true), 0u); }

// Else the test above shows nothing.
TEST_F(StrayOrder, WithoutThatADeleteComesTooEarly) { EXPECT_GT(all_trials(false), 0u); }

}  // namespace
}  // namespace redlock::test
