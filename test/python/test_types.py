# SPDX-License-Identifier: MIT
"""The module's syntax, for Python 3.9, and its types, for the oldest version from 3.9 on that mypy knows. The types
need mypy (Debian: mypy), and are left out without."""
import ast
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "src/python/libredlock"
PROGRAM = """
import libredlock

with libredlock.Client("bus.json", client_name="gw-7") as client:
    with client.lock("plant1/rs485-a", wait=5.0) as lock:
        lock.check(0.3)
        reveal_type(lock)
    other = client.try_lock(b"a")
    if other is not None:
        reveal_type(other.validity)

async def main() -> None:
    async with libredlock.aio.Client(masters=["redis://127.0.0.1"]) as client:
        async with client.lock("a", on_waiting=print) as lock:
            reveal_type(lock)
            await lock.extend(3.0)
"""


class Types(unittest.TestCase):
    def test_syntax(self):
        for path in PACKAGE.glob("*.py"):
            ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))

    def mypy(self, *arguments):
        if shutil.which("mypy") is None:
            self.skipTest("mypy is not here")
        with tempfile.TemporaryDirectory() as folder:
            def run(version):
                return subprocess.run(["mypy", "--strict", "--python-version", version, "--cache-dir", folder,
                                       *arguments], capture_output=True, text=True,
                                      env={"MYPYPATH": str(PACKAGE.parent), "PATH": "/usr/bin"})
            done = run("3.9")
            oldest = re.search(r"Python 3\.9 is not supported \(must be (3\.\d+) or higher\)", done.stderr)
            return run(oldest[1]) if oldest else done

    def test_the_module(self):
        done = self.mypy(PACKAGE)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_a_program(self):
        done = self.mypy("-c", PROGRAM)
        self.assertEqual(done.returncode, 0, done.stdout)
        for kind in ("libredlock._sync.Lock", "builtins.float", "libredlock.aio.Lock"):
            self.assertIn(f'Revealed type is "{kind}"', done.stdout)


if __name__ == "__main__":
    unittest.main()
