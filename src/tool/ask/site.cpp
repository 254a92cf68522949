// SPDX-License-Identifier: MIT
#include "tool/ask/site.hpp"

#include <pthread.h>
#include <stdlib.h>

#include "site/finished_change.hpp"
#include "tool/system/clock.hpp"
#include "tool/system/descriptors.hpp"
#include "tool/words/denied.hpp"
#include "tool/words/say.hpp"

namespace redlock::tool {

Site sites[2];

namespace {

constexpr int64_t lately_s = 60;  // and a watch
constexpr unsigned id_size = 16;  // of an id in a seal: the first digits of a run id, of a replication id

// The number behind a word of a record; 0: there is none.
unsigned long number_behind(const char* desc, const char* word) {
  const char* const found = strstr(desc, word);
  return found != nullptr ? strtoul(found + strlen(word), nullptr, 10) : 0;
}

enum : unsigned { of_info, of_record, of_visit, of_time, of_hello };  // the questions of look_at()

#ifdef REDLOCK_TLS
Text utc_now() {
  const time_t now = time(nullptr);
  tm parts{};
  char text[32] = "";
  if (gmtime_r(&now, &parts) != nullptr) strftime(text, sizeof text, "%F %R UTC", &parts);
  return Text("%s", text);
}
#endif

// With TLS, which certificate is out of its dates? Without, what closes the connection at HELLO?
Text why_unasked([[maybe_unused]] const redlock_config_t* cfg, [[maybe_unused]] unsigned m, const Master& it) {
  if (it.is_unnamed) return Text("%s: no name server has answered in time", redlock_strerror(it.err));
  if (it.ping == PlainPing::answered) return Text("closes the connection at HELLO, and answers PING: a proxy");
  if (it.ping == PlainPing::closed) return Text("closes the connection at HELLO and at PING: is it for TLS only?");
  Text out("%s", redlock_strerror(it.err));
#ifdef REDLOCK_TLS
  auto tls = sized<redlock_site_tls_t>();
  const bool dated = it.err == REDLOCK_E_TLS_EXPIRED || it.err == REDLOCK_E_TLS_EARLY;
  if (dated && redlock_site_tls(cfg, m, &tls) == it.err) out.add(" (%s; it is %s here)", tls.denied, utc_now().c_str());
#endif
  return out;
}

}  // namespace

bool info_text(const char* info, const char* key, char* out, size_t size) {
  const size_t key_size = strlen(key);
  for (const char* line = info; line != nullptr; line = strchr(line, '\n')) {
    if (*line == '\n') ++line;
    if (strncmp(line, key, key_size) != 0 || line[key_size] != ':') continue;
    const char* value = line + key_size + 1;
    const size_t length = strcspn(value, "\r\n");
    if (length >= size) return false;
    memcpy(out, value, length);
    out[length] = '\0';
    return true;
  }
  return false;
}

namespace {

constexpr int64_t bytes_max = 9'000'000'000'000'000;

int64_t info_number(const char* info, const char* key, int64_t otherwise) {
  char text[24];
  return info_text(info, key, text, sizeof text) ? number_within(bytes_max, text) : otherwise;
}

void read_info(Master& out, const char* info) {
  info_text(info, "redis_version", out.version, sizeof out.version);
  // Valkey and Redict also report the version of Redis that they are compatible with.
  const bool valkey = info_text(info, "valkey_version", out.version, sizeof out.version);
  const bool redict = info_text(info, "redict_version", out.version, sizeof out.version);
  out.server = valkey ? "Valkey" : redict ? "Redict" : "Redis";
  info_text(info, "role", out.role, sizeof out.role);
  info_text(info, "redis_mode", out.mode, sizeof out.mode);  // 6.0 denies HELLO to most users
  info_text(info, "run_id", out.run_id, sizeof out.run_id);
  info_text(info, "maxmemory_policy", out.policy, sizeof out.policy);
  out.replicas = info_number(info, "connected_slaves", 0);
  out.backlog = info_number(info, "repl_backlog_active", 0);
  out.maxmemory = info_number(info, "maxmemory", -1);
  out.used_memory = info_number(info, "used_memory", 0);
  out.evicted = info_number(info, "evicted_keys", 0);
  out.uptime_s = info_number(info, "uptime_in_seconds", seconds_max);
  char host[128], port[8];
  const bool has_master = info_text(info, "master_host", host, sizeof host);
  out.master = Text();
  if (has_master && info_text(info, "master_port", port, sizeof port)) out.master.escaped(host).add(":").escaped(port);
  out.aof = info_number(info, "aof_enabled", -1);
  char state[16];
  out.rdb_ok = info_text(info, "rdb_last_bgsave_status", state, sizeof state) ? strcmp(state, "ok") == 0 : -1;
  // The seal of this very server and data, as far as the quarantine id: read_record() compares.
  char replid[48] = "";
  info_text(info, "master_replid", replid, sizeof replid);
  out.sealed = false;
  format_text(out.state, sizeof out.state, "%.*s:%.*s:", id_size, out.run_id, id_size, replid);
}

void read_left(Master& out, const Questions& asked) {
  const auto field = [&asked](unsigned n) {
    const char* const text = asked.text(of_record, n);
    return text != nullptr ? text : "";
  };
  char theirs[fingerprint_max];
  out.has_left_us = read_change(field(1), field(2), field(7), out.facts.record, theirs, out.changed_s);
  if (out.has_left_us) out.changed_to = {number_behind(theirs, "v1 n="), number_behind(theirs, " max_ttl_ms=")};
}

// The mode is read from HELLO, as a client does, if it is told; INFO has another name for it in each kind of server.
void read_hello(Master& out, const Questions& asked) {
  for (unsigned n = 1; n + 1 < asked[of_hello].items; ++n) {
    const redlock_item_t* const key = asked.item(of_hello, n);
    if (key->depth != 1 || key->type != REDLOCK_ITEM_TEXT || strcmp(key->text, "mode") != 0) continue;
    return asked.copy(of_hello, n + 1, out.mode);
  }
}

// "moving A > B", or "left A > B". Behind a mark the longer of both ttls counts.
void read_mark(Master& out, const Questions& asked) {
  const char* const old_text = strchr(out.desc, ' ') + 1;
  const char* const arrow = strstr(old_text, " > ");
  const char* const new_text = arrow != nullptr ? arrow + 3 : "";
  const size_t ours = strlen(out.facts.record);
  out.record = out.desc[0] == 'l' ? Record::left : Record::moving;
  out.ours_is_old = strncmp(old_text, out.facts.record, ours) == 0 && old_text + ours == arrow;
  out.about_us = out.ours_is_old || strcmp(new_text, out.facts.record) == 0;
  const unsigned long a = number_behind(old_text, " max_ttl_ms="), b = number_behind(new_text, " max_ttl_ms=");
  out.their_max_ttl_ms = a == 0 || b == 0 ? 0 : a > b ? a : b;
  asked.copy(of_record, 4, out.by);
  asked.copy(of_record, 5, out.begun);
  asked.copy(of_record, 6, out.names);
}

int64_t longest_hold_ms(const Times& times) {
  return int64_t{times.max_ttl_ms} + drift_ms(times.max_ttl_ms, times.drift_ppm, times.drift_fixed_ms);
}
int64_t watch_ms(int64_t hold_ms) { return hold_ms * 9 / 8 + 2; }  // as the guard counts

void read_record(const Times& times, Master& out, const Questions& asked) {
  const char* desc = asked.text(of_record, 1);
  const char *const q = asked.text(of_record, 2), *const seal = asked.text(of_record, 3);
  out.their_masters = out.their_max_ttl_ms = 0;
  asked.copy(of_record, 1, out.desc);
  read_left(out, asked);
  if (desc == nullptr) {
    out.record = Record::none;
  } else if (strcmp(desc, out.facts.record) == 0) {
    out.record = Record::ours;
  } else if (strncmp(desc, "moving ", 7) == 0 || strncmp(desc, "left ", 5) == 0) {
    read_mark(out, asked);
  } else {
    out.record = Record::other;
    out.their_masters = number_behind(desc, "v1 n=");
    out.their_max_ttl_ms = number_behind(desc, " max_ttl_ms=");
  }
  const Text wanted("%s%.*s", out.state, id_size, q != nullptr ? q : "");
  out.has_seal = seal != nullptr;
  out.sealed = out.record == Record::ours && seal != nullptr && strcmp(seal, wanted) == 0;
  const int64_t full_ms = longest_hold_ms(times);
  out.guard_ms = out.sealed ? 0 : full_ms;
  const bool is_same_run = seal != nullptr && strncmp(seal, out.state, id_size) == 0;
  out.started_lately = !is_same_run && (out.uptime_s - lately_s) * 1'000 <= full_ms;
  out.watched = false;
  const char* visit = asked.text(of_visit);
  const char* const run = strchr(wanted, ':');  // none: INFO is not told
  if (out.sealed || visit == nullptr || run == nullptr) return;
  const char* const state = run + 1;
  if (strncmp(visit, state, strlen(state)) != 0) return;
  const char* const s = asked.text(of_time, 1);
  const char* const us = asked.text(of_time, 2);
  if (s == nullptr || us == nullptr) return;
  const int64_t server_ms = number_within(seconds_max, s) * 1'000 + number_within(1'000'000, us) / 1'000;
  char* behind = nullptr;
  const int64_t by_boot = now_ns() / ns_per_ms - number_within(seconds_max * 1'000, visit + strlen(state), &behind);
  const int64_t by_server = server_ms - number_within(seconds_max * 1'000, behind);
  const int64_t age = by_boot < by_server ? by_boot : by_server;  // as the guard counts
  const int64_t left = watch_ms(full_ms) - age;
  out.watched = age >= 0 && left >= 0;
  if (out.watched) out.guard_ms = left;
}

}  // namespace

Text pattern_of(const char* data, size_t size) {
  Text out;
  for (size_t i = 0; i < size; ++i) out.add(strchr("*?[]\\^-", data[i]) != nullptr ? "\\%c" : "%c", data[i]);
  return out;
}

// ---- the site ---------------------------------------------------------------------------------------------------

void Site::open(redlock_config_t* given) {
  cfg = given;
  masters = 1;
  for (unsigned m = 0; m < masters; ++m) {
    redlock_site_facts_t& facts = master[m].facts;
    facts.size = sizeof facts;
    const int err = redlock_site_facts(cfg, m, &facts);
    if (err != 0) fail(exit_code_of(err), "%s", redlock_strerror(err));
    masters = facts.masters;
    master[m].label = name_of_master(facts.name, facts.address);
  }
  quorum = facts().quorum;
  const auto number = [given](const char* key) { return setting_of(given, key).number; };
  times = {.ttl_ms = number("defaults.ttl_ms"),
           .max_ttl_ms = number("timing.max_ttl_ms"),
           .node_timeout_ms = number("timing.node_timeout_ms"),
           .connect_timeout_ms = number("timing.connect_timeout_ms"),
           .drift_ppm = number("timing.drift_ppm"),
           .drift_fixed_ms = number("timing.drift_fixed_ms")};
  format_text(guard, sizeof guard, "%s", setting_of(given, "guard").value);
  record_key = own_key(":meta");
  seen_key = own_key(":seen");
  read_file("/proc/sys/kernel/random/boot_id", boot_id, sizeof boot_id);
  boot_id[strcspn(boot_id, "\n")] = '\0';
}

unsigned Site::find(const char* name) const {
  unsigned m = 0;
  while (m < masters && strcmp(master[m].facts.name, name) != 0) ++m;
  return m;
}

unsigned Site::find_address(const char* address) const {
  unsigned m = 0;
  while (m < masters && strcmp(master[m].facts.address, address) != 0) ++m;
  return m;
}

Key Site::own_key(const char* name) const {
  return Key().add("redlock:").add(facts().key_prefix, facts().key_prefix_size).add(name);
}

Key Site::key_of(const void* resource, size_t size) const {
  return Key().add(facts().key_prefix, facts().key_prefix_size).add(static_cast<const char*>(resource), size);
}

void Site::look_at(unsigned m) {
  Master& out = master[m];
  Questions questions;
  questions.command("INFO");
  questions.command("HMGET @ desc q seal by begun names left", record_key);
  questions.command("HGET @", seen_key).word(boot_id, strlen(boot_id));
  questions.command("TIME");
  questions.command("HELLO 3");  // 6.0 wants the number
  const int64_t began = now_ns();
  out.err = questions.ask(cfg, m, out.at);
  out.record = Record::unread;
  out.run_id[0] = out.role[0] = out.mode[0] = out.version[0] = out.policy[0] = '\0';
  if (out.err != 0) {
    const int timeout_ms = static_cast<int>(times.connect_timeout_ms);
    const bool is_plain = strstr(out.facts.redis_cli, " --tls") == nullptr;
    const bool is_odd = out.err == REDLOCK_E_PROTOCOL, asks = (out.err == REDLOCK_E_NO_GREETING || is_odd) && is_plain;
    out.ping = asks ? plain_ping(out.facts.address, timeout_ms, is_odd) : PlainPing::unknown;
    if (out.ping == PlainPing::sentinel) out.err = REDLOCK_E_MODE;
    out.is_unnamed = out.err == REDLOCK_E_RESOLVE && now_ns() - began >= timeout_ms * ns_per_ms;
    out.unasked = why_unasked(cfg, m, out);
    return;
  }
  out.info_err = questions[of_info].err;
  out.record_err = questions[of_record].err;
  if (questions.text(of_info) != nullptr) read_info(out, questions.text(of_info));
  if (questions[of_hello].err == 0) read_hello(out, questions);
  if (out.record_err == 0) read_record(times, out, questions);
  if (asks_what_user_lacks) out.lacks = lacking(cfg, m, out.at, own_key(":doctor"), out.lacks_command);
}

void Site::look_at_all(const bool* chosen) {
  struct Look {
    Site* site;
    unsigned m;
    pthread_t thread;
    bool begun;
    static void* run(void* self) {
      Look& look = *static_cast<Look*>(self);
      look.site->look_at(look.m);
      return nullptr;
    }
  } looks[REDLOCK_MASTERS_MAX];
  unsigned begun = 0;
  for (unsigned m = 0; m < masters; ++m) {
    if (chosen != nullptr && !chosen[m]) continue;
    Look& look = looks[begun++] = {this, m, {}, false};
    look.begun = pthread_create(&look.thread, nullptr, Look::run, &look) == 0;
  }
  for (unsigned i = 0; i < begun; ++i) {
    if (!looks[i].begun || pthread_join(looks[i].thread, nullptr) != 0) look_at(looks[i].m);
  }
  if (count([this](unsigned m) { return master[m].err == REDLOCK_E_TLS_FILE; }) != 0) new_client(cfg);  // names it
}

Text Site::mark(unsigned m) const {
  const Master& it = master[m];
  Text out;
  if (*it.by != '\0') out.add("by ").escaped(it.by).add(", ");
  const time_t begun = static_cast<time_t>(strtoll(it.begun, nullptr, 10));
  tm parts{};
  char text[32];
  if (begun > 0 && gmtime_r(&begun, &parts) != nullptr && strftime(text, sizeof text, "%F %T", &parts) != 0) {
    out.add("begun %s UTC, ", text);
  }
  return *it.names != '\0' ? out.escaped(it.names, strlen(it.names), sizeof it.names) : out.escaped(it.desc);
}

Text Site::left_text(unsigned m) const {
  const Master& it = master[m];
  const Text what = it.has_left_us ? changed_text({masters, times.max_ttl_ms}, it.changed_to, it.changed_s)
                                   : Text("%s", redlock_strerror(REDLOCK_E_LEFT));
  return it.has_mark() ? Text("%s (%s)", what.c_str(), mark(m).c_str()) : what;
}

Text Site::deletion(unsigned m) const {
  const Master& it = master[m];
  const unsigned long ttl_ms = it.their_max_ttl_ms != 0 ? it.their_max_ttl_ms : REDLOCK_MAX_TTL_MS_MAX;
  Text out("if no change is under way, and no gateway of the other configuration has run for %lu s (a stopped process "
          "or a sleeping machine counts as running), delete the record; the guard then watches it like a new master",
          (ttl_ms + 999) / 1000);
  if (it.facts.has_password != 0) out.add("; its password in REDISCLI_AUTH");
  return out;
}

Text Site::deletion_line(unsigned m) const {
  return Text("redis-cli %s DEL ", master[m].facts.redis_cli).word(record_key.text, record_key.size);
}

int Site::unfit(unsigned m) const {
  const Master& it = master[m];
  if (it.err != 0) return it.err;
  if (*it.mode != '\0' && strcmp(it.mode, "standalone") != 0) return REDLOCK_E_MODE;
  if (strcmp(it.role, "master") != 0) return REDLOCK_E_ROLE;
  return it.evicts() ? REDLOCK_E_MAXMEMORY : 0;
}

int64_t Site::guard_time_ms() const { return watch_ms(longest_hold_ms(times)); }

bool Site::votes(unsigned m) const { return unfit(m) == 0 && (!is_guarded() || master[m].sealed); }

Text Site::why(unsigned m) const {
  const Master& it = master[m];
  if (it.err != 0) return it.unasked;
  if (it.info_err != 0) return Text("does not tell INFO: %s", redlock_strerror(it.info_err));
  if (unfit(m) != 0) return Text("%s", redlock_strerror(unfit(m)));
  if (votes(m) && it.is_over()) return Text("votes, but is over its maxmemory: it refuses locks");
  const Text lacks = it.lacks.empty() ? Text() : Text("; %s", it.lacks.c_str());
  if (votes(m)) return Text("votes%s", lacks.c_str());
  if (it.record_err != 0) return Text("its record is not read: %s", redlock_strerror(it.record_err));
  if (it.has_left()) return left_text(m);
  if (it.has_mark()) {
    // A master that could not be written when the change was done never says "left".
    const char* const what =
        it.record == Record::left ? "was left by a change of the masters"
        : it.ours_is_old ? "a change of the masters is under way, was given up, or has left this configuration behind"
                         : "a change of the masters is under way, or was given up";
    return Text("%s (%s)", what, mark(m).c_str());
  }
  if (it.record == Record::other) {
    const bool same_numbers = it.their_masters == masters && it.their_max_ttl_ms == times.max_ttl_ms;
    return Text("belongs to clients of %lu master(s), max_ttl_ms %lu%s", it.their_masters, it.their_max_ttl_ms,
                same_numbers ? ", with other names" : "");
  }
  if (it.lacks_command) return it.lacks;  // no guard's end would help
  if (it.record == Record::none) {
    const bool was_emptied = it.started_lately && with_record(Record::ours) != 0;
    Text out("%s: the guard has not begun", was_emptied ? "empty after its server's start" : "new");
    if (!it.lacks.empty()) return out.add("%s", lacks.c_str());
    return out.add("; ").thousandths(it.guard_ms).add(" s from the first client on");
  }
  Text out("the guard watches%s; ", it.started_lately ? " after its server's start" : "");
  return out.add(it.watched ? "" : "at most ").thousandths(it.guard_ms).add(" s to go%s", lacks.c_str());
}

}  // namespace redlock::tool
