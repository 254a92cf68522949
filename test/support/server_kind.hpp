// SPDX-License-Identifier: MIT
//
// Which server a test has before it. The texts of Redis 7.0 are compared byte by byte. Of any other server the outline
// is compared: all replies and pushes in their order, of an error its first word, and of HELLO no name.
#pragma once
#include <string>
#include <string_view>

#include "support/redis_double.hpp"
#include "support/redis_server.hpp"

namespace redlock::test {

struct ServerKind {
  bool valkey = false;
  unsigned version = 0;  // 70015: 7.0.15
  std::string text;      // "7.0.15"

  bool is_seven() const { return !valkey && version / 100 == 700; }  // Redis 7.0.x
  bool is_before_seven() const { return !valkey && version < 70'000; }
};

ServerKind kind_of(RedisServer& server);

// The value of a field of INFO.
std::string info_field(const std::string& info, const std::string& name);

// False: the command is younger than this server, or means something else there.
bool knows(const ServerKind& kind, const Args& command);

// These rules of a user in this server's words. Redis 6 cannot take one subcommand away: it loses CLIENT, and gets back
// what is left.
Args user_rules(const ServerKind& kind, const std::vector<std::string>& rules);

// ACL SETUSER with these rules.
std::string set_user(RedisServer& server, const std::string& user, const std::vector<std::string>& rules);

// The double speaks as this server does, as far as a knob of its says so.
void speak_as(const ServerKind& kind, RedisDouble& redis);

// An error's first word; of a script's error in the words of Redis 6 the one behind them, if there is one.
std::string first_word(std::string_view error);

// Any number of replies and pushes, in their order.
std::string outline(std::string_view bytes);

}  // namespace redlock::test
