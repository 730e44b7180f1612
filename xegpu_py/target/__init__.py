"""Hardware descriptions: the instructions, sizes and limits of the GPUs that vISA is compiled for.

Sources: Intel's finalizer (which platform accepts which instruction), and the public documentation of Xe-HPC and
Xe-HPG (sizes and alignments of 2D block messages). docs/targets.md names the sources of bmg and cri. docs/visa.md
has the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field, structs

from xegpu_py.target.message_rules import RULES, XE2, XE3, XE3P, XE_HPC, XE_HPG, Block2DLimits, MessageRule

_INTEGERS = tuple(f"{sign}{bits}" for bits in (2, 4, 8) for sign in "us")


_NOWHERE = frozenset(["lrp"])
"""Instructions of vISA that none of these GPUs has: Intel's finalizers make code of them that they cannot decode."""

_LATER = _NOWHERE | {"bdpas", "tanh", "sigm", "lfsr", "shfl_idx4"}
"""Instructions that came with Xe3P. Source: IGC 2.40."""


class Target(Struct, frozen=True, eq=False):
    """One kind of GPU.

    Attributes:
        name: its name in options.
        title: its product name.
        generation: the generation of GPUs, by which `message_rules` knows reactions; empty for no GPU.
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
        strict_dpas: whether a dpas whose factors are in registers that were never written is an error without a check,
            since more than its own result is lost (the rule `dpas-uninitialized`).
    """

    name: str
    title: str
    generation: str = ""
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
    strict_dpas: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        return target, (self.name,)

    @property
    def dpas_exec_size(self) -> int:
        """The usual number of SIMD lanes of dpas."""
        return self.dpas_exec_sizes[0]

    @property
    def message_rules(self) -> tuple[MessageRule, ...]:
        """The rules of its messages and of dpas. `rule.sentence(target.block2d)` is what each requires here, and
        `rule.reaction(target.generation)` what is known to happen where it is broken."""
        return tuple(rule for rule in RULES.values() if rule.holds_for(self.block2d))

    def dpas_columns(self, columns: int) -> int | None:
        """The largest number of SIMD lanes of dpas that divides so many columns; None if none does."""
        return max((size for size in self.dpas_exec_sizes if columns % size == 0), default=None)


_XE_HPC = Block2DLimits(tolerated={"least_bytes": 4, "pitch_granule": 4})

_XE2 = Target(
    "bmg",
    "Xe2 (Battlemage: Arc B580, Arc Pro B50 and B60)",
    XE2,
    absent=_LATER,
    block2d=Block2DLimits(most_pitch=(1 << 24) - 1),
)

TARGETS = {
    t.name: t
    for t in (
        Target(
            "pvc",
            "Xe-HPC (Ponte Vecchio), first stepping",
            XE_HPC,
            absent=_LATER | {"srnd"},
            tf32_conversion=False,
            systolic_denormals=False,
            block2d=_XE_HPC,
        ),
        Target("pvcxt", "Xe-HPC (Ponte Vecchio XT)", XE_HPC, absent=_LATER, systolic_denormals=False, block2d=_XE_HPC),
        Target(
            "dg2",
            "Xe-HPG (Alchemist)",
            XE_HPG,
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
        _XE2,
        structs.replace(_XE2, name="lnl", title="Xe2 (Lunar Lake)"),
        structs.replace(_XE2, name="ptl", title="Xe3 (Panther Lake)", generation=XE3, strict_dpas=True),
        Target(
            "cri",
            "Xe3P (Crescent Island)",
            XE3P,
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
        structs.replace(
            _XE2,
            name="virtual",
            title="no GPU: Xe2 with more registers and shared local memory than any has, for the engines alone",
            generation="",
            grf_counts=(256, 1024),
            slm_bytes=8 << 20,
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


def verdict(rule: MessageRule, on: Target, operands: Mapping[str, int] | None = None) -> str:
    """A broken rule, and what GPUs do: "rule block2d-pitch-least: the pitch ...; bmg returns undefined data; ...".

    Args:
        on: the target on which it is broken, which is named first.
        operands: those of the 2D block message that breaks it; None for a rule of other messages.
    """
    outcomes: dict[tuple[str, str], list[str]] = {}
    for gpu in (on, *(t for t in TARGETS.values() if t is not on)):
        if gpu.generation and rule.holds_for(gpu.block2d):
            outcomes.setdefault(rule.outcome(gpu.generation, gpu.block2d, operands), []).append(gpu.name)
    clauses = [
        f"{', '.join(names[:-1])}{' and ' * (len(names) > 1)}{names[-1]} {several if len(names) > 1 else one}"
        for (one, several), names in outcomes.items()
    ]
    return "; ".join([f"rule {rule.name}: {rule.sentence(on.block2d)}", *clauses])


GRID_LIMIT = 1 << 20
"""Workgroups in each dimension of a launch, unless a kernel is lowered for more."""
