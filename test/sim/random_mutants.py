# SPDX-License-Identifier: MIT
"""Draws bugs of one token each, in the format of mutants/README.md.

  random_mutants.py N SEED TREE    prints N of them, for the lock, the masters, the client and the Lua of TREE

The same seed and the same sources give the same bugs.
"""
import pathlib
import random
import re
import sys

import mutants

PARTS = ('src/lock/*', 'src/master/*', 'src/client/*', 'src/master/scripts/*.lua',
         'src/site/scripts/*.lua')
SPACED = {'<': '<=', '<=': '<', '>': '>=', '>=': '>', '==': '!=', '!=': '==', '&&': '||', '||': '&&', '+': '-',
          '-': '+', '|': '&', '&': '|', '|=': '&=', '&=': '|=', '+=': '-=', '-=': '+=', '*': '/', '/': '*'}
ANYWHERE = {'true': 'false', 'false': 'true', '!': '', '++': '--', '--': '++', 'break': '', 'continue': ''}
LUA = {'~=': '==', '==': '~=', 'and': 'or', 'or': 'and', '<': '<=', '<=': '<', '>': '>=', '>=': '>', '+': '-', '-': '+'}
NO_CODE = re.compile(r'\s*#|\s*template|.*static_assert|.*_ASSERT\(')


def changed(token, text, is_lua):
    """What the token becomes, or None."""
    word = token.word
    spaced = text[token.begin - 1:token.begin].isspace() and text[token.end:token.end + 1].isspace()
    if is_lua and word in LUA:
        return LUA[word]
    if not is_lua and word in ANYWHERE:
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
        new = changed(token, text, path.endswith('.lua'))
        if new is None or NO_CODE.match(line_of(text, token.begin)):
            continue
        yield path, words, at, new


def written(number, seed, bug):
    path, words, at, new = bug
    first, last = unique(words, at)
    rest = f'{" ".join(words[first:at])} {new} {" ".join(words[at + 1:last])}'.replace('  ', ' ')
    return (f'mutant random-{seed}-{number}\nThe token {words[at]} becomes {new or "nothing"}.\n{path}\n'
            f'- {" ".join(words[first:last])}\n+ {rest.strip()}\n')


def main(count, seed, tree):
    root = pathlib.Path(tree)
    paths = sorted({str(path.relative_to(root)) for part in PARTS for path in root.glob(part)
                    if path.suffix in ('.cpp', '.hpp', '.lua')})
    bugs = [bug for path in paths for bug in bugs_of(root, path)]
    drawn = random.Random(int(seed)).sample(bugs, int(count))
    print(f'# {count} of {len(bugs)} bugs of one token, seed {seed}\n')
    print('\n'.join(written(number, seed, bug) for number, bug in enumerate(drawn, 1)), end='')


if __name__ == '__main__':
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
