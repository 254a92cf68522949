# SPDX-License-Identifier: MIT
"""An operator who changes the masters of a site by the rules of redlock/site.h.

Gateways of a set start when `redlock reconfigure` has said "done", and not before. Those of the other set are ended
some time later. A call that fails or is killed is repeated or undone until one succeeds. While gateways of both sets
run, no master comes back with old data. At any other time any may, also while a call is under way. A call that may have
looked for the third time before a master came back is repeated, whatever it says: some other master of the new set
already had the new record then. A record of neither set is deleted with the line that `redlock doctor` prints, when the
gateways of all other sets have ended for long enough. While other masters bear a mark, doctor prints none for a master
that its own gateways may use, and `redlock reconfigure` does."""

import re
import subprocess
import threading
import time

from clients import MAX_TTL_MS
from plant import PATIENCE, Refused, Wrong, until
from storm import Storm

DELETE = re.compile(r"redis-cli .*\bDEL '[^']*'")


def line_for(master, said):
    """The command in these lines that deletes the record of this master."""
    for line in said.splitlines():
        found = DELETE.search(line)
        if found and master.machine.address in found.group():
            return found.group()
    return None


class Gate:
    """May masters come back? Whoever brings one back holds the lock meanwhile."""

    def __init__(self):
        self.lock = threading.Lock()
        self.closed = False
        self.call = None  # the sets that the call under way leads from and to
        self.spoiled = False  # a master may have come back behind the third look of that call
        self.came_back = None  # this set, the last time
        self.wanted = None  # the masters of this set are to come back as they served, before they are entered again


class Rules(Storm):
    def __init__(self, site, seed, history):
        super().__init__(site, seed, history)
        self._other = 1  # the change is between site.home and this set
        self._ended_at = 0.0
        self._log = site.plant.folder / f"{site.name}-operator.log"

    def blows(self):
        return [self.change]

    def change(self):
        yield self.random.uniform(0, 3)
        site = self.site
        others = [number for number in range(len(site.sets)) if number != site.home]
        likely = [site.gate.came_back] if site.gate.came_back in others else site.apart_from(site.home)
        self._other = self.random.choice(likely if likely and self.random.random() < 0.7 else others)
        if self._other in site.apart_from(site.home) and self.random.random() < 0.7:
            site.gate.wanted = self._other
            while site.gate.wanted is not None and not self._over.is_set():
                yield 0.05
        self.tell(f"change of {site.home} to {self._other}")
        came_from = site.home
        while not self._over.is_set() and self._call(came_from, self._other) is not True:
            yield self.random.uniform(0, 1)
            if self.random.random() < 0.3 and self._call(self._other, came_from) is True:
                break
        if site.gate.closed:
            yield self.random.uniform(0, 12)  # mostly longer than a guard time: then those of both sets can have locks
            self._end_others()

    def finish(self):
        """The weather is over: what is open is undone."""
        self._end_others()
        until(f"the masters of {self.site.name}", lambda: self._call(self._other, self.site.home, True) is True)
        self._end_others()

    def _call(self, old, new, calm=False, options=()):
        """True: the site has the new set, and its gateways run."""
        site = self.site
        said_before = self._log.stat().st_size if self._log.exists() else 0
        with site.gate.lock:
            site.gate.call, site.gate.spoiled = (old, new), False
        process = site.reconfigure(old, new, *options)
        try:
            status = process.wait(self.random.uniform(0, 4) if not calm and self.random.random() < 0.25 else PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(PATIENCE)
            site.gate.call = None
            self._count("killed")
            return None
        site.gate.call = site.gate.call if status == 0 else None
        if "--old-is-new" in self._log.read_text()[said_before:] and not options:
            return self._call(old, new, calm, ("--old-is-new",))  # its record was deleted, and no gateway has it
        if status == 78:
            self._count("refused")
            self._delete_records(old, new)
        if status != 0:
            return status
        with site.gate.lock:
            site.gate.call = None
            if site.gate.spoiled:
                return None
            site.gate.closed = site.gate.closed or any(client.runs() for client in site.clients_of(old))
        self._count("done")
        self.tell(f"done: {new}")
        site.home, self._other = new, old
        for client in site.clients_of(new):
            if not client.runs():
                client.start()
        return True

    def _end_others(self):
        site = self.site
        for client in site.clients:
            if not client.runs() or client in site.clients_of(site.home):
                continue
            if self.random.random() < 0.5:
                client.kill()
            else:
                client.end()
                client.join()
        self._ended_at = time.monotonic()
        site.gate.closed = False

    def _delete_records(self, old, new):
        """Of masters whose record names a set that is in neither file. Each set has its own max_ttl_ms."""
        site = self.site
        if site.gate.closed:
            self._end_others()
        time.sleep(max(0.0, self._ended_at + 2 * MAX_TTL_MS / 1000 * 1.01 - time.monotonic()))
        known = {str(site.max_ttl_ms(site.sets[number])) for number in (old, new)}
        for number in (old, new):
            for master in site.sets[number]:
                try:
                    said = (master.ask("HGET", "redlock::meta", "desc") or b"").decode()
                except (OSError, Refused):  # it is down, or loads
                    continue
                if not set(re.findall(r"max_ttl_ms=(\d+)", said)) - known:
                    continue
                line = self._line_of_doctor(number, master) or line_for(master, self._log.read_text())
                if line is None:  # it is down, or was; else the change never ends
                    self._count("doctor prints no line")
                    continue
                self.tell("delete", master)
                self._count("deleted as the tool says")
                done = subprocess.run(site.gateways[1].inside("sh", "-c", line), stdin=subprocess.DEVNULL,
                                      capture_output=True, text=True, timeout=PATIENCE)
                if done.stdout.strip() not in ("0", "1") and "onnect" not in done.stderr:
                    raise Wrong(f"{line}: {done.stdout} {done.stderr}")

    def _line_of_doctor(self, number, master):
        told = subprocess.run(self.site.gateways[1].inside(self.site.plant.tool, "doctor", "-v", "-C",
                                                           str(self.site.file_of(number))),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
        return line_for(master, told.stdout + told.stderr)

    def _count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1
