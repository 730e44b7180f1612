"""`compile`: a kernel of an MLIR module, ready to be called on numpy arrays."""

from __future__ import annotations

import functools
import math
import re
import warnings
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from mlir import ir as mlir
from msgspec import structs

from xegpu_py import reference
from xegpu_py.dialects.xegpu.types import UNIT_STRIDES
from xegpu_py.drawing import html
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError
from xegpu_py.ir.module import Context, Module
from xegpu_py.ir.passes import collector_paused
from xegpu_py.kernel import Kernel, Prepared
from xegpu_py.lowered import (
    Lowered,
    ModuleSource,
    Options,
    chosen_kernel,
    lower,
    lowered_or_kept,
    subgroups_of,
    text_of,
)
from xegpu_py.numerics.dpas import Model
from xegpu_py.runtime.executable import beyond, unaligned_arrays, unaligned_surfaces, unlike_products
from xegpu_py.runtime.host_arrays import PackedArrays
from xegpu_py.runtime.launch import Engine, Statistics
from xegpu_py.target import DEFAULT
from xegpu_py.target import target as target_of
from xegpu_py.visa import assembly
from xegpu_py.visa.program import Dim, extent

_SSA_NAME = re.compile(r"%[\w$.-]+")


class CompiledKernel:
    """A kernel lowered to vISA.

        gemm = xegpu_py.compile("gemm.mlir", target="pvcxt")
        gemm(a, b, c, grid=(8, 8), block=(4, 4))

    The first version assumes that 2D block messages can address its arrays, that their innermost stride is 1, and that
    arrays, indices and grids are small (`SMALL`), so that 32 bits suffice for most values of type index. A call that
    violates an assumption compiles another version without it; for arrays that 2D block messages cannot address, that
    version uses gathers and scatters.

    Attributes:
        name: the kernel's name.
        kernel: the vISA kernel that runs.
        remarks: the remarks of the lowering about code that is correct but slow; see `version_for`.
        stats: statistics of the last call; None before the first call.
        names: the user's names of the arguments, for error messages; empty if they have none.
    """

    def __init__(
        self,
        lowered: Lowered,
        again: Callable[[tuple[int, ...], bool, tuple[int, ...]], CompiledKernel] | None = None,
        unaligned: Sequence[int] = (),
        relower: Callable[[], Lowered] | None = None,
        **options: Any,
    ) -> None:
        """Make a callable kernel of a lowered one; see `compile`.

        Args:
            again: compiles another version, given the numbers of the unaligned arguments, whether arguments are large,
                and the numbers of the arguments whose innermost stride is not 1; None if there are no other versions.
            unaligned: the numbers of the arguments that are not assumed to be aligned.
            relower: lowers the kernel again, to get the modules of a kernel that was read from the cache on disk.
            options: the options of `Kernel`.
        """
        self._lowered, self._relower = lowered, relower
        self._again, self._unaligned = again and functools.cache(again), unaligned
        self.name, self.remarks = lowered.name, lowered.remarks
        self.kernel = Kernel(lowered.program, source=lowered.source, **options)
        self.stats: Statistics | None = None
        self.names: Sequence[str] = ()
        # The last call's key, version and arguments, if a call with the same key need not prepare them again.
        self._last: tuple[tuple[object, ...], CompiledKernel, Prepared] | None = None

    @functools.cached_property
    def types(self) -> tuple[mlir.Type, ...]:
        """The MLIR types of the kernel's arguments."""
        with Context():
            return tuple(mlir.Type.parse(p.type) for p in self._lowered.parameters)

    @property
    def subgroups(self) -> int | None:
        """The number of subgroups of a workgroup if the kernel's maps define it; otherwise None."""
        return self._lowered.subgroups

    @functools.cached_property
    def _levels(self) -> dict[str, Module]:
        return self._lowered.levels or (self._relower().levels if self._relower else {})

    def _repr_html_(self) -> str:

        return html(self.asm)

    @property
    def asm(self) -> str:
        """vISA assembly, with comments that give the line of the module that each instruction comes from."""
        # Imported only here: most kernels are not printed.

        return assembly.write([self.kernel.program], lines=True)

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels that `ir` accepts, the highest first."""
        return tuple(self._levels)

    def ir(self, level: str) -> str:
        """The module's text at a level: as it was written ("xetile" or "xegpu"), or lowered ("xegpu" or "visa").

        Lowered modules do not have the module's other kernels, unless there is host code, which may launch them.

        Raises:
            ValueError: if there is no such level.
        """
        if level not in self._levels:
            raise ValueError(f"unknown level '{level}'; there are {', '.join(self._levels)}")
        return str(self._levels[level])

    @property
    def block(self) -> tuple[int, ...]:
        """The block of calls that give none: that of known_block_size, or as many subgroups as the maps say, or 1."""
        return self._lowered.known.get("block") or (self.subgroups or 1,)

    def version_for(self, arguments: Sequence[Any], grid: int | Sequence[int] = 1) -> CompiledKernel:
        """The version of the kernel that a call with these arguments runs; this one if its assumptions hold.

        Args:
            arguments, grid: as in a call.
        """
        if self._again is None:
            return self
        arguments = self._packed(arguments, PackedArrays())
        target = self.kernel.launcher.target.name
        unaligned = {*self._unaligned, *unaligned_arrays(self._lowered.parameters, arguments, target)}
        unaligned.update(unaligned_surfaces(self._lowered.surfaces, arguments, target))
        large = beyond(self._lowered.parameters, arguments, grid, self._lowered.limits) is not None
        strided = self._strided(arguments)
        if unaligned == set(self._unaligned) and not large and not strided:
            return self
        found = self._again(tuple(sorted(unaligned)), large, strided)
        found.names = self.names
        return found

    def _title(self, argument: int) -> str:
        """An argument in error messages."""
        if self.names:
            return f"argument '{self.names[argument]}' of kernel '{self.name}'"
        return f"argument {argument} of kernel '{self.name}', {_article(self._lowered.parameters[argument].type)},"

    def _strided(self, arguments: Sequence[Any]) -> tuple[int, ...]:
        """The numbers of the arguments whose innermost stride is assumed to be 1, but is not."""
        parameters = self._lowered.parameters
        return tuple(i for i in self._lowered.unit_strides if parameters[i].is_strided(arguments[i]))

    def _place(self, argument: int) -> str:
        """The position and name of an argument in the kernel's text; empty if they are not known."""
        where, source = self._lowered.places[argument], self._lowered.source
        line = source.line(where.line) if source and where.line else None
        name = _SSA_NAME.match(line, where.column - 1) if line else None
        return f"{where}: {name[0]}, " if name else ""

    def __call__(
        self, *arguments: Any, grid: int | Sequence[int] = 1, block: int | Sequence[int] | None = None
    ) -> Statistics:
        """Run the kernel; arrays are changed in place.

        Args:
            arguments: one for each of the kernel's: for a memref an array of its element type, shape and strides, for
                a vector an array of its elements, else a number. An array for elements of 2 or 4 bits has ml_dtypes'
                type for them, or is one of uint8 in which they are packed along rows.
            grid: workgroups in x, or in x, y and z.
            block: subgroups of a workgroup likewise; of a kernel of work items its work items. By default it is what
                the kernel's known_block_size or its maps say, else 1.

        Raises:
            TypeError, ValueError: if an argument does not fit; the message names it, and what was expected.
            DiagnosticError: if the kernel fails as it runs; arrays may hold what it had written by then.
        """
        parameters = self._lowered.parameters
        if len(arguments) != len(parameters):
            expected = ", ".join(f"{i}: {p.type}" for i, p in enumerate(parameters))
            raise TypeError(
                f"kernel '{self.name}' takes {len(parameters)} arguments ({expected}), but got {len(arguments)}"
            )
        block = _block(block, self.block, self.subgroups)
        key = self._key(arguments, extent(grid, "grid"), extent(block, "block"))
        held, last = PackedArrays(), self._last
        if key is not None and last is not None and last[0] == key:
            _, version, prepared = last
        else:
            version, prepared = self._prepared(arguments, grid, block, held)
            again = prepared.staged is None and not version.kernel.program.prints
            self._last = (key, version, prepared) if key is not None and again else None
        try:
            version.stats = self.stats = version.kernel.run(prepared)
        except DiagnosticError as e:
            e.diagnostics = [_with_names(_with_remedy(d, arguments), self.names) for d in e.diagnostics]
            raise
        finally:
            held.write_back()
        return self.stats

    def _key(self, arguments: Sequence[Any], grid: Dim, block: Dim) -> tuple[object, ...] | None:
        """All that preparing a call looks at, without the contents of arrays; None if it looks at contents too."""
        key: list[object] = [grid, block]
        for parameter, given in zip(self._lowered.parameters, arguments):
            if parameter.is_memref and type(given) is np.ndarray and not parameter.is_packed:
                place = given.__array_interface__["data"]
                key.append((place, given.shape, given.strides, given.dtype))
            elif type(given) in (bool, int, float):
                key.append((type(given), repr(given)))
            else:
                return None
        return tuple(key)

    def _prepared(
        self, arguments: Sequence[Any], grid: int | Sequence[int], block: int | Sequence[int], held: PackedArrays
    ) -> tuple[CompiledKernel, Prepared]:
        """The version of the kernel that a call runs, and the arguments with which it does; see `__call__`."""
        parameters = self._lowered.parameters
        for what, given in (("grid", grid), ("block", block)):
            wanted = self._lowered.known.get(what)
            if wanted and extent(given, what) != wanted:
                raise ValueError(f"'{what}' must be {wanted}, as known_{what}_size says, but got {given}")
        arguments = tuple(self._packed(arguments, held))
        version = self.version_for(arguments, grid)
        if version is not self:
            return version._prepared(arguments, grid, block, held)
        unlike = unlike_products(self._lowered.products, arguments)
        if unlike:
            warnings.warn(unlike, stacklevel=3)
        # If there are other versions, the right one has been chosen already.
        more = beyond(parameters, arguments, grid, self._lowered.limits) if self._again is None else None
        if more:
            raise ValueError(f"{more}, and kernel '{self.name}' was compiled for less; large=True compiles it for more")
        for i in self._strided(arguments):
            step = arguments[i].strides[-1] // arguments[i].itemsize
            raise ValueError(
                f"{self._place(i)}{self._title(i)} has an "
                f"innermost stride of {step} elements, but the kernel's {UNIT_STRIDES} says 1; numpy.ascontiguousarray "
                "makes it 1, and without that attribute xegpu-legalize gathers the array's elements"
            )
        values: dict[str, Any] = {}
        titles: dict[str, str] = {}
        for i, (parameter, argument) in enumerate(zip(parameters, arguments)):
            title = self._title(i)
            found = parameter.inputs(i, argument, title)
            values |= found
            titles |= dict.fromkeys(found, title)
        names = [item.var.name for item in self.kernel.program.arguments]
        return self, self.kernel.prepare([values[n] for n in names], [titles[n] for n in names], grid, block)

    def _packed(self, arguments: Sequence[Any], held: PackedArrays) -> Sequence[Any]:
        """The arguments, with arrays of 2-bit and 4-bit elements packed."""
        if not any(p.is_packed for p in self._lowered.parameters):
            return arguments
        return [
            held.pack(a, p.element, self._title(i)) if p.is_packed else a
            for i, (p, a) in enumerate(zip(self._lowered.parameters, arguments))
        ]


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeio' or kind.startswith('f') else 'a'} {kind}"


def _block(given: int | Sequence[int] | None, default: tuple[int, ...], subgroups: int | None) -> int | Sequence[int]:
    """The block of a launch: the given one, otherwise the one that the kernel defines.

    Raises:
        ValueError: if its number of subgroups differs from that of the kernel's maps.
    """
    if given is None:
        return default
    if subgroups and math.prod(extent(given, "block")) != subgroups:
        raise ValueError(f"'block' must be {subgroups} subgroups, as the kernel's maps say, but got {given}")
    return given


def _with_names(found: Diagnostic, names: Sequence[str]) -> Diagnostic:
    """A diagnostic in which memory has the user's names of the arguments instead of 'in0', 'in1', ..."""
    if not names:
        return found

    def named(match: re.Match[str]) -> str:
        return f"'{names[int(match[1])]}'" if int(match[1]) < len(names) else match[0]

    notes = tuple(_with_names(note, names) for note in found.notes)
    return structs.replace(found, message=re.sub(r"'in(\d+)'", named, found.message), notes=notes)


def _with_remedy(fault: Diagnostic, arguments: Sequence[Any]) -> Diagnostic:
    """Add a note with the fix to a fault at a surface that 2D block messages cannot address, or behind an array that
    repeats its elements."""
    repeated = [i for i, a in enumerate(arguments) if isinstance(a, np.ndarray) and a.size and 0 in a.strides]
    if "over the end of" in fault.message and repeated:
        note = (
            f"argument {repeated[0]} has shape {arguments[repeated[0]].shape} and strides "
            f"{arguments[repeated[0]].strides}: a stride of 0 repeats elements, so it has less memory than its shape "
            "says; numpy.ascontiguousarray makes a copy that has all of it"
        )
        return structs.replace(fault, notes=(*fault.notes, Diagnostic("note", note, fault.position)))
    if "accesses a surface whose" not in fault.message:
        return fault
    text = (
        "addresses, extents and strides that are unknown at compile time are assumed to satisfy the rules of 2D block "
        "messages, except for arguments listed in the kernel's attribute xegpu.unaligned or in the argument "
        "'unaligned' of xegpu_py.compile"
    )
    return structs.replace(fault, notes=(*fault.notes, Diagnostic("note", text, fault.position)))


def refuse_checks(engine: str, check: Sequence[str]) -> None:
    """Reject the checks that an evaluator of values cannot make: all but `memory`, which it always makes.

    Raises:
        ValueError: if there is another check.
    """
    others = [name for name in check if name != "memory"]
    if others:
        raise ValueError(
            f"engine '{engine}' does not support the check{'s' * (len(others) > 1)} {', '.join(others)}: it has "
            "neither registers nor concurrent threads; the engines of vISA make these checks"
        )


class ReferenceKernel:
    """A kernel that is not lowered: `xegpu_py.reference` evaluates its module op by op.

    Attributes:
        name: the kernel's name.
        types: the MLIR types of the kernel's arguments.
        subgroups: the number of subgroups of a workgroup if the kernel's maps define it; otherwise None.
        block: see `CompiledKernel.block`.
        names: see `CompiledKernel.names`.
    """

    def __init__(self, module: Module, name: str, model: Model) -> None:
        """Make a kernel of a module; see `compile`."""
        # Lowered kernels do not need the evaluator, and importing it takes as long as lowering a small kernel.

        self._module, self._model, self._reference = module, model, reference
        self.names: Sequence[str] = ()
        self.name = name
        func = reference.kernel_of(module, name)
        self.types = reference.types_of(func)
        known = func.attributes.get("known_block_size")
        self.subgroups = subgroups_of(module, name)
        self.block = tuple(mlir.DenseI32ArrayAttr(known)) if known is not None else (self.subgroups or 1,)

    def __call__(
        self, *arguments: Any, grid: int | Sequence[int] = 1, block: int | Sequence[int] | None = None
    ) -> None:
        """Evaluate the kernel. Arguments and errors are those of `CompiledKernel.__call__`."""
        block = _block(block, self.block, self.subgroups)
        self._reference.run(
            self._module, self.name, arguments, grid=grid, block=block, model=self._model, names=self.names
        )


@overload
def compile(
    module: Module | ModuleSource | str | Path,
    kernel: str | None = None,
    *,
    engine: Literal["reference"],
    model: Model = "fma",
) -> ReferenceKernel: ...


@overload
def compile(
    module: Module | ModuleSource | str | Path,
    kernel: str | None = None,
    *,
    target: str = DEFAULT,
    model: Model = "fma",
    check: Sequence[str] = (),
    registers: int | None = None,
    strict_grf: bool = False,
    engine: Engine | None = None,
    threads: int | None = None,
    cache: str | PathLike[str] | None = None,
    progress: bool = True,
    optimize: bool = True,
    prefetch: int = 0,
    load_ahead: bool = False,
    unaligned: Sequence[int] | None = None,
    large: bool | None = None,
) -> CompiledKernel: ...


def compile(
    module: Module | ModuleSource | str | Path,
    kernel: str | None = None,
    *,
    target: str = DEFAULT,
    model: Model = "fma",
    check: Sequence[str] = (),
    registers: int | None = None,
    strict_grf: bool = False,
    engine: Engine | Literal["reference"] | None = None,
    threads: int | None = None,
    cache: str | PathLike[str] | None = None,
    progress: bool = True,
    optimize: bool = True,
    prefetch: int = 0,
    load_ahead: bool = False,
    unaligned: Sequence[int] | None = None,
    large: bool | None = None,
) -> CompiledKernel | ReferenceKernel:
    """Lower a kernel of XeTile or XeGPU to vISA.

    With `engine="reference"` the kernel is not lowered, but evaluated at its own level. Of the other options only
    `model` then has an effect, and `check` is refused.

    Args:
        module: a module, its text, the path of a file with its text, or a `ModuleSource`. The module is not changed.
            Text in upstream MLIR's dialect `xegpu` is imported (see `import_upstream`).
        kernel: the name of the `gpu.func`; optional if the module has one kernel.
        target: the GPU.
        model, check, registers, strict_grf, engine, threads, cache, progress: see `Kernel`.
        optimize: whether the pass visa-optimize runs.
        prefetch: XeTile kernels only: how many iterations ahead loops prefetch the tiles that they load; 0 for none.
        load_ahead: XeTile kernels only: whether loops load tiles one iteration ahead.
        unaligned: the numbers of the arguments whose addresses, extents and strides are not assumed to satisfy the
            rules of 2D block messages if they are unknown at compile time. For the other arguments they are assumed
            to; a call with an array that does not satisfy the rules compiles the kernel again.
        large: whether arrays, index arguments and grids may be larger than `SMALL`. If False, a call with a larger one
            compiles the kernel again.

    Raises:
        ValueError: if there is no such kernel or target, or the engine does not make these checks.
        DiagnosticError: if the module cannot be parsed, or the kernel cannot be lowered.
    """
    target_of(target)
    if engine == "reference":
        refuse_checks(engine, check)
    text = module if isinstance(module, ModuleSource) else text_of(module)
    if engine == "reference":
        found = text.read()
        return ReferenceKernel(found, chosen_kernel(found, kernel), model)
    options = Options(target, registers, optimize, prefetch, load_ahead, tuple(sorted(unaligned or ())), bool(large))
    return compile_kept(
        text,
        kernel,
        options,
        sized=large is not None,
        model=model,
        check=check,
        strict_grf=strict_grf,
        engine=engine,
        threads=threads,
        cache=cache,
        progress=progress,
    )


@collector_paused()
def compile_kept(
    source: ModuleSource,
    kernel: str | None,
    lowering: Options,
    *,
    sized: bool = False,
    again: bool = True,
    cache: str | PathLike[str] | None = None,
    **options: Any,
) -> CompiledKernel:
    """Lower a kernel, or read it from the cache on disk; see `compile`.

    Args:
        source: the source of the module.
        lowering: the options of the lowering.
        sized: whether `lowering.large` is fixed; otherwise large arguments compile another version.
        again: whether arguments that violate the assumptions of `lowering` compile another version.
        options: the options of `Kernel`.

    Raises:
        ValueError: if there is no such kernel or target.
        DiagnosticError: if the module cannot be parsed, or the kernel cannot be lowered.
    """
    target_of(lowering.target)

    def make() -> Lowered:
        module = source.read()
        return lower(module, chosen_kernel(module, kernel), lowering)

    def other(unaligned: tuple[int, ...], large: bool, strided: tuple[int, ...]) -> CompiledKernel:
        large = lowering.large if sized else large
        own = structs.replace(lowering, unaligned=unaligned, large=large, strided=strided)
        return compile_kept(source, kernel, own, again=False, cache=cache, **options)

    found = lowered_or_kept((*source.key, str(kernel)) if source.key else (), lowering, cache, make)
    return CompiledKernel(
        found,
        other if again else None,
        lowering.unaligned,
        make,
        target=lowering.target,
        registers=lowering.registers,
        cache=cache,
        **options,
    )
