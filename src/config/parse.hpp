// SPDX-License-Identifier: MIT
//
// From JSON to the configuration.
#pragma once
#include "config/config.hpp"

struct cJSON;

namespace redlock {

// Adds what `json` says to `values`. On an error `values` stay as they were. A NUL must follow the bytes of `json`.
// exposed: the file that the text comes from, if others can read it; then a password in it is an error. `why` is empty.
// NOMEM writes nothing into it.
int load(Values& values, Bytes json, const char* exposed, TextWriter& why);

// Reads one item of "masters". `why` must hold its path.
int fill_master(const cJSON& item, Master& master, TextWriter& why);

}  // namespace redlock
