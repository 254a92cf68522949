// SPDX-License-Identifier: MIT
//
// Heap: everything that is going to happen, ordered by (time, sequence). True time is nanoseconds from the world's
// start.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace redlock::sim {

using Ns = int64_t;
constexpr Ns never = INT64_MAX;
constexpr Ns us = 1'000;
constexpr Ns ms = 1'000'000;
constexpr Ns second = 1'000'000'000;

enum class Kind : uint8_t {
  loop,            // client a: its event loop may run
  syn,             // connection a reaches the master
  connect_done,    // connection a: the client learns the outcome
  up,              // connection a: bytes or the end arrive at the master
  down,            // connection a: bytes or the end arrive at the client
  belief,          // what client a believes (b) is compared with what the others believe
  fault,           // the next fault of the seed
  aimed_fault,     // one at client a, right after a grant
  reset,           // connection a breaks
  client_restart,  // client a
  master_restart,  // master a
  freeze,          // master a, for b us
  thaw,            // master a
  mend,            // master a: error states, role and the like are over
  slew,            // client a: the system's clocks change their rate
  sample,          // the checkers look at the world
  quiet,           // no more faults
  close,           // everybody closes
  move,            // the next change of masters begins
  retire,          // the gateways of set a are ended, if nothing has happened since decision b
  follow,          // client a goes on with the set that it was left behind for
  come_back,       // masters of set a come back as they were, at b ms if b is not 0
};

struct Event {
  Ns at;
  uint32_t sequence;  // a world of more events is a violation
  Kind kind;
  uint32_t a;
  uint32_t b;
};

class Heap {
 public:
  void push(Ns at, Kind kind, uint32_t a = 0, uint32_t b = 0) {
    events_.push_back({at, ++sequence_, kind, a, b});
    std::push_heap(events_.begin(), events_.end(), Later());
  }
  bool empty() const { return events_.empty(); }
  Event pop() {
    std::pop_heap(events_.begin(), events_.end(), Later());
    const Event event = events_.back();
    events_.pop_back();
    return event;
  }
  void clear() { events_.clear(), sequence_ = 0; }

 private:
  struct Later {  // not a function: its address would be called
    bool operator()(const Event& x, const Event& y) const {
      return x.at != y.at ? x.at > y.at : x.sequence > y.sequence;
    }
  };
  std::vector<Event> events_;
  uint32_t sequence_ = 0;
};

}  // namespace redlock::sim
