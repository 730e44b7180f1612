"""Random kernels of subgroups: loops and branches that carry values and descriptors."""

from __future__ import annotations

from dataclasses import replace

from xegpu_py.ir.builtin import bit_width, is_float

from . import elementwise
from .body import Value
from .ops import NUMBERS
from .xegpu_blocks import Desc
from .xegpu_products import Products

LOOP_STEPS = 3


class Control(Products):
    """Control flow, and what work items do.

    Attributes:
        lanes: work items of a subgroup; 0 in kernels of threads.
        lane: the index of a work item in its subgroup.
        wraps: whether the counter of a loop may exceed its type when the loop ends.
    """

    wraps = True
    lanes = 0
    lane = ""

    def statement(self, depth: int) -> None:
        """Any statement."""
        raise NotImplementedError

    def statements(self, count: int, depth: int) -> None:
        """Some statements; what they made last is kept."""
        for _ in range(count):
            self.statement(depth)

    def uniform(self) -> Value:
        """A condition that is uniform within a thread."""
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
        return elementwise.compare(self, x)

    def carried(self) -> list[Value]:
        """Some values that control flow passes on."""
        fits = [v for v in self.values if v.element in (*NUMBERS, "i1")]
        found = self.r.sample(fits, min(len(fits), self.r.randint(1, 3)))
        return [Value(v.name, v.shape, v.element) for v in found]

    def like(self, x: Value) -> Value:
        """Another value of a type, computed by a new op if possible."""
        found = self.pick(lambda v: v.type == x.type)
        return found if found else elementwise.constant(self, x.shape, x.element)

    def results(self, values: list[Value]) -> str:
        """Names for the results of control flow, which are added to the values."""
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
            elif self.r.random() < 0.1 and not order:
                far = [-(1 << 62) - low, (1 << 62) + low, (1 << 62) - 3]
                return "index", order, [self.index_at(n) for n in far]
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
        elif self.r.random() < 0.5:
            # The distance is not a number of the type.
            low, trips = first, self.r.randint(2, 3)
            step = (last - first) // trips - self.r.randint(0, 3)
            high = low + step * trips - self.r.randint(0, 3)
            if self.wraps and self.r.random() < 0.5:
                high = last
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

    # Work items

    def within(self, limit: int) -> str:
        """An index below a power of two that depends on a value."""
        x = self.pick(lambda v: not v.shape and v.element == "i32")
        if x is None or self.r.random() < 0.3:
            return self.op(f"arith.remui {self.tid}, {self.index(limit)} : index", (), "index").name
        small = elementwise.binary(self, "andi", x, self.scalar(limit - 1))
        return self.op(f"arith.index_cast {small.name} : i32 to index", (), "index").name

    def count(self) -> None:
        """memref.atomic_rmw, whose order does not matter."""
        kind, element = self.r.choice([("addi", "i32"), ("addi", "i64"), ("maxu", "i32"), ("mins", "i32"), ("ori", "i32"), ("andi", "i64"),
                                       ("maximumf", "f32"), ("minimumf", "f32")])  # fmt: skip
        memref = f"memref<8x{element}>"
        name = self.argument(memref, self.data(element, (8,)))
        x = self.pick(lambda v: not v.shape and v.element == element) or self.scalar(self.r.randint(-4, 4), element)
        if self.r.random() < 0.3 and kind in ("addi", "ori", "andi"):
            old = f"%old{self.names}"
            self.op(
                f"memref.generic_atomic_rmw {name}[{self.within(8)}] : {memref} {{ ^bb0({old}: {element}): "
                f"%new = arith.{kind} {old}, {x.name} : {element} memref.atomic_yield %new : {element} }}",
                (),
                element,
            )
            return
        self.op(
            f"memref.atomic_rmw {kind} {x.name}, {name}[{self.within(8)}] : ({element}, {memref}) -> {element}",
            (),
            element,
        )

    def tell(self, x: Value) -> Value:
        """A shuffle, or a reduction of a subgroup; often of numbers that differ among lanes."""
        if self.r.random() < 0.4:
            x = self.op(f"arith.index_cast {self.lane} : index to i32", (), "i32", self.lanes)
        if x.element not in ("i32", "f32", "i64", "f16", "i16"):
            return x
        if self.r.random() < 0.4:
            kinds = ["maxsi", "minui", "add", "xor"] if not is_float(x.element) else ["maximumf", "minimumf", "maxnumf"]
            return self.op(
                f"gpu.subgroup_reduce {self.r.choice(kinds)} {x.name} : ({x.type}) -> {x.type}", (), x.element
            )
        if self.r.random() < 0.4 and self.lanes > 1:
            width, at = self.r.choice([n for n in (4, 8, 16) if n <= self.lanes]), self.r.randrange(4)
            if self.r.random() < 0.5:
                ways = ("first_active_lane", f"specific_lane {self.scalar(at).name}")
                return self.op(f"gpu.subgroup_broadcast {x.name}, {self.r.choice(ways)} : {x.type}", (), x.element)
            rotated, valid = Value(self.name(), (), x.element), Value(self.name(), (), "i1")
            self.line(f"{rotated.name}, {valid.name} = gpu.rotate {x.name}, {at}, {width} : {x.type}")
            return self.op(f"arith.select {valid.name}, {rotated.name}, {x.name} : {x.type}", (), x.element)
        width = self.r.choice([n for n in (4, 8, 16, 32) if n <= self.lanes])
        mode = self.r.choice(["xor", "up", "down", "idx"])
        at = self.scalar(self.r.randrange(width))
        if self.r.random() < 0.3:
            y = self.pick(lambda v: not v.shape and v.element == "i32")
            if y is not None:
                at = elementwise.binary(self, "andi", y, self.scalar(width - 1))
        size = self.scalar(width)
        found, valid = Value(self.name(), (), x.element), Value(self.name(), (), "i1")
        self.line(f"{found.name}, {valid.name} = gpu.shuffle {mode} {x.name}, {at.name}, {size.name} : {x.type}")
        # The result of lanes outside of their segment is undefined.
        return self.op(f"arith.select {valid.name}, {found.name}, {x.name} : {x.type}", (), x.element)

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
