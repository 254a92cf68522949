#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""man3.py SOURCE FOLDER COMPILER FLAGS: the man pages of redlock.h that toolchains/man3.py writes to FOLDER.

Each call that the header declares has a file, which is a page or leads to one. The page names the call, declares it as
the header does, and its RETURN VALUE has each code of the header's "Returns". groff has nothing to say of a page. What
EXAMPLE is cut from, and no other test compiles, compiles. All pages together have a ceiling of words, as ceilings.py
counts them; each page has its EXAMPLE and its SYNOPSIS besides what the header says.
"""
import pathlib
import re
import shutil
import subprocess
import sys

source, folder, compiler = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
subprocess.run([sys.executable, "-B", str(source / "toolchains/man3.py"), str(folder)], check=True)
header = (source / "include/redlock/redlock.h").read_text()
codes = set(re.findall(r"\bREDLOCK_E_(\w+) = -", header)) - {"LAST_"}
sections = ["NAME", "LIBRARY", "SYNOPSIS", "DESCRIPTION", "RETURN VALUE", "WHERE IT MAY BE CALLED", "EXAMPLE",
            "SEE ALSO"]
words_max = 7500
wrong, checked, pages = [], 0, set()


def told(call, comment):
    """What is wrong with the page of a call."""
    text = (folder / f"{call}.3").read_text()
    link = re.fullmatch(r"\.so man3/(\w+)\.3\n", text)
    if link:
        text = (folder / f"{link[1]}.3").read_text()
    pages.add(link[1] if link else call)
    parts = dict(re.findall(r"^\.SH ([A-Z ]+)\n(.*?)(?=^\.SH|\Z)", text, re.M | re.S))
    yield from (f"no {section}" for section in sections if section not in parts)
    if not re.search(rf"\b{call}\b", parts["NAME"]):
        yield "NAME does not have it"
    if not re.search(rf"\b{call}\(", parts["SYNOPSIS"]):
        yield "SYNOPSIS does not declare it"
    returns = re.findall(r"^\.SS (.*)\n((?:(?!\.SS).*\n)*)", parts["RETURN VALUE"], re.M)
    of_call = next((part for heading, part in returns if call in re.findall(r"redlock_\w+", heading)), "")
    returned = set(re.findall(r"\b[A-Z_]{4,}\b", comment.partition("Returns ")[2])) & codes
    missing = [code for code in sorted(returned) if not re.search(rf"REDLOCK_E_{code}\b", of_call)]
    yield from (f"RETURN VALUE has no {code}" for code in missing)


comment = ""
for block in re.finditer(r"^/\*(.*?)\*/|^(?:REDLOCK_API|static inline) [^;{]*?\b(redlock_\w+)\(", header, re.M | re.S):
    if block[2] is None:
        comment = block[1]
    elif block[2] != "redlock_resource":  # its page is the struct's comment
        checked += 1
        if (folder / f"{block[2]}.3").is_file():
            wrong += [f"{block[2]}(3): {what}" for what in told(block[2], comment)]
        else:
            wrong.append(f"{block[2]}(3): there is none")
if shutil.which("groff"):
    for page in sorted(pages):
        said = subprocess.run(["groff", "-man", "-ww", "-z", str(folder / f"{page}.3")], capture_output=True, text=True)
        wrong += said.stderr.splitlines()
subprocess.run([compiler, "-std=c99", "-Wall", "-Wextra", *sys.argv[4].split(), "-Wno-unused-function", "-fsyntax-only",
                "-I" + str(source / "include"), str(source / "toolchains/man3.c")], check=True)
words = sum(len(re.findall(r"\w[\w'.-]*", (folder / f"{page}.3").read_text())) for page in pages)
if words > words_max:
    wrong.append(f"{words} words, and {words_max} are the most")
print(*wrong, f"{checked} calls on {len(pages)} pages, {words} words", sep="\n")
sys.exit(1 if wrong or checked < 45 else 0)
