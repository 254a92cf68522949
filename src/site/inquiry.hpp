// SPDX-License-Identifier: MIT
//
// Inquiry asks one master any commands, one after the other on one connection. Each command leaves when the reply to
// the one before has come, and none is sent twice. So the time from a command to its reply is a round trip.
//
// A reply is written as items into the caller's memory: items from the front, and their texts from the back. A reply
// that does not fit is read to its end and dropped.
//
// The class does no I/O. A driver moves its client; step() is called after its turns.
#pragma once
#include <redlock/site.h>

#include "client/client.hpp"

namespace redlock {

class Inquiry : public Listener {
 public:
  // room: for the longest command, encoded_size().
  Inquiry(redlock_question_t* questions, unsigned count, Space replies, Space room);
  static void clear(redlock_question_t* questions, unsigned count);  // what a call fills
  static uint64_t encoded_size(const redlock_question_t& question);

  void begin(Client& client) { client_ = &client; }
  void step(Instant now);
  static void clock_jumped(Instant) {}  // all times are the session's
  bool over() const { return over_; }
  int result() const { return result_; }  // when over: 0, or why the questions that are left have no reply

 private:
  void take(const resp::Item& item);
  bool open_item(const resp::Item& item);
  bool add_text(Bytes text);
  void drop();
  void end_reply(Instant now);
  Bytes encode(const redlock_question_t& question) const;
  void finish(int result);

  redlock_question_t* const questions_;
  const unsigned count_;
  const Space room_;
  redlock_item_t* item_;          // the next item
  char* text_;                    // the first byte of the last text; texts are written downwards
  char* texts_before_ = nullptr;  // the same, before the present reply
  Client* client_ = nullptr;
  Instant asked_at_;
  unsigned next_ = 0;  // the question that is asked, or is to be asked
  int result_ = 0;
  bool waits_ = false;  // for the reply
  bool ended_ = false;  // the reply is there
  bool part_ = false;   // the last text goes on
  bool over_ = false;
};

}  // namespace redlock
