"""`xegpu.dpas` and `xegpu.dpas_mx`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from mlir import ir
from xegpu_py.dialects.xegpu.matrix import MAX_REPEAT_COUNT
from xegpu_py.passes.common.limits import scaled_problem
from xegpu_py.passes.common.messages import precision_of
from xegpu_py.passes.common.registers import register_type, shape_and_element
from xegpu_py.passes.xegpu_to_visa.lower import Lowering, pattern
from xegpu_py.passes.xegpu_to_visa.values import Const, Reg
from xegpu_py.passes.xegpu_to_visa.vector import gather

from xegpu_py.ir.builtin import bit_width
from xegpu_py.numerics.block_scaled import COLUMNS, DEPTH, ROWS, SCALE_GROUP, scaled_depth
from xegpu_py.numerics.dpas import ops_per_channel
from xegpu_py.numerics.formats import TYPES
from xegpu_py.visa.operands import Raw, Vector
from xegpu_py.visa.program import Instruction


@pattern("xegpu.dpas")
def dpas(low: Lowering, op: ir.Operation) -> None:
    """One instruction for each systolic depth's worth of K."""
    low.require_vc(op)
    view, emit = op.opview, low.emit
    a_shape, a_element = shape_and_element(view.lhs.type)
    b_element = shape_and_element(view.rhs.type)[1]
    (m, n), d_element = shape_and_element(view.result.type)
    w, a = precision_of(b_element), precision_of(a_element)
    if n not in low.target.dpas_exec_sizes:
        low.fail(f"has {n} columns, but target {low.target.name} multiplies {low.target.dpas_exec_size}")
    if m > MAX_REPEAT_COUNT:
        low.fail(f"has {m} rows, but the repeat count is at most {MAX_REPEAT_COUNT}", "xegpu-legalize splits it")
    for precision in (w, a):
        if precision not in low.target.dpas_precisions:
            low.fail(f"of {precision} is not there on target {low.target.name}")
    depth = max(low.target.dpas_depths)
    k, each = math.prod(a_shape) // m, depth * ops_per_channel(w, a)
    if k % each:
        low.fail(f"multiplies {k} elements along K, but {w} x {a} takes {each} at a time")
    operand = "df" if w == "df" else "d"
    name = register_type(d_element)
    lhs, rhs = (emit.as_type(_aligned(low, _packed(low, v)), operand) for v in (view.lhs, view.rhs))
    acc = _accumulator(low, view.acc)
    result = emit.whole(name, m * n)
    if acc is not None and acc.first == 0 and acc.var.alias is None and acc.var.count != result.var.count:
        result = Reg(emit.variable(name, acc.var.count), 0, m * n)
    steps = k // each
    for step in range(steps):
        piece = lhs if steps == 1 else _columns_of(low, lhs, m, k, step * each, each, bit_width(a_element))
        b_first = step * each * n * bit_width(b_element) // 8 // TYPES[operand].bytes
        operands = _operands(low, w, a, depth, m, result, acc) | {
            "src1": emit.raw(rhs, b_first),
            "src2": emit.vector(piece),
        }
        emit.instructions.append(Instruction("dpas", operands, n, where=emit.where))
        acc = result
    low.set(op, result)


@pattern("xegpu.dpas_mx")
def dpas_mx(low: Lowering, op: ir.Operation) -> None:
    """One bdpas."""
    low.require_vc(op)
    view, emit = op.opview, low.emit
    a_shape, a_element = shape_and_element(view.lhs.type)
    (m, n), d_element = shape_and_element(view.result.type)
    w, a = precision_of(shape_and_element(view.rhs.type)[1]), precision_of(a_element)
    problem = scaled_problem(low.target)
    if problem:
        low.fail(*problem)
    if (m, n, math.prod(a_shape) // m) != (ROWS, COLUMNS, scaled_depth(w, a)):
        wanted = f"{ROWS} rows, {COLUMNS} columns and {scaled_depth(w, a)} elements along K"
        low.fail(f"is one bdpas if it has {wanted}", "xegpu-legalize splits it")
    # Operands of bf and hf have these types; those of shorter elements have ud.
    operand = w if w in ("bf", "hf") else "ud"
    lhs, rhs = (emit.as_type(_aligned(low, _packed(low, v)), operand) for v in (view.lhs, view.rhs))
    acc = _accumulator(low, view.acc)
    result = emit.whole(register_type(d_element), m * n)
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
    start = reg.var.root[1] + reg.first * reg.format.bytes
    if start % low.target.grf_bytes == 0 and reg.var.root[0].align in ("GRF", "GRFx2"):
        return reg
    result = low.emit.whole(reg.type, reg.count)
    return low.emit.apply("mov", reg.type, reg.count, reg, into=Reg(result.var, 0, reg.count))


def _columns_of(low: Lowering, lhs: Reg, m: int, k: int, first: int, count: int, bits: int) -> Reg:
    """Some columns of a row-major matrix, as contiguous rows."""
    row, part, skip = k * bits // 32, count * bits // 32, first * bits // 32
    result = low.emit.whole("d", m * part)
    for r in range(m):
        source = Reg(lhs.var, lhs.first + r * row + skip, part)
        low.emit.apply("mov", "d", part, source, into=Reg(result.var, r * part, part))
    return result
