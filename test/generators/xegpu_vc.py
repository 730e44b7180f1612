"""Random kernels of subgroups: XeGPU in VC mode, with arith, math, vector, memref and scf around it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from random import Random

from xegpu_py.dialects.xegpu.matrix import SCALE, accumulators
from xegpu_py.dialects.xegpu.registers import NARROW_FLOATS, WIDE_FLOATS
from xegpu_py.dialects.xegpu.types import CHUNK_SIZES, LANES
from xegpu_py.passes.common.messages import precision_of

from xegpu_py.ir.builtin import bit_width, by, is_float, vector_text
from xegpu_py.numerics.block_scaled import scaled_depth
from xegpu_py.numerics.dpas import ops_per_channel
from xegpu_py.target import TARGETS

from . import elementwise, vectors
from .body import FLOATS, NUMBERS, SIGNLESS, STORED, Body, Value, attributes, dtype_of, most_exact, twin
from .program import Program

ROWS = (1, 2, 3, 4, 5, 8, 16, 17, 32)
COLUMNS = (1, 2, 3, 4, 5, 8, 16, 24, 32, 64)
LOOP_STEPS = 3
_UNSIGNED = ("ui8", "ui16", "ui32", "ui64")
ATOMICS = {
    **dict.fromkeys(("addf", "mulf", "maximumf", "minimumf", "maxnumf", "minnumf"), FLOATS),
    **dict.fromkeys(("addi", "muli", "andi", "ori", "xori", "maxu", "minu"), (*SIGNLESS, *_UNSIGNED)),
    **dict.fromkeys(("maxs", "mins"), SIGNLESS),
}
"""The kinds of atomic updates, and the elements that have them; `assign` is for all."""


@dataclass(frozen=True)
class Matrix:
    """A tensor in memory.

    Attributes:
        source: what create_nd_tdesc takes: a memref, or an address.
        given: the shape and strides as they follow the offsets; nothing if the memref says them.
    """

    source: str
    kind: str
    shape: tuple[int, ...]
    element: str
    given: str = ""
    small: bool = False


@dataclass(frozen=True)
class Desc:
    """A descriptor and where it is: the first element of its block, or None if lanes have addresses of their own."""

    name: str
    type: str
    shape: tuple[int, ...]
    element: str
    small: bool = False


class Kernel(Body):
    """A kernel of `threads` subgroups, of which each has its number in `%tid`."""

    def __init__(self, r: Random, target: str, grid: int, block: int) -> None:
        super().__init__(r, target)
        self.gpu, self.threads, self.grid, self.block = TARGETS[target], grid * block, grid, block
        self.tid, self.local = self._ids()
        self.inputs: list[Matrix] = []
        self.ragged = 0.15

    def _ids(self) -> tuple[str, str]:
        x, size, group = (self.op(f"gpu.{op} x", (), "index").name for op in ("thread_id", "block_dim", "block_id"))
        if self.r.random() < 0.3:
            return self.op("gpu.global_id x", (), "index").name, x
        first = self.op(f"arith.muli {group}, {size} : index", (), "index").name
        return self.op(f"arith.addi {first}, {x} : index", (), "index").name, x

    def row_of_thread(self, rows: int, at: int) -> str:
        """The index of a thread's rows, `at` rows further on."""
        first = self.op(f"arith.muli {self.tid}, {self.index(rows)} : index", (), "index").name
        return self.op(f"arith.addi {first}, {self.dynamic(at)} : index", (), "index").name if at else first

    # Memory

    def tensor(self, element: str, shape: tuple[int, ...], small: bool, zeros: bool = False) -> Matrix:
        """An argument that is a tensor, in one of the forms that a descriptor takes."""
        word = f"zeros:{dtype_of(element)}:{by(shape)}" if zeros else self.data(element, shape, small)
        small = small or word.startswith("small")
        how = self.r.random()
        dims = [str(n) if how < 0.5 or self.r.random() < 0.3 else "?" for n in shape]
        kind = f"memref<{'x'.join([*dims, element])}>"
        name = self.argument(kind, word)
        strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
        row = shape[-1] * bit_width(element) // 8
        # An extent or stride that a value says is taken to be one that messages can serve.
        written = self.place if row % 16 == 0 and row >= 64 else str
        if how < 0.8:
            given = ""
            if self.r.random() < 0.1 and len(shape) > 1:
                given = f", [{', '.join(map(written, shape))}], [{', '.join(map(written, strides[:-1]))}, 1]"
            return Matrix(name, kind, shape, element, given, small)
        base = self.op(f"memref.extract_aligned_pointer_as_index {name} : {kind} -> index", (), "index").name
        address = self.op(f"arith.index_cast {base} : index to i64", (), "i64").name
        given = (
            f", [{', '.join(map(written, shape))}], [{', '.join(map(written, strides[:-1]))}{', ' * (len(shape) > 1)}1]"
        )
        return Matrix(address, "i64", shape, element, given, small)

    def columns_for(self, element: str, least: int) -> int:
        """Columns of a matrix, mostly of one that 2D block messages can serve."""
        size = bit_width(element) // 8
        if self.r.random() < self.ragged:
            # Rows that no 2D block message can address.
            return least + self.r.randint(0, 5)
        unit = 16 // size if size < 16 else 1
        return max(self.r.choice([64, 80, 96, 128]) // size, -(-least // unit) * unit)

    def block_desc(self, tensor: Matrix, block: tuple[int, ...], offsets: list[str], extra: list[str]) -> Desc:
        """create_nd_tdesc."""
        settings = f", #xegpu.tdesc_attr<{', '.join(extra)}>" if extra else ""
        kind = f"!xegpu.tensor_desc<{by((*block, tensor.element))}{settings}>"
        found = self.op(
            f"xegpu.create_nd_tdesc {tensor.source}[{', '.join(offsets)}]{tensor.given} {{mode = vc}} : {tensor.kind} -> {kind}",
            (),
            "desc",
        )
        return Desc(found.name, kind, block, tensor.element, tensor.small)

    def offset(self, size: int, block: int, inside: bool) -> int:
        """Where a block begins along a dimension; unless it must lie inside, it may reach over either end."""
        most = max(size - block, 0)
        kinds = [0, self.r.randint(0, most), self.r.randint(0, most)]
        if not inside:
            kinds += [self.r.randint(-block - 1, 0), self.r.randint(most, size + 2)]
        return self.r.choice(kinds)

    # Blocks

    def load_block(self, element: str | None = None, small: bool | None = None) -> Value:
        """A block of one to three dimensions, with any transforms, from anywhere in and around a tensor."""
        element = element or self.element_of([*NUMBERS, *NUMBERS, *STORED])
        small = (element == "tf32" or self.r.random() < 0.4) if small is None else small
        bits = bit_width(element)
        rank = self.r.choice([2, 2, 2, 2, 1, 3])
        if rank == 1:
            return self.load_line(element, small)
        rows, columns = self.r.choice(ROWS), self.r.choice(COLUMNS)
        while rows * columns > vectors.MOST:
            rows = max(rows // 2, 1)
            columns = max(columns // 2, 1) if rows == 1 else columns
        outer = (self.r.choice([1, 2, 3]),) if rank == 3 else ()
        extra, length = [], 1
        if rank == 2 and self.r.random() < 0.25:
            length = self.r.choice([2, 4])
        inside = self.r.random() < 0.3
        if inside and self.r.random() < 0.5:
            extra.append("boundary_check = false")
        if length > 1:
            extra.insert(0, f"array_length = {length}")
        more = (self.r.randint(0, 4), self.r.randint(0, 20))
        wide = self.columns_for(element, columns * length + more[1])
        if outer:
            # Each matrix begins at a multiple of 64 bytes.
            wide = -(-wide * bits // 512) * 512 // bits
        shape = (*(n + 1 for n in outer), rows + more[0], wide)
        tensor = self.tensor(element, shape, small)
        block = (*outer, rows, columns)
        covered = (*outer, rows, columns * length)
        places = [self.offset(n, m, inside) for n, m in zip(shape, covered)]
        move = [0] * rank
        if self.r.random() < 0.3:
            move = [self.r.randint(-3, 3) for _ in places]
        offsets = [self.place(p - m) for p, m in zip(places, move)]
        desc = self.block_desc(tensor, block, offsets, extra)
        if any(move):
            desc = self.moved(desc, move)
        return self.load_desc(desc, length, bits)

    def moved(self, desc: Desc, by_: list[int]) -> Desc:
        """update_nd_offset."""
        offsets = ", ".join(map(self.place, by_))
        found = self.op(
            f"xegpu.update_nd_offset {desc.name}, [{offsets}] {{mode = vc}} : {desc.type} -> {desc.type}", (), "desc"
        )
        return replace(desc, name=found.name)

    def load_desc(self, desc: Desc, length: int, bits: int) -> Value:
        """load_nd with any transforms that fit."""
        if self.r.random() < (0.6 if self.only else 0.2):
            self.line(
                f"xegpu.prefetch_nd {desc.name}{attributes(['mode = vc', *self.scope(), *self.hints()])} : {desc.type}"
            )
        entries = ["mode = vc"]
        rows, columns = desc.shape[-2:]
        rank = len(desc.shape)
        shape: tuple[int, ...] = desc.shape
        how = self.r.random()
        if how < (0.45 if self.only else 0.3):
            order = [1, 0] if rank == 2 else self.r.sample(range(rank), rank)
            units = [u for u in (8, 16, 32, 64) if u >= bits and columns * bits % u == 0]
            unit = bits
            if units and self.r.random() < (0.85 if self.only else 0.5):
                unit = self.r.choice(units)
                entries.append(f"transpose_bit_width = {unit}")
            entries.append(f"transpose = {order}")
            each = unit // bits
            in_units = (*desc.shape[:-1], columns // each)
            transposed = [in_units[i] for i in order]
            shape = (*transposed[:-1], transposed[-1] * each)
        elif how < 0.7 and rank == 2 and bits < 32:
            factor = 32 // bits
            axes = [axis for axis in (0, 1) if desc.shape[axis] % factor == 0]
            if axes:
                axis = self.r.choice(axes)
                entries.append(f"vnni_axis = {axis}")
                shape = (rows // factor, columns, factor) if axis == 0 else (rows, columns // factor, factor)
        if length > 1:
            whole = entries == ["mode = vc"] and self.r.random() < 0.4
            shape = (shape[0], length * shape[1]) if whole else (length, *shape)
        entries += self.hints()
        kind = vector_text(shape, desc.element)
        exact = 4 if desc.small else None
        return self.op(
            f"xegpu.load_nd {desc.name}{attributes(entries)} : {desc.type} -> {kind}", shape, desc.element, exact
        )

    def scope(self, slm: bool = False) -> list[str]:
        """The memory_scope that an op may repeat."""
        return [f"memory_scope = {'slm' if slm else 'global'}"] if self.r.random() < 0.3 else []

    def load_line(self, element: str, small: bool) -> Value:
        """A block of one dimension, which lies inside."""
        count = self.r.choice([1, 2, 3, 4, 8, 16, 17, 32, 64, 128])
        at = self.r.randint(0, 9)
        tensor = self.tensor(element, (self.threads * count + at + 3,), small)
        place = self.row_of_thread(count, at) if self.r.random() < 0.5 else self.place(at)
        extra = ["boundary_check = false"]
        desc = self.block_desc(tensor, (count,), [place], extra)
        entries = ["mode = vc", *self.hints()]
        exact = 4 if tensor.small else None
        text = f"xegpu.load_nd {desc.name}{attributes(entries)} : {desc.type} -> {vector_text((count,), element)}"
        return self.op(text, (count,), element, exact)

    def storable(self, x: Value) -> Value:
        """The value as a vector of bytes' multiples with one to three dimensions."""
        if x.element == "i1":
            x = self.op(f"arith.extui {x.name} : {x.type} to {x.typed('i32')}", x.shape, "i32")
        if not x.shape:
            x = self.op(f"vector.broadcast {x.name} : {x.type} to vector<1x{x.element}>", (1,), x.element, x.exact)
        return x

    def store(self, x: Value) -> None:
        """Store a value where no other thread does: as a block, a line, or lane by lane."""
        x = self.storable(x)
        bits = bit_width(x.element)
        if len(x.shape) == 2 and x.shape[1] * bits % 32 == 0 and self.r.random() < 0.8 and self.gpu.block2d:
            self.store_block(x)
        elif self.r.random() < 0.8:
            self.store_line(x)
        else:
            self.store_elements(x)

    def store_block(self, x: Value) -> None:
        """A block of two dimensions, which may reach over the edges."""
        rows, columns = x.shape
        wide = self.columns_for(x.element, columns)
        alone = self.threads == 1
        cut = self.r.choice([0, 0, 0, self.r.randint(0, rows)])
        column = self.offset(wide, columns, False) if self.r.random() < 0.4 else 0
        if alone and self.r.random() < 0.3:
            tensor = self.tensor(x.element, (rows + 2, wide), False)
            offsets = [self.place(self.offset(rows + 2, rows, False)), self.place(column)]
        else:
            tensor = self.tensor(x.element, (max(self.threads * rows - cut, 1), wide), False)
            offsets = [self.row_of_thread(rows, 0), self.place(column)]
        extra = []
        if self.r.random() < 0.2 and columns % 2 == 0 and columns * bit_width(x.element) % 64 == 0:
            # An array of two blocks covers the same area.
            half = columns // 2
            desc = self.block_desc(tensor, (rows, half), offsets, ["array_length = 2"])
        else:
            desc = self.block_desc(tensor, (rows, columns), offsets, extra)
        entries = ["mode = vc", *self.hints(write=True)]
        self.line(f"xegpu.store_nd {x.name}, {desc.name}{attributes(entries)} : {x.type}, {desc.type}")

    def flat(self, x: Value) -> Value:
        """The elements in a row."""
        if len(x.shape) == 1:
            return x
        kind = vector_text((x.size,), x.element)
        return self.op(f"vector.shape_cast {x.name} : {x.type} to {kind}", (x.size,), x.element, x.exact)

    def store_line(self, x: Value) -> None:
        """A block of one dimension."""
        x = self.flat(x)
        tensor = self.tensor(x.element, (self.threads * x.size,), False, zeros=True)
        desc = self.block_desc(tensor, (x.size,), [self.row_of_thread(x.size, 0)], ["boundary_check = false"])
        entries = ["mode = vc", *self.hints(write=True)]
        self.line(f"xegpu.store_nd {x.name}, {desc.name}{attributes(entries)} : {x.type}, {desc.type}")

    def store_elements(self, x: Value) -> None:
        """Some elements by memref.store."""
        x = self.flat(x)
        places = self.r.sample(range(x.size), min(x.size, self.r.randint(1, 3)))
        kind = f"memref<?x3x{x.element}>"
        name = self.argument(kind, self.data(x.element, (self.threads, 3)))
        for column, place in enumerate(places):
            one = self.op(f"vector.extract {x.name}[{place}] : {x.element} from {x.type}", (), x.element)
            self.line(f"memref.store {one.name}, {name}[{self.tid}, {self.index(column)}] : {kind}")

    # Lanes

    def lanes_desc(
        self, element: str, lanes: int, chunk: int, small: bool, unique: bool, slm: str = ""
    ) -> tuple[Desc, list[str]]:
        """A descriptor with an address for each lane.

        Args:
            unique: whether no two lanes, of no two threads, have an element in common.
        """
        stride = chunk + self.r.randint(0, 2)
        order = self.r.sample(range(lanes), lanes) if self.r.random() < 0.5 else list(range(lanes))
        if not unique and self.r.random() < 0.5:
            order = [self.r.randrange(lanes) for _ in range(lanes)]
        size = lanes * stride
        parts = self.threads if unique and not slm else 1
        kind = self.r.choice(["index", "i32", "i64"]) if self.r.random() < 0.8 else self.r.choice(["ui32", "i16"])
        offsets = self.lane_offsets([stride * n for n in order], kind)
        base, moved = 0, 0
        if self.r.random() < 0.4:
            moved = self.r.randint(-3, 5)
        extra = max(moved, 0) + max(-moved, 0)
        count = parts * size + extra + 2
        # Updates of 8 bits are made in the 32 around them, which must be the array's.
        shape = (-(-count // 4) * 4 if bit_width(element) == 8 else count,)
        if slm:
            source, source_kind = slm, ""
            data_small = small
        else:
            word = self.data(element, shape, small)
            data_small = small or word.startswith("small")
            source_kind = f"memref<{self.r.choice([str(shape[0]), '?'])}x{element}>"
            source = self.argument(source_kind, word)
        base = max(-moved, 0)
        if not slm and self.r.random() < 0.2:
            pointer = self.op(
                f"memref.extract_aligned_pointer_as_index {source} : {source_kind} -> index", (), "index"
            ).name
            source, source_kind = self.op(f"arith.index_cast {pointer} : index to i64", (), "i64").name, "i64"
        if (parts > 1 or base) and kind in ("index", "i32", "i64"):
            first = self.index(base)
            if parts > 1:
                first = self.row_of_thread(size, 0)
                if base:
                    first = self.op(f"arith.addi {first}, {self.index(base)} : index", (), "index").name
            if kind != "index":
                first = self.op(f"arith.index_cast {first} : index to {kind}", (), kind).name
            wide = self.op(f"vector.broadcast {first} : {kind} to vector<{lanes}x{kind}>", (lanes,), kind).name
            offsets = self.op(f"arith.addi {offsets}, {wide} : vector<{lanes}x{kind}>", (lanes,), kind).name
        elif parts > 1 or base:
            return self.lanes_desc(element, lanes, chunk, small, unique, slm)
        settings = ["memory_scope = slm"] if slm else []
        settings.append("#xegpu.scattered")
        dims = by((lanes, chunk, element) if chunk > 1 or self.r.random() < 0.1 else (lanes, element))
        inner = f"#xegpu.tdesc_attr<{', '.join(settings)}>" if slm else "#xegpu.scattered"
        desc_kind = f"!xegpu.tensor_desc<{dims}, {inner}>"
        entries = ["mode = vc"] + ([f"chunk_size_per_lane = {chunk}"] if chunk > 1 else [])
        made = self.op(
            f"xegpu.create_tdesc {source}, {offsets}{attributes(entries)} : {source_kind or slm}, "
            f"vector<{lanes}x{kind}> -> {desc_kind}",
            (),
            "desc",
        )
        name = made.name
        if moved:
            how = self.r.choice(["index", "i32", "i64"])
            step = self.splat(moved, (lanes,), how)
            name = self.op(
                f"xegpu.update_offset {name}, {step.name} {{mode = vc}} : {desc_kind}, {step.type} -> {desc_kind}",
                (),
                "desc",
            ).name
        shape = (
            (chunk, lanes)
            if "x".join(map(str, (lanes, chunk))) + "x" in dims + "x" and dims.count("x") == 2
            else (lanes,)
        )
        return Desc(name, desc_kind, shape, element, data_small), settings

    def lane_offsets(self, places: list[int], kind: str) -> str:
        """A vector of offsets: a constant, or computed."""
        if self.r.random() < 0.4 and kind in ("index", "i32", "i64") and places == sorted(places) and len(places) > 1:
            step = self.op(f"vector.step : vector<{len(places)}xindex>", (), "index").name
            if kind != "index":
                step = self.op(
                    f"arith.index_cast {step} : vector<{len(places)}xindex> to vector<{len(places)}x{kind}>", (), kind
                ).name
            by_ = self.splat(places[1] - places[0], (len(places),), kind)
            if all(p == i * (places[1] - places[0]) for i, p in enumerate(places)):
                return self.op(f"arith.muli {step}, {by_.name} : {by_.type}", (), kind).name
        if kind == "ui32":
            # arith.constant has no vectors of signed or unsigned integers.
            plain = self.table(places, "i32")
            return self.op(f"vector.bitcast {plain.name} : {plain.type} to {plain.typed('ui32')}", (), "ui32").name
        return self.table(places, kind).name

    def lane_mask(self, lanes: int) -> str:
        """A mask of lanes: a constant, the first ones, or computed."""
        how = self.r.random()
        if how < 0.3:
            return self.op(f"arith.constant dense<true> : vector<{lanes}xi1>", (lanes,), "i1").name
        if how < 0.6:
            words = ", ".join(self.r.choice(["true", "false"]) for _ in range(lanes))
            return self.op(f"arith.constant dense<[{words}]> : vector<{lanes}xi1>", (lanes,), "i1").name
        if how < 0.8:
            return vectors.lane_mask(self, (lanes,)).name
        return elementwise.mask(self, (lanes,)).name

    def lanes_and_chunk(self, element: str) -> tuple[int, int]:
        """Lanes and elements of each."""
        lanes = self.r.choice(LANES)
        return lanes, self.r.choice([1, 1, *(c for c in CHUNK_SIZES if c * lanes <= vectors.MOST)])

    def gather(self) -> Value:
        """load_gather. Lanes without a mask bit get their result from another value."""
        element = self.element_of([*NUMBERS, *STORED])
        lanes, chunk = self.lanes_and_chunk(element)
        desc, _ = self.lanes_desc(element, lanes, chunk, element == "tf32" or self.r.random() < 0.4, False)
        mask = self.lane_mask(lanes)
        if self.r.random() < (0.6 if self.only else 0.2):
            self.line(f"xegpu.prefetch {desc.name}{attributes(['mode = vc', *self.hints()])} : {desc.type}")
        return self.gathered(desc, mask, lanes)

    def gathered(self, desc: Desc, mask: str, lanes: int) -> Value:
        entries = ["mode = vc", *self.hints()]
        if len(desc.shape) == 2 and desc.shape[0] > 1 and self.r.random() < 0.5:
            entries.append("transpose = [1, 0]")
        kind = vector_text(desc.shape, desc.element)
        found = self.op(
            f"xegpu.load_gather {desc.name}, {mask}{attributes(entries)} : {desc.type}, vector<{lanes}xi1> -> {kind}",
            desc.shape,
            desc.element,
            4 if desc.small else None,
        )
        return self.chosen(found, mask, lanes)

    def chosen(self, x: Value, mask: str, lanes: int) -> Value:
        """The value where the mask is set, and a number elsewhere, because lanes without access are undefined."""
        if x.element not in NUMBERS:
            x = self.bits(x)
        wide = mask
        if len(x.shape) == 2:
            wide = self.op(f"vector.broadcast {mask} : vector<{lanes}xi1> to {x.typed('i1')}", x.shape, "i1").name
        rest = self.splat(self.r.randint(-4, 4), x.shape, x.element)
        text = f"arith.select {wide}, {x.name}, {rest.name} : {x.typed('i1')}, {x.type}"
        return self.op(text, x.shape, x.element, x.exact)

    def scatter(self) -> None:
        """store_scatter of a value that fits, to elements that no other lane has."""
        element = self.element_of([*NUMBERS, *STORED])
        lanes, chunk = self.lanes_and_chunk(element)
        desc, _ = self.lanes_desc(element, lanes, chunk, False, True)
        x = self.of_shape(desc.shape, element)
        entries = ["mode = vc", *self.scope(), *self.hints(write=True)]
        mask = self.lane_mask(lanes)
        self.line(
            f"xegpu.store_scatter {x.name}, {desc.name}, {mask}{attributes(entries)} : {x.type}, {desc.type}, vector<{lanes}xi1>"
        )

    def of_shape(self, shape: tuple[int, ...], element: str, exact: bool = False) -> Value:
        """A value of a type: one that there is, or one that is made of a value or a constant."""
        found = self.pick(lambda v: v.shape == shape and v.element == element and (v.exact is not None or not exact))
        if found and self.r.random() < 0.8:
            return found
        whole = element if element in (*NUMBERS, "tf32") else twin(element)
        size = math.prod(shape)
        line = self.table([self.r.randint(-4, 4) for _ in range(size)], whole)
        found = self.op(f"vector.shape_cast {line.name} : {line.type} to {vector_text(shape, whole)}", shape, whole, 4)
        if whole != element:
            found = self.op(f"vector.bitcast {found.name} : {found.type} to {found.typed(element)}", shape, element)
        return found

    def atomic(self) -> Value:
        """atomic_rmw: of elements that no other lane has, or one whose sum has no rounding and whose result is not used."""
        shared = self.r.random() < 0.3
        kind = self.r.choice([k for k in [*ATOMICS, "assign"] if self.only in (None, *ATOMICS.get(k, [self.only]))])
        element = self.element_of(ATOMICS.get(kind) or (*NUMBERS, *STORED))
        if kind in ("mulf", "assign") or (kind == "addf" and element in ("f16", "bf16", "f8E5M2", "f8E4M3FN")):
            shared = False
        lanes = self.r.choice(LANES)
        chunk = self.r.choice([1, 1, 1, 2, 3])
        desc, _ = self.lanes_desc(element, lanes, chunk, shared, not shared)
        x = self.of_shape(desc.shape, element, exact=shared)
        if shared and kind == "addf" and (x.exact is None or x.exact * x.size * self.threads > most_exact(element)):
            x = self.splat(self.r.randint(-4, 4), desc.shape, element)
        mask = self.lane_mask(lanes)
        expecting = ("", "")
        if kind == "assign" and len(desc.shape) == 1 and element in NUMBERS and self.r.random() < 0.7:
            held = self.op(
                f"xegpu.load_gather {desc.name}, {mask} {{mode = vc}} : {desc.type}, vector<{lanes}xi1> -> {x.type}",
                desc.shape,
                element,
            )
            swaps, expected = self.lane_mask(lanes), self.of_shape(desc.shape, element)
            # Some elements are those that memory holds.
            wanted = self.op(
                f"arith.select {swaps}, {self.chosen(held, mask, lanes).name}, {expected.name} : "
                f"vector<{lanes}xi1>, {x.type}",
                desc.shape,
                element,
            )
            expecting = (f" expecting {wanted.name}", f" expecting {x.type}")
        found = self.op(
            f"xegpu.atomic_rmw {kind}, {x.name}, {desc.name}, {mask}{expecting[0]} {{mode = vc}} : "
            f"{x.type}, {desc.type}, vector<{lanes}xi1>{expecting[1]} -> {x.type}",
            desc.shape,
            element,
        )
        if shared:
            return self.splat(1, desc.shape, element)
        return self.chosen(found, mask, lanes)

    # Matrices

    def dpas(self) -> Value | None:
        """A product of elements that meet, of one instruction or of several."""
        pairs = dpas_pairs(self.target)
        a, b = self.r.choice([p for p in pairs if p[0] == self.only] or pairs)
        step = max(self.gpu.dpas_depths) * ops_per_channel(precision_of(b), precision_of(a))
        width = self.gpu.dpas_exec_size
        m, n, k = self.r.randint(1, 8), width, step
        if self.r.random() < 0.2:
            m, n, k = self.r.choice([9, 12, 16]), width * self.r.choice([1, 2]), step * self.r.choice([1, 2])
        small = self.r.random() < 0.3
        lhs = self.operand(a, (m, k), axis=self.r.choice([None, 1]), small=small)
        rhs = self.operand(b, (k, n), axis=0, small=small)
        results = accumulators(a, b)
        if not self.gpu.dpas_half_accumulators:
            results = tuple(e for e in results if e not in ("bf16", "f16"))
        result, start = self.r.choice(results), self.r.choice(results)
        acc = self.pick(lambda v: v.shape == (m, n) and v.element == start)
        if acc is None and self.r.random() < 0.7:
            acc = self.of_shape((m, n), start)
        exact = None
        if lhs.exact is not None and rhs.exact is not None and is_float(a):
            more = 0 if acc is None else acc.exact
            exact = None if more is None else lhs.exact * rhs.exact * k + more
        kind = vector_text((m, n), result)
        if acc is None:
            text = f"{lhs.name}, {rhs.name} {{mode = vc}} : {lhs.type}, {rhs.type} -> {kind}"
        elif self.r.random() < 0.8:
            text = f"{acc.name}, {lhs.name}, {rhs.name} {{mode = vc}} : {acc.type}, {lhs.type}, {rhs.type} -> {kind}"
        else:
            text = f"{lhs.name}, {rhs.name}, {acc.name} {{mode = vc}} : {lhs.type}, {rhs.type}, {acc.type} -> {kind}"
        return self.op(f"xegpu.dpas {text}", (m, n), result, exact)

    def scaled(self) -> Value | None:
        """A block-scaled product, on a target that has it."""
        if "bdpas" in self.gpu.absent:
            return None
        eights = ("f8E5M2", "f8E4M3FN")
        pairs = [(e, e) for e in ("bf16", "f16", "f4E2M1FN")] + [(a, b) for a in eights for b in eights]
        a, b = self.r.choice([p for p in pairs if p[0] == self.only] or pairs)
        m, n, k = 8, 16, scaled_depth(precision_of(b), precision_of(a)) * self.r.choice([1, 1, 2])
        small = self.r.random() < 0.5
        factors = [self.operand(a, (m, k), None, small), self.operand(b, (k, n), 0, small)]
        result = self.r.choice(["f32", a if a in ("bf16", "f16") else "bf16"])
        if self.r.random() < 0.6:
            factors.append(self.of_shape((m, n), result))
        words, kinds = [", ".join(v.name for v in factors)], [v.type for v in factors]
        blocks = -(-k // 32)
        for name, shape in (("scale_a", (m, blocks)), ("scale_b", (blocks, n))):
            if self.r.random() < 0.7:
                numbers = self.table([self.r.randint(-12, 127) for _ in range(math.prod(shape))], "i8")
                kind = vector_text(shape, "i8")
                rows = self.op(f"vector.shape_cast {numbers.name} : {numbers.type} to {kind}", shape, "i8")
                scales = self.op(f"vector.bitcast {rows.name} : {rows.type} to {rows.typed(SCALE)}", shape, SCALE)
                words.append(f"{name} = {scales.name}")
                kinds.append(scales.type)
        kind = vector_text((m, n), result)
        text = f"xegpu.dpas_mx {' '.join(words)} {{mode = vc}} : ({', '.join(kinds)}) -> {kind}"
        return self.op(text, (m, n), result)

    def truncated(self) -> Value:
        """xegpu.truncf; of elements of 4 bits the bytes."""
        source = self.only if self.only in WIDE_FLOATS else self.r.choice(WIDE_FLOATS)
        x = self.of_shape((self.r.choice([1, 2, 4]), 16), source)
        # dg2 has no conversions of f8E5M2 but this one, and computes nothing with it.
        to = self.r.choice(("f8E4M3FN", "f4E2M1FN") if self.target == "dg2" else NARROW_FLOATS)
        found = self.op(f"xegpu.truncf {x.name} : {x.type} -> {x.typed(to)}", x.shape, to)
        if to != "f4E2M1FN":
            return found
        shape = (x.shape[0], x.shape[1] // 2)
        return self.op(f"vector.bitcast {found.name} : {found.type} to {vector_text(shape, 'i8')}", shape, "i8")

    def operand(self, element: str, shape: tuple[int, int], axis: int | None, small: bool) -> Value:
        """A factor, loaded from memory, in VNNI layout along an axis or not."""
        bits = bit_width(element)
        rows, columns = shape
        if bits < 8:
            # There is no memory of such elements: bytes hold several.
            each = 8 // bits
            bytes_ = self.operand(
                twin_byte(element), (rows, columns // each) if axis != 0 else (rows // each, columns), axis, False
            )
            if axis is None:
                kind = (rows, columns)
            else:
                *outer, inner = bytes_.shape
                kind = (*outer, inner * each)
            return self.op(
                f"vector.bitcast {bytes_.name} : {bytes_.type} to {vector_text(kind, element)}", kind, element
            )
        factor = 32 // bits if bits < 32 else 1
        wide = self.columns_for(element, columns)
        tensor = self.tensor(element, (rows + 1, wide), small)
        vnni = axis is not None and factor > 1 and shape[axis] % factor == 0
        desc = self.block_desc(tensor, shape, [self.place(self.r.randint(0, 1)), "0"], [])
        entries, found = ["mode = vc"], shape
        if vnni:
            entries.append(f"vnni_axis = {axis}")
            found = (rows // factor, columns, factor) if axis == 0 else (rows, columns // factor, factor)  # type: ignore[assignment]
        kind = vector_text(found, element)
        exact = 4 if tensor.small else None
        return self.op(f"xegpu.load_nd {desc.name}{attributes(entries)} : {desc.type} -> {kind}", found, element, exact)

    # Control flow

    def uniform(self) -> Value:
        """A condition that holds for a whole thread."""
        how = self.r.random()
        if how < 0.3:
            return self.op(
                f"arith.cmpi {self.r.choice(['eq', 'ult', 'sgt'])}, {self.tid}, {self.index(self.r.randint(0, 2))} : index",
                (),
                "i1",
            )
        x = self.pick(lambda v: not v.shape and v.element in NUMBERS)
        if x is None:
            x = self.keep(Value(self.argument("i32", f"i32:{self.r.randint(-3, 9)}"), (), "i32"))
        return elementwise.compare(self, x, elementwise.other(self, x))

    def carried(self) -> list[Value]:
        """Some values that control flow passes on."""
        fits = [v for v in self.values if v.element in NUMBERS]
        found = self.r.sample(fits, min(len(fits), self.r.randint(1, 2)))
        return [Value(v.name, v.shape, v.element) for v in found]

    def like(self, x: Value) -> Value:
        """Another value of a type, computed by a new op if possible."""
        found = self.pick(lambda v: v.type == x.type)
        return found if found else elementwise.constant(self, x.shape, x.element)

    def results(self, values: list[Value]) -> str:
        """Names for what control flow gives; they are kept."""
        first = self.name()
        for i, v in enumerate(values):
            self.keep(Value(f"{first}#{i}" if len(values) > 1 else first, v.shape, v.element))
        return f"{first}:{len(values)}" if len(values) > 1 else first

    def branch(self, depth: int) -> None:
        """scf.if, with results."""
        condition, values = self.uniform(), self.carried()
        if not values:
            return
        types = ", ".join(v.type for v in values)
        kept = len(self.values)
        name = self.results(values)
        made = self.values[kept:]
        del self.values[kept:]
        self.line(f"{name} = scf.if {condition.name} -> ({types}) {{")
        for other in (False, True):
            if other:
                self.line("} else {")
            with self.region():
                self.statements(self.r.randint(1, 2), depth - 1)
                yielded = [self.like(v) for v in values]
                self.line(f"scf.yield {', '.join(v.name for v in yielded)} : {types}")
        self.line("}")
        self.values += made

    def counted(self, depth: int) -> None:
        """scf.for over a few steps, which carries values and may carry a descriptor."""
        values = self.carried()
        moved = self.walking() if self.r.random() < 0.5 else None
        kind, order, bounds = self.bounds()
        starts = [(v.name, v.type) for v in values]
        if moved:
            starts.append((moved.name, moved.type))
        if not starts:
            return
        names = [self.name() for _ in starts]
        kept = len(self.values)
        name = self.results([*values, *([Value("", (), "desc")] if moved else [])])
        made = [v for v in self.values[kept:] if v.element != "desc"]
        del self.values[kept:]
        carried = ", ".join(f"{n} = {start}" for n, (start, _) in zip(names, starts))
        types = ", ".join(kind for _, kind in starts)
        at = self.name()
        self.line(
            f"{name} = scf.for {order}{at} = {bounds[0]} to {bounds[1]} step {bounds[2]} "
            f"iter_args({carried}) -> ({types}){'' if kind == 'index' else f' : {kind}'} {{"
        )
        with self.region():
            for n, v in zip(names, values):
                self.keep(Value(n, v.shape, v.element))
            if kind == "index":
                self.keep(self.op(f"arith.index_cast {at} : index to i32", (), "i32"))
            else:
                self.keep(Value(at, (), kind))
            after = None
            if moved:
                inner = replace(moved, name=names[-1])
                self.keep(self.load_desc(inner, 1, bit_width(inner.element)))
                after = self.moved(inner, [self.r.randint(-2, 4) for _ in inner.shape])
            self.statements(self.r.randint(1, 2), depth - 1)
            yielded = [self.like(v).name for v in values]
            if after:
                yielded.append(after.name)
            self.line(f"scf.yield {', '.join(yielded)} : {types}")
        self.line("}")
        self.values += made

    def bounds(self) -> tuple[str, str, list[str]]:
        """The type of a loop's counter, its order, its lower and upper bound and its step; threads may differ in them."""
        order = self.r.choice(["", "", "", "unsigned "])
        low, step, trips = self.r.randint(0, 3), self.r.randint(1, 3), self.r.randint(0, LOOP_STEPS)
        if self.r.random() < 0.6:
            low -= self.r.choice([0, 0, 0, 5]) if not order else 0
            if self.r.random() < 0.2:
                low += 1 << self.r.choice([31, 32, 40])
            found = [self.index_at(n) if abs(n) > 9 else self.dynamic(n) for n in (low, low + step * trips, step)]
            if self.r.random() < 0.3:
                by = self.op(f"arith.remui {self.tid}, {self.index(3)} : index", (), "index").name
                found[0] = self.op(f"arith.addi {found[0]}, {by} : index", (), "index").name
            return "index", order, found
        kind = self.r.choice(["i8", "i16", "i32", "i64"])
        most = (1 << bit_width(kind) - 1) - 1
        # At the ends of the order, and around its middle, where signs change.
        first, last = (0, 2 * most + 1) if order else (-most - 1, most)
        low = self.r.choice([first, (first + last) // 2 - 2, last - step * trips, 3])
        high = min(last, low + step * trips + self.r.randint(0, step - 1))
        if self.r.random() < 0.2:
            low, high = high, low
        numbers = [n - 2 * most - 2 if n > most else n for n in (low, high, step)]
        return (
            kind,
            order,
            [
                self.argument(kind, f"{kind}:{n}") if self.r.random() < 0.6 else self.scalar(n, kind).name
                for n in numbers
            ],
        )

    def index_at(self, number: int) -> str:
        """An index of any value."""
        if self.r.random() < 0.5:
            return self.argument("index", f"i64:{number}")
        return self.index(number)

    def walking(self) -> Desc | None:
        """A descriptor that a loop may move anywhere: its block may reach over the edges."""
        if not self.gpu.block2d:
            return None
        element = self.r.choice(NUMBERS)
        rows, columns = self.r.choice([1, 4, 8]), self.r.choice([4, 8, 16])
        # A descriptor that is moved and never used is refused where no message could serve it.
        kept, self.ragged = self.ragged, 0.0
        tensor = self.tensor(element, (rows + 6, self.columns_for(element, columns)), self.r.random() < 0.3)
        self.ragged = kept
        offsets = [self.place(self.r.randint(-2, 5)) for _ in range(2)]
        return self.block_desc(tensor, (rows, columns), offsets, [])

    def turning(self, depth: int) -> None:
        """scf.while over a number that gets smaller."""
        values = self.carried()
        count = self.scalar(self.r.randint(0, LOOP_STEPS))
        starts = [count, *values]
        names, inner = [self.name() for _ in starts], [self.name() for _ in starts]
        types = ", ".join(v.type for v in starts)
        kept = len(self.values)
        name = self.results(starts)
        made = self.values[kept:]
        del self.values[kept:]
        carried = ", ".join(f"{n} = {v.name}" for n, v in zip(names, starts))
        self.line(f"{name} = scf.while ({carried}) : ({types}) -> ({types}) {{")
        with self.region():
            for n, v in zip(names, starts):
                self.keep(Value(n, v.shape, v.element))
            self.statements(1, 0)
            more = self.op(f"arith.cmpi sgt, {names[0]}, {self.scalar(0).name} : i32", (), "i1")
            passed = [names[0], *(self.like(v).name for v in values)]
            self.line(f"scf.condition({more.name}) {', '.join(passed)} : {types}")
        self.line("} do {")
        self.line(f"^bb0({', '.join(f'{n}: {v.type}' for n, v in zip(inner, starts))}):")
        with self.region():
            for n, v in zip(inner, starts):
                self.keep(Value(n, v.shape, v.element))
            self.statements(1, depth - 1)
            less = self.op(f"arith.subi {inner[0]}, {self.scalar(1).name} : i32", (), "i32")
            self.line(f"scf.yield {', '.join([less.name, *(self.like(v).name for v in values)])} : {types}")
        self.line("}")
        self.values += made

    def switch(self, depth: int) -> None:
        """scf.index_switch."""
        values = self.carried()
        if not values:
            return
        two = self.index(2)
        chosen = (
            self.op(f"arith.remui {self.tid}, {two} : index", (), "index").name
            if self.r.random() < 0.5
            else self.dynamic(self.r.randint(0, 3))
        )
        types = ", ".join(v.type for v in values)
        kept = len(self.values)
        name = self.results(values)
        made = self.values[kept:]
        del self.values[kept:]
        self.line(f"{name} = scf.index_switch {chosen} -> {types}")
        for label in ("case 0", "case 2", "default"):
            self.line(f"{label} {{")
            with self.region():
                self.statements(1, depth - 1)
                self.line(f"scf.yield {', '.join(self.like(v).name for v in values)} : {types}")
            self.line("}")
        self.values += made

    # Shared local memory

    def exchange(self) -> Value | None:
        """Each thread of a workgroup writes to shared local memory; after a barrier it reads another one's data."""
        element = self.element_of([*NUMBERS, *STORED])
        count = self.r.choice([4, 8, 16, 32])
        kind = f"memref<{self.block * count}x{element}, 3>"
        buffer = self.shared(kind) if self.r.random() < 0.5 else self.op(f"memref.alloc() : {kind}", (), "memref").name
        x = self.of_shape((count,), element)
        own = self.op(f"arith.muli {self.local}, {self.index(count)} : index", (), "index").name
        next_ = self.op(f"arith.addi {self.local}, {self.index(1)} : index", (), "index").name
        other = self.op(f"arith.remui {next_}, {self.index(self.block)} : index", (), "index").name
        theirs = self.op(f"arith.muli {other}, {self.index(count)} : index", (), "index").name
        lanes = count in LANES and self.r.random() < 0.5
        desc = f"!xegpu.tensor_desc<{count}x{element}, #xegpu.tdesc_attr<memory_scope = slm, boundary_check = false>>"

        def line(at: str) -> str:
            return self.op(f"xegpu.create_nd_tdesc {buffer}[{at}] {{mode = vc}} : {kind} -> {desc}", (), "desc").name

        scattered = f"!xegpu.tensor_desc<{count}x{element}, #xegpu.tdesc_attr<memory_scope = slm, #xegpu.scattered>>"

        def each(at: str) -> str:
            step = self.op(f"vector.step : vector<{count}xindex>", (), "index").name
            first = self.op(f"vector.broadcast {at} : index to vector<{count}xindex>", (), "index").name
            places = self.op(f"arith.addi {first}, {step} : vector<{count}xindex>", (), "index").name
            return self.op(
                f"xegpu.create_tdesc {buffer}, {places} {{mode = vc}} : {kind}, vector<{count}xindex> -> {scattered}",
                (),
                "desc",
            ).name

        mask = self.op(f"arith.constant dense<true> : vector<{count}xi1>", (), "i1").name
        if lanes:
            to = each(own)
            entries = ["mode = vc", *self.scope(slm=True)]
            self.line(
                f"xegpu.store_scatter {x.name}, {to}, {mask}{attributes(entries)} : {x.type}, {scattered}, vector<{count}xi1>"
            )
        else:
            self.line(f"xegpu.store_nd {x.name}, {line(own)} {{mode = vc}} : {x.type}, {desc}")
        self.meet()
        if self.r.random() < 0.5 and count in LANES:
            found = self.op(
                f"xegpu.load_gather {each(theirs)}, {mask} {{mode = vc}} : {scattered}, vector<{count}xi1> -> {x.type}",
                x.shape,
                element,
                x.exact,
            )
        else:
            if self.only or self.r.random() < 0.3:
                self.line(
                    f"xegpu.prefetch_nd {line(theirs)}{attributes(['mode = vc', *self.scope(slm=True)])} : {desc}"
                )
            found = self.op(
                f"xegpu.load_nd {line(theirs)} {{mode = vc}} : {desc} -> {x.type}", x.shape, element, x.exact
            )
        return found

    def meet(self) -> None:
        """All threads of a workgroup wait for each other."""
        if self.r.random() < 0.3 and self.gpu.named_barriers:
            fence = "xegpu.fence"
            if self.r.random() < 0.8:
                fence += f" {{scope = {self.r.choice(['workgroup', 'gpu'])}, memory_kind = shared}}"
            self.line(fence)
            if self.r.random() < 0.5:
                self.line("xegpu.fence {scope = workgroup, memory_kind = global}")
            if not any("alloc_nbarrier" in line for line in self.lines):
                if self.r.random() < 0.5:
                    self.lines[:0] = [
                        "    %barriers = arith.constant 4 : i8",
                        "    xegpu.alloc_nbarrier %barriers : i8",
                    ]
                else:
                    self.lines.insert(0, "    xegpu.alloc_nbarrier 4")
            number = self.scalar(self.r.randint(0, 3), "i8")
            if self.r.random() < 0.5:
                count = self.scalar(self.block, "i8")
                made = f"xegpu.init_nbarrier {number.name}, {count.name} : i8, i8"
            else:
                both = f"{{num_producers = {self.block}, num_consumers = {self.block}}}"
                made = f"xegpu.create_nbarrier {number.name}, {self.scalar(0, 'i8').name} {both} : (i8, i8)"
            barrier = self.op(f"{made} -> !xegpu.nbarrier", (), "nbarrier")
            self.line(f"xegpu.nbarrier_arrive {barrier.name}")
            self.line(f"xegpu.nbarrier_wait {barrier.name}")
        else:
            self.line("gpu.barrier")

    # Programs

    def statement(self, depth: int) -> None:
        """Any statement."""
        blocks = self.gpu.block2d is not None
        options = {
            "step": 10 if self.steppable() else 0,
            "change": 7 if self.steppable() else 0,
            "load": 4 if blocks else 0,
            "line": 2,
            "gather": 3,
            "dpas": 3 if blocks else 0,
            "scatter": 1,
            "atomic": 2,
            "scaled": 1,
            "truncated": 1,
            "hint": 1,
            "element": 1,
            "if": 2 if depth else 0,
            "for": 2 if depth else 0,
            "while": 1 if depth else 0,
            "switch": 1 if depth else 0,
        }
        (how,) = self.r.choices(list(options), weights=list(options.values()))
        made: Value | None = None
        if how == "step":
            elementwise.steps(self, self.steppable())  # type: ignore[arg-type]
        elif how == "change":
            vectors.change(self, self.steppable())  # type: ignore[arg-type]
        elif how == "load":
            made = self.load_block()
        elif how == "line":
            element = self.element_of([*NUMBERS, *STORED])
            made = self.load_line(element, element == "tf32" or self.r.random() < 0.4)
        elif how == "gather":
            made = self.gather()
        elif how == "dpas":
            made = self.dpas()
        elif how == "scatter":
            self.scatter()
        elif how == "atomic":
            made = self.atomic()
        elif how == "scaled":
            made = self.scaled()
        elif how == "truncated":
            made = self.truncated()
        elif how == "hint":
            self.line(self.r.choice(["xegpu.compile_hint", "xegpu.compile_hint {schedule_barrier}"]))
        elif how == "element":
            made = self.element()
        elif how == "if":
            self.branch(depth)
        elif how == "for":
            self.counted(depth)
        elif how == "while":
            self.turning(depth)
        else:
            self.switch(depth)
        if made is not None:
            self.keep(self.computable(made))

    def element(self) -> Value:
        """One number from memory."""
        element = self.r.choice(NUMBERS)
        shape = (self.threads, 5)
        kind = f"memref<?x{self.r.choice(['5', '?'])}x{element}>"
        name = self.argument(kind, self.data(element, shape))
        return self.op(f"memref.load {name}[{self.tid}, {self.dynamic(self.r.randint(0, 4))}] : {kind}", (), element)

    def computable(self, x: Value) -> Value:
        """The value in elements that arith computes with."""
        if x.element in NUMBERS:
            return x
        if self.r.random() < 0.3:
            self.store(x)
        return self.bits(x)

    def bits(self, x: Value) -> Value:
        """The bits as integers; of tf32, whose lowest bits say nothing, the number."""
        if x.element == "tf32":
            return self.op(f"arith.extf {x.name} : {x.type} to {x.typed('f32')}", x.shape, "f32", x.exact)
        whole = twin(x.element)
        return self.op(f"vector.bitcast {x.name} : {x.type} to {x.typed(whole)}", x.shape, whole)

    def steppable(self) -> Value | None:
        """A value to compute with, recent ones more often."""
        found = [v for v in self.values if v.element in NUMBERS]
        if not found:
            return None
        return self.r.choice(found[-3:]) if self.r.random() < 0.7 else self.r.choice(found)

    def statements(self, count: int, depth: int) -> None:
        """Some statements; what they made last is kept."""
        for _ in range(count):
            self.statement(depth)


def twin_byte(element: str) -> str:
    """The byte that holds several integers of fewer bits."""
    return "ui8" if element.startswith("u") else "i8"


def dpas_pairs(target: str) -> list[tuple[str, str]]:
    """Elements that meet in a dpas of a target."""
    gpu = TARGETS[target]
    integers = [f"{sign}i{bits}" for bits in NARROW for sign in ("", "u")]
    found = [(a, b) for a in integers for b in integers]
    found += [(e, e) for e in ("bf16", "f16", "tf32") * 8]
    found += [(a, b) for a in ("f8E5M2", "f8E4M3FN") for b in ("f8E5M2", "f8E4M3FN")] * 4
    found += [("f64", "f64")] * 6
    return [(a, b) for a, b in found if {precision_of(a), precision_of(b)} <= set(gpu.dpas_precisions)]


NARROW = (8, 8, 4, 2)
"""Widths of integers that dpas multiplies."""
TARGET_NAMES = ("pvcxt", "pvcxt", "pvcxt", "any", "any", "pvc", "dg2")


def tour(r: Random, element: str | None = None, length: int | None = None) -> Program:
    """A kernel of ops on memory and products, with one element and many attributes, whose results are stored."""
    target = r.choice(TARGET_NAMES)
    grid, block = r.choice([(1, 1), (2, 1), (1, 2)])
    b = Kernel(r, target, grid, block)
    b.only, b.plain_hints = element or r.choice([*NUMBERS, *STORED]), 0.1
    for _ in range(length or r.randint(2, 6)):
        (how,) = r.choices(
            ["load", "line", "gather", "scatter", "atomic", "dpas", "exchange", "scaled", "truncated"],
            weights=[5, 1, 3, 3, 3, 1, 2, 1, 1],
        )
        made: Value | None = None
        if r.random() < 0.1:
            b.line("xegpu.compile_hint")
        if how == "load":
            made = b.load_block()
        elif how == "line":
            made = b.load_line(b.only, b.only == "tf32" or r.random() < 0.4)
        elif how == "scatter":
            b.scatter()
        else:
            made = getattr(b, how)()
        # A tour of a given length is not run.
        if made is not None and (length is None or r.random() < 0.5):
            b.store(made)
    return Program(b.text(), b.words(), (grid,), (block,), target)


def program(r: Random) -> Program:
    """A random kernel of subgroups."""
    if r.random() < 0.3:
        return tour(r)
    target = r.choice(TARGET_NAMES)
    grid, block = r.choice([(1, 1), (1, 1), (2, 1), (1, 2), (2, 2), (3, 1)])
    b = Kernel(r, target, grid, block)
    for _ in range(r.randint(1, 3)):
        (how,) = r.choices(["block", "line", "gather", "dpas"], weights=[5, 2, 2, 3])
        made = {
            "block": b.load_block,
            "line": lambda: b.load_line(r.choice(NUMBERS), r.random() < 0.5),
            "gather": b.gather,
            "dpas": b.dpas,
        }[how]()
        assert made is not None
        b.keep(b.computable(made))
    b.statements(r.randint(1, 6), 2)
    if block > 1 or r.random() < 0.15:
        found = b.all_reduced(b.element()) if r.random() < 0.25 else b.exchange()
        if found is not None:
            b.keep(b.computable(found))
        b.statements(r.randint(0, 2), 1)
    for x in b.values[-3:]:
        b.store(x)
    registers = r.choice([None, None, 256])
    model = r.choice(["fma", "fma", "stage", "exact"])
    return Program(b.text(), b.words(), (grid,), (block,), target, registers, model)
