# SPDX-License-Identifier: MIT
"""Real redis-servers for a test: on free ports of 127.0.0.1, ended with the test, also when the test is killed."""
import contextlib
import ctypes
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
PYTHON = [*os.environ.get("REDLOCK_EMULATOR", "").split(), sys.executable]  # this interpreter, once more
EVENTUALLY = 30.0  # seconds: nothing here takes so long on a machine that works
TIMING = {"max_ttl_ms": 3000, "node_timeout_ms": 900, "reconnect_max_ms": 200}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Master:
    def __init__(self, folder, address="127.0.0.1", port=None):
        names = os.environ.get("REDLOCK_REDIS_SERVER"), "redis-server", "valkey-server"
        program = next(filter(None, map(shutil.which, filter(None, names))), None)
        if program is None:
            raise unittest.SkipTest("neither redis-server nor valkey-server is here")
        for _ in range(10):  # somebody else may take the port first
            self.port = port or free_port()
            self.process = subprocess.Popen(
                [program, "--port", str(self.port), "--bind", address, "--save", "", "--dir", folder,
                 "--protected-mode", "no"],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
            if any(b"Ready to accept" in line or b"ready to accept" in line for line in self.process.stdout):
                return
            self.end()
        raise AssertionError("no redis-server starts")

    def ask(self, *words):
        """The first line of the answer to a command, without its type."""
        with socket.create_connection(("127.0.0.1", self.port), EVENTUALLY) as connection:
            connection.sendall(b"*%d\r\n" % len(words) + b"".join(
                b"$%d\r\n%s\r\n" % (len(w.encode()), w.encode()) for w in words))
            return connection.makefile("rb").readline().decode().strip()[1:]

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Site(unittest.TestCase):
    """A test with three masters that need not be watched."""

    count = 3

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="redlock-python-")
        cls.masters = []
        cls.addClassCleanup(cls.take_down)
        for _ in range(cls.count):
            cls.masters.append(Master(cls.folder))
        import libredlock
        with libredlock.Client(cls.config()) as client:
            client.commission()
            with client.lock("first"):
                pass

    @classmethod
    def take_down(cls):
        for master in cls.masters:
            master.end()
        shutil.rmtree(cls.folder)

    @classmethod
    def config(cls, **more):
        return {"masters": [f"redis://127.0.0.1:{master.port}" for master in cls.masters], "timing": TIMING,
                "defaults": {"ttl_ms": 2000}, **more}

    def delete(self, name, count=3):
        """As a person would: behind the back of the holder."""
        for master in self.masters[:count]:
            master.ask("DEL", name)

    def holders(self, name):
        """On how many masters the key is."""
        return sum(master.ask("EXISTS", name) == "1" for master in self.masters)

    def eventually(self, what):
        until = time.monotonic() + EVENTUALLY
        while not what():
            self.assertLess(time.monotonic(), until, "this does not come")
            time.sleep(0.005)

    @contextlib.contextmanager
    def frozen(self, count):
        """Masters that answer nothing."""
        for master in self.masters[:count]:
            master.freeze()
        try:
            yield
        finally:
            for master in self.masters[:count]:
                master.thaw()

    def run_python(self, program, *arguments, **more):
        """A process of its own that runs the text `program`."""
        return subprocess.Popen([*PYTHON, "-B", "-X", "dev", "-c", program, *arguments], text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def line_of(process):
    """The next line of a process, which must come."""
    if not select.select([process.stdout], [], [], EVENTUALLY)[0]:
        raise AssertionError("the process says nothing")
    return process.stdout.readline().strip()
