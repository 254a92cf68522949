// SPDX-License-Identifier: MIT
//
// Feed: a Reader behind a receive buffer, as a connection has one, for tests. Bytes arrive in any pieces; the items
// that come out are kept with copies of their texts. Whatever the reader is shown ends flush against a page that may
// not be touched, and Feed itself checks what every caller relies on: no more is used than was shown, texts lie in what
// was used, every item moves on, and a full buffer never asks for more.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "guarded_memory.hpp"
#include "resp/reader.hpp"

namespace redlock::test {

struct SeenItem {
  resp::Item item;  // its text points nowhere
  std::string text;
};

inline std::string describe(const SeenItem& seen) {
  static const char* const names[] = {"simple", "error",      "integer", "string", "null", "boolean",
                                      "real",   "big_number", "array",   "map",    "set",  "push"};
  const resp::Item& item = seen.item;
  std::string s = std::to_string(unsigned{item.depth}) + ' ' + names[static_cast<unsigned>(item.type)];
  switch (item.type) {
    case resp::Type::null:
      break;
    case resp::Type::integer:
    case resp::Type::boolean:
    case resp::Type::array:
    case resp::Type::map:
    case resp::Type::set:
    case resp::Type::push:
      s += ' ' + std::to_string(item.integer);
      break;
    default:
      s += " '" + seen.text + '\'';
  }
  if (item.part) s += " part";
  if (item.push) s += " push";
  if (item.last) s += " last";
  return s;
}

// One line for each item.
inline std::string describe(const std::vector<SeenItem>& items) {
  std::string s;
  for (const SeenItem& seen : items) s += describe(seen) + '\n';
  return s;
}

class Feed {
 public:
  explicit Feed(size_t capacity = 1024) : capacity_(capacity), reader_(capacity), memory_(capacity) {}

  // These bytes arrive. False: the reader is broken.
  bool bytes(std::string_view piece) {
    waiting_ += piece;
    while (!broken_ && step()) {
    }
    return !broken_;
  }
  bool in_pieces(std::string_view bytes_in, size_t piece) {
    for (size_t at = 0; at < bytes_in.size(); at += piece) bytes(bytes_in.substr(at, piece));
    return !broken_;
  }
  void reset() {
    reader_.reset();
    waiting_.clear();
    items_.clear();
    broken_ = false;
  }

  bool broken() const { return broken_; }
  bool at_boundary() const { return reader_.at_boundary(); }
  size_t unread() const { return waiting_.size(); }
  const std::vector<SeenItem>& items() const { return items_; }
  std::string description() const { return describe(items_); }

  // The same with the parts of each string joined; parts whose string has not ended are left out.
  std::vector<SeenItem> joined() const {
    std::vector<SeenItem> whole;
    std::string parts;
    for (SeenItem seen : items_) {
      parts += seen.text;
      if (seen.item.part) continue;
      seen.text = std::move(parts);
      parts.clear();
      whole.push_back(std::move(seen));
    }
    return whole;
  }

 private:
  bool step() {
    const size_t size = std::min(waiting_.size(), capacity_);
    char* const shown = memory_.last(size);
    std::copy_n(waiting_.data(), size, shown);
    resp::Item item;
    size_t used = ~size_t{0};
    const resp::Progress progress = reader_.next(shown, size, used, item);
    if (progress == resp::Progress::broken) {
      broken_ = true;
      return false;
    }
    if (used > size) {
      ADD_FAILURE() << used << " bytes used of " << size;
      broken_ = true;
      return false;
    }
    if (progress == resp::Progress::item) keep(item, shown, used);
    EXPECT_TRUE(progress == resp::Progress::need_more || used > 0) << "an item out of nothing";
    EXPECT_FALSE(progress == resp::Progress::need_more && used == 0 && size == capacity_) << "a full buffer is stuck";
    waiting_.erase(0, used);
    return used > 0;
  }

  void keep(resp::Item item, const char* shown, size_t used) {
    SeenItem seen;
    if (item.text.size != 0) {
      EXPECT_GE(item.text.data, shown);
      EXPECT_LE(item.text.data + item.text.size, shown + used);
      seen.text.assign(item.text.data, item.text.size);
    }
    item.text = Bytes();
    seen.item = item;
    items_.push_back(std::move(seen));
  }

  size_t capacity_;
  resp::Reader reader_;
  GuardedMemory memory_;
  std::string waiting_;
  std::vector<SeenItem> items_;
  bool broken_ = false;
};

}  // namespace redlock::test
