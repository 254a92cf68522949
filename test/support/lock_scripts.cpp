// SPDX-License-Identifier: MIT
#include "lock_scripts.hpp"

#include "master/scripts.hpp"

namespace redlock::test {
namespace {

bool below(const std::string& a, const std::string& b) { return a.size() != b.size() ? a.size() < b.size() : a < b; }

struct Kept {
  std::string token = "0";
  bool known = false;
};

// "token seal" beside a name; another seal, or nothing, makes it a hint.
Kept kept(const Reply& field, const std::string& seal) {
  const size_t space = field.text.find(' ');
  if (field.kind != Reply::bulk || space == 0 || space == std::string::npos) return {};
  if (field.text.find_first_not_of("0123456789") != space) return {};
  return {field.text.substr(0, space), field.text.substr(space + 1) == seal};
}

// The value is under each of the first n names.
bool ours(ScriptCall& call, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const Reply value = call.call({"GET", call.keys.at(i)});
    if (value.kind != Reply::bulk || value.text != call.argv.at(0)) return false;
  }
  return true;
}

std::string to_ms(const Reply& time) {
  std::string micros = time.items.at(1).text;
  micros.insert(0, 6 - micros.size(), '0');
  return time.items.at(0).text + micros.substr(0, 3);
}

Reply run_acquire(ScriptCall& call) {
  const bool fenced = call.argv.size() > 3;
  const size_t n = call.keys.size() - (fenced ? 2 : 1);
  const std::string& seal = call.argv.at(2);
  if (!seal.empty() && is_other_state(call, call.keys.at(n), seal)) return Reply::make_integer(-1);
  bool held = false;
  for (size_t i = 0; i < n; ++i) held |= call.call({"EXISTS", call.keys.at(i)}).number == 1;
  const auto set = [&] {
    for (size_t i = 0; i < n; ++i) call.call({"SET", call.keys.at(i), call.argv.at(0), "NX", "PX", call.argv.at(1)});
  };
  if (!fenced) {
    if (held) return Reply::make_nil();
    set();
    return Reply::ok();
  }
  const std::string& proposal = call.argv.at(3);
  Kept all{"0", true};
  for (size_t i = 0; i < n; ++i) {
    const Kept one = kept(call.call({"HGET", call.keys.at(n + 1), call.keys.at(i)}), seal);
    all.known = all.known && one.known;
    if (below(all.token, one.token)) all.token = one.token;
  }
  const std::string word = all.known ? "known " : "hint ";
  if (held) return Reply::make_bulk("held " + word + all.token);
  const Reply time = call.call({"TIME"});
  if (call.failed()) return {};
  set();
  if (all.known && below(all.token, proposal)) {
    for (size_t i = 0; i < n; ++i) call.call({"HSET", call.keys.at(n + 1), call.keys.at(i), proposal + " " + seal});
    return Reply::make_bulk("ack " + proposal);
  }
  return Reply::make_bulk(word + all.token + " " + to_ms(time));
}

Reply run_token(ScriptCall& call) {
  const size_t n = call.keys.size() - 2;
  const std::string &seal = call.argv.at(1), &token = call.argv.at(2);
  if (!seal.empty() && is_other_state(call, call.keys.at(n), seal)) return Reply::make_integer(-1);
  if (!ours(call, n)) return Reply::make_integer(0);
  for (size_t i = 0; i < n; ++i) {
    const Kept one = kept(call.call({"HGET", call.keys.at(n + 1), call.keys.at(i)}), seal);
    if (one.known && !below(one.token, token)) return Reply::make_integer(0);
  }
  for (size_t i = 0; i < n; ++i) call.call({"HSET", call.keys.at(n + 1), call.keys.at(i), token + " " + seal});
  return Reply::make_integer(1);
}

Reply run_extend(ScriptCall& call) {
  size_t n = call.keys.size();
  if (call.argv.size() > 2) {
    --n;
    if (is_other_state(call, call.keys.at(n), call.argv.at(2))) return Reply::make_integer(-1);
  }
  if (!ours(call, n)) return Reply::make_integer(0);
  for (size_t i = 0; i < n; ++i) {
    const Reply left = call.call({"PTTL", call.keys.at(i)});
    if (left.number >= std::stoll(call.argv.at(1))) continue;
    call.call({"PEXPIRE", call.keys.at(i), call.argv.at(1)});
    call.call({"PTTL", call.keys.at(i)});
  }
  return Reply::make_integer(1);
}

Reply run_release(ScriptCall& call) {
  Reply deleted = Reply::make_integer(0);
  for (const std::string& key : call.keys) {
    const Reply value = call.pcall({"GET", key});
    if (value.kind == Reply::bulk && value.text == call.argv.at(0)) {
      deleted = call.call({"DEL", key});
    } else if (value.is_error() && value.text.find("WRONGTYPE") == std::string::npos) {
      return value;
    }
  }
  return deleted;
}

Reply run_look(ScriptCall& call) {
  int64_t most = -2;
  for (const std::string& key : call.keys) {
    const int64_t left = call.call({"PTTL", key}).number;
    if (left == -1 || (most != -1 && left > most)) most = left;
  }
  return Reply::make_integer(most);
}

}  // namespace

bool is_other_server(ScriptCall& call, const std::string& replid) {
  if (replid == "0000000000000000") return false;
  const Reply info = call.call({"INFO", "replication"});
  const auto has = [&](const std::string& text) { return info.text.find(text) != std::string::npos; };
  return !has("role:master") || !has("master_replid:" + replid);
}

bool is_other_state(ScriptCall& call, const std::string& meta_key, const std::string& seal) {
  const Reply found = call.call({"HGET", meta_key, "seal"});
  // Lua's sub() takes what is there.
  const std::string replid = seal.size() > 17 ? seal.substr(17, 16) : "";
  return found.kind != Reply::bulk || found.text != seal || is_other_server(call, replid);
}

std::string text_of(const Script& script) {
  return std::string(script.common.data, script.common.size).append(script.body.data, script.body.size);
}

void register_lock_scripts(RedisDouble& redis) {
  redis.register_script(text_of(acquire_script), run_acquire);
  redis.register_script(text_of(extend_script), run_extend);
  redis.register_script(text_of(release_script), run_release);
  redis.register_script(text_of(token_script), run_token);
  redis.register_script(text_of(look_script), run_look);
}

}  // namespace redlock::test
