"""Every kind of atomic update of every element type: messages where there are some, else loops of compare and swap."""

import numpy as np
import pytest

import xegpu_py
from xegpu_py.runtime.arguments import DTYPES
from xegpu_py.visa.finalizer import available, finalize

INTEGERS = ("addi", "muli", "maxs", "mins", "maxu", "minu", "andi", "ori", "xori", "assign")
FLOATS = ("addf", "mulf", "maximumf", "minimumf", "maxnumf", "minnumf", "assign")
PLACES = [0, 1, 2, 3, 0, 5, 6, 7, 8, 3, 10, 3, 12, 13, 14, 1]
OFF = 6
"""A lane that its mask disables."""

CASES = [(k, t) for t in ("i8", "i16", "i32", "i64") for k in INTEGERS]
CASES += [(k, t) for t in ("f16", "bf16", "f32", "f64") for k in FLOATS]


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


@pytest.mark.parametrize("space", ["", "slm"])
@pytest.mark.parametrize("target", ["pvcxt", "dg2", "any"])
def test_every_kind_of_every_type(target, space):
    cases = [c for c in CASES if not (c[1] == "f64" and target == "dg2")][:: 1 if target == "pvcxt" else 3]
    module = xegpu_py.parse(kernel(cases, space))
    rng = np.random.default_rng(5)
    for number, (kind, t) in enumerate(cases):
        dtype = np.dtype(DTYPES[t])
        if t[0] == "i":
            before, values = (rng.integers(-(2**63), 2**63 - 1, 16).astype(dtype) for _ in range(2))
        else:
            before, values = (rng.integers(-4, 5, 16).astype(dtype) for _ in range(2))
        engine = "both" if number % 8 == 0 else "interpreter"
        memory, old = before.copy(), values.copy()
        compiled = xegpu_py.compile(module, f"{kind}_{t}", target=target, engine=engine)
        compiled(memory, old)
        if kind == "assign":
            # The last one wins, whichever that is.
            for place in set(PLACES):
                assert memory[place] in ([values[i] for i in lanes_at(place)] or [before[place]])
        else:
            np.testing.assert_array_equal(memory, updated(kind, before, values), err_msg=f"{kind} {t}")
        # Of lanes that share no place what was read is what was there; a lane that is off reads nothing.
        alone = [i for i, p in enumerate(PLACES) if PLACES.count(p) == 1 and i != OFF]
        np.testing.assert_array_equal(old[alone], before[[PLACES[i] for i in alone]], err_msg=f"{kind} {t}")
        assert old[OFF] == values[OFF] and memory[PLACES[OFF]] == before[PLACES[OFF]]


@pytest.mark.parametrize("target", ["pvc", "dg2"])
@pytest.mark.parametrize("element", ["i8", "i32", "bf16", "f32", "i64"])
def test_updates_by_a_region(target, element):
    """Each subgroup doubles an element and adds three, and keeps what it found."""
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


@pytest.mark.skipif(not available(), reason="the finalizer is not installed")
@pytest.mark.parametrize(("target", "platform"), [("pvc", "PVC"), ("dg2", "DG2")])
@pytest.mark.parametrize("space", ["", "slm"])
def test_the_finalizer_accepts_updates_of_bytes(target, platform, space):
    for kind in ("addi", "muli", "minu", "assign"):
        finalize(xegpu_py.compile(kernel([(kind, "i8")], space), target=target).asm, platform)
