"""Subnormal numbers, which `%cr0` keeps or makes zeros."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

from xegpu_py import Kernel
from xegpu_py.extensions.hardware_check import Engine, products
from xegpu_py.ir.diagnostics import Source
from xegpu_py.numerics.dpas import NARROW, dpas, pack_a, pack_b, unpack_c
from xegpu_py.numerics.formats import BF
from xegpu_py.numerics.systolic import Systolic
from xegpu_py.runtime.options import Options
from xegpu_py.target import TARGETS, target
from xegpu_py.visa.assembly import read
from xegpu_py.visa.fp_modes import KEEPS, SYSTOLIC, keep_subnormals, with_modes

LEAST = np.float32(2.0**-149)
TEXT = """
.version 4.2
.kernel "k"
.decl In v_type=G type=uq num_elts=1 align=qword
.decl Out v_type=G type=uq num_elts=1 align=qword
.decl D v_type=G type=d num_elts=32 align=wordx32
.decl X v_type=G type=f num_elts=16 align=wordx32 alias=<D, 0>
.decl Y v_type=G type=f num_elts=16 align=wordx32 alias=<D, 64>
.decl XH v_type=G type=hf num_elts=32 align=wordx32 alias=<D, 0>
.decl Z v_type=G type=f num_elts=16 align=wordx32
.decl ZD v_type=G type=d num_elts=16 align=wordx32 alias=<Z, 0>
.decl H v_type=G type=hf num_elts=32 align=wordx32 alias=<Z, 0>
.decl P v_type=P num_elts=16
.input In offset=64 size=8
.input Out offset=72 size=8
.kernel_attr Target="cm"
    {modes}
    lsc_load.ugm (M1, 1) D:d32x32t flat[In]:a64
    mov (M1, 16) Z(0,0)<1> 0x0:f
    cmp.lt (M1, 16) P X(0,0)<1;1,0> Y(0,0)<1;1,0>
    {instruction}
    lsc_store.ugm (M1, 1) flat[Out]:a64 Z:d32x16t
    ret (M1, 1)
"""
F_OPERANDS = "X(0,0)<1;1,0> Y(0,0)<1;1,0>"
"""Sources of f: X of some that are normal, subnormal and zero; Y others."""

X = np.array([3, -3, 0, 2**23, -(2**23), 2**24, 5, -5, 2**22, 1, -1, 2**25, 7, 9, 2**23 + 1, -0.0], np.float32) * LEAST
Y = np.array([1, 1, -7, 1, 3, 2, 2**24, 2**23, -1, 0, 2**24, 2, 2**30, -7, -1, 3], np.float32) * LEAST


def zeros(x: np.ndarray) -> np.ndarray:
    """The numbers with zeros of their signs in place of subnormal ones, by comparison with the least normal one."""
    return np.where(np.abs(x) < np.finfo(x.dtype).smallest_normal, np.copysign(x.dtype.type(0), x), x)


def run(instruction: str, bits: int, x: np.ndarray, dtype: type) -> np.ndarray:
    modes = f"or (M1_NM, 1) %cr0(0,0)<1> %cr0(0,0)<0;1,0> {bits:#x}:ud" if bits else ""
    out = np.zeros(64 // np.dtype(dtype).itemsize, dtype)
    kernel = Kernel.from_assembly(TEXT.format(modes=modes, instruction=instruction), engine="both")
    kernel(x.view(np.float32), out)
    return out[:16]


def halves(x: np.ndarray) -> np.ndarray:
    with np.errstate(under="ignore"):
        return x.astype(np.float16)


FLOATS = {
    f"add (M1, 16) Z(0,0)<1> {F_OPERANDS}": lambda x, y: x + y,
    f"add.sat (M1, 16) Z(0,0)<1> {F_OPERANDS}": lambda x, y: np.maximum(x + y, 0),
    f"mad (M1, 16) Z(0,0)<1> {F_OPERANDS} X(0,0)<1;1,0>": lambda x, y: x * y + x,
    f"min (M1, 16) Z(0,0)<1> {F_OPERANDS}": np.minimum,
    "mul (M1, 16) Z(0,0)<1> (-)X(0,0)<1;1,0> 0x3f000000:f": lambda x, y: x * np.float32(-0.5),
    "rndd (M1, 16) Z(0,0)<1> X(0,0)<1;1,0>": lambda x, y: np.floor(x),
    "mov.sat (M1, 16) Z(0,0)<1> X(0,0)<1;1,0>": lambda x, y: np.maximum(x, 0),
}


@pytest.mark.parametrize("instruction", FLOATS)
def test_arithmetic(instruction: str) -> None:
    own, both = FLOATS[instruction], np.concatenate([X, Y])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(instruction, KEEPS["f"], both, np.float32), own(X, Y))
        wanted = zeros(own(zeros(X), zeros(Y)))
    assert (wanted != own(X, Y)).any()
    found = run(instruction, KEEPS["hf"] | KEEPS["df"], both, np.float32)
    np.testing.assert_array_equal(found, wanted)


def test_sums_that_are_subnormal_in_f_and_normal_in_bf() -> None:
    """The greatest subnormal number of f is a zero of the sum, though as bf it would round to a normal number."""
    decl = ".decl B v_type=G type=bf num_elts=32 align=wordx32 alias=<Z, 0>\n.decl P v_type=P"
    x = np.full(16, 2**23 - 1, np.float32) * LEAST
    x[1::2] += LEAST
    for bits in (0, KEEPS["f"]):
        modes = f"or (M1_NM, 1) %cr0(0,0)<1> %cr0(0,0)<0;1,0> {bits:#x}:ud" if bits else ""
        text = TEXT.format(modes=modes, instruction="add (M1, 16) B(0,0)<1> X(0,0)<1;1,0> Y(0,0)<1;1,0>")
        out = np.zeros(32, np.uint16)
        kernel = Kernel.from_assembly(text.replace(".decl P v_type=P", decl), engine="both")
        # Where both terms are subnormal they are zeros already; a difference of normal numbers is not.
        kernel(np.concatenate([x + 2**23 * LEAST, np.full(16, -(2**23), np.float32) * LEAST]), out)
        subnormal = 0x0080 if bits else 0
        assert out[:16].tolist() == [subnormal, 0x0080] * 8, bits


def test_copies_keep_them() -> None:
    both = np.concatenate([X, Y])
    np.testing.assert_array_equal(run("mov (M1, 16) Z(0,0)<1> (-)X(0,0)<1;1,0>", 0, both, np.float32), -X)
    found = run(f"(P) sel (M1, 16) Z(0,0)<1> {F_OPERANDS}", 0, both, np.float32)
    np.testing.assert_array_equal(found, np.where(zeros(X) < zeros(Y), X, Y))


def test_comparisons() -> None:
    for bits, change in ((0, zeros), (KEEPS["f"], lambda x: x)):
        found = run(f"cmp.lt (M1, 16) ZD(0,0)<1> {F_OPERANDS}", bits, np.concatenate([X, Y]), np.int32)
        np.testing.assert_array_equal(found, np.where(change(X) < change(Y), -1, 0))


def test_each_format_has_its_bit() -> None:
    wide = np.float32(2.0**-24) * np.array([1, 2**10, 1023, 3, -5, 2**11, 0, 2**9, *range(8)], np.float32)
    both = np.concatenate([wide, Y])
    for bits in (0, KEEPS["f"], KEEPS["hf"]):
        kept = (lambda x: x) if bits & KEEPS["hf"] else zeros
        found = run("mov (M1, 16) H(0,0)<1> X(0,0)<1;1,0>", bits, both, np.float16)
        np.testing.assert_array_equal(found, kept(halves(wide)))
        source = np.concatenate([halves(wide), np.zeros(48, np.float16)])
        found = run("mov (M1, 16) Z(0,0)<1> XH(0,0)<1;1,0>", bits, source, np.float32)
        np.testing.assert_array_equal(found, kept(halves(wide)).astype(np.float32))


def test_divm_reads_them() -> None:
    """IGC expands divm to code that keeps subnormal numbers until a last multiplication by one."""
    instruction = "divm (M1, 16) Z(0,0)<1> X(0,0)<1;1,0> Y(0,0)<1;1,0>"
    x, y = X + LEAST, np.full(16, 2**20, np.float32) * LEAST
    np.testing.assert_array_equal(run(instruction, 0, np.concatenate([x, y]), np.float32), x / y)


@pytest.mark.parametrize("name", ["pvcxt", "bmg"])
def test_kernels_keep_all(name: str) -> None:
    text = TEXT.format(modes="", instruction=f"add (M1, 16) Z(0,0)<1> {F_OPERANDS}")
    [program] = read(Source(text, "k.visaasm"))
    assert any(inst.flushed for inst in with_modes(program, target(name)).instructions)
    first = keep_subnormals(target(name))
    kept = program.with_instructions((first, *program.instructions))
    assert not any(inst.flushed for inst in with_modes(kept, target(name)).instructions)
    assert bool(first["src1"].bits & SYSTOLIC) == (name == "bmg")


def test_products_of_bf() -> None:
    """The bit of bmg: factors, and accumulators and results of bf; not accumulators of f."""
    rng = np.random.default_rng(1)
    least, normal = np.float32(2.0**-133), np.float32(2.0**-126)
    a = (rng.integers(-200, 200, (8, 16)).astype(np.float32) * least).astype(BF.dtype)
    b, c = np.eye(16, dtype=BF.dtype), np.full((8, 16), 3, np.float32) * LEAST
    types = {"W": "bf", "A": "bf", "SD": 8, "RC": 8, "exec_size": 16}
    operands = pack_b(b, "bf"), pack_a(a, "bf")
    f = dpas(c.view(np.uint8).ravel(), *operands, **types, dst_type="f", src0_type="f", flushed=("bf",))
    wide = a.astype(np.float32)
    flushed = np.where(np.abs(wide) < normal, 0, wide)
    assert (flushed != wide).any() and (flushed != 0).any()
    np.testing.assert_array_equal(unpack_c(f, 8, 16, "f"), flushed + c)
    c = np.full((8, 16), -normal, np.float32).astype(BF.dtype)
    bf = dpas(c.view(np.uint8).ravel(), *operands, **types, dst_type="bf", src0_type="bf", flushed=("bf",))
    total = (flushed - normal).astype(BF.dtype).astype(np.float32)
    wanted = np.where(np.abs(total) < normal, 0, total)
    np.testing.assert_array_equal(unpack_c(bf, 8, 16, "bf").astype(np.float32), wanted)


@pytest.mark.parametrize("choice", ["keep", "flush"])
def test_products_on_gpus_without_a_bit(choice: str) -> None:
    """The native code against the model whose factors of bf are zeros, and bmg, where the program chooses."""
    gpu = target("pvcxt")
    for product in products(gpu):
        if product.what in ("flushed bf", "flushed bf sums", "flushed tf32", "flushed hf"):
            model = Systolic(flushed=("bf", "bf sums", "tf32") if choice == "flush" else ())
            found = Engine("pvcxt", engine="both", dpas_denormals=choice).run(product.check(gpu))
            np.testing.assert_array_equal(found.astype(np.float32), product.result(model).astype(np.float32))


def test_what_the_option_refuses() -> None:
    with pytest.raises(ValueError, match="the engine 'reference' keeps subnormal numbers"):
        Options.from_keywords(engine="reference", target="any", dpas_denormals="flush")
    with pytest.raises(ValueError, match="kernels for target bmg choose it"):
        Options.from_keywords(target="bmg", dpas_denormals="flush")
    with pytest.raises(ValueError, match="must be one of keep, flush"):
        Options.from_keywords(target="pvc", dpas_denormals="zero")
    for name in TARGETS.keys() - {"bmg", "lnl", "ptl", "virtual"}:
        assert Options.from_keywords(target=name, dpas_denormals="flush").dpas_denormals == "flush"


@pytest.mark.parametrize("choice", ["keep", "flush"])
@pytest.mark.parametrize("name", ["cri", "any"])
@pytest.mark.parametrize("bit", [0, SYSTOLIC])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.each_value
def test_products_of_narrow_floats(name: str, choice: str, bit: int, scaled: bool) -> None:
    """No source decides without the bit; with it, cri keeps all, and `any` has no bit. Without scales bdpas is dpas."""
    gpu = target(name)
    first = f"{keep_subnormals(gpu)['src1'].bits:#x}:ud"
    for product in products(gpu):
        if product.what not in ("flushed bf8", "flushed hf8", "flushed e2m1"):
            continue
        check = product.check(gpu)
        assert check.text.count(first) == 1
        text = check.text.replace(first, f"{sum(KEEPS.values()) | bit:#x}:ud")
        if scaled:
            text = text.replace("    dpas.", "    bdpas.").replace("B.0 A(0,0)", "B.0 A.0 %null(0,0) %null(0,0)")
        check = structs.replace(check, text=text)
        assert ("bdpas" in text) == scaled
        zeros = choice == "flush" and not (bit and name == "cri")
        wanted = product.result(Systolic(flushed=NARROW if zeros else ()))
        assert (wanted != product.result(Systolic(flushed=() if zeros else NARROW))).any()
        found = Engine(name, engine="both", dpas_denormals=choice).run(check)
        np.testing.assert_array_equal(found.view(np.uint32), wanted.view(np.uint32))
