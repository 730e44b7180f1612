"""Elements of 2 and 4 bits in memory and registers: the reference against numpy, and the engines against it."""

import random

import ml_dtypes
import numpy as np
import pytest
from effort import examples

import xegpu_py

ARRAYS = {("i4", "s"): ml_dtypes.int4, ("i4", "u"): ml_dtypes.uint4, ("i2", "s"): ml_dtypes.int2,
          ("i2", "u"): ml_dtypes.uint2}  # fmt: skip


def numbers(element, *shape, sign="s", seed=0):
    bits = int(element[-1])
    low = -(1 << bits - 1) if sign == "s" else 0
    found = np.random.default_rng(seed).integers(low, low + (1 << bits), shape)
    return found.astype(np.int8).astype(ARRAYS[element[-2:], sign])


def whole(array):
    return array.astype(np.int8).astype(np.int64)


def run(text, *arguments, grid=1, block=None, **options):
    """The arguments after the kernel, which are the same on all engines."""
    found = []
    for engine in ("reference", "both"):
        given = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        made = {} if engine == "reference" else {"cache": "off", **options}
        xegpu_py.compile(text, engine=engine, **made)(*given, grid=grid, block=block)
        found.append(given)
    for a, b in zip(*found):
        if isinstance(a, np.ndarray):
            assert a.tobytes() == b.tobytes(), (a, b)
    return found[0]


def kernel(arguments, body, attributes=""):
    return f"gpu.module @m {{ gpu.func @k({arguments}) kernel {attributes} {{\n{body}\ngpu.return\n}} }}"


PRODUCT = """
  %at = xegpu.create_nd_tdesc %a[0, 0] {{mode = vc}} : memref<{m}x{k}x{a}> -> !xegpu.tensor_desc<{m}x{k}x{a}>
  %bt = xegpu.create_nd_tdesc %b[0, 0] {{mode = vc}} : memref<{b_shape}x{b}> -> !xegpu.tensor_desc<{b_shape}x{b}>
  %ct = xegpu.create_nd_tdesc %c[0, 0] {{mode = vc}} : memref<{m}x{n}xi32> -> !xegpu.tensor_desc<{m}x{n}xi32>
  %av = xegpu.load_nd %at {{mode = vc}} : !xegpu.tensor_desc<{m}x{k}x{a}> -> vector<{m}x{k}x{a}>
  %bv = xegpu.load_nd %bt {{mode = vc, {how}}} : !xegpu.tensor_desc<{b_shape}x{b}> -> vector<{packed}x{b}>
  %r = xegpu.dpas %av, %bv {{mode = vc}} : vector<{m}x{k}x{a}>, vector<{packed}x{b}> -> vector<{m}x{n}xi32>
  xegpu.store_nd %r, %ct {{mode = vc}} : vector<{m}x{n}xi32>, !xegpu.tensor_desc<{m}x{n}xi32>
"""


PRODUCTS = [("i4", "i4", "vnni", "pvc"), ("i4", "i4", "transposed", "dg2"), ("ui4", "si4", "transposed", "pvc"),
            ("i2", "i2", "transposed", "pvc"), ("i2", "i2", "vnni", "dg2"), ("i8", "i4", "vnni", "pvc")]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "how", "target"), PRODUCTS)
def test_products(a, b, how, target):
    """B as it lies, whose elements are packed in registers, and by columns, whose units of 32 bits a message moves."""
    each = 32 // int(b[-1])
    m, n, k = 8, 16, 128 if "i2" in (a, b) else 64
    shapes = {"m": m, "n": n, "k": k, "a": a, "b": b, "packed": f"{k // each}x{n}x{each}"}
    shapes |= {"how": "vnni_axis = 0", "b_shape": f"{k}x{n}"}
    if how == "transposed":
        shapes |= {"how": "transpose = [1, 0], transpose_bit_width = 32", "b_shape": f"{n}x{k}"}
    text = kernel(f"%a: memref<{m}x{k}x{a}>, %b: memref<{shapes['b_shape']}x{b}>, %c: memref<{m}x{n}xi32>",
                  PRODUCT.format(**shapes))  # fmt: skip
    left = np.random.default_rng(1).integers(-99, 99, (m, k)).astype(np.int8) if a == "i8" else numbers(
        a, m, k, sign="u" if a[0] == "u" else "s")  # fmt: skip
    right = numbers(b, k, n, seed=2)
    given = right if how == "vnni" else np.ascontiguousarray(right.T)
    found = run(text, left, given, np.zeros((m, n), np.int32), target=target, registers=256)[2]
    np.testing.assert_array_equal(found, whole(left) @ whole(right))


def packed(array, bits):
    """Elements side by side in bytes, along rows."""
    parts = whole(array) & (1 << bits) - 1
    each = 8 // bits
    return sum(parts[:, j::each] << bits * j for j in range(each)).astype(np.uint8).view(np.int8)


@pytest.mark.parametrize("element", ["i4", "i2"])
def test_products_of_bytes_in_memory(element):
    """The elements are taken out of bytes by vector.bitcast."""
    bits = int(element[1])
    units, columns = 64 * bits // 32, 64 * bits // 8
    text = kernel(f"%a: memref<8x{columns}xi8>, %b: memref<{units}x64xi8>, %c: memref<8x16xi32>", f"""
  %at = xegpu.create_nd_tdesc %a[0, 0] {{mode = vc}} : memref<8x{columns}xi8> -> !xegpu.tensor_desc<8x{columns}xi8>
  %bt = xegpu.create_nd_tdesc %b[0, 0] {{mode = vc}} : memref<{units}x64xi8> -> !xegpu.tensor_desc<{units}x64xi8>
  %ct = xegpu.create_nd_tdesc %c[0, 0] {{mode = vc}} : memref<8x16xi32> -> !xegpu.tensor_desc<8x16xi32>
  %av = xegpu.load_nd %at {{mode = vc}} : !xegpu.tensor_desc<8x{columns}xi8> -> vector<8x{columns}xi8>
  %bv = xegpu.load_nd %bt {{mode = vc}} : !xegpu.tensor_desc<{units}x64xi8> -> vector<{units}x64xi8>
  %an = vector.bitcast %av : vector<8x{columns}xi8> to vector<8x64x{element}>
  %bn = vector.bitcast %bv : vector<{units}x64xi8> to vector<{units}x{512 // bits}x{element}>
  %bu = vector.shape_cast %bn : vector<{units}x{512 // bits}x{element}> to vector<{units}x16x{32 // bits}x{element}>
  %r = xegpu.dpas %an, %bu {{mode = vc}} : vector<8x64x{element}>, vector<{units}x16x{32 // bits}x{element}>
    -> vector<8x16xi32>
  xegpu.store_nd %r, %ct {{mode = vc}} : vector<8x16xi32>, !xegpu.tensor_desc<8x16xi32>""")  # fmt: skip
    a, b = numbers(element, 8, 64), numbers(element, 64, 16, seed=1)
    # A unit has consecutive elements of a column.
    units_of_b = b.reshape(units, 32 // bits, 16).transpose(0, 2, 1).reshape(units, -1)
    found = run(text, packed(a, bits), packed(units_of_b, bits), np.zeros((8, 16), np.int32), target="pvc")[2]
    np.testing.assert_array_equal(found, whole(a) @ whole(b))


@pytest.mark.parametrize("element", ["i4", "i2"])
def test_blocks_at_any_column(element):
    """Blocks that begin within bytes, move, and exceed the bounds on all sides; their elements are stored as bytes."""
    text = kernel(
        f"%a: memref<?x?x{element}>, %out: memref<5x8x16xi8>, %x: index, %y: index, %d: index",
        f"""
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %at = xegpu.create_nd_tdesc %a[%y, %x] {{mode = vc}} : memref<?x?x{element}> -> !xegpu.tensor_desc<8x16x{element}>
  %end = scf.for %i = %c0 to %c5 step %c1 iter_args(%t = %at) -> !xegpu.tensor_desc<8x16x{element}> {{
    %v = xegpu.load_nd %t {{mode = vc}} : !xegpu.tensor_desc<8x16x{element}> -> vector<8x16x{element}>
    %w = arith.extsi %v : vector<8x16x{element}> to vector<8x16xi8>
    vector.store %w, %out[%i, %c0, %c0] : memref<5x8x16xi8>, vector<8x16xi8>
    %next = xegpu.update_nd_offset %t, [%c1, %d] {{mode = vc}}
      : !xegpu.tensor_desc<8x16x{element}> -> !xegpu.tensor_desc<8x16x{element}>
    scf.yield %next : !xegpu.tensor_desc<8x16x{element}>
  }}""",
    )
    a = numbers(element, 12, 64)
    framed = np.zeros((60, 200), np.int8)
    framed[24:36, 64:128] = whole(a)
    kept = xegpu_py.compile(text, engine="both", cache="off")
    for x, y, d in ((0, 0, 1), (3, 2, 5), (-7, -3, 3), (55, 6, -9), (-1, 0, 4), (2, 1, 2)):
        found = np.zeros((5, 8, 16), np.int8)
        kept(a, found, x, y, d)
        for i in range(5):
            row, column = 24 + y + i, 64 + x + i * d
            np.testing.assert_array_equal(found[i], framed[row : row + 8, column : column + 16], str((x, y, d, i)))
    run(text, a, np.zeros((5, 8, 16), np.int8), 3, 2, 5)


MOVES = """
  %c0 = arith.constant 0 : index
  %t = xegpu.create_nd_tdesc %a[0, 0] {{mode = vc}} : memref<8x32xi4> -> !xegpu.tensor_desc<8x32xi4>
  %v = xegpu.load_nd %t {{mode = vc{how}}} : !xegpu.tensor_desc<8x32xi4> -> vector<{shape}xi4>
  %f = vector.shape_cast %v : vector<{shape}xi4> to vector<256xi4>
  %w = arith.extui %f : vector<256xi4> to vector<256xi8>
  vector.store %w, %out[%c0] : memref<256xi8>, vector<256xi8>
"""


@pytest.mark.parametrize(("element", "space"), [("i4", ""), ("i2", ""), ("i4", ", 3")])
def test_stores_at_any_column(element, space):
    """Two subgroups store blocks that share a byte, and one block exceeds the edges; nothing else changes."""
    local = "#xegpu.tdesc_attr<memory_scope = slm>" if space else ""
    desc = f"!xegpu.tensor_desc<4x16x{element}{', ' + local if local else ''}>"
    memory = f"memref<6x48x{element}{space}>"
    target = "%s" if space else "%o"
    store = f"""
      %t{{n}} = xegpu.create_nd_tdesc {target}[{{row}}, %at{{n}}] {{{{mode = vc}}}} : {memory} -> {desc}
      %u{{n}} = xegpu.update_nd_offset %t{{n}}, [1, {{column}}] {{{{mode = vc}}}} : {desc} -> {desc}
      xegpu.store_nd %v, %u{{n}} {{{{mode = vc}}}} : vector<4x16x{element}>, {desc}"""
    copies = ["", ""]
    if space:
        arrays = ("%o", f"memref<6x48x{element}>"), ("%s", memory)
        for i, ((old, old_type), (new, new_type)) in enumerate((arrays, arrays[::-1])):
            copies[i] = f"""%x{i} = vector.load {old}[%c0, %c0] : {old_type}, vector<6x48x{element}>
        vector.store %x{i}, {new}[%c0, %c0] : {new_type}, vector<6x48x{element}>"""
    body = f"""
      %id = gpu.subgroup_id : index
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %first = arith.cmpi eq, %id, %c0 : index
      %v = vector.load %a[%id, %c0, %c0] : memref<2x4x16x{element}>, vector<4x16x{element}>
      scf.if %first {{ {copies[0]}
      }}
      gpu.barrier
      %skip = arith.muli %id, %c16 : index
      %at0 = arith.addi %skip, %x : index
      %at1 = arith.subi %c0, %x : index
      {store.format(n=0, row=0, column=1)}
      gpu.barrier
      scf.if %first {{ {store.format(n=1, row=2, column=-4)}
        {copies[1]}
      }}"""
    shared = f") workgroup(%s: {memory}" if space else ""
    text = kernel(f"%a: memref<2x4x16x{element}>, %o: memref<6x48x{element}>, %x: index{shared}", body)
    a, o = numbers(element, 2, 4, 16), numbers(element, 6, 48, seed=1)
    for x in (2, 4, 5):
        wanted = o.copy()
        for i in range(2):
            wanted[1:5, 16 * i + x + 1 : 16 * i + x + 17] = a[i]
        begin = -x - 4
        wanted[3:6, : begin + 16] = a[0][:3, -begin:]
        assert (whole(run(text, a, o, x, block=2)[1]) == whole(wanted)).all(), x


@pytest.mark.parametrize(("element", "unit"), [("i4", 4), ("i4", 32), ("i2", 2), ("i2", 16)])
def test_transposed_loads_at_any_column(element, unit):
    bits = int(element[1:])
    group = unit // bits
    shape = f"{64 // group}x4x{group}" if group > 1 else "64x4"
    width = f", transpose_bit_width = {unit}" if group > 1 else ""
    body = f"""
      %c0 = arith.constant 0 : index
      %t = xegpu.create_nd_tdesc %a[1, %x] {{mode = vc}} : memref<8x96x{element}> -> !xegpu.tensor_desc<4x64x{element}>
      %v = xegpu.load_nd %t {{mode = vc, transpose = [1, 0]{width}}}
        : !xegpu.tensor_desc<4x64x{element}> -> vector<{shape}x{element}>
      %w = vector.shape_cast %v : vector<{shape}x{element}> to vector<256x{element}>
      vector.store %w, %o[%c0] : memref<256x{element}>, vector<256x{element}>"""
    text = kernel(f"%a: memref<8x96x{element}>, %x: index, %o: memref<256x{element}>", body)
    a, o = numbers(element, 8, 96), numbers(element, 256)
    for x in (3, 16):
        wanted = a[1:5, x : x + 64].reshape(4, 64 // group, group).transpose(1, 0, 2).reshape(256)
        assert (whole(run(text, a, x, o)[2]) == whole(wanted)).all(), x


def test_transforms_of_a_load():
    a = numbers("i4", 8, 32)
    plain = whole(a) & 15
    pairs = plain.reshape(8, 16, 2)
    expected = {
        ("", "8x32"): plain,
        (", transpose = [1, 0]", "32x8"): plain.T,
        (", transpose = [1, 0], transpose_bit_width = 8", "16x16"): pairs.transpose(1, 0, 2),
        (", transpose = [1, 0], transpose_bit_width = 32", "4x64"): plain.reshape(8, 4, 8).transpose(1, 0, 2),
        (", vnni_axis = 0", "1x32x8"): plain.reshape(1, 8, 32).transpose(0, 2, 1),
        (", vnni_axis = 1", "8x4x8"): plain,
    }
    for (how, shape), wanted in expected.items():
        text = kernel("%a: memref<8x32xi4>, %out: memref<256xi8>", MOVES.format(how=how, shape=shape))
        found = run(text, a, np.zeros(256, np.int8))[1]
        np.testing.assert_array_equal(found, wanted.ravel(), how)


def test_units_of_a_load_of_three_dimensions():
    """The last dimension is as long as a unit, which is not a dimension of its own."""
    text = kernel("%a: memref<2x8x4xi4>, %out: memref<32xi8>", """
  %c0 = arith.constant 0 : index
  %t = xegpu.create_nd_tdesc %a[1, 0, 0] {mode = vc} : memref<2x8x4xi4> -> !xegpu.tensor_desc<1x8x4xi4>
  %v = xegpu.load_nd %t {mode = vc, transpose_bit_width = 16, transpose = [1, 2, 0]} : !xegpu.tensor_desc<1x8x4xi4>
    -> vector<8x1x4xi4>
  %f = vector.shape_cast %v : vector<8x1x4xi4> to vector<32xi4>
  %w = arith.extsi %f : vector<32xi4> to vector<32xi8>
  vector.store %w, %out[%c0] : memref<32xi8>, vector<32xi8>""")  # fmt: skip
    a = numbers("i4", 2, 8, 4)
    np.testing.assert_array_equal(run(text, a, np.zeros(32, np.int8))[1], whole(a)[1].ravel())


def test_arrays_of_blocks():
    text = kernel("%a: memref<8x64xi4>, %out: memref<8x64xi4>", """
  %t = xegpu.create_nd_tdesc %a[0, 0] {mode = vc} : memref<8x64xi4>
    -> !xegpu.tensor_desc<8x32xi4, #xegpu.tdesc_attr<array_length = 2>>
  %v = xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<8x32xi4, #xegpu.tdesc_attr<array_length = 2>>
    -> vector<2x8x32xi4>
  %b = vector.extract %v[1] : vector<8x32xi4> from vector<2x8x32xi4>
  %o = xegpu.create_nd_tdesc %out[0, 32] {mode = vc} : memref<8x64xi4> -> !xegpu.tensor_desc<8x32xi4>
  xegpu.prefetch_nd %o {mode = vc} : !xegpu.tensor_desc<8x32xi4>
  xegpu.store_nd %b, %o {mode = vc} : vector<8x32xi4>, !xegpu.tensor_desc<8x32xi4>""")  # fmt: skip
    a, out = numbers("i4", 8, 64), numbers("i4", 8, 64, seed=1)
    expected = whole(out)
    expected[:, 32:] = whole(a)[:, 32:]
    np.testing.assert_array_equal(whole(run(text, a, out)[1]), expected)


BINARY = {
    "addi": lambda a, b: a + b, "subi": lambda a, b: a - b, "muli": lambda a, b: a * b, "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b, "xori": lambda a, b: a ^ b, "maxsi": np.maximum, "minsi": np.minimum,
}  # fmt: skip


@pytest.mark.parametrize("element", ["i4", "i2"])
def test_arithmetic_of_all_pairs(element):
    """Each op on all pairs in one vector. Ops that are not in `BINARY` are computed in wider integers."""
    bits = int(element[1])
    count = 1 << bits
    a, b = (g.ravel().astype(np.int8) for g in np.meshgrid(np.arange(count), np.arange(count)))
    signed = [((v.astype(int) + count // 2) % count) - count // 2 for v in (a, b)]
    u, s = (a.astype(int), b.astype(int)), signed
    nonzero, shifts = np.where(u[1] == 0, 1, u[1]), u[1] % bits
    divisor = np.where(s[1] == 0, 1, s[1])
    # The only quotient that overflows is undefined.
    divisor = np.where((s[0] == -count // 2) & (divisor == -1), 1, divisor)
    cases = {name: (function(*s), b) for name, function in BINARY.items()}
    cases |= {
        "maxui": (np.maximum(*u), b), "minui": (np.minimum(*u), b), "divui": (u[0] // nonzero, nonzero),
        "remui": (u[0] % nonzero, nonzero), "shli": (u[0] << shifts, shifts), "shrui": (u[0] >> shifts, shifts),
        "shrsi": (s[0] >> shifts, shifts), "divsi": (np.trunc(s[0] / divisor).astype(int), divisor),
        "remsi": (np.fmod(s[0], divisor), divisor), "floordivsi": (s[0] // divisor, divisor),
    }  # fmt: skip
    vector, memref = f"vector<{count * count}x{element}>", f"memref<{count * count}x{element}>"
    names = list(cases)
    arguments = ", ".join(f"%b{i}: {memref}, %o{i}: {memref}" for i in range(len(names)))
    body = ["%c0 = arith.constant 0 : index", f"%x = vector.load %a[%c0] : {memref}, {vector}"]
    for i, name in enumerate(names):
        body += [f"%y{i} = vector.load %b{i}[%c0] : {memref}, {vector}",
                 f"%r{i} = arith.{name} %x, %y{i} : {vector}",
                 f"vector.store %r{i}, %o{i}[%c0] : {memref}, {vector}"]  # fmt: skip
    dtype = ARRAYS[element, "s"]
    given = [a.astype(dtype)]
    for _, second in cases.values():
        given += [(np.asarray(second) & (count - 1)).astype(np.int8).astype(dtype), np.zeros(count * count, dtype)]
    found = run(kernel(f"%a: {memref}, {arguments}", "\n".join(body)), *given, registers=256)
    for i, (name, (expected, _)) in enumerate(cases.items()):
        np.testing.assert_array_equal(whole(found[2 + 2 * i]) & (count - 1), expected & (count - 1), name)


def test_conversions_and_comparisons():
    arguments = "%a: memref<16xi4>, %b: memref<16xi4>, %w: memref<6x16xi32>, %n: memref<3x16xi4>, %f: memref<16xf16>"
    text = kernel(arguments, """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %x = vector.load %a[%c0] : memref<16xi4>, vector<16xi4>
  %y = vector.load %b[%c0] : memref<16xi4>, vector<16xi4>
  %s = arith.extsi %x : vector<16xi4> to vector<16xi32>
  vector.store %s, %w[%c0, %c0] : memref<6x16xi32>, vector<16xi32>
  %u = arith.extui %x : vector<16xi4> to vector<16xi32>
  vector.store %u, %w[%c1, %c0] : memref<6x16xi32>, vector<16xi32>
  %slt = arith.cmpi slt, %x, %y : vector<16xi4>
  %lt = arith.extui %slt : vector<16xi1> to vector<16xi32>
  vector.store %lt, %w[%c2, %c0] : memref<6x16xi32>, vector<16xi32>
  %ult = arith.cmpi uge, %x, %y : vector<16xi4>
  %ge = arith.extui %ult : vector<16xi1> to vector<16xi32>
  vector.store %ge, %w[%c3, %c0] : memref<6x16xi32>, vector<16xi32>
  %h = arith.sitofp %x : vector<16xi4> to vector<16xf16>
  %back = arith.fptosi %h : vector<16xf16> to vector<16xi4>
  vector.store %back, %n[%c0, %c0] : memref<3x16xi4>, vector<16xi4>
  %uf = arith.uitofp %x : vector<16xi4> to vector<16xf16>
  vector.store %uf, %f[%c0] : memref<16xf16>, vector<16xf16>
  %most = arith.select %slt, %y, %x : vector<16xi1>, vector<16xi4>
  vector.store %most, %n[%c1, %c0] : memref<3x16xi4>, vector<16xi4>
  %t = arith.trunci %u : vector<16xi32> to vector<16xi4>
  %k = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1]> : vector<16xi4>
  %z = arith.addi %t, %k : vector<16xi4>
  vector.store %z, %n[%c2, %c0] : memref<3x16xi4>, vector<16xi4>
  %total = vector.reduction <add>, %x : vector<16xi4> into i4
  %least = vector.reduction <minsi>, %x : vector<16xi4> into i4
  %wide = arith.extsi %total : i4 to i32
  %low = arith.extsi %least : i4 to i32
  memref.store %wide, %w[%c4, %c0] : memref<6x16xi32>
  memref.store %low, %w[%c5, %c0] : memref<6x16xi32>""")  # fmt: skip
    a, b = numbers("i4", 16), numbers("i4", 16, seed=5)
    given = [np.zeros((6, 16), np.int32), np.zeros((3, 16), ml_dtypes.int4), np.zeros(16, np.float16)]
    _, _, w, n, f = run(text, a, b, *given)
    x, y = whole(a), whole(b)
    ux, uy = x & 15, y & 15
    np.testing.assert_array_equal(w[:4], [x, ux, x < y, ux >= uy])
    np.testing.assert_array_equal(f, ux)
    np.testing.assert_array_equal(whole(n) & 15, np.array([x, np.maximum(x, y), x + np.arange(16)]) & 15)
    assert w[4, 0] & 15 == x.sum() & 15 and w[5, 0] == x.min()


ITEMS = "attributes {xegpu.subgroup_size = 16 : i32}"


@pytest.mark.parametrize("element", ["i4", "i2"])
@pytest.mark.parametrize("simt", [True, False])
def test_elements_that_share_bytes_are_written_by_different_threads(element, simt):
    """Each work item writes and updates elements of its own, whose neighbours in the byte are others'."""
    text = kernel(f"%a: memref<?x{element}>, %b: memref<?x{element}>, %old: memref<?xi32>", f"""
  %t = gpu.global_id x
  %three = arith.constant 3 : index
  %x = memref.load %a[%t] : memref<?x{element}>
  memref.store %x, %b[%t] : memref<?x{element}>
  %was = memref.atomic_rmw addi %x, %b[%t] : ({element}, memref<?x{element}>) -> {element}
  %w = arith.extui %was : {element} to i32
  memref.store %w, %old[%t] : memref<?xi32>""", ITEMS if simt else "")  # fmt: skip
    bits = int(element[1])
    a, b = numbers(element, 64), np.zeros(64, ARRAYS[element, "s"])
    _, found, old = run(text, a, b, np.zeros(64, np.int32), grid=2, block=32)
    mask = (1 << bits) - 1
    np.testing.assert_array_equal(whole(found) & mask, 2 * whole(a) & mask)
    np.testing.assert_array_equal(old, whole(a) & mask)


@pytest.mark.parametrize(("element", "simt"), [("i4", False), ("i2", True)])
def test_regions_update_elements_that_share_bytes(element, simt):
    """The region has a branch, and ops on the element and on a wider number."""
    text = kernel(f"%a: memref<?x{element}>, %b: memref<?x{element}>, %old: memref<?xi32>", f"""
  %t = gpu.global_id x
  %x = memref.load %a[%t] : memref<?x{element}>
  %was = memref.generic_atomic_rmw %b[%t] : memref<?x{element}> {{
    ^bb0(%e: {element}):
      %less = arith.cmpi slt, %e, %x : {element}
      %n = scf.if %less -> {element} {{
        scf.yield %x : {element}
      }} else {{
        %wide = arith.extsi %e : {element} to i32
        %twice = arith.muli %wide, %wide : i32
        %low = arith.trunci %twice : i32 to {element}
        %d = arith.subi %low, %x : {element}
        scf.yield %d : {element}
      }}
      memref.atomic_yield %n : {element}
  }}
  %w = arith.extsi %was : {element} to i32
  memref.store %w, %old[%t] : memref<?xi32>""", ITEMS if simt else "")  # fmt: skip
    a, b = numbers(element, 32), numbers(element, 32, seed=1)
    _, found, old = run(text, a, b, np.zeros(32, np.int32), block=32)
    x, e = whole(a), whole(b)
    mask = (1 << int(element[1])) - 1
    np.testing.assert_array_equal(whole(found) & mask, np.where(e < x, x, e * e - x) & mask)
    np.testing.assert_array_equal(old, e)


def test_work_items_load_blocks():
    settings = "#xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 2]>"
    desc = f"!xegpu.tensor_desc<8x32xi4, {settings}>"
    text = kernel("%a: memref<8x32xi4>, %b: memref<8x32xi4>", f"""
  %t = xegpu.create_nd_tdesc %a[0, 0] : memref<8x32xi4> -> {desc}
  %o = xegpu.create_nd_tdesc %b[0, 0] : memref<8x32xi4> -> {desc}
  %v = xegpu.load_nd %t : {desc} -> vector<8x2xi4>
  %w = arith.muli %v, %v : vector<8x2xi4>
  xegpu.store_nd %w, %o : vector<8x2xi4>, {desc}""")  # fmt: skip
    a = numbers("i4", 8, 32)
    found = run(text, a, np.zeros_like(a), block=16)[1]
    np.testing.assert_array_equal(whole(found) & 15, whole(a) ** 2 & 15)


def test_views_and_shared_local_memory():
    text = kernel("%a: memref<8x32xi4, strided<[64, 1]>>, %b: memref<4x16xi4>, %x: index", """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %even = arith.muli %x, %c2 : index
  %s = memref.subview %a[2, %even] [4, 16] [1, 1] : memref<8x32xi4, strided<[64, 1]>>
    to memref<4x16xi4, strided<[64, 1], offset: ?>>
  %l = memref.alloc() : memref<64xi4, 3>
  %l2 = memref.expand_shape %l [[0, 1]] output_shape [4, 16] : memref<64xi4, 3> into memref<4x16xi4, 3>
  %flat = memref.collapse_shape %b [[0, 1]] : memref<4x16xi4> into memref<64xi4>
  scf.for %i = %c0 to %c4 step %c1 {
    %v = vector.load %s[%i, %c0] : memref<4x16xi4, strided<[64, 1], offset: ?>>, vector<16xi4>
    vector.store %v, %l2[%i, %c0] : memref<4x16xi4, 3>, vector<16xi4>
  }
  gpu.barrier
  %pad = arith.constant 0 : i4
  %all = vector.transfer_read %l[%c0], %pad {in_bounds = [true]} : memref<64xi4, 3>, vector<64xi4>
  vector.transfer_write %all, %flat[%c0] {in_bounds = [true]} : vector<64xi4>, memref<64xi4>""")  # fmt: skip
    whole_rows = numbers("i4", 8, 64)
    a, b = whole_rows[:, :32], np.zeros((4, 16), ml_dtypes.int4)
    for engine in ("reference", "both"):
        found = b.copy()
        xegpu_py.compile(text, engine=engine)(a, found, 3)
        np.testing.assert_array_equal(whole(found), whole(a)[2:6, 6:22])


def test_arguments():
    """One element a byte, or packed. An array that is passed twice is one array, and only written elements change."""
    text = kernel("%a: memref<?xi4>, %b: memref<?xi4>", """
  %c0 = arith.constant 0 : index
  %v = vector.load %a[%c0] : memref<?xi4>, vector<8xi4>
  %w = arith.addi %v, %v : vector<8xi4>
  vector.store %w, %b[%c0] : memref<?xi4>, vector<8xi4>""")  # fmt: skip
    values = numbers("i4", 12)
    doubled = np.concatenate([2 * whole(values)[:8] & 15, whole(values)[8:] & 15])
    packed = np.array([(int(x) & 15) | (int(y) & 15) << 4 for x, y in whole(values).reshape(-1, 2)], np.uint8)
    for engine in ("reference", "interpreter", "jit"):
        run_it = xegpu_py.compile(text, engine=engine)
        a = values.copy()
        run_it(a, a)
        np.testing.assert_array_equal(whole(a) & 15, doubled)
        assert (a[8:].view(np.uint8) == values[8:].view(np.uint8)).all()
        for dtype in (np.uint8, np.int8):
            b = packed.view(dtype).copy()
            run_it(b, b)
            np.testing.assert_array_equal(b.view(np.uint8), doubled[::2] | doubled[1::2] << 4)
        b = numbers("i4", 12, sign="u")
        run_it(values, b)
        np.testing.assert_array_equal(whole(b)[:8] & 15, doubled[:8])
        # Arrays that begin within another array's bytes, or are read-only.
        with pytest.raises(ValueError, match="overlaps another array"):
            run_it(a, a[1:])
        fixed = values.copy()
        fixed.flags.writeable = False
        with pytest.raises((ValueError, xegpu_py.DiagnosticError), match="read-only"):
            run_it(fixed, fixed)
        with pytest.raises(TypeError, match="argument '%a'.*array of .*packed"):
            run_it(np.zeros(12, np.int16), b)
    rows = kernel("%a: memref<4x?xi4>", "")
    for engine in ("reference", "both"):
        with pytest.raises(ValueError, match="rows that begin within a byte when packed"):
            xegpu_py.compile(rows, engine=engine)(numbers("i4", 4, 7))
        with pytest.raises(ValueError, match="argument '%a'.*shape"):
            xegpu_py.compile(rows, engine=engine)(numbers("i4", 3, 8))


@pytest.mark.parametrize("seed", range(examples(10)))
def test_random_moves(seed):
    """Chains of ops of the vector dialect on random shapes, packed and not."""
    r = random.Random(seed)
    element = r.choice(["i4", "i2"])
    shape, lines = [r.choice([1, 2, 3, 4]), r.choice([2, 3, 4, 6, 8])], []
    size = shape[0] * shape[1]
    name = "%v0"
    kind = f"vector<{'x'.join(map(str, shape))}x{element}>"
    lines.append(f"%l = vector.load %a[%x] : memref<64x{element}>, vector<{size}x{element}>")
    lines.append(f"%v0 = vector.shape_cast %l : vector<{size}x{element}> to {kind}")
    for i in range(1, 6):
        how = r.choice(["transpose", "slice", "insert", "cast", "add", "shuffle", "broadcast", "interleave", "loop"])
        before, made, rank = kind, f"%v{i}", len(shape)
        if how == "transpose":
            order = r.sample(range(rank), rank)
            shape = [shape[p] for p in order]
            op = f"vector.transpose {name}, {order} : {before} to "
        elif how == "slice":
            sizes = [r.randint(1, n) for n in shape]
            offsets = [r.randint(0, n - s) for n, s in zip(shape, sizes)]
            op = (f"vector.extract_strided_slice {name} {{offsets = {offsets}, sizes = {sizes}, "
                  f"strides = {[1] * rank}}} : {before} to ")  # fmt: skip
            shape = sizes
        elif how == "insert":
            into = [n + r.randint(0, 2) for n in shape]
            offsets = [r.randint(0, m - n) for m, n in zip(into, shape)]
            big = f"vector<{'x'.join(map(str, into))}x{element}>"
            lines.append(f"%k{i} = arith.constant dense<1> : {big}")
            op = (f"vector.insert_strided_slice {name}, %k{i} {{offsets = {offsets}, strides = {[1] * rank}}} : "
                  f"{before} into ")  # fmt: skip
            shape = into
        elif how == "cast":
            count = int(np.prod(shape))
            n = r.choice([d for d in range(1, count + 1) if count % d == 0])
            shape = [n, count // n] if r.random() < 0.7 else [count]
            op = f"vector.shape_cast {name} : {before} to "
        elif how == "add":
            op = f"arith.{r.choice(['addi', 'muli', 'xori', 'maxsi', 'minui'])} {name}, {name} : "
        elif how == "shuffle":
            order = [r.randrange(2 * shape[0]) for _ in range(r.randint(1, 4))]
            shape = [len(order), *shape[1:]]
            lines.append(f"%s{i} = vector.shuffle {name}, {name} {order} : {before}, {before}")
            kind, name = f"vector<{'x'.join(map(str, shape))}x{element}>", f"%s{i}"
            continue
        elif how == "broadcast" and rank < 3 and np.prod(shape) < 60:
            shape = [2, *shape]
            op = f"vector.broadcast {name} : {before} to "
        elif how == "loop":
            lines.append(f"{made} = scf.for %i{i} = %c0 to %c3 step %c1 iter_args(%c{i}w = {name}) -> {before} {{")
            lines.append(f"%d{i} = arith.addi %c{i}w, {name} : {before} scf.yield %d{i} : {before} }}")
            name = made
            continue
        elif np.prod(shape) < 60:
            lines.append(f"{made} = vector.interleave {name}, {name} : {before} -> "
                         f"vector<{'x'.join(map(str, [*shape[:-1], 2 * shape[-1]]))}x{element}>")  # fmt: skip
            shape = [*shape[:-1], 2 * shape[-1]]
            kind, name = f"vector<{'x'.join(map(str, shape))}x{element}>", made
            continue
        else:
            continue
        kind = f"vector<{'x'.join(map(str, shape))}x{element}>"
        lines.append(f"{made} = {op}{kind}")
        name = made
    count = int(np.prod(shape))
    lines.append(f"%f = vector.shape_cast {name} : {kind} to vector<{count}x{element}>")
    lines.append(f"vector.store %f, %b[%x] : memref<512x{element}>, vector<{count}x{element}>")
    constants = [f"%c{n} = arith.constant {n} : index" for n in (0, 1, 3)]
    text = kernel(f"%a: memref<64x{element}>, %b: memref<512x{element}>, %x: index", "\n".join([*constants, *lines]))
    run(text, numbers(element, 64), np.zeros(512, ARRAYS[element, "s"]), r.randint(0, 8))


def test_floats_of_four_bits_are_moved():
    text = kernel("%a: memref<8x32xf32>, %b: memref<8x32xf4E2M1FN>, %c: memref<8x32xf4E2M1FN>", """
  %c0 = arith.constant 0 : index
  %x = vector.load %a[%c0, %c0] : memref<8x32xf32>, vector<8x32xf32>
  %y = xegpu.truncf %x : vector<8x32xf32> -> vector<8x32xf4E2M1FN>
  vector.store %y, %b[%c0, %c0] : memref<8x32xf4E2M1FN>, vector<8x32xf4E2M1FN>
  %d = xegpu.create_nd_tdesc %b[0, 0] {mode = vc} : memref<8x32xf4E2M1FN> -> !xegpu.tensor_desc<8x32xf4E2M1FN>
  %e = xegpu.create_nd_tdesc %c[0, 0] {mode = vc} : memref<8x32xf4E2M1FN> -> !xegpu.tensor_desc<8x32xf4E2M1FN>
  %z = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x32xf4E2M1FN> -> vector<8x32xf4E2M1FN>
  xegpu.store_nd %z, %e {mode = vc} : vector<8x32xf4E2M1FN>, !xegpu.tensor_desc<8x32xf4E2M1FN>""")  # fmt: skip
    a = np.random.default_rng(3).integers(-3, 4, (8, 32)).astype(np.float32)
    _, b, c = run(text, a, *np.zeros((2, 8, 32), ml_dtypes.float4_e2m1fn))
    np.testing.assert_array_equal(b.astype(np.float32), a)
    np.testing.assert_array_equal(c.astype(np.float32), a)


def test_positions_that_a_loop_computes_beside_numbers():
    """The loop carries an index and a vector of i4; the index is used after it."""
    body = """
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %v0 = vector.load %a[%c0] : memref<64xi4>, vector<16xi4>
      %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %c0, %w = %v0) -> (index, vector<16xi4>) {
        %q = arith.addi %p, %c1 : index
        scf.yield %q, %w : index, vector<16xi4>
      }
      %v = vector.load %a[%r#0] : memref<64xi4>, vector<16xi4>
      vector.store %v, %o[%r#0] : memref<64xi4>, vector<16xi4>"""
    a, o = numbers("i4", 64), numbers("i4", 64, seed=1)
    for n in (3, 4):
        wanted = o.copy()
        wanted[n : n + 16] = a[n : n + 16]
        found = run(kernel("%a: memref<64xi4>, %o: memref<64xi4>, %n: index", body), a, o, n)[1]
        assert (whole(found) == whole(wanted)).all()


INDICES = "".join(f"%c{n} = arith.constant {n} : index\n" for n in (0, 1, 2, 3, 8))

OPS = {
    "extents": """
      %r = memref.dim %a, %c0 : memref<?x?x{t}>
      %c = memref.dim %a, %c1 : memref<?x?x{t}>
      %s = memref.dim %b, %c1 : memref<4x16x{t}>
      memref.store %r, %n[%c0] : memref<4xindex>
      memref.store %c, %n[%c1] : memref<4xindex>
      memref.store %s, %n[%c2] : memref<4xindex>""",
    "transfers over edges": """
      %p = arith.constant 1 : {t}
      %j = arith.muli %x, %c8 : index
      %v = vector.transfer_read %a[%c2, %j], %p : memref<?x?x{t}>, vector<4x16x{t}>
      vector.store %v, %b[%c0, %c0] : memref<4x16x{t}>, vector<4x16x{t}>
      vector.transfer_write %v, %a[%c3, %j] : vector<4x16x{t}>, memref<?x?x{t}>""",
    "rows of a dynamic extent": """
      %j = arith.muli %x, %c8 : index
      %f = memref.collapse_shape %a [[0, 1]] : memref<?x?x{t}> into memref<?x{t}>
      %e = memref.expand_shape %f [[0, 1]] output_shape [5, %j] : memref<?x{t}> into memref<5x?x{t}>
      memref.prefetch %e[%c0, %c1], read, locality<3>, data : memref<5x?x{t}>
      %v = vector.load %e[%c3, %c8] : memref<5x?x{t}>, vector<8x{t}>
      vector.store %v, %b[%c1, %c0] : memref<4x16x{t}>, vector<8x{t}>""",
    "a view of dynamic extent and stride": """
      %j = arith.muli %x, %c8 : index
      %e = memref.reinterpret_cast %a to offset: [%c8], sizes: [2, %j], strides: [%j, 1]
        : memref<?x?x{t}> to memref<2x?x{t}, strided<[?, 1], offset: ?>>
      %d = memref.dim %e, %c1 : memref<2x?x{t}, strided<[?, 1], offset: ?>>
      memref.store %d, %n[%c3] : memref<4xindex>
      %v = vector.load %e[%c1, %c2] : memref<2x?x{t}, strided<[?, 1], offset: ?>>, vector<8x{t}>
      vector.store %v, %b[%c1, %c0] : memref<4x16x{t}>, vector<8x{t}>""",
    "signed constants": """
      %k = arith.constant dense<[-2, -1, 0, 1, -2, -1, 0, 1, -2, -1, 0, 1, -2, 1, 1, 1]> : vector<16x{t}>
      %v = vector.load %b[%c0, %c0] : memref<4x16x{t}>, vector<16x{t}>
      %l = arith.cmpi slt, %v, %k : vector<16x{t}>
      %w = arith.extsi %l : vector<16xi1> to vector<16x{t}>
      vector.store %w, %b[%c1, %c0] : memref<4x16x{t}>, vector<16x{t}>
      %m = arith.maxsi %v, %k : vector<16x{t}>
      vector.store %m, %b[%c2, %c0] : memref<4x16x{t}>, vector<16x{t}>""",
    "a row inserted within a byte": """
      %v = vector.load %b[%c0, %c0] : memref<4x16x{t}>, vector<16x{t}>
      %k = vector.load %b[%c1, %c1] : memref<4x16x{t}>, vector<4x{t}>
      %r = vector.insert_strided_slice %k, %v {{offsets = [3], strides = [1]}} : vector<4x{t}> into vector<16x{t}>
      %q = vector.insert_strided_slice %k, %r {{offsets = [8], strides = [1]}} : vector<4x{t}> into vector<16x{t}>
      vector.store %q, %b[%c3, %c0] : memref<4x16x{t}>, vector<16x{t}>""",
    "memory that a condition chooses": """
      %is = arith.cmpi eq, %x, %c2 : index
      %d = memref.cast %b : memref<4x16x{t}> to memref<?x?x{t}>
      %m = arith.select %is, %a, %d : memref<?x?x{t}>
      %o = scf.if %is -> memref<?x?x{t}> {{
        scf.yield %d : memref<?x?x{t}>
      }} else {{
        scf.yield %m : memref<?x?x{t}>
      }}
      %v = vector.load %m[%c3, %c8] : memref<?x?x{t}>, vector<8x{t}>
      vector.store %v, %o[%c3, %c8] : memref<?x?x{t}>, vector<8x{t}>""",
    "a block that a condition chooses": """
      %is = arith.cmpi slt, %x, %c2 : index
      %y = xegpu.create_nd_tdesc %b[%c2, 0] {{mode = vc}} : memref<4x16x{t}> -> !xegpu.tensor_desc<2x8x{t}>
      %z = xegpu.create_nd_tdesc %b[%c0, %x] {{mode = vc}} : memref<4x16x{t}> -> !xegpu.tensor_desc<2x8x{t}>
      %d = arith.select %is, %y, %z : !xegpu.tensor_desc<2x8x{t}>
      %v = xegpu.load_nd %d {{mode = vc}} : !xegpu.tensor_desc<2x8x{t}> -> vector<2x8x{t}>
      vector.store %v, %b[%c2, %c8] : memref<4x16x{t}>, vector<2x8x{t}>""",
    "rows that end within a byte": """
      %u = ub.poison : vector<2x16x{t}>
      %v = vector.load %b[%c1, %x] : memref<4x16x{t}>, vector<2x3x{t}>
      vector.store %v, %b[%c2, %c1] : memref<4x16x{t}>, vector<2x3x{t}>""",
    "casts of index": """
      %i = vector.step : vector<16xindex>
      %v = arith.index_cast %i : vector<16xindex> to vector<16x{t}>
      vector.store %v, %b[%c3, %c0] : memref<4x16x{t}>, vector<16x{t}>
      %s = arith.index_cast %x : index to {t}
      %u = arith.index_castui %x : index to {t}
      %wide = arith.index_cast %s : {t} to index
      %high = arith.index_castui %u : {t} to index
      memref.store %wide, %n[%c0] : memref<4xindex>
      memref.store %high, %n[%c1] : memref<4xindex>""",
}


@pytest.mark.parametrize("element", ["i4", "i2"])
@pytest.mark.parametrize("name", OPS)
def test_ops_beside_others(name, element):
    """The engines give the bits of the reference, which has no elements that share bytes."""
    arguments = f"%a: memref<?x?x{element}>, %b: memref<4x16x{element}>, %n: memref<4xindex>, %x: index"
    given = numbers(element, 5, 24), numbers(element, 4, 16, seed=1), np.array([5, -7, 90, 2**20])
    found = run(kernel(arguments, INDICES + OPS[name].format(t=element)), *given, 2)
    assert any(a.tobytes() != b.tobytes() for a, b in zip(given, found))
    if name == "extents":
        assert list(found[2][:3]) == [5, 24, 16]
    if name == "transfers over edges":
        wanted = np.ones((4, 16), int)
        wanted[:3, :8] = whole(given[0])[2:, 16:]
        np.testing.assert_array_equal(whole(found[1]), np.where(wanted == 2, -2, wanted))
