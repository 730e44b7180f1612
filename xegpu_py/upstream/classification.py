"""The dialect of the kernels of a module, and the level at which each of them is written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from mlir import ir
from msgspec import Struct

from xegpu_py.dialects.xegpu import Mode
from xegpu_py.dialects.xegpu.fragments import moves_block
from xegpu_py.dialects.xegpu.op_interfaces import BlockAccess, MatrixProduct, MemoryAccess, Prefetch, ScatteredAccess
from xegpu_py.dialects.xegpu.upstream_types import Layout, UpstreamTensorDesc, layout_of
from xegpu_py.ir.builtin import Decoded
from xegpu_py.ir.module import Module
from xegpu_py.ir.operation import implements
from xegpu_py.passes.analysis.ir_queries import SUBGROUP_SIZE, shape_of
from xegpu_py.upstream.import_common import KNOWN, PREFIX, is_desc, parts, within
from xegpu_py.upstream.levels import LANES, Level
from xegpu_py.upstream.xevm_dialect import PREFIX as XEVM
from xegpu_py.upstream.xevm_memory import space_of

Origin = Literal["rfc", "upstream", "xevm"]
"""The RFC's XeGPU and XeTile, upstream's XeGPU, or XeVM and `llvm`, to which upstream lowers it."""


class ClassifiedKernel(Struct, frozen=True):
    """A kernel, or another function with ops of XeGPU.

    Attributes:
        origin: the dialect that it is in; None for ops of neither.
        level: whose values its vectors are: those of a lane, of a subgroup, or of the workgroup.
    """

    func: ir.Operation
    origin: Origin | None
    level: Level


class Classification(Struct, frozen=True):
    """The kernels of a module, in order: first those of its `gpu.module`s."""

    kernels: Sequence[ClassifiedKernel]

    def of(self, *origins: Origin | None) -> list[ClassifiedKernel]:
        """The kernels in some dialects; None for those in none of them."""
        return [kernel for kernel in self.kernels if kernel.origin in origins]


def classify(module: Module) -> Classification:
    """Find the dialect and the level of each kernel of a module, in one walk."""
    kernels: list[ClassifiedKernel] = []
    others: list[ClassifiedKernel] = []
    for func, inside in functions_in(module.outline):
        ops = parts(func)
        origin = _origin(func, ops)
        if inside and (func.name == "gpu.func" or (func.name == "llvm.func" and is_entry(func))):
            kernels.append(ClassifiedKernel(func, origin, _level(func, ops, origin)))
        elif func.name == "func.func" and origin == "upstream":
            others.append(ClassifiedKernel(func, origin, _level(func, ops, origin)))
    return Classification([*kernels, *others])


def functions_in(root: ir.Operation, inside: bool = False) -> list[tuple[ir.Operation, bool]]:
    """The functions of a module, and whether they are in a `gpu.module`."""
    found: list[tuple[ir.Operation, bool]] = []
    for op in within(root):
        if op.name.endswith(".func"):
            found.append((op, inside))
        elif op.name in ("gpu.module", "builtin.module"):
            found += functions_in(op, inside or op.name == "gpu.module")
    return found


def _origin(func: ir.Operation, ops: Sequence[ir.Operation]) -> Origin | None:
    names = {op.name for op in ops}
    if any(name.startswith(PREFIX) for name in names):
        return "upstream"
    if any(name.startswith(("xegpu.", "xetile.")) for name in names):
        return "rfc"
    arguments = func.regions[0].blocks[0].arguments if len(func.regions[0].blocks) else ()
    if any(name.startswith((XEVM, "llvm.")) for name in names) or any(space_of(a.type) is not None for a in arguments):
        return "xevm"
    return None


def is_entry(func: ir.Operation) -> bool:
    """Whether an `llvm.func` is a kernel."""
    attributes = func.attributes
    convention = str(attributes["CConv"]) if "CConv" in attributes else ""
    return bool(len(func.regions[0].blocks)) and ("gpu.kernel" in attributes or convention == _ENTRY)


_ENTRY = "#llvm.cconv<spir_kernelcc>"


def _level(func: ir.Operation, ops: Sequence[ir.Operation], origin: Origin | None) -> Level:
    if origin == "xevm":
        return "lane"
    if origin == "rfc":
        return _rfc_level(func, ops)
    return _upstream_level(func, ops)


def _rfc_level(func: ir.Operation, ops: Sequence[ir.Operation]) -> Level:
    if any(op.name.startswith("xetile.") for op in ops):
        return "workgroup"
    modes = {getattr(op.opview, "mode", None) for op in ops if op.name.startswith("xegpu.")}
    return "lane" if SUBGROUP_SIZE in func.attributes or (Mode.SIMT in modes and Mode.VC not in modes) else "subgroup"


def _upstream_level(func: ir.Operation, ops: Sequence[ir.Operation]) -> Level:
    if "VectorComputeFunctionINTEL" in func.attributes:
        return "subgroup"
    has_blocks: bool | None = None
    has_ids = any(op.name == "gpu.subgroup_id" for op in ops)
    for op in ops:
        if _divides_subgroups(op) and not (has_ids and _is_divided(op)):
            return "workgroup"
        if _holds_values(op):
            has_blocks = has_blocks or _is_block(op.opview)
    if has_blocks is None:
        # Nothing tells but descriptors, of which lanes divide the last two dimensions, or have one offset.
        made = (PREFIX + "create_nd_tdesc", PREFIX + "create_tdesc")
        descs = [UpstreamTensorDesc.of(op.results[0]) for op in ops if op.name in made]
        has_blocks = any(math.prod(d.lanes if d.scatter else d.shape[:-2]) > 1 for d in descs)
    block = list(ir.DenseI32ArrayAttr(func.attributes[KNOWN])) if KNOWN in func.attributes else [0]
    if has_blocks and block[0] % LANES and math.prod(block) % LANES == 0:
        # Such blocks count subgroups along other dimensions: vectors are those of a workgroup.
        return "workgroup"
    # Only lanes have numbers of their own.
    return "subgroup" if has_blocks and all(op.name != "gpu.lane_id" for op in ops) else "lane"


_MATRIX_ACCESSES = (PREFIX + "load_matrix", PREFIX + "store_matrix")


def _holds_values(op: ir.Operation) -> bool:
    """Whether an op's operands or results are values of a level: prefetches have none."""
    moves = implements(op, MemoryAccess) and not implements(op, Prefetch)
    return moves or implements(op, MatrixProduct) or op.name in _MATRIX_ACCESSES


def _is_block(view: Any) -> bool:
    """Whether an op's operands or results are a subgroup's values, and not a lane's parts of them."""
    op: ir.Operation = view.operation
    shape = shape_of(view.lhs if implements(op, MatrixProduct) else view.value)
    if implements(op, BlockAccess):
        desc = UpstreamTensorDesc.of(view.tdesc)
        return len(shape) > 1 or math.prod(shape) == math.prod(desc.shape)
    if implements(op, ScatteredAccess):
        memory = view.source
        held = UpstreamTensorDesc.of(memory).shape if is_desc(memory.type) else shape_of(view.mask)
        # A lane may have its own chunk of a descriptor of all lanes.
        return math.prod(shape_of(view.mask)) > 1 and math.prod(shape) >= math.prod(held)
    return len(shape) > 1


def _divides_subgroups(op: ir.Operation) -> bool:
    """Whether an op's attributes or its results' types hold a layout of subgroups."""
    layouts = [attr for name, attr in op.attributes.items() if "layout" in name]
    return any(_ARE_OF_SUBGROUPS[part] for part in (*layouts, *(v.type for v in op.results)))


def _is_of_subgroups(text: str) -> bool:
    """Whether a type or attribute in MLIR's own spelling holds a layout of subgroups."""
    at = text.find(Layout.mnemonic() + "<")
    return at >= 0 and not text[at + len(Layout.mnemonic()) + 1 :].startswith("array<i64>")


_ARE_OF_SUBGROUPS: Decoded[bool] = Decoded(lambda part: _is_of_subgroups(str(part)))


def _is_divided(op: ir.Operation) -> bool:
    """Whether a block has what its layout gives one of several subgroups: a pass left the layout."""
    view: Any = op.opview
    is_access = moves_block(op)
    if not is_access and op.name != PREFIX + "create_nd_tdesc":
        return False
    desc = UpstreamTensorDesc.of(view.tdesc)
    given = [view.layout] if is_access else []
    layouts = [layout for layout in (*given, layout_of(desc.layout) if desc.layout != "unit" else None) if layout]
    return all(
        tuple(layout.base.sg_data[d] for d in layout.kept) == desc.shape for layout in layouts if layout.sg_layout
    )
