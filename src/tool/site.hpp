// SPDX-License-Identifier: MIT
//
// Site: the masters of a configuration, as an operator sees them. All of it is asked by redlock_site_ask(), and nothing
// is written to a master.
#pragma once
#include <redlock/site.h>

#include "tool/options.hpp"
#include "tool/text.hpp"

namespace redlock::tool {

// Several commands for one master. A word must stay until ask() has returned. The replies are good until the next ask()
// of any list.
class Questions {
 public:
  static constexpr unsigned most = 96;
  static constexpr unsigned words_max = 4 * most;

  // Begins a command with the words of this line; "@" among them is the key.
  Questions& command(const char* line, const char* key = nullptr, size_t key_size = 0);
  Questions& word(const char* word);              // and goes on
  Questions& word(const char* data, size_t size);
  int ask(const redlock_config_t* cfg, uint32_t master);

  unsigned count() const { return count_; }
  const redlock_question_t& operator[](unsigned i) const { return questions_[i]; }
  const redlock_item_t* item(unsigned i, unsigned n = 0) const;  // of the reply; null: there is none
  const char* text(unsigned i, unsigned n = 0) const;            // null: it is no text

 private:
  redlock_resource_t words_[words_max];
  unsigned word_count_ = 0;
  redlock_question_t questions_[most];
  unsigned count_ = 0;
};

// The value of a line "key:value" of INFO, in `out`; false: there is none.
bool info_text(const char* info, const char* key, char* out, size_t size);
int64_t info_number(const char* info, const char* key, int64_t otherwise);

// What the guard's record on a master says.
enum class Record { unread, none, ours, moving, other };

struct Master {
  redlock_site_facts_t facts;
  int err;                // why it cannot be asked
  int info_err;           // why it does not tell INFO
  int record_err;
  char state[48];         // the run id and the replication id as a seal begins with them
  char role[16], mode[16], version[32], run_id[48], policy[32];
  bool valkey;
  int64_t replicas, backlog, maxmemory, used_memory, evicted, aof, rdb_ok;
  Record record;
  char desc[192];         // of that record; "": there is none
  unsigned long their_masters, their_max_ttl_ms;
  bool sealed;            // the guard's watch is over
  int64_t guard_ms;       // how long the watch still takes, at most
  bool watched;           // guard_ms counts from a visit of this machine: it is exact

  const char* name() const { return label.c_str(); }
  Text label;             // its name, escaped
};

// The settings that an operator's question may be about.
struct Times {
  uint32_t ttl_ms, max_ttl_ms, node_timeout_ms, connect_timeout_ms, drift_ppm, drift_fixed_ms;
};
enum class Guarding { off, weak, strict };

struct Site {
  redlock_config_t* cfg = nullptr;
  Times times = {};
  Guarding guarding = Guarding::strict;
  unsigned masters = 0;
  unsigned quorum = 0;
  Master master[REDLOCK_MASTERS_MAX];
  char record_key[REDLOCK_KEY_PREFIX_MAX + 16];
  size_t record_key_size = 0;
  char seen_key[REDLOCK_KEY_PREFIX_MAX + 16];
  size_t seen_key_size = 0;
  char boot_id[40] = "";  // of this machine; "": it has none

  void open(redlock_config_t* given);
  void look();            // at each master
  void look_at(unsigned m);
  bool votes(unsigned m) const;  // as far as one can see from outside
  unsigned votes() const;
  unsigned reached() const;
  // Why a master does not vote, and what to do about it.
  Text why(unsigned m) const;
  const redlock_site_facts_t& facts() const { return master[0].facts; }

 private:
  void read_settings();
  void read_info(Master& out, const char* info) const;
  void read_record(Master& out, const Questions& asked, unsigned record, unsigned seen) const;
};

// A command has one site, and reconfigure two.
extern Site sites[2];

// The operator's word for what `what` says: asked on a terminal, given by --yes elsewhere. Otherwise the program ends.
void confirm(bool yes, const char* what);

}  // namespace redlock::tool
