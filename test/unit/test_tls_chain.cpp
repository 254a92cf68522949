// SPDX-License-Identifier: MIT
//
// Which chains of certificates an engine is given to compute with. The messages come as a peer would send them: whole,
// in pieces, several in one record, one in several records.
#include "port/tls/chain.hpp"

#include <gtest/gtest.h>
#include <openssl/x509.h>

#include <string>
#include <vector>

#include "support/tls_peer.hpp"

namespace redlock::test {
namespace {

using tls::Progress;
using Options = Certificate::Options;

std::string der_of(const Certificate& certificate) {
  unsigned char* der = nullptr;
  const int size = i2d_X509(certificate.x509(), &der);
  std::string text(reinterpret_cast<char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return text;
}

std::string size24(size_t size) {
  return {static_cast<char>(size >> 16), static_cast<char>(size >> 8), static_cast<char>(size)};
}

std::string message(char type, const std::string& body) { return type + size24(body.size()) + body; }

std::string chain(const std::vector<std::string>& ders) {
  std::string list;
  for (const std::string& der : ders) list += size24(der.size()) + der;
  return message(11, size24(list.size()) + list);
}

int judged(const std::string& bytes, size_t piece = SIZE_MAX) {
  tls::ChainGate gate;
  int refused = 0;
  for (size_t at = 0; at < bytes.size() && refused == 0; at += std::min(piece, bytes.size())) {
    refused = gate.take(bytes.data() + at, std::min(piece, bytes.size() - at));
  }
  return refused;
}

int looked_at(const std::string& der) { return tls::ChainGate().look_at({der.data(), der.size()}); }

int judged(const Options& options) {
  const std::string der = der_of(Certificate::authority().issue(options));
  const int refused = judged(chain({der}));
  EXPECT_EQ(looked_at(der), refused);
  return refused;
}

const std::string& good() {
  static const std::string der = der_of(Certificate::authority().issue({"DNS:m1.example"}));
  return der;
}

const std::string& rsa() {
  static const std::string der = der_of(Certificate::authority().issue(Options{.key = "hollow:4096:17"}));
  return der;
}

TEST(TlsChain, KeysOfAWellRunSite) {
  for (const char* key : {"P-256", "P-384", "P-521", "ed25519", "rsa:2048", "hollow:4096:32", "hollow:2048:2"}) {
    EXPECT_EQ(judged(Options{.key = key}), 0) << key;
  }
}

TEST(TlsChain, KeysThatCostTooMuchOrProtectTooLittle) {
  const std::pair<const char*, int> refused[] = {
      {"hollow:4097:17", REDLOCK_E_TLS_MODULUS},   {"hollow:8192:8192", REDLOCK_E_TLS_MODULUS},
      {"hollow:2047:17", REDLOCK_E_TLS_WEAK},      {"rsa:1024", REDLOCK_E_TLS_WEAK},
      {"hollow:4096:33", REDLOCK_E_TLS_EXPONENT},  {"hollow:2048:2048", REDLOCK_E_TLS_EXPONENT},
      {"brainpoolP512r1", REDLOCK_E_TLS_KEY},      {"secp256k1", REDLOCK_E_TLS_KEY},
      {"B-571", REDLOCK_E_TLS_KEY},
  };
  for (const auto& [key, error] : refused) EXPECT_EQ(judged(Options{.key = key}), error) << key;
}

TEST(TlsChain, AtMostFour) {
  EXPECT_EQ(judged(chain({good(), rsa(), rsa(), rsa()})), 0);
  EXPECT_EQ(judged(chain({good(), rsa(), rsa(), rsa(), rsa()})), REDLOCK_E_TLS_CHAIN);
  EXPECT_EQ(judged(chain({})), 0) << "the engine's to refuse";
}

TEST(TlsChain, AuthoritiesOnCurves) {
  const Certificate root = Certificate::authority();
  const std::string p384 = der_of(root.issue(Options{.key = "P-384"}));
  const std::string p521 = der_of(root.issue(Options{.key = "P-521"}));
  EXPECT_EQ(judged(chain({p384, p384, p384, rsa()})), 0);
  EXPECT_EQ(judged(chain({good(), good(), rsa(), p384})), 0);
  EXPECT_EQ(judged(chain({good(), p384, good(), p384})), REDLOCK_E_TLS_CURVES);
  EXPECT_EQ(judged(chain({p521, p521, rsa()})), 0);
  EXPECT_EQ(judged(chain({good(), p521, p384})), REDLOCK_E_TLS_CURVES);
  EXPECT_EQ(judged(chain({good(), p521, p521})), REDLOCK_E_TLS_CURVES);
}

TEST(TlsChain, EachCertificateIsLookedAt) {
  const std::string bad = der_of(Certificate::authority().issue(Options{.key = "hollow:8192:17"}));
  EXPECT_EQ(judged(chain({good(), good(), good(), bad})), REDLOCK_E_TLS_MODULUS);
  EXPECT_EQ(judged(chain({good()}) + chain({bad})), REDLOCK_E_TLS_MODULUS) << "a second message";
  EXPECT_EQ(judged(message(2, std::string(70, 'h')) + chain({good(), bad})), REDLOCK_E_TLS_MODULUS) << "behind a hello";
  EXPECT_EQ(judged(message(2, bad) + chain({good()})), 0) << "another message says what it likes";
}

TEST(TlsChain, HoweverTheBytesCome) {
  const std::string bad = der_of(Certificate::authority().issue(Options{.key = "hollow:4096:40"}));
  const std::string hello = message(2, std::string(70, 'h')), done = message(14, "");
  for (const size_t piece : {1u, 2u, 3u, 5u, 64u, 333u}) {
    EXPECT_EQ(judged(hello + chain({good(), good()}) + done, piece), 0);
    EXPECT_EQ(judged(hello + done + chain({good(), bad}) + done, piece), REDLOCK_E_TLS_EXPONENT) << piece;
  }
}

TEST(TlsChain, TheSizeOfTheMessage) {
  const std::string large = message(11, std::string(tls::message_max + 1, '\0'));
  EXPECT_EQ(judged(large.substr(0, 4)), REDLOCK_E_TLS_MESSAGE) << "before it has come";
  EXPECT_EQ(judged(message(12, std::string(tls::message_max + 1, '\0'))), 0) << "no certificates";
}

// Whatever is no certificate is refused, or the key has been seen: an engine that finds a key at another place than the
// gate would be out of its reach.
TEST(TlsChain, ADamagedCertificate) {
  std::string der = good();
  for (size_t at = 0; at < der.size(); ++at) {
    (void)looked_at(der.substr(0, at));
    const char kept = der[at];
    for (const int other : {0x00, 0x7f, 0x80, 0x84, 0xff}) {
      der[at] = static_cast<char>(other);
      (void)looked_at(der);
    }
    der[at] = kept;
  }
  EXPECT_EQ(looked_at(good().substr(0, 40)), REDLOCK_E_TLS_BROKEN) << "cut before the key";
  EXPECT_EQ(looked_at(""), REDLOCK_E_TLS_BROKEN);
  EXPECT_EQ(judged(chain({good().substr(0, 40)})), REDLOCK_E_TLS_BROKEN);
  EXPECT_EQ(judged(chain({std::string(200, '0')})), REDLOCK_E_TLS_BROKEN) << "a sequence is no integer";
  const std::string endless = "\x30\x80" + good().substr(4);
  EXPECT_EQ(looked_at(endless), REDLOCK_E_TLS_BROKEN) << "a size that BER allows";
}

}  // namespace
}  // namespace redlock::test
