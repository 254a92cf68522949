// SPDX-License-Identifier: MIT
//
// One whole cycle of the core against masters in memory: every byte is written and read, no kernel is asked. What is
// left of cycle_bench's user time is the driver, libuv and libc.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "client/client.hpp"

namespace redlock {
namespace {

std::string bulk(const std::string& text) { return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n"; }

class Site {
 public:
  explicit Site(unsigned masters) {
    settings_.masters = masters;
    settings_.client_name = "gateway-17";
    for (unsigned m = 0; m < masters; ++m) settings_.master[m].name = settings_.master[m].host = "m";
    memory_.resize(Client::memory_size(settings_) / sizeof(uint64_t) + 1);
    client_ = std::make_unique<Client>(settings_, memory_.data());
    turn();
    for (MasterIndex m = 0; m < masters; ++m) greet(m);
    turn();
    drain_events();
  }

  bool ready() const {
    redlock_status_t status = {};
    client_->notices().status(status, now_);
    return status.masters_up == settings_.masters;
  }

  // False: something else came of it than ACQUIRED and RELEASED.
  bool cycle() {
    uint64_t handle = 0;
    const Options options = {10'000, 0, 0, 0, 100, true};
    if (client_->acquire("cycle:00000001", options, nullptr, nullptr, handle) != 0) return false;
    turn();
    answer("+OK\r\n");
    if (next_event() != REDLOCK_EV_ACQUIRED || client_->release(handle) != 0) return false;
    turn();
    const bool released = next_event() == REDLOCK_EV_RELEASED;
    answer(":1\r\n");
    return released;
  }

 private:
  void turn() {
    now_ = now_ + Duration::us(50);
    refill();
    client_->turn(now_);
    for (MasterIndex m = 0; m < settings_.masters; ++m) {
      if (client_->session(m).wish() == Session::Wish::connect) client_->connecting(m, now_);
      take(m);
    }
    client_->flushed(now_);
  }

  void refill() {
    static constexpr unsigned char bytes[64] = {};
    for (size_t n = client_->entropy_wanted(); n > 0; n = client_->entropy_wanted()) {
      client_->add_entropy(bytes, n < sizeof bytes ? n : sizeof bytes);
    }
  }

  std::string take(MasterIndex m) {
    std::string all;
    Bytes runs[Tx::chunks_max];
    const Tx& tx = client_->output(m);
    if (tx.one_run()) {
      client_->all_sent(m);
      return all;
    }
    const unsigned n = tx.gather(runs, Tx::chunks_max);
    for (unsigned i = 0; i < n; ++i) all.append(runs[i].data, runs[i].size);
    client_->sent(m, all.size());
    return all;
  }

  void say(MasterIndex m, Bytes reply) {
    size_t room = 0;
    memcpy(client_->rx_room(m, room), reply.data, reply.size);
    client_->received(m, reply.size, now_);
  }

  void answer(Bytes reply) {
    for (MasterIndex m = 0; m < settings_.masters; ++m) say(m, reply);
  }

  // HELLO; then what follows it in one write: tracking, scripts, a ping with a nonce.
  void greet(MasterIndex m) {
    client_->connected(m, now_);
    take(m);
    say(m, "%2\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n");
    const std::string rest = take(m);
    for (size_t at = rest.find('*'); at != std::string::npos; at = rest.find("\r\n*", at + 1)) {
      const std::string command = rest.substr(at, 40);
      if (command.find("SCRIPT") != std::string::npos) {
        const std::string reply = bulk(std::string(40, 'a'));
        say(m, Bytes(reply.data(), reply.size()));
      } else if (command.find("PING") != std::string::npos) {
        const std::string nonce = bulk(rest.substr(rest.size() - 10, 8));
        say(m, Bytes(nonce.data(), nonce.size()));
      } else {
        say(m, "+OK\r\n");
      }
    }
  }

  int next_event() {
    Client::Event event;
    if (client_->notices().count() == 0 || !client_->next_event(event, now_)) return 0;
    client_->notices().delivered(event, now_);
    return event.event.type;
  }
  void drain_events() {
    while (next_event() != 0) {
    }
  }

  Settings settings_;
  std::vector<uint64_t> memory_;
  std::unique_ptr<Client> client_;
  Instant now_ = Instant::from_ns(1'000'000'000);
};

void Cycle(benchmark::State& state) {
  Site site(static_cast<unsigned>(state.range(0)));
  if (!site.ready()) return state.SkipWithError("the masters are not up");
  for (auto _ : state) {
    if (!site.cycle()) return state.SkipWithError("no cycle");
  }
}
BENCHMARK(Cycle)->Arg(1)->Arg(3)->Arg(5)->Arg(15);

}  // namespace
}  // namespace redlock
