// SPDX-License-Identifier: MIT
#include "master/info.hpp"

#include "base/digits.hpp"

namespace redlock {
namespace {

// The lines that matter, by their names in this order.
enum class Line {
  run_id,
  replid,
  role,
  replicas,
  backlog,
  mode,
  server_mode,
  loading,
  async_loading,
  limit,
  policy,
  evicted,
  other
};
constexpr char names[] =
    "run_id\0master_replid\0role\0connected_slaves\0repl_backlog_active\0redis_mode\0server_mode\0loading\0"
    "async_loading\0maxmemory\0maxmemory_policy\0evicted_keys\0";

Line line_named(Bytes name) {
  unsigned n = 0;
  for (const char* at = names; *at != '\0'; ++n) {
    const size_t size = strlen(at);
    if (Bytes(at, size) == name) return static_cast<Line>(n);
    at += size + 1;
  }
  return Line::other;
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
  const char* const colon = static_cast<const char*>(memchr(line_, ':', size_));
  if (colon == nullptr) return;
  const Bytes name(line_, static_cast<size_t>(colon - line_));
  const Bytes value(colon + 1, size_ - name.size - 1);
  const bool zero = value == Bytes("0");
  switch (line_named(name)) {
    case Line::run_id:
      facts_.has_run_id = copy_id(facts_.run_id, value);
      break;
    case Line::replid:
      facts_.has_replid = copy_id(facts_.replid, value);
      break;
    case Line::role:
      facts_.master = value == Bytes("master");
      break;
    case Line::replicas:
      if (zero) none_ |= 1;
      break;
    case Line::backlog:
      if (zero) none_ |= 2;
      break;
    case Line::mode:
    case Line::server_mode:
      facts_.standalone = facts_.standalone && value == Bytes("standalone");
      break;
    case Line::loading:
    case Line::async_loading:
      facts_.loading = facts_.loading || !zero;
      break;
    case Line::limit:
      limited_ = !zero;
      break;
    case Line::policy:
      evicting_ = value != Bytes("noeviction");
      break;
    case Line::evicted:
      parse_decimal(value, facts_.evicted_keys);
      break;
    case Line::other:
      break;
  }
}

}  // namespace redlock
