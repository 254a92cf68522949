// SPDX-License-Identifier: MIT
#include "port/uv/names.hpp"

#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>

#include "base/quotient.hpp"
#include "port/posix/fork_guard.hpp"
#include "port/uv/own_loop.hpp"

namespace redlock {
namespace {

constexpr size_t stack_bytes = 256 * 1024;  // modules of the C library's name service run on it

int64_t now_ms() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000 + now.tv_nsec / 1'000'000;
}

struct LookUp {
  int answer;  // our end of the pair
  uint16_t port;
  int64_t until_ms;
  Address first;
  char host[host_text_size];

  bool give(const addrinfo& of);
  void give_all(const addrinfo* list);
  bool wait(unsigned left) const;
};

bool LookUp::give(const addrinfo& of) {
  Address address = {};
  memcpy(&address, of.ai_addr, of.ai_addrlen < sizeof address ? of.ai_addrlen : sizeof address);
  return send(answer, &address, sizeof address, MSG_NOSIGNAL) > 0;
}

// False: nobody wants more addresses. left: how many there are.
bool LookUp::wait(unsigned left) const {
  const int64_t share_ms = quotient(until_ms - now_ms(), left + 1);
  pollfd wanted = {answer, POLLIN, 0};
  const int64_t pause_ms = share_ms < 0 ? 0 : share_ms < step_ms ? share_ms : step_ms;
  char word;
  return poll(&wanted, 1, static_cast<int>(pause_ms)) == 0 || recv(answer, &word, 1, MSG_DONTWAIT) > 0;
}

void LookUp::give_all(const addrinfo* list) {
  unsigned left = 0;
  for (const addrinfo* at = list; at != nullptr && left < REDLOCK_ADDRESSES_MAX; at = at->ai_next) {
    set_port(*reinterpret_cast<Address*>(at->ai_addr), port);
    ++left;
  }
  for (const bool preferred : {true, false}) {
    const addrinfo* at = list;
    for (unsigned n = 0; at != nullptr && n < REDLOCK_ADDRESSES_MAX; ++n, at = at->ai_next) {
      if (same_address(*reinterpret_cast<Address*>(at->ai_addr), first) != preferred) continue;
      if (!give(*at) || --left == 0 || !wait(left)) return;
    }
  }
}

void* run(void* self) {
  LookUp* const it = static_cast<LookUp*>(self);
  name_this_thread();
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(it->host, nullptr, &hints, &list) == 0 && list != nullptr) {
    it->give_all(list);
    freeaddrinfo(list);
  }
  close(it->answer);
  free(it);
  fork_guard::leave();
  return nullptr;
}

}  // namespace

int look_up(const MasterSettings& master, const Address& first, int64_t patience_ms) {
  if (!fork_guard::enter(REDLOCK_LOOKUPS_MAX)) return REDLOCK_E_RESOLVE;
  int pair[2] = {-1, -1};
  LookUp* const it = static_cast<LookUp*>(malloc(sizeof(LookUp)));
  pthread_t thread;
  if (it != nullptr && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
    it->answer = pair[1];
    it->port = master.port;
    it->until_ms = now_ms() + patience_ms;
    it->first = first;
    host_text(master, it->host);
    if (start_thread(thread, stack_bytes, run, it) == 0) {
      pthread_detach(thread);
      return pair[0];
    }
    close(pair[0]);
    close(pair[1]);
  }
  free(it);
  fork_guard::leave();
  return REDLOCK_E_SYSTEM;
}

Named next_address(int names, Address& out) {
  const ssize_t size = recv(names, &out, sizeof out, MSG_DONTWAIT);
  return size == sizeof out ? Named::address : size < 0 && nothing_now() ? Named::not_yet : Named::end;
}

void hurry(int names) { (void)send(names, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL); }

}  // namespace redlock
