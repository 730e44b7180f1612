"""`compile`: a kernel of an MLIR module, ready to be called on numpy arrays."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from mlir import ir as mlir

from xegpu_py import reference
from xegpu_py.dialects import visa
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError
from xegpu_py.ir.module import Module, parse
from xegpu_py.ir.passes import Runner, parse_pipeline
from xegpu_py.ir.verifier import walk
from xegpu_py.kernel import Kernel, extent
from xegpu_py.numerics.dpas import Model
from xegpu_py.passes.xegpu_to_visa import GRID_LIMIT
from xegpu_py.runtime.arguments import DTYPES
from xegpu_py.runtime.launch import Engine, Statistics
from xegpu_py.target import DEFAULT, Block2DLimits
from xegpu_py.target import target as target_of
from xegpu_py.visa import assembly

SMALL = {"bytes": (1 << 31) - (1 << 16), "index": 1 << 30, "grid": GRID_LIMIT}
"""For what kernels are compiled at first: arrays of so many bytes from the first to the last, index arguments of that
absolute value, and so many workgroups in each dimension."""

_ALSO = {"tf32": ("f32",), "index": ("i64", "ui64"), **{f"i{n}": (f"i{n}", f"ui{n}") for n in (8, 16, 32, 64)}}
"""MLIR's element types, and numpy's by MLIR's names, where they are not the same or not alone."""


class CompiledKernel:
    """A kernel lowered to vISA.

        gemm = xegpu_py.compile("gemm.mlir", target="pvcxt")
        gemm(a, b, c, grid=(8, 8), block=(4, 4))

    A kernel that is called with arrays that 2D block messages cannot serve, as their rows are too short or not aligned,
    is compiled once more for such arrays, and gathers what is in them. So is a kernel that is called with large arrays,
    indices or grids: without them 32 bits hold most of what is computed of type index (`SMALL`).

    Attributes:
        name: the kernel's name.
        types: MLIR's types of its arguments.
        kernel: the vISA kernel that runs.
        remarks: what the lowering said of code that is right, but slow; see `version_for`.
        stats: what the last call did; None before the first.
    """

    def __init__(
        self,
        module: Module,
        func: mlir.Operation,
        before: dict[str, Module],
        again: Callable[[tuple[int, ...], bool], CompiledKernel] | None = None,
        aligned: bool = False,
        remarks: Sequence[Diagnostic] = (),
        subgroups: int | None = None,
        **options: Any,
    ) -> None:
        """Make one of a lowered kernel; see `compile`.

        Args:
            before: the module at each level above vISA.
            again: compiles the kernel for arguments of these numbers that are not aligned, and large or small ones.
            aligned: whether arrays are taken to be aligned that need not be.
            remarks: what the lowering said.
            subgroups: of a workgroup, where the kernel's maps say how many there are.
        """
        self.remarks = tuple(remarks)
        self._subgroups = subgroups
        self._module, self._before = module, before
        self._again, self._aligned = again and functools.cache(again), aligned
        self.name = visa.name_of(func)
        signature = mlir.FunctionType(mlir.TypeAttr(func.attributes["function_type"]).value)
        self.types: tuple[mlir.Type, ...] = tuple(signature.inputs)
        self.kernel = Kernel(visa.program_of(func, module.bodies), **options)
        sizes = ((what, func.attributes.get(f"known_{what}_size")) for what in ("grid", "block"))
        limits = mlir.DictAttr(func.attributes[visa.LIMITS]) if visa.LIMITS in func.attributes else ()
        self._limits = {n.name: mlir.IntegerAttr(n.attr).value for n in limits}
        self._known = {what: tuple(mlir.DenseI32ArrayAttr(size)) for what, size in sizes if size is not None}
        self.stats: Statistics | None = None

    @property
    def asm(self) -> str:
        """vISA assembly, with comments that say from which lines of the module instructions come."""
        return assembly.write([self.kernel.program], lines=True)

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of which `ir` knows the text, the highest first."""
        return (*self._before, "visa")

    def ir(self, level: str) -> str:
        """The module's text as it was ("xetile" or "xegpu"), or lowered to a level ("xegpu" or "visa").

        Raises:
            ValueError: if there is no such level.
        """
        levels = self._before | {"visa": self._module}
        if level not in levels:
            raise ValueError(f"unknown level '{level}'; there are {', '.join(levels)}")
        return str(levels[level])

    def version_for(self, arguments: Sequence[Any], grid: int | Sequence[int] = 1) -> CompiledKernel:
        """What runs on these arguments: itself, unless 2D block messages cannot serve some, or it is for smaller ones.

        Args:
            arguments, grid: those of a call.
        """
        if self._again is None:
            return self
        target = self.kernel.launcher.target.name
        unaligned = unaligned_arrays(self.types, arguments, target) if self._aligned else ()
        large = beyond(self.types, arguments, grid, self._limits) is not None
        return self._again(unaligned, large) if unaligned or large else self

    def __call__(
        self, *arguments: Any, grid: int | Sequence[int] = 1, block: int | Sequence[int] | None = None
    ) -> Statistics:
        """Run the kernel; arrays are changed in place.

        Args:
            arguments: one for each of the kernel's: for a memref an array of its element type, shape and strides, for
                a vector an array of its elements, else a number.
            grid: workgroups in x, or in x, y and z.
            block: subgroups of a workgroup likewise; of a kernel of work items its work items. By default it is what
                the kernel's known_block_size or its maps say, else 1.

        Raises:
            TypeError, ValueError: if an argument does not fit; the message names it, and what was expected.
            DiagnosticError: if the kernel fails as it runs; arrays may hold what it had written by then.
        """
        if len(arguments) != len(self.types):
            expected = ", ".join(f"{i}: {t}" for i, t in enumerate(self.types))
            raise TypeError(
                f"kernel '{self.name}' takes {len(self.types)} arguments ({expected}), not {len(arguments)}"
            )
        block = _block(block, self._known.get("block"), self._subgroups)
        for what, given in (("grid", grid), ("block", block)):
            wanted = self._known.get(what)
            if wanted and extent(given, what) != wanted:
                raise ValueError(f"'{what}' must be {wanted}, which the kernel says by known_{what}_size, not {given}")
        version = self.version_for(arguments, grid)
        if version is not self:
            self.stats = version(*arguments, grid=grid, block=block)
            return self.stats
        more = beyond(self.types, arguments, grid, self._limits)
        if more:
            raise ValueError(f"{more}, and kernel '{self.name}' was compiled for less; large=True compiles it for more")
        values: dict[str, Any] = {}
        titles: dict[str, str] = {}
        for i, (kind, argument) in enumerate(zip(self.types, arguments)):
            title = f"argument {i} of kernel '{self.name}', {_article(str(kind))},"
            found = self._inputs(i, kind, argument, title)
            values |= found
            titles |= dict.fromkeys(found, title)
        names = [item.var.name for item in self.kernel.program.arguments]
        try:
            self.stats = self.kernel.launch([values[n] for n in names], [titles[n] for n in names], grid, block)
        except DiagnosticError as e:
            e.diagnostics = [_with_remedy(d) for d in e.diagnostics]
            raise
        return self.stats

    def _inputs(self, index: int, kind: mlir.Type, argument: Any, title: str) -> dict[str, Any]:
        name = f"in{index}"
        if not isinstance(kind, mlir.MemRefType):
            if not isinstance(kind, mlir.VectorType) and not _is_number(argument):
                array = isinstance(argument, np.ndarray)
                raise TypeError(f"{title} must be a number, not {'an array' if array else type(argument).__name__}")
            return {name: argument}
        memref = mlir.MemRefType(kind)
        if not isinstance(argument, np.ndarray):
            raise TypeError(f"{title} must be a numpy array, not {type(argument).__name__}")
        self._check_element(str(memref.element_type), argument, title)
        dynamic = mlir.ShapedType.get_dynamic_size()
        fits = len(argument.shape) == memref.rank and all(
            want in (dynamic, have) for want, have in zip(memref.shape, argument.shape)
        )
        if not fits:
            raise ValueError(f"{title} cannot be an array of shape {argument.shape}")
        return {name: argument} | self._layout(name, memref, argument, title)

    @staticmethod
    def _check_element(element: str, argument: np.ndarray[Any, Any], title: str) -> None:
        wanted = [DTYPES[n] for n in _ALSO.get(element, (element.removeprefix("s"),)) if n in DTYPES]
        if not wanted:
            raise TypeError(
                f"{title} has elements of {element}, which no array has; use i8, and vector.bitcast on vectors"
            )
        if argument.dtype not in wanted:
            names = " or ".join(str(d) for d in wanted)
            raise TypeError(f"{title} must be an array of {names}, not of {argument.dtype}")

    @staticmethod
    def _layout(name: str, memref: mlir.MemRefType, argument: np.ndarray[Any, Any], title: str) -> dict[str, int]:
        strides, offset = memref.get_strides_and_offset()
        unknown = mlir.ShapedType.get_dynamic_stride_or_offset()
        contiguous = memref.layout == mlir.AffineMapAttr.get(mlir.AffineMap.get_identity(memref.rank, memref.context))
        found = {f"{name}_size{d}": n for d, n in enumerate(argument.shape)}
        if contiguous:
            if not argument.flags.c_contiguous:
                raise ValueError(f"{title} must lie in memory in row-major order; numpy.ascontiguousarray makes it so")
            return found
        own = [s // argument.itemsize for s in argument.strides]
        fits = all(
            want in (unknown, have) or size == 1 for want, have, size in zip(strides, own, argument.shape)
        ) and not any(s % argument.itemsize for s in argument.strides)
        if not fits:
            raise ValueError(f"{title} cannot be an array of strides {tuple(own)} elements")
        if offset not in (0, unknown):
            raise ValueError(
                f"{title} begins {offset} elements into its buffer, which no array does; let it be dynamic"
            )
        return found | {f"{name}_stride{d}": s for d, s in enumerate(own)} | {f"{name}_offset": 0}


def beyond(
    types: Sequence[mlir.Type],
    arguments: Sequence[Any],
    grid: int | Sequence[int],
    limits: Mapping[str, int] = SMALL,
) -> str | None:
    """In what a call goes beyond limits, as a clause; None if it does not. A limit of 0 is none."""
    most = {what: limits.get(what) or math.inf for what in SMALL}
    if max(extent(grid, "grid")) > most["grid"]:
        return f"'grid' has more than {most['grid']} workgroups in a dimension"
    for i, (kind, given) in enumerate(zip(types, arguments)):
        if _reach(kind, given) > most["bytes"]:
            return f"argument {i} is an array of more than {most['bytes']} bytes"
        if _greatest_index(kind, given) > most["index"]:
            return f"argument {i} is an index of more than {most['index']}"
    return None


def _reach(kind: mlir.Type, argument: Any) -> int:
    """The greatest of an array's bytes from the first to behind the last, its extents and its strides in bytes."""
    if not (isinstance(kind, mlir.MemRefType) and isinstance(argument, np.ndarray)):
        return 0
    strides = [abs(n) for n in argument.strides]
    # Strides of contiguous memrefs are computed from their extents, even if there are no elements.
    contiguous = math.prod(argument.shape[1:]) * argument.itemsize
    reach = sum((n - 1) * s for n, s in zip(argument.shape, strides)) + argument.itemsize
    return int(max(*(n * argument.itemsize for n in argument.shape), *strides, contiguous, reach))


def _greatest_index(kind: mlir.Type, argument: Any) -> int:
    """The greatest absolute value of an argument of type index, or a vector of it; 0 of others, and of what is none."""
    element = mlir.VectorType(kind).element_type if isinstance(kind, mlir.VectorType) else kind
    found = np.asarray(argument) if isinstance(element, mlir.IndexType) else np.zeros(0)
    whole = np.issubdtype(found.dtype, np.integer) or found.dtype == object
    return max((abs(int(n)) for n in found.ravel()), default=0) if whole else 0


def _is_number(argument: Any) -> bool:
    return isinstance(argument, (bool, int, float, np.generic)) or (
        isinstance(argument, np.ndarray) and argument.ndim == 0
    )


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeio' or kind.startswith('f') else 'a'} {kind}"


def _block(
    given: int | Sequence[int] | None, known: tuple[int, ...] | None, subgroups: int | None
) -> int | Sequence[int]:
    """The block of a launch: what was given, or else what the kernel says.

    Raises:
        ValueError: if it is not as many subgroups as the kernel's maps speak of.
    """
    if given is None:
        return known or subgroups or 1
    if subgroups and math.prod(extent(given, "block")) != subgroups:
        raise ValueError(f"'block' must be {subgroups} subgroups, as the kernel's maps say, not {given}")
    return given


def _subgroups_of(module: Module, name: str) -> int | None:
    """How many subgroups the maps of a kernel of XeTile speak of; None if there are no maps."""
    func = next(f for f in visa.kernels(module.operation) if visa.name_of(f) == name)
    if not any(op.name.startswith("xetile.") for op in walk(func)):
        return None
    from xegpu_py.dialects import xetile

    found: int | None = xetile.subgroups_of(func)
    return found


def _with_remedy(fault: Diagnostic) -> Diagnostic:
    """A fault of a surface that no 2D block message can address, with what to do about it."""
    if "accesses a surface whose" not in fault.message:
        return fault
    text = (
        "what is not known when compiling is taken to be as 2D block messages need it, but not of arguments that the "
        "kernel's attribute xegpu.unaligned, or the argument 'unaligned' of xegpu_py.compile, counts"
    )
    return dataclasses.replace(fault, notes=(*fault.notes, Diagnostic("note", text, fault.position)))


class ReferenceKernel:
    """A kernel as its module has it, evaluated op by op by `xegpu_py.reference` instead of lowered.

    Attributes:
        name: the kernel's name.
        types: MLIR's types of its arguments.
    """

    def __init__(self, module: Module, name: str, model: Model) -> None:
        """Make one of a kernel of a module; see `compile`."""
        self._module, self._model = module, model
        self.name = name
        func = reference.chosen(module, name)
        self.types = reference.types_of(func)
        known = func.attributes.get("known_block_size")
        self._known = None if known is None else tuple(mlir.DenseI32ArrayAttr(known))
        self._subgroups = _subgroups_of(module, name)

    def __call__(
        self, *arguments: Any, grid: int | Sequence[int] = 1, block: int | Sequence[int] | None = None
    ) -> None:
        """Evaluate the kernel; arguments and errors are those of `CompiledKernel`."""
        block = _block(block, self._known, self._subgroups)
        reference.run(self._module, self.name, arguments, grid=grid, block=block, model=self._model)


@overload
def compile(
    module: Module | str | Path, kernel: str | None = None, *, engine: Literal["reference"], model: Model = "fma"
) -> ReferenceKernel: ...


@overload
def compile(
    module: Module | str | Path,
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
    module: Module | str | Path,
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

    With `engine="reference"` it is not lowered, but evaluated at the level at which it is; of the options `model` alone
    has a meaning then.

    Args:
        module: a module, its text, or the path of a file that holds it. It stays as it is.
        kernel: the name of the `gpu.func`; it may be left out where there is one kernel.
        target: the GPU.
        model, check, registers, strict_grf, engine, threads, cache, progress: see `Kernel`.
        optimize: whether the pass visa-optimize runs.
        prefetch: of a kernel of XeTile, how many turns ahead loops prefetch the tiles that they load.
        load_ahead: of a kernel of XeTile, whether loops load a turn ahead.
        unaligned: the numbers of arguments of which nothing that is not known when compiling is taken to be aligned.
            Without it all are, and where an array in a call is not, the kernel is compiled again.
        large: whether arrays, index arguments and grids may be larger than `SMALL`. Without it they may not, and where
            one in a call is, the kernel is compiled again.

    Raises:
        ValueError: if there is no such kernel or target.
        DiagnosticError: if the module does not read, or the kernel cannot be lowered.
    """
    target_of(target)
    read = parse(module) if isinstance(module, (str, Path)) else module
    name = chosen_kernel(read, kernel)
    if engine == "reference":
        return ReferenceKernel(read, name, model)
    steps = pipelines(
        read,
        name,
        target=target,
        registers=registers,
        optimize=optimize,
        prefetch=prefetch,
        load_ahead=load_ahead,
        large=bool(large),
    )
    lowered = copied(read)
    before = {"xegpu": copied(read)}
    # Whoever gives a module has verified it, and the kernel verifies the program that comes of it.
    remarks: list[Diagnostic] = []
    runner = Runner(verify_each=False, remarks=remarks)
    again: Callable[[tuple[int, ...], bool], CompiledKernel] | None = None
    if unaligned is None or large is None:

        def again(arguments: tuple[int, ...], more: bool) -> CompiledKernel:
            return compile(
                read,
                name,
                target=target,
                model=model,
                check=check,
                registers=registers,
                strict_grf=strict_grf,
                engine=engine,
                threads=threads,
                cache=cache,
                progress=progress,
                optimize=optimize,
                prefetch=prefetch,
                load_ahead=load_ahead,
                unaligned=arguments if unaligned is None else unaligned,
                large=more if large is None else large,
            )

    if unaligned is not None:
        mark_unaligned(lowered, name, unaligned)
    if len(steps) > 1:
        runner.run(parse_pipeline(steps[0]), lowered)
        before = {"xetile": before["xegpu"], "xegpu": copied(lowered)}
    runner.run(parse_pipeline(steps[-1]), lowered)
    func = next(f for f in visa.kernels(lowered.outline) if visa.name_of(f) == name)
    source = lowered.sources[0] if lowered.sources else None
    return CompiledKernel(
        lowered,
        func,
        before,
        again,
        unaligned is None,
        remarks,
        _subgroups_of(read, name),
        target=target,
        model=model,
        check=check,
        registers=registers,
        strict_grf=strict_grf,
        engine=engine,
        threads=threads,
        cache=cache,
        progress=progress,
        source=source,
    )


def pipelines(
    module: Module,
    name: str,
    *,
    target: str = DEFAULT,
    registers: int | None = None,
    optimize: bool = True,
    prefetch: int = 0,
    load_ahead: bool = False,
    large: bool = True,
) -> tuple[str, ...]:
    """The pipelines that lower a kernel, one after the other: that of XeTile if there is any, and that to vISA.

    Args:
        large: whether launches may go beyond `SMALL`.
    """
    options = f"target={target} kernel={name} optimize={str(optimize).lower()}"
    options += f" grf={registers}" if registers else ""
    options += "".join(f" max-{what}={0 if large else n}" for what, n in SMALL.items())
    last = f"builtin.module(xegpu-to-visa-pipeline{{{options}}})"
    if not any(op.name.startswith("xetile.") for op in walk(module.outline)):
        return (last,)
    ahead = f"grf={registers or 0} prefetch-distance={prefetch} load-ahead={str(load_ahead).lower()}"
    return f"builtin.module(xetile-to-xegpu-pipeline{{target={target} {ahead}}})", last


def mark_unaligned(module: Module, name: str, arguments: Sequence[int]) -> None:
    """Say of a kernel which arguments are not aligned."""
    func = next(f for f in visa.kernels(module.operation) if visa.name_of(f) == name)
    for dialect in ("xegpu", "xetile"):
        func.attributes[f"{dialect}.unaligned"] = mlir.DenseI64ArrayAttr.get(list(arguments), func.context)


def unaligned_arrays(types: Sequence[mlir.Type], arguments: Sequence[Any], target: str) -> tuple[int, ...]:
    """The numbers of the arguments that are arrays that 2D block messages cannot serve."""
    limits = target_of(target).block2d
    if limits is None:
        return ()
    return tuple(i for i, (kind, given) in enumerate(zip(types, arguments)) if _misfits(kind, given, limits))


def _misfits(kind: mlir.Type, array: Any, limits: Block2DLimits) -> bool:
    """Whether 2D block messages cannot serve an array, of which the kernel does not know shape or strides."""
    if not (isinstance(kind, mlir.MemRefType) and isinstance(array, np.ndarray) and array.ndim > 1):
        return False
    memref = mlir.MemRefType(kind)
    unknown = mlir.ShapedType.get_dynamic_size()
    if unknown not in (*memref.shape[-2:], *memref.get_strides_and_offset()[0]):
        return False
    (rows, columns), (pitch, step) = array.shape[-2:], array.strides[-2:]
    if pitch == array.itemsize != step:
        # Column-major.
        rows, columns, pitch = columns, rows, step
    return limits.surface_problem(columns * array.itemsize, rows, pitch, 0) is not None


def chosen_kernel(module: Module, wanted: str | None) -> str:
    """The name of the kernel that is meant.

    Raises:
        ValueError: if there is no such kernel, or a name is needed.
    """
    names = [visa.name_of(func) for func in visa.kernels(module.operation)]
    known = ", ".join(names) or "none"
    if wanted is None and len(names) != 1:
        raise ValueError(f"one kernel must be named: there are {known}")
    if wanted is not None and names.count(wanted) != 1:
        found = "are several kernels" if wanted in names else "is no kernel"
        raise ValueError(f"there {found} '{wanted}'; there are {known}")
    return wanted or names[0]


def copied(module: Module) -> Module:
    """The module once more, so that lowering does not change the original. Locations are kept."""
    with module.context, module.operation.location:
        made = mlir.Module.create()
        point = mlir.InsertionPoint(made.body)
        for op in module.body.operations:
            op.operation.clone(point)
        for name in module.operation.attributes:
            made.operation.attributes[name] = module.operation.attributes[name]
    return Module(made, module.sources)
