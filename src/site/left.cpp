// SPDX-License-Identifier: MIT
//
// redlock_site_left() reads from the records whether a change of masters has left a configuration behind, and for which
// one. It asks one master after the other, until a quorum records the change or no longer can.
#include <redlock/site.h>
#include <string.h>

#include "config/config.hpp"
#include "config/version.hpp"
#include "master/guard.hpp"
#include "site/finished_change.hpp"

namespace redlock {
namespace {

const char* text_of(const redlock_question_t& asked, uint32_t n) {
  const bool is_text = n < asked.items && asked.item[n].type == REDLOCK_ITEM_TEXT;
  return is_text ? asked.item[n].text : "";
}

// Reads a finished change away from this configuration from a master's record. False: none, or no answer.
bool ask(const redlock_config_t* cfg, uint32_t m, char (&theirs)[fingerprint_max], int64_t& done_s) {
  redlock_site_facts_t facts = {};
  facts.size = sizeof facts;
  if (redlock_site_facts(cfg, m, &facts) != 0) return false;
  char key[meta_key_max];
  CommonSettings prefix;
  prefix.key_prefix = Bytes(facts.key_prefix, facts.key_prefix_size);
  const Bytes record = write_meta_key(prefix, key);
  const redlock_resource_t words[] = {redlock_resource("HMGET"), {record.data, static_cast<uint32_t>(record.size)},
                                      redlock_resource("desc"), redlock_resource("q"), redlock_resource("left")};
  redlock_question_t asked = {};
  asked.word = words;
  asked.words = 5;
  alignas(redlock_item_t) char reply[2'048];
  if (redlock_site_ask(cfg, m, &asked, 1, reply, sizeof reply) != 0 || asked.err != 0) return false;
  return read_change(text_of(asked, 1), text_of(asked, 2), text_of(asked, 3), facts.record, theirs, done_s);
}

// Locks under another key prefix are other locks, so a configuration with another prefix is no successor.
bool is_of_prefix(const redlock_site_facts_t& one, const redlock_site_facts_t& other) {
  return Bytes(one.key_prefix, one.key_prefix_size) == Bytes(other.key_prefix, other.key_prefix_size);
}

int ask_all(const redlock_config_t* old_cfg, const char* wanted, redlock_site_left_t& out) {
  char theirs[fingerprint_max], first[fingerprint_max] = "";
  for (uint32_t m = 0; m < out.old_masters && out.say + (out.old_masters - m) >= out.needed; ++m) {
    int64_t done_s = 0;
    if (!ask(old_cfg, m, theirs, done_s)) continue;
    if (wanted != nullptr ? strcmp(theirs, wanted) != 0 : *first != '\0' && strcmp(theirs, first) != 0) continue;
    memcpy(first, theirs, sizeof first);
    const Fingerprint numbers = read_fingerprint(Bytes(theirs, strlen(theirs)));
    out.masters = numbers.masters;
    out.max_ttl_ms = numbers.max_ttl_ms;
    if (done_s > out.done_s) out.done_s = done_s;
    if (++out.say == out.needed) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace redlock

extern "C" int redlock_site_left(const redlock_config_t* old_cfg, const redlock_config_t* new_cfg,
                                 redlock_site_left_t* left) {
  redlock_site_left_t own = {};
  const bool fits = left == nullptr || redlock::clear_output(left, sizeof *left, sizeof *left);
  redlock_site_left_t& out = left != nullptr ? *left : own;
  if (!redlock::is_build_of_library()) return REDLOCK_E_NOTSUP;
  if (old_cfg == nullptr || !fits) return REDLOCK_E_INVAL;
  redlock_site_facts_t before = {}, after = {};
  before.size = after.size = sizeof before;
  int err = redlock_site_facts(old_cfg, 0, &before);
  if (err == 0 && new_cfg != nullptr) err = redlock_site_facts(new_cfg, 0, &after);
  if (err != 0) return err;
  out.size = sizeof out;
  out.old_masters = before.masters;
  out.needed = before.quorum;
  if (new_cfg != nullptr && !redlock::is_of_prefix(before, after)) return 0;
  return redlock::ask_all(old_cfg, new_cfg != nullptr ? after.record : nullptr, out);
}
