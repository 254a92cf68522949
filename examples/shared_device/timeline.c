// SPDX-License-Identifier: MIT
//
// timeline: draws the device's log. One row for each gateway, time from left to right. Each column is one instant, so
// two rows that are marked in one column held the device at the same time; '!' marks the columns in which a frame of
// this gateway collided, 'x' those in which the device refused one. The window begins a bit before the first mark in
// the log, else in the middle of the log.
#define _GNU_SOURCE 1
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "frames.h"

enum { COLUMNS_MAX = 400, NS_PER_MS = 1000000 };

struct happening {
  char kind;  // first letter of the line: b, e, c, r, m
  int64_t ns;
  unsigned gateway;  // of a mark: its number
};

struct log {
  struct happening *items;
  size_t count;
};

struct view {
  unsigned gateways, columns;
  int64_t window_ns, from_ns;
  bool color;
  char rows[GATEWAYS_MAX + 1][COLUMNS_MAX + 1];  // row 0: the marks
};

static bool load(const char *path, struct log *log) {
  FILE *file = fopen(path, "re");
  if (file == NULL) return false;
  char line[128], kind[16];
  size_t room = 0;
  while (fgets(line, sizeof line, file) != NULL) {
    long long ns;
    unsigned gateway;
    if (sscanf(line, "%15s %lld %u", kind, &ns, &gateway) != 3 || gateway > GATEWAYS_MAX) continue;
    if (log->count == room) {
      room = room == 0 ? 256 : 2 * room;
      struct happening *items = realloc(log->items, room * sizeof *items);
      if (items == NULL) break;
      log->items = items;
    }
    log->items[log->count++] = (struct happening){kind[0], ns, gateway};
  }
  const bool complete = feof(file) != 0;
  return fclose(file) == 0 && complete;
}

// The column of the first instant that is not before ns; may lie outside the window.
static int64_t column_at(const struct view *view, int64_t ns) {
  const int64_t step = view->window_ns / view->columns;
  return ns <= view->from_ns ? 0 : (ns - view->from_ns + step - 1) / step;
}

static void place_window(struct view *view, const struct log *log) {
  if (log->count == 0) return;
  int64_t first = INT64_MAX, last = INT64_MIN, mark = INT64_MAX;
  for (size_t i = 0; i < log->count; ++i) {
    const int64_t ns = log->items[i].ns;
    if (ns < first) first = ns;
    if (ns > last) last = ns;
    if (log->items[i].kind == 'm' && ns < mark) mark = ns;
  }
  view->from_ns = mark != INT64_MAX ? mark - view->window_ns / 4 : first + (last - first - view->window_ns) / 2;
  if (view->from_ns < first) view->from_ns = first;
}

static void fill(struct view *view, const struct log *log) {
  int64_t begun[GATEWAYS_MAX + 1] = {0};
  const int64_t columns = view->columns;
  memset(view->rows, '.', sizeof view->rows);
  memset(view->rows[0], ' ', sizeof view->rows[0]);
  for (size_t i = 0; i < log->count; ++i) {
    const struct happening *h = &log->items[i];
    const int64_t at = column_at(view, h->ns);
    if (h->kind == 'b') begun[h->gateway] = h->ns;
    if (h->kind == 'e')
      for (int64_t column = column_at(view, begun[h->gateway]); column < at && column < columns; ++column)
        if (view->rows[h->gateway][column] == '.') view->rows[h->gateway][column] = '#';
    if (h->ns < view->from_ns || at >= columns) continue;
    if (h->kind == 'c') view->rows[h->gateway][at] = '!';
    if (h->kind == 'r') view->rows[h->gateway][at] = 'x';
    if (h->kind == 'm') view->rows[0][at] = (char)('0' + h->gateway % 10);
  }
}

static void print_row(const struct view *view, const char *row) {
  const char *now = "";
  for (unsigned column = 0; column < view->columns; ++column) {
    const char *color = row[column] == '#'   ? "\033[32m"
                        : row[column] == '!' ? "\033[1;31m"
                        : row[column] == 'x' ? "\033[1;33m"
                                             : "\033[0m";
    if (view->color && strcmp(color, now) != 0) fputs(now = color, stdout);
    putchar(row[column]);
  }
  puts(view->color ? "\033[0m" : "");
}

static void print(const struct view *view) {
  bool marks = false;
  for (unsigned column = 0; column < view->columns; ++column) marks = marks || view->rows[0][column] != ' ';
  if (marks) printf("            %.*s\n", (int)view->columns, view->rows[0]);
  for (unsigned gateway = 1; gateway <= view->gateways; ++gateway) {
    printf("gateway %2u  ", gateway);
    print_row(view, view->rows[gateway]);
  }
  printf("            |%*s|\n", (int)view->columns - 2, "");
  printf("            0%*lld ms\n", (int)view->columns - 1, (long long)(view->window_ns / NS_PER_MS));
}

static const char k_usage[] =
    "usage: timeline [options] LOG\n"
    "Draws who held the device, from the log that `device --log` wrote.\n"
    "  --gateways N   rows (default: as many as the log names)\n"
    "  --columns N    width of the drawing (default 100)\n"
    "  --ms N         length of the window (default 1000)\n"
    "  --color        with colours\n"
    "  --help\n";

int main(int argc, char **argv) {
  static const struct option options[] = {
      {"gateways", required_argument, NULL, 'g'}, {"columns", required_argument, NULL, 'c'},
      {"ms", required_argument, NULL, 'm'}, {"color", no_argument, NULL, 'x'},
      {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
  static struct view view = {.columns = 100, .window_ns = 1000 * (int64_t)NS_PER_MS};
  for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    switch (c) {
      case 'g': view.gateways = (unsigned)strtoul(optarg, NULL, 10); break;
      case 'c': view.columns = (unsigned)strtoul(optarg, NULL, 10); break;
      case 'm': view.window_ns = (int64_t)strtoul(optarg, NULL, 10) * NS_PER_MS; break;
      case 'x': view.color = true; break;
      case 'h': fputs(k_usage, stdout); return 0;
      default: fputs(k_usage, stderr); return 2;
    }
  }
  const bool in_range = view.columns >= 10 && view.columns <= COLUMNS_MAX && view.gateways <= GATEWAYS_MAX;
  if (optind + 1 != argc || !in_range || view.window_ns < NS_PER_MS) return fputs(k_usage, stderr), 2;
  struct log log = {NULL, 0};
  if (!load(argv[optind], &log)) return perror(argv[optind]), 1;
  if (view.gateways == 0)
    for (size_t i = 0; i < log.count; ++i)
      if (log.items[i].kind == 'b' && log.items[i].gateway > view.gateways) view.gateways = log.items[i].gateway;
  place_window(&view, &log);
  fill(&view, &log);
  print(&view);
  free(log.items);
  return 0;
}
