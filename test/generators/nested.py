"""Random kernels of vectors with nested layouts, which `vector-distribute` rewrites for lanes."""

from __future__ import annotations

import re
from random import Random

from passes import layout_programs

from .program import Program


class Writer(layout_programs.Writer):
    """A writer whose arrays are words of `xegpu-run`."""

    def __init__(self, r: Random, lanes: int, subgroups: int, gaps: bool, outers: bool) -> None:
        super().__init__(r, lanes, subgroups, gaps, outers)
        self.words: list[str] = []

    def memory(self, shape: tuple[int, ...], element: str = "i32", fill: int | None = None) -> str:
        """A memref argument, of small numbers or of one number."""
        found = super().memory(shape, element, fill)
        dims = "x".join(map(str, shape or (1,)))
        dtype = "i64" if element == "index" else element
        self.words.append(
            f"small:{dtype}:{dims}:seed={self.r.randrange(100)}" if fill is None else f"full:{dtype}:{dims}:{fill}"
        )
        return found


def program(r: Random) -> Program:
    """A random kernel of vectors with layouts."""
    kind = r.choice([*layout_programs.SHARED, *layout_programs.OWN])
    lanes, subgroups = r.choice([16, 16, 32]), r.choice([1, 2, 4])
    w = Writer(r, lanes, subgroups, gaps=r.random() < 0.5, outers=r.random() < 0.7)
    kind(w)
    if w.result:
        value, where = w.result
        w.result = None
        w.write(value, where.shape)
    head, _, body = w.program().text.partition(" {\n")
    size = f"known_block_size = array<i32: {subgroups * lanes}, 1, 1>"
    head = head.replace("func.func", "gpu.func")
    body = re.sub(r"\breturn\n", "gpu.return\n", body)
    text = f"gpu.module @kernels {{\n{head} kernel attributes {{{size}}} {{\n{body}}}\n"
    passes = f"vector-distribute{{subgroup-size={lanes}}},canonicalize,cse"
    return Program(text, tuple(w.words), (1,), (subgroups * lanes,), passes=passes)
