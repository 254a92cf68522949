// SPDX-License-Identifier: MIT
#include "tool/run/waiting.hpp"

#include <time.h>
#include <unistd.h>

#include "tool/run/relay.hpp"
#include "tool/words/say.hpp"

namespace redlock::tool {
namespace {

constexpr int64_t ns_per_s = 1000 * ns_per_ms;
constexpr long line_step_s = 30, first_line_s = 10, first_journal_line_s = 2;

}  // namespace

Waiting::Waiting(const char* names, bool sd_notify, bool stands_by)
    : names_(names), sd_notify_(sd_notify), stands_by_(stands_by), on_terminal_(isatty(STDERR_FILENO) == 1),
      step_s_(on_terminal_ ? 1 : sd_notify_ ? 5 : line_step_s), begin_(now_ns()), next_(begin_ + step_s_ * ns_per_s),
      first_line_(on_terminal_                 ? never
                  : sd_notify_ || is_journal() ? begin_ + first_journal_line_s * ns_per_s
                                               : begin_ + first_line_s * ns_per_s) {}

void Waiting::tell(const char* sentence, bool is_held) {
  const int64_t now = now_ns();
  if (stands_by_ && !told_ready_ && is_held) {
    told_ready_ = notify(Text("READY=1\nWATCHDOG_USEC=0\nSTATUS=standby for %s: %s", names_, sentence));
  }
  const bool is_first_line = now >= first_line_;
  if (now < next_ && !is_first_line) return;
  if (is_first_line) first_line_ = never;
  if (now >= next_) next_ = now + step_s_ * ns_per_s;
  const long seconds = static_cast<long>((now - begin_) / ns_per_s);
  const char* colon = *sentence != '\0' ? ": " : "";
  if (sd_notify_) {
    Text status("STATUS=waiting for %s for %ld s%s%s", names_, seconds, colon, sentence);
    notify(status.add("\nEXTEND_TIMEOUT_USEC=30000000"));
  }
  if (on_terminal_ || is_first_line || seconds % line_step_s < step_s_) {
    const auto tell = on_terminal_ ? show_progress : note;
    tell("waiting for %s for %ld s%s%s", names_, seconds, colon, sentence);
  }
}

// A unit of Type=notify-reload is reloading until both messages arrive; the other types ignore them.
void Waiting::reload() const {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const long long us = 1'000'000LL * now.tv_sec + now.tv_nsec / 1000;
  if (told_ready_ && notify(Text("RELOADING=1\nMONOTONIC_USEC=%lld", us))) notify(Text("READY=1"));
}

}  // namespace redlock::tool
