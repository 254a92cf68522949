// SPDX-License-Identifier: MIT
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include "port/tls/certificate.hpp"
#include "port/tls/openssl.hpp"

namespace redlock::tls {

// ---- a connection -------------------------------------------------------------------------------------------------

namespace {

constexpr size_t record_max = SSL3_RT_MAX_PLAIN_LENGTH;

bool set_name(SSL* ssl, Bytes name) {
  char text[TLSEXT_MAXLEN_host_name + 1];
  if (name.size == 0) return true;
  if (name.size >= sizeof text) return false;
  memcpy(text, name.data, name.size);
  text[name.size] = '\0';
  return SSL_set_tlsext_host_name(ssl, text) == 1;
}

bool open_wire(Link& link) {
  BIO* const bio = BIO_new(link.trust->wire);
  if (bio == nullptr) return false;
  BIO_set_data(bio, &link);
  BIO_set_init(bio, 1);
  SSL_set_bio(link.ssl, bio, bio);
  return true;
}

}  // namespace

Link* make_link(const Trust& trust, const Wire& wire, Bytes name, const Ticket* resume, int64_t utc_s) {
  Link* const link = static_cast<Link*>(calloc(1, sizeof(Link)));
  if (link == nullptr) return nullptr;
  link->trust = &trust;
  link->wire = &wire;
  link->alert = -1;
  link->utc_s = utc_s;
  link->ssl = SSL_new(trust.context);
  bool made = link->ssl != nullptr && SSL_set_app_data(link->ssl, link) == 1 && open_wire(*link) &&
              set_name(link->ssl, name);
  if (made && resume != nullptr) {
    link->peer = resume->peer;
    made = SSL_set_session(link->ssl, resume->session) == 1;
  }
  if (made) {
    SSL_set_connect_state(link->ssl);
    return link;
  }
  ERR_clear_error();
  free_link(link);
  return nullptr;
}

void free_link(Link* link) {
  if (link == nullptr) return;
  if (link->ssl != nullptr) {
    // Else OpenSSL takes a connection that ends without a goodbye for an attack, and its session for spoilt.
    const bool sound = link->error == 0 || link->error == REDLOCK_E_DISCONNECTED;
    if (sound) SSL_set_shutdown(link->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(link->ssl);
  }
  SSL_SESSION_free(link->session);
  free(link);
}

namespace {

int meaning_of_alert(const Link& link) {
  switch (link.alert) {
    case SSL_AD_HANDSHAKE_FAILURE:
      return link.asked && !link.trust->certificate ? REDLOCK_E_TLS_CLIENT_CERT : REDLOCK_E_TLS_COMMON;
    case SSL_AD_PROTOCOL_VERSION:
    case SSL_AD_INSUFFICIENT_SECURITY:
      return REDLOCK_E_TLS_COMMON;
    case SSL_AD_CERTIFICATE_REQUIRED:
      return REDLOCK_E_TLS_CLIENT_CERT;
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_DECRYPT_ERROR:
      if (!link.asked) return REDLOCK_E_TLS_BROKEN;
      return link.trust->certificate ? REDLOCK_E_TLS_CLIENT_REFUSED : REDLOCK_E_TLS_CLIENT_CERT;
    default:
      return REDLOCK_E_TLS_BROKEN;
  }
}

int meaning_of_verdict(long verdict) {
  switch (verdict) {
    case X509_V_ERR_EE_KEY_TOO_SMALL:
    case X509_V_ERR_CA_KEY_TOO_SMALL:
    case X509_V_ERR_CA_MD_TOO_WEAK:
      return REDLOCK_E_TLS_WEAK;
    case X509_V_ERR_INVALID_PURPOSE:
    case X509_V_ERR_PATH_LENGTH_EXCEEDED:
    case X509_V_ERR_PERMITTED_VIOLATION:
    case X509_V_ERR_EXCLUDED_VIOLATION:
      return REDLOCK_E_TLS_USE;
    case X509_V_ERR_OUT_OF_MEM:
      return REDLOCK_E_NOMEM;
    default:
      return REDLOCK_E_TLS_AUTHORITY;
  }
}

int meaning_of_failure(const Link& link) {
  if (link.alert >= 0) return meaning_of_alert(link);
  if (link.refusal != 0) return link.refusal;
  const bool in_handshake = !SSL_is_init_finished(link.ssl);
  const long verdict = SSL_get_verify_result(link.ssl);
  if (in_handshake && link.trust->authorities && verdict != X509_V_OK) return meaning_of_verdict(verdict);
  switch (ERR_GET_REASON(ERR_peek_last_error())) {
    case SSL_R_EXCESSIVE_MESSAGE_SIZE:
      return SSL_get_state(link.ssl) == TLS_ST_CR_CERT ? REDLOCK_E_TLS_MESSAGE : REDLOCK_E_TLS_BROKEN;
    case ERR_R_MALLOC_FAILURE:
      return REDLOCK_E_NOMEM;
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_WRONG_SSL_VERSION:
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_WRONG_CIPHER_RETURNED:
    case SSL_R_UNKNOWN_CIPHER_RETURNED:
      return REDLOCK_E_TLS_COMMON;
    default:
      return REDLOCK_E_TLS_BROKEN;
  }
}

Progress fail(Link& link, int error) {
  ERR_clear_error();
  link.error = error;
  return Progress::failed;
}

// After a call of OpenSSL's that did not succeed.
Progress outcome(Link& link) {
  switch (link.wire_said) {
    case Wire::nothing_now:
      if (SSL_want_read(link.ssl)) return Progress::wants_input;
      if (SSL_want_write(link.ssl)) return Progress::wants_output;
      break;  // an alert of ours did not leave
    case Wire::end:
      ERR_clear_error();
      return Progress::ended;
    case Wire::broken:
      if (link.alert < 0) return fail(link, REDLOCK_E_DISCONNECTED);
      break;
    default:
      break;
  }
  if (link.alert == SSL_AD_CLOSE_NOTIFY) {
    ERR_clear_error();
    return Progress::ended;
  }
  return fail(link, meaning_of_failure(link));
}

int64_t seconds_of(const ASN1_TIME* time) {
  tm t = {};
  if (ASN1_TIME_to_tm(time, &t) != 1) return INT64_MIN;
  return utc_seconds(t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec);
}

void note_validity(const X509* certificate, Peer& peer) {
  peer.validity[peer.certificates++] = {seconds_of(X509_get0_notBefore(certificate)),
                                        seconds_of(X509_get0_notAfter(certificate))};
}

bool hash_key(const X509* certificate, unsigned char (&out)[32]) {
  unsigned char* der = nullptr;
  const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der);
  if (size <= 0) return false;
  const bool hashed = EVP_Digest(der, static_cast<size_t>(size), out, nullptr, EVP_sha256(), nullptr) == 1;
  OPENSSL_free(der);
  return hashed;
}

// Leaves peer.certificates at 0 where there is nothing to judge.
void note_peer(Link& link) {
  Peer& peer = link.peer;
  peer = {};
  const Certificate own(SSL_get_peer_certificate(link.ssl));
  if (own.value == nullptr || !hash_key(own.value, peer.key_sha256)) return;
  if (!link.trust->authorities) return note_validity(own.value, peer);
  STACK_OF(X509)* const chain = SSL_get0_verified_chain(link.ssl);
  const int length = sk_X509_num(chain);
  if (length > static_cast<int>(chain_max)) return;
  for (int i = 0; i < length; ++i) note_validity(sk_X509_value(chain, i), peer);
}

}  // namespace

Progress handshake(Link& link) {
  link.wire_said = 1;
  if (SSL_do_handshake(link.ssl) != 1) return outcome(link);
  if (!was_resumed(link)) note_peer(link);
  ERR_clear_error();
  return Progress::done;
}

Progress read(Link& link, char* at, size_t room, size_t& got) {
  link.wire_said = 1;
  link.dry = false;
  if (SSL_read_ex(link.ssl, at, room, &got) == 1) return Progress::done;
  const Progress progress = outcome(link);
  link.dry = progress == Progress::wants_input;
  return progress;
}

bool has_read_ahead(const Link& link) { return !link.dry && SSL_has_pending(link.ssl); }

// An answer to new keys goes before the text, and may be what the wire does not take: OpenSSL is "in init" then.
Progress write(Link& link, Bytes text, size_t& taken) {
  taken = 0;
  const Progress before = flush(link);
  if (before != Progress::done) return before;
  const size_t size = text.size < record_max ? text.size : record_max;
  link.wire_said = 1;
  if (SSL_write_ex(link.ssl, text.data, size, &taken) == 1) return Progress::done;
  const Progress progress = outcome(link);
  if (progress == Progress::wants_output && !SSL_in_init(link.ssl)) taken = link.unsent = size;
  return progress;
}

// The text of the record is encrypted already: OpenSSL looks at its size, and not at its bytes again.
Progress flush(Link& link) {
  link.wire_said = 1;
  if (link.unsent > 0) {
    size_t sent = 0;
    if (SSL_write_ex(link.ssl, &link, link.unsent, &sent) != 1) return outcome(link);
    link.unsent = 0;
  }
  if (SSL_in_init(link.ssl) && SSL_do_handshake(link.ssl) != 1) return outcome(link);
  return Progress::done;
}

void say_goodbye(Link& link) {
  if (!SSL_is_init_finished(link.ssl) || link.error != 0) return;
  SSL_shutdown(link.ssl);
  ERR_clear_error();
}

int link_error(const Link& link) { return link.error; }
bool was_resumed(const Link& link) { return SSL_session_reused(link.ssl) == 1; }

// ---- what the peer showed -----------------------------------------------------------------------------------------

bool read_peer(const Link& link, Peer& out) {
  out = link.peer;
  return out.certificates > 0;
}

void read_alt_names(const Link& link, const AltNames& to) {
  const Certificate own(SSL_get_peer_certificate(link.ssl));
  if (own.value == nullptr) return;
  GENERAL_NAMES* const names =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(own.value, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    int type = 0;
    const ASN1_STRING* const text =
        static_cast<ASN1_STRING*>(GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &type));
    if (type != GEN_DNS && type != GEN_IPADD) continue;
    const char* const data = reinterpret_cast<const char*>(ASN1_STRING_get0_data(text));
    to.entry(to.self, type == GEN_IPADD, {data, static_cast<size_t>(ASN1_STRING_length(text))});
  }
  GENERAL_NAMES_free(names);
  ERR_clear_error();
}

const char* link_version(const Link& link) { return SSL_get_version(link.ssl); }
const char* link_cipher(const Link& link) { return SSL_get_cipher_name(link.ssl); }

// ---- sessions -----------------------------------------------------------------------------------------------------

Ticket* take_ticket(Link& link) {
  if (link.session == nullptr || SSL_SESSION_is_resumable(link.session) != 1) return nullptr;
  Ticket* const ticket = static_cast<Ticket*>(malloc(sizeof(Ticket)));
  if (ticket == nullptr) return nullptr;
  *ticket = {link.session, link.peer};
  link.session = nullptr;
  return ticket;
}

void free_ticket(Ticket* ticket) {
  if (ticket == nullptr) return;
  SSL_SESSION_free(ticket->session);  // wipes it
  free(ticket);
}

}  // namespace redlock::tls
