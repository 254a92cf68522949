/* SPDX-License-Identifier: MIT */
#include "raw_tls.h"

#include <errno.h>
#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/ssl.h>
#include <stdlib.h>
#include <sys/socket.h>

struct raw_tls {
  mbedtls_ssl_context ssl;
  int fd;
};

static struct {
  int made;
  mbedtls_ssl_config config;
  mbedtls_x509_crt ca;
  mbedtls_entropy_context entropy;
  mbedtls_ctr_drbg_context random;
} shared;

static int make_shared(const char *ca_file) {
  if (shared.made) return 0;
  mbedtls_ssl_config_init(&shared.config);
  mbedtls_x509_crt_init(&shared.ca);
  mbedtls_entropy_init(&shared.entropy);
  mbedtls_ctr_drbg_init(&shared.random);
  if (mbedtls_ctr_drbg_seed(&shared.random, mbedtls_entropy_func, &shared.entropy, NULL, 0) != 0 ||
      mbedtls_x509_crt_parse_file(&shared.ca, ca_file) != 0 ||
      mbedtls_ssl_config_defaults(&shared.config, MBEDTLS_SSL_IS_CLIENT, MBEDTLS_SSL_TRANSPORT_STREAM,
                                  MBEDTLS_SSL_PRESET_DEFAULT) != 0) {
    return -1;
  }
  mbedtls_ssl_conf_rng(&shared.config, mbedtls_ctr_drbg_random, &shared.random);
  mbedtls_ssl_conf_ca_chain(&shared.config, &shared.ca, NULL);
  mbedtls_ssl_conf_authmode(&shared.config, MBEDTLS_SSL_VERIFY_REQUIRED);
  shared.made = 1;
  return 0;
}

static int send_to(void *self, const unsigned char *data, size_t size) {
  const ssize_t n = send(((raw_tls *)self)->fd, data, size, MSG_NOSIGNAL);
  return n >= 0 ? (int)n : errno == EAGAIN ? MBEDTLS_ERR_SSL_WANT_WRITE : -1;
}

static int receive_from(void *self, unsigned char *at, size_t room) {
  const ssize_t n = recv(((raw_tls *)self)->fd, at, room, 0);
  return n >= 0 ? (int)n : errno == EAGAIN ? MBEDTLS_ERR_SSL_WANT_READ : -1;
}

raw_tls *raw_tls_dial(int fd, const char *ca_file) {
  raw_tls *t = calloc(1, sizeof *t);
  if (t == NULL || make_shared(ca_file) != 0) return NULL;
  t->fd = fd;
  mbedtls_ssl_init(&t->ssl);
  if (mbedtls_ssl_setup(&t->ssl, &shared.config) != 0) return NULL;
  mbedtls_ssl_set_bio(&t->ssl, t, send_to, receive_from, NULL);
  return mbedtls_ssl_handshake(&t->ssl) == 0 ? t : NULL;
}

static ssize_t result(int n) {
  if (n >= 0) return n;
  errno = n == MBEDTLS_ERR_SSL_WANT_READ || n == MBEDTLS_ERR_SSL_WANT_WRITE ? EAGAIN : EPIPE;
  return n == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY ? 0 : -1;
}

ssize_t raw_tls_send(raw_tls *t, const void *data, size_t size) {
  return result(mbedtls_ssl_write(&t->ssl, data, size));
}
ssize_t raw_tls_recv(raw_tls *t, void *at, size_t room) { return result(mbedtls_ssl_read(&t->ssl, at, room)); }
int raw_tls_pending(raw_tls *t) { return mbedtls_ssl_check_pending(&t->ssl); }
