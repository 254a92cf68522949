// SPDX-License-Identifier: MIT
//
// The warden: a process between the keeper, which has the client, and the command. It sees to it that the command is
// gone before somebody else can hold the lock, also when the keeper or the warden itself is stopped or killed:
//  - A timer of the kernel kills the warden before the end of the validity. Each renewal moves the timer.
//  - When the warden dies, the kernel kills the command and its process group: see fuse.hpp.
//  - Before that the warden tells the command to end (TERM), and then kills it with all its descendants.
//  - If the keeper dies, the warden does the same at once.
//  - With --pidns, the init of the command's PID namespace dies with the warden, too, and so does all that is in it.
// The warden is forked before there is a client, so that it has none of the client's sockets and no thread.
#pragma once
#include <stdint.h>
#include <sys/types.h>

#include "tool/run/job.hpp"
#include "tool/system/signals.hpp"

namespace redlock::tool {

// From the keeper to the warden.
struct Order {
  enum Kind : uint32_t { start, move, signal, end };
  Kind kind;
  int32_t number;   // signal: which. start: which name of a wish for any
  int64_t time_ns;  // start, move: the end of the validity. end: when to kill
  uint64_t token;   // start
};

// From the warden to the keeper. The first one says that the fuse and the PID namespace are there, the second one that
// the command has ended.
struct Report {
  int32_t status;    // as waitpid() tells
  uint32_t in_time;  // 0: the command was told to end since the lock was about to end
};

// The warden as the keeper sees it.
class CommandWarden {
 public:
  // Ends the program if the system refuses what the warden needs.
  void fork(const Job& job, Signals& signals);
  pid_t pid() const { return pid_; }
  int descriptor() const { return socket_; }

  void start(int32_t which, int64_t end_ns, uint64_t token) const { send({Order::start, which, end_ns, token}); }
  void move(int64_t end_ns) const { send({Order::move, 0, end_ns, 0}); }
  void signal(int number) const { send({Order::signal, number, 0, 0}); }
  void end(int64_t kill_at) const { send({Order::end, 0, kill_at, 0}); }
  bool receive(Report& report) const;
  void dismiss() const;  // a warden that was not told to start ends by itself

 private:
  void send(const Order& order) const;

  pid_t pid_ = -1;
  int socket_ = -1;
};

}  // namespace redlock::tool
