// SPDX-License-Identifier: MIT
//
// How the greeting ends what an older connection has left behind.
#include "session_guard_fixture.hpp"

namespace redlock {
namespace {

using namespace session_guard_test;

// ---- strays -------------------------------------------------------------------------------------------------------

const std::string kill_10 = command({"CLIENT", "KILL", "ID", "10"});

// The connection with the id 10 has left SETs unanswered.
struct Broken : Fixture {
  explicit Broken(Link how = Link::tracked, int64_t first_id = 10) : Fixture(how) {
    greet(record(), first_id);
    ask(Op::acquire);
    sent();
    break_off(true);
    news.clear();
    connect();
  }
  std::vector<Strays> strays() const {
    std::vector<Strays> all;
    for (const News& one : news) {
      if (one.strays != Strays::none) all.push_back(one.strays);
    }
    return all;
  }
};

TEST(SessionStrays, the_old_connection_is_ended_behind_the_reading_and_before_it_is_up) {
  for (const Link link : {Link::tracked, Link::untracked, Link::resp2}) {
    for (const char* answer : {":1\r\n", ":0\r\n"}) {
      SCOPED_TRACE(Message() << static_cast<int>(link) << answer);
      Broken f(link);
      EXPECT_FALSE(holds(f.sent(), "KILL"));
      f.receive(f.hello(11));
      f.rest = f.sent();
      EXPECT_FALSE(holds(f.rest, "KILL")) << "not before it is known to be the same process";
      f.receive(f.before_reading(11));
      EXPECT_EQ(f.sent(), "");
      const std::string reading = f.caching() + f.record();
      f.receive(reading.substr(0, reading.size() - 1));
      EXPECT_EQ(f.sent(), "");
      f.receive(reading.substr(reading.size() - 1));
      EXPECT_EQ(f.sent(), kill_10);
      f.receive(f.time() + f.ping());
      EXPECT_EQ(f.session->state(), State::greeting) << "nothing about a claim leaves before the answer";
      EXPECT_FALSE(f.session->votes() || f.session->connected());
      EXPECT_TRUE(f.strays().empty());
      f.receive(answer);
      EXPECT_EQ(f.session->state(), State::up);
      EXPECT_EQ(f.strays(), std::vector<Strays>{Strays::ended});
      EXPECT_EQ(f.session->take_news().strays, Strays::none) << "told once";
    }
  }
}

TEST(SessionStrays, they_stay_at_large_where_the_server_ends_no_connection) {
  for (const char* answer : {"-NOPERM this user has no permissions to run the 'client|kill' command\r\n",
                             "-ERR unknown subcommand 'KILL'\r\n", "_\r\n", "+OK\r\n"}) {
    Broken f;
    f.greet_up_to_reading(11);
    f.receive(f.caching() + f.record() + f.time() + f.ping());
    EXPECT_EQ(f.sent(), kill_10);
    f.receive(answer);
    EXPECT_EQ(f.session->state(), State::up) << answer;
    EXPECT_TRUE(f.session->votes()) << answer;
    EXPECT_EQ(f.strays(), std::vector<Strays>{Strays::at_large}) << answer;
  }
}

struct BrokenSession : ::testing::Test {
  Broken f;
};

// Its ids have begun anew: 10 may be anybody's.
TEST_F(BrokenSession, nobody_is_ended_in_another_process) {
  f.greet_up_to_reading(11);
  f.receive(f.caching() + f.record(seal, info_of("9999999999999999")) + f.time() + f.ping());
  EXPECT_FALSE(holds(f.sent(), "KILL"));
  EXPECT_EQ(f.session->state(), State::up);
  EXPECT_EQ(f.strays(), std::vector<Strays>{Strays::at_large});
}

TEST_F(BrokenSession, nobody_is_ended_without_a_run_id_then_and_now) {
  f.greet_up_to_reading(11);
  f.receive(f.caching() + "-NOPERM no\r\n" + f.time() + f.ping());
  EXPECT_FALSE(holds(f.sent(), "KILL"));
  EXPECT_EQ(f.strays(), std::vector<Strays>{Strays::at_large});
  f.break_off(true);
  f.news.clear();
  f.connect();
  f.greet(Fixture::record(), 12);
  EXPECT_FALSE(holds(f.sent(), "KILL")) << "of the last connection no process was known";
  EXPECT_EQ(f.strays(), std::vector<Strays>{Strays::at_large});
}

// The server tells no id in its reply to HELLO, and the connection breaks when the master is up.
void break_off_without_id(Fixture& f) {
  f.sent();
  f.receive("%2\r\n" + bulk("mode") + bulk("standalone") + bulk("role") + bulk("master"));
  f.rest = f.sent();
  f.receive(f.before_reading() + f.caching() + f.record() + f.time() + f.ping());
  ASSERT_EQ(f.session->state(), State::up);
  f.break_off(true);
}

TEST(SessionStrays, nobody_is_ended_whose_id_is_not_known) {
  for (const int64_t id : {int64_t{0}, int64_t{-1}}) {
    Broken f(Link::tracked, id);
    f.greet(Fixture::record(), 11);
    EXPECT_FALSE(holds(f.sent(), "KILL"));
    EXPECT_EQ(f.strays(), std::vector<Strays>{Strays::at_large});
  }
  Fixture f;
  break_off_without_id(f);
  f.connect();
  f.greet(Fixture::record(), 11);
  EXPECT_FALSE(holds(f.sent(), "KILL"));
}

// An older connection's id is not that of one which has told none.
TEST(SessionStrays, an_id_is_of_one_connection) {
  Greeted f;
  f.break_off(false);
  f.connect();
  break_off_without_id(f);
  f.news.clear();
  f.connect();
  f.greet(Fixture::record(), 12);
  EXPECT_FALSE(holds(f.sent(), "KILL"));
  EXPECT_EQ(f.news.back().strays, Strays::at_large);
}

TEST(SessionStrays, on_resp2_the_id_may_be_refused) {
  Fixture f(Link::resp2);
  f.sent();
  f.receive(f.hello());
  f.rest = f.sent();
  f.receive(list({bulk("master"), ":0\r\n", "*0\r\n"}) + "-NOPERM no\r\n" + bulk("sha") + bulk("sha") +
            f.record() + f.time() + f.ping());
  ASSERT_EQ(f.session->state(), State::up);
  f.break_off(true);
  f.connect();
  f.greet(Fixture::record(), 11);
  EXPECT_FALSE(holds(f.sent(), "KILL"));
  EXPECT_EQ(f.news.back().strays, Strays::at_large);
}

// Nothing about a claim was sent on a connection that never was up: the strays are those of the older one.
TEST(SessionStrays, a_break_before_the_answer_keeps_the_old_id) {
  for (const int how_far : {0, 1, 2, 3}) {
    SCOPED_TRACE(how_far);
    Broken f;
    f.sent();
    if (how_far > 0) f.receive(f.hello(11));
    f.rest = f.sent();
    if (how_far > 1) f.receive(f.before_reading(11) + f.caching() + f.record());
    if (how_far > 2) f.receive(f.time() + f.ping());
    EXPECT_EQ(f.sent(), how_far > 1 ? kill_10 : "");
    f.break_off(true);
    EXPECT_TRUE(f.strays().empty());
    f.connect();
    f.greet_up_to_reading(12);
    f.receive(f.caching() + f.record());
    EXPECT_EQ(f.sent(), kill_10);
    f.receive(f.time() + f.ping() + ":1\r\n");
    EXPECT_EQ(f.session->state(), State::up);
    EXPECT_EQ(f.strays(), std::vector<Strays>{Strays::ended});
  }
}

// The rest of the greeting takes longer: a new state is begun, and read again.
TEST(SessionStrays, an_end_is_told_when_it_is_known_and_is_not_taken_back) {
  for (const bool breaks : {false, true}) {
    Broken f;
    f.greet_up_to_reading(11);
    f.receive(f.caching() + f.blank() + f.time() + f.ping() + ":1\r\n");
    EXPECT_EQ(f.session->state(), State::greeting) << "the new state is not read yet";
    EXPECT_EQ(f.strays(), std::vector<Strays>{Strays::ended});
    if (breaks) {
      f.break_off(false);  // the client knows of no strays any more
      f.connect();
      f.greet(Fixture::record(), 12);
      EXPECT_FALSE(holds(f.sent(), "KILL"));
    } else {
      f.receive(":1\r\n" + f.caching() + f.record("") + f.time());
    }
    EXPECT_EQ(f.session->state(), State::up);
    EXPECT_EQ(f.strays(), std::vector<Strays>{Strays::ended});
  }
}

TEST_F(BrokenSession, a_later_reading_ends_nobody) {
  f.greet_up_to_reading(11);
  f.receive(f.caching() + f.record(seal, info_of(run_id, replid, 0, 0, "allkeys-lru")) + f.time() + f.ping() +
            "-NOPERM no\r\n");
  ASSERT_EQ(f.session->state(), State::up);
  f.sent();
  EXPECT_EQ(f.due(5'000), f.reading());
  f.receive(f.caching() + f.record() + f.time(1'700'000'005));
  EXPECT_EQ(f.sent(), "");
}

}  // namespace
}  // namespace redlock
