"""Ops of TTIR in forms that Triton's programs rarely have, against numpy."""

import ml_dtypes
import numpy as np
import pytest

import xegpu_py

N = 16

KERNEL = """
module {{
  tt.func public @k(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>, %u: !tt.ptr<f32>, %w: !tt.ptr<f32>, %out: !tt.ptr<i32>,
                    %n: i32) {{
    %lane = tt.make_range {{end = {n} : i32, start = 0 : i32}} : tensor<{n}xi32>
    %one = arith.constant dense<1> : tensor<{n}xi32>
    %seven = arith.constant dense<7> : tensor<{n}xi32>
    %px = tt.splat %x : !tt.ptr<i32> -> tensor<{n}x!tt.ptr<i32>>
    %ax = tt.addptr %px, %lane : tensor<{n}x!tt.ptr<i32>>, tensor<{n}xi32>
    %a = tt.load %ax : tensor<{n}x!tt.ptr<i32>>
    %py = tt.splat %y : !tt.ptr<i32> -> tensor<{n}x!tt.ptr<i32>>
    %ay = tt.addptr %py, %lane : tensor<{n}x!tt.ptr<i32>>, tensor<{n}xi32>
    %b = tt.load %ay : tensor<{n}x!tt.ptr<i32>>
    %pu = tt.splat %u : !tt.ptr<f32> -> tensor<{n}x!tt.ptr<f32>>
    %au = tt.addptr %pu, %lane : tensor<{n}x!tt.ptr<f32>>, tensor<{n}xi32>
    %f = tt.load %au : tensor<{n}x!tt.ptr<f32>>
    %pw = tt.splat %w : !tt.ptr<f32> -> tensor<{n}x!tt.ptr<f32>>
    %aw = tt.addptr %pw, %lane : tensor<{n}x!tt.ptr<f32>>, tensor<{n}xi32>
    %g = tt.load %aw : tensor<{n}x!tt.ptr<f32>>
    %m = arith.cmpi slt, %a, %b : tensor<{n}xi32>
    %k = arith.cmpi ult, %a, %b : tensor<{n}xi32>
    %po = tt.splat %out : !tt.ptr<i32> -> tensor<{n}x!tt.ptr<i32>>
    {body}
    tt.return
  }}
}}
"""

T = f"tensor<{N}xi32>"
F = f"tensor<{N}xf32>"
P = f"tensor<{N}x!tt.ptr<i32>>"
TRUTH = f"tensor<{N}xi1>"
E5M2 = ml_dtypes.float8_e5m2


def of_truth(op):
    return f"%v = {op} : {TRUTH}\n%r = arith.extui %v : {TRUTH} to {T}"


def of_floats(op, to="f8E5M2"):
    """An op on numbers of 8 bits, as a number of f32."""
    narrow = f"tensor<{N}x{to}>"
    conversions = (
        f"%{v} = tt.fp_to_fp %{source}, rounding = rtne : {F} -> {narrow}\n" for v, source in (("h", "f"), ("i", "g"))
    )
    return "".join(conversions) + op.format(narrow)


def widened(narrow=f"tensor<{N}xf8E5M2>"):
    return f"\n%z = tt.fp_to_fp %v : {narrow} -> {F}\n%r = arith.bitcast %z : {F} to {T}"


def rounded(x):
    return x.astype(E5M2).astype(np.float32)


ROWS = [3, -1, 2**31 - 1, -(2**31), *range(12)]

FORMS = {
    "the greater truth value": (of_truth("arith.maxui %m, %k"), lambda a, b, f, g: (a < b) | below(a, b)),
    "the lesser truth value": (of_truth("arith.minui %m, %k"), lambda a, b, f, g: (a < b) & below(a, b)),
    "the greater truth value with a sign": (of_truth("arith.maxsi %m, %k"), lambda a, b, f, g: (a < b) & below(a, b)),
    "the lesser truth value with a sign": (of_truth("arith.minsi %m, %k"), lambda a, b, f, g: (a < b) | below(a, b)),
    "a sum of truth values": (of_truth("arith.addi %m, %k"), lambda a, b, f, g: (a < b) ^ below(a, b)),
    "elements of a constant": (
        f"%c = arith.constant dense<{ROWS}> : {T}\n%r = arith.addi %c, %a : {T}",
        lambda a, b, f, g: np.array(ROWS, np.int32) + a,
    ),
    "a position that a condition chooses": (
        f"%o = arith.select %m, %lane, %seven : {TRUTH}, {T}\n%p = tt.addptr %px, %o : {P}, {T}\n%r = tt.load %p : {P}",
        lambda a, b, f, g: a[np.where(a < b, np.arange(N), 7)],
    ),
    "a pointer that conditions choose in one array": (
        f"%q = tt.addptr %px, %seven : {P}, {T}\n%p = arith.select %m, %ax, %q : {TRUTH}, {P}\n%r = tt.load %p : {P}",
        lambda a, b, f, g: a[np.where(a < b, np.arange(N), 7)],
    ),
    "a pointer that conditions choose in two arrays": (
        f"%p = arith.select %m, %ax, %ay : {TRUTH}, {P}\n%r = tt.load %p : {P}",
        lambda a, b, f, g: np.where(a < b, a, b),
    ),
    "a pointer that one condition chooses": (
        f"%z = arith.constant 5 : i32\n%is = arith.cmpi slt, %n, %z : i32\n"
        f"%p = arith.select %is, %ax, %ay : {P}\n%r = tt.load %p : {P}",
        lambda a, b, f, g: a,
    ),
    "addresses as integers": (
        f"%i = tt.ptr_to_int %ax : {P} -> tensor<{N}xi64>\n%p = tt.int_to_ptr %i : tensor<{N}xi64> -> {P}\n"
        f"%r = tt.load %p : {P}",
        lambda a, b, f, g: a,
    ),
    "integers at pointers to floats": (
        f"%p = tt.bitcast %au : tensor<{N}x!tt.ptr<f32>> -> {P}\n%r = tt.load %p : {P}",
        lambda a, b, f, g: f.view(np.int32),
    ),
    "what is not defined times zero": (
        f"%p = ub.poison : {T}\n%z = arith.constant dense<0> : {T}\n%r = arith.muli %p, %z : {T}",
        lambda a, b, f, g: a * 0,
    ),
    "a sum of floats of 8 bits": (
        of_floats("%v = arith.addf %h, %i : {0}") + widened(),
        lambda a, b, f, g: rounded(rounded(f) + rounded(g)).view(np.int32),
    ),
    "floats of 8 bits compared": (
        of_floats(f"%v = arith.cmpf olt, %h, %i : {{0}}\n%r = arith.extui %v : {TRUTH} to {T}"),
        lambda a, b, f, g: rounded(f) < rounded(g),
    ),
    "a root of floats of 8 bits": (
        of_floats("%s = math.absf %h : {0}\n%v = math.sqrt %s : {0}") + widened(),
        lambda a, b, f, g: rounded(np.sqrt(np.abs(rounded(f)))).view(np.int32),
    ),
    "pairs of elements": (
        f'''%r = "tt.map_elementwise"(%a, %b) <{{pack = 2 : i32}}> ({{
        ^bb0(%a0: i32, %a1: i32, %b0: i32, %b1: i32):
          %s = arith.addi %a0, %b1 : i32
          %d = arith.subi %a1, %b0 : i32
          tt.map_elementwise.return %s, %d : i32, i32
        }}) : ({T}, {T}) -> {T}''',
        lambda a, b, f, g: np.stack([a[::2] + b[1::2], a[1::2] - b[::2]], 1).ravel(),
    ),
    "atomic loads and stores": (
        f"%v = tt.atomic_load acquire, gpu, %ax, %m : ({P}, {TRUTH}) -> {T}\n%z = arith.constant dense<0> : {T}\n"
        f"tt.atomic_store release, gpu, %ay, %a, %m : {P}\n%w2 = tt.load %ay : {P}\n"
        f"%r = arith.select %m, %v, %w2 : {TRUTH}, {T}",
        lambda a, b, f, g: np.where(a < b, a, b),
    ),
}  # fmt: skip


def below(a, b):
    return a.view(np.uint32) < b.view(np.uint32)


@pytest.mark.parametrize("name", FORMS)
def test_forms(name):
    body, oracle = FORMS[name]
    store = f"\n%ao = tt.addptr %po, %lane : {P}, {T}\ntt.store %ao, %r : {P}"
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-(2**31), 2**31, N).astype(np.int32) for _ in range(2))
    f, g = (rng.uniform(-9, 9, N).astype(np.float32) for _ in range(2))
    out = np.zeros(N, np.int32)
    xegpu_py.compile(KERNEL.format(n=N, body=body + store), cache="off")(a.copy(), b.copy(), f, g, out, 3)
    np.testing.assert_array_equal(out, np.asarray(oracle(a, b, f, g)).astype(np.int32))
