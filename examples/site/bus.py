#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""bus.py line LOG LINK...: an RS-485 line with a Modbus device, and a pseudo-terminal for each gateway, at LINK.
   bus.py poll PORT: reads a register of that device, by libmodbus, through the ser2net of this machine.

LOG gets a line for each request that the device understands: seconds since boot, and the number of the LINK.
"""
import ctypes
import os
import select
import socket
import sys
import time
import tty

DEVICE = 17
POLL_S = 0.02


def crc(frame):
    value = 0xFFFF
    for byte in frame:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ 0xA001 if value & 1 else value >> 1
    return value.to_bytes(2, "little")


def line(log, links):
    ends = {}
    for number, link in enumerate(links, 1):
        ours, theirs = os.openpty()  # theirs stays open: the line does not hang up while no gateway has it
        tty.setraw(theirs)
        os.symlink(os.ttyname(theirs), link)
        ends[ours] = [number, b""]
    with open(log, "w", encoding="ascii", buffering=1) as out:
        while True:
            for ours in select.select(list(ends), [], [])[0]:
                number, old = ends[ours]
                heard = (old + os.read(ours, 256))[-8:]
                ends[ours][1] = heard
                if len(heard) == 8 and heard[0] == DEVICE and crc(heard[:6]) == heard[6:]:
                    print(f"{time.clock_gettime(time.CLOCK_BOOTTIME):.3f} {number}", file=out)
                    answer = bytes((DEVICE, 3, 2, 0, 7))
                    os.write(ours, answer + crc(answer))
                    ends[ours][1] = b""


def poll(port):
    modbus = ctypes.CDLL("libmodbus.so.5")
    modbus.modbus_new_rtu.restype = ctypes.c_void_p
    client = ctypes.c_void_p(modbus.modbus_new_rtu(b"/dev/null", 19200, ctypes.c_char(b"N"), 8, 1))
    modbus.modbus_set_slave(client, DEVICE)
    modbus.modbus_set_response_timeout(client, 0, 200_000)
    value = ctypes.c_uint16()
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), 0.2) as connection:
                modbus.modbus_set_socket(client, connection.fileno())
                while modbus.modbus_read_registers(client, 1, 1, ctypes.byref(value)) == 1:
                    time.sleep(POLL_S)
        except OSError:
            pass
        time.sleep(POLL_S)


if __name__ == "__main__":
    if sys.argv[1] == "line":
        line(sys.argv[2], sys.argv[3:])
    poll(int(sys.argv[2]))
