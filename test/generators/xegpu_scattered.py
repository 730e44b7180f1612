"""Random kernels of subgroups: gathers, scatters and atomic updates."""

from __future__ import annotations

import math

from xegpu_py.dialects.xegpu.types import CHUNK_SIZES, LANES
from xegpu_py.ir.builtin import bit_width, by, vector_text

from . import elementwise, vectors
from .body import Value, attributes, most_exact, twin
from .ops import FLOATS, NARROW, NUMBERS, SIGNLESS, STORED
from .xegpu_blocks import Blocks, Desc

_UNSIGNED = ("ui8", "ui16", "ui32", "ui64")
ATOMICS = {
    **dict.fromkeys(("addf", "mulf", "maximumf", "minimumf", "maxnumf", "minnumf"), FLOATS),
    **dict.fromkeys(("addi", "muli", "andi", "ori", "xori", "maxu", "minu"), (*SIGNLESS, *_UNSIGNED)),
    **dict.fromkeys(("maxs", "mins"), SIGNLESS),
}
"""The kinds of atomic updates, and the elements that have them; `assign` is for all."""


class Scattered(Blocks):
    """Accesses of lanes at addresses of their own."""

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
        """The value; often a number in its place where the mask is not set, which reads as zero."""
        if x.element not in NUMBERS:
            x = self.bits(x)
        if self.r.random() < 0.4:
            return x
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
        whole = element if element in (*NUMBERS, *NARROW, "tf32", "index") else twin(element)
        size, most = math.prod(shape), min(most_exact(whole), 4)
        line = self.table([self.r.randint(-most, most) for _ in range(size)], whole)
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
