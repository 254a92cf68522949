// SPDX-License-Identifier: MIT
#include "base/types.hpp"

namespace redlock {

bool operator==(Bytes a, Bytes b) {
  return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

bool clear_output(void* out, size_t whole, size_t least) {
  if (out == nullptr) return false;
  uint32_t size;
  memcpy(&size, out, sizeof size);
  const size_t end = size < whole ? size : whole;
  if (end > sizeof size) memset(static_cast<char*>(out) + sizeof size, 0, end - sizeof size);
  return size >= least;
}

const char* nth_text(const char* texts, unsigned n) {
  for (; n > 0; --n) texts += strlen(texts) + 1;
  return texts;
}

}  // namespace redlock
