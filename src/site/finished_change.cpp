// SPDX-License-Identifier: MIT
#include "site/finished_change.hpp"

#include <string.h>

#include "base/digits.hpp"
#include "master/guard.hpp"

namespace redlock {
namespace {

constexpr char left_word[] = "left ", arrow[] = " > ";

// Moves `text` behind `beginning`. False: it begins with something else.
bool skip(const char*& text, const char* beginning) {
  const size_t size = strlen(beginning);
  if (strlen(text) < size || memcmp(text, beginning, size) != 0) return false;
  text += size;
  return true;
}

// "left OLD > NEW SECONDS", or "left OLD > NEW": 0.3 writes no time.
bool read_text(const char* text, const char* ours, char (&theirs)[fingerprint_max], int64_t& done_s) {
  if (!skip(text, left_word) || !skip(text, ours) || !skip(text, arrow)) return false;
  size_t size = strlen(text), last = size;
  while (last != 0 && text[last - 1] != ' ') --last;
  uint64_t seconds = 0;
  const bool timed = last != 0 && parse_decimal(Bytes(text + last, size - last), seconds);
  if (timed) size = last - 1;
  if (size == 0 || size >= sizeof theirs) return false;
  memcpy(theirs, text, size);
  theirs[size] = '\0';
  done_s = static_cast<int64_t>(seconds);
  return true;
}

}  // namespace

bool read_change(const char* desc, const char* q, const char* left, const char* ours, char (&theirs)[fingerprint_max],
                 int64_t& done_s) {
  const bool valid = strlen(q) == Guard::id_size && skip(left, q);
  return read_text(valid ? left : desc, ours, theirs, done_s);
}

}  // namespace redlock
