# SPDX-License-Identifier: MIT
"""Measures cycles beside the limit; run.sh builds what it needs. Every run has redis-servers of its own, and the
programs take turns (A B C A B C), so that what the machine does besides falls on all of them. A ratio is taken within a
turn; what is printed is the median of all turns, with the least and the greatest."""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from picture import draw

ROOT = pathlib.Path(__file__).resolve().parents[3]
BENCH = ROOT / "build/bench/test/nightly/bench"
SMALL = ROOT / "build/release/test/nightly/bench"
PICTURE = ROOT / "build/bench/bench.svg"

LIMIT = ("limit", [BENCH / "raw_limit"])
LIMIT_SENT = ("limit, release not awaited", [BENCH / "raw_limit", "--release", "sent"])
HIREDIS = ("hiredis + libuv", [BENCH / "hiredis_uv"])
HIREDIS_ONCE = ("hiredis + libuv, formatted once", [BENCH / "hiredis_uv", "--api", "formatted"])
REDLOCK = ("redlock -O2", [BENCH / "cycle_bench"])
REDLOCK_CONFIRMED = ("redlock -O2, waits until all deletes are answered",
                     [BENCH / "cycle_bench", "--release", "confirmed"])
REDLOCK_FENCED = ("with a fencing token", [BENCH / "cycle_bench", "--api", "fenced"])
REDLOCK_FIRST = ("with the first token of a resource", [BENCH / "cycle_bench", "--api", "fenced-first"])
REDLOCK_UNGUARDED = ("without the guard", [BENCH / "cycle_bench", "--api", "unguarded"])
REDLOCK_SMALL = ("redlock -Os", [SMALL / "cycle_bench"])


def programs(*wanted):
    return [row for row in wanted if pathlib.Path(row[1][0]).exists()]


def below(*what):
    return (sys.executable, pathlib.Path(__file__).with_name("below.py"), *what)


def cycle(command, masters=5, wrapper=(), timeout=180, **options):
    """One run; its line of JSON."""
    words = [str(w) for w in command] + ["--ports", "{ports}"]
    for key, value in options.items():
        words += ["--" + key.replace("_", "-"), str(value)]
    done = subprocess.run([str(BENCH / "with_masters"), str(masters), *map(str, wrapper), *words],
                          stdout=subprocess.PIPE, text=True, timeout=timeout)
    line = next((l for l in done.stdout.splitlines() if l.startswith("{")), None)
    if line is None:
        raise SystemExit("no result: " + " ".join(words))
    return json.loads(line)


def spread(values, form="{:.2f}"):
    if not values:
        return "-"
    return (form + " [" + form + "-" + form + "]").format(statistics.median(values), min(values), max(values))


def table(title, head, rows):
    print("\n## " + title + "\n")
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    sys.stdout.flush()


def in_turn(rows, rounds, **options):
    """{name: [result of each round]}"""
    results = {name: [] for name, _ in rows}
    for _ in range(rounds):
        for name, command in rows:
            results[name].append(cycle(command, **options))
    return results


def ratios(results, name, base, key):
    return [ours[key] / limit[key] for ours, limit in zip(results[name], results[base]) if limit[key]]


def compare(title, results, base, columns):
    head = ["", *(c[1] for c in columns), *("x limit: " + c[1].split(",")[0] for c in columns)]
    rows = []
    for name, runs in results.items():
        cells = [spread([r[key] for r in runs], form) for key, _, form in columns]
        rows.append([name, *cells, *(spread(ratios(results, name, base, key)) for key, _, _ in columns)])
    table(title, head, rows)


COST = [("cpu_us_per_cycle", "client CPU, us per cycle", "{:.2f}")]
P50 = [("acq_p50_us", "acquire p50, us", "{:.0f}"), ("cyc_p50_us", "cycle p50, us", "{:.0f}")]
RATE = [("cycles_per_s", "cycles per second", "{:.0f}")]
REDLOCK_POLLED = ("redlock -O2, polled", [BENCH / "cycle_bench", "--api", "polled"])
REDLOCK_BLOCKING = ("redlock -O2, blocking", [BENCH / "cycle_bench", "--api", "blocking"])
ALL = (LIMIT, LIMIT_SENT, HIREDIS, HIREDIS_ONCE, REDLOCK, REDLOCK_POLLED, REDLOCK_SMALL)


def latency(o):
    results = in_turn(programs(*ALL, REDLOCK_BLOCKING, REDLOCK_CONFIRMED), o.rounds, mode="latency", inflight=1,
                      count=o.cycles(3000))
    compare("One lock at a time (K = 1)", results, LIMIT[0], P50 + COST)


def throughput(o):
    results = in_turn(programs(*ALL), o.rounds, mode="throughput", inflight=64, count=o.cycles(60000))
    compare("64 locks in flight (K = 64)", results, LIMIT[0], RATE + COST)


# ---- growth ----------------------------------------------------------------------------------------------------------

def callgrind(command, out, count, **options):
    """Counts the instructions of `count` cycles and of 20 before them; start and end are not counted."""
    cycle(command, count=count, warmup=20, node_timeout_ms=1500, ttl_ms=30000, mode="throughput",
          wrapper=("valgrind", "--quiet", "--tool=callgrind", "--toggle-collect=run", "--callgrind-out-file=" + out),
          **options)


def instructions(command, count, **options):
    with tempfile.NamedTemporaryFile() as out:
        callgrind(command, out.name, count, **options)
        return int(next(l for l in open(out.name) if l.startswith("totals:")).split()[1]) / (count + 20)


def growth(o):
    n = o.cycles(10000)
    rows = []

    def row(name, per=1, limit=True, **options):
        counted = instructions(REDLOCK[1], max(n // 4, 4 * options["inflight"]), **options)
        bare = instructions(LIMIT[1], max(n // 4, 4 * options["inflight"]), **options) if limit else 0
        turns = in_turn([LIMIT, REDLOCK] if limit else [REDLOCK], min(o.rounds, 3), mode="throughput",
                        count=n, **options)
        rows.append([name, f"{counted:.0f}", f"{counted / per:.0f}", f"{counted / bare:.2f}" if limit else "",
                     spread([r["cpu_us_per_cycle"] for r in turns[REDLOCK[0]]]),
                     spread(ratios(turns, REDLOCK[0], LIMIT[0], "cpu_us_per_cycle")) if limit else ""])

    for masters in (1, 3, 5, 7, 9, 15):
        row(f"{masters} masters", per=masters, masters=masters, inflight=16)
    for size in (32, 4096):
        row(f"table of {size}, no other lock held", per=5, limit=False, inflight=16, table=size)
    for held in (1, 64, 1024, 4000):
        row(f"table of 4096, {held} other locks held", per=5, limit=False, inflight=16, table=4096, held=held)
    for inflight in (1, 16, 64, 256, 1024):
        row(f"{inflight} in flight", per=5, inflight=inflight)
    table("Growth: what a cycle costs the client, redlock -O2; five masters and 16 in flight unless it says "
          "otherwise", [
        "", "instructions per cycle", "per master", "x limit", "CPU, us per cycle", "x limit"], rows)


# ---- from one process to the next ------------------------------------------------------------------------------------

# (key, title, form, unit, {processes: goal}, {processes: limit}). A limit is the goal, or what is reached where that is
# more. README.md says what a wasted round costs, and what was tried.
HANDOVER = [
    ("p50_us", "p50, ms", "{:.2f}", 1000, {8: 0.7, 64: 0.9}, {}),
    ("p99_us", "p99, ms", "{:.1f}", 1000, {8: 3, 64: 5}, {}),
    ("p999_shares", "p99.9 wait, fair shares", "{:.1f}", 1, {8: 4, 64: 4}, {}),
    ("commands", "commands per grant, all masters", "{:.0f}", 1, {8: 40, 64: 60}, {}),
    ("wasted", "wasted rounds per grant", "{:.2f}", 1, {8: 0.5, 64: 1}, {8: 0.8, 64: 4}),
    ("longest_shares", "longest wait, fair shares", "{:.1f}", 1, {}, {}),
    ("longest_wait_ms", "longest wait, ms", "{:.0f}", 1, {}, {}),
    ("jain", "Jain's index", "{:.3f}", 1, {}, {}),
    ("seconds", "all, s", "{:.2f}", 1, {}, {}),
]
RESOURCE_FOR_5_MS = "One resource, held for 5 ms and asked for again 10 ms later: from a release to the next grant"


def contention(o, command, processes, masters=5):
    return cycle(command, masters=masters, wrapper=below("handover", processes), count=6 if o.quick else 25,
                 hold_us=5000, think_us=10000)


def handover_row(name, results):
    return [name, *(spread([r[key] / unit for r in results], form) for key, _, form, unit, _, _ in HANDOVER)]


def judge(processes, results):
    """The row of goals, and which are missed: (what, is it above its limit, too?)."""
    cells, missed = [], []
    for key, title, form, unit, goals, limits in HANDOVER:
        goal = goals.get(processes)
        cells.append("" if goal is None else f"{goal:g}")
        found = statistics.median(r[key] / unit for r in results)
        if goal is None or found <= goal:
            continue
        limit = max(goal, limits.get(processes, 0))
        missed.append((f"{processes} processes, {title}: {form.format(found)}, goal {goal:g}, limit {limit:g}",
                       found > limit))
    return ["*goal*", *cells], missed


def redis_py():
    """The command, or None: no python here has redis-py."""
    program = pathlib.Path(__file__).with_name("redis_py.py")
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import redis.lock"], stderr=subprocess.DEVNULL).returncode == 0:
            return [python, program]
    return None


def node_redlock():
    """The command, or None: no Node.js here, or its packages cannot be had."""
    packages = ROOT / "build/interop"
    fetch = ROOT / "test/integration/interop/packages.sh"
    if shutil.which("node") is None or shutil.which("npm") is None:
        return None
    if subprocess.run([fetch, packages], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
        return None
    program = pathlib.Path(__file__).with_name("node_redlock.js")
    return ["env", f"REDLOCK_NODE_MODULES={packages}/node_modules", "node", program]


def handover(o):
    loop, timer = ([BENCH / "cycle_bench", "--api", api] for api in ("loop", "timer"))
    head = ["", *(title for _, title, *_ in HANDOVER)]
    rows, missed = [], []
    for processes in (8, 64):
        runs = [(contention(o, loop, processes), contention(o, timer, processes)) for _ in range(min(o.rounds, 5))]
        told, polled = zip(*runs)
        goals, missed_here = judge(processes, told)
        missed += missed_here
        rows += [handover_row(f"{processes} processes, told (RESP3)", told), goals,
                 handover_row(f"{processes} processes, timer alone", polled)]
    table(RESOURCE_FOR_5_MS + ", five masters", head, rows)
    two_clients(o, loop, head, 1, "redis-py's Lock, as it comes", redis_py())
    two_clients(o, loop, head, 3, "node-redlock, its own pauses", node_redlock())
    for what, _ in missed:
        print("\nmissed: " + what)
    if any(above for _, above in missed):
        if len(os.sched_getaffinity(0)) >= 4:
            raise SystemExit("handover: above a limit")
        print("fewer than four cores: sim_crowd judges")  # the clients alone take longer than the goals


# Beside what others use.
def two_clients(o, loop, head, masters, name, theirs):
    if theirs is None:
        print(f"\nwithout the row of {name}: it is not here")
        return
    runs = [(contention(o, loop, 2, masters), contention(o, theirs, 2, masters)) for _ in range(min(o.rounds, 5))]
    ours, others = zip(*runs)
    times = [[f"{one[key] / other[key]:.2f}" if other[key] else "-" for key, *_ in HANDOVER] for one, other in runs]
    rows = [handover_row("redlock", ours), handover_row(name, others),
            ["redlock x theirs", *map(" ".join, zip(*times))]]
    table(RESOURCE_FOR_5_MS + f", two clients, masters: {masters}", head, rows)


# ---- who goes first --------------------------------------------------------------------------------------------------

FIRST = [("share", "its share of the grants", "{:.3f}"), ("p50_ms", "its wait: p50, ms", "{:.0f}"),
         ("p95_ms", "p95, ms", "{:.0f}"), ("longest_ms", "longest, ms", "{:.0f}"),
         ("others_per_s", "grants of the others a second", "{:.1f}"),
         ("others_longest_ms", "longest wait of another, ms", "{:.0f}")]


def beside_8(o, title, rows, of_first, **of_others):
    """rows: [(name, command, more options of the first)]"""
    cells = []
    for name, command, more in rows:
        runs = [cycle(command, masters=3, wrapper=below("first", 8, f"{of_first} {more}"), **of_others)
                for _ in range(min(o.rounds, 3))]
        cells.append([name, *(spread([r[key] for r in runs], form) for key, _, form in FIRST)])
    table(title + ", three masters", ["", *(what for _, what, _ in FIRST)], cells)


def turns(o):
    ours, node = [BENCH / "cycle_bench", "--api", "loop"], node_redlock()
    beside_8(o, "An alarm of 5 ms, 900 ms after the last one, beside 8 pollers that hold for 100 ms and pause for 20",
             [("redlock", ours, ""), ("urgent", ours, "--api urgent")],
             f"--count {o.cycles(30, 5)} --hold-us 5000 --think-us 900000",
             count=o.cycles(75, 10), hold_us=100000, think_us=20000, max_seconds=150)
    urgent = [BENCH / "cycle_bench", "--api", "urgent"]
    for n in (2, 4, 8):
        runs = [cycle(urgent, masters=3, wrapper=below("first", n, "--api loop"), count=o.cycles(100, 20),
                      hold_us=10000, think_us=0) for _ in range(min(o.rounds, 3))]
        table(f"An ordinary loop beside {n} urgent ones, without a pause, each holds for 10 ms, three masters",
              ["", *(what for _, what, _ in FIRST)],
              [["redlock", *(spread([r[key] for r in runs], form) for key, _, form in FIRST)]])
    beside_8(o, "A loop without a pause beside 8 that pause for 10 ms, each holds for 5 ms",
             [("redlock", ours, ""), *([("node-redlock, its own pauses", node, "")] if node else [])],
             f"--count {o.cycles(300, 50)} --think-us 0",
             count=o.cycles(100, 20), hold_us=5000, think_us=10000)


# ---- counts ----------------------------------------------------------------------------------------------------------

def counted(what, command, inflight, *options):
    """What count.sh says; None: it failed."""
    done = subprocess.run([str(BENCH / "with_masters"), "5", str(ROOT / "test/nightly/bench/count.sh"), what,
                           str(command[0]), str(inflight), "-", *map(str, command[1:]), *options],
                          stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "HEAP_COUNT": str(BENCH.parents[1] / "libredlock_heap_count.so")})
    return float(done.stdout.rsplit(": ", 1)[-1]) if done.returncode == 0 else None


def counts(o):
    limits, rows = {}, []
    for name, command in programs(LIMIT, REDLOCK, REDLOCK_POLLED, REDLOCK_SMALL, HIREDIS):
        cells = [name]
        for inflight in (1, 64):
            for what in ("instructions", "syscalls", "heap"):
                once = what == "heap" or command[0].name == "hiredis_uv"
                found = [counted(what, command, inflight) for _ in range(1 if once else min(o.rounds, 3))]
                found = [f for f in found if f is not None]
                base = limits.setdefault((what, inflight), statistics.median(found)) if found else 0
                form = "{:.0f}" if what != "syscalls" else "{:.2f}"
                cells.append(f"{found[0]:g}" if what == "heap" and found else spread(found, form) +
                             (f" x {statistics.median(found) / base:.2f}" if base else ""))
        rows.append(cells)
    what = ("instructions", "system calls", "heap calls")
    table("Counted per cycle", ["", *(f"{w}, K = 1" for w in what), *(f"{w}, K = 64" for w in what)], rows)


# ---- where the instructions go ---------------------------------------------------------------------------------------

def annotated(callgrind_out):
    """(instructions, where their source is, the function that it was inlined into) of each line of the annotation."""
    text = subprocess.run(["callgrind_annotate", "--threshold=100", "--show-percs=no", callgrind_out],
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    for n, file, function in re.findall(r"^ *([0-9,]+) +(\S+?):(\S.*)$", text, re.MULTILINE):
        function, _, binary = re.sub(r"'\d+", "", function).partition(" [")
        if "libuv" in binary:
            place = function = "libuv"
        elif str(ROOT) in binary or "/../src/" in file or "/../port/" in file or "/../test/" in file:
            place = re.sub(r".*?/((src|port|include|test)/)", r"\1", file)
        else:
            place = "libc"
        if "(" in function:
            function = re.sub(r"\(anonymous namespace\)::|redlock::", "", function).split("(")[0]
        yield int(n.replace(",", "")), place, function


def profile(o):
    for inflight, count in ((1, o.cycles(2000)), (64, o.cycles(20000, 1000))):
        with tempfile.TemporaryDirectory() as folder:
            out = folder + "/callgrind"
            callgrind(REDLOCK[1], out, count, inflight=inflight)
            lines = list(annotated(out))
        for title, key in (("source file", 1), ("function, with what is inlined", 2)):
            sums = {}
            for line in lines:
                sums[line[key]] = sums.get(line[key], 0) + line[0] / (count + 20)
            total = sum(sums.values())
            most = sorted(sums.items(), key=lambda item: -item[1])[:25]
            table(f"Instructions per cycle, K = {inflight}: {total:.0f}, by {title}", ["", "instructions", "%"],
                  [[name, f"{n:.0f}", f"{100 * n / total:.1f}"] for name, n in most])


# ---- what tokens and the guard cost ----------------------------------------------------------------------------------

def fencing(o):
    plain = ("plain", REDLOCK[1])
    results = in_turn((plain, REDLOCK_FENCED, REDLOCK_FIRST), o.rounds, mode="latency", inflight=1,
                      count=o.cycles(3000))
    rows = []
    for name, command in (plain, REDLOCK_FENCED, REDLOCK_FIRST):
        rows.append([name, spread([r["acq_p50_us"] for r in results[name]], "{:.0f}"),
                     spread(ratios(results, name, "plain", "acq_p50_us")),
                     spread([r["replies_per_cycle"] for r in results[name]], "{:.1f}"),
                     "%g" % counted("bytes", command, 1), "%.0f" % counted("instructions", command, 1)])
    table("Fencing tokens, five masters, one lock at a time", [
        "", "acquire p50, us", "x plain", "requests per cycle", "bytes per cycle",
        "instructions per cycle"], rows)


def guard(o):
    rows = []
    for name, command in (REDLOCK_UNGUARDED, ("with it, the masters sealed", REDLOCK[1])):
        run = cycle(command, mode="connect", count=o.cycles(200, 20))
        rows.append([name, "%.1f" % (run["replies_per_cycle"] / run["n"]),
                     "%.0f" % (counted("bytes", command, 1, "--mode", "connect") / run["n"])])
    table("The guard: from create until all of five masters vote", [
        "", "requests per master", "bytes per master"], rows)


# ---- the picture -----------------------------------------------------------------------------------------------------

# Programs take turns here, too.
def picture(o):
    wanted = programs(LIMIT, HIREDIS, REDLOCK)
    acquires, rates = {name: [] for name, _ in wanted}, {name: {} for name, _ in wanted}
    for _ in range(o.rounds):
        for name, command in wanted:
            with tempfile.NamedTemporaryFile("r") as samples:
                cycle(command, mode="latency", inflight=1, count=o.cycles(2000), samples=samples.name)
                acquires[name] += [int(line.split()[0]) / 1000 for line in samples]
    for inflight in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        for name, command in wanted:
            runs = [cycle(command, mode="throughput", inflight=inflight, count=o.cycles(2000 + 300 * inflight))
                    for _ in range(min(o.rounds, 3))]
            rates[name][inflight] = statistics.median(run["cycles_per_s"] for run in runs)
    machine = "limit: bare epoll, no usable client. Client and servers share one machine with %d cores" % os.cpu_count()
    PICTURE.write_text(draw([(name, sorted(acquires[name]), rates[name]) for name, _ in wanted], machine))
    print(f"\n{PICTURE}")


PHASES = {"latency": latency, "throughput": throughput, "growth": growth, "handover": handover, "turns": turns,
          "counts": counts, "profile": profile, "fencing": fencing, "guard": guard, "picture": picture}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("phases", nargs="*", metavar="PHASE", help=", ".join(PHASES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    o = parser.parse_args()
    unknown = set(o.phases) - set(PHASES)
    if unknown:
        parser.error("no such phase: " + ", ".join(sorted(unknown)))
    o.cycles = lambda n, least=100: max(least, n // 10) if o.quick else n
    print("load of the machine before: %.1f on %d CPUs; %d rounds" % (os.getloadavg()[0], os.cpu_count(), o.rounds))
    for phase in o.phases or PHASES:
        begin = time.monotonic()
        PHASES[phase](o)
        print("\n%s: %.0f s, load %.1f" % (phase, time.monotonic() - begin, os.getloadavg()[0]))


if __name__ == "__main__":
    main()
