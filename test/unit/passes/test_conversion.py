"""The conversion of functions in place: one value becomes several, through each kind of control flow."""

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import pytest
from mlir import ir

import xegpu_py
from xegpu_py import reference
from xegpu_py.ir.control_flow import STRUCTURED, sources
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.ir.module import walk
from xegpu_py.passes.analysis.ir_queries import element_of, shape_of
from xegpu_py.passes.rewriting.builders import (
    create_like,
    extract_slice,
    insert_slice,
    make,
    number_attribute,
    with_shape,
)
from xegpu_py.passes.rewriting.rewriter import Conversion, Rules

rule: Rules[Callable[["Halves", ir.Operation], None]] = Rules()


class Halves(Conversion):
    """Vectors of 8 elements become two of 4 elements."""

    rules: ClassVar = rule

    def convert_types(self, value, init=None):
        return [with_shape(value.type, [4])] * 2 if shape_of(value) == (8,) else None

    def is_legal(self, op):
        return not any(shape_of(v) == (8,) for v in (*op.operands, *op.results))


@rule("arith.addf", "arith.mulf", "arith.constant")
def elementwise(c, op):
    parts = []
    for i in range(2):
        if op.name == "arith.constant":
            value = op.attributes["value"].get_splat_value()
            kind = with_shape(op.results[0].type, [4])
            parts.append(make(op.name, kind, value=ir.DenseElementsAttr.get_splat(kind, value)))
        else:
            operands = [c.get(v)[i] for v in op.operands]
            parts.append(create_like(op, [operands[0].type], operands).results[0])
    c.replace(op, parts)


@rule("vector.load")
def load(c, op):
    whole = create_like(op, [op.results[0].type], list(op.operands)).results[0]
    c.replace(op, [extract_slice(whole, [at], [4]) for at in (0, 4)])


@rule("vector.store")
def store(c, op):
    value, *rest = op.operands
    zeros = number_attribute(element_of(value), 0)
    whole = make("arith.constant", value.type, value=ir.DenseElementsAttr.get_splat(value.type, zeros))
    for at, part in zip((0, 4), c.get(value)):
        whole = insert_slice(part, whole, [at])
    create_like(op, [], [whole, *rest])
    c.erase(op)


BODIES = {
    "for": """
      %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %v, %k = %x) -> (vector<8xf32>, f32) {
        %b = arith.addf %a, %w : vector<8xf32>
        %l = arith.addf %k, %k : f32
        scf.yield %b, %l : vector<8xf32>, f32
      }
      %s = vector.broadcast %r#1 : f32 to vector<4xf32>
      vector.store %s, %m[%c16] : memref<64xf32>, vector<4xf32>
      vector.store %r#0, %m[%c8] : memref<64xf32>, vector<8xf32>""",
    "while": """
      %r:2 = scf.while (%a = %v, %i = %c0) : (vector<8xf32>, index) -> (index, vector<8xf32>) {
        %go = arith.cmpi slt, %i, %n : index
        %b = arith.mulf %a, %w : vector<8xf32>
        scf.condition(%go) %i, %b : index, vector<8xf32>
      } do {
      ^bb0(%i: index, %a: vector<8xf32>):
        %j = arith.addi %i, %c1 : index
        scf.yield %a, %j : vector<8xf32>, index
      }
      vector.store %r#1, %m[%c8] : memref<64xf32>, vector<8xf32>""",
    "if": """
      %c = arith.cmpi slt, %n, %c2 : index
      %r = scf.if %c -> vector<8xf32> {
        %b = arith.addf %v, %w : vector<8xf32>
        scf.yield %b : vector<8xf32>
      } else {
        scf.yield %w : vector<8xf32>
      }
      vector.store %r, %m[%c8] : memref<64xf32>, vector<8xf32>
      scf.if %c {
        vector.store %v, %m[%c16] : memref<64xf32>, vector<8xf32>
      }""",
    "index_switch": """
      %r = scf.index_switch %n -> vector<8xf32>
      case 1 {
        scf.yield %v : vector<8xf32>
      }
      case 3 {
        %b = arith.mulf %v, %w : vector<8xf32>
        scf.yield %b : vector<8xf32>
      }
      default {
        scf.yield %w : vector<8xf32>
      }
      vector.store %r, %m[%c8] : memref<64xf32>, vector<8xf32>""",
    "execute_region": """
      %c = arith.cmpi slt, %n, %c2 : index
      %r = scf.execute_region -> vector<8xf32> {
        cf.cond_br %c, ^yes(%v : vector<8xf32>), ^no
      ^yes(%a: vector<8xf32>):
        scf.yield %a : vector<8xf32>
      ^no:
        %b = arith.addf %v, %w : vector<8xf32>
        scf.yield %b : vector<8xf32>
      }
      vector.store %r, %m[%c8] : memref<64xf32>, vector<8xf32>""",
    "nested": """
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %v) -> vector<8xf32> {
        %c = arith.cmpi slt, %i, %c2 : index
        %b = scf.if %c -> vector<8xf32> {
          %d = arith.addf %a, %w : vector<8xf32>
          scf.yield %d : vector<8xf32>
        } else {
          %e = scf.for %j = %c0 to %i step %c1 iter_args(%f = %a) -> vector<8xf32> {
            %g = arith.mulf %f, %w : vector<8xf32>
            scf.yield %g : vector<8xf32>
          }
          scf.yield %e : vector<8xf32>
        }
        scf.yield %b : vector<8xf32>
      }
      vector.store %r, %m[%c8] : memref<64xf32>, vector<8xf32>""",
    "blocks": """
      cf.br ^loop(%c0, %v : index, vector<8xf32>)
    ^loop(%i: index, %a: vector<8xf32>):
      %go = arith.cmpi slt, %i, %n : index
      cf.cond_br %go, ^body, ^end(%a, %i : vector<8xf32>, index)
    ^body:
      %b = arith.addf %a, %w : vector<8xf32>
      %j = arith.addi %i, %c1 : index
      %f = arith.index_cast %j : index to i32
      cf.switch %f : i32, [
        default: ^loop(%j, %b : index, vector<8xf32>),
        2: ^end(%w, %j : vector<8xf32>, index),
        7: ^loop(%c0, %w : index, vector<8xf32>)
      ]
    ^end(%r: vector<8xf32>, %at: index):
      %k = arith.muli %at, %c8 : index
      vector.store %r, %m[%k] : memref<64xf32>, vector<8xf32>""",
}

KERNEL = """
gpu.module @m {{
  gpu.func @k(%m: memref<64xf32>, %n: index) kernel {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %x = arith.constant 1.5 : f32
      %w = arith.constant dense<2.5> : vector<8xf32>
      %v = vector.load %m[%c0] : memref<64xf32>, vector<8xf32>
{}
      gpu.return
  }}
}}
"""


def converted(module):
    func = next(op for op in walk(module.operation) if op.name == "gpu.func")
    conversion = Halves()
    with func.context, func.location:
        conversion.region(func.regions[0])
        conversion.finish()
    module.verify()
    return module


def ran(module, n):
    memory = np.arange(64, dtype=np.float32)
    reference.run(module, "k", [memory, n], grid=(1,))
    return memory


@pytest.mark.parametrize("name", BODIES)
def test_values_in_parts_pass_through(name):
    text = KERNEL.format(BODIES[name])
    module = converted(xegpu_py.parse(text))
    body = str(module)
    for line in body.split("\n"):
        if "vector<8xf32>" in line:
            assert any(op in line for op in ("load", "store", "slice", "constant")), line
    for n in range(5):
        expected = ran(xegpu_py.parse(text), n)
        assert not np.array_equal(expected, np.arange(64, dtype=np.float32)) or n == 0
        np.testing.assert_array_equal(ran(module, n), expected)


@pytest.mark.parametrize("name", [n for n in BODIES if n != "blocks"])
def test_an_op_that_stays_is_not_made_anew(name):
    module = xegpu_py.parse(KERNEL.format(BODIES[name]).replace("8xf32", "6xf32"))
    before = str(module)
    assert str(converted(module)) == before


def test_an_op_that_cannot_take_parts_is_refused_where_it_stands():
    module = xegpu_py.parse(KERNEL.format("%o = math.exp %v : vector<8xf32>"))
    with pytest.raises(DiagnosticError, match=r":12:6: error: 'math.exp' op cannot take .* divided"):
        converted(module)


def test_sources_are_what_is_passed_on():
    for name, body in BODIES.items():
        module = xegpu_py.parse(KERNEL.format(body))
        for op in walk(module.operation):
            passed = list(op.results) if op.name in STRUCTURED else []
            passed += [a for region in op.regions for block in list(region.blocks)[1:] for a in block.arguments]
            for value in passed:
                found = sources(value)
                assert found, name
                assert {v.type for v in found} == {value.type}
