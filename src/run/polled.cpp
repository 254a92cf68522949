// SPDX-License-Identifier: MIT
//
// A client behind one descriptor, for loops of any other kind. A reply, a deadline and a call of the API all make the
// descriptor readable, so watching the descriptor is enough. redlock_timeout_ms() only saves a wait that would end at
// once.
#include <new>

#include "port/uv/own_loop.hpp"
#include "run/instance.hpp"

namespace redlock {
namespace {

constexpr unsigned runs_max = 16;  // in one redlock_process(); more would starve the caller's loop

struct Poller {
  OwnLoop loop;
  bool adopted = false;  // redlock_process() was called
  bool closed = false;
};
static_assert(sizeof(Poller) <= mode_bytes);

Poller& poller(const redlock_t* rl) {
  REDLOCK_ASSERT(rl->mode == Mode::polled);
  return *static_cast<Poller*>(rl->own);
}

void wake_poller(redlock_t* rl) {
  if (!rl->processing) poller(rl).loop.wake();
}

void on_polled_closed(void* self) {
  Poller& p = poller(static_cast<redlock_t*>(self));
  REDLOCK_ASSERT(!p.closed);
  p.loop.let_go();
  p.closed = true;
}

int create(redlock_t** out, const redlock_config_t* cfg, const Place& place) {
  if (out == nullptr) return REDLOCK_E_INVAL;
  *out = nullptr;
  redlock_t* rl = nullptr;
  int err = make(rl, cfg, place, Mode::polled, on_polled_closed);
  if (err != 0) return err;
  err = (new (rl->own) Poller())->loop.open_for(rl->driver);
  if (err != 0) {
    give_back(rl);
    return err;
  }
  rl->wake = wake_poller;
  rl->wake(rl);
  *out = rl;
  return 0;
}

int check_polled(const redlock_t* rl) {
  if (rl == nullptr) return REDLOCK_E_INVAL;
  if (forked(rl)) return REDLOCK_E_FORKED;
  return rl->mode == Mode::polled ? 0 : REDLOCK_E_NOTSUP;
}

bool has_work(const redlock_t* rl) { return rl->driver.pending() || !poller(rl).loop.idle(); }

// The first thread that calls redlock_process() is the client's thread from then on.
int adopt(redlock_t* rl) {
  if (!poller(rl).adopted) __atomic_store_n(&rl->thread, this_thread(), __ATOMIC_RELAXED);
  poller(rl).adopted = true;
  if (!on_own_thread(rl)) return REDLOCK_E_THREAD;
  return rl->processing ? REDLOCK_E_DEADLOCK : 0;
}

}  // namespace
}  // namespace redlock

using namespace redlock;

extern "C" {

int redlock_create_polled(redlock_t** out, const redlock_config_t* cfg) { return create(out, cfg, Place{}); }

int redlock_create_polled_in(void* mem, size_t size, redlock_t** out, const redlock_config_t* cfg) {
  return create(out, cfg, Place{true, mem, size});
}

int redlock_fd(const redlock_t* rl) {
  const int err = check_polled(rl);
  return err != 0 ? err : poller(rl).loop.fd();
}

int redlock_timeout_ms(const redlock_t* rl) {
  const int err = check_polled(rl);
  if (err != 0) return err;
  if (!on_own_thread(rl)) return REDLOCK_E_THREAD;
  return has_work(rl) ? 0 : -1;
}

int redlock_process(redlock_t* rl) {
  int err = check_polled(rl);
  if (err == 0) err = adopt(rl);
  if (err != 0) return err;
  Poller& p = poller(rl);
  rl->processing = true;
  for (unsigned i = 0; i < runs_max && (i == 0 || (!p.closed && has_work(rl))); ++i) p.loop.run_once();
  if (p.closed) {
    tell_closed(rl);
    p.loop.close();
    give_back(rl);
    return REDLOCK_E_CLOSED;
  }
  rl->processing = false;
  rl->driver.rest();
  if (has_work(rl)) rl->wake(rl);
  return 0;
}

}  // extern "C"
