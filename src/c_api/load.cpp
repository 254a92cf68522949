// SPDX-License-Identifier: MIT
//
// The public functions that fill a configuration from JSON. A static program that calls neither needs no cJSON.
#include "config/config.hpp"
#include "config/file.hpp"
#include "config/json_text.hpp"
#include "config/parse.hpp"

#include <stdlib.h>

using namespace redlock;

namespace {

// Memory for `size` bytes of text and a NUL. It is wiped at the end: the text may hold passwords.
class OwnText {
 public:
  explicit OwnText(size_t size) : size_(size + 1), data_(static_cast<char*>(malloc(size_))) {}
  OwnText(const OwnText&) = delete;
  OwnText& operator=(const OwnText&) = delete;
  ~OwnText() {
    if (data_ != nullptr) explicit_bzero(data_, size_);
    free(data_);
  }
  char* data() { return data_; }
  Bytes terminated(size_t size) {
    blank_comments(data_, size);
    data_[size] = '\0';
    return Bytes(data_, size);
  }

 private:
  size_t size_;
  char* data_;
};

}  // namespace

extern "C" int redlock_config_load_json(redlock_config_t* cfg, const char* json, size_t size) {
  if (cfg == nullptr) return REDLOCK_E_INVAL;
  if (json == nullptr) return keep_error(*cfg, REDLOCK_E_INVAL, "an argument is NULL");
  char sentence[error_text_max];
  TextWriter why(sentence, sizeof sentence);
  if (size > REDLOCK_CONFIG_BYTES_MAX) {
    why.raw("configuration: ").number(size).print(" bytes are more than %u", REDLOCK_CONFIG_BYTES_MAX);
    return keep_error(*cfg, REDLOCK_E_CONFIG, sentence);
  }
  OwnText text(size);
  if (text.data() == nullptr) return keep_error(*cfg, REDLOCK_E_NOMEM, "no memory");
  if (size > 0) memcpy(text.data(), json, size);
  const int result = load(cfg->values, text.terminated(size), nullptr, why);
  return keep_error(*cfg, result, result == REDLOCK_E_NOMEM ? "no memory" : sentence);
}

extern "C" int redlock_config_load_file(redlock_config_t* cfg, const char* path) {
  if (cfg == nullptr) return REDLOCK_E_INVAL;
  if (path == nullptr) return keep_error(*cfg, REDLOCK_E_INVAL, "an argument is NULL");
  char sentence[error_text_max];
  TextWriter why(sentence, sizeof sentence);
  OwnText text(REDLOCK_CONFIG_BYTES_MAX);
  if (text.data() == nullptr) return keep_error(*cfg, REDLOCK_E_NOMEM, "no memory");
  size_t size = 0;
  bool exposed = false;
  int result = read_file(path, text.data(), REDLOCK_CONFIG_BYTES_MAX, size, exposed, why);
  if (result == 0) {
    why = TextWriter(sentence, sizeof sentence);
    result = load(cfg->values, text.terminated(size), exposed ? path : nullptr, why);
  }
  return keep_error(*cfg, result, result == REDLOCK_E_NOMEM ? "no memory" : sentence);
}
