// SPDX-License-Identifier: MIT
//
// Outgoing: what leaves a session. To the master: the bytes still to be sent, and the requests in flight behind them.
// To the client: news about the master beside its answers. The rooms of a session (greeting, record) speak through this
// one door, so requests stand in the FIFO in the order of their bytes.
#pragma once
#include "master/command.hpp"
#include "master/fifo.hpp"
#include "master/tx.hpp"

namespace redlock {

// What has become of commands that an older connection left unanswered.
enum class Strays : uint8_t {
  none,      // nothing about them has changed
  ended,     // they were executed, or never will be
  at_large,  // they may still be executed
};

// What happened to a master beside its answers, since the client last asked.
struct News {
  bool identified = false;  // its run id is known: does another master have the same?
  bool withdrawn = false;   // it may have forgotten keys, or surely has: its votes of open rounds do not count any more
  bool stepped = false;     // its wall clock was stepped, or runs off rate
  bool wants_boot_time = false;
  Strays strays = Strays::none;
  Duration by;  // stepped: how far; negative: back
};

class Outgoing {
 public:
  using Request = Fifo::Request;
  static constexpr unsigned references_max = 2;  // of one command: the texts of a script
  static constexpr size_t word_max = 9;  // what append_word() adds to a word of less than 10,000 bytes

  Outgoing(Fifo::Request* requests, unsigned requests_size, bool* has_news)
      : fifo(requests, requests_size), has_news_(has_news) {}

  // One word of a command; and one whose bytes are not copied.
  void append_word(Bytes word);
  void append_reference(Bytes first, Bytes second = Bytes());
  // The text of a command's script, and what the command says behind it.
  void append_script(const Command& command);
  // A whole command of the session itself, of fixed words.
  void send(Bytes words, Request::Kind kind, const Instant& now);

  // News that are to be taken with take_news(); the client is called for them.
  News& tell() {
    *has_news_ = true;
    return news_;
  }
  News take_news() {
    const News out = news_;
    news_ = {};
    return out;
  }
  // The connection is over: nothing of it is sent, awaited or told any more.
  void clear() {
    tx.clear();
    fifo.clear();
    news_ = {};
  }

  Tx tx;
  Fifo fifo;

 private:
  bool* const has_news_;
  News news_;
};

}  // namespace redlock
