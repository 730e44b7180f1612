"""Triton's ops that move the elements of tensors, reduce them, or multiply matrices; functions and terminators."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from mlir import ir

from xegpu_py.dialects.tt.elementwise import MapElementwiseOp, check_shapes
from xegpu_py.dialects.tt.types import (
    MOST_ELEMENTS,
    BoolLike,
    F32Tensor,
    FactorTensor,
    InputPrecision,
    Int32,
    Int32Array,
    Int32EnumCodec,
    IntTensor,
    Number,
    NumberTensor,
    ScaleDotElemType,
    ScaleTensor,
    Tensor,
    Tt,
    element_bits,
    parts,
    shape_and_element,
    shaped_like,
    tensor_text,
)
from xegpu_py.ir.codecs import Unit, register_codec
from xegpu_py.ir.definition import Attribute, CarriedOperation, Operand, Region, Result, default
from xegpu_py.ir.diagnostics import Diagnostic, op_error, position_of
from xegpu_py.ir.operation import Operation, ParsedOp
from xegpu_py.ir.pending_functions import PendingFunctions

for _cases in (InputPrecision, ScaleDotElemType):
    register_codec(_cases, Int32EnumCodec(_cases))


def _shape(value: ir.Value) -> tuple[int, ...]:
    return shape_and_element(value)[0] or ()


def _element(value: ir.Value) -> str:
    return shape_and_element(value)[1]


class _Move(Operation):
    """Ops of one operand `src` that keep the elements."""

    effects = frozenset()
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"

    def verify_op(self) -> None:
        src, result = self.operation.operands[0], self.operation.results[0]
        if _element(src) != _element(result):
            self.fail(f"must keep the element type {_element(src)}, but got {result.type}")
        self.verify_shapes(_shape(src), _shape(result))

    def verify_shapes(self, src: tuple[int, ...], result: tuple[int, ...]) -> None:
        """Check the shapes."""

    def expect(self, actual: tuple[int, ...], expected: tuple[int, ...]) -> None:
        """Check that the result has a shape."""
        if actual != expected:
            result = self.operation.results[0]
            self.fail(f"requires a result of type {tensor_text(expected, _element(result))}, but got {result.type}")


class SplatOp(_Move, dialect=Tt, name="splat"):
    """Repeats a number or pointer in all elements of a tensor."""

    src: Operand[Number]
    result: Result[Tensor]

    def verify_shapes(self, src: tuple[int, ...], result: tuple[int, ...]) -> None:
        if src:
            self.fail("requires a number or pointer to repeat, and no tensor", "use tt.broadcast for a tensor")


class UnsplatOp(_Move, dialect=Tt, name="unsplat"):
    """Gives the element of a tensor that has just one."""

    src: Operand[Tensor]
    result: Result[Number]

    assembly_format = "$src attr-dict `:` type($src)"

    @classmethod
    def infer(cls, parsed: ParsedOp) -> dict[str, str]:
        return {"result": parts(parsed.type_of("src"))[1]}

    def verify_shapes(self, src: tuple[int, ...], result: tuple[int, ...]) -> None:
        if math.prod(src) != 1 or result:
            self.fail(f"requires a tensor of one element, but got {self.operation.operands[0].type}")


class ExpandDimsOp(_Move, dialect=Tt, name="expand_dims"):
    """Inserts a dimension of size 1 at an axis."""

    src: Operand[Tensor]
    axis: Attribute[Int32]
    result: Result[Tensor]

    def verify_shapes(self, src: tuple[int, ...], result: tuple[int, ...]) -> None:
        if not 0 <= self.axis <= len(src):
            self.fail(f"'axis' must be from 0 to {len(src)}, but got {self.axis}")
        self.expect(result, (*src[: self.axis], 1, *src[self.axis :]))


class ReshapeOp(_Move, dialect=Tt, name="reshape"):
    """Gives a tensor another shape. Elements keep their order, unless `allow_reorder` lets it be any."""

    src: Operand[Tensor]
    allow_reorder: Attribute[Unit] | None = None
    efficient_layout: Attribute[Unit] | None = None
    result: Result[Tensor]

    assembly_format = (
        "$src (`allow_reorder` $allow_reorder^)? (`efficient_layout` $efficient_layout^)? attr-dict `:` "
        "type($src) `->` type($result)"
    )

    def verify_shapes(self, src: tuple[int, ...], result: tuple[int, ...]) -> None:
        if math.prod(src) != math.prod(result):
            self.fail(f"must keep the number of elements, but got {math.prod(src)} and {math.prod(result)}")


class BroadcastOp(_Move, dialect=Tt, name="broadcast"):
    """Repeats a tensor along dimensions of size 1."""

    src: Operand[Tensor]
    result: Result[Tensor]

    def verify_shapes(self, src: tuple[int, ...], result: tuple[int, ...]) -> None:
        if len(src) != len(result):
            self.fail(f"must keep the rank {len(src)}, but got {self.operation.results[0].type}")
        for i, (before, after) in enumerate(zip(src, result)):
            if before not in (1, after):
                self.fail(f"cannot change dimension {i} from size {before} to {after}: only size 1 is repeated")


def _check_joined(op: "CatOp | JoinOp", expected: str) -> None:
    if op.lhs.type != op.rhs.type or str(op.result.type) != expected:
        op.fail(
            f"requires two operands of one type and a result of type {expected}, but got {op.lhs.type}, "
            f"{op.rhs.type} and {op.result.type}"
        )


class CatOp(Operation, dialect=Tt, name="cat"):
    """Joins two tensors along the first dimension. The order of elements may be any; here it is kept."""

    lhs: Operand[Tensor]
    rhs: Operand[Tensor]
    result: Result[Tensor]

    effects = frozenset()
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)"

    @classmethod
    def infer(cls, parsed: ParsedOp) -> dict[str, str]:
        return {"rhs": parsed.type_of("lhs")}

    def verify_op(self) -> None:
        if not _shape(self.lhs):
            self.fail(f"requires tensors of at least one dimension, but got {self.lhs.type}")
        first, *rest = _shape(self.lhs)
        expected = tensor_text((2 * first, *rest), _element(self.lhs))
        _check_joined(self, expected)


class JoinOp(Operation, dialect=Tt, name="join"):
    """Joins two tensors along a new last dimension."""

    lhs: Operand[Tensor]
    rhs: Operand[Tensor]
    result: Result[Tensor]

    effects = frozenset()
    assembly_format = CatOp.assembly_format
    infer = CatOp.infer

    def verify_op(self) -> None:
        expected = tensor_text((*_shape(self.lhs), 2), _element(self.lhs))
        _check_joined(self, expected)


class SplitOp(Operation, dialect=Tt, name="split"):
    """Splits a tensor in two along the last dimension, which has size 2."""

    src: Operand[Tensor]
    out_lhs: Result[Tensor]
    out_rhs: Result[Tensor]

    effects = frozenset()
    assembly_format = "$src attr-dict `:` type($src) `->` type($out_lhs)"

    @classmethod
    def infer(cls, parsed: ParsedOp) -> dict[str, str]:
        return {"out_rhs": parsed.type_of("out_lhs")}

    def verify_op(self) -> None:
        *rest, last = _shape(self.src)
        expected = tensor_text(rest, _element(self.src))
        if last != 2:
            self.fail(f"requires a tensor whose last dimension has size 2, but got {self.src.type}")
        if {str(self.out_lhs.type), str(self.out_rhs.type)} != {expected}:
            self.fail(f"requires results of type {expected}, but got {self.out_lhs.type} and {self.out_rhs.type}")


class TransOp(_Move, dialect=Tt, name="trans"):
    """Permutes the dimensions: dimension i of the result is dimension `order[i]` of the operand."""

    src: Operand[Tensor]
    order: Attribute[Int32Array]
    result: Result[Tensor]

    def verify_shapes(self, src: tuple[int, ...], result: tuple[int, ...]) -> None:
        if sorted(self.order) != list(range(len(src))):
            self.fail(f"'order' must be a permutation of {list(range(len(src)))}, but got {list(self.order)}")
        self.expect(result, tuple(src[i] for i in self.order))


class HistogramOp(Operation, dialect=Tt, name="histogram"):
    """Counts how often each integer from 0 on occurs, among the elements whose mask bit is set."""

    src: Operand[IntTensor]
    mask: Operand[BoolLike] | None = None
    result: Result[IntTensor]

    effects = frozenset()
    assembly_format = "$src (`,` $mask^)? attr-dict `:` type($src) `->` type($result)"

    @classmethod
    def infer(cls, parsed: ParsedOp) -> dict[str, str]:
        return {"mask": shaped_like(parsed.type_of("src"), "i1")} if parsed.operands.get("mask") else {}

    def verify_op(self) -> None:
        if len(_shape(self.result)) != 1:
            self.fail(f"requires a result of one dimension, but got {self.result.type}")
        if self.mask is not None and _shape(self.mask) != _shape(self.src):
            self.fail(f"requires a mask of type {shaped_like(str(self.src.type), 'i1')}, but got {self.mask.type}")


class GatherOp(Operation, dialect=Tt, name="gather"):
    """Takes along an axis the elements that indices name; the other dimensions are the index's own."""

    src: Operand[Tensor]
    indices: Operand[IntTensor]
    axis: Attribute[Int32]
    efficient_layout: Attribute[Unit] | None = None
    result: Result[Tensor]

    effects = frozenset()
    assembly_format = "$src `` `[` $indices `]` attr-dict `:` functional-type($src, $indices, $result)"

    def verify_op(self) -> None:
        src, indices = _shape(self.src), _shape(self.indices)
        if len(src) != len(indices):
            self.fail(f"requires indices of rank {len(src)}, but got {self.indices.type}")
        if not 0 <= self.axis < len(src):
            self.fail(f"'axis' must be from 0 to {len(src) - 1}, but got {self.axis}")
        expected = tensor_text(indices, _element(self.src))
        if str(self.result.type) != expected:
            self.fail(f"requires a result of type {expected}, but got {self.result.type}")
        for i, (have, want) in enumerate(zip(src, indices)):
            if i != self.axis and want != have:
                self.fail(f"dimension {i} of the indices has size {want}, but that of the operand has size {have}")


# Reductions by a region.


class _Folding(Operation):
    """Ops with a region that combines two elements of each operand."""

    def check_folding(self, srcs: Sequence[Any], axis: int) -> tuple[int, ...]:
        """Check operands and axis; the operands' shape."""
        if not srcs:
            self.fail("requires at least one operand")
        check_shapes(self, *srcs)
        shape = _shape(srcs[0])
        if not 0 <= axis < len(shape):
            self.fail(f"'axis' must be from 0 to {len(shape) - 1}, but got {axis}")
        return shape

    def check_results(self, srcs: Sequence[Any], results: Sequence[Any], shape: tuple[int, ...]) -> None:
        """Check that there is a result of this shape for each operand."""
        expected = [tensor_text(shape, _element(s)) if shape else _element(s) for s in srcs]
        if [str(r.type) for r in results] != expected:
            self.fail(
                f"requires results of types {', '.join(expected)}, but got {', '.join(str(r.type) for r in results)}"
            )


class ReduceOp(_Folding, dialect=Tt, name="reduce"):
    """Combines the elements along an axis, in any order, by a region that combines two.

    The region gets an element of each operand and then another of each, and ends with `tt.reduce.return`.
    """

    srcs: Sequence[Operand[Tensor]]
    axis: Attribute[Int32]
    combine_op: Region
    result: Sequence[Result[Number]]

    effects = frozenset()
    quoted = True
    mixed = frozenset(["srcs", "result"])
    assembly_format = "`` `(` $srcs `)` prop-dict `(` $combine_op `)` attr-dict `:` functional-type($srcs, $result)"

    def verify_op(self) -> None:
        shape = self.check_folding(self.srcs, self.axis)
        self.check_results(self.srcs, self.result, shape[: self.axis] + shape[self.axis + 1 :])


class ScanOp(_Folding, dialect=Tt, name="scan"):
    """Combines each element with all before it along an axis, or with all after it, by a region that combines two."""

    srcs: Sequence[Operand[Tensor]]
    axis: Attribute[Int32]
    reverse: Attribute[bool]
    combine_op: Region
    result: Sequence[Result[Tensor]]

    effects = frozenset()
    quoted = True
    mixed = frozenset(["srcs", "result"])
    assembly_format = ReduceOp.assembly_format

    def verify_op(self) -> None:
        self.check_results(self.srcs, self.result, self.check_folding(self.srcs, self.axis))


# Products of matrices.


class _Product(Operation):
    """Products of the matrices `a` and `b`, or of batches of them, to which `c` is added."""

    effects = frozenset()

    @classmethod
    def infer(cls, parsed: ParsedOp) -> dict[str, str]:
        return {"c": parsed.type_of("d")}

    def factors(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shapes of `a` and `b` in elements."""
        a, b, *_ = self.operation.operands
        return _shape(a), _shape(b)

    def verify_op(self) -> None:
        a, b, c = list(self.operation.operands)[:3]
        d = self.operation.results[0]
        if {len(_shape(v)) for v in (a, b, c)} not in ({2}, {3}):
            self.fail(f"requires matrices, or three dimensions, but got {a.type}, {b.type} and {c.type}")
        if c.type != d.type:
            self.fail(f"the result must have the type of 'c', {c.type}, but got {d.type}")
        (*batch, m, columns), (*other, rows, n) = self.factors()
        if columns != rows:
            self.fail(f"'a' has {columns} columns, but 'b' has {rows} rows")
        if batch != other or _shape(c) != (*batch, m, n):
            expected = "x".join(map(str, (*batch, m, n)))
            self.fail(f"'c' must be {expected} for {a.type} times {b.type}, but got {c.type}")


class DotOp(_Product, dialect=Tt, name="dot"):
    """Multiplies matrices and adds: `d = a x b + c`. Three dimensions are a batch of matrices.

    Products of f32 are made as `inputPrecision` says: `ieee` is one fused multiply-add each.
    """

    a: Operand[NumberTensor]
    b: Operand[NumberTensor]
    c: Operand[NumberTensor]
    inputPrecision: Attribute[InputPrecision] = default(InputPrecision.ieee)
    maxNumImpreciseAcc: Attribute[Int32] = default(0)
    d: Result[NumberTensor]

    assembly_format = (
        "$a `,` $b `,` $c (`,` `inputPrecision` `=` $inputPrecision^)? attr-dict `:` "
        "type($a) `*` type($b) `->` type($d)"
    )

    def verify_op(self) -> None:
        super().verify_op()
        if element_bits(_element(self.a)) != element_bits(_element(self.b)):
            self.fail(f"requires elements of 'a' and 'b' of one width, but got {self.a.type} and {self.b.type}")


PACKED = {ScaleDotElemType.e2m1: 2}
"""The elements in a byte, of the types that have more than one."""

_STORED = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2", "bf16": "bf16", "fp16": "f16"}
"""The element types of factors other than bytes, by the names of `ScaleDotElemType`."""

BLOCKS = (32, 16)
"""The elements along K that one scale may be for."""


class DotScaledOp(_Product, dialect=Tt, name="dot_scaled"):
    """Multiplies block-scaled matrices and adds. Each scale, a power of two, is that of 16 or 32 elements along K.

    Elements of fewer than 8 bits are packed in bytes: along K, or along the other dimension without `lhs_k_pack` and
    `rhs_k_pack`. The scales of `b` are transposed: a row for each column of `b`.
    """

    a: Operand[FactorTensor]
    b: Operand[FactorTensor]
    c: Operand[F32Tensor]
    a_scale: Operand[ScaleTensor] | None = None
    b_scale: Operand[ScaleTensor] | None = None
    a_elem_type: Attribute[ScaleDotElemType]
    b_elem_type: Attribute[ScaleDotElemType]
    fastMath: Attribute[bool]
    lhs_k_pack: Attribute[bool] = default(True)
    rhs_k_pack: Attribute[bool] = default(True)
    d: Result[F32Tensor]

    assembly_format = (
        "$a (`scale` $a_scale^)? `,` $b (`scale` $b_scale^)? `,` $c `lhs` `=` $a_elem_type `rhs` `=` $b_elem_type "
        "attr-dict `:` type($a) (`,` type($a_scale)^)? `*` type($b) (`,` type($b_scale)^)? `->` type($d)"
    )

    def factors(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        (*batch, m, k), (*other, rows, n) = super().factors()
        left, right = PACKED.get(self.a_elem_type, 1), PACKED.get(self.b_elem_type, 1)
        m, k = (m, k * left) if self.lhs_k_pack else (m * left, k)
        rows, n = (rows * right, n) if self.rhs_k_pack else (rows, n * right)
        return (*batch, m, k), (*other, rows, n)

    def verify_op(self) -> None:
        for name, factor, kind in (("a", self.a, self.a_elem_type), ("b", self.b, self.b_elem_type)):
            stored = _STORED.get(kind.name, "i8")
            if _element(factor) != stored and not (element_bits(stored) == 8 and _element(factor) == "i8"):
                self.fail(f"'{name}' of type {kind.name} must have elements {stored}, but got {factor.type}")
        super().verify_op()
        (*batch, m, k), (*_, n) = self.factors()
        expected = [((*batch, m, k // block), (*batch, n, k // block)) for block in BLOCKS]
        scales = {"a_scale": self.a_scale, "b_scale": self.b_scale}
        for i, (name, scale) in enumerate(scales.items()):
            shapes = [shape[i] for shape in expected]
            if scale is not None and _shape(scale) not in shapes:
                text = " or ".join("x".join(map(str, shape)) for shape in shapes)
                self.fail(f"'{name}' must be {text} for {k} elements along K, but got {scale.type}")
        present = [scale for scale in scales.values() if scale is not None]
        if len({_shape(scale)[-1] for scale in present}) > 1:
            self.fail(f"requires scales of as many elements each, but got {present[0].type} and {present[1].type}")


# Functions and terminators, which MLIR holds as its own.


class FuncOp(CarriedOperation, dialect=Tt, name="func", carrier="func.func"):
    """A function. A kernel is public, and gives no results."""


class CallOp(CarriedOperation, dialect=Tt, name="call", carrier="func.call"):
    """Calls a function."""


class ReturnOp(CarriedOperation, dialect=Tt, name="return", carrier="func.return"):
    """Ends a function."""


class ReduceReturnOp(CarriedOperation, dialect=Tt, name="reduce.return", carrier="vector.yield"):
    """Ends the region of `tt.reduce`."""


class ScanReturnOp(CarriedOperation, dialect=Tt, name="scan.return", carrier="vector.yield"):
    """Ends the region of `tt.scan`."""


class MapElementwiseReturnOp(CarriedOperation, dialect=Tt, name="map_elementwise.return", carrier="vector.yield"):
    """Ends the region of `tt.map_elementwise`."""


# Rules of regions, and of all tensors.


@Tt.rule
def check_regions(ops: Sequence[ir.OpView], bodies: PendingFunctions) -> Iterator[Diagnostic]:
    """Check that regions get and give the elements of their op's tensors."""
    for op in ops:
        if isinstance(op, MapElementwiseOp):
            gets = [_element(v) for v in op.srcs for _ in range(op.pack)]
            gives = [_element(v) for v in op.result for _ in range(op.pack)]
        elif isinstance(op, (ReduceOp, ScanOp)):
            gives = [_element(v) for v in op.srcs]
            gets = gives + gives
        else:
            continue
        region = op.operation.regions[0]
        argument_types = [str(a.type) for a in region.blocks[0].arguments]
        if argument_types != gets:
            yield op_error(op, f"requires a region of arguments {', '.join(gets)}, but got {', '.join(argument_types)}")
            continue
        if isinstance(op, _Folding) and len(list(region.blocks)) != 1:
            yield op_error(op, "requires a region of one block")
        for block in region.blocks:
            end = list(block.operations)[-1].operation
            returned_types = [str(v.type) for v in end.operands]
            if end.name == "vector.yield" and returned_types != gives:
                message = f"must return {', '.join(gives)}, but got {', '.join(returned_types) or 'nothing'}"
                yield Diagnostic("error", f"'{op.OPERATION_NAME}.return' op {message}", position_of(end.location))


@Tt.rule
def check_sizes(ops: Sequence[ir.OpView], bodies: PendingFunctions) -> Iterator[Diagnostic]:
    """Check that tensors have a power of two of elements."""
    for op in ops:
        for value in (*op.operation.operands, *op.operation.results):
            shape, _ = shape_and_element(value)
            size = math.prod(shape or ())
            if size & (size - 1):
                yield op_error(op, f"requires tensors of a power of two of elements, but got {value.type}")
                break
            if size > MOST_ELEMENTS:
                yield op_error(op, f"requires tensors of at most {MOST_ELEMENTS} elements, but got {value.type}")
                break
