// SPDX-License-Identifier: MIT
//
// Where the password of one master stands, and what stands there. A client whose password is refused reads a file that
// has changed once more (port/uv/connection).
#pragma once
#include "base/file_rule.hpp"
#include "base/types.hpp"

namespace redlock {

constexpr size_t password_rest = 3;  // behind a password: CR, LF, and one byte that shows that the file is too long

// Of the configuration, or of a client: then it lies in the client's memory.
struct PasswordFile {
  FileStamp stamp;    // of what was read last, also where it was no good
  const char* path;
  char* room;         // for the password
  uint32_t size;      // of the room; of the configuration: of the password
  // ---- of a client
  char* spare = nullptr;     // so many bytes and password_rest more, as the room has, for the next one
  Bytes* password = nullptr; // what the master is sent
  FileFault fault = FileFault::none;  // of the last time
  bool refused = false;  // the master refused the password that we have, and the file was not looked at since
  bool told = true;      // the log was told of the last time
};

// Reads one line of at most `max` bytes, without its end, into a buffer of password_rest bytes more. The stamp is that
// of what was read, and else as it was. Of `unreadable` see errno. The caller wipes the buffer.
FileFault read_password(const char* path, char* buffer, size_t max, size_t& size, FileStamp& stamp);

// Reads a file anew that has changed since. True: another password is in use.
bool read_again(PasswordFile& file);

}  // namespace redlock
