// SPDX-License-Identifier: MIT
#include "master/greeting.hpp"

#include "base/digits.hpp"
#include "base/password_file.hpp"
#include "resp/words.hpp"

namespace redlock {

void Greeting::begin(uint32_t nonce, const Instant& now) {
  REDLOCK_ASSERT(out_.fifo.empty());
  REDLOCK_ASSERT(out_.tx.empty());
  nonce_ = nonce;
  resp3_ = true;
  greeted_ = false;
  id_ = 0;
  send_hello(now);
}

// ---- requests -------------------------------------------------------------------------------------------------

void Greeting::send_hello(const Instant& now) {
  static constexpr auto hello = resp::words<2>("HELLO", "3");
  static constexpr auto hello_auth = resp::words<4>("HELLO", "3", "AUTH");
  const bool auth = master_.password.size != 0;
  out_.send(auth ? Bytes(hello_auth) : Bytes(hello), Request::hello, now);
  if (auth) {
    out_.append_reference(master_.user.size != 0 ? master_.user : Bytes("default"));
    out_.append_reference(master_.password);
  }
  out_.append_word("SETNAME");
  out_.append_word(client_name_);
  field_ = field_other;
  role_known_ = false;
}

void Greeting::send_auth(const Instant& now) {
  static constexpr auto auth = resp::words<1>("AUTH");
  static constexpr auto auth_user = resp::words<2>("AUTH");
  const bool user = master_.user.size != 0;
  out_.send(user ? Bytes(auth_user) : Bytes(auth), Request::auth, now);
  if (user) out_.append_reference(master_.user);
  out_.append_reference(master_.password);
}

void Greeting::send_rest(const Instant& now) {
  static constexpr auto tracking = resp::words("CLIENT", "TRACKING", "on", "OPTIN", "NOLOOP");
  static constexpr auto role = resp::words("ROLE");
  static constexpr auto id = resp::words("CLIENT", "ID");
  static constexpr auto load = resp::words<1>("SCRIPT", "LOAD");
  if (any_role()) return send_ping(now);
  const bool guarded = record_.guard().on();
  out_.send(resp3_ ? Bytes(tracking) : Bytes(role), resp3_ ? Request::tracking : Request::role, now);
  if (!resp3_ && guarded) out_.send(id, Request::id, now);
  // Every lock needs these two. The text of another script goes with its first command.
  const Script* const scripts[] = {&release_script, &extend_script};
  for (const Script* script : scripts) {
    out_.send(load, Request::load, now);
    out_.append_reference(script->common, script->body);
  }
  if (guarded) record_.send_first(resp3_, now);
  send_ping(now);
}

void Greeting::send_ping(const Instant& now) {
  static constexpr auto ping = resp::words<1>("PING");
  nonce_ = nonce_ * 1664525u + 1013904223u;
  char word[8];
  write_hex(nonce_, word);
  out_.send(ping, Request::ping, now);
  out_.append_word(Bytes(word, sizeof word));
}

// ---- replies --------------------------------------------------------------------------------------------------

int Greeting::handle(unsigned kind, const resp::Item& item, const Instant& now) {
  switch (kind) {
    case Request::hello:
      return handle_hello(item, now);
    case Request::auth:
      return handle_auth(item, now);
    case Request::role:
      return handle_role(item);
    case Request::load:
      return handle_load(item);
    case Request::id:
      return handle_id(item);
    case Request::kill:
      return handle_kill(item);
    default:
      REDLOCK_ASSERT(kind == Request::ping);
      return handle_ping(item);
  }
}

// HELLO answers a map: the values of "role", "mode" and "id" stand at depth 1.
int Greeting::handle_hello(const resp::Item& item, const Instant& now) {
  using resp::Type;
  if (item.depth == 0 && item.type == Type::error) return hello_failed(error_of(item), now);
  if (item.depth == 0 && item.type != Type::map && item.type != Type::array) return REDLOCK_E_PROTOCOL;
  if (item.depth == 1 && !item.part && (item.type == Type::string || item.type == Type::simple)) {
    if (field_ == field_role) {
      role_known_ = true;
      if (!any_role() && item.text != Bytes("master")) return REDLOCK_E_ROLE;
    }
    if (field_ == field_mode && !any_role() && item.text != Bytes("standalone")) return REDLOCK_E_MODE;
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
  if (!item.last) return 0;
  if (!role_known_) return REDLOCK_E_PROTOCOL;
  send_rest(now);
  return 0;
}

int Greeting::hello_failed(int error, const Instant& now) {
  if (error != REDLOCK_E_SERVER && error != REDLOCK_E_NOPERM) return error;
  resp3_ = false;  // the server does not know HELLO, or not version 3
  if (master_.password.size != 0) {
    send_auth(now);
  } else {
    send_rest(now);
  }
  return 0;
}

int Greeting::handle_auth(const resp::Item& item, const Instant& now) {
  if (item.type == resp::Type::error) return REDLOCK_E_AUTH;
  if (!is_ok(item)) return REDLOCK_E_PROTOCOL;
  send_rest(now);
  return 0;
}

// ROLE answers an array whose first element names the role. A server that forbids ROLE is asked all the same: a replica
// refuses every write.
int Greeting::handle_role(const resp::Item& item) {
  if (const int error = error_of(item)) {
    return error != REDLOCK_E_NOPERM && error != REDLOCK_E_SERVER ? error : 0;
  }
  if (item.depth == 0) {
    field_ = field_role;
  } else if (item.depth == 1 && field_ == field_role) {
    field_ = field_other;
    if (item.text == Bytes("sentinel")) return REDLOCK_E_MODE;
    if (item.text != Bytes("master")) return REDLOCK_E_ROLE;
  }
  return 0;
}

// The server may refuse: a script that it does not know is sent as text when it is needed.
int Greeting::handle_load(const resp::Item& item) {
  if (item.type != resp::Type::error) return item.type == resp::Type::string ? 0 : REDLOCK_E_PROTOCOL;
  return error_of(item) == REDLOCK_E_LOADING ? REDLOCK_E_LOADING : 0;
}

int Greeting::handle_id(const resp::Item& item) {
  if (item.type == resp::Type::integer) id_ = item.integer;
  return 0;
}

// 0: the server had closed the old connection by itself.
int Greeting::handle_kill(const resp::Item& item) {
  if (item.type != resp::Type::integer) return 0;
  strays_ = false;
  out_.tell().strays = Strays::ended;
  return 0;
}

int Greeting::handle_ping(const resp::Item& item) {
  greeted_ = true;
  if (const int error = error_of(item)) {
    return error != REDLOCK_E_NOPERM ? error : 0;  // a user without PING answers in order all the same
  }
  char word[8];
  write_hex(nonce_, word);
  const bool matches = item.type == resp::Type::string && item.text == Bytes(word, sizeof word);
  return matches ? 0 : REDLOCK_E_PROTOCOL;
}

// A refused password counts when the port has looked whether its file has another one now.
int Greeting::what_refusal_means(int error) const {
  if (error == REDLOCK_E_AUTH_MISSING && master_.password.size != 0) error = REDLOCK_E_AUTH;
  if (error != REDLOCK_E_AUTH || master_.file == nullptr) return error;
  master_.file->refused = true;
  return REDLOCK_E_DISCONNECTED;
}

// ---- strays -----------------------------------------------------------------------------------------------------

// An unknown run id is zeros, and no server has such a run id.
void Greeting::keep_old_connection() {
  old_id_ = id_;
  memcpy(old_run_id_, record_.guard().run_id().data, sizeof old_run_id_);
}

// Ids begin anew with each process: in another process the id may be anybody's, and the old connection is gone.
void Greeting::end_old_connection(const Instant& now) {
  static constexpr auto kill = resp::words<1>("CLIENT", "KILL", "ID");
  if (!strays_ || old_id_ <= 0) return;  // none are left once it is up
  if (record_.guard().run_id() != Bytes(old_run_id_, sizeof old_run_id_)) return;
  char digits[20];
  out_.send(kill, Request::kill, now);
  out_.append_word(to_decimal(static_cast<uint64_t>(old_id_), digits));
}

void Greeting::came_up() {
  if (!strays_) return;
  strays_ = false;
  out_.tell().strays = Strays::at_large;
}

}  // namespace redlock
