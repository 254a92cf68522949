# SPDX-License-Identifier: MIT
"""The module where it is installed: by CMake, by pip in a virtual environment, and where the library is missing. Its
syntax, for Python 3.9, and its types, for the oldest version from 3.9 on that mypy knows. The types need mypy (Debian:
mypy), and are left out without."""
import ast
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = os.environ.get("LIBREDLOCK", "libredlock.so.0")
TOO_OLD = "unsigned redlock_version(void) { return 1 << 8; }"
PACKAGE = SOURCE / "src/python/libredlock"
FILES = {path.name for path in PACKAGE.iterdir() if path.suffix == ".py"} | {"py.typed"}
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


class Install(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="redlock-python-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_in(self, *command, **environment):
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder,
                              env={"PATH": os.environ["PATH"], "HOME": str(self.folder), "LIBREDLOCK": LIBRARY,
                                   "PIP_DISABLE_PIP_VERSION_CHECK": "1", **environment})
        return done

    def must(self, *command, **environment):
        done = self.run_in(*command, **environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout.strip()

    def test_cmake(self):
        self.must("cmake", "-S", SOURCE, "-B", "build", "-DREDLOCK_BUILD_PYTHON=ON", "-DREDLOCK_BUILD_TOOL=OFF")
        self.must("cmake", "--install", "build", "--component", "redlock-python", "--prefix", "prefix")
        (installed,) = self.folder.glob("prefix/lib/python3*/*-packages/libredlock")
        self.assertEqual({path.name for path in installed.iterdir()}, FILES)
        self.assertIn(f"lib/python3.{sys.version_info[1]}/", str(installed))
        where = self.must(sys.executable, "-B", "-c", "import libredlock; print(libredlock.__file__)",
                          PYTHONPATH=str(installed.parent))
        self.assertEqual(where, str(installed / "__init__.py"))

    def test_pip(self):
        shutil.copytree(SOURCE / "src/python", self.folder / "python")
        needed = "import ensurepip, setuptools, wheel"
        if subprocess.run([sys.executable, "-c", needed], capture_output=True).returncode:
            self.skipTest("python3-venv, python3-setuptools or python3-wheel is not here")
        self.must(sys.executable, "-m", "venv", "--system-site-packages", "venv")
        python = self.folder / "venv/bin/python"
        self.must(python, "-m", "pip", "install", "--no-build-isolation", "--no-index", "./python")
        said = self.must(python, "-c", "import libredlock, importlib.metadata as m; print(libredlock.__file__, "
                                       "libredlock.__version__, m.version('libredlock'))").split()
        self.assertIn("/venv/lib/", said[0])
        self.assertEqual({path.name for path in pathlib.Path(said[0]).parent.iterdir()} - {"__pycache__"}, FILES)
        self.assertEqual(said[1], said[2])

    def refused(self, library):
        done = self.run_in(sys.executable, "-B", "-c", "import libredlock", LIBREDLOCK=str(library),
                           PYTHONPATH=str(SOURCE / "src/python"))
        self.assertEqual(done.returncode, 1)
        return done.stderr.splitlines()[-1]

    def test_no_library(self):
        self.assertRegex(self.refused("libredlock.so.77"),
                         "^ImportError: the library libredlock.so.77 is not here .*apt install libredlock0.*ldconfig")

    def test_an_empty_name_of_a_library_is_none(self):
        done = self.run_in(sys.executable, "-B", "-c", "import libredlock", LIBREDLOCK="",
                           LD_LIBRARY_PATH=os.path.dirname(LIBRARY), PYTHONPATH=str(SOURCE / "src/python"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_another_library(self):
        self.assertRegex(self.refused("libc.so.6"), "^ImportError: libc.so.6 is too old: .* needs libredlock 0.3.0")

    def test_too_old(self):
        if shutil.which("cc") is None:
            self.skipTest("no C compiler")
        header = (SOURCE / "src/python/libredlock/_layout.py").read_text(encoding="utf-8")
        names = set(re.findall(r'"(redlock_\w+)": \(', header)) - {"redlock_version"}
        (self.folder / "old.c").write_text(TOO_OLD + "".join(f" void {name}(void) {{}}" for name in names))
        self.must("cc", "-shared", "-fPIC", "-o", "old.so", "old.c")
        self.assertRegex(self.refused(self.folder / "old.so"),
                         "^ImportError: .*old.so is 0.1.0: this module needs libredlock 0.3.0")


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
