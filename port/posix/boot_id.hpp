// SPDX-License-Identifier: MIT
//
// The boot of this machine, by name. Two processes that read the same name, and whose CLOCK_BOOTTIME is the machine's
// own, read the same clock, however short each of them lives.
#pragma once
#include <stddef.h>

namespace redlock {

constexpr size_t boot_id_size = 36;

// False: there is no such name, or CLOCK_BOOTTIME has an offset in this process's time namespace.
bool read_boot_id(char (&id)[boot_id_size]);

}  // namespace redlock
