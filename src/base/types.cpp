// SPDX-License-Identifier: MIT
#include "base/types.hpp"

namespace redlock {

bool operator==(Bytes a, Bytes b) {
  return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

const char* nth_text(const char* texts, unsigned n) {
  for (; n > 0; --n) texts += strlen(texts) + 1;
  return texts;
}

}  // namespace redlock
