"""How a kernel of a module is compiled: `compile`, the cache on disk, and the lowering to an `Executable`."""

from __future__ import annotations

import functools
import itertools
import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from mlir import ir
from msgspec import Struct, structs

from xegpu_py.argument_types import checked
from xegpu_py.cache import Cache, digest, folder_of
from xegpu_py.collector import collector_paused
from xegpu_py.deferred import deferred, pattern
from xegpu_py.dialects import visa
from xegpu_py.dialects.xegpu.types import EXACT_ADDRESSES, EXACT_SURFACES, UNIT_STRIDES, WARNS_OF_REPAIRS
from xegpu_py.ir.builtin import REDUCTION_ORDER
from xegpu_py.ir.diagnostics import Diagnostic, position_of
from xegpu_py.ir.module import Module, argument_names, functions, is_program, source_of, walk
from xegpu_py.ir.passes import ROOT, Runner, parse_pipeline, step
from xegpu_py.passes.analysis.block_surfaces import (
    has_messages,
    multiples_of,
    products_of,
    sums_of,
    surfaces_of,
)
from xegpu_py.passes.analysis.ir_queries import SHARES, has_tiles, is_marked
from xegpu_py.passes.analysis.launch_assumptions import EXPANDED, unaligned_arguments
from xegpu_py.runtime.argument_conditions import Surface
from xegpu_py.runtime.executable import Executable, reads_group_ids
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.runtime.options import REFERENCE, Options
from xegpu_py.runtime.parameters import SMALL, parameters_of
from xegpu_py.runtime.repairs import repair_warning
from xegpu_py.runtime.specialization import Specialization
from xegpu_py.target import TARGETS
from xegpu_py.target import target as target_of
from xegpu_py.upstream import read_kernels, recognized
from xegpu_py.visa.allocate import engine_allocation
from xegpu_py.visa.program import Program, digest_of, kernel_index
from xegpu_py.visa.verify import verify

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from xegpu_py.dialects import xetile
    from xegpu_py.passes.analysis import tile_division, tile_layout_inference
    from xegpu_py.reference import evaluate
    from xegpu_py.runtime.options import CompileKeywords
else:
    xetile = deferred("xegpu_py.dialects.xetile")
    tile_division = deferred("xegpu_py.passes.analysis.tile_division")
    tile_layout_inference = deferred("xegpu_py.passes.analysis.tile_layout_inference")
    evaluate = deferred("xegpu_py.reference.evaluate")

# `compile`: kernels of a module.


class ModuleSource(Struct, frozen=True):
    """The source of a module.

    Attributes:
        read: returns the module, the same one in each call.
        key: everything that the module depends on, the key of its lowered kernels in the cache on disk; empty if the
            dependencies are not known, which disables the cache.
    """

    read: Callable[[], Module]
    key: tuple[str, ...] = ()


class KernelSource(Struct, frozen=True):
    """A kernel of a module: the `Compiler` of all versions of it.

    Attributes:
        module: the module's source.
        name: the kernel's name; None for the only one.
    """

    module: ModuleSource
    name: str | None

    @collector_paused()
    def executable(self, options: Options, begun: KernelLowering | None = None) -> Executable:
        """See `Compiler`; what is not in the cache on disk is lowered and stored there.

        Args:
            begun: its lowering, if that has been begun.
        """

        def write(made: Executable) -> bytes | None:
            # Each launch needs the results of verification and register allocation: they are kept with the program.
            if verify(made.program, target_of(options.target)):
                return None
            engine_allocation(made.program, target_of(options.target), options.registers)
            digest_of(made.program)
            return pickle.dumps(made, pickle.HIGHEST_PROTOCOL)

        def lowered() -> Executable:
            return (begun or KernelLowering(*self._module(options), options)).executable()

        cache, key = self._cache(options)
        read: Callable[[bytes], Executable] = pickle.loads
        return cache.kept("lowered", key, lowered, read=read, write=write)

    @collector_paused()
    def for_call(self, options: Options, arguments: Sequence[Any], grid: int | Sequence[int]) -> Kernel:
        """The version of the kernel that a call needs; another one is only lowered when a later call needs it.

        Args:
            arguments, grid: as in a call.
        """
        begun: list[KernelLowering] = []

        def assumed() -> Executable:
            begun.append(KernelLowering(*self._module(options), options))
            return begun[0].assumptions()

        cache, key = self._cache(options)
        read: Callable[[bytes], Executable] = pickle.loads
        general = cache.kept("assumed", key, assumed, read=read, write=pickle.dumps)
        needed = Specialization.of_call(general, options, arguments, grid).applied_to(options)
        executable = self.executable(needed, begun[0] if begun and begun[0].serves(needed) else None)
        return Kernel(executable, needed, compiler=self, general=(general, options))

    def _cache(self, options: Options) -> tuple[Cache, str]:
        """The cache on disk, and the key of the kernel with some options."""
        cache = Cache(folder_of(options.cache) if self.module.key else None)
        return cache, digest(options.key(), *self.module.key, str(self.name))

    def levels(self, options: Options) -> dict[str, Module]:
        """See `Compiler`."""
        found = levels_of(*self._module(options), options)
        return {level: at if level == "visa" else at.copy() for level, at in found}

    def _module(self, options: Options) -> tuple[Module, str]:
        """The module, in which kernels of Triton's IR are lowered to XeTile, and the kernel's name."""
        module = programs_lowered(self.module.read(), options.target)
        return module, chosen_kernel(module, self.name)


def text_of(module: Module | str | Path) -> ModuleSource:
    """The source of a module, a text or a file.

    Of a module in memory it is a copy, which later edits do not change. It has no key, because its locations have no
    text.

    Raises:
        DiagnosticError, OSError: if the text cannot be read.
    """
    if isinstance(module, Module):
        held = recognized(module.copy())
        return ModuleSource(lambda: held)
    source = source_of(module)
    read = functools.cache(functools.partial(read_kernels, source))
    return ModuleSource(read, ("module", source.name, source.text))


OPTIONS_ATTRIBUTE = "xegpu.options"
"""The attribute of a module that gives the options with which its kernels are compiled by default."""

_CHIP = pattern(r'#xevm\.target<[^>]*\bchip = "(\w+)"')


def stated_target(text: str) -> str | None:
    """The target that upstream's `#xevm.target` names in a program; None if that is `pvc` or `bmg`, or none of ours.

    The default target runs what is written for `pvc` and `bmg`.
    """
    chips = set(_CHIP.findall(text))
    return chips.pop() if len(chips) == 1 and chips <= TARGETS.keys() - {"pvc", "bmg"} else None


def stated_options(source: ModuleSource) -> dict[str, Any]:
    """The options that a module states; texts that state none are not parsed for them."""
    if source.key and not any(OPTIONS_ATTRIBUTE in part or "#xevm.target" in part for part in source.key):
        return {}
    root = source.read().operation
    modules = [func.parent for func in functions(root)]
    target = stated_target(" ".join(str(op.attributes["targets"]) for op in modules if "targets" in op.attributes))
    stated = {"target": target} if target else {}
    if OPTIONS_ATTRIBUTE in root.attributes:
        stated |= {item.name: item.attr.value for item in ir.DictAttr(root.attributes[OPTIONS_ATTRIBUTE])}
    return stated


@overload
def compile(
    module: Module | ModuleSource | str | Path,
    kernel: str | None = None,
    *,
    engine: Literal["reference"],
    **options: Any,
) -> evaluate.ReferenceKernel: ...


@overload
def compile(
    module: Module | ModuleSource | str | Path, kernel: str | None = None, **options: Unpack[CompileKeywords]
) -> Kernel: ...


@checked
def compile(
    module: Module | ModuleSource | str | Path, kernel: str | None = None, **options: Any
) -> Kernel | evaluate.ReferenceKernel:
    """Lower a kernel of XeTile or XeGPU to vISA.

    With `engine="reference"` the kernel is not lowered, but evaluated at its own level. Of the other options only
    `model` and the choice `reduction-order` then have an effect, and `check` is refused.

    Args:
        module: a module, its text, the path of a file with its text, or a `ModuleSource`. The module is not changed.
            Kernels in upstream MLIR's spelling of XeGPU, and in XeVM, are rebuilt (see `import_upstream`).
        kernel: the name of the `gpu.func`; optional if the module has one kernel.
        options: target, registers, optimize, prefetch, load_ahead, subgroups, unaligned, large, model, check,
            strict_grf, engine, threads, cache, progress: see `Options`. A module's attribute `xegpu.options` gives the
            defaults, and `#xevm.target` of its `gpu.module`s the target.

    Raises:
        TypeError: if there is no such option.
        ValueError: if there is no such kernel, or a value of an option is not legal.
        DiagnosticError: if the module cannot be parsed, or the kernel cannot be lowered.
    """
    source = module if isinstance(module, ModuleSource) else text_of(module)
    own = Options.from_keywords(**{**stated_options(source), **options})
    if own.engine == REFERENCE:
        found = source.read()
        if own.reduction_order:
            found = found.copy()
            _mark_reduction_order(found, own)
        return evaluate.ReferenceKernel(found, chosen_kernel(found, kernel), own.model)
    compiler = KernelSource(source, kernel)
    with collector_paused():
        return Kernel(compiler.executable(own), own, compiler=compiler)


# The lowering of a kernel.


def program_steps(target: str) -> str:
    """The pipeline that lowers kernels of Triton's IR to XeTile."""
    return f"{ROOT}({step('tt-to-xetile', target=target)})"


def programs_lowered(module: Module, target: str) -> Module:
    """A module whose kernels of Triton's IR are lowered to XeTile: a copy, or the module itself if it has none.

    Raises:
        DiagnosticError: if one cannot be lowered.
    """
    if not any(map(is_program, visa.kernels(module.outline))):
        return module
    lowered = module.copy()
    Runner(verify_each=False).run(parse_pipeline(program_steps(target)), lowered)
    return lowered


def is_of_xegpu(module: Module, func: ir.Operation, ops: Sequence[ir.Operation]) -> bool:
    """Whether a kernel is written in XeGPU: at the level of subgroups or lanes, above the messages of XeVM.

    Args:
        func: the kernel.
        ops: its ops.
    """
    if has_tiles(module.outline):
        return False
    return any(op.name == "xegpu.create_nd_tdesc" for op in ops) and not has_messages(func, ops)


_BLOCK_IDS = ("gpu.block_id", "gpu.global_id")


class KernelLowering:
    """The lowering of a kernel of XeTile or XeGPU to vISA, which can stop where its assumptions are known.

    The module is not changed.

    Raises:
        DiagnosticError: by its methods, if the kernel cannot be lowered.
    """

    def __init__(self, module: Module, name: str, options: Options) -> None:
        self._module, self._name, self._options = module, name, options
        self._remarks = [*module.remarks]
        self._kernel = visa.kernel_named(module.outline, name)
        self._ops = walk(self._kernel)
        self._of_xegpu = is_of_xegpu(module, self._kernel, self._ops)
        self._levels = levels_of(module, name, options, self._remarks, self._of_xegpu)
        self._assumed: Executable | None = None
        self._lowered: Module | None = None
        self._names = set[str]()

    def assumptions(self) -> Executable:
        """The kernel without its program, the limits of launches and innermost strides: all else that it assumes."""
        if self._assumed is not None:
            return self._assumed
        kernel, options = self._kernel, self._options
        products = products_of(self._ops)
        surfaces: dict[Surface, None] = {}
        for _, lowered in itertools.islice(self._levels, len(pipelines(self._module, self._name, options))):
            func = visa.kernel_named(lowered.outline, self._name)
            inside = self._ops if func == kernel else walk(func)
            surfaces |= dict.fromkeys(surfaces_of(inside))
            multiples, sums, exact = multiples_of(func), sums_of(func), has_messages(func, inside)
            self._names = {op.name for op in inside}
            del inside
        self._lowered = None if func == kernel else lowered
        chosen = subgroups_for(kernel, options)
        mapped = xetile.subgroups_of(kernel) if has_tiles(kernel) else None
        self._assumed = structs.replace(
            executable_of(lowered, func, Program(self._name)),
            subgroups=mapped or chosen or (1 if SHARES in kernel.attributes else None),
            changed=() if chosen is None or options.aliased else tile_division.stored_arguments(kernel),
            surfaces=tuple(surfaces),
            multiples=multiples,
            sums=sums,
            products=products,
            exact_messages=exact or (self._of_xegpu and "surfaces" in options.check),
            exact_addresses=EXACT_ADDRESSES in kernel.attributes,
        )
        return self._assumed

    def serves(self, options: Options) -> bool:
        """Whether the lowering can go on with other options, which it then has.

        Those may differ in arrays that are not aligned, if nothing is assumed of them so far.
        """
        own, arrays = self._options, options.unaligned
        if options == own:
            return True
        assumed = self.assumptions()
        depends = own.unaligned or own.load_ahead or is_marked(self._ops)
        depends = depends or any(name.endswith(".unaligned") for name in self._kernel.attributes)
        depends = depends or any(multiple.argument in arrays for multiple in assumed.multiples)
        depends = depends or any(total.argument in arrays for total in assumed.sums)
        if depends or self._lowered is None or options != structs.replace(own, unaligned=arrays):
            return False
        expanded = unaligned_arguments(visa.kernel_named(self._lowered.outline, self._name), EXPANDED)
        if not {*expanded}.isdisjoint(arrays):
            return False
        mark_unaligned(self._lowered, self._name, arrays)
        self._options = options
        return True

    def executable(self) -> Executable:
        """The lowered kernel."""
        assumed = self.assumptions()
        ((_, lowered),) = self._levels
        made = executable_of(lowered, visa.kernel_named(lowered.outline, self._name))
        warnings = [d for d in self._remarks if d.severity == "warning"]
        repairs = [repair_warning(str(d.position), self._options.target, d.message) for d in warnings]
        has_instructions = not self._names or any(name.startswith("visa.") for name in self._names)
        return structs.replace(
            made,
            subgroups=assumed.subgroups,
            changed=assumed.changed,
            surfaces=assumed.surfaces,
            multiples=assumed.multiples,
            sums=assumed.sums,
            products=assumed.products,
            exact_messages=assumed.exact_messages,
            exact_addresses=assumed.exact_addresses,
            remarks=tuple(d for d in self._remarks if d.severity == "remark"),
            repaired="".join(repairs) if self._of_xegpu else None,
            reads_block_ids=not self._names.isdisjoint(_BLOCK_IDS)
            or (has_instructions and reads_group_ids(made.program)),
        )


def subgroups_for(kernel: ir.Operation, options: Options) -> int | None:
    """The number of subgroups among which the tiles of a kernel without maps are divided; None if they are not."""
    if options.subgroups is None or not has_tiles(kernel) or not tile_division.can_be_divided(kernel):
        return None
    found = options.subgroups or tile_division.suitable_subgroups(kernel)
    return found if found > 1 else None


def levels_of(
    module: Module,
    name: str,
    options: Options,
    remarks: list[Diagnostic] | None = None,
    of_xegpu: bool | None = None,
) -> Iterator[tuple[str, Module]]:
    """The module at each level, the highest first: as it was written, and lowered.

    Lowered modules do not have the module's other kernels, unless there is host code, which may launch them. Each
    lowered module is changed when the next one is asked for.

    Args:
        remarks: gets the remarks of the lowering.
        of_xegpu: see `is_of_xegpu`, if it is known.

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
    _mark_reduction_order(lowered, options)
    if of_xegpu is None:
        kernel = visa.kernel_named(module.outline, name)
        of_xegpu = is_of_xegpu(module, kernel, walk(kernel))
    if of_xegpu:
        with lowered.context:
            mark = EXACT_SURFACES if "surfaces" in options.check else WARNS_OF_REPAIRS
            visa.kernel_named(lowered.outline, name).attributes[mark] = ir.UnitAttr.get()
    count = subgroups_for(visa.kernel_named(module.outline, name), options)
    if count is not None:
        with lowered.context:
            i64 = ir.IntegerType.get_signless(64)
            func = visa.kernel_named(lowered.outline, name)
            func.attributes[xetile.SUBGROUPS] = ir.IntegerAttr.get(i64, count)
            if options.aliased:
                func.attributes[tile_layout_inference.ALIASED] = ir.UnitAttr.get()
    # The caller has verified the module, and the kernel verifies the resulting program.
    runner = Runner(verify_each=False, remarks=[] if remarks is None else remarks)
    for level, text in zip(names[1:], steps):
        runner.run(parse_pipeline(text), lowered)
        yield level, lowered


def executable_of(module: Module, func: ir.Operation, program: Program | None = None) -> Executable:
    """Wrap a kernel that has already been lowered to vISA, or any kernel with a program."""
    signature = ir.FunctionType(ir.TypeAttr(func.attributes["function_type"]).value)
    sizes = ((what, func.attributes.get(f"known_{what}_size")) for what in ("grid", "block"))
    limits = ir.DictAttr(func.attributes[visa.LIMITS]) if visa.LIMITS in func.attributes else ()
    return Executable(
        visa.name_of(func),
        parameters_of(signature.inputs, argument_names(func, module.sources)),
        program or visa.program_of(func, module.bodies),
        {n.name: ir.IntegerAttr(n.attr).value for n in limits},
        {what: tuple(ir.DenseI32ArrayAttr(size)) for what, size in sizes if size is not None},
        source=module.sources[0] if module.sources else None,
        unit_strides=unaligned_arguments(func, UNIT_STRIDES),
        places=tuple(position_of(a.location) for a in func.regions[0].blocks[0].arguments),
    )


def pipelines(module: Module, name: str, options: Options) -> tuple[str, ...]:
    """The pipelines that lower a kernel, in order: XeTile to XeGPU if the module has XeTile ops, then XeGPU to vISA."""
    gpu: dict[str, str | int] = {"target": options.target, "grf": options.registers or 0}
    limits = {f"max_{what}": 0 if options.large else n for what, n in SMALL.items()}
    steps = [step("xegpu-to-visa-pipeline", **gpu, kernel=name, optimize=options.optimize, **limits)]
    if has_tiles(module.outline):
        ahead = {"prefetch_distance": options.prefetch, "load_ahead": options.load_ahead}
        steps.insert(0, step("xetile-to-xegpu-pipeline", **gpu, **ahead))
    return tuple(f"{ROOT}({text})" for text in steps)


def mark_unaligned(module: Module, name: str, arguments: Sequence[int]) -> None:
    """Set the attribute of a kernel that lists its unaligned arguments."""
    func = visa.kernel_named(module.outline, name)
    for dialect in ("xegpu", "xetile"):
        func.attributes[f"{dialect}.unaligned"] = ir.DenseI64ArrayAttr.get(list(arguments), func.context)


def _mark_reduction_order(module: Module, options: Options) -> None:
    """Set the attribute of a module by which its reductions combine in another order than by default."""
    if options.reduction_order:
        order = ir.StringAttr.get(options.reduction_order, module.context)
        module.outline.attributes[REDUCTION_ORDER] = order


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
    types = ir.FunctionType(ir.TypeAttr(func.attributes["function_type"]).value).inputs
    unknown = [i for i, p in enumerate(parameters_of(types)) if p.strides[-1:] == (None,)]
    if unknown:
        numbers = [i for i in unknown if i not in strided]
        func.attributes[UNIT_STRIDES] = ir.DenseI64ArrayAttr.get(numbers, func.context)


def chosen_kernel(module: Module, wanted: str | None) -> str:
    """The name of the wanted kernel, or of the only one.

    Raises:
        ValueError: if there is no such kernel, or no name is given and there are several kernels.
    """
    names = [visa.name_of(func) for func in visa.kernels(module.outline)]
    return names[kernel_index(names, wanted)]
