/* SPDX-License-Identifier: MIT */
#ifndef REDLOCK_TEST_HEAP_COUNT_H
#define REDLOCK_TEST_HEAP_COUNT_H

#ifdef __cplusplus
extern "C" {
#endif

/* Calls to malloc, calloc, realloc, free and their kin by this process so far, on all threads. Weak: NULL in a program
 * (a sanitizer's build) that is not linked with the counter. */
__attribute__((weak)) unsigned long heap_count_total(void);

#ifdef __cplusplus
}
#endif
#endif
