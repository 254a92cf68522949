// SPDX-License-Identifier: MIT
//
// Commands of an operator that move keys, or bring them back: MIGRATE, RESTORE of a DUMP, FUNCTION and SCRIPT FLUSH,
// and a replica that Valkey fills over two channels. They are tried on the key of a lock that is held, and on the
// guard's record. Two tests show what is not promised (include/API.md): keys of a quorum that are moved, and a record
// that comes back behind a flush.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "guard_site.hpp"
#include "support/eventually.hpp"

namespace redlock::test {
namespace {

const std::string record = "redlock::meta";

// "OK", or an error, of MIGRATE ... REPLACE or without.
std::string migrate(RedisServer& from, RedisServer& to, const std::string& key, bool replace) {
  std::vector<std::string> words = {"MIGRATE", "127.0.0.1", std::to_string(to.port()), key, "0", "10000"};
  if (replace) words.push_back("REPLACE");
  return from.command(words);
}
std::string dump(RedisServer& server, const std::string& key) { return server.command({"DUMP", key}); }
void restore(RedisServer& server, const std::string& key, const std::string& bytes, int ms = 0) {
  EXPECT_EQ(server.command({"RESTORE", key, std::to_string(ms), bytes, "REPLACE"}), "OK");
}

class MovedKeys : public ::testing::Test {
 protected:
  explicit MovedKeys(uint32_t max_ttl_ms = 1'500) : site(3, max_ttl_ms) {}
  // Who asks all the time gets the lock, and not before the end of the validity that the holder was told last.
  void expect_held_off(Client& other, int64_t until_ns) {
    Lock& second = other.start("bus", site.longest(REDLOCK_WAIT_FOREVER));
    second.on_event = [until_ns](const redlock_event_t& event) {
      EXPECT_TRUE(event.type != REDLOCK_EV_ACQUIRED || boot_ns() >= until_ns);
    };
    EXPECT_TRUE(site.loop.run_until([&] { return second.has(REDLOCK_EV_ACQUIRED); }));
  }
  Site site;
};

struct MovedKeysOfLongLocks : MovedKeys {
  MovedKeysOfLongLocks() : MovedKeys(6'000) {}
  Client a{site.loop, site.settings()};
  Client b{site.loop, site.settings(false)};
  void SetUp() override {
    a.wait_up(3);
    b.wait_up(3);
  }
};

// ---- the key of a lock ----------------------------------------------------------------------------------------------

// A master that has the key does not take it, and one of three that lost it makes no second holder. It gets it back.
TEST_F(MovedKeysOfLongLocks, OneKeyThatIsMigratedComesBack) {
  const Lock& held = a.acquire("bus", site.longest());
  const std::string value = site[1].command({"GET", "bus"});
  EXPECT_EQ(migrate(site[0], site[1], "bus", false).substr(0, 4), "-ERR") << "BUSYKEY";
  EXPECT_TRUE(site[0].exists("bus"));
  ASSERT_EQ(migrate(site[0], site[1], "bus", true), "OK");
  EXPECT_EQ(site[1].command({"GET", "bus"}), value);
  EXPECT_EQ(b.acquire("bus", site.longest()).first(REDLOCK_EV_FAILED).err, REDLOCK_E_LOCKED);
  EXPECT_TRUE(site.loop.run_until([&] { return site[0].command({"GET", "bus"}) == value; })) << "put back";
  EXPECT_EQ(a.check(held), 0);
}

// The value of a lock that is over, put over that of a lock that is held.
TEST_F(MovedKeysOfLongLocks, AnOldKeyThatIsRestoredIsNobodys) {
  Lock& first = a.acquire("bus", site.longest());
  const std::string old = dump(site[0], "bus"), old_value = site[0].command({"GET", "bus"});
  a.release(first);
  EXPECT_TRUE(site.loop.run_until([&] { return !site[0].exists("bus") && !site[1].exists("bus"); }));
  const Lock& held = b.hold("bus", site.longest(5'000));
  restore(site[0], "bus", old);
  site.loop.run_for(300);
  EXPECT_EQ(b.check(held), 0) << "two of three have it";
  EXPECT_EQ(a.acquire("bus", site.longest()).first(REDLOCK_EV_FAILED).err, REDLOCK_E_LOCKED);
  restore(site[1], "bus", old);
  EXPECT_TRUE(site.loop.run_until([&] { return held.has(REDLOCK_EV_LOST); }));
  EXPECT_EQ(a.acquire("bus", site.longest()).first(REDLOCK_EV_FAILED).err, REDLOCK_E_LOCKED);
  EXPECT_EQ(site[0].command({"GET", "bus"}), old_value) << "it is nobody's, and nobody deletes it";
}

// ---- the guard's record ---------------------------------------------------------------------------------------------

// A record names its server: it admits nobody elsewhere, and a master without one is a new one. A holder is told LOST,
// because nobody can renew there.
TEST_F(MovedKeys, ARecordThatIsMigratedAdmitsNobody) {
  UpClient a(site.loop, site.settings());
  UpClient b(site.loop, site.settings(false));
  const Lock& held = a.acquire("bus", site.longest());
  const int64_t until_ns = redlock_deadline_ns(a.get(), held.handle);
  ASSERT_EQ(migrate(site[0], site[1], record, true), "OK");
  for (const unsigned m : {0u, 1u}) wait_guarded(site.loop, b, m, REDLOCK_E_UNWATCHED);
  EXPECT_TRUE(site.loop.run_until([&] { return held.has(REDLOCK_EV_LOST); }));
  expect_held_off(b, until_ns);
  b.wait_up(3);
}

// Two masters have started again without their keys, and somebody puts their records back.
TEST_F(MovedKeys, ARecordThatIsRestoredBehindARestartAdmitsNobody) {
  UpClient a(site.loop, site.settings());
  const std::string old[] = {dump(site[0], record), dump(site[1], record)};
  const Lock& held = a.acquire("bus", site.longest());
  const int64_t until_ns = redlock_deadline_ns(a.get(), held.handle);
  for (const unsigned m : {0u, 1u}) {
    site[m].kill_hard();
    site[m].restart();
    restore(site[m], record, old[m]);
  }
  Client b(site.loop, site.settings(false));
  for (const unsigned m : {0u, 1u}) wait_guarded(site.loop, b, m, REDLOCK_E_UNWATCHED);
  expect_held_off(b, until_ns);
}

// Not promised: without a restart the record that comes back says that nothing was forgotten, and clients that know no
// better believe it. Only who was connected hears of it.
TEST_F(MovedKeysOfLongLocks, ARecordThatIsRestoredBehindAFlushMakesTwoHolders) {
  Loop still;
  UpClient c(still, site.settings(false));
  const Lock& first = c.acquire("bus", site.longest());
  for (const unsigned m : {0u, 1u, 2u}) {
    const std::string old = dump(site[m], record);
    site[m].command({"FLUSHALL"});
    restore(site[m], record, old);
  }
  UpClient d(site.loop, site.settings(false));
  const Lock& second = d.acquire("bus", site.longest());
  EXPECT_EQ(c.check(first), 0);
  EXPECT_EQ(d.check(second), 0);
  EXPECT_TRUE(still.run_until([&] { return first.has(REDLOCK_EV_LOST); })) << "when its loop runs";
}

// ---- scripts and functions ------------------------------------------------------------------------------------------

// Functions and scripts that are flushed between any two steps of a lock change nothing, and functions are left alone.
TEST_F(MovedKeysOfLongLocks, FunctionsAndScriptsMayComeAndGo) {
  const bool functions = !kind_of(site[0]).is_before_seven();
  const std::string library = "#!lua name=others\nredis.register_function('theirs', function() return 'ours' end)";
  const auto flush = [&] {
    for (unsigned m = 0; m < 3; ++m) {
      site[m].command({"SCRIPT", "FLUSH"});
      if (!functions) continue;
      EXPECT_EQ(site[m].command({"FUNCTION", "FLUSH"}), "OK");
      EXPECT_EQ(site[m].command({"FUNCTION", "LOAD", library}), "others");
    }
  };
  uint64_t token = 0;
  for (int i = 0; i < 3; ++i) {
    flush();
    Lock& lock = a.hold(std::vector<std::string>{"bus", "valve"}, site.longest(5'000, REDLOCK_F_FENCING));
    EXPECT_GT(lock.first(REDLOCK_EV_ACQUIRED).token, token);
    token = lock.first(REDLOCK_EV_ACQUIRED).token;
    flush();
    EXPECT_EQ(redlock_extend_async(a.get(), lock.handle, 0), 0);
    EXPECT_TRUE(site.loop.run_until([&] { return lock.has(REDLOCK_EV_RENEWED); }));
    flush();
    a.release(lock);
    for (unsigned m = 0; m < 3; ++m) EXPECT_TRUE(site.loop.run_until([&] { return !site[m].exists("bus"); }));
  }
  EXPECT_TRUE(!functions || site[0].command({"FCALL", "theirs", "0"}) == "ours");
}

// ---- a replica over two channels ------------------------------------------------------------------------------------

// The other server has a copy of the master's record, and the master becomes its replica for a while: for no time, in
// the midst of the transfer, and to its end. Nobody is let in afterwards beside the holder.
TEST(DualChannel, NobodyIsLetInBehindAnyPartOfATransfer) {
  RedisServer::Options options;
  options.args = {"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0", "--rdb-key-save-delay", "100"};
  {
    RedisServer any;
    if (const ServerKind kind = kind_of(any); !kind.valkey || kind.version < 80'000) GTEST_SKIP() << "no Valkey 8";
  }
  options.args.insert(options.args.end(), {"--dual-channel-replication-enabled", "yes"});
  Site site(1, 20'000, options);
  RedisServer other(options);
  other.command({"EVAL", "for i=1,3000 do redis.call('SET',i,i) end", "0"});
  Loop still;
  unsigned by_two_channels = 0;
  for (const int ms : {0, 20, 50, 100, 200, 300, 500, 800, -1}) {
    SCOPED_TRACE(ms);
    UpClient holder(still, site.settings());
    const Lock& held = holder.hold("bus", site.longest());
    restore(other, record, dump(site[0], record));
    site[0].command({"REPLICAOF", "127.0.0.1", std::to_string(other.port())});
    const int64_t until_ns = boot_ns() + int64_t{ms} * 1'000'000;
    bool two = false;
    EXPECT_TRUE(eventually([&] {
      two = two || other.command({"INFO", "replication"}).find("type=rdb-channel") != std::string::npos;
      return ms < 0 ? site[0].command({"INFO", "replication"}).find("link_status:up") != std::string::npos
                    : boot_ns() >= until_ns;
    }));
    by_two_channels += two ? 1 : 0;
    site[0].command({"REPLICAOF", "NO", "ONE"});
    Client late(site.loop, site.settings(false));
    EXPECT_EQ(late.acquire("bus", site.longest()).first(REDLOCK_EV_FAILED).err, REDLOCK_E_GUARD);
    EXPECT_EQ(holder.check(held), 0);
    EXPECT_TRUE(still.run_until([&] { return held.has(REDLOCK_EV_LOST); }));
    site[0].command({"FLUSHALL"});
  }
  EXPECT_GE(by_two_channels, 2u) << "no transfer was seen: it tries nothing";
}

}  // namespace
}  // namespace redlock::test
