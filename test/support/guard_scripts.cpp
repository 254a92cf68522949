// SPDX-License-Identifier: MIT
#include "guard_scripts.hpp"

#include <algorithm>

#include "master/scripts.hpp"

namespace redlock::test {
namespace {

Reply run_seal(ScriptCall& call) {
  const Reply q = call.call({"HGET", call.keys.at(0), "q"});
  if (call.failed()) return q;
  if (q.kind != Reply::bulk || q.text != call.argv.at(0)) return Reply::make_integer(0);
  const Reply set = call.call({"HSET", call.keys.at(0), "seal", call.argv.at(1)});
  return call.failed() ? set : Reply::make_integer(1);
}

Reply run_quarantine(ScriptCall& call) {
  const Reply m = call.call({"HMGET", call.keys.at(0), "desc", "q"});
  if (call.failed()) return m;
  if (m.items.at(0).text != call.argv.at(0)) return Reply::make_integer(0);
  if (call.argv.at(1) != "*" && m.items.at(1).text != call.argv.at(1)) return Reply::make_integer(0);
  const Reply set = call.call({"HSET", call.keys.at(0), "desc", call.argv.at(2), "q", call.argv.at(3)});
  if (call.failed()) return set;
  const Reply del = call.call({"HDEL", call.keys.at(0), "seal"});
  return call.failed() ? del : Reply::make_integer(1);
}

Reply run_move(ScriptCall& call) {
  const std::string &before = call.argv.at(0), &after = call.argv.at(1), &step = call.argv.at(3);
  const std::string moving = "moving " + before + " > " + after, back = "moving " + after + " > " + before;
  const Reply m = call.call({"HMGET", call.keys.at(0), "desc", "from", "q"});
  if (call.failed()) return m;
  const std::string desc = m.items.at(0).text;
  const bool ours = desc.empty() || desc == after || desc == moving || desc == back;
  if (!ours && (desc != before || step == "enter")) return Reply::make_integer(0);
  if (step == "look") return Reply::make_integer(1);
  const bool entered = desc == after && (step == "leave" || m.items.at(1).text == before);
  if (entered) return Reply::make_integer(2);
  const std::string q = m.items.at(2).text, found = q.size() == 16 ? q : "", &ids = call.argv.at(2);
  if (found != ids.substr(std::min<size_t>(16, ids.size()))) return Reply::make_bulk(found);
  const std::string next = step == "leave" ? moving : after;
  const Reply set = call.call({"HSET", call.keys.at(0), "desc", next, "q", ids.substr(0, 16), "from", before});
  if (call.failed()) return set;
  const Reply del = call.call({"HDEL", call.keys.at(0), "seal"});
  return call.failed() ? del : Reply::make_integer(1);
}

std::string text_of(const Script& script) { return std::string(script.body.data, script.body.size); }

}  // namespace

void register_guard_scripts(RedisDouble& redis) {
  redis.register_script(text_of(seal_script), run_seal);
  redis.register_script(text_of(quarantine_script), run_quarantine);
  redis.register_script(text_of(move_script), run_move);
}

}  // namespace redlock::test
