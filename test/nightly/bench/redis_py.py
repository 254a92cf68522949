# SPDX-License-Identifier: MIT
"""What cycle_bench --mode contend does, by redis.lock.Lock of redis-py, as it comes, on one master: hold the resource,
pause, ask for it again. Takes the same options, writes the same log, prints a line of JSON."""
import argparse
import os
import time

import redis
from redis.lock import Lock


class CountedLock(Lock):
    rounds = 0

    def do_acquire(self, token):
        self.rounds += 1
        return super().do_acquire(token)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ports", type=int)
    for option in ("--count", "--hold-us", "--think-us"):
        parser.add_argument(option, type=int, default=0)
    for option in ("--log", "--gate", "--mode", "--warmup"):
        parser.add_argument(option)
    o = parser.parse_args()
    client = redis.Redis("127.0.0.1", o.ports)
    client.ping()
    if o.gate:
        ready, go = map(int, o.gate.split(","))
        os.write(ready, b"r")
        os.read(go, 1)  # until the other end is closed
    lines = []
    for _ in range(o.count):
        lock = CountedLock(client, "bench", timeout=10)
        want = time.monotonic_ns()
        lock.acquire()
        got = time.monotonic_ns()
        time.sleep(o.hold_us / 1e6)
        released = time.monotonic_ns()
        lock.release()
        lines.append("%d %d %d %d %d %d" % (os.getpid(), want, got, released, time.monotonic_ns(), lock.rounds))
        time.sleep(o.think_us / 1e6)
    if o.log:
        with open(o.log, "w") as log:
            log.write("\n".join(lines) + "\n")
    print('{"ok": %d}' % o.count)


if __name__ == "__main__":
    main()
