/* SPDX-License-Identifier: MIT
 *
 * What a program tells qemu_count.c: arguments of close(), which names no descriptor.
 */
#pragma once

#define COUNT_RESET (-0x3fa812c0)
#define COUNT_BEGIN (-0x3fa812c1)
#define COUNT_END (-0x3fa812c2)
#define COUNT_PRINT (-0x3fa812c3)
