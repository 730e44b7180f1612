"""Control flow of the tile language: random Python functions compute in a kernel what they compute in Python."""

import ast
import contextlib
import dataclasses
import functools
import linecache
import operator
import random
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from effort import examples

import xegpu_py
import xegpu_py.language as xl
from xegpu_py.language.expressions import MOST_SHOWN
from xegpu_py.language.function_source import escapes
from xegpu_py.language.scopes import Containers

VARIABLES = ("a", "b", "c", "held[0]", "held[-1]", "named['x']")
TILES = ("t", "u", "tiles[0]")


class Program:
    """Random statements on a few integers and on vectors of integers.

    All loops end, and every variable is defined from the start. With numpy as `xl`, Python runs the same text.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.loops = 0

    def expression(self, depth: int = 2) -> str:
        pick = self.random.random()
        if depth == 0 or pick < 0.35:
            return self.random.choice((*VARIABLES, "n", str(self.random.randint(-4, 9))))
        left, right = self.expression(depth - 1), self.expression(depth - 1)
        if pick < 0.8:
            return f"({left} {self.random.choice(('+', '-', '*', '&', '|', '^'))} {right}) % 1000"
        if pick < 0.9:
            return f"({left} if {self.condition(1)} else {right})"
        return f"({left} {self.random.choice(('//', '%'))} {self.random.choice((-7, -2, 3, 5))})"

    def tile(self, depth: int = 1) -> str:
        """An expression of vectors."""
        pick, one = self.random.random(), self.random.choice(TILES)
        if depth == 0 or pick < 0.2:
            return one
        left, right = self.tile(depth - 1), self.random.choice((*TILES, self.expression(0)))
        if pick < 0.55:
            return f"({left} {self.random.choice(('+', '-', '*', '&', '|', '^'))} {right}) % 1000"
        if pick < 0.75:
            return f"xl.where({one} {self.random.choice(('<', '>=', '=='))} {right}, {left}, {self.expression(0)})"
        return self.random.choice((f"{left}[::-1]", f"-{left}", f"xl.maximum({left}, {right})", f"{one}[None, :][0]"))

    def condition(self, depth: int = 2) -> str:
        pick = self.random.random()
        if pick < 0.1:
            one, other = self.random.choice(TILES), self.expression(0)
            return self.random.choice(
                (f"({one} > {other}).any()", f"({one} != {other}).all()", f"{one}.max() > {other}")
            )
        if depth == 0 or pick < 0.5:
            sign = self.random.choice(("<", "<=", ">", ">=", "==", "!="))
            return f"{self.expression(1)} {sign} {self.expression(1)}"
        if pick < 0.6:
            return f"{self.expression(0)} <= {self.expression(1)} < {self.expression(0)}"
        if pick < 0.7:
            return f"not ({self.condition(depth - 1)})"
        joint = self.random.choice(("and", "or"))
        return f"({self.condition(depth - 1)} {joint} {self.condition(depth - 1)})"

    def block(self, depth: int, in_loop: bool) -> list[str]:
        lines = []
        for _ in range(self.random.randint(1, 3)):
            lines += self.statement(depth, in_loop)
        return lines

    def statement(self, depth: int, in_loop: bool) -> list[str]:
        pick, inner = self.random.random(), depth > 0
        if inner and pick < 0.3:
            lines = [f"if {self.condition()}:", *indent(self.block(depth - 1, in_loop))]
            if self.random.random() < 0.3:
                lines += [f"elif {self.condition()}:", *indent(self.block(depth - 1, in_loop))]
            if self.random.random() < 0.5:
                lines += ["else:", *indent(self.block(depth - 1, in_loop))]
            return lines
        if inner and pick < 0.5:
            self.loops += 1
            bounds = self.random.choice(("n", "3", "1, 7, 2", "5, -1, -2", "a % 4", "n, 0, -1", "", ""))
            counter, new = self.random.choice((f"i{self.loops}", self.random.choice(VARIABLES))), f"new{self.loops}"
            # Loops over tuples are unrolled.
            lines = [f"for {counter} in {f'range({bounds})' if bounds else '(2, -1, 4)'}:"]
            lines += indent([f"{self.random.choice(VARIABLES)} += {counter}"]) if self.random.random() < 0.5 else []
            lines += indent([f"{new} = {self.expression(1)}", *self.block(depth - 1, True)])
            lines += ["else:", *indent(self.block(0, in_loop))] if self.random.random() < 0.2 else []
            if "n" in bounds or "a" in bounds:
                return lines
            # The loop has iterations, so what all of them assign is known after it.
            left = any(word in line for word in ("break", "continue", "return") for line in lines)
            return [*lines, f"{self.random.choice(VARIABLES)} ^= {counter if left else new}"]
        if inner and pick < 0.6:
            self.loops += 1
            count = f"w{self.loops}"
            lines = [f"{count} = {self.random.randint(1, 5)}", f"while {count} > 0 and {self.condition(1)}:"]
            return [*lines, *indent([f"{count} -= 1", *self.block(depth - 1, True)])]
        if in_loop and pick < 0.7:
            first, second = self.random.sample(("break", "continue"), 2)
            other = ["else:", *indent([second])] if self.random.random() < 0.2 else []
            return [f"if {self.condition()}:", *indent([first]), *other]
        if pick < 0.73:
            return [
                f"if {self.condition()}:",
                *indent([f"return {self.expression()}, {self.expression()}, {self.tile()}"]),
            ]
        if pick < 0.76:
            return [f"{self.random.choice(TILES)} = {self.tile()}"]
        if pick < 0.79:
            return [f"add({self.random.choice(('held, 0', 'held, 1', 'same, 1'))}, {self.expression(1)})"]
        if pick < 0.85:
            return [f"{self.random.choice(VARIABLES)} {self.random.choice(('+', '-', '^'))}= {self.expression(1)}"]
        if pick < 0.9:
            return [f"{', '.join(self.random.sample(VARIABLES, 2))} = {self.expression()}, {self.expression()}"]
        return [f"{self.random.choice(VARIABLES)} = {self.expression()}"]

    def text(self, statements: int = 4) -> str:
        body = ["a, b, c = n % 5, 3, n - 1", "held, named = [n, 2], {'x': 1}", "same, tiles = held, [t + 1]"]
        body += ["def add(to, place, x):", "    to[place] += x"]
        for _ in range(statements):
            body += self.statement(3, False)
            body += [f"{v} = {v} % 1000" for v in VARIABLES]
            body += [f"{self.random.choice(TILES)} = {self.tile()}"]
        body += ["return a + same[0], b + c + same[1] + named['x'], t + u * 3 + tiles[0]"]
        return "\n".join(["def program(n, t, u):", *indent(body)]) + "\n"


def indent(lines):
    return [f"    {line}" for line in lines]


def function_of(text, name):
    """A function of a text, which tracebacks and `inspect` know."""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    found = {}
    exec(compile(text, name, "exec"), found)
    return found["program"]


def kernel_of(program, engine):
    @xegpu_py.jit(engine=engine)
    def kernel(inputs, outputs, vectors):
        i, at = xl.program_id(0), xl.arange(LENGTH)
        first, second, third = program(inputs[i], at.to(xl.int64), (at * at % 11).to(xl.int64))
        outputs[i, 0] = first
        outputs[i, 1] = second
        xl.store(vectors + i * LENGTH + at, third)

    return kernel


LENGTH = 8
INPUTS = np.array([0, 1, 2, 3, 5, 8, -1, -6], np.int64)


def check(seed, engine):
    text = Program(seed).text(2 if engine == "both" else 4)
    program = function_of(text, f"<program {seed}>")
    outputs, vectors = np.zeros((len(INPUTS), 2), np.int64), np.zeros((len(INPUTS), LENGTH), np.int64)
    at = np.arange(LENGTH)
    program.__globals__["xl"] = np
    expected = [program(int(n), at, at * at % 11) for n in INPUTS]
    program.__globals__["xl"] = xl
    kernel_of(program, engine)[len(INPUTS)](INPUTS, outputs, vectors)
    np.testing.assert_array_equal(outputs, np.array([e[:2] for e in expected]), text)
    np.testing.assert_array_equal(vectors, np.array([e[2] for e in expected]), text)


@pytest.mark.parametrize("seed", range(examples(24)))
def test_programs_do_what_python_does(seed):
    check(seed, "reference")


@pytest.mark.parametrize("seed", range(200, 200 + examples(8)))
def test_python_runs_programs_as_they_are_compiled(seed):
    check(seed, "eager")


@pytest.mark.parametrize("seed", range(100, 100 + examples(6)))
def test_lowered_programs_do_what_python_does(seed):
    check(seed, "both")


def used_in_a_branch(A, OUT, n):
    product = A.tile((16, 16), at=(0, 0)).load() @ A.tile((16, 16), at=(0, 0)).load()
    total = 0.0
    if n > 3:
        total = product.sum()
    OUT.tile((16, 16), at=(0, 0)).store(product * 1.0 + total)


def made_in_a_branch(A, OUT, n):
    if n > 3:
        product = A.tile((16, 16), at=(0, 0)).load() @ A.tile((16, 16), at=(0, 0)).load()
        pair = product, 1
    else:
        product = xl.zeros((16, 16))
        pair = product, 2
    OUT.tile((16, 16), at=(0, 0)).store(product * 1.0 + pair[0])


def made_after_a_return(A, OUT, n):
    if n > 100:
        return
    product = A.tile((16, 16), at=(0, 0)).load() @ A.tile((16, 16), at=(0, 0)).load()
    OUT.tile((16, 16), at=(0, 0)).store(product + A.tile((16, 16), at=(0, 0)).load())


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (used_in_a_branch, lambda a, p: p + p.sum()),
        (made_in_a_branch, lambda a, p: 2 * p),
        (made_after_a_return, lambda a, p: p + a),
    ],
)
def test_products_are_computed_where_they_are_written(kernel, expected):
    a = np.random.default_rng(0).integers(-2, 3, (16, 16)).astype(np.float16)
    out = np.zeros((16, 16), np.float32)
    xegpu_py.jit(kernel, engine="reference")(a, out, 5)
    wide = a.astype(np.float32)
    np.testing.assert_array_equal(out, expected(wide, wide @ wide))


def counters(X, Y, n):
    i, j, k = 100, n, xl.arange(16)
    for i in range(n):
        if i == 3:
            break
    for j in range(j):  # noqa: B020
        Y[j + 1] = j
    for k in range(0, n, 2):
        Y[k + 8] += k
    Y[0] = i
    Y[n + 1] = -j


@pytest.mark.parametrize("engine", ["eager", "both"])
@pytest.mark.parametrize("n", [0, 2, 5])
def test_counters_of_loops_keep_their_last_number(engine, n):
    """They keep their earlier value if the loop does not run."""
    y = np.zeros(16, np.int64)
    xegpu_py.jit(counters, engine=engine)(y, y, n)
    expected = np.zeros(16, np.int64)
    expected[0] = 100 if n == 0 else min(n - 1, 3)
    expected[1 : n + 1], expected[8 : 8 + n : 2] = np.arange(n), np.arange(0, n, 2)
    expected[n + 1] = 0 if n == 0 else 1 - n
    np.testing.assert_array_equal(y, expected)


def test_what_a_loop_assigns_is_known_after_it():
    """If it has iterations for certain: tuples and lists too, and the counter of a loop that `break` may leave."""

    def kernel(Y, n):
        for i in range(2, 8, 3):
            for j in range(4):
                inner = j * n
            pair, parts = (inner, xl.arange(2) + j), [i, inner + j]
        for k in range(9):
            if k * k > n:
                break
        xl.store(Y + xl.arange(2), pair[1])
        Y[2], Y[3], Y[4], Y[5] = parts[0], parts[1], i + j, k

    for engine in ("eager", "both"):
        y = np.zeros(6, np.int32)
        xegpu_py.jit(kernel, engine=engine)(y, 7)
        assert y.tolist() == [3, 4, 5, 24, 8, 3]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("for i in range(n):\n        x = i", "assigned only in a loop, which may not run at all"),
        ("for i in range(0):\n        x = i", "assigned only in a loop, which may not run at all"),
        ("while n > 0:\n        x = n\n        n -= 1", "assigned only in a loop, which may not run at all"),
        (
            "for i in range(9):\n        if i > n: break\n        x = i",
            "assigned only in a loop, which may be left before",
        ),
        ("for i in range(9):\n        if i > n: continue\n        x = i", "assigned only in a loop, which may be left"),
        ("for i in range(9):\n        if i > n: x = i", "assigned in one branch only"),
        ("for i in range(9):\n        x = 'text'", "is 'text' in a loop, which does not carry it"),
    ],
)
def test_what_a_loop_may_not_assign_is_unknown_after_it(body, why):
    text = f"def program(Y, n):\n    {body}\n    Y[0] = x\n"
    with pytest.raises(xegpu_py.DiagnosticError, match=why):
        xegpu_py.jit(function_of(text, f"<{body}>")).bind(np.zeros(16, np.float32), 5)[0].module.verify()


STATIC = {
    "function": ("f = abs", "Y[i] = f(i)\n        f = min", "is <built-in function abs> before the loop and"),
    "user's function": (
        "f = indent",
        "Y[0] = 1 if f is indent else 2\n        f = function_of",
        "is the function indent",
    ),
    "text": ("f = 'a'", "Y[i] = len(f)\n        f = 'bc'", "is 'a' before the loop and 'bc' after an iteration"),
    "tuple": (
        "f = 1, 'a'",
        "Y[i] = len(f[1])\n        f = i, 'bc'",
        r"is \(.*'a'\) before the loop and \(.*'bc'\) after",
    ),
    "array": ("f = X", "Y[i] = f[0]\n        f = Y", "is <array of float32.*> before the loop and <array of float32"),
    "pointers": (
        "f = X + 1",
        "Y[i] = xl.load(f).sum()\n        f = Y + i",
        "is <pointers to float32.*> before the loop",
    ),
    "tile": ("f = X.tile(8, at=0)", "f.load()\n        f = X.tile(8, at=i)", "is <tile of .*> before the loop"),
    "after": ("f = 'a'", "f = 'bc'\n    Y[0] = len(f)", "is 'a' before the loop and 'bc' after an iteration"),
}
"""A statement before a loop, the statements in it, and the error: what these kernels carry is no value."""


@pytest.mark.parametrize("name", STATIC)
def test_loops_carry_values_only(name):
    """They took the object from before the loop in all iterations."""
    before, inside, message = STATIC[name]
    text = f"def program(X, Y, n):\n    {before}\n    for i in range(n):\n        {inside}\n"
    function = function_of(text, f"<static {name}>")
    function.__globals__.update(xl=xl, indent=indent, function_of=function_of)
    with pytest.raises(xegpu_py.DiagnosticError, match=f"'f' {message}"):
        xegpu_py.jit(function).bind(np.zeros(16, np.float32), np.zeros(16, np.float32), 5)[0].module.verify()


class Pair(NamedTuple):
    low: object
    high: object


@pytest.mark.parametrize("engine", ["eager", "both"])
def test_loops_carry_tuples_in_the_types_before_them(engine):
    """A number that an iteration assigns has the type of the value that it replaces."""

    @xegpu_py.jit(engine=engine)
    def kernel(X, Y, n):
        x = X.tile(16, at=0).load()
        held, pair = (x, (x * 0, n)), Pair(x, n)
        for i in range(n):
            held = (held[0] + x, (x + i, i))
            pair = Pair(pair.low + held[0], pair.high + 1)
        Y.tile((1, 16), at=(0, 0)).store(held[0].expand_dims(0))
        Y.tile((1, 16), at=(1, 0)).store((held[1][0] + held[1][1]).expand_dims(0))
        Y.tile((1, 16), at=(2, 0)).store((pair.low + pair.high).expand_dims(0))

    x, y = np.arange(16, dtype=np.float32), np.zeros((3, 16), np.float32)
    kernel[1](x, y, 3)
    assert (y[0] == 4 * x).all() and (y[1] == x + 2 + 2).all()
    assert (y[2] == x + 2 * x + 3 * x + 4 * x + 6).all()


@pytest.mark.parametrize("engine", ["eager", "both"])
def test_loops_assign_other_objects_anew(engine):
    """Loops assign them in each iteration before they use them."""

    @xegpu_py.jit(engine=engine)
    def kernel(X, Y, n):
        tile, name, pointers = X.tile(8, at=0), "x", X + 0
        total, same = tile.load(), name
        for i in range(n):
            name = "abc"
            tile, pointers = X.tile(8, at=i * 8), Y + i
            total += tile.load() * len(name)
            xl.store(pointers, len(same))
        Y.tile(8, at=8).store(total)

    x, y = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    kernel(x, y, 2)
    np.testing.assert_array_equal(y, np.concatenate([[1, 1], np.zeros(6), x[:8] + 3 * (x[:8] + x[8:])]))


@dataclasses.dataclass
class Walker:
    tile: object

    def step(self):
        value = self.tile.load()
        self.tile.advance(0, 16)
        return value


def steps_of(tile):
    return lambda: Walker(tile).step()


WALKS = {
    "closure": steps_of,
    "attribute": lambda tile: Walker(tile).step,
    "partial": lambda tile: functools.partial(Walker.step, Walker(tile)),
    "dictionary": lambda tile: lambda held={"tile": [tile]}: Walker(held["tile"][0]).step(),
}


@pytest.mark.parametrize("name", WALKS)
@pytest.mark.parametrize("engine", ["eager", "both"])
def test_loops_carry_tiles_wherever_they_are_held(name, engine):
    """Tiles in variables of functions that have returned, and in objects. Their moves used to be lost silently."""

    @xegpu_py.jit(engine=engine)
    def kernel(X, Y, n, steps: xegpu_py.Constexpr):
        step, total = steps(X.tile((1, 16), at=(0, 0))), xl.zeros((1, 16))
        for i in range(n):
            total += step() if i > 0 else step() * 2
        Y.tile((1, 16), at=(0, 0)).store(total + step())

    x, y = np.arange(64, dtype=np.float32).reshape(1, 64), np.zeros((1, 16), np.float32)
    kernel(x, y, 3, steps=WALKS[name])
    np.testing.assert_array_equal(y, x.reshape(4, 16).sum(0, keepdims=True) + x[:, :16])


def test_a_counter_that_was_something_else():
    def kernel(X, n):
        k = xl.arange(16)
        for k in range(n):
            X[k] = k
        X[k] = 0

    with pytest.raises(xegpu_py.DiagnosticError, match=r"'k' is index\[16\] before the loop, and its counter"):
        xegpu_py.jit(kernel).compile(np.zeros(16, np.float32), 5)


@pytest.mark.parametrize("engine", ["eager", "both"])
def test_membership(engine):
    @xegpu_py.jit(engine=engine)
    def kernel(Y, n):
        i = xl.arange(16)
        xl.store(Y + i, 5, mask=(i in (9, n)) & (i not in [11]))
        Y[0] = 1 if n in (1, 11) else 2
        Y[1] = n not in (4, n + 1)

    y = np.zeros(16, np.int32)
    kernel(y, 11)
    assert y.tolist() == [1, 1, *[0] * 7, 5, *[0] * 6]


@pytest.mark.parametrize("engine", ["eager", "both"])
def test_lists_change_where_they_are_made(engine):
    @xegpu_py.jit(engine=engine)
    def kernel(X, Y, n):
        total, powers = 0.0, []
        for i in range(n):
            parts = [X[i]]
            for k in xl.static_range(2):
                parts.append(X[i] * (k + 1))
            more = list(parts)
            more.extend(parts)
            total += sum(more)
        powers.append(pow(total, 2))
        Y[0], Y[1] = total, powers.pop()

    y = np.zeros(2, np.float32)
    kernel(np.arange(8, dtype=np.float32), y, 4)
    assert y.tolist() == [48, 48 * 48]


@pytest.mark.parametrize(
    ("before", "inside", "what"),
    [
        ("[]", "found.append(X[i])", r"list.append\(\)"),
        ("{}", "found['a'] = i", "an assignment of an element"),
        ("[0]", "found[0:1] = [i]", "an assignment of an element"),
        ("[0]", "found += [i]", "an augmented assignment"),
        ("{}", "found |= {'a': i}", "an augmented assignment"),
        ("iter([1, 2])", "X[i] = next(found)", "an iterator"),
        ("zip([1], [2])", "X[i] = sum(a * b for a, b in found)", "an iterator"),
        ("reversed([1, 2])", "a, b = found", "an iterator"),
    ],
)
def test_objects_that_a_loop_would_change_once(before, inside, what):
    """The change would be made once, at compile time, however often the loop runs."""
    text = f"def program(X, n):\n    found = {before}\n    for i in range(n):\n        {inside}\n"
    with pytest.raises(xegpu_py.DiagnosticError, match=f"{what} acts at compile time, however often this loop"):
        xegpu_py.jit(function_of(text, f"<once {inside}>")).bind(np.zeros(16, np.float32), 5)[0].module.verify()


@pytest.mark.parametrize("engine", ["eager", "both"])
def test_elements_that_loops_assign_are_carried(engine):
    def add(held, key, value):
        held[key] += value

    @xegpu_py.jit(engine=engine)
    def kernel(X, Y, n):
        i = xl.arange(16)
        sums, counts = [xl.zeros(16), xl.zeros(16)], {"turns": 0, "half": 0.0}
        both = (sums, n)
        for k in range(n):
            sums[0] += xl.load(X + i + 16 * k)
            add(sums, 1, k)
            counts["turns"] += 1
            if k % 2 == 1:
                counts["half"] += 0.5
                while counts["half"] > 1:
                    counts["half"] -= 1
                    both[0][1] *= 2
        xl.store(Y + i, sums[0])
        xl.store(Y + 16 + i, sums[1] + counts["turns"] * 100 + counts["half"])

    x = np.arange(7 * 16, dtype=np.float32)
    for n in (0, 2, 7):
        y = np.ones((2, 16), np.float32)
        kernel(x, y, n)
        second, half = 0.0, 0.0
        for k in range(n):
            second += k
            half += 0.5 * (k % 2)
            if half > 1:
                half, second = half - 1, second * 2
        np.testing.assert_array_equal(y, [x.reshape(7, 16)[:n].sum(0), np.full(16, second + n * 100 + half)])


@pytest.mark.parametrize(
    ("before", "inside", "message"),
    [
        ("[0, 1]", "held[0] += 0.5", None),
        ("[0, xl.zeros(4)]", "held[1] = xl.zeros(8)", r"'held\[1\]' is float32\[4\] before the loop and float32\[8\] "),
        ("[None]", "held[0] = i", r"'held\[0\]' is None before the loop and index after"),
        ("[0.0, 1]", "if i > 2:\n            held[0] = i > 3", r"'held\[0\]' is bool in one branch and float32 in"),
        ("[0]", "operator.setitem(held, slice(0, 1), [])", "'held' has other elements after the loop"),
    ],
)
def test_elements_keep_their_types(before, inside, message):
    text = f"def program(X, n):\n    held = {before}\n    for i in range(n):\n        {inside}\n"
    function = function_of(text, f"<kept {inside}>")
    function.__globals__.update(xl=xl, operator=operator)
    made = xegpu_py.jit(function).bind(np.zeros(16, np.float32), 5)[0]
    expected = pytest.raises(xegpu_py.DiagnosticError, match=message) if message else contextlib.nullcontext()
    with expected:
        made.module.verify()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("    if n > 3:\n        return n", "returns a value in some cases only"),
        ("    if n > 3:\n        return\n    return n", "returns index in one case and None in another"),
        ("    for i in range(n):\n        if i == 2:\n            return i", "returns a value in some cases only"),
        ("    while True:\n        n += 1\n        if n > 9:\n            return n", None),
        (
            "    while True:\n        n += 1\n        if n > 9:\n            break\n        return n",
            "in some cases only",
        ),
        ("    if n > 3:\n        return n\n    else:\n        return 1", None),
        ("    for i in (1, 2):\n        if n > i:\n            return n\n    return 0", None),
    ],
)
def test_functions_return_a_value_in_all_cases(body, message):
    program = function_of(f"def program(n):\n{body}\n", f"<returns {body}>")

    @xegpu_py.jit
    def kernel(Y, n):
        Y[0] = program(xl.program_id(0) + n)

    made = kernel.bind(np.zeros(1, np.int32), 5)[0]
    expected = pytest.raises(xegpu_py.DiagnosticError, match=message) if message else contextlib.nullcontext()
    with expected:
        made.module.verify()


@pytest.mark.parametrize("engine", ["eager", "both"])
def test_augmented_assignments_of_lists_are_seen_by_all_names(engine):
    @xegpu_py.jit(engine=engine)
    def kernel(Y, n):
        parts, named = [1], {"a": 1}
        same, both = parts, named
        parts += [2, 3]
        named |= {"b": 2}
        parts *= 2
        for i in range(n):
            Y[i] = sum(a * b for a, b in zip(same, reversed([4, 5]))) + len(both)
        Y[3] = len(same)
        Y[4] = 0.0 if n > 2 else -0.0
        Y[5] = -0.0 if n > 2 else 0.0

    y = np.ones(6, np.float32)
    kernel(y, 3)
    assert y.tolist() == [15, 15, 15, 6, 0, 0] and np.signbit(y).tolist() == [False] * 5 + [True]


@pytest.mark.parametrize("engine", ["eager", "both"])
def test_elements_of_lists_and_dictionaries(engine):
    @xegpu_py.jit(engine=engine)
    def kernel(X, Y, n):
        parts, named = [X[0], 2, 3], {"a": X[1], **{k: k * 2 for k in ("b", "c")}}
        parts[1] += X[2]
        named["a"] *= 4
        for i in range(n):
            inner = [0, X[i]]
            inner[0] = inner[1] * 2
            Y[i] = inner[0] + parts[-2]
        Y[n] = named["a"] + len(named["b"])

    y = np.zeros(4, np.float32)
    kernel(np.arange(1, 9, dtype=np.float32), y, 3)
    assert y.tolist() == [7, 9, 11, 10]


@pytest.mark.parametrize("engine", ["eager", "both"])
def test_functions_made_in_comprehensions_see_its_last_item(engine):
    @xegpu_py.jit(engine=engine)
    def kernel(X, Y):
        added = [lambda x: x + i for i in range(3)]  # noqa: B023
        fixed = [[lambda x, j=j: x * j + k for j in range(2)][1] for k in (5, 7)]  # noqa: B023
        for f in (*added, *fixed):
            X[0] = f(X[0])
        Y[0] = X[0]

    y = np.zeros(1, np.float32)
    kernel(np.ones(2, np.float32), y)
    assert y.tolist() == [21]


@pytest.mark.parametrize("engine", ["eager", "both"])
def test_and_and_or_give_operands(engine):
    """As in Python; in a condition their types may differ."""

    @xegpu_py.jit(engine=engine)
    def kernel(Y, n, x: xl.float32):
        Y[0], Y[1], Y[2] = n or 5, n and n + 3, x or 2.5
        Y[3] = 1 if n and (x > 1 or n > 2) else 2
        Y[4] = (n > 2 and x < 1) or n == 0
        if not (x or n):
            Y[5] = 9

    for n, x in ((0, 0.0), (3, 0.5), (3, 0.0), (-2, 1.5), (2, 0.0)):
        y, expected = np.zeros(6, np.float32), np.zeros(6, np.float32)
        kernel(y, n, x)
        expected[:3] = n or 5, n and n + 3, x or 2.5
        expected[3:] = 1 if n and (x > 1 or n > 2) else 2, (n > 2 and x < 1) or n == 0, 9 if not (x or n) else 0
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("engine", ["eager", "both"])
def test_recursion_ends_at_compile_time(engine):
    @xegpu_py.jit(engine=engine)
    def kernel(X, DEPTH: xegpu_py.Constexpr):
        X[0] = nested(X[0], levels=DEPTH)

    x = np.ones(1, np.float32)
    kernel(x, DEPTH=4)
    assert x.tolist() == [20]


def nested(x, *more, levels):
    return x if levels == 0 else nested(x * 2, *more, levels=levels - 1) + 1


def without_end(x):
    return x if x < 1 else without_end(x - 1)


def test_recursion_that_ends_only_at_run_time():
    def kernel(X, n):
        X[0] = without_end(n)

    with pytest.raises(xegpu_py.DiagnosticError, match="a recursion must end at compile time") as e:
        xegpu_py.jit(kernel).compile(np.zeros(16, np.float32), 5)
    (error,) = e.value.diagnostics
    lines = [note.position.line for note in error.notes if note.message == "called from here"]
    # The innermost and the outermost calls, the last of which is that of the kernel.
    inner, outer = (function.__code__.co_firstlineno + 1 for function in (without_end, kernel))
    assert lines == [inner] * (MOST_SHOWN - 1) + [outer]


def wrong(x):
    return x.foo


def test_mistakes_in_functions_say_where_they_were_called():
    def kernel(X):
        X[0] = wrong(X[0])

    with pytest.raises(xegpu_py.DiagnosticError, match="has no attribute 'foo'") as e:
        xegpu_py.jit(kernel).compile(np.zeros(16, np.float32))
    (error,) = e.value.diagnostics
    assert [note.message for note in error.notes] == ["called from here"]
    assert [p.line for p in (error.position, error.notes[0].position)] == [
        function.__code__.co_firstlineno + 1 for function in (wrong, kernel)
    ]


def through(x):
    return wrong(x)


def test_notes_name_each_call_from_the_innermost_on():
    def kernel(X):
        X[0] = through(X[0])

    with pytest.raises(xegpu_py.DiagnosticError, match="has no attribute 'foo'") as e:
        xegpu_py.jit(kernel).compile(np.zeros(16, np.float32))
    (error,) = e.value.diagnostics
    assert [p.line for p in (error.position, *(note.position for note in error.notes))] == [
        function.__code__.co_firstlineno + 1 for function in (wrong, through, kernel)
    ]


def test_sums_of_lists():
    def kernel(X, Y):
        parts = [X[j] * 2 for j in xl.static_range(4)]
        Y[0] = sum(parts)
        Y[1] = sum(parts[1:], X[7])

    for engine in ("eager", "both"):
        y = np.zeros(2, np.float32)
        xegpu_py.jit(kernel, engine=engine)(np.arange(8, dtype=np.float32), y)
        assert y.tolist() == [12, 19]
    with pytest.raises(xegpu_py.DiagnosticError, match="cannot be added up; see its method sum"):
        xegpu_py.jit(sum_of_a_line)(np.zeros(16, np.float32))


def sum_of_a_line(X):
    X[0] = sum(xl.load(X + xl.arange(0, 16)))


@pytest.mark.parametrize("engine", ["eager", "both"])
@pytest.mark.parametrize("n", [2, 5])
def test_loops_read_by_pointers_that_a_branch_has_chosen(engine, n):
    def chosen(X, Y, Z, n):
        f = X + 1
        if n > 2:
            f = Y + 1
        for i in range(n):
            Z[i] = xl.load(f + i).sum()

    x, z = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    xegpu_py.jit(chosen, engine=engine)[1](x, x * 10, z, n)
    assert (z[:n] == (x * 10 if n > 2 else x)[1 : n + 1]).all() and not z[n:].any()


@xegpu_py.jit(engine="interpreter")
def numbers_for_values(X, Y, n):
    at = xl.arange(0, 16)
    x = xl.load(X + at)
    if n > 2:
        first, second = x, 3
    else:
        first, second = 7, x * 2
    third = x if n > 2 else 0.5
    fourth = 5 if n > 2 else x
    for row, value in ((0, first), (16, second), (32, third), (48, fourth)):
        xl.store(Y + row + at, value)


@pytest.mark.parametrize("n", [2, 3])
def test_a_number_in_one_branch_is_every_element_of_the_value_in_the_other(n):
    x, y = np.arange(16, dtype=np.float32), np.zeros((4, 16), np.float32)
    numbers_for_values(x, y, n)
    expected = (x, 3, x, 5) if n > 2 else (7, x * 2, 0.5, x)
    np.testing.assert_array_equal(y, np.stack(np.broadcast_arrays(*expected, x)[:4]))


def test_lists_of_one_name_in_nested_loops_stay_apart():
    """Both have the name `parts`, and elements that loops carry."""

    def doubled(v, n):
        parts = [v, v + 1]
        for _ in range(n):
            parts[0] = parts[0] + v
            parts[1] = parts[1] + parts[0]
        return parts[0] + parts[1]

    @xegpu_py.jit
    def kernel(X, Y, n, N: xegpu_py.Constexpr):
        i = xl.arange(0, N)
        x = xl.load(X + i)
        parts = [x, x * 2]
        for _ in range(n):
            parts[0] = parts[0] + doubled(x, n)
            parts[1] = parts[1] + parts[0]
        xl.store(Y + i, parts[0] + parts[1])

    x, y = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    kernel(x, y, 3, N=16)
    first, second = x.copy(), 2 * x
    for _ in range(3):
        first = first + doubled(x, 3)
        second = second + first
    np.testing.assert_array_equal(y, first + second)


@pytest.mark.parametrize("engine", ["eager", "both"])
def test_assignments_in_the_older_spelling(engine):
    @xegpu_py.jit(engine=engine)
    def kernel(X, Y, n, N: xegpu_py.Constexpr):
        i = xl.arange(0, N)
        x = xl.load(X + i)
        parts = [x, x * 2]
        for _ in range(n):
            x.assign(x + 1)
            parts[0].assign(parts[0] + x)
        x.assign(-3)
        xl.store(Y + i, parts[0] - x)

    x, y = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    kernel(x, y, 3, N=16)
    np.testing.assert_array_equal(y, x + (x + 1) + (x + 2) + (x + 3) + 3)


class Holder:
    """An object with a method of the name of the older assignment."""

    def __init__(self):
        self.numbers = []

    def assign(self, number, *more, doubled=False):
        self.numbers.extend([number * (1 + doubled), *more])
        return 5


@pytest.mark.parametrize("engine", ["eager", "both"])
def test_the_place_of_an_assignment_is_computed_once(engine):
    @xegpu_py.jit(engine=engine)
    def kernel(X, Y, N: xegpu_py.Constexpr):
        i = xl.arange(0, N)
        parts, places = {n: xl.load(X + i) for n in range(3)}, [2, 1, 0]
        parts[places.pop()].assign(7)
        parts[places.pop()] += 5
        xl.store(Y + i, parts[0] * 10000 + parts[1] * 100 + parts[2])

    x, y = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    kernel(x, y, N=16)
    np.testing.assert_array_equal(y, 70000 + (x + 5) * 100 + x)


@pytest.mark.parametrize("engine", ["eager", "both"])
def test_methods_named_assign_are_called(engine):
    @xegpu_py.jit(engine=engine)
    def kernel(X, Y, N: xegpu_py.Constexpr):
        i = xl.arange(0, N)
        held = Holder()
        held.assign(xl.load(X + i))
        held.assign(held.numbers[0] + 1)
        held.numbers[0].assign(held.numbers[1] * 2)
        holders = [held]
        holders[0].assign(i, i + 1)
        holders[0].assign(i, doubled=True)
        xl.store(Y + i, held.numbers[0] + held.numbers[3] + held.numbers[4])

    x, y = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    kernel(x, y, N=16)
    np.testing.assert_array_equal(y, 2 * (x + 1) + (x + 1) + 2 * x)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = 1", False),
        ("break", True),
        ("return 1", True),
        ("if c:\n  x = 1\n  break", True),
        ("if c:\n  x = 1\nelse:\n  return", True),
        # A break of an inner loop, but not one of its else clause, and a return of any depth.
        ("for i in y:\n  break", False),
        ("for i in y:\n  x = 1\n  return", True),
        ("for i in y:\n  return\n  x = 1", True),
        ("while c:\n  x = 1\n  if d:\n    return", True),
        ("while c:\n  x = 1\nelse:\n  x = 2\n  break", True),
        ("for i in y:\n  x = 1\nelse:\n  x = 2", False),
        ("for i in y:\n  while c:\n    break\n  else:\n    break", False),
        # Functions have their own statements.
        ("def f():\n  return 1", False),
        ("f = lambda: 1", False),
        ("continue", False),
    ],
)
def test_statements_that_leave_a_loop(body, expected):
    assert escapes(ast.parse(body).body) == expected
    assert escapes(ast.parse(body).body, ast.Continue) == (body == "continue")


def test_names_of_containers_are_those_of_their_block():
    """Another container may be where one was that a block made."""
    containers, made = Containers(), ([1], [2])
    for holders, names in (("", ["the list", "the list 2"]), ("ab", ["a", "b"])):
        scopes = [SimpleNamespace(variables=dict(zip(holders, made)))]
        with containers.inside():
            for container in made:
                containers.note(container)
            for _ in range(2):
                assert [containers.name(container, scopes) for container in made] == names
