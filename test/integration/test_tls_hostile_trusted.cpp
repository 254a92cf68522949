// SPDX-License-Identifier: MIT
//
// A stranger at a master's address, by TLS and without; and a server that has the key of a trusted certificate, and is
// hostile: in the handshake, behind it, and by handshakes without end. TlsSealer makes the records that OpenSSL's
// server would not send.
#include <malloc.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>

#include "hostile_site.hpp"
#include "support/tls_sealer.hpp"
#include "thread_harness.hpp"

namespace redlock::test {
namespace {

bool has_tls13() { return std::string_view(REDLOCK_TLS_ENGINE) == "openssl"; }
// OpenSSL bears five in a row.
int of_warnings() { return has_tls13() ? REDLOCK_E_TLS_BROKEN : REDLOCK_E_TLS_FLOOD; }

Talk new_keys(int asks_back) {
  return [asks_back](Hostile& h, SSL* ssl) {
    std::string bytes;
    do {
      bytes = new_keys_of(ssl, asks_back, 60'000);
    } while (!bytes.empty() && !h.stopped() && h.send_all(SSL_get_fd(ssl), bytes));
    return false;
  };
}
bool unasked_text(Hostile&, SSL* ssl) { return went_on(ssl, SSL_write(ssl, "+OK\r\n", 5)); }
bool plain_in_the_middle(Hostile&, SSL* ssl) {
  return send(SSL_get_fd(ssl), "+OK\r\n", 5, MSG_NOSIGNAL) == 5 && went_on(ssl, SSL_write(ssl, "+OK\r\n", 5));
}

// A flood of what `one` makes, until the client hangs up. The first `ready` bytes are made before they are sent, so
// that the client finds them in its socket all at once.
Talk seals(const std::function<std::string(TlsSealer&)>& one, size_t ready = 60'000) {
  return [one, ready](Hostile& h, SSL* ssl) {
    TlsSealer sealer(ssl);
    std::string bytes;
    do {
      bytes.clear();
      while (bytes.size() < ready) bytes += one(sealer);
    } while (!h.stopped() && h.send_all(SSL_get_fd(ssl), bytes));
    return false;
  };
}
Talk seals(int type, const std::string& body, size_t padding = 0) {
  return seals([=](TlsSealer& sealer) { return sealer.seal(type, body, padding); });
}
Talk seals_many(int type, const std::string& body) {
  return seals([=](TlsSealer& sealer) { return sealer.seal(type, body); }, 1'000'000);
}

// The server's own messages of a handshake, of which `mangle` sends a part, or others between them. False: the
// connection is over.
using Mangle = std::function<bool(Hostile& h, int fd, const std::string& flight)>;

Hostile::Attack shakes_badly(const Server& server, const Mangle& mangle) {
  return [server, mangle](Hostile& h, int fd) {
    const std::unique_ptr<SSL, void (*)(SSL*)> ssl(SSL_new(server.get()), SSL_free);
    SSL_set_bio(ssl.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_accept_state(ssl.get());
    char bytes[16'384];
    for (bool goes_on = true; goes_on && !h.stopped();) {
      const ssize_t heard = recv(fd, bytes, sizeof bytes, 0);
      if (heard < 0 && errno == EAGAIN) continue;
      if (heard <= 0) break;
      BIO_write(SSL_get_rbio(ssl.get()), bytes, static_cast<int>(heard));
      SSL_do_handshake(ssl.get());
      const int said = BIO_read(SSL_get_wbio(ssl.get()), bytes, sizeof bytes);
      if (said > 0) goes_on = mangle(h, fd, std::string(bytes, static_cast<size_t>(said)));
      goes_on = goes_on && !SSL_is_init_finished(ssl.get());
    }
    ERR_clear_error();
  };
}

size_t first_record(const std::string& flight) {
  return 5 + (static_cast<size_t>(static_cast<unsigned char>(flight[3])) << 8 | static_cast<unsigned char>(flight[4]));
}

// The first record, which is the server's hello, and then a flood.
Mangle floods(const std::string& one) {
  return [one](Hostile& h, int fd, const std::string& flight) {
    if (!h.send_all(fd, flight.substr(0, first_record(flight)))) return false;
    const std::string bytes = repeated(one, 5'000);
    while (!h.stopped() && h.send_all(fd, bytes)) {
    }
    return false;
  };
}

TEST_F(TlsHostile, FloodsBeforeTheHandshake) {
  endure("warnings", flood(record(21, std::string{1, 90})), 0);
  endure("hello requests", flood(record(22, std::string(4, '\0'))), 0);
  endure("changes of keys", flood(record(20, "\x01")), 0);
  endure("empty text", flood(record(23, "")), 0);
  endure("no TLS", flood("+OK\r\n"), REDLOCK_E_TLS_NONE);
}

// However slowly the bytes of a handshake come, connect_timeout_ms ends it.
TEST_F(TlsHostile, Drips) {
  numbers = {{"timing.connect_timeout_ms", 500}};
  const std::string slow = record(22, char(2) + size24(70) + std::string(70, 'h'));
  std::atomic<unsigned> ended{0};
  endure(
      "a byte now and then",
      [&](Hostile& h, int fd) {
        if (!h.hear(fd)) return;
        for (size_t i = 0; i < slow.size() && h.send_all(fd, slow.substr(i, 1)); ++i) {
          char byte;
          if (recv(fd, &byte, 1, 0) == 0) break;  // waits for 50 ms
          if (h.stopped()) break;
        }
        ++ended;
      },
      REDLOCK_E_CONNECT_TIMEOUT);
  EXPECT_GE(ended, 3u);
}

TEST_F(TlsHostile, WithoutTls) {
  endure("in the clear: unasked text", flood("+OK\r\n"), REDLOCK_E_PROTOCOL, "redis://");
  endure("in the clear: line ends", flood("\r\n"), REDLOCK_E_PROTOCOL, "redis://");
  endure("in the clear: pushes", flood(">2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\nbus\r\n"), 0, "redis://", 2);
}

TEST_F(TlsHostile, InTheHandshake) {
  const Server old = trusted(TLS1_2_VERSION);
  endure("hello, warnings, 1.2", shakes_badly(old, floods(record(21, warning))), of_warnings());
  endure("hello, hello requests, 1.2", shakes_badly(old, floods(record(22, hello_request))),
         has_tls13() ? REDLOCK_E_TLS_FLOOD : REDLOCK_E_TLS_BROKEN);
  endure("hello, empty messages, 1.2", shakes_badly(old, floods(record(22, ""))), 0);
  endure("hello, changes of keys, 1.2", shakes_badly(old, floods(record(20, "\x01"))), 0);
  if (!has_tls13()) return;
  const Server now = trusted(TLS1_3_VERSION);
  endure("hello, changes of keys, 1.3", shakes_badly(now, floods(record(20, "\x01"))), 0);
  endure("hello, empty text, 1.3", shakes_badly(now, floods(record(23, ""))), 0);
}

TEST_F(TlsHostile, BehindTheHandshake12) {
  const Server server = trusted(TLS1_2_VERSION);
  endure("cut", speaks(server, cut), 0);
  endure("plain text", speaks(server, plain_in_the_middle), REDLOCK_E_TLS_BROKEN);
  endure("unasked text", speaks(server, unasked_text), REDLOCK_E_PROTOCOL);
  TlsSealer::prepare(server.get());
  endure("text by the sealer", speaks(server, seals(TlsSealer::text, "+OK\r\n")), REDLOCK_E_PROTOCOL);
  endure("warnings", speaks(server, seals_many(TlsSealer::alert, warning)), of_warnings());
  endure("hello requests", speaks(server, seals_many(TlsSealer::handshake, hello_request)), REDLOCK_E_TLS_FLOOD);
  endure("empty text", speaks(server, seals(TlsSealer::text, "")), 0);
  endure("tickets", speaks(server, seals(TlsSealer::handshake, message(4, std::string(200, 't')))), 0);
  endure("a message without end", speaks(server, seals(TlsSealer::handshake, std::string(1'000, '\4'))), 0);
  endure("changes of keys", speaks(server, seals(TlsSealer::keys, "\x01")), 0);
}

// A whole record, of which a byte comes every 50 ms.
bool drips(Hostile& h, SSL* ssl) {
  TlsSealer sealer(ssl);
  const std::string slow = sealer.seal(TlsSealer::text, std::string(1'000, '+'));
  for (size_t i = 0; i < slow.size() && !h.stopped() && h.send_all(SSL_get_fd(ssl), slow.substr(i, 1)); ++i) {
    char byte;
    while (recv(SSL_get_fd(ssl), &byte, 1, 0) == 1) {
    }
    if (errno != EAGAIN) return false;
  }
  return false;
}

TEST_F(TlsHostile, DripsBehindTheHandshake) {
  const Server server = trusted(TLS1_2_VERSION);
  TlsSealer::prepare(server.get());
  endure("a byte now and then", speaks(server, drips), REDLOCK_E_NODE_TIMEOUT, "rediss://", 3);
}

TEST_F(TlsHostile, BehindTheHandshake13) {
  if (!has_tls13()) GTEST_SKIP() << "it ends with TLS 1.2";
  const Server server = trusted(TLS1_3_VERSION);
  endure("new keys", speaks(server, new_keys(SSL_KEY_UPDATE_NOT_REQUESTED)), REDLOCK_E_TLS_FLOOD);
  endure("new keys, asking back", speaks(server, new_keys(SSL_KEY_UPDATE_REQUESTED)), REDLOCK_E_TLS_FLOOD);
  endure("unasked text", speaks(server, unasked_text), 0);
  TlsSealer::prepare(server.get());
  endure("text by the sealer", speaks(server, seals(TlsSealer::text, "+OK\r\n")), REDLOCK_E_PROTOCOL);
  endure("warnings", speaks(server, seals(TlsSealer::alert, warning)), 0);
  endure("tickets", speaks(server, seals(TlsSealer::handshake, ticket13())), REDLOCK_E_TLS_FLOOD);
  endure("empty text", speaks(server, seals(TlsSealer::text, "")), 0);
  endure("empty text, padded", speaks(server, seals(TlsSealer::text, "", 16'384)), REDLOCK_E_TLS_FLOOD);
  endure("requests of certificates", speaks(server, seals(TlsSealer::handshake, message(13, "\1c\0\0"))), 0);
  endure("a message without end", speaks(server, seals(TlsSealer::handshake, std::string(1'000, '\4'))), 0);
}

// What this process has. A client that is destroyed leaves none of it, however many handshakes it had.
struct Belongings {
  long descriptors = std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  size_t heap = mallinfo2().uordblks;  // 0 with a sanitizer, which looks for leaks itself
};

// Handshakes that come about and are cut, that show a stranger's certificate, and that are cut in the middle.
// REDLOCK_HANDSHAKES=10000 asks for so many. The first 30 make what the engines keep for the process. The heap counts
// the pieces that the C library keeps for this thread; with GLIBC_TUNABLES=glibc.malloc.tcache_count=0 it keeps none.
TEST_F(TlsHostile, ManyHandshakes) {
  constexpr size_t kept_at_most = 262'144;
  const char* const wanted = std::getenv("REDLOCK_HANDSHAKES");
  const unsigned attempts = wanted != nullptr ? static_cast<unsigned>(std::atoi(wanted)) : 300;
  numbers = {{"timing.reconnect_max_ms", 10}};
  const Certificate stranger = Certificate::authority("a stranger").issue({"IP:127.0.0.1"});
  const Server server = trusted(has_tls13() ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_session_cache_mode(server.get(), SSL_SESS_CACHE_OFF);  // it would be in the heap, too
  const Hostile::Attack attacks[] = {speaks(server, cut), speaks(server_of(stranger, TLS1_2_VERSION), cut),
                                     shakes_badly(server, [](Hostile& h, int fd, const std::string& flight) {
                                       return h.send_all(fd, flight.substr(0, flight.size() / 2)) && false;
                                     })};
  const Hostile::Attack attack = [&attacks](Hostile& h, int fd) { attacks[h.accepted() % 3](h, fd); };
  endure("the first handshakes", attack, REDLOCK_E_TLS_AUTHORITY, "rediss://", 30);
  const Belongings before;
  const double begun_ms = cpu_ms();
  endure("many handshakes", attack, REDLOCK_E_TLS_AUTHORITY, "rediss://", attempts);
  const Belongings after;
  std::printf("%u handshakes: %.2f s of the client's processor; descriptors %ld before, %ld after; heap %zu, %zu\n",
              attempts, (cpu_ms() - begun_ms) / 1e3, before.descriptors, after.descriptors, before.heap, after.heap);
  EXPECT_EQ(after.descriptors, before.descriptors);
  EXPECT_LE(after.heap, before.heap + kept_at_most);
}

// How often another thread took the processor from this one.
long preempted() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

class TlsHostileThread : public TlsHostile {};  // a client with a thread of its own: what TSan takes

// The client's thread works for one bounded turn at the longest while a call waits for it. A call that lost its
// processor waited for a processor as well: meanwhile the client's thread takes any number of turns.
TEST_F(TlsHostileThread, TheStatusIsToldDuringAFlood) {
  const double honest_ms = honest();
  const Server server = trusted(TLS1_2_VERSION);
  TlsSealer::prepare(server.get());
  Hostile hostile(speaks(server, seals(TlsSealer::handshake, hello_request)));
  Flag known;
  clockid_t clock = 0;
  ThreadClient client(settings("rediss://" + hostile.address()));
  client.also = [&](redlock_t*, const redlock_event_t&) {
    if (!known.is_set()) pthread_getcpuclockid(pthread_self(), &clock);
    known.set();
  };
  redlock_lock_t lock{0};
  ASSERT_EQ(client.acquire("bus", lock, options(10'000, 5'000)), 0);
  ASSERT_EQ(client.release(lock), 0);
  ASSERT_TRUE(known.wait());
  double longest = 0;
  unsigned calls = 0;
  const unsigned before = hostile.accepted();
  const int64_t until = boot_ns() + patience_ns;
  while ((hostile.accepted() < before + 8 || calls < 100) && boot_ns() < until) {
    const long lost = preempted();
    const double begun = cpu_ms(clock);
    client.status();
    const double worked = cpu_ms(clock) - begun;
    if (preempted() != lost) continue;
    ++calls;
    longest = std::max(longest, worked);
  }
  std::printf("status: waited for %.2f ms of work, an honest turn %.2f ms\n", longest, honest_ms);
  EXPECT_GE(hostile.accepted(), before + 8);
  EXPECT_GE(calls, 100u);
  EXPECT_LE(longest, turns_max * std::max(honest_ms, honest()));
}

}  // namespace
}  // namespace redlock::test
