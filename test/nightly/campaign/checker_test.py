# SPDX-License-Identifier: MIT
"""Does checker.py let a true history pass, and find out each false one?"""
import pathlib
import tempfile
import unittest

import checker

# Two clients take turns on one site of one master; the second one is killed, and its next life goes on. c-0 loses a
# lock, c-1 fails to get one, and the tool runs a command.
TRUE = {
    'weather': '''
seed 1 7
site 2 plant 1 tokens
client 3 c-0.1 plant loop busy+token
client 4 c-1.1 plant thread idle
client 5 c-tool.1 plant tool busy+token
blow 150 plant freeze m-0
killed 700 c-1.1 -9
client 710 c-1.2 plant thread idle
healed 1000
recovered 1500
exit 2000 c-0.1 0
exit 2001 c-1.2 0
exit 2002 c-tool.1 0
looked 3000 plant m-0
over 3001
''',
    'c-0.1': '''
wanted 100 1 bus
got 110 1 5 0 90
yes 120 121 1 200
yes 130 131 1 200
letgo 140 1
no 141 142 1 REDLOCK_E_STALE
ended 143 1 released
wanted 300 2 bus+door
got 310 2 7 0 90
yes 320 321 2 400
no 330 331 2 REDLOCK_E_TOO_SLOW
yes 340 341 2 400
no 350 351 2 REDLOCK_E_LOST
ended 352 2 lost
wanted 1100 3 bus
got 1110 3 9 0 90
yes 1120 1121 3 1200
letgo 1130 3
ended 1140 3 released
bye 1999
''',
    'c-1.1': '''
wanted 105 1 bus
got 145 1 6 1 50
yes 150 151 1 190
yes 180 181 1 190
letgo 185 1
ended 186 1 released
wanted 500 2 bus
failed 510 2 REDLOCK_E_LOCKED
wanted 600 3 bus
got 610 3 0 0 90
yes 620 621 3 690
''',
    'c-1.2': '''
wanted 750 1 bus
failed 760 1 REDLOCK_E_GUARD
wanted 1200 2 door
got 1210 2 0 0 90
yes 1220 1221 2 1290
letgo 1230 2
ended 1240 2 released
bye 2000
''',
    'c-tool.1': '''
wanted 1300 1 bus
got 1310 1 10 0 0 bus
yes 1320 1320 1 1320
yes 1330 1330 1 1330
ended 1400 1 status-0
wanted 1410 2 bus
ended 1420 2 status-75
bye 1999
''',
}


class Checker(unittest.TestCase):
    def told(self, *changes):
        """The breaches, and the summary, when in the named history a line has become others."""
        histories = dict(TRUE)
        for name, old, new in changes:
            self.assertEqual(histories[name].count(f'\n{old}\n'), 1, old)
            histories[name] = histories[name].replace(f'\n{old}\n', f'\n{new}\n' if new else '\n')
        with tempfile.TemporaryDirectory() as folder:
            for name, text in histories.items():
                pathlib.Path(folder, name).write_text(text.lstrip('\n'))
            return checker.judge(folder)

    def judge(self, *changes):
        """The rules that are broken then."""
        breaches, lines = self.told(*changes)
        self.assertTrue(lines)
        return sorted({rule for rule, _ in breaches})

    def finds(self, rule, *changes):
        self.assertEqual(self.judge(*changes), [rule])

    def test_a_true_history_passes(self):
        self.assertEqual(self.judge(), [])

    def test_two_holders(self):
        self.finds('two holders', ('c-1.1', 'got 145 1 6 1 50', 'got 135 1 6 1 50'))
        # A hold that lies within another, and one with a single check
        self.finds('two holders', ('c-1.1', 'got 610 3 0 0 90', 'got 325 3 0 0 90'),
                   ('c-1.1', 'yes 620 621 3 690', 'yes 326 327 3 330'),
                   ('c-1.1', 'wanted 600 3 bus', 'wanted 305 3 bus'))

    def test_two_holders_of_one_of_several_resources(self):
        self.finds('two holders', ('c-1.2', 'wanted 750 1 bus', 'wanted 311 1 door'),
                   ('c-1.2', 'failed 760 1 REDLOCK_E_GUARD', 'got 335 1 0 0 90\nyes 336 337 1 360\nended 361 1 lost'))

    def test_a_lost_lock_is_kept_free_until_its_validity_ends(self):
        self.finds('two holders', ('c-1.1', 'wanted 500 2 bus', 'wanted 353 2 bus'),
                   ('c-1.1', 'failed 510 2 REDLOCK_E_LOCKED', 'got 360 2 8 0 90\nyes 370 371 2 450\nended 460 2 lost'))

    def test_a_killed_holders_lock_is_kept_free_until_its_validity_ends(self):
        self.finds('two holders', ('c-0.1', 'wanted 1100 3 bus', 'wanted 630 3 bus'),
                   ('c-0.1', 'got 1110 3 9 0 90', 'got 640 3 9 0 90'),
                   ('c-0.1', 'bye 1999', 'wanted 1500 4 door\ngot 1510 4 0 0 90\nended 1520 4 lost\nbye 1999'))

    def test_a_lock_without_a_check_holds_nobody_off(self):
        self.assertEqual(self.judge(('c-1.1', 'got 145 1 6 1 50', 'got 135 1 6 1 50'),
                                    ('c-1.1', 'yes 150 151 1 190', ''), ('c-1.1', 'yes 180 181 1 190', '')), [])

    def test_the_command_of_the_tool_is_a_holder(self):
        self.finds('two holders', ('c-tool.1', 'yes 1330 1330 1 1330', 'yes 1380 1380 1 1380'),
                   ('c-1.2', 'wanted 1200 2 door', 'wanted 1340 2 bus'),
                   ('c-1.2', 'got 1210 2 0 0 90', 'got 1350 2 0 0 90'),
                   ('c-1.2', 'yes 1220 1221 2 1290', 'yes 1355 1356 2 1390'), ('c-1.2', 'letgo 1230 2', 'letgo 1360 2'))

    def test_one_of_several_is_known_when_it_is_got(self):
        self.finds('two holders', ('c-tool.1', 'wanted 1300 1 bus', 'wanted 1300 1 any'),
                   ('c-tool.1', 'got 1310 1 10 0 0 bus', 'got 1310 1 10 0 0 door'),
                   ('c-1.2', 'got 1210 2 0 0 90', 'got 1315 2 0 0 90'),
                   ('c-1.2', 'yes 1220 1221 2 1290', 'yes 1316 1317 2 1390'), ('c-1.2', 'letgo 1230 2', 'letgo 1360 2'))

    def test_one_of_several_counts_as_any_too(self):
        breaches, lines = self.told(('c-tool.1', 'wanted 1300 1 bus', 'wanted 1300 1 any'),
                                    ('c-tool.1', 'got 1310 1 10 0 0 bus', 'got 1310 1 10 0 0 door'),
                                    ('c-tool.1', 'wanted 1410 2 bus', 'wanted 1305 2 any'),
                                    ('c-tool.1', 'ended 1420 2 status-75',
                                     'got 1315 2 10 0 0 bus\nyes 1321 1330 2 1330\nended 1420 2 status-0'))
        self.assertEqual(breaches, [])
        self.assertRegex('\n'.join(lines), 'plant any: 2 wanted, 2 got; .*; 2 tokens')

    def test_yes_again(self):
        lost = 'no 350 351 2 REDLOCK_E_LOST'
        self.finds('yes again', ('c-0.1', lost, lost + '\nyes 351 352 2 400'))
        self.finds('yes again', ('c-0.1', 'letgo 140 1', 'letgo 140 1\nyes 140 141 1 200'))

    def test_tokens(self):
        self.finds('token twice', ('c-1.1', 'got 145 1 6 1 50', 'got 145 1 5 1 50'))
        self.finds('token backwards', ('c-0.1', 'got 310 2 7 0 90', 'got 310 2 4 0 90'))
        # Acquires that overlap in time may get theirs in either order.
        self.assertEqual(self.judge(('c-1.1', 'got 145 1 6 1 50', 'got 145 1 4 1 50')), [])
        # A site whose masters get old counters back has no order.
        self.assertEqual(self.judge(('weather', 'site 2 plant 1 tokens', 'site 2 plant 1 no-tokens'),
                                    ('c-0.1', 'got 310 2 7 0 90', 'got 310 2 4 0 90')), [])

    def test_every_acquire_has_one_end(self):
        self.finds('no end', ('c-0.1', 'ended 352 2 lost', ''))
        self.finds('no end', ('c-1.2', 'failed 760 1 REDLOCK_E_GUARD', ''))
        self.finds('no end', ('c-1.2', 'bye 2000', ''))
        self.finds('no end', ('weather', 'exit 2001 c-1.2 0', ''))
        self.finds('two ends', ('c-0.1', 'ended 352 2 lost', 'ended 352 2 lost\nended 353 2 released'))
        self.finds('two ends', ('c-0.1', 'ended 352 2 lost', 'failed 352 2 REDLOCK_E_LOST\nended 353 2 lost'))

    def test_nobody_dies(self):
        self.finds('died', ('weather', 'exit 2001 c-1.2 0', 'exit 2001 c-1.2 -6'))
        self.finds('died', ('c-tool.1', 'ended 1420 2 status-75', 'ended 1420 2 status-70'))

    def test_no_key_is_left(self):
        looked = 'looked 3000 plant m-0'
        self.finds('key left', ('weather', looked, 'left 2999 plant m-0 bus -1\n' + looked))

    def test_the_histories_are_whole(self):
        self.finds('cut short', ('weather', 'over 3001', ''))
        self.finds('cut short', ('weather', 'healed 1000', ''))
        self.finds('cut short', ('weather', 'looked 3000 plant m-0', ''))
        self.finds('history', ('c-0.1', 'wanted 100 1 bus', 'wanted 100 1 bus\nyes 101 102 44 103'))
        self.finds('history', ('c-0.1', 'bye 1999', 'good bye\nbye 1999'))

    def test_the_last_line_of_a_killed_process_may_be_cut(self):
        histories = dict(TRUE)
        histories['c-1.1'] += 'yes 63'
        with tempfile.TemporaryDirectory() as folder:
            for name, text in histories.items():
                pathlib.Path(folder, name).write_text(text.lstrip('\n'))
            self.assertEqual(checker.judge(folder)[0], [])

    def test_everybody_gets_something_done(self):
        self.finds('nothing done', ('c-1.2', 'got 1210 2 0 0 90', 'failed 1210 2 REDLOCK_E_LOCKED'),
                   ('c-1.2', 'yes 1220 1221 2 1290', ''), ('c-1.2', 'letgo 1230 2', ''),
                   ('c-1.2', 'ended 1240 2 released', ''))


if __name__ == '__main__':
    unittest.main()
