// SPDX-License-Identifier: MIT
//
// Claims: long random walks of valid operations, beside a model that keeps one plain record per claim and master, and
// beside servers that execute what they read, and read when they like. The first part is what the walks do not go
// through.
#include "client/claims.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "support/repeats.hpp"

namespace redlock {
namespace {

using Deleted = Claims::Deleted;

constexpr uint32_t ttl = 1'000;
constexpr unsigned resource_bytes = 12;
constexpr int64_t lifetime_ms = 1'012;  // ttl + drift

Instant at(int64_t ms) { return Instant::from_ns(ms * 1'000'000); }

struct Fixture {
  explicit Fixture(unsigned masters = 3, unsigned locks = 4, unsigned capacity = 10)
      : table(capacity), names(capacity * resource_bytes) {
    claims.init({.masters = masters,
                 .quorum = masters / 2 + 1,
                 .locks = locks,
                 .drift_ppm = 10'000,
                 .drift_fixed_ms = 2,
                 .resource_bytes = resource_bytes},
                table.data(), capacity, names.data());
  }
  uint16_t make() { return claims.make(7, "valve", ttl); }
  // A claim whose SET was sent to masters 0 and 1 and granted there.
  uint16_t granted() {
    const uint16_t c = make();
    for (const MasterIndex m : {0u, 1u}) {
      claims.set_sent(c, m);
      claims.set_answered(c, m, false, at(0));
    }
    return c;
  }
  // One whose SET to master 0 was unanswered when its connection broke.
  uint16_t stray() {
    const uint16_t c = make();
    claims.set_sent(c, 0);
    claims.broke(0);
    return c;
  }
  // That one, given up at 0 ms.
  uint16_t stray_debt() {
    const uint16_t c = stray();
    claims.end(c, Masters::of(0), at(0));
    return c;
  }
  void remove(uint16_t c, MasterIndex m, Deleted how, Instant when) {
    claims.deletes_queued(c, Masters::of(m));
    claims.delete_answered(c, m, how, when);
  }
  bool freed(uint16_t c) const { return !claims[c].used; }

  std::vector<Claim> table;
  std::vector<char> names;
  Claims claims;
};

struct AnyClaims : ::testing::Test {
  Fixture f;
};
struct GrantedClaim : AnyClaims {
  const uint16_t c = f.granted();
};
struct StrayDebt : AnyClaims {
  const uint16_t c = f.stray_debt();
};

TEST_F(GrantedClaim, a_key_is_put_back_as_soon_as_its_stray_can_come_no_more) {
  f.claims.put_back_sent(c, 0);
  f.claims.broke(0);
  EXPECT_FALSE(f.claims.may_put_back(c, 0, at(1'000'000)));
  f.claims.strays_at_large(0, at(1'000'000));
  EXPECT_FALSE(f.claims.may_put_back(c, 0, at(1'000'000 + lifetime_ms - 1)));
  EXPECT_TRUE(f.claims.may_put_back(c, 0, at(1'000'000 + lifetime_ms)));
}

TEST_F(GrantedClaim, an_error_rests_longer_each_time_up_to_a_limit) {
  f.claims.end(c, Masters::of(0), at(0));
  int64_t now = 0;
  for (const int64_t rest : {20, 40, 80, 160, 320, 640, 1'280, 1'280}) {
    f.claims.deletes_queued(c, Masters::of(0));
    f.claims[c].over_at = at(1'000'000);  // when the debt is written off is not the matter here
    f.claims.delete_answered(c, 0, Deleted::error, at(now));
    f.claims.on_time(at(now + rest - 1));
    EXPECT_FALSE(f.claims.owes(0)) << rest;
    f.claims.on_time(at(now += rest));
    EXPECT_TRUE(f.claims.owes(0)) << rest;
  }
}

// ---- the queue of ended ones ----------------------------------------------------------------------------------

TEST_F(AnyClaims, one_that_stands_in_a_queue_is_not_given_away) {
  Queue<Claim, &Claim::place> ended;
  const uint16_t c = f.granted();
  f.claims.end(c, Masters::of(0), at(0));
  ended.push(f.table.data(), c);
  f.claims.on_time(at(10'000));  // the debt ends meanwhile
  EXPECT_FALSE(f.freed(c));
  EXPECT_EQ(f.claims[c].owed, Masters());
  ended.remove(f.table.data(), c);
  f.claims.unqueued(c);
  EXPECT_TRUE(f.freed(c));
  EXPECT_EQ(f.make(), c);
}

// ---- shares ---------------------------------------------------------------------------------------------------

#if defined(REDLOCK_ASSERTS)
TEST_F(GrantedClaim, what_cannot_happen_traps) {
  EXPECT_DEATH(f.claims.set_answered(c, 0, false, at(0)), "claims.hpp:[0-9]+: c.pending.has\\(m\\)\n")
      << "answered twice";
  EXPECT_DEATH(f.claims.end(c, Masters::of(2), at(0)), "") << "nothing was sent there";
  EXPECT_DEATH(f.claims.deletes_queued(c, Masters::of(0)), "") << "not owed";
  EXPECT_DEATH(f.claims.delete_answered(c, 0, Deleted::yes, at(0)), "") << "not asked";
}

TEST(Claims, what_contradicts_itself_traps) {
  const auto check_with = [](void (*spoil)(Claim&)) {
    Fixture f;
    Claim& claim = f.claims[f.granted()];
    f.claims.check();
    spoil(claim);
    f.claims.check();
  };
  EXPECT_DEATH(check_with([](Claim& c) { c.refused.add(2); }), "") << "was not sent it";
  EXPECT_DEATH(check_with([](Claim& c) { c.owed.add(0); }), "") << "the value has not ended";
  EXPECT_DEATH(check_with([](Claim& c) { c.pending.add(0); }), "") << "not counted as open";
  EXPECT_DEATH(check_with([](Claim& c) { c.reserved.remove(0); }), "") << "counted as reserved";
  EXPECT_DEATH(check_with([](Claim& c) { c.ended = true; }), "") << "not counted as a debt";
}
#endif

// ---- strays -------------------------------------------------------------------------------------------------------

// It may have found what another listing of the same server has put back.
TEST_F(StrayDebt, a_key_that_was_found_does_not_pay_for_a_stray) {
  f.claims.strays_at_large(0, at(10));
  f.remove(c, 0, Deleted::yes, at(10));
  EXPECT_FALSE(f.freed(c));
  EXPECT_EQ(f.claims[c].resting, Masters::of(0));
  f.claims.on_time(at(10 + lifetime_ms));
  f.remove(c, 0, Deleted::yes, at(10 + lifetime_ms));
  EXPECT_TRUE(f.claims.owes(0));
  f.remove(c, 0, Deleted::yes, at(11 + lifetime_ms));
  EXPECT_TRUE(f.freed(c));
}

// ---- random walks ---------------------------------------------------------------------------------------------

// What one claim is to one master, as plain facts.
struct Place {
  bool sent = false, refused = false;
  bool set_unanswered = false;  // on the present connection
  bool set_stray = false;
  enum { none, owed, asked, resting } debt = none;
  bool reserved = false;
};

struct Model {
  struct One {
    uint64_t value = 0;  // as the masters know it
    std::map<unsigned, Place> at;
    bool ended = false;
    std::optional<int64_t> end_at, void_at, repeat_at;
    int64_t rest = 20;
    bool over() const {
      if (!ended) return false;
      for (const auto& [m, p] : at) {
        if (p.set_unanswered || p.set_stray || p.debt != Place::none) return false;
      }
      return true;
    }
  };
  std::map<uint16_t, One> claims;
  std::map<unsigned, int64_t> back_at;  // when strays were told to be at large

  bool strays_may_come(unsigned m, int64_t now) const {
    const auto back = back_at.find(m);
    return back != back_at.end() && now < back->second + lifetime_ms;
  }
  void end(One& c, int64_t now, bool spare_refused) {
    c.ended = true;
    c.end_at.reset();
    c.void_at = now + 2 * lifetime_ms;
    for (auto& [m, p] : c.at) {
      if (p.sent && !(spare_refused && p.refused)) {
        p.debt = Place::owed;
      } else {
        p.reserved = false;
      }
    }
  }
  void time(int64_t now) {
    for (auto& [index, c] : claims) {
      if (!c.ended && c.end_at && now >= *c.end_at) end(c, now, false);
      bool any_resting = false;
      for (auto& [m, p] : c.at) {
        const bool voided =
            c.void_at && now >= *c.void_at && !p.set_stray && !p.set_unanswered && p.debt != Place::asked;
        if (voided) p.debt = Place::none, p.reserved = false;
        any_resting |= p.debt == Place::resting;
      }
      if (!any_resting || now < *c.repeat_at) continue;
      for (auto& [m, p] : c.at) {
        if (p.debt == Place::resting) p.debt = Place::owed;
      }
    }
    sweep();
  }
  void sweep() {
    for (auto it = claims.begin(); it != claims.end();) it = it->second.over() ? claims.erase(it) : std::next(it);
  }
  void no_stray(One& c, unsigned m, int64_t now) {
    c.at[m].set_stray = false;
    if (c.ended) c.void_at = std::max(*c.void_at, now + 2 * lifetime_ms);
  }
  void answered(One& c, unsigned m, Deleted how, int64_t now) {
    Place& p = c.at[m];
    if (how != Deleted::error && !p.set_stray) {
      p.debt = Place::none;
    } else if (how != Deleted::error && !strays_may_come(m, now)) {
      no_stray(c, m, now);
      p.debt = Place::owed;
    } else {
      bool any_resting = false;
      for (auto& [n, q] : c.at) any_resting |= q.debt == Place::resting;
      if (!any_resting) {
        c.repeat_at = now + c.rest;
        c.rest = std::min<int64_t>(2 * c.rest, 1'280);
      }
      if (p.set_stray) c.repeat_at = std::min(*c.repeat_at, std::max(back_at[m] + lifetime_ms, now + 20));
      p.debt = Place::resting;
    }
  }
  bool broke(unsigned m) {
    bool strays = false;
    for (auto& [index, c] : claims) {
      Place& p = c.at[m];
      p.reserved = false;
      if (p.set_unanswered) p.set_unanswered = false, p.set_stray = true;
      if (p.debt == Place::asked) p.debt = Place::owed;
      strays |= p.set_stray;
    }
    return strays;
  }
  void strays_ended(unsigned m, int64_t now) {
    if (strays_may_come(m, now)) return;
    for (auto& [index, c] : claims) {
      if (c.at[m].set_stray) no_stray(c, m, now);
    }
    sweep();
  }
  unsigned count(unsigned m, bool (*what)(const Place&)) const {
    unsigned n = 0;
    for (const auto& [index, c] : claims) {
      const auto it = c.at.find(m);
      n += it != c.at.end() && what(it->second);
    }
    return n;
  }
};

// What really is on a server: keys, and commands that it has not read yet, on the present connection and on old ones.
// It may read any connection at any time.
struct Server {
  struct Said {
    bool set;
    uint16_t claim;
    uint64_t value;
  };
  struct Answer {
    Said to;
    enum { yes, no, error, unknown } what;
  };
  struct Connection {
    std::deque<Said> unread;
    int64_t dead_at = INT64_MAX;  // nothing of it is executed from then on
  };
  std::map<uint64_t, int64_t> own_keys;  // value → when it expires
  std::map<uint64_t, int64_t>* keys = &own_keys;
  Connection present;
  std::vector<Connection> old;
  std::deque<Answer> answers;  // on their way

  bool has(uint64_t value, int64_t now) const {
    const auto key = keys->find(value);
    return key != keys->end() && now < key->second;
  }
  // The next command of a connection. A server may refuse for many reasons; then nothing is changed.
  Answer execute(Connection& connection, int64_t now, unsigned luck) {
    const Said said = connection.unread.front();
    connection.unread.pop_front();
    if (luck == 0) return {said, said.set ? Answer::error : Answer::unknown};
    if (luck == 1) return {said, said.set ? Answer::no : Answer::error};
    if (!said.set) {
      const bool was_there = has(said.value, now);
      keys->erase(said.value);
      return {said, was_there ? Answer::yes : Answer::no};
    }
    if (has(said.value, now)) return {said, Answer::no};
    (*keys)[said.value] = now + ttl;
    return {said, Answer::yes};
  }
  bool may_still_set(uint64_t value, int64_t now) const {
    const auto holds = [&](const Connection& c) {
      return now < c.dead_at &&
             std::any_of(c.unread.begin(), c.unread.end(), [&](const Said& s) { return s.set && s.value == value; });
    };
    return holds(present) || std::any_of(old.begin(), old.end(), holds);
  }
};

struct Walk {
  // twins: the first two masters are one server.
  Walk(unsigned seed, unsigned n_masters, unsigned n_locks, unsigned n_capacity, bool twins)
      : dice(seed),
        masters(n_masters),
        capacity(n_capacity),
        fixture(n_masters, n_locks, n_capacity),
        server(n_masters),
        up(n_masters, true) {
    const unsigned minority = masters - (masters / 2 + 1);
    share = std::max(1u, (capacity - n_locks) / std::max(1u, minority));
    if (twins && masters > 1) server[1].keys = server[0].keys;
  }

  unsigned roll(unsigned n) { return static_cast<unsigned>(dice() % n); }

  // ---- the client
  void make() {
    const uint16_t c = claims.make(1, "valve", ttl);
    ASSERT_EQ(c == no_slot, model.claims.size() == capacity);
    if (c == no_slot) return;
    ASSERT_EQ(model.claims.count(c), 0u) << "given out twice";
    Model::One& one = model.claims[c];
    one.value = values[c] = next_value++;
    for (unsigned m = 0; m < masters; ++m) {
      one.at[m];
      if (roll(4) == 0 || !up[m] || !claims.may_send(m)) continue;
      claims.set_sent(c, m);
      one.at[m].sent = one.at[m].set_unanswered = one.at[m].reserved = true;
      server[m].present.unread.push_back({true, c, one.value});
    }
  }
  void put_back() {
    for (auto& [index, c] : model.claims) {
      const unsigned m = roll(masters);
      if (c.ended || c.end_at || !up[m] || !c.at[m].sent || roll(2) == 0) continue;
      if (server[m].has(c.value, now)) continue;  // an extend has found it
      Place& p = c.at[m];
      if (p.set_stray && !strays_may_come(m)) p.set_stray = false;
      const bool may = claims.may_put_back(index, m, at(now));
      ASSERT_EQ(may, claims.may_send(m) && !p.set_unanswered && !p.set_stray);
      if (!may) continue;
      claims.put_back_sent(index, m);
      p.set_unanswered = p.reserved = true;
      p.refused = false;
      server[m].present.unread.push_back({true, index, c.value});
    }
  }
  bool strays_may_come(unsigned m) const { return model.strays_may_come(m, now); }
  void end() {
    std::vector<uint16_t> live;
    for (auto& [index, c] : model.claims) {
      if (!c.ended && !c.end_at) live.push_back(index);
    }
    if (live.empty()) return;
    const uint16_t index = live[roll(static_cast<unsigned>(live.size()))];
    Model::One& c = model.claims[index];
    if (roll(5) == 0) {
      const int64_t when = now + roll(1'000);
      claims.linger(index, at(when));
      c.end_at = when;
      return;
    }
    const bool spare = roll(2) == 0;
    Masters targets;
    for (auto& [m, p] : c.at) {
      if (p.sent && !(spare && p.refused)) targets.add(m);
    }
    claims.end(index, targets, at(now));
    model.end(c, now, spare);
    model.sweep();
  }
  void queue_delete(unsigned m) {
    const uint16_t index = claims.next_owed(m, 0);
    if (index == no_slot || !up[m]) return;
    claims.deletes_queued(index, Masters::of(m));
    Model::One& c = model.claims[index];
    Place& p = c.at[m];
    ASSERT_EQ(p.debt, Place::owed);
    p.debt = Place::asked;
    p.reserved = false;
    server[m].present.unread.push_back({false, index, c.value});
  }

  // ---- the servers
  void execute(unsigned m, bool well) {
    Server& s = server[m];
    const unsigned luck = well ? 99 : roll(20);
    const unsigned n = roll(static_cast<unsigned>(s.old.size()) + 1);
    if (n < s.old.size()) {
      if (!s.old[n].unread.empty() && now < s.old[n].dead_at) s.execute(s.old[n], now, luck);
    } else if (!s.present.unread.empty()) {
      s.answers.push_back(s.execute(s.present, now, luck));
    }
  }
  void answer(unsigned m) {
    if (server[m].answers.empty()) return;
    const Server::Answer a = server[m].answers.front();
    server[m].answers.pop_front();
    Model::One& c = model.claims.at(a.to.claim);
    ASSERT_EQ(c.value, a.to.value) << "an answer about a claim of before";
    if (a.to.set) {
      const bool refused = a.what == Server::Answer::no;
      claims.set_answered(a.to.claim, m, refused, at(now));
      c.at[m].set_unanswered = false;
      c.at[m].refused |= refused;
      if (c.ended && !refused) c.void_at = std::max(*c.void_at, now + 2 * lifetime_ms);
    } else if (a.what == Server::Answer::unknown) {
      claims.delete_unknown(a.to.claim, m);
      c.at[m].debt = Place::owed;
    } else {
      const Deleted how = a.what == Server::Answer::yes  ? Deleted::yes
                          : a.what == Server::Answer::no ? Deleted::absent
                                                         : Deleted::error;
      claims.delete_answered(a.to.claim, m, how, at(now));
      model.answered(c, m, how, now);
    }
    model.sweep();
  }
  // Also the next connection breaks, before it was up.
  void broke(unsigned m) {
    if (up[m]) server[m].old.push_back(std::move(server[m].present));
    server[m].present = {};
    server[m].answers.clear();
    up[m] = false;
    ASSERT_EQ(claims.broke(m), model.broke(m));
  }
  // The next one is up. The server has ended the last one that was up, or nobody has and what is left comes soon or
  // never.
  void back(unsigned m, bool ends) {
    if (up[m]) return;
    up[m] = true;
    Server& s = server[m];
    if (ends) {
      if (!s.old.empty()) s.old.back().unread.clear();
      claims.strays_ended(m, at(now));
      model.strays_ended(m, now);
    } else {
      for (Server::Connection& c : s.old) {
        if (now < c.dead_at) c.dead_at = now + lifetime_ms;
      }
      claims.strays_at_large(m, at(now));
      model.back_at[m] = now;
    }
    std::erase_if(s.old, [&](const Server::Connection& c) { return c.unread.empty() || now >= c.dead_at; });
  }

  // ---- time
  // The earliest thing that a claim will want, one by one.
  Instant first_due() const {
    Instant first = Instant::never();
    const auto may_be = [&](const std::optional<int64_t>& when) {
      if (when && *when > now) first = earlier(first, at(*when));
    };
    for (const auto& [index, c] : model.claims) {
      if (!c.ended) may_be(c.end_at);
      for (const auto& [m, p] : c.at) {
        if (p.debt == Place::resting) may_be(c.repeat_at);
        if (p.debt == Place::owed || p.debt == Place::resting) may_be(c.void_at);
      }
    }
    return first;
  }
  // Time goes by, and the claims are asked whenever they asked to be.
  void pass(int64_t ms) {
    const int64_t then = now + ms;
    while (claims.deadline() <= at(then)) {
      now = std::max(now, (claims.deadline().ns() + 999'999) / 1'000'000);
      claims.on_time(at(now));
      model.time(now);
      ASSERT_GT(claims.deadline(), at(now)) << "handled, and due again";
      check();
      if (testing::Test::HasFatalFailure()) return;
    }
    now = then;
    claims.on_time(at(now));  // nothing is due
    ASSERT_LE(claims.deadline(), first_due());
  }

  void check() {
    unsigned debts = 0;
    for (const auto& [index, c] : model.claims) {
      debts += c.ended;
      ASSERT_TRUE(claims[index].used);
    }
    ASSERT_EQ(claims.debts(), debts);
    ASSERT_EQ(claims.full(), model.claims.size() == capacity);
    for (unsigned m = 0; m < masters; ++m) {
      ASSERT_EQ(claims.reserved(m), model.count(m, [](const Place& p) { return p.reserved; }));
      ASSERT_EQ(claims.owes(m), model.count(m, [](const Place& p) { return p.debt == Place::owed; }) != 0);
      ASSERT_EQ(claims.debts_of(m), model.count(m, [](const Place& p) { return p.debt != Place::none; }));
      const unsigned open =
          model.count(m, [](const Place& p) { return p.set_unanswered || p.set_stray || p.debt != Place::none; });
      ASSERT_EQ(claims.may_send(m), open < share);
      uint16_t at_index = claims.next_owed(m, 0);
      for (const auto& [index, c] : model.claims) {
        if (c.at.at(m).debt != Place::owed) continue;
        ASSERT_EQ(at_index, index);
        at_index = claims.next_owed(m, static_cast<uint16_t>(index + 1));
      }
      ASSERT_EQ(at_index, no_slot);
    }
    // What the claims are for: none is forgotten while a server has its key, or may still execute its SET.
    for (auto it = values.begin(); it != values.end();) {
      if (claims[it->first].used && model.claims.count(it->first) != 0) {
        ++it;
        continue;
      }
      for (unsigned m = 0; m < masters; ++m) {
        ASSERT_FALSE(server[m].has(it->second, now)) << "master " << m << " has a key that nobody owes a delete";
        ASSERT_FALSE(server[m].may_still_set(it->second, now)) << "master " << m << " may still execute a SET";
      }
      it = values.erase(it);
    }
  }

  void step() {
    const unsigned m = roll(masters);
    switch (roll(16)) {
      case 0:
      case 1:
        return make();
      case 2:
      case 3:
        return end();
      case 4:
      case 5:
      case 6:
        return queue_delete(m);
      case 7:
        return pass(roll(roll(20) == 0 ? 3'000 : 50));
      case 8:
        if (roll(8) == 0) broke(m);
        return;
      case 9:
        if (roll(3) == 0) back(m, roll(3) != 0);
        return;
      case 10:
        return put_back();
      case 11:
      case 12:
        return execute(m, false);
      default:
        return answer(m);
    }
  }

  // Every lock ends, every master answers, time goes by: nothing is left.
  void settle() {
    for (int i = 0; i < 2'000 && !model.claims.empty(); ++i) {
      end();
      for (unsigned m = 0; m < masters; ++m) {
        back(m, true);
        queue_delete(m);
        for (int n = 0; n < 8; ++n) execute(m, true), answer(m);
      }
      pass(100);
      check();
      if (testing::Test::HasFatalFailure()) return;
    }
    ASSERT_TRUE(model.claims.empty());
    ASSERT_EQ(claims.debts(), 0u);
    pass(10 * lifetime_ms);  // a deadline may be early, but not for ever
    ASSERT_EQ(claims.deadline(), Instant::never());
    for (unsigned m = 0; m < masters; ++m) {
      ASSERT_EQ(claims.reserved(m), 0u);
      ASSERT_FALSE(claims.owes(m));
      // The whole share is there again.
      for (unsigned n = 0; n < share; ++n) {
        ASSERT_TRUE(claims.may_send(m));
        claims.set_sent(claims.make(1, "valve", ttl), m);
      }
      ASSERT_FALSE(claims.may_send(m));
      for (uint16_t i = 0; i < capacity; ++i) {
        if (!claims[i].used) continue;
        claims.set_answered(i, m, true, at(0));
        claims.end(i, {}, at(now));
      }
    }
    unsigned free = 0;
    while (claims.make(1, "valve", ttl) != no_slot) ++free;
    ASSERT_EQ(free, capacity);
  }

  std::mt19937 dice;
  unsigned masters, capacity, share;
  Fixture fixture;
  Claims& claims = fixture.claims;
  Model model;
  std::vector<Server> server;
  std::vector<bool> up;
  std::map<uint16_t, uint64_t> values;  // of claims that were made and not seen to be free
  uint64_t next_value = 1;
  int64_t now = 0;
};

TEST(Claims, random_walks_beside_a_model_and_servers) {
  for (unsigned seed = 0; seed < test::repeats(60); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const unsigned masters[] = {1, 2, 3, 5, 7};
    Walk walk(seed, masters[seed % 5], 4, 6 + seed % 9, seed % 3 == 0);
    for (int n = 0; n < 1'500; ++n) {
      walk.step();
      walk.check();
      if (HasFatalFailure()) FAIL() << "at step " << n;
    }
    walk.settle();
    if (HasFatalFailure()) FAIL() << "while settling";
  }
}

}  // namespace
}  // namespace redlock
