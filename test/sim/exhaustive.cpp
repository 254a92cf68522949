// SPDX-License-Identifier: MIT
//
// Exhaustive: where the simulator draws seeds, this program leaves nothing out. Three masters, two clients, one
// resource; each client asks for the lock once, in one round, and who gets it releases it. Every message waits until it
// is chosen: all orders in which the masters execute and the clients read are gone through, and in each of them at most
// one thing goes wrong, anywhere:
//
//     break   a connection ends. The replies under way are lost; what the master has not read it reads at any later
//             moment, also after the client has come back and has said the same again, or never.
//     late    a request or a reply, and what comes behind it, stays under way until after node_timeout; or until the
//             client gives the connection up, which then breaks as above.
//
// The clients are alike, and so are the masters: what goes wrong, goes wrong between a and master 1, unless
// --every-wire asks for all six.
//
// Time stands still as long as anything but a late message can happen, else it goes on to the next deadline.
//
// The code is the client that ships, on RedisDoubles. Nothing is replayed: a client is one block of memory that never
// moves and never points outside, so a world is copied before each choice, and put back for the next one. Worlds that
// are the same to the last byte have the same future and are entered once; the number of schedules that lead through
// them is summed up on the way back.
//
// Promised, and looked at after every step: never two holders; for each acquire exactly one verdict, and one end of
// what was acquired; without a fault somebody wins. At the end of each schedule, when all masters answer: no key long
// before it would expire, and no debt.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "client/turns.hpp"
#include "support/lua_scripts.hpp"
#include "support/redis_double.hpp"

namespace redlock::test {
namespace {

constexpr unsigned masters = 3;
constexpr unsigned clients = 2;
constexpr TrueTime ns_per_ms = 1'000'000;
constexpr TrueTime keys_gone_after = 3'000 * ns_per_ms;  // several repeats of a delete; a tenth of the ttl
constexpr unsigned ttl_ms = 30'000;
constexpr unsigned advances_max = 3;  // so often time goes on while a broken connection's requests are still unread
constexpr unsigned drain_max = 1'000;
constexpr const char resource[] = "bus";

uint64_t mixed(uint64_t h, uint64_t word) {
  h = (h ^ word) * 0x9E3779B97F4A7C15u;
  return h ^ (h >> 29);
}

uint64_t mixed(uint64_t h, const std::string& text) {
  h = mixed(h, text.size());
  for (const char c : text) h = mixed(h, static_cast<unsigned char>(c));
  return h;
}

Instant local(TrueTime now) { return Instant::from_ns(3'600'000 * ns_per_ms + now); }

// ---- a world ------------------------------------------------------------------------------------------------------

using Messages = std::vector<std::string>;

// What a client's block of memory contained.
struct Image {
  std::vector<uint64_t> words;
  uint64_t hash = 0;
};

struct Wire {
  int conn = 0;
  bool up = false;
  Messages requests;  // written, not read by the master
  Messages replies;   // not read by the client
};

struct Party {
  std::shared_ptr<const Image> image;
  Wire wire[masters];
  uint64_t handle = 0;
  uint64_t entropy = 0;
  unsigned verdicts = 0;
  unsigned ends = 0;
  bool acquired = false;
  bool released = false;
  Instant deadline;
  Instant held_until = Instant::from_ns(INT64_MIN);  // a check passes until then
};

enum class Fault : uint8_t { none_yet, broken, late_request, late_reply, over };

struct World {
  TrueTime now = 0;
  Party party[clients];
  std::shared_ptr<RedisDouble> redis[masters];
  Fault fault = Fault::none_yet;
  unsigned fault_client = 0;
  unsigned fault_master = 0;
  unsigned advances = 0;     // since the fault
  int unread_conn = 0;       // of the connection that broke,
  Messages unread;           // and what the master has not read of it
};

enum class Do : uint8_t {
  execute, deliver, release, execute_unread, drop_unread, end_delay, advance, break_wire, delay_request, delay_reply
};

struct Choice {
  Do what;
  unsigned client = 0;
  unsigned master = 0;
};

std::string in_words(const Choice& choice) {
  static constexpr const char* names[] = {"master executes",      "client reads",          "client releases",
                                          "broken wire executes", "broken wire is dropped", "the delay ends",
                                          "time goes on",         "wire breaks",            "request is late",
                                          "reply is late"};
  std::string text = std::string(1, "ab"[choice.client]) + std::to_string(choice.master + 1) + "  ";
  return text + names[static_cast<unsigned>(choice.what)];
}

class Explorer {
 public:
  explicit Explorer(bool every_wire);
  double run();
  void report(double schedules) const;

 private:
  // ---- a client and its port
  class Port;
  Client& client(unsigned c) { return *reinterpret_cast<Client*>(block_[c].data()); }
  void load(const World& w, unsigned c);
  void save(World& w, unsigned c);
  void step(World& w, unsigned c);
  void hang_up(World& w, unsigned c, MasterIndex m);
  void read(World& w, unsigned c, MasterIndex m, const std::string& bytes);

  // ---- choices
  std::vector<Choice> choices(const World& w) const;
  void faults(const World& w, std::vector<Choice>& out) const;
  void apply(World& w, const Choice& choice);
  std::string execute(World& w, MasterIndex m, int conn, const std::string& request);
  void advance(World& w);
  double explore(const World& w);
  void finish(World w);
  uint64_t hash(const World& w) const;

  // ---- what is looked at
  void check(const World& w);
  void check_no_keys(const World& w);
  [[noreturn]] void violation(const std::string& what) const;

  const bool every_wire_;
  Settings settings_;
  std::array<std::vector<uint64_t>, clients> block_;
  std::array<std::shared_ptr<const Image>, clients> loaded_;
  std::unordered_map<uint64_t, double> known_;  // a world → schedules from here on
  std::vector<Choice> story_;
  uint64_t steps_ = 0;
  uint64_t ends_ = 0;
  uint64_t won_by_[clients] = {};
  uint64_t won_by_both_ = 0;
  uint64_t won_by_none_ = 0;
  uint64_t with_fault_ = 0;
};

Explorer::Explorer(bool every_wire) : every_wire_(every_wire) {
  static constexpr const char* names[] = {"m1", "m2", "m3"};
  settings_.masters = masters;
  for (MasterIndex m = 0; m < masters; ++m) {
    settings_.master[m].name = Bytes(names[m], 2);
    settings_.master[m].host = Bytes("127.0.0.1");
  }
  settings_.ttl_ms = settings_.max_ttl_ms = ttl_ms;
  settings_.suspect_close = Duration::ms(200);
  settings_.ping_interval = Duration::ms(REDLOCK_PING_INTERVAL_MS_MAX);
  settings_.locks = 1;
  settings_.debts = 4;
  settings_.in_flight = 8;
  settings_.rx_bytes = REDLOCK_RX_BYTES_MIN;
}

// ---- a client in its block ----------------------------------------------------------------------------------------

void Explorer::load(const World& w, unsigned c) {
  const std::shared_ptr<const Image>& image = w.party[c].image;
  if (loaded_[c] == image) return;
  memcpy(block_[c].data(), image->words.data(), image->words.size() * sizeof(uint64_t));
  loaded_[c] = image;
}

void Explorer::save(World& w, unsigned c) {
  auto image = std::make_shared<Image>();
  image->words = block_[c];
  for (const uint64_t word : image->words) image->hash = mixed(image->hash, word);
  Party& party = w.party[c];
  party.image = loaded_[c] = image;
  party.held_until = Instant::from_ns(INT64_MIN);
  const ValidityCell* cell = client(c).cell(party.handle);
  if (cell == nullptr) return;
  const ValidityCell::Snapshot seen = cell->read();
  const bool valid = seen.generation == Table::generation(party.handle) && !cell->expired(seen.generation);
  if (valid) party.held_until = seen.valid_until;
}

// The library's loop over a world. Between two steps the loop is at rest, so it keeps nothing that belongs to a world
// but the time that its timer was armed for; the deadline of a world is that of its own last step.
class Explorer::Port : public Turns<Port> {
 public:
  Port(Explorer& explorer, World& w, unsigned c) : explorer_(explorer), w_(w), c_(c), party_(w.party[c]) {}

  Client& client() { return explorer_.client(c_); }
  Reading clock_reading() const { return {local(w_.now), false}; }
  int64_t boot_ms() const { return w_.now / ns_per_ms; }
  size_t fill_random(unsigned char* out, size_t size) {
    for (size_t i = 0; i < size; ++i) out[i] = static_cast<unsigned char>(mixed(c_ + 1, ++party_.entropy) >> 32);
    return size;
  }
  bool can_connect(MasterIndex) const { return true; }
  void close(MasterIndex m, int reason, bool, Instant now) {
    explorer_.hang_up(w_, c_, m);
    closed(m, reason, now);
  }
  bool arm(Instant deadline) {
    party_.deadline = deadline;
    return true;
  }
  void ended() { explorer_.violation("a client ends that nobody closed"); }

  void flush(MasterIndex m, Instant) {
    const Tx& tx = client().output(m);
    std::string bytes;
    Bytes chunks[Tx::chunks_max];
    const unsigned n = tx.gather(chunks, Tx::chunks_max);
    for (unsigned i = 0; i < n; ++i) bytes.append(chunks[i].data, chunks[i].size);
    if (bytes.empty()) return;
    client().sent(m, bytes.size());
    party_.wire[m].requests.push_back(bytes);
  }

  // A greeting is one step: nothing else depends on its order.
  void connect(MasterIndex m, Instant now) {
    Wire& wire = party_.wire[m];
    w_.redis[m] = std::make_shared<RedisDouble>(*w_.redis[m]);
    wire = {};
    wire.conn = w_.redis[m]->open(w_.now);
    wire.up = true;
    connected(m, now);
    while (client().session(m).state() == Session::State::greeting) {
      flush(m, now);
      if (wire.requests.empty()) explorer_.violation("a greeting does not go on");
      const std::string reply = explorer_.execute(w_, m, wire.conn, wire.requests.front());
      wire.requests.clear();
      explorer_.read(w_, c_, m, reply);
    }
  }

  void event(const Client::Event& event) {
    switch (event.event.type) {
      case REDLOCK_EV_ACQUIRED:
        party_.acquired = true;
        ++party_.verdicts;
        break;
      case REDLOCK_EV_FAILED:
        ++party_.verdicts;
        break;
      case REDLOCK_EV_RELEASED:
      case REDLOCK_EV_LOST:
        ++party_.ends;
        break;
      default:
        break;
    }
  }

 private:
  Explorer& explorer_;
  World& w_;
  unsigned c_;
  Party& party_;
};

void Explorer::step(World& w, unsigned c) {
  w.party[c].deadline = Instant::never();
  Port port(*this, w, c);
  port.before_wait();
  if (port.pending()) violation("a client does not come to rest");
}

void Explorer::read(World& w, unsigned c, MasterIndex m, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    size_t room = 0;
    char* to = client(c).rx_room(m, room);
    const size_t size = std::min(room, bytes.size() - at);
    memcpy(to, bytes.data() + at, size);
    client(c).received(m, size, local(w.now));
    at += size;
  }
}

void Explorer::hang_up(World& w, unsigned c, MasterIndex m) {
  Wire& wire = w.party[c].wire[m];
  if (w.fault == Fault::none_yet || w.fault_client != c || w.fault_master != m) violation("a healthy connection ends");
  w.unread = wire.requests;
  w.unread_conn = wire.conn;
  w.fault = Fault::broken;
  w.advances = 0;
  wire = {};
}

// ---- choices ------------------------------------------------------------------------------------------------------

std::vector<Choice> Explorer::choices(const World& w) const {
  std::vector<Choice> out;
  bool down = false;
  for (unsigned c = 0; c < clients; ++c) {
    for (MasterIndex m = 0; m < masters; ++m) {
      const Wire& wire = w.party[c].wire[m];
      const bool here = w.fault_client == c && w.fault_master == m;
      if (!wire.requests.empty() && !(here && w.fault == Fault::late_request)) out.push_back({Do::execute, c, m});
      if (!wire.replies.empty() && !(here && w.fault == Fault::late_reply)) out.push_back({Do::deliver, c, m});
      if (!wire.up) down = true;
    }
  }
  const bool quiet = out.empty();
  faults(w, out);
  for (unsigned c = 0; c < clients; ++c) {
    if (w.party[c].acquired && !w.party[c].released) out.push_back({Do::release, c, 0});
  }
  const bool late = w.fault == Fault::late_request || w.fault == Fault::late_reply;
  if (late && w.advances > 0) out.push_back({Do::end_delay, w.fault_client, w.fault_master});
  if (!w.unread.empty()) {
    out.push_back({Do::execute_unread, w.fault_client, w.fault_master});
    out.push_back({Do::drop_unread, w.fault_client, w.fault_master});
  }
  const bool waits = late || (w.unread.empty() ? down : w.advances < advances_max);
  if (quiet && waits) out.push_back({Do::advance, 0, 0});
  return out;
}

// Only what can meet a message.
void Explorer::faults(const World& w, std::vector<Choice>& out) const {
  if (w.fault != Fault::none_yet) return;
  for (unsigned c = 0; c < (every_wire_ ? clients : 1); ++c) {
    for (MasterIndex m = 0; m < (every_wire_ ? masters : 1); ++m) {
      const Wire& wire = w.party[c].wire[m];
      if (!wire.requests.empty() || !wire.replies.empty()) out.push_back({Do::break_wire, c, m});
      if (!wire.requests.empty()) out.push_back({Do::delay_request, c, m});
      if (!wire.replies.empty()) out.push_back({Do::delay_reply, c, m});
    }
  }
}

std::string Explorer::execute(World& w, MasterIndex m, int conn, const std::string& request) {
  w.redis[m] = std::make_shared<RedisDouble>(*w.redis[m]);  // other worlds go on with the old one
  w.redis[m]->receive(conn, request, w.now);
  std::string reply;
  reply.swap(w.redis[m]->out(conn));
  return reply;
}

std::string take_first(Messages& messages) {
  std::string first = messages.front();
  messages.erase(messages.begin());
  return first;
}

void Explorer::apply(World& w, const Choice& choice) {
  const auto [what, c, m] = choice;
  Party& party = w.party[c];
  Wire& wire = party.wire[m];
  ++steps_;
  if (what == Do::break_wire || what == Do::delay_request || what == Do::delay_reply) {
    w.fault_client = c;
    w.fault_master = m;
  }
  switch (what) {
    case Do::execute:
      wire.replies.push_back(execute(w, m, wire.conn, take_first(wire.requests)));
      return;
    case Do::execute_unread:
      execute(w, m, w.unread_conn, take_first(w.unread));
      return;
    case Do::drop_unread:
      w.unread.clear();
      return;
    case Do::delay_request:
      w.fault = Fault::late_request;
      return;
    case Do::delay_reply:
      w.fault = Fault::late_reply;
      return;
    case Do::end_delay:
      w.fault = Fault::over;
      return;
    case Do::advance:
      return advance(w);
    case Do::deliver:
      load(w, c);
      read(w, c, m, take_first(wire.replies));
      break;
    case Do::release:
      load(w, c);
      party.released = true;
      if (client(c).release(party.handle) != 0) violation("release is refused");
      break;
    case Do::break_wire:
      load(w, c);
      w.fault = Fault::broken;
      hang_up(w, c, m);
      client(c).closed(m, REDLOCK_E_DISCONNECTED, local(w.now));
      break;
  }
  step(w, c);
  save(w, c);
}

void Explorer::advance(World& w) {
  const Instant next = earlier(w.party[0].deadline, w.party[1].deadline);
  if (next == Instant::never()) violation("nothing is due any more");
  w.now = std::max(w.now, next.ns() - local(0).ns());
  ++w.advances;
  for (unsigned c = 0; c < clients; ++c) {
    if (local(w.now) < w.party[c].deadline) continue;
    load(w, c);
    step(w, c);
    save(w, c);
  }
}

uint64_t Explorer::hash(const World& w) const {
  uint64_t h = mixed(static_cast<uint64_t>(w.now), static_cast<uint64_t>(w.fault));
  h = mixed(h, w.fault_client * masters + w.fault_master);
  h = mixed(h, w.advances);
  for (const std::string& message : w.unread) h = mixed(h, message);
  for (const Party& party : w.party) {
    h = mixed(h, party.image->hash);
    h = mixed(h, party.verdicts * 64 + party.ends * 4 + (party.acquired ? 2u : 0u) + (party.released ? 1u : 0u));
    for (const Wire& wire : party.wire) {
      h = mixed(h, wire.up ? 1 : 0);
      for (const std::string& message : wire.requests) h = mixed(h, message);
      h = mixed(h, uint64_t{0});
      for (const std::string& message : wire.replies) h = mixed(h, message);
    }
  }
  for (const std::shared_ptr<RedisDouble>& redis : w.redis) {
    h = mixed(h, uint64_t{1});
    for (const std::string& key : redis->keys(w.now)) {
      const auto* const entry = redis->peek(key, w.now);
      h = mixed(mixed(h, entry->value), static_cast<uint64_t>(entry->when_ms));
    }
  }
  return h;
}

double Explorer::explore(const World& w) {
  const uint64_t key = hash(w);
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  double schedules = 0;
  const std::vector<Choice> open = choices(w);
  for (const Choice& choice : open) {
    World next = w;
    story_.push_back(choice);
    apply(next, choice);
    check(next);
    schedules += explore(next);
    story_.pop_back();
  }
  if (open.empty()) {
    finish(w);
    schedules = 1;
  }
  known_[key] = schedules;
  return schedules;
}

// All messages have arrived and all connections are up: from here on there is one schedule.
void Explorer::finish(World w) {
  const TrueTime begin = w.now;
  bool keys_checked = false;
  ++ends_;
  for (unsigned c = 0; c < clients; ++c) {
    if (w.party[c].verdicts != 1) violation("an acquire has no verdict");
    if (w.party[c].acquired && w.party[c].ends != 1) violation("a lock has no end");
  }
  const bool a = w.party[0].acquired, b = w.party[1].acquired;
  if (w.fault == Fault::none_yet && !a && !b) violation("nobody wins, and nothing went wrong");
  ++(a && b ? won_by_both_ : a ? won_by_[0] : b ? won_by_[1] : won_by_none_);
  if (w.fault != Fault::none_yet) ++with_fault_;

  for (unsigned i = 0; i < drain_max; ++i) {
    const std::vector<Choice> open = choices(w);
    const auto message = std::find_if(open.begin(), open.end(), [](const Choice& choice) {
      return choice.what == Do::execute || choice.what == Do::deliver;
    });
    if (message != open.end()) {
      apply(w, *message);
      check(w);
      continue;
    }
    unsigned debts = 0;
    for (unsigned c = 0; c < clients; ++c) {
      load(w, c);
      debts += client(c).claims().debts();
    }
    if (!keys_checked && (debts == 0 || w.now >= begin + keys_gone_after)) {
      check_no_keys(w);
      keys_checked = true;
    }
    if (debts == 0) return;
    apply(w, {Do::advance});
    check(w);
  }
  violation("a debt stays for ever");
}

// ---- what is looked at --------------------------------------------------------------------------------------------

void Explorer::check(const World& w) {
  unsigned holders = 0;
  for (const Party& party : w.party) {
    if (local(w.now) < party.held_until) ++holders;
    if (party.verdicts > 1 || party.ends > 1) violation("told twice");
    if (party.ends > (party.acquired ? 1u : 0u)) violation("an end without a beginning");
  }
  if (holders > 1) violation("two holders");
}

void Explorer::check_no_keys(const World& w) {
  for (MasterIndex m = 0; m < masters; ++m) {
    if (!w.redis[m]->keys(w.now).empty()) violation("a key is left on master " + std::to_string(m + 1));
  }
}

void Explorer::violation(const std::string& what) const {
  std::printf("VIOLATION: %s, after\n", what.c_str());
  for (const Choice& choice : story_) std::printf("  %s\n", in_words(choice).c_str());
  std::exit(1);
}

// Both ask before the first message arrives: time stands still, so who asks later is one whose SETs arrive later.
double Explorer::run() {
  static constexpr const char* names[] = {"a", "b"};
  World w;
  for (MasterIndex m = 0; m < masters; ++m) {
    w.redis[m] = std::make_shared<RedisDouble>(m + 1);
    register_scripts(*w.redis[m]);
  }
  for (unsigned c = 0; c < clients; ++c) {
    settings_.client_name = Bytes(names[c], 1);
    const size_t words = (sizeof(Client) + Client::memory_size(settings_)) / sizeof(uint64_t) + 2;
    block_[c].assign(words, 0);
    static_assert(sizeof(Client) % sizeof(uint64_t) == 0);
    new (block_[c].data()) Client(settings_, block_[c].data() + sizeof(Client) / sizeof(uint64_t));
    step(w, c);
    const Options options = {ttl_ms, 0, 0, 0, REDLOCK_RETRY_DELAY_MS_DEFAULT, false};
    const int err = client(c).acquire(Bytes(resource), options, nullptr, nullptr, w.party[c].handle);
    if (err != 0) violation("acquire is refused");
    step(w, c);
    save(w, c);
  }
  return explore(w);
}

void Explorer::report(double schedules) const {
  std::printf("%.4g schedules, all clean: %zu different worlds, %llu steps\n", schedules, known_.size(),
              static_cast<unsigned long long>(steps_));
  std::printf("ends that differ: %llu, %llu of them with a fault; won by a %llu, by b %llu, by one after the other "
              "%llu, by nobody %llu\n",
              static_cast<unsigned long long>(ends_), static_cast<unsigned long long>(with_fault_),
              static_cast<unsigned long long>(won_by_[0]), static_cast<unsigned long long>(won_by_[1]),
              static_cast<unsigned long long>(won_by_both_), static_cast<unsigned long long>(won_by_none_));
}

}  // namespace
}  // namespace redlock::test

int main(int argc, char** argv) {
  const bool every_wire = argc == 2 && strcmp(argv[1], "--every-wire") == 0;
  if (argc > 1 && !every_wire) {
    std::fprintf(stderr, "usage: sim_exhaustive [--every-wire]\n");
    return 2;
  }
  redlock::test::Explorer explorer(every_wire);
  const double schedules = explorer.run();
  explorer.report(schedules);
  return 0;
}
