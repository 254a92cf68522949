// SPDX-License-Identifier: MIT
//
// redlock_create(): calls that block and calls from any thread, on real masters.
#include "thread_harness.hpp"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <cstring>
#include <sstream>

#include "support/redis_server.hpp"

namespace redlock::test {
namespace {

struct OnOneThread : ::testing::Test {
  RedisServer master;
  ThreadClient client{{master.url()}};
};

class Blocking : public ::testing::TestWithParam<int> {};

TEST_P(Blocking, AcquireExtendRelease) {
  Cluster masters(static_cast<size_t>(GetParam()));
  ThreadClient client(masters.urls());
  redlock_lock_t lock{7};
  ASSERT_EQ(client.acquire("bus", lock, options(20'000)), 0);
  EXPECT_EQ(client.count(REDLOCK_EV_ACQUIRED, lock), 1u) << "told before the call returned";
  EXPECT_EQ(client.check(lock, 10'000), 0);
  EXPECT_GT(masters.holders("bus"), masters.size() / 2);

  EXPECT_EQ(client.extend(lock, 30'000), 0);
  EXPECT_EQ(client.count(REDLOCK_EV_RENEWED, lock), 1u);
  EXPECT_GT(redlock_validity_ms(client.get(), lock), 20'000);

  EXPECT_EQ(client.release(lock), 0);
  EXPECT_EQ(client.count(REDLOCK_EV_RELEASED, lock), 1u);
  EXPECT_EQ(client.check(lock), REDLOCK_E_STALE);
  EXPECT_TRUE(ThreadClient::eventually([&] { return masters.holders("bus") == 0; }));
}
INSTANTIATE_TEST_SUITE_P(Masters, Blocking, ::testing::Values(1, 3, 5));

TEST(Acquire, IsCanceledFromAnotherThread) {
  RedisServer master;
  master.command({"SET", "bus", "somebody"});
  ThreadClient client({master.url()});
  std::thread thread([&] {
    redlock_lock_t lock{7};
    EXPECT_EQ(client.acquire("bus", lock, options(0, REDLOCK_WAIT_FOREVER)), REDLOCK_E_CANCELED);
    EXPECT_EQ(lock.id, 0u);
  });
  EXPECT_TRUE(ThreadClient::eventually([&] { return client.status().rounds >= 1; }));
  EXPECT_EQ(redlock_cancel(client.get(), {(uint64_t{1} << 16) + 1}), 0) << "the first handle of the first slot";
  thread.join();
}

// Both parts of a round with a token may take a whole node_timeout_ms: no callback holds anything up, so this is no
// TIMEOUT.
TEST(Acquire, WithATokenWaitsForBothParts) {
  Cluster masters(3);
  for (size_t m = 1; m < 3; ++m)
    masters[m].command({"HSET", "redlock::fence", "bus", "100 "});  // above its first guess
  ThreadClient client(Settings{
      masters.urls(), "test", {{"timing.node_timeout_ms", 1'500}, {"timing.connect_timeout_ms", 300}}, {}});
  ASSERT_TRUE(ThreadClient::eventually([&] { return client.status().masters_up == 3; }));
  masters[2].freeze();  // the first part waits for what it knows
  std::thread thread([&] {
    redlock_lock_t lock{7};
    EXPECT_EQ(client.acquire("bus", lock, options(20'000, REDLOCK_TRY_ONCE, REDLOCK_F_FENCING)), REDLOCK_E_NO_QUORUM);
    EXPECT_EQ(lock.id, 0u);
  });
  EXPECT_TRUE(ThreadClient::eventually([&] { return masters[1].exists("bus"); }));
  masters[1].freeze();  // and the second for this one
  thread.join();
}

// The callback of ACQUIRED, which comes first, takes longer than the lock is valid, or lets it go.
TEST_F(OnOneThread, AcquireDoesNotReturnWhatIsOver) {
  client.also = [](redlock_t* rl, const redlock_event_t& event) {
    if (event.type != REDLOCK_EV_ACQUIRED) return;
    EXPECT_EQ(outlive(rl, event.lock), REDLOCK_E_LOST);
  };
  redlock_lock_t lock{7};
  EXPECT_EQ(client.acquire("bus", lock, options(1'500, 0, REDLOCK_F_NO_RENEW)), REDLOCK_E_LOST);
  EXPECT_EQ(lock.id, 0u);
  EXPECT_TRUE(client.wait_for(REDLOCK_EV_LOST)) << "told as for any other";
}

TEST_F(OnOneThread, ExtendDoesNotReturnWhatIsOver) {
  client.also = [](redlock_t* rl, const redlock_event_t& event) {
    if (event.type != REDLOCK_EV_RENEWED) return;
    EXPECT_EQ(outlive(rl, event.lock), REDLOCK_E_LOST);
  };
  redlock_lock_t lock{0};
  ASSERT_EQ(client.acquire("bus", lock, options(3'000, 0, REDLOCK_F_NO_RENEW)), 0);
  EXPECT_EQ(client.extend(lock), REDLOCK_E_LOST);
}

// While a callback keeps the client's thread, only the check of another thread knows that the lock is over.
TEST(Extend, OfWhatACheckHasFoundOver) {
  RedisServer master;
  Flag in_callback, go_on;
  ThreadClient client({master.url()});
  redlock_lock_t lock{0}, other{0};
  client.also = [&](redlock_t*, const redlock_event_t& event) {
    if (event.type != REDLOCK_EV_ACQUIRED || event.lock.id == lock.id) return;
    in_callback.set();
    EXPECT_TRUE(go_on.wait());
  };
  ASSERT_EQ(client.acquire_async("bus", lock, options(1'500, 0, REDLOCK_F_NO_RENEW)), 0);
  ASSERT_TRUE(client.wait_for(REDLOCK_EV_ACQUIRED, lock));
  ASSERT_EQ(client.acquire_async("tap", other), 0);
  ASSERT_TRUE(in_callback.wait());
  EXPECT_EQ(outlive(client.get(), lock), REDLOCK_E_LOST);
  EXPECT_EQ(client.count(REDLOCK_EV_LOST, lock), 0u);
  EXPECT_EQ(redlock_extend_async(client.get(), lock, 0), REDLOCK_E_LOST);
  EXPECT_EQ(client.extend(lock), REDLOCK_E_LOST);
  go_on.set();
  EXPECT_TRUE(client.wait_for(REDLOCK_EV_LOST, lock));
}

// Two threads let go of one lock, and one more while the callback of its end is running: all three return.
TEST(Release, ByMoreThanOne) {
  RedisServer master;
  ThreadClient client({master.url()});
  redlock_lock_t lock{0};
  ASSERT_EQ(client.acquire("bus", lock), 0);
  std::thread late;
  client.also = [&](redlock_t*, const redlock_event_t& event) {
    if (event.type != REDLOCK_EV_RELEASED) return;
    Flag begun;
    late = std::thread([&client, &begun, lock] {
      begun.set();
      EXPECT_EQ(client.release(lock), 0);
    });
    EXPECT_TRUE(begun.wait());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // likely in its wait by now; either way it returns
  };
  std::thread other([&] { EXPECT_EQ(client.release(lock), 0); });
  EXPECT_EQ(client.release(lock), 0);
  other.join();
  late.join();
  EXPECT_EQ(client.count(REDLOCK_EV_RELEASED, lock), 1u);
}

// While a callback runs, nobody else has to wait for it - not even one who holds a mutex that the callback wants next.
// The callback ends only when the other thread has made all of its calls.
TEST(Callbacks, HoldNobodyUp) {
  RedisServer master;
  Flag in_callback, called;
  ThreadClient client({master.url()});
  std::mutex of_the_program;
  client.also = [&](redlock_t*, const redlock_event_t& event) {
    if (event.type != REDLOCK_EV_ACQUIRED || in_callback.is_set()) return;
    in_callback.set();
    const std::lock_guard guard(of_the_program);
    EXPECT_TRUE(called.wait());
  };
  std::unique_lock guard(of_the_program);
  redlock_lock_t lock{0}, pump{0}, valve{0};
  ASSERT_EQ(client.acquire_async("bus", lock), 0);
  ASSERT_TRUE(in_callback.wait());
  EXPECT_EQ(client.acquire_async("pump", pump), 0);
  EXPECT_EQ(client.acquire_async("valve", valve), 0);
  EXPECT_EQ(redlock_cancel(client.get(), valve), 0);
  EXPECT_EQ(client.check(lock), 0);
  EXPECT_EQ(redlock_extend_async(client.get(), lock, 0), 0);
  EXPECT_EQ(redlock_release_async(client.get(), pump), 0);
  EXPECT_EQ(client.status().locks_held, 1u);
  guard.unlock();
  called.set();
  EXPECT_TRUE(client.wait_for(REDLOCK_EV_FAILED, valve));
  EXPECT_TRUE(client.wait_for(REDLOCK_EV_FAILED, pump));
  EXPECT_TRUE(client.wait_for(REDLOCK_EV_RENEWED, lock));
  EXPECT_EQ(client.release(lock), 0);
}

// A callback that does not return keeps blocked callers no longer than their budget, and what they gave up leaves no
// key.
TEST(Callbacks, StuckOnesEndInATimeout) {
  RedisServer master;
  Flag in_callback, go_on;
  ThreadClient client(Settings{{master.url()},
                               "test",
                               {{"timing.connect_timeout_ms", 300},
                                {"timing.node_timeout_ms", 1'000},
                                {"defaults.wait_ms", 200},
                                {"timing.guard_wait_ms", 100}},
                               {}});
  client.also = [&](redlock_t*, const redlock_event_t& event) {
    if (event.type != REDLOCK_EV_ACQUIRED || in_callback.is_set()) return;
    in_callback.set();
    EXPECT_TRUE(go_on.wait(60));
  };
  redlock_lock_t first{0}, second{7};
  redlock_report_t report = REDLOCK_REPORT_INIT;
  redlock_acquire_opts_t reported = once();
  reported.report = &report;
  ASSERT_EQ(client.acquire_async("bus", first, options(30'000)), 0);
  ASSERT_TRUE(in_callback.wait());
  EXPECT_EQ(client.acquire("pump", second, reported), REDLOCK_E_TIMEOUT);
  EXPECT_EQ(report.err, REDLOCK_E_TIMEOUT);
  EXPECT_STREQ(report.text, redlock_strerror(REDLOCK_E_TIMEOUT));
  memset(static_cast<void*>(&report), '#', sizeof report);
  EXPECT_EQ(second.id, 0u);
  EXPECT_EQ(client.acquire("valve", second, REDLOCK_ACQUIRE_OPTS_INIT), REDLOCK_E_TIMEOUT) << "the default has an end";
  EXPECT_EQ(client.release(first), REDLOCK_E_TIMEOUT) << "let go all the same";
  EXPECT_NE(client.check(first), 0);
  go_on.set();
  EXPECT_TRUE(client.wait_for(REDLOCK_EV_RELEASED, first));
  EXPECT_TRUE(client.wait_for(REDLOCK_EV_FAILED));
  EXPECT_EQ(client.status().locks_held, 0u);
  EXPECT_TRUE(ThreadClient::eventually([&] { return !master.exists("bus") && !master.exists("pump"); }));
  EXPECT_FALSE(master.exists("valve"));
  const std::string untouched(sizeof report, '#');
  EXPECT_EQ(memcmp(&report, untouched.data(), sizeof report), 0) << "who has given up is not written to";
}

// ---- the report of a blocking acquire ------------------------------------------------------------------------------

struct Try {
  redlock_acquire_opts_t opts = options(20'000);
  redlock_report_t report = REDLOCK_REPORT_INIT;
  redlock_lock_t lock{0};

  Try() { opts.report = &report; }
  int acquire(ThreadClient& client, const std::string& name) { return client.acquire(name, lock, opts); }
  std::string text() const { return report.text; }
};

TEST(Report, OfACallThatIsRefusedAtOnce) {
  RedisServer master;
  ThreadClient client({master.url()});
  Try one;
  one.report.cause = one.report.master_err = 7;
  EXPECT_EQ(one.acquire(client, "redlock::meta"), REDLOCK_E_RESERVED);
  EXPECT_EQ(one.report.err, REDLOCK_E_RESERVED);
  EXPECT_EQ(one.report.cause + one.report.master_err, 0);
  EXPECT_EQ(one.text(), std::string("a name ") + redlock_strerror(REDLOCK_E_RESERVED));
  EXPECT_EQ(redlock_acquire(nullptr, nullptr, 1, &one.opts, &one.lock), REDLOCK_E_INVAL);
  EXPECT_EQ(one.report.err, REDLOCK_E_INVAL);
  Try small;
  small.report.size = sizeof small.report.size;
  memset(small.report.text, '#', sizeof small.report.text);
  EXPECT_EQ(small.acquire(client, "bus"), REDLOCK_E_INVAL);
  EXPECT_EQ(small.report.text[0], '#') << "there is no room for a text";
  EXPECT_EQ(client.status().locks_pending + client.status().locks_held, 0u);
}

// ---- the thread ---------------------------------------------------------------------------------------------------

std::string task_with_name(const std::string& wanted) {
  DIR* tasks = ::opendir("/proc/self/task");
  std::string found;
  while (const dirent* entry = ::readdir(tasks)) {
    std::ifstream file("/proc/self/task/" + std::string(entry->d_name) + "/status");
    std::stringstream text;
    text << file.rdbuf();
    if (text.str().find("Name:\t" + wanted + "\n") != std::string::npos) found = text.str();
  }
  ::closedir(tasks);
  return found;
}

TEST(Thread, HasANameAndTakesNoSignals) {
  RedisServer master;
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  ThreadClient client({master.url()});
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int signal = 1; signal < 32; ++signal) EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal));
  std::string status;
  ASSERT_TRUE(ThreadClient::eventually([&] { return !(status = task_with_name("redlock")).empty(); })) << "it begins";
  const size_t at = status.find("SigBlk:\t") + 8;
  const uint64_t blocked = std::stoull(status.substr(at, 16), nullptr, 16);
  const auto bit = [](int signal) { return uint64_t{1} << (signal - 1); };
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD, SIGALRM, SIGPIPE}) {
    EXPECT_NE(blocked & bit(signal), 0u) << signal;
  }
}

// How much of the stack was ever written: it is fresh memory, all zero, and grows downwards.
TEST(Thread, KeepsToItsSmallStack) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer uses the stack for itself";
#endif
  constexpr size_t stack_bytes = REDLOCK_STACK_BYTES_DEFAULT;
  Cluster masters(3);
  Flag looked;
  ThreadClient client(masters.urls());
  size_t given = 0, used = 0;
  client.also = [&](redlock_t*, const redlock_event_t& event) {
    if (event.type != REDLOCK_EV_RELEASED || looked.is_set()) return;
    pthread_attr_t attributes;
    void* low = nullptr;
    ASSERT_EQ(pthread_getattr_np(pthread_self(), &attributes), 0);
    ASSERT_EQ(pthread_attr_getstack(&attributes, &low, &given), 0);
    pthread_attr_destroy(&attributes);
    size_t untouched = 0;
    while (untouched < given && static_cast<const char*>(low)[untouched] == 0) ++untouched;
    used = given - untouched;
    looked.set();
  };
  redlock_lock_t lock{0};
  masters[0].kill_hard();
  ASSERT_EQ(client.acquire("bus", lock, options(0, 20'000)), 0);
  ASSERT_EQ(client.extend(lock), 0);
  ASSERT_EQ(client.release(lock), 0);
  ASSERT_TRUE(looked.wait());
  printf("deepest stack of the client's own thread, libuv and the C library with it: %zu of %zu bytes\n", used, given);
  EXPECT_EQ(given, std::max<size_t>(stack_bytes, static_cast<size_t>(::sysconf(_SC_THREAD_STACK_MIN))));
  EXPECT_LT(used, 26u * 1024) << "libuv alone takes 12 KB, on ARM 16 KB; the rest is for callbacks";
}

TEST(Thread, StartsWithTheSmallestStackThatMayBeConfigured) {
  redlock_config_t* cfg = configure(Settings{{"redis://127.0.0.1:1"}, "test", {}, {}});
  ASSERT_EQ(redlock_config_set_u32(cfg, "limits.stack_bytes", REDLOCK_STACK_BYTES_MIN), 0);
  redlock_t* rl = nullptr;
  ASSERT_EQ(redlock_create(&rl, cfg), 0) << "glibc on 64-bit ARM refuses less than 128 KB";
  EXPECT_EQ(redlock_destroy(rl, 0), 0);
  redlock_config_free(cfg);
}

TEST(Thread, LivesInTheCallersMemory) {
  RedisServer master;
  redlock_config_t* cfg = configure(Settings{{master.url()}, "test", {}, {}});
  const size_t size = redlock_memory_size(cfg);
  redlock_t* rl = nullptr;
  std::vector<max_align_t> memory(size / sizeof(max_align_t) + 1);
  EXPECT_EQ(redlock_create_in(memory.data(), size - 1, &rl, cfg), REDLOCK_E_TOOSMALL);
  EXPECT_EQ(redlock_create_in(nullptr, size, &rl, cfg), REDLOCK_E_INVAL);
  EXPECT_EQ(redlock_create_in(reinterpret_cast<char*>(memory.data()) + 1, size, &rl, cfg), REDLOCK_E_INVAL);
  EXPECT_EQ(redlock_create_in(memory.data(), size, nullptr, cfg), REDLOCK_E_INVAL);
  EXPECT_EQ(redlock_create(&rl, nullptr), REDLOCK_E_INVAL);
  EXPECT_EQ(rl, nullptr);
  for (int i = 0; i < 3; ++i) {  // the memory is used again
    ASSERT_EQ(redlock_create_in(memory.data(), size, &rl, cfg), 0);
    const redlock_resource_t bus = redlock_resource("bus");
    redlock_lock_t lock{0};
    EXPECT_EQ(redlock_acquire(rl, &bus, 1, nullptr, &lock), 0);
    EXPECT_EQ(redlock_destroy(rl, 1'000), 0);
    EXPECT_FALSE(master.exists("bus")) << "the grace was enough for the delete";
  }
  redlock_config_free(cfg);
}

// ---- the end ------------------------------------------------------------------------------------------------------

TEST(Destroy, EndsWhoIsBlockedAndWhatIsHeld) {
  Cluster masters(3);
  ThreadClient client(masters.urls());
  redlock_lock_t held{0};
  ASSERT_EQ(client.acquire("bus", held), 0);
  std::vector<std::thread> waiters;
  std::atomic<int> canceled{0};
  for (int i = 0; i < 8; ++i) {
    waiters.emplace_back([&] {
      redlock_lock_t lock{0};
      if (client.acquire("bus", lock, options(0, REDLOCK_WAIT_FOREVER)) == REDLOCK_E_CANCELED) ++canceled;
    });
  }
  EXPECT_TRUE(ThreadClient::eventually([&] { return client.status().locks_pending == 8; }));
  EXPECT_EQ(client.destroy(5'000), 0);
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(canceled, 8);
  EXPECT_EQ(client.count(REDLOCK_EV_RELEASED, held), 1u);
  EXPECT_EQ(client.count(REDLOCK_EV_FAILED), 8u);
  EXPECT_EQ(client.count(REDLOCK_EV_CLOSED), 1u);
  EXPECT_EQ(masters.holders("bus"), 0u) << "deleted within the grace";
  // Behind pthread_join() the kernel may list the thread for a moment.
  EXPECT_TRUE(ThreadClient::eventually([] { return task_with_name("redlock").empty(); })) << "the thread is gone";
}

TEST(Destroy, DoesNotWaitForAStuckCallback) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP()
      << "ThreadSanitizer takes the second life of a descriptor's number for a race with a thread nobody joins";
#endif
  RedisServer master;
  Flag in_callback, go_on, done;
  auto client = std::make_unique<ThreadClient>(std::vector<std::string>{master.url()});
  client->also = [&](redlock_t*, const redlock_event_t& event) {
    if (event.type != REDLOCK_EV_ACQUIRED) return;
    in_callback.set();
    EXPECT_TRUE(go_on.wait(60));
    done.set();
  };
  redlock_lock_t lock{0};
  ASSERT_EQ(client->acquire_async("bus", lock), 0);
  ASSERT_TRUE(in_callback.wait());
  EXPECT_EQ(client->destroy(0), REDLOCK_E_TIMEOUT);
  go_on.set();
  EXPECT_TRUE(done.wait());
  EXPECT_TRUE(ThreadClient::eventually([] { return task_with_name("redlock").empty(); })) << "it ends by itself";
  EXPECT_EQ(client->count(REDLOCK_EV_CLOSED), 0u);
  EXPECT_EQ(client->count(REDLOCK_EV_RELEASED), 0u) << "nothing is told to whom has left";
  EXPECT_TRUE(ThreadClient::eventually([&] { return !master.exists("bus"); }));
}

TEST(Destroy, InTheCallersMemoryWaitsForAStuckCallback) {
  RedisServer master;
  std::vector<max_align_t> memory(1 << 14);
  Flag in_callback, go_on;
  ThreadClient client(Settings{{master.url()}, "test", {{"limits.locks", 4}}, {}}, memory.data(),
                      memory.size() * sizeof(max_align_t));
  client.also = [&](redlock_t*, const redlock_event_t& event) {
    if (event.type != REDLOCK_EV_ACQUIRED) return;
    in_callback.set();
    EXPECT_TRUE(go_on.wait(60));
  };
  redlock_lock_t lock{0};
  ASSERT_EQ(client.acquire_async("bus", lock), 0);
  ASSERT_TRUE(in_callback.wait());
  std::thread second([&, rl = client.get()] {
    const redlock_resource_t pump = redlock_resource("pump");
    redlock_lock_t none{0};
    EXPECT_TRUE(ThreadClient::eventually([&] {
      const int err = redlock_acquire_async(rl, &pump, 1, nullptr, &none);
      if (err == 0) {
        EXPECT_EQ(redlock_cancel(rl, none), 0);
      }
      return err == REDLOCK_E_CLOSED;
    })) << "the first one has begun";
    EXPECT_EQ(redlock_destroy(rl, 0), REDLOCK_E_CLOSED);
    std::this_thread::sleep_for(std::chrono::milliseconds(2'500));  // longer than the others' patience
    go_on.set();
  });
  EXPECT_EQ(client.destroy(0), 0);
  second.join();
  EXPECT_EQ(client.count(REDLOCK_EV_CLOSED), 1u);
}

// ---- many at once -------------------------------------------------------------------------------------------------

TEST(Threads, EightOnOneClient) {
  Cluster masters(3);
  ThreadClient client(masters.urls());
  constexpr int turns = 25;
  std::atomic<int> inside{0}, most{0};
  int counter = 0;  // no atomic: ThreadSanitizer and the sum both tell when two are in
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < turns; ++i) {
        redlock_acquire_opts_t opts = options(30'000, REDLOCK_WAIT_FOREVER);
        opts.retry_delay_ms = 5;
        redlock_lock_t lock{0};
        ASSERT_EQ(client.acquire("bus", lock, opts), 0);
        if (++inside > 1) most = 2;
        EXPECT_EQ(client.check(lock, 1), 0);
        ++counter;
        --inside;
        EXPECT_EQ(client.release(lock), 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 0);
  EXPECT_EQ(counter, 8 * turns);
}

// Anything from anywhere: for ThreadSanitizer. Every call gives a result that the header names.
TEST(Threads, AllCallsAtOnce) {
  Cluster masters(3);
  ThreadClient client(Settings{masters.urls(), "test", {{"limits.locks", 8}}, {}});
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> last{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      while (!stop) {
        redlock_lock_t lock{0};
        const int err = client.acquire(t == 0 ? "bus" : "pump", lock, options(1'000, 50));
        EXPECT_TRUE(err == 0 || err == REDLOCK_E_LOCKED || err == REDLOCK_E_TIMEOUT || err == REDLOCK_E_TABLE_FULL ||
                    err == REDLOCK_E_NO_QUORUM || err == REDLOCK_E_LOST) << err;  // LOST: suspended before it was told
        if (err != 0) continue;
        last = lock.id;
        (void)client.extend(lock);
        EXPECT_EQ(client.release(lock), 0);
      }
    });
  }
  threads.emplace_back([&] {
    while (!stop) {
      redlock_lock_t lock{0};
      if (client.acquire_async("valve", lock, options(1'000)) != 0) continue;
      const int extended = redlock_extend_async(client.get(), lock, 0);
      EXPECT_TRUE(extended == 0 || extended == REDLOCK_E_NOT_HELD || extended == REDLOCK_E_LOST ||
                  extended == REDLOCK_E_STALE || extended == REDLOCK_E_BUSY) << extended;
      const int canceled = redlock_cancel(client.get(), lock);
      EXPECT_TRUE(canceled == 0 || canceled == REDLOCK_E_BUSY) << canceled;
      EXPECT_EQ(redlock_release_async(client.get(), lock), 0);
    }
  });
  threads.emplace_back([&] {
    std::vector<char> json(16'384);
    while (!stop) {
      const redlock_lock_t lock{last};
      EXPECT_LE(redlock_check(client.get(), lock, 1), 0);
      EXPECT_NE(redlock_deadline_ns(client.get(), lock), 1);
      EXPECT_LE(redlock_validity_ms(client.get(), lock), 1'000);
      size_t size = json.size();
      EXPECT_EQ(redlock_status_json(client.get(), json.data(), &size), 0);
    }
  });
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    masters[static_cast<size_t>(i)].command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    EXPECT_EQ(redlock_suspended(client.get()), 0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace redlock::test
