// SPDX-License-Identifier: MIT
//
// StandInEngine: a connection as port/tls/engine.hpp promises it, without cryptography. Text comes and is taken in
// pieces of any length from one byte to the largest record. Each call may first want input or output, whatever was
// called. What is taken counts as sent, and lies here until flush() is done. Noise chooses, so that an input of a
// fuzzer says the same with an engine and without.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>

#include "base/types.hpp"
#include "port/tls/engine.hpp"

namespace redlock::test {

class StandInEngine {
 public:
  using Progress = tls::Progress;
  explicit StandInEngine(uint64_t seed) : noise_(seed) {}

  void begin() {
    in_.clear();
    out_.clear();
  }
  void arrive(const std::string& bytes) { in_ += bytes; }
  bool has_input() const { return !in_.empty(); }
  const std::string& unsent() const { return out_; }
  size_t piece() {
    static constexpr unsigned kinds[] = {1, 4, 64, 1'024, record_max};
    return 1 + below(kinds[below(5)]);
  }

  Progress read(char* at, size_t room, size_t& got) {
    if (in_.empty()) return Progress::wants_input;
    if (below(4) == 0) return below(2) == 0 ? Progress::wants_input : Progress::wants_output;
    got = std::min({room, in_.size(), piece()});
    in_.copy(at, got);
    in_.erase(0, got);
    return Progress::done;
  }
  // send: the wire. It takes bytes from the front, and says how many.
  template <class Send>
  Progress write(Bytes text, size_t& taken, Send send) {
    if (below(8) == 0) return below(2) == 0 ? Progress::wants_input : Progress::wants_output;
    taken = std::min(text.size, piece());
    out_.append(text.data, taken);
    return flush(send);
  }
  template <class Send>
  Progress flush(Send send) {
    if (!out_.empty()) out_.erase(0, send(out_));
    return out_.empty() ? Progress::done : Progress::wants_output;
  }

 private:
  static constexpr size_t record_max = 16'384;

  unsigned below(unsigned n) {
    noise_ = noise_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<unsigned>(noise_ >> 33) % n;
  }

  uint64_t noise_;
  std::string in_;   // has arrived, and was not read
  std::string out_;  // was taken, and has not left
};

}  // namespace redlock::test
