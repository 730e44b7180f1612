"""Vectors of workgroups, of any rank and width, as matrices of bytes."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from mlir import ir
from mlir.dialects import arith, vector

from xegpu_py.dialects import xetile
from xegpu_py.dialects.xegpu import block_ops
from xegpu_py.dialects.xegpu.fragments import moves_block
from xegpu_py.dialects.xegpu.op_interfaces import BlockAccess, BlockLoad, DescriptorUpdate, Prefetch
from xegpu_py.dialects.xegpu.scattered_ops import chunk_of
from xegpu_py.dialects.xegpu.upstream_types import Layout, Slice, UpstreamTensorDesc, layout_of
from xegpu_py.ir.builtin import CombiningKind
from xegpu_py.ir.control_flow import UnionFind, forwarded_groups
from xegpu_py.ir.element_movement import permutation_of
from xegpu_py.ir.operation import implements, unchecked
from xegpu_py.passes.analysis.integer_analysis import divisor
from xegpu_py.passes.analysis.ir_queries import attributes_of, defining_op, narrow_bits, shape_of
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.rewriting.builders import index
from xegpu_py.passes.rewriting.rewriter import Rewriter, Rule, Rules
from xegpu_py.upstream.import_common import (
    PREFIX,
    PRODUCTS,
    block_attr,
    cast,
    element_of,
    extents_of,
    given_hints,
    mixed,
    refuse,
    tensor_of,
    vector_type,
)
from xegpu_py.upstream.subgroup import SubgroupImport

# How vectors of any rank become matrices: by a split of their dimensions into those of the rows and of the columns.

Shape = tuple[int, ...]


_SAME_ELEMENT = ("vector.fma", PREFIX + "truncf")


def matrix(shape: Shape, split: int) -> tuple[int, int]:
    """The rows and columns of a vector whose first `split` dimensions are rows."""
    return math.prod(shape[:split]), math.prod(shape[split:])


class Splits:
    """How each vector of a kernel is split into rows and columns. Vectors that one op works on element by element have
    the same."""

    def __init__(self, ops: Sequence[ir.Operation], shapes: dict[ir.Value, Shape]) -> None:
        self.shapes = shapes
        self._alike: UnionFind[ir.Value] = UnionFind()
        self._votes: dict[ir.Value, Counter[int]] = {}
        self._chosen: dict[ir.Value, int] = {}
        for op in ops:
            for group in same_split(op):
                if vectors := [v for v in group if v in shapes]:
                    self._alike.join(vectors)
        for op in ops:
            self._vote(op)
        casts = [op for op in ops if op.name == "vector.shape_cast"]
        self._chosen.update((leader, votes.most_common(1)[0][0]) for leader, votes in self._votes.items())
        for _ in casts:
            if not any(self._follow(op) for op in casts):
                break

    def of(self, value: ir.Value) -> int:
        """The split of a vector: by default the last dimension is the columns."""
        return self._chosen.get(self._alike.find(value), len(self.shapes[value]) - 1)

    def _for(self, value: ir.Value, split: int, weight: int) -> None:
        if value in self.shapes:
            self._votes.setdefault(self._alike.find(value), Counter())[split] += weight

    def _vote(self, op: ir.Operation) -> None:
        name = op.name
        if name.startswith(PREFIX):
            for v in (*op.operands, *op.results):
                if v in self.shapes and len(self.shapes[v]) > 1:
                    self._for(v, len(self.shapes[v]) - 1, 10)
        elif name == "vector.multi_reduction":
            shape = self.shapes[op.operands[0]]
            for before, after in reduced_runs(shape, reduced_dims(op))[-1:]:
                self._for(op.operands[0], before, 5)
                if op.results[0] in self.shapes:
                    left = len(self.shapes[op.results[0]])
                    self._for(op.results[0], min(after, left), 20)
        elif name == "vector.broadcast" and op.operands[0] in self.shapes:
            source, wide = self.shapes[op.operands[0]], self.shapes[op.results[0]]
            if is_transposed(op):
                self._for(op.operands[0], len(source), 8)
            else:
                # As a row, if it is repeated for each row; or as a column, if it is repeated along it.
                column = source[-1] == 1 and wide[-1] > 1
                self._for(op.operands[0], len(source) - 1, 2 if column else 8)

    def _follow(self, op: ir.Operation) -> bool:
        """Choose the split of a cast's operand or result so that rows and columns are kept."""
        ends = (op.operands[0], op.results[0])
        for known, unknown in (ends, ends[::-1]):
            if known not in self.shapes or unknown not in self.shapes:
                continue
            if self._alike.find(unknown) in self._chosen or self._alike.find(known) not in self._chosen:
                continue
            rows = matrix(self.shapes[known], self.of(known))[0]
            shape = self.shapes[unknown]
            for split in range(len(shape), -1, -1):
                if math.prod(shape[:split]) == rows:
                    self._chosen[self._alike.find(unknown)] = split
                    return True
        return False


def same_split(op: ir.Operation) -> Iterable[Sequence[ir.Value]]:
    """Groups of operands and results of an op that have the same split."""
    if is_elementwise(op) or op.name == PREFIX + "convert_layout":
        yield [*op.operands, *op.results]
    elif op.name == "vector.multi_reduction":
        yield [op.operands[1], op.results[0]]
    elif groups := forwarded_groups(op):
        yield from groups
    elif op.name in (PREFIX + "load", PREFIX + "store"):
        view: Any = op.opview
        if chunk_of(view) == 1:
            yield [v for v in (view.value, view.offsets, view.mask) if v is not None]
    elif op.name == PREFIX + "atomic_rmw":
        yield [v for v in (*op.operands, *op.results) if isinstance(v.type, ir.VectorType)]
    elif op.name in PRODUCTS and op.opview.acc is not None:
        yield [op.opview.acc, op.opview.result]


def is_elementwise(op: ir.Operation) -> bool:
    """Whether elements of the result come from the elements at the same place."""
    if op.name == "arith.constant" or not (op.name.startswith(("arith.", "math.")) or op.name in _SAME_ELEMENT):
        return False
    return any(isinstance(v.type, ir.VectorType) for v in op.results)


def is_transposed(op: ir.Operation) -> bool:
    """Whether a vector of one dimension is broadcast only to be transposed: it is repeated along a column then."""
    users = [use.owner.operation for use in op.results[0].uses]
    return bool(users) and all(permutation_of(u) == (1, 0) for u in users)


def reduced_dims(op: ir.Operation) -> tuple[int, ...]:
    """The dimensions that a `vector.multi_reduction` reduces."""
    return tuple(ir.DenseI64ArrayAttr(op.attributes["reduction_dims"]))


def reduced_runs(shape: Shape, dims: Sequence[int], split: int | None = None) -> list[tuple[int, int]]:
    """The splits before and after each step of a reduction; each takes dimensions that follow each other away.

    A run that ends with the last dimension is one of columns: the split is before it. Another one is of rows: the split
    is behind it, and where it was then. A run of rows and columns of the split that a vector has is done in two steps.
    """
    left = [d for d in dims if shape[d] > 1] or list(dims)
    runs: list[list[int]] = []
    for d in left:
        gap = range(runs[-1][-1] + 1, d) if runs else ()
        if runs and all(shape[i] == 1 for i in gap):
            runs[-1] += [*gap, d]
        else:
            runs.append([d])
    found = []
    for run in reversed(runs):
        behind = [d for d in range(run[-1] + 1, len(shape)) if shape[d] > 1 and d not in dims]
        removed = sum(d < run[0] for d in dims)
        if split is not None and run[0] < split <= run[-1] and not behind:
            found += [(split, run[0] - removed)] * 2
            continue
        found.append((run[-1] + 1 if behind else run[0], run[0] - removed))
    return found


# Vectors of workgroups: xetile's are matrices, and those of other ranks become matrices.
#
# A split of a vector's dimensions says which are those of the rows; it is chosen so that as few ops as possible need
# another split of their operands. Each op of MLIR's vector dialect has a method that builds it on matrices.


class VectorImport(SubgroupImport):
    """Rebuilds ops on vectors of one kernel, in place."""

    rules = rule = Rules[Rule[Any]](SubgroupImport.rules)

    def __init__(self, func: ir.Operation) -> None:
        super().__init__(func)
        self.shapes: dict[ir.Value, Shape] = {}
        """The shapes of vectors as upstream has them."""
        self.splits: dict[ir.Value, int] = {}
        # By values: the hash of an op changes with its attributes.
        self.done: set[ir.Value] = set()
        """The first results of ops of other dialects that others are in place of."""
        self.transposed: dict[ir.Value, ir.Value] = {}
        """The results of transpositions that are built without them."""

    def is_replaced(self, op: ir.Operation) -> bool:
        return super().is_replaced(op) or (len(op.results) > 0 and op.results[0] in self.done)

    def op(self, op: ir.Operation) -> None:
        if op.name.startswith(PREFIX):
            super().op(op)
            return
        vectors = [v for v in (*op.operands, *op.results) if v in self.shapes or isinstance(v.type, ir.VectorType)]
        if not vectors or op.regions or op.name in ("scf.yield", "scf.condition", "cf.br", "cf.cond_br"):
            return
        if op.name in ("func.return", "gpu.return"):
            with ir.InsertionPoint(op), op.location:
                for number, value in enumerate(op.operands):
                    op.operands[number] = cast(value, self.shapes.get(value, shape_of(value)))
        elif op.name in self.rules:
            Rewriter.op(self, op)
        elif not is_elementwise(op):
            with ir.InsertionPoint(op), op.location:
                self.whole(op)

    def replace(self, op: ir.Operation, *results: ir.Value) -> None:
        super().replace(op, *results)
        if not op.name.startswith(PREFIX):
            self.done.add(op.results[0])

    # Values.

    def as_split(self, value: ir.Value, split: int) -> ir.Value:
        """A vector as the matrix of another split."""
        return cast(value, matrix(self.shapes[value], split))

    def put(self, value: ir.Value, old: ir.Value) -> ir.Value:
        """A matrix in place of a vector of upstream's, whose shape and split it gets.

        A value has one shape. A vector of another shape with the same elements, such as a cast's operand, is another
        value; if both are the same matrix, a cast to its own type distinguishes them until the kernel is rebuilt.
        """
        known = shape, split = self.shapes[old], self.splits[old]
        made = cast(value, matrix(shape, split))
        if made in self.shapes and (self.shapes[made], self.splits[made]) != known:
            made = vector.shape_cast(made.type, made)
        self.shapes[made], self.splits[made] = known
        return made

    def whole(self, op: ir.Operation) -> None:
        """An op on vectors of any rank, with its original shapes."""
        operands = [cast(v, self.shapes[v]) if v in self.shapes else v for v in op.operands]
        if not op.results:
            # It stores or prints a vector.
            for number, operand in enumerate(operands):
                op.operands[number] = operand
            return
        kinds = [vector_type(self.shapes[r], element_of(r)) if r in self.shapes else r.type for r in op.results]
        attributes = dict(op.attributes.items())
        made = ir.Operation.create(op.name, results=kinds, operands=operands, attributes=attributes)
        pairs = zip(made.results, op.results)
        self.replace(op, *(self.put(new, old) if old in self.shapes else new for new, old in pairs))

    @rule("arith.constant")
    def constant(self, op: ir.Operation) -> None:
        attr = op.attributes["value"]
        if not isinstance(attr, ir.DenseElementsAttr) or not attr.is_splat:
            self.whole(op)
            return
        op.attributes["value"] = ir.DenseElementsAttr.get_splat(op.results[0].type, attr.get_splat_value())

    @rule("vector.broadcast")
    def broadcast(self, op: ir.Operation) -> None:
        source, result = op.operands[0], op.results[0]
        if source not in self.shapes:
            return
        wide, narrow = self.shapes[result], self.shapes[source]
        if is_transposed(op) and len(narrow) == 1:
            # The transpositions build it.
            column = self.as_split(source, 1)
            kind = vector_type((narrow[0], wide[0]), element_of(source))
            made = xetile.BroadcastOp(column, (1,), result=kind).result
            for use in list(result.uses):
                user = use.owner.operation
                with ir.InsertionPoint(user):
                    self.transposed[user.results[0]] = made
            self.replace(op)
            return
        shape = [*[1] * (len(wide) - len(narrow)), *narrow]
        value = source
        runs: list[list[int]] = []
        for d in range(len(wide)):
            if shape[d] == 1 and wide[d] > 1:
                if runs and all(wide[i] == 1 for i in range(runs[-1][-1] + 1, d)):
                    runs[-1].append(d)
                else:
                    runs.append([d])
        for run in reversed(runs):
            times = math.prod(wide[d] for d in run)
            outer, inner = math.prod(shape[: run[0]]), math.prod(shape[run[-1] + 1 :])
            if inner == 1:
                dim, into, repeat = 1, (outer, times), None
            else:
                dim, into, repeat = 0, (outer * times, inner), times if outer > 1 else None
            kind = vector_type(into, element_of(source))
            value = xetile.BroadcastOp(cast(value, (outer, inner)), (dim,), result=kind, broadcast_size=repeat).result
            for d in run:
                shape[d] = wide[d]
        self.replace(op, self.put(value, result))

    @rule("vector.shape_cast")
    def shape_cast(self, op: ir.Operation) -> None:
        self.replace(op, self.put(op.operands[0], op.results[0]))

    @rule("vector.transpose")
    def transpose(self, op: ir.Operation) -> None:
        result = op.results[0]
        if result in self.transposed:
            self.replace(op, self.put(self.transposed[result], result))
            return
        source = op.operands[0]
        shape = self.shapes[source]
        order = [d for d in permutation_of(op) or () if shape[d] > 1]
        if order == sorted(order):
            self.replace(op, self.put(source, result))
            return
        turn = next(i for i in range(1, len(order)) if order[i] < order[i - 1])
        first, last = order[turn:], order[:turn]
        if first != sorted(first) or last != sorted(last) or first[-1] > last[0]:
            self.whole(op)
            return
        value = self.as_split(source, last[0])
        kind = vector_type(shape_of(value)[::-1], element_of(source))
        self.replace(op, self.put(xetile.TransposeOp(value, (1, 0), result=kind).result, result))

    @rule("vector.multi_reduction")
    def multi_reduction(self, op: ir.Operation) -> None:
        source, start = op.operands
        shape = list(self.shapes[source])
        kind = str(op.attributes["kind"]).partition("<")[2].rstrip(">")
        value = source
        for before, _ in reduced_runs(tuple(shape), reduced_dims(op), self.splits[source]):
            value, shape = self._reduce(kind, value, shape, before, reduced_dims(op))
        result = op.results[0]
        if result not in self.shapes:
            one = cast(value, (1, 1))
            whole = CombiningKind(kind).combine(one, vector.broadcast(one.type, start))
            self.replace(op, vector.extract(whole, [], [0, 0]))
            return
        made = self.put(value, result)
        self.replace(op, self.put(CombiningKind(kind).combine(made, start), result))

    def _reduce(
        self, kind: str, value: ir.Value, shape: list[int], split: int, dims: Sequence[int]
    ) -> tuple[ir.Value, list[int]]:
        """Combine the run of `dims` that begins, or ends, at the split. The reduced dimensions then have size 1."""
        element = element_of(value)
        rows, columns = math.prod(shape[:split]), math.prod(shape[split:])
        behind = [d for d in range(split, len(shape)) if shape[d] > 1]
        if behind and all(d in dims for d in behind):
            run, dim, left = behind, 1, (rows, 1)
        else:
            run = []
            for d in range(split - 1, -1, -1):
                if shape[d] > 1 and d not in dims:
                    break
                run.append(d)
            size = math.prod(shape[d] for d in run)
            dim, left = 0, (rows // size, columns)
        if not any(shape[d] > 1 for d in run):
            return value, shape
        size = math.prod(shape[d] for d in run)
        whole = size == (rows, columns)[dim]
        made = xetile.ReductionOp(
            kind, cast(value, (rows, columns)), (dim,), result=vector_type(left, element),
            reduction_size=None if whole else size,
        ).result  # fmt: skip
        return made, [1 if d in run else n for d, n in enumerate(shape)]

    @rule("vector.reduction")
    def reduction(self, op: ir.Operation) -> None:
        source = op.operands[0]
        kind = str(op.attributes["kind"]).partition("<")[2].rstrip(">")
        value, _ = self._reduce(kind, source, list(self.shapes[source]), 0, (0,))
        number = vector.extract(cast(value, (1, 1)), [], [0, 0])
        if len(op.operands) > 1:
            number = CombiningKind(kind).combine(number, op.operands[1])
        self.replace(op, number)


# Products of vectors of more than two dimensions in kernels of workgroups: they become one product for each matrix.
#
# A vector that takes part in such a product becomes as many matrices, and so do those from which it is computed element
# by element: blocks of more than two dimensions become blocks of two, which messages move.

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
            elif moves_block(op) and self._is_block(op.opview):
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
                attr = layout.to_ir()
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
        plain = not implements(view.operation, BlockLoad) or (view.transpose is None and not view.packed)
        return (
            plain
            and made is not None
            and made.name == PREFIX + "create_nd_tdesc"
            and _batch(view.value) == (UpstreamTensorDesc.of(view.tdesc).shape[:-2])
        )

    def _access(self, view: Any) -> None:
        """Load or store each matrix of a block."""
        made = view.tdesc.owner.operation.opview
        desc = UpstreamTensorDesc.of(view.tdesc)
        if view.tdesc not in self.descs:
            with ir.InsertionPoint(made.operation):
                inner = _inner(layout_of(desc.layout)) if desc.layout != "unit" else None
                kind = replace(desc, shape=desc.shape[-2:], layout=inner.encode() if inner else "unit")
                self.descs[view.tdesc] = block_ops.UpstreamCreateNdTdescOp(
                    made.source, [], list(made.shape), list(made.strides), tdesc=kind.to_ir()
                ).tdesc
        options = given_hints(view)
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
            # The descriptor is of a matrix, and the offsets of the whole tensor, until `SubgroupImport` joins them.
            with unchecked():
                if not isinstance(view, BlockLoad):
                    matrix = self.matrices[view.value][len(loaded)]
                    block_ops.UpstreamStoreNdOp(matrix, self.descs[view.tdesc], places, **options)
                    loaded.append(view.value)
                else:
                    kind_of = _matrix_type(view.value)
                    loaded.append(
                        block_ops.UpstreamLoadNdOp(self.descs[view.tdesc], places, value=kind_of, **options).value
                    )
        if isinstance(view, BlockLoad):
            self.matrices[view.value] = loaded


def _parent(op: ir.Operation) -> ir.Operation:
    """The parent op of an op."""
    return op.parent.operation


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


# Elements of less than a byte in kernels of workgroups: tiles hold bytes, and elements are extracted from them.


def take_bytes(ops: Sequence[ir.Operation]) -> bool:
    """Let descriptors of elements of 4 bits be of the bytes that hold these, and vectors be cast.

    Returns:
        Whether anything may have changed.

    Raises:
        DiagnosticError: at a descriptor or block that is not known to begin at a byte.
    """
    changes = [(op, change) for op in ops for change in _changes(op)]
    for op, change in changes:
        with ir.InsertionPoint(op), op.location:
            change(op)
    return bool(changes)


def _changes(op: ir.Operation) -> Iterator[Callable[[ir.Operation], None]]:
    if op.name == "vector.interleave":
        yield _interleave_bytes
    elif op.name == PREFIX + "create_nd_tdesc" and narrow_bits(UpstreamTensorDesc.of(op.results[0]).element):
        yield _describe_bytes


def _interleave_bytes(op: ir.Operation) -> None:
    """The even and the odd elements of bytes, transposed and interleaved, are the elements of the transposed bytes."""
    halves = [defining_op(v) for v in op.operands]
    turned = [h.operands[0] for h in halves if h is not None and permutation_of(h) == (1, 0)]
    pair = defining_op(turned[0]) if len(turned) == 2 else None
    if pair is None or pair.name != "vector.deinterleave" or turned != list(pair.results):
        return
    taken = defining_op(pair.operands[0])
    if taken is None or taken.name != "vector.bitcast":
        return
    held, kind = taken.operands[0], op.results[0].type
    if 2 * narrow_bits(element_of(op.results[0])) != 8 or element_of(held) != "i8":
        return
    swapped = vector.transpose(vector_type(shape_of(held)[::-1], "i8"), held, [1, 0])
    op.results[0].replace_all_uses_with(vector.bitcast(kind, swapped))
    op.erase()


def _describe_bytes(op: ir.Operation) -> None:
    """The descriptor of the bytes of blocks, and accesses by it."""
    view: Any = op.opview
    desc = UpstreamTensorDesc.of(view.tdesc)
    each = 8 // narrow_bits(desc.element)
    address, extents, strides = tensor_of(view.source, list(view.shape), list(view.strides))
    if strides[-1] != 1:
        refuse(view, f"the innermost stride of elements of {desc.element} is not 1, so that they do not fill bytes")
    made = block_ops.UpstreamCreateNdTdescOp(
        address,
        _byte_offsets(view, list(view.offsets), each),
        [*extents[:-1], _in_bytes(view, extents[-1], each)],
        [*(_in_bytes(view, n, each) for n in strides[:-1]), 1],
        tdesc=_byte_desc(view, desc, each).to_ir(),
    ).tdesc
    _access_bytes(view.tdesc, made, each)
    op.erase()


def _access_bytes(old: ir.Value, new: ir.Value, each: int) -> None:
    """Replace a descriptor of elements by one of bytes in all its users."""
    for use in list(old.uses):
        op = use.owner.operation
        if not (implements(op, BlockAccess) or implements(op, DescriptorUpdate)):
            desc = UpstreamTensorDesc.of(old)
            refuse(
                op, f"it passes on a descriptor of elements of {desc.element}", "let memory have i8 and cast vectors"
            )
        with ir.InsertionPoint(op), op.location:
            view: Any = op.opview
            offsets = _byte_offsets(op, list(view.offsets), each)
            if implements(op, DescriptorUpdate):
                moved = block_ops.UpstreamUpdateNdOffsetOp(new, offsets, result=new.type).result
                _access_bytes(op.results[0], moved, each)
                op.erase()
                continue
            given = given_hints(view)
            if view.layout is not None:
                given["layout"] = _byte_layout(view.layout, each)
            if implements(op, Prefetch):
                block_ops.UpstreamPrefetchNdOp(new, offsets, **given)
            elif not implements(op, BlockLoad):
                held = vector.bitcast(_byte_vector(view.value, each), view.value)
                block_ops.UpstreamStoreNdOp(held, new, offsets, **given)
            else:
                if view.transpose is not None or view.packed:
                    refuse(op, f"it exchanges elements of {element_of(view.value)} as it loads them")
                made = block_ops.UpstreamLoadNdOp(new, offsets, value=_byte_vector(view.value, each), **given)
                view.value.replace_all_uses_with(vector.bitcast(view.value.type, made.value))
        op.erase()


def _byte_vector(value: ir.Value, each: int) -> ir.Type:
    *outer, inner = shape_of(value)
    return vector_type((*outer, inner // each), "i8")


def _byte_desc(op: Any, desc: UpstreamTensorDesc, each: int) -> UpstreamTensorDesc:
    *outer, inner = desc.shape
    if inner % each:
        refuse(op, f"the rows of a block of {desc} end within a byte")
    layout = desc.layout
    if layout != "unit":
        layout = _byte_layout(layout_of(layout), each).encode()
    return replace(desc, shape=(*outer, inner // each), element="i8", layout=layout)


def _byte_layout(layout: Layout | Slice, each: int) -> Layout | Slice:
    """The same subgroups' parts in bytes. The parts of instructions and lanes do not count here."""
    if isinstance(layout, Slice):
        return layout
    data = layout.sg_data
    if data and data[-1] % each == 0:
        data = (*data[:-1], data[-1] // each)
    elif data:
        # A layout never changes a value.
        data = ()
    return Layout(layout.sg_layout, data, order=layout.order)


def _byte_offsets(op: Any, offsets: Sequence[Any], each: int) -> list[Any]:
    return [*offsets[:-1], _in_bytes(op, offsets[-1], each)] if offsets else []


def _in_bytes(op: Any, number: Any, each: int) -> Any:
    """Convert a number of elements to a number of bytes."""
    if divisor(number) % each:
        refuse(op, "it is not known to begin at a byte", f"offsets and strides must be multiples of {each} elements")
    return number // each if isinstance(number, int) else arith.divui(number, index(each))
