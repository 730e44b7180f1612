"""Random kernels of XeTile at workgroup level, each with what it must store.

All elements are integers small enough to be exact in every element type that a program uses, so that neither the order
of a sum nor a conversion rounds, and maps, which change no value, may be chosen at random.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import ml_dtypes
import numpy as np

DTYPES = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i32": np.int32,
    "i16": np.int16,
    "i8": np.int8,
}
LIMIT = 16
"""No element is larger after an op."""

SIZES = (8, 16, 24, 32)


def is_float(element):
    return "f" in element


def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


@dataclass
class Value:
    """A vector: its name, its element type, and its elements as numpy has them."""

    name: str
    element: str
    array: np.ndarray
    mapped: bool = False
    """Whether its op says its map, so that only `convert_layout` gives it another."""

    @property
    def kind(self):
        return f"vector<{self.array.shape[0]}x{self.array.shape[1]}x{self.element}>"


@dataclass
class Program:
    """A kernel that is written op by op.

    Attributes:
        subgroups: of its workgroup.
        arguments: what it is called with.
        expected: by argument what it must hold afterwards.
    """

    random: Random
    subgroups: int
    lines: list[str] = field(default_factory=list)
    arguments: list[np.ndarray] = field(default_factory=list)
    elements: list[str] = field(default_factory=list)
    expected: dict[int, np.ndarray] = field(default_factory=dict)
    values: list[Value] = field(default_factory=list)
    count: int = 0

    def name(self):
        self.count += 1
        return f"%v{self.count}"

    def emit(self, line):
        self.lines.append(line)

    def wg_map(self, shape):
        """A map of a shape at random: shared, exact, or distributed round robin."""
        while True:
            down = self.random.choice(divisors(self.subgroups))
            layout = (down, self.subgroups // down)
            data = []
            for size, grid in zip(shape, layout):
                fitting = [d for d in divisors(size) if not (size // d % grid and grid % (size // d))]
                # Parts of single elements are slow, and rare.
                broad = [d for d in fitting if d >= 4 or d == size]
                if broad:
                    data.append(self.random.choice(broad))
            if len(data) == 2:
                return f"<sg_layout = {list(layout)}, sg_data = {data}>"

    def tile(self, shape, element, mapped=True):
        attr = f", #xetile.tile_attr<wg_map = {self.wg_map(shape)}>" if mapped else ""
        return f"!xetile.tile<{shape[0]}x{shape[1]}x{element}{attr}>"

    def memref(self, array, element):
        self.arguments.append(array)
        self.elements.append(element)
        return len(self.arguments) - 1, f"memref<{array.shape[0]}x{array.shape[1]}x{element}>"

    def load(self, shape, element):
        array = np.array(
            [self.random.randint(-LIMIT, LIMIT) for _ in range(shape[0] * shape[1])], DTYPES[element]
        ).reshape(shape)
        number, source = self.memref(array, element)
        tile, t, v = self.tile(shape, element), self.name(), self.name()
        self.emit(f"{t} = xetile.init_tile %arg{number}[0, 0] : {source} -> {tile}")
        found = Value(v, element, array.astype(np.float64), True)
        self.emit(f"{v} = xetile.load_tile {t} : {tile} -> {found.kind}")
        self.values.append(found)
        return found

    def store(self, value):
        shape = value.array.shape
        number, target = self.memref(np.zeros(shape, DTYPES[value.element]), value.element)
        self.expected[number] = value.array.astype(DTYPES[value.element])
        value = self.free(value)
        tile, t = self.tile(shape, value.element), self.name()
        self.emit(f"{t} = xetile.init_tile %arg{number}[0, 0] : {target} -> {tile}")
        self.emit(f"xetile.store_tile {value.name}, {t} : {value.kind}, {tile}")

    def made(self, text, element, array):
        found = Value(self.name(), element, np.asarray(array, np.float64))
        self.emit(f"{found.name} = {text.replace('RESULT', found.kind)}")
        self.values.append(found)
        return found

    def free(self, value):
        """The value, of which no op says the map."""
        if not value.mapped:
            return value
        zero = self.splat(value, 0)
        op = "arith.addf" if is_float(value.element) else "arith.ori"
        return self.made(f"{op} {value.name}, {zero} : RESULT", value.element, value.array)

    def splat(self, like, number):
        text = f"{number}.0" if is_float(like.element) else str(number)
        name = self.name()
        self.emit(f"{name} = arith.constant dense<{text}> : {like.kind}")
        return name

    def clamped(self, value):
        """The value, with elements that are small again."""
        if np.abs(value.array).max(initial=0) <= LIMIT:
            return value
        low, high = self.splat(value, -LIMIT), self.splat(value, LIMIT)
        least, most = ("minnumf", "maxnumf") if is_float(value.element) else ("minsi", "maxsi")
        cut = self.made(f"arith.{least} {value.name}, {high} : RESULT", value.element, value.array.clip(max=LIMIT))
        return self.made(f"arith.{most} {cut.name}, {low} : RESULT", value.element, cut.array.clip(min=-LIMIT))

    def cast(self, value, element):
        have, want = value.element, element
        if have == want:
            return value
        bits = {n: np.dtype(d).itemsize for n, d in DTYPES.items()}
        if is_float(have) and is_float(want):
            if bits[have] == bits[want]:
                return self.cast(self.cast(value, "f32"), want)
            op = "extf" if bits[want] > bits[have] else "truncf"
        elif is_float(want):
            op = "sitofp"
        elif is_float(have):
            op = "fptosi"
        else:
            op = "extsi" if bits[want] > bits[have] else "trunci"
        return self.made(f"arith.{op} {value.name} : {value.kind} to RESULT", want, value.array)

    def elementwise(self, value):
        f = "f" if is_float(value.element) else "i"
        choice = self.random.randrange(4)
        if choice == 0:
            by = self.random.randint(-3, 3)
            text = f"arith.add{f} {value.name}, {self.splat(value, by)} : RESULT"
            return self.clamped(self.made(text, value.element, value.array + by))
        if choice == 1:
            text = f"arith.sub{f} {self.splat(value, 1)}, {value.name} : RESULT"
            return self.clamped(self.made(text, value.element, 1 - value.array))
        others = [v for v in self.values if v.array.shape == value.array.shape and v.element == value.element]
        other = self.random.choice(others)
        if choice == 2:
            text = f"arith.add{f} {value.name}, {other.name} : RESULT"
            return self.clamped(self.made(text, value.element, value.array + other.array))
        mask = self.name()
        how = "olt" if f == "f" else "slt"
        self.emit(f"{mask} = arith.cmp{f} {how}, {value.name}, {other.name} : {value.kind}")
        bits = value.kind.replace(f"x{value.element}>", "xi1>")
        picked = np.where(value.array < other.array, other.array, value.array)
        return self.made(f"arith.select {mask}, {other.name}, {value.name} : {bits}, RESULT", value.element, picked)

    def convert(self, value):
        wanted = f"#xetile.wg_map{self.wg_map(value.array.shape)}"
        text = f"xetile.convert_layout {value.name} {{wg_map_result = {wanted}}} : RESULT"
        found = self.made(text, value.element, value.array)
        found.mapped = True
        return found

    def transpose(self, value):
        return self.made(
            f"xetile.transpose {value.name}, [1, 0] : {value.kind} -> RESULT", value.element, value.array.T
        )

    def vector_transpose(self, value):
        text = f"vector.transpose {value.name}, [1, 0] : {value.kind} to RESULT"
        return self.made(text, value.element, value.array.T)

    def shape_cast(self, value):
        """The same elements in another shape, of one dimension in between or not."""
        size = value.array.size
        shapes = [(n, size // n) for n in (1, 8, 16, 32) if size % n == 0 and size // n <= 1024]
        array = value.array.reshape(self.random.choice(shapes or [value.array.shape]))
        if self.random.random() < 0.4:
            line, kind = self.name(), f"vector<{size}x{value.element}>"
            self.emit(f"{line} = vector.shape_cast {value.name} : {value.kind} to {kind}")
            return self.made(f"vector.shape_cast {line} : {kind} to RESULT", value.element, array)
        return self.made(f"vector.shape_cast {value.name} : {value.kind} to RESULT", value.element, array)

    def vector_reduce(self, value):
        """A reduction of all of a dimension, or of groups of it."""
        dim = self.random.randrange(2)
        kind, found = self.random.choice([("maxnumf" if is_float(value.element) else "maxsi", np.max), ("add", np.sum)])
        wide = self.cast(value, "f32" if is_float(value.element) else "i32") if kind == "add" else value
        shape = wide.array.shape
        groups = self.random.choice([1, *(n for n in divisors(shape[dim]) if n in (2, 4, 8))])
        apart = (*shape[:dim], groups, shape[dim] // groups, *shape[dim + 1 :])
        result = found(wide.array.reshape(apart), axis=dim + 1)
        source, of = wide.name, wide.kind
        if groups > 1:
            source, of = self.name(), f"vector<{'x'.join(map(str, apart))}x{wide.element}>"
            self.emit(f"{source} = vector.shape_cast {wide.name} : {wide.kind} to {of}")
        axis = dim + 1 if groups > 1 else dim
        if groups == 1:
            result = result.reshape(-1)
        start, name = self.name(), self.name()
        to = f"vector<{'x'.join(map(str, result.shape))}x{wide.element}>"
        least = "-16.0" if is_float(wide.element) else "-16"
        zero = least if kind != "add" else least.replace("-16", "0")
        self.emit(f"{start} = arith.constant dense<{zero}> : {to}")
        self.emit(f"{name} = vector.multi_reduction <{kind}>, {source}, {start} [{axis}] : {of} to {to}")
        if groups > 1:
            made = Value(name, wide.element, result)
            self.values.append(made)
            return self.clamped(made)
        array = result.reshape(1, -1) if self.random.random() < 0.5 else result.reshape(-1, 1)
        return self.clamped(self.made(f"vector.shape_cast {name} : {to} to RESULT", wide.element, array))

    def total(self, value):
        """The largest element, added to all."""
        f = "f" if is_float(value.element) else "i"
        least, most, splat = self.name(), self.name(), self.name()
        self.emit(f"{least} = arith.constant {'-2.0' if f == 'f' else -2} : {value.element}")
        kind = "maxnumf" if f == "f" else "maxsi"
        self.emit(
            f"{most} = vector.multi_reduction <{kind}>, {value.name}, {least} [0, 1] : {value.kind} to {value.element}"
        )
        self.emit(f"{splat} = vector.broadcast {most} : {value.element} to {value.kind}")
        text = f"arith.add{f} {value.name}, {splat} : RESULT"
        return self.clamped(self.made(text, value.element, value.array + max(value.array.max(), -2)))

    def vector_broadcast(self, value):
        if value.array.shape[0] != 1:
            return value
        array = np.broadcast_to(value.array, (self.random.choice(SIZES), value.array.shape[1]))
        return self.made(f"vector.broadcast {value.name} : {value.kind} to RESULT", value.element, array)

    def constant(self, value):
        """A constant of different elements is added."""
        f = "f" if is_float(value.element) else "i"
        numbers = np.arange(value.array.size).reshape(value.array.shape) % 5 - 2
        listed = [[f"{n}.0" if f == "f" else str(n) for n in row] for row in numbers]
        rows = ", ".join(f"[{', '.join(row)}]" for row in listed)
        name = self.name()
        self.emit(f"{name} = arith.constant dense<[{rows}]> : {value.kind}")
        text = f"arith.add{f} {value.name}, {name} : RESULT"
        return self.clamped(self.made(text, value.element, value.array + numbers))

    def number(self, value):
        """One element, added to all."""
        f = "f" if is_float(value.element) else "i"
        at = [self.random.randrange(n) for n in value.array.shape]
        one, splat = self.name(), self.name()
        self.emit(f"{one} = vector.extract {value.name}[{at[0]}, {at[1]}] : {value.element} from {value.kind}")
        self.emit(f"{splat} = vector.broadcast {one} : {value.element} to {value.kind}")
        text = f"arith.add{f} {value.name}, {splat} : RESULT"
        return self.clamped(self.made(text, value.element, value.array + value.array[tuple(at)]))

    def reduce(self, value):
        dim = self.random.randrange(2)
        float_kinds = {"add": np.sum, "maxnumf": np.max, "minimumf": np.min}
        kinds = float_kinds if is_float(value.element) else {"add": np.sum, "maxsi": np.max, "minsi": np.min}
        kind = self.random.choice(list(kinds))
        wide = self.cast(value, "f32" if is_float(value.element) else "i32") if kind == "add" else value
        shape = list(value.array.shape)
        shape[dim] = 1
        found = kinds[kind](wide.array, axis=dim, keepdims=True)
        text = f"xetile.reduction <{kind}>, {wide.name} [{dim}] : {wide.kind} -> RESULT"
        return self.clamped(self.made(text, wide.element, found))

    def broadcast(self, value):
        dims = [i for i in range(2) if value.array.shape[i] == 1]
        if not dims:
            return value
        shape = list(value.array.shape)
        shape[dims[0]] = self.random.choice(SIZES)
        text = f"xetile.broadcast {value.name} [{dims[0]}] : {value.kind} -> RESULT"
        return self.made(text, value.element, np.broadcast_to(value.array, shape))

    def product(self, value):
        if 1 in value.array.shape:
            return value
        element = self.random.choice(["f16", "bf16"])
        a = self.cast(value, element)
        if a.array.shape[1] % 16:
            return value
        columns = self.random.choice([16, 32])
        fitting = [v for v in self.values if v.element == element and v.array.shape[0] == a.array.shape[1]]
        b = self.random.choice(fitting) if fitting else self.load((a.array.shape[1], columns), element)
        a, b = self.free(a), self.free(b)
        result = a.array @ b.array
        attr, acc, kinds = "", "", ""
        if self.random.random() < 0.7:
            attr = f" {{wg_map_c = #xetile.wg_map{self.wg_map(result.shape)}}}"
        if self.random.random() < 0.4:
            c = self.free(self.load(result.shape, "f32"))
            result = result + c.array
            acc, kinds = f", {c.name}", f", {c.kind}"
        text = f"xetile.tile_mma {a.name}, {b.name}{acc}{attr} : {a.kind}, {b.kind}{kinds} -> RESULT"
        made = self.made(text, "f32", result)
        made.mapped = bool(attr)
        return self.clamped(made)

    def loop(self, value):
        """A loop that adds another value, and keeps elements small."""
        times = self.random.randint(1, 3)
        f = "f" if is_float(value.element) else "i"
        other = self.random.choice(
            [v for v in self.values if v.array.shape == value.array.shape and v.element == value.element]
        )
        carried, name = Value(self.name(), value.element, value.array), self.name()
        lines, self.lines = self.lines, []
        bound = self.splat(value, LIMIT)
        inner = len(self.values)
        total = self.made(f"arith.add{f} {carried.name}, {other.name} : RESULT", value.element, value.array)
        op = "minnumf" if f == "f" else "minsi"
        least = self.made(f"arith.{op} {total.name}, {bound} : RESULT", value.element, value.array)
        if self.random.random() < 0.5:
            least = self.convert(least)
        body, self.lines = self.lines, lines
        del self.values[inner:]
        found = value.array
        for _ in range(times):
            found = np.minimum(found + other.array, LIMIT)
        self.emit(f"{name}n = arith.constant {times} : index")
        result = Value(name, value.element, found)
        self.emit(f"{name} = scf.for {name}i = %c0 to {name}n step %c1 iter_args({carried.name} = {value.name})")
        self.emit(f"  -> ({value.kind}) {{")
        self.lines += body
        self.emit(f"scf.yield {least.name} : {value.kind}")
        self.emit("}")
        self.values.append(result)
        return self.clamped(result)

    def branch(self, value):
        """A value that is changed if a number of the workgroup says so."""
        taken = self.random.random() < 0.5
        name, condition, other = self.name(), self.name(), self.name()
        f = "f" if is_float(value.element) else "i"
        self.emit(f"{condition} = arith.cmpi {'eq' if taken else 'ne'}, %block, %c0 : index")
        self.emit(f"{name} = scf.if {condition} -> ({value.kind}) {{")
        self.emit(f"{other} = arith.add{f} {value.name}, {value.name} : {value.kind}")
        self.emit(f"scf.yield {other} : {value.kind}")
        self.emit("} else {")
        self.emit(f"scf.yield {value.name} : {value.kind}")
        self.emit("}")
        result = Value(name, value.element, value.array * 2 if taken else value.array)
        self.values.append(result)
        return self.clamped(result)

    def text(self):
        arguments = ", ".join(
            f"%arg{i}: memref<{a.shape[0]}x{a.shape[1]}x{e}>"
            for i, (a, e) in enumerate(zip(self.arguments, self.elements))
        )
        body = "\n".join(self.lines)
        return (
            f"gpu.module @m {{\ngpu.func @k({arguments}) kernel {{\n%c0 = arith.constant 0 : index\n"
            f"%c1 = arith.constant 1 : index\n%block = gpu.block_id x\n{body}\ngpu.return\n}}\n}}"
        )


REMAPS = ("elementwise", "cast", "convert", "product")
STEPS = (*REMAPS, "elementwise", "transpose", "reduce", "broadcast", "loop", "branch")
VECTORS = (
    "vector_transpose",
    "shape_cast",
    "vector_reduce",
    "vector_broadcast",
    "constant",
    "number",
    "total",
    "convert",
)


def program(random, steps=STEPS, most=6):
    """A random program of up to `most` steps."""
    made = Program(random, random.choice([1, 2, 4, 8]))
    shape = (random.choice(SIZES), random.choice(SIZES))
    value = made.load(shape, random.choice(list(DTYPES)))
    for _ in range(random.randint(1, most)):
        step = random.choice(steps)
        value = made.cast(value, random.choice(list(DTYPES))) if step == "cast" else getattr(made, step)(value)
        if random.random() < 0.2:
            made.store(value)
    made.store(value)
    return made
