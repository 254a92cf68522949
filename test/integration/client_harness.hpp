// SPDX-License-Identifier: MIT
//
// A client on a loop of its own, seen from outside: only the public header is used. Every lock keeps the events it was
// given, and when the client goes, the promise of the header is checked for each: exactly one ACQUIRED or FAILED first,
// exactly one terminal event, nothing after it.
#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <redlock/redlock.h>
#include <time.h>
#include <uv.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace redlock::test {

// libc's function, behind the one with which a program stands in front of it.
template <class Function>
Function* real(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

inline int64_t boot_ns() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

class Loop {
 public:
  Loop() {
    uv_loop_init(&loop_);
    uv_timer_init(&loop_, &look_);
  }
  ~Loop() {
    uv_close(reinterpret_cast<uv_handle_t*>(&look_), nullptr);
    uv_run(&loop_, UV_RUN_DEFAULT);
    EXPECT_EQ(uv_loop_close(&loop_), 0) << "a client left a handle open";
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  uv_loop_t* get() { return &loop_; }

  // Run until the predicate holds; it is asked after every turn and every few milliseconds. False: the budget, which is
  // there to end a broken test and not to measure, is over.
  bool run_until(const std::function<bool()>& predicate, int budget_ms = 30'000) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(budget_ms);
    uv_update_time(&loop_);
    uv_timer_start(
        &look_, [](uv_timer_t*) {}, 1, 5);
    bool holds = predicate();
    while (!holds && std::chrono::steady_clock::now() < until) {
      uv_run(&loop_, UV_RUN_ONCE);
      holds = predicate();
    }
    uv_timer_stop(&look_);
    return holds;
  }

  void run_for(int ms) {
    const int64_t until = boot_ns() + static_cast<int64_t>(ms) * 1'000'000;
    run_until([until] { return boot_ns() >= until; });
  }

 private:
  uv_loop_t loop_{};
  uv_timer_t look_{};
};

inline redlock_acquire_opts_t options(uint32_t ttl_ms, int32_t wait_ms = REDLOCK_TRY_ONCE, uint32_t flags = 0) {
  redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
  opts.ttl_ms = ttl_ms;
  opts.wait_ms = wait_ms;
  opts.flags = flags;
  return opts;
}
// What a test asks for that says nothing else.
inline redlock_acquire_opts_t once() { return options(0); }

struct Settings {
  std::vector<std::string> urls;
  std::string name = "test";
  std::vector<std::pair<std::string, uint32_t>> numbers;  // override the patient defaults below
  std::vector<std::pair<std::string, std::string>> strings;
  bool commission = false;              // redlock_commission() right after the create
  std::vector<std::string> names = {};  // of the masters, where clients reach them by different addresses
  std::string password_file = {};       // of all masters
};

// The caller frees it.
inline redlock_config_t* configure(const Settings& settings) {
  redlock_config_t* cfg = nullptr;
  if (redlock_config_new(&cfg) != 0) throw std::runtime_error("redlock_config_new");
  const auto must = [cfg](int err, const std::string& what) {
    if (err != 0) throw std::runtime_error(what + ": " + redlock_err_name(err) + ": " + redlock_config_error(cfg));
  };
  if (settings.names.empty() && settings.password_file.empty()) {
    for (const std::string& url : settings.urls) must(redlock_config_add_master(cfg, url.c_str()), url);
  } else {
    std::string list;
    for (size_t m = 0; m < settings.urls.size(); ++m) {
      list +=
          (m == 0 ? "" : ",") + ("{\"url\":\"" + settings.urls[m] + "\"") +
          (settings.names.empty() ? "" : ",\"name\":\"" + settings.names.at(m) + "\"") +
          (settings.password_file.empty() ? "" : ",\"password_file\":\"" + settings.password_file + "\"") + "}";
    }
    const std::string json = "{\"masters\":[" + list + "]}";
    must(redlock_config_load_json(cfg, json.data(), json.size()), json);
  }
  if (const char* folder = std::getenv("REDLOCK_TEST_TLS"); folder != nullptr && *folder != '\0') {
    must(redlock_config_set_str(cfg, "tls.ca_file", (std::string(folder) + "/ca.pem").c_str()), "tls.ca_file");
  }
  must(redlock_config_set_str(cfg, "client_name", settings.name.c_str()), "client_name");
  // Its masters come and go, and most tests are not about that; guard_site.hpp asks for strict.
  must(redlock_config_set_str(cfg, "guard", "off"), "guard");
  // Patient with a loaded machine, quick to connect again.
  for (const auto& [key, value] : std::vector<std::pair<std::string, uint32_t>>{{"timing.suspect_close_ms", 10'000},
                                                                                {"timing.node_timeout_ms", 2'000},
                                                                                {"timing.connect_timeout_ms", 5'000},
                                                                                {"timing.reconnect_min_ms", 10},
                                                                                {"timing.reconnect_max_ms", 100}}) {
    must(redlock_config_set_u32(cfg, key.c_str(), value), key);
  }
  for (const auto& [key, value] : settings.numbers) must(redlock_config_set_u32(cfg, key.c_str(), value), key);
  for (const auto& [key, value] : settings.strings) must(redlock_config_set_str(cfg, key.c_str(), value.c_str()), key);
  return cfg;
}

// Until a check says that the lock is over; nothing of the client's runs meanwhile. What it says last.
inline int outlive(const redlock_t* rl, redlock_lock_t lock) {
  int err = redlock_check(rl, lock, 0);
  while (err == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    err = redlock_check(rl, lock, 0);
  }
  return err;
}

class Client;

// One acquire and what became of it.
class Lock {
 public:
  redlock_lock_t handle{0};
  std::vector<redlock_event_t> events;
  std::function<void(const redlock_event_t&)> on_event;

  size_t count(int type) const {
    size_t found = 0;
    for (const redlock_event_t& event : events) found += event.type == type ? 1 : 0;
    return found;
  }
  bool has(int type) const { return count(type) != 0; }
  bool decided() const { return has(REDLOCK_EV_ACQUIRED) || has(REDLOCK_EV_FAILED); }
  bool ended() const { return has(REDLOCK_EV_FAILED) || has(REDLOCK_EV_LOST) || has(REDLOCK_EV_RELEASED); }
  const redlock_event_t& first(int type) const {
    for (const redlock_event_t& event : events) {
      if (event.type == type) return event;
    }
    throw std::runtime_error("no event of type " + std::to_string(type));
  }
};

class Client {
 public:
  Client(Loop& loop, const Settings& settings) : loop_(loop) {
    redlock_config_t* cfg = configure(settings);
    redlock_config_set_event(cfg, &Client::on_client_event, this);
    redlock_config_set_log(cfg, &Client::on_log, this, 7);
    const int err = redlock_create_on_loop(&rl_, cfg, loop.get());
    redlock_config_free(cfg);
    if (err != 0) throw std::runtime_error(std::string("create: ") + redlock_err_name(err));
    EXPECT_EQ(settings.commission ? redlock_commission(rl_) : 0, 0);
  }
  Client(Loop& loop, const std::vector<std::string>& urls) : Client(loop, Settings{urls, "test", {}, {}}) {}

  ~Client() {
    if (!closed_) close(0);
    for (const auto& lock : locks_) expect_well_formed(*lock);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  redlock_t* get() { return rl_; }
  bool closed() const { return closed_; }
  const std::vector<redlock_event_t>& master_events() const { return master_events_; }
  const std::vector<std::string>& log() const { return log_; }  // "4 master ...": level and line

  void close(uint32_t grace_ms) {
    EXPECT_EQ(redlock_close_async(rl_, grace_ms), 0);
    EXPECT_TRUE(loop_.run_until([this] { return closed_; })) << "no CLOSED";
  }

  // Starts an acquire and returns at once.
  Lock& start(const std::string& resource, redlock_acquire_opts_t opts = once()) {
    return start(std::vector<std::string>{resource}, opts);
  }
  Lock& start(const std::vector<std::string>& resources, redlock_acquire_opts_t opts = once()) {
    locks_.push_back(std::make_unique<Lock>());
    Lock& lock = *locks_.back();
    opts.callback = &Client::on_lock_event;
    opts.user = &lock;
    std::vector<redlock_resource_t> names;
    for (const std::string& r : resources) names.push_back({r.data(), static_cast<uint32_t>(r.size())});
    const int err = redlock_acquire_async(rl_, names.data(), static_cast<uint32_t>(names.size()), &opts, &lock.handle);
    EXPECT_EQ(err, 0) << redlock_err_name(err);
    EXPECT_TRUE(lock.events.empty()) << "an event from inside the call";
    return lock;
  }

  // Starts an acquire and runs until it is decided.
  Lock& acquire(const std::string& resource, redlock_acquire_opts_t opts = once()) {
    return acquire(std::vector<std::string>{resource}, opts);
  }
  Lock& acquire(const std::vector<std::string>& resources, redlock_acquire_opts_t opts = once()) {
    Lock& lock = start(resources, opts);
    EXPECT_TRUE(loop_.run_until([&lock] { return lock.decided(); })) << "no decision on " << resources.front();
    return lock;
  }

  // ... which is won, or the test ends here.
  template <class Resource>
  Lock& hold(const Resource& resource, redlock_acquire_opts_t opts = once()) {
    Lock& lock = acquire(resource, opts);
    lock.first(REDLOCK_EV_ACQUIRED);
    return lock;
  }

  void release(Lock& lock) {
    EXPECT_EQ(redlock_release_async(rl_, lock.handle), 0);
    EXPECT_TRUE(loop_.run_until([&lock] { return lock.ended(); })) << "no end";
  }

  int check(const Lock& lock, uint32_t need_ms = 0) const { return redlock_check(rl_, lock.handle, need_ms); }

  redlock_status_t status() const {
    redlock_status_t status{};
    status.size = sizeof status;
    EXPECT_EQ(redlock_status(rl_, &status), 0);
    return status;
  }
  redlock_master_status_t master(uint32_t index) const {
    redlock_master_status_t status{};
    status.size = sizeof status;
    EXPECT_EQ(redlock_master_status(rl_, index, &status), 0);
    return status;
  }
  // Runs until so many masters vote.
  void wait_up(uint32_t masters) {
    EXPECT_TRUE(loop_.run_until([&] { return status().masters_up == masters; })) << status().masters_up << " up";
  }
  void wait_master_err(uint32_t index, int err) {
    EXPECT_TRUE(loop_.run_until([&] { return master(index).err == err; }))
        << "master " << index << ": " << redlock_err_name(master(index).err) << " instead of " << redlock_err_name(err);
    EXPECT_NE(master(index).state, REDLOCK_MASTER_UP);
  }
  bool log_mentions(std::string_view text) const {
    for (const std::string& line : log_) {
      if (line.find(text) != std::string::npos) return true;
    }
    return false;
  }

 private:
  static void on_lock_event(redlock_t*, const redlock_event_t* event, void* user) {
    Lock& lock = *static_cast<Lock*>(user);
    lock.events.push_back(*event);
    EXPECT_EQ(event->size, sizeof *event);
    EXPECT_EQ(event->lock.id, lock.handle.id);
    if (lock.on_event) lock.on_event(*event);
  }

  static void on_client_event(redlock_t*, const redlock_event_t* event, void* user) {
    Client& client = *static_cast<Client*>(user);
    EXPECT_FALSE(client.closed_) << "an event after CLOSED";
    EXPECT_EQ(event->size, sizeof *event);
    if (event->type == REDLOCK_EV_CLOSED) {
      client.closed_ = true;
    } else {
      EXPECT_EQ(event->type, REDLOCK_EV_MASTER);
      client.master_events_.push_back(*event);
    }
  }

  static void on_log(int level, const char* msg, void* user) {
    EXPECT_EQ(std::string(msg).find('\n'), std::string::npos);
    static_cast<Client*>(user)->log_.push_back(std::to_string(level) + " " + msg);
  }

  static void expect_well_formed(const Lock& lock) {
    if (lock.handle.id == 0) return;
    ASSERT_FALSE(lock.events.empty()) << "an accepted acquire without an event";
    EXPECT_EQ(lock.count(REDLOCK_EV_ACQUIRED) + lock.count(REDLOCK_EV_FAILED), 1u);
    size_t waits = 0;
    while (lock.events[waits].type == REDLOCK_EV_WAITING) ++waits;  // nothing but WAITING comes before the verdict
    const int opening = lock.events.at(waits).type;
    EXPECT_TRUE(opening == REDLOCK_EV_ACQUIRED || opening == REDLOCK_EV_FAILED) << opening;
    EXPECT_EQ(lock.count(REDLOCK_EV_FAILED) + lock.count(REDLOCK_EV_LOST) + lock.count(REDLOCK_EV_RELEASED), 1u);
    const int closing = lock.events.back().type;
    EXPECT_TRUE(closing == REDLOCK_EV_FAILED || closing == REDLOCK_EV_LOST || closing == REDLOCK_EV_RELEASED)
        << closing;
  }

  Loop& loop_;
  redlock_t* rl_ = nullptr;
  bool closed_ = false;
  std::vector<std::unique_ptr<Lock>> locks_;
  std::vector<redlock_event_t> master_events_;
  std::vector<std::string> log_;
};

// All of its masters vote when the test goes on.
class UpClient : public Client {
 public:
  UpClient(Loop& loop, const Settings& settings) : Client(loop, settings) {
    wait_up(static_cast<uint32_t>(settings.urls.size()));
  }
  UpClient(Loop& loop, const std::vector<std::string>& urls) : UpClient(loop, Settings{urls, "test", {}, {}}) {}
};

// Seals these masters as an operator does for a new site, so that clients with the guard need not watch them first.
inline void commission(const std::vector<std::string>& urls) {
  Loop loop;
  const UpClient client(loop, Settings{urls, "operator", {}, {{"guard", "strict"}}, true});
}

}  // namespace redlock::test
