#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""lock.py CONFIG.json RESOURCE: holds a lock from Python, by ctypes alone: no binding is needed. Exit 1: no lock."""
import ctypes
import os
import sys

lib = ctypes.CDLL(os.environ.get("LIBREDLOCK", "libredlock.so.0"))
lib.redlock_config_error.restype = lib.redlock_strerror.restype = ctypes.c_char_p
lib.redlock_validity_ms.restype = ctypes.c_int64


class Resource(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_uint32)]


Lock = ctypes.c_uint64  # redlock_lock_t: one number, passed by value
cfg, client, lock = ctypes.c_void_p(), ctypes.c_void_p(), Lock()
lib.redlock_config_new(ctypes.byref(cfg))
if lib.redlock_config_load_file(cfg, sys.argv[1].encode()) or lib.redlock_create(ctypes.byref(client), cfg):
    sys.exit(lib.redlock_config_error(cfg).decode())
name = sys.argv[2].encode()
err = lib.redlock_acquire(client, ctypes.byref(Resource(name, len(name))), 1, None, ctypes.byref(lock))
if err == 0 and lib.redlock_check(client, lock, 300) == 0:  # before each use of the device
    print("ours for", lib.redlock_validity_ms(client, lock), "ms")
lib.redlock_destroy(client, 1000)  # lets go, too
sys.exit(lib.redlock_strerror(err).decode() if err else 0)
