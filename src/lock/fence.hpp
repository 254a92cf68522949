// SPDX-License-Identifier: MIT
//
// Fence: which fencing token does a round give? A token is a number that a device can compare: it is given once, and is
// larger than every one given before its acquire began, whatever clocks and networks do.
//
// Each master keeps a counter per resource, and the guard's seal beside it: a counter that goes with another seal has
// survived a loss, or is absent, and is a *hint*; else it is *known*. The acquire proposes a token, the largest that
// this client has heard of plus 1, and a master that grants, knows its counter and finds it smaller stores it at
// once: *ack*.
//
//     Q acks                    the proposal is the token: one round trip
//     Q grants, Q known         the largest counter plus 1, to be stored by a second script: Q acks of that
//     Q grants, too few known   the floor: the masters' wall clock in ms, or the largest number left anywhere, plus 1;
//                               flagged, since it leans on clocks; stored likewise. Where it is not allowed: UNKNOWN
//
// The second and third are chosen only when no answer that is still to come could bring the one above. Once the token
// is chosen, every other master that granted is told it as well, and nobody waits for that: what one loses, others
// know. Any two sets of Q masters meet in one that acknowledged both tokens, and no counter ever stands still or goes
// back: so the numbers differ, and the later one is larger. test/model/token.pml searches the protocol; the tests
// hold this file against a second implementation in all combinations.
#pragma once
#include "base/masters.hpp"
#include "base/names.hpp"
#include "base/types.hpp"
#include "lock/quorum.hpp"

namespace redlock {

// What the masters of one acquire round have said about their counters.
struct Counters {
  Masters acked;
  Masters known;  // those that acknowledged included
  uint64_t top = 0;      // the largest number heard of, hints included
  uint64_t server_ms = 0;

  constexpr void hear(MasterIndex m, const Counter& counter) {
    if (counter.state == Counter::State::none) return;
    if (counter.state == Counter::State::ack) acked.add(m);
    if (counter.state != Counter::State::hint) known.add(m);
    if (counter.value > top) top = counter.value;
    if (counter.server_ms > server_ms) server_ms = counter.server_ms;
  }
  // What it acknowledged or knew it may have forgotten since.
  constexpr void forget(MasterIndex m) {
    acked.remove(m);
    known.remove(m);
  }
};

struct TokenChoice {
  enum class What : uint8_t {
    wait,       // for more answers
    lost,       // the round: a quorum of grants cannot come
    proposed,   // the proposal is the token
    store,      // `token` is to be stored on those that granted
    floor,      // the same, flagged
    unknown,    // too few counters are known, and the floor is not allowed
    exhausted,  // no larger number is left
  };
  What what;
  uint64_t token = 0;
};

constexpr TokenChoice choose_token(unsigned masters, unsigned granted, unsigned refused, unsigned failed,
                                   const Counters& counters, uint64_t proposal, bool may_floor) {
  using What = TokenChoice::What;
  const unsigned quorum = quorum_of(masters);
  REDLOCK_ASSERT(granted + refused + failed <= masters && counters.acked.count() <= counters.known.count());
  const unsigned pending = masters - granted - refused - failed;
  const unsigned acked = counters.acked.count();
  const unsigned known = counters.known.count();
  if (granted + pending < quorum) return {What::lost};
  if (granted < quorum) return {What::wait};
  if (acked >= quorum) return {What::proposed, proposal};
  if (acked + pending >= quorum) return {What::wait};
  if (known < quorum && known + pending >= quorum) return {What::wait};
  const bool floored = known < quorum;
  if (floored && !may_floor) return {What::unknown};
  uint64_t token = counters.top < token_max ? counters.top + 1 : 0;
  if (floored && token != 0) {
    if (counters.server_ms >= token) token = counters.server_ms < token_max ? counters.server_ms + 1 : 0;
    if (token != 0 && proposal > token) token = proposal;  // what this client remembers may be all that is left
  }
  if (token == 0) return {What::exhausted};
  return {floored ? What::floor : What::store, token};
}

// What a lock knows of its token: of the round under way, and, once it is held, the token itself.
struct Fence {
  Counters counters;
  uint64_t proposal = 0;  // 0: none
  uint64_t token = 0;
  Masters told;  // who has the token, or was asked to store it
  bool storing = false;
  bool may_floor = false;
  bool floored = false;
};

// The largest token heard of for each resource, to propose the next one. A guess that is wrong costs a round trip or
// leaves a gap and nothing else, so one place per lock is enough, found by the name's hash, and the latest resource
// takes it. Also remembered here: that the floor is allowed once, for a resource that is new (redlock_fence_init).
class Proposals {
 public:
  struct Place {
    uint32_t name;  // the hash
    bool may_floor;
    uint64_t top;
  };

  void init(Place* places, unsigned size);
  // Of several names: above each of them, and the floor only where it is allowed for them all.
  uint64_t next(const Names& names) const;
  void heard(const Names& names, uint64_t number);
  bool allow_floor(Bytes resource);  // false: its place is taken by another permission
  bool may_floor(const Names& names) const;
  void floor_taken(const Names& names);

 private:
  Place& place(uint32_t name) const { return places_[name % size_]; }

  Place* places_ = nullptr;
  unsigned size_ = 0;
};

}  // namespace redlock
