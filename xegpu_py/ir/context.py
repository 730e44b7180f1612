"""MLIR contexts in which our dialects are defined."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from mlir import ir

from xegpu_py.ir import irdl
from xegpu_py.ir.definition import Dialect

DIALECTS = ("xegpu", "visa")
"""Our dialects: modules of `xegpu_py.dialects`, each with a `DIALECT`."""

UPSTREAM = (
    "builtin", "func", "arith", "math", "index", "vector", "memref", "scf", "cf", "gpu", "affine", "ub", "irdl",
)  # fmt: skip
"""Upstream's dialects that ops may be built in at once; MLIR loads others when it meets them in a text. Its C++
`xegpu` must not be among them: that leaves the name to ours."""


def dialects(names: Sequence[str] = DIALECTS) -> tuple[type[Dialect], ...]:
    """Our dialect classes of these names."""
    return tuple(importlib.import_module(f"xegpu_py.dialects.{n}").DIALECT for n in names)


class Context(ir.Context):  # type: ignore[misc]
    """An MLIR context with upstream's dialects and ours.

    Attributes:
        own: our dialects, by default all of them.
    """

    own: tuple[type[Dialect], ...]

    def __init__(self, own: Sequence[type[Dialect]] | None = None) -> None:
        super().__init__(load_on_create_dialects=list(UPSTREAM))
        # Python passes hold the interpreter lock, so a thread pool would only add its start-up time.
        self.enable_multithreading(False)
        self.own = tuple(own) if own is not None else dialects()
        with self, ir.Location.unknown():
            irdl.load(self.own)


def current() -> Context:
    """The current context if it is one of ours, else a new one."""
    try:
        found = ir.Context.current
    except ValueError:
        found = None
    return found if isinstance(found, Context) else Context()
