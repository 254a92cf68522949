# SPDX-License-Identifier: MIT
"""The kernel of the proof: terms, steps, and two solvers that are asked.

A term is a piece of SMT-LIB text with its sort. A state maps names to functions. A step has conditions on the state
before it, and gives new functions for the parts that it changes, as Python functions of the old ones. What a step
leaves alone is therefore the very same text before and after it.
"""
import collections
import concurrent.futures
import re
import subprocess

BOOL, REAL, INT = "Bool", "Real", "Int"
SOLVERS = {
    "z3": ["z3", "-smt2", "-in"],
    "cvc5": ["cvc5", "--lang=smt2", "--incremental", "--full-saturate-quant"],
}
PATIENCE_MS = 120000  # for one check, on the wall clock: a loaded machine makes a second into a minute

Step = collections.namedtuple("Step", "name conditions changes")
Statement = collections.namedtuple("Statement", "invariant name formula")  # invariant: its number in src/DESIGN.md, 6


class Term:
    def __init__(self, sort, text):
        self.sort, self.text = sort, text

    def __eq__(self, other):
        return Term(BOOL, f"(= {self.text} {term(other, self.sort)})")

    def __lt__(self, other):
        return Term(BOOL, f"(< {self.text} {term(other, self.sort)})")

    def __le__(self, other):
        return Term(BOOL, f"(<= {self.text} {term(other, self.sort)})")

    def __gt__(self, other):
        return Term(BOOL, f"(> {self.text} {term(other, self.sort)})")

    def __ge__(self, other):
        return Term(BOOL, f"(>= {self.text} {term(other, self.sort)})")

    def __add__(self, other):
        return Term(self.sort, f"(+ {self.text} {term(other, self.sort)})")

    def __sub__(self, other):
        return Term(self.sort, f"(- {self.text} {term(other, self.sort)})")

    def __mul__(self, other):
        return Term(self.sort, f"(* {self.text} {term(other, self.sort)})")

    def __str__(self):
        return self.text


def term(value, sort):
    if isinstance(value, Term):
        return value.text
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.9f}" if sort == REAL else str(value)


TRUE, FALSE = Term(BOOL, "true"), Term(BOOL, "false")


def all_of(*terms):
    return Term(BOOL, f"(and true {' '.join(map(str, terms))})")


def any_of(*terms):
    return Term(BOOL, f"(or false {' '.join(map(str, terms))})")


def no(one):
    return Term(BOOL, f"(not {one})")


def implies(one, other):
    return Term(BOOL, f"(=> {one} {other})")


def choose(condition, one, other):
    return Term(one.sort, f"(ite {condition} {one} {term(other, one.sort)})")


def largest(one, other):
    return choose(one > other, one, other)


def at(function, place, value):
    """The function, changed at one place."""
    place = place if isinstance(place, tuple) else (place,)

    def changed(*arguments):
        old = function(*arguments)
        same = all_of(*[a == p for a, p in zip(arguments, place)])
        return Term(old.sort, f"(ite {same} {term(value, old.sort)} {old})")
    changed.sorts, changed.sort = function.sorts, function.sort
    return changed


class World:
    """What exists: sorts, and all declarations. `members` names all things of a sort, where a run has only so many."""

    def __init__(self, sorts, variables, members=None):
        self.sorts, self.variables, self.members, self.lines = sorts, variables, members or {}, []
        self.lines += [f"(declare-sort {sort} 0)" for sort in sorts]

    def constant(self, name, sort):
        line = f"(declare-const |{name}| {sort})"
        if line not in self.lines:
            self.lines.append(line)
        return Term(sort, f"|{name}|")

    def function(self, name, *sorts):
        line = f"(declare-fun |{name}| ({' '.join(sorts[:-1])}) {sorts[-1]})"
        if line not in self.lines:
            self.lines.append(line)

        def call(*arguments):
            return Term(sorts[-1], f"(|{name}| {' '.join(map(str, arguments))})")
        call.sorts, call.sort = sorts[:-1], sorts[-1]
        return call

    def every(self, formula):
        """formula for all values of its parameters, whose names say their sorts"""
        names = formula.__code__.co_varnames[:formula.__code__.co_argcount]
        return self.quantify(formula, list(names), [])

    def quantify(self, formula, names, values):
        if not names:
            return formula(*values)
        sort = self.variables[names[0]]
        if sort in self.members:
            return all_of(*[self.quantify(formula, names[1:], values + [one]) for one in self.members[sort]])
        name = f"{names[0]}!{len(values)}"
        inner = self.quantify(formula, names[1:], values + [Term(sort, name)])
        return Term(BOOL, f"(forall (({name} {sort})) {inner})")


class State:
    def __init__(self, parts):
        self.parts = parts

    def __getattr__(self, name):
        try:
            return self.__dict__["parts"][name]
        except KeyError:
            raise AttributeError(name) from None

    def after(self, changes):
        assert changes.keys() <= self.parts.keys(), changes.keys() - self.parts.keys()
        return State({**self.parts, **changes})

    def named_after(self, world, changes, tag):
        """The same, with a name for each change: a long run stays as short as the sum of its steps."""
        parts = dict(self.parts)
        for part, new in changes.items():
            old, name = self.parts[part], f"{part}{tag}"
            sorts = () if isinstance(old, Term) else old.sorts
            arguments = [Term(sort, f"y!{i}") for i, sort in enumerate(sorts)]
            body = new if isinstance(new, Term) else new(*arguments)
            head = " ".join(f"({argument} {argument.sort})" for argument in arguments)
            world.lines.append(f"(define-fun |{name}| ({head}) {body.sort} {body})")
            if isinstance(old, Term):
                parts[part] = Term(old.sort, f"|{name}|")
            else:
                parts[part] = named(name, sorts, old.sort)
        return State(parts)


def named(name, sorts, sort):
    def call(*arguments):
        return Term(sort, f"(|{name}| {' '.join(map(str, arguments))})")
    call.sorts, call.sort = sorts, sort
    return call


# ---- questions ------------------------------------------------------------------------------------------------------

class Question:
    """Do the assumptions allow that a goal is false? The goals are asked one after the other."""

    def __init__(self, name, world, assumptions, goals):
        self.name, self.goals = name, [goal for goal, _ in goals]
        lines = ["(set-logic ALL)", *world.lines, *[f"(assert {one})" for one in assumptions]]
        for _, formula in goals:
            lines += ["(push 1)", f"(assert (not {formula}))", "(check-sat)", "(pop 1)"]
        self.text = "\n".join(lines) + "\n"

    def ask(self, solver):
        patience = f"-t:{PATIENCE_MS}" if solver == "z3" else f"--tlimit-per={PATIENCE_MS}"
        done = subprocess.run(SOLVERS[solver] + [patience], input=self.text, capture_output=True, text=True,
                              check=False)
        answers = re.findall(r"^(?:sat|unsat|unknown|timeout|\(error.*)$", done.stdout, re.M)
        if len(answers) != len(self.goals):
            raise RuntimeError(f"{solver}, {self.name}: {done.stdout[:400]} {done.stderr[:400]}")
        return list(zip(self.goals, answers))


def numbers(question, terms):
    """What these real terms are in the run that z3 finds, or None."""
    ask = f"(get-value ({' '.join(map(str, terms))}))\n(pop 1)"
    text = "(set-option :pp.decimal true)\n" + question.text.replace("(pop 1)", ask)
    said = subprocess.run(SOLVERS["z3"], input=text, capture_output=True, text=True, check=False).stdout
    found = re.findall(r"(\(- )?(\d+\.\d+)\??\)+$", said, re.M)
    return [-float(n) if minus else float(n) for minus, n in found] if said.startswith("sat") else None


def inductive(world, axioms, state, initial, steps, statements, lemmas=()):
    """The questions that are a proof: each statement holds at the start, and each step keeps each statement."""
    def goals_of(s):
        return [(one.name, one.formula) for one in statements(s)]

    before = [formula for _, formula in goals_of(state)]
    table = [(step.name, before + list(step.conditions), goals_of(state.after(step.changes))) for step in steps(state)]
    table.insert(0, ("start", initial(state), goals_of(state)))
    if lemmas:
        table.append(("follows", before, list(lemmas(state))))
    return [Question(name, world, axioms + assumptions, goals) for name, assumptions, goals in table]


def answers(questions, solver, jobs=2):
    """(question's name, goal, answer) of each"""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for question, said in zip(questions, pool.map(lambda one: one.ask(solver), questions)):
            for goal, answer in said:
                yield question.name, goal, answer


def run_of(world, axioms, state, initial, steps, path, goal):
    """Is there a run that takes the steps of this path, (name, {parameter: value}) each, and ends in goal?"""
    assumptions = axioms + initial(state)
    for i, (name, chosen) in enumerate(path):
        step = next(one for one in steps(state, f"@{i}", chosen) if one.name == name)
        assumptions += step.conditions
        state = state.named_after(world, step.changes, f"@{i}+")
    # The definitions stand between the conditions, but name only what is declared before them.
    return Question(f"{len(path)} steps", world, assumptions, [("run", no(goal(state)))])
