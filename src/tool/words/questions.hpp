// SPDX-License-Identifier: MIT
#pragma once
#include <redlock/site.h>
#include <string.h>

#include "tool/words/format.hpp"

namespace redlock::tool {

// A key on a master: any bytes.
struct Key {
  char text[REDLOCK_KEY_PREFIX_MAX + REDLOCK_RESOURCE_MAX];
  size_t size = 0;

  Key& add(const char* data, size_t bytes) {
    memcpy(text + size, data, bytes);
    size += bytes;
    return *this;
  }
  Key& add(const char* word) { return add(word, strlen(word)); }
};

// Several commands for one master. A word must stay until ask() has returned. The replies are good until the next ask()
// of any list, by this thread.
class Questions {
 public:
  static constexpr unsigned most = 96;
  static constexpr unsigned words_max = 4 * most;

  // Begins a command with the words of this line; "@" among them is the key.
  Questions& command(const char* line, const Key& key = {});
  Questions& word(const char* data, size_t size);  // and goes on
  int ask(const redlock_config_t* cfg, uint32_t master, const char* address = nullptr);  // of its name; null: any

  unsigned count() const { return count_; }
  const redlock_question_t& operator[](unsigned i) const { return questions_[i]; }
  const redlock_item_t* item(unsigned i, unsigned n = 0) const;  // of the reply; null: there is none
  const char* text(unsigned i, unsigned n = 0) const;            // null: it is no text
  template <size_t size>
  void copy(unsigned i, unsigned n, char (&out)[size]) const {   // "" of what is no text
    const char* const said = text(i, n);
    format_text(out, size, "%s", said != nullptr ? said : "");
  }

 private:
  redlock_resource_t words_[words_max];
  unsigned word_count_ = 0;
  redlock_question_t questions_[most];
  unsigned count_ = 0;
};

// True if the server does not know the command: it was renamed, the server is too old, or a proxy answers.
bool is_unknown_command(const redlock_question_t& asked);

}  // namespace redlock::tool
