// SPDX-License-Identifier: MIT
//
// What stands behind a redlock_t, and who may come in. The C API is check, forward, convert; nothing is decided here.
//
// A redlock_s stands at the front of one block of memory, with everything it ever needs behind it; the block is the
// library's or the caller's, and is wiped when the client is gone.
//
// One client, three ways to run it: on the caller's loop and polled, where one thread does everything and nothing is
// locked; or by a thread of its own, where any thread may call and one at a time is inside the gate. The gate, and
// not a queue of commands for the thread: so a call has its true result at once (a handle, TABLE_FULL, STALE), no
// queue can be full, and no call waits for a callback. The client only notes what is asked for; its next turn carries
// it out.
#pragma once
#include "client/client.hpp"
#include "config/config.hpp"
#include "port/posix/gate.hpp"
#include "port/uv/driver.hpp"
#include "run/blocked.hpp"

namespace redlock {

enum class Mode : uint8_t { loop, polled, thread };

// Bytes for what a mode needs besides; those who need it assert that it is enough.
constexpr size_t mode_bytes = 176 * sizeof(void*);
constexpr uint32_t grace_ms_max = 60000;

}  // namespace redlock

struct redlock_s {
  redlock_s(const redlock::Settings& settings, void* arrays, void* connections, const redlock::Driver::Owner& owner)
      : client(settings, arrays), driver(client, owner, connections) {}

  redlock::Client client;
  redlock::Driver driver;
  redlock_event_fn event = nullptr;
  void* event_user = nullptr;
  redlock_log_fn log = nullptr;
  void* log_user = nullptr;
  int log_level = 0;
  uint32_t fork_generation = 0;
  uintptr_t thread = 0;  // of the loop; read by others only to be told that they are others
  size_t size = 0;
  void* own = nullptr;   // the mode's part of the memory
  void (*wake)(redlock_t*) = nullptr;  // there is something to do
  redlock::Gate gate;                  // thread mode
  redlock::BlockedList blocked;        // thread mode
  redlock::Mode mode = redlock::Mode::loop;
  bool owns_memory = false;
  bool silent = false;      // thread mode: whom the events are for has given up waiting for the thread
  bool processing = false;  // polled mode: redlock_process() is under way
};

namespace redlock {

// ---- who may come in ------------------------------------------------------------------------------------------

uintptr_t this_thread();
bool forked(const redlock_t* rl);
// Inside a callback, or where callbacks come from.
bool on_own_thread(const redlock_t* rl);

// One call of the API: err is 0 when it may go on, and then no other thread is at the client while it lives.
class Entry {
 public:
  enum class For : uint8_t { reading, asking };  // what was asked for is carried out by the next turn
  Entry(const redlock_t* rl, For purpose);
  ~Entry();
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  int err;

 private:
  const redlock_t* rl_;
  For purpose_;
};

// ---- making and ending ------------------------------------------------------------------------------------------

// Where a client is to live: nowhere yet, or in the caller's memory.
struct Place {
  bool given = false;
  void* at = nullptr;
  size_t size = 0;
};

// A client that has not been opened. 0 or enum redlock_err.
int make(redlock_t*& rl, const redlock_config_t* cfg, const Place& place, Mode mode, void (*closed)(void* self));
void tell_closed(redlock_t* rl);
// The memory holds passwords and values.
void give_back(redlock_t* rl);

// ---- an acquire that was asked for ------------------------------------------------------------------------------

struct Request {
  Names names;
  char packed[REDLOCK_RESOURCE_BYTES_MAX];  // several of them
  Options options;
  redlock_event_fn callback;
  void* user;
};

int to_request(const redlock_t* rl, const redlock_resource_t* resources, uint32_t count,
               const redlock_acquire_opts_t* opts, Request& out);
int check_ttl(const redlock_t* rl, uint32_t ttl_ms);

}  // namespace redlock
