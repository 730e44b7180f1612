"""Matrix multiplication."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from xegpu_py.dialects.xegpu.interfaces import MatrixProduct
from xegpu_py.dialects.xegpu.shapes import packed, vnni_factor
from xegpu_py.dialects.xegpu.types import Mode, XeGPU
from xegpu_py.ir.builtin import bit_width, by, is_integer, vector_of, vector_text
from xegpu_py.ir.constraints import Vector
from xegpu_py.ir.definition import Attribute, Operand, Result, default
from xegpu_py.ir.operation import Operation, ParsedOp
from xegpu_py.numerics.block_scaled import BLOCK, SCALED_FLOAT_TYPES, SCALED_PRECISIONS
from xegpu_py.numerics.dpas import FLOAT_TYPES
from xegpu_py.numerics.formats import BF8, E2M1, E8M0, HF8, PRECISIONS, TYPES

MAX_REPEAT_COUNT = 8
"""The most rows of A in one dpas: the largest repeat count of the vISA instruction (DPAS.md, RC)."""

SUBGROUP_SIZES = (8, 16, 32)
"""Work items that a subgroup may have."""


class DpasOp(Operation, dialect=XeGPU, name="dpas", interfaces=(MatrixProduct,)):
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

    effects = frozenset()
    assembly_format = (
        "($acc^ `,`)? $lhs `,` $rhs attr-dict `:` (type($acc)^ `,`)? type($lhs) `,` type($rhs) `->` type($result)"
    )
    also_reads = (
        "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)",
        "$lhs `,` $rhs `,` $acc attr-dict `:` type($lhs) `,` type($rhs) `,` type($acc) `->` type($result)",
    )

    def verify_op(self) -> None:
        acc = None if self.acc is None else str(self.acc.type)
        problem = dpas_problem(acc, str(self.lhs.type), str(self.rhs.type), str(self.result.type), self.mode)
        if problem:
            self.fail(*problem)

    @classmethod
    def reads_as(cls, parsed: ParsedOp) -> str | None:
        types = [t for name in ("acc", "lhs", "rhs") for t in parsed.types[name]]
        if len(types) < 3:
            return None
        result, given = parsed.type_of("result"), parsed.attributes.get("mode")
        first, second, third = types
        # Without a mode, fragments of an instruction's rows come first, and larger ones last.
        readings = ((given, False),) if given else ((Mode.SIMT, True), (Mode.VC, False), (Mode.SIMT, False))
        for mode, small in readings:
            as_it_stands = not dpas_problem(first, second, third, result, mode, small)
            accumulator_last = not dpas_problem(third, first, second, result, mode, small)
            if as_it_stands and accumulator_last and not given and mode == Mode.VC:
                return "the accumulator can be the first or the last operand; with {mode = vc} it is the first"
            if as_it_stands or accumulator_last:
                return None if as_it_stands else "the accumulator must be the last operand"
        return None

    @classmethod
    def infer_attributes(cls, parsed: ParsedOp) -> dict[str, Any]:
        types = [None, *(t for name in ("acc", "lhs", "rhs") for t in parsed.types[name])][-3:]
        acc, (lhs, rhs), result = types[0], map(str, types[1:]), parsed.type_of("result")
        fragments = dpas_problem(acc, lhs, rhs, result, Mode.SIMT, True)
        matrices = dpas_problem(acc, lhs, rhs, result, Mode.VC)
        return {"mode": Mode.VC} if "mode" not in parsed.attributes and fragments and not matrices else {}

    @classmethod
    def infer(cls, parsed: ParsedOp) -> dict[str, str]:
        acc = parsed.types.get("acc")
        return {"result": acc[0]} if acc else {}


class DpasMxOp(Operation, dialect=XeGPU, name="dpas_mx", interfaces=(MatrixProduct,)):
    """Multiplies block-scaled matrices and adds an accumulator: `result = acc + (lhs * scale_a) x (rhs * scale_b)`.

    32 consecutive elements of K share a scale of the format E8M0, a power of two (OCP Microscaling Formats 1.0). An
    absent scale is one. Syntax and operands are those of upstream MLIR's op, and each product is vISA's `bdpas`.

    In VC mode the operands are whole matrices: `lhs` is MxK, or Mx(K/v)xv, and `rhs` is (K/v)xNxv, where v elements
    fill 32 bits; `scale_a` is Mxceil(K/32) and `scale_b` is ceil(K/32)xN. In SIMT mode they are a work item's
    fragments: of `scale_a` lane i has the scales of row i modulo M, and of `scale_b` those of its column.
    """

    lhs: Operand[Vector]
    rhs: Operand[Vector]
    acc: Operand[Vector] | None
    scale_a: Operand[Vector] | None
    scale_b: Operand[Vector] | None
    result: Result[Vector]
    mode: Attribute[Mode] = default(Mode.SIMT)

    effects = frozenset()
    assembly_format = (
        "$lhs `,` $rhs (`,` $acc^)? (`scale_a` `=` $scale_a^)? (`scale_b` `=` $scale_b^)? attr-dict `:` "
        "`(` type($lhs) `,` type($rhs) (`,` type($acc)^)? (`,` type($scale_a)^)? (`,` type($scale_b)^)? `)` "
        "`->` type($result)"
    )
    also_reads = (
        "$lhs `,` $rhs (`,` $acc^)? (`scale_a` `=` $scale_a^)? (`scale_b` `=` $scale_b^)? attr-dict `:` "
        "type($lhs) `,` type($rhs) (`,` type($acc)^)? (`,` type($scale_a)^)? (`,` type($scale_b)^)? `->` type($result)",
    )

    def verify_op(self) -> None:
        acc = None if self.acc is None else str(self.acc.type)
        lhs, rhs, result = str(self.lhs.type), str(self.rhs.type), str(self.result.type)
        problem = dpas_problem(acc, lhs, rhs, result, self.mode, scaled=True)
        if problem:
            self.fail(*problem)
        d_shape = vector_of(result)[0]
        blocks = -(-math.prod(vector_of(lhs)[0]) // d_shape[0] // SCALE_BLOCK)
        for name, value, wanted in (
            ("scale_a", self.scale_a, (d_shape[0], blocks)),
            ("scale_b", self.scale_b, (blocks, d_shape[1])),
        ):
            if value is None:
                continue
            shape, element = vector_of(str(value.type))
            if element != SCALE:
                self.fail(f"{name} must have elements of type {SCALE}, but got {value.type}")
            if self.mode == Mode.VC and shape != wanted:
                self.fail(
                    f"{name} must be {vector_text(wanted, SCALE)}, but got {value.type}",
                    f"{SCALE_BLOCK} elements of K share a scale",
                )

    infer = DpasOp.infer


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
_FP8 = (BF8.mlir, HF8.mlir)
FACTORS = (
    "both factors must be integers of up to 8 bits, bf16, f16, tf32, f64, or 8-bit floats (f8E5M2, f8E4M3FN)",
    "both factors must be bf16, f16, f4E2M1FN, or 8-bit floats (f8E5M2, f8E4M3FN)",
)
"""What is multiplied, without scales and with them."""
_INT_BITS = (1, 2, 4, 8)


def dpas_problem(
    acc: str | None, lhs: str, rhs: str, result: str, mode: Mode, small: bool = False, scaled: bool = False
) -> tuple[str, ...] | None:
    """Why a dpas cannot combine these types: a message and notes, or None if it can (DPAS.md, legal combinations).

    Args:
        small: whether fragments are those of no more rows than an instruction has.
        scaled: whether matrices are block-scaled, as those of `dpas_mx`.
    """
    (a_shape, a), (b_shape, b) = vector_of(lhs), vector_of(rhs)
    (d_shape, d) = vector_of(result)
    known = (scaled_accumulators if scaled else accumulators)(a, b)
    if not known:
        return (f"cannot multiply {a} by {b}", FACTORS[scaled])
    for name, element in (("result", d), ("accumulator", vector_of(acc)[1] if acc else d)):
        if element not in known:
            return (f"{name} of {a} x {b} must be of {' or '.join(known)}, but got {element}",)
    if acc and vector_of(acc)[0] != d_shape:
        return (f"accumulator {acc} and result {result} must have the same shape",)
    if len(d_shape) != 2:
        return (f"result must be 2D, but got {result}",)
    if mode == Mode.SIMT:
        return _fragments_problem(a_shape, b_shape, d_shape, small)
    return _matrices_problem((a_shape, a), (b_shape, b), d_shape)


def accumulators(a: str, b: str) -> tuple[str, ...]:
    """The elements that a product of these elements may be accumulated in; none if they cannot be multiplied."""
    if is_integer(a) and is_integer(b):
        return _INT_ACCUMULATORS if {bit_width(a), bit_width(b)} <= set(_INT_BITS) else ()
    if a != b and not (a in _FP8 and b in _FP8):
        return ()
    return _ACCUMULATORS.get(a, ())


def scaled_accumulators(a: str, b: str) -> tuple[str, ...]:
    """The elements that a product of block-scaled matrices may be accumulated in; none if there is no such product."""
    return _SCALED_ACCUMULATORS.get(a, ()) if a == b or {a, b} <= set(_FP8) else ()


def _matrices_problem(
    lhs: tuple[tuple[int, ...], str], rhs: tuple[tuple[int, ...], str], d_shape: tuple[int, ...]
) -> tuple[str, ...] | None:
    for name, (shape, element), ranks in (("lhs", lhs, (2, 3)), ("rhs", rhs, (2, 3))):
        factor = max(vnni_factor(bit_width(element)), 1)
        if len(shape) not in ranks:
            return (f"{name} must be 2D, or 3D in VNNI layout, but got {vector_text(shape, element)}",)
        if len(shape) == 3 and (shape[2] != factor or factor == 1):
            wanted = f"is {factor}" if factor > 1 else f"is for elements below 32 bits, not for {element}"
            return (f"the VNNI dimension of {name} {wanted}, but {vector_text(shape, element)} has {shape[2]}",)
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
    found = []
    for lanes in SUBGROUP_SIZES:
        # The fragments have a*lanes = M*K, b*lanes = K*N and d*lanes = M*N elements, however lanes share them.
        m = math.isqrt(a * d * lanes // b)
        if m and m * m * b == a * d * lanes and d * lanes % m == 0 and a * lanes % m == 0:
            found.append(m)
    if found and (not small or min(found) <= MAX_REPEAT_COUNT):
        return None
    return (
        f"fragments {by(a_shape)} and {by(b_shape)} do not multiply to {by(d_shape)} in a subgroup of 8, 16 or 32",
        "a lane holds M*K, K*N and M*N elements divided by the number of lanes",
    )
