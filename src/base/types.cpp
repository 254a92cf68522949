// SPDX-License-Identifier: MIT
#include "base/types.hpp"

namespace redlock {

bool operator==(Bytes a, Bytes b) {
  return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

}  // namespace redlock
