#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""claims.py SOURCE: what the pages name exists.

  test/CLAIMS.md   each row of a table names at least one test, and each file and each option of redlock_sim that it
                   names exists, in test/ or in the root; a file without a folder is in the folder of the file before it
  every page       each link to a file, and each `path` in the folders of this project, leads somewhere
  versions         CMakeLists.txt says which version this is; header, man pages and the newest version in CHANGELOG.md
                   that is released say the same, and no symbol of the Debian package is newer
  blocks.txt       names each fenced block of the pages for users, with the tests that run it, or why none does
  DESIGN.md        the example in section 4 came out of the scenarios that the page names: the lines of each block stand
                   in one of them, in this order
  examples/site    break.sh plays each act that the guide has, and the library or the tool prints each message that the
                   guide explains
  test/README.md   names the tests that may find the machine too busy to judge a margin: all of them, and no other
  words            of a theorem (WORDS) are said of what the solvers show (test/nightly/proof), and of nothing else
"""
import os
import re
import subprocess
import sys

FOLDERS = ("test/", "src/", "port/", "examples/", "include/", "toolchains/")
BLOCK_PAGES = ("README.md", "examples/README.md", "examples/site/README.md", "toolchains/README.md", "CONTRIBUTING.md",
               "test/README.md", "SECURITY.md")
WORDS = re.compile(r"\b(pro(?:ved|ves|ven)|veri(?:fied))\b", re.I)
PATTERN = re.compile(r"[A-Z*<{|$\s]|\.\.\.")  # `test/KIND/NAME.cpp`, `src/client*`, a command: not the name of one file


def read(source, path):
    with open(os.path.join(source, path), encoding="utf-8") as file:
        return file.read()


def rows(text):
    for line in text.splitlines():
        if line.startswith("|") and not re.match(r"\|[-|\s]+\|$", line) and not line.startswith("| claim |"):
            yield line, line.strip("| ").split(" | ")[-1]


def claims(source):
    text, simulator = read(source, "test/CLAIMS.md"), read(source, "test/sim/main.cpp")
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
            if not any(os.path.isfile(os.path.join(source, top, path)) for top in ("test", "")):
                wrong.append(f"test/CLAIMS.md: there is no {path}")
    if count == 0:
        wrong.append("test/CLAIMS.md has no table of claims")
    return wrong, count


def files(source, end=""):
    done = subprocess.run(["git", "-C", source, "ls-files", "*" + end], capture_output=True, text=True)
    if done.returncode == 0 and done.stdout:
        return done.stdout.split()
    return [os.path.relpath(os.path.join(folder, name), source) for folder, _, names in os.walk(source)
            for name in names if name.endswith(end) and "/build" not in folder]


def links(source, page):
    text = read(source, page)
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


def versions(source):
    version = re.search(r"^project\(redlock VERSION (\S+)", read(source, "CMakeLists.txt"), re.M)[1]
    header = read(source, "include/redlock/redlock.h")
    macros = ".".join(re.findall(r"#define REDLOCK_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))
    found = {
        "include/redlock/redlock.h": [macros, *re.findall(r'"(\d+\.\d+\.\d+)"', header)],
        "CHANGELOG.md": re.findall(r"^## (\d\S*)(?! \(not released\))(?= |$)", read(source, "CHANGELOG.md"), re.M)[:1]}
    module = "src/python/pyproject.toml"
    found[module] = re.findall(r'^version = "(.*)"', read(source, module), re.M)
    for page in ("redlock.1", "redlock-service.1", "redlock.json.5"):
        page = "src/tool/man/" + page
        found[page] = re.findall(r'^\.TH .*"redlock (\S+)"', read(source, page), re.M) or ["none"]
    for path, numbers in found.items():
        yield from (f"{path}: version {number}, and CMakeLists.txt says {version}" for number in numbers
                    if number != version)
    number = [int(part) for part in version.split(".")]
    symbols = "toolchains/packaging/debian/libredlock0.symbols"
    if os.path.exists(os.path.join(source, symbols)):  # an archive of a release has no recipes
        for name, since in re.findall(r"^ (\S+) (\d\S+)$", read(source, symbols), re.M):
            if [int(part) for part in since.split(".")] > number:
                yield f"{symbols}: {name} is of {since}, and this is {version}"


def is_test(source, name):
    """A test of ctest: a source file, a check of check.sh, or a name in a CMakeLists.txt."""
    kind, _, rest = name.partition("_")
    return (any(os.path.isfile(os.path.join(source, f"test/{kind}/test_{rest}{end}")) for end in (".cpp", ".py"))
            or kind == "compile" and f"check_{rest}()" in read(source, "test/compile/check.sh")
            or any(re.search(rf"NAME {name}\b", read(source, f"test/{folder}CMakeLists.txt"))
                   for folder in ("", "nightly/")))


def blocks(source):
    listed = re.findall(r"^([\w./-]+\.md): (.*)\n  (.+)$", read(source, "test/compile/blocks.txt"), re.MULTILINE)
    for page, first, how in listed:
        tests, _, _ = how.partition(":")
        if tests not in ("not run", "no command"):
            yield from (f"blocks.txt, {page}: {first}: there is no test {t}" for t in tests.split()
                        if not is_test(source, t))
    unused = {(page, first) for page, first, _ in listed}
    for page in BLOCK_PAGES:
        for text in re.findall(r"^```.*\n((?:.*\n)*?)```$", read(source, page), re.MULTILINE):
            line = text.strip().splitlines()[0]
            here = {(p, first) for p, first, _ in listed if p == page and line.startswith(first)}
            if not here:
                yield f"{page}: which test runs the block `{line}`? blocks.txt does not say"
            unused -= here
    yield from (f"blocks.txt: {page} has no block `{first}`" for page, first in sorted(unused))


def guide(source):
    text, script = read(source, "examples/site/README.md"), read(source, "examples/site/break.sh")
    for act in re.findall(r"^<!-- act: (.*) -->$", text, re.MULTILINE):
        if not re.search(rf"^ +types_guide \S+ '?{act}'?$", script, re.MULTILINE):
            yield f"examples/site/README.md: break.sh does not play the act {act}"
    printed = printed_by(source)
    table = text[text.index("## Troubleshooting"):text.index("## Set up")]
    for message in re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE):
        # Numbers and names are filled in; what is left between them is text.
        for part in re.split(r"\.\.\.|\S*\d\S*", message):
            if part.strip(" :") and part.strip(" :") not in printed:
                yield f"examples/site/README.md: neither the library nor the tool prints `{part.strip()}` ({message})"


def printed_by(source):
    return " ".join(read(folder, name) for root in ("src", "include") for folder, _, names in
                    os.walk(os.path.join(source, root)) for name in names if name.endswith((".cpp", ".h", ".hpp")))


# What a script compares the output of redlock with, and what only looks like it.
READS = re.compile(r"""^\s*(?:says|await \S+ .*redlock.*) ['"](.*)['"]$"""
                   r"""|redlock [^|\n]*\| *grep (?:-\w+ )*(.*)$""", re.MULTILINE)
OTHERS = re.compile(r"aof_last_write_status|the bus is ours|\^ 11 03|\^500|\$(watched|everywhere)|--\[a-z-\]")


def sentences(source):
    listed = [line.rsplit(": ", 1) for line in read(source, "test/compile/sentences.txt").splitlines()
              if not line.startswith("#")]
    printed = printed_by(source)
    for sentence, script in listed:
        if sentence not in printed:
            yield f"sentences.txt: neither the library nor the tool prints `{sentence}`, which {script} reads"
        if sentence.strip('"') not in read(source, script):
            yield f"sentences.txt: {script} does not read `{sentence}`"
    scripts = [p for p in files(source, ".sh") if p.startswith(("examples/", "test/compile/check"))]
    for script in scripts + [p for p in files(source) if p.startswith(("src/tool/service/", "src/tool/completion/"))]:
        known = [sentence.strip('"') for sentence, of in listed if of == script]
        for match in READS.finditer(read(source, script)):
            pattern = next(filter(None, match.groups()))
            if not OTHERS.search(pattern) and not any(sentence in pattern for sentence in known):
                yield f"{script}: reads `{pattern}`, which is in no line of sentences.txt"


def example(source):
    page = read(source, "src/DESIGN.md")
    life = page[page.index("\n## 4."):page.index("\n## 5.")]
    stories = [read(source, path).splitlines() for path in re.findall(r"`(test/scenario/\w+\.txt)`", life)]
    wrong, count = [], 0
    for block in re.findall(r"```\n(.*?)```", life, re.S):
        told = [line for line in block.splitlines() if re.match(r"[\d.]+ +a[: ]", line)]
        count += len(told)
        if not any(all(line in rest for line in told) for rest in map(iter, stories)):
            wrong.append("src/DESIGN.md: no scenario that section 4 names has these lines: " + "; ".join(told))
    return wrong if count else ["src/DESIGN.md: section 4 has no example"]


def too_busy(source):
    page = read(source, "test/README.md")
    told = set(re.findall(r"`(integration_\w+)`", re.search(r"\"machine\s+too\s+busy\"([^.]*)\.", page)[1]))
    asking = {f"{kind}_{name}" for kind, name in
              (re.fullmatch(r"test/(\w+)/test_(\w+)\.cpp", path).groups() for path in files(source, ".cpp")
               if re.search(r'#include "support/pauses.hpp"', read(source, path)))}
    return [f"test/README.md: does {name} judge on a busy machine? Page and source differ" for name in told ^ asking]


def words(source):
    """On a page the line with such a word names the proof, or the word is a title."""
    for path in files(source):
        if path.startswith(("test/nightly/proof/", "test/sim/proof_run")):
            continue
        with open(os.path.join(source, path), encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                word = WORDS.search(line)
                said_of_it = path.endswith(".md") and ("proof/" in line or word and word[0][0] == "P")
                if word and not said_of_it:
                    yield f"{path}:{number}: `{word[0]}` is said only of what test/nightly/proof shows"


def main():
    source = sys.argv[1]
    wrong, count = claims(source)
    wrong += versions(source)
    wrong += blocks(source)
    wrong += guide(source)
    wrong += sentences(source)
    wrong += example(source)
    wrong += too_busy(source)
    wrong += words(source)
    all_pages = files(source, ".md")
    for page in all_pages:
        wrong += links(source, page)
    if wrong:
        print(*wrong, sep="\n")
        return 1
    print(f"{count} claims, {len(all_pages)} pages")
    return 0


sys.exit(main())
