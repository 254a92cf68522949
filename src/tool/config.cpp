// SPDX-License-Identifier: MIT
//
// redlock config: checks a file, prints what it means, and makes a new one.
#include <redlock/site.h>
#include <string.h>

#include "tool/key_texts.hpp"
#include "tool/options.hpp"
#include "tool/say.hpp"

namespace redlock::tool {
namespace {

constexpr char help[] =
    "check [FILE]   is the file valid? Without FILE: the one that other commands would read\n"
    "               -v prints every value that a client of the file uses\n"
    "template       prints a file with every key, its default and what it means\n";

constexpr char example_masters[] =
    "[\n    \"redis://10.0.0.11:6379\",\n    { \"url\": \"redis://10.0.0.12:6379\", \"name\": \"pump-house\" },\n"
    "    \"redis://10.0.0.13:6379\"\n  ]";

// ---- check ------------------------------------------------------------------------------------------------------

// The names and addresses of the masters, as a client of the file has them. The client connects to none, and ends with
// the program.
void print_masters(const redlock_config_t* cfg) {
  static redlock_t* client = nullptr;
  const int err = redlock_create_polled(&client, cfg);
  if (err == REDLOCK_E_TLS_FILE) fail(exit_config, "%s", redlock_config_error(cfg));
  if (err != 0) fail(exit_code_of(err), "%s", redlock_strerror(err));
  redlock_master_status_t master{};
  master.size = sizeof master;
  for (uint32_t i = 0; redlock_master_status(client, i, &master) == 0; ++i) {
    print("%-26s %s (%s)", "masters", master.address, master.name);
  }
}

int check(const Common& common) {
  const redlock_config_t* const cfg = open_config(common);
  const char* const path = config_path(common);
  if (common.verbose == 0) {
    print("%s: valid", path != nullptr ? path : "--master");
    return exit_ok;
  }
  redlock_setting_t setting{};
  setting.size = sizeof setting;
  for (uint32_t i = 0; redlock_site_setting(cfg, i, &setting) == 0; ++i) {
    print("%-26s %s%s", setting.key, setting.value, setting.given != 0 ? "" : "  (default)");
  }
  print_masters(cfg);
  return exit_ok;
}

// ---- template ---------------------------------------------------------------------------------------------------

// A configuration of nothing but defaults.
redlock_config_t* default_config() {
  redlock_config_t* cfg = nullptr;
  if (new_config(&cfg) != 0) fail(exit_system, "no memory");
  if (redlock_config_add_master(cfg, "redis://127.0.0.1") != 0) fail(exit_internal, "%s", redlock_config_error(cfg));
  return cfg;
}

// The part before the dot; 0 bytes: none.
size_t section_size(const char* key) {
  const char* dot = strchr(key, '.');
  return dot == nullptr ? 0 : static_cast<size_t>(dot - key);
}

bool is_same_section(const char* a, const char* b) {
  return section_size(a) == section_size(b) && strncmp(a, b, section_size(a)) == 0;
}

const char* name_in_section(const char* key) { return section_size(key) == 0 ? key : strchr(key, '.') + 1; }

void print_section(const char* name, size_t size) {
  static bool is_first = true;
  if (is_first) put("  // One, or better three or five, independent servers; all gateways need the same.\n");
  putf(is_first ? "  \"masters\": %s" : "  }%s", is_first ? example_masters : "");
  is_first = false;
  putf(",\n\n  \"%.*s\": {\n", static_cast<int>(size), name);
}

// `is_last`: no other key of its section follows.
void print_key(const redlock_setting_t& setting, bool is_last) {
  const char* const blanks = section_size(setting.key) == 0 ? "  " : "    ";
  const char* const quote = setting.is_text != 0 ? "\"" : "";
  for (const char* line = text_of_key(setting.key); *line != '\0';) {
    const size_t size = strcspn(line, "\n");
    putf("%s// %.*s\n", blanks, static_cast<int>(size), line);
    line += size + (line[size] == '\n');
  }
  putf("%s// %s\n", blanks, setting.range);
  const char* const example = example_of_key(setting.key);
  const bool is_example = example != nullptr || default_follows(setting.key);
  const char* const value = example != nullptr ? example : setting.value;
  const bool has_next = !is_last || section_size(setting.key) == 0;
  putf("%s%s\"%s\": %s%s%s%s\n", blanks, is_example ? "// " : "", name_in_section(setting.key), quote, value, quote,
       has_next ? "," : "");
}

void print_template() {
  put("// A configuration of redlock. Lines that begin with // are comments. Every value below is the default:\n"
      "// what you do not change, you may leave out. Passwords stand here: chmod 600.\n{\n");
  const redlock_config_t* cfg = default_config();
  redlock_setting_t one{}, next{};
  one.size = next.size = sizeof one;
  const char* before = "";
  int err = redlock_site_setting(cfg, 0, &one);
  for (uint32_t i = 1; err == 0; ++i, one = next) {
    if (text_of_key(one.key) == nullptr) fail(exit_internal, "%s: nothing says what it means", one.key);
    if (!is_same_section(before, one.key)) print_section(one.key, section_size(one.key));
    before = one.key;
    err = redlock_site_setting(cfg, i, &next);
    print_key(one, err != 0 || !is_same_section(one.key, next.key));
  }
  put("  }\n}\n");
}

int run_config(const Command& command, int argc, char** argv) {
  Options options(command, argc, argv);
  while (options.next() != Options::end) continue;
  const char* what = options.rest_count() > 0 ? options.rest()[0] : "";
  Common common = options.common();
  if (strcmp(what, "check") == 0 && options.rest_count() <= 2) {
    if (options.rest_count() == 2) common.config = options.rest()[1];
    return check(common);
  }
  if (strcmp(what, "template") != 0 || options.rest_count() != 1) options.usage("check [FILE], or template");
  print_template();
  return flush() ? exit_ok : exit_system;
}

}  // namespace

const Command config_command = {"config", "check [FILE] | template", "check a configuration, or begin a new one", help,
                                run_config};

}  // namespace redlock::tool
