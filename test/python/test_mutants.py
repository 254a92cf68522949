# SPDX-License-Identifier: MIT
"""Deliberate bugs in the module: the test that is named must fail."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "src/python/libredlock"
MUTANTS = [
    ("a release is forgotten", "_core.py", "self._core.call(lib.redlock_release_async, self._id)", "pass",
     "test_sync.Sync.test_holds_and_lets_go"),
    ("a cancelled acquire is not let go", "_core.py", "        for lock in locks:\n            BaseLock.release(lock)",
     "        for lock in locks:\n            lock._key = 0", "test_aio.Aio.test_cancellations_at_random_instants"),
    ("LOST is not raised at the end of a block", "_sync.py", "if lost is not None and kind is None:", "if False:",
     "test_sync.Sync.test_lost"),
    ("LOST does not cancel the body", "aio.py", "self._body is not None and self._body.cancel()", "False",
     "test_aio.Aio.test_lost_cancels_the_body"),
    ("a call waits in another loop", "aio.py", "not in (None, self.loop)", "is self",
     "test_aio.Aio.test_another_loop_is_told_so_at_once"),
    ("a cancellation from outside is taken for ours", "aio.py", "uncancel() <= self._canceling", "uncancel() < 99",
     "test_aio.Aio.test_a_cancellation_from_outside_goes_on"),
    ("a need is in the wrong unit", "_core.py", "return math.ceil(seconds * 1000)", "return math.ceil(seconds * 100)",
     "test_sync.Sync.test_seconds"),
    ("the validity is in the wrong unit", "_core.py", "redlock_validity_ms, self._id)) / 1000",
     "redlock_validity_ms, self._id)) / 1", "test_sync.Sync.test_seconds"),
    ("an event of an earlier acquire is believed", "_core.py", "if lock is not None and lock._key == key:",
     "if lock is not None:", "test_sync.Sync.test_an_object_may_be_used_again_but_not_twice_at_once"),
    ("any of several begins at the first", "_core.py", "random.randrange(len(names) or 1)", "0",
     "test_sync.Sync.test_any_of_takes_what_is_free_from_a_random_start"),
    ("any of several keeps another one", "_core.py", "in set(locks) - {lock}:", "in set():",
     "test_sync.Sync.test_any_of_keeps_none_of_the_others"),
    ("a wait is for each name anew", "_core.py", "self._wait_ms - spent_ms", "self._wait_ms",
     "test_sync.Sync.test_any_of_where_all_are_held"),
    ("a client is left to the interpreter's end", "_core.py", "weakref.finalize(self, self._core.close)",
     "(lambda: None)", "test_ends.Ends.test_the_interpreter_ends_with_a_lock_held"),
    ("a forked child waits for a thread that it has not", "_core.py",
     " if os.getpid() == self.pid else threading.RLock()",
     "", "test_ends.Ends.test_forked_while_another_thread_is_in_a_call"),
    ("a client is lost when Ctrl-C comes behind its beginning", "_core.py",
     "self._configured(function(ctypes.byref(self.rl), self.cfg))",
     "rl = ctypes.c_void_p(); self._configured(function(ctypes.byref(rl), self.cfg)); self.rl = rl",
     "test_ends.Ends.test_interrupted_while_it_opens_and_closes"),
    ("a sentence is lost with the log's line", "_core.py", "self.log_fn, None, 7)", "self.log_fn, None, 6)",
     "test_mistakes.Mistakes.test_arguments"),
]


class Mutants(unittest.TestCase):
    def test_each_is_caught(self):
        for what, file, old, new, test in MUTANTS:
            with self.subTest(what), tempfile.TemporaryDirectory(prefix="redlock-python-") as folder:
                copy = shutil.copytree(PACKAGE, pathlib.Path(folder, "libredlock"))
                text = (copy / file).read_text(encoding="utf-8")
                self.assertEqual(text.count(old), 1, "the text of the mutant is not found once")
                (copy / file).write_text(text.replace(old, new), encoding="utf-8")
                for _ in range(3):  # an interrupt at a random instant may miss the bug
                    try:
                        done = subprocess.run([sys.executable, "-B", "-m", "unittest", test], capture_output=True,
                                              text=True, cwd=HERE, timeout=30,
                                              env={**os.environ, "PYTHONPATH": folder, "REDLOCK_CANCELLATIONS": "100"})
                    except subprocess.TimeoutExpired:
                        done = None  # caught: what should come does not come
                    if done is None or done.returncode != 0:
                        break
                if done is None:
                    continue
                self.assertNotEqual(done.returncode, 0, f"{test} passes")
                for broken in ("ImportError", "SyntaxError", "has no attribute 'test_"):
                    self.assertNotIn(broken, done.stderr)


if __name__ == "__main__":
    unittest.main()
