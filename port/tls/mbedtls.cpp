// SPDX-License-Identifier: MIT
//
// The engine by mbedTLS: one connection. Until the handshake is done the library allocates, and in take_ticket; read,
// write and flush do not.
#include "port/tls/mbedtls.hpp"

#include <limits.h>
#include <mbedtls/entropy.h>
#include <mbedtls/net_sockets.h>
#include <mbedtls/version.h>
#include <pthread.h>
#include <stdlib.h>

#include "port/tls/certificate.hpp"

namespace redlock::tls {

namespace {

// ---- what the library asks

int64_t seconds_of(const mbedtls_x509_time& time) {
  return utc_seconds(time.year, time.mon, time.day, time.hour, time.min, time.sec);
}

Validity validity_of(const mbedtls_x509_crt& certificate) {
  return {seconds_of(certificate.valid_from), seconds_of(certificate.valid_to)};
}

// Called for each certificate of the checked chain, the root first. Dates and names are judged elsewhere
// (port/tls/certificate), for both engines alike; everything else that the library found stays found.
int see_certificate(void* self, mbedtls_x509_crt* certificate, int depth, uint32_t* flags) {
  constexpr uint32_t judged_elsewhere =
      MBEDTLS_X509_BADCERT_EXPIRED | MBEDTLS_X509_BADCERT_FUTURE | MBEDTLS_X509_BADCERT_CN_MISMATCH;
  *flags &= ~judged_elsewhere;
  Chain& chain = static_cast<Link*>(self)->chain;
  const unsigned at = static_cast<unsigned>(depth);
  if (at >= chain.size) chain.size = at + 1;
  if (at < chain_max) chain.validity[at] = validity_of(*certificate);
  return 0;
}

int receive(void* self, unsigned char* at, size_t room) {
  Link& link = *static_cast<Link*>(self);
  const ssize_t got = link.wire->receive(link.wire->self, reinterpret_cast<char*>(at), room < INT_MAX ? room : INT_MAX);
  if (got == Wire::nothing_now) return MBEDTLS_ERR_SSL_WANT_READ;
  if (got == Wire::end) link.wire_ended = true;
  return got >= 0 ? static_cast<int>(got) : MBEDTLS_ERR_NET_CONN_RESET;
}

int send(void* self, const unsigned char* data, size_t size) {
  Link& link = *static_cast<Link*>(self);
  const ssize_t sent =
      link.wire->send(link.wire->self, reinterpret_cast<const char*>(data), size < INT_MAX ? size : INT_MAX);
  if (sent == Wire::nothing_now) return MBEDTLS_ERR_SSL_WANT_WRITE;
  return sent > 0 ? static_cast<int>(sent) : MBEDTLS_ERR_NET_CONN_RESET;
}

// ---- how a call of the library ended

bool says_hello(const Link& link) { return link.ssl.MBEDTLS_PRIVATE(state) <= MBEDTLS_SSL_SERVER_HELLO_DONE; }

int error_of_alert(const Link& link) {
  switch (link.ssl.MBEDTLS_PRIVATE(in_msg)[1]) {
    case MBEDTLS_SSL_ALERT_MSG_HANDSHAKE_FAILURE:
      // A server of TLS 1.2 says so too where it misses a certificate; version and cipher are agreed on by then.
      if (says_hello(link)) return REDLOCK_E_TLS_COMMON;
      return link.has_own ? REDLOCK_E_TLS_CLIENT_REFUSED : REDLOCK_E_TLS_CLIENT_CERT;
    case MBEDTLS_SSL_ALERT_MSG_PROTOCOL_VERSION:
    case MBEDTLS_SSL_ALERT_MSG_INSUFFICIENT_SECURITY:
      return REDLOCK_E_TLS_COMMON;
    case MBEDTLS_SSL_ALERT_MSG_BAD_CERT:
    case MBEDTLS_SSL_ALERT_MSG_UNSUPPORTED_CERT:
    case MBEDTLS_SSL_ALERT_MSG_CERT_REVOKED:
    case MBEDTLS_SSL_ALERT_MSG_CERT_EXPIRED:
    case MBEDTLS_SSL_ALERT_MSG_CERT_UNKNOWN:
    case MBEDTLS_SSL_ALERT_MSG_UNKNOWN_CA:
    case MBEDTLS_SSL_ALERT_MSG_ACCESS_DENIED:
      return link.has_own ? REDLOCK_E_TLS_CLIENT_REFUSED : REDLOCK_E_TLS_CLIENT_CERT;
    case MBEDTLS_SSL_ALERT_MSG_UNRECOGNIZED_NAME:
      return REDLOCK_E_TLS_NAME;
    default:
      return REDLOCK_E_TLS_BROKEN;
  }
}

// What the library found wrong with the chain, the worst first.
int error_of_chain(uint32_t flags) {
  constexpr uint32_t weak = MBEDTLS_X509_BADCERT_BAD_MD | MBEDTLS_X509_BADCERT_BAD_PK | MBEDTLS_X509_BADCERT_BAD_KEY;
  constexpr uint32_t use =
      MBEDTLS_X509_BADCERT_KEY_USAGE | MBEDTLS_X509_BADCERT_EXT_KEY_USAGE | MBEDTLS_X509_BADCERT_NS_CERT_TYPE;
  if (flags == 0) return REDLOCK_E_TLS_BROKEN;
  if (flags & MBEDTLS_X509_BADCERT_NOT_TRUSTED) return REDLOCK_E_TLS_AUTHORITY;
  if (flags & weak) return REDLOCK_E_TLS_WEAK;
  return flags & use ? REDLOCK_E_TLS_USE : REDLOCK_E_TLS_AUTHORITY;
}

int error_of(const Link& link, int ret) {
  if (is_lack_of_memory(ret)) return REDLOCK_E_NOMEM;
  if (low_part(ret) == MBEDTLS_ERR_ENTROPY_SOURCE_FAILED) return REDLOCK_E_SYSTEM;
  switch (ret) {
    case MBEDTLS_ERR_NET_CONN_RESET:
      return REDLOCK_E_DISCONNECTED;
    case MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE:
      return error_of_alert(link);
    case MBEDTLS_ERR_SSL_BAD_PROTOCOL_VERSION:
      return REDLOCK_E_TLS_COMMON;
    case MBEDTLS_ERR_X509_CERT_VERIFY_FAILED:
    case MBEDTLS_ERR_SSL_BAD_CERTIFICATE:  // or it is no message with certificates
      return error_of_chain(mbedtls_ssl_get_verify_result(&link.ssl));
    default:
      return REDLOCK_E_TLS_BROKEN;
  }
}

Progress progress_of(Link& link, int ret) {
  switch (ret) {
    case MBEDTLS_ERR_SSL_WANT_READ:
      return Progress::wants_input;
    case MBEDTLS_ERR_SSL_WANT_WRITE:
      return Progress::wants_output;
    case MBEDTLS_ERR_SSL_CONN_EOF:
    case MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY:
      return Progress::ended;
    default:
      link.error = error_of(link, ret);
      return Progress::failed;
  }
}

const mbedtls_x509_crt* certificate_of(const Link& link) { return mbedtls_ssl_get_peer_cert(&link.ssl); }
bool has_unsent(const Link& link) { return link.ssl.MBEDTLS_PRIVATE(out_left) > 0; }

}  // namespace

// ---- Link

// The library reads the clock by itself where it chooses among certificates of one name.
Link* make_link(const Trust& trust, const Wire& wire, Bytes name, const Ticket* resume, int64_t) {
  char text[MBEDTLS_SSL_MAX_HOST_NAME_LEN + 1] = {};
  const bool says_name = name.size > 0 && name.size < sizeof text;  // no certificate is for a longer one
  if (says_name) memcpy(text, name.data, name.size);

  Link* link = static_cast<Link*>(calloc(1, sizeof(Link)));
  if (link == nullptr) return nullptr;
  link->wire = &wire;
  link->has_own = trust.has_own;
  mbedtls_ssl_init(&link->ssl);
  mbedtls_ssl_set_bio(&link->ssl, link, send, receive, nullptr);
  mbedtls_ssl_set_verify(&link->ssl, see_certificate, link);
  int ret = mbedtls_ssl_setup(&link->ssl, &trust.config);
  if (ret == 0) ret = mbedtls_ssl_set_hostname(&link->ssl, says_name ? text : nullptr);
  if (ret == 0 && resume != nullptr) {
    ret = mbedtls_ssl_set_session(&link->ssl, &resume->session);
    link->chain = resume->chain;
    link->resumed = true;  // until a certificate comes
  }
  if (ret == 0) return link;
  free_link(link);
  return nullptr;
}

void free_link(Link* link) {
  if (link == nullptr) return;
  mbedtls_ssl_free(&link->ssl);
  free(link);
}

Progress handshake(Link& link) {
  while (link.ssl.MBEDTLS_PRIVATE(state) != MBEDTLS_SSL_HANDSHAKE_OVER) {
    if (link.resumed && link.ssl.MBEDTLS_PRIVATE(state) == MBEDTLS_SSL_SERVER_CERTIFICATE) {
      link.resumed = false;
      link.chain.size = 0;
    }
    const int ret = mbedtls_ssl_handshake_step(&link.ssl);
    if (ret != 0) return progress_of(link, ret);
  }
  return Progress::done;
}

Progress read(Link& link, char* at, size_t room, size_t& got) {
  for (;;) {
    const int ret = mbedtls_ssl_read(&link.ssl, reinterpret_cast<unsigned char*>(at), room);
    if (ret > 0) {
      got = static_cast<size_t>(ret);
      return Progress::done;
    }
    if (ret == 0 && link.wire_ended) return Progress::ended;
    if (ret != 0) return progress_of(link, ret);  // 0: an empty record; the library takes few of them in a row
  }
}

bool has_read_ahead(const Link& link) { return mbedtls_ssl_get_bytes_avail(&link.ssl) > 0; }

Progress write(Link& link, Bytes text, size_t& taken) {
  taken = 0;
  const Progress earlier = flush(link);
  if (earlier != Progress::done) return earlier;

  const int largest = mbedtls_ssl_get_max_out_record_payload(&link.ssl);
  if (largest <= 0) return progress_of(link, largest);
  const size_t part = text.size < static_cast<size_t>(largest) ? text.size : static_cast<size_t>(largest);
  const int ret = mbedtls_ssl_write(&link.ssl, reinterpret_cast<const unsigned char*>(text.data), part);
  if (ret < 0 && ret != MBEDTLS_ERR_SSL_WANT_WRITE) return progress_of(link, ret);
  taken = part;  // encrypted, though the wire may not have taken all of it
  return ret < 0 ? Progress::wants_output : Progress::done;
}

Progress flush(Link& link) {
  if (!has_unsent(link)) return Progress::done;
  // While a record waits, a write only goes on with that record, whatever its text is.
  const unsigned char nothing = 0;
  const int ret = mbedtls_ssl_write(&link.ssl, &nothing, 0);
  return ret < 0 ? progress_of(link, ret) : Progress::done;
}

void say_goodbye(Link& link) {
  if (link.error == 0 && flush(link) == Progress::done) mbedtls_ssl_close_notify(&link.ssl);
}

int link_error(const Link& link) { return link.error; }
bool was_resumed(const Link& link) { return link.resumed; }

bool read_peer(const Link& link, Peer& out) {
  const mbedtls_x509_crt* certificate = certificate_of(link);
  if (certificate == nullptr || link.chain.size > chain_max) return false;
  out.certificates = link.chain.size;
  memcpy(out.validity, link.chain.validity, sizeof out.validity);
  if (link.chain.size == 0) {
    out.certificates = 1;
    out.validity[0] = validity_of(*certificate);
  }
  const mbedtls_x509_buf& key = certificate->pk_raw;
  return mbedtls_md(mbedtls_md_info_from_type(MBEDTLS_MD_SHA256), key.p, key.len, out.key_sha256) == 0;
}

void read_alt_names(const Link& link, const AltNames& to) {
  constexpr int name = MBEDTLS_ASN1_CONTEXT_SPECIFIC | MBEDTLS_X509_SAN_DNS_NAME;
  constexpr int address = MBEDTLS_ASN1_CONTEXT_SPECIFIC | MBEDTLS_X509_SAN_IP_ADDRESS;
  const mbedtls_x509_crt* certificate = certificate_of(link);
  if (certificate == nullptr) return;
  for (const mbedtls_x509_sequence* at = &certificate->subject_alt_names; at != nullptr; at = at->next) {
    const Bytes bytes{reinterpret_cast<const char*>(at->buf.p), at->buf.len};
    if (at->buf.tag == name) to.entry(to.self, false, bytes);
    if (at->buf.tag == address && (bytes.size == 4 || bytes.size == 16)) to.entry(to.self, true, bytes);
  }
}

const char* link_version(const Link& link) { return mbedtls_ssl_get_version(&link.ssl); }

const char* link_cipher(const Link& link) {
  const char* name = mbedtls_ssl_get_ciphersuite(&link.ssl);
  return name != nullptr ? name : "";
}

// ---- Ticket

Ticket* take_ticket(Link& link) {
  if (link.gave_ticket) return nullptr;
  Ticket* ticket = static_cast<Ticket*>(calloc(1, sizeof(Ticket)));
  if (ticket == nullptr) return nullptr;
  mbedtls_ssl_session_init(&ticket->session);
  ticket->chain = link.chain;
  const mbedtls_ssl_session& session = ticket->session;
  if (mbedtls_ssl_get_session(&link.ssl, &ticket->session) == 0 &&
      (session.MBEDTLS_PRIVATE(id_len) > 0 || session.MBEDTLS_PRIVATE(ticket_len) > 0)) {
    link.gave_ticket = true;
    return ticket;
  }
  free_ticket(ticket);
  return nullptr;
}

void free_ticket(Ticket* ticket) {
  if (ticket == nullptr) return;
  mbedtls_ssl_session_free(&ticket->session);
  free(ticket);
}

// ---- the library

const char* engine_version() {
  static char text[8 + 9] = "mbedtls/";
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] { mbedtls_version_get_string(text + 8); });
  return text;
}

}  // namespace redlock::tls
