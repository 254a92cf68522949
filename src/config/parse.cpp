// SPDX-License-Identifier: MIT
//
// cJSON reads the text; this file walks the tree once and sets each value by the table of keys. It does not ask the
// tree for names: cJSON would find only the first of two equal keys, and unknown keys would go unnoticed. Numbers are
// read as double, because cJSON's integers saturate. Values go into a copy, which replaces the configuration when all
// of them were right. Text, tree and copy may hold passwords, so all three are wiped.
#include "config/parse.hpp"

#include "config/json_item.hpp"
#include "config/json_text.hpp"
#include "config/keys.hpp"
#include "config/tls.hpp"

#include <errno.h>
#include <stdlib.h>

namespace redlock {
namespace {

int read_masters(const cJSON& list, Values& values, TextWriter& why) {
  if (!is(list, cJSON_Array)) return not_a("an array", list, why.raw("masters"));
  const TextWriter start = why;
  for (const cJSON* item = list.child; item != nullptr; item = item->next) {
    why = start;
    Master* master = next_master(values, why);
    if (master == nullptr) return REDLOCK_E_CONFIG;
    int result = fill_master(*item, *master, why);
    if (result == 0) result = take_master(values, why);
    if (result != 0) return result;
  }
  why = start;
  return 0;
}

int read_number(const cJSON& item, const Key& key, Values& values, TextWriter& why) {
  REDLOCK_ASSERT(!key.is_text());
  const double value = item.valuedouble;
  const bool is_number = is(item, cJSON_Number);
  if (is_number && value >= 0 && value <= UINT32_MAX) {
    const uint32_t whole = static_cast<uint32_t>(value);
    if (whole == value) return set_number(values, key, whole, why);
  }
  // A number outside of the range is reported as that, even if it also has a fraction or more than 32 bits.
  const bool outside = is_number && (value < key.min || value > key.max);
  why.raw(key.name).raw(": ");
  write_value(why, item);
  why.raw(outside ? " is not " : " is not an integer ");
  write_range(why, key);
  return REDLOCK_E_CONFIG;
}

int read_key(const cJSON& item, const Key& key, Values& values, TextWriter& why) {
  if (!key.is_text()) return read_number(item, key, values, why);
  if (!is(item, cJSON_String)) return not_a("a string", item, why.raw(key.name));
  return set_text(values, key, bytes_of(item.valuestring), why);
}

const Key* find_in_section(Bytes section, Bytes name) {
  char dotted[64];
  if (section.size + 1 + name.size > sizeof dotted) return nullptr;
  TextWriter whole(dotted, sizeof dotted);
  whole.raw(section).raw(".").raw(name);
  return whole.fits() ? find_key(bytes_of(dotted)) : nullptr;
}

int read_section(const cJSON& section, Values& values, TextWriter& why) {
  const Bytes name = bytes_of(section.string);
  if (!is(section, cJSON_Object)) return not_a("an object", section, why.raw(name));
  bool seen[key_count] = {};
  for (const cJSON* item = section.child; item != nullptr; item = item->next) {
    const Key* key = find_in_section(name, bytes_of(item->string));
    if (key == nullptr) {
      return fail(why.raw(name).raw(".").escaped(bytes_of(item->string), shown_bytes), ": no such key");
    }
    if (seen[place_of(*key)]) return fail(why.raw(key->name), ": given twice");
    seen[place_of(*key)] = true;
    const int result = read_key(*item, *key, values, why);
    if (result != 0) return result;
  }
  return 0;
}

// Reads one member of the outermost object. The same name must not stand among the `earlier` members. These are few:
// each is a known key, and stands there once.
int read_member(const cJSON& item, const cJSON* earlier, Values& values, TextWriter& why) {
  const Bytes name = bytes_of(item.string);
  for (; earlier != &item; earlier = earlier->next) {
    REDLOCK_ASSERT(earlier != nullptr);  // the item is among them, or behind them
    if (bytes_of(earlier->string) == name) return fail(why.raw(name), ": given twice");
  }
  if (name == Bytes("masters")) return read_masters(item, values, why);
  if (name == Bytes("tls")) return read_tls(item, "tls", values.tls, why);
  if (is_section(name)) return read_section(item, values, why);
  const Key* key = memchr(name.data, '.', name.size) == nullptr ? find_key(name) : nullptr;
  if (key == nullptr) return fail(why.escaped(name, shown_bytes), no_such_key(name));
  return read_key(item, *key, values, why);
}

int read_root(const cJSON& root, Values& values, TextWriter& why) {
  if (!is(root, cJSON_Object)) return not_a("an object", root, why.raw("configuration"));
  for (const cJSON* item = root.child; item != nullptr; item = item->next) {
    const int result = read_member(*item, root.child, values, why);
    if (result != 0) return result;
  }
  return 0;
}

void wipe_strings(cJSON& item) {
  if (item.valuestring != nullptr) explicit_bzero(item.valuestring, strlen(item.valuestring));
  for (cJSON* child = item.child; child != nullptr; child = child->next) wipe_strings(*child);
}

// The NUL behind `text` is passed to cJSON: with it cJSON reports text behind the object, and old versions of cJSON do
// not read past the end.
cJSON* parse(const char* text, size_t size, const char** end) {
  return cJSON_ParseWithLengthOpts(text, size + 1, end, 1);
}

// cJSON frees what it has read of a text with an error, and wipes nothing. So it sees the passwords only if a text of
// the same syntax without them was well.
int check_syntax(Bytes json, char* masked, TextWriter& why) {
  TextFault fault = find_text_fault(json, masked);
  if (fault.what == nullptr) {
    const char* end = masked;
    errno = 0;
    cJSON* root = parse(masked, json.size, &end);
    cJSON_Delete(root);
    if (root != nullptr) return 0;
    if (errno == ENOMEM) return REDLOCK_E_NOMEM;
    fault = {static_cast<size_t>(end - masked), "not JSON"};
  }
  write_position(why, json, fault.offset);
  return fail(why, fault.what);
}

int parse_into(Values& values, Bytes json, TextWriter& why) {
  char* masked = static_cast<char*>(malloc(json.size + 1));
  int result = masked != nullptr ? check_syntax(json, masked, why) : int{REDLOCK_E_NOMEM};
  free(masked);
  if (result != 0) return result;
  cJSON* root = parse(json.data, json.size, nullptr);
  if (root == nullptr) return REDLOCK_E_NOMEM;
  result = read_root(*root, values, why);
  wipe_strings(*root);
  cJSON_Delete(root);
  return result;
}

// Others can read the file at `path`, from which come what is given and the masters from `first` on.
int refuse_passwords(const Values& values, unsigned first, const char* path, TextWriter& why) {
  bool has_one = values.given[place_of(*find_key("password"))] && !values.password.empty();
  for (; first < values.masters; ++first) has_one = has_one || !values.master[first].password.empty();
  if (!has_one) return 0;
  why.escaped(bytes_of(path), 128).raw(": others can read its password; type: chmod o-r ");
  why.escaped(bytes_of(path), 128);
  return REDLOCK_E_CONFIG;
}

}  // namespace

int load(Values& values, Bytes json, const char* exposed, TextWriter& why) {
  const TextWriter start = why;
  Values* copy = static_cast<Values*>(malloc(sizeof(Values)));
  if (copy == nullptr) return REDLOCK_E_NOMEM;
  *copy = values;
  memset(copy->given, 0, sizeof copy->given);
  int result = parse_into(*copy, json, why);
  if (result == 0 && exposed != nullptr) result = refuse_passwords(*copy, values.masters, exposed, why = start);
  for (unsigned i = 0; i < key_count; ++i) copy->given[i] = copy->given[i] || values.given[i];
  if (result == 0) {
    values = *copy;
  } else {
    forget_files(*copy, values.masters);
  }
  explicit_bzero(copy, sizeof *copy);
  free(copy);
  return result;
}

}  // namespace redlock
