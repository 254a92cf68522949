// SPDX-License-Identifier: MIT
#include "server_kind.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace redlock::test {

std::string info_field(const std::string& info, const std::string& name) {
  const size_t at = info.find("\n" + name + ":");
  if (at == std::string::npos) return "";
  const size_t value = at + name.size() + 2;
  return info.substr(value, info.find('\r', value) - value);
}

namespace {

unsigned number_of(const std::string& version) {
  unsigned number = 0;
  const char* at = version.data();
  const char* const end = at + version.size();
  for (int part = 0; part < 3; ++part) {
    unsigned value = 0;
    at = std::from_chars(at, end, value).ptr;
    number = number * 100 + value;
    if (at != end) ++at;
  }
  return number;
}

size_t count_of(std::string_view line) { return std::stoul(std::string(line.substr(1))); }

std::string outline_of_one(std::string_view bytes, size_t& at);

// HELLO's map: who it is and which modules it brings is nobody's business here.
std::string outline_of_many(std::string_view bytes, size_t& at, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    const std::string one = outline_of_one(bytes, at);
    text += one;
    const bool names = one == "$server " || one == "$version " || one == "$modules ";
    if (!names || i % 2 != 0 || i + 1 == count) continue;
    outline_of_one(bytes, at);
    text += "any ";
    ++i;
  }
  return text;
}

std::string outline_of_one(std::string_view bytes, size_t& at) {
  const size_t end = bytes.find("\r\n", at);
  if (end == std::string_view::npos) throw std::runtime_error("half a reply: " + std::string(bytes.substr(at)));
  const std::string_view line = bytes.substr(at, end - at);
  at = end + 2;
  switch (line.at(0)) {
    case '-':
      return first_word(line) + " ";
    case '$':
    case '=': {
      if (line == "$-1") break;
      const size_t size = count_of(line);
      const std::string payload(bytes.substr(at, size));
      at += size + 2;
      return line[0] + payload + " ";
    }
    case '*':
    case '%':
    case '~':
    case '>': {
      if (line == "*-1") break;
      const size_t count = count_of(line) * (line[0] == '%' ? 2 : 1);
      return std::string(line) + "( " + outline_of_many(bytes, at, count) + ") ";
    }
    default:
      break;
  }
  return std::string(line) + " ";
}

}  // namespace

ServerKind kind_of(RedisServer& server) {
  const std::string info = server.command({"INFO", "server"});
  ServerKind kind;
  kind.text = info_field(info, "valkey_version");
  kind.valkey = !kind.text.empty();
  if (!kind.valkey) kind.text = info_field(info, "redis_version");
  kind.version = number_of(kind.text);
  return kind;
}

bool knows(const ServerKind& kind, const Args& command) {
  if (!kind.is_before_seven()) return true;
  const std::string& last = command.back();
  if (command[0] == "PEXPIRE") return command.size() <= 3;
  if (command[0] == "SET") return last != "9223372036854775807";  // it adds to it, and overflows
  if (command[0] == "CLIENT") return last != "0" && last != "-1";  // it kills everybody, and nobody
  if (command[0] == "SCRIPT") return command.size() != 3 || command[1] != "FLUSH";
  return command[0] != "HELLO" || (command.size() > 1 && command[1] != "x");
}

Args user_rules(const ServerKind& kind, const std::vector<std::string>& rules) {
  static const std::string client = "-client|";
  Args words, client_is_left;
  for (const char* each : {"caching", "getname", "id", "info", "kill", "list", "setname", "tracking"}) {
    if (std::find(rules.begin(), rules.end(), client + each) == rules.end()) {
      client_is_left.push_back(std::string("+client|") + each);
    }
  }
  for (const std::string& rule : rules) {
    if (kind.is_before_seven() && rule == "&*") continue;
    const bool takes_one_away = kind.is_before_seven() && rule.starts_with(client);
    words.push_back(takes_one_away ? "-client" : rule);
    if (takes_one_away) words.insert(words.end(), client_is_left.begin(), client_is_left.end());
  }
  return words;
}

std::string set_user(RedisServer& server, const std::string& user, const std::vector<std::string>& rules) {
  Args words = {"ACL", "SETUSER", user};
  for (const std::string& rule : user_rules(kind_of(server), rules)) words.push_back(rule);
  return server.command(words);
}

void speak_as(const ServerKind& kind, RedisDouble& redis) {
  redis.knobs.version = kind.text;
  redis.knobs.setinfo = kind.valkey || kind.version >= 70'200;
  redis.knobs.script_errors = kind.is_before_seven();
  redis.knobs.loops = (kind.is_before_seven() && kind.version < 60'208) || (kind.is_seven() && kind.version < 70'005);
  redis.knobs.pushes_first = kind.is_before_seven();
  redis.knobs.flush_pushes_first = kind.is_before_seven() || (!kind.valkey && kind.version >= 80'000);
}

std::string first_word(std::string_view error) {
  static constexpr std::string_view of_six = "@user_script:", capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  if (const size_t place = error.rfind(of_six); place != std::string_view::npos) {
    const size_t colon = error.find(": ", place + of_six.size());
    if (colon != std::string_view::npos) {
      std::string_view inner = error.substr(colon + 2);
      if (inner.starts_with('-')) inner.remove_prefix(1);
      const std::string_view word = inner.substr(0, inner.find(' '));
      return "-" + std::string(word.find_first_not_of(capitals) == std::string_view::npos ? word : "ERR");
    }
  }
  return std::string(error.substr(0, error.find_first_of(" \r")));
}

std::string outline(std::string_view bytes) {
  std::string text;
  for (size_t at = 0; at < bytes.size();) text += outline_of_one(bytes, at);
  return text;
}

}  // namespace redlock::test
