# SPDX-License-Identifier: MIT
"""Runs with three masters, three attempts and three clients: the steps are given; the solver finds times, ids and data.

HAPPENS: what the protocol is for does happen. BREAKS: each weakened rule makes two holders; the same run with the rule
is impossible.
"""
from kernel import Term, all_of, no, run_of
from protocol import ATTEMPT, CLIENT, MASTER, QUORUM, Site
from steps import PARAMETERS, Steps

PREFIX = {ATTEMPT: "x", MASTER: "m", CLIENT: "c", QUORUM: "q"}
PAIRS = ((0, 1), (0, 2), (1, 2))
MEMBERS = {sort: [Term(sort, f"{prefix}{i}") for i in range(3)] for sort, prefix in PREFIX.items()}


def step(name, **chosen):
    """A step; a number chooses the thing of that number, quorum=(i, j) the two masters."""
    if "quorum" in chosen:
        chosen["quorum"] = PAIRS.index(tuple(sorted(chosen["quorum"])))
    return [(name, {p: MEMBERS[PARAMETERS[p]][i] if PARAMETERS[p] in MEMBERS else i for p, i in chosen.items()})]


TIME = step("time passes")


def watch(k, c=2):
    return step("a quarantine id is written", k=k) + step("a reading", cl=c, k=k) + step("a watch begins", cl=c, k=k)


def seal(k, c=2):
    return step("a watch is over", cl=c, k=k) + step("a seal is written", k=k)


def admit(*masters):
    return sum(map(watch, masters), []) + TIME + sum(map(seal, masters), [])


def votes(x, masters, how):
    return sum([step(how, x=x, k=k) + step("a vote is heard", x=x, k=k) for k in masters], [])


def get(x, i, j, how="SET by a script"):
    return step("begin", x=x) + votes(x, (i, j), how) + step("win", x=x, quorum=(i, j))


def extend(x, i, j):
    return step("extend round", x=x) + votes(x, (i, j), "extend") + step("win", x=x, quorum=(i, j))


def plain_get(x, k, other, how="SET, plain"):
    return (step("begin", x=x) + votes(x, (k,), how) + votes(x, (other,), "SET by a script") +
            step("win", x=x, quorum=(k, other)))


ALL = admit(0, 1, 2)
HELD = ALL + get(0, 0, 1)
FLUSHED = HELD + step("FLUSHALL", k=0)
PLAIN = step("a reading: sealed, alone, tracked", cl=1, k=0)
STRAY = step("begin", x=2) + step("end", x=2)
# A lock on all masters; one loses the key, and is admitted again while the lock lives on by extends.
LONG = (ALL + step("begin", x=0) + votes(0, (0, 1, 2), "SET by a script") + step("win", x=0, quorum=(0, 1)) +
        step("FLUSHALL", k=0) + watch(0) + TIME + extend(0, 1, 2) + TIME + seal(0))
# A second key is lost, on m1. m0 votes for x1, and restarts with an old copy that has x0. x0 relies on it.
READ = step("a reading: sealed, alone, tracked", cl=0, k=0)
TWO_LOST = (LONG + extend(0, 1, 2) + READ + step("FLUSHALL", k=1) + watch(1) + TIME + step("begin", x=1) +
            votes(1, (0,), "SET by a script") + step("restart", k=0) + step("extend round", x=0))
THEN = (votes(0, (2,), "extend") + step("win", x=0, quorum=(0, 2)) + TIME + seal(1) +
        votes(1, (1,), "SET by a script") + step("win", x=1, quorum=(0, 1)))
CYCLE = (step("becomes a replica by a partial resync", k=0) + step("is promoted", k=0))
PROMOTED = step("a replica of it is promoted", k=0)
EXPIRED = step("a key expires", k=0) + step("a key expires", k=1)


def holds(x):
    return lambda site, s: site.believes(s, MEMBERS[ATTEMPT][x])


def two_holders(site, s):
    return all_of(site.believes(s, MEMBERS[ATTEMPT][0]), site.believes(s, MEMBERS[ATTEMPT][1]))


def held_for_long(site, s):
    x, c = MEMBERS[ATTEMPT][0], MEMBERS[CLIENT][0]
    return all_of(site.believes(s, x), s.clock(c) > s.valid_until(x) - 1, s.now > 21)


def fits_nothing(site, s):
    k = MEMBERS[MASTER][0]
    return all_of(s.is_master(k), s.sealed(k), s.record(k), s.has(k), no(site.fits(s, k)))


def fits_something(site, s):
    return site.fits(s, MEMBERS[MASTER][0])


def believes_again(site, s):
    x = MEMBERS[ATTEMPT][0]
    return all_of(s.expired(x), site.believes(s, x))


HAPPENS = {
    "hold: by scripts": (HELD, holds(0)),
    "hold: by plain commands": (
        admit(0, 1) + step("a reading: sealed, alone, tracked", cl=0, k=0) +
        step("a reading: sealed, alone, tracked", cl=0, k=1) + get(0, 0, 1, "SET, plain"), holds(0)),
    "extend: held past the first validity": (HELD + TIME + extend(0, 0, 1) + TIME, held_for_long),
    "extend: by a plain command on one master": (
        HELD + TIME + READ + step("extend round", x=0) + votes(0, (0,), "extend, plain") + votes(0, (1,), "extend") +
        step("win", x=0, quorum=(0, 1)) + TIME, held_for_long),
    "loss, watch, admission, next holder": (
        HELD + TIME + extend(0, 0, 1) + step("FLUSHALL", k=0) + admit(0) + step("a key expires", k=1) +
        step("end", x=0) + get(1, 0, 1), holds(1)),
    "put-back: the key is put back, and votes in the next round": (
        LONG[:-2] + extend(0, 1, 2) + TIME + seal(0) + step("put back", x=0, k=0) + extend(0, 0, 1), holds(0)),
    "put-back: a master that was not asked gets the key at once, and stands in for another": (
        HELD + step("put back", x=0, k=2) + step("FLUSHALL", k=0) + TIME + extend(0, 1, 2) + TIME, held_for_long),
    "role cycle: the old record fits nothing": (
        admit(0) + step("a replica attaches", k=0) + TIME + PROMOTED + CYCLE, fits_nothing),
    "visit: short lives end a watch together": (
        watch(0, 1) + step("a visit is noted", cl=1, k=0) + TIME + step("a visit is old enough", cl=1, k=0) +
        step("a seal is written", k=0), lambda site, s: site.fits(s, MEMBERS[MASTER][0])),
    "stray: a SET is executed after its attempt's end": (
        admit(0) + step("begin", x=0) + step("end", x=0) + TIME + step("SET by a script", x=0, k=0),
        lambda site, s: s.has(MEMBERS[MASTER][0])),
    "restart, delete, a failed check: another lock after all that": (
        HELD + step("extend round", x=0) + step("extend, uncounted", x=0, k=0) + step("restart", k=2) + TIME +
        step("a check fails", x=0) + step("end", x=0) + step("delete", x=0, k=0) + step("a key expires", k=1) +
        get(1, 0, 1), holds(1)),
    "replicas: come, copy, go and are promoted": (
        step("begin", x=0) + step("a replica attaches", k=0) + step("the last replica leaves", k=0) +
        step("the backlog ends", k=0) +
        step("SET, plain, uncounted", x=0, k=0) + step("becomes a replica by a full resync", k=0) +
        step("the replica copies", k=0) + step("is promoted", k=0) + step("has followed in vain", k=0) +
        admit(0), fits_something),
}

BREAKS = {
    "two quorums need not meet": (
        HELD + step("begin", x=1) + votes(1, (2,), "SET by a script") + step("win", x=1, quorum=(0, 2))),
    "guard time too short": FLUSHED + admit(0) + get(1, 0, 2),
    "SET without NX": HELD + get(1, 1, 2),
    "a key may expire early": HELD + TIME + step("a key expires", k=0) + get(1, 0, 2),
    "a delete before the end": HELD + step("delete", x=0, k=0) + get(1, 0, 2),
    "a delete without compare": ALL + STRAY + get(0, 0, 1) + step("delete", x=2, k=0) + get(1, 0, 2),
    "a vote of an earlier round counts": (
        HELD + TIME + step("extend round", x=0) + step("a vote is heard", x=0, k=0) +
        step("a vote is heard", x=0, k=1) + step("win", x=0, quorum=(0, 1)) + TIME + EXPIRED + get(1, 0, 1)),
    "valid from the decision": (
        HELD[:-1] + TIME + step("win", x=0, quorum=(0, 1)) + TIME + EXPIRED + get(1, 0, 1)),
    "extend after expiry": (
        HELD + extend(0, 0, 1)[:-1] + TIME + step("a check fails", x=0) + step("win", x=0, quorum=(0, 1))),
    "an ended lock is revived": (
        HELD + extend(0, 0, 1)[:-1] + step("end", x=0) + step("delete", x=0, k=0) + step("delete", x=0, k=1) +
        get(1, 0, 1) + step("win", x=0, quorum=(0, 1))),
    "an extend counts a key that is not its own": (
        LONG + step("FLUSHALL", k=1) + watch(1) + extend(0, 0, 2) + TIME + extend(0, 0, 2) + TIME + seal(1) +
        get(1, 0, 1)),
    "an extend shortens": (
        HELD + step("extend round", x=0) + step("extend", x=0, k=0) + TIME + step("a key expires", k=0) + get(1, 0, 2)),
    "a put-back votes": (
        LONG + step("extend round", x=0) + votes(0, (0,), "put back") + votes(0, (2,), "extend") +
        step("win", x=0, quorum=(0, 2)) + TIME + EXPIRED + get(1, 0, 1)),
    "put-back without NX": (
        HELD + STRAY + step("put back", x=2, k=0) + step("delete", x=2, k=0) + get(1, 0, 2)),
    "nothing is compared": FLUSHED + get(1, 0, 2),
    "the record alone is compared": HELD + step("restart", k=0) + get(1, 0, 2),
    "the role is not compared": HELD + step("becomes a replica by a full resync", k=0) + get(1, 0, 2),
    "the quarantine id is not compared in the seal": (
        ALL[:-1] + step("a seal is written", k=2) + step("a watch is over", cl=2, k=0) + get(0, 0, 1) +
        step("FLUSHALL", k=0) + step("a quarantine id is written", k=0) + step("a seal is written", k=0) +
        get(1, 0, 2)),
    "no quarantine id": FLUSHED + step("a quarantine id is written", k=0) + seal(0) + get(1, 0, 2),
    "whatever is found is sealed": FLUSHED + step("a quarantine id is written", k=0) + seal(0) + get(1, 0, 2),
    "a watch counts from before its reading": FLUSHED + watch(0) + seal(0) + get(1, 0, 2),
    "a restart keeps the replication id": HELD + step("restart", k=0) + get(1, 0, 2),
    "a promotion keeps the replication id": (
        HELD + step("becomes a replica by a full resync", k=0) + step("is promoted", k=0) + get(1, 0, 2)),
    "a plain command on an untracked connection": ALL + PLAIN + FLUSHED[len(ALL):] + plain_get(1, 0, 2),
    "a plain reply counts after a push": FLUSHED + plain_get(1, 0, 2, "SET, plain, uncounted"),
    "plain commands always": (
        step("a replica attaches", k=0) + TIME + ALL + PLAIN + HELD[len(ALL):] + PROMOTED + CYCLE + plain_get(1, 0, 2)),
    "the backlog is not asked": (
        step("a replica attaches", k=0) + TIME + ALL + PROMOTED + PLAIN + HELD[len(ALL):] + CYCLE + plain_get(1, 0, 2)),
    "plain extends always": TWO_LOST + votes(0, (0,), "extend, plain") + THEN,
    "a late extend counts": TWO_LOST + votes(0, (0,), "extend, uncounted") + THEN,
    "a reading never lapses": (
        ALL + PLAIN + HELD[len(ALL):] + step("a replica attaches", k=0) + TIME + PROMOTED + CYCLE + plain_get(1, 0, 2)),
    "a role cycle within one reading": (
        ALL + PLAIN + HELD[len(ALL):] + step("a replica attaches", k=0) + PROMOTED + CYCLE + plain_get(1, 0, 2)),
    "a visit compares nothing": (
        FLUSHED + step("a quarantine id is written", k=0) + step("a visit is noted", cl=2, k=0) +
        step("a visit is old enough", cl=2, k=0) + step("a seal is written", k=0) + get(1, 0, 2)),
    "a visit seals any state": (
        HELD + step("restart", k=0) + step("a visit is old enough", cl=1, k=0) + step("a seal is written", k=0) +
        get(1, 0, 2)),
}
GOALS = {"extend after expiry": believes_again}  # one client believes again; the others: two holders


def three_of_each(site, members):
    """The axioms of a site that has these, of each sort three. Any two masters are a quorum."""
    site.world.lines += [f"(declare-const {one} {one.sort})" for things in members.values() for one in things]
    axioms = [Term("Bool", f"(distinct {' '.join(map(str, things))})") for things in members.values()]
    for pair, q in zip(PAIRS, members[QUORUM]):
        masters = (2,) if pair == (0, 2) and site.weak == "two quorums need not meet" else pair
        axioms += [site.member(m, q) == (i in masters) for i, m in enumerate(members[MASTER])]
    return axioms


def question(path, goal, weak=""):
    site = Site(weak, MEMBERS)
    axioms = three_of_each(site, MEMBERS)
    axioms += [site.longest == 10, site.reading == 3, site.guard == (4 if weak == "guard time too short" else 12)]
    axioms += [site.owner(x) == c for x, c in zip(MEMBERS[ATTEMPT], MEMBERS[CLIENT])]
    def steps(s, tag, chosen):
        return Steps(site, s, tag, chosen).all()
    return run_of(site.world, axioms, site.state, site.initial, steps, path, lambda s: goal(site, s))
