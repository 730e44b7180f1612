"""Operands for bytes of registers: variables of a type that cover them, and regions that address them."""

from __future__ import annotations

from collections.abc import Sequence

from xegpu_py.numerics.formats import TYPES
from xegpu_py.target import Target
from xegpu_py.visa.operands import BUILTINS, Address, Destination, Raw, Region, Variable, Vector, first_byte
from xegpu_py.visa.program import Program

_MOST_REGISTERS = 2
"""Registers that an operand of an arithmetic instruction may span."""


def bytes_of(operand: Region | Destination, lanes: int, target: Target) -> tuple[Variable, list[int]]:
    """The root variable (not an alias) of an operand, and the first byte in it of each element.

    A source that broadcasts one element to all lanes has one.
    """
    # Cached, because operands are immutable and each pass needs their bytes.
    known = operand.__dict__.get("_bytes")
    if known is None or known[0] != (lanes, target.grf_bytes):
        known = operand.__dict__["_bytes"] = ((lanes, target.grf_bytes), _bytes_of(operand, lanes, target))
    found: tuple[Variable, list[int]] = known[1]
    return found


def _bytes_of(operand: Region | Destination, lanes: int, target: Target) -> tuple[Variable, list[int]]:
    root, inner = operand.var.root
    size = operand.var.format.bytes
    start = inner + first_byte(operand, target.grf_bytes)
    count = 1 if isinstance(operand, Region) and operand.is_scalar else lanes
    return root, [start + e * size for e in operand.elements(count)]


def start_of(operand: Raw | Vector | Address, target: Target) -> tuple[Variable, int]:
    """The root variable (not an alias) of an operand, and the operand's first byte in it."""
    root, inner = operand.var.root
    return root, inner + (first_byte(operand, target.grf_bytes) if isinstance(operand, Vector) else operand.offset)


class Places:
    """The variables of a program, and the aliases that passes add to access bytes as another type."""

    def __init__(self, program: Program, target: Target) -> None:
        """Begin with the variables that the program declares."""
        self._grf = target.grf_bytes
        self._names = {v.name for v in program.variables} | {p.name for p in program.predicates}
        self._known: dict[tuple[Variable, str], list[Variable]] = {}
        for var in (*program.variables, *BUILTINS.values()):
            self._known.setdefault((var.root[0], var.type), []).append(var)
        self.added: list[Variable] = []

    def variable(self, root: Variable, type_name: str, start: int, end: int) -> Variable | None:
        """A variable of this type that covers bytes `start` to `end` of `root`; None if none can."""
        size = TYPES[type_name].bytes
        for var in self._known.get((root, type_name), ()):
            inner = var.root[1]
            if inner <= start and end <= inner + var.bytes and (start - inner) % size == 0:
                return var
        if root in BUILTINS.values() or root.bytes < size or start % size or end > root.bytes // size * size:
            return None
        name = f"{root.name}_{type_name}"
        while name in self._names:
            name += "_"
        var = Variable(name, type_name, root.bytes // size, root.align, (root, 0))
        self._names.add(name)
        self._known.setdefault((root, type_name), []).append(var)
        self.added.append(var)
        return var

    def region(self, root: Variable, type_name: str, places: Sequence[int], modifier: str) -> Region | None:
        """A source whose lanes read elements at these first bytes; None if no region describes them."""
        size = TYPES[type_name].bytes
        low, high = min(places), max(places) + size
        var = self.variable(root, type_name, low, high)
        strides = _strides([(p - places[0]) // size for p in places]) if low == places[0] else None
        if var is None or strides is None or any((p - low) % size for p in places):
            return None
        inner = low - var.root[1]
        if len(places) > 1 and (low % self._grf + high - low) > _MOST_REGISTERS * self._grf:
            return None
        return Region(var, inner // self._grf, inner % self._grf // size, *strides, modifier)

    def destination(self, root: Variable, type_name: str, start: int, end: int, stride: int) -> Destination | None:
        """A result whose first element is at this byte; None if no alias of the type covers it."""
        var = self.variable(root, type_name, start, end)
        if var is None:
            return None
        row, rest = divmod(start - var.root[1], self._grf)
        return Destination(var, row, rest // var.format.bytes, stride)

    def raw(self, root: Variable, type_name: str, start: int, end: int) -> Raw | None:
        """An operand of whole registers that starts at this byte; None if no alias of the type can."""
        var = self.variable(root, type_name, start, end)
        return Raw(var, start - var.root[1]) if var else None

    def vector(self, root: Variable, type_name: str, start: int, end: int) -> Vector | None:
        """Consecutive elements that start at this byte; None if no alias of the type can."""
        var = self.variable(root, type_name, start, end)
        if var is None:
            return None
        row, rest = divmod(start - var.root[1], self._grf)
        return Vector(var, row, rest // var.format.bytes)


def _strides(elements: Sequence[int]) -> tuple[int, int, int] | None:
    """Vertical stride, width and horizontal stride of a region with these elements; None if no region has them."""
    if all(e == 0 for e in elements):
        return 0, 1, 0
    step = elements[1]
    if step and all(e == i * step for i, e in enumerate(elements)):
        return step, 1, 0
    width = next(w for w in range(1, len(elements) + 1) if w == len(elements) or elements[w] != w * step)
    if len(elements) % width or width == len(elements):
        return None
    across = elements[width]
    fits = all(e == (i // width) * across + (i % width) * step for i, e in enumerate(elements))
    return (across, width, step) if fits and across >= 0 else None
