// SPDX-License-Identifier: MIT
#include "config/url.hpp"

#include "base/digits.hpp"
#include "config/keys.hpp"
#include "config/tls.hpp"

#include <arpa/inet.h>

namespace redlock {
namespace {

constexpr size_t none = SIZE_MAX;
constexpr uint16_t default_port = 6379;

Bytes head(Bytes text, size_t size) { return Bytes(text.data, size); }
Bytes tail(Bytes text, size_t from) { return Bytes(text.data + from, text.size - from); }

bool starts_with(Bytes text, Bytes prefix) { return text.size >= prefix.size && head(text, prefix.size) == prefix; }

size_t find(Bytes text, char wanted) {
  for (size_t i = 0; i < text.size; ++i) {
    if (text.data[i] == wanted) return i;
  }
  return none;
}

size_t find_last(Bytes text, char wanted) {
  for (size_t i = text.size; i > 0; --i) {
    if (text.data[i - 1] == wanted) return i - 1;
  }
  return none;
}

bool contains_any(Bytes text, Bytes wanted) {
  for (size_t i = 0; i < wanted.size; ++i) {
    if (find(text, wanted.data[i]) != none) return true;
  }
  return false;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool is_letter(char c) { return lower(c) >= 'a' && lower(c) <= 'z'; }

// ---- user and password

// Characters that RFC 3986 allows there without an escape: unreserved ones and sub-delimiters.
bool is_literal(char c) { return is_letter(c) || is_digit(c) || find("-._~!$&'()*+,;=:", c) != none; }

// The byte that %XX stands for. 0: not an escape, or %00, which is not allowed.
char escaped_byte(Bytes text) {
  if (text.size < 3) return '\0';
  const int high = hex_value(text.data[1]);
  const int low = hex_value(text.data[2]);
  return high < 0 || low < 0 ? '\0' : static_cast<char>(high * 16 + low);
}

int parse_credential(Bytes text, const char* field, uint32_t max, Text& out, TextWriter& why) {
  char plain[Text::max];
  size_t size = 0;
  int result = 0;
  for (size_t at = 0; at < text.size && result == 0; ++size) {
    const bool escape = text.data[at] == '%';
    const char c = escape ? escaped_byte(tail(text, at)) : text.data[at];
    if (escape && c == '\0') {
      result = fail(why.raw(field), ": % is not followed by two hex digits other than 00");
    } else if (!escape && !is_literal(c)) {
      result = fail(why.raw(field), ": holds a character that must be written as %XX");
    }
    if (size < max) plain[size] = c;
    at += escape ? 3 : 1;
  }
  if (result == 0 && (size == 0 || size > max)) result = bad_size(why, field, size, 1, max);
  if (result == 0) out.assign(Bytes(plain, size));
  explicit_bzero(plain, sizeof plain);
  return result;
}

int parse_user_info(Bytes text, Master& out, TextWriter& why) {
  const size_t colon = find(text, ':');
  const Bytes user = colon == none ? text : head(text, colon);
  if (colon != 0) {
    const int result = parse_credential(user, ".username", REDLOCK_USER_MAX, out.user, why);
    if (result != 0) return result;
  }
  if (colon == none) return 0;
  return parse_credential(tail(text, colon + 1), ".password", REDLOCK_PASSWORD_MAX, out.password, why);
}

// ---- host and port

bool is_address(int family, const Text& host) {
  in6_addr parsed;  // large enough for an IPv4 address, too
  return inet_pton(family, host.data, &parsed) == 1;
}

bool is_label(Bytes label) {
  if (label.size == 0 || label.size > 63 || label.data[0] == '-' || label.data[label.size - 1] == '-') return false;
  for (size_t i = 0; i < label.size; ++i) {
    const char c = label.data[i];
    if (!is_letter(c) && !is_digit(c) && c != '-' && c != '_') return false;
  }
  return true;
}

bool is_number(Bytes label) {
  if (label.size >= 2 && label.data[0] == '0' && lower(label.data[1]) == 'x') return true;
  for (size_t i = 0; i < label.size; ++i) {
    if (!is_digit(label.data[i])) return false;
  }
  return true;
}

// A name whose last label is a number is refused: resolvers read "127.1" and "10.0.0.0x5" as addresses.
bool is_host_name(Bytes host) {
  for (;;) {
    const size_t dot = find(host, '.');
    const Bytes label = dot == none ? host : head(host, dot);
    if (!is_label(label)) return false;
    if (dot == none) return !is_number(label);
    host = tail(host, dot + 1);
  }
}

int parse_host(Bytes text, bool bracketed, Text& out, TextWriter& why) {
  if (text.size == 0) return fail(why, ".host: is missing");
  if (text.size > REDLOCK_HOST_MAX) return bad_size(why, ".host", text.size, 1, REDLOCK_HOST_MAX);
  if (find(text, '\0') != none) return fail(why, ".host: holds a NUL");
  out.assign(text);
  if (bracketed) return is_address(AF_INET6, out) ? 0 : fail(why, ".host: not an IPv6 address in brackets");
  if (is_address(AF_INET, out) || is_host_name(text)) return 0;
  return fail(why, ".host: neither a host name nor an IP address (IPv6: in brackets)");
}

// No error quotes a port: in redis://user:password, where the host was forgotten, the password stands in its place.
int parse_port(Bytes text, uint16_t& out, TextWriter& why) {
  uint64_t port = 0;
  const bool number = text.size <= 5 && parse_decimal(text, port) && text.data[0] != '0';
  if (!number || port > 65535) return fail(why, ".port: not a number in 1..65535");
  out = static_cast<uint16_t>(port);
  return 0;
}

int parse_host_and_port(Bytes text, Master& out, TextWriter& why) {
  // Other clients write the database, 0, or its place alone.
  Bytes before = text;
  if (before.size > 0 && before.data[before.size - 1] == '0') --before.size;
  if (before.size > 0 && before.data[before.size - 1] == '/') text.size = before.size - 1;
  if (contains_any(text, "/?#")) return fail(why, ".url: only /0 may follow host and port");
  const bool bracketed = starts_with(text, "[");
  const size_t host_end = bracketed ? find(text, ']') : find(text, ':');
  if (bracketed && host_end == none) return fail(why, ".host: the bracket is not closed");

  const Bytes host = bracketed ? Bytes(text.data + 1, host_end - 1) : host_end == none ? text : head(text, host_end);
  const Bytes rest = host_end == none ? Bytes() : tail(text, bracketed ? host_end + 1 : host_end);
  const int result = parse_host(host, bracketed, out.host, why);
  if (result != 0) return result;
  out.port = default_port;
  if (rest.size == 0) return 0;
  if (rest.data[0] != ':') return fail(why, ".host: only a port may follow the bracket");
  if (find(tail(rest, 1), ':') != none) return fail(why, ".host: an IPv6 address must stand in brackets");
  return parse_port(tail(rest, 1), out.port, why);
}

int parse_socket(Bytes path, Master& out, TextWriter& why) {
  if (path.size < 2 || path.data[0] != '/') return fail(why, ".url: unix:// wants an absolute path");
  if (path.size > REDLOCK_HOST_MAX) return bad_size(why, ".url", path.size, 1, REDLOCK_HOST_MAX);
  if (has_control_character(path)) return fail(why, ".url: the path holds a control character");
  if (contains_any(path, "%?#")) return fail(why, ".url: %, ? and # may not stand in a socket path");
  out.unix_socket = true;
  out.port = 0;
  out.host.assign(path);
  return 0;
}

// ---- comparing

// An IPv4 address is written as its IPv4-mapped IPv6 address, so that both spellings compare equal.
bool to_numeric(const Text& host, in6_addr& out) {
  in_addr v4;
  if (inet_pton(AF_INET, host.data, &v4) != 1) return inet_pton(AF_INET6, host.data, &out) == 1;
  memset(&out, 0, sizeof out);
  out.s6_addr[10] = out.s6_addr[11] = 0xFF;
  memcpy(&out.s6_addr[12], &v4, sizeof v4);
  return true;
}

bool equal_without_case(Bytes a, Bytes b) {
  if (a.size != b.size) return false;
  for (size_t i = 0; i < a.size; ++i) {
    if (lower(a.data[i]) != lower(b.data[i])) return false;
  }
  return true;
}

}  // namespace

int parse_url(Bytes url, Master& out, TextWriter& why) {
  constexpr Bytes redis("redis://"), socket("unix://"), tls("rediss://");
  const bool over_tls = starts_with(url, tls);
#ifdef REDLOCK_TLS
  constexpr char no_scheme[] = ".url: begins with neither redis://, rediss:// nor unix:///";
  out.tls.wanted = over_tls;
#else
  constexpr char no_scheme[] = ".url: begins with neither redis:// nor unix:///";
  if (over_tls) return no_tls(why.raw(".url"));
#endif
  if (starts_with(url, socket)) return parse_socket(tail(url, socket.size), out, why);
  if (!over_tls && !starts_with(url, redis)) return fail(why, no_scheme);

  const Bytes rest = tail(url, over_tls ? tls.size : redis.size);
  // Look for the last @: if a password holds an unescaped @, the error then names the password and not the host.
  const size_t at = find_last(rest, '@');
  if (at == none) return parse_host_and_port(rest, out, why);
  const int result = parse_user_info(head(rest, at), out, why);
  return result != 0 ? result : parse_host_and_port(tail(rest, at + 1), out, why);
}

#ifdef REDLOCK_TLS
bool is_server_name(const Text& name) {
  return is_address(AF_INET, name) || is_address(AF_INET6, name) || is_host_name(name.bytes());
}

bool is_here(const Master& master) {
  in6_addr address;
  if (master.unix_socket) return true;
  if (!to_numeric(master.host, address)) return equal_without_case(master.host.bytes(), "localhost");
  return IN6_IS_ADDR_LOOPBACK(&address) || (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 127);
}
#endif

bool same_address(const Master& a, const Master& b) {
  if (a.unix_socket || b.unix_socket) return a.unix_socket == b.unix_socket && a.host.bytes() == b.host.bytes();
  if (a.port != b.port) return false;
  in6_addr numeric_a, numeric_b;
  const bool is_numeric_a = to_numeric(a.host, numeric_a);
  const bool is_numeric_b = to_numeric(b.host, numeric_b);
  if (is_numeric_a != is_numeric_b) return false;
  if (is_numeric_a) return memcmp(&numeric_a, &numeric_b, sizeof numeric_a) == 0;
  return equal_without_case(a.host.bytes(), b.host.bytes());
}

void write_address(TextWriter& out, const Master& master) {
  if (master.unix_socket) {
    out.escaped(master.host.bytes());
  } else {
    write_host_and_port(out, master.host.bytes(), master.port);
  }
}

void write_host_and_port(TextWriter& out, Bytes host, uint16_t port) {
  const bool brackets = find(host, ':') != none;
  out.raw(brackets ? "[" : "").raw(host).raw(brackets ? "]:" : ":").number(port);
}

}  // namespace redlock
