/* SPDX-License-Identifier: MIT
 *
 * Reads a configuration and says what a client of it would cost: uses cJSON and libuv through the library only.
 */
#include <redlock/redlock.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  const char *json = "{ \"client_name\": \"consumer\", \"masters\": [ \"redis://127.0.0.1\" ] }";
  redlock_config_t *cfg;
  size_t size = 0;
  if (redlock_config_new(&cfg) != 0) return 1;
  if (redlock_config_load_json(cfg, json, strlen(json)) == 0) size = redlock_memory_size(cfg);
  printf("redlock %s: %lu bytes\n", redlock_version_string(), (unsigned long)size);
  redlock_config_free(cfg);
  return size > 0 && redlock_version() == REDLOCK_VERSION_NUM ? 0 : 1;
}
