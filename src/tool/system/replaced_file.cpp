// SPDX-License-Identifier: MIT
#include "tool/system/replaced_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/system/clock.hpp"
#include "tool/system/descriptors.hpp"
#include "tool/words/say.hpp"
#include "tool/words/text.hpp"

namespace redlock::tool {
namespace {

constexpr int patience_ms = 1'000, again_ms = 10;
constexpr char beginning[] = "# HELP redlock_";

bool replace(const char* path, bool (*write)(void* self, int file), void* self) {
  const Text beside("%s.new", path);
  unlink(beside.c_str());  // of a program that was killed
  const int file = open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return false;
  const bool written = write(self, file) && fchmod(file, 0644) == 0;  // an agent is another user, whatever our umask is
  if (close(file) == 0 && written && rename(beside.c_str(), path) == 0) return true;
  const int error = errno;
  unlink(beside.c_str());
  errno = error;
  return false;
}

}  // namespace

void check_is_ours(const char* option, const char* path) {
  struct stat found {};
  char text[sizeof beginning];
  if (lstat(path, &found) != 0) return;
  const bool is_read = S_ISREG(found.st_mode) && read_file(path, text, sizeof text) >= 0;
  if (is_read && (*text == '\0' || strcmp(text, beginning) == 0)) return;
  fail(exit_output, "%s: %s is no file of metrics of redlock, and stays as it is", option, path);
}

bool replace_file(const char* path, bool is_patient, bool (*write)(void* self, int file), void* self) {
  const char* const slash = strrchr(path, '/');
  const int size = slash == nullptr ? 0 : static_cast<int>(slash - path) + 1;
  const int folder = open(Text("%.*s.", size, path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  const auto is_busy = [&] { return flock(folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; };
  bool busy;
  for (int ms = 0; (busy = is_busy()) && is_patient && ms < patience_ms; ms += again_ms) pause_ms(again_ms);
  const bool done = !busy && replace(path, write, self);
  const int error = errno;
  close(folder);
  errno = error;
  return done;
}

}  // namespace redlock::tool
