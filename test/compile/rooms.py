#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""rooms.py SOURCE: a file includes only what the tables of rooms in src/README.md allow.

A room may include its own files, the rooms inside, the rooms that the last column of its row names, and the rooms that
these may include. A row may name a single file of a room, without its suffix. port/, which has no row, may include
client and base. Each folder of sources has a row, and each row a folder.
"""
import os
import re
import sys

ROW = re.compile(r"\| `([\w/]+)/` \|.*\| ([^|]*) \|$", re.MULTILINE)


def rooms(source):
    """{folder below src/, or port: the rooms that its row names}"""
    with open(os.path.join(source, "src/README.md"), encoding="utf-8") as file:
        found = {room: re.findall(r"`([\w/]+)`", last) for room, last in ROW.findall(file.read())}
    return found | {"port": ["client", "base"]}


def reach(allowed, room, seen):
    if room not in seen:
        seen.add(room)
        for other in allowed.get(room, ()):
            reach(allowed, other, seen)
    return seen


def room_of(path):
    """path: below src/, or in port/, whose folders are one room."""
    return "port" if path.startswith("port/") else os.path.dirname(path)


def may_include(allowed, path, target):
    here, there = room_of(path), room_of(target)
    may = reach(allowed, here, set())
    return there in may or os.path.splitext(target)[0] in may or there.startswith(here + "/")


def sources(source):
    for top, cut in (("src", "src"), ("port", "")):
        for folder, _, names in os.walk(os.path.join(source, top)):
            for name in sorted(names):
                if name.endswith((".cpp", ".hpp")):
                    path = os.path.join(folder, name)
                    yield path, os.path.relpath(path, os.path.join(source, cut))


def main():
    source = sys.argv[1]
    allowed = rooms(source)
    wrong, count, used = [], 0, set()
    for file, path in sources(source):
        used.add(room_of(path))
        if room_of(path) not in allowed:
            wrong.append(f"src/{path}: its folder has no row in src/README.md")
            continue
        with open(file, encoding="utf-8") as text:
            targets = re.findall(r'^#include "(.*)"', text.read(), re.MULTILINE)
        for target in targets:
            inside = [os.path.join(source, top, target) for top in ("src", "")]
            if not any(os.path.exists(p) for p in inside):
                continue  # what the build writes
            count += 1
            if not may_include(allowed, path, target):
                wrong.append(f"{os.path.relpath(file, source)} includes {target}")
    empty = [room for room in sorted(set(allowed) - used) if not os.path.isdir(os.path.join(source, "src", room))]
    wrong += [f"src/README.md: there is no folder {room}/" for room in empty]
    if wrong or not count:
        print(*wrong, f"{len(wrong)} break the tables of src/README.md, and {count} includes were read", sep="\n")
        return 1
    print(f"{count} includes of {len(used)} rooms")
    return 0


sys.exit(main())
