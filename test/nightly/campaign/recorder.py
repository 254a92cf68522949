# SPDX-License-Identifier: MIT
"""What a master executes, for proof_run.py: the lines of MONITOR, in the server's own order, with what its scripts do.

A file of lines `T TEXT`, T in ns of CLOCK_BOOTTIME. TEXT is a line of MONITOR, or one of these:

  started         a process is about to start
  ahead N         so many ns is the wall clock ahead of CLOCK_BOOTTIME
  gap             from the line before this one to the next snapshot the server may have executed anything

A snapshot is a script, so it stands among the lines, and says what the server has at that moment."""

import socket
import threading
import time

from plant import PATIENCE, Refused, boot_ns

SNAPSHOT = """
local process = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local record = redis.call('HMGET', 'redlock::meta', 'q', 'seal')
local said = {'snapshot', process, record[1] or '-', record[2] or '-'}
for _, key in ipairs(KEYS) do
  table.insert(said, key .. ' ' .. (redis.call('GET', key) or '-') .. ' ' .. redis.call('PTTL', key))
end
redis.call('ECHO', table.concat(said, ' '))
"""

# What changes nothing, and says nothing to proof_run.py.
SILENT = tuple(f'"{name}"' for name in ("CLIENT", "EXISTS", "GET", "HGET", "INFO", "PING", "SCRIPT", "TIME"))


def wall_ahead_ns():
    def look():
        before, wall = boot_ns(), time.time_ns()
        after = boot_ns()
        return after - before, wall - (before + after) // 2
    return min(look() for _ in range(5))[1]


class Recorder:
    def __init__(self, server, path, keys):
        self._server, self._keys = server, keys
        self._file = open(path, "a", buffering=1)
        self._mutex = threading.Lock()
        self.note("started")
        threading.Thread(target=self._run, daemon=True).start()

    def note(self, text):
        with self._mutex:
            self._file.write(f"{boot_ns()} {text}\n")

    def snapshot(self):
        self._server.ask("EVAL", SNAPSHOT, len(self._keys), *self._keys)

    def _run(self):
        while True:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(PATIENCE)
                try:
                    connection.connect(self._server.socket)
                    self._listen(connection)
                except (OSError, Refused):  # Refused: it is loading
                    pass
            time.sleep(0.01)

    def _listen(self, connection):
        connection.sendall(b"MONITOR\r\n")
        try:
            with connection.makefile("r", encoding="ascii", errors="replace") as stream:
                if stream.readline() == "+OK\n":
                    self.snapshot()
                    self._copy(stream)
        finally:
            self.note("gap")

    def _copy(self, stream):
        told = 0.0
        for line in stream:
            if time.monotonic() > told + 1:
                told = time.monotonic()
                self.note(f"ahead {wall_ahead_ns()}")
            if not line.partition("] ")[2].startswith(SILENT):
                self.note(line[1:].rstrip())
