"""The options of a kernel: how it is lowered, and how it runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from msgspec import Struct, structs

from xegpu_py.argument_types import Range, check_fields, checked, unknown_option
from xegpu_py.numerics.choices import CHOICES, selected
from xegpu_py.numerics.dpas import MODELS, NARROW, Model
from xegpu_py.numerics.systolic import Systolic
from xegpu_py.target import DEFAULT, FARTHEST_PREFETCH
from xegpu_py.target import target as target_of

Engine = Literal["jit", "interpreter", "both"]

ENGINES: tuple[Engine, ...] = get_args(Engine)

REFERENCE = "reference"
"""The engine that evaluates a kernel without lowering it."""

CHECKS = ("memory", "uninit", "races", "bounds", "surfaces")
"""The checks of a running kernel. `memory` finds accesses outside of allocations; both engines always check them.
`uninit` finds reads of registers that were never written. `races` finds unordered accesses of one byte by two threads.
`bounds` finds loads and stores of 2D blocks that are not within their surface, whose other elements read as zero. It
does not report elements that a mask leaves out.
`surfaces` finds 2D blocks of XeGPU of which upstream's lowering would make messages that break a rule of the target.
"""

ALL_CHECKS = "all"
"""A name for all checks."""


MOST_THREADS = max(1024, os.cpu_count() or 1)
"""The largest number of operating system threads of a launch."""


class Options(Struct, frozen=True):
    """All options of a kernel.

    Attributes:
        target: the GPU's name.
        registers: registers of a thread, 128 or 256; by default the target's usual number.
        optimize: whether the pass visa-optimize runs.
        prefetch: XeTile kernels only: how many iterations ahead loops prefetch the tiles that they load; 0 for none.
        load_ahead: XeTile kernels only: whether loops load tiles one iteration ahead.
        subgroups: XeTile kernels without maps only: the number of subgroups of a workgroup, among which the tiles are
            divided; 0 for a number that suits the tiles. By default each subgroup executes the whole kernel.
        unaligned: the numbers of the arguments whose unknown addresses, extents and strides need not satisfy the rules
            of 2D block messages. For the other arguments they are assumed to, and a call with an array that does not
            satisfy the rules compiles the kernel again.
        large: whether arrays, index arguments and grids may be larger than `SMALL`. By default they may not, and a
            call with a larger one compiles the kernel again.
        strided: the numbers of the memref arguments whose innermost stride is not assumed to be 1 if it is dynamic.
        aliased: whether arguments may share memory. By default subgroups among which tiles without maps are divided
            wait for each other where they access one argument, and a call with arrays that overlap compiles the kernel
            again.
        model: how dpas rounds: "fma", "stage" or "exact" (docs/numerics.md), or a `numerics.Systolic`, such as
            `numerics.systolic.read_model` gives.
        dpas_denormals: whether dpas keeps subnormal numbers, "keep", or takes them for zeros, "flush", where no source
            decides (docs/numerics.md). These are bf and tf32 on pvc, pvcxt and dg2, and eight-bit floats and e2m1 in
            assembly for cri that does not keep them. Kernels for other targets choose it in `%cr0`.
        choices: alternatives of rules that no source decides, each as "NAME=ALTERNATIVE" (docs/numerics.md lists them).
            Constants that the lowering has folded follow the default rules.
        check: the checks, or "all" for all of them. `memory` (accesses outside of allocations) is always on. `uninit`
            finds reads of registers that were never written, `races` unordered accesses of one byte, and `bounds` 2D
            blocks beyond their surface. `surfaces` finds blocks of XeGPU whose messages, as upstream makes them, break
            rules of the target (docs/message-rules.md).
        schedules: with the check `races`: in how many other orders of threads the interpreter runs the launch first;
            results that differ are an error.
        strict_grf: whether it is an error if the variables do not fit into the registers.
        engine: "jit" (native code), "interpreter" (the definition), or "both", which runs both and compares all
            memory. The default is the JIT, or with `uninit` the interpreter, which reports the first uninitialised read
            of all threads. If the JIT finds a race, the interpreter runs the launch again and reports it. "reference"
            evaluates a kernel of MLIR at its own level. Of the other options only `model` and the choice
            `reduction-order` then have an effect, and `check` is refused.
        threads: the number of operating system threads of the JIT; by default one for each processor.
        cache: the folder where lowered kernels and native code are kept, or "off"; by default the value of the
            environment variable XEGPU_PY_CACHE, otherwise a folder in the user's cache directory.
        progress: whether runs of more than a second show a progress bar if standard error is a terminal.
    """

    target: str = DEFAULT
    registers: int | None = None
    optimize: bool = True
    prefetch: Annotated[int, Range(0, FARTHEST_PREFETCH)] = 0
    load_ahead: bool = False
    subgroups: int | None = None
    unaligned: tuple[Annotated[int, Range(0)], ...] = ()
    large: bool | None = None
    strided: tuple[int, ...] = ()
    aliased: bool = False
    model: Model = "fma"
    dpas_denormals: Literal["keep", "flush"] = "keep"
    choices: tuple[str, ...] = ()
    check: tuple[str, ...] = ()
    schedules: Annotated[int, Range(0)] = 0
    strict_grf: bool = False
    engine: Engine | Literal["reference"] | None = None
    threads: Annotated[int, Range(1, MOST_THREADS)] | None = None
    cache: str | PathLike[str] | None = None
    progress: bool = True

    def __post_init__(self) -> None:
        check_fields(self, leave_out=("model", "engine", "dpas_denormals"))
        gpu = target_of(self.target)
        for name in ("model", "engine", "dpas_denormals"):
            if hasattr(given := getattr(self, name), "__array__"):
                raise TypeError(f"'{name}' must be a name, but got {given!r}")
        if self.model not in MODELS and not isinstance(self.model, Systolic):
            raise ValueError(f"'model' must be one of {', '.join(MODELS)}, but got {self.model!r}")
        if self.dpas_denormals not in DENORMALS:
            legal_values = ", ".join(DENORMALS)
            raise ValueError(f"'dpas_denormals' must be one of {legal_values}, but got {self.dpas_denormals!r}")
        decided = gpu.systolic_denormals and not {*NARROW} & {*gpu.dpas_precisions}
        if self.dpas_denormals == "flush" and (decided or self.engine == REFERENCE):
            where = f"kernels for target {self.target} choose it in %cr0"
            if self.engine == REFERENCE:
                where = f"the engine '{REFERENCE}' keeps subnormal numbers"
            raise ValueError(f"'dpas_denormals' cannot be 'flush': {where}")
        alternatives = selected(self.choices)
        _refuse_unknown_checks(self.check)
        if self.schedules and "races" not in self.check:
            raise ValueError(f"'schedules' must be a number of orders for the check races, but got {self.schedules!r}")
        if self.engine == REFERENCE:
            refuse_choices(REFERENCE, [name for name in alternatives if name != "reduction-order"])
            refuse_checks(REFERENCE, self.check)
            return
        if self.engine is not None and self.engine not in ENGINES:
            raise ValueError(f"'engine' must be one of {', '.join(ENGINES)}, but got {self.engine!r}")
        if self.subgroups is not None and not 0 <= self.subgroups <= gpu.threads:
            raise ValueError(f"'subgroups', or num_warps, must be 0 to {gpu.threads}, but got {self.subgroups}")
        if self.registers is not None and self.registers not in gpu.grf_counts:
            counts = " or ".join(map(str, gpu.grf_counts))
            raise ValueError(f"target {self.target} has {counts} registers, not {self.registers}")

    @classmethod
    @checked
    def from_keywords(
        cls,
        *,
        check: str | Sequence[str] = (),
        choices: str | Sequence[str] = (),
        unaligned: Sequence[int] | None = None,
        **others: Any,
    ) -> Options:
        """The options of a call of a public function; `check` may be one of `CHECKS`, and `choices` one text.

        Raises:
            TypeError: if there is no such option.
            ValueError: if a value is not legal.
        """
        for name in others:
            if name not in OPTIONS:
                raise TypeError(unknown_option(name, OPTIONS))
        checks, rules = ((texts,) if isinstance(texts, str) else tuple(texts) for texts in (check, choices))
        checks = CHECKS if ALL_CHECKS in checks else checks
        return cls(check=checks, choices=rules, unaligned=tuple(sorted(unaligned or ())), **others)

    def key(self) -> str:
        """The options on which the lowered kernel depends."""
        lowering_options = structs.replace(self, large=bool(self.large))
        own = [getattr(lowering_options, name) for name in _LOWERING]
        return repr([*own, "surfaces" in self.check, self.reduction_order])

    @property
    def reduction_order(self) -> str:
        """The alternative of the choice `reduction-order`; empty for the default."""
        return selected(self.choices).get("reduction-order", "")


_LOWERING = (
    "target", "registers", "optimize", "prefetch", "load_ahead", "subgroups", "unaligned", "large", "strided",
    "aliased",
)  # fmt: skip
"""The options that decide how a kernel is lowered."""

if TYPE_CHECKING:
    # Type checkers take the keywords of a function from no other class than a TypedDict.
    from typing_extensions import TypedDict

    class _Keywords(TypedDict, total=False):
        target: str
        registers: int | None
        optimize: bool
        prefetch: int
        load_ahead: bool
        subgroups: int | None
        unaligned: Sequence[int] | None
        large: bool | None
        model: Model
        dpas_denormals: Literal["keep", "flush"]
        choices: str | Sequence[str]
        check: str | Sequence[str]
        schedules: int
        strict_grf: bool
        threads: int | None
        cache: str | PathLike[str] | None
        progress: bool

    class CompileKeywords(_Keywords, total=False):
        """The keywords of `compile`."""

        engine: Engine | None

    class JitKeywords(_Keywords, total=False):
        """The keywords of `jit`, of which the last have no effect."""

        engine: Engine | Literal["reference", "eager"] | None
        do_not_specialize: Sequence[str | int]
        do_not_specialize_on_alignment: Sequence[str | int]
        noinline: bool
        debug: bool | None
        version: Any
        repr: Any
        launch_metadata: Any


DENORMALS = CHOICES["dpas-denormals"].values
"""The values of `dpas_denormals`."""

OPTIONS = frozenset(Options.__struct_fields__) - {"strided", "aliased"}
"""The options that callers choose."""


def refuse_checks(engine: str, check: Sequence[str]) -> None:
    """Reject the checks that an evaluator of values cannot make: all but `memory`, which it always makes.

    Raises:
        ValueError: if there is another check, or no check of a name.
    """
    _refuse_unknown_checks(check)
    refused = [name for name in check if name != "memory"]
    if refused:
        raise ValueError(
            f"engine '{engine}' does not support the check{'s' * (len(refused) > 1)} {', '.join(refused)}: it has "
            "neither registers and messages nor concurrent threads; the engines of vISA make these checks"
        )


def refuse_choices(engine: str, choices: Sequence[str] | Mapping[str, str]) -> None:
    """Reject alternatives of rules, which only the engines of vISA follow.

    Raises:
        ValueError: if there is one.
    """
    if choices:
        raise ValueError(f"engine '{engine}' does not support the option choices: it follows the default rules")


def _refuse_unknown_checks(check: Sequence[str]) -> None:
    for name in check:
        if name not in CHECKS:
            raise ValueError(f"unknown check '{name}'; there are {', '.join((*CHECKS, ALL_CHECKS))}")
