// SPDX-License-Identifier: MIT
//
// redlock status: who has a resource, on real servers whose keys and fates the test makes.
#include <gtest/gtest.h>

#include "tool_masters.hpp"

namespace redlock::test {
namespace {

TEST(ToolStatus, HeldFreeUnclearAndForeign) {
  ToolMasters site(3);
  const std::string config = site.file({0, 1, 2});
  commission(site, config);
  for (unsigned i : {0u, 1u}) site.set(i, "bus", value_of("gw-03"), 50'000 + 4'000 * static_cast<int>(i));
  site.set(0, "valve", value_of("gw-03"));
  site.set(1, "valve", value_of("gw-17", '2'));
  for (unsigned i : {0u, 1u, 2u}) site.set(i, "old", "hello\r\n\x1b[2J");
  site.set(0, "left", value_of("gw-03"));
  site[2].command({"LPUSH", "list", "x"});
  for (unsigned i : {0u, 1u}) site.set(i, "evil", value_of("\x1b[2Jgw\n"));
  for (unsigned i : {0u, 1u}) site.set(i, "gate", value_of("gw-1"));

  Ended one = site.run({"status", "bus"}, config);
  EXPECT_EQ(one.status, 75);
  EXPECT_TRUE(has(one.out, "bus: held by gw-03 on 2/3, ends in ")) << one.out;
  EXPECT_TRUE(has(one.out, "ends in 49.") || has(one.out, "ends in 50.0")) << one.out;
  EXPECT_TRUE(has(one.out, " - 53.") || has(one.out, " - 54.0")) << one.out;
  EXPECT_TRUE(has(one.out, "snapshot")) << one.out;
  EXPECT_FALSE(has(one.out, "own name")) << one.out;
  EXPECT_EQ(one.err, "") << "the output tells it";

  const Ended none = site.run({"status", "nothing", "left"}, config);
  EXPECT_EQ(none.status, 0);
  EXPECT_TRUE(has(none.out, "\nnothing: free\n")) << none.out;
  EXPECT_TRUE(has(none.out, "\nleft: free: gw-03 on 1/3\n")) << none.out;
  EXPECT_EQ(none.err, "");

  const Ended all = site.run({"status", "valve", "old", "list", "evil", "gate"}, config);
  EXPECT_EQ(all.status, 75);
  EXPECT_TRUE(has(all.out, "\nvalve: UNCLEAR: gw-03 on 1/3, gw-17 on 1/3\n")) << all.out;
  EXPECT_TRUE(has(all.out, "\nold: held by a foreign value on 3/3, ends in ")) << all.out;
  EXPECT_TRUE(has(all.out, "\nlist: free: a foreign value on 1/3\n")) << all.out;
  EXPECT_TRUE(has(all.out, "\nevil: held by \\x1b[2Jgw\\x0a on 2/3")) << all.out;
  EXPECT_TRUE(has(all.out, "\ngate: held by gw-1 on 2/3, ends in ")) << all.out;
  EXPECT_TRUE(has(all.out, "\n(gw-1 is this gateway's own name: ")) << all.out;
  EXPECT_FALSE(has(all.out + all.err, "\x1b"));
}

TEST(ToolStatus, KeysWithoutAnEndAndMastersThatWouldDecide) {
  ToolMasters site(3);
  const std::string config = site.file({0, 1, 2});
  for (unsigned i : {0u, 1u, 2u}) site[i].command({"SET", "forever", value_of("gw-3")});
  site.set(0, "bus", value_of("gw-3"));
  site.set(0, "valve", value_of("gw-3"), 10'000);
  site[1].command({"SET", "valve", value_of("gw-3")});
  site[2].kill_hard();
  const Ended ended = site.run({"status", "forever", "bus", "valve"}, config);
  EXPECT_EQ(ended.status, 75);
  EXPECT_TRUE(has(ended.out, "\nforever: held by gw-3 on 2/3, without an end\n")) << ended.out;
  EXPECT_TRUE(has(ended.out, "\nbus: UNCLEAR: gw-3 on 1/3, 1/3 did not answer\n")) << ended.out;
  EXPECT_TRUE(has(ended.out, "\nvalve: held by gw-3 on 2/3, ends in ")) << ended.out;
  EXPECT_EQ(ended.err, "");

  const Ended json = site.run({"status", "--json", "forever", "bus"}, config);
  EXPECT_TRUE(has(json.out, R"("masters_up":0,"quorum":2,"masters":[{"name":"m0",)")) << json.out;
  EXPECT_TRUE(has(json.out, R"("up":false,"err":"REDLOCK_E_REFUSED","text":"the connection was)")) << json.out;
  EXPECT_TRUE(has(json.out, R"("on":2,"answered":2,"ends_min_ms":-1,"ends_max_ms":-1,)")) << json.out;
  EXPECT_TRUE(has(json.out, R"("resource":"bus","state":"unclear","holder":null,"on":1,"answered":2,"keys")"))
      << json.out;
  EXPECT_TRUE(has(json.out, R"({"master":"m1","err":null,"holder":null})")) << json.out;
  EXPECT_TRUE(has(json.out, R"({"master":"m2","err":"REDLOCK_E_REFUSED","holder":null})")) << json.out;

  const Ended metrics = site.run({"status", "--prometheus", "bus"}, config);
  EXPECT_EQ(metrics.status, 0);
  EXPECT_TRUE(has(metrics.out, "\nredlock_master_answers{master=\"m2\"} 0\n")) << metrics.out;
  EXPECT_TRUE(has(metrics.out, "\nredlock_master_answers{master=\"m0\"} 1\n")) << metrics.out;
  EXPECT_TRUE(has(metrics.out, "\nredlock_master_up{master=\"m0\"} 0\n")) << "it may not vote: " << metrics.out;
  EXPECT_TRUE(has(metrics.out, "\nredlock_masters_up 0\n")) << metrics.out;
  EXPECT_TRUE(has(metrics.out, "\nredlock_quorum 2\n")) << metrics.out;
  EXPECT_TRUE(has(metrics.out, "\nredlock_resource_held{resource=\"bus\"} -1\n")) << metrics.out;
}

// Whoever reads "free" would try, and could not have it.
TEST(ToolStatus, NothingIsFreeWhereTooFewMastersVote) {
  ToolMasters site(3);
  const std::string config = site.file({0, 1, 2});
  const Ended watched = site.run({"status", "bus"}, config);
  EXPECT_EQ(watched.status, 69);
  EXPECT_TRUE(has(watched.out, "\nbus: unknown: 0/3 masters vote\n")) << watched.out;
  EXPECT_TRUE(has(watched.out, "  new: the guard has not begun; 1.0 s from the first client on\n")) << watched.out;
  EXPECT_EQ(watched.err, "redlock: bus is not known: too few masters vote; redlock doctor says why\n");
  EXPECT_EQ(site.run({"status"}, config).status, 69);
  commission(site, config);
  EXPECT_EQ(site.run({"status", "bus"}, config).status, 0);
  EXPECT_EQ(site.run({"status"}, config).status, 0);
  for (unsigned i : {0u, 1u}) site[i].command({"ACL", "SETUSER", "default", "-hmget"});
  EXPECT_EQ(site.run({"status"}, config).status, 77);
}

// Other users may lock there, so the masters vote and the name is free.
TEST(ToolStatus, ItSaysWhereThisUserCannotLock) {
  ToolMasters site(3);
  const std::string config = site.file({0, 1, 2});
  site[2].command({"ACL", "SETUSER", "default", "-eval"});
  const Ended fresh = site.run({"status"}, config);
  EXPECT_TRUE(has(fresh.out, "  new: the guard has not begun; this user cannot lock there: it lacks +eval\n"));
  site[2].command({"ACL", "SETUSER", "default", "+eval"});
  commission(site, config);
  EXPECT_TRUE(has(site.run({"status", "bus"}, config).out, "3 of 3 masters vote, 2 are needed\n"));
  for (unsigned i : {0u, 1u}) site[i].command({"ACL", "SETUSER", "default", "-eval", "-set"});
  const Ended denied = site.run({"status", "bus"}, config);
  EXPECT_EQ(denied.out.find("3 of 3 masters vote, 2 are needed; this user can lock on 1: redlock doctor "), 0u)
      << denied.out;
  EXPECT_TRUE(has(denied.out, "  votes; this user cannot lock there: it lacks +set +eval\n")) << denied.out;
  EXPECT_TRUE(has(denied.out, "\nbus: free\n")) << denied.out;
}

TEST(ToolStatus, DeniedIsNeverFree) {
  ToolMasters site(3);
  const std::string config = site.file({0, 1, 2});
  for (unsigned i : {0u, 1u, 2u}) site.set(i, "bus", value_of("gw-3"));
  site[0].command({"ACL", "SETUSER", "default", "-get", "-info"});
  const Ended one = site.run({"status", "bus"}, config);
  EXPECT_EQ(one.status, 75);
  EXPECT_TRUE(has(one.out, "  does not tell INFO: ")) << one.out;
  EXPECT_TRUE(has(one.out, "\nbus: held by gw-3 on 2/3, ends in ")) << one.out;
  site[1].command({"ACL", "SETUSER", "default", "-pttl"});
  const Ended two = site.run({"status", "bus", "free"}, config);
  EXPECT_EQ(two.status, 77);
  EXPECT_TRUE(has(two.out, "\nbus: unknown: gw-3 on 1/3, not allowed on 2/3: its ACL needs +pttl\n")) << two.out;
  EXPECT_TRUE(has(two.out, "\nfree: unknown: not allowed on 2/3: its ACL needs +pttl\n")) << two.out;
  EXPECT_TRUE(has(two.err, "redlock: free is not known: the user lacks a permission\n")) << two.err;
  site[2].command({"ACL", "SETUSER", "default", "resetkeys", "~redlock:*"});
  EXPECT_TRUE(has(site.run({"status", "k"}, config).out, "k: unknown: not allowed on 3/3: its ACL needs ~k\n"));
}

TEST(ToolStatus, ScanEscapesKeepsWhatWasAskedForAndTellsThatThereIsMore) {
  ToolMasters site(1);
  const std::string config = site.file({0});
  commission(site, config);
  site.set(0, "a\x1b\"b", value_of("gw-3"));
  const Ended few = site.run({"status", "--scan", "nothing"}, config);
  EXPECT_EQ(few.status, 0);
  EXPECT_TRUE(has(few.out, "\nnothing: free\na\\x1b\"b: held by gw-3 on 1/1")) << few.out;
  site[0].command({"EVAL", "for i=1,300 do redis.call('SET',KEYS[1]..i,ARGV[1]) end", "1", "k", value_of("gw-3")});
  const Ended all = site.run({"status", "--scan"}, config);
  EXPECT_EQ(all.status, 0);
  EXPECT_EQ(all.err, "redlock: there are more than 256 keys; the others are left out\n");
  size_t lines = 0;
  for (size_t at = 0; (at = all.out.find(": held by gw-3 on 1/1", at)) != std::string::npos; ++at) ++lines;
  EXPECT_EQ(lines, 256u);
}

TEST(ToolStatus, MastersThatDoNotAnswer) {
  ToolMasters site(3);
  const std::string config = site.file({0, 1, 2});
  site.set(0, "bus", value_of("gw-03"));
  site.set(1, "bus", value_of("gw-03"));
  site[2].kill_hard();
  EXPECT_EQ(site.run({"commission", "--yes", "--nobody-holds", "--master", "m0", "--master", "m1"}, config).status, 0);
  const Ended two = site.run({"status"}, config);
  EXPECT_EQ(two.status, 0) << two.err;
  EXPECT_TRUE(has(two.out, "2 of 3 masters vote, 2 are needed\n")) << two.out;
  const std::string port = std::to_string(site[0].port());
  EXPECT_TRUE(has(two.out, "\nMASTER  ADDRESS" + std::string(5 + port.size(), ' ') + "SERVER ")) << two.out;
  EXPECT_TRUE(has(two.out, "\nm0      127.0.0.1:" + port + "  Redis ") || has(two.out, port + "  Valkey ") ||
              has(two.out, port + "  Redict "))
      << two.out;
  EXPECT_TRUE(has(two.out, "  master  votes\n")) << two.out;
  EXPECT_TRUE(has(two.out, "  -       the connection was refused")) << two.out;
  EXPECT_TRUE(has(site.run({"status", "bus"}, config).out, "held by gw-03 on 2/3"));

  site[1].freeze();
  const Ended one = site.run({"status", "bus"}, config);
  EXPECT_EQ(one.status, 69);
  EXPECT_TRUE(has(one.out, "bus: unknown: gw-03 on 1/3, 2/3 did not answer")) << one.out;
  EXPECT_TRUE(has(one.err, "redlock: 1 of 3 masters can be asked, and 2 are needed; m1: ")) << one.err;
  // A master that refuses has answered, and it is the one to blame.
  site[0].command({"CONFIG", "SET", "requirepass", "secret"});
  const Ended none = site.run({"status", "bus"}, config);
  EXPECT_EQ(none.status, 77);
  const std::string cause = "wants a password, and none is configured";
  EXPECT_TRUE(has(none.out, "\nbus: unknown: 1/3 cannot be asked (" + cause + "), 2/3 did not answer\n")) << none.out;
  EXPECT_EQ(none.err, "redlock: 0 of 3 masters can be asked, and 2 are needed; m0: " + cause + "\n");
}

TEST(ToolStatus, JsonPrometheusAndScan) {
  ToolMasters site(3);
  const std::string config = site.file({0, 1, 2}, R"(, "key_prefix": "p*/")");
  commission(site, config);
  for (unsigned i : {0u, 1u, 2u}) {
    site.set(i, "p*/bus", value_of("gw-3"));
    site.set(i, "pump/other", value_of("gw-2"));
    site.set(i, "p*/note", "no lock");
  }
  const Ended json = site.run({"status", "--json", "bus", "valve"}, config);
  EXPECT_EQ(json.status, 75);
  EXPECT_TRUE(has(json.out, R"("resource":"bus","state":"held","holder":"gw-3","on":3)")) << json.out;
  EXPECT_TRUE(has(json.out, R"("resource":"valve","state":"free","holder":null)")) << json.out;
  EXPECT_TRUE(has(json.out, R"("schema":"redlock.site-status/1")")) << json.out;
  EXPECT_EQ(json.out.find('\n'), json.out.size() - 1) << "one object, one line";
  std::ofstream(site.dir + "/status.json") << json.out;
  EXPECT_EQ(std::system(("python3 -m json.tool < " + site.dir + "/status.json > /dev/null").c_str()), 0);

  const Ended metrics = site.run({"status", "--prometheus", "bus", "valve"}, config);
  EXPECT_EQ(metrics.status, 0);
  EXPECT_TRUE(has(metrics.out, "\nredlock_resource_held{resource=\"valve\"} 0\n")) << metrics.out;

  const Ended scan = site.run({"status", "--scan"}, config);
  EXPECT_EQ(scan.status, 0);
  EXPECT_TRUE(has(scan.out, "\nbus: held by gw-3 on 3/3")) << scan.out;
  EXPECT_FALSE(has(scan.out, "note")) << scan.out;
  EXPECT_FALSE(has(scan.out, "other")) << scan.out;
  for (unsigned i : {0u, 1u, 2u}) site[i].command({"ACL", "SETUSER", "default", "-scan"});
  const Ended denied = site.run({"status", "--scan"}, config);
  EXPECT_EQ(denied.status, 77);
  EXPECT_TRUE(has(denied.err, "--scan needs the permission +scan")) << denied.err;
}

// What a free name has left on one master keeps nobody from going on; what a held one lacks on one master does.
TEST(ToolStatus, WaitsUntilAllMastersVoteAndEachHeldLockHasAllItsKeys) {
  ToolMasters site(3);
  const std::string config = site.file({0, 1, 2});
  const Ended watched = site.run({"status", "--wait", ".1"}, config);
  EXPECT_EQ(watched.status, 69);
  EXPECT_TRUE(has(watched.err, "redlock: missing after 0.1 s: m0: new: the guard has not begun; ")) << watched.err;
  EXPECT_TRUE(has(watched.out, "0 of 3 masters vote, 2 are needed\n")) << watched.out;
  commission(site, config);
  for (unsigned i : {0u, 1u}) site.set(i, "bus", value_of("gw-3"));
  site.set(0, "free", value_of("gw-3"));
  EXPECT_EQ(site.run({"status", "-w", "0", "free"}, config).status, 0);
  const Ended two = site.run({"status", "--wait", "0", "free", "bus"}, config);
  EXPECT_EQ(two.status, 69);
  EXPECT_TRUE(has(two.err, "redlock: missing after 0.0 s: bus: held by gw-3 on 2/3, ends in ")) << two.err;
  EXPECT_FALSE(has(two.err, "free")) << two.err;
  site.set(2, "bus", value_of("gw-3", '2'));
  EXPECT_EQ(site.run({"status", "--wait", "0", "bus"}, config).status, 69) << "another value of the same client";

  Program waits(site.words({"status", "--wait", "600", "--json", "bus", "free"}, config), site.dir);
  const auto looks = [&] { return site[0].command({"INFO", "commandstats"}); };
  site[0].command({"CONFIG", "RESETSTAT"});
  EXPECT_TRUE(eventually([&] { return has(looks(), "cmdstat_pttl"); }));
  site.set(2, "bus", value_of("gw-3"));
  EXPECT_EQ(waits.exit_status(), 0) << waits.err();
  EXPECT_TRUE(has(waits.out(), R"("resource":"bus","state":"held","holder":"gw-3","on":3)")) << waits.out();
  EXPECT_EQ(waits.err(), "");
  site[1].kill_hard();
  const Ended down = site.run({"status", "--wait", "0", "--prometheus"}, config);
  EXPECT_EQ(down.status, 69);
  EXPECT_TRUE(has(down.err, "s: m1: the connection was refused")) << down.err;
  EXPECT_TRUE(has(down.out, "\nredlock_masters_up 2\n")) << down.out;
}

// The guide's upgrade. The holder's next renewal writes the key to a master that has lost it.
TEST(ToolStatus, MastersThatRestartOneByOneBehindAWaitLoseNoLock) {
  ToolMasters site(3);
  const std::string config = site.file({0, 1, 2}, "", 2'400);
  commission(site, config);
  Program holder(site.words({"run", "-t", "2400", "bus", "--", "sh", "-c", "echo held; exec sleep 600"}, config),
                 site.dir);
  ASSERT_TRUE(eventually([&] { return has(holder.out(), "held"); })) << holder.err();
  for (unsigned round = 0; round < 4; ++round) {
    if (round != 0) site[round - 1].restart();  // a master that was late has no key yet
    const Ended waited = site.run({"status", "--wait", "20", "bus"}, config);
    ASSERT_EQ(waited.status, 0) << waited.err << holder.err();
    EXPECT_TRUE(has(waited.out, "\nbus: held by gw-1 on 3/3, ")) << waited.out << holder.err();
  }
}

}  // namespace
}  // namespace redlock::test
