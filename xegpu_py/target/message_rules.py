"""Rules of messages and of dpas: what GPUs require, and what each is known to do where a program breaks a rule.

Sources: T is intel-xpu-backend-for-triton with the number of its issue or pull request, `verifier` its file
third_party/intel/lib/Dialect/TritonGEN/IR/TritonGENOps.cpp; oneDNN is its file src/gpu/intel/jit/ir/block_2d_utils.hpp
unless another is named; LLVM is mlir/include/mlir/Dialect/XeGPU/uArch; IGC is Intel's compiler of 2026.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from msgspec import Struct, field, structs

XE_HPC, XE_HPG, XE2, XE3, XE3P = "Xe-HPC", "Xe-HPG", "Xe2", "Xe3", "Xe3P"
"""Generations of GPUs."""


class Block2DLimits(Struct, frozen=True, eq=False):
    """The limits of 2D block messages.

    Attributes:
        row_bytes: most bytes of a row of all blocks together.
        load_height: most rows of a load.
        store_height: most rows of a store.
        counts: the legal numbers of blocks by element width in bits, for plain and VNNI loads.
        transposed: greatest (width, height) of a transposing load by element width in bits, in elements.
        tile_height: most rows of a transposing load that the lowering makes; more need two registers for each column.
        vnni: widths of elements in bits that the VNNI transform packs.
        base_alignment: alignment of the surface's address in bytes.
        width_granule: the surface's width in bytes must be a multiple of this, and of the size of an element.
        pitch_granule: the surface's pitch in bytes must be a multiple of this.
        column_granule: the offset of a block's first column in bytes must be a multiple of this.
        least_bytes: least width and pitch of a surface in bytes.
        most_extent: greatest width in bytes and height in rows.
        most_pitch: greatest pitch in bytes.
        mixed_place: whether one coordinate of a block may be in a register and the other immediate. Source: the grammar
            of IGC since 2024, visa/CISA.y.
        tolerated: the limits that the GPU is known not to need, and what it takes instead. Engines accept it; the
            lowering keeps to the limits.
    """

    row_bytes: int = 64
    load_height: int = 32
    store_height: int = 8
    counts: Mapping[int, tuple[int, ...]] = field(
        default_factory=lambda: {8: (1, 2, 4), 16: (1, 2, 4), 32: (1, 2), 64: (1,)}
    )
    transposed: Mapping[int, tuple[int, int]] = field(default_factory=lambda: {32: (8, 32), 64: (4, 8)})
    tile_height: int = 16
    vnni: tuple[int, ...] = (8, 16)
    base_alignment: int = 64
    width_granule: int = 4
    pitch_granule: int = 16
    column_granule: int = 4
    least_bytes: int = 64
    most_extent: int = 1 << 24
    most_pitch: int = 1 << 24
    mixed_place: bool = False
    tolerated: Mapping[str, int] = {}

    @property
    def executed(self) -> Block2DLimits:
        """The limits of messages as they are executed."""
        return structs.replace(self, **self.tolerated, tolerated={})

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
        operands = {"width": width, "height": rows, "pitch": pitch, "base": start, "size": 1}
        for rule in LEGALIZED:
            values = {name: operands[name] for name in rule.operands}
            if None not in values.values() and rule.broken(self, **values):
                return rule.problem.format(limits=self, **values)
        return None

    def outer_problem(self, strides: Sequence[int | None]) -> str | None:
        """Why messages cannot address all matrices of a tensor of more dimensions; None if no rule is known broken.

        Args:
            strides: bytes from one matrix to the next in each outer dimension; None if unknown.
        """
        for stride in strides:
            if stride is not None and stride % self.base_alignment:
                need = f"2D block messages need a multiple of {self.base_alignment}"
                return f"has matrices that begin {stride} bytes behind each other, but {need}"
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


Kind = Literal["refused", "garbage", "undefined", "tolerated", "unknown"]
"""A reaction to a broken rule: Intel's compiler refuses the program; wrong data were seen; documents leave the outcome
open; right data were seen; nothing is known."""

_CLAUSES: Mapping[Kind, tuple[str, str]] = {
    "refused": ("does not compile it", "do not compile it"),
    "garbage": ("returns undefined data", "return undefined data"),
    "undefined": ("leaves the outcome undefined", "leave the outcome undefined"),
    "tolerated": ("accepts it", "accept it"),
    "unknown": ("is not known to accept it", "are not known to accept it"),
}


class Reaction(Struct, frozen=True):
    """Behaviour of GPUs of a generation where a rule is broken.

    Attributes:
        kind: the kind of reaction.
        source: where it is written.
        seen: the observation, if it is more than the kind says: "zeros".
    """

    kind: Kind
    source: str
    seen: str = ""

    @property
    def clauses(self) -> tuple[str, str]:
        """The reaction as a verb of one GPU, and of several: "accepts it", "accept it"."""
        one, several = _CLAUSES[self.kind]
        observation = f" ({self.seen})" if self.seen else ""
        return one + observation, several + observation


class MessageRule(Struct, frozen=True):
    """A rule of messages or of dpas.

    Attributes:
        name: its name in errors and reports.
        requirement: what it requires, with the limits of a target: "the pitch is at least {limits.least_bytes} bytes".
        source: where it is written.
        reactions: what is known of GPUs that have the rule, by generation; the others leave the outcome undefined.
        operands: the operands of a 2D block message on which it depends: of `base` (an address), `width`, `height` and
            `pitch` (bytes, rows and bytes), `x` (the block's first column) and `size` (bytes of an element). Rules of
            other messages, and of shapes of blocks, have none.
        violated: of those, whether the limits and the operands, numbers or arrays of them, break it.
        fault: of those, the operand at fault in an error: "pitch is below {limits.least_bytes} bytes".
        problem: of those that the lowering keeps to, why it does not use messages.
    """

    name: str
    requirement: str
    source: str
    reactions: Mapping[str, Reaction] = {}
    operands: tuple[str, ...] = ()
    violated: Callable[..., Any] | None = None
    fault: str = ""
    problem: str = ""

    def broken(self, limits: Block2DLimits, **operands: Any) -> Any:
        """Whether operands of a 2D block message break the rule: a truth value, or an array of them."""
        assert self.violated
        return self.violated(limits, **operands)

    def at_fault(self, limits: Block2DLimits, size: int) -> str:
        """The operand at fault, for elements of `size` bytes: "pitch is below 64 bytes"."""
        return self.fault.format(limits=limits, granule=max(limits.width_granule, size))

    def sentence(self, limits: Block2DLimits | None) -> str:
        """The rule's requirement on messages with these limits."""
        return self.requirement.format(limits=limits)

    def reaction(self, generation: str) -> Reaction:
        """The known behaviour of GPUs of a generation where the rule is broken."""
        return self.reactions.get(generation, Reaction("undefined", self.source))

    def holds_for(self, limits: Block2DLimits | None) -> bool:
        """Whether GPUs with these limits, or without 2D block messages, have the messages of which the rule speaks."""
        return limits is not None or not self.name.startswith("block2d")

    def outcome(
        self, generation: str, limits: Block2DLimits | None, operands: Mapping[str, int] | None
    ) -> tuple[str, str]:
        """The behaviour of GPUs of a generation for a message, as `Reaction.clauses`.

        Args:
            operands: those of a 2D block message; None for another message, which breaks the rule.
        """
        is_kept = operands is not None and limits is not None and not self.breaks(limits, operands)
        return ("allows it", "allow it") if is_kept else self.reaction(generation).clauses

    def breaks(self, limits: Block2DLimits, operands: Mapping[str, int]) -> bool:
        """Whether one 2D block message breaks the rule; see `broken`."""
        return bool(self.broken(limits, **{name: operands[name] for name in self.operands}))


_IGNORED = "the highest 8 bits are ignored"

_24_BITS = {generation: Reaction("garbage", "T #4526", _IGNORED) for generation in (XE_HPC, XE2, XE3, XE3P)}

_PITCH_24_BITS = _24_BITS | {g: Reaction("garbage", "T #4526; oneDNN: 2^24 does not work either") for g in (XE2, XE3)}

_SHAPES = {g: Reaction("refused", "IGC, visa/IsaVerification.cpp") for g in (XE_HPC, XE2, XE3, XE3P)}

_TOLERATED = Reaction("tolerated", "T #8154: 52 bytes")

RULES: Mapping[str, MessageRule] = {
    rule.name: rule
    for rule in (
        MessageRule(
            "block2d-base",
            "the base address of a 2D block message is a multiple of {limits.base_alignment}",
            "LLVM, IntelGpuXe3p.h; oneDNN",
            {XE_HPC: Reaction("undefined", "T #3373; oneDNN's gemm aligns to 128 before stepping B4 of PVC XT")},
            ("base",),
            lambda limits, base: base % limits.base_alignment != 0,
            "base is not a multiple of {limits.base_alignment}",
            "begins {base} bytes behind its buffer, but 2D block messages need a multiple of {limits.base_alignment}",
        ),
        MessageRule(
            "block2d-pitch-least",
            "the pitch of a 2D block message is at least {limits.least_bytes} bytes",
            "T, verifier; oneDNN",
            {XE_HPC: _TOLERATED, XE2: Reaction("garbage", "T #8154, on a B580")},
            ("pitch",),
            lambda limits, pitch: pitch < limits.least_bytes,
            "pitch is below {limits.least_bytes} bytes",
            "has a pitch of {pitch} bytes, but 2D block messages need {limits.least_bytes}",
        ),
        MessageRule(
            "block2d-pitch-multiple",
            "the pitch of a 2D block message is a multiple of {limits.pitch_granule} bytes",
            "T, verifier; oneDNN, which takes multiples of 8 on Xe-HPC",
            {XE_HPC: _TOLERATED, XE2: Reaction("garbage", "T #8154, on a B580")},
            ("pitch",),
            lambda limits, pitch: pitch % limits.pitch_granule != 0,
            "pitch is not a multiple of {limits.pitch_granule} bytes",
            "has a pitch of {pitch} bytes, but 2D block messages need a multiple of {limits.pitch_granule}",
        ),
        MessageRule(
            "block2d-pitch-most",
            "the pitch of a 2D block message is at most {limits.most_pitch} bytes",
            "T, verifier; oneDNN",
            _PITCH_24_BITS,
            ("pitch",),
            lambda limits, pitch: pitch > limits.most_pitch,
            "pitch is above {limits.most_pitch} bytes",
            "has a pitch of {pitch} bytes, but 2D block messages have at most {limits.most_pitch}",
        ),
        MessageRule(
            "block2d-width-least",
            "the width of a 2D block message is at least {limits.least_bytes} bytes",
            "T, verifier; T #7698; oneDNN",
            {XE_HPC: _TOLERATED},
            ("width",),
            lambda limits, width: width < limits.least_bytes,
            "width is below {limits.least_bytes} bytes",
            "has rows of {width} bytes, but 2D block messages need {limits.least_bytes}",
        ),
        MessageRule(
            "block2d-width-multiple",
            "the width of a 2D block message is a multiple of {limits.width_granule} bytes, and of an element's size",
            "T, verifier; oneDNN",
            {},
            ("width", "size"),
            lambda limits, width, size: width % max(limits.width_granule, size) != 0,
            "width is not a multiple of {granule} bytes",
            "has rows of {width} bytes, but 2D block messages need a multiple of {limits.width_granule}",
        ),
        MessageRule(
            "block2d-width-most",
            "the width of a 2D block message is at most {limits.most_extent} bytes",
            "T, verifier; oneDNN",
            _24_BITS,
            ("width",),
            lambda limits, width: width > limits.most_extent,
            "width is above {limits.most_extent} bytes",
            "has rows of {width} bytes, but 2D block messages have at most {limits.most_extent}",
        ),
        MessageRule(
            "block2d-pitch-width",
            "the pitch of a 2D block message is at least its width",
            "T, verifier; T #7223 and #7463",
            {XE2: Reaction("undefined", "T #7463; in T #8001 a load of width 144 and pitch 128 read right on a B580")},
            ("pitch", "width"),
            lambda limits, pitch, width: pitch < width,
            "pitch is below the width",
            "has a pitch of {pitch} bytes, less than its rows' {width}",
        ),
        MessageRule(
            "block2d-height-least",
            "the height of a 2D block message is at least 1 row",
            "IGC, documentation/visa/instructions/LSC_UNTYPED.md: the operand is one less",
            {},
            ("height",),
            lambda limits, height: height < 1,
            "height is below 1 row",
            "has no rows, but 2D block messages need 1",
        ),
        MessageRule(
            "block2d-height-most",
            "the height of a 2D block message is at most {limits.most_extent} rows",
            "T, verifier; T #8071; oneDNN",
            _24_BITS,
            ("height",),
            lambda limits, height: height > limits.most_extent,
            "height is above {limits.most_extent} rows",
            "has {height} rows, but 2D block messages have at most {limits.most_extent}",
        ),
        MessageRule(
            "block2d-x-multiple",
            "the first column of a 2D block is a multiple of {limits.column_granule} bytes",
            "T, verifier; oneDNN",
            {XE2: Reaction("garbage", "T #7990, on a B580")},
            ("x", "size"),
            lambda limits, x, size: x * size % limits.column_granule != 0,
            "block begins in a column that is not a multiple of {limits.column_granule} bytes",
        ),
        MessageRule(
            "block2d-rows",
            "a 2D block load has 1 to {limits.load_height} rows, a store 1 to {limits.store_height}",
            "T, verifier; IGC, visa/IsaVerification.cpp; for stores LLVM, IntelGpuXe2.h",
            _SHAPES | {XE_HPC: Reaction("garbage", "T #1152", "zeros")},
        ),
        MessageRule(
            "block2d-row-bytes",
            "the rows of all blocks of a 2D block message together have a multiple of 4 and at most {limits.row_bytes} "
            "bytes",
            "T, verifier; IGC, visa/IsaVerification.cpp",
            _SHAPES,
        ),
        MessageRule(
            "block2d-count",
            "a 2D block load has up to 4 blocks of 8 and 16 bits, 2 of 32 and 1 of 64; a store has 1",
            "IGC, visa/IsaVerification.cpp",
            _SHAPES,
        ),
        MessageRule(
            "block2d-transpose",
            "a 2D block load transposes one block of 32 bits in up to 8x32 elements, or of 64 bits in 1x8, 2x8 or 4x8",
            "IGC, LSCFuncsResolution.cpp and visa/IsaVerification.cpp",
            _SHAPES,
        ),
        MessageRule(
            "lsc-transposed-align",
            "a message of consecutive elements begins at a multiple of their size",
            "IGC, EmitVISAPass.cpp, emitLSCVectorLoad_uniform",
        ),
        MessageRule(
            "lsc-vector-align",
            "a gather or scatter of several elements a lane has addresses that are multiples of 4",
            "IGC, VectorPreProcess.cpp",
        ),
        MessageRule("atomic-align", "an atomic's address is a multiple of its element's size", "LLVM, atomicrmw"),
        MessageRule(
            "slm-bounds",
            "an access to shared local memory lies within what the kernel allocates",
            "vISA, SLMSize",
            {g: Reaction("unknown", "no source") for g in (XE_HPC, XE_HPG, XE2, XE3, XE3P)},
        ),
        MessageRule(
            "dpas-uninitialized",
            "src1 and src2 of dpas are in registers that were written",
            "oneDNN, src/gpu/intel/gemm/jit/generator/pieces/gemm_setup.cxx",
            {
                XE3: Reaction(
                    "garbage",
                    "oneDNN, src/gpu/intel/gemm/jit/generator/pieces/gemm_setup.cxx",
                    "in other threads too",
                )
            },
        ),
    )
}
"""The rules by name. Of those about operands of 2D block messages, an error names the first that is broken."""

SURFACE_RULES = tuple(rule for rule in RULES.values() if rule.violated)
"""The rules that depend on the operands of a 2D block message."""

LEGALIZED = tuple(
    RULES[f"block2d-{name}"]
    for name in (
        "width-least", "width-multiple", "width-most", "pitch-least", "pitch-multiple", "pitch-most", "pitch-width",
        "height-least", "height-most", "base",
    )
)  # fmt: skip
"""The rules of surfaces that the lowering keeps to, in the order in which it names them."""


def broken_rules(limits: Block2DLimits, operands: Mapping[str, int]) -> list[MessageRule]:
    """The rules that the operands of a 2D block message break, the first one first."""
    return [rule for rule in SURFACE_RULES if rule.breaks(limits, operands)]
