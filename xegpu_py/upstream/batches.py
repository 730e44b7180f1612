"""Products of vectors of more than two dimensions in kernels of workgroups: they become one product for each matrix.

A vector that takes part in such a product becomes as many matrices, and so do those from which it is computed element
by element: blocks of more than two dimensions become blocks of two, which messages move.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from mlir import ir
from mlir.dialects import arith

from xegpu_py.passes.common import builders as build
from xegpu_py.passes.common.values import attributes_of, defining_op, shape_of
from xegpu_py.upstream import ops as upstream
from xegpu_py.upstream.rebuilding import HINTS, PREFIX, block_attr, element_of, extents_of, mixed, vector_type
from xegpu_py.upstream.splits import PRODUCTS, is_elementwise, same_split
from xegpu_py.upstream.types import Layout, Slice, TensorDesc, layout_of

_LOAD, _STORE = PREFIX + "load_nd", PREFIX + "store_nd"
_CASTS = ("vector.bitcast", PREFIX + "truncf")


def take_matrices(ops: Sequence[ir.Operation]) -> bool:
    """Split products of vectors of more than two dimensions. Returns whether there were any."""
    products = [op for op in ops if op.name in PRODUCTS and _batch(op.opview.result)]
    products = [op for op in products if len({_batch(v) for v in (*op.operands, *op.results)}) == 1]
    if products:
        _Batches(ops, products).run()
    return bool(products)


def _batch(value: ir.Value) -> tuple[int, ...]:
    """The dimensions of a vector before those of its matrices."""
    return shape_of(value)[:-2]


class _Batches:
    """The vectors of a kernel that become matrices."""

    def __init__(self, ops: Sequence[ir.Operation], products: Sequence[ir.Operation]) -> None:
        self.ops = ops
        self.split: set[ir.Value] = {v for op in products for v in (*op.operands, *op.results)}
        self.matrices: dict[ir.Value, list[ir.Value]] = {}
        self.descs: dict[ir.Value, ir.Value] = {}
        """Descriptors of matrices in place of those of blocks of more than two dimensions."""
        groups = [group for op in ops for group in _groups(op)]
        while more := [g for g in groups if not self.split.isdisjoint(g) and not self.split.issuperset(g)]:
            for group in more:
                self.split.update(group)

    def run(self) -> None:
        """Rebuild the ops that have such vectors, and erase the original ops."""
        done = [op for op in self.ops if not self.split.isdisjoint((*op.operands, *op.results)) and self._rebuild(op)]
        for op in reversed(done):
            op.erase()

    def _rebuild(self, op: ir.Operation) -> bool:
        """Build ops on matrices, if an op can be split; otherwise let it use and return whole vectors."""
        with ir.InsertionPoint(op), op.location:
            if op.name == "scf.for":
                self._loop(op)
            elif op.name == "scf.yield" and _parent(op).name == "scf.for":
                ir.Operation.create("scf.yield", operands=list(self._expanded(op.operands)))
            elif op.name in (_LOAD, _STORE) and self._is_block(op.opview):
                self._access(op.opview)
            elif _is_batchwise(op):
                results = [self._each(op, i) for i in range(len(self._indices(op)))]
                for n, result in enumerate(op.results):
                    self.matrices[result] = [made.results[n] for made in results]
            else:
                for i, value in enumerate(op.operands):
                    if value in self.split:
                        op.operands[i] = self._joined(value)
                self._take_apart(op)
                return False
        return True

    def _indices(self, op: ir.Operation) -> list[tuple[int, ...]]:
        """The indices of the matrices that an op's vectors have."""
        value = next(v for v in (*op.results, *op.operands) if v in self.split)
        return list(itertools.product(*map(range, _batch(value))))

    def _expanded(self, values: Sequence[ir.Value]) -> Iterator[ir.Value]:
        for value in values:
            yield from self.matrices[value] if value in self.split else [value]

    def _each(self, op: ir.Operation, number: int) -> ir.Operation:
        """The op on one matrix of each vector."""
        attributes = {}
        for name, attr in attributes_of(op).items():
            if isinstance(attr, ir.DenseElementsAttr):
                attr = ir.DenseElementsAttr.get_splat(_matrix_type(op.results[0]), attr.get_splat_value())
            elif "layout" in name:
                layout = _inner(layout_of(str(attr)))
                if layout is None:
                    continue
                attr = ir.Attribute.parse(layout.encode())
            attributes[name] = attr
        operands = [self.matrices[v][number] if v in self.split else v for v in op.operands]
        kinds = [_matrix_type(v) for v in op.results]
        return ir.Operation.create(op.name, results=kinds, operands=operands, attributes=attributes)

    def _loop(self, op: ir.Operation) -> None:
        """A loop that carries matrices. Its body is moved."""
        old = op.regions[0].blocks[0]
        inits = list(self._expanded(list(op.operands)[3:]))
        made = ir.Operation.create(
            "scf.for", results=[v.type for v in inits], operands=[*list(op.operands)[:3], *inits],
            attributes=attributes_of(op), regions=1,
        )  # fmt: skip
        block = ir.Block.create_at_start(made.regions[0], [old.arguments[0].type, *(v.type for v in inits)])
        old.arguments[0].replace_all_uses_with(block.arguments[0])
        arguments, results = iter(list(block.arguments)[1:]), iter(made.results)
        for argument, result in zip(list(old.arguments)[1:], op.results):
            count = len(self.matrices[list(op.operands)[2 + argument.arg_number]]) if argument in self.split else 1
            for value, parts in ((argument, arguments), (result, results)):
                found = list(itertools.islice(parts, count))
                if value in self.split:
                    self.matrices[value] = found
                else:
                    value.replace_all_uses_with(found[0])
        for inner in list(old.operations):
            block.append(inner)

    def _joined(self, value: ir.Value) -> ir.Value:
        """The whole vector, for an op that needs it."""
        whole = build.zero(value.type)
        for matrix, at in zip(self.matrices[value], itertools.product(*map(range, _batch(value)))):
            whole = build.insert(matrix, whole, at)
        return whole

    def _take_apart(self, op: ir.Operation) -> None:
        """The matrices of the vectors that an op returns."""
        with ir.InsertionPoint.after(op):
            for result in op.results:
                if result in self.split:
                    indices = itertools.product(*map(range, _batch(result)))
                    self.matrices[result] = [build.extract(result, at) for at in indices]

    # Blocks.

    def _is_block(self, view: Any) -> bool:
        """Whether an op accesses a block whose descriptor has a known defining op."""
        made = defining_op(view.tdesc)
        plain = view.operation.name == _STORE or (view.transpose is None and not view.packed)
        return (
            plain
            and made is not None
            and made.name == PREFIX + "create_nd_tdesc"
            and _batch(view.value) == (TensorDesc.of(view.tdesc).shape[:-2])
        )

    def _access(self, view: Any) -> None:
        """Load or store each matrix of a block."""
        made = view.tdesc.owner.operation.opview
        desc = TensorDesc.of(view.tdesc)
        if view.tdesc not in self.descs:
            with ir.InsertionPoint(made.operation):
                inner = _inner(layout_of(desc.layout)) if desc.layout != "unit" else None
                kind = replace(desc, shape=desc.shape[-2:], layout=inner.encode() if inner else "unit")
                self.descs[view.tdesc] = upstream.CreateNdTdescOp(
                    made.source, [], list(made.shape), list(made.strides), tdesc=kind.to_ir()
                ).tdesc
        options = {name: getattr(view, name) for name in HINTS if getattr(view, name) is not None}
        inner = _inner(view.layout) if view.layout is not None else None
        if inner is not None:
            options["layout"] = inner
        extents = list(made.shape) or extents_of(made.source)
        rank = len(extents)
        starts = [list(v.offsets) for v in (made, view)]
        total = [build.add(*pair) for pair in zip(*([*[0] * (rank - len(s)), *s] for s in starts))]
        loaded: list[ir.Value] = []
        for at in itertools.product(*map(range, desc.shape[:-2])):
            places = [build.add(o, i) for o, i in zip(total, [*[0] * (rank - 2 - len(at)), *at, 0, 0])]
            if block_attr(desc).boundary_check:
                places = _within(places, extents)
            if view.operation.name == _STORE:
                upstream.StoreNdOp(self.matrices[view.value][len(loaded)], self.descs[view.tdesc], places, **options)
                loaded.append(view.value)
            else:
                kind_of = _matrix_type(view.value)
                loaded.append(upstream.LoadNdOp(self.descs[view.tdesc], places, value=kind_of, **options).value)
        if view.operation.name == _LOAD:
            self.matrices[view.value] = loaded


def _parent(op: ir.Operation) -> ir.Operation:
    """The parent op of an op."""
    found: ir.Operation = op.parent.operation
    return found


def _is_batchwise(op: ir.Operation) -> bool:
    """Whether an op does the same with each matrix of its vectors."""
    if op.name == "arith.constant":
        attr = op.attributes["value"]
        return isinstance(attr, ir.DenseElementsAttr) and attr.is_splat
    return is_elementwise(op) or op.name in (*_CASTS, *PRODUCTS, PREFIX + "convert_layout")


def _groups(op: ir.Operation) -> Iterator[list[ir.Value]]:
    """The vectors that are split if one of them is."""
    if op.name == "scf.for":
        yield from ([v for v in group if _batch(v)] for group in same_split(op))
    elif _is_batchwise(op):
        found = [v for v in (*op.operands, *op.results) if isinstance(v.type, ir.VectorType)]
        if len({_batch(v) for v in found}) == 1:
            yield found


def _matrix_type(value: ir.Value) -> ir.Type:
    return vector_type(shape_of(value)[-2:], element_of(value))


def _inner(layout: Layout | Slice) -> Layout | None:
    """The layout of each matrix of a vector, if all matrices have the same."""
    if not isinstance(layout, Layout):
        return None
    outer = len(layout.sg_layout) - 2
    if outer < 0 or any(n != 1 for n in layout.sg_layout[:outer]):
        return None
    order = tuple(d - outer for d in layout.order if d >= outer)
    return Layout(layout.sg_layout[outer:], layout.sg_data[outer:], order=order)


def _within(places: list[Any], extents: list[Any]) -> list[Any]:
    """The offsets of a matrix, which are those below all rows if one before the rows is out of bounds."""
    *outer, row, column = places
    inside: ir.Value | None = None
    found: list[Any] = []
    for at, extent in zip(outer, extents):
        if isinstance(at, int) and isinstance(extent, int):
            if not 0 <= at < extent:
                return [*[0] * len(outer), extents[-2], column]
            found.append(at)
            continue
        here = build.compare("ult", *mixed([at, extent]))
        inside = here if inside is None else arith.andi(inside, here)
        found.append(arith.select(here, *mixed([at, 0])))
    return [*found, row if inside is None else arith.select(inside, *mixed([row, extents[-2]])), column]
