// SPDX-License-Identifier: MIT
//
// The users of a process: they ask for locks, hold them shortly, for about their ttl, or work until the validity ends,
// and call the API from wherever it may be called.
#include <cstring>
#include <string>

#include "process.hpp"
#include "world.hpp"

namespace redlock::sim {
namespace {

constexpr const char* event_names[] = {"", "ACQUIRED", "FAILED", "RENEWED", "AT_RISK", "LOST", "RELEASED"};
constexpr const char* cause_names[] = {"", " held", " guard", " too few", " change", " never"};

}  // namespace

// ---- what they do ---------------------------------------------------------------------------------------------

void Process::cancel(uint64_t handle) {
  // The lock may have been won, and not told yet.
  if (ProofRun* const proof = world_.proof_run()) proof->released(index_, handle);
  client_->cancel(handle);
}

void Process::act(User& user) {
  user.due = never;
  switch (user.state) {
    case User::State::idle:
      if (wait_random_.chance(200)) release_again(user);
      if (!closing_ && !world_.closing()) ask(user);
      break;
    case User::State::pending:
      if (world_.story().telling()) world_.story().tell(t_, int(index_), -1, "u%u cancels", user.index);
      cancel(user.handle);
      break;
    case User::State::held:
      work(user);
      break;
  }
}

// It keeps its lock until the end.
bool Process::keeps(const User& user) const {
  const Plan& plan = world_.plan();
  return (plan.holds && user.index == 0) || (plan.many && index_ == 0);
}

void Process::ask(User& user) {
  static constexpr uint32_t holds[] = {0, 0, 0, 150, 2000};
  const Plan& plan = world_.plan();
  Stream& random = user_random_;
  Options& o = user.options;
  o.ttl_ms = std::min(plan.ttl_ms[random.below(2)], client_->settings().max_ttl_ms);
  o.wait_ms = plan.wait_choice == 0 ? -1 : plan.wait_choice == 1 ? static_cast<int32_t>(random.between(1, 3000)) : 0;
  if (!plan.ring && random.chance(250)) o.wait_ms = random.coin() ? 0 : static_cast<int32_t>(random.between(1, 1000));
  o.tell_waiting = wait_random_.coin();  // a stream of its own: the other choices are what they were
  o.urgent = wait_random_.chance(200);
  if (!plan.ring && wait_random_.chance(300)) o.wait_ms = REDLOCK_WAIT_DEFAULT;
  o.min_validity_ms = random.chance(100) ? o.ttl_ms / 2 : 0;
  o.max_hold_ms = random.pick(holds);
  o.retry_delay_ms = plan.settings.retry_delay_ms;
  o.renew = random.coin();
  o.fenced = plan.fenced;
  if (keeps(user)) {
    o.renew = true;
    o.max_hold_ms = 0;
    o.wait_ms = -1;
  }
  o.wants_holder = user.index % 2 == 0;
  user.resources = 1u << (plan.many && index_ == 0 ? user.index : random.below(plan.resources));
  if (plan.several && random.coin()) user.resources |= 1u << random.below(plan.resources);
  if (plan.several && random.chance(200)) user.resources = (1u << plan.resources) - 1;
  user.asked_at = t_;
  user.ups_before = ups_;
  user.left = false;
  Bytes wanted[resources_max];
  unsigned n = 0;
  for (unsigned r : each(user.resources)) wanted[n++] = Bytes(resource_name(r), name_size);
  char packed[name_size * resources_max];
  Names resources;
  resources.assign(packed, wanted, n);
  const int err = client_->acquire(resources, o, on_event, &user, user.handle);
  if (world_.story().telling()) {
    const std::string name(packed, resources.bytes());
    world_.story().tell(t_, int(index_), -1, "u%u acquires %s ttl %u wait %d%s: %d", user.index, name.c_str(), o.ttl_ms,
                        o.wait_ms, o.renew ? " renew" : "", err);
  }
  if (err == REDLOCK_E_CLOSED) return;
  if (err != 0) {
    // Every user has one lock at most and the table holds all of them; only the slot whose callback runs is not free
    // yet.
    if (err != REDLOCK_E_TABLE_FULL || !in_callback_) world_.violate(t_, 1u << index_, "acquire was refused: %d", err);
    user.due = t_ + 1 * ms;
    return;
  }
  user.state = User::State::pending;
  if (!world_.plan().ring && random.chance(60)) user.due = t_ + random.spread(10 * us, 300 * ms);
}

void Process::work(User& user) {
  Stream& random = user_random_;
  if (user.habit != User::Habit::to_the_end) return let_go(user);
  check(user);
  if (random.chance(80)) {
    extend(user);
    if (random.chance(300)) {  // while the extend is on its way
      user.patience = 1;
      user.due = t_ + random.spread(1 * us, 3 * ms);
      return;
    }
  }
  if (random.chance(30)) abuse(user);
  if (--user.patience == 0) return let_go(user);
  user.due = t_ + random.spread(1 * ms, user.options.ttl_ms * ms / 4);
}

// What redlock_check does before each step of the work.
void Process::check(User& user) {
  Instant now;
  const bool agrees = clock_.check(now);
  const uint32_t need = static_cast<uint32_t>(user_random_.below(user.options.ttl_ms / 8));
  const Verdict verdict =
      judge(*client_->cell(user.handle), Table::generation(user.handle), agrees, now, Duration::ms(need));
  if (world_.story().telling()) {
    world_.story().tell(t_, int(index_), -1, "u%u checks for %u ms: %s", user.index, need,
                        verdict.held == Held::held ? "held" : "no");
  }
  if (ProofRun* const proof = world_.proof_run(); proof != nullptr && verdict.held != Held::too_little)
    proof->checked(index_, user.handle, verdict.held == Held::held, t_);
  if (verdict.held == Held::held) world_.checker().checked(index_, user, t_, now, boot_read_at_);
  if (!agrees && slept_since_learned()) world_.checker().doubted(index_, user);
}

void Process::extend(User& user) {
  const uint32_t ttl = user_random_.coin() ? 0 : std::min(world_.plan().ttl_ms[1], client_->settings().max_ttl_ms);
  const int err = client_->extend(user.handle, ttl);
  if (world_.story().telling()) world_.story().tell(t_, int(index_), -1, "u%u extends by %u: %d", user.index, ttl, err);
  if (err == REDLOCK_E_STALE || err == REDLOCK_E_INVAL) {
    world_.violate(t_, 1u << index_, "extend of a lock with no terminal event yet: %d", err);
  }
  // Stopped with the extend on its way until about the end of the validity: the votes are read when it is over, or not.
  if (!world_.on(Fault::pause) || !user_random_.chance(60)) return;
  world_.count(Fault::pause);
  const Ns left = client_->cell(user.handle)->read().valid_until.ns() - last_turn_.ns();
  pause(t_ + world_.clip(t_, left + user_random_.between(-20 * ms, 40 * ms)));
}

void Process::let_go(User& user) {
  if (world_.story().telling()) world_.story().tell(t_, int(index_), -1, "u%u releases", user.index);
  user.left = true;
  world_.checker().released(index_, user.handle, t_);
  if (ProofRun* const proof = world_.proof_run()) proof->released(index_, user.handle);
  const int err = client_->release(user.handle);
  if (err != 0) world_.violate(t_, 1u << index_, "release of a lock with no terminal event yet: %d", err);
}

// Another thread releases what was LOST, while one that checked before goes on: the belief stays (checker.hpp).
void Process::release_again(const User& user) {
  if (user.ended == 0) return;
  if (world_.story().telling()) world_.story().tell(t_, int(index_), -1, "u%u releases what has ended", user.index);
  const int err = client_->release(user.ended);
  if (err != 0) world_.violate(t_ - second, 1u << index_, "release of a lock that has ended: %d", err);
}

// Calls with handles that are stale must do nothing.
void Process::abuse(User& user) {
  if (user.ended == 0) return;
  uint64_t handle = user.ended;
  Instant now;
  const bool agrees = clock_.check(now);
  const Held held = judge(*client_->cell(handle), Table::generation(handle), agrees, now, Duration::ns(0)).held;
  const int extended = client_->extend(handle, 0);
  const int released = client_->release(handle);
  const int canceled = client_->cancel(handle);
  if (held == Held::held || held == Held::too_little || extended == 0 || released != 0 || canceled != 0) {
    world_.violate(t_ - second, 1u << index_, "a stale handle was accepted: check %d, extend %d, release %d, cancel %d",
                   static_cast<int>(held), extended, released, canceled);
  }
}

// ---- what they are told ---------------------------------------------------------------------------------------

void Process::on_event(redlock_t*, const redlock_event_t* event, void* user) {
  User& who = *static_cast<User*>(user);
  who.process->on_user_event(who, *event);
}

void Process::on_user_event(User& user, const redlock_event_t& event) {
  World& w = world_;
  const uint32_t me = 1u << index_;
  const bool waits = event.type == REDLOCK_EV_WAITING;
  const char* name = waits ? "WAITING" : event.type >= 1 && event.type <= 6 ? event_names[event.type] : "?";
  if (w.story().telling()) {
    w.story().tell(t_, int(index_), -1, "u%u %s err %d%s validity %lld votes %u/%u/%u round %u", user.index, name,
                   event.err, cause_names[event.cause], static_cast<long long>(event.validity_ms),
                   event.granted, event.refused, event.failed,
                   event.rounds);
  }
  if (user.state == User::State::idle || event.lock.id != user.handle) {
    return w.violate(user.asked_at, me, "u%u got %s after the terminal event, or of a lock that is not its own",
                     user.index, name);
  }
  const bool held = user.state == User::State::held;
  const bool fits = waits || event.type == REDLOCK_EV_ACQUIRED || event.type == REDLOCK_EV_FAILED ? !held : held;
  if (!fits) return w.violate(user.asked_at, me, "u%u got %s in the wrong state", user.index, name);
  watch_instant(user, event);
  if (event.type == REDLOCK_EV_RELEASED && !user.left && !closing_) {
    w.violate(user.asked_at, me, "u%u got RELEASED and did not ask for it", user.index);
  }
  if (!held) w.witness().counted(index_, user, event);
  switch (event.type) {
    case REDLOCK_EV_ACQUIRED:
      owner_knows(user, event);
      break;
    case REDLOCK_EV_WAITING:
      w.checker().waits(index_, user, event);
      break;
    case REDLOCK_EV_RENEWED:
    case REDLOCK_EV_AT_RISK:
      if (event.validity_ms < 0) w.violate(user.asked_at, me, "negative validity");
      break;
    case REDLOCK_EV_LOST:
      if (!jumped_) w.checker().lost(index_, user, t_);
      w.checker().ended(index_, user, event.rounds, t_);
      ended(user);
      if (wait_random_.coin()) release_again(user);  // in the callback
      break;
    default:
      if (event.type == REDLOCK_EV_FAILED) w.checker().failed(index_, user, event, t_);
      w.checker().ended(index_, user, event.rounds, t_);
      ended(user);
      if (event.cause == REDLOCK_CAUSE_NEVER && event.master_err == REDLOCK_E_LEFT) w.left_behind(index_, t_);
      if (event.type == REDLOCK_EV_RELEASED && user.index == 0 && w.plan().endless && !idle()) user.due = t_;
      break;
  }
  // Most of all where another event waits behind this one.
  if (w.on(Fault::slow_callback) && user_random_.chance(client_->notices().of_locks() ? 300 : 20)) {
    w.count(Fault::slow_callback);
    t_ += w.clip(t_, user_random_.spread(1 * ms, user.options.ttl_ms * 3 / 2 * ms));
    if (w.story().telling()) w.story().tell(t_, int(index_), -1, "u%u returns from a slow callback", user.index);
  }
  if (user_random_.chance(50)) meddle(user);
}

void Process::owner_knows(User& user, const redlock_event_t& event) {
  user.state = User::State::held;
  const Claims& claims = client_->claims();
  for (uint16_t i = 0; i < claims.capacity(); ++i) {
    const bool its = claims[i].used && claims[i].slot == (user.handle & 0xFFFF) - 1;
    if (its) memcpy(user.value, hex_of(claims[i]).data(), sizeof user.value);
  }
  ++world_.totals.grants;
  world_.checker().acquired(index_, user, t_);
  world_.witness().published(index_, user, client_->cell(user.handle)->read().valid_until, t_);
  world_.checker().token_given(index_, user, event, t_);
  Stream& random = user_random_;
  const bool holds = keeps(user) && !world_.quiet();
  const uint64_t habit = holds ? 2 : random.below(3);
  const Ns ttl = user.options.ttl_ms * ms;
  user.patience = 1000;
  if (habit == 0 || (world_.quiet() && random.coin())) {
    user.habit = User::Habit::shortly;
    user.due = t_ + random.spread(10 * us, 50 * ms);
  } else if (habit == 1) {
    user.habit = User::Habit::about_ttl;
    user.due = t_ + ttl * random.between(80, 115) / 100;
  } else {
    user.habit = User::Habit::to_the_end;
    user.patience = holds ? 1000 : static_cast<unsigned>(random.between(1, user.options.renew ? 12 : 60));
    user.due = t_ + random.spread(100 * us, ttl / 4);
  }
  world_.granted(index_, t_);
}

void Process::ended(User& user) {
  world_.checker().over(index_, user.handle);
  user.ended = user.handle;
  user.handle = 0;
  user.state = User::State::idle;
  const uint64_t think_ms = world_.plan().think_ms * (idle() ? 50 : 1);
  user.due = t_ + static_cast<Ns>(user_random_.below(think_ms * 2 + 1)) * ms;
}

// API calls from inside a callback.
void Process::meddle(User& user) {
  User& other = users_[user_random_.index_below(users_.size())];
  switch (user_random_.below(4)) {
    case 0:
      if (user.state == User::State::held && !user.left) let_go(user);
      break;
    case 1:
      if (user.state == User::State::held && !user.left) extend(user);
      break;
    case 2:
      if (other.state == User::State::pending) cancel(other.handle);
      break;
    default:
      if (other.state == User::State::idle && !closing_ && !world_.closing()) {
        other.due = never;
        ask(other);
      }
      break;
  }
}

}  // namespace redlock::sim
