// SPDX-License-Identifier: MIT
#include "stage.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "guard_scripts.hpp"
#include "lock/validity.hpp"
#include "lock_scripts.hpp"
#include "master/scripts.hpp"

namespace redlock::test {

namespace {

constexpr TrueTime ns_per_ms = 1'000'000;
constexpr TrueTime never = INT64_MAX;
constexpr int64_t local_at_zero = 1'000'000 * ns_per_ms;  // a gateway's clock has run for a while
constexpr unsigned inputs_max = 200'000;                  // at one instant: more is a loop without end

std::string text_in(Bytes bytes) { return std::string(bytes.data, bytes.size); }
std::string sha_of(const Script& script) { return std::string(script.sha.data, script.sha.size); }

std::string short_name(int err) { return std::string(redlock_err_name(err)).substr(sizeof "REDLOCK_E_" - 1); }

uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// The first whole command of `bytes`, or nothing.
std::optional<size_t> command_end(const std::string& bytes, std::vector<std::string>& words) {
  words.clear();
  size_t at = 0;
  const auto number = [&](char mark) -> std::optional<size_t> {
    const size_t end = bytes.find("\r\n", at);
    if (end == std::string::npos) return std::nullopt;
    if (bytes[at] != mark) std::abort();  // the client never sends anything else
    const size_t value = std::stoul(bytes.substr(at + 1, end - at - 1));
    at = end + 2;
    return value;
  };
  const std::optional<size_t> count = number('*');
  if (!count) return std::nullopt;
  for (size_t i = 0; i < *count; ++i) {
    const std::optional<size_t> size = at < bytes.size() ? number('$') : std::nullopt;
    if (!size || bytes.size() < at + *size + 2) return std::nullopt;
    words.push_back(bytes.substr(at, *size));
    at += *size + 2;
  }
  return at;
}

// "invalidate" and a list of keys, or null: "bus changed", "all keys changed".
std::string push_in_words(const std::string& bytes) {
  const size_t list = bytes.find("\r\n*1\r\n$");
  if (list == std::string::npos) return "all keys changed";
  const size_t key = bytes.find("\r\n", list + 7) + 2;
  return bytes.substr(key, bytes.find("\r\n", key) - key) + " changed";
}

std::string reply_in_words(const std::string& bytes) {
  if (bytes.empty()) return "no answer";
  const std::string line = bytes.substr(1, bytes.find('\r') - 1);
  switch (bytes[0]) {
    case '+':
    case ':':
      return line;
    case '-': {
      const std::string word = line.substr(0, line.find(' '));
      return "-" + (word == "ERR" ? line.substr(0, 40) : word);
    }
    case '_':
      return "nil";
    case '>':
      return push_in_words(bytes);
    case '$': {
      const size_t start = bytes.find('\n') + 1;
      if (line == "-1") return "nil";
      return bytes.find('\n', start) + 1 < bytes.size() ? "(bytes)" : bytes.substr(start, bytes.size() - start - 2);
    }
    case '%':
    case '*':
      return "(" + line + " items)";
    default:
      return "(bytes)";
  }
}

bool is_greeting(const std::vector<std::string>& words) {
  const std::string& word = words[0];
  return word == "HELLO" || word == "AUTH" || word == "ROLE" || word == "SCRIPT" || word == "PING" ||
         word == "CLIENT" || word == "INFO" || word == "TIME" ||
         (word == "EVAL" && words[1] == text_of(reading_script));
}

bool is_caching(const std::vector<std::string>& words) { return words[0] == "CLIENT" && words[1] == "CACHING"; }

}  // namespace

std::string ms_text(TrueTime ns) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3f", static_cast<double>(ns) / 1e6);
  std::string out = text;
  while (out.back() == '0') out.pop_back();
  if (out.back() == '.') out.pop_back();
  return out;
}

void register_scripts(RedisDouble& redis) {
  register_guard_scripts(redis);
  register_lock_scripts(redis);
}

// ---- gateway: the API -----------------------------------------------------------------------------------------

Gateway::Gateway(Stage& stage, std::string gateway_name, unsigned number, const Settings& settings, int64_t rate_ppm)
    : name(std::move(gateway_name)),
      stage_(stage),
      number_(number),
      rate_ppm_(rate_ppm),
      memory_(Client::memory_size(settings) / sizeof(uint64_t) + 1),
      client_(std::make_unique<Client>(settings, memory_.data())),
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
  after_call();
  return err;
}

int Gateway::cancel(const std::string& label) {
  const int err = client_->cancel(handles_.at(label).id);
  after_call();
  return err;
}

int Gateway::extend(const std::string& label, uint32_t ttl_ms) {
  const int err = client_->extend(handles_.at(label).id, ttl_ms);
  after_call();
  return err;
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
  const int err = client_->release(handles_.at(label).id);
  after_call();
  return err;
}

int Gateway::close(uint32_t grace_ms) {
  const int err = client_->close(Duration::ms(grace_ms), local(stage_.now_));
  after_call();
  return err;
}

int Gateway::suspended() {
  const int err = client_->suspended(local(stage_.now_));
  after_call();
  return err;
}

int Gateway::commission() {
  const int err = client_->commission(client_->settings().masters, now());
  after_call();
  return err;
}

MasterIndex Gateway::index_of(unsigned number) const {
  MasterIndex m = 0;
  while (m < connections_.size() && number_of(m) != number) ++m;
  return m;
}

void Gateway::act(const std::function<void(Instant now)>& input) {
  input(now());
  after_call();
}

// Between two calls of the API the loop's prepare runs; inside a callback the turn under way goes on.
void Gateway::after_call() {
  if (stepping() && !closed_) return;
  loop();
  stage_.settle();
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
    default:
      return "?";
  }
}

const char* state_name(int state) {
  static constexpr const char* names[] = {"?", "down", "connecting", "greeting", "up", "suspect", "guarded"};
  return names[state];
}

std::string event_text(const std::string& label, const redlock_event_t& e) {
  std::string text = std::string(event_name(e.type)) + " " + label;
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
  TrueTime at = static_cast<TrueTime>(static_cast<double>(elapsed) / rate) - 1000;
  if (at < stage_.now_) at = stage_.now_;
  while (local(at) < armed_for()) ++at;
  return at;
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

void Gateway::event(const Client::Event& event) {
  const auto found = labels_.find(event.event.lock.id);
  const std::string label = found != labels_.end() ? found->second : "";
  told_.push_back({stage_.now_ms(), label, event.event});
  watch(label, event.event);
  if (stage_.on_event) stage_.on_event(*this, label, event.event);
}

void Gateway::ended() {
  closed_ = true;
  const unsigned debts = client_->claims().debts();
  stage_.note(name + ": CLOSED" + (debts != 0 ? ", " + std::to_string(debts) + " debts unpaid" : ""));
}

// One of ACQUIRED and FAILED, then one of RELEASED and LOST, and nothing after the end.
void Gateway::watch(const std::string& label, const redlock_event_t& e) {
  if (e.type == REDLOCK_EV_MASTER) {
    const unsigned m = number_of(e.master);
    std::pair<int, int>& shown = shown_[m];
    const bool passing = e.state == REDLOCK_MASTER_CONNECTING || e.state == REDLOCK_MASTER_GREETING;
    if (shown == std::pair<int, int>(e.state, e.err) || (passing && !stage_.show_greetings)) return;
    if (shown.first == 0 && e.state == REDLOCK_MASTER_DOWN && e.err == 0 && !stage_.show_greetings) return;
    shown = {e.state, e.err};
    stage_.write_down(name + ": master", m, state_name(e.state) + (e.err != 0 ? " " + short_name(e.err) : ""));
    return;
  }
  stage_.note(name + ": " + event_text(label, e));
  Handle& handle = handles_[label];
  if (labels_.count(e.lock.id) == 0 || handle.id != e.lock.id) return;
  const bool verdict = e.type == REDLOCK_EV_ACQUIRED || e.type == REDLOCK_EV_FAILED;
  if (handle.ended || verdict == handle.decided) {
    ++stage_.violations_;
    stage_.note("VIOLATION: " + name + " was told " + event_name(e.type) + " out of order about " + label);
  }
  handle.decided = true;
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
    if (stage_.master(number_of(m)).way == Way::stuffed) {
      c.full = true;
      return;
    }
    Bytes chunks[Tx::chunks_max];
    const unsigned n = tx.gather(chunks, Tx::chunks_max);
    std::string bytes;
    for (unsigned i = 0; i < n; ++i) bytes.append(chunks[i].data, chunks[i].size);
    client_->sent(m, bytes.size());
    stage_.arrive(c.id, bytes);
  }
}

// ---- gateway: its loop ----------------------------------------------------------------------------------------

void Gateway::loop() {
  if (stepping() || closed_) return;
  if (pending()) ++steps_;
  before_wait();
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
      const size_t size = bytes.size() < room ? bytes.size() : room;
      memcpy(at, bytes.data(), size);
      bytes.erase(0, size);
      client_->received(m, size, now);
    }
    loop();
  }
}

// ---- stage ----------------------------------------------------------------------------------------------------

Stage::Stage(unsigned masters) {
  for (unsigned m = 0; m < masters; ++m) {
    masters_.push_back(std::make_unique<Master>(m + 1));
    register_scripts(masters_.back()->redis);
  }
}

Stage::~Stage() = default;

Gateway& Stage::add(const std::string& name, const std::function<void(Settings&)>& change, int64_t rate_ppm,
                    bool entropy, bool commission) {
  static constexpr const char* names[] = {"m1", "m2",  "m3",  "m4",  "m5",  "m6",  "m7", "m8",
                                          "m9", "m10", "m11", "m12", "m13", "m14", "m15"};
  Settings settings;
  settings.masters = masters();
  for (unsigned m = 0; m < masters(); ++m) {
    settings.master[m].name = Bytes(names[m], strlen(names[m]));
    settings.master[m].host = Bytes("127.0.0.1");
    settings.master[m].port = static_cast<uint16_t>(m + 1);
  }
  settings.client_name = Bytes(name.data(), name.size());
  if (change) change(settings);
  const unsigned number = static_cast<unsigned>(gateways_.size()) + 1;
  gateways_.push_back(std::unique_ptr<Gateway>(new Gateway(*this, name, number, settings, rate_ppm)));
  Gateway& gateway = *gateways_.back();
  gateway.set_entropy(entropy);
  if (commission) gateway.client_->commission(settings.masters, gateway.now());
  gateway.loop();
  settle();
  return gateway;
}

Gateway& Stage::gateway(const std::string& name) {
  for (const auto& gateway : gateways_) {
    if (gateway->name == name) return *gateway;
  }
  std::fprintf(stderr, "no gateway is called %s\n", name.c_str());
  std::abort();
}

// ---- time -----------------------------------------------------------------------------------------------------

void Stage::advance_ms(double ms) {
  const TrueTime until = now_ + static_cast<TrueTime>(ms * 1e6 + 0.5);
  unsigned at_once = 0;
  TrueTime before = now_;
  while (run_one(until)) {
    at_once = now_ == before ? at_once + 1 : 0;
    before = now_;
    if (at_once == inputs_max) {
      std::fprintf(stderr, "the stage does not come to rest:\n%s", take_story().c_str());
      std::abort();
    }
  }
  if (now_ < until) now_ = until;  // a callback may have taken longer
}

void Stage::settle() {
  for (const auto& gateway : gateways_) {
    if (gateway->stepping() && !gateway->closed_) return;  // called from a callback: the step under way comes to it
  }
  for (unsigned m = 1; m <= masters(); ++m) tell_pushed(m);
  advance_ms(0);
}

// The earliest thing that is due by then: an input, else a timer. A paused gateway lets its own wait.
bool Stage::run_one(TrueTime until) {
  auto input = inputs_.begin();
  while (input != inputs_.end() && sockets_.at(input->second.socket).gateway->paused_) ++input;
  TrueTime at = input != inputs_.end() ? input->first.first : never;
  Gateway* timer = nullptr;
  for (const auto& gateway : gateways_) {
    if (!gateway->paused_ && gateway->due() < at) {
      timer = gateway.get();
      at = timer->due();
    }
  }
  if (at > until || at == never) return false;
  if (now_ < at) now_ = at;
  if (timer != nullptr) {
    timer->timer_fired();
    timer->loop();
    return true;
  }
  const Input taken = input->second;
  inputs_.erase(input);
  feed(*sockets_.at(taken.socket).gateway, taken);
  return true;
}

void Stage::feed(Gateway& gateway, const Input& input) {
  const Socket& socket = sockets_.at(input.socket);
  const MasterIndex m = gateway.index_of(socket.master);
  Gateway::Connection& c = gateway.connections_[m];
  if (!socket.open || c.id != input.socket || gateway.closed_) return;
  switch (input.kind) {
    case Input::Kind::connected: {
      c.state = Gateway::Connection::State::open;
      gateway.connected(m, gateway.now());
      break;
    }
    case Input::Kind::refused:
      gateway.close(m, REDLOCK_E_CONNECT, true, gateway.now());
      break;
    case Input::Kind::bytes:
      return gateway.read(m, input.bytes);
    case Input::Kind::end:
      gateway.close(m, REDLOCK_E_DISCONNECTED, false, gateway.now());
      break;
  }
  gateway.loop();
}

// ---- between gateways and masters -----------------------------------------------------------------------------

uint64_t Stage::open_socket(Gateway& gateway, unsigned number) {
  const uint64_t id = next_socket_++;
  Socket& socket = sockets_[id];
  socket.gateway = &gateway;
  socket.master = number;
  if (master(number).way == Way::down) {
    send_back(id, socket, "", Input::Kind::refused);
  } else if (master(number).way != Way::unreachable) {
    accept(id, socket);
  }
  return id;
}

void Stage::accept(uint64_t id, Socket& socket) {
  Master& m = master(socket.master);
  socket.conn = m.redis.open(now_);
  send_back(id, socket, "", Input::Kind::connected);
  std::string& greeting = m.redis.out(socket.conn);
  if (greeting.empty()) return;
  send_back(id, socket, greeting, Input::Kind::bytes);
  greeting.clear();
  send_back(id, socket, "", Input::Kind::end);
}

void Stage::arrive(uint64_t id, const std::string& bytes) {
  Socket& socket = sockets_.at(id);
  const uint64_t write = next_write_++;
  socket.partial += bytes;
  std::vector<std::string> words;
  while (const std::optional<size_t> end = command_end(socket.partial, words)) {
    socket.unread.push_back({socket.partial.substr(0, *end), write});
    socket.partial.erase(0, *end);
    learn_value(words);
    const Way way = master(socket.master).way;
    const bool waits = way == Way::frozen || way == Way::unreachable ||
                       blocked_.count({socket.gateway->name, socket.master}) != 0;
    if (waits && (show_greetings || !is_greeting(words))) {
      write_down(socket.gateway->name + " >", socket.master, in_words(words) + ": unread");
    }
  }
  read(id, socket);
}

void Stage::read(uint64_t id, Socket& socket) {
  if (socket.stalled || blocked_.count({socket.gateway->name, socket.master}) != 0) return;
  const Way way = master(socket.master).way;
  if (way != Way::answering && way != Way::silent && way != Way::stuffed) return;
  std::vector<Socket::Request> requests;
  requests.swap(socket.unread);
  for (size_t i = 0; i < requests.size(); ++i) {
    execute(id, socket, requests[i], i + 1 < requests.size() ? &requests[i + 1] : nullptr);
  }
  if (!socket.open) master(socket.master).redis.close(socket.conn);
}

void Stage::execute(uint64_t id, Socket& socket, const Socket::Request& request, const Socket::Request* next) {
  Master& m = master(socket.master);
  std::vector<std::string> words;
  command_end(request.bytes, words);
  if (m.redis.closed_by_server(socket.conn)) return;
  const bool of_a_reading =
      is_caching(words) && next != nullptr && next->bytes.find(text_of(reading_script)) != std::string::npos;
  m.redis.receive(socket.conn, request.bytes, now_);
  const std::string reply = m.redis.out(socket.conn);
  m.redis.out(socket.conn).clear();
  const std::string answer = reply_in_words(reply);
  executed_.push_back({now_ms(), socket.gateway->name, socket.master, request.write, words, in_words(words), answer});
  std::string fate;
  if (!socket.open) {
    fate = ", to nobody";
  } else if (m.way == Way::silent) {
    socket.held.push_back(reply);
    fate = ", held back";
  } else {
    send_back(id, socket, reply, Input::Kind::bytes);
    if (m.delay > 0) fate = ", on its way";
  }
  const bool looks = words[0] == "EVAL" && words[1] == text_of(look_script);
  if (words[0] == "PTTL" || looks) {  // with the CLIENT CACHING before it
    const std::string names = looks ? executed_.back().text.substr(sizeof "EVAL look") : words[1];
    write_down(socket.gateway->name + " >", socket.master, "look " + names + ": " + answer + fate);
  } else if (show_greetings || !(is_greeting(words) || of_a_reading)) {
    write_down(socket.gateway->name + " >", socket.master, executed_.back().text + ": " + answer + fate);
  }
  if (socket.open && m.redis.closed_by_server(socket.conn)) send_back(id, socket, "", Input::Kind::end);
  tell_pushed(socket.master);
}

// What the master says unasked goes the way of its replies.
void Stage::tell_pushed(unsigned number) {
  Master& m = master(number);
  for (const int conn : m.redis.take_pushed()) {
    std::string& bytes = m.redis.out(conn);
    if (bytes.empty()) continue;
    for (auto& [id, socket] : sockets_) {
      if (socket.master != number || socket.conn != conn || !socket.open) continue;
      write_down(socket.gateway->name + " <", number,
                 reply_in_words(bytes) + (m.way == Way::silent ? ", held back" : ""));
      if (m.way == Way::silent) {
        socket.held.push_back(bytes);
      } else {
        send_back(id, socket, bytes, Input::Kind::bytes);
      }
    }
    bytes.clear();
  }
}

// Replies keep their order also when the delay gets shorter.
void Stage::send_back(uint64_t id, Socket& socket, const std::string& bytes, Input::Kind kind) {
  TrueTime at = now_ + master(socket.master).delay;
  if (at < socket.last_arrival) at = socket.last_arrival;
  socket.last_arrival = at;
  inputs_[{at, next_input_++}] = {kind, id, bytes};
}

// The gateway closes its end. What the master has not read stays there: a frozen server executes it when it thaws.
void Stage::hang_up(Gateway& gateway, uint64_t id) {
  const auto found = sockets_.find(id);
  if (found == sockets_.end() || found->second.gateway != &gateway) return;
  Socket& socket = found->second;
  socket.open = false;
  socket.partial.clear();
  socket.held.clear();
  if (socket.unread.empty()) master(socket.master).redis.close(socket.conn);
}

void Stage::break_sockets(unsigned number, Unread unread) {
  for (auto& [id, socket] : sockets_) {
    if (socket.master != number) continue;
    if (unread == Unread::dropped) socket.unread.clear();
    if (unread == Unread::stalled) socket.stalled = true;
    if (!socket.open) continue;
    socket.held.clear();
    for (auto input = inputs_.begin(); input != inputs_.end();) {
      input = input->second.socket == id ? inputs_.erase(input) : std::next(input);
    }
    inputs_[{now_, next_input_++}] = {Input::Kind::end, id, ""};
  }
}

// ---- masters --------------------------------------------------------------------------------------------------

RedisDouble& Stage::redis(unsigned number) { return master(number).redis; }

void Stage::set_delay_ms(unsigned number, double ms) { master(number).delay = static_cast<TrueTime>(ms * 1e6); }

void Stage::set_way(unsigned number, Way way) {
  Master& m = master(number);
  const Way before = m.way;
  m.way = way;
  if (way == Way::down) {
    break_sockets(number, Unread::dropped);
    return settle();
  }
  std::vector<uint64_t> mine;
  for (const auto& [id, socket] : sockets_) {
    if (socket.master == number) mine.push_back(id);
  }
  for (const uint64_t id : mine) {
    Socket& socket = sockets_.at(id);
    const bool waits = socket.open && socket.conn == 0 && before == Way::unreachable;
    if (waits && way != Way::unreachable) accept(id, socket);
    if (way == Way::answering) {
      for (const std::string& reply : socket.held) {
        write_down(socket.gateway->name + " <", number, reply_in_words(reply));
        send_back(id, socket, reply, Input::Kind::bytes);
      }
      socket.held.clear();
    }
    read(id, socket);
  }
  if (before == Way::stuffed && way != Way::stuffed) {
    for (const auto& gateway : gateways_) {
      const MasterIndex at = gateway->index_of(number);
      if (at == gateway->connections_.size() || !gateway->connections_[at].full) continue;
      gateway->connections_[at].full = false;
      gateway->writable(at);
      gateway->loop();
    }
  }
  settle();
}

void Stage::answer(unsigned number, unsigned replies) {
  for (auto& [id, socket] : sockets_) {
    if (socket.master != number) continue;
    for (unsigned i = 0; i < replies && !socket.held.empty(); ++i) {
      write_down(socket.gateway->name + " <", number, reply_in_words(socket.held.front()));
      send_back(id, socket, socket.held.front(), Input::Kind::bytes);
      socket.held.erase(socket.held.begin());
    }
  }
  settle();
}

void Stage::reset(unsigned number, Unread unread) {
  break_sockets(number, unread);
  settle();
}

void Stage::block(Gateway& gateway, unsigned number, bool blocked) {
  if (blocked) {
    blocked_.insert({gateway.name, number});
    return;
  }
  blocked_.erase({gateway.name, number});
  for (auto& [id, socket] : sockets_) {
    if (socket.master == number && socket.gateway == &gateway) read(id, socket);
  }
  settle();
}

void Stage::drain(unsigned number) {
  for (auto& [id, socket] : sockets_) {
    if (socket.master != number || !socket.stalled) continue;
    socket.stalled = false;
    read(id, socket);
  }
  settle();
}

void Stage::expire(unsigned number) {
  master(number).redis.tick(now_);
  settle();
}

void Stage::restart(unsigned number, RedisDouble::Keep keep) {
  break_sockets(number, Unread::dropped);
  master(number).redis.crash(keep, now_);
  settle();
}

// ---- the story ------------------------------------------------------------------------------------------------

void Stage::learn_value(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word.size() < 42 || word[40] != ':' || word.find_first_not_of("0123456789abcdef") != 40) continue;
    const std::string owner = word.substr(41);
    if (values_.count(word) == 0) values_[word] = owner + "." + std::to_string(++value_count_[owner]);
  }
}

std::string Stage::label_of(const std::string& value) const {
  const auto found = values_.find(value);
  return found != values_.end() ? found->second : value;
}

namespace {

// "run id:replication id:quarantine id", 16 digits each.
bool is_seal(const std::string& word) {
  return word.size() == 50 && word[16] == ':' && word[33] == ':' &&
         word.find_first_not_of("0123456789abcdef:") == std::string::npos;
}

}  // namespace

std::string Stage::in_words(const std::vector<std::string>& words) const {
  static const std::map<std::string, std::string> names = {
      {sha_of(release_script), "release"}, {text_of(release_script), "release"}, {text_of(look_script), "look"},
      {sha_of(extend_script), "extend"},   {text_of(extend_script), "extend"},   {text_of(reading_script), "reading"},
      {sha_of(acquire_script), "acquire"}, {text_of(acquire_script), "acquire"}, {text_of(record_script), "record"},
      {sha_of(token_script), "token"},     {text_of(token_script), "token"},     {text_of(visit_script), "visit"}};
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[0] == "PING" && i == 1) break;
    const bool script_word = words[0] == "EVALSHA" || words[0] == "EVAL";
    if (i == 2 && (text == "EVAL reading" || text == "EVAL visit")) return text;
    if (i == 2 && text == "EVAL record") return text + (words.back().empty() ? " quarantine" : " seal");
    if (script_word && i == 2) continue;  // the number of keys
    const auto called = script_word ? names.find(words[1]) : names.end();
    // The library's own keys, and the seal.
    if (i > 2 && called != names.end() && (words[i].compare(0, 8, "redlock:") == 0 || words[i].empty())) continue;
    if (i > 0) text += " ";
    const auto script = names.find(words[i]);
    const bool secret = words[0] == "AUTH" ? i + 1 == words.size() && i > 0
                                           : words[0] == "HELLO" && i == 4 && words.size() == 7;
    text += secret ? "***" : is_seal(words[i]) ? "seal" : script != names.end() ? script->second : label_of(words[i]);
  }
  return text;
}

void Stage::note(const std::string& text) { story_.push_back({now_, text, {}, ""}); }

void Stage::write_down(const std::string& before, unsigned number, const std::string& after) {
  for (size_t i = story_.size(); i-- > 0 && story_[i].at == now_;) {
    Line& last = story_[i];
    const bool next = !last.masters.empty() && last.masters.back() < number;
    if (next && last.before == before && last.after == after) return last.masters.push_back(number);
    const bool aside = last.after.compare(0, 5, "look ") == 0 || last.after.find("changed") != std::string::npos;
    if (!aside) break;
  }
  story_.push_back({now_, before, {number}, after});
}

std::string Stage::take_story() {
  std::string text;
  for (const Line& line : story_) {
    std::string row = ms_text(line.at);
    row += std::string(row.size() < 8 ? 8 - row.size() : 1, ' ') + line.before;
    for (const unsigned m : line.masters) row += " " + std::to_string(m);
    if (!line.after.empty()) row += "  " + line.after;
    text += row + "\n";
  }
  story_.clear();
  return text;
}

std::vector<Executed> Stage::executed(const std::string& first_words, unsigned number) const {
  std::vector<Executed> found;
  for (const Executed& e : executed_) {
    const bool named = number == 0 || e.master == number;
    if (named && e.text.compare(0, first_words.size(), first_words) == 0) found.push_back(e);
  }
  return found;
}

std::map<unsigned, std::string> Stage::holders(const std::string& key) const {
  std::map<unsigned, std::string> found;
  for (unsigned m = 1; m <= masters(); ++m) {
    if (const auto entry = master(m).redis.peek(key, now_)) found[m] = label_of(entry->value);
  }
  return found;
}

std::string Stage::keys(unsigned number) const {
  const RedisDouble& redis = master(number).redis;
  std::string text;
  for (const std::string& key : redis.keys(now_)) {
    const RedisDouble::Entry entry = *redis.peek(key, now_);
    text += (text.empty() ? "" : ", ") + key + "=" + (entry.hash ? "(hash)" : label_of(entry.value));
    if (entry.when_ms != 0) text += " for " + std::to_string(entry.when_ms - redis.wall_ms(now_)) + " ms";
  }
  return text.empty() ? "no key" : text;
}

// Would a check pass now? Read without the mark that a failed check leaves.
bool Gateway::could_act(uint64_t handle) const {
  const ValidityCell* cell = client_->cell(handle);
  if (cell == nullptr || jumped_) return false;
  const ValidityCell::Snapshot seen = cell->read();
  return seen.generation == Table::generation(handle) && !cell->expired(seen.generation) &&
         local(stage_.now_) < seen.valid_until;
}

void Stage::check_exclusion() {
  std::map<std::string, std::string> held;
  for (const auto& gateway : gateways_) {
    for (const auto& [label, handle] : gateway->handles_) {
      if (!gateway->could_act(handle.id)) continue;
      const std::string who = gateway->name + "'s " + label;
      for (const std::string& key : handle.keys) {
        const auto [other, first] = held.insert({key, who});
        if (first || !accused_.insert(other->second + " " + who).second) continue;
        ++violations_;
        note("VIOLATION: " + key + " is held as " + other->second + " and as " + who);
      }
    }
  }
}

}  // namespace redlock::test
