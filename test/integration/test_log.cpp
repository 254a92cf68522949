// SPDX-License-Identifier: MIT
//
// What a client on real masters logs, what it tells of its masters, and on which thread.
#include <limits.h>

#include <condition_variable>
#include <mutex>

#include "support/redis_server.hpp"
#include "thread_harness.hpp"

namespace redlock::test {
namespace {

// ---- the configuration ----------------------------------------------------------------------------------------------

// The warnings about passwords that a client of `cfg` logs from its beginning to its end. Frees `cfg`.
std::vector<std::string> password_warnings(redlock_config_t* cfg) {
  struct Told {
    std::mutex mutex;
    std::vector<std::string> lines;
  } told;
  redlock_config_set_log(
      cfg,
      [](int level, const char* line, void* user) {
        Told& of = *static_cast<Told*>(user);
        const std::lock_guard<std::mutex> guard(of.mutex);
        if (level == 4 && std::string(line).find("password") != std::string::npos) of.lines.push_back(line);
      },
      &told, 7);
  redlock_t* rl = nullptr;
  EXPECT_EQ(redlock_create(&rl, cfg), 0) << redlock_config_error(cfg);
  redlock_config_free(cfg);
  EXPECT_EQ(redlock_destroy(rl, 100), 0);
  return told.lines;
}

// 192.0.2.0/24 is nobody's network. A build without TLS has nothing to offer, and says nothing.
TEST(Log, APasswordInTheClearIsOneWarningWhereThereIsTls) {
  redlock_config_t* cfg = nullptr;
  ASSERT_EQ(redlock_config_new(&cfg), 0);
  for (const char* host : {"127.0.0.1:1", "192.0.2.1:1", "192.0.2.2:1"}) {
    ASSERT_EQ(redlock_config_add_master(cfg, ("redis://:hunter2@" + std::string(host)).c_str()), 0);
  }
  std::vector<std::string> expected;
  if (std::string(redlock_version_string()).find('+') != std::string::npos) {  // the library that runs has TLS
    expected = {"masters[1].url: the password goes to 192.0.2.1:1 in the clear; rediss:// would encrypt it"};
  }
  EXPECT_EQ(password_warnings(cfg), expected);
}

// ---- calls ----------------------------------------------------------------------------------------------------------

class Calls : public ::testing::Test {
 protected:
  using Opts = redlock_acquire_opts_t;

  void expect(const std::string& text, const std::vector<std::string>& names, Opts opts = REDLOCK_ACQUIRE_OPTS_INIT,
              int err = REDLOCK_E_INVAL) {
    std::vector<redlock_resource_t> resources;
    for (const std::string& name : names) resources.push_back({name.data(), static_cast<uint32_t>(name.size())});
    expect(text, resources.data(), static_cast<uint32_t>(names.size()), opts, err);
  }
  void expect(const std::string& text, const redlock_resource_t* resources, uint32_t count,
              Opts opts = REDLOCK_ACQUIRE_OPTS_INIT, int err = REDLOCK_E_INVAL) {
    // The client's limit for lines is not the matter here.
    Client client(loop_, {master_.url()});
    redlock_lock_t lock{7};
    EXPECT_EQ(redlock_acquire_async(client.get(), resources, count, &opts, &lock), err) << text;
    EXPECT_EQ(lock.id, 0u);
    ASSERT_EQ(client.log().size(), 1u) << text;
    EXPECT_EQ(client.log()[0], "3 redlock_acquire_async: " + text);
  }
  static Opts with(void (*change)(Opts&)) {
    Opts opts = REDLOCK_ACQUIRE_OPTS_INIT;
    change(opts);
    return opts;
  }

  Loop loop_;
  RedisServer master_;
};

TEST_F(Calls, ThatNameWrongResources) {
  const redlock_resource_t null = {nullptr, 3};
  expect("resources is NULL", nullptr, 1);
  expect("count 0 is not in 1..4", &null, 0);
  expect("count 5 is not in 1..4", {"a", "b", "c", "d", "e"});
  expect("a name is NULL", &null, 1);
  expect("a name is empty", {"a", ""});
  expect("a name is longer than 64 bytes", {std::string(65, 'x')});
  expect("a name is given twice", {"a", "b", "a"});
  expect("the names have 65 bytes together, more than limits.resource_bytes 64", {std::string(64, 'x'), "y"});
  expect("a name makes a key of the library's own: redlock:{key_prefix}:...", {"redlock::meta"},
         REDLOCK_ACQUIRE_OPTS_INIT, REDLOCK_E_RESERVED);
}

TEST_F(Calls, WithWrongOptions) {
  const std::vector<std::string> bus{"bus"};
  expect("opts->size is 0: use REDLOCK_ACQUIRE_OPTS_INIT", bus, with([](Opts& o) { o.size = 0; }));
  expect("opts->size is 4097: use REDLOCK_ACQUIRE_OPTS_INIT", bus, with([](Opts& o) { o.size = 4'097; }));
  expect("flags 256 has a bit that this version does not know", bus, with([](Opts& o) { o.flags = 256; }));
  expect("opts->reserved is 1, not 0", bus, with([](Opts& o) { o.reserved = 1; }));
  expect("ttl_ms 19 is below 20", bus, with([](Opts& o) { o.ttl_ms = 19; }));
  expect("ttl_ms 30001 is above timing.max_ttl_ms 30000", bus, with([](Opts& o) { o.ttl_ms = 30'001; }));
  expect("wait_ms -7 is no time and no REDLOCK_WAIT_...", bus, with([](Opts& o) { o.wait_ms = -7; }));
  expect("wait_ms -2147483648 is no time and no REDLOCK_WAIT_...", bus, with([](Opts& o) { o.wait_ms = INT_MIN; }));
  expect("min_validity_ms 10000 is not below ttl_ms 10000", bus, with([](Opts& o) { o.min_validity_ms = 10'000; }));
  expect("retry_delay_ms 5001 is above 5000", bus, with([](Opts& o) { o.retry_delay_ms = 5'001; }));
}

// ---- threads --------------------------------------------------------------------------------------------------------

// A log callback that waits for what another thread has taken, while that thread calls the client.
struct Sink {
  std::mutex mutex;
  std::condition_variable given_back;
  bool taken = false;
  std::vector<std::string> lines;
  bool stuck = false;
  Flag entered, left;
  redlock_t* rl = nullptr;

  static void on_log(int, const char* msg, void* user) {
    Sink& sink = *static_cast<Sink*>(user);
    sink.entered.set();
    std::unique_lock guard(sink.mutex);
    sink.stuck |= !sink.given_back.wait_for(guard, std::chrono::seconds(10), [&] { return !sink.taken; });
    sink.lines.emplace_back(msg);
    sink.left.set();
  }
  void take(bool all) {
    const std::lock_guard guard(mutex);
    taken = all;
    given_back.notify_all();
  }
  void ask_while_it_is_taken(const std::function<void()>& cause) {
    take(true);
    std::thread causing(cause);
    EXPECT_TRUE(entered.wait());
    redlock_status_t status{};
    status.size = sizeof status;
    EXPECT_EQ(redlock_status(rl, &status), 0);
    take(false);
    EXPECT_TRUE(left.wait());
    causing.join();
    EXPECT_FALSE(stuck) << "the callback runs inside the gate";
  }
};

TEST(LogThreads, NoLineIsWrittenInsideTheGate) {
  RedisServer master;
  for (const bool by_call : {true, false}) {
    Sink sink;
    redlock_config_t* cfg = configure(Settings{{master.url()}, "test", {}, {}});
    redlock_config_set_log(cfg, &Sink::on_log, &sink, by_call ? 3 : 4);
    ASSERT_EQ(redlock_create(&sink.rl, cfg), 0);
    redlock_config_free(cfg);
    redlock_lock_t lock;
    const redlock_resource_t bus = redlock_resource("bus");
    redlock_acquire_opts_t opts = options(19);
    sink.ask_while_it_is_taken([&] {
      if (by_call) {
        EXPECT_EQ(redlock_acquire(sink.rl, &bus, 1, &opts, &lock), REDLOCK_E_INVAL);
      } else {
        master.kill_hard();
      }
    });
    ASSERT_FALSE(sink.lines.empty());
    EXPECT_TRUE(sink.lines[0].starts_with(by_call ? "redlock_acquire: " : "master ")) << sink.lines[0];
    EXPECT_EQ(redlock_destroy(sink.rl, 0), 0);
  }
}

// ---- stderr ---------------------------------------------------------------------------------------------------------

std::string on_stderr(const std::function<void()>& what) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const int kept = ::dup(STDERR_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  what();
  ::dup2(kept, STDERR_FILENO);
  ::close(kept);
  ::close(ends[1]);
  char text[2'000];
  const ssize_t size = ::read(ends[0], text, sizeof text);
  ::close(ends[0]);
  return std::string(text, size > 0 ? static_cast<size_t>(size) : 0);
}

TEST(LogStderr, IsOneLine) {
  EXPECT_EQ(on_stderr([] { redlock_log_stderr(4, "a line", nullptr); }), "redlock: a line\n");
  const std::string longest = on_stderr([] { redlock_log_stderr(4, std::string(1'000, 'x').c_str(), nullptr); });
  EXPECT_EQ(longest.find('\n'), longest.size() - 1) << "cut, and a line all the same";
  EXPECT_GT(longest.size(), 480u);
}

}  // namespace
}  // namespace redlock::test
