// SPDX-License-Identifier: MIT
#include "port/tls/record.hpp"

#include <gtest/gtest.h>

#include <string>

#include "support/tls_peer.hpp"

namespace redlock::test {
namespace {

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
