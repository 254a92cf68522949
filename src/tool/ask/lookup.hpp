// SPDX-License-Identifier: MIT
//
// Lookup: who has a resource, as the keys on the masters say at this moment.
#pragma once
#include "tool/ask/site.hpp"

namespace redlock::tool {

enum class Verdict { free, held, unclear, unknown };
inline const char* name_of(Verdict verdict) {
  constexpr const char* names[] = {"free", "held", "unclear", "unknown"};
  return names[static_cast<int>(verdict)];
}

struct Lookup {
  // What one master says of the key.
  struct Key {
    int err;                // why it said nothing
    const char* denied;     // what its ACL needs: "~", which is the key, or a command
    bool is_there;
    int64_t ends_ms;        // -1: it has no end
    uint64_t value_hash;    // values with the same hash are one value
    char name[REDLOCK_CLIENT_NAME_MAX + 1];
    size_t name_size;
    bool foreign;           // no client of this library wrote it
  };
  redlock_resource_t resource;
  Key key[REDLOCK_MASTERS_MAX];
  // What follows.
  Verdict verdict;
  unsigned answered;
  unsigned on;              // masters that have the value that most have
  unsigned first;           // one of them
  int64_t ends_min_ms, ends_max_ms;

  bool has_value(unsigned m) const { return key[m].err == 0 && key[m].is_there; }
  // How many of the first `masters` have the value that m has.
  unsigned same(unsigned m, unsigned masters) const;
  void judge(const Site& site);
  Text name() const { return Text().escaped(static_cast<const char*>(resource.data), resource.size); }
  // "gw-03", or "a foreign value"
  Text holder(unsigned m) const;
  Text sentence(const Site& site) const;
};

// Asks every master that could be asked for these resources.
void look_up(const Site& site, const redlock_resource_t* resources, unsigned count, Lookup* out);

// All keys of a master that begin with the prefix, and are none of the library's own, without the prefix. Whose they
// are is seen when they are looked up. on_key: false ends the scan. Returns 0, or why the keys are not known.
using OnKey = bool(const char* name, size_t size);
int scan(const Site& site, unsigned m, OnKey* on_key);

}  // namespace redlock::tool
