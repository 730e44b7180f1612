"""The values of tile kernels: scalars, and lines and matrices of elements in registers.

A `Value` is immutable: every operator gives another one. `Handle`s stand for places in memory, which `advance` moves;
the compiler carries both through loops and branches.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np
from mlir import ir as mlir
from mlir.dialects import arith, math, vector

from xegpu_py.dialects import xetile
from xegpu_py.dialects.xetile import WgMap
from xegpu_py.ir.builtin import vector_of, vector_text
from xegpu_py.ir.numbers import number_attribute
from xegpu_py.language import types
from xegpu_py.language.types import DType, dtype_of

Number = int | float


def element_name(dtype: Any) -> str:
    """MLIR's element type of a type that `dtype_of` knows.

    Raises:
        ValueError: if there is none.
    """
    return dtype_of(dtype).mlir


class Evaluation(Protocol):
    """Evaluates ops as soon as they are built (`engine="eager"`)."""

    def built(self) -> None:
        """Evaluate what has been built."""

    def value(self, value: mlir.Value) -> np.ndarray[Any, Any]:
        """The number or the elements of a value."""


class BuildState(threading.local):
    """Whether this thread builds a kernel. Its values exist in its own MLIR context only."""

    def __init__(self) -> None:
        self._contexts: list[mlir.Context] = []
        self._evaluations: list[Evaluation | None] = []

    def enter(self, evaluation: Evaluation | None = None) -> None:
        """A kernel is begun in the current context, which runs as it is built if there is an evaluation."""
        self._contexts.append(mlir.Context.current)
        self._evaluations.append(evaluation)

    def leave(self) -> None:
        """The innermost kernel is complete."""
        self._contexts.pop()
        self._evaluations.pop()

    @property
    def evaluation(self) -> Evaluation | None:
        """What evaluates ops as they are built; None where a kernel is compiled."""
        return self._evaluations[-1] if self._evaluations else None

    def built(self) -> None:
        """Let ops that have been built be evaluated, if they are."""
        evaluation = self.evaluation
        if evaluation is not None:
            evaluation.built()

    def check(self, context: mlir.Context | None = None) -> None:
        """Refuse what is used outside of a kernel, or in a kernel other than the one that made it.

        Raises:
            RuntimeError: if it is.
        """
        if not self._contexts:
            raise RuntimeError("values of kernels exist only in a function that is compiled as a kernel")
        if context is not None and context != self._contexts[-1]:
            raise RuntimeError("a value of one kernel is used in another")


BUILDING = BuildState()


class Held:
    """What an SSA value stands for.

    Attributes:
        ir: the SSA value.
    """

    def __init__(self, value: mlir.Value) -> None:
        BUILDING.check(value.context)
        BUILDING.built()
        self._ir = value

    @property
    def ir(self) -> mlir.Value:
        BUILDING.check(self._ir.context)
        return self._ir

    def with_ir(self, value: mlir.Value) -> Held:
        """The same kind of thing, for another SSA value of the same type."""
        raise NotImplementedError


class Handle(Held):
    """A place in memory that methods move in place."""

    @property
    def ir(self) -> mlir.Value:
        BUILDING.check(self._ir.context)
        return self._ir

    @ir.setter
    def ir(self, value: mlir.Value) -> None:
        self._ir = value


def constant(dtype: DType, number: Number | bool, shape: Sequence[int] = (), map: WgMap | None = None) -> Value:
    """A known number, or a vector of it.

    Raises:
        OverflowError: if it does not fit the type.
    """
    BUILDING.check()
    if not dtype.holds(number):
        raise OverflowError(f"{number} does not fit {dtype}")
    if dtype.kind == "uint" and number >= 1 << dtype.bits - 1:
        number -= 1 << dtype.bits
    kind = mlir.Type.parse(vector_text(tuple(shape), dtype.mlir) if shape else dtype.mlir)
    made: mlir.Value = arith.constant(kind, number_attribute(kind, number))
    if map is not None:
        made.owner.operation.attributes["map"] = map.to_ir()
    return Value(made, dtype)


def value_of(given: Any, like: DType | None = None) -> Value:
    """A value, or the one that a Python number becomes: of type `like` where it is given.

    Raises:
        TypeError: if it is neither value nor number.
        OverflowError: if the number does not fit the type.
    """
    if isinstance(given, Value):
        return given
    dtype = types.of_scalar(given) if like is None else like
    if like is not None and not isinstance(given, (bool, int, float, np.generic)):
        raise TypeError(f"{given!r} cannot become a value of the kernel")
    return constant(dtype, given.item() if isinstance(given, np.generic) else given)


def as_index(number: int | Value) -> int | mlir.Value:
    """An index as builders take it: an integer, or an SSA value of type `index`.

    Raises:
        TypeError: if it is no integer.
    """
    if isinstance(number, Value):
        if number.shape or not number.dtype.is_integer:
            raise TypeError(f"an offset must be an integer, not {number.describe()}")
        return number.to(types.index).ir
    if isinstance(number, (bool, float)):
        raise TypeError(f"an offset must be an integer, not {number!r}")
    return int(number)


class Value(Held):
    """A scalar, or a line or matrix of elements in registers. Operators work element by element, as in numpy.

    Attributes:
        ir: the SSA value.
        dtype: its element type, with the sign that MLIR's integers do not have.
    """

    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None

    def __init__(self, value: mlir.Value, dtype: DType | None = None) -> None:
        super().__init__(value)
        text = str(value.type)
        self.shape: tuple[int, ...] = ()
        element = text
        if text.startswith("vector<"):
            self.shape, element = vector_of(text)
        self.dtype = types.of_mlir(element) if dtype is None else dtype
        assert self.dtype.mlir == element

    def with_ir(self, value: mlir.Value) -> Value:
        return Value(value, self.dtype)

    @property
    def element(self) -> str:
        """MLIR's type of an element."""
        return self.dtype.mlir

    @property
    def ndim(self) -> int:
        """Its number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Its number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def describe(self) -> str:
        """What it is, for diagnostics: `float32` or `float32[32, 64]`."""
        return f"{self.dtype}{list(self.shape) if self.shape else ''}"

    def __repr__(self) -> str:
        if BUILDING.evaluation is None:
            return f"<value of the kernel, {self.describe()}>"
        found = self.numpy()
        return f"{self.dtype}({found})" if not self.shape else f"{self.dtype}{list(self.shape)} {found}"

    def __format__(self, form: str) -> str:
        if BUILDING.evaluation is None or self.shape:
            return format(repr(self), form)
        return format(self.numpy().item(), form)

    def numpy(self) -> np.ndarray[Any, Any]:
        """The number or the elements, where the kernel runs as it is built (`engine="eager"`).

        Raises:
            TypeError: in a kernel that is compiled.
        """
        evaluation = BUILDING.evaluation
        if evaluation is None:
            self._known_only_as_it_runs("numpy()")
        found = evaluation.value(self.ir)
        return found.view(self.dtype.dtype) if self.dtype.kind == "uint" and self.dtype.dtype else found

    # What Python would decide as it builds the kernel, and not as the kernel runs, unless it runs as it is built.

    def _known_only_as_it_runs(self, what: str) -> NoReturn:
        raise TypeError(f"{what} of a value that is known only as the kernel runs ({self.describe()})")

    def _scalar(self, what: str) -> Any:
        if BUILDING.evaluation is None:
            self._known_only_as_it_runs(what)
        if self.shape:
            raise TypeError(f"{what} of {self.describe()} is ambiguous; use .any() or .all()")
        return self.numpy().item()

    def __bool__(self) -> bool:
        return bool(self._scalar("the truth value"))

    def __int__(self) -> int:
        return int(self._scalar("int()"))

    def __index__(self) -> int:
        if self.dtype.is_float and BUILDING.evaluation is not None:
            raise TypeError(f"{self.describe()} is no integer")
        return int(self._scalar("the number"))

    def __float__(self) -> float:
        return float(self._scalar("float()"))

    def __iter__(self) -> Iterator[Any]:
        self._known_only_as_it_runs("iteration")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar has no length")
        return self.shape[0]

    # Shapes.

    def _type(self, shape: Sequence[int], dtype: DType | None = None) -> mlir.Type:
        element = (dtype or self.dtype).mlir
        return mlir.Type.parse(vector_text(tuple(shape), element) if shape else element)

    def reshape(self, *shape: Any) -> Value:
        """The same elements in row-major order in another shape; one extent may be -1.

        Raises:
            ValueError: if it has another number of elements.
        """
        wanted: list[int] = list(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else list(shape)
        if wanted.count(-1) == 1:
            rest = int(np.prod([n for n in wanted if n != -1], dtype=np.int64))
            if rest and self.size % rest == 0:
                wanted[wanted.index(-1)] = self.size // rest
        if any(n < 1 for n in wanted) or int(np.prod(wanted, dtype=np.int64)) != self.size:
            raise ValueError(f"cannot reshape {self.describe()} into shape {tuple(wanted)}")
        if tuple(wanted) == self.shape:
            return self
        if not wanted:
            return Value(vector.extract(self.ir, [], [0] * self.ndim), self.dtype)
        if not self.shape:
            return self.broadcast(wanted)
        return Value(vector.shape_cast(self._type(wanted), self.ir), self.dtype)

    def expand_dims(self, axis: int) -> Value:
        """The value with a dimension of extent 1 inserted before `axis`."""
        at = _axis(axis, self.ndim + 1)
        return self.reshape((*self.shape[:at], 1, *self.shape[at:]))

    def broadcast(self, shape: Sequence[int]) -> Value:
        """Repeated along dimensions of extent 1 and along new leading ones, by numpy's rules.

        Raises:
            ValueError: if the shapes do not fit; numpy's message.
        """
        shape = tuple(shape)
        if self.shape == shape:
            return self
        if np.broadcast_shapes(self.shape, shape) != shape:
            raise ValueError(f"cannot broadcast shape {self.shape} to {shape}")
        if not self.shape:
            return Value(vector.broadcast(self._type(shape), self.ir), self.dtype)
        found = self.reshape((*(1,) * (len(shape) - self.ndim), *self.shape))
        for dim in range(len(shape)):
            if found.shape[dim] != shape[dim]:
                wide = tuple(shape[d] if d == dim else n for d, n in enumerate(found.shape))
                found = Value(xetile.broadcast(found.ir, (dim,), result=self._type(wide)), self.dtype)
        return found

    broadcast_to = broadcast

    @property
    def T(self) -> Value:
        """The transpose of a matrix."""
        if self.ndim < 2:
            return self
        if self.ndim > 2:
            raise ValueError(f"T transposes matrices, not {self.describe()}")
        return Value(xetile.transpose(self.ir, (1, 0), result=self._type(self.shape[::-1])), self.dtype)

    def __getitem__(self, key: Any) -> Value:
        """A part, by constant slices and numbers; None and `...` as in numpy."""
        keys = list(key) if isinstance(key, tuple) else [key]
        if keys.count(Ellipsis) > 1:
            raise IndexError("an index can only have a single ellipsis ('...')")
        used = sum(k is not None and k is not Ellipsis for k in keys)
        if used > self.ndim:
            raise IndexError(f"too many indices: {self.describe()} has {self.ndim} dimensions, but {used} were indexed")
        fill = [slice(None)] * (self.ndim - used)
        at = keys.index(Ellipsis) if Ellipsis in keys else len(keys)
        keys = keys[:at] + fill + keys[at + 1 :]
        offsets, sizes, result = [], [], []
        rest = iter(self.shape)
        for k in keys:
            if k is None:
                result.append(1)
                continue
            extent = next(rest)
            start, count, kept = _part(k, extent)
            offsets.append(start)
            sizes.append(count)
            result += [count] if kept else []
        found = self
        if tuple(sizes) != self.shape:
            made = vector.extract_strided_slice(self._type(sizes), self.ir, offsets, sizes, [1] * self.ndim)
            found = Value(made, self.dtype)
        return found.reshape(tuple(result))

    # Arithmetic.

    def _both(self, other: Any, dtype: DType | None = None) -> tuple[Value, Value]:
        """Both operands in the type in which they are combined, and in the same shape."""
        if isinstance(other, Value):
            dtype = dtype or types.promote(self.dtype, other.dtype)
            shape = tuple(np.broadcast_shapes(self.shape, other.shape))
            return self.to(dtype).broadcast(shape), other.to(dtype).broadcast(shape)
        if isinstance(other, Product):
            return self._both(other.value, dtype)
        dtype = dtype or types.with_scalar(self.dtype, other)
        if dtype.kind == "bool" and not isinstance(other, (bool, np.bool_)):
            dtype = types.int32
        return self.to(dtype), constant(dtype, other, self.shape)

    def _arith(self, other: Any, name: str, *, swapped: bool = False) -> Any:
        """`arith.NAMEf`, or `arith.NAMEi` of integers."""
        if not isinstance(other, (Value, Product, bool, int, float, np.generic)):
            return NotImplemented
        a, b = self._both(other)
        if a.dtype.kind == "bool":
            a, b = a.to(types.int32), b.to(types.int32)
        if swapped:
            a, b = b, a
        return a._op(f"arith.{name}{'f' if a.dtype.is_float else 'i'}", b)

    def _op(self, name: str, *others: Value, dtype: DType | None = None) -> Value:
        result = dtype or self.dtype
        operands = [self.ir, *(o.ir for o in others)]
        return Value(mlir.Operation.create(name, [self._type(self.shape, result)], operands).result, result)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Product):
            return other.plus(self)
        return self._arith(other, "add")

    def __radd__(self, other: Any) -> Any:
        return self._arith(other, "add", swapped=True)

    def __sub__(self, other: Any) -> Any:
        return self._arith(other, "sub")

    def __rsub__(self, other: Any) -> Any:
        return self._arith(other, "sub", swapped=True)

    def __mul__(self, other: Any) -> Any:
        return self._arith(other, "mul")

    def __rmul__(self, other: Any) -> Any:
        return self._arith(other, "mul", swapped=True)

    def _divided(self, other: Any, swapped: bool) -> Any:
        if not isinstance(other, (Value, Product, bool, int, float, np.generic)):
            return NotImplemented
        if isinstance(other, Product):
            other = other.value
        if isinstance(other, Value):
            dtype = types.promote(self.dtype, other.dtype)
        else:
            dtype = types.with_scalar(self.dtype, other)
        a, b = self._both(other, dtype if dtype.is_float else types.float32)
        return (b if swapped else a)._op("arith.divf", a if swapped else b)

    def __truediv__(self, other: Any) -> Any:
        return self._divided(other, False)

    def __rtruediv__(self, other: Any) -> Any:
        return self._divided(other, True)

    def _integers(self, other: Any, sign: str, swapped: bool, hint: str) -> tuple[Value, Value]:
        a, b = self._both(other)
        if a.dtype.is_float or (a.dtype.kind == "bool" and not hint):
            raise TypeError(f"'{sign}' needs integers, not {a.dtype}{f'; {hint}' if hint and a.dtype.is_float else ''}")
        if a.dtype.kind == "bool" and hint:
            a, b = a.to(types.int32), b.to(types.int32)
        return (b, a) if swapped else (a, b)

    def _floordiv(self, other: Any, swapped: bool) -> Value:
        a, b = self._integers(other, "//", swapped, "floor(a / b) rounds a quotient down")
        return a._op("arith.floordivsi" if a.dtype.is_signed else "arith.divui", b)

    def __floordiv__(self, other: Any) -> Value:
        return self._floordiv(other, False)

    def __rfloordiv__(self, other: Any) -> Value:
        return self._floordiv(other, True)

    def _modulo(self, other: Any, swapped: bool) -> Value:
        a, b = self._integers(other, "%", swapped, "a - b * floor(a / b) is the remainder of a quotient rounded down")
        if not a.dtype.is_signed:
            return a._op("arith.remui", b)
        # Python's remainder has the divisor's sign, arith's the dividend's.
        rest = a._op("arith.remsi", b)
        differs = ((rest ^ b) < 0) & (rest != 0)
        return rest + differs.to(rest.dtype) * b

    def __mod__(self, other: Any) -> Value:
        return self._modulo(other, False)

    def __rmod__(self, other: Any) -> Value:
        return self._modulo(other, True)

    def __pow__(self, other: Any) -> Value:
        if isinstance(other, int) and not isinstance(other, bool) and 0 < other <= 64:
            found, square, rest = None, self, other
            while rest:
                if rest & 1:
                    found = square if found is None else found * square
                rest >>= 1
                square = square * square if rest else square
            assert found is not None
            return found
        a, b = self._both(other)
        if not a.dtype.is_float:
            raise TypeError("'**' needs floating-point values, or a constant exponent of 1 to 64")
        return Value(math.powf(a.ir, b.ir), a.dtype)

    def _bits(self, other: Any, sign: str, name: str, swapped: bool = False) -> Value:
        a, b = self._both(other)
        if a.dtype.is_float:
            raise TypeError(f"'{sign}' needs integers or truth values, not {a.dtype}")
        # Two truth values stay truth values here, unlike in arithmetic.
        if isinstance(other, Value) and self.dtype.kind == other.dtype.kind == "bool":
            a, b = self._both(other, types.bool_)
        if swapped:
            a, b = b, a
        return a._op(f"arith.{name}", b)

    def __and__(self, other: Any) -> Value:
        return self._bits(other, "&", "andi")

    def __or__(self, other: Any) -> Value:
        return self._bits(other, "|", "ori")

    def __xor__(self, other: Any) -> Value:
        return self._bits(other, "^", "xori")

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def _shift(self, other: Any, sign: str, swapped: bool) -> Value:
        a, b = self._integers(other, sign, swapped, "")
        count = b if swapped else other
        if isinstance(count, int) and not 0 <= count < a.dtype.bits:
            raise ValueError(f"cannot shift {a.dtype} by {count} bits")
        return a._op("arith.shli" if sign == "<<" else "arith.shrsi" if a.dtype.is_signed else "arith.shrui", b)

    def __lshift__(self, other: Any) -> Value:
        return self._shift(other, "<<", False)

    def __rlshift__(self, other: Any) -> Value:
        return self._shift(other, "<<", True)

    def __rshift__(self, other: Any) -> Value:
        return self._shift(other, ">>", False)

    def __rrshift__(self, other: Any) -> Value:
        return self._shift(other, ">>", True)

    def __invert__(self) -> Value:
        if self.dtype.is_float:
            raise TypeError(f"'~' needs integers or truth values, not {self.dtype}")
        ones = True if self.dtype.kind == "bool" else -1 if self.dtype.is_signed else (1 << self.dtype.bits) - 1
        return self._op("arith.xori", constant(self.dtype, ones, self.shape))

    def __neg__(self) -> Value:
        if self.dtype.is_float:
            return self._op("arith.negf")
        return 0 - self

    def __pos__(self) -> Value:
        return self

    def __abs__(self) -> Value:
        if self.dtype.is_float:
            return self._op("math.absf")
        return self._op("math.absi") if self.dtype.is_signed else self

    def _compare(self, other: Any, real: str, whole: str) -> Any:
        if not isinstance(other, (Value, Product, bool, int, float, np.generic)):
            return NotImplemented
        if not isinstance(other, (Value, Product)) and self.dtype.is_integer and not isinstance(other, (bool, float)):
            # A number beyond the type compares with all elements alike: that is a mistake rather than a wish.
            types.with_scalar(self.dtype, other)
        a, b = self._both(other)
        if a.dtype.is_float:
            return Value(arith.cmpf(arith.CmpFPredicate[real], a.ir, b.ir), types.bool_)
        name = whole if whole in ("eq", "ne") else f"{'s' if a.dtype.is_signed else 'u'}{whole}"
        return Value(arith.cmpi(arith.CmpIPredicate[name], a.ir, b.ir), types.bool_)

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, "OLT", "lt")

    def __le__(self, other: Any) -> Any:
        return self._compare(other, "OLE", "le")

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, "OGT", "gt")

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, "OGE", "ge")

    def __eq__(self, other: Any) -> Any:
        return self._compare(other, "OEQ", "eq")

    def __ne__(self, other: Any) -> Any:
        return self._compare(other, "UNE", "ne")

    def equals(self, other: Any) -> Value:
        """Where the elements are equal: `==`."""
        found: Value = self == other
        return found

    def __matmul__(self, other: Value) -> Product:
        return Product(self, other)

    # Conversions.

    def to(self, dtype: Any) -> Value:
        """The numbers in another type, as numpy's `astype`.

        Floating-point values are rounded to nearest even; toward zero where they become integers, which must hold them.
        Integers keep their low bits. True is 1. A number is true unless it is zero.
        """
        to = dtype_of(dtype)
        old = self.dtype
        if to == old:
            return self
        if to.kind == "bool":
            return self != 0
        if old.is_float and to.is_float:
            return self._float_to_float(to)
        if to.is_float:
            # bool and index have no conversions of their own.
            wide = self.to({"bool": types.uint8, "index": types.int64}.get(old.kind, old))
            return wide._op("arith.sitofp" if wide.dtype.is_signed else "arith.uitofp", dtype=to)
        if old.is_float:
            through = types.int64 if to.kind == "index" else to
            found = self._op("arith.fptosi" if through.is_signed else "arith.fptoui", dtype=through)
            return found.to(to)
        if "index" in (old.kind, to.kind):
            other = old if to.kind == "index" else to
            signed = other.is_signed
            if other.kind == "bool":
                return self.to(types.int64).to(types.index)
            return self._op("arith.index_cast" if signed else "arith.index_castui", dtype=to)
        if to.bits == old.bits:
            return Value(self.ir, to)
        if to.bits < old.bits:
            return self._op("arith.trunci", dtype=to)
        return self._op("arith.extsi" if old.is_signed else "arith.extui", dtype=to)

    astype = to

    def _float_to_float(self, to: DType) -> Value:
        old = self.dtype
        if to.bits > old.bits or (to.bits == old.bits and to.digits > old.digits and to.bits == 32):
            return self._op("arith.extf", dtype=to)
        if to.bits == old.bits and to.bits < 32:
            # Neither of two types of one width holds the other; float32 holds both.
            return self.to(types.float32).to(to)
        return self._op("arith.truncf", dtype=to)

    def bitcast(self, dtype: Any) -> Value:
        """The same bits as elements of another type of the same width.

        Raises:
            TypeError: if the widths differ.
        """
        to = dtype_of(dtype)
        if to.bits != self.dtype.bits or "index" in (to.kind, self.dtype.kind):
            raise TypeError(f"cannot take the bits of {self.dtype} for {to}: they have {self.dtype.bits} and {to.bits}")
        if to.mlir == self.dtype.mlir:
            return Value(self.ir, to)
        return self._op("arith.bitcast", dtype=to)

    # Reductions.

    def reduce(self, kind: str, axis: int | None = None, group: int | None = None) -> Value:
        """The elements along an axis combined, so that it has extent 1 then; or each `group` of them; all for None.

        Raises:
            ValueError: if there is no such axis.
        """
        if axis is None:
            if group is not None:
                raise ValueError("a group needs an axis")
            found = self
            for dim in range(self.ndim):
                found = found.reduce(kind, dim)
            return found.reshape(())
        dim = _axis(axis, self.ndim)
        if self.ndim == 1:
            return self.expand_dims(0).reduce(kind, 1, group).reshape((self.shape[0] // (group or self.shape[0]),))
        shape = tuple(n // (group or n) if d == dim else n for d, n in enumerate(self.shape))
        made = xetile.reduction(kind, self.ir, (dim,), result=self._type(shape), reduction_size=group)
        return Value(made, self.dtype)

    def _kind(self, real: str, signed: str, unsigned: str) -> str:
        return real if self.dtype.is_float else signed if self.dtype.is_signed else unsigned

    def sum(self, axis: int | None = None, group: int | None = None) -> Value:
        """The sum along an axis, which keeps extent 1; of each `group` of elements; or of all. bools count as int32."""
        if self.dtype.kind == "bool":
            return self.to(types.int32).sum(axis, group)
        return self.reduce("add", axis, group)

    def prod(self, axis: int | None = None, group: int | None = None) -> Value:
        """The product along an axis, likewise."""
        return self.reduce("mul", axis, group)

    def max(self, axis: int | None = None, group: int | None = None) -> Value:
        """The greatest element along an axis, likewise. NaN where one is NaN."""
        return self.reduce(self._kind("maximumf", "maxsi", "maxui"), axis, group)

    def min(self, axis: int | None = None, group: int | None = None) -> Value:
        """The least element along an axis, likewise. NaN where one is NaN."""
        return self.reduce(self._kind("minimumf", "minsi", "minui"), axis, group)

    def any(self, axis: int | None = None) -> Value:
        """Whether any element along an axis is true."""
        return self.to(types.bool_).to(types.int32).reduce("or", axis) != 0

    def all(self, axis: int | None = None) -> Value:
        """Whether all elements along an axis are true."""
        return self.to(types.bool_).to(types.int32).reduce("and", axis) != 0

    def mean(self, axis: int | None = None) -> Value:
        """The sum along an axis divided by its extent."""
        count = self.size if axis is None else self.shape[_axis(axis, self.ndim)]
        return self.sum(axis) / count

    def with_map(self, map: WgMap) -> Value:
        """The same matrix divided among subgroups by another map."""
        return Value(xetile.convert_layout(self.ir, map, result=self.ir.type), self.dtype)


class Product:
    """A product of matrices that has not been used yet. Added to a matrix it becomes one op together with the sum."""

    def __init__(self, a: Value, b: Value) -> None:
        for name, v in (("left", a), ("right", b)):
            if not isinstance(v, Value) or v.ndim != 2:
                shown = v.describe() if isinstance(v, Value) else repr(v)
                raise TypeError(f"'@' multiplies matrices, but the {name} operand is {shown}")
        if a.shape[1] != b.shape[0]:
            raise ValueError(f"'@' cannot multiply {a.describe()} by {b.describe()}")
        self.a, self.b = a, b
        self._value: Value | None = None

    @property
    def value(self) -> Value:
        """The product by itself, in float32, or int32 of integers."""
        if self._value is None:
            self._value = self._multiply(None, types.float32 if self.a.dtype.is_float else types.int32)
        return self._value

    def _multiply(self, c: Value | None, dtype: DType) -> Value:
        kind = self.a._type((self.a.shape[0], self.b.shape[1]), dtype)
        made = xetile.tile_mma(self.a.ir, self.b.ir, None if c is None else c.ir, d=kind)
        return Value(made, dtype)

    def plus(self, c: Value) -> Value:
        """The product added to a matrix."""
        if c.shape != (self.a.shape[0], self.b.shape[1]):
            return c + self.value
        return self._multiply(c, c.dtype)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Value) and other.ndim == 2:
            return self.plus(other)
        found: Value = self.value + other
        return found

    __radd__ = __add__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.value, name)


def _forward(name: str) -> Any:
    def forward(self: Product, *args: Any) -> Any:
        return getattr(self.value, name)(*args)

    forward.__name__ = name
    return forward


for _name in (
    *("sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "mod", "pow", "and", "or", "xor"),
    *("lshift", "rshift", "neg", "abs", "invert", "lt", "le", "gt", "ge", "eq", "ne", "matmul", "getitem"),
    *("bool", "int", "float", "iter", "len"),
):
    setattr(Product, f"__{_name}__", _forward(f"__{_name}__"))
Product.__hash__ = None  # type: ignore[assignment]


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of bounds for a value of dimension {rank}")
    return axis % rank


def _part(key: Any, extent: int) -> tuple[int, int, bool]:
    """Where a part of a dimension begins, its extent, and whether the dimension is kept."""
    if isinstance(key, slice):
        if key.step not in (None, 1):
            raise IndexError("slices of values have step 1")
        if any(isinstance(n, Value) for n in (key.start, key.stop)):
            raise IndexError("slices of values have constant bounds")
        start, stop, _ = key.indices(extent)
        if stop <= start:
            raise IndexError(f"a slice of {extent} elements from {start} to {stop} is empty")
        return start, stop - start, True
    if isinstance(key, (bool, Value)) or not isinstance(key, int):
        raise IndexError(f"values are indexed by constants, slices, None and '...', not by {key!r}")
    if not -extent <= key < extent:
        raise IndexError(f"index {key} is out of bounds for a dimension of extent {extent}")
    return key % extent, 1, False
