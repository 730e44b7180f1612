"""Vectors that follow from positions are computed again where subgroups need other parts of them, and not exchanged."""

import random

import numpy as np
import pytest
from effort import examples

import xegpu_py

ROWS, COLUMNS = 16, 32
MAPS = ["[8, 1]", "[1, 8]", "[2, 4]", "[4, 2]", "[8, 1], own", "[1, 8], own"]
SHAPE = f"{ROWS}x{COLUMNS}"
OPS = {"addi": np.add, "muli": np.multiply, "subi": np.subtract, "xori": np.bitwise_xor, "maxsi": np.maximum}


def wg_map(name, shape=(ROWS, COLUMNS)):
    """The map of a number of subgroups, whose parts are as large as they can be; with "own" half of that."""
    layout = [int(n) for n in name.partition("]")[0][1:].split(",")]
    data = [max(n // count, 1) for n, count in zip(shape, layout)]
    if name.endswith("own"):
        data = [max(n // 2, 1) for n in data]
    return f"#xetile.wg_map<sg_layout = {layout}, sg_data = {data}>"


class Program:
    """A random matrix of positions: its ops, and numbers by numpy."""

    def __init__(self, seed):
        self._rng, self.lines, self._count = random.Random(seed), [], 0
        self.rows, self.columns = np.indices((ROWS, COLUMNS))
        self.scalar = self._rng.randrange(1, 9)

    def emit(self, text):
        self._count += 1
        self.lines.append(f"%v{self._count} = {text}")
        return f"%v{self._count}"

    def leaf(self):
        choice = self._rng.randrange(4)
        if choice == 0:
            line = f"vector<1x{ROWS}xindex>"
            row = self.emit(f"vector.shape_cast %rows : vector<{ROWS}xindex> to {line}")
            moved = self.emit(f"vector.broadcast %n : index to {line}")
            row = self.emit(f"arith.addi {row}, {moved} : {line}")
            row = self.emit(f"vector.shape_cast {row} : {line} to vector<{ROWS}x1xindex>")
            kind = f"vector<{ROWS}x1xindex> -> vector<{SHAPE}xindex>"
            return self.emit(f"xetile.broadcast {row} [1] : {kind}"), self.rows + self.scalar
        if choice == 1:
            line = self.emit(f"vector.shape_cast %columns : vector<{COLUMNS}xindex> to vector<1x{COLUMNS}xindex>")
            kind = f"vector<1x{COLUMNS}xindex> -> vector<{SHAPE}xindex>"
            return self.emit(f"xetile.broadcast {line} [0] : {kind}"), self.columns
        if choice == 2:
            return self.emit(f"vector.broadcast %n : index to vector<{SHAPE}xindex>"), np.int64(self.scalar)
        bounds = self._rng.randrange(ROWS + 1), self._rng.randrange(COLUMNS + 1)
        names = [self.emit(f"arith.constant {n} : index") for n in bounds]
        mask = self.emit(f"vector.create_mask {', '.join(names)} : vector<{SHAPE}xi1>")
        (yes, one), (no, other) = self.leaf(), self.leaf()
        inside = (self.rows < bounds[0]) & (self.columns < bounds[1])
        kinds = f"vector<{SHAPE}xi1>, vector<{SHAPE}xindex>"
        return self.emit(f"arith.select {mask}, {yes}, {no} : {kinds}"), np.where(inside, one, other)

    def tree(self, depth):
        if depth == 0:
            return self.leaf()
        (a, x), (b, y) = self.tree(depth - 1), self.tree(self._rng.randrange(depth))
        name = self._rng.choice([*OPS])
        value, numbers = self.emit(f"arith.{name} {a}, {b} : vector<{SHAPE}xindex>"), OPS[name](x, y)
        if self._rng.random() < 0.4:
            other = wg_map(self._rng.choice(MAPS))
            value = self.emit(f"xetile.convert_layout {value} {{wg_map_result = {other}}} : vector<{SHAPE}xindex>")
        return value, numbers


@pytest.mark.parametrize("seed", range(examples(60)))
def test_positions_are_not_exchanged(seed):
    program = Program(seed)
    value, numbers = program.tree(1 + seed % 2)
    stored = wg_map(MAPS[seed % len(MAPS)]).removeprefix("#xetile.wg_map")
    tile = f"!xetile.tile<{SHAPE}xi64, #xetile.tile_attr<wg_map = {stored}>>"
    text = "\n".join(program.lines)
    source = f"""gpu.module @m {{ gpu.func @k(%Y: memref<{SHAPE}xi64>, %n: index) kernel {{
    %rows = vector.step : vector<{ROWS}xindex>
    %columns = vector.step : vector<{COLUMNS}xindex>
    {text}
    %result = arith.index_cast {value} : vector<{SHAPE}xindex> to vector<{SHAPE}xi64>
    %t = xetile.init_tile %Y[0, 0] : memref<{SHAPE}xi64> -> {tile}
    xetile.store_tile %result, %t : vector<{SHAPE}xi64>, {tile}
    gpu.return }} }}"""
    kernel = xegpu_py.compile(source, check=["races", "uninit"], registers=256)
    y = np.zeros((ROWS, COLUMNS), np.int64)
    kernel(y, program.scalar)
    np.testing.assert_array_equal(y, np.broadcast_to(numbers, y.shape), source)
    if len(program.lines) <= 32:
        assert kernel.program.slm_bytes == 0, source
