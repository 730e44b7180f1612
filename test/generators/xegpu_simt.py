"""Random kernels of work items: divergent lanes, communication between lanes, and fragments of blocks."""

from __future__ import annotations

import math
from random import Random

from xegpu_py.dialects.xegpu.matrix_ops import accumulators
from xegpu_py.ir.builtin import bit_width, by, vector_text

from . import elementwise, work_items, xegpu_vc
from .body import Value, attributes
from .ops import NARROW, NUMBERS, STORED
from .program import Program

SCALARS = ("i32", "i16", "i64", "i8", "f32", "f16", "bf16", "f64")
HOW = ("plain", "plain", "vnni0", "vnni1", "transpose", "array")
"""Transforms of a fragment that is loaded."""


class Items(xegpu_vc.Kernel):
    """A kernel of work items in subgroups of `lanes`; `%tid` is the item's number."""

    def __init__(self, r: Random, target: str, grid: int, items: int, lanes: int) -> None:
        super().__init__(r, target, grid, items)
        self.lanes = lanes
        self.lane = self.op("gpu.lane_id", (), "index").name
        # What is alike in all items of a subgroup: blocks, barriers and shuffles are of whole subgroups.
        self.whole = items % lanes == 0
        self.inner = 0

    def statements(self, count: int, depth: int) -> None:
        self.inner += 1
        super().statements(count, depth)
        self.inner -= 1

    def statement(self, depth: int) -> None:
        top = self.inner <= 1
        scalars = [v for v in self.values if not v.shape]
        options = {
            "step": 12 if scalars else 0,
            "vector": 2 if self.vectors() else 0,
            "element": 4,
            "put": 2 if scalars else 0,
            "count": 2,
            "if": 3 if depth and scalars else 0,
            "for": 2 if depth and scalars else 0,
            "while": 1 if depth and scalars else 0,
            "switch": 1 if depth and scalars else 0,
            "tell": 6 if top and self.whole and scalars else 0,
            "fragment": 3 if top and self.whole else 0,
            "dpas": 1 if top and self.whole and self.lanes == 16 else 0,
            "exchange": 1 if top and self.whole else 0,
        }
        (how,) = self.r.choices(list(options), weights=list(options.values()))
        made: Value | None = None
        if how == "step":
            elementwise.steps(self, self.r.choice(scalars[-4:]))
        elif how == "vector":
            elementwise.step(self, self.r.choice(self.vectors()))
        elif how == "element":
            made = self.element()
        elif how == "put":
            self.put(self.r.choice(scalars))
        elif how == "count":
            self.count()
        elif how == "if":
            self.branch(depth)
        elif how == "for":
            self.counted(depth)
        elif how == "while":
            self.turning(depth)
        elif how == "switch":
            self.switch(depth)
        elif how == "tell":
            x = self.r.choice(scalars)
            made = self.tell(x) if self.r.random() < 0.8 else self.all_reduced(x)
        elif how == "fragment":
            made = self.fragment()
            if self.r.random() < 0.2:
                made = self.shuffled(made)
        elif how == "dpas":
            made = self.fragments_dpas()
        else:
            made = self.exchange_items()
        if made is not None:
            self.keep(made)

    def vectors(self) -> list[Value]:
        """The vectors to compute with."""
        return [v for v in self.values if v.shape and v.element in NUMBERS]

    def walking(self) -> None:
        """Loops carry no descriptors, because lanes leave loops at different iterations."""

    def carried(self) -> list[Value]:
        fits = [v for v in self.values if v.element in NUMBERS and not v.shape]
        return [Value(v.name, v.shape, v.element) for v in self.r.sample(fits, min(len(fits), self.r.randint(1, 2)))]

    # Memory of items

    def element(self) -> Value:
        """A number from any place of an array."""
        element = self.r.choice(SCALARS)
        kind = f"memref<32x{element}>"
        name = self.argument(kind, self.data(element, (32,)))
        return self.op(f"memref.load {name}[{self.within(32)}] : {kind}", (), element)

    def put(self, x: Value) -> None:
        """Store a number where no other item does."""
        kind = f"memref<?x{x.element}>"
        name = self.argument(kind, self.data(x.element, (self.threads,)))
        self.line(f"memref.store {x.name}, {name}[{self.tid}] : {kind}")

    def store(self, x: Value) -> None:
        if not x.shape:
            self.put(x)
            return
        x = self.flat(x)
        kind = f"memref<?x{x.size}x{x.element}>"
        name = self.argument(kind, self.data(x.element, (self.threads, x.size)))
        for n in range(x.size):
            one = self.op(f"vector.extract {x.name}[{n}] : {x.element} from {x.type}", (), x.element)
            self.line(f"memref.store {one.name}, {name}[{self.tid}, {self.index(n)}] : {kind}")

    # Subgroups

    def exchange_items(self) -> Value:
        """Numbers that items exchange through shared local memory."""
        element = self.r.choice(SCALARS)
        kind = f"memref<{self.block}x{element}, 3>"
        buffer = self.shared(kind)
        x = self.pick(lambda v: not v.shape and v.element == element) or self.scalar(self.r.randint(-4, 4), element)
        self.line("gpu.barrier")
        self.line(f"memref.store {x.name}, {buffer}[{self.local}] : {kind}")
        self.line("gpu.barrier")
        next_ = self.op(f"arith.addi {self.local}, {self.index(self.r.randint(1, 9))} : index", (), "index").name
        other = self.op(f"arith.remui {next_}, {self.index(self.block)} : index", (), "index").name
        return self.op(f"memref.load {buffer}[{other}] : {kind}", (), element)

    # Fragments

    def group_row(self, rows: int) -> str:
        """Where a subgroup's rows begin."""
        group = self.number("block_id", self.grid_size)
        count, own = (self.op(f"gpu.{op} : index", (), "index").name for op in ("num_subgroups", "subgroup_id"))
        first = self.op(f"arith.muli {group}, {count} : index", (), "index").name
        number = self.op(f"arith.addi {first}, {own} : index", (), "index").name
        return self.op(f"arith.muli {number}, {self.index(rows)} : index", (), "index").name

    def map_of(self, layout: tuple[int, int], data: tuple[int, int]) -> str:
        return f"<wi_layout = {list(layout)}, wi_data = {list(data)}>"

    def desc(
        self, shape: tuple[int, int], element: str, layout: tuple[int, int], data: tuple[int, int], length: int
    ) -> str:
        """The type of a descriptor with a map."""
        entries = [f"array_length = {length}"] if length > 1 else []
        inner = (
            f"#xegpu.tdesc_attr<{', '.join([*entries, f'map = {self.map_of(layout, data)}'])}>"
            if entries
            else f"#xegpu.sg_map{self.map_of(layout, data)}"
        )
        return f"!xegpu.tensor_desc<{by(shape)}x{element}, {inner}>"

    def shuffled(self, x: Value) -> Value:
        """lane_shuffle of a fragment."""
        line = (math.prod(x.shape),)
        flat = self.op(
            f"vector.shape_cast {x.name} : {x.type} to {vector_text(line, x.element)}", line, x.element, x.exact
        )
        how = self.r.choice(["pack", "unpack"])
        moved = self.op(f"xegpu.lane_shuffle {flat.name} {how} : {flat.type}", line, x.element, x.exact)
        return self.op(f"vector.shape_cast {moved.name} : {moved.type} to {x.type}", x.shape, x.element, x.exact)

    def fragment(self) -> Value:
        """load_nd in SIMT mode, some arithmetic, and store_nd of what has the fragment's shape."""
        element = self.element_of([*NUMBERS, *STORED, *NARROW])
        bits = bit_width(element)
        factor = max(32 // bits, 1)
        rows = self.r.choice([n for n in (1, 2, 4, 8, 16) if n <= self.lanes])
        layout = rows, self.lanes // rows
        # Work items have whole bytes of narrow elements, which they move alone.
        each = max(8 // bits, 1)
        how = self.r.choice(["plain", "plain", "array"] if each > 1 else HOW)
        if factor == 1 and how.startswith("vnni"):
            how = "plain"
        data = (1, each * self.r.choice([1, 1, 2]))
        if how == "vnni0":
            data = (factor, 1)
        elif how == "vnni1":
            data = (1, factor)
        elif how == "transpose":
            data = (1, 1)
        rows = layout[0] * data[0] * self.r.choice([n for n in (1, 2, 4) if layout[0] * data[0] * n <= 32] or [1])
        columns = (
            layout[1] * data[1] * self.r.choice([n for n in (1, 2, 4) if layout[1] * data[1] * n * bits <= 512] or [1])
        )
        length = 2 if how == "array" else 1
        kind = self.desc((rows, columns), element, layout, data, length)
        wide = self.columns_for(element, columns * length)
        small = element == "tf32" or self.r.random() < 0.5
        tensor = self.tensor(element, (rows * max(self.threads // self.lanes, 1) + 1, wide), small)
        offsets = [
            self.group_row(rows) if self.r.random() < 0.5 else self.place(self.offset(rows + 2, rows, False)),
            self.place(self.offset(wide, columns, False)),
        ]
        t = self.op(
            f"xegpu.create_nd_tdesc {tensor.source}[{', '.join(offsets)}]{tensor.given} : {tensor.kind} -> {kind}",
            (),
            "desc",
        ).name
        if self.r.random() < 0.3:
            move = [self.r.randint(-2, 3), self.r.randint(-2, 3)]
            t = self.op(
                f"xegpu.update_nd_offset {t}, [{', '.join(map(self.place, move))}] : {kind} -> {kind}", (), "desc"
            ).name
        if self.r.random() < (0.6 if self.only else 0.2):
            self.line(f"xegpu.prefetch_nd {t}{attributes(self.hints())} : {kind}")
        part = (rows // layout[0], columns // layout[1])
        entries: list[str] = []
        shape: tuple[int, ...] = part
        if how == "transpose":
            entries, shape = ["transpose = [1, 0]"], part[::-1]
        elif how == "vnni0":
            entries, shape = ["vnni_axis = 0"], (part[0] // factor, part[1], factor)
        elif how == "vnni1":
            entries, shape = ["vnni_axis = 1"], (part[0], part[1] // factor, factor)
        elif how == "array":
            shape = (2, *part)
        text = f"xegpu.load_nd {t}{attributes([*entries, *self.hints()])} : {kind} -> {vector_text(shape, element)}"
        x = self.op(text, shape, element, 4 if tensor.small else None)
        if self.only and shape == part:
            self.store_fragment(x, (rows, columns), layout, data)
        if element not in NUMBERS:
            x = self.bits(x)
        elif shape == part:
            y = elementwise.number(self, x)
            self.store_fragment(y, (rows, columns), layout, data)
        return x

    def store_fragment(self, x: Value, shape: tuple[int, int], layout: tuple[int, int], data: tuple[int, int]) -> None:
        """store_nd in SIMT mode."""
        rows, columns = shape
        if columns * bit_width(x.element) % 32:
            return
        kind = self.desc(shape, x.element, layout, data, 1)
        height = rows * max(self.threads // self.lanes, 1)
        tensor = self.tensor(x.element, (height, self.columns_for(x.element, columns)), False)
        # Blocks of narrow elements are stored from the begin of a byte on.
        column = "0" if x.element in NARROW else self.place(self.r.randint(-2, 3))
        t = self.op(
            f"xegpu.create_nd_tdesc {tensor.source}[{self.group_row(rows)}, {column}]{tensor.given} : {tensor.kind} -> {kind}",
            (),
            "desc",
        ).name
        self.line(f"xegpu.store_nd {x.name}, {t}{attributes(self.hints(write=True))} : {x.type}, {kind}")

    def fragments_dpas(self) -> Value | None:
        """dpas of fragments, with the maps that the RFC's example has."""
        every = ["f16", "bf16", "i8", "ui8", "tf32"]
        if self.target == "any":
            every += ["f8E5M2", "f8E4M3FN", "f64"]
        element = self.element_of(every)
        bits = bit_width(element)
        factor = max(32 // bits, 1)
        k, m, n = 8 * factor, self.r.choice([8, 8, 4]), 16
        result = self.r.choice([e for e in accumulators(element, element) if e in NUMBERS])
        rows = max(self.threads // self.lanes, 1)
        parts = []
        wide = factor if m == 8 else 0
        for shape, layout, data, entries, held in (
            ((m, k), (2, 8) if m == 8 else (1, 16), (1, factor) if m == 8 else (1, 1), ["vnni_axis = 1"] if factor > 1 and wide else [], None),
            ((k, n), (1, 16), (factor, 1), ["vnni_axis = 0"] if factor > 1 else [], None),
        ):  # fmt: skip
            if layout[1] * data[1] > shape[1]:
                return None
            kind = self.desc(shape, element, layout, data, 1)
            tensor = self.tensor(
                element,
                (shape[0] * rows, self.columns_for(element, shape[1])),
                element == "tf32" or self.r.random() < 0.5,
            )
            t = self.op(
                f"xegpu.create_nd_tdesc {tensor.source}[{self.group_row(shape[0])}, 0]{tensor.given} : {tensor.kind} -> {kind}",
                (),
                "desc",
            ).name
            part = (shape[0] // layout[0], shape[1] // layout[1])
            held = part
            if entries == ["vnni_axis = 1"]:
                held = (part[0], part[1] // factor, factor)
            elif entries:
                held = (part[0] // factor, part[1], factor)
            text = f"xegpu.load_nd {t}{attributes(entries)} : {kind} -> {vector_text(held, element)}"
            parts.append(self.op(text, held, element, 4 if tensor.small else None))
        shape = (m, 1)
        acc = self.splat(self.r.randint(-3, 3), shape, result) if self.r.random() < 0.6 else None
        more = (f"{acc.name}, ", f"{acc.type}, ") if acc else ("", "")
        text = f"xegpu.dpas {more[0]}{parts[0].name}, {parts[1].name} : {more[1]}{parts[0].type}, {parts[1].type} -> {vector_text(shape, result)}"
        found = self.op(text, shape, result)
        self.store_fragment(found, (m, n), (1, 16), (1, 1))
        return found


def fragments(r: Random) -> Program:
    """A kernel of any numbers, with fragments."""
    target = r.choice(["pvcxt", "pvcxt", "pvc", "any"])
    lanes = r.choice([16, 16, 16, 32, 8])
    items = r.choice([lanes, lanes, 2 * lanes, lanes + 3, 5])
    grid = r.choice([1, 1, 2])
    b = Items(r, target, grid, items, lanes)
    b.keep(b.op(f"arith.index_cast {b.tid} : index to i32", (), "i32", 128))
    b.keep(b.element())
    b.statements(r.randint(2, 7), 2)
    for x in [v for v in b.values if v.element in NUMBERS][-3:]:
        b.store(x)
    return Program(
        b.text(attributes=f"xegpu.subgroup_size = {lanes} : i32"), b.words(), b.grid_size, b.block_size, target
    )


def tour(r: Random, element: str | None = None, length: int | None = None) -> Program:
    """A kernel of fragments of one element."""
    target, lanes = r.choice(["pvcxt", "pvc", "any"]), r.choice([16, 16, 8, 32])
    b = Items(r, target, r.choice([1, 2]), r.choice([1, 2]) * lanes, lanes)
    b.only, b.plain_hints = element or r.choice([*NUMBERS, *STORED, *NARROW]), 0.3
    for _ in range(length or r.randint(2, 4)):
        found = b.fragments_dpas() if lanes == 16 and r.random() < 0.3 else b.fragment()
        if found is not None and r.random() < 0.5:
            found = b.shuffled(found)
        # A tour of a given length is not run.
        if found is not None and length is None:
            b.store(found)
    return Program(
        b.text(attributes=f"xegpu.subgroup_size = {lanes} : i32"), b.words(), b.grid_size, b.block_size, target
    )


def program(r: Random) -> Program:
    """A random kernel of work items."""
    (how,) = r.choices([fragments, work_items.program, tour], weights=[5, 3, 2])
    found: Program = how(r)
    return found
