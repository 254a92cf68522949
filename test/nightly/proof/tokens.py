# SPDX-License-Identifier: MIT
"""Tokens ("fence": "strict"): each is given once, and is larger than all that were given before its acquire began.

No time, no exclusion: any master grants to anybody at any moment. One sentence is taken from exclusion (the third lemma
of protocol.py): a master whose state changed votes again only when no acquire that used it before can win.
"""
from kernel import (BOOL, FALSE, INT, State, Statement, Step, TRUE, World, all_of, any_of, at, choose, implies,
                    inductive, no)

ACQUIRE, MASTER, QUORUM = "Acquire", "Master", "Quorum"
PARTS = {
    "votes": (MASTER, BOOL), "known": (MASTER, BOOL), "counter": (MASTER, INT),
    "begun": (ACQUIRE, BOOL), "over": (ACQUIRE, BOOL), "proposal": (ACQUIRE, INT),
    "second": (ACQUIRE, BOOL), "larger": (ACQUIRE, INT),  # the second script, and the token that it stores
    "used": (ACQUIRE, MASTER, BOOL),    # the master voted when the acquire began
    "pinned": (ACQUIRE, MASTER, BOOL),  # and is still in that state
    "stored_first": (MASTER, ACQUIRE, BOOL), "stored_larger": (MASTER, ACQUIRE, BOOL),
    "told": (MASTER, ACQUIRE, BOOL), "told_counter": (MASTER, ACQUIRE, INT),
    "given": (ACQUIRE, BOOL), "token": (ACQUIRE, INT), "givers": (ACQUIRE, QUORUM),
    "earlier": (ACQUIRE, ACQUIRE, BOOL),  # the first was given its token before the second began
}
PARAMETERS = {"x": ACQUIRE, "k": MASTER, "quorum": QUORUM, "one": MASTER, "number": INT, "lost": INT}
RULES = {
    "two quorums need not meet": "Any two quorums have a master in common.",
    "counters are not compared": "A master stores only a number above its counter.",
    "an equal counter will do": "A counter that is equal does not acknowledge.",
    "one counter is enough": "A larger token is above the counters of a whole quorum.",
    "the largest counter itself": "It is larger than the largest of them.",
    "a forgotten counter is known": "A counter that was forgotten is not taken for a number.",
    "no guard": "A master that forgot votes again only when no acquire that used it before can win.",
    "no pin": "All answers of one acquire come from one state of a master.",
    "a token without a quorum of counters": "A strict token is never made without a quorum of counters.",
}


class Site:
    def __init__(self, weak="", members=None):
        self.weak = weak
        variables = {"a": ACQUIRE, "b": ACQUIRE, "m": MASTER, "p": QUORUM, "q": QUORUM}
        self.world = w = World((ACQUIRE, MASTER, QUORUM), variables, members)
        self.every = w.every
        self.member = w.function("member", MASTER, QUORUM, BOOL)
        self.common = w.function("common", QUORUM, QUORUM, MASTER)
        self.state = State({name: w.function(name, *sorts) for name, sorts in PARTS.items()})

    def axioms(self):
        meet = self.every(lambda p, q: all_of(self.member(self.common(p, q), p), self.member(self.common(p, q), q)))
        return [meet] if self.weak != "two quorums need not meet" else []

    def backs(self, s, m, a):
        return choose(s.second(a), s.stored_larger(m, a), s.stored_first(m, a))

    def number(self, s, a):
        return choose(s.second(a), s.larger(a), s.proposal(a))

    def active(self, s, a):
        return all_of(s.begun(a), no(s.over(a)))

    def gave(self, s, m, b):
        return all_of(s.given(b), self.backs(s, m, b))

    def initial(self, s):
        return [self.every(lambda a: all_of(no(s.begun(a)), no(s.given(a)), no(s.over(a)), no(s.second(a)))),
                self.every(lambda a, m: all_of(no(s.used(a, m)), no(s.pinned(a, m)), no(s.stored_first(m, a)),
                                               no(s.told(m, a)), no(s.stored_larger(m, a)))),
                self.every(lambda a, b: no(s.earlier(a, b)))]

    def statements(self, s):
        rows = []

        def say(name, formula):
            rows.append(Statement(18, name, self.every(formula)))
        say("a later token is larger", lambda a, b: implies(
            all_of(s.earlier(b, a), s.given(a)), s.token(a) > s.token(b)))
        say("a token is given once", lambda a, b: implies(
            all_of(s.given(a), s.given(b), s.token(a) == s.token(b)), a == b))
        say("what is given is what was stored", lambda a: implies(
            s.given(a), all_of(s.token(a) == self.number(s, a), s.begun(a))))
        say("a quorum backs it", lambda a, m: implies(
            all_of(s.given(a), self.member(m, s.givers(a))), self.backs(s, m, a)))
        say("earlier was given", lambda a, b: implies(s.earlier(b, a), all_of(s.given(b), s.begun(a))))
        say("nobody is earlier than itself", lambda a: no(s.earlier(a, a)))
        say("an acquire that has not begun has nothing", lambda a, m: implies(no(s.begun(a)), all_of(
            no(s.given(a)), no(s.second(a)), no(s.over(a)), no(s.used(a, m)), no(s.pinned(a, m)),
            no(s.stored_first(m, a)), no(s.told(m, a)), no(s.stored_larger(m, a)))))
        say("a larger token is of the second script", lambda a, m: implies(s.stored_larger(m, a), s.second(a)))
        say("a pinned master is a used one", lambda a, m: implies(s.pinned(a, m), s.used(a, m)))
        say("only a used master answers", lambda a, m: implies(
            any_of(s.stored_first(m, a), s.told(m, a), s.stored_larger(m, a)), s.used(a, m)))
        say("a changed master does not vote while it is used", lambda a, m: implies(
            all_of(self.active(s, a), s.used(a, m), no(s.pinned(a, m))), all_of(no(s.votes(m)), no(s.known(m)))))
        say("who does not vote is not pinned", lambda a, m: implies(no(s.votes(m)), no(s.pinned(a, m))))
        say("a proposal stays", lambda a, m: implies(
            all_of(s.stored_first(m, a), s.pinned(a, m)), all_of(s.known(m), s.counter(m) >= s.proposal(a))))
        say("a larger token stays", lambda a, m: implies(
            all_of(s.stored_larger(m, a), s.pinned(a, m)), all_of(s.known(m), s.counter(m) >= s.larger(a))))
        say("who knows, knows each token that it gave", lambda b, m: implies(
            all_of(self.gave(s, m, b), s.known(m)), s.counter(m) >= s.token(b)))
        say("who asks a master that forgot began later", lambda a, b, m: implies(
            all_of(self.gave(s, m, b), no(s.known(m)), s.pinned(a, m)), s.earlier(b, a)))
        say("a counter that was told was not below", lambda a, b, m: implies(
            all_of(s.told(m, a), s.earlier(b, a), self.member(m, s.givers(b))), s.told_counter(m, a) >= s.token(b)))
        say("a proposal was above", lambda a, b, m: implies(
            all_of(s.stored_first(m, a), s.earlier(b, a), self.member(m, s.givers(b))), s.proposal(a) > s.token(b)))
        say("a larger token is above", lambda a, b: implies(
            all_of(s.second(a), s.earlier(b, a)), s.larger(a) > s.token(b)))
        say("a master backs a number once", lambda a, b, m: implies(all_of(
            self.backs(s, m, a), self.backs(s, m, b), any_of(self.active(s, a), s.given(a)),
            any_of(self.active(s, b), s.given(b)), self.number(s, a) == self.number(s, b)), a == b))
        return rows

    # ---- steps ----

    def for_one(self, function, x, value):
        """The function of acquires and others, changed for the acquire x."""
        def changed(a, other):
            return choose(a == x, value(other), function(a, other))
        return changed

    def steps(self, s, tag="", chosen=None):
        weak = self.weak
        x, k, quorum, one, number, lost = [
            (chosen or {}).get(name) or self.world.constant(f"{name}{tag}", sort) for name, sort in PARAMETERS.items()]

        def became_earlier(b, a):
            return choose(a == x, s.given(b), s.earlier(b, a))
        yield Step("begin", [no(s.begun(x))], {
            "begun": at(s.begun, x, True), "proposal": at(s.proposal, x, number), "earlier": became_earlier,
            "used": self.for_one(s.used, x, s.votes), "pinned": self.for_one(s.pinned, x, s.votes)})
        pinned = s.pinned(x, k) if weak != "no pin" else all_of(s.begun(x), s.votes(k))
        below = s.counter(k) <= s.proposal(x) if weak == "an equal counter will do" else s.counter(k) < s.proposal(x)
        yield Step("store the proposal", [pinned, s.known(k), below], {
            "counter": at(s.counter, k, s.proposal(x)), "stored_first": at(s.stored_first, (k, x), True),
            "told": at(s.told, (k, x), True), "told_counter": at(s.told_counter, (k, x), s.proposal(x))})
        yield Step("tell the counter", [pinned, s.known(k)], {
            "told": at(s.told, (k, x), True), "told_counter": at(s.told_counter, (k, x), s.counter(k))})
        yield self.choice(s, x, quorum, one, number)
        above = {"counters are not compared": TRUE, "an equal counter will do": s.counter(k) <= s.larger(x)}.get(
            weak, s.counter(k) < s.larger(x))
        yield Step("store a larger token", [pinned, s.second(x), any_of(no(s.known(k)), above)], {
            "known": at(s.known, k, True), "counter": at(s.counter, k, s.larger(x)),
            "stored_larger": at(s.stored_larger, (k, x), True)})
        backed = self.every(lambda m: implies(self.member(m, quorum), self.backs(s, m, x)))
        yield Step("give", [self.active(s, x), no(s.given(x)), backed], {
            "given": at(s.given, x, True), "token": at(s.token, x, self.number(s, x)),
            "givers": at(s.givers, x, quorum)})
        yield Step("end", [s.begun(x)], {"over": at(s.over, x, True)})

        def unpinned(a, m):
            return all_of(s.pinned(a, m), no(m == k))
        known = s.known if weak == "a forgotten counter is known" else at(s.known, k, FALSE)
        yield Step("the state changes", [], {"votes": at(s.votes, k, False), "known": known, "pinned": unpinned,
                                             "counter": at(s.counter, k, lost)})
        unused = self.every(lambda a: no(all_of(self.active(s, a), s.used(a, k))))
        yield Step("votes again", [unused] if weak != "no guard" else [], {"votes": at(s.votes, k, True)})

    def choice(self, s, x, quorum, one, number):
        def told(m, enough):
            return all_of(s.told(m, x), enough(number, s.told_counter(m, x)))
        quorum_told = self.every(lambda m: implies(self.member(m, quorum), told(m, lambda n, c: n > c)))
        condition = {
            "one counter is enough": told(one, lambda n, c: n > c),
            "the largest counter itself": self.every(
                lambda m: implies(self.member(m, quorum), told(m, lambda n, c: n >= c))),
            "a token without a quorum of counters": TRUE,
        }.get(self.weak, quorum_told)
        return Step("choose a larger token", [self.active(s, x), no(s.second(x)), no(s.given(x)), condition], {
            "second": at(s.second, x, True), "larger": at(s.larger, x, number)})


def questions(weak=""):
    site = Site(weak)
    return inductive(site.world, site.axioms(), site.state, site.initial, site.steps, site.statements)
