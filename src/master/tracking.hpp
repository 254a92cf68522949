// SPDX-License-Identifier: MIT
//
// Tracking: what a server says unasked about keys that were read on a connection.
//
// The greeting asks for CLIENT TRACKING on OPTIN NOLOOP: a read behind CLIENT CACHING yes registers its key, once, and
// the next change of that key by anybody else - deleted, expired, overwritten, but also renewed - is told by a push:
// the word "invalidate" and a list of keys. Null instead of the list means every key: FLUSHALL, and a server that
// changes its role. A registration is used up by the push, also by a change of our own that is not told (NOLOOP), and
// the server may drop any registration at any time and say so by the same push. So a push never says that a key is
// free, only that it is worth another look; and since an expiry may be told late without bound, nobody may wait for a
// push alone.
#pragma once
#include "base/types.hpp"
#include "resp/reader.hpp"

namespace redlock {

class Tracking {
 public:
  enum class Said : uint8_t { nothing, key_changed, all_changed };

  // One item of a push. key_changed: the item's text is the key. A key that comes in parts is longer than any of ours.
  Said read(const resp::Item& item);

 private:
  bool about_keys_ = false;  // the push under way is an invalidation
  bool in_parts_ = false;    // what comes next is the rest of a longer text
};

}  // namespace redlock
