// SPDX-License-Identifier: MIT
//
// What the two files of the engine on OpenSSL 1.1.1 or 3 share. openssl_trust reads PEM and sets the rules of all
// connections to one master; openssl is one connection. A BIO of our own stands over the Wire, so bytes go between the
// socket and OpenSSL's record buffers without a copy between.
//
// OpenSSL keeps a queue of errors for each thread, which the application may use as well. What we find out does not
// depend on the queue: the BIO tells what the wire said, a callback tells which alert came. The queue is read after a
// failure only, where the newest entry is ours, and cleared then.
#pragma once
#include <openssl/ssl.h>

#include "port/tls/engine.hpp"

namespace redlock::tls {

struct Trust {
  SSL_CTX* context;
  BIO_METHOD* wire;
  bool authorities;
  bool certificate;
};

struct Ticket {
  SSL_SESSION* session;
  Peer peer;  // OpenSSL forgets the chain that it checked
};

struct Link {
  SSL* ssl;
  const Trust* trust;
  const Wire* wire;
  SSL_SESSION* session;  // the newest that the peer gave
  size_t unsent;         // plain text in the record that the wire has not taken as a whole
  ssize_t wire_said;     // in this call of the engine; 1: bytes moved, or nothing was asked
  int alert;             // the last of the peer's; none: -1
  int error;
  int refusal;           // why the chain is refused before it is checked; 0: it is not
  int64_t utc_s;         // when the connection began
  bool asked;            // for a certificate of ours
  bool dry;              // the last read() wanted input
  Peer peer;
};

inline Link& link_of(const SSL* ssl) { return *static_cast<Link*>(SSL_get_app_data(ssl)); }

template <class T, void (*release)(T*)>
struct Owned {
  T* value;
  explicit Owned(T* v) : value(v) {}
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { release(value); }
};
using Certificate = Owned<X509, X509_free>;

}  // namespace redlock::tls
