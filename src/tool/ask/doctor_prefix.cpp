// SPDX-License-Identifier: MIT
//
// Is one key two resources? Where one key_prefix begins another, "plant1/" + "bus" and "" + "plant1/bus" are one key
// with two guards, and each guard lets its own clients in. Each prefix that clients have used has a record here. SCAN
// finds them all, and wants no permission of a key; records of shorter prefixes are asked for by name, too, for where
// SCAN is denied or has too many keys before it.
#include "tool/ask/doctor.hpp"

namespace redlock::tool {
namespace {

constexpr char begin[] = "redlock:", end[] = ":meta";
constexpr size_t begin_size = sizeof begin - 1, end_size = sizeof end - 1;
constexpr unsigned steps_max = 200;  // of SCAN: the look is bounded, however many keys there are

// `saw` tells of the first such record.
void note(Text& saw, const char* prefix, size_t size, const char* how) {
  if (saw.empty()) saw.add("key_prefix \"").escaped(prefix, size).add("\" has a record here, and %s", how);
}

void look_for_shorter(unsigned m, Text& saw) {
  const char* const prefix = site.facts().key_prefix;
  const size_t prefix_size = site.facts().key_prefix_size;
  Questions asked;
  Key keys[REDLOCK_KEY_PREFIX_MAX];
  for (size_t size = 0; size < prefix_size; ++size) {
    asked.command("EXISTS @", keys[size].add(begin).add(prefix, size).add(end));
  }
  if (prefix_size == 0 || ask(asked, m) != 0) return;
  for (unsigned size = 0; size < prefix_size; ++size) {
    if (asked[size].err == 0 && asked.item(size)->number != 0) note(saw, prefix, size, "begins this one");
  }
}

// Does one of the two begin the other?
void compare(Text& saw, const char* theirs, size_t size) {
  const size_t ours = site.facts().key_prefix_size, shorter = size < ours ? size : ours;
  if (size == ours || memcmp(theirs, site.facts().key_prefix, shorter) != 0) return;
  note(saw, theirs, size, size < ours ? "begins this one" : "this one begins it");
}

int look_for_all(unsigned m, Text& saw) {
  const Text pattern("%s*%s", begin, end);
  return scan(site.cfg, m, site.master[m].at, pattern, steps_max, [&saw](const char* key, size_t size) {
    if (size >= begin_size + end_size) compare(saw, key + begin_size, size - begin_size - end_size);
    return true;
  });
}

}  // namespace

// Shorter prefixes are asked for by name, for where SCAN is denied.
Text usable_prefix(unsigned m) {
  constexpr unsigned most = 8;
  const char* const ours = site.facts().key_prefix;
  const size_t ours_size = site.facts().key_prefix_size;
  Key keys[REDLOCK_KEY_PREFIX_MAX + most];
  unsigned count = 0;
  for (size_t size = ours_size; size-- > 0;) keys[count++].add(begin).add(ours, size).add(end);
  const unsigned all = count + most;
  scan(site.cfg, m, site.master[m].at, Text("%s*%s", begin, end), steps_max, [&](const char* key, size_t size) {
    const bool fits = size >= begin_size + end_size && size <= sizeof keys[0].text;
    if (fits) keys[count++].add(key, size);
    return count < all;
  });
  Questions asked;
  for (unsigned i = 0; i < count; ++i) asked.command("EXISTS @", keys[i]);
  if (count == 0 || ask(asked, m) != 0) return Text();
  for (unsigned i = 0; i < count; ++i) {
    const bool is_there = asked[i].err == 0 && asked.item(i)->number != 0;
    const size_t size = keys[i].size - begin_size - end_size;
    if (is_there) return Text("\"").escaped(keys[i].text + begin_size, size).add("\"");
  }
  return Text();
}

void check_prefix(unsigned m) {
  Text saw;
  look_for_shorter(m, saw);
  const int err = saw.empty() ? look_for_all(m, saw) : 0;
  if (!saw.empty()) {
    tell(Level::warn, saw, "one key may be two resources with two guards: let no prefix begin another");
  } else if (err == scan_cut) {
    tell(Level::unknown, "too many keys to look for records of other prefixes");
  } else if (err != 0) {
    tell(Level::unknown, Text("not told: %s", redlock_strerror(late(err))),
         "to look for records of other prefixes, let the user list names of keys (+scan)");
  } else {
    tell(Level::ok, "no record of a prefix that begins this one, or that this one begins");
  }
}

}  // namespace redlock::tool
