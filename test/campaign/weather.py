#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weather.py SECONDS --folder DIR --build BUILD [--seed N] [--server PROGRAM] [--threads N] [--tls FOLDER]
           [--sites NAME,...]

Plays the weather, inside the namespaces that run.sh makes, and writes the histories. checker.py judges them."""

import argparse
import collections
import pathlib
import signal
import subprocess
import sys
import time

from clients import LONG_MAX_TTL_MS, MAX_TTL_MS, Tool, Worker, write_config
from plant import PATIENCE, History, Plant, Server, Wrong, until
from storm import CableStorm, ClientStorm, Operator, ServerStorm, Slew

# What the weather of a site may do. Masters lose their data everywhere. `stale`: masters get old data back, with old
# counters of tokens. `clocks`: masters' wall clocks are stepped back and run off rate, and a token may be taken from
# them. No order of tokens is promised for either (redlock.h, section 9). `moves`: half of the clients lock with the
# first three masters, half with the last three, and operators change the set that counts.
SITES = {
    "five": {"masters": 5, "clients": 6, "stale": False, "clocks": False},
    "three": {"masters": 3, "clients": 5, "stale": True, "clocks": True},
    "one": {"masters": 1, "clients": 4, "stale": False, "clocks": False},
    "moving": {"masters": 5, "clients": 6, "stale": False, "clocks": False, "moves": True},
}
MODES = ("loop", "polled", "thread", "blocking")


class Site:
    """Masters, their copies, and the clients of them."""

    resources = ("w/bus", "w/door", "w/pump")

    def __init__(self, plant, name, traits, seed):
        self.plant, self.name, self.seed = plant, name, f"{seed} {name}"
        self.stale, self.clocks, self.moves = traits["stale"], traits["clocks"], traits.get("moves", False)
        self.history, self.has_nft = plant.history, plant.has_nft
        number = traits["masters"]
        self.history.line("site", name, number, "no-tokens" if self.stale or self.clocks else "tokens")
        self.masters = [Server(plant, f"{name}-{n}", plant.machine(f"{name}-{n}"), 6379) for n in range(number)]
        self.copies = {}
        for master in self.masters[-2:] if not self.moves else []:
            self.copies[master] = Server(plant, master.name + "-copy", master.machine, 6380)
        self.standby = None
        if self.stale:
            first = self.masters[0]
            self.standby = Server(plant, first.name + "-standby", first.machine, 6380)
            self.standby.follow(first)
        self.sets = [self.masters[:3], self.masters[2:]] if self.moves else [self.masters]
        self.gateways = [plant.machine(f"{name}-gw-{n}") for n in range(3)]
        self.clients = [self._client(self.gateways[n % 3], n) for n in range(traits["clients"])]
        self.clients.append(Tool(self, f"{name}-tool", self.gateways[0], "gateway", self.sets[0], "busy+token"))
        self.storms, self.slew = [], None

    def _client(self, gateway, n):
        style = ("idle" if n % 3 == 2 else "busy") + ("" if n % 4 == 3 else "+token")
        user = "unseen" if n % 3 == 1 else "gateway"  # whom no server tells about keys
        mode = MODES[(n + list(SITES).index(self.name)) % len(MODES)]  # so that each mode is idle somewhere
        return Worker(self, f"{self.name}-{n}", gateway, user, self.sets[n % len(self.sets)], mode, style)

    def machines(self):
        return [master.machine for master in self.masters] + [client.machine for client in self.clients]

    def servers(self):
        return [*self.masters, *self.copies.values()] + ([self.standby] if self.standby else [])

    def max_ttl_ms(self, masters):
        return LONG_MAX_TTL_MS if self.moves and masters == self.sets[1] else MAX_TTL_MS

    def reconfigure(self, new):
        """The process that takes the site to the set of this number."""
        files = [write_config(self.plant, f"{self.name}-set-{n}", "default", masters, self.max_ttl_ms(masters))
                 for n, masters in enumerate(self.sets)]
        with open(self.plant.folder / f"{self.name}-operator.log", "a") as log:
            return subprocess.Popen(self.gateways[1].inside(self.plant.tool, "reconfigure", "-y", str(files[1 - new]),
                                                            str(files[new])),
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def move(self, new):
        """One operator alone, as often as necessary."""
        if self.moves:
            until(f"the masters of {self.name}", lambda: self.reconfigure(new).wait(PATIENCE) == 0)

    def begin(self):
        self.move(1)  # before that, each set could be begun by its own clients: site.h
        for client in self.clients:
            client.start()
        if self.clocks:
            self.slew = Slew(self.masters, self.seed + " slew")
        for n, kind in enumerate((ServerStorm, CableStorm, ClientStorm) + ((Operator, Operator) if self.moves else ())):
            self.storms.append(kind(self, f"{self.seed} {kind.__name__} {n}", self.history))
            self.storms[-1].begin()

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
    plant.history.line("healed")
    for number in range(2):
        waiting = {}
        for site in sites:
            site.move(number)
            if number < len(site.sets):
                waiting.update({client: grants(plant, client) for client in site.clients
                                if client.masters == site.sets[number]})
        for client, before in waiting.items():
            until(f"a lock of {client.name}", lambda c=client, n=before: grants(plant, c) > n, 2 * PATIENCE)
    plant.history.line("recovered")


def look_for_keys(plant, sites):
    """Whatever a client left behind has ended after the longest ttl, and there is no other key."""
    for site in sites:
        for server in site.masters:
            server.step_to_the_latest()
    time.sleep(LONG_MAX_TTL_MS / 1000 * 1.01 + 1)
    for site in sites:
        for server in site.masters:
            for key in server.keys():
                if not key.startswith("redlock:"):
                    plant.history.line("left", site.name, server.name, key, server.ask("PTTL", key))
            plant.history.line("looked", site.name, server.name)


def play(arguments):
    folder = pathlib.Path(arguments.folder)
    build = pathlib.Path(arguments.build)
    tls = pathlib.Path(arguments.tls) if arguments.tls else None
    shim = str(build / "test/libredlock_wall_clock.so")
    plant = Plant(folder / "servers", arguments.server, arguments.threads, shim, tls)
    plant.worker, plant.tool = str(build / "test/campaign_worker"), str(build / "redlock")
    plant.histories = folder / "histories"
    plant.folder.mkdir(parents=True)
    plant.histories.mkdir()
    plant.history = History(folder / "histories" / "weather")
    plant.history.line("seed", arguments.seed)
    sites = [Site(plant, name, SITES[name], arguments.seed) for name in arguments.sites.split(",")]
    for site in sites:
        site.begin()
    time.sleep(arguments.seconds)
    for site in sites:
        site.calm()
    recover(plant, sites)
    clients = [client for site in sites for client in site.clients]
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
    parser.add_argument("--sites", default=",".join(SITES))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the namespaces end with this process
    try:
        play(parser.parse_args())
    except Wrong as wrong:
        print("weather:", wrong, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
