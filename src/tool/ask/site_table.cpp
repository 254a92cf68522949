// SPDX-License-Identifier: MIT
#include "tool/ask/site.hpp"
#include "tool/words/say.hpp"

namespace redlock::tool {

void Site::print_table() const {
  constexpr unsigned columns = 4;  // and the state
  const auto cell = [this](unsigned row, unsigned column) {
    constexpr const char* heads[columns] = {"MASTER", "ADDRESS", "SERVER", "ROLE"};
    Text out;
    if (row == 0) return out.add("%s", heads[column]);
    const Master& it = master[row - 1];
    if (column == 0) out.add("%s", it.name());
    if (column == 1) out.add("%s", it.facts.address);
    if (column == 2 && it.version[0] != '\0') out.add("%s ", it.server).escaped(it.version);
    if (column == 3) out.escaped(it.role);
    return out.empty() ? out.add("-") : out;
  };
  size_t width[columns] = {};
  for (unsigned row = 0; row <= masters; ++row) {
    for (unsigned c = 0; c < columns; ++c) {
      if (cell(row, c).size() > width[c]) width[c] = cell(row, c).size();
    }
  }
  for (unsigned row = 0; row <= masters; ++row) {
    Text line;
    size_t end = 0;
    for (unsigned c = 0; c < columns; ++c) {
      line.add("%s", cell(row, c).c_str());
      for (end += width[c] + 2; line.size() < end;) line.add(" ");
    }
    print("%s%s", line.c_str(), row == 0 ? "STATE" : why(row - 1).c_str());
  }
}

}  // namespace redlock::tool
