"""`xegpu-load-ahead`: the loads of a loop's next iteration are on their way while this one computes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from mlir import ir
from mlir.dialects import arith, scf
from msgspec import Struct

from xegpu_py.dialects import visa
from xegpu_py.dialects.xegpu import MemoryScope, TensorDesc
from xegpu_py.dialects.xegpu.op_interfaces import BlockLoad, Prefetch
from xegpu_py.ir.control_flow import yielded
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.module import walk
from xegpu_py.ir.operation import implements
from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.passes.analysis.ir_queries import (
    LOAD_AHEAD,
    REGISTER_VIEWS,
    arguments_of,
    bits_of,
    element_of,
    is_desc,
    is_marked,
    is_vector,
    registers_of,
    shape_of,
    target_for,
)
from xegpu_py.passes.analysis.memory_effects import effects_of
from xegpu_py.passes.rewriting.builders import clone_with_operands, loop_carrying, replace_op
from xegpu_py.target import Target


@register_pass("xegpu-load-ahead")
class XeGPULoadAhead(Pass):
    """Load the next iteration's blocks early.

    A block is loaded after the last use of the current iteration's block, into the same registers, so that no register
    is moved. The blocks of the first iteration are loaded before the loop, and the loop carries the loaded blocks. The
    last iteration loads blocks that are not used; elements outside of the matrix read as zero. Loops that write memory
    or wait for other threads are not changed, and neither are loads whose offsets depend on values from memory. It is
    an error if the values that a loop then carries do not fit the registers of a thread. `grf` is the number of these
    registers, by default the maximum of the target (`target`, or else `visa.target` of the kernel or of an op around
    it).

        %r:2 = scf.for %k = %c0 to %K step %c16 iter_args(%sum = %zero, %t = %t0) -> (...) {
          %a = xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<8x16xbf16> -> vector<8x16xbf16>
          %next = xegpu.dpas %sum, %a, %b {mode = vc} : ...
          %u = xegpu.update_nd_offset %t, [0, 16] {mode = vc} : !xegpu.tensor_desc<8x16xbf16>
          scf.yield %next, %u : ...
        }

    becomes

        %a0 = xegpu.load_nd %t0 {mode = vc} : !xegpu.tensor_desc<8x16xbf16> -> vector<8x16xbf16>
        %r:3 = scf.for %k = %c0 to %K step %c16 iter_args(%sum = %zero, %t = %t0, %a = %a0) -> (...) {
          %next = xegpu.dpas %sum, %a, %b {mode = vc} : ...
          %u = xegpu.update_nd_offset %t, [0, 16] {mode = vc} : !xegpu.tensor_desc<8x16xbf16>
          %a1 = xegpu.load_nd %u {mode = vc} : !xegpu.tensor_desc<8x16xbf16> -> vector<8x16xbf16>
          scf.yield %next, %u, %a1 : ...
        }
    """

    target: str = ""
    grf: int = 0
    marked: bool = False

    def run(self, op: ir.Operation) -> None:
        for func in visa.kernels(op):
            if self.marked and not is_marked(walk(func)):
                continue

            target = target_for(func, self.target)
            load_ahead(func, target, registers_of(func, target, self.grf) or max(target.grf_counts), self.marked)


# The rebuilding of loops that load ahead.


def load_ahead(func: ir.Operation, target: Target, registers: int, marked: bool = False) -> None:
    """Let all loops of a kernel that can be pipelined load ahead, or those that are `marked`.

    Raises:
        DiagnosticError: at a loop that would carry more than there are registers.
    """
    for op in reversed(walk(func)):
        if (
            op.name == "scf.for"
            and (LOAD_AHEAD in op.attributes or not marked)
            and all(_may_load_over(inner) for inner in walk(op)[1:])
        ):
            loads = _ahead(op)
            if loads:
                _check_room(op, loads, target, registers)
                _Rebuilding(op).run(loads)


def _may_load_over(op: ir.Operation) -> bool:
    return effects_of(op) <= {"read"} or isinstance(op.opview, Prefetch)


class _Load(Struct, frozen=True):
    """A load of a loop's body, and the last op of the body that needs what it brings."""

    op: ir.Operation
    last_use: int


def _body(loop: ir.Operation) -> ir.Block:
    return loop.regions[0].blocks[0]


def _ahead(loop: ir.Operation) -> list[_Load]:
    """The loads of a loop that can come an iteration ahead, those that are free first before the others."""
    ops = [o.operation for o in _body(loop).operations]
    order = {op: i for i, op in enumerate(ops)}
    loads = []
    for op in ops:
        if not implements(op, BlockLoad):
            continue
        desc = TensorDesc.of(op.operands[0])
        is_block = len(desc.shape) == 2 and desc.attr.boundary_check and desc.attr.memory_scope == MemoryScope.GLOBAL
        last = _last_use(op.results[0], order)
        if is_block and last is not None and last < len(ops) - 1 and _is_known(op.operands[0], loop):
            loads.append(_Load(op, last))
    return sorted(loads, key=lambda load: load.last_use)


def _last_use(value: ir.Value, order: dict[ir.Operation, int]) -> int | None:
    """The number of the last op of a block that needs a value or a view of it; None if there is none."""
    last: int | None = None
    for use in value.uses:
        user = use.owner.operation
        while user not in order:
            user = user.parent.operation
        positions = [order[user]]
        if user.name in (*REGISTER_VIEWS, "vector.bitcast"):
            positions += [n for n in (_last_use(r, order) for r in user.results) if n is not None]
        last = max(positions if last is None else [last, *positions])
    return last


def _is_known(offset: ir.Value, loop: ir.Operation) -> bool:
    """Whether a value of the loop's body, now and in the next iteration, follows from its arguments alone."""
    body = _body(loop)
    yields, arguments = yielded(body), arguments_of(offset, body)
    return -1 not in arguments and all(-1 not in arguments_of(yields[i - 1], body) for i in arguments if i)


def _check_room(loop: ir.Operation, loads: Sequence[_Load], target: Target, registers: int) -> None:
    """The registers that carried vectors take, those that are loaded ahead included, are as many as there are."""
    carried = _registers(list(loop.results), target)
    ahead = _registers([load.op.results[0] for load in loads], target)
    if carried + ahead > registers:
        message = (
            f"cannot load ahead: it carries {carried} registers, and {ahead} more would hold what it loads, but a "
            f"thread has {registers}"
        )
        emit_error(loop, message, "smaller steps or tiles require fewer registers")


def _registers(values: Sequence[ir.Value], target: Target) -> int:
    total = 0
    for value in filter(is_vector, values):
        element = element_of(value)
        bits = 32 if isinstance(element, ir.IndexType) else bits_of(element)
        total += -(-math.prod(shape_of(value)) * bits // (8 * target.grf_bytes))
    return total


class _Rebuilding:
    """The exchange of a loop for one that carries what it loads."""

    def __init__(self, loop: ir.Operation) -> None:
        self._loop = loop
        self._body = _body(loop)
        self._ops = [o.operation for o in self._body.operations]
        self._order = {op: i for i, op in enumerate(self._ops)}
        self._moved: set[ir.Operation] = set()
        self._yields = list(self._ops[-1].operands)

    def run(self, loads: Sequence[_Load]) -> None:
        """Let these loads come an iteration ahead."""
        with self._loop.location:
            begun = self._begin(loads)
            nexts = [self._next(load) for load in loads]
            self._exchange(loads, begun, nexts)

    def _begin(self, loads: Sequence[_Load]) -> list[ir.Value]:
        """The values that the first iteration needs, loaded before the loop in the order in which it loaded it."""
        operands = list(self._loop.operands)
        stands = dict(zip(self._body.arguments, [operands[0], *operands[3:]]))
        first_loads: dict[ir.Operation, ir.Value] = {}
        with ir.InsertionPoint(self._loop):
            for op in sorted((load.op for load in loads), key=self._order.__getitem__):
                first_loads[op] = clone_with_operands(op, stands).results[0]
        return [first_loads[load.op] for load in loads]

    def _next(self, load: _Load) -> ir.Value:
        """The load of the next iteration, after the last use of what this one has loaded."""
        numbers = sorted(arguments_of(load.op.operands[0], self._body))
        needed = [op for n in numbers if n for op in self._needed(self._yields[n - 1], load.last_use)]
        before = next(op for op in self._ops[load.last_use + 1 :] if op not in self._moved)
        for op in needed:
            op.move_before(before)
        stands: dict[ir.Value, ir.Value] = {}
        _, upper, step, *_ = self._loop.operands
        with ir.InsertionPoint(before):
            following = None
            nexts = [load.op.operands[0], *(self._yields[n - 1] for n in numbers if n)]
            if any(map(self._moves_base, nexts)):
                # After the last iteration there is no surface to load from: the current one is loaded again.
                next_index = arith.addi(self._body.arguments[0], step)
                following = arith.cmpi(arith.CmpIPredicate.slt, next_index, upper)
            for n in numbers:
                argument = self._body.arguments[n]
                new = self._yields[n - 1] if n else arith.addi(argument, step)
                stands[argument] = new if following is None else arith.select(following, new, argument)
            next_load: ir.Value = clone_with_operands(load.op, stands).results[0]
        return next_load

    def _moves_base(self, offset: ir.Value) -> bool:
        """Whether a descriptor's surface, and not only the offset in it, changes from one iteration to the next."""
        owner = offset.owner
        if isinstance(owner, ir.Block) or owner.operation.block != self._body:
            return False
        op = owner.operation
        if op.name == "xegpu.create_nd_tdesc":
            view = op.opview
            surface = [view.source, *view.shape, *view.strides]
            return any(arguments_of(v, self._body) for v in surface)
        return any(self._moves_base(v) for v in op.operands if is_desc(v))

    def _needed(self, value: ir.Value, position: int) -> Iterator[ir.Operation]:
        """The ops of the body that a value is computed of and that still stand after a place of it, in order."""
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.operation.block != self._body:
            return
        op = owner.operation
        if self._order[op] <= position or op in self._moved:
            return
        for operand in op.operands:
            yield from self._needed(operand, position)
        self._moved.add(op)
        yield op

    def _exchange(self, loads: Sequence[_Load], begun: Sequence[ir.Value], nexts: Sequence[ir.Value]) -> None:
        """A loop with the same body that carries the loads too, in the place of the old one."""
        count = len(self._yields)
        new_loop = loop_carrying(self._loop.opview, range(count), begun)
        with ir.InsertionPoint(new_loop.body):
            scf.YieldOp([*self._ops[-1].operands, *nexts])
        for load, new in zip(loads, list(new_loop.inner_iter_args)[count:]):
            replace_op(load.op, new)
        self._loop.erase()
