// SPDX-License-Identifier: MIT
//
// What the files of the engine by mbedTLS, 2.28 or 3.6, share. It speaks TLS 1.2: 2.28 knows no other, and a 3.6 that
// offers 1.3 too can neither take new keys nor use a server of 1.2 with an RSA key. Fields that no function of the
// library tells are read through MBEDTLS_PRIVATE.
#pragma once
#include <mbedtls/ssl.h>
#if MBEDTLS_VERSION_MAJOR < 3
#define MBEDTLS_PRIVATE(member) member
#define MBEDTLS_ERR_SSL_BAD_PROTOCOL_VERSION MBEDTLS_ERR_SSL_BAD_HS_PROTOCOL_VERSION
#define MBEDTLS_ERR_SSL_BAD_CERTIFICATE MBEDTLS_ERR_SSL_BAD_HS_CERTIFICATE
#endif
#include <mbedtls/asn1.h>
#include <mbedtls/cipher.h>
#include <mbedtls/ecp.h>
#include <mbedtls/md.h>
#include <mbedtls/pem.h>

#include "port/tls/engine.hpp"

namespace redlock::tls {

struct Trust {
  mbedtls_ssl_config config;
  mbedtls_x509_crt authorities;
  mbedtls_x509_crt own;
  mbedtls_pk_context key;
  bool has_own;
};

// The validity of each certificate of the chain that was checked, the peer's first.
struct Chain {
  unsigned size;  // 0: nothing was checked, pins decide alone
  Validity validity[chain_max];
};

struct Link {
  mbedtls_ssl_context ssl;
  const Wire* wire;
  Chain chain;
  int error;
  bool wire_ended;
  bool resumed;
  bool has_own;
  bool gave_ticket;
};

struct Ticket {
  mbedtls_ssl_session session;
  Chain chain;  // a resumption shows no certificate
};

// An error is a sum of two: what the module says, and what one below it said.
inline int low_part(int ret) { return -(-ret & 0x7f); }

inline bool is_lack_of_memory(int ret) {
  const int low = low_part(ret), high = -(-ret & 0xff80);
  return high == MBEDTLS_ERR_SSL_ALLOC_FAILED || high == MBEDTLS_ERR_X509_ALLOC_FAILED ||
         high == MBEDTLS_ERR_PK_ALLOC_FAILED || high == MBEDTLS_ERR_PEM_ALLOC_FAILED ||
         high == MBEDTLS_ERR_ECP_ALLOC_FAILED || high == MBEDTLS_ERR_MD_ALLOC_FAILED ||
         high == MBEDTLS_ERR_CIPHER_ALLOC_FAILED || low == MBEDTLS_ERR_MPI_ALLOC_FAILED ||
         low == MBEDTLS_ERR_ASN1_ALLOC_FAILED;
}

}  // namespace redlock::tls
