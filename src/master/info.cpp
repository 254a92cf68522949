// SPDX-License-Identifier: MIT
#include "master/info.hpp"

#include "base/digits.hpp"

namespace redlock {
namespace {

// Does the line begin with "name:"? Then `value` is the rest.
bool value_of(Bytes line, Bytes name, Bytes& value) {
  if (line.size <= name.size || line.data[name.size] != ':' || Bytes(line.data, name.size) != name) return false;
  value = Bytes(line.data + name.size + 1, line.size - name.size - 1);
  return true;
}

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
  facts_.standalone = true;
  none_ = 0;
  limited_ = evicting_ = false;
  size_ = 0;
}

void InfoReader::read(Bytes part) {
  for (size_t i = 0; i < part.size; ++i) {
    const char c = part.data[i];
    if (c == '\n') {
      line();
      size_ = 0;
    } else if (c != '\r' && size_ < sizeof line_) {
      line_[size_++] = c;  // no wanted line is longer
    }
  }
}

const InfoFacts& InfoReader::end() {
  line();
  size_ = 0;
  facts_.evicts = limited_ && evicting_;
  facts_.alone = facts_.master && none_ == 3;
  return facts_;
}

void InfoReader::line() {
  const Bytes text(line_, size_);
  Bytes value;
  if (value_of(text, "run_id", value)) {
    facts_.has_run_id = copy_id(facts_.run_id, value);
  } else if (value_of(text, "master_replid", value)) {
    facts_.has_replid = copy_id(facts_.replid, value);
  } else if (value_of(text, "role", value)) {
    facts_.master = value == Bytes("master");
  } else if (value_of(text, "connected_slaves", value)) {
    if (value == Bytes("0")) none_ |= 1;
  } else if (value_of(text, "repl_backlog_active", value)) {
    if (value == Bytes("0")) none_ |= 2;
  } else if (value_of(text, "redis_mode", value) || value_of(text, "server_mode", value)) {
    facts_.standalone = facts_.standalone && value == Bytes("standalone");
  } else if (value_of(text, "loading", value) || value_of(text, "async_loading", value)) {
    facts_.loading = facts_.loading || value != Bytes("0");
  } else if (value_of(text, "maxmemory", value)) {
    limited_ = value != Bytes("0");
  } else if (value_of(text, "maxmemory_policy", value)) {
    evicting_ = value != Bytes("noeviction");
  } else if (value_of(text, "evicted_keys", value)) {
    parse_decimal(value, facts_.evicted_keys);
  }
}

}  // namespace redlock
