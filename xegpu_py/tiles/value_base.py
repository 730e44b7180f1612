"""The base of all values: the kernel being built, shapes, and reshaping."""

from __future__ import annotations

import itertools
import math
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from mlir import ir as mlir
from mlir.dialects import arith, vector

from xegpu_py.dialects import xetile
from xegpu_py.dialects.xetile import WgMap
from xegpu_py.ir.builtin import number_attribute, vector_of
from xegpu_py.target import DEFAULT, Target
from xegpu_py.target import target as target_of
from xegpu_py.tiles.element_types import DType, dtype_of

if TYPE_CHECKING:
    from typing_extensions import Self


# The state of the kernel that is being built, and the base classes of objects that hold its SSA values.

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
        self._shared: list[int | None] = []
        self._handles: list[list[list[weakref.ref[Handle]]]] = []
        self._elementwise = ""

    @contextmanager
    def elementwise(self, caller: str) -> Iterator[None]:
        """Call a function that works on each element, for which a function of the language gives it whole values.

        Args:
            caller: the function of the language, for the error message.
        """
        outer_caller, self._elementwise = self._elementwise, caller
        try:
            yield
        finally:
            self._elementwise = outer_caller

    def check_together(self, operation: str) -> None:
        """Check that an operation on several elements of a value is not in a function that works on each element.

        Raises:
            TypeError: if it is.
        """
        if self._elementwise:
            raise TypeError(f"the function of {self._elementwise} works on each element: it cannot {operation}")

    def enter(self, evaluation: Evaluation | None = None, target: str = DEFAULT, shares: bool = False) -> None:
        """Begin a kernel in the current context.

        Args:
            evaluation: evaluates ops as they are built; None for a kernel that is compiled.
            target: the GPU for which the kernel is built.
            shares: whether all subgroups of a workgroup work on the same values; see `take_shared`.

        Raises:
            ValueError: if the target does not exist.
        """
        self._kernels.append((mlir.Context.current, evaluation, target_of(target)))
        self._shared.append(0 if shares else None)
        self._handles.append([[]])

    @property
    def is_active(self) -> bool:
        """Whether this thread is building a kernel."""
        return bool(self._kernels)

    def leave(self) -> bool:
        """End the innermost kernel; whether it relies on subgroups that work on the same values."""
        self._kernels.pop()
        self._handles.pop()
        return bool(self._shared.pop())

    def take_shared(self, size: int) -> bool:
        """Whether elements of a value may go through so many bytes of shared local memory, of which half may be taken.

        Subgroups must work on the same values: each would overwrite the elements of the others.
        """
        bytes_taken = self._shared[-1]
        if bytes_taken is None or bytes_taken + size > self.target.slm_bytes // 2:
            return False
        self._shared[-1] = bytes_taken + size
        return True

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
        return [
            handle
            for handles_of_block in self._handles[-1]
            for ref in handles_of_block
            if (handle := ref()) is not None
        ]

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


class SsaHolder(ABC):
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
    def with_ir(self, value: mlir.Value) -> SsaHolder:
        """The same object with another SSA value of the same type."""


class Handle(SsaHolder):
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


def common_shape(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape to which these shapes broadcast by numpy's rules.

    Raises:
        ValueError: if there is none.
    """
    try:
        return tuple(np.broadcast_shapes(*map(tuple, shapes)))
    except ValueError as e:
        small, *_, large = sorted(map(tuple, shapes), key=len)
        reduced = any(small == large[:d] + large[d + 1 :] for d in range(len(large)))
        hint = "; a reduction leaves its axis out, unless it has keep_dims=True" if reduced else ""
        raise ValueError(f"{str(e).rstrip('.')}{hint}") from None


def static_extent(n: Any, title: str = "an extent") -> int:
    """A number of elements that is known at compile time.

    Raises:
        TypeError: if it is not an integer, or known only at run time.
    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        value_text = n.describe() if isinstance(n, ValueBase) else repr(n)
        raise TypeError(f"{title} is an integer that is known at compile time, not {value_text}")
    return int(n)


def static_shape(shape: Any) -> tuple[int, ...]:
    """A shape; one number is the shape of a line, as in numpy.

    Raises:
        TypeError: as `static_extent`.
        ValueError: if an extent is not positive.
    """
    extents = tuple(map(static_extent, shape)) if isinstance(shape, Sequence) else (static_extent(shape),)
    if any(n < 1 for n in extents):
        raise ValueError(f"a shape has positive extents, unlike {extents}")
    return extents


def matrix_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of the vector that holds a value: XeTile has lines and matrices, so leading dimensions become one."""
    shape = tuple(shape)
    return shape if len(shape) <= 2 else (math.prod(shape[:-1]), shape[-1])


class ValueBase(SsaHolder):
    """Elements in registers: the base of `Value`, which the classes of methods extend: `ShapeMethods` and others.

    Attributes:
        dtype: the element type, with the sign that MLIR's integers do not have.
        shape: the extents, of any number of dimensions. The SSA value is a scalar, a line, or the matrix in which the
            leading dimensions are one.
    """

    def __init__(self, value: mlir.Value, dtype: DType | None = None, shape: Sequence[int] | None = None) -> None:
        super().__init__(value)
        text = str(value.type)
        ir_shape: tuple[int, ...] = ()
        element = text
        if text.startswith("vector<"):
            ir_shape, element = vector_of(text)
        self.shape: tuple[int, ...] = ir_shape if shape is None else tuple(shape)
        self.dtype = dtype_of(element) if dtype is None else dtype
        assert self.dtype.mlir == element and matrix_shape(self.shape) == ir_shape
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
        vector_type = dtype.vector(matrix_shape(shape))
        constant_op: mlir.Value = arith.constant(vector_type, number_attribute(vector_type, number))
        if map is not None:
            constant_op.owner.operation.attributes["map"] = map.to_ir()
        return cls(constant_op, dtype, shape)

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
        return (dtype or self.dtype).vector(matrix_shape(shape))

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


# Shapes of values: reshaping, broadcasting, permuting, slicing and joining.
#
# XeTile has 1D and 2D vectors. A value of more dimensions is held as a matrix whose rows are its leading dimensions.
# Any dimension of a value can become the rows or the columns of a matrix by a reshape.


class ShapeMethods(ValueBase):
    """The methods of `Value` that change shapes."""

    def reshape(self, *shape: Any, can_reorder: bool = False) -> Self:
        """The same elements in row-major order in another shape; one extent may be -1.

        Triton's `can_reorder` has no effect.

        Raises:
            ValueError: if it has another number of elements.
        """
        extents = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        new_shape: list[int] = [static_extent(n) for n in extents]
        if new_shape.count(-1) == 1:
            known_size = math.prod(n for n in new_shape if n != -1)
            if known_size and self.size % known_size == 0:
                new_shape[new_shape.index(-1)] = self.size // known_size
        if any(n < 1 for n in new_shape) or math.prod(new_shape) != self.size:
            raise ValueError(f"cannot reshape {self.describe()} into shape {tuple(new_shape)}")
        have, want = matrix_shape(self.shape), matrix_shape(new_shape)
        if have == want:
            return self._made(self.ir, shape=new_shape)
        if not want:
            return self._made(vector.extract(self.ir, [], [0] * len(have)), shape=())
        if not have:
            return self._made(vector.broadcast(self._type(new_shape), self.ir), shape=new_shape)
        return self._made(vector.shape_cast(self._type(new_shape), self.ir), shape=new_shape)

    view = reshape

    def ravel(self, can_reorder: bool = False) -> Self:
        """The elements in row-major order as a line. Triton's `can_reorder` has no effect."""
        return self.reshape((self.size,))

    def expand_dims(self, axis: int | Sequence[int]) -> Self:
        """The value with dimensions of extent 1 where `axis` says, counted in the result.

        Raises:
            ValueError: if the result has no such dimension, or one is named twice.
        """
        axes = [axis] if isinstance(axis, int) else list(axis)
        rank = self.ndim + len(axes)
        new_dims = [axis_of(a, rank) for a in axes]
        if len(set(new_dims)) != len(new_dims):
            raise ValueError("repeated axis")
        old_extents = iter(self.shape)
        return self.reshape(tuple(1 if d in new_dims else next(old_extents) for d in range(rank)))

    def squeeze(self, axis: int) -> Self:
        """The value without a dimension of extent 1.

        Raises:
            ValueError: if the dimension has another extent.
        """
        at = axis_of(axis, self.ndim)
        if self.shape[at] != 1:
            raise ValueError(f"cannot squeeze axis {axis} of {self.describe()}, whose extent is not 1")
        return self.reshape((*self.shape[:at], *self.shape[at + 1 :]))

    def broadcast_to(self, *shape: Any) -> Self:
        """Broadcast to a shape by numpy's rules.

        Raises:
            ValueError: if the shapes do not fit; numpy's message.
        """
        extents = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        new_shape = tuple(static_extent(n) for n in extents)
        if self.shape == new_shape:
            return self._made(self.ir)
        if common_shape(self.shape, new_shape) != new_shape:
            raise ValueError(f"cannot broadcast shape {self.shape} to {new_shape}")
        if self.size == 1:
            return self._made(vector.broadcast(self._type(new_shape), self.reshape(()).ir), shape=new_shape)
        aligned = self.reshape((*(1,) * (len(new_shape) - self.ndim), *self.shape))
        for dim, extent in enumerate(new_shape):
            if aligned.shape[dim] != extent:
                aligned = aligned._repeated(dim, extent)
        return aligned

    broadcast = broadcast_to

    def _repeated(self, dim: int, extent: int) -> Self:
        """Repeat a dimension of extent 1."""
        before, _, after = around(self.shape, dim)
        wide = (*self.shape[:dim], extent, *self.shape[dim + 1 :])
        if after == 1:
            # All later dimensions have extent 1.
            column = self.reshape((before, 1))
            repeated = xetile.broadcast(column.ir, (1,), result=self._type((before, extent)))
            return self._made(repeated, shape=(before, extent)).reshape(wide)
        rows = self.reshape((before, after))
        shape = (before * extent, after)
        repeats = extent if before > 1 else None
        repeated = xetile.broadcast(rows.ir, (0,), result=self._type(shape), broadcast_size=repeats)
        return self._made(repeated, shape=shape).reshape(wide)

    # Permutations.

    @property
    def T(self) -> Self:
        """The value with its last two dimensions swapped: the transpose of a matrix."""
        if self.ndim < 2:
            return self._made(self.ir)
        return self.permute(*range(self.ndim - 2), self.ndim - 1, self.ndim - 2)

    def permute(self, *dims: Any) -> Self:
        """The dimensions in another order: dimension i of the result is dimension `dims[i]`.

        Raises:
            ValueError: if `dims` does not name each dimension once.
        """
        dim_list = dims[0] if len(dims) == 1 and isinstance(dims[0], Sequence) else dims
        if len(dim_list) != self.ndim:
            raise ValueError(
                f"axes don't match: {self.describe()} has {self.ndim} dimensions, but {len(dim_list)} axes"
            )
        order = [axis_of(d, self.ndim) for d in dim_list]
        if len(set(order)) != len(order):
            raise ValueError("repeated axis in transpose")
        shape = tuple(self.shape[d] for d in order)
        # Dimensions of extent 1 are ignored, and dimensions that stay adjacent are merged.
        groups = _groups([d for d in order if self.shape[d] > 1], [d for d, n in enumerate(self.shape) if n > 1])
        if len(groups) < 2:
            return self.reshape(shape)
        BUILDING.check_together("move elements")
        ranked = sorted(range(len(groups)), key=lambda g: groups[g][0])
        extents = [math.prod(self.shape[d] for d in groups[g]) for g in ranked]
        group_order = [ranked.index(g) for g in range(len(groups))]
        merged = self.reshape(extents)
        return merged._permuted(group_order).reshape(shape)

    def _permuted(self, order: Sequence[int]) -> Self:
        """A permutation in which no two dimensions stay adjacent."""
        shape = tuple(self.shape[d] for d in order)
        if len(order) == 2:
            return self._made(xetile.transpose(self.ir, (1, 0), result=self._type(shape)), shape=shape)
        if order[-1] != self.ndim - 1:
            # A transpose of a matrix makes the last dimension the last one.
            rotation = [*range(order[-1] + 1, self.ndim), *range(order[-1] + 1)]
            return self.permute(rotation).permute([rotation.index(d) for d in order])
        numbers = np.arange(math.prod(self.shape[:-1])).reshape(self.shape[:-1]).transpose(order[:-1])
        return self.reshape((-1, self.shape[-1])).rows(numbers.ravel().tolist()).reshape(shape)

    # Parts.

    def rows(self, row_indices: Sequence[int]) -> Self:
        """The elements of a line, or the rows of a matrix, at constant indices, which may repeat."""
        BUILDING.check_together("select elements")
        assert 1 <= self.ndim <= 2
        count, first_row = len(row_indices), row_indices[0]
        shape = (count, *self.shape[1:])
        if list(row_indices) == list(range(first_row, first_row + count)):
            if count == self.shape[0]:
                return self._made(self.ir)
            starts, sizes = [first_row, *[0] * (self.ndim - 1)], list(shape)
            row_slice = vector.extract_strided_slice(self._type(shape), self.ir, starts, sizes, [1] * self.ndim)
            return self._made(row_slice, shape=shape)
        return self._made(vector.shuffle(self.ir, self.ir, list(row_indices)), shape=shape)

    def rows_with(self, other: Self, row_indices: Sequence[int]) -> Self:
        """Rows of this value and of another one, whose rows are numbered after those of this one."""
        shape = (len(row_indices), *self.shape[1:])
        count = self.shape[0]
        if self.ndim == 1 and other.shape == self.shape and list(row_indices) == alternating(count):
            return self._made(vector.interleave(self.ir, other.ir), shape=shape)
        return self._made(vector.shuffle(self.ir, other.ir, list(row_indices)), shape=shape)

    def halves(self, axis: int) -> tuple[Self, Self]:
        """The elements at even and at odd indices along a dimension, whose extent is even."""
        BUILDING.check_together("select elements")
        before, extent, after = around(self.shape, axis)
        if after > 1:
            return self.along(axis, range(0, extent, 2)), self.along(axis, range(1, extent, 2))
        shape = (*self.shape[:axis], extent // 2, *self.shape[axis + 1 :])
        flattened = self.reshape((before, extent) if before > 1 else (extent,))
        half_type = self._type((before, extent // 2) if before > 1 else (extent // 2,))
        deinterleaved = mlir.Operation.create(
            "vector.deinterleave", results=[half_type, half_type], operands=[flattened.ir]
        ).results
        even, odd = (self._made(v, shape=vector_of(str(half_type))[0]).reshape(shape) for v in deinterleaved)
        return even, odd

    def interleaved(self, other: Self, axis: int) -> Self:
        """The elements of two values of one shape, alternating along a dimension."""
        before, extent, after = around(self.shape, axis)
        shape = (*self.shape[:axis], 2 * extent, *self.shape[axis + 1 :])
        if after == 1:
            flattened = [v.reshape((before, extent) if before > 1 else (extent,)) for v in (self, other)]
            interleaved_ir = vector.interleave(*(v.ir for v in flattened))
            return self._made(interleaved_ir, shape=(before, 2 * extent) if before > 1 else (2 * extent,)).reshape(
                shape
            )
        flattened = [v.reshape((before * extent, after)) for v in (self, other)]
        return flattened[0].rows_with(flattened[1], alternating(before * extent)).reshape(shape)

    def with_first(self, axis: int) -> Self:
        """A matrix whose rows are a dimension and whose columns are all others; a line if the others have extent 1.

        `from_first` is the inverse.
        """
        before, extent, after = around(self.shape, axis)
        if before * after == 1:
            return self.reshape((extent,))
        if before == 1:
            return self.reshape((extent, after))
        if after == 1:
            return self.reshape((before, extent)).T
        return self.reshape((before, extent, after)).permute(1, 0, 2).reshape((extent, before * after))

    def from_first(self, shape: Sequence[int], axis: int) -> Self:
        """The inverse of `with_first` on a value of this shape; the extent along the axis may differ."""
        before, _, after = around(shape, axis)
        extent = self.shape[0]
        final_shape = (*shape[:axis], extent, *shape[axis + 1 :])
        if before == 1 or before * after == 1:
            return self.reshape(final_shape)
        if after == 1:
            return self.T.reshape(final_shape)
        return self.reshape((extent, before, after)).permute(1, 0, 2).reshape(final_shape)

    def along(self, axis: int, dim_indices: Sequence[int]) -> Self:
        """The elements at constant indices along a dimension."""
        BUILDING.check_together("select elements")
        before, extent, after = around(self.shape, axis)
        shape = (*self.shape[:axis], len(dim_indices), *self.shape[axis + 1 :])
        first_index, count = dim_indices[0], len(dim_indices)
        contiguous = list(dim_indices) == list(range(first_index, first_index + count))
        if contiguous and count == extent:
            return self._made(self.ir)
        # Strided moves exchange pairs, without the two transpositions of longer lines.
        if after > 1 or before == 1 or (extent == 2 and not contiguous):
            flattened = self.reshape((before * extent, after) if after > 1 else (before * extent,))
            row_indices = [b * extent + p for b in range(before) for p in dim_indices]
            return flattened.rows(row_indices).reshape(shape)
        if contiguous:
            slice_type = self._type((before, count))
            line = self.reshape((before, extent))
            slice_ir = vector.extract_strided_slice(slice_type, line.ir, [0, first_index], [before, count], [1, 1])
            return self._made(slice_ir, shape=(before, count)).reshape(shape)
        return self.with_first(axis).rows(dim_indices).from_first(self.shape, axis)

    def __getitem__(self, key: Any) -> Self:
        """A part, by constant slices and indices; None and `...` as in numpy.

        Raises:
            IndexError: as numpy, and if an index is not a constant.
        """
        keys = list(key) if isinstance(key, tuple) else [key]
        if sum(k is Ellipsis for k in keys) > 1:
            raise IndexError("an index can only have a single ellipsis ('...')")
        consumed = sum(k is not None and k is not Ellipsis for k in keys)
        if consumed > self.ndim:
            raise IndexError(
                f"too many indices: {self.describe()} has {self.ndim} dimensions, but {consumed} were indexed"
            )
        fill = [slice(None)] * (self.ndim - consumed)
        at = next((i for i, k in enumerate(keys) if k is Ellipsis), len(keys))
        keys = keys[:at] + fill + keys[at + 1 :]
        result: list[int] = []
        selected, dim = self._made(self.ir), 0
        for k in keys:
            if k is None:
                result.append(1)
                continue
            dim_indices, keeps_dim = _part(k, self.shape[dim])
            selected = selected.along(dim, dim_indices)
            result += [len(dim_indices)] if keeps_dim else []
            dim += 1
        return selected.reshape(tuple(result))


def _groups(order: Sequence[int], source: Sequence[int]) -> list[list[int]]:
    """Group dimensions in a new order: dimensions that are adjacent in the old order too share a group."""
    successor = dict(itertools.pairwise(source))
    groups: list[list[int]] = []
    for d in order:
        if groups and successor.get(groups[-1][-1]) == d:
            groups[-1].append(d)
        else:
            groups.append([d])
    return groups


def alternating(count: int) -> list[int]:
    """The places, as `rows_with` counts them, that interleave the rows of two values."""
    return [p for i in range(count) for p in (i, count + i)]


def _part(key: Any, extent: int) -> tuple[list[int], bool]:
    """The indices that a key selects from a dimension, and whether the dimension is kept."""
    if isinstance(key, slice):
        bounds = (key.start, key.stop, key.step)
        if not all(n is None or (isinstance(n, int) and not isinstance(n, bool)) for n in bounds):
            raise IndexError("slices of values have constant bounds")
        if key.step == 0:
            raise ValueError("slice step cannot be zero")
        dim_indices = list(range(*key.indices(extent)))
        if not dim_indices:
            raise IndexError(f"a slice of {extent} elements by {_shown(key)} is empty")
        return dim_indices, True
    if isinstance(key, bool) or not isinstance(key, int):
        raise IndexError(f"values are indexed by constants, slices, None and '...', not by {key!r}")
    if not -extent <= key < extent:
        raise IndexError(f"index {key} is out of bounds for a dimension of extent {extent}")
    return [key % extent], False


def _shown(key: slice) -> str:
    bounds = ["" if n is None else str(n) for n in (key.start, key.stop)]
    return ":".join([*bounds, *([] if key.step is None else [str(key.step)])])


S = TypeVar("S", bound=ShapeMethods)


def concatenate(values: Sequence[S], axis: int) -> S:
    """Concatenate values of one element type along a dimension.

    Raises:
        ValueError: if they differ in other dimensions; numpy's message.
    """
    first_value, *other_values = values
    at = axis_of(axis, first_value.ndim)
    np.concatenate([np.broadcast_to(False, value.shape) for value in values], at)
    # Neighbours are joined first, so that each element is moved as often as there are levels.
    joined = [first_value, *other_values]
    while len(joined) > 1:
        joined_pairs = [_joined(a, b, at) for a, b in zip(joined[::2], joined[1::2])]
        joined = [*joined_pairs, *joined[2 * len(joined_pairs) :]]
    return joined[0]


def _joined(a: S, b: S, axis: int) -> S:
    before, first_extent, after = around(a.shape, axis)
    second_extent = b.shape[axis]
    shape = (*a.shape[:axis], first_extent + second_extent, *a.shape[axis + 1 :])
    if after > 1 or before == 1:
        lhs_rows, rhs_rows = (
            v.reshape((before * n, after) if after > 1 else (n,)) for v, n in ((a, first_extent), (b, second_extent))
        )
        row_indices: list[int] = []
        for i in range(before):
            row_indices += range(i * first_extent, (i + 1) * first_extent)
            row_indices += range(
                before * first_extent + i * second_extent, before * first_extent + (i + 1) * second_extent
            )
        return lhs_rows.rows_with(rhs_rows, row_indices).reshape(shape)
    # Insert the columns of both, which avoids two transposes.
    wide = (before, first_extent + second_extent)
    zeros = a.constant(a.dtype, 0, wide).ir
    for operand, start in ((a.reshape((before, first_extent)), 0), (b.reshape((before, second_extent)), first_extent)):
        zeros = vector.insert_strided_slice(operand.ir, zeros, [0, start], [1, 1])
    return a._made(zeros, shape=wide).reshape(shape)
