# SPDX-License-Identifier: MIT
"""The numbers of the library fit the clocks: arithmetic about `validity` (src/lock/validity.hpp) and the guard time
(src/master/guard.hpp).

Each clock counts between `slow` and `fast` ms per ms of real time, and two clocks differ by the drift at most. A server
counts whole milliseconds, so a key lives for more than ttl - 1 ms of the server's clock.
"""
from kernel import REAL, Question, World, all_of


def questions():
    """(question, whether it is a theorem)"""
    w = World((), {})
    ttl, longest, drift, fixed = (w.constant(n, REAL) for n in ("ttl", "longest ttl", "drift", "fixed"))
    slow, fast, scale = (w.constant(n, REAL) for n in ("slow", "fast", "scale"))
    base = [slow > 0, slow <= fast, slow >= fast - drift * fast, scale * fast == slow, drift >= 0, drift < 1,
            fixed >= 0, ttl >= 1, ttl <= longest]
    validity = ttl - ttl * drift - fixed
    guard = longest + longest * drift + fixed
    life = scale * (ttl - 1)
    rows = [
        ("with 1 ms added, a key outlives its validity", [fixed >= 1], validity <= life, True),
        ("each validity is within the guard time", [], validity <= scale * guard, True),
        ("9/8 of the guard time, on a clock slewed by 10 %, are enough", [], guard * 1.125 >= guard * 1.1, True),
        ("without the 1 ms", [fixed == 0], validity <= life, False),
        ("clocks that differ by more than the drift", [fixed == 1, ttl == 1000, longest == 10000, drift == 0.0078125],
         validity <= (scale - 0.0078125) * (ttl - 1), False),
    ]
    return [(Question(name, w, base + more, [(name, all_of(goal))]), theorem) for name, more, goal, theorem in rows]
