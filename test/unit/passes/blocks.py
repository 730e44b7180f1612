"""Random accesses to blocks of memory: the kernel that does one, and what numpy makes of it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import xegpu_py
from xegpu_py.runtime.host_arrays import DTYPES

ELEMENTS = ("i8", "i16", "f16", "bf16", "i32", "f32", "i64", "f64")


def vector(shape: tuple[int, ...], element: str) -> str:
    return f"vector<{'x'.join(map(str, (*shape, element)))}>"


def some(element: str, shape: tuple[int, ...], seed: int) -> Any:
    """Any bit patterns of an element type."""
    dtype = np.dtype(DTYPES[element])
    bits = np.random.default_rng(seed).integers(1, 1 << min(8 * dtype.itemsize, 62), shape)
    return bits.astype(f"u{dtype.itemsize}").view(dtype)


@dataclass(frozen=True)
class Access:
    """One access to a block of a view.

    Attributes:
        op: "load", "store" or "prefetch".
        whole: extents of the array in memory.
        view: extents of the part of it, from its first element on, that the descriptor's tensor is.
        block: the descriptor's shape.
        place: where the block is in the end.
        start: where the descriptor is made.
        turns: updates by which it gets from there to `place`, each by as much; 0 if it is made there.
        transform: "", "transpose", "units32", "units64", "vnni0" or "vnni1".
        array: array_length.
        static: whether shapes and offsets are constants.
        loop: whether the updates are a loop.
        side_by_side: whether the blocks of an array stand side by side in the vector.
    """

    element: str
    op: str
    whole: tuple[int, ...]
    view: tuple[int, ...]
    block: tuple[int, ...]
    place: tuple[int, ...]
    start: tuple[int, ...]
    turns: int = 0
    transform: str = ""
    array: int = 1
    static: bool = True
    loop: bool = False
    side_by_side: bool = False
    slm: bool = False

    @property
    def bits(self) -> int:
        return 8 * np.dtype(DTYPES[self.element]).itemsize

    @property
    def covered(self) -> tuple[int, ...]:
        """The elements that all blocks of an array cover."""
        return (*self.block[:-1], self.block[-1] * self.array)

    def indices(self) -> tuple[Any, Any]:
        """For each element of the covered block its indices in the view, and whether it is in bounds."""
        found = np.stack(np.meshgrid(*map(np.arange, self.covered), indexing="ij"))
        found = found + np.array(self.place).reshape(-1, *[1] * len(self.block))
        inside = np.ones(self.covered, bool)
        for at, extent in zip(found, self.view):
            inside &= (at >= 0) & (at < extent)
        return found, inside

    def loaded(self, source: Any) -> Any:
        """What a load gives, of the vector's shape."""
        at, inside = self.indices()
        held = np.zeros(self.covered, source.dtype)
        held[inside] = source[tuple(a[inside] for a in at)]
        if self.array == 1 or self.side_by_side:
            return self._transformed(held)
        return np.stack([self._transformed(b) for b in np.split(held, self.array, axis=-1)])

    def _transformed(self, block: Any) -> Any:
        pack = max(32 // self.bits, 1)
        *lead, rows, columns = block.shape
        if self.transform == "transpose":
            return block.swapaxes(-1, -2)
        if self.transform.startswith("units"):
            unit = int(self.transform[5:]) // self.bits
            units = block.reshape(*lead, rows, columns // unit, unit).swapaxes(-2, -3)
            return units.reshape(*lead, columns // unit, rows * unit)
        if self.transform == "vnni0":
            return block.reshape(rows // pack, pack, columns).swapaxes(1, 2)
        if self.transform == "vnni1":
            return block.reshape(rows, columns // pack, pack)
        return block

    def attributes(self) -> str:
        """The transform as attributes of the load."""
        rank = len(self.block)
        order = [*range(rank - 2), rank - 1, rank - 2]
        if self.transform == "transpose":
            return f"transpose = {order}, "
        if self.transform.startswith("units"):
            return f"transpose = {order}, transpose_bit_width = {self.transform[5:]}, "
        return f"vnni_axis = {self.transform[4:]}, " if self.transform else ""

    def text(self) -> str:
        """The kernel: %in holds the view, %line what is stored, or what was loaded."""
        rank = len(self.view)
        shape = self.loaded(np.zeros(self.whole, DTYPES[self.element])).shape
        total = int(np.prod(shape))
        settings = f", #xegpu.tdesc_attr<{', '.join(self._settings())}>" if self._settings() else ""
        desc = f"!xegpu.tensor_desc<{'x'.join(map(str, (*self.block, self.element)))}{settings}>"
        value, flat = vector(shape, self.element), vector((total,), self.element)
        whole = f"memref<{'x'.join(map(str, (*self.whole, self.element)))}>"
        line = f"!xegpu.tensor_desc<{total}x{self.element}>"
        out = f"memref<{total}x{self.element}>"
        offsets = [f"%o{i}" for i in range(rank)] + [f"%s{i}" for i in range(rank)]
        extents = [f"%n{i}" for i in range(rank)]
        steps = [(p - s) // max(self.turns, 1) for p, s in zip(self.place, self.start)]
        body = []
        if self.static:
            numbers = zip((*offsets, *extents), (*self.start, *steps, *self.view))
            body = [f"{name} = arith.constant {n} : index" for name, n in numbers]
        arguments = "" if self.static else "".join(f", {n}: index" for n in (*offsets, *extents))
        body += self._views(whole, rank)
        view = self._view_type(rank)
        body += [
            f"%l = xegpu.create_nd_tdesc %line[0] {{mode = vc}} : {out} -> {line}",
            f"%d0 = xegpu.create_nd_tdesc %view[{', '.join(offsets[:rank])}] {{mode = vc}} : {view} -> {desc}",
            *self._moves(desc, ", ".join(offsets[rank:])),
        ]
        if self.op == "prefetch":
            body.append(f"xegpu.prefetch_nd %d {{mode = vc}} : {desc}")
        elif self.op == "load":
            body += [
                f"%x = xegpu.load_nd %d {{{self.attributes()}mode = vc}} : {desc} -> {value}",
                f"%f = vector.shape_cast %x : {value} to {flat}",
                f"xegpu.store_nd %f, %l {{mode = vc}} : {flat}, {line}",
            ]
        else:
            body += [
                f"%f = xegpu.load_nd %l {{mode = vc}} : {line} -> {flat}",
                f"%x = vector.shape_cast %f : {flat} to {value}",
                f"xegpu.store_nd %x, %d {{mode = vc}} : {value}, {desc}",
            ]
        body += self._after(whole)
        lines = "\n".join(body)
        return (
            f"gpu.module @m {{ gpu.func @k(%in: {whole}, %line: {out}{arguments}) kernel {{\n{lines}\ngpu.return\n}} }}"
        )

    def _settings(self) -> list[str]:
        return (["memory_scope = slm"] if self.slm else []) + (
            [f"array_length = {self.array}"] if self.array > 1 else []
        )

    def _view_type(self, rank: int) -> str:
        strides = np.cumprod([1, *self.whole[:0:-1]])[::-1]
        space = ", 3" if self.slm else ""
        shape = self.view if self.static else ("?",) * rank
        return f"memref<{'x'.join(map(str, (*shape, self.element)))}, strided<{list(map(int, strides))}>{space}>"

    def _views(self, whole: str, rank: int) -> list[str]:
        zeros, ones = [0] * rank, [1] * rank
        sizes = list(self.view) if self.static else ", ".join(f"%n{i}" for i in range(rank))
        source, kind, body = "%in", whole, []
        if self.slm:
            kind = f"{whole[:-1]}, 3>"
            body = [f"%local = memref.alloc() : {kind}", *self._copied(whole, "%in", "%local")]
            source = "%local"
        return [
            *body,
            f"%view = memref.subview {source}{zeros} [{str(sizes).strip('[]')}] {ones} "
            f": {kind} to {self._view_type(rank)}",
        ]

    def _copied(self, whole: str, source: str, to: str) -> list[str]:
        """Copies the array to or from shared local memory, line by line."""
        total, rank = int(np.prod(self.whole)), len(self.whole)
        group = f"[{list(range(rank))}]"
        out = []
        kinds = []
        for name in (source, to):
            kind = f"{whole[:-1]}, 3>" if name == "%local" else whole
            flat = f"memref<{total}x{self.element}{', 3' if name == '%local' else ''}>"
            new = f"{name}_{'a' if to == '%local' else 'b'}"
            out.append(f"{new} = memref.collapse_shape {name} {group} : {kind} into {flat}")
            scope = ", memory_scope = slm" if name == "%local" else ""
            kinds.append((new, flat, f"!xegpu.tensor_desc<@x{self.element}{scope}>"))
        (a, a_type, a_desc), (b, b_type, b_desc) = kinds
        step = 256 * 8 // self.bits
        for i, at in enumerate(range(0, total, step)):
            n = min(step, total - at)
            tag = f"{a[1:]}{i}"
            da, db = a_desc.replace("@", str(n)), b_desc.replace("@", str(n))
            held = vector((n,), self.element)
            out += [
                f"%x{tag} = xegpu.create_nd_tdesc {a}[{at}] {{mode = vc}} : {a_type} -> {da}",
                f"%y{tag} = xegpu.create_nd_tdesc {b}[{at}] {{mode = vc}} : {b_type} -> {db}",
                f"%v{tag} = xegpu.load_nd %x{tag} {{mode = vc}} : {da} -> {held}",
                f"xegpu.store_nd %v{tag}, %y{tag} {{mode = vc}} : {held}, {db}",
            ]
        return out

    def _moves(self, desc: str, steps: str) -> list[str]:
        if self.loop:
            return [
                "%lo = arith.constant 0 : index",
                f"%hi = arith.constant {self.turns} : index",
                "%by = arith.constant 1 : index",
                f"%d = scf.for %i = %lo to %hi step %by iter_args(%t = %d0) -> ({desc}) {{",
                f"%u = xegpu.update_nd_offset %t, [{steps}] {{mode = vc}} : {desc} -> {desc}",
                f"scf.yield %u : {desc}",
                "}",
            ]
        body = []
        for i in range(self.turns):
            to = "%d" if i == self.turns - 1 else f"%d{i + 1}"
            body.append(f"{to} = xegpu.update_nd_offset %d{i}, [{steps}] {{mode = vc}} : {desc} -> {desc}")
        return body or [f"%d = xegpu.update_nd_offset %d0, {[0] * len(self.block)} {{mode = vc}} : {desc} -> {desc}"]

    def _after(self, whole: str) -> list[str]:
        return self._copied(whole, "%local", "%in") if self.slm and self.op == "store" else []

    def numbers(self) -> list[int]:
        """The kernel's arguments behind the arrays."""
        if self.static:
            return []
        steps = [(p - s) // max(self.turns, 1) for p, s in zip(self.place, self.start)]
        return [*self.start, *steps, *self.view]

    def check(
        self, target: str, seed: int, engine: Any = "both", unaligned: tuple[int, ...] | None = None, simt: bool = False
    ) -> Any:
        """Run it, and compare with numpy; the compiled kernel.

        Args:
            simt: whether in SIMT mode, in which work items have the whole block, as there is no sg_map.
        """
        memory = some(self.element, self.whole, seed)
        shape = self.loaded(memory).shape
        line = some(self.element, (int(np.prod(shape)),), seed + 1)
        expected, wanted = memory.copy(), line.copy()
        if self.op == "load":
            wanted = np.ascontiguousarray(self.loaded(memory)).reshape(-1)
        elif self.op == "store":
            at, inside = self.indices()
            value = line.reshape(shape)
            if self.array > 1 and not self.side_by_side:
                value = np.concatenate(list(value), axis=-1)
            expected[tuple(a[inside] for a in at)] = value[inside]
        text = self.text()
        if simt:
            text = text.replace("{mode = vc}", "").replace(", mode = vc}", "}")
        kernel = xegpu_py.compile(text, target=target, registers=256, engine=engine, unaligned=unaligned)
        kernel(memory, line, *self.numbers(), block=16 if simt else 1)
        for found, right in ((line, wanted), (memory, expected)):
            np.testing.assert_array_equal(found.view("u1"), right.view("u1"))
        return kernel


def _moved(draw: Any, place: tuple[int, ...]) -> tuple[tuple[int, ...], int, bool]:
    """Where a descriptor begins, how often it moves, and whether in a loop."""
    turns = draw(st.sampled_from((0, 0, 1, 2, 3)))
    start = tuple(p - turns * draw(st.integers(-3, 3)) for p in place)
    return start, turns, bool(turns) and draw(st.booleans())


@st.composite
def accesses(
    draw: Any,
    ranks: tuple[int, ...] = (2, 3, 4),
    transforms: tuple[str, ...] = ("", "transpose", "units32", "units64", "vnni0", "vnni1"),
    elements: tuple[str, ...] = ELEMENTS,
    aligned: bool = True,
    ops: tuple[str, ...] = ("load", "load", "store", "prefetch"),
    slm: bool = False,
) -> Access:
    """Any access.

    Args:
        aligned: whether the view is a surface that 2D block messages can address.
    """
    element = draw(st.sampled_from(elements))
    size = np.dtype(DTYPES[element]).itemsize
    rank = draw(st.sampled_from(ranks))
    op = draw(st.sampled_from(ops))
    transform = draw(st.sampled_from(transforms)) if op == "load" else ""
    if "vnni" in transform and (rank > 2 or size >= 4):
        transform = ""
    if transform.startswith("units") and int(transform[5:]) < 8 * size:
        transform = "transpose"
    across = max(4 // size, 1)
    if aligned:
        columns = draw(st.integers(8, 16)) * max(8 // size, 1)
        pitch = (64 if columns * size <= 64 else 128) // size
    else:
        columns = draw(st.integers(1, 40))
        pitch = columns + draw(st.integers(0, 5))
    lead_view = tuple(draw(st.integers(1, 3)) for _ in range(rank - 2))
    rows = draw(st.integers(1, 12))
    view = (*lead_view, rows, columns)
    # The pitch is the array's own width; what lies behind the view on each side is there to be hit by mistake.
    whole = (*(n + draw(st.integers(0, 1)) for n in lead_view), rows + draw(st.integers(0, 3)), pitch)
    pack = across if transform.startswith(("vnni", "units")) else 1
    if transform == "units64":
        pack = 8 // size
    height = draw(st.integers(1, 10)) * (pack if transform == "vnni0" else 1)
    width = draw(st.integers(1, 12)) * (pack if transform != "vnni0" else 1)
    if op == "store" and aligned:
        width = -(-width // across) * across
    array = draw(st.sampled_from((1, 1, 2, 3))) if rank == 2 and op != "store" else 1
    block = (*(draw(st.integers(1, 2)) for _ in range(rank - 2)), height, width)
    covered = (*block[:-1], width * array)
    place = tuple(draw(st.integers(-b - 1, n + 1)) for b, n in zip(covered, view))
    if op == "store" and aligned:
        place = (*place[:-1], place[-1] // across * across)
    start, turns, loop = _moved(draw, place)
    if op == "store" and aligned:
        start = (*start[:-1], place[-1])
    return Access(
        element,
        op,
        whole,
        view,
        block,
        place,
        start,
        turns,
        transform,
        array,
        draw(st.booleans()),
        loop,
        draw(st.booleans()) if array > 1 else False,
        slm,
    )


def combinations(**given: tuple[Any, ...]) -> list[dict[str, Any]]:
    """All choices of one value each."""
    return [dict(zip(given, chosen)) for chosen in itertools.product(*given.values())]
