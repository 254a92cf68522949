#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""python_module.py [COUNT]: what a cycle costs in Python, with the module libredlock and with redis-py, on one master.

A cycle is an acquire and its release of one resource that nobody else wants. The programs take turns, in one run, so
that the ratios mean something on a machine that is busy. LIBREDLOCK names the library: build it without asserts.
"""
import asyncio
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2] / "src/python"), str(HERE.parents[1] / "python")]
import libredlock  # noqa: E402
import libredlock.aio  # noqa: E402
from masters import Site  # noqa: E402

ROUNDS = 7


def measured(count, work):
    """Cycles a second, and microseconds of CPU a cycle, of this process with its threads."""
    begin, cpu = time.perf_counter(), time.process_time()
    work(count)
    return count / (time.perf_counter() - begin), (time.process_time() - cpu) / count * 1e6


def blocking(client):
    def work(count):
        for _ in range(count):
            with client.lock("bench"):
                pass
    return work


def with_asyncio(config):
    async def cycles(count):
        async with libredlock.aio.Client(config) as client:
            async with client.lock("bench"):
                pass  # connected
            begin, cpu = time.perf_counter(), time.process_time()
            for _ in range(count):
                async with client.lock("bench"):
                    pass
            return count / (time.perf_counter() - begin), (time.process_time() - cpu) / count * 1e6
    return lambda count: asyncio.run(cycles(count))


def redis_py(port):
    try:
        import redis
    except ImportError:
        return None
    client = redis.Redis("127.0.0.1", port)

    def work(count):
        for _ in range(count):
            with client.lock("bench", timeout=10):
                pass
    return work


def check_ns(client):
    with client.lock("bench") as lock:
        count = 20000
        begin = time.thread_time()
        for _ in range(count):
            lock.check(0.3)
        return (time.thread_time() - begin) / count * 1e9


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    Site.count = 1
    Site.setUpClass()
    try:
        with libredlock.Client(Site.config()) as client:
            theirs = redis_py(Site.masters[0].port)
            programs = {"libredlock": lambda n: measured(n, blocking(client)),
                        "libredlock.aio": with_asyncio(Site.config())}
            if theirs is not None:
                programs["redis-py's Lock"] = lambda n: measured(n, theirs)
            results = {name: [] for name in programs}
            for _ in range(ROUNDS):
                for name, program in programs.items():
                    results[name].append(program(count))
            checks = [check_ns(client) for _ in range(ROUNDS)]
    finally:
        Site.doClassCleanups()
    print(f"| one master, {ROUNDS} rounds of {count} | cycles a second | CPU of a cycle, µs | x redis-py |")
    print("|---|---|---|---|")
    for name, found in results.items():
        rates, cpus = zip(*found)
        ratios = [mine[0] / other[0] for mine, other in zip(found, results.get("redis-py's Lock", []))]
        times = f"{statistics.median(ratios):.2f}" if ratios else "-"
        print(f"| {name} | {statistics.median(rates):.0f} | {statistics.median(cpus):.0f} | {times} |")
    print(f"\ncheck(): {statistics.median(checks):.0f} ns of CPU")


if __name__ == "__main__":
    main()
