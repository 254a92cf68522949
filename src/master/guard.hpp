// SPDX-License-Identifier: MIT
//
// Guard: may this master vote? A master that has forgotten keys - restarted, flushed, replaced by another server -
// would grant a lock that somebody still holds. So it takes part in no quorum until its present state has been
// watched for a guard time G, within which every lock granted before has ended.
//
// What is watched is a record on the master itself, the hash redlock:{prefix}:meta:
//
//     desc   the fingerprint of the configuration: everybody who uses these keys must have the same
//     q      a random quarantine id: whoever finds none writes one, so a new state has a new id
//     seal   "run id : replication id : q", each cut to 16 digits: somebody has watched this very state for G
//
// A seal that fits admits the master for everybody at once. Without it the watch begins when the record was read and
// ends G later by our own clock; then the seal is written, by a script that compares q. The watch belongs to the
// state, not to the connection: it goes on over reconnects as long as the same three ids are found. No clock of the
// server is used.
//
// The admission stands on the last reading, and lapses a reading's lifetime after that was asked for; so a record
// that an operator has changed (redlock_reconfigure) is known to be seen by everybody in time. The session reads
// again well before, and at once when anything said that the record may have changed.
#pragma once
#include "master/info.hpp"
#include "settings.hpp"
#include "time.hpp"

namespace redlock {

// The longest time that an admission may stand on one reading of the record: a third of max_ttl, and at least a second.
constexpr Duration reading_lifetime(uint32_t max_ttl_ms) {
  return Duration::ms(max_ttl_ms > 3'000 ? max_ttl_ms / 3 : 1'000);
}

// Our clock and the holder's may differ by the drift: after this time every lock granted before its start has ended.
constexpr Duration guard_time(uint32_t max_ttl_ms, uint32_t drift_ppm, uint32_t drift_fixed_ms) {
  return Duration::ns(int64_t{max_ttl_ms} * (1'000'000 + int64_t{drift_ppm}) + int64_t{drift_fixed_ms} * 1'000'000);
}

// The name of the record, and what must stand in it as desc: the same for all clients of these keys, whatever the order
// of their masters. Names, never addresses, for two gateways may reach one master by different ones.
constexpr size_t meta_key_max = REDLOCK_KEY_PREFIX_MAX + 16;
constexpr size_t fingerprint_max = 80;
Bytes write_meta_key(const Settings& settings, char (&text)[meta_key_max]);
Bytes write_fingerprint(const Settings& settings, unsigned quorum, char (&text)[fingerprint_max]);

class Guard {
 public:
  static constexpr size_t id_size = InfoFacts::id_size;
  static constexpr size_t seal_size = 3 * id_size + 2;

  // What is to be said to the master after a reading.
  enum class Next : uint8_t {
    nothing,
    create,  // the record lacks something: begin a new state
    seal,    // the watch is over
  };

  explicit Guard(const Settings& settings) : settings_(settings) {}

  bool on() const { return settings_.guard != GuardMode::off; }
  bool admitted() const { return reason_ == 0; }
  int reason() const { return reason_; }  // enum redlock_err; 0: may vote
  // What it holds is surely not what was admitted: it is another state, or no master any more.
  bool forgot() const {
    return reason_ == REDLOCK_E_UNWATCHED || reason_ == REDLOCK_E_ROLE || reason_ == REDLOCK_E_MODE;
  }
  // When the watch under way will be over; never() when none is, or something else stands in the way.
  Instant watched_at() const;
  Bytes seal() const { return Bytes(seal_, seal_size); }  // of the state found on this connection
  Bytes quarantine() const { return Bytes(seal_ + 2 * (id_size + 1), has_q_ ? id_size : 0); }
  Bytes run_id() const { return Bytes(seal_, identified_ ? id_size : 0); }

  // ---- the connection
  void connected();
  void identify(const InfoFacts& facts, Instant now);
  void unidentified(int error);  // INFO was refused

  // ---- a reading of the record: desc, q and seal in this order
  void begin_reading(Instant sent);
  void read(unsigned field, bool absent, Bytes text);
  Next end_reading(Instant now);
  void reading_failed(int error);
  void write_failed(int error) { write_error_ = static_cast<int16_t>(error); }
  // An in-band reading of the seal alone.
  bool matches(bool absent, Bytes text) const { return !absent && text == seal(); }
  bool reading() const { return reading_; }
  bool sealed() const { return sealed_; }
  Bytes desc() const { return desc_ == Found::ours ? settings_.fingerprint : Bytes(); }  // as read, unless foreign

  // ---- what may come at any time
  void withdraw(int reason, Instant now);  // read again at once
  void distrust(Instant until);            // its clock: no vote before
  void set_duplicate(bool duplicate, Instant now);
  void commission(Instant until) { commission_until_ = until; }  // seal what is found until then, once
  void clock_jumped(Instant now);
  void on_time(Instant now);
  Instant deadline() const;
  bool wants_reading(Instant now) const { return on() && !reading_ && now >= read_at_; }
  void postpone_reading(Instant until) { read_at_ = until; }  // or bring it forward

 private:
  enum class Found : uint8_t { absent, ours, foreign };

  void judge(Instant now);

  const Settings& settings_;
  Instant since_ = Instant::never();  // the watch under way began
  Instant read_at_ = Instant::never();
  Instant sent_ = Instant::never();   // the reading under way, or the last one
  Instant lapses_at_ = Instant::never();
  Instant distrust_until_ = Instant::from_ns(INT64_MIN);
  Instant commission_until_ = Instant::from_ns(INT64_MIN);
  uint64_t evicted_keys_ = 0;
  int16_t reason_ = 0;
  int16_t fault_ = 0;        // of the server, as INFO tells it
  int16_t write_error_ = 0;  // of the last write to the record
  Found desc_ = Found::absent;
  bool identified_ = false;
  bool has_q_ = false;
  bool sealed_ = false;
  bool reading_ = false;
  bool fresh_ = false;       // a reading of this connection stands
  bool duplicate_ = false;
  char seal_[seal_size] = {};     // of the state as it was last read
  char watched_[seal_size] = {};  // of the state whose watch began at since_
};

}  // namespace redlock
