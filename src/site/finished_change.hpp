// SPDX-License-Identifier: MIT
//
// What a master's record says of a change of masters that is done (scripts/move.lua).
#pragma once
#include <stdint.h>

#include "master/fingerprint.hpp"

namespace redlock {

// Reads a finished change away from the configuration with the fingerprint `ours` from the fields desc, q and left of a
// record; "": no such field. theirs: the fingerprint that the site was changed to. done_s: seconds since 1970 by the
// master's clock; 0: unknown. False: there was no such change.
bool read_change(const char* desc, const char* q, const char* left, const char* ours, char (&theirs)[fingerprint_max],
                 int64_t& done_s);

}  // namespace redlock
