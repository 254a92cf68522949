// SPDX-License-Identifier: MIT
#include "tool/words/changed.hpp"

#include <time.h>

namespace redlock::tool {

Text changed_text(const Numbers& ours, const Numbers& theirs, int64_t done_s) {
  Text out("the site was changed");
  if (theirs.masters != 0 && theirs.masters != ours.masters) {
    out.add(theirs.masters == 1 ? " to %lu master" : " to %lu masters", theirs.masters);
  } else if (theirs.masters != 0 && theirs.max_ttl_ms != ours.max_ttl_ms) {
    out.add(" to max_ttl_ms %lu", theirs.max_ttl_ms);
  } else if (theirs.masters != 0) {
    out.add(" to other masters");
  }
  const time_t done = static_cast<time_t>(done_s);
  tm parts{};
  char text[32];
  if (done_s > 0 && gmtime_r(&done, &parts) != nullptr && strftime(text, sizeof text, "%F %H:%M", &parts) != 0) {
    out.add(" at %s UTC", text);
  }
  return out.add(": copy its redlock.json here");
}

}  // namespace redlock::tool
