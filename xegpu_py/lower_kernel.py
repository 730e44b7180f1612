"""How a kernel of a module becomes an `Executable`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlir import ir as mlir
from msgspec import structs

from xegpu_py.dialects import visa, xetile
from xegpu_py.dialects.xegpu.types import UNIT_STRIDES
from xegpu_py.ir.diagnostics import Diagnostic, position_of
from xegpu_py.ir.module import Module, argument_names, walk
from xegpu_py.ir.passes import ROOT, Runner, parse_pipeline, step
from xegpu_py.passes.facts.surfaces import multiples_of, products_of, sums_of, surfaces_of, unaligned_arguments
from xegpu_py.passes.facts.tile_maps import ALIASED, SHARES
from xegpu_py.passes.facts.workgroup_sizes import can_be_divided, stored_arguments, suitable_subgroups
from xegpu_py.runtime.executable import SMALL, Executable, Multiple, Options, Sum, Surface, parameters_of
from xegpu_py.visa.program import chosen


def lower(module: Module, name: str, options: Options) -> Executable:
    """Lower a kernel of XeTile or XeGPU to vISA. The module is not changed.

    Raises:
        DiagnosticError: if the kernel cannot be lowered.
    """
    remarks: list[Diagnostic] = []
    kernel = visa.kernel_named(module.outline, name)
    products = products_of(kernel)
    surfaces: dict[Surface, None] = {}
    multiples: tuple[Multiple, ...] = ()
    sums: tuple[Sum, ...] = ()
    for level, lowered in levels_of(module, name, options, remarks):
        if level != "visa":
            func = visa.kernel_named(lowered.outline, name)
            surfaces |= dict.fromkeys(surfaces_of(func))
            multiples, sums = multiples_of(func), sums_of(func)
    chosen = subgroups_for(kernel, options)
    return structs.replace(
        executable_of(lowered, visa.kernel_named(lowered.outline, name)),
        subgroups=xetile.subgroups_of_kernel(kernel) or chosen or (1 if SHARES in kernel.attributes else None),
        changed=() if chosen is None or options.aliased else stored_arguments(kernel),
        remarks=tuple(remarks),
        surfaces=tuple(surfaces),
        multiples=multiples,
        sums=sums,
        products=products,
    )


def subgroups_for(kernel: mlir.Operation, options: Options) -> int | None:
    """The number of subgroups among which the tiles of a kernel without maps are divided; None if they are not."""
    if options.subgroups is None or not can_be_divided(kernel):
        return None
    found = options.subgroups or suitable_subgroups(kernel)
    return found if found > 1 else None


def levels_of(
    module: Module, name: str, options: Options, remarks: list[Diagnostic] | None = None
) -> Iterator[tuple[str, Module]]:
    """The module at each level, the highest first: as it was written, and lowered.

    Lowered modules do not have the module's other kernels, unless there is host code, which may launch them. Each
    lowered module is changed when the next one is asked for.

    Args:
        remarks: gets the remarks of the lowering.

    Raises:
        DiagnosticError: if the kernel cannot be lowered.
    """
    steps = pipelines(module, name, options)
    names = ("xetile", "xegpu", "visa")[-len(steps) - 1 :]
    yield names[0], module
    lowered = module.copy()
    _leave_out_other_kernels(lowered, name)
    if options.unaligned:
        mark_unaligned(lowered, name, options.unaligned)
    _mark_unit_strides(lowered, name, options.strided)
    count = subgroups_for(visa.kernel_named(module.outline, name), options)
    if count is not None:
        with lowered.context:
            i64 = mlir.IntegerType.get_signless(64)
            func = visa.kernel_named(lowered.outline, name)
            func.attributes[xetile.SUBGROUPS] = mlir.IntegerAttr.get(i64, count)
            if options.aliased:
                func.attributes[ALIASED] = mlir.UnitAttr.get()
    # The caller has verified the module, and the kernel verifies the resulting program.
    runner = Runner(verify_each=False, remarks=[] if remarks is None else remarks)
    for level, text in zip(names[1:], steps):
        runner.run(parse_pipeline(text), lowered)
        yield level, lowered


def executable_of(module: Module, func: mlir.Operation) -> Executable:
    """Wrap a kernel that has already been lowered to vISA."""
    signature = mlir.FunctionType(mlir.TypeAttr(func.attributes["function_type"]).value)
    sizes = ((what, func.attributes.get(f"known_{what}_size")) for what in ("grid", "block"))
    limits = mlir.DictAttr(func.attributes[visa.LIMITS]) if visa.LIMITS in func.attributes else ()
    return Executable(
        visa.name_of(func),
        parameters_of(signature.inputs, argument_names(func, module.sources)),
        visa.program_of(func, module.bodies),
        {n.name: mlir.IntegerAttr(n.attr).value for n in limits},
        {what: tuple(mlir.DenseI32ArrayAttr(size)) for what, size in sizes if size is not None},
        source=module.sources[0] if module.sources else None,
        unit_strides=unaligned_arguments(func, UNIT_STRIDES),
        places=tuple(position_of(a.location) for a in func.regions[0].blocks[0].arguments),
    )


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
    func = visa.kernel_named(module.outline, name)
    for dialect in ("xegpu", "xetile"):
        func.attributes[f"{dialect}.unaligned"] = mlir.DenseI64ArrayAttr.get(list(arguments), func.context)


def _leave_out_other_kernels(module: Module, name: str) -> None:
    """Erase all kernels but one, so that the lowering of each takes no longer if there are many.

    A module of host code keeps them, because its launches name them.
    """
    if "gpu.container_module" not in module.outline.attributes:
        kept = visa.kernel_named(module.outline, name)
        for func in visa.kernels(module.outline):
            if func != kept:
                func.erase()


def _mark_unit_strides(module: Module, name: str, strided: Sequence[int]) -> None:
    """Set the attribute that lists the arguments assumed to have an innermost stride of 1.

    These are all memrefs with a dynamic innermost stride, except those in `strided`.
    """
    func = visa.kernel_named(module.outline, name)
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
    names = [visa.name_of(func) for func in visa.kernels(module.outline)]
    return names[chosen(names, wanted)]
