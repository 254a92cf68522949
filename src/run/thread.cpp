// SPDX-License-Identifier: MIT
//
// A client with a thread of its own, and the calls that block. redlock_create() opens the loop, and the thread runs and
// closes it. The loop is open before there is a thread because the driver takes a high descriptor: where threads share
// the table of descriptors, the kernel waits some 10 ms for all processors before it replaces that table.
// redlock_destroy() waits until the loop is closed. The thread may take long to end, because a callback does not
// return. In this case redlock_destroy() returns first, and the thread frees the client's memory when it ends. If the
// caller owns the memory, redlock_destroy() waits however long it takes.
#include <new>

#include "port/uv/own_loop.hpp"
#include "run/instance.hpp"
#include "run/report.hpp"

namespace redlock {
namespace {

// A blocking call waits this much longer than its own budget, because a callback may hold up the client's thread.
constexpr int64_t patience_ms = 2000;

struct Runner {
  enum class Phase : uint8_t { running, closing, finished };

  OwnLoop loop;
  pthread_t thread;
  Bell changed;
  Phase phase = Phase::running;
  bool destroying = false;
};
static_assert(sizeof(Runner) <= mode_bytes);

Runner& runner(redlock_t* rl) {
  REDLOCK_ASSERT(rl->mode == Mode::thread);
  return *static_cast<Runner*>(rl->own);
}

void give_back_all(redlock_t* rl) {
  REDLOCK_ASSERT(rl->blocked.empty());
  runner(rl).changed.close();
  rl->gate.close();
  give_back(rl);
}

// ---- the thread -------------------------------------------------------------------------------------------------

// Called inside the gate. A call that was blocked until the loop ended comes here, too; then no loop is left to wake.
void wake_thread(redlock_t* rl) {
  if (runner(rl).phase == Runner::Phase::running && !on_own_thread(rl)) runner(rl).loop.wake();
}

void on_thread_closed(void* self) {
  redlock_t* rl = static_cast<redlock_t*>(self);
  rl->gate.enter();
  REDLOCK_ASSERT(runner(rl).phase == Runner::Phase::running);
  runner(rl).phase = Runner::Phase::closing;
  const bool silent = rl->silent;
  rl->gate.leave();
  runner(rl).loop.let_go();
  if (!silent) tell_closed(rl);
}

void finish_thread(redlock_t* rl) {
  Runner& r = runner(rl);
  rl->gate.enter();
  REDLOCK_ASSERT(r.phase == Runner::Phase::closing);
  r.phase = Runner::Phase::finished;
  r.changed.ring();
  while (rl->silent && !rl->blocked.empty()) r.changed.wait(rl->gate);
  const bool left_alone = rl->silent;
  rl->gate.leave();
  if (left_alone) give_back_all(rl);
}

void run_loop(redlock_t* rl) {
  runner(rl).loop.run();
  runner(rl).loop.close();
  finish_thread(rl);
}

void* run_thread(void* self) {
  name_this_thread();
  run_loop(static_cast<redlock_t*>(self));
  return nullptr;
}

// A handle can only be closed by running the loop: without a thread the caller runs it, to its end.
int start(redlock_t* rl) {
  Runner& r = *new (rl->own) Runner();
  const bool gate = rl->gate.open();
  if (!gate || !r.changed.open()) {
    if (gate) rl->gate.close();
    give_back(rl);
    return REDLOCK_E_SYSTEM;
  }
  int err = r.loop.open_for(rl->driver);
  if (err != 0) {
    give_back_all(rl);
    return err;
  }
  err = start_thread(r.thread, rl->client.settings().stack_bytes, run_thread, rl);
  if (err == 0) {
    __atomic_store_n(&rl->thread, thread_id(r.thread), __ATOMIC_RELAXED);  // a call that blocks is not on it
  } else {
    rl->silent = true;
    (void)rl->client.close(Duration(), rl->driver.now());
    run_loop(rl);
  }
  return err;
}

int create(redlock_t** out, const redlock_config_t* cfg, const Place& place) {
  if (out == nullptr) return REDLOCK_E_INVAL;
  *out = nullptr;
  redlock_t* rl = nullptr;
  int err = make(rl, cfg, place, Mode::thread, on_thread_closed);
  if (err != 0) return err;
  rl->wake = wake_thread;
  err = start(rl);
  if (err == 0) *out = rl;
  return err;
}

// ---- calls that block -------------------------------------------------------------------------------------------

// Entry does not check this: a blocking call waits for the client's thread, so that thread itself must not block.
int check_blocking(const redlock_t* rl) {
  if (rl == nullptr) return REDLOCK_E_INVAL;
  if (forked(rl)) return REDLOCK_E_FORKED;
  if (rl->mode != Mode::thread) return REDLOCK_E_NO_BLOCKING;
  return on_own_thread(rl) ? REDLOCK_E_DEADLOCK : 0;
}

// Waits for the answer to a call that the client has accepted. Called inside the gate. budget_ms below 0: for ever.
int wait_for(redlock_t* rl, uint64_t lock, Blocked::On on, int64_t budget_ms, redlock_report_t* report = nullptr) {
  Blocked me = {lock, on, report};
  if (!me.bell.open()) return report_error(report, REDLOCK_E_SYSTEM);
  const timespec until = Bell::from_now(budget_ms + patience_ms);
  rl->blocked.add(me);
  rl->wake(rl);
  bool in_time = true;
  while (!me.done && in_time) {
    if (budget_ms < 0) {
      me.bell.wait(rl->gate);
    } else {
      in_time = me.bell.wait_until(rl->gate, until);
    }
  }
  rl->blocked.remove(me);
  me.bell.close();
  if (rl->blocked.empty() && runner(rl).destroying) runner(rl).changed.ring();
  if (!me.done) return report_error(report, REDLOCK_E_TIMEOUT);
  // The callback ran before this thread was woken. The callback may have outlasted the validity, or released the lock.
  const bool over = me.err == 0 && on != Blocked::On::release && redlock_check(rl, {lock}, 0) != 0;
  return over ? report_error(report, REDLOCK_E_LOST) : me.err;
}

// The longest time that the client itself may take: `wait`, the first connections, room in its buffers, and then the
// round, which has two parts if the lock is fenced.
REDLOCK_APART_FOR_SIZE int64_t longest_ms(const redlock_t* rl, Duration wait) {
  const CommonSettings& s = rl->client.settings();
  return quotient(wait.ns() + 2 * s.connect_timeout.ns() + 3 * s.node_timeout.ns(), 1'000'000);
}

// ---- the end ----------------------------------------------------------------------------------------------------

bool finished(redlock_t* rl) { return runner(rl).phase == Runner::Phase::finished && rl->blocked.empty(); }

// Called inside the gate; leaves it.
int wait_for_end(redlock_t* rl, uint32_t grace_ms) {
  Runner& r = runner(rl);
  REDLOCK_ASSERT(r.destroying);
  const timespec until = Bell::from_now(grace_ms + patience_ms);
  bool in_time = true;
  while (!finished(rl) && in_time) in_time = r.changed.wait_until(rl->gate, until);
  while (!finished(rl) && !rl->owns_memory) r.changed.wait(rl->gate);
  if (!finished(rl) && r.phase != Runner::Phase::finished) {
    rl->silent = true;
    pthread_detach(r.thread);
    rl->gate.leave();
    return REDLOCK_E_TIMEOUT;
  }
  while (!finished(rl)) r.changed.wait(rl->gate);
  rl->gate.leave();
  pthread_join(r.thread, nullptr);
  give_back_all(rl);
  return 0;
}

}  // namespace
}  // namespace redlock

using namespace redlock;

extern "C" {

int redlock_create(redlock_t** out, const redlock_config_t* cfg) { return create(out, cfg, Place{}); }

int redlock_create_in(void* mem, size_t size, redlock_t** out, const redlock_config_t* cfg) {
  return create(out, cfg, Place{true, mem, size});
}

int redlock_destroy(redlock_t* rl, uint32_t grace_ms) {
  const int err = check_blocking(rl);
  if (err != 0) return err;
  if (grace_ms > grace_ms_max) return REDLOCK_E_INVAL;
  Runner& r = runner(rl);
  rl->gate.enter();
  if (r.destroying) {
    rl->gate.leave();
    return REDLOCK_E_CLOSED;
  }
  r.destroying = true;
  (void)rl->client.close(Duration::ms(grace_ms), rl->driver.now());
  rl->wake(rl);
  return wait_for_end(rl, grace_ms);
}

int redlock_acquire(redlock_t* rl, const redlock_resource_t* resources, uint32_t count,
                    const redlock_acquire_opts_t* opts, redlock_lock_t* lock) {
  if (lock != nullptr) lock->id = 0;
  redlock_report_t* report;
  if (!find_report(opts, report)) return REDLOCK_E_INVAL;
  if (lock == nullptr) return report_error(report, REDLOCK_E_INVAL);
  int err = check_blocking(rl);
  if (err != 0) return report_error(report, err);
  Entry entry(rl, Entry::For::asking);
  Request request;
  err = to_request(rl, resources, count, opts, request);
  if (err != 0) return refuse(rl, entry, "redlock_acquire", request.fault, err, report);
  request.options.wants_holder = request.options.wants_holder || report != nullptr;
  uint64_t handle = 0;
  err = rl->client.acquire(request.names, request.options, request.callback, request.user, handle);
  if (err != 0) return report_error(report, err);
  const int32_t wait_ms = request.options.wait_ms;
  const Duration wait = wait_ms == REDLOCK_WAIT_DEFAULT ? rl->client.default_wait() : Duration::ms(wait_ms);
  err = wait_for(rl, handle, Blocked::On::acquire, wait_ms == REDLOCK_WAIT_FOREVER ? -1 : longest_ms(rl, wait), report);
  if (err == 0) {
    lock->id = handle;
  } else if (err == REDLOCK_E_TIMEOUT || err == REDLOCK_E_SYSTEM) {
    (void)rl->client.release(handle);  // does nothing if the acquire has ended by itself
  }
  return err;
}

int redlock_extend(redlock_t* rl, redlock_lock_t lock, uint32_t ttl_ms) {
  int err = check_blocking(rl);
  if (err != 0) return err;
  Entry entry(rl, Entry::For::asking);
  Fault fault;
  err = check_ttl(rl, ttl_ms, fault);
  if (err != 0) return refuse(rl, entry, "redlock_extend", fault, err);
  err = rl->client.extend(lock.id, ttl_ms);
  return err != 0 ? err : wait_for(rl, lock.id, Blocked::On::extend, longest_ms(rl, Duration()));
}

int redlock_release(redlock_t* rl, redlock_lock_t lock) {
  int err = check_blocking(rl);
  if (err != 0) return err;
  const Entry entry(rl, Entry::For::asking);
  err = rl->client.release(lock.id);
  if (err != 0 || !rl->client.present(lock.id)) return err;
  return wait_for(rl, lock.id, Blocked::On::release, 0);
}

}  // extern "C"
