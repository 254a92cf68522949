// SPDX-License-Identifier: MIT
//
// The client's memory. The settings determine the size of one block, and the block is cut into arrays.
#include <new>

#include "base/password_file.hpp"
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

// One walk through the block: what stands where, and how large the block is. Without a base the walk only counts.
struct Client::Layout {
  Layout(const Settings& settings, char* base);

  // The longest command about the names of one lock.
  static size_t command_bytes(const Settings& s) {
    return Post::command_size(s.key_prefix.size, Names::max, s.resource_bytes) +
           Command::sealed_size(s.key_prefix.size);
  }
  // Of all masters together. Any round finds room in it: its commands with and without a script, and CLIENT CACHING.
  static size_t shared_bytes(const Settings& s) {
    const size_t least = 2 * Shared::size_of(command_bytes(s)) + Shared::size_of(Command::caching().size);
    const size_t set = Command::set_frame_max + s.key_prefix.size + s.resource_bytes + REDLOCK_VALUE_MAX;
    // As many SETs as may be unanswered. When all but one are queued, there must still be room for any command.
    const unsigned at_once = lesser(s.locks, Claims::share_of(s.debts - s.locks, s.masters - quorum_of(s.masters)));
    const size_t sets = at_once * Shared::size_of(set) + (Command::frame_max - Command::set_frame_max) +
                        Shared::size_of(Command::caching().size);
    const size_t wanted = s.tx_bytes == 0 ? sets : s.tx_bytes;
    const size_t most = wanted > least ? wanted : least;
    return most + sizeof(Shared::Command) - most % sizeof(Shared::Command);
  }
  // Of each master.
  static size_t tx_bytes(const Settings& s) {
    const size_t command = command_bytes(s) + Command::caching().size, record = Record::bytes_max(s);
    return command > record ? command : record;
  }
  // A new value for every lock, so that one turn never runs out of random bytes, and all seeds.
  static size_t random_enough(const Settings& s) {
    const size_t seeds = 1 + (s.guard != GuardMode::off ? s.masters : 0);
    return s.locks * size_t{REDLOCK_VALUE_RANDOM} + seeds * sizeof(uint64_t);
  }
  // A quarter more, and at least one value, so that one system call serves several values.
  static size_t random_bytes(const Settings& s) {
    const size_t enough = random_enough(s), more = enough / 4;
    return enough + (more > REDLOCK_VALUE_RANDOM ? more : REDLOCK_VALUE_RANDOM);
  }
  Session::Memory session(MasterIndex m) const {
    Session::Memory memory = {};
    memory.tx = tx + m * tx_size;
    memory.tx_size = tx_size;
    memory.rx = rx + m * rx_size;
    memory.rx_size = rx_size;
    memory.requests = requests + m * requests_size;
    memory.requests_size = requests_size;
    return memory;
  }

  size_t size = 0;
  Lock* locks;
  Instant* free_at;  // of each lock at each master
  Instant* due_pages;
  Claim* claims;
  Session* sessions;
  MasterSettings* masters;
  Proposals::Place* proposals;
  Fifo::Request* requests;
  LocalQueue::Row* rows;
  char* names;  // of the locks, then of the claims
  char* shared;
  char* tx;
  char* rx;
  unsigned char* random;
  size_t random_size;
  size_t shared_size, tx_size, rx_size;
  unsigned requests_size;
  Bytes client_name, key_prefix, meta_key, seen_key, fingerprint, master_names;

 private:
  template <class T>
  T* cut(size_t n) {
    size = (size + alignof(T) - 1) & ~(alignof(T) - 1);
    T* at = reinterpret_cast<T*>(base_ + size);
    size += n * sizeof(T);
    return at;
  }
  Bytes copy(Bytes text) {
    char* at = cut<char>(text.size);
    if (base_ != 0 && text.size != 0) memcpy(at, text.data, text.size);
    return Bytes(at, text.size);
  }
  // The file's password stands in its room.
  [[gnu::noinline]] void copy_file(uint32_t room_size, MasterSettings& master, MasterSettings& place) {
    const PasswordFile& from = *master.file;
    PasswordFile* const file = cut<PasswordFile>(1);
    const Bytes path = copy(Bytes(from.path, strlen(from.path) + 1));
    char* const room = cut<char>(2 * (room_size + password_rest));
    if (base_ == 0) return;
    memcpy(room, from.room, from.size);
    master.password = Bytes(room, from.size);
    master.file = new (file) PasswordFile{from.stamp, path.data, room, room_size, room + room_size + password_rest,
                                          &place.password};
  }

  const uintptr_t base_;  // 0: nothing is written
};

Client::Layout::Layout(const Settings& s, char* base) : base_(reinterpret_cast<uintptr_t>(base)) {
  locks = cut<Lock>(s.locks);
  free_at = cut<Instant>(size_t{s.locks} * s.masters);
  due_pages = cut<Instant>(DuePages::pages_of(s.locks));
  claims = cut<Claim>(s.debts);
  sessions = cut<Session>(s.masters);
  masters = cut<MasterSettings>(s.masters);
  proposals = cut<Proposals::Place>(s.locks);
  requests_size = s.in_flight + Session::own_requests;
  requests = cut<Fifo::Request>(size_t{s.masters} * requests_size);
  rows = cut<LocalQueue::Row>(s.locks);
  names = cut<char>(size_t{s.locks + s.debts} * s.resource_bytes);
  shared_size = shared_bytes(s);
  shared = reinterpret_cast<char*>(cut<Shared::Command>(shared_size / sizeof(Shared::Command)));
  tx_size = tx_bytes(s);
  tx = cut<char>(s.masters * tx_size);
  rx_size = s.rx_bytes;
  rx = cut<char>(s.masters * rx_size);
  random_size = random_bytes(s);
  random = cut<unsigned char>(random_size);
  for (MasterIndex m = 0; m < s.masters; ++m) {
    MasterSettings master = s.master[m];
    master.name = copy(master.name);
    master.host = copy(master.host);
    master.user = copy(master.user);
    if (master.file != nullptr) {
      copy_file(s.password_bytes, master, masters[m]);
    } else {
      master.password = copy(master.password);
    }
    if (base != nullptr) masters[m] = master;
  }
  client_name = copy(s.client_name);
  key_prefix = copy(s.key_prefix);
  char key[meta_key_max], about[fingerprint_max], list[names_max];
  meta_key = copy(write_meta_key(s, key));
  seen_key = copy(write_seen_key(s, key));
  fingerprint = copy(write_fingerprint(s, quorum_of(s.masters), about));
  master_names = copy(write_names(s, list));
}

size_t Client::memory_size(const Settings& s) { return Layout(s, nullptr).size; }

Client::Client(const Settings& settings, void* memory) : fleet_(settings.masters), settings_(settings) {
  const Layout at(settings, static_cast<char*>(memory));
  for (unsigned i = 0; i < settings.locks; ++i) {
    new (&at.locks[i]) Lock();
    at.locks[i].forecast.use(at.free_at + size_t{i} * settings.masters, settings.masters);
    new (&at.rows[i]) LocalQueue::Row;
  }
  table_.init(at.locks, settings.locks);
  queue_.init(at.rows, settings.locks);
  due_pages_.init(at.due_pages, settings.locks);
  names_ = at.names;
  post_.claims.init({.masters = settings.masters,
                     .quorum = quorum_of(settings.masters),
                     .locks = settings.locks,
                     .drift_ppm = settings.drift_ppm,
                     .drift_fixed_ms = settings.drift_fixed_ms,
                     .resource_bytes = settings.resource_bytes},
                    at.claims, settings.debts, names_ + size_t{settings.locks} * settings.resource_bytes);
  pool_.init(at.random, at.random_size, Layout::random_enough(settings));
  proposals_.init(at.proposals, settings.locks);
  belief_.init(settings.masters);
  settings_.client_name = at.client_name;
  settings_.key_prefix = at.key_prefix;
  settings_.meta_key = at.meta_key;
  settings_.seen_key = at.seen_key;
  settings_.fingerprint = at.fingerprint;
  settings_.names = at.master_names;
  post_.init(at.sessions, at.shared, at.shared_size);
  for (MasterIndex m = 0; m < settings.masters; ++m) {
    Session::Memory part = at.session(m);
    post_.lend(part);
    part.self = m;
    new (&post_[m]) Session(settings_, at.masters[m], settings_.client_name, part);
  }
  machine_.init({.masters = settings.masters,
                 .drift = {settings.drift_ppm, settings.drift_fixed_ms},
                 .node_timeout = settings.node_timeout,
                 .max_ttl_ms = settings.max_ttl_ms,
                 .sleep_max_ms = lesser(settings.max_ttl_ms, REDLOCK_WAIT_SLEEP_MS_MAX),
                 .local_turns = settings.local_turns,
                 .may_floor = !settings.fence_strict,
                 .wait = Duration::ms(settings.wait_ms),
                 .guard_wait = guard_wait(settings)});
}

}  // namespace redlock
