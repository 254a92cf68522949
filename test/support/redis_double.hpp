// SPDX-License-Identifier: MIT
//
// RedisDouble: one Redis master that speaks bytes and does nothing by itself. No socket, no thread, no clock: whoever
// drives it (a scenario, the simulator, a fuzzer) hands it the bytes that arrive and the true time, and takes the bytes
// it answers. The double turns true time into its own wall clock, which may run fast or slow, jump or stand still, and
// expires keys by it as Redis does: a key is gone when now_ms > when_ms. Everything it answers is compared byte for
// byte with a real server in test/integration/test_redis_double_conformance.cpp, so that what the library survives
// here is what it would meet there.
//
// Scripts are known by their text: register_script() names the text and the function that runs the script. That
// function is the Lua interpreter of lua_scripts.hpp, but where a test wants another answer. It reaches the keys
// through ScriptCall::call(), which obeys role, memory and permissions as redis.call() does.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::test {

using TrueTime = int64_t;  // nanoseconds of simulated real time
using Args = std::vector<std::string>;
using Request = std::span<const std::string_view>;  // the words of a command, which lie where it came in

// A master's wall clock as a function of true time: steps, a rate error, or no progress at all.
class WallClock {
 public:
  explicit WallClock(int64_t ms_at_zero = 1'700'000'000'000) : wall_ns_(ms_at_zero * 1'000'000) {}
  int64_t ns(TrueTime now) const;
  int64_t ms(TrueTime now) const { return ns(now) / 1'000'000; }
  void set_rate_ppm(int64_t ppm, TrueTime now);  // +5000: half a percent fast, from now on
  void step_ms(int64_t by, TrueTime now);
  void freeze(TrueTime now);
  void thaw(TrueTime now);  // goes on from where it stood
  bool frozen() const { return frozen_; }

 private:
  void rebase(TrueTime now);
  int64_t wall_ns_;
  TrueTime since_ = 0;
  int64_t rate_ppm_ = 0;
  bool frozen_ = false;
};

struct Reply {
  enum Kind { status, error, integer, bulk, verbatim, nil, array, map };
  Kind kind = nil;
  std::string text;
  int64_t number = 0;
  std::vector<Reply> items;  // of a map: key, value, key, value

  static Reply ok() { return make_status("OK"); }
  static Reply make_status(std::string text);
  static Reply make_error(std::string text);  // without the '-'
  static Reply make_integer(int64_t number);
  static Reply make_bulk(std::string_view text);
  static Reply make_nil() { return {}; }
  static Reply make_array(std::vector<Reply> items);
  bool is_error() const { return kind == error; }
  void encode(int resp, std::string& out) const;
};

class RedisDouble;

// What runs a script sees this of the call.
class ScriptCall {
 public:
  Args keys;
  Args argv;
  // A command, as the script wants it executed. Whether an error ends the script is for the script to say.
  Reply call(Request command);
  // The answer of a script that this error has ended.
  Reply ended_by(const std::string& error) const;

 private:
  friend class RedisDouble;
  ScriptCall(RedisDouble& redis, std::string_view sha, int conn, TrueTime now)
      : redis_(redis), sha_(sha), conn_(conn), now_(now) {}
  RedisDouble& redis_;
  std::string_view sha_;
  int conn_;
  TrueTime now_;
};

class RedisDouble {
 public:
  using Script = std::function<Reply(ScriptCall&)>;

  using Fields = std::map<std::string, std::string, std::less<>>;
  struct Entry {
    std::string value;
    int64_t when_ms = 0;  // by the double's wall clock; 0: never expires
    bool hash = false;    // a key of another type
    Fields fields;        // of a hash
  };

  // What may be wrong with a master; all of it can be changed at any moment.
  struct Knobs {
    bool replica = false;
    bool loading = false;
    bool oom = false;            // at maxmemory, noeviction
    bool misconf = false;        // cannot save and refuses writes
    bool noreplicas = false;     // min-replicas-to-write is not met
    bool masterdown = false;     // a replica that may not serve stale data
    bool busy = false;           // somebody's long script runs
    bool cluster = false;        // HELLO says cluster, keys answer CLUSTERDOWN
    bool max_clients = false;    // new connections get an error and are closed
    bool denied = false;         // protected mode: same
    bool no_hello = false;       // a server older than 6.0: no HELLO, no tracking
    bool no_tracking = false;    // CLIENT TRACKING is an unknown subcommand
    bool no_scripts = false;     // a server without Lua
    bool loops = false;          // before 6.2.8, and 7.0.0 to 7.0.4: a script's own writes are told in spite of NOLOOP
    bool script_errors = false;  // before 7.0: an error that ends a script stands behind other words
    bool pushes_first = false;   // before 7.0: what a command pushes to its own connection stands before the reply
    bool flush_pushes_first = false;  // of FLUSHALL alone: there, and since 8.0 again
    bool setinfo = false;             // knows CLIENT SETINFO (7.2)
    unsigned replicas = 0;            // so many are connected
    bool backlog = false;             // the replication backlog is kept, as after the first replica
    std::string user = "default";
    std::string password;                       // empty: none needed
    std::set<std::string, std::less<>> noperm;  // commands (upper case) that the user may not run
    std::string version = "7.0.15";
    std::string maxmemory_policy = "noeviction";
    int64_t maxmemory = 0;
  };

  enum class Keep { all, snapshot, none };  // what a restarted master remembers

  explicit RedisDouble(uint64_t seed = 1, WallClock wall = WallClock());

  // -- connections: the transport delivers bytes with receive() and takes them from out().
  int open(TrueTime now);
  void receive(int conn, std::string_view bytes, TrueTime now);
  std::string& out(int conn);             // the reader erases what it took; empty for an unknown connection
  bool closed_by_server(int conn) const;  // once out() is delivered, the peer sees the end
  // Said on it in place of an answer; endless: it took the next answer with it.
  enum class Garbage : uint8_t { none, whole, endless };
  Garbage garbage(int conn) const;
  // Connections that were told something unasked since the last call, in order: their out() is to be taken.
  std::vector<int> take_pushed() { return std::exchange(pushed_, {}); }
  bool has_pushed() const { return !pushed_.empty(); }
  void close(int conn);  // the peer closed

  // -- the world
  void tick(TrueTime now);              // active expiry: deletes what is expired and tells trackers
  void crash(Keep keep, TrueTime now);  // restart: connections and scripts are gone, the run id is new
  void snapshot(TrueTime now) { snapshot_ = saved(now); }  // what Keep::snapshot comes back to
  using Data = std::map<std::string, Entry, std::less<>>;
  Data saved(TrueTime now) const;
  void put_snapshot(const Data& keys) { snapshot_ = keys; }
  void become_replica();
  void become_master();  // with a new replication id
  // The first replica connects: the backlog begins, and with it a new replication id. Nothing is lost.
  void attach_replica();
  // It takes over the data of a replica of its own, which had the snapshot, and goes on as a replica. A full
  // resynchronization is told to all trackers; after a partial one only those of the keys that changed hear of it.
  void detach_replica() { knobs.replicas = 0; }  // the backlog waits for it
  enum class Resync { full, partial };
  void take_over_snapshot(Resync how);
  void flush_all(int by_conn = -1);
  void evict(const std::string& key);
  void put(const std::string& key, const std::string& value, int64_t ttl_ms, TrueTime now);  // ttl 0: none
  void put_hash(const std::string& key) { put_fields(key, {}); }
  void put_fields(const std::string& key, Fields fields);
  void script_flush();
  // The table of tracked keys is full: all are forgotten, and their readers are told that they changed.
  void overflow_trackers();
  // The next command (of this name, upper case; "": any) is not executed and answered by "-text".
  void fail_next(std::string text, std::string command = "") {
    failures_.push_back({std::move(text), std::move(command)});
  }
  // The next command's reply is replaced by these bytes; it is executed.
  void garbage_next(std::string bytes, std::string command = "") {
    garbage_.push_back({std::move(bytes), std::move(command)});
  }
  void no_more_failures() { failures_.clear(), garbage_.clear(); }
  // Known scripts; returns the SHA-1 of the body.
  std::string register_script(const std::string& body, Script run);

  int64_t wall_ms(TrueTime now) const { return wall.ms(now); }

  // -- inspection
  const Entry* peek(std::string_view key, TrueTime now) const;  // nothing when expired; until the next change
  std::vector<std::string> keys(TrueTime now) const;
  uint64_t calls(std::string_view command) const;  // executed, also from scripts
  uint64_t received() const { return received_; }  // requests, answered by whatever
  bool loaded(std::string_view sha) const {
    const Known* const known = find_script(sha);
    return known != nullptr && known->loaded;
  }
  bool tracked(std::string_view key) const {
    const auto found = trackers_.find(key);
    return found != trackers_.end() && !found->second.empty();
  }
  size_t connections() const { return conns_.size(); }
  const std::string& run_id() const { return run_id_; }
  const std::string& replid() const { return replid_; }
  const std::string& client_name(int conn) const { return conns_.at(conn).name; }
  int resp(int conn) const { return conns_.at(conn).resp; }

  WallClock wall;
  Knobs knobs;
  // Sees each request and its true reply, also where garbage is said instead.
  std::function<void(int conn, Request, const Reply&, TrueTime now)> observer;

 private:
  friend class ScriptCall;

  struct Connection {
    std::string in;
    std::string out;
    int64_t id = 0;
    int resp = 2;
    bool authenticated = false;
    bool closing = false;
    Garbage garbage = Garbage::none;  // the worst
    bool tracking = false;
    bool optin = false;
    bool optout = false;
    bool noloop = false;
    bool caching = false;  // CLIENT CACHING was the last thing said
    std::string name;
    std::vector<std::string> late_pushes;  // caused by this connection's own command: after its reply
  };
  struct Failure {
    std::string text;
    std::string command;
  };
  // A script that the double was taught, or that it was sent and does not know.
  struct Known {
    std::string sha;
    Script run;
    bool loaded;
  };
  struct Command {
    std::string_view name;
    Reply (RedisDouble::*run)(int conn, Request args, TrueTime now);
    int arity;  // as Redis counts: negative means at least
    unsigned flags;
  };
  enum Flag : unsigned {
    read = 1,
    write = 2,
    deny_oom = 4,
    no_auth = 8,
    while_loading = 16,
    while_stale = 32,
    while_busy = 64,
    always = while_loading | while_stale,
    keyed = 128,
    scripted = 256,
    several = 512  // all words behind the name are keys
  };
  static constexpr size_t commands = 24;
  static const Command table[commands];
  enum class Parse { need_more, complete, broken };

  // requests
  Parse parse(Connection& conn, std::string_view bytes, size_t& taken, std::vector<std::string_view>& words);
  Parse parse_multibulk(Connection& conn, std::string_view in, size_t& taken, std::vector<std::string_view>& words);
  Parse broken(Connection& conn, const std::string& what);
  void answer(int conn, Request args, TrueTime now);
  Reply execute(int conn, Request args, TrueTime now);
  Reply run(const Command& command, int conn, Request args, TrueTime now);
  std::optional<Reply> refuse(const Connection& conn, const Command& command, bool in_script) const;
  const Command* find(std::string_view name) const;
  Reply unknown(Request args) const;
  const Known* find_script(std::string_view sha) const;
  Known& script(std::string_view sha);

  // keys
  Entry* find_key(std::string_view key, TrueTime now, int conn);
  Entry& made(std::string_view key);  // as it is, or a new one
  void drop(std::string_view key);
  static Reply value_of(const Entry* hash, std::string_view field);
  bool expired(const Entry& entry, TrueTime now) const;
  static bool tracks(const Connection& conn, const Command& command);
  template <class Keys>
  void track(const Keys& keys, int conn);
  void changed(std::string_view key, int by_conn, bool executing);
  void push(int conn, const std::string_view* key, bool after_reply);
  std::string random_id();

  // commands
  Reply cmd_auth(int conn, Request args, TrueTime now);
  Reply cmd_client(int conn, Request args, TrueTime now);
  Reply cmd_client_tracking(Connection& conn, Request args);
  Reply cmd_client_caching(Connection& conn, Request args);
  Reply cmd_client_kill(const Connection& by, Request args);
  Reply cmd_del(int conn, Request args, TrueTime now);
  Reply cmd_eval(int conn, Request args, TrueTime now);
  Reply cmd_exists(int conn, Request args, TrueTime now);
  Reply cmd_flushall(int conn, Request args, TrueTime now);
  Reply cmd_get(int conn, Request args, TrueTime now);
  Reply cmd_hello(int conn, Request args, TrueTime now);
  Reply cmd_hdel(int conn, Request args, TrueTime now);
  Reply cmd_hlen(int conn, Request args, TrueTime now);
  Reply cmd_hget(int conn, Request args, TrueTime now);
  Reply cmd_hmget(int conn, Request args, TrueTime now);
  Reply cmd_mget(int conn, Request args, TrueTime now);
  Reply cmd_hset(int conn, Request args, TrueTime now);
  Reply cmd_info(int conn, Request args, TrueTime now);
  Reply cmd_pexpire(int conn, Request args, TrueTime now);
  Reply cmd_ping(int conn, Request args, TrueTime now);
  Reply cmd_pttl(int conn, Request args, TrueTime now);
  Reply cmd_quit(int conn, Request args, TrueTime now);
  Reply cmd_role(int conn, Request args, TrueTime now);
  Reply cmd_script(int conn, Request args, TrueTime now);
  Reply cmd_set(int conn, Request args, TrueTime now);
  Reply cmd_time(int conn, Request args, TrueTime now);
  std::optional<Reply> authenticate(Connection& conn, std::string_view user, std::string_view password);
  Reply hello_text(const Connection& conn) const;
  std::string info_section(std::string_view section, TrueTime now) const;

  uint64_t random_;
  std::map<int, Connection> conns_;
  int next_conn_ = 1;
  int64_t next_id_ = 3;
  Data keys_;
  Data snapshot_;
  std::map<std::string, std::vector<int>, std::less<>> trackers_;  // key → connections that read it, in order
  std::vector<int> pushed_;
  std::vector<Known> scripts_;
  std::deque<Failure> failures_;
  std::deque<Failure> garbage_;
  std::array<uint64_t, commands> calls_ = {};
  uint64_t received_ = 0;
  bool in_script_ = false;
  std::string run_id_;
  std::string replid_;
  int64_t started_wall_ns_;  // uptime is wall clock arithmetic, also in Redis
};

}  // namespace redlock::test
