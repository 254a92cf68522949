// SPDX-License-Identifier: MIT
#include "tool/words/say.hpp"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <initializer_list>

namespace redlock::tool {
namespace {

constexpr size_t line_max = 2048;
bool in_progress = false;

bool write_all(int descriptor, const char* text, size_t size) {
  while (size > 0) {
    const ssize_t written = write(descriptor, text, size);
    if (written <= 0) return false;
    text += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

// A reader that is slow or stopped loses lines: nothing waits for it. Another writer may be faster than this one and
// fill the pipe between the two calls; nobody can know.
void write_if_there_is_room(int descriptor, const char* text, size_t size) {
  if (send(descriptor, text, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 || errno != ENOTSOCK) return;
  pollfd wanted = {descriptor, POLLOUT, 0};
  if (poll(&wanted, 1, 0) == 1 && (wanted.revents & POLLOUT) != 0) write_all(descriptor, text, size);
}

struct Output {
  char text[line_max];
  size_t size = 0;
  int error = 0;  // why stdout could not be written
};
Output output;  // what is to go to stdout

// What a server, a file or a command line says moves no cursor.
struct Line {
  char text[2 * line_max];
  size_t size;

  Line(const char* before, const char* format, va_list arguments, const char* after) {
    char raw[line_max];
    format_list(raw, sizeof raw, format, arguments);
    size = format_text(text, sizeof text, "%s", before);
    const size_t end = sizeof text - strlen(after);
    for (const char* c = raw; *c != '\0'; ++c) {
      const bool is_plain = *c >= 0x20 && *c < 0x7f;
      size += format_text(text + size, end - size, is_plain ? "%c" : "\\x%02x", static_cast<unsigned char>(*c));
    }
    size += format_text(text + size, sizeof text - size, "%s", after);
  }
};

void write_report(Priority priority, const char* format, va_list arguments) {
  end_progress();
  char before[] = "<.>redlock: ";
  before[1] = static_cast<char>(priority);
  const Line line(is_journal() ? before : before + 3, format, arguments, "\n");
  write_if_there_is_room(STDERR_FILENO, line.text, line.size);
}

}  // namespace

bool is_quiet = false;

// sd_journal_stream_fd(3): systemd names the stream by its device and inode. A stderr that was redirected is another.
bool is_journal() {
  const char* const stream = getenv("JOURNAL_STREAM");
  struct stat about{};
  if (stream == nullptr || fstat(STDERR_FILENO, &about) != 0) return false;
  char ours[48];
  format_text(ours, sizeof ours, "%llu:%llu", static_cast<unsigned long long>(about.st_dev),
              static_cast<unsigned long long>(about.st_ino));
  return strcmp(stream, ours) == 0;
}

void say_as(Priority priority, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_report(priority, format, arguments);
  va_end(arguments);
}

void say(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_report(Priority::error, format, arguments);
  va_end(arguments);
}

void note(const char* format, ...) {
  if (is_quiet) return;
  va_list arguments;
  va_start(arguments, format);
  write_report(Priority::info, format, arguments);
  va_end(arguments);
}

void fail(ExitCode code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_report(Priority::error, format, arguments);
  va_end(arguments);
  exit(code);
}

void put(const char* text) {
  for (; *text != '\0'; ++text) {
    if (output.size == sizeof output.text) flush();
    output.text[output.size++] = *text;
  }
}

bool flush() {
  if (!write_all(STDOUT_FILENO, output.text, output.size)) output.error = errno;
  output.size = 0;
  return output.error == 0;
}

int end_of_output(int code) {
  if (flush()) return code;
  say("stdout cannot be written: %s", strerror(output.error));
  return exit_output;
}

void print(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  put(Line("", format, arguments, "\n").text);
  va_end(arguments);
  flush();
}

static constexpr char clear[] = "\033[K";  // the rest of the line

void show_progress(const char* format, ...) {
  if (is_quiet) return;
  in_progress = true;
  va_list arguments;
  va_start(arguments, format);
  Line line("\rredlock: ", format, arguments, clear);
  va_end(arguments);
  // A terminal wraps a longer line, and the next report would overwrite only the last part of it.
  winsize window{};
  const bool is_known = ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col != 0;
  if (is_known && line.size > window.ws_col + strlen(clear)) {
    memcpy(line.text + window.ws_col, clear, sizeof clear);
    line.size = window.ws_col + strlen(clear);
  }
  write_if_there_is_room(STDERR_FILENO, line.text, line.size);
}

void end_progress() {
  if (in_progress) write_if_there_is_room(STDERR_FILENO, "\r\033[K", 4);
  in_progress = false;
}

void confirm(bool yes, const char* what, const char* option, bool asks) {
  if (yes) return;
  if (!asks || isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) {
    fail(exit_usage, "%s. If you mean it, say %s", what, option);
  }
  for (const char* part : {"redlock: ", what, ". Type yes to go on: "}) write_all(STDERR_FILENO, part, strlen(part));
  constexpr char word[] = "yes\n";
  char answer[16];
  const ssize_t size = read(STDIN_FILENO, answer, sizeof answer);
  if (size != sizeof word - 1 || memcmp(answer, word, sizeof word - 1) != 0) fail(exit_usage, "nothing was done");
}

bool has_colors(int descriptor) {
  const char* no_color = getenv("NO_COLOR");
  const char* terminal = getenv("TERM");
  if (no_color != nullptr && *no_color != '\0') return false;
  return isatty(descriptor) == 1 && terminal != nullptr && strcmp(terminal, "dumb") != 0;
}

}  // namespace redlock::tool
