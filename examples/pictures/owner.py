#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""owner.py FOLDER: draws which gateway used the line, as an SVG on stdout.

FOLDER is what `examples/site/owner.sh --record FOLDER` has written: who sent a request and when, and what was cut.
Above with redlock, below with keepalived. Red is where both gateways used the line."""
import html
import os
import sys

LEFT, PLOT, LANE, ROW, RIGHT = 60, 760, 24, 15, 24
GAP_S = 0.3  # who has not sent for so long does not use the line
OWNER, BOTH, CUT, INK = "#3b6fb6", "#d3382f", "#8a9099", "#1f2328"
# On a dark page white becomes black, and each colour keeps its hue.
DARK = "<style>@media (prefers-color-scheme: dark) { svg { filter: invert(1) hue-rotate(180deg); } }</style>"


def rows_of(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        rows = [line.rstrip("\n").split(" ", 1) for line in file]
    return [(float(instant), what) for instant, what in rows]


def spans_of(requests, gateway):
    spans = []
    for instant, who in requests:
        if who != gateway:
            continue
        if spans and instant - spans[-1][1] < GAP_S:
            spans[-1][1] = instant
        else:
            spans.append([instant, instant])
    return spans


def draw(out, top, title, requests, events, second):
    """One panel. Returns where the next one may begin."""
    begin = min(events[0][0], requests[0][0])

    def x(instant):
        return LEFT + (instant - begin) * second

    def text(at, y, words, more=""):
        out.append(f'<text x="{at:.1f}" y="{y:.1f}" {more}>{html.escape(words)}</text>')

    def box(at, y, width, height, color):
        out.append(f'<rect x="{at:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{color}"/>')

    text(12, top + 14, title, 'font-weight="bold"')
    labels = []  # each above those that begin below its words, so that no line goes through words
    for instant, what in reversed(events):
        width = 5.6 * len(what) + 8
        at = min(x(instant), LEFT + PLOT + RIGHT - width)
        row = 1 + max((row for _, other, row, _ in labels if other < at + width), default=-1)
        labels.append((x(instant), at, row, what))
    lanes = top + 26 + ROW * (1 + max(row for _, _, row, _ in labels))
    for instant, at, row, what in labels:
        y = lanes - 4 - ROW * row
        text(at + 3, y - 2, what, 'font-size="11"')
        box(instant - 0.5, y - ROW + 2, 1, lanes + 2 * LANE + 4 - (y - ROW + 2), CUT)
    spans = [spans_of(requests, str(gateway)) for gateway in (1, 2)]
    for lane, of_lane in enumerate(spans):
        text(12, lanes + LANE * lane + 16, f"gw-{lane + 1}")
        for since, until in of_lane:
            box(x(since), lanes + LANE * lane + 4, max((until - since) * second, 1), LANE - 6, OWNER)
    for one in spans[0]:
        for other in spans[1]:
            since, until = max(one[0], other[0]), min(one[1], other[1])
            if since <= until:
                box(x(since), lanes + 4, max((until - since) * second, 2), 2 * LANE - 6, BOTH)
    return lanes + 2 * LANE + 16


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    panels = [(f"with {part}", rows_of(sys.argv[1], part + ".line.log"), rows_of(sys.argv[1], part + ".events"))
              for part in ("redlock", "keepalived")]
    second = PLOT / max(requests[-1][0] - min(requests[0][0], events[0][0]) for _, requests, events in panels)
    out, y = [], 8
    for panel in panels:
        y = draw(out, y, *panel, second)
    at = LEFT
    for color, words in ((OWNER, "uses the line"), (BOTH, "both use the line"), (INK, "5 s")):
        width = 5 * second if color == INK else 14
        out.append(f'<rect x="{at:.1f}" y="{y + 4}" width="{width:.1f}" height="{3 if color == INK else 12}" '
                   f'fill="{color}"/><text x="{at + width + 6:.1f}" y="{y + 14}" font-size="11">{words}</text>')
        at += width + 26 + 6 * len(words)
    width, height = LEFT + PLOT + RIGHT, y + 26
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"',
          f'font-family="sans-serif" font-size="13" fill="{INK}">')
    print(DARK, f'<rect width="{width}" height="{height}" fill="#ffffff"/>', *out, "</svg>", sep="\n")


if __name__ == "__main__":
    main()
