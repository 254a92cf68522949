/* SPDX-License-Identifier: MIT */
#include "raw_tls.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdlib.h>

struct raw_tls {
  SSL *ssl;
};

static SSL_CTX *context(const char *ca_file) {
  static SSL_CTX *made;
  if (made != NULL) return made;
  signal(SIGPIPE, SIG_IGN);
  SSL_CTX *c = SSL_CTX_new(TLS_client_method());
  if (c == NULL || SSL_CTX_load_verify_locations(c, ca_file, NULL) != 1) return NULL;
  SSL_CTX_set_verify(c, SSL_VERIFY_PEER, NULL);
  SSL_CTX_set_read_ahead(c, 1); /* one recv() for all that has come */
  SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return made = c;
}

raw_tls *raw_tls_dial(int fd, const char *ca_file) {
  SSL_CTX *c = context(ca_file);
  raw_tls *t = calloc(1, sizeof *t);
  if (c == NULL || t == NULL || (t->ssl = SSL_new(c)) == NULL) return NULL;
  return SSL_set_fd(t->ssl, fd) == 1 && SSL_connect(t->ssl) == 1 ? t : NULL;
}

static ssize_t result(raw_tls *t, int n) {
  if (n > 0) return n;
  const int why = SSL_get_error(t->ssl, n);
  errno = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? EAGAIN : EPIPE;
  return why == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

ssize_t raw_tls_send(raw_tls *t, const void *data, size_t n) { return result(t, SSL_write(t->ssl, data, (int)n)); }
ssize_t raw_tls_recv(raw_tls *t, void *at, size_t n) { return result(t, SSL_read(t->ssl, at, (int)n)); }
int raw_tls_pending(raw_tls *t) { return SSL_has_pending(t->ssl); }
