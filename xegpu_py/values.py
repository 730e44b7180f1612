"""The values of kernels that are built in Python: numbers, and matrices and lines of them in registers.

Their operators build ops of arith, math and XeTile. `xegpu_py.build` has the names of this module too.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mlir import ir as mlir
from mlir.dialects import arith, gpu, math, vector

from xegpu_py.dialects import xetile
from xegpu_py.dialects.xetile import WgMap
from xegpu_py.ir.builtin import is_float, vector_of, vector_text
from xegpu_py.ir.numbers import number_attribute
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


class Trace:
    """The kernel that is being built: its values, so that loops can see which of them change."""

    def __init__(self) -> None:
        self._made: list[weakref.ref[Held]] = []

    def add(self, held: Held) -> None:
        """A value has been made."""
        self._made.append(weakref.ref(held))

    def alive(self) -> list[Held]:
        """The values that Python still knows, in the order in which they were made."""
        self._made = [ref for ref in self._made if ref() is not None]
        return [held for ref in self._made if (held := ref()) is not None]


TRACES: list[Trace] = []
"""The kernels that are being built, the innermost last."""


def trace() -> Trace:
    """The kernel that is being built."""
    if not TRACES:
        raise RuntimeError("values of kernels can be made in a function with build.tile_kernel only")
    return TRACES[-1]


class Held:
    """Something that an SSA value stands for. Assignment in place gives it another one."""

    def __init__(self, value: mlir.Value | None) -> None:
        self._ir = value
        trace().add(self)

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


def as_index(number: int | Value) -> int | mlir.Value:
    """An index as builders take it."""
    return number.ir if isinstance(number, Value) else int(number)


def _constant(kind: mlir.Type, number: Number | bool, map: WgMap | None = None) -> mlir.Value:
    made: mlir.Value = arith.constant(kind, number_attribute(kind, number))
    if map is not None:
        made.owner.operation.attributes["map"] = map.to_ir()
    return made


class Value(Held):
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

    def _compare(self, other: Any, real: str, whole: str) -> Value:
        a, b = self._other(other)
        if is_float(self.element):
            return Value(arith.cmpf(arith.CmpFPredicate[real], a.ir, b.ir))
        return Value(arith.cmpi(arith.CmpIPredicate[whole], a.ir, b.ir))

    def __lt__(self, other: Any) -> Value:
        return self._compare(other, "OLT", "slt")

    def __le__(self, other: Any) -> Value:
        return self._compare(other, "OLE", "sle")

    def __gt__(self, other: Any) -> Value:
        return self._compare(other, "OGT", "sgt")

    def __ge__(self, other: Any) -> Value:
        return self._compare(other, "OGE", "sge")

    def equals(self, other: Any) -> Value:
        """Where the elements are equal. `==` is that of Python's objects."""
        return self._compare(other, "OEQ", "eq")

    def __and__(self, other: Any) -> Value:
        return self._apply(other, "", "arith.andi")

    def __or__(self, other: Any) -> Value:
        return self._apply(other, "", "arith.ori")

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

    def reduce(self, kind: str, axis: int, group: int | None = None) -> Value:
        """The elements along an axis combined: all of them, so that it has size 1 then, or each `group` of them."""
        dim = axis % 2
        shape = tuple(n // (group or n) if d == dim else n for d, n in enumerate(self.shape))
        return Value(xetile.reduction(kind, self.ir, (dim,), result=self._like(shape), reduction_size=group))

    def sum(self, axis: int, group: int | None = None) -> Value:
        """The sum along an axis, or of each `group` of elements."""
        return self.reduce("add", axis, group)

    def max(self, axis: int, group: int | None = None) -> Value:
        """The greatest element along an axis, or of each `group` of elements."""
        return self.reduce("maximumf" if is_float(self.element) else "maxsi", axis, group)

    def with_map(self, map: WgMap) -> Value:
        """The same matrix divided among subgroups by another map."""
        return Value(xetile.convert_layout(self.ir, map, result=self.ir.type))


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


def full(shape: Sequence[int], number: Number, dtype: Any = np.float32, map: WgMap | None = None) -> Value:
    """A vector of the same number."""
    trace()
    return Value(_constant(mlir.Type.parse(vector_text(tuple(shape), element_name(dtype))), number, map))


def zeros(shape: Sequence[int], dtype: Any = np.float32, map: WgMap | None = None) -> Value:
    """A vector of zeros."""
    return full(shape, 0, dtype, map)


def arange(count: int, map: WgMap | None = None) -> Value:
    """The indices from 0 on, as a line."""
    trace()
    made = vector.step(mlir.Type.parse(vector_text((count,), "index")))
    if map is not None:
        made.owner.operation.attributes["map"] = map.to_ir()
    return Value(made)


def where(mask: Value, a: Value, b: Value | Number) -> Value:
    """Elements of `a` where the mask is set, and of `b` elsewhere."""
    kept, other = a._other(b)
    return Value(arith.select(mask.broadcast(kept.shape).ir, kept.ir, other.ir))


def barrier() -> None:
    """Wait for all subgroups of the workgroup; what they have written can be read then."""
    gpu.barrier()


def subgroup_id() -> Value:
    """The number of the subgroup in its workgroup. Kernels with maps need it seldom."""
    return Value(gpu.subgroup_id())


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


def minimum(a: Value, b: Value | Number) -> Value:
    """The lesser of two numbers, element by element."""
    return a._apply(b, "arith.minimumf", "arith.minsi")


def maximum(a: Value, b: Value | Number) -> Value:
    """The greater of two numbers, element by element."""
    return a._apply(b, "arith.maximumf", "arith.maxsi")
