// SPDX-License-Identifier: MIT
//
// Fence: which fencing token does a round give? A token is a number that a device can compare. A token is given once,
// and is larger than every token that was given before its acquire began, whatever clocks and networks do.
//
// Each master keeps one counter for each resource, and the guard's seal beside the counter. A counter under the present
// seal is *known*. A counter under another seal, or a missing counter, may have survived a loss of data, and is only a
// *hint*. An acquire proposes a token: the largest number that this client has heard of, plus 1. A master that grants,
// has a known counter, and finds the counter smaller than the proposal, stores the proposal at once (*ack*).
//
//     answers                   token
//     Q acks                    the proposal: one round trip
//     Q grants, Q known         the largest counter plus 1. A second script stores this token, and needs Q acks
//     Q grants, too few known   the floor: the masters' wall clock in ms, or the largest number left anywhere, plus 1.
//                               A second script stores this token, too. The token is flagged, since it relies on
//                               clocks. Where the floor is not allowed the acquire ends with FENCE_UNKNOWN
//
// A line of this table is chosen only when no answer that is still to come could bring the line above. After the choice
// every other master that granted is sent the token as well, and nobody waits for these answers: the more masters know
// a token, the more may lose it. Any two sets of Q masters meet in one master that acknowledged both tokens, and a
// counter only grows. So the two tokens differ, and the later one is larger. test/nightly/proof/tokens.py shows this of
// the protocol. The unit tests compare this file with a second implementation, in all combinations of answers.
#pragma once
#include "base/masters.hpp"
#include "base/names.hpp"
#include "base/types.hpp"
#include "lock/quorum.hpp"

namespace redlock {

// What the masters of one acquire round answered about their counters.
struct Counters {
  Masters acked;
  Masters known;         // includes `acked`
  uint64_t top = 0;      // the largest number in any answer, hints included
  uint64_t server_ms = 0;

  constexpr void hear(MasterIndex m, const Counter& counter) {
    if (counter.state == Counter::State::none) return;
    if (counter.state == Counter::State::ack) acked.add(m);
    if (counter.state != Counter::State::hint) known.add(m);
    if (counter.value > top) top = counter.value;
    if (counter.server_ms > server_ms) server_ms = counter.server_ms;
  }
  // This master may have lost its data after the answer.
  constexpr void forget(MasterIndex m) {
    acked.remove(m);
    known.remove(m);
  }
};

struct TokenChoice {
  enum class What : uint8_t {
    wait,       // more answers are needed
    lost,       // a quorum of grants cannot come any more
    proposed,   // the proposal is the token
    store,      // `token` has to be stored on the masters that granted
    floor,      // as store, but the token is flagged
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
  REDLOCK_ASSERT(granted + refused + failed <= masters);
  REDLOCK_ASSERT(counters.acked.count() <= counters.known.count());
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
    if (token != 0 && proposal > token) token = proposal;  // this client may be the last that remembers
  }
  if (token == 0) return {What::exhausted};
  return {floored ? What::floor : What::store, token};
}

constexpr uint64_t largest_of(const Counter& counter) {
  return counter.value > counter.server_ms ? counter.value : counter.server_ms;
}

// Which numbers are believed? A master that lies could tell the largest number, and leave no larger token for anybody.
// A number up to `free` is believed. A larger number is believed if it is at most `step` above a token that this client
// got, or if N - Q + 1 masters have told that number less `step`, or more: at most N - Q masters lie, so one of these
// is honest. The vote of a master that is not believed has failed. No token is lowered or passed over by that: the
// token stands on Q masters, and Q votes of other masters are needed. One liar can still raise the tokens to `free` at
// once (a time in ms in the year 10889), and then by `step` with each acquire: 2^39 acquires are left.
//
// The price: a new client does not believe numbers above `free` that fewer masters tell, because the others missed more
// than `step` tokens. These masters have no vote until the others have caught up, by an older client's acquire, say.
class Belief {
 public:
  static constexpr uint64_t free = uint64_t{1} << 48;
  static constexpr uint64_t step = uint64_t{1} << 24;

  void init(unsigned masters) { masters_ = masters; }
  void told(MasterIndex m, uint64_t number) {
    if (number > told_[m]) told_[m] = number;
  }
  bool believes(uint64_t number) const;  // a master has told this number
  void got(uint64_t token) {
    if (token > got_) got_ = token;
  }

 private:
  uint64_t told_[REDLOCK_MASTERS_MAX] = {};  // the largest number that each master has told this client
  uint64_t got_ = free - step;               // the largest token that this client got
  unsigned masters_ = 0;
};

// The token of a lock: what the open round has brought so far and, once the lock is held, the token itself.
struct Fence {
  Counters counters;
  uint64_t proposal = 0;  // 0: none
  uint64_t token = 0;
  Masters told;          // masters that have the token, or were asked to store it
  bool storing = false;  // the second part of the round is under way
  bool may_floor = false;
  bool floored = false;
  bool disbelieved = false;  // a master's vote has failed because of its number
};

// The largest token that this client has heard of, for each resource. The next proposal follows from it. A wrong guess
// only costs a round trip, or leaves a gap. So one place for each lock is enough: the hash of the name chooses the
// place, and the latest resource takes it. A place also remembers that redlock_fence_init() allowed the floor once, for
// a new resource.
class Proposals {
 public:
  struct Place {
    uint32_t name;  // the hash
    bool may_floor;
    uint64_t top;
  };

  void init(Place* places, unsigned size);
  // With several names the proposal is above the largest token of each, and the floor must be allowed for all of them.
  uint64_t next(const Names& names) const;
  void heard(const Names& names, uint64_t number);
  bool allow_floor(Bytes resource);  // false: another resource's permission has the place
  bool may_floor(const Names& names) const;
  void floor_taken(const Names& names);

 private:
  Place& place(uint32_t name) const { return places_[uint64_t{name} * size_ >> 32]; }

  Place* places_ = nullptr;
  unsigned size_ = 0;
};

}  // namespace redlock
