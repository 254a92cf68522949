// SPDX-License-Identifier: MIT
//
// The options of a command: its own, and those that every command has (-C, --master, -v, -q, -h).
#pragma once
#include <getopt.h>
#include <redlock/redlock.h>

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

// Reads the options in the order in which they stand:
//     Options options(command, argc, argv, "nw:", {{"wait", required_argument, nullptr, 'w'}, ...});
//     for (int c; (c = options.next()) != Options::end;) ...
// Every mistake ends the program with 64 and a line. -h prints the help, and ends the program, too.
class Options {
 public:
  static constexpr int end = -1;
  static constexpr int first_long = 256;  // for options of a command that have no letter
  static constexpr unsigned own_max = 20;

  // A '+' at the start of `letters`: options end at the first argument that is none.
  template <unsigned count>
  Options(const Command& command, int argc, char** argv, const char* letters, const option (&own)[count])
      : Options(command, argc, argv, letters, own, count) {
    static_assert(count <= own_max);
  }
  Options(const Command& command, int argc, char** argv) : Options(command, argc, argv, "", nullptr, 0) {}

  int next();                                       // the next option of the command's own, or `end`
  const char* value() const { return optarg; }      // of that option
  // The value as a number. What is not in the range ends the program.
  long number(long min, long max) const;
  int milliseconds(long max_s) const;               // from seconds with a fraction: "2.5"

  char** rest() const { return argv_ + optind; }    // the arguments behind the options, with a null at the end
  int rest_count() const { return argc_ - optind; }
  const Common& common() const { return common_; }
  [[noreturn]] __attribute__((format(printf, 2, 3))) void usage(const char* format, ...) const;

 private:
  Options(const Command& command, int argc, char** argv, const char* letters, const option* own, unsigned count);
  bool take(int c);  // was it an option of all commands?
  void take_master(const char* value);
  [[noreturn]] void refuse(int c) const;
  [[noreturn]] void print_help() const;

  static constexpr unsigned common_count = 5;
  static constexpr int master_option = 1000;
  const Command& command_;
  int argc_;
  char** argv_;
  Common common_;
  char letters_[64];
  option long_[own_max + common_count + 1];
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

}  // namespace redlock::tool
