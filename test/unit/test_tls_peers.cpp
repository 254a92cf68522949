// SPDX-License-Identifier: MIT
//
// Which peers are believed, and what is told about the others. Each test shows its peer with TLS 1.2, and with TLS 1.3
// where the client's library has it.
#include <gtest/gtest.h>

#include "support/tls_peer.hpp"

namespace redlock::test {
namespace {

using tls::Progress;

class TlsPeers : public ::testing::TestWithParam<TlsVersions> {
 protected:
  void SetUp() override {
    if (GetParam() == TlsVersions::only_1_3 && !client_has_tls13()) GTEST_SKIP() << "the library ends with TLS 1.2";
  }
  TlsServer server(const Certificate& c) { return TlsServer(c, {.versions = GetParam()}); }
  TlsServer asking_server(const Certificate& client_authority) {
    return TlsServer(good, {.versions = GetParam(), .client = ClientCertificate::wanted,
                            .client_authority = &client_authority});
  }
  // 0, or the error of a handshake. Nothing must have left for the peer to hear where there is an error.
  int meet(const TlsServer& with, int64_t utc_s) {
    Tls client;
    EXPECT_EQ(client.init(wishes.settings()), 0);
    TlsTalk talk(client, with, utc_s);
    const Progress progress = talk.shake();
    size_t count = 0;
    char byte = 0;
    if (progress == Progress::done) {
      EXPECT_TRUE(talk.write("AUTH"));
      return 0;
    }
    EXPECT_EQ(progress, Progress::failed);
    EXPECT_EQ(client.write("AUTH", count), Progress::failed);
    EXPECT_EQ(client.read(&byte, 1, count), Progress::failed);
    EXPECT_FALSE(client.has_read_ahead());
    Tls::Facts facts;
    EXPECT_FALSE(client.facts(facts));
    talk.pump();
    EXPECT_EQ(talk.peer.heard, "");
    return client.error();
  }
  int meet(const TlsServer& with) { return meet(with, now); }
  int meet(const Certificate& c) { return meet(server(c)); }

  // The handshake, then what the first reads say: a peer judges our certificate behind the end of a 1.3 handshake.
  int meet_and_listen(const TlsServer& with) {
    Tls client;
    EXPECT_EQ(client.init(wishes.settings()), 0);
    TlsTalk talk(client, with, now);
    Progress progress = talk.shake();
    if (progress == Progress::done) {
      talk.pump();
      talk.read(&progress);
    }
    if (progress == Progress::failed) return client.error();
    return talk.peer.accepted() && !talk.peer.failed() ? 0 : REDLOCK_E_DISCONNECTED;
  }

  void be_client(const Certificate& certificate) {
    wishes.cert_file = folder.write("client.pem", certificate.chain_pem());
    wishes.key_file = folder.write("client.key", certificate.key_pem());
  }
  void name(const std::string& server_name) { wishes.server_name = server_name; }

  const int64_t now = time(nullptr);
  CertificateFolder folder;
  const Certificate root = Certificate::authority(), stranger = Certificate::authority("somebody else's authority");
  const Certificate good = root.issue({"DNS:m1.example"});
  TlsWishes wishes = {.ca_file = folder.write("ca.pem", root.pem())};
};

INSTANTIATE_TEST_SUITE_P(Versions, TlsPeers, ::testing::Values(TlsVersions::only_1_2, TlsVersions::only_1_3),
                         [](const auto& v) { return v.param == TlsVersions::only_1_2 ? "Tls12" : "Tls13"; });

// ---- authorities ------------------------------------------------------------------------------------------------

TEST_P(TlsPeers, AGoodChain) {
  Tls client;
  ASSERT_EQ(client.init(wishes.settings()), 0);
  TlsTalk talk(client, server(good), now);
  ASSERT_EQ(talk.shake(), Progress::done) << client.error();
  EXPECT_TRUE(talk.peer.accepted());
  EXPECT_EQ(talk.peer.server_name(), "m1.example");
  EXPECT_TRUE(talk.write("*1\r\n$4\r\nPING\r\n"));
  EXPECT_EQ(talk.peer.heard, "*1\r\n$4\r\nPING\r\n");
  talk.peer.say("+PONG\r\n");
  talk.pump();
  EXPECT_EQ(talk.read(), "+PONG\r\n");
  Tls::Facts facts;
  ASSERT_TRUE(client.facts(facts));
  EXPECT_FALSE(facts.resumed);
  EXPECT_STREQ(facts.version, GetParam() == TlsVersions::only_1_2 ? "TLSv1.2" : "TLSv1.3");
  EXPECT_NE(std::string(facts.cipher), "");
  EXPECT_NEAR(static_cast<double>(facts.not_before_s - now), -3'600, 60);
  EXPECT_NEAR(static_cast<double>(facts.not_after_s - now), 30 * 86'400, 60);
}

TEST_P(TlsPeers, Rsa) { EXPECT_EQ(meet(root.issue({.names = {"DNS:m1.example"}, .rsa = true})), 0); }

TEST_P(TlsPeers, AnIntermediateAuthority) {
  const Certificate middle = root.issue({.cn = "middle", .use = Certificate::Use::authority});
  EXPECT_EQ(meet(middle.issue({"DNS:m1.example"})), 0);
  const Certificate wrong = stranger.issue({.cn = "middle", .use = Certificate::Use::authority});
  EXPECT_EQ(meet(wrong.issue({"DNS:m1.example"})), REDLOCK_E_TLS_AUTHORITY);
  const Certificate no_authority = root.issue({"DNS:m1.example"});
  EXPECT_EQ(meet(no_authority.issue({"DNS:m1.example"})), REDLOCK_E_TLS_AUTHORITY) << "a leaf issues nothing";
}

TEST_P(TlsPeers, AnAuthorityBelowAnotherMayBeNamed) {
  const Certificate middle = root.issue({.cn = "middle", .use = Certificate::Use::authority});
  wishes.ca_file = folder.write("ca.pem", middle.pem());
  EXPECT_EQ(meet(middle.issue({"DNS:m1.example"})), 0);
  EXPECT_EQ(meet(good), REDLOCK_E_TLS_AUTHORITY);
}

TEST_P(TlsPeers, SeveralAuthorities) {
  wishes.ca_file = folder.write("ca.pem", "what this is for\n" + stranger.pem() + root.pem());
  EXPECT_EQ(meet(good), 0);
  EXPECT_EQ(meet(stranger.issue({"DNS:m1.example"})), 0);
}

TEST_P(TlsPeers, AnotherAuthority) {
  EXPECT_EQ(meet(stranger.issue({"DNS:m1.example"})), REDLOCK_E_TLS_AUTHORITY);
  EXPECT_EQ(meet(Certificate::authority().issue({"DNS:m1.example"})), REDLOCK_E_TLS_AUTHORITY)
      << "of the same name, with another key";
  EXPECT_EQ(meet(Certificate::self_signed({.names = {"DNS:m1.example"}})), REDLOCK_E_TLS_AUTHORITY);
}

// ---- dates ------------------------------------------------------------------------------------------------------

TEST_P(TlsPeers, Dates) {
  const TlsServer s = server(root.issue({.names = {"DNS:m1.example"}, .from_s = -100, .until_s = 100, .now_s = now}));
  EXPECT_EQ(meet(s, now - 101), REDLOCK_E_TLS_EARLY);
  EXPECT_EQ(meet(s, now - 100), 0);
  EXPECT_EQ(meet(s, now + 100), 0);
  EXPECT_EQ(meet(s, now + 101), REDLOCK_E_TLS_EXPIRED);
  const TlsServer past =
      server(root.issue({.names = {"DNS:m1.example"}, .from_s = -900, .until_s = -100, .now_s = now}));
  EXPECT_EQ(meet(past, now - 500), 0) << "the time of day is an argument, and the system's clock is not asked";
  EXPECT_NE(std::string(redlock_strerror(REDLOCK_E_TLS_EARLY)).find("clock set?"), std::string::npos);
}

TEST_P(TlsPeers, DatesOfThoseAbove) {
  const Certificate middle =
      root.issue({.cn = "middle", .use = Certificate::Use::authority, .until_s = 100, .now_s = now});
  const TlsServer s = server(middle.issue({"DNS:m1.example"}));
  EXPECT_EQ(meet(s, now + 100), 0);
  EXPECT_EQ(meet(s, now + 101), REDLOCK_E_TLS_EXPIRED);
}

TEST_P(TlsPeers, DatesOfTheRoot) {
  const Certificate old = Certificate::self_signed(
      {.cn = "old", .use = Certificate::Use::authority, .until_s = 100, .now_s = now});
  wishes.ca_file = folder.write("ca.pem", old.pem());
  const TlsServer s = server(old.issue({"DNS:m1.example"}));
  EXPECT_EQ(meet(s, now + 100), 0);
  EXPECT_EQ(meet(s, now + 101), REDLOCK_E_TLS_EXPIRED);
}

// ---- names ------------------------------------------------------------------------------------------------------

TEST_P(TlsPeers, Names) {
  const TlsServer s = server(root.issue({"DNS:other.example", "DNS:m1.example", "DNS:*.plant.example"}));
  EXPECT_EQ(meet(s), 0);
  for (const char* right : {"M1.example", "m1.example.", "m7.plant.example", "other.example"}) {
    name(right);
    EXPECT_EQ(meet(s), 0) << right;
  }
  for (const char* wrong : {"m2.example", "plant.example", "a.m7.plant.example", "10.0.0.1", "example"}) {
    name(wrong);
    EXPECT_EQ(meet(s), REDLOCK_E_TLS_NAME) << wrong;
  }
}

TEST_P(TlsPeers, TheCommonNameIsNoName) {
  EXPECT_EQ(meet(root.issue({.cn = "m1.example"})), REDLOCK_E_TLS_NAME);
  EXPECT_EQ(meet(root.issue({.cn = "m1.example", .names = {"DNS:m2.example"}})), REDLOCK_E_TLS_NAME);
  name("10.0.0.1");
  EXPECT_EQ(meet(root.issue({.cn = "10.0.0.1"})), REDLOCK_E_TLS_NAME);
}

TEST_P(TlsPeers, Addresses) {
  const TlsServer s = server(root.issue({"IP:10.0.0.1", "IP:fd00::1"}));
  for (const char* right : {"10.0.0.1", "fd00::1", "FD00:0::1"}) {
    name(right);
    EXPECT_EQ(meet(s), 0) << right;
  }
  for (const char* wrong : {"10.0.0.2", "fd00::2", "m1.example", "::ffff:10.0.0.1"}) {
    name(wrong);
    EXPECT_EQ(meet(s), REDLOCK_E_TLS_NAME) << wrong;
  }
}

TEST_P(TlsPeers, ADnsNameIsNoAddress) {
  name("10.0.0.1");
  EXPECT_EQ(meet(root.issue({"DNS:10.0.0.1"})), REDLOCK_E_TLS_NAME);
  EXPECT_EQ(meet(root.issue({"DNS:*.0.0.1"})), REDLOCK_E_TLS_NAME);
  EXPECT_EQ(meet(root.issue({"DNS:10.0.0.1", "IP:10.0.0.1"})), 0);
  name("fd00::1");
  EXPECT_EQ(meet(root.issue({"DNS:fd00::1"})), REDLOCK_E_TLS_NAME);
}

TEST_P(TlsPeers, AnAddressIsNotAskedForByName) {
  name("10.0.0.1");
  Tls client;
  ASSERT_EQ(client.init(wishes.settings()), 0);
  TlsTalk talk(client, server(root.issue({"IP:10.0.0.1"})), now);
  ASSERT_EQ(talk.shake(), Progress::done);
  EXPECT_EQ(talk.peer.server_name(), "");
}

// ---- pins -------------------------------------------------------------------------------------------------------

TEST_P(TlsPeers, APinBesideTheChain) {
  wishes.pins = good.pin();
  EXPECT_EQ(meet(good), 0);
  EXPECT_EQ(meet(good.renewed({.names = {"DNS:m1.example"}}, root)), 0) << "the key is the same";
  EXPECT_EQ(meet(root.issue({"DNS:m1.example"})), REDLOCK_E_TLS_PIN);
  wishes.pins = root.pin();
  EXPECT_EQ(meet(good), REDLOCK_E_TLS_PIN) << "the peer's own key counts, not that of an authority";
  wishes.pins = std::string(TlsSettings::pin_size, 'x') + good.pin();
  EXPECT_EQ(meet(good), 0);
}

TEST_P(TlsPeers, APinReplacesNothingOfTheChain) {
  const Certificate foreign = stranger.issue({"DNS:m1.example"});
  wishes.pins = foreign.pin();
  EXPECT_EQ(meet(foreign), REDLOCK_E_TLS_AUTHORITY);
  wishes.pins = good.pin();
  EXPECT_EQ(meet(server(good), now + 31 * 86'400), REDLOCK_E_TLS_EXPIRED);
  name("m2.example");
  EXPECT_EQ(meet(good), REDLOCK_E_TLS_NAME);
}

TEST_P(TlsPeers, APinAlone) {
  const Certificate alone = Certificate::self_signed({.from_s = -200, .until_s = -100, .now_s = now});
  wishes.ca_file = "";
  wishes.pins = alone.pin();
  EXPECT_EQ(meet(alone), 0) << "neither dates nor names count";
  EXPECT_EQ(meet(server(alone), 0), 0) << "a gateway that does not know the time";
  EXPECT_EQ(meet(good), REDLOCK_E_TLS_PIN);
  wishes.pins = good.pin() + alone.pin();
  EXPECT_EQ(meet(good), 0);
  EXPECT_EQ(meet(alone), 0);
  EXPECT_EQ(meet(root.issue({"DNS:m1.example"})), REDLOCK_E_TLS_PIN);
}

TEST_P(TlsPeers, AnIntermediatesPinIsNotThePeers) {
  const Certificate middle = root.issue({.cn = "middle", .use = Certificate::Use::authority});
  wishes.ca_file = "";
  wishes.pins = middle.pin();
  EXPECT_EQ(meet(middle.issue({"DNS:m1.example"})), REDLOCK_E_TLS_PIN);
}

TEST_P(TlsPeers, NeitherAuthorityNorPinTrustsNobody) {
  wishes.ca_file = "";
  EXPECT_EQ(meet(good), REDLOCK_E_TLS_PIN);
}

// ---- our certificate --------------------------------------------------------------------------------------------

TEST_P(TlsPeers, OurCertificateIsWantedAndThere) {
  be_client(root.issue({.cn = "gateway 7"}));
  EXPECT_EQ(meet_and_listen(asking_server(root)), 0);
  EXPECT_EQ(meet(good), 0) << "nobody asks";
  const Certificate middle = root.issue({.cn = "middle", .use = Certificate::Use::authority});
  be_client(middle.issue({.cn = "gateway 7"}));
  EXPECT_EQ(meet_and_listen(asking_server(root)), 0) << "with those above it";
}

TEST_P(TlsPeers, OurCertificateIsWantedAndMissing) {
  EXPECT_EQ(meet_and_listen(asking_server(root)), REDLOCK_E_TLS_CLIENT_CERT);
}

TEST_P(TlsPeers, OurCertificateIsRefused) {
  be_client(stranger.issue({.cn = "gateway 7"}));
  EXPECT_EQ(meet_and_listen(asking_server(root)), REDLOCK_E_TLS_CLIENT_REFUSED);
  be_client(root.issue({.cn = "gateway 7", .until_s = -10}));
  EXPECT_EQ(meet_and_listen(asking_server(root)), REDLOCK_E_TLS_CLIENT_REFUSED);
}

// ---- versions ---------------------------------------------------------------------------------------------------

TEST_P(TlsPeers, NothingInCommon) {
  EXPECT_EQ(meet(TlsServer(good, {.versions = TlsVersions::only_1_0})), REDLOCK_E_TLS_COMMON);
  wishes.tls13 = client_has_tls13();
  const TlsVersions other = wishes.tls13 ? TlsVersions::only_1_2 : TlsVersions::only_1_3;
  EXPECT_EQ(meet(TlsServer(good, {.versions = other})), REDLOCK_E_TLS_COMMON);
  wishes.tls13 = false;
  EXPECT_EQ(meet(TlsServer(good, {.versions = TlsVersions::only_1_2, .ciphers = "AES128-SHA"})), REDLOCK_E_TLS_COMMON);
}

TEST_P(TlsPeers, AtLeastTls13) {
  wishes.tls13 = true;
  Tls client;
  EXPECT_EQ(client.init(wishes.settings()), client_has_tls13() ? 0 : REDLOCK_E_NOTSUP);
  if (client_has_tls13() && GetParam() == TlsVersions::only_1_3) {
    EXPECT_EQ(meet(good), 0);
  }
}

TEST(TlsPlain, APeerWithoutTls) {
  CertificateFolder folder;
  const Certificate root = Certificate::authority();
  const TlsWishes wishes = {.ca_file = folder.write("ca.pem", root.pem())};
  Tls client;
  ASSERT_EQ(client.init(wishes.settings()), 0);
  for (const char* said : {"-ERR unknown command\r\n", "-", "HTTP/1.1 400 Bad Request\r\n\r\n", "+OK\r\n",
                           "SSH-2.0-OpenSSH_9.2\r\n", "\x16\x02", "\x13\x03\x03", "\x18\x03\x03"}) {
    TlsTalk talk(client, TlsServer(root));
    EXPECT_EQ(client.step(), Progress::wants_input);
    EXPECT_TRUE(client.silent());
    talk.wire.in = said;
    EXPECT_EQ(client.step(), Progress::failed) << said;
    EXPECT_EQ(client.error(), REDLOCK_E_TLS_NONE) << said;
    EXPECT_FALSE(client.silent());
  }
}

}  // namespace
}  // namespace redlock::test
