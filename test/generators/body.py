"""The construction of a kernel's text: its lines, its arguments, and the known properties of its values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from types import SimpleNamespace
from typing import Any

from xegpu_py.dialects.xegpu import CacheHint
from xegpu_py.dialects.xegpu.types import READ_HINTS, WRITE_HINTS
from xegpu_py.ir.builtin import bit_width, is_float, signedness, vector_text
from xegpu_py.passes.analysis.target_messages import caches_of
from xegpu_py.visa.instructions import INSTRUCTIONS

from . import ops
from .ops import NARROW, NUMBERS, Conversion, Op

_MANTISSA = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53, "f8E5M2": 3, "tf32": 11, "f8E4M3FN": 4}


def most_exact(element: str) -> int:
    """The magnitude up to which an element represents every integer."""
    if is_float(element):
        return 1 << _MANTISSA[element]
    if element == "index":
        return (1 << 31) - 1
    return (1 << (bit_width(element) - (signedness(element) != "u"))) - 1


def fitting(number: int, element: str) -> int:
    """A number that an element of less than a byte represents, by its lowest bits."""
    if element not in ("i1", *NARROW):
        return number
    half = 1 << (bit_width(element) - 1)
    return number & 1 if half == 1 else (number + half) % (2 * half) - half


def filled(count: int, element: str) -> int:
    """At least so many elements that fill bytes."""
    each = 8 // bit_width(element) if element in NARROW else 1
    return -(-count // each) * each


def twin(element: str) -> str:
    """A signless integer of an element's width."""
    return f"i{bit_width(element)}"


def dtype_of(element: str) -> str:
    """The names of an element's arrays in words of xegpu-run."""
    return {"tf32": "f32", "index": "i64"}.get(element, element.removeprefix("s"))


@dataclass(frozen=True)
class Value:
    """An SSA value.

    Attributes:
        shape: the shape of a vector; () for a scalar.
        exact: a bound of the magnitudes if all elements are integers. Sums below `most_exact` are then not rounded, in
            any order.
    """

    name: str
    shape: tuple[int, ...]
    element: str
    exact: int | None = None

    @cached_property
    def type(self) -> str:
        """MLIR's type."""
        return vector_text(self.shape, self.element) if self.shape else self.element

    @property
    def size(self) -> int:
        """How many elements there are."""
        return math.prod(self.shape)

    def typed(self, element: str) -> str:
        """The type of a vector of this shape and of other elements."""
        return vector_text(self.shape, element) if self.shape else element


class Body:
    """A kernel's body under construction.

    Attributes:
        only: the element of a tour, a program that goes through all ops on memory; None for others.
        plain_hints: the probability that an op has no cache hints.
        values: the values that later ops may use.
        arguments: (name, type, word of xegpu-run) of each kernel argument.
        attributions: buffers in shared local memory.
        value: the class of values, whose types it writes.
    """

    special_floats = True
    """Whether constants may be floats at which rules change, such as NaN."""

    def __init__(self, r: Random, target: str = "pvcxt") -> None:
        self.r, self.target = r, target
        self.lines: list[str] = []
        self.values: list[Value] = []
        self.arguments: list[tuple[str, str, str]] = []
        self.attributions: list[tuple[str, str]] = []
        self.depth, self.names = 2, 0
        self.only: str | None = None
        self.value: type[Value] = Value
        self.plain_hints = 0.6

    def name(self) -> str:
        """A new name."""
        self.names += 1
        return f"%v{self.names}"

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append("  " * self.depth + text)

    def op(self, text: str, shape: tuple[int, ...], element: str, exact: int | None = None) -> Value:
        """Write an op of one result."""
        exact = exact if exact is None or exact <= most_exact(element) else None
        found = self.value(self.name(), shape, element, exact)
        self.line(f"{found.name} = {text}")
        return found

    def allows(self, op: Op, x: Value) -> bool:
        """Whether this kernel may have an op of the table on a value."""
        return op.family not in ops.INDEX and not op.text.startswith("tt.")

    def apply(self, op: Op, operands: dict[str, Value]) -> Value:
        """Write an op of the table. Of two results the first is kept as another value."""
        x = next(iter(operands.values()), Value("", (), "index"))
        names = {place: value.name for place, value in operands.items()}
        if "integer" in operands:
            names["integer_type"] = operands["integer"].type
        text = op.text.format(**names, type=x.type, truths=x.typed("i1"))
        bounds = [v.exact for v in operands.values()]
        exact = None if op.bound is None or None in bounds else op.bound(*bounds)
        if not op.second:
            return self.op(text, x.shape, op.result or x.element, exact)
        first, second = (
            self.value(self.name(), x.shape, x.element),
            self.value(self.name(), x.shape, op.second.replace("x", x.element)),
        )
        self.line(f"{first.name}, {second.name} = {text}")
        self.keep(first)
        if second.element != "i1":
            return second
        return self.op(f"arith.extui {second.name} : {second.type} to {x.type}", x.shape, x.element, 1)

    def targets(self, element: str) -> list[str]:
        """The elements into which values of one are converted."""
        return [e for e in NUMBERS if e != element and ops.conversions(element, e)]

    def conversion(self, conversion: Conversion, x: Value, to: str, exact: int | None) -> Value:
        """Write a conversion."""
        return self.op(f"arith.{conversion.name} {x.name} : {x.type} to {x.typed(to)}", x.shape, to, exact)

    def selected(self, mask: Value, x: Value, y: Value) -> Value:
        """Write a choice of one of two values, element by element."""
        exact = None if x.exact is None or y.exact is None else max(x.exact, y.exact)
        text = f"arith.select {mask.name}, {x.name}, {y.name} : {mask.type}, {x.type}"
        return self.op(text, x.shape, x.element, exact)

    def bitcast(self, x: Value) -> Value:
        """The same bits in another element of the same width."""
        to = self.r.choice([e for e in NUMBERS if e != x.element and bit_width(e) == bit_width(x.element)])
        return self.op(f"arith.bitcast {x.name} : {x.type} to {x.typed(to)}", x.shape, to)

    def keep(self, value: Value) -> Value:
        """Let later ops use a value."""
        self.values.append(value)
        return value

    def argument(self, kind: str, word: str) -> str:
        """Add an argument to the kernel."""
        self.arguments.append((f"%a{len(self.arguments)}", kind, word))
        return self.arguments[-1][0]

    def shared(self, kind: str) -> str:
        """Add a buffer in shared local memory."""
        self.attributions.append((f"%s{len(self.attributions)}", kind))
        return self.attributions[-1][0]

    def data(self, element: str, shape: Sequence[int], small: bool = False) -> str:
        """A word that makes an array of a random seed: of small integers, or of any bit patterns."""
        kind = "small" if small else self.r.choice(["small", "bits", "bits"])
        return f"{kind}:{dtype_of(element)}:{'x'.join(map(str, shape))}:seed={self.r.randrange(100)}"

    @contextmanager
    def region(self) -> Iterator[None]:
        """What is written in here is a block of its own, whose values end with it."""
        kept = list(self.values)
        self.depth += 1
        yield
        self.depth -= 1
        self.values = kept

    def index(self, number: int) -> str:
        """A constant index."""
        found = self.name()
        self.line(f"{found} = arith.constant {number} : index")
        return found

    def scalar(self, number: int, element: str = "i32") -> Value:
        """A constant number."""
        number = fitting(number, element)
        text = f"{number}.0" if is_float(element) else str(number)
        return self.op(f"arith.constant {text} : {element}", (), element, abs(number))

    def splat(self, number: int | str, shape: tuple[int, ...], element: str) -> Value:
        """A constant whose elements are all the same; a number as text may be a bit pattern."""
        number = fitting(number, element) if isinstance(number, int) else number
        text = str(number)
        if isinstance(number, int) and is_float(element):
            text = f"{number}.0"
        kind = self.value("", shape, element).type
        written = f"dense<{text}>" if shape else text
        typed = "true" if written == "true" else f"{written} : {kind}"
        return self.op(f"arith.constant {typed}", shape, element, abs(number) if number.__class__ is int else None)

    def table(self, numbers: Sequence[int], element: str) -> Value:
        """A constant vector."""
        words = ", ".join(f"{n}.0" if is_float(element) else str(n) for n in numbers)
        shape = (len(numbers),)
        most = max(map(abs, numbers))
        return self.op(f"arith.constant dense<[{words}]> : {vector_text(shape, element)}", shape, element, most)

    def dynamic(self, number: int) -> str:
        """An index of a known value: a constant, an argument, or a sum of both."""
        how = self.r.randrange(4)
        if how == 0:
            return self.index(number)
        if how == 1:
            return self.argument("index", f"i32:{number}")
        if how == 2:
            name = self.argument("i32", f"i32:{number}")
            return self.op(f"arith.index_cast {name} : i32 to index", (), "index").name
        part = self.r.randint(0, 9)
        given = self.argument("index", f"i32:{number - part}")
        return self.op(f"arith.addi {given}, {self.index(part)} : index", (), "index").name

    def place(self, number: int) -> str:
        """An entry of an index list: a number, or an index of that value."""
        return str(number) if self.r.random() < 0.6 else self.dynamic(number)

    def pick(self, fits: Callable[[Value], bool] = lambda _: True) -> Value | None:
        """One of the values, if one fits."""
        found = [v for v in self.values if fits(v)]
        return self.r.choice(found) if found else None

    def element_of(self, options: Sequence[str]) -> str:
        """An element; that of a tour, if it may be."""
        return self.only if self.only in options else self.r.choice(options)

    def all_reduced(self, x: Value) -> Value:
        """A scalar of each work item combined with those of the workgroup, by a name or by a region."""
        kinds = ops.reductions(x.element, ordered=True)
        kind = self.r.choice(list(kinds))
        signature = f": ({x.type}) -> {x.type}"
        if self.r.random() < 0.7:
            return self.op(f"gpu.all_reduce {kind} {x.name} uniform {{}} {signature}", (), x.element)
        body = f"^bb0(%l: {x.type}, %r: {x.type}): %s = {kinds[kind].name} %l, %r : {x.type} gpu.yield %s : {x.type}"
        return self.op(f"gpu.all_reduce {x.name} uniform {{ {body} }} {signature}", (), x.element)

    def hints(self, write: bool = False) -> list[str]:
        """Cache hints of an op, of which there is a message."""
        if self.r.random() < self.plain_hints:
            return []
        found = self.r.choice(WRITES if write else READS)
        return [f"l{n}_hint = {hint.value}" for n, hint in enumerate(found, 1) if hint]

    def text(self, name: str = "random", attributes: str = "") -> str:
        """The whole module."""
        arguments = ", ".join(f"{n}: {kind}" for n, kind, _ in self.arguments)
        shared = ", ".join(f"{n}: {kind}" for n, kind in self.attributions)
        shared = f" workgroup({shared})" if shared else ""
        attributes = f" attributes {{{attributes}}}" if attributes else ""
        body = "\n".join(self.lines)
        return (
            f"gpu.module @kernels {{\n  gpu.func @{name}({arguments}){shared} kernel{attributes} {{\n{body}\n"
            "    gpu.return\n  }\n}\n"
        )

    def words(self) -> tuple[str, ...]:
        """The words of xegpu-run for all arguments."""
        return tuple(word for _, _, word in self.arguments)


def _pairs(hints: Sequence[CacheHint], write: bool) -> list[tuple[CacheHint | None, ...]]:
    name = "lsc_store" if write else "lsc_load"
    declared: Any = INSTRUCTIONS[name].attributes["caches"]
    every = [None, *hints]
    views = [SimpleNamespace(l1_hint=a, l2_hint=b, l3_hint=c) for a in every for b in every for c in every]
    found = [v for v in views if caches_of(v, write) in ("", *declared.pairs)]
    return [(v.l1_hint, v.l2_hint, v.l3_hint) for v in found]


READS, WRITES = _pairs(READ_HINTS, False), _pairs(WRITE_HINTS, True)
"""Hints for L1, L2 and L3 of which there is a message."""


def attributes(entries: Sequence[str]) -> str:
    """An attribute dictionary, with a space in front; nothing for no entries."""
    return f" {{{', '.join(entries)}}}" if entries else ""


def with_exact(value: Value, exact: int | None) -> Value:
    """The value with another bound, if its element holds it."""
    return replace(value, exact=exact if exact is not None and exact <= most_exact(value.element) else None)
