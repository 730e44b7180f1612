"""Hardware descriptions: the instructions, sizes and limits of the GPUs that vISA is compiled for.

Sources: Intel's finalizer (which platform accepts which instruction), and the public documentation of Xe-HPC and
Xe-HPG (sizes and alignments of 2D block messages). docs/targets.md names the sources of bmg and cri. docs/visa.md
has the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

if TYPE_CHECKING:
    import numpy as np

_INTEGERS = tuple(f"{sign}{bits}" for bits in (2, 4, 8) for sign in "us")


_NOWHERE = frozenset(["lrp"])
"""Instructions of vISA that none of these GPUs has: Intel's finalizers make code of them that they cannot decode."""

_LATER = _NOWHERE | {"bdpas", "tanh", "sigm", "lfsr", "shfl_idx4"}
"""Instructions that came with Xe3P. Source: IGC 2.40."""


class Block2DLimits(Struct, frozen=True, eq=False):
    """The limits of 2D block messages.

    Attributes:
        row_bytes: most bytes of a row of all blocks together.
        load_height: most rows of a load.
        store_height: most rows of a store.
        counts: the legal numbers of blocks by element width in bits, for plain and VNNI loads.
        transposed: greatest (width, height) of a transposing load by element width in bits, in elements.
        vnni: widths of elements in bits that the VNNI transform packs.
        base_alignment: alignment of the surface's address in bytes.
        width_granule: the surface's width in bytes must be a multiple of this.
        pitch_granule: the surface's pitch in bytes must be a multiple of this.
        column_granule: the offset of a block's first column in bytes must be a multiple of this.
        least_bytes: least width and pitch of a surface in bytes.
        most_extent: greatest width, height and pitch (in bytes, rows, bytes).
        mixed_place: whether one coordinate of a block may be in a register and the other immediate. Source: the grammar
            of IGC since 2024, visa/CISA.y.
    """

    row_bytes: int = 64
    load_height: int = 32
    store_height: int = 8
    counts: Mapping[int, tuple[int, ...]] = field(
        default_factory=lambda: {8: (1, 2, 4), 16: (1, 2, 4), 32: (1, 2), 64: (1,)}
    )
    transposed: Mapping[int, tuple[int, int]] = field(default_factory=lambda: {32: (8, 16), 64: (4, 8)})
    vnni: tuple[int, ...] = (8, 16)
    base_alignment: int = 64
    width_granule: int = 4
    pitch_granule: int = 16
    column_granule: int = 4
    least_bytes: int = 64
    most_extent: int = 1 << 24
    mixed_place: bool = False

    def transposed_unit(self, bits: int) -> int | None:
        """The width in bits of the units that a message transposes for elements of `bits` bits; None if it cannot."""
        return min((unit for unit in self.transposed if unit >= bits), default=None)

    def surface_problem(self, width: int | None, rows: int | None, pitch: int | None, start: int | None) -> str | None:
        """Why messages cannot address a surface, as "has rows of 30 bytes, but ..."; None if no rule is known broken.

        Args:
            width: bytes of a row. None, here and below, means unknown.
            rows: number of rows.
            pitch: bytes from one row to the next.
            start: offset in bytes of the surface's first byte from an aligned address.
        """
        for what, found, granule in (("rows", width, self.width_granule), ("a pitch", pitch, self.pitch_granule)):
            if found is None:
                continue
            if found < self.least_bytes:
                return f"has {what} of {found} bytes, but 2D block messages need {self.least_bytes}"
            if found % granule:
                return f"has {what} of {found} bytes, but 2D block messages need a multiple of {granule}"
            if found > self.most_extent:
                return f"has {what} of {found} bytes, but 2D block messages have at most {self.most_extent}"
        if width is not None and pitch is not None and pitch < width:
            return f"has a pitch of {pitch} bytes, less than its rows' {width}"
        if rows == 0:
            return "has no rows, but 2D block messages need 1"
        if rows is not None and rows > self.most_extent:
            return f"has {rows} rows, but 2D block messages have at most {self.most_extent}"
        if start is not None and start % self.base_alignment:
            need = f"2D block messages need a multiple of {self.base_alignment}"
            return f"begins {start} bytes behind its buffer, but {need}"
        return None

    def outer_problem(self, strides: Sequence[int | None]) -> str | None:
        """Why messages cannot address all matrices of a tensor of more dimensions; None if no rule is known broken.

        Args:
            strides: bytes from one matrix to the next in each outer dimension; None if unknown.
        """
        for found in strides:
            if found is not None and found % self.base_alignment:
                need = f"2D block messages need a multiple of {self.base_alignment}"
                return f"has matrices that begin {found} bytes behind each other, but {need}"
        return None

    def array_problem(self, array: np.ndarray[Any, Any]) -> str | None:
        """Why messages cannot address the matrices of an array, row-major or column-major; None if they can."""
        if array.ndim < 2:
            return None
        (rows, columns), (pitch, step) = array.shape[-2:], array.strides[-2:]
        if pitch == array.itemsize != step:
            # Column-major.
            rows, columns, pitch = columns, rows, step
        outer = [s for s, n in zip(array.strides[:-2], array.shape) if n != 1]
        return self.surface_problem(columns * array.itemsize, rows, pitch, 0) or self.outer_problem(outer)


class Target(Struct, frozen=True, eq=False):
    """One kind of GPU.

    Attributes:
        name: its name in options.
        title: its product name.
        grf_bytes: bytes of a register of the general register file.
        grf_counts: registers that a thread may have, the usual number first.
        dpas_exec_sizes: SIMD lanes of dpas, the usual number first.
        dpas_depths: systolic depths.
        dpas_precisions: precisions of src1 and src2.
        dpas_half_accumulators: whether accumulators and destinations of dpas may be bf and hf.
        absent: instructions that it does not have.
        tf32_conversion: whether fcvt converts to tf32.
        long_rotation: whether it rotates integers of 64 bits.
        double_math: whether it has division and square roots of f64.
        systolic_denormals: whether a bit of `%cr0` chooses if dpas keeps subnormal numbers of bf and tf32.
        cache_line: bytes that one prefetch loads into a cache.
        line_alignment: required alignment in bytes of a message of one lane that moves a cache line.
        message_grfs: most registers that one gather or scatter message carries.
        block2d: limits of 2D block messages; None if it has no such messages.
        slm_bytes: most bytes of shared local memory of a workgroup.
        named_barriers: named barriers of a workgroup; 0 if it has none.
        threads: most hardware threads of a workgroup.
    """

    name: str
    title: str
    grf_bytes: int = 64
    grf_counts: tuple[int, ...] = (128, 256)
    dpas_exec_sizes: tuple[int, ...] = (16,)
    dpas_depths: tuple[int, ...] = (8,)
    dpas_precisions: tuple[str, ...] = (*_INTEGERS, "bf", "hf", "tf32")
    dpas_half_accumulators: bool = True
    absent: frozenset[str] = frozenset()
    tf32_conversion: bool = True
    long_rotation: bool = True
    double_math: bool = True
    systolic_denormals: bool = True
    cache_line: int = 64
    line_alignment: int = 4
    message_grfs: int = 8
    block2d: Block2DLimits | None = field(default_factory=Block2DLimits)
    slm_bytes: int = 128 << 10
    named_barriers: int = 32
    threads: int = 64

    def __reduce__(self) -> tuple[Any, ...]:
        return target, (self.name,)

    @property
    def dpas_exec_size(self) -> int:
        """The usual number of SIMD lanes of dpas."""
        return self.dpas_exec_sizes[0]

    def dpas_columns(self, columns: int) -> int | None:
        """The largest number of SIMD lanes of dpas that divides so many columns; None if none does."""
        return max((size for size in self.dpas_exec_sizes if columns % size == 0), default=None)


TARGETS = {
    t.name: t
    for t in (
        Target(
            "pvc",
            "Xe-HPC (Ponte Vecchio), first stepping",
            absent=_LATER | {"srnd"},
            tf32_conversion=False,
            systolic_denormals=False,
        ),
        Target("pvcxt", "Xe-HPC (Ponte Vecchio XT)", absent=_LATER, systolic_denormals=False),
        Target(
            "dg2",
            "Xe-HPG (Alchemist)",
            grf_bytes=32,
            dpas_exec_sizes=(8,),
            dpas_precisions=(*_INTEGERS, "bf", "hf"),
            absent=_LATER
            | {"srnd", "fcvt", "divm", "sqrtm", "invm", "rsqtm", "nbarrier.signal", "nbarrier.wait", "switchjmp"},
            dpas_half_accumulators=False,
            tf32_conversion=False,
            long_rotation=False,
            double_math=False,
            systolic_denormals=False,
            block2d=None,
            slm_bytes=64 << 10,
            named_barriers=0,
        ),
        Target("bmg", "Xe2 (Battlemage: Arc B580, Arc Pro B50 and B60)", absent=_LATER),
        Target(
            "cri",
            "Xe3P (Crescent Island)",
            absent=_NOWHERE,
            dpas_precisions=(*_INTEGERS, "bf", "hf", "tf32", "bf8", "hf8", "e2m1"),
            block2d=Block2DLimits(base_alignment=4, pitch_granule=4, least_bytes=4),
            slm_bytes=384 << 10,
        ),
        Target(
            "any",
            "no particular GPU: all that the specification defines, for the engines alone",
            dpas_exec_sizes=(16, 8),
            dpas_depths=(1, 2, 4, 8),
            dpas_precisions=("u1", "s1", *_INTEGERS, "bf", "hf", "tf32", "bf8", "hf8", "e2m1", "df"),
            # The specification does not have the bit.
            systolic_denormals=False,
            block2d=Block2DLimits(mixed_place=True),
        ),
    )
}
"""The targets by name."""

FARTHEST_PREFETCH = 64
"""The largest number of iterations by which loops prefetch. Each one adds code before the loop, and what is fetched
much earlier is no longer in the caches."""

DEFAULT = "pvcxt"
"""The default target."""


def target(name: str = DEFAULT) -> Target:
    """The target of a name.

    Raises:
        ValueError: if there is no such target; the message lists the targets.
    """
    found = TARGETS.get(name)
    if found is None:
        raise ValueError(f"unknown target '{name}'; there are {', '.join(TARGETS)}")
    return found


GRID_LIMIT = 1 << 20
"""Workgroups in each dimension of a launch, unless a kernel is lowered for more."""
