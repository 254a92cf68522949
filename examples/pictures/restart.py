#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""restart.py LIBRARY [MAX_TTL_MS]: draws a master that restarts under the guard, as an SVG on stdout.

LIBRARY is libredlock.so. A client of it takes and releases one lock again and again on three redis-servers. One of them
is killed, and comes back empty. The picture shows when the lock was held, which masters had its key then, and what the
client's status said of each master: the guard counts down, and no vote of this master counts until its time is over."""
import ctypes
import html
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

RESOURCE = b"plant1/rs485-a"
VICTIM = 1
LEFT, PLOT, ROW, RIGHT = 110, 670, 46, 24
COLORS = {"up": "#e2f1e7", "guarded": "#fdf0d5", "down": "#f6dcda"}
KEY, WATCH, LINE = "#2f9e63", "#e3a008", "#1f2328"
# On a dark page white becomes black, and each colour keeps its hue.
DARK = "<style>@media (prefers-color-scheme: dark) { svg { filter: invert(1) hue-rotate(180deg); } }</style>"


class Resource(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_uint32)]


class Server:
    def __init__(self, folder):
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", self.folder],
            stdout=subprocess.DEVNULL)
        while self.process.poll() is None and not self.says("PING").startswith("+PONG"):
            time.sleep(0.01)
        if self.process.poll() is not None:
            sys.exit("restart.py: no redis-server")

    def says(self, line):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(line.encode() + b"\r\n")
                return connection.recv(1000).decode()
        except OSError:
            return ""

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Gateway:
    """Takes turns with itself on a thread: an acquire, some work, a release."""

    def __init__(self, library, servers, max_ttl_ms):
        self.lib, self.servers = ctypes.CDLL(library), servers
        self.lib.redlock_config_error.restype = ctypes.c_char_p
        self.holds, self.samples, self.ended, self.failed = [], [], False, 0
        config, self.client = ctypes.c_void_p(), ctypes.c_void_p()
        text = json.dumps({"masters": [f"redis://127.0.0.1:{s.port}" for s in servers],
                           "defaults": {"ttl_ms": max_ttl_ms},
                           "timing": {"max_ttl_ms": max_ttl_ms, "reconnect_max_ms": 100}}).encode()
        self.lib.redlock_config_new(ctypes.byref(config))
        if (self.lib.redlock_config_load_json(config, text, ctypes.c_size_t(len(text)))
                or self.lib.redlock_create(ctypes.byref(self.client), config)
                or self.lib.redlock_commission(self.client)):  # a new site
            sys.exit(f"restart.py: {self.lib.redlock_config_error(config).decode()}")
        self.thread = threading.Thread(target=self.work)

    def status(self):
        text, size = ctypes.create_string_buffer(8192), ctypes.c_size_t(8192)
        self.lib.redlock_status_json(self.client, text, ctypes.byref(size))
        return [(m["state"], m["guard_ms"]) for m in json.loads(text.value)["masters"]]

    def work(self):
        lock = ctypes.c_uint64()
        while not self.ended:
            err = self.lib.redlock_acquire(self.client, ctypes.byref(Resource(RESOURCE, len(RESOURCE))), 1, None,
                                           ctypes.byref(lock))
            if err:
                self.failed = err
                return
            begin = time.monotonic()
            time.sleep(0.05)  # the slowest of the SETs is over
            keys = [s.says("EXISTS " + RESOURCE.decode()).startswith(":1") for s in self.servers]
            time.sleep(0.15)
            self.holds.append((begin, time.monotonic(), keys))
            self.lib.redlock_release(self.client, lock)
            time.sleep(0.1)

    def watch(self, done):
        """Looks at the status until done(), which is asked with each master's state."""
        end = time.monotonic() + 60
        while True:
            masters = self.status()
            self.samples.append((time.monotonic(), masters))
            if done(masters):
                return
            if time.monotonic() > end:
                sys.exit("restart.py: the masters do not become what they should")
            time.sleep(0.02)

    def watch_for(self, seconds):
        end = time.monotonic() + seconds
        self.watch(lambda masters: time.monotonic() >= end)


def record(library, max_ttl_ms, folder):
    servers = []
    try:
        for _ in range(3):
            servers.append(Server(folder))
        gateway = Gateway(library, servers, max_ttl_ms)
        while {state for state, _ in gateway.status()} != {"up"}:
            time.sleep(0.01)
        gateway.thread.start()
        gateway.watch_for(1)
        killed = time.monotonic()
        servers[VICTIM].kill()
        gateway.watch_for(0.8)
        back = time.monotonic()
        servers[VICTIM].start()
        gateway.watch(lambda masters: masters[VICTIM][0] == "up")
        voting = time.monotonic()
        gateway.watch_for(1)
        gateway.ended = True
        gateway.thread.join()
        if gateway.failed:
            sys.exit(f"restart.py: no lock: {gateway.failed}")
        gateway.lib.redlock_destroy(gateway.client, 1000)
        return gateway, {"killed": killed, "back, empty": back, "votes again": voting}
    finally:
        for server in servers:
            server.kill()


def draw(gateway, instants):
    begin, end = gateway.samples[0][0], gateway.samples[-1][0]
    out = []

    def x(instant):
        return LEFT + (min(max(instant, begin), end) - begin) / (end - begin) * PLOT

    def text(at, y, words, anchor="start", more=""):
        out.append(f'<text x="{at:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{html.escape(words)}</text>')

    def box(at, y, width, height, color):
        out.append(f'<rect x="{at:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}" fill="{color}"/>')

    def bars(y, height, color, of, gone=None):
        for since, until, keys in gateway.holds:
            if of(keys):
                box(x(since), y, x(gone if gone and since < gone < until else until) - x(since), height, color)

    text(12, 22, "A master restarts, and the guard keeps it from voting until every lock it may have forgotten is over",
         more='font-weight="bold"')
    top = 62
    text(LEFT - 10, top + 20, "lock held", "end")
    bars(top + 6, 20, "#3b6fb6", lambda keys: True)
    most = max((g or 0) for _, masters in gateway.samples for _, g in masters) or 1
    for master in range(3):
        y = top + 40 + ROW * master
        text(LEFT - 10, y + 25, f"master {master + 1}", "end")
        points = []
        looks = [(instant, *masters[master]) for instant, masters in gateway.samples]
        for state, same in itertools.groupby(looks, lambda look: look[1]):
            same = list(same)
            after = next((instant for instant, *_ in looks if instant > same[-1][0]), end)
            box(x(same[0][0]), y, x(after) - x(same[0][0]), ROW - 6, COLORS.get(state, COLORS["down"]))
            points += [(x(instant), y + (ROW - 6) * (1 - guard_ms / most)) for instant, _, guard_ms in same[::5]
                       if state == "guarded" and guard_ms]
        if points:
            floor = y + ROW - 6
            shape = [(points[0][0], floor), *points, (points[-1][0], floor)]
            out.append('<polygon points="' + " ".join(f"{a:.1f},{b:.1f}" for a, b in shape) + f'" fill="{WATCH}"/>')
            text(points[0][0] + 6, floor - 5, f"guard: {most / 1000:.1f} s to go", more='font-size="11"')
        bars(y + 10, 20, KEY, lambda keys: keys[master], instants["killed"] if master == VICTIM else None)
    bottom = top + 40 + ROW * 3
    for number, (what, instant) in enumerate(instants.items()):
        box(x(instant) - 0.5, top - 8, 1, bottom - top + 2, LINE)
        text(x(instant), top - 12, what, "end" if number == 0 else "start" if number == 1 else "middle")
    for second in range(int(end - begin) + 1):
        text(x(begin + second), bottom + 12, f"{second} s", "middle", 'font-size="11"')
    at = LEFT
    for color, words in ((KEY, "has the lock's key: its vote counts"), (COLORS["up"], "votes"),
                         (COLORS["down"], "down"), (WATCH, "watched: time to go")):
        box(at, bottom + 26, 14, 12, color)
        text(at + 20, bottom + 36, words, more='font-size="11"')
        at += 40 + 6.2 * len(words)
    width, height = LEFT + PLOT + RIGHT, bottom + 50
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"',
          f'font-family="sans-serif" font-size="13" fill="{LINE}">')
    print(DARK, f'<rect width="{width}" height="{height}" fill="#ffffff"/>', *out, "</svg>", sep="\n")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        draw(*record(os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) == 3 else 3000, folder))


if __name__ == "__main__":
    main()
