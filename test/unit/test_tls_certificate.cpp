// SPDX-License-Identifier: MIT
//
// Dates, names and pins, as data. The judgment on real certificates is in test_tls_peers.
#include "port/tls/certificate.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <string>

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
