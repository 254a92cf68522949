// SPDX-License-Identifier: MIT
//
// A gateway of the stage: the calls of the API, the process with its clock, and its loop.
#include "stage.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "lock/validity.hpp"
#include "run/detail.hpp"
#include "stage_words.hpp"

namespace redlock::test {

using namespace stage_words;

// ---- gateway: the API -----------------------------------------------------------------------------------------

Gateway::Gateway(Stage& stage, std::string gateway_name, unsigned number, const Settings& settings, int64_t rate_ppm)
    : name(std::move(gateway_name)),
      stage_(stage),
      number_(number),
      rate_ppm_(rate_ppm),
      block_(Client::memory_size(settings)),
      client_(std::make_unique<Client>(settings, block_.base())),
      connections_(settings.masters) {}

Options Gateway::options(uint32_t ttl_ms, int32_t wait_ms) {
  return {ttl_ms, wait_ms, 0, 0, REDLOCK_RETRY_DELAY_MS_DEFAULT, false};
}

// "bus+valve": two names, in any order.
int Gateway::acquire(const std::string& resource, const Options& options, const std::string& label) {
  Bytes names[Names::max];
  unsigned n = 0;
  std::vector<std::string> keys;
  for (size_t at = 0; at <= resource.size(); ++n) {
    const size_t end = std::min(resource.find('+', at), resource.size());
    names[n] = Bytes(resource.data() + at, end - at);
    keys.push_back(text_in(client_->settings().key_prefix) + text_in(names[n]));
    at = end + 1;
  }
  char packed[REDLOCK_RESOURCE_BYTES_MAX];
  Names of;
  if (!Names::sort(names, n)) return REDLOCK_E_INVAL;
  of.assign(packed, names, n);
  uint64_t handle = 0;
  const int err = client_->acquire(of, options, nullptr, nullptr, handle);
  if (err == 0) {
    const std::string& key = label.empty() ? resource : label;
    handles_[key] = {handle, keys, false, false};
    labels_[handle] = key;
  }
  return after_call(err);
}

int Gateway::cancel(const std::string& label) {
  return after_call(client_->cancel(handles_.at(label).id));
}

int Gateway::extend(const std::string& label, uint32_t ttl_ms) {
  return after_call(client_->extend(handles_.at(label).id, ttl_ms));
}

int Gateway::fence_init(const std::string& resource) {
  return client_->fence_init(Bytes(resource.data(), resource.size()));
}

uint64_t Gateway::token(const std::string& label) const {
  const uint64_t id = handles_.at(label).id;
  const ValidityCell* cell = client_->cell(id);
  return cell != nullptr ? cell->token(Table::generation(id)) : 0;
}

int Gateway::release(const std::string& label) {
  return after_call(client_->release(handles_.at(label).id));
}

int Gateway::close(uint32_t grace_ms) {
  return after_call(client_->close(Duration::ms(grace_ms), local(stage_.now_)));
}

int Gateway::suspended() {
  return after_call(client_->suspended(local(stage_.now_)));
}

int Gateway::commission() {
  return after_call(client_->commission(client_->settings().masters, now()));
}

MasterIndex Gateway::index_of(unsigned number) const {
  MasterIndex m = 0;
  while (m < connections_.size() && number_of(m) != number) ++m;
  return m;
}

void Gateway::act(const std::function<void(Instant now)>& input) {
  acting_ = true;
  input(now());
  acting_ = false;
  after_call(0);
}

// Between two calls of the API the loop's prepare runs; inside a callback the turn under way goes on.
int Gateway::after_call(int result) {
  if (stepping() && !closed_) return result;
  loop();
  stage_.settle();
  return result;
}

int Gateway::check(const std::string& label, uint32_t need_ms) const {
  const uint64_t id = handles_.at(label).id;
  const ValidityCell* cell = client_->cell(id);
  if (cell == nullptr) return REDLOCK_E_STALE;
  switch (judge(*cell, Table::generation(id), !jumped_, local(stage_.now_), Duration::ms(need_ms)).held) {
    case Held::held:
      return 0;
    case Held::too_little:
      return REDLOCK_E_TOO_SLOW;
    case Held::not_held:
      return REDLOCK_E_NOT_HELD;
    case Held::lost:
      return REDLOCK_E_LOST;
    case Held::stale:
      break;
  }
  return REDLOCK_E_STALE;
}

int64_t Gateway::validity_ms(const std::string& label) const {
  const uint64_t id = handles_.at(label).id;
  const Instant now = local(stage_.now_);
  const Verdict verdict = judge(*client_->cell(id), Table::generation(id), !jumped_, now, Duration::ms(0));
  return verdict.held == Held::held ? remaining_ms(verdict.valid_until, now) : 0;
}

const Told* Gateway::last(const std::string& label) const {
  for (auto told = told_.rbegin(); told != told_.rend(); ++told) {
    if (told->lock == label) return &*told;
  }
  return nullptr;
}

unsigned Gateway::told_count(const std::string& label, int type) const {
  unsigned n = 0;
  for (const Told& told : told_) n += told.lock == label && told.event.type == type ? 1u : 0u;
  return n;
}

namespace {

const char* event_name(int type) {
  switch (type) {
    case REDLOCK_EV_ACQUIRED:
      return "ACQUIRED";
    case REDLOCK_EV_FAILED:
      return "FAILED";
    case REDLOCK_EV_RENEWED:
      return "RENEWED";
    case REDLOCK_EV_AT_RISK:
      return "AT_RISK";
    case REDLOCK_EV_LOST:
      return "LOST";
    case REDLOCK_EV_RELEASED:
      return "RELEASED";
    case REDLOCK_EV_WAITING:
      return "WAITING";
    default:
      return "?";
  }
}

const char* state_name(int state) {
  static constexpr const char* names[] = {"?", "down", "connecting", "greeting", "up", "suspect", "guarded"};
  return names[state];
}

const char* cause_name(int cause) {
  static constexpr const char* names[] = {"none", "held", "guard", "too few", "change", "never"};
  return names[cause];
}

// The cause that follows from the error is left out.
bool is_plain_cause(const redlock_event_t& e) {
  if (e.err == REDLOCK_E_CANCELED) return true;
  switch (e.cause) {
    case REDLOCK_CAUSE_HELD:
      return e.err == REDLOCK_E_LOCKED;
    case REDLOCK_CAUSE_GUARD:
      return e.err == REDLOCK_E_GUARD;
    case REDLOCK_CAUSE_TOO_FEW:
      return e.err == REDLOCK_E_NO_QUORUM;
    default:
      return e.type != REDLOCK_EV_WAITING && e.cause == REDLOCK_CAUSE_NONE;
  }
}

std::string event_text(const std::string& label, const redlock_event_t& e) {
  std::string text = std::string(event_name(e.type)) + " " + label;
  if (!is_plain_cause(e)) text += std::string(" (") + cause_name(e.cause) + ")";
  if (e.err != 0 && e.type != REDLOCK_EV_LOST) text += " " + short_name(e.err);
  if (e.type == REDLOCK_EV_ACQUIRED && e.token != 0) text += ", token " + std::to_string(e.token);
  if (e.flags & REDLOCK_EV_F_FLOORED) text += " (floored)";
  if (e.validity_ms != 0) text += ", " + std::to_string(e.validity_ms) + " ms left";
  if (e.type == REDLOCK_EV_LOST || e.type == REDLOCK_EV_RELEASED) return text;
  std::string votes;
  const auto count = [&votes](uint32_t n, const char* what) {
    if (n != 0) votes += (votes.empty() ? "; " : ", ") + std::to_string(n) + what;
  };
  count(e.granted, " granted");
  count(e.refused, " refused");
  count(e.failed, " failed");
  if (e.failed != 0 && e.master_err != 0) votes += " (" + short_name(e.master_err) + ")";
  count(e.rounds > 1 ? e.rounds : 0, " rounds");
  if (e.guard_ms != 0)
    votes += e.guard_ms < 0 ? ", guard without end" : ", guard for " + std::to_string(e.guard_ms) + " ms";
  if (e.detail != nullptr && *e.detail->holder != '\0') votes += ", by " + std::string(e.detail->holder);
  return text + votes;
}

}  // namespace

std::string Gateway::outcome(const std::string& label) const {
  const Told* told = last(label);
  if (told == nullptr) return "";
  const std::string type = event_name(told->event.type);
  return told->event.err == 0 || told->event.type == REDLOCK_EV_LOST ? type : type + " " + short_name(told->event.err);
}

// ---- gateway: the process and its clock -----------------------------------------------------------------------

Instant Gateway::local(TrueTime now) const {
  return Instant::from_ns(local_at_zero + now + now / 1'000'000 * rate_ppm_ + now % 1'000'000 * rate_ppm_ / 1'000'000);
}

TrueTime Gateway::due() const {
  if (closed_) return never;
  if (armed_for() == Instant::never()) return never;
  if (armed_for() <= local(stage_.now_)) return stage_.now_;
  const int64_t elapsed = armed_for().ns() - local_at_zero;
  const double rate = 1.0 + static_cast<double>(rate_ppm_) / 1e6;
  // The quotient is right but for its rounding: the first instant that is not too early lies close around it.
  const TrueTime about = static_cast<TrueTime>(static_cast<double>(elapsed) / rate);
  TrueTime early = std::max(stage_.now_, about - 1000), due = about + 1000;
  while (due - early > 1) {
    const TrueTime middle = early + (due - early) / 2;
    (local(middle) < armed_for() ? early : due) = middle;
  }
  return due;
}

void Gateway::pause() { paused_ = true; }

void Gateway::resume() {
  paused_ = false;
  stage_.settle();
}

void Gateway::jump() { jumped_ = true; }

// ---- gateway: the port's functions ----------------------------------------------------------------------------

Reading Gateway::clock_reading() { return {local(stage_.now_), std::exchange(jumped_, false)}; }

int64_t Gateway::boot_ms() const { return stage_.now_ / 1'000'000; }

size_t Gateway::fill_random(unsigned char* out, size_t size) {
  if (!entropy_available_) return 0;
  for (size_t i = 0; i < size; ++i) {
    out[i] = static_cast<unsigned char>(mix((uint64_t{number_} << 40) + ++entropy_) & 0xFF);
  }
  return size;
}

void Gateway::event(Client::Event& event) {
  Detail detail;
  if (Notices::is_detailed(event.event.type)) fill_detail(*client_, event, detail);
  const auto found = labels_.find(event.event.lock.id);
  const std::string label = found != labels_.end() ? found->second : "";
  told_.push_back({stage_.now_ms(), label, event.event});
  told_.back().event.detail = nullptr;
  watch(label, event.event);
  if (stage_.on_event) stage_.on_event(*this, label, event.event);
}

void Gateway::ended() {
  closed_ = true;
  const unsigned debts = client_->claims().debts();
  stage_.note(name + ": CLOSED" + (debts != 0 ? ", " + std::to_string(debts) + " debts unpaid" : ""));
}

// WAITING, then one of ACQUIRED and FAILED, then one of RELEASED and LOST, and nothing after the end.
void Gateway::watch(const std::string& label, const redlock_event_t& e) {
  if (e.type == REDLOCK_EV_MASTER) {
    const unsigned m = number_of(e.master);
    std::pair<int, int>& shown = shown_[m];
    const bool passing = e.state == REDLOCK_MASTER_CONNECTING || e.state == REDLOCK_MASTER_GREETING;
    if (shown == std::pair<int, int>(e.state, e.err) || (passing && !stage_.show_greetings)) return;
    if (shown.first == 0 && e.state == REDLOCK_MASTER_DOWN && e.err == 0 && !stage_.show_greetings) return;
    const bool first_up = shown.first == 0 && e.state == REDLOCK_MASTER_UP;
    shown = {e.state, e.err};
    if (first_up && !stage_.show_greetings) return;
    stage_.write_down(name + ": master", m, state_name(e.state) + (e.err != 0 ? " " + short_name(e.err) : ""));
    return;
  }
  stage_.note(name + ": " + event_text(label, e));
  Handle& handle = handles_[label];
  if (labels_.count(e.lock.id) == 0 || handle.id != e.lock.id) return;
  const bool undecided =
      e.type == REDLOCK_EV_ACQUIRED || e.type == REDLOCK_EV_FAILED || e.type == REDLOCK_EV_WAITING;
  if (handle.ended || undecided == handle.decided) {
    ++stage_.violations_;
    stage_.note("VIOLATION: " + name + " was told " + event_name(e.type) + " out of order about " + label);
  }
  handle.decided = e.type != REDLOCK_EV_WAITING;
  handle.ended = e.type == REDLOCK_EV_FAILED || e.type == REDLOCK_EV_LOST || e.type == REDLOCK_EV_RELEASED;
}

void Gateway::connect(MasterIndex m, Instant) {
  connections_[m] = {Connection::State::connecting, stage_.open_socket(*this, number_of(m)), false};
}

void Gateway::close(MasterIndex m, int reason, bool, Instant now) {
  stage_.hang_up(*this, connections_[m].id);
  connections_[m] = {};
  Turns::closed(m, reason, now);
}

void Gateway::flush(MasterIndex m, Instant) {
  Connection& c = connections_[m];
  if (c.state != Connection::State::open || c.full) return;
  const Tx& tx = client_->output(m);
  while (!tx.empty()) {
    size_t& space = stage_.master(number_of(m)).room;
    if (space == 0) {
      c.full = true;
      return;
    }
    Bytes chunks[Tx::chunks_max];
    const unsigned n = tx.gather(chunks, Tx::chunks_max);
    std::string bytes;
    for (unsigned i = 0; i < n; ++i) bytes.append(chunks[i].data, chunks[i].size);
    if (stage_.piece) bytes.resize(std::min(chunks[0].size, stage_.piece()));
    if (space != SIZE_MAX) bytes.resize(std::min(bytes.size(), space)), space -= bytes.size();
    client_->sent(m, bytes.size());
    stage_.arrive(c.id, bytes);
  }
}

// ---- gateway: its loop ----------------------------------------------------------------------------------------

void Gateway::loop() {
  if (stepping() || closed_ || acting_) return;
  if (pending()) ++steps_;
  before_wait(!stage_.input_waits(*this));
  stage_.check_exclusion();
}

void Gateway::read(MasterIndex m, std::string bytes) {
  const uint64_t id = connections_[m].id;
  while (!bytes.empty() && connections_[m].id == id) {
    size_t room = 0;
    char* at = client_->rx_room(m, room);
    const Instant now = this->now();
    if (room == 0) {
      close(m, REDLOCK_E_PROTOCOL, false, now);
    } else {
      const size_t size = std::min({bytes.size(), room, stage_.piece ? stage_.piece() : room});
      memcpy(at, bytes.data(), size);
      bytes.erase(0, size);
      client_->received(m, size, now);
    }
    loop();
  }
}

}  // namespace redlock::test
