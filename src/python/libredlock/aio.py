# SPDX-License-Identifier: MIT
"""The form for asyncio: no thread. The loop watches one descriptor, and all that happens, happens in the loop.

    async with libredlock.aio.Client("bus.json") as client:
        async with client.lock("plant1/rs485-a") as lock:
            await bus.write_register(...)   # cancelled when the lock is lost; Lost says why

A cancelled body gets CancelledError at its await, and the block raises Lost in its place. If the task is also cancelled
from outside, CancelledError goes on, as with asyncio.timeout() (before Python 3.11 the two cannot be told apart, and
Lost is raised). The body is not cancelled between two awaits: there check() decides.
"""
from __future__ import annotations

import asyncio
import os
import select
import time
from typing import Any, Optional, Type

from ._core import BaseClient, BaseLock, Core, Name, READY_STEP, first_of
from ._errors import Event, Locked, error
from ._layout import Code, EventType
from ._library import lib


class Lock(BaseLock):
    """Of one acquire at a time. check() and validity may be asked in any thread, all else in the loop's."""

    _core: _LoopCore
    _body: Optional[asyncio.Task[Any]] = None  # the task that a loss cancels
    _struck = False
    _canceling = 0  # cancellations of that task which are not ours

    def _tell(self, event: Optional[Event]) -> None:
        super()._tell(event)
        if event is not None and event.type == EventType.LOST:
            self._struck = self._body is not None and self._body.cancel()

    async def acquire(self) -> Lock:
        """Waits until the lock is held. Raises what libredlock.Lock.acquire() raises. Whatever is raised, also when the
        task is cancelled: nothing is held. A loss cancels no task: only `async with` does that."""
        return await first_of([self])

    async def extend(self, ttl: float = 0.0) -> None:
        """As libredlock.Lock.extend(). The loop goes on meanwhile."""
        await self._extend(ttl)

    def release(self) -> None:
        """As libredlock.Lock.release(). Raises Error only where another event loop runs than the client's."""
        self._core.check_loop()
        super().release()

    async def __aenter__(self) -> Lock:
        self._core.check_loop()
        if not self._key:
            await self.acquire()
        elif (lost := self._over()) is not None:  # before the block
            self.release()
            raise lost
        self._body, self._struck = asyncio.current_task(), False
        self._canceling = getattr(self._body, "cancelling", int)()
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], *more: object) -> None:
        body, self._body = self._body, None
        lost = self._over()
        self.release()
        uncancel = getattr(body, "uncancel", None) if self._struck else None
        ours = self._struck and (uncancel is None or uncancel() <= self._canceling)
        if lost is not None and (kind is None or ours and issubclass(kind, asyncio.CancelledError)):
            raise lost from None


class _LoopCore(Core):
    queue_type = asyncio.Queue

    async def take(self, queue: Any) -> Any:
        return await queue.get()

    def is_elsewhere(self) -> bool:
        """Does another event loop run than the one that watches the descriptor? No event would come."""
        if not self.rl or self.ended == [Code.CLOSED] or os.getpid() != self.pid:
            return False  # which have errors of their own
        return asyncio._get_running_loop() not in (None, self.loop)

    def check_loop(self) -> None:
        if self.is_elsewhere():
            raise error(Code.THREAD, "this client belongs to another event loop: make one in each")

    def must(self, function: Any, *arguments: Any, name: str = "") -> None:
        self.check_loop()
        super().must(function, *arguments, name=name)

    def open(self) -> None:
        if hasattr(self, "loop"):
            raise error(Code.CLOSED, "a client is opened once: make another")
        self.loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self.loop.create_future()
        self.create(lib.redlock_create_polled)
        self.fd = lib.redlock_fd(self.rl)
        self.loop.add_reader(self.fd, self.process)

    def process(self) -> None:
        """What the loop calls when the descriptor is readable."""
        if self.ended != [Code.CLOSED]:
            self.ended[:] = map(lib.redlock_process, [self.rl])
        if self.ended == [Code.CLOSED]:
            if not self.loop.is_closed() and not self.closed.done():
                self.loop.remove_reader(self.fd)
                self.closed.set_result(None)
            self.gone()
        interrupt, self.interrupt = self.interrupt, None
        if interrupt is not None:
            raise interrupt

    def close(self) -> None:
        """Without the loop, which may be gone: for a client that nobody has closed."""
        self.shut()
        if not self.rl or self.ended == [Code.CLOSED] or os.getpid() != self.pid:
            return
        lib.redlock_close_async(self.rl, self.grace_ms)
        ready, until = select.poll(), time.monotonic() + self.grace_ms / 1000 + 2
        ready.register(lib.redlock_fd(self.rl), select.POLLIN)
        while self.ended in ([], [0]) and time.monotonic() < until:  # else closed, or another thread's or process's
            ready.poll(100)
            self.process()


class Client(BaseClient[Lock]):
    """A client of one loop. `async with` opens and closes it."""

    _core: _LoopCore
    _lock_type = Lock
    _core_type = _LoopCore

    async def try_lock(self, *names: Name, **options: Any) -> Optional[Lock]:
        """Asks once. The lock, held, to be used by `async with`; None: somebody else holds it."""
        try:
            return await self.lock(*names, wait=0.0, **options).acquire()
        except Locked:
            return None

    async def any_of(self, *names: Name, **options: Any) -> Lock:
        """As libredlock.Client.any_of(): the first of these names that is free, held, to be used by `async with`."""
        return await self._any_of(names, options)

    async def wait_ready(self, seconds: float) -> bool:
        """As libredlock.Client.wait_ready(): waits until enough masters vote for a lock."""
        until = time.monotonic() + seconds
        while not (ready := self._is_ready()) and time.monotonic() < until:
            await asyncio.sleep(READY_STEP)
        return ready

    async def close(self) -> None:
        """Releases all locks, ends all waits with Canceled, and ends the client, within `grace`. A cancellation
        meanwhile is raised when the client is closed. When the client's event loop is closed, another loop may wait for
        this call, which then blocks."""
        core, canceled = self._core, None
        if core.is_elsewhere() and core.loop.is_closed():
            return core.close()
        core.check_loop()
        core.call(lib.redlock_close_async, core.grace_ms)
        core.shut()
        while core.rl and core.ended != [Code.CLOSED] and os.getpid() == core.pid:  # a forked child would wait for ever
            try:
                await asyncio.shield(core.closed)
            except asyncio.CancelledError as error:
                canceled = error
        if canceled is not None:
            raise canceled

    async def __aenter__(self) -> Client:
        self._core.open()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()
