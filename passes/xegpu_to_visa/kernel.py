"""Lowers one kernel to a `visa.Program`."""

from __future__ import annotations

from typing import Any

from mlir import ir

from xegpu_py.ir.calls import is_print
from xegpu_py.ir.diagnostics import error_at, position_of
from xegpu_py.ir.verifier import walk
from xegpu_py.passes.common.kernels import symbol_of, work_items
from xegpu_py.passes.common.ranges import Limits, Ranges, limits_of
from xegpu_py.passes.xegpu_to_visa.coalesce import coalesce, expand
from xegpu_py.passes.xegpu_to_visa.emit import Emitter
from xegpu_py.passes.xegpu_to_visa.lower import Lowering
from xegpu_py.target import Target
from xegpu_py.visa.accesses import named_by
from xegpu_py.visa.operands import Variable
from xegpu_py.visa.program import PRINT_BUFFER, Program


def lower_kernel(func: ir.Operation, target: Target, limits: Limits | None = None) -> Program:
    """Lower a `gpu.func` that is a kernel.

    Args:
        limits: the limits of its launches.

    Raises:
        DiagnosticError: at the op that cannot be lowered.
    """
    where = position_of(func.location)
    body = func.regions[0].blocks
    name = symbol_of(func)
    if len(body) != 1:
        message = f"kernel '{name}' has unstructured control flow, which cannot be lowered"
        raise error_at(where, message, "run xegpu-lift-cf first, which converts branches to scf ops")
    block = body[0]
    emit = Emitter(target, where=where)
    limits = limits_of(func, target, limits or Limits())
    low = Lowering(target, emit, Ranges(func, limits), limits)
    count = len(ir.FunctionType(ir.TypeAttr(func.attributes["function_type"]).value).inputs)
    for i, argument in enumerate(block.arguments):
        try:
            if i < count:
                low.values[argument] = low.argument(i, argument)
                continue
            from xegpu_py.passes.xegpu_to_visa.memref import shared

            low.values[argument] = shared(low, ir.MemRefType(argument.type))
        except ValueError as e:
            raise error_at(where, str(e)) from None
    if any(op.name in ("cf.assert", "gpu.printf") or is_print(op) for op in walk(func)):
        # Implicit inputs follow the explicit ones.
        low.print_buffer()
    low.block(block)
    emit.where = position_of(list(block.operations)[-1].location)
    emit.emit("ret", no_mask=False)
    fixed = frozenset(i.var for i in emit.inputs)
    merged = coalesce(emit.instructions, target, fixed)
    expand(emit, merged)
    return _program(name, emit, low, merged, where, work_items(func))


def _program(
    name: str, emit: Emitter, low: Lowering, merged: dict[Variable, Variable], where: Any, items: int
) -> Program:
    """The program after coalescing, without unused variables."""
    renamed: dict[Any, Any] = dict(merged)
    for var in emit.variables:
        if var.alias and var.alias[0] in merged:
            renamed[var] = Variable(var.name, var.type, var.count, var.align, (merged[var.alias[0]], var.alias[1]))
    instructions = [i.renamed(renamed) for i in emit.instructions] if renamed else emit.instructions
    used = named_by(instructions)
    inputs = [i for i in emit.inputs if i.var in used or not (i.kind or i.var.name == PRINT_BUFFER)]
    used.update(i.var for i in inputs)
    all_variables = dict.fromkeys(renamed.get(v, v) for v in emit.variables)
    variables = [v for v in all_variables if v in used]
    variables.sort(key=lambda v: v.alias is not None)
    attributes: dict[str, int | str] = {"Target": "cm", "SimdSize": 16 if low.target.grf_bytes == 64 else 8}
    if items:
        attributes = {"Target": "3d", "SimdSize": items}
    if low.slm_bytes:
        attributes["SLMSize"] = -(-low.slm_bytes // 1024)
    if low.barriers:
        attributes["NBarrierCnt"] = low.barriers
    return Program(
        name,
        tuple(variables),
        tuple(p for p in emit.predicates if p in used),
        tuple(inputs),
        dict(sorted(attributes.items())),
        tuple(instructions),
        where,
    )
