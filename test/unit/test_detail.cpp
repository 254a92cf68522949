// SPDX-License-Identifier: MIT
//
// The detail of an event and the sentence that follows from it, as a client tells them on the stage: which master said
// what, what the guard watches, and whose record lies on a master.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/stage.hpp"

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
