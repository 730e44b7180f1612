"""The state of the kernel that is being built, and the base classes of objects that hold its SSA values."""

from __future__ import annotations

import math
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from mlir import ir as mlir
from mlir.dialects import arith

from xegpu_py.dialects.xetile import WgMap
from xegpu_py.ir.builtin import vector_of, vector_text
from xegpu_py.ir.numbers import number_attribute
from xegpu_py.language.types import DType, dtype_of
from xegpu_py.target import DEFAULT, Target
from xegpu_py.target import target as target_of

if TYPE_CHECKING:
    from typing_extensions import Self

Number = int | float

MOST_ELEMENTS = 1 << 20
"""The most elements of a value, as in Triton. The registers of a workgroup hold less than that."""


class Evaluation(Protocol):
    """Evaluates ops as soon as they are built (`engine="eager"`)."""

    def built(self) -> None:
        """Evaluate the ops that have been built."""

    def value(self, value: mlir.Value) -> np.ndarray[Any, Any]:
        """The number or the elements of a value."""


class BuildState(threading.local):
    """The kernels that this thread is building, each in its own MLIR context."""

    def __init__(self) -> None:
        self._kernels: list[tuple[mlir.Context, Evaluation | None, Target]] = []
        self._handles: list[list[list[weakref.ref[Handle]]]] = []
        self._elementwise = ""

    @contextmanager
    def elementwise(self, caller: str) -> Iterator[None]:
        """Call a function that works on each element, for which a function of the language gives it whole values.

        Args:
            caller: the function of the language, for the error message.
        """
        outer, self._elementwise = self._elementwise, caller
        try:
            yield
        finally:
            self._elementwise = outer

    def check_together(self, what: str) -> None:
        """Check that an operation on several elements of a value is not in a function that works on each element.

        Raises:
            TypeError: if it is.
        """
        if self._elementwise:
            raise TypeError(f"the function of {self._elementwise} works on each element: it cannot {what}")

    def enter(self, evaluation: Evaluation | None = None, target: str = DEFAULT) -> None:
        """Begin a kernel in the current context.

        Args:
            evaluation: evaluates ops as they are built; None for a kernel that is compiled.
            target: the GPU for which the kernel is built.

        Raises:
            ValueError: if the target does not exist.
        """
        self._kernels.append((mlir.Context.current, evaluation, target_of(target)))
        self._handles.append([[]])

    @property
    def is_active(self) -> bool:
        """Whether this thread is building a kernel."""
        return bool(self._kernels)

    def leave(self) -> None:
        """End the innermost kernel."""
        self._kernels.pop()
        self._handles.pop()

    @contextmanager
    def inside(self, block: mlir.Block) -> Iterator[None]:
        """Build ops at the end of a block of a loop or branch."""
        self._handles[-1].append([])
        try:
            with mlir.InsertionPoint(block):
                yield
        finally:
            self._handles[-1].pop()

    def note(self, handle: Handle) -> None:
        """Note that a handle was made in the innermost loop or branch."""
        if self.evaluation is None:
            self._handles[-1][-1].append(weakref.ref(handle))

    @property
    def handles(self) -> list[Handle]:
        """The handles that were made in the loops and branches around the insertion point and may still be used."""
        return [handle for made in self._handles[-1] for ref in made if (handle := ref()) is not None]

    @property
    def target(self) -> Target:
        """The GPU for which the innermost kernel is built."""
        return self._kernels[-1][2]

    @property
    def evaluation(self) -> Evaluation | None:
        """Evaluates ops as they are built; None for a kernel that is compiled."""
        return self._kernels[-1][1] if self._kernels else None

    def built(self) -> None:
        """Evaluate the ops that have been built, in a kernel that runs as it is built."""
        evaluation = self.evaluation
        if evaluation is not None:
            evaluation.built()

    def check(self, context: mlir.Context | None = None) -> None:
        """Check that a value is used in the kernel that made it.

        Args:
            context: the value's context; without it, only that a kernel is being built is checked.

        Raises:
            RuntimeError: if no kernel, or another one, is being built.
        """
        if not self._kernels:
            raise RuntimeError("values of kernels exist only in a function that is compiled as a kernel")
        if context is not None and context != self._kernels[-1][0]:
            raise RuntimeError("a value of one kernel is used in another")


BUILDING = BuildState()


class Held(ABC):
    """An object of a kernel's Python function that holds an SSA value.

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

    @abstractmethod
    def with_ir(self, value: mlir.Value) -> Held:
        """The same object with another SSA value of the same type."""


class Handle(Held):
    """An object whose SSA value methods replace in place, as `advance` does; loops carry all of them."""

    def __init__(self, value: mlir.Value) -> None:
        super().__init__(value)
        BUILDING.note(self)

    @property
    def ir(self) -> mlir.Value:
        BUILDING.check(self._ir.context)
        return self._ir

    @ir.setter
    def ir(self, value: mlir.Value) -> None:
        self._ir = value


def static_extent(n: Any, what: str = "an extent") -> int:
    """A number of elements that is known at compile time.

    Raises:
        TypeError: if it is not an integer, or known only at run time.
    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        shown = n.describe() if isinstance(n, Elements) else repr(n)
        raise TypeError(f"{what} is an integer that is known at compile time, not {shown}")
    return int(n)


def static_shape(shape: Any) -> tuple[int, ...]:
    """A shape; one number is the shape of a line, as in numpy.

    Raises:
        TypeError: as `static_extent`.
        ValueError: if an extent is not positive.
    """
    found = tuple(map(static_extent, shape)) if isinstance(shape, Sequence) else (static_extent(shape),)
    if any(n < 1 for n in found):
        raise ValueError(f"a shape has positive extents, unlike {found}")
    return found


def matrix_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of the vector that holds a value: XeTile has lines and matrices, so leading dimensions become one."""
    shape = tuple(shape)
    return shape if len(shape) <= 2 else (math.prod(shape[:-1]), shape[-1])


class Elements(Held):
    """Elements in registers: the base of `Value`, which `Shapes`, `Operators`, `Conversions` and `Reductions` extend.

    Attributes:
        dtype: the element type, with the sign that MLIR's integers do not have.
        shape: the extents, of any number of dimensions. The SSA value is a scalar, a line, or the matrix in which the
            leading dimensions are one.
    """

    def __init__(self, value: mlir.Value, dtype: DType | None = None, shape: Sequence[int] | None = None) -> None:
        super().__init__(value)
        text = str(value.type)
        held: tuple[int, ...] = ()
        element = text
        if text.startswith("vector<"):
            held, element = vector_of(text)
        self.shape: tuple[int, ...] = held if shape is None else tuple(shape)
        self.dtype = dtype_of(element) if dtype is None else dtype
        assert self.dtype.mlir == element and matrix_shape(self.shape) == held
        if self.size > MOST_ELEMENTS:
            raise ValueError(f"a value has at most {MOST_ELEMENTS} elements, unlike {self.describe()}")

    @classmethod
    def constant(cls, dtype: DType, number: Number | bool, shape: Sequence[int] = (), map: WgMap | None = None) -> Self:
        """A constant, or a vector filled with it.

        Raises:
            OverflowError: if it does not fit the type.
        """
        BUILDING.check()
        number = dtype.signless(number)
        held = matrix_shape(shape)
        kind = mlir.Type.parse(vector_text(held, dtype.mlir) if held else dtype.mlir)
        made: mlir.Value = arith.constant(kind, number_attribute(kind, number))
        if map is not None:
            made.owner.operation.attributes["map"] = map.to_ir()
        return cls(made, dtype, shape)

    def with_ir(self, value: mlir.Value) -> Self:
        return type(self)(value, self.dtype, self.shape)

    @property
    def ndim(self) -> int:
        """Its number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Its number of elements."""
        return math.prod(self.shape)

    numel = size

    def describe(self) -> str:
        """Its type and shape for diagnostics: `float32` or `float32[32, 64]`."""
        return f"{self.dtype}{list(self.shape) if self.shape else ''}"

    def _type(self, shape: Sequence[int], dtype: DType | None = None) -> mlir.Type:
        """MLIR's type of a value of this shape, by default with these elements."""
        element, held = (dtype or self.dtype).mlir, matrix_shape(shape)
        return mlir.Type.parse(vector_text(held, element) if held else element)

    def _made(self, value: mlir.Value, dtype: DType | None = None, shape: Sequence[int] | None = None) -> Self:
        """Another value, by default of this element type and shape."""
        return type(self)(value, dtype or self.dtype, self.shape if shape is None else tuple(shape))

    def _number(self, number: Number | bool) -> Self:
        """A number of this element type in this shape."""
        return self.constant(self.dtype, number, self.shape)

    def _selected(self, a: Self, b: Self) -> Self:
        """Elements of `a` where this mask is set, and of `b` elsewhere, all of one shape."""
        return a._made(arith.select(self.ir, a.ir, b.ir))


class Deferred(ABC):
    """An expression whose value is computed when it is used."""

    @property
    @abstractmethod
    def value(self) -> Any:
        """Its value."""

    @abstractmethod
    def plus(self, c: Any) -> Any:
        """The value of its sum with `c`."""


def axis_of(axis: int, rank: int) -> int:
    """The number of a dimension; negative numbers count from the last one.

    Raises:
        ValueError: if there is no such dimension.
    """
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise TypeError(f"an axis is an integer that is known at compile time, not {axis!r}")
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of bounds for a value of dimension {rank}")
    return axis % rank


def around(shape: Sequence[int], axis: int) -> tuple[int, int, int]:
    """The elements before a dimension, its extent, and the elements after it."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
