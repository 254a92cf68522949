// SPDX-License-Identifier: MIT
//
// The transmit buffer and the shared commands of two masters, after every sequence of steps up to a length. The memory
// is so small that each kind of room runs out within the sequences.
//
// The model keeps what each master is still to be sent as a list of pieces. A step that may not be made (fits,
// may_share, has_room) is left out, and the model says itself whether there is room, so that room is never lost either.
#include "master/tx.hpp"

#include <deque>

#include "bounds/every_sequence.hpp"

namespace redlock::test {
namespace {

constexpr unsigned masters = 2;
constexpr size_t own_room = 8;
constexpr size_t shared_room = 5 * sizeof(Shared::Command);  // three commands of two or three bytes
const std::string script = "SCRIPT";

struct World {
  alignas(Shared::Command) char memory[shared_room];
  char own[masters][own_room];
  Shared shared;
  Tx tx[masters];
};

struct Piece {
  enum Kind { copied, referenced, shared } kind;
  std::string rest;
  bool begun = false;
};

struct Model {
  std::deque<Piece> pieces[masters];
  bool lags[masters] = {};
  char next = 'a';  // each copied piece and each command has letters of its own

  std::string fresh(size_t size) {
    std::string text;
    for (size_t i = 0; i < size; ++i) text += static_cast<char>(next + static_cast<char>(i));
    next = static_cast<char>(next + static_cast<char>(size));
    return text;
  }
  std::string rest(unsigned m) const {
    std::string all;
    for (const Piece& piece : pieces[m]) all += piece.rest;
    return all;
  }
  size_t copied(unsigned m) const {
    size_t n = 0;
    for (const Piece& piece : pieces[m]) n += piece.kind == Piece::copied ? piece.rest.size() : 0;
    return n;
  }
  void consume(unsigned m, size_t n) {
    for (; n > 0; --n) {
      Piece& first = pieces[m].front();
      first.rest.erase(0, 1);
      first.begun = true;
      if (first.rest.empty()) pieces[m].pop_front();
    }
    if (pieces[m].empty()) lags[m] = false;
  }
  // Behind a turn: the shared commands but the oldest are gone, and that one is an own piece now.
  void settle(unsigned m) {
    bool found = false;
    for (auto at = pieces[m].begin(); at != pieces[m].end();) {
      const bool another = at->kind == Piece::shared && found;
      found |= at->kind == Piece::shared;
      if (at->kind == Piece::shared) at->kind = Piece::copied;
      at = another ? pieces[m].erase(at) : at + 1;
    }
    lags[m] = !pieces[m].empty();
  }
  bool shares() const {
    for (const auto& of : pieces) {
      for (const Piece& piece : of) {
        if (piece.kind == Piece::shared) return true;
      }
    }
    return false;
  }
};

class Sending : public EverySequence<Sending, World, Model> {
 public:
  Sending() : EverySequence(12) {
    world.shared.init(world.memory, shared_room);
    for (unsigned m = 0; m < masters; ++m) world.tx[m].init(world.own[m], own_room, world.shared, m);
  }

  // False: this step cannot be made now.
  bool make(unsigned step) {
    const unsigned m = step % masters;
    switch (step) {
      case 0:
      case 1:
        return append(m);
      case 2:
      case 3:
        return reference(m);
      case 4:
      case 5:
        return consume(m, 1);
      case 6:
      case 7:
        return consume(m, model.rest(m).size());
      case 8:
        return settle();
      case 9:
        return share(Masters::of(0), 2);
      case 10:
        return share(Masters::of(1), 2);
      default:
        return share(Masters::all(masters), 3);
    }
  }

  void check() {
    for (unsigned m = 0; m < masters; ++m) {
      const Tx& tx = world.tx[m];
      const std::string rest = model.rest(m);
      ASSERT_EQ(tx.empty(), rest.empty()) << trace();
      ASSERT_EQ(gathered(tx), rest) << trace();
      if (tx.one_run()) {
        ASSERT_EQ(std::string(tx.run().data, tx.run().size), rest) << trace();
      }
      ASSERT_EQ(tx.fits(0, Tx::references_max), rest.empty() || model.pieces[m].size() == copied_pieces(m))
          << trace();
      ASSERT_TRUE(model.copied(m) != 0 || !rest.empty() || tx.fits(own_room)) << "room was lost: " << trace();
      ASSERT_EQ(tx.refers_to(Bytes(script.data(), script.size())), refers(m)) << trace();
    }
    if (!model.shares()) {
      ASSERT_FALSE(world.shared.is_used()) << trace();
      ASSERT_EQ(world.shared.space().size, shared_room - sizeof(Shared::Command)) << "all is free: " << trace();
    }
  }
  unsigned long refused() const { return refused_; }

 private:
  bool append(unsigned m) {
    const bool fits = world.tx[m].fits(3);
    if (!fits) return ++refused_, false;
    const std::string text = model.fresh(3);
    world.tx[m].append(Bytes(text.data(), text.size()));
    model.pieces[m].push_back({Piece::copied, text});
    return true;
  }
  bool reference(unsigned m) {
    if (!world.tx[m].fits(0, 1)) return ++refused_, false;
    world.tx[m].reference(Bytes(script.data(), script.size()));
    model.pieces[m].push_back({Piece::referenced, script});
    return true;
  }
  bool consume(unsigned m, size_t n) {
    if (n == 0 || model.rest(m).size() < n) return false;
    world.tx[m].consume(n);
    model.consume(m, n);
    return true;
  }
  bool share(Masters to, size_t size) {
    if (!world.shared.has_room(Shared::size_of(size))) return ++refused_, false;
    for (MasterIndex m : to) {
      EXPECT_FALSE(model.lags[m] && world.tx[m].may_share(size)) << "a slow connection takes no shared command";
      if (!world.tx[m].may_share(size)) return ++refused_, false;
    }
    const std::string text = model.fresh(size);
    memcpy(world.shared.space().data, text.data(), size);
    world.shared.add(size, 0, to);
    for (MasterIndex m : to) {
      world.tx[m].share();
      model.pieces[m].push_back({Piece::shared, text});
    }
    return true;
  }
  bool settle() {
    for (unsigned m = 0; m < masters; ++m) {
      if (world.tx[m].empty()) continue;
      while (world.tx[m].take_back()) continue;
      world.tx[m].keep();
      model.settle(m);
    }
    return true;
  }

  size_t copied_pieces(unsigned m) const {
    size_t n = 0;
    for (const Piece& piece : model.pieces[m]) n += piece.kind == Piece::copied;
    return n;
  }
  bool refers(unsigned m) const {
    for (const Piece& piece : model.pieces[m]) {
      if (piece.kind == Piece::referenced) return true;
    }
    return false;
  }
  static std::string gathered(const Tx& tx) {
    Bytes chunk[Tx::chunks_max];
    const unsigned n = tx.gather(chunk, Tx::chunks_max);
    std::string all;
    for (unsigned i = 0; i < n; ++i) all.append(chunk[i].data, chunk[i].size);
    return all;
  }
  unsigned long refused_ = 0;
};

TEST(Transmit, every_sequence) {
  Sending sending;
  sending.walk(bound(6, 7));
  std::printf("%lu sequences; %lu times there was no room\n", sending.sequences(), sending.refused());
  EXPECT_GT(sending.sequences(), 100'000u);
  EXPECT_GT(sending.refused(), 1'000u);
}

}  // namespace
}  // namespace redlock::test
