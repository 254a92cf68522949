// SPDX-License-Identifier: MIT
#include "base/time.hpp"

namespace redlock {

template int64_t saturating_sum<>(int64_t a, int64_t b);
template int64_t lesser<>(int64_t a, int64_t b);
template int64_t greater<>(int64_t a, int64_t b);
template void bring_forward<>(Instant& deadline, Instant t);

REDLOCK_APART_FOR_SIZE Duration part_of(Duration whole, uint32_t random) {
  const auto ns = static_cast<uint64_t>(whole.ns());
  const uint64_t parts = uint64_t{random} + 1;  // of 2^32, so that a short pause is random, too
  const auto part = static_cast<int64_t>((ns >> 32) * parts + ((ns & UINT32_MAX) * parts >> 32));
  return Duration::ns(part > 0 ? part : 1);
}

}  // namespace redlock
