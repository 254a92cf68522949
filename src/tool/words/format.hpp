// SPDX-License-Identifier: MIT
//
// snprintf() for the few conversions that this program uses. The C library's own knows floating point, wide characters
// and positions, and would be a tenth of what a static program adds to the library.
#pragma once
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

namespace redlock::tool {

#define REDLOCK_TOOL_FORMAT(place) __attribute__((format(printf, place, place + 1)))

// %s %c %d %u %x %%, with - and 0, a width, .* before s, and l or ll before a number. What does not fit is cut. The
// bytes in `out`, without the NUL.
size_t format_list(char* out, size_t size, const char* format, va_list arguments);
REDLOCK_TOOL_FORMAT(3) size_t format_text(char* out, size_t size, const char* format, ...);

// The number at the start of what a server says, cut to -most .. most: sums and units must not overflow. *behind: its
// end.
int64_t number_within(int64_t most, const char* text, char** behind = nullptr);

}  // namespace redlock::tool
