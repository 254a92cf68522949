// SPDX-License-Identifier: MIT
//
// Which chains of certificates an engine is given to compute with. The messages come as a peer would send them: whole,
// in pieces, several in one record, one in several records.
#include "port/tls/chain.hpp"

#include <gtest/gtest.h>
#include <openssl/x509.h>
#include <time.h>

#include <string>
#include <vector>

#include "port/tls/certificate.hpp"
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

// Dates, names and pins, as data. The judgment on real certificates is in test_tls_peers.
namespace redlock::tls {
namespace {

Bytes bytes(const std::string& text) { return {text.data(), text.size()}; }

bool matches(const std::string& wanted, const std::string& dns) {
  return ServerName(bytes(wanted)).matches(false, bytes(dns));
}
bool matches_address(const std::string& wanted, const std::string& address) {
  return ServerName(bytes(wanted)).matches(true, bytes(address));
}

TEST(TlsDates, SecondsAreThoseOfTheCLibrary) {
  for (int64_t s = utc_seconds(1950, 1, 1, 0, 0, 0); s < utc_seconds(2450, 1, 1, 0, 0, 0); s += 86'400 * 3 + 12'345) {
    const time_t at = static_cast<time_t>(s);
    if (at != s) break;  // a short time_t
    tm t = {};
    gmtime_r(&at, &t);
    ASSERT_EQ(utc_seconds(t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec), s);
  }
  EXPECT_EQ(utc_seconds(1970, 1, 1, 0, 0, 0), 0);
  EXPECT_EQ(utc_seconds(2000, 2, 29, 0, 0, 0), 951'782'400);
  EXPECT_EQ(utc_seconds(2038, 1, 19, 3, 14, 8), int64_t{1} << 31);
  EXPECT_EQ(utc_seconds(9999, 12, 31, 23, 59, 59), 253'402'300'799);
}

TEST(TlsDates, EachCertificateOfTheChainCounts) {
  Peer peer = {};
  peer.certificates = 3;
  for (unsigned i = 0; i < 3; ++i) peer.validity[i] = {1'000 + i, 2'000 - i};
  using Of = TlsDate::Of;
  TlsDate wrong;
  EXPECT_EQ(judge_dates(peer, 1'002, wrong), 0);
  EXPECT_EQ(judge_dates(peer, 1'998, wrong), 0) << "the last second belongs to it";
  EXPECT_EQ(wrong.of, Of::none);
  const auto meets = [&](int64_t utc_s, int err, Of of, int64_t at_s) {
    EXPECT_EQ(judge_dates(peer, utc_s, wrong), err) << utc_s;
    EXPECT_EQ(wrong.of, of) << utc_s;
    EXPECT_EQ(wrong.at_s, at_s) << utc_s;
  };
  meets(1'001, REDLOCK_E_TLS_EARLY, Of::authority, 1'002);
  meets(1'000, REDLOCK_E_TLS_EARLY, Of::intermediate, 1'001);
  meets(999, REDLOCK_E_TLS_EARLY, Of::master, 1'000);
  meets(1'999, REDLOCK_E_TLS_EXPIRED, Of::authority, 1'998);
  meets(2'000, REDLOCK_E_TLS_EXPIRED, Of::intermediate, 1'999);
  EXPECT_EQ(earliest_end_s(peer), 1'998);
  peer.certificates = 1;  // the master's own is in the file
  meets(2'001, REDLOCK_E_TLS_EXPIRED, Of::master, 2'000);
}

TEST(TlsNames, HostNames) {
  EXPECT_TRUE(matches("m1.example.com", "m1.example.com"));
  EXPECT_TRUE(matches("M1.Example.COM", "m1.eXample.com"));
  EXPECT_TRUE(matches("m1.example.com", "m1.example.com."));
  EXPECT_FALSE(matches("m1.example.com", "m2.example.com"));
  EXPECT_FALSE(matches("m1.example.com", "example.com"));
  EXPECT_FALSE(matches("m1.example.com", ""));
  EXPECT_FALSE(matches("", ""));
}

TEST(TlsNames, ANulEndsNoName) {
  EXPECT_FALSE(matches("m1.example.com", std::string("m1.example.com\0.evil.example", 28)));
  EXPECT_FALSE(matches(std::string("m1\0a", 4), std::string("m1\0b", 4)));
}

TEST(TlsNames, Wildcards) {
  EXPECT_TRUE(matches("m1.example.com", "*.example.com"));
  EXPECT_TRUE(matches("M1.plant.example.com", "*.PLANT.example.com."));
  EXPECT_FALSE(matches("example.com", "*.example.com"));
  EXPECT_FALSE(matches("a.m1.example.com", "*.example.com")) << "one label";
  EXPECT_FALSE(matches(".example.com", "*.example.com"));
  EXPECT_FALSE(matches("example.com", "*.com")) << "fewer than three labels";
  EXPECT_FALSE(matches("example.com", "*.com."));
  EXPECT_FALSE(matches("m1.example.com", "m*.example.com")) << "not the whole label";
  EXPECT_FALSE(matches("m1.example.com", "m1.*.com")) << "not the left-most";
  EXPECT_FALSE(matches("m1.example.com", "*"));
}

TEST(TlsNames, AddressesAreBytes) {
  const std::string v4("\x0a\0\0\x01", 4), v6("\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01", 16);
  EXPECT_TRUE(matches_address("10.0.0.1", v4));
  EXPECT_TRUE(matches_address("fd00::1", v6));
  EXPECT_TRUE(matches_address("FD00:0:0::0:1", v6));
  EXPECT_FALSE(matches_address("fd00::2", v6));
  EXPECT_FALSE(matches_address("10.0.0.1", v6));
  EXPECT_FALSE(matches_address("10.0.0.1", v4 + v4)) << "an address with its mask";
  EXPECT_FALSE(matches_address("10.0.0.1.", v4)) << "a host name";
  EXPECT_FALSE(matches_address("m1.example.com", v4));
  EXPECT_FALSE(matches("10.0.0.1", "10.0.0.1")) << "a DNS name that reads like an address";
  EXPECT_FALSE(matches("10.0.0.1", "*.0.0.1"));
  EXPECT_FALSE(matches("fd00::1", "fd00::1"));
  EXPECT_TRUE(ServerName("10.0.0.1").is_address());
  EXPECT_FALSE(ServerName("m1.example.com").is_address());
}

TEST(TlsPins, AnyOfThem) {
  unsigned char key[32];
  for (unsigned i = 0; i < 32; ++i) key[i] = static_cast<unsigned char>(i * 7);
  const std::string right(reinterpret_cast<char*>(key), 32), wrong(32, 'x');
  EXPECT_TRUE(has_pin(bytes(right), key));
  EXPECT_TRUE(has_pin(bytes(wrong + right), key));
  EXPECT_TRUE(has_pin(bytes(right + wrong), key));
  EXPECT_FALSE(has_pin(bytes(wrong), key));
  EXPECT_FALSE(has_pin({}, key));
  EXPECT_FALSE(has_pin(bytes(right.substr(0, 31)), key));
  EXPECT_FALSE(has_pin(bytes("x" + right), key)) << "pins lie one behind the other";
  for (unsigned bit = 0; bit < 256; ++bit) {
    std::string other = right;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(has_pin(bytes(other), key)) << bit;
  }
}

}  // namespace
}  // namespace redlock::tls
