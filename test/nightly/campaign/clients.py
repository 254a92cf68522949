# SPDX-License-Identifier: MIT
"""The clients of the weather campaign: programs of worker.cpp and worker.py, and commands under `redlock run`."""

import hashlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading

from plant import PATIENCE, Wrong, boot_ns

MAX_TTL_MS = 2500  # `redlock run` takes no shorter lock; a master that forgot is back within three seconds
SOURCE = pathlib.Path(__file__).resolve().parents[3]
LONG_MAX_TTL_MS = 7500  # of the second set of a site that moves: its locks may outlast a guard time of the first


def write_config(plant, name, user, masters, max_ttl_ms, pinned=False):
    """pinned: the masters' key is known, and no date of a certificate counts."""
    config = {
        "client_name": name[:16], "username": user, "password": "any",
        "masters": [{"url": m.url, "name": m.name} for m in masters],
        "defaults": {"ttl_ms": max_ttl_ms, "wait_ms": 3000},
        "timing": {"max_ttl_ms": max_ttl_ms, "node_timeout_ms": 500, "reconnect_max_ms": 1000,
                   "ping_interval_ms": 5000}}
    if any(m.url.startswith("rediss:") for m in masters):
        authority = {"ca_file": str(plant.tls / "ca.pem"), "server_name": "master.test"}
        config["tls"] = {"pin": pin_of(plant.tls / "server.key")} if pinned else authority
    path = plant.folder / f"{name}.json"
    path.write_text(json.dumps(config))
    path.chmod(0o600)
    return path


def pin_of(key):
    public = subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-outform", "DER"], capture_output=True,
                            check=True).stdout
    return "sha256:" + hashlib.sha256(public).hexdigest()


class Client:
    """One gateway's process after the other: each has a history of its own."""

    def __init__(self, site, name, machine, user, masters, pinned):
        self.site, self.name, self.machine, self.masters = site, name, machine, masters
        self.lives = 0
        self.process = None
        self.life = None
        self.config = write_config(site.plant, name, user, masters, site.max_ttl_ms(masters), pinned)

    def _begin_life(self):
        self.lives += 1
        self.life = f"{self.name}.{self.lives}"
        return self.site.plant.histories / self.life

    def runs(self):
        return self.process is not None and self.process.poll() is None

    def send(self, number):
        process = self.process
        if process is not None and process.poll() is None:
            process.send_signal(number)

    def announce(self, mode, style):
        self.site.history.line("client", self.life, self.site.name, mode, style)

    def tell_end(self, killed, status):
        self.site.history.line("killed" if killed else "exit", self.life, status)


class Worker(Client):
    """A program on the C API, or on the module for Python."""

    def __init__(self, site, name, machine, user, masters, mode, style):
        super().__init__(site, name, machine, user, masters, pinned=True)
        self.mode, self.style = mode, style
        self._random = random.Random(f"{site.seed} {name}")

    def start(self):
        history = self._begin_life()
        self.announce(self.mode, self.style)
        plant = self.site.plant
        environment = dict(os.environ)
        # Its own wall clock is hours off, which changes nothing. (A sanitizer wants to be loaded before the shim.)
        if self._random.random() < 0.3 and plant.cables:
            step = plant.folder / f"{self.life}.step"
            step.write_bytes(int(self._random.uniform(-9e9, 9e9)).to_bytes(8, "little", signed=True))
            environment.update(LD_PRELOAD=plant.shim, REDLOCK_WALL_CLOCK=str(step))
        # Its own clock runs off rate, within the drift; its machine is up for longer than others with its boot id.
        if self._random.random() < 0.3 and plant.cables:
            environment.update(LD_PRELOAD=plant.shim, REDLOCK_RATE_PPM=str(self._random.randint(-4000, 4000)))
        if self._random.random() < 0.3 and plant.cables:
            environment.update(CAMPAIGN_UP_FOR="1234")
        program = [plant.worker, self.mode, self.style]
        if self.mode == "python":
            program = [sys.executable, "-B", str(SOURCE / "test/nightly/campaign/worker.py")]
            environment.update(LIBREDLOCK=plant.library, PYTHONPATH=str(SOURCE / "src/python"))
        words = [*program, str(self._random.randrange(1 << 31)), str(self.config), str(history), *self.site.resources]
        with open(plant.folder / f"{self.name}.log", "a") as log:
            self.process = subprocess.Popen(self.machine.inside(*words), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=environment)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.tell_end(True, self.process.wait(PATIENCE))

    def end(self):
        self.send(signal.SIGTERM)

    def join(self):
        try:
            self.tell_end(False, self.process.wait(PATIENCE))
        except subprocess.TimeoutExpired:
            raise Wrong(f"{self.life} does not end") from None


class Tool(Client):
    """`redlock run`, again and again. What is stopped or killed is the tool, never its command."""

    def __init__(self, site, name, machine, user, masters, style):
        super().__init__(site, name, machine, user, masters, pinned=False)
        self.style = style
        self._random = random.Random(f"{site.seed} {name}")
        self._over = threading.Event()
        self._thread = None

    def runs(self):
        return self._thread is not None

    def start(self):
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def _run(self):
        path = self._begin_life()
        self.announce("tool", self.style)
        with open(path, "a", buffering=1) as history, open(self.site.plant.folder / f"{self.name}.log", "a") as log:
            n = 0
            while not self._over.wait(self._random.uniform(0, 1)):
                n += 1
                self._take_a_lock(path, n, history, log)
            history.write(f"bye {boot_ns()}\n")
        self.tell_end(False, 0)

    def _take_a_lock(self, path, n, history, log):
        resources = [self._random.choice(self.site.resources)]
        history.write(f"wanted {boot_ns()} {n} {'any' if '+any' in self.style else resources[0]}\n")
        options = ["-w", str(self._random.randint(1, 4)), "--kill-after", self._random.choice(("0", "2"))]
        options += ["--fencing"] if "+token" in self.style else []
        options += ["--urgent"] if self._random.random() < 0.5 else []
        plant = self.site.plant
        program = [plant.tool, "run"]
        if "+any" in self.style:
            options, resources = [*options, "--any"], self.site.resources
        if "+service" in self.style:  # each time another one: no service is held off for its short lives
            state = plant.folder / f"{self.name}.state-{n}"
            state.mkdir()
            program = [str(SOURCE / "src/tool/service/redlock-service"), "--run", str(state)]
        words = [*program, "-C", str(self.config), *options, *resources, "--", plant.worker, "--act", str(path), str(n)]
        path_of_tool = dict(os.environ, PATH=f"{pathlib.Path(plant.tool).parent}:{os.environ['PATH']}")
        self.process = subprocess.Popen(self.machine.inside(*words), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                        env=path_of_tool)
        status = self.process.wait()
        history.write(f"ended {boot_ns()} {n} {'killed' if status == -signal.SIGKILL else f'status-{status}'}\n")

    def kill(self):
        self.send(signal.SIGKILL)

    def end(self):
        self._over.set()

    def join(self):
        self._thread.join(PATIENCE)
        if self._thread.is_alive():
            raise Wrong(f"{self.life} does not end")
