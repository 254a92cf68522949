// SPDX-License-Identifier: MIT
//
// redlock config: checks a file, prints what it means, and makes a new one.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/key_map.hpp"
#include "tool/words/options.hpp"
#include "tool/words/say.hpp"
#include "tool/words/text.hpp"

namespace redlock::tool {
namespace {

constexpr char help[] =
    "check [FILE]   is the file valid? Without FILE: the one that other commands would read\n"
    "               -v prints every value that a client of the file uses\n"
    "template       prints a file with every key, its default and what it means; with the masters of --master\n"
    "  -o, --output FILE   writes FILE, which must not exist, and its folder: mode 640, the folder's group\n";

int check(const Common& common) {
  const redlock_config_t* const cfg = open_config(common);
  const char* const path = config_path(common);
  new_client(cfg);  // it reads the files that the TLS settings name
  const bool tells_all = common.verbose != 0;
  auto setting = sized<redlock_setting_t>();
  for (uint32_t i = 0; tells_all && redlock_site_setting(cfg, i, &setting) == 0; ++i) {
    print("%-26s %s%s", setting.key, setting.value, setting.given != 0 ? "" : "  (default)");
  }
  auto master = sized<redlock_site_facts_t>();
  uint32_t masters = 0;
  for (; redlock_site_facts(cfg, masters, &master) == 0; ++masters) {
    if (!tells_all) continue;
    print("%-26s %s (%s)", "masters", master.address, name_of_master(master.name, master.address).c_str());
  }
  if (!tells_all) print("%s: valid", path != nullptr ? path : "--master");
  if (!tells_all && masters % 2 == 0) note("%u masters: an even number costs a master and buys nothing", masters);
  return exit_ok;
}

// ---- template ---------------------------------------------------------------------------------------------------

// What each key means, in the order of the settings, and behind the text of a key of "tls" its example.
#define REDLOCK_STRING(name, min, max, form, text) text "\0"
#define REDLOCK_CHOICE(name, words, initial, text) text "\0"
#define REDLOCK_NUMBER(section, name, min, max, initial, text) text "\0"
#define REDLOCK_TLS_TEXT(name, max, range, example, text) text "\0" example "\0"
#define REDLOCK_TLS_OTHER(name, range, example, text) text "\0" example "\0"
constexpr char texts[] = REDLOCK_KEY_MAP(REDLOCK_STRING, REDLOCK_CHOICE, REDLOCK_NUMBER, REDLOCK_NUMBER)
#ifdef REDLOCK_TLS
    REDLOCK_TLS_KEY_MAP(REDLOCK_TLS_TEXT, REDLOCK_TLS_OTHER)
#endif
    ;

const char* behind(const char* text) { return text + strlen(text) + 1; }
size_t section_size(const char* key) { return strchr(key, '.') == nullptr ? 0 : strcspn(key, "."); }

// A key without a fixed default stands in a comment. Returns the text of the next key.
const char* print_key(const redlock_setting_t& key, const char* text) {
  const size_t section = section_size(key.key);
  const char* const indent = section == 0 ? "  " : "    ";
  const bool is_tls = strncmp(key.key, "tls.", 4) == 0;
  const bool is_comment = is_tls || strstr(text, "Default:") != nullptr;
  put(Text("%s// ", indent));
  for (const char* c = text; *c != '\0'; ++c) put(Text(*c == '\n' ? "%c%s// " : "%c", *c, indent));
  text = behind(text);
  put(Text("\n%s// %s\n%s%s\"%s\": ", indent, key.range, indent, is_comment ? "// " : "",
           key.key + (section == 0 ? 0 : section + 1)));
  put(Text(key.is_text != 0 ? "\"%s\"" : "%s", is_tls ? text : key.value));
  return is_tls ? behind(text) : text;
}

// The masters of --master, or examples.
void print_choice_of_masters(const Common& common) {
  put("  // One, or better three or five, independent servers; all gateways need the same.\n  \"masters\": [");
  for (unsigned i = 0; i < common.url_count; ++i) {
    put(i == 0 ? "\n    \"" : ",\n    \"");
    for (const char* c = common.urls[i]; *c != '\0'; ++c) put(Text(*c == '"' || *c == '\\' ? "\\%c" : "%c", *c));
    put("\"");
  }
  if (common.url_count == 0) {
    put("\n    \"redis://10.0.0.11:6379\",\n"
        "    { \"url\": \"redis://10.0.0.12:6379\", \"name\": \"pump-house\" },\n"
        "    \"redis://10.0.0.13:6379\"");
  }
  put("\n  ],\n");
}

void print_template(const Common& common) {
  put("// A configuration of redlock. Lines that begin with // are comments. Every value below is the default:\n"
      "// what you do not change, you may leave out. Passwords stand here: chmod 640, or 600.\n{\n");
  redlock_config_t* cfg = nullptr;
  auto key = sized<redlock_setting_t>();
  int err = redlock_config_new(&cfg);
  if (err == 0) err = redlock_config_add_master(cfg, "redis://10.0.0.11");
  if (err == 0) err = redlock_site_setting(cfg, 0, &key);
  if (err != 0) fail(exit_code_of(err), "%s", redlock_strerror(err));
  const char* text = texts;
  const char* before = "";  // the key before, of another section or of the same
  for (uint32_t i = 0; redlock_site_setting(cfg, i, &key) == 0; before = key.key, ++i) {
    const size_t section = section_size(key.key), section_before = section_size(before);
    const bool begins = section != section_before || strncmp(key.key, before, section) != 0;
    if (i != 0) put(begins && section_before != 0 ? "\n" : ",\n");
    if (begins) {
      section_before == 0 ? print_choice_of_masters(common) : put("  },\n");
      put(Text("\n  \"%.*s\": {\n", static_cast<int>(section), key.key));
    }
    text = print_key(key, text);
  }
  put("\n  }\n}\n");
  redlock_config_free(cfg);
}

// From here on stdout is the new file. Its group is the folder's, so that `chgrp dialout /etc/redlock` is enough for a
// program that is not root's.
void write_to(const char* path) {
  const char* const slash = strrchr(path, '/');
  Text folder("%.*s", slash == nullptr ? 1 : static_cast<int>(slash - path) + 1, slash == nullptr ? "." : path);
  struct stat about{};
  if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
    fail(exit_output, "%s cannot be made: %s", folder.c_str(), strerror(errno));
  }
  const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
  if (file < 0) fail(exit_output, "%s cannot be made: %s", path, strerror(errno));
  const bool is_shared = stat(folder.c_str(), &about) == 0 && fchown(file, geteuid(), about.st_gid) == 0;
  if (!is_shared) fchmod(file, 0600);
  if (dup2(file, STDOUT_FILENO) < 0) fail(exit_system, "%s: %s", path, strerror(errno));
  close(file);
}

int make_template(const Common& common, const char* path) {
  if (common.url_count != 0) open_config(common);  // refuses what is no master
  if (path != nullptr) write_to(path);
  print_template(common);
  if (path == nullptr) return exit_ok;
  if (!flush()) fail(exit_output, "%s cannot be written", path);
  const bool is_default = strcmp(path, config_path(Common())) == 0;
  note("%s is written%s; next: redlock doctor%s%s", path, common.url_count == 0 ? ": put your masters into it" : "",
       is_default ? "" : " -C ", is_default ? "" : Text().word(path).c_str());
  return exit_ok;
}

int run_config(const Command& command, int argc, char** argv) {
  const char* output = nullptr;
  const Options options(command, argc, argv, {{.name = "output", .letter = 'o', .text = &output}});
  const char* what = options.rest_count() > 0 ? options.rest()[0] : "";
  Common common = options.common();
  if (strcmp(what, "check") == 0 && options.rest_count() <= 2 && output == nullptr) {
    options.exclude("FILE", options.rest_count() == 2, "--config", common.config != nullptr);
    if (options.rest_count() == 2) common.config = options.rest()[1];
    return check(common);
  }
  if (strcmp(what, "template") != 0 || options.rest_count() != 1) options.usage("check [FILE], or template");
  options.exclude("template", true, "--config", common.config != nullptr);
  return make_template(common, output);
}

}  // namespace

const Command config_command = {"config", "check [FILE] | template [-o FILE]",
                                "check a configuration, or begin a new one", help, run_config};

}  // namespace redlock::tool
