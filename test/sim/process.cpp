// SPDX-License-Identifier: MIT
//
// The shell of a process: a port of the library's loop (client/turns), over connections that are strings and a timer
// that is a number. What its users do is in users.cpp.
#include "process.hpp"

#include <cstring>
#include <new>
#include <string_view>

#include "world.hpp"

namespace redlock::sim {
namespace {

constexpr Ns read_cost = 40;  // of a clock

}  // namespace

int64_t ClockSource::monotonic_raw_ns() const { return process->machine.at(process->tick(true)).raw; }
int64_t ClockSource::monotonic_ns() const { return process->machine.at(process->tick(true)).mono; }
int64_t ClockSource::boottime_ns() const {
  process->boot_read_at_ = process->tick(true);
  return process->machine.at(process->boot_read_at_).boot;
}

Process::Process(World& world, unsigned index, Process* beside)
    : machine(beside != nullptr ? beside->machine : own_machine_),
      world_(world),
      index_(index),
      clock_random_(world.seed(), Purpose::clock, index),
      user_random_(world.seed(), Purpose::users, index),
      wait_random_(world.seed(), Purpose::waits, index),
      shell_random_(world.seed(), Purpose::shell, index),
      entropy_(world.seed(), Purpose::entropy, index),
      clock_(ClockSource{this}) {
  users_.resize(world.plan().users[index]);
  if (beside != nullptr) return;
  move_to_another_machine(world.plan().client_ppm[index], world.plan().suspended_ppm[index]);
}

void Process::move_to_another_machine(int64_t rate_ppm, int64_t suspended_ppm) {
  const Ns raw = clock_random_.between(1 * second, 1'000'000 * second);
  const Ns mono = raw + clock_random_.between(-second / 2, second);
  const Ns boot = mono + (clock_random_.coin() ? 0 : clock_random_.between(0, 100'000 * second));
  machine.start({raw, mono, boot}, rate_ppm, suspended_ppm);
}

// The true time of a clock read. Between any two the process may lose the processor, or the machine go to sleep.
Ns Process::tick(bool may_preempt) {
  if (exact_) return t_;
  t_ += read_cost;
  if (!may_preempt || !world_.on(Fault::preempt) || !clock_random_.chance(4)) return t_;
  world_.count(Fault::preempt);
  if (world_.on(Fault::suspend) && clock_random_.chance(30)) {
    const Ns length = world_.clip(t_, clock_random_.spread(2 * ms, 2 * world_.plan().ttl_max_ms * ms));
    machine.suspend(t_, length);
    t_ += length;
    if (world_.story().telling()) world_.story().tell(t_, int(index_), -1, "was suspended while it read the clock");
  } else {
    t_ += clock_random_.spread(10 * us, 60 * ms);
  }
  return t_;
}

// ---- life -----------------------------------------------------------------------------------------------------

void Process::start() {
  t_ = std::max(world_.now(), held_until_);
  clock_ = Clock<ClockSource>(ClockSource{this});
  const unsigned sleeps = machine.sleeps();
  if (!clock_.start()) {  // never closely enough together: the program ends with an error, and is started again
    held_until_ = t_;
    world_.heap().push(t_ + 50 * ms, Kind::client_restart, index_);
    return;
  }
  sleeps_known_ = sleeps;
  ahead_known_ = false;
  learn_ahead();
  ++incarnation_;
  std::fill(std::begin(told_), std::end(told_), 0);
  snprintf(name_, sizeof name_, "c%u.%u", index_, incarnation_ % 1000);
  Settings settings = settings_of(world_.plan(), index_);
  settings.client_name = Bytes(name_, strlen(name_));
  settings.has_boot_id = !(world_.plan().idle >> index_ & world_.plan().untracked >> index_ & 1);
  memcpy(settings.boot_id, boot_id().data(), sizeof settings.boot_id);
  constexpr size_t front = (sizeof(Client) + 15) - size_t{15};
  memory_.reset(new char[front + Client::memory_size(settings)]);
  client_ = new (memory_.get()) Client(settings, memory_.get() + front);
  for (Connection*& c : connections_) c = nullptr;
  if (world_.plan().commissioned && index_ == 0 && incarnation_ == 1) {
    client_->commission(settings.masters, clock_.read().now);
  }
  for (unsigned r = 0; r < world_.plan().resources && settings.fence_strict; ++r) {
    client_->fence_init(Bytes(resource_name(r), name_size));
  }
  for (unsigned m = 0; m < world_.plan().masters; ++m) known_[m] = {world_.master(m).step.count, t_, false};
  for (unsigned i = 0; i < users_.size(); ++i) {
    users_[i] = User();
    users_[i].process = this;
    users_[i].index = i;
    const bool together = world_.plan().ring || (world_.plan().many && index_ == 0);
    users_[i].due = t_ + (together ? 1 * ms : user_random_.spread(100 * us, idle() ? 5 * second : 100 * ms));
  }
  timer_fired();  // nothing is armed, and everything is to be done
  armed_boot_ = never;
  jump_unchecked_ = false;
  held_until_ = t_;
  if (world_.story().telling()) world_.story().tell(t_, int(index_), -1, "starts as %s", name_);
  wake(t_);
}

std::string Process::boot_id() const {
  std::string id = "machine-of-" + std::to_string(world_.plan().one_boot_id ? 0 : index_);
  id.resize(Settings::boot_id_size, '-');
  return id;
}

bool Process::idle() const { return world_.plan().idle >> index_ & 1; }

void Process::die(bool politely) {
  if (client_ == nullptr) return;
  for (MasterIndex m = 0; m < masters(); ++m) {
    if (connections_[m] == nullptr) continue;
    if (politely) {
      world_.network().close(*connections_[m], true, world_.now());
    } else {
      world_.network().vanish(*connections_[m], world_.now());
    }
    connections_[m] = nullptr;
  }
  world_.checker().died(index_, world_.now());
  if (ProofRun* const proof = world_.proof_run()) proof->died(index_);
  client_ = nullptr;
  memory_.reset();
}

void Process::close_client() {
  if (client_ == nullptr || closing_) return;
  closing_ = true;
  wake(world_.now());
}

// The offset within the client's clock changes only when it finds a jump.
void Process::learn_ahead() {
  if (ahead_known_) return;
  Instant now;
  exact_ = true;
  ahead_known_ = clock_.check(now);
  exact_ = false;
  if (!ahead_known_) return;
  ahead_ = now.ns() - machine.own(t_);
  if (ahead_ < 0) {
    world_.violate(t_ - second, 1u << index_, "the clock of c%u is %.3f ms behind", index_,
                   static_cast<double>(-ahead_) / 1e6);
  }
}

void Process::call_close() {
  close_called_ = true;
  world_.checker().closes(index_, t_);
  if (ProofRun* const proof = world_.proof_run()) proof->closes(index_);
  client_->close(Duration::ms(1000), clock_.read().now);
}

void Process::pause(Ns until) { held_until_ = std::max(held_until_, until); }

void Process::suspend(Ns length) {
  machine.suspend(world_.now(), length);
  held_until_ = std::max(held_until_, world_.now() + length);
  wake(held_until_);
}

// ---- the loop -------------------------------------------------------------------------------------------------

void Process::wake(Ns t) {
  t = std::max(std::max(t, held_until_), world_.now());
  if (client_ == nullptr || closed_ || t >= wake_at_) return;
  wake_at_ = t;
  world_.heap().push(t, Kind::loop, index_);
}

void Process::loop() {
  if (world_.now() != wake_at_) return;  // an older wish
  wake_at_ = never;
  if (client_ == nullptr || closed_) return;
  if (world_.now() < held_until_) return wake(held_until_);
  ++loops_;
  t_ = world_.now();
  loop_began_ = Instant::never();
  world_.story().mark(static_cast<uint64_t>(t_), index_);

  // Timers or sockets first, by coin; sockets in any order.
  const uint64_t order = shell_random_.next();
  if (order & 1) on_timer();
  const bool users_first = order & 2;
  for (int pass = 0; pass < 2; ++pass) {
    if ((pass == 0) == users_first) {
      for (User& user : users_) {
        if (t_ >= user.due) act(user);
      }
      if (closing_ && !close_called_) call_close();
    } else {
      const unsigned n = masters();
      const unsigned first = static_cast<unsigned>(order >> 8) % n;
      for (unsigned i = 0; i < n; ++i) poll((first + i) % n);
    }
  }
  if (!(order & 1)) on_timer();
  before_wait();
  check_jump();
  held_until_ = std::max(held_until_, t_);
  if (closed_) return world_.checker().closed(index_, *this);
  for (const User& user : users_) {
    if (user.state != User::State::held || user.left) continue;
    const Instant valid_until = client_->cell(user.handle)->read().valid_until;
    if (!world_.checker().published(index_, user, valid_until, t_)) continue;
    world_.witness().published(index_, user, valid_until, t_);
  }
  learn_ahead();
  plan_wake();
}

void Process::plan_wake() {
  Ns next = never;
  if (armed_boot_ != never) next = machine.when_boot(t_, armed_boot_);
  for (const User& user : users_) next = std::min(next, user.due);
  for (MasterIndex m = 0; m < masters(); ++m) {
    const Connection* c = connections_[m];
    if (c == nullptr) continue;
    if (c->answered && (!c->told || c->readable())) next = t_;
    if (c->told && c->blocked) next = std::min(next, c->blocked_until);
  }
  if (next != never) wake(std::max(next, t_ + 1 * us));
}

void Process::on_timer() {
  if (armed_boot_ == never || machine.at(t_).boot < armed_boot_) return;
  armed_boot_ = never;
  timer_fired();
}

void Process::event(const Client::Event& event) {
  check_jump();
  in_callback_ = true;
  if (event.callback != nullptr) event.callback(nullptr, &event.event, event.user);
  world_.story().mark(static_cast<uint64_t>(event.event.type) << 32 | static_cast<uint32_t>(event.event.err),
                      event.event.lock.id);
  if (event.event.type == REDLOCK_EV_MASTER) {
    told_[event.event.master] = event.event.state;
    ups_ += event.event.state == REDLOCK_MASTER_UP ? 1u : 0u;
  }
  if (world_.story().telling() && event.event.type == REDLOCK_EV_MASTER) {
    static constexpr const char* states[] = {"", "down", "connecting", "greeting", "up", "suspect", "guarded"};
    world_.story().tell(t_, int(index_), int(event.event.master), "is %s (%d)", states[event.event.state],
                        event.event.err);
  }
  if (event.event.type == REDLOCK_EV_MASTER && event.event.err == REDLOCK_E_PROTOCOL &&
      !world_.network().heard_nonsense(index_, 1u << set().server[event.event.master], 0)) {
    world_.violate(t_ - second, 1u << index_, "m%u is said to break the protocol, and never did", event.event.master);
  }
  in_callback_ = false;
}

Reading Process::clock_reading() {
  check_jump();
  const unsigned sleeps = machine.sleeps();
  const Reading reading = clock_.read();
  if (reading.jumped) {
    jumped_ = jump_unchecked_ = true;
    // What the clock has learned about suspend holds until the next one.
    if (!slept_since_learned()) {
      world_.violate(t_ - second, 1u << index_, "the clock of c%u had a wrong idea of the time in suspend", index_);
    }
    sleeps_known_ = sleeps;
    if (world_.story().telling()) world_.story().tell(t_, int(index_), -1, "clock jumped");
    ahead_known_ = false;
    learn_ahead();
  }
  loop_began_ = earlier(loop_began_, reading.now);
  if (stepping()) {
    // RELEASED, or a jump, may end a round before its first byte leaves.
    if (ProofRun* const proof = world_.proof_run()) proof->meet(*this, index_);
    last_turn_ = reading.now;
  }
  return reading;
}

Instant Process::input_time() {
  const Instant now = this->now();
  check_jump();
  return now;
}

// After the client knows of it, and before anything is told or the clock is read again.
void Process::check_jump() {
  if (!jump_unchecked_) return;
  jump_unchecked_ = false;
  for (const User& user : users_) {
    if (user.state != User::State::held) continue;
    if (client_->cell(user.handle)->expired(Table::generation(user.handle))) continue;
    world_.violate(user.asked_at, 1u << index_, "u%u holds on after the clock jumped", user.index);
  }
}

// Fewer bytes than a value needs are drawn later, together with others.
size_t Process::fill_random(unsigned char* out, size_t size) {
  if (size < 20) return 0;
  for (size_t i = 0; i < size; i += 8) {
    const uint64_t word = entropy_.next();
    memcpy(out + i, &word, std::min<size_t>(8, size - i));
  }
  return size;
}

bool Process::arm(Instant deadline) {
  armed_boot_ = std::max<Ns>(1, clock_.timer_ns(deadline));
  return true;
}

void Process::ended() { closed_ = true; }

void Process::tell_proof(Instant now) {
  if (ProofRun* const proof = world_.proof_run()) proof->look(*this, index_, now, t_);
}

void Process::turn_ended() {
  tell_proof(last_turn_);
  if (!client_->notices().of_locks()) jumped_ = false;
  if (!client_->wants_turn()) watch_missing();
}

// ---- connections ----------------------------------------------------------------------------------------------

void Process::connect(MasterIndex m, Instant) {
  connections_[m] = &world_.network().open(index_, set().server[m], t_);
}

void Process::close(MasterIndex m, int reason, bool polite, Instant now) {
  if (connections_[m] != nullptr) world_.network().close(*connections_[m], polite, t_);
  connections_[m] = nullptr;
  Turns::closed(m, reason, now);
}

void Process::poll(MasterIndex m) {
  Connection* c = connections_[m];
  if (c == nullptr || !c->answered) return;
  if (!c->told) {
    c->told = true;
    const Instant now = input_time();
    if (c->refused) return close(m, REDLOCK_E_CONNECT, true, now);
    return connected(m, now);
  }
  if (c->error) return close(m, REDLOCK_E_DISCONNECTED, false, input_time());
  if (c->blocked && t_ >= c->blocked_until) {
    c->blocked = false;
    writable(m);
  }
  if (connections_[m] == c && c->readable()) read(m);
}

void Process::read(MasterIndex m) {
  Connection& c = *connections_[m];
  size_t room = 0;
  char* at = client_->rx_room(m, room);
  size_t n = std::min(room, c.in.size() - c.in_taken);
  if (n > 1 && world_.on(Fault::split) && shell_random_.chance(200)) n = 1 + shell_random_.index_below(n);
  memcpy(at, c.in.data() + c.in_taken, n);
  c.in_taken += n;
  c.heard += n;
  if (c.in_taken == c.in.size()) c.in.clear(), c.in_taken = 0;
  const Instant now = input_time();
  if (n == 0) return close(m, room > 0 ? REDLOCK_E_DISCONNECTED : REDLOCK_E_PROTOCOL, false, now);
  const bool unknown = std::string_view(at, n).find("NOSCRIPT") != std::string_view::npos;
  const uint64_t open = open_rounds(), asked = claims_asked(m);
  const uint64_t steps = steps_counted(now);
  client_->received(m, n, now);
  tell_proof(now);
  if (client_->session(m).state() != Session::State::suspect) suspect_[m] = false;  // what it asks now may be asked
  if (unknown) watch_dead_rounds(m, open, asked);
  const bool counted = steps_counted(now) != steps;
  // Who is about to close may have read no further than to an error.
  if (counted || client_->session(m).wish() == Session::Wish::none) learn_step(c, counted);
}

void Process::flush(MasterIndex m, Instant now) {
  tell_proof(now);  // before the first byte
  Connection* c = connections_[m];
  const Tx& tx = client_->output(m);
  if (tx.empty()) {
    watch_suspect(m, nullptr, 0);
    unsent_[m] = 0;
    return;
  }
  Bytes chunks[Tx::chunks_max];
  unsigned n = tx.gather(chunks, Tx::chunks_max);
  watch_suspect(m, chunks, n);
  const auto size = [&] {
    size_t total = 0;
    for (unsigned i = 0; i < n; ++i) total += chunks[i].size;
    return total;
  };
  while (n > 0 && c != nullptr && c->told && !c->blocked) {
    const size_t total = size();
    const size_t sent = world_.network().send(*c, chunks, n, t_);
    if (sent > 0) client_->sent(m, sent);
    c->blocked = sent < total;
    n = tx.gather(chunks, Tx::chunks_max);
  }
  unsent_[m] = size();
}

}  // namespace redlock::sim
