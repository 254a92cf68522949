# SPDX-License-Identifier: MIT
"""Finds libredlock.so.0 and gives its functions the signatures of redlock.h.

`lib` releases the interpreter's lock during a call, `quick` keeps it: a call that only reads clocks is over before the
lock could be handed on. The variable LIBREDLOCK names a library in another place.
"""
from __future__ import annotations

import ctypes
import os

from ._layout import FUNCTIONS, VERSION

NAME = os.environ.get("LIBREDLOCK") or "libredlock.so.0"


def _load() -> tuple[ctypes.CDLL, ctypes.PyDLL]:
    try:
        libraries = ctypes.CDLL(NAME), ctypes.PyDLL(NAME)
    except OSError as error:
        raise ImportError(
            f"the library {NAME} is not here ({error}). Install it: apt install libredlock0, opkg install libredlock, "
            "or, after cmake --install below /usr/local, run ldconfig. LIBREDLOCK names a library in another place"
        ) from None
    needed = ".".join(map(str, VERSION))
    try:
        found = libraries[0].redlock_version()
        for library in libraries:
            for name, (result, arguments) in FUNCTIONS.items():
                function = getattr(library, name)
                function.restype, function.argtypes = result, arguments
    except AttributeError as error:
        raise ImportError(f"{NAME} is too old: this module needs libredlock {needed} ({error})") from None
    if (found >> 16, found >> 8 & 255, found & 255) < VERSION:
        raise ImportError(f"{NAME} is {found >> 16}.{found >> 8 & 255}.{found & 255}: "
                          f"this module needs libredlock {needed}")
    return libraries


lib, quick = _load()
