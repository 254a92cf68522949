// SPDX-License-Identifier: MIT
//
// What a gateway is told that a change of masters has left behind.
#pragma once
#include "tool/words/text.hpp"

namespace redlock::tool {

// What a change is about.
struct Numbers {
  unsigned long masters, max_ttl_ms;
};

// "the site was changed to 5 masters at 2026-11-28 14:56 UTC: copy its redlock.json here". done_s: when, by a master's
// clock; 0: not known.
Text changed_text(const Numbers& ours, const Numbers& theirs, int64_t done_s);

}  // namespace redlock::tool
