"""Kernels in MLIR's dialects `xevm` and `llvm`, as upstream's passes make them of XeGPU: rebuilt in our dialects.

A kernel is a `gpu.func`, or an `llvm.func` that is an entry point; it may have ops of both dialects at any stage of
upstream's lowering, among ops of `arith`, `math`, `vector`, `memref`, `scf`, `cf` and `gpu`. It becomes one of work
items, 16 a subgroup: blocks are those of `xegpu` in SIMT mode, pointers are addresses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from mlir import ir
from mlir.dialects import gpu
from mlir.passmanager import PassManager

from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.verifier import walk
from xegpu_py.passes.common.builders import integer_type, make
from xegpu_py.passes.common.kernels import SUBGROUP_SIZE, symbol_of
from xegpu_py.passes.common.values import defining_op
from xegpu_py.upstream.rebuilding import LANES, functions_of, parts, refuse, within
from xegpu_py.upstream.xevm import arithmetic, blocks, builtins, pointers  # noqa: F401  (define the rules)
from xegpu_py.upstream.xevm.state import PRIVATE, SHARED, KernelImport, space_of

_MARKS = re.compile(r"\bxevm\.|\bspir_kernelcc\b|!llvm\.|(?<![@\w.\"])llvm\.\w")
_FOREIGN = ("xevm.", "llvm.")
_KEPT = ("known_block_size", "known_grid_size", "xegpu.lanes_per_subgroup")
_ENTRY = "#llvm.cconv<spir_kernelcc>"


def looks_xevm(text: str) -> bool:
    """Whether a text has kernels that this imports."""
    may_have = any(mark in text for mark in ("xevm.", "spir_kernelcc", "llvm."))
    return may_have and "gpu.module" in text and _MARKS.search(text) is not None


def xevm_kernels(root: ir.Operation) -> Iterator[ir.Operation]:
    """The kernels of a program that have ops or arguments of `xevm` or `llvm`."""
    for func in functions_of(root):
        if is_entry(func) if func.name == "llvm.func" else func.name == "gpu.func" and _is_lowered(func):
            yield func


def _is_lowered(func: ir.Operation) -> bool:
    """Whether a `gpu.func` has ops or arguments of `xevm` or `llvm`."""
    arguments = func.regions[0].blocks[0].arguments
    return any(space_of(a.type) is not None for a in arguments) or any(
        op.name.startswith(_FOREIGN) for op in parts(func)
    )


def is_entry(func: ir.Operation) -> bool:
    """Whether an `llvm.func` is a kernel."""
    attributes = func.attributes
    found = str(attributes["CConv"]) if "CConv" in attributes else ""
    return bool(len(func.regions[0].blocks)) and ("gpu.kernel" in attributes or found == _ENTRY)


def import_kernel(
    func: ir.Operation, parameters: Sequence[ir.Type] | None = None, buffers: Sequence[ir.Type | None] = ()
) -> ir.Operation:
    """Rebuild a kernel, in place.

    Args:
        func: a `gpu.func` or an `llvm.func`.
        parameters: the types of the arguments of the kernel that the `llvm.func` was lowered from. Without them all
            arguments but pointers stay as they are.
        buffers: for each argument the type of the memref that replaces a pointer; by default one of bytes.

    Returns:
        The new kernel, a `gpu.func` of work items.

    Raises:
        DiagnosticError: at the op that cannot be rebuilt.
    """
    with func.location:
        _promote(func)
        made = _as_gpu_func(func, parameters, buffers)
        KernelImport(made).run()
    return made


def import_functions(module: ir.Operation) -> list[ir.Operation]:
    """Rebuild the functions of a `gpu.module` that kernels call, in place, as `func.func`.

    Raises:
        DiagnosticError: at the op that cannot be rebuilt.
    """
    found = within(module, "llvm.func")
    return [_import_function(func) for func in found if len(func.regions[0].blocks) and not is_entry(func)]


def _promote(func: ir.Operation) -> None:
    """Replace private memory by values if all its accesses are to known parts."""
    if any(op.name == "llvm.alloca" and space_of(op.results[0].type) == PRIVATE for op in parts(func)):
        PassManager.parse("any(sroa,mem2reg)", func.context).run(func)


def _import_function(func: ir.Operation) -> ir.Operation:
    _promote(func)
    address = integer_type(64)
    ends = [op for op in parts(func) if op.name == "llvm.return"]
    inputs, results = (
        [address if space_of(v.type) is not None else v.type for v in values]
        for values in (func.regions[0].blocks[0].arguments, ends[0].operands if ends else [])
    )
    attributes = {
        "function_type": ir.TypeAttr.get(ir.FunctionType.get(inputs, results)),
        "sym_name": func.attributes["sym_name"],
        "sym_visibility": ir.StringAttr.get("private"),
    }
    with ir.InsertionPoint(func), func.location:
        made = ir.Operation.create("func.func", attributes=attributes, regions=1)
        for block in list(func.regions[0].blocks):
            block.append_to(made.regions[0])
        KernelImport(made).run()
    func.erase()
    return made


def drop_lowered(root: ir.Operation) -> None:
    """Remove declarations, globals and targets, which only `llvm` functions use, from modules of kernels."""
    for module in within(root, "gpu.module"):
        for op in within(module, "llvm.func", "llvm.mlir.global"):
            op.erase()
        if "targets" in module.attributes:
            del module.attributes["targets"]


def _as_gpu_func(
    func: ir.Operation, parameters: Sequence[ir.Type] | None, buffers: Sequence[ir.Type | None]
) -> ir.Operation:
    """A kernel with the parameters that it had before it was lowered."""
    entry = func.regions[0].blocks[0]
    old = list(entry.arguments)
    size = func.attributes.get("intel_reqd_sub_group_size")
    if size is not None and int(ir.IntegerAttr(size).value) != LANES:
        refuse(func, f"its subgroups have {ir.IntegerAttr(size).value} work items; its blocks require {LANES}")
    if parameters is None:
        # A pointer without a known buffer becomes a memref of bytes.
        found = ((a.type, b or ir.Type.parse("memref<?xi8>")) for a, b in zip_longest(old, buffers))
        types = [kind if space_of(kind) is None else buffer for kind, buffer in found]
    else:
        types = list(parameters)
    attributes: dict[str, ir.Attribute] = {
        "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
        "sym_name": func.attributes["sym_name"],
        gpu.GPUFuncOp.KERNEL_ATTR_NAME: ir.UnitAttr.get(),
        SUBGROUP_SIZE: ir.IntegerAttr.get(integer_type(32), LANES),
        **{n: func.attributes[n] for n in _KEPT if n in func.attributes},
    }
    with ir.InsertionPoint(func):
        made = ir.Operation.create("gpu.func", attributes=attributes, regions=1)
    for block in list(func.regions[0].blocks):
        block.append_to(made.regions[0])
    entry = made.regions[0].blocks[0]
    given = [entry.add_argument(kind, func.location) for kind in types]
    with ir.InsertionPoint.at_block_begin(entry):
        if parameters is None:
            values = [arithmetic.descriptor(v)[0] if space_of(o.type) is not None else v for v, o in zip(given, old)]
        else:
            values = [v for value in given for v in _lowered(value)]
    if len(values) != len(old):
        emit_error(func, f"has {len(old)} arguments, but {', '.join(map(str, types))} require others")
    for argument in old:
        if space_of(argument.type) == SHARED:
            refuse(func, "it has an argument in shared local memory, whose size is known only at launch")
    for argument, value in zip(old, values):
        argument.replace_all_uses_with(value)
    for _ in old:
        entry.erase_argument(0)
    func.erase()
    return made


def pass_buffers(root: ir.Operation, func: ir.Operation) -> list[ir.Type | None]:
    """Let launches of a kernel pass memrefs in place of pointers. Returns their types; None for other arguments.

    Raises:
        DiagnosticError: at a launch whose pointer comes from no memref, or from one of another type than before.
    """
    found: list[ir.Type | None] = [None] * len(func.regions[0].blocks[0].arguments)
    wanted = [symbol_of(f) for f in (func.parent, func)]
    for op in walk(root):
        if op.name != "gpu.launch_func" or ir.SymbolRefAttr(op.attributes["kernel"]).value != wanted:
            continue
        # An async object comes last.
        start = len(op.operands) - len(found) - list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))[-1]
        for i, value in enumerate(list(op.operands)[start : start + len(found)]):
            if space_of(value.type) is None:
                continue
            memref = _memref_of(value)
            if memref is None or found[i] not in (None, memref.type):
                refuse(op, f"its argument {i} is a pointer that is not that of {found[i] or 'a memref'}")
            found[i] = memref.type
            op.operands[start + i] = memref
    return found


_POINTERS = ("llvm.addrspacecast", "llvm.inttoptr", "arith.index_cast", "arith.index_castui")


def _memref_of(value: ir.Value) -> ir.Value | None:
    """The memref to whose buffer a pointer points; None if it cannot be determined."""
    op = defining_op(value)
    while op is not None and op.name in _POINTERS:
        op = defining_op(op.operands[0])
    return op.operands[0] if op is not None and op.name == "memref.extract_aligned_pointer_as_index" else None


def _lowered(value: ir.Value) -> list[ir.Value]:
    """The arguments of the lowered `llvm.func` for a kernel's argument: of a memref, its descriptor's parts."""
    if isinstance(value.type, ir.MemRefType):
        return arithmetic.descriptor(value)
    if isinstance(value.type, ir.IndexType):
        return [make("arith.index_cast", integer_type(64), value)]
    return [value]


__all__ = ["drop_lowered", "import_functions", "import_kernel", "looks_xevm", "pass_buffers", "xevm_kernels"]
