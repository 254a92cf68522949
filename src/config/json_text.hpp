// SPDX-License-Identifier: MIT
//
// Finds the faults that cJSON accepts or cannot report, before cJSON reads the text: a byte order mark, bytes that are
// not UTF-8, control characters, numbers with a leading zero, \u0000 (cJSON would cut the string there without an
// error), and deep nesting (cJSON is recursive, and would need stack for each level).
#pragma once
#include "config/text.hpp"

namespace redlock {

struct TextFault {
  size_t offset = 0;
  const char* what = nullptr;  // null: no fault
};

// masked: room for the text and a NUL. As far as there is no fault, a text of the same syntax is written there, which
// holds no password: what stands in strings is x, but for escapes.
TextFault find_text_fault(Bytes json, char* masked);

// Lines that begin with // are comments: they become blanks, so that what follows keeps its line and its column.
void blank_comments(char* json, size_t size);

// "line 3, column 14: "; the column counts bytes, from 1.
void write_position(TextWriter& why, Bytes json, size_t offset);

}  // namespace redlock
