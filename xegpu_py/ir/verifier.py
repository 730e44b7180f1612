"""Semantic verification: what MLIR and IRDL cannot check of our ops."""

from __future__ import annotations

from typing import Any

from mlir import ir

from xegpu_py.ir.assembly import unknown_attribute
from xegpu_py.ir.bodies import Bodies
from xegpu_py.ir.definition import DYNAMIC, Dialect
from xegpu_py.ir.diagnostics import Diagnostic, Position
from xegpu_py.ir.operation import SEGMENTS, STATIC, Operation, VerifyError, group_sizes


def position_of(location: ir.Location) -> Position:
    """Where in a file an MLIR location points: through names, call sites and fusions to the first file position."""
    pending = [location]
    while pending:
        loc = pending.pop()
        if loc.is_a_file():
            return Position(
                loc.filename.value if hasattr(loc.filename, "value") else str(loc.filename),
                loc.start_line,
                loc.start_col,
            )
        if loc.is_a_name():
            pending.append(loc.child_loc)
        elif loc.is_a_callsite():
            pending.append(loc.callee)
        elif loc.is_a_fused():
            pending.extend(reversed(loc.locations))
    return Position("<unknown>")


def walk(root: ir.Operation) -> list[ir.Operation]:
    """All ops in `root`, outer before inner, itself first.

    A list, since what a callback of MLIR's own walk raises would be lost in a RuntimeError.
    """
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        found.append(op)
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def verify(root: ir.Operation, bodies: Bodies | None = None) -> list[Diagnostic]:
    """The rules of our dialects that ops in `root` break, in order; an empty list if none.

    Args:
        bodies: where dialects note the bodies of functions that they decode.
    """
    found: list[Diagnostic] = []
    # The rules depend on types and attributes only, so that equal ops are checked once.
    seen: dict[Any, tuple[str, tuple[str, ...]] | None] = {}
    own: dict[type[Dialect], list[Operation]] = {}
    for op in walk(root):
        view = op.opview
        if not isinstance(view, Operation):
            continue
        own.setdefault(view.dialect_class, []).append(view)
        types = tuple([v.type for v in (*op.operands, *op.results)])
        key = (op.name, types, tuple([(name, op.attributes[name]) for name in op.attributes]))
        if key not in seen:
            seen[key] = _broken_type(view, types) or _broken_rule(view)
        broken = seen[key]
        if broken:
            found.append(_diagnostic(op, *broken))
    if not found:
        found = [diagnostic for dialect, ops in own.items() for diagnostic in dialect.verify(ops, bodies or Bodies())]
    return found


def _broken_type(view: Operation, types: tuple[ir.Type, ...]) -> tuple[str, tuple[str, ...]] | None:
    owned = {cls.mnemonic(): cls for cls in view.dialect_class.types.values()}
    for ir_type in dict.fromkeys(types):
        text = str(ir_type)
        cls = owned.get(text.partition("<")[0])
        problem = cls.decode(text).problem() if cls else None
        if problem:
            return problem, ()
    return None


def _broken_rule(view: Operation) -> tuple[str, tuple[str, ...]] | None:
    attributes = view.operation.attributes
    spec = view.spec
    for name in attributes:
        attribute = spec.attributes.get(name)
        if attribute is None:
            if "." not in name and name not in SEGMENTS.values():
                return unknown_attribute(name, type(view))[0], ()
            continue
        try:
            attribute.kind.decode(str(attributes[name]))
        except ValueError as e:
            return f"attribute '{name}': {e}", ()
    if spec.index_lists:
        for group, size in zip(spec.operands, group_sizes(view, "operand")):
            if group.name in spec.index_lists:
                marked = getattr(view, STATIC + group.name).count(DYNAMIC)
                if marked != size:
                    return f"'{STATIC}{group.name}' marks {marked} dynamic entries, but there are {size} operands", ()
    try:
        view.verify_op()
    except VerifyError as e:
        return e.message, e.notes
    return None


def _diagnostic(op: ir.Operation, message: str, notes: tuple[str, ...]) -> Diagnostic:
    where = position_of(op.location)
    attached = tuple(Diagnostic("note", note, where) for note in notes)
    return Diagnostic("error", f"'{op.name}' op {message}", where, attached)
