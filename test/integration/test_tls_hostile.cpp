// SPDX-License-Identifier: MIT
//
// A stranger at a master's address, by TLS and without: what is sent before anybody has shown who it is.
#include <map>

#include "hostile_site.hpp"

namespace redlock::test {
namespace {

// A hello of TLS 1.2 and a chain. No cryptography is needed to say this.
Hostile::Attack shows(const std::vector<const Certificate*>& chain) {
  const std::string extensions = std::string{char(0xff), 1, 0, 1, 0, 0, 11, 0, 2, 1, 0};
  std::string hello = std::string{3, 3} + std::string(32, 'r') + std::string{0, char(0xc0), 0x2b, 0};
  hello += std::string{0, static_cast<char>(extensions.size())} + extensions;
  std::string list;
  for (const Certificate* certificate : chain) {
    unsigned char* der = nullptr;
    const size_t size = static_cast<size_t>(i2d_X509(certificate->x509(), &der));
    list += size24(size) + std::string(reinterpret_cast<char*>(der), size);
    OPENSSL_free(der);
  }
  const std::string body = size24(list.size()) + list;
  std::string bytes = record(22, char(2) + size24(hello.size()) + hello);
  const std::string message = char(11) + size24(body.size()) + body;
  for (size_t at = 0; at < message.size(); at += 16'384) bytes += record(22, message.substr(at, 16'384));
  return [bytes](Hostile& h, int fd) {
    if (h.hear(fd) && h.send_all(fd, bytes)) h.hear(fd);
  };
}

TEST_F(TlsHostile, FloodsBeforeTheHandshake) {
  endure("warnings", flood(record(21, std::string{1, 90})), 0);
  endure("hello requests", flood(record(22, std::string(4, '\0'))), 0);
  endure("changes of keys", flood(record(20, "\x01")), 0);
  endure("empty text", flood(record(23, "")), 0);
  endure("no TLS", flood("+OK\r\n"), REDLOCK_E_TLS_NONE);
}

// All certificates have the name of the site's authority, each signs the next and itself, and all have expired. So each
// candidate is computed.
TEST_F(TlsHostile, ChainsOfAStranger) {
  const auto show = [&](const char* what, const std::vector<const char*>& keys, int err) {
    Certificate::Options options = {
        .cn = "redlock test authority", .use = Certificate::Use::authority, .from_s = -2'000, .until_s = -1'000};
    std::vector<Certificate> chain;
    std::map<std::string, Certificate> made;
    for (const char* key : keys) {
      options.key = key;
      if (made.count(key) == 0) made.emplace(key, Certificate::self_signed(options));
      chain.push_back(made.at(key).renewed(options, made.at(key)));
    }
    std::vector<const Certificate*> all;
    for (const Certificate& c : chain) all.push_back(&c);
    endure(what, shows(all), err);
  };
  show("four of RSA-8192", std::vector<const char*>(4, "quick:8192:8000"), REDLOCK_E_TLS_MODULUS);
  show("four of RSA-4096", std::vector<const char*>(4, "quick:4096:32"), REDLOCK_E_TLS_AUTHORITY);
  show("three of P-256", std::vector<const char*>(3, "P-256"), REDLOCK_E_TLS_AUTHORITY);
  show("four of P-256", std::vector<const char*>(4, "P-256"), REDLOCK_E_TLS_CURVES);
  show("three of P-384", std::vector<const char*>(3, "P-384"), REDLOCK_E_TLS_AUTHORITY);
  show("three of P-384 and RSA", {"P-384", "P-384", "P-384", "quick:4096:32"}, REDLOCK_E_TLS_AUTHORITY);
  show("two of P-521", std::vector<const char*>(2, "P-521"), REDLOCK_E_TLS_AUTHORITY);
  show("four of P-521", std::vector<const char*>(4, "P-521"), REDLOCK_E_TLS_CURVES);
}

// However slowly the bytes of a handshake come, connect_timeout_ms ends it.
TEST_F(TlsHostile, Drips) {
  numbers = {{"timing.connect_timeout_ms", 500}};
  const std::string slow = record(22, char(2) + size24(70) + std::string(70, 'h'));
  std::atomic<unsigned> ended{0};
  endure(
      "a byte now and then",
      [&](Hostile& h, int fd) {
        if (!h.hear(fd)) return;
        for (size_t i = 0; i < slow.size() && h.send_all(fd, slow.substr(i, 1)); ++i) {
          char byte;
          if (recv(fd, &byte, 1, 0) == 0) break;  // waits for 50 ms
          if (h.stopped()) break;
        }
        ++ended;
      },
      REDLOCK_E_CONNECT_TIMEOUT);
  EXPECT_GE(ended, 3u);
}

TEST_F(TlsHostile, WithoutTls) {
  endure("in the clear: unasked text", flood("+OK\r\n"), REDLOCK_E_PROTOCOL, "redis://");
  endure("in the clear: line ends", flood("\r\n"), REDLOCK_E_PROTOCOL, "redis://");
  endure("in the clear: pushes", flood(">2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\nbus\r\n"), 0, "redis://", 2);
}

}  // namespace
}  // namespace redlock::test
