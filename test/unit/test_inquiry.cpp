// SPDX-License-Identifier: MIT
//
// Questions to one master on a stage: replies of every type in the caller's memory, replies that do not fit, servers
// that could not vote, and connections that break.
#include "site/inquiry.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "test/support/repeats.hpp"
#include "test/support/stage.hpp"

namespace redlock {
namespace {

using test::Gateway;
using test::repeats;
using test::Stage;
using test::Way;

using Words = std::vector<std::string>;

// A call of redlock_site_ask().
struct Ask {
  explicit Ask(const std::vector<Words>& commands, size_t size = 4'096, size_t offset = 0)
      : words(commands), replies(size + offset, '?'), room(1'024) {
    for (const Words& command : words) {
      std::vector<redlock_resource_t>& list = lists.emplace_back();
      for (const std::string& word : command) list.push_back({word.data(), static_cast<uint32_t>(word.size())});
    }
    for (const auto& list : lists) {
      questions.push_back({list.data(), static_cast<uint32_t>(list.size()), 0, nullptr, 0, 0, 0});
    }
    inquiry = std::make_unique<Inquiry>(questions.data(), static_cast<unsigned>(questions.size()),
                                        Space{replies.data() + offset, size}, Space{room.data(), room.size()});
  }

  void begin(Stage& stage) {
    gateway = &stage.add("op", [](Settings& s) {
      s.masters = 1;
      s.guard = GuardMode::off;
      s.rx_bytes = 256;
      s.any_role = true;
    });
    gateway->act([&](Instant) { inquiry->begin(gateway->client()); });
  }
  void advance(Stage& stage, double ms) {
    for (double done = 0; done < ms && !inquiry->over(); done += 1) {
      stage.advance_ms(1);
      gateway->act([&](Instant now) { inquiry->step(now); });
    }
  }
  int finish(Stage& stage) {
    advance(stage, 60'000);
    EXPECT_TRUE(inquiry->over());
    return inquiry->result();
  }
  int run(Stage& stage) {
    begin(stage);
    return finish(stage);
  }
  // "list 2 > text x, integer 1": each item with its depth as blanks.
  std::string reply(unsigned i) const {
    static const char* const types[] = {"null", "integer", "text", "error", "list"};
    std::string out;
    for (unsigned n = 0; n < questions[i].items; ++n) {
      const redlock_item_t& item = questions[i].item[n];
      const bool text = item.type == REDLOCK_ITEM_TEXT || item.type == REDLOCK_ITEM_ERROR;
      out += (n == 0 ? "" : "|") + std::string(item.depth, '>') + types[item.type];
      if (item.type == REDLOCK_ITEM_INTEGER || item.type == REDLOCK_ITEM_LIST) out += std::to_string(item.number);
      if (text) out += "=" + std::string(item.text, static_cast<size_t>(item.number));
      EXPECT_EQ(item.text[text ? item.number : 0], '\0');
    }
    return out;
  }

  std::vector<Words> words;
  std::vector<std::vector<redlock_resource_t>> lists;
  std::vector<redlock_question_t> questions;
  std::vector<char> replies, room;
  std::unique_ptr<Inquiry> inquiry;
  Gateway* gateway = nullptr;
};

struct InquiryOfOne : ::testing::Test {
  Stage stage{1};
};

TEST_F(InquiryOfOne, replies_of_each_type_one_after_the_other) {
  const std::string binary("a\0\r\n\xff", 5);
  Ask ask({{"SET", binary, binary}, {"GET", binary}, {"GET", "none"}, {"PTTL", "none"}, {"TIME"}, {"NOSUCH"}});
  EXPECT_EQ(ask.run(stage), 0);
  EXPECT_EQ(ask.reply(0), "text=OK");
  EXPECT_EQ(ask.reply(1), "text=" + binary);
  EXPECT_EQ(ask.reply(2), "null");
  EXPECT_EQ(ask.reply(3), "integer-2");
  EXPECT_EQ(ask.reply(4).substr(0, 12), "list2|>text=");
  EXPECT_EQ(ask.questions[4].items, 3u);
  EXPECT_EQ(ask.reply(5).substr(0, 10), "error=ERR ");
  EXPECT_EQ(ask.questions[5].err, REDLOCK_E_SERVER);
  for (unsigned i = 0; i < 5; ++i) EXPECT_EQ(ask.questions[i].err, 0) << i;
  for (const auto& question : ask.questions) EXPECT_GE(question.rtt_us, 100u);
  std::vector<std::string> commands;
  std::vector<uint64_t> writes;
  for (const auto& done : stage.executed()) {
    commands.push_back(done.words.at(0));
    writes.push_back(done.write);
  }
  EXPECT_EQ(commands, (std::vector<std::string>{"HELLO", "PING", "SET", "GET", "GET", "PTTL", "TIME", "NOSUCH"}))
      << "the login alone goes ahead, and nothing is sent twice";
  for (size_t i = 1; i < writes.size(); ++i) EXPECT_NE(writes[i], writes[i - 1]) << "one round trip each";
}

// The reply is dropped as a whole; the others keep their place.
TEST(Inquiry, a_reply_that_does_not_fit) {
  const std::string text(600, 'x');  // it comes in parts
  for (size_t size = 0; size < 900; size += 900 / repeats(900)) {
    Stage stage(1);
    Ask ask({{"SET", "k", "v"}, {"SET", "l", text}, {"GET", "l"}, {"TIME"}, {"GET", "k"}}, size, size % 8);
    EXPECT_EQ(ask.run(stage), 0) << size;
    for (const auto& question : ask.questions) {
      EXPECT_EQ(question.err == REDLOCK_E_TOOSMALL, question.items == 0) << size;
      EXPECT_TRUE(question.err == 0 || question.err == REDLOCK_E_TOOSMALL) << size;
    }
    const bool fits = ask.questions[2].items != 0, last_fits = ask.questions[4].items != 0;
    EXPECT_EQ(ask.reply(2), fits ? "text=" + text : "") << size;
    EXPECT_EQ(ask.reply(4), last_fits ? "text=v" : "") << size;
    EXPECT_TRUE(size != 400 || (!fits && last_fits)) << "the room of what was dropped is free again";
    for (size_t i = 0; i < size % 8; ++i) EXPECT_EQ(ask.replies[i], '?') << size;
  }
}

TEST(Inquiry, a_master_that_is_not_there) {
  Stage stage(1);
  stage.set_way(1, Way::down);
  Ask ask({{"PING"}, {"PING"}});
  ask.begin(stage);
  ask.advance(stage, 900);
  EXPECT_TRUE(ask.inquiry->over());
  EXPECT_EQ(ask.finish(stage), REDLOCK_E_CONNECT);
  EXPECT_EQ(ask.questions[0].err, REDLOCK_E_CONNECT);
  EXPECT_EQ(ask.questions[1].err, REDLOCK_E_CONNECT);
}

TEST_F(InquiryOfOne, a_connection_that_breaks_ends_the_call) {
  Ask ask({{"GET", "x"}, {"GET", "y"}, {"GET", "z"}, {"GET", "z"}});
  ask.begin(stage);
  while (ask.questions[0].rtt_us == 0) ask.advance(stage, 1);
  stage.set_way(1, Way::frozen);
  EXPECT_EQ(ask.finish(stage), REDLOCK_E_NODE_TIMEOUT);
  for (unsigned i : {0u, 1u}) {  // the second one was executed before
    EXPECT_EQ(ask.reply(i), "null");
    EXPECT_EQ(ask.questions[i].err, 0);
  }
  for (unsigned i : {2u, 3u}) {
    EXPECT_EQ(ask.questions[i].err, REDLOCK_E_NODE_TIMEOUT);
    EXPECT_EQ(ask.questions[i].item, nullptr);
    EXPECT_EQ(ask.questions[i].rtt_us, 0u);
  }
  stage.set_way(1, Way::answering);
  stage.advance_ms(10'000);
  EXPECT_LE(stage.redis(1).calls("GET"), 3u) << "nothing is sent twice";
}

}  // namespace
}  // namespace redlock
