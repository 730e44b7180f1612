"""Random vector code with layouts, for each op that can be distributed."""

import dataclasses
import math
import random

import numpy as np

from xegpu_py.layout import LayoutError, NestedLayout, reshape

ZERO = {"f32": "0.0", "i32": "0"}


@dataclasses.dataclass
class Program:
    """A function `@run` and what it is run on.

    Attributes:
        text: the MLIR.
        arrays: initial contents of its memrefs.
        subgroups: how many it is for.
        result: the layout of the vector that it returns, if it does.
    """

    text: str
    arrays: list[np.ndarray]
    subgroups: int
    lanes: int
    result: NestedLayout | None = None


def layout(r: random.Random, rank: int, lanes: int, subgroups: int, most: int = 512, gaps: bool = True) -> NestedLayout:
    """A layout whose tiles of threads and of subgroups are powers of two."""

    def ids(present: int, steps: list[int]) -> tuple[list[int], list[int]]:
        tile, strides, used = [1] * rank, [0] * rank, 1
        for i in r.sample(range(rank), rank):
            if used < present and gaps and r.random() < 0.2:
                used *= 2
            fits = [n for n in steps if used * n <= present]
            if not fits:
                break
            tile[i] = r.choice(fits)
            strides[i] = used if tile[i] > 1 else 0
            used *= tile[i]
        return tile, strides

    thread, thread_strides = ids(lanes, [1, 2, 4, 8, 16])
    subgroup, subgroup_strides = ids(subgroups, [1, 2, 4])
    inner = [[1] * rank for _ in range(3)]
    left = most // math.prod(thread) // math.prod(subgroup)
    for level in inner:
        for i in range(rank):
            level[i] = r.choice([n for n in (1, 1, 2, 3, 4) if n <= max(left, 1)])
            left //= level[i]
    return NestedLayout(subgroup, inner[0], inner[1], thread, inner[2], subgroup_strides, thread_strides)


class Writer:
    """Writes a function."""

    def __init__(self, r: random.Random, lanes: int, subgroups: int, gaps: bool, outers: bool) -> None:
        self.r, self.lanes, self.subgroups, self.gaps, self.outers = r, lanes, subgroups, gaps, outers
        self.lines: list[str] = []
        self.arguments: list[str] = []
        self.arrays: list[np.ndarray] = []
        self.names = 0
        self.result: tuple[str, NestedLayout] | None = None
        self.add = self.lines.append

    def name(self) -> str:
        self.names += 1
        return f"%v{self.names}"

    def memory(self, shape: tuple[int, ...], element: str = "i32", fill: int | None = None) -> str:
        """A memref argument with random contents."""
        shape = shape or (1,)
        generator = np.random.default_rng(self.r.randrange(1 << 30))
        dtype = {"i32": np.int32, "f32": np.float32, "index": np.int64}[element]
        contents = generator.integers(-9, 10, shape) if fill is None else np.full(shape, fill)
        self.arrays.append(contents.astype(dtype))
        self.arguments.append(f"%m{len(self.arguments)}: memref<{'x'.join(map(str, shape))}x{element}>")
        return f"%m{len(self.arguments) - 1}"

    @staticmethod
    def vector(shape: tuple[int, ...], element: str = "i32") -> str:
        return f"vector<{'x'.join(map(str, (*shape, element)))}>"

    def read(self, shape: tuple[int, ...], element: str = "i32", where: NestedLayout | None = None) -> str:
        """A vector from memory; with a layout if one is given."""
        memory = self.memory(shape, element)
        kind = self.arguments[-1].partition(": ")[2]
        found = self.name()
        zeros = ", ".join(["%c0"] * max(len(shape), 1))
        attributes = f" {{in_bounds = [{', '.join(['true'] * len(shape))}]}}" if shape else ""
        self.add(
            f"{found} = vector.transfer_read {memory}[{zeros}], %zero_{element}{attributes} : "
            f"{kind}, {self.vector(shape, element)}"
        )
        return self.anchor(found, where, element) if where else found

    def anchor(self, value: str, where: NestedLayout, element: str = "i32") -> str:
        found = self.name()
        self.add(
            f"{found} = iree_vector_ext.to_layout {value} to layout({where}) : {self.vector(where.shape, element)}"
        )
        return found

    def write(self, value: str, shape: tuple[int, ...], element: str = "i32") -> None:
        memory = self.memory(shape, element, fill=-77)
        kind = self.arguments[-1].partition(": ")[2]
        zeros = ", ".join(["%c0"] * max(len(shape), 1))
        attributes = f" {{in_bounds = [{', '.join(['true'] * len(shape))}]}}" if shape else ""
        self.add(
            f"vector.transfer_write {value}, {memory}[{zeros}]{attributes} : {self.vector(shape, element)}, {kind}"
        )

    def op(self, text: str) -> str:
        found = self.name()
        self.add(f"{found} = {text}")
        return found

    def layout(self, rank: int | None = None, most: int = 512) -> NestedLayout:
        found = layout(self.r, rank or self.r.randint(1, 3), self.lanes, self.subgroups, most, self.gaps)
        return found if self.outers else dataclasses.replace(found, outer_tile=(1,) * found.rank)

    def program(self) -> Program:
        head = ["%c0 = arith.constant 0 : index", "%c1 = arith.constant 1 : index", "%c3 = arith.constant 3 : index"]
        head += [f"%zero_{e} = arith.constant {z} : {e}" for e, z in ZERO.items()]
        result, leave = "", "return"
        if self.result:
            value, where = self.result
            kind = self.vector(where.shape)
            result, leave = f" -> {kind}", f"return {value} : {kind}"
        body = "\n  ".join([*head, *self.lines, leave])
        text = f"func.func @run({', '.join(self.arguments)}){result} {{\n  {body}\n}}\n"
        return Program(text, self.arrays, self.subgroups, self.lanes, self.result and self.result[1])


def elementwise(w: Writer) -> None:
    where = w.layout()
    kind = w.vector(where.shape)
    a, b = w.read(where.shape, where=where), w.read(where.shape)
    flags = w.op(f"arith.cmpi slt, {a}, {b} : {kind}")
    found = w.op(f"arith.select {flags}, {a}, {b} : {w.vector(where.shape, 'i1')}, {kind}")
    two = w.op(f"arith.constant dense<2> : {kind}")
    found = w.op(f"arith.muli {found}, {two} : {kind}")
    w.result = w.op(f"arith.subi {found}, {b} : {kind}"), where


def broadcast(w: Writer) -> None:
    where = w.layout(w.r.randint(2, 3))
    shape = where.shape[w.r.randint(1, len(where.shape) - 1) :]
    given = w.read(shape)
    wide = w.op(f"vector.broadcast {given} : {w.vector(shape)} to {w.vector(where.shape)}")
    laid = w.anchor(wide, where)
    w.result = w.op(f"arith.addi {laid}, {w.read(where.shape)} : {w.vector(where.shape)}"), where


def transpose(w: Writer) -> None:
    where = w.layout(w.r.randint(2, 3))
    permutation = w.r.sample(range(where.rank), where.rank)
    source = w.read(where.shape, where=where)
    permuted = where.permute(permutation)
    types = f"{w.vector(where.shape)} to {w.vector(permuted.shape)}"
    w.result = w.op(f"vector.transpose {source}, {permutation} : {types}"), permuted


def multi_reduction(w: Writer) -> None:
    where = w.layout(w.r.randint(2, 3))
    dims = sorted(w.r.sample(range(where.rank), w.r.randint(1, where.rank - 1)))
    kept = where.project([i for i in range(where.rank) if i not in dims])
    source, acc = w.read(where.shape, where=where), w.read(kept.shape)
    types = f"{w.vector(where.shape)} to {w.vector(kept.shape)}"
    w.result = w.op(f"vector.multi_reduction <{w.r.choice(KINDS)}>, {source}, {acc} {dims} : {types}"), kept


KINDS = ("add", "maxsi", "minsi", "xor", "and", "or")


def to_scalar(w: Writer) -> None:
    where = w.layout()
    source = w.read(where.shape, where=where)
    kind = w.r.choice(KINDS)
    if where.rank == 1 and w.r.random() < 0.5:
        found = w.op(f"vector.reduction <{kind}>, {source} : {w.vector(where.shape)} into i32")
    else:
        dims = list(range(where.rank))
        found = w.op(f"vector.multi_reduction <{kind}>, {source}, %zero_i32 {dims} : {w.vector(where.shape)} to i32")
    wide = w.op(f"vector.broadcast {found} : i32 to {w.vector(where.shape)}")
    w.result = w.op(f"arith.addi {source}, {wide} : {w.vector(where.shape)}"), where


def contract(w: Writer, *, masked: bool = False) -> None:
    m, n, k = range(3)
    space = w.layout(3, most=128 if masked else 512)
    maps = [list(x) for x in ((m, k), (n, k), (m, n))]
    for dims in maps:
        w.r.shuffle(dims)
    lhs, rhs, acc = (space.project(dims) for dims in maps)
    a, b, c = w.read(lhs.shape, where=lhs), w.read(rhs.shape, where=rhs), w.read(acc.shape, where=acc)
    exprs = ", ".join(f"affine_map<(d0, d1, d2) -> ({', '.join(f'd{i}' for i in dims)})>" for dims in maps)
    text = (
        f'vector.contract {{indexing_maps = [{exprs}], iterator_types = ["parallel", "parallel", "reduction"], '
        f"kind = #vector.kind<add>}} {a}, {b}, {c} : "
        f"{w.vector(lhs.shape)}, {w.vector(rhs.shape)} into {w.vector(acc.shape)}"
    )
    if masked:
        mask = some_of(w, space.shape)
        text = f"vector.mask {mask} {{ {text} }} : {w.vector(space.shape, 'i1')} -> {w.vector(acc.shape)}"
    w.result = w.op(text), acc


def some_of(w: Writer, shape: tuple[int, ...]) -> str:
    """A mask over a vector's first elements in each dimension, mostly all but a few."""
    bounds = [w.r.choice([n, n, max(n - 1, 0), w.r.randint(0, n)]) for n in shape]
    if w.r.random() < 0.3:
        return w.op(f"vector.constant_mask {[n if all(bounds) else 0 for n in bounds]} : {w.vector(shape, 'i1')}")
    names = [w.op(f"arith.constant {n} : index") for n in bounds]
    return w.op(f"vector.create_mask {', '.join(names)} : {w.vector(shape, 'i1')}")


def step(w: Writer) -> None:
    where = w.layout(1)
    found = w.op(f"vector.step : {w.vector(where.shape, 'index')}")
    cast = w.op(f"arith.index_cast {found} : {w.vector(where.shape, 'index')} to {w.vector(where.shape)}")
    w.result = w.op(f"arith.addi {cast}, {w.read(where.shape, where=where)} : {w.vector(where.shape)}"), where


def masked_transfer(w: Writer) -> None:
    where = w.layout(w.r.randint(1, 2))
    bounds = [w.op(f"arith.constant {w.r.randint(0, n)} : index") for n in where.shape]
    mask = w.op(f"vector.create_mask {', '.join(bounds)} : {w.vector(where.shape, 'i1')}")
    memory = w.memory(where.shape)
    kind = w.arguments[-1].partition(": ")[2]
    whole = ", ".join(["true"] * where.rank)
    zeros = ", ".join(["%c0"] * where.rank)
    found = w.op(
        f"vector.transfer_read {memory}[{zeros}], %zero_i32, {mask} {{in_bounds = [{whole}]}} : "
        f"{kind}, {w.vector(where.shape)}"
    )
    w.result = w.anchor(found, where), where


def permuted_transfer(w: Writer) -> None:
    """A read that transposes, reaches out of bounds, and starts elsewhere."""
    where = w.layout(2)
    rows, columns = where.shape
    memory = w.memory((2 * columns, rows + 1))
    kind = w.arguments[-1].partition(": ")[2]
    found = w.op(
        f"vector.transfer_read {memory}[%c1, %c3], %zero_i32 "
        f"{{in_bounds = [false, false], permutation_map = affine_map<(d0, d1) -> (d1, d0)>}} : "
        f"{kind}, {w.vector(where.shape)}"
    )
    w.result = w.anchor(found, where), where


def gather(w: Writer, *, masked: bool = False) -> None:
    where = w.layout(w.r.randint(1, 2))
    indices = w.read(where.shape)
    nine = w.op(f"arith.constant dense<9> : {w.vector(where.shape)}")
    indices = w.op(f"arith.addi {indices}, {nine} : {w.vector(where.shape)}")
    cast = w.op(f"arith.index_cast {indices} : {w.vector(where.shape)} to {w.vector(where.shape, 'index')}")
    mask = w.op(f"arith.cmpi ne, {indices}, {nine} : {w.vector(where.shape)}")
    memory = w.memory((20,))
    other = w.read(where.shape, where=where)
    text = (
        f"vector.gather {memory}[%c1] [{cast}], {mask}, {other} : memref<20xi32>, {w.vector(where.shape, 'index')}, "
        f"{w.vector(where.shape, 'i1')}, {w.vector(where.shape)} into {w.vector(where.shape)}"
    )
    if masked:
        types = f"{w.vector(where.shape, 'i1')} -> {w.vector(where.shape)}"
        text = f"vector.mask {some_of(w, where.shape)} {{ {text} }} : {types}"
    w.result = w.op(text), where


def loop(w: Writer) -> None:
    where = w.layout(w.r.randint(1, 2))
    kind = w.vector(where.shape)
    start = w.op(f"arith.constant dense<1> : {kind}")
    data = w.read(where.shape, where=where)
    found = w.name()
    w.add(f"{found} = scf.for %i = %c0 to %c3 step %c1 iter_args(%carried = {start}) -> {kind} {{")
    w.add(f"  %next = arith.addi %carried, {data} : {kind}")
    w.add(f"  scf.yield %next : {kind}")
    w.add("}")
    w.result = found, where


SHARED = (
    elementwise, broadcast, transpose, multi_reduction, to_scalar, contract, step, masked_transfer, permuted_transfer,
    gather, loop,
)  # fmt: skip
"""What iree-opt distributes too."""


def conversion(w: Writer) -> None:
    """From one layout to another of the same shape."""
    where = w.layout(w.r.randint(1, 2))
    for _ in range(300):
        other = w.layout(where.rank)
        if other.shape == where.shape:
            break
    else:
        other = dataclasses.replace(where, batch_tile=where.outer_tile, outer_tile=where.batch_tile)
    w.result = w.anchor(w.read(where.shape, where=where), other), other


def within_subgroups(w: Writer) -> None:
    """From one layout to another that keeps elements in their subgroup: other lanes, other registers."""
    where = w.layout(w.r.randint(1, 2), most=256)
    levels = ("batch_tile", "outer_tile", "thread_tile", "element_tile")
    for _ in range(300):
        found = w.layout(where.rank)
        other = dataclasses.replace(
            where, thread_strides=found.thread_strides, **{level: getattr(found, level) for level in levels}
        )
        if other.shape == where.shape and other != where:
            break
    else:
        other = dataclasses.replace(where, batch_tile=where.element_tile, element_tile=where.batch_tile)
    w.result = w.anchor(w.read(where.shape, where=where), other), other


def table(w: Writer) -> None:
    """A constant whose elements differ."""
    where = w.layout()
    kind = w.vector(where.shape)
    numbers = np.random.default_rng(w.r.randrange(1 << 30)).integers(-99, 99, where.shape)
    found = w.op(f"arith.constant dense<{numbers.tolist()}> : {kind}")
    flags = w.op(f"arith.constant dense<{str((numbers > 0).tolist()).lower()}> : {w.vector(where.shape, 'i1')}")
    a = w.read(where.shape, where=where)
    total = w.op(f"arith.addi {a}, {found} : {kind}")
    w.result = w.op(f"arith.select {flags}, {total}, {a} : {w.vector(where.shape, 'i1')}, {kind}"), where


def conflict(w: Writer) -> None:
    """A value that is used in two layouts, and a constant that is."""
    where = w.layout(2)
    kind = w.vector(where.shape)
    one = w.op(f"arith.constant dense<5> : {kind}")
    a = w.read(where.shape, where=where)
    first = w.op(f"arith.addi {a}, {one} : {kind}")
    other = dataclasses.replace(where, batch_tile=where.outer_tile, outer_tile=where.batch_tile)
    moved = w.anchor(first, other)
    second = w.op(f"arith.muli {moved}, {one} : {kind}")
    w.write(w.op(f"arith.subi {first}, {one} : {kind}"), where.shape)
    w.result = w.op(f"arith.addi {second}, {first} : {kind}"), other


def branches(w: Writer) -> None:
    where = w.layout(w.r.randint(1, 2))
    kind = w.vector(where.shape)
    a, b = w.read(where.shape, where=where), w.read(where.shape)
    flag = w.op(f"arith.constant {w.r.choice(['true', 'false'])}")
    found = w.name()
    w.add(f"{found} = scf.if {flag} -> {kind} {{")
    w.add(f"  %then = arith.addi {a}, {b} : {kind}")
    w.add(f"  scf.yield %then : {kind}")
    w.add("} else {")
    w.add(f"  scf.yield {b} : {kind}")
    w.add("}")
    w.result = found, where


def turns(w: Writer) -> None:
    where = w.layout(1)
    kind = w.vector(where.shape)
    a = w.read(where.shape, where=where)
    found = w.name()
    w.add(f"{found}:2 = scf.while (%n = %c0, %x = {a}) : (index, {kind}) -> (index, {kind}) {{")
    w.add("  %more = arith.cmpi slt, %n, %c3 : index")
    w.add(f"  scf.condition(%more) %n, %x : index, {kind}")
    w.add("} do {")
    w.add(f"^bb0(%n: index, %x: {kind}):")
    w.add("  %next = arith.addi %n, %c1 : index")
    w.add(f"  %twice = arith.addi %x, %x : {kind}")
    w.add(f"  scf.yield %next, %twice : index, {kind}")
    w.add("}")
    w.result = f"{found}#1", where


def unit_dims(w: Writer) -> None:
    where = w.layout(2)
    shape = (1, where.shape[0], 1, where.shape[1])
    cast = w.op(f"vector.shape_cast {w.read(where.shape, where=where)} : {w.vector(where.shape)} to {w.vector(shape)}")
    doubled = w.op(f"arith.addi {cast}, {cast} : {w.vector(shape)}")
    w.result = w.op(f"vector.shape_cast {doubled} : {w.vector(shape)} to {w.vector(where.shape)}"), where


def reshaped(w: Writer, *, given: bool = False) -> None:
    """To another shape and back, forward from one layout, then backward from another."""
    where = w.layout(w.r.randint(1, 3), most=64 if given else 128)
    shape: list[int] = []
    for size in where.shape:
        divisors = [n for n in range(1, size + 1) if size % n == 0]
        shape += [n := w.r.choice(divisors), size // n]
    while len(shape) > 1 and w.r.random() < 0.5:
        i = w.r.randrange(len(shape) - 1)
        shape[i : i + 2] = [shape[i] * shape[i + 1]]
    kind, other = w.vector(where.shape), w.vector(tuple(shape))
    try:
        reshape(where, shape)
    except LayoutError:
        given = True
    cast = w.op(f"vector.shape_cast {w.read(where.shape, where=where)} : {kind} to {other}")
    if given:
        # Lanes along the last dimension, whatever they were along before.
        ones, none = (1,) * len(shape), (0,) * len(shape)
        lanes = (*ones[1:], math.gcd(shape[-1], w.lanes))
        rest = tuple(n // m for n, m in zip(shape, lanes))
        cast = w.anchor(cast, NestedLayout(ones, rest, ones, lanes, ones, none, (*none[1:], int(lanes[-1] > 1))))
    doubled = w.op(f"arith.addi {cast}, {w.read(tuple(shape))} : {other}")
    back = w.op(f"vector.shape_cast {doubled} : {other} to {kind}")
    w.result = w.anchor(back, where), where


def reshaped_anew(w: Writer) -> None:
    """To another shape, with a layout of its own."""
    reshaped(w, given=True)


def stretched(w: Writer) -> None:
    where = w.layout(2)
    kind = w.vector(where.shape)
    given = w.read((where.shape[0], 1))
    wide = w.op(f"vector.broadcast {given} : {w.vector((where.shape[0], 1))} to {kind}")
    w.result = w.anchor(wide, where), where


def masked_reduction(w: Writer) -> None:
    where = w.layout(2)
    bounds = [w.op(f"arith.constant {w.r.randint(0, n)} : index") for n in where.shape]
    mask = w.op(f"vector.create_mask {', '.join(bounds)} : {w.vector(where.shape, 'i1')}")
    kept = where.project([0])
    source, acc = w.read(where.shape, where=where), w.read(kept.shape)
    types = f"{w.vector(where.shape)} to {w.vector(kept.shape)}"
    w.result = (
        w.op(
            f"vector.mask {mask} {{ vector.multi_reduction <add>, {source}, {acc} [1] : {types} }} : "
            f"{w.vector(where.shape, 'i1')} -> {w.vector(kept.shape)}"
        ),
        kept,
    )


def masked_contract(w: Writer) -> None:
    """Some products of all."""
    contract(w, masked=True)


def masked_gather(w: Writer) -> None:
    """A gather with two masks."""
    gather(w, masked=True)


def masked_read(w: Writer) -> None:
    """A read under a `vector.mask`, which may transpose, and let something else through."""
    where = w.layout(w.r.randint(1, 2))
    turns = where.rank == 2 and w.r.random() < 0.5
    shape = where.shape[::-1] if turns else where.shape
    memory = w.memory(shape)
    kind = w.arguments[-1].partition(": ")[2]
    passed = f", {w.read(where.shape)}" if w.r.random() < 0.7 else ""
    names = ", ".join(f"d{i}" for i in range(where.rank))
    results = ", ".join(f"d{i}" for i in (reversed(range(where.rank)) if turns else range(where.rank)))
    read = (
        f"vector.transfer_read {memory}[{', '.join(['%c0'] * where.rank)}], %zero_i32 "
        f"{{in_bounds = [{', '.join(['true'] * where.rank)}], "
        f"permutation_map = affine_map<({names}) -> ({results})>}} : {kind}, {w.vector(where.shape)}"
    )
    types = f"{w.vector(shape, 'i1')} -> {w.vector(where.shape)}"
    w.result = w.anchor(w.op(f"vector.mask {some_of(w, shape)}{passed} {{ {read} }} : {types}"), where), where


def masked_write(w: Writer) -> None:
    """A write under a `vector.mask`, which may transpose."""
    where = w.layout(w.r.randint(1, 2))
    order = w.r.sample(range(where.rank), where.rank)
    value = w.read(where.shape, where=where)
    shape = tuple(where.shape[i] for i in order)
    memory = w.memory(shape, fill=-77)
    kind = w.arguments[-1].partition(": ")[2]
    # Dimension k of memory is dimension order[k] of the vector.
    places = ", ".join(f"d{order.index(i)}" for i in range(where.rank))
    write = (
        f"vector.transfer_write {value}, {memory}[{', '.join(['%c0'] * where.rank)}] "
        f"{{in_bounds = [{', '.join(['true'] * where.rank)}], permutation_map = "
        f"affine_map<({', '.join(f'd{i}' for i in range(where.rank))}) -> ({places})>}} : "
        f"{w.vector(where.shape)}, {kind}"
    )
    w.add(f"vector.mask {some_of(w, shape)} {{ {write} }} : {w.vector(shape, 'i1')}")


def projected_read(w: Writer) -> None:
    """A read of some dimensions of memory in any order, which the vector's other dimensions repeat; maybe masked."""
    where = w.layout(w.r.randint(1, 3))
    rank = where.rank
    # For each dimension of the vector that of memory, which has one more; -1 for none.
    places = [-1 if w.r.random() < 0.3 else i for i in w.r.sample(range(rank + 1), rank)]
    sizes = [w.r.randint(1, 3) for _ in range(rank + 1)]
    for i, place in enumerate(places):
        if place >= 0:
            sizes[place] = where.shape[i] + w.r.choice([-1, 0, 2]) if where.shape[i] > 1 else 2
    memory = w.memory(tuple(sizes))
    kind = w.arguments[-1].partition(": ")[2]
    results = ", ".join(f"d{place}" if place >= 0 else "0" for place in places)
    names = ", ".join(f"d{i}" for i in range(rank + 1))
    masked = sorted((i for i, place in enumerate(places) if place >= 0), key=lambda i: places[i])
    mask = f", {some_of(w, tuple(where.shape[i] for i in masked))}" if masked and w.r.random() < 0.5 else ""
    # What is repeated is in bounds.
    inside = ", ".join("false" if place >= 0 else "true" for place in places)
    read = w.op(
        f"vector.transfer_read {memory}[{', '.join(['%c0'] * (rank + 1))}], %zero_i32{mask} "
        f"{{in_bounds = [{inside}], permutation_map = affine_map<({names}) -> ({results})>}} : "
        f"{kind}, {w.vector(where.shape)}"
    )
    w.result = w.anchor(read, where), where


def writes(w: Writer) -> None:
    where = w.layout()
    w.write(w.read(where.shape, where=where), where.shape)


def softmax(w: Writer) -> None:
    """Row maxima and sums that go back to the rows, of integers."""
    where = w.layout(2)
    rows, columns = where.shape
    x = w.read(where.shape, where=where)
    acc = w.op(f"arith.constant dense<-100> : {w.vector((rows,))}")
    types = f"{w.vector(where.shape)} to {w.vector((rows,))}"
    most = w.op(f"vector.multi_reduction <maxsi>, {x}, {acc} [1] : {types}")
    wide = w.op(f"vector.broadcast {most} : {w.vector((rows,))} to {w.vector((columns, rows))}")
    back = w.op(f"vector.transpose {wide}, [1, 0] : {w.vector((columns, rows))} to {w.vector(where.shape)}")
    less = w.op(f"arith.subi {x}, {back} : {w.vector(where.shape)}")
    total = w.op(f"vector.multi_reduction <add>, {less}, {acc} [1] : {types}")
    w.write(total, (rows,))
    w.result = less, where


OWN = (
    conversion, within_subgroups, table, reshaped, reshaped_anew,
    conflict, branches, turns, unit_dims, stretched, masked_reduction, masked_contract,
    masked_gather, masked_read, masked_write, projected_read, writes, softmax,
)  # fmt: skip


def make(
    kind,
    seed: int,
    *,
    writes_result: bool = False,
    gaps: bool = True,
    outers: bool = True,
    subgroups: int | None = None,
) -> Program:
    """A program of a kind, from a seed.

    Args:
        kind: one of `SHARED` or `OWN`.
        seed: any number.
        writes_result: whether it writes to memory what it would return.
        gaps: whether lanes, or subgroups, that differ in some bits of their number may hold the same.
        outers: whether layouts may have more than one outer.
        subgroups: how many there are, if not a random number.
    """
    r = random.Random(f"{kind.__name__} {seed}")
    w = Writer(r, r.choice([16, 32]), subgroups or r.choice([1, 2, 4]), gaps, outers)
    kind(w)
    if writes_result and w.result:
        value, where = w.result
        w.result = None
        w.write(value, where.shape)
    return w.program()
