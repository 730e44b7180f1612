"""Rounding modes that a program sets in `%cr0`."""

from __future__ import annotations

import numpy as np
import pytest

from xegpu_py import Kernel
from xegpu_py.ir.diagnostics import Source
from xegpu_py.numerics.directed import Direction, convert_directed, directed
from xegpu_py.numerics.formats import TYPES
from xegpu_py.numerics.rounding import convert
from xegpu_py.target import target
from xegpu_py.visa.assembly import read
from xegpu_py.visa.verify import verify

HEAD = """
.version 4.2
.kernel "k"
.decl In v_type=G type=uq num_elts=1 align=qword
.decl Out v_type=G type=uq num_elts=1 align=qword
.decl D v_type=G type=d num_elts=32 align=wordx32
.decl F v_type=G type=f num_elts=32 align=wordx32 alias=<D, 0>
.decl X v_type=G type=f num_elts=16 align=wordx32
.decl Y v_type=G type=f num_elts=48 align=wordx32
.decl H v_type=G type=hf num_elts=16 align=wordx32
.decl P v_type=P num_elts=16
.input In offset=64 size=8
.input Out offset=72 size=8
.kernel_attr Target="cm"
"""
BODY = """
    lsc_load.ugm (M1, 1) D:d32x32t flat[In]:a64
    xor (M1_NM, 1) %cr0(0,0)<1> %cr0(0,0)<0;1,0> {bits}:ud
    mov (M1, 16) X(0,0)<1> D(0,0)<1;1,0>
    mov (M1, 16) Y(0,0)<1> (-)D(0,0)<1;1,0>
    mad (M1, 16) Y(1,0)<1> X(0,0)<1;1,0> F(1,0)<1;1,0> 0x3f000000:f
    add (M1, 16) Y(2,0)<1> X(0,0)<1;1,0> F(1,0)<1;1,0>
    mov (M1, 16) H(0,0)<1> F(1,0)<1;1,0>
    xor (M1_NM, 1) %cr0(0,0)<1> %cr0(0,0)<0;1,0> {bits}:ud
    mov (M1, 16) X(0,0)<1> D(0,0)<1;1,0>
    lsc_store.ugm (M1, 1) flat[Out]:a64 Y:d32x32t
    lsc_store.ugm (M1, 1) flat[Out+0x80]:a64 Y.128:d32x16t
    lsc_store.ugm (M1, 1) flat[Out+0xc0]:a64 X:d32x16t
    lsc_store.ugm (M1, 1) flat[Out+0x100]:a64 H:d32x8t
    ret (M1, 1)
"""


@pytest.mark.parametrize(("bits", "direction"), [(0x10, "up"), (0x20, "down"), (0x30, "zero")])
def test_directions(bits: int, direction: Direction) -> None:
    rng = np.random.default_rng(bits)
    d = rng.integers(-(2**31), 2**31, 16).astype(np.int32)
    f = rng.standard_normal(16).astype(np.float32)
    out = np.zeros(72, np.float32)
    Kernel.from_assembly(HEAD + BODY.format(bits=hex(bits)), engine="both")(
        np.concatenate([d.view(np.float32), f]), out
    )
    x = convert_directed(d, "d", "f", direction)
    half = np.full(16, 0.5, np.float32)
    wanted = (
        x,
        convert_directed(-d.astype(np.int64), "q", "f", direction),
        directed("mad", (x, f, half), "f", direction),
        directed("add", (x, f), "f", direction),
        d.astype(np.float32),
    )
    np.testing.assert_array_equal(out[:64].reshape(4, 16), wanted[1:])
    np.testing.assert_array_equal(out[64:].view(np.float16), convert_directed(f, "f", "hf", direction))
    assert (x != wanted[4]).any()


SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -3.0,
    np.inf,
    -np.inf,
    np.nan,
    5e-324,
    -1e-310,
    2.5e-308,
    1.7e308,
    -1.7e308,
    0.1,
    1e-40,
    3.4e38,
    -7e-39,
]

OPERATIONS = """
    lsc_load.ugm (M1, 1) DF:d64x32t flat[In]:a64
    lsc_load.ugm (M1, 1) SF:d32x32t flat[In+0x100]:a64
    lsc_load.ugm (M1, 1) Q:d64x16t flat[In+0x180]:a64
    {keep}
    xor (M1_NM, 1) %cr0(0,0)<1> %cr0(0,0)<0;1,0> {bits}:ud
    add (M1, 16) RD(0,0)<1> DF(0,0)<1;1,0> DF(2,0)<1;1,0>
    mul (M1, 16) RD(2,0)<1> DF(0,0)<1;1,0> (-)DF(2,0)<1;1,0>
    mad (M1, 16) RD(4,0)<1> DF(0,0)<1;1,0> DF(2,0)<1;1,0> (abs)DF(0,0)<1;1,0>
    divm (M1, 16) RD(6,0)<1> DF(0,0)<1;1,0> DF(2,0)<1;1,0>
    sqrtm (M1, 16) RD(8,0)<1> DF(0,0)<1;1,0>
    mov (M1, 16) RD(10,0)<1> Q(0,0)<1;1,0>
    mov (M1, 16) RD(12,0)<1> UQ(0,0)<1;1,0>
    add (M1, 16) RF(0,0)<1> SF(0,0)<1;1,0> SF(1,0)<1;1,0>
    mul (M1, 16) RF(1,0)<1> SF(0,0)<1;1,0> SF(1,0)<1;1,0>
    mad (M1, 16) RF(2,0)<1> SF(0,0)<1;1,0> SF(1,0)<1;1,0> (-)SF(1,0)<1;1,0>
    divm (M1, 16) RF(3,0)<1> SF(0,0)<1;1,0> SF(1,0)<1;1,0>
    sqrtm (M1, 16) RF(4,0)<1> SF(0,0)<1;1,0>
    mov (M1, 16) RF(5,0)<1> Q(0,0)<1;1,0>
    mov (M1, 16) RF(6,0)<1> UQ(0,0)<1;1,0>
    mov (M1, 16) RF(7,0)<1> DF(0,0)<1;1,0>
    mov (M1, 16) RF(8,0)<1> (-)Q_ud(0,0)<1;1,0>
    add (M1, 1) RF(9,0)<1> SF(0,12)<0;1,0> SF(1,3)<0;1,0>
"""


@pytest.mark.parametrize(("bits", "keep"), [(0x10, True), (0x20, False), (0x30, True), (0x20, True)])
def test_the_hosts_modes(bits: int, keep: bool) -> None:
    """Native code rounds in the host's modes as semantic functions do, subnormal numbers flushed or not."""
    lines = OPERATIONS.format(bits=hex(bits), keep="or (M1_NM, 1) %cr0(0,0)<1> %cr0(0,0)<0;1,0> 0x4c0:ud" * keep)
    declared = "".join(
        f".decl {name} v_type=G type={kind} num_elts={count} align=wordx32{alias}\n"
        for name, kind, count, alias in (
            ("DF", "df", 32, ""), ("SF", "f", 32, ""), ("Q", "q", 16, ""), ("UQ", "uq", 16, " alias=<Q, 0>"),
            ("Q_ud", "ud", 32, " alias=<Q, 0>"), ("RD", "df", 128, ""), ("RF", "f", 160, ""),
        )
    )  # fmt: skip
    for part in range(7):
        lines += f"    lsc_store.ugm (M1, 1) flat[Out+{128 * part:#x}]:a64 RD.{128 * part}:d64x16t\n"
    for part in range(10):
        lines += f"    lsc_store.ugm (M1, 1) flat[Out+{1024 + 64 * part:#x}]:a64 RF.{64 * part}:d32x16t\n"
    rng = np.random.default_rng(bits)
    with np.errstate(over="ignore"):
        single = np.array(SPECIAL).astype(np.float32)
    whole = rng.integers(-(2**63), 2**63, 16) >> rng.integers(0, 60, 16)
    whole[:2] = 0, -1
    data = [np.array(SPECIAL), rng.permutation(SPECIAL), single, rng.permutation(single), whole]
    kernel = Kernel.from_assembly(HEAD + declared + lines + "    ret (M1, 1)\n", engine="both")
    given, out = np.frombuffer(b"".join(d.tobytes() for d in data), np.uint8).copy(), np.zeros(1664, np.uint8)
    kernel(given, out)
    # Integers of 64 bits, by Python's exact comparison.
    found = out[640:768].view(np.float64)
    side = [int(x) - int(n) for x, n in zip(found.tolist(), whole)]
    ways = {0x10: lambda s, n: s >= 0, 0x20: lambda s, n: s <= 0, 0x30: lambda s, n: s == 0 or (s > 0) == (n < 0)}
    assert all(ways[bits](s, n) for s, n in zip(side, whole)) and any(side)


@pytest.mark.parametrize(
    "lines",
    [
        "mov (M1_NM, 1) %cr0(0,0)<1> D(0,0)<0;1,0>",
        "(P) xor (M1_NM, 1) %cr0(0,0)<1> %cr0(0,0)<0;1,0> 0x30:ud",
        "(P) goto (M1, 1) L\n    xor (M1_NM, 1) %cr0(0,0)<1> %cr0(0,0)<0;1,0> 0x30:ud\nL:",
    ],
)
def test_modes_that_depend_on_the_run_are_refused(lines: str) -> None:
    after = "add (M1, 16) X(0,0)<1> X(0,0)<1;1,0> X(0,0)<1;1,0>"
    [program] = read(Source(f"{HEAD}    {lines}\n    {after}\n    ret (M1, 1)\n", "k.visaasm"))
    [issue] = verify(program, target("pvcxt"))
    assert "depend on the run" in issue.message


def test_modes_on_which_nothing_depends() -> None:
    """Lanes that a payload disables go to the end before the kernel sets its modes."""
    text = HEAD + "    (P) goto (M1, 16) L\n    or (M1_NM, 1) %cr0(0,0)<1> %cr0(0,0)<0;1,0> 0x4c0:ud\n"
    text += "    add (M1, 16) X(0,0)<1> X(0,0)<1;1,0> X(0,0)<1;1,0>\nL:\n    ret (M1, 1)\n"
    [program] = read(Source(text, "k.visaasm"))
    assert verify(program, target("pvcxt")) == []


def test_paths_whose_modes_differ_only_for_other_types() -> None:
    """One path keeps subnormal numbers of df too; what follows flushes those of f on both."""
    text = HEAD + "    (P) goto (M1, 1) L\n    or (M1_NM, 1) %cr0(0,0)<1> %cr0(0,0)<0;1,0> 0x40:ud\nL:\n"
    text += "    add (M1, 16) X(0,0)<1> X(0,0)<1;1,0> X(0,0)<1;1,0>\n    ret (M1, 1)\n"
    [program] = read(Source(text, "k.visaasm"))
    assert verify(program, target("pvcxt")) == []


def test_exceptions_and_denormals_do_not_change_rounding() -> None:
    text = HEAD + "    or (M1_NM, 1) %cr0(0,0)<1> %cr0(0,0)<0;1,0> 0x4c0:ud\n"
    text += "    or (M1_NM, 1) %cr0(0,1)<1> %cr0(0,1)<0;1,0> 0x20000000:ud\n    ret (M1, 1)\n"
    [program] = read(Source(text, "k.visaasm"))
    assert verify(program, target("pvcxt")) == []


@pytest.mark.parametrize(("src", "dst"), [("f", "d"), ("f", "ub"), ("f", "f"), ("hf", "f"), ("bf", "df"), ("d", "uw")])
@pytest.mark.parametrize("direction", ["up", "down", "zero"])
def test_directions_are_of_results_that_are_rounded_to_floats(src, dst, direction):
    """Conversions to integers truncate in every mode, and those to wider floats are exact."""
    bits = TYPES[src].dtype
    values = np.random.default_rng(0).integers(0, 1 << 14, 64).astype(f"u{np.dtype(bits).itemsize}")
    values = (values << 8 * (values.itemsize - 2)).view(bits)
    assert convert_directed(values, src, dst, direction).tobytes() == convert(values, src, dst).tobytes()
