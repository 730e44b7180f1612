"""The meaning of Triton's ops: kernels that libtriton made, and small programs, against numpy."""

import random
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from effort import examples
from generators import triton

import xegpu_py
from xegpu_py.ir.diagnostics import DiagnosticError

DUMPED = Path(__file__).parents[2] / "dialects/tt/dumped"
RNG = np.random.default_rng(44)


def dumped(name: str):
    return xegpu_py.compile(DUMPED / f"{name}.ttir", engine="reference")


def program(parameters: str, body: str):
    text = f"tt.func public @k({parameters}) {{\n{body}\ntt.return\n}}"
    return xegpu_py.compile(text, engine="reference")


def test_masked_loads_and_stores():
    x, y = RNG.random((2, 1000), np.float32)
    out = np.zeros(1000, np.float32)
    dumped("add")(x, y, out, 1000, grid=4)
    np.testing.assert_array_equal(out, x + y)


def test_a_loop_over_rows():
    x = RNG.random((128, 200), np.float32)
    out = np.zeros_like(x)
    dumped("softmax")(x, out, 200, 200, grid=3)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=1e-6)


def test_a_product_of_ragged_matrices():
    a, b = RNG.random((70, 50), np.float32), RNG.random((50, 90), np.float32)
    c = np.zeros((70, 90), np.float16)
    dumped("matmul")(a, b, c, 70, 90, 50, 50, 90, 90, grid=(2, 2))
    np.testing.assert_allclose(c, a @ b, rtol=1e-3)


def test_regions_with_blocks():
    x = np.arange(16, dtype=np.int32)
    dumped("mapped")(x)
    np.testing.assert_array_equal(x, 3 * np.arange(16) + 1)


def test_reductions_and_scans():
    x = RNG.random((16, 16), np.float32)
    given, out, index = x.copy(), np.zeros(16, np.float32), np.zeros(16, np.int32)
    dumped("reductions")(x, out, index)
    greatest, after = given.max(1), np.cumsum(given[::-1], 0)[::-1]
    wanted = greatest + np.cumsum(2 * greatest) + after.sum(1) + given.argmin(0)
    np.testing.assert_allclose(out, wanted, rtol=1e-5)
    places = given.argmax(1)
    np.testing.assert_array_equal(index, np.bincount(places[places > 3], minlength=16))
    np.testing.assert_allclose(x[0], given.sum(0), rtol=1e-5)


def test_moves_of_elements():
    x, out = RNG.random((16, 16), np.float32), np.zeros(32, np.float32)
    dumped("shapes")(x, out)
    z = x.T.reshape(2, 8, 16).transpose(1, 0, 2).reshape(16, 16)
    rows = np.concatenate([x.ravel(), z.ravel()]).reshape(16, 32).sum(1)
    np.testing.assert_allclose(out, np.repeat(rows, 2) + 2 * rows.sum(), rtol=1e-5)


def test_atomic_updates():
    p, q, out = np.arange(16, dtype=np.int32), RNG.random(16, np.float32), np.zeros(16, np.float32)
    given = q.copy()
    dumped("atomics")(p, q, out)
    np.testing.assert_array_equal(q, np.full(16, 1.5, np.float32))
    np.testing.assert_array_equal(out, given + (given + np.float32(1.5)))


@pytest.mark.parametrize("there", [True, False])
def test_polling(there: bool):
    p, q = np.array([5], np.int32), np.zeros(1, np.int32)
    kernel = dumped("poll")
    if there:
        kernel(p, q, 5)
        assert (p[0], q[0]) == (3, 3)
    else:
        with pytest.raises(DiagnosticError, match="waits forever"):
            kernel(p, q, 6)


def test_descriptors():
    x, rows = RNG.random((20, 40), np.float32), RNG.permutation(16).astype(np.int32)
    out = np.zeros((20, 40), np.float32)
    dumped("descriptors")(x, out, rows, 20, 40)
    wanted = np.zeros((20, 40), np.float32)
    wanted[:16, :16] = x[:16, :16]
    wanted[rows, :16] = x[rows, 16:32]
    wanted[:16, :16] += x[:16, :16]
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize(("padding", "outside"), [("", 0.0), (" {padding = 2 : i32}", np.nan)])
def test_padding_of_descriptors(padding: str, outside: float):
    x, out = np.ones((3, 3), np.float32), np.zeros((4, 4), np.float32)
    program(
        "%x: !tt.ptr<f32>, %o: !tt.ptr<f32>, %n: i32, %m: i32",
        f"""%c0 = arith.constant 0 : i32
        %1 = arith.constant 1 : i64
        %3 = arith.constant 3 : i64
        %4 = arith.constant 4 : i64
        %d = tt.make_tensor_descriptor %x, [%n, %n], [%3, %1]{padding} : <f32>, <4x4xf32>
        %e = tt.make_tensor_descriptor %o, [%m, %m], [%4, %1] : <f32>, <4x4xf32>
        %v = tt.descriptor_load %d[%c0, %c0] : !tt.tensordesc<4x4xf32> -> tensor<4x4xf32>
        tt.descriptor_store %e[%c0, %c0], %v : !tt.tensordesc<4x4xf32>, tensor<4x4xf32>""",
    )(x, out, 3, 4)
    wanted = np.full((4, 4), outside, np.float32)
    wanted[:3, :3] = 1
    np.testing.assert_array_equal(out, wanted)


def test_a_descriptor_of_the_host():
    x, out = RNG.random((20, 40)).astype(np.float16), np.zeros((20, 40), np.float16)
    dumped("host_descriptor")(x, 20, 40, 40, 1, out, 20, 40, 40, 1)
    wanted = np.zeros_like(out)
    wanted[:16, :32] = x[:16, :32]
    np.testing.assert_array_equal(out, wanted)


def test_block_scaled_factors():
    a = RNG.random((32, 64)).astype(ml_dtypes.float8_e5m2)
    b, s, t = (RNG.integers(*limits, shape).astype(np.int8) for limits, shape in (
        ((0, 256), (32, 32)), ((120, 130), (32, 2)), ((120, 130), (32, 2))))  # fmt: skip
    c = np.zeros((32, 32), np.float32)
    dumped("scaled")(a, b, s, t, c)
    numbers = np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float64)
    pairs = b.view(np.uint8)
    right = np.stack([numbers[pairs & 15], numbers[pairs >> 4]], 1).reshape(64, 32)
    scale, other = (np.repeat(2.0 ** (v.astype(np.float64) % 256 - 127), 32, 1) for v in (s, t))
    wide = a.astype(np.float64)
    wanted = (wide * scale) @ (right * other.T) + wide @ (right * other.T)
    np.testing.assert_allclose(c, wanted, rtol=1e-5, atol=1e-4)


def test_positions_of_32_bits_wrap_around():
    """i32 wraps before it is compared, extended or added to a pointer."""
    out = np.zeros(16, np.int64)
    program(
        "%o: !tt.ptr<i64>, %n: i32",
        """%r = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
        %s = tt.splat %n : i32 -> tensor<16xi32>
        %x = arith.muli %r, %s : tensor<16xi32>
        %c = arith.cmpi slt, %x, %s : tensor<16xi32>
        %w = arith.extsi %x : tensor<16xi32> to tensor<16xi64>
        %z = arith.constant dense<0> : tensor<16xi64>
        %v = arith.select %c, %w, %z : tensor<16xi1>, tensor<16xi64>
        %p = tt.splat %o : !tt.ptr<i64> -> tensor<16x!tt.ptr<i64>>
        %q = tt.addptr %p, %r : tensor<16x!tt.ptr<i64>>, tensor<16xi32>
        tt.store %q, %v : tensor<16x!tt.ptr<i64>>""",
    )(out, 0x30000000)
    with np.errstate(over="ignore"):
        wrapped = np.arange(16, dtype=np.int32) * np.int32(0x30000000)
    np.testing.assert_array_equal(out, np.where(wrapped < 0x30000000, wrapped, 0))
    assert (wrapped < 0).any()


@pytest.mark.parametrize("target", ["f8E4M3FN", "f8E5M2", "f16", "bf16"])
@pytest.mark.parametrize("rounding", ["rtne", "rtz"])
def test_conversions_to_fewer_bits(target: str, rounding: str):
    names = {"f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2", "f16": "float16", "bf16": "bfloat16"}
    dtype = np.dtype(getattr(ml_dtypes, names[target], names[target]))
    bits = RNG.integers(0, 1 << 32, 1024, dtype=np.uint64).astype(np.uint32)
    near = np.exp2(RNG.uniform(-20, 20, 1024)).astype(np.float32) * RNG.choice([-1, 1], 1024).astype(np.float32)
    for x in (
        bits.view(np.float32),
        near,
        np.array([448, 464, 465, 57344, 65535, np.inf, -np.inf, 0] * 128, np.float32),
    ):
        out = np.zeros(1024, dtype)
        program(
            f"%x: !tt.ptr<f32>, %o: !tt.ptr<{target}>",
            f"""%r = tt.make_range {{end = 1024 : i32, start = 0 : i32}} : tensor<1024xi32>
            %p = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
            %q = tt.addptr %p, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
            %v = tt.load %q : tensor<1024x!tt.ptr<f32>>
            %w = tt.fp_to_fp %v, rounding = {rounding} : tensor<1024xf32> -> tensor<1024x{target}>
            %s = tt.splat %o : !tt.ptr<{target}> -> tensor<1024x!tt.ptr<{target}>>
            %t = tt.addptr %s, %r : tensor<1024x!tt.ptr<{target}>>, tensor<1024xi32>
            tt.store %t, %w : tensor<1024x!tt.ptr<{target}>>""",
        )(x, out)
        np.testing.assert_array_equal(out.astype(np.float64), _narrowed(x, dtype, rounding))


@np.errstate(all="ignore")
def _narrowed(x: np.ndarray, dtype: np.dtype, rounding: str) -> np.ndarray:
    """Numbers in a type, found among all its numbers; of 8 bits those out of range are the greatest."""
    small = dtype.itemsize == 1
    table = np.arange(1 << 8 * dtype.itemsize, dtype=np.uint16).astype(f"u{dtype.itemsize}").view(dtype)
    numbers = np.unique(table.astype(np.float64)[np.isfinite(table.astype(np.float64))])
    wide = x.astype(np.float64)
    if rounding == "rtne":
        found = x.astype(dtype).astype(np.float64)
    else:
        places = np.searchsorted(numbers, np.abs(np.nan_to_num(wide, nan=0, posinf=1e300)), side="right") - 1
        found = np.copysign(numbers[places], wide)
        # An infinity stays one; a finite number does not become one.
        found = np.where(np.isinf(wide), wide, found)
    found = np.where(np.isnan(wide), np.nan, found)
    if small:
        found = np.where(
            np.isnan(wide), found, np.copysign(np.minimum(np.abs(np.nan_to_num(found, nan=np.inf)), numbers[-1]), wide)
        )
    return found


@pytest.mark.parametrize(
    ("parameters", "body", "arguments", "message"),
    [
        (
            "%p: !tt.ptr<f32>",
            '%o = arith.constant 4 : i32\n%q = tt.addptr %p, %o : !tt.ptr<f32>, i32\n%v = tt.load %q : !tt.ptr<f32>',
            [np.zeros(4, np.float32)],
            "'tt.load' op reads 4 bytes at .*reaching 4 bytes over the end of '%p'",
        ),
        ("%n: i1", 'tt.assert %n, "n is set" : i1', [0], "assertion failed: n is set"),
        ("%n: i1", "llvm.intr.assume %n : i1", [0], "assumes what does not hold"),
        (
            "%n: i32",
            'tt.elementwise_inline_asm "x" {constraints = "", packed_element = 1 : i32, pure = true} %n : i32 -> i32',
            [0],
            "assembly of another machine",
        ),
        (
            "%x: f32",
            '%0 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_j0f"}'
            " : (f32) -> f32",
            [0.0],
            "calls '__nv_j0f', which the reference evaluator does not know",
        ),
    ],
)  # fmt: skip
def test_faults(parameters, body, arguments, message):
    body = body.replace("tt.elementwise", "%r = tt.elementwise")
    with pytest.raises(DiagnosticError, match=message):
        program(parameters, body)(*arguments)


def test_functions_of_a_library():
    x, out = RNG.random(16, np.float32), np.zeros(16, np.float32)
    program(
        "%x: !tt.ptr<f32>, %o: !tt.ptr<f32>",
        """%r = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
        %p = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
        %q = tt.addptr %p, %r : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
        %v = tt.load %q : tensor<16x!tt.ptr<f32>>
        %a = tt.extern_elementwise %v {libname = "", libpath = "", pure = true, symbol = "__nv_tanhf"} : (tensor<16xf32>) -> tensor<16xf32>
        %b = tt.extern_elementwise %a, %v {libname = "", libpath = "", pure = true, symbol = "__nv_powf"} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
        %c = tt.extern_elementwise %b {libname = "", libpath = "", pure = true, symbol = "__nv_fabsf"} : (tensor<16xf32>) -> tensor<16xf32>
        %s = tt.splat %o : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
        %t = tt.addptr %s, %r : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
        tt.store %t, %c : tensor<16x!tt.ptr<f32>>""",  # noqa: E501
    )(x, out)
    np.testing.assert_allclose(out, np.tanh(x) ** x, rtol=1e-6)


def test_printing(capsys):
    kernel = program(
        "%n: i32, %x: f32",
        'tt.print " n: " {hex = false, isSigned = array<i32: 1>} : %n : i32\n'
        'tt.print " both: " {hex = true, isSigned = array<i32: 0, 0>} : %n, %x : i32, f32\n'
        'tt.print " end" {hex = false, isSigned = array<i32>}',
    )
    kernel(-1, 0.5, grid=(1, 2))
    first = (
        "pid (0, 0, 0) n: -1\npid (0, 0, 0) both: (operand 0) 0xffffffff\npid (0, 0, 0) both: (operand 1) 0.500000\n"
    )
    text = first + "pid (0, 0, 0) end\n"
    assert capsys.readouterr().out == text + text.replace("(0, 0, 0)", "(0, 1, 0)")


def test_random_programs_compute_as_numpy_does():
    for seed in range(examples(400)):
        program = triton.program(random.Random(seed))
        assert triton.differences(program, program.evaluated()) == [], f"seed {seed}:\n{program.text}"


def test_random_programs_are_triton_s(tmp_path: Path):
    """libtriton reads them, as we print them, and prints the same."""
    pytest.importorskip("triton")
    from generators.triton_kernels import reprinted

    for seed in range(examples(100)):
        program = triton.program(random.Random(seed))
        first, second = tmp_path / "first.ttir", tmp_path / "second.ttir"
        first.write_text(program.text)
        second.write_text(xegpu_py.parse(program.text).text(debuginfo=True))
        assert _without_locations(reprinted(first)) == _without_locations(reprinted(second)), f"seed {seed}"


def _without_locations(text: str) -> list[str]:
    lines = re.sub(r" loc\((?:[^()]|\([^()]*\))*\)", "", text).splitlines()
    return [line for line in lines if not line.startswith("#loc")]


CODES = {
    "e2m1": np.array([0, 1, 2, 3, 4, 5, 9, 10, 13], np.uint8),
    "e5m2": np.array([0, 0.5, 1, 1.5, -2, 3], ml_dtypes.float8_e5m2),
    "e4m3": np.array([0, 0.5, 1, 1.25, -2, 3], ml_dtypes.float8_e4m3fn),
    "bf16": np.array([0, 0.5, 1, 1.25, -2, 3], ml_dtypes.bfloat16),
}
"""Some numbers of each format whose products are exact."""

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
MEMORY = {"e2m1": "i8", "e5m2": "f8E5M2", "e4m3": "f8E4M3FN", "bf16": "bf16"}


@pytest.mark.parametrize(
    ("a_kind", "a_block", "a_packs_k", "b_kind", "b_block", "b_packs_k"),
    [
        ("e5m2", 32, True, "e4m3", 32, True),
        ("e2m1", 16, True, "e2m1", 16, True),
        ("e2m1", 32, False, "e4m3", None, True),
        ("e5m2", None, True, "e2m1", 32, False),
        ("e2m1", None, False, "e2m1", None, False),
        ("e2m1", 16, False, "e2m1", None, True),
        ("bf16", None, True, "e2m1", 16, True),
        ("e4m3", 16, True, "bf16", None, True),
    ],
)
def test_products_of_scaled_factors(a_kind, a_block, a_packs_k, b_kind, b_block, b_packs_k):
    """All formats, with the scales of either factor, packed along K or along the other dimension."""
    m, n, k, rng = 8, 16, 64, np.random.default_rng(6)
    arrays, values, loads, types = [], [], [], {}
    factors = (("a", (m, k), 1, a_kind, a_block, a_packs_k), ("b", (k, n), 0, b_kind, b_block, b_packs_k))
    for name, shape, depth, kind, block, packs_k in factors:
        codes = rng.choice(CODES[kind], shape)
        value = E2M1[codes] if kind == "e2m1" else codes.astype(np.float64)
        if kind == "e2m1":
            even, odd = (
                np.take(codes, range(i, shape[d], 2), d) for d in [depth if packs_k else 1 - depth] for i in (0, 1)
            )
            codes = even | odd << 4
        arrays.append(codes)
        types[name] = (codes.shape, MEMORY[kind])
        if block:
            scale = rng.integers(125, 130, (shape[1 - depth], k // block), np.uint8)
            factor = np.repeat(np.exp2(scale.astype(np.float64) - 127), block, 1)
            value = value * (factor if depth else factor.T)
            arrays.append(scale)
            types[f"{name}_scale"] = (scale.shape, "i8")
        values.append(value)
    types["c"] = ((m, n), "f32")
    tensors = {name: f"tensor<{shape[0]}x{shape[1]}x{element}>" for name, (shape, element) in types.items()}
    descs = {name: tensor.replace("tensor", "!tt.tensordesc") for name, tensor in tensors.items()}
    for name, ((rows, columns), element) in types.items():
        loads.append(f"""%{name}_r = arith.constant {rows} : i32 %{name}_n = arith.constant {columns} : i32
%{name}_s = arith.constant {columns} : i64
%{name}_d = tt.make_tensor_descriptor %{name}_p, [%{name}_r, %{name}_n], [%{name}_s, %one]
  : !tt.ptr<{element}>, {descs[name]}
%{name} = tt.descriptor_load %{name}_d[%zero, %zero] : {descs[name]} -> {tensors[name]}""")
    operands = [f"%{f}" + (f" scale %{f}_scale" if f"{f}_scale" in types else "") for f in "ab"]
    kinds = [tensors[f] + (f", {tensors[f'{f}_scale']}" if f"{f}_scale" in types else "") for f in "ab"]
    packing = f"lhs_k_pack = {str(a_packs_k).lower()}, rhs_k_pack = {str(b_packs_k).lower()}"
    body = "\n".join([
        "%one = arith.constant 1 : i64 %zero = arith.constant 0 : i32", *loads,
        f"%x = tt.dot_scaled {', '.join(operands)}, %c lhs = {a_kind} rhs = {b_kind} {{fastMath = false, {packing}}} : "
        f"{' * '.join(kinds)} -> {tensors['c']}",
        f"tt.descriptor_store %c_d[%zero, %zero], %x : {descs['c']}, {tensors['c']}",
    ])  # fmt: skip
    c = rng.integers(-4, 5, (m, n)).astype(np.float32)
    expected = c + values[0] @ values[1]
    program(", ".join(f"%{name}_p: !tt.ptr<{element}>" for name, (_, element) in types.items()), body)(*arrays, c)
    np.testing.assert_array_equal(c, expected)


REDUCED = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
           "xor": np.bitwise_xor}  # fmt: skip


@pytest.mark.parametrize("kind", REDUCED)
@pytest.mark.parametrize("element", ["si32", "ui32", "f32"])
def test_updates_of_blocks_of_descriptors(kind, element):
    """Signed and unsigned integers have other minima; a block that reaches over the end is cut."""
    if element == "f32" and kind in ("and", "or", "xor"):
        pytest.skip("floats have no bitwise updates")
    plain, desc = element.removeprefix("s").removeprefix("u"), f"!tt.tensordesc<4x8x{element}>"
    body = f"""%one = arith.constant 1 : i64 %r = arith.constant 6 : i32 %c = arith.constant 12 : i32
    %s = arith.constant 12 : i64 %zero = arith.constant 0 : i32 %at = arith.constant 4 : i32
    %d = tt.make_tensor_descriptor %p, [%r, %c], [%s, %one] : !tt.ptr<{plain}>, {desc}
    %e = tt.make_tensor_descriptor %q, [%r, %c], [%s, %one] : !tt.ptr<{plain}>, {desc}
    %x = tt.descriptor_load %d[%zero, %zero] : {desc} -> tensor<4x8x{plain}>
    tt.descriptor_reduce {kind}, %e[%at, %at], %x : {desc}, tensor<4x8x{plain}>"""
    dtype = {"si32": np.int32, "ui32": np.uint32, "f32": np.float32}[element]
    if dtype == np.float32:
        p, q = RNG.integers(-9, 10, (2, 6, 12)).astype(dtype)
    else:
        p, q = RNG.integers(0, 1 << 32, (2, 6, 12)).astype(np.uint32).view(dtype)
    expected = q.copy()
    expected[4:6, 4:12] = REDUCED[kind](expected[4:6, 4:12], p[:2, :8])
    program(f"%p: !tt.ptr<{plain}>, %q: !tt.ptr<{plain}>", body)(
        p.view(f"i{p.itemsize}") if plain == "i32" else p, (held := q.view(np.int32) if plain == "i32" else q)
    )
    np.testing.assert_array_equal(held.view(dtype), expected)
