"""What the MLIR bindings have under another name, or not at all, in one release or another.

Any distribution may provide `import mlir`. All other code is written for LLVM 22's names; what an older release lacks
is added to its classes here, when this module is imported, and nowhere else.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from enum import IntEnum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mlir
from mlir import ir
from mlir._mlir_libs import _mlir as _cext
from mlir.dialects import arith

__all__ = ["SEGMENTS", "AtomicRMWKind", "load_dialects", "loc_tracebacks", "name_segments", "tracebacks_leave_out"]

_LOAD_DIALECTS = "_ZN4mlir4irdl12loadDialectsENS_8ModuleOpE"
_SET_LOC = "_ZN4mlir5Value6setLocENS_8LocationE"
"""`mlir::irdl::loadDialects(mlir::ModuleOp)` and `mlir::Value::setLoc(mlir::Location)` by the Itanium C++ ABI. A
`ModuleOp`, a `Value` and a `Location` are a pointer each."""

_HAS_IRDL = importlib.util.find_spec("mlir._mlir_libs._mlirDialectsIRDL") is not None

SEGMENTS = (
    {"operand": "operandSegmentSizes", "result": "resultSegmentSizes"}
    if _HAS_IRDL
    else {"operand": "operand_segment_sizes", "result": "result_segment_sizes"}
)
"""The attributes with the sizes of operand and result groups of IRDL's ops. LLVM 21 has other names for them than for
those of other ops."""


def _with_missing_kinds(kinds: type[IntEnum]) -> type[IntEnum]:
    """The kinds of atomic updates, among them `xori`, which LLVM 21's `memref.atomic_rmw` lacks, but not ours."""
    if "xori" in kinds.__members__:
        return kinds
    members = {kind.name: kind.value for kind in kinds}
    return IntEnum(kinds.__name__, {**members, "xori": max(members.values()) + 1})  # type: ignore[return-value]


if TYPE_CHECKING:
    AtomicRMWKind = arith.AtomicRMWKind
else:
    AtomicRMWKind = _with_missing_kinds(arith.AtomicRMWKind)


@lru_cache
def _of_cpp(name: str, arguments: int) -> Callable[..., bool]:
    """A function of the library of the bindings, for which they have no Python name.

    Raises:
        ImportError: if the library lacks it.
    """
    for folder in mlir.__path__:
        for path in sorted((Path(folder) / "_mlir_libs").glob("libMLIRPythonCAPI.*")):
            function = getattr(ctypes.CDLL(str(path)), name, None)
            if function is not None:
                function.argtypes, function.restype = [ctypes.c_void_p] * arguments, ctypes.c_bool
                found: Callable[..., bool] = function
                return found
    raise ImportError(f"these MLIR bindings lack {name}; LLVM 21.1 or later is needed")


def loc_tracebacks() -> AbstractContextManager[None]:
    """Let the locations of ops be the Python code that builds them. LLVM 21 cannot: they are unknown there."""
    found: AbstractContextManager[None] = getattr(ir, "loc_tracebacks", nullcontext)()
    return found


def tracebacks_leave_out(path: str) -> None:
    """Let the files below a path be in no location that `loc_tracebacks` gives."""
    exclude = getattr(_cext.globals, "register_traceback_file_exclusion", None)
    if exclude is not None:
        exclude(path)


def _pointer(held: Any) -> int:
    """The pointer that an object of the bindings holds."""
    capsule = held._CAPIPtr
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.argtypes, name_of.restype = [ctypes.py_object], ctypes.c_char_p
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.argtypes, get.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    return int(get(capsule, name_of(capsule)))


def name_segments(op: ir.Operation) -> None:
    """Give the sizes of an IRDL op's groups, which the bindings' builder has set, the names that IRDL looks for."""
    for which, name in SEGMENTS.items():
        builders = f"{which}SegmentSizes"
        if name != builders and builders in op.attributes:
            op.attributes[name] = op.attributes[builders]
            del op.attributes[builders]


def load_dialects(module: ir.Module) -> None:
    """Define the dialects of a module of `irdl` ops in its context.

    Raises:
        ImportError: if the bindings cannot.
    """
    if _HAS_IRDL:
        from mlir._mlir_libs._mlirDialectsIRDL import load_dialects as load

        load(module)
    else:
        _of_cpp(_LOAD_DIALECTS, 1)(_pointer(module.operation))


def _add_missing() -> None:
    """Add to the classes of the bindings what LLVM 22 has and they have not."""
    missing: dict[type, dict[str, Any]] = {
        ir.OpAttributeMap: {
            "__iter__": lambda self: (name for name, _ in _items(self)),
            "keys": lambda self: [name for name, _ in _items(self)],
            "values": lambda self: [value for _, value in _items(self)],
            "items": lambda self: list(_items(self)),
            "get": lambda self, name, default=None: dict(_items(self)).get(name, default),
        },
        ir.BlockArgument: {"set_location": _set_value_location},
        ir.Operation: {
            "attached": property(lambda self: self.parent is not None),
            "is_before_in_block": _is_before_in_block,
        },
        ir.InsertionPoint: {"after": classmethod(_after)},
    }
    if not _HAS_IRDL:
        # LLVM 21 gives operands as plain values.
        missing[ir.Value] = {
            "arg_number": property(lambda self: ir.BlockArgument(self).arg_number),
            "result_number": property(lambda self: ir.OpResult(self).result_number),
        }
        # Its own gives an object that Python cannot hold.
        ir.Value.context = property(lambda self: self.type.context)
        # Its own forgets the op, but not those inside, whose places in memory other ops get.
        ir.Operation.erase = _erase
        # LLVM 21 does not tell of which class an expression is, which `isinstance` asks.
        results = ir.AffineMap.results
        ir.AffineMap.results = property(lambda self: [_narrowest(e) for e in results.fget(self)])
        _rename_else()
    for cls, members in missing.items():
        for name, member in members.items():
            if not any(name in base.__dict__ for base in cls.__mro__):
                setattr(cls, name, member)
    if ir.Operation.location.fset is None:
        base = next(c for c in ir.Operation.__mro__ if "location" in c.__dict__)
        setattr(base, "location", property(base.__dict__["location"].fget, _set_location))  # noqa: B010


def _erase(op: ir.Operation, erase: Callable[[ir.Operation], None] = ir.Operation.erase) -> None:
    op.context._clear_live_operations_inside(op)
    erase(op)


def _narrowest(e: ir.AffineExpr) -> ir.AffineExpr:
    """An affine expression as the class that it is of."""
    narrower = (cls for cls in (*ir.AffineBinaryExpr.__subclasses__(), *ir.AffineExpr.__subclasses__()))
    return next((cls(e) for cls in narrower if cls.isinstance(e)), e)


def _rename_else() -> None:
    """Let `scf.IfOp` take `has_else`, whose name was `hasElse`."""
    from mlir.dialects import scf

    init = scf.IfOp.__init__

    def renamed(self: Any, *arguments: Any, has_else: bool = False, **others: Any) -> None:
        init(self, *arguments, hasElse=has_else, **others)

    scf.IfOp.__init__ = renamed


def _items(attributes: Any) -> Iterator[tuple[str, ir.Attribute]]:
    for i in range(len(attributes)):
        named = attributes[i]
        yield named.name, named.attr


def _is_before_in_block(op: ir.Operation, other: ir.Operation) -> bool:
    first = next(o.operation for o in op.block.operations if o.operation in (op.operation, other.operation))
    return bool(first == op.operation)


def _after(cls: type[ir.InsertionPoint], op: ir.Operation) -> ir.InsertionPoint:
    following = list(op.operation.block.operations)
    at = next(i for i, o in enumerate(following) if o.operation == op.operation)
    return cls(following[at + 1]) if at + 1 < len(following) else cls(op.operation.block)


def _set_value_location(value: ir.Value, location: ir.Location) -> None:
    pointer = ctypes.c_void_p(_pointer(value))
    _of_cpp(_SET_LOC, 2)(ctypes.addressof(pointer), _pointer(location))


def _set_location(op: ir.Operation, location: ir.Location) -> None:
    """Let an op be at another place. Without results it is replaced by its equal, as it has no value to ask."""
    op = op.operation
    if len(op.results):
        _set_value_location(op.results[0], location)
    elif op.parent is not None:
        with ir.InsertionPoint(op):
            made = ir.Operation.create(
                op.name,
                operands=list(op.operands),
                attributes=dict(_items(op.attributes)),
                successors=list(op.successors),
                regions=len(op.regions),
                loc=location,
            )
        for old, new in zip(op.regions, made.regions):
            for block in list(old.blocks):
                block.append_to(new)
        op.erase()


_add_missing()
