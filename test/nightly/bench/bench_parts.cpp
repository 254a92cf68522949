// SPDX-License-Identifier: MIT
//
// The parts of a cycle, each by itself: what is written, what is read, where a lock is found, when a round is decided.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "lock/quorum.hpp"
#include "lock/table.hpp"
#include "master/command.hpp"
#include "resp/reader.hpp"
#include "resp/writer.hpp"

namespace redlock {
namespace {

const Subject subject = {Bytes(), "cycle:00000001", "0123456789abcdef0123456789abcdef01234567", "gateway-17", 10000};

void WriteSet(benchmark::State& state) {
  char text[256];
  for (auto _ : state) {
    const Command command = Command::plain({text, sizeof text}, Op::acquire, subject, true);
    benchmark::DoNotOptimize(command.head().data);
  }
}
BENCHMARK(WriteSet);

void WriteDelete(benchmark::State& state) {
  char text[256];
  for (auto _ : state) {
    const Command command = Command::plain({text, sizeof text}, Op::release, subject, true);
    benchmark::DoNotOptimize(command.head().data);
  }
}
BENCHMARK(WriteDelete);

void Read(benchmark::State& state, const std::string& reply) {
  resp::Reader reader(1024);
  resp::Item item;
  for (auto _ : state) {
    for (size_t at = 0; at < reply.size();) {
      size_t used = 0;
      if (reader.next(reply.data() + at, reply.size() - at, used, item) != resp::Progress::item) {
        return state.SkipWithError("not an item");
      }
      at += used;
    }
    benchmark::DoNotOptimize(item);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(reply.size()));
}
BENCHMARK_CAPTURE(Read, ok, "+OK\r\n");
BENCHMARK_CAPTURE(Read, null, "_\r\n");
BENCHMARK_CAPTURE(Read, integer, ":1\r\n");
BENCHMARK_CAPTURE(Read, error, "-READONLY You can't write against a read only replica.\r\n");
BENCHMARK_CAPTURE(Read, push, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$14\r\ncycle:00000001\r\n");

// A slot is taken, found by its handle and given back, in a table of so many.
void TableTakeFindGiveBack(benchmark::State& state) {
  std::vector<Lock> slots(static_cast<size_t>(state.range(0)));
  Table table;
  table.init(slots.data(), static_cast<unsigned>(slots.size()));
  for (auto _ : state) {
    Lock* lock = table.take();
    Lock* found = nullptr;
    if (table.find(table.handle(*lock), found) == Table::Found::present)
      return state.SkipWithError("a free slot is found");
    lock->state = State::over;
    table.find(table.handle(*lock), found);
    benchmark::DoNotOptimize(found);
    table.give_back(*lock);
  }
}
BENCHMARK(TableTakeFindGiveBack)->Arg(1)->Arg(32)->Arg(4096);

void Decide(benchmark::State& state) {
  const Masters granted = Masters::of(0, 2, 4);
  for (auto _ : state) {
    Masters mask = granted;
    benchmark::DoNotOptimize(mask);
    benchmark::DoNotOptimize(decide(5, mask.count(), 0, 0));
  }
}
BENCHMARK(Decide);

}  // namespace
}  // namespace redlock
