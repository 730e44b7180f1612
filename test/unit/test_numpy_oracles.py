"""Random kernels whose results numpy computes from the documents alone, without a function of this project."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import pytest
from effort import some
from passes.test_dpas_mx import kernel as product
from passes.test_dpas_mx import pairs

import xegpu_py
import xegpu_py.language as xl
from xegpu_py.upstream import import_upstream

SEEDS = some(range(40))

Numbers: TypeAlias = np.ndarray

MAPS = some(range(40), 1 / 4)


def elements_of(layout: list[int], data: list[int], shape: tuple[int, int], lane: int) -> np.ndarray:
    """The rows and columns of a lane's elements in a block: the wi_data of each round, in order (RFC, sg_map)."""
    row, column = divmod(lane, layout[1])
    rows = [r for r in range(shape[0]) if r // data[0] % layout[0] == row]
    columns = [c for c in range(shape[1]) if c // data[1] % layout[1] == column]
    return np.array(np.meshgrid(rows, columns, indexing="ij"))


@pytest.mark.parametrize("seed", MAPS)
def test_fragments(seed: int) -> None:
    """A lane stores what it loaded by another map. Beyond the arrays zeros are read, and writes are dropped."""
    rng = np.random.default_rng(seed)
    layout = [[1, 16], [2, 8], [4, 4], [8, 2], [16, 1]][rng.integers(5)]
    load, store = ([1, int(n)] for n in rng.permutation([1, 2]))
    shape = (layout[0] * int(rng.choice([1, 2])), layout[1] * 2)
    vector = f"vector<{shape[0] // layout[0]}x{shape[1] // layout[1]}xi32>"
    starts = rng.integers(-6, 12, (2, 2))
    maps = [f"#xegpu.sg_map<wi_layout = {layout}, wi_data = {data}>" for data in (load, store)]
    descs = [f"!xegpu.tensor_desc<{shape[0]}x{shape[1]}xi32, {sg_map}>" for sg_map in maps]
    text = f"""gpu.module @k {{ gpu.func @f(%a: memref<16x32xi32>, %o: memref<16x32xi32>) kernel {{
      %s = xegpu.create_nd_tdesc %a[{starts[0, 0]}, {starts[0, 1]}] : memref<16x32xi32> -> {descs[0]}
      %v = xegpu.load_nd %s : {descs[0]} -> {vector}
      %t = xegpu.create_nd_tdesc %o[{starts[1, 0]}, {starts[1, 1]}] : memref<16x32xi32> -> {descs[1]}
      xegpu.store_nd %v, %t : {vector}, {descs[1]}
      gpu.return
    }} }}"""
    array, out = rng.integers(1, 1000, (16, 32)).astype(np.int32), np.full((16, 32), -1, np.int32)
    xegpu_py.compile(text, engine="both", cache="off")(array, out, block=16)
    wide = np.pad(array, 40)
    expected = np.pad(np.full((16, 32), -1, np.int32), 40)
    for lane in range(16):
        rows, columns = elements_of(layout, load, shape, lane) + 40 + starts[0][:, None, None]
        to_rows, to_columns = elements_of(layout, store, shape, lane) + 40 + starts[1][:, None, None]
        expected[to_rows, to_columns] = wide[rows, columns]
    np.testing.assert_array_equal(out, expected[40:56, 40:72])


@pytest.mark.parametrize("seed", SEEDS)
def test_matrices_in_shared_local_memory(seed: int) -> None:
    """Blocks are contiguous and follow each other by rows, or by columns with the strides of columns."""
    rng = np.random.default_rng(seed)
    block = 8 * int(rng.integers(1, 3)), int(rng.choice([8, 16]))
    shape = tuple(n * int(rng.integers(1, 4)) for n in block)
    part = tuple(int(rng.integers(1, n // 8 + 1)) * 8 for n in shape)
    start = [int(rng.integers(0, n - p + 1)) for n, p in zip(shape, part)]
    by_columns = bool(rng.random() < 0.5)
    stride = f"stride = [1, {shape[0]}], " * by_columns
    size, (rows, columns) = shape[0] * shape[1], np.indices(shape)
    (i, r), (j, c) = np.divmod(rows, block[0]), np.divmod(columns, block[1])
    if by_columns:
        place = (j * (shape[0] // block[0]) + i) * block[0] * block[1] + c * block[0] + r
    else:
        place = (i * (shape[1] // block[1]) + j) * block[0] * block[1] + r * block[1] + c
    blocked = f"!xegpu.mem_desc<{shape[0]}x{shape[1]}xf32, #xegpu.mem_layout<{stride}block = {list(block)}>>"
    plain = f"!xegpu.mem_desc<{shape[0]}x{shape[1]}xf32>"
    matrix, read = f"{shape[0]}x{shape[1]}xf32", f"{part[0]}x{part[1]}xf32"
    text = f"""gpu.module @m {{ gpu.func @k(%a: memref<{matrix}>, %o: memref<{matrix}>, %w: memref<{read}>) kernel {{
      %d = xegpu.create_nd_tdesc %a : memref<{matrix}> -> !xegpu.tensor_desc<{matrix}>
      %v = xegpu.load_nd %d[0, 0] : !xegpu.tensor_desc<{matrix}> -> vector<{matrix}>
      %slm = memref.alloca() : memref<{4 * size}xi8, 3>
      %b = xegpu.create_mem_desc %slm : memref<{4 * size}xi8, 3> -> {blocked}
      xegpu.store_matrix %v, %b[0, 0] : vector<{matrix}>, {blocked}
      %p = xegpu.create_mem_desc %slm : memref<{4 * size}xi8, 3> -> {plain}
      %x = xegpu.load_matrix %p[0, 0] : {plain} -> vector<{matrix}>
      %y = xegpu.load_matrix %b[{start[0]}, {start[1]}] : {blocked} -> vector<{read}>
      %e = xegpu.create_nd_tdesc %o : memref<{matrix}> -> !xegpu.tensor_desc<{matrix}>
      xegpu.store_nd %x, %e[0, 0] : vector<{matrix}>, !xegpu.tensor_desc<{matrix}>
      %f = xegpu.create_nd_tdesc %w : memref<{read}> -> !xegpu.tensor_desc<{read}>
      xegpu.store_nd %y, %f[0, 0] : vector<{read}>, !xegpu.tensor_desc<{read}>
      gpu.return
    }} }}"""
    a, memory, found = rng.random(shape, np.float32), np.zeros(shape, np.float32), np.zeros(part, np.float32)
    xegpu_py.compile(import_upstream(text, level="subgroup"), engine="both", cache="off")(a, memory, found)
    np.testing.assert_array_equal(memory.ravel()[place], a)
    np.testing.assert_array_equal(found, a[start[0] : start[0] + part[0], start[1] : start[1] + part[1]])


FORMATS = {"f8E5M2": (5, 2, "float8_e5m2"), "f8E4M3FN": (4, 3, "float8_e4m3fn"), "f4E2M1FN": (2, 1, "float4_e2m1fn")}
"""The bits of exponents and mantissas (OCP, microscaling formats), and names of types of numpy."""


def decoded(bits: np.ndarray, exponent: int, mantissa: int) -> np.ndarray:
    """The numbers that bit patterns are; none of them is infinite or NaN."""
    bias, sign = (1 << exponent - 1) - 1, bits >> exponent + mantissa
    e, m = bits >> mantissa & (1 << exponent) - 1, bits & (1 << mantissa) - 1
    magnitude = np.where(e > 0, (1 << mantissa) + m, m) * 2.0 ** (np.maximum(e, 1) - bias - mantissa)
    return np.where(sign == 1, -magnitude, magnitude)


@pytest.mark.parametrize("seed", SEEDS)
def test_scaled_products(seed: int) -> None:
    """Sums of a few bits, which no order rounds: each 32 elements along K have one scale, 2 to the power e - 127."""
    rng = np.random.default_rng(seed)
    m, n, k = int(rng.integers(1, 17)), 16 * int(rng.integers(1, 3)), 64 * int(rng.integers(1, 3))
    kind = str(rng.choice(list(FORMATS)))
    other = kind if kind == "f4E2M1FN" else str(rng.choice([name for name in FORMATS if name != "f4E2M1FN"]))
    bits, numbers = [], []
    for name, shape in ((kind, (m, k)), (other, (k, n))):
        exponent, mantissa, dtype = FORMATS[name]
        # Exponents next to the bias, so that all products and their sums have few bits.
        e = rng.integers((1 << exponent - 1) - 1, (1 << exponent - 1) + 1, shape) << mantissa
        pattern = rng.integers(0, 2, shape) << exponent + mantissa | e | rng.integers(0, 1 << mantissa, shape)
        pattern[rng.random(shape) < 0.2] = rng.choice([0, 1 << exponent + mantissa])
        numbers.append(decoded(pattern, exponent, mantissa))
        bits.append(pattern.astype(np.uint8).view(getattr(ml_dtypes, dtype)))
    scales = [rng.integers(125, 130, shape) for shape in ((m, k // 32), (k // 32, n))]
    c = rng.integers(-99, 99, (m, n)).astype(np.float32)
    a = numbers[0] * np.repeat(2.0 ** (scales[0] - 127), 32, axis=1)
    b = numbers[1] * np.repeat(2.0 ** (scales[1] - 127), 32, axis=0)
    given = [pairs(each, axis) for axis, each in ((1, bits[0]), (0, bits[1]))] if kind == "f4E2M1FN" else bits
    given += [each.astype(np.uint8).view(ml_dtypes.float8_e8m0fnu) for each in scales]
    out = c.copy()
    text = product(m, n, k, kind, other, "f32", ("sa", "sb"), True)
    xegpu_py.compile(text, target="cri", registers=256, engine="both", cache="off")(*given, out)
    np.testing.assert_array_equal(out, (a @ b + c).astype(np.float32))


@xegpu_py.jit
def through_tables(TO, FROM, ORDER, SIZES, N: xl.constexpr):
    group, i = xl.program_id(0), xl.arange(0, N)
    source = xl.load(ORDER + group)
    size = xl.load(SIZES + source)
    here = xl.load(FROM + source).to(xl.pointer_type(xl.float32))
    there = xl.load(TO + group).to(xl.pointer_type(xl.int32))
    x = xl.load(here + (size - 1 - i), mask=i < size, other=-1.0)
    xl.store(there + 2 * i, x.to(xl.int32) + group, mask=i % 3 != 1)


@pytest.mark.each_value
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("count", [1, 4])
def test_tables_of_pointers(seed: int, count: int) -> None:
    """Arrays of several sizes, of which a table has some twice, by addresses that other arrays choose."""
    rng = np.random.default_rng(seed)
    arrays = [rng.integers(0, 1 << 20, rng.integers(1, 65)).astype(np.float32) for _ in range(rng.integers(1, 5))]
    table = [arrays[n] for n in rng.integers(0, len(arrays), rng.integers(1, 7))]
    order = rng.integers(0, len(table), rng.integers(1, 9)).astype(np.int32)
    sizes = np.array([len(each) for each in table], np.int32)
    out = [np.full(128, -7, np.int32) for _ in order]
    kernel = through_tables.with_options(engine="both", check="races")
    kernel[len(order)](xegpu_py.PointerTable(out), xegpu_py.PointerTable(table), order, sizes, N=64, num_warps=count)
    for group, source in enumerate(order):
        reverse = np.full(64, -1, np.int32)
        reverse[: sizes[source]] = table[source][::-1]
        expected, i = np.full(128, -7, np.int32), np.arange(64)
        expected[2 * i[i % 3 != 1]] = (reverse + group)[i % 3 != 1]
        np.testing.assert_array_equal(out[group], expected)


class Calls:
    """Random functions of two integers, of which later ones call earlier ones, and what Python says they return."""

    def __init__(self, rng: np.random.Generator, element: str) -> None:
        """Write the functions, for numbers or for vectors of them."""
        self.rng, self.type, self.texts = rng, element, []
        self.functions: list[tuple[int, Callable[[Numbers, Numbers], list[Numbers]]]] = []
        for _ in range(int(rng.integers(1, 6))):
            self.functions.append(self.function())

    def function(self) -> tuple[int, Callable[[Numbers, Numbers], list[Numbers]]]:
        """The number of results of another function, and the function."""
        number, count = len(self.functions), int(self.rng.integers(1, 4))
        lines: list[str] = []
        steps: list[Callable[[list[Numbers]], list[Numbers]]] = []
        names = ["%a", "%b"]
        for _ in range(int(self.rng.integers(1, 6))):
            x, y = (int(n) for n in self.rng.integers(0, len(names), 2))
            self.step(f"%v{len(lines)}", names, x, y, lines, steps)
        chosen = [int(n) for n in self.rng.integers(0, len(names), count)]
        types = ", ".join([self.type] * count)
        # A function may return one of its operands, or one value twice.
        body = "\n".join(f"    {line}" for line in lines)
        self.texts.append(
            f"  func.func @f{number}(%a: {self.type}, %b: {self.type}) -> ({types}) {{\n{body}\n"
            f"    func.return {', '.join(names[n] for n in chosen)} : {types}\n  }}"
        )

        def call(a: Numbers, b: Numbers) -> list[Numbers]:
            values = [a, b]
            for step in steps:
                values += step(values)
            return [values[n] for n in chosen]

        return count, call

    def step(self, to: str, names: list[str], x: int, y: int, lines: list[str], steps: list[Any]) -> None:
        """One op, or a call in a line, a loop or a branch."""
        kind, left, right = self.type, names[x], names[y]
        way = str(self.rng.choice(["addi", "subi", "muli", "xori", "call", "loop", "branch"]))
        if not self.functions or way in ("addi", "subi", "muli", "xori"):
            way = way if way in ("addi", "subi", "muli", "xori") else "addi"
            operation = {"addi": np.add, "subi": np.subtract, "muli": np.multiply, "xori": np.bitwise_xor}[way]
            lines.append(f"{to} = arith.{way} {left}, {right} : {kind}")
            steps.append(lambda values: [operation(values[x], values[y])])
            names.append(to)
            return
        callee = int(self.rng.integers(0, len(self.functions)))
        count, function = self.functions[callee]
        types = ", ".join([kind] * count)
        call = f"func.call @f{callee}({{}}, {{}}) : ({kind}, {kind}) -> ({types})"
        results = to if count == 1 else f"{to}:{count}"
        parts = [to] if count == 1 else [f"{to}#{i}" for i in range(count)]
        if way == "call":
            lines.append(f"{results} = {call.format(left, right)}")
            steps.append(lambda values: function(values[x], values[y]))
            names += parts
        elif way == "loop":
            rounds = int(self.rng.integers(0, 4))
            inner = f"%c{to[1:]}" if count == 1 else f"%c{to[1:]}:{count}"
            first = inner.partition(":")[0] + "#0" * (count > 1)
            again = call.format(f"%x{to[1:]}", right)
            lines += [f"%{n}{to[1:]} = arith.constant {v} : index" for n, v in (("l", 0), ("u", rounds), ("s", 1))]
            lines.append(
                f"{to} = scf.for %i{to[1:]} = %l{to[1:]} to %u{to[1:]} step %s{to[1:]} iter_args(%x{to[1:]} = {left}) "
                f"-> ({kind}) {{\n      {inner} = {again}\n      scf.yield {first} : {kind}\n    }}"
            )

            def repeated(values: list[Numbers]) -> list[Numbers]:
                carried = values[x]
                for _ in range(rounds):
                    carried = function(carried, values[y])[0]
                return [carried]

            steps.append(repeated)
            names.append(to)
        else:
            taken = bool(self.rng.random() < 0.5)
            inner = f"%c{to[1:]}" if count == 1 else f"%c{to[1:]}:{count}"
            last = inner.partition(":")[0] + f"#{count - 1}" * (count > 1)
            lines.append(f"%t{to[1:]} = arith.constant {str(taken).lower()}")
            lines.append(
                f"{to} = scf.if %t{to[1:]} -> ({kind}) {{\n      {inner} = {call.format(right, left)}\n"
                f"      scf.yield {last} : {kind}\n    }} else {{\n      scf.yield {right} : {kind}\n    }}"
            )
            steps.append(lambda values: [function(values[y], values[x])[-1] if taken else values[y]])
            names.append(to)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("element", ["i32", "vector<16xi32>"])
def test_calls(seed: int, element: str) -> None:
    """Functions with several results, called in lines, loops and branches, by kernels and by each other."""
    calls = Calls(np.random.default_rng(seed), element)
    lines, results = [], []
    for number, (results_of_one, _) in enumerate(calls.functions):
        types = ", ".join([element] * results_of_one)
        held = [f"%r{number}"] if results_of_one == 1 else [f"%r{number}#{i}" for i in range(results_of_one)]
        name = f"%r{number}" + f":{results_of_one}" * (results_of_one > 1)
        lines.append(f"{name} = func.call @f{number}(%x, %y) : ({element}, {element}) -> ({types})")
        results += held
    count = len(results)
    if element == "i32":
        load = "%x = memref.load %a[%t] : memref<16xi32>\n    %y = memref.load %b[%t] : memref<16xi32>"
        stores = [f"memref.store {r}, %o[%c{i}, %t] : memref<{count}x16xi32>" for i, r in enumerate(results)]
        attributes, block = "attributes {xegpu.subgroup_size = 16 : i32}", 16
    else:
        load = "%x = vector.load %a[%c0] : memref<16xi32>, {0}\n    %y = vector.load %b[%c0] : memref<16xi32>, {0}"
        load = load.format(element)
        stores = [
            f"vector.store {r}, %o[%c{i}, %c0] : memref<{count}x16xi32>, {element}" for i, r in enumerate(results)
        ]
        attributes, block = "", 1
    constants = "\n    ".join(f"%c{i} = arith.constant {i} : index" for i in range(count))
    text = "\n".join([
        "gpu.module @m {", *calls.texts,
        f"  gpu.func @k(%a: memref<16xi32>, %b: memref<16xi32>, %o: memref<{count}x16xi32>) kernel {attributes} {{",
        f"    %t = gpu.thread_id x\n    {constants}\n    {load}",
        *(f"    {line}" for line in lines),
        *(f"    {store}" for store in stores), "    gpu.return\n  }\n}",
    ])  # fmt: skip
    a, b = np.random.default_rng(seed + 1000).integers(-(2**31), 2**31, (2, 16)).astype(np.int32)
    for engine in ("both", "reference"):
        out = np.zeros((count, 16), np.int32)
        xegpu_py.compile(text, engine=engine, cache="off")(a, b, out, block=block)
        np.testing.assert_array_equal(out, [row for _, function in calls.functions for row in function(a, b)])
