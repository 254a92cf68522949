// SPDX-License-Identifier: MIT
//
// A polled client on a plain poll() loop, which waits for its descriptor and nothing else.
#pragma once
#include <poll.h>

#include "client_harness.hpp"

namespace redlock::test {

class PolledClient {
 public:
  explicit PolledClient(const Settings& settings, void* memory = nullptr, size_t size = 0) {
    redlock_config_t* cfg = configure(settings);
    redlock_config_set_event(cfg, &PolledClient::on_event, this);
    const int err =
        memory != nullptr ? redlock_create_polled_in(memory, size, &rl_, cfg) : redlock_create_polled(&rl_, cfg);
    redlock_config_free(cfg);
    if (err != 0) throw std::runtime_error(std::string("create: ") + redlock_err_name(err));
    EXPECT_EQ(settings.commission ? redlock_commission(rl_) : 0, 0);
  }
  explicit PolledClient(const std::vector<std::string>& urls) : PolledClient(Settings{urls, "test", {}, {}}) {}
  ~PolledClient() {
    if (rl_ != nullptr) close();
  }
  PolledClient(const PolledClient&) = delete;
  PolledClient& operator=(const PolledClient&) = delete;

  redlock_t* get() { return rl_; }
  std::vector<redlock_event_t> events;
  bool may_be_told = false;  // redlock_process() is under way
  std::function<void(redlock_t*, const redlock_event_t&)> also;

  size_t count(int type) const {
    size_t found = 0;
    for (const redlock_event_t& event : events) found += event.type == type ? 1 : 0;
    return found;
  }

  // Only the descriptor wakes it; the time-out of poll() is there to end a broken test.
  bool run_until(const std::function<bool()>& holds) {
    for (int quiet = 0; rl_ != nullptr && !holds();) {
      pollfd wait{redlock_fd(rl_), POLLIN, 0};
      const int ready = ::poll(&wait, 1, 10'000);
      if (ready == 0 && ++quiet == 3) return false;
      if (ready > 0) process();
    }
    return holds();
  }

  int process() {
    may_be_told = true;
    const int err = redlock_process(rl_);
    may_be_told = false;
    if (err == REDLOCK_E_CLOSED) rl_ = nullptr;
    return err;
  }

  void close(uint32_t grace_ms = 0) {
    EXPECT_EQ(redlock_close_async(rl_, grace_ms), 0);
    EXPECT_TRUE(run_until([this] { return rl_ == nullptr; }));
    EXPECT_EQ(count(REDLOCK_EV_CLOSED), 1u);
    EXPECT_EQ(events.back().type, REDLOCK_EV_CLOSED);
  }

  int acquire_async(const std::string& name, redlock_lock_t& lock,
                    redlock_acquire_opts_t opts = once()) {
    const redlock_resource_t resource{name.data(), static_cast<uint32_t>(name.size())};
    return redlock_acquire_async(rl_, &resource, 1, &opts, &lock);
  }

 private:
  static void on_event(redlock_t* rl, const redlock_event_t* event, void* user) {
    PolledClient& client = *static_cast<PolledClient*>(user);
    EXPECT_TRUE(client.may_be_told) << "an event outside of redlock_process()";
    client.events.push_back(*event);
    if (client.also && event->type != REDLOCK_EV_MASTER) client.also(rl, *event);
  }

  redlock_t* rl_ = nullptr;
};

}  // namespace redlock::test
