// SPDX-License-Identifier: MIT
//
// redlock_describe(): each sentence literally, none longer than promised, and any buffer.
#include <error_map.hpp>
#include <gtest/gtest.h>
#include <redlock/redlock.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace {

// An event with a detail; the members are written in the order in which a case names them.
struct Case {
  redlock_event_t event = {};
  redlock_detail_t detail = {};

  explicit Case(int type, int err = 0) {
    event.size = sizeof event;
    event.type = type;
    event.err = err;
    detail.size = sizeof detail;
    detail.masters = 3, detail.quorum = 2, detail.max_ttl_ms = 30'000;
    detail.to_go_ms = REDLOCK_GUARD_UNKNOWN;
    detail.name = detail.address = detail.holder = detail.their_name = detail.our_name = detail.denied = "";
  }
  Case& cause(int cause) { return event.cause = cause, *this; }
  Case& votes(unsigned granted, unsigned refused, unsigned failed) {
    event.granted = granted, event.refused = refused, event.failed = failed;
    return *this;
  }
  Case& masters(unsigned masters, unsigned quorum) {
    detail.masters = masters, detail.quorum = quorum;
    return *this;
  }
  Case& voting(unsigned n) { return detail.voting = n, *this; }
  Case& watched(unsigned n, int64_t guard_ms) {
    detail.watched = n, event.guard_ms = guard_ms;
    return *this;
  }
  Case& held_by(const char* name, int64_t to_go_ms) {
    detail.holder = name, detail.to_go_ms = to_go_ms;
    return *this;
  }
  Case& blames(int err, const char* address, const char* name = "") {
    event.master_err = err, detail.address = address, detail.name = name;
    return *this;
  }
  Case& theirs(unsigned masters, unsigned max_ttl_ms) {
    detail.their_masters = masters, detail.their_max_ttl_ms = max_ttl_ms;
    return *this;
  }
  Case& names(const char* theirs, const char* ours) {
    detail.their_name = theirs, detail.our_name = ours;
    return *this;
  }
  Case& denies(const char* key) { return detail.denied = key, *this; }
  Case& validity(int64_t ms) { return event.validity_ms = ms, *this; }
  Case& of_master(const char* name, const char* address, int state, int err = 0, int64_t guard_ms = 0) {
    detail.name = name, detail.address = address;
    event.state = state, event.err = err, event.guard_ms = guard_ms, event.master = 1;
    return *this;
  }

  std::string text(bool detailed = true) {
    event.detail = detailed ? &detail : nullptr;
    char buffer[REDLOCK_TEXT_MAX + 1];
    const size_t size = redlock_describe(&event, buffer, sizeof buffer);
    EXPECT_EQ(size, strlen(buffer));
    return buffer;
  }
};

Case waiting(int cause) { return Case(REDLOCK_EV_WAITING).cause(cause); }
Case failed(int err, int cause = 0) { return Case(REDLOCK_EV_FAILED, err).cause(cause); }
std::string text_of(int err) { return redlock_strerror(err); }

TEST(Describe, a_wait_for_the_guard) {
  EXPECT_EQ(waiting(REDLOCK_CAUSE_GUARD).watched(3, 27'250).text(),
            "3 of 3 masters are new and watched: 27.3 s to go");
  EXPECT_EQ(waiting(REDLOCK_CAUSE_GUARD).watched(1, 400).voting(1).text(),
            "1 of 3 masters is new and watched: 400 ms to go");
  EXPECT_EQ(waiting(REDLOCK_CAUSE_GUARD).watched(3, 27'250).text(false),
            "too few masters vote yet: 27.3 s to go");
  EXPECT_EQ(failed(REDLOCK_E_GUARD, REDLOCK_CAUSE_GUARD).watched(2, 1'001).text(),
            "not acquired: 2 of 3 masters are new and watched: 1.1 s to go");
}

TEST(Describe, a_wait_for_another_holder) {
  EXPECT_EQ(waiting(REDLOCK_CAUSE_HELD).votes(0, 3, 0).held_by("gw-03", 4'100).text(),
            "held by gw-03 on 3 of 3 masters, 4.1 s unless renewed");
  EXPECT_EQ(waiting(REDLOCK_CAUSE_HELD).votes(0, 1, 2).masters(1, 1).held_by("", 12).text(),
            "held by another client on 1 of 1 master, 12 ms unless renewed");
  EXPECT_EQ(waiting(REDLOCK_CAUSE_HELD).votes(1, 2, 0).held_by("a foreign value", REDLOCK_GUARD_UNKNOWN).text(),
            "held by a foreign value on 2 of 3 masters");
  EXPECT_EQ(waiting(REDLOCK_CAUSE_HELD).votes(0, 2, 0).held_by("gw-03", 4'100).text(),
            "held by gw-03, 4.1 s unless renewed")
      << "one master has not answered";
  EXPECT_EQ(waiting(REDLOCK_CAUSE_HELD).text(), "held or wanted by another client or another lock of this one");
  EXPECT_EQ(failed(REDLOCK_E_LOCKED, REDLOCK_CAUSE_HELD).held_by("", 9'012).text(),
            "not acquired: held by another client, 9.1 s unless renewed")
      << "a look found the key, and no round was begun";
  EXPECT_EQ(failed(REDLOCK_E_TIMEOUT, REDLOCK_CAUSE_HELD).votes(0, 3, 0).text(),
            "not acquired in time: held by another client on 3 of 3 masters");
  EXPECT_EQ(failed(REDLOCK_E_TIMEOUT).blames(REDLOCK_E_OOM, "a:1").text(),
            "not acquired: " + text_of(REDLOCK_E_TIMEOUT) + "; a:1: " + text_of(REDLOCK_E_OOM));
  EXPECT_EQ(failed(REDLOCK_E_CANCELED, REDLOCK_CAUSE_HELD).text(), "not acquired: " + text_of(REDLOCK_E_CANCELED));
}

TEST(Describe, a_wait_for_masters) {
  EXPECT_EQ(waiting(REDLOCK_CAUSE_TOO_FEW).voting(1).blames(REDLOCK_E_REFUSED, "10.0.0.12:6379").text(),
            "1 of 3 masters votes, 2 are needed; 10.0.0.12:6379: " + text_of(REDLOCK_E_REFUSED));
  EXPECT_EQ(waiting(REDLOCK_CAUSE_TOO_FEW).masters(1, 1).blames(REDLOCK_E_AUTH, "[fd00::1]:6379").text(),
            "0 of 1 master vote, 1 is needed; [fd00::1]:6379: " + text_of(REDLOCK_E_AUTH));
  EXPECT_EQ(waiting(REDLOCK_CAUSE_TOO_FEW).blames(REDLOCK_E_REFUSED, "").text(false),
            text_of(REDLOCK_E_NO_QUORUM) + "; " + text_of(REDLOCK_E_REFUSED));
  EXPECT_EQ(failed(REDLOCK_E_NO_QUORUM).voting(3).blames(REDLOCK_E_NODE_TIMEOUT, "a:1").text(),
            "not acquired: " + text_of(REDLOCK_E_NO_QUORUM) + "; a:1: " + text_of(REDLOCK_E_NODE_TIMEOUT))
      << "they vote, but did not in this round";
  EXPECT_EQ(waiting(REDLOCK_CAUSE_CHANGE).text(),
            "a change of the masters is under way, was given up, or has left this client behind");
  EXPECT_EQ(failed(REDLOCK_E_GUARD, REDLOCK_CAUSE_NEVER).voting(1).blames(REDLOCK_E_MAXMEMORY, "a:1").text(),
            "not acquired: 1 of 3 masters votes, 2 are needed; a:1: " + text_of(REDLOCK_E_MAXMEMORY));
}

TEST(Describe, what_is_denied) {
  const auto denied = [] {
    return failed(REDLOCK_E_NO_QUORUM, REDLOCK_CAUSE_TOO_FEW).voting(3).blames(REDLOCK_E_NOPERM, "a:1");
  };
  const std::string start = "not acquired: too few masters gave a usable answer; a:1: the user lacks a permission";
  EXPECT_EQ(denied().text(), start);
  EXPECT_EQ(denied().denies("plant1/bus").text(), start + ": its ACL needs ~plant1/bus");
}

TEST(Describe, another_configuration) {
  const auto never = [] {
    return failed(REDLOCK_E_GUARD, REDLOCK_CAUSE_NEVER).blames(REDLOCK_E_FINGERPRINT, "10.0.0.13:6379");
  };
  const std::string who = "10.0.0.13:6379 belongs to clients of another configuration";
  const std::string remedy = "; make the files alike, unless a change has left this client behind";
  EXPECT_EQ(never().theirs(1, 20'000).text(),
            "not acquired: " + who + ": it has 1 master, ours has 3 masters" + remedy);
  EXPECT_EQ(never().theirs(3, 20'000).names("d", "c").text(),
            "not acquired: " + who + ": its max_ttl_ms is 20000, ours is 30000" + remedy);
  EXPECT_EQ(never().theirs(3, 30'000).names("d", "c").text(),
            "not acquired: " + who + ": its masters include d, ours c" + remedy);
  EXPECT_EQ(never().theirs(3, 30'000).text(),
            "not acquired: " + who + ": the names of the masters differ" + remedy);
  EXPECT_EQ(never().text(), "not acquired: " + who + remedy) << "the record does not say which";
  EXPECT_EQ(never().text(false), "not acquired: belongs to clients of another configuration" + remedy);
}

TEST(Describe, a_held_lock) {
  EXPECT_EQ(Case(REDLOCK_EV_ACQUIRED).validity(9'988).text(false), "acquired, 9.9 s of validity");
  EXPECT_EQ(Case(REDLOCK_EV_RENEWED).validity(999).text(false), "extended, 999 ms of validity");
  EXPECT_EQ(Case(REDLOCK_EV_AT_RISK, REDLOCK_E_NO_QUORUM).validity(6'650).blames(REDLOCK_E_SUSPECT, "a:1").text(),
            "not extended: " + text_of(REDLOCK_E_NO_QUORUM) + "; a:1: " + text_of(REDLOCK_E_SUSPECT) +
                "; 6.6 s of validity left");
  EXPECT_EQ(Case(REDLOCK_EV_LOST, REDLOCK_E_LOST).votes(1, 0, 2).blames(REDLOCK_E_DISCONNECTED, "a:1").text(),
            "lost: 2 of 3 masters could not extend it; a:1: " + text_of(REDLOCK_E_DISCONNECTED));
  EXPECT_EQ(Case(REDLOCK_EV_LOST, REDLOCK_E_LOST).votes(1, 1, 1).blames(REDLOCK_E_OOM, "a:1").text(),
            "lost: 1 of 3 masters lacks the key; 1 of 3 masters could not extend it; a:1: " +
                text_of(REDLOCK_E_OOM));
  EXPECT_EQ(Case(REDLOCK_EV_LOST, REDLOCK_E_LOST).votes(0, 2, 0).text(false), "lost: 2 masters lack the key");
  EXPECT_EQ(Case(REDLOCK_EV_LOST, REDLOCK_E_LOST).votes(3, 0, 0).text(), "lost: " + text_of(REDLOCK_E_LOST));
  EXPECT_EQ(Case(REDLOCK_EV_RELEASED).text(false), "released");
}

TEST(Describe, masters_and_the_end) {
  const auto master = [] { return Case(REDLOCK_EV_MASTER); };
  EXPECT_EQ(master().of_master("pump", "10.0.0.11:6379", REDLOCK_MASTER_UP).text(), "pump 10.0.0.11:6379: up");
  EXPECT_EQ(master().of_master("a:1", "a:1", REDLOCK_MASTER_UP).text(), "a:1: up") << "named after its address";
  EXPECT_EQ(master().of_master("pump", "a:1", REDLOCK_MASTER_UP).text(false), "master 1: up");
  EXPECT_EQ(master().of_master("pump", "a:1", REDLOCK_MASTER_DOWN, REDLOCK_E_REFUSED).text(),
            "pump a:1: down: " + text_of(REDLOCK_E_REFUSED));
  EXPECT_EQ(master().of_master("gate", "a:1", REDLOCK_MASTER_GUARDED, REDLOCK_E_UNWATCHED, 27'250).text(),
            "gate a:1: guarded: " + text_of(REDLOCK_E_UNWATCHED) + "; 27.3 s to go");
  EXPECT_EQ(master().of_master("gate", "a:1", 99).text(), "gate a:1: unknown");
  EXPECT_EQ(Case(REDLOCK_EV_CLOSED).text(false), "closed");
  EXPECT_EQ(Case(REDLOCK_EV_CLOSED).votes(0, 0, 2).text(false), "closed; 2 deletes were not answered");
  EXPECT_EQ(Case(77).text(), "an event of a later version");
  EXPECT_EQ(waiting(99).text(), "unknown");
}

// Each event with each error, with the longest names, addresses and numbers.
TEST(Describe, every_error_has_its_sentence_and_none_is_too_long) {
  std::vector<int> errors = {0};
#define REDLOCK_ADD(name, number, text) errors.push_back(number);
  REDLOCK_ERROR_MAP(REDLOCK_ADD)
  REDLOCK_TLS_ERROR_MAP(REDLOCK_ADD)
#undef REDLOCK_ADD
  const std::string name(REDLOCK_MASTER_NAME_MAX, 'n'), address(REDLOCK_HOST_MAX + 7, 'h');
  std::string holder;
  for (unsigned i = 0; i < REDLOCK_CLIENT_NAME_MAX; ++i) holder += "\\x00";
  size_t longest = 0;
  char buffer[REDLOCK_TEXT_MAX + 1];
  const auto describe = [&](Case& c) {
    c.event.detail = &c.detail;
    const size_t size = redlock_describe(&c.event, buffer, sizeof buffer);
    EXPECT_EQ(size, strlen(buffer));
    longest = std::max(longest, size);
  };
  for (int type = 1; type <= 10; ++type) {
    for (const int err : errors) {
      for (const int master_err : errors) {
        Case c = Case(type, err).cause((err - master_err) % 7).votes(1, 13, 12).masters(15, 8).voting(7);
        c.watched(15, 86'400'000).theirs(14, 86'400'000).validity(86'400'000).held_by(holder.c_str(), 86'400'000);
        c.blames(master_err, address.c_str(), name.c_str());
        c.event.state = REDLOCK_MASTER_CONNECTING;
        describe(c);
      }
    }
  }
  EXPECT_GT(longest, 200u) << "the longest names were not used";
  for (const int err : errors) {
    const std::string text = redlock_strerror(err);
    Case short_one = Case(REDLOCK_EV_FAILED, err);
    describe(short_one);
    const bool says_more = err == REDLOCK_E_LOCKED || err == REDLOCK_E_NO_QUORUM || err == REDLOCK_E_GUARD;
    EXPECT_TRUE(says_more || buffer == "not acquired: " + text) << buffer;
    Case waits = waiting(REDLOCK_CAUSE_TOO_FEW).voting(1).blames(err, "[fd00::1:2:3:4]:65535");
    describe(waits);
    const std::string reason = err == 0                         ? ""
                               : err == REDLOCK_E_FINGERPRINT   ? "; [fd00::1:2:3:4]:65535 belongs to clients of "
                                                                  "another configuration; make the files alike, "
                                                                  "unless a change has left this client behind"
                                                                : "; [fd00::1:2:3:4]:65535: " + text;
    EXPECT_EQ(buffer, "1 of 3 masters votes, 2 are needed" + reason);
  }
}

TEST(Describe, a_cut_sentence_ends_in_dots) {
  Case c = Case(REDLOCK_EV_MASTER).of_master("pumpe-s\xC3\xBC" "d", "a:1", REDLOCK_MASTER_UP);
  c.event.detail = &c.detail;
  const std::string whole = c.text();
  EXPECT_EQ(redlock_describe(&c.event, nullptr, 0), whole.size());
  for (size_t size = 1; size <= whole.size(); ++size) {
    std::string buffer(size + 1, '#');
    EXPECT_EQ(redlock_describe(&c.event, buffer.data(), size), whole.size());
    EXPECT_EQ(buffer[size], '#') << "wrote behind the buffer";
    const std::string text = buffer.c_str();
    const size_t dots = std::min<size_t>(3, size - 1);
    EXPECT_EQ(text.substr(text.size() - dots), std::string(dots, '.')) << size;
    EXPECT_EQ(text.substr(0, text.size() - dots), whole.substr(0, text.size() - dots)) << size;
    EXPECT_TRUE(text.size() == size - 1 || text.size() == size - 2) << "no half letter: " << text;
  }
  char exact[8];
  redlock_event_t released = {};
  released.type = REDLOCK_EV_RELEASED;
  EXPECT_EQ(redlock_describe(&released, exact, sizeof exact), 8u);
  EXPECT_STREQ(exact, "rele...");
  char enough[9];
  EXPECT_EQ(redlock_describe(&released, enough, sizeof enough), 8u);
  EXPECT_STREQ(enough, "released");
}

TEST(Describe, no_control_character_of_a_name_comes_through) {
  Case c = Case(REDLOCK_EV_MASTER).of_master("a\nb", "\x1b[2J", REDLOCK_MASTER_UP);
  EXPECT_EQ(c.text(), "a\\nb \\u001b[2J: up");
}

}  // namespace
