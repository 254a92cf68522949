// SPDX-License-Identifier: MIT
#pragma once
#include <stddef.h>
#include <sys/types.h>

namespace redlock::tool {

// The start of a file, with a NUL behind it; -1: it cannot be read.
ssize_t read_file(const char* path, char* out, size_t size);

}  // namespace redlock::tool
