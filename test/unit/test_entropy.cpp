// SPDX-License-Identifier: MIT
#include "port/posix/entropy.hpp"

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

namespace {

// The kernel's generator, or one that is not seeded after so many bytes, as in early boot.
struct Generator {
  bool fake = false;
  size_t bytes_left = 0;
  unsigned calls = 0;
  size_t largest = 0;
  unsigned flags_seen = 0;
};

Generator generator;

}  // namespace

// In place of the C library's.
extern "C" ssize_t getrandom(void* out, size_t n, unsigned flags) {
  ++generator.calls;
  generator.largest = n > generator.largest ? n : generator.largest;
  generator.flags_seen |= 1u << flags;
  if (!generator.fake) return syscall(SYS_getrandom, out, n, flags);
  if (generator.bytes_left == 0) {
    errno = EAGAIN;
    return -1;
  }
  const size_t given = n < generator.bytes_left ? n : generator.bytes_left;
  for (size_t i = 0; i < given; ++i) static_cast<uint8_t*>(out)[i] = 0xAA;
  generator.bytes_left -= given;
  return static_cast<ssize_t>(given);
}

namespace redlock {
namespace {

class Entropy : public testing::Test {
 protected:
  void SetUp() override { generator = Generator(); }
};

TEST_F(Entropy, fills_all_in_small_pieces_and_never_waits) {
  std::vector<uint8_t> bytes(1'000, 0);
  EXPECT_EQ(fill_random(bytes.data(), bytes.size()), bytes.size());
  EXPECT_EQ(generator.calls, 4u);
  EXPECT_EQ(generator.largest, 256u);
  EXPECT_EQ(generator.flags_seen, 1u << GRND_NONBLOCK);
  size_t zeros = 0;
  for (uint8_t byte : bytes) zeros += byte == 0;
  EXPECT_LT(zeros, 40u);  // 4 are expected; 40 come once in 10^25 runs
}

TEST_F(Entropy, nothing_while_the_kernel_is_not_seeded) {
  generator.fake = true;
  std::vector<uint8_t> bytes(64, 0x11);
  EXPECT_EQ(fill_random(bytes.data(), bytes.size()), 0u);
  EXPECT_EQ(bytes, std::vector<uint8_t>(64, 0x11)) << "no weaker bytes instead";
  EXPECT_EQ(generator.calls, 1u) << "asked once, not in a loop";
}

TEST_F(Entropy, as_many_as_there_are) {
  generator.fake = true;
  generator.bytes_left = 300;
  std::vector<uint8_t> bytes(600, 0x11);
  EXPECT_EQ(fill_random(bytes.data(), bytes.size()), 300u);
  for (size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], i < 300 ? 0xAA : 0x11) << i;
}

}  // namespace
}  // namespace redlock
