// SPDX-License-Identifier: MIT
//
// Reads the two kinds of files: a configuration, and a password, which no other user may be able to read.
#pragma once
#include "config/config.hpp"

namespace redlock {

// Reads the whole of a regular file into `buffer`; `size` is the number of bytes. Only regular files are read, because
// a read from a FIFO could block. `why` must hold where the path came from. SYSTEM: the file cannot be read. CONFIG: it
// is not a regular file, can be written by group or others, belongs neither to root nor to this user, or is longer than
// capacity. A link is followed, and its target is judged. exposed: others can read the file.
int read_file(const char* path, char* buffer, size_t capacity, size_t& size, bool& exposed, TextWriter& why);

// Reads a password. SYSTEM: the file cannot be read, or is a symbolic link. CONFIG: it is not a regular file, belongs
// neither to root nor to this user, is open to group or others, or does not hold one line. A newline at the end is no
// part of the password.
int read_password_file(const char* path, Text& out, TextWriter& why);

}  // namespace redlock
