/* SPDX-License-Identifier: MIT
 *
 * The TLS library of the build, used in the plainest way: what a client over TLS is measured against. raw_tls_openssl.c
 * and raw_tls_mbedtls.c implement it. A program without TLS (raw_limit) has none of it, and refuses --ca. */
#ifndef REDLOCK_BENCH_RAW_TLS_H
#define REDLOCK_BENCH_RAW_TLS_H
#include <stddef.h>
#include <sys/types.h>

typedef struct raw_tls raw_tls;

#ifdef RAW_TLS
#define RAW_NAME "raw_limit_tls"
/* The whole handshake, on a blocking socket; NULL: it failed. The chain is checked, the name is not. */
raw_tls *raw_tls_dial(int fd, const char *ca_file);
/* As send() and recv(): -1 with EAGAIN when it must be repeated. What was to be sent may not change until then. */
ssize_t raw_tls_send(raw_tls *t, const void *data, size_t n);
ssize_t raw_tls_recv(raw_tls *t, void *at, size_t n);
int raw_tls_pending(raw_tls *t); /* raw_tls_recv() has something although the socket may have nothing */
#else
#define RAW_NAME "raw_limit"
static inline raw_tls *raw_tls_dial(int fd, const char *ca_file) { return (void)fd, (void)ca_file, (raw_tls *)NULL; }
static inline ssize_t raw_tls_send(raw_tls *t, const void *data, size_t n) { return (void)t, (void)data, (void)n, -1; }
static inline ssize_t raw_tls_recv(raw_tls *t, void *at, size_t n) { return (void)t, (void)at, (void)n, -1; }
static inline int raw_tls_pending(raw_tls *t) { return (void)t, 0; }
#endif
#endif
