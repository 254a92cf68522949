// SPDX-License-Identifier: MIT
//
// JSON -> configuration.
#pragma once
#include "config/config.hpp"

struct cJSON;

namespace redlock {

// Adds what `json` says to `values`, or leaves `values` as they were. A NUL stands behind `json`. NOMEM leaves `why` as
// it was.
int load(Values& values, Bytes json, TextWriter& why);

// One item of "masters". `why` begins with its path.
int fill_master(const cJSON& item, Master& master, TextWriter& why);

}  // namespace redlock
