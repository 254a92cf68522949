// SPDX-License-Identifier: MIT
#include "master/session.hpp"

#include "base/digits.hpp"
#include "resp/words.hpp"
#include "resp/writer.hpp"

namespace redlock {
namespace {

enum Field : uint8_t { field_other, field_role, field_mode, field_id };

// Nothing that the gateway repeats quickly will mend these.
bool is_configuration_fault(int reason) {
  switch (reason) {
    case REDLOCK_E_AUTH:
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

Session::Session(const Settings& settings, const MasterSettings& master, Bytes client_name, const Memory& memory)
    : settings_(settings),
      master_(master),
      client_name_(client_name),
      reader_(memory.rx_size),
      rx_(memory.rx),
      rx_capacity_(memory.rx_size),
      fifo_(memory.requests),
      fifo_capacity_(static_cast<uint16_t>(memory.requests_size)),
      calls_(memory.calls),
      guard_(settings),
      has_news_(memory.news) {
  tx_.init(memory.tx, memory.tx_size);
}

// ---- connection -----------------------------------------------------------------------------------------------

void Session::connecting(Instant now) {
  REDLOCK_ASSERT(wish_ == Wish::connect && state_ == State::down);
  wish_ = Wish::none;
  give_up_at_ = now + settings_.connect_timeout;
  set_state(State::connecting);
}

void Session::connected(Instant now, uint32_t nonce) {
  REDLOCK_ASSERT(state_ == State::connecting);
  if (wish_ == Wish::close) return;
  ++connects_;
  nonce_state_ = nonce;
  give_up_at_ = now + settings_.connect_timeout;
  resp3_ = true;
  tracked_ = false;
  spell_out_ = greeted_ = killing_ = false;
  id_ = 0;
  last_error_ = 0;
  greeting_from_ = replies_;
  guard_.connected();
  guard_told_ = static_cast<int16_t>(guard_.reason());
  info_.begin();
  set_state(State::greeting);
  say_hello(now);
}

void Session::closed(Instant now, int reason, uint32_t random) {
  if (wish_ != Wish::close) reason_ = static_cast<int16_t>(reason);
  if (state_ == State::greeting && fifo_size_ == 1 && replies_ == greeting_from_ && reason_ == REDLOCK_E_DISCONNECTED) {
    reason_ = REDLOCK_E_NO_GREETING;
  }
  tried_ = true;
  tracked_ = false;
  keep_old_connection();
  tx_.clear();
  reader_.reset();
  rx_head_ = rx_size_ = 0;
  fifo_head_ = fifo_tail_ = fifo_size_ = own_in_flight_ = 0;
  news_ = {};
  if (said_ == not_answered) said_ = not_asked;
  guard_.connected();
  guard_told_ = static_cast<int16_t>(guard_.reason());
  wish_ = Wish::none;
  int64_t ceiling = int64_t{settings_.reconnect_min_ms} << (failures_ < 16 ? failures_ : 16);
  if (ceiling > settings_.reconnect_max_ms || is_configuration_fault(reason_)) ceiling = settings_.reconnect_max_ms;
  // Between half and all of it: masters that went down together are not all tried in one instant, none at once.
  const Duration half = Duration::ns(Duration::ms(ceiling).ns() / 2);
  retry_at_ = now + half + part_of(half, random);
  if (failures_ < 16) ++failures_;
  set_state(State::down);
}

// Commands about claims were sent on connections that were up, and on no other: what is kept may be of an older one.
void Session::keep_old_connection() {
  if (state_ != State::up && state_ != State::suspect) return;
  const Bytes run_id = guard_.run_id();
  old_id_ = run_id.size != 0 ? id_ : 0;
  if (old_id_ != 0) memcpy(old_run_id_, run_id.data, sizeof old_run_id_);
}

void Session::disconnect(int reason) {
  if (state_ != State::down) fail(reason);
}

void Session::close_quietly() {
  quiet_ = true;
  if (state_ == State::down) {
    wish_ = Wish::none;
    retry_at_ = Instant::never();
  } else {
    fail(REDLOCK_E_CLOSED);
  }
}

void Session::fail(int reason) {
  if (wish_ == Wish::close) return;
  reason_ = static_cast<int16_t>(reason);
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

bool Session::take_changed() {
  const bool changed = changed_;
  changed_ = false;
  return changed;
}

// ---- requests -------------------------------------------------------------------------------------------------

void Session::look(uint16_t who, uint32_t number, const Command& command, Instant now) {
  REDLOCK_ASSERT(connected() && room(command, Command::look_requests));
  tx_.take(command.head());
  if (command.script() != nullptr) weave(command);
  push_request({now, 0, 0, kind_look_caching});
  push_request({now, number, who, kind_look});
}

void Session::track_next(Instant now) {
  if (!tracked_) return;
  tx_.append(Command::caching());
  push_request({now, 0, 0, kind_look_caching});
}

// One word of a command.
void Session::put(Bytes word) {
  char text[16];
  resp::Writer out(text, sizeof text);
  tx_.append(out.bulk_header(word.size).written());
  tx_.append(word);
  tx_.append("\r\n");
}

// The same, of which no copy is made.
void Session::refer(Bytes first, Bytes second) {
  char text[16];
  resp::Writer out(text, sizeof text);
  tx_.append(out.bulk_header(first.size + second.size).written());
  tx_.reference(first);
  tx_.reference(second);
  tx_.append("\r\n");
}

void Session::say_hello(Instant now) {
  static constexpr auto hello = resp::words<2>("HELLO", "3");
  static constexpr auto hello_auth = resp::words<4>("HELLO", "3", "AUTH");
  if (master_.password.size != 0) {
    tx_.append(hello_auth);
    refer(master_.user.size != 0 ? master_.user : Bytes("default"));
    refer(master_.password);
  } else {
    tx_.append(hello);
  }
  put("SETNAME");
  put(client_name_);
  field_ = field_other;
  role_known_ = false;
  push_own(kind_hello, now);
}

void Session::say_auth(Instant now) {
  static constexpr auto auth = resp::words<1>("AUTH");
  static constexpr auto auth_user = resp::words<2>("AUTH");
  const bool user = master_.user.size != 0;
  tx_.append(user ? Bytes(auth_user) : Bytes(auth));
  if (user) refer(master_.user);
  refer(master_.password);
  push_own(kind_auth, now);
}

void Session::say_rest(Instant now) {
  static constexpr auto tracking = resp::words("CLIENT", "TRACKING", "on", "OPTIN", "NOLOOP");
  static constexpr auto role = resp::words("ROLE");
  static constexpr auto id = resp::words("CLIENT", "ID");
  static constexpr auto load = resp::words<1>("SCRIPT", "LOAD");
  tx_.append(resp3_ ? Bytes(tracking) : Bytes(role));
  push_own(resp3_ ? kind_tracking : kind_role, now);
  if (!resp3_ && guard_.on()) {
    tx_.append(id);
    push_own(kind_id, now);
  }
  // Without tracking every acquire is a script.
  const Script* const scripts[] = {&release_script, &extend_script, &acquire_script};
  for (unsigned i = 0; i < (resp3_ || !guard_.on() ? 2 : 3); ++i) {
    tx_.append(load);
    refer(scripts[i]->common, scripts[i]->body);
    push_own(kind_load, now);
  }
  if (guard_.on()) {
    say_info(now);
    say_reading(now, resp3_);
  }
  say_ping(now);
}

void Session::say_ping(Instant now) {
  static constexpr auto ping = resp::words<1>("PING");
  nonce_state_ = nonce_state_ * 1664525u + 1013904223u;
  write_hex(nonce_state_, nonce_);
  tx_.append(ping);
  put(Bytes(nonce_, sizeof nonce_));
  push_own(kind_ping, now);
}

// The text of a script between the copied bytes.
void Session::weave(const Command& command) {
  tx_.reference(command.script()->common);
  tx_.reference(command.script()->body);
  tx_.take(command.tail());
}

// ---- replies --------------------------------------------------------------------------------------------------

void Session::compact() {
  rx_size_ -= rx_head_;
  if (rx_size_ != 0) memmove(rx_, rx_ + rx_head_, rx_size_);
  rx_head_ = 0;
}

bool Session::next_item(Instant now, Reply& out) {
  while (rx_head_ != rx_size_ && wish_ != Wish::close) {  // closed() has emptied it
    resp::Item item;
    size_t used = 0;
    const resp::Progress progress = reader_.next(rx_ + rx_head_, rx_size_ - rx_head_, used, item);
    rx_head_ += used;
    if (progress == resp::Progress::need_more) break;
    if (progress == resp::Progress::broken) {
      fail(why_broken());
      break;
    }
    if (item.push ? handle_push(item, now, out) : handle(item, now, out)) return true;
  }
  return false;
}

// An error may be longer than the buffer, as that of protected mode is: its first words are there.
int Session::why_broken() const {
  if (rx_head_ == rx_size_ || rx_[rx_head_] != '-') return REDLOCK_E_PROTOCOL;
  const int error = classify_error(Bytes(rx_ + rx_head_ + 1, rx_size_ - rx_head_ - 1));
  return error != REDLOCK_E_SERVER ? error : int{REDLOCK_E_PROTOCOL};
}

bool Session::handle_push(const resp::Item& item, Instant now, Reply& out) {
  const Tracking::Said said = tracking_.read(item);
  if (said == Tracking::Said::nothing) return false;
  if (said == Tracking::Said::all_changed || item.text == settings_.meta_key) {
    guard_.withdraw(now);
    guard_changed();
  }
  out = {};
  out.kind = said == Tracking::Said::key_changed ? Reply::Kind::key_changed : Reply::Kind::all_changed;
  out.key = item.text;
  return true;
}

// One item of a reply; true when it is an answer about a claim.
bool Session::handle(const resp::Item& item, Instant now, Reply& out) {
  if (fifo_size_ == 0) {
    fail(item.type == resp::Type::error ? classify_error(item.text) : REDLOCK_E_PROTOCOL);
    return false;
  }
  const Request request = fifo_[fifo_head_];
  const Kind kind = static_cast<Kind>(request.kind);
  bool for_client = false;
  switch (kind) {
    case kind_acquire:
    case kind_extend:
    case kind_release:
    case kind_acquire_fenced:
    case kind_token:
      for_client = handle_claim(kind, request, item, now, out);
      break;
    case kind_look_caching:
    case kind_caching:
      handle_caching(item);
      break;
    case kind_look:
      for_client = handle_look(request, item, out);
      break;
    case kind_hello:
      handle_hello(item, now);
      break;
    case kind_auth:
      handle_auth(item, now);
      break;
    case kind_tracking:
      handle_tracking(item);
      break;
    case kind_role:
      handle_role(item);
      break;
    case kind_load:
      handle_load(item);
      break;
    case kind_info:
      handle_info(item, now);
      break;
    case kind_reading:
      handle_reading(item, request, now);
      break;
    case kind_time:
      handle_time(item, request.sent, now);
      break;
    case kind_write:
      handle_write(item);
      break;
    case kind_visit:
      break;  // refused, clients of this machine do not watch together: each watches by itself
    case kind_record:
      handle_record(item);
      break;
    case kind_id:
      handle_id(item);
      break;
    case kind_kill:
      handle_kill(item);
      break;
    case kind_ping:
      handle_ping(item);
      break;
  }
  if (item.depth == 0 && item.type == resp::Type::error) note_error(classify_error(item.text));
  if (item.last) answered(now);
  return for_client;
}

// The head of the FIFO has its whole answer.
void Session::answered(Instant now) {
  const unsigned kind = fifo_[fifo_head_].kind;
  if (kind > kind_look) --own_in_flight_;
  pop_request(now);
  if (wish_ == Wish::close) return;
  greeted_ = greeted_ || kind == kind_ping;
  if (state_ == State::greeting && greeted_ && !guard_.reading() && !killing_) come_up();
  if (state_ != State::suspect) return;
  if (fifo_size_ == 0) return set_state(State::up);
  give_up_at_ = later(give_up_at_, fifo_[fifo_head_].sent + settings_.suspect_close);
}

void Session::note_error(int error) {
  ++errors_;
  if (error != REDLOCK_E_NOSCRIPT) last_error_ = static_cast<int16_t>(error);
}

// Keys stay behind, where a user may acquire and not delete.
void Session::note_denied(bool denied) {
  if (state_ != State::up || denied == (reason_ == REDLOCK_E_NOPERM)) return;
  reason_ = denied ? REDLOCK_E_NOPERM : 0;
  note_change();
}

bool Session::owes_answer(uint16_t claim) const {
  unsigned at = fifo_head_;
  for (unsigned i = 0; i < fifo_size_; ++i) {
    const Request& request = fifo_[at];
    if (request.claim == claim && request.kind <= kind_token && request.kind != kind_release) return true;
    if (++at == fifo_capacity_) at = 0;
  }
  return false;
}

void Session::come_up() {
  set_state(State::up);
  if (!strays_) return;
  strays_ = false;
  news_.strays = Strays::at_large;
  *has_news_ = true;
}

bool Session::handle_claim(Kind kind, const Request& request, const resp::Item& item, Instant now, Reply& out) {
  const Op op = static_cast<Op>(kind);
  out = {Reply::Kind::answer, op, request.claim, request.round, meaning(op, item), 0, Bytes()};
  const int error = out.meaning.error;
  if (!item.last || error == REDLOCK_E_PROTOCOL) {  // a master answers these with one scalar
    fail(REDLOCK_E_PROTOCOL);
    return false;
  }
  spell_out_ = error == REDLOCK_E_NOSCRIPT;
  if (kind == kind_release && !spell_out_) note_denied(error == REDLOCK_E_NOPERM);
  // The server's role or login changed since the greeting: reconnect.
  if (error == REDLOCK_E_READONLY || error == REDLOCK_E_AUTH) fail(error);
  // A script has found another state, or the server takes over another one's data.
  if (error == REDLOCK_E_SEAL || error == REDLOCK_E_LOADING) {
    guard_.withdraw(now);
    guard_changed();
  }
  if (kind != kind_release && out.meaning.answer == Answer::yes && !guard_.admitted()) {
    out.meaning = {Answer::error, guard_.reason()};  // granted by a state that is not known
  }
  return true;
}

// HELLO answers a map: the values of "role", "mode" and "id" stand at depth 1.
void Session::handle_hello(const resp::Item& item, Instant now) {
  using resp::Type;
  if (item.depth == 0 && item.type == Type::error) return hello_failed(classify_error(item.text), now);
  if (item.depth == 0 && item.type != Type::map && item.type != Type::array) return fail(REDLOCK_E_PROTOCOL);
  if (item.depth == 1 && !item.part && (item.type == Type::string || item.type == Type::simple)) {
    if (field_ == field_role) {
      role_known_ = true;
      if (item.text != Bytes("master")) fail(REDLOCK_E_ROLE);
    }
    if (field_ == field_mode && item.text != Bytes("standalone")) fail(REDLOCK_E_MODE);
    const bool is_key = field_ == field_other;
    field_ = !is_key                        ? field_other
             : item.text == Bytes("role")   ? field_role
             : item.text == Bytes("mode")   ? field_mode
             : item.text == Bytes("id")     ? field_id
                                            : field_other;
  } else if (item.depth == 1 && item.type == Type::integer && field_ == field_id) {
    id_ = item.integer;
    field_ = field_other;
  }
  if (!item.last || wish_ == Wish::close) return;
  if (!role_known_) return fail(REDLOCK_E_PROTOCOL);
  say_rest(now);
}

void Session::hello_failed(int error, Instant now) {
  if (error != REDLOCK_E_SERVER && error != REDLOCK_E_NOPERM) return fail(error);
  resp3_ = false;  // it does not know HELLO, or not version 3
  if (master_.password.size != 0) {
    say_auth(now);
  } else {
    say_rest(now);
  }
}

void Session::handle_auth(const resp::Item& item, Instant now) {
  if (item.type == resp::Type::simple) return say_rest(now);
  fail(item.type == resp::Type::error ? REDLOCK_E_AUTH : REDLOCK_E_PROTOCOL);
}

// A server that refuses it, or a user who may not ask for it, costs the wake-ups and no vote.
void Session::handle_tracking(const resp::Item& item) {
  tracked_ = item.type == resp::Type::simple && item.text == Bytes("OK");
  if (!tracked_ && item.type != resp::Type::error) fail(REDLOCK_E_PROTOCOL);
}

// May be refused: a script that is not known is sent as text when it is needed.
void Session::handle_load(const resp::Item& item) {
  if (item.type == resp::Type::error) {
    if (classify_error(item.text) == REDLOCK_E_LOADING) fail(REDLOCK_E_LOADING);
  } else if (item.type != resp::Type::string) {
    fail(REDLOCK_E_PROTOCOL);
  }
}

// Registers the key that the next command reads. Refused, nobody will be told: as if there were no tracking.
void Session::handle_caching(const resp::Item& item) {
  if (item.type == resp::Type::error) {
    tracked_ = false;
  } else if (item.type != resp::Type::simple) {
    fail(REDLOCK_E_PROTOCOL);
  }
}

bool Session::handle_look(const Request& request, const resp::Item& item, Reply& out) {
  const bool error = item.type == resp::Type::error;
  if (!error && (item.type != resp::Type::integer || item.integer < -2)) {
    fail(REDLOCK_E_PROTOCOL);
    return false;
  }
  out = {};
  out.kind = Reply::Kind::looked;
  out.claim = request.claim;
  out.round = request.round;
  out.ttl = error || !tracked_ ? -3 : item.integer;
  return true;
}

// ROLE answers an array whose first element names the role; a server that forbids it is taken at its word on writes.
void Session::handle_role(const resp::Item& item) {
  if (item.type == resp::Type::error) {
    const int error = classify_error(item.text);
    if (error != REDLOCK_E_NOPERM && error != REDLOCK_E_SERVER) fail(error);
  } else if (item.depth == 0) {
    field_ = field_role;
  } else if (item.depth == 1 && field_ == field_role) {
    field_ = field_other;
    if (item.text == Bytes("sentinel")) return fail(REDLOCK_E_MODE);
    if (item.text != Bytes("master")) fail(REDLOCK_E_ROLE);
  }
}

// ---- strays -----------------------------------------------------------------------------------------------------

// Ids begin anew with each process: in another one the id may be anybody's, and the old connection is gone.
void Session::end_old_connection(Instant now) {
  static constexpr auto kill = resp::words<1>("CLIENT", "KILL", "ID");
  if (!strays_ || old_id_ <= 0) return;  // none are left once it is up
  if (guard_.run_id() != Bytes(old_run_id_, sizeof old_run_id_)) return;
  char digits[20];
  tx_.append(kill);
  put(to_decimal(static_cast<uint64_t>(old_id_), digits));
  push_own(kind_kill, now);
  killing_ = true;
}

void Session::handle_id(const resp::Item& item) {
  if (item.type == resp::Type::integer) id_ = item.integer;
}

// 0: the server had closed it by itself.
void Session::handle_kill(const resp::Item& item) {
  killing_ = false;
  if (item.type != resp::Type::integer) return;
  strays_ = false;
  news_.strays = Strays::ended;
  *has_news_ = true;
}

void Session::handle_ping(const resp::Item& item) {
  if (item.type == resp::Type::error) {
    const int error = classify_error(item.text);
    if (error != REDLOCK_E_NOPERM) fail(error);  // a user without PING answers in order all the same
  } else if (item.type != resp::Type::string || item.text != Bytes(nonce_, sizeof nonce_)) {
    fail(REDLOCK_E_PROTOCOL);
  }
}

// ---- time -----------------------------------------------------------------------------------------------------

Instant Session::on_time(Instant now) {
  switch (state_) {
    case State::down:
      if (now >= retry_at_ && !quiet_) wish(Wish::connect);
      break;
    case State::connecting:
      if (now >= give_up_at_) fail(REDLOCK_E_CONNECT);
      break;
    case State::greeting:
      if (now >= give_up_at_) fail(REDLOCK_E_NODE_TIMEOUT);
      break;
    case State::up:
      if (fifo_size_ != 0 && now >= fifo_[fifo_head_].sent + settings_.node_timeout) {
        set_state(State::suspect);
        // After a stall of our own the answers may be waiting unread: they are given one more node_timeout.
        give_up_at_ = later(fifo_[fifo_head_].sent + settings_.suspect_close, now + settings_.node_timeout);
      }
      read_when_due(now);
      if (fifo_size_ == 0 && now >= ping_at_ && tx_.fits(48)) say_ping(now);
      break;
    case State::suspect:
      if (now >= give_up_at_) fail(REDLOCK_E_NODE_TIMEOUT);
      break;
  }
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
  const Instant next = fifo_size_ != 0 ? fifo_[fifo_head_].sent + settings_.node_timeout : ping_at_;
  return earlier(next, guard_.deadline());
}

}  // namespace redlock
