"""Products of bytes by instructions that multiply tiles (AMX), which are exact: sums of 32 bits wrap around.

Matrices lie in registers as these instructions load them. A tile register holds the accumulator of one DPAS, another
one its matrix A or B.
"""

from __future__ import annotations

from xegpu_py.engines.jit.code import PTR, Code, Value
from xegpu_py.engines.jit.host import Host
from xegpu_py.engines.jit.products import Shape

_A, _B = 4, (5, 6, 7)
"""The tile registers of matrices; those before them have accumulators. That of B is another one from one product to
the next, so that it is loaded while the last one multiplies."""

_PALETTE = 1
_BYTES_OF_ROWS, _ROWS = 16, 48
"""Where a configuration has the bytes of each tile's rows, u16 each, and how many rows there are, u8 each."""


def configure(name: str, shape: Shape, host: Host) -> str:
    """The function that configures the tile registers for products of a shape.

    The configuration is valid until other code uses the tile registers.
    """
    code = host.function(name, [])
    place = code.alloca(64, 64)
    settings = bytearray(64)
    settings[0] = _PALETTE
    for tile in range(_B[-1] + 1):
        columns, rows = 4 * shape.columns, shape.rows
        if tile == _A:
            columns = shape.depth
        if tile in _B:
            rows = shape.steps
        settings[_BYTES_OF_ROWS + 2 * tile : _BYTES_OF_ROWS + 2 * tile + 2] = columns.to_bytes(2, "little")
        settings[_ROWS + tile] = rows
    for at in range(0, 64, 8):
        code.store(code.const(int.from_bytes(settings[at : at + 8], "little"), "i64"), code.at(place, at), 8)
    code.call("llvm.x86.ldtilecfg", place)
    code.ret()
    return code.text()


def tile_multiplier(name: str, shape: Shape, count: int, kept: tuple[bool, ...], host: Host) -> str:
    """The function that multiplies up to four chains; see `products.multiplier` for its arguments."""
    assert count <= _A
    links, results = len(kept), sum(kept)
    code = host.function(name, [PTR] * (count + count * results + links + count * links))
    acc, rest = code.arguments[:count], code.arguments[count:]
    dst, rest = rest[: count * results], rest[count * results :]
    a, b = rest[:links], rest[links:]
    row = 4 * shape.columns
    for chain in range(count):
        if shape.acc:
            _load(code, chain, acc[chain], row)
        else:
            code.call("llvm.x86.tilezero", _tile(chain))
    for link in range(links):
        _load(code, _A, a[link], shape.depth)
        for chain in range(count):
            own = _B[(link * count + chain) % len(_B)]
            _load(code, own, b[chain * links + link], row)
            code.call(f"llvm.x86.tdpb{shape.A[0]}{shape.W[0]}d", _tile(chain), _tile(_A), _tile(own))
            if kept[link]:
                place = dst[chain * results + sum(kept[:link])]
                code.call("llvm.x86.tilestored64", _tile(chain), place, code.const(row, "i64"))
    code.ret()
    return code.text()


def _tile(number: int) -> Value:
    return Code.const(number, "i8")


def _load(code: Code, tile: int, place: Value, row_bytes: int) -> None:
    code.call("llvm.x86.tileloadd64", _tile(tile), place, code.const(row_bytes, "i64"))
