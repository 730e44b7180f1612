"""`xegpu-strength-reduce`: fewer induction variables of loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from mlir import ir
from msgspec import Struct

from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import CreateNdTdescOp, UpdateNdOffsetOp
from xegpu_py.ir.control_flow import terminator, yielded
from xegpu_py.ir.module import walk
from xegpu_py.ir.passes import Contents, Pass, register_pass
from xegpu_py.passes.analysis.integer_analysis import Integers, Limits, contains, limits_of, type_range
from xegpu_py.passes.analysis.ir_queries import (
    added_to,
    chosen_kernels,
    defining_op,
    is_desc,
    is_used,
    moves_of,
    sees,
    target_for,
)
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.target import GRID_LIMIT, Target


@register_pass("xegpu-strength-reduce")
class XeGPUStrengthReduce(Pass):
    """Expand carried descriptors, merge equal indices.

    A block descriptor that each iteration of a loop moves by the same offsets becomes a descriptor at indices that the
    loop carries. Indices that advance together become one. If they advance together with the counter, they become
    sums of the counter and a constant.

        %0 = xegpu.create_nd_tdesc %m[%row, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
        %1:2 = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %zero, %t = %0) -> (...) {
          %x = xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
          %y = arith.addf %sum, %x : vector<8x16xf32>
          %u = xegpu.update_nd_offset %t, [0, 16] {mode = vc} : ...
          scf.yield %y, %u : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
        }

    becomes

        %1 = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %zero) -> (vector<8x16xf32>) {
          %t = xegpu.create_nd_tdesc %m[%row, %k] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
          %x = xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
          %y = arith.addf %sum, %x : vector<8x16xf32>
          scf.yield %y : vector<8x16xf32>
        }

    A descriptor is kept if it moves along a dimension in which its offset may exceed 32 bits, since the offsets of
    messages have 32 bits. The other options are those of xegpu-to-visa, from which the ranges of offsets follow.
    """

    target: str = ""
    kernel: str = ""
    max_bytes: int = 0
    max_index: int = 0
    max_grid: int = GRID_LIMIT

    def concerns(self, contents: Contents) -> bool:
        return "scf.for" in contents.names

    def run(self, op: ir.Operation) -> None:
        limits = Limits(self.max_bytes, self.max_index, self.max_grid)
        for func in chosen_kernels(op, self.kernel):
            if any(inner.name == "scf.for" for inner in walk(func)):
                reduce_loops(func, target_for(func, self.target, op), limits)


# The induction variables of a loop, and its replacement by a loop that carries fewer values.


def reduce_loops(func: ir.Operation, target: Target, limits: Limits) -> None:
    """Expand the descriptors that the loops of a kernel carry, and merge their equal induction variables.

    Args:
        limits: the limits of the kernel's launches.
    """
    loops = [inner for inner in walk(func) if inner.name == "scf.for" and len(inner.results)]
    if loops and len(func.regions[0].blocks) == 1:
        integers = Integers(limits_of(func, target, limits))
        for loop in loops:
            _Reduction(loop, integers).run()


class _Induction(Struct, frozen=True):
    """An induction variable.

    Attributes:
        init: its value in the first iteration.
        step: what each iteration adds.
        is_used_after: whether its value after the loop is used.
    """

    init: build.Index
    step: build.Index
    is_used_after: bool


_Position: TypeAlias = tuple[int, int] | build.Index
"""A number in an iteration: the number of an induction variable with a constant to add, or an invariant number."""


class _Placed(Struct, frozen=True):
    """A carried value as numbers.

    Attributes:
        maker: an op that creates a descriptor of the same tensor; None if the value is an index.
        positions: the descriptor's offsets, or the index.
    """

    maker: Any
    positions: list[_Position]


class _Reduction:
    """The replacement of a loop by one that carries fewer values.

    The first of the induction variables is the counter; the others are carried. A counter of another type than index
    wraps elsewhere, and so replaces no index.
    """

    def __init__(self, loop: ir.Operation, integers: Integers) -> None:
        self._loop, self._integers = loop, integers
        self._body = loop.regions[0].blocks[0]
        lower, _, step, *self._inits = loop.operands
        self._variables = [_Induction(build.fold_index(lower), build.fold_index(step), False)]

    def run(self) -> None:
        """Replace the loop if it carries a descriptor that can be expanded, or equal induction variables."""
        placed: dict[int, _Placed] = {}
        with self._loop.location, ir.InsertionPoint(self._loop):
            outs = yielded(self._body)
            carried = list(zip(range(len(outs)), list(self._body.arguments)[1:], outs))
            for n, argument, out in carried:
                step = self._step(argument, out) if isinstance(argument.type, ir.IndexType) else None
                if step is not None:
                    placed[n] = _Placed(None, self._positions(n, [self._inits[n]], [step]))
            merges = len(self._variables) - 1 < len(placed)
            for n, argument, out in carried:
                position = self._descriptor(n, argument, out) if is_desc(argument) else None
                if position:
                    placed[n], merges = position, True
            if merges:
                self._replace(placed)

    def _step(self, argument: ir.Value, out: ir.Value) -> build.Index | None:
        """The amount that an iteration adds to a carried index; None if it is not invariant."""
        match added_to(argument, out):
            case [(1, step)] if self._is_invariant(step):
                return step
        return None

    def _is_invariant(self, value: build.Index) -> bool:
        return isinstance(value, int) or sees(self._loop, value)

    def _descriptor(self, n: int, argument: ir.Value, out: ir.Value) -> _Placed | None:
        """A carried descriptor that an op before the loop creates, and each iteration moves by invariant offsets."""
        root, steps = moves_of(out)
        source, moves = moves_of(self._inits[n])
        maker = defining_op(source)
        if root != argument or maker is None or not isinstance(maker.opview, CreateNdTdescOp):
            return None
        first = list(maker.opview.offsets)
        if not all(self._is_invariant(offset) for step in steps for offset in step):
            return None
        by = _sums([[0] * len(first), *steps])
        moving = (bounds for bounds, step in zip(self._integers.offsets(argument, len(first)), by) if step != 0)
        if not all(contains(bounds, type_range(32)) for bounds in moving):
            return None
        return _Placed(maker.opview, self._positions(n, _sums([first, *moves]), by))

    def _positions(self, n: int, inits: Sequence[build.Index], steps: Sequence[build.Index]) -> list[_Position]:
        is_used_after = is_used(self._loop.results[n])
        return [
            self._position(_Induction(build.fold_index(i), build.fold_index(s), is_used_after))
            for i, s in zip(inits, steps)
        ]

    def _position(self, induction: _Induction) -> _Position:
        """A number in an iteration. An induction variable is added only if no other one differs by a constant."""
        if induction.step == 0:
            return induction.init
        for number, variable in enumerate(self._variables):
            if not (number or isinstance(self._body.arguments[0].type, ir.IndexType)):
                continue
            if variable.step != induction.step or (induction.is_used_after and not variable.is_used_after):
                continue
            if variable.init == induction.init:
                return number, 0
            if isinstance(variable.init, int) and isinstance(induction.init, int):
                return number, induction.init - variable.init
        self._variables.append(induction)
        return len(self._variables) - 1, 0

    def _replace(self, placed: dict[int, _Placed]) -> None:
        """Replace the loop by one that carries the induction variables in place of these values."""
        loop, added = self._loop, self._variables[1:]
        kept_numbers = [n for n in range(len(self._inits)) if n not in placed]
        olds, end = list(self._body.arguments)[1:], terminator(self._body)
        results = list(loop.results)
        new_loop = build.loop_carrying(loop.opview, kept_numbers, [build.index(v.init) for v in added])
        new, *news = new_loop.body.arguments
        with ir.InsertionPoint.at_block_begin(new_loop.body):
            for n, position in placed.items():
                if is_used(olds[n]):
                    olds[n].replace_all_uses_with(
                        self._value(position, [new, *news[len(kept_numbers) :]], olds[n].type)
                    )
        # The loop may yield values that the old loop carried, which other values replace now.
        outs = list(end.operands)
        with ir.InsertionPoint(new_loop.body):
            nexts = [build.index(build.add(value, v.step)) for value, v in zip(news[len(kept_numbers) :], added)]
            build.create("scf.yield", [], [*(outs[n] for n in kept_numbers), *nexts])
        end.erase()
        for n, position in placed.items():
            if is_used(results[n]):
                last = self._value(position, [new, *list(new_loop.results)[len(kept_numbers) :]], results[n].type)
                results[n].replace_all_uses_with(last)
            _erase_moves(outs[n])
        loop.erase()

    @staticmethod
    def _value(placed: _Placed, variables: Sequence[ir.Value], kind: ir.Type) -> ir.Value:
        """A carried value, made of these values of the induction variables."""
        numbers = [build.add(variables[p[0]], p[1]) if isinstance(p, tuple) else p for p in placed.positions]
        if placed.maker is None:
            return build.index(numbers[0])
        maker = placed.maker
        return xegpu.create_nd_tdesc(maker.source, numbers, maker.shape, maker.strides, tdesc=kind, mode=maker.mode)


def _sums(offsets: Sequence[Sequence[build.Index]]) -> list[build.Index]:
    return [build.add(*terms) for terms in zip(*offsets)]


def _erase_moves(value: ir.Value) -> None:
    """Erase the moves of a descriptor that are not used."""
    op = defining_op(value)
    while op is not None and isinstance(op.opview, UpdateNdOffsetOp) and not is_used(op.results[0]):
        source = op.operands[0]
        op.erase()
        op = defining_op(source)
