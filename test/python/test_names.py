# SPDX-License-Identifier: MIT
"""Masters that are given by name: names with a dead address, and names that no name server answers for.

The test lives in network and mount namespaces with a hosts file of its own and a name server that never replies, which
glibc waits 10 s for. It does not depend on the machine's resolver."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["REDLOCK_BUILD"])
INSIDE = "REDLOCK_TEST_INSIDE"
MUTE = 10.0  # seconds, of one look-up
OWN = 0.5 + 0.05 + 1.0  # connect_timeout, node_timeout, and a second
DEAD, SILENT, OTHER = "2001:db8::9", "2001:db8::8", "2001:db8::7"  # ahead of 127.0.0.1, by RFC 6724
TRIES = 3  # since a machine may be busy; a look-up that is waited for delays all of them
HOSTS = f"""::1 localhost
127.0.0.1 localhost m1 m2
{DEAD} x1 x2 x3
127.0.0.1 x1 x2 x3
{SILENT} y1 y2 y3
127.0.0.1 y1 y2 y3
{OTHER} two
127.0.0.1 two
"""

if INSIDE not in os.environ:
    ways = (["unshare", "-mn"], ["unshare", "-Urmn"])
    way = next((w for w in ways if shutil.which("unshare") and not subprocess.call(
        [*w, "ip", "link", "set", "lo", "up"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)), None)
    if way is None:
        print("skipped: this machine has no network namespaces for us")
        sys.exit(0)
    os.execvpe(way[0], [*way, sys.executable, *sys.argv], {**os.environ, INSIDE: "1"})

from masters import Master  # noqa: E402  behind the namespaces


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import tempfile
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="redlock-names-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        run("mount", "--make-rprivate", "/")
        subprocess.run(["cp", "-a", "/etc", cls.folder], stderr=subprocess.DEVNULL, check=False)
        etc = cls.folder / "etc"
        for name, text in (("hosts", HOSTS), ("resolv.conf", "nameserver 127.0.0.53\n"),
                           ("nsswitch.conf", "hosts: files dns\n")):
            (etc / name).unlink(missing_ok=True)
            (etc / name).write_text(text)
        run("mount", "--bind", str(etc), "/etc")
        cls.addClassCleanup(run, "umount", "-l", "/etc")
        run("ip", "link", "set", "lo", "up")
        for address in (DEAD, SILENT, OTHER):
            run("ip", "addr", "add", address + "/128", "dev", "lo", "nodad")
        cls.mute = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        cls.mute.bind(("127.0.0.53", 53))
        cls.addClassCleanup(cls.mute.close)
        cls.masters = [Master(str(cls.folder)) for _ in range(3)]
        for master in cls.masters:
            cls.addClassCleanup(master.end)
        cls.silent = [cls.crowd(master.port) for master in cls.masters]
        for sockets in cls.silent:
            for one in sockets:
                cls.addClassCleanup(one.close)
        numeric = cls.config("127.0.0.1", "127.0.0.1", "127.0.0.1")
        (cls.folder / "bus.json").write_text((cls.folder / numeric).read_text())
        assert cls.tool("commission", "--yes", "--nobody-holds", config=numeric).returncode == 0

    @staticmethod
    def crowd(port):
        """A listener whose queue is full: an attempt is neither refused nor answered."""
        sockets = [socket.socket(socket.AF_INET6) for _ in range(4)]
        sockets[0].bind((SILENT, port))
        sockets[0].listen(0)
        for one in sockets[1:]:
            one.setblocking(False)
            one.connect_ex((SILENT, port))
        return sockets

    @classmethod
    def config(cls, *hosts, **more):
        masters = [{"url": f"redis://{host}:{master.port}", "name": f"m{n}"}
                   for n, (host, master) in enumerate(zip(hosts, cls.masters))]
        name = "-".join(hosts) + ".json"
        (cls.folder / name).write_text(json.dumps({"client_name": "gw-1", "masters": masters, **more}))
        return name

    @classmethod
    def words(cls, command, *arguments, config):
        return [str(BUILD / "redlock"), command, "-C", config, *arguments]

    @classmethod
    def tool(cls, command, *arguments, config):
        return cls.ended(cls.words(command, *arguments, config=config))

    @classmethod
    def ended(cls, words, **more):
        begun = time.monotonic()
        done = subprocess.run(words, cwd=cls.folder, capture_output=True, text=True, timeout=120, **more)
        done.took = time.monotonic() - begun
        return done

    def ends(self, what, words, code, own=0.0):
        """It ends in its own time."""
        tries = []
        while len(tries) < TRIES and (not tries or tries[-1].took > own + OWN):
            tries.append(self.ended(words))
        best = min(tries, key=lambda done: done.took)
        print(f"{what}: {best.returncode} after {best.took:.2f} s", flush=True)
        with self.subTest(what):
            self.assertLess(best.took, own + OWN, best.stderr)
            self.assertIn(best.returncode, code, best.stdout + best.stderr)
        return best

    def hold(self, config, *arguments):
        holder = subprocess.Popen(self.words("run", *arguments, "bus", "--", "sh", "-c", "echo ours; sleep 30",
                                             config=config), cwd=self.folder, stdout=subprocess.PIPE)
        self.assertEqual(holder.stdout.readline(), b"ours\n")
        return holder

    def end(self, process):
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait()
        process.stdout.close()
        return time.monotonic() - begun

    # ---- a name with a dead address

    def test_a_dead_address_ahead_of_the_right_one(self):
        for hosts in (["localhost"] * 3, ["x1", "x2", "x3"], ["y1", "y2", "y3"]):
            name = self.config(*hosts)
            for arguments in (["-v", "-n", "bus"], ["-q", "-n", "-E", "0", "bus"], ["-v", "-w", "3", "bus"]):
                done = self.ends(f"{hosts[0]}: run {' '.join(arguments)}",
                                 self.words("run", *arguments, "--", "echo", "got", config=name), [0], 3)
                self.assertEqual(done.stdout, "got\n", done.stderr)
                if hosts[0] == "y1":
                    self.assertGreater(done.took, 0.25, "it is not silent")
                self.assertNotRegex(done.stderr, r"\bdown\b|refused|same server")
            done = self.ends(f"{hosts[0]}: doctor", self.words("doctor", "-v", config=name), [0], 1.5)
            told = {"x1": f"{DEAD}: the connection was refused", "y1": f"{SILENT}: the connection timed out"}
            self.assertEqual(len(re.findall(told.get(hosts[0], "::1: .*refused") + r".*; 127\.0\.0\.1: run_id \w+",
                                            done.stdout)), 3, done.stdout)
            program = ("import libredlock, sys\nwith libredlock.Client(sys.argv[1]) as c:\n"
                       "  with c.try_lock('bus') as lock: lock.check(0.1); print('ours')")
            done = self.ends(f"{hosts[0]}: try_lock", [sys.executable, "-c", program, name], [0], 3)
            self.assertEqual(done.stdout, "ours\n", done.stderr)

    def test_two_servers_of_one_name(self):
        name = self.config("two", "m1", "m2")
        other = Master(str(self.folder), OTHER, self.masters[0].port)
        self.addCleanup(other.end)
        done = self.ends("two servers: doctor", self.words("doctor", config=name), [78], 10)
        self.assertRegex(done.stdout, rf"fail +addresses +m0: {OTHER}: run_id \w+.*; 127\.0\.0\.1: run_id \w+")

    # ---- a name server that does not answer

    def test_one_mute_name(self):
        name = self.config("m1", "m2", "mute")
        self.ends("run", self.words("run", "bus", "--", "true", config=name), [0])
        self.ends("run -n", self.words("run", "-n", "bus", "--", "true", config=name), [0])
        self.ends("the cron line", self.words("run", "-q", "-n", "-E", "0", "-t", "30000", "bus", "--", "true",
                                              config=name), [0])
        holder = self.hold("bus.json")
        self.ends("run -n behind a holder", self.words("run", "-n", "bus", "--", "true", config=name), [75])
        self.ends("TERM to one that waits", ["timeout", "1", *self.words("run", "bus", "--", "true", config=name)],
                  [124], 1)
        self.end(holder)
        took = self.end(self.hold(name))
        print(f"TERM to one that holds: {took:.2f} s")
        with self.subTest("TERM to one that holds"):
            self.assertLess(took, OWN)
        self.ends("status", self.words("status", config=name), [0, 69])
        self.ends("doctor", self.words("doctor", config=name), [0, 69, 76], 2)
        self.ends("commission", self.words("commission", "--yes", "--nobody-holds", config=name), [0, 69], 30)
        self.ends("config check", self.words("config", "check", config=name), [0])
        program = ("import libredlock, sys\nwith libredlock.Client(sys.argv[1]) as c:\n"
                   "  with c.lock('bus'): print('ours', flush=True)")
        self.ends("Python", [sys.executable, "-c", program, name], [0], 0.5)
        program = ("import _ctypes, libredlock, os, sys\nfrom libredlock import _library as of\n"
                   "with libredlock.Client(sys.argv[1]): pass\n"
                   "for lib in of.lib, of.quick: _ctypes.dlclose(lib._handle)\n"
                   "print('libredlock.so' in open('/proc/self/maps').read(), flush=True)\nos._exit(0)")
        done = self.ends("Python, dlclose", [sys.executable, "-c", program, name], [0], 0.5)
        self.assertEqual(done.stdout, "True\n", "the thread that looks up has lost its code")
        self.ends("Python, asyncio", [sys.executable, "-c", (
            "import asyncio, libredlock.aio, sys\nasync def main():\n"
            "  async with libredlock.aio.Client(sys.argv[1]) as c:\n    async with c.lock('bus'): print('ours')\n"
            "asyncio.run(main())"), name], [0], 0.5)
        (program,) = re.findall(r"^```c\n(.*?int main.*?)^```$", (SOURCE / "README.md").read_text(), re.M | re.S)[:1]
        (self.folder / "bus.c").write_text(program)
        compiler = os.environ.get("REDLOCK_C_COMPILER", "cc")
        run(compiler, str(self.folder / "bus.c"), "-o", str(self.folder / "bus"), f"-I{SOURCE}/include",
            f"-L{BUILD}", "-lredlock", f"-Wl,-rpath,{BUILD}")
        shutil.copy(self.folder / name, self.folder / "bus.json")
        try:
            self.ends("bus.c", ["./bus"], [0])
        finally:
            shutil.copy(self.folder / "127.0.0.1-127.0.0.1-127.0.0.1.json", self.folder / "bus.json")

    def test_three_mute_names(self):
        name = self.config("mute1", "mute2", "mute3")
        done = self.ends("three: run -w 3", self.words("run", "-w", "3", "bus", "--", "true", config=name), [69], 3)
        self.assertRegex(done.stderr, r"m0 \(mute1:\d+\): the host name cannot be resolved")
        self.ends("three: run -n", self.words("run", "-n", "bus", "--", "true", config=name), [69])
        done = self.ends("three: status", self.words("status", config=name), [69])
        self.assertEqual(done.stdout.count("the host name cannot be resolved: no name server has answered in time"), 3)
        done = self.ends("three: doctor", self.words("doctor", config=name), [69], 1)
        self.assertIn("-> mend this machine's name server", done.stdout)
        self.ends("three: commission", self.words("commission", "--yes", config=name), [69], 30)
        self.ends("three: reconfigure", [str(BUILD / "redlock"), "reconfigure", "--yes", name, "bus.json"], [69, 78])


if __name__ == "__main__":
    unittest.main(verbosity=2)
