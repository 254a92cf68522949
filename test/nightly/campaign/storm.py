# SPDX-License-Identifier: MIT
"""The weather: what happens to the servers, cables, clocks and clients of one site, drawn from a seed.

Each blow is a generator: it strikes, yields for how many seconds, and mends what it did. All kinds come up, in an order
that the seed shuffles anew each time."""

import contextlib
import os
import random
import shutil
import signal
import threading
import time

from clients import MAX_TTL_MS
from plant import PATIENCE, Refused, until


class Storm:
    """One thread, which strikes blow after blow. stop() lets it mend the last one at once."""

    def __init__(self, site, seed, history):
        self.site, self.history = site, history
        self.random = random.Random(seed)
        self.counts = {}
        self.error = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self):
        self._thread.start()

    def stop(self):
        self._over.set()
        self._thread.join()
        if self.error is not None:
            raise self.error

    def _run(self):
        try:
            while not self._over.is_set():
                blows = self.blows()
                self.random.shuffle(blows)
                for blow in blows:
                    self._strike(blow)
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def _strike(self, blow):
        if self._over.is_set():
            return
        name = blow.__name__
        self.counts[name] = self.counts.get(name, 0) + 1
        for seconds in blow():
            self._over.wait(seconds)
        self._over.wait(self.random.uniform(0.2, 1.5))

    def tell(self, what, *whom):
        self.history.line("blow", self.site.name, what, *[one.name for one in whom])

    def seconds(self, most=3.0):
        """Mostly short, sometimes longer than a lock lives."""
        return self.random.choice((0.1, 0.5, most)) * self.random.random()


class ServerStorm(Storm):
    """What happens to masters. Where the set of masters changes they keep their data: the marks of a change are among
    them, and clients of the other set are there all the time (site.h)."""

    def __init__(self, site, seed, history):
        super().__init__(site, seed, history)
        self.pasts, self.kept_at = [], 0.0  # of a site that is ruled: its set at each copy

    def blows(self):
        some = [self.kill, self.kill, self.freeze, self.cut_clients, self.forget_scripts, self.deny, self.fill]
        if self.site.ruled:  # its guard times are long, and its operator is to get somewhere
            back = [self.come_back] * 2 + [self.come_back_between_looks] * 2 * self.site.plant.cables
            return [self.kill, self.freeze, self.cut_clients] + back + [self.rest] * 3
        if not self.site.moves:
            some += [self.wipe, self.wipe, self.flush, self.attach, self.copy_back, self.restore]
        if self.site.stale:
            some += [self.old_data, self.fail_over]
        if self.site.clocks:
            some += [self.step_back, self.wake_up_elsewhen]
        return some

    def some(self):
        """One master; each third time as many as are needed for a quorum, or all."""
        masters = self.site.masters
        return self.random.sample(masters, self.random.choice((1, 1, len(masters) // 2 + 1)))

    def kill(self):
        yield from self._restart("kill", lambda master: None)

    def wipe(self):
        yield from self._restart("wipe", lambda master: master.wipe())

    def _restart(self, what, meanwhile):
        hit = self.some()
        self.tell(what, *hit)
        for master in hit:
            master.kill()
            meanwhile(master)
        yield self.seconds()
        for master in hit:
            master.start()

    def old_data(self):
        """A restart with what a backup had."""
        master = self.random.choice(self.site.masters)
        self.tell("backup", master)
        backup = master.home / "backup"
        shutil.rmtree(backup, ignore_errors=True)
        shutil.copytree(master.data, backup)
        yield self.seconds()
        self.tell("old_data", master)
        master.kill()
        shutil.rmtree(master.data)
        shutil.copytree(backup, master.data)
        master.start()

    def _strike(self, blow):
        if self.site.ruled:
            self._keep()
            self._bring_back_wanted()
        super()._strike(blow)

    def _keep(self):
        """A copy of what every master has on its disk, each second."""
        if time.monotonic() < self.kept_at + 1:
            return
        self.kept_at = time.monotonic()
        for master in self.site.masters:
            shutil.copytree(master.data, master.home / f"past-{len(self.pasts)}")
        self.pasts.append(self.site.home)

    def _bring_back_wanted(self):
        gate = self.site.gate
        pasts = [n for n, home in enumerate(self.pasts) if home == gate.wanted]
        if pasts:
            self._bring_back(self.site.sets[gate.wanted], self.random.choice(pasts))
        gate.wanted = None

    def rest(self):
        yield self.random.uniform(0, 5)

    def come_back(self):
        """One master, or all of a set, as they were at an earlier moment, mostly one at which the set served."""
        site = self.site
        served = sorted(set(self.pasts))
        left = [number for number in served if number in site.apart_from(site.home)]
        number = self.random.choice(left if left and self.random.random() < 0.7 else served)
        whole = self.random.random() < 0.7
        hit = site.sets[number] if whole else [self.random.choice(site.masters)]
        past = self.random.choice([n for n, home in enumerate(self.pasts) if home == number and
                                   self.random.random() < 0.9] or range(len(self.pasts)))
        if self._bring_back(hit, past):
            site.gate.came_back = number if whole else None
        yield 0

    def _bring_back(self, hit, past):
        """False: nobody may come back now."""
        gate = self.site.gate
        with gate.lock:
            if gate.closed:
                return False
            self.tell(f"come_back {past}", *hit)
            for master in hit:
                master.kill()
                shutil.rmtree(master.data)
                shutil.copytree(master.home / f"past-{past}", master.data)
            for master in hit:
                master.start()
            gate.spoiled = gate.spoiled or self._may_have_entered(hit)
        return True

    def _may_have_entered(self, hit):
        """May the call under way have looked for the third time, while these masters came back? It enters a quorum of
        its new set before: one of the others at least, if these are no quorum."""
        if self.site.gate.call is None:
            return False
        new = self.site.gate.call[1]
        masters = self.site.sets[new]
        others = [master for master in masters if master not in hit]
        return len(masters) - len(others) > len(masters) // 2 or any(self._says(master, new) for master in others)

    def _says(self, master, number):
        """Does the record say that this set is served? Each set has its own max_ttl_ms."""
        said = (master.ask("HGET", "redlock::meta", "desc") or b"").decode()
        return said.startswith("v1 ") and f" max_ttl_ms={self.site.max_ttl_ms(self.site.sets[number])} " in said

    def come_back_between_looks(self):
        """All old masters, as they served, while the second look of a call waits for a master that does not hear it."""
        site, gate = self.site, self.site.gate
        for _ in range(400):
            call = gate.call
            apart = call is not None and call[1] in site.apart_from(call[0])
            serving = [n for n, home in enumerate(self.pasts) if apart and home == call[0]]
            if serving and all(self._is_marked(master) for master in site.sets[call[0]]):
                break
            yield 0.01
        else:
            return
        old, new = (site.sets[number] for number in call)
        deaf = new[0].machine
        yield site.wait_s(old, new) - 0.4  # what is sent in vain for longer is repeated too late
        self.tell("cut", deaf)
        deaf.cut()
        if old[0].saw("look", 2):
            self._bring_back(old, self.random.choice(serving))
        deaf.splice()

    @staticmethod
    def _is_marked(master):
        return (master.ask("HGET", "redlock::meta", "desc") or b"").startswith(b"moving ")

    def freeze(self):
        hit = self.some()
        self.tell("freeze", *hit)
        for master in hit:
            master.freeze()
        yield self.seconds()
        for master in hit:
            master.thaw()

    def flush(self):
        hit = self.some()
        self.tell("flush", *hit)
        for master in hit:
            master.ask("FLUSHALL")
        yield 0

    def attach(self):
        """A replica comes and goes, like redis-cli --rdb: another replication id each time, which nobody is told."""
        master, copy = self.random.choice(list(self.site.copies.items()))
        self.tell("attach", master)
        copy.follow(master)
        yield 2  # no vote rests on a reading of before: DESIGN.md names the hole that is left
        copy.lead()
        yield self.seconds()

    def copy_back(self):
        """The master takes over a copy with the guard's record and without the locks, and is a master again."""
        master, copy = self.random.choice(list(self.site.copies.items()))
        self.tell("copy_back", master)
        copy.lead()
        copy.ask("FLUSHALL")
        record = master.ask("DUMP", "redlock::meta")
        if record is not None:
            copy.ask("RESTORE", "redlock::meta", 0, record)
        master.follow(copy)
        yield self.seconds(1)
        master.lead()

    def restore(self):
        """The master's disk is new, and its data come from a replica that it had."""
        master, copy = self.random.choice(list(self.site.copies.items()))
        self.tell("restore", master)
        copy.follow(master)
        master.kill()
        master.wipe()
        copy.lead()
        if not self.site.stale:
            copy.ask("DEL", "redlock::fence")  # its numbers may be old ones: no promise is about those
        yield self.seconds()
        master.start()
        master.follow(copy)
        master.lead()

    def fail_over(self):
        """The standby, a replica from the beginning, leads for a while, loses the locks, and gives its data back."""
        master, standby = self.site.masters[0], self.site.standby
        until("the standby", lambda: standby.info("replication", "master_link_status") == "up")
        yield 6  # all clients have read that there is a replica; DESIGN.md names the hole that is left
        self.tell("fail_over", master)
        quiet = self.random.random() < 0.7 and self._pause_writes(master)  # then it may be a partial resynchronization
        if quiet:
            until("the standby's data", lambda: standby.info("replication", "slave_repl_offset") ==
                  master.info("replication", "master_repl_offset"))
        standby.lead()
        for key in standby.keys():
            if not key.startswith("redlock:"):
                standby.ask("DEL", key)
        partial = int(standby.info("stats", "sync_partial_ok"))
        master.follow(standby)
        if int(standby.info("stats", "sync_partial_ok")) > partial:
            self.counts["partial"] = self.counts.get("partial", 0) + 1
        yield self.seconds(0.5)
        master.lead()
        if quiet:
            master.ask("CLIENT", "UNPAUSE")
        standby.follow(master)

    @staticmethod
    def _pause_writes(master):
        try:
            master.ask("CLIENT", "PAUSE", "20000", "WRITE")
        except Refused:  # Redis 6.0
            return False
        return True

    def cut_clients(self):
        hit = self.some()
        self.tell("cut_clients", *hit)
        for master in hit:
            master.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        yield 0

    def forget_scripts(self):
        hit = self.some()
        self.tell("forget_scripts", *hit)
        for master in hit:
            master.ask("SCRIPT", "FLUSH")
        yield 0

    def deny(self):
        rules = self.random.choice((["-eval", "-evalsha"], ["-set"], ["-info"], ["-hget", "-hset", "-hmget"], ["off"],
                                    ["-client"], ["resetkeys", "~else/*"]))
        hit = self.some()
        self.tell("deny " + ",".join(rules), *hit)
        for master in hit:
            master.ask("ACL", "SETUSER", "gateway", *rules)
        yield self.seconds()
        for master in hit:
            master.ask("ACL", "SETUSER", "gateway", "reset", "on", "nopass", *master.gateway_rules.split())

    def fill(self):
        """The master is full, or might evict keys; nothing is evicted."""
        hit = self.some()
        full = self.random.random() < 0.5
        self.tell("fill" if full else "may_evict", *hit)
        for master in hit:
            if full:
                master.ask("CONFIG", "SET", "maxmemory", "1")
            else:
                master.ask("CONFIG", "SET", "maxmemory", "500mb")
                master.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        yield self.seconds()
        for master in hit:
            master.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
            master.ask("CONFIG", "SET", "maxmemory", "0")

    def step_back(self):
        """Keys live longer then, also those of clients that were killed: a step of hours hits a minority."""
        hit = self.some()
        if len(hit) <= (len(self.site.masters) - 1) // 2 and self.random.random() < 0.3:
            microseconds = 7_200_000_000
        else:
            microseconds = self.random.choice((2_000, 300_000, 3_000_000))
        self.tell(f"step_back {microseconds} us", *hit)
        for master in hit:
            master.step_by(-microseconds)
        yield 0

    def wake_up_elsewhen(self):
        """A restart, and the clock is set meanwhile. (A step forward under a running master is no claim.)"""
        steps = (-3_000_000, 100_000, 3_000_000, 10_000_000_000)
        yield from self._restart("wake_up_elsewhen", lambda master: master.step_by(self.random.choice(steps)))


class CableStorm(Storm):
    """What happens to the cables of masters and gateways."""

    def blows(self):
        return [self.cut, self.slow] + ([self.half_open, self.lose, self.lose] if self.site.has_nft else [])

    def some(self):
        machines = list({one.name: one for one in self.site.machines()}.values())
        return self.random.sample(machines, self.random.choice((1, 1, 2)))

    def cut(self):
        hit = self.some()
        self.tell("cut", *hit)
        for machine in hit:
            machine.cut()
        yield self.seconds(5)
        for machine in hit:
            machine.splice()

    def half_open(self):
        yield from self._drop(100)

    def lose(self):
        yield from self._drop(self.random.choice((2, 10, 40)))

    def _drop(self, percent):
        hit = self.some()
        self.tell(f"lose {percent} %", *hit)
        for machine in hit:
            machine.drop(percent)
        yield self.seconds(5)
        for machine in hit:
            machine.hear()

    def slow(self):
        """So slow that answers are late by up to seconds."""
        hit = self.some()
        self.tell("slow", *hit)
        for machine in hit:
            machine.narrow(self.random.choice((8, 32, 128)), self.random.choice((3_000, 20_000)))
        yield self.seconds(5)
        for machine in hit:
            machine.widen()


class ClientStorm(Storm):
    """What happens to clients: stopped, and killed."""

    def blows(self):
        return [self.stop_one, self.stop_one, self.stop_many] + ([] if self.site.ruled else [self.kill_one])

    def stop_one(self):
        yield from self._stop([self.random.choice(self.site.clients)])

    def stop_many(self):
        yield from self._stop(self.random.sample(self.site.clients, (len(self.site.clients) + 1) // 2))

    def _stop(self, hit):
        self.tell("stop", *hit)
        for client in hit:
            client.send(signal.SIGSTOP)
        yield self.seconds()
        for client in hit:
            client.send(signal.SIGCONT)

    def kill_one(self):
        client = self.random.choice(self.site.clients)
        self.tell("kill", client)
        client.kill()
        yield self.seconds()
        client.start()


def is_long_lock(line):
    words = line.split()  # the last one is the validity in ms (worker.cpp)
    return words[:1] == ["got"] and line.endswith("\n") and int(words[-1]) > 1.25 * MAX_TTL_MS


class Operator(Storm):
    """Takes the site from one set of masters to the other, and back, whatever another operator does meanwhile."""

    def blows(self):
        return [self.move, self.move, self.give_up, self.surprise]

    def _begin(self, new):
        self.tell(f"move to {new}")
        return self.site.reconfigure(1 - new, new, "--old-is-new")

    def move(self):
        self._begin(self.random.randrange(2)).wait(PATIENCE)
        yield self.random.uniform(0, 10)

    def surprise(self):
        """To the first set, when somebody has just got a lock of the second that outlasts a guard time of the first."""
        self._begin(1).wait(PATIENCE)
        paths = [self.site.plant.histories / client.life for client in self.site.clients
                 if client.masters == self.site.sets[1]]
        with contextlib.ExitStack() as stack:
            histories = [stack.enter_context(open(path)) for path in paths if path.exists()]
            for history in histories:
                history.seek(0, os.SEEK_END)
            for _ in range(2500):
                if any(is_long_lock(line) for history in histories for line in history):
                    self.counts["surprised"] = self.counts.get("surprised", 0) + 1
                    break
                yield 0.01
        self._begin(0).wait(PATIENCE)
        yield self.random.uniform(0, 5)

    def give_up(self):
        process = self._begin(self.random.randrange(2))
        yield self.random.uniform(0, 1.5)
        process.kill()
        process.wait(PATIENCE)
        yield self.random.uniform(0, 5)


class Slew(threading.Thread):
    """Lets the clocks of masters run off rate, each by up to 0.4 %. A late thread makes no step: it lags behind."""

    period_s, most_us = 0.02, 80

    def __init__(self, masters, seed):
        super().__init__(daemon=True)
        rates = random.Random(seed)
        self._masters = [(master, rates.randint(-self.most_us, self.most_us)) for master in masters]
        self._over = threading.Event()
        self.start()

    def run(self):
        while not self._over.wait(self.period_s):
            for master, microseconds in self._masters:
                master.step_by(microseconds)

    def stop(self):
        self._over.set()
        self.join()
