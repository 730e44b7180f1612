"""numpy arrays as arguments of Triton kernels."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import triton.language as tl

TYPES: dict[np.dtype[Any], Any] = {
    **{np.dtype(f"{sign}int{bits}"): getattr(tl, f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{np.dtype(f"float{bits}"): getattr(tl, f"float{bits}") for bits in (16, 32, 64)},
    np.dtype(bool): tl.int1,
    np.dtype(ml_dtypes.bfloat16): tl.bfloat16,
    np.dtype(ml_dtypes.float8_e5m2): tl.float8e5,
    np.dtype(ml_dtypes.float8_e4m3fn): tl.float8e4nv,
}
"""Triton's types of numpy's."""


class WrappedArray:
    """A numpy array that Triton takes for a tensor: `wrap` makes it.

    Attributes:
        array: the array.
        dtype: Triton's type of its elements.
        xegpu_span: the addresses of its first element, and of the first byte and the end of the memory in which it
            lies, and whether that may be written.
    """

    def __init__(self, array: np.ndarray[Any, Any], dtype: Any) -> None:
        root = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        start, end = np.lib.array_utils.byte_bounds(root)
        self.array, self.dtype = array, dtype
        self.xegpu_span = (int(array.ctypes.data), int(start), int(end), root.flags.writeable)

    def data_ptr(self) -> int:
        """The address of its first element."""
        return self.xegpu_span[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents."""
        return self.array.shape

    def stride(self, dim: int | None = None) -> Any:
        """Its strides in elements, or that of a dimension."""
        steps = tuple(s // self.array.itemsize for s in self.array.strides)
        return steps if dim is None else steps[dim]

    def numel(self) -> int:
        """Its number of elements."""
        return self.array.size

    def element_size(self) -> int:
        """Bytes of an element."""
        return self.array.itemsize

    def zero_(self) -> WrappedArray:
        """Set all elements to zero, as autotuners do with `reset_to_zero`."""
        self.array[...] = 0
        return self

    def clone(self) -> WrappedArray:
        """A copy, as autotuners make with `restore_value`."""
        return WrappedArray(self.array.copy(), self.dtype)

    def copy_(self, other: WrappedArray) -> WrappedArray:
        """Copy the elements of another array."""
        self.array[...] = other.array
        return self

    def __repr__(self) -> str:
        return f"wrap({self.array!r})"


def wrap(array: np.ndarray[Any, Any]) -> WrappedArray:
    """A numpy array as Triton kernels take it: Triton refuses arrays of numpy. Nothing is copied.

        add[(4,)](xegpu_py.triton.wrap(x), xegpu_py.triton.wrap(y), 1000, BLOCK=256)

    Kernels may access all of the memory in which the array lies, as on a GPU. A kernel that changes read-only memory,
    such as a file that is mapped for reading, ends with an error.

    Raises:
        TypeError: if it is no array, or one of a type that Triton does not have.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"wrap takes a numpy array, but got {type(array).__name__}")
    kind = TYPES.get(array.dtype)
    if kind is None:
        raise TypeError(f"wrap takes arrays of {', '.join(map(str, TYPES))}, but got an array of {array.dtype}")
    return WrappedArray(array, kind)
