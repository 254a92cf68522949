// SPDX-License-Identifier: MIT
#include "config/keys.hpp"

#include <unistd.h>

#include <new>

namespace redlock {
namespace {

static_assert(static_cast<int>(GuardMode::off) == 0 && static_cast<int>(GuardMode::weak) == 1 &&
              static_cast<int>(GuardMode::strict) == 2);  // the order of the words of "guard"

// Finds the place of a word in a list like "off, weak or strict".
bool find_word(const char* words, Bytes wanted, uint32_t& place) {
  for (place = 0;; ++place) {
    size_t size = 0;
    while (words[size] >= 'a') ++size;
    if (Bytes(words, size) == wanted) return true;
    words += size;
    if (*words == '\0') return false;
    words += *words == ',' ? sizeof ", " - 1 : sizeof " or " - 1;
  }
}

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

bool all_plain(Bytes text) {
  for (size_t i = 0; i < text.size; ++i) {
    if (!is_plain(text.data[i])) return false;
  }
  return true;
}

// The end of the machine's own name: there gateways differ, as gateway-plant1-north-01 and -02 do.
void set_client_name_to_host_name(Text& name) {
  char host[256];
  if (gethostname(host, sizeof host) != 0) host[0] = '\0';
  host[sizeof host - 1] = '\0';
  size_t whole = 0;  // without its domain
  while (host[whole] != '\0' && host[whole] != '.') ++whole;
  const size_t size = whole < REDLOCK_CLIENT_NAME_MAX ? whole : REDLOCK_CLIENT_NAME_MAX;
  REDLOCK_ASSERT(size <= whole);
  char* const end = host + whole - size;
  for (size_t i = 0; i < size; ++i) {
    if (!is_plain(end[i])) end[i] = '-';
  }
  name.assign(size > 0 ? Bytes(end, size) : Bytes("unnamed"));
}

}  // namespace

#define REDLOCK_STRING(name, min, max, form, text) {#name, min, max, nullptr, &Values::name, nullptr, false, form},
#define REDLOCK_CHOICE(name, words, initial, text) {#name, 0, Text::max, &Values::name, nullptr, words},
#define REDLOCK_NUMBER(section, name, min, max, initial, text) \
  {#section "." #name, min, max, &Values::name, nullptr, nullptr, initial == 0 && min > 0},
#define REDLOCK_TIME(section, name, min, max, initial, text) REDLOCK_NUMBER(section, name##_ms, min, max, initial, text)

constexpr bool any = false, plain = true;  // the forms of strings
constexpr Key keys[key_count] = {REDLOCK_KEY_MAP(REDLOCK_STRING, REDLOCK_CHOICE, REDLOCK_NUMBER, REDLOCK_TIME)};

const Key* find_key(Bytes dotted_name) {
  for (const Key& key : keys) {
    if (bytes_of(key.name) == dotted_name) return &key;
  }
  return nullptr;
}

const char* no_such_key(Bytes dotted_name) {
  return dotted_name == Bytes("master") ? ": it is masters" : ": no such key";
}

bool is_section(Bytes name) {
  for (const Key& key : keys) {
    const Bytes full = bytes_of(key.name);
    if (full.size > name.size && full.data[name.size] == '.' && Bytes(full.data, name.size) == name) return true;
  }
  return false;
}

void set_defaults(Values& values) {
  new (&values) Values();
  set_client_name_to_host_name(values.client_name);
}

int set_number(Values& values, const Key& key, uint32_t value, TextWriter& why) {
  REDLOCK_ASSERT(!key.is_text());
  REDLOCK_ASSERT(key.number != nullptr);
  const bool in_range = (value >= key.min && value <= key.max) || (key.or_zero && value == 0);
  if (!in_range) {
    why.print("%s: %u is not ", key.name, value);
    write_range(why, key);
    return REDLOCK_E_CONFIG;
  }
  values.*key.number = value;
  values.given[place_of(key)] = true;
  return 0;
}

int set_text(Values& values, const Key& key, Bytes value, TextWriter& why) {
  REDLOCK_ASSERT(key.is_text());
  if (value.size < key.min || value.size > key.max) {
    return bad_size(why, key.name, value.size, key.min, key.max);
  }
  if (key.plain && !all_plain(value)) {
    return fail(why.print("%s: ", key.name).quoted(value), " is not of A-Z a-z 0-9 . _ -");
  }
  uint32_t place = 0;
  if (key.words != nullptr && !find_word(key.words, value, place)) {
    why.print("%s: ", key.name).quoted(value).print(" is not %s", key.words);
    return REDLOCK_E_CONFIG;
  }
  if (key.words != nullptr) {
    values.*key.number = place;
  } else {
    REDLOCK_ASSERT(value.size <= Text::max);
    (values.*key.text).assign(value);
  }
  values.given[place_of(key)] = true;
  return 0;
}

void write_range(TextWriter& why, const Key& key) {
  why.print("%sin %u..%u", key.or_zero ? "0 or " : "", key.min, key.max);
}

int bad_size(TextWriter& why, const char* field, size_t size, uint32_t min, uint32_t max) {
  why.print("%s: ", field).number(size);
  why.print(" %s not in %u..%u", size == 1 ? "byte is" : "bytes are", min, max);
  return REDLOCK_E_CONFIG;
}

}  // namespace redlock
