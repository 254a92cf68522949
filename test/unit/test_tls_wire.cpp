// SPDX-License-Identifier: MIT
//
// Bytes that come late, in pieces, cut, changed, twice or too many, and a wire that takes few.
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <random>
#include <string>

#include "port/tls/record.hpp"
#include "support/tls_peer.hpp"

namespace redlock::test {
namespace {

using tls::Progress;

struct Shared {
  CertificateFolder folder;
  const Certificate root = Certificate::authority();
  const Certificate good = root.issue({"DNS:m1.example"});
  const TlsWishes wishes = {.ca_file = folder.write("ca.pem", root.pem())};
};

class TlsWire : public ::testing::TestWithParam<TlsVersions> {
 protected:
  static void SetUpTestSuite() { shared = new Shared; }
  static void TearDownTestSuite() {
    delete shared;
    shared = nullptr;
  }
  void SetUp() override {
    if (GetParam() == TlsVersions::only_1_3 && !client_has_tls13()) GTEST_SKIP() << "the library ends with TLS 1.2";
    be_new();
    server = std::make_unique<TlsServer>(shared->good, TlsServer::Options{.versions = GetParam()});
  }

  // Without a session to resume.
  void be_new() {
    tls = std::make_unique<Tls>();
    ASSERT_EQ(tls->init(shared->wishes.settings()), 0);
  }

  // How many bytes of the server's the client takes until it is done. Signatures differ in length by a byte or two.
  size_t handshake_bytes() {
    TlsTalk talk(*tls, *server);
    EXPECT_EQ(talk.shake(), Progress::done);
    return talk.wire.received;
  }

  // A handshake in which `change` may change the server's byte at an offset, and how it ends.
  template <class Change>
  Progress shake_changed(size_t offset, Change change, bool resumed = false) {
    be_new();
    if (resumed) open_talk();
    TlsTalk talk(*tls, *server);
    size_t begin = 0;
    talk.mangle = [&](std::string& bytes) {
      const size_t size = bytes.size();
      if (offset >= begin && offset < begin + size) change(bytes, offset - begin, talk.wire);
      begin += size;
    };
    return talk.shake();
  }

  // The handshake is over, and the tickets are read.
  std::unique_ptr<TlsTalk> open_talk() {
    auto talk = std::make_unique<TlsTalk>(*tls, *server);
    EXPECT_EQ(talk->shake(), Progress::done);
    talk->pump();
    EXPECT_EQ(talk->read(), "");
    return talk;
  }

  void flip_bits(bool resumed);

  static Shared* shared;
  std::unique_ptr<Tls> tls;
  std::unique_ptr<TlsServer> server;
  std::mt19937 random{18};
};
Shared* TlsWire::shared = nullptr;

INSTANTIATE_TEST_SUITE_P(Versions, TlsWire, ::testing::Values(TlsVersions::only_1_2, TlsVersions::only_1_3),
                         [](const auto& v) { return v.param == TlsVersions::only_1_2 ? "Tls12" : "Tls13"; });

// Some offset of each stretch of `stride`, and all of the first record's header.
std::vector<size_t> offsets(size_t end, size_t stride, std::mt19937& random) {
  std::vector<size_t> all;
  for (size_t at = 0; at < 11; ++at) all.push_back(at);
  for (size_t at = 11; at + stride <= end; at += stride) all.push_back(at + random() % stride);
  return all;
}

// What a handshake costs: how often the client waits for the server, and the bytes of both.
struct Price {
  size_t round_trips = 0, sent = 0, received = 0;
};

Price price_of(Tls& tls, const TlsServer& server) {
  Price price;
  TlsTalk talk(tls, server);
  bool answered = false;
  talk.mangle = [&](const std::string& bytes) { answered = !bytes.empty(); };
  Progress progress = talk.step();
  for (; progress == Progress::wants_input && talk.steps < 100; progress = talk.step()) price.round_trips += answered;
  EXPECT_EQ(progress, Progress::done);
  talk.read();  // the tickets
  return {price.round_trips, talk.wire.sent, talk.wire.received};
}

std::string text_of(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 7 + i / 251);
  return text;
}

// ---- a price ----------------------------------------------------------------------------------------------------

// The figures stand in port/tls/README.md. The server is one of the library's own defaults, but for the versions: from
// OpenSSL 3.5 on it asks again for the key of a hybrid group, if the client offers one.
TEST_P(TlsWire, ADefaultServerNeverAsksAgain) {
  const size_t round_trips = GetParam() == TlsVersions::only_1_3 ? 1 : 2;
  const Price full = price_of(*tls, *server);
  EXPECT_EQ(full.round_trips, round_trips);
  EXPECT_LT(full.sent, 512u) << "of X25519 and nothing larger";
  const Price resumed = price_of(*tls, *server);
  EXPECT_EQ(resumed.round_trips, 1u);
  EXPECT_LT(resumed.received, full.received / 2);
  RecordProperty("full", std::to_string(full.sent) + " + " + std::to_string(full.received));
  RecordProperty("resumed", std::to_string(resumed.sent) + " + " + std::to_string(resumed.received));

  const TlsServer other(shared->good, {.versions = GetParam(), .groups = "P-384"});
  be_new();
  EXPECT_EQ(price_of(*tls, other).round_trips, 2u) << "with TLS 1.3 a question for another key would be seen";
}

// ---- pieces -----------------------------------------------------------------------------------------------------

TEST_P(TlsWire, CutAtAnyByte) {
  const size_t end = handshake_bytes() - 12;
  for (const size_t at : offsets(end, 5, random)) {
    for (const bool politely : {true, false}) {
      const Progress progress = shake_changed(at, [&](std::string& bytes, size_t i, TestWire& wire) {
        bytes.resize(i);
        (politely ? wire.ended : wire.broken) = true;
      });
      EXPECT_EQ(progress, politely ? Progress::ended : Progress::failed) << at;
      EXPECT_EQ(tls->error(), politely ? 0 : REDLOCK_E_DISCONNECTED) << at;
    }
  }
}

// ---- wrong bytes ------------------------------------------------------------------------------------------------

// The second byte of the version in a record's header is to be ignored (RFC 8446, 5.1), all others count.
void TlsWire::flip_bits(bool resumed) {
  be_new();
  if (resumed) open_talk();
  for (const size_t at : offsets(handshake_bytes() - (resumed ? 0 : 12), 3, random)) {
    bool flipped = false, is_minor_version = false;
    const Progress progress = shake_changed(at, [&](std::string& bytes, size_t i, TestWire&) {
      for (size_t record = 0; record + 5 <= bytes.size();) {
        is_minor_version |= i == record + 2;
        const auto byte = [&](size_t j) { return static_cast<unsigned char>(bytes[record + j]); };
        record += 5 + static_cast<size_t>(byte(3) << 8 | byte(4));
      }
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << random() % 8));
      flipped = true;
    }, resumed);
    ASSERT_TRUE(flipped);
    EXPECT_TRUE(progress != Progress::done || is_minor_version) << at;
  }
}

TEST_P(TlsWire, AnyBitFlipped) { flip_bits(false); }
TEST_P(TlsWire, AnyBitOfAResumptionFlipped) { flip_bits(true); }

// ---- a narrow wire ----------------------------------------------------------------------------------------------

// What was taken counts as sent: the caller's memory may hold something else by then, and flush() needs no text.
TEST_P(TlsWire, AWireThatTakesNothingMore) {
  const auto talk = open_talk();
  for (size_t room = 0; room < 200; room += 3) {
    talk->peer.heard.clear();
    talk->wire.send_room = room;
    std::string text = text_of(100);
    size_t taken = 0;
    Progress progress = tls->write({text.data(), text.size()}, taken);
    EXPECT_EQ(taken, 100u);
    text.assign(100, 'x');
    if (progress == Progress::wants_output) {
      EXPECT_EQ(tls->flush(), Progress::wants_output) << "still full";
      size_t more = 1;
      EXPECT_EQ(tls->write({text.data(), text.size()}, more), Progress::wants_output);
      EXPECT_EQ(more, 0u);
      talk->wire.send_room = SIZE_MAX;
      progress = tls->flush();
    }
    EXPECT_EQ(progress, Progress::done) << room;
    EXPECT_EQ(tls->flush(), Progress::done) << "nothing is left";
    talk->pump();
    EXPECT_EQ(talk->peer.heard, text_of(100)) << room;
  }
}

TEST_P(TlsWire, ABrokenWire) {
  auto talk = open_talk();
  talk->wire.send_broken = true;
  size_t taken = 0;
  EXPECT_EQ(tls->write("a", taken), Progress::failed);
  EXPECT_EQ(tls->error(), REDLOCK_E_DISCONNECTED);
  talk.reset();
  talk = open_talk();
  talk->wire.broken = true;
  Progress last;
  talk->read(&last);
  EXPECT_EQ(last, Progress::failed);
  EXPECT_EQ(tls->error(), REDLOCK_E_DISCONNECTED);
}

// ---- reading ----------------------------------------------------------------------------------------------------

// A loop is woken by the socket alone: what the engine holds must be read before.
TEST_P(TlsWire, WhatIsReadAheadIsTold) {
  const auto talk = open_talk();
  const std::string text = text_of(5'000);
  for (unsigned i = 0; i < 3; ++i) talk->peer.say(text);
  talk->pump();
  const size_t receives_before = talk->wire.receives;
  std::string all;
  char room[300];
  size_t got = 0;
  while (!talk->wire.in.empty() || tls->has_read_ahead()) {
    const Progress progress = tls->read(room, sizeof room, got);
    if (progress == Progress::wants_input) {
      EXPECT_FALSE(tls->has_read_ahead());
      continue;
    }
    ASSERT_EQ(progress, Progress::done);
    ASSERT_GT(got, 0u);
    all.append(room, got);
  }
  EXPECT_TRUE(all == text + text + text);
  if (strncmp(tls::engine_version(), "openssl", 7) == 0) {
    EXPECT_EQ(talk->wire.receives, receives_before + 1) << "what has arrived is received at once";
  }
  EXPECT_EQ(tls->read(room, sizeof room, got), Progress::wants_input);
}

// OpenSSL's queue of errors belongs to the application, too.
TEST_P(TlsWire, ErrorsOfTheApplicationMeanNothing) {
  const auto disturb = [] { ERR_put_error(ERR_LIB_SSL, 0, SSL_R_UNSUPPORTED_PROTOCOL, "", 0); };
  TlsTalk talk(*tls, *server);
  talk.mangle = [&disturb](std::string&) { disturb(); };
  ASSERT_EQ(talk.shake(), Progress::done);
  talk.pump();
  Progress last;
  EXPECT_EQ(talk.read(&last), "");
  EXPECT_EQ(last, Progress::wants_input);
  talk.wire.send_room = 10;
  size_t taken = 0;
  disturb();
  EXPECT_EQ(tls->write("PING", taken), Progress::wants_output);
  disturb();
  EXPECT_EQ(tls->flush(), Progress::wants_output);
  talk.wire.send_room = SIZE_MAX;
  EXPECT_EQ(tls->flush(), Progress::done);
  talk.peer.say_goodbye();
  talk.pump();
  EXPECT_EQ(talk.read(&last), "");
  EXPECT_EQ(last, Progress::ended);
  tls->end(false);
  TlsTalk other(*tls, *server);
  other.mangle = [&disturb](std::string& bytes) {
    if (bytes.size() > 60) bytes[60] = static_cast<char>(bytes[60] ^ 1);
    disturb();
  };
  EXPECT_EQ(other.shake(), Progress::failed);
  EXPECT_EQ(tls->error(), REDLOCK_E_TLS_BROKEN);
  ERR_clear_error();
}

TEST_P(TlsWire, Goodbyes) {
  auto talk = open_talk();
  tls->end(true);
  talk->pump();
  EXPECT_TRUE(talk->peer.client_said_goodbye());
  tls->end(true);  // nothing is under way
  Progress last;
  talk.reset();
  talk = open_talk();
  tls->end(false);
  talk->pump();
  EXPECT_FALSE(talk->peer.client_said_goodbye());
  talk.reset();
  talk = open_talk();
  talk->peer.say("last words");
  talk->peer.say_goodbye();
  talk->pump();
  EXPECT_EQ(talk->read(&last), "last words");
  EXPECT_EQ(last, Progress::ended);
  talk.reset();
  talk = open_talk();
  talk->peer.say("last words");
  talk->pump();
  talk->wire.ended = true;
  EXPECT_EQ(talk->read(&last), "last words");
  EXPECT_EQ(last, Progress::ended) << "without an alert";
}

// The peer asks for new keys, both ways, and then our wire takes nothing: the answer to it stands before our text.
TEST_P(TlsWire, NewKeys) {
  if (GetParam() == TlsVersions::only_1_2) GTEST_SKIP() << "TLS 1.3";
  const auto talk = open_talk();
  for (const size_t room : {0u, 5u, 21u, 27u, 30u, 201u, 1'000u}) {
    talk->peer.heard.clear();
    talk->wire.send_room = room;
    talk->peer.change_keys(true);
    talk->peer.say("+OK\r\n");
    talk->pump();
    Progress last;
    std::string heard = talk->read(&last);
    size_t taken = 0;
    Progress progress = tls->write("PING", taken);
    EXPECT_EQ(progress == Progress::done, room > 200);
    EXPECT_EQ(taken, room < 22 ? 0u : 4u) << "the answer has 27 bytes";
    talk->wire.send_room = SIZE_MAX;
    EXPECT_EQ(tls->flush(), Progress::done);
    heard += talk->read(&last);
    EXPECT_EQ(last, Progress::wants_input);
    EXPECT_EQ(heard, "+OK\r\n") << room;
    ASSERT_TRUE(talk->write(taken > 0 ? "..." : "PING..."));
    EXPECT_EQ(talk->peer.heard, "PING...") << room;
  }
}

std::string record(char type, const std::string& body) {
  return std::string{type, 3, 3, static_cast<char>(body.size() >> 8), static_cast<char>(body.size())} + body;
}

class TlsRecord : public ::testing::Test {
 protected:
  TlsRecord() { gate.begin(wire.wire()); }
  // What an engine is given that asks for `room` bytes until there is nothing now.
  std::string taken(size_t room, ssize_t* last = nullptr) {
    std::string all, at(room, '\0');
    for (;;) {
      const ssize_t n = gate.wire().receive(gate.wire().self, at.data(), room);
      if (last != nullptr) *last = n;
      if (n <= 0) return all;
      all.append(at, 0, static_cast<size_t>(n));
    }
  }

  const std::string first = record(22, std::string(300, 'a')), second = record(22, "b"), empty = record(23, "");
  TestWire wire;
  tls::RecordGate gate;
};

TEST_F(TlsRecord, OneForEachStep) {
  for (const size_t room : {1u, 4u, 5u, 6u, 299u, 305u, 306u, 10'000u}) {
    gate.begin(wire.wire());
    wire.in = first + second + empty + second;
    EXPECT_EQ(taken(room), "") << "none is let through yet";
    for (const std::string& r : {first, second, empty, second}) {
      gate.let_one_through();
      ssize_t last = 0;
      EXPECT_EQ(taken(room, &last), r) << room;
      EXPECT_EQ(last, tls::Wire::nothing_now);
    }
    EXPECT_EQ(wire.in, "");
  }
}

TEST_F(TlsRecord, ARecordThatComesInPieces) {
  for (size_t piece = 1; piece < first.size(); ++piece) {
    gate.begin(wire.wire());
    std::string all;
    gate.let_one_through();
    for (size_t at = 0; at < first.size(); at += piece) {
      wire.in += first.substr(at, piece);
      gate.let_one_through();
      all += taken(1'000);
    }
    EXPECT_EQ(all, first) << piece;
    wire.in = second;
    gate.let_one_through();
    EXPECT_EQ(taken(1'000), second) << piece;
  }
}

TEST_F(TlsRecord, WhatIsNoTls) {
  for (int type = 0; type < 256; ++type) {
    gate.begin(wire.wire());
    EXPECT_TRUE(gate.silent());
    wire.in = std::string{static_cast<char>(type), 3, 1, 0, 0};
    gate.let_one_through();
    taken(5);
    EXPECT_EQ(gate.refusal(), type < 20 || type > 23 ? REDLOCK_E_TLS_NONE : 0) << type;
    EXPECT_FALSE(gate.silent());
  }
  for (int version = 0; version < 256; ++version) {
    gate.begin(wire.wire());
    wire.in = std::string{22, static_cast<char>(version)};
    gate.let_one_through();
    ssize_t last = 1;
    taken(1, &last);
    EXPECT_EQ(gate.refusal(), version != 3 ? REDLOCK_E_TLS_NONE : 0) << version;
    EXPECT_EQ(last == tls::Wire::broken, version != 3) << version;
  }
}

TEST_F(TlsRecord, TooManyInOneHandshake) {
  const std::string warning = record(21, std::string{1, 90});
  gate.begin(wire.wire());
  for (unsigned n = 0; n < tls::RecordGate::records_max; ++n) {
    wire.in += warning;
    gate.let_one_through();
    EXPECT_EQ(taken(1'000), warning);
  }
  wire.in += warning;
  gate.let_one_through();
  ssize_t last = 0;
  taken(1'000, &last);
  EXPECT_EQ(last, tls::Wire::broken);
  EXPECT_EQ(gate.refusal(), REDLOCK_E_TLS_FLOOD);
}

TEST_F(TlsRecord, AChainOfTooManyBytes) {
  for (const int type : {22, 20}) {  // behind a change of keys nothing is readable
    gate.begin(wire.wire());
    if (type == 20) {
      wire.in = record(20, "\x01");
      gate.let_one_through();
      taken(1'000);
    }
    wire.in = record(22, std::string{11, 0, 0x50, 0});
    gate.let_one_through();
    ssize_t last = 0;
    taken(1'000, &last);
    EXPECT_EQ(gate.refusal(), type == 22 ? REDLOCK_E_TLS_MESSAGE : 0);
    EXPECT_EQ(last, type == 22 ? tls::Wire::broken : tls::Wire::nothing_now);
  }
}

}  // namespace
}  // namespace redlock::test
