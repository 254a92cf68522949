// SPDX-License-Identifier: MIT
#include "tool/waiting.hpp"

#include <unistd.h>

#include "tool/notify.hpp"
#include "tool/say.hpp"

namespace redlock::tool {
namespace {

constexpr int64_t ns_per_s = 1000 * ns_per_ms;
constexpr int64_t terminal_step = 1 * ns_per_s;
constexpr int64_t line_step = 30 * ns_per_s;
constexpr int64_t notify_step = 5 * ns_per_s;

}  // namespace

Waiting::Waiting(const char* names, bool sd_notify)
    : names_(names), sd_notify_(sd_notify), on_terminal_(isatty(STDERR_FILENO) == 1), begin_(now_ns()) {
  next_ = begin_ + (on_terminal_ ? terminal_step : sd_notify_ ? notify_step : line_step);
}

void Waiting::tell(const char* sentence) {
  const int64_t now = now_ns();
  if (now < next_) return;
  const long seconds = static_cast<long>((now - begin_) / ns_per_s);
  const char* colon = *sentence != '\0' ? ": " : "";
  if (sd_notify_) {
    notify("STATUS=waiting for %s for %ld s%s%s\nEXTEND_TIMEOUT_USEC=30000000", names_, seconds, colon, sentence);
  }
  if (on_terminal_) {
    show_progress("waiting for %s  %ld s%s%s", names_, seconds, colon, sentence);
    next_ = now + terminal_step;
    return;
  }
  if (!sd_notify_ || seconds % (line_step / ns_per_s) < notify_step / ns_per_s) {
    note("waiting for %s for %ld s%s%s", names_, seconds, colon, sentence);
  }
  next_ = now + (sd_notify_ ? notify_step : line_step);
}

void Waiting::end() { end_progress(); }

}  // namespace redlock::tool
