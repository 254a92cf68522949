// SPDX-License-Identifier: MIT
//
// Reader: bytes of one connection → items, one at a time, RESP2 and RESP3.
//
// The reader owns no bytes. Each call of next() is given the unread part of the receive buffer, and returns
//
//   item       out is filled; `used` bytes at the front are consumed. out.text points into the buffer, and is valid
//              until those bytes are dropped.
//   need_more  these bytes alone give no item. `used` may still be > 0, for example for the length line of a string:
//              drop those bytes, keep the rest, and call again when more bytes follow.
//   broken     the bytes are not RESP, or beyond the limits. The connection must be closed; the reader stays broken.
//
// A reply is a tree. The reader gives it out as a flat sequence of items, parents before children. Each item carries
// its depth (0: the reply itself) and `last`, which is true on the item that completes the top-level reply or push. A
// fixed stack counts the children still to come, so nesting costs neither recursion nor memory. Attributes ('|', with
// all their children) are skipped. Items of a push carry `push`.
//
// A line (everything but the body of a string) must fit into the buffer, whose capacity is given once: a line that
// fills the buffer without ending is broken. A first byte that begins no reply is broken at once, before its line has
// ended. The rest of a body comes out whole, once it is there with its CR LF, if that much fits into the buffer.
// Otherwise the bytes that are there come out as a `part`. So a body that fits is always one item. A longer body is two
// items or more, and none of them is empty. A call with a full buffer always makes progress.
//
// Numbers have one spelling: no '+', no leading zero, no "-0", no overflow. The length -1 is allowed only after '$' and
// '*'. A CR or LF in a line does nothing but end it. Depth, elements and string length have the limits below. A push
// stands at depth 0. Streamed strings and aggregates ("$?", "*?"), which no server sends, are broken. A line is
// searched only once for its end, however small the pieces are in which it arrives.
#pragma once
#include "base/types.hpp"

namespace redlock::resp {

enum class Type : uint8_t {
  simple,      // +OK
  error,       // -ERR …; also the RESP3 bulk error (!)
  integer,     // :1
  string,      // $5; verbatim strings (=) come out as string, without their four-byte prefix "txt:"
  null,        // $-1, *-1, _
  boolean,     // #t: integer is 0 or 1
  real,        // ,1.5: text holds the digits
  big_number,  // (123: text holds the digits
  array,       // *2: integer is the number of children
  map,         // %2: integer is the number of children (twice the pairs)
  set,         // ~2
  push,        // >2
};

struct Item {
  Type type = Type::null;
  uint8_t depth = 0;
  bool part = false;  // more of this string follows in the next item
  bool last = false;  // completes the top-level reply or push
  bool push = false;  // belongs to a push
  int64_t integer = 0;
  Bytes text;
};

enum class Progress : uint8_t { item, need_more, broken };

class Reader {
 public:
  static constexpr unsigned depth_max = 8;
  static constexpr int64_t children_max = 1024;         // of one aggregate
  static constexpr int64_t string_max = 512 * 1024;     // bytes of one bulk string

  // The buffer's capacity: at least 32 bytes, so that every number fits.
  explicit Reader(size_t buffer) : buffer_(buffer) { REDLOCK_ASSERT(buffer >= 32); }
  void reset() { *this = Reader(buffer_); }  // for a new connection

  // size: at most the buffer's capacity.
  Progress next(const char* data, size_t size, size_t& used, Item& out);

  // True between two top-level replies: nothing is half read.
  bool at_boundary() const { return boundary_; }

 private:
  enum class Step : uint8_t { item, need_more, broken, again };

  static_assert(static_cast<int>(Step::item) == static_cast<int>(Progress::item) &&
                    static_cast<int>(Step::need_more) == static_cast<int>(Progress::need_more) &&
                    static_cast<int>(Step::broken) == static_cast<int>(Progress::broken),
                "a Step is cast to a Progress");
  static Progress progress(Step step) {
    REDLOCK_ASSERT(step != Step::again);
    return static_cast<Progress>(step);
  }
  inline void check() const;  // what always holds between two calls
  Step line(const char* data, size_t size, size_t& used, Item& out);
  Step unfinished(const char* data, size_t size, size_t searched);
  Step meaning(char type, Bytes text, Item& out);
  Step open_string(char type, Bytes text, Item& out);
  Step open_aggregate(char type, Bytes text, Item& out);
  Step body(const char* data, size_t size, size_t& used, Item& out);
  Step value(Item& out, Type type);
  bool close_value();

  static_assert(depth_max <= 8, "a level is a bit of attributes_");
  static_assert(children_max <= UINT16_MAX, "left_ counts children");

  size_t buffer_;
  size_t searched_ = 0;            // bytes of the current line already searched for its end
  int32_t body_ = -1;              // bytes of a string's body still to come, CR LF apart; -1: not in a body
  char body_type_ = '$';           // the string's type byte; '=' only until its prefix is read over
  uint8_t depth_ = 0;              // open levels
  uint8_t attributes_ = 0;         // one bit for each open level that is an attribute
  bool push_ = false;              // the open level 0 is a push
  bool boundary_ = true;           // never true when broken
  bool broken_ = false;
  uint16_t left_[depth_max] = {};  // of each open level: children still to come
};

}  // namespace redlock::resp
