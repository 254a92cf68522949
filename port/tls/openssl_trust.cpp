// SPDX-License-Identifier: MIT
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdlib.h>

#include "port/tls/chain.hpp"
#include "port/tls/openssl.hpp"

namespace redlock::tls {
namespace {

// ---- the wire -----------------------------------------------------------------------------------------------------

int moved(BIO* bio, Link& link, ssize_t n, int retry) {
  BIO_clear_retry_flags(bio);
  if (n > 0) return static_cast<int>(n);
  link.wire_said = n;
  if (n == Wire::nothing_now) BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
  return n == Wire::end ? 0 : -1;
}

int receive(BIO* bio, char* at, int room) {
  Link& link = *static_cast<Link*>(BIO_get_data(bio));
  const ssize_t n = link.wire->receive(link.wire->self, at, static_cast<size_t>(room));
  return moved(bio, link, n, BIO_FLAGS_READ);
}

int send(BIO* bio, const char* data, int size) {
  Link& link = *static_cast<Link*>(BIO_get_data(bio));
  const ssize_t n = link.wire->send(link.wire->self, data, static_cast<size_t>(size));
  return moved(bio, link, n, BIO_FLAGS_WRITE);
}

long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH; }

BIO_METHOD* make_wire_method() {
  BIO_METHOD* const method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "redlock");
  if (method == nullptr) return nullptr;
  BIO_meth_set_read(method, receive);
  BIO_meth_set_write(method, send);
  BIO_meth_set_ctrl(method, control);
  return method;
}

void release_bio(BIO* bio) { BIO_free(bio); }
using Text = Owned<BIO, release_bio>;
using Key = Owned<EVP_PKEY, EVP_PKEY_free>;

// ---- what the files say -------------------------------------------------------------------------------------------

// The reason of a failure that just happened; takes it, and what lies below it, out of the queue.
int last_reason() {
  const unsigned long last = ERR_peek_last_error();
  ERR_clear_error();
  return ERR_GET_REASON(last);
}

bool ran_out_of_memory() { return last_reason() == ERR_R_MALLOC_FAILURE; }

int no_password(char*, int, int, void*) { return -1; }  // OpenSSL would ask at the terminal

Text text_of(Bytes text) { return Text(BIO_new_mem_buf(text.data, static_cast<int>(text.size))); }

bool at_the_end() {
  const unsigned long last = ERR_peek_last_error();
  const bool end = ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
  if (end) ERR_clear_error();
  return end;
}

// Calls `take` for each certificate of a text that has one at least.
bool each_certificate(SSL_CTX* context, Bytes pem, bool (*take)(SSL_CTX*, X509*, unsigned n)) {
  const Text text = text_of(pem);
  if (text.value == nullptr) return false;
  for (unsigned n = 0;; ++n) {
    const Certificate certificate(PEM_read_bio_X509(text.value, nullptr, no_password, nullptr));
    if (certificate.value == nullptr) return n > 0 && at_the_end();
    if (!take(context, certificate.value, n)) return false;
  }
}

bool add_authority(SSL_CTX* context, X509* c, unsigned) {
  return X509_STORE_add_cert(SSL_CTX_get_cert_store(context), c) == 1;
}

bool add_own(SSL_CTX* context, X509* c, unsigned n) {
  return n == 0 ? SSL_CTX_use_certificate(context, c) == 1 : SSL_CTX_add1_chain_cert(context, c) == 1;
}

Part use_key(SSL_CTX* context, Bytes pem) {
  const Text text = text_of(pem);
  if (text.value == nullptr) return Part::key;
  const Key key(PEM_read_bio_PrivateKey(text.value, nullptr, no_password, nullptr));
  if (key.value == nullptr) return Part::key;
  const bool fits = SSL_CTX_use_PrivateKey(context, key.value) == 1 && SSL_CTX_check_private_key(context) == 1;
  return fits ? Part::none : Part::pair;
}

Part use(Trust& trust, const Material& material) {
  SSL_CTX* const context = trust.context;
  trust.authorities = material.authorities.data != nullptr;  // an empty file is no reason to trust anybody
  trust.certificate = material.certificate.data != nullptr;
  if (trust.authorities && !each_certificate(context, material.authorities, add_authority)) return Part::authorities;
  if (!trust.certificate) return Part::none;
  if (!each_certificate(context, material.certificate, add_own)) return Part::certificate;
  return use_key(context, material.key);
}

// The newest is kept: a server may refuse one that was used. 1: the session is ours.
int keep_session(SSL* ssl, SSL_SESSION* session) {
  Link& link = link_of(ssl);
  SSL_SESSION_free(link.session);
  link.session = session;
  return 1;
}

void note_alert(const SSL* ssl, int where, int value) {
  if ((where & SSL_CB_READ_ALERT) == SSL_CB_READ_ALERT) link_of(ssl).alert = value & 0xff;
}

int note_request(SSL* ssl, void*) {
  link_of(ssl).asked = true;
  return 1;
}

int refusal_of(ChainGate& gate, X509* certificate) {
  unsigned char* der = nullptr;
  const int size = i2d_X509(certificate, &der);
  if (size <= 0) return REDLOCK_E_NOMEM;
  const int refused = gate.look_at({reinterpret_cast<const char*>(der), static_cast<size_t>(size)});
  OPENSSL_free(der);
  return refused;
}

int refusal_of(STACK_OF(X509)* chain) {
  ChainGate gate;
  int refused = 0;
  for (int i = 0; i < sk_X509_num(chain) && refused == 0; ++i) refused = refusal_of(gate, sk_X509_value(chain, i));
  return refused;
}

// Where there is no choice, port/tls/certificate judges the dates, and tells whose they are.
int pass_dates(int fine, X509_STORE_CTX* context) {
  const int error = X509_STORE_CTX_get_error(context);
  if (error != X509_V_ERR_CERT_HAS_EXPIRED && error != X509_V_ERR_CERT_NOT_YET_VALID) return fine;
  X509_STORE_CTX_set_error(context, X509_V_OK);
  return 1;
}

// OpenSSL has read the peer's certificates, and has computed nothing with their keys. With pins alone nothing more is
// to be checked.
int verify_chain(X509_STORE_CTX* context, void*) {
  SSL* const ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx()));
  Link& link = link_of(ssl);
  link.refusal = refusal_of(X509_STORE_CTX_get0_untrusted(context));
  if (link.refusal == 0 && !link.trust->authorities) {
    X509_STORE_CTX_set_error(context, X509_V_OK);
    return 1;
  }
  X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(context), static_cast<time_t>(link.utc_s));
  X509_STORE_CTX_set_verify_cb(context, pass_dates);
  if (link.refusal == 0) return X509_verify_cert(context) == 1;
  X509_STORE_CTX_set_error(context, X509_V_ERR_APPLICATION_VERIFICATION);
  return 0;
}

// The cheapest first. Without a list a peer may choose a group of 8,192 bits. What a library does not have, as one of
// FIPS has no X25519, is left out. No hybrid group is offered: a server of OpenSSL 3.5 prefers a hybrid group that the
// client knows, and asks for its key in a HelloRetryRequest if the client has sent the key of another group.
bool set_groups(SSL_CTX* context) {
  static constexpr const char* wanted[] = {"X25519", "P-256", "P-384", "P-521"};
  char list[32];
  size_t size = 0;
  for (const char* group : wanted) {
    if (SSL_CTX_set1_groups_list(context, group) != 1) continue;
    if (size > 0) list[size++] = ':';
    for (; *group != '\0'; ++group) list[size++] = *group;
  }
  list[size] = '\0';
  ERR_clear_error();
  return SSL_CTX_set1_groups_list(context, list) == 1;
}

// An authority that is named is trusted, also where another stands above it. A system's configuration of OpenSSL may
// ask for more than this, not for less.
bool set_rules(SSL_CTX* context, bool tls13) {
  constexpr int level = 2;  // keys of 112 bits, as mbedTLS asks for
  if (SSL_CTX_get_security_level(context) < level) SSL_CTX_set_security_level(context, level);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(context, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_cert_verify_callback(context, verify_chain, nullptr);
  SSL_CTX_set_max_cert_list(context, message_max);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context, keep_session);
  SSL_CTX_set_info_callback(context, note_alert);
  SSL_CTX_set_cert_cb(context, note_request, nullptr);
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), X509_V_FLAG_PARTIAL_CHAIN);
  return set_groups(context) && SSL_CTX_set_min_proto_version(context, tls13 ? TLS1_3_VERSION : TLS1_2_VERSION) == 1 &&
         SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1;
}

}  // namespace

Part make_trust(Trust*& out, const Material& material, bool tls13) {
  Trust* const trust = static_cast<Trust*>(calloc(1, sizeof(Trust)));
  if (trust == nullptr) return Part::memory;
  trust->context = SSL_CTX_new(TLS_client_method());
  trust->wire = make_wire_method();
  Part wrong = Part::memory;
  if (trust->context != nullptr && trust->wire != nullptr) {
    wrong = use(*trust, material);
    if (wrong != Part::none && ran_out_of_memory()) wrong = Part::memory;
    if (wrong == Part::none && !set_rules(trust->context, tls13)) wrong = Part::version;
  }
  ERR_clear_error();
  if (wrong == Part::none) {
    out = trust;
  } else {
    free_trust(trust);
  }
  return wrong;
}

void free_trust(Trust* trust) {
  if (trust == nullptr) return;
  SSL_CTX_free(trust->context);  // wipes the key
  BIO_meth_free(trust->wire);
  free(trust);
}

// ---- the library --------------------------------------------------------------------------------------------------

namespace {

char version_text[32] = "openssl/";

// "OpenSSL 3.0.19 27 Jan 2026": the second word.
void write_version() {
  const char* at = strchr(OpenSSL_version(OPENSSL_VERSION), ' ');
  size_t size = strlen(version_text);
  while (at != nullptr && *++at > ' ' && size < sizeof version_text - 1) version_text[size++] = *at;
}

}  // namespace

const char* engine_version() {
  static CRYPTO_ONCE once = CRYPTO_ONCE_STATIC_INIT;
  CRYPTO_THREAD_run_once(&once, write_version);
  return version_text;
}

}  // namespace redlock::tls
