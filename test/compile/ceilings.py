#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ceilings.py SOURCE [--write]: how much there is to read, and how much there may be.

  lines FOLDER   of code in a folder: without blank lines, comments, inputs of fuzzers and what a program has written
  words READER   of all pages for one kind of reader (READERS)
  percent tests  lines of all tests for each hundred of what ships

ceilings.txt holds the most of each. A change that raises a ceiling says why in the same commit. --write writes the
figures of today, rounded up: lines to a hundred, words to five hundred, percent to ten. A ceiling that is more than
twice that far above its figure is too high, and fails as well: it would let much grow unseen.
"""
import collections
import os
import re
import subprocess
import sys

FOLDER = re.compile(r"(test/nightly/\w+|test/[^/.]+|src/tool|\w+)/")  # test/ by kinds; the tool is a program of its own
READERS = {
    "users": re.compile(r"README\.md|SECURITY\.md|include/API\.md|examples/(.*/)?README\.md"),
    "manuals": re.compile(r"src/tool/man/.*"),
    "header": re.compile(r"include/redlock/.*\.(h|hpp)"),
    # The first reader whose pattern fits: API.md is for users.
    "maintainers": re.compile(r"CONTRIBUTING\.md|(src|port|test|include|toolchains)/(.*/)?[A-Z_a-z]+\.md"),
}
SHIPS = ("src", "src/tool", "port", "include")
ROUND = {"lines": 100, "words": 500, "percent": 10}
NO_CODE = re.compile(r"test/fuzz/corpus/|.*\.(abi|md|svg|acl|json|png)$|src/tool/man/")
BLOCK = re.compile(r"/\*.*?\*/", re.S)
COMMENT = {"c": r"\s*//", "lua": r"\s*--", "pml": r"\s*//"}  # other files: #


def text_of(source, path):
    with open(os.path.join(source, path), "rb") as file:
        return file.read().decode(errors="replace")


def lines_of(text, path):
    kind = path.rsplit(".", 1)[-1]
    kind = "c" if kind in ("c", "h", "cpp", "hpp") else kind
    if kind in ("c", "pml"):
        text = BLOCK.sub("", text)
    comment = re.compile(COMMENT.get(kind, r"\s*#"))
    return sum(1 for line in text.splitlines() if line.strip() and not comment.match(line))


def words_of(text, reader):
    if reader == "header":
        text = " ".join(BLOCK.findall(text) + re.findall(r"//(.*)", text))
    return len(re.findall(r"\w[\w'.-]*", text))


def measure(source):
    files = subprocess.run(["git", "-C", source, "ls-files"], capture_output=True, text=True, check=False)
    if files.returncode != 0 or not files.stdout:
        return None  # an unpacked archive
    figures = collections.Counter()
    for path in (path for path in files.stdout.splitlines() if os.path.isfile(os.path.join(source, path))):
        folder = FOLDER.match(path)
        reader = next((reader for reader, pages in READERS.items() if pages.fullmatch(path)), None)
        if folder is not None and not NO_CODE.match(path):
            figures["lines", folder[1]] += lines_of(text_of(source, path), path)
        if reader is not None:
            figures["words", reader] += words_of(text_of(source, path), reader)
    lines = {folder: most for (kind, folder), most in figures.items() if kind == "lines"}
    tests = sum(most for folder, most in lines.items() if folder.split("/")[0] == "test")
    figures["percent", "tests"] = 100 * tests // sum(lines[folder] for folder in SHIPS)
    return figures


def main():
    source = sys.argv[1]
    table = os.path.join(source, "test/compile/ceilings.txt")
    figures = measure(source)
    if figures is None:
        print("no clone: the files of the project are not known")
        return 77
    with open(table, encoding="utf-8") as file:
        rows = file.read().splitlines()
    head = [row for row in rows if row.startswith("#")]
    ceilings = {(kind, what): int(most) for kind, what, most in (row.split() for row in rows if row not in head)}
    if "--write" in sys.argv:
        up = {key: -(-figure // ROUND[key[0]]) * ROUND[key[0]] for key, figure in figures.items()}
        with open(table, "w", encoding="utf-8") as file:
            file.write("\n".join(head + [f"{kind} {what} {most}" for (kind, what), most in sorted(up.items())]) + "\n")
        return 0
    wrong = [f"{' '.join(key)}: {figures[key]} now, {ceilings.get(key, 0)} in ceilings.txt"
             for key in figures.keys() | ceilings.keys()
             if not 0 <= ceilings.get(key, 0) - figures[key] <= 2 * ROUND[key[0]]]
    print(*sorted(wrong), f"{len(figures)} figures", sep="\n")
    return 1 if wrong else 0


sys.exit(main())
