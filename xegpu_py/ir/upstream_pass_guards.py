"""Guards against upstream's passes, whose folders do not follow the written numerics."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product
from math import prod
from typing import TYPE_CHECKING

from mlir import ir
from msgspec import Struct, field

from xegpu_py.deferred import deferred
from xegpu_py.ir.builtin import NEAREST, ROUNDING, CombiningKind, is_float, number_attribute, rounding_mode
from xegpu_py.ir.element_movement import WHOLE
from xegpu_py.ir.module import walk

if TYPE_CHECKING:
    from mlir.dialects import arith, vector
else:
    arith = deferred("mlir.dialects.arith")
    vector = deferred("mlir.dialects.vector")

# Guards of ops that upstream's passes would fold to other bits than those of docs/numerics.md.
#
# `prepare` changes the IR before a pass of upstream's runs, and `show` brings back what it has hidden. A hidden op is a
# `builtin.unrealized_conversion_cast` with the op's name and attributes. The cast has no side effects either, and so is
# still moved, shared and removed. `test_folding.py` compares constants with numbers known at run time for all ops.
#
# MLIR's folders compute `math.exp` and similar functions of constants by the host's `expf`: a result depends on the
# machine that compiles, and differs from what an engine computes. Such functions are hidden if their operands may
# become constants.
#
# Folders keep sign and payload of a constant NaN, and give NaN for `arith.maxnumf` of a number and a signaling NaN.
# Where a constant may be another NaN than the canonical one, all arithmetic of floats on constants is hidden.
#
# A shift of a constant by the width or more becomes zero, or minus one. The lowest bits of the distance, which alone
# count by our rules, are therefore written as such.
#
# The mistakes of `GUARDS` are rewritten before a pass, or their operands are hidden from it.


class Guard(Struct, frozen=True):
    """A mistake of upstream's passes around which `prepare` works.

    Attributes:
        reproducer: a file of docs/upstream-bugs/folders. A test fails when the installed release does not need the
            guard; docs/upstream-bugs says which releases do.
        where: the function of MLIR that errs.
        fixed: the first release of LLVM without the mistake; None if none is known.
    """

    reproducer: str
    where: str
    fixed: str | None = None


GUARDS = (
    Guard("loop-with-wide-bounds", "constantTripCount of StaticValueUtils.cpp"),
    Guard("power-of-truth-values", "IPowIOp::fold of MathOps.cpp"),
    Guard("comparison-that-is-always-true", "CmpFIntToFPConst of ArithOps.cpp"),
    Guard("cast-of-index-and-back", "IndexCastOfIndexCast of ArithCanonicalization.td"),
    Guard("integer-rounded-twice", "TruncFSIToFPPattern of ArithCanonicalization.td"),
    Guard("dropped-dimensions", "SubViewOp::getDroppedDims of MemRefOps.cpp"),
    Guard("dimension-out-of-rank", "ShapedType::isDynamicDim, of a dimension that is not checked"),
    Guard("masked-reduction", "ElideSingleElementReduction of VectorOps.cpp"),
    Guard("masked-reduction-of-rows", "ElideUnitDimsInMultiDimReduction of VectorOps.cpp"),
    Guard("reduction-of-no-dimension", "MultiDimReductionOp::fold of VectorOps.cpp"),
    Guard("equal-op-under-mask", "CSE, which compares ops and their attributes only"),
    Guard("masked-gather", "FoldContiguousGather of VectorOps.cpp"),
    Guard("overlapping-inserts", "foldExtractStridedOpFromInsertChain of VectorOps.cpp"),
    Guard("slice-without-all-offsets", "foldExtractStridedOpFromInsertChain of VectorOps.cpp"),
    Guard("sum-after-contraction", "CanonicalizeContractAdd of VectorOps.cpp"),
)
"""The mistakes of MLIR itself. That functions and NaNs fold by other rules than those of docs/numerics.md is none."""

_EXACT = frozenset(
    f"math.{name}"
    for name in ("absf", "absi", "ceil", "clampf", "copysign", "ctlz", "ctpop", "cttz", "floor", "fma", "ipowi",
                 "isfinite", "isinf", "isnan", "isnormal", "round", "roundeven", "sqrt", "trunc")
)  # fmt: skip
"""Functions whose results are exact or rounded once, by folders too."""

_KEEPS_NAN = (
    "arith.addf", "arith.divf", "arith.extf", "arith.maximumf", "arith.maxnumf", "arith.minimumf", "arith.minnumf",
    "arith.mulf", "arith.remf", "arith.scaling_extf", "arith.scaling_truncf", "arith.sitofp", "arith.subf",
    "arith.truncf", "math.ceil", "math.clampf", "math.floor", "math.fma", "math.round", "math.roundeven", "math.sqrt",
    "math.trunc",
)  # fmt: skip
"""Ops that give the canonical NaN, but may fold to another one."""

_CHANGES_NAN = ("arith.negf", "arith.bitcast", "math.copysign", "vector.bitcast")
"""Ops that may make another NaN of the canonical one, or of an integer."""

_SHIFTS = ("arith.shli", "arith.shrsi", "arith.shrui", "index.shl", "index.shrs", "index.shru")

_CASTS = ("arith.index_cast", "arith.index_castui")

_EXTENSIONS = {"arith.extsi": "arith.index_cast", "arith.extui": "arith.index_castui"}
"""The ops that extend integers, each with the cast to an index with which it combines."""

_VIEW, _DIM, _LOOP = "memref.subview", "memref.dim", "scf.for"

_MASK, _REDUCTION, _CONTRACTION, _SUM = "vector.mask", "vector.multi_reduction", "vector.contract", "arith.addf"

_CONSTANT, _TRUNCATION = "arith.constant", "arith.truncf"

_FROM_INTEGERS = ("arith.sitofp", "arith.uitofp")

_EXTRACT, _INSERT = "vector.extract_strided_slice", "vector.insert_strided_slice"

_NAME = "xegpu_py.hidden"

_CAST = "builtin.unrealized_conversion_cast"

_ONE_OPERAND = (*WHOLE, "vector.shape_cast", "vector.extract",
                "arith.extsi", "arith.extui", "arith.trunci", "arith.bitcast", "vector.bitcast", *_CASTS)  # fmt: skip

_NEVER_FOLD = ("cse", "symbol-dce", "strip-debuginfo")
"""Upstream's passes that are known to fold no ops."""

_MERGES = re.compile(r"\bcse\b|pipeline")
"""Upstream's passes that may merge equal ops."""

_MASKED = "xegpu_py.masked"
"""The attribute of ops under a `vector.mask` while a pass runs that may merge them with others."""

_LOWERS = re.compile(r"\b(?:arith|index|math)\b|^convert-(?!.*-to-(?:[a-z]+-)?(?:loops|scf|cf|gpu)$)")
"""Upstream's passes that lower arithmetic, which must not be hidden from them. Those that only make loops fold it."""

_CANONICALIZES = re.compile(r"canonicalize|^inline$|pipeline")
"""Upstream's passes that may run the canonicalization patterns of ops. Others may not know rounding modes."""

_ALWAYS = {0: False, 15: True}
"""The predicates of `arith.cmpf` that do not depend on the operands, and what they give."""


def _decide(comparisons: list[ir.Operation]) -> None:
    """Replace ops `arith.cmpf` whose predicate is `true` or `false` by constants."""
    for op in comparisons:
        always = _ALWAYS.get(ir.IntegerAttr(op.attributes["predicate"]).value)
        if always is None:
            continue
        result_type = op.results[0].type
        bit = ir.BoolAttr.get(always)
        with op.location, ir.InsertionPoint(op):
            value = ir.DenseElementsAttr.get_splat(result_type, bit) if isinstance(result_type, ir.VectorType) else bit
            op.results[0].replace_all_uses_with(arith.constant(result_type, value))
        op.erase()


def _keep_truncations(casts: list[ir.Operation], extensions: list[ir.Operation]) -> None:
    """Write truncating casts of indices so that casts back do not cancel them.

    Args:
        casts: ops that cast between indices and integers.
        extensions: ops that extend integers.
    """
    back: dict[ir.Type, set[str]] = {}
    narrowing = []
    for op in casts:
        source_type, result_type = op.operands[0].type, op.results[0].type
        element = result_type.element_type if isinstance(result_type, ir.VectorType) else result_type
        if isinstance(element, ir.IndexType):
            back.setdefault(source_type, set()).add(op.name)
        elif isinstance(element, ir.IntegerType) and element.width < 64:
            narrowing.append(op)
    # The last of several extensions first: those that come before it may meet the same cast.
    for op in reversed(extensions if narrowing else []):
        if _EXTENSIONS[op.name] in back.get(op.results[0].type, ()):
            back.setdefault(op.operands[0].type, set()).add(_EXTENSIONS[op.name])
    for op in narrowing:
        result_type = op.results[0].type
        names = back.get(result_type)
        if names is None or op.name not in names or _is_cast_back(op):
            continue
        other_casts = [name for name in _CASTS if name not in names]
        with op.location, ir.InsertionPoint(op):
            if other_casts:
                cast = ir.Operation.create(other_casts[0], [result_type], [op.operands[0]])
            else:
                i64: ir.Type = ir.IntegerType.get_signless(64)
                if isinstance(result_type, ir.VectorType):
                    i64 = ir.VectorType.get(result_type.shape, i64, scalable=result_type.scalable_dims)
                wide = ir.Operation.create("arith.index_cast", [i64], [op.operands[0]])
                cast = ir.Operation.create("arith.trunci", [result_type], [wide.result])
        op.results[0].replace_all_uses_with(cast.result)
        op.erase()


def _unmask_reductions(masks: list[ir.Operation], reductions: list[ir.Operation]) -> list[ir.Operation]:
    """Write reductions of single elements without a `vector.mask`, and those along no dimension as elementwise ops.

    Args:
        masks: ops `vector.mask`.
        reductions: ops `vector.multi_reduction`, to which those without a mask are added.

    Returns:
        The gathers under the masks.
    """
    gathers = []
    for mask in masks:
        op = mask.regions[0].blocks[0].operations[0].operation
        if op.name == "vector.gather":
            gathers.append(op)
        if op.name not in (_REDUCTION, "vector.reduction") or any(size != 1 for size in _reduced_sizes(op)):
            continue
        source, *accumulators = op.operands
        with op.location, ir.InsertionPoint(mask):
            identity = ir.DenseElementsAttr.get_splat(
                source.type, CombiningKind.of(op).identity(source.type.element_type)
            )
            masked = arith.select(mask.operands[0], source, arith.constant(source.type, identity))
            plain = ir.Operation.create(op.name, [op.results[0].type], [masked, *accumulators], _attributes(op))
        if op.name == _REDUCTION:
            reductions.remove(op)
            reductions.append(plain)
        mask.results[0].replace_all_uses_with(plain.result)
        mask.erase()
    for op in [op for op in reductions if not _reduced_sizes(op)]:
        with op.location, ir.InsertionPoint(op):
            source, total = op.operands
            op.results[0].replace_all_uses_with(CombiningKind.of(op).combine(total, source))
        op.erase()
    return gathers


def _reduced_sizes(op: ir.Operation) -> list[int]:
    shape = list(op.operands[0].type.shape)
    return [shape[d] for d in ir.DenseI64ArrayAttr(op.attributes["reduction_dims"])] if op.name == _REDUCTION else shape


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
            is_constant = self._of(current)
            if isinstance(is_constant, list):
                unknown = next((v for v in is_constant if v not in self.known), None)
                if unknown is not None and all(self.known.get(v, True) for v in is_constant):
                    pending.append(unknown)
                    continue
                is_constant = unknown is None and all(self.known[v] for v in is_constant)
            self.known[current] = is_constant
            pending.pop()
        return self.known[value]

    def _of(self, value: ir.Value) -> bool | list[ir.Value]:
        """Whether folding may replace a value; or a list of values, all of which must be replaceable for this."""
        owner = value.owner
        if isinstance(owner, ir.Block):
            # Arguments of loops may become constants; those of functions do not.
            return owner.owner.operation.name not in ("gpu.func", "func.func")
        name = owner.name
        if name in _ONE_OPERAND:
            return [owner.operands[0]]
        if name.startswith(("xegpu.load", "xegpu.dpas", "xetile.load", "xetile.tile_mma", "memref.load",
                            "vector.load", "vector.transfer_read")):  # fmt: skip
            return False
        if isinstance(_element(value), (ir.IntegerType, ir.IndexType)):
            # Of integers, x - x and the like are constants, and so are those whose range is one number.
            return True
        if name == _CAST and _NAME in owner.attributes:
            return False
        if name.startswith(("arith.", "math.")) and name not in ("arith.select", "arith.constant"):
            return list(owner.operands)
        return not name.startswith("gpu.")

    def all_may_be(self, op: ir.Operation) -> bool:
        """Whether folding may replace all operands of an op by constants."""
        return all(self.may_be(v) for v in op.operands)


def _attributes(op: ir.Operation) -> dict[str, ir.Attribute]:
    return {name: op.attributes[name] for name in op.attributes}


def _drops_dimensions(op: ir.Operation) -> bool:
    """Whether an op `memref.subview` drops dimensions of which upstream may not find out which ones they are."""
    if ir.MemRefType(op.operands[0].type).rank == ir.MemRefType(op.results[0].type).rank:
        return False
    _, _, sizes, strides = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    return bool(sizes + strides)


_GUARDED = frozenset((
    _MASK, _REDUCTION, _TRUNCATION, _VIEW, _DIM, _LOOP, _CONSTANT, "arith.cmpf", "math.ipowi",
    *_CASTS, *_EXTENSIONS, *_FROM_INTEGERS, *_SHIFTS, *_CHANGES_NAN, *_KEEPS_NAN, _EXTRACT, _INSERT, _CONTRACTION,
))  # fmt: skip
"""The ops that `prepare` looks at, besides functions of `math`."""


def prepare(root: ir.Operation, name: str, ops: Sequence[ir.Operation] | None = None) -> bool:
    """Rewrite the ops in `root` that the pass `name` of upstream's would fold wrongly.

    Args:
        ops: what `walk` returns for `root`, if it is known.

    Returns:
        Whether something was changed that `show` changes back.
    """
    folds = name not in _NEVER_FOLD
    if not (folds or _MERGES.search(name)):
        return False
    ops_by_name: dict[str, list[ir.Operation]] = {}
    for op in walk(root) if ops is None else ops:
        op_name = op.name
        if op_name in _GUARDED or op_name.startswith("math."):
            ops_by_name.setdefault(op_name, []).append(op)
    has_masked = bool(_MERGES.search(name)) and _mark_masked(ops_by_name.get(_MASK, ()))
    if not folds:
        return has_masked

    def of(names: Iterable[str]) -> list[ir.Operation]:
        return [op for name in names for op in ops_by_name.get(name, ())]

    cut_misread_slices([op for name in ops_by_name if is_slice(name) for op in ops_by_name[name]])
    _decide(of(["arith.cmpf"]))
    _keep_truncations(of(_CASTS), of(_EXTENSIONS))
    gathers = _unmask_reductions(of([_MASK]), of([_REDUCTION]))
    canonicalizes, constants = bool(_CANONICALIZES.search(name)), _Constants()
    gathers = gathers if canonicalizes else []
    roundings = of([_TRUNCATION]) if canonicalizes and not ops_by_name.keys().isdisjoint(_FROM_INTEGERS) else []
    for op in roundings:
        if ROUNDING not in op.attributes:
            op.attributes[ROUNDING] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), NEAREST)
    hidden = [op for op in of([_VIEW]) if _drops_dimensions(op)]
    hidden += [op for op in of(["math.ipowi"]) if _width(op.results[0]) == 1]
    hidden += [op for op in of([_DIM]) if not _is_in_rank(op)]
    if not _LOWERS.search(name):
        folded = [name for name in ops_by_name if name.startswith("math.") and name not in _EXACT]
        if any(_may_be_nan(op, constants) for op in of((_CONSTANT, *_CHANGES_NAN, *_KEEPS_NAN))):
            folded += _KEEPS_NAN
        hidden += [op for op in of(folded) if constants.all_may_be(op)]
    bounds = [op for op in of([_LOOP]) if _has_wide_bounds(op, constants)] if canonicalizes else []
    shifts = [op for op in of(_SHIFTS) if not _is_short_shift(op) and constants.all_may_be(op)]
    for op in shifts:
        _mask_distance(op)
    for op in hidden:
        _hide(op)
    for op in bounds:
        _hide_value(op, 0)
    for op in gathers:
        _hide_value(op, len(op.operands) - 3, op.parent.operation)
    sums = of([_CONTRACTION]) if canonicalizes else []
    sums = [op for op in sums if any(use.owner.name == _SUM for use in op.results[0].uses)]
    for op in sums:
        _hide_value(op, 2)
    return bool(has_masked or hidden or roundings or bounds or shifts or gathers or sums)


def _mark_masked(masks: Sequence[ir.Operation]) -> bool:
    """Give ops under a `vector.mask` an attribute; returns whether there are any."""
    for mask in masks:
        for op in mask.regions[0].blocks[0].operations:
            op.attributes[_MASKED] = ir.UnitAttr.get(mask.context)
    return bool(masks)


def _element(value: ir.Value) -> ir.Type:
    return value.type.element_type if isinstance(value.type, ir.VectorType) else value.type


def _width(value: ir.Value) -> int:
    element = _element(value)
    return 64 if isinstance(element, ir.IndexType) else ir.IntegerType(element).width


_SMALL = ("f4E", "f6E", "f8E")
"""Formats of which some have no infinities, but NaNs with a sign, or NaNs that the bindings call infinite."""


def _may_be_nan(op: ir.Operation, constants: _Constants) -> bool:
    """Whether an op is a NaN other than the canonical one, or may fold to one without an operand that is one."""
    element = str(_element(op.results[0]))
    if not is_float(element):
        return False
    # Formats of 8 bits and less have no infinities, but NaNs with a sign, or NaNs that the bindings call infinite.
    if op.name != _CONSTANT:
        is_small = element[1] in "468" or (op.name == "arith.extf" and str(_element(op.operands[0]))[1] in "468")
        return (is_small or op.name in _CHANGES_NAN) and constants.all_may_be(op)
    value = op.attributes["value"]
    if isinstance(value, ir.DenseElementsAttr):
        if not value.is_splat:
            return True
        value = value.get_splat_value()
    number = ir.FloatAttr(value).value
    return math.isnan(number) or (element.startswith(_SMALL) and math.isinf(number))


def _integers(value: ir.Value) -> list[int] | None:
    """The numbers of an integer constant; None if the value is none."""
    if isinstance(value.owner, ir.Block) or value.owner.name not in (_CONSTANT, "index.constant"):
        return None
    attribute = value.owner.attributes["value"]
    if not isinstance(attribute, ir.DenseElementsAttr):
        return [ir.IntegerAttr(attribute).value]
    return [ir.IntegerAttr(attribute.get_splat_value()).value] if attribute.is_splat else [int(n) for n in attribute]


def _is_short_shift(op: ir.Operation) -> bool:
    distances, width = _integers(op.operands[1]), _width(op.results[0])
    return width == 1 or (distances is not None and all(0 <= n < width for n in distances))


def _mask_distance(op: ir.Operation) -> None:
    """Let the distance of a shift be its lowest bits, which are all that count."""
    value = op.operands[1]
    with op.location, ir.InsertionPoint(op):
        mask = arith.constant(value.type, number_attribute(value.type, 63 if _width(value) == 64 else 31))
        attributes = {_NAME: ir.UnitAttr.get()}
        op.operands[1] = ir.Operation.create("arith.andi", [value.type], [value, mask], attributes).result


def _has_wide_bounds(loop: ir.Operation, constants: _Constants) -> bool:
    """Whether the bounds of a loop may become constants whose difference overflows their type."""
    if "unsignedCmp" in loop.attributes:
        return False
    lower, upper = (_integers(v) for v in list(loop.operands)[:2])
    if lower is None:
        return constants.may_be(loop.operands[0]) and constants.may_be(loop.operands[1])
    if lower[0] >= 0:
        return False
    if upper is None:
        return constants.may_be(loop.operands[1])
    return upper[0] - lower[0] >= 1 << _width(loop.operands[0]) - 1


def _is_in_rank(op: ir.Operation) -> bool:
    memref_type, number = op.operands[0].type, _integers(op.operands[1])
    return number is not None and isinstance(memref_type, ir.MemRefType) and 0 <= number[0] < memref_type.rank


def _hide_value(op: ir.Operation, index: int, anchor: ir.Operation | None = None) -> None:
    """Hide an operand of an op from upstream, by a cast before this op or an op around it."""
    value = op.operands[index]
    with op.location, ir.InsertionPoint(anchor or op):
        # A cast between equal types folds.
        attributes = {_NAME: ir.UnitAttr.get()}
        op.operands[index] = ir.Operation.create(_CAST, [value.type], [value, value], attributes).result


def _hide(op: ir.Operation) -> None:
    result_types = [r.type for r in op.results]
    operands = list(op.operands)
    # A cast to the types of its operands folds, and so does one that undoes another. One of more operands does not.
    operands += operands[:1] * (len(result_types) + 1 - len(operands))
    attributes = {_NAME: ir.StringAttr.get(f"{len(op.operands)} {op.name}")}
    attributes |= _attributes(op)
    with op.location, ir.InsertionPoint(op):
        cast = ir.Operation.create(_CAST, result_types, operands, attributes)
    for result, hidden in zip(op.results, cast.results):
        result.replace_all_uses_with(hidden)
    op.erase()


def show(root: ir.Operation) -> None:
    """Replace casts by the ops that they hide, and remove explicit rounding to nearest even."""
    casts = []
    for op in walk(root):
        if op.name in (_CAST, "arith.andi") and _NAME in op.attributes:
            casts.append(op)
        elif op.name == "arith.truncf" and rounding_mode(op) == NEAREST and ROUNDING in op.attributes:
            del op.attributes[ROUNDING]
        if _MASKED in op.attributes:
            del op.attributes[_MASKED]
    for cast in casts:
        attributes = _attributes(cast)
        hidden_name = attributes.pop(_NAME)
        if isinstance(hidden_name, ir.UnitAttr):
            cast.results[0].replace_all_uses_with(cast.operands[0])
            cast.erase()
            continue
        count, name = ir.StringAttr(hidden_name).value.split()
        with cast.location, ir.InsertionPoint(cast):
            op = ir.Operation.create(
                name, [r.type for r in cast.results], list(cast.operands)[: int(count)], attributes
            )
        for hidden, result in zip(cast.results, op.results):
            hidden.replace_all_uses_with(result)
        cast.erase()


# Slices of vectors that upstream's folder misreads, rewritten before it runs.
#
# `vector.extract_strided_slice` of a chain of `vector.insert_strided_slice` folds to what was inserted, and looks past
# inserts that do not overlap the slice. MLIR 22 (`foldExtractStridedOpFromInsertChain` of VectorOps.cpp) errs twice:
#
# - An insert that begins inside the slice, in any dimension, is treated as if it did not overlap it, and so is lost:
#
#       %1 = vector.insert_strided_slice %a, %0 {offsets = [2], strides = [1]} : vector<2xf32> into vector<8xf32>
#       %2 = vector.extract_strided_slice %1 {offsets = [0], sizes = [4], strides = [1]} : vector<8xf32> to ...
#
#   becomes a slice of what was inserted into %0.
#
# - Dimensions for which the slice gives no offset, and which it takes whole, are not compared. They are if each
#   dimension has an offset.

_NEVER_FOLDED = ("xegpu.", "xetile.", "visa.", "iree_vector_ext.", "gpu.", "memref.load", "vector.transfer_read")
"""Prefixes of the names of ops whose results upstream's passes never replace by other vectors."""

Box = tuple[tuple[int, int], ...]
"""The first element and the number of elements along each dimension."""


def _complete(op: ir.Operation) -> None:
    """Give an extracted slice an offset for each dimension."""
    shape = ir.VectorType(op.operands[0].type).shape
    count = len(ir.ArrayAttr(op.attributes["offsets"]))
    if count == len(shape):
        return
    integer = ir.IntegerType.get_signless(64)
    for name, defaults in (("offsets", [0] * len(shape)), ("sizes", shape), ("strides", [1] * len(shape))):
        numbers = [ir.IntegerAttr.get(integer, n) for n in defaults[count:]]
        op.attributes[name] = ir.ArrayAttr.get([*ir.ArrayAttr(op.attributes[name]), *numbers])


def _meet(a: Box, b: Box) -> bool:
    return all(x < y + m and y < x + n for (x, n), (y, m) in zip(a, b))


class _Boxes(Struct):
    """Boxes in an order, and those of the first ones that meet another box.

    Attributes:
        grids: the first number of each box, by logarithms of its sizes and by the cell of a grid of that width.
        count: the number of boxes.
        before: boxes that come before these, and how many of the first of them do.
    """

    grids: dict[tuple[int, ...], dict[tuple[int, ...], dict[Box, int]]] = field(default_factory=dict)
    count: int = 0
    before: tuple[_Boxes, int] | None = None

    def add(self, box: Box) -> None:
        """Add a box at the end."""
        logs = tuple(size.bit_length() for _, size in box)
        cell = tuple(at >> log for (at, _), log in zip(box, logs))
        self.grids.setdefault(logs, {}).setdefault(cell, {}).setdefault(box, self.count)
        self.count += 1

    def meeting(self, box: Box, count: int) -> Iterator[Box]:
        """Return the boxes among the first `count`, and among earlier ones, that intersect a box."""
        for logs, grid in self.grids.items():
            edges = [(at - (1 << log), at + size - 1, log) for (at, size), log in zip(box, logs)]
            ranges = [range(low >> log, (high >> log) + 1) for low, high, log in edges]
            for cell in product(*ranges) if prod(map(len, ranges)) < len(grid) else grid:
                candidates = grid.get(cell, {})
                yield from (box_id for box_id, number in candidates.items() if number < count and _meet(box, box_id))
        if self.before:
            yield from self.before[0].meeting(box, self.before[1])


class _Function(Struct):
    """The slices of a function."""

    extracts: list[ir.Operation] = field(default_factory=list)
    inserts: list[ir.Operation] = field(default_factory=list)
    boxes: dict[ir.Type, _Boxes] = field(default_factory=dict)
    chains: dict[ir.Value, tuple[_Boxes, int, ir.Value]] = field(default_factory=dict)
    decoded: dict[ir.Attribute, list[int]] = field(default_factory=dict)

    def note(self, op: ir.Operation) -> None:
        """Remember a slice; give an extracted slice an offset for each dimension."""
        if op.name == _EXTRACT:
            self.extracts.append(op)
            _complete(op)
        else:
            self.inserts.append(op)

    def _numbers(self, op: ir.Operation, name: str) -> list[int]:
        # Many slices share few attributes, and decoding one takes long.
        attr = op.attributes[name]
        if attr not in self.decoded:
            self.decoded[attr] = [ir.IntegerAttr(a).value for a in ir.ArrayAttr(attr)]
        return self.decoded[attr]

    def extracted(self, op: ir.Operation) -> Box:
        """Return the box of an extracted slice."""
        return tuple(zip(self._numbers(op, "offsets"), self._numbers(op, "sizes")))

    def _inserted(self, op: ir.Operation) -> Box:
        """Return the box of an inserted slice: one element in the leading dimensions that it lacks."""
        offsets = self._numbers(op, "offsets")
        shape = ir.VectorType(op.operands[0].type).shape
        return tuple(zip(offsets, [1] * (len(offsets) - len(shape)) + shape))

    def _chain(self, value: ir.Value) -> tuple[_Boxes, int, ir.Value]:
        """The boxes of the inserts that make a value, their number, and the value that the first of them changes.

        A chain is walked once, not once for each slice of it and of the values that it changes.
        """
        links: list[ir.Value] = []
        while value not in self.chains and not isinstance(value.owner, ir.Block) and value.owner.name == _INSERT:
            links.append(value)
            value = value.owner.operands[1]
        boxes, count, source = self.chains.get(value) or (_Boxes(), 0, value)
        if links and count < boxes.count:
            boxes, count = _Boxes(before=(boxes, count)), 0
        for link in reversed(links):
            boxes.add(self._inserted(link.owner.operation))
            self.chains[link] = boxes, boxes.count, source
        return boxes, boxes.count if links else count, source

    def cuts(self, op: ir.Operation) -> list[list[int]]:
        """Return the positions at which an extracted slice is cut, in each dimension.

        Inserts in its chain count. Where the chain begins with a value that folding may replace by another one, such
        as a block argument, all inserts that make vectors of its type do.
        """
        box = self.extracted(op)
        boxes, count, source = self._chain(op.operands[0])
        starts = [[at for at, _ in insert] for insert in boxes.meeting(box, count)]
        if isinstance(source.owner, ir.Block) or not source.owner.name.startswith(_NEVER_FOLDED):
            while self.inserts:
                insert = self.inserts.pop()
                self.boxes.setdefault(insert.results[0].type, _Boxes()).add(self._inserted(insert))
            if all_boxes := self.boxes.get(op.operands[0].type):
                starts += [[at for at, _ in insert] for insert in all_boxes.meeting(box, all_boxes.count)]
        return [
            sorted({at[dim] for at in starts if start < at[dim] < start + size})
            for dim, (start, size) in enumerate(box)
        ]


def is_slice(name: str) -> bool:
    """Whether an op extracts or inserts a slice."""
    return name in (_EXTRACT, _INSERT)


def cut_misread_slices(slices: Sequence[ir.Operation]) -> None:
    """Cut slices that upstream's folder could misread, so that it reads all of them as they are.

    Args:
        slices: the ops for which `is_slice` holds.
    """
    functions: dict[ir.Operation, _Function] = {}
    for op in slices:
        functions.setdefault(_function_of(op), _Function()).note(op)
    for function in functions.values():
        if not function.inserts:
            continue
        while function.extracts:
            op = function.extracts.pop()
            cuts = function.cuts(op)
            if any(cuts) and op.operands[0].type != op.results[0].type:
                _cut(op, cuts, function)


def _function_of(op: ir.Operation) -> ir.Operation:
    while op.parent is not None and op.name not in ("func.func", "gpu.func"):
        op = op.parent.operation
    return op


def _cut(op: ir.Operation, cuts: Sequence[Sequence[int]], function: _Function) -> None:
    """Replace an extracted slice by smaller ones that are put together."""
    source, slice_type, box = op.operands[0], ir.VectorType(op.results[0].type), function.extracted(op)
    rank = len(slice_type.shape)
    bounds = [[start, *dim_cuts, start + size] for dim_cuts, (start, size) in zip(cuts, box)]
    with ir.InsertionPoint(op), op.location:
        joined: ir.Value = arith.constant(slice_type, number_attribute(slice_type, 0))
        for bounds_of_part in product(*(pairwise(b) for b in bounds)):
            offsets, sizes = [low for low, _ in bounds_of_part], [high - low for low, high in bounds_of_part]
            piece_type = ir.VectorType.get(sizes, slice_type.element_type)
            piece_value = vector.extract_strided_slice(piece_type, source, offsets, sizes, [1] * rank)
            at = [low - start for low, (start, _) in zip(offsets, box)]
            joined = vector.insert_strided_slice(piece_value, joined, at, [1] * rank)
            function.note(joined.owner.operation)
    op.results[0].replace_all_uses_with(joined)
    # Slices of this one see the new inserts.
    users = [u.owner.operation for u in joined.uses]
    function.extracts += [u for u in users if u.name == _EXTRACT]
    op.erase()
