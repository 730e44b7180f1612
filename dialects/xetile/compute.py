"""Ops on the vectors that tiles are loaded into."""

from typing import Any

from xegpu_py.dialects.xegpu.matrix import FACTORS, SCALE, SCALE_BLOCK, accumulators, scaled_accumulators
from xegpu_py.dialects.xetile.checks import check_map
from xegpu_py.dialects.xetile.types import ReductionKind, WgMap, XeTile
from xegpu_py.ir.builtin import by, is_float, vector_of, vector_text
from xegpu_py.ir.constraints import Vector
from xegpu_py.ir.definition import Attribute, Operand, Result
from xegpu_py.ir.operation import Operation


class TileMmaOp(Operation, dialect=XeTile, name="tile_mma"):
    """Multiplies matrices: `d = a x b`, or `d = a x b + c`.

    `a` is MxK, `b` KxN, `c` and `d` MxN. The maps say which parts each subgroup works on: `wg_map_c` is that of `c`
    and `d`. A subgroup multiplies the rows of `a` and the columns of `b` that its part of `d` has, over all of K;
    factors whose maps give them to others are exchanged through shared local memory.

    With scales the factors are block-scaled, as those of `xegpu.dpas_mx`: `scale_a` is Mxceil(K/32), and `scale_b`
    ceil(K/32)xN. A subgroup has the scales of its rows and columns.
    """

    a: Operand[Vector]
    b: Operand[Vector]
    c: Operand[Vector] | None = None
    scale_a: Operand[Vector] | None = None
    scale_b: Operand[Vector] | None = None
    d: Result[Vector]
    wg_map_a: Attribute[WgMap] | None = None
    wg_map_b: Attribute[WgMap] | None = None
    wg_map_c: Attribute[WgMap] | None = None

    effects = frozenset()
    assembly_format = (
        "$a `,` $b (`,` $c^)? (`scale_a` `=` $scale_a^)? (`scale_b` `=` $scale_b^)? attr-dict `:` "
        "type($a) `,` type($b) (`,` type($c)^)? (`,` type($scale_a)^)? (`,` type($scale_b)^)? `->` type($d)"
    )

    def verify_op(self) -> None:
        (a, a_element), (b, b_element), (d, d_element) = (vector_of(str(v.type)) for v in (self.a, self.b, self.d))
        for name, shape in (("a", a), ("b", b), ("d", d)):
            if len(shape) != 2:
                self.fail(f"'{name}' must be a matrix, but got {getattr(self, name).type}")
        if a[1] != b[0]:
            self.fail(f"'a' has {a[1]} columns, but 'b' has {b[0]} rows")
        if d != (a[0], b[1]):
            self.fail(f"'d' must be {a[0]}x{b[1]} for {by(a)} times {by(b)}, but got {by(d)}")
        if self.c is not None and self.c.type != self.d.type:
            self.fail(f"'c' must have the type of the result, {self.d.type}, but got {self.c.type}")
        scaled = self.is_scaled
        known = (scaled_accumulators if scaled else accumulators)(a_element, b_element)
        if not known:
            self.fail(f"cannot multiply {a_element} by {b_element}", FACTORS[scaled])
        self._verify_scales(a, b)
        if d_element not in known:
            self.fail(f"result of {a_element} x {b_element} must be of {' or '.join(known)}, but got {d_element}")
        self._verify_maps(a, b, d)

    @property
    def is_scaled(self) -> bool:
        """Whether the factors have scales."""
        return self.scale_a is not None or self.scale_b is not None

    def _verify_scales(self, a: tuple[int, ...], b: tuple[int, ...]) -> None:
        blocks = -(-a[1] // SCALE_BLOCK)
        scales = {"scale_a": (self.scale_a, (a[0], blocks)), "scale_b": (self.scale_b, (blocks, b[1]))}
        for name, (value, shape) in scales.items():
            wanted = vector_text(shape, SCALE)
            if value is not None and str(value.type) != wanted:
                note = f"{SCALE_BLOCK} elements of K share a scale"
                self.fail(f"'{name}' must be {wanted}, but got {value.type}", note)

    def _verify_maps(self, a: tuple[int, ...], b: tuple[int, ...], d: tuple[int, ...]) -> None:
        maps = {"a": self.wg_map_a, "b": self.wg_map_b, "c": self.wg_map_c}
        for (name, wg_map), shape in zip(maps.items(), (a, b, d)):
            check_map(self, f"wg_map_{name}", wg_map, shape)
        counts = {name: subgroups(m) for name, m in maps.items() if m}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"wg_map_{name} has {count}" for name, count in counts.items())
            self.fail(f"requires maps of the same number of subgroups, but {listed}")


class TransposeOp(Operation, dialect=XeTile, name="transpose"):
    """Swaps the dimensions of a matrix. `permutation` is `[1, 0]`; `[0, 1]` leaves it as it is.

    At workgroup level `map` says which subgroup has which part of the result, as it does for the ops below.
    """

    value: Operand[Vector]
    permutation: Attribute[tuple[int, ...]]
    result: Result[Vector]
    map: Attribute[WgMap] | None = None

    effects = frozenset()
    assembly_format = "$value `,` $permutation attr-dict `:` type($value) `->` type($result)"
    also_reads = ("$value $permutation attr-dict `:` type($value) `->` type($result)",)

    def verify_op(self) -> None:
        shape, element = vector_of(str(self.value.type))
        if len(shape) != 2:
            self.fail(f"requires a matrix, but got {self.value.type}")
        if sorted(self.permutation) != [0, 1]:
            self.fail(f"permutation must be [1, 0] or [0, 1], but got {list(self.permutation)}")
        wanted = vector_text(tuple(shape[i] for i in self.permutation), element)
        if str(self.result.type) != wanted:
            self.fail(f"result must be {wanted}, but got {self.result.type}")
        check_map(self, "map", self.map, vector_of(wanted)[0])


REDUCED_ROWS, REDUCED_BYTES = 8, 64
"""Rows, and bytes of a row, that a reduction combines with their like before it combines what is in them.

This is the order of sums that docs/numerics.md gives; it has nothing to do with what the hardware has.
"""


def reduced_block(dim: int, bits: int) -> int:
    """The number of elements along a dimension in a block of a reduction.

    Args:
        bits: of an element.
    """
    return REDUCED_ROWS if dim == 0 else REDUCED_BYTES * 8 // max(bits, 8)


class ReductionOp(Operation, dialect=XeTile, name="reduction", also_named=("reduce",)):
    """Combines the elements along a dimension, which has size 1 then.

    With `reduction_size = n` each n elements that follow each other are combined, and one of them is left.

        %r = xetile.reduction <add>, %v [1] : vector<64x32xf32> -> vector<64x1xf32>
        %p = xetile.reduction <add>, %v [1] {reduction_size = 8} : vector<64x32xf32> -> vector<64x4xf32>
    """

    kind: Attribute[ReductionKind]
    value: Operand[Vector]
    dims: Attribute[tuple[int, ...]]
    result: Result[Vector]
    reduction_size: Attribute[int] | None = None
    map: Attribute[WgMap] | None = None

    effects = frozenset()
    assembly_format = "`<` $kind `>` `,` $value (`,`)? $dims attr-dict `:` type($value) `->` type($result)"

    def verify_op(self) -> None:
        shape, element = vector_of(str(self.value.type))
        check_dimension(self, shape)
        kind: str = self.kind.value
        if kind not in ("add", "mul") and kind.endswith("f") != is_float(element):
            wanted = "floating-point" if kind.endswith("f") else "integer"
            self.fail(f"<{kind}> requires {wanted} elements, but got {element}")
        (dim,) = self.dims
        size = shape[dim] if self.reduction_size is None else self.reduction_size
        if size < 1 or shape[dim] % size:
            self.fail(f"reduction_size = {size} does not divide the {shape[dim]} elements along dimension {dim}")
        wanted = vector_text(tuple(n // size if i == dim else n for i, n in enumerate(shape)), element)
        if str(self.result.type) != wanted:
            self.fail(f"result must be {wanted}, but got {self.result.type}")
        check_map(self, "map", self.map, vector_of(wanted)[0])


class BroadcastOp(Operation, dialect=XeTile, name="broadcast"):
    """Repeats a matrix along a dimension, which has size 1 in the operand.

    With `broadcast_size = n` each element is repeated n times instead, whatever the dimension's size.

        %b = xetile.broadcast %v [0] : vector<1x32xf32> -> vector<64x32xf32>
        %p = xetile.broadcast %v [1] {broadcast_size = 8} : vector<64x4xf32> -> vector<64x32xf32>
    """

    value: Operand[Vector]
    dims: Attribute[tuple[int, ...]]
    result: Result[Vector]
    broadcast_size: Attribute[int] | None = None
    map: Attribute[WgMap] | None = None

    effects = frozenset()
    assembly_format = "$value (`,`)? $dims attr-dict `:` type($value) `->` type($result)"

    def verify_op(self) -> None:
        (shape, element), (wide, wide_element) = (vector_of(str(v.type)) for v in (self.value, self.result))
        check_dimension(self, shape)
        (dim,) = self.dims
        if wide_element != element or len(wide) != 2 or wide[1 - dim] != shape[1 - dim]:
            self.fail(f"cannot broadcast {self.value.type} to {self.result.type} along dimension {dim}")
        check_map(self, "map", self.map, wide)
        if self.broadcast_size is None:
            if shape[dim] != 1:
                self.fail(
                    f"requires size 1 along dimension {dim}, but got {self.value.type}",
                    "with broadcast_size = n each element is repeated n times",
                )
        elif self.broadcast_size < 1 or shape[dim] * self.broadcast_size != wide[dim]:
            self.fail(
                f"broadcast_size = {self.broadcast_size} makes {shape[dim]} elements "
                f"{shape[dim] * self.broadcast_size}, not {wide[dim]}"
            )


def check_dimension(op: Any, shape: tuple[int, ...]) -> None:
    """Check that the op's `dims` are one dimension of a matrix."""
    if len(shape) != 2:
        op.fail(f"requires a matrix, but got {op.value.type}")
    if op.dims not in ((0,), (1,)):
        op.fail(f"dimension must be [0] or [1], but got {list(op.dims)}")


class ConvertLayoutOp(Operation, dialect=XeTile, name="convert_layout"):
    """Gives each subgroup the part of a value that `wg_map_result` says, where it had that of `wg_map_source`.

    Without `wg_map_source` it is the map that the value has.
    """

    value: Operand[Vector]
    result: Result[Vector]
    wg_map_result: Attribute[WgMap]
    wg_map_source: Attribute[WgMap] | None = None

    effects = frozenset()
    same_type = ("result", "value")
    assembly_format = "$value attr-dict `:` type($value)"

    def verify_op(self) -> None:
        if self.result.type != self.value.type:
            self.fail(f"result must have the operand's type {self.value.type}, but got {self.result.type}")
        shape, _ = vector_of(str(self.value.type))
        check_map(self, "wg_map_result", self.wg_map_result, shape)
        check_map(self, "wg_map_source", self.wg_map_source, shape)
        source = self.wg_map_source
        if source and subgroups(source) != subgroups(self.wg_map_result):
            self.fail(
                f"needs as many subgroups in both maps, but {subgroups(source)} have the source and "
                f"{subgroups(self.wg_map_result)} the result"
            )


def subgroups(wg_map: WgMap) -> int:
    """The number of subgroups of a map."""
    count = 1
    for n in wg_map.sg_layout:
        count *= n
    return count
