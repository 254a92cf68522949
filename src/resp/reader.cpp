// SPDX-License-Identifier: MIT
#include "resp/reader.hpp"

#include "base/digits.hpp"

namespace redlock::resp {
namespace {

constexpr char type_bytes[] = "+-:$*_#,(!=%|~>";

bool parse_integer(Bytes text, int64_t& out) {
  const bool negative = text.size != 0 && *text.data == '-';
  const Bytes digits(text.data + negative, text.size - negative);
  if (digits.size > 1 && *digits.data == '0') return false;
  uint64_t value = 0;
  if (!parse_decimal(digits, value) || (negative && value == 0)) return false;
  if (value > uint64_t{INT64_MAX} + negative) return false;
  out = static_cast<int64_t>(negative ? 0 - value : value);
  return true;
}

// Removes one or more digits from the front of a text; false when there are none.
bool skip_digits(Bytes& text) {
  size_t n = 0;
  while (n < text.size && is_digit(text.data[n])) ++n;
  text = Bytes(text.data + n, text.size - n);
  return n != 0;
}

bool skip_one_of(Bytes& text, char a, char b) {
  if (text.size == 0 || (*text.data != a && *text.data != b)) return false;
  text = Bytes(text.data + 1, text.size - 1);
  return true;
}

bool is_real(Bytes text) {
  skip_one_of(text, '-', '-');
  if (text == Bytes("inf") || text == Bytes("nan")) return true;
  if (!skip_digits(text)) return false;
  if (skip_one_of(text, '.', '.') && !skip_digits(text)) return false;
  if (skip_one_of(text, 'e', 'E')) {
    skip_one_of(text, '+', '-');
    if (!skip_digits(text)) return false;
  }
  return text.size == 0;
}

bool is_big_number(Bytes text) {
  const bool negative = skip_one_of(text, '-', '-');
  if (text.size != 0 && *text.data == '0' && (text.size > 1 || negative)) return false;
  return skip_digits(text) && text.size == 0;
}

}  // namespace

Progress Reader::next(const char* data, size_t size, size_t& used, Item& out) {
  REDLOCK_ASSERT(size <= buffer_);
  used = 0;
  if (broken_) return Progress::broken;
  for (;;) {
    const bool silent = attributes_ != 0;
    const char* const rest = data + used;
    const Step step = body_ < 0 ? line(rest, size - used, used, out) : body(rest, size - used, used, out);
    if (step == Step::again || (step == Step::item && silent)) continue;
    if (step == Step::broken) {
      broken_ = true;
      boundary_ = false;
    }
    REDLOCK_ASSERT(used <= size);
    check();
    return progress(step);
  }
}

inline void Reader::check() const {
  REDLOCK_ASSERT(depth_ <= depth_max);
  REDLOCK_ASSERT(depth_ == 0 || left_[depth_ - 1] != 0);
  REDLOCK_ASSERT(!boundary_ || depth_ == 0);
  REDLOCK_ASSERT(!boundary_ || body_ < 0);
  REDLOCK_ASSERT(!boundary_ || attributes_ == 0);
  REDLOCK_ASSERT(!boundary_ || !push_);
  REDLOCK_ASSERT(!boundary_ || !broken_);
  REDLOCK_ASSERT(body_ < 0 || searched_ == 0);
  REDLOCK_ASSERT((attributes_ >> depth_) == 0);
}

Reader::Step Reader::line(const char* data, size_t size, size_t& used, Item& out) {
  size_t n = searched_;
  for (;; ++n) {
    if (n == size) return unfinished(data, size, n);
    if (data[n] == '\r') break;
    if (data[n] == '\n') return Step::broken;
  }
  if (n + 1 == size) return unfinished(data, size, n);
  if (n == 0 || data[n + 1] != '\n') return Step::broken;
  searched_ = 0;
  boundary_ = false;
  used += n + 2;
  return meaning(*data, Bytes(data + 1, n - 1), out);
}

Reader::Step Reader::unfinished(const char* data, size_t size, size_t searched) {
  if (size == 0) return Step::need_more;
  if (size >= buffer_ || memchr(type_bytes, *data, sizeof type_bytes - 1) == nullptr) return Step::broken;
  searched_ = searched;
  boundary_ = false;
  return Step::need_more;
}

Reader::Step Reader::meaning(char type, Bytes text, Item& out) {
  out = Item();
  out.depth = depth_;
  out.push = push_;
  switch (type) {
    case '+':
    case '-':
      out.text = text;
      return value(out, type == '+' ? Type::simple : Type::error);
    case ':':
      return parse_integer(text, out.integer) ? value(out, Type::integer) : Step::broken;
    case '_':
      return text.size == 0 ? value(out, Type::null) : Step::broken;
    case '#':
      if (text.size != 1 || (*text.data != 't' && *text.data != 'f')) return Step::broken;
      out.integer = *text.data == 't';
      return value(out, Type::boolean);
    case ',':
      out.text = text;
      return is_real(text) ? value(out, Type::real) : Step::broken;
    case '(':
      out.text = text;
      return is_big_number(text) ? value(out, Type::big_number) : Step::broken;
    case '$':
    case '=':
    case '!':
      return open_string(type, text, out);
    case '*':
    case '%':
    case '~':
    case '>':
    case '|':
      return open_aggregate(type, text, out);
    default:
      return Step::broken;
  }
}

Reader::Step Reader::open_string(char type, Bytes text, Item& out) {
  int64_t size = 0;
  if (!parse_integer(text, size)) return Step::broken;
  if (size == -1 && type == '$') return value(out, Type::null);
  if (size < (type == '=' ? 4 : 0) || size > string_max) return Step::broken;
  body_ = static_cast<int32_t>(size);
  body_type_ = type;
  return Step::again;
}

Reader::Step Reader::open_aggregate(char type, Bytes text, Item& out) {
  int64_t children = 0;
  if (!parse_integer(text, children)) return Step::broken;
  if (children == -1 && type == '*') return value(out, Type::null);
  const bool attribute = type == '|';
  const bool pairs = attribute || type == '%';
  if (children < 0 || children > (pairs ? children_max / 2 : children_max) || depth_ == depth_max) return Step::broken;
  if (type == '>') {
    if (depth_ != 0) return Step::broken;
    out.push = push_ = true;
  }
  out.type = type == '*' ? Type::array : type == '%' ? Type::map : type == '~' ? Type::set : Type::push;
  out.integer = pairs ? 2 * children : children;
  if (children == 0) return attribute ? Step::again : value(out, out.type);
  if (attribute) attributes_ = static_cast<uint8_t>(attributes_ | 1u << depth_);
  REDLOCK_ASSERT(depth_ < depth_max);
  REDLOCK_ASSERT(out.integer <= children_max);
  left_[depth_++] = static_cast<uint16_t>(out.integer);
  return attribute ? Step::again : Step::item;
}

Reader::Step Reader::body(const char* data, size_t size, size_t& used, Item& out) {
  if (body_type_ == '=') {
    if (size < 4) return Step::need_more;
    if (data[3] != ':') return Step::broken;
    used += 4;
    body_ -= 4;
    body_type_ = '$';
    return Step::again;
  }
  REDLOCK_ASSERT(body_ >= 0);
  const size_t left = static_cast<size_t>(body_);
  const bool whole = left + 2 <= buffer_;
  if (size < (whole ? left + 2 : 1)) return Step::need_more;
  if (whole && (data[left] != '\r' || data[left + 1] != '\n')) return Step::broken;
  const size_t taken = whole ? left : size < left ? size : left - 1;  // never all: the last item must not be empty
  out = Item();
  out.type = body_type_ == '!' ? Type::error : Type::string;
  out.depth = depth_;
  out.push = push_;
  out.part = !whole;
  out.text = Bytes(data, taken);
  used += whole ? taken + 2 : taken;
  body_ = whole ? -1 : static_cast<int32_t>(left - taken);
  return whole ? value(out, out.type) : Step::item;
}

Reader::Step Reader::value(Item& out, Type type) {
  out.type = type;
  out.last = close_value();
  return Step::item;
}

// The value that has just ended may end its aggregate, which may end the aggregate around it. An attribute is no value:
// the value that it belongs to is still to come.
bool Reader::close_value() {
  while (depth_ != 0) {
    if (--left_[depth_ - 1] != 0) return false;
    --depth_;
    const unsigned level = 1u << depth_;
    if (attributes_ & level) {
      attributes_ = static_cast<uint8_t>(attributes_ & ~level);
      return false;
    }
  }
  push_ = false;
  boundary_ = true;
  return true;
}

}  // namespace redlock::resp
