"""`xegpu-join-blocks` joins adjacent blocks that one message loads, and the kernel computes the same as before."""

import numpy as np
import pytest

from xegpu_py import reference
from xegpu_py.ir.module import parse
from xegpu_py.ir.passes import run_pipeline

VC = "{mode = vc}"
D = "!xegpu.tensor_desc<16x16xf16>"
V = "vector<16x16xf16>"


def made(name, source="%m", at="0, 0", desc=D, memref="memref<64x64xf16>"):
    return f"%{name} = xegpu.create_nd_tdesc {source}[{at}] {VC} : {memref} -> {desc}"


def loaded(name, desc, attributes="mode = vc", kind=D, value=V):
    return f"%{name} = xegpu.load_nd %{desc} {{{attributes}}} : {kind} -> {value}"


def prefetched(desc):
    return f"xegpu.prefetch_nd %{desc} {VC} : {D}"


def moved(name, desc, by="0, 32"):
    return f"%{name} = xegpu.update_nd_offset %{desc}, [{by}] {VC} : {D} -> {D}"


def stored(value, at):
    return f"{made('o' + value, '%out', at)}\nxegpu.store_nd %{value}, %o{value} {VC} : {V}, {D}"


def kernel(*lines, more=""):
    body = "\n".join((*lines, more))
    return f"""gpu.module @m {{
  gpu.func @k(%m: memref<64x64xf16>, %n: memref<64x64xf16>, %out: memref<64x64xf16>, %i: index, %c: i1) kernel {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    {body}
    gpu.return
  }}
}}"""


STORES = stored("x", "0, 0"), stored("y", "16, 16")
PAIR = made("d"), made("e", at="0, 16")
LOADS = loaded("x", "d"), loaded("y", "e")
PACKED = "vector<8x16x2xf16>"


def unpacked(name):
    return f"%{name} = vector.shape_cast %{name}p : {PACKED} to {V}"


def looped(first, second, more="", outer="", yields="%f, %g"):
    """A loop that carries both descriptors and stores what it loads."""
    return (
        *PAIR,
        f"%r:2 = scf.for %k = %c0 to %c2 step %c1 iter_args(%p = %d, %q = %e) -> ({D}, {D}) {{",
        first, second, *STORES, more, moved("f", "p"), moved("g", "q"), f"scf.yield {yields} : {D}, {D} }}", outer,
    )  # fmt: skip


CASES = {
    "adjacent": (kernel(*PAIR, *LOADS, *STORES), True),
    "loaded in the other order": (kernel(*PAIR, *LOADS[::-1], *STORES), True),
    "at one row of the kernel": (kernel(made("d", at="%i, 0"), made("e", at="%i, 16"), *LOADS, *STORES), True),
    "from a column of the kernel on": (
        kernel("%j = arith.addi %i, %c16 : index", made("d", at="0, %i"), made("e", at="0, %j"), *LOADS, *STORES), True,
    ),
    "at two columns of the kernel": (
        kernel("%j = arith.addi %i, %i : index", made("d", at="0, %i"), made("e", at="0, %j"), *LOADS, *STORES), False,
    ),
    "with a gap": (kernel(made("d"), made("e", at="0, 32"), *LOADS, *STORES), False),
    "overlapping": (kernel(made("d"), made("e", at="0, 8"), *LOADS, *STORES), False),
    "below": (kernel(made("d"), made("e", at="16, 0"), *LOADS, *STORES), False),
    "of another row": (kernel(made("d"), made("e", at="1, 16"), *LOADS, *STORES), False),
    "of two matrices": (kernel(made("d"), made("e", "%n", "0, 16"), *LOADS, *STORES), False),
    "a write between": (
        kernel(*PAIR, loaded("x", "d"), stored("x", "16, 16"), loaded("y", "e"), STORES[1]), False,
    ),
    "a barrier between": (kernel(*PAIR, loaded("x", "d"), "gpu.barrier", loaded("y", "e"), *STORES), False),
    "in two blocks": (
        kernel(*PAIR, loaded("x", "d"), "scf.if %c {", loaded("y", "e"), STORES[1], "}", STORES[0]), False,
    ),
    "both transposed": (
        kernel(*PAIR, *(loaded(*n, "transpose = [1, 0], mode = vc") for n in ("xd", "ye")), *STORES), False,
    ),
    "both packed": (
        kernel(*PAIR, *(loaded(f"{n}p", d, "vnni_axis = 0, mode = vc", D, PACKED) for n, d in ("xd", "ye")),
               unpacked("x"), unpacked("y"), *STORES), True,
    ),
    "one packed": (
        kernel(*PAIR, loaded("xp", "d", "vnni_axis = 0, mode = vc", D, PACKED), unpacked("x"), loaded("y", "e"),
               *STORES), False,
    ),
    "of two hints": (
        kernel(*PAIR, loaded("x", "d", "mode = vc, l1_hint = #xegpu.cache_hint<cached>"), loaded("y", "e"), *STORES),
        False,
    ),
    "of one hint": (
        kernel(*PAIR, *(loaded(*n, "mode = vc, l1_hint = #xegpu.cache_hint<cached>") for n in ("xd", "ye")), *STORES),
        True,
    ),
    "both prefetched": (kernel(*PAIR, prefetched("d"), prefetched("e"), *LOADS, *STORES), True),
    "one prefetched": (kernel(*PAIR, prefetched("d"), *LOADS, *STORES), False),
    "the right one prefetched": (kernel(*PAIR, prefetched("e"), *LOADS, *STORES), False),
    "only prefetched": (kernel(*PAIR, prefetched("d"), prefetched("e")), False),
    "one stored to": (
        kernel(*PAIR, *LOADS, *STORES, more=f"xegpu.store_nd %x, %d {VC} : {V}, {D}"), False,
    ),
    "both moved alike": (
        kernel(*PAIR, moved("f", "d"), moved("g", "e"), loaded("x", "f"), loaded("y", "g"), *STORES), True,
    ),
    "moved apart": (
        kernel(*PAIR, moved("f", "d"), moved("g", "e", "0, 16"), loaded("x", "f"), loaded("y", "g"), *STORES), False,
    ),
    "one moved": (kernel(*PAIR, moved("g", "e"), loaded("x", "d"), loaded("y", "g"), *STORES), False),
    "one loaded twice": (
        kernel(*PAIR, *LOADS, loaded("z", "d"), *STORES, more=stored("z", "32, 0")), False,
    ),
    "carried": (kernel(*looped(loaded("x", "p"), loaded("y", "q"))), True),
    "carried and exchanged": (kernel(*looped(loaded("x", "p"), loaded("y", "q"), yields="%g, %f")), False),
    "carried, one not moved": (kernel(*looped(loaded("x", "p"), loaded("y", "q"), yields="%f, %q")), False),
    "carried, used after the loop": (
        kernel(*looped(loaded("x", "p"), loaded("y", "q"),
                       outer="\n".join((loaded("u", "r#0"), loaded("v", "r#1"), stored("u", "32, 0"),
                                        stored("v", "48, 0"))))),
        True,
    ),
    "carried, one used after the loop": (
        kernel(*looped(loaded("x", "p"), loaded("y", "q"), outer=f"{loaded('u', 'r#0')}\n{stored('u', '32, 0')}")),
        False,
    ),
    "handed on": (
        kernel(*PAIR, *LOADS, f"%s:2 = scf.if %c -> ({V}, {V}) {{ scf.yield %x, %y : {V}, {V} }} else {{ "
               f"scf.yield %y, %x : {V}, {V} }}", f"%w = arith.addf %s#0, %x : {V}", stored("w", "0, 0"), STORES[1]),
        False,
    ),
}  # fmt: skip


def evaluated(module, rows):
    arrays = [
        *np.random.default_rng(5).integers(-9, 10, (2, 64, 64)).astype(np.float16),
        np.zeros((64, 64), np.float16),
    ]
    reference.run(module, "k", [*arrays, *rows])
    return arrays[2]


@pytest.mark.parametrize("name", CASES)
def test_blocks_are_joined_where_one_message_may_load_both(name):
    text, joins = CASES[name]
    after = parse(text)
    run_pipeline(after, "builtin.module(xegpu-join-blocks{target=pvc})")
    assert ("array_length = 2" in str(after)) == joins
    for row in (0, 5):
        for flag in (False, True):
            np.testing.assert_array_equal(evaluated(after, (row, flag)), evaluated(parse(text), (row, flag)))


@pytest.mark.parametrize(
    ("element", "columns", "count", "expected"),
    [("i8", 16, 4, [4]), ("i8", 16, 3, [2, 1]), ("i8", 32, 2, [2]), ("f16", 16, 4, [2, 2]), ("f16", 32, 2, [1, 1]),
     ("f32", 16, 2, [1, 1]), ("f32", 8, 2, [2]), ("i64", 4, 2, [1, 1])],
)  # fmt: skip
def test_blocks_are_joined_up_to_a_row_of_64_bytes(element, columns, count, expected):
    desc, value = f"!xegpu.tensor_desc<8x{columns}x{element}>", f"vector<8x{columns}x{element}>"
    memref = f"memref<64x256x{element}>"
    lines = [made(f"d{i}", at=f"3, {columns * i}", desc=desc, memref=memref) for i in range(count)]
    lines += [loaded(f"x{i}", f"d{i}", kind=desc, value=value) for i in range(count)]
    for i in range(count):
        lines += [made(f"o{i}", "%out", f"{8 * i}, 0", desc, memref)]
        lines += [f"xegpu.store_nd %x{i}, %o{i} {VC} : {value}, {desc}"]
    body = "\n".join(lines)
    text = f"gpu.module @m {{ gpu.func @k(%m: {memref}, %out: {memref}) kernel {{ {body} gpu.return }} }}"
    module = parse(text)
    run_pipeline(module, "builtin.module(xegpu-join-blocks{target=pvc}, xegpu-dce)")
    loads = [line for line in str(module).splitlines() if "xegpu.load_nd" in line]
    found = [int(line.partition("array_length = ")[2][:1] or 1) for line in loads]
    assert sorted(found) == sorted(expected)
    dtype = {"i8": np.int8, "f16": np.float16, "f32": np.float32, "i64": np.int64}[element]
    m, out = np.random.default_rng(0).integers(-99, 100, (64, 256)).astype(dtype), np.zeros((64, 256), dtype)
    reference.run(module, "k", [m, out])
    for i in range(count):
        expected_rows = m[3:11, columns * i : columns * (i + 1)]
        np.testing.assert_array_equal(out[8 * i : 8 * i + 8, :columns], expected_rows)
