"""The two spellings of XeGPU: each op of both stands in one module, and shares what it can."""

import inspect
from collections import Counter

import pytest
from mlir import ir

from xegpu_py.dialects.xegpu import (
    block_ops,
    fragments,
    matrix_ops,
    op_interfaces,
    scattered_ops,
    spelling,
    sync_ops,
    types,
    upstream_ops,
)
from xegpu_py.dialects.xegpu import upstream_types as upstream
from xegpu_py.dialects.xegpu.op_interfaces import BlockAccess, BlockLoad, MatrixProduct, ScatteredAccess
from xegpu_py.dialects.xegpu.types import UpstreamXeGPU, XeGPU
from xegpu_py.ir.builtin import Vector
from xegpu_py.ir.context import Context
from xegpu_py.ir.definition import Attribute, Dialect, Operand, Result, default
from xegpu_py.ir.operation import Operation

MODULES = (block_ops, fragments, matrix_ops, op_interfaces, scattered_ops, sync_ops, types, upstream_ops, upstream)
OTHER_NAMES = {"load": "load_gather", "store": "store_scatter"}
"""The RFC's names of ops that upstream names otherwise."""


def test_no_two_classes_have_one_name():
    classes = [
        name for m in MODULES for name, cls in inspect.getmembers(m, inspect.isclass) if cls.__module__ == m.__name__
    ]
    assert [name for name, count in Counter(classes).items() if count > 1] == []
    assert len(classes) > 70


def test_an_op_of_both_spellings_stands_in_one_module():
    for name, op in UpstreamXeGPU.operations.items():
        ours = XeGPU.operations.get(OTHER_NAMES.get(name, name))
        assert ours is None or ours.__module__ == op.__module__, name
        assert ours is None or ours.effects == op.effects, name
        assert (ours is None) == (op.__module__ == upstream_ops.__name__), name


@pytest.mark.parametrize("interface", [BlockAccess, BlockLoad, MatrixProduct, ScatteredAccess])
def test_interfaces_are_those_of_both_spellings(interface):
    of_rfc = {name.partition(".")[2] for name in XeGPU.implementing(interface)}
    of_upstream = {name.partition(".")[2] for name in UpstreamXeGPU.implementing(interface)}
    assert of_rfc == {OTHER_NAMES.get(name, name) for name in of_upstream} and of_rfc


def test_types_of_a_base_are_those_of_each_spelling():
    Context().load(("xegpu.upstream_ops",))
    for op, desc, hint in (
        (block_ops.LoadNdOp, types.TensorDesc, XeGPU),
        (block_ops.UpstreamLoadNdOp, upstream.UpstreamTensorDesc, UpstreamXeGPU),
    ):
        assert op.spec.operands[0].constraints == (desc,)
        assert op.spec.attributes["l1_hint"].codec.dialect is hint
    fields = block_ops.CreateNdTdescOp.spec.order
    assert block_ops.UpstreamCreateNdTdescOp.spec.order == fields[:-1], (
        "fields that are declared again keep their places"
    )


def test_late_ops_have_fields_once_a_context_has_their_dialect():
    class Late(Dialect, name="late"):
        """A dialect for this test."""

        declares_late = True

    class _Base(Operation, name="one"):
        x: Operand[Vector]
        number: Attribute[int] = default(3)
        effects = frozenset()
        assembly_format = "$x attr-dict `:` type($x) `->` type($result)"

    class OneOp(_Base, dialect=Late):
        """An op for this test."""

        result: Result[Vector]

    assert not hasattr(OneOp, "spec") and Late.operations == {"one": OneOp}
    with Context((Late,)), ir.Location.unknown():
        assert OneOp.spec.order == ["x", "number", "result"] and OneOp.spec.attributes["number"].default == 3
        assert Late.undeclared == []


@pytest.mark.parametrize(
    ("view", "source", "offset"),
    [
        ("subview %m[1, 2]", "memref<4x6xf32>", 8),
        ("subview %m[1, 2, 3]", "memref<2x4x6xf32>", 39),
        ("subview %m[3, 5]", "memref<?x6xf32>", 23),
        ("subview %m[0, 5]", "memref<4x?xf32>", 5),
        ("subview %m[1, 0]", "memref<4x?xf32>", None),
        ("subview %m[0, 1, 0]", "memref<2x?x6xf32>", 6),
        ("subview %m[1, 0, 0]", "memref<2x?x6xf32>", None),
        ("subview %m[%i, 0]", "memref<4x6xf32>", None),
        ("subview %m[0, %i]", "memref<4x6xf32>", None),
        ("subview %m[7]", "memref<16xf32, 3>", 7),
        ("subview %m[1, 2]", "memref<4x6xf32, strided<[10, 2]>>", None),
        ("reinterpret_cast %m to offset: [12]", "memref<4x6xf32>", 12),
        ("reinterpret_cast %m to offset: [12]", "memref<4x6xf32, strided<[10, 2]>>", 12),
        ("reinterpret_cast %m to offset: [%i]", "memref<4x6xf32>", None),
    ],
)
def test_offsets_of_views_in_the_spelling_of_llvm_23(view, source, offset):
    """Only what is known is written; views without an offset leave a text as it is."""
    rank = source.count("x")
    sizes, ones = ", ".join(["2"] * rank), ", ".join(["1"] * rank)
    parts = f"[{sizes}] [{ones}]" if "subview" in view else f", sizes: [{sizes}], strides: [{ones}]"
    result = f"memref<{'2x' * rank}f32, strided<[{ones}]>>"
    line = f"%v = memref.{view}{' ' if 'sub' in view else ''}{parts} : {source} to {result}"
    other = "%w = test.op : memref<4x4xf32, strided<[8, 1]>>"
    unknown = "strided<[8, 1], offset: ?>"
    found, last = spelling.with_offsets(f"{line}\n{other}").split("\n")
    assert unknown in last
    dynamic = result.replace("]>", "], offset: ?>")
    if offset is None:
        assert found == line.replace("]>", "], offset: ?>")
    else:
        exact = result.replace("]>", f"], offset: {offset}>")
        made = (
            line.replace("%v", "%$exact.v")
            .replace(result, exact)
            .replace(source, source.replace("]>", "], offset: ?>"))
        )
        assert found == f"{made} %v = memref.cast %$exact.v : {exact} to {dynamic}"
    if "reinterpret" in view:
        unmoved = line.replace(view, "reinterpret_cast %m to offset: [0]")
        assert spelling.with_offsets(unmoved) == unmoved
