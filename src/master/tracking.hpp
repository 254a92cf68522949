// SPDX-License-Identifier: MIT
//
// Tracking: is client tracking on, and what does a server push about keys that were read on a connection?
//
// The greeting asks for CLIENT TRACKING on OPTIN NOLOOP. From then on a read behind CLIENT CACHING yes registers its
// key, once. The next change of that key by anybody else (deleted, expired, overwritten, but also renewed) causes a
// push: the word "invalidate" and a list of keys. Null instead of the list means every key: after FLUSHALL, and when a
// server changes its role.
//
// A registration is used up by the push, and also by a change of our own, which causes no push (NOLOOP). The server may
// drop any registration at any time, and then sends the same push. So a push never says that a key is free, only that
// the key is worth another look. The push of an expiry may come late without bound, so nobody may wait for a push
// alone.
#pragma once
#include "base/types.hpp"
#include "resp/reader.hpp"

namespace redlock {

class Tracking {
 public:
  enum class Said : uint8_t { nothing, key_changed, all_changed };

  // A new connection, which has no tracking yet.
  void begin() { on_ = false; }
  // The server has confirmed tracking for the present connection.
  bool on() const { return on_; }
  // The replies to CLIENT TRACKING and CLIENT CACHING. 0, or the reason to close the connection.
  int tracking_answered(const resp::Item& item);
  int caching_answered(const resp::Item& item);
  // One item of a push. key_changed: the item's text is the key. A key that comes in parts is longer than any of ours,
  // and is left out.
  Said read(const resp::Item& item);

 private:
  bool on_ = false;
  bool about_keys_ = false;  // the push under way is an invalidation
  bool in_parts_ = false;    // what comes next is the rest of a longer text
};

}  // namespace redlock
