// SPDX-License-Identifier: MIT
//
// Turns: in which order a port is called, and what happens when the port cannot do what it is asked for. The simulator
// and the scenarios show what the loop does to a client, because they run it.
#include "client/turns.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace redlock {
namespace {

Instant at(int64_t ms) { return Instant::from_ns(ms * 1'000'000); }

Settings settings_of(unsigned masters) {
  Settings settings;
  settings.masters = masters;
  for (MasterIndex m = 0; m < masters; ++m) {
    settings.master[m].name = "m";
    settings.master[m].host = "10.0.0.1";
  }
  settings.client_name = "gw";
  settings.guard = GuardMode::off;
  return settings;
}

// Writes down each call as a word.
class Port : public Turns<Port> {
 public:
  explicit Port(unsigned masters)
      : settings_(settings_of(masters)),
        memory_(new uint64_t[Client::memory_size(settings_) / sizeof(uint64_t) + 1]),
        client_(settings_, memory_.get()) {}

  Client& client() { return client_; }
  Reading clock_reading() {
    note("clock");
    return {time, std::exchange(jumped, false)};
  }
  int64_t boot_ms() const { return 0; }
  size_t fill_random(unsigned char* out, size_t size) {
    note("random");
    const size_t filled = random < size ? random : size;
    memset(out, 7, filled);
    return filled;
  }
  void flush(MasterIndex m, Instant) {
    note("flush" + std::to_string(m));
    client_.all_sent(m);
  }
  bool can_connect(MasterIndex) const { return free; }
  void connect(MasterIndex m, Instant) { note("connect" + std::to_string(m)); }
  void close(MasterIndex m, int reason, bool polite, Instant now) {
    note((polite ? "close" : "reset") + std::to_string(m));
    closed(m, reason, now);
  }
  void event(const Client::Event& event) {
    note("event" + std::to_string(event.event.type));
    if (callback) callback();
  }
  bool arm(Instant deadline) {
    note(deadline == Instant::from_ns(0) ? "arm-at-once" : "arm");
    return can_arm;
  }
  void ended() { note("ended"); }
  void turn_ended() {}

  std::string calls() { return std::exchange(calls_, ""); }

  Instant time = at(1'000);
  size_t random = SIZE_MAX;
  bool jumped = false;
  bool free = true;
  bool can_arm = true;
  std::function<void()> callback;

 private:
  void note(const std::string& call) { calls_ += (calls_.empty() ? "" : " ") + call; }

  Settings settings_;
  std::unique_ptr<uint64_t[]> memory_;
  Client client_;
  std::string calls_;
};

int acquire(Port& port) {
  uint64_t handle = 0;
  return port.client().acquire(Bytes("bus"), {1'000, REDLOCK_TRY_ONCE, 0, 0, 100, false}, nullptr, nullptr, handle);
}

TEST(Turns, the_steps_come_in_order) {
  Port port(2);
  port.before_wait();
  const std::string calls = port.calls();
  EXPECT_EQ(calls.rfind("clock random", 0), 0u) << calls;
  EXPECT_EQ(calls.substr(calls.find(" flush")), " flush0 flush1 connect0 connect1 clock event7 clock event7 arm");
}

// The loop stood still until a master's time was over. The port has to look at its sockets before the master is judged,
// and the timer fires at once, so that this look does not wait.
TEST(Turns, silence_is_judged_behind_a_look_at_the_sockets) {
  Port port(1);
  port.before_wait();
  port.connected(0, port.time);
  port.before_wait();
  const Instant due = port.client().deadline();
  port.time = due + Duration::ms(10'000);
  port.timer_fired();
  port.before_wait();
  EXPECT_EQ(port.client().session(0).state(), Session::State::greeting) << "its answer may have come";
  EXPECT_LE(port.armed_for(), port.time);
  port.before_wait(false);
  port.timer_fired();
  port.before_wait(false);
  EXPECT_EQ(port.client().session(0).state(), Session::State::greeting) << "not every socket was read";
  port.timer_fired();
  port.before_wait();
  EXPECT_NE(port.client().session(0).state(), Session::State::greeting);
}

TEST(Turns, a_timer_that_could_not_be_set_is_tried_again) {
  Port port(1);
  port.can_arm = false;
  port.before_wait();
  EXPECT_EQ(port.armed_for(), Instant::never());
  port.calls();
  port.can_arm = true;
  port.before_wait();
  EXPECT_EQ(port.calls(), "arm");
  EXPECT_EQ(port.armed_for(), port.client().deadline());
}

TEST(Turns, the_timer_is_armed_when_the_deadline_moves_nearer_and_not_when_it_moves_away) {
  Port port(1);
  port.before_wait();
  port.calls();
  const Instant before = port.armed_for();
  port.connected(0, port.time);
  port.before_wait();
  const bool nearer = port.client().deadline() < before;
  EXPECT_EQ(port.calls().find(" arm") != std::string::npos, nearer);
  EXPECT_EQ(port.armed_for(), earlier(before, port.client().deadline()));
}

TEST(Turns, a_jump_is_told_once_and_before_the_turn) {
  Port port(1);
  port.before_wait();
  port.jumped = true;
  port.touch();
  port.before_wait();
  redlock_status_t status;
  port.client().notices().status(status, port.client().now());
  EXPECT_EQ(status.clock_jumps, 1u);
}

// A callback that asks for a lock each time its lock has failed: the loop comes round in between, and comes back at
// once.
TEST(Turns, a_callback_that_always_asks_does_not_keep_the_loop) {
  Port port(1);
  port.before_wait();
  port.closed(0, REDLOCK_E_CONNECT, port.time);
  port.before_wait();
  port.calls();
  unsigned asked = 0;
  port.callback = [&] { asked += acquire(port) == 0 ? 1u : 0u; };
  ASSERT_EQ(acquire(port), 0);
  port.before_wait();
  const std::string calls = port.calls();
  EXPECT_GE(asked, 4u) << calls;
  EXPECT_LE(asked, 16u);
  EXPECT_EQ(calls.substr(calls.rfind(' ') + 1), "arm-at-once");
  EXPECT_TRUE(port.pending());
  EXPECT_FALSE(port.stepping());
}

TEST(Turns, the_end_is_told_once_and_no_turn_follows) {
  Port port(1);
  port.before_wait();
  port.connected(0, port.time);
  port.before_wait();
  ASSERT_EQ(port.client().close(Duration(), port.time), 0);
  port.calls();
  port.before_wait();
  const std::string calls = port.calls();
  EXPECT_NE(calls.find("close0"), std::string::npos) << calls;
  EXPECT_EQ(calls.substr(calls.rfind(' ') + 1), "ended") << "no timer is armed any more: " << calls;
  EXPECT_TRUE(port.stepping()) << "for good";
}

}  // namespace
}  // namespace redlock
