// SPDX-License-Identifier: MIT
//
// The whole C API, src/c_api itself, called in any order and with anything: handles that are stale, of the other
// client or invented, options out of range or of another size, small buffers, calls from callbacks, a table of one to
// four locks. Two gateways share three masters (or one), which speak as Redis does; the input also lets masters be
// slow, silent, dead, restarted with or without their keys, and lets time pass.
//
// Each call gives a result that the header names for it; who was granted something gets one verdict and one end; no two
// handles of one resource pass a check at the same instant while the masters keep their keys; status and claims add up;
// close comes to an end.
#include <set>

// The driver that c_api/ finds is the one of stand_in/.
#include "bare_driver.hpp"
#include "input.hpp"
#include "run/instance.hpp"
#include "support/redis_double.hpp"
#include "support/lua_scripts.hpp"

namespace redlock::test {
namespace {

constexpr unsigned masters_max = 3;
constexpr unsigned gateways = 2;

class World;

struct Record {
  unsigned gateway = 0;
  redlock_lock_t lock = {0};
  std::vector<std::string> resources;
  bool decided = false;
  bool ended = false;
};

// One gateway's way to its masters.
class Gateway : public BareDriver::Peer {
 public:
  World* world = nullptr;
  unsigned number = 0;
  redlock_t* rl = nullptr;
  BareDriver* driver = nullptr;
  void (*closed)(void*) = nullptr;
  void (*deliver)(void*, Client::Event&) = nullptr;
  void* self = nullptr;
  bool closing = false;
  bool closed_told = false;
  bool jumped = false;
  unsigned open = 0;     // accepted acquires without an end
  unsigned leaving = 0;  // its slot is free when its callback returns
  uint64_t told[REDLOCK_EV_WAITING + 1] = {};
  int conn[masters_max] = {};        // at the double; 0: none
  std::string out[masters_max];      // on its way to the master
  std::string in[masters_max];       // on its way back

  Instant now() override;
  bool clock_jumped() override {
    const bool was = jumped;
    jumped = false;
    return was;
  }
  int64_t boot_ms() override { return now().ns() / 1'000'000; }
  BareDriver::Connect connect(MasterIndex m) override;
  void connected(MasterIndex m) override;
  size_t send(MasterIndex m, std::string_view bytes) override {
    out[m] += bytes;
    return bytes.size();
  }
  void hang_up(MasterIndex m) override;
  bool entropy(unsigned char* bytes, size_t size) override;
  void event(Client::Event& event) override { deliver(self, event); }
};

enum class Way : uint8_t { answering, silent, down };

struct Master {
  RedisDouble redis{1};
  Way way = Way::answering;
  // What closed connections still hold unread: the master reads it when it answers again.
  std::vector<std::pair<int, std::string>> orphans;
};

class Loop : public uv_loop_s {
 public:
  Gateway* gateway = nullptr;
  Instant now() override { return gateway->now(); }
  bool clock_agrees() override { return !gateway->jumped; }
  BareDriver::Peer* add(BareDriver* driver, void (*closed)(void*), void* self,
                        void (*event)(void*, Client::Event&)) override {
    gateway->driver = driver;
    gateway->closed = closed;
    gateway->self = self;
    gateway->deliver = event;
    return gateway;
  }
};

class World {
 public:
  World(const uint8_t* data, size_t size) : input_(data, size) {
    const uint8_t kind = input_.byte();
    masters_ = kind & 1 ? 3 : 1;
    for (unsigned m = 0; m < masters_; ++m) register_scripts(redis_[m].redis);
    for (unsigned g = 0; g < gateways; ++g) create(g, kind);
  }

  void run() {
    while (!input_.empty()) {
      decide();
      settle();
      check();
    }
    finish();
  }

  Instant now() const { return Instant::from_ns(1'000'000'000'000 + now_); }
  bool down(MasterIndex m) const { return redis_[m].way == Way::down; }
  Master& master(MasterIndex m) { return redis_[m]; }
  TrueTime true_time() const { return now_; }
  uint64_t noise() { return noise_ = noise_ * 6364136223846793005u + 1442695040888963407u; }

 private:
  void create(unsigned g, uint8_t kind) {
    Gateway& gateway = gateways_[g];
    gateway.world = this;
    gateway.number = g;
    loops_[g].gateway = &gateway;
    redlock_config_t* cfg = nullptr;
    must(redlock_config_new(&cfg));
    for (unsigned m = 0; m < masters_; ++m) {
      must(redlock_config_add_master(cfg, ("redis://10.0.0." + std::to_string(m + 1)).c_str()));
    }
    const uint32_t locks = 1 + (kind >> 1 & 3);
    must(redlock_config_set_str(cfg, "client_name", g == 0 ? "a" : "b"));
    must(redlock_config_set_str(cfg, "guard", "off"));
    if (kind & 8) must(redlock_config_set_str(cfg, "key_prefix", "site:"));
    must(redlock_config_set_u32(cfg, "limits.locks", locks));
    must(redlock_config_set_u32(cfg, "limits.debts", locks + 1 + (kind >> 4 & 3)));
    must(redlock_config_set_u32(cfg, "limits.in_flight", REDLOCK_IN_FLIGHT_MIN));
    must(redlock_config_set_u32(cfg, "limits.rx_bytes", REDLOCK_RX_BYTES_MIN));
    must(redlock_config_set_u32(cfg, "limits.tx_bytes", REDLOCK_TX_BYTES_MIN));
    must(redlock_config_set_u32(cfg, "defaults.ttl_ms", 1000));
    must(redlock_config_set_u32(cfg, "timing.max_ttl_ms", 2000));
    redlock_config_set_event(cfg, on_client_event, &gateway);
    redlock_config_set_log(cfg, on_log, &gateway, 7);
    memory_[g].resize(redlock_memory_size(cfg) / sizeof(max_align_t) + 1);
    if (kind & 64) {
      must(redlock_create_on_loop_in(memory_[g].data(), redlock_memory_size(cfg), &gateway.rl, cfg, &loops_[g]));
    } else {
      must(redlock_create_on_loop(&gateway.rl, cfg, &loops_[g]));
    }
    redlock_config_free(cfg);
  }

  static void must(int err) { require(err == 0, "the configuration is right"); }

  // ---- what may happen ------------------------------------------------------------------------------------------
  void decide() {
    const uint8_t what = input_.byte();
    const MasterIndex m = (what >> 4) % masters_;
    switch (what & 15) {
      case 0 ... 8:
        return call(gateways_[what >> 7]);
      case 9 ... 11:
        return pass_time();
      case 12:
        redis_[m].way = static_cast<Way>(input_.below(3));
        if (redis_[m].way == Way::down) break_connections(m);
        return;
      case 13:
        return break_connections(m);
      case 14:
        return trouble(m);
      default:
        gateways_[what >> 7].jumped = true;
    }
  }

  void trouble(MasterIndex m) {
    RedisDouble& redis = redis_[m].redis;
    switch (input_.below(8)) {
      case 0:
        keys_were_lost_ = true;
        break_connections(m);
        return redis.crash(RedisDouble::Keep::none, now_);
      case 1:
        break_connections(m);
        return redis.crash(RedisDouble::Keep::all, now_);
      case 2:
        return redis.script_flush();
      case 3:
        redis.knobs.oom = !redis.knobs.oom;
        return;
      case 4:
        redis.knobs.busy = !redis.knobs.busy;
        return;
      case 5:
        redis.knobs.loading = !redis.knobs.loading;
        return;
      case 6:
        return redis.fail_next("ERR something", "");
      default:
        redis.knobs.no_hello = !redis.knobs.no_hello;
    }
  }

  void pass_time() {
    const uint8_t kind = input_.byte();
    TrueTime to = now_ + (kind >> 1) * int64_t{kind & 1 ? 1'000'000 : 10'000'000};
    for (int i = 0; i < 1000; ++i) {
      TrueTime next = to;
      for (const Gateway& gateway : gateways_) {
        if (gateway.rl == nullptr || gateway.driver->due() == Instant::never()) continue;
        const TrueTime due = gateway.driver->due().ns() - 1'000'000'000'000;
        next = std::min(next, std::max(due, now_));
      }
      now_ = next;
      settle();
      if (now_ == to) return;
    }
    now_ = to;
  }

  void break_connections(MasterIndex m) {
    for (Gateway& gateway : gateways_) {
      if (gateway.rl != nullptr) gateway.driver->broke(m, REDLOCK_E_DISCONNECTED);
    }
  }

  // Bytes go both ways until nobody has anything to say at this instant. A call from a callback begins anew.
  void settle() {
    unsigned calls = calls_from_callbacks_;
    for (int i = 0; i < 100; ++i) {
      if (calls != calls_from_callbacks_) i = 0;
      calls = calls_from_callbacks_;
      for (Gateway& gateway : gateways_) {
        if (gateway.rl != nullptr) gateway.driver->settle();
        reap(gateway);
      }
      if (!exchange()) return;
    }
    require(false, "masters and gateways come to rest");
  }

  bool exchange() {
    bool moved = false;
    for (MasterIndex m = 0; m < masters_; ++m) {
      Master& master = redis_[m];
      if (master.way != Way::answering) continue;
      for (auto& [conn, bytes] : master.orphans) {
        master.redis.receive(conn, bytes, now_);
        master.redis.close(conn);
      }
      master.orphans.clear();
      for (Gateway& gateway : gateways_) moved = exchange(gateway, m) || moved;
    }
    return moved;
  }

  bool exchange(Gateway& gateway, MasterIndex m) {
    if (gateway.rl == nullptr || gateway.conn[m] == 0) return false;
    RedisDouble& redis = redis_[m].redis;
    const int conn = gateway.conn[m];
    if (!gateway.out[m].empty()) {
      const std::string bytes = std::move(gateway.out[m]);
      gateway.out[m].clear();
      redis.receive(conn, bytes, now_);
    }
    gateway.in[m] += redis.out(conn);
    redis.out(conn).clear();
    if (gateway.in[m].empty()) {
      if (!redis.closed_by_server(conn)) return false;
      gateway.driver->broke(m, REDLOCK_E_DISCONNECTED);
      return true;
    }
    gateway.driver->readable(m, gateway.in[m], SIZE_MAX);
    return true;
  }

  void reap(Gateway& gateway) {
    if (gateway.rl == nullptr || !gateway.driver->done()) return;
    require(gateway.open == 0, "every acquire has its end before CLOSED");
    gateway.closed(gateway.self);
    require(gateway.closed_told, "CLOSED is told");
    gateway.rl = nullptr;
  }

  // ---- calls ----------------------------------------------------------------------------------------------------
  void call(Gateway& gateway) {
    if (gateway.rl == nullptr) return;
    redlock_t* const rl = gateway.rl;
    const uint8_t what = input_.byte();
    switch (what % 16) {
      case 0 ... 4:
        return acquire(gateway);
      case 5 ... 9:
        return about_lock(gateway, what);
      case 10:
        return check_lock(gateway);
      case 11:
        return status(rl);
      case 12:
        return wild_acquire(gateway);
      case 13:
        expect(redlock_suspended(rl), {0, gateway.closing ? REDLOCK_E_CLOSED : 0});
        return;
      case 14:
        expect(redlock_close_async(rl, 60001 + input_.byte()), {REDLOCK_E_INVAL});
        expect(redlock_suspended(nullptr), {REDLOCK_E_INVAL});
        expect(redlock_commission(nullptr), {REDLOCK_E_INVAL});
        expect(redlock_commission_master(nullptr, 0), {REDLOCK_E_INVAL});
        expect(redlock_commission_master(rl, masters_), {REDLOCK_E_INVAL});
        expect(redlock_commission_master(rl, 0), {0, gateway.closing ? REDLOCK_E_CLOSED : 0});
        return;
      default:
        if (what < 0xE0) return;
        require(redlock_close_async(rl, input_.byte() * 8u) == (gateway.closing ? REDLOCK_E_CLOSED : 0), "close");
        gateway.closing = true;
    }
  }

  void acquire(Gateway& gateway) {
    static const std::string names[] = {"bus", "valve", std::string(REDLOCK_RESOURCE_MAX, '\0')};
    const uint8_t kind = input_.byte();
    const std::string& name = names[kind % 3];
    redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
    opts.ttl_ms = kind & 4 ? 20 + input_.byte() * 7u : 0;
    const int32_t budget = kind & 8 ? input_.byte() * 4 : REDLOCK_TRY_ONCE;
    opts.wait_ms = budget < 800 ? budget : budget < 900 ? REDLOCK_WAIT_FOREVER : REDLOCK_WAIT_DEFAULT;
    opts.flags = (kind & 32 ? REDLOCK_F_NO_RENEW : 0u) | (kind & 16 ? REDLOCK_F_TELL_WAITING : 0u);
    opts.max_hold_ms = kind & 64 ? 1 + input_.byte() * 8u : 0;
    opts.callback = kind & 128 ? on_lock_event : nullptr;
    opts.user = &gateway;
    const std::string& second = names[(kind + 1) % 3];
    const redlock_resource_t resources[] = {{name.data(), static_cast<uint32_t>(name.size())},
                                            {second.data(), static_cast<uint32_t>(second.size())}};
    const uint32_t count = kind % 7 == 6 ? 2 : 1;
    redlock_lock_t lock = {77};
    const int err = redlock_acquire_async(gateway.rl, resources, count, &opts, &lock);
    require((err == 0) == (lock.id != 0), "a handle is given or it is 0");
    if (err == 0) {
      for (const Record& r : records_) require(r.gateway != gateway.number || r.lock.id != lock.id, "a fresh handle");
      records_.push_back({gateway.number, lock, {name}, false, false});
      if (count == 2) records_.back().resources.push_back(second);
      ++gateway.open;
    } else if (count == 2 && name.size() + second.size() > REDLOCK_RESOURCE_BYTES_DEFAULT) {
      require(err == REDLOCK_E_INVAL, "more bytes than there is room for");
    } else if (gateway.closing) {
      require(err == REDLOCK_E_CLOSED, "a closing client takes nothing");
    } else {
      require(err == REDLOCK_E_TABLE_FULL, "acquire");
      require(gateway.open + gateway.leaving >= gateway.rl->client.settings().locks, "only a full table refuses");
    }
  }

  // Anything in the options: refused, or accepted like any other.
  void wild_acquire(Gateway& gateway) {
    redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
    opts.size = input_.flip() ? opts.size : input_.byte() * 20u;
    opts.flags = input_.byte();
    opts.ttl_ms = input_.number();
    opts.wait_ms = static_cast<int32_t>(input_.number());
    opts.min_validity_ms = input_.number();
    opts.retry_delay_ms = input_.number();
    opts.reserved = input_.byte() / 128;
    std::vector<char> exact(std::max<size_t>(opts.size, sizeof opts.size));  // no more than it says is there
    memcpy(exact.data(), &opts, std::min(exact.size(), sizeof opts));
    const std::string name = input_.bytes(input_.byte() % 80);
    const redlock_resource_t more = redlock_resource("valve"), last = redlock_resource("a");
    const redlock_resource_t resources[] = {
        {input_.flip() ? name.data() : nullptr, static_cast<uint32_t>(name.size())}, more, last, last};
    const uint32_t count = input_.byte() % 4 + (name.size() % 8 == 7);
    redlock_lock_t lock = {77};
    const auto* given = reinterpret_cast<const redlock_acquire_opts_t*>(exact.data());
    const int err = redlock_acquire_async(gateway.rl, resources, count, given, &lock);
    expect(err, {0, REDLOCK_E_INVAL, REDLOCK_E_RESERVED, REDLOCK_E_TABLE_FULL, REDLOCK_E_CLOSED});
    require((err == 0) == (lock.id != 0), "a handle is given or it is 0");
    if (err != 0) return;
    require(count >= 1 && count <= 3 && !name.empty() && name.size() <= REDLOCK_RESOURCE_MAX, "a resource");
    require(count == 1 || name != "valve", "none twice");
    require(count < 3 || name != "a", "none twice");
    records_.push_back({gateway.number, lock, {name}, false, false});
    if (count > 1) records_.back().resources.push_back("valve");
    if (count > 2) records_.back().resources.push_back("a");
    ++gateway.open;
  }

  redlock_lock_t choose(const Record*& record, const Gateway& gateway) {
    const uint8_t which = input_.byte();
    redlock_lock_t lock = {0};
    if (which < 240 && !records_.empty()) {
      lock = records_[records_.size() - 1 - which % records_.size() % 8].lock;
      if (which >= 220) lock.id += uint64_t{input_.byte()} << 16;
    } else {
      lock.id = uint64_t{input_.number()} << 32 | input_.number();
    }
    record = nullptr;
    for (const Record& r : records_) {
      if (r.gateway == gateway.number && r.lock.id == lock.id) record = &r;
    }
    return lock;
  }

  void about_lock(Gateway& gateway, uint8_t what) {
    const Record* record = nullptr;
    const redlock_lock_t lock = choose(record, gateway);
    switch (what % 3) {
      case 0:
        expect(redlock_release_async(gateway.rl, lock), {record != nullptr ? 0 : REDLOCK_E_STALE});
        return;
      case 1: {
        const int err = redlock_cancel(gateway.rl, lock);
        expect(err, record != nullptr ? Codes{0, REDLOCK_E_BUSY} : Codes{REDLOCK_E_STALE});
        require(err != REDLOCK_E_BUSY || (record->decided && !record->ended), "only what is acquired is busy");
        return;
      }
      default: {
        const uint32_t ttl = input_.byte() * 10u;
        const int err = redlock_extend_async(gateway.rl, lock, ttl);
        if ((ttl != 0 && ttl < REDLOCK_TTL_MS_MIN) || ttl > 2000) return expect(err, {REDLOCK_E_INVAL});
        if (record == nullptr) return expect(err, {REDLOCK_E_STALE});
        require(!record->ended || err != 0, "what has ended is not extended");
        expect(err, {0, REDLOCK_E_STALE, REDLOCK_E_NOT_HELD, REDLOCK_E_LOST, REDLOCK_E_BUSY, REDLOCK_E_HOLD_LIMIT,
                     REDLOCK_E_CLOSED});
      }
    }
  }

  void check_lock(Gateway& gateway) {
    const Record* record = nullptr;
    const redlock_lock_t lock = choose(record, gateway);
    const uint32_t need = input_.byte() * 4u;
    const int64_t left = redlock_validity_ms(gateway.rl, lock);
    const int err = redlock_check(gateway.rl, lock, need);
    const int64_t deadline = redlock_deadline_ns(gateway.rl, lock);
    if (record == nullptr) {
      require(err == REDLOCK_E_STALE && left == REDLOCK_E_STALE && deadline == REDLOCK_E_STALE, "never issued");
      return;
    }
    expect(err, {0, REDLOCK_E_LOST, REDLOCK_E_TOO_SLOW, REDLOCK_E_NOT_HELD, REDLOCK_E_STALE});
    const int64_t needed_until = now().ns() + int64_t{need} * 1'000'000;
    require(err != 0 || (left >= int64_t{need} && deadline >= needed_until), "check and validity agree");
    require(err != REDLOCK_E_TOO_SLOW || left < int64_t{need} || left == 0, "too little is left");
    require(err != REDLOCK_E_LOST || (left == 0 && deadline == 0), "lost is lost");
    require(err != 0 || !record->ended, "what has ended is not held");
  }

  void status(redlock_t* rl) {
    redlock_status_t full = {};
    full.size = input_.byte() + (input_.flip() ? 60u : 0u);
    std::vector<char> exact(std::max<size_t>(full.size, sizeof full.size));
    memcpy(exact.data(), &full, std::min(exact.size(), sizeof full));
    expect(redlock_status(rl, reinterpret_cast<redlock_status_t*>(exact.data())), {0, REDLOCK_E_INVAL});
    redlock_master_status_t master = {};
    master.size = sizeof master;
    const uint32_t index = input_.byte();
    expect(redlock_master_status(rl, index, &master), {index < masters_ ? 0 : REDLOCK_E_INVAL});
    size_t size = input_.byte() * 16u;
    std::vector<char> json(size + 1, 'x');
    const size_t given = size;
    const int err = redlock_status_json(rl, size != 0 ? json.data() : nullptr, &size);
    require(err == (size <= given ? 0 : REDLOCK_E_TOOSMALL) && json[given] == 'x', "json keeps to its buffer");
    require(err != 0 || strlen(json.data()) + 1 == size, "json says its size");
  }

  // ---- events -----------------------------------------------------------------------------------------------------
  static void on_client_event(redlock_t* rl, const redlock_event_t* event, void* user) {
    static_cast<Gateway*>(user)->world->told(*static_cast<Gateway*>(user), rl, *event);
  }
  static void on_lock_event(redlock_t* rl, const redlock_event_t* event, void* user) {
    require(event->lock.id != 0, "an acquire's own callback is told about its lock");
    on_client_event(rl, event, user);
  }
  static void on_log(int level, const char* msg, void*) {
    require(level >= 3 && level <= 7 && strchr(msg, '\n') == nullptr, "a line of the log");
  }

  void told(Gateway& gateway, redlock_t* rl, const redlock_event_t& e) {
    require(rl == gateway.rl && e.size == sizeof e && !gateway.closed_told, "an event of this client");
    require(e.type >= REDLOCK_EV_ACQUIRED && e.type <= REDLOCK_EV_WAITING, "the types of events");
    ++gateway.told[e.type];
    gateway.closed_told = e.type == REDLOCK_EV_CLOSED;
    if (gateway.closed_told) return;  // nothing may be called any more
    if (e.type != REDLOCK_EV_MASTER) lock_told(gateway, e);
    if (input_.below(3) == 2) {
      ++calls_from_callbacks_;
      call(gateway);
    }
    gateway.leaving = 0;
  }

  void lock_told(Gateway& gateway, const redlock_event_t& e) {
    Record* record = nullptr;
    for (Record& r : records_) {
      if (r.gateway == gateway.number && r.lock.id == e.lock.id) record = &r;
    }
    require(record != nullptr && !record->ended, "nothing comes after the end");
    const bool waits = e.type == REDLOCK_EV_WAITING;
    const bool verdict = e.type == REDLOCK_EV_ACQUIRED || e.type == REDLOCK_EV_FAILED;
    require((verdict || waits) != record->decided, "one verdict, and only WAITING comes before");
    require(waits ? e.cause > 0 && e.cause < REDLOCK_CAUSE_NEVER : e.cause == 0 || verdict, "a cause");
    record->decided = !waits;
    require(e.type != REDLOCK_EV_ACQUIRED || e.granted > masters_ / 2, "acquired by a quorum");
    if (e.type == REDLOCK_EV_FAILED || e.type == REDLOCK_EV_LOST || e.type == REDLOCK_EV_RELEASED) {
      record->ended = true;
      --gateway.open;
      gateway.leaving = 1;
    }
  }

  // ---- what must be -----------------------------------------------------------------------------------------------
  using Codes = std::initializer_list<int>;
  static void expect(int err, Codes allowed) {
    require(std::find(allowed.begin(), allowed.end(), err) != allowed.end(), "a result that the header names");
  }

  // Would a check pass? Read without the mark that a failed one leaves.
  bool holds(const Record& record) const {
    const Gateway& gateway = gateways_[record.gateway];
    if (gateway.rl == nullptr || gateway.jumped) return false;
    const ValidityCell* cell = gateway.rl->client.cell(record.lock.id);
    const ValidityCell::Snapshot seen = cell->read();
    const uint64_t generation = Table::generation(record.lock.id);
    return seen.generation == generation && !cell->expired(generation) && now() < seen.valid_until;
  }

  void check() {
    std::set<std::string> held;
    for (const Record& record : records_) {
      if (keys_were_lost_ || record.ended || !holds(record)) continue;
      for (const std::string& resource : record.resources) {
        require(held.insert(resource).second, "two do not hold one resource");
      }
    }
    for (const Gateway& gateway : gateways_) {
      if (gateway.rl == nullptr) continue;
      redlock_status_t s = {};
      s.size = sizeof s;
      must(redlock_status(gateway.rl, &s));
      const uint64_t* const told = gateway.told;
      require(s.acquired == told[REDLOCK_EV_ACQUIRED] && s.lost == told[REDLOCK_EV_LOST] &&
                  s.released == told[REDLOCK_EV_RELEASED] && s.renewed == told[REDLOCK_EV_RENEWED] &&
                  s.renew_failed == told[REDLOCK_EV_AT_RISK] &&
                  s.failed_locked + s.failed_no_quorum + s.failed_other == told[REDLOCK_EV_FAILED],
              "what was told is counted");
      require(s.locks_held + s.locks_pending == gateway.open && s.locks_max >= gateway.open, "what is open is counted");
      check_claims(gateway.rl->client);
      check_deadline(gateway.rl->client, s.locks_held, gateway.closing);
    }
  }

  void finish() {
    for (Gateway& gateway : gateways_) {
      if (gateway.rl == nullptr || gateway.closing) continue;
      require(redlock_close_async(gateway.rl, 100) == 0, "close");
      gateway.closing = true;
    }
    for (int i = 0; i < 100 && (gateways_[0].rl != nullptr || gateways_[1].rl != nullptr); ++i) {
      settle();
      now_ += 50'000'000;
    }
    require(gateways_[0].rl == nullptr && gateways_[1].rl == nullptr, "closing comes to an end");
    for (const Record& record : records_) require(record.ended, "every acquire has its end");
  }

  Input input_;
  unsigned masters_ = 0;
  TrueTime now_ = 0;
  uint64_t noise_ = 1;
  Master redis_[masters_max];
  Gateway gateways_[gateways];
  Loop loops_[gateways];
  std::vector<max_align_t> memory_[gateways];
  std::vector<Record> records_;
  bool keys_were_lost_ = false;
  unsigned calls_from_callbacks_ = 0;
};

Instant Gateway::now() { return world->now(); }

BareDriver::Connect Gateway::connect(MasterIndex m) {
  return world->down(m) ? BareDriver::Connect::refused : BareDriver::Connect::at_once;
}

void Gateway::connected(MasterIndex m) {
  conn[m] = world->master(m).redis.open(world->true_time());
  out[m].clear();
  in[m].clear();
}

void Gateway::hang_up(MasterIndex m) {
  if (conn[m] == 0) return;
  Master& master = world->master(m);
  if (master.way == Way::silent && !out[m].empty()) {
    master.orphans.emplace_back(conn[m], out[m]);
  } else {
    master.redis.close(conn[m]);
  }
  conn[m] = 0;
  out[m].clear();
}

bool Gateway::entropy(unsigned char* bytes, size_t size) {
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(world->noise() >> 56);
  return true;
}

}  // namespace
}  // namespace redlock::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 4096) return 0;
  redlock::test::World(data, size).run();
  return 0;
}
