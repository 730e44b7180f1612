"""MLIR contexts in which our dialects are defined."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from mlir import ir

from xegpu_py.ir import irdl
from xegpu_py.ir.definition import Dialect

DIALECTS = ("xegpu", "xetile", "visa", "iree_vector_ext")
"""Our dialects: modules of `xegpu_py.dialects`, each with a `DIALECT`."""

ON_DEMAND = ("xetile", "visa", "iree_vector_ext")
"""Those that a context loads when a text names them, or when it is told to: their import (for layouts, that of numpy)
takes as long as all else."""

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
        own: our dialects that are loaded. If they are not given, they are all but those of `ON_DEMAND` that have not
            been imported; these are loaded where they are met.
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
        self.define(tuple(own) if own is not None else dialects([n for n in DIALECTS if _is_ready(n)]))

    def load(self, names: Sequence[str]) -> None:
        """Load dialects of ours."""
        self.define(tuple(d for d in dialects(names) if d not in self.own))

    def load_met(self, text: str) -> None:
        """Load the dialects that a text names, as MLIR does with its own."""
        if self._is_open:
            self.load([n for n in ON_DEMAND if f"{n}." in text])

    def define(self, own: tuple[type[Dialect], ...]) -> None:
        """Define dialects that are not defined yet."""
        if own:
            self.own += own
            with self, ir.Location.unknown():
                irdl.load(own)


def _is_ready(name: str) -> bool:
    """Whether a dialect is loaded with a context: one on demand only if its ops have been made."""
    return name not in ON_DEMAND or "DIALECT" in vars(sys.modules.get(f"xegpu_py.dialects.{name}", object))


def current() -> Context:
    """The current context if it is one of ours, else a new one."""
    try:
        found = ir.Context.current
    except ValueError:
        found = None
    return found if isinstance(found, Context) else Context()
