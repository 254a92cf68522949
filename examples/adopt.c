// SPDX-License-Identifier: MIT
//
// adopt: takes the masters of a configuration that still belong to another one, for example to a test program. For an
// operator, once. The gateways may run meanwhile.
//
//     adopt CONFIG.json [--rest-is-gone]
//
// --rest-is-gone is your statement: of the other configuration no master is left but those in CONFIG.json.
// Exit status: 0 done; 1 not, or not all of it: it says what is missing, and what to do; 2 the file is of no use.
#include <redlock/site.h>
#include <stdio.h>
#include <string.h>

static void tell_progress(void *user, const redlock_adopt_report_t *now) {
  static const char *const steps[] = {"reading the records", "marking", "waiting until its clients have noticed",
                                      "entering", "done"};
  (void)user;
  if (now->step == REDLOCK_ADOPT_READ || now->step == REDLOCK_ADOPT_DONE) return;
  printf("%u master(s) of a configuration of %u, max_ttl_ms %u: %s", now->their_found, now->their_masters,
         now->their_max_ttl_ms, steps[now->step]);
  if (now->to_go_ms != 0) printf(", %u s to go", (now->to_go_ms + 999) / 1000);
  putchar('\n');
  fflush(stdout);
}

static int explain(int result, const redlock_adopt_report_t *report) {
  for (uint32_t m = 0; m < report->masters; ++m) {
    printf("masters[%u]: %s\n", m, report->err[m] == 0 ? "free, or ours" : redlock_strerror(report->err[m]));
  }
  printf("%u adopted\n", report->adopted);
  if (result == 0) return 0;
  if (result > 0) return printf("%d could not be had: call this again when they are back\n", result), 1;
  printf("%s\n", redlock_strerror(result));
  if (report->step == REDLOCK_ADOPT_READ && report->their_found < report->their_needed) {
    printf("%u of the other configuration's %u masters are here, and %u are needed: its clients could go on with the "
           "rest. List more of them, or switch the rest off for good and say --rest-is-gone\n",
           report->their_found, report->their_masters, report->their_needed);
  } else if (result == REDLOCK_E_CHANGING) {
    puts("one operator alone goes on: see to it that no other call runs, and call this again");
  } else if (report->step != REDLOCK_ADOPT_READ) {
    puts("masters may be marked, and vote for nobody: call this again");
  }
  return 1;
}

int main(int argc, char **argv) {
  const int gone = argc == 3 && strcmp(argv[2], "--rest-is-gone") == 0;
  if (argc != 2 + gone) return fprintf(stderr, "usage: adopt CONFIG.json [--rest-is-gone]\n"), 2;
  redlock_config_t *cfg = NULL;
  redlock_adopt_report_t report = {0};
  report.size = sizeof report;
  int err = redlock_config_new(&cfg);
  if (err == 0) err = redlock_config_load_file(cfg, argv[1]);
  if (err == 0) err = redlock_adopt(cfg, gone ? REDLOCK_ADOPT_REST_IS_GONE : 0, tell_progress, NULL, &report);
  int status = 2;
  if (report.masters != 0) {
    status = explain(err, &report);
  } else {
    fprintf(stderr, "%s: %s: %s\n", argv[1], redlock_strerror(err), redlock_config_error(cfg));
  }
  redlock_config_free(cfg);
  return status;
}
