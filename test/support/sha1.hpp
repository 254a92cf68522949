// SPDX-License-Identifier: MIT
//
// SHA-1 of a short text as 40 lower-case hex digits: the name by which Redis calls a script. For tests only.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace redlock::test {

class Sha1 {
 public:
  static std::string hex(std::string_view text) {
    Sha1 sha;
    std::string padded(text);
    padded += '\x80';
    while (padded.size() % 64 != 56) padded += '\0';
    const uint64_t bits = static_cast<uint64_t>(text.size()) * 8;
    for (int shift = 56; shift >= 0; shift -= 8) padded += static_cast<char>((bits >> shift) & 0xff);
    for (size_t at = 0; at < padded.size(); at += 64) sha.block(std::string_view(padded).substr(at, 64));
    return sha.digest();
  }

 private:
  static uint32_t left(uint32_t word, unsigned by) { return (word << by) | (word >> (32 - by)); }

  void block(std::string_view bytes) {
    std::array<uint32_t, 80> w{};
    for (size_t i = 0; i < 64; ++i) w[i / 4] = (w[i / 4] << 8) | static_cast<uint8_t>(bytes[i]);
    for (size_t i = 16; i < 80; ++i) w[i] = left(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    auto [a, b, c, d, e] = state_;
    for (size_t i = 0; i < 80; ++i) {
      const uint32_t f = i < 20   ? ((b & c) | (~b & d))
                         : i < 40 ? (b ^ c ^ d)
                         : i < 60 ? ((b & c) | (b & d) | (c & d))
                                  : (b ^ c ^ d);
      const uint32_t k = i < 20 ? 0x5a827999u : i < 40 ? 0x6ed9eba1u : i < 60 ? 0x8f1bbcdcu : 0xca62c1d6u;
      const uint32_t next = left(a, 5) + f + e + k + w[i];
      e = d;
      d = c;
      c = left(b, 30);
      b = a;
      a = next;
    }
    const std::array<uint32_t, 5> add{a, b, c, d, e};
    for (size_t i = 0; i < 5; ++i) state_[i] += add[i];
  }

  std::string digest() const {
    static constexpr char digits[] = "0123456789abcdef";
    std::string hex;
    for (const uint32_t word : state_) {
      for (int shift = 28; shift >= 0; shift -= 4) hex += digits[(word >> shift) & 0xf];
    }
    return hex;
  }

  std::array<uint32_t, 5> state_{0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u, 0xc3d2e1f0u};
};

}  // namespace redlock::test
