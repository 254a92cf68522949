#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""checker.py FOLDER: judges the histories of a weather campaign.

It knows the facts that worker.cpp and weather.py wrote, and nothing else: neither the library nor the servers. Exit
status: 0, 1 where a rule is broken; each breach is told with the facts that show it."""

import collections
import heapq
import pathlib
import sys

# Of `redlock run` (src/tool/words/exit_code.hpp): too few masters, the warden was killed (by its own timer, where the
# machine did not let it run), held, guarded, not permitted, may evict keys, lost; 0 is its command's.
TOOL_STATUSES = {0, 69, 71, 75, 76, 77, 78, 79, 80}
FINAL = {"REDLOCK_E_LOST", "REDLOCK_E_STALE"}  # what a check answers for ever, once it has answered so


class Hold:
    """One acquire, from the call to its end."""

    __slots__ = ("life", "n", "resources", "wanted", "got", "token", "floored", "until", "last_yes", "answered",
                 "letgo", "final", "failed", "ended", "checks", "any")

    def __init__(self, life, n, resources, wanted):
        self.life, self.n, self.resources, self.wanted = life, n, resources, wanted
        self.got = self.last_yes = self.answered = self.letgo = self.final = self.failed = self.ended = None
        self.token = self.until = self.checks = 0
        self.floored = False
        self.any = resources == ["any"]

    def name(self):
        return f"{self.life}/{self.n}"

    def interval(self):
        """When it certainly held: from its ACQUIRED, before which the lock was won, to the end of the validity that it
        was told last, or to its release. A lock that was LOST is no exception: whoever was told that he may touch the
        device for so long may do so. None: no check said yes."""
        if self.got is None or self.last_yes is None:
            return None
        end = self.until if self.letgo is None else min(self.until, self.letgo)
        return (self.got, max(end, self.last_yes))


class Site:
    def __init__(self, masters, tokens):
        self.masters, self.tokens = masters, tokens
        self.looked, self.left = set(), []
        self.holds = []


class Histories:
    """All facts of a folder, and what is wrong within one history."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.breaches = []
        self.sites, self.clients, self.ends, self.ended_at = {}, {}, {}, {}
        self.recorded = {}  # of a site: max_ttl_ms, and the masters whose commands are known
        self.healed = self.recovered = self.over = None
        self._read_weather()
        for life in self.clients:
            self._read_life(life)

    def breach(self, rule, text):
        self.breaches.append((rule, text))

    def _lines(self, name):
        """Whole lines: of a process that was killed the last one may be cut."""
        path = self.folder / name
        if not path.exists():
            return
        with open(path, errors="replace") as file:
            for number, line in enumerate(file, 1):
                if line.endswith("\n"):
                    yield number, line.split()

    def _read_weather(self):
        for _, (word, at, *rest) in self._lines("weather"):
            if word == "site":
                self.sites[rest[0]] = Site(int(rest[1]), rest[2] == "tokens")
            elif word == "client":
                self.clients[rest[0]] = {"site": rest[1], "mode": rest[2], "style": rest[3]}
            elif word in ("killed", "exit"):
                self.ends[rest[0]] = (word, int(rest[1]))
                self.ended_at[rest[0]] = int(at)
            elif word == "recorded":
                self.recorded[rest[0]] = (int(rest[1]), rest[2:])
            elif word == "looked":
                self.sites[rest[0]].looked.add(rest[1])
            elif word == "left":
                self.sites[rest[0]].left.append(" ".join(rest[1:]))
            elif word in ("healed", "recovered", "over"):
                setattr(self, word, int(at))

    def _read_life(self, life):
        holds, bye = {}, False
        for number, (word, *rest) in self._lines(life):
            try:
                bye = self._read_fact(life, holds, word, rest) or bye
            except (KeyError, ValueError, IndexError):
                self.breach("history", f"{life}:{number}: {word} {' '.join(rest)}")
        client = self.clients[life]
        how, status = self.ends.get(life, ("none", 0))
        if how == "none" and self.over is not None:
            self.breach("no end", f"{life} has neither ended nor was killed")
        if how == "exit":
            if status != 0:
                self.breach("died", f"{life} ended with {status}")
            if not bye:
                self.breach("no end", f"{life} did not come to its last line")
            for hold in holds.values():
                if hold.failed is None and hold.ended is None:
                    self.breach("no end", f"{hold.name()}, wanted at {hold.wanted}, neither failed nor ended")
        self.sites[client["site"]].holds += holds.values()

    def _read_fact(self, life, holds, word, rest):
        if word == "bye":
            return True
        if word == "wanted":
            holds[rest[1]] = Hold(life, rest[1], rest[2].split("+"), int(rest[0]))
            return False
        if word in ("yes", "no"):
            before, after, hold = int(rest[0]), int(rest[1]), holds[rest[2]]
            hold.checks += 1
            if word == "no":
                if rest[3] in FINAL:
                    hold.final = hold.final or f"said {rest[3]} at {after}"
            elif hold.final is not None:
                self.breach("yes again", f"{hold.name()} {hold.final}, and yes at {before}")
            else:
                hold.last_yes, hold.answered, hold.until = before, after, max(hold.until, int(rest[3]))
            return False
        at, hold = int(rest[0]), holds[rest[1]]
        if word == "got":
            hold.got, hold.token, hold.floored = at, int(rest[2]), rest[3] == "1"
            hold.resources = rest[5:6] or hold.resources  # of `redlock run --any`: which
        elif word == "failed":
            hold.failed = at
            if hold.got is not None:
                self.breach("two ends", f"{hold.name()} got its lock and failed")
        elif word == "letgo":
            hold.letgo, hold.final = at, hold.final or f"was released at {at}"
        elif word == "ended":
            if hold.ended is not None or hold.failed is not None:
                self.breach("two ends", f"{hold.name()} ended twice")
            hold.ended = at
            if rest[2].startswith("status-") and int(rest[2][7:]) not in TOOL_STATUSES:
                self.breach("died", f"{hold.name()} ended with {rest[2]}")
        else:
            raise ValueError(word)
        return False


def by_resource(holds):
    resources = collections.defaultdict(list)
    for hold in holds:
        for resource in hold.resources:
            resources[resource].append(hold)
    return sorted(resources.items())


def judge_holders(histories, site_name, resource, holds):
    """Nobody's certain interval begins within another's."""
    intervals = sorted((*hold.interval(), number) for number, hold in enumerate(holds) if hold.interval() is not None)
    latest_end, latest = 0, None
    for begin, end, number in intervals:
        if latest is not None and begin < latest_end:
            one, two = holds[latest], holds[number]
            histories.breach("two holders", f"{site_name} {resource}: {one.name()} held from {one.interval()[0]} to "
                             f"{one.interval()[1]}, and {two.name()} from {begin}: "
                             f"{(min(latest_end, end) - begin) / 1e6:.3f} ms at one time")
        if end > latest_end:
            latest_end, latest = end, number


def judge_tokens(histories, site_name, resource, holds):
    """A token is given once, and is larger than all that were given before its acquire began."""
    fenced = sorted((hold for hold in holds if hold.token > 0 and hold.got is not None), key=lambda hold: hold.wanted)
    seen = {}
    for hold in fenced:
        if hold.token in seen:
            histories.breach("token twice", f"{site_name} {resource}: {hold.token} of {seen[hold.token].name()} and "
                             f"{hold.name()}")
        seen[hold.token] = hold
    given, largest = [(hold.got, number) for number, hold in enumerate(fenced)], None
    heapq.heapify(given)
    for hold in fenced:
        while given and given[0][0] < hold.wanted:
            before = fenced[heapq.heappop(given)[1]]
            if largest is None or before.token > largest.token:
                largest = before
        if largest is not None and hold.token <= largest.token:
            histories.breach("token backwards", f"{site_name} {resource}: {largest.name()} got {largest.token} at "
                             f"{largest.got}; {hold.name()}, wanted at {hold.wanted}, got {hold.token}")


def judge_end(histories):
    """The histories are whole, no key is left, and everybody got something done, also when the weather was over."""
    if not histories.sites or histories.healed is None or histories.over is None:
        histories.breach("cut short", "the campaign did not come to its end")
        return
    for name, site in histories.sites.items():
        for left in site.left:
            histories.breach("key left", f"{name}: {left}")
        if len(site.looked) != site.masters:
            histories.breach("cut short", f"{name}: nobody looked for keys on all masters")
        got = {hold.life for hold in site.holds if hold.got is not None}
        modes = {client["mode"] for life, client in histories.clients.items() if client["site"] == name}
        for mode in modes - {histories.clients[life]["mode"] for life in got}:
            histories.breach("nothing done", f"{name}: no client in mode {mode} got a lock")
        served = {hold.life.split(".")[0] for hold in site.holds
                  if hold.got is not None and hold.got > histories.healed}
        names = {life.split(".")[0] for life, client in histories.clients.items() if client["site"] == name and
                 histories.ended_at.get(life, histories.healed) >= histories.healed}
        for client in sorted(names - served):
            histories.breach("nothing done", f"{client} got no lock when the weather was over")


def at(values, part):
    return values[min(len(values) - 1, int(part * len(values)))] / 1e6


def summary(name, resource, holds, histories):
    """Figures, not verdicts: how long was waited, and how evenly the locks went round among those who ask at once."""
    waits = sorted(hold.got - hold.wanted for hold in holds if hold.got is not None)
    if not waits:
        return f"{name} {resource}: {len(holds)} wanted, none got"
    counts = collections.Counter(hold.life.split(".")[0] for hold in holds if hold.got is not None and
                                 histories.clients[hold.life]["style"].startswith("busy") and
                                 histories.clients[hold.life]["mode"] != "tool")
    jain = sum(counts.values()) ** 2 / (len(counts) * sum(n * n for n in counts.values())) if counts else 1
    return (f"{name} {resource}: {len(holds)} wanted, {len(waits)} got; waited p50 {at(waits, .5):.0f} ms, p99 "
            f"{at(waits, .99):.0f} ms, at most {waits[-1] / 1e6:.0f} ms; Jain {jain:.2f}; "
            f"{sum(hold.token > 0 for hold in holds)} tokens, {sum(hold.floored for hold in holds)} floored; "
            f"{sum(hold.checks for hold in holds)} checks")


def judge(folder):
    """The breaches, and the lines of the summary."""
    histories = Histories(folder)
    lines = []
    for name, site in histories.sites.items():
        for resource, holds in by_resource(site.holds):
            judge_holders(histories, name, resource, holds)
            if site.tokens:
                judge_tokens(histories, name, resource, holds)
            if resource != "any":
                lines.append(summary(name, resource, holds, histories))
        if any_of := [hold for hold in site.holds if hold.any]:
            lines.append(summary(name, "any", any_of, histories))
    judge_end(histories)
    return histories.breaches, lines


def tell(breaches, lines):
    """The exit status."""
    print("\n".join(lines))
    told = collections.Counter()
    for rule, text in breaches:
        told[rule] += 1
        if told[rule] <= 10:
            print(f"BREACH {rule}: {text}")
    print(f"{len(breaches)} breaches" + "".join(f", {rule}: {number}" for rule, number in told.items()))
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(tell(*judge(sys.argv[1])))
