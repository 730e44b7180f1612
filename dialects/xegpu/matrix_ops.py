"""XeGPU's ops on registers: dpas, dpas_mx, truncf and lane_shuffle, and the shapes of blocks and fragments."""

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from xegpu_py.deferred import deferred
from xegpu_py.dialects.xegpu.op_interfaces import AnyLayout, HasProductLayouts, MatrixProduct, VectorOrNumber
from xegpu_py.dialects.xegpu.types import LaneShuffleMode, Mode, TensorDesc, UpstreamXeGPU, XeGPU
from xegpu_py.ir.builtin import Vector, bit_width, by, is_integer, shape_and_element, shape_of, vector_of, vector_text
from xegpu_py.ir.definition import Attribute, Operand, Result, default
from xegpu_py.ir.operation import Operation, ParsedOp, VerifyError
from xegpu_py.numerics.block_scaled import BLOCK, SCALED_FLOAT_TYPES, SCALED_PRECISIONS
from xegpu_py.numerics.dpas import FLOAT_TYPES
from xegpu_py.numerics.formats import BYTE_FLOATS, E2M1, E8M0, PRECISIONS, TYPES

if TYPE_CHECKING:
    from xegpu_py.dialects.xegpu import upstream_types as upstream
else:
    upstream = deferred("xegpu_py.dialects.xegpu.upstream_types")

# Matrix multiplication.

MAX_REPEAT_COUNT = 8
"""The most rows of A in one dpas: the largest repeat count of the vISA instruction (DPAS.md, RC)."""

SUBGROUP_SIZES = (8, 16, 32)
"""Work items that a subgroup may have."""


def _with_properties(form: str) -> str:
    """A form in which properties may stand apart from other attributes, as in upstream's spelling."""
    return form.replace("attr-dict", "prop-dict attr-dict")


_ACCUMULATOR_LAST = (
    "$lhs `,` $rhs (`,` $acc^)? attr-dict `:` type($lhs) `,` type($rhs) (`,` type($acc)^)? `->` type($result)"
)


class _Dpas(Operation, name="dpas", interfaces=(MatrixProduct,)):
    effects = frozenset()


class DpasOp(_Dpas, dialect=XeGPU):
    """Multiplies matrices and adds an accumulator: `result = acc + lhs x rhs` (RFC, dpas).

    In VC mode the operands are whole matrices. `lhs` is MxK, or Mx(K/v)xv, and `rhs` is KxN for 32-bit elements and
    (K/v)xNxv for narrower ones, where v elements fill 32 bits. In SIMT mode they are a work item's fragments.

    The accumulator is printed first, as the RFC has it. It is also read after `rhs`, if the text has no meaning
    otherwise. Where the text gives no mode, types that are no fragments but matrices say `mode = vc`.
    """

    acc: Operand[Vector] | None = None
    lhs: Operand[Vector]
    rhs: Operand[Vector]
    result: Result[Vector]
    mode: Attribute[Mode] = default(Mode.SIMT)

    assembly_format = (
        "($acc^ `,`)? $lhs `,` $rhs attr-dict `:` (type($acc)^ `,`)? type($lhs) `,` type($rhs) `->` type($result)"
    )
    also_reads = (_ACCUMULATOR_LAST,)

    def verify_op(self) -> None:
        problem = dpas_problem(*_factors(self), self.mode)
        if problem:
            self.fail(*problem)

    @classmethod
    def reads_as(cls, parsed: ParsedOp) -> str | None:
        (first, *more), result = _read(parsed)
        if len(more) < 2:
            return None
        (second, third), mode_of_text = more, parsed.attributes.get("mode")
        # Without a mode, fragments of an instruction's rows come first, and larger ones last.
        readings = (
            ((mode_of_text, False),) if mode_of_text else ((Mode.SIMT, True), (Mode.VC, False), (Mode.SIMT, False))
        )
        for mode, small in readings:
            as_it_stands = not dpas_problem(first, second, third, result, mode, small)
            accumulator_last = not dpas_problem(third, first, second, result, mode, small)
            if as_it_stands and accumulator_last and not mode_of_text and mode == Mode.VC:
                return "the accumulator can be the first or the last operand; with {mode = vc} it is the first"
            if as_it_stands or accumulator_last:
                return None if as_it_stands else "the accumulator must be the last operand"
        return None

    @classmethod
    def infer_attributes(cls, parsed: ParsedOp) -> dict[str, Any]:
        (*acc, lhs, rhs), result = _read(parsed)
        fragments = dpas_problem(acc[0] if acc else None, lhs, rhs, result, Mode.SIMT, True)
        matrices = dpas_problem(acc[0] if acc else None, lhs, rhs, result, Mode.VC)
        return {"mode": Mode.VC} if "mode" not in parsed.attributes and fragments and not matrices else {}

    @classmethod
    def infer(cls, parsed: ParsedOp) -> dict[str, str]:
        acc = parsed.types.get("acc")
        return {"result": acc[0]} if acc else {}


class UpstreamDpasOp(_Dpas, dialect=UpstreamXeGPU, interfaces=(HasProductLayouts,)):
    """`dpas` whose matrices may have layouts, the accumulator last."""

    lhs: Operand[Vector]
    rhs: Operand[Vector]
    acc: Operand[Vector] | None
    result: Result[Vector]

    assembly_format = _ACCUMULATOR_LAST
    also_reads = (_with_properties(_ACCUMULATOR_LAST),)

    def verify_op(self) -> None:
        _check_product(self)
        for layout, value in ((self.layout_a, self.lhs), (self.layout_b, self.rhs), (self.layout_cd, self.result)):
            if len(shape_of(value)) > 1:
                upstream.check_distribution(self, layout, shape_of(value))


_SCALED = (
    "$lhs `,` $rhs (`,` $acc^)? (`scale_a` `=` $scale_a^)? (`scale_b` `=` $scale_b^)? attr-dict `:` "
    "`(` type($lhs) `,` type($rhs) (`,` type($acc)^)? (`,` type($scale_a)^)? (`,` type($scale_b)^)? `)` "
    "`->` type($result)"
)

_SCALED_WITHOUT_PARENTHESES = (
    "$lhs `,` $rhs (`,` $acc^)? (`scale_a` `=` $scale_a^)? (`scale_b` `=` $scale_b^)? attr-dict `:` "
    "type($lhs) `,` type($rhs) (`,` type($acc)^)? (`,` type($scale_a)^)? (`,` type($scale_b)^)? `->` type($result)"
)


class _DpasMx(Operation, name="dpas_mx", interfaces=(MatrixProduct,)):
    lhs: Operand[Vector]
    rhs: Operand[Vector]
    acc: Operand[Vector] | None
    scale_a: Operand[Vector] | None
    scale_b: Operand[Vector] | None
    result: Result[Vector]

    effects = frozenset()
    assembly_format = _SCALED
    also_reads = (_SCALED_WITHOUT_PARENTHESES,)


class DpasMxOp(_DpasMx, dialect=XeGPU):
    """Multiplies block-scaled matrices and adds an accumulator: `result = acc + (lhs * scale_a) x (rhs * scale_b)`.

    32 consecutive elements of K share a scale of the format E8M0, a power of two (OCP Microscaling Formats 1.0). An
    absent scale is one. Syntax and operands are those of upstream MLIR's op, and each product is vISA's `bdpas`.

    In VC mode the operands are whole matrices: `lhs` is MxK, or Mx(K/v)xv, and `rhs` is (K/v)xNxv, where v elements
    fill 32 bits; `scale_a` is Mxceil(K/32) and `scale_b` is ceil(K/32)xN. In SIMT mode they are a work item's
    fragments: of `scale_a` lane i has the scales of row i modulo M, and of `scale_b` those of its column.
    """

    mode: Attribute[Mode] = default(Mode.SIMT)

    def verify_op(self) -> None:
        problem = dpas_problem(*_factors(self), self.mode, scaled=True)
        if problem:
            self.fail(*problem)
        d_shape = shape_of(self.result)
        blocks = -(-math.prod(shape_of(self.lhs)) // d_shape[0] // SCALE_BLOCK)
        for name, value, expected in (
            ("scale_a", self.scale_a, (d_shape[0], blocks)),
            ("scale_b", self.scale_b, (blocks, d_shape[1])),
        ):
            if value is None:
                continue
            shape, element = shape_and_element(value)
            if element != SCALE:
                self.fail(f"{name} must have elements of type {SCALE}, but got {value.type}")
            if self.mode == Mode.VC and shape != expected:
                self.fail(
                    f"{name} must be {vector_text(expected, SCALE)}, but got {value.type}",
                    f"{SCALE_BLOCK} elements of K share a scale",
                )

    infer = DpasOp.infer


class UpstreamDpasMxOp(_DpasMx, dialect=UpstreamXeGPU, interfaces=(HasProductLayouts,)):
    """`dpas_mx` whose matrices and scales may have layouts. After 22.1.8."""

    scale_a: Operand[VectorOrNumber] | None
    scale_b: Operand[VectorOrNumber] | None
    layout_a_scale: Attribute[AnyLayout] | None = None
    layout_b_scale: Attribute[AnyLayout] | None = None

    assembly_format = _with_properties(_SCALED)
    also_reads = (_with_properties(_SCALED_WITHOUT_PARENTHESES),)

    def verify_op(self) -> None:
        _check_product(self)
        a, b = shape_of(self.lhs), shape_of(self.rhs)
        scales = {"scale_a": self.scale_a, "scale_b": self.scale_b}
        for name, value in scales.items():
            if value is not None and upstream.element_of(value) != SCALE:
                self.fail(f"{name} must have elements {SCALE}, but got {value.type}")
        if len(a) == 1:
            return
        for name, size, axis in (("scale_a", a[-2], -2), ("scale_b", b[-1], -1)):
            given = scales[name]
            shape = shape_of(given) if given is not None else ()
            if shape and (len(shape) != len(a) or shape[axis] != size):
                self.fail(f"{name} must have the rank of its factor and {size} along its dimension, not {by(shape)}")
        layouts = (self.layout_a, self.layout_b, self.layout_cd, self.layout_a_scale, self.layout_b_scale)
        for layout, value in zip(layouts, (self.lhs, self.rhs, self.result, self.scale_a, self.scale_b)):
            if value is not None:
                upstream.check_distribution(self, layout, shape_of(value), of_type=True)
        both = [shape_of(v) for v in (self.scale_a, self.scale_b) if v is not None]
        if len(both) == 2 and all(both) and both[0][-1] != both[1][-2]:
            self.fail(f"scale_a has {both[0][-1]} blocks along K, but scale_b has {both[1][-2]}")


SCALE_BLOCK = BLOCK
"""Elements of K that share a scale."""

SCALE = E8M0.mlir
"""The format of a scale."""


def _in_mlir(types: Mapping[str, tuple[str, ...]], precisions: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The types of accumulators by precision, all by MLIR's names."""
    return {PRECISIONS[p].mlir: tuple(TYPES[t].mlir for t in types[p]) for p in precisions}


_SCALED_ACCUMULATORS = _in_mlir(SCALED_FLOAT_TYPES, SCALED_PRECISIONS)

_INT_ACCUMULATORS = ("i32", "si32", "ui32")

_ACCUMULATORS = _in_mlir(FLOAT_TYPES, (p for p in FLOAT_TYPES if p != E2M1.name))

FACTORS = (
    f"both factors must be integers of up to 8 bits, bf16, f16, tf32, f64, or 8-bit floats ({', '.join(BYTE_FLOATS)})",
    f"both factors must be bf16, f16, {E2M1.mlir}, or 8-bit floats ({', '.join(BYTE_FLOATS)})",
)
"""Element types that are multiplied, without scales and with them."""

_INT_BITS = (1, 2, 4, 8)


Typed = tuple[tuple[int, ...], str]
"""The shape and element type of a vector."""


def _read(parsed: ParsedOp) -> tuple[list[Typed], Typed]:
    """The types that are written of an accumulator, if there is one, and of two factors, and that of the result."""
    types = [t for name in ("acc", "lhs", "rhs") for t in parsed.types[name]]
    return [vector_of(t) for t in types], vector_of(parsed.type_of("result"))


def _factors(op: Any) -> tuple[Typed | None, Typed, Typed, Typed]:
    acc = None if op.acc is None else shape_and_element(op.acc)
    return acc, shape_and_element(op.lhs), shape_and_element(op.rhs), shape_and_element(op.result)


def dpas_problem(
    acc: Typed | None, lhs: Typed, rhs: Typed, result: Typed, mode: Mode, small: bool = False, scaled: bool = False
) -> tuple[str, ...] | None:
    """Why a dpas cannot combine these types: a message and notes, or None if it can (DPAS.md, legal combinations).

    Args:
        small: whether fragments are those of no more rows than an instruction has.
        scaled: whether matrices are block-scaled, as those of `dpas_mx`.
    """
    (a_shape, a), (b_shape, b), (d_shape, d) = lhs, rhs, result
    legal_types = (scaled_accumulators if scaled else accumulators)(a, b)
    if not legal_types:
        return (f"cannot multiply {a} by {b}", FACTORS[scaled])
    for name, element in (("result", d), ("accumulator", acc[1] if acc else d)):
        if element not in legal_types:
            return (f"{name} of {a} x {b} must be of {' or '.join(legal_types)}, but got {element}",)
    if acc and acc[0] != d_shape:
        return (f"accumulator {vector_text(*acc)} and result {vector_text(*result)} must have the same shape",)
    if len(d_shape) != 2:
        return (f"result must be 2D, but got {vector_text(*result)}",)
    if mode == Mode.SIMT:
        return _fragments_problem(a_shape, b_shape, d_shape, small)
    return _matrices_problem(lhs, rhs, d_shape)


def accumulators(a: str, b: str) -> tuple[str, ...]:
    """The elements that a product of these elements may be accumulated in; none if they cannot be multiplied."""
    if is_integer(a) and is_integer(b):
        return _INT_ACCUMULATORS if {bit_width(a), bit_width(b)} <= set(_INT_BITS) else ()
    if a != b and not (a in BYTE_FLOATS and b in BYTE_FLOATS):
        return ()
    return _ACCUMULATORS.get(a, ())


def scaled_accumulators(a: str, b: str) -> tuple[str, ...]:
    """The elements that a product of block-scaled matrices may be accumulated in; none if there is no such product."""
    return _SCALED_ACCUMULATORS.get(a, ()) if a == b or {a, b} <= set(BYTE_FLOATS) else ()


def _matrices_problem(lhs: Typed, rhs: Typed, d_shape: tuple[int, ...]) -> tuple[str, ...] | None:
    for name, (shape, element), ranks in (("lhs", lhs, (2, 3)), ("rhs", rhs, (2, 3))):
        factor = max(vnni_factor(bit_width(element)), 1)
        if len(shape) not in ranks:
            return (f"{name} must be 2D, or 3D in VNNI layout, but got {vector_text(shape, element)}",)
        if len(shape) == 3 and (shape[2] != factor or factor == 1):
            rule = f"is {factor}" if factor > 1 else f"is for elements below 32 bits, not for {element}"
            return (f"the VNNI dimension of {name} {rule}, but {vector_text(shape, element)} has {shape[2]}",)
    (a_shape, _), (b_shape, b) = lhs, rhs
    if len(b_shape) == 2 and bit_width(b) < 32:
        factor = vnni_factor(bit_width(b))
        wanted_shape = packed(b_shape, 0, factor)
        return (
            f"rhs must be in VNNI layout, {vector_text(wanted_shape, b)}, but got {vector_text(b_shape, b)}",
            "load rhs with vnni_axis = 0",
        )
    m, k_a = a_shape[0], math.prod(a_shape[1:])
    n, k_b = b_shape[1], math.prod(b_shape) // b_shape[1]
    if k_a != k_b:
        return (f"lhs has {k_a} columns, but rhs has {k_b} rows",)
    if (m, n) != d_shape:
        return (f"result must be {m}x{n} for {m}x{k_a} times {k_b}x{n}, but got {by(d_shape)}",)
    return None


def _fragments_problem(
    a_shape: tuple[int, ...], b_shape: tuple[int, ...], d_shape: tuple[int, ...], small: bool
) -> tuple[str, ...] | None:
    if len(a_shape) not in (2, 3) or len(b_shape) not in (2, 3):
        return ("lhs and rhs must be 2D, or 3D in VNNI layout",)
    a, b, d = (math.prod(shape) for shape in (a_shape, b_shape, d_shape))
    sizes = []
    for lanes in SUBGROUP_SIZES:
        # The fragments have a*lanes = M*K, b*lanes = K*N and d*lanes = M*N elements, however lanes share them.
        m = math.isqrt(a * d * lanes // b)
        if m and m * m * b == a * d * lanes and d * lanes % m == 0 and a * lanes % m == 0:
            sizes.append(m)
    if sizes and (not small or min(sizes) <= MAX_REPEAT_COUNT):
        return None
    return (
        f"fragments {by(a_shape)} and {by(b_shape)} do not multiply to {by(d_shape)} in a subgroup of 8, 16 or 32",
        "a lane holds M*K, K*N and M*N elements divided by the number of lanes",
    )


# Rules of upstream's products.


def _check_product(op: Any) -> None:
    """The shapes of a product's factors and its result fit (verifyDpasDimensions)."""
    if op.acc is not None and op.acc.type != op.result.type:
        op.fail(f"the accumulator {op.acc.type} differs from the result {op.result.type}")
    a, b, d = shape_of(op.lhs), shape_of(op.rhs), shape_of(op.result)
    if {upstream.element_of(op.lhs), upstream.element_of(op.rhs)} == {"f16", "bf16"}:
        op.fail(f"cannot multiply {op.lhs.type} and {op.rhs.type}, which have different elements")
    if len(a) == 1 or len(d) == 1:
        if len({len(a), len(b), len(d)}) > 1:
            op.fail(f"has {by(a)} times {by(b)} is {by(d)}: at lane level all of these have one dimension")
        if b[0] * bit_width(upstream.element_of(op.rhs)) % 32:
            op.fail(f"a lane's part of the second factor must fill multiples of 32 bits, but is {op.rhs.type}")
        return
    if len(a) != len(d) or len(b) not in (len(a), len(a) + 1):
        op.fail(f"cannot multiply {by(a)} and {by(b)} to {by(d)}")
    k = b[-2] if len(b) == len(a) else b[-3] * b[-1]
    n = b[-1] if len(b) == len(a) else b[-2]
    if (a[-2], a[-1], n) != (d[-2], k, d[-1]):
        op.fail(f"{by(a)} times {by(b)} is not {by(d)}")


# Ops on vectors in registers.

NARROW_FLOATS = (*BYTE_FLOATS, E2M1.mlir)
"""The formats that `xegpu.truncf` rounds to."""

WIDE_FLOATS = ("f32", "f16", "bf16")
"""The formats that it rounds."""


class TruncfOp(Operation, dialect=XeGPU, name="truncf"):
    """Rounds to a format of 8 or 4 bits: to nearest even, and saturated (OCP Microscaling Formats 1.0, section 6.3).

    Numbers beyond the largest one of the format, infinities too, become that number with their sign. NaN gives the
    canonical NaN; f4E2M1FN has none, and gives its greatest number. The op is upstream MLIR's.
    """

    source: Operand[Vector]
    result: Result[Vector]

    effects = frozenset()
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def verify_op(self) -> None:
        (shape, source), (to, result) = (shape_and_element(v) for v in (self.source, self.result))
        if source not in WIDE_FLOATS or result not in NARROW_FLOATS:
            self.fail(
                f"cannot round {source} to {result}",
                f"it rounds {', '.join(WIDE_FLOATS)} to {', '.join(NARROW_FLOATS)}; use arith.truncf for others",
            )
        if shape != to:
            self.fail(f"result must have the operand's shape {by(shape)}, but got {self.result.type}")
        if bit_width(result) < 8 and (not shape or shape[-1] % 2):
            self.fail(f"requires rows of even length to pack {result} in bytes, but got {self.result.type}")


class UpstreamTruncfOp(Operation, dialect=UpstreamXeGPU, name="truncf"):
    """`truncf` of numbers and vectors. After 22.1.8."""

    source: Operand[VectorOrNumber]
    result: Result[VectorOrNumber]

    effects = frozenset()
    assembly_format = "$source prop-dict attr-dict `:` type($source) `->` type($result)"

    def verify_op(self) -> None:
        if bit_width(upstream.element_of(self.source)) <= bit_width(upstream.element_of(self.result)):
            self.fail(f"requires a type wider than the result's, {self.result.type}, but got {self.source.type}")


class LaneShuffleOp(Operation, dialect=XeGPU, name="lane_shuffle"):
    """Distributes the elements that the work items of a subgroup hold in another way. The op is upstream MLIR's.

    Of S work items with N elements each, element j of work item i is number j * S + i before `pack`, and number
    i * N + j after it: then a work item has consecutive ones. `unpack` is the reverse. The op is for SIMT mode.
    """

    source: Operand[Vector]
    shuffle: Attribute[LaneShuffleMode]
    result: Result[Vector]

    effects = frozenset()
    same_type = ("result", "source")
    assembly_format = "$source $shuffle attr-dict `:` type($source)"

    def verify_op(self) -> None:
        shape, element = shape_and_element(self.source)
        if len(shape) != 1:
            self.fail(f"requires a 1D vector, the fragment of a work item, but got {self.source.type}")
        if element == "i1" or (element != "index" and bit_width(element) < 8):
            self.fail(f"requires elements of whole bytes, but got {self.source.type}", "use vector.bitcast to i8")


class UpstreamLaneShuffleOp(Operation, dialect=UpstreamXeGPU, name="lane_shuffle"):
    """`lane_shuffle`, whose direction has another name. After 22.1.8."""

    source: Operand[Vector]
    mode: Attribute[LaneShuffleMode]
    result: Result[Vector]

    effects = frozenset()
    same_type = ("result", "source")
    assembly_format = "$source $mode prop-dict attr-dict `:` type($source)"


# The shapes of the vectors that XeGPU ops load, store and multiply.


def vnni_factor(bits: int) -> int:
    """Elements of this width that the VNNI transform packs into 32 bits (RFC, vnni_axis)."""
    return 32 // bits


def packed(shape: tuple[int, ...], axis: int, factor: int) -> tuple[int, ...]:
    """A shape with `factor` elements along `axis` moved to a new innermost dimension."""
    return (*(n // factor if i == axis else n for i, n in enumerate(shape)), factor)


def block_shapes(desc: TensorDesc, mode: Mode) -> list[tuple[int, ...]]:
    """The shapes that a block may have in a vector before any transform.

    With an array_length these are the array of blocks, which is how they lie in registers, and the covered block, in
    which the blocks stand side by side along the innermost dimension.
    """
    shape = desc.shape if mode == Mode.VC else desc.fragment()
    count = desc.attr.array_length
    if count == 1:
        return [shape]
    return [(count, *shape), (shape[0], count * shape[1])]


def loaded_shapes(
    desc: TensorDesc,
    mode: Mode,
    transpose: tuple[int, ...] | None,
    transpose_bit_width: int | None,
    vnni_axis: int | None,
) -> list[tuple[int, ...]]:
    """The shapes that a load_nd of the descriptor may have, the preferred one first (RFC, load_nd).

    Raises:
        VerifyError: if the transforms do not fit the descriptor or each other.
    """
    rank = len(desc.shape)
    check_fragments(desc, mode, vnni_axis)
    if transpose is not None and vnni_axis is not None:
        raise VerifyError("VNNI transformation and transpose cannot be combined")
    if transpose_bit_width is not None:
        check_transpose_unit(desc, mode, transpose, transpose_bit_width)
    if transpose is not None and sorted(transpose) != list(range(rank)):
        raise VerifyError(f"transpose must be a permutation of the {rank} dimensions, but got {list(transpose)}")
    if vnni_axis is not None:
        check_vnni(desc, mode, vnni_axis)
    shapes = []
    for shape in block_shapes(desc, mode):
        outer, block = shape[: len(shape) - rank], shape[len(shape) - rank :]
        if transpose is not None:
            unit = (transpose_bit_width or desc.bits) // desc.bits
            units = (*block[:-1], block[-1] // unit)
            transposed = tuple(units[i] for i in transpose)
            block = (*transposed[:-1], transposed[-1] * unit)
        if vnni_axis is not None:
            block = packed(block, vnni_axis, vnni_factor(desc.bits))
        shapes.append((*outer, *block))
        if transpose is not None and unit > 1 and not outer and desc.attr.array_length == 1:
            # As IMEX has it, and the shape_cast that the RFC shows makes.
            shapes.append((*outer, *transposed, unit))
    return shapes


def check_fragments(desc: TensorDesc, mode: Mode, vnni_axis: int | None = None) -> None:
    """Check that the elements of each work item's fragment are adjacent (RFC, sg_map).

    Those of a column do after the VNNI transform, for which the RFC has `wi_data = [2, 1]`.
    """
    sg_map = desc.attr.map
    if mode == Mode.SIMT and sg_map and sg_map.wi_data[0] > 1 and vnni_axis != 0:
        raise VerifyError(
            f"the elements of a fragment with wi_data = {list(sg_map.wi_data)} are not contiguous",
            "add vnni_axis = 0 to load a fragment that is part of a column",
        )


def check_transpose_unit(desc: TensorDesc, mode: Mode, transpose: tuple[int, ...] | None, bits: int) -> None:
    """The unit that transpose_bit_width names divides rows, and elements divide it (RFC)."""
    if transpose is None:
        raise VerifyError("transpose_bit_width requires transpose")
    if mode != Mode.VC:
        raise VerifyError("transpose_bit_width is available in VC mode only")
    if bits < desc.bits or bits % desc.bits:
        raise VerifyError(f"transpose_bit_width = {bits} is not a multiple of the element's {desc.bits} bits")
    if desc.shape[-1] * desc.bits % bits:
        raise VerifyError(f"rows of {desc.shape[-1]} x {desc.element} are not divisible into units of {bits} bits")


def check_vnni(desc: TensorDesc, mode: Mode, axis: int) -> None:
    """Check that a VNNI transform fits the elements, the block and the sg_map (RFC, vnni_axis)."""
    if len(desc.shape) != 2:
        raise VerifyError("vnni_axis requires a 2D block")
    if axis not in (0, 1):
        raise VerifyError(f"vnni_axis must be 0 or 1, but got {axis}")
    if desc.bits >= 32:
        raise VerifyError(
            f"vnni_axis requires elements narrower than 32 bits, but got {desc.element}",
            "remove vnni_axis: the transform packs narrow elements into 32 bits",
        )
    factor = vnni_factor(desc.bits)
    if desc.shape[axis] % factor:
        raise VerifyError(f"{desc.shape[axis]} elements along vnni_axis = {axis} are not divisible by {factor}")
    sg_map = desc.attr.map
    if mode == Mode.SIMT and sg_map and sg_map.wi_data[axis] != factor:
        raise VerifyError(
            f"wi_data along vnni_axis = {axis} must be {factor}, but got {sg_map.wi_data[axis]}",
            f"{factor} elements of {desc.element} fill 32 bits",
        )


def scattered_value_shape(desc: TensorDesc) -> tuple[int, ...]:
    """The shape of the loaded or stored vector: the lanes, and outside them the chunk, if any (RFC, load_gather)."""
    return desc.shape[::-1]
