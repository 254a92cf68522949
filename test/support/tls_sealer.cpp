// SPDX-License-Identifier: MIT
#include "support/tls_sealer.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>

#include <memory>
#include <stdexcept>

namespace redlock::test {
namespace {

constexpr size_t key_size = 16, iv_size = 12, salt_size = 4, tag_size = 16;

thread_local std::string server_secret;  // of the last handshake by TLS 1.3

void must(bool done, const char* what) {
  if (!done) throw std::runtime_error(std::string("tls_sealer: ") + what);
}

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
