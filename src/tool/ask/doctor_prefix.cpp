// SPDX-License-Identifier: MIT
//
// Is one key two resources? Where one key_prefix begins another, "plant1/" + "bus" and "" + "plant1/bus" are one key
// with two guards, and each guard lets its own clients in. Each prefix that clients have used has a record here: the
// records of shorter prefixes are asked for by name, those of longer ones are looked for.
#include "tool/ask/doctor.hpp"

namespace redlock::tool {
namespace {

constexpr char begin[] = "redlock:", end[] = ":meta";
constexpr size_t begin_size = sizeof begin - 1, end_size = sizeof end - 1;
constexpr unsigned steps_max = 200;  // of SCAN: the look is bounded, however many keys there are

struct Found {
  Text saw;  // empty: no such record
  int err = 0;
};

void note(Found& out, const char* prefix, size_t size, const char* how) {
  if (out.saw.empty()) out.saw.add("key_prefix \"").escaped(prefix, size).add("\" has a record here, and %s", how);
}

void look_for_shorter(const redlock_config_t* cfg, unsigned m, const redlock_site_facts_t& facts, Found& out) {
  if (facts.key_prefix_size == 0) return;
  Questions asked;
  Key keys[REDLOCK_KEY_PREFIX_MAX];
  for (unsigned size = 0; size < facts.key_prefix_size; ++size) {
    asked.command("EXISTS @", keys[size].add(begin).add(facts.key_prefix, size).add(end));
  }
  out.err = asked.ask(cfg, m);
  for (unsigned size = 0; size < facts.key_prefix_size && out.err == 0; ++size) {
    out.err = asked[size].err;
    if (out.err == 0 && asked.item(size)->number != 0) note(out, facts.key_prefix, size, "begins this one");
  }
}

void look_for_longer(const redlock_config_t* cfg, unsigned m, const redlock_site_facts_t& facts, Found& out) {
  Text pattern;
  pattern.add("%s%s?*%s", begin, pattern_of(facts.key_prefix, facts.key_prefix_size).c_str(), end);
  out.err = scan(cfg, m, pattern, steps_max, [&out](const char* key, size_t size) {
    if (size > begin_size + end_size) {
      note(out, key + begin_size, size - begin_size - end_size, "this one begins it");
    }
    return true;
  });
}

}  // namespace

void Doctor::check_prefix(unsigned m, const Master&) {
  Found found;
  look_for_shorter(site_.cfg, m, site_.facts(), found);
  if (found.err == 0 && found.saw.empty()) look_for_longer(site_.cfg, m, site_.facts(), found);
  if (!found.saw.empty()) {
    tell(Level::warn, found.saw, "one key may be two resources with two guards: let no prefix begin another");
  } else if (found.err == scan_cut) {
    tell(Level::unknown, "too many keys to look for records of other prefixes");
  } else if (found.err != 0) {
    tell(Level::unknown, Text().add("not told: %s", redlock_strerror(found.err)),
         "to look for records of other prefixes, let the user read redlock:* (+scan +exists)");
  } else {
    tell(Level::ok, "no record of a prefix that begins this one, or that this one begins");
  }
}

}  // namespace redlock::tool
