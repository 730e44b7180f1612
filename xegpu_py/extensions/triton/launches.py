"""Loaded kernels: TTIR that is compiled for the settings of a launch, and run on the arguments that Triton passes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import triton
from msgspec import structs
from triton.runtime.errors import OutOfResources

from xegpu_py.cache import Cache, digest, folder_of
from xegpu_py.deferred import deferred
from xegpu_py.extensions.profile.gpus import USUAL, gpu
from xegpu_py.extensions.triton.arguments import Parameter, at_path, key_of, padding_of, parameters_of, passed
from xegpu_py.extensions.triton.compile_ahead import AHEAD
from xegpu_py.extensions.triton.lowering.positions import Assumptions
from xegpu_py.extensions.triton.lowering.tt_to_xetile import VERSION, lowered_to_xetile
from xegpu_py.extensions.triton.settings import TUNING, Settings, current
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Source
from xegpu_py.ir.module import Module, parse_source
from xegpu_py.lower_kernel import KernelSource, ModuleSource
from xegpu_py.runtime.caller_warnings import warn_caller
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.runtime.launch import Prepared
from xegpu_py.runtime.options import Options
from xegpu_py.target import target as target_of

if TYPE_CHECKING:
    from xegpu_py.extensions.profile import launches, time_model
else:
    launches = deferred("xegpu_py.extensions.profile.launches")
    time_model = deferred("xegpu_py.extensions.profile.time_model")

SECONDS: ContextVar[list[float] | None] = ContextVar("seconds", default=None)
"""Takes the model's time of each launch, which then does not run; None if none is wanted."""

Measure: TypeAlias = Callable[[Callable[[str], Kernel], Sequence[Any], tuple[int, int, int]], Any]
"""Runs a launch: it gets the kernel for each target, where "" is that of the settings, the arguments, and the grid."""

MEASUREMENT: ContextVar[tuple[Measure, list[Any]] | None] = ContextVar("measurement", default=None)
"""The function that runs each launch, and the list that takes its results; None for a call."""

FEWER_SUBGROUPS = (0, 4, 2)
"""The numbers of subgroups with which a kernel is tried that does not fit shared memory: fewer exchange less. 0 is the
number that suits the tiles."""

VIRTUAL = "virtual"
"""The target of kernels that do not fit the GPU, if no autotuner has others."""

MOST_PREPARED = 64
"""Launches that a kernel remembers, with the addresses of their arguments."""

MEMORY_KILOHERTZ = 1_000_000
"""The clock of memory that programs see: they multiply it by the width of its bus, and by 2."""


def device_properties(settings: Settings) -> dict[str, int]:
    """Properties of the GPU that programs compute their grids of; clocks are in kHz.

    The bus has as many bits as move the memory's peak in one transfer for each cycle of a clock of 1 GHz.
    """
    target = target_of(settings.target)
    model = gpu(settings.target if settings.target in USUAL else "bmg")
    registers = target.grf_counts[0] * target.grf_bytes // 4
    return {
        "max_shared_mem": target.slm_bytes,
        "multiprocessor_count": model.cores,
        "max_num_regs": registers * 8 * model.engines,
        "warpSize": target.dpas_exec_size,
        "sm_clock_rate": int(model.clock / 1000),
        "mem_clock_rate": MEMORY_KILOHERTZ,
        "mem_bus_width": int(model.memory_rate * 8 / 2 / (1000 * MEMORY_KILOHERTZ)),
    }


class TtirSource:
    """The text of TTIR, and the modules of XeTile that are made of it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._made: dict[tuple[Any, ...], tuple[Module, Assumptions]] = {}

    def module(self, target: str, padding: tuple[str, ...], exact: bool, divisions: bool) -> ModuleSource:
        """The module of XeTile; see `tt_to_xetile`.

        Args:
            target: the GPU's name.
            padding: how blocks of the descriptors among the arguments are loaded.
            exact: whether no integers are assumed to fit.
            divisions: whether divisors are checked.
        """
        key = ("ttir", VERSION, target, ",".join(padding), str(exact), str(divisions), self.text)
        return ModuleSource(lambda: self._lowered(target, padding, exact, divisions)[0], key)

    def _lowered(
        self, target: str, padding: tuple[str, ...], exact: bool, divisions: bool = False
    ) -> tuple[Module, Assumptions]:
        key = (target, padding, exact, divisions)
        if key not in self._made:
            module = parse_source(Source(self.text, "<ttir>"))
            self._made[key] = lowered_to_xetile(
                module, target=target, padding=padding, exact=exact, divisions=divisions
            )
        return self._made[key]

    def assumptions(self, target: str, padding: tuple[str, ...]) -> Assumptions:
        """The assumptions on a launch of the module that is not exact, from the cache on disk if it is there."""
        key = digest("assumptions", VERSION, target, ",".join(padding), self.text)
        return Cache(folder_of(None)).kept(
            "assumptions",
            key,
            lambda: self._lowered(target, padding, False)[1],
            read=Assumptions.decode,
            write=lambda made: made.encode(),
        )


_LACKING = re.compile(r"([\d,]+) bytes[^\n]*?, but (a thread|target \w+) has ([\d,]+)")
"""A diagnostic of a kernel that does not fit the registers or the shared memory of the GPU."""


def _must_fit() -> bool:
    """Whether the question is if a kernel fits its GPU: by an autotuner, or by a measurement for several GPUs."""
    return TUNING.get() or MEASUREMENT.get() is not None


def _of_programs(diagnostic: Diagnostic) -> Diagnostic:
    """A diagnostic in Triton's words: a workgroup is a program."""
    message = diagnostic.message.replace("in workgroup (", "in program (")
    return structs.replace(diagnostic, message=message, notes=tuple(map(_of_programs, diagnostic.notes)))


def predicted_seconds(run: Callable[[], Any]) -> float:
    """The time on the GPU, by the model, of the kernels that a function launches."""
    seconds: list[float] = []
    token = SECONDS.set(seconds)
    try:
        run()
    finally:
        SECONDS.reset(token)
    return sum(seconds)


class LoadedKernel:
    """A kernel of Triton: what its `function` is.

    Attributes:
        name: the kernel's name.
        source: its TTIR.
        last: the version that the last launch ran; None before the first one.
    """

    registers = 32
    """The value of `n_regs`: registers of a work item, of 32 bits each. Programs divide by it."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.source = name, TtirSource(text)
        self.last: Kernel | None = None
        self._parameters: tuple[Parameter, ...] | None = None
        self._kernels: dict[tuple[Any, ...], Kernel] = {}
        self._assumptions: dict[tuple[str, tuple[str, ...]], Assumptions] = {}
        self._prepared: dict[tuple[Any, ...], tuple[Kernel, Prepared]] = {}

    def launch(
        self, grid: tuple[int, int, int], signature: Sequence[tuple[str, Any]], arguments: Sequence[Any]
    ) -> None:
        """Run the kernel.

        Args:
            grid: the number of programs in x, y and z.
            signature: the names and Triton's types of the parameters.
            arguments: one for each parameter.

        Raises:
            TypeError: if an argument does not fit.
            DiagnosticError: if the kernel cannot be lowered, or fails as it runs.
            OutOfResources: if an autotuner tries a configuration that does not fit the GPU.
        """
        if self._parameters is None:
            self._parameters = parameters_of(signature)
        settings = current()
        values = [arguments[p.path[0]] if len(p.path) == 1 else at_path(arguments, p.path) for p in self._parameters]
        measurement, seconds = MEASUREMENT.get(), SECONDS.get()
        if (measurement is not None or seconds is not None) and 0 not in grid:
            flat = self._passed(values)

            def on(target: str) -> Kernel:
                own = structs.replace(settings, target=target or settings.target)
                found = self._version(own, grid, values, flat)
                if not target:
                    self.last = found
                return found

            if measurement is not None:
                measure, results = measurement
                results.append(measure(on, flat, grid))
            if seconds is not None:
                seconds.append(time_model.predicted(launches.launched(on(""), flat, grid)).seconds)
            return
        key = (settings, grid, *map(key_of, self._parameters, values))
        prepared = self._prepared.get(key)
        if prepared is None:
            if 0 in grid:
                return
            prepared = self._prepare(settings, grid, values)
            if prepared[1].staged is None and not prepared[0].program.prints:
                while len(self._prepared) >= MOST_PREPARED:
                    self._prepared.pop(next(iter(self._prepared)))
                self._prepared[key] = prepared
        self.last = prepared[0]
        if TUNING.get():
            self.last.executor.optimize()
        if AHEAD.get():
            self.last.executor.compile()
            return
        try:
            self.last.stats = self.last.executor.run(prepared[1])
        except DiagnosticError as e:
            e.diagnostics = [_of_programs(d) for d in e.diagnostics]
            raise

    def _prepare(
        self, settings: Settings, grid: tuple[int, int, int], values: Sequence[Any]
    ) -> tuple[Kernel, Prepared]:
        """The version of the kernel that a launch runs, and its arguments."""
        flat = self._passed(values)
        return self._version(settings, grid, values, flat).prepared(flat, grid, None)

    def _passed(self, values: Sequence[Any]) -> list[Any]:
        """The arguments that the kernel of a launch takes."""
        assert self._parameters is not None
        points = "tt.int_to_ptr" in self.source.text or "!tt.ptr<!tt.ptr" in self.source.text
        return [one for p, a in zip(self._parameters, values) for one in passed(p, a, points)]

    def _version(
        self, settings: Settings, grid: tuple[int, int, int], values: Sequence[Any], flat: Sequence[Any]
    ) -> Kernel:
        """The kernel of a launch with arguments `flat`."""
        assert self._parameters is not None
        padding = tuple(padding_of(a) for p, a in zip(self._parameters, values) if p.kind == "descriptor")
        key = (settings.target, padding)
        if key not in self._assumptions:
            self._assumptions[key] = self.source.assumptions(*key)
        return self.kernel(settings, padding, not self._assumptions[key].hold(flat, grid), (flat, grid))

    def kernel(
        self,
        settings: Settings,
        padding: tuple[str, ...] = (),
        exact: bool = False,
        call: tuple[Sequence[Any], tuple[int, int, int]] | None = None,
    ) -> Kernel:
        """The kernel compiled for settings; see `TtirSource.module`.

        Args:
            call: the arguments and the grid of the call for which it is compiled, if it has not been compiled yet.

        Raises:
            DiagnosticError: if it cannot be lowered.
            OutOfResources: if an autotuner tries a configuration that does not fit the GPU.
        """
        key = (settings, padding, exact)
        known = self._kernels.get(key)
        if known is None or (_must_fit() and known.target.name != settings.target):
            more: dict[str, Any] = {"check": settings.of_launch} if settings.of_launch else {}
            more |= {"engine": settings.engine} if settings.engine else {}
            more |= {"threads": settings.threads} if settings.threads else {}
            made = self._compiled(settings, (padding, exact, settings.divisions), call, more)
            made.names = [name for p in self._parameters or () for name in p.names()]
            self._kernels[key] = made
        return self._kernels[key]

    def _compiled(
        self,
        settings: Settings,
        variant: tuple[tuple[str, ...], bool, bool],
        call: tuple[Sequence[Any], tuple[int, int, int]] | None,
        options: dict[str, Any],
    ) -> Kernel:
        """The kernel with its tiles divided among as many subgroups as suit them, or as few as fit the GPU; if none do,
        for the target `VIRTUAL`, with a warning.

        Args:
            variant: the arguments of `TtirSource.module` after the target.
            call: see `kernel`.

        Raises:
            DiagnosticError: if it cannot be lowered.
            OutOfResources: if an autotuner tries a configuration that does not fit the GPU.
        """

        def compiled(target: str, subgroups: int) -> Kernel:
            options["registers"] = target_of(target).grf_counts[-1]
            chosen = Options.from_keywords(target=target, subgroups=subgroups, **options)
            compiler = KernelSource(self.source.module(target, *variant), None)
            if call:
                return compiler.for_call(chosen, *call)
            return Kernel(compiler.executable(chosen), chosen, compiler=compiler)

        for count in FEWER_SUBGROUPS:
            try:
                return compiled(settings.target, count)
            except DiagnosticError as e:
                lacking = _LACKING.search(str(e))
                if lacking is None or settings.target == VIRTUAL:
                    raise
                needed, most = (int(n.replace(",", "")) for n in (lacking[1], lacking[3]))
                resource = "registers" if "thread" in lacking[2] else "shared memory"
                if TUNING.get():
                    raise OutOfResources(needed, most, resource) from e
                if _must_fit() and count == FEWER_SUBGROUPS[-1]:
                    raise
        made = compiled(VIRTUAL, 0)
        text = (
            f"kernel '{made.name}' needs {needed:,} bytes of {resource}, but {settings.target} has {most:,}: it runs on"
            f" the target '{VIRTUAL}', which is no GPU; smaller blocks fit one"
        )
        warn_caller(text, str(Path(triton.__file__).parent))
        return made


def stage(text: str, level: str) -> Any:
    """A level below TTIR of a kernel as the usual launch compiles it: text, or the bytes of "zebin".

    Raises:
        FinalizerError: for "zebin", if Intel's compiler is not installed.
    """
    kernel = LoadedKernel("", text).kernel(current())
    if level == "zebin":
        return kernel.binary()
    return kernel.asm if level == "visa" else kernel.ir(level)
