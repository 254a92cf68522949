// SPDX-License-Identifier: MIT
//
// What a redlock_t points to, and which thread may use it.
//
// A redlock_s is the beginning of one block of memory. The block holds everything that the client ever needs, and
// belongs to the library or to the caller. The block is wiped when the client is closed.
//
// A client runs in one of three modes. On the caller's loop, and polled, one thread does everything, and nothing is
// locked. With a thread of its own, any thread may call, and one thread at a time is inside the gate. A queue of
// commands for the client's thread would need no gate. But a gate gives each call its true result at once (a handle,
// TABLE_FULL, STALE), cannot be full, and makes no call wait for a callback. A call only notes what is wanted, and the
// next turn carries the wish out.
#pragma once
#include "client/client.hpp"
#include "config/config.hpp"
#include "port/posix/gate.hpp"
#include "port/uv/driver.hpp"
#include "run/blocked.hpp"
#include "run/fault.hpp"
#include "run/story.hpp"

namespace redlock {

enum class Mode : uint8_t { loop, polled, thread };

// Bytes for the state of one mode. Each mode asserts that its state fits.
constexpr size_t mode_bytes = 176 * sizeof(void*);
constexpr uint32_t grace_ms_max = 60000;

struct Log {
  redlock_log_fn fn = nullptr;
  void* user = nullptr;
  int level = 0;

  void write(int of, const char* line) const {
    if (fn != nullptr && of != Story::none && of <= level) fn(of, line, user);
  }
};

}  // namespace redlock

struct redlock_s {
  redlock_s(const redlock::Settings& settings, void* arrays, redlock::Story::Told* told, void* connections,
            const redlock::Driver::Owner& owner)
      : client(settings, arrays), driver(client, owner, connections), story(told) {}

  // What is asked for most stands first: there instructions of 32-bit ARM are short.
  redlock_event_fn event = nullptr;
  void* event_user = nullptr;
  redlock::Log log;
  uint32_t narrated = 0;  // the types of events that the story is about, as bits
  uint32_t fork_generation = 0;
  uintptr_t thread = 0;  // the thread that runs the loop; other threads only compare themselves with it
  size_t size = 0;
  void* own = nullptr;   // the state of the mode: mode_bytes
  void (*wake)(redlock_t*) = nullptr;  // makes the loop take a turn
  redlock::BlockedList blocked;        // thread mode
  redlock::Mode mode = redlock::Mode::loop;
  bool owns_memory = false;
  bool silent = false;      // thread mode: redlock_destroy() returned before the thread ended, so deliver no events
  bool processing = false;  // polled mode: redlock_process() is under way
  redlock::Gate gate;       // thread mode
  redlock::Client client;
  redlock::Driver driver;
  redlock::Story story;
};

namespace redlock {

// ---- which thread may call ------------------------------------------------------------------------------------

uintptr_t thread_id(pthread_t thread);
uintptr_t this_thread();
bool forked(const redlock_t* rl);
// Is this the thread that runs the callbacks?
bool on_own_thread(const redlock_t* rl);

// One call of the API. If err is 0 the call may go on, and no other thread uses the client while the Entry exists.
class Entry {
 public:
  enum class For : uint8_t { reading, asking };  // asking: wakes the loop, whose next turn carries the wish out
  Entry(const redlock_t* rl, For purpose);
  ~Entry() { leave(); }
  void leave();  // before its end: then the client must not be used any more
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  int err;

 private:
  const redlock_t* rl_;
  For purpose_;
};

// ---- making and ending ------------------------------------------------------------------------------------------

// The memory for a client. given: the caller provides it.
struct Place {
  bool given = false;
  void* at = nullptr;
  size_t size = 0;
};

// Makes a client whose driver is not open yet. 0 or enum redlock_err.
int make(redlock_t*& rl, const redlock_config_t* cfg, const Place& place, Mode mode, void (*closed)(void* self));
void tell_closed(redlock_t* rl);
// Wipes the memory, because it holds passwords and values of locks. Frees the memory if the library owns it.
void give_back(redlock_t* rl);

// ---- an acquire that was asked for ------------------------------------------------------------------------------

struct Request {
  Names names;
  char packed[REDLOCK_RESOURCE_BYTES_MAX];  // the bytes of several names
  Options options;
  redlock_event_fn callback;
  void* user;
  Fault fault;  // where the request is refused with INVAL or RESERVED
};

int to_request(const redlock_t* rl, const redlock_resource_t* resources, uint32_t count,
               const redlock_acquire_opts_t* opts, Request& out);
int check_ttl(const redlock_t* rl, uint32_t ttl_ms, Fault& fault);
// Reports what is wrong, logs "CALL: what is wrong", and returns err. Ends the entry first: the log callback may wait
// for a mutex whose owner waits for the gate. noinline: keeps the text off the stack of the calls that are well.
[[gnu::noinline]] int refuse(redlock_t* rl, Entry& entry, const char* call, const Fault& fault, int err,
                             redlock_report_t* report = nullptr);

}  // namespace redlock
