// SPDX-License-Identifier: MIT
//
// Client: its memory and its one deadline. What it does with locks and masters is told by test/scenario; here it uses
// every byte of the block that it asked for, meets masters whose sockets take no more at any byte, and its deadline is
// compared with those of all that it owns after every input of long random lives.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/repeats.hpp"
#include "support/stage.hpp"

namespace redlock {
namespace {

using test::Executed;
using test::Gateway;
using test::Told;
using test::Way;

Options usual() { return {10'000, REDLOCK_TRY_ONCE, 0, 0, 100, true}; }

Options fenced() {
  Options options = usual();
  options.fenced = true;
  return options;
}

// A gateway that is connected to all masters.
struct Site : test::Stage {
  explicit Site(unsigned count, unsigned locks = 4, const std::function<void(Settings&)>& change = nullptr)
      : Stage(count), a(add("gw-17", [&](Settings& s) {
          s.client_name = "gw-17";
          s.locks = locks;
          s.in_flight = std::max(8u, 2 * locks);
          s.debts = 2 * locks + 2;
          if (change) change(s);
          for (unsigned m = 0; m < count; ++m) {
            redis(m + 1).knobs.password = std::string(s.master[m].password.data, s.master[m].password.size);
            if (s.master[m].user.size > 0) redis(m + 1).knobs.user.assign(s.master[m].user.data, s.master[m].user.size);
          }
        })) {
    EXPECT_TRUE(a.client().settings().guard != GuardMode::off || status().masters_up == count);
  }

  // The gateway reads all that has arrived, does this, and takes a turn. What it is answered waits for the next turn.
  void turn(const std::function<void()>& what = nullptr) {
    a.act([&](Instant) {
      a.resume();
      if (what) what();
      a.pause();
    });
  }
  // From a callback, which takes so long.
  void take_ms(double ms) {
    a.pause();
    advance_ms(ms);
    a.resume();
  }
  void each(const std::function<void(unsigned master)>& what) const {
    for (unsigned m = 1; m <= masters(); ++m) what(m);
  }
  redlock_status_t status() const {
    redlock_status_t status;
    a.client().notices().status(status, a.client().now());
    return status;
  }
  unsigned debts() const { return a.client().claims().debts(); }
  int64_t told(int type, const std::function<bool(const redlock_event_t&)>& is = nullptr) const {
    return std::count_if(a.told().begin(), a.told().end(),
                         [&](const Told& told) { return told.event.type == type && (!is || is(told.event)); });
  }
  // What a master has executed since this was asked the last time.
  std::vector<Executed> asked(unsigned master) {
    std::vector<Executed> all = executed("", master);
    all.erase(all.begin(), all.begin() + static_cast<long>(std::exchange(asked_[master], all.size())));
    return all;
  }
  void forget_asked() {
    each([this](unsigned m) { asked(m); });
  }

  Gateway& a;

 private:
  size_t asked_[REDLOCK_MASTERS_MAX + 1] = {};
};

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
  const auto win = [&site](double ms) {
    site.each([&](unsigned m) { site.set_delay_ms(m, ms); });
    ASSERT_EQ(site.a.acquire("bus", usual()), 0);
    site.advance_ms(ms);
    ASSERT_EQ(site.a.outcome("bus"), "ACQUIRED");
  };
  site.advance_ms(60'000);  // a wait begins with the acquire, and not with the client
  win(10);
  ASSERT_EQ(site.a.release("bus"), 0) << "held for no time";
  site.advance_ms(100);
  win(11);
  site.advance_ms(2'000);
  ASSERT_EQ(site.a.release("bus"), 0);
  site.advance_ms(100);
  site.on_event = [&site](Gateway&, const std::string&, const redlock_event_t& e) {
    if (e.type == REDLOCK_EV_ACQUIRED) site.take_ms(21'000);  // the owner holds it already
  };
  ASSERT_EQ(site.a.acquire("bus", usual()), 0);
  site.advance_ms(11);
  site.each([&](unsigned m) { site.set_way(m, Way::down); });
  ASSERT_EQ(site.a.acquire("bus", usual()), 0);
  site.advance_ms(300);
  const redlock_status_t status = site.status();
  EXPECT_EQ(status.acquired, 3u);
  EXPECT_EQ(status.failed_no_quorum, 1u);
  EXPECT_EQ(status.lost, 1u);
  expect_times(status.wait, 4, 32, 11, {2, 2, 0, 0, 0, 0, 0, 0});
  expect_times(status.hold, 3, 23'000, 21'000, {1, 0, 0, 1, 1, 0, 0, 0});
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
void live_in_it(unsigned masters, unsigned locks, const std::function<void(Settings&)>& change) {
  Settings s;
  Site site(masters, locks, [&](Settings& settings) {
    change(settings);
    s = settings;
  });
  expect_enough_and_not_wasteful(s);
  Options options = usual();
  options.wait_ms = REDLOCK_WAIT_FOREVER;
  std::vector<std::string> resources;
  for (unsigned i = 0; i < s.locks; ++i) {
    resources.push_back(std::to_string(i) + "r");  // or they would wait for each other
    resources[i].resize(REDLOCK_RESOURCE_MAX, 'r');
  }
  const auto each = [&](const std::function<int(const std::string&)>& call) {
    site.turn([&] {
      for (const std::string& resource : resources) ASSERT_EQ(call(resource), 0);
    });
    site.turn();
    site.a.resume();
  };
  each([&](const std::string& resource) { return site.a.acquire(resource, options); });
  EXPECT_EQ(site.a.acquire("one more", options), REDLOCK_E_TABLE_FULL);
  each([&](const std::string& resource) { return site.a.extend(resource, 20'000); });
  each([&](const std::string& resource) { return site.a.release(resource); });
  for (const int type : {REDLOCK_EV_ACQUIRED, REDLOCK_EV_RENEWED, REDLOCK_EV_RELEASED}) {
    EXPECT_EQ(site.told(type), s.locks) << type;
  }
  EXPECT_EQ(site.debts(), 0u);
  const Client& client = site.a.client();
  for (unsigned m = 0; m < s.masters; ++m) {
    EXPECT_TRUE(client.session(m).master().name == s.master[m].name);
    EXPECT_TRUE(client.session(m).master().host == s.master[m].host);
    EXPECT_TRUE(client.session(m).master().user == s.master[m].user);
    EXPECT_TRUE(client.session(m).master().password == s.master[m].password);
    EXPECT_NE(client.session(m).master().name.data, s.master[m].name.data) << "a copy";
  }
  EXPECT_TRUE(client.settings().client_name == s.client_name);
  EXPECT_TRUE(client.settings().key_prefix == s.key_prefix);
  EXPECT_EQ(site.a.close(0), 0);
  EXPECT_TRUE(site.a.closed());
}

const std::string long_text(REDLOCK_HOST_MAX + REDLOCK_PASSWORD_MAX, 'x');
Bytes text_of(size_t size) { return Bytes(long_text.data(), size); }

TEST(ClientMemory, of_odd_sizes) {
  live_in_it(7, 13, [](Settings& s) {
    s.in_flight = 27;
    s.debts = 33;
    s.rx_bytes = 257;
    s.tx_bytes = 1'031;
    s.key_prefix = "p";
    for (unsigned m = 0; m < 7; ++m) s.master[m].host = text_of(m + 1);
    for (unsigned m = 0; m < 7; ++m) s.master[m].password = text_of(3 * m);
  });
}

TEST(ClientMemory, of_the_longest_strings) {
  live_in_it(REDLOCK_MASTERS_MAX, 8, [](Settings& s) {
    s.client_name = text_of(REDLOCK_CLIENT_NAME_MAX);
    s.key_prefix = text_of(REDLOCK_KEY_PREFIX_MAX);
    for (MasterSettings& master : s.master) {
      master.name = text_of(REDLOCK_MASTER_NAME_MAX);
      master.host = text_of(REDLOCK_HOST_MAX);
      master.user = text_of(REDLOCK_USER_MAX);
      master.password = text_of(REDLOCK_PASSWORD_MAX);
    }
  });
}

// A lock that is LOST because its masters forgot it says so of each master once, although they granted the last round.
TEST(Client, a_master_is_counted_once_in_an_event) {
  test::Stage stage(3);
  const auto change = [](Settings& s) {
    s.guard = GuardMode::strict;
    s.ping_interval = Duration::ms(500);
  };
  test::Gateway& a = stage.add("a", change, 0, true, true);
  EXPECT_EQ(a.acquire("bus", usual()), 0);
  stage.advance_ms(10);
  for (const unsigned m : {1u, 2u}) {
    stage.redis(m).become_replica();
    stage.redis(m).become_master();
  }
  stage.advance_ms(1'000);
  const auto lost = std::find_if(a.told().begin(), a.told().end(),
                                 [](const auto& told) { return told.event.type == REDLOCK_EV_LOST; });
  ASSERT_NE(lost, a.told().end());
  EXPECT_EQ(lost->event.granted, 0u) << "both had granted it";
  EXPECT_EQ(lost->event.refused, 2u);
}

// A reading a minute for each master, all in one step of the loop; no reading and no ping of its own while a lock is
// held: what goes out with every second renewal is enough.
TEST(Client, a_quiet_line) {
  test::Stage stage(5);
  test::Gateway& a = stage.add("a", [](Settings& s) { s.guard = GuardMode::strict; }, 0, true, true);
  const auto said = [&](const char* word) { return stage.executed(word, 5).size(); };
  stage.advance_ms(10'000);
  const size_t readings = said("EVALSHA"), pings = said("PING");
  const uint64_t steps = a.steps();
  stage.advance_ms(3'600'000);
  EXPECT_EQ(said("EVALSHA") - readings, 60u);
  EXPECT_EQ(said("PING"), pings);
  EXPECT_LE(a.steps() - steps, 7 * 60u) << "once for all that it asks, for each answer, and for a timer left behind";

  EXPECT_EQ(a.acquire("bus", usual()), 0);
  stage.advance_ms(100);
  const size_t before = said("");
  stage.advance_ms(600'000);
  const size_t renewals = 180, together = 3, look = 2;  // CLIENT CACHING and extend; a reading and TIME in every second
  EXPECT_LE(said("") - before, renewals * together + look);
}

// All masters forget their scripts, and all their answers come in one turn. Our own memory holds the commands of a few
// locks. The others wait for the turns that follow: no vote fails, and every master is told every token.
TEST(Client, what_is_asked_again_waits_for_room) {
  const unsigned locks = 16;
  Site site(3, locks, [](Settings& s) { s.tx_bytes = REDLOCK_TX_BYTES_MIN; });
  site.forget_asked();
  const auto turn = [&](bool forgotten, const std::function<int(const std::string&)>& call = nullptr) {
    if (forgotten) {
      site.each([&](unsigned m) {
        for (unsigned i = 0; i < locks; ++i) site.redis(m).fail_next("NOSCRIPT No matching script.");
      });
    }
    site.turn([&] {
      for (unsigned i = 0; i < locks && call; ++i) EXPECT_EQ(call("a" + std::to_string(i)), 0);
    });
    site.each([&](unsigned m) { EXPECT_EQ(site.asked(m).size(), locks); });
  };
  const auto expect_told = [&](int type) {
    site.turn();
    EXPECT_EQ(site.told(type, [](const redlock_event_t& e) { return e.failed == 0; }), locks) << type;
  };
  turn(true, [&](const std::string& name) { return site.a.acquire(name, fenced()); });
  turn(false);
  turn(true);  // the hints are there, and the tokens are told
  turn(false);
  expect_told(REDLOCK_EV_ACQUIRED);
  turn(true, [&](const std::string& name) { return site.a.extend(name); });
  turn(false);
  expect_told(REDLOCK_EV_RENEWED);
}

// "So that every lock can send its SET in one turn", and with it the default transmit buffer's size, is a promise.
// Locks of one t0, and a master that restarts empty. What found no room in a turn leaves in the next one: each lock is
// renewed once until all keys are back.
TEST(Client, the_keys_of_many_locks_come_back_with_one_renewal) {
  for (const unsigned locks : {1u, 8u, 32u, 256u}) {
    Site site(3, locks);
    for (unsigned i = 0; i < locks; ++i) ASSERT_EQ(site.a.acquire("l" + std::to_string(i), usual()), 0);
    site.settle();
    site.restart(3, test::RedisDouble::Keep::none);
    site.forget_asked();
    const auto back = [&] { return site.executed("SET", 3).size() == size_t{2} * locks; };
    for (unsigned ms = 0; ms < 20'000 && !back(); ++ms) site.advance_ms(1);
    EXPECT_TRUE(back());
    const std::vector<Executed> asked = site.asked(1);
    EXPECT_EQ(std::count_if(asked.begin(), asked.end(),
                            [](const Executed& e) { return e.text.find(" extend ") != std::string::npos; }),
              locks);
    for (unsigned i = 0; i < locks; ++i) EXPECT_EQ(site.holders("l" + std::to_string(i)).size(), 3u) << i;
  }
}

// ---- a slow connection ------------------------------------------------------------------------------------------

std::vector<std::string> set_and_delete_words(const std::vector<Executed>& asked) {
  std::vector<std::string> said;
  for (const Executed& e : asked) {
    const bool set = e.words[0] == "SET";
    if (set || e.text.compare(0, 15, "EVALSHA release") == 0) said.push_back(e.words[0] + " " + e.words[set ? 1 : 3]);
  }
  return said;
}

// One master's socket takes so many bytes of a turn in which a delete, the SETs of two locks and an extend leave. The
// others get all of it, and have the shared memory again. What the slow one did not begin to take is taken back: the
// delete is owed and leaves later, the SETs and the extend are failed votes, and nothing is left over at the end.
TEST(Client, what_a_slow_master_did_not_take_never_happened) {
  for (size_t cut = 0;; ++cut) {
    Site site(3);
    const Client& client = site.a.client();
    for (const char* const name : {"ended", "kept"}) ASSERT_EQ(site.a.acquire(name, usual()), 0);
    site.forget_asked();
    site.set_room(1, cut);
    site.turn([&] {
      ASSERT_EQ(site.a.release("ended"), 0);
      ASSERT_EQ(site.a.extend("kept", 20'000), 0);
      for (const char* const name : {"one", "two"}) ASSERT_EQ(site.a.acquire(name, usual()), 0);
    });
    const std::vector<Executed> taken = site.asked(1), whole = site.asked(2);
    const bool all = taken.size() == whole.size();
    for (const auto& asked : {whole, site.asked(3)}) {
      ASSERT_EQ(set_and_delete_words(asked), (std::vector<std::string>{"EVALSHA ended", "SET one", "SET two"})) << cut;
    }
    if (cut == 0) {
      EXPECT_EQ(client.session(0).in_flight(), 1u) << "the oldest alone is kept";
    }
    if (!all) {
      EXPECT_NE(client.claims().debts_of(0) + client.session(0).in_flight(), 0u) << cut;
    }
    site.set_room(1, SIZE_MAX);
    site.a.resume();
    for (const char* const name : {"kept", "one", "two"}) {
      EXPECT_TRUE(site.a.holds(name)) << cut;
      EXPECT_EQ(site.holders(name).size(), 3u) << "what was taken back leaves before the first renewal, " << cut;
    }
    EXPECT_EQ(site.status().locks_held, 3u) << cut;
    EXPECT_EQ(site.debts(), 0u) << cut;
    for (const char* const name : {"kept", "one", "two"}) EXPECT_EQ(site.a.release(name), 0);
    EXPECT_EQ(site.debts(), 0u) << cut;
    for (MasterIndex m = 0; m < 3; ++m) EXPECT_EQ(client.session(m).in_flight(), 0u) << cut;
    client.claims().check();
    if (all) break;
    ASSERT_LT(cut, 2'000u);
  }
}

// Two of three masters granted, so both must store the token. The second lock's script is taken back from the slow one,
// and leaves when that has room. An earlier lock has told the masters the scripts, which are told to each by itself.
TEST(Client, the_second_script_of_a_token_that_was_taken_back_leaves_later) {
  Site site(3);
  site.set_way(3, Way::silent);
  ASSERT_EQ(site.a.acquire("zero", fenced()), 0);
  site.turn([&] {
    for (const char* const name : {"one", "two"}) ASSERT_EQ(site.a.acquire(name, fenced()), 0);
  });
  site.forget_asked();
  site.set_room(1, 0);
  site.turn();
  EXPECT_EQ(site.asked(1).size(), 0u);
  EXPECT_EQ(site.asked(2).size(), 2u);
  site.set_room(1, SIZE_MAX);
  EXPECT_EQ(site.asked(1).size(), 2u);
  site.a.resume();
  for (const char* const name : {"zero", "one", "two"}) EXPECT_TRUE(site.a.holds(name)) << name;
}

// ---- the deadline ---------------------------------------------------------------------------------------------

TEST(ClientDeadline, a_budget_that_is_shorter_than_the_masters_time) {
  Site site(3);
  site.each([&](unsigned m) { site.set_way(m, Way::silent); });
  Options options = usual();
  options.wait_ms = 10;
  ASSERT_EQ(site.a.acquire("valve", options), 0);
  EXPECT_LE(site.a.client().deadline(), site.a.now() + Duration::ms(10));
  site.advance_ms(10);
  EXPECT_EQ(site.a.outcome("valve"), "FAILED TIMEOUT");
}

// An acquire that is cancelled before its round would end, long after the keys: nothing else is due that early.
TEST(ClientDeadline, a_debt_that_ends_before_its_round_would_have_ended) {
  Site site(2, 4, [](Settings& s) { s.reconnect_min_ms = s.reconnect_max_ms = 60'000; });
  site.set_way(2, Way::silent);
  ASSERT_EQ(site.a.acquire("valve", Gateway::options(20)), 0);
  site.set_way(1, Way::down);
  ASSERT_EQ(site.a.cancel("valve"), 0);
  const Claims& claims = site.a.client().claims();
  ASSERT_EQ(claims.debts_of(0), 1u) << "it has granted the key";
  site.advance_ms(44);
  ASSERT_EQ(claims.debts_of(0), 1u);
  site.advance_ms(1);
  EXPECT_EQ(claims.debts_of(0), 0u) << "twice the ttl and the drift are over";
}

TEST(ClientDeadline, closing_does_not_keep_the_timer_running) {
  Site site(2);
  Client& client = site.a.client();
  site.a.act([&](Instant now) {
    ASSERT_EQ(client.close(Duration::ms(100), now), 0);
    client.turn(now);
    client.flushed(now);  // nothing is owed: the connections are to be closed, which takes them a while
    EXPECT_EQ(client.session(0).wish(), Session::Wish::close);
    now = now + Duration::ms(200);
    client.turn(now);
    EXPECT_GT(client.deadline(), now);
    for (const MasterIndex m : {0, 1}) {
      EXPECT_FALSE(client.is_closed()) << "before the last connection is gone";
      client.closed(m, 0, now);
    }
    EXPECT_TRUE(client.is_closed());
  });
}

TEST(Client, a_closed_one_commissions_nothing) {
  Site site(1);
  site.a.close(100);
  int err = 0;
  site.a.act([&](Instant now) { err = site.a.client().commission(0, now); });
  EXPECT_EQ(err, REDLOCK_E_CLOSED);
}

// ---- events: each is true when it is told ------------------------------------------------------------------------

// Locks a, b, c on one master, or on three of which the last is silent. The answers are there, and nothing is told yet.
struct Batch : Site {
  explicit Batch(unsigned count = 1) : Site(count) {
    if (count > 1) set_way(count, Way::silent);
  }
  void acquire(const std::vector<uint32_t>& ttls_ms) {
    turn([&] {
      for (const uint32_t ttl_ms : ttls_ms) {
        ASSERT_EQ(a.acquire(std::string(1, static_cast<char>('a' + locks++)), Gateway::options(ttl_ms)), 0);
      }
    });
  }
  // The first callback of this type takes so long.
  void slow(int type, double ms) {
    on_event = [this, type, left = ms](Gateway&, const std::string&, const redlock_event_t& e) mutable {
      if (e.type == type) take_ms(std::exchange(left, 0));
    };
  }
  // What was told of locks from this event on.
  std::string story(size_t first = 0) const {
    static constexpr const char* names[] = {"", "ACQUIRED", "FAILED", "RENEWED", "AT_RISK", "LOST", "RELEASED"};
    std::string text;
    for (size_t i = first; i < a.told().size(); ++i) {
      const redlock_event_t& e = a.told()[i].event;
      if (e.type == REDLOCK_EV_MASTER) continue;
      text += std::string(text.empty() ? "" : ", ") + names[e.type] + " " + a.told()[i].lock;
      if (e.type == REDLOCK_EV_FAILED && e.err == REDLOCK_E_LOST) text += " LOST";
      if (e.validity_ms != 0) text += " " + std::to_string(e.validity_ms);
    }
    return text;
  }
  int locks = 0;
};

TEST(ClientEvents, a_lock_that_ends_in_the_callback_before_its_acquired_has_failed) {
  Batch batch;
  batch.slow(REDLOCK_EV_ACQUIRED, 1'500);
  batch.acquire({1'000, 1'000});
  batch.turn();
  EXPECT_EQ(batch.story(), "ACQUIRED a 988, LOST a, FAILED b LOST");
}

TEST(ClientEvents, the_validity_is_that_of_the_instant_when_it_is_told) {
  Batch batch;
  batch.slow(REDLOCK_EV_ACQUIRED, 100);
  batch.acquire({1'000, 1'000});
  batch.turn();
  EXPECT_EQ(batch.story(), "ACQUIRED a 988, ACQUIRED b 888");
  const size_t before = batch.a.told().size();
  batch.slow(REDLOCK_EV_RENEWED, 4'000);
  batch.turn([&] {
    for (const char* const name : {"a", "b"}) ASSERT_EQ(batch.a.extend(name, 5'000), 0);
  });
  batch.turn();
  EXPECT_EQ(batch.story(before), "RENEWED a 4948, RENEWED b 948");
}

// A master that owes an answer becomes suspect while a callback runs, and no other input follows.
TEST(ClientEvents, what_falls_due_in_a_callback_is_told_without_another_input) {
  Batch batch(3);
  batch.slow(REDLOCK_EV_ACQUIRED, 100);
  batch.acquire({10'000, 10'000});
  batch.turn();
  EXPECT_EQ(batch.story(), "ACQUIRED a 9898, ACQUIRED b 9798");
  EXPECT_EQ(batch.a.told().back().event.type, REDLOCK_EV_MASTER);
  EXPECT_EQ(batch.a.told().back().event.state, REDLOCK_MASTER_SUSPECT);
}

// ---- long random lives ---------------------------------------------------------------------------------------------

// What is due first of all that the client owns, asked one by one.
Instant first_due(const Client& client) {
  Instant first = client.claims().deadline();
  for (uint16_t i = 0; i < client.settings().locks; ++i) first = earlier(first, Machine::deadline(client.lock(i)));
  for (MasterIndex m = 0; m < client.settings().masters; ++m) first = earlier(first, client.session(m).deadline());
  return first;
}

// Masters answer when chance lets them, and what chance lets them say.
struct Storm : Site {
  Storm(unsigned count, unsigned seed, const std::function<void(Settings&)>& change) : Site(count, 4, change) {
    dice.seed(seed);
    each([this](unsigned m) { set_way(m, Way::silent); });
    lie = [this](unsigned, const std::vector<std::string>& words, std::string& reply) {
      const char* const other = chance(words);
      if (other != nullptr) reply = std::string(other) + "\r\n";
    };
  }

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

  // In place of the answer; null: the true one.
  const char* chance(const std::vector<std::string>& words) {
    const unsigned n = roll(100);
    const std::string& word = words[0];
    const std::string& said = executed().back().text;
    const auto says = [&said](const char* what) { return said.find(what) != std::string::npos; };
    if (n == 0) return "-LOADING";
    if (word == "HELLO") return n == 1 ? "-ERR unknown command" : n == 2 ? "-WRONGPASS" : nullptr;
    if (says(" reading") || word == "TIME") return n == 1 ? "-NOPERM" : nullptr;
    if (says(" record") || says(" visit")) return n < 5 ? ":0" : n < 8 ? "-OOM" : nullptr;
    if (says(" acquire")) return n < 4 ? "-NOSCRIPT" : n < 8 ? "_" : n == 8 ? ":-1" : "+OK";
    if (says("CLIENT KILL")) return n < 50 ? ":1" : "-NOPERM";
    if (word == "SET") return n < 8 ? "_" : n == 9 ? "-OOM" : "+OK";
    if (word == "EVALSHA" && n < 4) return "-NOSCRIPT";
    if (word == "EVALSHA" || word == "EVAL") return n < 8 ? ":0" : n == 9 ? "-OOM" : n == 10 ? "-READONLY" : ":1";
    return nullptr;
  }

  const char* input(Instant now) {
    const unsigned m = 1 + roll(masters());
    Client& client = a.client();
    uint64_t handle = 0;
    switch (roll(20)) {
      case 0:
      case 1: {
        const std::string name = "r" + std::to_string(roll(3));
        client.acquire(Bytes(name.data(), name.size()), options(), nullptr, nullptr, handle);
        if (handle != 0) handles.push_back(handle);
        return "acquire";
      }
      case 2:
        client.release(some());
        return "release";
      case 3:
        if (roll(4) == 0) client.cancel(some());
        if (roll(20) == 0 && client.commission(roll(masters() + 1), now) != 0) return "?";
        return "cancel, or a new site";
      case 4:
        client.extend(some(), roll(2) ? 0 : 20 + roll(2'000));
        return "extend";
      case 5:
        if (roll(200) == 0) a.jump();
        if (roll(20) == 0) redis(m).overflow_trackers();
        return "a jump, or a null push";
      case 6:
        if (roll(10) == 0) set_way(m, roll(2) == 0 ? Way::down : Way::unreachable);
        if (roll(100) == 0) redis(m).become_replica();
        return "a break, or another role";
      case 7: {
        a.set_entropy(roll(10) != 0);
        const size_t room = roll(10) == 0 ? roll(300) : SIZE_MAX;
        each([&](unsigned all) { set_room(all, room); });
        return "room";
      }
      case 8:
        set_way(m, Way::silent);
        if (redis(m).knobs.replica) redis(m).become_master();
        return "all is well";
      default:
        answer(m, 1 + roll(8));
        return "replies";
    }
  }

  void expect_in_time(const char* after) {
    ASSERT_LE(a.client().deadline(), later(first_due(a.client()), a.now())) << "late, after " << after;
  }

  void run(unsigned inputs) {
    for (unsigned i = 0; i < inputs; ++i) {
      const uint64_t steps = a.steps();
      a.act([this](Instant now) {
        // Sometimes exactly to the deadline, sometimes past it, often not that far.
        const Instant due = a.client().deadline();
        const double ahead_ms = roll(roll(20) == 0 ? 100'000 : 1'000) / 1e3;
        const bool to_due = roll(3) == 0 && due > now && due < now + Duration::ms(500);
        advance_ms(to_due ? static_cast<double>(due.ns() - now.ns()) / 1e6 : ahead_ms);
        expect_in_time(input(a.now()));
      });
      expect_in_time("the steps");
      if (testing::Test::HasFatalFailure()) return;
      ASSERT_FALSE(a.pending()) << "it wants a turn for ever";
      ASSERT_LE(a.steps(), steps + 20) << "the timer fires again and again";
      for (MasterIndex m = 0; m < masters(); ++m) {
        EXPECT_TRUE(a.client().needs_port() || a.client().session(m).wish() == Session::Wish::none);
      }
      if (handles.size() > 50) handles.erase(handles.begin());
    }
  }
  std::mt19937 dice;
  std::vector<uint64_t> handles;
};

// The status counts what was told.
void expect_counted(const Site& site) {
  const redlock_status_t s = site.status();
  const auto failed = [&](int err) {
    return static_cast<uint64_t>(
        site.told(REDLOCK_EV_FAILED, [err](const redlock_event_t& e) { return e.err == err; }));
  };
  const auto told = [&](int type) { return static_cast<uint64_t>(site.told(type)); };
  const uint64_t locked = failed(REDLOCK_E_LOCKED), no_quorum = failed(REDLOCK_E_NO_QUORUM);
  EXPECT_EQ(s.acquired, told(REDLOCK_EV_ACQUIRED));
  EXPECT_EQ(s.failed_locked, locked);
  EXPECT_EQ(s.failed_no_quorum, no_quorum);
  EXPECT_EQ(s.failed_other, told(REDLOCK_EV_FAILED) - locked - no_quorum);
  EXPECT_EQ(s.renewed, told(REDLOCK_EV_RENEWED));
  EXPECT_EQ(s.renew_failed, told(REDLOCK_EV_AT_RISK));
  EXPECT_EQ(s.lost, told(REDLOCK_EV_LOST));
  EXPECT_EQ(s.released, told(REDLOCK_EV_RELEASED));
}

TEST(ClientDeadline, never_late_and_never_stuck) {
  int64_t acquired = 0, lost = 0, renewed = 0, guarded = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Storm storm(seed % 5 + 1, seed, [seed](Settings& s) {
      s.suspect_close = Duration::ms(seed % 2 ? 200 : 3'000);
      s.reconnect_min_ms = 10;
      s.ping_interval = Duration::ms(300);
      if (seed % 3 == 0) s.tx_bytes = REDLOCK_TX_BYTES_MIN;
      if (seed % 4 != 3) return;
      s.guard = seed % 8 == 3 ? GuardMode::strict : GuardMode::weak;
      s.max_ttl_ms = 2'100;
      s.has_boot_id = true;
    });
    storm.run(test::repeats(4'000));
    if (HasFatalFailure()) return;
    acquired += storm.told(REDLOCK_EV_ACQUIRED);
    guarded += storm.a.client().settings().guard != GuardMode::off ? storm.told(REDLOCK_EV_ACQUIRED) : 0;
    lost += storm.told(REDLOCK_EV_LOST);
    renewed += storm.told(REDLOCK_EV_RENEWED);
    ASSERT_EQ(storm.a.close(500), 0);
    for (int i = 0; i < 200 && !storm.a.closed(); ++i) {
      storm.expect_in_time("close");
      storm.advance_ms(5);
    }
    ASSERT_TRUE(storm.a.closed());
    expect_counted(storm);
  }
  EXPECT_GT(acquired, test::repeats(1'000));
  EXPECT_GT(guarded, test::repeats(100));
  EXPECT_GT(lost, test::repeats(50));
  EXPECT_GT(renewed, test::repeats(200));
}

}  // namespace
}  // namespace redlock
