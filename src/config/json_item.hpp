// SPDX-License-Identifier: MIT
//
// One value of the tree that cJSON has made, and the error texts about such a value.
#pragma once
#include <cjson/cJSON.h>

#include "config/text.hpp"

namespace redlock {

constexpr size_t shown_bytes = 40;  // longest part of a name or value from the JSON that an error text quotes

// The same as cJSON_IsString() and its like, without a call.
inline bool is(const cJSON& item, int type) { return (item.type & 0xFF) == type; }

// For values that cannot be a secret.
void write_value(TextWriter& why, const cJSON& item);

// Ends the sentence in `why` and returns the error.
int not_a(const char* wanted, const cJSON& item, TextWriter& why);

}  // namespace redlock
