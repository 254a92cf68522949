// SPDX-License-Identifier: MIT
#pragma once
#include "base/types.hpp"

namespace redlock {

// Status as one JSON object, schema "redlock.status/1", straight into the buffer: no tree and no heap, so it may be
// asked for at any time. Returns the bytes needed with the NUL; when they are more than `capacity`, the buffer holds an
// empty string. 64-bit numbers are strings, because JSON readers keep only 53 bits of a number.
size_t write_status_json(char* buffer, size_t capacity, const redlock_status_t& status,
                         const redlock_master_status_t* masters, unsigned count);

}  // namespace redlock
