// SPDX-License-Identifier: MIT
//
// What a session makes of silence, and what it tells of its master.
#include "session_fixture.hpp"

namespace redlock {
namespace {

using namespace session_test;

// ---- time -----------------------------------------------------------------------------------------------------

TEST_F(AnySession, a_connection_that_does_not_come) {
  f.session->connecting(f.now);
  f.on_time(at(1'499));
  EXPECT_EQ(f.session->wish(), Wish::none);
  f.on_time(at(1'500));
  f.expect_closing(REDLOCK_E_CONNECT_TIMEOUT);
  f.session->connected(at(1'500), 1);  // the two met
  EXPECT_EQ(f.sent(), "");
  f.expect_closing(REDLOCK_E_CONNECT_TIMEOUT);
}

TEST_F(AnySession, a_greeting_that_does_not_end) {
  f.session->connecting(f.now);
  f.now = at(1'400);
  f.session->connected(f.now, 1);
  EXPECT_EQ(f.session->deadline(), at(1'900)) << "connect and greeting, each";
  f.receive(hello() + ready);
  f.on_time(at(1'899));
  EXPECT_EQ(f.session->wish(), Wish::none);
  f.on_time(at(1'900));
  f.expect_closing(REDLOCK_E_NODE_TIMEOUT);
}

// The FIFO rounds down to ticks of 1024 ns when it was sent.
void expect_just_before(Instant deadline, Instant wanted) {
  EXPECT_LE(deadline, wanted);
  EXPECT_GT(deadline, wanted + Duration::ns(-1'024));
}

TEST_F(GreetedSession, the_oldest_request_counts) {
  f.ask(1);
  f.now = at(1'040);
  f.ask(2);
  f.receive("+OK\r\n");
  expect_just_before(f.session->deadline(), at(1'090));
  f.on_time(at(1'089));
  EXPECT_TRUE(f.session->votes());
  f.on_time(at(1'090));
  EXPECT_FALSE(f.session->votes());
}

// The process was stopped. The answer may wait in the socket, so nobody is judged before the socket was read.
TEST_F(GreetedSession, a_pause_of_our_own_is_not_the_masters) {
  f.ask(1);
  f.now = at(60'000);
  f.session->on_time(f.now, at(1'049));
  EXPECT_TRUE(f.session->votes());
  EXPECT_LE(f.session->deadline(), at(1'050)) << "the timer fires at once: the port looks, and does not wait";
  f.receive("+OK\r\n");
  EXPECT_TRUE(f.session->votes());

  f.ask(2);
  f.now = at(120'000);
  f.session->on_time(f.now, at(60'049));
  EXPECT_EQ(f.session->state(), State::up);
  f.session->on_time(f.now, at(60'050));
  EXPECT_EQ(f.session->state(), State::suspect) << "it was looked for, and nothing had come";
  f.session->on_time(f.now, at(119'000));
  f.expect_closing(REDLOCK_E_NODE_TIMEOUT);
}

TEST_F(GreetedSession, an_idle_connection_is_tried) {
  EXPECT_EQ(f.session->deadline(), at(6'000));
  f.on_time(at(5'999));
  EXPECT_EQ(f.sent(), "");
  f.now = at(6'000);
  f.on_time(f.now);
  const std::string first = f.sent();
  EXPECT_EQ(first, command({"PING", Fixture::nonce_of(first)}));
  EXPECT_EQ(f.session->deadline(), at(6'050));
  f.on_time(at(6'001));
  EXPECT_EQ(f.sent(), "") << "once";
  f.now = at(6'010);
  f.receive(bulk(Fixture::nonce_of(first)));
  EXPECT_EQ(f.session->deadline(), at(11'010));
  f.now = at(11'010);
  f.on_time(f.now);
  const std::string second = f.sent();
  EXPECT_NE(Fixture::nonce_of(second), Fixture::nonce_of(first));
  f.receive(bulk(Fixture::nonce_of(first)));
  f.expect_closing(REDLOCK_E_PROTOCOL, "an old nonce");
}

// ---- what is told of a master ---------------------------------------------------------------------------------

TEST_F(GreetedSession, the_last_error_is_of_this_connection_and_no_missing_script) {
  EXPECT_EQ(f.session->last_error(), 0);
  f.ask(1);
  f.receive("-OOM no\r\n");
  EXPECT_EQ(f.session->last_error(), REDLOCK_E_OOM);
  f.ask(2, Op::release);
  f.receive("-NOSCRIPT no\r\n");
  EXPECT_EQ(f.session->last_error(), REDLOCK_E_OOM);
  f.ask(3);
  f.receive("+OK\r\n");
  EXPECT_EQ(f.session->last_error(), REDLOCK_E_OOM) << "the last one, not one of now";
  EXPECT_EQ(f.session->reason(), 0);
  EXPECT_EQ(f.session->errors(), 2u);
  f.break_off();
  EXPECT_EQ(f.session->last_error(), REDLOCK_E_DISCONNECTED) << "why it is not up";
  f.greet();
  EXPECT_EQ(f.session->last_error(), 0);
}

// A user who may acquire and not delete leaves keys behind: this must not happen without a word.
TEST_F(GreetedSession, a_delete_that_is_not_permitted_is_told_as_long_as_it_is) {
  const auto answer = [this](Op op, const char* bytes) {
    f.ask(1, op);
    f.sent();
    f.receive(bytes);
    return f.session->take_untold();
  };
  EXPECT_FALSE(answer(Op::acquire, "-NOPERM no\r\n")) << "that is a vote";
  EXPECT_EQ(f.session->reason(), 0);
  EXPECT_TRUE(answer(Op::release, "-NOPERM no\r\n"));
  EXPECT_EQ(f.session->reason(), REDLOCK_E_NOPERM);
  EXPECT_TRUE(f.session->votes()) << "and it is up all the same";
  EXPECT_FALSE(answer(Op::release, "-NOPERM no\r\n")) << "told once";
  EXPECT_FALSE(answer(Op::acquire, "+OK\r\n"));
  EXPECT_FALSE(answer(Op::release, "-NOSCRIPT no\r\n")) << "says nothing of permissions";
  EXPECT_EQ(f.session->reason(), REDLOCK_E_NOPERM);
  EXPECT_TRUE(answer(Op::release, ":1\r\n"));
  EXPECT_EQ(f.session->reason(), 0);
  EXPECT_TRUE(answer(Op::release, "-NOPERM no\r\n"));
  EXPECT_TRUE(answer(Op::release, ":0\r\n")) << "deleted or not: it is permitted";
  EXPECT_FALSE(answer(Op::release, "-OOM no\r\n"));
  EXPECT_TRUE(answer(Op::release, "-NOPERM no\r\n"));
  f.break_off();
  EXPECT_EQ(f.session->reason(), REDLOCK_E_DISCONNECTED);
}

// A port that speaks TLS only closes, or says what is no RESP.
TEST_F(GreetedSession, a_connection_that_is_closed_before_its_first_answer_has_a_reason_of_its_own) {
  f.break_off();
  EXPECT_EQ(f.session->reason(), REDLOCK_E_DISCONNECTED) << "it has answered";
  f.connect();
  f.break_off();
  EXPECT_EQ(f.session->reason(), REDLOCK_E_NO_GREETING);
  f.connect();
  f.receive(hello());
  f.break_off();
  EXPECT_EQ(f.session->reason(), REDLOCK_E_DISCONNECTED);
  f.master.password = "secret";
  f.connect();
  f.receive("-ERR unknown command 'HELLO'\r\n");  // and AUTH is alone in flight
  f.break_off();
  EXPECT_EQ(f.session->reason(), REDLOCK_E_DISCONNECTED);
  f.connect();
  f.break_off(REDLOCK_E_NODE_TIMEOUT);
  EXPECT_EQ(f.session->reason(), REDLOCK_E_NODE_TIMEOUT);
  f.on_time(f.session->deadline());
  f.session->connecting(f.now);
  f.break_off();
  EXPECT_EQ(f.session->reason(), REDLOCK_E_DISCONNECTED) << "nobody was asked";
}

TEST(Session, owes_an_answer_about_a_claim_until_all_are_there_deletes_apart) {
  Fixture f(8);
  f.greet();
  for (int round = 0; round < 10; ++round) {  // around the FIFO
    EXPECT_FALSE(f.session->owes_answer(5));
    f.ask(5);
    f.ask(6, Op::extend);
    f.ask(7, Op::release);
    look(f, 8);
    f.ask(5, Op::extend);
    EXPECT_TRUE(f.session->owes_answer(5));
    EXPECT_TRUE(f.session->owes_answer(6));
    EXPECT_FALSE(f.session->owes_answer(7)) << "a delete";
    EXPECT_FALSE(f.session->owes_answer(8)) << "a look is about a waiter, and has numbers of its own";
    EXPECT_FALSE(f.session->owes_answer(0)) << "nor are the session's own requests about the first claim";
    f.receive("+OK\r\n:1\r\n");
    EXPECT_TRUE(f.session->owes_answer(5));
    EXPECT_FALSE(f.session->owes_answer(6));
    f.receive(":1\r\n+OK\r\n:5\r\n:1\r\n");
    f.sent();
  }
  f.ask(5);
  f.break_off();
  EXPECT_FALSE(f.session->owes_answer(5));
}

}  // namespace
}  // namespace redlock
