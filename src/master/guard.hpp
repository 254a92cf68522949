// SPDX-License-Identifier: MIT
//
// Guard: may this master vote? A master that has forgotten keys - restarted, flushed, overwritten by another server's
// data - would grant a lock that somebody still holds. So a master takes part in no quorum until its present state has
// been watched for a guard time G, within which every lock granted before has ended.
//
// A state is named by three ids. The run id names the server process. The replication id names the server's line of
// data: it changes when a server restarts, or becomes a master. The quarantine id is random. It stands on the master
// itself, in the record, which is the hash redlock:{prefix}:meta:
//
//     desc   the fingerprint of the configuration: all clients that use these keys must have the same
//     q      the quarantine id: a client that finds none writes one, so a new state has a new id
//     names  of the masters of that configuration, for a person whose file differs. Nothing rests on them
//     left   which set a change of masters has left for this one (site/scripts/move.lua)
//     seal   "run id:replication id:quarantine id", 16 digits each: some client has watched this very state for G
//
// The record is ordinary data, so a replica's copy or a restored backup brings it back. Nothing that a connection
// remembers can tell that. So a *reading* is one script that returns the record, and what INFO says of the server, of
// the same instant. Only a seal that fits both admits the master. While it does, a reading sends the tag of the last
// one, a digest of all that was read, and the server may answer that the tag still fits. Seal and quarantine id are
// written by a script that compares the replication id with the one that the server has then. The run id needs no
// comparison there: a new process is a new connection.
//
// A seal that fits admits the master for all clients at once. Without a seal the watch begins when the reading is
// answered, and ends G later by our own clock. The watch belongs to the state, not to the connection: the watch goes on
// over reconnects as long as the same three ids are found. No clock of the server is used.
//
// Clients that live for less than G watch together. The first client of a machine leaves a *visit* in a second hash,
// redlock:{prefix}:seen, under the machine's boot id: its CLOCK_BOOTTIME, and the server's TIME. The watch of a later
// client is also over when both times are 1.125 G old. The additional eighth allows for the slewing of the machine's
// clock, which is 10 % at most. One time alone may be wrong: two machines may have drawn the same boot id, and a
// server's clock may jump. Where both are wrong, the two ages differ. So ages that differ by more than an eighth end no
// watch, and a later visit takes the place of the earlier one.
//
// A client begins a state only where the last readings of a quorum of its masters found its own record, or none. The
// client compares the masters (client/guarding). So a client whose file names a wrong server leaves no record there,
// which would keep the server from its own clients for ever.
//
// A vote counts for a reading's lifetime after the last reading was asked for, and then *lapses*. So when an operator
// has changed a record (redlock_reconfigure), all clients are known to have seen the change in time. Before a command
// that may vote the session *looks ahead*: it asks for a reading in the same write, unless the last one is younger than
// half its lifetime. So the reply of the reading comes first, and judges the vote.
//
// The session reads at once when anything says that the state may have changed. After such a sign only a reading that
// was asked for later counts. Besides it reads once in ping_interval, so that somebody watches a new state to its end,
// and seals it, also while nobody wants a lock.
#pragma once
#include "base/settings.hpp"
#include "base/time.hpp"
#include "master/fingerprint.hpp"
#include "master/info.hpp"

namespace redlock {

// The longest time that a vote may rest on one reading of the record: a third of max_ttl, and at least a second.
constexpr Duration reading_lifetime(uint32_t max_ttl_ms) {
  return Duration::ms(max_ttl_ms > 3'000 ? max_ttl_ms / 3 : 1'000);
}

// Our clock and a holder's clock may differ by the drift. After this time every lock that was granted before its start
// has ended.
constexpr Duration guard_time(uint32_t max_ttl_ms, uint32_t drift_ppm, uint32_t drift_fixed_ms) {
  return Duration::ns(int64_t{max_ttl_ms} * (1'000'000 + int64_t{drift_ppm}) + int64_t{drift_fixed_ms} * 1'000'000);
}

// The key of the record, and the key of the short visits: the same for all clients of these keys.
constexpr size_t meta_key_max = REDLOCK_KEY_PREFIX_MAX + 16;
Bytes write_meta_key(const CommonSettings& settings, char (&text)[meta_key_max]);
Bytes write_seen_key(const CommonSettings& settings, char (&text)[meta_key_max]);

class Guard {
 public:
  static constexpr size_t id_size = InfoFacts::id_size;
  static constexpr size_t seal_size = 3 * id_size + 2;

  // What is to be written after a reading.
  enum class Next : uint8_t {
    nothing,
    create,  // the record lacks something: begin a new state, as soon as the client allows
    seal,    // the watch is over
    visit,   // leave word of this visit
  };
  // What may become of a master that does not vote.
  enum class Outlook : uint8_t {
    soon,     // a reading or a write is under way
    watched,  // admitted at watched_at()
    moving,   // a change of masters is under way, or was given up
    foreign,  // another configuration: never, unless it belongs to a change of masters
    never,    // not as things stand
    open,     // something else: it may pass
  };
  // The answers of a whole reading, in order; those of INFO come before them.
  enum class Field : uint8_t { desc, q, seal, names, left, visit, tag };

  explicit Guard(const CommonSettings& settings) : settings_(settings) { REDLOCK_ASSERT(settings.max_ttl_ms != 0); }

  const CommonSettings& settings() const { return settings_; }
  bool on() const { return settings_.guard != GuardMode::off; }
  bool admitted() const { return reason_ == 0; }  // may be asked to vote
  // Does a vote count that is answered now? The last reading may have lapsed.
  bool counts(const Instant& now) const { return admitted() && !lapsed(now); }
  bool lapsed(const Instant& now) const { return now >= lapses_at_; }
  const Instant& lapses_at() const { return lapses_at_; }
  int reason() const { return reason_; }  // enum redlock_err; 0: may vote
  // The master surely does not hold what was admitted: its state is another one, or it is no master any more.
  bool forgot() const {
    return reason_ == REDLOCK_E_UNWATCHED || reason_ == REDLOCK_E_REPLID || reason_ == REDLOCK_E_ROLE ||
           reason_ == REDLOCK_E_MODE;
  }
  // By the last reading no replica can come back with other data: none is connected, and no backlog waits for one.
  bool alone() const { return found_.alone; }
  Outlook outlook() const;
  // When the watch under way will be over; never() when none is, or something else stands in the way.
  Instant watched_at() const;
  const Instant& since() const { return since_; }  // then seal() was first found
  Bytes seal() const { return Bytes(seal_, seal_size); }  // of the state that is watched, or was
  // As last read, for writes: the scripts compare both with what they find.
  Bytes replid() const { return Bytes(read_ + id_size + 1, id_size); }
  Bytes quarantine() const { return Bytes(read_ + 2 * (id_size + 1), found_.has_q ? id_size : 0); }
  Bytes run_id() const { return Bytes(read_, identified_ ? id_size : 0); }  // its bytes are zeros if it is unknown
  Bytes desc() const { return found_.desc == Desc::ours ? settings_.fingerprint : Bytes(); }  // as read, unless foreign
  bool sealed() const { return found_.sealed; }
  // The last reading found our record, or none, and no other name of ours leads to this server.
  bool is_ours() const { return !duplicate_ && (found_.desc == Desc::absent || found_.desc == Desc::ours); }
  // The other configuration that the record names, with the reason FINGERPRINT; nothing if its desc could not be read.
  Fingerprint theirs() const {
    return reason_ == REDLOCK_E_FINGERPRINT ? Fingerprint{their_max_ttl_ms_, their_masters_} : Fingerprint();
  }

  // A master of that other configuration that is none of ours, and the reverse; nothing where the record does not tell.
  Bytes their_name() const { return Bytes(their_name_, their_name_size_); }
  Bytes our_name() const { return Bytes(settings_.names.data + our_name_at_, our_name_size_); }

  // ---- the connection
  void connected();
  // What INFO says. False: it is another server than before on this connection.
  bool identify(const InfoFacts& facts, const Instant& now);

  // ---- a reading
  uint32_t begin_reading();                             // its number
  // A digest of all that the last whole reading found. While the master is admitted, the next reading sends the tag,
  // and the server may confirm it. Empty: the next reading must be a whole one.
  Bytes tag() const { return Bytes(tag_, admitted() && tag_[0] != 0 ? sizeof tag_ : 0); }
  void read_role(const InfoFacts& facts);               // the same facts
  void read_no_role(int error);                         // ... was refused
  void read(Field field, bool absent, Bytes text);
  void read_clock(int error);                           // TIME behind the reading; 0: it was answered
  void read_time(int64_t ms) { server_ms_ = ms; }       // ... with this time
  Next end_reading(uint32_t number, Instant sent, const Instant& now);
  void confirm_reading(uint32_t number, Instant sent, const Instant& now);  // the tag still fits
  void repeat_reading(uint32_t number, const Instant& now);  // NOSCRIPT: read the whole at once
  void reading_failed(uint32_t number, int error, Instant sent, const Instant& now);
  void written(int error);  // 0: done, or the state was another one
  bool reading() const { return asked_ != answered_; }
  bool withdrawn() const { return answered_ < counts_from_; }  // and no reading that counts was answered since

  // ---- short visits. `ms`: CLOCK_BOOTTIME, read after the reading and TIME were answered. The result is to be written
  // at once.
  bool wants_boot_time() const { return wants_boot_time_ && server_ms_ >= 0; }
  Next boot_time(int64_t ms, const Instant& now);
  int64_t server_ms() const { return server_ms_; }

  // ---- what may come at any time
  void withdraw(const Instant& now);     // only a reading that is asked for from now on counts
  void step_clock(const Instant& now) { distrust(now, REDLOCK_E_WALL_CLOCK); }  // the server's has stepped
  bool distrusted() const { return distrust_ != 0; }  // whatever else keeps it from voting
  void set_duplicate(bool duplicate);
  void commission(Instant until) { commission_until_ = until; }  // seal what is found until then, once
  void clock_jumped(const Instant& now);
  void on_time(const Instant& now);
  Instant deadline() const;  // when the distrust ends, or the next reading is due
  bool wants_reading(const Instant& now) const;
  // Must a command that may vote stand behind a new reading?
  bool looks_ahead(const Instant& now) const;
  void postpone_reading(Instant until) { read_at_ = until; }  // or bring it forward

 private:
  enum class Desc : uint8_t { unread, absent, ours, foreign, moving, left };
  // What a reading tells of the master. It is filled aside, and put in place at its end.
  struct Reading {
    int16_t role_fault;  // as its INFO tells it
    Desc desc;
    bool has_q;
    bool sealed;
    bool alone;
  };
  struct Visit {
    int64_t boot_ms, server_ms;
  };

  Desc foreign(Bytes text) const;
  static Visit visit_in(Bytes text, Bytes state);
  Duration time_to_watch() const {
    return guard_time(settings_.max_ttl_ms, settings_.drift_ppm, settings_.drift_fixed_ms);
  }
  // No reading is under way, or only one that does not count any more.
  bool may_read() const { return !reading() || (asked_ < counts_from_ && answered_ + 1 == asked_); }
  void distrust(const Instant& now, int error);  // no vote for a guard time
  void judge();
  void compare_names(Bytes theirs);
  inline void check() const;  // what always holds behind judge()

  int16_t reason_ = 0;        // judge() writes it, and nothing else
  int16_t server_fault_ = 0;  // as the whole INFO tells it
  int16_t clock_fault_ = 0;   // TIME was refused
  int16_t read_error_ = 0;    // of the last reading
  int16_t write_error_ = 0;   // of the last write to the record
  bool write_later_ = false;  // that write has just failed
  uint8_t their_masters_ = 0;
  uint8_t their_name_size_ = 0;
  uint8_t our_name_at_ = 0;
  uint8_t our_name_size_ = 0;
  bool identified_ = false;
  bool fresh_ = false;       // a reading of this connection stands, though it may have lapsed
  bool has_replid_ = false;  // as read_
  Reading found_ = {};       // by the last whole reading; desc: also of an older connection
  Reading reading_ = {};     // being filled
  int16_t distrust_ = 0;  // the reason; 0: trusted
  bool duplicate_ = false;
  bool replid_changed_ = false;  // and nothing else of the state that was watched before
  bool wants_boot_time_ = false;
  const CommonSettings& settings_;
  uint32_t asked_ = 0;        // readings
  uint32_t answered_ = 0;
  uint32_t counts_from_ = 0;  // older readings say nothing any more
  uint32_t their_max_ttl_ms_ = 0;  // of the last record that was foreign
  Instant since_ = Instant::never();      // the watch under way began
  Instant visited_at_ = Instant::never(); // then the watch of an earlier visit will be over
  Instant read_at_ = Instant::never();
  Instant lapses_at_ = Instant::never();
  Instant distrust_until_ = Instant::from_ns(INT64_MIN);
  Instant commission_until_ = Instant::from_ns(INT64_MIN);
  uint64_t evicted_keys_ = 0;
  Visit visit_ = {-1, -1};    // what an earlier visit to this state has left; -1: there is none
  int64_t server_ms_ = -1;    // TIME behind the last reading; -1: not answered
  // How the run ids of the last connection, and of the server before that, begin: 32 random bits tell them apart. A
  // process that comes back was there all the time: what it granted, the other one does not know, nor the reverse.
  static constexpr size_t id_part = 8;
  char last_[id_part] = {};
  char left_[id_part] = {};
  char their_name_[REDLOCK_MASTER_NAME_MAX];  // as their_max_ttl_ms_
  char seal_[seal_size] = {};  // of the state whose watch began at since_
  char tag_[16] = {};          // of the last whole reading; it begins with 0 where there is none
  char read_[seal_size] = {};  // of the connection, and of the reading that is being filled, and then of the last one
};

}  // namespace redlock
