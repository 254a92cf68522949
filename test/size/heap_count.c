/* SPDX-License-Identifier: MIT
 *
 * Stands in front of glibc's heap and counts the calls, of the program and of every library in it (libuv, cJSON).
 * Linked before libc or preloaded.
 */
#include "heap_count.h"

#include <errno.h>
#include <stddef.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *memory, size_t size);
void *memalign(size_t alignment, size_t size);
void *aligned_alloc(size_t alignment, size_t size);
int posix_memalign(void **out, size_t alignment, size_t size);
void free(void *memory);

static unsigned long calls;

static void count(void) { __atomic_fetch_add(&calls, 1ul, __ATOMIC_RELAXED); }

unsigned long heap_count_total(void) { return __atomic_load_n(&calls, __ATOMIC_RELAXED); }

void *malloc(size_t size) {
  count();
  return __libc_malloc(size);
}

void *calloc(size_t n, size_t size) {
  count();
  return __libc_calloc(n, size);
}

void *realloc(void *memory, size_t size) {
  count();
  return __libc_realloc(memory, size);
}

void *memalign(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
  count();
  *out = __libc_memalign(alignment, size);
  return *out != NULL ? 0 : ENOMEM;
}

void free(void *memory) {
  if (memory != NULL) count();
  __libc_free(memory);
}
