# SPDX-License-Identifier: MIT
"""The form for programs without a loop: the library has a thread of its own, and a call here waits for its event.
The waiting is Python's, not the library's, so that Ctrl-C ends it."""
from __future__ import annotations

import ctypes
import os
import queue
import threading
import time
from typing import Any, Coroutine, Optional, TypeVar

from ._core import BaseClient, BaseLock, Core, Name, READY_STEP, first_of
from ._errors import Locked, error
from ._layout import Code
from ._library import lib

R = TypeVar("R")


def run(coroutine: Coroutine[Any, Any, R]) -> R:
    """What both forms share waits by a blocking call here, and so never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: R = done.value  # without a call, in which Ctrl-C could lose it
        return result
    raise AssertionError


class Lock(BaseLock):
    """Of one acquire at a time. Any thread may use it."""

    def acquire(self) -> Lock:
        """Waits until the lock is held. Raises Locked, NoQuorum, Guarded, TooSlow, TimedOut, Canceled, Lost, Token:
        how the acquire ended. Invalid: an argument. Full. Closed. Forked. Whatever is raised: nothing is held."""
        return run(first_of([self]))

    def extend(self, ttl: float = 0.0) -> None:
        """Extends the validity to `ttl` seconds from now; 0.0: the ttl of the lock. Waits for the masters.
        Raises NoQuorum and the like: the lock is as valid as before. Lost. NotHeld. Invalid. Closed. Forked."""
        run(self._extend(ttl))

    def __enter__(self) -> Lock:
        return self if self._key else self.acquire()

    def __exit__(self, kind: object, *more: object) -> None:
        """Lets go. Raises Lost if the lock was over before, unless the body has raised something itself."""
        lost = self._over()
        self.release()
        if lost is not None and kind is None:
            raise lost


class _ThreadCore(Core):
    queue_type = queue.SimpleQueue
    creates_with = lib.redlock_create

    async def take(self, queue: Any) -> Any:
        if self.own_thread == threading.get_ident():
            raise error(Code.DEADLOCK)
        return queue.get()

    def close(self) -> None:
        self.shut()
        if self.own_thread == threading.get_ident():  # in a callback, whose end the library waits for
            threading.Thread(target=self.close).start()
        elif self.rl and self.pid == os.getpid():
            with self.ending:
                if not self.ended:
                    ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))
                    self.ended[:] = map(lib.redlock_destroy, [self.rl], [self.grace_ms])
                    if self.ended != [Code.TIMEOUT]:  # else the thread ends later, perhaps in a callback of ours
                        ctypes.pythonapi.Py_DecRef(ctypes.py_object(self))
                if self.ended == [Code.DEADLOCK]:  # while a line is logged, before the first event
                    self.ended.clear()
                    self.own_thread = threading.get_ident()
                    threading.Thread(target=self.close).start()
            self.gone()


class Client(BaseClient[Lock]):
    """A client with a thread of the library's own. Any thread may use it. `with` closes it, or close()."""

    _lock_type = Lock
    _core_type = _ThreadCore

    def try_lock(self, *names: Name, **options: Any) -> Optional[Lock]:
        """Asks once. The lock, held, to be used by `with`; None: somebody else holds it. Raises as acquire()."""
        try:
            return self.lock(*names, wait=0.0, **options).acquire()
        except Locked:
            return None

    def any_of(self, *names: Name, **options: Any) -> Lock:
        """The first of these names that is free: its lock, held, to be used by `with`. lock.names says which. None of
        the others is kept. It begins at a random name. Options as lock(); `wait` is for all of them together. Raises as
        acquire(), for the name that was decided last. Each name that waits takes a place of limits.locks."""
        return run(self._any_of(names, options))

    def wait_ready(self, seconds: float) -> bool:
        """Waits until enough masters vote for a lock, `seconds` at most. False: they do not; status() says why."""
        until = time.monotonic() + seconds
        while not (ready := self._is_ready()) and time.monotonic() < until:
            time.sleep(READY_STEP)
        return ready

    def close(self) -> None:
        """Releases all locks, ends all waits with Canceled, and ends the client. Waits for at most `grace` and 2 s."""
        self._core.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
