# SPDX-License-Identifier: MIT
"""The programs in Python of the pages, as they stand."""
import ast
import asyncio
import json
import os
import pathlib
import re
import unittest

import libredlock.aio
from masters import Site

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PORT = """
class Serial:
    def __init__(self, path, baud, timeout): pass
    def __enter__(self): return self
    def __exit__(self, *exception): pass
    def reset_input_buffer(self): pass
    def write(self, frame): self.frame = frame
    def read(self, size): return self.frame[:size]
"""


def programs(page):
    return re.findall(r"^```python\n(.*?)^```$", (SOURCE / page).read_text(encoding="utf-8"), re.M | re.S)


class Readme(Site):
    def said(self, program):
        folder = pathlib.Path(self.folder)
        (folder / "serial.py").write_text(PORT)
        (folder / "bus.json").write_text(json.dumps(self.config()))
        process = self.run_python(program.replace("/etc/redlock/redlock.json", "bus.json"), cwd=folder)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (0, ""))
        return out

    def test_readme(self):
        (program,) = programs("README.md")
        self.assertEqual(self.said(program), "the bus is ours for at least 0.3 s\n")

    def test_the_module_s_page(self):
        class Bus:
            written = 0

            def write_register(self, *arguments):
                self.written += 1
                return self

            def __await__(self):
                yield from ()

        text = programs("src/python/README.md")[0]
        pathlib.Path(self.folder, "bus.json").write_text(json.dumps(self.config()))
        names = {"libredlock": libredlock, "bus": Bus()}
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        asyncio.run(eval(compile(text, "README.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names))
        self.assertEqual(names["bus"].written, 2)

    def test_the_recipe(self):
        (program,) = programs("examples/README.md")
        self.assertEqual(self.said(program), bytes.fromhex("110300010001d7").hex() + "\n")


if __name__ == "__main__":
    unittest.main()
