# SPDX-License-Identifier: MIT
"""The form without a loop, on real servers."""
import gc
import threading
import time
import unittest
import warnings

import libredlock
from libredlock import Cause, Code, EventType
from masters import TIMING, Site


class Sync(Site):
    def setUp(self):
        self.events = []
        self.client = libredlock.Client(self.config(), client_name="ours", on_event=self.events.append)
        self.addCleanup(self.client.close)

    def other(self):
        client = libredlock.Client(self.config(), client_name="gw-03")
        self.addCleanup(client.close)
        return client

    def types(self):
        return [event.type for event in self.events]

    def test_holds_and_lets_go(self):
        with self.client.lock("plant1/rs485-a", wait=5.0) as lock:
            lock.check(0.3)
            self.assertGreaterEqual(self.holders("plant1/rs485-a"), 2)
            self.assertEqual(self.client.status()["locks"]["held"], 1)
        self.assertEqual(self.client.status()["locks"]["held"], 0)
        self.client.close()  # which waits for the answers to the deletes
        self.assertEqual(self.holders("plant1/rs485-a"), 0)

    def test_seconds(self):
        with self.client.lock("a", ttl=2.0, renew=False) as lock:
            self.assertGreater(lock.validity, 0.5)
            self.assertLessEqual(lock.validity, 2.0)
            before = time.clock_gettime(time.CLOCK_BOOTTIME)
            now = lock.deadline_ns / 1e9 - lock.validity  # some time between the two
            after = time.clock_gettime(time.CLOCK_BOOTTIME)
            self.assertTrue(before - 0.5 < now < after + 0.5)
            lock.check(0.1)
            with self.assertRaisesRegex(libredlock.TooSlow, "a: 3 s are needed, [01][.0-9]* s are left"):
                lock.check(3.0)
            with self.assertRaises(libredlock.TooSlow):
                lock.check(2.001)
            lock.extend(3.0)
            self.assertGreater(lock.validity, 2.0)

    def test_excludes(self):
        other = self.other()
        with other.lock("a"):
            self.assertIsNone(self.client.try_lock("a"))
            with self.assertRaisesRegex(libredlock.Locked, "^a: .*gw-03") as caught:
                self.client.lock("a", wait=1.0).acquire()
            wrong = caught.exception
            self.assertEqual((wrong.code, wrong.cause, wrong.report.holder), (Code.LOCKED, Cause.HELD, "gw-03"))
            self.assertGreater(wrong.report.to_go, 0)
        with self.client.lock("a"):  # their deletes are on their way
            pass
        with self.client.try_lock("a") as lock:
            lock.check()
            self.assertIsNone(other.try_lock("a"))
        self.assertEqual(lock.validity, 0)

    def test_waits_and_says_for_what(self):
        other, said = self.other(), []
        theirs = other.lock("a").acquire()

        def on_waiting(event):
            said.append(event)
            if event.holder:
                theirs.release()

        with self.client.lock("a", wait=None, on_waiting=on_waiting) as lock:
            lock.check()
        self.assertEqual((said[-1].type, said[-1].cause, said[-1].holder), (EventType.WAITING, Cause.HELD, "gw-03"))
        self.assertRegex(str(said[-1]), "^held by gw-03(, | on )")

    def test_an_exception_while_waiting_gives_up(self):
        other = self.other()

        def on_waiting(event):
            raise LookupError(str(event))

        with other.lock("a"):
            with self.assertRaisesRegex(LookupError, "^held by"):
                self.client.lock("a", wait=None, on_waiting=on_waiting).acquire()
            self.eventually(lambda: self.client.status()["locks"]["pending"] == 0)

    def test_lost(self):
        with self.assertRaisesRegex(libredlock.Lost, "^a: .*lost") as caught:
            with self.client.lock("a") as lock:
                self.delete("a")
                with self.assertRaises(libredlock.Lost):
                    while True:
                        lock.check(0.1)
                self.eventually(lambda: EventType.LOST in self.types())
                with self.assertRaisesRegex(libredlock.Lost, "^a: lost: . of 3 masters"):
                    lock.check(0.1)
        self.assertEqual(caught.exception.report.type, EventType.LOST)

    def test_the_body_s_own_exception_is_not_hidden(self):
        with self.assertRaises(LookupError):
            with self.client.lock("a") as lock:
                self.delete("a")
                self.eventually(lambda: lock.validity == 0)
                raise LookupError

    def test_an_object_may_be_used_again_but_not_twice_at_once(self):
        lock = self.client.lock("a")
        for _ in range(3):
            with lock:
                lock.check()
                with self.assertRaisesRegex(RuntimeError, "client.lock\\(\\) makes another"):
                    lock.acquire()
                lock.check()

    def test_any_of_takes_what_is_free_from_a_random_start(self):
        names = set()
        for _ in range(30):
            with self.client.any_of("a", b"b", "c") as lock:
                lock.check(0.1)
                names.add(lock.names)
        self.assertEqual(names, {("a",), (b"b",), ("c",)})
        with self.other().lock("a"):
            for wait in (0.0, 5.0, None):
                with self.client.any_of("a", "b", wait=wait) as lock:
                    lock.check(0.1)
                    self.assertEqual(lock.names, ("b",))

    def test_any_of_keeps_none_of_the_others(self):
        other, freed = self.other(), []
        theirs = [other.lock(name).acquire() for name in "abc"]

        def on_waiting(event):
            freed.append(event)
            if len({event.lock for event in freed}) == 3:  # all at once
                for lock in theirs:
                    lock.release()

        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            with self.client.any_of("a", "b", "c", wait=None, on_waiting=on_waiting) as lock:
                lock.check()
                self.eventually(lambda: self.client.status()["locks"] == {"held": 1, "pending": 0, "max": 32})
                self.eventually(lambda: sum(map(self.holders, "abc")) == self.holders(lock.names[0]) > 1)
            freed.clear()
            gc.collect()
        self.assertEqual(warned, [])

    def test_any_of_where_all_are_held(self):
        budgets = []

        def on_waiting(event):
            budgets.append(event.lock._options.wait_ms)
            if len(budgets) == 1:
                time.sleep(0.6)  # before the second name is asked for

        with self.other().lock("a", "b"):
            with self.assertRaisesRegex(libredlock.Locked, "^[ab]: "):
                self.client.any_of("a", "b", wait=0)
            with self.assertRaisesRegex(libredlock.Locked, "^[ab]: "):
                self.client.any_of("a", "b", wait=3.0, on_waiting=on_waiting)
            self.assertEqual(budgets[0], 3000)
            self.assertLessEqual(min(budgets), 2400)
            with self.assertRaises(ZeroDivisionError):
                self.client.any_of("a", "b", wait=None, on_waiting=lambda event: 1 // (event.holder == ""))
            self.eventually(lambda: self.client.status()["locks"]["pending"] == 0)

    def test_tokens_rise(self):
        tokens = []
        for _ in range(3):
            with self.client.lock("a", fencing=True) as lock:
                tokens.append(lock.token)
        self.assertEqual(tokens, sorted(set(tokens)))
        self.assertGreater(tokens[0], 0)
        with self.client.lock("a") as lock:
            self.assertEqual(lock.token, 0)

    def test_flags(self):
        self.assertEqual(self.client.lock("a")._options.flags, 4)  # REDLOCK_F_TELL_WAITING
        with self.client.lock("a", renew=False, fencing=True, urgent=True) as lock:
            self.assertEqual(lock._options.flags, 1 | 2 | 4 | 8)

    def test_suspended(self):
        with self.assertRaises(libredlock.Lost), self.client.lock("a") as lock:
            self.client.suspended()
            with self.assertRaises(libredlock.Lost):
                lock.check()

    def test_tokens_that_nobody_knows(self):
        with libredlock.Client(self.config(fence="strict")) as client:
            with self.assertRaisesRegex(libredlock.Token, "^new: .*token") as caught:
                client.lock("new", fencing=True, wait=0.0).acquire()
            self.assertEqual(caught.exception.code, Code.FENCE_UNKNOWN)
            client.fence_init("new")
            with client.lock("new", fencing=True) as lock:
                self.assertGreater(lock.token, 0)

    def test_masters_that_are_commissioned_one_by_one(self):
        config = self.config(key_prefix="one by one/", timing={**TIMING, "max_ttl_ms": 60000})  # watched for a minute
        with libredlock.Client(config) as client:
            client.commission(0)
            client.commission(2)
            with client.lock("a", wait=20.0) as lock:
                lock.check()

    def test_waits_until_enough_masters_vote(self):
        with libredlock.Client(self.config()) as client:
            self.assertTrue(client.wait_ready(20.0))
            self.assertGreaterEqual(client.status()["masters_up"], 2)
        with libredlock.Client(masters=["redis://127.0.0.1:1"]) as client:
            self.assertFalse(client.wait_ready(0.1))

    def test_a_time_that_is_over_before_masters_answer(self):
        with self.client.lock("a"):
            pass
        with self.frozen(3), self.assertRaisesRegex(libredlock.TimedOut, "^a: not acquired") as caught:
            self.client.lock("a", wait=0.05).acquire()
        self.assertIsInstance(caught.exception, TimeoutError)

    def test_every_event(self):
        with self.other().lock("a"):
            self.assertIsNone(self.client.try_lock("a"))
        lock = self.client.lock("a", ttl=3.0)
        with lock:
            lock.extend()
            self.eventually(lambda: self.holders("a") == 3)  # the last one may have had the other's key until now
            with self.frozen(2), self.assertRaises((libredlock.NoQuorum, libredlock.Guarded)):
                lock.extend()
            self.eventually(lambda: self.client.status()["masters_up"] == 3)
        with self.assertRaises(libredlock.Lost), lock:
            self.delete("a")
            self.eventually(lambda: EventType.LOST in self.types())
        with self.other().lock("a"), self.assertRaises(libredlock.Locked):
            self.client.lock("a", wait=0.2).acquire()
        self.client.close()
        self.assertEqual(set(self.types()), set(EventType))
        self.assertEqual(self.types()[-1], EventType.CLOSED)
        master = next(event for event in self.events if event.type == EventType.MASTER)
        self.assertIn(f":{self.masters[master.master].port}", master.address)

    def test_close_ends_waits(self):
        with self.other().lock("a"):
            wrong, waiting = [], threading.Event()

            def wait():
                try:
                    self.client.lock("a", wait=None, on_waiting=lambda event: waiting.set()).acquire()
                except libredlock.Error as error:
                    wrong.append(error)

            thread = threading.Thread(target=wait)
            thread.start()
            waiting.wait()
            self.client.close()
            thread.join()
        self.assertIsInstance(wrong[0], libredlock.Canceled)
        with self.assertRaises(libredlock.Closed):
            self.client.lock("a").acquire()
        with self.assertRaises(libredlock.Closed):
            self.client.status()

    def test_a_callback_must_not_wait(self):
        wrong = []

        def on_event(event):
            if event.type == EventType.RELEASED:
                try:
                    client.lock("b").acquire()
                except libredlock.Error as error:
                    wrong.append(error.code)

        with libredlock.Client(self.config(), on_event=on_event) as client:
            with client.lock("a"):
                pass
            self.eventually(lambda: wrong)
            self.eventually(lambda: client.status()["locks"]["pending"] + client.status()["locks"]["held"] == 0)
        self.assertEqual(wrong, [Code.DEADLOCK])

    def test_an_exception_in_a_callback_is_logged(self):
        with self.assertLogs("libredlock", "ERROR") as logs:
            with libredlock.Client(self.config(), on_event=lambda event: 1 // 0) as client, client.lock("a"):
                pass
        self.assertIn("ZeroDivisionError", logs.output[0])


if __name__ == "__main__":
    unittest.main()
