// SPDX-License-Identifier: MIT
#pragma once
#include <redlock/site.h>
#include <string.h>

namespace redlock::tool {

// Does NOPERM deny the key? Else it denies the command, which a server judges first.
inline bool is_key_denied(const redlock_question_t& refused) {
  return strstr(refused.item->text, " to access ") != nullptr;
}

}  // namespace redlock::tool
