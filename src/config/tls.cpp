// SPDX-License-Identifier: MIT
#include "config/tls.hpp"

#ifdef REDLOCK_TLS

#include <time.h>

#include "base/digits.hpp"
#include "config/file.hpp"
#include "config/json_item.hpp"
#include "config/keys.hpp"
#include "config/url.hpp"

namespace redlock {
namespace {

constexpr size_t prefix_size = sizeof "tls." - 1;

// By its name without the prefix.
const TlsKey* find_tls_key(Bytes name) {
  for (const TlsKey& key : tls_keys) {
    if (bytes_of(key.name + prefix_size) == name) return &key;
  }
  return nullptr;
}

int set_min_version(uint32_t& out, Bytes value, TextWriter& why) {
  if (value != Bytes("1.2") && value != Bytes("1.3")) {
    return fail(why.raw(": ").quoted(value, shown_bytes), " is not 1.2 or 1.3");
  }
  out = value == Bytes("1.3") ? 13 : 12;
  return 0;
}

// ---- pins

// "sha256:" and 64 hexadecimal digits, as sha256sum prints them.
bool parse_pin(Bytes text, unsigned char (&out)[TlsSettings::pin_size]) {
  constexpr Bytes prefix("sha256:");
  if (text.size != prefix.size + 2 * sizeof out || Bytes(text.data, prefix.size) != prefix) return false;
  const char* digit = text.data + prefix.size;
  for (unsigned char& byte : out) {
    const int high = hex_value(*digit++);
    const int low = hex_value(*digit++);
    if (high < 0 || low < 0) return false;
    byte = static_cast<unsigned char>(high * 16 + low);
  }
  return true;
}

int add_pin(TlsValues& out, Bytes pin, TextWriter& why) {
  if (out.pins == REDLOCK_TLS_PINS_MAX) {
    why.print(": more than %u pins", REDLOCK_TLS_PINS_MAX);
    return REDLOCK_E_CONFIG;
  }
  if (!parse_pin(pin, out.pin[out.pins])) {
    return fail(why.raw(": ").quoted(pin, shown_bytes), " is not sha256: and 64 hexadecimal digits");
  }
  ++out.pins;
  return 0;
}

int set_pins(TlsValues& out, Bytes list, TextWriter& why) {
  TlsValues read{};
  for (bool more = true; more;) {
    const char* const comma = static_cast<const char*>(memchr(list.data, ',', list.size));
    more = comma != nullptr;
    const size_t size = more ? static_cast<size_t>(comma - list.data) : list.size;
    const int result = add_pin(read, Bytes(list.data, size), why);
    if (result != 0) return result;
    if (more) list = Bytes(comma + 1, list.size - size - 1);
  }
  out.pins = read.pins;
  memcpy(out.pin, read.pin, sizeof read.pin);
  return 0;
}

int read_pins(const cJSON& list, TlsValues& out, TextWriter& why) {
  if (list.child == nullptr) return fail(why, ": holds no pin");
  for (const cJSON* item = list.child; item != nullptr; item = item->next) {
    if (!is(*item, cJSON_String)) return not_a("a string", *item, why);
    const int result = add_pin(out, bytes_of(item->valuestring), why);
    if (result != 0) return result;
  }
  return 0;
}

// ---- the settings of one master

const Text& either(const Text& own, const Text& common) { return own.empty() ? common : own; }

bool is_given(const TlsValues& v) {
  return !v.ca_file.empty() || !v.cert_file.empty() || !v.key_file.empty() || !v.server_name.empty() ||
         v.min_version != 0 || v.pins != 0;
}

int check_pair(const TlsValues& values, TextWriter& why) {
  if (values.cert_file.empty() == values.key_file.empty()) return 0;
  const bool no_key = values.key_file.empty();
  return fail(why, no_key ? ".cert_file: given without key_file" : ".key_file: given without cert_file");
}

}  // namespace

#define REDLOCK_TEXT(name, max, range, example, text) {"tls." #name, &TlsValues::name, range, max},
#define REDLOCK_OTHER(name, range, example, text) {"tls." #name, nullptr, range, 0},
constexpr TlsKey tls_keys[tls_key_count] = {REDLOCK_TLS_KEY_MAP(REDLOCK_TEXT, REDLOCK_OTHER)};
static_assert(REDLOCK_TLS_PATH_MAX == 128 && REDLOCK_TLS_PINS_MAX == 4);

bool write_tls(TextWriter& out, const TlsKey& key, const TlsValues& values) {
  if (key.text != nullptr) {
    out.escaped((values.*key.text).bytes());
    return !(values.*key.text).empty();
  }
  if (bytes_of(key.name) == Bytes("tls.min_version")) {
    out.raw(values.min_version == 13 ? "1.3" : "1.2");
    return values.min_version != 0;
  }
  for (unsigned i = 0; i < values.pins; ++i) {
    char digits[8];
    const unsigned char* const pin = values.pin[i];
    write_hex(uint32_t{pin[0]} << 24 | uint32_t{pin[1]} << 16 | uint32_t{pin[2]} << 8 | pin[3], digits);
    out.raw(i == 0 ? "sha256:" : ",sha256:").raw(Bytes(digits, sizeof digits)).raw("...");
  }
  return values.pins > 0;
}

int set_tls(TlsValues& out, Bytes name, Bytes value, TextWriter& why) {
  const TlsKey* const key = find_tls_key(name);
  why.raw(".").escaped(name, shown_bytes);
  if (key == nullptr) return fail(why, ": no such key");
  if (name == Bytes("min_version")) return set_min_version(out.min_version, value, why);
  if (name == Bytes("pin")) return set_pins(out, value, why);
  if (value.size < 1 || value.size > key->max) return bad_size(why, "", value.size, 1, key->max);
  Text text;
  text.assign(value);
  if (key->text == &TlsValues::server_name && !is_server_name(text)) {
    return fail(why.raw(": ").quoted(value, shown_bytes), " is neither a host name nor a numeric address");
  }
  out.*key->text = text;
  return 0;
}

int read_tls(const cJSON& object, const char* path, TlsValues& out, TextWriter& why) {
  const TextWriter start = why;
  if (!is(object, cJSON_Object)) return not_a("an object", object, why.raw(path));
  uint32_t seen = 0;
  for (const cJSON* item = object.child; item != nullptr; item = item->next) {
    why = start;
    why.raw(path);
    const Bytes name = bytes_of(item->string);
    const TlsKey* const key = find_tls_key(name);
    const uint32_t bit = key == nullptr ? 0 : 1u << (key - tls_keys);
    if ((seen & bit) != 0) return fail(why.raw(".").raw(name), ": given twice");
    seen |= bit;
    int result = 0;
    if (is(*item, cJSON_Array) && name == Bytes("pin")) {
      out.pins = 0;
      result = read_pins(*item, out, why.raw(".pin"));
    } else if (key != nullptr && !is(*item, cJSON_String)) {
      result = not_a("a string", *item, why.raw(".").raw(name));
    } else {
      result = set_tls(out, name, bytes_of(key == nullptr ? "" : item->valuestring), why);
    }
    if (result != 0) return result;
  }
  why = start;
  return 0;
}

int check_tls(const Values& values, TextWriter& why) {
  const TlsValues& common = values.tls;
  const TextWriter start = why;
  int result = check_pair(common, why.raw("tls"));
  for (unsigned m = 0; result == 0 && m < values.masters; ++m) {
    const TlsValues& own = values.master[m].tls;
    why = start;
    why.print("masters[%u]", m);
    const bool trusts = !either(own.ca_file, common.ca_file).empty() || own.pins + common.pins > 0;
    if (own.wanted && !trusts) return fail(why, ".url: rediss:// needs tls.ca_file or tls.pin");
    why.raw(".tls");
    if (!own.wanted && is_given(own)) return fail(why, ": given, and the url does not begin with rediss://");
    result = check_pair(own, why);
  }
  if (result == 0) why = start;
  return result;
}

bool shows_password(const Values& values, TextWriter& line) {
  for (unsigned m = 0; m < values.masters; ++m) {
    const Master& master = values.master[m];
    if (master.tls.wanted || is_here(master)) continue;
    if (master.file == nullptr && either(master.password, values.password).empty()) continue;
    line.print("masters[%u].url: the password goes to ", m);
    write_address(line, master);
    line.raw(" in the clear; rediss:// would encrypt it");
    return true;
  }
  return false;
}

void tls_settings(const Values& values, unsigned m, TlsSettings& out) {
  const Master& master = values.master[m];
  const TlsValues& own = master.tls;
  const TlsValues& common = values.tls;
  const TlsValues& pinned = own.pins > 0 ? own : common;
  const TlsValues& named = own.cert_file.empty() ? common : own;
  out.wanted = own.wanted;
  out.tls13 = (own.min_version != 0 ? own.min_version : common.min_version) == 13;
  out.ca_file = either(own.ca_file, common.ca_file).bytes();
  out.cert_file = named.cert_file.bytes();
  out.key_file = named.key_file.bytes();
  out.server_name = either(either(own.server_name, common.server_name), master.host).bytes();
  out.pins = Bytes(reinterpret_cast<const char*>(pinned.pin), pinned.pins * TlsSettings::pin_size);
}

// ---- what is wrong ----------------------------------------------------------------------------------------------

// A date that time_t does not hold is left out.
void write_tls_date(TextWriter& out, int err, const TlsDate& date) {
  out.raw(date.of == TlsDate::Of::master         ? "the master's own"
          : date.of == TlsDate::Of::intermediate ? "an intermediate"
                                                 : "the authority in tls.ca_file");
  out.raw(err == REDLOCK_E_TLS_EXPIRED ? " ended" : " begins");
  const time_t at = static_cast<time_t>(date.at_s);
  tm t;
  if (at != date.at_s || gmtime_r(&at, &t) == nullptr) return;
  char text[24];
  out.raw(Bytes(text, strftime(text, sizeof text, " %F %R UTC", &t)));
}

void write_tls_file(TextWriter& out, const TlsFile& file) {
  out.raw(tls_keys[static_cast<unsigned>(file.name)].name).raw(": ");
  write_file_fault(out, bytes_of(file.path), file.fault);
}

}  // namespace redlock

#else

namespace redlock {

int no_tls(TextWriter& why) {
  why.raw(": this build has no TLS (REDLOCK_TLS=off)");
  return REDLOCK_E_NOTSUP;
}

}  // namespace redlock

#endif
