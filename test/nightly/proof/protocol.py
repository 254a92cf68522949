# SPDX-License-Identifier: MIT
"""Exclusion: the state of a site, what is true at the start, and the statements that every step keeps. The steps are in
steps.py, the words in README.md.

Time is real. `now` counts so that the slowest clock of a holder runs at rate 1, so `clock` of a client runs at rate 1
or more. What masters and watchers count is scaled by slowest / fastest, so `ticks` of a master and `watch` of a client
run at rate 1 or less. prove.py proves that the numbers of the library fit.
"""
from kernel import BOOL, REAL, State, Statement, World, all_of, any_of, implies, no

ATTEMPT, MASTER, CLIENT, QUORUM, REPLID, QID = "Attempt", "Master", "Client", "Quorum", "ReplicationId", "QuarantineId"
SORTS = (ATTEMPT, MASTER, CLIENT, QUORUM, REPLID, QID)
VARIABLES = {"a": ATTEMPT, "b": ATTEMPT, "m": MASTER, "c": CLIENT, "p": QUORUM, "q": QUORUM, "r": REPLID, "u": QID}

PARTS = {  # name: the sorts of its arguments, and its own
    "now": (REAL,),
    "clock": (CLIENT, REAL), "watch": (CLIENT, REAL), "ticks": (MASTER, REAL),
    # An attempt: one acquire round, and the extend rounds of the lock that it won. Each has a value of its own.
    "begun": (ATTEMPT, BOOL), "won": (ATTEMPT, BOOL), "ended": (ATTEMPT, BOOL),
    "t0": (ATTEMPT, REAL), "validity": (ATTEMPT, REAL),  # of its present round, by its client's clock
    "valid_until": (ATTEMPT, REAL),
    "expired": (ATTEMPT, BOOL),     # a check has found it over
    "deciders": (ATTEMPT, QUORUM),  # the quorum of the last round that was won
    "executed": (MASTER, ATTEMPT, BOOL), "heard": (MASTER, ATTEMPT, BOOL),  # a vote of the present round
    "promise": (MASTER, ATTEMPT, REAL),  # until then, by the client's clock, the master has promised to keep the key
    # The data of a master.
    "has": (MASTER, BOOL), "key": (MASTER, ATTEMPT), "expiry": (MASTER, REAL),
    "record": (MASTER, BOOL), "qid": (MASTER, QID),
    "sealed": (MASTER, BOOL), "seal_id": (MASTER, REPLID), "seal_qid": (MASTER, QID),
    "visit": (CLIENT, MASTER, BOOL), "visit_id": (CLIENT, MASTER, REPLID), "visit_qid": (CLIENT, MASTER, QID),
    "visit_since": (CLIENT, MASTER, REAL),
    # The server.
    "replid": (MASTER, REPLID), "is_master": (MASTER, BOOL),
    "barred": (MASTER, REAL),       # its last loss, plus the longest validity
    "changed": (MASTER, REAL),      # the last change of its state, plus the longest validity
    "before": (ATTEMPT, MASTER, BOOL),   # the attempt began before that change
    "follower": (MASTER, BOOL), "attached": (MASTER, REAL), "backlog": (MASTER, BOOL), "twin": (MASTER, BOOL),
    # The guard of the clients.
    "read": (CLIENT, MASTER, REPLID, QID, BOOL),    # a reading may be answered at any later time
    "watching": (CLIENT, MASTER, BOOL), "watched_id": (CLIENT, MASTER, REPLID), "watched_qid": (CLIENT, MASTER, QID),
    "since": (CLIENT, MASTER, REAL),
    "asked": (MASTER, REPLID, QID, BOOL),           # a seal that may be executed at any later time
    "plain_may": (CLIENT, MASTER, BOOL), "plain_since": (CLIENT, MASTER, REAL),
    "made_id": (REPLID, BOOL), "made_qid": (QID, BOOL),
}


# The rules that can be taken out: the name of the weakened protocol, and the rule in a sentence.
RULES = {
    "two quorums need not meet": "Any two quorums have a master in common.",
    "guard time too short": "A master that may have forgotten keys waits for at least the longest validity.",
    "SET without NX": "A SET grants only a key that is free.",
    "a key may expire early": "The validity is shorter than the key's life by the drift of the clocks.",
    "a delete before the end": "A value is deleted only after the end of its lock.",
    "a delete without compare": "A delete compares the value.",
    "a vote of an earlier round counts": "A reply votes only in the round that asked.",
    "valid from the decision": "The validity counts from before the first byte of the round, not from its decision.",
    "extend after expiry": "A lock that has expired is not extended.",
    "an ended lock is revived": "A lock that was given up is not revived by a late answer.",
    "an extend counts a key that is not its own": "An extend counts only a key that exists and bears its value.",
    "an extend shortens": "An extend never shortens the life of a key.",
    "a put-back votes": "A put-back votes only in a later round.",
    "put-back without NX": "A put-back writes only a key that is free.",
    "nothing is compared": "A script votes only on a master whose record is sealed for its present identity.",
    "the record alone is compared": "A script compares the server's replication id, and not the record alone.",
    "the role is not compared": "A replica does not vote.",
    "the quarantine id is not compared in the seal": "A seal is written only over the quarantine id that was watched.",
    "no quarantine id": "A watch begins with a quarantine id that nobody has used before.",
    "whatever is found is sealed": "What is sealed at the end of a watch is what was watched from its beginning.",
    "a watch counts from before its reading": "A watch counts from the reading that it rests on.",
    "a restart keeps the replication id": "A server that restarts has another replication id.",
    "a promotion keeps the replication id": "A replica that is promoted has another replication id.",
    "a plain command on an untracked connection": "A plain command goes only where a push tells of each FLUSHALL.",
    "a plain reply counts after a push": "A reply that comes behind the push that all keys are gone does not count.",
    "plain extends always": "An extend that compares no record votes only where a plain SET may.",
    "a late extend counts": "An extend of an earlier round does not count, nor a plain one behind a push.",
    "plain commands always": "Plain commands go only to a master without replicas.",
    "the backlog is not asked": "A master that keeps a backlog gets no plain commands, even without replicas.",
    "a reading never lapses": "Plain commands rest on one reading for a short time.",
    "a role cycle within one reading": "A replica is attached for longer than a reading's life before it is promoted.",
    "a visit compares nothing": "A visit is noted only of the state that was watched.",
    "a visit seals any state": "An old visit seals only the state that it names.",
}
# Without these everything is still proved. They stay as second lines of defence.
NOT_NEEDED = {
    "the identity is not compared in the seal": "A seal is written only for the identity that was watched.",
}


class Site:
    """The world, and what is constant in it. `weak` is the name of the rule that is taken out (RULES)."""

    def __init__(self, weak="", members=None):
        self.weak = weak
        self.world = w = World(SORTS, VARIABLES, members)
        self.every = w.every
        self.longest = w.constant("longest validity", REAL)
        self.guard = w.constant("guard time", REAL)
        self.reading = w.constant("life of a reading", REAL)  # counted to the execution of the last command on it
        self.member = w.function("member", MASTER, QUORUM, BOOL)
        self.owner = w.function("owner", ATTEMPT, CLIENT)
        self.common = w.function("common", QUORUM, QUORUM, MASTER)
        self.state = State({name: w.function(name, *sorts) if len(sorts) > 1 else w.constant(name, *sorts)
                            for name, sorts in PARTS.items()})

    def axioms(self):
        meet = self.every(lambda p, q: all_of(self.member(self.common(p, q), p), self.member(self.common(p, q), q)))
        positive = [self.longest > 0, self.reading > 0]
        long_enough = self.guard >= self.longest if self.weak != "guard time too short" else self.guard > 0
        return positive + [long_enough] + ([meet] if self.weak != "two quorums need not meet" else [])

    # ---- words ----

    def clock_of(self, s, a):
        return s.clock(self.owner(a))

    def believes(self, s, a):
        return all_of(s.won(a), no(s.ended(a)), self.clock_of(s, a) < s.valid_until(a))

    def left(self, s, m, a):
        return s.promise(m, a) - self.clock_of(s, a)

    def promised(self, s, m, a):
        return all_of(no(s.ended(a)), self.left(s, m, a) > 0)

    def fits(self, s, m):
        """What a script compares at the instant of writing."""
        if self.weak == "nothing is compared":
            return all_of()
        if self.weak == "the record alone is compared":
            return s.sealed(m)
        if self.weak == "the role is not compared":
            return all_of(s.sealed(m), s.seal_id(m) == s.replid(m))
        return all_of(s.sealed(m), s.is_master(m), s.seal_id(m) == s.replid(m))

    def plain(self, s, c, m):
        fresh = s.now <= s.plain_since(c, m) + self.reading
        return all_of(s.plain_may(c, m), *([fresh] if self.weak != "a reading never lapses" else []))

    def is_still(self, s, m, r, u):
        return all_of(s.is_master(m), s.replid(m) == r, s.record(m), s.qid(m) == u)

    # ---- the start: every master may have forgotten something ----

    def initial(self, s):
        return [
            self.every(lambda a: all_of(no(s.begun(a)), no(s.ended(a)), no(s.won(a)), no(s.expired(a)))),
            self.every(lambda m, a: all_of(no(s.executed(m, a)), no(s.heard(m, a)), no(s.before(a, m)),
                                           self.left(s, m, a) <= 0)),
            self.every(lambda m: all_of(no(s.has(m)), no(s.sealed(m)), no(s.record(m)), s.made_id(s.replid(m)),
                                        s.barred(m) <= s.now + self.longest, s.changed(m) <= s.now + self.longest,
                                        no(s.follower(m)), no(s.backlog(m)), no(s.twin(m)))),
            self.every(lambda c, m: all_of(no(s.watching(c, m)), no(s.plain_may(c, m)), no(s.visit(c, m)))),
            self.every(lambda c, m, r, u: no(s.read(c, m, r, u))),
            self.every(lambda m, r, u: no(s.asked(m, r, u))),
        ]

    # ---- the statements ----

    def statements(self, s):
        rows = []

        def say(invariant, name, formula):
            rows.append(Statement(invariant, name, self.every(formula)))
        self.about_the_lock(s, say)
        self.about_the_guard(s, say)
        self.about_ids(s, say)
        return rows

    def about_the_lock(self, s, say):
        longest, left = self.longest, self.left
        say(13, "one holder", lambda a, b: implies(all_of(self.believes(s, a), self.believes(s, b)), a == b))
        say(9, "over is over", lambda a: implies(
            s.expired(a), all_of(s.won(a), any_of(s.ended(a), self.clock_of(s, a) >= s.valid_until(a)))))
        say(14, "a holder has promises", lambda m, a: implies(
            all_of(s.won(a), self.member(m, s.deciders(a))), s.promise(m, a) >= s.valid_until(a)))
        say(14, "a promise is kept", lambda m, a: implies(self.promised(s, m, a), any_of(
            all_of(s.has(m), s.key(m) == a, s.expiry(m) - s.ticks(m) >= left(s, m, a)),
            s.barred(m) - s.now >= left(s, m, a))))
        say(14, "one promise", lambda m, a, b: implies(all_of(self.promised(s, m, a), self.promised(s, m, b)), a == b))
        say(14, "a promise has a bound", lambda m, a: left(s, m, a) <= longest)
        say(3, "a vote is a promise", lambda m, a: implies(
            s.executed(m, a), s.promise(m, a) >= s.t0(a) + s.validity(a)))
        say(3, "a vote that is heard was executed", lambda m, a: implies(s.heard(m, a), s.executed(m, a)))
        say(2, "a round counts from before its first byte", lambda a: implies(
            s.begun(a), all_of(s.t0(a) <= self.clock_of(s, a), s.validity(a) > 0, s.validity(a) <= longest)))
        say(4, "what has not begun has nothing", lambda m, a: implies(
            no(s.begun(a)), all_of(no(s.won(a)), no(s.executed(m, a)), left(s, m, a) <= 0)))
        say(16, "an old acquire is over in time", lambda a, m: implies(
            all_of(s.before(a, m), no(s.won(a))),
            all_of(s.begun(a), s.t0(a) + s.validity(a) - self.clock_of(s, a) <= s.changed(m) - s.now)))

    def about_the_guard(self, s, say):
        longest = self.longest
        say(15, "a bar has a bound", lambda m: s.barred(m) <= s.now + longest)
        say(16, "a change has a bound", lambda m: s.changed(m) <= s.now + longest)
        for word, since, number in (("loss", s.barred, 15), ("change", s.changed, 16)):
            self.about_waits(s, say, word, since, number)
        say(8, "plain commands rest on a quiet master", lambda c, m: implies(
            self.plain(s, c, m), all_of(s.is_master(m), s.now >= s.barred(m))))
        say(8, "a follower came after the reading", lambda c, m: implies(
            all_of(s.plain_may(c, m), s.follower(m)), s.attached(m) >= s.plain_since(c, m)))
        say(8, "a twin came after the reading's life", lambda c, m: implies(
            all_of(s.plain_may(c, m), s.twin(m)), no(self.plain(s, c, m))))
        say(8, "readings are past", lambda c, m: implies(s.plain_may(c, m), s.plain_since(c, m) <= s.now))
        say(8, "who has a follower has a backlog", lambda m: implies(
            any_of(s.follower(m), s.twin(m)), all_of(s.backlog(m), s.is_master(m))))

    def about_waits(self, s, say, word, since, number):
        def waits(m, r, u, begin, c):
            return implies(self.is_still(s, m, r, u), since(m) - s.now <= self.guard - (s.watch(c) - begin))
        say(number, f"a seal that fits is old: {word}", lambda m: implies(
            all_of(s.is_master(m), s.sealed(m), s.seal_id(m) == s.replid(m)), s.now >= since(m)))
        say(number, f"a seal under way is old: {word}", lambda m, r, u: implies(
            all_of(s.asked(m, r, u), self.is_still(s, m, r, u)), s.now >= since(m)))
        say(number, f"a watch waits: {word}", lambda c, m: implies(
            s.watching(c, m), waits(m, s.watched_id(c, m), s.watched_qid(c, m), s.since(c, m), c)))
        say(number, f"a visit waits: {word}", lambda c, m: implies(
            s.visit(c, m), waits(m, s.visit_id(c, m), s.visit_qid(c, m), s.visit_since(c, m), c)))

    def about_ids(self, s, say):
        def made(r, u):
            return all_of(s.made_id(r), s.made_qid(u))
        say(17, "ids were made: masters", lambda m: all_of(
            s.made_id(s.replid(m)), implies(s.sealed(m), s.made_id(s.seal_id(m))),
            implies(s.record(m), s.made_qid(s.qid(m)))))
        say(17, "ids were made: readings", lambda c, m, r, u: implies(s.read(c, m, r, u), made(r, u)))
        say(17, "ids were made: watches", lambda c, m: implies(
            s.watching(c, m), made(s.watched_id(c, m), s.watched_qid(c, m))))
        say(17, "ids were made: seals", lambda m, r, u: implies(s.asked(m, r, u), made(r, u)))
        say(17, "ids were made: visits", lambda c, m: implies(s.visit(c, m), made(s.visit_id(c, m), s.visit_qid(c, m))))

    def lemmas(self, s):
        """What follows from the statements, and is used elsewhere."""
        def key_is_there(m, a):
            return all_of(s.has(m), s.key(m) == a)
        return [
            ("who votes by a script keeps each promise by a key", self.every(lambda m, a: implies(
                all_of(self.fits(s, m), self.promised(s, m, a)), key_is_there(m, a)))),
            ("who votes by a plain command keeps each promise by a key", self.every(lambda c, m, a: implies(
                all_of(self.plain(s, c, m), self.promised(s, m, a)), key_is_there(m, a)))),
            ("an acquire that used a master before its change cannot win when it votes again (tokens.py assumes it)",
             self.every(lambda a, m: implies(all_of(self.fits(s, m), s.before(a, m), no(s.won(a))),
                                             self.clock_of(s, a) >= s.t0(a) + s.validity(a)))),
        ]
