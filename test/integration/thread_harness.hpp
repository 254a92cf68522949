// SPDX-License-Identifier: MIT
//
// A client with a thread of its own, seen from outside. Its events come on that thread and are kept under a mutex.
#pragma once
#include <condition_variable>
#include <mutex>
#include <thread>

#include "client_harness.hpp"
#include "support/eventually.hpp"

namespace redlock::test {

// Something that one thread says and others wait for. It outlives a client whose callbacks set it. The budget ends a
// broken test; it measures nothing.
class Flag {
 public:
  void set() {
    const std::lock_guard guard(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  bool wait(int budget_s = 30) {
    std::unique_lock guard(mutex_);
    return changed_.wait_for(guard, std::chrono::seconds(budget_s), [this] { return set_; });
  }
  bool is_set() {
    const std::lock_guard guard(mutex_);
    return set_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

class ThreadClient {
 public:
  explicit ThreadClient(const Settings& settings, void* memory = nullptr, size_t size = 0) {
    redlock_config_t* cfg = configure(settings);
    redlock_config_set_event(cfg, &ThreadClient::on_event, this);
    const int err = memory != nullptr ? redlock_create_in(memory, size, &rl_, cfg) : redlock_create(&rl_, cfg);
    redlock_config_free(cfg);
    if (err != 0) throw std::runtime_error(std::string("create: ") + redlock_err_name(err));
    EXPECT_EQ(settings.commission ? redlock_commission(rl_) : 0, 0);
  }
  explicit ThreadClient(const std::vector<std::string>& urls) : ThreadClient(Settings{urls, "test", {}, {}}) {}
  ~ThreadClient() {
    if (rl_ == nullptr) return;
    EXPECT_EQ(destroy(0), 0);
    EXPECT_EQ(count(REDLOCK_EV_CLOSED), 1u);
  }
  ThreadClient(const ThreadClient&) = delete;
  ThreadClient& operator=(const ThreadClient&) = delete;

  redlock_t* get() { return rl_; }

  int destroy(uint32_t grace_ms) {
    redlock_t* const rl = rl_;
    rl_ = nullptr;
    return redlock_destroy(rl, grace_ms);
  }

  int acquire(const std::string& name, redlock_lock_t& lock, redlock_acquire_opts_t opts = once()) {
    const redlock_resource_t resource{name.data(), static_cast<uint32_t>(name.size())};
    return redlock_acquire(rl_, &resource, 1, &opts, &lock);
  }
  int acquire_async(const std::string& name, redlock_lock_t& lock,
                    redlock_acquire_opts_t opts = once()) {
    const redlock_resource_t resource{name.data(), static_cast<uint32_t>(name.size())};
    return redlock_acquire_async(rl_, &resource, 1, &opts, &lock);
  }
  int extend(redlock_lock_t lock, uint32_t ttl_ms = 0) { return redlock_extend(rl_, lock, ttl_ms); }
  int release(redlock_lock_t lock) { return redlock_release(rl_, lock); }
  int check(redlock_lock_t lock, uint32_t need_ms = 0) const { return redlock_check(rl_, lock, need_ms); }

  redlock_status_t status() const {
    redlock_status_t status{};
    status.size = sizeof status;
    EXPECT_EQ(redlock_status(rl_, &status), 0);
    return status;
  }

  // Of the client, or of one lock.
  size_t count(int type, redlock_lock_t lock = {0}) {
    const std::lock_guard guard(mutex_);
    size_t found = 0;
    for (const redlock_event_t& event : events_) {
      found += event.type == type && (lock.id == 0 || event.lock.id == lock.id) ? 1 : 0;
    }
    return found;
  }
  bool wait_for(int type, redlock_lock_t lock = {0}) {
    return eventually([&] { return count(type, lock) != 0; });
  }
  // Called on the client's thread, after the event is kept; set it before the first acquire. MASTER is kept only.
  std::function<void(redlock_t*, const redlock_event_t&)> also;

  static bool eventually(const std::function<bool()>& holds) {
    return test::eventually(holds, std::chrono::seconds(30));
  }

 private:
  static void on_event(redlock_t* rl, const redlock_event_t* event, void* user) {
    ThreadClient& client = *static_cast<ThreadClient*>(user);
    {
      const std::lock_guard guard(client.mutex_);
      client.events_.push_back(*event);
    }
    if (event->type != REDLOCK_EV_MASTER && client.also) client.also(rl, *event);
  }

  redlock_t* rl_ = nullptr;
  std::mutex mutex_;
  std::vector<redlock_event_t> events_;
};

}  // namespace redlock::test
