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

TEST_P(TlsPeers, AnIntermediateAuthority) {
  const Certificate middle = root.issue({.cn = "middle", .use = Certificate::Use::authority});
  EXPECT_EQ(meet(middle.issue({"DNS:m1.example"})), 0);
  const Certificate wrong = stranger.issue({.cn = "middle", .use = Certificate::Use::authority});
  EXPECT_EQ(meet(wrong.issue({"DNS:m1.example"})), REDLOCK_E_TLS_AUTHORITY);
  const Certificate no_authority = root.issue({"DNS:m1.example"});
  EXPECT_EQ(meet(no_authority.issue({"DNS:m1.example"})), REDLOCK_E_TLS_AUTHORITY) << "a leaf issues nothing";
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

// ---- what a chain may cost ----------------------------------------------------------------------------------------

TEST_P(TlsPeers, MoreThanFourCertificates) {
  Certificate above = root.issue({.cn = "1", .use = Certificate::Use::authority, .rsa = true});
  for (const char* cn : {"2", "3"}) above = above.issue({.cn = cn, .use = Certificate::Use::authority, .rsa = true});
  EXPECT_EQ(meet(above.issue({"DNS:m1.example"})), 0) << "three above the server's";
  above = above.issue({.cn = "4", .use = Certificate::Use::authority, .rsa = true});
  EXPECT_EQ(meet(above.issue({"DNS:m1.example"})), REDLOCK_E_TLS_CHAIN);
  wishes.ca_file = "";
  wishes.pins = good.pin();
  EXPECT_EQ(meet(above.issue({"DNS:m1.example"})), REDLOCK_E_TLS_CHAIN) << "before the pin is looked at";
}

// ---- what a certificate is good for -------------------------------------------------------------------------------

TEST_P(TlsPeers, TooWeak) {
  const Certificate weak = Certificate::self_signed({.names = {"DNS:m1.example"}, .key = "rsa:1024"});
  const TlsServer s(weak, {.versions = GetParam(), .lax = true});
  wishes.pins = weak.pin();
  EXPECT_EQ(meet(s), REDLOCK_E_TLS_WEAK);
  wishes.ca_file = "";
  EXPECT_EQ(meet(s), REDLOCK_E_TLS_WEAK) << "with a pin alone";
  wishes.ca_file = folder.write("ca.pem", root.pem());
  wishes.pins = "";
  const Certificate sha1 = root.issue({.names = {"DNS:m1.example"}, .sha1 = true});
  EXPECT_EQ(meet(TlsServer(sha1, {.versions = GetParam(), .lax = true})), REDLOCK_E_TLS_WEAK);
}

TEST_P(TlsPeers, NotForServers) {
  EXPECT_EQ(meet(root.issue({.names = {"DNS:m1.example"}, .extended_usage = "clientAuth"})), REDLOCK_E_TLS_USE);
  EXPECT_EQ(meet(root.issue({.names = {"DNS:m1.example"}, .extended_usage = "serverAuth,clientAuth"})), 0);
  if (GetParam() == TlsVersions::only_1_2) return;  // the server itself would not use the next one
  EXPECT_EQ(meet(root.issue({.names = {"DNS:m1.example"}, .usage = "critical,cRLSign"})), REDLOCK_E_TLS_USE);
}

// "Of no authority" is not said of these: the chain leads to an authority, which may not sign this.
TEST_P(TlsPeers, WhatAnAuthorityMayNotSign) {
  using Use = Certificate::Use;
  const bool openssl = client_has_tls13();
  const auto below = [&](const Certificate::Options& options) {
    return meet(root.issue(options).issue({"DNS:m1.example"}));
  };
  EXPECT_EQ(below({.cn = "all", .use = Use::authority}), 0);
  EXPECT_EQ(below({.cn = "ours", .use = Use::authority, .name_constraints = "permitted;DNS:example"}), 0);
  // What mbedTLS does not check stands in port/tls/README.md and in the guide.
  EXPECT_EQ(below({.cn = "theirs", .use = Use::authority, .name_constraints = "permitted;DNS:other"}),
            openssl ? int{REDLOCK_E_TLS_USE} : 0);
  EXPECT_EQ(below({.cn = "not here", .use = Use::authority, .name_constraints = "excluded;DNS:example"}),
            openssl ? int{REDLOCK_E_TLS_USE} : 0);
  EXPECT_EQ(below({.cn = "clients", .use = Use::authority, .extended_usage = "clientAuth"}),
            openssl ? int{REDLOCK_E_TLS_USE} : 0);
  EXPECT_EQ(below({.cn = "critical", .use = Use::authority, .name_constraints = "critical,permitted;DNS:other"}),
            openssl ? int{REDLOCK_E_TLS_USE} : int{REDLOCK_E_TLS_BROKEN});
}

// A stranger chooses the group, among those that the client offers.
TEST_P(TlsPeers, Groups) {
  for (const char* group : {"X25519", "P-256", "P-384", "P-521"}) {
    EXPECT_EQ(meet(TlsServer(good, {.versions = GetParam(), .groups = group})), 0) << group;
  }
  for (const char* group : {"ffdhe2048", "ffdhe8192", "X448"}) {
    EXPECT_EQ(meet(TlsServer(good, {.versions = GetParam(), .groups = group})), REDLOCK_E_TLS_COMMON) << group;
  }
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

// Next year's authority is laid out ahead of time, and has this year's name and key, or another key.
TEST_P(TlsPeers, OfTwoAuthoritiesWithOneNameTheValidOne) {
  const auto made = [](const Certificate& key, int64_t from_s, int64_t until_s) {
    const Certificate::Options options = {
        .cn = "site", .use = Certificate::Use::authority, .from_s = from_s, .until_s = until_s};
    return key.renewed(options, key);
  };
  const Certificate now_valid = Certificate::authority("site");
  const Certificate old = made(now_valid, -2'000'000, -1'000'000), next = made(now_valid, 1'000'000, 2'000'000);
  const TlsServer s = server(now_valid.issue({"DNS:m1.example"}));
  for (const std::string& text : {old.pem() + now_valid.pem(), now_valid.pem() + old.pem(),
                                  next.pem() + now_valid.pem(), old.pem() + next.pem() + now_valid.pem()}) {
    wishes.ca_file = folder.write("ca.pem", text);
    EXPECT_EQ(meet(s), 0);
  }
  wishes.ca_file = folder.write("ca.pem", old.pem());
  EXPECT_EQ(meet(s), REDLOCK_E_TLS_EXPIRED);
  wishes.ca_file = folder.write("ca.pem", next.pem());
  EXPECT_EQ(meet(s), REDLOCK_E_TLS_EARLY);
  if (!client_has_tls13()) return;  // mbedTLS chooses by the machine's clock
  const TlsServer at_all_times = server(
      now_valid.issue({.names = {"DNS:m1.example"}, .from_s = -3'000'000, .until_s = 3'000'000}));
  wishes.ca_file = folder.write("ca.pem", old.pem() + next.pem());
  EXPECT_EQ(meet(at_all_times, now - 1'500'000), 0) << "the client's clock chooses";
  EXPECT_EQ(meet(at_all_times, now + 1'500'000), 0);
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

TEST_P(TlsPeers, NeitherAuthorityNorPinTrustsNobody) {
  wishes.ca_file = "";
  EXPECT_EQ(meet(good), REDLOCK_E_TLS_PIN);
}

// ---- our certificate --------------------------------------------------------------------------------------------

TEST_P(TlsPeers, OurCertificateIsWantedAndMissing) {
  EXPECT_EQ(meet_and_listen(asking_server(root)), REDLOCK_E_TLS_CLIENT_CERT);
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

// ---- what an engine must leave to others, or refuse: alike with both libraries ----------------------------------

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

// One session is kept, and is resumed as long as nothing speaks against it.
using tls::Progress;

class TlsSessions : public ::testing::TestWithParam<TlsVersions> {
 protected:
  void SetUp() override {
    if (GetParam() == TlsVersions::only_1_3 && !client_has_tls13()) GTEST_SKIP() << "the library ends with TLS 1.2";
    make_server(good);
  }
  void make_server(const Certificate& certificate) {
    server = std::make_unique<TlsServer>(certificate, TlsServer::Options{.versions = GetParam()});
  }
  void init() { ASSERT_EQ(client.init(wishes.settings()), 0); }
  // Was the session resumed? Negative: the error.
  int meet(int64_t utc_s, bool polite = true) {
    TlsTalk talk(client, *server, utc_s);
    if (talk.shake() != Progress::done) return client.error() != 0 ? client.error() : REDLOCK_E_DISCONNECTED;
    talk.pump();
    EXPECT_EQ(talk.read(), "");
    EXPECT_TRUE(talk.write("PING"));
    EXPECT_EQ(talk.peer.heard, "PING");
    Tls::Facts facts = {};
    EXPECT_TRUE(client.facts(facts));
    EXPECT_GT(facts.not_after_s, facts.not_before_s);
    client.end(polite);
    return facts.resumed;
  }
  int meet() { return meet(now); }

  const int64_t now = time(nullptr);
  CertificateFolder folder;
  const Certificate root = Certificate::authority();
  const Certificate middle = root.issue(
      {.cn = "middle", .use = Certificate::Use::authority, .until_s = 500, .now_s = now});
  const Certificate good = middle.issue({.names = {"DNS:m1.example"}, .until_s = 900, .now_s = now});
  TlsWishes wishes = {.ca_file = folder.write("ca.pem", root.pem())};
  std::unique_ptr<TlsServer> server;
  Tls client;
};

INSTANTIATE_TEST_SUITE_P(Versions, TlsSessions, ::testing::Values(TlsVersions::only_1_2, TlsVersions::only_1_3),
                         [](const auto& v) { return v.param == TlsVersions::only_1_2 ? "Tls12" : "Tls13"; });

TEST_P(TlsSessions, AreResumed) {
  init();
  EXPECT_EQ(meet(), 0);
  EXPECT_EQ(meet(), 1);
  EXPECT_EQ(meet(now, false), 1);
  EXPECT_EQ(meet(now, false), 1) << "a connection that just ended left a good session";
}

TEST_P(TlsSessions, AConnectionThatBreaksLeavesAGoodOne) {
  init();
  EXPECT_EQ(meet(), 0);
  for (const bool ended : {true, false}) {
    TlsTalk talk(client, *server, now);
    ASSERT_EQ(talk.shake(), Progress::done);
    talk.pump();
    (ended ? talk.wire.ended : talk.wire.broken) = true;
    Progress last;
    talk.read(&last);
    EXPECT_EQ(last, ended ? Progress::ended : Progress::failed);
    client.end(false);
    EXPECT_EQ(meet(), 1);
  }
}

TEST_P(TlsSessions, EndWithTheChain) {
  init();
  EXPECT_EQ(meet(), 0);
  EXPECT_EQ(meet(now + 500), 1);
  EXPECT_EQ(meet(now + 501), REDLOCK_E_TLS_EXPIRED) << "a full handshake is judged";
  EXPECT_EQ(meet(now), 0) << "the session was dropped";
}

TEST_P(TlsSessions, DoNotHideANewCertificate) {
  init();
  EXPECT_EQ(meet(), 0);
  server->renew(root.issue({"DNS:m1.example"}));
  EXPECT_EQ(meet(now + 500), 1);
  EXPECT_EQ(meet(now + 501), 0) << "a full handshake, with the new certificate";
  EXPECT_EQ(meet(now + 501), 1);
}

TEST_P(TlsSessions, EndWhenThePeerHangsUp) {
  init();
  EXPECT_EQ(meet(), 0);
  {
    TlsTalk talk(client, *server, now);
    talk.mangle = [&talk](std::string& bytes) {
      bytes.clear();
      talk.wire.ended = true;
    };
    EXPECT_EQ(talk.shake(), Progress::ended);
  }
  EXPECT_EQ(meet(), 0);
}

// The certificate is known, and judged, after a resumption too.
TEST_P(TlsSessions, AreJudgedAgain) {
  init();
  EXPECT_EQ(meet(), 0);
  EXPECT_EQ(meet(now - 4'000), REDLOCK_E_TLS_EARLY);
  EXPECT_EQ(meet(), 0) << "the session was dropped";
}

}  // namespace
}  // namespace redlock::test
