"""Packed operands that threads share, and products that wait in a queue: no thread sees old data or old sums."""

from __future__ import annotations

import math
import random
import re

import numpy as np
import pytest

from xegpu_py.engines.jit import engine, packed_operand_cache
from xegpu_py.engines.jit.host import VARIABLE, chosen_host, host_by_name, native_host
from xegpu_py.engines.jit.thread_function import functions_of_program
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.runtime.kernel import Kernel

HEAD = """\
.version 3.8
.kernel "panels"
.decl In v_type=G type=uq num_elts=1 align=qword
.decl Out v_type=G type=uq num_elts=1 align=qword
.decl A v_type=G type=ud num_elts=64 align=GRF
.decl B v_type=G type=ud num_elts=128 align=GRF
.decl A2 v_type=G type=ud num_elts=64 align=GRF
.decl B2 v_type=G type=ud num_elts=128 align=GRF
.decl A3 v_type=G type=ud num_elts=64 align=GRF
.decl B3 v_type=G type=ud num_elts=128 align=GRF
.decl C v_type=G type=f num_elts=128 align=GRF
.decl D v_type=G type=f num_elts=128 align=GRF
.decl Z v_type=G type=ud num_elts=16 align=GRF
.decl Place v_type=G type=uq num_elts=16 align=GRF
.decl I v_type=G type=d num_elts=1 align=dword
.decl X v_type=G type=d num_elts=1 align=dword
.decl Y v_type=G type=d num_elts=1 align=dword
.decl W v_type=G type=d num_elts=1 align=dword
.decl P v_type=P num_elts=1
.input In offset=64 size=8
.input Out offset=72 size=8
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
"""
ROWS, BYTES = 64, 128
SURFACE = f"0x{BYTES - 1:x},0x{ROWS - 1:x},0x{BYTES - 1:x}"
LOADS = f"""\
    lsc_load_block2d.ugm (M1, 1) A.0:d16.16x8nn flat[In,{SURFACE},X(0,0),0x0]
    lsc_load_block2d.ugm (M1, 1) B.0:d16.16x16nt flat[In,{SURFACE},0x8,Y(0,0)]
"""
SET = "    mov (M1, 1) X(0,0)<1> 0x0:d\n    mov (M1, 1) Y(0,0)<1> 0x2:d\n"
CLEAR = "".join(f"    mov (M1, 16) {v}({r},0)<1> 0x0:f\n" for v in "CD" for r in range(8))
PRODUCT = "    dpas.bf.bf.8.8 (M1, 16) C.0 C.0 B.0 A(0,0)\n"
# Threads have their number in the third dword of r0.
RESULTS = "".join(
    f"    lsc_store_block2d.ugm (M1, 1) flat[Out,0x3f,0x7f,0x3f,0x0,{y}(0,0)] {v}.0:d32.16x8nn\n"
    for v, y in (("C", "X"), ("D", "Y"))
)
STORE = f"""\
    shl (M1, 1) X(0,0)<1> %r0(0,2)<0;1,0> 0x4:uw
    add (M1, 1) Y(0,0)<1> X(0,0)<0;1,0> 0x8:d
{RESULTS}    ret (M1, 1)
"""


def compiled(body: str, engine: str = "both") -> Kernel:
    return Kernel.from_assembly(HEAD + SET + CLEAR + body + STORE, target="any", engine=engine)


def text_of(kernel: Kernel) -> str:
    own = kernel.executor.interpreter
    return "".join(functions_of_program(own.program, own.layout, own.model, native_host(), False, False))


def arrays() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal((ROWS, BYTES // 2)).astype(np.float32)
    return (numbers.view(np.uint32) >> 16).astype(np.uint16), np.zeros((128, 16), np.float32)


def run(body: str, threads: int) -> str:
    """Run a program on both engines, which must agree in all bytes. Returns the text of its native code."""
    kernel = compiled(body)
    kernel(*arrays(), block=threads)
    return text_of(kernel)


FLAT = "    mov (M1, 16) Z(0,0)<1> 0x40004000:ud\n    mov (M1, 16) Place(0,0)<1> In(0,0)<0;1,0>\n"
STORES = {
    "block": f"    lsc_store_block2d.ugm (M1, 1) flat[In,{SURFACE},0x0,0x2] D.0:d32.16x8nn\n",
    "flat": FLAT + "    lsc_store.ugm (M1, 1) flat[Place]:a64 Z:d32\n",
    "atomic": FLAT + "    lsc_atomic_store.ugm (M1, 1) %null:d32 flat[Place]:a64 Z %null\n",
}


@pytest.mark.parametrize("kind", STORES)
def test_stores_are_seen(kind: str) -> None:
    text = run(LOADS + PRODUCT + STORES[kind] + LOADS + PRODUCT, 1)
    assert "@make_load2d" in text


@pytest.mark.parametrize("kind", STORES)
def test_stores_of_others_are_seen(kind: str) -> None:
    """One thread stores between two barriers; all threads load before and after them."""
    first = "    cmp.eq (M1, 1) P %r0(0,2)<0;1,0> 0x0:ud\n    (!P) jmp (M1, 1) Others\n"
    run(LOADS + PRODUCT + "    barrier\n" + first + STORES[kind] + "Others:\n    barrier\n" + LOADS + PRODUCT, 5)


SECOND = (LOADS + PRODUCT).replace("A.0", "A2.0").replace("B.0", "B2.0").replace("A(0,0)", "A2(0,0)")
AFTER_A_SIGNAL = f"""\
    cmp.eq (M1, 1) P %r0(0,2)<0;1,0> 0x0:ud
    (P) jmp (M1, 1) First
    sbarrier.signal
{LOADS}{PRODUCT}    jmp (M1, 1) Done
First:
{SECOND}    sbarrier.signal
    sbarrier.wait
    STORES
Done:
"""


def test_races_are_looked_for_in_each_thread() -> None:
    """A thread makes a panel, which another one multiplies after its signal; then the first changes the block."""
    for stores in ("", STORES["flat"]):
        body = HEAD + SET + CLEAR + AFTER_A_SIGNAL.replace("    STORES\n", stores) + STORE
        kernel = Kernel.from_assembly(body, target="any", check="races", engine="jit", threads=1)
        if not stores:
            kernel(*arrays(), block=2)
            assert "@make_load2d" in text_of(kernel)
            continue
        with pytest.raises(DiagnosticError, match="writes byte 0 of 'In', which another thread has read"):
            kernel(*arrays(), block=2)


@pytest.mark.usefixtures("own_code")
@pytest.mark.parametrize("hashes", ["two hashes", "one hash"])
def test_other_allocations_do_not_matter(hashes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store to another array leaves panels to be found, as one of a GEMM's threads does at its end."""
    if hashes == "one hash":
        for factor in ("first_factor", "second_factor"):
            monkeypatch.setitem(packed_operand_cache.WORDS, factor, 1)
    kernel = compiled(LOADS + PRODUCT, engine="jit")
    kernel(*arrays(), block=8)
    (worker,) = kernel.executor.jit._spare
    assert worker._panels is not None
    assert worker._panels.total_bytes == sum(map(packed_operand_cache.panel_stride, (8 * 16 * 4, 16 * 16 * 4)))


def place_of(grid: tuple[int, ...], block: int) -> str:
    """Set Y to 8 times the number of the thread in its launch."""
    steps = (
        ("mul", "%group_id_z(0,0)<0;1,0>", f"0x{grid[1]:x}:d"),
        ("add", "Y(0,0)<0;1,0>", "%group_id_y(0,0)<0;1,0>"),
        ("mul", "Y(0,0)<0;1,0>", f"0x{grid[0]:x}:d"),
        ("add", "Y(0,0)<0;1,0>", "%group_id_x(0,0)<0;1,0>"),
        ("mul", "Y(0,0)<0;1,0>", f"0x{8 * block:x}:d"),
        ("shl", "X(0,0)<1> %r0(0,2)<0;1,0>", "0x3:uw"),
        ("add", "Y(0,0)<0;1,0>", "X(0,0)<0;1,0>"),
    )
    return "".join(
        f"    {name} (M1, 1) {'' if name == 'shl' else 'Y(0,0)<1> '}{first} {second}\n" for name, first, second in steps
    )


@pytest.mark.parametrize(
    ("grid", "block", "inner", "shape"),
    [
        ((8, 4, 3), 1, "", (8, 4)),
        ((2, 6), 8, "", (2, 2)),
        ((3, 5), 4, "", (1, 1)),
        ((4, 4), 2, "    barrier\n", (1, 1)),
    ],
)
def test_workgroups_run_together(
    grid: tuple[int, ...], block: int, inner: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are beside each other in x and y, of which each thread stores where its own place says."""
    found = []
    own = engine.Jit._side_by_side

    def spy(jit: engine.Jit, launch: engine.NativeLaunch, workers: int) -> engine.NativeLaunch:
        found.append(own(jit, launch, workers))
        return found[-1]

    monkeypatch.setattr(engine.Jit, "_side_by_side", spy)
    rows = 8 * math.prod(grid) * block
    body = HEAD + SET + CLEAR + LOADS + PRODUCT + inner + place_of(grid, block)
    body += f"""\
    mov (M1, 1) C(0,0)<1> Y(0,0)<0;1,0>
    lsc_store_block2d.ugm (M1, 1) flat[Out,0x3f,0x{rows - 1:x},0x3f,0x0,Y(0,0)] C.0:d32.16x8nn
    ret (M1, 1)
"""
    out = np.zeros((rows, 16), np.float32)
    Kernel.from_assembly(body, target="any", threads=1, engine="both")(arrays()[0], out, grid=grid, block=block)
    assert out[::8, 0].tolist() == list(range(0, rows, 8))
    assert [(launch.across, launch.down) for launch in found] == [shape]


def test_refused_in_one_of_those_that_run_together() -> None:
    """The message names the thread."""
    bad = "    mov (M1, 16) Place(0,0)<1> 0x0:uq\n" + STORES["flat"].replace(FLAT, "")
    skip = f"    cmp.eq (M1, 1) P Y(0,0)<0;1,0> 0x{8 * 77:x}:d\n    (!P) jmp (M1, 1) End\n"
    body = HEAD + SET + CLEAR + LOADS + PRODUCT + place_of((4, 4, 2), 4) + skip + bad + "End:\n    ret (M1, 1)\n"
    found = []
    for name in ("interpreter", "jit"):
        with pytest.raises(DiagnosticError) as error:
            Kernel.from_assembly(body, target="any", engine=name)(*arrays(), grid=(4, 4, 2), block=4)
        found.append(str(error.value))
    assert found[0] == found[1]
    assert "workgroup" in found[0]


def loop(count: int, inner: str = "", product: str = PRODUCT, change: str = "") -> str:
    """A loop that loads other blocks in each iteration, and out-of-bounds blocks at the end."""
    return f"""\
    mov (M1, 1) I(0,0)<1> 0x0:d
Again:
{LOADS}{product}{inner}    add (M1, 1) X(0,0)<1> X(0,0)<0;1,0> 0x8:d
    and (M1, 1) X(0,0)<1> X(0,0)<0;1,0> 0x3f:d
    add (M1, 1) Y(0,0)<1> Y(0,0)<0;1,0> 0x1:d
    add (M1, 1) I(0,0)<1> I(0,0)<0;1,0> 0x1:d
{change}    cmp.lt (M1, 1) P I(0,0)<0;1,0> 0x{count:x}:d
    (P) jmp (M1, 1) Again
"""


@pytest.mark.each_value
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("count", [1, 2, 4, 7, 100])
def test_products_of_loops_wait(count: int, threads: int) -> None:
    """Loops of any number of steps, also if threads yield in between."""
    assert "@flush_" in run(loop(count), threads)


@pytest.mark.skipif(not host_by_name("haswell").runs_here, reason="the machine does not run this code")
@pytest.mark.parametrize("kinds", ["s8.s8", "u8.s8", "u8.u8"])
def test_bytes_wait_as_words(kinds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On hosts that multiply words, panels of bytes hold words, which are added to integer sums in the same way."""
    monkeypatch.setenv(VARIABLE, "haswell")
    declared = ".decl S v_type=G type=d num_elts=128 align=GRF alias=<C,0>\n.decl Z "
    product = f"    dpas.{kinds}.8.8 (M1, 16) S.0 S.0 B.0 A(0,0)\n"
    body = loop(7, product=product).replace("d16.16x8nn", "d8.32x8nn").replace("d16.16x16nt", "d8.16x32nt")
    text = HEAD.replace(".decl Z ", declared) + SET + CLEAR + body + STORE
    kernel = Kernel.from_assembly(text, target="any", engine="both")
    given, out = arrays()
    kernel(given, out, block=3)
    assert out.any()
    own = kernel.executor.interpreter
    written = "".join(functions_of_program(own.program, own.layout, own.model, chosen_host(), False, False))
    assert "@flush_" in written and "i32x2" not in written


def test_blocks_of_later_steps_are_prefetched() -> None:
    """Of B, whose place a loop moves on by 1 in each step, the block 8 steps on; of A, whose place it masks, none."""
    steps = re.findall(r"call i64 @load2d_\w+_as_(a|b16)_bf\(.*, i64 (-?\d+)\)", run(loop(3), 3))
    assert steps == [("a", "0"), ("b16", "8")]


def test_lines_to_prefetch_are_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that makes a panel lists the lines of B's blocks 8 steps ahead. Only listed lines are prefetched."""
    made: list[packed_operand_cache.Panels] = []
    begin = packed_operand_cache.Panels.begin
    monkeypatch.setattr(
        packed_operand_cache.Panels, "begin", lambda self, *given: (made.append(self), begin(self, *given))
    )
    kernel = compiled(loop(7), engine="jit")
    given, out = arrays()
    kernel(given, out, block=3)
    memory = made[0]._memory
    lines = memory[packed_operand_cache._LINES // 8 :][: 7 * 16]
    # Threads begin at row 2.
    assert ((lines - lines[0]) // BYTES).tolist() == [step + row for step in range(7) for row in range(16)]
    assert lines[0] % 8 == 0 and made[0]._fields.cursor <= made[0]._fields.lines_end


@pytest.mark.parametrize("ring", [0, 1 << 16])
@pytest.mark.parametrize("start", [0x8, 0x28, 0x38, 0x7FFFFFF8])
def test_blocks_side_by_side(start: int, ring: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of two messages are one panel in every fourth thread, also where they reach out of the surface;
    in the others the second block begins elsewhere: 8 columns on or 2 rows down."""
    monkeypatch.setattr(packed_operand_cache, "_RING_BYTES", ring)
    place = f"""\
    and (M1, 1) W(0,0)<1> %r0(0,2)<0;1,0> 0x1:uw
    shl (M1, 1) W(0,0)<1> W(0,0)<0;1,0> 0x3:uw
    add (M1, 1) W(0,0)<1> W(0,0)<0;1,0> 0x{(start + 16) % (1 << 32):x}:ud
    and (M1, 1) V(0,0)<1> %r0(0,2)<0;1,0> 0x2:uw
"""
    declared = ".decl V v_type=G type=d num_elts=1 align=dword\n"
    second = re.sub(r"B\.0.*", f"B2.0:d16.16x16nt flat[In,{SURFACE},W(0,0),U(0,0)]", LOADS.splitlines()[1]) + "\n"
    loads = LOADS.replace("0x8,Y", f"0x{start:x},Y") + second
    product = PRODUCT + PRODUCT.replace("B.0", "B2.0")
    body = place + loop(6, product=product).replace(
        LOADS, "    add (M1, 1) U(0,0)<1> Y(0,0)<0;1,0> V(0,0)<0;1,0>\n" + loads
    )
    text = HEAD + declared + declared.replace("V ", "U ") + SET + CLEAR + body + STORE
    kernel = Kernel.from_assembly(text, target="any", engine="both")
    kernel(*arrays(), block=8)
    assert "@load2d_d16_2x16x16nt_as_b16_bf" in text_of(kernel)


def test_as_many_steps_wait_as_the_cache_holds() -> None:
    """For a subgroup's tile of 32x64: 4 steps of bf16, 8 of tf32, which are half as long, and 2 of f8."""
    sizes = (4160 + 2 * 4160, 2112 + 4 * 1088, 8256 + 2 * 8256)
    assert [packed_operand_cache.steps_together(size) for size in (*sizes, 1 << 20, 1)] == [4, 8, 2, 1, 8]


def test_loops_behind_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the shortest possible ring, so that panels are soon replaced."""
    monkeypatch.setattr(packed_operand_cache, "_RING_BYTES", 0)
    second = PRODUCT.replace("C.0", "D.0")
    body = loop(7)
    for number, text in ((2, loop(5, product=PRODUCT + second)), (3, loop(6, product=second))):
        body += SET + re.sub(r"\b([AB])(?=[.(])", rf"\g<1>{number}", text).replace("Again", f"Loop{number}")
    assert run(body, 3).count("call void @flush_") >= 6


@pytest.mark.parametrize(
    ("inner", "product"),
    [
        ("    add (M1, 16) D(0,0)<1> D(0,0)<1;1,0> C(1,0)<1;1,0>\n", PRODUCT),
        ("    mov (M1, 16) C(3,0)<1> 0x3f800000:f\n", PRODUCT),
        ("", PRODUCT.replace("C.0 C.0", "C.0 %null.0")),
        ("", PRODUCT.replace("C.0 C.0", "D.0 C.0")),
        ("Label:\n", PRODUCT),
    ],
    ids=["read", "written", "no sum", "other sum", "two blocks"],
)
def test_products_that_do_not_wait(inner: str, product: str) -> None:
    assert "@flush_" not in run(loop(6, inner, product), 3)


def test_refused_in_the_middle() -> None:
    """A surface that is refused in a later step: the message is the interpreter's, and so are the sums."""
    narrow = LOADS.replace(f"0x{BYTES - 1:x},0x{ROWS - 1:x}", f"W(0,0),0x{ROWS - 1:x}")
    width = f"    mov (M1, 1) W(0,0)<1> 0x{BYTES - 1:x}:d\n"
    change = "    shl (M1, 1) Z(0,0)<1> I(0,0)<0;1,0> 0x10:uw\n    add (M1, 1) W(0,0)<1> Z(0,0)<0;1,0> 0x7f:d\n"
    found = []
    for name in ("interpreter", "jit"):
        body = width + loop(6, change=change).replace(LOADS, narrow)
        with pytest.raises(DiagnosticError) as error:
            compiled(body, name)(*arrays(), block=2)
        found.append(str(error.value))
    assert found[0] == found[1]
    assert "lsc_load_block2d" in found[0]


def test_random_blocks() -> None:
    """Blocks of several shapes and surfaces; some are equal, and some are partly or wholly out of bounds."""
    rng = random.Random(0)
    body = ""
    for _ in range(100):
        surface = rng.choice([SURFACE, SURFACE.replace("3f", "1f"), SURFACE.replace("7f", "3f", 1)])
        x, y = (rng.choice([0, 24, 60, -4]) & 0xFFFFFFFF for _ in range(2))
        variable, block = rng.choice(
            [("A", "d16.16x8nn"), ("A", "d32.8x8nn"), ("B", "d16.16x16nt"), ("B", "d32.16x8nn")]
        )
        place = f"flat[In,{surface},0x{x:x},0x{y:x}]"
        both = LOADS if variable == "A" else ""
        body += both + f"    lsc_load_block2d.ugm (M1, 1) {variable}.0:{block} {place}\n"
        body += ("" if both else LOADS.splitlines(True)[0]) + PRODUCT
    run(body, 4)


@pytest.mark.parametrize(("then", "kept"), [("", "01"), ("    mov (M1, 16) D(2,0)<1> E(5,0)<1;1,0>\n", "11")])
def test_which_results_are_stored(then: str, kept: str) -> None:
    """The first one of two products only if something but the second one reads it, also if it replaces its addend."""
    addend = "".join(f"    mov (M1, 16) E({r},0)<1> 0x3f800000:f\n" for r in range(8))
    products = PRODUCT.replace("C.0 C.0", "E.0 E.0") + PRODUCT.replace("C.0 C.0", "C.0 E.0")
    declared = ".decl E v_type=G type=f num_elts=128 align=GRF\n.decl Z "
    text = HEAD.replace(".decl Z ", declared) + SET + CLEAR + addend + LOADS + products + then + STORE
    kernel = Kernel.from_assembly(text, target="any", engine="both")
    kernel(*arrays(), block=2)
    assert re.findall(r"call void @multiply_\w+_([01]+)\(", text_of(kernel)) == [kept]


OTHERS = LOADS.replace("A.0", "A2.0").replace("B.0", "B2.0").replace("0x0]", "0x10]")
SECOND = PRODUCT.replace("B.0 A(", "B2.0 A2(")
FIRST = PRODUCT.replace("C.0 C.0", "C.0 %null.0")
ONE_CALL = ["none_8x16x16_1_01"]
TWO_CALLS = ["none_8x16x16_1_1", "f_8x16x16_1_1"]
BETWEEN = {
    "nothing": (OTHERS, "", SECOND, ONE_CALL),
    "loads of other panels": ("", OTHERS, SECOND, ONE_CALL),
    "loads of what was multiplied": ("", LOADS.replace("0x0]", "0x10]"), PRODUCT, TWO_CALLS),
    "a label": ("", "Label:\n" + OTHERS, SECOND, TWO_CALLS),
    "loads, and what sets their place": ("", "    mov (M1, 1) Y(0,0)<1> 0x6:d\n" + OTHERS, SECOND, TWO_CALLS),
    "loads at what was computed": ("", OTHERS.replace("X(0,0)", "N(0,0)"), SECOND, TWO_CALLS),
}


@pytest.mark.parametrize("between", BETWEEN)
def test_products_with_loads_between(between: str) -> None:
    """The products are one call if the loads can precede it. The first product has no accumulator."""
    before, middle, second, calls = BETWEEN[between]
    declared = ".decl N v_type=G type=ud num_elts=128 align=GRF alias=<C,0>\n.decl Z "
    body = LOADS + before + FIRST + middle + second
    text = HEAD.replace(".decl Z ", declared) + SET + CLEAR + body + STORE
    kernel = Kernel.from_assembly(text, target="any", engine="both")
    numbers, out = arrays()
    kernel(numbers if "computed" not in between else np.zeros_like(numbers), out, block=2)
    assert re.findall(r"call void @multiply_f32x1_f_(\w+)\(", text_of(kernel)) == calls


@pytest.mark.parametrize("seen", [False, True])
def test_products_whose_nans_nothing_sees(seen: bool) -> None:
    """NaNs may have any bits if only arithmetic reads them, and are canonical if they are stored."""
    doubled = "".join(f"    mul (M1, 16) D({r},0)<1> E({r},0)<1;1,0> 0x40000000:f\n" for r in range(8))
    declared = ".decl E v_type=G type=f num_elts=128 align=GRF\n.decl Z "
    body = LOADS + (PRODUCT if seen else PRODUCT.replace("C.0 C.0", "E.0 C.0") + doubled)
    text = HEAD.replace(".decl Z ", declared) + SET + CLEAR + body + STORE
    kernel = Kernel.from_assembly(text, target="any", engine="both")
    numbers, out = arrays()
    numbers[::3, ::5] = 0xFFA5
    kernel(numbers, out, block=1)
    assert np.isnan(out).any()
    assert ("_any_nan" in text_of(kernel)) is not seen


@pytest.mark.each_value
@pytest.mark.parametrize("body", [LOADS + PRODUCT, loop(1)], ids=["at once", "in a loop"])
@pytest.mark.parametrize("host", ["native", "haswell"])
def test_one_nan_among_sums(host: str, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Infinity times zero, which CPUs make a NaN of other bits, is found in each place of a result."""
    if host != "native" and not host_by_name(host).runs_here:
        pytest.skip("the machine does not run this code")
    monkeypatch.setenv(VARIABLE, host)
    kernel = compiled(body, engine="jit")
    numbers, out = arrays()
    for row, column in np.ndindex(8, 16):
        # The first column of A and the first row of B; the others are zero.
        numbers[:] = 0
        numbers[2, 8:24], numbers[row, 0], numbers[2, 8 + column] = 0x3F80, 0x7F80, 0
        kernel(numbers, out, block=1)
        wanted = np.where(np.arange(16) == column, 0x7FC00000, 0x7F800000)
        np.testing.assert_array_equal(out[row].view(np.uint32), wanted)
