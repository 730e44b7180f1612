"""2D blocks that a mask clips: of their surfaces only what a message accesses must be in memory."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from msgspec import structs

from xegpu_py.ir.diagnostics import DiagnosticError, Source
from xegpu_py.runtime.executable import Executable
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.visa import assembly

from .test_jit_packed_operands import CLEAR, LOADS, PRODUCT, SET, STORE, STORES, arrays, text_of
from .test_jit_packed_operands import HEAD as PRODUCTS
from .test_memory import HEAD

ENGINES = "interpreter", "jit"


def clipped(text: str, engine: str, which: Callable[[int], bool] = lambda number: True) -> Kernel:
    """A lowered kernel of which the loads and stores of 2D blocks, or those of some numbers, are clipped by a mask."""
    (program,) = assembly.read(Source(text, "clipped.visaasm"))
    number, instructions = 0, []
    for inst in program.instructions:
        if "block2d" in inst.name:
            inst = structs.replace(inst, clipped=which(number))
            number += 1
        instructions.append(inst)
    executable = Executable.of_assembly(structs.replace(program, instructions=instructions))
    # Columns of lowered kernels keep the rules, so that a basic block checks a surface once.
    lowered = structs.replace(executable, is_assembly=False, exact_messages=False)
    return Kernel(lowered, target="any", engine=engine, cache="off")


NAMES = "width", "height", "pitch", "x", "y"
ROW, COUNT = 64, 16
"""Bytes of a row of the array, and its number of rows."""

FRAME = HEAD + "".join(
    f".decl {n} v_type=G type=ud num_elts=1 align=dword\n.input {n} offset={104 + 4 * i} size=4\n"
    for i, n in enumerate(NAMES)
) + ".decl base v_type=G type=uq num_elts=1 align=qword\n.input base offset=96 size=8\n"  # fmt: skip
MESSAGES = {
    "reads": "    lsc_load_block2d.ugm (M1, 1) Data.0:d32.16x4nn flat[Base,width,height,pitch,x,y]\n"
    "    lsc_store.ugm (M1, 1) flat[A]:a64 Data:d32x64t\n",
    "writes": "    lsc_load.ugm (M1, 1) Data:d32x64t flat[A]:a64\n"
    "    lsc_store_block2d.ugm (M1, 1) flat[Base,width,height,pitch,x,y] Data.0:d32.16x4nn\n",
}


@pytest.mark.parametrize("verb", MESSAGES)
def test_random_blocks(verb: str) -> None:
    """Surfaces begin before the array and reach beyond it, and blocks are partly or wholly outside of both."""
    body = "    add (M1, 1) Base(0,0)<1> B(0,0)<0;1,0> base(0,0)<0;1,0>\n" + MESSAGES[verb] + "    ret (M1, 1)\n"
    kernels = [clipped(FRAME + body, engine) for engine in ENGINES]
    rng, outcomes = random.Random(verb), set()
    rows, columns = np.indices((4, 16))
    for _ in range(300):
        base, pitch = rng.choice([0, 64, 640, 960, 1024, -64, -256, -1024]), rng.choice([64, 64, 128, 256])
        width, height = rng.choice([64, 64, 80, 128, 256]), rng.choice([1, 2, 15, 16, 17, 40, 1000])
        x, y = rng.choice([0, 0, 4, 12, 16, 60, -4, -20]), rng.choice([0, 0, 1, 4, 12, 13, 16, -1, -3, -4, 999])
        pitch = max(pitch, width)
        inside = (x + columns >= 0) & (x + columns < width // 4) & (y + rows >= 0) & (y + rows < height)
        places = base + (y + rows) * pitch + (x + columns) * 4
        first, end = (places[inside].min(), places[inside].max() + 4) if inside.any() else (0, 0)
        fits = bool(first >= 0 and end <= ROW * COUNT)
        data = np.arange(ROW * COUNT // 4, dtype=np.uint32) + 1
        block = np.arange(1000, 1064, dtype=np.uint32)
        wanted_data, wanted_block = data.copy(), block.copy()
        if fits and verb == "reads":
            wanted_block[:] = np.where(inside, data[np.where(inside, places // 4, 0)], 0).ravel()
        elif fits:
            wanted_data[places[inside] // 4] = block.reshape(4, 16)[inside]
        sizes = [np.uint32((n - (i < 3)) % (1 << 32)) for i, n in enumerate((width, height, pitch, x, y))]
        messages = []
        for kernel in kernels:
            out, given = block.copy(), data.copy()
            try:
                kernel(out, given, np.uint32(0), *sizes, np.int64(base).view(np.uint64))
                messages.append("")
            except DiagnosticError as error:
                messages.append(error.diagnostics[0].message)
            np.testing.assert_array_equal(out, wanted_block)
            np.testing.assert_array_equal(given, wanted_data)
        assert messages[0] == messages[1]
        assert bool(messages[0]) != fits
        assert fits or f"{verb} a block of {end - first} bytes at" in messages[0]
        whole = base >= 0 and base + (height - 1) * pitch + width <= ROW * COUNT
        outcomes.add((fits, whole, bool(inside.any()), bool(inside.all())))
    assert len(outcomes) >= 7, outcomes


BEYOND = "0x7f,0x7f,0x7f"
"""The surface of twice as many rows as the array has."""


def outcome(text: str, engine: str, which: Callable[[int], bool], threads: int = 1) -> tuple[str, np.ndarray]:
    given, out = arrays()
    kernel = clipped(text, engine, which)
    try:
        kernel(given, out, block=threads)
        message = ""
    except DiagnosticError as error:
        message = error.diagnostics[0].message
    assert engine != "jit" or "load2d_d16_16x16nt_as" in text_of(kernel)
    return message, out


@pytest.mark.parametrize("strict", [(), (0,), (1,), (2,), (3,)])
def test_products(strict: tuple[int, ...]) -> None:
    """Panels of clipped blocks, also of adjacent ones, are not taken for those of others, whose surface is refused."""
    beside = LOADS.splitlines(True)[1].replace("0x8,Y", "0x18,Y").replace("B.0", "B2.0")
    body = (
        LOADS
        + beside
        + PRODUCT
        + PRODUCT.replace("B.0", "B2.0")
        + LOADS.replace("A.0", "A2.0").splitlines(True)[1]
        + PRODUCT
    )
    text = PRODUCTS + SET + CLEAR + body.replace("0x7f,0x3f,0x7f", BEYOND) + STORE
    found = [outcome(text, engine, lambda number: number not in strict) for engine in ENGINES]
    assert found[0][0] == found[1][0]
    assert ("reads a surface of 16384 bytes" in found[0][0]) == bool(strict)
    np.testing.assert_array_equal(found[0][1], found[1][1])
    if not strict:
        usual = Kernel.from_assembly(PRODUCTS + SET + CLEAR + body + STORE, target="any", engine="interpreter")
        given, out = arrays()
        usual(given, out)
        np.testing.assert_array_equal(found[0][1], out)


def test_stores_to_surfaces_that_begin_before_the_array() -> None:
    """Panels are forgotten when the array is stored to that they are of, which is not where their surface begins."""
    before = ".decl Before v_type=G type=uq num_elts=1 align=qword\n"
    start = "    add (M1, 1) Before(0,0)<1> In(0,0)<0;1,0> -0x2000:q\n    mov (M1, 1) Y(0,0)<1> 0x42:d\n"
    loads = LOADS.replace("flat[In,0x7f,0x3f,0x7f", f"flat[Before,{BEYOND}").replace("X(0,0),0x0", "X(0,0),0x40")
    # Of a thread alone few panels are kept.
    first = "    cmp.eq (M1, 1) P %r0(0,2)<0;1,0> 0x0:ud\n    (!P) jmp (M1, 1) Others\n"
    body = SET + CLEAR + start + first + loads + PRODUCT + STORES["block"] + loads + PRODUCT + "Others:\n"
    found = [outcome(PRODUCTS + before + body + STORE, engine, lambda number: True, 5) for engine in ENGINES]
    assert found[0][0] == found[1][0] == ""
    np.testing.assert_array_equal(found[0][1], found[1][1])


@pytest.mark.parametrize("first", [True, False])
def test_surfaces_are_checked_once_for_blocks_of_each_kind(first: bool) -> None:
    """A block that no mask clips is refused, before or after a clipped one of the same surface."""
    load = "    lsc_load_block2d.ugm (M1, 1) {}.0:d16.16x8nn flat[In," + BEYOND + ",X(0,0),0x0]\n"
    text = PRODUCTS + SET + CLEAR + load.format("A") + load.format("A2") + STORE
    for engine in ENGINES:
        with pytest.raises(DiagnosticError, match="reads a surface of 16384 bytes at .* over the end of 'In'"):
            clipped(text, engine, lambda number: (number == 0) == first)(*arrays())
