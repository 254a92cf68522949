// SPDX-License-Identifier: MIT
//
// Sockets that move a few bytes at a time, or none, however ready they seem: this program's send() and recv() stand in
// front of libc's. Every record arrives in pieces, and leaves in pieces.
#include <sys/socket.h>

#include <cerrno>

#include "tls_site.hpp"

namespace redlock::test {
namespace {

// most: of one call; 0: as many as there are. Every second call moves nothing then.
struct Slowness {
  size_t most = 0;
  unsigned calls = 0;
  bool moves(size_t& size) {
    if (most == 0) return true;
    if (++calls % 2 == 0) return false;
    size = size < most ? size : most;
    return true;
  }
};
Slowness slow_send, slow_receive;

}  // namespace
}  // namespace redlock::test

// ---- in front of libc -----------------------------------------------------------------------------------------------

extern "C" {

ssize_t send(int fd, const void* data, size_t size, int flags) {
  static const auto real = redlock::test::real(&::send, "send");
  if (redlock::test::slow_send.moves(size)) return real(fd, data, size, flags);
  errno = EAGAIN;
  return -1;
}

ssize_t recv(int fd, void* at, size_t room, int flags) {
  static const auto real = redlock::test::real(&::recv, "recv");
  if (redlock::test::slow_receive.moves(room)) return real(fd, at, room, flags);
  errno = EAGAIN;
  return -1;
}

}  // extern "C"

namespace redlock::test {
namespace {

class SlowSocket : public ::testing::TestWithParam<size_t> {
 protected:
  void TearDown() override { slow_send.most = slow_receive.most = 0; }
};

TEST_P(SlowSocket, LocksAreAsEver) {
  TlsSite site(2);
  Settings settings = site.settings();
  settings.numbers = {{"timing.connect_timeout_ms", 30'000}, {"timing.max_ttl_ms", 60'000},
                      {"timing.node_timeout_ms", 5'000}};
  Loop loop;
  Client client(loop, settings);
  slow_send.most = slow_receive.most = GetParam();
  client.wait_up(2);
  std::vector<Lock*> locks;
  for (int i = 0; i < 20; ++i) {
    locks.push_back(&client.start("resource " + std::to_string(i), options(60'000, 20'000, REDLOCK_F_NO_RENEW)));
  }
  for (Lock* lock : locks) {
    ASSERT_TRUE(loop.run_until([&] { return lock->decided(); }));
    ASSERT_TRUE(lock->has(REDLOCK_EV_ACQUIRED));
    ASSERT_EQ(redlock_extend_async(client.get(), lock->handle, 60'000), 0);
  }
  for (Lock* lock : locks) {
    ASSERT_TRUE(loop.run_until([&] { return lock->has(REDLOCK_EV_RENEWED); }));
    ASSERT_EQ(redlock_release_async(client.get(), lock->handle), 0);
  }
  EXPECT_TRUE(loop.run_until([&] { return client.status().locks_held == 0; }));
  for (uint32_t m = 0; m < 2; ++m) EXPECT_EQ(client.master(m).connects, 1u);
  client.close(20'000);
  slow_send.most = slow_receive.most = 0;
  EXPECT_EQ(client.closed_event().failed, 0u) << "deletes that are owed";
  for (size_t m = 0; m < 2; ++m) EXPECT_EQ(site[m].command({"DBSIZE"}), "0");
}

INSTANTIATE_TEST_SUITE_P(Bytes, SlowSocket, ::testing::Values(1, 3, 7, 50, 1'000));

}  // namespace
}  // namespace redlock::test
