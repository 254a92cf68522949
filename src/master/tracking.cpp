// SPDX-License-Identifier: MIT
#include "master/tracking.hpp"

#include "master/command.hpp"

namespace redlock {

// A server that refuses tracking, or a user who may not ask for it, costs the wake-ups and no vote.
int Tracking::tracking_answered(const resp::Item& item) {
  on_ = is_ok(item);
  return on_ || item.type == resp::Type::error ? 0 : REDLOCK_E_PROTOCOL;
}

// CACHING registers the key that the next command reads. Refused, no change of the key is told: that is as if there
// were no tracking. A text but OK may be two replies in one: from there on every answer would belong to the request
// before, and a grant to another lock.
int Tracking::caching_answered(const resp::Item& item) {
  if (item.type == resp::Type::error) on_ = false;
  return is_ok(item) || item.type == resp::Type::error ? 0 : REDLOCK_E_PROTOCOL;
}

Tracking::Said Tracking::read(const resp::Item& item) {
  using resp::Type;
  const bool cut = in_parts_ || item.part;
  in_parts_ = item.part;
  if (item.depth == 0) {
    about_keys_ = false;
  } else if (item.depth == 1 && item.type == Type::string) {
    about_keys_ = !cut && item.text == Bytes("invalidate");
  } else if (about_keys_ && item.depth == 1 && item.type == Type::null) {
    return Said::all_changed;
  } else if (about_keys_ && item.depth == 2 && item.type == Type::string && !cut) {
    return Said::key_changed;
  }
  return Said::nothing;
}

}  // namespace redlock
