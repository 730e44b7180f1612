"""Lowering a kernel to vISA, and the cache of lowered kernels on disk."""

from __future__ import annotations

import functools
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from mlir import ir as mlir
from msgspec import Struct, field
from msgspec.structs import asdict

from xegpu_py.cache import Cache, digest, folder_of, package_state
from xegpu_py.dialects import visa, xetile
from xegpu_py.dialects.xegpu.types import UNIT_STRIDES
from xegpu_py.engines.jit.native_code import versions
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Position, Source, position_of
from xegpu_py.ir.module import Module, parse_source, source_of, walk
from xegpu_py.ir.passes import ROOT, Runner, parse_pipeline, step
from xegpu_py.passes.facts.surfaces import products_of, surfaces_of, unaligned_arguments
from xegpu_py.runtime.executable import SMALL, Parameter, Product, Surface, parameters_of
from xegpu_py.target import DEFAULT
from xegpu_py.target import target as target_of
from xegpu_py.upstream import import_upstream, looks_upstream, looks_xevm
from xegpu_py.visa.allocate import placed
from xegpu_py.visa.program import Program, chosen
from xegpu_py.visa.verify import verify


class Lowered(Struct):
    """A kernel lowered to vISA, as plain data that can be pickled and read again without MLIR.

    Attributes:
        name: the kernel's name.
        parameters: its parameters.
        program: the vISA program.
        limits: the limits of its launches, with the keys of `SMALL`; 0 for no limit.
        unit_strides: the numbers of the arguments whose innermost stride must be 1 although their types allow others.
        places: the position of each argument in the kernel's text.
        surfaces: the 2D surfaces whose extents or strides are computed from arguments.
        products: the products of matrices, whose inner sizes a call compares.
        known: the extents of grid and block that the kernel fixes, by "grid" and "block".
        subgroups: the number of subgroups of a workgroup if the kernel's maps define it; otherwise None.
        remarks: the remarks of the lowering about code that is correct but slow.
        source: the text from which it was read, for diagnostics.
        levels: the modules at each level, the highest first; empty for a kernel that was read from the cache.
    """

    name: str
    parameters: tuple[Parameter, ...]
    program: Program
    limits: Mapping[str, int]
    known: Mapping[str, tuple[int, ...]]
    subgroups: int | None = None
    remarks: tuple[Diagnostic, ...] = ()
    source: Source | None = None
    levels: dict[str, Module] = field(default_factory=dict)
    surfaces: tuple[Surface, ...] = ()
    products: tuple[Product, ...] = ()
    unit_strides: tuple[int, ...] = ()
    places: tuple[Position, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return Lowered, tuple((asdict(self) | {"levels": {}}).values())


class ModuleSource(Struct, frozen=True):
    """The source of a module.

    Attributes:
        read: returns the module, the same one in each call.
        key: everything that the module depends on, the key of its lowered kernels in the cache on disk; empty if the
            dependencies are not known, which disables the cache.
    """

    read: Callable[[], Module]
    key: tuple[str, ...] = ()


def text_of(module: Module | str | Path) -> ModuleSource:
    """The source of a module, a text or a file. A module in memory has no key, because its locations have no text.

    Raises:
        DiagnosticError, OSError: if the text cannot be read.
    """
    if isinstance(module, Module):
        return ModuleSource(lambda: module)
    source = source_of(module)
    read = functools.cache(functools.partial(_read, source))
    return ModuleSource(read, ("module", source.name, source.text))


def _read(source: Source) -> Module:
    """Parse a module in our dialects, or in upstream's dialects, which is imported.

    Raises:
        DiagnosticError: if neither succeeds. The errors are those of the dialect that the text resembles.
    """
    try:
        module = parse_source(source)
        return _imported_xevm(source) or module if "llvm." in source.text else module
    except DiagnosticError:
        if "xegpu." not in source.text:
            raise
        # Imported only when needed, because most texts are in our dialects.

        try:
            return import_upstream(source)
        except DiagnosticError:
            if looks_upstream(source.text):
                raise
        raise


def _imported_xevm(source: Source) -> Module | None:
    """Import a module with kernels in `xevm` or `llvm`; None for any other module."""

    return import_upstream(source) if looks_xevm(source.text) else None


class Options(Struct, frozen=True):
    """The options of the lowering; see `xegpu_py.compile`.

    Attributes:
        strided: the numbers of the memref arguments whose innermost stride is not assumed to be 1 if it is dynamic.
    """

    target: str = DEFAULT
    registers: int | None = None
    optimize: bool = True
    prefetch: int = 0
    load_ahead: bool = False
    unaligned: tuple[int, ...] = ()
    large: bool = False
    strided: tuple[int, ...] = ()


def lower(module: Module, name: str, options: Options) -> Lowered:
    """Lower a kernel of XeTile or XeGPU to vISA. The module is not changed.

    Raises:
        DiagnosticError: if the kernel cannot be lowered.
    """
    steps = pipelines(module, name, options)
    lowered = copied(module)
    _leave_out_other_kernels(lowered, name)
    levels = {"xegpu": copied(module)}
    # The caller has verified the module, and the kernel verifies the resulting program.
    remarks: list[Diagnostic] = []
    runner = Runner(verify_each=False, remarks=remarks)
    if options.unaligned:
        mark_unaligned(lowered, name, options.unaligned)
    _mark_unit_strides(lowered, name, options.strided)
    if len(steps) > 1:
        runner.run(parse_pipeline(steps[0]), lowered)
        levels = {"xetile": levels["xegpu"], "xegpu": copied(lowered)}
    runner.run(parse_pipeline(steps[-1]), lowered)
    found = found_in(lowered, visa.kernel_named(lowered.outline, name))
    found.subgroups, found.remarks = subgroups_of(module, name) if len(steps) > 1 else None, tuple(remarks)
    kernel = visa.kernel_named(module.operation, name)
    found.surfaces, found.products = surfaces_of(kernel), products_of(kernel)
    found.levels = levels | {"visa": lowered}
    return found


def found_in(module: Module, func: mlir.Operation) -> Lowered:
    """Wrap a kernel that has already been lowered to vISA."""
    signature = mlir.FunctionType(mlir.TypeAttr(func.attributes["function_type"]).value)
    sizes = ((what, func.attributes.get(f"known_{what}_size")) for what in ("grid", "block"))
    limits = mlir.DictAttr(func.attributes[visa.LIMITS]) if visa.LIMITS in func.attributes else ()
    return Lowered(
        visa.name_of(func),
        parameters_of(signature.inputs),
        visa.program_of(func, module.bodies),
        {n.name: mlir.IntegerAttr(n.attr).value for n in limits},
        {what: tuple(mlir.DenseI32ArrayAttr(size)) for what, size in sizes if size is not None},
        source=module.sources[0] if module.sources else None,
        levels={"visa": module},
        unit_strides=unaligned_arguments(func, UNIT_STRIDES),
        places=tuple(position_of(a.location) for a in func.regions[0].blocks[0].arguments),
    )


def lowered_or_kept(
    source: Sequence[str], options: Options, cache: str | PathLike[str] | None, make: Callable[[], Lowered]
) -> Lowered:
    """A lowered kernel from the cache on disk; if it is not there, lower it and store it there.

    Args:
        source: everything that the kernel depends on besides the options and this package; () disables the cache.
        cache: the folder, or "off"; see `xegpu_py.kernel.Kernel`.
    """
    folder = folder_of(cache) if source else None
    if folder is None:
        return make()
    kept = Cache(folder, kind="lowered")
    key = digest("lowered", sys.version, versions(), package_state(), repr(options), *source)
    data = kept.get(key)
    if data is not None:
        try:
            found: Lowered = pickle.loads(data)
            return found
        except Exception:  # Reading what another version of Python pickled can raise any exception.
            pass
    made = make()
    # Verification and register allocation are needed for each launch, so their results are stored with the program.
    target = target_of(options.target)
    if not verify(made.program, target):
        placed(made.program, target, options.registers)
        kept.put(key, pickle.dumps(made, pickle.HIGHEST_PROTOCOL))
    return made


def pipelines(module: Module, name: str, options: Options) -> tuple[str, ...]:
    """The pipelines that lower a kernel, in order: XeTile to XeGPU if the module has XeTile ops, then XeGPU to vISA."""
    gpu: dict[str, str | int] = {"target": options.target, "grf": options.registers or 0}
    limits = {f"max_{what}": 0 if options.large else n for what, n in SMALL.items()}
    steps = [step("xegpu-to-visa-pipeline", **gpu, kernel=name, optimize=options.optimize, **limits)]
    if any(op.name.startswith("xetile.") for op in walk(module.outline)):
        ahead = {"prefetch_distance": options.prefetch, "load_ahead": options.load_ahead}
        steps.insert(0, step("xetile-to-xegpu-pipeline", **gpu, **ahead))
    return tuple(f"{ROOT}({text})" for text in steps)


def mark_unaligned(module: Module, name: str, arguments: Sequence[int]) -> None:
    """Set the attribute of a kernel that lists its unaligned arguments."""
    func = visa.kernel_named(module.operation, name)
    for dialect in ("xegpu", "xetile"):
        func.attributes[f"{dialect}.unaligned"] = mlir.DenseI64ArrayAttr.get(list(arguments), func.context)


def _leave_out_other_kernels(module: Module, name: str) -> None:
    """Erase all kernels but one, so that the lowering of each takes no longer if there are many.

    A module of host code keeps them, because its launches name them.
    """
    if "gpu.container_module" not in module.operation.attributes:
        kept = visa.kernel_named(module.operation, name)
        for func in visa.kernels(module.operation):
            if func != kept:
                func.erase()


def _mark_unit_strides(module: Module, name: str, strided: Sequence[int]) -> None:
    """Set the attribute that lists the arguments assumed to have an innermost stride of 1.

    These are all memrefs with a dynamic innermost stride, except those in `strided`.
    """
    func = visa.kernel_named(module.operation, name)
    types = mlir.FunctionType(mlir.TypeAttr(func.attributes["function_type"]).value).inputs
    unknown = [i for i, p in enumerate(parameters_of(types)) if p.is_memref and p.strides[-1:] == (None,)]
    if unknown:
        numbers = [i for i in unknown if i not in strided]
        func.attributes[UNIT_STRIDES] = mlir.DenseI64ArrayAttr.get(numbers, func.context)


def chosen_kernel(module: Module, wanted: str | None) -> str:
    """The name of the wanted kernel, or of the only one.

    Raises:
        ValueError: if there is no such kernel, or no name is given and there are several kernels.
    """
    names = [visa.name_of(func) for func in visa.kernels(module.operation)]
    return names[chosen(names, wanted)]


def copied(module: Module) -> Module:
    """A copy of the module, with its locations, so that lowering does not change the original."""
    with module.context, module.operation.location:
        made = mlir.Module.create()
        point = mlir.InsertionPoint(made.body)
        for op in module.body.operations:
            op.operation.clone(point)
        for name in module.operation.attributes:
            made.operation.attributes[name] = module.operation.attributes[name]
    return Module(made, module.sources)


def subgroups_of(module: Module, name: str) -> int | None:
    """The number of subgroups that the maps of a XeTile kernel define; None if there are no maps."""
    func = visa.kernel_named(module.operation, name)
    if not any(op.name.startswith("xetile.") for op in walk(func)):
        return None

    found: int | None = xetile.subgroups_of(func)
    return found
