// SPDX-License-Identifier: MIT
//
// Fingerprint: which configuration is this? The text stands in a master's record as `desc`, and is the same for all
// clients of one configuration, whatever the order of their masters. It is made of the masters' names, never of
// addresses: two gateways may reach one master by different addresses. The names themselves stand beside the
// fingerprint, so that a person can be told which master differs. Nothing rests on the names.
#pragma once
#include "base/settings.hpp"
#include "base/types.hpp"

namespace redlock {

constexpr size_t fingerprint_max = 80;      // of any version
constexpr size_t own_fingerprint_max = 56;  // of this one
Bytes write_fingerprint(const Settings& settings, unsigned quorum, char (&text)[fingerprint_max]);

// What a fingerprint says of its configuration; nothing when the text is no fingerprint.
struct Fingerprint {
  uint32_t max_ttl_ms = 0;
  uint32_t masters = 0;
};
Fingerprint read_fingerprint(Bytes text);

// The masters' names, sorted, with commas between; what does not fit is left out, and "..." says so.
constexpr size_t names_max = 78;
Bytes write_names(const Settings& settings, char (&text)[names_max]);
// The first name of a list that is not in another list; nothing where a list is not whole.
Bytes first_missing(Bytes list, Bytes other);

}  // namespace redlock
