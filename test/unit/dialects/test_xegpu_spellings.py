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
    sync_ops,
    types,
    upstream_ops,
)
from xegpu_py.dialects.xegpu import upstream_types as upstream
from xegpu_py.dialects.xegpu.op_interfaces import BlockAccess, BlockLoad, MatrixProduct, ScatteredAccess
from xegpu_py.dialects.xegpu.types import UpstreamXeGPU, XeGPU
from xegpu_py.ir.builtin import Vector
from xegpu_py.ir.definition import Attribute, Dialect, Operand, Result, default
from xegpu_py.ir.module import Context
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
