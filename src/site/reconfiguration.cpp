// SPDX-License-Identifier: MIT
#include "site/reconfiguration.hpp"

#include "base/digits.hpp"
#include "lock/quorum.hpp"
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
  entered = 'e',
  by_another = 'u',
  marked = 'm',
  opposite = 'b',
  third = 't',
};

bool is_letter(int said) { return memchr("noweumbt", said, 8) != nullptr; }

constexpr Duration longer(Duration a, Duration b) { return a < b ? b : a; }

bool enough(const Side& side) { return side.done.count() >= side.needed; }

// The masters among these whose record says one of the two.
Masters that_say(const Side& side, Masters masters, Letter one, Letter other) {
  Masters out;
  for (MasterIndex m : masters) {
    const int said = side.client.session(m).said();
    if (said == one || said == other) out.add(m);
  }
  return out;
}

Masters in_both(const Client& before, const Client& after) {
  Masters out;
  for (MasterIndex m = 0; m < after.settings().masters; ++m) {
    for (MasterIndex o = 0; o < before.settings().masters; ++o) {
      if (after.master(m).name == before.master(o).name) out.add(m);
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
  if (done.has(m)) return 0;
  if (err[m] != 0) return err[m];
  const int reason = client.session(m).reason();
  return reason != 0 ? reason : int{REDLOCK_E_NODE_TIMEOUT};
}

Reconfiguration::Reconfiguration(Client& old_set, Client& new_set, uint64_t seed, Instant now)
    : old_(whole(old_set)),
      new_(whole(new_set)),
      old_text_(old_set.settings().fingerprint),
      new_text_(new_set.settings().fingerprint),
      takes_over_(false),
      patience_(longer(patience_of(old_set.settings()), patience_of(new_set.settings()))),
      between_(wait_between(old_set.settings(), new_set.settings())),
      until_(now + patience_),
      twins_(in_both(old_set, new_set)) {
  ids_.seed(seed);
  draw_id(id_);
}

Reconfiguration::Reconfiguration(Client& set, const Takeover& takeover, uint64_t seed, Instant now)
    : old_(set, {}, 0),
      new_(set, takeover.masters, takeover.needed),
      old_text_(takeover.from),
      new_text_(set.settings().fingerprint),
      takes_over_(true),
      patience_(patience_of(set.settings())),
      between_(takeover.wait),
      until_(now + patience_),
      twins_(takeover.masters) {
  ids_.seed(seed);
  draw_id(id_);
}

void Reconfiguration::draw_id(char* id) {
  for (unsigned i = 0; i < Guard::id_size; ++i) id[i] = hex_digits[ids_.next() & 0xF];
  if (takes_over_) id[0] = adopted_id;
}

void Reconfiguration::finish(int result) {
  stage_ = Stage::over;
  result_ = result;
}

void Reconfiguration::too_few() { finish(lost_ ? REDLOCK_E_RECORD_LOST : REDLOCK_E_NO_QUORUM); }

// Begins a step: these masters are asked. What the others did in an earlier step stays noted as done.
void Reconfiguration::begin(Stage stage, Masters old_masters, Masters new_masters, Instant now) {
  stage_ = stage;
  until_ = now + patience_;
  old_.open = old_masters;
  new_.open = new_masters;
  old_.done -= old_masters;
  new_.done -= new_masters;
  old_.asked = new_.asked = {};
  ask(old_, now);
  ask(new_, now);
}

// Takes the answers to this step. Asks the masters that were not asked yet, or whose connection broke before the
// answer.
void Reconfiguration::ask(Side& side, Instant now) {
  for (MasterIndex m : side.open) {
    const Session& session = side.client.session(m);
    if (session.said() == Session::not_answered) continue;
    if (side.asked.has(m) && session.said() != Session::not_asked) hear(side, m);
    if (stage_ == Stage::over) return;
    side.asked.remove(m);
    if (!side.open.has(m)) continue;
    const bool enters = stage_ == Stage::enter;
    char ids[2 * Guard::id_size];
    if (enters) draw_id(ids);
    if (!enters) memcpy(ids, id_, sizeof id_);
    const Bytes there = enters ? Bytes(id_, sizeof id_) : session.guard().quarantine();
    memcpy(ids + Guard::id_size, there.data, there.size);
    const Bytes arguments[] = {old_text_, new_text_, Bytes(ids, Guard::id_size + there.size),
                               enters    ? Bytes("enter")
                               : marks() ? Bytes("mark")
                                         : Bytes("look")};
    if (side.client.ask_record(m, move_script, arguments, 4, now)) side.asked.add(m);
  }
}

void Reconfiguration::hear(Side& side, MasterIndex m) {
  const Session& session = side.client.session(m);
  const int said = session.said();
  if (said >= 0 && !is_letter(said)) return side.client.disconnect(m, REDLOCK_E_PROTOCOL);
  const bool own = said == marked && session.guard().quarantine() == Bytes(id_, sizeof id_);
  const bool unmarked = said == blank || said == old_set || said == new_set;
  if (marks() && (unmarked || said == by_another)) return;  // the record has changed since it was read: ask again
  const bool yes = stage_ == Stage::look                            ? said != third
                   : marks() || (stage_ == Stage::again && !mends_) ? own
                   : stage_ == Stage::again                         ? said == entered
                                                                    : said == entered || said == new_set;
  side.open.remove(m);
  if (said < 0) {
    side.err[m] = static_cast<int16_t>(said);
  } else if (yes) {
    side.done.add(m);
  } else if (unmarked) {
    side.err[m] = REDLOCK_E_RECORD_LOST;
    lost_ = true;
  } else {
    side.err[m] = stage_ == Stage::look ? REDLOCK_E_FINGERPRINT : REDLOCK_E_CHANGING;
    finish(side.err[m]);
  }
}

void Reconfiguration::step(Instant now) {
  if (!over()) ask(old_, now);
  if (!over()) ask(new_, now);
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
  const bool both = enough(old_) && enough(new_);
  switch (stage_) {
    case Stage::look:
      return after_look(now);
    case Stage::mark_new:
      if (mends_) return begin(Stage::again, {}, that_say(new_, new_.done, entered, entered), now);
      if (!enough(new_)) return too_few();
      written_ = REDLOCK_WRITTEN_OLD;
      return begin(Stage::mark_old, old_.done, new_.done & twins_, now);
    case Stage::mark_old:
      if (!both) return too_few();
      begin(Stage::wait, {}, {}, now);
      until_ = now + between_;
      return;
    case Stage::wait:
      return begin(Stage::again, old_.done, new_.done, now);
    case Stage::again:
      if (mends_ ? that_say(new_, new_.done, entered, entered).count() < new_.needed : !both) {
        return too_few();
      }
      written_ = REDLOCK_WRITTEN_BOTH;
      return begin(Stage::enter, {}, that_say(new_, new_.done, marked, marked), now);
    case Stage::enter:
      return begin(Stage::check, {}, new_.done, now);
    case Stage::check:
      if (!enough(new_)) return too_few();
      return finish(static_cast<int>(new_.members.count() - new_.done.count()));
    case Stage::over:
      return;
  }
}

// Ends the call before the first write if the change cannot be completed.
void Reconfiguration::after_look(Instant now) {
  mends_ = that_say(new_, new_.done, entered, entered).count() >= new_.needed;
  if (!mends_ && (!enough(old_) || !enough(new_))) return finish(REDLOCK_E_NO_QUORUM);
  const Masters done = mends_ ? that_say(new_, new_.done, entered, new_set) : twins_;
  const Masters to_mark = new_.done - done;
  written_ = mends_ ? REDLOCK_WRITTEN_BOTH : !to_mark.empty() ? REDLOCK_WRITTEN_NEW : REDLOCK_WRITTEN_NOTHING;
  begin(Stage::mark_new, {}, to_mark, now);
}

void Reconfiguration::clock_jumped(Instant now) {
  if (stage_ == Stage::wait) until_ = now + between_;
}

}  // namespace redlock
