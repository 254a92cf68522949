// SPDX-License-Identifier: MIT
//
// A library for LD_PRELOAD that makes a program believe in a kernel without lists of children (CONFIG_PROC_CHILDREN).
// It notes in the file that REDLOCK_NO_LISTS names that it was asked for one.
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int access(const char *path, int mode) {
  const size_t size = strlen(path);
  if (size < 9 || strcmp(path + size - 9, "/children") != 0) {
    return (int)syscall(SYS_faccessat, AT_FDCWD, path, mode);
  }
  const char *note = getenv("REDLOCK_NO_LISTS");
  if (note != NULL) close(open(note, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  errno = ENOENT;
  return -1;
}
