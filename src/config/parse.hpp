// SPDX-License-Identifier: MIT
//
// JSON -> configuration.
#pragma once
#include "config/config.hpp"

namespace redlock {

// Adds what `json` says to `values`, or leaves `values` as they were. A NUL stands behind `json`. NOMEM leaves `why` as
// it was.
int load(Values& values, Bytes json, TextWriter& why);

}  // namespace redlock
