"""Descriptors of memrefs in compiled host code, and their views as numpy arrays.

A ranked memref is {allocated pointer, aligned pointer, offset, sizes, strides}, an unranked one {rank, pointer to the
ranked one}: https://mlir.llvm.org/docs/TargetLLVMIR/#c-compatible-wrapper-emission.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from xegpu_py.numerics.formats import Array
from xegpu_py.numerics.narrow import element_bits
from xegpu_py.runtime.arguments import DTYPES

ELEMENTS: dict[str, Any] = {
    **DTYPES,
    "index": np.dtype(np.int64),
    "i1": np.dtype(np.bool_),
    "tf32": np.dtype(np.float32),
    **{f"si{bits}": DTYPES[f"i{bits}"] for bits in (8, 16, 32, 64)},
}
"""The numpy type of each MLIR element type in the host's memory, by MLIR's name."""


def descriptor_type(rank: int) -> type[ctypes.Structure]:
    """The structure of a ranked memref."""
    fields = [
        ("allocated", ctypes.c_void_p),
        ("aligned", ctypes.c_void_p),
        ("offset", ctypes.c_int64),
        ("sizes", ctypes.c_int64 * rank),
        ("strides", ctypes.c_int64 * rank),
    ]
    return type(f"MemRef{rank}", (ctypes.Structure,), {"_fields_": fields})


@dataclass(frozen=True)
class MemRef:
    """A memref of a running program.

    Attributes:
        allocated: address of the allocation.
        aligned: address that `offset` counts from.
        offset: offset of the first element from `aligned`, in elements.
        sizes, strides: size and stride of each dimension, in elements.
    """

    allocated: int
    aligned: int
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def ranked(cls, pointer: int, rank: int) -> MemRef:
        """The memref at a pointer to a ranked descriptor."""
        found: Any = descriptor_type(rank).from_address(pointer)
        return cls(found.allocated or 0, found.aligned or 0, found.offset, tuple(found.sizes), tuple(found.strides))

    @classmethod
    def unranked(cls, pointer: int) -> MemRef:
        """The memref at a pointer to an unranked descriptor."""
        rank, descriptor = (ctypes.c_int64 * 2).from_address(pointer)
        return cls.ranked(descriptor, rank)

    @classmethod
    def of(cls, array: Array) -> MemRef:
        """The memref of a numpy array."""
        strides = tuple(s // array.itemsize for s in array.strides)
        return cls(array.ctypes.data, array.ctypes.data, 0, array.shape, strides)

    @classmethod
    def contiguous(cls, pointer: int, sizes: tuple[int, ...]) -> MemRef:
        """A memref in row-major order."""
        return cls(pointer, pointer, 0, sizes, tuple(math.prod(sizes[i + 1 :]) for i in range(len(sizes))))

    def descriptor(self) -> ctypes.Structure:
        """The ranked descriptor."""
        rank = len(self.sizes)
        lengths = ctypes.c_int64 * rank
        return descriptor_type(rank)(
            self.allocated, self.aligned, self.offset, lengths(*self.sizes), lengths(*self.strides)
        )

    def array(self, element: str) -> Array:
        """A numpy view of the elements, which have this MLIR type. Writing the array writes the memory.

        Elements of 2 and 4 bits are packed as in kernels, and the array consists of bytes.

        Raises:
            ValueError: if such elements do not fill bytes.
        """
        if element_bits(element):
            return self._packed(8 // element_bits(element)).array("i8")
        dtype = ELEMENTS[element]
        size = dtype.itemsize
        if 0 in self.sizes:
            return np.zeros(self.sizes, dtype)
        reach = [(n - 1) * s for n, s in zip(self.sizes, self.strides)]
        first, last = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
        start = self.aligned + (self.offset + first) * size
        held = (ctypes.c_char * ((last - first + 1) * size)).from_address(start)
        # Untyped bytes, since numpy cannot make such views of ml_dtypes' types.
        flat = np.frombuffer(held, f"V{size}")
        seen = np.lib.stride_tricks.as_strided(flat[-first:], self.sizes, [s * size for s in self.strides])
        return seen.view(dtype)

    def _packed(self, each: int) -> MemRef:
        """The memref of the bytes, each of which holds `each` elements."""
        counts = (self.offset, *self.sizes[-1:], *self.strides[:-1])
        if self.strides[-1:] != (1,) or any(n % each for n in counts):
            raise ValueError(f"elements of {self.sizes} with strides {self.strides} do not fill bytes")
        sizes, strides = (*self.sizes[:-1], self.sizes[-1] // each), (*(s // each for s in self.strides[:-1]), 1)
        return MemRef(self.allocated, self.aligned, self.offset // each, sizes, strides)
