// SPDX-License-Identifier: MIT
#include "tool/options.hpp"

#include <errno.h>
#include <redlock/site.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/say.hpp"

namespace redlock::tool {
namespace {

constexpr char default_config[] = "/etc/redlock/redlock.json";
constexpr char common_help[] =
    "  -C, --config FILE   the configuration; else $REDLOCK_CONFIG, else /etc/redlock/redlock.json\n"
    "      --master URL    a master, redis://10.0.0.11:6379; repeatable; alone it needs no file\n"
    "  -v, --verbose       say what happens, -vv: also changes that pass\n"
    "  -q, --quiet         say nothing but what is wrong\n"
    "  -h, --help\n";

constexpr int master_option = 1000;
constexpr Option common_options[] = {
    {"config", 'C', true}, {"master", master_option, true}, {"verbose", 'v'}, {"quiet", 'q'}, {"help", 'h'}};

// A configuration that is not valid: says why, and ends the program.
[[noreturn]] void refuse_config(int err, redlock_config_t* cfg, const char* path) {
  if (err == REDLOCK_E_NOMEM) fail(exit_system, "no memory");
  const bool is_denied = path != nullptr && err == REDLOCK_E_SYSTEM && access(path, R_OK) != 0 && errno == EACCES;
  const char* const where = path != nullptr ? path : "--master";
  const char* const why = *redlock_config_error(cfg) != '\0' ? redlock_config_error(cfg) : redlock_strerror(err);
  // A sentence about the file itself names it.
  const bool is_named = strncmp(why, where, strlen(where)) == 0;
  fail(is_denied ? exit_permission : exit_config, "%s%s%s", is_named ? "" : where, is_named ? "" : ": ", why);
}

}  // namespace

// ---- reading ----------------------------------------------------------------------------------------------------

bool Options::keep_others() {
  for (; at_ < argc_; ++at_) {
    char* const word = argv_[at_];
    const bool is_end = strcmp(word, "--") == 0;
    if (*word == '-' && word[1] != '\0' && !is_end) return true;
    if (is_end) ++at_;
    if (is_end || order_ == Order::first) break;
    argv_[kept_++] = word;
  }
  while (at_ < argc_) argv_[kept_++] = argv_[at_++];
  argv_[kept_] = nullptr;
  return false;
}

// The option of this name, or the only one whose name begins so.
const Option* Options::find(const char* name, size_t size) const {
  const Option* found = nullptr;
  unsigned count = 0;
  for (unsigned i = 0; i < own_count_ + sizeof common_options / sizeof common_options[0]; ++i) {
    const Option& one = i < own_count_ ? own_[i] : common_options[i - own_count_];
    if (strncmp(one.name, name, size) != 0) continue;
    if (one.name[size] == '\0') return &one;
    found = &one;
    ++count;
  }
  return count == 1 ? found : nullptr;
}

const Option* Options::find(char letter) const {
  for (unsigned i = 0; i < own_count_; ++i) {
    if (own_[i].code == letter) return &own_[i];
  }
  for (const Option& one : common_options) {
    if (one.code == letter) return &one;
  }
  return nullptr;
}

// The value is attached to the option, or it is the next argument.
void Options::take_value(const Option& option, const char* attached, const char* word) {
  value_ = attached;
  if (value_ != nullptr || !option.has_value) return;
  if (at_ == argc_) usage("a value is missing behind %s", word);
  value_ = argv_[at_++];
}

int Options::read_long(const char* word) {
  const size_t size = strcspn(word + 2, "=");
  const Option* const option = find(word + 2, size);
  const char* const attached = word[2 + size] == '=' ? word + 3 + size : nullptr;
  if (option == nullptr || (attached != nullptr && !option->has_value)) usage("there is no option %s", word);
  take_value(*option, attached, word);
  return option->code;
}

int Options::read_letter() {
  const char word[] = {'-', *letters_++, '\0'};
  const Option* const option = find(word[1]);
  if (option == nullptr) usage("there is no option %s", word);
  const char* const attached = option->has_value && *letters_ != '\0' ? letters_ : nullptr;
  if (attached != nullptr) letters_ = "";
  take_value(*option, attached, word);
  return option->code;
}

int Options::read_one() {
  if (*letters_ == '\0') {
    const char* const word = argv_[at_++];
    if (word[1] == '-') return read_long(word);
    letters_ = word + 1;
  }
  return read_letter();
}

int Options::next() {
  while (*letters_ != '\0' || keep_others()) {
    const int c = read_one();
    if (!take(c)) return c;
  }
  return end;
}

bool Options::take(int c) {
  switch (c) {
    case 'C':
      common_.config = value_;
      return true;
    case 'v':
      ++common_.verbose;
      return true;
    case 'q':
      be_quiet();
      return true;
    case 'h':
      print_help();
    case master_option:
      take_master(value_);
      return true;
    default:
      return false;
  }
}

void Options::take_master(const char* value) {
  if (common_.url_count + common_.name_count == REDLOCK_MASTERS_MAX) {
    usage("more than %d times --master", REDLOCK_MASTERS_MAX);
  }
  if (strstr(value, "://") != nullptr) {
    common_.urls[common_.url_count++] = value;
  } else {
    common_.names[common_.name_count++] = value;
  }
}

long Options::number(long min, long max) const {
  char* after = nullptr;
  errno = 0;
  const long number = strtol(value_, &after, 10);
  if (after == value_ || *after != '\0' || errno != 0 || number < min || number > max) {
    usage("'%s' is not a number in %ld..%ld", value_, min, max);
  }
  return number;
}

int Options::milliseconds(long max_s) const {
  long ms = 0;
  long unit = 1000;
  const char* c = value_;
  for (; *c >= '0' && *c <= '9' && ms <= max_s * 1000; ++c) ms = 10 * ms + 1000 * (*c - '0');
  const bool has_digits = c != value_;
  if (*c == '.') ++c;
  for (; *c >= '0' && *c <= '9'; ++c) ms += (unit /= 10) * (*c - '0');
  if (!has_digits || *c != '\0' || ms > max_s * 1000) {
    usage("'%s' is not a number of seconds in 0..%ld", value_, max_s);
  }
  return static_cast<int>(ms);
}

// ---- mistakes and help ------------------------------------------------------------------------------------------

void Options::usage(const char* format, ...) const {
  char what[256];
  va_list arguments;
  va_start(arguments, format);
  format_list(what, sizeof what, format, arguments);
  va_end(arguments);
  fail(exit_usage, "%s: %s; see redlock %s --help", command_.name, what, command_.name);
}

void Options::print_help() const {
  print("redlock %s [OPTION]... %s", command_.name, command_.synopsis);
  put(command_.help);
  put(command_.shared_help);
  put(common_help);
  flush();
  exit(exit_ok);
}

// ---- the configuration ------------------------------------------------------------------------------------------

const char* config_path(const Common& common) {
  if (common.config != nullptr || common.url_count != 0) return common.config;
  const char* from_environment = getenv("REDLOCK_CONFIG");
  return from_environment != nullptr && *from_environment != '\0' ? from_environment : default_config;
}

int new_config(redlock_config_t** cfg) {
  [[maybe_unused]] static redlock_config_t* volatile kept[4];
  static unsigned count = 0;
  const int err = redlock_config_new(cfg);
  kept[count++ % 4] = *cfg;
  return err;
}

void read_setting(const redlock_config_t* cfg, const char* key, redlock_setting_t& out) {
  out.size = sizeof out;
  uint32_t i = 0;
  while (redlock_site_setting(cfg, i, &out) == 0 && strcmp(out.key, key) != 0) ++i;
}

redlock_config_t* open_file(const char* path) {
  Common only;
  only.config = path;
  return open_config(only);
}

redlock_config_t* open_exposed_config(const Common& common) {
  redlock_config_t* cfg = nullptr;
  const char* const path = config_path(common);
  int err = new_config(&cfg);
  if (err == 0 && path != nullptr) err = redlock_config_load_file(cfg, path);
  for (unsigned i = 0; err == 0 && i < common.url_count; ++i) err = redlock_config_add_master(cfg, common.urls[i]);
  if (err != 0 || redlock_memory_size(cfg) == 0) refuse_config(err, cfg, path);
  return cfg;
}

redlock_config_t* open_config(const Common& common) {
  redlock_config_t* cfg = open_exposed_config(common);
  const char* why = exposed_secret(cfg);
  if (*why != '\0') fail(exit_config, "%s", why);
  return cfg;
}

const char* exposed_secret(const redlock_config_t* cfg) {
  redlock_site_facts_t facts{};
  facts.size = sizeof facts;
  const int err = redlock_site_facts(cfg, 0, &facts);
  if (err != 0) fail(exit_code_of(err), "%s", redlock_strerror(err));
  return facts.warning;
}

}  // namespace redlock::tool
