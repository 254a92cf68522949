// SPDX-License-Identifier: MIT
#include "redis_double.hpp"

#include <algorithm>

#include "redis_double_words.hpp"

namespace redlock::test {

using namespace redis_words;

// ---- clock ----------------------------------------------------------------------------------------------------------

int64_t WallClock::ns(TrueTime now) const {
  if (frozen_) return wall_ns_;
  const int64_t elapsed = now - since_;
  return wall_ns_ + elapsed + elapsed / 1'000'000 * rate_ppm_ + elapsed % 1'000'000 * rate_ppm_ / 1'000'000;
}

void WallClock::rebase(TrueTime now) {
  wall_ns_ = ns(now);
  since_ = now;
}

void WallClock::set_rate_ppm(int64_t ppm, TrueTime now) {
  rebase(now);
  rate_ppm_ = ppm;
}

void WallClock::step_ms(int64_t by, TrueTime now) {
  rebase(now);
  wall_ns_ += by * 1'000'000;
}

void WallClock::freeze(TrueTime now) {
  rebase(now);
  frozen_ = true;
}

void WallClock::thaw(TrueTime now) {
  rebase(now);
  frozen_ = false;
}

// ---- replies --------------------------------------------------------------------------------------------------------

Reply Reply::make_status(std::string text) { return Reply{status, std::move(text), 0, {}}; }
Reply Reply::make_error(std::string text) { return Reply{error, std::move(text), 0, {}}; }
Reply Reply::make_integer(int64_t number) { return Reply{integer, {}, number, {}}; }
Reply Reply::make_bulk(std::string_view text) { return Reply{bulk, std::string(text), 0, {}}; }
Reply Reply::make_array(std::vector<Reply> items) { return Reply{array, {}, 0, std::move(items)}; }

void Reply::encode(int resp, std::string& out) const {
  const auto sized = [&out](char mark, size_t size) { append_line(out, mark, static_cast<int64_t>(size)); };
  switch (kind) {
    case status:
      out += '+';
      return append_line(out, text);
    case error:
      out += '-';
      return append_line(out, text);
    case integer:
      return append_line(out, ':', number);
    case nil:
      out += resp == 3 ? "_\r\n" : "$-1\r\n";
      return;
    case verbatim:
      if (resp == 3) {
        sized('=', text.size() + 4);
        out += "txt:";
        return append_line(out, text);
      }
      [[fallthrough]];
    case bulk:
      sized('$', text.size());
      return append_line(out, text);
    case array:
      sized('*', items.size());
      break;
    case map:
      if (resp == 3)
        sized('%', items.size() / 2);
      else
        sized('*', items.size());
      break;
  }
  for (const Reply& item : items) item.encode(resp, out);
}

// ---- connections ----------------------------------------------------------------------------------------------------

RedisDouble::RedisDouble(uint64_t seed, WallClock clock)
    : wall(clock),
      random_(seed * 0x9e3779b97f4a7c15u + 1),
      run_id_(random_id()),
      replid_(random_id()),
      started_wall_ns_(wall.ns(0)) {}

std::string RedisDouble::random_id() {
  static constexpr char digits[] = "0123456789abcdef";
  std::string id;
  while (id.size() < 40) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    id += digits[random_ >> 60];
  }
  return id;
}

int RedisDouble::open(TrueTime) {
  const int number = next_conn_++;
  Connection& conn = conns_[number];
  conn.id = next_id_++;
  conn.authenticated = knobs.password.empty();
  if (knobs.max_clients)
    conn.out = "-ERR max number of clients reached\r\n";
  else if (knobs.denied)
    conn.out = kDenied;
  conn.closing = !conn.out.empty();
  return number;
}

void RedisDouble::close(int conn) {
  conns_.erase(conn);
  for (auto& [key, readers] : trackers_) std::erase(readers, conn);
}

std::string& RedisDouble::out(int conn) {
  const auto found = conns_.find(conn);
  if (found != conns_.end()) return found->second.out;
  static thread_local std::string nothing;
  nothing.clear();
  return nothing;
}

bool RedisDouble::closed_by_server(int conn) const {
  const auto found = conns_.find(conn);
  return found == conns_.end() || found->second.closing;
}

RedisDouble::Garbage RedisDouble::garbage(int conn) const {
  const auto found = conns_.find(conn);
  return found != conns_.end() ? found->second.garbage : Garbage::none;
}

// The words of a request lie where it came in: only what is not complete yet is kept.
void RedisDouble::receive(int number, std::string_view bytes, TrueTime now) {
  const auto found = conns_.find(number);
  if (found == conns_.end() || found->second.closing) return;
  Connection& conn = found->second;
  const bool more = !conn.in.empty();
  if (more) bytes = conn.in += bytes;
  static thread_local std::vector<std::string_view> spare;
  std::vector<std::string_view> words = std::move(spare);
  size_t taken = 0;
  while (!conn.closing && parse(conn, bytes, taken, words) == Parse::complete) {
    if (!words.empty()) answer(number, words, now);
  }
  if (more) {
    conn.in.erase(0, taken);
  } else {
    conn.in = bytes.substr(taken);
  }
  spare = std::move(words);
}

RedisDouble::Parse RedisDouble::broken(Connection& conn, const std::string& what) {
  conn.out += "-ERR Protocol error: " + what + "\r\n";
  conn.closing = true;
  return Parse::broken;
}

// One request off the input. Inline requests are words on a line.
RedisDouble::Parse RedisDouble::parse(Connection& conn, std::string_view bytes, size_t& taken,
                                      std::vector<std::string_view>& words) {
  words.clear();
  const std::string_view in = bytes.substr(taken);
  if (in.empty()) return Parse::need_more;
  if (in[0] == '*') return parse_multibulk(conn, in, taken, words);
  const size_t end = in.find('\n');
  if (end == std::string::npos) return in.size() > 65536 ? broken(conn, "too big inline request") : Parse::need_more;
  constexpr std::string_view blanks = " \r\n";
  for (size_t at = 0; (at = in.find_first_not_of(blanks, at)) < end;) {
    const size_t behind = in.find_first_of(blanks, at);
    words.push_back(in.substr(at, behind - at));
    at = behind;
  }
  taken += end + 1;
  return Parse::complete;
}

RedisDouble::Parse RedisDouble::parse_multibulk(Connection& conn, std::string_view in, size_t& taken,
                                                std::vector<std::string_view>& words) {
  size_t at = 0;
  // The number behind a mark: nothing while its line is incomplete.
  const auto line = [&](std::optional<int64_t>& number) {
    size_t end = at;
    while (end < in.size() && in[end] != '\r') ++end;
    if (end + 1 >= in.size()) return false;
    number = to_int(in.substr(at + 1, end - at - 1));
    at = end + 2;
    return true;
  };
  std::optional<int64_t> count;
  if (!line(count)) return Parse::need_more;
  if (!count || *count > std::numeric_limits<int32_t>::max()) return broken(conn, "invalid multibulk length");
  if (*count > 10 && !conn.authenticated) return broken(conn, "unauthenticated multibulk length");
  for (int64_t i = 0; i < *count; ++i) {
    if (at >= in.size()) return Parse::need_more;
    if (in[at] != '$') return broken(conn, std::string("expected '$', got '") + in[at] + "'");
    std::optional<int64_t> size;
    if (!line(size)) return Parse::need_more;
    if (!size || *size < 0 || *size > 512 * 1024 * 1024) return broken(conn, "invalid bulk length");
    if (*size > 16384 && !conn.authenticated) return broken(conn, "unauthenticated bulk length");
    const size_t length = static_cast<size_t>(*size);
    if (in.size() < at + length + 2) return Parse::need_more;
    words.push_back(in.substr(at, length));
    at += length + 2;
  }
  taken += at;
  return Parse::complete;
}

// ---- commands: may it run? ------------------------------------------------------------------------------------------

constexpr RedisDouble::Command RedisDouble::table[] = {
    {"AUTH", &RedisDouble::cmd_auth, -2, no_auth | always | while_busy},
    {"CLIENT", &RedisDouble::cmd_client, -2, always},
    {"DEL", &RedisDouble::cmd_del, -2, write | keyed},
    {"EVAL", &RedisDouble::cmd_eval, -3, while_stale | scripted},
    {"EVALSHA", &RedisDouble::cmd_eval, -3, while_stale | scripted},
    {"EXISTS", &RedisDouble::cmd_exists, -2, read | keyed | several},
    {"FLUSHALL", &RedisDouble::cmd_flushall, -1, write},
    {"GET", &RedisDouble::cmd_get, 2, read | keyed},
    {"HDEL", &RedisDouble::cmd_hdel, -3, write | keyed},
    {"HELLO", &RedisDouble::cmd_hello, -1, no_auth | always | while_busy},
    {"HGET", &RedisDouble::cmd_hget, 3, read | keyed},
    {"HLEN", &RedisDouble::cmd_hlen, 2, read | keyed},
    {"HMGET", &RedisDouble::cmd_hmget, -3, read | keyed},
    {"HSET", &RedisDouble::cmd_hset, -4, write | deny_oom | keyed},
    {"INFO", &RedisDouble::cmd_info, -1, always},
    {"MGET", &RedisDouble::cmd_mget, -2, read | keyed | several},
    {"PEXPIRE", &RedisDouble::cmd_pexpire, -3, write | keyed},
    {"PING", &RedisDouble::cmd_ping, -1, 0},
    {"PTTL", &RedisDouble::cmd_pttl, 2, read | keyed},
    {"QUIT", &RedisDouble::cmd_quit, -1, no_auth | always | while_busy},
    {"ROLE", &RedisDouble::cmd_role, 1, always},
    {"SCRIPT", &RedisDouble::cmd_script, -2, while_stale | scripted},
    {"SET", &RedisDouble::cmd_set, -3, write | deny_oom | keyed},
    {"TIME", &RedisDouble::cmd_time, 1, always},
};

const RedisDouble::Command* RedisDouble::find(std::string_view name) const {
  static constexpr auto numbers = [] {
    std::array<uint64_t, commands> all = {};
    for (size_t i = 0; i < commands; ++i) all[i] = number_of(table[i].name);
    return all;
  }();
  const auto found = std::find(numbers.begin(), numbers.end(), number_of(name));
  if (found == numbers.end()) return nullptr;
  const Command& command = table[found - numbers.begin()];
  if (command.name.size() != name.size()) return nullptr;
  if (knobs.no_hello && command.run == &RedisDouble::cmd_hello) return nullptr;
  if (knobs.no_scripts && (command.flags & scripted)) return nullptr;
  return &command;
}

Reply RedisDouble::unknown(Request args) const {
  std::string text = "ERR unknown command '" + std::string(args[0].substr(0, 128)) + "', with args beginning with: ";
  for (size_t i = 1; i < args.size() && text.size() < 256; ++i)
    text += "'" + std::string(args[i].substr(0, 128)) + "' ";
  std::replace(text.begin(), text.end(), '\r', ' ');
  std::replace(text.begin(), text.end(), '\n', ' ');
  return err(text);
}

// Reasons not to run a known command, in the order in which Redis looks for them.
std::optional<Reply> RedisDouble::refuse(const Connection& conn, const Command& command, bool in_script) const {
  const bool writes = (command.flags & write) != 0;
  if (!conn.authenticated && !(command.flags & no_auth)) return err("NOAUTH Authentication required.");
  if (!knobs.noperm.empty() && knobs.noperm.count(command.name) != 0 && !(command.flags & no_auth)) {
    if (in_script) return err("ERR The user executing the script can't run this command or subcommand");
    return err("NOPERM this user has no permissions to run the '" + lower(command.name) + "' command");
  }
  if (knobs.cluster && (command.flags & keyed)) return err("CLUSTERDOWN Hash slot not served");
  if (knobs.oom && (command.flags & deny_oom)) return err("OOM command not allowed when used memory > 'maxmemory'.");
  if (!knobs.replica && knobs.misconf && (writes || command.name == "PING")) return err(kMisconf);
  if (!knobs.replica && knobs.noreplicas && writes) return err("NOREPLICAS Not enough good replicas to write.");
  if (knobs.replica && writes) return err("READONLY You can't write against a read only replica.");
  if (knobs.masterdown && !(command.flags & while_stale)) {
    return err(kMasterDown);
  }
  if (knobs.loading && !(command.flags & while_loading)) return err("LOADING Redis is loading the dataset in memory");
  if (knobs.busy && !in_script && !(command.flags & while_busy)) {
    return err("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.");
  }
  return std::nullopt;
}

Reply RedisDouble::execute(int number, Request args, TrueTime now) {
  if (!failures_.empty() && (failures_.front().command.empty() || is(args[0], failures_.front().command))) {
    Reply reply = err(failures_.front().text);
    failures_.pop_front();
    return reply;
  }
  const Command* command = find(args[0]);
  if (!command) return unknown(args);
  const int count = static_cast<int>(args.size());
  if (command->arity > 0 ? count != command->arity : count < -command->arity) {
    return err("ERR wrong number of arguments for '" + lower(args[0]) + "' command");
  }
  Connection& conn = conns_.at(number);
  if (std::optional<Reply> refusal = refuse(conn, *command, false)) return std::move(*refusal);
  Reply reply = run(*command, number, args, now);
  if (tracks(conn, *command)) track(args.subspan(1, command->flags & several ? args.size() - 1 : 1), number);
  return reply;
}

Reply RedisDouble::run(const Command& command, int number, Request args, TrueTime now) {
  ++calls_[static_cast<size_t>(&command - table)];
  return (this->*command.run)(number, args, now);
}

void RedisDouble::answer(int number, Request args, TrueTime now) {
  ++received_;
  const Reply reply = execute(number, args, now);
  if (observer) observer(number, args, reply, now);
  Connection& conn = conns_.at(number);
  if (!garbage_.empty() && (garbage_.front().command.empty() || is(args[0], garbage_.front().command))) {
    conn.out += garbage_.front().text;
    conn.garbage = std::max(conn.garbage, garbage_.front().text.back() == '\n' ? Garbage::whole : Garbage::endless);
    garbage_.pop_front();
  } else {
    reply.encode(conn.resp, conn.out);
  }
  for (const std::string& late : conn.late_pushes) conn.out += late;
  conn.late_pushes.clear();
  if (conn.caching && !is(args[0], "CLIENT")) conn.caching = false;
}

// ---- the world ------------------------------------------------------------------------------------------------------

RedisDouble::Data RedisDouble::saved(TrueTime now) const {
  Data out;
  for (const auto& [key, entry] : keys_) {
    if (!expired(entry, now)) out[key] = entry;
  }
  return out;
}

void RedisDouble::crash(Keep keep, TrueTime now) {
  if (keep == Keep::none) keys_.clear();
  if (keep == Keep::snapshot) keys_ = snapshot_;
  for (auto& [number, conn] : conns_) {
    conn.closing = true;
    conn.tracking = false;
    conn.in.clear();
    conn.out.clear();
  }
  trackers_.clear();
  script_flush();
  failures_.clear();
  garbage_.clear();
  run_id_ = random_id();
  replid_ = random_id();
  next_id_ = 3;
  started_wall_ns_ = wall.ns(now);
}

void RedisDouble::become_replica() { knobs.replica = true; }

void RedisDouble::attach_replica() {
  if (!knobs.backlog) replid_ = random_id();
  knobs.backlog = true;
  ++knobs.replicas;
}

void RedisDouble::take_over_snapshot(Resync how) {
  const auto before = std::exchange(keys_, snapshot_);
  become_replica();
  if (how == Resync::full) {
    trackers_.clear();
    for (auto& [number, conn] : conns_) {
      if (conn.tracking && !conn.closing) push(number, nullptr, false);
    }
    return;
  }
  for (const auto& [key, entry] : before) {
    const auto now = keys_.find(key);
    if (now == keys_.end() || now->second.value != entry.value || now->second.fields != entry.fields) {
      changed(key, -1, false);
    }
  }
  for (const auto& [key, entry] : keys_) {
    if (before.find(key) == before.end()) changed(key, -1, false);
  }
}

void RedisDouble::become_master() {
  knobs.replica = false;
  knobs.masterdown = false;
  replid_ = random_id();
}

void RedisDouble::overflow_trackers() {
  std::vector<std::string> tracked_keys;
  for (const auto& [key, readers] : trackers_) tracked_keys.push_back(key);
  for (const std::string& key : tracked_keys) changed(key, -1, false);
}

std::string RedisDouble::register_script(const std::string& body, Script run) {
  const std::string& sha = sha_of(body);
  script(sha).run = std::move(run);
  return sha;
}

const RedisDouble::Known* RedisDouble::find_script(std::string_view sha) const {
  const auto found = std::find_if(scripts_.begin(), scripts_.end(), [sha](const Known& k) { return k.sha == sha; });
  return found == scripts_.end() ? nullptr : &*found;
}

RedisDouble::Known& RedisDouble::script(std::string_view sha) {
  if (const Known* const known = find_script(sha)) return scripts_[static_cast<size_t>(known - scripts_.data())];
  return scripts_.emplace_back(Known{std::string(sha), nullptr, false});
}

void RedisDouble::script_flush() {
  for (Known& known : scripts_) known.loaded = false;
}

const RedisDouble::Entry* RedisDouble::peek(std::string_view key, TrueTime now) const {
  const auto found = keys_.find(key);
  return found == keys_.end() || expired(found->second, now) ? nullptr : &found->second;
}

std::vector<std::string> RedisDouble::keys(TrueTime now) const {
  std::vector<std::string> names;
  for (const auto& [key, entry] : keys_) {
    if (!expired(entry, now)) names.push_back(key);
  }
  return names;
}

uint64_t RedisDouble::calls(std::string_view command) const {
  const Command* const found = find(command);
  return found == nullptr ? 0 : calls_[static_cast<size_t>(found - table)];
}

}  // namespace redlock::test
