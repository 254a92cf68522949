// SPDX-License-Identifier: MIT
#include "tool/say.hpp"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace redlock::tool {
namespace {

constexpr size_t line_max = 1024;
bool quiet = false;
bool in_progress = false;

void write_all(int descriptor, const char* text, size_t size) {
  while (size > 0) {
    const ssize_t written = write(descriptor, text, size);
    if (written <= 0) return;
    text += written;
    size -= static_cast<size_t>(written);
  }
}

void write_line(int descriptor, const char* before, const char* format, va_list arguments, const char* after) {
  char line[line_max];
  size_t size = strlen(before);
  memcpy(line, before, size);
  const size_t room = sizeof line - size - strlen(after);
  const int wanted = vsnprintf(line + size, room, format, arguments);
  if (wanted > 0) size += static_cast<size_t>(wanted) < room ? static_cast<size_t>(wanted) : room - 1;
  memcpy(line + size, after, strlen(after));
  write_all(descriptor, line, size + strlen(after));
}

void write_report(const char* format, va_list arguments) {
  end_progress();
  write_line(STDERR_FILENO, "redlock: ", format, arguments, "\n");
}

}  // namespace

void say(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_report(format, arguments);
  va_end(arguments);
}

void note(const char* format, ...) {
  if (quiet) return;
  va_list arguments;
  va_start(arguments, format);
  write_report(format, arguments);
  va_end(arguments);
}

void fail(ExitCode code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_report(format, arguments);
  va_end(arguments);
  exit(code);
}

void print(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_line(STDOUT_FILENO, "", format, arguments, "\n");
  va_end(arguments);
}

void show_progress(const char* format, ...) {
  if (quiet) return;
  in_progress = true;
  va_list arguments;
  va_start(arguments, format);
  write_line(STDERR_FILENO, "\rredlock: ", format, arguments, "\033[K");
  va_end(arguments);
}

void end_progress() {
  if (in_progress) write_all(STDERR_FILENO, "\r\033[K", 4);
  in_progress = false;
}

void be_quiet() { quiet = true; }

bool has_colors(int descriptor) {
  const char* no_color = getenv("NO_COLOR");
  const char* terminal = getenv("TERM");
  if (no_color != nullptr && *no_color != '\0') return false;
  return isatty(descriptor) == 1 && terminal != nullptr && strcmp(terminal, "dumb") != 0;
}

}  // namespace redlock::tool
