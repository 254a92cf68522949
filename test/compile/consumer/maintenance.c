/* SPDX-License-Identifier: MIT
 *
 * A maintenance program: it uses the client's library and redlock_site. Its change of masters is refused, because the
 * two configurations are the same; to find that out, redlock_site has read what libredlock made.
 */
#include <redlock/site.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  const char *json = "{ \"client_name\": \"consumer\", \"masters\": [ \"redis://127.0.0.1\" ] }";
  redlock_reconfigure_report_t report = {0};
  redlock_config_t *cfg;
  size_t size = 0;
  int result;
  report.size = sizeof report;
  if (redlock_config_new(&cfg) != 0) return 1;
  if (redlock_config_load_json(cfg, json, strlen(json)) == 0) size = redlock_memory_size(cfg);
  result = redlock_reconfigure(cfg, cfg, &report);
  printf("%s: %s\n", redlock_err_name(result), redlock_config_error(cfg));
  redlock_config_free(cfg);
  return size > 0 && result == EXPECTED ? 0 : 1;
}
