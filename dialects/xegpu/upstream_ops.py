"""Ops that only upstream's XeGPU has: matrices in shared local memory, and conversions of layouts."""

import math
from typing import Any

from mlir import ir

from xegpu_py.dialects.xegpu.op_interfaces import AnyLayout, HasLayout, VectorOrNumber
from xegpu_py.dialects.xegpu.types import MemoryScope, UpstreamXeGPU
from xegpu_py.dialects.xegpu.upstream_types import Layout, MemDesc, check_distribution, check_element, check_space
from xegpu_py.ir.builtin import MemRef, bit_width, by, shape_of
from xegpu_py.ir.codecs import Unit
from xegpu_py.ir.definition import Attribute, IndexList, Operand, Result
from xegpu_py.ir.operation import Operation

DIALECT = UpstreamXeGPU


def _check_matrix(op: Any) -> None:
    """Check that the access is to a part of the matrix (IsValidMatrixOpParams)."""
    desc = MemDesc.of(op.mem_desc)
    check_element(op, op.value, desc)
    if len(op.static_offsets) != len(desc.shape):
        op.fail(f"a matrix of {by(desc.shape)} needs {len(desc.shape)} offsets, but got {len(op.static_offsets)}")
    found = shape_of(op.value)
    if len(found) == len(desc.shape) and any(n > m for n, m in zip(found, desc.shape)):
        op.fail(f"{op.value.type} exceeds the matrix of {by(desc.shape)}")
    if found:
        check_distribution(op, op.layout, found)
    lanes = op.layout.lane_layout if op.subgroup_block_io and isinstance(op.layout, Layout) else ()
    if lanes:
        if any(n != 1 for n in op.layout.lane_data[:-1]):
            op.fail(f"subgroup_block_io needs lane_data along the last dimension only, but got {op.layout}")
        if any(n != 1 and s != 1 for n, s in zip(lanes, desc.placed.stride)):
            op.fail(f"subgroup_block_io needs lanes along the dimension of stride 1, but got {op.layout} of {desc}")
        if desc.placed.block != lanes:
            op.fail(f"subgroup_block_io needs blocks of lane_layout {by(lanes)}, but got {desc}")


class ConvertLayoutOp(Operation, dialect=UpstreamXeGPU, name="convert_layout"):
    """Gives the same value another layout."""

    source: Operand[VectorOrNumber]
    result: Result[VectorOrNumber]
    input_layout: Attribute[AnyLayout] | None = None
    target_layout: Attribute[AnyLayout] | None = None

    effects = frozenset()
    same_type = ("result", "source")
    assembly_format = "$source prop-dict attr-dict `:` type($source) (`->` type($result))?"

    def verify_op(self) -> None:
        layouts = [layout for layout in (self.input_layout, self.target_layout) if layout is not None]
        if len({bool(layout.sg_layout) for layout in layouts}) > 1:
            self.fail("either both layouts divide among subgroups, or none")
        for layout in layouts:
            check_distribution(self, layout, shape_of(self.source))


class CreateMemDescOp(Operation, dialect=UpstreamXeGPU, name="create_mem_desc"):
    """Sees a buffer in shared local memory as a matrix."""

    source: Operand[MemRef]
    mem_desc: Result[MemDesc]

    effects = frozenset()
    assembly_format = "$source prop-dict attr-dict `:` type($source) `->` type($mem_desc)"

    def verify_op(self) -> None:
        source, desc = ir.MemRefType(self.source.type), MemDesc.of(self.mem_desc)
        check_space(self, self.source, MemoryScope.SLM)
        if source.has_static_shape:
            held = math.prod(source.shape) * bit_width(str(source.element_type))
            if held != math.prod(desc.shape) * bit_width(desc.element):
                self.fail(f"source and matrix must have one size, but are {source} and {desc}")


class LoadMatrixOp(Operation, dialect=UpstreamXeGPU, name="load_matrix", interfaces=(HasLayout,)):
    """Loads a block of a matrix in shared local memory."""

    mem_desc: Operand[MemDesc]
    offsets: IndexList
    value: Result[VectorOrNumber]
    subgroup_block_io: Attribute[Unit] | None = None

    effects = frozenset(["read"])
    assembly_format = (
        "$mem_desc `` $offsets prop-dict attr-dict `:` type($mem_desc) (`,` type($offsets)^)? `->` type($value)"
    )

    verify_op = _check_matrix


class StoreMatrixOp(Operation, dialect=UpstreamXeGPU, name="store_matrix", interfaces=(HasLayout,)):
    """Stores a block of a matrix in shared local memory."""

    value: Operand[VectorOrNumber]
    mem_desc: Operand[MemDesc]
    offsets: IndexList
    subgroup_block_io: Attribute[Unit] | None = None

    effects = frozenset(["write"])
    assembly_format = (
        "$value `,` $mem_desc `` $offsets prop-dict attr-dict `:` "
        "type($value) `,` type($mem_desc) (`,` type($offsets)^)?"
    )

    verify_op = _check_matrix
