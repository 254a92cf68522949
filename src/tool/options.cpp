// SPDX-License-Identifier: MIT
#include "tool/options.hpp"

#include <errno.h>
#include <redlock/site.h>
#include <stdarg.h>
#include <stdio.h>
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

constexpr char common_letters[] = "C:vqh";

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

Options::Options(const Command& command, int argc, char** argv, const char* letters, const option* own, unsigned count)
    : command_(command), argc_(argc), argv_(argv) {
  const option common[common_count] = {{"config", required_argument, nullptr, 'C'},
                                       {"master", required_argument, nullptr, master_option},
                                       {"verbose", no_argument, nullptr, 'v'},
                                       {"quiet", no_argument, nullptr, 'q'},
                                       {"help", no_argument, nullptr, 'h'}};
  for (unsigned i = 0; i < count; ++i) long_[i] = own[i];
  for (unsigned i = 0; i < common_count; ++i) long_[count + i] = common[i];
  long_[count + common_count] = {};
  // A ':' tells an option without its value from one that does not exist. The '+' has to stand before it.
  const bool in_order = *letters == '+';
  snprintf(letters_, sizeof letters_, "%s:%s%s", in_order ? "+" : "", letters + in_order, common_letters);
  opterr = 0;
  optind = 1;
}

int Options::next() {
  for (;;) {
    const int c = getopt_long(argc_, argv_, letters_, long_, nullptr);
    if (c == '?' || c == ':') refuse(c);
    if (!take(c)) return c;
  }
}

bool Options::take(int c) {
  switch (c) {
    case 'C':
      common_.config = optarg;
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
      take_master(optarg);
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
  const long number = strtol(optarg, &after, 10);
  if (after == optarg || *after != '\0' || errno != 0 || number < min || number > max) {
    usage("'%s' is not a number in %ld..%ld", optarg, min, max);
  }
  return number;
}

int Options::milliseconds(long max_s) const {
  long ms = 0;
  long unit = 1000;
  const char* c = optarg;
  for (; *c >= '0' && *c <= '9' && ms <= max_s * 1000; ++c) ms = 10 * ms + 1000 * (*c - '0');
  const bool has_digits = c != optarg;
  if (*c == '.') ++c;
  for (; *c >= '0' && *c <= '9'; ++c) ms += (unit /= 10) * (*c - '0');
  if (!has_digits || *c != '\0' || ms > max_s * 1000) {
    usage("'%s' is not a number of seconds in 0..%ld", optarg, max_s);
  }
  return static_cast<int>(ms);
}

// ---- mistakes and help ------------------------------------------------------------------------------------------

void Options::usage(const char* format, ...) const {
  char what[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  fail(exit_usage, "%s: %s; see redlock %s --help", command_.name, what, command_.name);
}

void Options::refuse(int c) const {
  const char* what = c == ':' ? "a value is missing behind" : "there is no option";
  if (optopt > 0 && optopt < first_long) {
    usage("%s -%c", what, optopt);
  }
  usage("%s %s", what, argv_[optind - 1]);
}

void Options::print_help() const {
  print("redlock %s [OPTION]... %s", command_.name, command_.synopsis);
  printf("%s%s", command_.help, common_help);
  fflush(stdout);
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

redlock_config_t* open_file(const char* path) {
  Common only;
  only.config = path;
  return open_config(only);
}

redlock_config_t* open_exposed_config(const Common& common) {
  redlock_config_t* cfg = nullptr;
  const char* path = config_path(common);
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
