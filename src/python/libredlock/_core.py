# SPDX-License-Identifier: MIT
"""What both forms share: a configuration, the one callback, and a lock that can be checked.

The library calls back by number: each acquire has a key of its own, which the library hands back with each event. An
event whose key is gone belongs to nobody, and so a late event never reaches a later acquire.

`gate` keeps a call from meeting a client that is being closed in another thread. It is re-entrant, because a collection
of garbage may release a lock in the middle of a call. No call inside it waits for the network or for a callback.

Ctrl-C may come between any two steps of Python, but not inside one call of a function that is written in C. So the
library itself writes down what it has made, and `ended[:] = map(...)` ends a client and writes that down in one step.
"""
from __future__ import annotations

import ctypes
import itertools
import json
import logging
import math
import os
import random
import threading
import time
import warnings
import weakref
from typing import Any, Awaitable, Callable, Generic, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union, cast

from ._errors import Config, Error, Event, Lost, error, event_at, strerror
from ._layout import (F_FENCING, F_NO_RENEW, F_TELL_WAITING, F_URGENT, WAIT_DEFAULT, WAIT_FOREVER, Cause, Code,
                      EventType, redlock_acquire_opts_t, redlock_event_fn, redlock_lock_t, redlock_log_fn,
                      redlock_resource_t)
from ._library import lib, quick

Name = Union[str, bytes]
Source = Union[str, "os.PathLike[str]", Mapping[str, Any]]
OnEvent = Callable[[Event], object]
DEFAULT = float(WAIT_DEFAULT)  # wait: what the configuration says, defaults.wait_ms and timing.guard_wait_ms
READY_STEP = 0.02  # seconds between two looks of wait_ready()
STACK_BYTES = 1 << 20  # Python's callbacks need more than the library's 64 KB
ENDS = (EventType.FAILED, EventType.LOST, EventType.RELEASED)
WARNED: set[str] = set()  # of configurations: each is a warning once in a process, and for debugging after that
LEVELS = {3: logging.ERROR, 4: logging.WARNING, 5: logging.INFO, 6: logging.INFO, 7: logging.DEBUG}


def milliseconds(name: str, seconds: float) -> int:
    """Rounded up, so that a need is never cut."""
    if not isinstance(seconds, (int, float)) or not 0 <= seconds < 4294967:
        raise ValueError(f"{name}={seconds!r}: a number of seconds is meant, 0 or more")
    return math.ceil(seconds * 1000)


def resource(name: Name) -> redlock_resource_t:
    raw = name.encode() if isinstance(name, str) else name
    return redlock_resource_t(ctypes.cast(ctypes.c_char_p(raw), ctypes.c_void_p), len(raw))  # which keeps the bytes


class Core:
    """One client of the library. It knows no object that the program holds, so that those can be collected."""

    creates_with: Any = None  # the function that makes a client at once, without a loop
    close: Callable[[], None]  # ends the client; does nothing when there is none
    queue_type: Any  # of the events that somebody waits for; None: the client is gone, and no event will come
    take: Callable[[Any], Awaitable[Optional[Event]]]  # the next of a queue

    def __init__(self, source: Optional[Source], settings: Mapping[str, Any], on_event: Optional[OnEvent],
                 logger: Optional[logging.Logger], grace: float) -> None:
        self.cfg, self.rl = ctypes.c_void_p(), ctypes.c_void_p()
        self.is_open = False  # may be called
        self.ended: list[int] = []  # what the library has said of the end
        self.pid, self.own_gate, self.ending = os.getpid(), threading.RLock(), threading.Lock()
        self.own_thread = 0
        self.grace_ms = min(milliseconds("grace", grace), 60000)
        self.locks: weakref.WeakValueDictionary[int, BaseLock] = weakref.WeakValueDictionary()
        self.keys = itertools.count(1)
        self.on_event = on_event or (lambda event: None)
        self.logger = logger or logging.getLogger("libredlock")
        self.said = threading.local()  # the last log line of this thread: why a call was refused
        self.interrupt: Optional[BaseException] = None
        self.event_fn = redlock_event_fn(self._on_event)
        self.log_fn = redlock_log_fn(self._on_log)
        self._configured(lib.redlock_config_new(ctypes.byref(self.cfg)))
        self._configure(source, settings)

    def __del__(self) -> None:
        self.close()  # if Ctrl-C has interrupted the finalizer of the client
        lib.redlock_config_free(self.cfg)

    @property
    def gate(self) -> Any:
        """In a child of fork() there is none: who was inside at the fork is not there to leave it."""
        return self.own_gate if os.getpid() == self.pid else threading.RLock()

    def _configured(self, err: int) -> None:
        if err != 0:
            why = lib.redlock_config_error(self.cfg).decode()
            raise Config(err, why) if why else error(err)

    def _configure(self, source: Optional[Source], settings: Mapping[str, Any]) -> None:
        if isinstance(source, str) and "://" in source:
            raise error(Code.CONFIG, f"a file is meant, not {source.split('@')[-1]}: say masters=[\"redis://...\"]")
        if source is not None and not isinstance(source, Mapping):
            self._configured(lib.redlock_config_load_file(self.cfg, os.fsencode(source)))
            source = None
        for layer in filter(None, (source, settings)):
            text = json.dumps(layer).encode()
            self._configured(lib.redlock_config_load_json(self.cfg, text, len(text)))
        self._configured(lib.redlock_config_set_u32(self.cfg, b"limits.stack_bytes", STACK_BYTES))
        self._configured(0 if lib.redlock_memory_size(self.cfg) else Code.CONFIG)  # relations between the keys
        lib.redlock_config_set_event(self.cfg, self.event_fn, None)
        lib.redlock_config_set_log(self.cfg, self.log_fn, None, 7)  # which line counts, the logger knows

    def create(self, function: Any) -> None:
        self._configured(function(ctypes.byref(self.rl), self.cfg))
        self.is_open = True

    def shut(self) -> None:
        with self.gate:
            self.is_open = False  # no call reaches the client any more

    async def next(self, queue: Any) -> Event:
        if (event := await self.take(queue)) is None:
            raise error(Code.CLOSED)
        return event

    def gone(self) -> None:
        for lock in list(self.locks.values()):
            lock._tell(None)

    def _on_log(self, level: int, line: bytes, user: Optional[int]) -> None:
        text = self.said.line = line.decode("utf-8", "replace")
        if not self.is_open and level == 4:
            level = 7 if text in WARNED else 4
            WARNED.add(text)
        self.logger.log(LEVELS.get(level, logging.INFO), "%s", text)

    def _on_event(self, rl: int, address: int, key: Optional[int]) -> None:
        self.own_thread = threading.get_ident()
        try:
            lock = self.locks.get(key) if key else None
            event = event_at(address, lock)
            if lock is not None and lock._key == key:  # else of an earlier acquire by this object
                lock._tell(event)
            if key and event.type in ENDS:
                self.locks.pop(key, None)
            self.on_event(event)
        except Exception:
            self.logger.exception("an exception in a callback, which the library cannot pass on")
        except BaseException as interrupt:  # Ctrl-C: raised again behind redlock_process()
            self.interrupt = interrupt

    def call(self, function: Callable[..., int], *arguments: Any) -> int:
        """A call that does not wait for the network: its result, or CLOSED."""
        with self.gate:
            return function(self.rl, *arguments) if self.is_open else Code.CLOSED

    def must(self, function: Any, *arguments: Any, name: str = "") -> None:
        """A call that raises its error, with what the library has logged about an argument."""
        self.said.line = ""
        err = self.call(function, *arguments)
        if err != 0:
            raise error(err, name + (self.said.line.split(": ", 1)[-1] or strerror(err)))


class BaseLock:
    """A lock of both forms. It may be acquired again when it is over. `names`: of its resources, as they were given."""

    def __init__(self, client: BaseClient[Any], names: Tuple[Name, ...], options: redlock_acquire_opts_t,
                 on_waiting: Optional[OnEvent]) -> None:
        if not names or any(not isinstance(name, (str, bytes)) for name in names):
            raise TypeError("the names of the resources are meant, each a str or bytes: lock(\"plant1/rs485-a\")")
        self._client, self._core = client, client._core  # keeps the client while the lock is used
        self.names, self._options, self._on_waiting = names, options, on_waiting
        self._id, self._wait_ms = redlock_lock_t(), options.wait_ms
        self._key: int = 0  # 0: not asked for
        self._queue: Any = None  # while somebody waits for events
        self._lost: Optional[Event] = None

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__} {self._said()}>"

    def _said(self) -> str:
        return ", ".join(n if isinstance(n, str) else n.decode("utf-8", "backslashreplace") for n in self.names)

    def _tell(self, event: Optional[Event]) -> None:
        """An event of this acquire; None: the client is gone."""
        if event is not None and event.type == EventType.LOST:
            self._lost = event
        if (queue := self._queue) is not None:  # once: another thread may set it
            queue.put_nowait(event)

    def _begin(self, queue: Any, spent_ms: int) -> None:
        """Asks for the lock. The caller releases if it does not want the answer any more."""
        resources = (redlock_resource_t * len(self.names))(*map(resource, self.names))
        core, options = self._core, self._options
        self._lost, self._queue, self._key = None, queue, next(core.keys)
        core.locks[self._key] = self
        options.callback, options.user, options.wait_ms = core.event_fn, self._key, self._wait_ms - spent_ms
        try:
            core.must(lib.redlock_acquire_async, resources, len(resources), ctypes.byref(options),
                      ctypes.byref(self._id), name=self._said() + ": ")
        except Error:
            del core.locks[self._key]  # no event follows
            raise

    async def _extend(self, ttl: float) -> None:
        queue = self._queue = self._core.queue_type()
        try:
            self._core.must(lib.redlock_extend_async, self._id, milliseconds("ttl", ttl))
            event = await self._core.next(queue)
            if event.type != EventType.RENEWED:
                raise self._failure(event)
        finally:
            self._queue = None

    def _failure(self, event: Event) -> Error:
        return error(event.err, f"{self._said()}: {event.sentence}", event)

    def release(self) -> None:
        """Lets go, or gives up an acquire. Does not wait, never raises, and does nothing when the lock is over."""
        with self._core.gate:
            if self._key:
                self._core.call(lib.redlock_release_async, self._id)
            self._key, self._id, self._queue = 0, redlock_lock_t(), None

    def __del__(self) -> None:
        if getattr(self, "_key", 0):
            warnings.warn(f"{self!r} was not released", ResourceWarning, source=self)
            BaseLock.release(self)  # in any loop

    def _over(self) -> Optional[Lost]:
        """Lost, if the lock was acquired and is over."""
        if self._key and (self._lost or self._core.call(quick.redlock_check, self._id, 0) == Code.LOST):
            return Lost(Code.LOST, f"{self._said()}: {self._lost or strerror(Code.LOST)}", self._lost)
        return None

    def check(self, need: float = 0.0) -> None:
        """May the device be touched for the next `need` seconds? Returns if so.

        Call it last before each transaction, with the longest time that the transaction takes. Any thread.
        Raises Lost: the lock is over. TooSlow: it is held, but less than `need` is left. NotHeld. Closed. Forked.
        """
        err: Any = self._core.call(quick.redlock_check, self._id, milliseconds("need", need))
        if err != 0:
            why = {Code.STALE: "is not held", Code.TOO_SLOW: f"{need:g} s are needed, {self.validity:g} s are left"}
            raise self._over() or error(err, f"{self._said()}: {why.get(err) or strerror(err)}")

    @property
    def validity(self) -> float:
        """Seconds that are left, rounded down to a millisecond; 0.0 also: not held. Any thread."""
        return max(0, self._core.call(quick.redlock_validity_ms, self._id)) / 1000

    @property
    def deadline_ns(self) -> int:
        """The end of the validity on CLOCK_BOOTTIME, in nanoseconds; 0: not held. Ask again after RENEWED."""
        return max(0, self._core.call(quick.redlock_deadline_ns, self._id))

    @property
    def token(self) -> int:
        """The fencing token, 1 .. 2**63 - 1; 0: none. Needs fencing=True."""
        return max(0, self._core.call(quick.redlock_fencing_token, self._id))


L = TypeVar("L", bound=BaseLock)


async def first_of(locks: Sequence[L]) -> L:
    """Asks for one lock after another, each when others hold the one before, and keeps the first that is won. The wait
    of the first is for all of them together. Whatever is raised: none is held."""
    lock = locks[0]
    if lock._key:
        raise RuntimeError(f"{lock._said()}: this object is acquired already: client.lock() makes another")
    core, wait, began, queue = lock._core, lock._wait_ms, time.monotonic(), lock._core.queue_type()
    asked = pending = 1
    try:
        lock._begin(queue, 0)
        while True:
            event = await core.next(queue)
            lock = cast(L, event.lock)
            if event.type == EventType.ACQUIRED:
                for other in set(locks) - {lock}:
                    other.release()
                lock._queue = None
                return lock
            if event.type != EventType.WAITING:
                pending -= 1
            elif lock._on_waiting is not None:
                lock._on_waiting(event)
            spent = int((time.monotonic() - began) * 1000) if wait > 0 else 0
            is_held = event.cause == Cause.HELD and lock is locks[asked - 1]
            if is_held and asked < len(locks) and spent <= max(wait, 0):
                locks[asked]._begin(queue, spent)
                asked, pending = asked + 1, pending + 1
            if pending == 0:
                raise lock._failure(event)
    except BaseException:
        for lock in locks:
            BaseLock.release(lock)
        raise


class BaseClient(Generic[L]):
    """A client of both forms."""

    _lock_type: Type[L]
    _core_type: Type[Core] = Core

    def __init__(self, config: Optional[Source] = None, *, on_event: Optional[OnEvent] = None,
                 logger: Optional[logging.Logger] = None, grace: float = 1.0, **settings: Any) -> None:
        """config: a file, or a dict with the keys of such a file; settings: keys on top, e.g. masters=[url, ...],
        client_name="gw-7", timing={"max_ttl_ms": 5000}. The keys that end in _ms are milliseconds, as in the file.
        on_event: is called with each Event, on the client's thread. It must not wait.
        logger: gets the library's lines; by default the logger "libredlock".
        grace: seconds that close() gives to the masters for the last deletes.
        Raises Config, which names the field, its value and its range.
        """
        self._core = self._core_type(config, settings, on_event, logger, grace)
        # At the end of the interpreter, too: no thread of the library may call an interpreter that is gone.
        weakref.finalize(self, self._core.close)
        if self._core.creates_with is not None:
            self._core.create(self._core.creates_with)

    def lock(self, *names: Name, ttl: float = 0.0, wait: Optional[float] = DEFAULT, min_validity: float = 0.0,
             max_hold: float = 0.0, retry_delay: float = 0.0, renew: bool = True, fencing: bool = False,
             urgent: bool = False, on_waiting: Optional[OnEvent] = None) -> L:
        """A lock of one resource, or of up to four at once. It is asked for by `with`, or by acquire().

        Seconds; 0.0 means the configuration's value, or no limit. ttl: of the keys, if nobody renews them.
        wait: 0 asks once; None waits for ever. min_validity: less counts as not won. max_hold: nothing renews beyond.
        renew=False: extend() by hand. fencing: a token. urgent: before all that wait without it.
        on_waiting: is told what the acquire waits for.
        """
        o = redlock_acquire_opts_t(size=ctypes.sizeof(redlock_acquire_opts_t))
        o.flags = F_TELL_WAITING | F_NO_RENEW * (not renew) | F_FENCING * bool(fencing) | F_URGENT * bool(urgent)
        o.wait_ms = (WAIT_FOREVER if wait is None else WAIT_DEFAULT if wait == DEFAULT
                     else min(milliseconds("wait", wait), 0x7FFFFFFF))
        o.ttl_ms, o.min_validity_ms = milliseconds("ttl", ttl), milliseconds("min_validity", min_validity)
        o.max_hold_ms, o.retry_delay_ms = milliseconds("max_hold", max_hold), milliseconds("retry_delay", retry_delay)
        return self._lock_type(self, names, o, on_waiting)

    async def _any_of(self, names: Tuple[Name, ...], options: Mapping[str, Any]) -> L:
        first = random.randrange(len(names) or 1)  # so that devices that are free are used alike
        return await first_of([self.lock(name, **options) for name in names[first:] + names[:first]]
                              or [self.lock(**options)])  # which says what is wrong

    def status(self) -> Any:
        """The state of the client and of its masters: a dict, with the keys of redlock_status_json() in redlock.h."""
        text = ctypes.create_string_buffer(65536)  # 15 masters take 8 KB
        self._core.must(lib.redlock_status_json, text, ctypes.byref(ctypes.c_size_t(len(text))))
        return json.loads(text.value)

    def _is_ready(self) -> bool:
        status = self.status()
        return bool(status["masters_up"] >= status["quorum"])

    def commission(self, master: Optional[int] = None) -> None:
        """States that nobody holds a lock of these masters, or of the one with this index: the guard does not watch
        them. One person says so, once, on one gateway of a new site: redlock.h says what a false statement does."""
        if master is None:
            self._core.must(lib.redlock_commission)
        else:
            index = master if 0 <= master < 1 << 32 else (1 << 32) - 1  # ctypes cuts larger numbers off, to 0 perhaps
            self._core.must(lib.redlock_commission_master, index)

    def fence_init(self, name: Name) -> None:
        """"fence": "strict": the next acquire of this resource may take its token from the masters' clocks, once."""
        self._core.must(lib.redlock_fence_init, ctypes.byref(resource(name)))

    def suspended(self) -> None:
        """For a power manager whose kernel does not count suspends: every held lock is over."""
        self._core.must(lib.redlock_suspended)

    def __del__(self) -> None:
        if hasattr(self, "_core") and self._core.is_open:
            warnings.warn(f"{type(self).__module__}.Client was not closed", ResourceWarning, source=self)
            self._core.close()
