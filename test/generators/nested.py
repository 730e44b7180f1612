"""Random kernels of vectors with nested layouts, which `vector-distribute` rewrites for lanes."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from random import Random

from passes import layout_programs
from xegpu_py.ir.builtin import is_float

from .body import dtype_of
from .ops import NUMBERS
from .program import Program

ELEMENTS = (*NUMBERS, "tf32")
"""Elements that have constants, which a vector.transfer_read needs."""


class Writer(layout_programs.Writer):
    """A writer whose arrays are words of `xegpu-run`."""

    def __init__(self, r: Random, lanes: int, subgroups: int, gaps: bool, outers: bool) -> None:
        super().__init__(r, lanes, subgroups, gaps, outers)
        self.words: list[str] = []

    def memory(self, shape: tuple[int, ...], element: str = "i32", fill: int | None = None) -> str:
        """A memref argument, of small numbers or of one number."""
        found = super().memory(shape, element, fill)
        dims = "x".join(map(str, shape or (1,)))
        dtype = "i64" if element == "index" else element
        self.words.append(
            f"small:{dtype}:{dims}:seed={self.r.randrange(100)}" if fill is None else f"full:{dtype}:{dims}:{fill}"
        )
        return found

    def typed(self, shape: tuple[int, ...], element: str, fill: str) -> str:
        """A memref argument of any element."""
        dims = "x".join(map(str, shape))
        seed = f":seed={self.r.randrange(100)}" if fill == "small" else ""
        self.words.append(f"{fill}:{dtype_of(element)}:{dims}{seed}")
        self.arguments.append(f"%m{len(self.arguments)}: memref<{dims}x{element}>")
        return f"%m{len(self.arguments) - 1}"


def moves(w: Writer, element: str) -> None:
    """Numbers of any element that are converted from one layout to another."""
    where = w.layout(w.r.randint(1, 2), most=256)
    other = dataclasses.replace(where, batch_tile=where.element_tile, element_tile=where.batch_tile)
    zero = "0.0" if is_float(element) else "0"
    w.add(f"%none = arith.constant {zero} : {element}")
    source, to = (w.typed(where.shape, element, fill) for fill in ("small", "zeros"))
    places = ", ".join(["%c0"] * where.rank)
    inside = f"{{in_bounds = [{', '.join(['true'] * where.rank)}]}}"
    kind, memory = w.vector(where.shape, element), f"memref<{'x'.join(map(str, where.shape))}x{element}>"
    x = w.op(f"vector.transfer_read {source}[{places}], %none {inside} : {memory}, {kind}")
    x = w.anchor(w.anchor(x, where, element), other, element)
    w.add(f"vector.transfer_write {x}, {to}[{places}] {inside} : {kind}, {memory}")


def outer_product(w: Writer) -> None:
    """An outer product, which `vector-lower-contract` lowers before, added to numbers with a layout."""
    where = w.layout(2, most=256)
    (rows, columns), kind = where.shape, w.r.choice(["add", "maxsi", "xor"])
    w.add("%none = arith.constant 0 : i32")

    def read(shape: tuple[int, ...]) -> str:
        places, inside = ", ".join(["%c0"] * len(shape)), ", ".join(["true"] * len(shape))
        source, memory = w.typed(shape, "i32", "small"), f"memref<{'x'.join(map(str, shape))}xi32>"
        return w.op(
            f"vector.transfer_read {source}[{places}], %none {{in_bounds = [{inside}]}} : {memory}, {w.vector(shape)}"
        )

    a, b, total = read((rows,)), read((columns,)), w.anchor(read(where.shape), where)
    made = f"{{kind = #vector.kind<{kind}>}} : {w.vector((rows,))}, {w.vector((columns,))}"
    w.result = w.op(f"vector.outerproduct {a}, {b}, {total} {made}"), where


def tour(r: Random, element: str | None = None, length: int | None = None) -> Program:
    """A kernel that moves numbers of an element between layouts."""
    return _program(r, lambda w: moves(w, element or r.choice(ELEMENTS)))


def program(r: Random) -> Program:
    """A random kernel of vectors with layouts."""
    if r.random() < 0.1:
        return tour(r)
    return _program(r, r.choice([*layout_programs.SHARED, *layout_programs.OWN, outer_product]))


def _program(r: Random, kind: Callable[[Writer], None]) -> Program:
    lanes, subgroups = r.choice([16, 16, 32]), r.choice([1, 2, 4])
    w = Writer(r, lanes, subgroups, gaps=r.random() < 0.5, outers=r.random() < 0.7)
    kind(w)
    if w.result:
        value, where = w.result
        w.result = None
        w.write(value, where.shape)
    head, _, body = w.program().text.partition(" {\n")
    size = f"known_block_size = array<i32: {subgroups * lanes}, 1, 1>"
    head = head.replace("func.func", "gpu.func")
    body = re.sub(r"\breturn\n", "gpu.return\n", body)
    text = f"gpu.module @kernels {{\n{head} kernel attributes {{{size}}} {{\n{body}}}\n"
    before = "vector-lower-contract," if "vector.outerproduct" in text else ""
    passes = f"{before}vector-distribute{{subgroup-size={lanes}}},canonicalize,cse"
    return Program(text, tuple(w.words), (1,), (subgroups * lanes,), passes=passes)
