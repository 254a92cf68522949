// SPDX-License-Identifier: MIT
//
// From JSON to the configuration.
#pragma once
#include "config/config.hpp"

struct cJSON;

namespace redlock {

// Adds what `json` says to `values`. On an error `values` stay as they were. A NUL must follow the bytes of `json`.
// NOMEM writes nothing into `why`.
int load(Values& values, Bytes json, TextWriter& why);

// Reads one item of "masters". `why` must hold its path.
int fill_master(const cJSON& item, Master& master, TextWriter& why);

}  // namespace redlock
