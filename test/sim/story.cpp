// SPDX-License-Identifier: MIT
#include "story.hpp"

namespace redlock::sim {

void Story::tell(Ns at, int client, int master, const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const Line line{at, client, master, text};
  if (telling_ == Telling::print) print(line);
  if (telling_ == Telling::collect) lines_.push_back(line);
}

void Story::print(const Line& line) {
  char who[32] = "";
  if (line.client >= 0 && line.master >= 0) {
    snprintf(who, sizeof who, "c%d m%d", line.client, line.master);
  } else if (line.client >= 0) {
    snprintf(who, sizeof who, "c%d", line.client);
  } else if (line.master >= 0) {
    snprintf(who, sizeof who, "   m%d", line.master);
  }
  printf("%12.6f  %-6s %s\n", static_cast<double>(line.at) / 1e9, who, line.text.c_str());
}

void Story::print_end(Ns since, uint32_t clients, size_t lines_max) const {
  std::vector<const Line*> told;
  for (const Line& line : lines_) {
    if (line.at >= since && (line.client < 0 || (clients >> line.client & 1))) told.push_back(&line);
  }
  const size_t skipped = told.size() > lines_max ? told.size() - lines_max : 0;
  if (skipped != 0) printf("  ... %zu lines before (--trace shows all)\n", skipped);
  for (size_t i = skipped; i < told.size(); ++i) print(*told[i]);
}

std::string readable(std::string_view bytes, size_t limit) {
  std::string text;
  for (const char c : bytes) {
    if (text.size() >= limit) return text + "...";
    if (c == '\r') continue;
    if (c == '\n') {
      text += ' ';
    } else if (c < ' ' || c > '~') {
      text += '.';
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace redlock::sim
