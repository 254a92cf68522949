// SPDX-License-Identifier: MIT
//
// Any bytes, in any pieces, through a buffer of any size: the reader says the same about them as when they come at
// once, moves on with every item, stays broken once it is, and after a reset reads as if it were new. Feed watches
// that no byte outside of what was shown is touched and that no text lies outside of it.
#include <stddef.h>
#include <stdint.h>

#include "input.hpp"
#include "support/resp_feed.hpp"

using redlock::test::Feed;
using redlock::test::Input;
using redlock::test::describe;

namespace {

void require(bool condition) {
  if (!condition) abort();
}

// Depth, ends and pushes fit together; numbers lie in their ranges.
void check(const Feed& feed) {
  unsigned depth = 0;
  bool begins = true, in_string = false;
  for (const auto& seen : feed.items()) {
    const auto& item = seen.item;
    require(item.depth <= redlock::resp::Reader::depth_max);
    require(in_string ? item.depth == depth
                      : begins ? item.depth == 0
                               : item.depth >= 1 && item.depth <= depth + 1);
    in_string = item.part;
    depth = item.depth;
    require(!(item.part && item.last) && !(item.part && seen.text.empty()));
    begins = item.last;
  }
  require(begins || !feed.at_boundary());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  testing::FLAGS_gtest_break_on_failure = true;
  Input input(data, size);
  const size_t capacity = 32 + input.byte() * 4u;
  const size_t piece = 1 + input.byte() % 64u;
  const std::string text = input.bytes(size);

  Feed whole(capacity), pieces(capacity);
  whole.bytes(text);
  pieces.in_pieces(text, piece);
  check(whole);
  check(pieces);
  require(whole.broken() == pieces.broken());
  // A string that is longer than the buffer comes in other parts when it arrives in other pieces.
  require(describe(whole.joined()) == describe(pieces.joined()));
  require(whole.at_boundary() == pieces.at_boundary());

  if (whole.broken()) require(!whole.bytes("+OK\r\n") && whole.broken());
  whole.reset();
  require(whole.at_boundary() && whole.bytes("+OK\r\n") && whole.items().size() == 1 && whole.items()[0].text == "OK");
  return 0;
}
