#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Which processors footprint.py measures: a compiler alone is not enough, and the target's root is taken where it is.
# The compiler here is a script that links only what has a root.
import contextlib
import io
import os
import pathlib
import tempfile
import unittest
from unittest import mock

import footprint

COMPILER = '''#!/bin/sh
case "$*" in *--sysroot=*) exit 0;; esac
exit 1
'''


class Targets(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        path = os.environ['PATH']
        self.addCleanup(os.environ.update, PATH=path)
        os.environ['PATH'] = f'{self.folder}:{path}'
        self.target = footprint.Target('z80', 'z80-none', ['qemu-z80'], 'z80')

    def install(self, *programs):
        for program in programs:
            (self.folder / program).write_text(COMPILER)
            (self.folder / program).chmod(0o755)

    def lack(self):
        return footprint.missing(footprint.with_root(self.target, self.folder), self.folder / 'work')

    def test_no_compiler(self):
        self.install('z80-none-gcc')
        self.assertEqual(self.lack(), 'no z80-none-g++, no qemu-z80')

    def test_a_compiler_without_libraries(self):
        self.install('z80-none-gcc', 'z80-none-g++', 'qemu-z80')
        self.assertEqual(self.lack(), 'no libuv or no cJSON of it')

    def test_a_root_that_is_not_whole(self):
        self.install('z80-none-gcc', 'z80-none-g++', 'qemu-z80')
        (self.folder / 'build/sysroot/z80').mkdir(parents=True)
        self.assertEqual(self.lack(), 'no libuv or no cJSON of it')

    def test_a_root(self):
        self.install('z80-none-gcc', 'z80-none-g++', 'qemu-z80')
        root = self.folder / 'build/sysroot/z80'
        root.mkdir(parents=True)
        (root / 'packages').touch()
        self.assertEqual(self.lack(), '')
        self.assertEqual(footprint.with_root(self.target, self.folder).emulator, ['qemu-z80', '-L', root])

    def test_above_the_limit_is_too_much_below_the_goal(self):
        here = {'objects': {}, 'shared': (0,), 'memory': {'usual': 0, 'least': 0}, 'stack': {'lock path': 0},
                'divisions': []}
        budget = next(b for b in footprint.BUDGETS if b.limit < b.goal and b.what.startswith('static'))
        said = io.StringIO()
        with contextlib.redirect_stdout(said), mock.patch.object(footprint, 'total', lambda *_: (0,)):
            self.assertEqual(footprint.judge(here, {budget.what: budget.limit + 1}), 1)
            self.assertEqual(footprint.judge(here, {budget.what: budget.limit}), 0)
            self.assertEqual(footprint.judge(here | {'divisions': ['__aeabi_ldivmod']}, {budget.what: budget.limit}), 1)
        self.assertRegex(said.getvalue(), f'{budget.what} .*: TOO MUCH')


if __name__ == '__main__':
    unittest.main()
