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
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from mlir import ir as mlir
from mlir.dialects import arith, gpu, math, memref, scf, vector

from xegpu_py import build
from xegpu_py.compiled import CompiledKernel, compile
from xegpu_py.dialects import xetile
from xegpu_py.dialects.xetile import WgMap
from xegpu_py.ir.builtin import is_float, vector_of, vector_text
from xegpu_py.ir.context import current
from xegpu_py.ir.module import Module
from xegpu_py.runtime.arguments import DTYPES

Number = int | float
_NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}


def element_name(dtype: Any) -> str:
    """MLIR's element type of a numpy type, or of a name such as "tf32".

    Raises:
        ValueError: if there is none.
    """
    if isinstance(dtype, str) and dtype in (*DTYPES, "tf32", "index"):
        return dtype
    found = _NAMES.get(np.dtype(dtype))
    if found is None:
        raise ValueError(f"no element type stands for {dtype!r}")
    return found.removeprefix("u") if found.startswith("ui") else found


class _Trace:
    """The kernel that is being built: its values, so that loops can see which of them change."""

    def __init__(self) -> None:
        self._made: list[weakref.ref[_Held]] = []

    def add(self, held: _Held) -> None:
        """A value has been made."""
        self._made.append(weakref.ref(held))

    def alive(self) -> list[_Held]:
        """The values that Python still knows, in the order in which they were made."""
        self._made = [ref for ref in self._made if ref() is not None]
        return [held for ref in self._made if (held := ref()) is not None]


_TRACES: list[_Trace] = []


def _trace() -> _Trace:
    if not _TRACES:
        raise RuntimeError("values of kernels can be made in a function with build.tile_kernel only")
    return _TRACES[-1]


class _Held:
    """Something that an SSA value stands for. Assignment in place gives it another one."""

    def __init__(self, value: mlir.Value | None) -> None:
        self._ir = value
        _trace().add(self)

    @property
    def ir(self) -> mlir.Value:
        """The SSA value."""
        if self._ir is None:
            self._ir = self._build()
        return self._ir

    @ir.setter
    def ir(self, value: mlir.Value) -> None:
        self._ir = value

    @property
    def is_built(self) -> bool:
        """Whether there is an SSA value yet."""
        return self._ir is not None

    def _build(self) -> mlir.Value:
        """The SSA value of what is built where it is used."""
        raise NotImplementedError


def _index(number: int | Value) -> int | mlir.Value:
    return number.ir if isinstance(number, Value) else int(number)


def _constant(kind: mlir.Type, number: Number | bool, map: WgMap | None = None) -> mlir.Value:
    text = str(kind)
    element = vector_of(text)[1] if text.startswith("vector<") else text
    if element == "i1":
        spelled = str(bool(number)).lower()
    else:
        spelled = repr(float(number)) if is_float(element) else str(int(number))
    if spelled in ("inf", "-inf", "nan"):
        raise ValueError(f"{number} has no spelling as a constant; use a large number")
    attribute = mlir.Attribute.parse(f"dense<{spelled}> : {text}" if text != element else f"{spelled} : {element}")
    made: mlir.Value = arith.constant(kind, attribute)
    if map is not None:
        made.owner.operation.attributes["map"] = map.to_ir()
    return made


class Value(_Held):
    """A number, or a matrix or line of numbers in registers. Python's operators work on each element."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extent; () for a number."""
        text = str(self.ir.type)
        return vector_of(text)[0] if text.startswith("vector<") else ()

    @property
    def element(self) -> str:
        """MLIR's type of an element."""
        text = str(self.ir.type)
        return vector_of(text)[1] if text.startswith("vector<") else text

    def _like(self, shape: Sequence[int], element: str = "") -> mlir.Type:
        element = element or self.element
        return mlir.Type.parse(vector_text(tuple(shape), element) if shape else element)

    def _other(self, other: Any) -> tuple[Value, Value]:
        """Both operands in the same shape."""
        if not isinstance(other, Value):
            return self, Value(_constant(self.ir.type, other))
        if self.element != other.element:
            raise TypeError(f"operands of {self.element} and of {other.element}; use .to(...)")
        shape = tuple(np.broadcast_shapes(self.shape, other.shape))
        return self.broadcast(shape), other.broadcast(shape)

    def _apply(self, other: Any, real: str, whole: str) -> Value:
        a, b = self._other(other)
        name = real if is_float(self.element) else whole
        return Value(mlir.Operation.create(name, results=[a.ir.type], operands=[a.ir, b.ir]).result)

    def __add__(self, other: Any) -> Value:
        for a, b in ((self, other), (other, self)):
            if isinstance(a, Product) and not a.is_built and isinstance(b, Value) and len(b.shape) == 2:
                return a.plus(b)
        return self._apply(other, "arith.addf", "arith.addi")

    def __sub__(self, other: Any) -> Value:
        return self._apply(other, "arith.subf", "arith.subi")

    def __mul__(self, other: Any) -> Value:
        return self._apply(other, "arith.mulf", "arith.muli")

    def __truediv__(self, other: Any) -> Value:
        return self._apply(other, "arith.divf", "arith.divsi")

    def __floordiv__(self, other: Any) -> Value:
        return self._apply(other, "", "arith.floordivsi")

    def __mod__(self, other: Any) -> Value:
        return self._apply(other, "arith.remf", "arith.remsi")

    def __radd__(self, other: Any) -> Value:
        found: Value = self + other
        return found

    def __rmul__(self, other: Any) -> Value:
        found: Value = self * other
        return found

    def __rsub__(self, other: Any) -> Value:
        return Value(_constant(self.ir.type, other)) - self

    def __rtruediv__(self, other: Any) -> Value:
        return Value(_constant(self.ir.type, other)) / self

    def __neg__(self) -> Value:
        return 0 - self

    def _set(self, made: Value) -> Value:
        if made.ir.type != self.ir.type:
            raise TypeError(f"a {self.ir.type} cannot become a {made.ir.type} in place")
        self.ir = made.ir
        return self

    def __iadd__(self, other: Any) -> Value:
        return self._set(self + other)

    def __isub__(self, other: Any) -> Value:
        return self._set(self - other)

    def __imul__(self, other: Any) -> Value:
        return self._set(self * other)

    def __itruediv__(self, other: Any) -> Value:
        return self._set(self / other)

    def assign(self, other: Any) -> Value:
        """Become another value, in place."""
        return self._set(self._other(other)[1])

    def __matmul__(self, other: Value) -> Product:
        return Product(self, other)

    @property
    def T(self) -> Value:
        """The transpose."""
        kind = self._like(self.shape[::-1])
        return Value(xetile.transpose(self.ir, (1, 0), result=kind))

    def to(self, dtype: Any) -> Value:
        """The same numbers of another type, rounded to nearest even, integers toward zero; itself if it has it."""
        to = element_name(dtype)
        if to == self.element:
            return self
        kind = self._like(self.shape, to)
        bits = {"index": 32, "tf32": 19}
        old, new = (bits.get(e) or int("".join(c for c in e if c.isdigit())[:2]) for e in (self.element, to))
        if is_float(self.element) and is_float(to):
            name = "arith.extf" if new > old else "arith.truncf"
        elif is_float(to) or is_float(self.element):
            name = "arith.sitofp" if is_float(to) else "arith.fptosi"
        elif "index" in (to, self.element):
            name = "arith.index_cast"
        else:
            name = "arith.extsi" if new > old else "arith.trunci"
        return Value(mlir.Operation.create(name, results=[kind], operands=[self.ir]).result)

    def broadcast(self, shape: Sequence[int]) -> Value:
        """Repeated along dimensions of size 1, or all over for a number."""
        if self.shape == tuple(shape):
            return self
        if not self.shape:
            return Value(vector.broadcast(self._like(shape), self.ir))
        found = self
        for dim in range(len(shape)):
            if found.shape[dim] != shape[dim]:
                wide = tuple(shape[d] if d == dim else n for d, n in enumerate(found.shape))
                found = Value(xetile.broadcast(found.ir, (dim,), result=found._like(wide)))
        return found

    def reduce(self, kind: str, axis: int) -> Value:
        """All elements along an axis combined, which has size 1 then."""
        shape = tuple(1 if d == axis % 2 else n for d, n in enumerate(self.shape))
        return Value(xetile.reduction(kind, self.ir, (axis % 2,), result=self._like(shape)))

    def sum(self, axis: int) -> Value:
        """The sum along an axis."""
        return self.reduce("add", axis)

    def max(self, axis: int) -> Value:
        """The greatest element along an axis."""
        return self.reduce("maximumf" if is_float(self.element) else "maxsi", axis)


class Product(Value):
    """A product of matrices. It becomes an op where it is used, together with what it is added to."""

    def __init__(self, a: Value, b: Value) -> None:
        super().__init__(None)
        self.a, self.b = a, b

    def _build(self) -> mlir.Value:
        return self._op(None)

    def _op(self, c: Value | None) -> mlir.Value:
        element = c.element if c is not None else "f32" if is_float(self.a.element) else "i32"
        kind = self.a._like((self.a.shape[0], self.b.shape[1]), element)
        return xetile.tile_mma(self.a.ir, self.b.ir, None if c is None else c.ir, d=kind)

    def plus(self, c: Value) -> Value:
        """The product added to a matrix."""
        return Value(self._op(c))


class Tile(_Held):
    """A tile of a matrix in memory."""

    @property
    def type(self) -> xetile.Tile:
        """What it is."""
        return xetile.Tile.of(self.ir)

    def load(self, padding: Number | None = None) -> Value:
        """What is there. Outside of the matrix it is `padding`, or zero."""
        element = self.type.element
        spelled = float(padding or 0) if is_float(element) else int(padding or 0)
        given = None if padding is None else f"{spelled} : {element}"
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
        self.ir = xetile.update_tile_offset(self.ir, [_index(rows), _index(columns)])


class Array:
    """An argument of a kernel: an array in memory.

    Attributes:
        ir: the memref.
    """

    def __init__(self, value: mlir.Value) -> None:
        self.ir = value
        self._extents: dict[int, Value] = {}

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
        element = str(mlir.MemRefType(self.ir.type).element_type)
        kind = xetile.Tile(tuple(shape), element, xetile.TileAttr(wg_map=map))
        return Tile(xetile.init_tile(self.ir, [_index(n) for n in at], tile=kind.to_ir()))


def full(shape: Sequence[int], number: Number, dtype: Any = np.float32, map: WgMap | None = None) -> Value:
    """A vector of the same number."""
    _trace()
    return Value(_constant(mlir.Type.parse(vector_text(tuple(shape), element_name(dtype))), number, map))


def zeros(shape: Sequence[int], dtype: Any = np.float32, map: WgMap | None = None) -> Value:
    """A vector of zeros."""
    return full(shape, 0, dtype, map)


def block_id(dimension: str) -> Value:
    """The workgroup's place in the grid along "x", "y" or "z"."""
    return Value(gpu.block_id(gpu.Dimension[dimension]))


def grid_size(dimension: str) -> Value:
    """Workgroups along "x", "y" or "z"."""
    return Value(gpu.grid_dim(gpu.Dimension[dimension]))


def _unary(name: str) -> Callable[[Value], Value]:
    def apply(value: Value) -> Value:
        return Value(getattr(math, name)(value.ir))

    apply.__name__ = name
    apply.__doc__ = f"`math.{name}` of each element."
    return apply


exp, log, sqrt, rsqrt, erf, tanh = (_unary(n) for n in ("exp", "log", "sqrt", "rsqrt", "erf", "tanh"))


def maximum(a: Value, b: Value | Number) -> Value:
    """The greater of two numbers, element by element."""
    return a._apply(b, "arith.maximumf", "arith.maxsi")


def range_(start: int | Value, stop: int | Value, step: int | Value = 1) -> Iterator[Value]:
    """A loop of the kernel: its body is built once, and what it assigns in place is carried from turn to turn."""
    bounds = [b.ir if isinstance(b, Value) else arith.constant(mlir.IndexType.get(), b) for b in (start, stop, step)]
    draft = scf.ForOp(*bounds)
    before = {held: held.ir for held in _trace().alive() if held.is_built}
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
        return compile(self.module, self.name, **options)

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
        _TRACES.append(_Trace())
        try:
            with (
                build.module(current()) as module,
                build.gpu_module("kernels"),
                build.kernel(function.__name__, *types) as values,
            ):
                function(*map(Array, values))
        finally:
            _TRACES.pop()
        return TileKernel(function.__name__, module)

    return make
