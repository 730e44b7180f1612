"""`index` has 64 bits, however few of them a value has in registers: arithmetic against Python's integers."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from effort import examples
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import xegpu_py
from xegpu_py.ir.diagnostics import DiagnosticError

LANES = 16
BITS = 64


def signed(n: int, bits: int = BITS) -> int:
    n &= (1 << bits) - 1
    return n - (1 << bits) if n >> (bits - 1) else n


def unsigned(n: int, bits: int = BITS) -> int:
    return n & ((1 << bits) - 1)


def toward_zero(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def of_unsigned(op: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda a, b: op(unsigned(a), unsigned(b))


BINARY: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "maxs": max,
    "mins": min,
    "maxu": of_unsigned(max),
    "minu": of_unsigned(min),
    "divs": toward_zero,
    "divu": of_unsigned(lambda a, b: a // b),
    "floordivs": lambda a, b: a // b,
    "ceildivs": lambda a, b: -(-a // b),
    "ceildivu": of_unsigned(lambda a, b: -(-a // b)),
    "rems": lambda a, b: a - b * toward_zero(a, b),
    "remu": of_unsigned(lambda a, b: a % b),
}
SHIFTS: dict[str, Callable[[int, int], int]] = {
    "shl": lambda a, n: a << n,
    "shrs": lambda a, n: a >> n,
    "shru": lambda a, n: unsigned(a) >> n,
}
ARITH = {
    "add": "addi", "sub": "subi", "mul": "muli", "and": "andi", "or": "ori", "xor": "xori", "maxs": "maxsi",
    "mins": "minsi", "maxu": "maxui", "minu": "minui", "divs": "divsi", "divu": "divui", "floordivs": "floordivsi",
    "ceildivs": "ceildivsi", "ceildivu": "ceildivui", "rems": "remsi", "remu": "remui", "shl": "shli", "shrs": "shrsi",
    "shru": "shrui",
}  # fmt: skip
COMPARISONS: dict[str, Callable[[int, int], int]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: a < b,
    "sge": lambda a, b: a >= b,
    "ult": of_unsigned(lambda a, b: a < b),
    "uge": of_unsigned(lambda a, b: a >= b),
}

RANGES = ((-(1 << 63), (1 << 63) - 1), (0, (1 << 40) - 1), (-(1 << 31), (1 << 31) - 1), (0, (1 << 31) - 1), (0, 255))
"""The ranges of operands, some of which are known to fit in 32 bits."""


def between(low: int, high: int, value: str, kind: str, name: str) -> str:
    """Ops that bring a value into a range, and call it %name."""
    if (low, high) == RANGES[0]:
        return f"%{name} = arith.addi {value}, %zero : {kind}\n"
    vector = kind.startswith("vector")
    bounds = [f"dense<{n}> : {kind}" if vector else f"{n} : {kind}" for n in (low, high)]
    return f"""
        %{name}low = arith.constant {bounds[0]}
        %{name}high = arith.constant {bounds[1]}
        %{name}least = arith.maxsi {value}, %{name}low : {kind}
        %{name} = arith.minsi %{name}least, %{name}high : {kind}
    """


def program(ranges: tuple[tuple[int, int], tuple[int, int]], vector: bool) -> str:
    """A kernel that computes all ops of two indices, which are in the ranges, or of vectors of them."""
    kind = f"vector<{LANES}xindex>" if vector else "index"
    data = f"vector<{LANES}xi64>" if vector else "i64"
    ops = [f"arith.{ARITH[name]} %a, %b : {kind}" for name in BINARY]
    ops += [f"arith.{ARITH[name]} %a, %n : {kind}" for name in SHIFTS]
    if not vector:
        ops += [f"index.{name} %a, %b" for name in BINARY] + [f"index.{name} %a, %n" for name in SHIFTS]
    condition = f"vector<{LANES}xi1>, {kind}" if vector else kind
    ops += [f"arith.select %t{i}, %a, %b : {condition}" for i in range(len(COMPARISONS))]
    lines = [f"%t{i} = arith.cmpi {name}, %a, %b : {kind}" for i, name in enumerate(COMPARISONS)]
    desc = f"!xegpu.tensor_desc<{LANES}xi64, #xegpu.tdesc_attr<boundary_check = false>>"
    count = "%c0" if vector else "%i"
    for k, op in enumerate(ops):
        lines += [
            f"%r{k} = {op}",
            f"%s{k} = arith.index_cast %r{k} : {kind} to {data}",
            f"%k{k} = arith.constant {k} : index",
        ]
        if vector:
            lines += [
                f"%row{k} = memref.subview %out[{k}, 0] [1, {LANES}] [1, 1] : memref<{len(ops)}x{LANES}xi64> to "
                f"memref<{LANES}xi64, strided<[1], offset: {k * LANES}>>",
                f"%d{k} = xegpu.create_nd_tdesc %row{k}[0] {{mode = vc}} : "
                f"memref<{LANES}xi64, strided<[1], offset: {k * LANES}>> -> {desc}",
                f"xegpu.store_nd %s{k}, %d{k} {{mode = vc}} : {data}, {desc}",
            ]
        else:
            lines.append(f"memref.store %s{k}, %out[%k{k}, {count}] : memref<{len(ops)}x{LANES}xi64>")
    loads = "\n".join(
        f"%{n}d = xegpu.create_nd_tdesc %{n}m[0] {{mode = vc}} : memref<{LANES}xi64> -> {desc}\n"
        f"%{n}v = xegpu.load_nd %{n}d {{mode = vc}} : {desc} -> {data}"
        if vector
        else f"%{n}v = memref.load %{n}m[%i] : memref<{LANES}xi64>"
        for n in ("a", "b", "n")
    )
    casts = "\n".join(f"%{n}i = arith.index_cast %{n}v : {data} to {kind}" for n in ("a", "b", "n"))
    body = loads + "\n" + casts + "\n"
    body += between(*ranges[0], "%ai", kind, "a") + between(*ranges[1], "%bi", kind, "b")
    body += between(0, 63, "%ni", kind, "n") + "\n".join(lines)
    if not vector:
        body = f"scf.for %i = %c0 to %c16 step %c1 {{\n{body}\n}}"
    zero = f"dense<0> : {kind}" if vector else "0 : index"
    return f"""
    gpu.module @kernels {{
      gpu.func @k(%am: memref<{LANES}xi64>, %bm: memref<{LANES}xi64>, %nm: memref<{LANES}xi64>,
                  %out: memref<{len(ops)}x{LANES}xi64>) kernel {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c16 = arith.constant 16 : index
        %zero = arith.constant {zero}
        {body}
        gpu.return
      }}
    }}
    """


_KERNELS: dict[object, xegpu_py.CompiledKernel] = {}


def compiled(target: str, ranges, vector: bool) -> xegpu_py.CompiledKernel:
    key = target, ranges, vector
    if key not in _KERNELS:
        _KERNELS[key] = xegpu_py.compile(program(ranges, vector), target=target, engine="both", cache="off")
    return _KERNELS[key]


def expected(a: int, b: int, n: int, vector: bool) -> list[int]:
    found = [op(a, b) for op in BINARY.values()] + [op(a, n) for op in SHIFTS.values()]
    if not vector:
        found += found
    found += [a if op(a, b) else b for op in COMPARISONS.values()]
    return [signed(x) for x in found]


EDGES = sorted(
    {signed(s * (1 << k) + d) for k in (0, 1, 8, 31, 32, 33, 40, 62, 63) for d in (-1, 0, 1) for s in (-1, 1)}
)
numbers = st.one_of(st.sampled_from(EDGES), st.integers(*RANGES[0]), st.integers(-(1 << 34), 1 << 34))
PAIRS = [(RANGES[0], RANGES[0]), (RANGES[1], RANGES[2]), (RANGES[2], RANGES[1]), (RANGES[2], RANGES[2]),
         (RANGES[3], RANGES[4]), (RANGES[0], RANGES[4])]  # fmt: skip


@pytest.mark.each_value
@pytest.mark.parametrize("vector", [False, True], ids=["scalar", "vector"])
@pytest.mark.parametrize("ranges", PAIRS, ids=lambda r: f"{r[0][1].bit_length()}-{r[1][1].bit_length()}")
@pytest.mark.parametrize("target", ["pvcxt", "dg2"])
def test_arithmetic_is_that_of_integers_of_64_bits(target, ranges, vector):
    kernel = compiled(target, ranges, vector)

    # Lanes are independent, so that shrinking finds nothing that the message does not say.
    @settings(max_examples=examples(6), suppress_health_check=[HealthCheck.too_slow], phases=[Phase.generate])
    @given(*(st.lists(kind, min_size=LANES, max_size=LANES) for kind in (numbers, numbers, st.integers(0, 63))))
    def check(a, b, n):
        # Half of the lanes have the ends of the ranges, as random numbers hardly do together.
        for lane, pair in enumerate(itertools.product(ranges[0], (*ranges[1], -1, 1))):
            a[lane], b[lane] = pair
        a, b = ([min(max(x, low), high) for x in values] for values, (low, high) in zip((a, b), ranges))
        b = [y or 1 for y in b]
        # The one quotient that 64 bits do not hold.
        a = [x + (x == RANGES[0][0] and y == -1) for x, y in zip(a, b)]
        out = np.zeros((len(expected(1, 1, 1, vector)), LANES), np.int64)
        kernel(*(np.array(x, np.int64) for x in (a, b, n)), out)
        wanted = np.array([expected(*xs, vector) for xs in zip(a, b, n)], np.int64).T
        wrong = np.argwhere(out != wanted)
        assert not len(wrong), [(i, a[j], b[j], n[j], out[i, j], wanted[i, j]) for i, j in wrong[:5]]

    check()


def test_negative_elements_of_constants():
    """A constant vector of indices has signs, which the bindings do not show."""
    text = """
gpu.module @k {
  gpu.func @f(%a: memref<8xi32>, %out: memref<4xi32>, %below: memref<4xi8>) kernel {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %offsets = arith.constant dense<[-1, 3, -4, 2]> : vector<4xindex>
    %zero = arith.constant dense<0> : vector<4xindex>
    %negative = arith.cmpi slt, %offsets, %zero : vector<4xindex>
    %byte = arith.extui %negative : vector<4xi1> to vector<4xi8>
    vector.store %byte, %below[%c0] : memref<4xi8>, vector<4xi8>
    %all = arith.constant dense<true> : vector<4xi1>
    %none = arith.constant dense<0> : vector<4xi32>
    %x = vector.gather %a[%c4] [%offsets], %all, %none
      : memref<8xi32>, vector<4xindex>, vector<4xi1>, vector<4xi32> into vector<4xi32>
    vector.store %x, %out[%c0] : memref<4xi32>, vector<4xi32>
    gpu.return
  }
}
"""
    for engine in ("both", "reference"):
        out, below = np.zeros(4, np.int32), np.zeros(4, np.int8)
        xegpu_py.compile(text, engine=engine)(np.arange(8, dtype=np.int32), out, below)
        assert (out.tolist(), below.tolist()) == ([3, 7, 0, 6], [1, 0, 1, 0])


@pytest.mark.parametrize("simt", [False, True])
def test_vectors_of_indices_in_memory(simt):
    """Memory has indices as integers of 64 bits."""
    text = f"""
gpu.module @k {{
  gpu.func @f(%a: memref<16x4xindex>, %out: memref<16x4xindex>, %one: memref<index>) kernel
      {"attributes {xegpu.subgroup_size = 16 : i32}" * simt} {{
    %c0 = arith.constant 0 : index
    %c15 = arith.constant 15 : index
    %at = gpu.{"thread" if simt else "block"}_id x
    %x = vector.load %a[%at, %c0] : memref<16x4xindex>, vector<4xindex>
    %y = arith.muli %x, %x : vector<4xindex>
    vector.store %y, %out[%at, %c0] : memref<16x4xindex>, vector<4xindex>
    %up = arith.subi %c15, %at : index
    %mask = arith.constant dense<[true, false, false, true]> : vector<4xi1>
    %offsets = arith.constant dense<[3, 2, 1, 0]> : vector<4xindex>
    %z = vector.gather %a[%up, %c0] [%offsets], %mask, %y
      : memref<16x4xindex>, vector<4xindex>, vector<4xi1>, vector<4xindex> into vector<4xindex>
    vector.scatter %out[%at, %c0] [%offsets], %mask, %z
      : memref<16x4xindex>, vector<4xindex>, vector<4xi1>, vector<4xindex>
    %last = arith.cmpi eq, %at, %c15 : index
    scf.if %last {{
      %w = vector.extract %y[0] : index from vector<4xindex>
      %v = memref.load %a[%at, %c0] : memref<16x4xindex>
      %sum = arith.addi %v, %w : index
      %all = vector.broadcast %sum : index to vector<index>
      vector.store %all, %one[] : memref<index>, vector<index>
    }}
    gpu.return
  }}
}}
"""
    a = np.arange(64).reshape(16, 4) * (1 << 24) - 7
    wanted = a * a
    wanted[:, 3], wanted[:, 0] = a[::-1, 3], a[::-1, 0]
    for engine in ("both", "reference"):
        out, one = np.zeros((16, 4), np.int64), np.array(0)
        launch = {"block": 16} if simt else {"grid": 16}
        xegpu_py.compile(text, engine=engine)(a, out, one, **launch)
        np.testing.assert_array_equal(out, wanted)
        assert one == a[15, 0] * a[15, 0] + a[15, 0]


@pytest.mark.each_value
@pytest.mark.parametrize("index", [1 << 27, 1 << 28, 1 << 29, (1 << 30) - 1, 1 << 30, -(1 << 30), 1 << 32, 1 << 40])
@pytest.mark.parametrize("element", ["i8", "f16", "f32", "f64"])
def test_indices_into_shared_local_memory_do_not_wrap_around(index, element):
    """Addresses there have 32 bits: 2^30 elements of f32 are 2^32 bytes."""
    text = f"""
    gpu.module @m {{
      gpu.func @k(%out: memref<1x{element}>, %i: index) kernel {{
        %c0 = arith.constant 0 : index
        %s = memref.alloc() : memref<16x{element}, 3>
        %x = memref.load %s[%i] : memref<16x{element}, 3>
        memref.store %x, %out[%c0] : memref<1x{element}>
        gpu.return
      }}
    }}"""
    kind = {"i8": np.int8, "f16": np.float16, "f32": np.float32, "f64": np.float64}[element]
    with pytest.raises(DiagnosticError, match="shared local memory, which has 1024 bytes"):
        xegpu_py.compile(text, engine="interpreter", cache="off")(np.zeros(1, kind), index)
    items = text.replace(" kernel {", " kernel attributes {xegpu.subgroup_size = 16 : i32} {").replace(
        "%c0 = arith.constant 0 : index", "%c0 = gpu.thread_id x\n%j = arith.muli %c0, %i : index"
    )
    items = items.replace("%s[%i]", "%s[%j]").replace("memref<1x", "memref<2x")
    with pytest.raises(DiagnosticError, match="shared local memory, which has 1024 bytes"):
        xegpu_py.compile(items, engine="interpreter", cache="off")(np.zeros(2, kind), index, block=2)


@pytest.mark.each_value
@pytest.mark.parametrize("moves", [[1 << 27] * 64, [1 << 30] * 4, [1 << 40, 1 << 40], [1 << 40, -(1 << 40)], [1 << 62]])
@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("known", [False, True])
def test_moves_in_shared_local_memory_do_not_wrap_around(moves, element, known):
    """Places that scattered descriptors are moved to. The last move would lead back to the first elements."""
    total = sum(moves) * (int(element[1:]) // 8)
    moves = [*moves, 1 << 32] if total % (1 << 32) == 0 else moves
    desc = f"!xegpu.tensor_desc<16x{element}, #xegpu.tdesc_attr<memory_scope = slm, #xegpu.scattered>>"
    lines = []
    for i, move in enumerate(moves):
        lines.append(f"%n{i} = arith.constant {move} : index")
        delta = f"%n{i}" if known else f"%p{i}"
        lines.append(f"%p{i} = arith.muli %n{i}, %one : index")
        lines.append(f"%d{i} = vector.broadcast {delta} : index to vector<16xindex>")
        lines.append(f"%t{i + 1} = xegpu.update_offset %t{i}, %d{i} {{mode = vc}} : {desc}, vector<16xindex> -> {desc}")
    text = f"""
    gpu.module @m {{
      gpu.func @k(%out: memref<16x{element}>, %one: index) kernel {{
        %all = arith.constant dense<true> : vector<16xi1>
        %c0 = arith.constant 0 : index
        %step = vector.step : vector<16xindex>
        %s = memref.alloc() : memref<16x{element}, 3>
        %t0 = xegpu.create_tdesc %s, %step {{mode = vc}} : memref<16x{element}, 3>, vector<16xindex> -> {desc}
        {chr(10).join(lines)}
        %x = xegpu.load_gather %t{len(moves)}, %all {{mode = vc}} : {desc}, vector<16xi1> -> vector<16x{element}>
        vector.store %x, %out[%c0] : memref<16x{element}>, vector<16x{element}>
        gpu.return
      }}
    }}"""
    with pytest.raises(DiagnosticError, match="shared local memory, which has 1024 bytes"):
        xegpu_py.compile(text, engine="interpreter", cache="off")(np.zeros(16, f"int{element[1:]}"), 1)


def test_index_dialect_in_work_items() -> None:
    """Comparisons, arithmetic and casts of values that differ among the work items."""
    edges = np.array([0, -1, 1, 5, -7, 2**40, -(2**40), 2**63 - 1])
    a, b = (v.ravel() for v in np.meshgrid(edges, edges))
    count, lines = len(a), ""
    for i, name in enumerate((*COMPARISONS, "maxu", "sub")):
        lines += f"""
        %at{i} = index.constant {i}"""
        if name in COMPARISONS:
            lines += f"""
        %c{i} = index.cmp {name}(%x, %y)
        %r{i} = arith.index_castui %c{i} : i1 to index"""
        else:
            lines += f"""
        %w{i} = index.{name} %x, %y
        %n{i} = index.casts %w{i} : index to i32
        %r{i} = index.castu %n{i} : i32 to index"""
        lines += f"""
        memref.store %r{i}, %o[%at{i}, %t] : memref<8x{count}xindex>"""
    text = f"""gpu.module @m {{
      gpu.func @k(%a: memref<{count}xindex>, %b: memref<{count}xindex>, %o: memref<8x{count}xindex>) kernel
          attributes {{xegpu.subgroup_size = 16 : i32}} {{
        %t = gpu.thread_id x
        %x = memref.load %a[%t] : memref<{count}xindex>
        %y = memref.load %b[%t] : memref<{count}xindex>
        {lines}
        gpu.return
      }} }}"""
    found = np.zeros((8, count), np.int64)
    xegpu_py.compile(text, engine="both", cache="off")(a, b, found, block=count)
    for row, (name, function) in zip(found, (COMPARISONS | {n: BINARY[n] for n in ("maxu", "sub")}).items()):
        expected = [int(function(int(x), int(y))) for x, y in zip(a, b)]
        if name in BINARY:
            expected = [unsigned(n, 32) for n in expected]
        assert row.tolist() == expected, name


@pytest.mark.parametrize("factors", ["%t, %x", "%x, %t", "%t, %t", "%m, %x", "%t, %m"])
def test_products_of_128_bits(factors: str) -> None:
    """Ids and small constants have 32 bits in registers, and their products have both halves of 64."""
    text = f"""gpu.module @m {{ gpu.func @k(%a: memref<8xindex>, %o: memref<4x8xindex>) kernel {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %c3 = arith.constant 3 : index
        %m = arith.constant -5 : index
        %t = gpu.block_id x
        %x = memref.load %a[%t] : memref<8xindex>
        %l, %h = arith.mulsi_extended {factors} : index
        %ul, %uh = arith.mului_extended {factors} : index
        memref.store %l, %o[%c0, %t] : memref<4x8xindex>
        memref.store %h, %o[%c1, %t] : memref<4x8xindex>
        memref.store %ul, %o[%c2, %t] : memref<4x8xindex>
        memref.store %uh, %o[%c3, %t] : memref<4x8xindex>
        gpu.return }} }}"""
    x = np.array([0, 1, -1, 2**63 - 1, -(2**63), 2**31, -(2**40), 2**32 - 1])
    found = np.zeros((4, 8), np.int64)
    xegpu_py.compile(text, engine="both", cache="off")(x, found, grid=8)
    values = {"%t": range(8), "%x": x.tolist(), "%m": [-5] * 8}
    for i, (a, b) in enumerate(zip(*(values[f] for f in factors.split(", ")))):
        whole, positive = a * b, unsigned(a) * unsigned(b)
        expected = [signed(whole), signed(whole >> 64), signed(positive), signed(positive >> 64)]
        assert found[:, i].tolist() == expected, (a, b)


@pytest.mark.parametrize("terms", ["%u, %m", "%u, %u", "%t, %m", "%m, %t", "%u, %x", "%x, %m"])
def test_carry_of_64_bits(terms: str) -> None:
    """Terms that are negative and have 32 bits in registers are above 2^63 as unsigned numbers."""
    text = f"""gpu.module @m {{ gpu.func @k(%a: memref<8xindex>, %o: memref<8xindex>, %carry: memref<8xi32>) kernel {{
        %m = arith.constant -5 : index
        %t = gpu.block_id x
        %u = arith.subi %m, %t : index
        %x = memref.load %a[%t] : memref<8xindex>
        %sum, %over = arith.addui_extended {terms} : index, i1
        %wide = arith.extui %over : i1 to i32
        memref.store %sum, %o[%t] : memref<8xindex>
        memref.store %wide, %carry[%t] : memref<8xi32>
        gpu.return }} }}"""
    x = np.array([0, 1, -1, 2**63 - 1, -(2**63), 2**31, -(2**40), 2**32 - 1])
    found, carry = np.zeros(8, np.int64), np.zeros(8, np.int32)
    xegpu_py.compile(text, engine="both", cache="off")(x, found, carry, grid=8)
    values = {"%t": range(8), "%x": x.tolist(), "%m": [-5] * 8, "%u": [-5 - i for i in range(8)]}
    for i, (a, b) in enumerate(zip(*(values[f] for f in terms.split(", ")))):
        total = unsigned(a) + unsigned(b)
        assert (found[i], carry[i]) == (signed(total), total >> 64), (a, b)
