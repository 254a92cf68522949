#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: test/nightly/machine/arm_block.py TOOL KERNEL_FOLDER

Pastes the block of toolchains/README.md, which builds for a 32-bit ARM gateway and packs what it needs. A guest with
64 MB and a read-only root has that archive, and takes turns at the witness with a gateway outside, whose `redlock` is
TOOL. Exit status: 0, 1 where something is wrong, 77 where no guest can run here."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import run

SOURCE = pathlib.Path(__file__).resolve().parents[3]
TURNS = 5  # of each gateway

# JOB NAME HOST PORT: one job at the device, which hears of its begin and of its end.
JOB = r"""#!/bin/busybox sh
echo "$1 1" | busybox nc "$2" "$3" && busybox usleep 50000 && echo "$1 2" | busybox nc "$2" "$3"
"""
# The first process of a gateway with what toolchains/README.md copies to one. Its root is read-only. It takes turns at
# the device, whose port the kernel hands over as `port`.
INIT = r"""#!/bin/busybox sh
PATH=/usr/bin:/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t devtmpfs devtmpfs /dev
while read -r module; do insmod "/modules/$module"; done </modules/modules.txt
ip link set lo up
ip link set eth0 up
ip address add 10.0.2.15/24 dev eth0
ip route add default via 10.0.2.2
mount -o remount,ro /
if touch /written 2>/dev/null; then echo "gateway: the root can be written"; fi
echo "gateway: $(grep MemTotal /proc/meminfo), $(redlock version)"
while true; do
  redlock run -C /etc/redlock/redlock.json plant1/rs485-a -- /job gateway 10.0.2.2 "$port" ||
    echo "gateway: redlock run ended with $?"
done
"""


def write_program(path, text):
    path.write_text(text)
    path.chmod(0o755)


def paste():
    """The block without its first line, which installs packages."""
    page = (SOURCE / "toolchains" / "README.md").read_text()
    first, *block = re.search(r"<!-- example: arm -->\n```sh\n(.*?)```", page, re.S)[1].splitlines()
    wanted = {"cmake", "g++-arm-linux-gnueabihf", "make", "pkg-config"}
    if not wanted <= set(first.split()):
        sys.exit(f"the first line installs too little: {first}")
    environment = dict(os.environ)
    if shutil.which("ccache"):
        environment.update(CMAKE_C_COMPILER_LAUNCHER="ccache", CMAKE_CXX_COMPILER_LAUNCHER="ccache")
    began = time.monotonic()
    subprocess.run(["bash", "-euo", "pipefail", "-c", "\n".join(block)], cwd=SOURCE, env=environment, check=True,
                   stdout=subprocess.DEVNULL)
    print(f"the block took {time.monotonic() - began:.0f} s, the archive has "
          f"{(SOURCE / 'build/gateway.tar.gz').stat().st_size / 1024:.0f} KB", flush=True)


def make_root(folder, kernel, config):
    """A base system, here busybox and glibc, with the archive unpacked in it. Returns the guest's file system."""
    root, libc = folder / "root", SOURCE / "build/sysroot/armhf/lib"
    for name in ("bin", "dev", "etc/redlock", "lib/arm-linux-gnueabihf", "modules", "proc", "tmp"):
        (root / name).mkdir(parents=True)
    shutil.copy(kernel / "busybox", root / "bin")
    shutil.copy(libc / "ld-linux-armhf.so.3", root / "lib")
    for name in ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1"):
        shutil.copy(libc / "arm-linux-gnueabihf" / name, root / "lib/arm-linux-gnueabihf")
    for path in [*kernel.glob("*.ko"), kernel / "modules.txt"]:
        shutil.copy(path, root / "modules")
    write_program(root / "job", JOB)
    write_program(root / "init", INIT)
    subprocess.run(["tar", "-C", root, "-xzf", SOURCE / "build/gateway.tar.gz"], check=True)
    (root / "etc/redlock/redlock.json").write_text(config)
    (root / "etc/redlock/redlock.json").chmod(0o600)
    image = folder / "initramfs"
    with open(image, "wb") as out:
        subprocess.run("find . | busybox cpio -o -H newc", shell=True, cwd=root, stdout=out,
                       stderr=subprocess.DEVNULL, check=True)
    return image


def take_turns(site, folder, kernel):
    witness = run.Witness()
    image = make_root(folder, kernel, site.config_text("10.0.2.2"))
    console = folder / "console"
    write_program(folder / "job", JOB)
    guest = subprocess.Popen(
        ["qemu-system-arm", "-M", "virt,highmem=off", "-cpu", "cortex-a15", "-m", "64", "-accel", "tcg", "-display",
         "none", "-nodefaults", "-no-reboot", "-kernel", str(kernel / "vmlinuz"), "-initrd", str(image), "-append",
         f"console=ttyAMA0 quiet panic=-1 port={witness.port}", "-serial", f"file:{console}", "-netdev", "user,id=net",
         "-device", run.NETWORK_CARD], stdin=subprocess.DEVNULL)
    outside = subprocess.Popen(
        ["bash", "-c", 'while "$@"; do :; done', "turns", site.tool, "run", "-q", "-C", site.config, "plant1/rs485-a",
         "--", str(folder / "job"), "outside", "127.0.0.1", str(witness.port)], start_new_session=True)

    def all_had_turns():
        if guest.poll() is not None or outside.poll() is not None:
            raise run.Wrong("one of them has ended")
        return min(witness.acts.count((name, 2)) for name in ("gateway", "outside")) >= TURNS

    try:
        run.until("turns of both", all_had_turns)
        return judge(list(witness.acts), console)
    except run.Wrong as wrong:
        print(f"WRONG: {wrong}\n" + console.read_text(errors="replace"))
        return 1
    finally:
        os.killpg(outside.pid, signal.SIGTERM)
        guest.kill()
        outside.wait()
        guest.wait()


def judge(acts, console):
    said = console.read_text(errors="replace")
    print("\n".join(line for line in said.splitlines() if line.startswith("gateway:")))
    whole = acts[:len(acts) // 2 * 2]
    apart = all(whole[n][0] == whole[n + 1][0] and (whole[n][1], whole[n + 1][1]) == (1, 2)
                for n in range(0, len(whole), 2))
    changes = sum(one[0] != next[0] for one, next in zip(whole, whole[1:]))
    print(f"{len(whole) // 2} jobs, {changes} changes of the gateway")
    wrong = [text for right, text in (
        (apart, "two at the device"), (changes >= TURNS, "they did not take turns"),
        ("MemTotal" in said, "the gateway has said nothing"),
        ("the root can be written" not in said, "the root can be written")) if not right]
    for text in wrong:
        print(f"WRONG: {text}")
    return 1 if wrong else 0


class Site:
    """Three masters that an operator has admitted."""

    def __init__(self, tool, folder):
        self.tool, self.masters = tool, [run.Master(folder, number) for number in range(3)]
        self.config = str(folder / "redlock.json")
        with open(os.open(self.config, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(self.config_text("127.0.0.1"))
        subprocess.run([tool, "commission", "-q", "-y", "-C", self.config], check=True)

    def config_text(self, host):
        return json.dumps({"masters": [{"url": f"redis://{host}:{one.port}", "name": f"m{number}"}
                                       for number, one in enumerate(self.masters)]})

    def end(self):
        for master in self.masters:
            master.process.kill()
            master.process.wait()


def main(tool, kernel):
    kernel = pathlib.Path(kernel).resolve()
    for there, what in ((shutil.which("qemu-system-arm"), "qemu-system-arm is not installed"),
                        (shutil.which("arm-linux-gnueabihf-g++"), "the cross compiler is not installed"),
                        ((kernel / "busybox").exists(), f"test/nightly/machine/fetch.sh {kernel} armhf was not run")):
        if not there:
            print("SKIP: " + what)
            return 77
    paste()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory() as name:
        site = Site(tool, pathlib.Path(name))
        try:
            return take_turns(site, pathlib.Path(name), kernel)
        finally:
            site.end()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
