// SPDX-License-Identifier: MIT
//
// What a blocking acquire writes into the caller's report, on real masters.
#include "thread_harness.hpp"

#include <string.h>

#include "support/redis_server.hpp"

namespace redlock::test {
namespace {

struct Try {
  redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
  redlock_report_t report = REDLOCK_REPORT_INIT;
  redlock_lock_t lock{0};

  explicit Try(int32_t wait_ms = REDLOCK_TRY_ONCE) {
    opts.wait_ms = wait_ms;
    opts.ttl_ms = 20'000;
    opts.report = &report;
  }
  int acquire(ThreadClient& client, const std::string& name) { return client.acquire(name, lock, opts); }
  std::string text() const { return report.text; }
};

std::string text_of(int err) { return redlock_strerror(err); }

TEST(Report, OfALockThatIsAcquired) {
  Cluster masters(3);
  ThreadClient client(masters.urls());
  Try one;
  memset(one.report.holder, '#', sizeof one.report.holder);
  ASSERT_EQ(one.acquire(client, "bus"), 0);
  EXPECT_EQ(one.report.size, sizeof(redlock_report_t));
  EXPECT_EQ(one.report.err, 0);
  EXPECT_GE(one.report.granted, 2u);
  EXPECT_EQ(one.report.rounds, 1u);
  EXPECT_STREQ(one.report.holder, "");
  EXPECT_EQ(one.text().rfind("acquired, 1", 0), 0u) << one.text();
}

TEST(Report, NamesTheHolder) {
  Cluster masters(3);
  ThreadClient holder(Settings{masters.urls(), "gw-03", {}, {}});
  ThreadClient client(masters.urls());
  ASSERT_TRUE(eventually([&] { return holder.status().masters_up + client.status().masters_up == 6; }));
  Try held, refused, waited(300);
  ASSERT_EQ(held.acquire(holder, "bus"), 0);
  ASSERT_TRUE(eventually([&] { return masters.holders("bus") == 3; }));
  EXPECT_EQ(refused.acquire(client, "bus"), REDLOCK_E_LOCKED);
  EXPECT_EQ(refused.report.err, REDLOCK_E_LOCKED);
  EXPECT_GE(refused.report.refused, 1u);
  EXPECT_STREQ(refused.report.holder, "gw-03");
  const std::string held_by = "not acquired: held by gw-03";  // the last answer may be later than the holder's name
  EXPECT_TRUE(refused.text() == held_by + " on 3 of 3 masters" || refused.text() == held_by) << refused.text();
  EXPECT_EQ(waited.acquire(client, "bus"), REDLOCK_E_LOCKED);
  EXPECT_STREQ(waited.report.holder, "gw-03");
  EXPECT_NE(waited.text().find(" s unless renewed"), std::string::npos) << waited.text();
}

TEST(Report, ShowsNothingOfAForeignValue) {
  RedisServer master;
  ThreadClient client({master.url()});
  master.command({"SET", "bus", "secret"});
  Try one;
  EXPECT_EQ(one.acquire(client, "bus"), REDLOCK_E_LOCKED);
  EXPECT_EQ(one.text(), "not acquired: held by a foreign value on 1 of 1 master");
  master.command({"DEL", "bus"});
  master.command({"HSET", "bus", "secret", "1"});
  Try hash;
  EXPECT_EQ(hash.acquire(client, "bus"), REDLOCK_E_LOCKED);
  EXPECT_EQ(hash.text(), "not acquired: held by a foreign value on 1 of 1 master");
}

TEST(Report, NamesTheMasterThatRefusedTheConnection) {
  RedisServer up, down;
  const std::string url = down.url();
  down.kill_hard();
  ThreadClient client({up.url(), url});
  Try one;
  EXPECT_EQ(one.acquire(client, "bus"), REDLOCK_E_NO_QUORUM);
  EXPECT_LT(one.report.master_err, 0);
  EXPECT_GE(one.report.failed, 1u);
  const std::string address = url.substr(url.find("//") + 2);
  EXPECT_EQ(one.text(), "not acquired: 1 of 2 masters votes, 2 are needed; " + address + ": " +
                            text_of(one.report.master_err));
}

TEST(Report, OfACallThatIsRefusedAtOnce) {
  RedisServer master;
  ThreadClient client({master.url()});
  Try one;
  one.report.cause = one.report.master_err = 7;
  EXPECT_EQ(one.acquire(client, "redlock::meta"), REDLOCK_E_RESERVED);
  EXPECT_EQ(one.report.err, REDLOCK_E_RESERVED);
  EXPECT_EQ(one.report.cause + one.report.master_err, 0);
  EXPECT_EQ(one.text(), "a name " + text_of(REDLOCK_E_RESERVED));
  EXPECT_EQ(redlock_acquire(nullptr, nullptr, 1, &one.opts, &one.lock), REDLOCK_E_INVAL);
  EXPECT_EQ(one.report.err, REDLOCK_E_INVAL);
  Try small;
  small.report.size = sizeof small.report.size;
  memset(small.report.text, '#', sizeof small.report.text);
  EXPECT_EQ(small.acquire(client, "bus"), REDLOCK_E_INVAL);
  EXPECT_EQ(small.report.text[0], '#') << "there is no room for a text";
  EXPECT_EQ(client.status().locks_pending + client.status().locks_held, 0u);
}

// The callback keeps the client's thread. The caller gives up, and from then on nobody writes into its report.
TEST(Report, OfAThreadThatGivesUp) {
  RedisServer master;
  ThreadClient client(
      Settings{{master.url()}, "test", {{"timing.node_timeout_ms", 1'000}, {"timing.connect_timeout_ms", 500}}, {}});
  Flag inside, leave;
  client.also = [&](redlock_t*, const redlock_event_t& event) {
    if (event.type != REDLOCK_EV_ACQUIRED) return;
    inside.set();
    leave.wait();
  };
  redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
  opts.wait_ms = REDLOCK_TRY_ONCE;
  redlock_lock_t other{0};
  ASSERT_EQ(client.acquire_async("pump", other, opts), 0);
  ASSERT_TRUE(inside.wait());
  Try one;
  EXPECT_EQ(one.acquire(client, "bus"), REDLOCK_E_TIMEOUT);
  EXPECT_EQ(one.report.err, REDLOCK_E_TIMEOUT);
  EXPECT_EQ(one.text(), text_of(REDLOCK_E_TIMEOUT));
  memset(static_cast<void*>(&one.report), '#', sizeof one.report);
  leave.set();
  EXPECT_TRUE(client.wait_for(REDLOCK_EV_FAILED)) << "released when the thread gave up";
  EXPECT_EQ(client.release(other), 0);
  const std::string untouched(sizeof one.report, '#');
  EXPECT_EQ(memcmp(&one.report, untouched.data(), sizeof one.report), 0);
}

}  // namespace
}  // namespace redlock::test
