// SPDX-License-Identifier: MIT
//
// The client's memory. The settings determine the size of one block, and the block is cut into arrays.
#include <new>

#include "client/client.hpp"
#include "lock/quorum.hpp"
#include "master/guard.hpp"

namespace redlock {
namespace {

uint32_t lesser(uint32_t a, uint32_t b) { return a < b ? a : b; }

Duration guard_wait(const Settings& s) {
  if (s.guard_wait_ms != guard_wait_not_given) return Duration::ms(s.guard_wait_ms);
  const Duration once = guard_time(s.max_ttl_ms, s.drift_ppm, s.drift_fixed_ms);
  return once + once;
}

}  // namespace

// Cuts the block into arrays. With a null base, cut() only counts.
struct Client::Layout {
  char* base;
  size_t size = 0;

  template <class T>
  T* cut(size_t n) {
    size = (size + alignof(T) - 1) & ~(alignof(T) - 1);
    T* at = base != nullptr ? reinterpret_cast<T*>(base + size) : nullptr;
    size += n * sizeof(T);
    return at;
  }

  Bytes copy(Bytes text) {
    char* at = cut<char>(text.size);
    if (at != nullptr && text.size != 0) memcpy(at, text.data, text.size);
    return Bytes(at, text.size);
  }

  // The pool is refilled when it is less than half full. One half is enough for a new value for every lock, so one turn
  // never runs out of random bytes.
  static size_t random_bytes(const Settings& s) {
    const size_t seeds = 1 + (s.guard != GuardMode::off ? s.masters : 0);
    return 2 * (s.locks * size_t{REDLOCK_VALUE_RANDOM} + seeds * sizeof(uint64_t));
  }

  Bytes meta_key(const Settings& s) {
    char text[meta_key_max];
    return copy(write_meta_key(s, text));
  }
  Bytes seen_key(const Settings& s) {
    char text[meta_key_max];
    return copy(write_seen_key(s, text));
  }
  Bytes fingerprint(const Settings& s) {
    char text[fingerprint_max];
    return copy(write_fingerprint(s, quorum_of(s.masters), text));
  }

  static size_t tx_bytes(const Settings& s) {
    if (s.tx_bytes != 0) return s.tx_bytes;
    const size_t set = Command::set_frame_max + s.key_prefix.size + s.resource_bytes + REDLOCK_VALUE_MAX;
    // When all SETs but one are queued, there must still be room for any command.
    const size_t sets = s.locks * set + (Command::frame_max - Command::set_frame_max);
    return sets > REDLOCK_TX_BYTES_MIN ? sets : REDLOCK_TX_BYTES_MIN;
  }

  Session::Memory session(const Settings& s) {
    Session::Memory memory = {};
    memory.requests_size = s.in_flight + Session::own_requests;
    memory.requests = cut<Session::Request>(memory.requests_size);
    memory.tx_size = tx_bytes(s);
    memory.tx = cut<char>(memory.tx_size);
    memory.rx_size = s.rx_bytes;
    memory.rx = cut<char>(memory.rx_size);
    return memory;
  }
};

size_t Client::memory_size(const Settings& s) {
  Layout layout{nullptr};
  layout.cut<Lock>(s.locks);
  layout.cut<Instant>(size_t{s.locks} * s.masters);
  layout.cut<LocalQueue::Row>(s.locks);
  layout.cut<Instant>(DuePages::pages_of(s.locks));
  layout.cut<Claim>(s.debts);
  layout.cut<char>(size_t{s.locks + s.debts} * s.resource_bytes);
  layout.cut<Session>(s.masters);
  for (MasterIndex m = 0; m < s.masters; ++m) {
    layout.session(s);
    layout.copy(s.master[m].name);
    layout.copy(s.master[m].host);
    layout.copy(s.master[m].user);
    layout.copy(s.master[m].password);
  }
  layout.cut<unsigned char>(Layout::random_bytes(s));
  layout.cut<Proposals::Place>(s.locks);
  layout.copy(s.client_name);
  layout.copy(s.key_prefix);
  layout.meta_key(s);
  layout.seen_key(s);
  layout.fingerprint(s);
  return layout.size;
}

Client::Client(const Settings& settings, void* memory) : settings_(settings), fleet_(settings.masters) {
  Layout layout{static_cast<char*>(memory)};
  Lock* locks = layout.cut<Lock>(settings.locks);
  Instant* free_at = layout.cut<Instant>(size_t{settings.locks} * settings.masters);
  for (unsigned i = 0; i < settings.locks; ++i) {
    new (&locks[i]) Lock;
    locks[i].forecast.use(free_at + size_t{i} * settings.masters, settings.masters);
  }
  table_.init(locks, settings.locks);
  LocalQueue::Row* rows = layout.cut<LocalQueue::Row>(settings.locks);
  for (unsigned i = 0; i < settings.locks; ++i) new (&rows[i]) LocalQueue::Row;
  queue_.init(rows, settings.locks);
  due_pages_.init(layout.cut<Instant>(DuePages::pages_of(settings.locks)), settings.locks);

  const unsigned quorum = quorum_of(settings.masters);
  Claim* claims = layout.cut<Claim>(settings.debts);
  names_ = layout.cut<char>(size_t{settings.locks + settings.debts} * settings.resource_bytes);
  claims_.init(
      {settings.masters, quorum, settings.locks, settings.drift_ppm, settings.drift_fixed_ms, settings.resource_bytes},
      claims, settings.debts, names_ + size_t{settings.locks} * settings.resource_bytes);

  sessions_ = layout.cut<Session>(settings.masters);
  Session::Memory parts[REDLOCK_MASTERS_MAX];
  for (MasterIndex m = 0; m < settings.masters; ++m) {
    MasterSettings& master = settings_.master[m];
    parts[m] = layout.session(settings);
    parts[m].calls = &called_;
    parts[m].news = &news_;
    master.name = layout.copy(master.name);
    master.host = layout.copy(master.host);
    master.user = layout.copy(master.user);
    master.password = layout.copy(master.password);
  }
  pool_.init(layout.cut<unsigned char>(Layout::random_bytes(settings)), Layout::random_bytes(settings));
  belief_.init(settings.masters);
  proposals_.init(layout.cut<Proposals::Place>(settings.locks), settings.locks);
  settings_.client_name = layout.copy(settings.client_name);
  settings_.key_prefix = layout.copy(settings.key_prefix);
  settings_.meta_key = layout.meta_key(settings);
  settings_.seen_key = layout.seen_key(settings);
  settings_.fingerprint = layout.fingerprint(settings);
  for (MasterIndex m = 0; m < settings.masters; ++m) {
    new (&sessions_[m]) Session(settings_, settings_.master[m], settings_.client_name, parts[m]);
  }
  machine_.init({settings.masters,
                 {settings.drift_ppm, settings.drift_fixed_ms},
                 settings.node_timeout,
                 settings.max_ttl_ms,
                 lesser(settings.max_ttl_ms, REDLOCK_WAIT_SLEEP_MS_MAX),
                 settings.local_turns,
                 !settings.fence_strict,
                 Duration::ms(settings.wait_ms),
                 guard_wait(settings)});
}

}  // namespace redlock
