"""Random accesses of arrays by tiles of workgroups: any number of subgroups gives what numpy gives, without races."""

from __future__ import annotations

import importlib.util
import random
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from effort import examples

import xegpu_py
import xegpu_py.language as xl

ELEMENTS = 320
"""Elements of each array: those of the largest tile, and what loops move it by."""

UPDATES = {"add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "xor": np.bitwise_xor}

# The language in numpy: an access of a whole tile after the other.


class Memory:
    """An array, or the elements of an array to which pointers point."""

    def __init__(self, array: np.ndarray, at: Any = 0) -> None:
        self.array, self.at = array, at

    def __add__(self, moved: Any) -> Memory:
        return Memory(self.array, self.at + moved)

    def __getitem__(self, at: int) -> np.int32:
        return self.array[at]

    def __setitem__(self, at: int, value: int) -> None:
        self.array[at] = value


def load(pointers: Memory) -> np.ndarray:
    return pointers.array[pointers.at]


def store(pointers: Memory, value: np.ndarray) -> None:
    pointers.array[pointers.at] = value


def update(function: np.ufunc, pointers: Memory, value: np.ndarray) -> np.ndarray:
    before = load(pointers)
    function.at(pointers.array, pointers.at, value)
    return before


def exchange(pointers: Memory, value: np.ndarray) -> np.ndarray:
    before = load(pointers)
    store(pointers, value)
    return before


def compare_and_swap(pointers: Memory, expected: np.ndarray, value: np.ndarray) -> np.ndarray:
    before = load(pointers)
    store(pointers, np.where(before == expected, value, before))
    return before


MODEL = SimpleNamespace(
    arange=np.arange, load=load, store=store, max=np.max, atomic_xchg=exchange, atomic_cas=compare_and_swap,
    **{f"atomic_{name}": lambda p, x, f=function: update(f, p, x) for name, function in UPDATES.items()},
)  # fmt: skip


# Random kernels.


class Source:
    """The text of a random kernel."""

    def __init__(self, r: random.Random) -> None:
        self.r, self.depth, self.lines = r, 1, list[str]()
        self.size = r.choice([16, 64, 256])
        self.moved = [""]

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def place(self, distinct: bool) -> str:
        """Pointers to elements of an array, which are distinct or may be equal."""
        n, r = self.size, self.r
        places = ["i", "i", f"({n - 1} - i)", f"((i % 4) * {n // 4} + i // 4)", f"((i * 5 + 3) % {n})", "(i ^ 5)"]
        if not distinct:
            places += ["(i // 4)", "(i % 8)", "(i * 0 + 7)"]
        return f"{r.choice('ABC')} + {r.choice(places)}{r.choice(self.moved)}"

    def statement(self) -> None:
        r = self.r
        how, x, y = r.random(), r.choice("xyz"), r.choice("xyz")
        if how < 0.22:
            self.line(f"{x} = xl.load({self.place(False)})")
        elif how < 0.44:
            self.line(f"xl.store({self.place(True)}, {x})")
        elif how < 0.64:
            # Which of equal places is updated first is not known, but what all have done is.
            used = r.random() < 0.5
            self.line(f"{f'{y} = ' * used}xl.atomic_{r.choice([*UPDATES])}({self.place(used)}, {x})")
        elif how < 0.72:
            self.line(f"{r.choice(['', f'{y} = '])}xl.atomic_xchg({self.place(True)}, {x})")
        elif how < 0.76:
            self.line(f"{y} = xl.atomic_cas({self.place(True)}, {y}, {x})")
        elif how < 0.8:
            self.line(f"{x} = {x} + {r.choice('ABC')}[{r.randint(0, 15)}]")
        elif how < 0.84:
            self.line(f"{r.choice('ABC')}[{r.randint(0, 15)}] = {r.randint(0, 99)}")
        elif how < 0.9 or self.depth > 2:
            self.line(f"{x} = {r.choice([f'{x} * 3 + {y}', f'{x} - xl.max({y})', f'{x} ^ {y}'])}")
        elif how < 0.96:
            self.line(f"for t{self.depth} in range({r.randint(1, 3)}):")
            self.moved.append(f" + t{self.depth} * {r.choice([1, 16])}")
            self.block(r.randint(2, 4))
            self.moved.pop()
        else:
            self.line(f"if n % {r.randint(2, 3)} == 0:")
            self.block(r.randint(1, 3))

    def block(self, count: int) -> None:
        self.depth += 1
        for _ in range(count):
            self.statement()
        self.depth -= 1

    def text(self) -> str:
        self.line(f"i = xl.arange(0, {self.size})")
        for name in "xyz":
            self.line(f"{name} = xl.load({self.place(False)})")
        for _ in range(self.r.randint(3, 8)):
            self.statement()
        self.line(f"xl.store(C + i, {self.r.choice('xyz')})")
        return "\n".join(["def kernel(A, B, C, n):", *self.lines, ""])


def imported(text: str, folder: Path, language: Any) -> Any:
    """The kernel of a source in a file, which the language reads."""
    path = folder / "kernel.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("kernel", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    vars(module).update(xl=language)
    spec.loader.exec_module(module)
    return module.kernel


def run(seed: int, folder: Path) -> None:
    """Compare a random kernel with numpy, for each number of subgroups, and by the check of races."""
    r = random.Random(seed)
    text, n = Source(r).text(), r.randint(0, 6)
    arrays = [np.array([r.randint(-99, 99) for _ in range(ELEMENTS)], np.int32) for _ in "ABC"]
    wanted = [a.copy() for a in arrays]
    imported(text, folder, MODEL)(*map(Memory, wanted), n)
    kernel = xegpu_py.jit(imported(text, folder, xl))
    for count in (None, 1, 2, 4, 8, 16):
        found = [a.copy() for a in arrays]
        engine = r.choice(["jit", "interpreter"])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                launch = kernel.with_options(engine=engine, check="races", cache="off")[1]
                launch(*found, n, **({} if count is None else {"num_warps": count}))
        except xegpu_py.DiagnosticError as e:
            raise AssertionError(f"num_warps = {count}, {engine}: {e}\n{text}") from e
        for name, mine, theirs in zip("ABC", wanted, found):
            np.testing.assert_array_equal(theirs, mine, f"{name}, num_warps = {count}, {engine}, n = {n}\n{text}")


@pytest.mark.parametrize("seed", range(examples(40)))
def test_subgroups_access_arrays_in_order(seed: int, tmp_path: Path) -> None:
    run(seed, tmp_path)
