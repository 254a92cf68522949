// SPDX-License-Identifier: MIT
//
// The reader on every text up to a length, in every way in which the text can arrive.
//
// Two walks go through all texts: one adds a byte at a time from an alphabet of bytes, the other a whole line from a
// list of lines. At each text the reader that was given it byte by byte is compared
//
//   with an oracle            a decoder of its own that is written the other way round: recursive, over a whole text
//   with readers given the    a prefix byte by byte, and the rest in one piece, for each length of the prefix: same
//   same text in two pieces   items, same state. So, by induction over the pieces, no division of the text matters
//
// A text is not continued once the oracle finds it broken, or complete: what follows is a text of its own.
#include <gtest/gtest.h>

#include <charconv>
#include <cstring>
#include <optional>

#include "bounds/every_sequence.hpp"
#include "support/resp_feed.hpp"

namespace redlock::test {
namespace {

using resp::Item;
using resp::Progress;
using resp::Reader;
using resp::Type;

// ---- the oracle -------------------------------------------------------------------------------------------------

enum class Is { complete, open, broken };

class Oracle {
 public:
  explicit Oracle(const std::string& text) : text_(text) {}

  // What the text is, and the items that are complete, one line each.
  Is decode() { return value(0, false); }
  const std::string& items() const { return items_; }

 private:
  struct Line {
    Is is;
    char type;
    std::string rest;
  };

  Line line() {
    const size_t begin = at_;
    if (begin == text_.size()) return {Is::open, 0, ""};
    const std::string types = "+-:$*_#,(!=%|~>";
    const size_t end = text_.find_first_of("\r\n", begin);
    const bool known = types.find(text_[begin]) != std::string::npos;
    if (end == std::string::npos) return {known ? Is::open : Is::broken, 0, ""};
    if (text_[end] == '\n' || end == begin) return {Is::broken, 0, ""};
    if (end + 1 == text_.size()) return {known ? Is::open : Is::broken, 0, ""};
    if (text_[end + 1] != '\n' || !known) return {Is::broken, 0, ""};
    at_ = end + 2;
    return {Is::complete, text_[begin], text_.substr(begin + 1, end - begin - 1)};
  }

  static std::optional<int64_t> number(const std::string& text) {
    int64_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc() || end != text.data() + text.size() || std::to_string(n) != text) return std::nullopt;
    return n;
  }

  void tell(unsigned depth, const std::string& what) {
    if (silent_ == 0) items_ += std::to_string(depth) + ' ' + what + '\n';
  }

  Is body(unsigned depth, int64_t size, const std::string& type) {
    const auto n = static_cast<size_t>(size);
    if (text_.size() - at_ < n + 2) return Is::open;
    if (text_.compare(at_ + n, 2, "\r\n") != 0) return Is::broken;
    tell(depth, type + " '" + text_.substr(at_, n) + "'");
    at_ += n + 2;
    return Is::complete;
  }

  Is children(unsigned depth, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const Is is = value(depth + 1, true);
      if (is != Is::complete) return is;
    }
    return Is::complete;
  }

  Is aggregate(unsigned depth, bool inside, char type, const std::string& rest) {
    const std::optional<int64_t> size = number(rest);
    if (type == '*' && size == -1) return tell(depth, "null"), Is::complete;
    if (!size || *size < 0 || *size > 1024) return Is::broken;
    if (type == '>' && inside) return Is::broken;
    const int64_t n = type == '%' || type == '|' ? 2 * *size : *size;
    if (n > 1024) return Is::broken;
    if (n > 0 && depth >= Reader::depth_max) return Is::broken;
    if (type == '|') {
      ++silent_;
      const Is is = children(depth, n);
      --silent_;
      return is == Is::complete ? value(depth, inside) : is;
    }
    const char* const name = type == '*' ? "array " : type == '%' ? "map " : type == '~' ? "set " : "push ";
    tell(depth, name + std::to_string(n));
    return children(depth, n);
  }

  Is value(unsigned depth, bool inside) {
    const Line l = line();
    if (l.is != Is::complete) return l.is;
    const std::optional<int64_t> n = number(l.rest);
    switch (l.type) {
      case '+':
        return tell(depth, "simple '" + l.rest + "'"), Is::complete;
      case '-':
        return tell(depth, "error '" + l.rest + "'"), Is::complete;
      case ':':
        return n ? (tell(depth, "integer " + l.rest), Is::complete) : Is::broken;
      case '_':
        return l.rest.empty() ? (tell(depth, "null"), Is::complete) : Is::broken;
      case '#':
        if (l.rest != "t" && l.rest != "f") return Is::broken;
        return tell(depth, l.rest == "t" ? "boolean 1" : "boolean 0"), Is::complete;
      case '$':
        if (n == -1) return tell(depth, "null"), Is::complete;
        [[fallthrough]];
      case '!':
        if (!n || *n < 0 || *n > Reader::string_max) return Is::broken;
        return body(depth, *n, l.type == '$' ? "string" : "error");
      default:
        return aggregate(depth, inside, l.type, l.rest);
    }
  }

  const std::string& text_;
  size_t at_ = 0;
  unsigned silent_ = 0;
  std::string items_;
};

// ---- the reader, as a state that can be copied ------------------------------------------------------------------

struct State {
  alignas(Reader) char reader[sizeof(Reader)];  // copied with its padding, so that states can be compared
  size_t unread = 0;                            // bytes at the end of the text that it still wants to be shown
  bool broken = false;
  bool complete = false;
  std::string items;
};

constexpr size_t capacity = 2048;  // no string of seven bytes of text is longer

// Whatever is shown lies flush against a page that may not be touched.
GuardedMemory& window() {
  static GuardedMemory memory(capacity);
  return memory;
}

State start() {
  State state;
  memset(state.reader, 0, sizeof state.reader);
  new (state.reader) Reader(capacity);
  return state;
}

std::string without_marks(const SeenItem& seen) {
  SeenItem plain = seen;
  plain.item.part = plain.item.push = plain.item.last = false;
  return describe(plain) + '\n';
}

// The last `fresh` bytes of the text arrive in one piece.
void arrive(State& state, const std::string& text, size_t fresh) {
  state.unread += fresh;
  while (!state.broken && !state.complete) {
    char* const shown = window().last(state.unread);
    memcpy(shown, text.data() + text.size() - state.unread, state.unread);
    size_t used = 0;
    Item item;
    const Progress progress = reinterpret_cast<Reader*>(state.reader)->next(shown, state.unread, used, item);
    ASSERT_LE(used, state.unread);
    state.unread -= used;
    state.broken = progress == Progress::broken;
    if (progress == Progress::item) {
      SeenItem seen{item, std::string(item.text.data != nullptr ? item.text.data : "", item.text.size)};
      state.items += without_marks(seen);
      state.complete = item.last;
      ASSERT_FALSE(item.part) << "it would fit";
    } else {
      break;
    }
  }
}

bool same(const State& a, const State& b) {
  if (a.broken != b.broken || a.items != b.items) return false;
  if (a.broken) return true;  // how many bytes it was shown before says nothing
  return a.complete == b.complete && a.unread == b.unread && memcmp(a.reader, b.reader, sizeof a.reader) == 0;
}

// ---- the walks --------------------------------------------------------------------------------------------------

struct Walk {
  std::vector<std::string> alphabet;
  unsigned depth;
  unsigned long texts = 0, complete = 0, broken = 0;
  std::string text = {};
  std::vector<State> path = {start()};  // after each byte

  // The text that stands there has just been shown byte by byte.
  bool check() {
    ++texts;
    const State& bytewise = path.back();
    Oracle oracle(text);
    const Is is = oracle.decode();
    complete += is == Is::complete;
    broken += is == Is::broken;
    EXPECT_EQ(bytewise.broken, is == Is::broken) << testing::PrintToString(text);
    EXPECT_EQ(bytewise.complete, is == Is::complete) << testing::PrintToString(text);
    if (is != Is::broken) {
      EXPECT_EQ(bytewise.items, oracle.items()) << testing::PrintToString(text);
    }
    for (size_t first = 0; first + 1 < text.size(); ++first) {
      State state = path[first];
      if (state.broken || state.complete) break;
      arrive(state, text, text.size() - first);
      EXPECT_TRUE(same(state, bytewise)) << testing::PrintToString(text) << " in one piece from byte " << first;
    }
    return is == Is::open;
  }

  void go(unsigned left) {
    for (const std::string& next : alphabet) {
      const size_t before = text.size(), states = path.size();
      bool open = true;
      for (size_t i = 0; i < next.size() && open; ++i) {
        text += next[i];
        path.push_back(path.back());
        arrive(path.back(), text, 1);
        open = !path.back().broken && !path.back().complete;
      }
      const bool whole = text.size() == before + next.size();
      if (check() && whole && left > 1 && !testing::Test::HasFailure()) go(left - 1);
      text.resize(before);
      path.resize(states);
    }
  }
};

void tell(const Walk& walk) {
  std::printf("%lu texts: %lu complete, %lu broken, %lu open\n", walk.texts, walk.complete, walk.broken,
              walk.texts - walk.complete - walk.broken);
}

TEST(EveryText, of_bytes) {
  Walk walk{{"+", "$", "*", "|", ">", "_", "1", "0", "-", "\r", "\n"}, bound(6, 7)};
  walk.go(walk.depth);
  tell(walk);
  EXPECT_GT(walk.complete, 100u);
  EXPECT_GT(walk.broken, walk.complete);
}

TEST(EveryText, of_lines) {
  Walk walk{{"+a\r\n", "-\r\n", ":1\r\n", "_\r\n", "#t\r\n", "$0\r\n", "$1\r\n", "$-1\r\n", "!1\r\n", "*0\r\n",
             "*-1\r\n", "*1\r\n", "*2\r\n", "%1\r\n", "~1\r\n", "|1\r\n", ">1\r\n", ">2\r\n", "\r\n", "a\r\n",
             ":01\r\n"},
            bound(4, 5)};
  walk.go(walk.depth);
  tell(walk);
  EXPECT_GT(walk.complete, 1000u);
}

}  // namespace
}  // namespace redlock::test
