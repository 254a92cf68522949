# SPDX-License-Identifier: MIT
"""The plant of the weather campaign: machines (network namespaces on one switch), servers, and what is asked of them.

All of it lives in the namespaces that run.sh has made, and ends with them."""

import os
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

PATIENCE = 120  # seconds for anything that must come; a machine may be ten times slower than ours


class Wrong(Exception):
    """The campaign cannot go on."""


class Refused(Wrong):
    """A server answered an error."""


def boot_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def until(what, look, seconds=PATIENCE):
    """Waits for a true answer, and returns it."""
    end = time.monotonic() + seconds
    while not (answer := look()):
        if time.monotonic() > end:
            raise Wrong("waited in vain for " + what)
        time.sleep(0.005)
    return answer


def command(*words):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode != 0:
        raise Wrong(" ".join(words) + ": " + done.stderr.strip())


class History:
    """A file of facts, one a line."""

    def __init__(self, path):
        self._file = open(path, "a", buffering=1)
        self._mutex = threading.Lock()

    def line(self, word, *rest):
        with self._mutex:
            self._file.write(" ".join([word, str(boot_ns()), *map(str, rest)]) + "\n")


class Machine:
    """A network namespace with one cable to the switch. A cable that is cut tells neither end."""

    def __init__(self, name, address):
        self.name, self.address, self.port = name, address, "p-" + name
        command("ip", "netns", "add", name)
        command("ip", "link", "add", "name", self.port, "type", "veth", "peer", "name", "eth0", "netns", name)
        command("ip", "link", "set", self.port, "master", "switch", "up")
        self.on("ip", "address", "add", address + "/16", "dev", "eth0")
        self.on("ip", "link", "set", "eth0", "up")
        self.on("ip", "link", "set", "lo", "up")

    def inside(self, *words):
        return ["ip", "netns", "exec", self.name, *words]

    @staticmethod
    def port_for(port):
        return port

    def on(self, *words):
        command(*self.inside(*words))

    def cut(self):
        command("bridge", "link", "set", "dev", self.port, "state", "0")

    def splice(self):
        command("bridge", "link", "set", "dev", self.port, "state", "3")

    def drop(self, percent):
        """The machine hears only a part of what comes; 100: its side of each connection is half open."""
        subprocess.run(self.inside("nft", "-f", "-"), input=loss(percent), text=True, check=True, timeout=PATIENCE)

    def hear(self):
        self.on("nft", "delete", "table", "inet", "weather")

    def narrow(self, kbit, bytes_waiting):
        """A slow link: what waits is late, and what is too much is lost."""
        self.on("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", f"{kbit}kbit", "burst", "1600",
                "limit", str(bytes_waiting))

    def widen(self):
        self.on("tc", "qdisc", "del", "dev", "eth0", "root")


class Here:
    """This machine, where there are no namespaces: no cable is cut, and each server has a port of its own."""

    address = "127.0.0.1"
    _next_port = 10_000 + os.getpid() % 10_000  # below those that the kernel gives to connections

    def __init__(self, name):
        self.name = name

    @staticmethod
    def inside(*words):
        return list(words)

    @classmethod
    def port_for(cls, _):
        while True:
            cls._next_port += 1
            with socket.socket() as probe:
                if probe.connect_ex((cls.address, cls._next_port)) != 0:
                    return cls._next_port


def loss(percent):
    """The rules of a machine that hears the other part of what comes."""
    rule = f"numgen random mod 100 < {percent} drop" if percent < 100 else "drop"
    return ("table inet weather {\n chain in {\n  type filter hook input priority 0; policy accept;\n"
            f'  iif "lo" accept\n  {rule}\n }}\n}}\n')


def can_lose_packets():
    """Is nft here, and does this kernel know what its rules need?"""
    if shutil.which("nft") is None:
        return False
    tried = subprocess.run(["nft", "-f", "-"], input=loss(1), text=True, stderr=subprocess.DEVNULL)
    if tried.returncode == 0:
        command("nft", "delete", "table", "inet", "weather")
    return tried.returncode == 0


def answer_of(stream):
    """One reply. An error is raised."""
    line = stream.readline()
    if not line.endswith(b"\r\n"):
        raise OSError("the server has gone")
    kind, rest = line[:1], line[1:-2].decode(errors="replace")
    if kind == b"+" or kind == b":":
        return rest
    if kind == b"-":
        raise Refused(rest)
    if kind == b"$":
        return None if rest == "-1" else stream.read(int(rest) + 2)[:-2]
    return [answer_of(stream) for _ in range(max(0, int(rest)))]


class Server:
    """A redis-server or valkey-server on a machine, asked by its socket in the file system: no weather there."""

    # What the guide gives a gateway (examples/site/users.acl).
    gateway_rules = ("~w/* ~redlock::* -@all +set +get +del +exists +pttl +pexpire +hget +hmget +hset +hdel +hlen "
                     "+eval +evalsha +script|load +ping +info +time +role +client|tracking +client|caching +client|id "
                     "+client|kill")

    def __init__(self, plant, name, machine, port, *args):
        self.name, self.machine, self.port = name, machine, machine.port_for(port)
        secure = plant.tls is not None and not (plant.half and int(name.split("-")[1]) % 2)
        scheme, at = ("rediss", self.port + 1000) if secure else ("redis", self.port)
        self.url = f"{scheme}://{machine.address}:{at}"
        self.home = plant.folder / name
        self.data = self.home / "data"
        self.data.mkdir(parents=True)
        self.socket = str(self.home / "socket")
        self._plant, self._args = plant, args
        self._step_us, self._highest_us, self._mutex = 0, 0, threading.Lock()
        self._step = os.open(self.home / "step", os.O_RDWR | os.O_CREAT)
        self.step_by(0)
        self.process = self.recorder = None
        self.start()

    def start(self, *args):
        self._tell("started")
        words = [self._plant.server, "--port", str(self.port), "--bind", "0.0.0.0", "--protected-mode", "no",
                 "--unixsocket", self.socket, "--dir", str(self.data), "--save", "", "--appendonly", "yes",
                 # All that was answered is in the file when the process is killed.
                 "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0",
                 "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1",
                 # A master without replicas gives the backlog up, and has another replication id then.
                 "--repl-backlog-ttl", "1", "--io-threads", str(self._plant.threads), *self._args, *args,
                 "--user", "gateway", "on", "nopass", *self.gateway_rules.split(),
                 "--user", "unseen", "on", "nopass", "~*", "+@all", "-client", "+client|id", "+client|kill"]
        tls = self._plant.tls
        if tls is not None:  # for clients; a replica is told in the clear, on its own machine
            words[1:1] = ["--tls-port", str(self.port + 1000), "--tls-auth-clients", "no", "--tls-cert-file",
                          str(tls / "server.pem"), "--tls-key-file", str(tls / "server.key"), "--tls-ca-cert-file",
                          str(tls / "ca.pem")]
        environment = dict(os.environ, LD_PRELOAD=self._plant.shim, REDLOCK_WALL_CLOCK=str(self.home / "step"))
        with open(self.home / "log", "a") as log:
            self.process = subprocess.Popen(self.machine.inside(*words), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=environment)
        until(self.name, self._is_up)

    def _tell(self, fact):
        if self.recorder is not None:
            self.recorder.note(fact)

    def _is_up(self):
        if self.process.poll() is not None:
            raise Wrong(f"{self.name} ends at once: see its log")
        try:
            return self.ask("PING") == "PONG"
        except (OSError, Refused):  # Refused: it is loading
            return False

    def ask(self, *words):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(self.socket)
            texts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
            connection.sendall(b"*%d\r\n" % len(texts) + b"".join(b"$%d\r\n%b\r\n" % (len(t), t) for t in texts))
            with connection.makefile("rb") as stream:
                return answer_of(stream)

    def saw(self, word, seconds):
        """Waits until a client sends this word among others. False: nobody does."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(seconds)
            connection.connect(self.socket)
            connection.sendall(b"MONITOR\r\n")
            end = time.monotonic() + seconds
            with connection.makefile("rb") as stream:
                try:
                    for line in stream:
                        if b'"%b"' % word.encode() in line or time.monotonic() > end:
                            return time.monotonic() <= end
                except TimeoutError:
                    pass
        return False

    def info(self, section, field):
        for line in self.ask("INFO", section).decode().split("\r\n"):
            if line.startswith(field + ":"):
                return line[len(field) + 1:]
        return ""

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)

    def wipe(self):
        shutil.rmtree(self.data)
        self.data.mkdir()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def step_by(self, microseconds):
        """Moves the wall clock of the process, and of those after it."""
        with self._mutex:
            self._step_us += microseconds
            self._highest_us = max(self._highest_us, self._step_us)
            os.pwrite(self._step, struct.pack("=q", self._step_us), 0)

    def step_to_the_latest(self):
        """No key has to wait any longer for the clock to be where it was once."""
        self.step_by(self._highest_us - self._step_us)

    def follow(self, other):
        """Becomes a replica, with the data of the other. The recorder hears of it."""
        self.ask("REPLICAOF", "127.0.0.1", other.port)
        until(f"the link of {self.name}", lambda: self.info("replication", "master_link_status") == "up")
        self.ask("ECHO", "follows")

    def lead(self):
        """Is a master again. New data are on the disk then; before, a restart would bring the old ones back."""
        self.ask("REPLICAOF", "NO", "ONE")
        if self.recorder is not None:
            self.recorder.snapshot()
        until(f"the file of {self.name}", lambda: self.info("persistence", "aof_rewrite_in_progress") == "0" and
              self.info("persistence", "aof_rewrite_scheduled") == "0")

    def keys(self):
        return [key.decode(errors="replace") for key in self.ask("KEYS", "*")]


class Plant:
    """The switch, and everything that hangs on it; or without cables no switch."""

    def __init__(self, folder, server, threads, shim, tls, half, cables):
        self.folder, self.server, self.threads, self.shim = folder, server, threads, shim
        self.tls, self.half = tls, half  # half: every second master speaks in the clear
        self.cables, self.has_nft = cables, cables and can_lose_packets()
        self._machines = 0
        if not cables:
            return
        command("ip", "link", "set", "lo", "up")
        command("ip", "link", "add", "name", "switch", "type", "bridge")
        command("ip", "link", "set", "switch", "up")

    def machine(self, name):
        if not self.cables:
            return Here(name)
        self._machines += 1
        return Machine(name, f"10.0.{self._machines // 250}.{self._machines % 250 + 1}")
