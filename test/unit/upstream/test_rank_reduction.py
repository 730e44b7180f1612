"""The splits into rows and columns that vectors of more dimensions have, and by which their reductions are done."""

import pytest
from mlir import ir

from xegpu_py import parse
from xegpu_py.ir.module import walk
from xegpu_py.upstream.rank_reduction import Splits, reduced_runs, take_bytes


@pytest.mark.parametrize(
    "shape, dims, split, runs",
    [
        ((2, 3, 4), (0,), None, [(1, 0)]),
        ((2, 3, 4), (1,), None, [(2, 1)]),
        ((2, 3, 4), (2,), None, [(2, 2)]),
        ((2, 3, 4), (1, 2), None, [(1, 1)]),
        ((2, 3, 4), (0, 1, 2), None, [(0, 0)]),
        # The last run first. The dimensions before a run that are reduced later are still there.
        ((2, 3, 4), (0, 2), None, [(2, 1), (1, 0)]),
        ((2, 3, 4, 5), (0, 2), None, [(3, 1), (1, 0)]),
        ((2, 3, 4, 5), (1, 3), None, [(3, 2), (2, 1)]),
        # Dimensions of one element do not end a run.
        ((2, 1, 4), (0, 2), None, [(0, 0)]),
        ((2, 3, 1), (1,), None, [(1, 1)]),
        ((1, 1), (0, 1), None, [(0, 0)]),
        ((2, 1, 4, 5), (0, 1, 2), None, [(3, 0)]),
        # Rows and columns of the vector's own split.
        ((2, 3, 4), (0, 1, 2), 2, [(2, 0), (2, 0)]),
        ((2, 3, 4), (0, 1, 2), 3, [(0, 0)]),
        ((2, 3, 4), (1, 2), 2, [(2, 1), (2, 1)]),
        ((2, 3, 4), (1, 2), 1, [(1, 1)]),
        ((2, 3, 4), (0, 1), 1, [(2, 0)]),
        ((2, 3, 4, 5), (0, 2), 1, [(3, 1), (1, 0)]),
    ],
)
def test_runs_of_reduced_dimensions(shape, dims, split, runs):
    assert reduced_runs(shape, dims, split) == runs


ARGUMENTS = {
    "u": "2x3x4xf32", "v": "2x3x1xf32", "w": "2x3xf32", "x": "2xf32", "y": "4xf32", "z": "3x4xf32", "q": "1x3xf32",
    "n": "2x1xf32", "o": "2x3x4xindex", "m": "2x3x4xi1", "o1": "4xindex", "m1": "4xi1", "o2": "2xindex",
    "m2": "2xi1",
}  # fmt: skip


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # The last dimension is the columns, unless an op needs another split.
        ("%r = arith.addf %u, %u : vector<2x3x4xf32>", {"u": 2, "r": 2}),
        # A reduction of the last dimensions has the rows before them, one of others has the columns after them.
        ("%r = vector.multi_reduction <add>, %u, %w [2] : vector<2x3x4xf32> to vector<2x3xf32>", {"u": 2, "r": 2}),
        ("%r = vector.multi_reduction <add>, %u, %x [1, 2] : vector<2x3x4xf32> to vector<2xf32>", {"u": 1, "r": 1}),
        ("%r = vector.multi_reduction <add>, %u, %z [0] : vector<2x3x4xf32> to vector<3x4xf32>", {"u": 1, "r": 0}),
        ("%r = vector.multi_reduction <add>, %u, %y [0, 1] : vector<2x3x4xf32> to vector<4xf32>", {"u": 2, "r": 0}),
        ("%r = vector.multi_reduction <add>, %u, %s [0, 1, 2] : vector<2x3x4xf32> to f32", {"u": 0}),
        # The result of a reduction that is broadcast is what the reduction makes.
        (
            "%r = vector.multi_reduction <add>, %u, %w [2] : vector<2x3x4xf32> to vector<2x3xf32>\n"
            "%b = vector.broadcast %r : vector<2x3xf32> to vector<5x2x3xf32>",
            {"u": 2, "r": 2, "b": 2},
        ),
        # A broadcast vector is a row; one that is transposed afterwards, or repeated along its last dimension, is a
        # column.
        ("%b = vector.broadcast %y : vector<4xf32> to vector<3x4xf32>", {"y": 0, "b": 1}),
        ("%b = vector.broadcast %w : vector<2x3xf32> to vector<5x2x3xf32>", {"w": 1}),
        (
            "%b = vector.broadcast %y : vector<4xf32> to vector<3x4xf32>\n"
            "%t = vector.transpose %b, [1, 0] : vector<3x4xf32> to vector<4x3xf32>",
            {"y": 1, "t": 1},
        ),
        (
            "%c = vector.shape_cast %x : vector<2xf32> to vector<2x1xf32>\n"
            "%b = vector.broadcast %c : vector<2x1xf32> to vector<2x3xf32>",
            {"c": 1, "x": 1},
        ),
        # A reduction has more weight than a column, which a broadcast repeats along it, and less than a row.
        (
            "%b = vector.broadcast %v : vector<2x3x1xf32> to vector<2x3x4xf32>\n"
            "%r = vector.multi_reduction <add>, %v, %n [1] : vector<2x3x1xf32> to vector<2x1xf32>",
            {"v": 1, "r": 1},
        ),
        (
            "%b = vector.broadcast %v : vector<2x3x1xf32> to vector<4x2x3x1xf32>\n"
            "%r = vector.multi_reduction <add>, %v, %n [1] : vector<2x3x1xf32> to vector<2x1xf32>",
            {"v": 2, "r": 1},
        ),
        # Ops of XeGPU have more weight than a reduction of what they load, and vectors of one dimension have no weight.
        (
            "%l = xegpu.load %p[%o], %m : memref<?xf32>, vector<2x3x4xindex>, vector<2x3x4xi1> -> vector<2x3x4xf32>\n"
            "%r = vector.multi_reduction <add>, %l, %x [1, 2] : vector<2x3x4xf32> to vector<2xf32>",
            {"l": 2, "o": 2, "m": 2, "r": 1},
        ),
        (
            "%l = xegpu.load %p[%o1], %m1 : memref<?xf32>, vector<4xindex>, vector<4xi1> -> vector<4xf32>\n"
            "%b = vector.broadcast %l : vector<4xf32> to vector<3x4xf32>\n"
            "%t = vector.transpose %b, [1, 0] : vector<3x4xf32> to vector<4x3xf32>",
            {"l": 1, "o1": 1, "m1": 1},
        ),
        # A broadcast scalar has no split; one that is not only transposed is a row.
        ("%b = vector.broadcast %s : f32 to vector<3x4xf32>", {"b": 1}),
        (
            "%b = vector.broadcast %y : vector<4xf32> to vector<3x4xf32>\n"
            "%t = vector.transpose %b, [1, 0] : vector<3x4xf32> to vector<4x3xf32>\n"
            "%a = arith.addf %b, %b : vector<3x4xf32>",
            {"y": 0},
        ),
        (
            "%b = vector.broadcast %y : vector<4xf32> to vector<3x4xf32>\n"
            "%t = vector.transpose %b, [0, 1] : vector<3x4xf32> to vector<3x4xf32>",
            {"y": 0},
        ),
        # Vectors that an op treats alike have one split: elements, accumulators of reductions, and masks.
        (
            "%a = arith.addf %u, %u : vector<2x3x4xf32>\n"
            "%e = math.exp %a : vector<2x3x4xf32>\n"
            "%f = vector.fma %e, %e, %e : vector<2x3x4xf32>\n"
            "%g = arith.cmpf olt, %f, %f : vector<2x3x4xf32>\n"
            "%r = vector.multi_reduction <add>, %f, %x [1, 2] : vector<2x3x4xf32> to vector<2xf32>",
            {"u": 1, "a": 1, "e": 1, "f": 1, "g": 1},
        ),
        (
            "%a = arith.addf %x, %x : vector<2xf32>\n"
            "%r = vector.multi_reduction <add>, %u, %a [1, 2] : vector<2x3x4xf32> to vector<2xf32>",
            {"a": 1, "x": 1},
        ),
        (
            "%k = arith.constant dense<1.0> : vector<2x3x4xf32>\n"
            "%i = arith.constant 0 : index\n"
            "%c = scf.for %j = %i to %i step %i iter_args(%h = %k) -> (vector<2x3x4xf32>) "
            "{ scf.yield %h : vector<2x3x4xf32> }\n"
            "%r = vector.multi_reduction <add>, %c, %x [1, 2] : vector<2x3x4xf32> to vector<2xf32>",
            {"k": 1, "c": 1},
        ),
        (
            "xegpu.store %x, %p[%o2], %m2 : vector<2xf32>, memref<?xf32>, vector<2xindex>, vector<2xi1>\n"
            "%r = vector.multi_reduction <add>, %u, %x [1, 2] : vector<2x3x4xf32> to vector<2xf32>",
            {"o2": 1, "m2": 1},
        ),
        # A cast keeps rows, from operand to result and back, also through other casts.
        (
            "%r = vector.multi_reduction <add>, %u, %x [1, 2] : vector<2x3x4xf32> to vector<2xf32>\n"
            "%c = vector.shape_cast %u : vector<2x3x4xf32> to vector<2x2x6xf32>\n"
            "%d = vector.shape_cast %c : vector<2x2x6xf32> to vector<1x2x12xf32>",
            {"u": 1, "c": 1, "d": 2},
        ),
        (
            "%c = vector.shape_cast %w : vector<2x3xf32> to vector<1x2x3xf32>\n"
            "%d = vector.shape_cast %c : vector<1x2x3xf32> to vector<2x1x3xf32>\n"
            "%r = vector.multi_reduction <add>, %d, %q [0] : vector<2x1x3xf32> to vector<1x3xf32>",
            {"d": 1, "c": 2, "w": 1},
        ),
    ],
)  # fmt: skip
def test_splits_of_vectors(body, expected):
    listed = ", ".join(f"%{name}: vector<{kind}>" for name, kind in ARGUMENTS.items())
    module = parse(
        f"gpu.module @m {{ gpu.func @f({listed}, %p: memref<?xf32>, %s: f32) kernel {{\n{body}\ngpu.return }} }}"
    )
    func = next(op for op in walk(module.operation) if op.name == "gpu.func")
    ops = list(func.regions[0].blocks[0].operations)[:-1]
    names = dict(zip(ARGUMENTS, func.regions[0].blocks[0].arguments))
    names |= {line.split()[0][1:]: op.results[0] for line, op in zip(body.split("\n"), ops) if len(op.results)}
    shapes = {v: tuple(v.type.shape) for v in names.values() if isinstance(v.type, ir.VectorType)}
    splits = Splits([op.operation for op in ops], shapes)
    assert {name: splits.of(names[name]) for name in expected} == expected


F4, HALF = "vector<32x64xf4E2M1FN>", "vector<32x32xf4E2M1FN>"
TRANSPOSED_BYTES = f"""
gpu.module @m {{ gpu.func @f(%a: vector<32x32xi8>, %c: {F4}) -> {F4} {{
  %p = vector.bitcast %a : vector<32x32xi8> to {F4}
  %e, %o = vector.deinterleave %p : {F4} -> {HALF}
  %x = vector.transpose %e, [1, 0] : {HALF} to {HALF}
  %y = vector.transpose %o, [1, 0] : {HALF} to {HALF}
  %w = vector.interleave %x, %y : {HALF} -> {F4}
  gpu.return %w : {F4}
}} }}"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("interleave %x, %y", "interleave %y, %x"),
        ("interleave %x, %y", "interleave %x, %x"),
        ("%o, [1, 0]", "%o, [0, 1]"),
        ("[1, 0]", "[0, 1]"),
        ("interleave %x, %y", "interleave %e, %o"),
        ("deinterleave %p", "deinterleave %c"),
    ],
)
def test_halves_of_transposed_bytes(old, new):
    """Both halves of bytes, transposed and in order, are the halves of the transposed bytes."""
    text = TRANSPOSED_BYTES.replace(old, new) if old else TRANSPOSED_BYTES
    module = parse(text)
    func = next(op for op in walk(module.operation) if op.name == "gpu.func")
    assert take_bytes([op.operation for op in func.regions[0].blocks[0].operations])
    made = func.regions[0].blocks[0].operations
    names = [op.operation.name for op in made]
    if old:
        assert "vector.interleave" in names
        return
    turned, cast = made[len(made) - 3], made[len(made) - 2]
    assert "vector.interleave" not in names
    assert (turned.operation.name, str(turned.result.type)) == ("vector.transpose", "vector<32x32xi8>")
    assert turned.operands[0] == func.regions[0].blocks[0].arguments[0] and cast.operands[0] == turned.result
