"""Rules that several XeTile ops share."""

from collections.abc import Sequence
from typing import Any

from xegpu_py.dialects.xegpu.checks import check_hints, check_value
from xegpu_py.dialects.xetile.types import Tile, WgMap
from xegpu_py.ir.builtin import bit_width, is_float, is_integer, vector_of, vector_text
from xegpu_py.ir.codecs import AttributeCodec
from xegpu_py.ir.constraints import Emitter


class NumberCodec(AttributeCodec):
    """An integer or floating-point number with its type, held as its text, such as `1.0 : f32`."""

    summary = "a number with its type, such as 1.0 : f32"

    def starts(self, cursor: Any) -> bool:
        return bool(cursor.peek_token().strip("'-")[:1].isdigit())

    def decode(self, raw: str) -> str:
        number, colon, element = (part.strip() for part in raw.partition(":"))
        known = is_integer(element) or is_float(element)
        if not (colon and known and (number[:1].isdigit() or number[:1] == "-")):
            raise self._refuse(raw)
        return f"{number} : {element}"

    def coerce(self, value: Any) -> str:
        if not isinstance(value, str):
            raise TypeError(f"expected {self.summary} as a string, but got {value!r}")
        return self.decode(value)

    def irdl(self, emitter: Emitter) -> str:
        return emitter.constraint("irdl.any")


def check_scattered(op: Any, tile: Tile, expected: bool, instead: str) -> None:
    """Check that the tile is scattered, or not, as `expected` says."""
    if tile.scattered != expected:
        wanted = "a scattered tile" if expected else "a tile that is not scattered"
        op.fail(f"requires {wanted}, but got {tile}", f"use xetile.{instead} for this tile")


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
    if op.mask is not None and vector_of(str(op.mask.type))[0] != tuple(shape):
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
    given = op.padding.rpartition(" : ")[2]
    if given != element and not (given == "f32" and is_float(element) and bit_width(element) <= 32):
        op.fail(f"padding must be of type {element}, but got {op.padding}")
