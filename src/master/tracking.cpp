// SPDX-License-Identifier: MIT
#include "master/tracking.hpp"

namespace redlock {

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
