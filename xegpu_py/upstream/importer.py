"""Reading an upstream program, and choosing how each kernel of it is rebuilt."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from mlir import ir
from mlir.dialects import memref
from mlir.passmanager import PassManager

from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError
from xegpu_py.ir.module import Module, from_mlir, parse_source, source_of
from xegpu_py.ir.passes import collector_paused
from xegpu_py.ir.source import Source
from xegpu_py.ir.verifier import walk
from xegpu_py.passes.common.values import defining_op
from xegpu_py.upstream import ops  # noqa: F401  (defines the ops)
from xegpu_py.upstream.lane import LaneImport
from xegpu_py.upstream.rebuilding import PREFIX, parts, shape_of, spelled
from xegpu_py.upstream.spellings import with_offsets
from xegpu_py.upstream.subgroup import SubgroupImport
from xegpu_py.upstream.types import Layout, TensorDesc, UpstreamXeGPU
from xegpu_py.upstream.workgroup import WorkgroupImport
from xegpu_py.upstream.xevm import drop_lowered, import_functions, import_kernel, looks_xevm, pass_buffers, xevm_kernels

Level = Literal["subgroup", "lane", "workgroup"]

_MARKS = re.compile(
    r"#xegpu\.(?:layout|slice|block_tdesc_attr|scatter_tdesc_attr|mem_layout|range)\b|!xegpu\.mem_desc\b"
    r"|\bxegpu\.(?:load_nd|prefetch_nd|load)\s+%[\w#]+\s*\[|\bxegpu\.\w+ [^\n:]*<\{|\bVectorComputeFunctionINTEL\b"
    r'|"xegpu\.\w+"\([^\n:]*<\{'
)

_OLDER = re.compile(
    r"^(?!\s*//).*(?:\bxetile\.|\bmode\s*=\s*(?:vc|simt)\b|#xegpu\.(?:tdesc_attr|sg_map)\b|\bvnni_axis\b)", re.MULTILINE
)
_OLDER_MARKS = ("xetile.", "mode", "tdesc_attr", "sg_map", "vnni_axis")

LEVELS: dict[str, Any] = {"subgroup": SubgroupImport, "lane": LaneImport, "workgroup": WorkgroupImport}


def import_upstream(
    text_or_path: str | Path | Source,
    *,
    level: Level | None = None,
    via: Literal["upstream"] | None = None,
    name: str = "<string>",
    verify: bool = True,
    context: Context | None = None,
) -> Module:
    """Read a program in upstream MLIR's XeGPU, and rebuild its kernels in our dialects.

    Kernels of subgroups become `xegpu` in VC mode, kernels of lanes `xegpu` in SIMT mode, kernels of workgroups
    `xetile`. IMEX's older programs, in the RFC's dialect and in XeTile, stay as they are: those dialects are ours. All
    that is outside of `gpu.module`s stays as it is, but layouts are dropped: they never change a value.

    Args:
        text_or_path: the program: text, a path, or a source that has been read.
        level: the level of all kernels; without it each kernel's is found from its ops.
        via: "upstream" to let upstream's own passes lower the kernels first, by stock mlir-opt in a child process, and
            to import what they make of them; see `lower_by_upstream`. Programs in our dialects are exported before.
        name: what diagnostics call the text if it is not a file.
        verify: whether to verify what was made, too.
        context: where to make the module; by default a new one.

    Raises:
        DiagnosticError: where the program does not read, breaks a rule of upstream's, or cannot be imported.
        OSError: if the file cannot be read.
    """
    source = text_or_path if isinstance(text_or_path, Source) else source_of(text_or_path, name)
    if via:
        # Imported where it is needed: it imports this.
        from xegpu_py.upstream.via import lower_by_upstream

        return lower_by_upstream(source, level=level)
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


def read_upstream(source: Source, context: Context) -> Module:
    """A program with kernels in upstream's dialect, in a context that has ours too."""
    own = context.own
    context.own = ()
    if context.is_registered_operation(PREFIX + "load_nd"):
        context.own = (UpstreamXeGPU,)
    else:
        context.define((UpstreamXeGPU,))
    try:
        module = parse_source(replace(source, text=with_offsets(source.text)), context=context)
        module.sources = (source,)
    finally:
        context.own = own + tuple(d for d in context.own if d is not UpstreamXeGPU and d not in own)
    context.load(("xegpu", "xetile"))
    return module


def _spelled(found: Diagnostic) -> Diagnostic:
    notes = tuple(_spelled(n) for n in found.notes)
    return Diagnostic(found.severity, spelled(found.message), found.position, notes)


def looks_older(text: str) -> bool:
    """Whether a text has what only IMEX's older dialects have: the RFC's XeGPU, and XeTile."""
    return any(mark in text for mark in _OLDER_MARKS) and _OLDER.search(text) is not None


def looks_upstream(text: str) -> bool:
    """Whether a text has what upstream's syntax has and ours has not."""
    return _MARKS.search(text) is not None


def kernels(root: ir.Operation) -> Iterator[ir.Operation]:
    """The functions of a program's `gpu.module`s."""
    for module in [op for op in root.regions[0].blocks[0].operations if op.operation.name == "gpu.module"]:
        for func in list(module.regions[0].blocks[0].operations):
            if func.operation.name == "gpu.func":
                yield func.operation


def _simplify(root: ir.Operation) -> None:
    """Lower ops of affine in kernels, and reshapes of memrefs to shapes that are known."""
    found = [op.operation for op in root.regions[0].blocks[0].operations if op.operation.name == "gpu.module"]
    if not found:
        return
    try:
        for module in found:
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
        made = memref.reinterpret_cast(kind, memory, [], [], [], [0], kind.shape, strides)
    op.results[0].replace_all_uses_with(made)
    op.erase()
    source = defining_op(shape)
    if source is not None and source.name == "arith.constant" and next(iter(shape.uses), None) is None:
        source.erase()


def level_of(func: ir.Operation, may_divide: bool = True) -> Level:
    """The level at which a kernel is written.

    Args:
        may_divide: whether there may be layouts of subgroups in it.
    """
    if "VectorComputeFunctionINTEL" in func.attributes:
        return "subgroup"
    has_blocks = False
    for op in parts(func):
        if may_divide:
            texts = [str(attr) for name, attr in op.attributes.items() if "layout" in name]
            if any(map(_divides_subgroups, (*texts, *(str(v.type) for v in op.results)))):
                return "workgroup"
        has_blocks = has_blocks or (op.name in _BLOCKS and _is_block(op.opview))
    return "subgroup" if has_blocks else "lane"


_PRODUCTS = ("dpas", "dpas_mx")
_BLOCKS = tuple(PREFIX + n for n in ("load_nd", "store_nd", "load", "store", "load_matrix", "store_matrix", *_PRODUCTS))


def _is_block(view: Any) -> bool:
    """Whether an op takes or gives what a subgroup has, and not what a lane has of it."""
    name = view.operation.name.removeprefix(PREFIX)
    shape = shape_of(view.lhs if name in _PRODUCTS else view.value)
    if name in ("load_nd", "store_nd"):
        desc = TensorDesc.of(view.tdesc)
        return len(shape) > 1 or math.prod(shape) == math.prod(desc.shape)
    if name in ("load", "store"):
        lanes = view.mask.type
        return math.prod(shape_of(view.mask)) > 1 if isinstance(lanes, ir.VectorType) else False
    return len(shape) > 1


def _divides_subgroups(text: str) -> bool:
    """Whether a type or attribute in MLIR's own spelling holds a layout of subgroups."""
    at = text.find(Layout.mnemonic() + "<")
    return at >= 0 and not text[at + len(Layout.mnemonic()) + 1 :].startswith("array<i64>")


def drop_layouts(root: ir.Operation) -> None:
    """Remove upstream's attributes from ops of other dialects."""
    for op in walk(root):
        if op.name.startswith(("xegpu.", "xetile.")) or not op.attributes:
            continue
        for name in [n for n, attr in op.attributes.items() if PREFIX in str(attr)]:
            del op.attributes[name]
