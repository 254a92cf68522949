// SPDX-License-Identifier: MIT
//
// The guard against real replicas. A master's data are replaced by a copy that contains the guard's own record: its
// replica was promoted meanwhile, it takes over the replica's data, and is promoted again. The record fits, the process
// is the same, and keys are missing. Idle clients, connections with tracking and without, full and partial
// resynchronization, seals that are under way; and what a backup, which reads like a replica, costs. Then what an
// operator says of masters that restarted.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "guard_site.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"

namespace redlock::test {
namespace {

// Long enough for a role cycle within the life of one lock.
constexpr uint32_t long_ttl_ms = 20'000;

RedisServer::Options quick_to_synchronize() {
  RedisServer::Options options;
  options.args = {"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"};
  return options;
}

std::string info(RedisServer& server, const std::string& section, const std::string& field) {
  const std::string text = "\n" + server.command({"INFO", section});
  const size_t at = text.find("\n" + field + ":");
  if (at == std::string::npos) return "";
  const size_t value = at + field.size() + 2;
  return text.substr(value, text.find('\r', value) - value);
}
uint64_t stat(RedisServer& server, const std::string& field) { return std::stoull(info(server, "stats", field)); }
std::string replid(RedisServer& server) { return info(server, "replication", "master_replid"); }

// Becomes a replica of the other and waits until it has its data.
void follow(RedisServer& server, RedisServer& master) {
  server.command({"REPLICAOF", "127.0.0.1", std::to_string(master.port())});
  EXPECT_TRUE(eventually([&] { return info(server, "replication", "master_link_status") == "up"; }));
}
void lead(RedisServer& server) { server.command({"REPLICAOF", "NO", "ONE"}); }

// Waits until the replica has everything that its master has.
void caught_up(RedisServer& replica, RedisServer& master) {
  EXPECT_TRUE(eventually([&] {
    return info(replica, "replication", "slave_repl_offset") == info(master, "replication", "master_repl_offset");
  }));
}

// How C2's connections are, and what its loop does while the roles change.
struct Way {
  const char* name;
  unsigned masters;
  bool tracking;
  bool runs;  // the loop reads what it is told meanwhile
};

class RoleCycle : public ::testing::TestWithParam<Way> {
 protected:
  RoleCycle() : site(GetParam().masters, long_ttl_ms, quick_to_synchronize()), replica(quick_to_synchronize()) {
    for (unsigned m = 0; m < site.masters.size(); ++m) deny(site[m], tracking() ? Words{} : Words{"-client|tracking"});
    follow(replica, site[0]);
  }
  using Words = std::vector<std::string>;

  bool tracking() const { return GetParam().tracking; }
  // Who cannot reach the master numbered `cut_off` has another address for it, where nobody listens.
  Settings settings(const std::string& name, unsigned cut_off) {
    Settings s = site.settings(false);
    s.name = name;
    log_in(s);
    for (unsigned m = 0; m < site.masters.size(); ++m) s.names.push_back("master-" + std::to_string(m));
    if (cut_off < s.urls.size()) s.urls[cut_off] = "redis://127.0.0.1:" + std::to_string(free_port());
    return s;
  }
  void seal_all() {
    Settings s = settings("operator", 99);
    s.commission = true;
    UpClient client(site.loop, s);
    caught_up(replica, site[0]);
    ASSERT_NE(replica.command({"HGET", "redlock::meta", "seal"}), "(nil)") << "the copy contains the record";
  }
  uint32_t reachable() const { return GetParam().masters == 1 ? 1 : 2; }
  void idle() {
    if (GetParam().runs) site.loop.run_for(50);
  }
  // The first master takes over the copy that was promoted, and is promoted itself.
  void cycle() {
    const uint64_t full = stat(replica, "sync_full");
    follow(site[0], replica);
    EXPECT_EQ(stat(replica, "sync_full"), full + 1);
    idle();
    lead(site[0]);
    idle();
  }

  Site site;
  RedisServer replica;
  Loop other_loop;  // of a client that stands still: nobody runs it meanwhile
};

TEST_P(RoleCycle, NobodyIsLetInBesideAHolder) {
  seal_all();
  Client idle_client(site.loop, settings("idle", 1));
  idle_client.wait_up(reachable());
  Client holder(other_loop, settings("holder", 2));
  holder.wait_up(reachable());
  lead(replica);
  idle();
  Lock& held = holder.hold("bus", site.longest());
  EXPECT_FALSE(replica.exists("bus"));
  idle();
  cycle();
  EXPECT_FALSE(site[0].exists("bus")) << "the key is gone";
  EXPECT_EQ(site.record(0, "seal"), replica.command({"HGET", "redlock::meta", "seal"}))
      << "and the record has come back";
  Lock& second = idle_client.acquire("bus", site.longest());
  EXPECT_EQ(holder.check(held), 0) << "it has its lock by right";
  EXPECT_FALSE(second.has(REDLOCK_EV_ACQUIRED)) << "two holders";
}

INSTANTIATE_TEST_SUITE_P(Ways, RoleCycle,
                         ::testing::Values(Way{"OneMaster", 1, true, true}, Way{"OneMasterUnread", 1, true, false},
                                           Way{"OneMasterUntracked", 1, false, true},
                                           Way{"ThreeMasters", 3, true, true},
                                           Way{"ThreeMastersUnread", 3, true, false},
                                           Way{"ThreeMastersUntracked", 3, false, true},
                                           Way{"ThreeMastersUntrackedUnread", 3, false, false}),
                         [](const auto& way) { return std::string(way.param.name); });

// The copy is a standby that was restored from the master's snapshot. The master itself never had a replica, so it is
// asked by plain SETs: what tells of the cycle is the push that comes before their answers.
TEST(RestoredStandby, NobodyIsLetInBesideAHolder) {
  Site site(1, long_ttl_ms, quick_to_synchronize());
  RedisServer standby(quick_to_synchronize());
  { UpClient client(site.loop, site.settings()); }
  UpClient idle_client(site.loop, site.settings(false));
  EXPECT_EQ(site[0].command({"SAVE"}), "OK");
  std::filesystem::copy_file(site[0].dir() + "/dump.rdb", standby.dir() + "/dump.rdb");
  standby.restart();
  ASSERT_EQ(standby.command({"HGET", "redlock::meta", "seal"}), site.record(0, "seal"));
  Loop other_loop;
  UpClient holder(other_loop, site.settings(false));
  Lock& held = holder.hold("bus", site.longest());
  follow(site[0], standby);
  site.loop.run_for(50);
  lead(site[0]);
  site.loop.run_for(50);
  EXPECT_FALSE(site[0].exists("bus"));
  Lock& second = idle_client.acquire("bus", site.longest());
  EXPECT_EQ(holder.check(held), 0);
  EXPECT_FALSE(second.has(REDLOCK_EV_ACQUIRED)) << "two holders";
}

// A partial resynchronization brings single changes, and no push tells that there was one.
TEST(PartialResync, NobodyIsLetInBesideAHolder) {
  Site site(1, long_ttl_ms, quick_to_synchronize());
  RedisServer replica(quick_to_synchronize());
  follow(replica, site[0]);
  { UpClient client(site.loop, site.settings()); }
  UpClient idle_client(site.loop, site.settings(false));
  Loop other_loop;
  UpClient holder(other_loop, site.settings(false));
  Lock& held = holder.hold("bus", site.longest());
  caught_up(replica, site[0]);
  lead(replica);
  replica.command({"DEL", "bus"});  // it expired there, or was evicted
  const uint64_t full = stat(replica, "sync_full"), partial = stat(replica, "sync_partial_ok");
  follow(site[0], replica);
  caught_up(site[0], replica);
  EXPECT_EQ(stat(replica, "sync_partial_ok"), partial + 1);
  EXPECT_EQ(stat(replica, "sync_full"), full);
  lead(site[0]);
  EXPECT_FALSE(site[0].exists("bus"));
  site.loop.run_for(50);
  Lock& second = idle_client.acquire("bus", site.longest());
  EXPECT_EQ(holder.check(held), 0);
  EXPECT_FALSE(second.has(REDLOCK_EV_ACQUIRED)) << "two holders";
}

// ---- a seal under way ---------------------------------------------------------------------------------------------

// The watch of a state is over, and the seal is on its way when the master takes over a copy of that very state, in
// which the seal of another client, and the lock that was taken since, are missing.
TEST(SealUnderWay, IsNotWrittenToAnotherServer) {
  Site site(1, 3'000, quick_to_synchronize());
  RedisServer replica(quick_to_synchronize());
  follow(replica, site[0]);
  Proxy proxy(site[0].port());
  Settings watching = site.settings(false), direct = site.settings();
  watching.urls = {proxy.url()};
  watching.names = direct.names = {"master-0"};
  Client watcher(site.loop, watching);
  EXPECT_TRUE(site.loop.run_until([&] { return watcher.status().guard_ms > 0; }));
  const std::string q = site.record(0, "q");
  const std::string seal =
      info(site[0], "server", "run_id").substr(0, 16) + ":" + replid(site[0]).substr(0, 16) + ":" + q;
  caught_up(replica, site[0]);
  lead(replica);
  proxy.hold_from(seal);
  EXPECT_TRUE(site.loop.run_until([&] { return proxy.held().find(seal) != std::string::npos; }))
      << "the seal is under way";

  Loop other_loop;
  UpClient holder(other_loop, direct);
  EXPECT_EQ(site.record(0, "seal"), seal);
  Lock& held = holder.hold("bus", site.longest());

  follow(site[0], replica);
  lead(site[0]);
  EXPECT_FALSE(site[0].exists("bus"));
  EXPECT_EQ(site.record(0, "q"), q);
  EXPECT_EQ(site.record(0, "seal"), "(nil)") << "the copy is older";
  proxy.pass();
  Lock& second = watcher.start("bus", site.longest(REDLOCK_WAIT_FOREVER));
  bool overlap = false;
  EXPECT_TRUE(site.loop.run_until([&] {
    overlap = overlap || (holder.check(held) == 0 && second.has(REDLOCK_EV_ACQUIRED));
    return overlap || holder.check(held) != 0;
  }));
  EXPECT_FALSE(overlap) << "two holders";
  EXPECT_TRUE(site.loop.run_until([&] { return second.decided(); }));
}

// ---- what a replica costs -------------------------------------------------------------------------------------------

// A backup is a replica that goes away again: the replication id changes without a loss, and nobody can tell that from
// a loss.
TEST(Backup, IsAReplicaToo) {
  Site site{1, 1'000, quick_to_synchronize()};
  const auto back_up = [&] {
    const std::string command = "redis-cli -p " + std::to_string(site[0].port()) + " --rdb " + site[0].dir() +
                                "/backup.rdb >/dev/null 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0) << "redis-cli is of the package redis-tools";
  };
  UpClient client(site.loop, site.settings());
  back_up();
  wait_guarded(site.loop, client, 0, REDLOCK_E_REPLID);
  EXPECT_TRUE(site.loop.run_until([&] { return client.log_mentions(redlock_strerror(REDLOCK_E_REPLID)); }));
  EXPECT_EQ(client.acquire("bus", site.longest()).first(REDLOCK_EV_FAILED).err, REDLOCK_E_GUARD);
  client.wait_up(1);
  EXPECT_TRUE(client.acquire("tap", site.longest()).has(REDLOCK_EV_ACQUIRED));
  const std::string after = replid(site[0]);
  const size_t told = client.master_events().size();
  back_up();
  EXPECT_EQ(replid(site[0]), after) << "the backlog of the first one is still there";
  site.loop.run_for(1'000);
  EXPECT_EQ(client.master_events().size(), told);
  EXPECT_TRUE(client.acquire("door", site.longest()).has(REDLOCK_EV_ACQUIRED));
}

// Nothing may be held anywhere, the operator has said. That is no word about a master which is reached only later.
TEST(Commission, IsNoWordAboutAMasterThatIsReachedLater) {
  Site site(3, 20'000);
  site[2].kill_hard();
  Settings s = site.settings();
  s.numbers.push_back({"timing.connect_timeout_ms", 250});
  Client client(site.loop, s);
  client.wait_up(2);
  site.loop.run_for(550);
  site[2].restart();
  wait_guarded(site.loop, client, 2, REDLOCK_E_UNWATCHED);
  EXPECT_GT(client.master(2).guard_ms, 15'000);
  EXPECT_EQ(redlock_commission_master(client.get(), 3), REDLOCK_E_INVAL);
  EXPECT_EQ(redlock_commission_master(client.get(), 2), 0);
  client.wait_up(3);
}

// One gateway holds a lock and stands still when the masters lose their power. Another one is started with the same
// statement, which is false now, and both have the lock. So one person says it, once. Without it the guard helps.
TEST(Commission, OfTwoGatewaysMakesTwoHolders) {
  Site site(3, 20'000);
  UpClient a(site.loop, site.settings());
  Lock& first = a.acquire("bus", site.longest());
  for (const auto& master : site.masters) master->kill_hard();
  for (const auto& master : site.masters) master->restart();
  Loop other;
  Client careful(other, site.settings(false));
  wait_guarded(other, careful, 0, REDLOCK_E_UNWATCHED);
  UpClient b(other, site.settings());
  Lock& second = b.acquire("bus", site.longest());
  EXPECT_EQ(redlock_check(a.get(), first.handle, 0), 0);
  EXPECT_EQ(redlock_check(b.get(), second.handle, 0), 0);
}

}  // namespace
}  // namespace redlock::test
