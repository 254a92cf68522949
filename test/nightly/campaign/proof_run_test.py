# SPDX-License-Identifier: MIT
"""Does proof_run.py let a true story pass, and find out each false one?"""
import pathlib
import tempfile
import unittest

import proof_run

V1, V2, V3 = (digit * 40 for digit in "123")
SEAL, OTHER = ":".join(("a" * 16, "b" * 16, "c" * 16)), ":".join(("a" * 16, "b" * 16, "d" * 16))

# Lines of one master, in ms: its process starts, a client begins a state, watches it, and seals it. c-0 takes the bus
# by a plain command, extends its lock, and gives it back. c-1 takes it by a script, and is not heard of again. The
# longest ttl is 1 s, so a guard time is 1012 ms, and the longest validity 988 ms.
MASTER = f'''
100 started
101 ahead 0
200 lua ECHO "snapshot {'a' * 40} - - w/bus - -2"
210 a EVALSHA record 2 redlock::meta redlock::seen
210 lua HSET redlock::meta desc v1 q {'c' * 16} names m
210 lua HDEL redlock::meta seal
1300 a EVALSHA record 2 redlock::meta redlock::seen
1300 lua HSET redlock::meta desc v1 q {'c' * 16} names m
1300 lua HSET redlock::meta seal {SEAL}
1310 a EVALSHA reading 2 redlock::meta redlock::seen boot
1310 lua HMGET redlock::meta desc q seal names
1320 b EVALSHA reading 2 redlock::meta redlock::seen boot
1320 lua HMGET redlock::meta desc q seal names
1400 a SET w/bus {V1}:c-0 NX PX 500
1500 a EVALSHA extend 2 w/bus redlock::meta {V1}:c-0 500 {SEAL}
1500 lua PTTL w/bus
1500 lua PEXPIRE w/bus 500
1550 b EXISTS w/bus
1700 a EVALSHA release 1 w/bus {V1}:c-0
1700 lua DEL w/bus
1800 b EVALSHA acquire 2 w/bus redlock::meta {V2}:c-1 500 {SEAL}
1800 lua SET w/bus {V2}:c-1 NX PX 500
'''
TRUE = {
    'weather': 'site 1 plant 1 tokens\nrecorded 1 plant 1000 m-0\nclient 1 c-0.1 plant loop busy\n'
               'client 1 c-1.1 plant loop busy\n',
    'c-0.1': 'wanted 1395 1 w/bus\ngot 1405 1 0 0 480\nyes 1410 1411 1 1888\nyes 1510 1511 1 1988\nletgo 1695 1\n'
             'ended 1696 1 released\n',
    'c-1.1': 'wanted 1795 1 w/bus\ngot 1805 1 0 0 480\nyes 1810 1811 1 2288\n',
    'm-0': MASTER,
}
FLUSHED = f'''1550 x FLUSHALL
1551 x EVALSHA record 2 redlock::meta redlock::seen
1551 lua HSET redlock::meta desc v1 q {'d' * 16} names m
'''
STATE = '"a seal that fits is old: loss"'


def in_ns(line):
    """Of a history: its times are those of the facts' words."""
    words = line.split()
    times = {'yes': (1, 2, 4)}.get(words[0], (1,))
    return ' '.join(word + '000000' if n in times else word for n, word in enumerate(words)) + '\n'


def as_told(line):
    """Of a master: as recorder.py writes it."""
    at, sender, *rest = line.split(' ', 2)
    if sender in ('started', 'ahead', 'gap'):
        return f"{at}000000 {' '.join([sender, *rest])}\n"
    words = rest[0].split(' ', 1) if rest[0].startswith('ECHO "') else rest[0].split()
    quoted = ' '.join(word if word.startswith('"') else f'"{word}"' for word in words)
    return f'{at}000000 {int(at) // 1000}.{int(at) % 1000:03d}000 [0 {sender}] {quoted}\n'


class Judged(unittest.TestCase):
    def judge(self, *changes):
        histories = dict(TRUE)
        for name, old, new in changes:
            self.assertIn(old, histories[name])
            histories[name] = histories[name].replace(old, new, 1)
        with tempfile.TemporaryDirectory() as folder:
            for sub in ('histories', 'commands'):
                pathlib.Path(folder, sub).mkdir()
            for name, text in histories.items():
                lines = text.strip().split('\n')
                if name == 'm-0':
                    pathlib.Path(folder, 'commands', name).write_text(''.join(map(as_told, lines)))
                else:
                    pathlib.Path(folder, 'histories', name).write_text(''.join(map(in_ns, lines)))
            breaches, self.summary = proof_run.judge(folder)
        return sorted({rule for rule, _ in breaches})

    def finds(self, rules, *changes):
        self.assertEqual(self.judge(*changes), sorted(rules))

    def condition(self, number, step, *changes):
        self.finds([f'condition {number} of "{step}"'], *changes)

    def test_a_true_story_passes(self):
        self.finds([])
        self.assertIn('2 holds judged, 0 not', self.summary[0])

    def test_who_wins_has_votes(self):
        self.condition(2, 'win', ('m-0', f'1400 a SET w/bus {V1}:c-0 NX PX 500\n', ''))
        self.condition(2, 'win', ('m-0', '1800 lua SET', '1900 lua SET'))

    def test_a_holder_has_promises(self):
        self.finds(['"a holder has promises"'], ('c-0.1', 'yes 1510 1511 1 1988', 'yes 1510 1511 1 1998'))
        # The extend is executed too late, or a put-back alone gives the key that life.
        self.finds(['"a holder has promises"'], ('c-0.1', 'yes 1510 1511 1 1988', 'yes 1490 1491 1 1988'))
        self.finds(['"a holder has promises"'],
                   ('m-0', '1500 lua PTTL w/bus', f'1500 lua SET w/bus {V1}:c-0 NX PX 500'))

    def test_a_key_that_is_not_free(self):
        self.finds(['"one promise"', 'condition 3 of "delete"', 'condition 4 of "SET, plain"'],
                   ('m-0', '1550 b EXISTS w/bus', f'1550 b SET w/bus {V3}:c-2 PX 500'))
        acquire = (f'1550 b EVALSHA acquire 2 w/bus redlock::meta {V3}:c-2 500 {SEAL}\n'
                   f'1550 lua SET w/bus {V3}:c-2 PX 500')
        self.finds(['"one promise"', 'condition 3 of "delete"', 'condition 4 of "SET by a script"'],
                   ('m-0', '1550 b EXISTS w/bus', acquire))
        self.finds([], ('m-0', '1550 b EXISTS w/bus', f'1550 b SET w/bus {V3}:c-2 NX PX 500'))  # it was refused

    def test_a_vote_that_was_perhaps_refused_is_no_promise(self):
        short = (f'1330 b EVALSHA acquire 2 w/bus redlock::meta {V3}:c-2 60 {SEAL}\n'
                 f'1330 lua SET w/bus {V3}:c-2 NX PX 60\n1400 a SET')
        after = (f'1401 b EVALSHA release 1 w/bus {V3}:c-2\n1401 lua DEL w/bus\n'
                 f'1402 b EVALSHA acquire 2 w/bus redlock::meta {V3}:c-3 60 {SEAL}\n'
                 f'1402 lua SET w/bus {V3}:c-3 NX PX 60\n'
                 f'1403 b EVALSHA release 1 w/bus {V3}:c-3\n1403 lua DEL w/bus\n1500 a EVALSHA')
        self.finds([], ('m-0', '1400 a SET', short), ('m-0', '1500 a EVALSHA', after))
        self.finds(['"one promise"'], ('m-0', '1500 a EVALSHA', after.split('\n', 2)[2]))

    def test_a_key_may_expire_between_two_promises(self):
        def another(at):
            return ('m-0', '1500 a EVALSHA', f'''{at} b EVALSHA acquire 2 w/bus redlock::meta {V3}:c-2 20 {SEAL}
{at} lua SET w/bus {V3}:c-2 NX PX 20
1480 a EVALSHA acquire 2 w/bus redlock::meta {V1}:c-0 500 {SEAL}
1480 lua SET w/bus {V1}:c-0 NX PX 500
1500 a EVALSHA''')
        short = ('m-0', f'{V1}:c-0 NX PX 500', f'{V1}:c-0 NX PX 50')
        self.finds([], short, another(1450))
        self.finds(['"one promise"'], short, another(1440))

    def test_an_extend_may_leave_a_longer_life(self):
        # It asked for 1 ms, and found a key that was set while nobody listened. A SET behind the 1 ms was refused.
        story = (('m-0', f'1400 a SET w/bus {V1}:c-0 NX PX 500', '1390 gap'),
                 ('m-0', '1500 lua PEXPIRE w/bus 500\n', ''),
                 ('m-0', f'1500 a EVALSHA extend 2 w/bus redlock::meta {V1}:c-0 500',
                  f'1450 lua ECHO "snapshot {"a" * 40} {"c" * 16} {SEAL} x - -2"\n'
                  f'1500 a EVALSHA extend 2 w/bus redlock::meta {V1}:c-0 1'),
                 ('m-0', '1550 b EXISTS w/bus', f'1650 b SET w/bus {V3}:c-2 NX PX 500'))
        self.finds([], *story)

    def test_a_script_compares_the_record(self):
        self.condition(2, 'SET by a script', ('m-0', f'{V2}:c-1 500 {SEAL}', f'{V2}:c-1 500 {OTHER}'))
        self.condition(2, 'extend', ('m-0', f'{V1}:c-0 500 {SEAL}', f'{V1}:c-0 500 {OTHER}'))

    def test_an_extend_counts_its_own_key(self):
        self.finds(['"a holder has promises"', 'condition 3 of "delete"', 'condition 5 of "extend"'],
                   ('m-0', f'extend 2 w/bus redlock::meta {V1}', f'extend 2 w/bus redlock::meta {V3}'))

    def test_an_extend_does_not_shorten(self):
        self.finds(['"a promise is kept"'], ('m-0', '1550 b EXISTS w/bus', '1550 lua PEXPIRE w/bus 50'))

    def test_a_delete(self):
        self.condition(2, 'delete', ('m-0', '1700 lua DEL', '1600 lua DEL'))
        self.condition(3, 'delete', ('m-0', f'release 1 w/bus {V1}', f'release 1 w/bus {V3}'))
        self.condition(3, 'delete', ('m-0', '1550 b EXISTS w/bus', '1699 b DEL w/bus'))
        self.finds(['"one promise"', 'condition 2 of "delete"'], ('c-0.1', 'letgo 1695 1\n', ''))

    def test_the_guard(self):
        self.finds(['condition 1 of "a seal is written"'],
                   ('m-0', f'1300 lua HSET redlock::meta seal {SEAL}', f'1215 lua HSET redlock::meta seal {SEAL}'))
        self.finds(['condition 2 of "SET by a script"', 'condition 2 of "extend"',
                    'condition 3 of "a seal is written"'],
                   ('m-0', f'1300 lua HSET redlock::meta seal {SEAL}', f'1300 lua HSET redlock::meta seal {OTHER}'))
        again = f'1290 lua HSET redlock::meta desc v1 q {"d" * 16} names m\n1300 a EVALSHA record 2 redlock::meta'
        self.finds(['condition 1 of "a seal is written"', 'condition 2 of "a quarantine id is written"'],
                   ('m-0', '1300 a EVALSHA record 2 redlock::meta', again))

    def test_a_master_that_has_forgotten(self):
        late = f'{FLUSHED}1552 b SET w/bus {V3}:c-2 NX PX 100'
        self.finds(['condition 2 of "SET by a script"', STATE], ('m-0', '1550 b EXISTS w/bus', late))
        self.assertIn('1 SET, plain, uncounted', self.summary[0])
        reading = ('1551 b EVALSHA reading 2 redlock::meta redlock::seen boot\n'
                   '1551 lua HMGET redlock::meta desc q seal names')
        # The SET was perhaps sent before the answer to this reading, which tells of the loss.
        self.finds(['condition 2 of "SET by a script"', STATE],
                   ('m-0', '1550 b EXISTS w/bus', late.replace('1552', reading + '\n1552')))
        self.assertIn('1 SET, plain, uncounted', self.summary[0])
        self.finds(['"plain commands rest on a quiet master"', STATE, 'condition 2 of "SET by a script"'],
                   ('m-0', '1550 b EXISTS w/bus', FLUSHED + reading),
                   ('m-0', f'SET w/bus {V2}:c-1 NX PX 500\n',
                    f'SET w/bus {V2}:c-1 NX PX 500\n2052 b SET w/door {V3}:c-2 NX PX 100\n'))
        # Whoever finds a seal that fits may vote with the next command.
        sealed = f'1551 a EVALSHA record 2 redlock::meta redlock::seen\n1551 lua HSET redlock::meta seal {SEAL}\n'
        self.finds(['"plain commands rest on a quiet master"', '"one promise"', STATE,
                    'condition 1 of "a seal is written"'],
                   ('m-0', '1550 b EXISTS w/bus', '1550 x FLUSHALL\n' + sealed.replace('lua HSET',
                    f'lua HSET redlock::meta desc v1 q {"e" * 16} names m\n1551 lua HSET').replace(
                        SEAL, SEAL[:34] + 'e' * 16) + reading + f'\n1552 b SET w/bus {V3}:c-2 NX PX 100'),
                   ('m-0', f'{V2}:c-1 500 {SEAL}', f'{V2}:c-1 500 {SEAL[:34]}{"e" * 16}'))

    def test_a_copied_seal_does_not_fit(self):
        # The master has followed another server with its own record. A look ahead finds that, and the SET is no vote.
        follows = (f'1900 x ECHO "follows"\n1901 lua ECHO "snapshot {"a" * 40} {"c" * 16} {SEAL} w/bus - -2"\n'
                   '1902 a EVALSHA reading 1 redlock::meta tag\n1902 lua HMGET redlock::meta desc q seal names\n'
                   f'1903 a SET w/door {V3}:c-2 NX PX 60\n')
        self.finds([], ('m-0', f'SET w/bus {V2}:c-1 NX PX 500\n', f'SET w/bus {V2}:c-1 NX PX 500\n{follows}'),
                   ('c-1.1', 'yes 1810 1811 1 2288', 'yes 1810 1811 1 2288\nletgo 1850 1\nended 1851 1 lost'))
        self.assertIn('1 SET, plain, uncounted', self.summary[0])

    def test_a_hold_is_judged_by_what_was_true_when_it_was_told(self):
        # The extend was executed while the check was under way.
        self.finds([], ('c-0.1', 'yes 1510 1511 1 1988', 'yes 1490 1511 1 1988'))

    def test_a_value_that_was_given_up_is_not_the_one_that_won(self):
        given_up = (f'1398 a SET w/bus {V3}:c-0 NX PX 500\n1399 a EVALSHA release 1 w/bus {V3}:c-0\n'
                    f'1399 lua DEL w/bus\n1400 a SET')
        self.finds([], ('m-0', '1400 a SET', given_up))
        self.finds(['condition 2 of "win"'], ('m-0', f'1400 a SET w/bus {V1}:c-0 NX PX 500\n',
                                              given_up.replace('1400 a SET', '')))

    def test_a_quarantine_id_that_was_not_seen_is_not_new(self):
        self.finds([], ('m-0', '1310 a EVALSHA', f'''1305 gap
1306 a EVALSHA record 2 redlock::meta redlock::seen
1306 lua HSET redlock::meta desc v1 q {'c' * 16} names m
1306 lua HSET redlock::meta seal {SEAL}
1307 lua ECHO "snapshot {'a' * 40} {'c' * 16} {SEAL} w/bus - -2"
1310 a EVALSHA'''))

    def test_what_was_not_seen_is_not_judged(self):
        self.finds([], ('m-0', f'1400 a SET w/bus {V1}:c-0 NX PX 500', '1390 gap'),
                   ('m-0', '1500 a EVALSHA', f'1450 lua ECHO "snapshot {"a" * 40} {"c" * 16} {SEAL} w/bus {V1}:c-0 '
                    '450"\n1500 a EVALSHA'))
        self.assertIn('1 holds judged, 1 not', self.summary[0])


if __name__ == '__main__':
    unittest.main()
