# SPDX-License-Identifier: MIT
"""Runs of tokens.py with three masters and two acquires, as runs.py: the steps are given; the solver finds the numbers.

HAPPENS: tokens are given in both ways, also after a loss. BREAKS: without each rule a token is given twice, or a later
one is not larger; the same run with the rule is impossible.
"""
from kernel import Term, all_of, any_of, run_of
from runs import PAIRS, three_of_each
from tokens import ACQUIRE, MASTER, QUORUM, Site

MEMBERS = {ACQUIRE: [Term(ACQUIRE, f"x{i}") for i in range(2)], MASTER: [Term(MASTER, f"m{i}") for i in range(3)],
           QUORUM: [Term(QUORUM, f"q{i}") for i in range(3)]}
SORTS = {"x": ACQUIRE, "k": MASTER, "one": MASTER, "quorum": QUORUM}


def step(name, **chosen):
    if "quorum" in chosen:
        chosen["quorum"] = PAIRS.index(chosen["quorum"])
    return [(name, {p: MEMBERS[SORTS[p]][i] for p, i in chosen.items()})]


def on(name, x, *masters):
    return sum([step(name, x=x, k=k) for k in masters], [])


def give(x, *quorum):
    return step("give", x=x, quorum=quorum)


def get(x, *quorum):
    """By the proposal, in one round trip."""
    return step("begin", x=x) + on("store the proposal", x, *quorum) + give(x, *quorum)


def larger(x, told, stored):
    return (on("tell the counter", x, *told) + step("choose a larger token", x=x, quorum=(1, 2), one=2) +
            on("store a larger token", x, *stored) + give(x, *stored))


FORGET = step("the state changes", k=0) + step("votes again", k=0)
# x0 has a token of m0 and m1. m0 forgets its counter, and x1 begins later.
LATER = get(0, 0, 1) + step("end", x=0) + FORGET + step("begin", x=1)


def later_is_larger(_, s):
    x, y = MEMBERS[ACQUIRE]
    return all_of(s.given(x), s.given(y), s.earlier(x, y), s.token(x) < s.token(y))


def out_of_order(_, s):
    x, y = MEMBERS[ACQUIRE]
    smaller = all_of(s.earlier(x, y), s.token(y) < s.token(x))
    return all_of(s.given(x), s.given(y), any_of(s.token(x) == s.token(y), smaller))


HAPPENS = {
    "token: by the proposals": (get(0, 0, 1) + get(1, 1, 2), later_is_larger),
    "token: after a loss, by the second script": (LATER + larger(1, (1, 2), (0, 1)), later_is_larger),
}
BREAKS = {
    "two quorums need not meet": get(0, 0, 1) + step("begin", x=1) + on("store the proposal", 1, 2) + give(1, 0, 2),
    "counters are not compared": (
        step("begin", x=1) + on("tell the counter", 1, 0, 1) +
        step("choose a larger token", x=1, quorum=(0, 1)) + get(0, 0, 1) +
        on("store a larger token", 1, 0, 1) + give(1, 0, 1)),
    "an equal counter will do": get(0, 0, 1) + get(1, 1, 2),
    "one counter is enough": LATER + larger(1, (2,), (0, 2)),
    "the largest counter itself": LATER + larger(1, (1, 2), (0, 2)),
    "a forgotten counter is known": LATER + on("store the proposal", 1, 0, 2) + give(1, 0, 2),
    "no guard": (
        step("begin", x=0) + on("store the proposal", 0, 0) + FORGET + step("begin", x=1) +
        larger(1, (1, 2), (0, 2)) + on("store the proposal", 0, 1) + give(0, 0, 1)),
    # m0 does not vote when x0 begins.
    "no pin": (
        step("begin", x=0) + step("votes again", k=0) + on("store the proposal", 0, 0) + FORGET +
        step("begin", x=1) + larger(1, (1, 2), (0, 2)) + on("store the proposal", 0, 1) + give(0, 0, 1)),
    "a token without a quorum of counters": LATER + larger(1, (), (0, 2)),
}


def question(path, goal, weak=""):
    site = Site(weak, MEMBERS)
    axioms = three_of_each(site, MEMBERS)
    return run_of(site.world, axioms, site.state, site.initial, site.steps, path, lambda s: goal(site, s))
