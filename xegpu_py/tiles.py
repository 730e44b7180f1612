"""Kernels of XeTile as Python functions: `xegpu_py.build` has the names of this module.

    @build.tile_kernel((bfloat16, (None, None)), (np.float32, (None, None)))
    def double(X, Y):
        row = build.block_id("x") * 64
        for column in build.range_(0, X.shape[1], 64):
            x = X.tile((64, 64), at=(row, column), map=build.WgMap((4, 2), (16, 32))).load()
            Y.tile((64, 64), at=(row, column)).store(x.to(np.float32) * 2)

    double(x, y, grid=8, block=8)

What is assigned in place in a loop (`sum += x`, `tile.advance(...)`) is carried from turn to turn.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from mlir import ir as mlir
from mlir.dialects import arith, memref, scf

from xegpu_py import build
from xegpu_py.compiled import CompiledKernel, compile
from xegpu_py.dialects import xetile
from xegpu_py.dialects.xetile import WgMap
from xegpu_py.dialects.xetile.types import SHARED
from xegpu_py.ir.builtin import is_float
from xegpu_py.ir.context import current
from xegpu_py.ir.module import Module
from xegpu_py.ir.numbers import number_attribute
from xegpu_py.values import TRACES, Held, Number, Trace, Value, as_index, element_name, full, trace


class Tile(Held):
    """A tile of a matrix in memory."""

    @property
    def type(self) -> xetile.Tile:
        """What it is."""
        return xetile.Tile.of(self.ir)

    def load(self, padding: Number | None = None) -> Value:
        """What is there. Outside of the matrix it is `padding`, or zero."""
        given = None if padding is None else _spelled(padding, self.type.element)
        return Value(xetile.load_tile(self.ir, padding=given))

    def store(self, value: Value) -> None:
        """Put a value there. What lies outside of the matrix is dropped."""
        xetile.store_tile(value.ir, self.ir)

    def add(self, value: Value) -> None:
        """Add a value to what is there, atomically."""
        xetile.atomic_rmw("addf" if is_float(value.element) else "addi", value.ir, self.ir)

    def prefetch(self) -> None:
        """Bring it into the cache."""
        xetile.prefetch_tile(self.ir)

    def advance(self, rows: int | Value = 0, columns: int | Value = 0) -> None:
        """Move on, in place."""
        self.ir = xetile.update_tile_offset(self.ir, [as_index(rows), as_index(columns)])


class Scattered(Held):
    """Elements of an array, each at an index of its own."""

    @property
    def type(self) -> xetile.Tile:
        """What it is."""
        return xetile.Tile.of(self.ir)

    def load(self, mask: Value | None = None, padding: Number | None = None) -> Value:
        """What is there. Where the mask is not set it is `padding`, or zero, and nothing is read."""
        given = None if padding is None else _spelled(padding, self.type.element)
        return Value(xetile.load(self.ir, None if mask is None else mask.ir, padding=given))

    def store(self, value: Value, mask: Value | None = None) -> None:
        """Put a value there, where the mask is set."""
        xetile.store(value.ir, self.ir, None if mask is None else mask.ir)

    def add(self, value: Value, mask: Value | None = None) -> None:
        """Add a value to what is there, atomically, where the mask is set."""
        kind = "addf" if is_float(value.element) else "addi"
        xetile.atomic_rmw(kind, value.ir, self.ir, None if mask is None else mask.ir)

    def advance(self, by: Value | int) -> None:
        """Move on, in place: each element by its own number, or all by the same."""
        offsets = full(self.type.shape, by, "index", self.type.wg_map) if isinstance(by, int) else by
        self.ir = xetile.update_tile_offset(self.ir, [], offsets.ir)


def _spelled(number: Number, element: str) -> str:
    """A number with its type, as attributes have it."""
    return str(number_attribute(mlir.Type.parse(element), number))


class Array:
    """An argument of a kernel, or a part of shared local memory: an array in memory.

    Attributes:
        ir: the memref.
    """

    def __init__(self, value: mlir.Value) -> None:
        self.ir = value
        self._extents: dict[int, Value] = {}

    @property
    def _type(self) -> mlir.MemRefType:
        return mlir.MemRefType(self.ir.type)

    @property
    def _space(self) -> int:
        return 0 if self._type.memory_space is None else SHARED

    @property
    def T(self) -> Array:
        """The same array with its last two dimensions swapped: its tiles are column-major, and nothing is moved."""
        extents = list(self.shape)
        strides: list[int | Value] = [1]
        for extent in extents[:0:-1]:
            strides.insert(0, _product(extent, strides[0]))
        extents[-2:], strides[-2:] = extents[:-3:-1], strides[:-3:-1]
        unknown = mlir.ShapedType.get_dynamic_size()
        sizes, steps = ([unknown if isinstance(n, Value) else n for n in of] for of in (extents, strides))
        old = self._type
        kind = mlir.MemRefType.get(sizes, old.element_type, mlir.StridedLayoutAttr.get(0, steps), old.memory_space)
        dynamic = ([n.ir for n in of if isinstance(n, Value)] for of in (extents, strides))
        return Array(memref.reinterpret_cast(kind, self.ir, [], *dynamic, [0], sizes, steps))

    @property
    def shape(self) -> tuple[int | Value, ...]:
        """Its extent; what is not known when compiling is a value."""
        kind = mlir.MemRefType(self.ir.type)
        dynamic = mlir.ShapedType.get_dynamic_size()
        return tuple(self._extent(d) if n == dynamic else n for d, n in enumerate(kind.shape))

    def _extent(self, dim: int) -> Value:
        if dim not in self._extents:
            # At the start of the kernel, where every use of it can see it.
            with mlir.InsertionPoint.at_block_begin(self.ir.owner):
                self._extents[dim] = Value(memref.dim(self.ir, arith.constant(mlir.IndexType.get(), dim)))
        return self._extents[dim]

    def tile(self, shape: Sequence[int], at: Sequence[int | Value], map: WgMap | None = None) -> Tile:
        """A tile of this shape that begins at these indices. `map` says what of it each subgroup works on."""
        strides = self._type.get_strides_and_offset()[0]
        order = (0, 1) if strides[-2] == 1 and strides[-1] != 1 else (1, 0)
        attr = xetile.TileAttr(wg_map=map, order=order, memory_space=self._space)
        kind = xetile.Tile(tuple(shape), str(self._type.element_type), attr)
        return Tile(xetile.init_tile(self.ir, [as_index(n) for n in at], tile=kind.to_ir()))

    def at(self, indices: Value, map: WgMap | None = None) -> Scattered:
        """The elements at these indices, a line or matrix of them, counted from the array's first element on."""
        attr = xetile.TileAttr(wg_map=map, memory_space=self._space, scattered=True)
        kind = xetile.Tile(indices.shape, str(self._type.element_type), attr)
        return Scattered(xetile.init_tile(self.ir, [], indices=indices.to("index").ir, tile=kind.to_ir()))


def _product(a: int | Value, b: int | Value) -> int | Value:
    found: int | Value = a * b
    return found


def shared(shape: Sequence[int], dtype: Any = np.float32) -> Array:
    """An array in the shared local memory of the workgroup."""
    element = mlir.Type.parse(element_name(dtype))
    kind = mlir.MemRefType.get(list(shape), element, memory_space=mlir.Attribute.parse(str(SHARED)))
    return Array(memref.alloc(kind, [], []))


def range_(start: int | Value, stop: int | Value, step: int | Value = 1) -> Iterator[Value]:
    """A loop of the kernel: its body is built once, and what it assigns in place is carried from turn to turn."""
    bounds = [b.ir if isinstance(b, Value) else arith.constant(mlir.IndexType.get(), b) for b in (start, stop, step)]
    draft = scf.ForOp(*bounds)
    before = {held: held.ir for held in trace().alive() if held.is_built}
    with mlir.InsertionPoint(draft.body):
        yield Value(draft.induction_variable)
        end = scf.YieldOp([])
    changed = [held for held, old in before.items() if held.ir != old]
    with mlir.InsertionPoint(draft):
        loop = scf.ForOp(*bounds, [before[held] for held in changed])
    with mlir.InsertionPoint(loop.body):
        last = scf.YieldOp([held.ir for held in changed])
    for op in list(draft.body.operations):
        if op.operation != end.operation:
            op.operation.move_before(last.operation)
    # Within the loop its own arguments stand for what came before it.
    stands = {before[held]: loop.body.arguments[1 + i] for i, held in enumerate(changed)}
    stands[draft.induction_variable] = loop.induction_variable

    def replace(op: mlir.Operation) -> mlir.WalkResult:
        for i, operand in enumerate(op.operands):
            if operand in stands:
                op.operands[i] = stands[operand]
        return mlir.WalkResult.ADVANCE

    for op in loop.body.operations:
        op.operation.walk(replace)
    draft.operation.erase()
    for held, result in zip(changed, loop.results):
        held.ir = result


@dataclass
class TileKernel:
    """A kernel built of a Python function.

    Attributes:
        name: its name.
        module: the module that holds it.
    """

    name: str
    module: Module

    def compile(self, **options: Any) -> CompiledKernel:
        """The kernel lowered to vISA; see `xegpu_py.compile`."""
        found: CompiledKernel = compile(self.module, self.name, **options)
        return found

    @functools.cached_property
    def _compiled(self) -> CompiledKernel:
        return self.compile(registers=256)

    def __call__(self, *arguments: Any, grid: int | Sequence[int] = 1, block: int | Sequence[int] = 1) -> Any:
        """Run the kernel with 256 registers a thread on the default target; see `CompiledKernel`."""
        return self._compiled(*arguments, grid=grid, block=block)

    def __str__(self) -> str:
        return str(self.module)


def tile_kernel(*arguments: tuple[Any, Sequence[int | None]]) -> Callable[[Callable[..., None]], TileKernel]:
    """Make a kernel of a function that gets an `Array` for each argument.

    Args:
        arguments: numpy's type and the shape of each array; None for an extent that is known only when it is called.

    Raises:
        DiagnosticError: if the function builds what breaks a rule.
    """

    def make(function: Callable[..., None]) -> TileKernel:
        types = []
        for dtype, shape in arguments:
            extents = "x".join("?" if n is None else str(n) for n in shape)
            types.append(f"memref<{extents}x{element_name(dtype)}>")
        expected = len(inspect.signature(function).parameters)
        if expected != len(types):
            raise TypeError(f"{function.__name__} takes {expected} arrays, but {len(types)} are typed")
        TRACES.append(Trace())
        try:
            with (
                build.module(current()) as module,
                build.gpu_module("kernels"),
                build.kernel(function.__name__, *types) as values,
            ):
                function(*map(Array, values))
        finally:
            TRACES.pop()
        return TileKernel(function.__name__, module)

    return make
