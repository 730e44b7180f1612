"""Functions that legalisation expands, on both engines, against the reference evaluator."""

import numpy as np
import pytest

import xegpu_py
from xegpu_py import reference
from xegpu_py.numerics.double_functions import evaluate_formula
from xegpu_py.numerics.expansions import EXPANSIONS
from xegpu_py.numerics.special_functions import SPECIAL_FUNCTIONS
from xegpu_py.runtime.host_arrays import parse_argument

KERNEL = """
gpu.module @m {{
  gpu.func @k(
    %x: memref<{size}x{t}>, %y: memref<{size}x{t}>, %n: memref<{size}xi32>, %out: memref<{count}x{size}x{t}>
  ) kernel {{
    %c0 = arith.constant 0 : index
    %last = arith.constant {last} : index
    %a = vector.load %x[%c0] : memref<{size}x{t}>, vector<{size}x{t}>
    %b = vector.load %y[%c0] : memref<{size}x{t}>, vector<{size}x{t}>
    %i = vector.load %n[%c0] : memref<{size}xi32>, vector<{size}xi32>
    %sa = memref.load %x[%last] : memref<{size}x{t}>
    %sb = memref.load %y[%last] : memref<{size}x{t}>
    %si = memref.load %n[%last] : memref<{size}xi32>
    {body}
    gpu.return
  }}
}}
"""
STORE = """%at{i} = arith.constant {i} : index
    {vector}
    vector.store %r{i}, %out[%at{i}, %c0] : memref<{count}x{size}x{t}>, vector<{size}x{t}>
    """
STORE_SCALAR = """{scalar}
    memref.store %s{i}, %out[%at{i}, %last] : memref<{count}x{size}x{t}>
"""


def compared(forms: list[str], t: str, *words: str, size: int = 48) -> list[np.ndarray]:
    """The arguments after ops on vectors of some size, and on their last elements as scalars."""
    body, shape = "", {"count": len(forms), "t": t, "size": size, "last": size - 1}
    for i, form in enumerate(forms):
        made = [
            form.format(r=f"{r}{i}", a=a, b=b, n=n, t=kind, n_t=n_kind, p=p)
            for r, a, b, n, kind, n_kind, p in (
                ("%r", "%a", "%b", "%i", f"vector<{size}x{t}>", f"vector<{size}xi32>", f"vector<{size}xi1>"),
                ("%s", "%sa", "%sb", "%si", t, "i32", "i1"),
            )
        ]
        body += STORE.format(i=i, vector=made[0], **shape)
        body += STORE_SCALAR.format(i=i, scalar=made[1], **shape)
    text = KERNEL.format(body=body, **shape)
    words = (*words, f"zeros:{t}:{len(forms)}x{size}")
    found, wanted = ([parse_argument(w) for w in words] for _ in range(2))
    xegpu_py.compile(text, engine="both", cache="off")(*found)
    reference.run(xegpu_py.parse(text), "k", wanted)
    for i in range(len(forms)):
        np.testing.assert_array_equal(*(v[-1][i].view(np.uint8) for v in (found, wanted)), forms[i])
    return found


FORMS = [
    *(f"{{r}} = {name} {{a}} : {{t}}" for name in EXPANSIONS if name != "math.atan2"),
    "{r} = math.atan2 {a}, {b} : {t}",
    "{r} = math.clampf {a} to [{b}, {b}] : {t}",
    "{r}, {r}c = math.sincos {a} : {t}",
    "{r}s, {r} = math.sincos {a} : {t}",
    "{r} = math.fpowi {a}, {n} : {t}, {n_t}",
    "{r}p = math.isnormal {a} : {t}\n    {r} = arith.select {r}p, {a}, {b} : {p}, {t}",
]

DOUBLES = [
    "{r}, {r}c = math.sincos {a} : {t}",
    "{r} = math.fpowi {a}, {n} : {t}, {n_t}",
    "{r} = math.atan2 {a}, {b} : {t}",
    "{r} = math.expm1 {a} : {t}",
]
"""Functions of f64 with all ops of which the others consist."""


@pytest.mark.parametrize(
    ("t", "size", "forms"),
    [
        ("f32", 48, FORMS),
        ("f16", 48, FORMS[::4]),
        ("f8E4M3FN", 48, FORMS[-5:]),
        ("f64", 24, DOUBLES),
        ("f64", 80, DOUBLES[:-1]),
        ("f64", 512, DOUBLES[-1:]),
    ],
)
def test_functions(t, size, forms):
    """Functions of f64 are computed in a loop over parts of 16 elements, and of 32 of 512 elements."""
    words = f"bits:{t}:{size}:seed=1", f"bits:{t}:{size}:seed=2", f"bits:i32:{size}:seed=3"
    compared(forms, t, *words, size=size)


DIVISIONS = [f"arith.{name}" for name in ("divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui")]


@pytest.mark.parametrize(("t", "size", "names"), [
    ("f32", 80, ["arith.remf"]), ("bf16", 64, ["arith.remf"]), ("i64", 64, DIVISIONS),
])  # fmt: skip
def test_divisions_of_long_vectors(t, size, names):
    """Loops over parts divide. No integer is divided by zero with seed 5."""
    forms = [f"{{r}} = {name} {{a}}, {{b}} : {{t}}" for name in names]
    words = f"bits:{t}:{size}:seed=1", f"bits:{t}:{size}:seed=5", f"bits:i32:{size}:seed=3"
    compared(forms, t, *words, size=size)


@pytest.mark.parametrize("size", [16, 64])
def test_special_functions(size):
    """Calls of formulas by name, of one part and in a loop."""
    kind = f"vector<{size}xf64>"
    text = f"""
gpu.module @m {{
  func.func private @xegpu.formula.hypot({kind}, {kind}) -> {kind}
  gpu.func @k(%x: memref<{size}xf64>, %y: memref<{size}xf64>, %out: memref<{size}xf64>) kernel {{
    %c0 = arith.constant 0 : index
    %a = vector.load %x[%c0] : memref<{size}xf64>, {kind}
    %b = vector.load %y[%c0] : memref<{size}xf64>, {kind}
    %r = func.call @xegpu.formula.hypot(%a, %b) : ({kind}, {kind}) -> {kind}
    vector.store %r, %out[%c0] : memref<{size}xf64>, {kind}
    gpu.return
  }}
}}
"""
    words = f"bits:f64:{size}:seed=1", f"bits:f64:{size}:seed=2", f"zeros:f64:{size}"
    found, wanted = ([parse_argument(w) for w in words] for _ in range(2))
    xegpu_py.compile(text, engine="both", cache="off")(*found)
    reference.run(xegpu_py.parse(text), "k", wanted)
    formula = evaluate_formula(SPECIAL_FUNCTIONS["hypot"], *found[:2])
    for other in (wanted[-1], formula):
        np.testing.assert_array_equal(found[-1].view(np.uint8), other.view(np.uint8))
    for wrong in (text.replace("formula.hypot", "formula.zeta"), text.replace("formula.hypot", "formula.j0")):
        with pytest.raises(xegpu_py.DiagnosticError, match=r"calls 'xegpu\.formula\.\w+', which is no function of f64"):
            reference.run(xegpu_py.parse(wrong), "k", wanted)
    single = xegpu_py.parse(text.replace("f64", "f32"))
    with pytest.raises(xegpu_py.DiagnosticError, match=r"calls 'xegpu\.formula\.hypot', which is no function of f64"):
        reference.run(single, "k", list(np.ones((3, size), np.float32)))


def test_integer_exponents():
    """fpowi of exact powers, with exponents beyond what f32 holds, and negative ones."""
    x = np.tile(np.array([2, -2, 0.5, 1, -1, -0.0, 0.0, np.inf, -np.inf, np.nan, -8, 4], np.float32), 4)
    n = np.repeat(np.array([3, -2, 16777217, 0], np.int32), 12)
    power = "%r0 = math.fpowi %a, %i : vector<48xf32>, vector<48xi32>"
    text = KERNEL.format(
        t="f32", count=1, size=48, last=47, body=STORE.format(i=0, count=1, t="f32", size=48, vector=power)
    )
    out = np.zeros((1, 48), np.float32)
    xegpu_py.compile(text, engine="both", cache="off")(x, x, n, out)
    with np.errstate(all="ignore"):
        wanted = [float(np.power(np.float64(a), np.float64(b))) for a, b in zip(x, n)]
    np.testing.assert_array_equal(out[0], np.array(wanted, np.float32))
    np.testing.assert_array_equal(np.signbit(out[0]), np.signbit(wanted) & ~np.isnan(wanted))


@pytest.mark.parametrize("t", ["i8", "i32", "i64"])
def test_integer_powers(t):
    """Powers of any numbers, with constant and dynamic exponents; 0 to a negative power is undefined."""
    forms = ["{r} = math.ipowi {a}, {b} : {t}"]
    for n in (0, 5, -3):
        forms.append(
            f"{{r}}c = arith.constant {n} : {t}\n    {{r}}n = CAST\n    {{r}} = math.ipowi {{a}}, {{r}}n : {{t}}"
        )
    forms = [f.replace("CAST", f"vector.broadcast {{r}}c : {t} to {{t}}") for f in forms]
    body = "".join(
        STORE.format(i=i, count=4, t=t, size=48, vector=f.format(r=f"%r{i}", a="%a", b="%b", t=f"vector<48x{t}>"))
        for i, f in enumerate(forms)
    )
    dtype = f"i{int(t[1:]) // 8}"
    base = np.tile(np.array([-3, -2, -1, 1, 2, 3], dtype), 8)
    exponent = np.repeat([-3, -2, -1, 0, 1, 3, 31, 100], 6).astype(dtype)
    out = np.zeros((4, 48), dtype)
    xegpu_py.compile(KERNEL.format(t=t, count=4, size=48, last=47, body=body), engine="both", cache="off")(
        base, exponent, np.zeros(48, np.int32), out
    )

    def power(a: int, n: int) -> int:
        return a ** abs(n) if n >= 0 or a in (1, -1) else 0

    for row, numbers in zip(out, (exponent, *(np.full(48, n) for n in (0, 5, -3)))):
        wanted = np.array([power(int(a), int(n)) % 2**64 for a, n in zip(base, numbers)], np.uint64).astype(dtype)
        np.testing.assert_array_equal(row, wanted)
