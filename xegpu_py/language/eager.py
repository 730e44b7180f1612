"""`engine="eager"`: Python runs a kernel's function, and each op is evaluated as soon as it is built.

Functions of the language build the same ops as for a compiled kernel, in a scratch block. The reference evaluator runs
each op at once, so `print`, debuggers and exceptions see the kernel's values. Workgroups run one after another; the
subgroups of a workgroup also run one at a time and switch at barriers.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np
from mlir import ir as mlir
from msgspec import structs

from xegpu_py import build
from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError
from xegpu_py.language.held import BUILDING
from xegpu_py.language.rewriting import Meaning
from xegpu_py.language.source import code_of
from xegpu_py.numerics.dpas import Model
from xegpu_py.reference.launch import bind, is_of_workgroup
from xegpu_py.reference.machine import Barrier, Launch, Subgroup, Workgroup
from xegpu_py.reference.memory import BASE, Memory
from xegpu_py.reference.program import Function
from xegpu_py.reference.stepping import Stepper
from xegpu_py.target import DEFAULT
from xegpu_py.visa.program import extent, place_in

Make = Callable[[Sequence[mlir.Value]], Mapping[str, Any]]
"""Gives the function's arguments for the SSA values of the kernel's arguments."""

NO_RESULT = "a kernel returns no value; it stores its results in arrays"


def run(
    function: FunctionType,
    types: Sequence[str],
    arguments: Sequence[Any],
    make: Make,
    *,
    grid: int | Sequence[int] = 1,
    block: int | Sequence[int] | None = None,
    model: Model = "fma",
    target: str = DEFAULT,
    names: Sequence[str] = (),
) -> None:
    """Run a kernel's function over a grid; arrays are changed in place.

    Args:
        types: MLIR's types of the kernel's arguments.
        arguments: an argument for each type.
        block: subgroups of a workgroup. A kernel with maps still runs once for each workgroup.
        model: how dpas rounds.
        target: the GPU for which the kernel is built.
        names: the names of the arguments, for error messages.

    Raises:
        TypeError, ValueError: if an argument does not fit.
        DiagnosticError: at the line of an op that cannot be evaluated.
        Exception: any exception that the function raises.
    """
    size, own = extent(grid, "grid"), extent(1 if block is None else block, "block")
    memory = Memory("global memory", BASE)
    meaning = Meaning()
    rewritten = meaning.function(function)

    def body(given: Sequence[mlir.Value]) -> None:
        if rewritten(**make(given)) is not None:
            raise TypeError(NO_RESULT)

    try:
        with Context() as context, mlir.Location.unknown(), np.errstate(all="ignore"):
            values = bind([mlir.Type.parse(t) for t in types], arguments, memory, names=names)
            scratch = _Scratch(function.__name__, types)
            launch = Launch(Function(scratch.func), size, own, 1, 1, False, model, values, memory, built_apart=True)
            for number in range(math.prod(size)):
                group = Workgroup(launch, place_in(launch.grid, number))
                name = function.__name__
                _Team(group, context, types, name, target, body).run()
    except DiagnosticError as e:
        e.diagnostics = [_from_one(d) for d in e.diagnostics]
        e.sources = [*e.sources, code_of(function).source]
        raise


def _from_one(found: Diagnostic) -> Diagnostic:
    """A diagnostic whose columns count from 1: those of Python's frames, at which ops are built, count from 0."""
    where = found.position
    where = structs.replace(where, column=where.column + 1) if where.line else where
    return structs.replace(found, position=where, notes=tuple(map(_from_one, found.notes)))


class _Scratch:
    """A kernel in which ops are built, and another function that takes the ops that have been evaluated."""

    def __init__(self, name: str, types: Sequence[str]) -> None:
        self.module = mlir.Module.create()
        with mlir.InsertionPoint(self.module.body), build.gpu_module("kernels"):
            with build.kernel(name, *types) as self.arguments:
                self.block = mlir.InsertionPoint.current.block
            with build.kernel(f"{name}_done"):
                done = mlir.InsertionPoint.current.block
        self.func = self.block.owner.operation
        self.end, self.done = (list(b.operations)[-1] for b in (self.block, done))


class Session:
    """One subgroup's run of the function: it evaluates the ops that the function builds."""

    def __init__(self, subgroup: Subgroup, scratch: _Scratch, pause: Callable[[Barrier | None], None]) -> None:
        """Begin a run.

        Args:
            pause: lets other subgroups run; at a barrier, until the barrier opens.
        """
        self._subgroup, self._scratch, self._pause = subgroup, scratch, pause
        self._stepper = Stepper(subgroup, scratch.func)
        self._asked = self._busy = False

    def built(self) -> None:
        """Evaluate the ops that have been built.

        Raises:
            DiagnosticError: at an op that cannot be evaluated.
        """
        if self._busy or mlir.InsertionPoint.current.block != self._scratch.block:
            # The op whose region is being built is not complete yet.
            return
        self._busy = True
        try:
            for op in list(self._scratch.block.operations)[:-1]:
                self._evaluate(op.operation)
        finally:
            self._busy = False

    def _evaluate(self, op: mlir.Operation) -> None:
        launch = self._subgroup.launch
        if not launch.whole and is_of_workgroup(op):
            launch.whole = True
            self._subgroup.workgroup.subgroups = [self._subgroup]
            if self._asked or self._subgroup.number:
                raise TypeError(
                    "a map divides a matrix among subgroups, but the kernel has asked for the subgroup's number"
                )
        self._asked |= op.name == "gpu.subgroup_id"
        op.move_before(self._scratch.done)
        for barrier in self._stepper.steps(op):
            self._pause(barrier)

    def value(self, value: mlir.Value) -> np.ndarray[Any, Any]:
        """The number or the elements of a value."""
        self.built()
        return np.asarray(self._stepper.value(value))


class _Stopped(BaseException):
    """Ends a subgroup because another one failed."""


class _Team:
    """The subgroups of a workgroup, each on its own thread; one thread runs at a time."""

    def __init__(
        self,
        group: Workgroup,
        context: Context,
        types: Sequence[str],
        name: str,
        target: str,
        body: Callable[[Sequence[mlir.Value]], Any],
    ) -> None:
        self._group, self._context, self._types, self._name, self._body = group, context, types, name, body
        self._target = target
        self._paused = threading.Semaphore(0)
        self._resume = [threading.Semaphore(0) for _ in group.subgroups]
        self._waits: dict[int, Barrier | None] = {}
        self._failure: BaseException | None = None
        self._alone = len(group.subgroups) == 1

    def run(self) -> None:
        """Run all subgroups to their ends."""
        if self._alone:
            # Debuggers work best on the main thread.
            return self._subgroup(self._group.subgroups[0])
        threads: dict[int, threading.Thread] = {}
        try:
            while True:
                moved = False
                for subgroup in list(self._group.subgroups):
                    number = subgroup.number
                    if self._group.launch.whole and number:
                        continue
                    thread, barrier = threads.get(number), self._waits.get(number)
                    if thread is None:
                        thread = threading.Thread(target=self._thread, args=(subgroup,), daemon=True)
                        threads[number] = thread
                        thread.start()
                    elif not thread.is_alive() or (barrier is not None and not barrier.is_open(number)):
                        continue
                    else:
                        self._resume[number].release()
                    self._paused.acquire()
                    moved = True
                    if self._failure is not None:
                        raise self._failure
                    if number not in self._waits:
                        thread.join()
                alive = [s for s in self._group.subgroups if (t := threads.get(s.number)) and t.is_alive()]
                if not alive:
                    return None
                if not moved:
                    self._group.report_deadlock(alive)
        finally:
            self._failure = self._failure or _Stopped()
            for number, thread in threads.items():
                self._resume[number].release()
                thread.join()

    def _thread(self, subgroup: Subgroup) -> None:
        try:
            with np.errstate(all="ignore"):
                self._subgroup(subgroup)
        except _Stopped:
            return
        except BaseException as e:
            self._failure = self._failure or e
        finally:
            self._waits.pop(subgroup.number, None)
            self._paused.release()

    def _subgroup(self, subgroup: Subgroup) -> None:
        with self._context, mlir.Location.unknown(), mlir.loc_tracebacks():
            scratch = _Scratch(self._name, self._types)
            pause = self._never if self._alone else lambda barrier: self._pause(subgroup.number, barrier)
            session = Session(subgroup, scratch, pause)
            BUILDING.enter(session, self._target)
            try:
                with mlir.InsertionPoint(scratch.end):
                    self._body(scratch.arguments)
                    session.built()
            finally:
                BUILDING.leave()

    def _never(self, barrier: Barrier | None) -> None:
        if barrier is not None:
            self._group.report_deadlock(self._group.subgroups)

    def _pause(self, number: int, barrier: Barrier | None) -> None:
        self._waits[number] = barrier
        self._paused.release()
        self._resume[number].acquire()
        if self._failure is not None:
            raise _Stopped
