/* SPDX-License-Identifier: MIT
 *
 * What a client costs in memory on this processor, as lines "NAME BYTES": the defaults, what one more master or lock
 * adds to them, and the least, one lock on 3 masters.
 */
#include <redlock/redlock.h>
#include <stdio.h>

static size_t bytes(unsigned masters, unsigned locks, int least) {
  redlock_config_t *cfg;
  char url[32];
  size_t size;
  unsigned i;
  int err = 0;
  if (redlock_config_new(&cfg) != 0) return 0;
  for (i = 1; i <= masters; i++) {
    snprintf(url, sizeof url, "redis://10.0.0.%u", i);
    err |= redlock_config_add_master(cfg, url);
  }
  err |= redlock_config_set_u32(cfg, "limits.locks", locks);
  err |= redlock_config_set_u32(cfg, "limits.in_flight", least ? REDLOCK_IN_FLIGHT_MIN : REDLOCK_IN_FLIGHT_DEFAULT);
  err |= redlock_config_set_u32(cfg, "limits.debts", least ? locks + 1 : REDLOCK_DEBTS_DEFAULT);
  if (least) err |= redlock_config_set_u32(cfg, "limits.tx_bytes", REDLOCK_TX_BYTES_MIN);
  if (least) err |= redlock_config_set_u32(cfg, "limits.rx_bytes", REDLOCK_RX_BYTES_MIN);
  size = err == 0 ? redlock_memory_size(cfg) : 0;
  if (size == 0) fprintf(stderr, "%u masters, %u locks: %s\n", masters, locks, redlock_config_error(cfg));
  redlock_config_free(cfg);
  return size;
}

int main(void) {
  const size_t usual = bytes(5, 32, 0), less_master = bytes(4, 32, 0), less_lock = bytes(5, 31, 0);
  const size_t least = bytes(3, 1, 1);
  if (usual == 0 || less_master == 0 || less_lock == 0 || least == 0) return 1;
  printf("usual %lu\n", (unsigned long)usual);
  printf("master %lu\n", (unsigned long)(usual - less_master));
  printf("lock %lu\n", (unsigned long)(usual - less_lock));
  printf("least %lu\n", (unsigned long)least);
  return 0;
}
