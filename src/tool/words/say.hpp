// SPDX-License-Identifier: MIT
//
// Lines for a person: "redlock: ..." on stderr, each in one write(2), so that lines of several programs do not mix.
// stdout is for what was asked for. Lines are printable ASCII, other bytes are escaped.
#pragma once
#include "tool/words/exit_code.hpp"
#include "tool/words/format.hpp"

namespace redlock::tool {

// What journald keeps beside a line, as syslog(3) counts. It stands in the line where stderr is journald's alone.
enum class Priority : char { error = '3', warning = '4', info = '6' };
REDLOCK_TOOL_FORMAT(2) void say_as(Priority priority, const char* format, ...);
// An error: for problems, and for all that stands beside an exit code of ours.
REDLOCK_TOOL_FORMAT(1) void say(const char* format, ...);
// For what is good to know: nothing with -q.
REDLOCK_TOOL_FORMAT(1) void note(const char* format, ...);
// Says what is wrong, and ends the program.
[[noreturn]] REDLOCK_TOOL_FORMAT(2) void fail(ExitCode code, const char* format, ...);

// A part of stdout as it is. It is written when enough is together, and by flush().
void put(const char* text);
// One line on stdout, at once.
REDLOCK_TOOL_FORMAT(1) void print(const char* format, ...);
bool flush();  // false: stdout could not be written, now or before
int end_of_output(int code);  // flushes. The exit code: `code`, or that of an output that cannot be written

// The operator's word for what `what` says: asked on a terminal, if `asks`, and given by this option elsewhere.
// Otherwise the program ends.
void confirm(bool yes, const char* what, const char* option = "--yes", bool asks = true);

// Rewrites the last line of a terminal; nothing with -q. The next line of say() or note() begins on a line of its own.
REDLOCK_TOOL_FORMAT(1) void show_progress(const char* format, ...);
void end_progress();

bool is_journal();  // stderr is a stream to journald: systemd has started us, or what started us
extern bool is_quiet;  // -q
// May colours be written there? Only on a terminal, and never with NO_COLOR.
bool has_colors(int descriptor);

}  // namespace redlock::tool
