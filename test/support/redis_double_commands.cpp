// SPDX-License-Identifier: MIT
//
// RedisDouble: scripts, and the commands on a connection.
#include "redis_double.hpp"

#include <algorithm>

#include "redis_double_words.hpp"

namespace redlock::test {

using namespace redis_words;

// ---- scripts --------------------------------------------------------------------------------------------------------

Reply ScriptCall::call(Request args) {
  const RedisDouble::Command* command = redis_.find(args[0]);
  if (!command) return err("ERR Unknown Redis command called from script");
  const RedisDouble::Connection& conn = redis_.conns_.at(conn_);
  if (std::optional<Reply> refusal = redis_.refuse(conn, *command, true)) return std::move(*refusal);
  Reply reply = redis_.run(*command, conn_, args, now_);
  // What a script reads is tracked for all the keys it declared, from that read on: a write behind it ends that.
  if (RedisDouble::tracks(conn, *command)) redis_.track(keys, conn_);
  return reply;
}

Reply ScriptCall::ended_by(const std::string& error) const {
  const std::string sha(sha_);
  if (!redis_.knobs.script_errors) return Reply::make_error(error + " script: " + sha + ", on @user_script:1.");
  const bool failed = error.starts_with("WRONGTYPE "), word = !error.starts_with("ERR ");
  return Reply::make_error("ERR Error running script (call to f_" + sha + "): @user_script:1: " +
                           (failed ? error : "@user_script: 1: " + (word ? "-" + error : error.substr(4))));
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
  if (!known->run) return err("ERR the double was not taught script " + known->sha);
  if (knobs.cluster && *count > 0) return err("CLUSTERDOWN Hash slot not served");
  ScriptCall call(*this, known->sha, number, now);
  const auto first_arg = args.begin() + 3 + static_cast<std::ptrdiff_t>(*count);
  call.keys.assign(args.begin() + 3, first_arg);
  call.argv.assign(first_arg, args.end());
  in_script_ = true;
  Reply result = known->run(call);
  in_script_ = false;
  return result;
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
  return Reply{Reply::map,
               {},
               0,
               {text("server"), text("redis"), text("version"), text(knobs.version), text("proto"),
                Reply::make_integer(conn.resp), text("id"), Reply::make_integer(conn.id), text("mode"),
                text(knobs.cluster ? "cluster" : "standalone"), text("role"),
                text(knobs.replica ? "replica" : "master"), text("modules"), Reply::make_array({})}};
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
