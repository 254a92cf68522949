// SPDX-License-Identifier: MIT
#include "redis_double.hpp"

#include <algorithm>
#include <cctype>
#include <limits>
#include <unordered_map>

#include "sha1.hpp"

namespace redlock::test {

namespace {

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Redis string2ll: no blanks, no plus sign, no leading zero.
std::optional<int64_t> to_int(std::string_view text) {
  const bool negative = !text.empty() && text[0] == '-';
  const std::string_view digits = negative ? text.substr(1) : text;
  if (digits.empty() || digits.size() > 19) return std::nullopt;
  if (digits[0] == '0' && (digits.size() > 1 || negative)) return std::nullopt;
  uint64_t value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<uint64_t>(c - '0');
  }
  const uint64_t limit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) + (negative ? 1 : 0);
  if (value > limit) return std::nullopt;
  return negative ? static_cast<int64_t>(~value + 1) : static_cast<int64_t>(value);
}

Reply err(std::string text) { return Reply::make_error(std::move(text)); }
Reply not_an_integer() { return err("ERR value is not an integer or out of range"); }
Reply syntax_error() { return err("ERR syntax error"); }
Reply wrong_type() { return err("WRONGTYPE Operation against a key holding the wrong kind of value"); }

// The same few texts again and again.
const std::string& sha_of(const std::string& text) {
  static thread_local std::unordered_map<std::string, std::string> known;
  std::string& sha = known[text];
  if (sha.empty()) sha = Sha1::hex(text);
  return sha;
}

constexpr char kNoScript[] = "NOSCRIPT No matching script. Please use EVAL.";
constexpr char kWrongPass[] = "WRONGPASS invalid username-password pair or user is disabled.";
constexpr char kMisconf[] =
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that "
    "may "
    "modify the data set are disabled, because this instance is configured to report errors during writes if RDB "
    "snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB "
    "error.";
constexpr char kMasterDown[] = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";
constexpr char kDenied[] =
    "-DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the "
    "default "
    "user.\r\n";

}  // namespace

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
Reply Reply::make_bulk(std::string text) { return Reply{bulk, std::move(text), 0, {}}; }
Reply Reply::make_array(std::vector<Reply> items) { return Reply{array, {}, 0, std::move(items)}; }

void Reply::encode(int resp, std::string& out) const {
  const auto sized = [&out](char mark, size_t size) { out += mark + std::to_string(size) + "\r\n"; };
  switch (kind) {
    case status:
      out += "+" + text + "\r\n";
      return;
    case error:
      out += "-" + text + "\r\n";
      return;
    case integer:
      out += ":" + std::to_string(number) + "\r\n";
      return;
    case nil:
      out += resp == 3 ? "_\r\n" : "$-1\r\n";
      return;
    case verbatim:
      if (resp == 3) {
        sized('=', text.size() + 4);
        out += "txt:" + text + "\r\n";
        return;
      }
      [[fallthrough]];
    case bulk:
      sized('$', text.size());
      out += text + "\r\n";
      return;
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
  for (auto tracked = trackers_.begin(); tracked != trackers_.end();) {
    tracked->second.erase(conn);
    tracked = tracked->second.empty() ? trackers_.erase(tracked) : std::next(tracked);
  }
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

bool RedisDouble::garbled(int conn) const {
  const auto found = conns_.find(conn);
  return found != conns_.end() && found->second.garbled;
}

void RedisDouble::receive(int number, std::string_view bytes, TrueTime now) {
  const auto found = conns_.find(number);
  if (found == conns_.end() || found->second.closing) return;
  Connection& conn = found->second;
  conn.in += bytes;
  Args args;
  while (!conn.closing) {
    const Parse parsed = parse(conn, args);
    if (parsed != Parse::complete) return;
    if (!args.empty()) answer(number, args, now);
  }
}

RedisDouble::Parse RedisDouble::broken(Connection& conn, const std::string& what) {
  conn.out += "-ERR Protocol error: " + what + "\r\n";
  conn.closing = true;
  return Parse::broken;
}

// One request off the input. Inline requests are words on a line.
RedisDouble::Parse RedisDouble::parse(Connection& conn, Args& args) {
  args.clear();
  if (conn.in.empty()) return Parse::need_more;
  if (conn.in[0] == '*') return parse_multibulk(conn, args);
  const size_t end = conn.in.find('\n');
  if (end == std::string::npos)
    return conn.in.size() > 65536 ? broken(conn, "too big inline request") : Parse::need_more;
  std::string word;
  for (size_t i = 0; i <= end; ++i) {
    const char c = conn.in[i];
    if (c != ' ' && c != '\r' && c != '\n') {
      word += c;
    } else if (!word.empty()) {
      args.push_back(std::move(word));
      word.clear();
    }
  }
  conn.in.erase(0, end + 1);
  return Parse::complete;
}

RedisDouble::Parse RedisDouble::parse_multibulk(Connection& conn, Args& args) {
  const std::string& in = conn.in;
  size_t at = 0;
  // The number behind a mark: nothing while its line is incomplete.
  const auto line = [&](std::optional<int64_t>& number) {
    const size_t end = in.find('\r', at);
    if (end == std::string::npos || end + 1 >= in.size()) return false;
    number = to_int(std::string_view(in).substr(at + 1, end - at - 1));
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
    args.push_back(in.substr(at, length));
    at += length + 2;
  }
  conn.in.erase(0, at);
  return Parse::complete;
}

// ---- commands: may it run? ------------------------------------------------------------------------------------------

const RedisDouble::Command* RedisDouble::find(const std::string& name) const {
  using D = RedisDouble;
  static constexpr unsigned always = while_loading | while_stale;
  static const std::map<std::string, Command> table = {
      {"AUTH", {&D::cmd_auth, -2, no_auth | always | while_busy}},
      {"CLIENT", {&D::cmd_client, -2, always}},
      {"DEL", {&D::cmd_del, -2, write | keyed}},
      {"EVAL", {&D::cmd_eval, -3, while_stale}},
      {"EVALSHA", {&D::cmd_eval, -3, while_stale}},
      {"EXISTS", {&D::cmd_exists, -2, read | keyed}},
      {"FLUSHALL", {&D::cmd_flushall, -1, write}},
      {"GET", {&D::cmd_get, 2, read | keyed}},
      {"HDEL", {&D::cmd_hdel, -3, write | keyed}},
      {"HELLO", {&D::cmd_hello, -1, no_auth | always | while_busy}},
      {"HGET", {&D::cmd_hget, 3, read | keyed}},
      {"HMGET", {&D::cmd_hmget, -3, read | keyed}},
      {"HSET", {&D::cmd_hset, -4, write | deny_oom | keyed}},
      {"INFO", {&D::cmd_info, -1, always}},
      {"MGET", {&D::cmd_mget, -2, read | keyed}},
      {"PEXPIRE", {&D::cmd_pexpire, -3, write | keyed}},
      {"PING", {&D::cmd_ping, -1, 0}},
      {"PTTL", {&D::cmd_pttl, 2, read | keyed}},
      {"QUIT", {&D::cmd_quit, -1, no_auth | always | while_busy}},
      {"ROLE", {&D::cmd_role, 1, always}},
      {"SCRIPT", {&D::cmd_script, -2, while_stale}},
      {"SET", {&D::cmd_set, -3, write | deny_oom | keyed}},
      {"TIME", {&D::cmd_time, 1, always}},
  };
  if (knobs.no_hello && name == "HELLO") return nullptr;
  if (knobs.no_scripts && (name == "EVAL" || name == "EVALSHA" || name == "SCRIPT")) return nullptr;
  const auto found = table.find(name);
  return found == table.end() ? nullptr : &found->second;
}

Reply RedisDouble::unknown(const Args& args) const {
  std::string text = "ERR unknown command '" + args[0].substr(0, 128) + "', with args beginning with: ";
  for (size_t i = 1; i < args.size() && text.size() < 256; ++i) text += "'" + args[i].substr(0, 128) + "' ";
  std::replace(text.begin(), text.end(), '\r', ' ');
  std::replace(text.begin(), text.end(), '\n', ' ');
  return err(text);
}

// Reasons not to run a known command, in the order in which Redis looks for them.
std::optional<Reply> RedisDouble::refuse(const Connection& conn, const Command& command, const std::string& name,
                                         bool in_script) const {
  const bool writes = (command.flags & write) != 0;
  if (!conn.authenticated && !(command.flags & no_auth)) return err("NOAUTH Authentication required.");
  if (knobs.noperm.count(name) != 0 && !(command.flags & no_auth)) {
    if (in_script) return err("ERR The user executing the script can't run this command or subcommand");
    return err("NOPERM this user has no permissions to run the '" + lower(name) + "' command");
  }
  if (knobs.cluster && (command.flags & keyed)) return err("CLUSTERDOWN Hash slot not served");
  if (knobs.oom && (command.flags & deny_oom)) return err("OOM command not allowed when used memory > 'maxmemory'.");
  if (!knobs.replica && knobs.misconf && (writes || name == "PING")) return err(kMisconf);
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

Reply RedisDouble::execute(int number, const Args& args, TrueTime now) {
  const std::string name = upper(args[0]);
  if (!failures_.empty() && (failures_.front().command.empty() || failures_.front().command == name)) {
    Reply reply = err(failures_.front().text);
    failures_.pop_front();
    return reply;
  }
  const Command* command = find(name);
  if (!command) return unknown(args);
  const int count = static_cast<int>(args.size());
  if (command->arity > 0 ? count != command->arity : count < -command->arity) {
    return err("ERR wrong number of arguments for '" + lower(name) + "' command");
  }
  Connection& conn = conns_.at(number);
  if (std::optional<Reply> refusal = refuse(conn, *command, name, false)) return *refusal;
  ++calls_[name];
  Reply reply = (this->*command->run)(number, args, now);
  if ((command->flags & read) && conn.tracking && (!conn.optin || conn.caching) && !(conn.optout && conn.caching)) {
    const size_t keys = name == "EXISTS" || name == "MGET" ? args.size() : 2;
    for (size_t i = 1; i < keys; ++i) trackers_[args[i]].insert(number);
  }
  return reply;
}

void RedisDouble::answer(int number, const Args& args, TrueTime now) {
  ++received_;
  const Reply reply = execute(number, args, now);
  if (observer) observer(number, args, reply, now);
  Connection& conn = conns_.at(number);
  if (!garbage_.empty() && (garbage_.front().command.empty() || garbage_.front().command == upper(args[0]))) {
    conn.out += garbage_.front().text;
    conn.garbled = true;
    garbage_.pop_front();
  } else {
    reply.encode(conn.resp, conn.out);
  }
  for (const std::string& late : conn.late_pushes) conn.out += late;
  conn.late_pushes.clear();
  if (upper(args[0]) != "CLIENT") conn.caching = false;
}

// ---- keys and those who track them ----------------------------------------------------------------------------------

bool RedisDouble::expired(const Entry& entry, TrueTime now) const {
  return entry.when_ms != 0 && wall.ms(now) > entry.when_ms;
}

// A replica does not delete what has expired: it waits for its master to say so.
RedisDouble::Entry* RedisDouble::find_key(const std::string& key, TrueTime now, int conn) {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return nullptr;
  if (!expired(found->second, now)) return &found->second;
  if (knobs.replica) return nullptr;
  keys_.erase(found);
  changed(key, conn, true);
  return nullptr;
}

void RedisDouble::push(int number, const std::string* key, bool after_reply) {
  Connection& conn = conns_.at(number);
  if (conn.resp != 3) return;
  std::string text = ">2\r\n$10\r\ninvalidate\r\n";
  if (key)
    text += "*1\r\n$" + std::to_string(key->size()) + "\r\n" + *key + "\r\n";
  else
    text += "_\r\n";
  if (after_reply) {
    conn.late_pushes.push_back(std::move(text));
  } else {
    conn.out += text;
    pushed_.push_back(number);
  }
}

// Registrations are used up by any change, also by the change that is not told to its author (NOLOOP).
void RedisDouble::changed(const std::string& key, int by_conn, bool executing) {
  const auto found = trackers_.find(key);
  if (found == trackers_.end()) return;
  const std::set<int> readers = std::move(found->second);
  trackers_.erase(found);
  for (const int reader : readers) {
    const auto conn = conns_.find(reader);
    if (conn == conns_.end() || !conn->second.tracking || conn->second.closing) continue;
    if (reader == by_conn && conn->second.noloop) continue;
    push(reader, &key, executing && reader == by_conn);
  }
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
    if (conn.tracking && !conn.closing) push(number, nullptr, number == by_conn);
  }
}

void RedisDouble::evict(const std::string& key) {
  if (keys_.erase(key) != 0) changed(key, -1, false);
}

void RedisDouble::put(const std::string& key, const std::string& value, int64_t ttl_ms, TrueTime now) {
  keys_[key] = Entry{value, ttl_ms == 0 ? 0 : wall.ms(now) + ttl_ms, false, {}};
  changed(key, -1, false);
}

void RedisDouble::put_fields(const std::string& key, std::map<std::string, std::string> fields) {
  keys_[key] = Entry{"", 0, true, std::move(fields)};
  changed(key, -1, false);
}

// ---- the world ------------------------------------------------------------------------------------------------------

void RedisDouble::snapshot(TrueTime now) {
  snapshot_.clear();
  for (const auto& [key, entry] : keys_) {
    if (!expired(entry, now)) snapshot_[key] = entry;
  }
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
  loaded_.clear();
  failures_.clear();
  garbage_.clear();
  run_id_ = random_id();
  replid_ = random_id();
  next_id_ = 3;
  started_wall_ns_ = wall.ns(now);
}

void RedisDouble::become_replica() { knobs.replica = true; }

void RedisDouble::become_master() {
  knobs.replica = false;
  knobs.masterdown = false;
  replid_ = random_id();
}

std::string RedisDouble::register_script(const std::string& body, Script native) {
  const std::string sha = sha_of(body);
  scripts_[sha] = std::move(native);
  return sha;
}

std::optional<RedisDouble::Entry> RedisDouble::peek(const std::string& key, TrueTime now) const {
  const auto found = keys_.find(key);
  if (found == keys_.end() || expired(found->second, now)) return std::nullopt;
  return found->second;
}

std::vector<std::string> RedisDouble::keys(TrueTime now) const {
  std::vector<std::string> names;
  for (const auto& [key, entry] : keys_) {
    if (!expired(entry, now)) names.push_back(key);
  }
  return names;
}

uint64_t RedisDouble::calls(const std::string& command) const {
  const auto found = calls_.find(command);
  return found == calls_.end() ? 0 : found->second;
}

// ---- scripts --------------------------------------------------------------------------------------------------------

Reply ScriptCall::call(Args command) {
  if (error_) return *error_;
  Reply reply = redis_.script_call(*this, command);
  if (reply.is_error()) {
    reply.text += " script: " + sha_ + ", on @user_script:1.";
    error_ = reply;
  }
  return reply;
}

Reply RedisDouble::script_call(ScriptCall& call, const Args& args) {
  const std::string name = upper(args.at(0));
  const Command* command = find(name);
  if (!command) return err("ERR Unknown Redis command called from script");
  if (std::optional<Reply> refusal = refuse(conns_.at(call.conn_), *command, name, true)) return *refusal;
  ++calls_[name];
  Reply reply = (this->*command->run)(call.conn_, args, call.now_);
  // What a script reads is tracked for all the keys it declared, from that read on: a write behind it ends that.
  const Connection& conn = conns_.at(call.conn_);
  if ((command->flags & read) && conn.tracking && (!conn.optin || conn.caching) && !(conn.optout && conn.caching)) {
    for (const std::string& key : call.keys) trackers_[key].insert(call.conn_);
  }
  return reply;
}

Reply RedisDouble::cmd_eval(int number, const Args& args, TrueTime now) {
  const std::optional<int64_t> count = to_int(args[2]);
  if (!count) return not_an_integer();
  if (*count > static_cast<int64_t>(args.size()) - 3)
    return err("ERR Number of keys can't be greater than number of args");
  if (*count < 0) return err("ERR Number of keys can't be negative");
  const bool by_sha = upper(args[0]) == "EVALSHA";
  const std::string sha = by_sha ? lower(args[1]) : sha_of(args[1]);
  if (by_sha && loaded_.count(sha) == 0) return err(kNoScript);
  loaded_.insert(sha);
  if (knobs.masterdown) return err(kMasterDown);
  const auto script = scripts_.find(sha);
  if (script == scripts_.end()) return err("ERR the double was not taught script " + sha);
  if (knobs.cluster && *count > 0) return err("CLUSTERDOWN Hash slot not served");
  ScriptCall call(*this, sha, number, now);
  const auto first_arg = args.begin() + 3 + static_cast<Args::difference_type>(*count);
  call.keys.assign(args.begin() + 3, first_arg);
  call.argv.assign(first_arg, args.end());
  Reply result = script->second(call);
  return call.error_ ? *call.error_ : result;
}

Reply RedisDouble::cmd_script(int, const Args& args, TrueTime) {
  const std::string sub = upper(args[1]);
  if (sub == "LOAD" && args.size() == 3) {
    const std::string sha = sha_of(args[2]);
    loaded_.insert(sha);
    return Reply::make_bulk(sha);
  }
  if (sub == "FLUSH") {
    const bool valid =
        args.size() == 2 || (args.size() == 3 && (upper(args[2]) == "SYNC" || upper(args[2]) == "ASYNC"));
    if (!valid) return err("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
    loaded_.clear();
    return Reply::ok();
  }
  if (sub == "EXISTS" && args.size() > 2) {
    std::vector<Reply> known;
    for (size_t i = 2; i < args.size(); ++i)
      known.push_back(Reply::make_integer(loaded_.count(lower(args[i])) ? 1 : 0));
    return Reply::make_array(std::move(known));
  }
  if (sub == "LOAD" || sub == "EXISTS")
    return err("ERR wrong number of arguments for 'script|" + lower(sub) + "' command");
  return err("ERR unknown subcommand '" + args[1].substr(0, 128) + "'. Try SCRIPT HELP.");
}

// ---- commands on keys -----------------------------------------------------------------------------------------------

Reply RedisDouble::cmd_set(int number, const Args& args, TrueTime now) {
  bool nx = false, xx = false, keep = false;
  const std::string* expiry = nullptr;
  int64_t unit = 1;
  for (size_t i = 3; i < args.size(); ++i) {
    const std::string option = upper(args[i]);
    const bool has_value = i + 1 < args.size();
    if (option == "NX" && !xx)
      nx = true;
    else if (option == "XX" && !nx)
      xx = true;
    else if (option == "KEEPTTL" && !expiry)
      keep = true;
    else if ((option == "PX" || option == "EX") && !expiry && !keep && has_value) {
      unit = option == "EX" ? 1000 : 1;
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
  keys_[args[1]] = Entry{args[2], when, false, {}};
  changed(args[1], number, true);
  return Reply::ok();
}

Reply RedisDouble::cmd_get(int number, const Args& args, TrueTime now) {
  const Entry* entry = find_key(args[1], now, number);
  if (!entry) return Reply::make_nil();
  return entry->hash ? wrong_type() : Reply::make_bulk(entry->value);
}

Reply RedisDouble::cmd_hset(int number, const Args& args, TrueTime now) {
  if (args.size() % 2 != 0) return err("ERR wrong number of arguments for 'hset' command");
  Entry* entry = find_key(args[1], now, number);
  if (entry && !entry->hash) return wrong_type();
  if (!entry) {
    entry = &keys_[args[1]];
    *entry = Entry{"", 0, true, {}};
  }
  int64_t added = 0;
  for (size_t i = 2; i < args.size(); i += 2) {
    added += entry->fields.count(args[i]) == 0;
    entry->fields[args[i]] = args[i + 1];
  }
  changed(args[1], number, true);
  return Reply::make_integer(added);
}

Reply RedisDouble::cmd_hget(int number, const Args& args, TrueTime now) {
  const Reply all = cmd_hmget(number, args, now);
  return all.is_error() ? all : all.items[0];
}

Reply RedisDouble::cmd_hmget(int number, const Args& args, TrueTime now) {
  const Entry* entry = find_key(args[1], now, number);
  if (entry && !entry->hash) return wrong_type();
  std::vector<Reply> values;
  for (size_t i = 2; i < args.size(); ++i) {
    const bool present = entry && entry->fields.count(args[i]) != 0;
    values.push_back(present ? Reply::make_bulk(entry->fields.at(args[i])) : Reply::make_nil());
  }
  return Reply::make_array(std::move(values));
}

Reply RedisDouble::cmd_hdel(int number, const Args& args, TrueTime now) {
  Entry* entry = find_key(args[1], now, number);
  if (!entry) return Reply::make_integer(0);
  if (!entry->hash) return wrong_type();
  int64_t deleted = 0;
  for (size_t i = 2; i < args.size(); ++i) deleted += static_cast<int64_t>(entry->fields.erase(args[i]));
  if (entry->fields.empty()) keys_.erase(args[1]);
  if (deleted != 0) changed(args[1], number, true);
  return Reply::make_integer(deleted);
}

Reply RedisDouble::cmd_del(int number, const Args& args, TrueTime now) {
  int64_t deleted = 0;
  for (size_t i = 1; i < args.size(); ++i) {
    if (!find_key(args[i], now, number)) continue;
    keys_.erase(args[i]);
    changed(args[i], number, true);
    ++deleted;
  }
  return Reply::make_integer(deleted);
}

// A key of another type is as good as none.
Reply RedisDouble::cmd_mget(int number, const Args& args, TrueTime now) {
  std::vector<Reply> values;
  for (size_t i = 1; i < args.size(); ++i) {
    const Entry* entry = find_key(args[i], now, number);
    values.push_back(entry != nullptr && !entry->hash ? Reply::make_bulk(entry->value) : Reply::make_nil());
  }
  return Reply::make_array(std::move(values));
}

Reply RedisDouble::cmd_exists(int number, const Args& args, TrueTime now) {
  int64_t found = 0;
  for (size_t i = 1; i < args.size(); ++i) found += find_key(args[i], now, number) ? 1 : 0;
  return Reply::make_integer(found);
}

Reply RedisDouble::cmd_pttl(int number, const Args& args, TrueTime now) {
  const Entry* entry = find_key(args[1], now, number);
  if (!entry) return Reply::make_integer(-2);
  return Reply::make_integer(entry->when_ms == 0 ? -1 : std::max<int64_t>(0, entry->when_ms - wall.ms(now)));
}

Reply RedisDouble::cmd_pexpire(int number, const Args& args, TrueTime now) {
  const std::optional<int64_t> ttl = to_int(args[2]);
  bool nx = false, xx = false, gt = false, lt = false;
  for (size_t i = 3; i < args.size(); ++i) {
    const std::string option = upper(args[i]);
    if (option == "NX")
      nx = true;
    else if (option == "XX")
      xx = true;
    else if (option == "GT")
      gt = true;
    else if (option == "LT")
      lt = true;
    else
      return err("ERR Unsupported option " + args[i]);
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
    keys_.erase(args[1]);
  else
    entry->when_ms = when;
  changed(args[1], number, true);
  return Reply::make_integer(1);
}

Reply RedisDouble::cmd_flushall(int number, const Args& args, TrueTime) {
  const bool valid = args.size() == 1 || (args.size() == 2 && (upper(args[1]) == "SYNC" || upper(args[1]) == "ASYNC"));
  if (!valid) return syntax_error();
  flush_all(number);
  return Reply::ok();
}

// ---- commands on the connection -------------------------------------------------------------------------------------

std::optional<Reply> RedisDouble::authenticate(Connection& conn, const std::string& user, const std::string& password) {
  const bool open_user = knobs.password.empty() && user == "default";
  if (!open_user && (user != knobs.user || password != knobs.password)) return err(kWrongPass);
  conn.authenticated = true;
  return std::nullopt;
}

Reply RedisDouble::cmd_auth(int number, const Args& args, TrueTime) {
  if (args.size() > 3) return syntax_error();
  if (args.size() == 2 && knobs.password.empty()) {
    return err(
        "ERR AUTH <password> called without any password configured for the default user. "
        "Are you sure your configuration is correct?");
  }
  const std::string user = args.size() == 3 ? args[1] : "default";
  const std::optional<Reply> refused = authenticate(conns_.at(number), user, args.back());
  return refused ? *refused : Reply::ok();
}

Reply RedisDouble::hello_text(const Connection& conn) const {
  const auto text = [](std::string t) { return Reply::make_bulk(std::move(t)); };
  std::vector<Reply> modules;
  if (knobs.nested_modules) {
    modules.push_back(Reply{Reply::map,
                            {},
                            0,
                            {text("name"), text("lua"), text("ver"), Reply::make_integer(1), text("path"), text(""),
                             text("args"), Reply::make_array({text("a"), text("b")})}});
  }
  return Reply{Reply::map,
               {},
               0,
               {text("server"), text("redis"), text("version"), text(knobs.version), text("proto"),
                Reply::make_integer(conn.resp), text("id"), Reply::make_integer(conn.id), text("mode"),
                text(knobs.cluster ? "cluster" : "standalone"), text("role"),
                text(knobs.replica ? "replica" : "master"), text("modules"), Reply::make_array(std::move(modules))}};
}

Reply RedisDouble::cmd_hello(int number, const Args& args, TrueTime) {
  Connection& conn = conns_.at(number);
  int64_t version = conn.resp;
  if (args.size() > 1) {
    const std::optional<int64_t> asked = to_int(args[1]);
    if (!asked) return err("ERR Protocol version is not an integer or out of range");
    if (*asked < 2 || *asked > 3) return err("NOPROTO unsupported protocol version");
    version = *asked;
  }
  const std::string* name = nullptr;
  for (size_t i = 2; i < args.size(); ++i) {
    const std::string option = upper(args[i]);
    if (option == "AUTH" && i + 2 < args.size()) {
      if (std::optional<Reply> refused = authenticate(conn, args[i + 1], args[i + 2])) return *refused;
      i += 2;
    } else if (option == "SETNAME" && i + 1 < args.size()) {
      name = &args[++i];
    } else {
      return err("ERR Syntax error in HELLO option '" + args[i] + "'");
    }
  }
  if (!conn.authenticated) {
    return err(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> "
        "option can be used to authenticate the client and select the RESP protocol version at the same time");
  }
  if (name) conn.name = *name;
  conn.resp = static_cast<int>(version);
  return hello_text(conn);
}

Reply RedisDouble::cmd_client_tracking(Connection& conn, const Args& args) {
  if (args.size() < 3) return err("ERR wrong number of arguments for 'client|tracking' command");
  bool optin = false, optout = false, noloop = false;
  for (size_t i = 3; i < args.size(); ++i) {
    const std::string option = upper(args[i]);
    if (option == "OPTIN")
      optin = true;
    else if (option == "OPTOUT")
      optout = true;
    else if (option == "NOLOOP")
      noloop = true;
    else
      return syntax_error();
  }
  const std::string mode = upper(args[2]);
  if (mode != "ON" && mode != "OFF") return syntax_error();
  if (optin && optout) return err("ERR You can't specify both OPTIN mode and OPTOUT mode");
  conn.tracking = mode == "ON";
  conn.optin = conn.tracking && optin;
  conn.optout = conn.tracking && optout;
  conn.noloop = conn.tracking && noloop;
  return Reply::ok();
}

Reply RedisDouble::cmd_client_caching(Connection& conn, const Args& args) {
  if (args.size() != 3) return err("ERR wrong number of arguments for 'client|caching' command");
  if (!conn.tracking) {
    return err(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled");
  }
  const std::string mode = upper(args[2]);
  if (mode != "YES" && mode != "NO") return syntax_error();
  if (mode == "YES" && !conn.optin) {
    return err("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.");
  }
  if (mode == "NO" && !conn.optout) {
    return err("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.");
  }
  conn.caching = true;
  return Reply::ok();
}

Reply RedisDouble::cmd_client(int number, const Args& args, TrueTime) {
  Connection& conn = conns_.at(number);
  const std::string sub = upper(args[1]);
  if (sub == "TRACKING" && !knobs.no_tracking && !knobs.no_hello) return cmd_client_tracking(conn, args);
  if (sub == "CACHING" && !knobs.no_tracking && !knobs.no_hello) return cmd_client_caching(conn, args);
  if (sub == "ID" && args.size() == 2) return Reply::make_integer(conn.id);
  if (sub == "GETNAME" && args.size() == 2) return conn.name.empty() ? Reply::make_nil() : Reply::make_bulk(conn.name);
  if (sub == "SETINFO" && knobs.setinfo && args.size() == 4) return Reply::ok();
  if (sub == "SETNAME" && args.size() == 3) {
    for (const char c : args[2]) {
      if (c < '!' || c > '~') return err("ERR Client names cannot contain spaces, newlines or special characters.");
    }
    conn.name = args[2];
    return Reply::ok();
  }
  if (sub == "ID" || sub == "GETNAME" || sub == "SETNAME" || (sub == "SETINFO" && knobs.setinfo)) {
    return err("ERR wrong number of arguments for 'client|" + lower(sub) + "' command");
  }
  return err("ERR unknown subcommand '" + args[1].substr(0, 128) + "'. Try CLIENT HELP.");
}

Reply RedisDouble::cmd_ping(int, const Args& args, TrueTime) {
  if (args.size() > 2) return err("ERR wrong number of arguments for 'ping' command");
  return args.size() == 2 ? Reply::make_bulk(args[1]) : Reply::make_status("PONG");
}

Reply RedisDouble::cmd_quit(int number, const Args&, TrueTime) {
  conns_.at(number).closing = true;
  return Reply::ok();
}

Reply RedisDouble::cmd_role(int, const Args&, TrueTime) {
  if (!knobs.replica)
    return Reply::make_array({Reply::make_bulk("master"), Reply::make_integer(0), Reply::make_array({})});
  return Reply::make_array({Reply::make_bulk("slave"), Reply::make_bulk("127.0.0.1"), Reply::make_integer(1),
                            Reply::make_bulk("connect"), Reply::make_integer(-1)});
}

Reply RedisDouble::cmd_time(int, const Args&, TrueTime now) {
  const int64_t micros = wall.ns(now) / 1'000;
  return Reply::make_array(
      {Reply::make_bulk(std::to_string(micros / 1'000'000)), Reply::make_bulk(std::to_string(micros % 1'000'000))});
}

std::string RedisDouble::info_section(const std::string& section, TrueTime now) const {
  const auto number = [](int64_t n) { return std::to_string(n); };
  if (section == "server") {
    const int64_t uptime = (wall.ns(now) - started_wall_ns_) / 1'000'000'000;
    return "# Server\r\nredis_version:" + knobs.version +
           "\r\nredis_mode:" + (knobs.cluster ? "cluster" : "standalone") +
           "\r\nos:Linux\r\narch_bits:64\r\nprocess_id:1\r\nrun_id:" + run_id_ +
           "\r\ntcp_port:6379\r\nserver_time_usec:" + number(wall.ns(now) / 1'000) +
           "\r\nuptime_in_seconds:" + number(uptime) + "\r\nhz:10\r\n";
  }
  if (section == "replication") {
    return std::string("# Replication\r\nrole:") + (knobs.replica ? "slave" : "master") +
           "\r\nconnected_slaves:0\r\nmaster_failover_state:no-failover\r\nmaster_replid:" + replid_ +
           "\r\nmaster_replid2:" + std::string(40, '0') + "\r\nmaster_repl_offset:0\r\nsecond_repl_offset:-1\r\n";
  }
  if (section == "memory") {
    return "# Memory\r\nused_memory:" + number(1'000'000 + static_cast<int64_t>(keys_.size()) * 100) +
           "\r\nmaxmemory:" + number(knobs.maxmemory) + "\r\nmaxmemory_policy:" + knobs.maxmemory_policy + "\r\n";
  }
  if (section == "persistence") {
    return std::string("# Persistence\r\nloading:") + (knobs.loading ? "1" : "0") +
           "\r\nasync_loading:0\r\nrdb_last_bgsave_status:" + (knobs.misconf ? "err" : "ok") +
           "\r\naof_enabled:0\r\naof_last_write_status:ok\r\n";
  }
  if (section == "stats") {
    return "# Stats\r\ntotal_commands_processed:" + number(static_cast<int64_t>(received_)) + "\r\nevicted_keys:0\r\n";
  }
  return "";
}

Reply RedisDouble::cmd_info(int, const Args& args, TrueTime now) {
  static constexpr const char* sections[] = {"server", "memory", "persistence", "stats", "replication"};
  std::string text;
  for (const char* section : sections) {
    const bool wanted =
        args.size() == 1 || std::any_of(args.begin() + 1, args.end(), [section](const std::string& arg) {
          const std::string asked = lower(arg);
          return asked == section || asked == "all" || asked == "default" || asked == "everything";
        });
    if (!wanted) continue;
    if (!text.empty()) text += "\r\n";
    text += info_section(section, now);
  }
  return Reply{Reply::verbatim, text, 0, {}};
}

}  // namespace redlock::test
