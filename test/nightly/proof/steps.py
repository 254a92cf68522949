# SPDX-License-Identifier: MIT
"""Exclusion: the steps. Each takes its parameters from anywhere: whoever, whichever master, any data, any duration.

`weak` takes one rule out (protocol.py). What a parameter of a run is can be chosen (runs.py).
"""
from kernel import BOOL, FALSE, REAL, TRUE, Step, all_of, any_of, at, choose, implies, largest, no
from protocol import ATTEMPT, CLIENT, MASTER, QID, QUORUM, REPLID

PARAMETERS = {"x": ATTEMPT, "k": MASTER, "cl": CLIENT, "quorum": QUORUM, "duration": REAL, "r": REPLID, "u": QID,
              "new_id": REPLID, "new_qid": QID, "new_expiry": REAL, "stays": BOOL}
DATA = ("has", "key", "expiry", "record", "qid", "sealed", "seal_id", "seal_qid")
VISITS = ("visit", "visit_id", "visit_qid", "visit_since")


class Steps:
    def __init__(self, site, s, tag="", chosen=None):
        self.site, self.s, self.tag, self.weak = site, s, tag, site.weak
        for name, sort in PARAMETERS.items():
            setattr(self, name, (chosen or {}).get(name) or site.world.constant(f"{name}{tag}", sort))

    def all(self):
        return [self.time(), *self.rounds(), *self.writes(), *self.ends(), *self.losses(), *self.replicas(),
                *self.watches(), *self.visits()]

    def is_weak(self, *names):
        return self.weak in names

    # ---- time ----

    def time(self):
        s, w, tag = self.s, self.site.world, self.tag
        clock, watch = w.function(f"clock after{tag}", CLIENT, REAL), w.function(f"watch after{tag}", CLIENT, REAL)
        ticks = w.function(f"ticks after{tag}", MASTER, REAL)
        d = self.duration
        return Step("time passes", [
            d >= 0, self.site.every(lambda c: all_of(clock(c) >= s.clock(c) + d, watch(c) <= s.watch(c) + d)),
            self.site.every(lambda m: ticks(m) <= s.ticks(m) + d),
        ], {"now": s.now + d, "clock": clock, "watch": watch, "ticks": ticks})

    # ---- a client: its rounds ----

    def rounds(self):
        s, x, site, now = self.s, self.x, self.site, self.site.clock_of(self.s, self.x)
        some_validity = [self.duration > 0, self.duration <= site.longest]
        begin_round = {"t0": at(s.t0, x, now), "validity": at(s.validity, x, self.duration)}
        yield Step("begin", [no(s.begun(x)), *some_validity], {"begun": at(s.begun, x, True), **begin_round})
        yield Step("extend round", [s.won(x), no(s.ended(x)), *some_validity],
                   {**begin_round, "executed": self.without_votes(s.executed), "heard": self.without_votes(s.heard)})
        was_executed = [s.executed(self.k, x)] if not self.is_weak("a vote of an earlier round counts") else []
        yield Step("a vote is heard", was_executed, {"heard": at(s.heard, (self.k, x), True)})

        start = s.t0(x) if not self.is_weak("valid from the decision") else now
        until = start + s.validity(x)
        longer = any_of(no(s.won(x)), until >= s.valid_until(x))
        alive = implies(s.won(x), now < s.valid_until(x))
        quorum_heard = site.every(lambda m: implies(site.member(m, self.quorum), s.heard(m, x)))
        conditions = [s.begun(x), quorum_heard, now < until]
        conditions += [no(s.ended(x))] if not self.is_weak("an ended lock is revived") else []
        conditions += [alive] if not self.is_weak("extend after expiry") else []
        yield Step("win", conditions, {
            "won": at(s.won, x, True), "ended": at(s.ended, x, False),
            "valid_until": at(s.valid_until, x, choose(longer, until, s.valid_until(x))),
            "deciders": at(s.deciders, x, choose(longer, self.quorum, s.deciders(x)))})

    def without_votes(self, votes):
        def changed(m, a):
            return all_of(votes(m, a), no(a == self.x))
        changed.sorts, changed.sort = votes.sorts, votes.sort
        return changed

    # ---- a master: what it executes, at any time after the attempt began, and as often as you like ----

    def writes(self):
        s, x, k, site = self.s, self.x, self.k, self.site
        fits = site.fits(s, k)
        free = no(s.has(k))
        lives = self.new_expiry >= s.ticks(k) + (0 if self.is_weak("a key may expire early") else s.validity(x))
        write = {"has": at(s.has, k, True), "key": at(s.key, k, x), "expiry": at(s.expiry, k, self.new_expiry)}
        until = site.clock_of(s, x) + s.validity(x)
        vote = {"executed": at(s.executed, (k, x), True),
                "promise": at(s.promise, (k, x), largest(s.promise(k, x), until))}
        nx = [free] if not self.is_weak("SET without NX") else []
        yield Step("SET by a script", [s.begun(x), fits, lives, *nx], {**write, **vote})
        plain = site.plain(s, site.owner(x), k)
        yield Step("SET, plain", [s.begun(x), plain, lives, *nx], {**write, **vote})
        # Its reply comes behind the push that all keys are gone, or after its reading's life: it does not count.
        counts = vote if self.is_weak("a plain reply counts after a push") else {}
        yield Step("SET, plain, uncounted", [s.begun(x), s.is_master(k), free], {**write, **counts})

        # At any time: neither a grant nor an extend that was won has to come before.
        back_votes = {"executed": at(s.executed, (k, x), True)} if self.is_weak("a put-back votes") else {}
        back_nx = [free] if not self.is_weak("put-back without NX") else []
        yield Step("put back", [s.begun(x), fits, *back_nx], {**write, **back_votes})

        mine = [s.has(k), s.key(k) == x] if not self.is_weak("an extend counts a key that is not its own") else []
        later = largest(s.expiry(k), self.new_expiry)
        if self.is_weak("an extend shortens"):
            later = self.new_expiry
        stretch = {"expiry": at(s.expiry, k, later)}
        yield Step("extend", [s.begun(x), fits, lives, *mine], {**stretch, **vote})
        may = [plain] if not self.is_weak("plain extends always") else []
        yield Step("extend, plain", [s.begun(x), *may, lives, *mine], {**stretch, **vote})
        # An extend of an earlier round, or a plain one whose reply comes too late. It may have compared nothing.
        counts = vote if self.is_weak("a late extend counts") else {}
        yield Step("extend, uncounted", [s.begun(x), *mine], {**stretch, **counts})

    def ends(self):
        s, x, k = self.s, self.x, self.k
        remove = {"has": at(s.has, k, False)}
        yield Step("a key expires", [s.has(k), s.expiry(k) <= s.ticks(k)], remove)
        over = [s.ended(x)] if not self.is_weak("a delete before the end") else []
        own = [s.key(k) == x] if not self.is_weak("a delete without compare") else []
        yield Step("delete", [s.has(k), *over, *own], remove)
        yield Step("end", [s.begun(x)], {"ended": at(s.ended, x, True)})
        yield Step("a check fails", [s.won(x), any_of(s.ended(x), self.site.clock_of(s, x) >= s.valid_until(x))],
                   {"expired": at(s.expired, x, True)})

    # ---- a server: it loses something, or its state changes ----

    def change(self, when=TRUE):
        s, k = self.s, self.k
        def before(a, m):
            return choose(all_of(m == k, when), s.begun(a), s.before(a, m))
        before.sorts, before.sort = s.before.sorts, s.before.sort
        return {"changed": at(s.changed, k, choose(when, s.now + self.site.longest, s.changed(k))), "before": before}

    def loss(self):
        return {"barred": at(self.s.barred, self.k, self.s.now + self.site.longest), **self.change()}

    def all_clients(self, function, value):
        """The function of clients and masters, changed for this master."""
        def changed(c, m):
            return choose(m == self.k, value(c) if callable(value) else value, function(c, m))
        changed.sorts, changed.sort = function.sorts, function.sort
        return changed

    def any_data(self):
        """An older copy, a backup, another server's data: every id in it was made before."""
        s, k, w = self.s, self.k, self.site.world
        new = {name: w.constant(f"data {name}{self.tag}", getattr(s, name).sort) for name in DATA}
        notes = {name: w.function(f"data {name}{self.tag}", CLIENT, getattr(s, name).sort) for name in VISITS}
        was_made = [implies(new["record"], s.made_qid(new["qid"])), implies(new["sealed"], s.made_id(new["seal_id"])),
                    self.site.every(lambda c: implies(notes["visit"](c), all_of(
                        s.made_id(notes["visit_id"](c)), s.made_qid(notes["visit_qid"](c)))))]
        changes = {name: at(getattr(s, name), k, value) for name, value in new.items()}
        changes |= {name: self.all_clients(getattr(s, name), value) for name, value in notes.items()}
        return was_made, changes

    def new_identity(self):
        s = self.s
        return [no(s.made_id(self.new_id))], {"replid": at(s.replid, self.k, self.new_id),
                                              "made_id": at(s.made_id, self.new_id, True)}

    def losses(self):
        s, k = self.s, self.k
        told = {"plain_may": self.all_clients(s.plain_may, FALSE)}  # by a push, or by the end of the connection
        untold = {} if self.is_weak("a plain command on an untracked connection") else told
        no_notes = {"visit": self.all_clients(s.visit, FALSE)}
        empty = {name: at(getattr(s, name), k, False) for name in ("has", "record", "sealed")}
        alone = {name: at(getattr(s, name), k, False) for name in ("follower", "backlog", "twin")}
        yield Step("FLUSHALL", [s.is_master(k)], {**empty, **no_notes, **self.loss(), **untold})

        made, data = self.any_data()
        fresh, identity = self.new_identity()
        same = {} if self.is_weak("a restart keeps the replication id") else identity
        other_data = {**data, **self.loss(), **alone}
        yield Step("restart", made + fresh, {**other_data, **told, **same, "is_master": at(s.is_master, k, True)})
        replica = {**other_data, "is_master": at(s.is_master, k, False), "replid": at(s.replid, k, self.r)}
        other = made + [s.made_id(self.r)]
        yield Step("becomes a replica by a full resync", other, {**replica, **untold})
        # No push: the other server was this one's replica, and has the same history.
        yield Step("becomes a replica by a partial resync", other + [s.is_master(k), s.twin(k)], replica)
        yield Step("the replica copies", other + [no(s.is_master(k))], replica)
        same = {} if self.is_weak("a promotion keeps the replication id") else identity
        # A server that follows another one refuses writes, but is a master here until it has copied something.
        yield Step("has followed in vain", [s.is_master(k), *fresh], {**self.change(), **same})
        yield Step("is promoted", [no(s.is_master(k)), *fresh],
                   {**self.change(), **alone, **same, "is_master": at(s.is_master, k, True)})

    def replicas(self):
        s, k = self.s, self.k
        fresh, identity = self.new_identity()
        first = no(s.backlog(k))  # the first replica begins a backlog, and with it another replication id
        yield Step("a replica attaches", [s.is_master(k), *fresh], {
            **self.change(when=first), "made_id": identity["made_id"],
            "replid": at(s.replid, k, choose(first, self.new_id, s.replid(k))),
            "follower": at(s.follower, k, True), "backlog": at(s.backlog, k, True),
            "attached": at(s.attached, k, choose(s.follower(k), s.attached(k), s.now))})
        fast = self.is_weak("a role cycle within one reading")
        slow = [s.now > s.attached(k) + self.site.reading] if not fast else []
        yield Step("a replica of it is promoted", [s.follower(k), *slow],
                   {"follower": at(s.follower, k, self.stays), "twin": at(s.twin, k, True)})
        yield Step("the last replica leaves", [s.follower(k)], {"follower": at(s.follower, k, False)})
        yield Step("the backlog ends", [s.is_master(k), no(s.follower(k)), *fresh], {
            **self.change(), **identity, "backlog": at(s.backlog, k, False), "twin": at(s.twin, k, False)})

    # ---- the guard ----

    def watches(self):
        s, k, c, weak, site = self.s, self.k, self.cl, self.is_weak, self.site
        fresh = [no(s.made_qid(self.new_qid))] if not weak("no quarantine id") else []
        yield Step("a quarantine id is written", [s.is_master(k), *fresh], {
            **self.change(), "record": at(s.record, k, True), "qid": at(s.qid, k, self.new_qid),
            "sealed": at(s.sealed, k, False), "made_qid": at(s.made_qid, self.new_qid, True),
            "visit": self.all_clients(s.visit, FALSE)})
        yield Step("a reading", [s.record(k)], {"read": at(s.read, (c, k, s.replid(k), s.qid(k)), True)})
        early = weak("a watch counts from before its reading")
        begins = [self.duration <= s.watch(c)] if early else []
        yield Step("a watch begins", [s.read(c, k, self.r, self.u), *begins], {
            "watching": at(s.watching, (c, k), True), "watched_id": at(s.watched_id, (c, k), self.r),
            "watched_qid": at(s.watched_qid, (c, k), self.u),
            "since": at(s.since, (c, k), self.duration if early else s.watch(c))})
        found = weak("whatever is found is sealed")
        state = (s.replid(k), s.qid(k)) if found else (s.watched_id(c, k), s.watched_qid(c, k))
        yield Step("a watch is over", [s.watching(c, k), s.watch(c) - s.since(c, k) >= site.guard],
                   {"asked": at(s.asked, (k, *state), True)})
        same_qid = [s.qid(k) == self.u] if not weak("the quarantine id is not compared in the seal") else []
        same_id = [s.is_master(k), s.replid(k) == self.r]
        same_id = same_id if not weak("the identity is not compared in the seal") else []
        yield Step("a seal is written", [s.asked(k, self.r, self.u), s.record(k), *same_qid, *same_id], {
            "sealed": at(s.sealed, k, True), "seal_id": at(s.seal_id, k, self.r), "seal_qid": at(s.seal_qid, k, self.u),
            "visit": self.all_clients(s.visit, FALSE)})
        alone = [no(s.follower(k)), no(s.backlog(k))]
        alone = {"plain commands always": [], "the backlog is not asked": alone[:1]}.get(self.weak, alone)
        yield Step("a reading: sealed, alone, tracked", [site.fits(s, k), *alone], {
            "plain_may": at(s.plain_may, (c, k), True), "plain_since": at(s.plain_since, (c, k), s.now)})

    def visits(self):
        """Clients that live for less than a guard time watch together, by the clock of their machine: a client here.
        The note stands on the master, so it may come back with other data."""
        s, k, c, site = self.s, self.k, self.cl, self.site
        blind = self.is_weak("a visit compares nothing")
        state = (s.replid(k), s.qid(k)) if blind else (s.watched_id(c, k), s.watched_qid(c, k))
        compared = s.is_master(k) if blind else site.is_still(s, k, *state)
        yield Step("a visit is noted", [s.watching(c, k), compared], {
            "visit": at(s.visit, (c, k), True), "visit_id": at(s.visit_id, (c, k), state[0]),
            "visit_qid": at(s.visit_qid, (c, k), state[1]), "visit_since": at(s.visit_since, (c, k), s.since(c, k))})
        same = site.is_still(s, k, s.visit_id(c, k), s.visit_qid(c, k))
        same = all_of(s.is_master(k), s.record(k)) if self.is_weak("a visit seals any state") else same
        yield Step("a visit is old enough", [s.visit(c, k), same, s.watch(c) - s.visit_since(c, k) >= site.guard],
                   {"asked": at(s.asked, (k, s.replid(k), s.qid(k)), True)})
