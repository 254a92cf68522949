// SPDX-License-Identifier: MIT
//
// The engine by mbedTLS: what the files of one master say, and what is offered to its server.
#include "port/tls/mbedtls.hpp"

#include <mbedtls/entropy.h>
#include <mbedtls/platform_util.h>
#include <stdlib.h>

#include "port/posix/entropy.hpp"

namespace redlock::tls {

namespace {

// Forward secrecy and authenticated encryption alone. ChaCha20 first: processors of gateways seldom have AES.
const int suites[] = {MBEDTLS_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
                      MBEDTLS_TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
                      MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
                      MBEDTLS_TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
                      MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
                      MBEDTLS_TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
                      0};

// The cheapest first: the library's own order begins with P-521, and servers take the first that they know. The last
// two are there for certificates.
#if MBEDTLS_VERSION_MAJOR >= 3
const uint16_t groups[] = {MBEDTLS_SSL_IANA_TLS_GROUP_X25519, MBEDTLS_SSL_IANA_TLS_GROUP_SECP256R1,
                           MBEDTLS_SSL_IANA_TLS_GROUP_SECP384R1, MBEDTLS_SSL_IANA_TLS_GROUP_SECP521R1,
                           MBEDTLS_SSL_IANA_TLS_GROUP_NONE};
#else
const mbedtls_ecp_group_id groups[] = {MBEDTLS_ECP_DP_CURVE25519, MBEDTLS_ECP_DP_SECP256R1, MBEDTLS_ECP_DP_SECP384R1,
                                       MBEDTLS_ECP_DP_SECP521R1, MBEDTLS_ECP_DP_NONE};
#endif

int random_bytes(void*, unsigned char* out, size_t size) {
  return fill_random(out, size) == size ? 0 : MBEDTLS_ERR_ENTROPY_SOURCE_FAILED;
}

// ---- what the files say

// The library wants the text's zero byte.
char* copy_pem(Bytes text) {
  char* copy = static_cast<char*>(malloc(text.size + 1));
  if (copy == nullptr) return nullptr;
  memcpy(copy, text.data, text.size);
  copy[text.size] = '\0';
  return copy;
}

// How many certificates the text begins. The library takes a certificate in DER, where the text begins none, and leaves
// out one that is cut short, as in a file that is being written.
unsigned begun_certificates(const char* pem) {
  unsigned n = 0;
  while ((pem = strstr(pem, "-----BEGIN CERTIFICATE-----")) != nullptr) {
    ++pem;
    ++n;
  }
  return n;
}

Part read_certificates(mbedtls_x509_crt& out, Bytes text, Part part) {
  char* pem = copy_pem(text);
  if (pem == nullptr) return Part::memory;
  unsigned left = begun_certificates(pem);
  const int ret = mbedtls_x509_crt_parse(&out, reinterpret_cast<unsigned char*>(pem), text.size + 1);
  free(pem);
  if (ret < 0 && is_lack_of_memory(ret)) return Part::memory;
  for (const mbedtls_x509_crt* at = &out; at != nullptr && at->raw.p != nullptr; at = at->next) --left;
  return ret == 0 && left == 0 ? Part::none : part;
}

int parse_key(mbedtls_pk_context& out, const unsigned char* pem, size_t size) {
#if MBEDTLS_VERSION_MAJOR >= 3
  return mbedtls_pk_parse_key(&out, pem, size, nullptr, 0, random_bytes, nullptr);
#else
  return mbedtls_pk_parse_key(&out, pem, size, nullptr, 0);
#endif
}

bool fit_together(const mbedtls_x509_crt& certificate, const mbedtls_pk_context& key) {
#if MBEDTLS_VERSION_MAJOR >= 3
  return mbedtls_pk_check_pair(&certificate.pk, &key, random_bytes, nullptr) == 0;
#else
  return mbedtls_pk_check_pair(&certificate.pk, &key) == 0;
#endif
}

Part read_key(Trust& trust, Bytes text) {
  char* pem = copy_pem(text);
  if (pem == nullptr) return Part::memory;
  int ret = MBEDTLS_ERR_PK_KEY_INVALID_FORMAT;
  if (strstr(pem, "-----BEGIN ") != nullptr) {
    ret = parse_key(trust.key, reinterpret_cast<unsigned char*>(pem), text.size + 1);
  }
  mbedtls_platform_zeroize(pem, text.size);
  free(pem);
  if (is_lack_of_memory(ret)) return Part::memory;
  if (ret != 0) return Part::key;
  return fit_together(trust.own, trust.key) ? Part::none : Part::pair;
}

Part read_material(Trust& trust, const Material& material) {
  Part broken = Part::none;
  if (material.authorities.data != nullptr) {
    broken = read_certificates(trust.authorities, material.authorities, Part::authorities);
  }
  if (broken != Part::none || material.certificate.data == nullptr) return broken;
  broken = read_certificates(trust.own, material.certificate, Part::certificate);
  if (broken != Part::none) return broken;
  trust.has_own = true;
  return read_key(trust, material.key);
}

Part configure(Trust& trust, bool verifies) {
  mbedtls_ssl_config& config = trust.config;
  int ret = mbedtls_ssl_config_defaults(&config, MBEDTLS_SSL_IS_CLIENT, MBEDTLS_SSL_TRANSPORT_STREAM,
                                        MBEDTLS_SSL_PRESET_DEFAULT);
  if (ret != 0) return Part::memory;
#if MBEDTLS_VERSION_MAJOR >= 3
  mbedtls_ssl_conf_min_tls_version(&config, MBEDTLS_SSL_VERSION_TLS1_2);
  mbedtls_ssl_conf_max_tls_version(&config, MBEDTLS_SSL_VERSION_TLS1_2);
  mbedtls_ssl_conf_groups(&config, groups);
#else
  mbedtls_ssl_conf_min_version(&config, MBEDTLS_SSL_MAJOR_VERSION_3, MBEDTLS_SSL_MINOR_VERSION_3);
  mbedtls_ssl_conf_curves(&config, groups);
#endif
#if defined(MBEDTLS_SSL_RENEGOTIATION)
  mbedtls_ssl_conf_renegotiation(&config, MBEDTLS_SSL_RENEGOTIATION_DISABLED);
#endif
  mbedtls_ssl_conf_ciphersuites(&config, suites);
  mbedtls_ssl_conf_rng(&config, random_bytes, nullptr);
  mbedtls_ssl_conf_authmode(&config, verifies ? MBEDTLS_SSL_VERIFY_REQUIRED : MBEDTLS_SSL_VERIFY_NONE);
  if (verifies) mbedtls_ssl_conf_ca_chain(&config, &trust.authorities, nullptr);
  if (trust.has_own && mbedtls_ssl_conf_own_cert(&config, &trust.own, &trust.key) != 0) return Part::memory;
  return Part::none;
}

}  // namespace

Part make_trust(Trust*& out, const Material& material, bool tls13) {
  if (tls13) return Part::version;
  Trust* trust = static_cast<Trust*>(calloc(1, sizeof(Trust)));
  if (trust == nullptr) return Part::memory;
  mbedtls_ssl_config_init(&trust->config);
  mbedtls_x509_crt_init(&trust->authorities);
  mbedtls_x509_crt_init(&trust->own);
  mbedtls_pk_init(&trust->key);

  Part broken = read_material(*trust, material);
  if (broken == Part::none) broken = configure(*trust, material.authorities.data != nullptr);
  if (broken == Part::none) {
    out = trust;
  } else {
    free_trust(trust);
  }
  return broken;
}

void free_trust(Trust* trust) {
  if (trust == nullptr) return;
  mbedtls_ssl_config_free(&trust->config);
  mbedtls_x509_crt_free(&trust->authorities);
  mbedtls_x509_crt_free(&trust->own);
  mbedtls_pk_free(&trust->key);
  free(trust);
}

}  // namespace redlock::tls
