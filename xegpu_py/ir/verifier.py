"""Semantic verification: what MLIR and IRDL cannot check of our ops."""

from __future__ import annotations

from typing import Any

from mlir import ir

from xegpu_py.ir.assembly import unknown_attribute
from xegpu_py.ir.bindings import is_kernel
from xegpu_py.ir.bodies import Bodies
from xegpu_py.ir.definition import DYNAMIC, Dialect
from xegpu_py.ir.diagnostics import Diagnostic, op_error
from xegpu_py.ir.fields import SEGMENTS, STATIC
from xegpu_py.ir.operation import Operation, VerifyError, group_sizes

FUNCTIONS = ("func.func", "gpu.func")

Broken = tuple[str, tuple[str, ...]] | None
"""A broken rule: the message and its notes."""


def walk(root: ir.Operation) -> list[ir.Operation]:
    """All ops in `root`, outer before inner, itself first.

    A list, since what a callback of MLIR's own walk raises would be lost in a RuntimeError.
    """
    found: list[ir.Operation] = []
    append, advance = found.append, ir.WalkResult.ADVANCE

    def visit(op: ir.Operation) -> ir.WalkResult:
        append(op)
        return advance

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def functions(root: ir.Operation) -> list[ir.Operation]:
    """The functions in `root`, itself if it is one, in order. Their bodies contain none and are not searched."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name not in FUNCTIONS:
            return ir.WalkResult.ADVANCE
        found.append(op)
        return ir.WalkResult.SKIP

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def kernels(root: ir.Operation) -> list[ir.Operation]:
    """The kernels in `root`: its `gpu.func`s with the attribute `kernel`."""
    return [func for func in functions(root) if func.name == "gpu.func" and is_kernel(func)]


def verify(
    root: ir.Operation, bodies: Bodies | None = None, repeated: frozenset[int] = frozenset()
) -> list[Diagnostic]:
    """The rules of our dialects that ops in `root` break, in order; an empty list if none.

    Args:
        bodies: where dialects note the bodies of functions that they decode.
        repeated: lines of ops that equal others in `root` but for operands, and so need not be looked at.
    """
    found: list[Diagnostic] = []
    # The rules depend on types and attributes only, so equal ops are checked once.
    seen: dict[Any, Broken] = {}
    # Types, and attributes by op and name, that are known to be valid; most ops share a few of them.
    valid: set[Any] = set()
    own: dict[type[Dialect], list[Operation]] = {}
    classes: dict[str, type[Operation] | None] = {}
    ours = {dialect.name for dialect in Dialect.__subclasses__()}
    for op in walk(root):
        name = op.name
        if name not in classes:
            # The bindings load a module to find the class of an op of upstream's.
            cls = type(op.opview) if name.partition(".")[0] in ours else ir.OpView
            classes[name] = cls if issubclass(cls, Operation) else None
        declared = classes[name]
        if declared is None or (repeated and op.location.start_line in repeated):
            continue
        if declared.dialect_class.rules:
            own.setdefault(declared.dialect_class, []).append(op.opview)
        types = tuple([v.type for v in op.operands] + [v.type for v in op.results])
        key = (name, types, tuple(op.attributes.items()))
        if key not in seen:
            view = op.opview
            seen[key] = _broken_type(view, types, valid) or _broken_rule(view, valid)
        broken = seen[key]
        if broken:
            found.append(op_error(op, broken[0], *broken[1]))
    if found and repeated:
        return verify(root, bodies)
    if not found:
        bodies = bodies or Bodies()
        found = [d for dialect, ops in own.items() for rule in dialect.rules for d in rule(ops, bodies)]
    return found


def _broken_type(view: Operation, types: tuple[ir.Type, ...], valid: set[Any]) -> Broken:
    for ir_type in dict.fromkeys(types):
        if (view.dialect_class, ir_type) in valid:
            continue
        text = str(ir_type)
        owner, _, name = text.partition("<")[0].partition(".")
        cls = view.dialect_class.types.get(name) if owner == f"!{view.dialect_class.name}" else None
        problem = cls.decode(text).problem() if cls else None
        if problem:
            return problem, ()
        valid.add((view.dialect_class, ir_type))
    return None


def _broken_rule(view: Operation, valid: set[Any]) -> Broken:
    attributes = view.operation.attributes
    spec = view.spec
    for name, value in attributes.items():
        if (view.OPERATION_NAME, name, value) in valid:
            continue
        attribute = spec.attributes.get(name)
        if attribute is None:
            if "." not in name and name not in SEGMENTS.values() and not view.dialect_class.any_attributes:
                return unknown_attribute(name, type(view))[0], ()
            continue
        try:
            attribute.codec.decode(str(value))
        except ValueError as e:
            return f"attribute '{name}': {e}", ()
        valid.add((view.OPERATION_NAME, name, value))
    if spec.index_lists:
        for group, size in zip(spec.operands, group_sizes(view, "operand")):
            if group.name in spec.index_lists:
                marked = getattr(view, STATIC + group.name).count(DYNAMIC)
                if marked != size:
                    return f"'{STATIC}{group.name}' has {marked} dynamic entries, but there are {size} operands", ()
    try:
        view.verify_op()
    except VerifyError as e:
        return e.message, e.notes
    return None
