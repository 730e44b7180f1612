"""MLIR contexts in which our dialects are defined."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from mlir import ir

from xegpu_py.ir import irdl
from xegpu_py.ir.definition import Dialect

DIALECTS = ("xegpu", "xetile", "visa", "iree_vector_ext")
"""Our dialects: modules of `xegpu_py.dialects`, each with a `DIALECT`."""

ON_DEMAND = ("xetile", "visa", "iree_vector_ext")
"""Dialects that a context loads when a text names them, or on request: their import (for layouts, that of numpy) takes
as long as all else."""

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
        own: our dialects that are loaded. If they are not given, those of `ON_DEMAND` are loaded where they are met.
    """

    own: tuple[type[Dialect], ...]

    def __init__(self, own: Sequence[type[Dialect]] | None = None) -> None:
        super().__init__(load_on_create_dialects=[])
        for name in UPSTREAM:
            # Not `self.dialects[name]`, which imports the bindings' module of the dialect too.
            self.get_dialect_descriptor(name)
        # Python passes hold the interpreter lock, so a thread pool would only add its start-up time.
        self.enable_multithreading(False)
        self.own = ()
        self._is_open = own is None
        self.define(tuple(own) if own is not None else dialects([n for n in DIALECTS if n not in ON_DEMAND]))

    def load(self, names: Sequence[str]) -> None:
        """Load dialects of ours."""
        self.define(tuple(d for d in dialects(names) if d not in self.own))

    def load_met(self, text: str) -> None:
        """Load the dialects that a text names, as MLIR does with its own."""
        if self._is_open:
            met = [n for n in ON_DEMAND if f"{n}." in text]
            if met:
                self.load(met)

    def define(self, own: tuple[type[Dialect], ...]) -> None:
        """Define dialects that are not defined yet."""
        if own:
            self.own += own
            with self, ir.Location.unknown():
                irdl.load(own)


def current() -> Context:
    """The current context if it is one of ours, else a new one."""
    try:
        found = ir.Context.current
    except ValueError:
        found = None
    return found if isinstance(found, Context) else Context()
