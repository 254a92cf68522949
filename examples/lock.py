#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""lock.py CONFIG.json RESOURCE [SECONDS]: waits for a lock, says what for, and works under it. Exit status 1: no lock.

With the module libredlock (src/python). All that a program needs for a serial port stands in main().
"""
import sys
import time

import libredlock

TRANSACTION = 0.3  # seconds that one exchange with the device takes at most


def main(config, resource, seconds="1"):
    with libredlock.Client(config) as client:
        with client.lock(resource, wait=10.0, on_waiting=lambda event: print("waiting:", event, flush=True)) as lock:
            end = time.monotonic() + float(seconds)
            while time.monotonic() < end:
                lock.check(TRANSACTION)  # raises Lost: then nothing more is sent
                print(f"ours for {lock.validity:.3f} s", flush=True)
                time.sleep(TRANSACTION)  # the exchange with the device


if __name__ == "__main__":
    if not 3 <= len(sys.argv) <= 4:
        sys.exit(__doc__.splitlines()[0])
    try:
        main(*sys.argv[1:])
    except libredlock.Error as error:
        sys.exit(f"lock.py: {error}")
    except KeyboardInterrupt:
        sys.exit("lock.py: interrupted, the lock is released")
