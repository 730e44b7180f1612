"""`Kernel`: a call on numpy arrays checks them, chooses a version, stages the arrays, and runs its executor."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs

from xegpu_py.deferred import deferred
from xegpu_py.dialects.xegpu.types import UNIT_STRIDES
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Source, decode_utf8
from xegpu_py.ir.module import Module
from xegpu_py.plugins import plugin
from xegpu_py.runtime.caller_warnings import warn_caller
from xegpu_py.runtime.executable import Executable
from xegpu_py.runtime.executor import Executor
from xegpu_py.runtime.host_arrays import PackedArrays, PointerTable, Staged
from xegpu_py.runtime.launch import NO_GRID, Grid, Prepared, Statistics, block_of, memory_for
from xegpu_py.runtime.options import Engine, Options
from xegpu_py.runtime.parameters import beyond, is_pointer, value_of
from xegpu_py.runtime.specialization import Compiler, Specialization
from xegpu_py.target import target as target_of
from xegpu_py.visa.linking import linked
from xegpu_py.visa.program import Dim, Program, extent, kernel_index

if TYPE_CHECKING:
    from xegpu_py import highlighting
    from xegpu_py.visa import assembly, finalizer
else:
    highlighting = deferred("xegpu_py.highlighting")
    assembly = deferred("xegpu_py.visa.assembly")
    finalizer = deferred("xegpu_py.visa.finalizer")


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
        executor: runs it on an engine.
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
        self.stats: Statistics | None = None
        self.names: Sequence[str] = ()
        # The last call's key, version and arguments, if a call with the same key need not prepare them again.
        # Without the version if it is this kernel: a cycle would keep its memory, its module and that one's context.
        self._last_call: tuple[tuple[object, ...], Kernel | None, Prepared] | None = None
        self.options, self.target = options, target_of(options.target)
        self.executor = Executor(executable, options)
        self.program = self.executor.program

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
            raise self.executor.error(f"kernel '{self.name}': {refused}") from None

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
        warn_caller(self.executor.repairs.of_arrays(arguments, version.remarks))
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
            _, other, prepared = last_call
            version = self if other is None else other
        else:
            version, prepared = self._prepared(arguments, grid, block, packed_arrays)
            if grid is NO_GRID and self.executable.reads_block_ids:
                left_out = f"kernel '{self.name}' reads block ids, but the call has no grid: one workgroup runs"
                warn_caller(left_out)
            is_repeatable = prepared.staged is None and not version.program.prints
            other = None if version is self else version
            self._last_call = (key, other, prepared) if key is not None and is_repeatable else None
        try:
            version.stats = self.stats = version.executor.run(prepared)
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
        warn_caller(self.executor.repairs.of_lowering())
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

    def _packed(self, arguments: Sequence[Any], packed_arrays: PackedArrays) -> Sequence[Any]:
        """The arguments, with arrays of 2-bit and 4-bit elements packed."""
        if not any(p.is_packed for p in self.executable.parameters):
            return arguments
        return [
            packed_arrays.pack(a, p.element, self._title(i)) if p.is_packed else a
            for i, (p, a) in enumerate(zip(self.executable.parameters, arguments))
        ]

    def broken_rules(self, launch: Prepared) -> DiagnosticError | None:
        """Run on the interpreter, also what breaks a rule of the target's messages; memory does not change.

        Returns:
            The error of each instruction that breaks one, and that with which the run ends; None without errors.
        """
        return self.with_engine("interpreter", check=self.options.check).executor.broken_rules(launch)


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
