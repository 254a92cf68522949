// SPDX-License-Identifier: MIT
#include "support/tls_peer.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <ctime>
#include <stdexcept>

namespace redlock::test {
namespace {

void must(bool done, const char* what) {
  if (!done) throw std::runtime_error(std::string("tls_peer: OpenSSL refuses: ") + what);
}

void set_versions(SSL_CTX* context, TlsVersions versions) {
  int least = TLS1_2_VERSION, most = 0;
  if (versions == TlsVersions::only_1_2) most = TLS1_2_VERSION;
  if (versions == TlsVersions::only_1_3) least = TLS1_3_VERSION;
  if (versions == TlsVersions::only_1_0) {
    least = most = TLS1_VERSION;
    SSL_CTX_set_security_level(context, 0);
  }
  SSL_CTX_set_min_proto_version(context, least);
  SSL_CTX_set_max_proto_version(context, most);
}

void set_chain(SSL_CTX* context, const Certificate& certificate, const Certificate* first = nullptr) {
  must(SSL_CTX_use_certificate(context, certificate.x509()) == 1, "a certificate");
  must(SSL_CTX_use_PrivateKey(context, certificate.key()) == 1, "a key");
  if (first != nullptr) SSL_CTX_add1_chain_cert(context, first->x509());
  const std::string above = certificate.chain_pem().substr(certificate.pem().size());
  const std::unique_ptr<BIO, int (*)(BIO*)> text(BIO_new_mem_buf(above.data(), static_cast<int>(above.size())),
                                                 BIO_free);
  while (X509* const next = PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr)) {
    SSL_CTX_add0_chain_cert(context, next);
  }
  ERR_clear_error();
}

}  // namespace

// ---- the server -------------------------------------------------------------------------------------------------

TlsServer::TlsServer(const Certificate& certificate, const Options& options)
    : context_(SSL_CTX_new(TLS_server_method()), SSL_CTX_free) {
  SSL_CTX* const context = context_.get();
  must(context != nullptr, "a context");
  set_versions(context, options.versions);
  if (options.lax) SSL_CTX_set_security_level(context, 0);
  set_chain(context, certificate, options.shown_first);
  if (options.shown_too != nullptr) SSL_CTX_add1_chain_cert(context, options.shown_too->x509());
  if (!options.groups.empty()) must(SSL_CTX_set1_groups_list(context, options.groups.c_str()) == 1, "groups");
  if (!options.ciphers.empty()) must(SSL_CTX_set_cipher_list(context, options.ciphers.c_str()) == 1, "ciphers");
  const unsigned char name[] = "redlock";
  SSL_CTX_set_session_id_context(context, name, sizeof name);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);  // tickets alone: a server keeps nothing
  if (options.client == ClientCertificate::wanted) {
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), options.client_authority->x509());
  }
}

void TlsServer::renew(const Certificate& certificate) {
  SSL_CTX_clear_chain_certs(context_.get());
  set_chain(context_.get(), certificate);
}

TlsPeer::TlsPeer(const TlsServer& server) : ssl_(SSL_new(server.context()), SSL_free) {
  must(ssl_ != nullptr, "a connection");
  BIO* const in = BIO_new(BIO_s_mem());
  BIO* const out = BIO_new(BIO_s_mem());
  BIO_set_mem_eof_return(in, -1);
  SSL_set_bio(ssl_.get(), in, out);
  SSL_set_accept_state(ssl_.get());
}

void TlsPeer::feed(const std::string& bytes) {
  SSL* const ssl = ssl_.get();
  ERR_clear_error();
  if (!bytes.empty()) BIO_write(SSL_get_rbio(ssl), bytes.data(), static_cast<int>(bytes.size()));
  if (failed_) return;
  char plain[16'384];
  size_t got = 0;
  while (SSL_read_ex(ssl, plain, sizeof plain, &got) == 1) heard.append(plain, got);
  const int why = SSL_get_error(ssl, 0);
  failed_ = why == SSL_ERROR_SSL || why == SSL_ERROR_SYSCALL;
}

std::string TlsPeer::take() {
  std::string bytes(static_cast<size_t>(BIO_pending(SSL_get_wbio(ssl_.get()))), '\0');
  if (!bytes.empty()) BIO_read(SSL_get_wbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
  return bytes;
}

void TlsPeer::say(const std::string& plain) {
  size_t written = 0;
  must(SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &written) == 1 && written == plain.size(), "plain text");
}

void TlsPeer::change_keys(bool ask_back) {
  must(SSL_key_update(ssl_.get(), ask_back ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED) == 1, "new keys");
  SSL_do_handshake(ssl_.get());
}

void TlsPeer::say_goodbye() { SSL_shutdown(ssl_.get()); }
bool TlsPeer::accepted() const { return SSL_is_init_finished(ssl_.get()) == 1; }
bool TlsPeer::client_said_goodbye() const { return (SSL_get_shutdown(ssl_.get()) & SSL_RECEIVED_SHUTDOWN) != 0; }

std::string TlsPeer::server_name() const {
  const char* const name = SSL_get_servername(ssl_.get(), TLSEXT_NAMETYPE_host_name);
  return name != nullptr ? name : "";
}

// ---- the wire ---------------------------------------------------------------------------------------------------

tls::Wire TestWire::wire() {
  return {this,
          [](void* self, char* at, size_t room) -> ssize_t {
            TestWire& w = *static_cast<TestWire*>(self);
            ++w.receives;
            const size_t n = std::min({room, w.in.size(), w.receive_max});
            if (n == 0) return w.broken ? tls::Wire::broken : w.ended ? tls::Wire::end : tls::Wire::nothing_now;
            std::copy_n(w.in.data(), n, at);
            w.in.erase(0, n);
            w.received += n;
            return static_cast<ssize_t>(n);
          },
          [](void* self, const char* data, size_t size) -> ssize_t {
            TestWire& w = *static_cast<TestWire*>(self);
            const size_t n = std::min({size, w.send_max, w.send_room});
            if (w.send_broken) return tls::Wire::broken;
            if (n == 0) return tls::Wire::nothing_now;
            w.send_room -= w.send_room == SIZE_MAX ? 0 : n;
            w.sent += n;
            w.out.append(data, n);
            return static_cast<ssize_t>(n);
          }};
}

TlsSettings TlsWishes::settings() const {
  const auto bytes = [](const std::string& text) { return Bytes(text.data(), text.size()); };
  TlsSettings s;
  s.wanted = true;
  s.tls13 = tls13;
  s.ca_file = bytes(ca_file);
  s.cert_file = bytes(cert_file);
  s.key_file = bytes(key_file);
  s.server_name = bytes(server_name);
  s.pins = bytes(pins);
  return s;
}

// ---- a talk -----------------------------------------------------------------------------------------------------

TlsTalk::TlsTalk(Tls& c, const TlsServer& server, int64_t utc_s) : client(c), peer(server) {
  must(client.begin(wire.wire(), utc_s) == 0, "the client");
}

TlsTalk::TlsTalk(Tls& c, const TlsServer& server) : TlsTalk(c, server, time(nullptr)) {}

void TlsTalk::pump() {
  peer.feed(wire.out);
  wire.out.clear();
  std::string bytes = peer.take();
  if (mangle) mangle(bytes);
  wire.in += bytes;
}

tls::Progress TlsTalk::step() {
  ++steps;
  const tls::Progress progress = client.step();
  pump();
  return progress;
}

tls::Progress TlsTalk::shake() {
  for (;;) {
    const size_t left = wire.in.size();
    const tls::Progress progress = step();
    if (progress != tls::Progress::wants_input && progress != tls::Progress::wants_output) return progress;
    const bool over = wire.ended || wire.broken;
    if (progress == tls::Progress::wants_input && wire.in.empty() && left == 0 && !over) return progress;
  }
}

std::string TlsTalk::read(tls::Progress* last) {
  std::string all;
  char room[4'096];
  for (;;) {
    size_t got = 0;
    const tls::Progress progress = client.read(room, sizeof room, got);
    if (last != nullptr) *last = progress;
    if (progress != tls::Progress::done) return all;
    all.append(room, got);
  }
}

bool TlsTalk::write(const std::string& text) {
  size_t at = 0;
  while (at < text.size()) {
    size_t taken = 0;
    tls::Progress progress = client.write({text.data() + at, text.size() - at}, taken);
    at += taken;
    for (unsigned tries = 0; progress == tls::Progress::wants_output && tries < 100'000; ++tries) {
      pump();
      progress = client.flush();
    }
    if (progress != tls::Progress::done) return false;
  }
  pump();
  return true;
}

bool client_has_tls13() {
  static const bool has = [] {
    const TlsWishes wishes = {.pins = std::string(TlsSettings::pin_size, 'x'), .tls13 = true};
    Tls probe;
    return probe.init(wishes.settings()) == 0;
  }();
  return has;
}

}  // namespace redlock::test
