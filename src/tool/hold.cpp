// SPDX-License-Identifier: MIT
//
// redlock hold: a lock for a shell script, in the background:
//     h=$(redlock hold --for $$ RES) || exit; ...; kill $h
// or for a program, in the foreground, with a descriptor that says when the lock is held.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/holder.hpp"
#include "tool/lock_options.hpp"
#include "tool/say.hpp"

namespace redlock::tool {
namespace {

constexpr char help[] =
    "Holds the lock of all RES until it is told to end (TERM), or until process PID has ended.\n"
    "      --for PID           go to the background when the lock is held, and print the pid of that process;\n"
    "                          if the lock ends before PID does, end PID\n"
    "      --ready-fd N        stay in the foreground, and write a line to descriptor N when the lock is held\n";

constexpr int for_option = Options::first_long;
constexpr int ready_option = Options::first_long + 1;

struct Arguments {
  Wish wish;
  LockOptions lock;
  Schedule schedule;
  ExitCode held_code = exit_held;
  long pid = 0;
  int ready = -1;
};

void read_arguments(Options& options, Arguments& out) {
  for (int c; (c = options.next()) != Options::end;) {
    switch (c) {
      case for_option:
        out.pid = options.number(1, 0x7FFF'FFFF);
        break;
      case ready_option:
        out.ready = static_cast<int>(options.number(0, 0xFFFF));
        if (fcntl(out.ready, F_GETFD) < 0) options.usage("descriptor %d is not open", out.ready);
        break;
      case 'E':
        out.held_code = static_cast<ExitCode>(options.number(0, 255));
        break;
      default:
        take_lock_option(options, c, out.lock);
    }
  }
  for (char** name = options.rest(); *name != nullptr; ++name) add_resource(options, *name, out.wish);
  if (out.wish.count == 0) options.usage("which resource is to be locked?");
}

// The caller reads our stdout until nobody has it open any more.
void leave_for_background() {
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing < 0) return;
  dup2(nothing, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  if (nothing > STDERR_FILENO) close(nothing);
  setsid();
  if (chdir("/") != 0) return;  // a folder in use could not be unmounted
}

// The caller's process: waits until the one in the background has the lock, or has ended. If we are killed, that one
// notices it by its end of the pipe.
int wait_for_background(pid_t holder, int ready) {
  char line[16];
  ssize_t size = 0;
  do {
    size = read(ready, line, sizeof line);
  } while (size < 0 && errno == EINTR);
  if (size > 0) {
    print("%ld", static_cast<long>(holder));
    return exit_ok;
  }
  int status = 0;
  waitpid(holder, &status, 0);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  say("the process in the background was killed");
  return exit_system;
}

int run_hold(const Command& command, int argc, char** argv) {
  static const Option own[] = {
      LOCK_OPTIONS, {"for", for_option, true}, {"ready-fd", ready_option, true}, {"conflict-exit-code", 'E', true}};
  Arguments arguments;
  Options options(command, argc, argv, own);
  read_arguments(options, arguments);
  redlock_config_t* cfg = open_config(options.common());
  apply_lock_options(options, arguments.lock, cfg, arguments.wish, arguments.schedule);
  static WatchedProcess process;
  const bool is_for_process = arguments.pid != 0;
  if (is_for_process && !process.open(static_cast<pid_t>(arguments.pid))) {
    options.usage("there is no process %ld", arguments.pid);
  }
  if (is_for_process && arguments.ready < 0) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail(exit_system, "pipe: %s", strerror(errno));
    const pid_t holder = fork();  // before there is a client
    if (holder < 0) fail(exit_system, "fork: %s", strerror(errno));
    close(ends[holder != 0]);
    if (holder != 0) return wait_for_background(holder, ends[0]);
    arguments.ready = ends[1];
    leave_for_background();
  }
  signal(SIGPIPE, SIG_IGN);
  static Holder holder(arguments.wish, arguments.schedule, is_for_process ? &process : nullptr, arguments.ready);
  return holder.run(cfg, options.common(), arguments.held_code);
}

}  // namespace

const Command hold_command = {"hold", "RES...", "hold a lock for a script or a program", help, run_hold, lock_help};

}  // namespace redlock::tool
