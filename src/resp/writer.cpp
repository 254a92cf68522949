// SPDX-License-Identifier: MIT
#include "resp/writer.hpp"

namespace redlock::resp {

Writer& Writer::number(uint32_t value) {
  const unsigned digits = decimal_size(value);
  if (char* at = open_bulk(digits)) write_decimal(at, value, digits);
  return *this;
}

}  // namespace redlock::resp
