// SPDX-License-Identifier: MIT
//
// The table of keys: dotted name, range, place, made from the map. Setters and JSON both use the table, so a key means
// the same in both.
#pragma once
#include "config/config.hpp"

namespace redlock {

struct Key {
  const char* name;
  uint32_t min;  // of a number, or of a string's bytes
  uint32_t max;
  uint32_t Values::*number;      // either `number` or `text` is null
  Text Values::*text = nullptr;
  const char* words = nullptr;   // "off, weak or strict": the number is set by one of these words
  bool or_zero = false;          // 0 is allowed, although it is below min
  bool plain = false;            // only A-Z a-z 0-9 . _ -

  bool is_text() const { return text != nullptr || words != nullptr; }
};

extern const Key keys[key_count];

// Null: no such key.
const Key* find_key(Bytes dotted_name);
// The error text about a name that is no key; it follows the name.
const char* no_such_key(Bytes dotted_name);
// Does any key begin with this name and a dot?
bool is_section(Bytes name);
inline unsigned place_of(const Key& key) { return static_cast<unsigned>(&key - keys); }

int set_number(Values& values, const Key& key, uint32_t value, TextWriter& why);
int set_text(Values& values, const Key& key, Bytes value, TextWriter& why);

// "in 5..10000", "0 or in 1024..4194304"
void write_range(TextWriter& why, const Key& key);
// "key_prefix: 33 bytes are not in 0..32"; returns REDLOCK_E_CONFIG.
int bad_size(TextWriter& why, const char* field, size_t size, uint32_t min, uint32_t max);

}  // namespace redlock
