# Made by `make docs` from the dialect's classes; changes belong there.
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from mlir import ir

from xegpu_py.ir.definition import Type as _Type
from xegpu_py.dialects.ttg.ops import Ttg as Ttg

_Value: TypeAlias = ir.Value | ir.OpView | ir.Operation
_ResultType: TypeAlias = ir.Type | _Type | str

DIALECT = Ttg

def barrier(addrSpace: Any, *, loc: ir.Location | None = None, ip: ir.InsertionPoint | None = None) -> ir.OpView:
    """Waits for all threads of the program, whose accesses to these address spaces are seen by all after it."""
