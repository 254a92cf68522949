// SPDX-License-Identifier: MIT
//
// RedisDouble: keys, those who track them, and the commands on keys.
#include "redis_double.hpp"

#include <algorithm>

#include "redis_double_words.hpp"

namespace redlock::test {

using namespace redis_words;

// ---- keys and those who track them ----------------------------------------------------------------------------------

bool RedisDouble::expired(const Entry& entry, TrueTime now) const {
  return entry.when_ms != 0 && wall.ms(now) > entry.when_ms;
}

// A replica does not delete what has expired: it waits for its master to say so.
RedisDouble::Entry* RedisDouble::find_key(std::string_view key, TrueTime now, int conn) {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return nullptr;
  if (!expired(found->second, now)) return &found->second;
  if (knobs.replica) return nullptr;
  keys_.erase(found);
  changed(key, conn, true);
  return nullptr;
}

RedisDouble::Entry& RedisDouble::made(std::string_view key) {
  const auto found = keys_.find(key);
  return found != keys_.end() ? found->second : keys_.emplace(key, Entry()).first->second;
}

void RedisDouble::drop(std::string_view key) {
  if (const auto found = keys_.find(key); found != keys_.end()) keys_.erase(found);
}

void RedisDouble::push(int number, const std::string_view* key, bool after_reply) {
  Connection& conn = conns_.at(number);
  if (conn.resp != 3) return;
  std::string text = ">2\r\n$10\r\ninvalidate\r\n";
  if (key) {
    append_line(text, '*', 1);
    append_line(text, '$', static_cast<int64_t>(key->size()));
    append_line(text, *key);
  } else {
    text += "_\r\n";
  }
  if (after_reply) {
    conn.late_pushes.push_back(std::move(text));
  } else {
    conn.out += text;
    pushed_.push_back(number);
  }
}

bool RedisDouble::tracks(const Connection& conn, const Command& command) {
  return (command.flags & read) && conn.tracking && (!conn.optin || conn.caching) && !(conn.optout && conn.caching);
}

template <class Keys>
void RedisDouble::track(const Keys& keys, int number) {
  for (const auto& key : keys) {
    auto entry = trackers_.find(key);
    if (entry == trackers_.end()) entry = trackers_.emplace(key, std::vector<int>()).first;
    std::vector<int>& readers = entry->second;
    const auto at = std::lower_bound(readers.begin(), readers.end(), number);
    if (at == readers.end() || *at != number) readers.insert(at, number);
  }
}
template void RedisDouble::track(const Request& keys, int number);  // of a command
template void RedisDouble::track(const Args& keys, int number);     // of a script

// Registrations are used up by any change, also by the change that is not told to its author (NOLOOP).
void RedisDouble::changed(std::string_view key, int by_conn, bool executing) {
  const auto found = trackers_.find(key);
  if (found == trackers_.end()) return;
  for (const int reader : found->second) {
    const auto conn = conns_.find(reader);
    if (conn == conns_.end() || !conn->second.tracking || conn->second.closing) continue;
    const bool own = reader == by_conn;
    if (own && conn->second.noloop && !(knobs.loops && in_script_)) continue;
    push(reader, &key, executing && own && !knobs.pushes_first && !(knobs.loops && in_script_));
  }
  found->second.clear();
}

void RedisDouble::tick(TrueTime now) {
  if (knobs.replica || knobs.loading) return;
  for (auto entry = keys_.begin(); entry != keys_.end();) {
    if (!expired(entry->second, now)) {
      ++entry;
      continue;
    }
    const std::string key = entry->first;
    entry = keys_.erase(entry);
    changed(key, -1, false);
  }
}

void RedisDouble::flush_all(int by_conn) {
  keys_.clear();
  trackers_.clear();
  for (auto& [number, conn] : conns_) {
    if (conn.tracking && !conn.closing) push(number, nullptr, number == by_conn && !knobs.flush_pushes_first);
  }
}

void RedisDouble::evict(const std::string& key) {
  if (keys_.erase(key) != 0) changed(key, -1, false);
}

void RedisDouble::put(const std::string& key, const std::string& value, int64_t ttl_ms, TrueTime now) {
  keys_[key] = Entry{value, ttl_ms == 0 ? 0 : wall.ms(now) + ttl_ms, false, {}};
  changed(key, -1, false);
}

void RedisDouble::put_fields(const std::string& key, Fields fields) {
  keys_[key] = Entry{"", 0, true, std::move(fields)};
  changed(key, -1, false);
}

// ---- commands on keys -----------------------------------------------------------------------------------------------

Reply RedisDouble::cmd_set(int number, Request args, TrueTime now) {
  bool nx = false, xx = false, keep = false;
  const std::string_view* expiry = nullptr;
  int64_t unit = 1;
  for (size_t i = 3; i < args.size(); ++i) {
    const std::string_view option = args[i];
    const bool has_value = i + 1 < args.size();
    if (is(option, "NX") && !xx)
      nx = true;
    else if (is(option, "XX") && !nx)
      xx = true;
    else if (is(option, "KEEPTTL") && !expiry)
      keep = true;
    else if ((is(option, "PX") || is(option, "EX")) && !expiry && !keep && has_value) {
      unit = is(option, "EX") ? 1000 : 1;
      expiry = &args[++i];
    } else {
      return syntax_error();
    }
  }
  int64_t when = 0;
  if (expiry) {
    const std::optional<int64_t> ttl = to_int(*expiry);
    if (!ttl) return not_an_integer();
    const int64_t wall_now = wall.ms(now);
    if (*ttl <= 0 || *ttl > (std::numeric_limits<int64_t>::max() - wall_now) / unit) {
      return err("ERR invalid expire time in 'set' command");
    }
    when = wall_now + *ttl * unit;
  }
  const Entry* old = find_key(args[1], now, number);
  if ((nx && old) || (xx && !old)) return Reply::make_nil();
  if (keep && old) when = old->when_ms;
  Entry& entry = made(args[1]);
  entry.value = args[2];
  entry.when_ms = when;
  entry.hash = false;
  entry.fields.clear();
  changed(args[1], number, true);
  return Reply::ok();
}

Reply RedisDouble::cmd_get(int number, Request args, TrueTime now) {
  const Entry* entry = find_key(args[1], now, number);
  if (!entry) return Reply::make_nil();
  return entry->hash ? wrong_type() : Reply::make_bulk(entry->value);
}

Reply RedisDouble::cmd_hset(int number, Request args, TrueTime now) {
  if (args.size() % 2 != 0) return err("ERR wrong number of arguments for 'hset' command");
  Entry* entry = find_key(args[1], now, number);
  if (entry && !entry->hash) return wrong_type();
  if (!entry) {
    entry = &made(args[1]);
    *entry = Entry{"", 0, true, {}};
  }
  int64_t added = 0;
  for (size_t i = 2; i < args.size(); i += 2) {
    const auto field = entry->fields.find(args[i]);
    if (field != entry->fields.end()) {
      field->second = args[i + 1];
    } else {
      entry->fields.emplace(args[i], args[i + 1]);
      ++added;
    }
  }
  changed(args[1], number, true);
  return Reply::make_integer(added);
}

Reply RedisDouble::value_of(const Entry* hash, std::string_view field) {
  if (hash == nullptr) return Reply::make_nil();
  const auto found = hash->fields.find(field);
  return found == hash->fields.end() ? Reply::make_nil() : Reply::make_bulk(found->second);
}

Reply RedisDouble::cmd_hget(int number, Request args, TrueTime now) {
  const Entry* entry = find_key(args[1], now, number);
  return entry && !entry->hash ? wrong_type() : value_of(entry, args[2]);
}

Reply RedisDouble::cmd_hlen(int number, Request args, TrueTime now) {
  const Entry* entry = find_key(args[1], now, number);
  if (entry && !entry->hash) return wrong_type();
  return Reply::make_integer(entry ? static_cast<int64_t>(entry->fields.size()) : 0);
}

Reply RedisDouble::cmd_hmget(int number, Request args, TrueTime now) {
  const Entry* entry = find_key(args[1], now, number);
  if (entry && !entry->hash) return wrong_type();
  std::vector<Reply> values;
  for (size_t i = 2; i < args.size(); ++i) {
    values.push_back(value_of(entry, args[i]));
  }
  return Reply::make_array(std::move(values));
}

Reply RedisDouble::cmd_hdel(int number, Request args, TrueTime now) {
  Entry* entry = find_key(args[1], now, number);
  if (!entry) return Reply::make_integer(0);
  if (!entry->hash) return wrong_type();
  int64_t deleted = 0;
  for (size_t i = 2; i < args.size(); ++i) {
    const auto field = entry->fields.find(args[i]);
    if (field == entry->fields.end()) continue;
    entry->fields.erase(field);
    ++deleted;
  }
  if (entry->fields.empty()) drop(args[1]);
  if (deleted != 0) changed(args[1], number, true);
  return Reply::make_integer(deleted);
}

Reply RedisDouble::cmd_del(int number, Request args, TrueTime now) {
  int64_t deleted = 0;
  for (size_t i = 1; i < args.size(); ++i) {
    if (!find_key(args[i], now, number)) continue;
    drop(args[i]);
    changed(args[i], number, true);
    ++deleted;
  }
  return Reply::make_integer(deleted);
}

// A key of another type is as good as none.
Reply RedisDouble::cmd_mget(int number, Request args, TrueTime now) {
  std::vector<Reply> values;
  for (size_t i = 1; i < args.size(); ++i) {
    const Entry* entry = find_key(args[i], now, number);
    values.push_back(entry != nullptr && !entry->hash ? Reply::make_bulk(entry->value) : Reply::make_nil());
  }
  return Reply::make_array(std::move(values));
}

Reply RedisDouble::cmd_exists(int number, Request args, TrueTime now) {
  int64_t found = 0;
  for (size_t i = 1; i < args.size(); ++i) found += find_key(args[i], now, number) ? 1 : 0;
  return Reply::make_integer(found);
}

Reply RedisDouble::cmd_pttl(int number, Request args, TrueTime now) {
  const Entry* entry = find_key(args[1], now, number);
  if (!entry) return Reply::make_integer(-2);
  return Reply::make_integer(entry->when_ms == 0 ? -1 : std::max<int64_t>(0, entry->when_ms - wall.ms(now)));
}

Reply RedisDouble::cmd_pexpire(int number, Request args, TrueTime now) {
  const std::optional<int64_t> ttl = to_int(args[2]);
  bool nx = false, xx = false, gt = false, lt = false;
  for (size_t i = 3; i < args.size(); ++i) {
    const std::string_view option = args[i];
    if (is(option, "NX"))
      nx = true;
    else if (is(option, "XX"))
      xx = true;
    else if (is(option, "GT"))
      gt = true;
    else if (is(option, "LT"))
      lt = true;
    else
      return err("ERR Unsupported option " + std::string(args[i]));
  }
  if (nx && (xx || gt || lt)) return err("ERR NX and XX, GT or LT options at the same time are not compatible");
  if (gt && lt) return err("ERR GT and LT options at the same time are not compatible");
  if (!ttl) return not_an_integer();
  const int64_t wall_now = wall.ms(now);
  if (*ttl > 0 && *ttl > std::numeric_limits<int64_t>::max() - wall_now)
    return err("ERR invalid expire time in 'pexpire' command");
  Entry* entry = find_key(args[1], now, number);
  if (!entry) return Reply::make_integer(0);
  const int64_t when = wall_now + *ttl;
  const int64_t old = entry->when_ms == 0 ? std::numeric_limits<int64_t>::max() : entry->when_ms;
  if ((nx && entry->when_ms != 0) || (xx && entry->when_ms == 0)) return Reply::make_integer(0);
  if ((gt && when <= old) || (lt && when >= old)) return Reply::make_integer(0);
  if (*ttl <= 0)
    drop(args[1]);
  else
    entry->when_ms = when;
  changed(args[1], number, true);
  return Reply::make_integer(1);
}

Reply RedisDouble::cmd_flushall(int number, Request args, TrueTime) {
  const bool valid = args.size() == 1 || (args.size() == 2 && (is(args[1], "SYNC") || is(args[1], "ASYNC")));
  if (!valid) return syntax_error();
  flush_all(number);
  return Reply::ok();
}

}  // namespace redlock::test
