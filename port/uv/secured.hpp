// SPDX-License-Identifier: MIT
//
// What the connections of port/uv keep for TLS. In a build without TLS these types are empty, with_tls is false, and
// port/uv/securing.cpp, which has every function about them, is not compiled.
#pragma once
#include "base/masters.hpp"

#ifdef REDLOCK_TLS
#include "base/time.hpp"
#include "port/tls/tls.hpp"
#endif

namespace redlock {

#ifdef REDLOCK_TLS

constexpr bool with_tls = true;

// Of one connection.
struct Secured {
  Tls tls;
  tls::Wire wire;                   // the connection's socket
  Duration longest_step;            // of a handshake
  bool spoke_tls = false;           // some handshake with this master was done
  uint8_t wasted = 0;               // whole shares in a row without a byte of text
  uint16_t share = 0;               // bytes that this event may still take from the socket
  TlsFile file_told;                // the broken file that the log was told of
};

// What a connection has shown.
struct TlsReport {
  Tls::Facts facts;
  Duration longest_step;
};

// Of the driver: connections that have a step to take although their socket is silent, and the one that took the last
// step.
struct Steps {
  Masters ready;
  MasterIndex last = 0;
};

#else

constexpr bool with_tls = false;
namespace tls {
enum class Progress : uint8_t;
}
struct Secured {};
struct TlsReport;
struct Steps {};

#endif

}  // namespace redlock
