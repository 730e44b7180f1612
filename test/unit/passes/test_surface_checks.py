"""`check="surfaces"`: blocks of which upstream's lowering makes messages that break a rule of the target."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from mlir import ir

import xegpu_py
import xegpu_py.language as xl
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.ir.module import walk
from xegpu_py.passes import xegpu_lower_unaligned_blocks
from xegpu_py.passes.analysis import block_surfaces, launch_assumptions
from xegpu_py.runtime.argument_conditions import Multiple, Sum
from xegpu_py.target import TARGETS

VC = """
gpu.module @k {{
  gpu.func @copy(%a: {kind}, %o: memref<8x32xi16>) kernel {{
    %d = xegpu.create_nd_tdesc %a[0, 0] {{mode = vc}} : {kind} -> !xegpu.tensor_desc<8x32xi16>
    %v = xegpu.load_nd %d {{mode = vc}} : !xegpu.tensor_desc<8x32xi16> -> vector<8x32xi16>
    %e = xegpu.create_nd_tdesc %o[0, 0] {{mode = vc}} : memref<8x32xi16> -> !xegpu.tensor_desc<8x32xi16>
    xegpu.store_nd %v, %e {{mode = vc}} : vector<8x32xi16>, !xegpu.tensor_desc<8x32xi16>
    gpu.return
  }}
}}
"""

LANES = """
gpu.module @k {{
  gpu.func @copy(%a: memref<8x{columns}xf16>, %o: memref<8x32xf16>) kernel {{
    %da = xegpu.create_nd_tdesc %a : memref<8x{columns}xf16> -> !xegpu.tensor_desc<8x16xf16>
    %do = xegpu.create_nd_tdesc %o : memref<8x32xf16> -> !xegpu.tensor_desc<8x16xf16>
    %v = xegpu.load_nd %da[0, 0] : !xegpu.tensor_desc<8x16xf16> -> vector<8xf16>
    xegpu.store_nd %v, %do[0, 0] : vector<8xf16>, !xegpu.tensor_desc<8x16xf16>
    gpu.return
  }}
}}
"""


def outcome(kernel: Any, *arrays: np.ndarray, **launch: Any) -> tuple[str, list[str]]:
    """The error of a call, empty if there is none, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            kernel(*arrays, **launch)
        except DiagnosticError as error:
            return "\n".join(str(d.message) for f in error.diagnostics for d in f.flat()), [
                str(w.message) for w in caught
            ]
    return "", [str(w.message) for w in caught]


@pytest.mark.each_value
@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("columns", "target", "rule"),
    [
        (32, "bmg", ""), (26, "bmg", "pitch-least"), (26, "pvcxt", ""), (26, "cri", ""), (36, "bmg", "pitch-multiple"),
        (33, "pvcxt", "pitch-multiple"), (33, "cri", "pitch-multiple"), (40, "bmg", ""),
    ],
)  # fmt: skip
def test_blocks_of_subgroups(columns: int, target: str, rule: str, dynamic: bool, engine: str) -> None:
    """An error at the load with the check, and otherwise the right result and one warning that names its line."""
    text = VC.format(kind="memref<?x?xi16>" if dynamic else f"memref<8x{columns}xi16>")
    a, o = np.arange(8 * columns, dtype=np.int16).reshape(8, columns), np.zeros((8, 32), np.int16)
    for check in ((), "surfaces"):
        o[:] = 0
        kernel = xegpu_py.compile(text, target=target, engine=engine, cache="off", check=check)
        error, warned = outcome(kernel, a, o)
        if check and rule:
            assert error.startswith("'lsc_load_block2d' accesses a surface whose ")
            assert f"rule block2d-{rule}: " in error
            assert not warned
            continue
        assert not error
        want = np.zeros((8, 32), np.int16)
        want[:, : min(columns, 32)] = a[:, :32]
        np.testing.assert_array_equal(o, want)
        assert [w.split(": upstream")[0] for w in warned] == (["<string>:5:10"] if rule else [])
        assert outcome(kernel, a, o) == ("", [])


@pytest.mark.parametrize(("columns", "target"), [(26, "bmg"), (33, "pvcxt"), (32, "bmg")])
def test_blocks_of_lanes(columns: int, target: str) -> None:
    a, o = np.arange(8 * columns, dtype=np.float16).reshape(8, columns), np.zeros((8, 32), np.float16)
    text = LANES.format(columns=columns)
    error, warned = outcome(xegpu_py.compile(text, target=target, cache="off"), a, o, block=16)
    assert not error and len(warned) == (columns != 32)
    np.testing.assert_array_equal(o[:, :16], a[:, :16])
    error, warned = outcome(xegpu_py.compile(text, target=target, cache="off", check="surfaces"), a, o, block=16)
    assert bool(error) == (columns != 32) and not warned


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_columns_that_only_a_run_knows(engine: str) -> None:
    """An odd column of 16 bits: without the check right, with one warning."""
    text = VC.replace("%o: memref", "%x: index, %o: memref").replace("%a[0, 0]", "%a[0, %x]")
    a, o = np.arange(8 * 64, dtype=np.int16).reshape(8, 64), np.zeros((8, 32), np.int16)
    for x, check in itertools.product((2, 3), ((), "surfaces")):
        kernel = xegpu_py.compile(
            text.format(kind="memref<8x64xi16>"), target="bmg", engine=engine, cache="off", check=check
        )
        error, warned = outcome(kernel, a, x, o)
        assert ("rule block2d-x-multiple: " in error) == bool(error) == bool(check and x == 3)
        if not error:
            np.testing.assert_array_equal(o, a[:, x : x + 32])
        assert [w.split(": upstream")[0] for w in warned] == (["<string>:5:10"] if x == 3 and not check else [])
        assert all("is accessed from a column that is not a multiple of 4 bytes" in w for w in warned)
        if not check:
            assert outcome(kernel, a, x, o) == ("", [])


FACTORS = """
gpu.module @k {
  gpu.func @product(%a: memref<8x128xf16>, %b: memref<64x16xf16>, %o: memref<8x16xf32>, %x: index) kernel {
    %zero = arith.constant dense<0.0> : vector<8x16xf32>
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %sum = scf.for %k = %c0 to %c64 step %c16 iter_args(%c = %zero) -> (vector<8x16xf32>) {
      %at = arith.addi %k, %x : index
      %da = xegpu.create_nd_tdesc %a[0, %at] {mode = vc} : memref<8x128xf16> -> !xegpu.tensor_desc<8x16xf16>
      %db = xegpu.create_nd_tdesc %b[%k, 0] {mode = vc} : memref<64x16xf16> -> !xegpu.tensor_desc<16x16xf16>
      %va = xegpu.load_nd %da {mode = vc} : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
      %vb = xegpu.load_nd %db {mode = vc, vnni_axis = 0} : !xegpu.tensor_desc<16x16xf16> -> vector<8x16x2xf16>
      %d = xegpu.dpas %va, %vb, %c {mode = vc}
        : vector<8x16xf16>, vector<8x16x2xf16>, vector<8x16xf32> -> vector<8x16xf32>
      scf.yield %d : vector<8x16xf32>
    }
    %do = xegpu.create_nd_tdesc %o[0, 0] {mode = vc} : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %sum, %do {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
"""


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_columns_of_prefetches_and_stores(engine: str) -> None:
    accesses = "xegpu.prefetch_nd %d {mode = vc} :", "xegpu.store_nd %v, %d {mode = vc} : vector<8x32xi16>,"
    for access, x in itertools.product(accesses, (2, 3)):
        text = f"""
gpu.module @k {{
  gpu.func @move(%a: memref<8x64xi16>, %x: index) kernel {{
    %v = arith.constant dense<7> : vector<8x32xi16>
    %d = xegpu.create_nd_tdesc %a[0, %x] {{mode = vc}} : memref<8x64xi16> -> !xegpu.tensor_desc<8x32xi16>
    {access} !xegpu.tensor_desc<8x32xi16>
    gpu.return
  }}
}}
"""
        a = np.zeros((8, 64), np.int16)
        error, warned = outcome(xegpu_py.compile(text, target="bmg", engine=engine, cache="off"), a, x)
        assert not error and [w.split(": upstream")[0] for w in warned] == (["<string>:6:5"] if x == 3 else [])
        assert (a[:, x : x + 32] == 7).all() == (a != 0).any() == ("store" in access)


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_columns_of_factors(engine: str) -> None:
    """Native code loads the factors of a dpas in other functions."""
    random = np.random.default_rng(3)
    a, b = (random.integers(-4, 4, shape).astype(np.float16) for shape in ((8, 128), (64, 16)))
    for x in (2, 3):
        o = np.zeros((8, 16), np.float32)
        kernel = xegpu_py.compile(FACTORS, target="pvcxt", engine=engine, cache="off")
        error, warned = outcome(kernel, a, b, o, x)
        np.testing.assert_array_equal(o, a[:, x : x + 64].astype(np.float32) @ b.astype(np.float32))
        assert not error and [w.split(": upstream")[0] for w in warned] == (["<string>:12:13"] if x == 3 else [])


@pytest.mark.parametrize(
    ("columns", "target", "expected"), [(32, "bmg", 1), (26, "bmg", 1), (32, "pvcxt", 1), (26, "pvcxt", 2)]
)
def test_surfaces_are_searched_once(columns: int, target: str, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And again for targets that tolerate some of what the search found."""
    searched, search = [], block_surfaces.find_surfaces

    def counted(*operands: Any) -> block_surfaces.Surfaces:
        searched.append(operands)
        return search(*operands)

    for module in (block_surfaces, xegpu_lower_unaligned_blocks):
        monkeypatch.setattr(module, "find_surfaces", counted)
    xegpu_py.compile(VC.format(kind=f"memref<8x{columns}xi16>"), target=target, cache="off")
    assert len(searched) == expected


XETILE = """
gpu.module @k {
  gpu.func @copy(%a: memref<8x26xi16>, %o: memref<8x26xi16>) kernel {
    %d = xetile.init_tile %a[0, 0] : memref<8x26xi16> -> !xetile.tile<8x32xi16>
    %v = xetile.load_tile %d : !xetile.tile<8x32xi16> -> vector<8x32xi16>
    %e = xetile.init_tile %o[0, 0] : memref<8x26xi16> -> !xetile.tile<8x32xi16>
    xetile.store_tile %v, %e : vector<8x32xi16>, !xetile.tile<8x32xi16>
    gpu.return
  }
}
"""


def test_xetile_neither_warns_nor_fails() -> None:
    for check in ((), "surfaces"):
        a, o = np.arange(8 * 26, dtype=np.int16).reshape(8, 26), np.zeros((8, 26), np.int16)
        assert outcome(xegpu_py.compile(XETILE, target="bmg", cache="off", check=check), a, o) == ("", [])
        np.testing.assert_array_equal(o, a)


@xegpu_py.jit
def doubled(a, o, n, B: xl.Constexpr):
    rows, columns = xl.arange(0, 8), xl.arange(0, B)
    inside = columns[None, :] < n
    x = xl.load(a + rows[:, None] * n + columns[None, :], mask=inside, other=0)
    xl.store(o + rows[:, None] * n + columns[None, :], x + x, mask=inside)


def test_the_tile_language_neither_warns_nor_fails() -> None:
    for n, check in itertools.product((13, 16, 32), ((), "surfaces")):
        a, o = np.arange(8 * n, dtype=np.int32).reshape(8, n), np.zeros((8, n), np.int32)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            doubled.with_options(target="bmg", check=check)[1](a, o, n, B=32)
        np.testing.assert_array_equal(o, 2 * a)


def test_arguments_that_are_said_to_be_unaligned_are_no_warning() -> None:
    """Nothing is known of a rule that they break."""
    a, o = np.ones((8, 32), np.int16), np.zeros((8, 32), np.int16)
    kernel = xegpu_py.compile(VC.format(kind="memref<?x?xi16>"), target="bmg", unaligned=[0], cache="off")
    assert outcome(kernel, a, o) == ("", [])
    np.testing.assert_array_equal(o, a)


def test_all_checks_have_a_name() -> None:
    assert xegpu_py.compile(VC.format(kind="memref<8x32xi16>"), check="all").options.check == (
        "memory", "uninit", "races", "bounds", "surfaces",
    )  # fmt: skip
    with pytest.raises(
        ValueError, match="unknown check 'surface'; there are memory, uninit, races, bounds, surfaces, all"
    ):
        xegpu_py.compile(VC.format(kind="memref<8x32xi16>"), check="surface")


@pytest.mark.parametrize(
    ("element", "fits", "misfits"), [("i8", 1088, 1056), ("f16", 1056, 1040), ("f32", 1040, 1032), ("f64", 1032, 1028)]
)
def test_matrices_of_a_tensor(element: str, fits: int, misfits: int) -> None:
    """Strides of outer dimensions are multiples of 64 bytes; that of one matrix does not matter."""
    size = {"i8": 1, "f16": 2, "f32": 4, "f64": 8}[element]
    for outer, stride, problem in (
        (2, fits, None), (1, misfits, None),
        (2, misfits, f"has matrices that begin {misfits * size} bytes behind each other, but 2D block messages need a "
                     "multiple of 64"),
    ):  # fmt: skip
        kind = f"memref<{outer}x16x64x{element}, strided<[{stride}, 64, 1]>>"
        desc = f"!xegpu.tensor_desc<1x8x4x{element}>"
        module = xegpu_py.parse(
            f"gpu.module @m {{ gpu.func @k(%a: {kind}) kernel {{ "
            f"%d = xegpu.create_nd_tdesc %a[0, 0, 0] {{mode = vc}} : {kind} -> {desc} gpu.return }} }}"
        )
        [made] = [op.opview for op in walk(module.operation) if op.name == "xegpu.create_nd_tdesc"]
        assert block_surfaces.surface_problem(made, TARGETS["pvc"]) == problem


def function_with(attributes: str) -> tuple[xegpu_py.Module, ir.Operation]:
    """A function with four arguments, and its module."""
    arguments = ", ".join(f"%{n}: index" for n in "abcd")
    module = xegpu_py.parse(f"func.func @f({arguments}) attributes {{{attributes}}} {{ return }}")
    return module, module.operation.regions[0].blocks[0].operations[0].operation


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("xetile.divided", "3 : i64"),
        ("xetile.divided", "array<i64: 0, 1, -1>"),
        ("xetile.divided", "array<i64: 4, 1, -1, 16>"),
        ("xetile.divided", "array<i64: 0, 1, -1, 16, 0, -1, 0, 16>"),
        ("xetile.divided", "array<i64: 0, 1, -1, 0>"),
        ("xetile.likely_multiples", "array<i64: 0>"),
        ("xetile.likely_multiples", "array<i64: 4, 16>"),
        ("xetile.likely_multiples", "array<i64: 0, -16>"),
    ],
)
def test_other_attributes_are_one_diagnostic(name: str, value: str) -> None:
    read = {"xetile.divided": launch_assumptions.assumed_multiples}.get(name, launch_assumptions.likely_multiples)
    _module, func = function_with(f"{name} = {value}")
    with pytest.raises(DiagnosticError, match=f"has {name} = .*, which is not made of groups of"):
        read(func)


def test_divisors_of_arguments_are_those_of_all_arrays() -> None:
    _module, func = function_with("xetile.divided = array<i64: 0, 1, -1, 16, 2, 1, -1, 24, 3, 0, 1, 5, 3, 0, -1, 1>")
    assert [launch_assumptions.assumed_divisor(func, n) for n in range(3)] == [1, 48, 1]


def test_assumptions_are_read_as_they_are_written():
    """Each sum is an array's number and terms: a factor, how many numbers, and these as arguments (-1) or extents."""
    sums = [(3, [(9, [(2, 0), (1, -1), (4, 1)]), (5, []), (-7, [(1, -1), (5, 0)])]), (0, []), (1, [(1, [(6, 2)])])]
    multiples = [(0, 1, -1, 16), (2, 3, 1, 4)]
    encoded = [[a, *(n for f, by in terms for n in (f, len(by), *sum(by, ())))] for a, terms in sums]
    module, func = function_with("")
    assert block_surfaces.sums_of(func) == block_surfaces.multiples_of(func) == ()
    with module.context:
        arrays = [ir.DenseI64ArrayAttr.get(numbers) for numbers in encoded]
        func.attributes[launch_assumptions.ASSUMED_32_BIT] = ir.ArrayAttr.get(arrays)
        func.attributes[launch_assumptions.ASSUMED_MULTIPLES] = ir.DenseI64ArrayAttr.get(sum(multiples, ()))

    def number(giver, dim):
        return ("argument", giver) if dim < 0 else ("extent", giver, dim)

    assert block_surfaces.sums_of(func) == tuple(
        Sum(a, tuple((f, tuple(number(*pair) for pair in by)) for f, by in terms)) for a, terms in sums
    )
    assert block_surfaces.multiples_of(func) == tuple(Multiple(a, number(*pair), of) for a, *pair, of in multiples)


DESC = "!xegpu.tensor_desc<{shape}xi8>"


@pytest.mark.parametrize(
    ("shape", "columns", "attribute", "problems"),
    [
        ("8x16", (0, 4), "", (False, False)),
        ("8x16", (0, 3), "", (False, True)),
        ("8x16", (3, 0), "", (False, True)),
        ("8x16", (3, 3), "", (False, True)),
        ("16", (3, 3), "", (False, False)),
        ("8x16", (3, 3), f"{block_surfaces.EXACT_SURFACES}", (False, False)),
    ],
)
def test_columns_of_created_and_of_moved_blocks(
    shape: str, columns: tuple[int, int], attribute: str, problems: tuple[bool, bool]
) -> None:
    """Those of blocks that the function does not create are no problem, as no pass replaces their accesses."""
    desc, (first, step) = DESC.format(shape=shape), columns
    memory, at, by = ("memref<1024xi8>", "", "") if shape == "16" else ("memref<64x64xi8>", "0, ", "0, ")
    module = xegpu_py.parse(f"""func.func @f(%d: {desc}, %a: {memory}) attributes {{{attribute}}} {{
      %m = xegpu.update_nd_offset %d, [{by}{step}] {{mode = vc}} : {desc} -> {desc}
      %c = xegpu.create_nd_tdesc %a[{at}{first}] {{mode = vc}} : {memory} -> {desc}
      %n = xegpu.update_nd_offset %c, [{by}{step}] {{mode = vc}} : {desc} -> {desc}
      return }}""")
    [func] = (op for op in walk(module.operation) if op.name == "func.func")
    surfaces = block_surfaces.find_surfaces(func, [*walk(func)], TARGETS["pvc"])
    moved, created = (
        surfaces.classes.find(op.results[0]) in surfaces.problems for op in walk(func) if op.name.endswith("nd_offset")
    )
    assert (moved, created) == problems
