# SPDX-License-Identifier: MIT
"""The form for asyncio, on real servers."""
import asyncio
import os
import random
import signal
import unittest

import libredlock
import libredlock.aio
from libredlock import Cause, Code, EventType
from masters import Site

CANCELLATIONS = int(os.environ.get("REDLOCK_CANCELLATIONS", "1000"))


def run(test):
    """A test that is a coroutine, with the client that it is given."""
    def wrapper(self):
        async def main():
            self.events = []
            async with libredlock.aio.Client(self.config(), client_name="ours", on_event=self.events.append) as client:
                await test(self, client)
        asyncio.run(main())
    return wrapper


def descriptors():
    return len(os.listdir("/proc/self/fd"))


class Aio(Site):
    async def ends(self, what):
        """Waits for what an event of the loop will make true."""
        async def wait():
            while not what():
                await asyncio.sleep(0.001)
        await asyncio.wait_for(wait(), 30)

    @run
    async def test_holds_and_lets_go(self, client):
        self.assertTrue(await client.wait_ready(20.0))
        async with client.lock("plant1/rs485-a", wait=5.0) as lock:
            lock.check(0.3)
            self.assertGreaterEqual(self.holders("plant1/rs485-a"), 2)
            await lock.extend(3.0)
            self.assertGreater(lock.validity, 2.0)
            self.assertIsNone(await client.try_lock("plant1/rs485-a"))
        await self.ends(lambda: self.holders("plant1/rs485-a") == 0)
        self.assertEqual(client.status()["locks"]["held"], 0)
        async with await client.try_lock("plant1/rs485-a") as lock:
            lock.check()

    @run
    async def test_lost_cancels_the_body(self, client):
        canceled = []
        with self.assertRaisesRegex(libredlock.Lost, "^a: lost: . of 3 masters") as caught:
            async with client.lock("a") as lock:
                self.delete("a")
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    canceled.append(lock.validity)
                    raise
        self.assertEqual(canceled, [0])
        self.assertEqual(caught.exception.report.type, EventType.LOST)
        await asyncio.sleep(0)  # nothing is left to cancel
        if hasattr(asyncio.current_task(), "cancelling"):
            self.assertEqual(asyncio.current_task().cancelling(), 0)

    @run
    async def test_a_loss_between_two_awaits_is_raised_at_the_end(self, client):
        with self.assertRaises(libredlock.Lost):
            async with client.lock("a", ttl=0.2, renew=False) as lock:
                with self.assertRaises(libredlock.Lost):
                    while True:  # without an await
                        lock.check()

    @run
    async def test_a_loss_before_the_block_keeps_the_body_from_running(self, client):
        lock = await client.lock("a", ttl=0.2, renew=False).acquire()

        def is_over():  # validity is 0 already in the last millisecond
            try:
                lock.check()
            except libredlock.Lost:
                return True

        await self.ends(is_over)
        with self.assertRaisesRegex(libredlock.Lost, "^a:"):
            async with lock:
                self.fail("the body runs")
        async with lock:  # acquired anew
            lock.check()

    @run
    async def test_a_time_out_is_a_time_out(self, client):
        async with client.lock("a"):
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(client.lock("a", wait=None).acquire(), 0.05)
            await self.ends(lambda: client.status()["locks"]["pending"] == 0)

        async def body():
            async with client.lock("a"):
                await asyncio.sleep(60)

        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(body(), 0.1)
        await self.ends(lambda: client.status()["locks"]["held"] == 0)

    def test_a_cancellation_from_outside_goes_on(self):
        async def body(client):
            async with client.lock("a"):
                self.delete("a")
                await asyncio.sleep(60)

        def on_event(event):
            if event.type == EventType.LOST:
                tasks[0].cancel()  # behind that of the loss, before the task runs again

        async def main():
            async with libredlock.aio.Client(self.config(), on_event=on_event) as client:
                tasks.append(asyncio.create_task(body(client)))
                await asyncio.wait(tasks)
            if hasattr(tasks[0], "uncancel"):
                self.assertTrue(tasks[0].cancelled())
            else:
                self.assertIsInstance(tasks[0].exception(), libredlock.Lost)

        tasks = []
        asyncio.run(main())

    @run
    async def test_any_of(self, client):
        async with libredlock.aio.Client(self.config()) as other:
            async with other.lock("a"):
                async with await client.any_of("a", "b") as lock:
                    self.assertEqual(lock.names, ("b",))
                    for wait in (0.0, 0.3):
                        with self.assertRaisesRegex(libredlock.Locked, "^[ab]: "):
                            await other.any_of("a", "b", wait=wait)
                    with self.assertRaises(asyncio.TimeoutError):
                        await asyncio.wait_for(other.any_of("a", "b", wait=None), 0.1)
                    await self.ends(lambda: other.status()["locks"] == {"held": 1, "pending": 0, "max": 32})
                    with self.assertRaises(libredlock.Lost):
                        async with lock:
                            self.delete("b")
                            await asyncio.sleep(60)

    @run
    async def test_closing_ends_waits(self, client):
        async with libredlock.aio.Client(self.config()) as other:
            async with other.lock("a"):
                task = asyncio.create_task(client.lock("a", wait=None).acquire())
                await self.ends(lambda: client.status()["locks"]["pending"] == 1)
                await client.close()
                with self.assertRaises(libredlock.Canceled):
                    await task
        with self.assertRaises(libredlock.Closed):
            await client.lock("a").acquire()
        with self.assertRaisesRegex(libredlock.Closed, "opened once"):
            await client.__aenter__()

    @run
    async def test_a_forked_child_leaves(self, client):
        child = os.fork()
        if child == 0:
            told = 1
            try:
                await client.close()
                client._core.close()  # as at the interpreter's end
                told = 0
            finally:
                os._exit(told)
        ended = []
        try:
            await self.ends(lambda: ended.extend(filter(None, os.waitpid(child, os.WNOHANG))) or ended)
        finally:
            if not ended:
                os.kill(child, signal.SIGKILL)
        self.assertEqual(ended, [child])  # and a status of 0
        async with client.lock("a") as lock:
            lock.check()

    async def opened(self):
        client = libredlock.aio.Client(self.config())
        await client.__aenter__()
        return client, await client.lock("held").acquire()

    def test_another_loop_is_told_so_at_once(self):
        async def at_once(call):
            call()

        async def enter(lock):
            async with lock:
                pass

        async def use(call, *arguments):
            with self.assertRaisesRegex(libredlock.Error, "^this client belongs to another event loop") as caught:
                await asyncio.wait_for(call(*arguments), 30)
            self.assertEqual(caught.exception.code, Code.THREAD)

        def use_all(client, held, *calls):
            for call in calls + (client.lock("a", wait=None).acquire, client.lock("a").extend, held.extend):
                asyncio.run(use(call))
            asyncio.run(use(client.try_lock, "a"))
            asyncio.run(use(client.any_of, "a", "b"))
            for lock in (held, client.lock("a")):
                asyncio.run(use(enter, lock))
            for call in (held.release, client.status, client.commission, client.suspended,
                         lambda: client.fence_init("a")):
                asyncio.run(use(at_once, call))

        client, held = asyncio.run(self.opened())  # whose loop is closed now
        use_all(client, held)
        asyncio.run(client.close())
        self.assertEqual(self.holders("held"), 0)
        asyncio.run(client.close())
        held.release()

        loop = asyncio.new_event_loop()
        client, held = loop.run_until_complete(self.opened())
        use_all(client, held, client.close)
        loop.run_until_complete(held.extend())
        held.release()
        loop.run_until_complete(client.close())
        loop.close()

    def test_cancelled_while_it_closes(self):
        async def main():
            client = libredlock.aio.Client(self.config(), grace=0.3)
            await client.__aenter__()
            with self.frozen(3):
                task = asyncio.create_task(client.close())
                await asyncio.sleep(0)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
            with self.assertRaises(libredlock.Closed):
                client.status()
        asyncio.run(main())

    def test_cancellations_at_random_instants(self):
        draw = random.Random(1)

        async def work(client):
            if draw.random() < 0.5:
                lock = client.lock(draw.choice("abc"), wait=None)
            else:
                lock = await client.any_of(*"abc", wait=None)
            async with lock:
                await asyncio.sleep(draw.random() / 500)

        async def main():
            ends = {"cancelled": 0, "done": 0}
            async with libredlock.aio.Client(self.config(limits={"locks": 64})) as client:
                left = CANCELLATIONS
                await self.ends(lambda: client.status()["masters_up"] == 3)
                before = descriptors()
                while left > 0:
                    tasks = [asyncio.create_task(work(client)) for _ in range(10)]
                    for task in tasks:
                        await asyncio.sleep(draw.random() / 1000)
                        if draw.random() < 0.9:
                            task.cancel()
                            left -= 1
                    await asyncio.wait(tasks)
                    for task in tasks:
                        ends["cancelled" if task.cancelled() else "done"] += 1
                        if not task.cancelled():
                            task.result()
                await self.ends(lambda: client.status()["locks"] | {"max": 0} == {"held": 0, "pending": 0, "max": 0})
                await self.ends(lambda: client.status()["debts"]["open"] == 0)
                await self.ends(lambda: len(client._core.locks) == 0)
                self.assertEqual(descriptors(), before)
            self.assertGreater(min(ends.values()), CANCELLATIONS / 20, ends)
            print(ends)

        before = descriptors()
        asyncio.run(main())
        self.assertEqual(descriptors(), before)
        self.assertEqual([self.holders(name) for name in "abc"], [0, 0, 0])


if __name__ == "__main__":
    unittest.main()
