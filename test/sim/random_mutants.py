# SPDX-License-Identifier: MIT
"""Draws bugs of one token each, in the format of mutants/README.md.

  random_mutants.py N SEED TREE FOLDER [ROOM...]    writes N of them, of these rooms or of all, to
                                                    FOLDER/ROOM/random.txt, and prints each room and the tests of ctest
                                                    that are to see its bugs

The same seed and the same sources give the same bugs.
"""
import pathlib
import random
import re
import sys

import mutants

CONFORMANCE = 'integration_(redis_double_conformance|fence_scripts|guard_scripts)'
# What each room's folders are, and the tests that see them behind the simulator.
ROOMS = {
    'core': (('src/base', 'src/resp', 'src/lock', 'src/master', 'src/client'), f'unit_|scenario_|{CONFORMANCE}$'),
    'config': (('src/config',), 'unit_config|unit_tls|integration_(call_table|passwords|log|tool_place)$'),
    'run': (('src/run', 'src/c_api', 'port'),
            'unit_|integration_(call_table|failing|lock_|log|no_heap|polled|thread|tls_[^t])'),
    'site': (('src/site',), f'unit_|redlock_sim_moves|{CONFORMANCE}|integration_(reconfigure|ask|tool_change)'),
    'tool': (('src/tool',), 'unit_tool|integration_tool'),
    'python': (('src/python/libredlock',), 'python_'),
}
SUFFIXES = ('.cpp', '.hpp', '.lua', '.py')
NOT_BUILT = 'mbedtls'  # the copy has TLS by OpenSSL
SPACED = {'<': '<=', '<=': '<', '>': '>=', '>=': '>', '==': '!=', '!=': '==', '&&': '||', '||': '&&', '+': '-',
          '-': '+', '|': '&', '&': '|', '|=': '&=', '&=': '|=', '+=': '-=', '-=': '+=', '*': '/', '/': '*'}
ANYWHERE = {'true': 'false', 'false': 'true', '!': '', '++': '--', '--': '++', 'break': '', 'continue': ''}
PYTHON = {'and': 'or', 'or': 'and', 'not': '', 'True': 'False', 'False': 'True', 'break': 'pass', 'is': 'is not'}
LUA = {'~=': '==', '==': '~=', 'and': 'or', 'or': 'and', '<': '<=', '<=': '<', '>': '>=', '>=': '>', '+': '-', '-': '+'}
NO_CODE = re.compile(r'\s*#|\s*template|.*static_assert|.*_ASSERT\(|.*\.\.\.')


def changed(token, text, suffix):
    """What the token becomes, or None."""
    word = token.word
    is_lua = suffix == '.lua'
    spaced = text[token.begin - 1:token.begin].isspace() and text[token.end:token.end + 1].isspace()
    if is_lua and word in LUA:
        return LUA[word]
    if suffix == '.py' and word in PYTHON:
        return PYTHON[word]
    if suffix in ('.cpp', '.hpp') and word in ANYWHERE:
        return ANYWHERE[word]
    if not is_lua and spaced and word in SPACED:
        return SPACED[word]
    return str(int(word) + 1) if re.fullmatch(r'\d+', word) else None


def line_of(text, at):
    begin = text.rfind('\n', 0, at) + 1
    return text[begin:text.find('\n', at)]


def unique(words, at):
    """The shortest neighbourhood of the word that stands once among all words."""
    for reach in range(1, len(words)):
        first, last = max(at - reach, 0), at + reach + 1
        part = words[first:last]
        if sum(words[i:i + len(part)] == part for i in range(len(words) - len(part) + 1)) == 1:
            return first, last
    return 0, len(words)


def bugs_of(root, path):
    text = (root / path).read_text()
    tokens = mutants.tokens_of(text, path)
    words = [token.word for token in tokens]
    for at, token in enumerate(tokens):
        new = changed(token, text, path[path.rfind('.'):])
        if new is None or NO_CODE.match(line_of(text, token.begin)):
            continue
        yield path, words, at, new


def written(number, seed, bug):
    path, words, at, new = bug
    first, last = unique(words, at)
    rest = f'{" ".join(words[first:at])} {new} {" ".join(words[at + 1:last])}'.replace('  ', ' ')
    return (f'mutant random-{seed}-{number}\nThe token {words[at]} becomes {new or "nothing"}.\n'
            f'{path}: {" ".join(words[first:last])} => {rest.strip()}\n')


def main(count, seed, tree, folder, *rooms):
    root = pathlib.Path(tree)
    bugs = []
    for room in rooms or ROOMS:
        paths = (path for part in ROOMS[room][0] for path in (root / part).rglob('*')
                 if path.suffix in SUFFIXES and NOT_BUILT not in path.name)
        for path in sorted(str(path.relative_to(root)) for path in paths):
            bugs += ((room, bug) for bug in bugs_of(root, path))
    drawn = list(enumerate(random.Random(int(seed)).sample(bugs, int(count)), 1))
    for room in rooms or ROOMS:
        texts = [written(number, seed, bug) for number, (of, bug) in drawn if of == room]
        if texts:
            into = pathlib.Path(folder, room)
            into.mkdir(parents=True)
            (into / 'random.txt').write_text(f'# {count} of {len(bugs)} bugs of one token, seed {seed}\n\n'
                                             + '\n'.join(texts))
            print(room, f'^({ROOMS[room][1]})')


if __name__ == '__main__':
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
