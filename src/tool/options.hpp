// SPDX-License-Identifier: MIT
//
// The options of a command: its own, and those that every command has (-C, --master, -v, -q, -h).
#pragma once
#include <redlock/site.h>

#include "tool/command.hpp"

namespace redlock::tool {

struct Common {
  const char* config = nullptr;  // -C
  const char* urls[REDLOCK_MASTERS_MAX] = {};   // --master with a URL
  unsigned url_count = 0;
  const char* names[REDLOCK_MASTERS_MAX] = {};  // --master with a name, for commands about one master
  unsigned name_count = 0;
  int verbose = 0;
};

// --name, and -c if `code` is a letter.
struct Option {
  const char* name;
  int code;
  bool has_value = false;
};

// Reads the options in the order in which they stand, as getopt_long() does:
//     const Option own[] = {{"wait", 'w', true}, ...};
//     Options options(command, argc, argv, own);
//     for (int c; (c = options.next()) != Options::end;) ...
// Every mistake ends the program with 64 and a line. -h prints the help, and ends the program, too.
class Options {
 public:
  static constexpr int end = -1;
  static constexpr int first_long = 256;  // for options of a command that have no letter
  enum class Order { any, first };        // first: options end at the first argument that is none

  template <unsigned count>
  Options(const Command& command, int argc, char** argv, const Option (&own)[count], Order order = Order::any)
      : command_(command), own_(own), own_count_(count), order_(order), argc_(argc), argv_(argv) {}
  Options(const Command& command, int argc, char** argv)
      : command_(command), own_(nullptr), own_count_(0), order_(Order::any), argc_(argc), argv_(argv) {}

  int next();                                       // the next option of the command's own, or `end`
  const char* value() const { return value_; }      // of that option
  // The value as a number. What is not in the range ends the program.
  long number(long min, long max) const;
  int milliseconds(long max_s) const;               // from seconds with a fraction: "2.5"

  char** rest() const { return argv_ + 1; }         // the arguments that are no options, with a null at the end
  int rest_count() const { return kept_ - 1; }
  const Common& common() const { return common_; }
  [[noreturn]] __attribute__((format(printf, 2, 3))) void usage(const char* format, ...) const;

 private:
  bool keep_others();  // until argv_[at_] is an option; false: there is none
  int read_one();
  int read_long(const char* word);
  int read_letter();
  const Option* find(const char* name, size_t size) const;
  const Option* find(char letter) const;
  void take_value(const Option& option, const char* attached, const char* word);
  bool take(int c);  // was it an option of all commands?
  void take_master(const char* value);
  [[noreturn]] void print_help() const;

  const Command& command_;
  const Option* const own_;
  const unsigned own_count_;
  const Order order_;
  const int argc_;
  char** const argv_;
  int at_ = 1;                   // the argument that is read next
  int kept_ = 1;                 // arguments that are no options, at the start of argv_
  const char* letters_ = "";     // those behind a '-' that are not read yet
  const char* value_ = nullptr;
  Common common_;
};

// As redlock_config_new(). A mistake may end the program anywhere: what is kept then is no leak.
int new_config(redlock_config_t** cfg);

// The configuration that a command is to work with: -C FILE, else that of --master alone, else $REDLOCK_CONFIG, else
// /etc/redlock/redlock.json; and the masters of --master are added. Ends the program if it is not valid, or if others
// can read a password in the file.
redlock_config_t* open_config(const Common& common);
// The same, for a command that tells about such a password itself.
redlock_config_t* open_exposed_config(const Common& common);
// The file of that configuration; null: there is none.
const char* config_path(const Common& common);
// The configuration in this file alone. Ends the program as open_config() does.
redlock_config_t* open_file(const char* path);
// Which password others can read, and what to do, as a sentence; "": none.
const char* exposed_secret(const redlock_config_t* cfg);
// What a configuration says for this key of it.
void read_setting(const redlock_config_t* cfg, const char* key, redlock_setting_t& out);

}  // namespace redlock::tool
