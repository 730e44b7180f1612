"""Slices of vectors keep their elements when upstream's passes fold them."""

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from mlir import ir

import xegpu_py
from xegpu_py.ir.builtin import vector_of


@st.composite
def boxes(draw, shape):
    """(offsets, sizes) of a part of a shape."""
    sizes = [draw(st.integers(1, n)) for n in shape]
    return [draw(st.integers(0, n - m)) for n, m in zip(shape, sizes)], sizes


def text(shape):
    return f"vector<{'x'.join(map(str, shape))}xi32>"


@st.composite
def programs(draw):
    """A function that inserts and extracts slices at random, through loops and branches that fold away."""
    rank = draw(st.integers(1, 3))
    lines, values = [], []
    for n in range(draw(st.integers(2, 4))):
        values.append((f"%a{n}", tuple(draw(st.integers(2, 5)) for _ in range(rank))))
    arguments = list(values)
    last = values[0]
    for n in range(draw(st.integers(2, 16))):
        # Mostly one chain of inserts, of which slices are taken.
        name, (source, shape) = f"%v{n}", draw(st.sampled_from([last, last, last, draw(st.sampled_from(values))]))
        ones = [1] * rank
        if draw(st.integers(0, 2)) == 0:
            offsets, sizes = draw(boxes(shape))
            kept = draw(st.integers(1, rank))
            sizes[kept:] = shape[kept:]
            lines.append(
                f"{name} = vector.extract_strided_slice {source} {{offsets = {offsets[:kept]}, "
                f"sizes = {sizes[:kept]}, strides = {ones[:kept]}}} : {text(shape)} to {text(sizes)}"
            )
            values.append((name, tuple(sizes)))
            continue
        fitting = [v for v in values if all(x <= y for x, y in zip(v[1], shape))]
        part, size = draw(st.sampled_from(fitting))
        offsets = [draw(st.integers(0, y - x)) for x, y in zip(size, shape)]
        less = next((i for i, x in enumerate(size) if x != 1), rank - 1) if draw(st.booleans()) else 0
        if less:
            lines.append(f"{name}c = vector.shape_cast {part} : {text(size)} to {text(size[less:])}")
            part, size = f"{name}c", size[less:]
        made = (
            f"vector.insert_strided_slice {part}, {source} {{offsets = {offsets}, strides = {ones[less:]}}} : "
            f"{text(size)} into {text(shape)}"
        )
        way = draw(st.sampled_from(["plain", "loop", "branch"]))
        if way == "loop":
            made = (
                f"scf.for %i{n} = %c0 to %c1 step %c1 iter_args(%x{n} = {source}) -> ({text(shape)}) {{\n"
                f"  %y{n} = {made.replace(f', {source} ', f', %x{n} ')}\n  scf.yield %y{n} : {text(shape)}\n}}"
            )
        elif way == "branch":
            made = (
                f"scf.if %true -> ({text(shape)}) {{\n  %y{n} = {made}\n  scf.yield %y{n} : {text(shape)}\n"
                f"}} else {{\n  scf.yield {source} : {text(shape)}\n}}"
            )
        lines.append(f"{name} = {made}")
        values.append((name, tuple(shape)))
        last = values[-1]
    results = values[len(arguments) :]
    types = ", ".join(text(s) for _, s in results)
    head = ", ".join(f"{name}: {text(shape)}" for name, shape in arguments)
    body = "\n".join(lines)
    return (
        f"func.func @f({head}) -> ({types}) {{\n%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n"
        f"%true = arith.constant true\n{body}\nreturn {', '.join(name for name, _ in results)} : {types}\n}}"
    )


class Run:
    """The results of a function's block, computed by numpy."""

    def __init__(self, arguments):
        self.values = dict(arguments)

    def block(self, block):
        *body, last = block.operations
        for op in body:
            found = getattr(self, op.operation.name.replace(".", "_"))(op.operation, *map(self.get, op.operands))
            found = found if isinstance(found, list) else [found]
            self.values.update(zip(op.operation.results, found))
        return [self.get(v) for v in last.operands]

    def get(self, value):
        return self.values[value]

    def arith_constant(self, op):
        value, kind = op.attributes["value"], op.results[0].type
        if not isinstance(kind, ir.VectorType):
            return ir.IntegerAttr(value).value
        return np.array(ir.DenseIntElementsAttr(value)).reshape(kind.shape)

    def ub_poison(self, op):
        return np.full(ir.VectorType(op.results[0].type).shape, -1)

    def scf_for(self, op, lower, upper, step, *carried):
        for i in range(lower, upper, step):
            body = op.regions[0].blocks[0]
            self.values.update(zip(body.arguments, [i, *carried]))
            carried = self.block(body)
        return list(carried)

    def scf_if(self, op, condition):
        return self.block(op.regions[0 if condition else 1].blocks[0])

    def vector_shape_cast(self, op, value):
        return value.reshape(ir.VectorType(op.results[0].type).shape)

    def vector_broadcast(self, op, value):
        return np.broadcast_to(value, ir.VectorType(op.results[0].type).shape)

    def vector_extract(self, op, value):
        return value[tuple(ir.DenseI64ArrayAttr(op.attributes["static_position"]))]

    def vector_insert(self, op, value, into):
        found = into.copy()
        found[tuple(ir.DenseI64ArrayAttr(op.attributes["static_position"]))] = value
        return found

    @staticmethod
    def numbers(op, name):
        return [ir.IntegerAttr(a).value for a in ir.ArrayAttr(op.attributes[name])]

    def vector_extract_strided_slice(self, op, value):
        at, sizes = self.numbers(op, "offsets"), self.numbers(op, "sizes")
        return value[tuple(slice(a, a + n) for a, n in zip(at, sizes))]

    def vector_insert_strided_slice(self, op, value, into):
        at = self.numbers(op, "offsets")
        sizes = [1] * (len(at) - value.ndim) + list(value.shape)
        found = into.copy()
        found[tuple(slice(a, a + n) for a, n in zip(at, sizes))] = value.reshape(sizes)
        return found


def results(module):
    (func,) = [o.operation for o in module.operation.regions[0].blocks[0].operations]
    block = func.regions[0].blocks[0]
    given, start = {}, 1
    for argument in block.arguments:
        shape, _ = vector_of(str(argument.type))
        given[argument] = np.arange(start, start + np.prod(shape)).reshape(shape)
        start += int(np.prod(shape))
    return Run(given).block(block)


@settings(max_examples=examples(200))
@given(programs())
def test_folding_slices_changes_no_element(program):
    module = xegpu_py.parse(program)
    before = results(module)
    xegpu_py.run_pipeline(module, "builtin.module(canonicalize)")
    for x, y in zip(before, results(module), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("text", ["f32", "vector<[4]xf32>", "vector<2x[4]xf32>", "memref<4xf32>"])
def test_vectors_of_fixed_size_alone_have_a_shape(text):
    with pytest.raises(ValueError, match="expected a vector of fixed size, but got"):
        vector_of(text)
