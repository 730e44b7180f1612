"""Random kernels of tiles: XeTile for workgroups of several subgroups, and for one."""

from __future__ import annotations

import math
from random import Random

from xegpu_py.dialects.xegpu.matrix_ops import accumulators
from xegpu_py.ir.builtin import bit_width, by, is_float, vector_text
from xegpu_py.layout import dealing_problem
from xegpu_py.target import TARGETS

from . import elementwise, vectors
from .body import Body, Value, attributes, dtype_of, most_exact
from .ops import NUMBERS, STORED
from .program import Program
from .xegpu_products import dpas_pairs
from .xegpu_scattered import ATOMICS

SIZES = (1, 2, 3, 4, 8, 8, 16, 16, 16, 24, 32, 32, 64)
MOST = 256
SHAPES = sorted(
    [(a, b) for a in SIZES for b in SIZES if 8 <= a * b <= MOST] + [(1, 1), (2, 2), (1, 4), (3, 1)],
    key=lambda shape: shape != (8, 16),
)
"""The shapes of tiles, the simplest first."""
BROAD = (8, 16, 24, 32)
"""Sides of tiles of which each subgroup has several parts."""
Map = tuple[tuple[int, ...], tuple[int, ...]]


class Kernel(Body):
    """A kernel of workgroups of `subgroups` subgroups; of one subgroup, without maps, if `has_maps` is false."""

    def __init__(self, r: Random, target: str, grid: int, subgroups: int, has_maps: bool) -> None:
        super().__init__(r, target)
        self.gpu, self.grid, self.subgroups, self.has_maps = TARGETS[target], grid, subgroups, has_maps
        self.maps: dict[str, Map | None] = {}
        # Whether subgroups often have several parts.
        self.has_parts = False
        self.group = self.op("gpu.block_id x", (), "index").name
        self.slm_left = 24 << 10

    # Maps

    def map_for(self, shape: tuple[int, ...]) -> Map | None:
        """A map that divides a shape among the subgroups; None for kernels without."""
        if not self.has_maps:
            return None
        if len(shape) == 1:
            layout: tuple[int, ...] = (self.subgroups,)
        else:
            rows = self.r.choice([n for n in range(1, self.subgroups + 1) if self.subgroups % n == 0])
            layout = (rows, self.subgroups // rows)
        data = []
        for size, grid in zip(shape, layout):
            fits = [n for n in range(1, size + 1) if size % n == 0 and not dealing_problem(size, grid, n)]
            even = [n for n in fits if size // n == grid]
            if self.has_parts:
                data.append(self.r.choice([n for n in fits if n >= 4 or n == size] or fits))
                continue
            # Small parts make long programs.
            large = [n for n in fits if n * 4 * grid >= size] or fits
            data.append(self.r.choice(large if self.r.random() < 0.4 or not even else even))
        return layout, tuple(data)

    @staticmethod
    def map_text(given: Map) -> str:
        layout, data = given
        return f"<sg_layout = {list(layout)}, sg_data = {list(data)}>"

    def map_entry(self, shape: tuple[int, ...], name: str = "map") -> tuple[list[str], Map | None]:
        """The attribute that gives a result its map."""
        given = self.map_for(shape)
        return ([f"{name} = {self.map_text(given)}"], given) if given else ([], None)

    def made(self, value: Value, given: Map | None) -> Value:
        """A value whose map is known."""
        self.maps[value.name] = given
        return value

    # Tiles

    def tile_type(self, shape: tuple[int, ...], element: str, given: Map | None, *settings: str) -> str:
        """A tile's type."""
        entries = [f"wg_map = {self.map_text(given)}"] if given else []
        part = given[1] if given else shape
        if "scattered = true" not in settings and len(part) == 2 and self.r.random() < 0.15:
            fits = [(1, n) for n in (16, 8, 4, 2, 1) if part[1] % n == 0]
            layout = self.r.choice(fits)
            entries.append(f"sg_map = <wi_layout = {list(layout)}, wi_data = [1, 1]>")
        entries += settings
        inner = f", #xetile.tile_attr<{', '.join(entries)}>" if entries else ""
        return f"!xetile.tile<{by((*shape, element))}{inner}>"

    def source(
        self, element: str, shape: tuple[int, int], word: str, column_major: bool, slm: bool = False
    ) -> tuple[str, str, str, int]:
        """A matrix in memory.

        Returns:
            Its name, its type, the shape and strides as they follow offsets, and how many offsets come first.
        """
        rows, columns = shape
        if column_major:
            given = self.argument(f"memref<{columns}x{rows}x{element}>", word)
            kind = f"memref<{rows}x{columns}x{element}, strided<[1, {rows}]>>"
            text = f"memref.reinterpret_cast {given} to offset: [0], sizes: [{rows}, {columns}], strides: [1, {rows}]"
            return self.op(f"{text} : memref<{columns}x{rows}x{element}> to {kind}", (), "memref").name, kind, "", 0
        how = self.r.random()
        if how < 0.1:
            kind = f"memref<2x{rows}x{columns}x{element}>"
            name, dims, words = self.argument(kind, word.replace(f":{rows}x", f":2x{rows}x", 1)), kind, 1
            return name, dims, "", words
        aligned = columns * bit_width(element) % 128 == 0 and columns * bit_width(element) >= 512
        if how < 0.2 and aligned:
            name = self.argument(f"memref<{rows}x{columns}x{element}>", word)
            base = self.op(
                f"memref.extract_aligned_pointer_as_index {name} : memref<{rows}x{columns}x{element}> -> index",
                (),
                "index",
            ).name
            address = self.op(f"arith.index_cast {base} : index to i64", (), "i64").name
            return address, "i64", f", [{self.place(rows)}, {self.place(columns)}], [{self.place(columns)}, 1]", 0
        dims = ["?" if self.r.random() < 0.3 else str(n) for n in shape]
        kind = f"memref<{'x'.join(dims)}x{element}>"
        name = self.argument(kind, word)
        given = ""
        if self.r.random() < 0.1:
            # An extent or stride that a value says is taken to be one that messages can serve.
            written = self.place if aligned else str
            given = f", [{written(rows)}, {written(columns)}], [{written(columns)}, 1]"
        return name, kind, given, 0

    def init(self, source: tuple[str, str, str, int], kind: str, offsets: list[str], in_bounds: bool = False) -> str:
        """init_tile."""
        name, memref, given, more = source
        places = ", ".join([*(str(self.r.randrange(2)) for _ in range(more)), *offsets])
        # A mark for the check of bounds: results do not depend on it.
        clipped = ["clipped = true"] * (self.r.random() < 0.1)
        entries = attributes(["in_bounds = true"] * in_bounds + clipped)
        return self.op(f"xetile.init_tile {name}[{places}]{given}{entries} : {memref} -> {kind}", (), "tile").name

    def shape(self) -> tuple[int, int]:
        """The shape of a tile."""
        return self.r.choice(SHAPES)

    def load(
        self, element: str | None = None, shape: tuple[int, int] | None = None, small: bool | None = None
    ) -> Value:
        """load_tile from anywhere in and around a matrix."""
        element = element or self.element_of([*NUMBERS, *NUMBERS, *STORED])
        rows, columns = shape or self.shape()
        small = element == "tf32" or self.r.random() < 0.5 if small is None else small
        column_major = self.r.random() < 0.2
        inside = self.r.random() < 0.4
        height, width = rows + self.r.choice([0, 0, 1, 5]), columns + self.r.choice([0, 0, 16, 3, 32])
        offsets = [self.r.choice([0, n - m, self.r.randint(0, n - m)]) for n, m in ((height, rows), (width, columns))]
        if not inside:
            offsets = [o + self.r.choice([0, 0, -2, 1, n]) for o, n in zip(offsets, (rows, columns))]
        word = self.data(element, (width, height) if column_major else (height, width), small)
        small = word.startswith("small")
        given = self.map_for((rows, columns))
        settings = ["order = [0, 1]"] if column_major else []
        kind = self.tile_type((rows, columns), element, given, *settings)
        source = self.source(element, (height, width), word, column_major)
        move = [self.r.randint(-3, 3) for _ in offsets] if self.r.random() < 0.2 else [0, 0]
        tile = self.init(
            source,
            kind,
            [self.place(o - m) for o, m in zip(offsets, move)],
            inside and not any(move) and self.r.random() < 0.5,
        )
        if any(move):
            tile = self.op(
                f"xetile.update_tile_offset {tile}, [{', '.join(map(self.place, move))}] : {kind}", (), "tile"
            ).name
        if self.r.random() < (0.6 if self.only else 0.2):
            self.line(f"xetile.prefetch_tile {tile}{attributes(self.hints())} : {kind}")
        return self.made(self.loaded(tile, kind, (rows, columns), element, small), given)

    def loaded(self, tile: str, kind: str, shape: tuple[int, ...], element: str, small: bool) -> Value:
        """load_tile, with padding and hints."""
        entries = self.hints()
        if self.r.random() < 0.3:
            entries.append(f"padding = {self.padding(element)}")
        text = f"xetile.load_tile {tile}{attributes(entries)} : {kind} -> {vector_text(shape, element)}"
        return self.op(text, shape, element, 4 if small else None)

    def padding(self, element: str) -> str:
        """A number in the place of out-of-bounds elements."""
        number = self.r.randint(0 if element.startswith("u") else -4, 4)
        if not is_float(element):
            return f"{number} : {element}"
        return f"{number}.0 : {'f32' if element not in ('f64',) and self.r.random() < 0.3 else element}"

    def computable(self, x: Value) -> Value:
        """The value in elements that arith computes with."""
        if x.element in NUMBERS:
            return x
        if x.element == "tf32":
            found = self.op(f"arith.extf {x.name} : {x.type} to {x.typed('f32')}", x.shape, "f32", x.exact)
            return self.made(found, self.maps[x.name])
        self.store(x)
        return x

    def storable(self, x: Value) -> Value:
        return x

    def store(self, x: Value) -> None:
        """store_tile, to where no other workgroup does; outside of the matrix it is dropped."""
        rows, columns = x.shape
        cut, wide = self.r.choice([0, 0, 0, 1, rows // 2]), self.r.choice([0, 0, 3, 16])
        column = self.r.choice([0, 0, self.r.randint(-2, wide + 2)])
        height, width = max(self.grid * rows - cut, 1), columns + wide
        column_major = self.r.random() < 0.15
        word = f"zeros:{dtype_of(x.element)}:{by((width, height) if column_major else (height, width))}"
        source = self.source(x.element, (height, width), word, column_major)
        given = self.maps.get(x.name)
        if self.has_maps and (given is None or self.r.random() < 0.3):
            x, given = self.converted(x)
        settings = ["order = [0, 1]"] if column_major else []
        kind = self.tile_type(x.shape, x.element, given if self.r.random() < 0.5 else None, *settings)
        row = self.op(f"arith.muli {self.group}, {self.index(rows)} : index", (), "index").name
        tile = self.init(source, kind, [row, self.place(column)])
        self.line(f"xetile.store_tile {x.name}, {tile}{attributes(self.hints(write=True))} : {x.type}, {kind}")

    def converted(self, x: Value) -> tuple[Value, Map | None]:
        """convert_layout."""
        entries, given = self.map_entry(x.shape, "wg_map_result")
        source = self.maps.get(x.name)
        if source and self.r.random() < 0.4:
            entries.append(f"wg_map_source = {self.map_text(source)}")
        found = self.op(f"xetile.convert_layout {x.name}{attributes(entries)} : {x.type}", x.shape, x.element, x.exact)
        return self.made(found, given), given

    # Computation

    def elementwise(self, x: Value) -> Value:
        """An op on each element; its map is that of its first operand that has one."""
        before = len(self.lines)
        found = elementwise.step(self, x)
        assert len(self.lines) > before
        self.maps[found.name] = self.maps.get(x.name)
        return found

    def mapped(self, shape: tuple[int, ...], always: bool) -> tuple[list[str], Map | None]:
        """A map for the result of an op, which may do without if its operand's map says it."""
        if always or self.r.random() < 0.6:
            return self.map_entry(shape)
        return [], None

    def transpose(self, x: Value) -> Value:
        transposed = self.r.random() < 0.85
        shape = x.shape[::-1] if transposed else x.shape
        source = self.maps.get(x.name)
        entries, given = self.mapped(shape, source is None)
        if given is None and source:
            given = (source[0][::-1], source[1][::-1]) if transposed else source
        order = [1, 0] if transposed else [0, 1]
        text = f"xetile.transpose {x.name}, {order}{attributes(entries)} : {x.type} -> {vector_text(shape, x.element)}"
        return self.made(self.op(text, shape, x.element, x.exact), given)

    def reduction(self, x: Value) -> Value:
        dim = self.r.randrange(2)
        size = x.shape[dim]
        source = self.maps.get(x.name)
        group = None
        if self.r.random() < 0.4:
            part = source[1][dim] if source else size
            group = self.r.choice([n for n in range(1, part + 1) if part % n == 0])
        shape = tuple((n // (group or n)) if i == dim else n for i, n in enumerate(x.shape))
        kinds, most = vectors.kinds_for(x, group or size)
        kind = self.r.choice(kinds)
        entries, given = (
            self.mapped(shape, source is None)
            if not group and source and self.keeps(source, dim, shape)
            else self.map_entry(shape)
        )
        if given is None and source:
            given = (source[0], tuple(1 if i == dim else n for i, n in enumerate(source[1])))
        if group:
            entries.append(f"reduction_size = {group}")
        text = f"xetile.reduction <{kind}>, {x.name} [{dim}]{attributes(entries)} : {x.type} -> {vector_text(shape, x.element)}"
        return self.made(self.op(text, shape, x.element, most if kind == "add" else None), given)

    @staticmethod
    def keeps(source: Map, dim: int, shape: tuple[int, ...]) -> bool:
        """Whether what is reduced along a dimension has the map that follows from its operand's."""
        layout, data = source[0], tuple(1 if i == dim else n for i, n in enumerate(source[1]))
        return not any(dealing_problem(size, grid, n) for size, grid, n in zip(shape, layout, data))

    def broadcast(self, x: Value) -> Value:
        dim = self.r.randrange(2)
        if self.only and x.shape[dim] != 1 and self.r.random() < 0.5:
            # A row or a column to repeat.
            x = self.load(x.element, (1, 16) if dim == 0 else (8, 1), x.exact is not None)
        if x.shape[dim] == 1 and self.r.random() < 0.7:
            times, shown = self.r.choice([2, 3, 8, 16, 32]), False
        else:
            times, shown = self.r.choice([1, 2, 4]), True
        shape = tuple(n * times if i == dim else n for i, n in enumerate(x.shape))
        if math.prod(shape) > MOST:
            return x
        entries, given = self.map_entry(shape)
        if shown:
            for _ in range(20):
                if given is None or given[1][dim] % times == 0:
                    break
                entries, given = self.map_entry(shape)
            else:
                return x
            entries.append(f"broadcast_size = {times}")
        text = f"xetile.broadcast {x.name} [{dim}]{attributes(entries)} : {x.type} -> {vector_text(shape, x.element)}"
        return self.made(self.op(text, shape, x.element, x.exact), given)

    def placed(self, x: Value) -> Value:
        """The value where a mask is set, and a constant elsewhere."""
        bounds = [self.r.choice([n, self.r.randint(0, n)]) for n in x.shape]
        names = ", ".join(self.dynamic(n) if self.r.random() < 0.5 else self.index(n) for n in bounds)
        given = self.maps.get(x.name) or self.map_for(x.shape)
        entries = attributes([f"map = #xetile.wg_map{self.map_text(given)}"] if given else [])
        m = self.op(f"vector.create_mask {names}{entries} : {x.typed('i1')}", x.shape, "i1")
        rest = elementwise.constant(self, x.shape, x.element)
        text = f"arith.select {m.name}, {x.name}, {rest.name} : {m.type}, {x.type}"
        return self.made(self.op(text, x.shape, x.element, vectors.joint(x, rest)), given)

    def mma(self) -> Value | None:
        """tile_mma of small numbers, whose sums have no rounding, or of integers; or a contraction."""
        if self.r.random() < 0.3:
            return self.contraction()
        pairs = [p for p in dpas_pairs(self.target) if min(map(bit_width, p)) >= 8]
        a, b = self.r.choice([p for p in pairs if p[0] == self.only] or pairs)
        real = is_float(a)
        unit = 64 // bit_width(a)
        k = self.r.choice([unit, 2 * unit, 4 * unit, 4 * unit, 8, 16])
        m, n = self.r.choice([4, 8, 8, 16]), self.r.choice([8, 16, 16, 32])
        if m * n > MOST or m * k > 2 * MOST or n * k > 2 * MOST:
            return None
        lhs, rhs = self.factor(a, (m, k), real), self.factor(b, (k, n), real)
        results = [e for e in accumulators(a, b) if self.gpu.dpas_half_accumulators or e not in ("bf16", "f16")]
        result = self.r.choice([e for e in results if e in NUMBERS])
        bound = None
        if real:
            if lhs.exact is None or rhs.exact is None or lhs.exact * rhs.exact * k + 8 > most_exact(result):
                return None
            bound = lhs.exact * rhs.exact * k + 8
        acc = self.pick(lambda v: v.shape == (m, n) and v.element == result and (not real or (v.exact or 99) <= 8))
        if acc is None and self.r.random() < 0.5:
            acc = self.splat(self.r.randint(-4, 4), (m, n), result)
        return self.product(lhs, rhs, acc, result, bound)

    def contraction(self) -> Value | None:
        """A product of matrices by vector.contract, whose sums are rounded one after the other."""
        element = self.r.choice(["f32", "f32", "f64", "i32"])
        m, n, k = (self.r.choice([4, 8, 16, 16, 32]) for _ in range(3))
        if m * n > MOST or m * k > 2 * MOST or n * k > 2 * MOST:
            return None
        lhs, rhs = (self.factor(element, shape, self.r.random() < 0.5) for shape in ((m, k), (k, n)))
        acc = self.pick(lambda v: v.shape == (m, n) and v.element == element)
        acc = acc or self.splat(self.r.randint(-4, 4), (m, n), element)
        given = self.map_for((m, n))
        entries = [f"map = #xetile.wg_map{self.map_text(given)}"] if given else []
        maps = ", ".join(f"affine_map<(m, n, k) -> ({d})>" for d in ("m, k", "k, n", "m, n"))
        kinds = 'iterator_types = ["parallel", "parallel", "reduction"]'
        words = ", ".join([f"indexing_maps = [{maps}]", kinds, "kind = #vector.kind<add>", *entries])
        text = f"vector.contract {{{words}}} {lhs.name}, {rhs.name}, {acc.name}"
        return self.made(self.op(f"{text} : {lhs.type}, {rhs.type} into {acc.type}", (m, n), element), given)

    def product(self, lhs: Value, rhs: Value, acc: Value | None, result: str, bound: int | None) -> Value:
        """tile_mma."""
        m, k, n = *lhs.shape, rhs.shape[1]
        entries, given = self.map_entry((m, n), "wg_map_c")
        if given and acc is not None and self.maps.get(acc.name) not in (None, given):
            entries, given = [], self.maps[acc.name]
        if given and self.r.random() < 0.4:
            layout, data = given
            if self.r.random() < 0.4:
                maps = self.map_for((m, k)), self.map_for((k, n))
                assert maps[0] and maps[1]
                lhs, rhs = self.as_map(lhs, maps[0]), self.as_map(rhs, maps[1])
                entries += [f"wg_map_a = {self.map_text(maps[0])}", f"wg_map_b = {self.map_text(maps[1])}"]
            elif self.r.random() < 0.6:
                lhs, rhs = self.as_map(lhs, (layout, (data[0], k))), self.as_map(rhs, (layout, (k, data[1])))
                entries += [
                    f"wg_map_a = {self.map_text((layout, (data[0], k)))}",
                    f"wg_map_b = {self.map_text((layout, (k, data[1])))}",
                ]
        entries = [e for e in entries if e]
        kind = vector_text((m, n), result)
        more = (f", {acc.name}", f", {acc.type}") if acc else ("", "")
        text = f"xetile.tile_mma {lhs.name}, {rhs.name}{more[0]}{attributes(sorted(entries))} : {lhs.type}, {rhs.type}{more[1]} -> {kind}"
        return self.made(self.op(text, (m, n), result, bound), given)

    def as_map(self, x: Value, given: Map) -> Value:
        """The value with a map."""
        if self.maps.get(x.name) == given:
            return x
        text = f"xetile.convert_layout {x.name} {{wg_map_result = {self.map_text(given)}}} : {x.type}"
        return self.made(self.op(text, x.shape, x.element, x.exact), given)

    def factor(self, element: str, shape: tuple[int, int], small: bool) -> Value:
        """A factor of a product: loaded, or a transpose of what is."""
        if self.r.random() < 0.2:
            x = self.load(element, shape[::-1], small)
            return self.transpose_of(x)
        return self.load(element, shape, small)

    def transpose_of(self, x: Value) -> Value:
        shape = x.shape[::-1]
        entries, given = self.map_entry(shape)
        text = f"xetile.transpose {x.name}, [1, 0]{attributes(entries)} : {x.type} -> {vector_text(shape, x.element)}"
        return self.made(self.op(text, shape, x.element, x.exact), given)

    # Loops

    def loop(self, depth: int) -> None:
        """scf.for, which moves tiles and carries a value."""
        x = self.pick(lambda v: v.element in NUMBERS and len(v.shape) == 2)
        if x is None:
            return
        element = self.r.choice(NUMBERS)
        rows, columns = self.shape()
        width = columns + self.r.choice([0, 16, 32])
        given = self.map_for((rows, columns))
        kind = self.tile_type((rows, columns), element, given)
        word = self.data(element, (rows + 2, width))
        source = self.source(element, (rows + 2, width), word, False)
        tile = self.init(source, kind, [self.place(self.r.randint(-1, 2)), self.place(self.r.randint(-1, 2))])
        start = Value(x.name, x.shape, x.element)
        self.maps[start.name] = self.maps.get(x.name)
        count = self.r.randint(0, 3)
        low, high, one = self.index(0), self.dynamic(count), self.index(1)
        name, carried, moving, at = (self.name() for _ in range(4))
        types = f"{start.type}, {kind}"
        self.line(
            f"{name}:2 = scf.for {at} = {low} to {high} step {one} iter_args({carried} = {start.name}, {moving} = {tile}) -> ({types}) {{"
        )
        with self.region():
            own = self.made(Value(carried, x.shape, x.element), self.maps.get(x.name))
            self.values = [own]
            v = self.made(self.loaded(moving, kind, (rows, columns), element, word.startswith("small")), given)
            self.keep(v)
            for _ in range(self.r.randint(1, 3)):
                self.statement(0)
            last = self.pick(lambda v: v.type == x.type and v.name != carried) or own
            after = self.op(
                f"xetile.update_tile_offset {moving}, [{self.place(self.r.randint(-1, 2))}, {self.place(self.r.randint(0, 9))}] : {kind}",
                (),
                "tile",
            ).name
            self.line(f"scf.yield {last.name}, {after} : {types}")
        self.line("}")
        self.keep(self.made(Value(f"{name}#0", x.shape, x.element), self.maps.get(x.name)))

    def gemm(self) -> Value | None:
        """A sum of products over a loop, as a GEMM has it."""
        pairs = [(a, b) for a, b in dpas_pairs(self.target) if a == b and bit_width(a) >= 8]
        a, b = self.r.choice(pairs)
        unit = 64 // bit_width(a)
        k = self.r.choice([4, 4, 8]) * unit // 2
        m, n = self.r.choice([8, 8, 16]), self.r.choice([16, 16, 32])
        results = [e for e in accumulators(a, b) if e in NUMBERS and e not in ("bf16", "f16")]
        result = self.r.choice(results)
        steps = self.r.randint(1, 3)
        given = self.map_for((m, n))
        maps = [(given[0], (given[1][0], k)), (given[0], (k, given[1][1]))] if given else [None, None]
        tiles = []
        for element, shape, whole, map_ in ((a, (m, k), (m, k * steps), maps[0]), (b, (k, n), (k * steps, n), maps[1])):
            cut = tuple(max(size - self.r.choice([0, 0, 0, 1, 5]), 1) for size in whole)
            kind = self.tile_type(shape, element, map_ if self.r.random() < 0.6 else None)
            source = self.source(element, cut, self.data(element, cut, True), False)
            tiles.append((self.init(source, kind, ["0", "0"]), kind, shape, element))
        acc = self.splat(0, (m, n), result)
        low, high, one = self.index(0), self.dynamic(steps), self.index(1)
        name, carried, at, ta, tb = (self.name() for _ in range(5))
        types = f"{acc.type}, {tiles[0][1]}, {tiles[1][1]}"
        self.line(
            f"{name}:3 = scf.for {at} = {low} to {high} step {one} iter_args({carried} = {acc.name}, {ta} = {tiles[0][0]}, "
            f"{tb} = {tiles[1][0]}) -> ({types}) {{"
        )
        with self.region():
            factors = []
            for tile, (_, kind, shape, element) in zip((ta, tb), tiles):
                if self.r.random() < 0.2:
                    self.line(f"xetile.prefetch_tile {tile} : {kind}")
                factors.append(
                    self.op(f"xetile.load_tile {tile} : {kind} -> {vector_text(shape, element)}", shape, element)
                )
            entries = attributes([f"wg_map_c = {self.map_text(given)}"] if given else [])
            total = self.op(
                f"xetile.tile_mma {factors[0].name}, {factors[1].name}, {carried}{entries} : "
                f"{factors[0].type}, {factors[1].type}, {acc.type} -> {acc.type}",
                (m, n),
                result,
            )
            after = [
                self.op(f"xetile.update_tile_offset {tile}, [{move}] : {kind}", (), "tile").name
                for tile, (_, kind, _, _), move in zip((ta, tb), tiles, (f"0, {k}", f"{k}, 0"))
            ]
            self.line(f"scf.yield {total.name}, {after[0]}, {after[1]} : {types}")
        self.line("}")
        bound = 64 * k * steps if is_float(result) else None
        return self.made(
            Value(f"{name}#0", (m, n), result, bound if bound and bound <= most_exact(result) else None), given
        )

    # Ops of other dialects on whole tiles

    def of_vector(self, x: Value) -> Value:
        """An op of the vector dialect, or a constant of different elements: none of them says a map."""
        ways = [self.turned, self.reshaped, self.reduced, self.numbered, self.spread]
        return self.made(self.r.choice(ways if self.has_maps else ways[:1])(x), None)

    def turned(self, x: Value) -> Value:
        return vectors.moved(
            self,
            x,
            f"vector.transpose {x.name}, [1, 0] : {x.type} to {vector_text(x.shape[::-1], x.element)}",
            x.shape[::-1],
        )

    def cast(self, x: Value, shape: tuple[int, ...]) -> Value:
        to = vector_text(shape, x.element)
        return vectors.moved(self, x, f"vector.shape_cast {x.name} : {x.type} to {to}", shape)

    def reshaped(self, x: Value) -> Value:
        """The same elements in another shape, of one dimension in between or not."""
        shapes = [(n, x.size // n) for n in (1, 8, 16, 32) if x.size % n == 0]
        between = self.cast(x, (x.size,)) if self.r.random() < 0.4 else x
        return self.cast(between, self.r.choice(shapes or [x.shape]))

    def reduced(self, x: Value) -> Value:
        """A reduction of all of a dimension, or of groups of it, by way of three dimensions."""
        dim = self.r.randrange(2)
        groups = self.r.choice([n for n in (1, 1, 2, 4, 8) if x.shape[dim] % n == 0])
        if groups > 1:
            x = self.cast(x, (*x.shape[:dim], groups, x.shape[dim] // groups, *x.shape[dim + 1 :]))
        axis = dim + (groups > 1)
        shape = tuple(n for i, n in enumerate(x.shape) if i != axis)
        kinds, most = vectors.kinds_for(x, x.shape[axis] + 4)
        kind, start = self.r.choice(kinds), self.splat(self.r.randint(-4, 4), shape, x.element)
        text = f"vector.multi_reduction <{kind}>, {x.name}, {start.name} [{axis}] : {x.type} to {start.type}"
        found = self.op(text, shape, x.element, most if kind == "add" else None)
        return found if groups > 1 else self.cast(found, self.r.choice([(1, *shape), (*shape, 1)]))

    def numbered(self, x: Value) -> Value:
        """The tile and a constant of different elements."""
        point = ".0" * is_float(x.element)
        shown = [[f"{(i * x.shape[1] + j) % 5 - 2}{point}" for j in range(x.shape[1])] for i in range(x.shape[0])]
        rows = ", ".join(f"[{', '.join(row)}]" for row in shown)
        y = self.op(f"arith.constant dense<[{rows}]> : {x.type}", x.shape, x.element, 2)
        return elementwise.binary(self, self.r.choice(elementwise.names(x.element)), x, y)

    def spread(self, x: Value) -> Value:
        """The tile and one of its elements, or a number of all, or the first row repeated."""
        how = self.r.random()
        if x.shape[0] == 1 and how < 0.6:
            shape = (self.r.choice([n for n in (8, 16, 24, 32) if n * x.size <= MOST] or [1]), x.shape[1])
            return vectors.moved(
                self, x, f"vector.broadcast {x.name} : {x.type} to {vector_text(shape, x.element)}", shape
            )
        if how < 0.5:
            one = vectors.extract_one(self, x)
        else:
            kind, start = (
                self.r.choice(vectors.kinds_for(x, x.size + 4)[0]),
                self.scalar(self.r.randint(-4, 4), x.element),
            )
            text = f"vector.multi_reduction <{kind}>, {x.name}, {start.name} [0, 1] : {x.type} to {x.element}"
            one = self.op(text, (), x.element)
        y = self.op(f"vector.broadcast {one.name} : {x.element} to {x.type}", x.shape, x.element, one.exact)
        return elementwise.binary(self, self.r.choice(elementwise.names(x.element)), x, y)

    def branch(self, x: Value) -> Value:
        """A tile that is changed if a number of the workgroup says so."""
        test = self.op(f"arith.cmpi {self.r.choice(['eq', 'ne'])}, {self.group}, {self.index(0)} : index", (), "i1")
        found = self.made(Value(self.name(), x.shape, x.element), self.maps.get(x.name))
        self.line(f"{found.name} = scf.if {test.name} -> ({x.type}) {{")
        with self.region():
            self.values = [v for v in self.values if v.type == x.type]
            self.line(
                f"scf.yield {elementwise.number(self, x).name} : {x.type}\n}} else {{\nscf.yield {x.name} : {x.type}"
            )
        self.line("}")
        return found

    # Shared local memory, scattered tiles, atomics

    def exchange(self, x: Value) -> Value:
        """A value written to shared local memory and read from there after a barrier."""
        size = x.size * bit_width(x.element) // 8
        if size > self.slm_left:
            return x
        self.slm_left -= size
        shape = by(x.shape)
        kind = f"memref<{shape}x{x.element}, 3>"
        buffer = self.op(f"memref.alloc() : {kind}", (), "memref").name
        given = self.maps.get(x.name)
        to = self.tile_type(x.shape, x.element, given, "memory_space = 3")
        tile = self.init((buffer, kind, "", 0), to, ["0", "0"])
        self.line(f"xetile.store_tile {x.name}, {tile} : {x.type}, {to}")
        self.line("gpu.barrier")
        again = self.map_for(x.shape)
        source = self.tile_type(x.shape, x.element, again, "memory_space = 3")
        from_ = self.init((buffer, kind, "", 0), source, ["0", "0"])
        found = self.op(f"xetile.load_tile {from_} : {source} -> {x.type}", x.shape, x.element, x.exact)
        return self.made(found, again)

    def scattered(self) -> None:
        """Elements by their indices: loaded, changed, and stored or added to where no other element is."""
        element = self.element_of([*NUMBERS, *STORED] if self.only else NUMBERS)
        two = self.r.random() < 0.3
        shape: tuple[int, ...] = (
            (self.r.choice([2, 4]), self.r.choice([8, 16])) if two else (self.r.choice([1, 2]) * 16 * self.subgroups,)
        )
        count = math.prod(shape)
        given = self.map_for(shape)
        index = self.r.choice(["index", "i32", "i64"])
        maps = attributes([f"map = #xetile.wg_map{self.map_text(given)}"] if given else [])
        if two:
            # The indices come from memory, as all that there is for two dimensions.
            line = f"arange:i32:{by(shape)}"
            tile = self.tile_type(shape, "i32", given)
            t = self.init(
                (self.argument(f"memref<{by(shape)}xi32>", line), f"memref<{by(shape)}xi32>", "", 0), tile, ["0", "0"]
            )
            places = self.op(f"xetile.load_tile {t} : {tile} -> {vector_text(shape, 'i32')}", shape, "i32")
            index = "i32"
        else:
            step = self.op(f"vector.step{maps} : {vector_text(shape, 'index')}", shape, "index")
            if index == "index":
                places = step
            else:
                places = self.op(
                    f"arith.index_cast {step.name} : {step.type} to {vector_text(shape, index)}", shape, index
                )
        kind = self.tile_type(shape, element, given, "scattered = true")
        source_kind = f"memref<{count + 3}x{element}>"
        word = self.data(element, (count + 3,))
        source = self.argument(source_kind, word)
        tile = self.op(
            f"xetile.init_tile {source}, {places.name} : {source_kind}, {places.type} -> {kind}", (), "tile"
        ).name
        if self.r.random() < 0.4:
            by_ = self.splat(self.r.randint(0, 3), shape, index)
            tile = self.op(f"xetile.update_tile_offset {tile}, {by_.name} : {kind}, {by_.type}", (), "tile").name
        mask = None
        if self.r.random() < 0.6:
            limit = self.splat(self.r.randint(0, count), shape, index)
            mask = self.op(f"arith.cmpi slt, {places.name}, {limit.name} : {places.type}", shape, "i1")
        entries = self.hints()
        if mask and self.r.random() < 0.5:
            entries.append(f"padding = {self.padding(element)}")
        m = (f", {mask.name}", f", {mask.type}") if mask else ("", "")
        if self.r.random() < (0.6 if self.only else 0.2):
            self.line(f"xetile.prefetch_tile {tile}{attributes(self.hints())} : {kind}")
        text = f"xetile.load {tile}{m[0]}{attributes(entries)} : {kind}{m[1]} -> {vector_text(shape, element)}"
        x = self.made(self.op(text, shape, element, 4 if word.startswith("small") else None), given)
        for _ in range(self.r.randint(0, 2) if element in NUMBERS else 0):
            x = elementwise.number(self, x)
        # Each workgroup has elements of its own.
        into = self.argument(f"memref<{self.grid * count}x{element}>", self.data(element, (self.grid * count,)))
        first = self.op(f"arith.muli {self.group}, {self.index(count)} : index", (), "index").name
        if index != "index":
            first = self.op(f"arith.index_cast {first} : index to {index}", (), index).name
        wide = self.op(f"vector.broadcast {first} : {index} to {places.type}", shape, index)
        own = self.op(f"arith.addi {places.name}, {wide.name} : {places.type}", shape, index)
        into_kind = f"memref<{self.grid * count}x{element}>"
        to = self.op(f"xetile.init_tile {into}, {own.name} : {into_kind}, {own.type} -> {kind}", (), "tile").name
        kinds = self.atomic_kinds(element)
        if self.r.random() < 0.5 and kinds:
            old = self.op(
                f"xetile.atomic_rmw <{self.r.choice(kinds)}>, {x.name}, {to}{m[0]} : {x.type}, {kind}{m[1]} -> {x.type}",
                shape,
                element,
            )
            assert old
        else:
            self.line(f"xetile.store {x.name}, {to}{m[0]}{attributes(self.hints(write=True))} : {x.type}, {kind}{m[1]}")

    def atomic_kinds(self, element: str) -> list[str]:
        """The kinds of atomic updates of an element."""
        found = [kind for kind, elements in ATOMICS.items() if element in elements]
        return [*found, "assign"]

    def atomic_tile(self, x: Value) -> None:
        """atomic_rmw of a tile."""
        kinds = self.atomic_kinds(x.element)
        if not kinds:
            return
        rows, columns = x.shape
        shape = (self.grid * rows, columns + self.r.choice([0, 4]))
        kind = self.tile_type(x.shape, x.element, self.maps.get(x.name))
        source = self.source(x.element, shape, self.data(x.element, shape), False)
        row = self.op(f"arith.muli {self.group}, {self.index(rows)} : index", (), "index").name
        tile = self.init(source, kind, [row, self.place(self.r.randint(-1, 5))])
        self.op(
            f"xetile.atomic_rmw <{self.r.choice(kinds)}>, {x.name}, {tile} : {x.type}, {kind} -> {x.type}",
            x.shape,
            x.element,
        )

    # Programs

    def statement(self, depth: int) -> None:
        """Any statement."""
        fits = [v for v in self.values if v.element in NUMBERS and len(v.shape) == 2]
        options = {"load": 3, "mma": 3}
        if fits:
            options |= {"step": 10, "transpose": 2, "reduction": 3, "broadcast": 2, "placed": 1, "of_vector": 4}
            options |= {"convert": 1 if self.has_maps else 0}
            if depth:
                options |= {"loop": 2, "branch": 1, "gemm": 1, "exchange": 1, "scattered": 1, "atomic": 1}
        (how,) = self.r.choices(list(options), weights=list(options.values()))
        x = (self.r.choice(fits[-3:]) if self.r.random() < 0.7 else self.r.choice(fits)) if fits else None
        found: Value | None = None
        if how == "load":
            found = self.computable(self.load())
        elif how == "mma":
            found = self.mma()
        elif how == "loop":
            self.loop(depth)
        elif how == "gemm":
            found = self.gemm()
        elif how == "scattered":
            self.scattered()
        elif x is not None:
            if how == "step":
                self.elementwise(x)
            elif how == "convert":
                found = self.converted(x)[0]
            elif how == "atomic":
                self.atomic_tile(x)
            else:
                found = getattr(self, how)(x)
        if found is not None and found not in self.values:
            self.keep(found)


def tour(r: Random, element: str | None = None, length: int | None = None) -> Program:
    """A kernel of ops on tiles of one element, with many attributes, whose results are stored."""
    target = r.choice(["pvcxt", "pvc", "any"])
    has_maps = r.random() < 0.7
    subgroups = r.choice([1, 2, 4]) if has_maps else 1
    b = Kernel(r, target, r.choice([1, 2]), subgroups, has_maps)
    b.only, b.plain_hints = element or r.choice([*NUMBERS, *STORED]), 0.1
    real = b.only in NUMBERS
    for _ in range(length or r.randint(1, 3)):
        x = b.load()
        found: Value | None = x
        how = r.choice(
            [
                "load",
                "transpose",
                "broadcast",
                "convert",
                "exchange",
                "scattered",
                "atomic",
                "mma",
                *["reduction"] * 2 * real,
            ]
        )
        if how == "convert" and has_maps:
            found = b.converted(x)[0]
        elif how == "atomic":
            b.atomic_tile(x)
        elif how == "scattered":
            b.scattered()
        elif how == "mma":
            found = b.mma()
        elif how in ("transpose", "broadcast", "exchange", "reduction"):
            found = getattr(b, how)(x)
        if found is not None:
            b.store(found)
    return Program(b.text(), b.words(), (b.grid,), (subgroups,), target)


def whole_tiles(r: Random) -> Program:
    """A kernel of ops of other dialects on whole tiles, whose maps follow from those around them."""
    target, subgroups = r.choice(["pvcxt", "pvc", "any"]), r.choice([1, 2, 4, 8])
    b = Kernel(r, target, 1, subgroups, True)
    b.has_parts = r.random() < 0.7
    x = b.keep(b.load(r.choice(NUMBERS), (r.choice(BROAD), r.choice(BROAD))))

    def remapped(x: Value) -> Value:
        return b.converted(x)[0]

    for _ in range(r.randint(1, 3)):
        change = r.choice(
            [b.of_vector, b.of_vector, b.of_vector, remapped, remapped, remapped, b.branch, b.elementwise]
        )
        x = b.keep(change(x))
        if r.random() < 0.2:
            b.store(x)
    b.store(x)
    return Program(b.text(), b.words(), (1,), (subgroups,), target, r.choice([None, 256]))


def program(r: Random) -> Program:
    """A random kernel of tiles."""
    how = r.random()
    if how < 0.6:
        return tour(r) if how < 0.25 else whole_tiles(r)
    target = r.choice(["pvcxt", "pvcxt", "pvcxt", "pvc", "any"])
    has_maps = r.random() < 0.75
    subgroups = r.choice([1, 2, 2, 4, 4, 8]) if has_maps else 1
    b = Kernel(r, target, r.choice([1, 1, 2]), subgroups, has_maps)
    for _ in range(r.randint(1, 2)):
        how = r.choice(["load", "load", "mma", "gemm"])
        found = b.computable(b.load()) if how == "load" else b.mma() if how == "mma" else b.gemm()
        if found is not None:
            b.keep(found)
    for _ in range(r.randint(0, 3)):
        b.statement(1)
    stored = [v for v in b.values if v.element in NUMBERS and len(v.shape) == 2]
    for x in stored[-2:]:
        b.store(x)
    return Program(b.text(), b.words(), (b.grid,), (subgroups,), target, r.choice([None, None, 256]))
