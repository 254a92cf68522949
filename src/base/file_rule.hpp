// SPDX-License-Identifier: MIT
//
// The one rule of the files that a client reads: configurations, password files, the files of the TLS settings. Whoever
// can write one chooses the masters, and whoever can read a secret one can pass for this gateway.
//
//   the file      belongs to root or this user; nobody else may write it
//   a secret one  besides: others may not read it. Its group may: root:GROUP 640, and the credentials of systemd
//   a link        to it belongs to root or this user: else a stranger could name a file of root's in our place
//
// What was opened is judged, so no path can change in between. The folders on the way are not judged, nor are links
// among them: whoever can write a folder has replaced it.
#pragma once
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

namespace redlock {

// What is wrong with a file. In the order of the texts in config/file.cpp.
enum class FileFault : uint8_t {
  none, missing, denied, unreadable, folder, no_file, strangers_link, strangers, others_write, others_read, empty,
  too_long, holds_nul, several_lines,       // of a password
  too_large, no_pem, encrypted, other_key,  // of TLS
};

// All zero: there is no file, or none that can be looked at.
struct FileStamp {
  timespec written = {};
  timespec changed = {};  // also where a copy kept the time of writing
  off_t size = 0;
  ino_t inode = 0;
  dev_t device = 0;

  bool operator==(const FileStamp& other) const;
};
FileStamp stamp_of(const struct stat& status);
FileStamp look_at(const char* path);  // follows every link

constexpr bool others_read(const struct stat& status) { return (status.st_mode & 04) != 0; }

// Opens a regular file that follows the rule, and never waits for one that is not. -1: the fault says why, and of
// `unreadable` errno. Else `status` is that of what was opened.
int open_by_rule(const char* path, bool secret, struct stat& status, FileFault& fault);
// Reads until the end or the capacity. False: see errno.
bool read_from(int fd, char* buffer, size_t capacity, size_t& size);

}  // namespace redlock
