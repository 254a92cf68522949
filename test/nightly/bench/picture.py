# SPDX-License-Identifier: MIT
"""Two diagrams in one SVG: how long an acquire takes with one lock at a time, and how many cycles a second complete
with more locks in flight."""
import html
import math

LEFT, WIDTH, HEIGHT, GAP, TOP = 58, 350, 230, 74, 58
COLORS = ["#6b7280", "#d9822b", "#2f9e63"]
LINE, GRID = "#1f2328", "#e3e6ea"
# On a dark page white becomes black, and each colour keeps its hue.
DARK = "<style>@media (prefers-color-scheme: dark) { svg { filter: invert(1) hue-rotate(180deg); } }</style>"


class Panel:
    """One diagram; `x` and `y` are (least, greatest, is it logarithmic)."""

    def __init__(self, out, left, title, x, y):
        self.out, self.left, self.x, self.y = out, left, x, y
        self.text(left, TOP - 12, title, "start", "13")

    def text(self, x, y, words, anchor="middle", size="11"):
        self.out.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">'
                        f"{html.escape(words)}</text>")

    def place(self, axis, value):
        least, greatest, logarithmic = axis
        if logarithmic:
            least, greatest, value = math.log(least), math.log(greatest), math.log(max(value, least))
        return min(max((value - least) / (greatest - least), 0), 1)

    def at(self, x, y):
        return self.left + WIDTH * self.place(self.x, x), TOP + HEIGHT * (1 - self.place(self.y, y))

    def line(self, points, color, width):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.out.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width}"/>')

    def axes(self, x_ticks, x_words, y_ticks, y_form):
        bottom = TOP + HEIGHT
        for value in x_ticks:
            x, _ = self.at(value, self.y[0])
            self.line([(x, TOP), (x, bottom)], GRID, 1)
            self.text(x, bottom + 14, f"{value:g}")
        for value in y_ticks:
            _, y = self.at(self.x[0], value)
            self.line([(self.left, y), (self.left + WIDTH, y)], GRID, 1)
            self.text(self.left - 6, y + 4, y_form(value), "end")
        self.text(self.left + WIDTH / 2, bottom + 32, x_words)

    def curve(self, values, color):
        self.line([self.at(*value) for value in values], color, 2)


def ticks(least, greatest):
    """1, 2, 5, 10, ... between the two."""
    return [n * 10 ** power for power in range(9) for n in (1, 2, 5) if least <= n * 10 ** power <= greatest]


def draw(curves, machine):
    """curves: (name, sorted acquires in us, {locks in flight: cycles a second}) of up to three programs."""
    out = []
    least = min(acquires[0] for _, acquires, _ in curves)
    greatest = max(acquires[len(acquires) * 99 // 100] for _, acquires, _ in curves)
    latency = Panel(out, LEFT, "One lock at a time: an acquire lasts at most", (least, greatest, True), (0, 100, False))
    latency.axes(ticks(least, greatest), "microseconds", range(0, 101, 25), lambda v: f"{v} %")
    rates = [rate for _, _, by_locks in curves for rate in by_locks.values()]
    most = max(locks for _, _, by_locks in curves for locks in by_locks)
    rate = Panel(out, LEFT + WIDTH + GAP, "Cycles of acquire and release a second", (1, most, True),
                 (min(rates) / 1.2, max(rates) * 1.2, True))
    rate.axes([2 ** n for n in range(10) if 2 ** n <= most], "locks in flight",
              ticks(min(rates) / 1.2, max(rates) * 1.2), lambda v: f"{v / 1000:g} K")
    for (name, acquires, by_locks), color in zip(curves, COLORS):
        step = max(1, len(acquires) // 200)
        latency.curve([(acquires[i], 100 * (i + 1) / len(acquires)) for i in range(0, len(acquires), step)], color)
        rate.curve(sorted(by_locks.items()), color)
    x, y = LEFT, TOP + HEIGHT + 58
    for (name, _, _), color in zip(curves, COLORS):
        latency.line([(x, y - 4), (x + 22, y - 4)], color, 3)
        latency.text(x + 28, y, name, "start", "12")
        x += 60 + 7 * len(name)
    latency.text(12, 22, "The library beside the limit and beside hiredis, five masters", "start", "14")
    width, height = LEFT + 2 * WIDTH + GAP + 20, y + 34
    latency.text(LEFT, y + 22, machine, "start")
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
            f'fill="{LINE}">\n{DARK}\n<rect width="{width}" height="{height}" fill="#ffffff"/>')
    return "\n".join([head, *out, "</svg>", ""])
