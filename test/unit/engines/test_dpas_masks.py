"""DPAS obeys the execution mask: a disabled lane keeps its column of the destination; NoMask writes all columns."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from effort import some

from xegpu_py import DiagnosticError, Kernel, numerics
from xegpu_py.numerics.dpas import ops_per_channel

DTYPES = {"f": np.float32, "hf": np.float16, "bf": ml_dtypes.bfloat16, "d": np.int32}
CASES = (("bf", "f", "f"), ("bf", "bf", "f"), ("hf", "hf", "hf"), ("s8", "d", "d"), ("tf32", "f", "f"))


def moves(op, name, dwords, address):
    """Messages that move registers, 64 dwords at a time."""
    lines = []
    for at in range(0, dwords, 64):
        data = f"{name}.{4 * at}:d32x{min(dwords - at, 64)}t"
        place = f"flat[{address}+{4 * at}]:a64"
        operands = (data, place) if op == "load" else (place, data)
        lines.append(f"    lsc_{op}.ugm (M1_NM, 1) {' '.join(operands)}")
    return "\n".join(lines)


def program(dst, acc, rows, body):
    """Lanes whose bit in `Skip` is set leave over `body`."""
    sizes = {n: rows * 16 * np.dtype(DTYPES[t]).itemsize // 4 for n, t in (("D", dst), ("C", acc))}
    return f"""
.version 3.8
.kernel "masked"
.decl D v_type=G type={dst} num_elts={rows * 16} align=GRF
.decl C v_type=G type={acc} num_elts={rows * 16} align=GRF
.decl A v_type=G type=d num_elts={rows * 8} align=GRF
.decl B v_type=G type=d num_elts=128 align=GRF
.decl PD v_type=G type=uq num_elts=1 align=GRF
.decl PC v_type=G type=uq num_elts=1 align=GRF
.decl PA v_type=G type=uq num_elts=1 align=GRF
.decl PB v_type=G type=uq num_elts=1 align=GRF
.decl Skip v_type=G type=ud num_elts=1 align=dword
.decl P v_type=P num_elts=16
.input PD offset=64 size=8
.input PC offset=72 size=8
.input PA offset=80 size=8
.input PB offset=88 size=8
.input Skip offset=96 size=4
{moves("load", "D", sizes["D"], "PD")}
{moves("load", "C", sizes["C"], "PC")}
{moves("load", "A", rows * 8, "PA")}
{moves("load", "B", 128, "PB")}
    setp (M1_NM, 16) P Skip(0,0)<0;1,0>
    (P) goto (M1, 16) Over
{body}
Over:
{moves("store", "D", sizes["D"], "PD")}
    ret (M1, 1)
"""


def operands(precision, dst, acc, rows):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 2**32, n, np.uint32) for n in (rows * 8, 128))
    if precision != "s8":
        # Small numbers, of which the sums are exact in every format.
        k = 8 * ops_per_channel(precision, precision)
        kind = {"bf": ml_dtypes.bfloat16, "hf": np.float16, "tf32": np.float32}[precision]
        a = numerics.pack_a(rng.integers(-3, 4, (rows, k)).astype(kind), precision).view(np.uint32)
        b = numerics.pack_b(rng.integers(-3, 4, (k, 16)).astype(kind), precision).view(np.uint32)
    c, d = (rng.integers(-9, 9, (rows, 16)).astype(DTYPES[t]) for t in (acc, dst))
    return a.ravel(), b.ravel(), c, d


def product(precision, dst, acc, rows, a, b, c):
    found = numerics.dpas(
        c.view(np.uint8).ravel(),
        b.view(np.uint8),
        a.view(np.uint8),
        W=precision,
        A=precision,
        SD=8,
        RC=rows,
        exec_size=16,
        dst_type=dst,
        src0_type=acc,
    )
    return found.view(DTYPES[dst]).reshape(rows, 16)


@pytest.mark.each_value
@pytest.mark.parametrize("skip", [0x00FF, 0x8001, 0xFFFE, 0x0000, 0xFFFF])
@pytest.mark.parametrize(("precision", "dst", "acc"), CASES)
def test_disabled_lanes_keep_their_columns(precision, dst, acc, skip):
    forms = itertools.product(("fma", "stage", "exact"), ((8, "M1"), (4, "M1"), (8, "M1_NM")))
    # Of each four one: in each list other pairs.
    for model, (rows, mask) in some(forms, 1 / 4, first=skip):
        body = f"    dpas.{precision}.{precision}.8.{rows} ({mask}, 16) D.0 C.0 B.0 A(0,0)"
        a, b, c, d = operands(precision, dst, acc, rows)
        written = np.array([mask == "M1_NM" or not skip >> i & 1 for i in range(16)]) & (skip != 0xFFFF)
        wanted = np.where(written, product(precision, dst, acc, rows, a, b, c), d)
        kernel = Kernel.from_assembly(program(dst, acc, rows, body), target="pvc", engine="both", model=model)
        out = d.copy()
        kernel(out, c, a, b, skip)
        np.testing.assert_array_equal(out, wanted)


def test_a_chain_of_masked_and_unmasked_products():
    """Disabled lanes lack the first and last product."""
    line = "    dpas.bf.bf.8.8 ({}, 16) D.0 D.0 B.0 A(0,0)"
    body = "\n".join(line.format(mask) for mask in ("M1", "M1_NM", "M1_NM", "M1"))
    a, b, c, d = operands("bf", "f", "f", 8)
    total, wanted = d, []
    for _ in range(4):
        total = product("bf", "f", "f", 8, a, b, total)
        wanted.append(total)
    out = d.copy()
    Kernel.from_assembly(program("f", "f", 8, body), target="pvc", engine="both")(out, c, a, b, 0x0F0F)
    skipped = np.array([0x0F0F >> i & 1 == 1 for i in range(16)])
    np.testing.assert_array_equal(out, np.where(skipped, wanted[1], wanted[3]))


def test_what_a_masked_product_left_unwritten_is_found():
    body = "    dpas.bf.bf.8.8 (M1, 16) E.0 C.0 B.0 A(0,0)\nOver:\n    mov (M1_NM, 16) D(0,0)<1> E(0,0)<1;1,0>"
    text = program("f", "f", 8, body)
    text = "Over:".join(text.split("Over:")[:2]) + text.split("Over:")[2]
    text = text.replace(".decl C", ".decl E v_type=G type=f num_elts=128 align=GRF\n.decl C")
    a, b, c, d = operands("bf", "f", "f", 8)
    kernel = Kernel.from_assembly(text, target="pvc", check=["uninit"])
    kernel(d.copy(), c, a, b, 0)
    with pytest.raises(DiagnosticError, match="reads byte 16 of 'E', which was never written"):
        kernel(d, c, a, b, 0x0010)


@pytest.mark.parametrize("skip", [0x0F, 0x81, 0xFE])
def test_of_eight_lanes(skip):
    """Registers of dg2 have eight dwords: the sums are 8 * 2 * (1 * 2), added to 5."""
    fill = "".join(
        f"    mov (M1_NM, 8) {name}({r},0)<1> {value}\n"
        for name, value in (("D", "0x40a00000:f"), ("A", "0x3f803f80:d"), ("B", "0x40004000:d"))
        for r in range(8)
    )
    text = f"""
.version 3.8
.kernel "eight"
.decl A v_type=G type=d num_elts=64 align=GRF
.decl B v_type=G type=d num_elts=64 align=GRF
.decl D v_type=G type=f num_elts=64 align=GRF
.decl Out v_type=G type=uq num_elts=1 align=GRF
.decl P v_type=P num_elts=8
.input Out offset=32 size=8
{fill}    setp (M1_NM, 8) P 0x{skip:x}:ud
    (P) goto (M1, 8) Past
    dpas.bf.bf.8.8 (M1, 8) D.0 D.0 B.0 A(0,0)
Past:
    lsc_store.ugm (M1_NM, 1) flat[Out]:a64 D.0:d32x64t
    ret (M1_NM, 1)
"""
    out = np.zeros((8, 8), np.float32)
    Kernel.from_assembly(text, target="dg2", engine="both", cache="off")(out)
    np.testing.assert_array_equal(out, np.tile([5.0 if skip >> i & 1 else 37.0 for i in range(8)], (8, 1)))
