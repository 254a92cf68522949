// SPDX-License-Identifier: MIT
#include "config/file.hpp"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <new>

#include "base/digits.hpp"
#include "base/password_file.hpp"

namespace redlock {
namespace {

// @: the path.
constexpr char texts[] =
    "is well\0does not exist\0"
    "may not be read by this user; type: chown root:GROUP @; chmod 640 @\0"
    "cannot be read\0is a folder\0is not a regular file\0"
    "is a link that belongs neither to root nor to this user; make it anew as root\0"
    "belongs neither to root nor to this user; type: chown root:GROUP @; chmod 640 @\0"
    "can be written by group or others; type: chmod go-w @\0"
    "can be read by others; type: chmod o-r @\0"
    "is empty\0"
    "holds more bytes than limits.password_bytes allows\0holds a NUL\0holds more than one line"
#ifdef REDLOCK_TLS
    "\0has more than 512 KiB\0is no PEM of what belongs here, or is cut short\0"
    "is encrypted, and nobody is asked for its password\0"
    "is not the key of tls.cert_file"
#endif
    ;

constexpr size_t shown_path = 128;

bool is_unread(FileFault fault) { return fault >= FileFault::missing && fault <= FileFault::unreadable; }

int refuse(TextWriter& why, Bytes path, FileFault fault, int error) {
  write_file_fault(why, path, fault);
  if (fault == FileFault::unreadable) why.print(": errno %u", static_cast<unsigned>(error));
  return is_unread(fault) ? int{REDLOCK_E_SYSTEM} : int{REDLOCK_E_CONFIG};
}

int read_whole(int fd, const struct stat& status, char* buffer, size_t capacity, size_t& size, TextWriter& why) {
  if (status.st_size > static_cast<off_t>(capacity)) {
    why.raw(": ").number(static_cast<uint64_t>(status.st_size)).raw(" bytes are more than ").number(capacity);
    return REDLOCK_E_CONFIG;
  }
  if (!read_from(fd, buffer, capacity, size)) {
    why.print(": cannot be read: errno %u", static_cast<unsigned>(errno));
    return REDLOCK_E_SYSTEM;
  }
  char more;
  if (size < capacity || read(fd, &more, 1) <= 0) return 0;
  why.raw(": is longer than ").number(capacity).raw(" bytes");
  return REDLOCK_E_CONFIG;
}

// May the path be told? Where nothing is, it may be the password itself, which somebody wrote into the wrong field.
bool is_a_path(const char* path, FileFault fault) {
  return fault != FileFault::missing && (!is_unread(fault) || path[0] == '/');
}

}  // namespace

void write_file_fault(TextWriter& out, Bytes path, FileFault fault) {
  if (path.size > 0) out.escaped(path, shown_path).raw(": ");
  for (const char* c = nth_text(texts, static_cast<unsigned>(fault)); *c != '\0'; ++c) {
    *c == '@' ? out.escaped(path, shown_path) : out.raw(Bytes(c, 1));
  }
}

int read_file(const char* path, char* buffer, size_t capacity, size_t& size, bool& exposed, TextWriter& why) {
  struct stat status;
  FileFault fault = FileFault::none;
  const int fd = open_by_rule(path, false, status, fault);
  if (fd < 0) return refuse(why, bytes_of(path), fault, errno);
  exposed = others_read(status);
  const int result = read_whole(fd, status, buffer, capacity, size, why.escaped(bytes_of(path), shown_path));
  close(fd);
  return result;
}

int read_password_file(const char* path, PasswordFile*& out, TextWriter& why) {
  char text[REDLOCK_PASSWORD_BYTES_MAX + password_rest];
  size_t size = 0;
  FileStamp stamp;
  const FileFault fault = read_password(path, text, REDLOCK_PASSWORD_BYTES_MAX, size, stamp);
  const int error = errno;
  const Bytes name = bytes_of(path);
  int result = REDLOCK_E_NOMEM;
  if (fault != FileFault::none) {
    result = refuse(why.raw(": "), is_a_path(path, fault) ? name : Bytes(), fault, error);
  } else if (char* const memory = static_cast<char*>(malloc(sizeof *out + size + name.size + 1))) {
    char* const room = memory + sizeof *out;
    memcpy(room, text, size);
    memcpy(room + size, name.data, name.size + 1);
    out = new (memory) PasswordFile{stamp, room + size, room, static_cast<uint32_t>(size)};
    result = 0;
  }
  explicit_bzero(text, sizeof text);
  return result;
}

}  // namespace redlock
