"""Random kernels of all ops of MLIR's own dialects, for threads and for work items.

`ops.py` lists ops on numbers, `Core.parts` those that need more: accesses of views, control flow of other dialects than
scf, and functions. `host.py` has what MLIR's lowering to LLVM checks as well; here are all elements,
and what MLIR does not lower or leaves open where our documents do not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from xegpu_py.ir.builtin import bit_width, is_float, vector_text

from . import elementwise, host, ops, vectors
from .body import Value
from .ops import NARROW, NUMBERS, SIGNLESS, Op
from .program import Program
from .views import argument, view

ELEMENTS = (*NUMBERS, *NARROW, "i1", "index")

CONTRACTIONS = (
    "mk,kn,mn", "mk,nk,mn", "km,kn,nm", "mk,k,m", "k,kn,n", "k,k,", "bmk,bkn,bmn", "mbk,k,bm", "mkj,jk,m",
)  # fmt: skip
"""The dimensions of the factors and of the sum of `vector.contract`."""


def dimensions(form: str) -> list[list[int]]:
    """The dimensions of each operand of a contraction, numbered."""
    names = list(dict.fromkeys(d for d in form if d.isalpha()))
    return [[names.index(d) for d in dims] for dims in form.split(",")]


class Core(host.Kernel):
    """A kernel in which each thread, or each work item, computes with its own rows of memory."""

    elements = ELEMENTS
    wraps = True

    def __init__(self, r: Random, target: str, grid: int, block: int, lanes: int) -> None:
        self.module: list[str] = []
        self.passed: list[tuple[str, str, str]] = []
        super().__init__(r, target, grid, block, bool(lanes))
        self.lanes, self.whole = lanes, lanes > 0 and block % lanes == 0
        if lanes:
            self.lane = self.op("gpu.lane_id", (), "index").name

    # Values

    def allows(self, op: Op, x: Value) -> bool:
        """All ops but those of other dialects."""
        return not op.text.startswith("tt.")

    def targets(self, element: str) -> list[str]:
        """All elements."""
        return [e for e in ELEMENTS if e != element and ops.conversions(element, e)]

    def masked_index(self, mask: int) -> Value:
        """An index of the bits of a mask."""
        x = self.pick(lambda v: v.type == "index") or Value(self.tid, (), "index")
        return elementwise.binary(self, "andi", x, self.splat(mask, (), "index"))

    def vector(self, rank: int = 0, fits: Callable[[Value], bool] = lambda _: True) -> Value:
        """A vector of numbers, of a rank or any."""
        x = self.pick(lambda v: v.shape and v.element in NUMBERS and rank in (0, len(v.shape)) and fits(v))
        if x is not None:
            return x
        shape = tuple(self.r.choice([1, 2, 3, 4, 8]) for _ in range(rank or 1))
        return self.loaded(self.r.choice([e for e in NUMBERS if fits(Value("", shape, e))]), shape)

    def loaded(self, element: str, shape: tuple[int, ...], small: bool = False) -> Value:
        """A vector of memory."""
        of = view(self, element, shape, small=small, depth=0)
        at = ", ".join(self.index(0) for _ in shape)
        kind = vector_text(shape, element)
        return self.op(f"vector.load {of.name}[{at}] : {of.type}, {kind}", shape, element, 4 if small else None)

    def scan(self) -> Value:
        x = self.vector()
        at = self.r.randrange(len(x.shape))
        kind = self.r.choice([*ops.reductions(x.element)])
        start = self.splat(self.r.randint(-4, 4), shape := (*x.shape[:at], *x.shape[at + 1 :]), x.element)
        if not shape:
            start = self.op(
                f"vector.broadcast {start.name} : {x.element} to vector<{x.element}>", (), f"vector<{x.element}>"
            )
        found, last = Value(self.name(), x.shape, x.element), Value(self.name(), shape, x.element)
        how = f"{{inclusive = {self.truth()}, reduction_dim = {at} : i64}}"
        self.line(
            f"{found.name}, {last.name} = vector.scan <{kind}>, {x.name}, {start.name} {how} : {x.type}, {start.type}"
        )
        if shape:
            self.keep(last)
        return found

    def truth(self) -> str:
        return self.r.choice(["true", "false"])

    def indices(self) -> Value:
        """An op of indices."""
        x = self.pick(lambda v: v.type == "index") or Value(self.tid, (), "index")
        found = elementwise.draw(self, x, ops.INDEX)
        assert found
        return found

    def function(self) -> Value:
        """A function of floats."""
        x = self.pick(lambda v: v.element in ("f32", "f16", "bf16")) or elementwise.constant(self, (), "f32")
        found = elementwise.draw(self, x, ("function", "functions of two", "sincos"))
        assert found
        return found

    def scaled(self) -> Value:
        """arith.scaling_extf or arith.scaling_truncf."""
        wide, x = self.r.choice(["f32", "f16", "bf16"]), self.vector(fits=lambda v: v.element == "f32")
        scale = self.op(f"arith.truncf {x.name} : {x.type} to {x.typed('f8E8M0FNU')}", x.shape, "f8E8M0FNU")
        if self.r.random() < 0.5:
            part = self.op(f"arith.truncf {x.name} : {x.type} to {x.typed('f8E4M3FN')}", x.shape, "f8E4M3FN")
            types = f"{part.type}, {scale.type} to {x.typed(wide)}"
            return self.op(f"arith.scaling_extf {part.name}, {scale.name} : {types}", x.shape, wide)
        types = f"{x.type}, {scale.type} to {x.typed('f8E4M3FN')}"
        return self.op(f"arith.scaling_truncf {x.name}, {scale.name} : {types}", x.shape, "f8E4M3FN")

    def poison(self) -> Value:
        """Poison that is not used."""
        x = self.like_any()
        true = self.op("arith.constant true", (), "i1")
        other = self.op(f"ub.poison : {x.type}", x.shape, x.element)
        return self.op(f"arith.select {true.name}, {x.name}, {other.name} : {x.type}", x.shape, x.element)

    def table_element(self) -> Value:
        """An element of a constant global."""
        name, kind = f"table{len(self.module)}", "memref<4xi32>"
        numbers = [self.r.randint(-9, 99) for _ in range(4)]
        self.module.append(f'  memref.global "private" constant @{name} : {kind} = dense<{numbers}>\n')
        of = self.op(f"memref.get_global @{name} : {kind}", (), "memref")
        # Threads know the place, which is one in a vector.
        at = self.masked_index(3).name if self.items else self.index(self.r.randrange(4))
        return self.op(f"memref.load {of.name}[{at}] : {kind}", (), "i32")

    def pointer(self) -> Value:
        """An element by its address."""
        element = self.r.choice(NUMBERS)
        of = argument(self, element, (9,))
        first = self.op(f"memref.extract_aligned_pointer_as_index {of.name} : {of.type} -> index", (), "index")
        number = self.op(f"arith.index_cast {first.name} : index to i64", (), "i64")
        at = self.op(f"builtin.unrealized_conversion_cast {number.name} : i64 to {of.type}", (), "memref")
        return self.op(f"memref.load {at.name}[{self.dynamic(self.r.randint(0, 8))}] : {of.type}", (), element)

    def shared_rows(self) -> Value:
        """What the next work item stores in shared local memory, of bytes or of elements."""
        element = self.r.choice(NUMBERS)
        kind, bytes_ = f"memref<{self.block}x{element}, 3>", self.block * bit_width(element) // 8
        if self.r.random() < 0.5:
            whole = f"memref<{bytes_ + 64}xi8, 3>"
            buffer = self.op(f"memref.{self.r.choice(['alloc', 'alloca'])}() : {whole}", (), "").name
            at = self.dynamic(8 * self.r.randint(0, 8))
            name = self.op(f"memref.view {buffer}[{at}][] : {whole} to {kind}", (), "").name
        else:
            whole = kind
            buffer = name = self.op(f"memref.{self.r.choice(['alloc', 'alloca'])}() : {kind}", (), "").name
        if self.r.random() < 0.3:
            other = kind.replace(", 3>", ", #gpu.address_space<workgroup>>")
            name = self.op(f"memref.memory_space_cast {name} : {kind} to {other}", (), "").name
            kind = other
        x = self.pick(lambda v: v.type == element) or elementwise.constant(self, (), element)
        self.line(f"memref.store {x.name}, {name}[{self.local}] : {kind}")
        self.line("gpu.barrier")
        next_ = self.op(f"arith.addi {self.local}, {self.index(1)} : index", (), "index").name
        other = self.op(f"arith.remui {next_}, {self.index(self.block)} : index", (), "index").name
        found = self.op(f"memref.load {name}[{other}] : {kind}", (), element)
        if self.r.random() < 0.3:
            self.line("gpu.barrier")
            self.line(f"memref.dealloc {buffer} : {whole}")
        return found

    def together(self) -> Value:
        """What the work items of a subgroup or a workgroup tell each other."""
        x = self.pick(lambda v: not v.shape and v.element in NUMBERS) or elementwise.constant(self, (), "i32")
        return self.tell(x) if self.whole and self.items and self.r.random() < 0.8 else self.all_reduced(x)

    def to_elements(self) -> Value:
        x = self.vector(fits=lambda v: v.size <= 16)
        names = [self.name() for _ in range(x.size)]
        self.line(f"{', '.join(names)} = vector.to_elements {x.name} : {x.type}")
        self.r.shuffle(names)
        return self.op(f"vector.from_elements {', '.join(names)} : {x.type}", x.shape, x.element, x.exact)

    def zero_dim(self) -> Value:
        """An op on vectors of no dimension."""
        element = self.r.choice(NUMBERS)
        kind, of = f"vector<{element}>", view(self, element, (3,))
        at = f"{of.name}[{self.dynamic(self.r.randint(0, 2))}]"
        if self.r.random() < 0.5:
            x = self.op(f"vector.load {at} : {of.type}, {kind}", (), kind)
        else:
            pad = elementwise.constant(self, (), element)
            x = self.op(f"vector.transfer_read {at}, {pad.name} : {of.type}, {kind}", (), kind)
        other = elementwise.constant(self, (), element)
        y = self.op(f"vector.broadcast {other.name} : {element} to {kind}", (), kind)
        name = self.r.choice(elementwise.names(element))
        x = self.op(f"arith.{name} {x.name}, {y.name} : {kind}", (), kind)
        rows = argument(self, element, (self.threads,), f"zeros:{element}:{self.threads}")
        if self.r.random() < 0.5:
            self.line(f"vector.store {x.name}, {rows.name}[{self.tid}] : {rows.type}, {kind}")
        else:
            self.line(f"vector.transfer_write {x.name}, {rows.name}[{self.tid}] : {kind}, {rows.type}")
        how = self.r.choice(["vector.extract {}[] : {} from {}", "vector.shape_cast"])
        if how == "vector.shape_cast":
            return self.op(f"vector.shape_cast {x.name} : {kind} to vector<1x{element}>", (1,), element)
        return self.op(f"vector.extract {x.name}[] : {element} from {kind}", (), element)

    def contract(self) -> Value:
        """A contraction of any form, of integers or of small numbers, perhaps masked."""
        form, element = self.r.choice(CONTRACTIONS), self.r.choice(["i32", "i8", "f32", "f16", "bf16", "i64"])
        sizes = {d: self.r.choice([1, 2, 3, 4, 8]) for d in form if d.isalpha()}
        shapes = [tuple(sizes[d] for d in dims) for dims in form.split(",")]
        result = self.r.choice([element, "i32" if element == "i8" else element, "f32" if element == "f16" else element])
        x, y = (self.loaded(element, shape, small=True) for shape in shapes[:2])
        start = self.splat(self.r.randint(-4, 4), shapes[2], result)
        maps = ", ".join(f"affine_map<({', '.join(sizes)}) -> ({', '.join(dims)})>" for dims in form.split(","))
        kinds = ", ".join(f'"{"parallel" if d in form.split(",")[2] else "reduction"}"' for d in sizes)
        kind = self.r.choice(["add", "add", *(("maximumf", "minnumf") if is_float(result) else ("maxsi", "minui"))])
        text = (
            f"vector.contract {{indexing_maps = [{maps}], iterator_types = [{kinds}], kind = #vector.kind<{kind}>}} "
            f"{x.name}, {y.name}, {start.name} : {x.type}, {y.type} into {start.type}"
        )
        if self.r.random() < 0.2 and shapes[2]:
            text = self.under(text, tuple(sizes.values()), start)
        return self.op(text, shapes[2], result)

    def under(self, text: str, shape: tuple[int, ...], result: Value | None) -> str:
        """`vector.mask` of an op."""
        mask = vectors.lane_mask(self, shape)
        return f"vector.mask {mask.name} {{ {text} }} : {mask.type}{f' -> {result.type}' if result else ''}"

    def mask(self) -> Value:
        """`vector.mask` of a reduction."""
        x = self.vector()
        kind = self.r.choice([*ops.reductions(x.element)])
        if len(x.shape) == 1 and self.r.random() < 0.5:
            text = f"vector.reduction <{kind}>, {x.name} : {x.type} into {x.element}"
            return self.op(self.under(text, x.shape, Value("", (), x.element)), (), x.element)
        dims = [d for d in range(len(x.shape)) if self.r.random() < 0.6]
        shape = tuple(n for d, n in enumerate(x.shape) if d not in dims)
        start = elementwise.constant(self, shape, x.element)
        text = f"vector.multi_reduction <{kind}>, {x.name}, {start.name} {dims} : {x.type} to {start.type}"
        return self.op(self.under(text, x.shape, start), shape, x.element)

    # Memory

    def transfer_read(self) -> Value:
        """A read of any dimensions in any order, which may reach over the ends, under a mask or not."""
        element, rank = self.r.choice(NUMBERS), self.r.choice([1, 2, 2, 3, 4])
        extents = tuple(self.r.choice([1, 3, 4, 8]) for _ in range(rank))
        of = view(self, element, extents, unit=self.r.random() < 0.7)
        map_, dims, shape = self.transfer_map(rank)
        places, bounded = self.transfer_places(extents, dims, shape)
        pad = elementwise.constant(self, (), element)
        known = [shape[dims.index(d)] for d in sorted(d for d in dims if d is not None)]
        kind = vector_text(shape, element)
        how = f"{{in_bounds = {bounded}, permutation_map = {map_}}}"
        text, types = f"vector.transfer_read {of.name}[{places}], {pad.name}", f"{of.type}, {kind}"
        if known and self.r.random() < 0.3:
            text += f", {vectors.lane_mask(self, tuple(known)).name}"
        elif known and self.r.random() < 0.2 and None not in dims:
            return self.op(
                self.under(f"{text} {how} : {types}", tuple(known), Value("", shape, element)), shape, element
            )
        return self.op(f"{text} {how} : {types}", shape, element)

    def transfer_map(self, rank: int, first: int = 0) -> tuple[str, list[int | None], tuple[int, ...]]:
        """A permutation map, its results, and the shape of the vector."""
        count = self.r.randint(1, min(rank - first, 3))
        dims: list[int | None] = list(self.r.sample(range(first, rank), count))
        if self.r.random() < 0.5:
            dims.sort()  # type: ignore[type-var]
        if not first and self.r.random() < 0.2:
            dims.insert(self.r.randint(0, len(dims)), None)
        names = [f"d{i}" for i in range(rank)]
        results = ", ".join("0" if d is None else names[d] for d in dims)
        shape = tuple(self.r.choice([1, 2, 3, 4, 8]) for _ in dims)
        return f"affine_map<({', '.join(names)}) -> ({results})>", dims, shape

    def transfer_places(
        self, extents: tuple[int, ...], dims: list[int | None], shape: tuple[int, ...]
    ) -> tuple[str, str]:
        """Indices of a transfer, and which dimensions it says to be inside."""
        places = []
        inside = [self.r.random() < 0.4 for _ in dims]
        for d, size in enumerate(extents):
            room = size - 1
            if d in dims:
                i = dims.index(d)
                inside[i] &= shape[i] <= size
                room = size - shape[i] if inside[i] else size + 1
            places.append(self.dynamic(self.r.randint(0, room)))
        bounded = ["true" if d is None or i else "false" for d, i in zip(dims, inside)]
        return ", ".join(places), f"[{', '.join(bounded)}]"

    def transfer_write(self) -> None:
        """A write of some dimensions of a memref, of which each thread has a part."""
        element, rank = self.r.choice(NUMBERS), self.r.choice([1, 2, 3])
        shape = (self.threads, *(self.r.choice([1, 3, 4, 8]) for _ in range(rank)))
        to = argument(self, element, shape)
        map_, dims, part = self.transfer_map(rank + 1, 1)
        places, bounded = self.transfer_places(shape, dims, part)
        places = ", ".join([self.tid, *places.split(", ")[1:]])
        x = self.of_shape(part, element)
        how = f"{{in_bounds = {bounded}, permutation_map = {map_}}} : {x.type}, {to.type}"
        known = tuple(part[dims.index(d)] for d in sorted(dims))  # type: ignore[type-var]
        mask = f", {vectors.lane_mask(self, known).name}" if self.r.random() < 0.3 else ""
        text = f"vector.transfer_write {x.name}, {to.name}[{places}]{mask} {how}"
        self.line(text if mask or self.r.random() < 0.7 else self.under(text, known, None))

    def scattered(self) -> None:
        """vector.gather, vector.scatter, vector.expandload or vector.compressstore; masked lanes may be anywhere."""
        element, count = self.r.choice(NUMBERS), self.r.choice([1, 3, 4, 8, 16, 32])
        mask, kind = elementwise.mask(self, (count,)), vector_text((count,), element)
        if self.r.random() < 0.5:
            of = view(self, element, (3, count))
            at = f"{of.name}[{self.dynamic(self.r.randint(0, 2))}, {self.index(0)}]"
            other = self.of_shape((count,), element)
            end = f"{mask.name}, {other.name} : {of.type}"
            if self.r.random() < 0.4:
                text = f"vector.expandload {at}, {end}, {mask.type}, {kind} into {kind}"
            else:
                places = self.table([self.r.randrange(count) for _ in range(count)], self.r.choice(["i32", "index"]))
                text = f"vector.gather {at} [{places.name}], {end}, {places.type}, {mask.type}, {kind} into {kind}"
            self.keep(self.op(text, (count,), element))
            return
        to, x = argument(self, element, (self.threads, count)), self.of_shape((count,), element)
        at = f"{to.name}[{self.tid}, {self.index(0)}]"
        if self.r.random() < 0.4:
            self.line(f"vector.compressstore {at}, {mask.name}, {x.name} : {to.type}, {mask.type}, {kind}")
        else:
            places = self.table(self.r.sample(range(count), count), self.r.choice(["i32", "index"]))
            types = f"{to.type}, {places.type}, {mask.type}, {kind}"
            self.line(f"vector.scatter {at} [{places.name}], {mask.name}, {x.name} : {types}")

    def facts(self) -> None:
        """What ops say of a memref, and hints."""
        of = view(self, self.r.choice(NUMBERS), tuple(self.r.choice([1, 3, 8]) for _ in range(self.r.randint(1, 3))))
        rank = len(of.shape)
        how = self.r.choice(["dim", "rank", "metadata", "prefetch", "objects"])
        if how == "dim":
            self.keep(self.op(f"memref.dim {of.name}, {self.index(self.r.randrange(rank))} : {of.type}", (), "index"))
        elif how == "rank":
            self.keep(self.op(f"memref.rank {of.name} : {of.type}", (), "index"))
        elif how == "metadata":
            names = [self.name() for _ in range(2 + 2 * rank)]
            types = ", ".join([f"memref<{of.element}>", *["index"] * (1 + 2 * rank)])
            self.line(f"{', '.join(names)} = memref.extract_strided_metadata {of.name} : {of.type} -> {types}")
            self.keep(Value(self.r.choice(names[1:]), (), "index"))
        elif how == "prefetch":
            at = ", ".join([self.index(0)] * rank)
            self.line(f"memref.prefetch {of.name}[{at}], read, locality<{self.r.randint(0, 3)}>, data : {of.type}")
        else:
            own = argument(self, "i32", (4,))
            self.line(
                f"{self.name()}, {self.name()} = memref.distinct_objects {of.name}, {own.name} : {of.type}, {own.type}"
            )

    def copy(self) -> None:
        """memref.copy between views, by one thread."""
        shape, element = tuple(self.r.choice([1, 3, 8]) for _ in range(self.r.randint(1, 3))), self.r.choice(NUMBERS)
        of, to = view(self, element, shape, unit=False), view(self, element, shape, unit=False)
        first = self.op(f"arith.cmpi eq, {self.tid}, {self.index(0)} : index", (), "i1")
        self.line(f"scf.if {first.name} {{ memref.copy {of.name}, {to.name} : {of.type} to {to.type} }}")

    # Control flow

    def parallel(self, depth: int) -> None:
        """scf.parallel, with a reduction."""
        x = self.pick(lambda v: v.element in NUMBERS) or self.keep(elementwise.constant(self, (), "i32"))
        rank = self.r.randint(1, 2)
        at = [self.name() for _ in range(rank)]
        lows = [self.r.randint(-1, 2) for _ in at]
        lists = [
            ", ".join(self.dynamic(n) for n in numbers)
            for numbers in (lows, [n + self.r.randint(0, 4) for n in lows], [self.r.randint(1, 2) for _ in at])
        ]
        found, a, b = Value(self.name(), x.shape, x.element), self.name(), self.name()
        self.line(
            f"{found.name} = scf.parallel ({', '.join(at)}) = ({lists[0]}) to ({lists[1]}) step ({lists[2]}) "
            f"init ({x.name}) -> {x.type} {{"
        )
        with self.region():
            for name in at:
                self.keep(Value(name, (), "index"))
            self.statements(1, depth - 1)
            name = self.r.choice(elementwise.names(x.element))
            self.line(f"scf.reduce({self.like(x).name} : {x.type}) {{ ^bb0({a}: {x.type}, {b}: {x.type}):")
            self.line(f"  %r = arith.{name} {a}, {b} : {x.type}")
            self.line(f"  scf.reduce.return %r : {x.type} }}")
        self.line("}")
        self.keep(found)

    def affine(self, depth: int) -> None:
        """affine.for with an affine.if, affine.apply and accesses."""
        x = self.pick(lambda v: v.element in NUMBERS) or self.keep(elementwise.constant(self, (), "i32"))
        found, inner, chosen, at = Value(self.name(), x.shape, x.element), *(self.name() for _ in range(3))
        low = self.r.randint(0, 2)
        high = (
            str(low + self.r.randint(0, 5))
            if self.r.random() < 0.5
            else f"min affine_map<()[s0] -> (s0 + 3, 4)>()[{self.tid}]"
        )
        step = self.r.randint(1, 3)
        of, to = argument(self, x.element, (16,)), argument(self, x.element, (self.threads, 8))
        self.line(
            f"{found.name} = affine.for {at} = {low} to {high} step {step} iter_args({inner} = {x.name}) -> ({x.type}) {{"
        )
        with self.region():
            self.keep(Value(inner, x.shape, x.element))
            name, map_ = self.r.choice([("apply", "(d0 * 2 + s0 mod 3)"), ("apply", "((d0 + s0) floordiv 2)"), ("apply", "((d0 - s0) ceildiv 3)"), ("min", "(d0 + s0, 7)"), ("max", "(d0 - s0, 0)")])  # fmt: skip
            self.keep(self.op(f"affine.{name} affine_map<(d0)[s0] -> {map_}>({at})[{self.tid}]", (), "index"))
            one = self.op(f"affine.load {of.name}[{at} + 1] : {of.type}", (), x.element)
            if x.element in SIGNLESS or is_float(x.element):
                self.keep(one)
            self.line(f"affine.store {one.name}, {to.name}[symbol({self.tid}), {at} mod 8] : {to.type}")
            if self.r.random() < 0.5:
                kind = f"vector<4x{x.element}>"
                line = self.op(f"affine.vector_load {of.name}[{at} * 2] : {of.type}, {kind}", (4,), x.element)
                self.line(
                    f"affine.vector_store {line.name}, {to.name}[symbol({self.tid}), {at} mod 4] : {to.type}, {kind}"
                )
                self.keep(line)
            if self.r.random() < 0.3:
                self.line(f"affine.parallel ({(i := self.name())}) = (0) to ({self.r.randint(0, 4)}) {{")
                self.line(f"  affine.store {one.name}, {to.name}[symbol({self.tid}), {i} * 2] : {to.type}")
                self.line("}")
            self.statements(1, 0)
            condition = self.r.choice(["d0 - 1 >= 0", "d0 - s0 == 0", "s0 - d0 >= 0, d0 >= 0"])
            self.line(f"{chosen} = affine.if affine_set<(d0)[s0] : ({condition})>({at})[{self.tid}] -> {x.type} {{")
            for n in range(2):
                self.line("} else {" if n else "")
                with self.region():
                    self.statements(1, 0)
                    self.line(f"affine.yield {self.like(x).name} : {x.type}")
            self.line("}")
            self.line(f"affine.yield {chosen} : {x.type}")
        self.line("}")
        self.keep(found)

    def execute(self, depth: int) -> None:
        """scf.execute_region, of one block or several."""
        x = self.like_any()
        found = Value(self.name(), x.shape, x.element)
        self.line(f"{found.name} = scf.execute_region -> {x.type} {{")
        with self.region():
            if self.r.random() < 0.6:
                self.graph(depth)
            self.statements(1, depth - 1)
            self.line(f"scf.yield {self.like(x).name} : {x.type}")
        self.line("}")
        self.keep(found)

    def like_any(self) -> Value:
        return self.pick(lambda v: v.element in NUMBERS) or self.keep(elementwise.constant(self, (), "i32"))

    def graph(self, depth: int) -> None:
        """Blocks: a branch, a switch or a loop, which may be left early."""
        x, end, how = self.like_any(), self.label(), self.r.choice(["branch", "switch", "loop"])
        found = Value(self.name(), x.shape, x.element)
        if how == "loop":
            head, body_, at, inner = self.label(), self.label(), self.name(), self.name()
            zero, bound, one = self.scalar(0), self.scalar(self.r.randint(0, 3)), self.scalar(1)
            self.line(f"cf.br {head}({zero.name}, {x.name} : i32, {x.type})")
            self.line(f"{head}({at}: i32, {inner}: {x.type}):")
            with self.region():
                self.keep(Value(inner, x.shape, x.element))
                more = self.op(f"arith.cmpi slt, {at}, {bound.name} : i32", (), "i1")
                self.line(f"cf.cond_br {more.name}, {body_}, {end}({inner} : {x.type})")
                self.line(f"{body_}:")
                self.statements(1, depth - 1)
                next_ = self.op(f"arith.addi {at}, {one.name} : i32", (), "i32")
                after = self.like(x)
                again = f"{head}({next_.name}, {after.name} : i32, {x.type})"
                if self.r.random() < 0.5:
                    stop = self.uniform()
                    self.line(f"cf.cond_br {stop.name}, {end}({self.like(x).name} : {x.type}), {again}")
                else:
                    self.line(f"cf.br {again}")
        else:
            labels = [self.label() for _ in range(2 if how == "branch" else 3)]
            if how == "branch":
                self.line(f"cf.cond_br {self.uniform().name}, {labels[0]}, {labels[1]}")
            else:
                n = self.op(f"arith.index_cast {self.masked_index(3).name} : index to i32", (), "i32")
                self.line(f"cf.switch {n.name} : i32, [default: {labels[0]}, 0: {labels[1]}, 2: {labels[2]}]")
            for label in labels:
                self.line(f"{label}:")
                with self.region():
                    self.statements(1, depth - 1)
                    self.line(f"cf.br {end}({self.like(x).name} : {x.type})")
        self.line(f"{end}({found.name}: {x.type}):")
        self.keep(found)

    def label(self) -> str:
        return f"^{self.name()[1:]}"

    def call(self) -> None:
        """func.call of a function that computes with rows and values."""
        given = [self.like_any() for _ in range(self.r.randint(1, 2))]
        rows = self.r.choice([rows for rows in self.rows if rows.whole])
        outer = self.lines, self.values, self.rows, self.depth, self.tid
        own, name = [(self.name(), v.name, v.type) for v in given], f"f{len(self.module)}"
        self.passed = [(tid := self.name(), self.tid, "index"), (memory := self.name(), rows.name, rows.type)]
        self.lines, self.depth, self.tid = [], 2, tid
        self.rows = [replace(rows, name=memory)]
        self.values = [Value(tid, (), "index"), *(Value(n[0], v.shape, v.element) for n, v in zip(own, given))]
        self.statements(self.r.randint(1, 3), 1)
        result, passed = self.r.choice(self.values), [*self.passed, *own]
        text = "\n".join([*self.lines, f"    return {result.name} : {result.type}"])
        signature = ", ".join(f"{inner}: {kind}" for inner, _, kind in passed)
        self.module.append(f"  func.func private @{name}({signature}) -> {result.type} {{\n{text}\n  }}\n")
        self.lines, self.values, self.rows, self.depth, self.tid = outer
        self.passed = []
        words, types = (", ".join(p[i] for p in passed) for i in (1, 2))
        for _ in range(self.r.randint(1, 2)):
            self.keep(self.op(f"func.call @{name}({words}) : ({types}) -> {result.type}", result.shape, result.element))

    def argument(self, kind: str, word: str) -> str:
        """An argument of the kernel, and of the function that is written."""
        outer = super().argument(kind, word)
        if not self.passed:
            return outer
        self.passed.append((self.name(), outer, kind))
        return self.passed[-1][0]

    # Programs

    def parts(self, depth: int) -> dict[str, Callable[[], object]]:
        """The statements that `host.py` does not have."""
        made = (self.scan, self.to_elements, self.zero_dim, self.contract, self.mask, self.transfer_read,
                *[self.indices] * 4, *[self.function] * 2, self.scaled, self.poison, self.pointer,
                self.table_element)  # fmt: skip
        done = (self.transfer_write, self.scattered, self.facts, self.copy, self.count)
        found: dict[str, Callable[[], object]] = {f.__name__: lambda f=f: self.keep(f()) for f in made}  # type: ignore[misc]
        found |= {f.__name__: f for f in done}
        if depth:
            found |= {f.__name__: lambda f=f: f(depth) for f in (self.parallel, self.affine, self.execute)}  # type: ignore[misc]
            if not self.passed:
                found["call"] = self.call
        if depth == DEPTH:
            found["graph"] = lambda: self.graph(depth)
            for part in (self.shared_rows, self.together) if not self.passed else ():
                found[part.__name__] = lambda part=part: self.keep(part())  # type: ignore[misc]
        return found

    def statement(self, depth: int) -> None:
        if self.r.random() < 0.5:
            super().statement(depth)
        else:
            self.r.choice(list(self.parts(depth).values()))()

    def text(self, name: str = "random", attributes: str = "") -> str:
        head, start, rest = super().text(name, attributes).partition("  gpu.func")
        return head + "".join(self.module) + start + rest


DEPTH = 3
"""Nested regions."""


def program(r: Random) -> Program:
    """A random kernel of threads, or of work items."""
    return made(r, r.choice([0, 0, 8, 16, 32]), r.choice([2, 4, 8]))


def tour(r: Random, element: str | None = None, length: int | None = None) -> Program:
    """A kernel of many statements, for `vc` of threads and for `simt` of work items."""
    return made(r, 16 if element == "simt" else 0, 6 * length if length else 20)


def made(r: Random, lanes: int, length: int) -> Program:
    """A kernel of some statements."""
    target = r.choice(["pvcxt", "pvc", "any", "bmg", "dg2"])
    grid, block = r.choice([1, 2, 4]), r.choice([1, 5, lanes, 2 * lanes] if lanes else [1, 2])
    b = Core(r, target, grid, block, lanes)
    for _ in range(r.randint(1, 3)):
        b.keep(b.load())
    b.statements(length, DEPTH)
    for x in b.values[-6:]:
        b.store(x)
    attributes = f"xegpu.subgroup_size = {lanes} : i32" if lanes else ""
    return Program(
        b.text(attributes=attributes), b.words(), b.grid_size, b.block_size, target, r.choice([None, None, 256])
    )
