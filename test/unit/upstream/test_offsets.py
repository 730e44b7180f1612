"""Offsets that have a form equal those that numpy computes."""

import numpy as np
from effort import examples
from mlir import ir
from mlir.dialects import arith, memref
from upstream.programs import Writer, divisors, typed

import xegpu_py
from xegpu_py import parse, reference
from xegpu_py.ir.module import walk
from xegpu_py.passes.analysis.affine_analysis import IndexForms, constant_part
from xegpu_py.upstream import rank_reduction


def chain(random):
    """The lines that make a vector of offsets step by step, its name, and its elements."""
    w = Writer()
    n = int(random.choice([4, 8, 12, 24]))
    kind, value, found = typed((n,), "index"), w(f"vector.step : {typed((n,), 'index')}"), np.arange(n)
    for _ in range(int(random.integers(1, 7))):
        shape = found.shape
        which = random.integers(5)
        if which == 0:
            factor = int(random.integers(1, 9))
            other = w(f"arith.constant dense<{factor}> : {kind}")
            value, found = w(f"arith.muli {value}, {other} : {kind}"), found * factor
        elif which == 1:
            steps = random.integers(0, 3, len(shape))
            numbers = int(random.integers(9)) + sum(int(s) * i for s, i in zip(steps, np.indices(shape)))
            other = w(f"arith.constant dense<{numbers.tolist()}> : {kind}")
            op = str(random.choice(["addi", "subi"]))
            value = w(f"arith.{op} {value}, {other} : {kind}")
            found = found + numbers if op == "addi" else found - numbers
        elif which == 2:
            outer = int(random.choice(divisors(found.size)))
            into = (outer, found.size // outer) if random.random() < 0.7 else (1, outer, found.size // outer)
            value = w(f"vector.shape_cast {value} : {kind} to {typed(into, 'index')}")
            found = found.reshape(into)
        elif which == 3 and found.size <= 64:
            wide = (int(random.integers(1, 4)), *(3 if s == 1 else s for s in shape))
            value = w(f"vector.broadcast {value} : {kind} to {typed(wide, 'index')}")
            found = np.broadcast_to(found, wide)
        else:
            order = [int(d) for d in random.permutation(len(shape))]
            into = tuple(shape[d] for d in order)
            value = w(f"vector.transpose {value}, {order} : {kind} to {typed(into, 'index')}")
            found = found.transpose(order)
        kind = typed(found.shape, "index")
    return w.lines, value, found


SEEDS = examples(300, 0.25)


def test_forms_of_offsets_are_those_of_numpy():
    known = 0
    for seed in range(SEEDS):
        lines, value, expected = chain(np.random.default_rng(seed))
        last = f'  "test.use"({value}) : ({typed(expected.shape, "index")}) -> ()'
        text = "\n".join(["func.func @f() {", *(f"  {line}" for line in lines), last, "  return", "}"])
        context = xegpu_py.Context()
        context.allow_unregistered_dialects = True
        with context:
            module = xegpu_py.parse(text)
            use = next(op for op in walk(module.operation) if op.name == "test.use")
            form = IndexForms().of(use.operands[0])
        if form is None:
            continue
        known += 1
        start, *factors = (constant_part(p) for p in (form.start, *form.steps))
        steps = sum((s * i for s, i in zip(factors, np.indices(expected.shape))), np.zeros(expected.shape, int))
        assert form.shape == expected.shape
        assert (start + steps == expected).all(), text
    assert known > 0.8 * SEEDS


def test_values_are_part_of_the_first_offset():
    text = """
func.func @f(%n: index) -> vector<2x4xindex> {
  %c3 = arith.constant dense<3> : vector<2x4xindex>
  %0 = vector.broadcast %n : index to vector<2x4xindex>
  %1 = arith.muli %0, %c3 : vector<2x4xindex>
  %2 = arith.subi %1, %0 : vector<2x4xindex>
  return %2 : vector<2x4xindex>
}
"""
    module = xegpu_py.parse(text)
    (given,) = next(op for op in walk(module.operation) if op.name == "func.return").operands
    forms = IndexForms()
    form = forms.of(given)
    assert form is not None
    assert form.steps == ({}, {})
    (((scalar,), factor),) = form.start.items()
    assert factor == 2
    assert all(isinstance(value.owner, ir.Block) for value in forms.scalars[scalar])


def test_equal_computations_are_one_scalar():
    """Ops that have no form are equal by their names, attributes, types and operands, those of memory never."""
    module = xegpu_py.parse("""
func.func @f(%n: index, %m: index, %a: memref<9xindex>, %b: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %0 = arith.divsi %n, %m : index
  %1 = arith.divsi %n, %m : index
  %2 = arith.divsi %m, %n : index
  %3 = arith.divui %n, %m : index
  %4 = arith.cmpi slt, %n, %m : index
  %5 = arith.cmpi slt, %n, %m : index
  %6 = arith.cmpi sgt, %n, %m : index
  %7 = arith.select %4, %0, %m : index
  %8 = arith.select %5, %1, %m : index
  %9 = memref.load %a[%c0] : memref<9xindex>
  %10 = memref.load %a[%c0] : memref<9xindex>
  %11 = memref.dim %b, %c0 : memref<?xf32>
  %12 = memref.dim %b, %c0 : memref<?xf32>
  %13 = gpu.block_id x
  %14 = gpu.block_id x
  %15 = gpu.block_id y
  return
}
""")
    ops = [op for op in walk(module.operation) if op.results and op.name != "arith.constant"]
    forms = IndexForms()
    polynomials = [forms.scalar(op.results[0]) for op in ops]
    equal = [{i for i, q in enumerate(polynomials) if q == p} for p in polynomials]
    expected = [{0, 1}, {4, 5}, {7, 8}, {11, 12}, {13, 14}]
    assert equal == [next((e for e in expected if i in e), {i}) for i in range(16)]


def test_a_matrix_outside_of_its_tensor_is_below_all_rows():
    """With an index out of bounds before the rows, it is one that the tensor has, from behind its last row."""
    module = parse("""gpu.module @k { gpu.func @f(%out: memref<3x4xi64>, %i: index, %n: index) kernel {
      gpu.return } }""")
    func = next(op for op in walk(module.operation) if op.name == "gpu.func")
    out, i, n = func.regions[0].blocks[0].arguments
    places = ([1, i, 5, 6], [2, i, 5, 6], [i, i, 5, 6])
    extents = ([2, n, 16, 16], [2, n, 16, 16], [3, n, 16, 16])
    with module.context, ir.Location.unknown(), ir.InsertionPoint.at_block_begin(func.regions[0].blocks[0]):
        for row, given in enumerate(zip(places, extents)):
            for column, place in enumerate(rank_reduction._within(*given)):
                place = arith.constant(ir.IndexType.get(), place) if isinstance(place, int) else place
                number = arith.index_cast(ir.IntegerType.get_signless(64), place)
                at = [arith.constant(ir.IndexType.get(), k) for k in (row, column)]
                memref.store(number, out, at)
    for index, extent in ((0, 1), (1, 1), (2, 4), (3, 4), (-1, 4)):
        found = np.full((3, 4), -9, np.int64)
        reference.run(module, None, [found, index, extent])
        is_inside = 0 <= index < extent
        inner = [index if is_inside else 0, 5 if is_inside else 16, 6]
        outside = [0, 0, 16, 6]
        both = [index if 0 <= index < 3 else 0, inner[0], 5 if is_inside and 0 <= index < 3 else 16, 6]
        assert found.tolist() == [[1, *inner], outside, both]
