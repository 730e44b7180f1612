"""Element types: their representation in numpy, and conversions between them.

An integer of any width and signedness is represented as a signed number in the next larger numpy type;
an `i1` is a bool, an `index` an int64. A float has its storage type (docs/numerics.md), and a `tf32` is a float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from xegpu_py.ir.builtin import bit_width, is_integer, vector_of
from xegpu_py.numerics import convert, fcvt
from xegpu_py.numerics.block_scaled import exponents, truncate
from xegpu_py.numerics.formats import DF, E2M1, E8M0, FLOATS, TYPES, Array, F, Format, canonical


@dataclass(frozen=True)
class Element:
    """An element type.

    Attributes:
        name: MLIR's name.
        bits: width of a number.
        dtype: numpy's type of a number.
        memory: numpy's type of a number in memory, of the same width or wider: a byte for `i1`.
        format: the format of a floating-point type.
    """

    name: str
    bits: int
    dtype: np.dtype[Any]
    memory: np.dtype[Any]
    format: Format | None = None

    @property
    def shares_bytes(self) -> bool:
        """Whether a byte in memory has several elements, from the lowest bits on."""
        return self.bits in (2, 4)

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type."""
        return self.format is not None

    @property
    def bytes(self) -> int:
        """Bytes of an element in memory."""
        return self.memory.itemsize

    def signed(self, values: Array) -> Array:
        """Integers of this type interpreted as signed; a true `i1` is -1."""
        return np.asarray(-values.astype(np.int8) if self.bits == 1 else values)

    def unsigned(self, values: Array) -> Array:
        """Integers of this type interpreted as unsigned, in an unsigned numpy type."""
        if self.bits == 1:
            return values.astype(np.uint8)
        wide = np.asarray(values).view(f"u{self.dtype.itemsize}")
        return wide if self.bits == 8 * self.dtype.itemsize else wide & wide.dtype.type((1 << self.bits) - 1)

    def numbers(self, values: Array) -> Array:
        """Integers of this type as int64: unsigned if the type says so, otherwise signed."""
        read = self.unsigned if self.name.startswith("u") else self.signed
        return np.asarray(read(np.asarray(values))).astype(np.int64)

    def wrap(self, values: Array) -> Array:
        """The lowest bits of integers of any numpy type, as integers of this type."""
        if self.bits == 1:
            return np.asarray(np.asarray(values).astype(np.uint8) & np.uint8(1) != 0)
        held = np.asarray(values).astype(self.dtype)
        over = self.dtype.type(8 * self.dtype.itemsize - self.bits)
        return np.asarray(held << over >> over if over else held)

    def finish(self, values: Array) -> Array:
        """Floating-point results with canonical NaNs."""
        assert self.format
        return canonical(np.array(values, self.dtype), self.format)

    def to_memory(self, values: Array) -> Array:
        """Numbers in their type in memory."""
        return np.asarray(values).astype(self.memory, copy=False)

    def from_memory(self, values: Array) -> Array:
        """Numbers from their type in memory."""
        if self.bits == 1:
            return np.asarray(values != 0)
        return values.astype(self.dtype, copy=False) if self.is_float else self.wrap(values)


@lru_cache(maxsize=256)
def element_of(name: str) -> Element:
    """The element type of MLIR's name.

    Raises:
        ValueError: if it is not a type of numbers.
    """
    if name in FLOATS:
        fmt = FLOATS[name]
        return Element(name, fmt.bits, fmt.dtype, fmt.dtype, fmt)
    if name == "index":
        return Element(name, 64, np.dtype(np.int64), np.dtype(np.int64))
    if not is_integer(name) or bit_width(name) > 64:
        raise ValueError(f"elements of type {name} are not supported by the reference evaluator")
    bits = bit_width(name)
    if bits == 1:
        return Element(name, 1, np.dtype(bool), np.dtype(np.uint8))
    size = next(n for n in (1, 2, 4, 8) if 8 * n >= bits)
    return Element(name, bits, np.dtype(f"i{size}"), np.dtype(f"i{size}"))


@dataclass(frozen=True)
class Kind:
    """The type of a number or vector.

    Attributes:
        shape: the shape of a vector, or () for a number.
        element: the type of its elements.
        is_vector: whether it is a vector, possibly of no dimensions.
    """

    shape: tuple[int, ...]
    element: Element
    is_vector: bool


@lru_cache(maxsize=4096)
def kind_of(text: str) -> Kind:
    """The kind of a type, from its text.

    Raises:
        ValueError: if it is neither a type of numbers nor a vector of fixed size.
    """
    if text.startswith("vector<"):
        shape, element = vector_of(text)
        return Kind(shape, element_of(element), True)
    return Kind((), element_of(text), False)


def _widened(values: Array) -> Array:
    """Floats as f64, exactly."""
    with np.errstate(invalid="ignore"):
        return np.asarray(values).astype(np.float64)


def _odd_single(wide: Array) -> Array:
    """f64 numbers rounded to odd to f32, so that rounding the result again equals one rounding."""
    near = wide.astype(np.float32)
    back = near.astype(np.float64)
    bits = near.view(np.int32)
    moves = (back != wide) & (bits & 1 == 0) & np.isfinite(wide)
    outward = np.abs(wide) > np.abs(back)
    return np.asarray(bits + np.where(moves, np.where(outward, 1, -1), 0).astype(np.int32)).view(np.float32)


def to_float(values: Array, source: Element, target: Element) -> Array:
    """Floats in another format: rounded once to nearest even, with canonical NaNs (docs/numerics.md, mov and FCVT)."""
    assert source.format and target.format
    with np.errstate(all="ignore"):
        if source == target:
            return np.asarray(values)
        if target.name == "tf32" and source.bits < 32 and source.bits != 16:
            return canonical(np.asarray(values).astype(np.float32), F)
        if target.format.name not in TYPES:
            single = _odd_single(_widened(values))
            if target.name == "tf32":
                return fcvt(single, "tf32")
            if target.format is E8M0:
                return exponents(single)
            if target.format is E2M1:
                return truncate(single, "f", "e2m1")
            return canonical(single.astype(target.dtype), target.format)
        if source.format.name in TYPES:
            return convert(values, source.format.name, target.format.name)
        wide = canonical(_widened(values), DF)
        return wide if target.format is DF else convert(wide, "df", target.format.name)


def from_integers(values: Array, target: Element) -> Array:
    """Integers, of any numpy type, as floats: rounded once to nearest even; infinity from overflow."""
    assert target.format
    held = np.asarray(values)
    source = next(f.name for f in TYPES.values() if not f.is_float and f.dtype == held.dtype)
    if target.format.name in TYPES:
        return convert(held, source, target.format.name)
    if held.dtype.itemsize == 8:
        # 64-bit integers rounded to odd at bit 11 are exact in f64; rounding them again equals one rounding.
        unit = held.dtype.type(1 << 11)
        odd = (held & -unit if held.dtype.kind == "i" else held // unit * unit) | np.where(
            held % unit != 0, unit, 0 * unit
        )
        held = np.where(np.abs(held.astype(np.float64)) >= 2.0**53, odd, held)
    return to_float(convert(held, source, "df"), element_of("f64"), target)


def to_integers(values: Array, target: Element, *, signed: bool) -> Array:
    """Floats toward zero; out of range the nearest limit, and 0 for NaN (docs/numerics.md, mov)."""
    low, high = (-(1 << target.bits - 1), (1 << target.bits - 1) - 1) if signed else (0, (1 << target.bits) - 1)
    found = convert(_widened(values), "df", "q" if signed else "uq")
    return target.wrap(np.clip(found, low, high))
