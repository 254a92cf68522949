# SPDX-License-Identifier: MIT
"""Does mutants.py find the right places, and refuse what does not apply?"""
import pathlib
import tempfile
import unittest

import mutants

SOURCES = {
    'src/door.hpp': '''
class Door {
 public:
  Door(int width) : width_(width) {}
  bool open() const { return open_; }
  void paint(int red) { red_ = red; }
  void paint(const Colour& colour) { red_ = colour.red; }

 private:
  int width_ = 0;
  bool open_ = false;
};
template <typename T>
T larger(T a, T b) {
  return a < b ? b : a;
}
''',
    'src/door.cpp': '''
namespace house {
namespace {
int keys(int n) { return n + 1; }
}  // namespace
void Door::close() {
  open_ = false;  // open_ = maybe
  ++closed_; /* ++closed_ */
  say("closed //", 1'000, '"');
}
void Window::close() { open_ = false; }
}  // namespace house
''',
    'port/window.cpp': 'namespace yard {\nint keys(int n) { return n; }\nvoid tell() { say(1); say(2); say(1); }\n}\n',
    'src/scripts/door.lua': "-- if open\nif redis.call('GET',KEYS[1])~=ARGV[1] then -- no\nreturn #KEYS\nend\n",
}


def paragraph(*edits, head='mutant some-bug'):
    return '\n'.join([head, 'The reason.', *edits])


class Mutants(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for path, text in SOURCES.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)

    def changed(self, *edits):
        mutant, = mutants.mutants_in(paragraph(*edits))
        return mutants.Tree(self.root).changed(mutant)

    def assert_changed(self, edits, path, old, new):
        self.assertEqual(self.changed(*edits), {path: SOURCES[path].replace(old, new, 1)})

    def assert_refused(self, why, *edits):
        with self.assertRaisesRegex(mutants.Broken, why):
            self.changed(*edits)

    def test_functions_are_found_by_name(self):
        self.assert_changed(['Door::close: false => true'], 'src/door.cpp', '= false', '= true')
        self.assert_changed(['Window::close: open_ = false; =>'], 'src/door.cpp', '{ open_ = false; }', '{  }')
        self.assert_changed(['Door::open: open_ => true'], 'src/door.hpp', 'return open_', 'return true')
        self.assert_changed(['Door::Door: width_(width) => width_(1)'], 'src/door.hpp', '(width)', '(1)')
        self.assert_changed(['larger: ? b : a => ? a : b'], 'src/door.hpp', '? b : a', '? a : b')
        self.assert_changed(['house::keys: + 1 =>'], 'src/door.cpp', '+ 1', '')
        self.assert_changed(['Door::paint(const Colour&: red_ => blue_'], 'src/door.hpp', 'red_ = c', 'blue_ = c')

    def test_types_and_files_are_found_by_name(self):
        self.assert_changed(['class Door: bool open_ => int open_'], 'src/door.hpp', 'bool open_', 'int open_')
        self.assert_changed(['door.lua: ~= => =='], 'src/scripts/door.lua', '~=', '==')
        self.assert_changed(['port/window.cpp: return n; => return 0;'], 'port/window.cpp', 'n;', '0;')

    def test_white_space_and_comments_do_not_count(self):
        edits = ['Door::close: open_=false;++', '    closed_; =>', '  open_ = true;', ' ++closed_;']
        text = self.changed(*edits)['src/door.cpp']
        self.assertEqual(mutants.words_of(text), mutants.words_of(SOURCES['src/door.cpp'].replace('false', 'true', 1)))
        self.assert_changed(['Door::close: "closed //",1\'000 => 0'], 'src/door.cpp', '"closed //", 1\'000', '0')
        self.assert_refused('0 times', 'Door::close: "closed  //" =>')
        self.assert_refused('0 times', 'Door::close: maybe =>')

    def test_three_dots_stand_for_anything_within_a_statement(self):
        self.assert_changed(['Door::close: ... closed_; =>'], 'src/door.cpp', '++closed_;', '')
        self.assert_changed(['Door::close: open_ = ...; => ++open_;'], 'src/door.cpp', 'open_ = false', '++open_')
        self.assert_refused('0 times', 'Door::close: open_ ... closed_ =>')

    def test_several_edits(self):
        edits = ['Door::close: open_ = false; => open_ = true;', 'Door::close: ++closed_; =>', 'house::keys: 1 => 2']
        text = SOURCES['src/door.cpp'].replace('false', 'true', 1).replace('++closed_;', '', 1).replace('+ 1', '+ 2')
        self.assertEqual(self.changed(*edits), {'src/door.cpp': text})
        self.assert_refused('overlap', 'Door::close: open_ = false; => a', 'Door::close: false; ++closed_ => b')

    def test_places_that_are_not_there_or_ambiguous(self):
        self.assert_refused('Door::shut: not found', 'Door::shut: open_ => a')
        self.assert_refused('class Gate: not found', 'class Gate: open_ => a')
        self.assert_refused('struct Door: not found', 'struct Door: open_ => a')
        self.assert_refused('gate.lua: not found', 'gate.lua: open_ => a')
        self.assert_refused('close: ambiguous: src/door.cpp:6, src/door.cpp:11', 'close: open_ => a')
        self.assert_refused('Door::paint: ambiguous', 'Door::paint: red_ => a')
        self.assert_refused('keys: ambiguous: ', 'keys: n => a')

    def test_old_text_that_is_not_there_once(self):
        self.assert_refused('house::keys: 0 times in src/door.cpp:4-4: return 7;', 'house::keys: return 7; => a')
        self.assert_refused('0 times', 'house::keys: open_ => a')
        self.assert_refused('tell: 2 times', 'tell: say(1) => a')

    def test_tests_that_are_not_there(self):
        text = paragraph('larger: a < b => true', head='mutant some-bug by unit_door')
        some = {'some-bug': next(mutants.mutants_in(text))}
        self.assertEqual(list(mutants.faults(some, self.root, [])), [])
        self.assertEqual(list(mutants.faults(some, self.root, ['unit_door'])), [])
        self.assertEqual(list(mutants.faults(some, self.root, ['unit_window'])),
                         ['some-bug: caught-by: there is no test unit_door'])

    def test_what_is_written_wrongly(self):
        for text, why in [('mutant Some', 'is expected'), ('some-bug\nThe reason.\nlarger: a =>', 'is expected'),
                          ('mutant a\nThe reason.\nlarger', 'is missing'), ('mutant a\nlarger: a =>', 'is missing'),
                          ('mutant a\nThe reason.\nlarger: a =>\nsmaller: b', 'is no'),
                          ('mutant a\nThe reason.\nlarger: a + b => a+b', 'changes nothing')]:
            with self.subTest(text), self.assertRaisesRegex(mutants.Broken, why):
                list(mutants.mutants_in(text))
        (self.root / 'one.txt').write_text('# A comment.\n\n' + paragraph('larger: a < b => true'))
        self.assertEqual(list(mutants.read_mutants(self.root)), ['some-bug'])
        (self.root / 'two.txt').write_text(paragraph('larger: a < b => false'))
        with self.assertRaisesRegex(mutants.Broken, 'two.txt: some-bug: another mutant has this name'):
            mutants.read_mutants(self.root)
        with self.assertRaisesRegex(mutants.Broken, 'no mutants'):
            mutants.read_mutants(self.root / 'src')


if __name__ == '__main__':
    unittest.main()
