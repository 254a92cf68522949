// SPDX-License-Identifier: MIT
#include "guard_scripts.hpp"

#include <algorithm>

#include "lock_scripts.hpp"
#include "master/scripts.hpp"
#include "site/move_script.hpp"

namespace redlock::test {
namespace {

Reply run_reading(ScriptCall& call) {
  const Reply record = call.call({"HMGET", call.keys.at(0), "desc", "q", "seal"});
  if (call.failed()) return record;
  Reply visit;
  if (!call.argv.at(0).empty()) visit = call.call({"HGET", call.keys.at(1), call.argv.at(0)});
  if (call.failed()) return visit;
  Reply info = call.pcall({"INFO", "replication"});
  return Reply::make_array({info, record.items.at(0), record.items.at(1), record.items.at(2), visit});
}

Reply run_record(ScriptCall& call) {
  const std::string &key = call.keys.at(0), &desc = call.argv.at(0), &q = call.argv.at(1), &seal = call.argv.at(5);
  const Reply m = call.call({"HMGET", key, "desc", "q"});
  if (call.failed()) return m;
  const bool same = m.items.at(0).text == desc && (q == "*" || m.items.at(1).text == q);
  if (!same || is_other_server(call, call.argv.at(2))) return Reply::make_integer(0);
  call.call({"HSET", key, "desc", call.argv.at(3), "q", call.argv.at(4)});
  if (seal.empty()) {
    call.call({"HDEL", key, "seal"});
  } else {
    call.call({"HSET", key, "seal", seal});
  }
  call.call({"DEL", call.keys.at(1)});
  return Reply::make_integer(1);
}

Reply run_visit(ScriptCall& call) {
  const std::string &machine = call.argv.at(0), &seal = call.argv.at(1), state = seal.substr(17);
  const Reply m = call.call({"HMGET", call.keys.at(0), "q", "seal"});
  if (call.failed()) return m;
  if (m.items.at(0).text != state.substr(17) || m.items.at(1).text == seal) return Reply::make_integer(0);
  if (is_other_server(call, state.substr(0, 16))) return Reply::make_integer(0);
  const Reply visit = call.call({"HGET", call.keys.at(1), machine});
  if (visit.kind == Reply::bulk && visit.text.substr(0, 33) == state) return Reply::make_integer(0);
  if (visit.kind != Reply::bulk && call.call({"HLEN", call.keys.at(1)}).number >= 16) return Reply::make_integer(0);
  call.call({"HSET", call.keys.at(1), machine, state + " " + call.argv.at(2)});
  return Reply::make_integer(1);
}

Reply run_move(ScriptCall& call) {
  const std::string &before = call.argv.at(0), &after = call.argv.at(1), &ids = call.argv.at(2),
                    &step = call.argv.at(3);
  const std::string moving = "moving " + before + " > " + after, back = "moving " + after + " > " + before;
  const Reply m = call.call({"HMGET", call.keys.at(0), "desc", "q", "from"});
  if (call.failed()) return m;
  const std::string desc = m.items.at(0).text;
  std::string q = m.items.at(1).text;
  if (q.size() != 16) q.clear();
  char is = desc.empty() ? 'n' : desc == moving ? 'm' : desc == back ? 'b' : 't';
  const std::string from = m.items.at(2).text;
  if (desc == before) is = from.empty() ? 'o' : 'u';
  if (desc == after) is = from.empty() ? 'w' : from == before ? 'e' : 'u';
  const bool allowed = (step == "mark" && is != 't') || (step == "enter" && is == 'm' && !q.empty());
  if (allowed && q == ids.substr(std::min<size_t>(16, ids.size()))) {
    is = step == "mark" ? 'm' : 'e';
    q = ids.substr(0, 16);
    const std::string next = is == 'm' ? moving : after;
    const Reply set = call.call({"HSET", call.keys.at(0), "desc", next, "q", q, "from", before});
    if (call.failed()) return set;
    const Reply del = call.call({"HDEL", call.keys.at(0), "seal"});
    call.call({"DEL", call.keys.at(1)});
    if (call.failed()) return del;
  }
  return Reply::make_bulk(is + q);
}

Reply run_owner(ScriptCall& call) {
  const Reply m = call.call({"HMGET", call.keys.at(0), "desc", "q", "from"});
  if (call.failed()) return m;
  const std::string &desc = m.items.at(0).text, &from = m.items.at(2).text, &ours = call.argv.at(0);
  std::string q = m.items.at(1).text, other = desc;
  const bool adopted = q.starts_with('A');
  char is = desc.empty() ? 'n' : desc.starts_with("moving ") ? 'c' : 'o';
  if (desc == ours) {
    is = adopted && !from.empty() ? 'e' : 'w';
    other = from;
  } else if (!desc.empty() && adopted && desc == "moving " + from + " > " + ours) {
    is = 'm';
    other = from;
    q.clear();
  }
  const std::string info = call.pcall({"INFO", "server"}).text, word = "run_id:";
  const size_t at = info.find(word);
  std::string run = at == std::string::npos ? "" : info.substr(at + word.size(), 16);
  run.resize(16, ' ');
  q.resize(16, ' ');
  const std::string text = run + q + other;
  const std::string rest = text.substr(std::min<size_t>(text.size(), std::stoul(call.argv.at(1))));
  std::string piece = rest.substr(0, 16);
  piece.resize(16, ' ');
  return Reply::make_bulk(is + piece);
}

}  // namespace

void register_guard_scripts(RedisDouble& redis) {
  redis.register_script(text_of(reading_script), run_reading);
  redis.register_script(text_of(record_script), run_record);
  redis.register_script(text_of(visit_script), run_visit);
  redis.register_script(text_of(move_script), run_move);
  redis.register_script(text_of(owner_script), run_owner);
}

}  // namespace redlock::test
