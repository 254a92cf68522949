#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""guarded.py [--no-lock] [--async] [--seconds N] TTY CONFIG.json | URL...: what gateway.c does, with pymodbus.

What to copy is the class Guarded: it asks the lock before each read and each write of a pymodbus client, of both kinds,
whether that transaction can end in time. A lost lock raises before a byte is written.

A retry of pymodbus's own writes again without a question. So retries are off here; else `need` covers all of them. A
request that the program makes itself and gives to execute() is not asked for either: call check() before it.
"""
import argparse
import asyncio
import contextlib
import inspect
import json
import random
import sys
import time

import libredlock
import libredlock.aio

DEVICE, SELECT, VALUE, CHANNELS = 17, 0, 1, 200
# Seconds; gateway.c says what each is. RESPONSE is a whole number, because pymodbus 3.0 cuts a fraction off.
RESPONSE, FRAME, SILENCE, SETTLE, THINK = 1, 0.01, 0.003, 0.03, 0.02
NEED = RESPONSE + 2 * FRAME


class Guarded:
    """The calls of a pymodbus client under a lock. need: seconds that one transaction takes at most, answer included.

    After an error the answer may still come, and would meet the next sender: the caller stays silent for `need`.
    """

    CALLS = ("read_", "write_", "readwrite_", "mask_write_", "diag_", "report_")

    def __init__(self, bus, lock, need):
        self._bus, self._lock, self._need = bus, lock, need

    def __getattr__(self, name):
        call = getattr(self._bus, name)
        if not name.startswith(self.CALLS):
            return call

        def guarded(*arguments, **options):
            self._lock.check(self._need)
            answer = call(*arguments, **options)
            return self._when_awaited(answer) if inspect.isawaitable(answer) else answer
        return guarded

    async def _when_awaited(self, answer):
        try:
            self._lock.check(self._need)  # the call may be awaited long after it was made
        except libredlock.Error:
            if inspect.iscoroutine(answer):
                answer.close()  # which would warn that nobody has awaited it
            raise
        return await answer


class AlwaysMine:
    """Stands in for a lock, to show what happens without one."""

    def check(self, need):
        pass


class Tally(dict):
    def __init__(self):
        super().__init__(good=0, crc_errors=0, time_outs=0, wrong=0, stopped=0)

    def error(self, answer):
        self["time_outs" if "no response" in str(answer).lower() else "crc_errors"] += 1

    def value(self, answer, channel):
        self["good" if answer.registers == [100 * channel + 7] else "wrong"] += 1  # a real gateway cannot tell


def one_job(bus, tally):
    channel = random.randint(1, CHANNELS)
    time.sleep(SILENCE)
    answer = bus.write_register(SELECT, channel, slave=DEVICE)
    if not answer.isError():
        time.sleep(SETTLE)
        answer = bus.read_holding_registers(VALUE, 1, slave=DEVICE)
    if answer.isError():
        tally.error(answer)
        time.sleep(NEED)
    else:
        tally.value(answer, channel)


def settings(masters):
    urls = [master for master in masters if "://" in master]
    files = [master for master in masters if master not in urls]
    return files[:1], {"masters": urls} if urls else {}


def run(o, tally):
    import logging
    from pymodbus.client import ModbusSerialClient
    logging.disable(logging.WARNING)  # pymodbus tells each byte that others have left
    # strict: 1.5 bytes of silence would end an answer, which is less than a turn of a busy machine
    bus = ModbusSerialClient(o.tty, baudrate=19200, stopbits=2, timeout=RESPONSE, retries=0, retry_on_empty=False,
                             strict=False)
    if not bus.connect():
        sys.exit(f"{o.tty} cannot be opened")
    files, masters = settings(o.masters)
    client = None if o.no_lock else libredlock.Client(*files, **masters)
    try:
        end = time.monotonic() + o.seconds
        while time.monotonic() < end:
            try:
                if client is None:
                    one_job(Guarded(bus, AlwaysMine(), NEED), tally)
                else:
                    with client.lock("plant1/rs485-a", ttl=3.0, wait=5.0, min_validity=NEED) as lock:
                        one_job(Guarded(bus, lock, NEED), tally)
            except libredlock.Error as error:
                tally["stopped"] += 1
                print("job broken off:", error, file=sys.stderr)
            time.sleep(THINK * random.uniform(0.5, 1.5))
    finally:
        bus.close()
        if client is not None:
            client.close()


async def one_job_async(bus, tally):
    channel = random.randint(1, CHANNELS)
    await asyncio.sleep(SILENCE)
    try:
        await bus.write_register(SELECT, channel, slave=DEVICE)
        await asyncio.sleep(SETTLE)
        tally.value(await bus.read_holding_registers(VALUE, 1, slave=DEVICE), channel)
    except (asyncio.TimeoutError, AttributeError) as error:  # no answer; one that is no value
        tally.error("no response" if isinstance(error, asyncio.TimeoutError) else error)
        await asyncio.sleep(NEED)


async def run_async(o, tally):
    from pymodbus.client import AsyncModbusSerialClient
    bus = AsyncModbusSerialClient(o.tty, baudrate=19200, stopbits=2, timeout=RESPONSE, retries=0)
    await bus.connect()
    files, masters = settings(o.masters)
    async with contextlib.AsyncExitStack() as stack:
        client = None if o.no_lock else await stack.enter_async_context(libredlock.aio.Client(*files, **masters))
        end = time.monotonic() + o.seconds
        while time.monotonic() < end:
            try:
                if client is None:
                    await one_job_async(Guarded(bus.protocol, AlwaysMine(), NEED), tally)
                else:
                    async with client.lock("plant1/rs485-a", ttl=3.0, wait=5.0, min_validity=NEED) as lock:
                        await one_job_async(Guarded(bus.protocol, lock, NEED), tally)
            except libredlock.Error as error:
                tally["stopped"] += 1
                print("job broken off:", error, file=sys.stderr)
            await asyncio.sleep(THINK * random.uniform(0.5, 1.5))
    await bus.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-lock", action="store_true")
    parser.add_argument("--async", action="store_true", dest="asynchronous")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("tty")
    parser.add_argument("masters", nargs="*")
    o = parser.parse_args()
    tally = Tally()
    if o.asynchronous:
        asyncio.run(run_async(o, tally))
    else:
        run(o, tally)
    print(json.dumps(tally, separators=(",", ":")))


if __name__ == "__main__":
    main()
