// SPDX-License-Identifier: MIT
//
// The table of handles after every sequence of steps up to a length, on tables of one and of two slots. Every handle
// that was ever given out is looked for, and so are handles that never were.
#include "lock/table.hpp"

#include <map>
#include <set>

#include "bounds/every_sequence.hpp"

namespace redlock::test {
namespace {

constexpr unsigned capacity_max = 2;

struct World {
  Lock slots[capacity_max];
  Table table;
};

struct Model {
  std::set<uint64_t> present, past;
};

class Handing : public EverySequence<Handing, World, Model> {
 public:
  explicit Handing(unsigned capacity) : EverySequence(1 + capacity), capacity_(capacity) {
    world.table.init(world.slots, capacity);
  }

  bool make(unsigned step) { return step == 0 ? take() : give_back(step - 1); }

  void check() {
    size_t used = 0;
    for (const Lock& lock : world.slots) used += lock.state != State::free ? 1 : 0;
    ASSERT_EQ(used, model.present.size()) << trace();
    for (const uint64_t handle : model.present) expect(handle, Table::Found::present);
    for (const uint64_t handle : model.past) expect(handle, Table::Found::past);
    for (uint64_t slot = 0; slot <= capacity_ + 1; ++slot) {
      for (uint64_t generation = 0; generation <= 15; ++generation) {
        const uint64_t handle = generation << 16 | slot;
        if (model.present.count(handle) + model.past.count(handle) == 0) expect(handle, Table::Found::never);
      }
    }
  }

 private:
  void expect(uint64_t handle, Table::Found wanted) {
    Lock* lock = nullptr;
    ASSERT_EQ(world.table.find(handle, lock), wanted) << handle << ' ' << trace();
    ASSERT_EQ(lock != nullptr, wanted == Table::Found::present) << handle << ' ' << trace();
    ASSERT_TRUE(lock == nullptr || world.table.handle(*lock) == handle) << trace();
    const ValidityCell* const cell = world.table.cell(handle);
    const uint64_t slot = handle & 0xFFFF;
    ASSERT_EQ(cell, slot == 0 || slot > capacity_ ? nullptr : &world.slots[slot - 1].cell) << trace();
    if (wanted == Table::Found::past) {
      const Verdict verdict = judge(*cell, Table::generation(handle), true, Instant(), Duration());
      ASSERT_TRUE(verdict.held == Held::stale || verdict.held == Held::lost) << trace();
    }
  }

  bool take() {
    Lock* const lock = world.table.take();
    EXPECT_EQ(lock == nullptr, model.present.size() == capacity_) << trace();
    if (lock == nullptr) return false;
    lock->state = State::waiting;
    lock->cell.begin(lock->generation);
    const bool is_new = model.present.insert(world.table.handle(*lock)).second;
    EXPECT_TRUE(is_new && model.past.count(world.table.handle(*lock)) == 0) << "a handle twice: " << trace();
    return true;
  }
  bool give_back(unsigned slot) {
    Lock& lock = world.slots[slot];
    if (lock.state == State::free) return false;
    lock.state = State::over;
    model.present.erase(world.table.handle(lock));
    model.past.insert(world.table.handle(lock));
    world.table.give_back(lock);
    return true;
  }

  unsigned capacity_;
};

TEST(Handles, every_sequence) {
  unsigned long sequences = 0;
  for (unsigned capacity = 1; capacity <= capacity_max; ++capacity) {
    Handing handing(capacity);
    handing.walk(bound(9, 14));
    sequences += handing.sequences();
  }
  std::printf("%lu sequences\n", sequences);
  EXPECT_GT(sequences, 100u);
}

}  // namespace
}  // namespace redlock::test
