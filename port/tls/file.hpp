// SPDX-License-Identifier: MIT
//
// FileText: what a file of the TLS settings says, in memory that is wiped. FileStamp: has the file changed since?
#pragma once
#include <sys/types.h>
#include <time.h>

#include "base/tls_faults.hpp"
#include "base/types.hpp"

namespace redlock::tls {

// All zero: there is no file, or none that can be looked at.
struct FileStamp {
  timespec written = {};
  timespec changed = {};  // also where a copy kept the time of writing
  off_t size = 0;
  ino_t inode = 0;
  dev_t device = 0;

  bool operator==(const FileStamp& other) const;
};
FileStamp look_at(const char* path);

class FileText {
 public:
  static constexpr size_t size_max = 512 * 1024;  // a system's bundle of authorities has 200 KiB

  FileText() = default;
  ~FileText();  // wipes
  FileText(const FileText&) = delete;
  FileText& operator=(const FileText&) = delete;

  // Once. `stamp` is that of what was read, or all zero. Nobody but root and this user may write the file. secret:
  // others may not read it either; its group may be the service's. Fault::none and no text: no memory.
  TlsFile::Fault read(const char* path, bool secret, FileStamp& stamp);
  Bytes text() const { return {data_, size_}; }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace redlock::tls
