"""How the vectors and tiles of a kernel are divided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from mlir import ir
from xegpu_py.dialects.xetile import Tile
from xegpu_py.passes.xetile.classes import value_classes
from xegpu_py.passes.xetile.vectors import element_of, is_vector, shape_of

from xegpu_py.ir.builtin import bit_width
from xegpu_py.ir.verifier import walk
from xegpu_py.target import Target

Shape = tuple[int, ...]
Part = tuple[Shape, Shape]
"""Where a part begins, and its shape."""

ROWS = 8
"""Rows of a block: those of one dpas, and of one store."""

LINE_BYTES = 64
"""Bytes of a block's row where nothing else decides: what a 2D block message carries at most."""

LANES = 16
"""Elements of a block of one dimension: lanes of one gather."""

TRANSPOSED_UNIT = 32
"""Bits that a transposing load takes for one: narrower elements go together."""


def parts(shape: Sequence[int], block: Sequence[int]) -> list[Part]:
    """A shape divided into blocks, row by row; those at the edges are smaller."""
    starts = [range(0, n, b) for n, b in zip(shape, block)]
    return [(at, tuple(min(b, n - a) for a, b, n in zip(at, block, shape))) for at in product(*starts)]


def lines(size: int, most: int) -> list[tuple[int, int]]:
    """`size` elements divided into powers of two of at most `most`, as (start, elements)."""
    found, at = [], 0
    while at < size:
        count = min(most, 1 << (size - at).bit_length() - 1)
        found.append((at, count))
        at += count
    return found


@dataclass
class Roles:
    """What a tile is used for, which decides on the messages that it becomes.

    Attributes:
        loads: what is loaded from it.
        stored: what is stored to it.
        prefetched: whether it is prefetched.
    """

    loads: list[ir.Value] = field(default_factory=list)
    stored: list[ir.Value] = field(default_factory=list)
    prefetched: bool = False

    def names(self) -> list[str]:
        """The roles that it has."""
        has = {"load": bool(self.loads), "store": bool(self.stored), "prefetch": self.prefetched}
        return [name for name, given in has.items() if given]


@dataclass(frozen=True)
class Slabs:
    """The parts of a product that are computed one after the other, each of what is loaded right before it.

    Attributes:
        depth: elements of K of a part.
        columns: columns of a part.
    """

    depth: int
    columns: int


class Plan:
    """The division of a kernel's values.

    Attributes:
        columns: columns of a product of one dpas.
        ahead: whether loads come a turn of their loop ahead, so that slabs are as shallow as a dpas.
    """

    def __init__(self, func: ir.Operation, target: Target, ahead: bool = False) -> None:
        self.target = target
        self.columns = target.dpas_exec_size
        self.ahead = ahead
        self._depth = max(target.dpas_depths)
        ops = walk(func)
        self._classes = value_classes(ops)
        self._wanted: dict[ir.Value, tuple[int, Shape]] = {}
        self._bits: dict[ir.Value, int] = {}
        self._roles: dict[ir.Value, Roles] = {}
        self._slab_rows: dict[ir.Value, int] = {}
        self._slab_columns: dict[ir.Value, int] = {}
        for op in ops:
            self._note(op)

    def _note(self, op: ir.Operation) -> None:
        for value in op.results:
            if is_vector(value) and element_of(value) not in ("i1", "index"):
                root = self._classes.find(value)
                self._bits[root] = max(self._bits.get(root, 8), bit_width(element_of(value)))
        if op.name == "xetile.tile_mma":
            a, b = op.operands[0], op.operands[1]
            step = self.step(a)
            self._want(op.results[0], 0, (ROWS, self.columns))
            self._want(a, 1, (ROWS, step))
            self._want(b, 2, (step, self.columns))
            depth = self.slabs(op).depth
            self._slab_columns[self._classes.find(a)] = depth
            self._slab_rows[self._classes.find(b)] = depth
        elif op.name in ("xetile.load_tile", "xetile.load"):
            self._roles_at(op.operands[0]).loads.append(op.results[0])
            tile = Tile.of(op.operands[0])
            if is_transposed(op.results[0]) and not (tile.column_major or tile.scattered):
                self._want(op.results[0], 0, self._transposed_shape(tile.bits)[::-1])
        elif op.name in ("xetile.store_tile", "xetile.store", "xetile.atomic_rmw"):
            self._roles_at(op.operands[1]).stored.append(op.operands[0])
        elif op.name == "xetile.prefetch_tile":
            self._roles_at(op.operands[0]).prefetched = True

    def _want(self, value: ir.Value, rank: int, block: Shape) -> None:
        root = self._classes.find(value)
        known = self._wanted.get(root)
        if known is None or rank < known[0]:
            self._wanted[root] = (rank, block)

    def _roles_at(self, tile: ir.Value) -> Roles:
        return self._roles.setdefault(self._classes.find(tile), Roles())

    def roles(self, tile: ir.Value) -> Roles:
        """What a tile is used for."""
        return self._roles_at(tile)

    def step(self, a: ir.Value) -> int:
        """Elements of K that one dpas takes."""
        return self._depth * max(32 // bit_width(element_of(a)), 1)

    def slabs(self, mma: ir.Operation) -> Slabs:
        """The parts of a product: as deep as a message of A is wide, or all of K with the columns of a message of B.

        The latter has the larger messages, and is taken where it needs no more registers at a time.
        """
        a, b = mma.operands[0], mma.operands[1]
        (rows, depth), columns = shape_of(a), shape_of(b)[1]
        across = max(n * self.columns for n in self._counts(bit_width(element_of(b)), self.columns))
        if self.ahead:
            return Slabs(self.step(a), across)
        slab = max(LINE_BYTES * 8 // bit_width(element_of(a)), self.step(a))
        if slab < depth <= self._most_rows() and depth * (rows + across) <= slab * (rows + columns):
            return Slabs(depth, across)
        return Slabs(slab, columns)

    def _counts(self, bits: int, columns: int) -> list[int]:
        """How many blocks of so many columns one load can bring."""
        counts = self.target.block2d.counts[bits] if self.target.block2d else (1,)
        return [n for n in counts if n * columns * bits <= LINE_BYTES * 8] or [1]

    def block(self, value: ir.Value) -> Shape:
        """The shape of the blocks that a vector is divided into."""
        shape = shape_of(value)
        root = self._classes.find(value)
        if len(shape) != 2:
            return (*[1] * (len(shape) - 1), LANES) if shape else ()
        if root in self._wanted:
            return self._wanted[root][1]
        return ROWS, LINE_BYTES * 8 // max(self._bits.get(root, 32), 8)

    def parts(self, value: ir.Value) -> list[Part]:
        """The blocks of a vector."""
        shape = shape_of(value)
        if len(shape) == 1:
            return [((a,), (n,)) for a, n in lines(shape[0], LANES)]
        return parts(shape, self.block(value))

    def messages(self, tile: ir.Value) -> dict[str, list[Part]]:
        """The parts of a tile that messages move, for each role that it has."""
        kind = Tile.of(tile)
        roles = self.roles(tile)
        return {name: list(self._messages(kind, roles, name)) for name in roles.names()}

    def _messages(self, tile: Tile, roles: Roles, role: str) -> Iterator[Part]:
        if len(tile.shape) == 1:
            return iter([((a,), (n,)) for a, n in lines(tile.shape[0], LANES)])
        if tile.scattered:
            return iter(parts(tile.shape, (ROWS, LANES)))
        if role == "prefetch":
            across = LINE_BYTES * 8 // tile.bits
            rows = self._most_rows()
            return iter(parts(tile.shape, (across, rows) if tile.column_major else (rows, across)))
        if role == "store":
            rows, columns = self.block(roles.stored[0])
            return iter(parts(tile.shape, (min(rows, ROWS), min(columns, LINE_BYTES * 8 // tile.bits))))
        transposing = self._transposed_shape(tile.bits)
        if tile.column_major:
            return iter(parts(tile.shape, transposing))
        if all(is_transposed(v) for v in roles.loads):
            return iter(parts(tile.shape, transposing[::-1]))
        return self._loads(tile, roles.loads[0])

    def _transposed_shape(self, bits: int) -> Shape:
        """Rows and columns that a transposing load gives."""
        unit = max(bits, TRANSPOSED_UNIT)
        limits = self.target.block2d
        width, height = limits.transposed[unit] if limits else (ROWS * TRANSPOSED_UNIT // unit, LANES)
        return width * unit // bits, height

    def _most_rows(self) -> int:
        return self.target.block2d.load_height if self.target.block2d else 32

    def _loads(self, tile: Tile, value: ir.Value) -> Iterator[Part]:
        """As many blocks side by side, and as many rows, as one load may have."""
        rows, columns = self.block(value)
        columns = min(columns, LINE_BYTES * 8 // tile.bits)
        root = self._classes.find(value)
        most = min(self._most_rows(), self._slab_rows.get(root, self._most_rows()))
        most = max(most // rows * rows, 1)
        height, width = tile.shape
        widest = max(self._slab_columns.get(root, width), columns)
        fitting = [n for n in self._counts(tile.bits, columns) if n == 1 or n * columns <= widest]
        for top in range(0, height, most):
            left = 0
            while left < width:
                count = max((n for n in fitting if left + n * columns <= width), default=1)
                size = min(count * columns, width - left)
                yield (top, left), (min(most, height - top), size)
                left += size


def is_transposed(value: ir.Value) -> bool:
    """Whether all that is done with a value is to transpose it."""
    uses = [u.owner.operation for u in value.uses]
    return bool(uses) and all(
        o.name == "xetile.transpose" and str(o.attributes["permutation"]).endswith("1, 0>") for o in uses
    )
