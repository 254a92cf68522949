// SPDX-License-Identifier: MIT
//
// Reads the files that a configuration consists of, and says what is wrong with a file (base/file_rule).
#pragma once
#include "base/file_rule.hpp"
#include "config/config.hpp"

namespace redlock {

// "/etc/redlock/gw.key: can be read by others; type: chmod o-r /etc/redlock/gw.key". An empty path is not written.
void write_file_fault(TextWriter& out, Bytes path, FileFault fault);

// Reads the whole of a configuration into `buffer`; `size` is the number of bytes. `why` is empty. SYSTEM: the file
// cannot be read. CONFIG: it breaks the rule, or is longer than capacity. exposed: others can read the file.
int read_file(const char* path, char* buffer, size_t capacity, size_t& size, bool& exposed, TextWriter& why);

// Reads a password. `why` holds the field. SYSTEM: the file cannot be read. CONFIG: it breaks the rule, or does not
// hold one line. NOMEM.
int read_password_file(const char* path, PasswordFile*& out, TextWriter& why);

}  // namespace redlock
