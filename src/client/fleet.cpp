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

Instant Fleet::quorum_admitted_at(const Instant* admitted_at) const {
  return quorum_free_at(admitted_at, masters_, quorum_of(masters_));
}

Masters Fleet::surely_stepped(Masters agree, Duration patience, const Instant& now) {
  REDLOCK_ASSERT(((agree | stepped_) - Masters::all(masters_)).empty());
  const bool sure = masters_ > 2 && agree.count() >= quorum_of(masters_);
  const Masters out = sure ? stepped_ : Masters();
  if (sure || now >= stepped_at_ + patience) stepped_ = {};
  return out;
}

}  // namespace redlock
