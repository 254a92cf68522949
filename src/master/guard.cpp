// SPDX-License-Identifier: MIT
#include "master/guard.hpp"

#include "base/digits.hpp"
#include "resp/writer.hpp"

namespace redlock {
namespace {

constexpr Duration half(Duration d) { return Duration::ns(d.ns() / 2); }

// "replication id:quarantine id", as a visit is written under it.
constexpr size_t state_size = 2 * InfoFacts::id_size + 1;

// A change of masters writes "moving", and both fingerprints, between its two steps (site/scripts/move.lua).
bool is_change(Bytes desc) {
  constexpr Bytes moving = "moving ";
  return desc.size > moving.size && memcmp(desc.data, moving.data, moving.size) == 0;
}

// "left OURS": a change that may still fail leads away from our set. With more behind it the change is done.
bool is_leaving(Bytes text, Bytes ours) {
  constexpr Bytes left = "left ";
  if (text.size < left.size + ours.size || memcmp(text.data, left.data, left.size) != 0) return false;
  return Bytes(text.data + left.size, ours.size) == ours;
}

Bytes write_own_key(const CommonSettings& settings, Bytes name, char (&text)[meta_key_max]) {
  resp::Writer out(text, sizeof text);
  out.raw("redlock:").raw(settings.key_prefix).raw(name);
  REDLOCK_ASSERT(out.fits());
  return out.written();
}

}  // namespace

Bytes write_meta_key(const CommonSettings& settings, char (&text)[meta_key_max]) {
  return write_own_key(settings, ":meta", text);
}

Bytes write_seen_key(const CommonSettings& settings, char (&text)[meta_key_max]) {
  return write_own_key(settings, ":seen", text);
}

// ---- the connection -------------------------------------------------------------------------------------------

void Guard::connected() {
  if (!on()) return;
  if (identified_) memcpy(last_, read_, id_part);
  memset(read_, '0', seal_size);
  read_[id_size] = read_[2 * id_size + 1] = ':';
  found_ = {0, found_.desc, false, false, false};
  identified_ = fresh_ = wants_boot_time_ = write_later_ = false;
  server_fault_ = clock_fault_ = read_error_ = write_error_ = 0;
  answered_ = asked_;
  counts_from_ = asked_ + 1;
  read_at_ = lapses_at_ = Instant::never();
  judge();
}

bool Guard::identify(const InfoFacts& facts, const Instant& now) {
  REDLOCK_ASSERT(on());
  const bool same = !identified_ || (facts.has_run_id && memcmp(read_, facts.run_id, id_size) == 0);
  const bool nameless = settings_.guard == GuardMode::strict && !facts.has_run_id;
  server_fault_ = static_cast<int16_t>(!facts.standalone ? REDLOCK_E_MODE
                                       : facts.evicts    ? REDLOCK_E_MAXMEMORY
                                       : nameless        ? REDLOCK_E_IDENTITY
                                                         : 0);
  const bool same_as_last = facts.has_run_id && memcmp(last_, facts.run_id, id_part) == 0;
  bool came_back = false;
  if (!identified_ && facts.has_run_id && !same_as_last) {
    came_back = memcmp(left_, facts.run_id, id_part) == 0;
    memcpy(left_, last_, id_part);
  }
  if (facts.has_run_id) memcpy(read_, facts.run_id, id_size);
  const bool evicted = (identified_ || same_as_last) && facts.evicted_keys > evicted_keys_;
  evicted_keys_ = facts.evicted_keys;
  identified_ = facts.has_run_id;
  if (evicted) distrust(now, REDLOCK_E_EVICTED);
  if (came_back) distrust(now, REDLOCK_E_TWO_SERVERS);
  judge();
  return same;
}

// ---- readings -------------------------------------------------------------------------------------------------

// "state boot-time server-time", of this state; else there is no visit. Differences of the times must fit 64 bits.
Guard::Visit Guard::visit_in(Bytes text, Bytes state) {
  if (text.size <= state.size || Bytes(text.data, state.size) != state || text.data[state.size] != ' ') return {-1, -1};
  const char* const boot = text.data + state.size + 1;
  const char* const end = text.data + text.size;
  const char* const space = static_cast<const char*>(memchr(boot, ' ', static_cast<size_t>(end - boot)));
  uint64_t boot_ms = 0, server_ms = 0;
  if (space == nullptr || !parse_decimal(Bytes(boot, static_cast<size_t>(space - boot)), boot_ms) ||
      !parse_decimal(Bytes(space + 1, static_cast<size_t>(end - space - 1)), server_ms) ||
      (boot_ms | server_ms) >> 61 != 0) {
    return {-1, -1};
  }
  return {static_cast<int64_t>(boot_ms), static_cast<int64_t>(server_ms)};
}

uint32_t Guard::begin_reading() {
  REDLOCK_ASSERT(on());
  REDLOCK_ASSERT(asked_ != UINT32_MAX);
  return ++asked_;
}

void Guard::read_role(const InfoFacts& facts) {
  wants_boot_time_ = false;  // from here on, read_ and visit_ are of this reading
  server_ms_ = -1;
  const bool nameless = settings_.guard == GuardMode::strict && !facts.has_replid;
  reading_.role_fault = static_cast<int16_t>(!facts.master ? REDLOCK_E_ROLE : nameless ? REDLOCK_E_IDENTITY : 0);
  reading_.alone = facts.alone;
  has_replid_ = facts.has_replid;
  if (has_replid_) {
    memcpy(read_ + id_size + 1, facts.replid, id_size);
  } else {
    memset(read_ + id_size + 1, '0', id_size);
  }
}

void Guard::read_no_role(int error) {
  read_role({});
  reading_.role_fault = static_cast<int16_t>(settings_.guard == GuardMode::strict ? error : 0);
}

// What a text says that is neither absent nor our fingerprint.
Guard::Desc Guard::foreign(Bytes text) const {
  const Bytes ours = settings_.fingerprint;
  if (is_change(text)) return Desc::moving;
  if (!is_leaving(text, ours)) return Desc::foreign;
  return text.size == ours.size + 5 ? Desc::moving : Desc::left;
}

void Guard::read(Field field, bool absent, Bytes text) {
  switch (field) {
    case Field::desc:
      reading_.desc = absent                          ? Desc::absent
                      : text == settings_.fingerprint ? Desc::ours
                                                      : foreign(text);
      if (reading_.desc == Desc::foreign) {
        const Fingerprint theirs = read_fingerprint(text);
        their_max_ttl_ms_ = theirs.max_ttl_ms;
        their_masters_ = static_cast<uint8_t>(theirs.masters);
      }
      break;
    case Field::q:
      reading_.has_q = !absent && text.size == id_size;
      if (reading_.has_q) memcpy(read_ + 2 * (id_size + 1), text.data, id_size);
      break;
    case Field::seal:
      reading_.sealed = reading_.has_q && reading_.desc == Desc::ours && text == Bytes(read_, seal_size);
      break;
    case Field::visit:
      visit_ = absent ? Visit{-1, -1} : visit_in(text, Bytes(read_ + id_size + 1, state_size));
      break;
    case Field::names:
      if (reading_.desc == Desc::foreign) compare_names(absent ? Bytes() : text);
      break;
    case Field::left:
      if (reading_.desc == Desc::foreign) reading_.desc = foreign(text);
      break;
    case Field::tag:
      tag_[0] = 0;
      if (text.size == sizeof tag_) memcpy(tag_, text.data, sizeof tag_);
      break;
  }
}

void Guard::compare_names(Bytes theirs) {
  const Bytes name = first_missing(theirs, settings_.names), ours = first_missing(settings_.names, theirs);
  their_name_size_ = static_cast<uint8_t>(name.size <= sizeof their_name_ ? name.size : 0);
  if (their_name_size_ != 0) memcpy(their_name_, name.data, their_name_size_);
  our_name_size_ = static_cast<uint8_t>(ours.size);
  our_name_at_ = static_cast<uint8_t>(ours.size != 0 ? ours.data - settings_.names.data : 0);
}

// Without the server's time nobody would see that its clock was stepped. Mode "weak" does without.
void Guard::read_clock(int error) {
  clock_fault_ = static_cast<int16_t>(settings_.guard == GuardMode::strict ? error : 0);
  judge();
}

Guard::Next Guard::end_reading(uint32_t number, Instant sent, const Instant& now) {
  REDLOCK_ASSERT(reading());  // replies come in order
  REDLOCK_ASSERT(number == answered_ + 1);
  const Duration lifetime = reading_lifetime(settings_.max_ttl_ms);
  answered_ = number;
  found_ = reading_;
  if (number < counts_from_) return Next::nothing;
  read_error_ = 0;
  lapses_at_ = sent + lifetime;
  fresh_ = now < lapses_at_;  // a late answer is no longer true
  if (found_.has_q && memcmp(seal_, read_, seal_size) != 0) {
    constexpr size_t q_at = 2 * (id_size + 1);
    replid_changed_ = memcmp(seal_, read_, id_size) == 0 && memcmp(seal_ + q_at, read_ + q_at, id_size) == 0;
    memcpy(seal_, read_, seal_size);
    since_ = now;
  }
  visited_at_ = Instant::never();  // until boot_time() tells it anew
  judge();
  read_at_ = !fresh_      ? now
             : admitted() ? sent + settings_.ping_interval
                          : earlier(sent + half(lifetime), later(watched_at(), now));
  if (write_later_) {
    write_later_ = false;
    return Next::nothing;
  }
  if (found_.role_fault != 0 || server_fault_ != 0 || !fresh_ || !is_ours()) return Next::nothing;
  if (!found_.has_q || found_.desc == Desc::absent) return Next::create;
  const bool commissioned = now < commission_until_;
  if (found_.sealed || commissioned) commission_until_ = now;  // it was for the state found now, and for no later one
  if (found_.sealed) {
    write_error_ = 0;  // some client could write
    return Next::nothing;
  }
  if (commissioned || now >= since_ + time_to_watch()) return Next::seal;
  wants_boot_time_ = has_replid_ && settings_.has_boot_id;
  return Next::nothing;
}

// A tag is sent only while the master is admitted. So no other reading that counts is under way, and the answer is
// about the reading that was found last.
void Guard::confirm_reading(uint32_t number, Instant sent, const Instant& now) {
  reading_ = found_;
  end_reading(number, sent, now);
}

void Guard::repeat_reading(uint32_t number, const Instant& now) {
  REDLOCK_ASSERT(number == answered_ + 1);
  answered_ = number;
  tag_[0] = 0;
  read_at_ = now;
}

void Guard::reading_failed(uint32_t number, int error, Instant sent, const Instant& now) {
  REDLOCK_ASSERT(error != 0);
  REDLOCK_ASSERT(reading());
  REDLOCK_ASSERT(number == answered_ + 1);
  answered_ = number;
  if (number < counts_from_) return;
  fresh_ = false;
  read_error_ = static_cast<int16_t>(error);
  const bool passes = error == REDLOCK_E_SCRIPT_BUSY || error == REDLOCK_E_LOADING;
  read_at_ = later(sent + (passes ? Duration::ms(500) : half(reading_lifetime(settings_.max_ttl_ms))), now);
  judge();
}

void Guard::written(int error) {
  REDLOCK_ASSERT(on());
  write_error_ = static_cast<int16_t>(error);
  write_later_ = error != 0;
  judge();
}

// The younger age counts. Where the ages differ, the visit may still be one of another machine with our boot id, whose
// clients may end the watch: such a visit stays until it would be old enough. A visit later than the server's time has
// no age that anybody could wait for.
Guard::Next Guard::boot_time(int64_t ms, const Instant& now) {
  REDLOCK_ASSERT(on());
  wants_boot_time_ = false;
  if (!fresh_ || ms < 0) return Next::nothing;
  if (visit_.boot_ms < 0) return Next::visit;
  // Rounded up, as all times were rounded down.
  const int64_t wanted_ms = quotient(time_to_watch().ns() * 9, 8'000'000) + 2;
  const int64_t by_boot = ms - visit_.boot_ms, by_server = server_ms_ - visit_.server_ms;
  if (by_server < -wanted_ms / 8) return Next::visit;  // a little earlier is a slow answer
  const int64_t age_ms = by_boot < by_server ? by_boot : by_server;
  const int64_t longer = by_boot < by_server ? by_server : by_boot;
  if (longer - age_ms > (longer > wanted_ms ? longer : wanted_ms) / 8) {
    return longer >= wanted_ms ? Next::visit : Next::nothing;
  }
  if (age_ms >= wanted_ms) return Next::seal;
  visited_at_ = now + Duration::ms(wanted_ms - age_ms);
  read_at_ = earlier(read_at_, visited_at_);
  return Next::nothing;
}

// ---- the verdict ----------------------------------------------------------------------------------------------

void Guard::judge() {
  if (!on()) return;
  const int unsealed = write_error_ != 0 ? int{write_error_} : replid_changed_ ? REDLOCK_E_REPLID : REDLOCK_E_UNWATCHED;
  const int reason = found_.role_fault != 0      ? int{found_.role_fault}
                     : server_fault_ != 0        ? int{server_fault_}
                     : clock_fault_ != 0         ? int{clock_fault_}
                     : duplicate_                ? REDLOCK_E_DUPLICATE
                     : distrust_ != 0            ? int{distrust_}
                     : read_error_ != 0          ? int{read_error_}
                     : !fresh_                   ? REDLOCK_E_UNREAD
                     : found_.desc == Desc::left ? REDLOCK_E_LEFT
                     : !is_ours()                ? REDLOCK_E_FINGERPRINT
                     : !found_.sealed            ? unsealed
                                                 : 0;
  reason_ = static_cast<int16_t>(reason);
  check();
}

inline void Guard::check() const {
  REDLOCK_ASSERT(!admitted() || fresh_);
  REDLOCK_ASSERT(!admitted() || found_.sealed);
  REDLOCK_ASSERT(!admitted() || found_.has_q);
  REDLOCK_ASSERT(!admitted() || found_.desc == Desc::ours);
  REDLOCK_ASSERT(!admitted() || !distrusted());
  REDLOCK_ASSERT(!admitted() || !duplicate_);
  REDLOCK_ASSERT(counts_from_ <= asked_ + 1);
  REDLOCK_ASSERT(answered_ <= asked_);
}

Guard::Outlook Guard::outlook() const {
  switch (reason_) {
    case REDLOCK_E_UNREAD:
      return Outlook::soon;
    case REDLOCK_E_UNWATCHED:
    case REDLOCK_E_REPLID:
      return found_.has_q ? Outlook::watched : Outlook::soon;
    case REDLOCK_E_WALL_CLOCK:
    case REDLOCK_E_EVICTED:
    case REDLOCK_E_TWO_SERVERS:
      return Outlook::watched;
    case REDLOCK_E_FINGERPRINT:
      return found_.desc == Desc::moving ? Outlook::moving : Outlook::foreign;
    case REDLOCK_E_LEFT:
    case REDLOCK_E_MODE:
    case REDLOCK_E_MAXMEMORY:
    case REDLOCK_E_IDENTITY:
      return Outlook::never;
    default:
      return Outlook::open;
  }
}

Instant Guard::watched_at() const {
  if (reason_ != 0 && reason_ == distrust_) return distrust_until_;
  if ((reason_ != REDLOCK_E_UNWATCHED && reason_ != REDLOCK_E_REPLID) || !found_.has_q) return Instant::never();
  return earlier(since_ + time_to_watch(), visited_at_);
}

void Guard::withdraw(const Instant& now) {
  if (!on()) return;
  fresh_ = false;
  counts_from_ = asked_ + 1;
  read_at_ = now;
  judge();
}

void Guard::distrust(const Instant& now, int error) {
  distrust_until_ = later(distrust_until_, now + time_to_watch());
  distrust_ = static_cast<int16_t>(error);
  judge();
}

void Guard::set_duplicate(bool duplicate) {
  duplicate_ = duplicate;
  judge();
}

// Instants from before the jump say nothing any more: the watch begins again, and the record is read anew. The next
// reading also forgets the earlier visit.
void Guard::clock_jumped(const Instant& now) {
  if (since_ != Instant::never()) since_ = now;
  if (fresh_) withdraw(now);
}

void Guard::on_time(const Instant& now) {
  if (now >= distrust_until_) distrust_ = 0;
  judge();
}

// Masters that vote, and are to be read at about the same time, are read together, which wakes the machine once.
bool Guard::wants_reading(const Instant& now) const {
  const Duration early = Duration::ns(admitted() ? settings_.ping_interval.ns() / 8 : 0);
  return on() && may_read() && now + early >= read_at_;
}

bool Guard::looks_ahead(const Instant& now) const {
  return on() && admitted() && may_read() && lapsed(now + half(reading_lifetime(settings_.max_ttl_ms)));
}

Instant Guard::deadline() const {
  const Instant trusted_at = distrusted() ? distrust_until_ : Instant::never();
  return on() && may_read() ? earlier(trusted_at, read_at_) : trusted_at;
}

}  // namespace redlock
