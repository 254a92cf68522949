// SPDX-License-Identifier: MIT
//
// One session is kept, and is resumed as long as nothing speaks against it.
#include <gtest/gtest.h>

#include "support/tls_peer.hpp"

namespace redlock::test {
namespace {

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
