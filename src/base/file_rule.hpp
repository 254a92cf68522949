// SPDX-License-Identifier: MIT
//
// Who may write a file that says whom the client trusts: root and the user of this process, and nobody else. The rule
// holds for configurations (config/file) and for the files of the TLS settings (port/tls/file). Whoever can write such
// a file chooses the masters.
#pragma once
#include <sys/stat.h>
#include <unistd.h>

namespace redlock {

inline bool is_strangers(const struct stat& status) { return status.st_uid != 0 && status.st_uid != geteuid(); }
inline bool others_write(const struct stat& status) { return (status.st_mode & 022) != 0; }

#define REDLOCK_STRANGERS_FILE "belongs neither to root nor to this user"
#define REDLOCK_OTHERS_WRITE "can be written by group or others; chmod go-w"

}  // namespace redlock
