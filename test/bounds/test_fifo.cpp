// SPDX-License-Identifier: MIT
//
// The FIFO of requests beside a deque, after every sequence of steps up to a length. The sequences begin at each place
// of the ring, and with as many requests as leave room for one more.
#include "master/fifo.hpp"

#include <deque>

#include "bounds/every_sequence.hpp"

namespace redlock::test {
namespace {

using Request = Fifo::Request;
constexpr unsigned of_client = 3;
constexpr unsigned capacity = Fifo::own_max + of_client;

struct World {
  Request places[capacity] = {};
  Fifo fifo{places, capacity};
};

class Asking : public EverySequence<Asking, World, std::deque<Request>> {
 public:
  Asking() : EverySequence(7) {}

  // Moves the empty FIFO to a place of its ring, and fills it up to so many requests of the session itself.
  void begin(unsigned place, unsigned own) {
    world.fifo.clear();
    model.clear();
    for (unsigned i = 0; i < place; ++i) {
      push_own();
      pop();
    }
    for (unsigned i = 0; i < own; ++i) push_own();
  }

  bool make(unsigned step) {
    switch (step) {
      case 0:
        return push(Request::acquire, false);
      case 1:
        return push(Request::acquire, true);
      case 2:
        return push(Request::release, false);
      case 3:
        return world.fifo.has_own_room(1) && push_own();
      case 4:
        return !model.empty() && pop();
      case 5:
        return take_back();
      default:
        world.fifo.clear();
        model.clear();
        return true;
    }
  }

  void check() {
    const Fifo& fifo = world.fifo;
    fifo.check();
    ASSERT_EQ(fifo.size(), model.size()) << trace();
    ASSERT_EQ(fifo.empty(), model.empty()) << trace();
    const auto own = static_cast<unsigned>(
        std::count_if(model.begin(), model.end(), [](const Request& r) { return Request::is_own(r.kind); }));
    for (unsigned n = 1; n <= of_client + 1; ++n) {
      ASSERT_EQ(fifo.has_room(n), model.size() - own + n <= of_client) << trace();
      ASSERT_EQ(fifo.has_own_room(n), own + n <= Fifo::own_max) << trace();
    }
    for (uint16_t claim = 0; claim < 3; ++claim) {
      const bool owes = std::any_of(model.begin(), model.end(), [claim](const Request& r) {
        return r.kind == Request::acquire && r.claim == claim;
      });
      ASSERT_EQ(fifo.owes_answer(claim), owes) << trace();
    }
    check_order();
  }

 private:
  // Takes all requests out of a second FIFO, over a copy of the places.
  void check_order() {
    Request places[capacity];
    char bytes[sizeof(Fifo)];
    memcpy(places, world.places, sizeof places);
    memcpy(bytes, &world.fifo, sizeof bytes);
    for (const Request& expected : model) {
      const Request& oldest = world.fifo.oldest();
      ASSERT_EQ(oldest.round, expected.round) << trace();
      ASSERT_EQ(oldest.claim, expected.claim) << trace();
      ASSERT_EQ(oldest.kind, expected.kind) << trace();
      ASSERT_EQ(oldest.apart, expected.apart) << trace();
      world.fifo.pop(Request::is_own(oldest.kind));
    }
    ASSERT_TRUE(world.fifo.empty()) << trace();
    memcpy(world.places, places, sizeof places);
    memcpy(static_cast<void*>(&world.fifo), bytes, sizeof bytes);
  }

  Request next(Request::Kind kind, bool apart) {
    ++number_;
    return {Instant::from_ns(number_), number_, static_cast<uint16_t>(number_ % 3), kind, apart};
  }
  bool push(Request::Kind kind, bool apart) {
    if (!world.fifo.has_room(1)) return false;
    model.push_back(next(kind, apart));
    world.fifo.push(model.back());
    return true;
  }
  bool push_own() {
    Request request = next(Request::ping, true);
    request.claim = 0;
    world.fifo.push_own(Request::ping, request.sent, request.round);
    model.push_back(request);
    return true;
  }
  bool pop() {
    world.fifo.pop(Request::is_own(model.front().kind));
    model.pop_front();
    return true;
  }
  bool take_back() {
    auto newest = model.end();
    while (newest != model.begin() && (newest - 1)->apart) --newest;
    if (newest == model.begin()) return false;
    const Request taken = world.fifo.take_back();
    EXPECT_EQ(taken.round, (newest - 1)->round) << trace();
    model.erase(newest - 1);
    return true;
  }

  uint32_t number_ = 0;  // never put back, so that no two requests are alike
};

TEST(Requests, every_sequence) {
  Asking asking;
  const unsigned length = bound(5, 7);
  for (unsigned place = 0; place < capacity && !HasFailure(); ++place) {
    asking.begin(place, 0);
    asking.walk(length);
    asking.begin(place, Fifo::own_max - 1);
    asking.walk(length);
  }
  std::printf("%lu sequences\n", asking.sequences());
  EXPECT_GT(asking.sequences(), 100'000u);
}

}  // namespace
}  // namespace redlock::test
