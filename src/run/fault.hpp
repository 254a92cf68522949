// SPDX-License-Identifier: MIT
//
// Fault: what is wrong with a call that is refused with INVAL. The number is the same for all of them, the text is not.
#pragma once
#include "config/text.hpp"

namespace redlock {

struct Fault {
  // In the order of the texts in fault.cpp.
  enum class Is : uint8_t {
    no_resources,
    count,
    no_name,
    empty_name,
    long_name,
    own_key,
    twice,
    bytes,
    size,
    flags,
    reserved,
    short_ttl,
    long_ttl,
    wait,
    validity,
    delay,
  };
  Is what;
  uint32_t value;  // what was given
  uint32_t limit;  // where it is not the same for all clients

  int set(Is is, uint32_t given = 0, uint32_t against = 0);  // returns INVAL
};

constexpr size_t fault_text_max = 120;  // with the NUL
// E.g. "ttl_ms 40000 is above timing.max_ttl_ms 30000".
void explain(const Fault& fault, TextWriter& out);

}  // namespace redlock
