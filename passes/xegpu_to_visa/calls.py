"""`func.call`: the instructions that functions without a body stand for."""

from __future__ import annotations

from mlir import ir
from xegpu_py.passes.common.calls import Functions
from xegpu_py.passes.common.registers import unsigned
from xegpu_py.passes.xegpu_to_visa.arith import as_type, result_of
from xegpu_py.passes.xegpu_to_visa.lower import Lowering, Pattern, pattern
from xegpu_py.passes.xegpu_to_visa.values import Reg

from xegpu_py.numerics.formats import TYPES

INTRINSICS: dict[str, Pattern] = {}
"""What lowers calls of functions that are only declared, by name; the name may have a suffix after a dot."""


@pattern("func.call")
def call(low: Lowering, op: ir.Operation) -> None:
    """The instruction that an intrinsic stands for."""
    name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
    rule = next((r for n, r in INTRINSICS.items() if f"{name}.".startswith(f"{n}.")), None)
    if rule is None:
        if len(Functions(op).called(op).regions[0].blocks):
            low.fail(f"calls '{name}'", "xegpu-inline puts into a kernel what it calls")
        known = ", ".join(INTRINSICS)
        low.fail(f"calls '{name}', which has no body", f"the functions that need none are {known}")
    rule(low, op)


_ROUNDED = {"f32": ("f16", ("f32", "i32", "i16")), "f16": ("f8E5M2", ("f16", "i16", "i8"))}
"""What srnd narrows to what, and of which types the random bits may be."""


def srnd(low: Lowering, op: ir.Operation) -> None:
    """Stochastic rounding: of f32 to f16 by the lowest 13 bits of random numbers, of f16 to f8E5M2 by the lowest 8."""
    rule = "; ".join(f"{a} to {b} with random bits of {', '.join(r)}" for a, (b, r) in _ROUNDED.items())
    types = [_element(v.type) for v in (*op.operands, *op.results)]
    if len(types) != 3 or len({_shape(v.type) for v in (*op.operands, *op.results)}) != 1:
        low.fail("takes numbers and random bits of one shape, and gives numbers of that shape")
    source, random, narrow = types
    wanted, allowed = _ROUNDED.get(source, ("", ()))
    if narrow != wanted or random not in allowed:
        low.fail(f"cannot round {source} to {narrow} with random bits of {random}", f"srnd rounds {rule}")
    if "srnd" in low.target.absent:
        low.fail(f"needs srnd, which target {low.target.name} has not", "arith.truncf rounds to nearest even")
    emit = low.emit
    count, _, name = result_of(low, op)
    numbers = low.reg(op.operands[0])
    bits = as_type(low, low.reg(op.operands[1]), unsigned(low.reg(op.operands[1]).type))
    assert isinstance(bits, Reg)
    wide = unsigned(numbers.type)
    if TYPES[bits.type].bytes < TYPES[wide].bytes:
        bits = emit.apply("mov", wide, count, bits)
    low.set(op, emit.apply("srnd", name, count, numbers, emit.as_type(bits, numbers.type), most=16))


def _element(kind: ir.Type) -> str:
    return str(ir.VectorType(kind).element_type if isinstance(kind, ir.VectorType) else kind)


def _shape(kind: ir.Type) -> tuple[int, ...]:
    return tuple(ir.VectorType(kind).shape) if isinstance(kind, ir.VectorType) else ()


INTRINSICS["llvm.genx.srnd"] = srnd
