"""Unroll-and-jam of loops in host code that access columns of matrices.

Programs compute expected results on the host, most often by three nested loops: for each element of a matrix product, a
sum along a row of A and a column of B. Neighbours in a column are far apart in memory, so each step misses the caches.
The loop around the sum is unrolled and jammed, so that a step accesses neighbours in a row. The order of each sum, and
with it every bit, does not change.
"""

from __future__ import annotations

from mlir import ir
from mlir.passmanager import PassManager

from xegpu_py.ir.verifier import walk
from xegpu_py.passes.common.values import constant_of, defining_op

TOGETHER = (32, 16, 8, 4)
"""Unroll factors to try, largest first."""

_PURE = ("arith", "math", "index")
_MARK = "xegpu.jam"

_SCHEDULE = """
module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @__transform_main(%root: !transform.any_op {{transform.readonly}}) {{
{steps}    transform.yield
  }}
}}
"""
_STEP = """\
    %{factor} = transform.structured.match ops{{["scf.for"]}} attributes{{{mark} = {factor} : i64}} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.loop.unroll_and_jam %{factor} {{factor = {factor}}} : !transform.any_op
"""


def jam_loops(module: ir.Module) -> ir.Module:
    """Unroll and jam the loops of a module where this is profitable and changes no value."""
    ops = list(walk(module.operation))
    # Memrefs of different element types are assumed to be different memory, which these ops could violate.
    if any(op.name == "memref.view" or op.name.startswith("llvm.") for op in ops):
        return module
    found = set()
    for op in ops:
        factor = _together(op) if op.name == "scf.for" else None
        if factor:
            op.attributes[_MARK] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, op.context), factor)
            found.add(factor)
    if not found:
        return module
    schedule = _SCHEDULE.format(steps="".join(_STEP.format(factor=factor, mark=_MARK) for factor in sorted(found)))
    # MLIR's transform interpreter loads upstream's xegpu, which cannot coexist with this project's.
    with ir.Context():
        made = ir.Module.parse(module.operation.get_asm(enable_debug_info=True))
        steps = ir.Module.parse(schedule)
        sequence = steps.body.operations[0].operation.clone(ir.InsertionPoint(made.body))
        made.operation.attributes["transform.with_named_sequence"] = ir.UnitAttr.get()
        PassManager.parse("builtin.module(transform-interpreter)").run(made.operation)
        sequence.erase()
        del made.operation.attributes["transform.with_named_sequence"]
        for op in walk(made.operation):
            if _MARK in op.attributes:
                del op.attributes[_MARK]
        text = made.operation.get_asm(enable_debug_info=True)
    with module.context:
        return ir.Module.parse(text)


def _together(loop: ir.Operation) -> int | None:
    """The unroll factor of a loop; None if unrolling is not known to be valid, or not profitable."""
    count = _trip_count(loop)
    factor = next((n for n in TOGETHER if count and count % n == 0), None)
    if factor is None or len(loop.operands) > 3:
        return None
    block = loop.regions[0].blocks[0]
    own = [op.operation for op in block.operations]
    inner = [op for outer in own if outer.name == "scf.for" for op in walk(outer)]
    stores = [op for op in own if op.name == "memref.store"]
    if not inner or not stores:
        return None
    loads = [op for op in (*own, *inner) if op.name == "memref.load"]
    allowed = {"memref.load", "scf.for", "scf.yield"}
    if not all(op.name in allowed or _is_pure(op) for op in inner):
        return None
    if not all(op.name in allowed or op.name == "memref.store" or _is_pure(op) for op in own):
        return None
    iteration = block.arguments[0]
    for store in stores:
        _, to, *indices = store.operands
        if not any(index == iteration for index in indices):
            return None
        for load in loads:
            source, *at = load.operands
            if not _are_apart(source, to) and not (source == to and at == indices and load in own):
                return None
        for other in stores:
            _, second, *at = other.operands
            if not _are_apart(second, to) and not (second == to and at == indices):
                return None
    return factor


def _is_pure(op: ir.Operation) -> bool:
    return op.name.partition(".")[0] in _PURE and not op.regions


def _are_apart(a: ir.Value, b: ir.Value) -> bool:
    """Whether two memrefs are known to share no memory."""
    if ir.MemRefType(a.type).element_type != ir.MemRefType(b.type).element_type:
        return True
    first, second = _origin(a), _origin(b)
    return first is not None and second is not None and first != second


def _origin(memref: ir.Value) -> str | None:
    """The allocation or global that a memref is a view of; None if it is not known."""
    op = defining_op(memref)
    if op is None:
        return None
    if op.name == "memref.get_global":
        return str(op.attributes["name"])
    return f"allocation {hash(op)}" if op.name == "memref.alloc" else None


def _trip_count(loop: ir.Operation) -> int | None:
    bounds = [constant_of(v) for v in list(loop.operands)[:3]]
    start, end, step = bounds
    if start is None or end is None or not step or step < 1 or end <= start:
        return None
    return -(-(end - start) // step)
