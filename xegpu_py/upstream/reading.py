"""Reading upstream programs: which dialect a text is in, and at which level each kernel is written."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Literal

from mlir import ir
from msgspec.structs import replace

from xegpu_py.ir.context import Context
from xegpu_py.ir.module import Module, parse_source
from xegpu_py.ir.source import Source
from xegpu_py.ir.verifier import walk
from xegpu_py.passes.common.values import shape_of
from xegpu_py.upstream import ops  # noqa: F401  (defines the ops)
from xegpu_py.upstream.rebuilding import PREFIX, functions_of, parts
from xegpu_py.upstream.spellings import with_offsets
from xegpu_py.upstream.types import Layout, TensorDesc, UpstreamXeGPU

Level = Literal["subgroup", "lane", "workgroup"]

_MARKS = re.compile(
    r"#xegpu\.(?:layout|slice|block_tdesc_attr|scatter_tdesc_attr|mem_layout|range)\b|!xegpu\.mem_desc\b"
    r"|\bxegpu\.(?:(?:load_nd|prefetch_nd|load|atomic_rmw\s+\w+)|(?:store_nd|store)\s+%[\w#]+\s*,)\s+%[\w#]+\s*\["
    r"|\bxegpu\.\w+ [^\n:]*<\{|\bVectorComputeFunctionINTEL\b"
    r'|"xegpu\.\w+"\([^\n:]*<\{'
)

_OLDER = re.compile(
    r"^(?!\s*//).*(?:\bxetile\.|\bmode\s*=\s*(?:vc|simt)\b|#xegpu\.(?:tdesc_attr|sg_map)\b|\bvnni_axis\b)", re.MULTILINE
)
_OLDER_MARKS = ("xetile.", "mode", "tdesc_attr", "sg_map", "vnni_axis")


def looks_older(text: str) -> bool:
    """Whether a text has syntax that only IMEX's older dialects have: the RFC's XeGPU, and XeTile."""
    return any(mark in text for mark in _OLDER_MARKS) and _OLDER.search(text) is not None


def looks_upstream(text: str) -> bool:
    """Whether a text has syntax that upstream has and our dialects do not have."""
    return _MARKS.search(text) is not None


def kernels(root: ir.Operation) -> Iterator[ir.Operation]:
    """The functions of a program's `gpu.module`s."""
    return (op for op in functions_of(root) if op.name == "gpu.func")


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
    """Whether an op's operands or results are a subgroup's values, and not a lane's parts of them."""
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
