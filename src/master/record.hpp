// SPDX-License-Identifier: MIT
//
// Record: the guard's requests to one master and what their replies mean: readings, the server's time, and the scripts
// that write the record. Record decides nothing: master/guard does, and master/clock_watch for the clock.
//
// A whole reading is CLIENT CACHING yes, the reading script, TIME, in one write. On a connection with tracking the
// server pushes the next change of the record, or a null push, before it answers any command that it receives after the
// change.
#pragma once
#include "base/random.hpp"
#include "master/clock_watch.hpp"
#include "master/guard.hpp"
#include "master/info.hpp"
#include "master/outgoing.hpp"
#include "master/tracking.hpp"

namespace redlock {

class Record {
 public:
  using Request = Fifo::Request;

  // The most bytes, texts apart, of a reading; and of all that the guard sends at one time: a write with seven
  // arguments, and a reading. Of the names only the header is counted (10), since their bytes are not copied.
  static constexpr size_t reading_max(const CommonSettings& s) {
    return Command::caching().size + script_max + keys_max(s) + 7 + CommonSettings::boot_id_size + 14;
  }
  static constexpr size_t bytes_max(const CommonSettings& s) {
    constexpr size_t id = 7 + Guard::id_size, about = 7 + own_fingerprint_max;
    return script_max + keys_max(s) + 2 * about + 3 * id + 7 + Guard::seal_size + 10 + reading_max(s);
  }

  Record(const CommonSettings& settings, const Tracking& tracking, Outgoing& out, const Instant* begins_until)
      : tracking_(tracking), out_(out), begins_until_(begins_until), guard_(settings) {}

  Guard& guard() { return guard_; }
  const Guard& guard() const { return guard_; }
  ClockWatch& clock() { return clock_; }
  const ClockWatch& clock() const { return clock_; }

  // Random bytes for quarantine ids, once; before that no id is made, however long the connection lasts.
  bool wants_seed() const { return guard_.on() && !seeded_; }
  void seed(uint64_t seed) {
    quarantines_.seed(seed);
    seeded_ = true;
  }

  // ---- the connection
  void connected();
  void closed();
  // The first reading of a connection, in its greeting. `track`: tracking was just asked for.
  void send_first(bool track, const Instant& now) { send_reading(track, now); }
  // The next reading, when it is due.
  void read_when_due(const Instant& now);
  bool look_ahead(const Instant& now);
  // One item of the reply to one of these requests. 0, or the reason to close the connection.
  int handle(const Request& request, const resp::Item& item, const Instant& now);

  // ---- what is written; each is left out where there is no room for it
  // A new state is wanted, and was not allowed so far.
  bool wants_state() const { return wants_state_; }
  void begin_state(const Instant& now);
  void boot_time(int64_t ms, const Instant& now);
  void quarantine(const Instant& now);  // a new quarantine id: nobody may trust this state any more
  // Counts connections and pushes about the record. While the number stays, nobody is known to have changed the record.
  uint32_t changes() const { return changes_; }
  void count_change() { ++changes_; }

 private:
  void send_reading(bool track, const Instant& now);
  void append_script(const Script& script, const Bytes* arguments, unsigned count, const Bytes* last = nullptr,
                     bool known = false);
  void send_record(Bytes desc, Bytes q, Bytes new_q, Bytes seal, const Instant& now);
  void begin_state(Bytes desc, Bytes q, const Instant& now);
  void write_next(Guard::Next next, int64_t boot_ms, const Instant& now);
  bool has_room() const;
  static constexpr size_t script_max = 31;
  static constexpr size_t keys_max(const CommonSettings& s) { return 2 * (20 + s.key_prefix.size); }
  bool handle_recheck(const resp::Item& item, const Request& request, const Instant& now);
  int handle_reading(const resp::Item& item, const Request& request, const Instant& now);
  int end_info(const Instant& now);
  int handle_time(const resp::Item& item, Instant sent, const Instant& now);
  int handle_write(const resp::Item& item);
  Bytes boot_id() const;

  Random quarantines_;
  const Tracking& tracking_;
  Outgoing& out_;
  const Instant* const begins_until_;  // the client allows it by what the other masters say
  Guard guard_;
  ClockWatch clock_;
  InfoReader info_;
  int64_t server_us_ = 0;  // while TIME's reply is read
  uint32_t changes_ = 0;
  bool seeded_ = false;
  bool wants_state_ = false;  // by the last reading, and it is not allowed yet
  bool overlong_ = false;  // the field of a reading that is under way is longer than any of ours
  int16_t info_error_ = 0;  // of the reading that is under way
  uint8_t field_ = 0;      // while a reading's reply is read: which field comes next
};

}  // namespace redlock
