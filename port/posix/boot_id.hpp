// SPDX-License-Identifier: MIT
//
// The name of this boot of the machine. Two processes for which read_boot_id() gives the same name read the same
// CLOCK_BOOTTIME, however short each of them lives.
#pragma once
#include <stddef.h>

namespace redlock {

constexpr size_t boot_id_size = 36;

// False: there is no such name, or CLOCK_BOOTTIME has an offset in this process's time namespace.
bool read_boot_id(char (&id)[boot_id_size]);

}  // namespace redlock
