// SPDX-License-Identifier: MIT
//
// SessionWire: a session's connection as a test holds it: what goes out is taken, what comes in is fed, and what the
// session makes of it is kept. As the client does, it takes the session's news after each input.
#pragma once
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "master/session.hpp"

namespace redlock::test {

struct SessionWire {
  // What it has to send goes out, all of it.
  std::string sent() {
    Bytes chunk[Tx::chunks_max];
    const unsigned n = session->tx().gather(chunk, Tx::chunks_max);
    std::string all;
    for (unsigned i = 0; i < n; ++i) all.append(chunk[i].data, chunk[i].size);
    session->tx().consume(all.size());
    return all;
  }

  // All that had arrived was read.
  Instant on_time(const Instant& at) { return session->on_time(at, at); }
  // What the session was told, one thing at a time. False: there is no more.
  bool next(redlock::Reply& out) {
    if (session->is_fast(now) && session->try_fast_reply(now, out)) return true;
    return session->unread() && session->next_item(now, out);
  }
  // Bytes arrive; a session that wishes to close reads no more.
  void receive(std::string_view s) {
    while (!s.empty()) {
      size_t room = 0;
      char* to = session->rx_room(room);
      if (room == 0) break;
      const size_t n = std::min(room, s.size());
      memcpy(to, s.data(), n);
      s.remove_prefix(n);
      session->received(n);
      for (redlock::Reply reply; next(reply);) {
        replies.push_back(reply);
        keys.emplace_back(reply.key.data, reply.key.size);
      }
      take_news();
    }
  }
  void take_news() {
    while (std::exchange(has_news, false)) news.push_back(session->take_news());
  }

  // The word behind the last PING that was sent.
  static std::string nonce_of(const std::string& wire) {
    const size_t ping = wire.rfind("PING\r\n$8\r\n");
    return ping == std::string::npos ? "" : wire.substr(ping + 10, 8);
  }

  // A command for this master alone.
  void ask(Op op, uint16_t claim, uint32_t round, const Command& command) {
    session->ask({now, round, claim, static_cast<uint8_t>(op), true}, command);
  }

  alignas(Shared::Command) char shared_memory[4'096];
  Shared shared;
  std::unique_ptr<Session> session;
  std::vector<redlock::Reply> replies;
  std::vector<std::string> keys;  // of each reply, since a Reply owns none
  Instant now;
  std::vector<News> news;
  bool called = false;    // by the session
  bool has_news = false;  // for take_news()
  Instant begins = Instant::never();
  Awake awake = Awake::holds;
};

}  // namespace redlock::test
