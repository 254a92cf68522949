// SPDX-License-Identifier: MIT
//
// FileText: what a file of the TLS settings says, in memory that is wiped.
#pragma once
#include "base/file_rule.hpp"
#include "base/types.hpp"

namespace redlock::tls {

class FileText {
 public:
  static constexpr size_t size_max = 512 * 1024;  // a system's bundle of authorities has 200 KiB

  FileText() = default;
  ~FileText();  // wipes
  FileText(const FileText&) = delete;
  FileText& operator=(const FileText&) = delete;

  // Once. `stamp` is that of what was read, or all zero. FileFault::none and no text: no memory.
  FileFault read(const char* path, bool secret, FileStamp& stamp);
  Bytes text() const { return {data_, size_}; }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace redlock::tls
