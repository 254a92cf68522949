// SPDX-License-Identifier: MIT
//
// What an engine must leave to others, or refuse: alike with both libraries.
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <ctime>

#include "support/tls_peer.hpp"

namespace redlock::test {
namespace {

using tls::Progress;
constexpr int64_t year = 365 * 86'400;

// The library may know a time of day that is not the one that the caller goes by.
TEST(TlsEngine, KnowsNoTime) {
  const CertificateFolder folder;
  const auto root = Certificate::self_signed(
      {.cn = "old", .use = Certificate::Use::authority, .from_s = -12 * year, .until_s = -8 * year});
  const TlsServer server(root.issue({.names = {"DNS:m1.example"}, .from_s = -11 * year, .until_s = -9 * year}));
  const TlsWishes wishes = {.ca_file = folder.write("ca.pem", root.pem())};
  Tls client;
  ASSERT_EQ(client.init(wishes.settings()), 0);
  EXPECT_EQ(TlsTalk(client, server, time(nullptr) - 10 * year).shake(), Progress::done);

  TlsTalk now(client, server);
  EXPECT_EQ(now.shake(), Progress::failed);
  EXPECT_EQ(client.error(), REDLOCK_E_TLS_EXPIRED);
}

TEST(TlsEngine, TakesNoDer) {
  const CertificateFolder folder;
  const auto root = Certificate::authority();
  unsigned char* der = nullptr;
  const int size = i2d_X509(root.x509(), &der);
  ASSERT_GT(size, 0);
  const TlsWishes wishes = {.ca_file =
                                folder.write("ca.der", {reinterpret_cast<char*>(der), static_cast<size_t>(size)})};
  OPENSSL_free(der);
  Tls client;
  EXPECT_EQ(client.init(wishes.settings()), REDLOCK_E_TLS_FILE);
}

// A session that the server does not take brings the old chain's facts: those of the new one count.
TEST(TlsEngine, ForgetsTheChainOfASessionThatIsRefused) {
  const CertificateFolder folder;
  const auto root = Certificate::authority();
  const auto ends = Certificate::self_signed({.cn = "ends", .use = Certificate::Use::authority, .until_s = 86'400});
  const auto middle = ends.issue({.cn = "between", .use = Certificate::Use::authority});
  const TlsServer below(middle.issue({"DNS:m1.example"})), beside(root.issue({"DNS:m1.example"}));
  SSL_CTX_add1_chain_cert(below.context(), middle.x509());
  const TlsWishes wishes = {.ca_file = folder.write("ca.pem", root.pem() + ends.pem())};
  Tls client;
  ASSERT_EQ(client.init(wishes.settings()), 0);
  Tls::Facts facts;
  {
    TlsTalk talk(client, below);
    ASSERT_EQ(talk.shake(), Progress::done);
    talk.pump();
    talk.read();
    ASSERT_TRUE(client.facts(facts));
    EXPECT_LT(facts.not_after_s, time(nullptr) + 2 * 86'400);
  }
  TlsTalk talk(client, beside);
  ASSERT_EQ(talk.shake(), Progress::done);
  ASSERT_TRUE(client.facts(facts));
  EXPECT_FALSE(facts.resumed);
  EXPECT_GT(facts.not_after_s, time(nullptr) + 2 * 86'400);
}

}  // namespace
}  // namespace redlock::test
