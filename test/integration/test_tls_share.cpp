// SPDX-License-Identifier: MIT
//
// The share of one event, in numbers: how many bytes a round of the loop takes from a master that sends records without
// text, and after how many rounds the connection is closed. Nothing here depends on a clock: the loop stands still
// until all that the master sends is in the client's socket.
#include <dlfcn.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "hostile_site.hpp"
#include "support/tls_sealer.hpp"
#include "thread_harness.hpp"

namespace redlock::test {
namespace {

// What port/tls/README.md promises.
constexpr size_t share = 1'536;
constexpr unsigned shares = 17;
constexpr size_t flood_size = 40'000;  // more than all shares, and less than a socket holds
static_assert(flood_size > share * shares);

thread_local size_t* taken = nullptr;  // by recv() of this thread, while the test counts

}  // namespace
}  // namespace redlock::test

// In front of libc, for the library.
extern "C" ssize_t recv(int fd, void* buffer, size_t size, int flags) {
  using redlock::test::taken;
  static const auto real = reinterpret_cast<decltype(&recv)>(dlsym(RTLD_NEXT, "recv"));
  const ssize_t n = real(fd, buffer, size, flags);
  if (n > 0 && taken != nullptr) *taken += static_cast<size_t>(n);
  return n;
}

namespace redlock::test {
namespace {

using Make = std::function<std::string(SSL*)>;

Make seals(int type, const std::string& body, size_t padding = 0) {
  return [=](SSL* ssl) {
    TlsSealer sealer(ssl);
    std::string bytes;
    while (bytes.size() < flood_size) bytes += sealer.seal(type, body, padding);
    return bytes;
  };
}
Make new_keys(int asks_back) {
  return [=](SSL* ssl) { return new_keys_of(ssl, asks_back, flood_size); };
}

bool has_arrived(int fd) {
  int left = -1;
  for (int tries = 0; tries < 10'000 && left != 0; ++tries) {
    if (ioctl(fd, SIOCOUTQ, &left) != 0) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return left == 0;
}

using Drown = std::function<void(Hostile& h, int fd, SSL* ssl)>;

struct TlsShare : ::testing::Test {
  // The client has greeted. Then the flood comes to its socket, and then the loop runs again.
  void drown(const std::string& scheme, const std::function<Hostile::Attack(const Drown&)>& server, const Make& make) {
    Flag greeted, stands_still, flooded;
    Hostile hostile(server([&](Hostile& h, int fd, SSL* ssl) {
      const bool first = !greeted.is_set();
      if (!h.hear(fd) || !first) return;
      greeted.set();
      if (stands_still.wait() && h.send_all(fd, make(ssl)) && has_arrived(fd)) flooded.set();
      while (h.hear(fd)) {
      }
    }));
    Settings settings = site.settings();
    settings.urls = {scheme + hostile.address()};
    Client client(loop, settings);
    ASSERT_TRUE(loop.run_until([&] { return greeted.is_set(); }));
    stands_still.set();
    ASSERT_TRUE(flooded.wait());
    count_rounds(client);
  }

  // Until the connection is closed, or all is taken.
  void count_rounds(const Client& client) {
    size_t total = 0, of_round = 0;
    most = rounds = 0;
    taken = &of_round;
    const auto is_over = [&] {
      total += of_round;
      most = std::max(most, of_round);
      rounds += of_round > 0 ? 1 : 0;
      of_round = 0;
      return client.master(0).err != 0 || total >= flood_size;
    };
    EXPECT_TRUE(loop.run_until(is_over));
    taken = nullptr;
    err = client.master(0).err;
  }

  void expect_flood(const char* what, int version, const Make& make) {
    SCOPED_TRACE(what);
    const Server server = server_of(site.certificate, version);
    TlsSealer::prepare(server.get());
    const auto by_tls = [&](const Drown& drown) {
      return speaks(server, [drown](Hostile& h, SSL* ssl) { return drown(h, SSL_get_fd(ssl), ssl), false; });
    };
    drown("rediss://", by_tls, make);
    EXPECT_LE(most, share);
    EXPECT_EQ(rounds, shares);
    EXPECT_EQ(err, REDLOCK_E_TLS_FLOOD);
  }

  TlsSite site{0};
  Loop loop;
  size_t most = 0;      // bytes of a round
  unsigned rounds = 0;  // that took any
  int err = 0;
};

TEST_F(TlsShare, OfTls12) {
  expect_flood("hello requests", TLS1_2_VERSION, seals(TlsSealer::handshake, hello_request));
  // OpenSSL bears five warnings.
  if (std::string_view(REDLOCK_TLS_ENGINE) == "mbedtls") {
    expect_flood("warnings", TLS1_2_VERSION, seals(TlsSealer::alert, warning));
  }
}

TEST_F(TlsShare, OfTls13) {
  if (std::string_view(REDLOCK_TLS_ENGINE) == "mbedtls") GTEST_SKIP() << "it ends with TLS 1.2";
  expect_flood("new keys", TLS1_3_VERSION, new_keys(SSL_KEY_UPDATE_NOT_REQUESTED));
  expect_flood("new keys, asking back", TLS1_3_VERSION, new_keys(SSL_KEY_UPDATE_REQUESTED));
  expect_flood("tickets", TLS1_3_VERSION, seals(TlsSealer::handshake, ticket13()));
  expect_flood("empty text, padded", TLS1_3_VERSION, seals(TlsSealer::text, "", 16'384));
}

// Pushes are text that is borne.
TEST_F(TlsShare, InTheClear) {
  const std::string push = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\nbus\r\n";
  const auto in_the_clear = [](const Drown& drown) { return [drown](Hostile& h, int fd) { drown(h, fd, nullptr); }; };
  drown("redis://", in_the_clear, [&](SSL*) { return repeated(push, flood_size / push.size() + 1); });
  EXPECT_LE(most, size_t{REDLOCK_RX_BYTES_DEFAULT});
  EXPECT_EQ(err, 0);
}

}  // namespace
}  // namespace redlock::test
