// SPDX-License-Identifier: MIT
//
// reconfigure: another set of masters, or another timing.max_ttl_ms, while the gateways of the old configuration run.
// For an operator, once for the whole site; then every gateway is given the new file and started again.
//
//     reconfigure OLD.json NEW.json
//
// Exit status: 0 done; 1 not, or not all of it: it says what is missing, and what to do; 2 the files are not a change.
#include <redlock/site.h>
#include <stdio.h>
#include <stdlib.h>

static redlock_config_t *load(const char *path) {
  redlock_config_t *cfg = NULL;
  int err = redlock_config_new(&cfg);
  if (err == 0) err = redlock_config_load_file(cfg, path);
  if (err == 0) return cfg;
  fprintf(stderr, "%s: %s: %s\n", path, redlock_strerror(err), redlock_config_error(cfg));
  redlock_config_free(cfg);
  exit(2);
}

static void tell(const char *set, uint32_t masters, uint32_t needed, const int32_t *err) {
  printf("%s masters, of which %u are needed:\n", set, needed);
  for (uint32_t m = 0; m < masters; ++m) {
    printf("  masters[%u]: %s\n", m, err[m] == 0 ? "done" : redlock_strerror(err[m]));
  }
}

static int explain(int result, const redlock_reconfigure_report_t *report) {
  static const char *const written[] = {
      "nothing was written",
      "the site may be without a lock until this is called again, or the other way round to undo it. Start no gateway "
      "with NEW.json",
      "new masters may have the new record, but the change is not done. Start no gateway with NEW.json. Call this "
      "again, or the other way round to undo it",
      "only new masters were marked: the old gateways go on"};
  tell("old", report->old_masters, report->old_needed, report->old_err);
  tell("new", report->new_masters, report->new_needed, report->new_err);
  if (result >= 0) {
    puts("done: give every gateway the new file. Until the last one with the old file has ended, restart and replace "
         "no old master");
  }
  if (result == 0) return 0;
  if (result > 0) {
    printf("%d of the new masters could not be written: when they are back, redlock doctor says what to do\n", result);
  } else {
    printf("%s: %s\n", redlock_strerror(result), written[report->written]);
    if (result == REDLOCK_E_FINGERPRINT) {
      puts("are these the right files? If that master was retired or belonged to others: redlock doctor -C NEW.json");
    }
    if (result == REDLOCK_E_CHANGING) puts("one operator alone goes on: see to it that no other call runs");
  }
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 3) return fprintf(stderr, "usage: reconfigure OLD.json NEW.json\n"), 2;
  redlock_config_t *old_cfg = load(argv[1]), *new_cfg = load(argv[2]);
  redlock_reconfigure_report_t report = {0};
  report.size = sizeof report;
  const int result = redlock_reconfigure(old_cfg, new_cfg, &report);
  int status = 2;
  if (result == REDLOCK_E_CONFIG) {
    fprintf(stderr, "%s%s\n", redlock_config_error(old_cfg), redlock_config_error(new_cfg));
  } else {
    status = explain(result, &report);
  }
  redlock_config_free(old_cfg);
  redlock_config_free(new_cfg);
  return status;
}
