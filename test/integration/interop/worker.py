# SPDX-License-Identifier: MIT
"""worker.py PORT: redis-py's Lock, in the words of foreign.hpp."""
import os
import sys
import time

import redis
from redis.exceptions import LockError, RedisError

client = redis.Redis(port=int(sys.argv[1]))
held = None


def turn(hold_ms, marker, turns):
    """The marker is made and removed while the lock is held: if it is there, somebody else holds the lock, too."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        alone = True
    except FileExistsError:
        alone = False
    with open(turns, "a", encoding="ascii") as file:
        file.write("p" if alone else "!")
    time.sleep(hold_ms / 1000)
    if alone:
        os.unlink(marker)


def contend(key, ttl_ms, hold_ms, pause_ms, marker, turns, stop):
    while not os.path.exists(stop):
        lock = client.lock(key, timeout=int(ttl_ms) / 1000, blocking_timeout=1)  # polls as its users' locks do
        if lock.acquire():
            turn(int(hold_ms), marker, turns)
            try:
                lock.release()
            except LockError:
                pass  # over meanwhile
        time.sleep(int(pause_ms) / 1000)


def acquire(key, ttl_ms):
    global held
    held = client.lock(key, timeout=int(ttl_ms) / 1000)
    if not held.acquire(blocking=False):
        raise LockError("taken")


commands = {"acquire": acquire, "extend": lambda ttl_ms: held.extend(int(ttl_ms) / 1000),
            "release": lambda: held.release(), "contend": contend}
for line in sys.stdin:
    command, *args = line.split()
    try:
        commands[command](*args)
        print("yes", flush=True)
    except RedisError as error:
        print("no:", error, flush=True)
