// SPDX-License-Identifier: MIT
#pragma once
#include "base/types.hpp"

namespace redlock {

// The name of an enum redlock_master_state.
const char* state_name(int32_t state);

// Writes the status as one JSON object, schema "redlock.status/1", directly into the buffer. It uses no heap, so it may
// be called at any time. Returns the bytes needed, with the NUL; if they are more than `capacity`, the buffer holds an
// empty string. 64-bit numbers are written as strings, because JSON readers keep only 53 bits of a number.
size_t write_status_json(char* buffer, size_t capacity, const redlock_status_t& status,
                         const redlock_master_status_t* masters, unsigned count);

}  // namespace redlock
