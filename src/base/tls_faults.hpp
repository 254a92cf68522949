// SPDX-License-Identifier: MIT
//
// What the port finds wrong with the TLS of one master, as data. config/tls makes the sentences, for the log, events,
// redlock_config_error() and the doctor alike.
#pragma once
#include <stdint.h>

#include "base/file_rule.hpp"

namespace redlock {

// Which certificate of a master's chain is not valid today, and since or until when.
struct TlsDate {
  enum class Of : uint8_t { none, master, intermediate, authority };
  int64_t at_s = 0;  // seconds since 1970, UTC
  Of of = Of::none;
};

// Which file of the settings cannot be used, and why.
struct TlsFile {
  enum class Name : uint8_t { ca_file, cert_file, key_file };
  using Fault = FileFault;
  Name name = Name::ca_file;
  Fault fault = Fault::none;
  const char* path = nullptr;

  bool operator==(const TlsFile& other) const { return name == other.name && fault == other.fault; }
};

}  // namespace redlock
