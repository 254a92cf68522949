// SPDX-License-Identifier: MIT
//
// The files of the TLS settings: what is no good at the start, and what changes while a client runs.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "config/tls.hpp"
#include "port/tls/file.hpp"
#include "support/tls_peer.hpp"

// In place of the C library's, whose work it does. The header says that it only writes, so GCC would warn of a reading.
static std::string wiped;
extern "C" void explicit_bzero(void* at, size_t size) noexcept {
  const volatile char* const from = static_cast<const volatile char*>(at);
  for (size_t i = 0; i < size; ++i) wiped += from[i];
  memset(at, 0, size);
}

namespace redlock::test {
namespace {

using tls::Progress;
using Name = TlsFile::Name;
using Fault = TlsFile::Fault;

const TlsFile well;

// What create says of the file.
std::string sentence(const TlsFile& file) {
  char text[300];
  TextWriter out(text, sizeof text);
  write_tls_file(out, file);
  return text;
}

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
  const TlsFile& broken() const { return client.file_error(); }

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

TEST_F(TlsFiles, NotWanted) {
  TlsSettings settings = wishes.settings();
  settings.wanted = false;
  EXPECT_EQ(client.init(settings), 0);
  EXPECT_FALSE(client.wanted());
}

struct Wrong {
  const char* what;
  Fault fault;
  std::string (*text)(const Certificate& certificate);  // null: no file
};
const Wrong wrongs[] = {
    {"missing", Fault::missing, nullptr},
    {"empty", Fault::empty, [](const Certificate&) { return std::string(); }},
    {"no PEM", Fault::no_pem, [](const Certificate&) { return std::string("ca_file\n"); }},
    {"cut", Fault::no_pem, [](const Certificate& c) { return c.pem().substr(0, c.pem().size() / 2); }},
    {"cut behind a whole one", Fault::no_pem,
     [](const Certificate& c) { return c.pem() + c.pem().substr(0, c.pem().size() / 2); }},
    {"a key", Fault::no_pem, [](const Certificate& c) { return c.key_pem(); }},
    {"a letter changed", Fault::no_pem,
     [](const Certificate& c) {
       std::string text = c.pem();
       text[40] = '!';
       return text;
     }},
    {"too large", Fault::too_large,
     [](const Certificate& c) { return c.pem() + std::string(tls::FileText::size_max, '\n'); }},
};

TEST_F(TlsFiles, CertificatesThatAreNone) {
  for (const bool ours : {true, false}) {
    for (const Wrong& wrong : wrongs) {
      const std::string name = ours ? "gateway.pem" : "ca.pem";
      if (wrong.text != nullptr) folder.write(name, wrong.text(ours ? gateway : root));
      if (wrong.text == nullptr) unlink(folder.path(name).c_str());
      Tls with;
      EXPECT_EQ(with.init(wishes.settings()), REDLOCK_E_TLS_FILE) << wrong.what;
      EXPECT_EQ(with.file_error(), (TlsFile{ours ? Name::cert_file : Name::ca_file, wrong.fault})) << wrong.what;
    }
    folder.write("gateway.pem", gateway.pem());
  }
}

TEST_F(TlsFiles, AKeyThatIsNone) {
  const std::string locked =
      "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAg=\n"
      "-----END ENCRYPTED PRIVATE KEY-----\n";
  const std::string locked_as_of_old =
      "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00112233445566778899AABBCCDDEEFF"
      "\n\nMIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAg=\n-----END EC PRIVATE KEY-----\n";
  const std::pair<std::string, Fault> cases[] = {{"", Fault::empty},
                                                 {gateway.pem(), Fault::no_pem},
                                                 {other.key_pem(), Fault::other_key},
                                                 {locked, Fault::encrypted},
                                                 {locked_as_of_old, Fault::encrypted},
                                                 {gateway.key_pem().substr(0, 100), Fault::no_pem}};
  for (const auto& [text, fault] : cases) {
    folder.write("gateway.key", text);
    Tls with;
    EXPECT_EQ(with.init(wishes.settings()), REDLOCK_E_TLS_FILE) << text;
    EXPECT_EQ(with.file_error(), (TlsFile{Name::key_file, fault})) << text;
  }
}

TEST_F(TlsFiles, AKeyIsWipedWhenItWasRead) {
  wiped.clear();
  EXPECT_EQ(init(), 0);
  EXPECT_NE(wiped.find(gateway.key_pem()), std::string::npos);
}

TEST_F(TlsFiles, AKeyThatOthersMayRead) {
  ASSERT_EQ(chmod(wishes.key_file.c_str(), 0604), 0);
  EXPECT_EQ(init(), REDLOCK_E_TLS_FILE);
  EXPECT_EQ(broken(), (TlsFile{Name::key_file, Fault::others_read}));
  ASSERT_EQ(chmod(wishes.key_file.c_str(), 0640), 0);
  ASSERT_EQ(chmod(wishes.cert_file.c_str(), 0644), 0);
  Tls with;
  EXPECT_EQ(with.init(wishes.settings()), 0);
}

// While a client runs, too: nobody who may write the file chooses the masters of the next connection.
TEST_F(TlsFiles, AFileThatBecomesWritable) {
  ASSERT_EQ(init(), 0);
  folder.write("ca.pem", root.pem() + stranger.pem());
  ASSERT_EQ(chmod(wishes.ca_file.c_str(), 0666), 0);
  EXPECT_EQ(meet(foreign), REDLOCK_E_TLS_AUTHORITY);
  EXPECT_EQ(broken(), (TlsFile{Name::ca_file, Fault::others_write}));
  EXPECT_EQ(meet(server), 0) << "what was read before stays in use";
  ASSERT_EQ(chmod(wishes.ca_file.c_str(), 0644), 0);
  EXPECT_EQ(meet(foreign), 0);
  EXPECT_EQ(broken(), well);
}

TEST_F(TlsFiles, EachCauseHasItsSentence) {
  const std::pair<Fault, const char*> all[] = {
      {Fault::missing, "does not exist"},
      {Fault::others_read, "can be read by others; type: chmod o-r /etc/gw.key"},
      {Fault::empty, "is empty"},
      {Fault::too_large, "has more than 512 KiB"},
      {Fault::no_pem, "is no PEM of what belongs here, or is cut short"},
      {Fault::encrypted, "is encrypted, and nobody is asked for its password"},
      {Fault::other_key, "is not the key of tls.cert_file"},
  };
  for (const auto& [fault, text] : all) {
    EXPECT_EQ(sentence({Name::key_file, fault, "/etc/gw.key"}), std::string("tls.key_file: /etc/gw.key: ") + text);
  }
  EXPECT_EQ(sentence({Name::ca_file, Fault::missing, "a\nb"}), "tls.ca_file: a\\nb: does not exist");
}

// ---- while a client runs ----------------------------------------------------------------------------------------

TEST_F(TlsFiles, AnotherCertificateOfOurs) {
  ASSERT_EQ(init(), 0);
  EXPECT_EQ(meet(strict), REDLOCK_E_TLS_CLIENT_REFUSED);
  const Certificate next = stranger.issue({.cn = "gateway 7"});
  folder.write("gateway.pem", next.pem());
  EXPECT_EQ(meet(strict), REDLOCK_E_TLS_CLIENT_REFUSED) << "its key is still the old one's";
  EXPECT_EQ(broken(), (TlsFile{Name::key_file, Fault::other_key}));
  EXPECT_EQ(meet(server), 0) << "the old pair stays in use";
  folder.write("gateway.key", next.key_pem());
  EXPECT_EQ(meet(strict), 0);
  EXPECT_EQ(broken(), well);
}

TEST_F(TlsFiles, RewrittenInPlace) {
  ASSERT_EQ(init(), 0);
  const std::string text = stranger.pem() + std::string(1 + root.pem().size() % 7, '\n');
  std::ofstream(wishes.ca_file, std::ios::binary) << text;
  EXPECT_EQ(meet(foreign), 0);
  EXPECT_EQ(meet(server), REDLOCK_E_TLS_AUTHORITY);
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
