// SPDX-License-Identifier: MIT
//
// Reading the two kinds of files: the configuration, and a password that must be nobody else's to read.
#pragma once
#include "config/config.hpp"

namespace redlock {

// The whole of a regular file into `buffer`; a descriptor that blocks (a FIFO) is never read. `size` gets the bytes.
// `why` is to hold where the path came from. SYSTEM: cannot be read. CONFIG: not a regular file, or longer than
// capacity.
int read_file(const char* path, char* buffer, size_t capacity, size_t& size, TextWriter& why);

// A password: not through a symbolic link, owned by root or by us, closed to group and others, one trailing newline
// ignored. SYSTEM: cannot be read. CONFIG: any of that is not so.
int read_password_file(const char* path, Text& out, TextWriter& why);

}  // namespace redlock
