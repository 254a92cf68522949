// SPDX-License-Identifier: MIT
//
// Crowd: what it costs to wait, and how fair it is, in virtual time. Many clients want one resource of five healthy
// masters: each holds it for a time, and asks again 10 ms after its release. The clients are those that ship; the
// masters are RedisDoubles; a message takes about 0.1 ms each way. Nothing depends on the machine, so the limits stand
// close above what is reached, and the same seeds print the same numbers everywhere. Each number is the median of five
// seeds.
//
//   sim_crowd [--seed N] [--grants N] [--spread US] [--hold MS] [--alarms N | --endless N [--alone N]] [--urgent]
//             [--mix] [CLIENTS...]
//   sim_crowd [--page FILE]
//
// --endless N: N more clients ask again as soon as they have released. Figures are of the others then.
// --alone N: all others begin when an endless one was granted N times.
// --alarms N: N more clients ask at instants of their own, 4 to 40 holds apart, or when the last one is done.
// --mix: all others ask again at once, too.
// --urgent: those do so with REDLOCK_F_URGENT. Without any of them everybody does.
//
// Without CLIENTS the scenes below run, and are judged by their bounds. --page FILE: the figures of those in which
// callers keep what they promise must stand in FILE.
//
// hand-over        from a release to the next grant, where somebody waited at the release
// share            hold + the median hand-over, x those who waited when this client began to wait, itself included
// Jain's index     (sum of grants)^2 / (clients x sum of squares): 1: all got as many; 1 / clients: one got all
// commands         of all masters, from the first acquire to the last grant
// wasted rounds    rounds that were lost
// fair             what the others were granted, in parts of what they would be if all clients were granted as many
// alarm            how long --alarms N waited: of all seeds together
// part, left, own  of loops, urgent ones beside others: what the others were granted, in parts of all grants; how long
//                  they waited, and how long the urgent ones did, in shares of what their kind was granted
// others           the others' grants a second; in the scenes below in parts of what they are without --urgent
// cycle            from one grant to the next: the mean, in medians. What giving way costs a client that is alone
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "client/turns.hpp"
#include "heap.hpp"
#include "random.hpp"
#include "support/lua_scripts.hpp"
#include "support/redis_double.hpp"

namespace redlock::sim {
namespace {

constexpr unsigned masters = 5;
constexpr unsigned seeds = 5;
constexpr Ns think = 10 * ms;
constexpr Ns usual_delay = 100 * us;
constexpr Ns greeted_at = 50 * ms;  // all connections are up: everybody asks
constexpr const char resource[] = "bus";

struct Scene {
  unsigned clients = 8;
  Ns hold = 5 * ms;
  unsigned endless = 0;
  unsigned alarms = 0;
  bool urgent = false;
  unsigned grants = 1600;
  unsigned alone = 0;  // so many grants of the first of the endless come before all others begin
  bool mix = false;    // the others ask again at once, too
  bool all_urgent() const { return urgent && endless + alarms == 0; }
};

struct Rules {
  uint64_t seed = 1;
  Scene scene;
  Ns spread = 40 * us;  // a delay is between usual_delay - spread and usual_delay + 3 * spread
};

enum Column : unsigned {
  p50_ms,
  p99_ms,
  p999_shares,
  longest_shares,
  longest_ms,
  jain,
  commands,
  wasted,
  fair,
  cycle,
  alarm_p50,
  alarm_p99,
  alarm_longest,
  others,
  part,
  left_shares,
  own_shares,
  own_longest,
  columns
};
using Result = std::array<double, columns>;
constexpr const char* column_names[columns] = {"p50 ms", "p99 ms",   "p99.9",  "longest", "long ms",
                                               "Jain",   "commands", "wasted", "fair",    "cycle",
                                               "alarm50", "alarm99", "alarm100", "others", "part",
                                               "left", "own", "own100"};
constexpr int digits[columns] = {2, 2, 2, 2, 0, 3, 1, 2, 2, 4, 2, 2, 2, 3, 3, 2, 2, 2};

// What a column may be at most, or at least.
struct Bound {
  Column column;
  double bound;
  bool least = false;
};

struct Judged {
  Scene scene;
  std::vector<Bound> bounds;
};

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
  void begin_at(Ns at);  // asks for the first time
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
  const bool special;  // one of the endless, or of the alarms
  int conn[masters] = {};
  Flow up[masters], down[masters];

 private:
  void ask();
  Ns next();  // when it asks again

  Crowd& crowd_;
  unsigned index_;
  Stream entropy_;
  std::unique_ptr<char[]> memory_;
  Client* client_ = nullptr;
  uint64_t handle_ = 0;
  Stream alarms_;
  Ns alarm_at_ = greeted_at;
  Ns armed_ = never;
  Ns act_at_ = never;  // asks, or releases
};

class Crowd {
 public:
  explicit Crowd(const Rules& rules);
  Result run();
  void send(unsigned c, unsigned m, std::string bytes, bool up);
  void wanted(Gateway& g);
  void note_grant(Gateway& g, unsigned rounds);
  void released();
  const std::vector<Ns>& alarms() const { return alarms_; }

  const Rules rules;
  Ns now = 0;
  Heap heap;
  std::vector<std::unique_ptr<Gateway>> gateways;
  std::vector<std::unique_ptr<test::RedisDouble>> redis;

 private:
  void take_replies(unsigned m);
  uint64_t received() const;
  Result result() const;
  double shares_of(bool special, double part) const;

  struct Wait {
    Ns length;
    unsigned others;
    bool special;
  };
  Stream delays_;
  std::vector<Ns> handovers_;
  std::vector<Wait> waits_;
  std::vector<Ns> granted_at_;
  std::vector<Ns> alarms_;
  Ns released_at_ = never;
  uint64_t commands_before_ = 0;
  unsigned waiting_ = 0, held_ = 0;
  unsigned wasted_ = 0;
};

// ---- a client and its port -----------------------------------------------------------------------------------------

Gateway::Gateway(Crowd& crowd, unsigned index)
    : special(index >= crowd.rules.scene.clients),
      crowd_(crowd),
      index_(index),
      entropy_(crowd.rules.seed, Purpose::entropy, index),
      alarms_(crowd.rules.seed, Purpose::plan, index) {
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
  if (special || crowd.rules.scene.alone == 0) begin_at(greeted_at);
}

void Gateway::begin_at(Ns at) {
  act_at_ = at;
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
  Options options = {s.ttl_ms, REDLOCK_WAIT_FOREVER, 0, 0, s.retry_delay_ms, true};
  options.urgent = crowd_.rules.scene.urgent && (special || crowd_.rules.scene.all_urgent());
  if (client_->acquire(names, options, nullptr, nullptr, handle_) != 0) abort();
  crowd_.wanted(*this);
}

Ns Gateway::next() {
  const Scene& scene = crowd_.rules.scene;
  if (!special) return scene.mix ? crowd_.now : crowd_.now + think;
  if (scene.endless > 0) return crowd_.now;
  alarm_at_ += alarms_.between(4 * scene.hold, 40 * scene.hold);
  return std::max(alarm_at_, crowd_.now);
}

void Gateway::event(const Client::Event& event) {
  switch (event.event.type) {
    case REDLOCK_EV_MASTER:
      return;
    case REDLOCK_EV_ACQUIRED:
      act_at_ = crowd_.now + crowd_.rules.scene.hold;
      crowd_.note_grant(*this, event.event.rounds);
      break;
    case REDLOCK_EV_RELEASED:
      handle_ = 0;
      act_at_ = next();
      break;
    default:
      abort();
  }
  crowd_.heap.push(act_at_, Kind::loop, index_);
}

// ---- the world -----------------------------------------------------------------------------------------------------

Crowd::Crowd(const Rules& r) : rules(r), delays_(r.seed, Purpose::network) {
  for (unsigned m = 0; m < masters; ++m) {
    redis.push_back(std::make_unique<test::RedisDouble>(m + 1));
    test::register_scripts(*redis[m]);
  }
  for (unsigned c = 0; c < r.scene.clients + r.scene.endless + r.scene.alarms; ++c) {
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
  while (waits_.size() < rules.scene.grants) {
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

void Crowd::note_grant(Gateway& g, unsigned rounds) {
  if (++held_ != 1) {
    fprintf(stderr, "two holders\n");
    exit(1);
  }
  if (released_at_ != never) handovers_.push_back(now - released_at_);
  waits_.push_back({now - g.wanted_at, g.others, g.special});
  if (g.special && rules.scene.alarms > 0) alarms_.push_back(now - g.wanted_at);
  granted_at_.push_back(now);
  wasted_ += rounds - 1;
  g.wanted_at = never;
  --waiting_;
  if (++g.grants != rules.scene.alone || !g.special) return;
  for (const auto& other : gateways) {
    if (!other->special) other->begin_at(now);
  }
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

// How long those of one kind waited, in fair shares of what their kind was granted: also those who wait still.
double Crowd::shares_of(bool special, double part) const {
  std::vector<Ns> lengths;
  unsigned clients = 0, grants = 0;
  for (const Wait& wait : waits_) {
    if (wait.special == special) lengths.push_back(wait.length), ++grants;
  }
  for (const auto& g : gateways) {
    if (g->special != special) continue;
    ++clients;
    if (g->wanted_at != never) lengths.push_back(now - g->wanted_at);
  }
  if (grants == 0) return clients == 0 ? 0 : 999;
  const double share = static_cast<double>(granted_at_.back() - granted_at_.front()) / grants * clients;
  return static_cast<double>(part_of_all(lengths, part)) / share;
}

Result Crowd::result() const {
  const double grants = static_cast<double>(waits_.size());
  const Scene& scene = rules.scene;
  const Ns median = handovers_.empty() ? 0 : part_of_all(handovers_, .5);
  std::vector<double> shares;
  Ns longest = 0;
  for (const Wait& wait : waits_) {
    if (wait.special && scene.clients > 0) continue;
    shares.push_back(static_cast<double>(wait.length) / (static_cast<double>(scene.hold + median) * wait.others));
    longest = std::max(longest, wait.length);
  }
  for (const auto& g : gateways) {
    if (!g->special && g->wanted_at != never) longest = std::max(longest, now - g->wanted_at);
  }
  double sum = 0, squares = 0;
  for (const auto& g : gateways) {
    if (!g->special) sum += g->grants, squares += double(g->grants) * g->grants;
  }
  std::vector<Ns> cycles;
  for (size_t i = 1; i < granted_at_.size(); ++i) cycles.push_back(granted_at_[i] - granted_at_[i - 1]);
  Result r = {};
  r[p50_ms] = static_cast<double>(median) / ms;
  r[p99_ms] = handovers_.empty() ? 0 : static_cast<double>(part_of_all(handovers_, .99)) / ms;
  r[p999_shares] = shares.empty() ? 0 : part_of_all(shares, .999);
  r[longest_shares] = shares.empty() ? 0 : part_of_all(shares, 1);
  r[longest_ms] = static_cast<double>(longest) / ms;
  r[jain] = squares > 0 ? sum * sum / (scene.clients * squares) : 1;
  r[commands] = static_cast<double>(received() - commands_before_) / grants;
  r[wasted] = wasted_ / grants;
  r[fair] = scene.clients > 0 ? sum / grants * static_cast<double>(gateways.size()) / scene.clients : 1;
  r[cycle] = static_cast<double>(granted_at_.back() - granted_at_.front()) / (grants - 1) /
             static_cast<double>(part_of_all(cycles, .5));
  r[part] = sum / grants;
  r[left_shares] = shares_of(false, .999);
  r[own_shares] = shares_of(true, .999);
  r[own_longest] = shares_of(true, 1);
  r[others] = sum * second / static_cast<double>(granted_at_.back() - granted_at_.front());
  return r;
}

// ---- the program ---------------------------------------------------------------------------------------------------

Result measure(Rules rules) {
  std::vector<double> values[columns];
  std::vector<Ns> alarms;
  for (unsigned i = 0; i < seeds; ++i, ++rules.seed) {
    Crowd crowd(rules);
    const Result one = crowd.run();
    alarms.insert(alarms.end(), crowd.alarms().begin(), crowd.alarms().end());
    for (unsigned c = 0; c < columns; ++c) values[c].push_back(one[c]);
  }
  Result r;
  for (unsigned c = 0; c < columns; ++c) r[c] = part_of_all(values[c], .5);
  for (unsigned i = 0; i < 3 && !alarms.empty(); ++i) {
    static constexpr double parts[] = {.5, .99, 1};
    r[alarm_p50 + i] = static_cast<double>(part_of_all(alarms, parts[i])) / ms;
  }
  const Scene& s = rules.scene;
  printf("%7u %7.0f %7u %6u %6s", s.clients, static_cast<double>(s.hold) / ms, s.endless, s.alarms,
         s.urgent ? "yes" : "");
  for (unsigned c = 0; c < columns; ++c) printf(" %8.*f", digits[c], r[c]);
  printf("\n");
  return r;
}

// The line of a scene in the table of the page.
std::string line(const Scene& s, const Result& r) {
  char who[64] = "-", text[256];
  if (s.endless > 0) snprintf(who, sizeof who, "loops: %u", s.endless);
  if (s.alarms > 0) snprintf(who, sizeof who, "urgent: %u", s.alarms);
  int n = snprintf(text, sizeof text, "| %u, %.0f ms | %s | %.2f / %.1f | %.1f | %.0f | %.1f |", s.clients,
                   static_cast<double>(s.hold) / ms, who, r[p50_ms], r[p99_ms], r[p999_shares], r[commands], r[wasted]);
  if (s.endless > 0) {
    snprintf(text + n, sizeof text - static_cast<size_t>(n), " %.0f %% | |", 100 * r[fair]);
  } else if (s.alarms > 0) {
    snprintf(text + n, sizeof text - static_cast<size_t>(n), " %.0f %% | %.1f / %.1f |", 100 * r[others], r[alarm_p50],
             r[alarm_p99]);
  } else {
    snprintf(text + n, sizeof text - static_cast<size_t>(n), " | |");
  }
  return text;
}

bool judge(Rules rules, const Judged& judged, const std::string& page) {
  rules.scene = judged.scene;
  Result result = measure(rules);
  if (judged.scene.alarms > 0) {
    rules.scene.urgent = false;
    result[others] /= measure(rules)[others];
  }
  bool good = true;
  for (const Bound& bound : judged.bounds) {
    const double is = result[bound.column];
    if (bound.least ? is >= bound.bound : is <= bound.bound) continue;
    good = false;
    printf("%s: %.4f, bound %.4f\n", column_names[bound.column], is, bound.bound);
  }
  const std::string told = line(judged.scene, result);
  const Scene& s = judged.scene;
  const bool is_told = s.clients > 0 && s.alone == 0 && !s.mix && (!s.urgent || s.alarms == 1);
  if (page.empty() || !is_told || page.find(told + "\n") != std::string::npos) return good;
  printf("the page lacks this line:\n%s\n", told.c_str());
  return false;
}

}  // namespace
}  // namespace redlock::sim

int main(int argc, char** argv) {
  using namespace redlock::sim;
  static const Judged all[] = {
      {{8, 5 * ms}, {{p50_ms, 0.72}, {p99_ms, 2.8}, {p999_shares, 4}, {commands, 25}, {wasted, 0.65}}},
      {{64, 5 * ms}, {{p50_ms, 0.58}, {p99_ms, 1.8}, {p999_shares, 3}, {commands, 58}, {wasted, 3.9}}},
      {{8, 100 * ms}, {{p50_ms, 0.72}, {p999_shares, 4}, {commands, 30}, {wasted, 0.8}}},
      {{64, 100 * ms}, {{p50_ms, 0.58}, {p999_shares, 3}, {commands, 80}, {wasted, 5}}},
      {{8, 5 * ms, 1}, {{fair, 0.5, true}, {p999_shares, 8}}},
      {{8, 5 * ms, 2}, {{fair, 0.5, true}, {p999_shares, 8}}},
      {{64, 5 * ms, 1}, {{fair, 0.5, true}, {p999_shares, 8}}},
      {{64, 5 * ms, 2}, {{fair, 0.5, true}, {p999_shares, 8}}},
      {{0, 5 * ms, 1}, {{cycle, 1.01}}},  // alone
      {{0, 100 * ms, 1}, {{cycle, 1.01}}},
      // Whoever comes to a loop that was alone for long.
      {{1, 5 * ms, 1, 0, false, 2400, 2000}, {{longest_ms, 2000}}},
      {{1, 100 * ms, 1, 0, false, 2400, 2000}, {{longest_ms, 500}}},
      {{8, 5 * ms, 1, 0, false, 2400, 2000}, {{longest_ms, 300}}},
      {{8, 100 * ms, 1, 0, false, 2400, 2000}, {{longest_ms, 3500}}},
      {{8, 5 * ms, 0, 1, true, 3200}, {{alarm_p99, 5.8}, {others, 0.95, true}}},
      {{64, 5 * ms, 0, 1, true, 3200}, {{alarm_p99, 6.2}, {others, 0.95, true}}},
      {{8, 100 * ms, 0, 1, true}, {{alarm_p99, 100.8}, {others, 0.95, true}}},
      {{64, 100 * ms, 0, 1, true}, {{alarm_p99, 101.2}, {others, 0.95, true}}},
      // What the callers promise is broken: figures, and nobody starves or drowns the masters.
      {{8, 5 * ms, 0, 2, true}, {{others, 0.9, true}}},
      {{64, 5 * ms, 0, 2, true}, {{others, 0.9, true}}},
      {{8, 5 * ms, 0, 4, true}, {{others, 0.8, true}}},
      {{64, 5 * ms, 0, 4, true}, {{others, 0.75, true}}},
      {{8, 5 * ms, 1, 0, true}, {{fair, 0.7, true}, {p999_shares, 5}}},
      {{8, 5 * ms, 2, 0, true}, {{fair, 0.6, true}, {p999_shares, 5}}},
      {{8, 5 * ms, 0, 0, true}, {{commands, 30}, {wasted, 1}, {p999_shares, 5}}},
      {{64, 5 * ms, 0, 0, true}, {{commands, 90}, {wasted, 7}, {p999_shares, 6.5}}},
      // Loops without a pause, urgent ones beside others.
      {{1, 10 * ms, 1, 0, true, 3000, 0, true}, {{part, 0.125, true}, {left_shares, 2.5}, {own_shares, 8}}},
      {{8, 10 * ms, 1, 0, true, 3000, 0, true}, {{part, 0.125, true}, {left_shares, 5.5}, {own_shares, 8}}},
      {{1, 10 * ms, 2, 0, true, 3000, 0, true}, {{part, 0.125, true}, {left_shares, 4.5}, {own_shares, 8}}},
      {{8, 10 * ms, 2, 0, true, 3000, 0, true}, {{part, 0.125, true}, {left_shares, 5.5}, {own_shares, 8}}},
      {{1, 10 * ms, 4, 0, true, 3000, 0, true}, {{part, 0.125, true}, {left_shares, 6.5}, {own_shares, 8}}},
      {{8, 10 * ms, 4, 0, true, 3000, 0, true}, {{part, 0.125, true}, {left_shares, 5.5}, {own_shares, 8}}},
      {{1, 10 * ms, 8, 0, true, 3000, 0, true}, {{part, 0.125, true}, {left_shares, 6.5}, {own_shares, 8}}},
      {{8, 10 * ms, 8, 0, true, 3000, 0, true}, {{part, 0.125, true}, {left_shares, 5.5}, {own_shares, 8}}},
      {{1, 10 * ms, 64, 0, true, 3000, 0, true}, {{part, 0.125, true}, {left_shares, 9.5}, {own_shares, 8}}},
      {{8, 10 * ms, 64, 0, true, 3000, 0, true}, {{part, 0.125, true}, {left_shares, 6.5}, {own_shares, 8}}},
      // An alarm behind loops without a pause.
      {{8, 10 * ms, 0, 1, true, 3000, 0, true}, {{alarm_p50, 6}, {alarm_p99, 18}}},
      {{64, 10 * ms, 0, 1, true, 3000, 0, true}, {{alarm_p50, 6.5}, {alarm_p99, 14.5}}},
  };
  Rules rules;
  std::vector<unsigned> clients;
  std::string page;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--urgent") == 0) {
      rules.scene.urgent = true;
      continue;
    }
    if (strcmp(argv[i], "--mix") == 0) {
      rules.scene.mix = true;
      continue;
    }
    if (strcmp(argv[i], "--page") == 0 && i + 1 < argc) {
      std::ifstream in(argv[++i]);
      page.assign(std::istreambuf_iterator<char>(in), {});
      if (page.empty()) return fprintf(stderr, "no page: %s\n", argv[i]), 2;
      continue;
    }
    const bool option = strncmp(argv[i], "--", 2) == 0;
    const unsigned long value = strtoul(argv[option && i + 1 < argc ? i + 1 : i], nullptr, 10);
    if (value == 0 || value > 100000) return fprintf(stderr, "usage: see the top of sim/crowd.cpp\n"), 2;
    if (!option) clients.push_back(static_cast<unsigned>(value));
    if (option && strcmp(argv[i], "--seed") == 0) rules.seed = value;
    if (option && strcmp(argv[i], "--grants") == 0) rules.scene.grants = static_cast<unsigned>(value);
    if (option && strcmp(argv[i], "--spread") == 0) rules.spread = Ns(value) * us;
    if (option && strcmp(argv[i], "--endless") == 0) rules.scene.endless = static_cast<unsigned>(value);
    if (option && strcmp(argv[i], "--alone") == 0) rules.scene.alone = static_cast<unsigned>(value);
    if (option && strcmp(argv[i], "--alarms") == 0) rules.scene.alarms = static_cast<unsigned>(value);
    if (option && strcmp(argv[i], "--hold") == 0) rules.scene.hold = Ns(value) * ms;
    if (option) ++i;
  }
  printf("clients hold ms endless alarms urgent");
  for (const char* name : column_names) printf(" %8s", name);
  printf("\n");
  for (const unsigned n : clients) {
    rules.scene.clients = n;
    measure(rules);
  }
  if (!clients.empty()) return 0;
  bool good = true;
  for (const Judged& one : all) good = judge(rules, one, page) && good;
  return good ? 0 : 1;
}
