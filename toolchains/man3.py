#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""man3.py FOLDER: the man pages of section 3 of redlock.h, and for each other call of a page a file that leads there.

SYNOPSIS, DESCRIPTION and RETURN VALUE are what the header says: a comment belongs to the declarations below it. A code
that the header names without a word of its own is told by its text in enum redlock_err. EXAMPLE is cut from a file that
a test compiles. Exits 1 if a call of the header has no page.
"""
import pathlib
import re
import sys

from reference import comment_lines

SOURCE = pathlib.Path(__file__).resolve().parent.parent
# Page: what it is for; its groups of calls, each by its first; remarks above them; structs; (file, functions) to cut.
ASK = ["Calls that block:"]
FIRMWARE, MORE = "examples/firmware.c", "toolchains/man3.c"
PAGES = {
    "redlock_config_load_file": (
        "what a client is created from",
        ["config_new", "config_load_json", "config_error", "config_add_master", "config_set_u32", "config_set_event",
         "config_set_log", "log_stderr"], [], [], (FIRMWARE, ["configure"])),
    "redlock_create": ("create a client", ["create", "create_polled", "create_on_loop", "memory_size"],
                       ["The six ways"], [], (FIRMWARE, ["main"])),
    "redlock_destroy": ("end a client", ["close_async", "destroy"], [], [], (FIRMWARE, ["main"])),
    "redlock_process": ("run a client in a loop of poll(2) or epoll(7)", ["process", "fd", "timeout_ms"], [], [],
                        ("examples/poll_app.c", ["loop"])),
    "redlock_acquire": ("take a lock", ["acquire", "acquire_async", "cancel"], ["How long an acquire waits", *ASK],
                        ["redlock_acquire_opts_t", "redlock_report_t"], (FIRMWARE, ["serve"])),
    "redlock_release": ("let go of a lock", ["release", "release_async"], ASK, [], (FIRMWARE, ["serve"])),
    "redlock_extend": ("renew a lock by hand", ["extend", "extend_async"], ASK, [], (MORE, ["work"])),
    "redlock_check": ("may the device be touched now?", ["check", "validity_ms", "deadline_ns", "suspended"], [], [],
                      (FIRMWARE, ["transact"])),
    "redlock_fencing_token": ("let the device refuse a late write", ["fencing_token", "fence_init", "fence_check"],
                              ["Hand the device"], [], (MORE, ["write_register", "send_value"])),
    "redlock_status": ("the state of a client and of its masters", ["status", "status_json"], [],
                       ["redlock_status_t", "redlock_master_status_t"], (MORE, ["print_status", "print_json"])),
    "redlock_describe": ("an event as a sentence for a person", ["describe"], [], ["redlock_event_t"],
                         (FIRMWARE, ["on_event"])),
    "redlock_strerror": ("result codes and versions as text", ["strerror", "err_name", "version"], [], [],
                         (FIRMWARE, ["main"])),
    "redlock_commission": ("begin a new site", ["commission", "commission_master"], [], [], ("README.md", ["main"])),
}
DECLARATION = re.compile(
    r"^(?:REDLOCK_API|static inline)\s+(?:REDLOCK_NODISCARD\s+)?([^;{]*?\b(redlock_\w+)\([^;{]*\))", re.M)


class Header:
    def __init__(self, text):
        self.version = ".".join(re.findall(r"REDLOCK_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text))
        self.codes = dict(re.findall(r"REDLOCK_E_(\w+) = -\d+, /\*\*< (.*?) \*/", text))
        self.groups, self.remarks = [], []  # ([(declaration, call)], lines of the comment); lines
        for comment in re.finditer(r"^/\*(?!\*|[ -]*----)(.*?)\*/\n(.*?)(?=^/\*|^$|\Z)", text, re.M | re.S):
            lines = comment_lines(comment[1])
            calls = [(re.sub(r"\n +", "\n    ", found[1]), found[2]) for found in DECLARATION.finditer(comment[2])]
            if calls and calls[0][1] != "redlock_resource":
                self.groups.append((calls, lines))
            elif not comment[2].strip():
                self.remarks.append(lines)
        places = text[text.index("Every function says where"):text.index("Call nothing after")]
        places = " ".join(comment_lines(places))
        self.places = dict(re.findall(r"\[(\w+)\] +(.*?)(?= +\[\w+\] |\s*$)", re.sub(" +", " ", places)))
        self.text = text

    def group(self, call):
        return next(group for group in self.groups if group[0][0][1] == call)

    def remark(self, begin):
        return next(lines for lines in self.remarks if lines[0].startswith(begin))

    def struct(self, name):
        return re.search(r"(?:^/\*[^\n]*\*/\n)?^typedef struct [^{;]*\{[^}]*\} " + name + ";", self.text, re.M)[0]


def escaped(text):
    text = text.replace("\\", "\\e")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M).replace("-", "\\-")


def block(text):
    return [".PP", ".nf", escaped(text), ".fi"]


def paragraph(lines):
    """Lines in a layout of their own stay as they are."""
    out, was_laid_out = [], False
    for line in lines:
        is_laid_out = line.startswith("  ")
        if is_laid_out != was_laid_out:
            out.append(".nf" if is_laid_out else ".fi")
        was_laid_out = is_laid_out
        out.append(escaped(line))
    return out + [".fi"] * was_laid_out


def split(lines):
    """(where the calls may be called, the lines before "Returns", what is returned as one text)"""
    place = re.match(r"\[(\w+)\] ", lines[0])
    text = "\n".join(lines)[place.end() if place else 0:]
    before, _, returned = text.partition("Returns ")
    return place and place[1], before.rstrip().split("\n"), " ".join((returned or text).split())


def sentence(text):
    return escaped(text if text.endswith(".") else text + ".")


def result(header, code, said=""):
    """The header says nothing, all, or when a code has a second meaning."""
    if code == "0":
        return [".TP", "0", sentence(said or "success")]
    if not said or said.startswith("also "):
        said = "; ".join(filter(None, [header.codes[code], said]))
    elif " " not in said:  # which argument
        said = f"{header.codes[code]}: {said}"
    return [".TP", rf"\fBREDLOCK_E_{code}\fR", sentence(said)]


def results(header, text):
    """Each code with what the header says of it, and the other sentences."""
    out, names = [], "|".join(["0", *header.codes])
    for said in re.split(r"(?<=[.)])\s+(?=[A-Z\d])", text):
        coded = re.fullmatch(rf"((?:{names})(?:, (?:{names}))*)(?:: (.*?))?\.?", said)
        if coded:
            out += [line for code in coded[1].split(", ") for line in result(header, code, coded[2])]
        else:
            out += [".PP", sentence(re.sub(r"^[a-z]+ ", lambda word: word[0].capitalize(), said))]
    return out


def shared_results(header, remarks):
    """What all calls below a remark may return."""
    out = []
    for lines in remarks:
        said = re.search(r"All may return (.*)\.", " ".join(lines))
        for code, why in re.findall(r"([A-Z_]{4,})(?: \((.*?)\))?", said[1] if said else ""):
            out += result(header, code, why)
    return out


def cut(path, function):
    found = re.search(rf"(?:^//[^\n]*\n)*^\w[^\n;]*\b{function}\([^;]*?\{{\n.*?^\}}", (SOURCE / path).read_text(),
                      re.M | re.S)
    return found[0]


def page(header, name):
    what, firsts, begins, structs, (path, functions) = PAGES[name]
    groups = [header.group("redlock_" + first) for first in firsts]
    remarks = [header.remark(begin) for begin in begins]
    calls = [call for declared, _ in groups for _, call in declared]
    calls.sort(key=lambda call: call != name)
    out = [r'.\" Made by toolchains/man3.py from redlock.h.', f'.TH {name} 3 "" "redlock {header.version}" "C library"',
           ".SH NAME", ", ".join(calls) + r" \- " + what,
           ".SH LIBRARY", r"libredlock: \fIpkg\-config \-\-cflags \-\-libs redlock\fR",
           ".SH SYNOPSIS", ".nf", r"\fB#include <redlock/redlock.h>\fR"]
    for declared, _ in groups:
        out += ["", *(rf"\fB{line}\fR" for text, _ in declared for line in escaped(text + ";").split("\n"))]
    out += [".fi", ".SH DESCRIPTION", "Names lack REDLOCK_E_ and REDLOCK_EV_. A NULL pointer is INVAL, unless allowed."]
    returned, places = [], {}
    for declared, lines in groups:
        place, before, text = split(lines)
        places.setdefault(place, []).extend(call for _, call in declared)
        names = "\\fR, \\fB".join(call + "()" for _, call in declared)
        out += [".TP", rf"\fB{names}\fR", *paragraph(before)]
        if not all(call.startswith("void ") for call, _ in declared):
            returned += [rf".SS {names}", *results(header, text)]
    for lines in remarks:
        out += [".PP", *paragraph(lines)]
    out += [".SH RETURN VALUE", *returned]
    shared = shared_results(header, remarks)
    if shared:
        out += [".SS All that block", *shared]
    out += [".SH WHERE IT MAY BE CALLED"]
    for place in filter(None, places):
        out += [".TP", r"\fB" + "\\fR, \\fB".join(call + "()" for call in places[place]) + r"\fR",
                sentence(header.places[place])]
    for number, struct in enumerate(structs):
        out += ([".SH TYPES"] if number == 0 else []) + block(header.struct(struct))
    out += [".SH EXAMPLE", *([] if path == MORE else [rf"From \fI{escaped(path)}\fR:"])]
    out += block("\n\n".join(cut(path, function) for function in functions))
    others = [other for other in PAGES if other != name]
    return out + [".SH SEE ALSO", *(f".BR {other} (3)," for other in others), ".BR redlock.json (5)"], calls


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.3"):
        old.unlink()
    header = Header((SOURCE / "include/redlock/redlock.h").read_text())
    without = {call for declared, _ in header.groups for _, call in declared}
    for name in PAGES:
        lines, calls = page(header, name)
        (folder / f"{name}.3").write_text("\n".join(lines) + "\n")
        without -= set(calls)
        for call in calls[1:]:
            (folder / f"{call}.3").write_text(f".so man3/{name}.3\n")
    if without:
        sys.exit("man3.py: no page has " + ", ".join(sorted(without)))


main()
