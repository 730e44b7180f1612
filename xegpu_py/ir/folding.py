"""Functions that upstream folds with the host's C library, whose bits are not those of docs/numerics.md.

MLIR's folders compute `math.exp` and similar functions of constants by the host's `expf`: a result depends on the
machine that compiles, and differs from what an engine computes. While a pass of upstream's runs, ops whose operands may
become constants are therefore hidden: each is a `builtin.unrealized_conversion_cast` with the op's name and attributes.
The cast has no side effects either, and so is still moved, shared and removed.

Comparisons by the predicates `true` and `false` are replaced by constants: where a converted integer is compared with a
constant, MLIR 22's canonicalization has no case for them and ends the process (`CmpFIntToFPConst` of ArithOps.cpp).

A cast of an index to a narrower integer and back loses bits, but MLIR's canonicalization replaces the two casts by the
index if both are `arith.index_cast`, or both `arith.index_castui` (`IndexCastOfIndexCast` of ArithCanonicalization.td).
Both ops truncate alike, so the cast to the integer is written as the op with which no cast back combines.

An integer that is converted to a float, which is rounded to a narrower format, is rounded twice. MLIR's
canonicalization converts it to the narrower format at once (`TruncFSIToFPPattern` and `TruncFUIToFPPattern` of
ArithCanonicalization.td), with other results, unless the `arith.truncf` names its rounding mode. It does so while a
pass of upstream's runs.

MLIR does not always find out which dimensions a `memref.subview` drops, and then ends the process
(`SubViewOp::getDroppedDims` of MemRefOps.cpp). Such views with dynamic sizes or strides are hidden as well.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from xegpu_py.ir.numbers import NEAREST, ROUNDING, rounding_mode

_EXACT = frozenset(
    f"math.{name}"
    for name in ("absf", "absi", "ceil", "copysign", "ctlz", "ctpop", "cttz", "floor", "fma", "ipowi", "isfinite",
                 "isinf", "isnan", "isnormal", "round", "roundeven", "sqrt", "trunc")
)  # fmt: skip
"""Functions whose results are exact or rounded once, by folders too."""
_NAME = "xegpu_py.hidden"
_CAST = "builtin.unrealized_conversion_cast"
_ONE_OPERAND = ("vector.broadcast", "vector.splat", "vector.shape_cast", "vector.transpose", "vector.extract")


def is_inexact(name: str) -> bool:
    """Whether upstream's folder of an op may give other bits than the op's definition."""
    return name.startswith("math.") and name not in _EXACT


_ALWAYS = {0: False, 15: True}
"""The predicates of `arith.cmpf` that do not depend on the operands, and what they give."""


def decide(comparisons: list[ir.Operation]) -> None:
    """Replace ops `arith.cmpf` whose predicate is `true` or `false` by constants."""
    for op in comparisons:
        always = _ALWAYS.get(ir.IntegerAttr(op.attributes["predicate"]).value)
        if always is None:
            continue
        kind = op.results[0].type
        bit = ir.BoolAttr.get(always)
        with op.location, ir.InsertionPoint(op):
            value = ir.DenseElementsAttr.get_splat(kind, bit) if isinstance(kind, ir.VectorType) else bit
            op.results[0].replace_all_uses_with(arith.constant(kind, value))
        op.erase()


_CASTS = ("arith.index_cast", "arith.index_castui")


def is_index_cast(name: str) -> bool:
    """Whether an op casts between indices and integers."""
    return name in _CASTS


def keep_truncations(casts: list[ir.Operation]) -> None:
    """Write casts of indices to integers of less than 64 bits so that casts back do not cancel them.

    Args:
        casts: the ops for which `is_index_cast` holds.
    """
    back: dict[ir.Type, set[str]] = {}
    narrowing = []
    for op in casts:
        given, made = op.operands[0].type, op.results[0].type
        element = made.element_type if isinstance(made, ir.VectorType) else made
        if isinstance(element, ir.IndexType):
            back.setdefault(given, set()).add(op.name)
        elif isinstance(element, ir.IntegerType) and element.width < 64:
            narrowing.append(op)
    for op in narrowing:
        made = op.results[0].type
        names = back.get(made)
        if names is None or op.name not in names or _is_cast_back(op):
            continue
        others = [name for name in _CASTS if name not in names]
        with op.location, ir.InsertionPoint(op):
            if others:
                cast = ir.Operation.create(others[0], [made], [op.operands[0]])
            else:
                whole: ir.Type = ir.IntegerType.get_signless(64)
                if isinstance(made, ir.VectorType):
                    whole = ir.VectorType.get(made.shape, whole, scalable=made.scalable_dims)
                wide = ir.Operation.create("arith.index_cast", [whole], [op.operands[0]])
                cast = ir.Operation.create("arith.trunci", [made], [wide.result])
        op.results[0].replace_all_uses_with(cast.result)
        op.erase()


def _is_cast_back(op: ir.Operation) -> bool:
    """Whether a cast makes the integer that its index comes from, so that no bits are lost."""
    source = op.operands[0].owner
    if isinstance(source, ir.Block) or source.name != op.name:
        return False
    return bool(source.operands[0].type == op.results[0].type)


class _Constants:
    """Tells which values may become constants by folding."""

    def __init__(self) -> None:
        self.known: dict[ir.Value, bool] = {}

    def may_be(self, value: ir.Value) -> bool:
        """Whether folding may replace a value by a constant; in doubt it may."""
        # Not by recursion: chains of ops are as long as a kernel.
        pending = [value]
        while pending:
            current = pending[-1]
            found = self._of(current)
            if isinstance(found, list):
                unknown = next((v for v in found if v not in self.known), None)
                if unknown is not None and all(self.known.get(v, True) for v in found):
                    pending.append(unknown)
                    continue
                found = unknown is None and all(self.known[v] for v in found)
            self.known[current] = found
            pending.pop()
        return self.known[value]

    def _of(self, value: ir.Value) -> bool | list[ir.Value]:
        """Whether folding may replace a value; or a list of values, all of which must be replaceable for this."""
        element = value.type.element_type if isinstance(value.type, ir.VectorType) else value.type
        if isinstance(element, (ir.IntegerType, ir.IndexType)):
            # Of integers, x - x and the like are constants, and so are those whose range is one number.
            return True
        owner = value.owner
        if isinstance(owner, ir.Block):
            # Arguments of loops may become constants; those of functions do not.
            return owner.owner.operation.name not in ("gpu.func", "func.func")
        name = owner.name
        if name == _CAST and _NAME in owner.attributes:
            return False
        if name.startswith(("arith.", "math.")) and name not in ("arith.select", "arith.constant"):
            return list(owner.operands)
        if name in _ONE_OPERAND:
            return [owner.operands[0]]
        return not name.startswith(("xegpu.load", "xegpu.dpas", "xetile.load", "xetile.tile_mma", "memref.load",
                                    "vector.load", "vector.transfer_read", "gpu."))  # fmt: skip


def _attributes(op: ir.Operation) -> dict[str, ir.Attribute]:
    return {name: op.attributes[name] for name in op.attributes}


def drops_dimensions(op: ir.Operation) -> bool:
    """Whether an op `memref.subview` drops dimensions of which upstream may not find out which ones they are."""
    if ir.MemRefType(op.operands[0].type).rank == ir.MemRefType(op.results[0].type).rank:
        return False
    _, _, sizes, strides = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    return bool(sizes + strides)


def hide(functions: list[ir.Operation], views: list[ir.Operation], roundings: list[ir.Operation]) -> bool:
    """Hide views, and functions whose operands may become constants, and name rounding modes.

    Args:
        functions: ops for which `is_inexact` holds, in their order.
        views: ops `memref.subview` for which `drops_dimensions` holds.
        roundings: ops `arith.truncf`.

    Returns:
        Whether something was changed that `show` changes back.
    """
    for op in roundings:
        if ROUNDING not in op.attributes:
            op.attributes[ROUNDING] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), NEAREST)
    constants = _Constants()
    hidden = views + [op for op in functions if all(constants.may_be(v) for v in op.operands)]
    for op in hidden:
        _hide(op)
    return bool(hidden or roundings)


def _hide(op: ir.Operation) -> None:
    kinds = [r.type for r in op.results]
    operands = list(op.operands)
    # A cast between equal types folds.
    operands += operands[:1] if [v.type for v in operands] == kinds else []
    held = {_NAME: ir.StringAttr.get(f"{len(op.operands)} {op.name}")}
    held |= _attributes(op)
    with op.location, ir.InsertionPoint(op):
        cast = ir.Operation.create(_CAST, kinds, operands, held)
    for old, new in zip(op.results, cast.results):
        old.replace_all_uses_with(new)
    op.erase()


def show(root: ir.Operation) -> None:
    """Bring hidden ops back, and let ops that round to nearest even not say so."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == _CAST and _NAME in op.attributes:
            found.append(op)
        elif op.name == "arith.truncf" and rounding_mode(op) == NEAREST and ROUNDING in op.attributes:
            del op.attributes[ROUNDING]
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    for cast in found:
        held = _attributes(cast)
        count, name = ir.StringAttr(held.pop(_NAME)).value.split()
        with cast.location, ir.InsertionPoint(cast):
            op = ir.Operation.create(name, [r.type for r in cast.results], list(cast.operands)[: int(count)], held)
        for old, new in zip(cast.results, op.results):
            old.replace_all_uses_with(new)
        cast.erase()
