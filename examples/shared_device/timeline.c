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

// ---- As a picture -------------------------------------------------------------------------------------------------

enum { LEFT = 92, PLOT = 800, ROW = 20, HEAD = 42, FOOT = 26, LEGEND = 30, MARGIN = 12 };

static int panel_height(const struct view *view) { return HEAD + ROW * (int)view->gateways + FOOT; }

static double x_at(const struct view *view, int64_t ns) {
  const int left = LEFT, plot = PLOT;
  const double x = (double)(ns - view->from_ns) / (double)view->window_ns * plot;
  return left + (x < 0 ? 0 : x > plot ? plot : x);
}

static bool in_window(const struct view *view, int64_t ns) {
  return ns >= view->from_ns && ns <= view->from_ns + view->window_ns;
}

static void svg_box(double x, double y, double width, double height, const char *color) {
  printf("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n", x, y, width, height, color);
}

static void svg_text(double x, double y, const char *anchor, const char *text) {
  printf("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">\n", x, y, anchor);
  for (; *text != '\0'; ++text)
    if (*text == '<' || *text == '&') fputs(*text == '<' ? "&lt;" : "&amp;", stdout);
    else putchar(*text);
  puts("</text>");
}

static void svg_jobs(const struct view *view, const struct log *log, int top) {
  int64_t begun[GATEWAYS_MAX + 1] = {0};
  for (size_t i = 0; i < log->count; ++i) {
    const struct happening *h = &log->items[i];
    if (h->kind == 'b') begun[h->gateway] = h->ns;
    if (h->kind != 'e' || h->ns < view->from_ns || begun[h->gateway] > view->from_ns + view->window_ns) continue;
    const double x = x_at(view, begun[h->gateway]);
    svg_box(x, top + ROW * ((int)h->gateway - 1) + 4, x_at(view, h->ns) - x, ROW - 8, "#2f9e63");
  }
}

static void svg_happenings(const struct view *view, const struct log *log, int top) {
  for (size_t i = 0; i < log->count; ++i) {
    const struct happening *h = &log->items[i];
    if (!in_window(view, h->ns)) continue;
    const double x = x_at(view, h->ns);
    const char number[] = {(char)('0' + h->gateway % 10), '\0'};
    if (h->kind == 'c') svg_box(x - 1, top + ROW * ((int)h->gateway - 1) + 1, 2, ROW - 2, "#d1242f");
    if (h->kind == 'r') svg_box(x - 2, top + ROW * ((int)h->gateway - 1) + 1, 4, ROW - 2, "#e08a00");
    if (h->kind != 'm') continue;
    svg_box(x - 0.5, top - 4, 1, ROW * view->gateways + 4, "#555555");
    svg_text(x, top - 7, "middle", number);
  }
}

static void svg_panel(const struct view *view, const struct log *log, const char *title, int top) {
  char text[32];
  printf("<g font-weight=\"bold\">\n");
  svg_text(MARGIN, top + 16, "start", title);
  printf("</g>\n");
  top += HEAD;
  for (unsigned g = 1; g <= view->gateways; ++g) {
    svg_box(LEFT, top + ROW * ((int)g - 1) + 1, PLOT, ROW - 2, "#f0f2f4");
    snprintf(text, sizeof text, "gateway %u", g);
    svg_text(LEFT - 8, top + ROW * ((int)g - 1) + 14, "end", text);
  }
  svg_jobs(view, log, top);
  svg_happenings(view, log, top);
  snprintf(text, sizeof text, "%lld ms", (long long)(view->window_ns / NS_PER_MS));
  svg_text(LEFT, top + ROW * (int)view->gateways + 14, "start", "0");
  svg_text(LEFT + PLOT, top + ROW * (int)view->gateways + 14, "end", text);
}

static void svg_legend(int y) {
  static const struct {
    const char *color, *text;
  } items[] = {{"#2f9e63", "a job at the device"}, {"#d1242f", "frames of two gateways collided"},
               {"#e08a00", "the device refused a late frame"}};
  for (int i = 0; i < 3; ++i) {
    svg_box(LEFT + 255 * i, y - 9, 10, 10, items[i].color);
    svg_text(LEFT + 255 * i + 16, y, "start", items[i].text);
  }
}

// ---- The program --------------------------------------------------------------------------------------------------

static const char k_usage[] =
    "usage: timeline [options] LOG\n"
    "       timeline --svg [options] LOG TITLE [LOG TITLE]...\n"
    "Draws who held the device, from the log that `device --log` wrote.\n"
    "  --gateways N   rows (default: as many as the log names)\n"
    "  --columns N    width of the drawing (default 100)\n"
    "  --ms N         length of the window (default 1000)\n"
    "  --color        with colours\n"
    "  --svg          a picture with a panel for each log, instead of text\n"
    "  --help\n";

static bool look_at(struct view *view, struct log *log, const char *path) {
  if (!load(path, log)) return perror(path), false;
  for (size_t i = 0; i < log->count; ++i)
    if (log->items[i].kind == 'b' && log->items[i].gateway > view->gateways) view->gateways = log->items[i].gateway;
  place_window(view, log);
  return true;
}

static int draw_text(struct view *view, const char *path) {
  struct log log = {NULL, 0};
  if (!look_at(view, &log, path)) return 1;
  fill(view, &log);
  print(view);
  free(log.items);
  return 0;
}

// The picture's height stands before its panels, and a panel has a row for each gateway that its log names.
static int draw_all(struct view *view, char **names) {
  int height = MARGIN + LEGEND, count = 0;
  for (; names[2 * count] != NULL; ++count) {
    struct log log = {NULL, 0};
    struct view panel = *view;
    if (!look_at(&panel, &log, names[2 * count])) return 1;
    height += panel_height(&panel);
    free(log.items);
  }
  printf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\"\nfont-family=\"sans-serif\" "
         "font-size=\"13\" fill=\"#1f2328\">\n", LEFT + PLOT + MARGIN, height);
  // On a dark page white becomes black, and each colour keeps its hue.
  puts("<style>@media (prefers-color-scheme: dark) { svg { filter: invert(1) hue-rotate(180deg); } }</style>");
  svg_box(0, 0, LEFT + PLOT + MARGIN, height, "#ffffff");
  for (int i = 0, top = MARGIN / 2; i < count; ++i) {
    struct log log = {NULL, 0};
    struct view panel = *view;
    if (!look_at(&panel, &log, names[2 * i])) return 1;
    svg_panel(&panel, &log, names[2 * i + 1], top);
    top += panel_height(&panel);
    free(log.items);
  }
  svg_legend(height - MARGIN);
  puts("</svg>");
  return 0;
}

int main(int argc, char **argv) {
  static const struct option options[] = {
      {"gateways", required_argument, NULL, 'g'}, {"columns", required_argument, NULL, 'c'},
      {"ms", required_argument, NULL, 'm'}, {"color", no_argument, NULL, 'x'},
      {"svg", no_argument, NULL, 's'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
  static struct view view = {.columns = 100, .window_ns = 1000 * (int64_t)NS_PER_MS};
  bool svg = false;
  for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    switch (c) {
      case 'g': view.gateways = (unsigned)strtoul(optarg, NULL, 10); break;
      case 'c': view.columns = (unsigned)strtoul(optarg, NULL, 10); break;
      case 'm': view.window_ns = (int64_t)strtoul(optarg, NULL, 10) * NS_PER_MS; break;
      case 'x': view.color = true; break;
      case 's': svg = true; break;
      case 'h': fputs(k_usage, stdout); return 0;
      default: fputs(k_usage, stderr); return 2;
    }
  }
  const bool in_range = view.columns >= 10 && view.columns <= COLUMNS_MAX && view.gateways <= GATEWAYS_MAX;
  const bool named = svg ? optind < argc && (argc - optind) % 2 == 0 : optind + 1 == argc;
  if (!named || !in_range || view.window_ns < NS_PER_MS) return fputs(k_usage, stderr), 2;
  return svg ? draw_all(&view, argv + optind) : draw_text(&view, argv[optind]);
}
