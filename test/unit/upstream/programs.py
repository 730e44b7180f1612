"""Random kernels of workgroups in upstream's XeGPU, with what they compute."""

import itertools
import math
from dataclasses import dataclass, field

import numpy as np

from xegpu_py.dialects.xegpu.upstream_types import Layout


def kernel(arguments, body):
    lines = "\n".join(f"    {line}" for line in body)
    return f"gpu.module @m {{\n  gpu.func @k({arguments}) kernel {{\n{lines}\n    gpu.return\n  }}\n}}\n"


def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def typed(shape, element):
    return f"vector<{'x'.join(map(str, shape))}x{element}>"


@dataclass
class Layouts:
    """Random layouts of the subgroups of one workgroup."""

    random: np.random.Generator
    subgroups: int

    def of(self, shape):
        """A layout that divides a shape: parts that are distributed, once or round robin, or that subgroups share."""
        grids = [
            g for g in itertools.product(*(divisors(self.subgroups) for _ in shape)) if math.prod(g) == self.subgroups
        ]
        # Upstream refuses layouts that do not divide equally; few shapes have none that does.
        for _ in range(100):
            grid = tuple(map(int, self.random.choice(grids)))
            data = [int(self.random.choice(divisors(n))) for n in shape]
            if Layout(sg_layout=grid, sg_data=tuple(data)).distributes(shape):
                break
        parts = [f"sg_layout = {list(grid)}", f"sg_data = {data}"]
        if self.random.random() < 0.5:
            parts.append(f"inst_data = {[int(self.random.choice(divisors(d))) for d in data]}")
        if self.random.random() < 0.5:
            parts.append(f"order = {list(map(int, self.random.permutation(len(shape))))}")
        return f"#xegpu.layout<{', '.join(parts)}>"


@dataclass
class Writer:
    """The lines of a kernel, and its values' names."""

    lines: list = field(default_factory=list)

    def __call__(self, text, *, named=True):
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text}" if named else text)
        return name


def product(random):
    """A product of matrices, some transposed, added to what was there: the kernel, its arrays and the result."""
    m, n, k = (int(random.choice(s)) for s in ((16, 32, 64), (16, 32, 64), (16, 32)))
    steps = int(random.integers(1, 3))
    layouts = Layouts(random, int(random.choice([1, 2, 4, 8])))
    element, kind = [("f16", np.float16), ("i8", np.int8)][int(random.integers(2))]
    out, out_kind = ("f32", np.float32) if element == "f16" else ("i32", np.int32)
    if element == "i8":
        k = 32
    a_across, b_across = random.random(2) < 0.4
    depth = k * steps
    w = Writer()
    shapes = [(depth, m) if a_across else (m, depth), (n, depth) if b_across else (depth, n), (m, n)]
    arrays = [random.integers(-4, 5, s).astype(t) for s, t in zip(shapes, (kind, kind, out_kind))]
    memrefs = [f"memref<{r}x{c}x{e}>" for (r, c), e in zip(shapes, (element, element, out))]
    zero = w("arith.constant 0 : index")
    end, step = w(f"arith.constant {depth} : index"), w(f"arith.constant {k} : index")
    blocks = [(k, m) if a_across else (m, k), (n, k) if b_across else (k, n)]
    descs = [f"!xegpu.tensor_desc<{r}x{c}x{element}, {layouts.of((r, c))}>" for r, c in blocks]
    given = [w(f"xegpu.create_nd_tdesc %{x} : {t} -> {d}") for x, t, d in zip("ab", memrefs, descs)]
    result = typed((m, n), out)
    anchor = layouts.of((m, n))
    desc = f"!xegpu.tensor_desc<{m}x{n}x{out}, {anchor}>"
    at = w(f"xegpu.create_nd_tdesc %c : {memrefs[2]} -> {desc}")
    start = w(f"xegpu.load_nd {at}[0, 0] : {desc} -> {result}")
    done = w(f"scf.for %i = {zero} to {end} step {step} iter_args(%sum = {start}) -> ({result}) {{")
    factors = []
    for (r, c), d, t, across, row_moves in zip(blocks, descs, given, (a_across, b_across), (False, True)):
        first = across != row_moves
        where = "[%i, 0]" if first else "[0, %i]"
        if random.random() < 0.3:
            w(f"xegpu.prefetch_nd {t}{where} <{{layout = {layouts.of((r, c))}}}> : {d}", named=False)
        v = w(f"xegpu.load_nd {t}{where} : {d} -> {typed((r, c), element)}")
        if across:
            v = w(f"vector.transpose {v}, [1, 0] : {typed((r, c), element)} to {typed((c, r), element)}")
            r, c = c, r
        if random.random() < 0.3:
            pair = f"input_layout = {layouts.of((r, c))}, target_layout = {layouts.of((r, c))}"
            v = w(f"xegpu.convert_layout {v} <{{{pair}}}> : {typed((r, c), element)}")
        factors.append((v, typed((r, c), element)))
    (a, at_type), (b, bt_type) = factors
    d = w(f"xegpu.dpas {a}, {b}, %sum {{layout_cd = {anchor}}} : {at_type}, {bt_type}, {result} -> {result}")
    w(f"scf.yield {d} : {result}", named=False)
    w("}", named=False)
    w(f"xegpu.store_nd {done}, {at}[0, 0] <{{layout = {anchor}}}> : {result}, {desc}", named=False)
    x, y, z = (v.astype(np.int64) for v in arrays)
    expected = (x.T if a_across else x) @ (y.T if b_across else y) + z
    arguments = ", ".join(f"%{x}: {t}" for x, t in zip("abc", memrefs))
    return kernel(arguments, w.lines), arrays, expected


def places(w, shape, steps, start):
    """A vector of offsets, each index times its step, built as linalg's lowering does: by steps and broadcasts."""
    kind = typed(shape, "index")
    total = w(f"vector.broadcast {start} : index to {kind}")
    for d, (n, step) in enumerate(zip(shape, steps)):
        line = w(f"vector.step : {typed((n,), 'index')}")
        by = w(f"arith.constant dense<{step}> : {typed((n,), 'index')}")
        line = w(f"arith.muli {line}, {by} : {typed((n,), 'index')}")
        inner = (n, *[1] * (len(shape) - d - 1))
        if len(inner) > 1:
            line = w(f"vector.shape_cast {line} : {typed((n,), 'index')} to {typed(inner, 'index')}")
        line = w(f"vector.broadcast {line} : {typed(inner, 'index')} to {kind}")
        total = w(f"arith.addi {total}, {line} : {kind}")
    return total


def reduction(random):
    """A reduction over some dimensions of what is gathered, sent through elementwise ops, and scattered."""
    rank = int(random.integers(1, 5))
    shape = tuple(int(n) for n in random.choice([1, 2, 3, 4, 8, 16], rank))
    while math.prod(shape) > 1024:
        shape = tuple(max(1, n // 2) for n in shape)
    layouts = Layouts(random, int(random.choice([1, 2, 4])))
    dims = sorted(int(d) for d in random.choice(rank, int(random.integers(1, rank + 1)), replace=False))
    left = tuple(n for d, n in enumerate(shape) if d not in dims)
    kind, combine = [("add", np.add), ("maxsi", np.maximum), ("minsi", np.minimum)][int(random.integers(3))]
    order = random.permutation(rank)
    steps, size = [0] * rank, int(random.choice([1, 1, 2]))
    for d in reversed(range(rank)) if random.random() < 0.5 else order:
        steps[d] = size
        size *= shape[d]
    first = int(random.choice([0, 3, 16]))
    source = random.integers(-99, 99, first + size).astype(np.int32)
    at = first + sum(s * i for s, i in zip(steps, np.indices(shape)))
    w = Writer()
    start = w(f"arith.constant {first} : index")
    zero = w("arith.constant 0 : index")
    here, mask = places(w, shape, steps, start), w(f"arith.constant dense<true> : {typed(shape, 'i1')}")
    types = f"memref<{first + size}xi32>, {typed(shape, 'index')}, {typed(shape, 'i1')}"
    layout = f" <{{layout = {layouts.of(shape)}}}>" if random.random() < 0.7 else ""
    value = w(f"xegpu.load %a[{here}], {mask}{layout} : {types} -> {typed(shape, 'i32')}")
    found = source[at].astype(np.int64)
    if random.random() < 0.5:
        value = w(f"arith.addi {value}, {value} : {typed(shape, 'i32')}")
        found = found * 2
    neutral = {"add": 5, "maxsi": -7, "minsi": 7}[kind]
    listed = f"[{', '.join(map(str, dims))}]"
    if left:
        acc = w(f"arith.constant dense<{neutral}> : {typed(left, 'i32')}")
        into = typed(left, "i32")
    else:
        acc, into = w(f"arith.constant {neutral} : i32"), "i32"
    value = w(f"vector.multi_reduction <{kind}>, {value}, {acc} {listed} : {typed(shape, 'i32')} to {into}")
    found = combine(combine.reduce(found, axis=tuple(dims)), neutral)
    if not left:
        value, left = w(f"vector.broadcast {value} : i32 to {typed((1,), 'i32')}"), (1,)
        found = found.reshape(1)
    if random.random() < 0.5:
        # Restore the original shape.
        kept = (
            tuple(1 if d in dims else n for d, n in enumerate(shape))
            if math.prod(left) == math.prod(found.shape)
            else left
        )
        if len(kept) == len(shape) and math.prod(kept) == math.prod(left):
            value = w(f"vector.shape_cast {value} : {typed(left, 'i32')} to {typed(kept, 'i32')}")
            value = w(f"vector.broadcast {value} : {typed(kept, 'i32')} to {typed(shape, 'i32')}")
            found, left = np.broadcast_to(found.reshape(kept), shape), shape
    if len(left) == 2 and random.random() < 0.5:
        value = w(f"vector.transpose {value}, [1, 0] : {typed(left, 'i32')} to {typed(left[::-1], 'i32')}")
        found, left = found.T, left[::-1]
    rows = [math.prod(left[d + 1 :]) for d in range(len(left))]
    there, mask = places(w, left, rows, zero), w(f"arith.constant dense<true> : {typed(left, 'i1')}")
    types = f"{typed(left, 'i32')}, memref<{math.prod(left)}xi32>, {typed(left, 'index')}, {typed(left, 'i1')}"
    w(f"xegpu.store {value}, %c[{there}], {mask} <{{layout = {layouts.of(left)}}}> : {types}", named=False)
    result = np.zeros(math.prod(left), np.int32)
    text = kernel(f"%a: memref<{len(source)}xi32>, %c: memref<{len(result)}xi32>", w.lines)
    return text, [source, result], found.reshape(-1)
