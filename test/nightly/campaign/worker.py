# SPDX-License-Identifier: MIT
"""worker.py SEED CONFIG HISTORY RESOURCE...: a gateway in Python, with the facts of worker.cpp."""
import random
import signal
import sys
import threading
import time

import libredlock

NAMES = {int(code): code.name for code in libredlock.Code}


def boot_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def says_yes(lock, n, history):
    before = boot_ns()
    try:
        lock.check()
    except libredlock.Error as error:
        history.write(f"no {before} {boot_ns()} {n} REDLOCK_E_{NAMES[error.code]}\n")
        return False
    history.write(f"yes {before} {boot_ns()} {n} {max(before, lock.deadline_ns)}\n")
    return True


def take_a_lock(client, n, resource, draw, history):
    lock = client.lock(resource, wait=draw.choice((0.0, 2.0)), fencing=True, urgent=draw.random() < 0.5)
    history.write(f"wanted {boot_ns()} {n} {resource}\n")
    try:
        lock.acquire()
    except libredlock.Error as error:
        history.write(f"failed {boot_ns()} {n} {type(error).__name__}\n")
        return time.sleep(draw.uniform(0, 0.02))
    history.write(f"got {boot_ns()} {n} {lock.token} 0 {int(lock.validity * 1000)}\n")
    until = time.monotonic() + draw.choice((0.05, 0.05, 4.0)) * draw.random()
    held = says_yes(lock, n, history)
    while held and time.monotonic() < until:
        time.sleep(draw.uniform(0.002, 0.02))
        held = says_yes(lock, n, history)
    if held:
        history.write(f"letgo {boot_ns()} {n}\n")
    lock.release()
    history.write(f"ended {boot_ns()} {n} {'released' if held else 'lost'}\n")


def main():
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    seed, config, path, *resources = sys.argv[1:]
    draw, n = random.Random(seed), 0
    with open(path, "a", buffering=1) as history:
        with libredlock.Client(config) as client:
            while not over.is_set():
                n += 1
                take_a_lock(client, n, draw.choice(resources), draw, history)
        history.write(f"bye {boot_ns()}\n")


main()
