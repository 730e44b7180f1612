"""Accesses to consecutive bytes by messages of one lane. An address is in a register, plus a constant in bytes."""

from __future__ import annotations

from xegpu_py.numerics.formats import TYPES
from xegpu_py.passes.common.messages import line_pieces
from xegpu_py.passes.xegpu_to_visa.lower import Lowering
from xegpu_py.passes.xegpu_to_visa.values import Reg
from xegpu_py.visa.operands import Guard, Raw


def load_line(low: Lowering, address: tuple[Reg, int], slm: bool, caches: str, count: int, name: str) -> Reg:
    """Load `count` numbers of vISA's type `name`, which one message moves, into new registers."""
    ((_, shape),) = line_pieces(count * TYPES[name].bytes)
    result = low.emit.whole(name, count)
    low.emit.message("lsc_load", shape, address[0], slm, offset=address[1], caches=caches, dst=low.emit.raw(result))
    return result


def store_line(
    low: Lowering, address: tuple[Reg, int], slm: bool, caches: str, value: Reg, guard: Guard | None = None
) -> None:
    """Store numbers, if the guard's predicate is set."""
    for at, shape in line_pieces(value.count * value.format.bytes):
        start = value.first * value.format.bytes + at
        size = shape.vector * shape.memory_bytes
        root = value.var.root
        whole = (root[1] + start) % low.target.grf_bytes == 0 and shape.transpose and root[0].align == "GRF"
        piece = value if whole else low.emit.whole("ud", max(shape.vector, 1))
        if not whole:
            _move_bytes(low, Reg(value.var, 0, 1), start, piece, 0, size)
        source = Raw(piece.var, start if whole else 0)
        to, plus = address
        low.emit.message("lsc_store", shape, to, slm, offset=plus + at, guard=guard, caches=caches, src0=source)


def prefetch_line(low: Lowering, address: tuple[Reg, int], caches: str, size: int) -> None:
    """Prefetch `size` bytes, which one message moves, into the caches."""
    ((_, shape),) = line_pieces(size)
    low.emit.message("lsc_load", shape, address[0], offset=address[1], caches=caches, dst=Raw(None))


def _move_bytes(low: Lowering, source: Reg, source_at: int, to: Reg, to_at: int, size: int) -> None:
    unit = next(n for n in (4, 2, 1) if size % n == 0 and to_at % n == 0 and source_at % n == 0)
    name = {4: "ud", 2: "uw", 1: "ub"}[unit]
    a, b = low.emit.as_type(Reg(source.var, 0, 1), name), low.emit.as_type(Reg(to.var, 0, 1), name)
    part = Reg(a.var, source_at // unit, size // unit)
    low.emit.apply("mov", name, size // unit, part, into=Reg(b.var, to_at // unit, size // unit))
