# SPDX-License-Identifier: MIT
"""How a client ends when nobody closes it in order: Ctrl-C, fork, the collection of garbage, the interpreter's end.

Ctrl-C and the interpreter's end are seen in processes of their own.
"""
import gc
import json
import logging
import os
import random
import select
import signal
import threading
import time
import unittest
import warnings

import libredlock
import libredlock.aio
from masters import EVENTUALLY, Site, line_of

HEAD = """
import asyncio, ctypes, gc, json, os, signal, sys, threading, time, libredlock, libredlock.aio
config = json.loads(sys.argv[1])
def say(*words): print(*words, flush=True)
"""
# Each of these is interrupted once, at the line that it says.
INTERRUPTED = {
    "wait": """
with libredlock.Client(config) as client:
    try:
        client.lock("held", wait=None, on_waiting=lambda event: say("ready")).acquire()
    except KeyboardInterrupt:
        while client.status()["locks"]["pending"]: time.sleep(0.001)
        say("interrupted", client.status()["locks"]["held"])
""",
    "any": """
with libredlock.Client(config) as client:
    try:
        said = set()
        def on_waiting(event):
            said.add(event.lock)
            if len(said) == 2: say("ready")
        client.any_of("held", "held too", wait=None, on_waiting=on_waiting)
    except KeyboardInterrupt:
        while client.status()["locks"]["pending"]: time.sleep(0.001)
        say("interrupted", client.status()["locks"]["held"])
""",
    "body": """
try:
    with libredlock.Client(config) as client, client.lock("ours"):
        say("ready")
        time.sleep(60)
except KeyboardInterrupt:
    say("interrupted 0")
""",
    "aio wait": """
async def main():
    async with libredlock.aio.Client(config) as client:
        await client.lock("held", wait=None, on_waiting=lambda event: say("ready")).acquire()
try:
    asyncio.run(main())
except KeyboardInterrupt:
    say("interrupted 0")
""",
    "aio body": """
async def main():
    async with libredlock.aio.Client(config) as client, client.lock("ours"):
        say("ready")
        await asyncio.sleep(60)
try:
    asyncio.run(main())
except KeyboardInterrupt:
    say("interrupted 0")
""",
}
INTERRUPTED_OFTEN = HEAD + """
wanted, caught, cycles = int(sys.argv[2]), 0, 0
def cycle():
    global cycles
    with client.lock("often", wait=None, ttl=3.0), client.any_of("often", "too", ttl=3.0): cycles += 1
with libredlock.Client(config) as client:
    begin = time.monotonic()
    cycle()
    took = time.monotonic() - begin
    while caught < wanted:
        try:
            say(took)
            while True: cycle()
        except KeyboardInterrupt:
            caught += 1
    while client.status()["locks"]["held"] + client.status()["locks"]["pending"]: time.sleep(0.001)
say("left", len(client._core.locks), cycles)
"""
OPENED_OFTEN = HEAD + """
wanted, caught, cycles = int(sys.argv[2]), 0, 0
def left(): return [len(os.listdir("/proc/self/" + what)) for what in ("task", "fd")]
def cycle():
    global cycles
    with libredlock.Client(config) as client, client.lock("often", wait=None, ttl=3.0): cycles += 1
def open_and_close():
    while True: cycle()
async def open_and_close_aio():
    global cycles
    while True:
        async with libredlock.aio.Client(config) as client, client.lock("often", wait=None, ttl=3.0): cycles += 1
with libredlock.Client(config): pass  # libuv makes a pipe once for the process
before = left()
begin = time.monotonic()
cycle()
took = time.monotonic() - begin
while caught < wanted:
    try:
        say(took)
        if sys.argv[3] == "aio": asyncio.run(open_and_close_aio())
        open_and_close()
    except (KeyboardInterrupt, asyncio.CancelledError):  # the latter from a task that has not begun
        caught += 1
gc.collect()
while left() != before: time.sleep(0.001)
say("left nothing", cycles)
"""
FORKED_OFTEN = HEAD + """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of a fork beside threads
def check():
    while True:
        try: lock.check()
        except libredlock.Error: pass
client = libredlock.Client(config)
lock = client.lock("forked").acquire()
threading.Thread(target=check, daemon=True).start()
for i in range(10):
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # ends a child that waits for ever
        for call in (lock.check, client.status):
            try: call()
            except libredlock.Forked: pass
            else: sys.exit(1)
        lock.release()
        if i % 2: client.close()
        sys.exit(0)
    status = os.waitpid(child, 0)[1]
    if status != 0: sys.exit(f"child {i} ended with {status}")
"""
ENDS = {
    "sync": "client = libredlock.Client(config); lock = client.lock('ours').acquire()",
    "never collected": """
client = libredlock.Client(config)
lock = client.lock("ours").acquire()
ctypes.pythonapi.Py_IncRef(ctypes.py_object(lock))
""",
    "thread": """
client = libredlock.Client(config, on_event=lambda event: None)
lock = client.lock("ours").acquire()
threading.Thread(target=lambda: [time.sleep(0.05), lock.check()]).start()
""",
    "callback": """
client = libredlock.Client(config, on_event=lambda event: time.sleep(0.01))
lock = client.lock("ours", ttl=0.2).acquire()
sys.exit(0)
""",
    "aio": """
async def main():
    global client, lock
    client = libredlock.aio.Client(config)
    await client.__aenter__()
    lock = await client.lock("ours").acquire()
asyncio.run(main())
""",
}


class Ends(Site):
    def ended(self, process):
        out, err = process.communicate(timeout=120)
        usual = ("ResourceWarning", "tracemalloc", " not extended: ")  # the last: the machine is busy
        said = [line for line in err.splitlines() if not any(word in line for word in usual)]
        self.assertEqual((process.returncode, said), (0, []))
        return out

    def ended_behind_interrupts(self, process):
        out, err = process.communicate(timeout=120)  # err: Python tells of the interrupts that it has dropped
        self.assertEqual(process.returncode, 0, err)
        return out

    # Python drops an interrupt that comes in a finalizer or in a callback: a person presses Ctrl-C again.
    def interrupt(self, process):
        process.send_signal(signal.SIGINT)
        while not select.select([process.stdout], [], [], 2)[0]:
            process.send_signal(signal.SIGINT)

    def test_interrupted(self):
        with libredlock.Client(self.config()) as client, client.lock("held", "held too"):
            for name, program in INTERRUPTED.items():
                with self.subTest(name):
                    process = self.run_python(HEAD + program, json.dumps(self.config()))
                    self.assertEqual(line_of(process), "ready")
                    self.interrupt(process)
                    out = self.ended_behind_interrupts(process)
                    self.assertEqual(out.replace("ready\n", ""), "interrupted 0\n")
                    self.eventually(lambda: self.holders("ours") == 0)

    def test_interrupted_at_random_instants(self):
        draw, count = random.Random(2), 60
        process = self.run_python(INTERRUPTED_OFTEN, json.dumps(self.config()), str(count))
        for _ in range(count):
            time.sleep(draw.random() * 2 * float(line_of(process)))
            self.interrupt(process)
        self.assertRegex(self.ended_behind_interrupts(process), "left 0 [1-9]")
        self.assertEqual(self.holders("often") + self.holders("too"), 0)

    def test_interrupted_while_it_opens_and_closes(self):
        draw, count = random.Random(3), 60
        for form in ("sync", "aio"):
            with self.subTest(form):
                process = self.run_python(OPENED_OFTEN, json.dumps(self.config()), str(count), form)
                for _ in range(count):
                    time.sleep(draw.random() ** 3 * 2 * float(line_of(process)))  # often early: it begins to open
                    self.interrupt(process)
                self.assertRegex(self.ended_behind_interrupts(process), "left nothing [1-9]")
                self.assertEqual(self.holders("often"), 0)

    def test_the_interpreter_ends_with_a_lock_held(self):
        for name, program in ENDS.items():
            with self.subTest(name):
                process = self.run_python(HEAD + program, json.dumps(self.config()))
                self.assertEqual(self.ended(process), "")
                self.assertEqual(self.holders("ours"), 0)

    def test_a_client_that_is_collected(self):
        with self.assertWarnsRegex(ResourceWarning, "libredlock._sync.Client was not closed"):
            client = libredlock.Client(self.config())
            core = client._core
            del client
        self.assertEqual(core.ended, [0])

    def test_a_client_of_asyncio_that_is_collected(self):
        import asyncio

        async def main(held):
            client = libredlock.aio.Client(self.config())
            await client.__aenter__()
            lock = client.lock("a")
            if held:
                await lock.acquire()
            return client._core

        with self.assertWarnsRegex(ResourceWarning, "libredlock.aio.Client was not closed"):
            self.assertEqual(asyncio.run(main(False)).ended, [libredlock.Code.CLOSED])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            core = asyncio.run(main(True))
            gc.collect()
        self.assertEqual(core.ended, [libredlock.Code.CLOSED])
        self.assertEqual(self.holders("a"), 0)

    def test_a_lock_that_is_collected(self):
        with libredlock.Client(self.config()) as client:
            with self.assertWarnsRegex(ResourceWarning, "Lock a> was not released"):
                client.lock("a").acquire()
                gc.collect()
            self.eventually(lambda: client.status()["locks"]["held"] == 0)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                with client.lock("a"):
                    pass
                gc.collect()

    def test_collected_in_its_own_callback(self):
        box = []

        def on_event(event):
            if event.type == libredlock.EventType.RELEASED:
                box.clear()  # the last reference
                gone.append(True)

        gone = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            client = libredlock.Client(self.config(), on_event=on_event)
            box.append(client)
            lock = client.lock("a").acquire()
            del client
            lock.release()
            del lock
            self.eventually(lambda: gone)
        self.eventually(lambda: self.holders("a") == 0)

    def test_collected_while_its_first_line_is_logged(self):
        box, filled = [], threading.Event()

        def emit(record):
            filled.wait(EVENTUALLY)
            box.clear()  # the last reference, on the library's thread, of which no event has told yet

        handler = logging.Handler()
        handler.emit = emit
        logger = logging.Logger("of its own")
        logger.addHandler(handler)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            box.append(libredlock.Client(self.config(), logger=logger))
            core = box[0]._core
            filled.set()
            self.eventually(lambda: core.ended)
        self.eventually(lambda: core.ended == [0])

    def test_forked_while_another_thread_is_in_a_call(self):
        process = self.run_python(FORKED_OFTEN, json.dumps(self.config()))
        self.assertEqual(self.ended(process), "")

    def test_silent_masters_do_not_hold_up_the_end(self):
        client = libredlock.Client(self.config(), grace=0.1)
        client.lock("a").acquire()
        with self.frozen(3):
            begin = time.monotonic()
            client.close()
            self.assertLess(time.monotonic() - begin, EVENTUALLY)


if __name__ == "__main__":
    unittest.main()
