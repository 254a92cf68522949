// SPDX-License-Identifier: MIT
#include "tool/words/questions.hpp"

#include <stdlib.h>

namespace redlock::tool {
namespace {

alignas(redlock_item_t) thread_local char replies[64 * 1024];

}  // namespace

Questions& Questions::command(const char* line, const Key& key) {
  if (count_ == most) abort();
  questions_[count_++] = {&words_[word_count_], 0, 0, nullptr, 0, 0, 0};
  for (size_t size; *line != '\0'; line += size + (line[size] == ' ')) {
    size = strcspn(line, " ");
    *line == '@' ? word(key.text, key.size) : word(line, size);
  }
  return *this;
}

Questions& Questions::word(const char* data, size_t size) {
  if (word_count_ == words_max) abort();
  words_[word_count_++] = {data, static_cast<uint32_t>(size)};
  ++questions_[count_ - 1].words;
  return *this;
}

int Questions::ask(const redlock_config_t* cfg, uint32_t master, const char* address) {
  return redlock_site_ask_at(cfg, master, address, questions_, count_, replies, sizeof replies);
}

bool is_unknown_command(const redlock_question_t& asked) {
  if (asked.err == 0 || asked.item == nullptr || asked.item->type != REDLOCK_ITEM_ERROR) return false;
  const char* const text = asked.item->text;
  return strstr(text, "nknown command") != nullptr || strstr(text, "nknown subcommand") != nullptr;
}

const redlock_item_t* Questions::item(unsigned i, unsigned n) const {
  return n < questions_[i].items ? &questions_[i].item[n] : nullptr;
}

const char* Questions::text(unsigned i, unsigned n) const {
  const redlock_item_t* found = item(i, n);
  return found != nullptr && found->type == REDLOCK_ITEM_TEXT ? found->text : nullptr;
}

}  // namespace redlock::tool
