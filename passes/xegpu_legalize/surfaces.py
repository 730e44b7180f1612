"""Finds a function's descriptors whose tensors 2D block messages cannot address, and the alignment of their rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mlir import ir
from msgspec import Struct, field

from xegpu_py.dialects.xegpu import Mode, TensorDesc
from xegpu_py.dialects.xegpu.interfaces import DescriptorUpdate
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.operation import implements
from xegpu_py.ir.verifier import walk
from xegpu_py.passes.common.control_flow import carried
from xegpu_py.passes.common.divisors import column_divisor
from xegpu_py.passes.common.surfaces import (
    column_problem,
    is_unaligned,
    stride_problem,
    surface_problem,
    tensor_of,
    unaligned_arguments,
)
from xegpu_py.passes.common.union_find import UnionFind
from xegpu_py.passes.common.values import block_of, is_desc
from xegpu_py.passes.xegpu_legalize.shapes import Place
from xegpu_py.target import Target


class Surfaces(Struct):
    """The tensors of a function's block descriptors.

    Attributes:
        func: the function.
        classes: descriptors that are moved and carried together.
        creations: by class the ops that make its descriptors.
        problems: by class, the reason why 2D block messages cannot address the tensors.
    """

    func: ir.Operation
    classes: UnionFind[ir.Value] = field(default_factory=UnionFind)
    creations: dict[ir.Value, list[ir.Operation]] = field(default_factory=dict)
    problems: dict[ir.Value, str] = field(default_factory=dict)
    _users: dict[ir.Value, list[ir.Operation]] = field(default_factory=dict)
    _places: dict[ir.Value, Place | None] = field(default_factory=dict)

    def problem(self, desc: ir.Value) -> str | None:
        """The reason why no 2D block message moves a descriptor's block; None if one does."""
        return self.problems.get(self.classes.find(desc))

    def made_by(self, desc: ir.Value) -> list[Any]:
        """The `xegpu.create_nd_tdesc` that may have made a descriptor."""
        return [op.opview for op in self.creations.get(self.classes.find(desc), ())]

    def users_of(self, desc: ir.Value) -> list[ir.Operation]:
        """The ops that use a descriptor of the same class."""
        if not self._users:
            for op in walk(self.func):
                for value in op.operands:
                    if is_desc(value):
                        self._users.setdefault(self.classes.find(value), []).append(op)
        return self._users.get(self.classes.find(desc), [])

    def place(self, desc: ir.Value) -> Place | None:
        """The form of a descriptor as numbers; None if its creation is not visible.

        Raises:
            DiagnosticError: at one of the addresses, if control flow carries addresses of several types.
        """
        root = self.classes.find(desc)
        if root not in self._places:
            self._places[root] = self._place(desc)
        return self._places[root]

    def _place(self, desc: ir.Value) -> Place | None:
        made = self.made_by(desc)
        if not made:
            return None
        sources = [[view.source, *view.shape, *view.strides] for view in made]
        values = [v for v in sources[0] if not isinstance(v, int)]
        alike = all(s == sources[0] for s in sources)
        users = self.users_of(desc)
        rank = len(TensorDesc.of(desc).shape)
        if alike and all(_sees(op, v) for op in users for v in values):
            return Place(rank)
        kinds = {"i64" if isinstance(view.source.type, ir.MemRefType) else str(view.source.type) for view in made}
        if len(kinds) > 1:
            other = next(view for view in made if not isinstance(view.source.type, ir.MemRefType))
            emit_error(
                other.operation,
                f"has an address of type {other.source.type}, but control flow passes its descriptor on as one with "
                f"those of other sources, and no 2D block message serves it: its tensor {self.problem(desc)}",
                "use addresses of type i64 in control flow that also passes memrefs",
            )
        stepped = any(stride_problem(tensor_of(view)) for view in made)
        return Place(rank, kinds.pop(), stepped)

    def row_alignment(self, desc: ir.Value) -> int:
        """The known alignment of a block's rows in bytes."""
        kind = TensorDesc.of(desc)
        size = max(kind.bits // 8, 1)
        known = [column_divisor(desc)]
        for view in self.made_by(desc):
            tensor = tensor_of(view)
            # Buffers are aligned; the alignment of an integer address is unknown.
            numbers = (tensor.start, *tensor.strides[:-1])
            known += [1 if n is None else n for n in numbers]
        return math.gcd(*known) * size if len(known) > 1 else size


def _sees(op: ir.Operation, value: ir.Value) -> bool:
    """Whether a value is defined in a block that encloses an op."""
    block = block_of(value)
    at: Any = op
    while at is not None:
        if at.block == block:
            return True
        at = at.parent
        at = None if at is None or at.operation.name in ("gpu.func", "func.func") else at.operation
    return False


def find_surfaces(
    func: ir.Operation,
    ops: Sequence[ir.Operation],
    target: Target,
    unaligned: Sequence[int] | None = (),
    most_bytes: int = 0,
) -> Surfaces:
    """Find the classes of a function's block descriptors, and those that 2D block messages cannot address.

    Args:
        ops: the function's ops.
        unaligned: see `surface_problem`; the arguments in the kernel's `xegpu.unaligned` are added.
        most_bytes: see `surface_problem`.
    """
    found = Surfaces(func)
    for op in ops:
        join_descriptors(found.classes, op)
    marked = None if unaligned is None else (*unaligned, *unaligned_arguments(func))
    moves = []
    for op in ops:
        name = op.name
        if name not in ("xegpu.create_nd_tdesc", "xegpu.update_nd_offset"):
            continue
        view: Any = op.opview
        if view.mode != Mode.VC:
            continue
        result = op.results[0]
        root = found.classes.find(result)
        moves.append((root, view, TensorDesc.of(result)))
        if name == "xegpu.create_nd_tdesc":
            found.creations.setdefault(root, []).append(op)
            problem = surface_problem(view, target, marked, most_bytes=most_bytes)
            if problem:
                found.problems.setdefault(root, problem)
    # Without marked memory, all unknown columns are trusted.
    creations = () if marked == () else found.creations.items()
    doubted = {root for root, made in creations if any(is_unaligned(op.opview, marked) for op in made)}
    for root, view, desc in moves:
        if root not in found.problems and root in found.creations and len(desc.shape) > 1:
            assert target.block2d
            problem = column_problem(view, desc.bits // 8, target.block2d, root not in doubted)
            if problem:
                found.problems[root] = problem
    return found


def join_descriptors(classes: UnionFind[ir.Value], op: ir.Operation) -> None:
    """Join the descriptors that an op moves or carries."""
    for group in carried(op):
        if is_desc(group[0]):
            classes.join(group)
    if implements(op, DescriptorUpdate):
        classes.join([op.results[0], op.operands[0]])
