"""The private parts of the MLIR bindings that are used, and the names that releases after LLVM 22 have changed.

Any distribution may provide `import mlir`. All other code uses the public names of LLVM 22.1.8. Each difference is
found by looking for the name, and not by the version.
"""

from __future__ import annotations

import functools
import importlib
import sys
from types import ModuleType

from mlir import ir
from mlir._mlir_libs._mlirDialectsIRDL import load_dialects as load_dialects
from mlir.dialects._arith_enum_gen import AtomicRMWKind as AtomicRMWKind
from mlir.dialects._ods_common import _cext


def register_dialect(view: type) -> None:
    """Let a subclass of `ir.Dialect` be the Python side of the dialect of its `DIALECT_NAMESPACE`."""
    _cext.register_dialect(view)


def register_operation(view: type, cls: type) -> None:
    """Let a subclass of `ir.OpView` be the Python side of the op of its `OPERATION_NAME`, of the dialect of `view`."""
    _cext.register_operation(view, replace=True)(cls)


_WITHOUT_VIEWS = ("arith", "builtin", "gpu")
"""Dialects of upstream's whose ops have views without accessors until somebody needs more. Their modules have hundreds
of classes, and the bindings import them for the first op that a loop meets."""


def search_dialects_below(prefix: str) -> None:
    """Let the bindings look for the Python side of a dialect in modules below a name, before their own."""
    for dialect in _WITHOUT_VIEWS:
        sys.modules[f"{prefix}.{dialect}"] = ModuleType(f"{prefix}.{dialect}")
    _cext.globals.dialect_search_modules = [prefix, *_cext.globals.dialect_search_modules]


def _module(name: str) -> ModuleType:
    """A module of the bindings' dialects."""
    return importlib.import_module(f"mlir.dialects.{name}")


def import_views() -> None:
    """Give the ops of `_WITHOUT_VIEWS` views with accessors, which code that is not this project's expects."""
    for dialect in _WITHOUT_VIEWS:
        _module(dialect)


def tracebacks_leave_out(path: str) -> None:
    """Leave the files below a path out of the locations of `ir.loc_tracebacks`."""
    _cext.globals.register_traceback_file_exclusion(path)


@functools.lru_cache
def upstream_operations(dialect: str) -> dict[str, type[ir.OpView]]:
    """The classes of the ops of one of upstream's dialects by the ops' names; empty where the bindings have none."""
    try:
        module = _module(f"_{dialect}_ops_gen")
    except ImportError:
        return {}
    classes = (value for value in vars(module).values() if isinstance(value, type) and issubclass(value, ir.OpView))
    return {name: cls for cls in classes if (name := getattr(cls, "OPERATION_NAME", None))}


def is_kernel(func: ir.Operation) -> bool:
    """Whether a `gpu.func` is a kernel: it has `gpu.kernel` up to LLVM 22, and `kernel` after it."""
    attributes = func.attributes
    return "gpu.kernel" in attributes or "kernel" in attributes


def blocks_in(op: ir.Operation) -> list[ir.Block]:
    """The blocks of an op's regions."""
    regions = op.regions
    # Iterating over no regions takes twenty times as long as counting them: the bindings end it by a C++ exception.
    return [block for region in regions for block in region] if len(regions) else []


_LOCATIONS = tuple(ir.Location.__subclasses__())
"""The classes of the kinds of locations, which LLVM 22 does not have."""


def narrowed(location: ir.Location) -> ir.Location:
    """A location as an object of the class of its kind: those of diagnostics are of the base class."""
    if type(location) is not ir.Location:
        return location
    for cls in _LOCATIONS:
        try:
            return cls(location)
        except ValueError:
            pass
    return location


def _is_location(location: ir.Location, name: str) -> bool:
    return isinstance(location, getattr(ir, name))


def _add_questions() -> None:
    """Give locations LLVM 22's methods that tell their kind, in place of which later releases have the classes."""
    location_classes = {"file": "FileLineColLoc", "name": "NameLoc", "callsite": "CallSiteLoc", "fused": "FusedLoc"}
    for method, name in location_classes.items():
        if not hasattr(ir.Location, f"is_a_{method}"):
            setattr(ir.Location, f"is_a_{method}", functools.partialmethod(_is_location, name))


_add_questions()
