// SPDX-License-Identifier: MIT
//
// The machine between two rounds of an acquire: how long the lock pauses, what it learns of the masters meanwhile, and
// how the turn passes from one lock of this client to the next.
//
// A waiter that masters tell of changes goes this way:
//
//      asks again, and had                     gone: a round
//      to wait the last time ──► peeks ─────────────────────────────────►
//                                │  ▲ ▲        the key is there
//            a nap to sleep: sleeps │ │
//            it sends nothing  └────┘ │ no nap
//                                     │ ▼         a push: the key is gone
//      a round was lost to others ──► listens ──► draws a pause ──► a short one: a round
//                    no push within      │            ▲         └──► a long one: peeks
//                     a plain pause ──► stands by ────┘
//                                        a push, and a look: the key is gone
//
// Waiting is fair without a queue, and quiet, because of seven rules:
//
//   - A waiter that has seen the resource go by more often draws from a shorter window. The windows overlap: two
//     waiters with one fixed pause each would split the masters for ever.
//   - A waiter whose pause is longer than a round takes looks again first, at one master: others may have been faster.
//   - A waiter listens to one master that has the key. Where the resource goes from hand to hand that is enough, and a
//     look costs two commands. No push for a plain pause: that master may stand still, so the waiter stands by: it
//     looks at two masters, at others when these are mute, and where it was told again, since that may be a renewal.
//   - A waiter whose client had to wait the last time sleeps as long as the client has learned (lock/crowd).
//     So most of a crowd sleep, and those that look are the oldest.
//   - An urgent waiter that hurries does not sleep, looks at so many masters that it hears of a release first, and
//     draws no pause. All others begin a short pause two fifths of a round later: in that time its SETs arrive. Its
//     client hurries after a pause of its own, and a few times more (lock/crowd). Without a pause, or when it has lost
//     `few` races and is among many of its kind, it waits like all others, and lets those that are not urgent begin
//     first. So urgent acquires without end leave the others more than they take.
//   - A client that is granted the resource again and again without a wait gives way now and then (lock/crowd).
//   - A waiter that has seen the resource go by `spell` times sleeps for about as long as it has looked, and at most
//     for a plain pause or a few of its shares. So news without end, from a server that stands still or whose tracking
//     table is full, is acted on ever more seldom. A crowd in which nobody has learned anything yet calms down by the
//     same rule.
#include "lock/backoff.hpp"
#include "lock/machine.hpp"

namespace redlock {
namespace {

constexpr unsigned spell = 5;
constexpr int nap_shares = 6;       // so many others pass a tired waiter while it sleeps
constexpr int often_pauses = 6;     // a resource that goes by less often may be one that its holder renews
constexpr unsigned window_max = 5;  // of a waiter that has seen nobody pass: in times of two rounds
constexpr unsigned few = 24;
constexpr int urgent_slots = 4;  // of an urgent waiter that may not hurry; all others leave one

bool is_free(Instant at, const Instant& now) { return at <= now; }

REDLOCK_APART_FOR_SIZE Duration window(const Lock& lock, unsigned wide, unsigned part) {
  return race_window(lock.wait.round_took, wide, part, lock.options.retry_delay_ms);
}

// How often others were granted the resource, as far as the waiter knows.
Duration share(const Waiting& wait, const Instant& now) {
  return Duration::ns(quotient(left(now, wait.heard_since).ns(), wait.passed + 1u));
}

void count_pass(Waiting& wait) {
  if (wait.passed < UINT16_MAX) ++wait.passed;
}

}  // namespace

bool Machine::hurries(const Lock& lock) const {
  return lock.line.urgent && lock.wait.passed < few && crowds_.of(lock.wait.crowd).hurries(lock.wait.since);
}

void Machine::see(Lock& lock, bool for_guard, const Instant& now) const {
  if (lock.wait.begun) return;
  lock.wait.begun = true;
  lock.wait.since = now;
  if (lock.options.wait_ms > 0) lock.wait.until = now + Duration::ms(lock.options.wait_ms);
  if (lock.options.wait_ms != REDLOCK_WAIT_DEFAULT) return;
  lock.wait.until = now + rules_.wait;
  lock.wait.other = rules_.guard_wait;
  charge(lock, for_guard, now);
}

void Machine::charge(Lock& lock, bool for_guard, const Instant& now) const {
  Waiting& wait = lock.wait;
  const bool two_budgets = wait.begun && lock.options.wait_ms == REDLOCK_WAIT_DEFAULT;
  if (!is_pending(lock) || !two_budgets || wait.for_guard == for_guard) return;
  const Duration rest = left(wait.until, now);
  wait.until = now + wait.other;
  wait.other = rest;
  wait.for_guard = for_guard;
}

// Whoever waits for some time hears of a denial at once. A wait without end outlives the denial: the operator of the
// masters may allow tomorrow what is denied today.
bool Machine::is_denied(const Lock& lock, int cause) const {
  const unsigned spare = rules_.masters - quorum_of(rules_.masters);
  return cause == REDLOCK_E_NO_QUORUM && lock.options.wait_ms != REDLOCK_WAIT_FOREVER &&
         lock.wait.denied.count() > spare && telling(lock.round.told_error) >= lasting;
}

Action Machine::lost(Lock& lock, int cause, const Instant& now) {
  lock.wait.last_cause = static_cast<int16_t>(cause);
  lock.line.in_a_row = 0;
  if (cause == REDLOCK_E_LOCKED) count_pass(lock.wait);
  lock.wait.stance = Stance::listens;
  lock.wait.round_took = left(now, lock.round.t0);
  lock.wait.not_before = now;
  // A counter never goes back, so another try cannot win. Other masters may confirm a number that was not believed.
  const bool hopeless = (cause == REDLOCK_E_FENCE_RANGE && !lock.fence.disbelieved) || is_denied(lock, cause);
  lock.wait.denied = {};
  if (lock.options.wait_ms == 0 || now >= lock.wait.until || hopeless) {
    fail(lock, cause);
    return Action::drop;
  }
  Duration pause =
      pause_after(cause, lock.options.retry_delay_ms, lock.rounds - 1, rules_.sleep_max_ms, random_.next());
  // A pause that is longer than the rest of the budget is cut, for one more try. Where little of the budget is left
  // there is no such try: otherwise the tries would follow each other ever faster toward the end.
  const Duration budget = left(lock.wait.until, now);
  if (pause >= budget) {
    const bool worthwhile = budget > Duration::us(int64_t{lock.options.retry_delay_ms} * 125);
    pause = worthwhile ? lot(budget) : budget;
  }
  lock.state = State::waiting;
  lock.wake_at = now + pause;
  return cause == REDLOCK_E_LOCKED ? Action::look : Action::drop;
}

Action Machine::give_up(Lock& lock, Masters failed, Masters guarded, MasterIndex first, int error) const {
  const Action action = cancel(lock, lost_because(rules_.masters, failed.count(), guarded.count()));
  lock.round.granted = lock.round.refused = lock.round.unasked = {};
  lock.round.failed = failed;
  lock.round.guarded = guarded;
  lock.round.told_error = static_cast<int16_t>(error);
  lock.round.told_master = static_cast<uint8_t>(first);
  return action;
}

Action Machine::wake(Lock& lock) const {
  if (lock.state != State::waiting || lock.wants != Wants::nothing) return Action::none;
  lock.wake_at = Instant::never();
  lock.wants = Wants::acquire;
  return Action::start;
}

// A waiter that has slept, or that draws a long pause, looks before it tries. So does one that has heard nothing. The
// plain timer does not.
Action Machine::due(Lock& lock, const Instant& now) {
  Waiting& wait = lock.wait;
  const bool slept = wait.stance == Stance::sleeps;
  const bool listens = wait.stance == Stance::listens && lock.forecast.waits() && now < wait.net_at;
  const bool heard_nothing = (listens || wait.stance == Stance::stands_by) && now < wait.planned_for;
  if (!slept && !wait.unsure && !heard_nothing) return wake(lock);
  if (wait.unsure) count_pass(wait);
  wait.stance = heard_nothing ? Stance::armed : Stance::peeks;
  wait.unsure = false;
  lock.wake_at = poll_at(lock, now);
  return Action::look;
}

// How long the lock sleeps if its look finds the key: what the client has learned of this name, which may take more
// than one sleep. After `spell` passes in vain: half to all of the time that it has looked so far. News that comes
// seldom may be renewals of one holder, and a sleeper would miss the release: such news lets nobody sleep twice.
Duration Machine::next_nap(Lock& lock, const Instant& now) {
  if (hurries(lock)) return Duration();
  Waiting& wait = lock.wait;
  const Crowd& crowd = crowds_.of(lock.wait.crowd);
  const Duration pause = plain_pause(lock);
  const Duration often = Duration::ns(pause.ns() * often_pauses);
  Duration nap = left(wait.since + crowd.nap(), now);
  if (wait.rested && (nap < pause || crowd.share() > often)) nap = Duration();
  const Duration looked = left(now, wait.heard_since);
  const Duration each = share(wait, now);
  wait.tired = wait.passed - wait.rested_at >= int{spell} && each <= often;
  if (wait.tired) {
    wait.rested_at = wait.passed;
    const Duration half = Duration::ns(looked.ns() / 2), shares = Duration::ns(each.ns() * nap_shares);
    const Duration most = pause < shares ? shares : pause;
    nap = half + lot(half);
    if (nap > most) nap = most;
  }
  const Duration budget = Duration::ns(left(wait.until, now).ns() / 2);
  return nap < budget ? nap : budget;
}

void Machine::listen(Lock& lock, const Instant& now) const {
  lock.wait.stance = Stance::listens;
  if (lock.wait.heard_since == Instant()) lock.wait.heard_since = now;
}

// wake_at comes from the plain timer, and stays if no master tells of changes. Notifications of a master that failed do
// not count: a missing key does not explain why the master did not take the SET.
void Machine::begin_looking(Lock& lock, Masters votes, Masters tracked, const Instant& now) {
  Waiting& wait = lock.wait;
  tracked -= lock.round.failed;
  if (tracked.empty()) return;
  const Duration half = Duration::us(int64_t{rules_.sleep_max_ms} * 500);
  wait.net_at = now + half + lot(half);
  wait.nap = next_nap(lock, now);
  if (wait.nap > Duration()) wait.stance = Stance::peeks;
  if (wait.stance == Stance::listens) listen(lock, now);

  // N - Q + 1 masters are enough: while they have the key, fewer than Q are left. Masters that refused are known to
  // have the key. One of them tells as much as all do, unless the plain timer has a say, too.
  const unsigned quorum = quorum_of(rules_.masters);
  unsigned wanted = votes.count() > quorum ? votes.count() - quorum + 1 : 1;
  const bool relies = wait.stance != Stance::peeks && (votes.count() < quorum || votes != tracked);
  const bool arms = hurries(lock) || relies;
  if (arms || wait.stance == Stance::armed) wait.stance = arms ? Stance::armed : Stance::stands_by;
  const unsigned most = wait.stance == Stance::stands_by ? 2 : 1;
  if (wait.stance != Stance::armed && votes == tracked && wanted > most) wanted = most;
  const Masters refused = tracked & lock.round.refused;
  const Masters from = refused.count() >= wanted ? refused : tracked;
  Masters looked_at;
  auto m = static_cast<MasterIndex>(uint64_t{random_.next()} * rules_.masters >> 32);  // any of them
  for (unsigned n = 0; n < rules_.masters && wanted > 0; ++n, m = m + 1 == rules_.masters ? 0 : m + 1) {
    if (!from.has(m)) continue;
    looked_at.add(m);
    --wanted;
  }
  lock.forecast.wait(votes, tracked, looked_at, lock.wake_at);
  wait.planned_for = Instant();
  plan_round(lock, false, now);
}

void Machine::look_sent(Lock& lock, MasterIndex m, const Instant& now) {
  lock.forecast.look_sent(m);
  plan_round(lock, false, now);
}

void Machine::look_away(Lock& lock, MasterIndex m, bool votes, const Instant& now) {
  lock.forecast.look_away(m, votes ? poll_at(lock, now) : Instant::never());
  plan_round(lock, false, now);
}

// A lock that left others the first try has lost no round. The first key that is found tells what it waits for.
void Machine::looked(Lock& lock, MasterIndex m, int64_t ttl, const Instant& now) {
  const bool found = ttl != ttl_gone && ttl != ttl_unknown;
  if (found && lock.wait.last_cause == 0) lock.wait.last_cause = REDLOCK_E_LOCKED;
  lock.forecast.looked(m, ttl, now, poll_at(lock, now));
  if (found && lock.wait.stance == Stance::stands_by) lock.wait.net_at = now + Duration::ms(rules_.sleep_max_ms);
  // The last answer decides about a learned nap, also where it brings the quorum no nearer.
  if (lock.wait.nap > Duration() && !lock.wait.tired && !lock.forecast.asks()) lock.wait.planned_for = Instant();
  plan_round(lock, true, now);
}

// changed() asks for another look only where changes are seldom: a busy resource would cause looks without end.
void Machine::changed(Lock& lock, MasterIndex m, const Instant& now) {
  Waiting& wait = lock.wait;
  const Duration pause = plain_pause(lock);
  const bool seldom = share(wait, now).ns() > pause.ns() * often_pauses;
  const bool again = wait.stance == Stance::stands_by && seldom && !hurries(lock);
  if (again && now + Duration::ms(rules_.sleep_max_ms) < wait.net_at + pause) count_pass(wait);  // it has just looked
  lock.forecast.changed(m, again, now);
  plan_round(lock, false, now);
}

void Machine::master_disconnected(Lock& lock, MasterIndex m, const Instant& now) {
  lock.forecast.disconnected(m);
  plan_round(lock, false, now);
  if (lock.state != State::waiting || lock.wants != Wants::nothing || lock.wait.stance == Stance::sleeps) return;
  if (lock.forecast.waits() && !lock.forecast.looks()) bring_forward(lock.wake_at, poll_at(lock, now));
}

// A waiter that stands by, and looks at m, looks at other masters instead.
bool Machine::master_mute(Lock& lock, MasterIndex m, const Instant& now) {
  const bool idle = lock.state == State::waiting && lock.wants == Wants::nothing;
  const bool mute = idle && lock.wait.stance == Stance::stands_by && lock.forecast.looks_at(m);
  if (mute) lock.wake_at = now;
  return mute;
}

void Machine::master_back(Lock& lock, MasterIndex m, bool tracked, const Instant& now) {
  lock.forecast.back(m, tracked, poll_at(lock, now));
  plan_round(lock, false, now);
}

// Whatever a master tells may bring the next round nearer or put it off. A message that changes nothing draws no new
// random pause: otherwise every message would give the waiter a new place among the others.
void Machine::plan_round(Lock& lock, bool looked, const Instant& now) {
  if (lock.state != State::waiting || !lock.forecast.waits() || lock.wants != Wants::nothing) return;
  Waiting& wait = lock.wait;
  const Instant at = lock.forecast.quorum_at(), planned = wait.planned_for;
  if (planned != Instant() && (at == planned || (is_free(at, now) && is_free(planned, now)))) return;
  wait.planned_for = at;
  if (wait.stance == Stance::sleeps) return;
  if (is_free(at, now)) return plan_race(lock, looked, now);
  wait.unsure = false;
  if (wait.stance == Stance::peeks && !looked) {  // a master that does not answer must not hold the waiter up
    lock.wake_at = poll_at(lock, now);
    return;
  }
  lock.wake_at = earlier(wait.net_at, later(at, wait.not_before) + lot(window(lock, 1, 1)));
  if (wait.stance == Stance::armed || wait.stance == Stance::stands_by) return;
  // A learned nap is for a key that somebody holds. Where the masters that tell of changes have no key, the waiter only
  // waits for the time to ask the others.
  if (wait.nap > Duration() && (wait.tired || lock.forecast.sees_key(now))) {
    wait.stance = Stance::sleeps;
    wait.rested = true;
    lock.wake_at = earlier(wait.net_at, now + wait.nap);
  } else {
    listen(lock, now);
    lock.wake_at = earlier(lock.wake_at, now + plain_pause(lock));
  }
}

// A quorum seems free, and all who look know it. A look tells so for certain, since nobody else has been faster yet.
void Machine::plan_race(Lock& lock, bool looked, const Instant& now) {
  Waiting& wait = lock.wait;
  const Duration two_rounds = window(lock, 1, 1);
  const bool first = looked && wait.stance != Stance::stands_by;  // all who stand by look at the same instant
  const Duration pause = lot(first ? two_rounds : window(lock, window_max, 1u + looked + wait.passed));
  const bool hurrying = hurries(lock);
  wait.unsure = !hurrying && !first && pause.ns() > two_rounds.ns() / 2;
  lock.wake_at = later(now, wait.not_before);
  if (hurrying) return;
  const int slots = looked || wait.unsure ? 0 : lock.line.urgent ? urgent_slots : 1;  // a look takes a round
  lock.wake_at = lock.wake_at + pause + Duration::ns(quotient(two_rounds.ns(), 5) * slots);
}

// Does a new acquire leave others the first try? An acquire that tries once has no second one.
void Machine::give_way(Lock& lock) const {
  lock.line.urgent = lock.options.urgent;
  lock.wait.crowd = Crowds::name_of(lock.names, lock.options.urgent);
  if (lock.options.wait_ms == 0) return;
  const Crowd& crowd = crowds_.of(lock.wait.crowd);
  lock.line.in_a_row = crowd.gives();
  lock.line.yields = crowd.waited || crowd.gives();
  lock.wait.round_took = crowd.round();
}

// The lock is granted. What does the next acquire of this name do?
void Machine::remember(const Lock& lock, const Instant& now) {
  const Waiting& wait = lock.wait;
  const bool waited = wait.heard_since != Instant() || wait.stance == Stance::sleeps;
  Crowd* const crowd = crowds_.note(wait.crowd, waited);
  if (crowd == nullptr) return;
  unsigned turns = 1;
  if (lock.options.urgent) {
    crowd->hurried(wait.since);
    turns += Crowd::urgent_turns - crowd->spent;
  }
  crowd->granted(wait.stance == Stance::peeks && wait.passed == 0, left(now, lock.round.t0), turns);
  if (wait.heard_since != Instant()) {
    crowd->learn(wait.passed, left(now, wait.heard_since), left(now, wait.since));
  } else {
    crowd->nap_us /= 2;
  }
}

void Machine::let_go(const Lock& lock, const Instant& now) {
  Crowd* const crowd = crowds_.find(lock.wait.crowd);
  if (crowd != nullptr) crowd->let_go(left(now, lock.hold.since), now);
}

Duration Machine::lot(Duration longest) { return part_of(longest, random_.next()); }

Duration Machine::plain_pause(const Lock& lock) const {
  const uint32_t retry_ms = lock.options.retry_delay_ms;
  return Duration::ms(retry_ms < rules_.sleep_max_ms ? retry_ms : rules_.sleep_max_ms);
}

Instant Machine::poll_at(const Lock& lock, const Instant& now) { return now + lot(plain_pause(lock)); }

Action Machine::queue(Lock& lock) const {
  lock.wants = Wants::nothing;
  lock.wake_at = lock.defer_until = Instant::never();
  lock.wait.last_cause = REDLOCK_E_LOCKED;
  return lock.options.wait_ms == 0 ? fail(lock, REDLOCK_E_LOCKED) : Action::none;
}

void Machine::hurry(Lock& lock, const Instant& now) const {
  lock.line.urgent = true;
  lock.wait.nap = Duration();
  const bool sleeps = lock.wait.stance == Stance::sleeps && lock.wants == Wants::nothing;
  if (lock.state == State::waiting && sleeps) lock.wake_at = now;
}

Action Machine::came_first(Lock& lock, const Lock& before) const {
  if (lock.state != State::waiting || lock.wants != Wants::nothing) return Action::none;  // wants a round already
  const bool was_held = before.valid_until != Instant::never();
  lock.line.in_a_row = static_cast<uint16_t>(was_held ? before.line.in_a_row + 1 : before.line.in_a_row);
  lock.line.yields = lock.line.in_a_row > rules_.local_turns + lock.line.urgent * Crowd::urgent_turns;
  lock.wait.round_took = before.wait.round_took;
  return wake(lock);
}

// The lock looks before it tries: the client had the resource too often in a row, or had to wait for it the last time.
// The pause is long enough for another client to hear of the release, to look, and to try.
Action Machine::yield(Lock& lock, const Instant& now) {
  if (lock.line.in_a_row != 0) lock.wait.not_before = now + window(lock, 4, 1);
  lock.line.yields = false;
  lock.line.in_a_row = 0;
  lock.wants = Wants::nothing;
  lock.wake_at = poll_at(lock, now);
  return Action::look;
}

}  // namespace redlock
