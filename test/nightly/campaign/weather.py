#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weather.py SECONDS --folder DIR --build BUILD [--seed N] [--server PROGRAM] [--threads N] [--tls FOLDER [--half]]
           [--sites NAME,...] [--no-cables]

Plays the weather, inside the namespaces that run.sh makes or without cables, and writes the histories. checker.py
judges them."""

import argparse
import collections
import pathlib
import signal
import subprocess
import sys
import time

from clients import LONG_MAX_TTL_MS, MAX_TTL_MS, Tool, Worker, write_config
from plant import PATIENCE, History, Plant, Server, Wrong, until
from recorder import Recorder
from rules import Gate, Rules
from storm import CableStorm, ClientStorm, Operator, ServerStorm, Slew

# What the weather of a site may do. Masters lose their data everywhere. `stale`: masters get old data back, with old
# counters of tokens. `clocks`: masters' wall clocks are stepped back and run off rate, and a token may be taken from
# them. No order of tokens is promised for either (redlock.h, section 9). `moves`: half of the clients lock with the
# first three masters, half with the last three, and operators change the set that counts. `ruled`: one operator takes
# the site from abc to abd, adc, d and back by the rules, and masters come back as they were at any earlier moment.
SITES = {
    "five": {"masters": 5, "clients": 6, "stale": False, "clocks": False},
    "three": {"masters": 3, "clients": 5, "stale": True, "clocks": True},
    "one": {"masters": 1, "clients": 4, "stale": False, "clocks": False},
    "moving": {"masters": 5, "clients": 6, "stale": False, "clocks": False, "moves": True},
    "ruled": {"masters": 4, "clients": 8, "stale": False, "clocks": False, "ruled": True},
}
MODES = ("loop", "polled", "thread", "blocking")


class Site:
    """Masters, their copies, and the clients of them."""

    resources = ("w/bus", "w/door", "w/pump")

    def __init__(self, plant, name, traits, seed):
        self.plant, self.name, self.seed = plant, name, f"{seed} {name}"
        self.stale, self.clocks, self.moves = traits["stale"], traits["clocks"], traits.get("moves", False)
        self.ruled = traits.get("ruled", False)
        self.history, self.has_nft = plant.history, plant.has_nft
        number = traits["masters"]
        self.history.line("site", name, number, "no-tokens" if self.stale or self.clocks or self.ruled else "tokens")
        self.masters = [Server(plant, f"{name}-{n}", plant.machine(f"{name}-{n}"), 6379) for n in range(number)]
        if not (self.stale or self.clocks or self.moves or self.ruled):
            self._record()
        self.copies = {}
        for master in self.masters[-2:] if not self.moves and not self.ruled else []:
            self.copies[master] = Server(plant, master.name + "-copy", master.machine, 6380)
        self.standby = None
        if self.stale:
            first = self.masters[0]
            self.standby = Server(plant, first.name + "-standby", first.machine, 6380)
            self.standby.follow(first)
        self.sets = [self.masters[:3], self.masters[2:]] if self.moves else [self.masters]
        if self.ruled:
            a, b, c, d = self.masters
            self.sets = [[a, b, c], [a, b, d], [a, d, c], [d]]
        self.home, self.gate = 0, Gate()  # of a site that is ruled: the set of its gateways
        self.gateways = [plant.machine(f"{name}-gw-{n}") for n in range(3)]
        self.clients = [self._client(self.gateways[n % 3], n) for n in range(traits["clients"])]
        if not self.ruled:  # nobody waits for its end
            for n, style in enumerate(("busy+token", "busy+any", "busy+service")):
                self.clients.append(Tool(self, f"{name}-tool-{n}", self.gateways[n], "gateway", self.sets[0], style))
            if plant.cables:  # a sanitizer wants to be loaded before Python
                self.clients.append(Worker(self, f"{name}-python", self.gateways[1], "gateway", self.sets[0], "python",
                                           "busy+token"))
        self.storms, self.slew = [], None

    def _client(self, gateway, n):
        style = "idle" if n % 3 == 2 else "endless" if n % 4 == 3 else "busy"
        style += "+nights" if style == "idle" and (n == 5 or len(self.masters) < 4) else ""
        style += ("" if n % 4 == 3 else "+token") + ("+urgent" if n % 2 else "")
        user = "unseen" if n % 3 == 1 else "gateway"  # whom no server tells about keys
        # Each mode is idle somewhere. Where sets come and go, not every client gets a lock.
        mode = MODES[(0 if self.ruled else n + list(SITES).index(self.name)) % len(MODES)]
        return Worker(self, f"{self.name}-{n}", gateway, user, self.sets[n % len(self.sets)], mode, style)

    def _record(self):
        """The proof speaks of this site."""
        self.history.line("recorded", self.name, MAX_TTL_MS, *[master.name for master in self.masters])
        for master in self.masters:
            master.recorder = Recorder(master, self.plant.commands / master.name, self.resources)

    def machines(self):
        return [master.machine for master in self.masters] + [client.machine for client in self.clients]

    def servers(self):
        return [*self.masters, *self.copies.values()] + ([self.standby] if self.standby else [])

    def max_ttl_ms(self, masters):
        if self.ruled:
            return (2 * MAX_TTL_MS, MAX_TTL_MS, MAX_TTL_MS + 100, MAX_TTL_MS + 200)[self.sets.index(masters)]
        return LONG_MAX_TTL_MS if self.moves and masters == self.sets[1] else MAX_TTL_MS

    def apart_from(self, number):
        """The sets without a master of this one: a wrong change between the two leaves both with a quorum."""
        return [n for n, masters in enumerate(self.sets) if not set(masters) & set(self.sets[number])]

    def wait_s(self, old, new):
        """How long a call waits between the marks and its second look, nearly."""
        before, after = self.max_ttl_ms(old), self.max_ttl_ms(new)
        return (max(before / 3, 1000) + max(before - after, 0)) * 1.01 / 1000

    def clients_of(self, number):
        return [client for client in self.clients if client.masters == self.sets[number]]

    def file_of(self, number):
        masters = self.sets[number]
        return write_config(self.plant, f"{self.name}-set-{number}", "default", masters, self.max_ttl_ms(masters))

    def reconfigure(self, old, new, *options):
        """The process that takes the site from one set to another."""
        files = [str(self.file_of(number)) for number in (old, new)]
        words = self.gateways[1].inside(self.plant.tool, "reconfigure", "-y", *options, *files)
        with open(self.plant.folder / f"{self.name}-operator.log", "a") as log:
            return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def move(self, new):
        """One operator alone, as often as necessary."""
        if self.moves:
            until(f"the masters of {self.name}",
                  lambda: self.reconfigure(1 - new, new, "--old-is-new").wait(PATIENCE) == 0)

    def begin(self):
        self.move(1)  # before that, each set could be begun by its own clients: site.h
        for client in self.clients_of(0) if self.ruled else self.clients:
            client.start()
        if self.clocks:
            self.slew = Slew(self.masters, self.seed + " slew")
        for n, kind in enumerate(self._storms()):
            self.storms.append(kind(self, f"{self.seed} {kind.__name__} {n}", self.history))
            self.storms[-1].begin()

    def _storms(self):
        if self.ruled:
            return (ServerStorm, ClientStorm, Rules)
        cables = (CableStorm,) if self.plant.cables else ()
        return (ServerStorm, *cables, ClientStorm) + ((Operator, Operator) if self.moves else ())

    def calm(self):
        for storm in self.storms:
            storm.stop()
        if self.slew is not None:
            self.slew.stop()

    def counts(self):
        counts = collections.Counter()
        for storm in self.storms:
            counts.update(storm.counts)
        return counts


def grants(plant, client):
    """How many locks this life of the client has got."""
    if isinstance(client, Worker) and client.process.poll() is not None:
        raise Wrong(f"{client.life} ended by itself")
    path = plant.histories / client.life if client.life else None
    if path is None or not path.exists():
        return 0
    return sum(line.startswith("got ") for line in path.read_text().splitlines())


def recover(plant, sites):
    """The weather is over: every client must get a lock again."""
    for site in sites:
        if site.ruled:
            site.storms[-1].finish()
    plant.history.line("healed")
    for number in range(2):
        waiting = {}
        for site in sites:
            site.move(number)
            if number < len(site.sets) and (not site.ruled or number == 0):
                waiting.update({client: grants(plant, client)
                                for client in site.clients_of(site.home if site.ruled else number)})
        for client, before in waiting.items():
            until(f"a lock of {client.name}", lambda c=client, n=before: grants(plant, c) > n, 2 * PATIENCE)
    plant.history.line("recovered")


def look_for_keys(plant, sites):
    """Whatever a client left behind has ended after the longest ttl, and there is no other key."""
    for site in sites:
        for server in site.masters:
            server.step_to_the_latest()
    time.sleep(max(site.max_ttl_ms(masters) for site in sites for masters in site.sets) / 1000 * 1.01 + 1)
    for site in sites:
        for server in site.masters:
            for key in server.keys():
                if not key.startswith("redlock:"):
                    plant.history.line("left", site.name, server.name, key, server.ask("PTTL", key))
            plant.history.line("looked", site.name, server.name)


def end_all(sites):
    """Namespaces end with this process. Without them nobody else ends what a failed campaign has started."""
    for process in [one.process for site in sites for one in [*site.clients, *site.servers()]]:
        if process is not None and process.poll() is None:
            process.kill()


def play(arguments, sites):
    folder = pathlib.Path(arguments.folder)
    build = pathlib.Path(arguments.build)
    tls = pathlib.Path(arguments.tls) if arguments.tls else None
    shim = str(build / "test/libredlock_wall_clock.so")
    plant = Plant(folder / "servers", arguments.server, arguments.threads, shim, tls, arguments.half,
                  not arguments.no_cables)
    plant.worker, plant.tool = str(build / "test/campaign_worker"), str(build / "redlock")
    plant.library = str(build / "libredlock.so.0")
    plant.histories = folder / "histories"
    plant.folder.mkdir(parents=True)
    plant.commands = folder / "commands"
    plant.histories.mkdir()
    plant.commands.mkdir()
    plant.history = History(folder / "histories" / "weather")
    plant.history.line("seed", arguments.seed)
    for name in arguments.sites.split(","):
        sites.append(Site(plant, name, SITES[name], arguments.seed))
    for site in sites:
        site.begin()
    time.sleep(arguments.seconds)
    for site in sites:
        site.calm()
    recover(plant, sites)
    clients = [client for site in sites for client in site.clients if client.runs()]
    for client in clients:
        client.end()
    for client in clients:
        client.join()
    look_for_keys(plant, sites)
    for site in sites:
        print(f"{site.name}: " + ", ".join(f"{name} {count}" for name, count in sorted(site.counts().items())))
    for server in [server for site in sites for server in site.servers()]:
        server.kill()
    plant.history.line("over")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("seconds", type=float)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--server", default="redis-server")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tls", default="")
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--sites", default=",".join(SITES))
    parser.add_argument("--no-cables", action="store_true")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the namespaces end with this process
    sites = []
    try:
        play(parser.parse_args(), sites)
    except Wrong as wrong:
        print("weather:", wrong, file=sys.stderr)
        return 1
    finally:
        end_all(sites)
    return 0


if __name__ == "__main__":
    sys.exit(main())
