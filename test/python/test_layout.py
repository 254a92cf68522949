# SPDX-License-Identifier: MIT
"""libredlock/_layout.py is what the header says, and its structs lie as the C compilers lay them.

ctypes knows this machine alone. So the offsets of the others come from the rule that all these ABIs have in common, a
field lies at a multiple of its own size, and the rule must agree with ctypes here and with each compiler there.
"""
import ctypes
import os
import pathlib
import shutil
import subprocess
import unittest

from libredlock import _layout
from masters import PYTHON

SOURCE = pathlib.Path(__file__).resolve().parents[2]
STRUCTS = [kind for name, kind in vars(_layout).items() if name.startswith("redlock_") and name.endswith("_t")]
COMPILERS = ("cc", "clang", "arm-linux-gnueabihf-gcc", "aarch64-linux-gnu-gcc")
POINTERS = (ctypes.c_void_p, ctypes.c_char_p, _layout.redlock_event_fn)


def place(kind, pointer):
    """The size and the alignment of a ctypes type where a pointer has so many bytes."""
    if kind in POINTERS:
        return pointer, pointer
    if issubclass(kind, ctypes.Structure):
        return layout(kind, pointer)[0], max(place(field[1], pointer)[1] for field in kind._fields_)
    if issubclass(kind, ctypes.Array):
        size, alignment = place(kind._type_, pointer)
        return size * kind._length_, alignment
    return ctypes.sizeof(kind), ctypes.sizeof(kind)


def layout(struct, pointer):
    """The size of a struct, and {field: offset}."""
    at, offsets = 0, {}
    for name, kind in struct._fields_:
        size, alignment = place(kind, pointer)
        at = -(-at // alignment) * alignment
        offsets[name] = at
        at += size
    alignment = max(place(kind, pointer)[1] for _, kind in struct._fields_)
    return -(-at // alignment) * alignment, offsets


def assertions(pointer):
    """A C file that compiles if all is as _layout.py says."""
    yield "#include <redlock/redlock.h>"
    for struct in STRUCTS:
        size, offsets = layout(struct, pointer)
        yield f'_Static_assert(sizeof({struct.__name__}) == {size}, "{struct.__name__}");'
        for name, offset in offsets.items():
            yield f'_Static_assert(offsetof({struct.__name__}, {name}) == {offset}, "{struct.__name__}.{name}");'
    for kind, prefix in ((_layout.Code, "E_"), (_layout.EventType, "EV_"), (_layout.Cause, "CAUSE_"),
                         (_layout.MasterState, "MASTER_")):
        for name, value in kind.__members__.items():
            full = "REDLOCK_OK" if name == "OK" else f"REDLOCK_{prefix}{name}"
            yield f'_Static_assert({full} == {int(value)}, "{full}");'


class Layout(unittest.TestCase):
    def test_is_what_the_generator_prints(self):
        made = subprocess.run([*PYTHON, "-B", SOURCE / "src/python/generate.py", SOURCE / "include/redlock"],
                              capture_output=True, text=True, check=True).stdout
        self.assertEqual(made, pathlib.Path(_layout.__file__).read_text(encoding="utf-8"),
                         "src/python/generate.py include/redlock >src/python/libredlock/_layout.py")

    def test_the_rule_agrees_with_ctypes(self):
        for struct in STRUCTS:
            size, offsets = layout(struct, ctypes.sizeof(ctypes.c_void_p))
            self.assertEqual(ctypes.sizeof(struct), size, struct)
            self.assertEqual({name: getattr(struct, name).offset for name, _ in struct._fields_}, offsets, struct)

    def test_compilers(self):
        seen, own = [], os.environ.get("REDLOCK_C_COMPILER", "cc")  # own: of this build, which must be here
        for compiler in (own, *filter(shutil.which, COMPILERS)):
            pointer = int(subprocess.run([compiler, "-E", "-P", "-x", "c", "-"], input="__SIZEOF_POINTER__",
                                         capture_output=True, text=True, check=True).stdout)
            if compiler == own:
                self.assertEqual(pointer, ctypes.sizeof(ctypes.c_void_p), "not of this processor")
            text = "\n".join(assertions(pointer)) + "\n"
            done = subprocess.run([compiler, "-x", "c", "-std=c11", "-fsyntax-only", f"-I{SOURCE}/include", "-"],
                                  input=text, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), compiler)
            seen.append(compiler)
        print(*seen, f"{len(text.splitlines()) - 1} assertions")

    def test_the_module_is_small(self):
        lines = sum(len(path.read_text(encoding="utf-8").splitlines())
                    for path in pathlib.Path(_layout.__file__).parent.glob("*.py"))
        self.assertLessEqual(lines, 967)


if __name__ == "__main__":
    unittest.main()
