// SPDX-License-Identifier: MIT
#include "resp/writer.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "support/resp_feed.hpp"

namespace redlock::test {
namespace {

using resp::Writer;

std::string text_of(Bytes bytes) { return bytes.size == 0 ? std::string() : std::string(bytes.data, bytes.size); }
Bytes bytes_of(const std::string& text) { return Bytes(text.data(), text.size()); }

std::string written(const std::function<void(Writer&)>& write) {
  std::string buffer(8192, '?');
  Writer out(buffer.data(), buffer.size());
  write(out);
  EXPECT_TRUE(out.fits());
  EXPECT_EQ(out.size(), out.written().size);
  return text_of(out.written());
}

const std::string value = "0123456789abcdef0123456789abcdef01234567";

void write_acquire(Writer& out) {
  out.array(6).bulk("SET").bulk("lock:", "pump").bulk(bytes_of(value)).bulk("NX").bulk("PX").number(10000);
}

void write_acquire_in_pieces(Writer& out) {
  out.array(6).bulk("SET").bulk_header(9).raw("lock:").raw("pump").crlf();
  out.bulk_header(value.size()).raw(bytes_of(value)).crlf().bulk("NX").bulk("PX").number(10000);
}

const std::string acquire =
    "*6\r\n$3\r\nSET\r\n$9\r\nlock:pump\r\n$40\r\n0123456789abcdef0123456789abcdef01234567\r\n$2\r\nNX\r\n$2\r\nPX\r\n"
    "$5\r\n10000\r\n";

TEST(RespWriter, EveryCapacityThatIsTooSmallWritesNothingPastTheEnd) {
  GuardedMemory memory(1);
  for (const auto write : {write_acquire, write_acquire_in_pieces}) {
    for (size_t capacity = 0; capacity < acquire.size(); ++capacity) {
      char* const buffer = memory.last(capacity);
      memset(memory.last(memory.size()), '#', memory.size());
      Writer out(buffer, capacity);
      write(out);
      EXPECT_FALSE(out.fits()) << capacity;
      EXPECT_EQ(out.size(), 0u);
      EXPECT_EQ(out.written().size, 0u);
      EXPECT_EQ(std::string(memory.last(memory.size()), memory.size() - capacity),
                std::string(memory.size() - capacity, '#'));
    }
    Writer exact(memory.last(acquire.size()), acquire.size());
    write(exact);
    EXPECT_EQ(text_of(exact.written()), acquire);
  }
}

TEST(RespWriter, TheReaderGivesBackWhatWasWritten) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> arguments(1 + random() % 12);
    std::string expected = "0 array " + std::to_string(arguments.size()) + "\n";
    const std::string command = written([&](Writer& out) {
      out.array(static_cast<unsigned>(arguments.size()));
      for (std::string& argument : arguments) {
        argument.resize(random() % 4 == 0 ? random() % 300 : random() % 12);
        for (char& c : argument) c = static_cast<char>(random() & 0xFF);
        const size_t cut = argument.empty() ? 0 : random() % argument.size();
        out.bulk(Bytes(argument.data(), cut), Bytes(argument.data() + cut, argument.size() - cut));
        expected += "1 string '" + argument + "'" + (&argument == &arguments.back() ? " last\n" : "\n");
      }
    });
    Feed feed;
    EXPECT_TRUE(feed.in_pieces(command, 1 + random() % 50));
    EXPECT_EQ(feed.description(), expected);
    EXPECT_TRUE(feed.at_boundary());
  }
}

}  // namespace
}  // namespace redlock::test
