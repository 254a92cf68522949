// SPDX-License-Identifier: MIT
//
// stdin, stdout and stderr, as this process has them; and the reading of small files.
#pragma once
#include <stddef.h>
#include <sys/types.h>

namespace redlock::tool {

// Those that are closed stay closed, for us and for a command. But no descriptor of ours takes their places: what is
// said on stderr would go to a master, and libuv ends a program whose loop has such a number.
void occupy_standard_descriptors();
// stdin and stdout are the command's from now on. Who reads its output learns of its end when it ends.
void let_go_of_streams();

// The start of a file, with a NUL behind it; -1: it cannot be read, and "" is there. A link is not followed.
ssize_t read_file(const char* path, char* out, size_t size);

}  // namespace redlock::tool
