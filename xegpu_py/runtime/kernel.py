"""`Kernel`: a call on numpy arrays checks them, chooses a version, stages the arrays, and runs the engines."""

from __future__ import annotations

import functools
import itertools
import math
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from msgspec import structs

from xegpu_py.cache import Cache, folder_of
from xegpu_py.deferred import deferred
from xegpu_py.dialects.xegpu.types import UNIT_STRIDES
from xegpu_py.engines.faults import RuntimeFault
from xegpu_py.engines.jit.checks import MAX_REUSED_BYTES, RaceSuspected, Shadow
from xegpu_py.engines.jit.engine import Jit, NativeLaunch
from xegpu_py.engines.jit.llvm import LLVMError
from xegpu_py.engines.jit.native_code import processors
from xegpu_py.engines.operands import BUILTIN_OFFSETS, Batch, RegisterPositions, new_batch
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Source, decode_utf8
from xegpu_py.ir.module import Module
from xegpu_py.numerics.choices import selected
from xegpu_py.numerics.formats import Array
from xegpu_py.plugins import plugin
from xegpu_py.runtime.device_memory import DeviceMemory
from xegpu_py.runtime.executable import Engine, Executable, Options, beyond, is_pointer, value_of
from xegpu_py.runtime.host_arrays import PackedArrays, PointerTable, Staged
from xegpu_py.runtime.launch import (
    NO_GRID,
    THREADS_AT_ONCE,
    EngineMismatch,
    ExecutionCounter,
    Grid,
    Prepared,
    Prints,
    Statistics,
    block_of,
    engine_of,
    first_difference,
    memory_for,
    progress_bar,
    without_waits,
)
from xegpu_py.runtime.repairs import Repairs
from xegpu_py.runtime.specialization import Compiler, Specialization
from xegpu_py.target import target as target_of
from xegpu_py.visa.allocate import HEADER_BYTES, engine_allocation
from xegpu_py.visa.choices import with_choices
from xegpu_py.visa.dataflow import flow_of, has_calls, may_multiply_unwritten, polls
from xegpu_py.visa.fp_modes import with_modes
from xegpu_py.visa.legacy_messages import expand_legacy
from xegpu_py.visa.linking import linked
from xegpu_py.visa.operands import STATE
from xegpu_py.visa.program import PRINT_BUFFER, Dim, Instruction, Program, extent, kernel_index
from xegpu_py.visa.verify import verify

if TYPE_CHECKING:
    from xegpu_py import highlighting
    from xegpu_py.engines import interpreter
    from xegpu_py.engines import races as race_detection
    from xegpu_py.engines.interpreter import Observer
    from xegpu_py.engines.jit.checks import Log
    from xegpu_py.visa import assembly, finalizer
else:
    interpreter = deferred("xegpu_py.engines.interpreter")
    race_detection = deferred("xegpu_py.engines.races")
    highlighting = deferred("xegpu_py.highlighting")
    assembly = deferred("xegpu_py.visa.assembly")
    finalizer = deferred("xegpu_py.visa.finalizer")


_PACKAGE = str(Path(__file__).parents[1])


def warn_caller(text: str | None, *libraries: str) -> None:
    """Warn at the line that calls this package, if there is a text.

    Args:
        libraries: the folders of other packages between that line and this one.
    """
    if not text:
        return
    # Cached properties call by functools.
    inner = (_PACKAGE, functools.__file__, *libraries)
    frames = (frame.f_code.co_filename for frame, _ in traceback.walk_stack(sys._getframe()))
    warnings.warn(text, stacklevel=1 + sum(1 for _ in itertools.takewhile(lambda f: f.startswith(inner), frames)))


class Kernel:
    """A kernel lowered to vISA.

        gemm = xegpu_py.compile("gemm.mlir", target="pvcxt")
        gemm(a, b, c, grid=(8, 8), block=(4, 4))

    The first version assumes that 2D block messages can address its arrays, that their innermost stride is 1, and that
    arrays, indices and grids are small (`SMALL`), so that 32 bits suffice for most values of type index. A call that
    violates an assumption compiles another version without it; for arrays that 2D block messages cannot address, that
    version uses gathers and scatters.

    Attributes:
        name: the kernel's name.
        executable: the lowered kernel.
        program: its program.
        options: the options.
        target: the GPU.
        remarks: the remarks of the lowering about code that is correct but slow; see `version_for`.
        stats: statistics of the last call; None before the first call.
        names: the user's names of the arguments, for error messages; empty if they have none.
        runnable: the program as engines run it, whose instructions say how they round.
        engine: the engine that runs it: that of the options, or else the default.
        allocation: the registers of the variables.
        layout: where the variables lie.
        observer: called for each executed instruction; the interpreter only.
        log: takes the records of messages, if the layout says that there are some; native code only.
        groups: the numbers of the workgroups that run, x varying fastest; None for all.
    """

    def __init__(
        self,
        executable: Executable | Program,
        options: Options | None = None,
        *,
        compiler: Compiler | None = None,
        is_version: bool = False,
        general: tuple[Executable, Options] | None = None,
        source: Source | None = None,
        **keywords: Any,
    ) -> None:
        """Make a kernel of a lowered one, or of a program of assembly.

        Args:
            compiler: lowers the kernel with other options; None if it was not lowered here.
            is_version: whether this is a version for certain arguments, from which no other version is made.
            general: the assumptions, and the options, of the kernel for all calls, if this is a version of it.
            source: the text from which the program was read, which errors quote.
            keywords: `Options` by their names, if `options` is not given.

        Raises:
            ValueError: if an option is not legal.
            DiagnosticError: if the program breaks a rule, or does not fit with `strict_grf`.
        """
        if isinstance(executable, Program):
            executable = Executable.of_assembly(executable, source)
        options = options or Options.from_keywords(**keywords)
        self.executable, self.name, self.remarks = executable, executable.name, executable.remarks
        self._compiler, self._is_version = compiler, is_version
        self._general = general or (executable, options)
        self._versions: dict[Specialization, Kernel] = {}
        self._sources = [executable.source] if executable.source else []
        self.stats: Statistics | None = None
        self.names: Sequence[str] = ()
        # The last call's key, version and arguments, if a call with the same key need not prepare them again.
        self._last_call: tuple[tuple[object, ...], Kernel, Prepared] | None = None
        program, self.options, self.target = executable.program, options, target_of(options.target)
        issues = verify(program, self.target)
        if issues:
            raise DiagnosticError([i.diagnostic() for i in issues], self._sources)
        # The text keeps messages of earlier GPUs; what runs has those for which they stand.
        self.program = program = expand_legacy(program, self.target)
        runnable = with_modes(program, self.target, options.dpas_denormals == "flush")
        self.runnable = with_choices(runnable, self.target, tuple(selected(options.choices).items()))
        self.engine = engine_of(options)
        self.observer: Observer | None = None
        self.log: Log | None = None
        self.groups: range | None = None
        self._repairs = Repairs(executable, self.target)
        self.allocation = engine_allocation(program, self.target, options.registers)
        predicates = {p: i for i, p in enumerate(program.predicates)}
        watch, races, bounds = (name in options.check for name in ("uninit", "races", "bounds"))
        watch_products = not watch and self.target.strict_dpas and may_multiply_unwritten(program, self.target)
        self.layout = RegisterPositions(
            self.target,
            self.allocation,
            predicates,
            watch or watch_products,
            races,
            bounds,
            executable.exact_messages,
            program.local_bits,
            watch_products=watch_products,
            exact_addresses=executable.is_assembly or executable.exact_addresses,
            watches_columns=executable.repaired is not None and not executable.exact_messages,
        )
        # The allocations whose loads native code records, as earlier launches found: see `Shadow`.
        self._recorded: set[int] = set()
        self._shadow: Shadow | None = None
        # The arguments of native code live as long as those of the launch.
        self._native_launches: WeakKeyDictionary[Prepared, NativeLaunch] = WeakKeyDictionary()
        if options.strict_grf and self.allocation.beyond:
            raise self._error(f"kernel '{self.name}' does not fit: {self.allocation.report()}")

    @classmethod
    def from_assembly(cls, text: str, *, name: str | None = None, file: str = "<string>", **options: Any) -> Kernel:
        """Read a kernel from vISA assembly.

        Args:
            name: the kernel's name; optional if the text has one kernel.
            file: the name of the text in errors.
            options: the options of `Kernel`.

        Raises:
            ValueError: if there is no such kernel.
            DiagnosticError: if the text cannot be parsed, or the kernel is not valid.
        """
        source = Source(text, file)
        programs = linked(assembly.read(source))
        return cls(programs[kernel_index([p.name for p in programs], name)], source=source, **options)

    @classmethod
    def from_file(cls, path: str | Path, *, name: str | None = None, **options: Any) -> Kernel:
        """Read a kernel from a file of vISA assembly; see `from_assembly`."""
        source = decode_utf8(Path(path).read_bytes(), str(path))
        return cls.from_assembly(source.text, name=name, file=str(path), **options)

    @property
    def types(self) -> tuple[str, ...]:
        """The types of the kernel's arguments, in MLIR's text."""
        return tuple(p.type for p in self.executable.parameters)

    @property
    def subgroups(self) -> int | None:
        """The number of subgroups of a workgroup if the kernel's maps define it; otherwise None."""
        return self.executable.subgroups

    @functools.cached_property
    def _levels(self) -> Mapping[str, Module]:
        return self._compiler.levels(self.options) if self._compiler else {}

    def _repr_html_(self) -> str:
        return highlighting.html(self.asm)

    @property
    def asm(self) -> str:
        """vISA assembly, with comments that give the line of the module that each instruction comes from."""
        return assembly.write([self.executable.program], lines=True)

    def binary(self, target: str | None = None) -> bytes:
        """The kernel as a binary for GPUs (zebin, an ELF file), which a driver launches; docs/hardware.md says how.

        It is of this version of the kernel, with its assumptions about arguments; see `version_for`.

        Args:
            target: the GPU's name; that of the options by default. Another one lowers the kernel again.

        Raises:
            ValueError: if the target is another one, and the kernel was read from assembly.
            FinalizerError: if ocloc is not installed, or does not know the target.
            DiagnosticError: if it does not accept the kernel.
        """
        if target not in (None, self.options.target):
            if self._compiler is None:
                raise ValueError(f"kernel '{self.name}' is assembly for {self.options.target}, not {target}")
            return self._lowered(self._compiler, structs.replace(self.options, target=target)).binary()
        try:
            text = assembly.write([self.executable.program])
            return finalizer.finalize(text, self.options.target, self.options.registers, "ocloc").binary
        except finalizer.FinalizerMissing:
            raise
        except finalizer.FinalizerError as refused:
            raise self._error(f"kernel '{self.name}': {refused}") from None

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels that `ir` accepts, the highest first."""
        return tuple(self._levels)

    def ir(self, level: str, debuginfo: bool = False) -> str:
        """The module's text at a level: as it was written ("xetile" or "xegpu"), or lowered ("xegpu" or "visa").

        Lowered modules do not have the module's other kernels, unless there is host code, which may launch them.

        Args:
            debuginfo: whether the text has the location of each op.

        Raises:
            ValueError: if there is no such level.
        """
        return self.module(level).text(debuginfo=debuginfo)

    def module(self, level: str) -> Module:
        """The module at a level, which is not to be changed; see `ir`."""
        if level not in self._levels:
            raise ValueError(f"unknown level '{level}'; there are {', '.join(self._levels)}")
        return self._levels[level]

    def _lowered(self, compiler: Compiler, options: Options, is_version: bool = True) -> Kernel:
        """The kernel, lowered again with other options."""
        version = Kernel(compiler.executable(options), options, compiler=compiler, is_version=is_version)
        version.names = self.names
        return version

    def with_engine(self, engine: Engine, **options: Any) -> Kernel:
        """This version of the kernel on an engine, without checks, and with other options of the engine."""
        options = {"engine": engine, "check": (), "schedules": 0, **options}
        own = structs.replace(self.options, **options)
        version = Kernel(self.executable, own, compiler=self._compiler, is_version=True)
        version.names = self.names
        return version

    def with_choices(self, choices: Sequence[str]) -> Kernel | None:
        """This version of the kernel, lowered again with other choices; None if it was not lowered here."""
        options = structs.replace(self.options, choices=tuple(choices))
        return self._lowered(self._compiler, options) if self._compiler else None

    def for_target(self, target: str) -> Kernel:
        """The kernel for another GPU: lowered again, or the same assembly, with the rules of that GPU.

        Raises:
            ValueError: if there is no such target, or the kernel is a version for certain arguments.
            DiagnosticError: if it cannot be lowered, or breaks a rule of the target.
        """
        target_of(target)
        options = structs.replace(self._general[1], target=target)
        if self.executable.is_assembly:
            own = Kernel(self.executable, options)
            own.names = self.names
            return own
        if self._compiler is None or self._is_version:
            raise ValueError(
                f"kernel '{self.name}' is a version for certain arguments, of target {self.options.target}"
            )
        return self._lowered(self._compiler, options, is_version=False)

    @property
    def block(self) -> tuple[int, ...]:
        """The block of calls that give none: that of known_block_size, or as many subgroups as the maps say, or 1."""
        return self.executable.known.get("block") or (self.subgroups or 1,)

    def version_for(self, arguments: Sequence[Any], grid: int | Sequence[int] = 1) -> Kernel:
        """The version of the kernel that a call with these arguments runs; this one if its assumptions hold.

        Args:
            arguments, grid: as in a call.

        Raises:
            TypeError: if the number of arguments is not the kernel's.
        """
        self._check_count(arguments)
        if self._compiler is None or self._is_version:
            return self
        arguments = self._packed(arguments, PackedArrays())
        assumed, options = self._general
        # These are known only when a kernel has been lowered.
        assumed = structs.replace(assumed, limits=self.executable.limits, unit_strides=self.executable.unit_strides)
        needed = Specialization.of_call(assumed, options, arguments, grid)
        if needed == Specialization.of_options(self.options):
            return self
        if needed not in self._versions:
            self._versions[needed] = self._lowered(self._compiler, needed.applied_to(options))
        version = self._versions[needed]
        warn_caller(self._repairs.of_arrays(arguments, version.remarks))
        return version

    def _check_count(self, arguments: Sequence[Any]) -> None:
        parameters = self.executable.parameters
        if len(arguments) != len(parameters):
            parameters_text = ", ".join(p.listed(i) for i, p in enumerate(parameters))
            raise TypeError(
                f"kernel '{self.name}' takes {len(parameters)} arguments ({parameters_text}), but got {len(arguments)}"
            )

    def _title(self, argument: int) -> str:
        """An argument in error messages about it."""
        if self.names:
            return f"argument '{self.names[argument]}' of kernel '{self.name}'"
        return self.executable.parameters[argument].title(argument, self.name)

    def memory_name(self, argument: int) -> str:
        """The memory of an argument in error messages."""
        if self.names:
            return self.names[argument]
        return self.executable.parameters[argument].name or f"argument {argument}"

    def _position_of(self, argument: int) -> str:
        """The position of an argument in the kernel's text; empty if it is not known."""
        return f"{self.executable.places[argument]}: " if self.executable.parameters[argument].name else ""

    def __call__(
        self, *arguments: Any, grid: int | Sequence[int] = NO_GRID, block: int | Sequence[int] | None = None
    ) -> Statistics:
        """Run the kernel; arrays are changed in place.

        Args:
            arguments: one for each of the kernel's: for a memref an array of its element type, shape and strides, for
                a vector an array of its elements, else a number. An array for elements of 2 or 4 bits has ml_dtypes'
                type for them, or is one of uint8 in which they are packed along rows.
            grid: workgroups in x, or in x, y and z; by default one, with a warning if the kernel reads block ids.
            block: subgroups of a workgroup likewise; of a kernel of work items its work items. By default it is what
                the kernel's known_block_size or its maps say, else 1.

        Raises:
            TypeError, ValueError: if an argument does not fit; the message names it, and what was expected.
            DiagnosticError: if the kernel fails as it runs; arrays may hold what it had written by then.
        """
        parameters = self.executable.parameters
        self._check_count(arguments)
        block = block_of(block, self.block, self.subgroups)
        key = self._key(arguments, extent(grid, "grid"), extent(block, "block"))
        packed_arrays, last_call = PackedArrays(), self._last_call
        if key is not None and last_call is not None and last_call[0] == key:
            _, version, prepared = last_call
        else:
            version, prepared = self._prepared(arguments, grid, block, packed_arrays)
            if grid is NO_GRID and self.executable.reads_block_ids:
                left_out = f"kernel '{self.name}' reads block ids, but the call has no grid: one workgroup runs"
                warn_caller(left_out)
            is_repeatable = prepared.staged is None and not version.program.prints
            self._last_call = (key, version, prepared) if key is not None and is_repeatable else None
        try:
            version.stats = self.stats = version.run(prepared)
        except DiagnosticError as e:
            if not self.executable.is_assembly:
                argument_names = [f"argument '{n}'" for n in self.names] or [
                    p.shown(i) for i, p in enumerate(parameters)
                ]
                e.diagnostics = [
                    _with_remedy(d, arguments, argument_names, self.executable.exact_messages) for d in e.diagnostics
                ]
            raise
        finally:
            packed_arrays.write_back()
        return self.stats

    def profile(self, *arguments: Any, grid: int | Sequence[int] = 1, block: int | Sequence[int] | None = None) -> Any:
        """Run the kernel, and count what it does: the `Profile` of the plugin `profile`.

        The arguments and errors are those of a call.
        """
        return plugin("profile")(self, *arguments, grid=grid, block=block)

    def fidelity(
        self,
        *arguments: Any,
        grid: int | Sequence[int] = 1,
        block: int | Sequence[int] | None = None,
        only: Sequence[str] = (),
    ) -> Any:
        """Run the kernel, and tell which chosen rules it exercised and depends on: the `Fidelity` of the plugin
        `fidelity`.

        The arguments and errors are those of a call.

        Args:
            only: the names of the choices of which the alternatives run; all by default.
        """
        return plugin("fidelity")(self, *arguments, grid=grid, block=block, only=only)

    def _key(self, arguments: Sequence[Any], grid: Dim, block: Dim) -> tuple[object, ...] | None:
        """The key of a prepared call: properties of its arguments, without the contents of arrays; None if it looks at
        contents too.
        """
        key: list[object] = [grid, block]
        for parameter, argument in zip(self.executable.parameters, arguments):
            if parameter.is_memref and type(argument) is np.ndarray and not parameter.is_packed:
                data_pointer = argument.__array_interface__["data"]
                key.append((data_pointer, argument.shape, argument.strides, argument.dtype))
            elif type(argument) in (bool, int, float):
                key.append((type(argument), repr(argument)))
            else:
                return None
        return tuple(key)

    def prepared(
        self,
        arguments: Sequence[Any],
        grid: int | Sequence[int],
        block: int | Sequence[int] | None,
        packed_arrays: PackedArrays | None = None,
    ) -> tuple[Kernel, Prepared]:
        """The version of the kernel that a call runs, and the arguments with which it does; see `__call__`.

        Args:
            packed_arrays: takes the packed copies of arrays, which the caller writes back.
        """
        self._check_count(arguments)
        packed_arrays = PackedArrays() if packed_arrays is None else packed_arrays
        return self._prepared(arguments, grid, block_of(block, self.block, self.subgroups), packed_arrays)

    def _prepared(
        self,
        arguments: Sequence[Any],
        grid: int | Sequence[int],
        block: int | Sequence[int],
        packed_arrays: PackedArrays,
    ) -> tuple[Kernel, Prepared]:
        """The version of the kernel that a call runs, and the arguments with which it does; see `__call__`."""
        parameters = self.executable.parameters
        for extent_name, extent_value in (("grid", grid), ("block", block)):
            known_extent = self.executable.known.get(extent_name)
            if known_extent and extent(extent_value, extent_name) != known_extent:
                raise ValueError(
                    f"'{extent_name}' must be {known_extent}, as known_{extent_name}_size says, but got {extent_value}"
                )
        arguments = tuple(self._packed(arguments, packed_arrays))
        version = self.version_for(arguments, grid)
        if version is not self:
            return version._prepared(arguments, grid, block, packed_arrays)
        warn_caller(self._repairs.of_lowering())
        unlike = next(filter(None, (p.unlike(arguments) for p in self.executable.products)), None)
        if unlike:
            warnings.warn(unlike, stacklevel=3)
        # A version without the limit would have been chosen already.
        is_final_version = self._compiler is None or self._is_version or self.options.large is not None
        exceeded_limit = beyond(parameters, arguments, grid, self.executable.limits) if is_final_version else None
        if exceeded_limit:
            raise ValueError(
                f"{exceeded_limit}, and kernel '{self.name}' was compiled for less; large=True compiles it for more"
            )
        for i in self.executable.strided(arguments):
            step = arguments[i].strides[-1] // arguments[i].itemsize
            raise ValueError(
                f"{self._position_of(i)}{self._title(i)} has an "
                f"innermost stride of {step} elements, but the kernel's {UNIT_STRIDES} says 1; numpy.ascontiguousarray "
                "makes it 1, and without that attribute xegpu-legalize gathers the array's elements"
            )
        values: dict[str, tuple[Any, int]] = {}
        for i, (parameter, argument) in enumerate(zip(parameters, arguments)):
            values |= {
                name: (extent_value, i) for name, extent_value in parameter.inputs(i, argument, self._title(i)).items()
            }
        return self, self._staged(values, Grid(extent(grid, "grid"), extent(block, "block")))

    def _staged(self, inputs_by_name: Mapping[str, tuple[Any, int]], size: Grid) -> Prepared:
        """Check the inputs of a launch, and move them to device memory; errors as in `__call__`.

        Args:
            inputs_by_name: the value of each input, by the input's name, and the number of its argument.
        """
        threads = size.threads(self.program)
        if threads > self.target.threads:
            raise ValueError(
                f"'block' makes workgroups of {threads} hardware threads; "
                f"on target {self.target.name} they have at most {self.target.threads}"
            )
        memory = memory_for(self.options)
        staged = Staged(memory)
        values = {}
        for item in self.program.arguments:
            name = item.var.name
            argument, number = inputs_by_name[name]
            title = self._title(number)
            if is_pointer(item) and isinstance(argument, PointerTable) and argument.arrays:
                staged.add_table(name, argument, title, self.memory_name(number))
            elif is_pointer(item) and isinstance(argument, np.ndarray) and argument.ndim:
                # Assembly has no strides: it accesses the elements of strided arrays as contiguous.
                staged.add(name, argument, title, self.memory_name(number), self.executable.is_assembly)
            else:
                values[name] = value_of(item, argument, title)
        values |= staged.addresses()
        return Prepared(size, values, memory, None if staged.in_place else staged)

    def _error(self, message: str, *notes: str) -> DiagnosticError:
        where = self.program.where
        error = Diagnostic("error", message, where, tuple(Diagnostic("note", n, where) for n in notes))
        return DiagnosticError([error], self._sources)

    def _packed(self, arguments: Sequence[Any], packed_arrays: PackedArrays) -> Sequence[Any]:
        """The arguments, with arrays of 2-bit and 4-bit elements packed."""
        if not any(p.is_packed for p in self.executable.parameters):
            return arguments
        return [
            packed_arrays.pack(a, p.element, self._title(i)) if p.is_packed else a
            for i, (p, a) in enumerate(zip(self.executable.parameters, arguments))
        ]

    @functools.cached_property
    def _interpreter(self) -> interpreter.Interpreter:
        return interpreter.Interpreter(self.runnable, self.layout, self.options.model)

    def broken_rules(self, launch: Prepared) -> DiagnosticError | None:
        """Run on the interpreter, also what breaks a rule of the target's messages; memory does not change.

        Returns:
            The error of each instruction that breaks one, and that with which the run ends; None without errors.
        """
        version = self.with_engine("interpreter", check=self.options.check)
        tolerated: dict[int, RuntimeFault] = {}
        version._interpreter.tolerated = tolerated
        ends: list[Diagnostic] = []
        try:
            version.run(structs.replace(launch, memory=launch.memory.copy(), staged=None))
        except DiagnosticError as failure:
            ends += failure.diagnostics
        errors = [*map(_diagnostic, tolerated.values()), *ends]
        return DiagnosticError(errors, self._sources) if errors else None

    def run(self, launch: Prepared) -> Statistics:
        """Launch the kernel on prepared arguments, and copy its output to standard output; errors as in `__call__`.

        Raises:
            ValueError: if there is an observer, and the engine does not support it.
        """
        if self.observer is not None and self.engine != "interpreter":
            raise ValueError(f"only the interpreter tells an observer what ran, not the engine '{self.engine}'")
        try:
            if self.options.schedules:
                self._compare_schedules(launch)
            statistics = self._printing(launch) if self.program.prints else self._on_engine()(launch)
        except RuntimeFault as fault:
            raise DiagnosticError([_diagnostic(fault)], self._sources) from None
        except EngineMismatch as mismatch:
            raise self._error(f"kernel '{self.name}': {mismatch}") from None
        except LLVMError as failure:
            note = "the interpreter runs it: engine='interpreter', or --engine=interpreter"
            raise self._error(f"kernel '{self.name}' has no native code: {failure}", note) from None
        if launch.staged:
            launch.staged.write_back(self.name)
        warn_caller(self._repairs.of_launch(statistics))
        return statistics

    def compile(self) -> None:
        """Compile the native code, if launches run it."""
        self._on_engine()

    def _on_engine(self) -> Callable[[Prepared], Statistics]:
        """The method that runs a launch on the kernel's engine."""
        if self.engine == "interpreter":
            return self._run_interpreted
        if self.engine == "both":
            return self._run_both
        # Only native code records messages.
        if self.log is None and not self._has_native_code:
            return self._run_in_place
        return self._run_race_checked if self.layout.races else self._run_native

    def _printing(self, launch: Prepared) -> Statistics:
        """Run a launch, and print what the kernel prints."""
        prints = Prints(launch.memory)
        launch = prints.given(launch)
        try:
            if self.engine == "both":
                return self._run_both(launch, prints)
            with prints.reading(launch.memory):
                return self._on_engine()(launch)
        finally:
            print(prints.text, end="")

    def _run_both(self, launch: Prepared, prints: Prints | None = None) -> Statistics:
        """Run a launch on both engines, and compare all memory."""
        interpreted = structs.replace(launch, memory=launch.memory.copy())
        with prints.reading(interpreted.memory) if prints else nullcontext():
            self._run_interpreted(interpreted)
        printed = prints and prints.text
        with prints.reading(launch.memory) if prints else nullcontext():
            statistics = (self._run_race_checked if self.layout.races else self._run_native)(launch)
        if prints and prints.text != printed:
            raise EngineMismatch("the engines print different texts")
        if unlike := first_difference(interpreted.memory, launch.memory):
            count, name, at, expected, actual = unlike
            raise EngineMismatch(
                f"the engines differ in {count} bytes of '{name}', first in byte {at}: {expected:#04x} of "
                f"the interpreter, {actual:#04x} of the JIT"
            )
        return statistics

    def _compare_schedules(self, launch: Prepared) -> None:
        """Run the launch on copies of the memory, in the usual order of threads and in others, with and without delays
        of stores.

        Raises:
            RuntimeFault: if it fails in one of the orders, or leaves other bytes; a note names the order.
        """
        if self.program.prints:
            launch = structs.replace(launch, memory=launch.memory.copy())
            launch = Prints(launch.memory).given(launch)
        usual: DeviceMemory | None = None
        schedules = [(seed, delays) for seed in range(1, self.options.schedules + 1) for delays in (False, True)]
        for seed, delays in [(0, False), *schedules]:
            memory = launch.memory.copy()
            note = f"in the order of threads of seed {seed}{', with delayed stores' * delays}"
            self._interpreter.order = np.random.default_rng(seed) if seed else None
            self._interpreter.delays = delays
            try:
                self._run_interpreted(structs.replace(launch, memory=memory))
            except RuntimeFault as fault:
                if seed:
                    fault.notes.append(note)
                raise
            finally:
                self._interpreter.order, self._interpreter.delays = None, False
            if usual is None:
                usual = memory
                continue
            if unlike := first_difference(usual, memory):
                count, name, at, first_bytes, second_bytes = unlike
                raise RuntimeFault(
                    f"the results of kernel '{self.program.name}' depend on the order of threads: "
                    f"{count} bytes of '{name}' differ, first byte {at}: {first_bytes:#04x} or {second_bytes:#04x}",
                    [note],
                    self.program.where,
                )

    def _run_interpreted(self, launch: Prepared) -> Statistics:
        size, group_size = launch.size, launch.size.threads(self.program)
        groups = range(math.prod(size.grid)) if self.groups is None else self.groups
        count = len(groups)
        group_limit = max(1, THREADS_AT_ONCE // max(group_size, 1))
        counter = ExecutionCounter(len(self.program.instructions), self.observer)
        self._interpreter.observer = counter
        traffic: Counter[tuple[str, str]] = Counter()
        misplaced: Instruction | None = None
        races: race_detection.Races | None = None
        # Delayed stores would seem to change what other threads have changed; the usual order has been checked.
        if self.layout.races and not self._interpreter.delays:
            races = race_detection.Races(
                self.runnable, group_size, count, len(launch.memory.data), size.namer(group_size)
            )
        with progress_bar(self.program.name, count, self.options.progress) as progress:
            # Most races show in the first workgroup.
            start, at_once = (
                0,
                1 if races and self._interpreter.order is None and not polls(self.program) else group_limit,
            )
            while start < count:
                group_numbers = np.asarray(groups[start : start + at_once], np.int64)
                batch = self._batch(group_numbers, launch)
                if races:
                    races.begin(start, len(group_numbers), batch.barriers.phases.shape[1], self.program.slm_bytes)
                    batch.races = races
                self._interpreter.run(batch, size.namer(group_size, start * group_size))
                traffic += batch.traffic
                misplaced = misplaced or batch.misplaced
                start, at_once = start + len(group_numbers), group_limit
                progress(start)
        executed = without_waits(self.runnable, counter.executed)
        return Statistics(count * group_size, executed, traffic, self.allocation, misplaced)

    @functools.cached_property
    def jit(self) -> Jit:
        """The program as native code."""
        cache = Cache(folder_of(self.options.cache))
        return Jit(self.runnable, self.layout, self.options.model, single_thread=False, cache=cache)

    @functools.cached_property
    def _has_native_code(self) -> bool:
        """Whether LLVM compiles the program. If it fails, the interpreter runs the launches, with one warning."""
        try:
            return bool(self.jit)
        except LLVMError as failure:
            warn_caller(
                f"kernel '{self.name}' runs on the interpreter, which is slow: it has no native code: {failure}"
            )
            return False

    def _run_in_place(self, launch: Prepared) -> Statistics:
        """Run the interpreter on memory that was prepared for native code."""
        interpreted = launch.memory.copy()
        try:
            return self._run_interpreted(structs.replace(launch, memory=interpreted))
        finally:
            launch.memory.assign(interpreted)

    def _run_race_checked(self, launch: Prepared) -> Statistics:
        """Run native code that looks for races. If it fails, the interpreter runs the launch again, to report them."""
        memory, threads = launch.memory, math.prod(launch.size.grid) * launch.size.threads(self.program)
        while True:
            earlier_shadow, self._shadow = self._shadow, None
            workers = self.options.threads or processors()
            shadow = Shadow(self.runnable, memory, threads, workers, self._recorded, earlier_shadow)
            try:
                statistics = self._run_native(launch, shadow)
            except (RaceSuspected, RuntimeFault):
                shadow.restore()
                interpreted = memory.copy()
                try:
                    statistics = self._run_interpreted(structs.replace(launch, memory=interpreted))
                except RuntimeFault:
                    memory.assign(interpreted, PRINT_BUFFER)
                    raise
                memory.assign(interpreted)
                return statistics
            if shadow.bytes <= MAX_REUSED_BYTES:
                self._shadow = shadow
            unrecorded = shadow.unrecorded()
            if not unrecorded:
                return statistics
            shadow.restore()
            self._recorded |= unrecorded

    def _native_launch(self, prepared: Prepared) -> NativeLaunch:
        """The arguments of native code, kept for another launch with the same arguments."""
        if known := self._native_launches.get(prepared):
            return known
        program, size = self.runnable, prepared.size
        group_size = size.threads(program)
        registers = np.zeros(self.jit.frame.registers, np.uint8)
        self._fill(registers, prepared)
        launch = NativeLaunch(
            size.grid,
            size.block[:2],
            group_size,
            size.items_of_a_thread(program),
            registers,
            prepared.memory,
            size.namer(group_size),
            self._initialised_bytes(len(registers)) if self.layout.watch else None,
        )
        self._native_launches[prepared] = launch
        return launch

    def _run_native(self, prepared: Prepared, shadow: Shadow | None = None) -> Statistics:
        """Run native code."""
        program, launch = self.runnable, self._native_launch(prepared)
        if shadow or self.log or self.groups is not None:
            launch = structs.replace(launch, shadow=shadow, log=self.log, chosen=self.groups)
        with progress_bar(program.name, launch.groups, self.options.progress) as progress:
            statistics = self.jit.run(launch, self.options.threads, progress)
        executed = without_waits(program, statistics.executed)
        number = statistics.misplaced
        misplaced = None if number is None else program.instructions[number]
        return Statistics(launch.groups * launch.group_size, executed, statistics.traffic, self.allocation, misplaced)

    def _batch(self, groups: Array, launch: Prepared) -> Batch:
        program, size = self.runnable, launch.size
        batch = new_batch(
            len(groups),
            size.threads(program),
            max(self.allocation.bytes, self.target.grf_bytes),
            len(program.predicates),
            int(program.attributes.get("NBarrierCnt", 0)),
            program.slm_bytes,
            launch.memory,
            divergent=flow_of(program).divergent,
            watch=self.layout.watch,
            calls=has_calls(program),
        )
        header = np.zeros((batch.threads, HEADER_BYTES), np.uint8)
        header_words = header.view(np.uint32)
        header_words[:, 2] = batch.numbers
        x, y, _ = size.grid
        for axis, coordinates in zip("xyz", (groups % x, groups // x % y, groups // (x * y))):
            header_words[:, BUILTIN_OFFSETS[f"%group_id_{axis}"] // 4] = coordinates[batch.groups]
        batch.regs[:, :HEADER_BYTES] = header
        self._fill(batch.regs, launch)
        for item in program.inputs:
            if item.kind == "LOCAL_ID":
                at = self.allocation.offset(item.var)
                batch.regs[:, at : at + item.size] = size.local_ids(program, batch.numbers).view(np.uint8)
        if batch.written is not None:
            batch.written[:] = self._initialised_bytes(batch.written.shape[1])
        return batch

    def _fill(self, registers: Array, launch: Prepared) -> None:
        """Write the inputs that all threads share to the registers, uint8[..., bytes]."""
        for item in self.program.inputs:
            if item.kind != "LOCAL_ID":
                value = launch.size.implicit(item.kind) if item.kind else launch.values[item.var.name]
                at = self.allocation.offset(item.var)
                registers[..., at : at + item.size] = np.frombuffer(value, np.uint8)

    def _initialised_bytes(self, count: int) -> Array:
        """Return the mask of register bytes that are initialised at the start of a thread, bool[count]."""
        initialised = np.zeros(count, bool)
        initialised[:HEADER_BYTES] = True
        for var in (*(item.var for item in self.program.inputs), *STATE.values()):
            if var.root[0] in self.allocation.offsets:
                at = self.allocation.offset(var)
                initialised[at : at + var.bytes] = True
        return initialised


CompiledKernel = Kernel
"""The kernel that `xegpu_py.compile` returns."""


def _with_remedy(fault: Diagnostic, arguments: Sequence[Any], argument_names: Sequence[str], exact: bool) -> Diagnostic:
    """Add a note with the fix to a fault at a surface that 2D block messages cannot address, or behind an array that
    repeats its elements. `argument_names` are the arguments in messages, and `exact` is that of the executable."""
    repeated = [i for i, a in enumerate(arguments) if isinstance(a, np.ndarray) and a.size and 0 in a.strides]
    if "over the end of" in fault.message and repeated:
        note = (
            f"{argument_names[repeated[0]]} has shape {arguments[repeated[0]].shape} and strides "
            f"{arguments[repeated[0]].strides}: a stride of 0 repeats elements, so it has less memory than its shape "
            "says; numpy.ascontiguousarray makes a copy that has all of it"
        )
        return structs.replace(fault, notes=(*fault.notes, Diagnostic("note", note, fault.position)))
    if exact or "accesses a surface whose" not in fault.message:
        return fault
    text = (
        "addresses, extents and strides that are unknown at compile time are assumed to satisfy the rules of 2D block "
        "messages, except for arguments listed in the kernel's attribute xegpu.unaligned or in the argument "
        "'unaligned' of xegpu_py.compile"
    )
    return structs.replace(fault, notes=(*fault.notes, Diagnostic("note", text, fault.position)))


def _diagnostic(fault: RuntimeFault) -> Diagnostic:
    notes = [(note, fault.position) for note in fault.notes] + ([fault.elsewhere] if fault.elsewhere else [])
    notes_of_fault = tuple(Diagnostic("note", text, where) for text, where in notes)
    return Diagnostic("error", fault.message, fault.position, notes_of_fault)
