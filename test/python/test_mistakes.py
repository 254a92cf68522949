# SPDX-License-Identifier: MIT
"""The mistakes of a new user, and the sentence for each."""
import logging
import math
import unittest

import libredlock
import libredlock.aio
from libredlock import Cause, Code
from masters import Master, Site

URL = "redis://127.0.0.1:1"
# A row of each kind: unit_config_json, unit_config_keys and integration_log have all sentences.
OF_CONFIGURATION = [
    ((), {}, "masters: 0 is not in 1..15"),
    (("redis://:secret@127.0.0.1:1",), {}, r"a file is meant, not 127.0.0.1:1: say masters=\[\"redis://...\"\]"),
    (("missing.json",), {}, "missing.json: does not exist"),
    ((), {"masters": [URL], "timing": {"node_timeout_ms": 1}}, "timing.node_timeout_ms: 1 is not in 5..10000"),
]
OF_ARGUMENTS = [
    (("",), {}, ": a name is empty"),
    (("x" * 70,), {}, "x: a name is longer than 64 bytes"),
    (tuple("abcde"), {}, "a, b, c, d, e: count 5 is not in 1..4"),
    (("a",), {"ttl": 10000}, "a: ttl_ms 10000000 is above timing.max_ttl_ms 3000"),
]
OF_NUMBERS = [("wait", -1), ("wait", math.nan), ("wait", "5"), ("ttl", -1), ("ttl", "5"), ("max_hold", math.inf)]


class Mistakes(Site):
    def setUp(self):
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)

    def test_configurations(self):
        for form in (libredlock.Client, libredlock.aio.Client):
            for arguments, settings, sentence in OF_CONFIGURATION:
                with self.subTest(arguments, **settings), self.assertRaisesRegex(libredlock.Config, sentence) as caught:
                    form(*arguments, **settings)
                self.assertIsInstance(caught.exception, ValueError)
                self.assertNotIn("secret", str(caught.exception))
        with self.assertRaisesRegex(ValueError, "grace=-1: a number of seconds is meant"):
            libredlock.Client(masters=[URL], grace=-1)

    def test_arguments(self):
        with libredlock.Client(self.config()) as client:
            for arguments, options, sentence in OF_ARGUMENTS * 2:  # the log has none of the later ones
                with self.subTest(arguments, **options), self.assertRaisesRegex(libredlock.Invalid, sentence):
                    client.lock(*arguments, **options).acquire()
            with client.lock("a") as lock:
                for _ in range(9):
                    with self.assertRaisesRegex(libredlock.Invalid, "ttl_ms 5000 is above timing.max_ttl_ms 3000"):
                        lock.extend(5)
            with self.assertRaisesRegex(libredlock.Invalid, "a name is empty"):
                client.fence_init("")
            self.assertEqual(client.status()["locks"]["pending"], 0)

    def test_numbers_and_names(self):
        with libredlock.Client(self.config()) as client:
            for name, value in OF_NUMBERS:
                with self.assertRaisesRegex(ValueError, f"{name}=.*: a number of seconds is meant"):
                    client.lock("a", **{name: value})
            for names in ((), (5,), (["a"],), (None,)):
                with self.assertRaisesRegex(TypeError, "the names of the resources are meant"):
                    client.lock(*names)
                with self.assertRaisesRegex(TypeError, "the names of the resources are meant"):
                    client.any_of(*names)
            with self.assertRaisesRegex(TypeError, "timeout"):
                client.lock("a", timeout=5)

    def test_holding(self):
        with libredlock.Client(self.config()) as client:
            lock = client.lock("a")
            for call in (lock.check, lock.extend):
                with self.assertRaises(libredlock.NotHeld):
                    call()
            with lock:
                with self.assertRaisesRegex(libredlock.TooSlow, "a: 300 s are needed, 1.* s are left"):
                    lock.check(300)
                with self.assertRaisesRegex(ValueError, "need=-1: a number of seconds is meant"):
                    lock.check(-1)
                with self.assertRaisesRegex(libredlock.Invalid, "ttl_ms 300000 is above timing.max_ttl_ms 3000"):
                    lock.extend(300)
                lock.check()
            lock.release()
            for master in (7, -1, 1 << 32):
                with self.assertRaises(libredlock.Invalid):
                    client.commission(master)
            with client.lock("a", fencing=2, urgent=2) as lock:  # true, and no other flag
                self.assertGreater(lock.token, 0)
        with self.assertRaisesRegex(libredlock.Closed, "a: the client is closing"):
            lock.acquire()

    def test_too_many(self):
        with libredlock.Client(self.config(), limits={"locks": 1}) as client, client.lock("a"):
            lock = client.lock("b")
            for _ in range(9):
                with self.assertRaisesRegex(libredlock.Full, "b: limits.locks acquires"):
                    lock.acquire()
            self.assertEqual(len(client._core.locks), 1, "what is refused leaves nothing behind")

    def test_masters_that_are_not_there(self):
        with libredlock.Client(masters=[URL]) as client:
            with self.assertRaisesRegex(libredlock.NoQuorum, "127.0.0.1:1: the connection was refused") as caught:
                client.lock("a", wait=0.3).acquire()
        wrong = caught.exception
        self.assertEqual((wrong.code, wrong.cause, wrong.report.master_err, wrong.report.address),
                         (Code.NO_QUORUM, Cause.TOO_FEW, Code.REFUSED, "127.0.0.1:1"))

    def test_a_wrong_password(self):
        config = self.config()
        config["masters"] = [url.replace("//", "//somebody:secret@") for url in config["masters"]]
        with libredlock.Client(config) as client:
            with self.assertRaisesRegex(libredlock.NoQuorum, "user name or password was refused") as caught:
                client.lock("a").acquire()
        self.assertEqual(caught.exception.report.master_err, Code.AUTH)
        self.assertNotIn("secret", str(caught.exception))

    def test_a_change_of_masters_has_left_it_behind(self):
        other = Master(self.folder)
        self.addCleanup(other.end)
        config = {**self.config(), "masters": [f"redis://127.0.0.1:{other.port}"]}
        with libredlock.Client(config) as client:
            client.commission()
            with client.lock("a", wait=5.0):
                pass
        theirs = " > v1 n=3 q=2 max_ttl_ms=3000 ids=0011223344556677"
        other.ask("EVAL", "redis.call('HSET',KEYS[1],'desc','left '..redis.call('HGET',KEYS[1],'desc')..ARGV[1])", "1",
                  "redlock::meta", theirs)
        with libredlock.Client(config) as client:
            with self.assertRaisesRegex(libredlock.Left, "the site was changed: copy its redlock.json here"):
                client.lock("a", wait=None).acquire()


class Logging(Site):
    def test_lines_and_levels(self):
        logger = logging.getLogger("of.this.test")
        with self.assertLogs(logger, logging.INFO) as logs:
            with libredlock.Client(self.config(), logger=logger) as client:
                with self.assertRaises(libredlock.Invalid):
                    client.lock("").acquire()
                with client.lock("a"):
                    pass
        self.assertIn("ERROR:of.this.test:redlock_acquire_async: a name is empty", logs.output)
        self.assertTrue(any(line.startswith("INFO:of.this.test:master 127.0.0.1:") for line in logs.output))

    def test_a_file_a_dict_and_keywords(self):
        import json
        import pathlib
        path = pathlib.Path(self.folder, "bus.json")
        path.write_text(json.dumps(self.config()))
        for source in (path, str(path), self.config()):
            with libredlock.Client(source, client_name="gw-7") as ours, libredlock.Client(path) as other:
                with ours.lock("a"), self.assertRaises(libredlock.Locked) as caught:
                    other.lock("a", wait=1.0).acquire()
                self.assertEqual(caught.exception.report.holder, "gw-7")
                status = ours.status()
                self.assertEqual((status["quorum"], len(status["masters"])), (2, 3))


if __name__ == "__main__":
    unittest.main()
