# SPDX-License-Identifier: MIT
"""The programs in Python of the pages, as they stand, and of the examples: by examples/modbus/guarded.py no byte is
written under a lost lock; on a line, no value is wrong with the lock."""
import ast
import asyncio
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

import libredlock
import libredlock.aio
from masters import Site

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = pathlib.Path(os.environ.get("REDLOCK_BUILD", SOURCE / "build/dev")) / "examples"
PORT = """
class Serial:
    def __init__(self, path, baud, timeout): pass
    def __enter__(self): return self
    def __exit__(self, *exception): pass
    def reset_input_buffer(self): pass
    def write(self, frame): self.frame = frame
    def read(self, size): return self.frame[:size]
"""


def programs(page):
    return re.findall(r"^```python\n(.*?)^```$", (SOURCE / page).read_text(encoding="utf-8"), re.M | re.S)


class Readme(Site):
    def said(self, program):
        folder = pathlib.Path(self.folder)
        (folder / "serial.py").write_text(PORT)
        (folder / "bus.json").write_text(json.dumps(self.config()))
        process = self.run_python(program.replace("/etc/redlock/redlock.json", "bus.json"), cwd=folder)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (0, ""))
        return out

    def test_readme(self):
        (program,) = programs("README.md")
        self.assertEqual(self.said(program), "the bus is ours for at least 0.3 s\n")

    def test_the_module_s_page(self):
        class Counted:
            written = 0

            def write_register(self, *arguments):
                self.written += 1
                return self

            def __await__(self):
                yield from ()

        text = programs("src/python/README.md")[0]
        pathlib.Path(self.folder, "bus.json").write_text(json.dumps(self.config()))
        names = {"libredlock": libredlock, "bus": Counted()}
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        asyncio.run(eval(compile(text, "README.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names))
        self.assertEqual(names["bus"].written, 2)

    def test_the_recipe(self):
        (program,) = programs("examples/README.md")
        self.assertEqual(self.said(program), bytes.fromhex("110300010001d7").hex() + "\n")



def guarded():
    spec = importlib.util.spec_from_file_location("guarded", SOURCE / "examples/modbus/guarded.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Bus:
    """Stands in for a client of pymodbus: notes what would be written."""

    connected = True

    def __init__(self):
        self.written = []

    def write_register(self, address, value, slave):
        self.written.append((address, value, slave))
        return "answer"


class AsyncBus(Bus):
    async def write_register(self, address, value, slave):
        return super().write_register(address, value, slave)


class Modbus(Site):
    def test_a_lost_lock_writes_nothing(self):
        bus = Bus()
        with self.assertRaises(libredlock.Lost):
            with libredlock.Client(self.config()) as client, client.lock("bus", ttl=0.5, renew=False) as lock:
                line = guarded().Guarded(bus, lock, 0.1)
                self.assertTrue(line.connected)
                self.assertEqual(line.write_register(0, 5, slave=17), "answer")
                with self.assertRaises(libredlock.TooSlow):
                    while True:  # until less than 0.1 s is left
                        line.write_register(0, 6, slave=17)
                bus.written.clear()
                with self.assertRaises(libredlock.TooSlow):
                    line.write_register(0, 7, slave=17)
                with self.assertRaises(libredlock.Lost):
                    while True:
                        lock.check()
                with self.assertRaises(libredlock.Lost):
                    line.write_register(0, 7, slave=17)
        self.assertEqual(bus.written, [])

    def test_a_lost_lock_writes_nothing_async(self):
        async def main():
            bus = AsyncBus()
            async with libredlock.aio.Client(self.config()) as client:
                lock = await client.lock("bus", ttl=0.5, renew=False).acquire()
                line = guarded().Guarded(bus, lock, 0.1)
                self.assertEqual(await line.write_register(0, 5, slave=17), "answer")
                bus.written.clear()
                late = line.write_register(0, 6, slave=17)  # asked for in time, and awaited too late
                with self.assertRaises(libredlock.Error):
                    while True:
                        lock.check(0.1)
                with self.assertRaises(libredlock.Error):
                    await late
                lock.release()
            self.assertEqual(bus.written, [])

        asyncio.run(main())

    def test_a_line(self):
        if importlib.util.find_spec("pymodbus") is None or importlib.util.find_spec("serial_asyncio") is None:
            self.skipTest("python3-pymodbus or python3-serial-asyncio is not here")
        if not (PROGRAMS / "modbus_wire").exists():
            self.skipTest("examples/modbus/wire.c is not built")
        path = pathlib.Path(self.folder, "bus.json")
        path.write_text(json.dumps(self.config()))
        for form in ("--python", "--async"):
            with self.subTest(form):
                done = subprocess.run([SOURCE / "examples/modbus/demo.sh", form, "--seconds", "5", "--gateways", "3",
                                       "--programs", PROGRAMS, path], capture_output=True, text=True,
                                      env={**os.environ, "REDLOCK_PYTHON": sys.executable})
                print(done.stdout)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
