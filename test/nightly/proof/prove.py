#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The proof (README.md).

  prove.py [SOURCE [PART]]   asks the solvers everything, or one part:
      names     those of src/DESIGN.md, test/sim and test/nightly/campaign are the proof's (needs no solver)
      theorems  each step keeps each statement
      weakened  each rule is needed: without it a step breaks a statement
      runs      what must happen does, and without each rule there is a run to two holders
  prove.py rules         each rule of exclusion, with the name of the protocol without it
  prove.py break NAME    tells a run of the protocol without that rule

Exit status: 0 all as wanted, 1 not, 77 a solver is not installed.
"""
import pathlib
import re
import shutil
import sys
import time

import kernel
import protocol
import runs
import token_runs
import tokens
from steps import Steps

wrong = []


def report(what, well, text):
    print(f"{'  ' if well else '! '}{what}: {text}", flush=True)
    if not well:
        wrong.append(what)


def exclusion(weak=""):
    site = protocol.Site(weak)
    return kernel.inductive(site.world, site.axioms(), site.state, site.initial,
                            lambda s: Steps(site, s).all(), site.statements, site.lemmas)


def prove(what, questions, solver):
    begin, count, open_ones = time.monotonic(), 0, []
    for step, statement, answer in kernel.answers(questions, solver):
        count += 1
        if answer != "unsat":
            open_ones.append(f"{step} / {statement}: {answer}")
    text = f"{count - len(open_ones)} of {count} proved by {solver}, {time.monotonic() - begin:.1f} s"
    report(what, not open_ones, "; ".join([text, *open_ones[:5]]))


def must_fail(what, questions, proved):
    """A solver finds a state in which a weakened step breaks a statement. What is left alone was proved already."""
    changed = [one for one in questions if one.text not in proved]
    found = next((f"{step} breaks '{statement}'" for step, statement, answer in kernel.answers(changed, "z3")
                  if answer == "sat"), None)
    report(what, found is not None, found or "nothing breaks")


def must_happen(module, all_steps):
    used = {name for path, _ in module.HAPPENS.values() for name, _ in path}
    unused = {one.name for one in all_steps} - used
    report("every step happens", not unused, ", ".join(sorted(unused)) or "yes")
    for name, (path, goal) in module.HAPPENS.items():
        answer = module.question(path, goal).ask("z3")[0][1]
        report(f"happens: {name}", answer == "sat", f"{len(path)} steps, {answer}")


def must_break(module, name, path, goal):
    weak = module.question(path, goal, name).ask("z3")[0][1]
    real = {module.question(path, goal).ask(solver)[0][1] for solver in kernel.SOLVERS}
    report(f"run without the rule: {name}", weak == "sat" and real == {"unsat"},
           f"{len(path)} steps, {weak}; with the rule: {', '.join(real)}")


def must_run():
    site, of_tokens = protocol.Site(), tokens.Site()
    must_happen(runs, Steps(site, site.state).all())
    must_happen(token_runs, of_tokens.steps(of_tokens.state))
    for name in protocol.RULES:
        must_break(runs, name, runs.BREAKS[name], runs.GOALS.get(name, runs.two_holders))
    for name in tokens.RULES:
        must_break(token_runs, name, token_runs.BREAKS[name], token_runs.out_of_order)
    last = list(story("put-back without NX"))[-3:]
    report("the story of a run", re.match("c0 bel.* c1 bel.*: impossible", " ".join(last)) is not None, " ".join(last))


def clocks():
    """(question, whether it is a theorem): the numbers of the library fit the clocks. `validity` is in
    src/lock/validity.hpp, the guard time in src/master/guard.hpp.

    Each clock counts between `slow` and `fast` ms per ms of real time, and two clocks differ by the drift at most. A
    server counts whole milliseconds, so a key lives for more than ttl - 1 ms of the server's clock."""
    w = kernel.World((), {})
    ttl, longest, drift, fixed = (w.constant(n, kernel.REAL) for n in ("ttl", "longest ttl", "drift", "fixed"))
    slow, fast, scale = (w.constant(n, kernel.REAL) for n in ("slow", "fast", "scale"))
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
    return [(kernel.Question(name, w, base + more, [(name, kernel.all_of(goal))]), theorem)
            for name, more, goal, theorem in rows]


def numbers():
    for question, theorem in clocks():
        said = {solver: question.ask(solver)[0][1] for solver in kernel.SOLVERS}
        well = set(said.values()) == {"unsat"} if theorem else said["z3"] == "sat"
        report(f"clocks: {question.name}", well, ("proved" if theorem else "fails, as it must") if well else str(said))


def compare_with_design(source):
    """Each statement belongs to one invariant of DESIGN. Lines: `13. ... Proved: `name`, `name`, and 3 more.`"""
    text = (source / "src/DESIGN.md").read_text(encoding="utf-8")
    section = text[text.index("## 6. Invariants"):text.index("## 7. ")]
    sites = protocol.Site(), tokens.Site()
    made = [(one.invariant, one.name) for site in sites for one in site.statements(site.state)]
    told = 0
    for item in re.split(r"\n(?=\d+\. )", section)[1:]:
        number, proved = int(item.split(".")[0]), item.partition("Proved:")[2]
        names = [" ".join(name.split()) for name in re.findall(r"`([^`]+)`", proved)]
        count = len(names) + sum(map(int, re.findall(r"and (\d+) more", proved)))
        for name in names:
            if (number, name) not in made:
                report("DESIGN", False, f"{number}. `{name}` is no statement of the proof")
        if count != sum(invariant == number for invariant, _ in made):
            report("DESIGN", False, f"{number}. counts {count} statements, and the proof has another number")
        told += count
    report("DESIGN", told == len(made), f"{told} statements are told there")


def compare_with_replay(source, path, row):
    """What takes a real run as a run of the proof has the proof's names and numbers of conditions."""
    text = (source / path).read_text(encoding="utf-8")
    site = protocol.Site()
    conditions = {step.name: len(step.conditions) for step in Steps(site, site.state).all()}
    rows = re.findall(row, text)
    wrong_steps = [name for name, number, looked in rows
                   if conditions.get(name) != int(number) or any(int(one) > int(number) for one in looked)]
    names = {one.name for one in site.statements(site.state)}
    statements = re.findall(r'X\(\w+, "([^"]+)"\)', text) or re.findall(
        r'"([^"]+)"', re.search(r"STATEMENTS = \((.*?)\)", text, re.S)[1])
    wrong_names = [name for name in statements if name not in names]
    well = rows and statements and not wrong_steps and not wrong_names
    report(path, well, f"{len(rows)} of {len(conditions)} steps, {len(statements)} of {len(names)} statements"
           if well else f"not of the proof: {', '.join(wrong_steps + wrong_names)}")


def story(name):
    """The lines of a run of the protocol without this rule."""
    ends = []

    def goal(site, s):
        for x in runs.MEMBERS[protocol.ATTEMPT][:2]:
            ends.append(s.valid_until(x) - site.clock_of(s, x))
        return runs.GOALS.get(name, runs.two_holders)(site, s)
    path = runs.BREAKS[name]
    question = runs.question(path, goal, name)
    passing = [i for i, (step, _) in enumerate(path) if step == "time passes"]
    found = kernel.numbers(question, [f"|duration@{i}|" for i in passing] + ends)
    times, now = dict(zip(passing, found)), 0.0
    yield f"The rule: {protocol.RULES[name]} Without it (a validity is 10 at most):"
    yield " step  time"
    for i, (step, chosen) in enumerate(path):
        now += times.get(i, 0)
        yield f"{i + 1:5d} {now:5.1f}  {step}: {', '.join(map(str, chosen.values()))}".rstrip(": ")
    for i in range(1 if name in runs.GOALS else 2):
        yield f"c{i} believes in x{i} for another {found[len(passing) + i]:.1f} of its clock."
    said = {runs.question(path, goal).ask(solver)[0][1] for solver in kernel.SOLVERS}
    yield f"The same steps with the rule: {'impossible' if said == {'unsat'} else said}."


def theorems():
    for solver in kernel.SOLVERS:
        prove("exclusion", exclusion(), solver)
        prove("tokens", tokens.questions(), solver)
        for name in protocol.NOT_NEEDED:
            prove(f"not needed: {name}", exclusion(name), solver)
    numbers()


def weakened():
    proved = {one.text for one in exclusion() + tokens.questions()}
    for name in protocol.RULES:
        must_fail(f"exclusion without the rule: {name}", exclusion(name), proved)
    for name in tokens.RULES:
        must_fail(f"tokens without the rule: {name}", tokens.questions(name), proved)


def main():
    if sys.argv[1:] == ["rules"]:
        print(*[f"{name:45s} {rule}" for name, rule in protocol.RULES.items()], sep="\n")
        return 0
    if sys.argv[1:2] == ["break"] and sys.argv[2] in protocol.RULES:
        print(*story(sys.argv[2]), sep="\n")
        return 0
    source = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[3])
    parts = sys.argv[2:] or ["names", "theorems", "weakened", "runs"]
    if "names" in parts:
        parts.remove("names")
        compare_with_design(source)
        compare_with_replay(source, "test/sim/proof_run.hpp", r'X\(\w+, "([^"]+)", (\d+), "(\d*)"\)')
        compare_with_replay(source, "test/nightly/campaign/proof_run.py", r'"([^"]+)": \((\d+), "(\d+)"\)')
    missing = [solver for solver in kernel.SOLVERS if parts and shutil.which(solver) is None]
    if missing and not wrong:
        print(f"proof: {', '.join(missing)} is not installed")
        return 77
    for part in parts:
        {"theorems": theorems, "weakened": weakened, "runs": must_run}[part]()
    print(f"{len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
