// SPDX-License-Identifier: MIT
//
// The sentence for a gateway that a change of masters has left behind.
#pragma once
#include "tool/words/text.hpp"

namespace redlock::tool {

// The numbers of a configuration that the sentence may name.
struct Numbers {
  unsigned long masters, max_ttl_ms;
};

// "the site was changed to 5 masters at 2026-11-28 14:56 UTC: copy its redlock.json here". done_s: seconds since 1970
// by a master's clock; 0: unknown.
Text changed_text(const Numbers& ours, const Numbers& theirs, int64_t done_s);

}  // namespace redlock::tool
