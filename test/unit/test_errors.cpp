// SPDX-License-Identifier: MIT
//
// The numbers are frozen: the table is literal, so that a change of the header's map is seen here.
#include <gtest/gtest.h>
#include <redlock/redlock.h>

#include <algorithm>
#include <commit_text.hpp>
#include <cstring>
#include <error_map.hpp>
#include <set>
#include <string>
#include <vector>

#include "support/stage.hpp"

namespace {

struct Frozen {
  int number;
  const char* name;
};

constexpr Frozen frozen[] = {
    {0, "REDLOCK_OK"},
    {-1, "REDLOCK_E_LOCKED"},
    {-2, "REDLOCK_E_NO_QUORUM"},
    {-3, "REDLOCK_E_TOO_SLOW"},
    {-4, "REDLOCK_E_TIMEOUT"},
    {-5, "REDLOCK_E_CANCELED"},
    {-6, "REDLOCK_E_LOST"},
    {-7, "REDLOCK_E_GUARD"},
    {-20, "REDLOCK_E_INVAL"},
    {-21, "REDLOCK_E_CONFIG"},
    {-22, "REDLOCK_E_STALE"},
    {-23, "REDLOCK_E_TABLE_FULL"},
    {-24, "REDLOCK_E_DEADLOCK"},
    {-25, "REDLOCK_E_THREAD"},
    {-26, "REDLOCK_E_FORKED"},
    {-27, "REDLOCK_E_NOTSUP"},
    {-28, "REDLOCK_E_NOMEM"},
    {-29, "REDLOCK_E_BUSY"},
    {-30, "REDLOCK_E_HOLD_LIMIT"},
    {-31, "REDLOCK_E_TOOSMALL"},
    {-32, "REDLOCK_E_CLOSED"},
    {-33, "REDLOCK_E_CLOCK"},
    {-34, "REDLOCK_E_SYSTEM"},
    {-35, "REDLOCK_E_NOT_HELD"},
    {-36, "REDLOCK_E_RESERVED"},
    {-50, "REDLOCK_E_RESOLVE"},
    {-51, "REDLOCK_E_CONNECT"},
    {-52, "REDLOCK_E_DISCONNECTED"},
    {-53, "REDLOCK_E_NODE_TIMEOUT"},
    {-54, "REDLOCK_E_SUSPECT"},
    {-55, "REDLOCK_E_NO_ROOM"},
    {-56, "REDLOCK_E_AUTH"},
    {-57, "REDLOCK_E_NOPERM"},
    {-58, "REDLOCK_E_PROTOCOL"},
    {-59, "REDLOCK_E_ROLE"},
    {-60, "REDLOCK_E_MODE"},
    {-61, "REDLOCK_E_DUPLICATE"},
    {-62, "REDLOCK_E_READONLY"},
    {-63, "REDLOCK_E_LOADING"},
    {-64, "REDLOCK_E_OOM"},
    {-65, "REDLOCK_E_SCRIPT_BUSY"},
    {-66, "REDLOCK_E_MISCONF"},
    {-67, "REDLOCK_E_NOREPLICAS"},
    {-68, "REDLOCK_E_CLUSTER"},
    {-69, "REDLOCK_E_WRONGTYPE"},
    {-70, "REDLOCK_E_NOSCRIPT"},
    {-71, "REDLOCK_E_MAXCLIENTS"},
    {-72, "REDLOCK_E_DENIED"},
    {-73, "REDLOCK_E_SERVER"},
    {-74, "REDLOCK_E_TLS"},
    {-75, "REDLOCK_E_GONE"},
    {-80, "REDLOCK_E_UNREAD"},
    {-81, "REDLOCK_E_UNWATCHED"},
    {-82, "REDLOCK_E_FINGERPRINT"},
    {-83, "REDLOCK_E_IDENTITY"},
    {-84, "REDLOCK_E_MAXMEMORY"},
    {-85, "REDLOCK_E_WALL_CLOCK"},
    {-86, "REDLOCK_E_SEAL"},
    {-90, "REDLOCK_E_REPLID"},
    {-91, "REDLOCK_E_NO_GREETING"},
    {-92, "REDLOCK_E_LEFT"},
    {-93, "REDLOCK_E_EVICTED"},
    {-94, "REDLOCK_E_TWO_SERVERS"},
    {-8, "REDLOCK_E_FENCE_UNKNOWN"},
    {-9, "REDLOCK_E_FENCE_RANGE"},
    {-10, "REDLOCK_E_FENCED"},
    {-11, "REDLOCK_E_CHANGING"},
    {-12, "REDLOCK_E_RECORD_LOST"},
    {-37, "REDLOCK_E_NO_BLOCKING"},
    {-76, "REDLOCK_E_REFUSED"},
    {-77, "REDLOCK_E_CONNECT_TIMEOUT"},
    {-78, "REDLOCK_E_UNREACHABLE"},
    {-79, "REDLOCK_E_AUTH_MISSING"},
#ifdef REDLOCK_TLS
    {-100, "REDLOCK_E_TLS_NONE"},
    {-101, "REDLOCK_E_TLS_ONLY"},
    {-102, "REDLOCK_E_TLS_AUTHORITY"},
    {-103, "REDLOCK_E_TLS_EXPIRED"},
    {-104, "REDLOCK_E_TLS_EARLY"},
    {-105, "REDLOCK_E_TLS_NAME"},
    {-106, "REDLOCK_E_TLS_PIN"},
    {-107, "REDLOCK_E_TLS_CLIENT_CERT"},
    {-108, "REDLOCK_E_TLS_CLIENT_REFUSED"},
    {-109, "REDLOCK_E_TLS_COMMON"},
    {-110, "REDLOCK_E_TLS_BROKEN"},
    {-111, "REDLOCK_E_TLS_FILE"},
    {-112, "REDLOCK_E_TLS_CHAIN"},
    {-113, "REDLOCK_E_TLS_MESSAGE"},
    {-114, "REDLOCK_E_TLS_MODULUS"},
    {-115, "REDLOCK_E_TLS_EXPONENT"},
    {-116, "REDLOCK_E_TLS_KEY"},
    {-117, "REDLOCK_E_TLS_WEAK"},
    {-118, "REDLOCK_E_TLS_USE"},
    {-119, "REDLOCK_E_TLS_FLOOD"},
    {-120, "REDLOCK_E_TLS_CURVES"},
#endif
};

static_assert(REDLOCK_E_TLS_NONE == -100 && REDLOCK_E_TLS_CURVES == -120, "numbers are there without TLS, too");

TEST(Errors, NumbersAndNamesAreFrozen) {
  for (const Frozen& f : frozen) EXPECT_STREQ(redlock_err_name(f.number), f.name) << f.number;
}

TEST(Errors, NoOtherNumberHasAName) {
  std::set<int> known;
  for (const Frozen& f : frozen) known.insert(f.number);
  for (int number = -200; number <= 200; ++number) {
    if (known.count(number) != 0) continue;
    EXPECT_STREQ(redlock_err_name(number), "REDLOCK_E_UNKNOWN") << number;
    EXPECT_STREQ(redlock_strerror(number), "not an error number of this library") << number;
  }
}

TEST(Errors, EachTextStandsForOneNumber) {
  std::set<std::string> texts;
  for (const Frozen& f : frozen) {
    const std::string text = redlock_strerror(f.number);
    EXPECT_FALSE(text.empty()) << f.name;
    EXPECT_TRUE(texts.insert(text).second) << f.name << " shares the text: " << text;
  }
}

TEST(Errors, TheTableHoldsTheWholeMap) {
#define COUNT(name, number, text) +1
#ifdef REDLOCK_TLS
  constexpr size_t with_tls = 0 REDLOCK_TLS_ERROR_MAP(COUNT);
#else
  constexpr size_t with_tls = 0;
#endif
  EXPECT_EQ(sizeof frozen / sizeof frozen[0], with_tls + 1 REDLOCK_ERROR_MAP(COUNT));
#undef COUNT
}

TEST(Errors, TheLastNumberOfTheEnumIsNoError) { EXPECT_STREQ(redlock_err_name(REDLOCK_E_LAST_), "REDLOCK_E_UNKNOWN"); }

TEST(Version, NumberAndTextAgree) {
  EXPECT_EQ(redlock_version(), static_cast<uint32_t>(REDLOCK_VERSION_NUM));
#ifdef REDLOCK_TLS
  const std::string tls = "+" REDLOCK_TLS_ENGINE;
#else
  const std::string tls;
#endif
  EXPECT_EQ(redlock_version_string(), std::to_string(redlock_version() >> 16) + "." +
                                          std::to_string((redlock_version() >> 8) & 255) + "." +
                                          std::to_string(redlock_version() & 255) + REDLOCK_COMMIT + tls);
}

}  // namespace

// redlock_describe(): each sentence literally, none longer than promised, and any buffer.
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

// The detail of an event and the sentence that follows from it, as a client tells them on the stage: which master said
// what, what the guard watches, and whose record lies on a master.
namespace redlock {
namespace {

using test::Gateway;
using test::Stage;
using test::Way;

// The sentences of a gateway's events, as "bus: ..." or, of a master, ": ...".
struct Listener {
  explicit Listener(Stage& stage) {
    stage.on_event = [this](Gateway&, const std::string& label, const redlock_event_t& event) {
      char text[REDLOCK_TEXT_MAX + 1];
      redlock_describe(&event, text, sizeof text);
      said.push_back(label + ": " + text);
      detailed.push_back(event.detail != nullptr);
      if (event.detail != nullptr) last = *event.detail;
    };
  }
  std::string take() {
    const std::string text = said.empty() ? "" : said.back();
    said.clear();
    return text;
  }
  // Was a sentence said that begins so?
  bool heard(const std::string& beginning) const {
    for (const std::string& text : said) {
      if (text.compare(0, beginning.size(), beginning) == 0) return true;
    }
    return false;
  }
  std::string all() const {
    std::string text;
    for (const std::string& line : said) text += line + "\n";
    return text;
  }
  std::vector<std::string> said;
  std::vector<bool> detailed;
  redlock_detail_t last = {};  // its strings are gone
};

void guarded(Settings& s) { s.guard = GuardMode::strict; }

struct DetailOfThree : ::testing::Test {
  Stage stage{3};
};

TEST_F(DetailOfThree, a_master_of_another_configuration) {
  stage.add("test program", [](Settings& s) {
    s.guard = GuardMode::strict;
    s.masters = 1;
    s.master[0] = s.master[2];
  });
  stage.advance_ms(1'000);
  Listener listener(stage);
  Gateway& b = stage.add("b", guarded);
  stage.advance_ms(1'000);
  const std::string theirs =
      "belongs to clients of another configuration: it has 1 master, ours has 3 masters; make the files alike";
  EXPECT_TRUE(listener.heard(": m3 127.0.0.1:3: guarded: " + theirs)) << listener.all();
  b.acquire("bus", Gateway::options(1'000));
  stage.settle();
  EXPECT_EQ(listener.last.their_masters, 1u) << "of the masters that failed, the one that tells most";
  EXPECT_EQ(listener.last.watched, 2u);
}

// The first answer of a round decides, because another master was known to lack the key.
TEST_F(DetailOfThree, a_lost_lock_tells_of_all_masters_without_the_key) {
  Listener listener(stage);
  Gateway& a = stage.add("a");
  Options options = Gateway::options(1'000);
  options.renew = true;
  stage.redis(3).put("bus", "other", 10'000, stage.now());
  a.acquire("bus", options);
  stage.advance_ms(340);
  stage.redis(1).evict("bus");
  stage.advance_ms(400);
  EXPECT_EQ(listener.take(), "bus: lost: 2 of 3 masters lack the key");
}

// How long the key will live is told by the masters, and the holder by one of them.
TEST_F(DetailOfThree, another_holder_and_how_long) {
  Gateway& a = stage.add("gw-03");
  Gateway& b = stage.add("b");
  a.acquire("bus", Gateway::options(10'000));
  stage.settle();
  Listener listener(stage);
  Options options = Gateway::options(1'000, 100);
  options.wants_holder = true;
  b.acquire("bus", options);
  stage.advance_ms(100);
  EXPECT_EQ(listener.take(), "bus: not acquired: held by gw-03 on 3 of 3 masters, 10.0 s unless renewed");
  options.wait_ms = REDLOCK_TRY_ONCE;
  b.acquire("bus", options);
  stage.settle();
  EXPECT_EQ(listener.take(), "bus: not acquired: held by gw-03 on 3 of 3 masters");
  options.wants_holder = false;
  b.acquire("bus", options);
  stage.settle();
  EXPECT_EQ(listener.take(), "bus: not acquired: held by another client");
}

}  // namespace
}  // namespace redlock
