"""`xegpu.dpas` and `xegpu.dpas_mx`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from mlir import ir
from xegpu_py.passes.common.messages import precision_of
from xegpu_py.passes.common.registers import register_type, shape_and_element
from xegpu_py.passes.xegpu_to_visa.lower import Lowering, pattern
from xegpu_py.passes.xegpu_to_visa.values import Const, Reg
from xegpu_py.passes.xegpu_to_visa.vector import gather

from xegpu_py.ir.builtin import bit_width
from xegpu_py.numerics.block_scaled import COLUMNS, DEPTH, ROWS, SCALE_GROUP
from xegpu_py.visa.operands import Raw, Vector
from xegpu_py.visa.program import Instruction


@pattern("xegpu.dpas")
def dpas(low: Lowering, op: ir.Operation) -> None:
    """One instruction."""
    low.require_vc(op)
    view, emit = op.opview, low.emit
    (m, n), d_element = shape_and_element(view.result.type)
    w, a = (precision_of(shape_and_element(v.type)[1]) for v in (view.rhs, view.lhs))
    operand = "df" if w == "df" else "d"
    name = register_type(d_element)
    lhs, rhs = (emit.as_type(_aligned(low, _packed(low, v)), operand) for v in (view.lhs, view.rhs))
    acc = _accumulator(low, view.acc)
    result = emit.whole(name, m * n)
    if acc is not None and acc.first == 0 and acc.var.alias is None and acc.var.count != result.var.count:
        result = Reg(emit.variable(name, acc.var.count), 0, m * n)
    depth = max(low.target.dpas_depths)
    operands = _operands(low, w, a, depth, m, result, acc) | {"src1": emit.raw(rhs), "src2": emit.vector(lhs)}
    emit.instructions.append(Instruction("dpas", operands, n, where=emit.where))
    low.set(op, result)


@pattern("xegpu.dpas_mx")
def dpas_mx(low: Lowering, op: ir.Operation) -> None:
    """One bdpas."""
    low.require_vc(op)
    view, emit = op.opview, low.emit
    d_element = shape_and_element(view.result.type)[1]
    w, a = (precision_of(shape_and_element(v.type)[1]) for v in (view.rhs, view.lhs))
    # Operands of bf and hf have these types; those of shorter elements have ud.
    operand = w if w in ("bf", "hf") else "ud"
    lhs, rhs = (emit.as_type(_aligned(low, _packed(low, v)), operand) for v in (view.lhs, view.rhs))
    acc = _accumulator(low, view.acc)
    result = emit.whole(register_type(d_element), ROWS * COLUMNS)
    scale_a = None if view.scale_a is None else _scales(low, view.scale_a, by_rows=True)
    scale_b = None if view.scale_b is None else _scales(low, view.scale_b, by_rows=False)
    operands = _operands(low, w, a, DEPTH, ROWS, result, acc) | {
        "src1": emit.raw(rhs),
        "src2": emit.raw(lhs),
        "src3": Vector(None) if scale_b is None else emit.vector(scale_b),
        "src4": Vector(None) if scale_a is None else emit.vector(scale_a),
    }
    emit.instructions.append(Instruction("bdpas", operands, COLUMNS, where=emit.where))
    low.set(op, result)


def _operands(low: Lowering, w: str, a: str, depth: int, rows: int, result: Reg, acc: Reg | None) -> dict[str, Any]:
    """The operands of dpas and bdpas other than the factors."""
    src0 = Raw(None) if acc is None else low.emit.raw(acc)
    return {"W": w, "A": a, "SD": depth, "RC": rows, "dst": low.emit.raw(result), "src0": src0}


def _scales(low: Lowering, value: ir.Value, by_rows: bool) -> Reg:
    """The scales of a factor. Those of a second block follow half a register after those of the first.

    Args:
        by_rows: whether scales belong to rows of the matrix, instead of columns.
    """
    shape, _ = shape_and_element(value.type)
    places = np.arange(math.prod(shape)).reshape(shape)
    blocks = places.T if by_rows else places
    source = low.reg(value)
    result = low.emit.whole("ub", low.target.grf_bytes)
    for i, block in enumerate(blocks):
        gather(low, low.emit.as_type(source, "ub"), block, into=Reg(result.var, i * SCALE_GROUP, len(block)))
    return result


def _accumulator(low: Lowering, value: ir.Value | None) -> Reg | None:
    """The registers of an accumulator; None if it is zero."""
    found = None if value is None else low.numbers(value)
    if found is None or (isinstance(found, Const) and found.bits == 0):
        return None
    return _aligned(low, low.reg(value) if isinstance(found, Const) else found)


def _packed(low: Lowering, value: ir.Value) -> Reg:
    """An operand in registers; elements of less than 8 bits are packed in bytes."""
    if bit_width(shape_and_element(value.type)[1]) >= 8:
        return low.reg(value)
    return low.emit.in_registers(low.numbers(value))


def _aligned(low: Lowering, reg: Reg) -> Reg:
    """The same numbers, aligned to a register."""
    if low.emit.is_aligned(reg):
        return reg
    result = low.emit.whole(reg.type, reg.count)
    return low.emit.apply("mov", reg.type, reg.count, reg, into=Reg(result.var, 0, reg.count))
