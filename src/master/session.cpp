// SPDX-License-Identifier: MIT
#include "master/session.hpp"

namespace redlock {
namespace {

// Quick attempts to reconnect cannot mend these.
bool is_configuration_fault(int reason) {
  switch (reason) {
    case REDLOCK_E_AUTH:
    case REDLOCK_E_AUTH_MISSING:
    case REDLOCK_E_NOPERM:
    case REDLOCK_E_ROLE:
    case REDLOCK_E_MODE:
    case REDLOCK_E_DUPLICATE:
    case REDLOCK_E_DENIED:
    case REDLOCK_E_PROTOCOL:
      return true;
    default:
      return false;
  }
}

}  // namespace

Session::Session(const CommonSettings& settings, const MasterSettings& master, Bytes client_name, const Memory& memory)
    : settings_(settings),
      rx_(memory.rx),
      rx_capacity_(memory.rx_size),
      for_port_(memory.for_port),
      awake_(memory.awake),
      out_(memory.requests, memory.requests_size, memory.news),
      reader_(memory.rx_size),
      record_(settings, tracking_, out_, memory.begins_until),
      greeting_(master, client_name, record_, out_) {
  out_.tx.init(memory.tx, memory.tx_size, *memory.shared, memory.self);
}

// ---- connection -----------------------------------------------------------------------------------------------

void Session::connecting(const Instant& now) {
  REDLOCK_ASSERT(wish_ == Wish::connect);
  REDLOCK_ASSERT(state_ == State::down);
  wish_ = Wish::none;
  give_up_at_ = now + settings_.connect_timeout;
  set_state(State::connecting);
  check();
}

void Session::connected(const Instant& now, uint32_t nonce) {
  REDLOCK_ASSERT(state_ == State::connecting);
  if (wish_ == Wish::close) return;
  ++connects_;
  give_up_at_ = now + settings_.connect_timeout;
  known_scripts_ = script_bits(Op::release) | script_bits(Op::extend);  // the greeting loads them
  last_error_ = 0;
  record_.connected();
  guard_told_ = static_cast<int16_t>(guard().reason());
  set_state(State::greeting);
  greeting_.begin(nonce, now);
  check();
}

void Session::closed(const Instant& now, int reason, uint32_t random) {
  if (wish_ != Wish::close) reason_ = static_cast<int16_t>(reason);
  const bool ungreeted = in_flight() != 0 && out_.fifo.oldest().kind == Request::hello;
  if (ungreeted && reason_ == REDLOCK_E_DISCONNECTED) reason_ = REDLOCK_E_NO_GREETING;
  tried_ = true;
  // Commands about claims were sent on connections that were up, and on no other.
  if (state_ == State::up || state_ == State::suspect) greeting_.keep_old_connection();
  tracking_.begin();
  out_.clear();
  reader_.reset();
  rx_head_ = rx_size_ = 0;
  record_.closed();
  listener_ = nullptr;
  watched_ = false;
  guard_told_ = static_cast<int16_t>(guard().reason());
  wish_ = Wish::none;
  int64_t ceiling = int64_t{settings_.reconnect_min_ms} << (failures_ < 16 ? failures_ : 16);
  if (ceiling > settings_.reconnect_max_ms || is_configuration_fault(reason_)) ceiling = settings_.reconnect_max_ms;
  // Wait for half of the ceiling or more: masters that went down together are not all tried in one instant, and none at
  // once.
  const Duration half = Duration::ns(Duration::ms(ceiling).ns() / 2);
  retry_at_ = now + half + part_of(half, random);
  if (failures_ < 16) ++failures_;
  set_state(State::down);
  check();
}

void Session::disconnect(int reason) {
  if (state_ != State::down) fail(reason);
  check();
}

void Session::close_quietly() {
  quiet_ = true;
  if (state_ == State::down) {
    wish_ = Wish::none;
    retry_at_ = Instant::never();
  } else {
    fail(REDLOCK_E_CLOSED);
  }
  check();
}

void Session::fail(int reason) {
  if (wish_ == Wish::close) return;
  reason_ = static_cast<int16_t>(greeting_.what_refusal_means(reason));
  wish(Wish::close);
}

void Session::set_state(State state) {
  if (state_ == state) return;
  state_ = state;
  note_change();
  if (state == State::up) {
    tried_ = true;
    reason_ = 0;
    failures_ = 0;
  }
}

// ---- requests -------------------------------------------------------------------------------------------------

void Session::look(uint16_t who, uint32_t number, const Command& command, bool holder, const Instant& now) {
  REDLOCK_ASSERT(connected());
  REDLOCK_ASSERT(room(command, Command::look_requests));
  out_.tx.take(command.head());
  if (command.script() != nullptr) out_.append_script(command);
  watched_ = true;
  if (!holder) out_.fifo.push({now, 0, 0, Request::look_caching, true});
  out_.fifo.push({now, number, who, static_cast<uint8_t>(holder ? Request::holder : Request::look), true});
  check();
}

void Session::ask(const Request& request, const Command& command) {
  REDLOCK_ASSERT(Request::is_about_claim(request.kind));
  REDLOCK_ASSERT(connected());
  REDLOCK_ASSERT(room(command, 1) || request.kind == Request::release);
  REDLOCK_ASSERT(out_.tx.fits(command.text_size(), Outgoing::references_max));
  out_.tx.take(command.head());
  if (command.script() != nullptr) {
    out_.append_script(command);
    known_scripts_ = static_cast<uint8_t>(known_scripts_ | script_bits(static_cast<Op>(request.kind)));
  }
  out_.fifo.push({request.sent, request.round, request.claim, request.kind, true});
}

void Session::track_next(const Instant& now) {
  REDLOCK_ASSERT(connected());
  if (!tracked()) return;
  out_.tx.append(Command::caching());
  out_.fifo.push({now, 0, 0, Request::look_caching, true});
}

bool Session::ask(Bytes begin, const Bytes* words, unsigned count, Listener& listener, const Instant& now) {
  size_t size = 0;
  for (unsigned i = 0; i < count; ++i) size += Outgoing::word_max + words[i].size;
  if (state_ != State::up || wish_ != Wish::none || asked() || !room(size, 2, true)) return false;
  track_next(now);
  out_.tx.reference(begin);
  for (unsigned i = 0; i < count; ++i) out_.append_word(words[i]);
  out_.fifo.push({now, 0, 0, Request::question, true});
  listener_ = &listener;
  check();
  return true;
}

bool Session::take_back(Request& out) {
  if (out_.tx.take_back()) {
    out = out_.fifo.take_back();
    return true;
  }
  write_seals();
  out_.tx.keep();
  check();
  return false;
}

// ---- replies --------------------------------------------------------------------------------------------------

void Session::compact() {
  rx_size_ -= rx_head_;
  memmove(rx_, rx_ + rx_head_, rx_size_);
  rx_head_ = 0;
}

bool Session::next_item(const Instant& now, Reply& out) {
  bool found = false;
  while (!found && rx_head_ != rx_size_ && wish_ != Wish::close) {  // closed() has emptied it
    resp::Item item;
    size_t used = 0;
    const resp::Progress progress = reader_.next(rx_ + rx_head_, rx_size_ - rx_head_, used, item);
    rx_head_ += used;
    if (progress == resp::Progress::need_more) break;
    if (progress == resp::Progress::broken) {
      fail(why_broken());
      break;
    }
    found = item.push ? handle_push(item, now, out) : handle(item, now, out);
  }
  check();
  return found;
}

// An error reply may be longer than the buffer, as that of protected mode is. Its first words are in the buffer.
int Session::why_broken() const {
  if (rx_head_ == rx_size_ || rx_[rx_head_] != '-') return REDLOCK_E_PROTOCOL;
  const int error = classify_error(Bytes(rx_ + rx_head_ + 1, rx_size_ - rx_head_ - 1));
  return error != REDLOCK_E_SERVER ? error : int{REDLOCK_E_PROTOCOL};
}

bool Session::handle_push(const resp::Item& item, const Instant& now, Reply& out) {
  const Tracking::Said said = tracking_.read(item);
  if (said == Tracking::Said::nothing) return false;
  watched_ = false;
  if (said == Tracking::Said::all_changed || item.text == settings_.meta_key) {
    record_.count_change();
    withdraw(now);
  }
  out = {};
  out.kind = said == Tracking::Said::key_changed ? Reply::Kind::key_changed : Reply::Kind::all_changed;
  out.key = item.text;
  return true;
}

// One item of a reply; true when it is for the client.
bool Session::handle(const resp::Item& item, const Instant& now, Reply& out) {
  if (out_.fifo.empty()) {
    fail(item.type == resp::Type::error ? classify_error(item.text) : REDLOCK_E_PROTOCOL);
    return false;
  }
  const Request request = out_.fifo.oldest();
  bool for_client = false;
  if (Request::is_about_claim(request.kind)) {
    for_client = handle_claim(request, item, now, out);
  } else if (request.kind == Request::look || request.kind == Request::holder) {
    for_client = handle_look(request, item, out);
  } else if (const int reason = handle_own(request, item, now)) {
    fail(reason);
  }
  if (item.depth == 0 && item.type == resp::Type::error) note_error(error_of(item));
  if (item.last) answered(now);
  return for_client;
}

// One item of a reply that is not for the client. 0, or the reason to close the connection.
int Session::handle_own(const Request& request, const resp::Item& item, const Instant& now) {
  if (Request::is_of_greeting(request.kind)) return greeting_.handle(request.kind, item, now);
  if (request.kind == Request::tracking) return tracking_.tracking_answered(item);
  if (request.kind == Request::question) {
    listener_->hear(*listener_, item);
    if (item.last) listener_ = nullptr;
    return 0;
  }
  if (!Request::is_of_record(request.kind)) return tracking_.caching_answered(item);
  const bool read = item.last && request.kind <= Request::reading;
  if (read) greeting_.end_old_connection(now);  // the guard has the run id from the fields before
  const int reason = record_.handle(request, item, now);
  if (reason != 0) return reason;
  if (read || request.kind == Request::time) guard_changed();  // the guard has judged behind these
  return 0;
}

// The oldest request has its whole answer.
void Session::answered(const Instant& now) {
  pop_request(Request::is_own(out_.fifo.oldest().kind), now);
  if (wish_ == Wish::close) return;
  if (state_ == State::greeting && greeting_.is_done() && out_.fifo.empty()) come_up(now);
  if (state_ != State::suspect) return;
  if (out_.fifo.empty()) return set_state(State::up);
  give_up_at_ = later(give_up_at_, out_.fifo.oldest().sent + settings_.suspect_close);
}

// A push in the greeting voids the readings asked for so far: that of a stranger's write, or, where a server does not
// heed NOLOOP in scripts, of our own. So the greeting lasts until one counts, and until all is answered: who does not
// wait for the guard leaves a visit before that.
void Session::come_up(const Instant& now) {
  if (guard().withdrawn()) record_.read_when_due(now);
  if (guard().reading()) return;
  if (record_.wants_state()) {  // the client may allow it in this turn, and the events then tell how long the watch is
    out_.tell();
    return;
  }
  set_state(State::up);
  greeting_.came_up();
}

void Session::note_error(int error) {
  ++errors_;
  if (error != REDLOCK_E_NOSCRIPT) last_error_ = static_cast<int16_t>(error);
}

// A user who may acquire but not delete leaves keys behind, so the status shows it.
void Session::note_denied(bool denied) {
  if (state_ != State::up || denied == (reason_ == REDLOCK_E_NOPERM)) return;
  reason_ = denied ? REDLOCK_E_NOPERM : 0;
  note_change();
}

// NOSCRIPT. Of many commands that are to be sent again together, only the first carries the text.
void Session::forget_script(Op op) {
  if (!out_.tx.refers_to(script_of(op).body)) known_scripts_ = static_cast<uint8_t>(known_scripts_ & ~script_bits(op));
}

bool Session::handle_claim(const Request& request, const resp::Item& item, const Instant& now, Reply& out) {
  const Op op = static_cast<Op>(request.kind);
  out = {Reply::Kind::answer, op, request.claim, request.round, meaning(op, item), 0, Bytes()};
  const int error = out.meaning.error;
  if (!item.last || error == REDLOCK_E_PROTOCOL) {  // a master answers these with one scalar
    fail(REDLOCK_E_PROTOCOL);
    return false;
  }
  if (error == REDLOCK_E_NOSCRIPT) forget_script(op);
  if (op == Op::release && error != REDLOCK_E_NOSCRIPT) note_denied(error == REDLOCK_E_NOPERM);
  // The server's role or login changed since the greeting: reconnect.
  if (error == REDLOCK_E_READONLY || error == REDLOCK_E_AUTH || error == REDLOCK_E_AUTH_MISSING) fail(error);
  // A script has found another state, or the server is loading another server's data. A reading that was answered since
  // may have found as much. If it has found another seal than the command carried, the command is asked again.
  if (error == REDLOCK_E_SEAL && request.sent < guard().since()) {
    out.meaning.error = REDLOCK_E_NOSCRIPT;
  } else if (error == REDLOCK_E_LOADING || (error == REDLOCK_E_SEAL && guard().admitted())) {
    withdraw(now);
  }
  if (op != Op::release && out.meaning.answer == Answer::yes && !guard().counts(now)) {  // by a state that is not known
    out.meaning = {Answer::error, guard().admitted() ? REDLOCK_E_UNREAD : guard().reason()};
  }
  return true;
}

// A look, or the question for the holder.
bool Session::handle_look(const Request& request, const resp::Item& item, Reply& out) {
  using resp::Type;
  const bool holder = request.kind == Request::holder;
  const bool expected = holder ? item.type == Type::string || item.type == Type::null
                               : item.type == Type::integer && item.integer >= -2;
  const bool error = item.type == Type::error;
  if (!error && !expected) {
    fail(REDLOCK_E_PROTOCOL);
    return false;
  }
  out = {};
  out.kind = holder ? Reply::Kind::holder_read : Reply::Kind::ttl_read;
  out.claim = request.claim;
  out.round = request.round;
  if (holder) out.meaning.answer = holder_in(item, out.key);
  out.ttl = error || !tracked() ? -3 : item.integer;
  return true;
}

// ---- time -----------------------------------------------------------------------------------------------------

Instant Session::on_time(const Instant& now, const Instant& heard) {
  const Fifo& fifo = out_.fifo;
  switch (state_) {
    case State::down:
      if (now >= retry_at_ && !quiet_) wish(Wish::connect);
      break;
    case State::connecting:
      if (heard >= give_up_at_) fail(REDLOCK_E_CONNECT_TIMEOUT);
      break;
    case State::suspect:
    case State::greeting:
      if (heard >= give_up_at_) fail(REDLOCK_E_NODE_TIMEOUT);
      break;
    case State::up:
      if (!fifo.empty() && heard >= fifo.oldest().sent + settings_.node_timeout) {
        set_state(State::suspect);
        give_up_at_ = fifo.oldest().sent + settings_.suspect_close;
      }
      record_.read_when_due(now);
      guard_changed();
      if (fifo.empty() && now >= ping_at_ && out_.tx.fits(48)) greeting_.send_ping(now);
      break;
  }
  check();
  return deadline();
}

Instant Session::deadline() const {
  if (wish_ != Wish::none) return Instant::never();
  switch (state_) {
    case State::down:
      return retry_at_;
    case State::connecting:
    case State::greeting:
    case State::suspect:
      return give_up_at_;
    case State::up:
      break;
  }
  const Instant next = out_.fifo.empty() ? ping_at_ : out_.fifo.oldest().sent + settings_.node_timeout;
  return earlier(next, guard().deadline());
}

}  // namespace redlock
