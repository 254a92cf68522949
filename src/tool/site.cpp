// SPDX-License-Identifier: MIT
#include "tool/site.hpp"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/clock.hpp"
#include "tool/file.hpp"
#include "tool/say.hpp"

namespace redlock::tool {

Site sites[2];

namespace {

constexpr unsigned id_size = 16;  // of an id in a seal: the first digits of a run id, of a replication id
alignas(redlock_item_t) char replies[64 * 1024];

// The number behind a word of a record; 0: there is none.
unsigned long number_behind(const char* desc, const char* word) {
  const char* const found = strstr(desc, word);
  return found != nullptr ? strtoul(found + strlen(word), nullptr, 10) : 0;
}

}  // namespace

// ---- questions --------------------------------------------------------------------------------------------------

Questions& Questions::command(const char* line, const char* key, size_t key_size) {
  if (count_ == most) abort();
  questions_[count_++] = {&words_[word_count_], 0, 0, nullptr, 0, 0, 0};
  for (size_t size; *line != '\0'; line += size + (line[size] == ' ')) {
    size = strcspn(line, " ");
    *line == '@' ? word(key, key_size) : word(line, size);
  }
  return *this;
}

Questions& Questions::word(const char* word_given) { return word(word_given, strlen(word_given)); }

Questions& Questions::word(const char* data, size_t size) {
  if (word_count_ == words_max) abort();
  words_[word_count_++] = {data, static_cast<uint32_t>(size)};
  ++questions_[count_ - 1].words;
  return *this;
}

int Questions::ask(const redlock_config_t* cfg, uint32_t master) {
  return redlock_site_ask(cfg, master, questions_, count_, replies, sizeof replies);
}

const redlock_item_t* Questions::item(unsigned i, unsigned n) const {
  return n < questions_[i].items ? &questions_[i].item[n] : nullptr;
}

const char* Questions::text(unsigned i, unsigned n) const {
  const redlock_item_t* found = item(i, n);
  return found != nullptr && found->type == REDLOCK_ITEM_TEXT ? found->text : nullptr;
}

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

int64_t info_number(const char* info, const char* key, int64_t otherwise) {
  char text[24];
  return info_text(info, key, text, sizeof text) ? strtoll(text, nullptr, 10) : otherwise;
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
    master[m].label = Text();
    master[m].label.escaped(facts.name);
  }
  quorum = facts().quorum;
  read_settings();
  const struct {
    char* key;
    size_t* size;
    const char* name;
  } keys[] = {{record_key, &record_key_size, ":meta"}, {seen_key, &seen_key_size, ":seen"}};
  for (const auto& one : keys) {
    char* at = stpcpy(one.key, "redlock:");
    memcpy(at, facts().key_prefix, facts().key_prefix_size);
    *one.size = static_cast<size_t>(stpcpy(at + facts().key_prefix_size, one.name) - one.key);
  }
  read_file("/proc/sys/kernel/random/boot_id", boot_id, sizeof boot_id);
  boot_id[strcspn(boot_id, "\n")] = '\0';
}

void Site::read_settings() {
  const struct {
    const char* key;
    uint32_t* number;
  } wanted[] = {{"defaults.ttl_ms", &times.ttl_ms},
                {"timing.max_ttl_ms", &times.max_ttl_ms},
                {"timing.node_timeout_ms", &times.node_timeout_ms},
                {"timing.connect_timeout_ms", &times.connect_timeout_ms},
                {"timing.drift_ppm", &times.drift_ppm},
                {"timing.drift_fixed_ms", &times.drift_fixed_ms}};
  redlock_setting_t setting;
  for (const auto& one : wanted) {
    read_setting(cfg, one.key, setting);
    *one.number = setting.number;
  }
  read_setting(cfg, "guard", setting);
  guarding = strcmp(setting.value, "off") == 0    ? Guarding::off
             : strcmp(setting.value, "weak") == 0 ? Guarding::weak
                                                  : Guarding::strict;
}

void Site::look() {
  for (unsigned m = 0; m < masters; ++m) look_at(m);
}

void Site::look_at(unsigned m) {
  Master& out = master[m];
  Questions questions;
  questions.command("INFO");
  questions.command("HMGET @ desc q seal", record_key, record_key_size);
  questions.command("HGET @", seen_key, seen_key_size).word(boot_id);
  out.err = questions.ask(cfg, m);
  out.record = Record::unread;
  out.run_id[0] = out.role[0] = out.mode[0] = out.version[0] = out.policy[0] = '\0';
  if (out.err != 0) return;
  out.info_err = questions[0].err;
  out.record_err = questions[1].err;
  if (questions.text(0) != nullptr) read_info(out, questions.text(0));
  if (out.record_err == 0) read_record(out, questions, 1, 2);
}

void Site::read_info(Master& out, const char* info) const {
  info_text(info, "redis_version", out.version, sizeof out.version);  // Valkey tells the Redis that it is like, too
  out.valkey = info_text(info, "valkey_version", out.version, sizeof out.version);
  info_text(info, "role", out.role, sizeof out.role);
  info_text(info, "redis_mode", out.mode, sizeof out.mode);
  info_text(info, "server_mode", out.mode, sizeof out.mode);  // Valkey's word
  info_text(info, "run_id", out.run_id, sizeof out.run_id);
  info_text(info, "maxmemory_policy", out.policy, sizeof out.policy);
  out.replicas = info_number(info, "connected_slaves", 0);
  out.backlog = info_number(info, "repl_backlog_active", 0);
  out.maxmemory = info_number(info, "maxmemory", -1);
  out.used_memory = info_number(info, "used_memory", 0);
  out.evicted = info_number(info, "evicted_keys", 0);
  out.aof = info_number(info, "aof_enabled", -1);
  char state[16];
  out.rdb_ok = info_text(info, "rdb_last_bgsave_status", state, sizeof state) ? strcmp(state, "ok") == 0 : -1;
  // The seal of this very server and data, as far as the quarantine id: read_record() compares.
  char replid[48] = "";
  info_text(info, "master_replid", replid, sizeof replid);
  out.sealed = false;
  format_text(out.state, sizeof out.state, "%.*s:%.*s:", id_size, out.run_id, id_size, replid);
}

void Site::read_record(Master& out, const Questions& asked, unsigned record, unsigned seen) const {
  const char* desc = asked.text(record, 1);
  const char* q = asked.text(record, 2);
  const char* seal = asked.text(record, 3);
  out.their_masters = out.their_max_ttl_ms = 0;
  format_text(out.desc, sizeof out.desc, "%s", desc != nullptr ? desc : "");
  if (desc == nullptr) {
    out.record = Record::none;
  } else if (strcmp(desc, out.facts.record) == 0) {
    out.record = Record::ours;
  } else if (strncmp(desc, "moving ", 7) == 0) {
    out.record = Record::moving;
  } else {
    out.record = Record::other;
    out.their_masters = number_behind(desc, "v1 n=");
    out.their_max_ttl_ms = number_behind(desc, " max_ttl_ms=");
  }
  char wanted[64];
  format_text(wanted, sizeof wanted, "%s%.*s", out.state, id_size, q != nullptr ? q : "");
  out.sealed = out.record == Record::ours && seal != nullptr && strcmp(seal, wanted) == 0;
  const int64_t full_ms = (int64_t{times.max_ttl_ms} * (1'000'000 + int64_t{times.drift_ppm}) + 999'999) /
                              1'000'000 + times.drift_fixed_ms;
  out.guard_ms = out.sealed ? 0 : full_ms;
  out.watched = false;
  const char* visit = asked.text(seen);
  const char* state = wanted + id_size + 1;
  if (out.sealed || visit == nullptr || strncmp(visit, state, strlen(state)) != 0) return;
  const int64_t since = strtoll(visit + strlen(state), nullptr, 10);
  const int64_t left = full_ms * 9 / 8 + 2 - (now_ns() / ns_per_ms - since);
  out.watched = since > 0 && left >= 0;
  if (out.watched) out.guard_ms = left;
}

bool Site::votes(unsigned m) const {
  const Master& it = master[m];
  if (it.err != 0 || strcmp(it.role, "master") != 0 || strcmp(it.mode, "standalone") != 0) return false;
  if (it.maxmemory > 0 && strcmp(it.policy, "noeviction") != 0) return false;
  return guarding == Guarding::off || it.sealed;
}

unsigned Site::votes() const {
  unsigned n = 0;
  for (unsigned m = 0; m < masters; ++m) n += votes(m);
  return n;
}

unsigned Site::reached() const {
  unsigned n = 0;
  for (unsigned m = 0; m < masters; ++m) n += master[m].err == 0;
  return n;
}

Text Site::why(unsigned m) const {
  const Master& it = master[m];
  Text out;
  if (it.err != 0) return out.add("%s", redlock_strerror(it.err));
  if (it.info_err != 0) return out.add("does not tell INFO: %s", redlock_strerror(it.info_err));
  if (strcmp(it.mode, "standalone") != 0) return out.add("%s", redlock_strerror(REDLOCK_E_MODE));
  if (strcmp(it.role, "master") != 0) return out.add("%s", redlock_strerror(REDLOCK_E_ROLE));
  if (it.maxmemory > 0 && strcmp(it.policy, "noeviction") != 0) {
    return out.add("%s", redlock_strerror(REDLOCK_E_MAXMEMORY));
  }
  if (guarding == Guarding::off || it.sealed) return out.add("votes");
  if (it.record_err != 0) return out.add("its record is not read: %s", redlock_strerror(it.record_err));
  if (it.record == Record::moving) return out.add("a change of the masters is under way, or was given up");
  if (it.record == Record::other) {
    return out.add("belongs to clients of %lu master(s), max_ttl_ms %lu", it.their_masters, it.their_max_ttl_ms);
  }
  const char* const what = it.record == Record::none ? "new: the guard has not begun" : "the guard watches";
  return out.add("%s; %s", what, it.watched ? "" : "at most ").thousandths(it.guard_ms).add(" s to go");
}

// ---- the operator's word ----------------------------------------------------------------------------------------

void confirm(bool yes, const char* what) {
  if (yes) return;
  if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) {
    fail(exit_usage, "%s. Not a terminal: if you mean it, say --yes", what);
  }
  if (!ask(Text().add("%s. Type yes to go on:", what).c_str())) fail(exit_usage, "nothing was done");
}

}  // namespace redlock::tool
