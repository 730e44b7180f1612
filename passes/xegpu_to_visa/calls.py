"""`func.call` of intrinsics: functions without a body that are lowered to instructions."""

from __future__ import annotations

import re

from mlir import ir

from xegpu_py.ir.calls import INLINE, PRINT, TEXT
from xegpu_py.numerics.formats import TYPES
from xegpu_py.passes.common.calls import Functions
from xegpu_py.passes.common.registers import unsigned
from xegpu_py.passes.common.values import element_of, shape_of
from xegpu_py.passes.xegpu_to_visa.arith import result_of
from xegpu_py.passes.xegpu_to_visa.checks import print_record
from xegpu_py.passes.xegpu_to_visa.emit import const
from xegpu_py.passes.xegpu_to_visa.lower import Lowering, Pattern, pattern
from xegpu_py.passes.xegpu_to_visa.values import Numbers, Reg
from xegpu_py.visa.instructions import INSTRUCTIONS

INTRINSICS: dict[str, Pattern] = {}
"""The rules of intrinsics by name. A function's name may have a suffix after a dot."""


@pattern("func.call")
def call(low: Lowering, op: ir.Operation) -> None:
    """Lower a call of an intrinsic."""
    name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
    rule = next((r for n, r in INTRINSICS.items() if f"{name}.".startswith(f"{n}.")), None)
    if rule is None:
        if len(Functions(op).called(op).regions[0].blocks):
            low.fail(f"calls '{name}'", "run xegpu-inline first")
        known = ", ".join(INTRINSICS)
        low.fail(f"calls undefined function '{name}'", f"functions that need no body are {known}")
    rule(low, op)


_ROUNDED = {"f32": ("f16", ("f32", "i32", "i16")), "f16": ("f8E5M2", ("f16", "i16", "i8"))}
"""The source and result types of srnd, and the types of its random bits."""


def srnd(low: Lowering, op: ir.Operation) -> None:
    """Stochastic rounding: of f32 to f16 by the lowest 13 bits of random numbers, of f16 to f8E5M2 by the lowest 8."""
    rule = "; ".join(f"{a} to {b} with random bits of {', '.join(r)}" for a, (b, r) in _ROUNDED.items())
    types = [str(element_of(v)) for v in (*op.operands, *op.results)]
    if len(types) != 3 or len(set(map(shape_of, (*op.operands, *op.results)))) != 1:
        low.fail("values, random bits and result must have the same shape")
    source, random, narrow = types
    wanted, allowed = _ROUNDED.get(source, ("", ()))
    if narrow != wanted or random not in allowed:
        low.fail(f"cannot round {source} to {narrow} with random bits of {random}", f"srnd rounds {rule}")
    if "srnd" in low.target.absent:
        low.fail(
            f"requires srnd, which target '{low.target.name}' does not support", "arith.truncf rounds to nearest even"
        )
    emit = low.emit
    count, _, name = result_of(low, op)
    numbers = low.reg(op.operands[0])
    bits = emit.as_unsigned(low.reg(op.operands[1]))
    wide = unsigned(numbers.type)
    if TYPES[bits.type].bytes < TYPES[wide].bytes:
        bits = emit.apply("mov", wide, count, bits)
    low.set(op, emit.apply("srnd", name, count, numbers, emit.as_type(bits, numbers.type), most=16))


INTRINSICS["llvm.genx.srnd"] = srnd


def printed(low: Lowering, op: ir.Operation) -> None:
    """A record for each lane of the mask, the first operand."""
    mask, *values = op.operands
    text = ir.StringAttr(op.attributes[TEXT]).value
    print_record(low, text, [str(element_of(v)) for v in values], values, shape_of(mask)[0], mask)


INTRINSICS[PRINT] = printed


_OPERAND = re.compile(r"(?P<sign>-?)(?P<name>\$\d+|%\w+|[\w.+]+):(?P<type>\w+)")
"""An operand of `inline_visa` with its type: the result or an argument, a name, or a number."""


def inline(low: Lowering, op: ir.Operation) -> None:
    """Emit instructions given as text for all elements."""
    count, _, name = result_of(low, op)
    held: dict[str, Reg] = {}
    for i, value in enumerate(op.operands):
        held[f"${i + 1}"] = low.reg(value)
    for line in ir.StringAttr(op.attributes[TEXT]).value.split("\n"):
        if line.strip():
            _instruction(low, line.replace(",", " ").split(), held, count)
    if "$0" not in held:
        low.fail("has no instruction that writes $0")
    low.set(op, low.emit.as_type(held["$0"], name))


_ACCESS = (
    "its message would be sent by each subgroup that has a part, with addresses of its own: see load, store and tiles"
)
_REFUSED = {
    "load": _ACCESS,
    "store": _ACCESS,
    "atomic": "subgroups that share a part would each update it: see atomic_add, atomic_cas and the others",
    "sync": "it has no elements: see barrier, fence and named_barrier",
    "control": "a jump would leave the ops around it: the kernel's own if, while and for become jumps",
    "dpas": "its operands are blocks of matrices: see dot and dot_scaled",
}
"""The reason why `inline_visa` refuses a category of instructions, and the alternative."""


def _instruction(low: Lowering, words: list[str], held: dict[str, Reg], count: int) -> None:
    name, _, suffix = words[0].partition(".")
    spec = INSTRUCTIONS.get(name)
    found = spec or INSTRUCTIONS.get(words[0])
    if found is not None and found.category in _REFUSED:
        low.fail(f"cannot take '{words[0]}': it works on {count} elements, one by one", _REFUSED[found.category])
    if spec is None or spec.category not in ("alu", "math") or suffix not in ("", "sat"):
        low.fail(f"has no instruction '{words[0]}'", "arithmetic instructions of vISA are taken, with .sat or without")
    operands = [_OPERAND.fullmatch(w) for w in words[1:]]
    wanted = [slot for slot in spec.slots if slot.name == "dst" or slot.name.startswith("src")]
    if len(operands) != len(wanted) or None in operands:
        low.fail(
            f"cannot take '{' '.join(words)}'", f"'{name}' has {len(wanted)} operands, such as $0:ud, %t:f and 3:d"
        )
    target, *sources = (m for m in operands if m)
    for match, slot in zip((target, *sources), wanted):
        if match["type"] not in slot.types:
            low.fail(f"'{name}' has no operand of type {match['type']}", f"it has {', '.join(slot.types)}")
    numbers = [_number(low, m, held) for m in sources]
    signs = [m["sign"] for m in sources]
    made = low.emit.apply(name, target["type"], count, *numbers, modifiers=signs, saturate=suffix == "sat")
    held[target["name"]] = made


def _number(low: Lowering, match: re.Match[str], held: dict[str, Reg]) -> Numbers:
    name, kind = match["name"], match["type"]
    if name in held:
        if held[name].format.bytes != TYPES[kind].bytes:
            low.fail(f"cannot take {name}, of type {held[name].type}, as {kind}", "the widths must be the same")
        return low.emit.as_type(held[name], kind)
    try:
        return const(float(name) if TYPES[kind].is_float else int(name, 0), kind)
    except ValueError:
        low.fail(
            f"knows no operand '{name}'",
            "operands are $0 for the result, $1, ..., names that begin with %, and numbers",
        )


INTRINSICS[INLINE] = inline
