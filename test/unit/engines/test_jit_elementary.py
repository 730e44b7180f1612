"""Elementary functions in native code: every doubtful estimate is found."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

import xegpu_py
from xegpu_py.engines.jit.host import VARIABLE, host_by_name
from xegpu_py.engines.jit.native_launch_struct import TABLES
from xegpu_py.engines.jit.rules import elementary
from xegpu_py.runtime.kernel import Kernel

SURFACE = "flat[{},0x3f,H(0,0),0x3f,0x0,Y(0,0)]"
HEAD = """\
.version 3.8
.kernel "rows"
.decl In v_type=G type=uq num_elts=1 align=qword
.decl Out v_type=G type=uq num_elts=1 align=qword
.decl H v_type=G type=d num_elts=1 align=dword
.decl Y v_type=G type=d num_elts=1 align=dword
.decl A v_type=G type=f num_elts=128 align=GRF
.decl B v_type=G type=f num_elts=128 align=GRF
.input In offset=64 size=8
.input Out offset=72 size=8
.input H offset=80 size=4
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
"""


def text(body: str) -> str:
    """A kernel of which each thread loads A, 8 rows, and stores B, which is A before the body."""
    copies = "".join(f"    mov (M1_NM, 16) B({i},0)<1> A({i},0)<1;1,0>\n" for i in range(8))
    return (
        HEAD
        + "    or (M1_NM, 1) %cr0(0,0)<1> %cr0(0,0)<0;1,0> 0x4c0:ud\n"
        + "    mul (M1_NM, 1) Y(0,0)<1> %group_id_x(0,0)<0;1,0> 0x8:ud\n"
        + f"    lsc_load_block2d.ugm (M1_NM, 1) A.0:d32.16x8nn {SURFACE.format('In(0,0)')}\n"
        + copies
        + body
        + f"    lsc_store_block2d.ugm (M1_NM, 1) {SURFACE.format('Out(0,0)')} B.0:d32.16x8nn\n    ret (M1, 1)\n"
    )


def run(body: str, values: np.ndarray) -> None:
    """Run a kernel on both engines, which must agree."""
    kernel = Kernel.from_assembly(text(body), target="any", engine="both")
    given = xegpu_py.zeros_aligned((len(values) // 16, 16), np.float32)
    given[...] = values.reshape(given.shape)
    kernel(given, np.zeros_like(given), len(given) - 1, grid=len(values) // 128)


def rows(name: str, source: str = "A") -> str:
    """The function of the rows of a variable, written to B."""
    return "".join(f"    {name} (M1, 16) B({row},0)<1> {source}({row},0)<1;1,0>\n" for row in range(8))


def awkward(count: int) -> np.ndarray:
    """Numbers of all magnitudes, and those at which powers overflow, become subnormal, and become zero."""
    rng = np.random.default_rng(5)
    found = rng.integers(0, 1 << 32, count, np.uint32).view(np.float32)
    near = rng.uniform(-152, 130, count).astype(np.float32)
    found = np.where(rng.random(count) < 0.2, found, near)
    # Powers so close to the middle between two numbers that a polynomial of fewer coefficients is on its wrong side.
    wrong = [0x41CCE076, 0xC166A146, 0x4276703B, 0x418F382B, 0xC2398FC5, 0x41F74BA5, 0x4206703B, 0xC2518FC5]
    found[-len(wrong) :] = np.array(wrong, np.uint32).view(np.float32)
    edges = [np.inf, -np.inf, np.nan, 0, -0.0, 1, 128, -126, -149, -149.5, -150, -151, 1e-10, -1e-10, 0.5, -0.5]
    found[: len(edges)] = edges
    return found


@pytest.mark.parametrize("name", TABLES)
def test_many_numbers(name: str) -> None:
    values = awkward(1 << 12)
    if name in ("sin", "cos"):
        values = np.clip(values, -1e5, 1e5)
    run(rows(name), values)


HERE = [name for name in ("x86-64", "haswell", "skylake-avx512", "neoverse-n1") if host_by_name(name).runs_here]
"""Hosts that compute powers in f64, and by tables of 8 and of 16 roots."""


@pytest.mark.parametrize("host", HERE)
def test_powers_of_arguments_of_all_sizes(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """About every 2,000th number whose power is between zero and infinity. (All were compared once by hand.)"""
    monkeypatch.setenv(VARIABLE, host)
    greatest = (np.array([128.5, -152], np.float32).view(np.uint32) & 0x7FFFFFFF).astype(np.int64)
    bits = np.concatenate([np.linspace(0, last, 1 << 19, dtype=np.int64) for last in greatest])
    bits[1 << 19 :] |= 0x80000000
    arguments = bits.astype(np.uint32).view(np.float32).reshape(-1, 16)
    kernel = Kernel.from_assembly(text(rows("exp")), target="any", engine="jit")
    given, found = xegpu_py.zeros_aligned(arguments.shape, np.float32), np.zeros_like(arguments)
    given[...] = arguments
    kernel(given, found, len(given) - 1, grid=len(given) // 8)
    with np.errstate(over="ignore"):
        wanted = np.exp2(arguments.astype(np.float64)).astype(np.float32)
    # numpy's own f64 power may be on the wrong side of the middle between two f32 numbers.
    for argument, mine, other in zip(*(x[found != wanted].tolist() for x in (arguments, found, wanted))):
        with localcontext() as context:
            context.prec = 60
            exact = 2 ** Decimal(argument)
            assert abs(Decimal(mine) - exact) < abs(Decimal(other) - exact)


@pytest.mark.usefixtures("own_code")
def test_doubt_of_the_long_polynomial(monkeypatch: pytest.MonkeyPatch) -> None:
    """The semantic function computes the doubtful results: with so wide a bound, most of them."""
    for bound in ("_BOUND", "_POWER_BOUND"):
        monkeypatch.setattr(elementary, bound, 2.0**-26)
    monkeypatch.setattr(elementary, "_LEAST_BOUND", 2.0**-24)
    run(rows("exp"), awkward(256))
    run(rows("exp", source="B"), awkward(256))
    run(rows("rsqrt"), awkward(256))
