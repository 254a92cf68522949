#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""claims.py SOURCE: what the pages name exists.

  test/CLAIMS.md   each row of a table names at least one test, and each file and each option of redlock_sim that it
                   names exists; a file without a folder is in the folder of the file before it
  every page       each link to a file, and each `path` in the folders of this project, leads somewhere
  versions         CMakeLists.txt says which version this is; header, man pages and the newest version in CHANGELOG.md
                   say the same, and no symbol of the Debian package is newer
"""
import os
import re
import subprocess
import sys

FOLDERS = ("test/", "src/", "port/", "examples/", "include/", "toolchains/")
PATTERN = re.compile(r"[A-Z*<{|$\s]|\.\.\.")  # `test/KIND/NAME.cpp`, `src/client*`, a command: not the name of one file


def rows(text):
    for line in text.splitlines():
        if line.startswith("|") and not re.match(r"\|[-|\s]+\|$", line) and not line.startswith("| claim |"):
            yield line, line.strip("| ").split(" | ")[-1]


def claims(source):
    with open(os.path.join(source, "test/CLAIMS.md"), encoding="utf-8") as file:
        text = file.read()
    with open(os.path.join(source, "test/sim/main.cpp"), encoding="utf-8") as file:
        simulator = file.read()
    wrong, count = [], 0
    for row, shown_by in rows(text):
        count += 1
        names, folder = re.findall(r"`([^`]+)`", shown_by), ""
        if not names:
            wrong.append(f"test/CLAIMS.md: no test is named in: {row}")
        for name in names:
            program, *options = name.split()
            if program == "redlock_sim":
                wrong += [f"test/CLAIMS.md: redlock_sim knows no {o}" for o in options if f'"{o}"' not in simulator]
                continue
            if "/" in name:
                folder = os.path.dirname(name)
            path = os.path.join(folder, os.path.basename(name))
            if not os.path.isfile(os.path.join(source, path)):
                wrong.append(f"test/CLAIMS.md: there is no {path}")
    if count == 0:
        wrong.append("test/CLAIMS.md has no table of claims")
    return wrong, count


def pages(source):
    done = subprocess.run(["git", "-C", source, "ls-files", "*.md"], capture_output=True, text=True)
    if done.returncode == 0 and done.stdout:
        return done.stdout.split()
    return [os.path.relpath(os.path.join(folder, name), source) for folder, _, names in os.walk(source)
            for name in names if name.endswith(".md") and "/build" not in folder]


def links(source, page):
    with open(os.path.join(source, page), encoding="utf-8") as file:
        text = file.read()
    here = os.path.dirname(page)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target and not os.path.exists(os.path.join(source, here, target)):
            yield f"{page}: the link to {target} leads nowhere"
    for path in re.findall(r"`([^`\n]+)`", text):
        if path.startswith(FOLDERS) and not PATTERN.search(path):
            path = path.split(":")[0]
            # `src/lock/machine` stands for machine.hpp and machine.cpp
            if not any(os.path.exists(os.path.join(source, p + e)) for p in (path, os.path.join(here, path))
                       for e in ("", ".hpp", ".cpp", ".c")):
                yield f"{page}: there is no {path}"


def text_of(source, path):
    with open(os.path.join(source, path), encoding="utf-8") as file:
        return file.read()


def versions(source):
    version = re.search(r"^project\(redlock VERSION (\S+)", text_of(source, "CMakeLists.txt"), re.M)[1]
    header = text_of(source, "include/redlock/redlock.h")
    macros = ".".join(re.findall(r"#define REDLOCK_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))
    found = {
        "include/redlock/redlock.h": [macros, *re.findall(r'"(\d+\.\d+\.\d+)"', header)],
        "CHANGELOG.md": re.findall(r"^## (\d\S*)", text_of(source, "CHANGELOG.md"), re.M)[:1] or ["none"]}
    for page in ("redlock.1", "redlock.json.5"):
        page = "src/tool/man/" + page
        found[page] = re.findall(r'^\.TH .*"redlock (\S+)"', text_of(source, page), re.M) or ["none"]
    for path, numbers in found.items():
        yield from (f"{path}: version {number}, and CMakeLists.txt says {version}" for number in numbers
                    if number != version)
    number = [int(part) for part in version.split(".")]
    symbols = "toolchains/packaging/debian/libredlock0.symbols"
    if os.path.exists(os.path.join(source, symbols)):  # an archive of a release has no recipes
        for name, since in re.findall(r"^ (\S+) (\d\S+)$", text_of(source, symbols), re.M):
            if [int(part) for part in since.split(".")] > number:
                yield f"{symbols}: {name} is of {since}, and this is {version}"


def main():
    source = sys.argv[1]
    wrong, count = claims(source)
    wrong += versions(source)
    all_pages = pages(source)
    for page in all_pages:
        wrong += links(source, page)
    if wrong:
        print(*wrong, sep="\n")
        return 1
    print(f"{count} claims, {len(all_pages)} pages")
    return 0


sys.exit(main())
