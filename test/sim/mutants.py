# SPDX-License-Identifier: MIT
"""Reads the deliberate bugs of mutants/*.txt, and writes one of them into a copy of the sources.

  mutants.py --mutants FOLDER ...    reads the bugs of FOLDER instead
  mutants.py list                    the mutants, one a line: NAME, and the test that must see the bug, if one is named
  mutants.py apply NAME TREE         writes the bug into TREE, and prints the files that it changes
  mutants.py check TREE [TEST...]    applies each mutant to TREE, without writing, and looks for its test among TEST...

mutants/README.md describes the format. Exit: 0 done, 1 a mutant does not apply, 2 usage.
"""
import collections
import json
import pathlib
import re
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent / 'mutants'
ROOTS = ('include', 'port', 'src', 'test/sim', 'test/support')  # the folders of all places
TYPES = ('struct', 'class', 'union', 'enum')

Mutant = collections.namedtuple('Mutant', 'name caught_by edits')
Edit = collections.namedtuple('Edit', 'place old new')
Region = collections.namedtuple('Region', 'path first last')  # first, last: numbers of lines
Tag = collections.namedtuple('Tag', 'kind name signature region')  # name: scopes and name; signature: words
Source = collections.namedtuple('Source', 'text tokens lines')  # lines: where each begins
Token = collections.namedtuple('Token', 'word begin end')


class Broken(Exception):
    """A mutant is written wrongly or does not apply."""


# ---- tokens: white space, line breaks and comments do not count ------------------------------------------------------

COMMENT = {'': r'//[^\n]*|/\*.*?\*/', '.lua': r'--[^\n]*', '.py': r'\#[^\n]*'}  # by suffix; '': C++
WORD = r'''
  R"(?P<raw>[^(\s]*)\(.*?\)(?P=raw)"
  |"""[\s\S]*?"""
  |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'
  |\.?\d(?:[eEpP][+-]|'\w|[\w.])*
  |\w+
  |<<=|>>=|->|\+\+|--|<<|>>|[-<>=!+*/%&|^~]=|&&|\|\||::|\.\.\.?
  |\S'''
LEXER = {suffix: re.compile(f'(?P<comment>{comment})|{WORD}', re.VERBOSE | re.DOTALL)
         for suffix, comment in COMMENT.items()}


def tokens_of(text, path):
    suffix = pathlib.PurePath(path).suffix
    lexer = LEXER[suffix if suffix in LEXER else '']
    return [Token(found.group(), found.start(), found.end()) for found in lexer.finditer(text)
            if not found.group('comment')]


def words_of(text, path=''):
    return [token.word for token in tokens_of(text, path)]


# ---- the format ------------------------------------------------------------------------------------------------------

EDIT = re.compile(r'(.+?): (.+?) =>(?: (.*))?')  # place, old text, new text
ANY = '...'  # in old text: anything within a statement


def mutant_of(lines):
    """The lines are `mutant NAME` or `mutant NAME by TEST`, the reason, and edits."""
    head = re.fullmatch(r'mutant ([a-z0-9-]+)(?: by ([a-z_]+))?', lines[0])
    if not head:
        raise Broken(f'"mutant NAME" is expected, not "{lines[0]}"')
    edits = [found and Edit(*found.groups('')) for found in map(EDIT.fullmatch, lines[1:])]
    while edits and edits[0] is None:  # the reason
        del edits[0]
    if not edits or len(edits) == len(lines) - 1:
        raise Broken(f'{head.group(1)}: the reason or an edit is missing')
    if None in edits or any(words_of(edit.old) == words_of(edit.new) for edit in edits):
        raise Broken(f'{head.group(1)}: an edit is no "PLACE: OLD => NEW", or changes nothing')
    return Mutant(head.group(1), head.group(2), edits)


def mutants_in(text):
    """Mutants are separated by blank lines. Indented lines go on. A line that begins with # is a comment."""
    for paragraph in re.split(r'\n\s*\n', re.sub(r'\n +', ' ', text.strip('\n'))):
        lines = [line for line in paragraph.split('\n') if not line.startswith('#')]
        if lines:
            yield mutant_of(lines)


def read_mutants(folder):
    mutants = {}
    for path in sorted(folder.glob('*.txt')):
        try:
            for mutant in mutants_in(path.read_text()):
                if mutant.name in mutants:
                    raise Broken(f'{mutant.name}: another mutant has this name')
                mutants[mutant.name] = mutant
        except Broken as broken:
            raise Broken(f'{path.name}: {broken}') from None
    if not mutants:
        raise Broken(f'no mutants in {folder}')
    return mutants


# ---- places ----------------------------------------------------------------------------------------------------------

def ends_with(longer, shorter):
    return longer[-len(shorter):] == shorter


class Tree:
    """The sources in which places are looked for."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.roots = [folder for folder in ROOTS if (self.root / folder).is_dir()]
        self.tags = self.read_tags()
        self.sources = {}

    def read_tags(self):
        command = ['ctags', '--options=NONE', '--languages=C,C++', '--map-C++=+.h', '--fields=+neS',
                   '--output-format=json', '-f', '-', '-R', *self.roots]
        try:
            done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise Broken(f'Universal Ctags does not read {self.root}: {error}') from None
        tags = []
        for found in map(json.loads, done.stdout.splitlines()):
            if found['kind'] == 'function' or found['kind'] in TYPES:
                names = [*found.get('scope', '').split('::'), found['name']]
                tags.append(Tag(found['kind'], [name for name in names if name and not name.startswith('__anon')],
                                words_of(found.get('signature', '')),
                                Region(found['path'], found['line'], found['end'])))
        return tags

    def regions(self, place):
        kind, _, name = place.rpartition(' ')
        if kind in TYPES:
            return [tag.region for tag in self.tags if tag.kind == kind and ends_with(tag.name, name.split('::'))]
        if re.fullmatch(r'[\w/]+\.\w+', place):
            return self.files(tuple(place.split('/')))
        name, bracket, parameters = place.partition('(')
        signature = words_of(bracket + parameters)
        return [tag.region for tag in self.tags if tag.kind == 'function' and ends_with(tag.name, name.split('::'))
                and tag.signature[:len(signature)] == signature]

    def files(self, parts):
        paths = (path.relative_to(self.root) for root in self.roots for path in (self.root / root).rglob(parts[-1]))
        return [Region(str(path), 1, len(self.source(str(path)).lines)) for path in paths
                if ends_with(path.parts, parts)]

    def region(self, place):
        regions = self.regions(place)
        if not regions:
            raise Broken(f'{place}: not found')
        if len(regions) > 1:
            raise Broken(f'{place}: ambiguous: ' + ', '.join(f'{region.path}:{region.first}' for region in regions))
        return regions[0]

    def source(self, path):
        if path not in self.sources:
            text = (self.root / path).read_text()
            lines = [0] + [found.end() for found in re.finditer('\n', text)]
            self.sources[path] = Source(text, tokens_of(text, path), lines)
        return self.sources[path]

    def span(self, edit):
        """The file in which the old text stands, and where the old text begins and ends."""
        path, first, last = self.region(edit.place)
        source = self.source(path)
        begin = source.lines[first - 1]
        end = source.lines[last] if last < len(source.lines) else len(source.text)
        tokens = [token for token in source.tokens if begin <= token.begin < end]
        words = ''.join(token.word + '\0' for token in tokens)
        old = ''.join(r'(?:[^\0;{}]+\0)*?' if word == ANY else re.escape(word + '\0')
                      for word in words_of(edit.old, path))
        found = list(re.finditer(r'(?<![^\0])' + old, words))
        if len(found) != 1:
            raise Broken(f'{edit.place}: {len(found)} times in {path}:{first}-{last}: {edit.old}')
        begin, end = (words.count('\0', 0, at) for at in found[0].span())
        return path, tokens[begin].begin, tokens[end - 1].end

    def changed(self, mutant):
        """The text of each file that the mutant changes, with the bug."""
        spans = sorted((*self.span(edit), edit.new) for edit in mutant.edits)
        for one, next_one in zip(spans, spans[1:]):
            if one[0] == next_one[0] and one[2] > next_one[1]:
                raise Broken(f'two edits of {one[0]} overlap')
        texts = {}
        for path, begin, end, new in reversed(spans):
            text = texts.get(path) or self.source(path).text
            texts[path] = text[:begin] + new + text[end:]
        return texts


# ---- commands --------------------------------------------------------------------------------------------------------

def faults(mutants, root, tests):
    """What is wrong with the mutants, one line each. Without `tests` every test is taken to exist."""
    tree = Tree(root)
    for mutant in mutants.values():
        if tests and mutant.caught_by and mutant.caught_by not in tests:
            yield f'{mutant.name}: caught-by: there is no test {mutant.caught_by}'
        try:
            tree.changed(mutant)
        except Broken as broken:
            yield f'{mutant.name}: {broken}'


def main(command, *arguments):
    folder = FOLDER
    if command == '--mutants' and len(arguments) > 1:
        folder, command, *arguments = arguments
    mutants = read_mutants(pathlib.Path(folder))
    if command == 'list' and not arguments:
        for mutant in mutants.values():
            print(mutant.name, mutant.caught_by or '')
    elif command == 'apply' and len(arguments) == 2 and arguments[0] in mutants:
        root = pathlib.Path(arguments[1])
        for path, text in Tree(root).changed(mutants[arguments[0]]).items():
            print(path, flush=True)
            (root / path).write_text(text)
    elif command == 'check' and arguments:
        wrong = list(faults(mutants, arguments[0], arguments[1:]))
        if wrong:
            raise Broken('\n'.join(wrong))
        print(f'{len(mutants)} mutants apply')
    else:
        print(__doc__, file=sys.stderr)
        sys.exit(2)


if __name__ == '__main__':
    try:
        main(*sys.argv[1:] or [''])
    except Broken as problem:
        sys.exit(str(problem))
