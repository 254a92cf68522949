// SPDX-License-Identifier: MIT
#include "master/info.hpp"

#include "base/digits.hpp"
#include "base/types.hpp"

namespace redlock {
namespace {

using Line = InfoReader::Line;

// The values of a lone master that evicts nothing, for the lines from `role` on.
constexpr char wanted[] = "master\0" "0\0" "0\0" "standalone\0" "standalone\0" "0\0" "noeviction";

constexpr unsigned bit(Line line) { return 1u << static_cast<unsigned>(line); }

// In a seal zeros stand for an unknown id, so an id of zeros counts as unknown.
bool copy_id(char* to, Bytes value) {
  constexpr size_t size = InfoFacts::id_size;
  if (value.size < size || Bytes(value.data, size) == Bytes("0000000000000000")) return false;
  memcpy(to, value.data, size);
  return true;
}

}  // namespace

void InfoReader::begin() {
  facts_ = {};
  there_ = as_wanted_ = 0;
}

const InfoFacts& InfoReader::end() {
  const unsigned odd = there_ & ~as_wanted_;
  facts_.master = all(bit(Line::role));
  facts_.alone = all(bit(Line::role) | bit(Line::replicas) | bit(Line::backlog));
  facts_.standalone = (odd & (bit(Line::mode) | bit(Line::server_mode))) == 0;
  facts_.evicts = (odd & bit(Line::limit)) != 0 && (odd & bit(Line::policy)) != 0;
  return facts_;
}

void InfoReader::read(Line line, Bytes value) {
  if (line == Line::run_id) {
    facts_.has_run_id = copy_id(facts_.run_id, value);
  } else if (line == Line::replid) {
    facts_.has_replid = copy_id(facts_.replid, value);
  } else if (line == Line::evicted) {
    parse_decimal(value, facts_.evicted_keys);
  } else {
    const char* const text = nth_text(wanted, static_cast<unsigned>(line) - static_cast<unsigned>(Line::role));
    there_ = static_cast<uint16_t>(there_ | bit(line));
    if (value == Bytes(text, strlen(text))) as_wanted_ = static_cast<uint16_t>(as_wanted_ | bit(line));
  }
}

}  // namespace redlock
