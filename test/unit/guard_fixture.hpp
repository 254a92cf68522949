// SPDX-License-Identifier: MIT
//
// A guard, and a master that is a record, two ids and a role, which the test changes.
#pragma once
#include "master/guard.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <string>
#include <string_view>

namespace redlock::guard_test {

using Next = Guard::Next;
using Field = Guard::Field;

inline Instant at(int64_t ms) { return Instant::from_ns(ms * 1'000'000); }
inline Bytes bytes(const std::string& s) { return Bytes(s.data(), s.size()); }
inline std::string text(Bytes b) { return std::string(b.data, b.size); }

struct Record {
  std::string desc, q, seal, visit, left;  // empty: absent
};

// A reading that was sent, and is not answered yet.
struct Asked {
  uint32_t number;
  Instant sent;
};

inline constexpr int64_t guard_ms = 30'302;  // max_ttl + 1 % + 2 ms

struct Fixture {
  explicit Fixture(GuardMode mode = GuardMode::strict) {
    settings.guard = mode;
    settings.max_ttl_ms = 30'000;
    settings.fingerprint = "v1 n=3";
    connect();
  }
  Fixture(const Fixture&) = delete;
  void connect(const char* run = "1111111111111111", const char* repl = "2222222222222222") {
    guard.connected();
    facts = {};
    facts.has_run_id = facts.has_replid = facts.standalone = facts.master = facts.alone = true;
    memcpy(facts.run_id, run, sizeof facts.run_id);
    resynchronize(repl);
    guard.identify(facts, now);
  }
  void resynchronize(const char* repl) { memcpy(facts.replid, repl, sizeof facts.replid); }

  Asked ask() { return {guard.begin_reading(), now}; }
  // What the master is now is the answer.
  Next answer(const Asked& asked) {
    say_role();
    say_fields();
    return guard.end_reading(asked.number, asked.sent, now);
  }
  void say_role() {
    if (info_error != 0) {
      guard.read_no_role(info_error);
    } else {
      guard.read_role(facts);
    }
  }
  void say_fields() {
    const std::pair<Field, const std::string*> fields[] = {{Field::desc, &record.desc}, {Field::q, &record.q},
                                                           {Field::seal, &record.seal}, {Field::left, &record.left},
                                                           {Field::visit, &record.visit}};
    for (const auto& [field, text] : fields) guard.read(field, text->empty(), bytes(*text));
  }
  Next read() { return answer(ask()); }

  // What the scripts do.
  void create(const char* q = "aaaaaaaaaaaaaaaa") { record = {"v1 n=3", q, "", "", ""}; }
  void seal() {
    record.seal = text(guard.seal());
    record.visit.clear();
  }
  void admit() {
    create();
    read();
    seal();
    ASSERT_EQ(read(), Next::nothing);
    ASSERT_TRUE(guard.admitted());
  }
  // Time goes on in steps, with a reading whenever the guard wants one; the first answer other than nothing.
  Next until(int64_t ms) {
    Next next = Next::nothing;
    while (next == Next::nothing && now < at(ms)) {
      now = earlier(later(guard.deadline(), now + Duration::ms(1)), at(ms));
      guard.on_time(now);
      if (guard.wants_reading(now)) next = read();
    }
    return next;
  }

  Settings settings;
  Guard guard{settings};
  InfoFacts facts;     // all that INFO says
  int info_error = 0;  // INFO is refused inside scripts
  Record record;
  Instant now = at(0);
};

struct AnyGuard : ::testing::Test {
  Fixture f;
};
struct AdmittedGuard : AnyGuard {
  AdmittedGuard() { f.admit(); }
};

}  // namespace redlock::guard_test
