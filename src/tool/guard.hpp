// SPDX-License-Identifier: MIT
//
// The guard: a process between the keeper, which has the client, and the command. It sees to it that the command is
// gone before somebody else can hold the lock, also when the keeper or the guard itself is stopped or killed:
//  - A timer of the kernel kills the guard before the end of the validity. Each renewal moves the timer.
//  - When the guard dies, the kernel kills the command (PR_SET_PDEATHSIG).
//  - Before that the guard tells the command to end (TERM), and then kills it with all its descendants.
//  - If the keeper dies, the guard does the same at once.
//  - With --pidns, the init of the command's PID namespace dies with the guard, too, and so does all that is in it.
// The guard is forked before there is a client, so that it has none of the client's sockets and no thread.
#pragma once
#include <stdint.h>
#include <sys/types.h>

#include "tool/schedule.hpp"
#include "tool/signals.hpp"

namespace redlock::tool {

// What the guard runs. Everything lives as long as the guard.
struct Job {
  char** words = nullptr;           // with a null at the end
  const char* resources = nullptr;  // for the environment
  uint32_t ttl_ms = 0;
  bool gets_terminal = false;       // stdin is a terminal, and we are in its foreground
  bool hides_notify_socket = false;
  bool has_pid_namespace = false;
  Schedule schedule;
};

// From the keeper to the guard.
struct Order {
  enum Kind : uint32_t { start, move, signal, end };
  Kind kind;
  int32_t number;   // signal: which
  int64_t time_ns;  // start, move: the end of the validity. end: when to kill
  uint64_t token;   // start
};

// From the guard to the keeper.
struct Report {
  enum Kind : uint32_t { ready, started, stopped, ended };  // ready: the PID namespace is there
  Kind kind;
  int32_t number;    // started: the command's pid. ended: how, as waitpid() tells
  uint32_t in_time;  // ended: 0 if the command was told to end since the lock was about to end
};

// The guard as the keeper sees it.
class CommandGuard {
 public:
  // Ends the program if the job is to have a PID namespace, and none is allowed.
  void fork(const Job& job, Signals& signals);
  pid_t pid() const { return pid_; }
  int descriptor() const { return socket_; }

  void start(int64_t end_ns, uint64_t token) const { send({Order::start, 0, end_ns, token}); }
  void move(int64_t end_ns) const { send({Order::move, 0, end_ns, 0}); }
  void signal(int number) const { send({Order::signal, number, 0, 0}); }
  void end(int64_t kill_at) const { send({Order::end, 0, kill_at, 0}); }
  bool receive(Report& report) const;
  void dismiss();  // a guard that was not told to start ends by itself

 private:
  void send(const Order& order) const;

  pid_t pid_ = -1;
  int socket_ = -1;
};

}  // namespace redlock::tool
