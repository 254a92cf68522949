// SPDX-License-Identifier: MIT
#include "config/file.hpp"

#include <errno.h>
#include <fcntl.h>

#include "base/file_rule.hpp"
#include "config/keys.hpp"

namespace redlock {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

int fail_with_errno(TextWriter& why, const char* what, int error) {
  why.print(": %s", what);
  switch (error) {
    case ENOENT: why.raw(": does not exist"); break;
    case EACCES: why.raw(": permission denied"); break;
    case ELOOP: why.raw(": is a symbolic link, or follows too many"); break;
    default: why.print(": errno %u", static_cast<unsigned>(error)); break;
  }
  return REDLOCK_E_SYSTEM;
}

int open_regular(const char* path, int flags, struct stat& status, TextWriter& why, int& fd) {
  fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
  if (fd < 0) return fail_with_errno(why, "cannot be opened", errno);
  if (fstat(fd, &status) != 0) return fail_with_errno(why, "cannot be read", errno);
  return S_ISREG(status.st_mode) ? 0 : fail(why, ": is not a regular file");
}

// Reads until the end, or `capacity` bytes: the file may have grown since fstat().
int read_all(int fd, char* buffer, size_t capacity, size_t& size, TextWriter& why) {
  size = 0;
  while (size < capacity) {
    const ssize_t got = read(fd, buffer + size, capacity - size);
    if (got == 0) return 0;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_with_errno(why, "cannot be read", errno);
    size += static_cast<size_t>(got);
  }
  return 0;
}

void strip_newline(Bytes& text) {
  if (text.size > 0 && text.data[text.size - 1] == '\n') --text.size;
  if (text.size > 0 && text.data[text.size - 1] == '\r') --text.size;
}

int check_owner(const struct stat& status, TextWriter& why) {
  return is_strangers(status) ? fail(why, ": " REDLOCK_STRANGERS_FILE) : 0;
}

int check_private(const struct stat& status, TextWriter& why) {
  const int result = check_owner(status, why);
  if (result != 0 || (status.st_mode & 077) == 0) return result;
  return fail(why, ": is open to group or others; chmod 600");
}

int check_writers(const struct stat& status, TextWriter& why) {
  const int result = check_owner(status, why);
  if (result != 0 || !others_write(status)) return result;
  return fail(why, ": " REDLOCK_OTHERS_WRITE);
}

}  // namespace

int read_file(const char* path, char* buffer, size_t capacity, size_t& size, bool& exposed, TextWriter& why) {
  struct stat status;
  int fd = -1;
  int result = open_regular(path, 0, status, why, fd);
  const Descriptor closer(fd);
  if (result == 0) result = check_writers(status, why);
  if (result != 0) return result;
  exposed = (status.st_mode & 04) != 0;
  if (status.st_size > static_cast<off_t>(capacity)) {
    why.raw(": ").number(static_cast<uint64_t>(status.st_size)).raw(" bytes are more than ").number(capacity);
    return REDLOCK_E_CONFIG;
  }
  result = read_all(fd, buffer, capacity, size, why);
  char more;
  if (result == 0 && size == capacity && read(fd, &more, 1) > 0) {
    why.raw(": is longer than ").number(capacity).raw(" bytes");
    return REDLOCK_E_CONFIG;
  }
  return result;
}

int read_password_file(const char* path, Text& out, TextWriter& why) {
  struct stat status;
  int fd = -1;
  int result = open_regular(path, O_NOFOLLOW, status, why, fd);
  const Descriptor closer(fd);
  if (result == 0) result = check_private(status, why);
  if (result != 0) return result;

  char buffer[REDLOCK_PASSWORD_MAX + 3];  // CR, LF, and one byte that shows that the file is too long
  size_t size = 0;
  result = read_all(fd, buffer, sizeof buffer, size, why);
  Bytes password(buffer, size);
  strip_newline(password);
  if (result == 0 && password.size == 0) result = fail(why, ": is empty");
  if (result == 0 && password.size > REDLOCK_PASSWORD_MAX) {
    why.print(": holds more than %u bytes", REDLOCK_PASSWORD_MAX);
    result = REDLOCK_E_CONFIG;
  }
  if (result == 0 && memchr(buffer, '\0', password.size) != nullptr) result = fail(why, ": holds a NUL");
  if (result == 0 && memchr(buffer, '\n', password.size) != nullptr) result = fail(why, ": holds more than one line");
  if (result == 0) out.assign(password);
  explicit_bzero(buffer, sizeof buffer);
  return result;
}

}  // namespace redlock
