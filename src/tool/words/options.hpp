// SPDX-License-Identifier: MIT
//
// A command of `redlock`, such as `redlock run`: each stands in a file of its own, and in the table of main.cpp.
// Its options: its own, and those that every command has: -C, --master, -v, -q, -h.
#pragma once
#include <redlock/site.h>

namespace redlock::tool {

// A struct that the library fills as far as its size says.
template <typename T>
T sized() {
  T out{};
  out.size = sizeof out;
  return out;
}

struct Command {
  const char* name;
  const char* synopsis;  // the arguments: "[-n] RES... -- COMMAND [ARG...]"
  const char* summary;   // a few words, for the list of commands
  const char* help;      // its own options, one a line, each line ended by a newline
  int (*run)(const Command& command, int argc, char** argv);  // argv[0] is the command's name; returns an ExitCode
  bool has_site = true;  // else -C and --master are none of its options
};

extern const Command commission_command;
extern const Command config_command;
extern const Command doctor_command;
extern const Command reconfigure_command;
extern const Command run_command;
extern const Command status_command;

struct Common {
  const char* config = nullptr;  // -C
  const char* urls[REDLOCK_MASTERS_MAX] = {};   // --master with a URL
  unsigned url_count = 0;
  const char* names[REDLOCK_MASTERS_MAX] = {};  // --master with a name, for commands about one master
  unsigned name_count = 0;
  int verbose = 0;
};

// --name, and -c if there is a letter; and where its value goes. An option without a value sets a flag.
struct Option {
  const char* name;
  char letter = '\0';
  bool* flag = nullptr;
  const char** text = nullptr;
  uint32_t* number = nullptr;  // min..max
  int32_t* ms = nullptr;       // from seconds, max at most: "2.5", ".5", "5s"
  long min = 0;
  long max = 0;

  bool has_value() const { return text != nullptr || number != nullptr || ms != nullptr; }
};

// Reads the options in the order in which they stand, as getopt_long() does. Every mistake ends the program with 64 and
// a line. -h prints the help, and ends the program, too.
class Options {
 public:
  enum class Order { any, first };  // first: options end at the first argument that is none

  static constexpr size_t common_max = 5;  // the options of all commands
  static constexpr size_t own_max = 16;    // run has the most

  Options(const Command& command, int argc, char** argv) : Options(command, argc, argv, nullptr, 0, Order::any) {}
  // One option too many does not compile.
  template <size_t count>
    requires(count <= own_max)
  Options(const Command& command, int argc, char** argv, const Option (&own)[count], Order order = Order::any)
      : Options(command, argc, argv, own, count, order) {}

  char** rest() const { return rest_; }             // the arguments that are no options, with a null at the end
  int rest_count() const { return kept_ - 1; }      // of Order::any
  const Common& common() const { return common_; }
  void check_resource(const char* name) const;
  // Of two options that mean different things, obeying one would hide that the other was given.
  void exclude(const char* one, bool has_one, const char* other, bool has_other) const;
  bool ended_by_dashes() const { return ended_by_dashes_; }  // Order::first: behind a --, "-x" is a name
  // Order::first: an option stands behind the first argument. Ends the program, and says how to write it.
  [[noreturn]] void refuse_late_options();
  // Order::first: no -- stands before the command. The same.
  [[noreturn]] void refuse_bare_command() const;
  [[noreturn]] __attribute__((format(printf, 2, 3))) void usage(const char* format, ...) const;

 private:
  Options(const Command& command, int argc, char** argv, const Option* own, size_t count, Order order);
  void read(char* word);  // an option, and the value that follows it: --wait 5, --wait=5, or letters: -nw5
  const Option* find(const char* name, size_t size) const;
  void take(const Option& option, char* value, const char* word);
  void take_master(char* value);
  [[noreturn]] void print_help() const;

  const Command& command_;
  const int argc_;
  char** const argv_;
  int at_ = 1;                   // the argument that is read next
  int kept_ = 1;                 // arguments that are no options, at the start of argv_
  char** rest_ = argv_ + 1;
  char** end_ = argv_ + 1;       // of Order::first: behind the last option, before a --
  bool ended_by_dashes_ = false;
  Common common_;
  const char* master_ = nullptr;
  Option options_[own_max + common_max];
  unsigned count_ = 0;
};

// A client of this configuration, which ends with the program. Until it is processed it connects to nobody.
redlock_t* new_client(const redlock_config_t* cfg);

// The configuration that a command is to work with: -C FILE, else that of --master alone, else $REDLOCK_CONFIG, else
// /etc/redlock/redlock.json; and the masters of --master are added. Ends the program if it is not valid.
redlock_config_t* open_config(const Common& common);
// The file of that configuration; null: there is none.
const char* config_path(const Common& common);
// What a configuration says for this key of it.
redlock_setting_t setting_of(const redlock_config_t* cfg, const char* key);

}  // namespace redlock::tool
