// SPDX-License-Identifier: MIT
#include "config/json_item.hpp"

#include <stdio.h>

namespace redlock {
namespace {

Bytes kind_of(const cJSON& item) {
  if (is(item, cJSON_String)) return "a string";
  if (is(item, cJSON_Number)) return "a number";
  if (is(item, cJSON_Object)) return "an object";
  if (is(item, cJSON_Array)) return "an array";
  if (is(item, cJSON_NULL)) return "null";
  return is(item, cJSON_True) ? Bytes("true") : Bytes("false");
}

}  // namespace

void write_value(TextWriter& why, const cJSON& item) {
  if (is(item, cJSON_String)) {
    why.quoted(bytes_of(item.valuestring), shown_bytes);
  } else if (is(item, cJSON_Number)) {
    char digits[32];
    snprintf(digits, sizeof digits, "%.15g", item.valuedouble);
    why.raw(bytes_of(digits));
  } else {
    why.raw(kind_of(item));
  }
}

int not_a(Bytes wanted, const cJSON& item, TextWriter& why) {
  why.raw(": ").raw(kind_of(item)).raw(" is not ").raw(wanted);
  return REDLOCK_E_CONFIG;
}

int no_tls(TextWriter& why) {
  why.raw(": TLS is not supported by this version");
  return REDLOCK_E_NOTSUP;
}

}  // namespace redlock
