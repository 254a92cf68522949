// SPDX-License-Identifier: MIT
//
// The files of the TLS settings: what is no good at the start, and what changes while a client runs.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "port/tls/file.hpp"
#include "support/tls_peer.hpp"

namespace redlock::test {
namespace {

using tls::Progress;

class TlsFiles : public ::testing::Test {
 protected:
  TlsFiles() {
    wishes.ca_file = folder.write("ca.pem", root.pem());
    wishes.cert_file = folder.write("gateway.pem", gateway.pem());
    wishes.key_file = folder.write("gateway.key", gateway.key_pem());
  }
  int init() { return client.init(wishes.settings()); }
  // 0, or the error.
  int meet(const TlsServer& with) {
    TlsTalk talk(client, with);
    Progress progress = talk.shake();
    talk.pump();
    if (progress == Progress::done) talk.read(&progress);
    return progress == Progress::failed ? client.error() : 0;
  }
  std::string broken() const { return client.file_error() != nullptr ? client.file_error() : ""; }

  CertificateFolder folder;
  const Certificate root = Certificate::authority(), stranger = Certificate::authority("somebody else's authority");
  const Certificate gateway = root.issue({.cn = "gateway 7"}), other = root.issue({.cn = "gateway 8"});
  const TlsServer server{root.issue({"DNS:m1.example"})}, foreign{stranger.issue({"DNS:m1.example"})};
  // Trusts gateways of the other authority alone.
  const TlsServer strict{root.issue({"DNS:m1.example"}),
                         {.client = ClientCertificate::wanted, .client_authority = &stranger}};
  TlsWishes wishes;
  Tls client;
};

// ---- at the start -----------------------------------------------------------------------------------------------

TEST_F(TlsFiles, AllIsWell) {
  EXPECT_EQ(init(), 0);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(meet(server), 0);
}

TEST_F(TlsFiles, NotWanted) {
  TlsSettings settings = wishes.settings();
  settings.wanted = false;
  EXPECT_EQ(client.init(settings), 0);
  EXPECT_FALSE(client.wanted());
}

struct Wrong {
  const char* what;
  std::string (*text)(const Certificate& certificate);  // null: no file
};
const Wrong wrongs[] = {
    {"missing", nullptr},
    {"empty", [](const Certificate&) { return std::string(); }},
    {"no PEM", [](const Certificate&) { return std::string("ca_file\n"); }},
    {"cut", [](const Certificate& c) { return c.pem().substr(0, c.pem().size() / 2); }},
    {"cut behind a whole one", [](const Certificate& c) { return c.pem() + c.pem().substr(0, c.pem().size() / 2); }},
    {"a key", [](const Certificate& c) { return c.key_pem(); }},
    {"a letter changed", [](const Certificate& c) {
       std::string text = c.pem();
       text[40] = '!';
       return text;
     }},
    {"too large", [](const Certificate& c) { return c.pem() + std::string(tls::FileText::size_max, '\n'); }},
};

TEST_F(TlsFiles, AuthoritiesThatAreNone) {
  for (const Wrong& wrong : wrongs) {
    if (wrong.text != nullptr) folder.write("ca.pem", wrong.text(root));
    if (wrong.text == nullptr) unlink(wishes.ca_file.c_str());
    Tls with;
    EXPECT_EQ(with.init(wishes.settings()), REDLOCK_E_TLS_FILE) << wrong.what;
    EXPECT_STREQ(with.file_error(), "tls.ca_file") << wrong.what;
  }
}

TEST_F(TlsFiles, ACertificateThatIsNone) {
  for (const Wrong& wrong : wrongs) {
    if (wrong.text != nullptr) folder.write("gateway.pem", wrong.text(gateway));
    if (wrong.text == nullptr) unlink(wishes.cert_file.c_str());
    Tls with;
    EXPECT_EQ(with.init(wishes.settings()), REDLOCK_E_TLS_FILE) << wrong.what;
    EXPECT_STREQ(with.file_error(), "tls.cert_file") << wrong.what;
  }
}

TEST_F(TlsFiles, AKeyThatIsNone) {
  const std::string locked =
      "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAg=\n"
      "-----END ENCRYPTED PRIVATE KEY-----\n";
  for (const std::string& text : {std::string(), gateway.pem(), other.key_pem(), locked,
                                  gateway.key_pem().substr(0, 100)}) {
    folder.write("gateway.key", text);
    Tls with;
    EXPECT_EQ(with.init(wishes.settings()), REDLOCK_E_TLS_FILE) << text;
    EXPECT_STREQ(with.file_error(), "tls.key_file") << text;
  }
}

TEST_F(TlsFiles, AKeyThatOthersMayRead) {
  ASSERT_EQ(chmod(wishes.key_file.c_str(), 0604), 0);
  EXPECT_EQ(init(), REDLOCK_E_TLS_FILE);
  EXPECT_EQ(broken(), "tls.key_file");
  ASSERT_EQ(chmod(wishes.key_file.c_str(), 0640), 0);
  ASSERT_EQ(chmod(wishes.cert_file.c_str(), 0644), 0);
  Tls with;
  EXPECT_EQ(with.init(wishes.settings()), 0);
}

TEST_F(TlsFiles, ADirectoryAndAPipe) {
  wishes.ca_file = folder.folder();
  EXPECT_EQ(init(), REDLOCK_E_TLS_FILE);
  wishes.ca_file = "/dev/zero";
  Tls with;
  EXPECT_EQ(with.init(wishes.settings()), REDLOCK_E_TLS_FILE);
}

// ---- while a client runs ----------------------------------------------------------------------------------------

TEST_F(TlsFiles, OtherAuthorities) {
  ASSERT_EQ(init(), 0);
  EXPECT_EQ(meet(foreign), REDLOCK_E_TLS_AUTHORITY);
  folder.write("ca.pem", root.pem() + stranger.pem());
  EXPECT_EQ(meet(foreign), 0);
  EXPECT_EQ(meet(server), 0);
  folder.write("ca.pem", stranger.pem());
  EXPECT_EQ(meet(foreign), 0);
  EXPECT_EQ(meet(server), REDLOCK_E_TLS_AUTHORITY) << "also no session that was kept";
}

TEST_F(TlsFiles, AnotherCertificateOfOurs) {
  ASSERT_EQ(init(), 0);
  EXPECT_EQ(meet(strict), REDLOCK_E_TLS_CLIENT_REFUSED);
  const Certificate next = stranger.issue({.cn = "gateway 7"});
  folder.write("gateway.pem", next.pem());
  EXPECT_EQ(meet(strict), REDLOCK_E_TLS_CLIENT_REFUSED) << "its key is still the old one's";
  EXPECT_EQ(broken(), "tls.key_file");
  EXPECT_EQ(meet(server), 0) << "the old pair stays in use";
  folder.write("gateway.key", next.key_pem());
  EXPECT_EQ(meet(strict), 0);
  EXPECT_EQ(broken(), "");
}

TEST_F(TlsFiles, ABrokenFileChangesNothing) {
  ASSERT_EQ(init(), 0);
  for (const Wrong& wrong : wrongs) {
    if (wrong.text != nullptr) folder.write("ca.pem", wrong.text(stranger));
    if (wrong.text == nullptr) unlink(wishes.ca_file.c_str());
    for (unsigned times = 0; times < 2; ++times) {
      EXPECT_EQ(meet(server), 0) << wrong.what;
      EXPECT_EQ(broken(), "tls.ca_file") << wrong.what;
      EXPECT_EQ(meet(foreign), REDLOCK_E_TLS_AUTHORITY) << wrong.what;
    }
  }
  folder.write("ca.pem", stranger.pem());
  EXPECT_EQ(meet(foreign), 0);
  EXPECT_EQ(broken(), "");
}

TEST_F(TlsFiles, RewrittenInPlace) {
  ASSERT_EQ(init(), 0);
  const std::string text = stranger.pem() + std::string(1 + root.pem().size() % 7, '\n');
  std::ofstream(wishes.ca_file, std::ios::binary) << text;
  EXPECT_EQ(meet(foreign), 0);
  EXPECT_EQ(meet(server), REDLOCK_E_TLS_AUTHORITY);
}

TEST_F(TlsFiles, BehindALink) {
  std::filesystem::create_symlink(wishes.ca_file, folder.path("link"));
  wishes.ca_file = folder.path("link");
  ASSERT_EQ(init(), 0);
  EXPECT_EQ(meet(server), 0);
  folder.write("next.pem", stranger.pem());
  std::filesystem::remove(folder.path("link"));
  std::filesystem::create_symlink(folder.path("next.pem"), folder.path("link"));
  EXPECT_EQ(meet(foreign), 0);
}

TEST_F(TlsFiles, AFileThatIsTouched) {
  ASSERT_EQ(init(), 0);
  folder.write("ca.pem", root.pem());
  EXPECT_EQ(meet(server), 0);
  EXPECT_EQ(broken(), "");
}

// The connection that is under way keeps what it began with.
TEST_F(TlsFiles, InTheMiddleOfAConnection) {
  ASSERT_EQ(init(), 0);
  TlsTalk talk(client, server);
  talk.step();
  folder.write("ca.pem", stranger.pem());
  EXPECT_EQ(talk.shake(), Progress::done);
  EXPECT_TRUE(talk.write("PING"));
  EXPECT_EQ(talk.peer.heard, "PING");
}

}  // namespace
}  // namespace redlock::test
