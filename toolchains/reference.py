#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""reference.py FOLDER: the API reference of the public headers as FOLDER/html/index.html, by Doxygen.

The headers have plain comments in plain layout. Copies of them are given to Doxygen, in which
  - a comment above a declaration, or behind a field or an enumerator, belongs to it, with its layout kept;
  - the first comment of a header, and each comment above an empty line, are about the whole header;
  - declarations without a blank line between them share one comment;
  - a comment behind an enumerator that begins with /**< stays as it is.
Each row of the index of redlock.h, "I want to ...", is a page: the calls that the row names, with all that the headers
say of them, and the examples that call them. Exits 1 if Doxygen warns, or if a call has no comment.
"""
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
HEADERS = ["any_of.hpp", "limits.h", "redlock.h", "redlock.hpp", "site.h"]
SETTINGS = """
PROJECT_NAME = redlock
INPUT = {folder}/input
RECURSIVE = YES
OUTPUT_DIRECTORY = {folder}
STRIP_FROM_PATH = {folder}/input
GENERATE_LATEX = NO
HAVE_DOT = NO
QUIET = YES
MARKDOWN_SUPPORT = NO
SORT_MEMBER_DOCS = NO
EXTRACT_ALL = YES
TYPEDEF_HIDES_STRUCT = YES
OPTIMIZE_OUTPUT_FOR_C = YES
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
PREDEFINED = REDLOCK_API= REDLOCK_NODISCARD= __cplusplus=201103L
WARN_NO_PARAMDOC = NO
WARN_AS_ERROR = FAIL_ON_WARNINGS
"""


def escaped(text):
    text = re.sub(r"[\\@#%]", r"\\\g<0>", text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
    text = re.sub(r"^(\s*)[-+*](?= )", r"\1&ndash;", text)  # no list of Doxygen's inside the layout
    return text.replace('"', "&quot;").replace("*/", "* /")


def documentation(lines, behind=False):
    """The first sentence as what Doxygen's lists show, then the whole text in its own layout."""
    text = " ".join(line.strip() for line in lines).strip()
    sentence = re.match(r".*?[.?](?=\s|$)|.*", text)[0]
    mark = "/**<" if behind else "/**"
    if sentence == text:
        return f"{mark} {escaped(text)} */"
    return f"{mark} @brief {escaped(sentence)}\n\n<pre>\n" + "\n".join(map(escaped, lines)) + "\n</pre> */"


def comment_lines(text):
    """The lines of a comment without its signs."""
    lines = text.split("\n")
    rest = [re.sub(r"^\s*(\*|//)? ?", "", line, count=1) for line in lines[1:]]
    return [line.rstrip() for line in [lines[0].strip(), *rest]]


def converted(name, text):
    # The comment of lines that begin with // is written as a block.
    text = re.sub(r"(?m)^( *)//(.*(?:\n\1//.*)*)", lambda m: f"{m[1]}/*{m[2]} */", text)
    done, at, first = [], 0, True
    for comment in re.finditer(r"/\*(?!\*)(.*?)\*/", text, re.S):
        before = text[text.rfind("\n", 0, comment.start()) + 1:comment.start()]
        after = text[comment.end():comment.end() + 1]
        done.append(text[at:comment.start()])
        at = comment.end()
        lines = comment_lines(comment[1])
        if re.match(r"[ -]*----", comment[1]) or after != "\n" or before.startswith("#endif"):
            pass  # a heading, or a remark inside a line
        elif first or text[comment.end():comment.end() + 2] == "\n\n" and not before.strip():
            body = "\n".join(map(escaped, lines[1:] if first else lines))
            first = False
            done.append(f"/** @file {name}\n<pre>\n{body}\n</pre> */")
        else:
            done.append(documentation(lines, behind=bool(before.strip())))
    return shared_comments("".join(done) + text[at:])


def shared_comments(text):
    """A declaration right behind one with a comment has the same comment."""
    lines, comment, inside, previous_ends = [], "", False, False
    for line in text.split("\n"):
        if line.startswith("/**"):
            comment, inside = "", True
        elif previous_ends and comment and line.startswith(("REDLOCK_API", "#define REDLOCK_", "static inline")):
            lines.append(comment)
        elif line.startswith("REDLOCK_API") and not comment:
            sys.exit(f"there is no comment above: {line}")
        if inside:
            comment += line + "\n"
            inside = not line.endswith("*/")
            previous_ends = False
        elif line.strip() == "":
            comment, previous_ends = "", False
        else:
            previous_ends = line.endswith(";") or line.startswith("#define")
        lines.append(line)
    return "\n".join(lines)


def tasks():
    """(task, calls) of each row of the index."""
    header = (SOURCE / "include/redlock/redlock.h").read_text()
    index = header[header.index("I want to ..."):header.index(" * Conventions")]
    return [(row[1], re.findall(r"redlock_\w+(?=\(\))", row[2]), row[2])
            for row in re.finditer(r"^ \*   (\S.*?)  +(\S.*?)(?:  +\S+)?$", index, re.M)]


def task_page(number, task, calls, how):
    page = [f"@page task{number:02} I want to {escaped(task)}", f"<b>{escaped(how)}</b>", ""]
    for call in calls:
        page += [f"@section task{number:02}_{call} {call}()", f"Declared: {call}().", "", f"@copydoc {call}()", ""]
    for path in sorted((SOURCE / "examples").rglob("*.c*")):
        used = [call for call in calls if re.search(rf"\b{call}\(", path.read_text())]
        if used:
            page += [f"- <code>{path.relative_to(SOURCE)}</code> calls " + ", ".join(f"{call}()" for call in used)]
    return "/**\n" + "\n".join(page) + "\n*/\n"


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    (folder / "input/redlock").mkdir(parents=True, exist_ok=True)
    for name in HEADERS:
        text = (SOURCE / "include/redlock" / name).read_text()
        (folder / "input/redlock" / name).write_text(converted(name, text))
    rows = tasks()
    pages = [task_page(number, *row) for number, row in enumerate(rows, 1)]
    links = "\n".join(f"- @ref task{number:02}" for number in range(1, len(rows) + 1))
    main_page = f"/**\n@mainpage\nThe public headers of redlock, and a page for each task:\n{links}\n*/\n"
    (folder / "input/tasks.dox").write_text(main_page + "".join(pages))
    done = subprocess.run(["doxygen", "-"], input=SETTINGS.format(folder=folder), text=True)
    if done.returncode == 0:
        print(f"{folder}/html/index.html: {len(HEADERS)} headers, {len(rows)} tasks")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
