#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""busy.py SECONDS [--gently]: a machine that is busy (test/README.md). Takes every processor at once, for up to half a
second, again and again, at a priority in real time: nothing else runs meanwhile. --gently: at the usual priority, so
that others have their share. It ends by itself, and with its parent."""

import ctypes
import os
import random
import signal
import sys
import time

PR_SET_PDEATHSIG = 1


def take(processor, end, gently):
    """All processes draw the same times from the same seed, so that they begin together."""
    os.sched_setaffinity(0, {processor})
    if not gently:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    draw = random.Random(int(end))
    at = end - float(sys.argv[1])
    while at < end:
        at += draw.uniform(0.05, 0.5)
        while time.monotonic() < min(at, end):
            pass
        at += draw.uniform(0.05, 0.5)  # the kernel keeps a part of each second for others, whatever the priority
        time.sleep(max(0.0, min(at, end) - time.monotonic()))


def main():
    if len(sys.argv) < 2 or float(sys.argv[1]) > 3600:
        sys.exit(__doc__)
    end = time.monotonic() + float(sys.argv[1])
    for processor in sorted(os.sched_getaffinity(0)):
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            take(processor, end, "--gently" in sys.argv[2:])
            os._exit(0)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


if __name__ == "__main__":
    main()
