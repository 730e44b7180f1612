"""`arith.addui_extended`, `arith.mulsi_extended` and `arith.mului_extended` give both halves of exact integers."""

from __future__ import annotations

import numpy as np
import pytest

import xegpu_py

EDGES = (0, 1, -1, 2, -2, 3, 0x55, -0x56)


def numbers(bits, count, seed):
    """Numbers of so many bits, as signed integers: each of few bits, or the edges and random ones."""
    found = np.random.default_rng(seed).integers(-(2**63), 2**63, count).tolist()
    edges = [*EDGES, 1 << bits - 1, (1 << bits - 1) - 1, 1 << bits // 2, (1 << bits // 2) - 1]
    found[: len(edges)] = np.random.default_rng(seed).permutation(np.array(edges, object)).tolist()
    return [signed(n, bits) for n in found]


def signed(number, bits):
    return (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def expected(a, b, bits):
    """The six results: sum and carry, lower and upper half of both products, in Python's integers."""
    x, y = a % (1 << bits), b % (1 << bits)
    found = (x + y, int(x + y >= 1 << bits), a * b, a * b >> bits, x * y, x * y >> bits)
    return [signed(n, bits) if i != 1 else n for i, n in enumerate(found)]


BODY = """
    %s, %o = arith.addui_extended %x, %y : T, M
    %lo, %hi = arith.mulsi_extended %x, %y : T
    %ul, %uh = arith.mului_extended %x, %y : T
    %c = arith.extui %o : M to C"""
RESULTS = ("%s", "%c", "%lo", "%hi", "%ul", "%uh")


def vectors(bits, count):
    """A kernel of one work item on vectors; numbers of less than a byte are passed as bytes, or as they are."""
    held = max(bits, 8)
    t, h, m, c = (f"vector<{count}xi{n}>" for n in (bits, held, 1, 8))
    memory = ", ".join(f"%p{i}: memref<{count}xi{8 if i == 3 else held}>" for i in range(8))
    lines = ["%z = arith.constant 0 : index"]
    for i, name in enumerate(("%x", "%y")):
        lines.append(f"%w{i} = vector.load %p{i}[%z] : memref<{count}xi{held}>, {h}")
        lines.append(f"{name} = arith.{'trunci %w' if held > bits else 'bitcast %w'}{i} : {h} to {t}")
    lines.append(BODY.replace("T", t).replace("M", m).replace("C", c))
    for i, name in enumerate(RESULTS, 2):
        kind = h if i != 3 else c
        if held > bits and i != 3:
            lines.append(f"%e{i} = arith.extsi {name} : {t} to {h}")
            name = f"%e{i}"
        lines.append(f"vector.store {name}, %p{i}[%z] : memref<{count}x{kind.split('x')[1][:-1]}>, {kind}")
    body = "\n    ".join(lines)
    return f"gpu.module @m {{ gpu.func @k({memory}) kernel {{\n    {body}\n    gpu.return\n}} }}"


@pytest.mark.parametrize("bits,count", [(1, 32), (2, 32), (4, 48), (8, 45), (16, 48), (32, 45), (32, 600), (64, 48)])
def test_both_halves(bits, count):
    dtype = np.dtype(f"i{max(bits, 8) // 8}")
    a, b = numbers(bits, count, 1), numbers(bits, count, 2)
    exact = [expected(x, y, bits) for x, y in zip(a, b)]
    text = vectors(bits, count)
    for engine in ("reference", "both"):
        outs = [np.zeros(count, np.int8 if i == 1 else dtype) for i in range(6)]
        xegpu_py.compile(text, engine=engine, cache="off")(np.array(a, dtype), np.array(b, dtype), *outs, block=1)
        for column, (out, wanted) in enumerate(zip(outs, zip(*exact))):
            assert out.tolist() == list(wanted), (engine, RESULTS[column])


WORK_ITEMS = """gpu.module @m {
  gpu.func @k(%in: memref<?x2xi32>, %out: memref<?x6xi32>, %bytes: memref<?xi8>)
      kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %c0 = arith.constant 0 : index
    %item = gpu.thread_id x
    %v = vector.load %in[%item, %c0] : memref<?x2xi32>, vector<2xi32>
    %x, %y = vector.to_elements %v : vector<2xi32>
    BODY
    %byte = memref.load %bytes[%item] : memref<?xi8>
    %nibble = arith.trunci %byte : i8 to i4
    %wide = arith.extsi %nibble : i4 to i8
    memref.store %wide, %bytes[%item] : memref<?xi8>
    %r = vector.from_elements %s, %c, %lo, %hi, %ul, %uh : vector<6xi32>
    vector.store %r, %out[%item, %c0] : memref<?x6xi32>, vector<6xi32>
    gpu.return
  }
}""".replace("BODY", BODY.replace("T", "i32").replace("M", "i1").replace("C", "i32"))


def test_work_items_beside_narrow_numbers():
    """Scalars of work items, in a kernel that has numbers of 4 bits too."""
    a, b = numbers(32, 32, 3), numbers(32, 32, 4)
    for engine in ("reference", "both"):
        given = np.arange(32, dtype=np.int8)
        out = np.zeros((32, 6), np.int32)
        xegpu_py.compile(WORK_ITEMS, engine=engine, cache="off")(
            np.array([a, b], np.int32).T.copy(), out, given, block=32
        )
        assert out.tolist() == [expected(x, y, 32) for x, y in zip(a, b)]
        assert given.tolist() == [signed(n, 4) for n in range(32)]


def workgroup(body):
    """A kernel of four subgroups, whose results are stored with another map."""
    own, other = (
        f"#xetile.tile_attr<wg_map = <sg_layout = [{layout}], sg_data = [{data}]>>"
        for layout, data in (("2, 2", "16, 16"), ("4, 1", "8, 32"))
    )
    lines = []
    for i, name in enumerate(("%x", "%y")):
        lines.append(f"%t{i} = xetile.init_tile %p{i}[0, 0] : memref<32x32xi32> -> !xetile.tile<32x32xi32, {own}>")
        lines.append(f"{name} = xetile.load_tile %t{i} : !xetile.tile<32x32xi32, {own}> -> vector<32x32xi32>")
    lines.append(body.replace("M", "vector<32x32xi1>").replace("T", "vector<32x32xi32>").replace("C", "T"))
    for i, name in enumerate(RESULTS, 2):
        kind = f"!xetile.tile<32x32xi32, {other if i % 2 else own}>"
        lines.append(f"%t{i} = xetile.init_tile %p{i}[0, 0] : memref<32x32xi32> -> {kind}")
        lines.append(f"xetile.store_tile {name}, %t{i} : vector<32x32xi32>, {kind}")
    memory = ", ".join(f"%p{i}: memref<32x32xi32>" for i in range(8))
    text = "\n    ".join(lines).replace("to T", "to vector<32x32xi32>")
    return f"gpu.module @m {{ gpu.func @k({memory}) kernel {{\n    {text}\n    gpu.return\n}} }}"


def test_subgroups_share_both_halves():
    a, b = numbers(32, 1024, 5), numbers(32, 1024, 6)
    exact = [expected(x, y, 32) for x, y in zip(a, b)]
    text = workgroup(BODY)
    for engine in ("reference", "both"):
        outs = [np.zeros((32, 32), np.int32) for _ in range(6)]
        given = [np.array(v, np.int32).reshape(32, 32) for v in (a, b)]
        xegpu_py.compile(text, engine=engine, cache="off")(*given, *outs, block=4)
        for column, (out, wanted) in enumerate(zip(outs, zip(*exact))):
            assert out.ravel().tolist() == list(wanted), (engine, RESULTS[column])
