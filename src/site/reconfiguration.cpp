// SPDX-License-Identifier: MIT
#include "site/reconfiguration.hpp"

#include "base/digits.hpp"
#include "lock/quorum.hpp"
#include "resp/words.hpp"
#include "site/move_script.hpp"

namespace redlock {
namespace {

using Side = Reconfiguration::Side;
using Stage = Reconfiguration::Stage;

// What the record of a master says, in the answer of scripts/move.lua.
enum Letter : int {
  blank = 'n',
  old_set = 'o',
  new_set = 'w',
  marked = 'm',
  opposite = 'b',
  third = 't',
  copied = 'x',  // marked, and then given the data of another server
};

bool is_letter(char said) { return memchr("nowmbtx", said, 7) != nullptr; }

constexpr Duration longer(Duration a, Duration b) { return a < b ? b : a; }

Bytes step_name(Stage stage, bool is_marked) {
  switch (stage) {
    case Stage::mark_new:
    case Stage::mark_old:
      return is_marked ? Bytes("look") : Bytes("mark");
    case Stage::enter:
      return Bytes("enter");
    case Stage::leave:
      return Bytes("leave");
    default:
      return Bytes("look");
  }
}

bool enough(const Side& side) { return side.done.count() >= side.needed; }

Masters in_both(const Client& before, const Client& after) {
  Masters out;
  for (MasterIndex m = 0; m < after.settings().masters; ++m) {
    for (MasterIndex o = 0; o < before.settings().masters; ++o) {
      if (after.session(m).master().name == before.session(o).master().name) out.add(m);
    }
  }
  return out;
}

Side whole(Client& client) {
  const unsigned masters = client.settings().masters;
  return Side(client, Masters::all(masters), quorum_of(masters));
}

}  // namespace

bool Reconfiguration::settled(const Client& client, Masters open) {
  for (MasterIndex m : open) {
    const Session& session = client.session(m);
    if (session.connected() || !session.tried()) return false;
  }
  return true;
}

Duration Reconfiguration::patience_of(const CommonSettings& settings) {
  return settings.suspect_close + settings.connect_timeout + settings.connect_timeout;
}

Duration Reconfiguration::wait_between(const CommonSettings& old_set, const CommonSettings& new_set) {
  const uint32_t ppm = old_set.drift_ppm > new_set.drift_ppm ? old_set.drift_ppm : new_set.drift_ppm;
  const uint32_t fixed =
      old_set.drift_fixed_ms > new_set.drift_fixed_ms ? old_set.drift_fixed_ms : new_set.drift_fixed_ms;
  const Duration lapse = reading_lifetime(old_set.max_ttl_ms);
  const uint32_t longer_ms = old_set.max_ttl_ms > new_set.max_ttl_ms ? old_set.max_ttl_ms - new_set.max_ttl_ms : 0;
  return lapse + Duration::ns(lapse.ns() / 1'000'000 * ppm) + guard_time(longer_ms, ppm, fixed);
}

Side::Side(Client& client_given, Masters masters, unsigned needed_given)
    : client(client_given), needed(needed_given), members(masters), open(masters) {}

int Side::why_not(MasterIndex m) const {
  if (done.has(m) || spared.has(m)) return 0;
  if (err[m] != 0) return err[m];
  const int reason = client.session(m).reason();
  return reason != 0 ? reason : int{REDLOCK_E_NODE_TIMEOUT};
}

Reconfiguration::Reconfiguration(Client& old_set, Client& new_set, uint64_t seed, Instant now)
    : old_(whole(old_set)),
      new_(whole(new_set)),
      old_text_(old_set.settings().fingerprint),
      new_text_(new_set.settings().fingerprint),
      patience_(longer(patience_of(old_set.settings()), patience_of(new_set.settings()))),
      between_(wait_between(old_set.settings(), new_set.settings())),
      until_(now + patience_),
      twins_(in_both(old_set, new_set)) {
  ids_.seed(seed);
  draw_id(id_);
  write_names();
}

void Reconfiguration::write_names() {
  const Bytes before = old_.client.settings().names, after = new_.client.settings().names;
  new_names_at_ = before.size + 3;
  names_size_ = new_names_at_ + after.size;
  memcpy(names_, before.data, before.size);
  memcpy(names_ + before.size, " > ", 3);
  memcpy(names_ + new_names_at_, after.data, after.size);
}

void Reconfiguration::draw_id(char* id) {
  for (unsigned i = 0; i < Guard::id_size; ++i) id[i] = hex_digits[ids_.next() & 0xF];
}

void Reconfiguration::finish(int result) {
  stage_ = Stage::over;
  result_ = result;
}

// Some master's record ends the call. The masters that have had no time to answer are not at fault.
void Reconfiguration::give_up(int result) {
  Side* const sides[] = {&old_, &new_};
  for (Side* side : sides) {
    for (MasterIndex m : side->open) {
      if (side->client.session(m).connected()) side->spared.add(m);
    }
  }
  finish(result);
}

// A call that stood still has not heard yet what the masters have answered meanwhile.
void Reconfiguration::too_few(Instant now) {
  if (stood_still(now)) {
    until_ = now + patience_;
    return;
  }
  finish(lost_ ? REDLOCK_E_RECORD_LOST : REDLOCK_E_NO_QUORUM);
}

// Begins a step: these masters are asked. What the others did in an earlier step stays noted as done.
void Reconfiguration::begin(Stage stage, Masters old_masters, Masters new_masters, Instant now) {
  stage_ = stage;
  until_ = now + patience_;
  old_.open = old_masters;
  new_.open = new_masters;
  old_.done -= old_masters;
  new_.done -= new_masters;
  old_.asked = new_.asked = {};
  ask(old_);
  ask(new_);
}

// Takes the answers to this step. Asks the masters that were not asked yet, or whose connection broke before the
// answer.
void Reconfiguration::ask(Side& side) {
  static constexpr auto move = resp::words<8>("EVAL", scripts::move, "2");
  for (MasterIndex m : side.open) {
    Heard& heard = side.heard[m];
    if (side.client.session(m).asked()) continue;
    if (side.asked.has(m) && heard.said != 0) hear(side, m);
    if (stage_ == Stage::over) return;
    side.asked.remove(m);
    if (!side.open.has(m)) continue;
    const bool enters = stage_ == Stage::enter;
    if (enters && !side.entered.has(m)) draw_id(side.entry[m]);
    char ids[2 * Guard::id_size];
    memcpy(ids, enters ? side.entry[m] : id_, Guard::id_size);
    const bool leaves = stage_ == Stage::leave;
    const Bytes there = leaves && &side == &new_ ? Bytes(side.entry[m], sizeof id_)
                        : enters || leaves       ? Bytes(id_, sizeof id_)
                                                 : heard.id();
    memcpy(ids + Guard::id_size, there.data, there.size);
    const size_t names_at = enters ? new_names_at_ : 0;
    const CommonSettings& settings = side.client.settings();
    const Bytes words[] = {settings.meta_key,
                           settings.seen_key,
                           old_text_,
                           new_text_,
                           Bytes(ids, Guard::id_size + there.size),
                           step_name(stage_, side.written.has(m)),
                           settings.client_name,
                           Bytes(names_ + names_at, names_size_ - names_at)};
    heard.said = 0;
    if (side.client.ask(m, move, words, 8, heard, side.now)) side.asked.add(m);
  }
}

// The first item decides: the script answers one text.
void Reconfiguration::Heard::take(Listener& self, const resp::Item& item) {
  Heard& heard = static_cast<Heard&>(self);
  if (heard.said != 0) return;
  const bool text = item.type == resp::Type::string && item.last && item.text.size != 0 && is_letter(*item.text.data);
  const int error = error_of(item);
  heard.said = error != 0 ? error : text ? *item.text.data : int{REDLOCK_E_PROTOCOL};
  if (!text) return;
  heard.id_size = item.text.size == 1 + sizeof heard.digits ? sizeof heard.digits : 0;
  memcpy(heard.digits, item.text.data + 1, heard.id_size);
}

void Reconfiguration::hear(Side& side, MasterIndex m) {
  const Session& session = side.client.session(m);
  const int said = side.heard[m].said;
  if (said == REDLOCK_E_PROTOCOL) return side.client.disconnect(m, said);
  if (stage_ == Stage::leave) return side.open.remove(m);
  const bool own = said == marked && side.heard[m].id() == Bytes(id_, sizeof id_);
  const bool unmarked = said == blank || said == old_set || said == new_set || said == copied;
  if (marks() && unmarked && !side.written.has(m)) return;  // the record has changed since it was read: ask again
  if (marks() && own && !side.written.has(m)) return side.written.add(m);  // read it: a change is told behind a read
  if (marks() && own) side.changes[m] = session.record_changes(), side.whole.add(m);
  if (stage_ == Stage::enter && said == new_set && side.heard[m].id() == Bytes(side.entry[m], sizeof id_)) {
    if (!side.entered.has(m)) return side.entered.add(m);  // read it, as a mark
    side.changes[m] = session.record_changes();
  }
  const bool stood = own && side.changes[m] == session.record_changes();
  const bool of_old = &side == &old_;
  const bool yes = stage_ == Stage::look                  ? said != third
                   : marks() || stage_ == Stage::again    ? stood
                   : stage_ == Stage::check && of_old     ? stood
                   : stage_ == Stage::check               ? said == new_set && (!twins_.has(m) || stands_entered(m))
                                                          : said == new_set;
  side.open.remove(m);
  if (stage_ == Stage::check && of_old && stood) marked_.add(m);
  if (said < 0) {
    side.err[m] = static_cast<int16_t>(said);
  } else if (yes) {
    side.done.add(m);
  } else if (stage_ == Stage::check && of_old && said == new_set) {
    side.says_new.add(m);  // it counts if it counts among the new ones, which may not have answered yet
  } else if (unmarked || own) {
    side.err[m] = REDLOCK_E_RECORD_LOST;
    lost_ = true;
  } else if (stage_ == Stage::look) {
    side.err[m] = REDLOCK_E_FINGERPRINT;  // the call ends when the others have answered, too
    third_ = true;
  } else {
    side.err[m] = REDLOCK_E_CHANGING;
    give_up(REDLOCK_E_CHANGING);
  }
}

// The entry of this call stands there, and has stood there without a break since the mark before it.
bool Reconfiguration::stands_entered(MasterIndex m) const {
  return new_.whole.has(m) && new_.entered.has(m) && new_.changes[m] == new_.client.session(m).record_changes();
}

void Reconfiguration::count_twins() {
  for (MasterIndex o : old_.says_new) {
    for (MasterIndex m : new_.done & twins_) {
      if (new_.client.session(m).master().name == old_.client.session(o).master().name) old_.done.add(o);
    }
    lost_ = lost_ || !old_.done.has(o);
    old_.err[o] = REDLOCK_E_RECORD_LOST;
  }
  old_.says_new = {};
}

void Reconfiguration::see_connections() {
  for (MasterIndex m : new_.members) {
    if (!new_.client.session(m).connected()) new_.whole.remove(m);
  }
}

void Reconfiguration::step(Instant now, Instant new_now) {
  old_.now = now;
  new_.now = new_now;
  see_connections();
  if (jumped_) after_jump(now);
  if (!over()) ask(old_);
  if (!over()) ask(new_);
  if (!over() && due(now)) next(now);
}

bool Reconfiguration::due(Instant now) const {
  if (now >= until_) return true;
  if (stage_ == Stage::look && enough(old_) && enough(new_)) {
    if (settled(old_.client, old_.open) && settled(new_.client, new_.open)) return true;
  }
  return stage_ != Stage::wait && (old_.open | new_.open).empty();
}

void Reconfiguration::next(Instant now) {
  count_twins();
  const bool both = enough(old_) && enough(new_);
  switch (stage_) {
    case Stage::look:
      return after_look(now);
    case Stage::mark_new:
      if (!enough(new_)) return too_few(now);
      written_ = REDLOCK_WRITTEN_OLD;
      return begin(Stage::mark_old, old_.done, new_.done & twins_, now);
    case Stage::mark_old:
      if (!both) return too_few(now);
      begin(Stage::wait, {}, {}, now);
      until_ = now + between_;
      return;
    case Stage::wait:
      return begin(Stage::again, old_.done, new_.done, now);
    case Stage::again:
      if (!both) return too_few(now);
      written_ = REDLOCK_WRITTEN_BOTH;
      return begin(Stage::enter, {}, new_.done, now);
    case Stage::enter:
      return begin(Stage::check, old_.done, new_.done, now);
    case Stage::check:
      if (stood_still(now)) return look_again(now);
      if (!both) return too_few(now);
      return leave(now);
    case Stage::leave:
      if (stood_still(now)) return look_again(now);
      return finish(static_cast<int>(new_.members.count() - new_.done.count()));
    case Stage::over:
      return;
  }
}

// Ends the call before the first write if the change cannot be completed.
void Reconfiguration::after_look(Instant now) {
  if (third_) return give_up(REDLOCK_E_FINGERPRINT);
  if (!enough(old_) || !enough(new_)) return too_few(now);
  const Masters to_mark = new_.done - twins_;
  written_ = !to_mark.empty() ? REDLOCK_WRITTEN_NEW : REDLOCK_WRITTEN_NOTHING;
  begin(Stage::mark_new, {}, to_mark, now);
}

void Reconfiguration::after_jump(Instant now) {
  jumped_ = false;
  if (stage_ == Stage::wait) until_ = now + between_;
  if (stage_ == Stage::check || stage_ == Stage::leave) look_again(now);
}

// The third look may be old: what was seen then is looked at once more.
void Reconfiguration::look_again(Instant now) {
  marked_ = {};
  begin(Stage::check, old_.done | old_.open, new_.done | new_.open, now);
}

void Reconfiguration::leave(Instant now) {
  stage_ = Stage::leave;
  until_ = now + patience_;
  old_.open = marked_;
  new_.open = new_.done;
  old_.asked = new_.asked = {};
  ask(old_);
  ask(new_);
}

}  // namespace redlock
