"""Triton's ops that compute element by element, on pointers and numbers, and the ops of a program's place."""

from collections.abc import Sequence
from typing import Any

from xegpu_py.dialects.tt.types import (
    I32,
    BoolLike,
    F32Like,
    FloatLike,
    I64Like,
    Int32,
    Int32Array,
    Int32EnumCodec,
    IntLike,
    IntTensor,
    Number,
    ProgramDim,
    PropagateNan,
    PtrLike,
    RoundingMode,
    Tensor,
    Tt,
    element_bits,
    shape_and_element,
)
from xegpu_py.ir.builtin import bit_width
from xegpu_py.ir.codecs import register_codec
from xegpu_py.ir.definition import Attribute, Operand, Region, Result
from xegpu_py.ir.operation import Operation, ParsedOp

for _cases in (ProgramDim, PropagateNan, RoundingMode):
    register_codec(_cases, Int32EnumCodec(_cases))


def alike(parsed: ParsedOp, first: str, *others: str) -> dict[str, str]:
    """The type of the field `known`, for other fields that have values."""
    text = parsed.type_of(first)
    return {name: text for name in others if parsed.operands.get(name, True)}


def check_shapes(op: Any, *values: Any) -> None:
    """Check that values have the shape of the first, or are no tensors as it is none."""
    shape, _ = shape_and_element(values[0])
    for value in values[1:]:
        if shape_and_element(value)[0] != shape:
            op.fail(f"requires operands and results of one shape, but got {values[0].type} and {value.type}")


# Conversions.


class _Conversion(Operation):
    """Ops of one operand `src` that keep the shape."""

    effects = frozenset()
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"

    def verify_op(self) -> None:
        src, result = self.operation.operands[0], self.operation.results[0]
        check_shapes(self, src, result)
        self.verify_elements(shape_and_element(src)[1], shape_and_element(result)[1])

    def verify_elements(self, src: str, result: str) -> None:
        """Check the elements' types."""


class IntToPtrOp(_Conversion, dialect=Tt, name="int_to_ptr"):
    """Takes integers for addresses."""

    src: Operand[I64Like]
    result: Result[PtrLike]


class PtrToIntOp(_Conversion, dialect=Tt, name="ptr_to_int"):
    """Gives addresses as integers."""

    src: Operand[PtrLike]
    result: Result[I64Like]


class BitcastOp(_Conversion, dialect=Tt, name="bitcast"):
    """Takes the bits of numbers for numbers of another type; of pointers, for pointers to another type."""

    src: Operand[Number]
    result: Result[Number]

    def verify_elements(self, src: str, result: str) -> None:
        pointers = [element.startswith("!tt.ptr<") for element in (src, result)]
        if pointers[0] != pointers[1]:
            self.fail("cannot bitcast between pointers and numbers", "use tt.int_to_ptr or tt.ptr_to_int")
        if element_bits(src) != element_bits(result):
            self.fail(
                f"requires types of one width, but {src} has {element_bits(src)} bits and {result} has "
                f"{element_bits(result)}"
            )


class FpToFpOp(_Conversion, dialect=Tt, name="fp_to_fp"):
    """Converts floating-point numbers to another type. A conversion to fewer bits says how it rounds.

    Numbers beyond the greatest of an 8-bit type become the greatest, as Triton's conversions saturate.
    """

    src: Operand[FloatLike]
    rounding: Attribute[RoundingMode] | None = None
    result: Result[FloatLike]

    assembly_format = "$src attr-dict (`,` `rounding` `=` $rounding^)? `:` type($src) `->` type($result)"

    def verify_elements(self, src: str, result: str) -> None:
        if bit_width(result) < bit_width(src) and self.rounding is None:
            self.fail(f"requires a rounding mode for {src} to {result}", "write ', rounding = rtne' or rtz")


# Arithmetic that arith and math do not have.


class ClampFOp(Operation, dialect=Tt, name="clampf"):
    """Brings numbers into a range. A NaN among `x` becomes `min`, unless NaN operands are to make NaN."""

    x: Operand[FloatLike]
    min: Operand[FloatLike]
    max: Operand[FloatLike]
    propagateNan: Attribute[PropagateNan]
    result: Result[FloatLike]

    effects = frozenset()
    assembly_format = "$x `,` $min `,` $max `,` `propagateNan` `=` $propagateNan attr-dict `:` type($result)"

    @classmethod
    def infer(cls, parsed: ParsedOp) -> dict[str, str]:
        return alike(parsed, "result", "x", "min", "max")

    def verify_op(self) -> None:
        for name in ("x", "min", "max"):
            if getattr(self, name).type != self.result.type:
                self.fail(f"'{name}' must have the result's type {self.result.type}")


class _Unary(Operation):
    effects = frozenset()
    assembly_format = "$x attr-dict `:` type($x)"
    same_type = ("result", "x")


class _Binary(Operation):
    effects = frozenset()
    assembly_format = "$x `,` $y attr-dict `:` type($x)"

    @classmethod
    def infer(cls, parsed: ParsedOp) -> dict[str, str]:
        return alike(parsed, "x", "y", "result")

    def verify_op(self) -> None:
        x, y = self.operation.operands
        for name, value in (("y", y), ("result", self.operation.results[0])):
            if value.type != x.type:
                self.fail(f"'{name}' must have the type of 'x', {x.type}, but got {value.type}")


class PreciseSqrtOp(_Unary, dialect=Tt, name="precise_sqrt"):
    """The square root, correctly rounded."""

    x: Operand[FloatLike]
    result: Result[FloatLike]


class PreciseDivFOp(_Binary, dialect=Tt, name="precise_divf"):
    """The quotient, correctly rounded."""

    x: Operand[FloatLike]
    y: Operand[FloatLike]
    result: Result[FloatLike]


class ApproxDivFOp(_Binary, dialect=Tt, name="approx_divf"):
    """The quotient with an error of a few units in the last place; here it is correctly rounded."""

    x: Operand[F32Like]
    y: Operand[F32Like]
    result: Result[F32Like]


class MulhiUIOp(_Binary, dialect=Tt, name="mulhiui"):
    """The upper half of the product of unsigned integers."""

    x: Operand[IntLike]
    y: Operand[IntLike]
    result: Result[IntLike]


class AddPtrOp(Operation, dialect=Tt, name="addptr"):
    """Moves pointers by offsets in elements of the pointee. Offsets are signed."""

    ptr: Operand[PtrLike]
    offset: Operand[IntLike]
    result: Result[PtrLike]

    effects = frozenset()
    assembly_format = "$ptr `,` $offset attr-dict `:` type($result) `,` type($offset)"

    @classmethod
    def infer(cls, parsed: ParsedOp) -> dict[str, str]:
        return alike(parsed, "result", "ptr")

    def verify_op(self) -> None:
        check_shapes(self, self.ptr, self.offset)
        if self.ptr.type != self.result.type:
            self.fail(f"the result must have the pointer's type {self.ptr.type}, but got {self.result.type}")


# Code that is not Triton's: functions of a library, assembly, and the body of `map_elementwise`.


class ExternElementwiseOp(Operation, dialect=Tt, name="extern_elementwise"):
    """Calls a function of a library for each element, by its symbol."""

    srcs: Sequence[Operand[Number]]
    libname: Attribute[str]
    libpath: Attribute[str]
    pure: Attribute[bool]
    symbol: Attribute[str]
    result: Result[Number]

    mixed = frozenset(["srcs"])
    assembly_format = "$srcs attr-dict `:` functional-type($srcs, $result)"

    def verify_op(self) -> None:
        if self.srcs:
            check_shapes(self, *self.srcs, self.result)


class ElementwiseInlineAsmOp(Operation, dialect=Tt, name="elementwise_inline_asm"):
    """Runs assembly of another machine for each element, or for several that are packed in a register."""

    asm_string: Attribute[str]
    constraints: Attribute[str]
    packed_element: Attribute[Int32]
    pure: Attribute[bool]
    args: Sequence[Operand[Any]]
    result: Sequence[Result[Number]]

    mixed = frozenset(["args", "result"])
    assembly_format = "$asm_string attr-dict ($args^ `:` type($args))? `->` type($result)"

    def verify_op(self) -> None:
        if not self.result:
            self.fail("requires at least one result")
        tensors = [v for v in (*self.args, *self.result) if shape_and_element(v)[0] is not None]
        if tensors:
            check_shapes(self, *tensors, *self.result)


class MapElementwiseOp(Operation, dialect=Tt, name="map_elementwise"):
    """Runs a region of numbers for each element, or for `pack` neighbours at a time.

    The region gets, for each operand, the numbers of a pack, and ends with `tt.map_elementwise.return`, which has those
    of each result. It may have several blocks.
    """

    srcs: Sequence[Operand[Tensor]]
    pack: Attribute[Int32]
    scalar_op: Region
    result: Sequence[Result[Tensor]]

    quoted = True
    mixed = frozenset(["srcs", "result"])
    assembly_format = "`` `(` $srcs `)` prop-dict `(` $scalar_op `)` attr-dict `:` functional-type($srcs, $result)"

    def verify_op(self) -> None:
        if not self.srcs:
            self.fail("requires at least one operand")
        check_shapes(self, *self.srcs, *self.result)
        if self.pack < 1:
            self.fail(f"'pack' must be at least 1, but got {self.pack}")


# Sources of numbers.


class MakeRangeOp(Operation, dialect=Tt, name="make_range"):
    """The integers from `start` to `end`, which is left out."""

    end: Attribute[Int32]
    start: Attribute[Int32]
    result: Result[IntTensor]

    effects = frozenset()
    assembly_format = "attr-dict `:` type($result)"

    def verify_op(self) -> None:
        shape, element = shape_and_element(self.result)
        if self.start >= self.end:
            self.fail(f"'end' must be greater than 'start', but got {self.start} and {self.end}")
        if shape != (self.end - self.start,) or element != "i32":
            self.fail(f"requires a result of type tensor<{self.end - self.start}xi32>, but got {self.result.type}")


class GetProgramIdOp(Operation, dialect=Tt, name="get_program_id"):
    """The place of this program in the grid, along an axis."""

    axis: Attribute[ProgramDim]
    result: Result[I32]

    effects = frozenset()
    assembly_format = "$axis attr-dict `:` type($result)"


class GetNumProgramsOp(Operation, dialect=Tt, name="get_num_programs"):
    """The number of programs in the grid, along an axis."""

    axis: Attribute[ProgramDim]
    result: Result[I32]

    effects = frozenset()
    assembly_format = "$axis attr-dict `:` type($result)"


# Hints and assertions of a program.


class PrintOp(Operation, dialect=Tt, name="print"):
    """Prints a text and values: all elements of tensors."""

    prefix: Attribute[str]
    hex: Attribute[bool]
    isSigned: Attribute[Int32Array]
    args: Sequence[Operand[Number]]

    effects = frozenset(["write"])
    mixed = frozenset(["args"])
    assembly_format = "$prefix attr-dict (`:` $args^ `:` type($args))?"


class AssertOp(Operation, dialect=Tt, name="assert"):
    """Ends the program with a message, where the condition, or an element of it, is false."""

    condition: Operand[BoolLike]
    message: Attribute[str]

    effects = frozenset(["write"])
    assembly_format = "$condition `,` $message attr-dict `:` type($condition)"
