"""Every kind of atomic update of every element type: messages where there are some, else loops of compare and swap."""

import numpy as np
import pytest

import xegpu_py
from xegpu_py.runtime.host_arrays import DTYPES
from xegpu_py.visa.finalizer import GPUS

INTEGERS = ("addi", "muli", "maxs", "mins", "maxu", "minu", "andi", "ori", "xori", "assign")
FLOATS = ("addf", "mulf", "maximumf", "minimumf", "maxnumf", "minnumf", "assign")
PLACES = [0, 1, 2, 3, 0, 5, 6, 7, 8, 3, 10, 3, 12, 13, 14, 1]
OFF = 6
"""A lane that its mask disables."""

CASES = [(k, t) for t in ("i8", "i16", "i32", "i64") for k in INTEGERS]
CASES += [(k, t) for t in ("f16", "bf16", "f32", "f64", "f8E5M2", "f8E4M3FN") for k in FLOATS]


def kernel(cases, space):
    """A kernel that does each update on a row of its own."""
    functions = []
    for kind, t in cases:
        shared = ", 3" if space else ""
        desc = f"!xegpu.tensor_desc<16x{t}, #xegpu.tdesc_attr<{'memory_scope = slm, ' * bool(space)}#xegpu.scattered>>"
        mask = ", ".join(str(i != OFF).lower() for i in range(16))
        buffer = (
            f"memref.alloc() : memref<16x{t}, 3>" if space else f"memref.cast %m : memref<16x{t}> to memref<16x{t}>"
        )
        functions.append(f"""
  gpu.func @{kind}_{t}(%m: memref<16x{t}>, %values: memref<16x{t}>) kernel {{
    %all = arith.constant dense<true> : vector<16xi1>
    %line = vector.step : vector<16xindex>
    %mt = xegpu.create_tdesc %m, %line {{mode = vc}} : memref<16x{t}>, vector<16xindex>
      -> !xegpu.tensor_desc<16x{t}, #xegpu.scattered>
    %vt = xegpu.create_tdesc %values, %line {{mode = vc}} : memref<16x{t}>, vector<16xindex>
      -> !xegpu.tensor_desc<16x{t}, #xegpu.scattered>
    %v = xegpu.load_gather %vt, %all {{mode = vc}} : !xegpu.tensor_desc<16x{t}, #xegpu.scattered>, vector<16xi1>
      -> vector<16x{t}>
    %start = xegpu.load_gather %mt, %all {{mode = vc}} : !xegpu.tensor_desc<16x{t}, #xegpu.scattered>, vector<16xi1>
      -> vector<16x{t}>
    %buffer = {buffer}
    %bt = xegpu.create_tdesc %buffer, %line {{mode = vc}} : memref<16x{t}{shared}>, vector<16xindex> -> {desc}
    xegpu.store_scatter %start, %bt, %all {{mode = vc}} : vector<16x{t}>, {desc}, vector<16xi1>
    gpu.barrier
    %places = arith.constant dense<{PLACES}> : vector<16xindex>
    %mask = arith.constant dense<[{mask}]> : vector<16xi1>
    %lanes = xegpu.create_tdesc %buffer, %places {{mode = vc}} : memref<16x{t}{shared}>, vector<16xindex> -> {desc}
    %old = xegpu.atomic_rmw {kind}, %v, %lanes, %mask {{mode = vc}}
      : vector<16x{t}>, {desc}, vector<16xi1> -> vector<16x{t}>
    gpu.barrier
    %end = xegpu.load_gather %bt, %all {{mode = vc}} : {desc}, vector<16xi1> -> vector<16x{t}>
    xegpu.store_scatter %end, %mt, %all {{mode = vc}} : vector<16x{t}>,
      !xegpu.tensor_desc<16x{t}, #xegpu.scattered>, vector<16xi1>
    xegpu.store_scatter %old, %vt, %mask {{mode = vc}} : vector<16x{t}>,
      !xegpu.tensor_desc<16x{t}, #xegpu.scattered>, vector<16xi1>
    gpu.return
  }}""")
    return f"gpu.module @m {{{''.join(functions)}}}"


def combined(kind, a, b):
    dtype = a.dtype
    unsigned = np.dtype(f"u{dtype.itemsize}")
    functions = {
        "add": lambda: a + b, "mul": lambda: a * b, "and": lambda: a & b, "ori": lambda: a | b, "xor": lambda: a ^ b,
        "ass": lambda: b, "max": lambda: max(a, b), "min": lambda: min(a, b),
    }  # fmt: skip
    if kind in ("maxu", "minu"):
        return (max if kind == "maxu" else min)(a.view(unsigned), b.view(unsigned)).view(dtype)
    with np.errstate(over="ignore"):
        return dtype.type(functions[kind[:3]]())


def lanes_at(place):
    return [i for i, p in enumerate(PLACES) if p == place and i != OFF]


def updated(kind, before, values):
    after = before.copy()
    for place in set(PLACES):
        for i in lanes_at(place):
            after[place] = combined(kind, after[place], values[i])
    return after


@pytest.mark.each_value
@pytest.mark.parametrize("space", ["", "slm"])
@pytest.mark.parametrize("target", ["pvcxt", "dg2", "any"])
def test_every_kind_of_every_type(target, space):
    cases = [c for c in CASES if not (c[1] in ("f64", "f8E5M2") and target == "dg2")][:: 1 if target == "pvcxt" else 3]
    module = xegpu_py.parse(kernel(cases, space))
    rng = np.random.default_rng(5)
    for number, (kind, t) in enumerate(cases):
        dtype = np.dtype(DTYPES[t])
        if t[0] == "i":
            before, values = (rng.integers(-(2**63), 2**63 - 1, 16).astype(dtype) for _ in range(2))
        else:
            # Sums of four of these are exact in floats of 8 bits too.
            most = 1 if t.startswith("f8") else 4
            before, values = (rng.integers(-most, most + 1, 16).astype(dtype) for _ in range(2))
        engine = "both" if number % 8 == 0 else "interpreter"
        memory, old = before.copy(), values.copy()
        compiled = xegpu_py.compile(module, f"{kind}_{t}", target=target, engine=engine)
        compiled(memory, old)
        if kind == "assign":
            # Any of the lanes may be the last one to write.
            for place in set(PLACES):
                assert memory[place] in ([values[i] for i in lanes_at(place)] or [before[place]])
        else:
            np.testing.assert_array_equal(memory, updated(kind, before, values), err_msg=f"{kind} {t}")
        # Of lanes that share no place what was read is what was there; a lane that is off reads nothing.
        alone = [i for i, p in enumerate(PLACES) if PLACES.count(p) == 1 and i != OFF]
        np.testing.assert_array_equal(old[alone], before[[PLACES[i] for i in alone]], err_msg=f"{kind} {t}")
        assert old[OFF] == values[OFF] and memory[PLACES[OFF]] == before[PLACES[OFF]]


@pytest.mark.parametrize("kind", ["addf", "mulf", "maximumf", "minnumf"])
def test_every_pair_of_f8e4m3fn(kind):
    """Against the rationals that ml_dtypes' numbers are in f64; NaN is the canonical one."""
    text = f"""
    gpu.module @m {{ gpu.func @k(%m: memref<256x256xf8E4M3FN>, %v: memref<256x256xf8E4M3FN>) kernel {{
      %i = gpu.block_id x
      %c16 = arith.constant 16 : index
      %first = arith.muli %i, %c16 : index
      %all = arith.constant dense<true> : vector<16xi1>
      %line = vector.step : vector<16xindex>
      %start = vector.broadcast %first : index to vector<16xindex>
      %at = arith.addi %line, %start : vector<16xindex>
      %flat = memref.collapse_shape %m [[0, 1]] : memref<256x256xf8E4M3FN> into memref<65536xf8E4M3FN>
      %flat_v = memref.collapse_shape %v [[0, 1]] : memref<256x256xf8E4M3FN> into memref<65536xf8E4M3FN>
      %x = vector.load %flat_v[%first] : memref<65536xf8E4M3FN>, vector<16xf8E4M3FN>
      %t = xegpu.create_tdesc %flat, %at {{mode = vc}} : memref<65536xf8E4M3FN>, vector<16xindex>
        -> !xegpu.tensor_desc<16xf8E4M3FN, #xegpu.scattered>
      %old = xegpu.atomic_rmw {kind}, %x, %t, %all {{mode = vc}} : vector<16xf8E4M3FN>,
        !xegpu.tensor_desc<16xf8E4M3FN, #xegpu.scattered>, vector<16xi1> -> vector<16xf8E4M3FN>
      gpu.return
    }} }}"""
    every = np.arange(256, dtype=np.uint8).view(DTYPES["f8E4M3FN"])
    memory, values = (np.ascontiguousarray(a) for a in np.broadcast_arrays(every[:, None], every[None]))
    x, y = memory.astype(np.float64), values.astype(np.float64)
    xegpu_py.compile(text)(memory, values, grid=4096)
    functions = {"addf": np.add, "mulf": np.multiply, "maximumf": np.maximum, "minnumf": np.fmin}
    wanted = functions[kind](x, y).astype(DTYPES["f8E4M3FN"])
    number = ~np.isnan(wanted.astype(np.float32))
    if kind in ("addf", "mulf"):
        np.testing.assert_array_equal(memory.view(np.uint8)[number], wanted.view(np.uint8)[number])
    np.testing.assert_array_equal(memory[number], wanted[number])
    assert (memory.view(np.uint8)[~number] == 0x7F).all()


@pytest.mark.each_value
@pytest.mark.parametrize("engine", ["interpreter", "jit", "reference"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_bytes_at_the_end_of_an_array(engine, size):
    """The 32 bits around the last elements reach over the end; what lies there stays, and is nobody's to fault at."""
    text = f"""
    gpu.module @m {{ gpu.func @k(%m: memref<{size}xi8>, %n: index) kernel {{
      %one = arith.constant 1 : i8
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      scf.for %i = %c0 to %n step %c1 {{
        %old = memref.atomic_rmw addi %one, %m[%i] : (i8, memref<{size}xi8>) -> i8
      }}
      gpu.return
    }} }}"""
    kernel = xegpu_py.compile(text, engine=engine)
    whole = np.arange(size, dtype=np.int8)
    kernel(whole, size, grid=5)
    np.testing.assert_array_equal(whole, np.arange(size) + 5)
    # A view in the middle of a buffer: its neighbours on both sides keep their bytes.
    for start in (0, 1, 3, 8):
        buffer = np.arange(40, dtype=np.int8)
        kernel(buffer[start : start + size], size, grid=5)
        expected = np.arange(40)
        expected[start : start + size] += 5
        np.testing.assert_array_equal(buffer, expected)
    with pytest.raises(xegpu_py.DiagnosticError, match="over the end of"):
        kernel(np.zeros(size, np.int8), size + 1)


@pytest.mark.parametrize("target", ["pvc", "dg2"])
@pytest.mark.parametrize("element", ["i8", "i32", "bf16", "f32", "i64"])
def test_updates_by_a_region(target, element):
    """Each subgroup doubles an element and adds three, and keeps the old element."""
    suffix, three = ("f", "3.0") if "f" in element else ("i", "3")
    text = f"""
    gpu.module @m {{ gpu.func @k(%m: memref<4x4x{element}>, %found: memref<8x{element}>) kernel {{
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %three = arith.constant {three} : {element}
      %id = gpu.block_id x
      %old = memref.generic_atomic_rmw %m[%c1, %c2] : memref<4x4x{element}> {{
      ^bb0(%x: {element}):
        %twice = arith.add{suffix} %x, %x : {element}
        %y = arith.add{suffix} %twice, %three : {element}
        memref.atomic_yield %y : {element}
      }}
      memref.store %old, %found[%id] : memref<8x{element}>
      gpu.return
    }} }}"""
    memory = np.arange(16).astype(DTYPES[element]).reshape(4, 4)
    expected, found = memory.copy(), np.zeros(8, DTYPES[element])
    read = []
    for _ in range(3):
        read.append(expected[1, 2])
        expected[1, 2] = expected[1, 2] + expected[1, 2] + DTYPES[element].type(3)
    xegpu_py.compile(text, target=target, engine="both")(memory, found, grid=3)
    np.testing.assert_array_equal(memory, expected)
    assert sorted(found[:3]) == read


@pytest.mark.each_value
@pytest.mark.parametrize("target", GPUS)
@pytest.mark.parametrize("space", ["", "slm"])
@pytest.mark.parametrize("kind", ["addi", "muli", "minu", "assign"])
def test_the_finalizer_accepts_updates_of_bytes(kind, target, space, native_of):
    native_of(xegpu_py.compile(kernel([(kind, "i8")], space), target=target).asm, target)


@pytest.mark.parametrize("items", [16, 37])
def test_updates_by_a_region_of_work_items(items):
    """Active work items update, each with its own number and at its own place, and read the results of others."""
    text = """
    gpu.module @m { gpu.func @k(%m: memref<4xi32>, %found: memref<?xi32>) kernel
        attributes {xegpu.subgroup_size = 16 : i32} {
      %c4 = arith.constant 4 : index
      %c5 = arith.constant 5 : i32
      %t = gpu.thread_id x
      %at = arith.remui %t, %c4 : index
      %own = arith.index_cast %t : index to i32
      %more = arith.cmpi sge, %own, %c5 : i32
      scf.if %more {
        %old = memref.generic_atomic_rmw %m[%at] : memref<4xi32> {
        ^bb0(%x: i32):
          %twice = arith.addi %own, %own : i32
          %y = arith.addi %x, %twice : i32
          memref.atomic_yield %y : i32
        }
        memref.store %old, %found[%t] : memref<?xi32>
      }
      gpu.return
    } }"""
    for engine in ("interpreter", "jit", "reference"):
        memory, found = np.arange(4, dtype=np.int32), np.full(items, -1, np.int32)
        xegpu_py.compile(text, engine=engine)(memory, found, block=items)
        for place in range(4):
            mine = [i for i in range(place, items, 4) if i >= 5]
            assert memory[place] == place + 2 * sum(mine)
            # Each item has read the sum of the earlier updates, so that all sums differ.
            assert len(set(found[mine])) == len(mine) and min(found[mine]) == place
        assert (found[:5] == -1).all()


def test_a_region_may_not_ask_for_the_lane():
    text = """gpu.module @m { gpu.func @k(%m: memref<4xi32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
      %t = gpu.thread_id x
      %old = memref.generic_atomic_rmw %m[%t] : memref<4xi32> {
      ^bb0(%x: i32):
        %l = gpu.lane_id
        %own = arith.index_cast %l : index to i32
        %y = arith.addi %x, %own : i32
        memref.atomic_yield %y : i32
      }
      gpu.return
    } }"""
    with pytest.raises(xegpu_py.DiagnosticError, match="has gpu.lane_id in its region"):
        xegpu_py.compile(text)


@pytest.mark.each_value
@pytest.mark.parametrize("simt", [True, False])
@pytest.mark.parametrize(
    ("element", "kind"), [("f32", "add"), ("i32", "maxui"), ("f16", "mul"), ("bf16", "add"), ("i64", "region")]
)
def test_all_reduce(simt, element, kind):
    """In a loop, so that the memory between the subgroups is used again."""
    operation = "%v" if kind == "region" else f"{kind} %v"
    region = (f"^bb0(%l: {element}, %r: {element}): %s = arith.xori %l, %r : {element} gpu.yield %s : {element}"
              if kind == "region" else "")  # fmt: skip
    attributes = "attributes {xegpu.subgroup_size = 16 : i32}" if simt else ""
    text = f"""
    gpu.module @m {{ gpu.func @k(%x: memref<3x?x{element}>, %y: memref<3x?x{element}>) kernel {attributes} {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %t = gpu.thread_id x
      scf.for %i = %c0 to %c3 step %c1 {{
        %v = memref.load %x[%i, %t] : memref<3x?x{element}>
        %w = gpu.all_reduce {operation} uniform {{ {region} }} : ({element}) -> {element}
        memref.store %w, %y[%i, %t] : memref<3x?x{element}>
      }}
      gpu.return
    }} }}"""
    items = 37 if simt else 5
    rng = np.random.default_rng(1)
    x = rng.integers(1, 3 if kind == "mul" else 9, (3, items)).astype(DTYPES[element])
    functions = {"add": np.add, "maxui": np.maximum, "mul": np.multiply, "region": np.bitwise_xor}
    wide = x.astype(np.int64 if element[0] == "i" else np.float64)
    with np.errstate(over="ignore"):
        wanted = functions[kind].reduce(wide, axis=1).astype(x.dtype)
    for engine in ("both", "reference"):
        y = np.zeros_like(x)
        xegpu_py.compile(text, engine=engine)(x, y, block=items)
        np.testing.assert_array_equal(y, np.repeat(wanted[:, None], items, 1))


@pytest.mark.parametrize(("kind", "lanes"), [("addi", [32]), ("muli", [16, 16])])
def test_lanes_of_a_message(kind, lanes):
    """Messages have 32, and loops of compare and swap 16, which their predicates have."""
    desc = "!xegpu.tensor_desc<32xi32, #xegpu.scattered>"
    text = f"""gpu.module @m {{
  gpu.func @k(%m: memref<32xi32>) kernel {{
    %mask = arith.constant dense<true> : vector<32xi1>
    %line = vector.step : vector<32xindex>
    %three = arith.constant dense<3> : vector<32xi32>
    %t = xegpu.create_tdesc %m, %line {{mode = vc}} : memref<32xi32>, vector<32xindex> -> {desc}
    %old = xegpu.atomic_rmw {kind}, %three, %t, %mask {{mode = vc}}
      : vector<32xi32>, {desc}, vector<32xi1> -> vector<32xi32>
    gpu.return
  }}
}}"""
    k = xegpu_py.compile(text, target="pvc")
    sent = [int(line.partition(", ")[2].partition(")")[0]) for line in k.asm.splitlines() if "lsc_atomic" in line]
    assert sent == lanes
    m = np.arange(32, dtype=np.int32)
    k(m)
    np.testing.assert_array_equal(m, np.arange(32) * 3 if kind == "muli" else np.arange(32) + 3)
