// SPDX-License-Identifier: MIT
//
// Engine: what the port asks of a TLS library. openssl.cpp and mbedtls.cpp implement these functions; a build has one
// of the two (REDLOCK_TLS). An engine knows no socket, no clock and no file: bytes of the wire come and go through a
// Wire, the time of day is an argument of whoever judges certificates (port/tls/certificate), and what files say is
// passed as text. Each engine defines Trust, Link and Ticket as it needs them, and allocates them.
//
// An engine checks that the peer has the key of its certificate, and, where the Trust has authorities, that a chain
// of signatures leads from the certificate to one of them. Where several certificates have the name that a chain needs,
// an engine takes one that is valid now. It compares neither names nor pins: both engines leave those, and the dates of
// the chain that was found, to port/tls/certificate, so that they are judged alike. What the keys of a chain may cost
// is judged before the engine computes with them (port/tls/chain).
#pragma once
#include <sys/types.h>

#include "base/types.hpp"

namespace redlock::tls {

// The two ways of a connection's bytes. Both functions return the number of bytes that were moved, above 0, or one of
// the numbers below.
struct Wire {
  static constexpr ssize_t end = 0;           // of what the peer sends
  static constexpr ssize_t nothing_now = -1;  // no byte has arrived, or no byte can leave, now
  static constexpr ssize_t broken = -2;
  void* self;
  ssize_t (*receive)(void* self, char* at, size_t room);
  ssize_t (*send)(void* self, const char* data, size_t size);
};

enum class Progress : uint8_t {
  done,
  wants_input,   // go on when Wire::receive has bytes
  wants_output,  // go on when Wire::send takes bytes
  ended,         // the peer has closed the connection, by an alert or without one
  failed,        // link_error() says why
};

struct Trust;   // what the files of one master say: authorities, our certificate and key
struct Link;    // the TLS of one connection
struct Ticket;  // a session that a later connection may resume

// The texts of the files, PEM. data null: the settings name no such file. An empty text is no PEM.
struct Material {
  Bytes authorities;
  Bytes certificate;
  Bytes key;
};
enum class Part : uint8_t { none, authorities, certificate, key, pair, memory, version };

// Part::none: `out` is made. Else the part that is no PEM. Part::pair: the key is not the certificate's. `out` is
// unchanged then. tls13: refuse TLS 1.2. Part::version: the engine speaks no TLS 1.3 (mbedTLS).
Part make_trust(Trust*& out, const Material& material, bool tls13);
void free_trust(Trust* trust);  // wipes the key; null: nothing

// name: sent to the peer (SNI) where it is a host name; empty where the server_name is an address. The strings, the
// trust and the wire must stay until free_link. The engine looks into `wire` for each call: its owner may exchange the
// functions there between two calls of the engine. resume: null, or a session that is tried. utc_s: the time of day,
// for the choice among certificates of one name. Null: no memory.
Link* make_link(const Trust& trust, const Wire& wire, Bytes name, const Ticket* resume, int64_t utc_s);
void free_link(Link* link);  // sends nothing, and wipes the secrets; null: nothing

// Goes on with the handshake as far as the wire gives and takes bytes.
Progress handshake(Link& link);
// Takes plain text from the wire. done: got is above 0. ended: no more comes. wants_output: TLS itself has something to
// say first (an answer to a new key); call flush() until it is done.
Progress read(Link& link, char* at, size_t room, size_t& got);
// True: read() has bytes although the wire may give none.
bool has_read_ahead(const Link& link);
// Encrypts a part of the text, at most one record. `taken` bytes count as sent, even where the result is wants_output:
// call flush() until it is done before the next write.
Progress write(Link& link, Bytes text, size_t& taken);
Progress flush(Link& link);
// Tells the peer that no more follows (close_notify), as far as the wire takes it at once.
void say_goodbye(Link& link);

// After `failed`: the TLS numbers of redlock.h, NOMEM, DISCONNECTED where the wire broke, or SYSTEM where the kernel
// had no random bytes yet.
int link_error(const Link& link);
bool was_resumed(const Link& link);

// What the peer showed. The certificates are known after a resumption too.
struct Validity {
  int64_t not_before_s;  // seconds since 1970, UTC
  int64_t not_after_s;
};
constexpr unsigned chain_max = 8;
struct Peer {
  unsigned certificates;        // of the chain that was checked, the peer's first; with pins alone: 1
  Validity validity[chain_max];
  unsigned char key_sha256[32];  // of the peer's SubjectPublicKeyInfo, DER
};
// False: there is no certificate, or the chain is longer than chain_max.
bool read_peer(const Link& link, Peer& out);
// Calls `entry` for each name of the certificate's subjectAltName that is a dNSName or an iPAddress (4 or 16 bytes).
struct AltNames {
  void* self;
  void (*entry)(void* self, bool is_address, Bytes bytes);
};
void read_alt_names(const Link& link, const AltNames& to);

// "TLSv1.3" and "TLS_AES_256_GCM_SHA384", as the library names them. Static, or valid until free_link.
const char* link_version(const Link& link);
const char* link_cipher(const Link& link);

// A session of this connection that may be resumed; null: none (yet). With TLS 1.3 it arrives with the first reads. The
// caller owns it.
Ticket* take_ticket(Link& link);
void free_ticket(Ticket* ticket);  // wipes it; null: nothing

// "openssl/3.0.19": the library that runs.
const char* engine_version();

}  // namespace redlock::tls
