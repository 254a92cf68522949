// SPDX-License-Identifier: MIT
//
// Site: the masters of a configuration, as an operator sees them. All of it is asked by redlock_site_ask(), and nothing
// is written to a master.
#pragma once
#include <redlock/site.h>
#include <string.h>

#include "tool/system/plain_ping.hpp"
#include "tool/words/changed.hpp"
#include "tool/words/format.hpp"
#include "tool/words/options.hpp"
#include "tool/words/questions.hpp"
#include "tool/words/text.hpp"

namespace redlock::tool {

constexpr int64_t seconds_max = 9'000'000'000;  // of a server's clock, as for a client

// These bytes as a pattern of SCAN matches them alone.
Text pattern_of(const char* data, size_t size);

// Tells on_key(const char* key, size_t size) the keys that match; false ends the scan. 0: that is all, or on_key has
// ended it. scan_cut: a server may have too many keys, or never say that it has come to the end. Else why the keys are
// not known.
constexpr int scan_cut = 1;
template <typename OnKey>
int scan(const redlock_config_t* cfg, unsigned m, const char* at, const Text& pattern, unsigned steps_max,
         OnKey on_key) {
  Key cursor = Key().add("0");
  for (unsigned step = 0; step < steps_max; ++step) {
    Questions asked;
    asked.command("SCAN @ COUNT 500 MATCH", cursor).word(pattern.c_str(), pattern.size());
    const int err = asked.ask(cfg, m, at);
    if (err != 0 || asked[0].err != 0) return err != 0 ? err : asked[0].err;
    const char* const next = asked.text(0, 1);
    if (next == nullptr || strlen(next) >= sizeof cursor.text) return REDLOCK_E_PROTOCOL;
    for (unsigned n = 3; n < asked[0].items; ++n) {
      const redlock_item_t& key = *asked.item(0, n);
      if (key.type == REDLOCK_ITEM_TEXT && !on_key(key.text, static_cast<size_t>(key.number))) return 0;
    }
    if (strcmp(next, "0") == 0) return 0;
    cursor = Key().add(next);
  }
  return scan_cut;
}

// The value of a line "key:value" of INFO, in `out`; false: there is none.
bool info_text(const char* info, const char* key, char* out, size_t size);

// What the guard's record on a master says.
enum class Record { unread, none, ours, moving, left, other };  // left: a mark of a change that is done

struct Master {
  redlock_site_facts_t facts;
  const char* at;         // which address of its name is asked; null: any
  int err;                // why it cannot be asked
  Text unasked;           // the same for a person
  bool is_unnamed;        // no name server has answered in time
  PlainPing ping;         // of one that closed the connection before its first reply
  int info_err;           // why it does not tell INFO
  int record_err;
  Text lacks;             // why this user has no lock there; "": it may have one, or was not asked about
  bool lacks_command;     // because the server does not know one
  char state[48];         // the run id and the replication id as a seal begins with them
  char role[16], mode[16], version[32], run_id[48], policy[32];
  const char* server;     // "Redis", "Valkey", "Redict"
  int64_t replicas, backlog, maxmemory, used_memory, evicted, aof, rdb_ok, uptime_s;
  Text master;            // of a replica: its address; "": none
  Record record;
  char desc[192];         // of that record; "": there is none
  bool about_us;          // a mark is of a change between this configuration and another
  bool ours_is_old;       // and from this one
  char by[32], names[192], begun[32];  // who made the mark, between which masters, and when by the server's clock
  unsigned long their_masters, their_max_ttl_ms;
  bool has_left_us;       // of an entered record, or of a mark: a change from this configuration is done
  Numbers changed_to;     // then to what
  int64_t changed_s;      // and when, by the server's clock
  bool has_seal;          // the guard's watch was over, perhaps for the server's last run
  bool sealed;            // and is over now
  int64_t guard_ms;       // how long the watch still takes, at most
  bool started_lately;    // its server: that is why it is watched
  bool watched;           // guard_ms counts from a visit of this machine: it is exact

  const char* name() const { return label.c_str(); }
  bool evicts() const { return maxmemory > 0 && strcmp(policy, "noeviction") != 0; }
  bool is_over() const { return maxmemory > 0 && used_memory > maxmemory; }  // of its memory: it refuses locks
  bool has_mark() const { return record == Record::moving || record == Record::left; }
  bool has_left() const {  // this configuration for another one; earlier versions write a mark alone
    return record == Record::left ? ours_is_old : record == Record::other && has_left_us;
  }
  Text label;             // its name, escaped
};

// The settings that an operator's question may be about.
struct Times {
  uint32_t ttl_ms, max_ttl_ms, node_timeout_ms, connect_timeout_ms, drift_ppm, drift_fixed_ms;
};

struct Site {
  redlock_config_t* cfg = nullptr;
  Times times = {};
  bool asks_what_user_lacks = false;
  char guard[8] = "";  // "off", "weak" or "strict"
  unsigned masters = 0;
  unsigned quorum = 0;
  Master master[REDLOCK_MASTERS_MAX];
  Key record_key, seen_key;
  char boot_id[40] = "";  // of this machine; "": it has none

  void open(redlock_config_t* given);
  unsigned find(const char* name) const;  // the master of this name; as many as there are masters: none
  unsigned find_address(const char* address) const;  // the same by address
  bool has(const char* name) const { return find(name) != masters; }
  Key own_key(const char* name) const;  // of the library's, such as ":meta"
  Key key_of(const void* resource, size_t size) const;
  void look_at(unsigned m);
  // All of them at once, or these: none waits until another one has not answered.
  void look_at_all(const bool* chosen = nullptr);
  int unfit(unsigned m) const;   // why it cannot vote, whatever the guard says; 0: it could
  bool votes(unsigned m) const;  // as far as one can see from outside
  template <typename Is>
  unsigned count(Is is) const {  // of the masters, those that are so
    unsigned n = 0;
    for (unsigned m = 0; m < masters; ++m) n += is(m);
    return n;
  }
  unsigned votes() const { return count([this](unsigned m) { return votes(m); }); }
  unsigned lockable() const {  // of the masters that vote, those where this user may lock
    return count([this](unsigned m) { return votes(m) && master[m].lacks.empty(); });
  }
  int64_t guard_time_ms() const;  // how long a master does not vote that begins anew
  unsigned reached() const { return count([this](unsigned m) { return master[m].err == 0; }); }
  unsigned with_record(Record record) const {
    return count([this, record](unsigned m) { return master[m].err == 0 && master[m].record == record; });
  }
  // Do so many masters bear this configuration's record that its clients may be at work?
  bool served() const { return with_record(Record::ours) >= quorum; }
  // Who made the mark on this master, when, and between which masters.
  Text mark(unsigned m) const;
  // What the site was changed to, and when. Only for a master with has_left().
  Text left_text(unsigned m) const;
  // What a person must know to delete the record there, and the command.
  Text deletion(unsigned m) const;
  Text deletion_line(unsigned m) const;
  // Why a master does not vote, and what to do about it.
  Text why(unsigned m) const;
  void print_table() const;  // a line for each master
  const redlock_site_facts_t& facts() const { return master[0].facts; }
  bool is_guarded() const { return strcmp(guard, "off") != 0; }
};

// A command has one site, and reconfigure two.
extern Site sites[2];

}  // namespace redlock::tool
