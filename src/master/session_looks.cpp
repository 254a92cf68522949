// SPDX-License-Identifier: MIT
//
// The replies to what a session reads for waiters: how long keys will live, and whose value a key has.
#include "master/session.hpp"

namespace redlock {

bool Session::handle_look(const Request& request, const resp::Item& item, Reply& out) {
  const bool error = item.type == resp::Type::error;
  if (!error && (item.type != resp::Type::integer || item.integer < -2)) {
    fail(REDLOCK_E_PROTOCOL);
    return false;
  }
  out = {};
  out.kind = Reply::Kind::ttl_read;
  out.claim = request.claim;
  out.round = request.round;
  out.ttl = error || !tracked() ? -3 : item.integer;
  return true;
}

bool Session::handle_holder(const Request& request, const resp::Item& item, Reply& out) {
  out = {};
  out.kind = Reply::Kind::holder_read;
  out.claim = request.claim;
  out.round = request.round;
  out.meaning = holder_meaning(item, out.key);
  if (out.meaning.error != REDLOCK_E_PROTOCOL) return true;
  fail(REDLOCK_E_PROTOCOL);
  return false;
}

}  // namespace redlock
