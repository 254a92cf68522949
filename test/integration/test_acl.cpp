// SPDX-License-Identifier: MIT
//
// A user with the permissions that README names, and no others: nothing that a client sends is refused, and each
// permission is used. Keys, too, are only those that README names.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "guard_site.hpp"

namespace redlock::test {
namespace {

std::vector<std::string> permissions_of_the_readme() {
  std::ifstream file(REDLOCK_SOURCE_DIR "/README.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t begin = text.find("`-@all ") + 1;
  std::istringstream line(text.substr(begin, text.find('`', begin) - begin));
  return {std::istream_iterator<std::string>(line), {}};
}

// Whether the server has executed it, by itself or in a script. Before Redis 7.0 subcommands are not counted apart.
bool executed(const std::string& stats, const std::string& permission) {
  const std::string command = permission.substr(1);
  return stats.find("cmdstat_" + command + ":") != std::string::npos ||
         stats.find("cmdstat_" + command.substr(0, command.find('|')) + ":") != std::string::npos;
}

// Waits in line behind another client, holds, extends, and lets go: one name and two, without a token and with one.
void use_locks(Site& site, Client& client, Client& other) {
  for (const std::vector<std::string>& names : {std::vector<std::string>{"bus"}, {"bus", "valve"}}) {
    for (const uint32_t flags : {0u, REDLOCK_F_FENCING}) {
      Lock& first = other.acquire(names, site.longest(REDLOCK_WAIT_FOREVER));
      const uint64_t rounds = client.status().rounds;
      Lock& lock = client.start(names, site.longest(REDLOCK_WAIT_FOREVER, flags));
      EXPECT_TRUE(site.loop.run_until([&] { return client.status().rounds > rounds + 1; }));
      EXPECT_EQ(redlock_extend_async(other.get(), first.handle, 0), 0);
      EXPECT_TRUE(site.loop.run_until([&] { return first.has(REDLOCK_EV_RENEWED); }));
      other.release(first);
      EXPECT_TRUE(site.loop.run_until([&] { return lock.has(REDLOCK_EV_ACQUIRED); }));
      client.release(lock);
    }
  }
}

// A connection breaks with a SET on its way, and the next one ends it.
void leave_a_stray(Site& site, Client& client) {
  site[0].freeze();
  EXPECT_TRUE(client.acquire("bus", site.longest()).has(REDLOCK_EV_FAILED));
  EXPECT_TRUE(site.loop.run_until([&] { return client.master(0).state == REDLOCK_MASTER_GREETING; }));
  site[0].thaw();
  EXPECT_TRUE(site.loop.run_until([&] { return client.status().masters_up == 1 && client.status().debts == 0; }));
}

TEST(Acl, ThePermissionsOfTheReadmeAreEnoughAndAllAreUsed) {
  const std::vector<std::string> permissions = permissions_of_the_readme();
  ASSERT_GT(permissions.size(), 20u);
  std::string stats;
  for (const bool resp3 : {true, false}) {
    SCOPED_TRACE(resp3 ? "RESP3" : "RESP2");
    RedisServer::Options options;
    if (!resp3) options.args = {"--rename-command", "HELLO", ""};
    Site site(1, 1'000, options);
    std::vector<std::string> words = {"ACL", "SETUSER", "locker", "on", ">secret", "~bus", "~valve", "~redlock::*"};
    words.insert(words.end(), permissions.begin(), permissions.end());
    ASSERT_EQ(site[0].command(words), "OK");
    Settings settings = site.settings(false);
    log_in(settings);
    settings.numbers.insert(settings.numbers.end(), {{"timing.suspect_close_ms", 500}});
    Client other(site.loop, settings);
    Client client(site.loop, settings);
    other.wait_up(1);
    client.wait_up(1);
    EXPECT_EQ(client.master(0).tracked, resp3 ? 1u : 0u);
    use_locks(site, client, other);
    leave_a_stray(site, client);
    EXPECT_EQ(site[0].command({"ACL", "LOG"}), "") << "a refused command, or key";
    stats += "\n" + site[0].command({"INFO", "commandstats"});
  }
  for (const std::string& permission : permissions) {
    EXPECT_TRUE(permission == "-@all" || executed(stats, permission)) << permission << " is not used";
  }
}

}  // namespace
}  // namespace redlock::test
