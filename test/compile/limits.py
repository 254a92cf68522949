#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""limits.py SOURCE: how long a line, a file and a function may be.

  columns    of a line: 120, in every text file of the tree
  lines      of a file of src/ and port/: 400
  function   of src/ and port/: 70 lines
  README.md  200 lines, and 30 words in a sentence, an item of a list, or a cell of a table

Exit 77: universal-ctags is not here.
"""
import os
import re
import shutil
import subprocess
import sys

COLUMNS, LINES, FUNCTION, README, WORDS = 120, 400, 70, 200, 30
ROOMS = ("src/", "port/")
CODE = (".c", ".h", ".cpp", ".hpp", ".lua")
# Inputs of fuzzers, lists and pictures that a program writes, and what may not be broken by its format.
NO_TEXT = re.compile(r"test/fuzz/corpus/|.*\.(abi|acl|svg)$|build[^/]*/|\.git/")


def may_be_long(path, line):
    if re.search(r"https?://\S", line):
        return True
    if path.endswith(".md"):
        return line.lstrip().startswith("|")  # a row of a table
    if path.endswith(".json"):
        return re.fullmatch(r'\s*"[^"]*": "[^"]*",?', line) is not None  # one string
    return False


def tracked_files(source):
    done = subprocess.run(["git", "-C", source, "ls-files", "-z"], capture_output=True, text=True)
    if done.returncode == 0 and done.stdout:
        files = done.stdout.split("\0")
    else:  # an unpacked archive
        files = [os.path.relpath(os.path.join(folder, name), source)
                 for folder, _, names in os.walk(source) for name in names]
    return [f for f in sorted(files) if f and not NO_TEXT.match(f) and os.path.isfile(os.path.join(source, f))]


def text_of(path):
    with open(path, "rb") as file:
        content = file.read()
    try:
        return None if b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None


def long_functions(source, files):
    """(file, name, lines, first line) of each function that is too long, and how many functions there are."""
    done = subprocess.run(
        ["ctags", "-L", "-", "--languages=C,C++", "--map-C++=+.h", "--kinds-C++=f", "--kinds-C=f", "--fields=+ne",
         "-f", "-"], input="\n".join(files), capture_output=True, text=True, cwd=source)
    found = []
    for tag in done.stdout.splitlines():
        name, path, *rest = tag.split("\t")
        fields = dict(f.split(":", 1) for f in rest if ":" in f and f.split(":", 1)[0] in ("line", "end"))
        if "end" in fields:
            found.append((path, name, int(fields["end"]) - int(fields["line"]) + 1, int(fields["line"])))
    return [f for f in found if f[2] > FUNCTION], len(found)


def measure(source):
    """All that is beyond a limit, how many functions there are, and one line about all that was looked at."""
    beyond, lines_read = [], 0
    files = tracked_files(source)
    code = [f for f in files if f.startswith(ROOMS) and f.endswith(CODE)]
    for path in files:
        text = text_of(os.path.join(source, path))
        if text is None:
            continue
        lines = text.splitlines()
        lines_read += len(lines)
        beyond += [f"{path}:{n}: {len(line)} columns" for n, line in enumerate(lines, 1)
                   if len(line) > COLUMNS and not may_be_long(path, line)]
        if path in code and len(lines) > LINES:
            beyond.append(f"{path}: {len(lines)} lines")
    functions, count = long_functions(source, code)
    beyond += [f"{path}:{line}: {name}() has {length} lines" for path, name, length, line in functions]
    return beyond, count, f"{len(files)} files, {lines_read} lines, {count} functions of {len(code)} files"


def sentences(text):
    """Of a page, without its code: what stands between two full stops."""
    text = re.sub(r"```.*?```|<!--.*?-->|^#.*?$", "\n", text, flags=re.S | re.M)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"^\|.*$", lambda row: row[0].replace("|", "\n\n"), text, flags=re.M)
    for block in re.split(r"\n\s*\n|\n *(?:-|\d+\.) ", text):
        yield from re.split(r"(?<=[.!?])\W*\s", " ".join(block.split()))


def readme(source):
    with open(os.path.join(source, "README.md"), encoding="utf-8") as file:
        text = file.read()
    if text.count("\n") > README:
        yield f"README.md: {text.count(chr(10))} lines, and {README} are the most"
    for sentence in sentences(text):
        if len(sentence.split()) > WORDS:
            yield f"README.md: {len(sentence.split())} words, and {WORDS} are the most: {sentence}"


def main():
    source = sys.argv[1]
    if shutil.which("ctags") is None:
        print("ctags is not here (universal-ctags)")
        return 77
    complaints, functions, summary = measure(source)
    if functions == 0:
        print("no functions found: is ctags Universal Ctags?")
        return 1
    complaints += readme(source)
    if complaints:
        print(*complaints, f"A line has at most {COLUMNS} columns, a file of src/ and port/ {LINES} lines, a function "
              f"{FUNCTION}, README.md {README} and a sentence there {WORDS} words.", sep="\n")
        return 1
    print(f"{summary}; none is too long")
    return 0


sys.exit(main())
