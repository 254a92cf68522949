# SPDX-License-Identifier: MIT
"""Distributed locks through Redis or Valkey masters, for programs that share one piece of hardware.

    with libredlock.Client("bus.json") as client:
        with client.lock("plant1/rs485-a", wait=5.0) as lock:
            lock.check(0.3)                 # raises Lost
            bus.write_register(...)

libredlock.aio has the same for asyncio, where a lost lock cancels the body. All times are seconds. The promises, and
what no lock can promise, stand in redlock/redlock.h: an event may be late, so check() decides before each transaction.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._core import DEFAULT
from ._errors import (Canceled, Closed, Config, Error, Event, Forked, Full, Guarded, Invalid, Left, Locked, Lost,
                      NoQuorum, NotHeld, TimedOut, Token, TooSlow)
from ._layout import VERSION, Cause, Code, EventType, MasterState
from ._library import lib as _lib
from ._sync import Client, Lock

if TYPE_CHECKING:
    from . import aio

__version__ = ".".join(map(str, VERSION))
library_version = str(_lib.redlock_version_string().decode())  # of the library that runs, e.g. "0.3.0+openssl"
__all__ = ["DEFAULT", "Canceled", "Cause", "Client", "Closed", "Code", "Config", "Error", "Event", "EventType",
           "Forked", "Full", "Guarded", "Invalid", "Left", "Lock", "Locked", "Lost", "MasterState", "NoQuorum",
           "NotHeld", "TimedOut", "Token", "TooSlow", "aio", "library_version"]


def __getattr__(name: str) -> Any:
    """asyncio is imported only by programs that use it: it is as large as all else together."""
    if name == "aio":
        import importlib
        return importlib.import_module(".aio", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
