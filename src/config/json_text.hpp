// SPDX-License-Identifier: MIT
//
// What cJSON lets pass, or cannot report, is looked for in the text before cJSON sees it: a byte order mark, bytes that
// are not UTF-8, control characters, \u0000 (it would cut a string short without a word), numbers with a leading
// zero, and deep nesting, which would cost stack.
#pragma once
#include "config/text.hpp"

namespace redlock {

struct TextFault {
  size_t offset = 0;
  const char* what = nullptr;  // null: there is none
};

TextFault find_text_fault(Bytes json);

// "line 3, column 14: "; the column counts bytes, from 1.
void write_position(TextWriter& why, Bytes json, size_t offset);

}  // namespace redlock
