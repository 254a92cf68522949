# SPDX-License-Identifier: MIT
"""below.py WHAT PROGRAM...: runs a cycle program on the masters that with_masters has started, and prints its line of
JSON.

  checked        fails unless all cycles succeeded and no key is left on any master
  server_cpu MAX the masters' CPU time of a cycle whose acquires are scripts, in proportion to one of plain SETs, taken
                 by turns; fails when the median is above MAX
  handover N     N processes contend for one resource; fails unless all got it as often as they asked, never two at once
  first N OPTIONS  a process with these options beside N without them: who gets one resource, until one has had its
                 count
"""
import json
import os
import re
import socket
import subprocess
import sys
import tempfile

GUARD_OR_TOKENS = re.compile(r"redlock:.*:(meta|seen|fence)$")
PORTS = [int(p) for p in os.environ.get("MASTER_PORTS", "").split(",") if p]


# ---- what is asked of a master --------------------------------------------------------------------------------------

def ask(port, *words):
    """One command; the lines of the answer, without the types."""
    with socket.create_connection(("127.0.0.1", port), 60) as s:
        s.sendall((" ".join(words) + "\r\nQUIT\r\n").encode())
        answer = b""
        while chunk := s.recv(65536):
            answer += chunk
    return answer.decode().splitlines()[:-1]


def keys_left(port):
    """Every key but the guard's record and the counters of tokens is one that somebody forgot."""
    return sum(1 for line in ask(port, "KEYS", "*") if line[:1] not in "*$" and not GUARD_OR_TOKENS.match(line))


def calls(port):
    """{command: how often}, scripts' own calls included."""
    lines = (l.split(":", 1) for l in ask(port, "INFO", "commandstats") if l.startswith("cmdstat_"))
    return {name[len("cmdstat_"):]: int(rest.split(",")[0].split("=")[1]) for name, rest in lines}


def run(words):
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True)
    if not done.stdout.startswith("{"):
        raise SystemExit("no result, exit code %d: %s" % (done.returncode, " ".join(words)))
    return json.loads(done.stdout)


# ---- checked --------------------------------------------------------------------------------------------------------

def checked(words):
    result = run(words)
    wanted = int(words[words.index("--count") + 1])
    left = {port: ask(port, "KEYS", "*") for port in PORTS if keys_left(port) != 0}
    asked = [calls(port).get("set", 0) for port in PORTS]
    if result["ok"] != wanted or result["fail"] != 0 or left:
        raise SystemExit("%s\nkeys left: %s" % (result, left))
    if min(asked) < wanted:
        raise SystemExit("SETs at the masters: %s, for %d cycles" % (asked, wanted))
    return result


# ---- server_cpu -----------------------------------------------------------------------------------------------------

def cpu_seconds():
    return sum(float(line.split(":")[1]) for port in PORTS for line in ask(port, "INFO", "cpu")
               if line.startswith(("used_cpu_sys:", "used_cpu_user:")))


def cpu_us(words, tracking):
    """Of all masters, per cycle. A user without tracking is asked by scripts."""
    for port in PORTS:
        ask(port, "ACL", "SETUSER", "default", tracking + "client|tracking")
    before = cpu_seconds()
    result = run(words)
    if result["fail"] != 0:
        raise SystemExit("not all cycles succeeded: %s" % result)
    return (cpu_seconds() - before) * 1e6 / result["count"]


def server_cpu(words):
    limit = float(words.pop(0))
    run([*words, "--count", "1"])  # seals the masters
    turns = [(cpu_us(words, "+"), cpu_us(words, "-")) for _ in range(7)]
    ratios = sorted(script / plain for plain, script in turns)
    result = {"plain_us": min(t[0] for t in turns), "script_us": min(t[1] for t in turns), "ratio": ratios[3],
              "from": ratios[0], "to": ratios[-1], "limit": limit}
    if result["ratio"] > limit:
        raise SystemExit("a cycle by script costs the masters too much: %s" % result)
    return result


# ---- handover -------------------------------------------------------------------------------------------------------

# Of a cycle; get, del and others are called by the scripts.
COMMANDS = ("set", "evalsha", "eval", "pttl", "client|caching")


class Grant:
    """One line of --log."""
    def __init__(self, line):
        self.pid, self.want, self.got, self.released, self.end, self.rounds = map(int, line.split())


def all_commands():
    sums = {}
    for port in PORTS:
        for name, n in calls(port).items():
            sums[name] = sums.get(name, 0) + n
    return sums


def contend(all_words, folder):
    """All begin at once. (grants in order of time, {command: calls}, the process of the first)"""
    ready_read, ready_write = os.pipe()
    go_read, go_write = os.pipe()
    logs = [os.path.join(folder, str(i)) for i in range(len(all_words))]
    run([*all_words[-1], "--mode", "latency", "--count", "1", "--warmup", "0"])  # seals the masters
    programs = [subprocess.Popen([*words, "--mode", "contend", "--log", log, "--gate", f"{ready_write},{go_read}"],
                                 stdout=subprocess.PIPE, text=True, pass_fds=(ready_write, go_read))
                for words, log in zip(all_words, logs)]
    os.close(ready_write)
    waiting = len(all_words)
    while waiting > 0:
        waiting -= len(os.read(ready_read, waiting)) or sys.exit("a process ended before all were ready")
    before = all_commands()
    os.close(go_write)
    codes = [(p.communicate(), p.returncode)[1] for p in programs]
    if any(codes):
        raise SystemExit("exit codes: %s" % codes)
    after = all_commands()
    grants = [Grant(line) for log in logs for line in open(log)]
    commands = {c: after.get(c, 0) - before.get(c, 0) for c in COMMANDS}
    return sorted(grants, key=lambda g: g.got), commands, programs[0].pid


def share(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))] if values else 0


def in_shares(grants, us):
    """Each wait in fair shares: (hold + hand-over) x those who waited when it began, itself included. All processes
    begin at once, so each first wait is one among all, whichever process the machine lets run first."""
    hold = share([g.released - g.got for g in grants], .5)
    one = hold + share(us, .5) * 1e3
    first = {}
    for g in grants:
        first[g.pid] = min(g.want, first.get(g.pid, g.want))
    among = [len(first) if g.want == first[g.pid] else sum(1 for o in grants if o.want <= g.want < o.got)
             for g in grants]
    return [(g.got - g.want) / (one * n) for g, n in zip(grants, among)]


def while_all_ask(grants):
    """Those until some process had all of its own."""
    until = min(max(g.got for g in grants if g.pid == pid) for pid in {g.pid for g in grants})
    return [g for g in grants if g.got <= until]


def jain(grants):
    """Of grants per process while all ask: 1 where all got as many."""
    pids = {g.pid for g in grants}
    counts = [sum(1 for g in while_all_ask(grants) if g.pid == pid) for pid in pids]
    return sum(counts) ** 2 / (len(pids) * sum(n * n for n in counts))


def handover(words):
    processes = int(words.pop(0))
    asked = processes * int(words[words.index("--count") + 1])
    with tempfile.TemporaryDirectory() as folder:
        grants, commands, _ = contend([words] * processes, folder)
    pairs = list(zip(grants, grants[1:]))
    overlaps = sum(1 for one, other in pairs if other.got < one.released)
    looks = commands["pttl"] != 0
    # Where the machine runs one process after the other, nobody waits, and there is nothing to be told.
    told = ("timer" not in words and words[0].endswith("cycle_bench") and
            (looks or any(g.rounds > 1 for g in grants)))
    too_few = len(grants) != asked or len({g.pid for g in grants}) != processes
    if too_few or overlaps or commands["set"] < asked * len(PORTS) // 2:
        raise SystemExit("%d asked, %d granted, %d overlaps, %s" % (asked, len(grants), overlaps, commands))
    if looks != told:
        raise SystemExit("wake-ups, though off, or none, though on: %s" % commands)
    # Only where somebody waited at the release is the time until the next grant the library's.
    waited = [(one, other) for one, other in pairs if any(g.want < one.released < g.got for g in grants)]
    us = [(other.got - one.released) / 1e3 for one, other in waited]
    return {"processes": processes, "grants": len(grants), "handovers": len(us), "p50_us": share(us, .5),
            "p99_us": share(us, .99), "commands": sum(commands.values()) / asked,
            "wasted": sum(g.rounds - 1 for g in grants) / asked,
            "same_process": sum(1 for one, other in waited if one.pid == other.pid) / max(1, len(us)),
            "p999_shares": share(in_shares(grants, us), .999), "longest_shares": max(in_shares(grants, us)),
            "jain": jain(grants),
            "longest_wait_ms": max(g.got - g.want for g in grants) / 1e6,
            "seconds": (max(g.end for g in grants) - min(g.want for g in grants)) / 1e9, "by_command": commands}


def first(words):
    others, options = int(words.pop(0)), words.pop(0).split()
    with tempfile.TemporaryDirectory() as folder:
        grants, _, pid = contend([[*words, *options]] + [words] * others, folder)
    grants = while_all_ask(grants)
    ours, theirs = ([(g.got - g.want) / 1e6 for g in grants if (g.pid == pid) == is_ours] for is_ours in (True, False))
    seconds = (grants[-1].got - min(g.want for g in grants)) / 1e9
    return {"share": len(ours) / len(grants), "p50_ms": share(ours, .5), "p95_ms": share(ours, .95),
            "longest_ms": max(ours, default=0), "others_per_s": len(theirs) / seconds,
            "others_longest_ms": max(theirs, default=0)}


def main():
    what = {"checked": checked, "server_cpu": server_cpu, "handover": handover, "first": first}
    print(json.dumps(what[sys.argv[1]](sys.argv[2:])))


if __name__ == "__main__":
    main()
