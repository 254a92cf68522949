// SPDX-License-Identifier: MIT
//
// Calls a fuzzer's function with each file of its corpus, so that every compiler and every build replays what a fuzzing
// session once found. An empty or missing corpus is a failure: it would test nothing.
#include <stddef.h>
#include <stdint.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  size_t replayed = 0;
  for (int i = 1; i < argc; ++i) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(argv[i], error)) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
      // A copy of its exact size on the heap, so that a sanitizer sees a read past its end.
      const std::vector<uint8_t> input(bytes.begin(), bytes.end());
      LLVMFuzzerTestOneInput(input.data(), input.size());
      ++replayed;
    }
    if (error) std::cerr << argv[i] << ": " << error.message() << '\n';
  }
  std::cout << replayed << " inputs replayed\n";
  return replayed > 0 ? 0 : 1;
}
