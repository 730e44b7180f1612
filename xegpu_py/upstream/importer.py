"""Rebuilding the kernels of an upstream program, each at its level."""

from __future__ import annotations

import math
from typing import Any

from mlir import ir
from mlir.passmanager import PassManager

from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError
from xegpu_py.ir.module import Module, from_mlir, parse_source
from xegpu_py.ir.passes import collector_paused
from xegpu_py.ir.source import Source
from xegpu_py.ir.verifier import walk
from xegpu_py.passes.common.builders import reinterpret_cast
from xegpu_py.passes.common.values import defining_op
from xegpu_py.upstream.lane import LaneImport
from xegpu_py.upstream.reading import Level, drop_layouts, kernels, level_of, looks_older, read_upstream
from xegpu_py.upstream.rebuilding import spelled, within
from xegpu_py.upstream.subgroup import SubgroupImport
from xegpu_py.upstream.workgroup import WorkgroupImport
from xegpu_py.upstream.xevm import drop_lowered, import_functions, import_kernel, looks_xevm, pass_buffers, xevm_kernels

LEVELS: dict[str, Any] = {"subgroup": SubgroupImport, "lane": LaneImport, "workgroup": WorkgroupImport}


def rebuild(
    source: Source, *, level: Level | None = None, verify: bool = True, context: Context | None = None
) -> Module:
    """Read a program, and rebuild its kernels; see `import_upstream`."""
    if looks_older(source.text):
        return parse_source(source, context=context or Context(), verify=verify)
    try:
        context = context or Context(())
        with collector_paused(), context, ir.Location.unknown():
            module = read_upstream(source, context)
            _simplify(module.outline)
            divided = "sg_layout" in source.text
            lowered: list[ir.Operation] = []
            for func in list(xevm_kernels(module.outline)) if looks_xevm(source.text) else ():
                lowered.append(import_kernel(func, buffers=pass_buffers(module.outline, func)))
            for func in lowered:
                import_functions(func.parent)
            if lowered:
                drop_lowered(module.outline)
            for func in kernels(module.outline):
                if func not in lowered:
                    LEVELS[level or level_of(func, divided)](func).run()
            drop_layouts(module.outline)
            if verify:
                module.verify()
    except DiagnosticError as e:
        raise DiagnosticError([_spelled(d) for d in e.diagnostics], [source]) from None
    return module


def _spelled(found: Diagnostic) -> Diagnostic:
    notes = tuple(_spelled(n) for n in found.notes)
    return Diagnostic(found.severity, spelled(found.message), found.position, notes)


def _simplify(root: ir.Operation) -> None:
    """Lower ops of the affine dialect in kernels, and reshapes of memrefs to static shapes."""
    try:
        for module in within(root, "gpu.module"):
            names = {op.name for op in walk(module)}
            if any(name.startswith("affine.") for name in names):
                PassManager.parse("gpu.module(lower-affine)").run(module)
            for op in walk(module) if "memref.reshape" in names else ():
                if op.name == "memref.reshape":
                    _reshape(op)
    except ir.MLIRError as e:
        raise DiagnosticError(from_mlir(e, root.context)) from None


def _reshape(op: ir.Operation) -> None:
    """Make a reshape of a memref, which is contiguous, a view of known sizes, which reads no shape from memory."""
    memory, shape = op.operands
    kind = ir.MemRefType(op.results[0].type)
    if not kind.has_static_shape:
        return
    with ir.InsertionPoint(op), op.location:
        strides = [math.prod(kind.shape[i + 1 :]) for i in range(kind.rank)]
        made = reinterpret_cast(memory, 0, kind.shape, strides, kind)
    op.results[0].replace_all_uses_with(made)
    op.erase()
    source = defining_op(shape)
    if source is not None and source.name == "arith.constant" and next(iter(shape.uses), None) is None:
        source.erase()
