// SPDX-License-Identifier: MIT
//
// Story: what happened. Always a hash of it, by which two runs of a seed are compared; on demand also lines to read,
// each with the client and the master it is about, so that the part around a violation can be told by itself.
#pragma once
#include <cstdarg>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "heap.hpp"

namespace redlock::sim {

enum class Telling { hash_only, collect, print };

struct Line {
  Ns at;
  int client;  // -1: none
  int master;
  std::string text;
};

class Story {
 public:
  explicit Story(Telling telling) : telling_(telling) {}
  bool telling() const { return telling_ != Telling::hash_only; }
  void mark(uint64_t a, uint64_t b = 0) {
    hash_ = (hash_ ^ a) * 0x9E3779B97F4A7C15u;
    hash_ = (hash_ ^ (hash_ >> 29) ^ b) * 0xBF58476D1CE4E5B9u;
  }
  uint64_t hash() const { return hash_; }
  void tell(Ns at, int client, int master, const char* format, ...) __attribute__((format(printf, 5, 6)));
  // The last lines about these clients (bits) from `since` on, and everything about masters.
  void print_end(Ns since, uint32_t clients, size_t lines_max) const;

 private:
  static void print(const Line& line);
  Telling telling_;
  uint64_t hash_ = 0x1234567;
  std::vector<Line> lines_;
};

// RESP on one line.
std::string readable(std::string_view bytes, size_t limit = 160);

}  // namespace redlock::sim
