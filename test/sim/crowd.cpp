// SPDX-License-Identifier: MIT
//
// Crowd: what it costs to wait, and how fair it is, in virtual time. Many clients want one resource of five healthy
// masters: each holds it for 5 ms, and asks again 10 ms after its release. The clients are those that ship; the masters
// are RedisDoubles; a message takes about 0.1 ms each way. Nothing depends on the machine, so the limits stand close
// above what is reached, and the same seeds print the same numbers everywhere. Each number is the median of five seeds.
//
//   sim_crowd [--seed N] [--grants N] [--spread US] [CLIENTS...]   without CLIENTS: 8 and 64, judged by their limits
//
// hand-over        from a release to the next grant, where somebody waited at the release
// share            hold + the median hand-over, x those who waited when this client began to wait, itself included
// Jain's index     (sum of grants)^2 / (clients x sum of squares): 1: all got as many; 1 / clients: one got all
// commands         of all masters, from the first acquire to the last grant
// wasted rounds    rounds that were lost
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "client/turns.hpp"
#include "heap.hpp"
#include "random.hpp"
#include "support/guard_scripts.hpp"
#include "support/lock_scripts.hpp"
#include "support/redis_double.hpp"

namespace redlock::sim {
namespace {

constexpr unsigned masters = 5;
constexpr unsigned grants_wanted = 1600;
constexpr unsigned seeds = 5;
constexpr Ns hold = 5 * ms;
constexpr Ns think = 10 * ms;
constexpr Ns usual_delay = 100 * us;
constexpr Ns greeted_at = 50 * ms;  // all connections are up: everybody asks
constexpr const char resource[] = "bus";

struct Rules {
  uint64_t seed = 1;
  unsigned grants = grants_wanted;
  Ns spread = 40 * us;  // a delay is between usual_delay - spread and usual_delay + 3 * spread
};

// What a run may cost at most.
struct Limits {
  unsigned clients;
  double p50_ms, p99_ms, shares, commands, wasted;
};

enum Column : unsigned { p50_ms, p99_ms, p999_shares, longest_shares, longest_ms, jain, commands, wasted, columns };
using Result = std::array<double, columns>;

class Crowd;

// One direction of a connection.
struct Flow {
  std::vector<std::pair<Ns, std::string>> messages;  // when each arrives
  size_t first = 0;
};

class Gateway : public Turns<Gateway> {
 public:
  Gateway(Crowd& crowd, unsigned index);
  Client& client() const { return *client_; }
  void on_timer(Ns due);
  void on_arrival(unsigned m, const std::string& bytes);

  // The port's functions.
  Reading clock_reading() const;
  int64_t boot_ms() const;
  size_t fill_random(unsigned char* out, size_t size);
  bool can_connect(MasterIndex) const { return true; }
  void connect(MasterIndex m, Instant now);
  void close(MasterIndex, int, bool, Instant) { abort(); }
  void flush(MasterIndex m, Instant);
  void event(const Client::Event& event);
  bool arm(Instant deadline);
  void ended() { abort(); }

  Ns wanted_at = never;  // never: does not wait
  unsigned others = 0;   // waited when it began to wait, itself included
  unsigned grants = 0;
  int conn[masters] = {};
  Flow up[masters], down[masters];

 private:
  void ask();

  Crowd& crowd_;
  unsigned index_;
  Stream entropy_;
  std::unique_ptr<char[]> memory_;
  Client* client_ = nullptr;
  uint64_t handle_ = 0;
  Ns armed_ = never;
  Ns act_at_ = greeted_at;  // asks, or releases
};

class Crowd {
 public:
  Crowd(const Rules& rules, unsigned clients);
  Result run();
  void send(unsigned c, unsigned m, std::string bytes, bool up);
  void wanted(Gateway& g);
  void granted(Gateway& g, unsigned rounds);
  void released();

  const Rules rules;
  Ns now = 0;
  Heap heap;
  std::vector<std::unique_ptr<Gateway>> gateways;
  std::vector<std::unique_ptr<test::RedisDouble>> redis;

 private:
  void take_replies(unsigned m);
  uint64_t received() const;
  Result result() const;

  struct Wait {
    Ns length;
    unsigned others;
  };
  Stream delays_;
  std::vector<Ns> handovers_;
  std::vector<Wait> waits_;
  std::vector<int> client_of_[masters];  // by the double's number of a connection
  Ns released_at_ = never;
  uint64_t commands_before_ = 0;
  unsigned waiting_ = 0, held_ = 0;
  unsigned wasted_ = 0;
};

// ---- a client and its port -----------------------------------------------------------------------------------------

Gateway::Gateway(Crowd& crowd, unsigned index)
    : crowd_(crowd), index_(index), entropy_(crowd.rules.seed, Purpose::entropy, index) {
  static constexpr const char* names[] = {"m1", "m2", "m3", "m4", "m5"};
  Settings settings;
  settings.masters = masters;
  for (MasterIndex m = 0; m < masters; ++m) {
    settings.master[m].name = Bytes(names[m], 2);
    settings.master[m].host = Bytes("127.0.0.1");
  }
  settings.locks = 1;
  settings.debts = 8;
  settings.ping_interval = Duration::ms(REDLOCK_PING_INTERVAL_MS_MAX);
  constexpr size_t front = (sizeof(Client) + 15) - size_t{15};
  memory_.reset(new char[front + Client::memory_size(settings)]);
  client_ = new (memory_.get()) Client(settings, memory_.get() + front);
  crowd_.heap.push(act_at_, Kind::loop, index_);
}

Reading Gateway::clock_reading() const { return {Instant::from_ns(3600 * second + crowd_.now), false}; }
int64_t Gateway::boot_ms() const { return crowd_.now / ms; }

size_t Gateway::fill_random(unsigned char* out, size_t size) {
  for (size_t i = 0; i < size; ++i) out[i] = static_cast<unsigned char>(entropy_.next() >> 56);
  return size;
}

void Gateway::connect(MasterIndex m, Instant now) {
  conn[m] = crowd_.redis[m]->open(crowd_.now);
  connected(m, now);
}

void Gateway::flush(MasterIndex m, Instant) {
  std::string bytes;
  Bytes chunks[Tx::chunks_max];
  for (unsigned n; (n = client_->output(m).gather(chunks, Tx::chunks_max)) > 0;) {
    size_t size = 0;
    for (unsigned i = 0; i < n; ++i) bytes.append(chunks[i].data, chunks[i].size), size += chunks[i].size;
    client_->sent(m, size);
  }
  if (!bytes.empty()) crowd_.send(index_, m, std::move(bytes), true);
}

bool Gateway::arm(Instant deadline) {
  armed_ = std::max(crowd_.now, deadline.ns() - 3600 * second);
  crowd_.heap.push(armed_, Kind::loop, index_);
  return true;
}

void Gateway::on_timer(Ns due) {
  if (due == act_at_) {
    act_at_ = never;
    if (handle_ == 0) {
      ask();
    } else {
      crowd_.released();
      if (client_->release(handle_) != 0) abort();
    }
  }
  if (due == armed_) {
    armed_ = never;
    timer_fired();
  }
  before_wait();
}

void Gateway::on_arrival(unsigned m, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    size_t room = 0;
    char* to = client_->rx_room(m, room);
    const size_t size = std::min(room, bytes.size() - at);
    memcpy(to, bytes.data() + at, size);
    client_->received(m, size, now());
    at += size;
  }
  before_wait();
}

void Gateway::ask() {
  const Bytes name(resource, sizeof resource - 1);
  char packed[16];
  Names names;
  names.assign(packed, &name, 1);
  const CommonSettings& s = client_->settings();
  const Options options = {s.ttl_ms, REDLOCK_WAIT_FOREVER, 0, 0, s.retry_delay_ms, true};
  if (client_->acquire(names, options, nullptr, nullptr, handle_) != 0) abort();
  crowd_.wanted(*this);
}

void Gateway::event(const Client::Event& event) {
  switch (event.event.type) {
    case REDLOCK_EV_MASTER:
      return;
    case REDLOCK_EV_ACQUIRED:
      act_at_ = crowd_.now + hold;
      crowd_.granted(*this, event.event.rounds);
      break;
    case REDLOCK_EV_RELEASED:
      handle_ = 0;
      act_at_ = crowd_.now + think;
      break;
    default:
      abort();
  }
  crowd_.heap.push(act_at_, Kind::loop, index_);
}

// ---- the world -----------------------------------------------------------------------------------------------------

Crowd::Crowd(const Rules& r, unsigned clients) : rules(r), delays_(r.seed, Purpose::network) {
  for (unsigned m = 0; m < masters; ++m) {
    redis.push_back(std::make_unique<test::RedisDouble>(m + 1));
    test::register_guard_scripts(*redis[m]);
    test::register_lock_scripts(*redis[m]);
  }
  for (unsigned c = 0; c < clients; ++c) {
    gateways.push_back(std::make_unique<Gateway>(*this, c));
    gateways[c]->before_wait();
  }
}

void Crowd::send(unsigned c, unsigned m, std::string bytes, bool up) {
  Flow& flow = up ? gateways[c]->up[m] : gateways[c]->down[m];
  Ns at = now + delays_.between(usual_delay - rules.spread, usual_delay + rules.spread);
  if (delays_.chance(100)) at += delays_.between(0, 2 * rules.spread);
  if (flow.first < flow.messages.size()) at = std::max(at, flow.messages.back().first);
  flow.messages.emplace_back(at, std::move(bytes));
  heap.push(at, up ? Kind::up : Kind::down, c, m);
}

void Crowd::take_replies(unsigned m) {
  for (unsigned c = 0; c < gateways.size(); ++c) {
    std::string& out = redis[m]->out(gateways[c]->conn[m]);
    if (!out.empty()) send(c, m, std::exchange(out, {}), false);
  }
  redis[m]->take_pushed();
}

Result Crowd::run() {
  while (waits_.size() < rules.grants) {
    const Event event = heap.pop();
    now = event.at;
    Gateway& g = *gateways[event.a];
    if (event.kind == Kind::loop) {
      g.on_timer(event.at);
      continue;
    }
    Flow& flow = event.kind == Kind::up ? g.up[event.b] : g.down[event.b];
    const std::string bytes = std::move(flow.messages[flow.first++].second);
    if (event.kind == Kind::up) {
      redis[event.b]->receive(g.conn[event.b], bytes, now);
      take_replies(event.b);
    } else {
      g.on_arrival(event.b, bytes);
    }
  }
  return result();
}

uint64_t Crowd::received() const {
  uint64_t sum = 0;
  for (const auto& one : redis) sum += one->received();
  return sum;
}

void Crowd::wanted(Gateway& g) {
  if (commands_before_ == 0) commands_before_ = received();
  g.wanted_at = now;
  g.others = ++waiting_;
  if (now != greeted_at) return;
  for (const auto& other : gateways) other->others = waiting_;  // all of them began at once
}

void Crowd::granted(Gateway& g, unsigned rounds) {
  if (++held_ != 1) {
    fprintf(stderr, "two holders\n");
    exit(1);
  }
  if (released_at_ != never) handovers_.push_back(now - released_at_);
  waits_.push_back({now - g.wanted_at, g.others});
  wasted_ += rounds - 1;
  g.wanted_at = never;
  ++g.grants;
  --waiting_;
}

void Crowd::released() {
  --held_;
  released_at_ = waiting_ > 0 ? now : never;
}

template <class T>
T part_of_all(std::vector<T> values, double part) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<size_t>(part * static_cast<double>(values.size())))];
}

Result Crowd::result() const {
  const double grants = static_cast<double>(waits_.size());
  const Ns median = part_of_all(handovers_, .5);
  std::vector<double> shares;
  Ns longest = 0;
  for (const Wait& wait : waits_) {
    shares.push_back(static_cast<double>(wait.length) / (static_cast<double>(hold + median) * wait.others));
    longest = std::max(longest, wait.length);
  }
  double sum = 0, squares = 0;
  for (const auto& g : gateways) sum += g->grants, squares += double(g->grants) * g->grants;
  return {static_cast<double>(median) / ms, static_cast<double>(part_of_all(handovers_, .99)) / ms,
          part_of_all(shares, .999), part_of_all(shares, 1), static_cast<double>(longest) / ms,
          sum * sum / (static_cast<double>(gateways.size()) * squares),
          static_cast<double>(received() - commands_before_) / grants, wasted_ / grants};
}

// ---- the program ---------------------------------------------------------------------------------------------------

Result measure(Rules rules, unsigned clients) {
  std::vector<double> values[columns];
  for (unsigned i = 0; i < seeds; ++i, ++rules.seed) {
    const Result one = Crowd(rules, clients).run();
    for (unsigned c = 0; c < columns; ++c) values[c].push_back(one[c]);
  }
  Result r;
  for (unsigned c = 0; c < columns; ++c) r[c] = part_of_all(values[c], .5);
  printf("%7u %8.2f %8.2f %8.2f %8.2f %8.0f %8.3f %8.1f %8.2f\n", clients, r[p50_ms], r[p99_ms], r[p999_shares],
         r[longest_shares], r[longest_ms], r[jain], r[commands], r[wasted]);
  return r;
}

bool within(const Result& r, const Limits& l) {
  return r[p50_ms] <= l.p50_ms && r[p99_ms] <= l.p99_ms && r[p999_shares] <= l.shares && r[commands] <= l.commands &&
         r[wasted] <= l.wasted;
}

}  // namespace
}  // namespace redlock::sim

int main(int argc, char** argv) {
  using namespace redlock::sim;
  static constexpr Limits limits[] = {{8, 0.65, 2.8, 4, 25, 0.65}, {64, 0.5, 1.8, 3, 58, 3.9}};
  Rules rules;
  std::vector<unsigned> clients;
  for (int i = 1; i < argc; ++i) {
    const bool option = strncmp(argv[i], "--", 2) == 0;
    const unsigned long value = strtoul(argv[option && i + 1 < argc ? i + 1 : i], nullptr, 10);
    if (value == 0 || value > 100000) return fprintf(stderr, "usage: see the top of sim/crowd.cpp\n"), 2;
    if (!option) clients.push_back(static_cast<unsigned>(value));
    if (option && strcmp(argv[i], "--seed") == 0) rules.seed = value;
    if (option && strcmp(argv[i], "--grants") == 0) rules.grants = static_cast<unsigned>(value);
    if (option && strcmp(argv[i], "--spread") == 0) rules.spread = Ns(value) * us;
    if (option) ++i;
  }
  printf("clients   p50 ms   p99 ms   p99.9  longest  long ms     Jain commands   wasted\n");
  if (!clients.empty()) {
    for (const unsigned n : clients) measure(rules, n);
    return 0;
  }
  bool good = true;
  for (const Limits& l : limits) {
    const Result r = measure(rules, l.clients);
    if (within(r, l)) continue;
    good = false;
    printf("limits: %8.2f %8.2f %8.2f %35.1f %8.2f\n", l.p50_ms, l.p99_ms, l.shares, l.commands, l.wasted);
  }
  return good ? 0 : 1;
}
