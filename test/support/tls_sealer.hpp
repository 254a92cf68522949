// SPDX-License-Identifier: MIT
//
// TlsSealer: encrypts records of any type as the server of a connection does, with the keys of an honest handshake.
// OpenSSL's server has no call that sends a warning, a request for a new handshake, or an empty record, and a hostile
// server sends just these.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

struct evp_cipher_ctx_st;
struct ssl_st;
struct ssl_ctx_st;

namespace redlock::test {

class TlsSealer {
 public:
  // Of the server, before its first connection: one cipher, no tickets, and the secrets of TLS 1.3 are noted for the
  // thread that serves.
  static void prepare(ssl_ctx_st* server);
  // Behind the handshake, on the thread that served it. The server has sent nothing since, and sends nothing any more.
  explicit TlsSealer(ssl_st* server);

  static constexpr int keys = 20, alert = 21, handshake = 22, text = 23;
  // padding: zeros behind the body, which TLS 1.3 allows.
  std::string seal(int type, const std::string& body, size_t padding = 0);

 private:
  void derive12(ssl_st* server);
  void derive13();
  void use(const std::string& key);
  std::string encrypt(const std::string& nonce, const std::string& header, const std::string& plain) const;

  bool tls13_ = false;
  std::shared_ptr<evp_cipher_ctx_st> cipher_;
  std::string iv_;
  uint64_t sequence_ = 0;
};

}  // namespace redlock::test
