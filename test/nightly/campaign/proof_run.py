#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""proof_run.py FOLDER: takes what real masters executed (recorder.py) and what clients told as a run of the proof
(test/nightly/proof), as far as both tell. FOLDER/commands has the masters' files, FOLDER/histories the clients'.

Each command is a step. A condition that it does not keep, or a statement that does not hold, is a breach. prove.py
compares the names with the proof's. Times are those of the machine, and a client's own clock runs at nearly its rate.
Exit status: 0, 1 where something is wrong."""

import bisect
import collections
import pathlib
import re
import sys

import checker

STEPS = {  # name: conditions that the proof has, which are looked at
    "win": (5, "2"),
    "SET by a script": (4, "24"),
    "SET, plain": (4, "4"),
    "extend": (5, "25"),
    "delete": (3, "23"),
    "a quarantine id is written": (2, "2"),
    "a seal is written": (5, "13"),
}
STATEMENTS = ("a holder has promises", "a promise is kept", "one promise", "a seal that fits is old: loss",
              "plain commands rest on a quiet master")

MS = 1_000_000
SLACK = 2 * MS  # of a reading of two clocks
OFF_RATE = 4  # so many thousandths a client's clock may be fast or slow (clients.py)
UNHEARD = 500 * MS  # a command that is executed so soon behind a reading may have been sent before its reply was read
ABOUT = 100 * MS  # so near to its expiry a key may be there or not: the server's clock for it is not the time it tells
VALUE = re.compile(r"[0-9a-f]{40}")
SEAL = re.compile(r"[0-9a-f]{16}:[0-9a-f]{16}:[0-9a-f]{16}")
LINE = re.compile(r"(\d+)\.(\d{6}) \[\d+ (\S+)\]((?: \"(?:[^\"\\]|\\.)*\")+)$")
WORD = re.compile(r'"((?:[^"\\]|\\.)*)"')

Key = collections.namedtuple("Key", "value end exact", defaults=(True,))  # not exact: it may live for longer
UNKNOWN = Key("?", 0)  # a key that may be there or not
Write = collections.namedtuple("Write", "at value until by")  # by: script, plain, extend; open: perhaps refused


def off(duration):
    """So much earlier or later may this duration be over for a client."""
    return SLACK + duration * OFF_RATE // 1000


def drift(ms):
    return ms * MS // 100 + 2 * MS


class Run:
    """One site. Steps are counted, and breaches told."""

    def __init__(self, max_ttl_ms):
        self.longest, self.guard = max_ttl_ms * MS - drift(max_ttl_ms), max_ttl_ms * MS + drift(max_ttl_ms)
        self.steps, self.breaches, self.quarantines = collections.Counter(), [], set()

    def need(self, holds, step, condition, text):
        assert str(condition) in STEPS[step][1]
        if not holds:
            self.breaches.append((f"condition {condition} of \"{step}\"", text))

    def state(self, holds, statement, text):
        assert statement in STATEMENTS
        if not holds:
            self.breaches.append((f"\"{statement}\"", text))


class Master:
    """What one master executes, in its order."""

    def __init__(self, run, name, lines):
        self.run, self.name = run, name
        self.writes = collections.defaultdict(list)  # by resource
        self.votes, self.deletes = collections.defaultdict(list), collections.defaultdict(list)  # by resource, value
        self.unseen = []
        self._keys = collections.defaultdict(lambda: UNKNOWN)  # None: no such key
        self._lost, self._began, self._process = 0, 0, ""
        self._q = self._seal = None  # not known
        self._copied = False  # the record is another server's: its seal names that one's line of data
        self._q_since, self._readings = 0, {}  # of connections; (at, whether a seal that fits was found)
        self._scripts = {"SET": self._set, "DEL": self._delete, "PTTL": self._extend, "PEXPIRE": self._stretch}
        self._outer, self._ahead, self._last, self._gap = None, None, 0, None
        for line in lines:
            told, text = line.rstrip("\n").split(" ", 1)
            self._read(int(told), text)
            self._last = int(told)
        if self._gap is not None:
            self.unseen.append((self._gap, self._last))

    def _read(self, told, text):
        if text == "started":
            self._began = told
        elif text == "gap":
            self._gap = self._gap if self._gap is not None else self._last
            self._forget()
        elif text.startswith("ahead "):
            self._ahead = int(text[6:])
        elif (found := LINE.match(text)) and self._ahead is not None:
            at = (int(found[1]) * 1_000_000 + int(found[2])) * 1000 - self._ahead
            self._execute(at, found[3], WORD.findall(found[4]))

    def saw_all(self, begin, end):
        after = bisect.bisect_left(self.unseen, begin, key=lambda one: one[1])
        return after == len(self.unseen) or self.unseen[after][0] > end

    def written_between(self, resource, begin, end):
        writes = self.writes[resource]
        first = bisect.bisect_right(writes, begin, key=lambda one: one.at)
        return writes[first:bisect.bisect_left(writes, end, lo=first, key=lambda one: one.at)]

    def _tell(self, at, text):
        return f"{self.name} at {at}: {text}"

    def _forget(self):
        self._keys.clear()
        self._q = self._seal = None

    def _is_there(self, key, at):
        """None: perhaps."""
        if self._keys[key] is None:
            return False
        value, end, exact = self._keys[key]
        if at < end - ABOUT:
            return True
        return None if value == "?" or not exact or at <= end + ABOUT else False

    def _execute(self, at, sender, words):
        name = words[0].upper()
        if sender != "lua":
            self._outer = (at, sender, self._arguments(words))
            if name == "SET":
                self._set(at, words, by="plain")
            elif name == "DEL":
                self._delete(at, words)  # and compares nothing
            elif name == "FLUSHALL":
                self._lost, self._q, self._seal = at, "", ""
                self._keys = collections.defaultdict(lambda: None)
            elif name == "ECHO" and words[1] == "follows":
                self._lost, self._copied = at, True
                self._forget()
        elif name == "ECHO" and words[1].startswith("snapshot "):
            self._snapshot(at, words[1].split(" "))
        elif len(words) > 2 and words[1] == "redlock::meta":
            self._record(at, name, words)
        elif name in self._scripts and not words[1].startswith("redlock:"):
            self._scripts[name](at, words)

    @staticmethod
    def _arguments(words):
        """Of a script, behind its keys."""
        return words[3 + int(words[2]):] if words[0].upper().startswith("EVAL") else []

    def _snapshot(self, at, said):
        _, process, self._q, self._seal, *keys = ("" if word == "-" else word for word in said)
        if process != self._process:
            self._process, self._lost, self._readings = process, max(self._lost, self._began), {}
            self._copied = False
        for key, value, left in zip(*[iter(keys)] * 3):
            self._keys[key] = Key(value, at + int(left) * MS) if value else None
        if self._gap is not None:
            self.unseen.append((self._gap, at))
            self._gap = None

    # ---- keys

    def _set(self, at, words, by="script"):
        key, value, options = words[1], words[2], [word.upper() for word in words[3:]]
        if not VALUE.match(value):
            return
        was_there, asks, counts = self._is_there(key, at), "NX" in options, True
        step = "SET by a script" if by == "script" else "SET, plain"
        self.run.need(asks or was_there is not True, step, 4, self._tell(at, f"{key} was not free"))
        if by == "script":
            self._fits(at, step)
        else:
            counts = self._may_be_plain(at)
        self.run.steps[step if counts else "SET, plain, uncounted"] += 1
        if by == "plain" and asks and was_there is True:
            return  # refused
        ttl, sure = int(options[options.index("PX") + 1]), was_there is False or by == "script" or not asks
        self._keys[key] = Key(value, at + ttl * MS) if sure else UNKNOWN
        vote = self._vote(at, key, value, ttl, by if sure else "open")
        if sure and counts:
            self.writes[key].append(vote)

    def _vote(self, at, key, value, ttl, by):
        vote = Write(at, value, at + ttl * MS - drift(ttl), by)
        self.votes[key, value].append(vote)
        return vote

    def _fits(self, at, step):
        """A script compares the seal, and the master has been quiet."""
        seal = next((word for word in self._outer[2] if SEAL.fullmatch(word)), "none")
        if self._seal is not None:
            self.run.need(seal == self._seal, step, 2, self._tell(at, f"{seal}, and the record has {self._seal}"))
        self._quiet(at, "a seal that fits is old: loss")

    def _may_be_plain(self, at):
        """It counts if this connection has read the state since the last loss, and rests on that reading. Behind a
        reading without a seal that fits it was perhaps sent before the answer, which makes the client count no vote."""
        read, found_seal = self._readings.get(self._outer[1], (0, False))
        if read <= self._lost or not (found_seal or at > read + UNHEARD):
            return False
        self._quiet(at, "plain commands rest on a quiet master")
        return True

    def _quiet(self, at, statement):
        self.run.state(at >= self._lost + self.run.longest - off(self.run.longest), statement,
                       self._tell(at, f"its last loss was at {self._lost}"))

    def _extend(self, at, words):
        """The script reads how long a key lives only behind the comparison of all values."""
        arguments, key = self._outer[2], words[1]
        if len(arguments) < 2 or not VALUE.match(arguments[0]) or not arguments[1].isdigit():
            return  # a look
        value, ttl = arguments[0], int(arguments[1])
        there = self._is_there(key, at)
        self.run.steps["extend"] += 1
        known = there is not True or self._keys[key].value == value
        self.run.need(known, "extend", 5, self._tell(at, f"{key} has {self._keys[key]}, not {value}"))
        if len(arguments) > 2:
            self._fits(at, "extend")
        end = (self._keys[key].end, self._keys[key].exact) if there else (at + ttl * MS, False)
        self._keys[key] = Key(value, *end)
        self._vote(at, key, value, ttl, "extend")

    def _stretch(self, at, words):
        """The script does so where the key would end earlier."""
        key, end = words[1], at + int(words[2]) * MS
        kept = self._is_there(key, at) is not True or end >= self._keys[key].end - ABOUT
        self.run.state(kept, "a promise is kept", self._tell(at, f"{key} shall end at {end}, not {self._keys[key]}"))
        if self._keys[key] is not None:
            self._keys[key] = Key(self._keys[key].value, end)

    def _delete(self, at, words):
        value, key = (self._outer[2] or ["none"])[0], words[1]
        self.run.steps["delete"] += 1
        own = self._is_there(key, at) is not True or self._keys[key].value == value
        self.run.need(own, "delete", 3, self._tell(at, f"{key} has {self._keys[key]}, not {value}"))
        if own:
            self.deletes[key, value].append(at)
        self._keys[key] = None

    # ---- the guard

    def _record(self, at, name, words):
        if name == "HMGET" and words[2:4] == ["desc", "q"] and "names" in words:
            self._readings[self._outer[1]] = (at, self._has_fitting_seal())
        elif name == "HDEL" and words[2] == "seal":
            self._seal = ""
        elif name == "HSET" and words[2] == "seal":
            self._sealed(at, words[3])
        elif name == "HSET" and words[2] == "desc" and self._q is None:
            self._q = words[5]  # written now, or before the gap
        elif name == "HSET" and words[2] == "desc" and words[5] != self._q:
            self._q, self._q_since = words[5], at
            self.run.steps["a quarantine id is written"] += 1
            self.run.need(self._q not in self.run.quarantines, "a quarantine id is written", 2, self._tell(at, self._q))
            self.run.quarantines.add(self._q)

    def _has_fitting_seal(self):
        run_id, _, q = (self._seal or "::").split(":")
        return self._process.startswith(run_id) and q == self._q != "" and not self._copied

    def _sealed(self, at, seal):
        self.run.steps["a seal is written"] += 1
        q, since = seal.split(":")[2], max(self._lost, self._q_since)
        self.run.need(at >= since + self.run.guard - off(self.run.guard), "a seal is written", 1,
                      self._tell(at, f"{(at - since) / MS:.3f} ms after {since}"))
        self.run.need(self._q is None or q == self._q, "a seal is written", 3, self._tell(at, f"{q}, not {self._q}"))
        self._seal, self._copied = seal, False
        self._readings[self._outer[1]] = (at, True)


# ---- clients' stories -----------------------------------------------------------------------------------------------

class Judge:
    def __init__(self, run, site, masters):
        self.run, self.masters, self.quorum = run, masters, site.masters // 2 + 1
        self.judged = self.unseen = 0
        first = {}
        for master in masters:
            for place, votes in master.votes.items():
                first[place] = min(votes[0].at, first.get(place, votes[0].at))
        self._values = collections.defaultdict(list)  # of a client's name and a resource: when each was set first
        for (resource, value), at in sorted(first.items(), key=lambda one: one[1]):
            self._values[value[41:], resource].append((at, value))
        for hold in site.holds:
            if hold.got is not None:
                self._look(hold)

    def _look(self, hold):
        """Its value is the last one of this client that a quorum had when it got the lock: what it had given up
        before was deleted there."""
        name = hold.life.rsplit(".", 1)[0][:16]
        for resource in hold.resources:
            values = self._values[name, resource]
            begun = [value for _, value in values[bisect.bisect_left(values, (hold.wanted - SLACK,)):
                                                  bisect.bisect_right(values, (hold.got + SLACK,))]]
            blind = sum(not master.saw_all(hold.wanted, hold.got) for master in self.masters)
            voted = {value: sum(self._voted(master, resource, value, hold.got) for master in self.masters)
                     for value in begun}
            won = [value for value in begun if voted[value] + blind >= self.quorum]
            self.run.steps["win"] += 1
            self.run.need(won or blind >= self.quorum, "win", 2, f"{hold.name()} got {resource} at {hold.got}; votes: "
                          f"{voted}; {blind} masters not seen")
            value = won[-1] if won else None
            if value is None or hold.interval() is None or voted[value] < self.quorum:
                self.unseen += 1
                continue
            self.judged += 1
            self._judge(hold, resource, value)

    @staticmethod
    def _voted(master, resource, value, until):
        votes = master.votes.get((resource, value))
        return (votes is not None and votes[0].at <= until + SLACK and
                not any(at <= until for at in master.deletes[resource, value]))

    def _judge(self, hold, resource, value):
        # What was told in the beginning may be over a little earlier.
        end, promised = hold.interval()[1], 0
        end -= off(self.run.longest) if hold.letgo is None else SLACK
        for master in self.masters:
            # What is set after the lock was won is a put-back, and no vote.
            votes = [one for one in master.votes[resource, value] if one.at <= hold.answered + SLACK and
                     (one.by == "extend" or one.at <= hold.got + SLACK)]
            sure = [one for one in votes if one.by != "open"]
            longest = max((one.until + off(one.until - one.at) for one in votes), default=0)
            promised += longest >= hold.until or not master.saw_all(hold.wanted, hold.answered)
            for at in master.deletes[resource, value]:
                self.run.need(at >= end, "delete", 2, f"{master.name} at {at}: {hold.name()} holds {resource} "
                              f"until {end}")
            # Between two promises the key may have expired here: the others of a quorum kept it.
            others = [(one, vote) for vote in sure for one in master.written_between(
                resource, vote.at, min(end, vote.until - SLACK)) if one.value != value]
            self.run.state(not others, "one promise", f"{master.name}: {hold.name()} has {resource}, and {others[:1]}")
        self.run.state(promised >= self.quorum, "a holder has promises", f"{hold.name()} holds {resource} until "
                       f"{hold.until}; {promised} masters promised that")


def judge(folder):
    """The breaches, and the lines of the summary."""
    folder = pathlib.Path(folder)
    histories, breaches, lines = checker.Histories(folder / "histories"), [], []
    for name, (max_ttl_ms, masters) in histories.recorded.items():
        run, judged = Run(max_ttl_ms), []
        for master in masters:
            with open(folder / "commands" / master, encoding="ascii") as file:
                judged.append(Master(run, master, (line for line in file if line.endswith("\n"))))
        clients = Judge(run, histories.sites[name], judged)
        breaches += run.breaches
        lines.append(f"{name}, as a run of the proof: {sum(run.steps.values())} steps, " +
                     ", ".join(f"{number} {step}" for step, number in sorted(run.steps.items())) +
                     f"; {clients.judged} holds judged, {clients.unseen} not seen well enough")
    return breaches, lines


if __name__ == "__main__":
    sys.exit(checker.tell(*judge(sys.argv[1])))
