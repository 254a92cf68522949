# SPDX-License-Identifier: MIT
"""Events, and the exceptions that are made of them.

An exception is of one family, so that a program can tell apart what it would do about it. Its text is the library's
sentence for a person, with the name of the resource before it.
"""
from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Type

from ._layout import (EV_F_FLOORED, GUARD_UNKNOWN, TEXT_MAX, Cause, Code, EventType, MasterState, redlock_detail_t,
                      redlock_event_t)
from ._library import lib

if TYPE_CHECKING:
    from ._core import BaseLock


def known(kind: Any, number: int) -> Any:
    """The name of a number, or the number of a later library that this module has no name for."""
    return kind(number) if number in kind._value2member_map_ else number


class Event(NamedTuple):
    """What happened. str() is the library's sentence. Times are seconds; None: not known, or of no meaning here."""

    type: EventType
    sentence: str
    lock: Optional[BaseLock]  # None: of a master
    err: Code
    master_err: Code  # what a master gave as its cause
    cause: Cause  # WAITING, FAILED: what the acquire waits or waited for
    validity: float
    granted: int  # masters, in the round that decided
    refused: int
    failed: int
    rounds: int
    guard: Optional[float]  # until a quorum, or the master, will vote
    to_go: Optional[float]  # until a quorum will vote, or the holder's key is gone
    holder: str  # "": not known
    name: str  # of the master that is meant
    address: str
    master: Optional[int]  # MASTER: its index in the configuration
    state: Optional[MasterState]
    token: int
    floored: bool  # the token depends on the masters' wall clocks

    def __str__(self) -> str:
        return self.sentence


def _seconds(ms: int) -> Optional[float]:
    return None if ms == GUARD_UNKNOWN else ms / 1000


def _text(field: Optional[bytes]) -> str:
    return (field or b"").decode("utf-8", "replace")


def event_at(address: int, lock: Optional[BaseLock]) -> Event:
    """The event that lies at an address, during its callback."""
    e = redlock_event_t.from_address(address)
    d = redlock_detail_t.from_address(e.detail) if e.detail else redlock_detail_t()
    text = ctypes.create_string_buffer(TEXT_MAX + 1)
    lib.redlock_describe(address, text, len(text))
    of_master = e.type == EventType.MASTER
    return Event(known(EventType, e.type), _text(text.value), lock, known(Code, e.err), known(Code, e.master_err),
                 known(Cause, e.cause), e.validity_ms / 1000, e.granted, e.refused, e.failed, e.rounds,
                 _seconds(e.guard_ms), _seconds(d.to_go_ms), _text(d.holder), _text(d.name), _text(d.address),
                 e.master if of_master else None, known(MasterState, e.state) if of_master else None, e.token,
                 bool(e.flags & EV_F_FLOORED))


class Error(Exception):
    """Base of all. code: the frozen number; cause: what an acquire waited for; report: the event, or None."""

    def __init__(self, code: int, sentence: str = "", report: Optional[Event] = None) -> None:
        super().__init__(sentence or strerror(code))
        self.code: Code = known(Code, code)
        self.report = report
        self.cause: Cause = report.cause if report is not None else Cause.NONE


class Locked(Error): """Somebody else holds the resource, or another acquire of this client comes first."""
class NoQuorum(Error): """Too few masters gave a usable answer. report.master_err says what one of them said."""
class Guarded(Error): """Too few masters vote yet. report.guard says how long that takes."""
class Left(Guarded): """The site was changed, and this client left behind: end, and start again with the new file."""
class TooSlow(Error): """The lock is held or was won, but less of the validity is left than is needed."""
class TimedOut(Error, TimeoutError): """The time was over before a round finished."""
class Canceled(Error): """Released or closed before it was acquired."""
class Lost(Error): """The lock is over. Do not touch the device any more."""
class Token(Error): """No fencing token can be given, or a larger one was seen."""
class Config(Error, ValueError): """The configuration is not valid. The sentence names field, value and range."""
class Invalid(Error, ValueError): """An argument is out of range."""
class NotHeld(Error): """The lock was not acquired, or was released."""
class Full(Error): """limits.locks acquires and locks are open already."""
class Closed(Error): """The client is closed."""
class Forked(Error): """The client belongs to the parent process. A child makes a client of its own."""


_FAMILIES: dict[int, Type[Error]] = {
    Code.LOCKED: Locked, Code.NO_QUORUM: NoQuorum, Code.TOO_SLOW: TooSlow, Code.TIMEOUT: TimedOut,
    Code.CANCELED: Canceled, Code.LOST: Lost, Code.GUARD: Guarded, Code.FENCE_UNKNOWN: Token, Code.FENCE_RANGE: Token,
    Code.FENCED: Token, Code.INVAL: Invalid, Code.RESERVED: Invalid, Code.CONFIG: Config, Code.TLS_FILE: Config,
    Code.STALE: NotHeld, Code.NOT_HELD: NotHeld, Code.TABLE_FULL: Full, Code.CLOSED: Closed, Code.FORKED: Forked}


def strerror(code: int) -> str:
    return _text(lib.redlock_strerror(code))


def error(code: int, sentence: str = "", report: Optional[Event] = None) -> Error:
    """The exception of a code, of its family."""
    is_left = report is not None and report.cause == Cause.NEVER and report.master_err == Code.LEFT
    if is_left:
        return Left(code, sentence, report)
    return _FAMILIES.get(code, Error)(code, sentence, report)
