# SPDX-License-Identifier: MIT
"""examples/modbus/guarded.py: no byte is written under a lost lock; on a line, no value is wrong with the lock."""
import asyncio
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import unittest

import libredlock
import libredlock.aio
from masters import Site

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = pathlib.Path(os.environ.get("REDLOCK_BUILD", SOURCE / "build/dev")) / "examples"


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
