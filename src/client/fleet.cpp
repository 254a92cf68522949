// SPDX-License-Identifier: MIT
#include "client/fleet.hpp"

#include "lock/forecast.hpp"
#include "lock/quorum.hpp"

namespace redlock {

Masters Fleet::duplicates(const Bytes* ids) const {
  Masters out;
  for (MasterIndex m = 1; m < masters_; ++m) {
    for (MasterIndex k = 0; k < m && ids[m].size != 0; ++k) {
      if (ids[k] == ids[m]) out.add(m);
    }
  }
  return out;
}

bool Fleet::is_quorum(Masters some) const { return some.count() >= quorum_of(masters_); }

Masters Fleet::of(Masters voting, const Guard::Outlook* outlooks, Guard::Outlook outlook) const {
  Masters out;
  for (MasterIndex m : Masters::all(masters_) - voting) {
    if (outlooks[m] == outlook) out.add(m);
  }
  return out;
}

// While a change of masters is under way, another configuration may be its old or new one.
Masters Fleet::never(Masters voting, const Guard::Outlook* outlooks) const {
  const Masters never = of(voting, outlooks, Guard::Outlook::never);
  const bool changing = !of(voting, outlooks, Guard::Outlook::moving).empty();
  return changing ? never : never | of(voting, outlooks, Guard::Outlook::foreign);
}

// While a reading is under way its outcome is awaited: each write to a record makes all clients read it again, and no
// cause changes for this moment.
int Fleet::cause(Masters voting, const Guard::Outlook* outlooks, int before) const {
  if (is_quorum(voting)) return REDLOCK_CAUSE_HELD;
  const Masters never = this->never(voting, outlooks);
  if (!is_quorum(Masters::all(masters_) - never)) return REDLOCK_CAUSE_NEVER;
  Masters may = voting | of(voting, outlooks, Guard::Outlook::watched);
  if (is_quorum(may)) return REDLOCK_CAUSE_GUARD;
  may |= of(voting, outlooks, Guard::Outlook::soon);
  if (is_quorum(may)) return before != REDLOCK_CAUSE_NEVER ? before : REDLOCK_CAUSE_NONE;
  may |= of(voting, outlooks, Guard::Outlook::moving) | (of(voting, outlooks, Guard::Outlook::foreign) - never);
  return is_quorum(may) ? REDLOCK_CAUSE_CHANGE : REDLOCK_CAUSE_TOO_FEW;
}

Instant Fleet::guarded_until(Masters voting, const Instant* watched_at) const {
  REDLOCK_ASSERT((voting - Masters::all(masters_)).empty());
  const unsigned quorum = quorum_of(masters_), votes = voting.count();
  return votes < quorum ? quorum_free_at(watched_at, masters_, quorum - votes) : Instant::from_ns(INT64_MIN);
}

Masters Fleet::surely_stepped(Masters agree, Duration patience, const Instant& now) {
  REDLOCK_ASSERT(((agree | stepped_) - Masters::all(masters_)).empty());
  const bool sure = masters_ > 2 && agree.count() >= quorum_of(masters_);
  const Masters out = sure ? stepped_ : Masters();
  if (sure || now >= stepped_at_ + patience) stepped_ = {};
  return out;
}

}  // namespace redlock
