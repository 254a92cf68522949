// SPDX-License-Identifier: MIT
//
// Client: its memory and its one deadline. What it does with locks and masters is told by test/scenario; here it lives
// in a block of exactly the size that it asked for, between canaries and a guard page, and its deadline is compared
// with those of all that it owns after every input of long random lives.
#include "client/turns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lock/quorum.hpp"
#include "test/support/lua_scripts.hpp"
#include "test/support/repeats.hpp"
#include "test/support/resp_feed.hpp"

namespace redlock {

namespace {

Instant at(int64_t ms) { return Instant::from_ns(ms * 1'000'000); }
Bytes bytes(std::string_view s) { return Bytes(s.data(), s.size()); }
std::string bulk(std::string_view s) { return "$" + std::to_string(s.size()) + "\r\n" + std::string(s) + "\r\n"; }

// ---- a client in a block of its own ----------------------------------------------------------------------------

// `size` bytes that end at a page that may not be touched, or up to 15 canary bytes before it, with canaries in front.
class Block {
 public:
  explicit Block(size_t size) : size_(size), memory_(front + size + 16) {
    base_ = memory_.last((size + 15) / 16 * 16);
    memset(base_ - front, canary, front);
    memset(base_, 0xA5, size);
    memset(base_ + size, canary, (16 - size % 16) % 16);
  }
  void* base() { return base_; }
  void expect_whole() {
    for (size_t i = 0; i < front; ++i) ASSERT_EQ(base_[-1 - static_cast<long>(i)], canary) << "in front of the block";
    for (size_t i = size_; i % 16 != 0; ++i) ASSERT_EQ(base_[i], canary) << "behind the block";
  }

 private:
  static constexpr size_t front = 64;
  static constexpr char canary = 0x5A;
  size_t size_;
  test::GuardedMemory memory_;
  char* base_;
};

// Settings whose strings live as long as they do.
struct Site {
  explicit Site(unsigned masters, unsigned locks = 4) {
    settings.masters = masters;
    settings.locks = locks;
    settings.in_flight = std::max(8u, 2 * locks);
    settings.debts = 2 * locks + 2;
    settings.client_name = "gw-17";
    for (unsigned m = 0; m < masters; ++m) {
      settings.master[m].name = keep("master-" + std::to_string(m));
      settings.master[m].host = "10.0.0.1";
      settings.master[m].port = static_cast<uint16_t>(7'000 + m);
    }
  }
  Bytes keep(std::string text) {
    texts.push_back(std::make_unique<std::string>(std::move(text)));
    return bytes(*texts.back());
  }
  Settings settings;
  std::vector<std::unique_ptr<std::string>> texts;
};

// A port of the library's loop (client/turns), and masters that answer what a test, or chance, lets them answer.
struct World : Turns<World> {
  explicit World(const Site& site_given)
      : site(site_given),
        block(Client::memory_size(site.settings)),
        masters(site.settings.masters),
        states(site.settings.masters) {
    client_ = new (storage) Client(site.settings, block.base());
  }
  ~World() {
    client_->~Client();
    block.expect_whole();
  }
  World(const World&) = delete;

  struct Master {
    bool open = false;
    std::string incoming;                        // a command that has not come whole
    std::deque<std::vector<std::string>> asked;  // commands without an answer
  };
  // What it keeps when its connection breaks.
  struct State {
    std::string desc, q, seal, visit;  // the guard's record
    unsigned data = 1;                 // each replication id has a number
  };

  // Something happened, perhaps only that time has passed.
  void step() {
    if (closed) return;
    touch();
    before_wait();
    EXPECT_TRUE(closed || !pending()) << "it wants a turn for ever";
    const bool called = client().needs_port();
    for (MasterIndex m = 0; m < masters.size(); ++m) {
      EXPECT_TRUE(called || client().session(m).wish() == Session::Wish::none);
    }
  }

  // ---- the port's functions, for Turns
  Client& client() const { return *client_; }
  Reading clock_reading() { return {now, std::exchange(jumped, false)}; }
  int64_t boot_ms() const { return now.ns() / 1'000'000; }
  size_t fill_random(unsigned char* out, size_t size) {
    if (!entropy) return 0;
    for (size_t i = 0; i < size; ++i) out[i] = static_cast<unsigned char>(dice());
    return size;
  }
  bool can_connect(MasterIndex) const { return true; }
  void connect(MasterIndex, Instant) {}  // a test decides when it comes about
  void close(MasterIndex m, int reason, bool, Instant) { hang_up(m, reason); }
  void event(const Client::Event& event) {
    told.push_back(event.event);
    if (callback) callback(event.event);
  }
  bool arm(Instant) { return true; }
  void ended() { closed = true; }
  void flush(MasterIndex m, Instant = {}) {
    if (!masters[m].open) return;
    Bytes chunk[Tx::chunks_max];
    const unsigned n = client().output(m).gather(chunk, Tx::chunks_max);
    std::string all;
    for (unsigned i = 0; i < n; ++i) all.append(chunk[i].data, chunk[i].size);
    size_t& room = m == slow ? slow_room : socket_room;
    if (all.size() > room) all.resize(room);
    if (room != SIZE_MAX) room -= all.size();
    if (all.empty()) return;
    masters[m].incoming += all;
    client().sent(m, all.size());
    while (parse(masters[m])) {
    }
  }
  static bool parse(Master& master) {
    std::string& in = master.incoming;
    size_t at = 0;
    const auto line = [&](char type) -> long {
      const size_t end = in.find("\r\n", at);
      if (end == std::string::npos) return -1;
      EXPECT_EQ(in[at], type);
      const long n = std::stol(in.substr(at + 1, end - at - 1));
      at = end + 2;
      return n;
    };
    if (in.empty()) return false;
    std::vector<std::string> words;
    const long count = line('*');
    if (count < 0) return false;
    for (long i = 0; i < count; ++i) {
      const long size = at < in.size() ? line('$') : -1;
      if (size < 0 || in.size() < at + static_cast<size_t>(size) + 2) return false;
      words.push_back(in.substr(at, static_cast<size_t>(size)));
      at += static_cast<size_t>(size) + 2;
    }
    in.erase(0, at);
    master.asked.push_back(std::move(words));
    return true;
  }

  void open(MasterIndex m) {
    masters[m].open = true;
    connected(m, now);
  }
  void hang_up(MasterIndex m, int reason) {
    masters[m] = {};
    Turns::closed(m, reason, now);
  }
  void receive(MasterIndex m, std::string_view s) {
    while (!s.empty() && masters[m].open) {
      size_t room = 0;
      char* to = client().rx_room(m, room);
      const size_t n = std::min(room, s.size());
      if (n == 0) return;
      memcpy(to, s.data(), n);
      s.remove_prefix(n);
      client().received(m, n, now);
    }
  }
  // The answer of a master that has everything and refuses nothing.
  std::string good_answer(MasterIndex m, const std::vector<std::string>& words) {
    const bool tells_id = words[0] == "CLIENT" && (words[1] == "ID" || words[1] == "KILL");
    if (words[0] == "HELLO") {
      return "%3\r\n" + bulk("id") + ":7\r\n" + bulk("role") + bulk("master") + bulk("mode") + bulk("standalone");
    }
    if (words[0] == "PING") return bulk(words[1]);
    if (words[0] == "CLIENT" && !tells_id) return "+OK\r\n";
    if (words[0] == "SCRIPT") return bulk("digest");
    if (words[0] == "INFO") return bulk("redis_mode:standalone\r\nrun_id:111111111111111" + std::to_string(m) + "\r\n");
    if (words[0] == "TIME") {
      const int64_t us = now.ns() / 1'000;
      return "*2\r\n" + bulk(std::to_string(us / 1'000'000)) + bulk(std::to_string(us % 1'000'000));
    }
    if (says(words, reading_script)) return reading(m);
    if (says(words, record_script)) states[m] = {words[8], words[9], words[10], "", states[m].data};
    if (says(words, visit_script)) states[m].visit = words[6].substr(17) + " " + words[7];
    return words[0] == "SET" || says(words, acquire_script) ? "+OK\r\n" : ":1\r\n";
  }
  static bool says(const std::vector<std::string>& words, const Script& script) {
    if (words[0] != "EVAL" && words[0] != "EVALSHA") return false;
    return words[1] == test::text_of(script) || Bytes(words[1].data(), words[1].size()) == script.sha;
  }
  std::string reading(MasterIndex m, const std::string& role = "master") const {
    const State& state = states[m];
    const std::string id = std::to_string(10'000'000 + state.data) + "22222222";
    std::string all = "*6\r\n" + bulk("role:" + role + "\r\nconnected_slaves:0\r\nmaster_replid:" + id +
                                      "\r\nrepl_backlog_active:" + (state.data % 3 == 0 ? "1" : "0") + "\r\n");
    for (const std::string* field : {&state.desc, &state.q, &state.seal, &state.visit}) {
      all += field->empty() ? "_\r\n" : bulk(*field);
    }
    return all + "_\r\n";
  }
  void answer(MasterIndex m, const std::string& reply = "") {
    if (masters[m].asked.empty()) return;
    const std::string said = reply.empty() ? good_answer(m, masters[m].asked.front()) : reply;
    masters[m].asked.pop_front();
    receive(m, said);
  }
  void answer_all() {
    for (bool any = true; any;) {
      any = false;
      for (MasterIndex m = 0; m < masters.size(); ++m) {
        while (!masters[m].asked.empty()) answer(m), any = true;
      }
      step();
    }
  }
  void all_up() {
    step();
    for (MasterIndex m = 0; m < masters.size(); ++m) open(m);
    step();
    answer_all();
    redlock_status_t status;
    client().notices().status(status, now);
    ASSERT_EQ(status.masters_up, masters.size());
  }

  uint64_t acquire(const std::string& resource, const Options& options) {
    uint64_t handle = 0;
    return client().acquire(bytes(resource), options, nullptr, nullptr, handle) == 0 ? handle : 0;
  }


  const Site& site;
  Block block;
  alignas(Client) unsigned char storage[sizeof(Client)];
  Client* client_;
  std::vector<Master> masters;
  std::vector<State> states;
  std::vector<redlock_event_t> told;
  std::function<void(const redlock_event_t&)> callback;
  bool jumped = false;  // the next reading of the clock finds it
  std::mt19937 dice{1};
  Instant now = at(1'000);
  size_t socket_room = SIZE_MAX;  // how much all sockets take until there is room again
  MasterIndex slow = REDLOCK_MASTERS_MAX;  // a master whose socket has room of its own
  size_t slow_room = SIZE_MAX;
  bool entropy = true;
  bool closed = false;
};

Options usual() { return {10'000, REDLOCK_TRY_ONCE, 0, 0, 100, true}; }

// ---- times ----------------------------------------------------------------------------------------------------

void expect_times(const redlock_times_t& times, uint64_t count, uint64_t sum_ms, uint64_t max_ms,
                  const std::vector<uint32_t>& buckets) {
  EXPECT_EQ(times.count, count);
  EXPECT_EQ(times.sum_ms, sum_ms);
  EXPECT_EQ(times.max_ms, max_ms);
  EXPECT_EQ(std::vector<uint32_t>(std::begin(times.buckets), std::end(times.buckets)), buckets);
}

TEST(ClientTimes, of_acquires_and_of_locks) {
  Site site(3);
  World w(site);
  w.all_up();
  const auto pass = [&w](int64_t ms) { w.now = w.now + Duration::ms(ms); };
  const auto win = [&](int64_t ms) {
    const uint64_t handle = w.acquire("bus", usual());
    w.step();
    pass(ms);
    w.answer_all();
    return handle;
  };
  pass(60'000);  // a wait begins with the acquire, and not with the client
  w.answer_all();
  ASSERT_EQ(w.client().release(win(10)), 0) << "held for no time";
  w.step();
  w.answer_all();
  const uint64_t handle = win(11);
  w.callback = [&](const redlock_event_t& e) {
    if (e.type == REDLOCK_EV_ACQUIRED) pass(1'000);  // the owner holds it already
  };
  pass(2'000);
  ASSERT_EQ(w.client().release(handle), 0);
  w.step();
  w.answer_all();
  win(5);
  pass(20'000);  // LOST
  w.step();
  w.answer_all();
  for (MasterIndex m = 0; m < 3; ++m) w.hang_up(m, REDLOCK_E_CONNECT);
  w.acquire("bus", usual());
  pass(300);
  w.step();
  redlock_status_t status;
  w.client().notices().status(status, w.now);
  EXPECT_EQ(status.acquired, 3u);
  EXPECT_EQ(status.failed_no_quorum, 1u);
  EXPECT_EQ(status.lost, 1u);
  expect_times(status.wait, 4, 26, 11, {3, 1, 0, 0, 0, 0, 0, 0});
  expect_times(status.hold, 3, 23'000, 21'000, {1, 0, 0, 1, 1, 0, 0, 0});
}

TEST(ClientTimes, beyond_the_last_limit) {
  Site site(1);
  World w(site);
  w.all_up();
  Options options = usual();
  options.wait_ms = REDLOCK_WAIT_FOREVER;
  w.hang_up(0, REDLOCK_E_CONNECT);
  const int64_t most_ms[] = {1'000'000, 1'000'001, 10'000'000, 10'000'001, int64_t{50} * 86'400'000};
  for (const int64_t ms : most_ms) {
    const uint64_t handle = w.acquire("bus", options);
    w.step();
    w.now = w.now + Duration::ms(ms);
    EXPECT_EQ(w.client().cancel(handle), 0);
    w.step();
  }
  redlock_status_t status;
  w.client().notices().status(status, w.now);
  expect_times(status.wait, 5, 22'000'002 + most_ms[4], most_ms[4], {0, 0, 0, 0, 0, 1, 2, 2});
}

// ---- memory ---------------------------------------------------------------------------------------------------

// What the parts need, added up by hand, and what may be lost between them.
void expect_enough_and_not_wasteful(const Settings& s) {
  const size_t command = Command::frame_max + REDLOCK_VALUE_MAX + s.resource_bytes + 3 * Command::name_max +
                         4 * s.key_prefix.size + Command::sealed_size(s.key_prefix.size);
  const size_t tx = std::max(command + 38, Record::bytes_max(s));
  const unsigned minority = std::max(1u, (s.masters - 1) / 2);
  const unsigned share = std::max(1u, (s.debts - s.locks) / minority);
  const size_t sets = 130 + std::min(s.locks, share) * (68 + s.key_prefix.size + s.resource_bytes + REDLOCK_VALUE_MAX);
  const size_t shared = std::max<size_t>(2 * command + 62, s.tx_bytes != 0 ? s.tx_bytes : sets);
  size_t parts =
      s.locks * (sizeof(Lock) + sizeof(LocalQueue::Row) + sizeof(Proposals::Place) + s.masters * sizeof(Instant));
  parts += DuePages::pages_of(s.locks) * sizeof(Instant);
  parts += s.debts * sizeof(Claim) + s.masters * (sizeof(Session) + sizeof(MasterSettings));
  parts += size_t{s.locks + s.debts} * s.resource_bytes;
  char key[meta_key_max], fingerprint[fingerprint_max];
  parts += shared;
  size_t texts = s.client_name.size + s.key_prefix.size + write_meta_key(s, key).size + write_seen_key(s, key).size;
  texts += write_fingerprint(s, s.masters / 2 + 1, fingerprint).size;
  for (unsigned m = 0; m < s.masters; ++m) {
    parts += (s.in_flight + Session::own_requests) * sizeof(Fifo::Request) + tx + s.rx_bytes;
    const MasterSettings& master = s.master[m];
    texts += master.name.size + master.host.size + master.user.size + master.password.size;
  }
  const size_t random = s.locks * REDLOCK_VALUE_RANDOM;
  const size_t size = Client::memory_size(s);
  EXPECT_GE(size, parts + texts + random);
  const size_t seeds = (1 + s.masters) * sizeof(uint64_t);
  EXPECT_LE(size, parts + texts + (random + seeds) * 5 / 4 + REDLOCK_VALUE_RANDOM + 64);
}

// Every byte is used: all locks acquired in one turn, held, extended and released, every string read back.
void live_in_it(const Site& site) {
  const Settings& s = site.settings;
  expect_enough_and_not_wasteful(s);
  World w(site);
  w.all_up();
  std::vector<uint64_t> handles;
  std::string resource(REDLOCK_RESOURCE_MAX, 'r');
  Options options = usual();
  options.wait_ms = REDLOCK_WAIT_FOREVER;
  for (unsigned i = 0; i < s.locks; ++i) {
    memcpy(resource.data(), &i, sizeof i);  // or they would wait for each other
    handles.push_back(w.acquire(resource, options));
    ASSERT_NE(handles.back(), 0u);
  }
  uint64_t none = 0;
  EXPECT_EQ(w.client().acquire("one more", options, nullptr, nullptr, none), REDLOCK_E_TABLE_FULL);
  w.step();
  w.answer_all();
  for (const uint64_t handle : handles) {
    ASSERT_EQ(w.client().extend(handle, 20'000), 0) << "held";
  }
  w.step();
  w.answer_all();
  for (const uint64_t handle : handles) ASSERT_EQ(w.client().release(handle), 0);
  w.step();
  w.answer_all();
  const auto told = [&](int type) {
    return std::count_if(w.told.begin(), w.told.end(), [&](const redlock_event_t& e) { return e.type == type; });
  };
  EXPECT_EQ(told(REDLOCK_EV_ACQUIRED), s.locks);
  EXPECT_EQ(told(REDLOCK_EV_RENEWED), s.locks);
  EXPECT_EQ(told(REDLOCK_EV_RELEASED), s.locks);
  EXPECT_EQ(w.client().claims().debts(), 0u);
  for (unsigned m = 0; m < s.masters; ++m) {
    EXPECT_TRUE(w.client().session(m).master().name == s.master[m].name);
    EXPECT_TRUE(w.client().session(m).master().host == s.master[m].host);
    EXPECT_TRUE(w.client().session(m).master().user == s.master[m].user);
    EXPECT_TRUE(w.client().session(m).master().password == s.master[m].password);
    EXPECT_NE(w.client().session(m).master().name.data, s.master[m].name.data) << "a copy";
  }
  EXPECT_TRUE(w.client().settings().client_name == s.client_name);
  EXPECT_TRUE(w.client().settings().key_prefix == s.key_prefix);
  EXPECT_EQ(w.client().close(Duration::ms(0), w.now), 0);
  w.step();
  w.step();
  EXPECT_TRUE(w.client().is_closed());
}

TEST(ClientMemory, of_the_smallest) {
  Site site(1, 1);
  site.settings.debts = 2;
  live_in_it(site);
}

TEST(ClientMemory, of_the_usual) {
  for (const unsigned masters : {1u, 3u, 5u}) {
    Site site(masters);
    site.settings.locks = REDLOCK_LOCKS_DEFAULT;
    site.settings.in_flight = REDLOCK_IN_FLIGHT_DEFAULT;
    site.settings.debts = REDLOCK_DEBTS_DEFAULT;
    live_in_it(site);
  }
}

TEST(ClientMemory, of_odd_sizes) {
  Site site(7, 13);
  site.settings.in_flight = 27;
  site.settings.debts = 33;
  site.settings.rx_bytes = 257;
  site.settings.tx_bytes = 1'031;
  site.settings.key_prefix = "p";
  for (unsigned m = 0; m < 7; ++m) {
    site.settings.master[m].host = site.keep(std::string(m + 1, 'h'));
    site.settings.master[m].password = site.keep(std::string(3 * m, 's'));
  }
  live_in_it(site);
}

TEST(ClientMemory, of_the_longest_strings) {
  Site site(REDLOCK_MASTERS_MAX, 8);
  site.settings.client_name = site.keep(std::string(REDLOCK_CLIENT_NAME_MAX, 'c'));
  site.settings.key_prefix = site.keep(std::string(REDLOCK_KEY_PREFIX_MAX, 'k'));
  for (unsigned m = 0; m < REDLOCK_MASTERS_MAX; ++m) {
    MasterSettings& master = site.settings.master[m];
    master.name = site.keep(std::string(REDLOCK_MASTER_NAME_MAX, 'n'));
    master.host = site.keep(std::string(REDLOCK_HOST_MAX, 'h'));
    master.user = site.keep(std::string(REDLOCK_USER_MAX, 'u'));
    master.password = site.keep(std::string(REDLOCK_PASSWORD_MAX, 's'));
  }
  live_in_it(site);
}

TEST(ClientMemory, of_many_locks) {
  Site site(3, 1'000);
  site.settings.in_flight = 4'000;
  live_in_it(site);
}

// All masters forget their scripts while many locks are under way, and again while the locks are released. The text
// goes in front of the first command that is sent again, since there are fewer places for texts than locks.
TEST(Client, all_locks_are_asked_again_after_a_master_forgot_its_scripts) {
  const unsigned locks = 16;
  Site site(3, locks);
  site.settings.tx_bytes = 16'384;
  World w(site);
  w.all_up();
  const auto expect_asked = [&](bool with_text) {
    w.step();
    for (MasterIndex m = 0; m < 3; ++m) {
      const auto& asked = w.masters[m].asked;
      ASSERT_EQ(asked.size(), locks);
      EXPECT_EQ(asked[0][0] == "EVAL", with_text) << "the text stands in front";
      for (unsigned i = 1; i < locks; ++i) EXPECT_EQ(asked[i][0], "EVALSHA");
    }
  };
  const auto forget = [&] {
    std::string unknown;
    for (unsigned i = 0; i < locks; ++i) unknown += "-NOSCRIPT\r\n";
    for (MasterIndex m = 0; m < 3; ++m) {
      w.masters[m].asked.clear();
      w.receive(m, unknown);
    }
  };
  uint64_t handles[locks];
  for (unsigned i = 0; i < locks; ++i) {  // an acquire of two names is a script
    const std::string first = "a" + std::to_string(i), second = "b" + std::to_string(i);
    const Bytes two[] = {bytes(first), bytes(second)};
    char memory[16];
    Names names;
    names.assign(memory, two, 2);
    ASSERT_EQ(w.client().acquire(names, usual(), nullptr, nullptr, handles[i]), 0);
  }
  expect_asked(true);
  forget();
  expect_asked(true);
  w.answer_all();
  redlock_status_t status;
  w.client().notices().status(status, w.now);
  EXPECT_EQ(status.locks_held, locks);

  for (const uint64_t handle : handles) ASSERT_EQ(w.client().release(handle), 0);
  expect_asked(false);  // the greeting has loaded this script
  forget();
  expect_asked(true);
}

// All masters forget their scripts, and all their answers come in one turn. Our own memory holds the commands of a few
// locks. The others wait for the turns that follow: no vote fails, and every master is told every token.
TEST(Client, what_is_asked_again_waits_for_room) {
  const unsigned locks = 16;
  Site site(3, locks);
  site.settings.tx_bytes = REDLOCK_TX_BYTES_MIN;
  World w(site);
  w.all_up();
  Options fenced = usual();
  fenced.fenced = true;
  const auto answer_all = [&](const std::string& reply) {
    for (MasterIndex m = 0; m < 3; ++m) {
      EXPECT_EQ(w.masters[m].asked.size(), locks) << reply;
      std::string replies;
      for (unsigned i = 0; i < locks; ++i) replies += reply;
      w.masters[m].asked.clear();
      w.receive(m, replies);
    }
    w.step();
  };
  const auto expect_told = [&](int type) {
    const auto is = [&](const redlock_event_t& e) { return e.type == type && e.failed == 0; };
    EXPECT_EQ(std::count_if(w.told.begin(), w.told.end(), is), locks) << type;
  };
  std::vector<uint64_t> handles;
  for (unsigned i = 0; i < locks; ++i) handles.push_back(w.acquire("a" + std::to_string(i), fenced));
  w.step();
  answer_all("-NOSCRIPT\r\n");
  answer_all(bulk("hint 0 1700000000000"));
  answer_all("-NOSCRIPT\r\n");
  answer_all(":1\r\n");
  expect_told(REDLOCK_EV_ACQUIRED);
  for (const uint64_t handle : handles) EXPECT_EQ(w.client().extend(handle, 0), 0);
  w.step();
  answer_all("-NOSCRIPT\r\n");
  answer_all(":1\r\n");
  expect_told(REDLOCK_EV_RENEWED);
}

// "So that every lock can send its SET in one turn", and with it the default transmit buffer's size, is a promise.
TEST(ClientMemory, every_lock_sends_its_set_in_one_turn) {
  for (const unsigned locks : {1u, 2u, 5u, 32u, 100u}) {
    Site site(3, locks);
    site.settings.key_prefix = site.keep(std::string(REDLOCK_KEY_PREFIX_MAX, 'k'));
    site.settings.client_name = site.keep(std::string(REDLOCK_CLIENT_NAME_MAX, 'c'));
    World w(site);
    w.all_up();
    for (unsigned i = 0; i < locks; ++i) {
      ASSERT_NE(w.acquire(std::string(REDLOCK_RESOURCE_MAX - 1, 'r') + static_cast<char>(i), usual()), 0u);
    }
    w.client().turn(w.now);
    for (MasterIndex m = 0; m < 3; ++m) {
      w.flush(m);
      EXPECT_EQ(w.masters[m].asked.size(), locks);
    }
    w.step();
    w.answer_all();
  }
}

// ---- a slow connection ------------------------------------------------------------------------------------------

std::vector<std::string> set_and_delete_words(const World& w, MasterIndex m) {
  std::vector<std::string> said;
  for (const auto& words : w.masters[m].asked) {
    const bool set = words[0] == "SET";
    if (set || World::says(words, release_script)) said.push_back(words[0] + " " + words[set ? 1 : 3]);
  }
  return said;
}

// One master's socket takes so many bytes of a turn in which a delete, the SETs of two locks and an extend leave. The
// others get all of it, and have the shared memory again. What the slow one did not begin to take is taken back: the
// delete is owed and leaves later, the SETs and the extend are failed votes, and nothing is left over at the end.
TEST(Client, what_a_slow_master_did_not_take_never_happened) {
  for (size_t cut = 0;; ++cut) {
    Site site(3, 4);
    World w(site);
    w.all_up();
    const uint64_t ended = w.acquire("ended", usual()), kept = w.acquire("kept", usual());
    w.step();
    w.answer_all();
    w.told.clear();
    ASSERT_EQ(w.client().release(ended), 0);
    ASSERT_EQ(w.client().extend(kept, 20'000), 0);
    const uint64_t one = w.acquire("one", usual()), two = w.acquire("two", usual());
    w.slow = 0;
    w.slow_room = cut;
    w.step();
    const bool all = w.slow_room != 0;
    for (const MasterIndex m : {1u, 2u}) {
      ASSERT_EQ(set_and_delete_words(w, m), (std::vector<std::string>{"EVALSHA ended", "SET one", "SET two"})) << cut;
    }
    if (cut == 0) {
      EXPECT_EQ(w.client().session(0).in_flight(), 1u) << "the oldest alone is kept";
    }
    EXPECT_LE(set_and_delete_words(w, 0).size(), 3u);
    if (!all) {
      EXPECT_NE(w.client().claims().debts_of(0) + w.client().session(0).in_flight(), 0u) << cut;
    }
    w.slow_room = SIZE_MAX;
    w.writable(0);
    w.step();
    w.answer_all();
    for (const uint64_t handle : {kept, one, two}) {
      const ValidityCell* cell = w.client().cell(handle);
      ASSERT_NE(cell, nullptr);
      EXPECT_GT(cell->read().valid_until, w.now) << cut;
    }
    redlock_status_t status;
    w.client().notices().status(status, w.now);
    EXPECT_EQ(status.locks_held, 3u) << cut;
    EXPECT_EQ(w.client().claims().debts(), 0u) << cut;
    for (const uint64_t handle : {kept, one, two}) EXPECT_EQ(w.client().release(handle), 0);
    w.step();
    w.answer_all();
    EXPECT_EQ(w.client().claims().debts(), 0u) << cut;
    for (MasterIndex m = 0; m < 3; ++m) EXPECT_EQ(w.client().session(m).in_flight(), 0u) << cut;
    w.client().claims().check();
    if (all) break;
    ASSERT_LT(cut, 2'000u);
  }
}

// Two of three masters granted, so both must store the token. The second lock's script is taken back from the slow one,
// and leaves when that has room. An earlier lock has told the masters the scripts, which are told to each by itself.
TEST(Client, the_second_script_of_a_token_that_was_taken_back_leaves_later) {
  Site site(3);
  World w(site);
  w.all_up();
  Options fenced = usual();
  fenced.fenced = true;
  const auto answer = [&](const std::string& reply, unsigned times) {
    for (unsigned i = 0; i < times; ++i) {
      for (const MasterIndex m : {0u, 1u}) w.answer(m, reply);
    }
    w.step();
  };
  const std::string hint = bulk("hint 0 1700000000000");
  std::vector<uint64_t> handles = {w.acquire("zero", fenced)};
  w.step();
  answer(hint, 1);
  answer(":1\r\n", 1);
  for (const char* const name : {"one", "two"}) handles.push_back(w.acquire(name, fenced));
  w.step();
  w.slow = 0;
  w.slow_room = 0;
  answer(hint, 2);
  EXPECT_EQ(w.masters[0].asked.size(), 0u);
  EXPECT_EQ(w.masters[1].asked.size(), 2u);
  w.slow_room = SIZE_MAX;
  w.writable(0);
  w.step();
  EXPECT_EQ(w.masters[0].asked.size(), 2u);
  answer(":1\r\n", 2);
  for (const uint64_t handle : handles) {
    const ValidityCell* cell = w.client().cell(handle);
    ASSERT_NE(cell, nullptr);
    EXPECT_GT(cell->read().valid_until, w.now);
  }
}

// A SET that was begun leaves whole, and its delete leaves behind it, wherever the socket stops.
TEST(Client, a_delete_leaves_behind_its_set_however_slow_the_socket) {
  for (size_t cut = 0; cut < 400; ++cut) {
    Site site(3);
    World w(site);
    w.all_up();
    w.slow = 0;
    w.slow_room = cut;
    const uint64_t handle = w.acquire("r", usual());
    w.step();
    for (const MasterIndex m : {1u, 2u}) w.answer(m);
    w.step();
    ASSERT_EQ(w.client().release(handle), 0);
    w.step();
    for (unsigned i = 0; i < 40; ++i) {
      w.slow_room = 13;
      w.writable(0);
      w.step();
    }
    const std::vector<std::string> said = set_and_delete_words(w, 0);
    ASSERT_EQ(said, (std::vector<std::string>{"SET r", "EVALSHA r"})) << cut;
    w.answer_all();
    EXPECT_EQ(w.client().claims().debts(), 0u) << cut;
  }
}

// A lock of two names needs a script, whose text each master is told by itself. That command stands behind the SETs.
// It stays when the newest SET is taken back.
TEST(Client, only_what_all_masters_are_told_is_taken_back) {
  Site site(3);
  World w(site);
  w.all_up();
  std::vector<uint64_t> handles = {w.acquire("one", usual()), w.acquire("two", usual()), 0};
  const Bytes both[] = {"a", "b"};
  char memory[16];
  Names names;
  names.assign(memory, both, 2);
  ASSERT_EQ(w.client().acquire(names, usual(), nullptr, nullptr, handles[2]), 0);
  w.slow = 0;
  w.slow_room = 0;
  w.step();
  w.slow_room = SIZE_MAX;
  w.writable(0);
  w.step();
  EXPECT_EQ(set_and_delete_words(w, 0), std::vector<std::string>{"SET one"});
  ASSERT_EQ(w.masters[0].asked.size(), 2u);
  EXPECT_TRUE(World::says(w.masters[0].asked[1], acquire_script));
  w.answer_all();
  for (const redlock_event_t& e : w.told) {
    if (e.type == REDLOCK_EV_ACQUIRED) {
      EXPECT_EQ(e.failed, e.lock.id == handles[1] ? 1u : 0u);
    }
  }
  for (const uint64_t handle : handles) EXPECT_EQ(w.client().release(handle), 0) << "held";
}

// What was taken back is a failed vote at once: here the last of three.
TEST(Client, a_set_that_was_taken_back_decides_the_round) {
  Site site(3);
  World w(site);
  w.all_up();
  w.acquire("one", usual());
  w.acquire("two", usual());
  w.slow = 0;
  w.slow_room = 0;
  w.step();
  for (const char* const second : {"+OK\r\n", "_\r\n"}) {
    const MasterIndex m = *second == '+' ? 1 : 2;
    w.answer(m);
    w.answer(m, second);
  }
  w.step();
  ASSERT_EQ(w.told.back().type, REDLOCK_EV_FAILED);
  EXPECT_EQ(w.told.back().granted, 1u);
  EXPECT_EQ(w.told.back().refused, 1u);
  EXPECT_EQ(w.told.back().failed, 1u);
}

// A slow master does not keep the others from any room, for however long.
TEST(Client, a_slow_master_holds_no_room_of_the_others) {
  Site site(3, 1);
  World w(site);
  w.all_up();
  w.slow = 0;
  w.slow_room = 10;
  for (unsigned i = 0; i < 100; ++i) {
    const uint64_t handle = w.acquire("r", usual());
    ASSERT_NE(handle, 0u) << i;
    w.step();
    for (const MasterIndex m : {1u, 2u}) w.answer(m);
    w.step();
    ASSERT_EQ(w.client().release(handle), 0) << i;
    w.step();
    for (const MasterIndex m : {1u, 2u}) w.answer(m);
    w.step();
  }
}

// ---- the deadline ---------------------------------------------------------------------------------------------

// What is due first of all that the client owns, asked one by one.
Instant first_due(World& w) {
  Instant first = w.client().claims().deadline();
  for (uint16_t i = 0; i < w.client().settings().locks; ++i) {
    first = earlier(first, Machine::deadline(w.client().lock(i)));
  }
  for (MasterIndex m = 0; m < w.masters.size(); ++m) first = earlier(first, w.client().session(m).deadline());
  return first;
}

void expect_in_time(World& w, const char* after) {
  ASSERT_LE(w.client().deadline(), later(first_due(w), w.now)) << "late, after " << after;
}

TEST(ClientDeadline, a_budget_that_is_shorter_than_the_masters_time) {
  const Site site(3);
  World w(site);
  w.all_up();
  Options options = usual();
  options.wait_ms = 10;
  ASSERT_NE(w.acquire("valve", options), 0u);
  w.step();
  ASSERT_EQ(w.masters[0].asked.size(), 1u);
  EXPECT_LE(w.client().deadline(), at(1'010));
  w.now = at(1'010);
  w.step();
  ASSERT_FALSE(w.told.empty());
  EXPECT_EQ(w.told.back().type, REDLOCK_EV_FAILED);
  EXPECT_EQ(w.told.back().err, REDLOCK_E_TIMEOUT);
}

// A debt whose delete was on its way when it should have ended, and whose master then went away for good.
TEST(ClientDeadline, a_debt_of_a_master_that_stays_away) {
  Site site(1);
  site.settings.suspect_close = Duration::ms(60'000);
  World w(site);
  w.all_up();
  Options options = usual();
  options.ttl_ms = 1'000;
  const uint64_t handle = w.acquire("valve", options);
  w.step();
  w.answer(0);
  w.step();
  ASSERT_EQ(w.client().release(handle), 0);
  w.step();
  ASSERT_EQ(w.client().claims().debts(), 1u);
  w.now = at(10'000);
  w.step();
  ASSERT_EQ(w.client().claims().debts(), 1u) << "its reply may still come";
  w.hang_up(0, REDLOCK_E_DISCONNECTED);
  w.step();
  EXPECT_EQ(w.client().claims().debts(), 0u);
}

TEST(ClientDeadline, closing_does_not_keep_the_timer_running) {
  const Site site(2);
  World w(site);
  w.all_up();
  ASSERT_EQ(w.client().close(Duration::ms(100), w.now), 0);
  w.client().turn(w.now);
  w.client().flushed(w.now);  // nothing is owed: the connections are to be closed, which takes them a while
  EXPECT_EQ(w.client().session(0).wish(), Session::Wish::close);
  w.now = at(1'200);
  w.client().turn(w.now);
  EXPECT_GT(w.client().deadline(), w.now);
}

// ---- events: each is true when it is told ------------------------------------------------------------------------

// What was told from the first of these events on, of locks, as text; the locks are called a, b, c by their handles.
std::string story(const World& w, const std::vector<uint64_t>& handles) {
  static constexpr const char* names[] = {"", "ACQUIRED", "FAILED", "RENEWED", "AT_RISK", "LOST", "RELEASED", "MASTER"};
  std::string text;
  for (const redlock_event_t& e : w.told) {
    const auto lock = std::find(handles.begin(), handles.end(), e.lock.id);
    if (lock == handles.end()) continue;
    text += text.empty() ? "" : ", ";
    text += names[e.type];
    text += std::string(" ") + static_cast<char>('a' + (lock - handles.begin()));
    if (e.type == REDLOCK_EV_FAILED && e.err == REDLOCK_E_LOST) text += " LOST";
    if (e.validity_ms != 0) text += " " + std::to_string(e.validity_ms);
  }
  return text;
}

// Locks on one master, or on three of which the last is silent; the answers are there, and nothing is told yet.
struct Batch {
  explicit Batch(unsigned masters = 1) : site(masters), w(site) { w.all_up(); }
  void acquire(const std::vector<uint32_t>& ttls_ms) {
    Options options = usual();
    options.renew = false;
    for (const uint32_t ttl_ms : ttls_ms) {
      options.ttl_ms = ttl_ms;
      locks.push_back(w.acquire("r" + std::to_string(locks.size()), options));
    }
    w.step();
    answer();
  }
  void answer() {
    for (MasterIndex m = 0; m == 0 || m + 1 < w.masters.size(); ++m) {
      while (!w.masters[m].asked.empty()) w.answer(m);
    }
  }
  // The first callback of this type takes so long.
  void slow(int type, int64_t ms) {
    w.callback = [this, type, left = ms](const redlock_event_t& e) mutable {
      if (e.type == type) w.now = w.now + Duration::ms(std::exchange(left, 0));
    };
  }
  Site site;
  World w;
  std::vector<uint64_t> locks;
};

TEST(ClientEvents, a_lock_that_ends_in_the_callback_before_its_acquired_has_failed) {
  Batch batch;
  batch.slow(REDLOCK_EV_ACQUIRED, 1'500);
  batch.acquire({1'000, 1'000});
  batch.w.step();
  EXPECT_EQ(story(batch.w, batch.locks), "ACQUIRED a 988, LOST a, FAILED b LOST");
}

TEST(ClientEvents, the_validity_is_that_of_the_instant_when_it_is_told) {
  Batch batch;
  batch.slow(REDLOCK_EV_ACQUIRED, 100);
  batch.acquire({1'000, 1'000});
  batch.w.step();
  EXPECT_EQ(story(batch.w, batch.locks), "ACQUIRED a 988, ACQUIRED b 888");
  batch.w.told.clear();
  for (const uint64_t lock : batch.locks) ASSERT_EQ(batch.w.client().extend(lock, 5'000), 0);
  batch.slow(REDLOCK_EV_RENEWED, 4'000);
  batch.w.step();
  batch.answer();
  batch.w.step();
  EXPECT_EQ(story(batch.w, batch.locks), "RENEWED a 4948, RENEWED b 948");
}

TEST(ClientEvents, lost_is_told_before_what_waits) {
  Batch batch;
  batch.acquire({200});
  batch.w.step();
  batch.slow(REDLOCK_EV_ACQUIRED, 300);
  batch.acquire({1'000, 1'000});
  batch.w.step();
  EXPECT_EQ(story(batch.w, batch.locks), "ACQUIRED a 196, ACQUIRED b 988, LOST a, ACQUIRED c 688");
}

TEST(ClientEvents, a_jump_between_two_callbacks) {
  Batch batch;
  batch.w.callback = [&](const redlock_event_t& e) { batch.w.jumped = e.type == REDLOCK_EV_ACQUIRED; };
  batch.acquire({1'000, 1'000});
  batch.w.step();
  EXPECT_EQ(story(batch.w, batch.locks), "ACQUIRED a 988, LOST a, FAILED b LOST");
}

// A master that owes an answer becomes suspect while a callback runs, and no other input follows.
TEST(ClientEvents, what_falls_due_in_a_callback_is_told_without_another_input) {
  Batch batch(3);
  batch.slow(REDLOCK_EV_ACQUIRED, 100);
  batch.acquire({10'000, 10'000});
  batch.w.step();
  batch.w.step();  // the port has looked at its sockets since
  EXPECT_EQ(story(batch.w, batch.locks), "ACQUIRED a 9898, ACQUIRED b 9798");
  EXPECT_EQ(batch.w.told.back().type, REDLOCK_EV_MASTER);
  EXPECT_EQ(batch.w.told.back().state, REDLOCK_MASTER_SUSPECT);
}

// The owner asks for the next extend before it is told of the last one.
TEST(ClientEvents, the_votes_are_those_of_the_round_that_is_told) {
  Batch batch(3);
  batch.acquire({10'000});
  batch.w.step();
  ASSERT_EQ(batch.w.client().extend(batch.locks[0], 10'000), 0);
  batch.w.step();
  batch.answer();
  ASSERT_EQ(batch.w.client().extend(batch.locks[0], 10'000), 0);
  batch.w.step();
  ASSERT_EQ(batch.w.told.back().type, REDLOCK_EV_RENEWED);
  EXPECT_EQ(batch.w.told.back().granted, 2u);
  EXPECT_EQ(batch.w.told.back().cause, 0) << "of WAITING and FAILED alone";
}

TEST(ClientEvents, all_begin_with_their_size) {
  Batch batch;
  batch.acquire({1'000});
  batch.w.step();
  for (const int type : {REDLOCK_EV_MASTER, REDLOCK_EV_ACQUIRED}) {
    const auto of_type = [type](const redlock_event_t& e) { return e.type == type; };
    const auto event = std::find_if(batch.w.told.begin(), batch.w.told.end(), of_type);
    ASSERT_NE(event, batch.w.told.end());
    EXPECT_EQ(event->size, sizeof(redlock_event_t));
  }
}

// ---- long random lives ---------------------------------------------------------------------------------------------

struct Storm : World {
  Storm(const Site& s, unsigned seed) : World(s) { dice.seed(seed); }

  unsigned roll(unsigned n) { return static_cast<unsigned>(dice() % n); }

  Options options() {
    Options o = usual();
    o.ttl_ms = 20 + roll(1'000);
    o.wait_ms = roll(3) == 0   ? REDLOCK_TRY_ONCE
                : roll(4) == 0 ? REDLOCK_WAIT_FOREVER
                               : static_cast<int32_t>(1 + roll(300));
    o.max_hold_ms = roll(4) == 0 ? 1 + roll(3'000) : 0;
    o.renew = roll(3) != 0;
    return o;
  }
  uint64_t some() { return handles.empty() ? 0 : handles[roll(static_cast<unsigned>(handles.size()))]; }

  std::string chance(MasterIndex m, const std::vector<std::string>& words) {
    const unsigned n = roll(100);
    if (n == 0) return "-LOADING\r\n";
    if (words[0] == "HELLO")
      return n == 1 ? "-ERR unknown command\r\n" : n == 2 ? "-WRONGPASS\r\n" : good_answer(m, words);
    if (says(words, reading_script)) {
      if (n == 4) ++states[m].data;
      if (n == 3 && roll(3) == 0) states[m] = {};
      return n == 5 ? reading(m, "slave") : n == 6 ? "-NOPERM\r\n" : good_answer(m, words);
    }
    if (says(words, record_script) || says(words, visit_script)) {
      return n < 5 ? ":0\r\n" : n < 8 ? "-OOM\r\n" : good_answer(m, words);
    }
    if (says(words, acquire_script)) return n < 4 ? "-NOSCRIPT\r\n" : n < 8 ? "_\r\n" : n == 8 ? ":-1\r\n" : "+OK\r\n";
    if (words[0] == "TIME" || words[0] == "INFO") return n == 1 ? "-NOPERM\r\n" : good_answer(m, words);
    if (words[0] == "CLIENT" && words[1] == "KILL") return n < 50 ? ":1\r\n" : "-NOPERM\r\n";
    if (words[0] == "ROLE") return "*1\r\n" + bulk("master");
    if (words[0] == "SET") return n < 8 ? "_\r\n" : n == 9 ? "-OOM\r\n" : "+OK\r\n";
    if (words[0] == "EVALSHA" && n < 4) return "-NOSCRIPT\r\n";
    if (words[0].compare(0, 4, "EVAL") == 0)
      return n < 8 ? ":0\r\n" : n == 9 ? "-OOM\r\n" : n == 10 ? "-READONLY\r\n" : ":1\r\n";
    return good_answer(m, words);
  }

  const char* input() {
    const MasterIndex m = roll(static_cast<unsigned>(masters.size()));
    uint64_t handle = 0;
    switch (roll(20)) {
      case 0:
      case 1:
        if ((handle = acquire("r" + std::to_string(roll(3)), options())) != 0) handles.push_back(handle);
        return "acquire";
      case 2:
        client().release(some());
        return "release";
      case 3:
        if (roll(4) == 0) client().cancel(some());
        if (roll(20) == 0 && client().commission(roll(static_cast<unsigned>(masters.size()) + 1), now) != 0) return "?";
        return "cancel, or a new site";
      case 4:
        client().extend(some(), roll(2) ? 0 : 20 + roll(2'000));
        return "extend";
      case 5:
        if (roll(200) == 0) client().clock_jumped(now);
        if (roll(20) == 0 && client().session(m).tracked()) receive(m, ">2\r\n" + bulk("invalidate") + "_\r\n");
        return "a jump, or a null push";
      case 6:
        if (roll(10) == 0 && masters[m].open) hang_up(m, REDLOCK_E_DISCONNECTED);
        return "a break";
      case 7:
        entropy = roll(10) != 0;
        socket_room = roll(10) == 0 ? roll(300) : SIZE_MAX;
        return "nothing";
      case 8:
        if (client().session(m).state() == Session::State::connecting && !masters[m].open) {
          if (roll(5) == 0) {
            hang_up(m, REDLOCK_E_CONNECT);
          } else {
            open(m);
          }
        }
        return "a connect";
      default:
        for (unsigned n = 1 + roll(8); n > 0 && !masters[m].asked.empty(); --n) {
          const std::string reply = chance(m, masters[m].asked.front());
          answer(m, reply);
        }
        return "replies";
    }
  }

  void run(unsigned inputs) {
    for (unsigned i = 0; i < inputs; ++i) {
      // Sometimes exactly to the deadline, sometimes past it, often not that far.
      const Instant due = client().deadline();
      const Duration ahead = Duration::us(roll(roll(20) == 0 ? 100'000 : 1'000));
      now = roll(3) == 0 && due > now && due < now + Duration::ms(500) ? due : now + ahead;
      const char* after = input();
      expect_in_time(*this, after);
      if (testing::Test::HasFatalFailure()) return;
      step();
      expect_in_time(*this, "the steps");
      if (testing::Test::HasFatalFailure()) return;
      if (client().deadline() <= now) step();  // it may be early, but not again and again
      ASSERT_GT(client().deadline(), now) << "the timer would fire again and again, after " << after;
      if (handles.size() > 50) handles.erase(handles.begin());
    }
  }
  std::vector<uint64_t> handles;
};

// The status counts what was told.
void expect_counted(const World& w) {
  redlock_status_t s = {};
  w.client().notices().status(s, w.now);
  const auto told = [&](int type, const std::vector<int>& errs = {}, bool other = false) {
    return static_cast<uint64_t>(std::count_if(w.told.begin(), w.told.end(), [&](const redlock_event_t& e) {
      const bool among = std::find(errs.begin(), errs.end(), e.err) != errs.end();
      return e.type == type && (errs.empty() || among != other);
    }));
  };
  EXPECT_EQ(s.acquired, told(REDLOCK_EV_ACQUIRED));
  EXPECT_EQ(s.failed_locked, told(REDLOCK_EV_FAILED, {REDLOCK_E_LOCKED}));
  EXPECT_EQ(s.failed_no_quorum, told(REDLOCK_EV_FAILED, {REDLOCK_E_NO_QUORUM}));
  EXPECT_EQ(s.failed_other, told(REDLOCK_EV_FAILED, {REDLOCK_E_LOCKED, REDLOCK_E_NO_QUORUM}, true));
  EXPECT_EQ(s.renewed, told(REDLOCK_EV_RENEWED));
  EXPECT_EQ(s.renew_failed, told(REDLOCK_EV_AT_RISK));
  EXPECT_EQ(s.lost, told(REDLOCK_EV_LOST));
  EXPECT_EQ(s.released, told(REDLOCK_EV_RELEASED));
}

TEST(ClientDeadline, never_late_and_never_stuck) {
  unsigned acquired = 0, lost = 0, renewed = 0, guarded = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Site site(seed % 5 + 1, 4);
    site.settings.suspect_close = Duration::ms(seed % 2 ? 200 : 3'000);
    site.settings.reconnect_min_ms = 10;
    site.settings.ping_interval = Duration::ms(300);
    if (seed % 3 == 0) site.settings.tx_bytes = REDLOCK_TX_BYTES_MIN;
    if (seed % 4 == 3) {
      site.settings.guard = seed % 8 == 3 ? GuardMode::strict : GuardMode::weak;
      site.settings.max_ttl_ms = 2'100;
      site.settings.has_boot_id = true;
    }
    Storm storm(site, seed);
    storm.run(test::repeats(12'000));
    if (HasFatalFailure()) return;
    for (const redlock_event_t& e : storm.told) {
      acquired += e.type == REDLOCK_EV_ACQUIRED;
      guarded += e.type == REDLOCK_EV_ACQUIRED && site.settings.guard != GuardMode::off;
      lost += e.type == REDLOCK_EV_LOST;
      renewed += e.type == REDLOCK_EV_RENEWED;
    }
    ASSERT_EQ(storm.client().close(Duration::ms(500), storm.now), 0);
    for (int i = 0; i < 200 && !storm.client().is_closed(); ++i) {
      storm.step();
      expect_in_time(storm, "close");
      storm.now =
          later(storm.now, storm.client().deadline() == Instant::never() ? storm.now : storm.client().deadline());
    }
    ASSERT_TRUE(storm.client().is_closed());
    expect_counted(storm);
  }
  EXPECT_GT(acquired, test::repeats(1'000));
  EXPECT_GT(guarded, test::repeats(100));
  EXPECT_GT(lost, test::repeats(50));
  EXPECT_GT(renewed, test::repeats(200));
}

}  // namespace
}  // namespace redlock
