"""Functions of constants have the bits of docs/numerics.md, not those of the host's C library."""

import numpy as np
import pytest

import xegpu_py
from xegpu_py import reference

UNARY = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tanh", "erf", "tan", "asinh", "cbrt")
STORE = """%x{i} = {x}
    %y{i} = {op} : {t}
    %at{i} = arith.constant {i} : index
    {store}
    """


def kernel(body: str, count: int) -> str:
    return f"""
gpu.module @m {{
  gpu.func @k(%out: memref<{count}x4xf32>) kernel {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    {body}
    gpu.return
  }}
}}
"""


def run(text: str, count: int) -> np.ndarray:
    """The result of the engines, which equals that of the reference."""
    found, wanted = (np.zeros((count, 4), np.float32) for _ in range(2))
    xegpu_py.compile(text, engine="both", cache="off")(found)
    reference.run(xegpu_py.parse(text), "k", [wanted])
    np.testing.assert_array_equal(found.view(np.uint32), wanted.view(np.uint32))
    return found


@pytest.mark.parametrize("is_vector", [False, True])
def test_functions_of_constants(is_vector):
    body, count = "", 4 * len(UNARY)
    for i in range(count):
        x = 0.37 + 0.61 * (i // len(UNARY))
        t = "vector<4xf32>" if is_vector else "f32"
        value = f"arith.constant dense<{x}> : {t}" if is_vector else f"arith.constant {x} : f32"
        store = f"vector.store %y{i}, %out[%at{i}, %c0] : memref<{count}x4xf32>, vector<4xf32>"
        if not is_vector:
            store = f"memref.store %y{i}, %out[%at{i}, %c0] : memref<{count}x4xf32>"
        body += STORE.format(i=i, x=value, op=f"math.{UNARY[i % len(UNARY)]} %x{i}", t=t, store=store)
    assert np.count_nonzero(run(kernel(body, count), count)) >= count - 8


def test_constants_that_loops_carry():
    """A loop of one iteration is removed, and the values that it carries become constants."""
    body = """%x = arith.constant 1.37 : f32
    %y = scf.for %i = %c0 to %c1 step %c1 iter_args(%a = %x) -> (f32) {
      %b = math.exp %a : f32
      %c = math.powf %b, %a : f32
      scf.yield %c : f32
    }
    memref.store %y, %out[%c0, %c0] : memref<1x4xf32>"""
    assert run(kernel(body, 1), 1)[0, 0] > 0


@pytest.mark.parametrize(
    "integer",
    [
        "arith.cmpi eq, %i, %i : i32\n    %n = arith.extsi %b : i1 to i32",
        "arith.subi %i, %i : i32\n    %o = arith.constant -3 : i32\n    %n = arith.addi %b, %o : i32",
        "arith.constant 3 : i32\n    %z = arith.subi %i, %i : i32\n    %n = arith.xori %z, %b : i32",
    ],
)
def test_constants_of_integers_that_are_not(integer):
    """x == x and x - x are constants for any x."""
    body = f"""%id = gpu.block_id x
    %i = arith.index_cast %id : index to i32
    %b = {integer}
    %x = arith.sitofp %n : i32 to f32
    %y = math.acosh %x : f32
    %w = math.log1p %y : f32
    %v = math.tan %x : f32
    memref.store %y, %out[%c0, %c0] : memref<1x4xf32>
    memref.store %w, %out[%c0, %c1] : memref<1x4xf32>
    memref.store %v, %out[%c0, %c3] : memref<1x4xf32>"""
    run(kernel(body, 1), 1)


def test_constants_of_known_launches():
    """The number of a workgroup is a constant if the grid has only one."""
    body = """%id = gpu.block_id x
    %i = arith.index_cast %id : index to i32
    """
    for i in range(16):
        body += f"""%o{i} = arith.constant {i + 1} : i32
    %n{i} = arith.addi %i, %o{i} : i32
    %x{i} = arith.sitofp %n{i} : i32 to f32
    %y{i} = math.{("tanh", "erf", "log10", "exp")[i % 4]} %x{i} : f32
    %at{i} = arith.constant {i} : index
    memref.store %y{i}, %out[%at{i}, %c0] : memref<16x4xf32>
    """
    text = kernel(body, 16)
    run(text.replace("kernel {", "kernel attributes {known_grid_size = array<i32: 1, 1, 1>} {"), 16)


def test_hidden_functions_keep_their_attributes_and_are_moved_and_removed():
    text = kernel(
        """%x = arith.constant 1.37 : f32
    %dead = math.exp %x : f32
    %y = math.exp %x fastmath<nnan> : f32
    scf.for %i = %c0 to %c3 step %c1 {
      %z = math.powf %y, %x : f32
      memref.store %z, %out[%c0, %i] : memref<1x4xf32>
    }""",
        1,
    )
    module = xegpu_py.parse(text)
    xegpu_py.run_pipeline(module, "builtin.module(canonicalize,gpu.module(gpu.func(loop-invariant-code-motion)))")
    found = str(module)
    assert found.count("math.exp ") == 1
    assert "math.exp %cst fastmath<nnan>" in found
    assert found.index("math.powf") < found.index("scf.for")
    assert "hidden" not in found


@pytest.mark.parametrize(
    ("kinds", "number"),
    [
        (("i32", "f32", "bf16"), 2**30 + 2**22 + 1),
        (("i64", "f64", "f32"), 2**60 + 2**36 + 1),
        (("i32", "f64", "tf32"), 2**30 + 2**19 + 1),
    ],
)
@pytest.mark.parametrize("name", ["sitofp", "uitofp"])
def test_integers_are_rounded_as_often_as_written(kinds, number, name):
    """The first rounding makes a tie of the number, which canonicalization would not do."""
    integer, wide, narrow = kinds
    body = f"""%n = memref.load %in[%c0] : memref<1x{integer}>
    %x = arith.{name} %n : {integer} to {wide}
    %y = arith.truncf %x : {wide} to {narrow}
    {"%z = arith.bitcast %y : f32 to f32" if narrow == "f32" else f"%z = arith.extf %y : {narrow} to f32"}
    memref.store %z, %out[%c0, %c0] : memref<1x4xf32>"""
    text = kernel(body, 1).replace("@k(", f"@k(%in: memref<1x{integer}>, ")
    given = np.array([number], f"i{int(integer[1:]) // 8}")
    found, wanted = (np.zeros((1, 4), np.float32) for _ in range(2))
    xegpu_py.compile(text, engine="both", cache="off")(given, found)
    reference.run(xegpu_py.parse(text), "k", [given, wanted])
    np.testing.assert_array_equal(found, wanted)
    module = xegpu_py.parse(text)
    xegpu_py.run_pipeline(module, "builtin.module(canonicalize)")
    assert f"arith.truncf %1 : {wide} to {narrow}" in str(module)


def test_long_chains_of_ops():
    sums = "\n".join(f"%x{i + 1} = arith.addf %x{i}, %x0 : f32" for i in range(3000))
    body = f"""%x0 = memref.load %out[%c0, %c0] : memref<1x4xf32>
    {sums}
    %y = math.exp %x3000 : f32
    memref.store %y, %out[%c0, %c0] : memref<1x4xf32>"""
    module = xegpu_py.parse(kernel(body, 1))
    xegpu_py.run_pipeline(module, "builtin.module(canonicalize)")
    assert str(module).count("math.exp ") == 1
