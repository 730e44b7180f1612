"""Ops on vectors in registers."""

from enum import Enum

from xegpu_py.dialects.xegpu.types import XeGPU
from xegpu_py.ir.builtin import bit_width, by, vector_of
from xegpu_py.ir.constraints import Vector
from xegpu_py.ir.definition import Attribute, Operand, Result, enum_attr
from xegpu_py.ir.operation import Operation

NARROW_FLOATS = ("f8E5M2", "f8E4M3FN", "f4E2M1FN")
"""The formats that `xegpu.truncf` rounds to."""

WIDE_FLOATS = ("f32", "f16", "bf16")
"""The formats that it rounds."""


class TruncfOp(Operation, dialect=XeGPU, name="truncf"):
    """Rounds to a format of 8 or 4 bits: to nearest even, and saturated (OCP Microscaling Formats 1.0, section 6.3).

    What is beyond the greatest number of the format, infinities too, becomes that number with its sign. NaN gives the
    canonical NaN; f4E2M1FN has none, and gives its greatest number. The op is upstream MLIR's.
    """

    source: Operand[Vector]
    result: Result[Vector]

    effects = frozenset()
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def verify_op(self) -> None:
        (shape, source), (to, result) = (vector_of(str(v.type)) for v in (self.source, self.result))
        if source not in WIDE_FLOATS or result not in NARROW_FLOATS:
            self.fail(
                f"cannot round {source} to {result}",
                f"it rounds {', '.join(WIDE_FLOATS)} to {', '.join(NARROW_FLOATS)}; use arith.truncf for others",
            )
        if shape != to:
            self.fail(f"result must have the operand's shape {by(shape)}, but got {self.result.type}")
        if bit_width(result) < 8 and (not shape or shape[-1] % 2):
            self.fail(f"requires rows of even length to pack {result} in bytes, but got {self.result.type}")


@enum_attr(XeGPU, "lane_shuffle_mode")
class LaneShuffleMode(str, Enum):
    """Whether a lane's elements become consecutive ones of the subgroup's, or stop being so."""

    PACK = "pack"
    UNPACK = "unpack"


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
        shape, element = vector_of(str(self.source.type))
        if self.result.type != self.source.type:
            self.fail(f"result must have the operand's type {self.source.type}, but got {self.result.type}")
        if len(shape) != 1:
            self.fail(f"requires a 1D vector, the fragment of a work item, but got {self.source.type}")
        if element == "i1" or (element != "index" and bit_width(element) < 8):
            self.fail(f"requires elements of whole bytes, but got {self.source.type}", "use vector.bitcast to i8")
