"""`xegpu.dpas` and `xegpu.dpas_mx`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from mlir import ir

from xegpu_py.ir.builtin import bit_width
from xegpu_py.numerics.block_scaled import DEPTH, SCALE_GROUP
from xegpu_py.passes.common.messages import precision_of
from xegpu_py.passes.common.registers import register_type, shape_and_element
from xegpu_py.passes.xegpu_to_visa.lower import Lowering, pattern
from xegpu_py.passes.xegpu_to_visa.values import Const, Reg
from xegpu_py.passes.xegpu_to_visa.vector import gather
from xegpu_py.visa.operands import Raw, Vector
from xegpu_py.visa.program import Instruction


@pattern("xegpu.dpas", "xegpu.dpas_mx")
def dpas(low: Lowering, op: ir.Operation) -> None:
    """One dpas or bdpas."""
    view, emit, scaled = low.require_vc(op), low.emit, op.name == "xegpu.dpas_mx"
    left, right = view.lhs, view.rhs
    (m, n), d_element = shape_and_element(op.results[0].type)
    w, a = (precision_of(shape_and_element(v.type)[1]) for v in (right, left))
    # Operands of dpas have d or df; those of bdpas have bf, hf, or ud for shorter elements.
    operand = (w if w in ("bf", "hf") else "ud") if scaled else "df" if w == "df" else "d"
    name = register_type(d_element)
    lhs, rhs = (emit.as_type(_aligned(low, _packed(low, v)), operand) for v in (left, right))
    acc = _accumulator(low, view.acc)
    result = emit.whole(name, m * n)
    if acc is not None and acc.first == 0 and acc.var.alias is None and acc.var.count != result.var.count:
        result = Reg(emit.variable(name, acc.var.count), 0, m * n)
    depth = DEPTH if scaled else max(low.target.dpas_depths)
    operands: dict[str, Any] = {"W": w, "A": a, "SD": depth, "RC": m, "dst": emit.raw(result)}
    operands |= {"src0": Raw(None) if acc is None else emit.raw(acc), "src1": emit.raw(rhs)}
    if scaled:
        of_rows, of_columns = _scales(low, view.scale_a, by_rows=True), _scales(low, view.scale_b, by_rows=False)
        operands |= {"src2": emit.raw(lhs), "src3": of_columns, "src4": of_rows}
    else:
        operands["src2"] = emit.vector(lhs)
    emit.instructions.append(Instruction("bdpas" if scaled else "dpas", operands, n, where=emit.where))
    low.set(op, result)


def _scales(low: Lowering, value: ir.Value | None, by_rows: bool) -> Vector:
    """The scales of a factor, if it has any. Those of a second block follow half a register after those of the first.

    Args:
        by_rows: whether scales belong to rows of the matrix, instead of columns.
    """
    if value is None:
        return Vector(None)
    shape, _ = shape_and_element(value.type)
    places = np.arange(math.prod(shape)).reshape(shape)
    blocks = places.T if by_rows else places
    source = low.reg(value)
    result = low.emit.whole("ub", low.target.grf_bytes)
    for i, block in enumerate(blocks):
        gather(low, low.emit.as_type(source, "ub"), block, into=Reg(result.var, i * SCALE_GROUP, len(block)))
    return low.emit.vector(result)


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
