#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""acquire.py PROGRAM...: draws one acquire on five masters as it went over the wire, as an SVG on stdout.

PROGRAM is examples/firmware, behind an emulator where it needs one. It talks to five redis-servers through
relays, which delay each direction, and write down when each command passed, and when its answer did. The relay of the
last master swallows everything from the second job on. The picture shows the second job: its acquire and its release.
"""
import asyncio
import html
import json
import os
import subprocess
import sys
import tempfile
import time

DELAYS_MS = [2, 4, 7, 10, 3]  # one way
RESOURCE = "plant1/rs485-a"
LEFT, PLOT, ROW, RIGHT = 150, 620, 40, 140
# On a dark page white becomes black, and each colour keeps its hue.
DARK = "<style>@media (prefers-color-scheme: dark) { svg { filter: invert(1) hue-rotate(180deg); } }</style>"

requests = []  # of all masters: dicts with master, words, sent, answered, answer


def read_item(data, at):
    """The RESP item at this place as (item, place behind it); IndexError while it is incomplete."""
    end = data.index(b"\r\n", at) if b"\r\n" in data[at:] else None
    if end is None:
        raise IndexError
    kind, head = data[at:at + 1], data[at + 1:end].decode()
    at = end + 2
    if kind == b"$" and head != "-1":
        if len(data) < at + int(head) + 2:
            raise IndexError
        return data[at:at + int(head)].decode(errors="replace"), at + int(head) + 2
    if kind in b"*%>~":
        items = []
        for _ in range(int(head) * (2 if kind == b"%" else 1)):
            item, at = read_item(data, at)
            items.append(item)
        return (("push", items) if kind == b">" else items), at
    return {b"+": head, b"-": "-" + head, b":": head}.get(kind, "nil"), at


async def relay(reader, writer, master, on_item):
    """Tells of each item, and passes it on after the master's delay, in order, if on_item says so."""
    data = b""
    loop = asyncio.get_running_loop()
    while chunk := await reader.read(65536):
        now, at = time.monotonic(), 0
        data += chunk
        try:
            while at < len(data):
                item, end = read_item(data, at)
                if on_item(item, now):
                    loop.call_later(DELAYS_MS[master] / 1000, writer.write, data[at:end])
                at = end
        except IndexError:
            pass
        data = data[at:]
    writer.close()


async def on_client(master, socket, reader, writer):
    server_reader, server_writer = await asyncio.open_unix_connection(socket)
    waiting = []
    dead = False

    def command(words, now):
        nonlocal dead
        dead = dead or (master == len(DELAYS_MS) - 1 and is_of_second_job(words))
        request = {"master": master, "words": words, "sent": now, "answered": None, "answer": None}
        waiting.append(request)
        requests.append(request)
        return not dead

    def answer(item, now):
        if not isinstance(item, tuple) and waiting:
            waiting.pop(0).update(answered=now + DELAYS_MS[master] / 1000, answer=item)
        return True

    await asyncio.gather(relay(reader, server_writer, master, command),
                         relay(server_reader, writer, master, answer), return_exceptions=True)


async def record(program, folder):
    """Two jobs, and what went over the wire."""
    servers, urls = [], []
    try:
        for master in range(len(DELAYS_MS)):
            socket = f"{folder}/{master}.sock"
            servers.append(subprocess.Popen(
                ["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder],
                stdout=subprocess.DEVNULL))
            while not os.path.exists(socket):
                await asyncio.sleep(0.01)
            server = await asyncio.start_server(
                lambda r, w, m=master, s=socket: on_client(m, s, r, w), "127.0.0.1", 0)
            urls.append(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        with open(f"{folder}/site.json", "w") as file:  # new masters are watched for about max_ttl_ms
            timing = {"max_ttl_ms": 5000, "node_timeout_ms": 1000}  # this machine may be slow
            json.dump({"masters": urls, "defaults": {"ttl_ms": 5000}, "timing": timing}, file)
        service = await asyncio.create_subprocess_exec(*program, "--jobs", "2", "/dev/zero",
                                                       f"{folder}/site.json", stdout=sys.stderr)
        if await service.wait() != 0:
            sys.exit("acquire.py: the service failed")
    finally:
        for server in servers:
            server.kill()
            server.wait()


def is_acquire(request):
    return request["words"][0] == "SET" and RESOURCE in request["words"]


def is_release(request):
    return request["words"][0].startswith("EVAL") and RESOURCE in request["words"]


def is_of_second_job(words):
    """An acquire with another value than that of the first release."""
    released = [r["words"] for r in requests if is_release(r)]
    return bool(released) and is_acquire({"words": words}) and words[words.index(RESOURCE) + 1] not in released[0]


def short(words):
    if is_acquire({"words": words}):
        return f"SET {RESOURCE} (value) " + " ".join(words[3:])
    return f"{words[0]} (delete if it is mine) {RESOURCE}"


def panel(out, title, rows, top):
    begin = min(r["sent"] for r in rows)
    won = sorted(r["answered"] for r in rows if r["answered"])[len(DELAYS_MS) // 2]
    span = max(r["answered"] or 0 for r in rows) - begin + 0.002

    def x(instant):
        return LEFT + (instant - begin) / span * PLOT

    def text(at, y, words, anchor="start", more=""):
        out.append(f'<text x="{at:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>\n{html.escape(words)}</text>')

    def box(at, y, width, height, color):
        out.append(f'<rect x="{at:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{color}"/>')

    text(12, top + 16, title, more='font-weight="bold"')
    top += 44
    for row in rows:
        y = top + ROW * row["master"]
        late = row["answered"] is None
        text(LEFT - 10, y + 24, f"master {row['master'] + 1} ({2 * DELAYS_MS[row['master']]:g} ms)", "end")
        box(LEFT, y + 2, PLOT, ROW - 4, "#f0f2f4")
        box(x(row["sent"]), y + 16, (LEFT + PLOT if late else x(row["answered"])) - x(row["sent"]), 14,
            "#c9ced4" if late else "#2f9e63")
        text(x(row["sent"]) + 2, y + 13, short(row["words"]), more='font-size="10"')
        text(LEFT + PLOT + 10, y + 24,
             "no answer" if late else f"{row['answer']} after {1000 * (row['answered'] - row['sent']):.1f} ms")
    bottom = top + ROW * len(rows)
    if title.startswith("Acquire"):
        box(x(won) - 0.5, top - 6, 1.5, bottom - top + 6, "#1f2328")
        text(x(won), top - 10, f"three of five: ACQUIRED after {1000 * (won - begin):.1f} ms", "middle")
    text(LEFT, bottom + 14, "0")
    text(LEFT + PLOT, bottom + 14, f"{1000 * span:.1f} ms", "end")
    return bottom + 26


def draw():
    values = []
    for request in filter(is_acquire, requests):
        value = request["words"][request["words"].index(RESOURCE) + 1]
        if value not in values:
            values.append(value)
    won = [v for v in values if any(is_release(r) and v in r["words"] for r in requests)]
    mine = [r for r in requests if won[1] in r["words"]]
    rows = {name: sorted({r["master"]: r for r in reversed(mine) if test(r)}.values(), key=lambda r: r["master"])
            for name, test in (("acquire", is_acquire), ("release", is_release))}
    out = []
    bottom = panel(out, "Acquire: one SET to each master at one instant. A link's round trip is given with its master",
                   rows["acquire"], 6)
    bottom = panel(out, "Release: a compare-and-delete to every master that was sent the SET", rows["release"], bottom)
    width = LEFT + PLOT + RIGHT
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom}"',
          'font-family="sans-serif" font-size="13" fill="#1f2328">')
    print(DARK, f'<rect width="{width}" height="{bottom}" fill="#ffffff"/>', *out, "</svg>", sep="\n")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(record(sys.argv[1:], folder))
    draw()
