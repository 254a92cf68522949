#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: test/nightly/machine/run.py [--arm ARM_BUILD_FOLDER] BUILD_FOLDER KERNEL_FOLDER [CASE...]

Boots a guest with clients, plays the cases of guest.cpp, and judges what it tells and what the witness saw. The
masters are outside, on this machine's loopback. With --arm the guest is a 32-bit ARM machine. Exit status: 0, 1
where something is wrong, 77 where no guest can run here."""

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

PATIENCE = 120  # seconds for anything that must come; a machine may be ten times slower than ours
LOST, ACQUIRED = 5, 1  # enum redlock_event_type
NETWORK_CARD = "virtio-net-pci,netdev=net,romfile="


class Pc:
    """Sleeps, and is woken by its monitor."""
    qemu = "qemu-system-x86_64"
    options = ["-M", "pc", "-m", "128"]
    console, line = "ttyS0", "ttyS1"
    line_device = ["-serial", "chardev:line"]
    alarm = None


class Arm:
    """The kernel gets no seed from the machine, and has no other early source. Only its alarm wakes it."""
    qemu = "qemu-system-arm"
    options = ["-M", "virt,highmem=off,dtb-randomness=off", "-cpu", "cortex-a15", "-m", "256"]
    console, line = "ttyAMA0", "ttyS0"
    line_device = ["-device", "pci-serial,chardev=line"]
    alarm = 4  # seconds, counted from the second in which the guest goes to sleep


class Wrong(Exception):
    """The case cannot go on."""


def until(what, look):
    """Waits for a true answer, and returns it."""
    end = time.monotonic() + PATIENCE
    while not (answer := look()):
        if time.monotonic() > end:
            raise Wrong("waited in vain for " + what)
        time.sleep(0.002)
    return answer


class Witness:
    """The device: writes down who uses it, in the order in which they come, and then answers."""

    def __init__(self):
        self.acts = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            threading.Thread(target=self._serve, args=[self._server.accept()[0]], daemon=True).start()

    def _serve(self, connection):
        try:
            for line in connection.makefile():
                name, at_ms = line.split()
                self.acts.append((name, int(at_ms)))
                connection.sendall(b"\n")
        except OSError:
            pass  # a guest without power

    def count(self, name):
        return sum(name == who for who, _ in self.acts)

    def never_two(self, names):
        """Each of the names has acted, and nobody after the next one had begun."""
        order = [who for n, (who, _) in enumerate(self.acts) if n == 0 or self.acts[n - 1][0] != who]
        return order == names


class Master:
    """A redis-server on the loopback."""

    def __init__(self, folder, number):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        home = folder / f"master{number}"
        home.mkdir()
        with open(home / "log", "w") as log:
            self.process = subprocess.Popen(
                ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--dir", str(home)],
                stdout=log, stderr=log)
        until("a redis-server", lambda: self._answers())

    def _answers(self):
        try:
            return self.ask("PING") == "PONG"
        except OSError:
            return False

    def ask(self, *words):
        """A status or a number."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            connection.sendall((" ".join(words) + "\r\n").encode())
            return connection.makefile().readline().strip()[1:]

    def signal(self, number):
        os.kill(self.process.pid, number)


class Guest:
    """qemu: the second serial line to the program in the guest, and the monitor."""

    def __init__(self, machine, folder, kernel, initramfs):
        self.machine, self.folder = machine, folder
        self.folder.mkdir()
        line, monitor = str(folder / "line"), str(folder / "monitor")
        command = [machine.qemu, *machine.options, "-accel", "tcg", "-display", "none", "-nodefaults", "-no-reboot",
                   "-kernel", str(kernel / "vmlinuz"), "-initrd", str(initramfs),
                   "-append", f"console={machine.console} line={machine.line} quiet panic=-1",
                   "-serial", f"file:{folder}/console",
                   "-chardev", f"socket,id=line,path={line},server=on,wait=off", *machine.line_device,
                   "-qmp", f"unix:{monitor},server=on,wait=off",
                   "-netdev", "user,id=net,restrict=off", "-device", NETWORK_CARD]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        self._monitor = self._connect(monitor)
        self._line = self._connect(line)
        self.events, self.said, self.facts, self.ended = [], [], collections.defaultdict(dict), []
        threading.Thread(target=self._read_monitor, daemon=True).start()
        threading.Thread(target=self._read_line, daemon=True).start()
        self.tell_monitor("qmp_capabilities")

    def _connect(self, path):
        def attempt():
            if self.process.poll() is not None:
                raise Wrong("qemu has ended")
            stream = socket.socket(socket.AF_UNIX)
            try:
                stream.connect(path)
                return stream
            except OSError:
                stream.close()
                return None
        return until("qemu", attempt)

    def _read_monitor(self):
        try:
            for text in self._monitor.makefile():
                self.events.append(json.loads(text).get("event"))
        except OSError:
            pass  # qemu has ended

    def _read_line(self):
        try:
            for text in self._line.makefile(errors="replace"):
                self._take(*text.strip().partition(" ")[::2])
        except OSError:
            pass  # qemu has ended

    def _take(self, kind, rest):
        if kind == "say":
            self.said.append(rest)
        elif kind == "end":
            self.ended.append(rest)
        elif kind == "fact":
            print("  guest:", rest, flush=True)
            case, *pairs = rest.split()
            self.facts[case].update(pair.split("=") for pair in pairs)

    def tell_monitor(self, command):
        self._monitor.sendall((json.dumps({"execute": command}) + "\n").encode())

    def tell(self, text):
        self._line.sendall((text + "\n").encode())

    def _alive(self):
        if self.process.poll() is not None:
            raise Wrong("the guest has ended")
        return True

    def console(self):
        """What clients log, and what the kernel thinks is important, without its stack dumps."""
        lines = (self.folder / "console").read_text(errors="replace").splitlines()
        return "\n".join("  console: " + line for line in lines if line and not re.match(r"\[[ .0-9]+\] ", line))

    def says(self, text):
        until(f"the guest's word: {text}", lambda: self._alive() and text in self.said)
        self.said.remove(text)

    def ends(self, case):
        until(f"the end of {case}", lambda: self._alive() and case in self.ended)
        self.ended.remove(case)
        return self.facts.pop(case, {})

    def goes_to_sleep(self):
        seen = self.events.count("SUSPEND")
        self.tell("go")
        if not self.machine.alarm:
            until("the suspend", lambda: self._alive() and self.events.count("SUSPEND") > seen)
        self.asleep_since = time.monotonic()

    def wakes(self, seconds=1.5):
        """After so long, at least: the kernel may count a second too little. Returns how long it slept."""
        if not self.machine.alarm:
            time.sleep(max(0.0, self.asleep_since + seconds - time.monotonic()))
            self.tell_monitor("system_wakeup")
        return time.monotonic() - self.asleep_since


class Trial:
    """All that one case needs."""

    def __init__(self, site):
        self.site, self.guest, self.masters = site, site.guest, site.masters
        self.witness = Witness()
        self.rivals, self.wrong = [], []
        self.guest.tell(f"witness {self.witness.port}")

    def expect(self, right, text):
        if not right:
            self.wrong.append(text)

    def rival(self, resource, name="rival"):
        """Another gateway, outside: waits for the lock, and then uses the device."""
        one = subprocess.Popen([self.site.tool, "run", "-q", "-C", self.site.config, "-t", "3000", resource, "--",
                                self.site.program, "act", "127.0.0.1", str(self.witness.port), name])
        self.rivals.append(one)
        return one

    def acts(self, name, count=1):
        until(f"{name} at the device", lambda: self.witness.count(name) >= count)

    def end(self):
        for one in self.rivals:
            if one.poll() is None:
                one.terminate()
            one.wait(PATIENCE)


def case_randomness(trial):
    guest = trial.guest
    guest.tell("randomness")
    facts = guest.ends("randomness")
    trial.expect(facts["check"] == "REDLOCK_OK", "a lock when the kernel has random bytes")
    if facts["late"] == "1":
        trial.expect(facts["acquired_before"] == "0", "a value without random bytes")
    else:
        print("  not shown: this kernel had random bytes at once")


def case_held(trial):
    guest = trial.guest
    guest.tell("held")
    guest.says("held ready")
    trial.rival("held_a")
    trial.rival("held_b", "rival_b")
    guest.goes_to_sleep()
    trial.acts("rival")
    trial.acts("rival_b")
    guest.wakes()
    facts = guest.ends("held")
    # In thread mode the event may have come before the check, and has made the handle stale.
    trial.expect(facts["check_a"] in ("REDLOCK_E_LOST", "REDLOCK_E_STALE"), "the first check, in thread mode")
    trial.expect(facts["check_b"] == "REDLOCK_E_LOST", "the first check, in polled mode")
    trial.expect(trial.witness.acts[0][0] == "guest" and trial.witness.count("guest") == 1, "two at the device")
    if guest.machine.alarm and int(facts["counted_ms"]) == 0:
        print("  measured: both clocks went on in the sleep, so the end of the validity has ended the locks")
        trial.expect(int(facts["monotonic_ms"]) >= (guest.machine.alarm - 1) * 1000, "the clocks told of the sleep")
        return
    trial.expect(int(facts["first_event_a"]) == LOST, "the first event after the resume, in thread mode")
    trial.expect(int(facts["first_event_b"]) == LOST, "the first event after the resume, in polled mode")
    trial.expect(int(facts["yes_before"]) > 0 and int(facts["yes_after"]) == 0, "a thread was told yes")
    trial.expect(int(facts["counted_ms"]) > 0, "the kernel counted the suspend")


def case_round(trial):
    guest = trial.guest
    guest.tell("round")
    guest.says("round ready")
    for master in trial.masters[:2]:
        master.signal(signal.SIGSTOP)
    guest.tell("go")
    guest.says("round open")
    guest.goes_to_sleep()
    for master in trial.masters[:2]:
        master.signal(signal.SIGCONT)
    until("the SETs of the round", lambda: all(master.ask("EXISTS", "round") == "1" for master in trial.masters))
    rival = trial.rival("round")
    trial.acts("rival")
    guest.wakes()
    guest.says("round anew")
    trial.expect(trial.witness.count("guest") == 0, "two at the device")
    rival.terminate()
    rival.wait(PATIENCE)
    facts = guest.ends("round")
    trial.expect(facts["pending"] == "1" and facts["rounds_before"] == "1", "a round was open at the suspend")
    trial.expect(int(facts["rounds"]) > 1, "the lock was won by a round after the resume")
    trial.expect(trial.witness.never_two(["rival", "guest"]), "two at the device")
    until("no key left", lambda: all(master.ask("EXISTS", "round") == "0" for master in trial.masters))


def case_command(trial):
    guest = trial.guest
    guest.tell("command")
    guest.says("command ready")
    trial.rival("command")
    guest.goes_to_sleep()
    trial.acts("rival")
    guest.wakes()
    facts = guest.ends("command")
    trial.expect(int(facts["exit"]) == 79, "`redlock run` tells that the lock was lost")
    trial.expect(int(facts["steps_later"]) == 0, "the command is gone when `redlock run` has returned")
    print(f"  measured: after the resume the command went on for {facts['us_after']} us, {facts['steps_after']} steps")


def case_stopped(trial):
    guest = trial.guest
    guest.tell("stopped")
    guest.says("stopped ready")
    trial.acts("guest", 2)
    trial.rival("stopped")
    guest.tell_monitor("stop")
    trial.acts("rival")
    seen = len(trial.witness.acts)
    guest.tell_monitor("cont")
    facts = guest.ends("stopped")
    late = [at_ms for name, at_ms in trial.witness.acts[seen:] if name == "guest"]
    trial.expect(facts["past_validity"] == "0", "yes after the end of the validity, by the guest's own clock")
    print(f"  measured: after `cont` redlock_check() said yes for {late[-1] - late[0] if late else 0} ms,"
          f" {len(late)} times; the lock's ttl is 3000 ms")


def case_wall_clock(trial):
    guest = trial.guest
    guest.tell("wall_clock")
    facts = guest.ends("wall_clock")
    trial.expect(int(facts["renewed"]) >= 3, "the lock is renewed after each step")
    for name in ("lost", "no", "clock_jumps", "clock_steps"):
        trial.expect(facts[name] == "0", f"{name} is {facts[name]}")


def case_brief(trial):
    guest = trial.guest
    for seconds in (0.3, 0.6, 0.9):
        guest.tell("brief")
        guest.says("brief ready")
        guest.goes_to_sleep()
        slept = guest.wakes(seconds)
        facts = guest.ends("brief")
        counted = int(facts["counted_us"])
        trial.expect((facts["lost"] == "1") == (facts["check"] != "REDLOCK_OK") == (counted >= 2000),
                     "LOST exactly where the kernel counts the suspend")
        print(f"  measured: of a suspend of {slept:.2f} s the kernel counted {counted / 1e6:.2f} s,"
              f" and redlock_check() said {facts['check']}")


def case_power(trial):
    guest = trial.guest
    guest.tell("power")
    guest.says("power ready")
    trial.acts("guest", 2)
    guest.tell_monitor("quit")
    guest.process.wait(PATIENCE)
    cut = time.monotonic()
    left = sorted(int(master.ask("PTTL", "power")) for master in trial.masters)
    trial.rival("power")
    trial.acts("rival")
    waited_ms = (time.monotonic() - cut) * 1000
    trial.expect(waited_ms >= left[1], "the fresh client waited for the end of the ttl")
    trial.expect(trial.witness.never_two(["guest", "rival"]), "two at the device")
    print(f"  measured: {left[1]} ms of the ttl were left on a quorum, the next holder came after {waited_ms:.0f} ms")


# The first one, since the kernel of a guest that was just booted has no random bytes.
CASES = {"randomness": case_randomness, "wall_clock": case_wall_clock, "brief": case_brief, "held": case_held,
         "round": case_round, "command": case_command, "stopped": case_stopped, "power": case_power}
CASES_OF_ARM = ("randomness", "wall_clock", "held", "stopped", "power")


def guest_program(build):
    return str(build / "test/nightly/machine_guest")


class Site:
    """Three masters that an operator has admitted, and a guest."""

    def __init__(self, build, arm):
        self.tool, self.program = str(build / "redlock"), guest_program(build)
        # What is in the guest. The case `command` needs the tool there.
        self.machine = Arm if arm else Pc
        self.inside = [guest_program(arm)] if arm else [self.tool, self.program]
        self.masters, self.guest = [], None

    def begin(self, folder, kernel):
        for number in range(3):
            self.masters.append(Master(folder, number))
        self.config = str(folder / "redlock.json")
        with open(os.open(self.config, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(self._config("127.0.0.1"))
        subprocess.run([self.tool, "commission", "-q", "-y", "-C", self.config], check=True)
        initramfs = folder / "initramfs"
        subprocess.run([str(pathlib.Path(__file__).with_name("initramfs.sh")), str(kernel), str(initramfs),
                        *self.inside], check=True)
        begin = time.monotonic()
        self.guest = Guest(self.machine, folder / "guest", kernel, initramfs)
        self.guest.says("guest ready")
        print(f"booted in {time.monotonic() - begin:.1f} s", flush=True)
        self.guest.tell("config " + self._config("10.0.2.2"))
        if self.machine.alarm:
            self.guest.tell(f"alarm {self.machine.alarm}")

    def _config(self, host):
        masters = [{"url": f"redis://{host}:{one.port}", "name": f"m{n}"} for n, one in enumerate(self.masters)]
        return json.dumps({"masters": masters, "defaults": {"ttl_ms": 5000},
                           "timing": {"max_ttl_ms": 6000, "node_timeout_ms": 1000, "suspect_close_ms": 6000}})

    def end(self):
        for process in [self.guest.process] * bool(self.guest) + [master.process for master in self.masters]:
            process.kill()
            process.wait()


def play(site, names):
    failed = 0
    for name in names:
        print(f"{name}:", flush=True)
        begin, trial = time.monotonic(), Trial(site)
        try:
            CASES[name](trial)
        except Wrong as wrong:  # the guest is in the middle of something
            trial.wrong.append(str(wrong))
            site.guest.process.kill()
            site.guest.process.wait()
            print(site.guest.console())
        trial.end()
        for text in trial.wrong:
            print(f"  WRONG: {text}", flush=True)
        print(f"  {'FAILED' if trial.wrong else 'passed'}, {time.monotonic() - begin:.1f} s", flush=True)
        failed += bool(trial.wrong)
        if site.guest.process.poll() is not None:
            break
    return failed


def main(build, kernel, names, arm):
    site = Site(build, arm)
    for there, what in ((shutil.which(site.machine.qemu), f"{site.machine.qemu} is not installed"),
                        (shutil.which("redis-server"), "redis-server is not installed"),
                        ((kernel / "modules.txt").exists(), f"test/nightly/machine/fetch.sh {kernel} was not run"),
                        (all(map(os.path.exists, [site.tool, site.program, *site.inside])),
                         "the target machine_programs was not built")):
        if not there:
            print("SKIP: " + what)
            return 77
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory() as folder:
        try:
            site.begin(pathlib.Path(folder), kernel)
            return 1 if play(site, names or (CASES_OF_ARM if arm else CASES)) else 0
        finally:
            site.end()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage=__doc__.partition("\n")[0].removeprefix("usage: "))
    parser.add_argument("--arm", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("kernel", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="case")
    sys.exit(main(**vars(parser.parse_args())))
