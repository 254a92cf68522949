// SPDX-License-Identifier: MIT
#include "tool/words/options.hpp"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/words/say.hpp"
#include "tool/words/text.hpp"

namespace redlock::tool {
namespace {

constexpr char default_config[] = "/etc/redlock/redlock.json";
constexpr char site_help[] =
    "  -C, --config FILE   the configuration; else $REDLOCK_CONFIG, else /etc/redlock/redlock.json\n"
    "      --master URL    a master, redis://10.0.0.11:6379; repeatable; alone it needs no file\n";
constexpr char common_help[] =
    "  -v, --verbose       say what happens, -vv: also changes that pass\n"
    "  -q, --quiet         say nothing but what is wrong\n"
    "  -h, --help\n";

constexpr size_t url_max = 1024;

bool is_option(const char* word) { return word[0] == '-' && word[1] != '\0'; }

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

// ---- values -----------------------------------------------------------------------------------------------------

// Everybody may read our command line. `url` is a word of it.
const char* hide_password(const Options& options, unsigned number, char* url) {
  static char copies[REDLOCK_MASTERS_MAX][url_max];
  if (strlen(url) >= url_max) options.usage("--master: a URL has less than %u bytes", static_cast<unsigned>(url_max));
  strcpy(copies[number], url);
  char* const begin = strstr(url, "://") + 3;
  char* const host = strrchr(begin, '@');
  char* password = strchr(begin, ':');
  if (host == nullptr || password == nullptr) return copies[number];
  while (++password < host) *password = '*';
  return copies[number];
}

uint32_t number_of(const Options& options, const Option& option, const char* value) {
  char* after = nullptr;
  const long number = strtol(value, &after, 10);  // beyond long: the end of long, which no option allows
  if (after == value || *after != '\0' || number < option.min || number > option.max) {
    options.usage("'%s' is not a number in %ld..%ld", value, option.min, option.max);
  }
  return static_cast<uint32_t>(number);
}

int32_t milliseconds_of(const Options& options, const Option& option, const char* value) {
  const long most = option.max * 1000;
  long ms = 0;
  long unit = 1000;
  const char* c = value;
  for (; *c >= '0' && *c <= '9' && ms <= most; ++c) ms = 10 * ms + 1000 * (*c - '0');
  const bool has_point = *c == '.';
  if (has_point) ++c;
  for (; *c >= '0' && *c <= '9'; ++c) ms += (unit /= 10) * (*c - '0');
  const bool has_digits = c - value > has_point;
  if (*c == 's') ++c;
  if (!has_digits || *c != '\0' || ms > most) {
    options.usage("'%s' is not a number of seconds in 0..%ld", value, option.max);
  }
  return static_cast<int32_t>(ms);
}

void add(Text& to, char** from, char** end) {
  for (; from != end && *from != nullptr; ++from) to.add(" ").word(*from);
}

}  // namespace

// ---- reading ----------------------------------------------------------------------------------------------------

Options::Options(const Command& command, int argc, char** argv, const Option* own, size_t count, Order order)
    : command_(command), argc_(argc), argv_(argv) {
  const Option common[] = {{.name = "verbose", .letter = 'v'},
                           {.name = "quiet", .letter = 'q', .flag = &is_quiet},
                           {.name = "help", .letter = 'h'},
                           {.name = "config", .letter = 'C', .text = &common_.config},
                           {.name = "master", .text = &master_}};
  static_assert(sizeof common == common_max * sizeof(Option));
  for (size_t i = 0; i < count; ++i) options_[count_++] = own[i];
  for (const Option& one : common) options_[count_++] = one;
  if (!command.has_site) count_ -= 2;
  const auto is_end = [this] { return at_ == argc_ || strcmp(argv_[at_], "--") == 0; };
  while (!is_end() && (order == Order::any || is_option(argv_[at_]))) {
    char* const word = argv_[at_++];
    if (is_option(word)) {
      read(word);
    } else {
      argv_[kept_++] = word;
    }
  }
  end_ = argv_ + at_;
  exclude("--verbose", common_.verbose != 0, "--quiet", is_quiet);
  ended_by_dashes_ = at_ < argc_ && is_end();
  if (ended_by_dashes_) ++at_;
  if (order == Order::first) {
    rest_ = argv_ + at_;
    return;
  }
  while (at_ < argc_) argv_[kept_++] = argv_[at_++];
  argv_[kept_] = nullptr;
}

// The option of this name, or the only one whose name begins so.
const Option* Options::find(const char* name, size_t size) const {
  const Option* found = nullptr;
  unsigned alike = 0;
  for (unsigned i = 0; i < count_; ++i) {
    if (strncmp(options_[i].name, name, size) != 0) continue;
    found = &options_[i];
    if (found->name[size] == '\0') return found;
    ++alike;
  }
  return alike == 1 ? found : nullptr;
}

void Options::read(char* word) {
  if (word[1] == '-') {
    const size_t size = strcspn(word + 2, "=");
    const Option* const option = find(word + 2, size);
    char* const attached = word[2 + size] == '=' ? word + 3 + size : nullptr;
    if (option == nullptr || (attached != nullptr && !option->has_value())) usage("there is no option %s", word);
    return take(*option, attached, word);
  }
  for (char* letter = word + 1; *letter != '\0'; ++letter) {
    const char name[] = {'-', *letter, '\0'};
    unsigned i = 0;
    while (i < count_ && options_[i].letter != *letter) ++i;
    if (i == count_) usage("there is no option %s", name);
    const bool is_attached = options_[i].has_value() && letter[1] != '\0';
    take(options_[i], is_attached ? letter + 1 : nullptr, name);
    if (is_attached) return;
  }
}

// The value is attached to the option, or it is the next argument.
void Options::take(const Option& option, char* value, const char* word) {
  if (value == nullptr && option.has_value()) {
    if (at_ == argc_) usage("a value is missing behind %s", word);
    value = argv_[at_++];
  }
  if (option.flag != nullptr) *option.flag = true;
  if (option.number != nullptr) *option.number = number_of(*this, option, value);
  if (option.ms != nullptr) *option.ms = milliseconds_of(*this, option, value);
  if (option.text == &master_) return take_master(value);
  if (option.text != nullptr) *option.text = value;
  if (option.letter == 'h') print_help();
  if (option.letter == 'v') ++common_.verbose;
}

void Options::take_master(char* value) {
  if (common_.url_count + common_.name_count == REDLOCK_MASTERS_MAX) {
    usage("more than %d times --master", REDLOCK_MASTERS_MAX);
  }
  if (strstr(value, "://") != nullptr) {
    common_.urls[common_.url_count] = hide_password(*this, common_.url_count, value);
    ++common_.url_count;
    return;
  }
  // Whoever reads on with a name would believe that this is another site.
  if (strstr(command_.help, "--master NAME") == nullptr) usage("--master takes a URL, such as redis://%s", value);
  common_.names[common_.name_count++] = value;
}

void Options::check_resource(const char* name) const {
  const size_t size = strlen(name);
  if (size == 0 || size > REDLOCK_RESOURCE_MAX) usage("a resource has 1 to %d bytes", REDLOCK_RESOURCE_MAX);
}

void Options::exclude(const char* one, bool has_one, const char* other, bool has_other) const {
  if (has_one && has_other) usage("%s and %s exclude each other: give one of them", one, other);
}

// ---- mistakes and help ------------------------------------------------------------------------------------------

void Options::usage(const char* format, ...) const {
  char what[1800];  // with a whole command line
  va_list arguments;
  va_start(arguments, format);
  format_list(what, sizeof what, format, arguments);
  va_end(arguments);
  fail(exit_usage, "%s: %s; see redlock %s --help", command_.name, what, command_.name);
}

// The first word is taken for the name, as flock(1) does.
void Options::refuse_bare_command() const {
  Text options, words;
  add(options, argv_ + 1, end_);
  add(words, rest_ + 1, nullptr);
  usage("-- is missing before the command: redlock %s%s %s --%s", command_.name, options.c_str(),
        Text().word(*rest_).c_str(), words.c_str());
}

// The line that the person meant: all options with their values, and then the names.
void Options::refuse_late_options() {
  Text options, names;
  add(options, argv_ + 1, end_);
  for (at_ = static_cast<int>(rest_ - argv_); at_ < argc_ && strcmp(argv_[at_], "--") != 0;) {
    char** const word = argv_ + at_++;
    if (is_option(*word)) read(*word);
    add(is_option(*word) ? options : names, word, argv_ + at_);
  }
  add(names, argv_ + at_, nullptr);
  usage("options stand before the names: redlock %s%s%s", command_.name, options.c_str(), names.c_str());
}

void Options::print_help() const {
  print("redlock %s [OPTION]... %s", command_.name, command_.synopsis);
  put(command_.help);
  if (command_.has_site) put(site_help);
  put(common_help);
  exit(end_of_output(exit_ok));
}

// ---- the configuration ------------------------------------------------------------------------------------------

const char* config_path(const Common& common) {
  if (common.config != nullptr || common.url_count != 0) return common.config;
  const char* from_environment = getenv("REDLOCK_CONFIG");
  return from_environment != nullptr && *from_environment != '\0' ? from_environment : default_config;
}

redlock_t* new_client(const redlock_config_t* cfg) {
  static redlock_t* client = nullptr;
  const int err = redlock_create_polled(&client, cfg);
  if (err == REDLOCK_E_CONFIG || err == REDLOCK_E_TLS_FILE) fail(exit_config, "%s", redlock_config_error(cfg));
  if (err != 0) fail(exit_code_of(err), "%s", redlock_strerror(err));
  return client;
}

redlock_setting_t setting_of(const redlock_config_t* cfg, const char* key) {
  auto out = sized<redlock_setting_t>();
  uint32_t i = 0;
  while (redlock_site_setting(cfg, i, &out) == 0 && strcmp(out.key, key) != 0) ++i;
  return out;
}

redlock_config_t* open_config(const Common& common) {
  [[maybe_unused]] static redlock_config_t* volatile kept[2];  // a mistake ends the program, and leaks none of them
  static unsigned count = 0;
  redlock_config_t* cfg = nullptr;
  const char* const path = config_path(common);
  int err = redlock_config_new(&cfg);
  kept[count++ % 2] = cfg;
  if (err == 0 && path != nullptr) err = redlock_config_load_file(cfg, path);
  for (unsigned i = 0; err == 0 && i < common.url_count; ++i) err = redlock_config_add_master(cfg, common.urls[i]);
  if (err != 0 || redlock_memory_size(cfg) == 0) refuse_config(err, cfg, path);
  return cfg;
}

}  // namespace redlock::tool
