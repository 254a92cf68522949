// SPDX-License-Identifier: MIT
#include "config/json_item.hpp"

namespace redlock {
namespace {

const char* kind_of(const cJSON& item) {
  if (is(item, cJSON_String)) return "a string";
  if (is(item, cJSON_Number)) return "a number";
  if (is(item, cJSON_Object)) return "an object";
  if (is(item, cJSON_Array)) return "an array";
  if (is(item, cJSON_NULL)) return "null";
  return is(item, cJSON_True) ? "true" : "false";
}

// With six digits behind the point at most. snprintf() would bring 16 KB into a static program. The whole part is
// converted in two words, because the conversion of 64 bits is a kilobyte of the compiler's library.
void write_number(TextWriter& why, double value) {
  constexpr double billion = 1e9, most = 1e15;
  constexpr uint32_t million = 1'000'000;
  if (!(value > -most && value < most)) {
    why.raw(value > 0 ? "1e15 or more" : "-1e15 or less");
    return;
  }
  if (value < 0) why.raw("-");
  if (value < 0) value = -value;
  const uint32_t high = static_cast<uint32_t>(value / billion);
  value -= high * billion;
  const uint32_t low = static_cast<uint32_t>(value);
  uint32_t rest = static_cast<uint32_t>((value - low) * million + 0.5);
  REDLOCK_ASSERT(rest <= million);
  why.number(high * uint64_t{1'000'000'000} + low + (rest == million ? 1 : 0));
  if (rest == 0 || rest == million) return;
  why.raw(".");
  while (rest != 0) {
    uint32_t digit = 0;
    for (rest *= 10; rest >= million; rest -= million) ++digit;
    why.number(digit);
  }
}

}  // namespace

void write_value(TextWriter& why, const cJSON& item) {
  if (is(item, cJSON_String)) {
    why.quoted(bytes_of(item.valuestring), shown_bytes);
  } else if (is(item, cJSON_Number)) {
    write_number(why, item.valuedouble);
  } else {
    why.raw(kind_of(item));
  }
}

int not_a(const char* wanted, const cJSON& item, TextWriter& why) {
  why.print(": %s is not %s", kind_of(item), wanted);
  return REDLOCK_E_CONFIG;
}

}  // namespace redlock
