// SPDX-License-Identifier: MIT
#include "support/tls_peer.hpp"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
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

namespace {

constexpr size_t key_size = 16, iv_size = 12, salt_size = 4, tag_size = 16;

thread_local std::string server_secret;  // of the last handshake by TLS 1.3

unsigned char* bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }
const unsigned char* bytes(const std::string& text) { return reinterpret_cast<const unsigned char*>(text.data()); }

std::string unhex(const std::string& digits) {
  std::string out;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    out += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return out;
}

std::string big_endian(uint64_t number, size_t size) {
  std::string out(size, '\0');
  for (size_t i = size; i-- > 0; number >>= 8) out[i] = static_cast<char>(number);
  return out;
}

std::string hmac(const std::string& key, const std::string& data) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  must(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes(data), data.size(), digest, &size) != nullptr,
       "HMAC");
  return {reinterpret_cast<char*>(digest), size};
}

// RFC 5246, section 5.
std::string prf(const std::string& secret, const std::string& seed, size_t size) {
  std::string out, a = seed;
  while (out.size() < size) {
    a = hmac(secret, a);
    out += hmac(secret, a + seed);
  }
  return out.substr(0, size);
}

// RFC 8446, section 7.1, of at most 32 bytes.
std::string expand(const std::string& secret, const std::string& name, size_t size) {
  const std::string label = "tls13 " + name;
  const std::string info = big_endian(size, 2) + big_endian(label.size(), 1) + label + '\0';
  return hmac(secret, info + '\1').substr(0, size);
}

void note(const SSL*, const char* line) {
  const std::string text = line;
  if (text.rfind("SERVER_TRAFFIC_SECRET_0 ", 0) == 0) server_secret = unhex(text.substr(text.rfind(' ') + 1));
}

}  // namespace

void TlsSealer::prepare(SSL_CTX* server) {
  must(SSL_CTX_set_cipher_list(server, "ECDHE+AES128+AESGCM") == 1, "the cipher of TLS 1.2");
  must(SSL_CTX_set_ciphersuites(server, "TLS_AES_128_GCM_SHA256") == 1, "the cipher of TLS 1.3");
  must(SSL_CTX_set_num_tickets(server, 0) == 1, "no tickets");
  SSL_CTX_set_options(server, SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(server, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_keylog_callback(server, note);
}

TlsSealer::TlsSealer(SSL* server) : tls13_(SSL_version(server) == TLS1_3_VERSION) {
  tls13_ ? derive13() : derive12(server);
}

// The server's Finished was the first record with these keys.
void TlsSealer::derive12(SSL* server) {
  const auto taken = [server](auto call) {
    std::string out(call(server, nullptr, size_t{0}), '\0');
    call(server, bytes(out), out.size());
    return out;
  };
  const std::string randoms = taken(SSL_get_server_random) + taken(SSL_get_client_random);
  std::string master(48, '\0');
  must(SSL_SESSION_get_master_key(SSL_get_session(server), bytes(master), master.size()) == 48, "the master secret");
  const std::string block = prf(master, "key expansion" + randoms, 2 * (key_size + salt_size));
  use(block.substr(key_size, key_size));
  iv_ = block.substr(2 * key_size + salt_size, salt_size);
  sequence_ = 1;
}

void TlsSealer::derive13() {
  use(expand(server_secret, "key", key_size));
  iv_ = expand(server_secret, "iv", iv_size);
}

void TlsSealer::use(const std::string& key) {
  cipher_ = {EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free};
  must(EVP_EncryptInit_ex(cipher_.get(), EVP_aes_128_gcm(), nullptr, bytes(key), nullptr) == 1, "the cipher");
}

std::string TlsSealer::encrypt(const std::string& nonce, const std::string& header, const std::string& plain) const {
  EVP_CIPHER_CTX* const c = cipher_.get();
  std::string out(plain.size() + tag_size, '\0');
  int size = 0;
  must(EVP_EncryptInit_ex(c, nullptr, nullptr, nullptr, bytes(nonce)) == 1 &&
           EVP_EncryptUpdate(c, nullptr, &size, bytes(header), static_cast<int>(header.size())) == 1 &&
           EVP_EncryptUpdate(c, bytes(out), &size, bytes(plain), static_cast<int>(plain.size())) == 1 &&
           EVP_EncryptFinal_ex(c, bytes(out) + plain.size(), &size) == 1 &&
           EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, tag_size, bytes(out) + plain.size()) == 1,
       "a record");
  return out;
}

std::string TlsSealer::seal(int type, const std::string& body, size_t padding) {
  const std::string number = big_endian(sequence_++, 8), version = "\x03\x03";
  if (!tls13_) {
    const std::string kind = static_cast<char>(type) + version;
    const std::string sealed = number + encrypt(iv_ + number, number + kind + big_endian(body.size(), 2), body);
    return kind + big_endian(sealed.size(), 2) + sealed;
  }
  const std::string plain = body + static_cast<char>(type) + std::string(padding, '\0');
  const std::string header = static_cast<char>(text) + version + big_endian(plain.size() + tag_size, 2);
  std::string nonce = iv_;
  for (size_t i = 0; i < number.size(); ++i)
    nonce[iv_size - 8 + i] = static_cast<char>(nonce[iv_size - 8 + i] ^ number[i]);
  return header + encrypt(nonce, header, plain);
}

}  // namespace redlock::test
