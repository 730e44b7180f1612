"""Ops of vector on the values of one thread: shapes, parts, places, masks and reductions."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from xegpu_py.ir.builtin import bit_width, is_float, vector_text

from . import elementwise, ops
from .body import Body, Value, most_exact, with_exact
from .ops import NUMBERS

MOST = 256
"""Elements of the largest vector that an op makes."""


def moved(b: Body, x: Value, text: str, shape: tuple[int, ...]) -> Value:
    """An op that moves elements."""
    return b.op(text, shape, x.element, x.exact)


def transpose(b: Body, x: Value) -> Value:
    order = list(range(len(x.shape)))
    b.r.shuffle(order)
    shape = tuple(x.shape[i] for i in order)
    return moved(b, x, f"vector.transpose {x.name}, {order} : {x.type} to {vector_text(shape, x.element)}", shape)


def factors(b: Body, size: int) -> tuple[int, ...]:
    """A shape of so many elements."""
    shape = []
    for _ in range(b.r.randint(0, 2)):
        n = b.r.choice([d for d in (1, 2, 3, 4, 8) if size % d == 0])
        shape.append(n)
        size //= n
    shape.append(size)
    b.r.shuffle(shape)
    return tuple(shape)


def shape_cast(b: Body, x: Value) -> Value:
    shape = factors(b, x.size)
    return moved(b, x, f"vector.shape_cast {x.name} : {x.type} to {vector_text(shape, x.element)}", shape)


def extract(b: Body, x: Value) -> Value:
    rank = b.r.randint(1, len(x.shape))
    places = [b.r.randrange(n) for n in x.shape[:rank]]
    shape = x.shape[rank:]
    kind = Value("", shape, x.element).type
    return moved(b, x, f"vector.extract {x.name}{places} : {kind} from {x.type}", shape)


def insert(b: Body, x: Value) -> Value:
    part = b.pick(
        lambda v: v.element == x.element and v.shape != x.shape and v.shape == x.shape[len(x.shape) - len(v.shape) :]
    )
    if part is None:
        part = extract(b, x)
    places = [b.r.randrange(n) for n in x.shape[: len(x.shape) - len(part.shape)]]
    found = moved(b, x, f"vector.insert {part.name}, {x.name} {places} : {part.type} into {x.type}", x.shape)
    return with_exact(found, joint(x, part))


def joint(*values: Value) -> int | None:
    """A bound of several values."""
    bounds = [v.exact for v in values]
    return None if None in bounds else max(b for b in bounds if b is not None)


def part_of(b: Body, x: Value) -> Value:
    sizes = [b.r.choice(sorted({n, max(n // 2, 1), b.r.randint(1, n)})) for n in x.shape]
    offsets = [b.r.randint(0, n - size) for n, size in zip(x.shape, sizes)]
    ones = [1] * len(sizes)
    shape = tuple(sizes)
    text = f"vector.extract_strided_slice {x.name} {{offsets = {offsets}, sizes = {sizes}, strides = {ones}}}"
    return moved(b, x, f"{text} : {x.type} to {vector_text(shape, x.element)}", shape)


def put_part(b: Body, x: Value) -> Value:
    part = part_of(b, x)
    offsets = [b.r.randint(0, n - size) for n, size in zip(x.shape, part.shape)]
    ones = [1] * len(offsets)
    into = elementwise.other(b, x)
    text = f"vector.insert_strided_slice {part.name}, {into.name} {{offsets = {offsets}, strides = {ones}}}"
    return with_exact(moved(b, x, f"{text} : {part.type} into {x.type}", x.shape), joint(x, into))


def strided_positions(r: random.Random, extent: int, count: int) -> list[int]:
    """Positions below an extent in pieces that moves of many elements may write: lines, interleaved or reversed."""
    positions: list[int] = []
    while len(positions) < count:
        size = r.choice([1, 1, 2, 3, 16, 32])
        first = r.randrange(extent)
        lines = [r.choice([first + i, first + 8 * i, r.randrange(extent)]) for i in range(r.choice([1, 2, 2, 4]))]
        step, run = r.choice([0, 1, 1, 2, 4]), r.choice([1, 1, 2])
        piece = [line + step * run * i + j for i in range(size) for line in lines for j in range(run)]
        group = r.choice([1, 1, 2, 4])
        positions += [n for i in range(0, len(piece), group) for n in piece[i : i + group][:: r.choice([1, -1])]]
    return [n % extent for n in positions[:count]]


def shuffle(b: Body, x: Value) -> Value:
    y = elementwise.other(b, x)
    n = x.shape[0]
    count = b.r.choice([n, n, max(n // 2, 1), min(2 * n, 32)])
    places = (
        strided_positions(b.r, 2 * n, count) if b.r.random() < 0.5 else [b.r.randrange(2 * n) for _ in range(count)]
    )
    found = moved(b, x, f"vector.shuffle {x.name}, {y.name} {places} : {x.type}, {y.type}", (len(places), *x.shape[1:]))
    return with_exact(found, joint(x, y))


def interleave(b: Body, x: Value) -> Value:
    y = elementwise.other(b, x)
    shape = (*x.shape[:-1], 2 * x.shape[-1])
    text = f"vector.interleave {x.name}, {y.name} : {x.type} -> {vector_text(shape, x.element)}"
    return with_exact(moved(b, x, text, shape), joint(x, y))


def deinterleave(b: Body, x: Value) -> Value:
    shape = (*x.shape[:-1], x.shape[-1] // 2)
    kind = vector_text(shape, x.element)
    found = Value(b.name(), shape, x.element, x.exact)
    second = Value(b.name(), shape, x.element, x.exact)
    b.line(f"{found.name}, {second.name} = vector.deinterleave {x.name} : {x.type} -> {kind}")
    b.keep(second)
    return found


def broadcast(b: Body, x: Value) -> Value:
    shape = tuple(b.r.choice([2, 3, 4, 16]) if n == 1 else n for n in x.shape)
    if not x.shape or (b.r.random() < 0.6 and 4 * math.prod(shape) <= MOST):
        shape = (b.r.choice([1, 2, 3, 4, 16]) if x.shape else b.r.choice([1, 3, 8, 16, 20, 32]), *shape)
    if math.prod(shape) > MOST:
        shape = x.shape
    return moved(b, x, f"vector.broadcast {x.name} : {x.type} to {vector_text(shape, x.element)}", shape)


def bitcast(b: Body, x: Value) -> Value:
    bits = x.shape[-1] * bit_width(x.element)
    fits = [e for e in NUMBERS if e != x.element and bits % bit_width(e) == 0]
    to = b.r.choice(fits)
    shape = (*x.shape[:-1], bits // bit_width(to))
    if math.prod(shape) > 2 * MOST:
        return x
    return b.op(f"vector.bitcast {x.name} : {x.type} to {vector_text(shape, to)}", shape, to)


def kinds_for(x: Value, count: int) -> tuple[tuple[str, ...], int | None]:
    """The kinds of reductions whose result has no rounding, and a bound of a sum of so many elements."""
    kinds = tuple(ops.reductions(x.element))
    if not is_float(x.element):
        return kinds, x.exact and x.exact * count
    if x.exact is not None and x.exact * count <= most_exact(x.element):
        small = x.exact**count <= most_exact(x.element)
        return (*(["mul"] if small else []), "add", *kinds), x.exact * count
    return kinds, None


def reduction(b: Body, x: Value) -> Value:
    """All elements of a vector of one dimension."""
    kinds, most = kinds_for(x, x.size + 4)
    kind = b.r.choice(kinds)
    start = ""
    if b.r.random() < 0.4:
        start = ", " + b.scalar(b.r.randint(-4, 4), x.element).name
    exact = most if kind == "add" else None
    return b.op(f"vector.reduction <{kind}>, {x.name}{start} : {x.type} into {x.element}", (), x.element, exact)


def multi_reduction(b: Body, x: Value) -> Value:
    """Some dimensions of a vector."""
    dims = sorted(b.r.sample(range(len(x.shape)), b.r.randint(1, len(x.shape))))
    shape = tuple(n for i, n in enumerate(x.shape) if i not in dims)
    kinds, most = kinds_for(x, x.size + 4)
    kind = b.r.choice(kinds)
    start = b.splat(b.r.randint(-4, 4), shape, x.element) if shape else b.scalar(b.r.randint(-4, 4), x.element)
    text = f"vector.multi_reduction <{kind}>, {x.name}, {start.name} {dims} : {x.type} to {start.type}"
    return b.op(text, shape, x.element, most if kind == "add" else None)


def lane_mask(b: Body, shape: tuple[int, ...]) -> Value:
    """The first elements of each dimension."""
    bounds = [b.r.choice([n, n, max(n - 1, 0), b.r.randint(0, n)]) for n in shape]
    if b.r.random() < 0.4:
        bounds = bounds if all(bounds) else [0] * len(bounds)
        return b.op(f"vector.constant_mask {bounds} : {vector_text(shape, 'i1')}", shape, "i1")
    names = [b.dynamic(n) if b.r.random() < 0.5 else b.index(n) for n in bounds]
    return b.op(f"vector.create_mask {', '.join(names)} : {vector_text(shape, 'i1')}", shape, "i1")


def masked(b: Body, x: Value) -> Value:
    m, y = lane_mask(b, x.shape), elementwise.other(b, x)
    return b.op(f"arith.select {m.name}, {x.name}, {y.name} : {m.type}, {x.type}", x.shape, x.element, joint(x, y))


def step(b: Body, x: Value) -> Value:
    """The numbers of a vector's elements."""
    line = (b.r.choice([x.shape[-1], 1, 7, 16, 32]),)
    found = b.op(f"vector.step : {vector_text(line, 'index')}", line, "index")
    to = b.r.choice(["i32", "i64", "i16", "i8"])
    types = f"{vector_text(line, 'index')} to {vector_text(line, to)}"
    return b.op(f"arith.index_cast {found.name} : {types}", line, to, line[0])


def elements(b: Body, x: Value) -> Value:
    """A vector of some elements of another one."""
    count = b.r.randint(1, 4)
    parts = [extract_one(b, x) for _ in range(count)]
    names = ", ".join(p.name for p in parts)
    return moved(b, x, f"vector.from_elements {names} : {vector_text((count,), x.element)}", (count,))


def extract_one(b: Body, x: Value) -> Value:
    places = [b.r.randrange(n) for n in x.shape]
    return moved(b, x, f"vector.extract {x.name}{places} : {x.element} from {x.type}", ())


def contract(b: Body, x: Value) -> Value:
    """A product of two matrices by vector.contract, of integers or of small numbers."""
    m, k = x.shape
    y = b.pick(lambda v: len(v.shape) == 2 and v.shape[0] == k and v.element == x.element and exact_sum(x, v, k))
    if y is None:
        order = [1, 0]
        y = moved(b, x, f"vector.transpose {x.name}, {order} : {x.type} to {vector_text((k, m), x.element)}", (k, m))
        if not exact_sum(x, y, k):
            return x
    n = y.shape[1]
    if m * n * k > 1024:
        return x
    start = b.splat(b.r.randint(-4, 4), (m, n), x.element)
    maps = ", ".join(f"affine_map<(m, n, k) -> ({d})>" for d in ("m, k", "k, n", "m, n"))
    text = (
        f'vector.contract {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel", "reduction"], '
        f"kind = #vector.kind<add>}} {x.name}, {y.name}, {start.name} : {x.type}, {y.type} into {start.type}"
    )
    bound = None if None in (x.exact, y.exact) else x.exact * y.exact * k + 4  # type: ignore[operator]
    return b.op(text, (m, n), x.element, bound)


def outer_product(b: Body, x: Value) -> Value:
    """The products of the elements of two vectors of one dimension, or of a vector and a scalar, combined with others."""
    y = b.pick(lambda v: v.element == x.element and len(v.shape) < 2 and x.size * v.size <= MOST)
    if y is None:
        y = extract_one(b, x)
    shape = (*x.shape, *y.shape)
    kind, start, exact = "", "", None
    if b.r.random() < 0.7:
        start = b.splat(b.r.randint(-4, 4), shape, x.element).name
        kinds = list(ops.reductions(x.element, ordered=True))
        kind, start = f" {{kind = #vector.kind<{b.r.choice(kinds)}>}}", f", {start}"
    elif x.exact is not None and y.exact is not None:
        exact = x.exact * y.exact
    return b.op(f"vector.outerproduct {x.name}, {y.name}{start}{kind} : {x.type}, {y.type}", shape, x.element, exact)


def exact_sum(x: Value, y: Value, count: int) -> bool:
    """Whether a sum of so many products has no rounding."""
    if not is_float(x.element):
        return True
    return x.exact is not None and y.exact is not None and x.exact * y.exact * count + 4 < most_exact(x.element)


def options(b: Body, x: Value) -> list[Callable[[Body, Value], Value]]:
    """The ops that a value fits."""
    if not x.shape:
        return [broadcast]
    found: list[Callable[[Body, Value], Value]] = [
        shape_cast, extract, part_of, put_part, insert, broadcast, masked, step, multi_reduction, bitcast, elements,
    ]  # fmt: skip
    if len(x.shape) > 1:
        found += [transpose, transpose]
    if len(x.shape) == 2:
        found.append(contract)
    if len(x.shape) == 1:
        found += [reduction, shuffle, outer_product]
    if x.shape[-1] % 2 == 0:
        found.append(deinterleave)
    if 2 * x.size <= MOST:
        found.append(interleave)
    return found


def change(b: Body, x: Value) -> Value:
    """Any op of vector that a value fits."""
    return b.keep(b.r.choice(options(b, x))(b, x))
