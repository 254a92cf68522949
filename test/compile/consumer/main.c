/* SPDX-License-Identifier: MIT
 *
 * Reads a configuration and says what a client of it would cost: uses cJSON and libuv through the library only.
 */
#include <redlock/redlock.h>
#include <stdio.h>
#include <string.h>

/* Does the library have the TLS that its package tells? */
static int is_as_told(void) {
#ifdef TLS
  const char *plus = strchr(redlock_version_string(), '+');
  return strcmp(plus == NULL ? "off" : plus + 1, TLS) == 0;
#else
  return 1;
#endif
}

int main(void) {
  const char *json = "{ \"client_name\": \"consumer\", \"masters\": [ \"redis://127.0.0.1\" ] }";
  redlock_config_t *cfg;
  size_t size = 0;
  if (redlock_config_new(&cfg) != 0) return 1;
  if (redlock_config_load_json(cfg, json, strlen(json)) == 0) size = redlock_memory_size(cfg);
  printf("redlock %s: %lu bytes\n", redlock_version_string(), (unsigned long)size);
  redlock_config_free(cfg);
  return size > 0 && redlock_version() == REDLOCK_VERSION_NUM && is_as_told() ? 0 : 1;
}
