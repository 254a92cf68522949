// SPDX-License-Identifier: MIT
//
// Keys that no lock of ours made. A resource whose key is there is LOCKED, whatever the key is, and stays as it is.
#include <gtest/gtest.h>

#include "guard_site.hpp"

namespace redlock::test {
namespace {

const std::vector<std::vector<std::string>> kWriters = {
    {"SET", "bus", "a value without an expiry"},
    {"SET", "bus", "", "PX", "100000"},
    {"SET", "bus", "0123456789abcdef0123456789abcdef", "PX", "100000"},  // as other lock libraries write it
    {"SET", "bus", "42"},
    {"HSET", "bus", "field", "value"},
    {"RPUSH", "bus", "element"},
    {"SADD", "bus", "member"},
    {"ZADD", "bus", "1", "member"},
    {"XADD", "bus", "*", "field", "value"},
    {"PFADD", "bus", "element"},
};

// One plain SET, and each script that takes locks. Without HELLO 3 there is no tracking, and all of them are scripts.
TEST(ForeignKeys, AreLockedAndLeftAlone) {
  for (const bool resp3 : {true, false}) {
    RedisServer::Options options;
    if (!resp3) options.args = {"--rename-command", "HELLO", ""};
    Site site(1, 1'000, options);
    UpClient client(site.loop, site.settings());
    for (const std::vector<std::string>& writer : kWriters) {
      SCOPED_TRACE(writer[0] + " " + writer[2] + (resp3 ? "" : ", RESP2"));
      site[0].command({"DEL", "bus"});
      site[0].command(writer);
      const std::string before = site[0].command({"DUMP", "bus"});
      const bool expires = site[0].command({"PTTL", "bus"}) != "-1";
      for (const std::vector<std::string>& names : {std::vector<std::string>{"bus"}, {"bus", "valve"}}) {
        for (const uint32_t flags : {0u, REDLOCK_F_FENCING}) {
          const Lock& lock = client.acquire(names, site.longest(REDLOCK_WAIT_NONE, flags));
          EXPECT_EQ(lock.first(REDLOCK_EV_FAILED).err, REDLOCK_E_LOCKED);
        }
      }
      EXPECT_TRUE(site.loop.run_until([&] { return client.status().debts == 0; }));
      EXPECT_EQ(site[0].command({"DUMP", "bus"}), before);
      EXPECT_EQ(site[0].command({"PTTL", "bus"}) != "-1", expires);
      EXPECT_FALSE(site[0].exists("valve"));
    }
    site[0].command({"DEL", "bus"});
    EXPECT_TRUE(client.acquire("bus", site.longest()).has(REDLOCK_EV_ACQUIRED));
  }
}

}  // namespace
}  // namespace redlock::test
