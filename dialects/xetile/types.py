"""The XeTile dialect, its maps and tiles, and the rules that its ops share."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from mlir import ir

from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu.op_interfaces import check_hints, check_value
from xegpu_py.ir.builtin import CombiningKind, bit_width, by, is_float, is_integer, shape_of, vector_text
from xegpu_py.ir.codecs import AttributeCodec, Cursor, ParserScope, TypeText
from xegpu_py.ir.definition import Attr, Dialect, Interface, Type, enum_attr
from xegpu_py.layout import dealing_problem

# The dialect itself, its attributes, and the type of a tile.

GLOBAL, SHARED = 0, 3
"""Memory spaces that a tile may lie in."""


class XeTile(Dialect, name="xetile"):
    """Kernels in terms of tiles: parts of matrices that a workgroup or a subgroup works on as a whole.

    A tile says where in memory it lies; loading one gives a vector of its shape. At workgroup level a tile has a
    `wg_map`, which says on which part each subgroup works, and so has each vector, by the `map` attribute of the op
    that makes it or by what is known of its producers and consumers. At subgroup level there are no maps. arith, math,
    vector and scf ops stand between the ops of this dialect.
    """

    spellings = ("XeTile", "Xetile")
    attribute_spellings: ClassVar = {"l1": "l1_hint", "l2": "l2_hint", "l3": "l3_hint"}
    borrowed: ClassVar = {"cache_hint": xegpu.XeGPU.enums["cache_hint"]}


ReductionKind: TypeAlias = CombiningKind

enum_attr(XeTile, "reduction_kind")(CombiningKind)


class WgMap(Attr, dialect=XeTile, name="wg_map"):
    """Distribution of a tile among the subgroups of a workgroup.

    The subgroups form a grid of `sg_layout` rows and columns, numbered row by row, and each works on a part of
    `sg_data` elements. A tile larger than `sg_layout` x `sg_data` is distributed round robin; where it is smaller,
    subgroups share parts: subgroup i of a dimension of n parts has part i modulo n.

        #xetile.wg_map<sg_layout = [8, 4], sg_data = [32, 64]>
    """

    sg_layout: tuple[int, ...]
    sg_data: tuple[int, ...]

    def problem(self) -> str | None:
        """The rule on maps alone that is broken."""
        for name, values in (("sg_layout", self.sg_layout), ("sg_data", self.sg_data)):
            if len(values) not in (1, 2) or min(values) < 1:
                return f"{name} must be one or two positive numbers, but got {list(values)}"
        if len(self.sg_layout) != len(self.sg_data):
            return (
                f"sg_layout = {list(self.sg_layout)} and sg_data = {list(self.sg_data)} must have the same number of "
                "dimensions"
            )
        return None

    def problem_for(self, shape: Sequence[int]) -> str | None:
        """The reason why the map does not divide this shape, or None."""
        if problem := self.problem():
            return problem
        if len(shape) != len(self.sg_layout):
            return f"a map of {len(self.sg_layout)} dimensions cannot divide a shape of {by(shape)}"
        names = ("rows", "columns") if len(shape) == 2 else ("elements",)
        for size, layout, data, dimension in zip(shape, self.sg_layout, self.sg_data, names):
            fault = dealing_problem(size, layout, data, dimension)
            if fault:
                return fault
        return None


class SgMap(Attr, dialect=XeTile, name="sg_map"):
    """Distribution of a subgroup's part of a tile among its work items.

    As in XeGPU, the work items form a grid of `wi_layout` rows and columns, and each owns `wi_data` elements.

        #xetile.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>
    """

    wi_layout: tuple[int, ...]
    wi_data: tuple[int, ...]

    def problem_for(self, shape: Sequence[int]) -> str | None:
        """The reason why the map does not divide this shape, or None."""
        if problem := xegpu.SgMap(self.wi_layout, self.wi_data).problem():
            return problem
        for size, layout, data, dimension in zip((1, *shape)[-2:], self.wi_layout, self.wi_data, ("rows", "columns")):
            if size % (layout * data):
                return f"{size} {dimension} of a subgroup are not divisible by wi_layout x wi_data = {layout} x {data}"
        return None


class TileAttr(Attr, dialect=XeTile, name="tile_attr"):
    """Properties of a tile besides its shape and element type. Each may be left out.

    - `wg_map`, `sg_map`: who works on what.
    - `order`: which dimension of the tile lies innermost in memory: `[1, 0]` for row-major matrices, `[0, 1]` for
      column-major ones.
    - `memory_space`: 0 is global memory, 3 shared local memory.
    - `scattered`: whether each element has an address of its own; `scatter` is read, too.

    `inner_blocks`, which older text has, is read and left out: `xegpu-legalize` chooses the blocks.

        #xetile.tile_attr<wg_map = <sg_layout = [8, 4], sg_data = [32, 64]>, order = [0, 1]>
        #xetile.tile_attr<memory_space = 3, scattered = true>
    """

    wg_map: WgMap | None = None
    sg_map: SgMap | None = None
    order: tuple[int, ...] = (1, 0)
    memory_space: int = GLOBAL
    scattered: bool = False

    spelled: ClassVar = {"scatter": "scattered", "inner_blocks": ""}


class Tile(Type, dialect=XeTile, name="tile"):
    """A part of a matrix in memory: where it is, and what a load of it gives. Tiles of one dimension are scattered.

    !xetile.tile<32x64xf16>
    !xetile.tile<256x32xbf16, #xetile.tile_attr<wg_map = <sg_layout = [8, 4], sg_data = [32, 32]>>>
    !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>
    """

    shape: tuple[int, ...]
    element: TypeText
    attr: TileAttr = TileAttr()

    @classmethod
    def read_body(cls, cursor: Cursor, scope: ParserScope) -> "Tile":
        cursor.expect("<")
        start = cursor.skip()
        if cursor.at("array"):
            tile = cls._read_raw(cursor, scope)
        else:
            shape = cursor.dimensions("a tile")
            element = scope.resolve(scope.read_type(cursor))
            attr = cls.parameters()["attr"].read(cursor, scope) if cursor.accept(",") else TileAttr()
            cursor.expect(">")
            tile = cls(shape, element, attr)
        problem = tile.problem()
        if problem:
            raise cursor.fault(problem, start)
        return tile

    def write_body(self, print_defaults: bool = False) -> str:
        shown = self.attr != TileAttr() or print_defaults
        return f"<{by((*self.shape, self.element))}{f', {self.attr.write(print_defaults)}' if shown else ''}>"

    @property
    def bits(self) -> int:
        """Width of an element in bits."""
        return bit_width(self.element)

    @property
    def wg_map(self) -> WgMap | None:
        """The map of the tile, and of what is loaded from it."""
        return self.attr.wg_map

    @property
    def scattered(self) -> bool:
        """Whether each element has an address of its own."""
        return self.attr.scattered

    @property
    def column_major(self) -> bool:
        """Whether the rows of the tile lie side by side in memory."""
        return self.attr.order == (0, 1)

    def with_map(self, wg_map: WgMap | None) -> "Tile":
        """The same tile with another map; without its sg_map where that does not divide the parts of this one."""
        sg_map = self.attr.sg_map
        if sg_map and wg_map and sg_map.problem_for(wg_map.sg_data):
            sg_map = None
        return replace(self, attr=replace(self.attr, wg_map=wg_map, sg_map=sg_map))

    def part(self, shape: Sequence[int]) -> "Tile":
        """A tile of another shape in the same matrix, without maps."""
        return Tile(tuple(shape), self.element, replace(self.attr, wg_map=None, sg_map=None))

    def problem(self) -> str | None:
        """The rule on tiles alone that is broken."""
        attr = self.attr
        if not self.shape or min(self.shape) < 1:
            return f"a tile must have positive dimensions, but got {by(self.shape) or 'none'}"
        if len(self.shape) > 2:
            return f"a tile must have one or two dimensions, but got {len(self.shape)}"
        if len(self.shape) == 1 and not attr.scattered:
            return "a tile of one dimension must be scattered"
        if not (is_integer(self.element) or is_float(self.element)):
            return f"a tile must have integer or floating-point elements, but got '{self.element}'"
        if self.bits not in (8, 16, 32, 64):
            return f"a tile must have elements of 8, 16, 32 or 64 bits, but got '{self.element}'"
        if sorted(attr.order) != [0, 1]:
            return f"order must be [1, 0] or [0, 1], but got {list(attr.order)}"
        if attr.scattered and self.column_major:
            return "a scattered tile cannot have an order: its indices give the address of each element"
        if attr.memory_space not in (GLOBAL, SHARED):
            return f"memory_space must be 0 (global) or 3 (shared local memory), but got {attr.memory_space}"
        if attr.wg_map and (problem := attr.wg_map.problem_for(self.shape)):
            return problem
        if attr.sg_map:
            if attr.scattered:
                return "a scattered tile cannot have an sg_map"
            return attr.sg_map.problem_for(attr.wg_map.sg_data if attr.wg_map else self.shape)
        return None


# Properties of the ops of XeTile, which passes ask for instead of names.


class TileAccess(Interface):
    """Accesses memory by a tile, its operand `tile`."""

    if TYPE_CHECKING:

        @property
        def tile(self) -> ir.Value: ...


class TileLoad(TileAccess):
    """Gives what a tile holds, its result `value`."""

    if TYPE_CHECKING:

        @property
        def value(self) -> ir.Value: ...


class TileStore(TileAccess):
    """Writes a vector, its operand `value`, to a tile, or updates the tile by it."""

    if TYPE_CHECKING:

        @property
        def value(self) -> ir.Value: ...


# Rules that several XeTile ops share.


class NumberCodec(AttributeCodec):
    """An integer or floating-point number with its type, held as its text, such as `1.0 : f32`."""

    summary = "a number with its type, such as 1.0 : f32"

    def starts(self, cursor: Any) -> bool:
        return bool(cursor.peek_token().strip("'-")[:1].isdigit())

    def decode(self, raw: str) -> str:
        number, colon, element = (part.strip() for part in raw.partition(":"))
        is_number = is_integer(element) or is_float(element)
        if not (colon and is_number and (number[:1].isdigit() or number[:1] == "-")):
            raise self._refuse(raw)
        return f"{number} : {element}"

    def coerce(self, value: Any) -> str:
        if not isinstance(value, str):
            raise TypeError(f"expected {self.summary} as a string, but got {value!r}")
        return self.decode(value)


def check_scattered(op: Any, tile: Tile, expected: bool, instead: str) -> None:
    """Check that the tile is scattered, or not, as `expected` says."""
    if tile.scattered != expected:
        kind = "a scattered tile" if expected else "a tile that is not scattered"
        op.fail(f"requires {kind}, but got {tile}", f"use xetile.{instead} for this tile")


def check_access(op: Any, *, scattered: bool, instead: str) -> None:
    """A load or store fits its tile: of its kind, with hints, mask and padding as they may be, and the tile's vector.

    Args:
        scattered: whether the op works on scattered tiles.
        instead: the op of this dialect that works on the others.
    """
    tile = Tile.of(op.tile)
    check_scattered(op, tile, scattered, instead)
    check_hints(op)
    if scattered:
        check_mask(op, tile.shape)
    if "read" in op.effects:
        check_padding(op, tile.element)
    check_value(op, "value", [tile.shape], tile.element, "this is the tile's shape and element type")


def check_mask(op: Any, shape: Sequence[int]) -> None:
    """Check that the mask, if there is one, has a bit for each element."""
    if op.mask is not None and shape_of(op.mask) != tuple(shape):
        op.fail(f"requires a mask of type {vector_text(tuple(shape), 'i1')}, but got {op.mask.type}")


def check_map(op: Any, name: str, wg_map: WgMap | None, shape: Sequence[int]) -> None:
    """Check that the map, if there is one, divides this shape."""
    problem = wg_map.problem_for(shape) if wg_map else None
    if problem:
        op.fail(f"'{name}' is not valid for this shape: {problem}")


def check_padding(op: Any, element: str) -> None:
    """Check that the padding has the tile's element type; f32 is accepted for every floating-point type."""
    if op.padding is None:
        return
    padding_type = op.padding.rpartition(" : ")[2]
    if padding_type != element and not (padding_type == "f32" and is_float(element) and bit_width(element) <= 32):
        op.fail(f"padding must be of type {element}, but got {op.padding}")
