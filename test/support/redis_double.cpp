// SPDX-License-Identifier: MIT
#include "redis_double.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <unordered_map>

#include "sha1.hpp"

namespace redlock::test {

namespace {

constexpr char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }

std::string lower(std::string_view text) {
  std::string small(text);
  for (char& c : small) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return small;
}

// Is the text this word, which is given in capitals?
bool is(std::string_view text, std::string_view word) {
  if (text.size() != word.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (upper(text[i]) != word[i]) return false;
  }
  return true;
}

// The name of a command as a number: none that the double knows is longer. 0: too long.
constexpr uint64_t number_of(std::string_view name) {
  if (name.size() > 8) return 0;
  uint64_t number = 0;
  for (const char c : name) number = number << 8 | static_cast<unsigned char>(upper(c));
  return number;
}

void append(std::string& out, int64_t number) {
  char digits[20];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

void append_line(std::string& out, char mark, int64_t number) {
  out += mark;
  append(out, number);
  out.append("\r\n", 2);
}

void append_line(std::string& out, std::string_view text) { out.append(text).append("\r\n", 2); }

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
const std::string& sha_of(std::string_view text) {
  static thread_local std::unordered_map<std::string, std::string> known;
  std::string& sha = known[std::string(text)];
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
    "default user. In this mode connections are only accepted from the loopback interface. If you want to connect from "
    "external computers to Redis you may adopt one of the following solutions: 1) Just disable protected mode sending "
    "the command 'CONFIG SET protected-mode no' from the loopback interface by connecting to Redis from the same host "
    "the server is running, however MAKE SURE Redis is not publicly accessible from internet if you do so. Use CONFIG "
    "REWRITE to make this change permanent. 2) Alternatively you can just disable the protected mode by editing the "
    "Redis configuration file, and setting the protected mode option to 'no', and then restarting the server. 3) If "
    "you started the server manually just for testing, restart it with the '--protected-mode no' option. 4) Set up an "
    "authentication password for the default user. NOTE: You only need to do one of the above things in order for the "
    "server to start accepting connections from the outside.\r\n";

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
  if (knobs.hangs_up) {
    conn.closing = true;
    return;
  }
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

std::string RedisDouble::register_script(const std::string& body, Script native) {
  const std::string& sha = sha_of(body);
  script(sha).native = std::move(native);
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

// ---- scripts --------------------------------------------------------------------------------------------------------

Reply ScriptCall::run(Request command) {
  if (error_) return *error_;
  Reply reply = redis_.script_call(*this, command);
  if (reply.is_error()) {
    if (redis_.knobs.script_errors) {
      const bool failed = reply.text.starts_with("WRONGTYPE "), word = !reply.text.starts_with("ERR ");
      const std::string said = word ? "-" + reply.text : reply.text.substr(4);
      reply.text = "ERR Error running script (call to f_" + std::string(sha_) +
                   "): @user_script:1: " + (failed ? reply.text : "@user_script: 1: " + said);
    } else {
      reply.text.append(" script: ").append(sha_).append(", on @user_script:1.");
    }
    error_ = reply;
  }
  return reply;
}

// INFO is a string in Lua, whatever the connection speaks.
Reply ScriptCall::pcall(std::initializer_list<std::string_view> command) {
  if (error_) return *error_;
  Reply reply = redis_.script_call(*this, Request(command.begin(), command.size()));
  if (reply.kind == Reply::verbatim) reply.kind = Reply::bulk;
  return reply;
}

Reply ScriptCall::call(const Args& command) {
  const std::vector<std::string_view> words(command.begin(), command.end());
  return run(words);
}

Reply RedisDouble::script_call(ScriptCall& call, Request args) {
  const Command* command = find(args[0]);
  if (!command) return err("ERR Unknown Redis command called from script");
  const Connection& conn = conns_.at(call.conn_);
  if (std::optional<Reply> refusal = refuse(conn, *command, true)) return std::move(*refusal);
  Reply reply = run(*command, call.conn_, args, call.now_);
  // What a script reads is tracked for all the keys it declared, from that read on: a write behind it ends that.
  if (tracks(conn, *command)) track(call.keys, call.conn_);
  return reply;
}

Reply RedisDouble::cmd_eval(int number, Request args, TrueTime now) {
  const std::optional<int64_t> count = to_int(args[2]);
  if (!count) return not_an_integer();
  if (*count > static_cast<int64_t>(args.size()) - 3)
    return err("ERR Number of keys can't be greater than number of args");
  if (*count < 0) return err("ERR Number of keys can't be negative");
  const bool by_sha = is(args[0], "EVALSHA");
  const Known* known = find_script(by_sha ? args[1] : sha_of(args[1]));
  if (by_sha && known == nullptr) known = find_script(lower(args[1]));
  if (by_sha && (known == nullptr || !known->loaded)) return err(kNoScript);
  if (!by_sha) {
    Known& taught = script(sha_of(args[1]));
    taught.loaded = true;
    known = &taught;
  }
  if (knobs.masterdown) return err(kMasterDown);
  if (!known->native) return err("ERR the double was not taught script " + known->sha);
  if (knobs.cluster && *count > 0) return err("CLUSTERDOWN Hash slot not served");
  ScriptCall call(*this, known->sha, number, now);
  const auto first_arg = args.begin() + 3 + static_cast<std::ptrdiff_t>(*count);
  call.keys.assign(args.begin() + 3, first_arg);
  call.argv.assign(first_arg, args.end());
  in_script_ = true;
  Reply result = known->native(call);
  in_script_ = false;
  return call.error_ ? *call.error_ : result;
}

Reply RedisDouble::cmd_script(int, Request args, TrueTime) {
  const std::string_view sub = args[1];
  if (is(sub, "LOAD") && args.size() == 3) {
    const std::string& sha = sha_of(args[2]);
    script(sha).loaded = true;
    return Reply::make_bulk(sha);
  }
  if (is(sub, "FLUSH")) {
    const bool valid = args.size() == 2 || (args.size() == 3 && (is(args[2], "SYNC") || is(args[2], "ASYNC")));
    if (!valid) return err("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
    script_flush();
    return Reply::ok();
  }
  if (is(sub, "EXISTS") && args.size() > 2) {
    std::vector<Reply> known;
    for (size_t i = 2; i < args.size(); ++i) known.push_back(Reply::make_integer(loaded(lower(args[i])) ? 1 : 0));
    return Reply::make_array(std::move(known));
  }
  if (is(sub, "LOAD") || is(sub, "EXISTS"))
    return err("ERR wrong number of arguments for 'script|" + lower(sub) + "' command");
  return err("ERR unknown subcommand '" + std::string(args[1].substr(0, 128)) + "'. Try SCRIPT HELP.");
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

// ---- commands on the connection -------------------------------------------------------------------------------------

std::optional<Reply> RedisDouble::authenticate(Connection& conn, std::string_view user, std::string_view password) {
  const bool open_user = knobs.password.empty() && user == "default";
  if (!open_user && (user != knobs.user || password != knobs.password)) return err(kWrongPass);
  conn.authenticated = true;
  return std::nullopt;
}

Reply RedisDouble::cmd_auth(int number, Request args, TrueTime) {
  if (args.size() > 3) return syntax_error();
  if (args.size() == 2 && knobs.password.empty()) {
    return err(
        "ERR AUTH <password> called without any password configured for the default user. "
        "Are you sure your configuration is correct?");
  }
  const std::string_view user = args.size() == 3 ? args[1] : "default";
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

Reply RedisDouble::cmd_hello(int number, Request args, TrueTime) {
  Connection& conn = conns_.at(number);
  int64_t version = conn.resp;
  if (args.size() > 1) {
    const std::optional<int64_t> asked = to_int(args[1]);
    if (!asked) return err("ERR Protocol version is not an integer or out of range");
    if (*asked < 2 || *asked > 3) return err("NOPROTO unsupported protocol version");
    version = *asked;
  }
  const std::string_view* name = nullptr;
  for (size_t i = 2; i < args.size(); ++i) {
    const std::string_view option = args[i];
    if (is(option, "AUTH") && i + 2 < args.size()) {
      if (std::optional<Reply> refused = authenticate(conn, args[i + 1], args[i + 2])) return *refused;
      i += 2;
    } else if (is(option, "SETNAME") && i + 1 < args.size()) {
      name = &args[++i];
    } else {
      return err("ERR Syntax error in HELLO option '" + std::string(args[i]) + "'");
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

Reply RedisDouble::cmd_client_tracking(Connection& conn, Request args) {
  if (args.size() < 3) return err("ERR wrong number of arguments for 'client|tracking' command");
  bool optin = false, optout = false, noloop = false;
  for (size_t i = 3; i < args.size(); ++i) {
    const std::string_view option = args[i];
    if (is(option, "OPTIN"))
      optin = true;
    else if (is(option, "OPTOUT"))
      optout = true;
    else if (is(option, "NOLOOP"))
      noloop = true;
    else
      return syntax_error();
  }
  const std::string_view mode = args[2];
  if (!is(mode, "ON") && !is(mode, "OFF")) return syntax_error();
  if (optin && optout) return err("ERR You can't specify both OPTIN mode and OPTOUT mode");
  conn.tracking = is(mode, "ON");
  conn.optin = conn.tracking && optin;
  conn.optout = conn.tracking && optout;
  conn.noloop = conn.tracking && noloop;
  return Reply::ok();
}

Reply RedisDouble::cmd_client_caching(Connection& conn, Request args) {
  if (args.size() != 3) return err("ERR wrong number of arguments for 'client|caching' command");
  if (!conn.tracking) {
    return err(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled");
  }
  const std::string_view mode = args[2];
  if (!is(mode, "YES") && !is(mode, "NO")) return syntax_error();
  if (is(mode, "YES") && !conn.optin) {
    return err("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.");
  }
  if (is(mode, "NO") && !conn.optout) {
    return err("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.");
  }
  conn.caching = true;
  return Reply::ok();
}

// Only as the library says it. What the killed connection has sent and nobody has read yet is never executed.
Reply RedisDouble::cmd_client_kill(const Connection& by, Request args) {
  if (knobs.noperm.count("CLIENT|KILL") != 0) {
    return err("NOPERM this user has no permissions to run the 'client|kill' command");
  }
  if (args.size() < 3) return err("ERR wrong number of arguments for 'client|kill' command");
  if (args.size() == 3) return err("ERR No such client");  // by its address
  const std::optional<int64_t> id = args.size() == 4 && is(args[2], "ID") ? to_int(args[3]) : std::nullopt;
  if (!id || *id <= 0) return err("ERR client-id should be greater than 0");
  for (auto& [number, conn] : conns_) {
    if (conn.id != *id || conn.closing || &conn == &by) continue;
    conn.closing = true;
    conn.in.clear();
    return Reply::make_integer(1);
  }
  return Reply::make_integer(0);
}

Reply RedisDouble::cmd_client(int number, Request args, TrueTime) {
  Connection& conn = conns_.at(number);
  const std::string_view sub = args[1];
  if (is(sub, "TRACKING") && !knobs.no_tracking && !knobs.no_hello) return cmd_client_tracking(conn, args);
  if (is(sub, "CACHING") && !knobs.no_tracking && !knobs.no_hello) return cmd_client_caching(conn, args);
  if (is(sub, "ID") && args.size() == 2) return Reply::make_integer(conn.id);
  if (is(sub, "KILL")) return cmd_client_kill(conn, args);
  if (is(sub, "GETNAME") && args.size() == 2)
    return conn.name.empty() ? Reply::make_nil() : Reply::make_bulk(conn.name);
  if (is(sub, "SETINFO") && knobs.setinfo && args.size() == 4) return Reply::ok();
  if (is(sub, "SETNAME") && args.size() == 3) {
    for (const char c : args[2]) {
      if (c < '!' || c > '~') return err("ERR Client names cannot contain spaces, newlines or special characters.");
    }
    conn.name = args[2];
    return Reply::ok();
  }
  if (is(sub, "ID") || is(sub, "GETNAME") || is(sub, "SETNAME") || (is(sub, "SETINFO") && knobs.setinfo)) {
    return err("ERR wrong number of arguments for 'client|" + lower(sub) + "' command");
  }
  return err("ERR unknown subcommand '" + std::string(args[1].substr(0, 128)) + "'. Try CLIENT HELP.");
}

Reply RedisDouble::cmd_ping(int, Request args, TrueTime) {
  if (args.size() > 2) return err("ERR wrong number of arguments for 'ping' command");
  return args.size() == 2 ? Reply::make_bulk(args[1]) : Reply::make_status("PONG");
}

Reply RedisDouble::cmd_quit(int number, Request, TrueTime) {
  conns_.at(number).closing = true;
  return Reply::ok();
}

Reply RedisDouble::cmd_role(int, Request, TrueTime) {
  if (!knobs.replica)
    return Reply::make_array({Reply::make_bulk("master"), Reply::make_integer(0), Reply::make_array({})});
  return Reply::make_array({Reply::make_bulk("slave"), Reply::make_bulk("127.0.0.1"), Reply::make_integer(1),
                            Reply::make_bulk("connect"), Reply::make_integer(-1)});
}

Reply RedisDouble::cmd_time(int, Request, TrueTime now) {
  const int64_t micros = wall.ns(now) / 1'000;
  return Reply::make_array(
      {Reply::make_bulk(std::to_string(micros / 1'000'000)), Reply::make_bulk(std::to_string(micros % 1'000'000))});
}

std::string RedisDouble::info_section(std::string_view section, TrueTime now) const {
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
           "\r\nconnected_slaves:" + number(knobs.replicas) +
           "\r\nmaster_failover_state:no-failover\r\nmaster_replid:" + replid_ +
           "\r\nmaster_replid2:" + std::string(40, '0') + "\r\nmaster_repl_offset:0\r\nsecond_repl_offset:-1" +
           "\r\nrepl_backlog_active:" + (knobs.backlog || knobs.replicas != 0 ? "1" : "0") + "\r\n";
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

Reply RedisDouble::cmd_info(int, Request args, TrueTime now) {
  static constexpr const char* sections[] = {"server", "memory", "persistence", "stats", "replication"};
  std::string text;
  for (const char* section : sections) {
    const bool wanted = args.size() == 1 || std::any_of(args.begin() + 1, args.end(), [section](std::string_view arg) {
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
