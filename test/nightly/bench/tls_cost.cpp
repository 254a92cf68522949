// SPDX-License-Identifier: MIT
//
// What a connection by TLS costs the client, with the library that this build has: steps of the handshake (one for each
// record of the server's), memory and stack. The server is OpenSSL's, in the same process. Memory is what the client
// has of the heap, without the heap's own overhead. tls_cost.sh counts the instructions, too.
#include <malloc.h>
#include <openssl/ssl.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "port/tls/engine.hpp"
#include "port/tls/record.hpp"
#include "qemu_count.h"
#include "support/certificates.hpp"

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void __libc_free(void* memory);
}

namespace {

using namespace redlock;
using redlock::test::Certificate;
using tls::Progress;

// ---- the heap, as far as the client's side uses it

struct Heap {
  bool watched = false;
  long held = 0, most = 0, calls = 0;
  void took(void* memory) {
    if (!watched || memory == nullptr) return;
    ++calls;
    held += static_cast<long>(malloc_usable_size(memory));
    most = std::max(most, held);
  }
  void gave(void* memory) {
    if (watched && memory != nullptr) held -= static_cast<long>(malloc_usable_size(memory));
  }
} heap;

// ---- the client runs on a stack of its own, filled with a pattern before

constexpr size_t stack_size = 512 * 1024;
constexpr unsigned char pattern = 0xa5;
alignas(64) unsigned char stack[stack_size];
ucontext_t outside, inside;
void (*body)(void*);
void* body_argument;

size_t stack_used() {
  size_t unused = 0;
  while (unused < stack_size && stack[unused] == pattern) ++unused;
  return stack_size - unused;
}

// Runs `what` as the client does: counted, watched, on that stack.
template <typename What>
void as_client(What what) {
  body = [](void* self) { (*static_cast<What*>(self))(); };
  body_argument = &what;
  getcontext(&inside);
  inside.uc_stack.ss_sp = stack;
  inside.uc_stack.ss_size = stack_size;
  inside.uc_link = &outside;
  makecontext(
      &inside,
      [] {
        heap.watched = true;
        close(COUNT_BEGIN);
        body(body_argument);
        close(COUNT_END);
        heap.watched = false;
      },
      0);
  swapcontext(&outside, &inside);
}

[[noreturn]] void give_up(const char* why) {
  fprintf(stderr, "tls_cost: %s\n", why);
  exit(1);
}

// ---- the server

struct Server {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  SSL* ssl = nullptr;

  Server(const Certificate& certificate, int newest, const Certificate* clients) {
    SSL_CTX_use_certificate(context, certificate.x509());
    SSL_CTX_use_PrivateKey(context, certificate.key());
    SSL_CTX_set_max_proto_version(context, newest);
    const unsigned char id = 1;
    SSL_CTX_set_session_id_context(context, &id, 1);
    if (clients == nullptr) return;
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), clients->x509());
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    SSL_free(ssl);
    SSL_CTX_free(context);
  }
  void begin() {
    SSL_free(ssl);
    ssl = SSL_new(context);
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_accept_state(ssl);
  }
};

// The bytes wait here, so that neither side's memory grows within a step of the other.
struct Between {
  char to_client[65536];
  char to_server[65536];
  size_t client_has = 0, client_took = 0, server_has = 0;
} between;

const tls::Wire wire{&between,
                     [](void* self, char* at, size_t room) -> ssize_t {
                       Between& b = *static_cast<Between*>(self);
                       const size_t n = std::min(room, b.client_has - b.client_took);
                       if (n == 0) return tls::Wire::nothing_now;
                       memcpy(at, b.to_client + b.client_took, n);
                       b.client_took += n;
                       return static_cast<ssize_t>(n);
                     },
                     [](void* self, const char* data, size_t size) -> ssize_t {
                       Between& b = *static_cast<Between*>(self);
                       if (b.server_has + size > sizeof b.to_server) return tls::Wire::broken;
                       memcpy(b.to_server + b.server_has, data, size);
                       b.server_has += size;
                       return static_cast<ssize_t>(size);
                     }};

void move_bytes(Server& server) {
  BIO_write(SSL_get_rbio(server.ssl), between.to_server, static_cast<int>(between.server_has));
  between.server_has = 0;
  if (!SSL_is_init_finished(server.ssl)) SSL_do_handshake(server.ssl);
  if (between.client_took < between.client_has) return;
  between.client_took = 0;
  const int n = BIO_read(SSL_get_wbio(server.ssl), between.to_client, sizeof between.to_client);
  between.client_has = n > 0 ? static_cast<size_t>(n) : 0;
}

// ---- one connection

struct Cost {
  unsigned steps = 0;
  long heap_most = 0, heap_after = 0, heap_calls_after = 0;
  size_t stack = 0;
};

void exchange(Server& server, tls::Link& link) {
  char text[512] = {};
  for (int i = 0; i < 100; ++i) {
    size_t taken = 0, got = 0;
    Progress progress = Progress::failed;
    as_client([&] { progress = tls::write(link, {text, 150}, taken); });
    if (progress != Progress::done || taken != 150) give_up("a write failed");
    move_bytes(server);
    if (SSL_read(server.ssl, text, sizeof text) != 150) give_up("the server read something else");
    SSL_write(server.ssl, "+OK\r\n", 5);
    move_bytes(server);
    for (int tries = 0; progress != Progress::done || got == 0; ++tries) {  // tickets of TLS 1.3 come before
      as_client([&] { progress = tls::read(link, text, sizeof text, got); });
      if (tries == 3) give_up("a read failed");
      move_bytes(server);
    }
    if (got != 5) give_up("the client read something else");
  }
}

// What the trust holds stays outside of the figures: it is once for each master.
Cost connect(Server& server, const tls::Trust& trust, const tls::Ticket* resume, tls::Ticket** ticket, bool prints) {
  server.begin();
  between.client_has = between.client_took = between.server_has = 0;
  memset(stack, pattern, sizeof stack);
  heap.held = heap.most = 0;
  Cost cost;
  close(COUNT_RESET);
  tls::RecordGate gate;
  gate.begin(wire);
  tls::Link* link = nullptr;
  Progress progress = Progress::wants_input;
  as_client([&] { link = tls::make_link(trust, gate.wire(), "m1.example", resume, time(nullptr)); });
  while (progress != Progress::done) {
    as_client([&] {
      gate.let_one_through();
      progress = tls::handshake(*link);
    });
    if (++cost.steps > 50 || progress == Progress::failed) give_up("the handshake failed");
    move_bytes(server);
  }
  if (tls::was_resumed(*link) != (resume != nullptr)) give_up("resumed, or not resumed");
  cost.stack = stack_used();
  if (prints) close(COUNT_PRINT);
  gate.stand_aside();
  exchange(server, *link);
  if (ticket != nullptr) *ticket = tls::take_ticket(*link);
  cost.heap_most = heap.most;
  cost.heap_after = heap.held;
  heap.calls = 0;
  close(COUNT_RESET);
  exchange(server, *link);
  cost.heap_calls_after = heap.calls;
  if (prints) close(COUNT_PRINT);
  as_client([&] { tls::free_link(link); });
  return cost;
}

Bytes text_of(const std::string& text) { return {text.data(), text.size()}; }

// Twice, for the library allocates for itself at its first connection.
void print_case(const char* name, Server& server, const tls::Material& material, bool resumed) {
  tls::Trust* trust = nullptr;
  heap.held = heap.most = 0;
  as_client([&] {
    if (tls::make_trust(trust, material, false) != tls::Part::none) give_up("the certificates are refused");
  });
  const long of_trust = heap.held;
  tls::Ticket* ticket = nullptr;
  connect(server, *trust, nullptr, &ticket, false);
  const Cost cost = connect(server, *trust, resumed ? ticket : nullptr, nullptr, true);
  printf("%-37s %2u steps; heap: %6ld at most, %6ld after it, %ld calls in 100 cycles; stack %6zu; files %6ld\n", name,
         cost.steps, cost.heap_most, cost.heap_after, cost.heap_calls_after, cost.stack, of_trust);
  fflush(stdout);
  // mbedTLS needs no heap after the handshake; OpenSSL has a buffer for each record, and 1.3 a second one.
  const bool needs_heap = strncmp(tls::engine_version(), "openssl", 7) == 0;
  if (cost.heap_calls_after > (needs_heap ? 400 : 0)) give_up("more calls of the heap than were seen before");
  tls::free_ticket(ticket);
  tls::free_trust(trust);
}

// A chain of one key: what its certificates are does not change what they cost.
void print_chain(const std::string& name, const char* key, unsigned middle, int version) {
  const Certificate root = Certificate::self_signed({.cn = "root", .use = Certificate::Use::authority, .key = key});
  std::vector<Certificate> authorities{root};
  for (unsigned n = 0; n < middle; ++n) {
    const std::string cn = "between " + std::to_string(n);
    authorities.push_back(root.renewed({.cn = cn, .use = Certificate::Use::authority}, authorities.back()));
  }
  Server server(root.renewed({.names = {"DNS:m1.example"}}, authorities.back()), version, nullptr);
  for (unsigned n = middle; n > 0; --n) SSL_CTX_add1_chain_cert(server.context, authorities[n].x509());
  const std::string ca = root.pem();
  print_case(name.c_str(), server, {text_of(ca), {}, {}}, false);
}

bool has_tls13() {
  tls::Trust* trust = nullptr;
  if (tls::make_trust(trust, {}, true) != tls::Part::none) return false;
  tls::free_trust(trust);
  return true;
}

void run(int version) {
  const Certificate authority = Certificate::authority();
  const std::vector<std::string> names{"DNS:m1.example"};
  const Certificate middle = authority.issue({.cn = "between", .use = Certificate::Use::authority});
  const Certificate ecdsa = authority.issue(names), client = authority.issue(names), below = middle.issue(names);
  const Certificate rsa = authority.issue({.names = names, .rsa = true});
  const std::string ca = authority.pem(), certificate = client.pem(), key = client.key_pem();
  const tls::Material plain{text_of(ca), {}, {}}, own{text_of(ca), text_of(certificate), text_of(key)};
  const std::string v = version == TLS1_2_VERSION ? "TLS 1.2, " : "TLS 1.3, ";
  Server by_ecdsa(ecdsa, version, nullptr), by_rsa(rsa, version, nullptr), asks(ecdsa, version, &authority);
  Server chained(below, version, nullptr);
  SSL_CTX_add1_chain_cert(chained.context, middle.x509());
  print_case((v + "P-256").c_str(), by_ecdsa, plain, false);
  print_case((v + "P-256, an authority between").c_str(), chained, plain, false);
  print_case((v + "P-256, and a client's").c_str(), asks, own, false);
  print_case((v + "RSA 2048").c_str(), by_rsa, plain, false);
  print_case((v + "resumed").c_str(), by_ecdsa, plain, true);
  // The most that port/tls/chain accepts.
  print_chain(v + "P-256, two between", "P-256", 2, version);
  print_chain(v + "P-384, two between", "P-384", 2, version);
  print_chain(v + "P-521, an authority between", "P-521", 1, version);
  print_chain(v + "RSA 4096, three between", "rsa:4096", 3, version);
}

}  // namespace

extern "C" {
void* malloc(size_t size) {
  void* memory = __libc_malloc(size);
  heap.took(memory);
  return memory;
}
void* calloc(size_t count, size_t size) {
  void* memory = __libc_calloc(count, size);
  heap.took(memory);
  return memory;
}
void* realloc(void* memory, size_t size) {
  heap.gave(memory);
  memory = __libc_realloc(memory, size);
  heap.took(memory);
  return memory;
}
void free(void* memory) {
  heap.gave(memory);
  __libc_free(memory);
}
}

int main() {
  printf("%s, bytes\n", tls::engine_version());
  run(TLS1_2_VERSION);
  if (has_tls13()) run(TLS1_3_VERSION);
  return 0;
}
