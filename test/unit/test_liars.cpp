// SPDX-License-Identifier: MIT
//
// Masters that lie. The Redlock page does not speak of them. N - Q liars cost their own votes, and no more, with one
// exception that no lock by majorities escapes: one liar makes two holders.
// test/fuzz/fuzz_liars.cpp lies in every reply; here each lie is told by itself.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/stage.hpp"

namespace redlock::test {
namespace {

using Words = std::vector<std::string>;

Options fenced(int32_t wait_ms = 0) {
  Options options = Gateway::options(1000, wait_ms);
  options.fenced = true;
  return options;
}

bool asks_for_token(const Words& words) {
  return words.size() == 10 && words[0].rfind("EVAL", 0) == 0 && words[2] == "3";
}

std::string bulk(const std::string& text) { return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n"; }

// The non-claim. Two majorities meet in one master. If this one grants the same key twice, there are two holders.
TEST(Liars, OneMakesTwoHoldersOfAnyOddNumberOfMasters) {
  for (const unsigned masters : {1u, 3u, 5u, 7u}) {
    for (const bool lies : {false, true}) {
      Stage stage(masters);
      Gateway &a = stage.add("a"), &b = stage.add("b");
      const unsigned quorum = masters / 2 + 1, liar = quorum;
      for (unsigned m = 1; m <= masters; ++m) {
        if (m > quorum) stage.block(a, m, true);
        if (m < quorum) stage.block(b, m, true);
      }
      if (lies) {
        stage.lie = [&](unsigned m, const Words& words, std::string& reply) {
          if (m == liar && words[0] == "SET") reply = "+OK\r\n";
        };
      }
      a.acquire("bus", Gateway::options(1000));
      b.acquire("bus", Gateway::options(1000));
      stage.advance_ms(100);
      EXPECT_EQ(stage.violations(), lies ? 1u : 0u) << masters;
      EXPECT_TRUE(a.holds("bus")) << masters;
      EXPECT_EQ(b.holds("bus"), lies) << masters;
    }
  }
}

// A liar that denies everything, and nothing else, costs its vote.
TEST(Liars, WhoDenyEverythingCostTheirVotes) {
  for (const unsigned masters : {3u, 5u}) {
    Stage stage(masters);
    stage.lie = [&](unsigned m, const Words& words, std::string& reply) {
      if (m > masters / 2 + 1 && words[0] != "HELLO") reply = "$-1\r\n";
    };
    Gateway& a = stage.add("a");
    for (int i = 0; i < 10; ++i) {
      a.acquire("bus", Gateway::options(1000));
      EXPECT_EQ(a.outcome("bus"), "ACQUIRED") << masters;
      a.release("bus");
      stage.advance_ms(50);
    }
  }
}

// Each way in which a master can tell a number: an honest majority gets its token, and the honest masters keep numbers
// that leave room for all the tokens to come.
TEST(Liars, AHugeNumberOfAMinorityIsNotBelieved) {
  const std::string huge = "9223372036854775806";
  const std::string lies[] = {bulk("known " + huge + " 1700000000000"),
                              bulk("hint " + huge + " 1700000000000"),
                              bulk("ack " + huge),
                              bulk("held known " + huge),
                              bulk("held hint " + huge),
                              bulk("hint 0 " + huge)};
  for (const unsigned masters : {3u, 5u}) {
    for (const std::string& lie : lies) {
      for (const unsigned first_honest : {1u, masters - masters / 2}) {  // the liars are the last or the first masters
        Stage stage(masters);
        stage.lie = [&](unsigned m, const Words& words, std::string& reply) {
          const bool honest = m >= first_honest && m < first_honest + masters / 2 + 1;
          if (!honest && asks_for_token(words) && reply[0] == '$') reply = lie;
        };
        Gateway &a = stage.add("a"), &b = stage.add("b");
        uint64_t last = 0;
        for (int i = 0; i < 6; ++i) {
          Gateway& gateway = i % 2 == 0 ? a : b;
          const std::string label = std::to_string(i);
          gateway.acquire("bus", fenced(), label);
          ASSERT_EQ(gateway.outcome(label), "ACQUIRED") << masters << " masters, turn " << i << "\n" << lie;
          EXPECT_GT(gateway.token(label), last);
          last = gateway.token(label);
          gateway.release(label);
          stage.settle();
        }
        EXPECT_LT(last, uint64_t{1} << 48) << lie;
      }
    }
  }
}

// A token that Q masters have is neither lowered nor passed over. Whether the one master that can be asked has it, or
// lies, nobody knows: the acquire fails, and waits if it may wait.
TEST(Liars, ANumberThatNobodyConfirmsEndsInFenceRange) {
  Stage stage(3);
  const uint64_t honest = (uint64_t{1} << 48) + (uint64_t{1} << 24) + 1;
  for (const unsigned m : {1u, 2u}) {
    stage.redis(m).put_fields("redlock::fence", {{"bus", std::to_string(honest) + " "}});
  }
  stage.redis(3).put_fields("redlock::fence", {{"bus", "5 "}});
  stage.set_way(1, Way::down);
  Gateway& a = stage.add("a");
  a.acquire("bus", fenced(), "once");
  EXPECT_EQ(a.outcome("once"), "FAILED FENCE_RANGE");
  EXPECT_LT(stage.now_ms(), 50);
  a.acquire("bus", fenced(REDLOCK_WAIT_FOREVER), "patient");
  stage.advance_ms(5000);
  EXPECT_EQ(a.outcome("patient"), "");
  stage.set_way(1, Way::answering);
  for (int i = 0; i < 10'000 && a.outcome("patient").empty(); ++i) stage.advance_ms(1);
  ASSERT_EQ(a.outcome("patient"), "ACQUIRED");
  EXPECT_EQ(a.token("patient"), honest + 1);
  stage.advance_ms(1);
  EXPECT_EQ(stage.redis(3).peek("redlock::fence", stage.now())->fields.at("bus"), std::to_string(honest + 1) + " ")
      << "the master that was behind has caught up";
  EXPECT_EQ(stage.violations(), 0u);
}

// What a master acknowledges is our own number. Nobody needs to have told about as much.
TEST(Liars, OurOwnNumberNeedsNoConfirmation) {
  Stage stage(3);
  const uint64_t most = (uint64_t{1} << 48) + 10, step = uint64_t{1} << 24;
  stage.redis(1).put_fields("redlock::fence", {{"bus", std::to_string(most) + " "}});
  stage.redis(2).put_fields("redlock::fence", {{"bus", std::to_string(most - step) + " "}});
  for (const unsigned m : {1u, 2u}) stage.redis(m).put("bus", "another's", 100, stage.now());
  stage.set_way(3, Way::down);
  Gateway& a = stage.add("a");
  for (const char* const label : {"hears the second", "hears the first"}) {
    a.acquire("bus", fenced(), label);
    EXPECT_NE(a.outcome(label), "ACQUIRED");
  }
  stage.advance_ms(200);
  a.acquire("bus", fenced(), "mine");
  EXPECT_EQ(a.outcome("mine"), "ACQUIRED");
  EXPECT_EQ(a.token("mine"), most + 1);
}

// The first answer ends the round of a new client: nobody has confirmed the number yet. The second answer comes too
// late for the round, and still teaches.
TEST(Liars, ALateAnswerConfirmsANumber) {
  Stage stage(3);
  const uint64_t honest = uint64_t{1} << 50;
  for (const unsigned m : {1u, 2u}) {
    stage.redis(m).put_fields("redlock::fence", {{"bus", std::to_string(honest) + " "}});
  }
  stage.set_way(3, Way::down);
  Gateway& a = stage.add("a");
  a.acquire("bus", fenced(1000));
  stage.advance_ms(500);
  EXPECT_EQ(a.outcome("bus"), "ACQUIRED");
  EXPECT_EQ(a.token("bus"), honest + 1);
}

// Two masters that show one run id count as one server, so a liar that shows another's costs one vote, not its own one
// in addition.
TEST(Liars, AnothersRunIdCostsOneVote) {
  for (const unsigned masters : {3u, 5u}) {
    for (const unsigned liar : {1u, masters}) {
      Stage stage(masters);
      stage.lie = [&](unsigned m, const Words&, std::string& reply) {
        const size_t at = reply.find(stage.redis(m).run_id());
        if (m == liar && at != std::string::npos) reply.replace(at, 40, stage.redis(2).run_id());
      };
      Gateway& a = stage.add(
          "a", [](Settings& s) { s.guard = GuardMode::strict; }, 0, true, true);
      stage.advance_ms(500);
      unsigned voting = 0;
      for (unsigned m = 0; m < masters; ++m) voting += a.client().session(m).votes();
      EXPECT_EQ(voting, masters - 1);
      a.acquire("bus", Gateway::options(1000));
      EXPECT_EQ(a.outcome("bus"), "ACQUIRED") << masters << " masters, liar " << liar;
    }
  }
}

// What one master is sent holds nothing that would let it in at another one.
TEST(Liars, NoSecretOfAnotherMasterIsTold) {
  static const std::string passwords[] = {"first-password", "second-password", "third-password"};
  Stage stage(3);
  for (unsigned m = 1; m <= 3; ++m) stage.redis(m).knobs.password = passwords[m - 1];
  std::string sent[3];
  stage.lie = [&](unsigned m, const Words& words, std::string& reply) {
    for (const std::string& word : words) sent[m - 1] += word + "\n";
    if (m == 1 && words[0] == "SET") reply = "-NOAUTH Authentication required.\r\n";
  };
  Gateway& a = stage.add(
      "a",
      [](Settings& s) {
        s.guard = GuardMode::strict;
        for (unsigned m = 0; m < 3; ++m) s.master[m].password = Bytes(passwords[m].data(), passwords[m].size());
      },
      0, true, true);
  stage.advance_ms(500);
  for (int i = 0; i < 5; ++i) {
    a.acquire("bus", i % 2 == 0 ? fenced() : Gateway::options(1000));
    EXPECT_EQ(a.outcome("bus"), "ACQUIRED");
    a.release("bus");
    stage.reset(1, Unread::dropped);
    stage.advance_ms(3000);
  }
  for (unsigned to = 1; to <= 3; ++to) {
    EXPECT_NE(sent[to - 1].find(passwords[to - 1]), std::string::npos);
    for (unsigned of = 1; of <= 3; ++of) {
      if (of == to) continue;
      const std::string seal = stage.redis(of).peek("redlock::meta", stage.now())->fields.at("seal");
      for (const std::string& secret : {passwords[of - 1], seal.substr(0, 16), seal.substr(17, 16), seal.substr(34)}) {
        EXPECT_EQ(sent[to - 1].find(secret), std::string::npos) << secret << " of " << of << " told to " << to;
      }
    }
  }
}

}  // namespace
}  // namespace redlock::test
