// SPDX-License-Identifier: MIT
#include "site/adoption.hpp"

#include <new>

#include "base/digits.hpp"
#include "lock/quorum.hpp"
#include "site/move_script.hpp"

namespace redlock {
namespace {

using Stage = Reconfiguration::Stage;

// What scripts/owner.lua answers.
enum Letter : int {
  blank = 'n',
  ours = 'w',
  other_one = 'o',
  being_adopted = 'm',
  entered = 'e',
  changing = 'c',
};

bool is_letter(int said) { return said > 0 && said < 256 && memchr("nwomec", said, 6) != nullptr; }
bool names_another(int letter) { return letter == other_one || letter == being_adopted || letter == entered; }

// Takes `word` and the text up to the next blank, or up to the end, from the front of `text`.
bool take_field(Bytes& text, Bytes word, Bytes& field) {
  if (text.size < word.size || Bytes(text.data, word.size) != word) return false;
  text = Bytes(text.data + word.size, text.size - word.size);
  const void* const end = text.size != 0 ? memchr(text.data, ' ', text.size) : nullptr;
  const size_t size = end != nullptr ? static_cast<size_t>(static_cast<const char*>(end) - text.data) : text.size;
  field = Bytes(text.data, size);
  text = Bytes(text.data + size, text.size - size);
  return true;
}

bool take_number(Bytes& text, Bytes word, uint32_t most, uint32_t& number) {
  Bytes field;
  uint64_t value = 0;
  if (!take_field(text, word, field) || !parse_decimal(field, value) || value == 0 || value > most) return false;
  number = static_cast<uint32_t>(value);
  return true;
}

uint32_t step_of(Stage stage) {
  switch (stage) {
    case Stage::mark_new:
    case Stage::mark_old:
      return REDLOCK_ADOPT_MARK;
    case Stage::wait:
    case Stage::again:
      return REDLOCK_ADOPT_WAIT;
    case Stage::enter:
    case Stage::check:
      return REDLOCK_ADOPT_ENTER;
    default:
      return REDLOCK_ADOPT_READ;
  }
}

}  // namespace

Adoption::Adoption(Client& set, bool rest_is_gone, uint64_t seed, Instant now)
    : client_(set),
      rest_is_gone_(rest_is_gone),
      until_(now + Reconfiguration::patience_of(set.settings())),
      unread_(Masters::all(set.settings().masters)) {
  seeds_.seed(seed);
}

void Adoption::step(Instant now) {
  if (over_) return;
  if (takeover_ == nullptr) {
    read(now);
    if (!read_enough(now)) return;
    const int verdict = judge();
    return verdict != 0 ? finish(verdict) : begin_next(now);
  }
  takeover_->step(now);
  if (!takeover_->over()) {
    step_ = step_of(takeover_->stage());
    return;
  }
  end_takeover();
  if (!over_) begin_next(now);
}

void Adoption::clock_jumped(Instant now) {
  if (takeover_ != nullptr) takeover_->clock_jumped(now);
}

// ---- reading --------------------------------------------------------------------------------------------------------

void Adoption::read(Instant now) {
  for (MasterIndex m : unread_) {
    const int said = client_.session(m).said();
    if (said == Session::not_answered) continue;
    if (asked_.has(m) && said == Session::not_asked) owner_[m].known = 0;  // the connection broke: read all anew
    if (asked_.has(m) && said != Session::not_asked) hear(m);
    asked_.remove(m);
    if (!unread_.has(m)) continue;
    char digits[20];
    const Bytes arguments[] = {client_.settings().fingerprint, to_decimal(owner_[m].known * piece_size, digits)};
    if (client_.ask_record(m, owner_script, arguments, 2, now)) asked_.add(m);
  }
}

void Adoption::hear(MasterIndex m) {
  Owner& owner = owner_[m];
  const int said = client_.session(m).said();
  if (said < 0) {
    err_[m] = said;
    unread_.remove(m);
    return;
  }
  const Bytes piece = client_.session(m).guard().quarantine();
  if (!is_letter(said) || piece.size != piece_size) {
    owner.known = 0;
    return client_.disconnect(m, REDLOCK_E_PROTOCOL);
  }
  if (owner.known != 0 && said != owner.letter) {  // somebody has just written the record
    owner.known = 0;
    return;
  }
  owner.letter = said;
  memcpy(owner.text + owner.known * piece_size, piece.data, piece_size);
  ++owner.known;
  const bool last = owner.known == pieces || (owner.known > 2 && piece.data[piece_size - 1] == ' ');
  if (!last && names_another(said)) return;
  unread_.remove(m);
  if (said == other_one || said == being_adopted) theirs_.add(m);
  if (said == entered) entered_.add(m);
}

Bytes Adoption::Owner::fingerprint() const {
  size_t end = known * piece_size;
  while (end > 2 * piece_size && text[end - 1] == ' ') --end;
  return Bytes(text + 2 * piece_size, end - 2 * piece_size);
}

// A master that was not reached at once is waited for only if that may make a difference.
bool Adoption::read_enough(Instant now) {
  if (unread_.empty() || now >= until_) return true;
  return Reconfiguration::settled(client_, unread_) && !theirs_.empty() && judge() == 0;
}

// ---- what is to be done ---------------------------------------------------------------------------------------------

bool Adoption::parse(Bytes fingerprint, Other& out) {
  Bytes ids;
  return take_number(fingerprint, "v1 n=", REDLOCK_MASTERS_MAX, out.masters) &&
         take_number(fingerprint, " q=", REDLOCK_MASTERS_MAX, out.quorum) &&
         take_number(fingerprint, " max_ttl_ms=", REDLOCK_MAX_TTL_MS_MAX, out.max_ttl_ms) &&
         take_field(fingerprint, " ids=", ids) && fingerprint.size == 0 && out.quorum == quorum_of(out.masters);
}

// One server by its run id; or by its quarantine id, which is random and thus stands on two servers only if one has a
// copy of the other's data. Servers that do not tell their run ids may be the same one.
bool Adoption::same_server(MasterIndex a, MasterIndex b) const {
  const bool same_q = owner_[a].q().data[0] != ' ' && owner_[a].q() == owner_[b].q();
  return same_q || owner_[a].run_id() == owner_[b].run_id();
}

Masters Adoption::with_servers_of(Masters known, Masters more) const {
  for (MasterIndex m : more) {
    bool same = false;
    for (MasterIndex k : known) same = same || same_server(m, k);
    if (!same) known.add(m);
  }
  return known;
}

Masters Adoption::that_name(Bytes fingerprint, Masters masters) const {
  Masters out;
  for (MasterIndex m : masters) {
    if (owner_[m].fingerprint() == fingerprint) out.add(m);
  }
  return out;
}

// The configuration that this master belongs to. False: too few of its masters are here.
bool Adoption::choose(MasterIndex first) {
  const Bytes fingerprint = owner_[first].fingerprint();
  other_ = {};
  parse(fingerprint, other_);
  group_ = that_name(fingerprint, theirs_);
  counted_ = with_servers_of({}, group_);
  if (counted_.count() >= other_.quorum || rest_is_gone_) return true;
  counted_ = with_servers_of(counted_, that_name(fingerprint, entered_));
  return counted_.count() >= other_.quorum;
}

// Everything is judged before the first write.
int Adoption::judge() {
  int verdict = 0;
  bool any = false;
  for (MasterIndex m = 0; m < client_.settings().masters; ++m) {
    if (unread_.has(m)) continue;
    Other other;
    if (owner_[m].letter == changing) err_[m] = verdict = REDLOCK_E_CHANGING;
    if (theirs_.has(m)) err_[m] = REDLOCK_E_FINGERPRINT;
    if (theirs_.has(m) && !parse(owner_[m].fingerprint(), other)) verdict = REDLOCK_E_FINGERPRINT;
    any = any || owner_[m].letter != 0;
  }
  if (verdict != 0) return verdict;
  for (Masters left = theirs_; !left.empty(); left -= group_) {
    if (!choose(*left.begin())) return REDLOCK_E_NO_QUORUM;
  }
  return any ? 0 : int{REDLOCK_E_NO_QUORUM};
}

// ---- one configuration after the other ------------------------------------------------------------------------------

void Adoption::begin_next(Instant now) {
  if (theirs_.empty()) return finish(0);
  choose(*theirs_.begin());
  step_ = REDLOCK_ADOPT_READ;
  CommonSettings theirs = client_.settings();
  theirs.max_ttl_ms = other_.max_ttl_ms;
  theirs.drift_ppm = REDLOCK_DRIFT_PPM_MAX;
  theirs.drift_fixed_ms = REDLOCK_DRIFT_FIXED_MS_MAX;
  const unsigned here = counted_.count();
  const Reconfiguration::Takeover takeover = {owner_[*group_.begin()].fingerprint(), counted_,
                                              here < other_.quorum ? here : other_.quorum,
                                              Reconfiguration::wait_between(theirs, client_.settings())};
  const uint64_t high = seeds_.next();
  takeover_ = new (memory_) Reconfiguration(client_, takeover, high << 32 | seeds_.next(), now);
}

void Adoption::end_takeover() {
  const Reconfiguration::Side& side = takeover_->new_side();
  for (MasterIndex m : group_ - counted_) err_[m] = REDLOCK_E_DUPLICATE;
  for (MasterIndex m : counted_) err_[m] = side.why_not(m);
  const int result = takeover_->result();
  takeover_ = nullptr;
  if (result < 0) return finish(result);
  adopted_ |= side.done & group_;
  theirs_ -= group_;
}

void Adoption::finish(int result) {
  for (MasterIndex m : unread_) {
    const int reason = client_.session(m).reason();
    err_[m] = reason != 0 ? reason : int{REDLOCK_E_NODE_TIMEOUT};
  }
  over_ = true;
  result_ = result;
  if (result != 0) return;
  step_ = REDLOCK_ADOPT_DONE;
  for (const int err : err_) result_ += err != 0 ? 1 : 0;
}

void Adoption::tell(redlock_adopt_report_t& out, Instant now) const {
  out.step = step_;
  const bool waits = takeover_ != nullptr && takeover_->stage() == Stage::wait && now < takeover_->until();
  out.to_go_ms = waits ? static_cast<uint32_t>((takeover_->until().ns() - now.ns()) / 1'000'000 + 1) : 0;
  out.masters = client_.settings().masters;
  out.adopted = adopted_.count();
  out.their_masters = other_.masters;
  out.their_needed = other_.quorum;
  out.their_max_ttl_ms = other_.max_ttl_ms;
  out.their_found = counted_.count();
  for (MasterIndex m = 0; m < out.masters; ++m) out.err[m] = err_[m];
}

}  // namespace redlock
